#!/usr/bin/env bash
# What a run leaves behind when asked to: --events, --profile, --report. The formats are held by tests/unit/test_trace.c; here it is that the run feeds them.
. "$(dirname "$0")/../lib.sh"
. "$SRC/tests/vx.sh"

# events FILE: each line is JSON and the order makes sense; then "event:task" of all, in order
events() {
	python3 - "$1" <<'EOF'
import json, sys
lines = [json.loads(l) for l in open(sys.argv[1])]
ns = [l["ns"] for l in lines if l["event"] not in ("begin", "phase")]
assert ns == sorted(ns), "time runs backwards"
assert lines[0]["event"] == "begin" and lines[-1]["event"] == "end"
print(" ".join(l["event"] + (":" + l["task"] if "task" in l else "") for l in lines if l["event"] not in ("begin", "phase", "key", "keyed", "started")))
EOF
}

workspace
project a <<<"$(cached "echo a >>$W/ran; mkdir -p dist; echo x >dist/x")"
project b a <<<"{ \"tasks\": { \"build\": { \"dependsOn\": [\"^build\"], \"exec\": { \"command\": \"echo b >>$W/ran; exit 3\" } } } }"
put p/a/src/x 1
git add -A

vx run build --all --events "$W/events" --profile="$W/profile.json" --report=html
is 'the exit is the run'"'"'s' "$rc $(ran)" '1 a b'
is 'nothing on stderr' "$err" ''
story=$(events "$W/events")
like 'a story from begin to end' "$story" '^run:a#build exited:a#build .*done:a#build run:b#build .*exited:b#build done:b#build .*end$|^run:a#build exited:a#build .*done:a#build run:b#build .*exited:b#build .*done:b#build end$'
like 'every save settles' "$story" 'settled:a#build'
is 'the end has the exit code' "$(tail -n 1 "$W/events" | grep -o '"code":1')" '"code":1'
like 'how it ended' "$(grep '"done","task":"b#build"' "$W/events")" '"result":"failed".*"status":"exit 3"'
is 'a trace that Chrome reads: two runs, one save' "$(python3 -c '
import json, sys
x = [e["cat"] for e in json.load(open(sys.argv[1]))["traceEvents"] if e["ph"] == "X"]
print(x.count("run"), x.count("save"))' "$W/profile.json")" '2 1'
ok 'the page' grep -q 'b#build' vx-report.html

vx run a#build --events=- --output-logs none
like 'events on stdout' "$out" '"event":"restored","task":"a#build","ok":true'
vx run a#build --events=-
is 'there is nothing but JSON there' "$(grep -vc '^{"ns":.*}$' <<<"$out")" 0
like 'the rest is on stderr' "$err" '^tasks +1 ok of 1'
vx run a#build --report=markdown
like 'Markdown' "$(cat vx-report.md)" '1 from the cache'
rm -f vx-report.md vx-report.html
vx run a#build
is 'without a flag nothing is written' "$(find . -name 'vx-*' -not -path './.vx/*')" ''

# sinks that cannot be written
vx run a#build --events /dev/full
is 'a full disk does not fail the run' "$rc" 0
like 'but is said' "$err" 'events.*/dev/full'
vx run a#build --events "$W/no/such/file"
like 'a sink that cannot be opened is named' "$err" "$W/no/such/file"

# what cannot be written is said before anything runs, with what to do
put "$W/mine" precious
ln -s "$W/mine" events.link
vx run a#build --events events.link
is 'a link is not followed' "$rc $err $(cat "$W/mine")" '1 vx run: --events: events.link is a symbolic link (remove it, name what it leads to, or - for standard output) precious'
rm events.link
vx run a#build --events /dev/fd/5 5>"$W/five"
is 'a descriptor is, as a shell names it' "$rc $(head -n 1 "$W/five" | grep -o '"event":"begin"')" '0 "event":"begin"'
vx run a#build --events="$W/no/such/file"
is 'events into nowhere' "$rc $err" "1 vx run: --events: $W/no/such/file: No such file or directory (name a file in a directory that is there and writable, or - for standard output)"
mkfifo "$W/pipe"
vx run a#build --events="$W/pipe"
is 'a FIFO without a reader' "$rc $err" "1 vx run: --events: nobody reads the FIFO $W/pipe (start its reader first)"
vx run a#build $(seq -f '-F x%g' 1001)
one_line 'filters have a limit' '--filter: more than 1000 filters'

done_testing
