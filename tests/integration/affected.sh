#!/usr/bin/env bash
# --affected, [ref] and [a...b] with real git: merge base, untracked files, shallow clones, linked worktrees, submodules, a workspace below the top.
. "$(dirname "$0")/../lib.sh"
. "$SRC/tests/vx.sh"

# plan ARGS...: ids of the tasks that would run for `build`, on one line; what was said instead when nothing would
plan() {
	run "$VX" run build "$@" --dry=json
	if [ "$rc" = 0 ] && [ "${out:0:1}" = '{' ] && [ -z "$err" ]; then
		python3 -c 'import json, sys; print(" ".join(sorted(t["project"] for t in json.load(sys.stdin)["tasks"] if t["requested"])))' <<<"$out"
	else
		[ "$rc" = 0 ] && err=${err#vx run: }
		echo "$rc: $err"
	fi
}
unset GITHUB_BASE_REF TURBO_SCM_BASE
command -v python3 >/dev/null || skip_all 'no python3'

workspace "$W/up/ws"
for p in a b c; do
	up=()
	[ $p != b ] || up=(a)
	project $p "${up[@]}" <<<"$(cached true '' '"dependsOn": ["^build"]')"
	put p/$p/src/x 1
done
git add -A
git commit -qm one
git checkout -qb work
put p/a/src/x 2
git commit -qam two
put p/c/src/x 2
git commit -qam three

is '[HEAD]: nothing' "$(plan --filter '[HEAD]')" '0: nothing affected since HEAD'
is '[HEAD~1]' "$(plan --filter '[HEAD~1]')" c
is '[HEAD~2]' "$(plan --filter '[HEAD~2]')" 'a c'
is 'dependents of what changed' "$(plan --filter '...[HEAD~2]')" 'a b c'
is '[a...b]' "$(plan --filter '[HEAD~2...HEAD~1]')" a
is 'a name and a revision: it depends on what changed' "$(plan --filter 'b...[HEAD~2]')" b
is '--affected takes main' "$(plan --affected)" 'a b c'
is '--affected=REV' "$(plan --affected=HEAD~1)" c
vx run build --filter '[HEAD]' --dry=json
is 'JSON is JSON, also of nothing' "$(python3 -c 'import json, sys; print(json.load(sys.stdin)["tasks"])' <<<"$out")" '[]'
vx run build --affected=HEAD
is 'else nothing is a line' "$rc $out$err" '0 nothing affected since HEAD'
put p/b/src/new 1
is 'untracked files count' "$(plan --filter '[HEAD]')" b
is 'and for --affected' "$(plan --affected=HEAD)" b
is 'but not in a range' "$(plan --filter '[HEAD~1...HEAD]')" c
put .gitignore $'dist/\nnew'
git commit -qam ignore
is 'ignored ones do not' "$(plan --filter '[HEAD]')" '0: nothing affected since HEAD'
git rm -q p/c/src/x
is 'a removed file' "$(plan --filter '[HEAD]')" c
git reset -q --hard
git mv p/a/src/x p/c/src/moved
is 'a moved one: both ends' "$(plan --filter '[HEAD]')" 'a c'
git reset -q --hard
git checkout -q main
put p/b/src/x 9
git commit -qam main2
git checkout -q work
is 'from the merge base: what main did since is not ours' "$(plan --affected=main)" 'a b c'
is 'so is [ref]' "$(plan --filter '[main]')" 'a c'
run "$VX" run build --affected=main --dry
like 'with its reason' "$out" 'a#build  because p/a/src/x changed'
like 'and that of a dependent' "$out" 'b#build  because depends on a#build: p/a/src/x changed'
is 'an unknown revision' "$(plan --filter '[nowhere]')" "$(printf '1: vx run: git knows no revision "nowhere" (git branch -a lists branches; git fetch gets the ones of the remote)')"
put package-lock.json '{}'
is 'a lockfile: everything' "$(plan --filter '[HEAD]')" 'a b c'
is 'and for --affected' "$(plan --affected=HEAD)" 'a b c'
rm package-lock.json

# a linked worktree
git worktree add -q "$W/up/linked" main
cd "$W/up/linked" || exit 1
put p/a/src/x 7
is 'a worktree' "$(plan --filter '[HEAD]')" a
is 'a worktree, by its own branch' "$(plan --affected=HEAD~1)" 'a b'
cd "$W/up/ws" || exit 1

# a shallow clone
git clone -q --depth 1 --no-single-branch "file://$W/up/ws" "$W/up/shallow" 2>/dev/null
cd "$W/up/shallow" || exit 1
git checkout -q work
like 'a shallow clone without the base is told how to get it' "$(plan --affected)" '1: vx run: this is a shallow clone.*git fetch --unshallow'
like 'so is one without the commit' "$(plan --filter '[HEAD~1]')" '1: vx run: this is a shallow clone.*git fetch --unshallow'
is 'what it has is enough for HEAD' "$(plan --filter '[HEAD]')" '0: nothing affected since HEAD'
git fetch -q --unshallow
is 'and after that it works' "$(plan --affected=origin/main)" 'a b c'

# a pull request in GitHub Actions: the branch of the remote, though one here has its name
export GITHUB_BASE_REF=main
is 'the flag goes before GITHUB_BASE_REF' "$(plan --affected=HEAD)" '0: nothing affected since HEAD'
put p/a/src/x 5
git commit -qam four
git update-ref refs/remotes/origin/base HEAD~1
git branch -q base HEAD
is 'GITHUB_BASE_REF is a branch of origin' "$(GITHUB_BASE_REF=base plan --affected)" 'a b'
git branch -q base2 HEAD~1
is 'else one that is here' "$(GITHUB_BASE_REF=base2 plan --affected)" 'a b'
is 'empty outside of pull requests: as if it were not there' "$(GITHUB_BASE_REF='' plan --affected)" 'a b'
like 'one that was not fetched' "$(GITHUB_BASE_REF=gone plan --affected)" '1: vx run: git knows no revision "origin/gone".*git fetch'
is 'TURBO_SCM_BASE goes before it' "$(GITHUB_BASE_REF=gone TURBO_SCM_BASE=HEAD~1 plan --affected)" 'a b'
unset GITHUB_BASE_REF

# a repository of another user's, as in containers of CI
if [ "$(id -u)" = 0 ]; then
	chown -R 1234 "$W/up/shallow"
	like "git's own refusal is passed on" "$(HOME=/nonexistent GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_NOSYSTEM=1 plan --affected=HEAD)" '1: vx run: git refuses to work in .*dubious ownership.*safe.directory'
	chown -R 0 "$W/up/shallow"
else
	skip "git's own refusal is passed on" 'needs root'
fi

# a submodule inside a project
git init -q -b main "$W/up/module"
git -C "$W/up/module" commit -q --allow-empty -m m1
cd "$W/up/ws" || exit 1
git -c protocol.file.allow=always submodule --quiet add "$W/up/module" p/c/src/module 2>/dev/null
git commit -qam submodule
is 'a submodule as it was' "$(plan --filter '[HEAD]')" '0: nothing affected since HEAD'
git -C p/c/src/module commit -q --allow-empty -m m1a
is 'another commit of the same files' "$(plan --filter '[HEAD]')" '0: nothing affected since HEAD'
git -C p/c/src/module reset -q --hard HEAD~1
put p/c/src/module/m 2
git -C p/c/src/module add m
git -C p/c/src/module commit -q -m m2
is 'another commit of it' "$(plan --filter '[HEAD]')" c
is 'and for --affected' "$(plan --affected=HEAD)" c
git -C p/c/src/module reset -q --hard HEAD~1
put p/c/src/module/new x
is 'an untracked file in it' "$(plan --filter '[HEAD]')" c
is 'and for --affected, with its reason' "$("$VX" run build --affected=HEAD --dry | grep -c 'c#build  because p/c/src/module/new changed')" 1
rm p/c/src/module/new
git -C p/c/src/module commit -q --allow-empty -m m3
git commit -qam 'submodule at m3'
put p/c/src/x again
rm -rf .git/modules/p/c/src/module/objects/*
is 'a commit that the submodule does not have: everything' "$("$VX" run build --affected=HEAD~1 --dry | grep -c 'because the submodule p/c/src/module does not have its commit of HEAD~1')" 3

# configurations that are programs
new_repo "$W/programs"
put package.json '{"name":"root","private":true,"workspaces":["p/*"]}'
for p in a b; do
	put p/$p/package.json "{\"name\":\"$p\"}"
	put p/$p/vx.config.mjs "import { c } from '../../shared/$p.mjs'
export default { tasks: { build: { exec: { command: c }, cache: { inputs: { files: ['src/**'] }, outputs: { files: [] } } } } }"
	put shared/$p.mjs "export const c = 'one'"
done
put .gitignore $'.vx/\n'
git add -A
git commit -qm one
if node --version >/dev/null 2>&1; then
	is 'programs as they were' "$(plan --affected=HEAD)" '0: nothing affected since HEAD'
	put shared/a.mjs "export const c = 'two'"
	is 'a file that one of them imports' "$(plan --affected=HEAD)" a
	is 'and why' "$("$VX" run build --affected=HEAD --dry | grep -c 'a#build  because shared/a.mjs changed, which p/a/vx.config.mjs reads')" 1
	is 'the same from what is remembered of the evaluation' "$(plan --affected=HEAD)" a
	git checkout -q .
	put p/b/vx.config.mjs "$(cat p/b/vx.config.mjs) // the same"
	is 'a program itself' "$(plan --affected=HEAD)" b
	put p/b/vx.config.mjs "import fs from 'node:fs'; fs.readdirSync('p')
$(git show HEAD:p/b/vx.config.mjs)"
	git add -A
	git commit -qm reads
	put p/new x
	is 'what code reads while it runs was read for all' "$(plan --affected=HEAD)" 'a b'
	rm p/new
	git rm -q p/a/vx.config.mjs
	put p/a/vx.json "$(cached true)"
	is 'a program that is gone' "$(plan --affected=HEAD)" a
	# nothing of the commit is run
	git reset -q --hard
	rm p/a/vx.json
	put p/a/vx.config.mjs "import fs from 'node:fs'; fs.writeFileSync('$W/ran-it', ''); export default { tasks: {} }"
	git add -A
	git commit -qm evil
	git checkout -q HEAD~1 p/a/vx.config.mjs
	is 'the commit says something else, and is not run' "$(plan --affected=HEAD) $(ls "$W/ran-it" 2>&1 | grep -c 'No such')" 'a 1'
else
	skip 'configurations that are programs' 'no node'
fi

# what git ignores is taken to have been what it is: settings, a configuration, a package that is made
new_repo "$W/ignored"
put package.json '{"name":"root","private":true,"workspaces":["p/*"]}'
put .gitignore $'.vx/\n.npmrc\np/made/\np/b/vx.json\nmanifest.json'
put .npmrc x=1
for p in a b; do
	put p/$p/package.json "{\"name\":\"$p\"}"
	put p/$p/vx.json "$(cached true)"
	put p/$p/src/x 1
done
put manifest.json '{"name":"made"}'
mkdir p/made
ln -s ../../manifest.json p/made/package.json
put p/made/vx.json "$(cached true)"
git add -A
git commit -qm one
put p/a/src/x 2
is 'what git ignores is not compared' "$(plan --affected=HEAD)" a

# turbo.json
new_repo "$W/turbo"
put package.json '{"name":"root","private":true,"packageManager":"npm@10.0.0","workspaces":["p/*"]}'
put package-lock.json '{"lockfileVersion":3,"packages":{}}'
put turbo.json '{"globalDependencies":[".env","global.txt"],"tasks":{"build":{"inputs":["src/**",".env"]}}}'
put .gitignore $'.env\n.vx/\n'
put .env A=1
put global.txt 1
for p in a b; do
	put p/$p/package.json "{\"name\":\"$p\",\"version\":\"1.0.0\",\"scripts\":{\"build\":\"true\"}}"
	put p/$p/src/x 1
	put p/$p/.env 1
done
git add -A
git commit -qm one
put package.json "$(cat package.json) "
is 'turbo.json: white space in the root manifest' "$(plan --affected=HEAD)" '0: nothing affected since HEAD'
put turbo.json '{ "globalDependencies":[".env","global.txt"],"tasks":{"build":{"inputs":["src/**",".env"]},"test":{}}}'
is 'turbo.json: what no task sees' "$(plan --affected=HEAD)" '0: nothing affected since HEAD'
put turbo.json '{"globalDependencies":["global.txt"],"tasks":{"build":{"inputs":["src/**",".env"]}}}'
is 'turbo.json: an ignored file is global no more' "$(plan --affected=HEAD)" 'a b'
git checkout -q .
put global.txt 2
is 'turbo.json: a global file' "$(plan --affected=HEAD)" 'a b'
git checkout -q .
put p/a/turbo.json '{"extends":["//"],"tasks":{"build":{"env":["X"]}}}'
is 'turbo.json: of one package' "$(plan --affected=HEAD)" a

# a workspace below the top of the repository
new_repo "$W/big"
mkdir sub
cp -r "$W/up/ws/p" "$W/up/ws/package.json" sub/
rm -rf sub/p/c/src/module
git add -A
git commit -qm one
put outside x
cd sub || exit 1
is 'below the top: what is outside is nobody'\''s' "$(plan --filter '[HEAD]')" '0: nothing affected since HEAD'
put p/a/src/x 3
is 'below the top' "$(plan --filter '[HEAD]')" a
is 'below the top, --affected' "$(plan --affected=HEAD)" 'a b'
done_testing
