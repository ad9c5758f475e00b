#!/usr/bin/env bash
# SIGINT, SIGTERM, SIGHUP to a run: every tree gets it, the grace, the second signal; exit 128 + n; nothing saved, nothing left.
. "$(dirname "$0")/../lib.sh"
. "$SRC/tests/vx.sh"

# The grace is ten minutes where a run must not wait for its end: a run that does is a hang, which `finish` ends and calls 124.
long=600000
# starts ARGS...: vx in the background as $pid, its output in $W/out. A background job of a script ignores SIGINT; python gives it back its default.
starts() {
	python3 -c 'import os, signal, sys; signal.signal(signal.SIGINT, signal.SIG_DFL); os.setsid(); os.execv(sys.argv[1], sys.argv[1:])' "$VX" "$@" >"$W/out" 2>"$W/err" &
	pid=$!
}
# start ARGS...: the same; returns when $W/up is there
start() {
	rm -f "$W/up"
	starts "$@"
	wait_for test -e "$W/up" || { fail 'the task has started' "$(cat "$W/out" "$W/err")"; kill -9 $pid; }
}
# finish: waits for it, sets $rc
finish() {
	finished $pid
	rc=$?
}

# slept TAG: pids of `sleep TAG` itself, not of what is about to become it
slept() {
	local p
	for p in $(called "sleep $1"); do [ "$(tr '\0' ' ' <"/proc/$p/cmdline" 2>/dev/null)" != "sleep $1 " ] || echo "$p"; done
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
		# sh starts background commands with SIGINT ignored; this one has it back.
		project a <<<"$(cached "trap 'echo INT >state/got; exit 0' INT; trap 'echo TERM >state/got; exit 0' TERM; mkdir -p dist; echo x >dist/x; setsid env --default-signal=INT sleep $tag & env --default-signal=INT sleep $tag & : >state/up; wait" "$sandbox")"
		project b a <<<"{ \"tasks\": { \"build\": { \"dependsOn\": [\"^build\"], \"exec\": { \"command\": \"echo b >>$W/ran\" } } } }"
		git add -A
		VX_KILL_GRACE_MS=$long starts run build --all
		# both daemons are what they will be: one that has not come to `sleep` yet may ignore SIGINT still
		two() { [ -e p/a/state/up ] && [ "$(slept "$tag" | wc -l)" = 2 ]; }
		wait_for two || fail "$kind SIG$name: started" "$(cat "$W/out" "$W/err")"
		kill -$name $pid
		finish
		is "$kind SIG$name: exit 128 + n, as soon as all have ended" "$rc" $((128 + $(kill -l $name)))
		case $name in INT) want=INT ;; *) want=TERM ;; esac
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
begin=$(date +%s%N)
kill -TERM $pid
finish
took=$((($(date +%s%N) - begin) / 1000000))
is 'stubborn: exit 143' "$rc" 143
ok "not before the end of the grace ($took ms)" [ $took -ge 700 ]
ok 'nothing is left' none_called "sleep $tag"
project a <<<"$(task "trap ': >$W/asked' INT; trap '' TERM; : >$W/up; while :; do sleep $tag; done")"
VX_KILL_GRACE_MS=$long start run build --all
kill -INT $pid
ok 'a first signal reaches the task' wait_for test -e "$W/asked"
ok 'which goes on' kill -0 $pid
kill -TERM $pid
finish
is 'a second signal ends the grace; exit of the first' "$rc" 130
ok 'nothing is left' none_called "sleep $tag"

# a worker that is stopped hears of no signal: it is killed after the grace, and what it had started with it
tag=87.$$
workspace "$W/stopped"
project a <<<"$(task "setsid sleep $tag & kill -STOP \$PPID; : >$W/up; sleep $tag")"
VX_KILL_GRACE_MS=300 start run build --all
kill -INT $pid
finish
is 'a stopped worker: exit 130' "$rc" 130
ok 'nothing is left' none_called "sleep $tag"

# what a task starts during the grace must not survive it
tag=83.$$
workspace "$W/spawner"
project a <<<"$(task "trap 'setsid sleep $tag & setsid sleep $tag & : >$W/spawned; sleep $tag' TERM; : >$W/up; while :; do sleep 0.05; done")"
VX_KILL_GRACE_MS=$long start run build --all
kill -TERM $pid
ok 'the trap has started more' wait_for test -e "$W/spawned"
kill -TERM $pid # the grace is over
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
start run build --all
kill -INT -- "-$pid"
finish
is 'the group: exit 130' "$rc" 130
is 'one signal to each task' "$(ran)" first
ok 'nothing is left' none_called "sleep $tag"

# an input that takes an hour to hash: before anything runs, and when a task's turn has come
# reads NAME: has the run opened that file?
reads() { ls -l "/proc/$pid/fd" 2>/dev/null | grep -q "/$1\$"; }
for when in ahead late; do
	workspace "$W/$when"
	mkdir -p p/b/src
	own='"inputs": { "files": ["src/**"] }, "outputs": { "files": [] }'
	project b <<<"{ \"tasks\": { \"make\": { \"exec\": { \"command\": \"echo make >>$W/ran; truncate -s 900G src/huge\" } },
		\"build\": { \"dependsOn\": [$([ $when = ahead ] || echo '"make"')], \"exec\": { \"command\": \"echo b >>$W/ran\" }, \"cache\": { $own } } } }"
	put p/b/src/x x
	git add -A
	if ! truncate -s 900G p/b/src/huge 2>/dev/null; then
		skip "$when" 'no such sparse files here'
		continue
	fi
	[ $when = ahead ] || rm p/b/src/huge
	starts run build --all
	ok "$when: the input is being read" wait_for reads huge
	kill -TERM $pid
	finish
	is "$when: exit 143" "$rc $(cat "$W/err")" '143 '
	is "$when: its task did not start" "$(ran)" "$([ $when = ahead ] || echo make)"
done
project b <<<"$(cached true)"
truncate -s 2T p/b/src/huge
vx run b#build
is 'one that is too large is refused' "$rc" 1
like 'by its name, and what to do' "$out$err" 'b#build: input p/b/src/huge is larger than 1099511627776 bytes, .*remove it'
rm p/b/src/huge
truncate -s 300M package-lock.json
vx run b#build
one_line 'so is a lockfile' '/package-lock.json is larger than 268435456 bytes.*remove it'
rm package-lock.json
truncate -s 65M .npmrc
vx run b#build
one_line 'and .npmrc' '/.npmrc.* larger than 67108864 bytes'

done_testing
