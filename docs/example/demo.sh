#!/usr/bin/env bash
# demo.sh: a copy of this example as a git repository of its own, run four times: cold, again, after an edit of one library, and with one dist/ removed.
# Says what each run did and how long it took, and fails when that is not what should have happened. `make demo` runs it; nothing is left behind.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
vx=${VX_BUILD:-$here/../../build}/vx
[ -x "$vx" ] || { echo "demo: $vx is not there (make builds it)" >&2; exit 1; }

work=$(mktemp -d "${TMPDIR:-/tmp}/vx-demo.XXXXXX")
trap 'rm -rf "$work"' EXIT
cp -r "$here" "$work/example"
cd "$work/example"
rm -f demo.sh
git init -q .
git config user.name 'vx demo'
git config user.email 'demo@example.invalid'
git add -A
git commit -q -m 'The example'

failed=0
unset CI GITHUB_ACTIONS VX_CACHE_DIR
export NO_COLOR=1

# step TITLE: runs everything; leaves the names of the executed tasks in $executed and the footer in $log
step() {
	printf '\n== %s\n' "$1"
	local begin end
	log=$work/log
	begin=$(date +%s%N)
	if ! "$vx" run build test --all >"$log" 2>&1; then
		sed 's/^/   /' "$log"
		echo "demo: vx run failed" >&2
		exit 1
	fi
	end=$(date +%s%N)
	sed 's/^/   /' "$log"
	executed=$(grep -oE '[@a-z/]+#(build|test|codegen)$' "$log" | sort || true)
	count=$(grep -c . <<<"$executed" || true)
	echo "   -> $count of 21 tasks executed in $(((end - begin) / 1000000)) ms"
}

# expect WHAT GOT WANTED
expect() {
	if [ "$2" = "$3" ]; then
		echo "   -> as it should be: $1"
	else
		echo "   -> WRONG: $1: got '$2', wanted '$3'"
		failed=1
	fi
}

step 'Cold: nothing is cached, all ten projects are built and tested'
expect 'every task ran' "$count" 21
expect 'the program works' "$(printf 'print 6 * 7\n' | apps/calc/dist/calc)" 42
before=$(find . -path '*/dist/*' -type f -exec sha256sum {} + | sort -k 2)

step 'Again: nothing has changed'
expect 'nothing ran' "$count" 0

sed -i 's/0xcbf29ce484222325u/0xcbf29ce484222326u/' libs/hash/src/hash.c libs/hash/test/test.c
sed -i 's/0xaf63dc4c8601ec8cu/hash_bytes("a", 1)/; s/0x85944171f73967e8u/hash_string("foobar")/' libs/hash/test/test.c
step 'After an edit of libs/hash: only what depends on it runs'
wanted='@example/eval#build @example/eval#test @example/hash#build @example/hash#test @example/table#build @example/table#test calc#build calc#test words#build words#test'
expect 'hash and its dependents ran' "$(echo $executed)" "$wanted"

git checkout -q .
rm -rf apps/calc/dist
step 'The edit undone and apps/calc/dist removed: everything comes from the cache'
expect 'nothing ran' "$count" 0
expect 'every output is what it was' "$(find . -path '*/dist/*' -type f -exec sha256sum {} + | sort -k 2)" "$before"
expect 'the program works' "$(printf 'print 6 * 7\n' | apps/calc/dist/calc)" 42

echo
[ $failed = 0 ] || { echo "demo: not what was expected, see WRONG above" >&2; exit 1; }
echo "demo: as expected"
