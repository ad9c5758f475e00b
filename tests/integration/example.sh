#!/usr/bin/env bash
# The example of docs/example: cold, cached, restored, damaged; which processes and system calls that takes.
. "$(dirname "$0")/../lib.sh"
. "$SRC/tests/vx.sh"
can_sandbox || skip_all 'no user namespaces or no bwrap'

new_repo "$W/example"
cp -r "$SRC/docs/example/." .
git add -A
git commit -q -m example
everything() { vx run build test --all "$@"; }
rows() { grep -v '^failed ' <<<"$out" | grep -oE '[@a-z/]+#(build|test|codegen)$' | sort | paste -sd' '; }
# stat_of PATH: a number of $W/stats, which VX_STATS made
stat_of() { python3 -c 'import functools, json, sys
print(functools.reduce(lambda o, k: o[k] if k in o else {}, sys.argv[2].split("."), json.load(open(sys.argv[1]))) or 0)' "$W/stats" "$1"; }
all_dist() { for d in libs/*/dist libs/keywords/gen apps/*/dist; do echo "$d"; tree "$d"; done; }

everything
is 'cold: exit 0' "$rc" 0
is 'cold: all 21 tasks' "$(rows | wc -w)" 21
is 'the program works' "$(echo 'print 6 * 7' | apps/calc/dist/calc)" 42
all_dist >"$W/before"

VX_STATS=$W/stats everything
is 'again: exit 0' "$rc" 0
is 'again: nothing is executed' "$(rows)" ''
is 'no fork server, no worker' "$(stat_of pool.forkServers) $(stat_of pool.workers)" '0 0'
is 'and no git' "$(stat_of keys.gits)" 0
is 'every output is untouched' "$(all_dist)" "$(cat "$W/before")"
# (where vx is built with sanitizers: the finder of leaks cannot work under a tracer)
run env ASAN_OPTIONS=detect_leaks=0 strace -f -qq -e trace=execve,clone,clone3,fork,vfork -o "$W/trace" "$VX" run build test --all
is 'traced: exit 0' "$rc" 0
processes=$(grep -E 'execve\(|clone|fork\(' "$W/trace" | grep -v CLONE_THREAD | grep -vE 'execve\("[^"]*/vx"|resumed|= -1' || true)
is 'traced: it starts no process at all' "$processes" ''

rm -rf apps/calc/dist
everything
is 'one dist removed: nothing is executed' "$rc $(rows)" '0 '
is 'it is back: equal bytes, modes, link targets' "$(all_dist | timeless)" "$(timeless <"$W/before")"
echo stray >libs/text/dist/stray
mkdir -p libs/text/dist/more && echo stray >libs/text/dist/more/stray
everything
is 'a stray file is gone after a hit' "$rc $(rows) $(all_dist | timeless)" "0  $(timeless <"$W/before")"

# damage the artifact of calc#build, the only one that holds dist/bin/calc
ok 'its artifact is found, and harmed' "$SRC/tests/artifacts.py" .vx/cache/v1 holding apps/calc/dist/bin/calc harm
everything
is 'damage behind outputs that are in place is not looked at' "$rc $(rows)" '0 '
rm -rf apps/calc/dist
everything
is 'damaged: a miss, rebuilt' "$rc $(rows)" '0 calc#build'
like 'that is said' "$out$err" 'calc#build.*damaged|damaged.*calc#build'
is 'the program works again' "$(echo 'print 6 * 7' | apps/calc/dist/calc)" 42
rm -rf apps/calc/dist
everything
is 'and saved again' "$rc $(rows)" '0 '

sed -i 's/"= "/"="/; s/^}$/} /' libs/hash/src/hash.c
everything
is 'an edit of one library runs what depends on it' "$(rows)" '@example/eval#build @example/eval#test @example/hash#build @example/hash#test @example/table#build @example/table#test calc#build calc#test words#build words#test'
git checkout -q .
everything
is 'undone: hits' "$rc $(rows)" '0 '

sed -i 's/number_is(3, "3")/number_is(3, "4")/' libs/text/test/test.c
everything
is 'a failing test: exit 1' "$rc" 1
is 'it alone is executed' "$(rows)" '@example/text#test'
like 'its output is shown' "$out" 'test/test.c:[0-9]+: failed'
git checkout -q .

# a library that the grants do not name is not there
sed -i '1i #include "../../columns/include/columns.h"' libs/hash/src/hash.c
everything
is 'an undeclared header: exit 1' "$rc" 1
like 'the compiler does not find it' "$out" 'columns\.h: No such file'
git checkout -q .

# the save lane by io_uring: no system call writes, renames or makes directories under the store
VX_IO=uring vx info
if grep -q 'io_uring' <<<"$out" && ! grep -q 'blocking' <<<"$out"; then
	VX_IO=uring VX_STATS=$W/stats everything --force
	is 'uring: exit 0' "$rc" 0
	is 'uring: the lane says so' "$(stat_of lane.io)" io_uring
	is "uring: the ring's counters are the saves' steps" "$(stat_of lane.ring)" "$(stat_of lane.steps)"
	ok 'uring: which are some' [ "$(stat_of lane.steps.write)" -ge 11 ]
	rm -rf .vx/cache
	VX_IO=uring run env ASAN_OPTIONS=detect_leaks=0 strace -f -qq -y -e trace=write,pwrite64,writev,pwritev,pwritev2,rename,renameat,renameat2,mkdir,mkdirat,copy_file_range,sendfile,link,linkat \
		-o "$W/trace" "$VX" run build --all --filter @example/base --filter @example/hash
	is 'uring: traced' "$rc" 0
	ok 'uring: it saved' [ "$("$SRC/tests/artifacts.py" .vx/cache/v1 | wc -l)" -ge 2 ]
	is 'uring: no write, rename or mkdir of artifacts by system call' "$(grep -E 'v1/(a|s|tmp)/' "$W/trace")" ''
	rm -rf apps/calc/dist
	VX_IO=uring everything
else
	skip 'the save lane by io_uring' "$(grep -o 'blocking.*' <<<"$out")"
fi
rm -rf .vx/cache apps/*/dist libs/*/dist
VX_IO=blocking VX_STATS=$W/stats everything
like 'blocking: the lane says so' "$(stat_of lane.io)" '^blocking'
is 'blocking: exit 0' "$rc" 0
rm -rf apps/*/dist libs/*/dist
VX_IO=blocking everything
is 'blocking: everything comes back' "$rc $(rows) $(echo 'print 6 * 7' | apps/calc/dist/calc)" '0  42'

# as a normal user
if [ "$(id -u)" = 0 ]; then
	mkdir -p "$W/user/example"
	cp -r "$SRC/docs/example/." "$W/user/example"
	cd "$W/user/example" || exit 1
	git init -q
	git add -A
	as_user true
	run as_user "$W/user/bin/vx" run build test --all
	is 'a normal user: exit 0' "$rc" 0
	is 'a normal user: all 21 tasks' "$(rows | wc -w)" 21
	rm -rf apps/calc/dist
	run as_user "$W/user/bin/vx" run build test --all
	is 'a normal user: all from the cache' "$rc $(rows)" '0 '
	is "a normal user: its files are its own" "$(find . -path ./.git -prune -o ! -uid $VXT_UID -print | head -3)" ''
fi

done_testing
