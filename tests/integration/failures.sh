#!/usr/bin/env bash
# What a run does when tasks fail: skips, exit codes, --continue, retries, time limits.
. "$(dirname "$0")/../lib.sh"
. "$SRC/tests/vx.sh"

# a <- b <- c, and d alone; a fails
chain() {
	workspace
	project a <<<"$(task "echo a >>$W/ran; echo out of a; exit 3")"
	project b a <<<"{ \"tasks\": { \"build\": { \"dependsOn\": [\"^build\"], \"exec\": { \"command\": \"echo b >>$W/ran\" } } } }"
	project c b <<<"{ \"tasks\": { \"build\": { \"dependsOn\": [\"^build\"], \"exec\": { \"command\": \"echo c >>$W/ran\" } } } }"
	project d <<<"$(task "sleep 0.3; echo d >>$W/ran")"
	git add -A
}

chain
vx run build --all
is 'a failure: exit 1' "$rc" 1
is 'only dependents are skipped' "$(ran)" 'a d'
like 'the failed task is named with its status' "$out" 'a#build'
like 'its exit is said' "$out$err" 'exit 3'
like 'its output is shown' "$out" 'out of a'
like 'c names the failure at the root of its block' "$(grep 'c#build' <<<"$out")" 'skipped.*a#build'

vx run build --all --continue=never --concurrency 1
is '--continue=never: exit 1' "$rc" 1
is '--continue=never: nothing more is dispatched' "$(ran)" a

vx run build --all --continue=always
is '--continue=always: exit 1' "$rc" 1
is '--continue=always: dependents run' "$(ran)" 'a b c d'
vx run build --all --continue
is 'bare --continue is always' "$(ran)" 'a b c d'
vx run build --all --continue=deps-ok
is '--continue=deps-ok is the default' "$(ran)" 'a d'
vx run build --all --continue=maybe
one_line 'a wrong policy' 'maybe'
is 'nothing was started' "$(ran)" ''

# in flight when another fails
workspace "$W/flight"
project a <<<"$(task "echo \$\$ >$W/a.pid; until [ -e $W/b ]; do sleep 0.02; done; exit 1")"
project b <<<"$(task ": >$W/b; until [ -s $W/a.pid ]; do sleep 0.02; done; while kill -0 \$(cat $W/a.pid) 2>/dev/null; do sleep 0.02; done; sleep 0.1; echo b >>$W/ran")"
project c b <<<"{ \"tasks\": { \"build\": { \"dependsOn\": [\"^build\"], \"exec\": { \"command\": \"echo c >>$W/ran\" } } } }"
vx run build --all --continue=never --concurrency 2
is 'never: what is in flight finishes, its dependents do not start' "$rc $(ran)" '1 b'

# a task after a failed upstream is never saved
workspace "$W/after"
project a <<<"$(task '[ ! -e fail ]')"
project b a <<<"$(cached "mkdir -p dist; cp src/x dist/; echo b >>$W/ran" '' '"dependsOn": ["^build"]')"
put p/b/src/x x
put p/a/fail
git add -A
vx run build --all --continue=always
is 'b runs after a failed upstream' "$rc $(ran)" '1 b'
vx run build --all --continue=always
is 'and was not saved' "$rc $(ran)" '1 b'

# what killed it
workspace "$W/signals"
project a <<<"$(task 'kill -KILL $$')"
project b <<<"$(task 'exit 137')"
project c <<<"$(task 'no-such-program-anywhere x')"
vx run build --all
is 'killed: exit 1' "$rc" 1
like 'a signal is named' "$(grep 'a#build' <<<"$out")" 'SIGKILL'
like 'and so is 128 + n' "$(grep 'b#build' <<<"$out")" '137.*SIGKILL'
like 'a missing program: 127 as sh says' "$out" 'c#build.*|exit 127'
like 'and its name' "$out" 'no-such-program-anywhere'

# retries
workspace "$W/retries"
project a <<<"$(task "echo a >>$W/ran; echo try; n=\$(cat n 2>/dev/null || echo 0); echo \$((n + 1)) >n; [ \$n -ge 2 ]" '"retries": 2')"
vx run build --all
is 'the third attempt succeeds' "$rc $(ran)" '0 a a a'
like 'it is flagged flaky' "$out$err" '[Ff]laky'
rm p/a/n
vx run build --all --retry 0
is 'config wins over --retry' "$rc $(ran)" '0 a a a'
project a <<<"$(cached "echo a >>$W/ran; ls dist >>$W/ran; mkdir -p dist; echo x >dist/left-\$(wc -l <$W/ran); exit 1")"
mkdir -p p/a/src
vx run build --all --retry 1
is '--retry: outputs are cleaned between attempts' "$rc $(ran)" '1 a a'

# time limits
workspace "$W/limits"
project a <<<"$(cached "echo a >>$W/ran; mkdir -p dist; trap 'echo trapped; exit 0' TERM; sleep 777.$$ & wait" '"timeout": 3000')"
mkdir -p p/a/src
vx run build --all
is 'a time limit: exit 1' "$rc" 1
like 'timed out is said' "$out" 'timed out'
like 'the trap ran' "$out" 'trapped'
ok 'nothing is left of its tree' wait_for none_called "sleep 777.$$"
is 'it ran' "$(ran)" a
vx run build --all
is 'a timed out task is never cached, even when it exits 0 in its trap' "$rc $(ran)" '1 a'
project a <<<"$(task "trap '' TERM; echo stubborn; sleep 778.$$; sleep 778.$$")"
VX_KILL_GRACE_MS=200 vx run build --all --timeout 3000
is '--timeout' "$rc" 1
like 'a command that ignores SIGTERM is killed after the grace' "$out" 'timed out'
ok 'nothing is left' wait_for none_called "sleep 778.$$"
project a <<<"$(task 'sleep 0.5' '"timeout": 600000')"
vx run build --all --timeout 100
is "exec.timeout wins over --timeout" "$rc" 0
project a <<<"$(task 'sleep 600')"
VX_TASK_TIMEOUT=200 vx run build --all
is 'VX_TASK_TIMEOUT' "$rc" 1
put vx.workspace.json '{ "timeout": 200 }'
vx run build --all
is 'timeout of the workspace' "$rc" 1

# leftovers
workspace "$W/leftovers"
project a <<<"$(task "setsid sleep 779.$$ & (setsid sh -c 'sleep 779.$$' >/dev/null 2>&1 &) ; nohup sleep 779.$$ >/dev/null 2>&1 & echo done")"
vx run build --all
is 'a task is over when its own process has exited' "$rc" 0
ok 'what it left is killed, setsid or not' none_called "sleep 779.$$"

done_testing
