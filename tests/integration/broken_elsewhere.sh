#!/usr/bin/env bash
# A broken configuration stops the runs that need its project, and no other one, which say it in a line. Also configurations of the workspace that are programs.
. "$(dirname "$0")/../lib.sh"
. "$SRC/tests/vx.sh"

workspace
project lib <<<"{ \"tasks\": { \"x\": { \"exec\": { \"comand\": \"true\" } } } }"
project mid lib <<<"{ \"tasks\": { \"y\": { \"exec\": { \"command\": \"echo mid-y >>$W/ran\" } } } }"
project top mid <<JSON
{ "tags": ["t"], "tasks": {
  "x": { "exec": { "command": "echo x >>$W/ran" }, "cache": { "inputs": { "files": ["src/**"] }, "outputs": { "files": [] } } },
  "y": { "dependsOn": ["^y"], "exec": { "command": "echo y >>$W/ran" } },
  "through": { "dependsOn": ["^z"], "exec": { "command": "true" } },
  "named": { "dependsOn": ["lib#x"], "exec": { "command": "true" } },
  "pattern": { "dependsOn": ["^y.*"], "exec": { "command": "true" } },
  "group": { "dependsOn": ["named"] } } }
JSON
project side lib <<<'{ "tasks": { "y": { "dependsOn": ["^y"], "exec": { "command": "true" } } } }'
put p/top/src/x x
git add -A && git commit -qm c
broken='p/lib/vx\.json: project "lib", task "x": .*unknown key "comand".*command'
vx run top#x
is 'a run that has nothing to do with it' "$rc $(ran)" '0 x'
like 'says it in one line' "$(wc -l <<<"$err") $err" "^1 vx run: $broken.*\(this run does not need lib\)"
vx run top#x
is 'and again, with a hit' "$rc $(ran) $(wc -l <<<"$err")" '0  1'
vx run top#x -F top
is 'a selection that leaves it out' "$rc" 0
vx -C p/top run x --dry
is 'the plan of another project' "$rc" 0
vx run top#y
is 'where ^name stops before it' "$rc $(ran)" '0 mid-y y'
for words in 'lib#x' 'side#y' 'x --all' 'x' 'x -F lib' 'x -F top...' 'y --all' 'top#through' 'top#named' 'top#pattern' 'top#group' 'x -F tag:t' 'x --all --dry' '-C p/lib x'; do
	vx run $words
	one_line "$words needs it" "$broken"
	is "$words: nothing has run" "$(ran)" ''
done
vx lock
one_line 'a lock needs all' "$broken"
vx cache stats
is 'the cache needs none' "$rc" 0
vx info
like 'vx info says it' "$out" 'configuration +p/lib/vx\.json: project "lib", task "x": .*unknown key "comand"'
project more <<<'{ "tasks": 5 }'
rm p/lib/vx.json
put p/lib/vx.json '{'
vx run top#x
like 'several are one line' "$(wc -l <<<"$err") $err" '^1 vx run: p/lib/vx\.json:2:1: .*\(this run does not need lib, nor 1 more whose configuration is broken\)'
put p/lib/vx.json '{}'
put p/more/vx.json '{}'
put p/more/vx.jsonc '{}'
vx run top#x
like 'two configurations' "$rc $err" '^0 vx run: project "more" has two configurations'
rm p/more/vx.jsonc
vx run top#x
is 'repaired, nothing is said' "$rc $err" '0 '

if command -v node >/dev/null; then
	rm p/more/vx.json
	put p/more/vx.config.mjs 'export default { tasks: { x: { exec: { command: 5 } } } };'
	vx run top#x
	like 'a program elsewhere' "$rc $err" '^0 vx run: p/more/vx\.config\.mjs: project "more"'
	put p/more/vx.config.mjs 'process.kill(process.pid, 9);'
	vx run top#x
	like 'one that ends the process that evaluates it' "$rc $err" '^0 .*while it evaluated p/more/vx\.config\.mjs.*does not need more'
	vx run more#x
	one_line 'who needs it' 'while it evaluated p/more/vx\.config\.mjs'
	rm -r p/more

	for kind in mjs cjs js ts; do
		case $kind in cjs | js) how='module.exports =' ;; *) how='export default' ;; esac
		put vx.workspace.$kind "$how { timeout: 1000 * 60, tasks: { x: { description: 'a default', cache: { inputs: { files: ['src/**'] }, outputs: { files: [] } } } } };"
		if [ $kind = ts ] && ! node -e 'const [a, b] = process.versions.node.split(".").map(Number); process.exit(a > 22 || (a === 22 && b >= 6) ? 0 : 1)'; then
			vx run top#x
			one_line "vx.workspace.$kind is not passed over" 'vx\.workspace\.ts cannot be evaluated'
		else
			vx run top#x --timeout 0
			is "vx.workspace.$kind is read" "$rc $err" '0 '
			put vx.workspace.$kind "$how { nonsense: 1 };"
			vx run top#x
			one_line "what is wrong with vx.workspace.$kind" "vx\.workspace\.$kind: unknown key \"nonsense\""
		fi
		rm vx.workspace.$kind
	done
	put vx.workspace.mjs "import { defineWorkspace } from '@vzn/vx'; export default defineWorkspace({ concurrency: 'many' });"
	vx run top#x
	one_line 'defineWorkspace' 'vx\.workspace\.mjs: concurrency must be a number'
	put vx.workspace.mjs 'throw new Error("no settings today");'
	vx run top#x
	one_line 'one that throws' 'vx\.workspace\.mjs: no settings today'
	put vx.workspace.json '{}'
	vx run top#x
	one_line 'two of them' 'both vx\.workspace\.json and vx\.workspace\.mjs are there'
	rm vx.workspace.*
else
	skip 'programs' 'there is no node'
fi

# vx init says what its files replace
workspace "$W/turbo"
rm -rf p
put p/a/package.json '{ "name": "a", "scripts": { "build": "true" } }'
put package.json '{ "name": "root", "workspaces": ["p/*"], "packageManager": "npm@10.0.0" }'
put turbo.json '{ "tasks": { "build": {} } }'
put nx.json '{}'
git add -A
vx init
like 'init beside a turbo.json' "$rc $out" '^0 .*|these files replace turbo\.json for vx'
like 'says that it no longer counts' "$out" 'note: these files replace turbo\.json for vx: .*vx init --from-turbo takes it over'
like 'and what of nx.json is not read' "$out" 'note: nx\.json is there: its targetDefaults'
vx init
unlike 'where nothing is written nothing is said' "$out" 'replace'
rm p/a/vx.json nx.json
vx init --from-turbo
like 'from turbo' "$out" 'note: these files replace turbo\.json for vx: from now on they count'
done_testing
