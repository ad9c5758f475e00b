#!/usr/bin/env bash
# A task that is less confined than it asks for: said, once, in the summary too; and what comes of --sandbox=off is kept out of the cache, near and far.
. "$(dirname "$0")/../lib.sh"
. "$SRC/tests/vx.sh"
can_sandbox || skip_all 'no user namespaces here'

# of SUMMARY: "TASK: how" of each task that was less confined
of() {
	python3 - "$1" <<'P'
import json, sys
for t in json.load(open(sys.argv[1]))["tasks"]:
    if "lessConfined" in t.get("result", {}):
        print(t["id"] + ": " + ", ".join(t["result"]["lessConfined"]))
P
}

# --sandbox=off: a reads what its sandbox hides, and b builds on that
workspace "$W/off"
put p/a/undeclared secret
project a <<<"$(cached "mkdir -p dist; cat undeclared >dist/x 2>/dev/null || echo hidden >dist/x" '"sandbox": { "allow": { "read": ["src"], "write": ["dist/"] } }')"
put p/b/package.json '{ "name": "b", "dependencies": { "a": "workspace:*" } }'
put p/b/vx.json '{ "tasks": { "build": { "dependsOn": ["^build"], "exec": { "command": "mkdir -p dist; cat ../a/dist/x >dist/y" },
	"cache": { "inputs": { "files": ["src/**"] }, "outputs": { "files": ["dist/**"] } } } } }'
put p/c/package.json '{ "name": "c", "dependencies": { "b": "workspace:*" } }'
put p/c/vx.json '{ "tasks": { "build": { "dependsOn": ["^build"], "exec": { "command": "mkdir -p dist; cat ../b/dist/y >dist/z" },
	"cache": { "inputs": { "files": ["src/**"] }, "outputs": { "files": ["dist/**"] } } } } }'
put p/d/src/x x
project d <<<"$(cached 'mkdir -p dist; cat src/x >dist/d')"
for p in a b c; do put p/$p/src/x x; done
git add -A
vx run build --all --sandbox=off --summarize="$W/s"
is 'off: the run passes' "$rc $(cat p/c/dist/z)" '0 secret'
is 'off: said once' "$(grep -c 'sandbox=off: tasks that declare a sandbox run without one; neither they nor what runs after them is saved' <<<"$err")" 1
is 'off: in the summary' "$(of "$W/s")" 'a#build: no sandbox'
vx run build --all --summarize="$W/s"
is 'what was made of what a sandbox would hide is no hit' "$rc $(cat p/a/dist/x p/b/dist/y p/c/dist/z | paste -sd' ')" '0 hidden hidden hidden'
like 'what has nothing to do with it was saved' "$out" '3 miss, 1 up to date'
is 'nothing to say' "$err$(of "$W/s")" ''
vx run build --all --sandbox=off
like 'off: hits are hits' "$out" '4 up to date'
vx run build --all --force --sandbox=off
vx run build --all
is 'off: what was saved before comes back' "$rc $(cat p/a/dist/x p/b/dist/y p/c/dist/z | paste -sd' ')" '0 hidden hidden hidden'

# ... and a server that runs without its sandbox: what runs beside it
workspace "$W/server"
project a <<<'{ "tasks": {
	"serve": { "exec": { "command": "cat undeclared 2>/dev/null >state/x || echo hidden >state/x; echo up; sleep 60", "persistent": { "readyWhen": "up" },
		"sandbox": { "allow": { "read": ["src"], "write": ["state/"] } } } },
	"build": { "dependsOn": ["serve"], "exec": { "command": "mkdir -p dist; cat state/x >dist/x" },
		"cache": { "inputs": { "files": ["src/**"] }, "outputs": { "files": ["dist/**"] } } } } }'
put p/a/src/x x
put p/a/undeclared secret
mkdir p/a/state
printf '%s\n' dist/ state/ undeclared >.gitignore
git add -A
vx run build --all --sandbox=off
is 'a server without its sandbox' "$rc $(cat p/a/dist/x)" '0 secret'
vx run build --all
is 'what ran beside it is no hit' "$rc $(cat p/a/dist/x)" '0 hidden'

# The nested profile: parts of /proc covered, as in a container
root=
[ "$(id -u)" = 0 ] || root=-r
if unshare $root -m sh -c 'mount -t tmpfs t /proc/acpi' 2>/dev/null; then
	covered() { run timeout "$VXT_HANG_S" unshare $root -m sh -c 'mount -t tmpfs t /proc/acpi && exec "$@"' - "$VX" "$@"; }
	workspace "$W/nested"
	for p in a b c; do
		project $p <<<"$(task 'cat /proc/self/comm; test ! -w /proc/sys/kernel/hostname' '"sandbox": { "weakerWhenNested": true }')"
	done
	project d <<<"$(task true)"
	said='no /proc can be mounted here: sandboxed tasks see the one of the host, read-only'
	covered run build --all --concurrency=2 --summarize="$W/s"
	is 'nested: the run passes' "$rc" 0
	is 'nested: said once' "$(grep -c "$said" <<<"$err") $(wc -l <<<"$err")" '1 1'
	is 'nested: in the summary' "$(of "$W/s" | paste -sd' ')" 'a#build: host /proc b#build: host /proc c#build: host /proc'
	vx run build --all --summarize="$W/s"
	is 'not used, nor said, where a /proc can be had' "$rc $err$(of "$W/s")" '0 '
	project d <<<"$(task true '"sandbox": true')"
	covered run build --all
	is 'nested: not when one task does not accept it' "$rc" 1
	like 'nested: refused then' "$err" 'sandbox not available: no /proc can be mounted here .*"weakerWhenNested": true in every sandboxed task'
	unlike 'nested: and not used' "$err" "$said"
else
	skip 'the nested profile' 'nothing can be mounted on /proc here'
fi

# Only bubblewrap may make namespaces, as with its AppArmor profile
apart='mount -t tmpfs t /proc/sys/kernel && for f in uid gid; do echo 65534 >/proc/sys/kernel/overflow$f; done && echo 1 >/proc/sys/kernel/apparmor_restrict_unprivileged_userns &&
	echo 0 >/proc/sys/user/max_user_namespaces && exec "$@"'
if unshare -Urm sh -c "$apart" - true 2>/dev/null; then
	workspace "$W/plain"
	for p in a b; do project $p <<<"$(task 'test ! -e ../../package.json' '"sandbox": true')"; done
	run timeout "$VXT_HANG_S" unshare -Urm sh -c "$apart" - "$VX" run build --all --concurrency=2
	is 'bubblewrap alone: the run passes' "$rc" 0
	is 'bubblewrap alone: said once' "$(grep -c 'it makes every mount itself: slower' <<<"$err") $(wc -l <<<"$err")" '1 1'
	VX_SANDBOX_BACKEND=plain vx run build --all
	is 'bubblewrap alone, because it was asked for: nothing to say' "$rc $err" '0 '
else
	skip 'bubblewrap alone' 'no such namespace can be made here'
fi
done_testing
