# The test runner itself, and the script that installs what is missing: whatever is broken in a test file is a failure.
. "$(dirname "$0")/../lib.sh"
cd "$W" || exit 1

file() { # NAME, script on stdin: a test file
	{ echo '#!/bin/bash'; cat; } >"$1"
	chmod +x "$1"
}
# sum NAME WANTED-LAST-LINE WANTED-STATUS FILE...
sum() {
	local name=$1 last=$2 status=$3
	shift 3
	run "$SRC/tests/run.py" "$@"
	is "$name: the last line" "$(tail -n 1 <<<"$out")" "$last"
	is "$name: the status" "$rc" "$status"
}

file good.sh <<'E2'
echo 'ok 1 - a'; echo 'ok 2 - b # SKIP no such thing'; echo 1..2
E2
sum 'all well' '1 passed, 0 failed, 1 skipped' 0 good.sh
unlike 'a passing file prints one line' "$out" 'ok 1 - a'
like 'but why it skips' "$out" 'skipped: no such thing$'

file bad.sh <<'E2'
echo 'ok 1'; echo 'noise before'; echo 'not ok 2 - b'; echo 1..2; exit 1
E2
sum 'a failure' '2 passed, 1 failed, 1 skipped' 1 good.sh bad.sh
like 'a failing file is printed' "$out" 'noise before'

file cmocka.sh <<'E2'
echo 1..2; echo 'ok 1 - a'; echo '# skipped: not here'; echo 'not ok 2 # SKIP b'; echo '# ok - group'
E2
sum 'skipped as cmocka says it' '1 passed, 0 failed, 1 skipped' 0 cmocka.sh
like 'and why' "$out" 'skipped: not here$'
file no_skip.sh <<'E2'
echo 1..1; echo 'not ok 1 - b # SKIP'
E2
sum 'a failure is no skip' '0 passed, 1 failed, 0 skipped' 1 no_skip.sh

file env.sh <<'E2'
echo 1..1; [ -z "${GIT_DIR+x}" ] || printf 'not '; echo 'ok 1'
E2
GIT_DIR=/nonexistent sum 'run by a hook of git' '1 passed, 0 failed, 0 skipped' 0 env.sh

file silent.sh <<'E2'
exit 0
E2
sum 'no TAP' '0 passed, 1 failed, 0 skipped' 1 silent.sh
like 'no TAP: said' "$out" 'prints no TAP'

file unplanned.sh <<'E2'
echo ok 1
E2
sum 'no plan' '1 passed, 1 failed, 0 skipped' 1 unplanned.sh

file fewer.sh <<'E2'
echo 1..3; echo ok 1; echo ok 2
E2
sum 'fewer than planned' '2 passed, 1 failed, 0 skipped' 1 fewer.sh
like 'fewer than planned: said' "$out" 'planned 3 tests but ran 2'

file status.sh <<'E2'
echo ok 1; echo 1..1; exit 3
E2
sum 'a bad status' '1 passed, 1 failed, 0 skipped' 1 status.sh

file killed.sh <<'E2'
echo ok 1; echo 1..1; kill -SEGV $$
E2
sum 'killed by a signal' '1 passed, 1 failed, 0 skipped' 1 killed.sh
like 'killed by a signal: said' "$out" 'SIGSEGV'

file slow.sh <<'E2'
echo 1..1; sleep 100
E2
VX_TEST_TIMEOUT=0.3 sum 'too slow' '0 passed, 1 failed, 0 skipped' 1 slow.sh

file leaves.sh <<'E2'
echo ok 1; echo 1..1; sleep 100 &
E2
VX_TEST_READ_S=0.3 VX_TEST_LEFT_S=0.3 sum 'leaves a process behind' '1 passed, 1 failed, 0 skipped' 1 leaves.sh

# Sessions of their own, outputs closed, generation after generation: nothing gets away.
chain='G="(setsid sh -c \"\$G\" $0 &); :"; export G; setsid sh -c "$G" $0'
file daemon.sh <<E2
echo ok 1; echo 1..1
(setsid sleep 71.$$ >/dev/null 2>&1 &)
setsid sh -c '$chain' 71.$$ >/dev/null 2>&1
E2
left() { pgrep -fc "71\.$$"'$'; }
none_left() { [ "$(left)" = 0 ]; }
VX_TEST_LEFT_S=0.3 sum 'leaves daemons behind' '1 passed, 1 failed, 0 skipped' 1 daemon.sh
like 'leaves daemons behind: said' "$out" "left behind: .*sleep 71.$$"
is 'leaves daemons behind: they are ended' "$(left)" 0
file slow_daemon.sh <<E2
echo 1..1
setsid sh -c '$chain' 71.$$ &
: >'$W/started'
setsid sleep 71.$$
E2
for limit in 1 4 16 64; do # it has to start its daemons within the limit that it then breaks
	rm -f started
	VX_TEST_TIMEOUT=$limit run "$SRC/tests/run.py" slow_daemon.sh
	[ ! -e started ] || break
done
is 'too slow, with daemons' "$rc $(tail -n 1 <<<"$out")" '1 0 passed, 1 failed, 0 skipped'
ok 'too slow, with daemons: they were started' test -e started
is 'too slow, with daemons: they are ended' "$(left)" 0
"$SRC/tests/run.py" slow_daemon.sh >/dev/null 2>&1 &
runner=$!
any_left() { ! none_left; }
ok 'a file runs' wait_for any_left
kill -KILL $runner
wait $runner 2>/dev/null
ok 'the runner itself is killed: nothing is left' wait_for none_left
# A child that ends while the runner looks through its list of children: what it leaves is on no list then, and is alive all the same.
is 'a child that ends unseen leaves what it started' "$(python3 - "$SRC/tests" "$W" 71.$$ <<'P2'
import os, subprocess, sys, time
sys.path.insert(0, sys.argv[1])
sys.dont_write_bytecode = True
import run

run.become_subreaper()
gate = os.path.join(sys.argv[2], "gate")
os.mkfifo(gate)
parent = subprocess.Popen(["sh", "-c", f"setsid sleep {sys.argv[3]} & read _ <{gate}"], stdout=subprocess.DEVNULL)
while not run.children(parent.pid):
    time.sleep(0.01)
real, looks = run.children, []


def children(pid):
    found = real(pid)
    if not looks:  # it ends between the look at the list and the look at it
        with open(gate, "w") as f:
            f.write("\n")
        while run.describe(parent.pid).split()[1:]:  # a zombie has no command line
            time.sleep(0.01)
    looks.append(pid)
    return found


run.children = children
print(len(run.reap(0)))
run.end_all()
print(len(run.reap(0)))
P2
)" $'1\n0'
file short.sh <<'E2'
echo ok 1; echo 1..1; (setsid sleep 0.3 >/dev/null 2>&1 &)
E2
sum 'what ends by itself at once is no matter' '1 passed, 0 failed, 0 skipped' 0 short.sh

file all_skipped.sh <<'E2'
echo '1..0 # SKIP not here'
E2
sum 'a whole file skipped' '0 passed, 0 failed, 1 skipped' 0 all_skipped.sh
like 'with its reason' "$out" 'skipped: not here$'
sum 'an absent file' '0 passed, 1 failed, 0 skipped' 1 "$W/absent"

file lib.sh <<E2
. '$SRC/tests/lib.sh'
is 'equal' a a
is 'different' a b
exit 0
E2
sum 'a script that forgets done_testing' '1 passed, 1 failed, 0 skipped' 1 lib.sh

# Beside busy processes.
run "$SRC/tests/load.sh" 3 sh -c 'ps -o args= --ppid $PPID | grep -c "[b]usy"; exit 7'
is 'a load: its processes, and the status of the command' "$out $rc" '3 7'
"$SRC/tests/load.sh" 2 sh -c 'echo $$ >loaded; exec sleep 72.'$$ &
load=$!
wait_for test -s loaded
busy=$(pgrep -P $load | grep -vx "$(cat loaded)")
kill -KILL $load
wait $load 2>/dev/null
kill "$(cat loaded)"
# shellcheck disable=SC2086 # pids are words
ok 'they end with the script, even when that is killed' gone $busy
for arg in '' x '2'; do
	# shellcheck disable=SC2086 # none, or a word
	run "$SRC/tests/load.sh" $arg
	is "a load of '$arg' and no command is refused" "$rc $(wc -l <<<"$err")" '2 1'
done

# Dependencies, on a machine without any: a PATH with the shell's own tools alone, and somebody who is not root.
mkdir bin
for tool in sh env tr sort cat printf; do ln -s "$(command -v $tool)" bin/; done
printf '#!/bin/sh\necho 1000\n' >bin/id
chmod +x bin/id
run env PATH="$W/bin" "$SRC/.ci/deps"
is 'without apt-get: the status' "$rc" 1
like 'without apt-get: says what is missing and why' "$out" 'liburing-dev +io_uring'
like 'without apt-get: says so' "$err" 'there is no apt-get'
printf '#!/bin/sh\necho "apt-get $*" >>%s\n' "$W/apt.log" >bin/apt-get
printf '#!/bin/sh\n[ "$2" != libmsgpack-c-dev ]\n' >bin/apt-cache
chmod +x bin/apt-get bin/apt-cache
run env PATH="$W/bin" "$SRC/.ci/deps"
is 'neither root nor sudo: the status' "$rc" 1
like 'neither root nor sudo: the one line to run' "$err" 'apt-get update && apt-get install -y --no-install-recommends gcc .*libmsgpack-dev '
nok 'neither root nor sudo: nothing was installed' test -e apt.log
printf '#!/bin/sh\necho 0\n' >bin/id
run env PATH="$W/bin" "$SRC/.ci/deps"
is 'an installation that installs nothing is a failure' "$rc" 1
like 'as root: update first' "$(sed -n 1p apt.log)" '^apt-get -q update$'
like 'as root: only what is missing, without recommendations' "$(sed -n 2p apt.log)" '^apt-get -q install -y --no-install-recommends .*liblmdb-dev'
unlike 'nothing is asked for twice or unknown' "$(sed -n 2p apt.log)" 'libmsgpack-c-dev|\|'
done_testing
