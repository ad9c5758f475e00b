#!/usr/bin/env bash
# vx lock, --frozen, vx init.
. "$(dirname "$0")/../lib.sh"
. "$SRC/tests/vx.sh"

new_repo "$W/ws"
put package.json '{ "name": "root", "workspaces": ["p/*"] }'
put p/a/package.json '{ "name": "a", "scripts": { "build": "echo a", "prebuild": "x", "dev": "serve", "prepare": "y" }, "dependencies": { "b": "*" } }'
put p/b/package.json '{ "name": "b", "scripts": { "build": "echo b" } }'
run "$VX" init
is 'vx init' "$rc" 0
like 'vx init says what it wrote' "$out" 'wrote p/a/vx.json'
run "$VX" run build --all --dry=json
is 'what it wrote is planned' "$(python3 -c 'import json,sys; print([(t["id"], t.get("command"), t["deps"]) for t in json.loads(sys.argv[1])["tasks"]])' "$out")" \
	"[('a#build', 'echo a', ['b#build']), ('b#build', 'echo b', [])]"
like 'servers are persistent, hooks are left out' "$(tr -d ' \n' <p/a/vx.json)" '^\{"tasks":\{"build":.*"dev":\{"exec":\{"script":"dev","persistent":\{\}\}\}\}\}$'
echo '{}' >p/b/vx.json
run "$VX" init
is 'nothing that exists is replaced' "$rc $(cat p/b/vx.json)" '0 {}'
like 'and that is said' "$out" 'left alone'
run "$VX" init --bogus
is 'an unknown option' "$rc" 1
like 'is named' "$err" '^vx init: .*--bogus'

rm p/b/vx.json
cat >p/b/vx.json <<'E'
{ "tags": ["t"], "tasks": { "build": { "description": "d", "dependsOn": ["gen"], "exec": { "command": "echo b", "timeout": 5000, "retries": 1,
  "env": { "passThrough": ["A"], "define": { "B": "c" }, "secret": ["S"] }, "resources": { "cpus": 2, "memory": "1G", "exclusive": true },
  "sandbox": { "allow": { "read": ["."], "write": ["dist/"], "network": ["a.example.com"], "unixSockets": true, "localBinding": [80], "pty": true }, "deny": { "network": ["*:22"] }, "ignore": { "read": ["x"] } } },
  "cache": { "inputs": { "files": ["src/**"], "workspaceFiles": ["x"], "env": ["E"], "runtime": ["true"], "tasks": ["gen"] }, "outputs": { "files": ["dist/**"] } } },
  "gen": { "exec": { "command": "echo g", "persistent": { "readyWhen": "r" } } } } }
E
run "$VX" run build --all --frozen --dry=json
is '--frozen without a lock' "$rc" 1
like 'says how to write one' "$err" 'vx-lock.json.*vx lock'
run "$VX" lock
is 'vx lock' "$rc" 0
ok 'vx lock --check' "$VX" lock --check
"$VX" run build --all --dry=full >"$W/plain.json" 2>&1
"$VX" run build --all --dry=full --frozen >"$W/frozen.json" 2>&1
ok 'the frozen plan is the plan, keys included' cmp "$W/plain.json" "$W/frozen.json"
like 'which is a plan' "$(cat "$W/frozen.json")" '"id":"b#build"'
cp vx-lock.json "$W/first"
"$VX" lock >/dev/null
ok 'the same workspace gives the same bytes' cmp vx-lock.json "$W/first"
sed -i 's/echo b/echo c/' p/b/vx.json
run "$VX" lock --check
is 'a stale lock' "$rc" 1
like 'is told' "$err" '^vx lock: vx-lock.json is not what.*line [0-9]+'
run "$VX" run build --all --frozen --dry=json
like '--frozen reads no configuration' "$out" '"command":"echo b"'
echo '{broken' >p/b/vx.json
run "$VX" run build --all --frozen --dry=json
is 'nor minds a broken one' "$rc" 0
echo '{"lockVersion": 99}' >vx-lock.json
run "$VX" run build --all --frozen
like 'a lock of another version' "$err" 'no lock of this version of vx'
echo '{"lockVersion": 2, "manager": {"name": "npm"}, "settings": {}, "projects": [{"name": "a", "dir": "../up"}]}' >vx-lock.json
run "$VX" run build --all --frozen
is 'a lock that leads out of the workspace' "$rc" 1

new_repo "$W/bytes"
put package.json '{ "name": "root", "workspaces": ["p/*"] }'
put p/a/package.json '{ "name": "a" }'
printf '{"tasks":{"build":{"exec":{"command":"echo \xe9"}}}}' >p/a/vx.json
run "$VX" lock
is 'a command that is not UTF-8 is not locked' "$rc" 1
like 'and shown' "$err" '^vx lock: bytes that are not UTF-8 cannot stand in vx-lock\.json: "command": "echo '
put p/a/vx.json '{"tasks":{"build":{"exec":{"command":"true"}}}}'
mv p/a "p/$(printf 'a\xff')"
run "$VX" lock
is 'nor is such a directory' "$rc" 1
is 'nothing was written' "$(ls)" $'p\npackage.json'

new_repo "$W/turbo"
put package.json '{ "name": "root", "workspaces": ["p/*"] }'
put p/a/package.json '{ "name": "a", "scripts": { "build": "echo a" }, "dependencies": { "b": "*" } }'
put p/b/package.json '{ "name": "b", "scripts": { "build": "echo b", "lint": "l" } }'
put turbo.json '{ "globalEnv": ["G"], "globalDependencies": ["tsconfig.json"],
 "tasks": { "build": { "dependsOn": ["^build", "gen"], "outputs": ["dist/**"], "env": ["E_*", "F"] }, "gen": {}, "lint": { "dependsOn": ["^topo"], "cache": false }, "topo": { "dependsOn": ["^topo"] } } }'
"$VX" lock >/dev/null
"$VX" run build --all --dry=full >"$W/plain.json" 2>&1
"$VX" run build --all --dry=full --frozen >"$W/frozen.json" 2>&1
ok 'turbo.json: the frozen plan is the plan' cmp "$W/plain.json" "$W/frozen.json"
run "$VX" init --from-turbo
is 'vx init --from-turbo' "$rc" 0
like 'says what it cannot' "$out" 'note: a#build: the pattern "E_\*"'
run "$VX" run build lint --all --dry=json
is 'the same tasks with the same edges' "$(python3 -c 'import json,sys; print([(t["id"], t.get("command"), t["deps"], t["env"]) for t in json.loads(sys.argv[1])["tasks"] if "command" in t])' "$out")" \
	"[('a#build', 'echo a', ['b#build'], ['F', 'G']), ('b#build', 'echo b', [], ['F', 'G']), ('b#lint', 'l', [], [])]"
run "$VX" init --from-turbo
is 'there is no second time' "$rc" 1
# what cannot be written whole is not left half
new_repo "$W/half"
put package.json '{ "name": "root", "scripts": { "build": "true" } }'
run bash -c "set -o pipefail; (trap '' XFSZ; ulimit -f 0; exec '$VX' init) 2>&1 | cat" # what it says is for a pipe: a file has no room either
is 'vx init with no room: refused' "$rc" 1
like 'and said' "$out" '^vx init: cannot write vx\.json: .* \(.*run vx init again'
is 'nothing is left behind' "$(ls)" package.json
run "$VX" init
is 'so the next one writes it' "$rc $out" "0 wrote vx.json
add \"cache\" to the tasks whose result depends only on files: see docs/config.md"
run "$VX" init
is 'and the one after that leaves it alone' "$rc $out" '0 1 configuration is already there, and left alone
nothing to write'

# options are read alike by every verb
for verb in lock init info 'cache stats'; do
	run "$VX" $verb -C
	is "vx $verb -C: no value" "$rc $err" "1 vx ${verb% *}: -C has no value (vx help ${verb% *} says which)"
	run "$VX" $verb -C /does/not/exist
	is "vx $verb -C: no such directory" "$rc $err" "1 vx ${verb% *}: -C /does/not/exist: No such file or directory (name a directory inside the workspace)"
	run "$VX" $verb --cache-dir
	is "vx $verb --cache-dir: no value" "$rc $err" "1 vx ${verb% *}: --cache-dir has no value (vx help ${verb% *} says which)"
done
done_testing
