#!/usr/bin/env bash
# Several runs at once on one workspace and on one store; slots.
. "$(dirname "$0")/../lib.sh"
. "$SRC/tests/vx.sh"

workspace
project a <<<"$(cached "echo a >>$W/ran; until [ -e $W/go ]; do sleep 0.05; done; mkdir -p dist; cp src/x dist/")"
put p/a/src/x x
git add -A
"$VX" run build --all >"$W/log.one" 2>&1 &
one=$!
wait_for test -s "$W/ran"
"$VX" run build --all >"$W/log.two" 2>&1 &
two=$!
wait_for grep -q pid "$W/log.two"
touch "$W/go"
wait $one
is 'the first' $? 0
wait $two
is 'the second' $? 0
is 'the task ran once, the second run hit' "$(ran)" a
like 'the second says whom it waits for' "$(cat "$W/log.two")" "pid $one"

# one that waits can be interrupted
put p/a/src/x y
rm "$W/go"
"$VX" run build --all >"$W/log.one" 2>&1 &
one=$!
wait_for test -s "$W/ran"
python3 -c 'import os, signal, sys; signal.signal(signal.SIGINT, signal.SIG_DFL); os.execv(sys.argv[1], sys.argv[1:])' "$VX" run build --all >"$W/log.two" 2>&1 &
two=$!
wait_for grep -q pid "$W/log.two"
kill -INT $two
wait $two
is 'a waiting run ends at once on SIGINT' $? 130
touch "$W/go"
wait $one
is 'the other goes on' "$? $(ran)" '0 a'

# the lock goes with its holder
put p/a/src/x z
rm "$W/go"
"$VX" run build --all >"$W/log.one" 2>&1 &
one=$!
wait_for test -s "$W/ran"
kill -KILL $one
wait $one 2>/dev/null
touch "$W/go"
vx run build --all
is 'a killed run leaves no lock' "$rc $(ran)" '0 a a'

# two workspaces, one store
for w in one two; do
	workspace "$W/$w"
	for p in a b c d e f; do
		project $p <<<"$(cached "echo $p >>$W/ran; mkdir -p dist; seq 2000 >dist/x")"
		put p/$p/src/x x
	done
	git add -A
done
export VX_CACHE_DIR=$W/store
(cd "$W/one" && exec "$VX" run build --all --concurrency 3) >"$W/log.one" 2>&1 &
one=$!
(cd "$W/two" && exec "$VX" run build --all --concurrency 3) >"$W/log.two" 2>&1 &
two=$!
wait $one
is 'one store, two runs: the first' $? 0
wait $two
is 'one store, two runs: the second' $? 0
: >"$W/ran"
for w in one two; do
	cd "$W/$w" || exit 1
	rm -rf p/*/dist
	vx run build --all
	is "$w hits" "$rc $(ran)" '0 '
	is "$w has its outputs" "$(cat p/*/dist/x | wc -l)" 12000
done
unset VX_CACHE_DIR

# slots
workspace "$W/slots"
# Each waits until as many have started as $W/meet says: what is to run at once does, however slow the machine is. What must not is given a moment to do so.
slot() { echo "echo start $1 >>$W/slots.log; until [ \$(grep -c '^start' $W/slots.log) -ge \$(cat $W/meet) ]; do sleep 0.02; done; sleep 0.1; echo end $1 >>$W/slots.log"; }
for p in b c d; do project $p <<<"$(task "$(slot $p)")"; done
project a <<<"$(task "$(slot a)")"
meet() { echo "$1" >"$W/meet"; }
meet 0
most() { awk '/start/ { n++; if (n > most) most = n } /end/ { n-- } END { print most }' "$W/slots.log"; rm "$W/slots.log"; }
vx run build --all --concurrency 1
is 'one slot: one at a time' "$rc $(most)" '0 1'
meet 3
vx run build --all --concurrency 4
is 'four slots: all at once' "$rc $(most)" '0 4'
meet 2
put vx.workspace.json '{ "concurrency": 2 }'
vx run build --all
is 'concurrency of the workspace' "$rc $(most)" '0 2'
meet 0
vx run build --all --concurrency 1
is 'the flag wins' "$rc $(most)" '0 1'
rm vx.workspace.json
project a <<<"$(task "$(slot a)" '"resources": { "exclusive": true }')"
vx run build --all --concurrency 4
is 'an exclusive task runs alone' "$rc $(awk '/start a/ { alone = !n; in_a = 1; next } /end a/ { in_a = 0; next } /start/ { n++ } /end/ { n-- } in_a { alone = 0 } END { print alone }' "$W/slots.log")" '0 1'
rm "$W/slots.log"
project a <<<"$(task "echo a start >>$W/slots.log; sleep 0.1; echo a end >>$W/slots.log" '"resources": { "cpus": 99 }')"
meet 2
vx run build --all --concurrency 2
is 'more cpus than there are slots: all of them' "$rc $(most)" '0 2'
meet 0
vx run build --all --concurrency 1 --no-cache --continue=always
is 'concurrency 1' "$rc $(most)" '0 1'

# many, and their output
workspace "$W/many"
for ((i = 0; i < 150; i++)); do put "p/p$i/package.json" "{ \"name\": \"p$i\" }"; put "p/p$i/vx.json" "{ \"tasks\": { \"build\": { \"exec\": { \"command\": \"echo line $i; echo $i >>$W/ran\" } } } }"; done
vx run build --all --concurrency 8 --output-logs full
is 'many: exit 0' "$rc" 0
is 'each once' "$(sort -n "$W/ran" | uniq | wc -l) $(wc -l <"$W/ran")" '150 150'
is 'all their output is there' "$(grep -c 'line [0-9]*$' <<<"$out")" 150

done_testing
