#!/usr/bin/env bash
# What a clone, an archive or an earlier task may have put where vx keeps its own: links are refused by name, and nothing they lead to changes.
. "$(dirname "$0")/../lib.sh"
. "$SRC/tests/vx.sh"

# precious: a directory outside of the workspace that nobody may touch
precious() {
	rm -rf "$W/precious"
	put "$W/precious/file" precious
	put "$W/precious/sub/file" precious
	: >"$W/precious/empty"
	before=$(tree "$W/precious")
}
untouched() { is "$1: what it leads to is as it was" "$(tree "$W/precious")" "$before"; }
# fresh: a workspace with one cached task and no .vx
fresh() {
	cd "$W" && rm -rf ws
	workspace
	project a <<<"$(cached "echo a >>$W/ran; mkdir -p dist; head -c 200000 /dev/urandom >dist/x")"
	put p/a/src/x 1
	precious
	git add -A && git commit -qm x
}

for at in .vx .vx/cache .vx/cache/v1 .vx/cache/v1/tmp .vx/cache/v1/a .vx/cache/v1/index .vx/cache/v1/s; do
	for target in "$W/precious" "$W/nowhere"; do
		fresh
		mkdir -p "$(dirname "$at")"
		ln -s "$target" "$at"
		vx run build --all
		one_line "$at is a link to ${target##*/}" "$at is a symbolic link"
		like "$at: says how to mend it" "$err" 'remove it'
		untouched "$at"
		is "$at: nothing is made elsewhere" "$(ls "$W/nowhere" 2>&1 | grep -c 'No such')" 1
		rm "$at"
		vx run build --all
		is "$at: as told" "$rc" 0
	done
done

# files: what is no plain file of our own is neither written nor waited for
for name in link hard fifo; do
	for at in .vx/lock .vx/cache/v1/index/data.mdb .vx/cache/v1/index/lock.mdb .vx/key .vx/plan .vx/unchanged; do
		fresh
		mkdir -p "$(dirname "$at")"
		case $name in
		link) ln -s "$W/precious/empty" "$at" ;;
		hard) ln "$W/precious/empty" "$at" ;;
		fifo) mkfifo "$at" ;;
		esac
		vx run build --all
		[ "$rc" != 124 ] && pass "$at is a $name: no waiting" || fail "$at is a $name: hangs"
		[ "$at" != .vx/lock ] || one_line "$at is a $name" '.vx/lock is not a plain file'
		is "$at is a $name: nothing is written through it" "$(stat -c %s "$W/precious/empty")" 0
		is "$at is a $name: the rest" "$(cat "$W/precious/file" "$W/precious/sub/file" | paste -sd' ')" 'precious precious'
	done
done

# ---- what a clone brings ----
# cloned: a repository with a whole .vx of a run that saved something else than its command makes; $W/clone is a clone of it
cloned() {
	rm -rf "$W/ws" "$W/clone"
	cd "$W"
	workspace
	project a <<<"$(cached "echo a >>$W/ran; mkdir -p dist; echo true >dist/x")"
	put p/a/src/x 1
	git add -A && git commit -qm x
	vx run build --all
	"$@"
	git add -Af .vx && git commit -qm 'with all of it'
	git clone -q "$W/ws" "$W/clone"
	cd "$W/clone"
	: >"$W/ran"
}
cloned true
vx run build --all
one_line 'a store that git tracks' 'git tracks files in .*/\.vx'
like 'says how to mend it' "$err" 'git rm -r --cached .vx'
vx run build --all --dry
is 'a dry run neither' "$rc" 1
git rm -rqf --cached .vx && rm -rf .vx
vx run build --all
is 'as told' "$rc $(ran)" '0 a'
put .gitignore 'dist/'
git config core.splitIndex true
cd "$W/clone" && git add -Af .vx && git update-index --split-index
vx run build --all
one_line 'a store that git tracks, listed by git itself' 'git tracks files in'
cd "$W" && rm -rf ws
workspace
project a <<<"$(cached true)"
put p/a/src/x 1
put tools/cache/v1/a/x x
put tools/cache/v1/vx-store '' # as a store of vx
put vx.workspace.json '{ "cacheDir": "tools/cache" }'
git add -A && git commit -qm x
vx run build --all
one_line 'cacheDir that git tracks' 'git tracks files in .*/tools/cache'

# a link in place of the directory that an artifact goes to, or comes out of
fresh
vx run build --all
for d in .vx/cache/v1/a/*; do
	mv "$d" "$W/moved" && ln -s "$W/precious" "$d"
done
rm -rf p/a/dist
put p/a/src/x 1
vx run build --all
is 'behind a link there is no artifact' "$rc $(ran | wc -w)" '0 2'
untouched 'a directory of artifacts'
done_testing
