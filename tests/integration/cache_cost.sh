#!/usr/bin/env bash
# What saving and restoring ask of the system, counted: no more calls for a task than these, whatever the machine.
. "$(dirname "$0")/../lib.sh"
. "$SRC/tests/vx.sh"
strace -f -qq -o /dev/null true 2>/dev/null || skip_all 'strace cannot trace here'

N=12
workspace
for i in $(seq $N); do
	project "a$i" <<<"$(cached 'mkdir -p dist; cp src/f1 dist/one; cp src/f2 dist/two')"
	for k in $(seq 20); do put "p/a$i/src/f$k" "$i $k"; done
done
touch -d '1 hour ago' p/*/src/* p/*/*.json package.json # git's index proves them, nothing is read for keys
git add -A

# calls NAME ARGS...: how many calls of NAME vx and what it starts made, commands left out (they do not use these)
calls() {
	local name=$1
	shift
	vx_traced "$@"
	grep -cE "^[0-9]+ +$name\(" "$W/trace"
}
vx_traced() {
	ASAN_OPTIONS=detect_leaks=0 strace -f -qq -e trace=openat2,read,mkdirat,renameat,renameat2,utimensat,fdatasync,pwrite64,io_uring_setup,getdents64,unlinkat -o "$W/trace" "$VX" run build --all "$@" >/dev/null 2>"$W/err" ||
		diag "$(cat "$W/err")"
}
many() { [ "$1" -le "$2" ] && pass "$3" || fail "$3" "$1 calls, at most $2 expected"; } # COUNT LIMIT NAME

plain=$(calls openat2 --no-cache)
rm -rf p/*/dist
vx_traced
saved=$(grep -cE '^[0-9]+ +openat2\(' "$W/trace")
# some 13 more in all: .vx, its key and the store's directories are entered by descriptor, once a run; a fourth path in each save would be N more
many $((saved - plain)) $((3 * N + 18)) 'a save of two outputs and 20 inputs opens no more than three paths beneath the root: the directory and each output'
many "$(grep -cE '^[0-9]+ +read\(.*, 8\) += ' "$W/trace")" $((4 * N)) 'each wake-up is read once, not once for every look'
is 'no ring is made unless one is asked for' "$(grep -c io_uring_setup "$W/trace")" 0
many "$(grep -c fdatasync "$W/trace")" $((8 + N / 2)) 'rows are committed in groups'
rm -rf p/*/dist
vx_traced
many "$(grep -cE '^[0-9]+ +mkdirat\(.*stage' "$W/trace")" $((2 + N / 2)) 'restores share a stage directory per thread'
many "$(grep -cE '^[0-9]+ +mkdirat\([0-9]+, "[0-9]+"' "$W/trace")" "$N" 'and make one directory each'
is 'each puts its tree in place by one rename' "$(grep -cE '^[0-9]+ +renameat2?\([0-9]+, "[0-9]+", [0-9]+, "dist"' "$W/trace")" "$N"
many "$(grep -c fdatasync "$W/trace")" 8 'their snapshots are committed together'
is 'nothing is left' "$(find .vx/stage .vx/journal .vx/cache/v1/tmp -mindepth 1 2>/dev/null)" ''

done_testing
