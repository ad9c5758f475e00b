#!/usr/bin/env bash
# Projects that stand in keys though they run nothing: those that `^name` passes through, packages of a turbo.json without the script, what its root depends on. An
# edit of their files runs again what is keyed by them, and no more, in each way that a run can be cut short; and what changes while a task runs is noticed.
. "$(dirname "$0")/../lib.sh"
. "$SRC/tests/vx.sh"

# settle NAME: runs until one has nothing to do
settle() {
	for _ in 1 2 3; do vx run build --all; done
	sleep 0.02
	vx run build --all
	: >"$W/ran"
	vx run build --all
	is "$1: nothing to do" "$rc $(ran)" '0 '
}
# moved NAME [TASK...]: the next run runs these, the one behind that nothing; the second of two takes keys over, the others derive them
moved() {
	local name=$1
	shift
	vx run build --all
	is "$name" "$rc $(ran)" "0 $*"
	vx run build --all
	is "$name, once" "$rc $(ran)" '0 '
	VX_NO_SNAPSHOT=1 vx run build --all
	is "$name, derived anew" "$rc $(ran)" '0 '
}
# builds COMMAND MORE: a vx.json with a cached build behind ^build
builds() {
	printf '{ "tasks": { "build": { "dependsOn": ["^build"], "exec": { "command": %s }, "cache": { "inputs": { "files": ["src/**"]%s }, "outputs": { "files": ["dist/**"] } } } } }\n' "$(json "$1")" "${2:-}"
}
says() { echo "echo $1 >>$W/ran"; }

# app -> one -> two -> low (build), app -> side; end -> side alone; picky takes no keys of others; gate passes keys on
workspace
project low <<<"$(builds "$(says low)")"
project two low <<<'{ "tasks": {} }'
project one two <<<'{ "tasks": { "test": { "exec": { "command": "true" } } } }'
put p/side/package.json '{ "name": "side", "version": "1.0.0" }'
project app one side <<<"$(builds "$(says app)")"
project end side <<<"$(builds "$(says end)")"
project picky one side <<<"$(builds "$(says picky)" ', "tasks": []')"
project gate side <<<"$(printf '{ "tasks": { "all": { "dependsOn": ["^build"] }, "build": { "dependsOn": ["all"], "exec": { "command": %s }, "cache": { "inputs": { "files": ["src/**"] }, "outputs": { "files": [] } } } } }' "$(json "$(says gate)")")"
project wild side <<<"$(printf '{ "tasks": { "build": { "dependsOn": ["^none.*"], "exec": { "command": %s }, "cache": { "inputs": { "files": ["src/**"] }, "outputs": { "files": [] } } } } }' "$(json "$(says wild)")")"
for p in low two one side; do put p/$p/src/x 1; done
git add -A && git commit -qm one
settle 'passed through'
put p/one/src/x 2
moved 'a file of a project that is passed through' app
put p/two/src/new 2
moved 'a new file of the second one in a row' app
rm p/two/src/new
vx run build --all
is 'it goes again: a hit' "$rc $(ran)" '0 '
put p/side/README.md 2
moved 'where nothing further down declares the task' app end gate wild
sed -i 's/1.0.0/1.0.1/' p/side/package.json
moved 'its manifest' app end gate wild
chmod +x p/two/src/x
moved 'its mode' app
put p/low/README.md 2
vx run build --all
is 'one that declares the task stands for itself' "$rc $(ran)" '0 '
put p/one/dist/ignored 2
vx run build --all
is 'what git ignores counts no more than in a task without cache' "$rc $(ran)" '0 '
vx run build --all --dry=full
like 'the plan names them' "$out" '"passed:one"'
is 'and they are no tasks' "$(grep -o '"id":"[a-z]*#[a-z]*"' <<<"$out" | sort | paste -sd' ')" \
	'"id":"app#build" "id":"end#build" "id":"gate#all" "id":"gate#build" "id":"low#build" "id":"picky#build" "id":"wild#build"'
vx run build --all
like 'nor counted' "$out$err" '6 up to date'

# what changes there while the task runs
vx run build --all
for how in 'echo 3 >../one/src/x' 'echo 3 >../side/came' 'echo 4 >../two/src/x'; do
	put p/app/vx.json "$(builds "$(says app); $how")"
	vx run app#build
	is "it changes meanwhile ($how): the task has run" "$rc $(ran)" '0 app'
	like 'and is not saved' "$err" 'app#build.*p/(one/src/x|side/came|two/src/x)'
	git checkout -q . && git clean -qfd p
done
put p/gate/vx.json "$(sed 's|>>|; echo 5 >../side/src/x; echo gate >>|' p/gate/vx.json)"
vx run gate#build
like 'the same behind a group' "$err" 'gate#build.*p/side/src/x'
git checkout -q . && git clean -qfd p
ran >/dev/null

# a task upstream that writes there: what it leaves counts, not what was there before
put p/two/vx.json '{ "tasks": { "make": { "exec": { "command": "cat ../../../made >src/made" } } } }'
put p/app/vx.json "$(printf '{ "tasks": { "build": { "dependsOn": ["^build", "two#make"], "exec": { "command": %s }, "cache": { "inputs": { "files": ["src/**"] }, "outputs": { "files": ["dist/**"] } } } } }' "$(json "$(says app); mkdir -p dist; cat ../two/src/made >dist/o")")"
put "$W/made" 1
vx run app#build
vx run app#build
: >"$W/ran"
vx run app#build
is 'a task without cache that writes into a passed project: a hit on what it writes' "$rc $(ran)" '0 '
put "$W/made" 2
vx run app#build
is 'it writes something else' "$rc $(ran) $(cat p/app/dist/o)" '0 app 2'

# the files of a task without cache: edited and put back while a dependent runs, also behind a cached task
new_repo "$W/uncached"
put package.json '{ "name": "root", "workspaces": ["p/*"] }'
put .gitignore $'node_modules\n.vx\n'
project gen <<<"$(printf '{ "tasks": { "make": { "exec": { "command": %s } } } }' "$(json "date >made")")"
put p/gen/src/x right
put p/mid/src/x 1
put p/app/src/x 1
project mid gen <<<"$(builds 'mkdir -p dist; cat ../gen/src/x >dist/o' | sed 's/"^build"/"gen#make"/')"
project app mid <<<"$(builds "$(says app); cat ../gen/src/x >dist/o")"
git add -A && git commit -qm one
put p/app/vx.json "$(builds "$(says app); mkdir -p dist; echo wrong >../gen/src/x; cat ../gen/src/x >dist/o; echo right >../gen/src/x")"
: >"$W/ran"
vx run app#build
is 'a file of a task without cache is written and put back: the dependent has run' "$rc $(ran)" '0 app'
like 'and is not saved' "$err" 'app#build.*p/gen/src/x'
unlike 'what ended before is' "$err" 'mid#build was not saved'
put p/app/vx.json "$(builds "$(says app); mkdir -p dist; cat ../gen/src/x >dist/o")"
vx run app#build
is 'left alone' "$rc $(ran) $(cat p/app/dist/o)" '0 app right'
unlike 'it is saved, whatever the task without cache has written itself' "$err" 'not saved'

# ---- turbo.json ----
turbo() {
	new_repo "$W/turbo$((++n))"
	put package.json "{ \"name\": \"root\", \"workspaces\": [\"p/*\"], \"packageManager\": \"npm@10.0.0\"$2 }"
	put turbo.json "$1"
	put .gitignore $'.env*\ndist\nnode_modules\n.vx\n'
	: >"$W/ran"
}
n=0
# pkg NAME SCRIPTS [DEPENDENCY...]
pkg() {
	local name=$1 scripts=$2 dep deps=
	shift 2
	for dep in "$@"; do deps="$deps${deps:+, }\"$dep\": \"*\""; done
	put "p/$name/package.json" "{ \"name\": \"$name\", \"version\": \"1.0.0\", \"scripts\": { $scripts }, \"dependencies\": { $deps } }"
	put "p/$name/src/x" 1
}
script() { echo "\"$1\": $(json "$(says "$2")")"; }

turbo '{ "tasks": { "transit": { "dependsOn": ["^transit"] }, "build": { "dependsOn": ["transit"], "outputs": ["dist/**"] } } }' ''
pkg base ''
pkg ui '' base
pkg app "$(script build app)" ui
pkg other "$(script build other)"
git add -A && git commit -qm one
settle 'transit nodes'
put p/ui/src/x 2
moved 'a file of a package without the script' app
put p/base/new 2
moved 'of one behind it' app
put p/base/.env 2
vx run build --all
is 'what git ignores does not count' "$rc $(ran)" '0 '
sed -i 's/1.0.0/1.0.1/' p/base/package.json
moved 'its manifest' app
vx run build --all --dry=json
unlike 'they are no commands of the plan' "$out" '"ui#build"[^}]*"command":"[^"]'
for how in 'echo 3 >../ui/src/x' 'echo 3 >../base/came'; do
	pkg app "\"build\": $(json "$(says app); $how")" ui
	vx run app#build
	like "one changes while the task runs ($how): not saved" "$err" 'app#build.*p/(ui/src/x|base/came)'
	git checkout -q . && git clean -qfd p
done

turbo '{ "tasks": { "gen": { "cache": false, "inputs": ["src/**", ".env", "$TURBO_ROOT$/shared"], "env": ["VXT_G"] }, "build": { "dependsOn": ["^build", "^gen"], "inputs": ["src/**"], "env": ["VXT_B"] } } }' ''
pkg ui ''
pkg tool '"gen": "true"'
pkg app "$(script build app)" ui tool
git add -A && git commit -qm one
settle 'inputs of what is not run, or not cached'
put p/ui/src/x 2
moved 'an input' app
put p/ui/.env 2
moved 'an ignored file that inputs name' app
put p/tool/.env 2
moved 'the same of a task that is not cached' app
put shared 2
moved 'a file of the root' app
export VXT_G=1
moved 'a variable of a task that is not cached' app
export VXT_B=1
moved 'a variable of tasks without a script' app
unset VXT_G VXT_B
sed -i 's/"dependencies": {/"devDependencies": { "vite": "5" }, &/' p/ui/package.json
vx run build --all
ran >/dev/null
export VITE_VXT=1
moved 'a variable of the framework of a package without the script' app
unset VITE_VXT

turbo '{ "tasks": { "lint": {}, "build": { "outputs": ["dist/**"] } } }' ', "devDependencies": { "rules": "*" }'
sed -i 's|"p/\*"|"p/*", "p/rules/fixtures/*"|' package.json
pkg deep ''
pkg rules '' deep
pkg app "$(script build app)"
pkg other "$(script build other)"
git add -A && git commit -qm one
settle 'what the root depends on'
put p/rules/src/x 2
moved 'a file of it' app other
put p/rules/new 2
moved 'a new one' app other
put p/deep/src/x 2
moved 'what that depends on' app other
put p/rules/fixtures/one/package.json '{ "name": "inside" }'
moved 'what lies inside of it' app other
vx run build --all --dry=full
like 'the plan has it' "$out" '"rootDependencies"'
for how in 'echo 3 >../rules/src/x' 'echo 3 >../deep/came'; do
	pkg app "\"build\": $(json "$(says app); $how")"
	vx run app#build
	like "it changes while a task runs ($how): not saved" "$err" 'app#build.*p/(rules/src/x|deep/came)'
	git checkout -q . && git clean -qfd p
done

# a task upstream that writes into what is in every key
turbo '{ "tasks": { "gen": { "cache": false }, "build": { "dependsOn": ["^gen"], "outputs": ["dist/**"] } } }' ', "devDependencies": { "rules": "*" }'
pkg rules "\"gen\": $(json "cat $W/rule >src/x")"
pkg app "\"build\": $(json "$(says app); mkdir -p dist; cat ../rules/src/x >dist/o")" rules
echo 1 >"$W/rule"
git add -A && git commit -qm one
vx run build --all
vx run build --all
: >"$W/ran"
vx run build --all
is 'a task without cache writes what the root depends on: a hit on what it writes' "$rc $(ran)" '0 '
echo 2 >"$W/rule"
vx run build --all
is 'it writes something else' "$rc $(ran) $(cat p/app/dist/o)" '0 app 2'
git checkout -q p
vx run build --all
is 'and again, over what was there before: what is there then is the key' "$rc $(cat p/app/dist/o)" '0 2'

# as Turborepo, by the bytes
turbo '{ "tasks": { "build": { "outputs": ["dist/**"] } } }' ''
pkg app "\"build\": $(json "$(says app); cat src/x >copy; cat copy >src/x; rm copy; touch package.json")"
git add -A && git commit -qm one
vx run build --all
is 'a task that writes its inputs with the same bytes' "$rc $(ran) $err" '0 app '
vx run build --all
is 'is saved' "$rc $(ran)" '0 '
pkg app "\"build\": $(json "$(says app); echo 2 >>src/x")"
vx run build --all
like 'with others it is not' "$err" 'app#build.*p/app/src/x'

done_testing
