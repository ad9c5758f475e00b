#!/usr/bin/env bash
# Links that a sandboxed task writes grant nothing in a later run, of that task or of another.
. "$(dirname "$0")/../lib.sh"
. "$SRC/tests/vx.sh"
can_sandbox || skip_all 'no user namespaces or no bwrap'

box() { # ALLOW COMMAND [COMMAND2]: a task `build`, and one `other` with the same grants
	printf '{ "tasks": { "build": { "exec": { "command": %s, "sandbox": { "allow": { %s } } } }%s } }\n' "$(json "$2")" "$1" "${3:+, $3}"
}
fresh() {
	workspace "$W/ws$((++n))"
	put private/s secret-text
	put p/b/f b-text
	put p/c/f c-text
	put p/b/package.json '{ "name": "b", "version": "1.0.0" }'
	put p/c/package.json '{ "name": "c", "version": "1.0.0" }'
	put p/a/package.json '{ "name": "a", "version": "1.0.0", "dependencies": { "b": "workspace:*" } }'
	put p/a/src/x x
	echo node_modules >>.gitignore
}
n=0

# a task's own node_modules
fresh
put p/a/vx.json <<<"$(box '"read": ["."], "write": ["node_modules/"]' \
	'mkdir -p node_modules; ln -sfn ../../../private node_modules/p; ln -sfn ../../b node_modules/b; ln -sfn ../../c node_modules/c; cat ../../private/s ../b/f ../c/f; true')"
git add -A
vx run a#build
vx run a#build
is 'the second run goes through' "$rc" 0
unlike 'no link of its own opens the workspace' "$out$err" 'secret-text'
unlike 'nor a member that no manifest leads to' "$out$err" 'c-text'
like 'a dependency of the manifest is granted' "$out$err" 'b-text'

# another task's links
fresh
put p/a/vx.json <<<"$(box '"read": ["."], "write": ["node_modules/"]' 'ln -sfn ../../../private node_modules/p; ln -sfn ../../c node_modules/c' \
	'"other": { "exec": { "command": "cat ../../private/s ../c/f; true", "sandbox": { "allow": { "read": ["src"] } } } }')"
git add -A
vx run a#build
vx run a#other
unlike 'a link of another task opens nothing' "$out$err" 'secret-text|c-text'
ok 'the link is there' test -L p/a/node_modules/p

# on the way of a grant, in what another project's task writes
fresh
put p/b/vx.json <<<"$(box '"write": ["dist/"]' 'ln -sfn ../../../private dist/lib')"
put p/a/vx.json <<<"$(box '"read": ["../b/dist/lib"]' 'cat ../../private/s; true')"
git add -A
vx run b#build
vx run a#build
is 'a grant through such a link is refused' "$rc" 1
like 'and says which link' "$out$err" 'p/b/dist/lib.*task may have written'
# ... and by a task that writes out of its project
fresh
put p/c/vx.json <<<"$(box '"write": ["../b/out/"]' 'ln -sfn ../../../private ../b/out/lib')"
put p/a/vx.json <<<"$(box '"read": ["../b/out/lib"]' 'cat ../../private/s; true')"
git add -A
vx run c#build
vx run a#build
is 'nor through one of a task elsewhere' "$rc" 1
unlike 'nothing is read' "$out$err" 'secret-text'

# what the developer wrote holds as before
fresh
mkdir -p p/a/node_modules
ln -s ../../c p/a/node_modules/c
ln -s src p/a/alias
put p/a/vx.json <<<"$(box '"read": ["alias"], "write": ["dist/"]' 'cat alias/x node_modules/c/f')"
git add -A
vx run a#build
is "the package manager's and the developer's links grant what they lead to" "$rc" 0
done_testing
