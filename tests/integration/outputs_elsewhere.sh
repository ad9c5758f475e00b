#!/usr/bin/env bash
# Outputs that lie elsewhere: behind a link that stands in place of an output directory, or in a mount. A result that would not hold them is not
# saved, and nothing is removed there.
. "$(dirname "$0")/../lib.sh"
. "$SRC/tests/vx.sh"

# outputs PATTERNS COMMAND: a vx.json of one task with these outputs
outputs() {
	printf '{ "tasks": { "build": { "exec": { "command": %s }, "cache": { "inputs": { "files": ["src/**"] }, "outputs": { "files": [%s] } } } } }\n' "$(json "$2")" "$1"
}
# content TEXT: the input is TEXT now, and the task is asked for
content() {
	put p/a/src/x "$1"
	vx run build --all
}

# ---- what a link leads to is saved with it, or nothing is ----
# The command writes through the link: with another input, and back again, what is read through it is what that input makes.
N=0
through() { # NAME PATTERNS COMMAND READ [PATTERN]: not saved, and PATTERN is said
	N=$((N + 1))
	workspace "$W/link$N"
	printf 'out/\n*.txt\nbin/\n' >>.gitignore
	project a <<<"$(outputs "$2" "$3")"
	content A
	like "$1: not saved, and said" "$err" "build was not saved: .*p/a/${5:-dist is a symbolic link to .*not among its outputs}"
	content B
	content A
	is "$1: what is read through the link is what the input makes" "$rc $(cat "p/a/$4")" '0 A'
}
through 'a directory beside the project' '"dist/**"' 'mkdir -p ../../out/a; ln -sfn ../../out/a dist; cp src/x dist/o' dist/o
through 'files by a wildcard in it' '"dist/*.js"' 'mkdir -p ../../out/a; ln -sfn ../../out/a dist; cp src/x dist/o.js' dist/o.js 'dist, and links are not followed'
through 'an absolute target' '"dist/**", "out/**"' 'mkdir -p out; ln -sfn "$PWD/out" dist; cp src/x dist/o' dist/o
through 'a directory whose files are outputs in part' '"dist/**", "out/*"' 'mkdir -p out/sub; ln -sfn out/sub dist; cp src/x dist/o' dist/o
through 'one that is a link out of the outputs' '"dist/**", "out/**"' 'mkdir -p out ../../out/a; ln -sfn ../../../out/a out/sub; ln -sfn out/sub dist; cp src/x dist/o' dist/o
through 'a name that is passed before ..' '"dist/**", "bin/**"' 'mkdir -p bin ../../out/a; ln -sfn ../../../out/a bin/l; mkdir -p bin/a ../../out/b; ln -sfn bin/l/../b dist; cp src/x dist/o' dist/o
through 'a file by name' '"o.txt"' 'mkdir -p ../../out; ln -sfn ../../out/o o.txt; cat src/x >o.txt' o.txt 'o.txt is a symbolic link to ../../out/o'
through 'a directory below a wildcard' '"gen/*/lib/**"' 'mkdir -p gen/1 ../../out/a; ln -sfn ../../../../out/a gen/1/lib; cp src/x gen/1/lib/o' gen/1/lib/o gen/1/lib

saved() { # NAME PATTERNS COMMAND READ
	N=$((N + 1))
	workspace "$W/link$N"
	project a <<<"$(outputs "$2" "echo a >>$W/ran; $3")"
	content A
	content B
	is "$1: saved" "$(ran) $err" 'a a '
	content A
	is "$1: a hit, and what is behind the link is of that input" "$rc $(ran)$(cat "p/a/$4")" '0 A'
}
saved 'the directory is among the outputs' '"dist/**", "out/**"' 'mkdir -p out/public; ln -sfn ./out/public dist; cp src/x dist/o' dist/o
saved 'links to directories inside the outputs' '"dist/**"' 'mkdir -p dist/v1; ln -sfn v1 dist/current; cp src/x dist/current/o' dist/current/o
saved 'a link to a file by a wildcard' '"bin/*", "dist/**"' 'mkdir -p bin dist; ln -sfn ../src/x bin/tool; cp src/x dist/o' dist/o

# ---- mounts ----
if [ "$(id -u)" != 0 ] || ! unshare -m true 2>/dev/null; then
	echo '# mounts need root and a mount namespace of its own: not tried'
	done_testing
	exit
fi
# mounted SCRIPT: with mounts that nobody else sees
mounted() { VX=$VX unshare -m bash -c "$1" >"$W/mounted.out" 2>"$W/mounted.err"; rc=$?; err=$(cat "$W/mounted.err"); }
for kind in bind tmpfs; do
	workspace "$W/mount-$kind"
	project a <<<"$(outputs '"dist/**"' "echo a >>$W/ran; mkdir -p dist/m; cp src/x dist/o")"
	content 1
	mkdir -p "$W/real-$kind/deep"
	put p/a/src/x 2
	case $kind in bind) at="mount --bind $W/real-$kind p/a/dist/m" ;; tmpfs) at="mount -t tmpfs none p/a/dist/m; mkdir p/a/dist/m/deep" ;; esac
	mounted "set -e; $at; echo keep >p/a/dist/m/keep; echo keep >p/a/dist/m/deep/keep; r=0; \"\$VX\" run build --all || r=\$?; cat p/a/dist/m/keep p/a/dist/m/deep/keep >$W/kept; exit \$r"
	is "$kind: nothing is removed in a mount" "$(paste -sd' ' "$W/kept")" 'keep keep'
	is "$kind: the task fails, and its command is not started" "$rc $(ran | tr -d '\n')" '1 a'
	like "$kind: named" "$(cat "$W/mounted.out" "$W/mounted.err")" 'could not be cleaned: p/a/dist/m is a mount or lies in one'
	# a hit: what is to be restored has nothing at m
	put p/a/src/x 1
	put p/a/dist/o stale
	mounted "set -e; $at; echo keep >p/a/dist/m/keep; mkdir -p p/a/dist/m/deep; echo keep >p/a/dist/m/deep/keep; \"\$VX\" run build --all || :; cat p/a/dist/m/keep p/a/dist/m/deep/keep >$W/kept"
	is "$kind: nor by a restore" "$(paste -sd' ' "$W/kept")" 'keep keep'
	like "$kind: which is not made, and says so" "$(cat "$W/mounted.out" "$W/mounted.err")" 'could not be restored: p/a/dist/m is a mount or lies in one'
	: >"$W/ran"
	# one that the outputs leave out is no matter
	project a <<<"$(outputs '"dist/**", "!dist/m/**"' "echo a >>$W/ran; mkdir -p dist/m; cp src/x dist/o")"
	put p/a/src/x 3
	mounted "set -e; $at; echo keep >p/a/dist/m/keep; \"\$VX\" run build --all; cat p/a/dist/m/keep >$W/kept"
	is "$kind: one that is excluded is left alone, and the task runs" "$rc $(ran) $(cat "$W/kept") $(cat p/a/dist/o)" '0 a keep 3'
done

# What is mounted while the command runs is not read into the cache.
workspace "$W/mount-save"
project a <<<"$(outputs '"dist/**"' "echo a >>$W/ran; mkdir -p dist/m; mount --bind $W/real-bind dist/m; cp src/x dist/o")"
sed -i 's/"exec": {/"exec": { "sandbox": false,/' p/a/vx.json
put p/a/src/x 1
mounted '"$VX" run build --all'
grep -q 'unknown\|not a' "$W/mounted.err" && diag "$err"
like 'a mount that the command made: not saved' "$(cat "$W/mounted.out" "$W/mounted.err")" 'was not saved: p/a/dist/m is a mount or lies in one'
: >"$W/ran"

# The project itself, and what is above it, may be a mount: its outputs are cleaned and saved.
workspace "$W/mount-project"
project a <<<"$(outputs '"dist/**"' "echo a >>$W/ran; mkdir -p dist; cp src/x dist/o; ls dist >listed")"
put p/a/src/x 1
mounted 'set -e; mount --bind p p; mkdir -p p/a/dist; echo old >p/a/dist/stale; "$VX" run build --all; "$VX" run build --all'
is 'a project in another mount than the root: cleaned, saved, and up to date' "$rc $(ran) $(paste -sd' ' p/a/listed) $(grep -c 'not saved' "$W/mounted.err")" '0 a o 0'
done_testing
