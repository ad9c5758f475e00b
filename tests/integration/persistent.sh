#!/usr/bin/env bash
# Persistent tasks: readiness, dependents, stopping, failures, and that nobody starts one for nothing.
. "$(dirname "$0")/../lib.sh"
. "$SRC/tests/vx.sh"

# servers COMMAND PERSISTENT: p/server#serve, and p/client#test, cached, that needs it
servers() {
	workspace "$W/ws$((++n))"
	project server <<<"{ \"tasks\": { \"serve\": { \"exec\": { \"command\": $(json "$1"), \"persistent\": $2 } } } }"
	project client server <<<"{ \"tasks\": { \"test\": { \"dependsOn\": [\"server#serve\"], \"exec\": { \"command\": \"sleep 0.1; echo client >>$W/ran; mkdir -p dist; cp src/x dist/\" },
		\"cache\": { \"inputs\": { \"files\": [\"src/**\"] }, \"outputs\": { \"files\": [\"dist/**\"] } } } } }"
	put p/client/src/x x
	git add -A
}
n=0

servers "echo server >>$W/ran; sleep 0.5; echo ready >>$W/order; printf 'now \\033[32mLocal:\\033[0m 80\\n'; sleep 91.$$" '{ "readyWhen": "^now Local: \\\\d+" }'
sed -i "s|sleep 0.1; echo client|echo client >>$W/order; echo client|" p/client/vx.json
sed -i 's/\\\\\\\\d/\\\\d/' p/server/vx.json
vx run client#test
is 'a server that gets ready' "$rc" 0
is 'its dependent starts on ready' "$(paste -sd' ' "$W/order")" 'ready client'
is 'both ran' "$(ran)" 'client server'
ok 'the server is stopped at the end' none_called "sleep 91.$$"
vx run client#test
is 'a server whose every dependent hits is not started' "$rc $(ran)" '0 '
rm -rf p/client/dist
vx run client#test
is 'nor for a restore' "$rc $(ran)" '0 '
ok 'which happened' test -e p/client/dist/x
vx run client#test --force
is 'but for --force' "$rc $(ran)" '0 client server'

servers "echo server >>$W/ran; sleep 92.$$" '{}'
vx run client#test
is 'without readyWhen: ready at once' "$rc $(ran)" '0 client server'
ok 'stopped' none_called "sleep 92.$$"

servers "echo server >>$W/ran; echo trouble; exit 4" '{ "readyWhen": "never" }'
vx run client#test
is 'exit before ready fails the run' "$rc $(ran)" '1 server'
like 'the server is named' "$out" 'server#serve'
like 'its output is shown' "$out" 'trouble'
like 'the client is skipped' "$out$err" 'client#test'

servers "exit 0" '{ "readyWhen": "never" }'
vx run client#test
is 'exit 0 before ready fails too' "$rc $(ran)" '1 '

servers "echo hello; sleep 93.$$" '{ "readyWhen": "never" }'
sed -i 's/"persistent"/"timeout": 4000, "persistent"/' p/server/vx.json
vx run client#test
is 'readiness has a time limit' "$rc $(ran)" '1 '
ok 'the server is gone' none_called "sleep 93.$$"

servers "echo \$\$ >$W/server.pid; echo up; until [ -e $W/client ]; do sleep 0.02; done; exit 5" '{ "readyWhen": "up" }'
sed -i "s|sleep 0.1|: >$W/client; while kill -0 \$(cat $W/server.pid) 2>/dev/null; do sleep 0.02; done; sleep 0.1|" p/client/vx.json
vx run client#test
is 'exit after ready fails the run' "$rc" 1
like 'and names it' "$out$err" 'server#serve.*exit 5|exit 5.*server#serve'

# stdin of a server stays open, of others it is /dev/null
servers "cat >/dev/null; echo server-eof >>$W/ran" '{}'
vx run client#test
is "a server's stdin is held open" "$rc $(ran)" '0 client'

# requested: in the foreground until it exits or Ctrl-C
servers "echo up; echo server >>$W/ran; sleep 0.6; exit 0" '{ "readyWhen": "up" }'
vx run server#serve
is 'a requested server that exits 0 ends the run' "$rc $(ran)" '0 server'
servers "trap 'echo stopped >>$W/ran; exit 0' TERM; echo up; : >$W/up; sleep 94.$$ & wait" '{ "readyWhen": "up" }'
rm -f "$W/up"
"$VX" run server#serve >"$W/out" 2>&1 &
pid=$!
wait_for test -e "$W/up"
wait_for grep -q up "$W/out"
ok 'a requested server keeps the run' kill -0 $pid
kill -TERM $pid
wait $pid
is 'until a signal' "$? $(ran)" '143 stopped'
ok 'nothing is left' none_called "sleep 94.$$"

# a server does not hold a slot once it is ready
servers "echo up; echo server >>$W/ran; sleep 95.$$" '{ "readyWhen": "up" }'
vx run client#test --concurrency 1
is 'a ready server gives its slot back' "$rc $(ran)" '0 client server'

# a failure ends what a server that was asked for would keep, also one in a group
project both <<JSON
{ "tasks": {
  "p": { "exec": { "command": "echo up; : >$W/up; exec sleep 96.$$", "persistent": { "readyWhen": "up" } } },
  "f": { "exec": { "command": "until [ -e $W/up ]; do :; done; echo f >>$W/ran; exit 3" } },
  "after": { "dependsOn": ["f"], "exec": { "command": "true" } },
  "dev": { "dependsOn": ["p", "f"] }, "ok": { "exec": { "command": "true" } }
} }
JSON
for words in 'both#p both#f' 'both#p both#after' 'both#dev' 'both#p both#ok both#f --continue=always'; do
	rm -f "$W/up"
	vx run $words
	is "$words: the failure ends the run" "$rc $(ran)" '1 f'
	ok 'and the server with it' none_called "sleep 96.$$"
done

done_testing
