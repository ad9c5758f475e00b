#!/usr/bin/env bash
# What runs behind a server is keyed from what is on disk when the server is ready, wherever it may write, and what it writes later is noticed.
. "$(dirname "$0")/../lib.sh"
. "$SRC/tests/vx.sh"

# A server does what $W/does says, and is ready; then what $W/goes-on says.
serves="sh $W/does; echo ready; sh $W/goes-on; sleep 91.$$"
server() { printf '{ "tasks": { "serve": { %s"exec": { "command": %s, "persistent": { "readyWhen": "ready" }%s } } } }' "${2:+\"dependsOn\": [\"$2\"], }" "$(json "${3:-$serves}")" "${1:+, $1}"; }
# test COMMAND SERVER...
test_task() {
	local command=$1
	shift
	printf '{ "exec": { "command": %s }, "dependsOn": [%s], "cache": { "inputs": { "files": ["gen"] }, "outputs": { "files": ["dist/**"] } } }' \
		"$(json "$command")" "$(printf '"%s", ' "$@" | sed 's/, $//')"
}
makes="echo e2e >>$W/ran; mkdir -p dist; cat gen >dist/o"
# saw NAME WANTED-IN-OUTPUT WANTED-RAN: of a run
saw() {
	vx run "$task"
	is "$1" "$rc $(cat "$at/dist/o") $(ran)" "0 $2 $3"
}
differs() { echo "cmp -s $W/seed $1 || cat $W/seed >$1" >"$W/does"; }
quiet() { : >"$W/does"; : >"$W/goes-on"; }

# in the server's own project; the same without readyWhen
for ready in yes no; do
	workspace "$W/own-$ready"
	quiet
	project a <<<"$(server | sed "s|^{ \"tasks\": {|{ \"tasks\": { \"e2e\": $(test_task "$makes" serve | sed 's/[|&\\]/\\&/g'),|")"
	[ $ready = yes ] || sed -i 's/"persistent": { "readyWhen": "ready" }/"persistent": true/; s/"command": "sh \([^;]*\);/"command": "sh \1; : >up;/' p/a/vx.json
	[ $ready = yes ] || sed -i "s|\"command\": \"echo e2e|\"command\": \"while ! test -e up; do sleep 0.01; done; echo e2e|" p/a/vx.json
	put .gitignore $'dist/\nup'
	put p/a/gen A
	echo A >"$W/seed"
	git add -A && git commit -qm one
	task=a#e2e at=p/a
	differs gen
	saw "($ready) the server finds everything in place" A e2e
	rm -f p/a/up
	saw "($ready) a hit" A ''
	if [ $ready = yes ]; then
		echo B >"$W/seed"
		vx run "$task" --force >/dev/null
		ran >/dev/null
		git checkout -q p/a/gen
		saw 'it rewrites an input before it is ready: a hit on what is there then' B ''
		saw 'a server whose own files are others is another one' B e2e
		echo A >"$W/seed"
		rm -rf p/a/dist
		vx run "$task"
		is 'and back' "$rc $(cat p/a/gen) $(cat p/a/dist/o)" '0 A A'
		ran >/dev/null
	fi
done

# elsewhere, by a write grant
if can_sandbox; then
	workspace "$W/granted"
	quiet
	project a <<<"$(server '"sandbox": { "allow": { "read": [".", "../..", "'"$W"'"], "write": ["../b"] } }')"
	project b <<<"{ \"tasks\": { \"e2e\": $(test_task "$makes" a#serve) } }"
	put p/b/gen A
	echo A >"$W/seed"
	git add -A && git commit -qm one
	task=b#e2e at=p/b
	differs ../b/gen
	saw 'a sandboxed server that may write there' A e2e
	echo B >"$W/seed"
	saw 'rewrites it' B e2e
	saw 'a hit on that' B ''
else
	skip 'a sandboxed server' 'no user namespaces here'
fi

# two servers; one behind the other; the last that is ready counts
workspace "$W/two"
quiet
project a <<<"$(server)"
sed -i 's|"serve": {|"second": { "dependsOn": ["serve"], "exec": { "command": "cmp -s gen2 ../../../seed2 \|\| cat ../../../seed2 >gen2; echo ready; sleep 91", "persistent": { "readyWhen": "ready" } } }, "serve": {|' p/a/vx.json
sed -i "s|^{ \"tasks\": {|{ \"tasks\": { \"e2e\": $(test_task "$makes; cat gen2 >>dist/o" second | sed 's/"gen"/"gen", "gen2"/; s/[|&\\]/\\&/g'),|" p/a/vx.json
put p/a/gen A
put p/a/gen2 A
echo A >"$W/seed"
echo A >"$W/seed2"
git add -A && git commit -qm one
differs gen
task=a#e2e at=p/a
oneline() { paste -sd' ' "$1"; }
vx run a#e2e
is 'a server behind a server' "$rc $(oneline p/a/dist/o) $(ran)" '0 A A e2e'
echo B >"$W/seed2"
vx run a#e2e
is 'the second one rewrites an input' "$rc $(oneline p/a/dist/o) $(ran)" '0 A B e2e'
echo B >"$W/seed"
vx run a#e2e
is 'the first one does' "$rc $(oneline p/a/dist/o) $(ran)" '0 B B e2e'

# what it writes when it has long been ready: before the dependent is keyed, and while that runs
workspace "$W/later"
quiet
wait_for_it="touch $W/go; while ! test -e $W/gone-on; do sleep 0.01; done"
project a <<<"$(server)"
sed -i "s|^{ \"tasks\": {|{ \"tasks\": { \"keyed-before\": { \"dependsOn\": [\"serve\"], \"exec\": { \"command\": \"$wait_for_it\" }, \"cache\": { \"inputs\": { \"files\": [], \"env\": [\"VXT_N\"] }, \"outputs\": { \"files\": [] } } }, \"e2e\": $(test_task "$makes" serve keyed-before | sed 's/"files": \["gen"\]/&, "tasks": ["serve"]/; s/[|&\\]/\\&/g'),|" p/a/vx.json
put p/a/gen A
echo A >"$W/seed"
echo "while ! test -e $W/go; do sleep 0.01; done; cmp -s $W/seed gen || cat $W/seed >gen; touch $W/gone-on" >"$W/goes-on"
git add -A && git commit -qm one
task=a#e2e at=p/a
saw 'a server that goes on' A e2e
rm -f "$W/go" "$W/gone-on"
echo B >"$W/seed"
vx run a#e2e a#keyed-before --force
is 'and writes while another task is waited for' "$rc $(cat p/a/dist/o) $(ran)" '0 B e2e'
rm -f "$W/go" "$W/gone-on"
git checkout -q p/a/gen
VXT_N=2 vx run a#e2e # keyed-before runs
is 'what it has written by then is the key' "$rc $(cat p/a/gen) $(cat p/a/dist/o)" '0 B B'
ran >/dev/null

workspace "$W/meanwhile"
quiet
project a <<<"$(server)"
project b <<<"{ \"tasks\": { \"e2e\": $(test_task "$makes; touch $W/go; while ! test -e $W/gone-on; do sleep 0.01; done" a#serve) } }"
put p/b/gen A
rm -f "$W/go" "$W/gone-on"
echo "while ! test -e $W/go; do sleep 0.01; done; echo B >../b/gen; touch $W/gone-on" >"$W/goes-on"
git add -A && git commit -qm one
vx run b#e2e
is 'what it writes while a dependent runs' "$rc $(ran)" '0 e2e'
like 'is not saved' "$err" 'b#e2e.*p/b/gen'

done_testing
