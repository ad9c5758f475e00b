#!/usr/bin/env bash
# One store of two users: segments that the other one may read, and not write; and one that may not be written at all. Needs root, to be both.
. "$(dirname "$0")/../lib.sh"
. "$SRC/tests/vx.sh"
[ "$(id -u)" = 0 ] || skip_all 'two users need root'

BIN=$W/bin
mkdir "$BIN" && cp "$VX" "$(dirname "$VX")/vx-init" "$BIN"
chmod 755 "$W" "$BIN"
store=$W/store
mkdir -m 777 "$store"
for who in 1 2; do
	workspace "$W/ws$who"
	for p in a b c; do
		project $p <<<"$(cached "echo $p >>ran; mkdir -p dist; cp src/x dist/; chmod 644 dist/x")"
	done
	chown -R "6600$who" "$W/ws$who"
done
# user WHO ARGS...: as that user, in a workspace of his own; p/*/ran says what ran
user() {
	local who=$1
	shift
	cd "$W/ws$who" || exit 1
	rm -rf p/*/dist p/*/ran
	run setpriv --reuid "6600$who" --regid "6600$who" --clear-groups env HOME="$W/ws$who" TMPDIR=/tmp timeout "$VXT_HANG_S" sh -c 'umask "$1"; shift; exec "$@"' sh "$mask" "$BIN/vx" "$@"
	all=$(cat p/*/ran 2>/dev/null | paste -sd' ')
}
# change P WORD: in both workspaces
change() { for d in "$W"/ws?; do put "$d/p/$1/src/x" "$2" && chown -R "${d/*ws/6600}" "$d/p/$1"; done; }

mask=000
for p in a b c; do change $p one; done
user 1 run build --all --cache-dir "$store"
is 'one user saves' "$rc $all" '0 a b c'
user 2 run build --all --cache-dir "$store"
is 'another one hits' "$rc $all $(cat p/a/dist/x)" '0  one'
change a two
user 2 run build --all --cache-dir "$store"
is 'and goes on with the segment where modes allow it' "$rc $all $(ls "$store/v1/s" | wc -l)" '0 a 1'

# one that only its owner may write
chmod 644 "$store"/v1/s/*
chown 66001 "$store"/v1/s/*
change a three
user 2 run build --all --cache-dir "$store"
is 'else he begins his own' "$rc $all $(ls "$store/v1/s" | wc -l) $err" '0 a 2 '
mask=022
user 1 run build --all --cache-dir "$store"
is 'which the first one reads' "$rc $all $(cat p/a/dist/x p/b/dist/x | paste -sd' ')" '0  three one'
user 2 cache verify --cache-dir "$store"
is 'verify by either' "$rc" 0
user 2 cache prune --max-size 1 --cache-dir "$store"
is 'prune: whole segments go, whosoever they are' "$rc $(ls "$store/v1/s" | wc -l)" '0 0'

# a store that may be read only
chown -R 0 "$store" && chmod -R go-w "$store"
user 1 run build --all --cache-dir "$store"
like 'cannot be written: said' "$err" 'nothing is saved'
is 'and everything runs' "$rc $all" '0 a b c'
chown -R 66001 "$store"
user 1 run build --all --cache-dir "$store"
is 'saved by its owner' "$rc $all" '0 a b c'
before=$(cd "$store/v1" && sha256sum s/*)
user 2 run build --all --cache-dir "$store"
is 'read by the other one' "$rc $all $(cat p/a/dist/x)" '0  three'
change b four
user 2 run build --all --cache-dir "$store"
is 'who saves nothing there' "$rc $all $(cd "$store/v1" && sha256sum s/*)" "0 b $before"
user 2 cache stats --format json --cache-dir "$store"
like 'stats' "$out" '"entries": *3'
user 2 run build --all --cache local:r --cache-dir "$store"
is '--cache=local:r' "$rc $all" '0 b'
user 2 run build --all --no-cache --cache-dir "$store"
is '--no-cache' "$rc $all $(cd "$store/v1" && sha256sum s/*)" "0 a b c $before"

# a segment that the other one may not even read
chmod 600 "$store"/v1/s/*
chmod -R a+w "$store/v1/index" "$store/v1/a" "$store/v1/tmp" && chmod a+w "$store/v1/s"
user 2 run build --all --cache-dir "$store"
is 'what cannot be read is made anew' "$rc $all" '0 a b c'
user 1 run build --all --cache-dir "$store"
is 'and what its owner has is not lost' "$rc $all" '0 '
done_testing
