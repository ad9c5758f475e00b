#!/usr/bin/env bash
# A turbo.json's tasks run again when what they are keyed by changes, in each way that a run can be cut short (hits, keys that are taken over, the memory of a run with
# nothing to do): ignored files that inputs name, globalDependencies, variables of a framework, tracked outputs.
. "$(dirname "$0")/../lib.sh"
. "$SRC/tests/vx.sh"

turbo() {
	new_repo "$W/ws$((++n))"
	put package.json '{ "name": "root", "workspaces": ["p/*"], "packageManager": "npm@10.0.0" }'
	put turbo.json "$1"
	put .gitignore $'.env*\ndist\nnode_modules\n.vx\n'
	put p/a/package.json "{ \"name\": \"a\", \"scripts\": { \"build\": \"echo a >>$W/ran; mkdir -p dist; cp in dist/\" }, \"devDependencies\": { \"vite\": \"5\" } }"
	put p/a/in 1
	git add -A
	git commit -qm one
	: >"$W/ran"
}
n=0
# settles: runs until a run has nothing to do, and two more
settle() {
	for _ in 1 2 3; do vx run build --all; done
	sleep 0.02
	vx run build --all
	: >"$W/ran"
	vx run build --all
	is "$1: nothing to do" "$rc $(ran)" '0 '
}
# changed NAME: the next run runs it, the one behind that does not
changed() {
	vx run build --all
	is "$1" "$rc $(ran)" '0 a'
	vx run build --all
	is "$1, once" "$rc $(ran)" '0 '
}

turbo '{ "tasks": { "build": { "inputs": ["$TURBO_DEFAULT$", ".env", "$TURBO_ROOT$/.env.shared", "../../.env.up"], "outputs": ["dist/**"] } } }'
settle 'ignored inputs'
put p/a/.env 1
changed 'an ignored file that inputs name comes'
put p/a/.env 2
changed 'it changes'
rm p/a/.env
vx run build --all
is 'it goes: a hit on what was before' "$rc $(ran)" '0 '
put .env.shared 1
changed 'one at the root'
put .env.up 1
changed 'one above, by ..'
put p/a/.env.other 1
vx run build --all
is 'one that is not named' "$rc $(ran)" '0 '
put p/a/new x
changed 'beside them every file counts'

turbo '{ "globalDependencies": [".env", "conf/**"], "tasks": { "build": { "outputs": ["dist/**"] } } }'
settle 'globalDependencies'
put .env 1
changed 'an ignored one comes'
put conf/x 1
changed 'one of a directory comes'
put conf/x 2
changed 'it changes'

turbo '{ "tasks": { "build": { "outputs": ["dist/**"], "env": ["!VITE_NO"] } } }'
settle 'a framework'
export VITE_X=1
changed 'a variable of it is set'
export VITE_X=2
changed 'it changes'
export VITE_NO=1 OTHER=1
vx run build --all
is 'one that is taken out, and another one' "$rc $(ran)" '0 '
VITE_X=3 vx run build --all --framework-inference=false
is 'inference switched off: another key' "$rc $(ran)" '0 a'
VITE_X=4 vx run build --all --framework-inference=false
is 'in which its variables do not count' "$rc $(ran)" '0 '
VITE_X=4 vx run build --all --framework-inference=true --dry=json
like 'switched on: they do' "$out" '"cacheStatus":"miss".*"inferredEnv":\["VITE_X"\]'
VITE_X=4 vx run build --all --framework-inference=false --dry=json
unlike 'the plan says so' "$out" inferredEnv
vx run build --all --framework-inference=maybe
one_line 'nothing between' 'true or false'
vx lock
vx run build --all --framework-inference=false --frozen
one_line 'a lock holds what was inferred' vx-lock
rm vx-lock.json
unset VITE_X VITE_NO OTHER
vx run build --all
is 'unset again: a hit' "$rc $(ran)" '0 '

turbo '{ "tasks": { "build": { "inputs": ["in"], "outputs": ["dist/**", "gen/**"] } } }'
put p/a/gen/kept 1
git add p/a/gen
settle 'a tracked output'
put p/a/gen/kept 2
changed 'a tracked output that is edited'
put p/a/README.md x
vx run build --all
is 'what is neither input nor output' "$rc $(ran)" '0 '

# what would take the sources along
turbo '{ "tasks": { "build": { "outputs": ["**"] } } }'
git rm -q -r --cached p
vx run build --all
like 'outputs of everything: said' "$err" '^vx run: a#build is not cached: its outputs "\*\*" take its own package.json'
is 'it runs' "$(ran)" a
is 'and what is not committed is still there' "$(ls p/a | tr '\n' ' ')" 'dist in package.json '

for entry in /etc/passwd ../x '!../x'; do
	turbo "{ \"globalDependencies\": [\"$entry\"], \"tasks\": { \"build\": { \"outputs\": [\"dist/**\"] } } }"
	vx run build --all
	one_line "globalDependencies $entry" 'turbo\.json: globalDependencies entry .* leaves the workspace'
done
turbo '{ "tasks": { "build": { "outputs": ["dist/**"] } } }'
put package.json '{ "name": "root", "workspaces": [".", "p/*"], "packageManager": "npm@10.0.0", "scripts": { "build": "true" } }'
vx run build --all
like 'a root that is its own member: said' "$err" '^vx run: the root is listed as a member of itself'
is 'and has no such tasks' "$rc $(ran)" '0 a'

# outputLogs
logs() {
	turbo "{ \"tasks\": { \"build\": { \"outputs\": [\"dist/**\"], \"outputLogs\": \"$1\" } } }"
	put p/a/package.json "{ \"name\": \"a\", \"scripts\": { \"build\": \"echo printed\" } }"
}
shown() { grep -oE '^printed|miss +a#build|up-to-date [0-9a-f]{64} a#build|miss +[0-9a-f]{64} a#build' <<<"$out" | sed -E 's/[0-9a-f]{64}/KEY/; s/ +/ /' | paste -sd,; }
logs none
CI=1 vx run build --all
is 'outputLogs none: nothing in CI' "$(shown)" ''
CI=1 vx run build --all --force --output-logs full
is 'but where the command line asks for it' "$(shown)" 'printed,miss a#build'
vx run a#build --force
is 'nor is it streamed' "$(shown)" ''
logs errors-only
CI=1 vx run build --all
is 'outputLogs errors-only: the row' "$(shown)" 'miss a#build'
logs hash-only
vx run build --all
is 'outputLogs hash-only' "$(shown)" 'miss KEY a#build'
logs new-only
vx run build --all
is 'outputLogs new-only: of a miss' "$(shown)" 'printed,miss a#build'
CI=1 vx run build --all
is 'not of a hit, even in CI' "$(shown)" 'up-to-date KEY a#build'
logs full
vx run build --all
is 'outputLogs full is as if it were not there' "$(shown)" 'miss a#build'
vx run build --all --output-logs new-only
is '--output-logs new-only' "$(shown)" 'up-to-date KEY a#build'
turbo '{ "tasks": {} }'
vx run build --all
one_line 'no tasks' 'turbo\.json defines none'
# what links lead to, in the package or not: Turborepo hashes the bytes behind them
turbo '{ "tasks": { "build": { "inputs": ["$TURBO_DEFAULT$", ".env*"], "outputs": ["dist/**"] } } }'
mkdir -p shared/v1/deep shared/v2/deep p/b/dist
put p/b/package.json '{ "name": "b", "scripts": { "build": "mkdir -p dist; echo made >dist/made" } }'
for v in v1 v2; do put shared/$v/file $v; put shared/$v/deep/file $v; done
put .env secret
put other other
ln -s ../../other p/a/one
ln -s ../../shared/v1 p/a/many
ln -s ../../shared/current/file p/a/through
ln -s v2 shared/current
ln -s ../../../.env shared/v1/env
ln -s ../../.env p/a/.env
ln -s ../../nothing p/a/dangling
ln -s ../b/dist/made p/a/made
ln -s .. p/a/up
ln -s ../../../../other shared/v1/deep/again
ln -s loop p/a/loop
git add -A && git commit -qm links
settle 'links'
put other changed
changed 'the file that a link leads to changes'
put shared/v1/deep/file changed
changed 'one in the directory that a link leads to'
put shared/v1/new new
changed 'one comes there'
rm shared/v1/new
vx run build --all
is 'and goes: what was made before it came' "$rc $(ran)" '0 '
put shared/v2/file changed
changed 'a file behind two links'
ln -sfn v1 shared/current
changed 'the link on the way leads elsewhere'
put .env changed
changed 'an ignored file that a link leads to'
put nothing there
changed 'a link that led to nothing'
put p/b/dist/made changed
vx run build --all
is 'what another task makes is in its key' "$rc $(ran)" '0 '
put p/b/src/file more
vx run build --all
is 'what lies beside is in no key of a' "$rc $(ran)" '0 '
vx run build --all --dry=full
like 'it stands among the inputs' "$out" '"\.\./\.\./other":'

# ... the same of globalDependencies, wherever it lies
turbo '{ "globalDependencies": ["conf/**"], "tasks": { "build": { "outputs": ["dist/**"] } } }'
put "$W/outside/settings" 1
mkdir conf
ln -s "$W/outside/settings" conf/settings
ln -s ../nowhere conf/dangling
settle 'a link among globalDependencies'
put "$W/outside/settings" 2
changed 'what it leads to changes'
put nowhere there
changed 'what a link led to in vain comes'
put p/a/package.json "{ \"name\": \"a\", \"scripts\": { \"build\": \"echo a >>$W/ran; echo more >>$W/outside/settings\" } }"
vx run build --all
like 'it changes while a task runs: not saved' "$err" 'conf/settings'
ran >/dev/null

turbo '{ "tasks": { "build": { "outputs": ["dist/**"] } } }'
put other 1
ln -s ../../other p/a/one
git add -A
# ... and changes while the task runs
put p/a/package.json "{ \"name\": \"a\", \"scripts\": { \"build\": \"echo a >>$W/ran; echo more >>one\" } }"
vx run build --all
ran >/dev/null
vx run build --all
is 'a task that writes through a link to an input is not saved' "$rc $(ran)" '0 a'

# what Turborepo 1 had beside them
turbo '{ "globalDotEnv": [".env"], "pipeline": { "build": { "dotEnv": [".env.mine"], "outputs": ["dist/**"] } } }'
put .env 1
settle 'dotEnv'
is 'nothing is said about it' "$err" ''
put .env 2
changed 'an ignored file of globalDotEnv changes'
put p/a/.env.mine 1
changed 'one of dotEnv comes'
put p/a/new x
changed 'beside them every file counts still'

# a misspelled key would be in no key
turbo '{ "globalDependancies": ["conf"], "bestBefore": 1, "//": "a comment", "tasks": { "build": { "outputs": ["dist/**"] } } }'
vx run build --all
is 'unknown members of the file: it runs' "$rc $(ran)" '0 a'
like 'each is said' "$err" 'turbo\.json: "bestBefore" means nothing to vx and is ignored$'
like 'with what was meant' "$err" '"globalDependancies" means nothing.*did you mean "globalDependencies"\?'
is 'and nothing else' "$(wc -l <<<"$err")" 2

done_testing
