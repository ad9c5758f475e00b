#!/usr/bin/env bash
# dispatch: 2,000 independent tasks on two slots, nothing cached, beside ninja -j2 and xargs -P2, for the shell's `:` and for the program `true`.
# Milliseconds are per task. Goal: at most 1.3 x ninja.
set -euo pipefail
src=$(cd "$(dirname "$0")/.." && pwd)
export VX_BUILD=${VX_BUILD:-$src/build}
tasks=2000
work=$(mktemp -d "${TMPDIR:-/tmp}/vx-bench.XXXXXX")
trap 'rm -rf "$work"' EXIT
unset CI GITHUB_ACTIONS VX_CACHE_DIR MAKEFLAGS
command -v ninja >/dev/null || { echo 'dispatch: no ninja (.ci/deps bench installs it)' >&2; exit 1; }

for command in : true; do
	dir=$work/$([ $command = : ] && echo colon || echo true)
	python3 - "$dir" "$command" $tasks <<'P'
import json, os, sys
top, command, n = sys.argv[1], sys.argv[2], int(sys.argv[3])
os.makedirs(top)
with open(top + "/package.json", "w") as f:
    json.dump({"name": "root", "workspaces": ["p/*"]}, f)
for i in range(n // 100):
    d = f"{top}/p/p{i}"
    os.makedirs(d)
    with open(d + "/package.json", "w") as f:
        json.dump({"name": f"p{i}"}, f)
    with open(d + "/vx.json", "w") as f:
        json.dump({"tasks": {"all": {"dependsOn": [f"t{j}" for j in range(100)]}, **{f"t{j}": {"exec": {"command": command}} for j in range(100)}}}, f)
with open(top + "/build.ninja", "w") as f:
    f.write(f"rule r\n  command = {command}\n")
    f.writelines(f"build o{i}: r\n" for i in range(n))
with open(top + "/list", "w") as f:
    f.writelines(f"{i}\n" for i in range(n))
P
	git -C "$dir" init -q
	"$src/bench/interleave.py" "dispatch-$(basename "$dir")" --rounds "${VX_BENCH_ROUNDS:-5}" --per $tasks --dir "$dir" \
		'ninja -j2=ninja -j2' "vx=$VX_BUILD/vx run all --all --concurrency 2 --no-cache" "xargs -P2=sh -c 'xargs -P2 -n1 sh -c \"$command\" <list'"
done
