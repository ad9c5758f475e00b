#!/usr/bin/env bash
# Entries of the inputs that select nothing: said when the task has run, and only where it is a mistake.
. "$(dirname "$0")/../lib.sh"
. "$SRC/tests/vx.sh"

# with FILES [WORKSPACE_FILES [COMMAND]]: a vx.json whose inputs are these (JSON lists)
with() {
	printf '{ "tasks": { "build": { "exec": { "command": %s }, "cache": { "inputs": { "files": %s, "workspaceFiles": %s }, "outputs": { "files": ["dist/**"] } } } } }\n' \
		"$(json "${3:-mkdir -p dist; echo x >dist/x}")" "$1" "${2:-[]}"
}
one() {
	workspace "$W/ws$((++n))"
	project a <<<"$(with "$@")"
	put p/a/src/x x
	git add -A
}
n=0

one '["src/**", "scr/**"]'
vx run build --all
is 'a wrong glob: the run is as ever' "$rc" 0
is 'it is said, in one line' "$err" 'vx run: p/a/vx.json: "scr/**" in cache.inputs.files of a#build selects no file (correct it, or take it out)'
vx run build --all
is 'not for a hit' "$rc $err" '0 '
put p/a/src/x y
vx run build --all
like 'again for the next miss, whose key was taken over' "$err" '"scr/\*\*" .* selects no file'
vx run build --all --force
like 'and for a forced run' "$err" '"scr/\*\*" .* selects no file'
put p/a/scr/x x
vx run build --all
is 'no more when it finds something' "$rc $err" '0 '

one '["src/**"]' '["tsconfg.json", "p/a/src/*"]'
vx run build --all
is 'of workspaceFiles' "$err" 'vx run: p/a/vx.json: "tsconfg.json" in cache.inputs.workspaceFiles of a#build selects no file (correct it, or take it out)'
one '["src/**", "scr/**"]' '[]' 'exit 3'
vx run build --all
like 'a task that fails has missed, too' "$rc $err" '^1 .*"scr/'

one '["src/**", "!scr/**", "**/made", "*.md", "!README.md"]' '[]' 'mkdir -p dist; echo x >dist/made'
put p/a/README.md x
vx run build --all
is 'nothing is said of a negation, of own outputs, and of what a negation takes away' "$rc $err" '0 '
one '["src/**", "log/*.txt", "log/*.text"]'
put .gitignore $'dist/\n*.txt'
put p/a/log/x.txt x
vx run build --all
is 'what git ignores is called that' "$(grep -c 'log/\*\.txt" .* of a#build matches only files that git ignores' <<<"$err")" 1
is 'and what is not there is not' "$(grep -c 'log/\*\.text" .* selects no file' <<<"$err")" 1

workspace "$W/many"
for p in a b c d; do project $p <<<"$(with '["src/**", "scr/**"]')"; put p/$p/src/x x; done
vx run build --all
is 'many tasks: one line' "$err" 'vx run: p/a/vx.json: "scr/**" in cache.inputs.files of a#build, b#build and 2 more tasks selects no file (correct it, or take it out)'
put p/b/src/x y
put p/d/src/x y
vx run build --all
like 'of those that missed alone' "$err" '^vx run: p/b/vx\.json: .* of b#build and d#build selects'
list=$(printf ', "no%d/**"' 1 2 3 4 5 6 7 8 9 10 11)
project a <<<"$(with "[\"src/**\"$list]")"
vx run build --all
is 'a heap of them has an end' "$(wc -l <<<"$err") $(tail -1 <<<"$err")" '9 vx run: and 3 more entries of inputs select no file'

# turbo.json
turbo() { put turbo.json "{ \"tasks\": { \"build\": { \"outputs\": [\"dist/**\"], \"inputs\": $1 } } }"; }
workspace "$W/turbo"
put package.json '{ "name": "root", "private": true, "packageManager": "npm@10.0.0", "workspaces": ["p/*"] }'
for p in a b; do
	put p/$p/package.json "{ \"name\": \"$p\", \"scripts\": { \"build\": \"true\" } }"
	put p/$p/src/x x
done
put p/b/test/x x
turbo '["$TURBO_DEFAULT$", ".env*"]'
vx run build
unlike 'turbo: beside the default files nothing is said' "$rc $err" '^1|selects|matches'
turbo '["src/**", "test/**"]'
vx run build --filter=a
unlike 'turbo: a definition for all packages that finds something in another' "$rc $err" '^1|selects|matches'
turbo '["src/**", "tset/**"]'
vx run build
like 'turbo: what finds nothing anywhere is said' "$err" 'vx run: turbo\.json: "tset/\*\*" in inputs of a#build and b#build selects no file'
put .gitignore $'dist/\ngen/'
put p/a/gen/x x
turbo '["src/**", "gen/**"]'
vx run build --filter=a
unlike 'turbo: ignored files that are named are inputs' "$rc $err" '^1|selects|matches'

done_testing
