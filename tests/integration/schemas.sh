#!/usr/bin/env bash
# What --dry=json, --dry=full and --summarize print is what docs/schemas/plan.json and summary.json say, and each member that a schema has is seen at least once.
. "$(dirname "$0")/../lib.sh"
. "$SRC/tests/vx.sh"
command -v python3 >/dev/null || skip_all 'no python3'

# As much of JSON Schema as those two use; what it does not know is an error.
cat >"$W/validate.py" <<'PY'
import json, re, sys

schema, seen = json.load(open(sys.argv[1])), set()
TYPES = {"object": dict, "array": list, "string": str, "boolean": bool}
KNOWN = {"$schema", "title", "description", "type", "required", "properties", "additionalProperties", "items", "enum", "pattern", "minimum", "maximum"}


def is_type(v, t):
    if t in ("integer", "number"):
        return not isinstance(v, bool) and isinstance(v, int if t == "integer" else (int, float))
    return isinstance(v, TYPES[t])


def check(v, s, where, at):
    unknown = set(s) - KNOWN
    if unknown:
        sys.exit(f"the schema has {unknown}, which this does not know")
    if "type" in s and not is_type(v, s["type"]):
        return [f"{where}: {v!r} is no {s['type']}"]
    bad = []
    if "enum" in s and v not in s["enum"]:
        bad.append(f"{where}: {v!r} is none of {s['enum']}")
    if "pattern" in s and not re.search(s["pattern"], v):
        bad.append(f"{where}: {v!r} does not match {s['pattern']}")
    if "minimum" in s and v < s["minimum"] or "maximum" in s and v > s["maximum"]:
        bad.append(f"{where}: {v!r} is out of bounds")
    if isinstance(v, list):
        for i, x in enumerate(v):
            bad += check(x, s.get("items", {}), f"{where}[{i}]", at + "[]")
    if isinstance(v, dict):
        props, more = s.get("properties", {}), s.get("additionalProperties", True)
        bad += [f"{where}: no {k}" for k in s.get("required", []) if k not in v]
        for k, x in v.items():
            if k in props:
                seen.add(f"{at}.{k}")
                bad += check(x, props[k], f"{where}.{k}", f"{at}.{k}")
            elif more is False:
                bad.append(f"{where}: {k} is not in the schema")
            elif isinstance(more, dict):
                bad += check(x, more, f"{where}.{k}", f"{at}.*")
    return bad


def members(s, at):
    for k, x in s.get("properties", {}).items():
        yield f"{at}.{k}"
        yield from members(x, f"{at}.{k}")
    if "items" in s:
        yield from members(s["items"], at + "[]")


bad = []
for f in sys.argv[2:]:
    bad += [f"{f}: {b}" for b in check(json.load(open(f)), schema, "", "")]
maybe = {".tasks[].result.peakBytes", ".tasks[].result.peakOf", ".cacheProblem"}  # not every build and machine can tell
bad += [f"never seen: {m}" for m in sorted(set(members(schema, "")) - seen - maybe)]
print("\n".join(bad[:20]))
sys.exit(bool(bad))
PY

workspace
project a <<<"$(cached 'mkdir -p dist; cp src/x dist/')"
project b a <<<'{ "tasks": {
	"build": { "dependsOn": ["^build"], "exec": { "command": "echo b" } },
	"all": { "dependsOn": ["build", "bad", "boxed"] },
	"after": { "dependsOn": ["bad"], "exec": { "command": "echo after" } },
	"serve": { "exec": { "command": "sleep 100", "persistent": {} } },
	"bad": { "exec": { "command": "exit 3", "retries": 1 } },
	"boxed": { "exec": { "command": "true", "env": { "passThrough": ["HOME"] }, "sandbox": { "allow": { "read": ["."] } } },
		"cache": { "inputs": { "files": ["src/**"], "env": ["LANG"] }, "outputs": { "files": ["dist/**", "!dist/no"] } } } } }'
put p/a/src/x x
git add -A
git commit -qm one
put p/a/src/x y
"$VX" run all build --all --dry=json >"$W/1.json" 2>"$W/err" || diag "$(cat "$W/err")"
"$VX" run all build serve --all --dry=full >"$W/2.json" 2>"$W/err" || diag "$(cat "$W/err")"
"$VX" run build --affected=HEAD --dry=full >"$W/3.json" 2>"$W/err" || diag "$(cat "$W/err")"
"$VX" run build --all >/dev/null 2>&1
"$VX" run build --all --dry=json >"$W/4.json" 2>"$W/err" || diag "$(cat "$W/err")"
"$VX" run all after build --all --continue=always --sandbox=off --summarize="$W/s1.json" >/dev/null 2>&1
"$VX" run build --all --summarize="$W/s2.json" >/dev/null 2>&1
rm -rf p/a/dist
"$VX" run build --all --summarize="$W/s3.json" >/dev/null 2>&1

# the same of a turbo.json
new_repo "$W/turbo"
put package.json '{ "name": "root", "workspaces": ["p/*"] }'
put turbo.json '{ "tasks": { "build": { "outputs": ["dist/**", "!dist/x"], "env": ["A*"] } } }'
put p/a/package.json '{ "name": "a", "scripts": { "build": "mkdir -p dist", "prebuild": "true", "postbuild": "true" }, "dependencies": { "vite": "5" } }'
ln -s package.json p/a/link
git add -A
VITE_X=1 "$VX" run build --all --dry=full >"$W/5.json" 2>"$W/err" || diag "$(cat "$W/err")"
VITE_X=1 "$VX" run build --all --summarize="$W/s4.json" >/dev/null 2>&1
like 'an inferred variable' "$(cat "$W/5.json")" '"inferredEnv":\["VITE_X"\]'
put turbo.json '{ "tasks": { "late": { "dependsOn": ["build"] }, "build": { "outputs": ["dist/**"] } } }'
put p/a/package.json '{ "name": "a", "scripts": { "build": "mkdir -p dist", "late": "true" } }'
"$VX" run late --all --dry=json >"$W/6.json" 2>"$W/err" || diag "$(cat "$W/err")"
like 'a link' "$(cat "$W/5.json")" '"links":\{"link":"[0-9a-f]{40}"\}'

ok '--dry=json and --dry=full' python3 "$W/validate.py" "$SRC/docs/schemas/plan.json" "$W"/[0-9].json
ok '--summarize' python3 "$W/validate.py" "$SRC/docs/schemas/summary.json" "$W"/s[0-9].json

# what the other verbs say
cd "$W/ws" || exit 1
"$VX" info --format=json >"$W/info1"
"$VX" info --format=json -C / >"$W/info2"
ok 'vx info' python3 "$W/validate.py" "$SRC/docs/schemas/info.json" "$W/info1" "$W/info2"
"$VX" cache stats --format=json >"$W/stats"
ok 'vx cache stats' python3 "$W/validate.py" "$SRC/docs/schemas/cache-stats.json" "$W/stats"
"$VX" cache verify --format=json >"$W/verify1"
artifact=$(find .vx/cache/v1/[as] -name '*.zst' | head -n 1)
chmod u+w "$artifact" && echo damaged >"$artifact"
"$VX" cache verify --format=json >"$W/verify2"
is 'vx cache verify of a damaged store: exit 1' $? 1
ok 'vx cache verify' python3 "$W/validate.py" "$SRC/docs/schemas/cache-verify.json" "$W/verify1" "$W/verify2"
"$VX" cache prune --format=json --dry-run --older-than 30d >"$W/prune1"
"$VX" cache prune --format=json --max-size 0 >"$W/prune2"
ok 'vx cache prune' python3 "$W/validate.py" "$SRC/docs/schemas/cache-prune.json" "$W/prune1" "$W/prune2"

sed 's/"requested":true/"requested":1/' "$W/1.json" >"$W/wrong.json"
nok 'a wrong type is seen' python3 "$W/validate.py" "$SRC/docs/schemas/plan.json" "$W"/[0-9].json "$W/wrong.json"
done_testing
