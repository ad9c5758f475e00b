#!/usr/bin/env bash
# vx killed with SIGKILL at any moment of a run that restores and saves: the next run ends right, with the right outputs, and nothing half done is left.
. "$(dirname "$0")/../lib.sh"
. "$SRC/tests/vx.sh"
trials=${VX_TRIALS:-10}
mkdir "$W/bin" # programs of this test's own: others run vx at the same time, and "none of vx is left" is asked here
cp "$VX" "$VX_INIT" "$W/bin"
VX=$W/bin/vx

workspace
for p in a b c d; do
	project $p <<<"$(cached "mkdir -p dist/sub; for i in 1 2 3 4 5 6 7 8; do seq \$((i * 400)) >dist/sub/\$i; done; cp src/x dist/; ln -s x dist/link")"
	put p/$p/src/x 0
done
git add -A
outputs() { for p in a b c d; do echo $p; tree p/$p/dist | timeless; done; }
contents() { (cd p && find . -path '*/dist/*' -type f -exec sha256sum {} + -o -path '*/dist/*' -type l -printf '%p -> %l\n' | sort); }

vx run build --all --concurrency 2
is 'a first run' "$rc" 0
outputs >"$W/before"

# restores
bad=
for ((i = 0; i < trials; i++)); do
	rm -rf p/*/dist
	put p/b/dist/stray stray
	"$VX" run build --all >/dev/null 2>&1 &
	pid=$!
	sleep "0.0$(printf %02d $((i * 6)))"
	kill -KILL $pid 2>/dev/null
	wait $pid 2>/dev/null
	vx run build --all
	[ "$rc" = 0 ] || bad="$bad
trial $i: exit $rc: $err"
	[ "$(outputs)" = "$(cat "$W/before")" ] || bad="$bad
trial $i: $(diff <(outputs) "$W/before" | head -5)"
done
if [ -z "$bad" ]; then pass 'killed while it restored'; else fail 'killed while it restored' "$bad"; fi

# saves
bad=
for ((i = 1; i <= trials; i++)); do
	for p in a b c d; do put p/$p/src/x $i; done
	"$VX" run build --all --concurrency 2 >/dev/null 2>&1 &
	pid=$!
	sleep "0.$(printf %03d $((i * 26)))"
	kill -KILL $pid 2>/dev/null
	wait $pid 2>/dev/null
	vx run build --all
	[ "$rc" = 0 ] || bad="$bad
trial $i: exit $rc: $err"
	contents >"$W/now"
	[ "$(cat p/*/dist/x | paste -sd' ')" = "$i $i $i $i" ] || bad="$bad
trial $i: wrong outputs: $(cat p/*/dist/x | paste -sd' ')"
	rm -rf p/*/dist
	vx run build --all
	[ "$rc" = 0 ] && grep -q '4 restored' <<<"$out" || bad="$bad
trial $i: not restored: $out $err"
	[ "$(contents)" = "$(cat "$W/now")" ] || bad="$bad
trial $i: restored otherwise: $(diff <(contents) "$W/now" | head -5)"
done
if [ -z "$bad" ]; then pass 'killed while it saved'; else fail 'killed while it saved' "$bad"; fi
is 'nothing half done is left' "$(find .vx/stage .vx/journal .vx/cache/v1/tmp -type f 2>/dev/null)" ''
ok 'no process is left' wait_for none_called "$VX -forkserver"

# What runs while keys are made, when vx is killed, alone or with one of the two keepers: nothing of it is left, in whatever session.
tag=88.$$
cat >"$W/nest" <<EOF
#!/bin/sh
setsid sh -c 'trap "" TERM HUP; (setsid sleep $tag &) ; sleep $tag' </dev/null >/dev/null 2>&1 &
exec sleep $tag
EOF
chmod +x "$W/nest"
up() { [ "$(called "sleep $tag" | wc -l)" -ge 4 ]; }
# vx_with WHAT: kills while WHAT runs
vx_with() {
	local who pid outer inner
	for who in vx vx+outer vx+inner; do
		"$VX" run build --all >/dev/null 2>&1 &
		pid=$!
		ok "$1 runs ($who)" wait_for up
		outer=$(ps -o pid= --ppid $pid | tr -d ' ' | while read -r c; do grep -qz -- '-keeper' "/proc/$c/cmdline" && echo "$c"; done)
		inner=$(ps -o pid= --ppid "${outer:-0}" | tr -d ' ')
		case $who in
		vx) kill -KILL $pid ;;
		vx+outer) kill -KILL $pid $outer ;;
		vx+inner) kill -KILL $inner $pid ;;
		esac
		wait $pid 2>/dev/null
		ok "$1, $who killed: nothing is left" wait_for none_called "sleep $tag"
		ok "$1, $who killed: no keeper either" gone $outer $inner
		for p in $(called "sleep $tag"); do kill -KILL "$p"; done
	done
}

# All of vx at once: nobody is left to sweep, but the command itself goes.
workspace "$W/all"
project a <<<"$(task "exec sleep $tag")"
"$VX" run build --all >/dev/null 2>&1 &
pid=$!
one() { [ -n "$(called "sleep $tag")" ]; }
ok 'a command runs' wait_for one
all="$(worker $pid) $(forkserver $pid) $pid"
kill -STOP $all
kill -KILL $all
wait $pid 2>/dev/null
ok 'all of vx is killed at once: so is the command' wait_for none_called "sleep $tag"
for p in $(called "sleep $tag"); do kill -KILL "$p"; done

# All that bears its name at once, as `pkill -KILL vx` does it, or `pkill -KILL -f vx`: nothing is left, in whatever session.
# named PID FILE: those of vx and below it of whom /proc/PID/FILE has the name
named() {
	local p
	for p in $1 $(below $1); do ! grep -qz 'vx' "/proc/$p/$2" 2>/dev/null || echo $p; done
}
# vx_by_name WHAT FILE...: kills while WHAT runs in the current directory
vx_by_name() {
	local what=$1 by pid victims all
	shift
	for by; do
		(exec -a vx "$VX" run build --all >/dev/null 2>&1) &
		pid=$!
		ok "$what runs" wait_for up
		victims=$(named $pid $by)
		all="$pid $(below $pid)"
		like "$what: vx itself has the name in $by" " $(paste -sd' ' <<<"$victims") " " $pid "
		kill -STOP $victims
		kill -KILL $victims
		wait $pid 2>/dev/null
		ok "$what, all with the name in $by killed: nothing is left" wait_for none_called "sleep $tag"
		ok "$what, all with the name in $by killed: none of vx either" gone $all
		for p in $(called "sleep $tag"); do kill -KILL "$p"; done
	done
}
workspace "$W/named"
project a <<<"$(task "exec ../../../nest")"
vx_by_name 'a task' comm cmdline

workspace "$W/probe"
project a <<<'{ "tasks": { "build": { "exec": { "command": ":" }, "cache": { "inputs": { "files": ["src/**"], "runtime": ["exec '"$W/nest"'"] }, "outputs": { "files": [] } } } } }'
put p/a/src/x x
vx_with 'a probe'
vx_by_name 'a probe' comm

# ... and when it ends by itself
project a <<<'{ "tasks": { "build": { "exec": { "command": ":" }, "cache": { "inputs": { "files": ["src/**"], "runtime": ["setsid sleep '$tag' >/dev/null 2>&1 & echo x"] }, "outputs": { "files": [] } } } } }'
vx run build --all
is 'a probe that leaves a daemon' "$rc" 0
ok 'it is ended with the probe' none_called "sleep $tag"

if command -v node >/dev/null; then
	workspace "$W/config"
	put p/a/package.json '{ "name": "a" }'
	put p/a/vx.config.mjs "import { execFileSync } from 'node:child_process'; execFileSync('$W/nest', { stdio: 'ignore' }); export default { tasks: {} };"
	vx_with 'a configuration'
	vx_by_name 'a configuration' comm
fi
done_testing
