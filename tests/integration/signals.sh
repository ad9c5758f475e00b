#!/usr/bin/env bash
# SIGINT, SIGTERM, SIGHUP to a run: every tree gets it, the grace, the second signal; exit 128 + n; nothing saved, nothing left.
. "$(dirname "$0")/../lib.sh"
. "$SRC/tests/vx.sh"

# start ARGS...: vx in the background as $pid, its output in $W/out; returns when $W/up is there
start() {
	rm -f "$W/up"
	# A background job of a script ignores SIGINT; python gives it back its default.
	python3 -c 'import os, signal, sys; signal.signal(signal.SIGINT, signal.SIG_DFL); os.execv(sys.argv[1], sys.argv[1:])' "$VX" "$@" >"$W/out" 2>"$W/err" &
	pid=$!
	wait_for test -e "$W/up" || { fail 'the task has started' "$(cat "$W/out" "$W/err")"; kill -9 $pid; }
}
finish() { # sets $rc and $took in ms
	local begin
	begin=$(date +%s%N)
	wait $pid
	rc=$?
	took=$((($(date +%s%N) - begin) / 1000000))
}

number=0
for sandbox in '' '"sandbox": { "allow": { "read": ["."], "write": ["dist/", "state/"] } }'; do
	kind=${sandbox:+sandboxed}
	kind=${kind:-plain}
	if [ -n "$sandbox" ] && ! can_sandbox; then
		skip "$kind" 'no user namespaces'
		continue
	fi
	for name in INT TERM HUP; do
		number=$((number + 1))
		tag=81.$$$number
		workspace "$W/$kind$name"
		mkdir -p p/a/state p/a/src
		put p/a/src/x x
		project a <<<"$(cached "trap 'echo INT >state/got; exit 0' INT; trap 'echo TERM >state/got; exit 0' TERM; mkdir -p dist; echo x >dist/x; setsid sleep $tag & sleep $tag & : >state/up; wait" "$sandbox")"
		project b a <<<"{ \"tasks\": { \"build\": { \"dependsOn\": [\"^build\"], \"exec\": { \"command\": \"echo b >>$W/ran\" } } } }"
		git add -A
		ln -sfn "$PWD/p/a/state" "$W/state"
		python3 -c 'import os, signal, sys; signal.signal(signal.SIGINT, signal.SIG_DFL); os.execv(sys.argv[1], sys.argv[1:])' "$VX" run build --all >"$W/out" 2>"$W/err" &
		pid=$!
		wait_for test -e p/a/state/up || fail "$kind SIG$name: started" "$(cat "$W/out" "$W/err")"
		sleep 0.2
		kill -$name $pid
		finish
		is "$kind SIG$name: exit 128 + n" "$rc" $((128 + $(kill -l $name)))
		# sh starts background commands with SIGINT ignored, so that the plain SIGINT's daemons live until the grace is over.
		case $name in INT) want=INT most=3500 ;; *) want=TERM most=1800 ;; esac
		ok "$kind SIG$name: it waits for its tasks ($took ms)" [ $took -lt $most ]
		is "$kind SIG$name: the trap ran" "$(cat p/a/state/got)" $want
		ok "$kind SIG$name: nothing is left" none_called "sleep $tag"
		is "$kind SIG$name: dependents did not start" "$(ran)" ''
		rm -f p/a/state/up
		vx run a#build --dry=json
		like "$kind SIG$name: nothing was saved" "$out" '"cacheStatus": ?"(miss|unknown)"'
	done
done

# a tree that ignores SIGTERM
tag=82.$$
workspace "$W/stubborn"
project a <<<"$(task "trap '' TERM INT; : >$W/up; sleep $tag; sleep $tag; sleep $tag")"
VX_KILL_GRACE_MS=700 start run build --all
kill -TERM $pid
finish
is 'stubborn: exit 143' "$rc" 143
ok "after the grace ($took ms)" [ $took -ge 600 ]
ok "and not much later ($took ms)" [ $took -lt 3000 ]
ok 'nothing is left' none_called "sleep $tag"
VX_KILL_GRACE_MS=20000 start run build --all
kill -INT $pid
sleep 0.3
kill -TERM $pid
finish
is 'a second signal: exit of the first' "$rc" 130
ok "now, not after the grace ($took ms)" [ $took -lt 3000 ]
ok 'nothing is left' none_called "sleep $tag"

# a worker that is stopped hears of no signal: it is killed after the grace, and what it had started with it
tag=87.$$
workspace "$W/stopped"
project a <<<"$(task ": >$W/up; kill -STOP \$PPID; setsid sleep $tag & sleep $tag")"
VX_KILL_GRACE_MS=300 start run build --all
kill -INT $pid
finish
is 'a stopped worker: exit 130' "$rc" 130
ok "soon after the grace ($took ms)" [ $took -lt 8000 ]
ok 'nothing is left' none_called "sleep $tag"

# what a task starts during the grace must not survive it
tag=83.$$
workspace "$W/spawner"
project a <<<"$(task "trap 'setsid sleep $tag & setsid sleep $tag & sleep $tag' TERM; : >$W/up; while :; do sleep 0.05; done")"
VX_KILL_GRACE_MS=500 start run build --all
kill -TERM $pid
finish
is 'spawner: exit 143' "$rc" 143
ok 'nothing is left of what the trap started' none_called "sleep $tag"

# queued tasks and retries
workspace "$W/queue"
for p in a b c d; do project $p <<<"$(task ": >$W/up; echo $p >>$W/ran; sleep 84.$$" '"retries": 3')"; done
start run build --all --concurrency 1
kill -TERM $pid
finish
is 'a queue: exit 143' "$rc" 143
is 'nothing more is started, nothing retried' "$(ran | wc -w)" 1

# the terminal's Ctrl-C: the whole foreground group
tag=85.$$
workspace "$W/group"
project a <<<"$(task "trap 'echo first >>$W/ran; exit 1' INT; : >$W/up; sleep $tag & wait")"
rm -f "$W/up"
setsid --wait python3 -c 'import os, signal, sys; signal.signal(signal.SIGINT, signal.SIG_DFL); os.execv(sys.argv[1], sys.argv[1:])' "$VX" run build --all >"$W/out" 2>&1 &
waiter=$!
wait_for test -e "$W/up"
leader=$(called "$VX run build --all" | while read -r p; do [ "$(ps -o pgid= -p "$p" | tr -d ' ')" = "$p" ] && ! tr '\0' ' ' <"/proc/$p/cmdline" | grep -q forkserver && echo "$p"; done | head -1)
kill -INT -- "-$leader"
wait $waiter
is 'the group: exit 130' $? 130
is 'one signal to each task' "$(ran)" first
ok 'nothing is left' none_called "sleep $tag"

done_testing
