#!/usr/bin/env bash
# A sandbox that cannot be had: one line with the reason and what to do, wherever it is asked for.
. "$(dirname "$0")/../lib.sh"
. "$SRC/tests/vx.sh"

workspace
project a <<<"$(task "echo ran >>$W/ran" '"sandbox": true')"
git add -A
mkdir "$W/bin"
for c in sh git env bash cat; do ln -s "$(command -v $c)" "$W/bin/$c"; done
# said NAME REASON FIX: of the run and of vx info, with $@ before it
said() {
	is "$1: the run fails" "$rc" 1
	is "$1: reason and fix stand in one line" "$(grep -Ec "sandbox not available: .*$2.*\(.*$3.*\)" <<<"$err")" 1
	is "$1: nothing has run" "$(ran)" ''
}
run env PATH="$W/bin" "$VX" run build --all
said 'no bubblewrap' 'bubblewrap .*not on the PATH' 'apt install bubblewrap'
run env PATH="$W/bin" "$VX" info
like 'no bubblewrap: vx info says both' "$out" 'not available: bubblewrap.*apt install bubblewrap'
unlike 'and the words once' "$out" 'not available: sandbox not available'

mkdir "$W/old"
printf '#!/bin/sh\necho bubblewrap 0.4.1\n' >"$W/old/bwrap"
chmod +x "$W/old/bwrap"
run env PATH="$W/old:$W/bin" "$VX" run build --all
if unshare -Ur true 2>/dev/null; then
	said 'one that is too old' 'bubblewrap 0.4 is too old' 'bubblewrap 0.5 or newer'
	mkdir "$W/other"
	printf '#!/bin/sh\necho hello\n' >"$W/other/bwrap"
	chmod +x "$W/other/bwrap"
	run env PATH="$W/other:$W/bin" "$VX" run build --all
	said 'another program of that name' 'bwrap on the PATH is not bubblewrap' 'apt install bubblewrap'
else
	skip 'an old one' 'no user namespaces'
fi

# vx-init is not where it belongs
mkdir -p "$W/alone/bin"
cp "$VX" "$W/alone/bin/vx"
if can_sandbox; then
	run env -u VX_INIT "$W/alone/bin/vx" run build --all
	said 'no vx-init' 'vx-init is missing' 'make install'
else
	skip 'no vx-init' 'no bwrap'
fi
done_testing
