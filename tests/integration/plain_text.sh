#!/usr/bin/env bash
# Nothing that comes from a file, a name, a configuration, the environment or a command line reaches a terminal as it is, whatever vx says of it:
# every verb, on a pipe and on a terminal. What a task prints does.
. "$(dirname "$0")/../lib.sh"
. "$SRC/tests/vx.sh"

# raw OUTPUT: what of it a terminal would obey, or no UTF-8; nothing when it is plain
cat >"$W/raw.py" <<'PY'
import re, sys
data = open(sys.argv[1], "rb").read().replace(b"\r\n", b"\n")
own = rb"\x1b\[[0-9;]*m|\r\x1b\[\d+A\x1b\[J" if len(sys.argv) > 2 else rb"(?!)"  # vx's own colours and live rows
data = re.sub(own, b"", data)
try:
    text = data.decode("utf-8")
except UnicodeDecodeError as e:
    print(f"not UTF-8: {data[max(0, e.start - 20):e.start + 20]!r}")
    sys.exit()
bad = re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff]", text)
if bad:
    print(f"U+{ord(bad.group()):04X} in {text[max(0, bad.start() - 30):bad.start() + 30]!r}")
PY
# term COMMAND...: runs it on a pseudo terminal, whose output goes to $W/tty
cat >"$W/term.py" <<'PY'
import os, pty, sys
pid, fd = pty.fork()
if pid == 0:
    os.execvp(sys.argv[2], sys.argv[2:])
with open(sys.argv[1], "wb") as out:
    while True:
        try:
            chunk = os.read(fd, 65536)
        except OSError:
            break
        if not chunk:
            break
        out.write(chunk)
os.waitpid(pid, 0)
PY
# plain NAME ARGS...: vx says it plainly; something is said
plain() {
	local name=$1 bad
	shift
	vx "$@"
	cat "$W/.out" "$W/.err" >"$W/both"
	[ -s "$W/both" ] || { fail "$name: nothing was said"; return; }
	bad=$(python3 "$W/raw.py" "$W/both")
	is "$name" "$bad" ''
	TERM=dumb timeout -k 1 60 python3 "$W/term.py" "$W/tty" "$VX" "$@"
	bad=$(python3 "$W/raw.py" "$W/tty")
	is "$name, on a dumb terminal" "$bad" ''
	NO_COLOR= TERM=xterm timeout -k 1 60 python3 "$W/term.py" "$W/tty" "$VX" "$@"
	bad=$(python3 "$W/raw.py" "$W/tty" own)
	is "$name, on a terminal with colours" "$bad" ''
}

esc=$'\x1b' evil=$'\x1b]0;x\a\x1b[2J\r\x7f\xc2\x9b2J\xe2\x80\xae\xff'
name=$'\xc2\x9b2J\xe2\x80\xae\xe2\x81\xa6' # what a name may hold
je='\u001b]0;x\u0007\u001b[2J\r\u007f\u009b2J\u202e'

workspace "$W/ws$evil"
printf 'dist/\n.vx/\n' >.gitignore
mkdir -p "p/a$evil"
put "p/a$evil/package.json" "{ \"name\": \"a$name\", \"version\": \"1.0.0\" }"
put "p/a$evil/src/f$evil" x
put "p/a$evil/vx.json" <<JSON
{ "tags": ["t$name"], "tasks": {
  "ok$name": { "description": "$je", "exec": { "command": "true '$je'" } },
  "cached": { "exec": { "command": "true '$je'", "env": { "define": { "V": "$je" } } },
    "cache": { "inputs": { "files": ["src/**", "no$name*"], "env": ["A$name"] }, "outputs": { "files": ["dist/$name/**"] } } },
  "fails": { "exec": { "command": "exit 3 '$je'", "retries": 1 } },
  "after": { "dependsOn": ["fails"], "exec": { "command": "true" } },
  "probe": { "exec": { "command": "true" }, "cache": { "inputs": { "files": [], "runtime": ["echo '$je' >&2; exit 3"] }, "outputs": { "files": [] } } },
  "serve": { "exec": { "command": "exec sleep 0.01", "persistent": { "readyWhen": "($je" } } }
} }
JSON
git add -A && git commit -qm c

plain 'the plan' run --all "ok$name" cached fails --dry
plain 'the plan as JSON' run --all cached --dry=json
plain 'the whole plan' run --all cached --dry=full
plain 'a run' run --all "ok$name" cached
plain 'a failure, its retry and what it skips' run --all after --verbosity 3
GITHUB_ACTIONS=true plain 'a failure on GitHub' run --all after "ok$name"
CI=1 plain 'in CI' run --all after "ok$name" --verbosity 3
plain 'a probe that fails' run --all probe
plain 'an expression that does not compile' run --all serve
plain 'events on stdout' run --all after "ok$name" --events -
plain 'keys' run --all cached --output-logs hash-only
plain 'an unknown task' run "no$evil"
plain 'an unknown project' run "no$evil#x"
plain 'a filter that matches nothing' run cached --filter "no$evil"
plain 'a tag that nobody has' run cached --filter "tag:$evil"
plain 'a directory that is not there' run cached --filter "{./$evil}"
plain 'a revision that is not there' run --affected="$evil" cached
plain 'a changed range' run --filter "[$evil]" cached
plain 'an option that is not there' run "--no$evil" cached
plain 'a value that is none' run --concurrency "$evil" cached
plain 'a file that cannot be written' run --all cached --summarize="$W/no$evil/x"
plain 'events that cannot be written' run --all cached --events "$W/no$evil/x"
plain 'a directory to go to' run -C "$evil" cached
plain 'a verb that is none' "$evil"
plain 'an option in front' "-$evil"
plain 'help of what is none' help "$evil"
plain 'no task' run
plain 'info' info
plain 'info as JSON' info --format json
plain 'info elsewhere' info --cache-dir "$W/x$evil"
plain 'cache stats' cache stats
plain 'cache stats as JSON' cache stats --format json
plain 'cache verify' cache verify
plain 'cache prune' cache prune --dry-run
plain 'a size that is none' cache prune --max-size "$evil"
plain 'cache of a word' cache "$evil"
plain 'lock' lock
plain 'lock with a word' lock "$evil"
VX_IO=$evil plain 'a variable' run cached --all
VX_RUN_WORKSPACE=$PWD VX_RUN_TASK=$evil plain 'inside a task' run --all cached
VX_KILL_GRACE_MS=$evil plain 'a number that is none' run --all cached
put "p/b/package.json" "{ \"name\": \"b\", \"scripts\": { \"x\": \"echo $je\" } }"
plain 'init' init
rm -rf p/b
for broken in "{ \"tasks\": { \"x\": { \"exec\": { \"comm$je\": \"x\" } } } }" "{ \"tasks\": { \"x$evil\": 5 } }" "{ \"x$je\": 1, \"x$je\": 2 }" \
	"{ \"tasks\": { \"x\": { \"dependsOn\": [\"y$je\"] } } }" "[$evil" \
	"{ \"tasks\": { \"x\": { \"exec\": { \"command\": \"x\" }, \"cache\": { \"inputs\": { \"files\": [\"/$je\"] }, \"outputs\": { \"files\": [] } } } } }"; do
	put "p/a$evil/vx.json" "$broken"
	plain "a broken configuration ${broken:0:40}" run --all x
done
put "p/a$evil/vx.json" '{ "tasks": { "x": { "exec": { "command": "true" } } } }'
for manifest in "{ \"name\": \"a$evil\" }" "{ \"name\": \"a\", \"dependencies\": { \"$je\": \"workspace:*\", \"b\": \"workspace:$je\" }, }"; do
	put "p/a$evil/package.json" "$manifest"
	plain "a broken manifest ${manifest:0:24}" run --all x
done
put package.json "{ \"name\": \"root\", \"workspaces\": [\"../$je\"] }"
plain 'patterns that leave the workspace' run --all x
put "$W/turbo$evil/package.json" '{ "name": "root", "workspaces": ["p/*"], "packageManager": "npm@10.0.0" }'
cd "$W/turbo$evil" && git init -q -b main .
put "p/a/package.json" "{ \"name\": \"a\", \"scripts\": { \"build\": \"true '$je'\" } }"
put turbo.json "{ \"tasks\": { \"build\": { \"inputs\": [\"$je\"], \"outputs\": [\"dist/$je/**\"], \"$je\": 1 }, \"$je\": {} }, \"$je\": 1 }"
git add -A && git commit -qm c
plain 'a turbo.json' run build
plain 'its plan' run build --dry
plain 'init of it' init --from-turbo

# what a task prints is its own
workspace "$W/own"
project a <<<"$(task "printf '\\033[31mred\\033[0m\\n'")"
git add -A
vx run a#build
like 'a task may colour what it prints' "$out" "$esc\\[31mred"
done_testing
