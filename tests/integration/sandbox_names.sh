#!/usr/bin/env bash
# What decides a later run is no task's to write; and how a configuration allows one by name.
. "$(dirname "$0")/../lib.sh"
. "$SRC/tests/vx.sh"
can_sandbox || skip_all 'no user namespaces or no bwrap'

box() { # ALLOW COMMAND
	printf '{ "tasks": { "build": { "exec": { "command": %s, "sandbox": { "allow": { %s } } } } } }\n' "$(json "$2")" "$1"
}
fresh() { # ALLOW COMMAND
	workspace "$W/ws$((++n))"
	put p/a/package.json '{ "name": "a", "scripts": { "build": "true" } }'
	put p/a/src/x x
	[ ! -e "$W/deep.py" ] || cp "$W/deep.py" p/a/src/
	put p/a/vx.json <<<"$(box "$1" "$2")"
	cp p/a/vx.json "$W/vx.json"
	git add -A
	vx run a#build
}
n=0
all='"read": ["."], "write": ["."]'

fresh "$all" 'echo "{}" >vx.json'
is "a task does not write its own vx.json" "$rc" 1
ok 'it is as it was' cmp p/a/vx.json "$W/vx.json"
fresh "$all" 'rm -f vx.json package.json; mv vx.json y; echo x >package.json; true'
is 'nor remove it, nor its manifest' "$(cat p/a/package.json) $(test -e p/a/vx.json && echo there)" '{ "name": "a", "scripts": { "build": "true" } } there'
for name in vx.jsonc vx.config.mjs vx.workspace.json turbo.json .npmrc .husky/pre-commit .envrc .zshenv .claude/settings.json pnpm-workspace.yaml; do
	fresh "$all" "mkdir -p \$(dirname $name) && echo x >$name"
	is "$name is removed, and the task fails" "$rc $(ls -d p/a/$name 2>/dev/null)" '1 '
	like "$name: says so" "$out$err" "p/a/${name%%/*} was created, which no task may"
done

# manifests: where scripts run from them
fresh '"write": ["dist/"]' 'mkdir -p dist/esm && echo "{\"type\":\"module\"}" >dist/esm/package.json && echo "{}" >dist/package.json'
is 'a package.json in an output is nobody'"'"'s business' "$rc $(ls p/a/dist/esm)" '0 package.json'
fresh '"write": ["../new/"]' 'echo "{}" >../new/package.json'
is 'one that makes a member is' "$rc $(ls p/new 2>/dev/null)" '1 '

# allowed by name
fresh '"write": ["dist/"], "protected": ["dist/template/.vscode/"]' 'mkdir -p dist/template/.vscode && echo "{}" >dist/template/.vscode/settings.json'
is 'a name that the configuration allows' "$rc $(ls p/a/dist/template/.vscode)" '0 settings.json'
vx run a#build
is 'and again, with it there' "$rc" 0
vx run a#build --dry=full
like 'the plan shows it' "$out" '"protectedAllowed"'
like 'by its path' "$out" 'p/a/dist/template/.vscode"'
fresh "$all, \"protected\": [\"package.json\"]" 'echo "{ \"name\": \"a\", \"version\": \"2.0.0\" }" >package.json'
is 'a manifest, too' "$rc $(grep -c 2.0.0 p/a/package.json)" '0 1'
fresh '"write": ["dist/"], "protected": ["dist/template/"]' true
is 'an entry that names nothing protected is refused' "$rc" 1
like 'and says what it must be' "$err" 'allow.protected.*must end with a name'

# paths that nobody can follow
put "$W/deep.py" <<'P'
import os
for d in ("dist/m/.vscode", "dist/m/.git/hooks"):
    os.makedirs(d)
os.chdir("dist")
for i in range(30):
    os.mkdir("x" * 200)
    os.chdir("x" * 200)
P
if command -v python3 >/dev/null; then
	fresh '"read": ["."], "write": ["dist/"]' "python3 src/deep.py"
	is 'beyond the longest path: the task fails' "$rc" 1
	is 'and what it made is gone' "$(find p/a/dist -name .vscode -o -name hooks 2>/dev/null) $(find p/a/dist -maxdepth 18 | grep -c xxx | awk '{ print ($1 < 21) }')" ' 1'
	like 'with the reason' "$out$err" 'DENY_MAX_DEPTH.*VX_MAX_PATH'
else
	skip 'beyond the longest path' 'no python3'
fi
done_testing
