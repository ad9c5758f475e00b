#!/usr/bin/env bash
# A directory that vx did not make is no store: nothing in it is replaced or removed, and nothing is made in it.
. "$(dirname "$0")/../lib.sh"
. "$SRC/tests/vx.sh"

# everything below DIR, with contents
state_of() {
	(cd "$1" && find . -printf '%p %y %m\n' | sort && find . -type f -exec sha256sum {} + | sort)
}

# somebody's own directory that looks like a store
foreign() {
	rm -rf "$1"
	mkdir -p "$1/v1/tmp/work" "$1/v1/index" "$1/v1/a/00" "$1/v1/s"
	put "$1/v1/tmp/work/notes" notes
	put "$1/v1/tmp/0123456789abcdef" digits
	put "$1/v1/index/data.mdb" 'a data base of another program'
	put "$1/v1/a/00/old.tar.zst" archive
	find "$1/v1" -exec touch -d '3 days ago' {} +
	before=$(state_of "$1")
}

workspace "$W/ws"
project a <<<'{ "tasks": { "build": { "exec": { "command": "mkdir -p dist; cp src/x dist/y" }, "cache": { "inputs": { "files": ["src/**"] }, "outputs": { "files": ["dist/**"] } } } } }'
put p/a/src/x 1

# refused NAME DIR PATTERN ARGS...: every verb says it and leaves DIR alone
refused() {
	local name=$1 dir=$2 pattern=$3 verb
	shift 3
	for verb in 'run build --all' 'run build --all --dry' 'cache prune' 'cache prune --dry-run' 'cache stats' 'cache verify'; do
		vx $verb "$@"
		[ "$verb" = 'cache stats' ] || [ "$rc" != 0 ] || diag "$out $err"
		like "$name: vx $verb refuses it by name" "$rc $err" "^[1-9].*$pattern"
	done
	vx info "$@"
	is "$name: nothing is touched" "$(state_of "$dir")" "$before"
}

foreign "$W/other"
put vx.workspace.json '{ "cacheDir": "../other" }'
refused 'outside the workspace' "$W/other" 'cacheDir "../other" lies outside the workspace'
put vx.workspace.json "{ \"cacheDir\": \"$W/other\" }"
refused 'outside, absolute' "$W/other" 'lies outside the workspace'
ln -s "$W/other" link
put vx.workspace.json '{ "cacheDir": "link" }'
refused 'behind a link' "$W/other" 'lies outside the workspace'
rm link
put vx.workspace.json '{}'
refused 'named by the user' "$W/other" 'other/v1 was not made by vx' --cache-dir "$W/other"
foreign tools/other
put vx.workspace.json '{ "cacheDir": "tools/other" }'
refused 'within the workspace' tools/other 'tools/other/v1 was not made by vx'
rm -r tools
put vx.workspace.json '{}'

# a directory without a v1: reading makes none, a run does
mkdir "$W/new"
for verb in 'run build --all --dry' 'cache prune' 'cache prune --dry-run' 'cache stats' 'cache verify' info; do
	vx $verb --cache-dir "$W/new"
	is "vx $verb makes nothing" "$rc $(ls -A "$W/new")" '0 '
done
vx run build --all --cache-dir "$W/new"
is 'a run makes the store, with its marker' "$rc $err $(ls "$W/new/v1/vx-store")" "0  $W/new/v1/vx-store"
mkdir "$W/new/v1/tmp/work" && put "$W/new/v1/tmp/work/notes" notes
vx run build --all --cache-dir "$W/new"
vx cache prune --cache-dir "$W/new"
is 'what has another name than those of vx stays there too' "$rc $(cat "$W/new/v1/tmp/work/notes")" '0 notes'
mkdir -p "$W/empty/v1"
vx run build --all --cache-dir "$W/empty"
is 'an empty v1 becomes a store' "$rc $err $(ls "$W/empty/v1/vx-store")" "0  $W/empty/v1/vx-store"
done_testing
