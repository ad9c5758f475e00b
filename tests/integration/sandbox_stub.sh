#!/usr/bin/env bash
# A bwrap that does not do what it is told: the task is refused, and vx-init, which ends "everything", ends nothing outside. Each run is in a pid namespace of
# its own, so that a vx-init that gets this wrong meets nobody but this test.
. "$(dirname "$0")/../lib.sh"
. "$SRC/tests/vx.sh"
can_sandbox || skip_all 'no user namespaces here'
root=
[ "$(id -u)" = 0 ] || root=-r
unshare $root -pf --kill-child --mount-proc true 2>/dev/null || skip_all 'no pid namespaces here'
real=$(command -v bwrap)

workspace
project a <<<"$(task "echo ran >>$W/ran; echo here" '"sandbox": true')"
mkdir "$W/stub"
# stub LINE: what bwrap does with its arguments, "--args 6 /proc/self/fd/5"
stub() {
	put "$W/stub/bwrap" '#!/bin/bash
[ "$1" != --version ] || { echo "bubblewrap 0.8.0"; exit; }
'"$1"
	chmod +x "$W/stub/bwrap"
}
# refused NAME BACKEND PATTERN
refused() {
	out=$(VX_SANDBOX_BACKEND=$2 PATH=$W/stub:$PATH timeout "$VXT_HANG_S" unshare $root -pf --kill-child --mount-proc setsid sh -c '
		sleep 60 & "$0" run build --all; echo "exit $?"; kill -0 $! && echo "bystander lives"; kill -KILL $!' "$VX" 2>&1)
	like "$1, $2: refused" "$out" "$3"
	like "$1, $2: the run fails" "$out" 'exit 1'
	like "$1, $2: nobody else is ended" "$out" 'bystander lives'
	is "$1, $2: the command has not run" "$(ran)" ''
}
for backend in own plain; do
	stub 'exec "$3"'
	refused 'one that only executes' $backend 'bwrap has not set the command apart \(pid\): it is no bubblewrap that works'
	stub 'exec unshare -pf --kill-child "$3"'
	refused 'one that makes a pid namespace' $backend 'bwrap has not filtered the command.s system calls'
	stub "exec $real \"\$1\" \"\$2\" --share-net \"\$3\""
	refused 'one that leaves the network' $backend 'bwrap has not set the command apart \(net\)'
done

# What packages and the workspace bring is no bubblewrap: a relative entry of PATH, node_modules/.bin wherever it is, anything in the workspace.
mkdir -p node_modules/.bin tools "$W/npx/node_modules/.bin"
stub "echo stub >>$W/ran; exec \"\$3\""
for dir in node_modules/.bin "$W/ws/node_modules/.bin" "$W/npx/node_modules/.bin/" "$W/ws/tools" tools ''; do
	[ -z "$dir" ] || cp "$W/stub/bwrap" "$dir/"
	[ -n "$dir" ] || cp "$W/stub/bwrap" .
	out=$(PATH=$dir:$PATH timeout "$VXT_HANG_S" unshare $root -pf --kill-child --mount-proc setsid "$VX" info 2>&1)
	like "bwrap of PATH entry '$dir': vx info names another" "$out" "bwrap +bubblewrap .*\\($real\\)"
	PATH=$dir:$PATH timeout "$VXT_HANG_S" unshare $root -pf --kill-child --mount-proc setsid "$VX" run build --all >/dev/null 2>&1
	unlike "bwrap of PATH entry '$dir': it is not run" "$(ran)" stub
done
ln -s "$W/ws/tools/bwrap" "$W/stub/bwrap2" && mv "$W/stub/bwrap2" "$W/stub/bwrap"
PATH=$W/stub:$PATH timeout "$VXT_HANG_S" unshare $root -pf --kill-child --mount-proc setsid "$VX" run build --all >/dev/null 2>&1
unlike 'a link into the workspace: it is not run' "$(ran)" stub
done_testing
