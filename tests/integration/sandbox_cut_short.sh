#!/usr/bin/env bash
# A sandboxed task whose box host is killed: nobody is left to look for names that no task may make, so whoever runs next does, and nothing runs until a person has
# decided what becomes of one.
. "$(dirname "$0")/../lib.sh"
. "$SRC/tests/vx.sh"
can_sandbox || skip_all 'no user namespaces or no bwrap'

workspace
put .gitignore $'dist/\n.vx/'
put cmd 'mkdir -p dist/.vscode; echo planted >dist/.vscode/tasks.json; echo ready >dist/ready; sleep 300'
project a <<<"$(task "$(cat cmd)" '"sandbox": { "allow": { "write": ["dist/"] } }')"
project b <<<"$(task "echo b >>$W/ran")"
git add -A && git commit -qm one
boxhosts() { called '-boxhost' | while read -r p; do [ "$(readlink "/proc/$p/exe")" = "$(readlink -f "$VX")" ] && grep -qz "$W" "/proc/$p/environ" && echo "$p"; done; }
started() { [ -e p/a/dist/ready ]; }
# cut_short SIGNALLED: runs a#build and kills its box host (and everything else of vx's with "all")
cut_short() {
	rm -rf p/a/dist
	"$VX" run a#build >"$W/first.out" 2>&1 &
	local vx=$! host all
	wait_for started || fail 'the task has started' "$(cat "$W/first.out")"
	host=$(boxhosts)
	all=$(below $vx)
	isnt 'there is a box host' "$host" ''
	# shellcheck disable=SC2086
	if [ "$1" = all ]; then kill -KILL $vx $all 2>/dev/null; else kill -KILL $host; fi
	wait $vx 2>/dev/null
	rc=$?
}

cut_short host
isnt 'the run whose box host is killed fails' "$rc" 0
like 'and says what is there' "$(cat "$W/first.out")" 'p/a/dist/\.vscode is there since a task was cut short, and no task may make it'
ran >/dev/null
vx run b#build
one_line 'the next run' 'p/a/dist/\.vscode is there since a task was cut short.*delete .*/\.vx/sweep/'
is 'and runs nothing' "$(ran)" ''
rm -r p/a/dist/.vscode
vx run b#build
is 'deleted: it runs' "$rc $(ran)" '0 b'

cut_short all
vx run b#build
one_line 'everything of vx killed: the next run' 'p/a/dist/\.vscode is there since'
record=$(sed -n 's/.*to keep it, delete \([^)]*\).*/\1/p' <<<"$err")
rm "$record"
vx run b#build
is 'kept: it runs' "$rc $(ran) $(cat p/a/dist/.vscode/tasks.json)" '0 b planted'

# what was there before is nobody's fault
put cmd2 'echo ready >dist/ready; sleep 300'
project a <<<"$(task "$(cat cmd2)" '"sandbox": { "allow": { "write": ["dist/"] } }')"
mkdir -p keep && mv p/a/dist/.vscode keep/
cut_short_with() { mkdir -p p/a/dist && cp -r keep/.vscode p/a/dist/; }
rm -rf p/a/dist && cut_short_with
"$VX" run a#build >"$W/first.out" 2>&1 &
vx=$!
wait_for started
all=$(below $vx)
# shellcheck disable=SC2086
kill -KILL $vx $all 2>/dev/null
wait $vx 2>/dev/null
vx run b#build
is 'what had been there before the task is none' "$rc $(ran) $(cat p/a/dist/.vscode/tasks.json)" '0 b planted'
is 'and no record is left' "$(ls .vx/sweep)" ''
done_testing
