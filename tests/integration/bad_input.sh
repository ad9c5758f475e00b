#!/usr/bin/env bash
# Every wrong input: one clear line, exit 1, and nothing is started. An unusable store: one line and exit 0.
. "$(dirname "$0")/../lib.sh"
. "$SRC/tests/vx.sh"

good() {
	workspace "$W/ws$((++n))"
	project a <<<"$(cached "echo a >>$W/ran; mkdir -p dist; echo x >dist/x")"
	put p/a/src/x x
	git add -A
}
n=0

good
vx run build --all
is 'the good one runs' "$rc $(ran)" '0 a'

good
put p/a/vx.json '{ "tasks": { "build": { "exec": { "command": "true" } }, } '
vx run build --all
one_line 'broken JSON' 'p/a/vx\.json.*1:[0-9]+|p/a/vx\.json.*line 1'
good
project a <<<"{ \"tasks\": { \"build\": { \"exec\": { \"command\": \"true\" }, \"cache\": { \"inputs\": { \"files\": [\"src/**\"] }, \"outputs\": { \"files\": [\"**/*.json\"] } } } } }"
vx run build --all
one_line 'outputs that take the manifest' 'package\.json'
ok 'which is still there' test -e p/a/package.json
good
VX_TASK_TIMEOUT=soon vx run build --all
one_line 'a limit in the environment that is no number' 'VX_TASK_TIMEOUT=soon'
VX_KILL_GRACE_MS=-1 vx run build --all
one_line 'a grace that is no number' 'VX_KILL_GRACE_MS=-1'
VX_IO=fast vx run build --all
one_line 'a word that VX_IO has not' 'VX_IO=fast is not understood .uring or blocking'
VX_SANDBOX_BACKEND=plane vx run build --all
one_line 'a word that VX_SANDBOX_BACKEND has not' 'VX_SANDBOX_BACKEND=plane is not understood .own or plain'
VX_FILES=disk vx run build --all
one_line 'a word that VX_FILES has not' 'VX_FILES=disk is not understood .git'
VX_FILES=disk vx run build --all --dry
one_line 'nor for the plan' 'VX_FILES=disk'
VX_STATS=$W/no/x vx run build --all
one_line 'counters that cannot be written' "VX_STATS: $W/no/x cannot be written"
is 'none of these ran anything' "$(ran)" ''
VX_IO= VX_FILES= VX_STATS= vx run build --all
is 'set to nothing they are not set' "$rc $(ran) $err" '0 a '
for text in "gitdir: $W/gone" 'gitdir:' ''; do
	rm -rf .git
	printf '%s' "$text" >.git
	vx run build --all --force
	one_line "a .git file of \"$text\"" "$PWD/\.git leads to no git repository.*worktree repair"
	unlike 'where git init would not help' "$err" 'git init'
done
rm .git
ln -s "$W/gone" .git
vx run build --all --force
one_line 'a .git that is a dangling link' "$PWD/\.git leads to no git repository"
rm .git
vx run build --all
one_line 'not a repository' 'git init'
rm -f "$W/ran"
vx run build --all --no-cache
is 'not a repository: what needs no keys runs' "$rc $(ran)" '0 a'
good
put p/a/package.json '{ "name": "a", }x'
vx run build --all
one_line 'a broken manifest' 'p/a/package\.json'
good
put p/a/vx.json '{ "tasks": { "build": { "exec": { "comand": "true" } } } }'
vx run build --all
one_line 'an unknown key' 'comand.*command'
good
project a <<<'{ "tasks": { "build": { "dependsOn": ["biuld"], "exec": { "command": "true" } } } }'
vx run build --all
one_line 'a missing dependency' 'biuld'
good
project a <<<'{ "tasks": { "build": { "dependsOn": ["nowhere#build"], "exec": { "command": "true" } } } }'
vx run build --all
one_line 'a missing project' 'nowhere'
good
project a <<<'{ "tasks": { "build": { "dependsOn": ["gen"], "exec": { "command": "true" } }, "gen": { "dependsOn": ["build"], "exec": { "command": "true" } } } }'
vx run build --all
one_line 'a cycle' 'a#build.*a#gen.*a#build|a#gen.*a#build.*a#gen'
good
vx run bulid --all
one_line 'an unknown task' 'bulid.*build'
vx run a#bulid
one_line 'an unknown task of a project' 'bulid'
vx run nobody#build
one_line 'an unknown project' 'nobody'
vx run build --filter nobody
one_line 'a filter that matches nothing' 'nobody'
vx run build --filter 'ndboy...'
one_line 'a filter that matches nothing lists what there is' 'there are projects: .*a'
vx run
one_line 'no task at all' 'no task is named .there are tasks: build'
vx run --all --dry
one_line 'nor for the plan' 'no task is named'
vx run --all --dry=json
is 'but JSON says what is selected' "$rc $(grep -o '"selected":\[[^]]*\]' <<<"$out")" '0 "selected":["a"]'
for file in summarize=$W/no/x profile=$W/no/x summarize=$PWD summarize=; do
	vx run build --all "--$file"
	one_line "--$file" "--${file%%=*}"
done
mkdir vx-report.html
vx run build --all --report
one_line 'a report where a directory is' 'vx-report\.html'
rmdir vx-report.html
vx run build --all --al
one_line 'an unknown flag' '--al'
vx run build --all --concurrency 0x2
one_line 'a number that is none' '0x2'
vx run build --all --concurrency 0
one_line 'no slots' 'concurrency'
vx bulid
one_line 'an unknown verb' 'bulid'
vx build
one_line 'a task typed as a verb' 'vx run build'
vx run build --all --output-logs some
one_line 'an unknown value' 'some'

good
project b <<<"$(task true)"
put p/b/package.json '{ "name": "@x/b-long" }'
vx run b-lnog#build
one_line 'a scope need not be typed to be understood' 'did you mean "@x/b-long"'
vx run build --filter b-lnog
one_line 'nor in a filter' 'did you mean "@x/b-long"'

good
project b <<<"$(task true)"
put p/b/package.json '{ "name": "a" }'
vx run build --all
one_line 'two projects of one name' 'p/a.*p/b'
good
put p/a/vx.json '{ "tasks": { "build": {} } }'
vx run build --all
one_line 'a task with neither exec nor dependsOn' 'p/a/vx\.json.*build'
good
project a <<<"$(task true '"retries": 1, "persistent": {}')"
vx run build --all
one_line 'retries of a persistent task' 'retries'
good
put p/a/vx.json '{ "tasks": { "build": { "exec": { "command": "true" }, "cache": { "inputs": { "files": ["src/**"] } } } } }'
vx run build --all
one_line 'a cache without outputs' 'outputs'
good
put p/a/vx.json '{ "tasks": { "build": { "exec": { "command": "true" }, "cache": { "inputs": { "files": ["../b/**"] }, "outputs": { "files": ["dist/**"] } } } } }'
vx run build --all
one_line 'an input above the project' '\.\.'
good
put p/a/vx.config.js 'export default {}'
vx run build --all
one_line 'two configurations' 'vx\.config\.js'
good
project a <<<"$(printf '{ "tasks": { "build": { "exec": { "command": "true" }, "cache": { "inputs": { "files": ["src/**", "dist/x"] }, "outputs": { "files": ["dist/**"] } } } } }')"
vx run build --all
isnt 'an input that the outputs take back: refused' "$rc" 0
good
put vx.workspace.json '{ "concurency": 2 }'
vx run build --all
one_line 'an unknown key of the workspace' 'concurency.*concurrency'
is 'nothing of all that ran' "$(ran)" ''

good
put p/a/vx.json '{ "tasks": { "build": { "exec": { "command": "true" } }, "build": { "exec": { "command": "false" } } } }'
vx run build --all
one_line 'a task that stands twice' 'p/a/vx\.json:1:[0-9]+: "build" stands here a second time'
good
put p/a/vx.json '{ "tasks": { "a\nb": { "exec": { "command": "true" } } } }'
vx run build --all
one_line 'a task whose name has two lines' 'control character'
good
put p/a/package.json '{ "name": "a\nb" }'
vx run build --all
one_line 'a project whose name has two lines' 'p/a/package\.json.*control character'
good
put p/a/vx.json '{ "tasks": { "build": { "exec": { "command": "true" }, "cache": { "inputs": { "files": [], "env": ["VITE_*"] }, "outputs": { "files": [] } } } } }'
vx run build --all
one_line 'a pattern of variables' 'VITE_\*'
good
put p/a/vx.json null
vx run build --all
one_line 'a configuration that is null' 'must be an object, not null'
good
rm p/a/vx.json && ln -s nowhere p/a/vx.json
vx run build --all
one_line 'a configuration behind a dangling link' 'p/a/vx\.json.*symbolic link to nothing'

workspace "$W/fresh"
vx run build --all
one_line 'no members' 'patterns match no directory'
put p/a/package.json '{ "name": "a", "scripts": { "build": "true" } }'
vx run build --all
one_line 'no configuration' 'vx init'
mkdir "$W/none" && cd "$W/none" || exit 1
vx run build --all
one_line 'no workspace' 'package\.json|workspace'
vx -C "$W/no/such" run build --all
one_line 'a directory that is not there' 'no/such'

mkdir "$W/nogit" && cd "$W/nogit" || exit 1
put package.json '{ "name": "root", "workspaces": ["p/*"] }'
project a <<<"$(cached true)"
vx run build --all
one_line 'not a git repository' 'git'
workspace "$W/nogitbin"
project a <<<"$(cached "echo a >>$W/ran")"
put p/a/src/x x
mkdir "$W/bin" && ln -s "$(command -v sh)" "$(command -v echo)" "$W/bin/"
git add -A
run env PATH="$W/bin" "$VX" run build --all
is 'no git on the PATH: not needed where its index is understood' "$rc $(ran)" '0 a'
git update-index --split-index
run env PATH="$W/bin" "$VX" run build --all
one_line 'no git where it is needed' 'git'

# as a normal user permissions count
if [ "$(id -u)" = 0 ]; then
	mkdir -p "$W/user"
	( workspace "$W/user/ws"
	project a <<<"$(cached "mkdir -p dist; echo x >dist/x")"
	put p/a/src/x x
	git add -A )
	cd "$W/user/ws" || exit 1
	as_user true
	chmod 000 p/a/vx.json
	run as_user "$W/user/bin/vx" run build --all
	one_line 'an unreadable configuration' 'p/a/vx\.json'
	chmod 644 p/a/vx.json
	chmod 000 p/a/src/x
	run as_user "$W/user/bin/vx" run build --all
	is 'an unreadable input: exit 1' "$rc" 1
	like 'it is named' "$err$out" 'p/a/src/x.*[Pp]ermission|[Pp]ermission.*p/a/src/x'
	chmod 644 p/a/src/x
	chmod 000 p/a
	run as_user "$W/user/bin/vx" run build --all
	one_line 'an unreadable project is named' 'p/a: permission denied, so no project is looked for in it'
	chmod 755 p/a

	mkdir "$W/locked"
	run as_user "$W/user/bin/vx" run build --all --cache-dir "$W/locked/store"
	is 'an unwritable store: exit 0' "$rc" 0
	is 'and one line' "$(wc -l <<<"$err")" 1
	like 'that says so' "$err" 'locked'
	ok 'the task ran' test -e p/a/dist/x
	run as_user "$W/user/bin/vx" run build --all
	is 'a normal user' "$rc" 0
	rm -rf p/a/dist
	run as_user "$W/user/bin/vx" run build --all
	is 'hits' "$rc" 0
	ok 'and gets the outputs back' test -e p/a/dist/x
	chmod -R u-w .vx/cache
	put p/a/src/x y
	run as_user "$W/user/bin/vx" run build --all
	is 'a read-only store: exit 0' "$rc" 0
	chmod -R u+w .vx/cache
else
	skip 'an unreadable file, an unwritable store' 'needs root to become a user'
fi
good
put "$W/file" x
vx run build --all --cache-dir "$W/file/store"
is 'a store below a file: exit 0' "$rc" 0
is 'one line' "$(grep -c . <<<"$err")" 1
is 'it ran' "$(ran)" a

# the sandbox that cannot be
good
project a <<<"$(cached "echo a >>$W/ran; mkdir -p dist" '"sandbox": { "allow": { "read": ["."], "write": ["dist/"] } }')"
put p/a/src/x x
git add -A
mkdir "$W/nobwrap"
for tool in sh git echo mkdir; do ln -s "$(command -v $tool)" "$W/nobwrap/"; done
run env PATH="$W/nobwrap" "$VX" run build --all
is 'no bwrap: exit 1' "$rc" 1
is 'no bwrap: said in one line' "$(grep -c . <<<"$err")" 1
like 'no bwrap: with the fix' "$err" '^vx run: sandbox not available: [^:]*(bwrap|bubblewrap)'
is 'and the task did not run unsandboxed' "$(ran)" ''
if can_sandbox; then
	run unshare -Ur sh -c "echo 0 >/proc/sys/user/max_user_namespaces 2>/dev/null; exec '$VX' run build --all"
	is 'no user namespaces: exit 1' "$rc" 1
	like 'no user namespaces: said' "$out$err" 'sandbox not available: .*namespace'
	is 'and nothing ran' "$(ran)" ''
fi

done_testing
