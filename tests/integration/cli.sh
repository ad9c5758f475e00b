#!/usr/bin/env bash
# Verbs, help, the plan as JSON, what is printed where.
. "$(dirname "$0")/../lib.sh"
. "$SRC/tests/vx.sh"

workspace
project a <<<"$(cached "echo a >>$W/ran; echo said by a; mkdir -p dist; cp src/x dist/")"
project b a <<<"{ \"tasks\": { \"build\": { \"dependsOn\": [\"^build\"], \"exec\": { \"command\": \"echo b >>$W/ran\", \"env\": { \"passThrough\": [\"MINE\"] } } }, \"ci\": { \"dependsOn\": [\"build\"] } } }"
put p/a/src/x x
git add -A

vx --version
is '--version' "$rc" 0
like 'is one line' "$out" '^vx [0-9]+\.[0-9]+'
vx help
is 'help' "$rc" 0
like 'lists the verbs' "$out" 'run .*'
like 'and info' "$out" 'info'
vx --help
is '--help' "$rc" 0
vx help run
is 'help run' "$rc" 0
for flag in $(grep -oE -- '--[a-z][a-z-]+' <<<"$out" | sort -u); do
	grep -q -- "$flag" "$SRC/docs/cli.md" || fail "docs/cli.md lacks $flag of vx help run"
done
help_run=$out
vx help
for verb in $(grep -oE '^  vx [a-z]+' <<<"$out" | cut -d' ' -f4 | sort -u); do
	grep -q "^vx $verb" "$SRC/docs/cli.md" || fail "docs/cli.md lacks the verb $verb"
	vx help "$verb"
	is "help $verb" "$rc" 0
	help_run="$help_run $out"
done
for flag in $(grep -oE -- '--[a-z][a-z-]+' "$SRC/docs/cli.md" | sort -u); do
	[ "$flag" = --version ] || [ "$flag" = --help ] || grep -q -- "$flag" <<<"$help_run" || fail "docs/cli.md has $flag, no vx help does"
done
# what the program asks the environment for, and each field of a configuration, is documented (but what only tests set)
for name in $(grep -rhoE '(getenv|env_number)\("[A-Z_]+"' "$SRC/sched" "$SRC/shm" "$SRC/worker" | cut -d'"' -f2 | sort -u); do
	case $name in VX_CRASH_AT | VX_POINT_LIST | VX_STAMPS | PATH | GIT_CONFIG_* | XDG_CONFIG_HOME) continue ;; esac
	grep -q "\`${name}[\`=]" "$SRC/docs/cli.md" || fail "docs/cli.md lacks \$$name"
done
for name in $(grep -oE '`(VX|TURBO)_[A-Z_]+' "$SRC/docs/cli.md" | tr -d '`' | sort -u); do
	grep -rq "\"${name}[\"=]" "$SRC/sched" "$SRC/shm" "$SRC/worker" || fail "nothing asks for \$$name of docs/cli.md"
done
for name in $(python3 -c 'import json, sys
def walk(v):
    if isinstance(v, dict):
        print(*[k for k in v["properties"] if k[0] != "$"] if isinstance(v.get("properties"), dict) else "", sep="\n")
        v = v.values()
    for x in v if not isinstance(v, str) and hasattr(v, "__iter__") else ():
        walk(x)
for f in sys.argv[1:]: walk(json.load(open(f)))' "$SRC/docs/schemas/project.json" "$SRC/docs/schemas/workspace.json" | sort -u); do
	grep -qE "[\`\".]${name}[\`\":.]" "$SRC/docs/config.md" "$SRC/docs/sandbox.md" || fail "no page has the field $name"
done
pass 'docs and program have the same words'
vx run --help
is 'run --help' "$rc" 0
vx run build --all -h
is 'run TASK -h' "$rc $(head -c 6 <<<"$out")" '0 vx run'
for verb in 'cache stats' 'cache prune --dry-run' lock init info; do
	vx $verb --help
	is "$verb --help" "$rc $(head -n 1 <<<"$out" | cut -d' ' -f1,2)" "0 vx ${verb%% *}"
done
vx help nothing
is 'help of what is not' "$rc" 1
vx help cahce
like 'help of what is mistyped' "$err" 'did you mean vx help cache'
vx
is 'no verb: exit 1' "$rc" 1
like 'no verb: the overview, on stderr' "$err" 'vx run .*'
is 'no verb: nothing on stdout' "$out" ''
for option in daemon 'log-order=x' 'ui tui' since=x no-deps 'base x' nxBail; do
	vx run build --all --$option
	one_line "another runner's --$option" "--${option%%[= ]*} is another runner's option .write .*"
done
vx info --format json
is 'info --format json' "$rc $(python3 -c 'import json, sys; print(json.load(sys.stdin)["workspace"])' <<<"$out")" "0 $PWD"
vx info --format=xml
one_line 'info in no such format' xml
vx info -C "$W" --cache-dir "$W/x"
like 'info elsewhere' "$out" '^workspace +none'
vx info --cache-dir "$W/x"
like 'info of another cache' "$out" "^cache +$W/x"
vx info
is 'info' "$rc" 0
like 'info: the version' "$out" '[0-9]+\.[0-9]+'
like 'info: the workspace' "$out" "$PWD"
like 'info: the cache' "$out" '\.vx/cache'
like 'info: the sandbox' "$out" '[Ss]andbox'
like 'info: the I/O' "$out" 'io_uring|blocking'
VX_IO=blocking vx info
like 'info: blocking where asked for' "$out" 'blocking'

# the plan
vx run build --all --dry=json
is '--dry=json' "$rc" 0
is 'runs nothing' "$(ran)" ''
plan() { python3 -c 'import json, sys
d = json.load(sys.stdin)
t = {x["id"]: x for x in d["tasks"]}
print(eval(sys.argv[1]))' "$1" <<<"$out"; }
is 'root' "$(plan 'd["root"]')" "$PWD"
is 'selected' "$(plan 'sorted(d["selected"])')" "['a', 'b']"
is 'ids' "$(plan 'sorted(t)')" "['a#build', 'b#build']"
is 'deps' "$(plan 't["b#build"]["deps"]')" "['a#build']"
is 'dir' "$(plan 't["a#build"]["dir"]')" 'p/a'
is 'project and task' "$(plan 't["a#build"]["project"] + " " + t["a#build"]["task"]')" 'a build'
is 'a miss' "$(plan 't["a#build"]["cacheStatus"]')" miss
is 'no cache' "$(plan 't["b#build"]["cacheStatus"]')" no-cache
is 'cache' "$(plan '(t["a#build"]["cache"], t["b#build"]["cache"])')" '(True, False)'
is 'outputs' "$(plan 't["a#build"]["outputs"]')" "['dist/**']"
is 'passThroughEnv' "$(plan 't["b#build"]["passThroughEnv"]')" "['MINE']"
like 'a key' "$(plan 't["a#build"]["hash"]')" '^[0-9a-f]{64}$'
is 'requested' "$(plan 't["a#build"]["requested"]')" True
is 'command' "$(plan '"echo a" in t["a#build"]["command"]')" True
hash=$(plan 't["a#build"]["hash"]')
vx run build --all
ran >/dev/null
vx run a#build --dry=json
is 'a hit' "$(plan 't["a#build"]["cacheStatus"]')" hit
is 'of the same key' "$(plan 't["a#build"]["hash"]')" "$hash"
vx run ci --all --dry=json
is 'a group' "$(plan 't["b#ci"]["cacheStatus"] + " " + str("command" in t["b#ci"])')" 'group False'
vx run build --all --dry=full
is '--dry=full: inputs with their blob ids' "$(plan 't["a#build"]["inputs"]["src/x"]')" "$(git hash-object p/a/src/x)"
like 'the parts of the key' "$(plan '[p["part"] for p in t["a#build"]["key"]]')" 'a#build|task'
vx run build --all --dry
is '--dry' "$rc $(ran)" '0 '
like 'names the tasks' "$out" 'a#build'

# what is shown
vx run build --all --force
like 'a row for each executed task' "$out" 'miss +a#build$'
like 'no-cache is said' "$out" 'no-cache +b#build$'
unlike 'no output of a success in a broad run' "$out" 'said by a'
unlike 'no escapes in a pipe' "$out" $'\033'
vx run a#build
like 'a focused run streams' "$(vx run a#build --force; echo "$out")" 'said by a'
vx run build --all
unlike 'no row for a hit' "$out" 'a#build$'
is 'nothing on stderr' "$err" ''
CI=1 vx run build --all --force
like 'CI: grouped output' "$out" 'said by a'
GITHUB_ACTIONS=true CI=true vx run build --all --force
like 'GitHub: groups' "$out" '^::group::'
FORCE_COLOR=1 NO_COLOR='' vx run build --all --force
if [ "$(env -u NO_COLOR FORCE_COLOR=1 "$VX" run build --all --force | grep -c $'\033')" -gt 0 ]; then pass 'FORCE_COLOR'; else fail 'FORCE_COLOR'; fi
ran >/dev/null

# where a long log does not show what failed, the last lines do
project bad <<<'{ "tasks": { "one": { "exec": { "command": "exit 1" } }, "two": { "exec": { "command": "exit 2" } } } }'
CI=1 vx run one two --all
like 'the footer names what failed' "$out" '^failed +bad#(one, bad#two|two, bad#one)$'
vx run bad#one
unlike 'not where it was the only task' "$out" '^failed'
# a status with reasons: short in the row, whole below it or in its frame, once
project bad <<<'{ "tasks": { "re": { "exec": { "command": "true", "persistent": { "readyWhen": "(missing it all" } } }, "slow": { "exec": { "command": "sleep 100", "timeout": 100, "persistent": { "readyWhen": "never" } } } } }'
vx run re --all
like 'a long status: the row' "$out" '^✗ .* could not be started +no-cache +bad#re$'
is 'the reasons, once' "$(grep -c '^  could not be started: readyWhen .*missing closing parenthesis' <<<"$out")" 1
CI=1 vx run re --all
is 'in CI too' "$(grep -c '^  could not be started: readyWhen .*missing closing parenthesis' <<<"$out")" 1
vx run re --all --output-logs none
is 'also where nothing else is shown' "$(grep -c '^  could not be started: readyWhen' <<<"$out")" 1
vx run slow --all
like 'a server that does not get ready' "$out" 'timed out before it was ready +no-cache +bad#slow$'
rm -r p/bad

# a closed stdout
for ((i = 0; i < 40; i++)); do put "p/n$i/package.json" "{ \"name\": \"n$i\" }"; put "p/n$i/vx.json" "{ \"tasks\": { \"many\": { \"exec\": { \"command\": \"seq 3000; echo $i >>$W/ran\" } } } }"; done
"$VX" run many --all --output-logs full 2>"$W/err" | head -1 >"$W/head"
is '| head -1 changes nothing' "${PIPESTATUS[0]}" 0
is 'every task ran' "$(ran | wc -w)" 40
is 'nothing is said about it' "$(cat "$W/err")" ''
run "$VX" run many --all --output-logs full >&-
"$VX" run many --all --output-logs full >&- 2>"$W/err"
is 'a stdout that was never open' "$?" 0
ran >/dev/null
"$VX" run many --all >/dev/full 2>"$W/err"
is 'a full disk behind stdout' "$?" 0

# big output is bounded
project big <<<"{ \"tasks\": { \"flood\": { \"exec\": { \"command\": \"echo first; head -c 40000000 /dev/zero | tr '\\\\\\\\0' x; echo; echo last\" } } } }"
"$VX" run flood --all --output-logs full >"$W/flood" 2>&1
is 'a flood of output' "$?" 0
ok 'is bounded' [ "$(stat -c %s "$W/flood")" -lt 20000000 ]
ok 'with its beginning' grep -q first "$W/flood"
ok 'and its end' grep -qx last "$W/flood"

# a terminal
if command -v script >/dev/null; then
	out=$(env -u NO_COLOR TERM=xterm script -qec "'$VX' run build --all --force" /dev/null </dev/null)
	like 'a terminal: rows' "$out" 'a#build'
	is 'a terminal: exit' "$?" 0
	script -qec "'$VX' run nothing --all" /dev/null </dev/null >/dev/null
	is 'a terminal: exit of a refusal' "$?" 1
else
	skip 'a terminal' 'no script'
fi

done_testing
