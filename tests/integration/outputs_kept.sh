#!/usr/bin/env bash
# What is kept of outputs and what is not: set-id programs, links in place of directories; and what no output ever removes.
. "$(dirname "$0")/../lib.sh"
. "$SRC/tests/vx.sh"

# outputs PATTERN COMMAND: a vx.json of one task with these outputs
outputs() {
	printf '{ "tasks": { "build": { "exec": { "command": %s }, "cache": { "inputs": { "files": ["src/**"] }, "outputs": { "files": [%s] } } } } }\n' "$(json "$2")" "$1"
}

# ---- set-id programs are not saved ----
for mode in 4755 2755 6711; do
	workspace "$W/setid$mode"
	project a <<<"$(outputs '"dist/**"' "echo a >>$W/ran; mkdir -p dist; cp /bin/true dist/t; chmod $mode dist/t")"
	put p/a/src/x 1
	vx run build --all
	is "mode $mode: the task itself is fine" "$rc $(ran)" '0 a'
	like "mode $mode: named" "$err" "was not saved: p/a/dist/t is a set-id program"
	vx run build --all
	is "mode $mode: never a hit" "$rc $(ran)" '0 a'
done

# ---- no output removes a file that describes a project ----
workspace "$W/config"
for name in vx-lock.json package-lock.json yarn.lock pnpm-lock.yaml bun.lock bun.lockb npm-shrinkwrap.json .npmrc .yarnrc.yml; do
	rm -rf p && project a <<<"$(outputs "\"o*.txt\", \"$name\", \"gen/**\"" "echo a >>$W/ran; cat $name gen/$name >kept 2>&1; echo 1 >out.txt")"
	put p/a/src/x 1
	put p/a/old.txt old
	put "p/a/gen/$name" generated
	put "p/a/$name" described
	vx run build --all --force
	is "$name is still there when the command runs" "$(grep -c described p/a/kept)" 1
	is "$name: what is an output goes, and one that is made elsewhere" "$(ls p/a/old.txt "p/a/gen/$name" 2>/dev/null) $(grep -c generated p/a/kept)" ' 0'
done
# vx's own, in a project beside: under a name that the workspace reads
for name in vx.jsonc vx.config.mjs vx.config.js; do
	case $name in vx.config.*) command -v node >/dev/null || { echo "# no node: $name is not tried"; continue; } ;; esac
	rm -rf p && project a <<<'{ "tasks": { "build": { "exec": { "command": "ls ../b >kept; echo 1 >../b/out.txt" }, "cache": { "inputs": { "files": ["src/**"] }, "outputs": { "files": [], "workspaceFiles": ["p/b/*.*"] } } } } }'
	put p/a/src/x 1
	put p/b/package.json '{ "name": "b" }'
	put p/b/old.txt old
	case $name in vx.jsonc) put p/b/$name '{ "tasks": {} }' ;; *) put p/b/$name 'export default { tasks: {} }' ;; esac
	[ $name != vx.config.js ] || put p/b/package.json '{ "name": "b", "type": "module" }'
	vx run a#build --force
	[ -e p/a/kept ] || diag "$rc $err"; is "$name and package.json are still there when the command runs, and nothing else" "$(paste -sd' ' p/a/kept)" "package.json $name"
done

# ---- a link in place of an output directory is kept as the link ----
workspace "$W/link"
project a <<<"$(outputs '"dist/**", ".output/**"' "echo a >>$W/ran; mkdir -p .output/public; cp src/x .output/public/i; ln -sfn .output/public dist")"
put p/a/src/x 1
vx run build --all
is 'it is saved' "$rc $(ran) $err" '0 a '
rm -rf p/a/dist p/a/.output
vx run build --all
is 'and restored as a link' "$rc $(ran)$(readlink p/a/dist) $(cat p/a/dist/i)" '0 .output/public 1'
rm p/a/dist && mkdir p/a/dist && put p/a/dist/stray x
put "$W/elsewhere/keep" keep
vx run build --all
is 'over a directory' "$rc $(ran)$(readlink p/a/dist)" '0 .output/public'
ln -sfn "$W/elsewhere" p/a/dist
vx run build --all
is 'over a link that leads elsewhere, which is not followed' "$rc $(ran)$(readlink p/a/dist) $(ls "$W/elsewhere")" '0 .output/public keep'
ln -sfn "$W/elsewhere" p/a/dist
vx run build --all --force
is 'nor when outputs are cleaned' "$rc $(ran) $(ls "$W/elsewhere")" '0 a keep'
done_testing
