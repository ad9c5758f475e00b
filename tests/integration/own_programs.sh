#!/usr/bin/env bash
# The programs that vx runs on its own account (git, the runtime of JS configurations, the tasks' shell) are none that a package or the workspace brings:
# `npm run` and its kind put node_modules/.bin in front of PATH. A git that lies would be a wrong hit.
. "$(dirname "$0")/../lib.sh"
. "$SRC/tests/vx.sh"

workspace
project a <<<"$(cached "mkdir -p dist; cp src/in dist/out; echo a >>$W/ran")"
put p/a/src/in one
printf '* text=auto\n' >.gitattributes
put .gitignore $'dist/\nnode_modules/\n.vx/'
git add . && git commit -qm one
mkdir -p node_modules/.bin tools "$W/npx/node_modules/.bin"
# fake NAME LINE: a program in each of those places that says that it ran, then LINE
fake() {
	local dir
	for dir in node_modules/.bin tools "$W/npx/node_modules/.bin" .; do
		put "$dir/$1" "#!/bin/sh
echo fake-$1 >>$W/fakes
$2"
		chmod +x "$dir/$1"
	done
}
places="$W/npx/node_modules/.bin:$W/ws/node_modules/.bin:node_modules/.bin:$W/ws/tools:tools::.:$PATH"
real_path=$PATH
fakes() { [ ! -e "$W/fakes" ] || sort -u "$W/fakes" | paste -sd' '; rm -f "$W/fakes"; }

# git: it lists the files and says what has changed
fake git 'exit 0'
PATH=$places
for how in '' git; do
	VX_FILES=$how vx run build --all
	is "git (${how:-own reader}): the run passes" "$rc" 0
	put p/a/src/in "two $how"
	VX_FILES=$how vx run build --all
	is "git (${how:-own reader}): an edit is seen" "$rc $(cat p/a/dist/out)" "0 two $how"
done
ran >/dev/null
put p/a/src/in three
vx run build --affected=HEAD
is 'git: what has changed is seen' "$rc $(ran)" '0 a'
git=$(PATH=$real_path command -v git)
vx info
like 'git: vx info names the real one' "$out" "git .*\\($git\\)"
is 'git: no fake has run' "$(fakes)" ''

# A program that git looks for by itself: a clean filter, which is run on what has changed
PATH=$real_path
fake myfilter cat
git config filter.mine.clean myfilter
git config filter.mine.required true
printf '*.f filter=mine\n' >.gitattributes
mkdir -p "$W/outside" && put "$W/outside/myfilter" $'#!/bin/sh\nexec cat' && chmod +x "$W/outside/myfilter"
put p/a/src/x.f one
PATH=$W/outside:$PATH git add . && PATH=$W/outside:$PATH git commit -qm two
put p/a/src/x.f two
PATH=$W/npx/node_modules/.bin:$W/ws/node_modules/.bin:tools:$W/outside:$real_path
for how in "" git; do VX_FILES=$how vx run build --affected=HEAD; is "filters (${how:-own reader}): the run passes" "$rc $err" '0 '; done
is 'filters of git: no fake has run' "$(fakes)" ''
PATH=$real_path
git config --unset filter.mine.clean
git config --unset filter.mine.required

# sh: the tasks' shell
fake sh 'exec /bin/sh "$@"'
PATH=$places
ran >/dev/null
vx run build --all --force
is 'sh: the task runs' "$rc $(ran)" '0 a'
is 'sh: no fake has run' "$(fakes)" ''

# bun and node
PATH=$real_path
rm p/a/vx.json && put p/a/vx.config.mjs "export default { tasks: { build: { exec: { command: 'echo js >>$W/ran' } } } }"
fake bun 'exit 0'
fake node 'exit 0'
if command -v node >/dev/null; then
	PATH=$places
	vx run build --all
	is 'node: the configuration is evaluated' "$rc $(ran)" '0 js'
	is 'node: no fake has run' "$(fakes)" ''
fi
PATH=$real_path
mkdir "$W/few" && for p in git sh cat echo; do ln -s "$(command -v $p)" "$W/few/"; done
out=$(PATH=$W/ws/node_modules/.bin:$W/few "$VX" run build --all --force 2>&1)
like 'none but that of a package: refused' "$out" "p/a/vx.config.mjs cannot be evaluated: $W/ws/node_modules/.bin/bun belongs to a package or to the workspace"
like 'none but that of a package: what to do' "$out" 'have bun, or node 22.6 or later, from elsewhere on PATH'
is 'none but that of a package: it has not run' "$(fakes)" ''
done_testing
