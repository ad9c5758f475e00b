#!/usr/bin/env bash
# A runtime probe that fails fails its task, and what comes after it is treated as behind any failed task.
. "$(dirname "$0")/../lib.sh"
. "$SRC/tests/vx.sh"

workspace
project a <<JSON
{ "tasks": {
  "p": { "exec": { "command": "echo p >>$W/ran" }, "cache": { "inputs": { "files": [], "runtime": ["echo no compiler >&2; exit 3"] }, "outputs": { "files": [] } } },
  "group": { "dependsOn": ["p"] },
  "d": { "dependsOn": ["group"], "exec": { "command": "echo d >>$W/ran" }, "cache": { "inputs": { "files": [] }, "outputs": { "files": [] } } },
  "e": { "dependsOn": ["d"], "exec": { "command": "echo e >>$W/ran" }, "cache": { "inputs": { "files": [] }, "outputs": { "files": [] } } },
  "other": { "exec": { "command": "echo other >>$W/ran" } }
} }
JSON
git add -A && git commit -qm c
vx run a#e a#other --summarize=s.json
is 'the run has failed, what is beside it has run' "$rc $(ran)" '1 other'
like 'the task of the probe has failed, with its reason' "$out" 'a#p: runtime input "echo no compiler >&2; exit 3" exited with 3: no compiler'
like 'what comes after it is skipped, and names it' "$out" '○ .*skipped: a#p failed.* a#d'
like 'also further down' "$out" '○ .*skipped: a#p failed.* a#e'
like 'the counts tell it so' "$out" 'tasks +1 ok, 1 failed, 2 skipped of 4'
is 'and the summary' "$(python3 -c 'import json; print(*sorted(t["task"] + "=" + t["result"]["outcome"] for t in json.load(open("s.json"))["tasks"] if "result" in t))')" \
	'd=skipped e=skipped other=success p=failed'
vx run a#e --continue=never
is 'nothing more is started' "$rc $(ran)" '1 '
vx run a#e --continue=always
is 'what goes on after failures runs' "$rc $(ran)" '1 d e'
like 'without a key, which is said' "$err" 'a#d runs without a key and is not saved; a#p has no key: .*exited with 3'
vx run a#e --continue=always
is 'and was not saved' "$rc $(ran)" '1 d e'
vx run a#e --exclude-dependencies=p
is 'behind one that is left out it runs' "$rc $(ran)" '0 d e'
like 'likewise' "$err" 'a#d runs without a key and is not saved'
done_testing
