#!/usr/bin/env bash
# No wrong hits: workspaces of every kind that tools know how to hide a change in (flags and settings of git, submodules, sparse checkouts, links, attributes, lists of
# variables, configurations that are programs). Each is run until nothing is left to do, then something changes that the commands read. The run after that
# must leave the outputs that a clean copy of the workspace gets without a cache. Each in three ways: as usual, without the memory of the plan, lists of files by git.
. "$(dirname "$0")/../lib.sh"
[ -x "$VX" ] || skip_all "no $VX"
command -v python3 >/dev/null || skip_all 'no python3'

# conf NAME [MEMBERS] [COMMAND] [INPUTS]: p/NAME/vx.json of one task
all='mkdir -p dist; find src | sort | while read -r f; do stat -c "%n %A" "$f"; if [ -f "$f" ]; then cat "$f"; fi; done >dist/o; cat ../a/dist/o >>dist/o 2>/dev/null; true'
conf() {
	python3 -c 'import json, sys; n, more, c, i = sys.argv[1:]; open(f"p/{n}/vx.json", "w").write("""{"tasks":{"build":{%s"exec":{"command":%s},"cache":{"inputs":{%s},"outputs":{"files":["dist/**"]}}}}}""" % (more, json.dumps(c), i))' \
		"$1" "${2:-}" "${3:-$all}" "${4:-\"files\":[\"src/**\"]}"
}
base() {
	mkdir -p p/a/src/d p/b/src/d
	git init -q -b main .
	put package.json '{"name":"root","private":true,"workspaces":["p/*"]}'
	printf 'dist/\n.vx/\nnode_modules\n' >.gitignore
	for x in a b; do
		put p/$x/package.json "{\"name\":\"$x\",\"version\":\"1.0.0\"}"
		put p/$x/src/f "hello-$x"
		put p/$x/src/d/g deep
	done
	put p/b/package.json '{"name":"b","version":"1.0.0","dependencies":{"a":"workspace:*"}}'
	conf a
	conf b '"dependsOn":["^build"],'
	git add -A
	git commit -qm 1
}
# sub [DIR]: a submodule there
sub() {
	rm -rf "$W/other"
	git init -q -b main "$W/other"
	(cd "$W/other" && echo one >m && git add -A && git commit -qm s)
	git -c protocol.file.allow=always submodule add -q "$W/other" "${1:-p/a/src/sub}"
	git commit -qm sub
}
# tb TURBO-JSON SCRIPT: the same workspace by a turbo.json; package a builds by SCRIPT
tb() {
	rm -f p/*/vx.json
	put turbo.json "$1"
	python3 -c 'import json, sys; json.dump({"name": "a", "version": "1.0.0", "scripts": {"build": sys.argv[1]}}, open("p/a/package.json", "w"))' "$2"
}
# js TEXT: p/a/vx.config.mjs, whose task writes the value of X into dist/o
js() {
	rm p/a/vx.json
	printf '%s\nexport default {tasks:{build:{exec:{command:"mkdir -p dist; echo "+X+" >dist/o"},cache:{inputs:{files:["src/**"]},outputs:{files:["dist/**"]}}}}};\n' "$1" >p/a/vx.config.mjs
}
outputs() { (cd "$1" && find p -path '*/dist/*' -printf '%p %y %m %l\n' | sort && find p -path '*/dist/*' -type f | sort | xargs -r cat); }

VARS=
# seen NAME SETUP CHANGE: $VARS are set in the environment from the change on
seen() {
	local way name=$1 run rc want
	for way in '' VX_NO_SNAPSHOT=1 VX_FILES=git; do
		chmod -R u+rwx "$W/ws" "$W/clean" 2>/dev/null
		rm -rf "$W/ws" "$W/clean" "$HOME/.config"
		mkdir "$W/ws"
		cd "$W/ws" || exit 1
		{ base; eval "$2"; } >"$W/log" 2>&1
		sleep 0.1
		for run in 1 2 3; do env $way "$VX" run build --all >"$W/log" 2>&1; done
		grep -q '^cache  *[12] up to date' "$W/log" || diag "$name: nothing is up to date before the change" "$(tail -3 "$W/log")"
		eval "$3" >/dev/null 2>&1
		env $way $VARS "$VX" run build --all >"$W/log" 2>&1
		rc=$?
		cp -a "$W/ws" "$W/clean"
		rm -rf "$W"/clean/.vx "$W"/clean/p/*/dist
		(cd "$W/clean" && env $way $VARS "$VX" run build --all --no-cache >/dev/null 2>&1)
		want=$?
		if [ $rc != $want ]; then
			fail "$name ${way:-as usual}" "exit $rc, clean $want" "$(tail -3 "$W/log")"
		elif diff <(outputs "$W/ws") <(outputs "$W/clean") >"$W/diff"; then
			pass "$name ${way:-as usual}"
		else
			fail "$name ${way:-as usual}" "$(head -5 "$W/diff")" "$(tail -3 "$W/log")"
		fi
		cd /
	done
}

# ---- git, links, modes ----
seen content 'true' 'echo changed >p/a/src/f'
seen exec 'true' 'chmod +x p/a/src/f'
seen same-size-mtime 'true' 't=$(stat -c %y p/a/src/f); echo HELLO-a >p/a/src/f; touch -d "$t" p/a/src/f'
seen assume 'git update-index --assume-unchanged p/a/src/f' 'echo HELLO-a >p/a/src/f'
seen skipwt 'git update-index --skip-worktree p/a/src/f' 'echo HELLO-a >p/a/src/f'
seen ignorestat 'git config core.ignoreStat true; git add -A; git commit -qm x --allow-empty; echo z >p/a/src/z; git add -A' 'echo HELLO-a >p/a/src/f; echo Z >p/a/src/z'
seen trustctime 'git config core.trustctime false; git config core.checkStat minimal' 't=$(stat -c %y p/a/src/f); echo HELLO-a >p/a/src/f; touch -d "$t" p/a/src/f'
seen ita 'echo new >p/a/src/n; git add -N p/a/src/n' 'echo NEW >p/a/src/n'
seen dirlink 'true' 'rm -rf "$W/moved"; mv p/a/src/d "$W/moved"; ln -s "$W/moved" p/a/src/d'
seen srclink 'true' 'mv p/a/src p/a/src2; ln -s src2 p/a/src'
seen outlink 'true' 'mv p/a/dist p/a/dist2; ln -s dist2 p/a/dist; echo tamper >>p/a/dist2/o'
seen outlink2 'true' 'mv p/a/dist p/a/dist2; ln -s dist2 p/a/dist'
seen outtamper 'true' 't=$(stat -c %y p/a/dist/o); sed -i s/hello/HELLO/ p/a/dist/o; touch -d "$t" p/a/dist/o'
seen outextra 'true' 'echo x >p/a/dist/extra; mkdir p/b/dist/e'
seen autocrlf 'git config core.autocrlf true; printf "x\r\ny\r\n" >p/a/src/f; git add -A; git commit -qm c' 'printf "x\ny\n" >p/a/src/f; git add -A'
seen autocrlf2 'printf "x\ny\n" >p/a/src/f; git add -A; git commit -qm c; ' 'git config core.autocrlf true; rm p/a/src/f; git checkout p/a/src/f'
seen attr 'printf "x\ny\n" >p/a/src/f; git add -A; git commit -qm c; ' 'echo "* text eol=crlf" >.gitattributes; rm p/a/src/f; git checkout p/a/src/f'
seen infoattr 'printf "x\ny\n" >p/a/src/f; git add -A; git commit -qm c; ' 'mkdir -p .git/info; echo "* text eol=crlf" >.git/info/attributes; rm p/a/src/f; git checkout p/a/src/f'
seen smudge 'git config filter.u.smudge "tr a-z A-Z"; git config filter.u.clean "tr A-Z a-z"; echo "f filter=u" >p/a/src/.gitattributes; git add -A; git commit -qm c; rm p/a/src/f; git checkout p/a/src/f' 'git config filter.u.smudge cat; rm p/a/src/f; git checkout p/a/src/f'
seen caseonly 'git config core.ignoreCase true' 'mv p/a/src/f p/a/src/F'
seen rmcached 'git rm -q --cached p/a/src/f' 'echo HELLO-a >p/a/src/f'
seen excl 'echo n >p/a/src/n' 'mkdir -p .git/info; echo n >>.git/info/exclude; echo N >p/a/src/n; echo q >p/a/src/f'
seen unignore 'echo "n" >p/a/.gitignore; echo 1 >p/a/src/n' 'echo >p/a/.gitignore'
seen lock-add 'conf a "" "mkdir -p dist; cat ../../yarn.lock >dist/o || true"' 'echo l >yarn.lock'
seen lock-link 'echo l >L; ln -s L yarn.lock; conf a "" "mkdir -p dist; cat ../../yarn.lock >dist/o || true"' 'echo m >L'
seen pkglink 'mv p/a/package.json p/a/real.json; ln -s real.json p/a/package.json; conf a "" "mkdir -p dist; cat package.json >dist/o"' 'sed -i s/1.0.0/1.0.1/ p/a/real.json'
seen vxlink 'mv p/a/vx.json q.json; ln -s ../../q.json p/a/vx.json' 'sed -i "s/mkdir -p dist;/mkdir -p dist; echo x >dist\/z;/" q.json'
seen submodule 'sub' 'echo two >p/a/src/sub/m'
seen submodule-untracked 'sub' 'echo two >p/a/src/sub/n'
seen submodule-ignore 'sub; git config -f .gitmodules submodule.p/a/src/sub.ignore all; git config diff.ignoreSubmodules all; git add -A; git commit -qm sub' 'echo two >p/a/src/sub/m'
seen submodule-commit 'sub' '(cd p/a/src/sub; echo three >m; git commit -qam n)'
seen submodule-deinit 'sub' 'git submodule deinit -qf p/a/src/sub; echo loose >p/a/src/sub/m'
seen submodule-loose 'sub;git submodule deinit -qf p/a/src/sub; echo loose >p/a/src/sub/m' 'echo tight >p/a/src/sub/m'
seen embedded 'mkdir p/a/src/e; (cd p/a/src/e; git init -q; echo 1 >x)' 'echo 2 >p/a/src/e/x'
seen embedded-becomes 'mkdir p/a/src/e; echo 1 >p/a/src/e/x' '(cd p/a/src/e; git init -q; echo 2 >x; git add -A; git commit -qm x)'
seen embedded-ignored-inside 'mkdir p/a/src/e; (cd p/a/src/e; git init -q; echo 1 >x; echo y>.gitignore; echo 1 >y)' 'echo x >>p/a/src/e/x; echo 2 >p/a/src/e/y'
seen sparse 'git sparse-checkout set --no-cone "/*" "!/p/a/src/d"' 'mkdir -p p/a/src/d; echo back >p/a/src/d/g'
seen sparse-cone 'git sparse-checkout set p/b p/a/src; git sparse-checkout reapply' 'git sparse-checkout disable; echo x >p/a/src/d/g'
seen sparse-index 'git sparse-checkout init --cone --sparse-index; git sparse-checkout set p/a p/b' 'echo q >p/a/src/d/g'
seen split 'git update-index --split-index' 'echo HELLO-a >p/a/src/f'
seen fsmonitor 'git config core.fsmonitor true; git status' 'echo HELLO-a >p/a/src/f'
seen fsmonhook 'printf "#!/bin/sh\nprintf token\\\\0\n" >.git/hooks/fsm; chmod +x .git/hooks/fsm; git config core.fsmonitor .git/hooks/fsm; git config core.fsmonitorHookVersion 2; git update-index --fsmonitor; git status; git status' 'echo HELLO-a >p/a/src/f; echo n >p/a/src/n'
seen untracked-cache 'git update-index --untracked-cache; git status; git status' 'echo n >p/a/src/n'
seen manyfiles 'git config feature.manyFiles true; git config index.skipHash true; git update-index --index-version 4; git add -A; git status' 'echo HELLO-a >p/a/src/f; echo n >p/a/src/d/n'
seen worktree-cfg 'git config extensions.worktreeConfig true; git config --worktree core.autocrlf false; printf "x\n" >p/a/src/f; git add -A; git commit -qm c' 'git config --worktree core.autocrlf true; rm p/a/src/f; git checkout p/a/src/f'
seen symlinks-false 'ln -s f p/a/src/l; git add -A; git commit -qm l; git config core.symlinks false; rm p/a/src/l; git checkout p/a/src/l' 'printf g >p/a/src/l'
seen symlink-target-in 'echo t1 >p/a/t; ln -s ../t p/a/src/l' 'ln -sfn ../package.json p/a/src/l'
seen conflict 'git checkout -qb o; echo o >p/a/src/f; git commit -qam o; git checkout -q main; echo m >p/a/src/f; git commit -qam m; git merge o || true' 'echo HELLO >p/a/src/f'
seen rename 'true' 'mv p/a/src/f p/a/src/ff'
seen swapfiles 'echo other-1 >p/a/src/h; touch -d @1700000000 p/a/src/f p/a/src/h; git add -A' 'mv p/a/src/f p/a/x; mv p/a/src/h p/a/src/f; mv p/a/x p/a/src/h; touch -d @1700000000 p/a/src/f p/a/src/h'
seen nested 'true' 'mkdir -p p/a/src/d2; echo "{\"name\":\"nest\"}" >p/a/src/d2/package.json; echo "{\"name\":\"root\",\"private\":true,\"workspaces\":[\"p/*\",\"p/*/src/d2\"]}" >package.json; echo q >p/a/src/f'
seen depedge 'true' 'echo "{\"name\":\"b\",\"version\":\"1.0.0\"}" >p/b/package.json'
seen nonutf 'printf 1 >p/a/src/$(printf "\377x")' 'printf 2 >p/a/src/$(printf "\377x")'
seen newline 'printf 1 >"p/a/src/a
b"' 'printf 2 >"p/a/src/a
b"'

# ---- variables, files of the workspace, defaults ----
VARS=X=2
seen env-input 'conf a "" "mkdir -p dist; echo \$X >dist/o" "\"files\":[\"src/**\"],\"env\":[\"X\"]"' true
seen env-define 'conf a "" "mkdir -p dist; echo \$X >dist/o" "\"files\":[\"src/**\"],\"env\":[\"X\"]"; sed -i "s/\"exec\":{/\"exec\":{\"env\":{\"define\":{\"X\":\"9\"}},/" p/a/vx.json' true
VARS=X=
seen env-empty 'conf a "" "mkdir -p dist; echo \${X-unset} >dist/o" "\"files\":[\"src/**\"],\"env\":[\"X\"]"' true
VARS=
seen wsfile 'echo 1 >base.json; conf a "" "mkdir -p dist; cat ../../base.json >dist/o" "\"files\":[\"src/**\"],\"workspaceFiles\":[\"base.json\"]"' 'echo 2 >base.json'
seen wsfile-absent 'conf a "" "mkdir -p dist; cat ../../base.json >dist/o||true" "\"files\":[\"src/**\"],\"workspaceFiles\":[\"base.json\"]"' 'echo 2 >base.json'
seen wsfile-glob 'mkdir -p cfg/x; echo 1 >cfg/x/y; conf a "" "mkdir -p dist; cat ../../cfg/*/* >dist/o||true" "\"files\":[\"src/**\"],\"workspaceFiles\":[\"cfg/*/*\"]"' 'mkdir cfg/z; echo 2 >cfg/z/w'
seen wsfile-project 'conf a "" "mkdir -p dist; cat ../b/src/f >dist/o" "\"files\":[\"src/**\"],\"workspaceFiles\":[\"p/b/src/**\"]"' 'echo 2 >p/b/src/f'
seen wsfile-link 'echo 1 >t; ln -s t base.json; conf a "" "mkdir -p dist; cat ../../base.json >dist/o" "\"files\":[\"src/**\"],\"workspaceFiles\":[\"base.json\",\"t\"]"' 'echo 2 >t'
seen wsfile-sub 'git init -q sm; (cd sm; echo 1 >x; git add -A; git commit -qm x); conf a "" "mkdir -p dist; cat ../../sm/x >dist/o" "\"files\":[\"src/**\"],\"workspaceFiles\":[\"sm/**\"]"' 'echo 2 >sm/x'
seen defaults 'echo "{\"tasks\":{\"build\":{\"exec\":{\"env\":{\"define\":{\"Q\":\"1\"}}}}}}" >vx.workspace.json; conf a "" "mkdir -p dist; echo \$Q >dist/o"' 'sed -i s/1/2/ vx.workspace.json'
seen defaults-script 'rm p/a/vx.json; echo "{\"tasks\":{\"build\":{\"cache\":{\"inputs\":{\"files\":[\"src/**\"]},\"outputs\":{\"files\":[\"dist/**\"]}}}}}" >vx.workspace.json; echo "{\"name\":\"a\",\"version\":\"1.0.0\",\"scripts\":{\"build\":\"mkdir -p dist; echo 1 >dist/o\"}}" >p/a/package.json' 'sed -i "s/echo 1/echo 2/" p/a/package.json'
seen defaults-new 'true' 'echo "{\"tasks\":{\"build\":{\"exec\":{\"env\":{\"define\":{\"Q\":\"1\"}}}}}}" >vx.workspace.json; echo k >p/a/src/f'
seen cmd 'true' 'sed -i "s/mkdir -p dist;/mkdir -p dist; echo x >dist\/z;/" p/a/vx.json'
seen outs 'true' 'sed -i "s/dist\/\*\*/dist\/o/" p/a/vx.json'
seen newvx 'conf a "" "mkdir -p dist; cat src/f >dist/o"' 'mv p/a/vx.json p/a/vx.jsonc; echo "// c" >>p/a/vx.jsonc; sed -i "s/cat src/cat src\/d\/g src/" p/a/vx.jsonc'
VARS=
# ---- configurations that are programs ----
seen js-module 'js "import {X} from \"./lib.mjs\";"; echo "export const X = 1" >p/a/lib.mjs' 'echo "export const X = 2" >p/a/lib.mjs'
pre() { put "$1/package.json" "{\"name\":\"pre\",\"type\":\"module\",\"exports\":\"./$2.js\"}"; put "$1/$2.js" "export const X = '$2'"; }
seen js-exports 'js "import {X} from \"pre\";"; pre node_modules/pre two; pre node_modules/pre one' 'sed -i s/one/two/ node_modules/pre/package.json'
seen js-nearer 'js "import {X} from \"pre\";"; pre node_modules/pre one' 'pre p/a/node_modules/pre two'
seen js-exists 'js "import fs from \"fs\"; const X = fs.existsSync(new URL(\"./flag\", import.meta.url));"' 'touch p/a/flag'
seen js-tree 'js "import fs from \"fs\"; const X = fs.readdirSync(new URL(\"./src\", import.meta.url), {recursive: true}).length;"' 'touch p/a/src/d/more'
VARS=Q=2
seen js-env 'js "const X = process.env.Q;"' true
seen js-env-all 'js "const X = {...process.env}.Q;"' true
VARS=

# ---- turbo.json ----
T='{"tasks":{"build":{"dependsOn":["^build"],"outputs":["dist/**"]}}}'
seen t-content "tb '$T' 'mkdir -p dist; cat src/f >dist/o'" 'echo n >p/a/src/f'
seen t-globaldep "tb '{\"globalDependencies\":[\".env\",\"cfg/**\"],\"tasks\":{\"build\":{\"outputs\":[\"dist/**\"]}}}' 'mkdir -p dist; cat ../../.env ../../cfg/* >dist/o;true'; echo .env >>.gitignore; echo 1 >.env; mkdir cfg; echo 1 >cfg/x" 'echo 2 >.env'
seen t-globaldep2 "tb '{\"globalDependencies\":[\"cfg/**\"],\"tasks\":{\"build\":{\"outputs\":[\"dist/**\"]}}}' 'mkdir -p dist; cat ../../cfg/* >dist/o;true'; mkdir cfg; echo 1 >cfg/x" 'echo 2 >cfg/y'
seen t-ignored-in "tb '{\"tasks\":{\"build\":{\"inputs\":[\"\$TURBO_DEFAULT\$\",\".env\"],\"outputs\":[\"dist/**\"]}}}' 'mkdir -p dist; cat .env >dist/o;true'; echo .env >>.gitignore; echo 1 >p/a/.env" 'echo 2 >p/a/.env'
seen t-ignored-glob "tb '{\"tasks\":{\"build\":{\"inputs\":[\"\$TURBO_DEFAULT\$\",\".env*\"],\"outputs\":[\"dist/**\"]}}}' 'mkdir -p dist; cat .env* >dist/o;true'; echo \".env*\" >>.gitignore; echo 1 >p/a/.env" 'echo 2 >p/a/.env.local'
seen t-root-in "tb '{\"tasks\":{\"build\":{\"inputs\":[\"\$TURBO_ROOT\$/x.json\"],\"outputs\":[\"dist/**\"]}}}' 'mkdir -p dist; cat ../../x.json >dist/o;true'" 'echo 2 >x.json'
seen t-dotdot "tb '{\"tasks\":{\"build\":{\"inputs\":[\"../b/src/**\"],\"outputs\":[\"dist/**\"]}}}' 'mkdir -p dist; cat ../b/src/* >dist/o;true'" 'echo 2 >p/b/src/new'
seen t-script "tb '$T' 'mkdir -p dist; echo 1 >dist/o'" 'sed -i "s/echo 1/echo 2/" p/a/package.json'
VARS=Q=3
seen t-extends-env "tb '$T' 'mkdir -p dist; echo \$Q >dist/o'; echo '{\"extends\":[\"//\"],\"tasks\":{\"build\":{\"env\":[\"Q\"]}}}' >p/a/turbo.json" 'true'
seen t-wild "tb '{\"tasks\":{\"build\":{\"env\":[\"Q*\"],\"outputs\":[\"dist/**\"]}}}' 'mkdir -p dist; echo \$Q >dist/o'" true
seen t-global-env "tb '{\"globalEnv\":[\"Q*\"],\"tasks\":{\"build\":{\"outputs\":[\"dist/**\"]}}}' 'mkdir -p dist; echo \$Q >dist/o'" true
seen t-framework "tb '$T' 'mkdir -p dist; echo \$NEXT_PUBLIC_Q >dist/o'; sed -i 's/\"scripts\"/\"dependencies\":{\"next\":\"1\"},\"scripts\"/' p/a/package.json" true
VARS=NEXT_PUBLIC_Q=3
seen t-framework "tb '$T' 'mkdir -p dist; echo \$NEXT_PUBLIC_Q >dist/o'; sed -i 's/\"scripts\"/\"dependencies\":{\"next\":\"1\"},\"scripts\"/' p/a/package.json" true
VARS=
seen t-late "tb '{\"tasks\":{\"gen\":{\"outputs\":[\"src/gen.ts\"]},\"build\":{\"dependsOn\":[\"gen\"],\"outputs\":[\"dist/**\"]}}}' 'mkdir -p dist; cat src/* >dist/o; true'; sed -i 's/\"scripts\":{/&\"gen\":\"cat ..\\/..\\/seed >src\\/gen.ts\",/' p/a/package.json; echo 1 >seed; sed -i 's/\"gen\":{/&\"inputs\":[\"\$TURBO_ROOT\$\\/seed\"],/' turbo.json; cat turbo.json" 'echo 2 >seed; rm p/a/src/gen.ts'
seen t-dotEnv "tb '{\"globalDotEnv\":[\".env\"],\"pipeline\":{\"build\":{\"outputs\":[\"dist/**\"]}}}' 'mkdir -p dist; cat ../../.env >dist/o'; echo .env >>.gitignore; echo 1 >.env" 'echo 2 >.env'
seen t-dotEnv2 "tb '{\"pipeline\":{\"build\":{\"dotEnv\":[\".env\"],\"outputs\":[\"dist/**\"]}}}' 'mkdir -p dist; cat .env >dist/o'; echo .env >>.gitignore; echo 1 >p/a/.env" 'echo 2 >p/a/.env'

done_testing
