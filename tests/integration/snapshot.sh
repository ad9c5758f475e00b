#!/usr/bin/env bash
# The memory of a plan: with it and without it the plan is the same, byte for byte, whatever was edited; and it is used when nothing was.
. "$(dirname "$0")/../lib.sh"

tasks='{"tasks":{"build":{"dependsOn":["^build"],"exec":{"command":"mkdir -p dist && cat src/* >dist/out"},"cache":{"inputs":{"files":["src/**"],"env":["VXT_MODE"]},"outputs":{"files":["dist/**"]}}},
"test":{"dependsOn":["build"],"exec":{"command":":"},"cache":{"inputs":{"files":["src/**","!src/*.md"],"workspaceFiles":["base.json"]},"outputs":{"files":[]}}},
"free":{"dependsOn":["^free"],"exec":{"command":":"}}}}'
. "$SRC/tests/packages.sh"
printf 'dist\n.vx\n*.log\n' >.gitignore
project a
project b a
project c a b
project d
git add -A && git commit -qm x
T='build test free --all'
both() { # compares the plan with and without memory; says what differs
	for how in json full; do
		"$VX" run $T --dry=$how >"$W/with" 2>&1
		VX_NO_SNAPSHOT=1 "$VX" run $T --dry=$how >"$W/without" 2>&1
		cmp -s "$W/with" "$W/without" || { diff <(tr ',' '\n' <"$W/without") <(tr ',' '\n' <"$W/with") | head -5; return 1; }
	done
}
taken() { sed -n 's/.*"taken": *\([0-9]*\).*/\1/p' "$W/stats"; }
run() { VX_STATS="$W/stats" "$VX" run $T >"$W/run.out" 2>&1; }

run && run && settled && run
ok 'a snapshot is kept' test -f .vx/plan
run
is 'keys are taken over when nothing has changed: all but those that fold workspaceFiles' "$(taken)" 8
ok 'both ways agree' both
VX_NO_SNAPSHOT=1 run
is 'VX_NO_SNAPSHOT derives everything' "$(taken)" 0
echo u >packages/d/src/untracked.c
run; settled; run; run
VX_NO_SNAPSHOT=1 run
is 'ids that were computed are found again where the files were listed before the store was known' "$(sed -n 's/.*"hashed": *\([0-9]*\).*/\1/p' "$W/stats")" 0
rm packages/d/src/untracked.c
run; settled; run
echo more >>packages/d/src/a.c
run
is 'an edit costs the keys of its project alone' "$(taken)" 6
settled
run; run; run
rm -rf packages/*/dist
touch packages/a/unread.log
mkdir packages/c/elsewhere
run
is 'what planning does not look for may come and go: outputs, other files and directories of projects' "$(taken)" 8
ok 'and both ways agree' both
T='build test --all'
state() { stat -c '%i %y' .vx/plan; }
run; run; settled; run; run
kept=$(state)
rm -rf packages/b/dist
run
is 'a run that itself changes such directories does not keep the plan anew' "$(state)" "$kept"
settled
run
isnt 'the next one does' "$(state)" "$kept"
kept=$(state)
VX_STATS="$W/stats" "$VX" run $T -v >/dev/null 2>&1
is 'once' "$(state)" "$kept"
T='build test free --all'
for name in vx.jsonc turbo.json vx.config.ts .npmrc; do
	run; run; settled; run
	echo '{"tasks":{}}' >packages/c/$name
	ok "a $name that planning would read is seen where there was none" both
	rm packages/c/$name
	ok 'and that it is gone again' both
done
mkdir packages/e && run && run && settled && run
echo '{"name":"e","version":"1.0.0"}' >packages/e/package.json
ok 'so is a package.json that makes a project of a directory' both
rm -r packages/e packages/a/unread.log packages/c/elsewhere
ok 'and when all of that is gone again' both
run; settled; run

edit() {
	case $1 in
	0) echo "$2" >>packages/b/src/a.c ;;
	1) echo "$2" >packages/c/src/new"$2".c ;;
	2) rm -f packages/*/src/new*.c ;;
	3) sed -i "s/\"version\":\"[^\"]*\"/\"version\":\"1.0.$2\"/" packages/a/package.json ;;
	4) sed -i "s/cat src[^>]*>/cat src\/* \/dev\/null$([ $((RANDOM % 2)) = 0 ] && echo ' \/dev\/null')>/" packages/d/vx.json ;;
	5) project "new$((RANDOM % 3))" a ;;
	6) rm -rf packages/new* ;;
	7) echo "$2" >yarn.lock ;;
	8) rm -f yarn.lock ;;
	9) export VXT_MODE=$2 ;;
	10) unset VXT_MODE ;;
	11) echo "$2" >base.json ;;
	12) printf 'dist\n.vx\n*.log\n%s\n' "$([ $((RANDOM % 2)) = 0 ] && echo 'new*')" >.gitignore ;;
	13) echo '* text=auto' >.gitattributes ;;
	14) rm -f .gitattributes ;;
	15) git add -A && git commit -qm "$2" ;;
	16) chmod "$([ $((RANDOM % 2)) = 0 ] && echo +x || echo -x)" packages/a/src/a.c ;;
	17) touch packages/*/src/* packages/*/vx.json ;;
	18) rm -rf packages/c/src && ln -s ../b/src packages/c/src ;;
	19) rm -rf packages/c/src && mkdir packages/c/src && echo c >packages/c/src/a.c ;;
	20) echo "{\"tasks\":{}, \"concurrency\": 2}" >vx.workspace.json ;;
	21) rm -f vx.workspace.json ;;
	22) mv packages/d packages/dd && mv packages/dd packages/d ;;
	23) mkdir -p outside/x && echo '{"name":"linked","version":"1.0.0"}' >outside/x/package.json && ln -sfn ../outside/x packages/linked ;;
	24) rm -f packages/linked ;;
	25) printf '{"name":"root","private":true,"workspaces":["packages/*"%s]}' "$([ $((RANDOM % 2)) = 0 ] && echo ',"outside/*"')" >package.json ;;
	26) git rm -q --cached packages/a/src/a.c 2>/dev/null ;;
	27) echo x >packages/b/src/x.md; echo y >packages/b/x.log ;;
	28) echo 'broken{' >packages/d/vx.json ;;
	29) rm -rf packages/[abd]/dist ;;
	30) mkdir -p packages/a/some && touch packages/b/some packages/some 2>/dev/null ;;
	31) rm -rf packages/a/some packages/b/some packages/some ;;
	32) echo '{"tasks":{}}' >packages/c/vx.jsonc ;;
	33) rm -f packages/c/vx.jsonc packages/a/turbo.json ;;
	34) echo '{"extends":["//"]}' >packages/a/turbo.json ;;
	35) rm -rf packages/d && mkdir packages/d && git checkout -q -- packages/d 2>/dev/null ;;
	36) chmod "$([ $((RANDOM % 2)) = 0 ] && echo 755 || echo 700)" packages/a ;;
	*) git checkout -q -- packages/d 2>/dev/null ;;
	esac
}
RANDOM=${VX_SEED:-7}
bad=0 used=0
for i in $(seq 1 "${VX_STEPS:-50}"); do
	k=$((RANDOM % 38))
	edit $k "$i"
	both >"$W/diff" || { bad=$((bad + 1)); diag "step $i, edit $k:" "$(cat "$W/diff")"; }
	if [ $((i % 3)) = 0 ]; then run; settled; run; settled; run; [ "$(taken)" = 0 ] || used=$((used + 1)); both >"$W/diff" || { bad=$((bad + 1)); diag "after a run, step $i, edit $k:" "$(cat "$W/diff")"; }; fi
done
is 'with and without memory the plan is the same after every edit' "$bad" 0
ok "the memory was used ($used times)" test "$used" -gt 5

git checkout -q -f . && git clean -qfdx -e .vx . && run && run && settled && run && run
before=$(taken)
cp .vx/plan "$W/plan"
for damage in 'truncate -s 100 .vx/plan' 'truncate -s -1 .vx/plan' 'printf XXXXXXXX | dd of=.vx/plan bs=1 seek=300 conv=notrunc status=none' 'printf XXXXXXXX | dd of=.vx/plan bs=1 seek=20000 conv=notrunc status=none' ': >.vx/plan' 'rm .vx/plan; mkdir .vx/plan' 'rmdir .vx/plan; ln -s ../package.json .vx/plan' 'rm .vx/plan; cp "$W/plan" .vx/plan; chmod 666 .vx/plan'; do
	eval "$damage"
	ok "no memory is made of: $damage" both
done
rm -rf .vx/plan
run
run
is 'and the next run keeps a new one' "$(taken)" "$before"

# An index that is large enough to be read while the plan is being proven.
mkdir packages/a/src/many
(cd packages/a/src/many && seq -f 'a-name-of-some-length-so-that-the-index-grows-%05g-and-grows-and-grows-and-grows.c' 1 2500 | xargs touch)
git add -A && git commit -qm many
ok 'a large index' test "$(stat -c %s .git/index)" -gt 262144
run; run; settled; run
run
is 'is read while the plan is proven' "$(taken)" "$before"
ok 'and both ways agree' both
for k in 0 3 12 13 15 26; do
	edit $k "$k"
	both >"$W/diff" || diag "$(cat "$W/diff")"
	ok "after edit $k too" test ! -s "$W/diff"
done
done_testing
