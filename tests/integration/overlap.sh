#!/usr/bin/env bash
# Outputs of several tasks in one place, by leave of the configuration: what one has made is neither cleaned nor removed by another.
. "$(dirname "$0")/../lib.sh"
. "$SRC/tests/vx.sh"

task() { # NAME DEPENDSON OUTPUTS COMMAND
	printf '"%s": { "dependsOn": [%s], "exec": { "command": %s }, "cache": { "inputs": { "files": ["src/**"]%s }, "outputs": { "files": ["%s/**"] } } }' \
		"$1" "$2" "$(json "$4; echo $1 >>$W/ran")" "${5:+, \"tasks\": [$5]}" "$3"
}

workspace
put vx.workspace.json '{ "rules": { "exclusiveOutputs": false } }'
project a <<<"{ \"tasks\": { $(task one '' dist 'mkdir -p dist/d; cp src/x dist/one'), $(task two '"one"' pkg 'mkdir -p pkg; cp src/x pkg/two'),
	$(task three '"two"' dist 'cp dist/one dist/three; mkdir -p dist/e; : >dist/e/f') } }"
put p/a/src/x x
git add -A
all='dist/e/f dist/one dist/three pkg/two'
have() { (cd p/a && find dist pkg -type f | LC_ALL=C sort | paste -sd' '); }
vx run three --all
is 'one behind another, with a third in between: nothing is cleaned away' "$rc $(ran) $(have)" "0 one three two $all"
for i in 1 2 3 4 5 6; do
	case $i in
	1) rm -r p/a/dist ;;
	2) rm p/a/dist/three ;;
	3) rm p/a/dist/one ;;
	4) echo stray >p/a/dist/stray ;;
	5) echo wrong >p/a/dist/three ;;
	esac
	vx run three --all
	is "hits put back what all of them made ($i)" "$rc $(ran) $(have) $(cat p/a/dist/three)" "0  $all x"
done
for d in dist dist/e; do # the directory of another task's outputs too
	mv p/a/$d "$W/away"
	ln -s "$W/away" p/a/$d
	tree "$W/away" >"$W/was"
	vx run three --all
	vx run three --all
	is "$d is no link to the same files elsewhere" "$rc $(ran) $(have) $(find p/a/dist -type l)" "0  $all "
	is 'and those are left alone' "$(tree "$W/away")" "$(cat "$W/was")"
	rm -r "$W/away"
done
rm -r .vx/cache/v1/[as]/*
rm -r p/a/dist
vx run one three --all >/dev/null
is 'made anew' "$rc $(ran) $(have)" "0 one three two $all"

# the earlier one runs while the later one is a hit: its clean does not take what has been restored
head -c 100000 /dev/urandom >"$W/y" # artifacts of their own, so that one can be taken away
cp "$W/y" p/a/src/x
vx run three --all
ran >/dev/null
victim=$("$SRC/tests/artifacts.py" .vx/cache/v1 holding p/a/dist/one but-not p/a/dist/three | grep /v1/a/ | cut -d' ' -f1)
put p/a/src/x x
vx run three --all
is 'back to what is known' "$rc $(ran)" '0 '
cp "$W/y" p/a/src/x
ok 'the entry of one is taken away' rm "$victim"
vx run three --all
is 'one runs, three is a hit' "$rc $(ran) $(have)" "0 one $all"
ok 'and is what it was' cmp p/a/dist/three "$W/y"

# what runs between the two, because its entry turns out to be damaged, finds what the earlier one makes and nothing of the later one's
workspace "$W/between"
put vx.workspace.json '{ "rules": { "exclusiveOutputs": false } }'
project a <<<"{ \"tasks\": { $(task one '' dist 'mkdir -p dist; cp src/x dist/one'), $(task two '"one"' pkg 'cp -r dist pkg'),
	$(task three '"two"' dist 'cp dist/one dist/three') } }"
put p/a/src/x x
git add -A
vx run three --all
is 'one, two, three' "$rc $(ran) $(have)" '0 one three two dist/one dist/three pkg/one'
ok 'the entry of two is harmed' "$SRC/tests/artifacts.py" .vx/cache/v1 holding p/a/pkg/one harm
rm -r p/a/pkg
vx run three --all
is 'two runs on what it always runs on' "$rc $(ran) $(have)" '0 two dist/one dist/three pkg/one'

vx run a#three --all --exclude-dependencies
is 'a task that is kept out is not waited for' "$rc $(ran) $(have)" '0  dist/one dist/three pkg/one'

# a key that does not fold the other's
cd "$W/ws" || exit 1
project a <<<"{ \"tasks\": { $(task one '' dist 'mkdir -p dist; cp src/x dist/one'), $(task three '"one", "zero"' dist 'cp dist/one dist/three' '"zero"'), \"zero\": { \"exec\": { \"command\": \"true\" } } } }"
vx run three --all
vx run three --all
is 'its entry would be of another time: it runs' "$rc $(ran)" '0 one three three'
like 'which is said' "$err" 'a#three is not cached: its outputs overlap those of a#one'

# outputs side by side, all missing with the directory that they share: each restore wants to make it
workspace "$W/side"
tasks=
for t in a b c d e f g h; do tasks="$tasks${tasks:+, }$(task $t '' "dist/$t" "mkdir -p dist/$t; cp src/x dist/$t/f")"; done
project a <<<"{ \"tasks\": { $tasks } }"
put p/a/src/x x
git add -A
vx run a b c d e f g h --all
ran >/dev/null
short=0
for i in $(seq 15); do
	rm -r p/a/dist
	vx run a b c d e f g h --all
	[ "$rc$(ran)$err $(cat p/a/dist/*/f | paste -sd' ')" = '0 x x x x x x x x' ] || short=$((short + 1))
done
is 'restores that make the same directory at the same time' "$short" 0

# turbo.json: in no order at all
new_repo "$W/turbo"
put package.json '{ "name": "r", "private": true, "packageManager": "npm@10.0.0", "workspaces": ["p/*"] }'
put package-lock.json '{ "name": "r", "lockfileVersion": 3, "packages": {} }'
put turbo.json '{ "tasks": { "build": { "outputs": ["dist/**"] }, "types": { "outputs": ["dist/**"] } } }'
put .gitignore 'dist/'
put p/a/package.json '{ "name": "a", "version": "1.0.0", "scripts": { "build": "mkdir -p dist && echo b >dist/b", "types": "mkdir -p dist && echo t >dist/t" } }'
put p/a/src/x x
git add -A
vx run build types --all --concurrency 1
is 'neither cleans away what the other makes' "$rc $(cd p/a/dist && ls | paste -sd' ')" '0 b t'
rm -r p/a/dist
vx run build types --all
is 'and both come back' "$rc $(cd p/a/dist && ls | paste -sd' ')" '0 b t'
done_testing
