#!/usr/bin/env bash
# npm, Yarn, Bun and pnpm workspaces; scopes; odd names of files and directories.
. "$(dirname "$0")/../lib.sh"
. "$SRC/tests/vx.sh"

# members DIR...: a project in each, named by its last part, that says so
members() {
	local d
	for d in "$@"; do
		put "$d/package.json" "{ \"name\": \"$(basename "$d")\", \"version\": \"1.0.0\" }"
		put "$d/vx.json" <<<"$(task "echo $(basename "$d") >>$W/ran")"
	done
}
fresh() { new_repo "$W/ws$((++n))"; : >"$W/ran"; }
n=0

fresh
put package.json '{ "workspaces": ["packages/*", "tools/one", "!packages/not"] }'
members packages/a packages/b packages/not packages/a/deep tools/one tools/two
vx run build --all
is 'npm: globs, a literal, a negation' "$rc $(ran)" '0 a b one'
put package-lock.json '{}'
vx run build --all
is 'npm: with its lockfile' "$rc $(ran)" '0 a b one'
rm package-lock.json
put yarn.lock ''
vx run build --all
is 'Yarn' "$rc $(ran)" '0 a b one'
rm yarn.lock
put package.json '{ "workspaces": { "packages": ["packages/**"] } }'
put bun.lock '{}'
members packages/b/node_modules/dep
vx run build --all
is 'Bun, {packages}, **, node_modules never entered' "$rc $(ran)" '0 a b deep not'
fresh
put pnpm-workspace.yaml 'packages:
  - "packages/*"
  - "!**/not"
  - apps/**'
put package.json '{ "name": "root" }'
members packages/a packages/not apps/x/y
vx run build --all
is 'pnpm' "$rc $(ran)" '0 a y'
put package.json $'\xef\xbb\xbf{ "name": "root",\r\n "version": "1.0.0" }\r'
vx run build --all
is 'a BOM and CRLF' "$rc $(ran)" '0 a y'
fresh
put package.json '{ "name": "single" }'
put vx.json <<<"$(task "echo single >>$W/ran")"
vx run build
is 'a single project' "$rc $(ran)" '0 single'

# scopes
workspace "$W/scopes"
put package.json '{ "name": "root", "workspaces": ["p/*"] }'
put vx.json "{ \"tasks\": { \"lint\": { \"exec\": { \"command\": \"echo root >>$W/ran\" } } } }"
project base <<<"$(task "echo base >>$W/ran")"
project mid base <<<"{ \"tasks\": { \"build\": { \"dependsOn\": [\"^build\"], \"exec\": { \"command\": \"echo mid >>$W/ran\" } } } }"
project top mid <<<"{ \"tasks\": { \"build\": { \"dependsOn\": [\"^build\"], \"exec\": { \"command\": \"echo top >>$W/ran\" } } } }"
put p/scoped/package.json '{ "name": "@s/scoped" }'
put p/scoped/vx.json <<<"$(task "echo scoped >>$W/ran")"
mkdir -p p/mid/sub
cd p/mid/sub || exit 1
vx run build
is 'the project of the current directory, with its dependencies' "$rc $(ran)" '0 base mid'
cd ../../..
vx run build
is 'at the root: all projects, where the root declares no such task' "$rc $(ran)" '0 base mid scoped top'
vx run lint
is "at the root: the root's own task" "$rc $(ran)" '0 root'
vx run '//#lint'
is '//#task' "$rc $(ran)" '0 root'
vx run top#build
is 'pkg#task' "$rc $(ran)" '0 base mid top'
vx run build --filter mid
is '--filter NAME' "$rc $(ran)" '0 base mid'
vx run build --filter scoped
is '--filter of an unscoped name' "$rc $(ran)" '0 scoped'
vx run build --filter base --filter '@s/*'
is 'two filters' "$rc $(ran)" '0 base scoped'
vx -C p/top run build
is '-C DIR before the verb' "$rc $(ran)" '0 base mid top'
vx run build -C p/base
is 'and after it' "$rc $(ran)" '0 base'
vx run build lint --all
is 'two tasks' "$rc $(ran)" '0 base mid root scoped top'
vx run base#build base#build mid#build
is 'nothing runs twice' "$rc $(ran)" '0 base mid'
vx run top#build --exclude-dependencies
is '--exclude-dependencies' "$rc $(ran)" '0 top'

# dependsOn forms and groups
workspace "$W/forms"
project a <<<"{ \"tasks\": { \"gen.x\": { \"exec\": { \"command\": \"echo ax >>$W/ran\" } }, \"gen.y\": { \"exec\": { \"command\": \"echo ay >>$W/ran\" } } } }"
project skip a <<<'{ "tasks": {} }'
project b skip <<<"{ \"tasks\": { \"gen.z\": { \"exec\": { \"command\": \"echo bz >>$W/ran\" } },
	\"all\": { \"dependsOn\": [\"gen.*\", \"^gen.*\", \"nothing.*\"] }, \"one\": { \"dependsOn\": [\"a#gen.x\"], \"exec\": { \"command\": \"echo one >>$W/ran\" } },
	\"up\": { \"dependsOn\": [\"^gen.y\"], \"exec\": { \"command\": \"echo up >>$W/ran\" } } } }"
vx run b#all
is 'patterns, through a project without such tasks; a group runs nothing' "$rc $(ran)" '0 ax ay bz'
vx run b#one
is 'pkg#task as a dependency' "$rc $(ran)" '0 ax one'
vx run b#up
is '^name passes through a project that lacks it' "$rc $(ran)" '0 ay up'

# a group passes keys on
workspace "$W/groups"
project a <<<"{ \"tasks\": {
	\"gen\": { \"exec\": { \"command\": \"mkdir -p gen; cp seed gen/\" }, \"cache\": { \"inputs\": { \"files\": [\"seed\"] }, \"outputs\": { \"files\": [\"gen/**\"] } } },
	\"prepare\": { \"dependsOn\": [\"gen\"] },
	\"build\": { \"dependsOn\": [\"prepare\"], \"exec\": { \"command\": \"echo a >>$W/ran; mkdir -p dist; cp gen/seed dist/\" },
	\"cache\": { \"inputs\": { \"files\": [\"src/**\"] }, \"outputs\": { \"files\": [\"dist/**\"] } } } } }"
printf 'gen/\n' >>.gitignore
put p/a/seed 1
put p/a/src/x x
vx run build --all
vx run build --all
is 'hit' "$rc $(ran)" '0 a'
put p/a/seed 2
vx run build --all
is 'a change before a group reaches behind it' "$rc $(ran) $(cat p/a/dist/seed)" '0 a 2'

# odd names
for root in "with space" "quo'te\"s" $'new\nline' 'dollar$HOME' 'star*[x]' $'high\xff'; do
	shown=$(printf %q "$root")
	workspace "$W/odd/$root"
	project a <<<"$(cached "echo a >>$W/ran; mkdir -p dist; cp -r src dist/")"
	mkdir -p p/a/src
	put "p/a/src/a b" x
	put "p/a/src/q'\"" x
	put p/a/src/$'n\nl' x
	put p/a/src/$'\xff\xfe' x
	git add -A
	vx run build --all
	is "workspace $shown" "$rc $(ran)" '0 a'
	tree p/a/dist | timeless >"$W/before"
	rm -rf p/a/dist
	vx run build --all
	is "workspace $shown: again" "$rc $(ran)" '0 '
	is "workspace $shown: restored" "$(tree p/a/dist | timeless)" "$(cat "$W/before")"
	put p/a/src/$'\xff\xfe' y
	vx run build --all
	is "workspace $shown: a name that is no UTF-8 counts" "$rc $(ran)" '0 a'
done

# a workspace that is a directory of a larger repository, and a worktree
new_repo "$W/large"
put inner/package.json '{ "name": "root", "workspaces": ["p/*"] }'
put outside x
cd inner || exit 1
: >"$W/ran"
project a <<<"$(cached "echo a >>$W/ran; mkdir -p dist; cp src/x dist/")"
put .gitignore 'dist/'
put p/a/src/x x
git add -A ..
git commit -q -m one
vx run build --all
vx run build --all
is 'below the top of a repository' "$rc $(ran)" '0 a'
git worktree add -q "$W/tree" -b other
cd "$W/tree/inner" || exit 1
vx run build --all
is 'a worktree' "$rc $(ran)" '0 a'
vx run build --all
is 'hits' "$rc $(ran)" '0 '

# a build of a turbo.json whose outputs name its own manifest, before git knows the project
workspace "$W/manifest"
put turbo.json '{ "tasks": { "build": { "outputs": ["package.json", "dist/**"] } } }'
put p/a/package.json "{ \"name\": \"a\", \"scripts\": { \"build\": \"echo a >>$W/ran; mkdir -p dist; cp package.json dist/\" } }"
put p/a/package-lock.json '{}'
vx run build --all
is 'a manifest among the outputs is not cleaned' "$rc $(ran) $(test -s p/a/dist/package.json && echo kept)" '0 a kept'
rm -r p/a/dist
vx run build --all
is 'and the task is cached' "$rc $(ran) $(test -s p/a/dist/package.json && echo restored)" '0  restored'
# and once it does, the file is an input too, which the build writes with the same bytes
put p/a/package.json "{ \"name\": \"a\", \"scripts\": { \"build\": \"echo a >>$W/ran; mkdir -p dist; cp package.json dist/; cat dist/package.json >package.json\" } }"
git add -A
vx run build --all
vx run build --all
is 'writing it with the same bytes is no change of it' "$rc $(ran) $err" '0 a '

# a workspace that is the root of the file system
if can_sandbox; then
	workspace "$W/slash"
	project a <<<"$(cached 'pwd >where; echo $PWD >>where; mkdir -p dist; cp src/x dist/')"
	put p/a/src/x x
	put .gitignore $'*\n!/p\n!/p/**\n!/package.json\ndist\nwhere'
	git add -A
	mkdir usr lib lib64 bin proc dev tmp etc vxbin
	slash() { run timeout -k 1 "$VXT_HANG_S" bwrap --bind . / --ro-bind /usr /usr --ro-bind /lib /lib --ro-bind-try /lib64 /lib64 --ro-bind /bin /bin --proc /proc --dev /dev --tmpfs /tmp \
		--ro-bind /etc /etc --ro-bind "$VX_BUILD" /vxbin --chdir / /vxbin/vx "$@"; }
	slash run build --all
	is 'a workspace at /' "$rc $(cat p/a/where | tr '\n' ' ')" '0 /p/a /p/a '
	rm -r p/a/dist
	slash run build --all
	is 'restored' "$rc $(cat p/a/dist/x) $(grep -c restored <<<"$out")" '0 x 1'
	slash run build --filter ./p/a --dry=json
	like 'its plan' "$out" '^\{"root":"/","selected":\["a"\]'
else
	skip 'a workspace at /' 'no bwrap'
fi

done_testing
