#!/usr/bin/env bash
# SIGKILL of vx, of its fork server, of a worker and of each pair of them, with daemons, sandboxed and not: nothing that vx started is alive afterwards,
# and a run that survives ends right. Five trials each (VX_TRIALS).
. "$(dirname "$0")/../lib.sh"
. "$SRC/tests/vx.sh"
trials=${VX_TRIALS:-5}

# Each task leaves daemons behind, waits for `go`, and says that it ran.
script() { # TAG
	echo "echo ran >>state/ran; setsid sleep $1 & (setsid sh -c 'sleep $1 & sleep $1' >/dev/null 2>&1 </dev/null &); while [ ! -e state/go ]; do sleep 0.02; done"
}
sandbox='"sandbox": { "allow": { "read": ["."], "write": ["state/"] } }'
can_sandbox || { diag 'no user namespaces: only unsandboxed tasks'; sandbox=; }
workspace
tag=61.$$
project plain <<<"$(task "$(script $tag)")"
project boxed <<<"$(task "$(script $tag)" "$sandbox")"
mkdir -p p/plain/state p/boxed/state
git add -A

# parts of a run: all the processes that must be gone when `who` are dead
doomed() {
	local who
	for who in "$@"; do
		case $who in
		vx) below "$vx" ;;
		forkserver) below "$fs" ;;
		worker) below "$wk" ;;
		esac
	done | sort -u
}

both_up() { [ -s p/plain/state/ran ] && [ -s p/boxed/state/ran ] && [ "$(called "sleep $tag" | wc -l)" -ge 6 ]; }

trial() { # WHO...: sets $problem
	local who victims=() doomed survivors
	problem=
	rm -f p/*/state/go p/*/state/ran
	"$VX" run build --all --concurrency 2 >"$W/out" 2>&1 &
	vx=$!
	wait_for both_up || { problem="did not start: $(cat "$W/out")"; kill -KILL $vx; wait $vx; return; }
	fs=$(forkserver $vx)
	wk=$(worker $vx)
	[ -n "$fs" ] && [ -n "$wk" ] || { problem='no fork server or worker found'; : >p/plain/state/go; : >p/boxed/state/go; wait $vx; return; }
	doomed=$(doomed "$@")
	for who in "$@"; do
		case $who in vx) victims+=("$vx") ;; forkserver) victims+=("$fs") ;; worker) victims+=("$wk") ;; esac
	done
	kill -KILL "${victims[@]}"
	# shellcheck disable=SC2086 # pids are words
	if ! gone $doomed; then
		survivors=$(for p in $doomed; do ps -o pid=,ppid=,stat=,args= -p "$p"; done)
		problem="still alive: $survivors"
	fi
	: >p/plain/state/go
	: >p/boxed/state/go
	wait $vx 2>/dev/null
	rc=$?
	case " $* " in
	*' vx '*) ;;
	*)
		[ $rc = 0 ] || problem="$problem; the run that survived ended with $rc: $(cat "$W/out")"
		[ "$(cat p/*/state/ran | wc -l)" -ge 3 ] || problem="$problem; the lost task was not run again"
		;;
	esac
	wait_for none_called "sleep $tag" || problem="$problem; daemons alive after the end: $(called "sleep $tag" | paste -sd' ')"
	for p in $(called "sleep $tag"); do kill -KILL "$p"; done
}

for who in vx forkserver worker 'vx forkserver' 'vx worker' 'forkserver worker'; do
	bad=
	for ((i = 1; i <= trials; i++)); do
		# shellcheck disable=SC2086 # names are words
		trial $who
		[ -z "$problem" ] || bad="$bad
trial $i: $problem"
	done
	if [ -z "$bad" ]; then pass "SIGKILL of $who: $trials of $trials"; else fail "SIGKILL of $who" "$bad"; fi
done

# a task that kills its own worker is lost twice: then it fails, and the run ends
workspace "$W/killer"
project a <<<"$(task 'echo a >>'"$W"'/ran; kill -KILL $PPID; sleep 600')"
project b <<<"$(task "until [ \$(grep -c a $W/ran) = 2 ]; do sleep 0.02; done; echo b >>$W/ran")"
vx run build --all --concurrency 2
is 'lost twice: exit 1' "$rc" 1
is 'run again once, others go on' "$(ran)" 'a a b'
like 'said' "$out$err" 'lost'

done_testing
