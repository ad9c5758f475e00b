#!/usr/bin/env bash
# plan: what planning costs, on the generated shape (1,601 projects, 9,602 tasks, 36,826 files), against `git status -uall` on the same tree, in one interleaved run; then 100,000 files in one
# project, growth from 100 to 1,000 to 10,000 projects, 100,000 tasks in one project, and Turborepo where TURBO_DIR names a directory whose node_modules holds it
# (npm i turbo). Prints each goal with its verdict. Edits and first runs have checkouts of their own: an edit would take the memory from the others.
#
# VX_SHAPE=DIR measures in a shape that has been built already (building it takes a minute); VX_ROUNDS=15; VX_PLAN="shape files growth tasks turbo" picks parts.
set -euo pipefail
src=$(cd "$(dirname "$0")/.." && pwd)
export VX_BUILD=${VX_BUILD:-$src/build}
unset CI GITHUB_ACTIONS VX_CACHE_DIR
vx=$VX_BUILD/vx
rounds=${VX_ROUNDS:-15}
parts=" ${VX_PLAN:-shape files growth tasks turbo} "
names="installDeps build lint test publish typecheck"
tasks="$names --all"
work=$(mktemp -d "${TMPDIR:-/tmp}/vx-bench.XXXXXX")
trap 'rm -rf "$work"' EXIT
rm -f "$VX_BUILD"/bench/plan*.json
wants() { [[ $parts = *" $1 "* ]]; }
settle() { # the first run builds, the others keep the memories: what was written a moment ago is not remembered
	local i
	for i in 1 2 3 4 5; do
		VX_STATS="$work/stats" "$vx" run "$@" >/dev/null
		grep -q '"unchanged": true' "$work/stats" && return 0
		sleep 0.1
	done
	echo 'the memory of a run with nothing to do was not used' >&2
}
measure() { "$src/bench/interleave.py" "$1" --rounds "${ROUNDS:-$rounds}" --dir "$PWD" "${@:2}"; }

if wants shape || wants turbo; then
	one=${VX_SHAPE:-$work/one}
	[ -n "${VX_SHAPE:-}" ] || "$src/bench/shape" --git "$one" >/dev/null
	cd "$one"
	git status -uall >/dev/null
	settle $tasks
fi
if wants shape; then
	git clone -q "$one" "$work/edited" && git clone -q "$one" "$work/first"
	cp -a "$one/.vx" "$work/edited/.vx" && rm -f "$work/edited/.vx/plan" "$work/edited/.vx/unchanged"
	(cd "$work/edited" && git status -uall >/dev/null && settle $tasks)
	(cd "$work/first" && git status -uall >/dev/null)
	edit='echo // >>packages/app-000/src/m00.ts'
	measure plan 'git status -uall=git status -uall' \
		"nothing changed=$vx run $tasks" \
		"nothing changed, --dry=$vx run $tasks --dry=json" \
		"one file edited, --dry=env -C $work/edited sh -c '$edit; exec $vx run $tasks --dry=json'" \
		"no plan kept, --dry=env VX_NO_SNAPSHOT=1 $vx run $tasks --dry=json" \
		"first run, --dry=env -C $work/first $vx run $tasks --dry=json"
	rm -rf "$work/edited" "$work/first"
fi
if wants files; then
	mkdir -p "$work/files/p/src" && cd "$work/files"
	echo '{"name":"root","private":true,"workspaces":["p"]}' >package.json
	echo '{"name":"p","version":"1.0.0"}' >p/package.json
	echo '{"tasks":{"build":{"exec":{"command":":"},"cache":{"inputs":{"files":["src/**"]},"outputs":{"files":[]}}}}}' >p/vx.json
	echo .vx >.gitignore
	python3 -c 'import os
for d in range(1000):
    os.mkdir(f"p/src/{d}")
    for i in range(100):
        open(f"p/src/{d}/{i}.c", "w").write(f"{d} {i}\n")'
	git init -q . && git config gc.auto 0 && git config maintenance.auto false && git add -A && git -c user.name=b -c user.email=b@example.invalid commit -qm x && git status -uall >/dev/null
	settle build --all
	measure plan_files 'git status -uall=git status -uall' "nothing changed=$vx run build --all" "no plan kept, --dry=env VX_NO_SNAPSHOT=1 $vx run build --all --dry=json"
	cd "$work" && rm -rf files
fi
if wants growth; then
	for size in '100 4 20' '1000 19 50' '10000 99 100'; do
		set -- $size
		"$src/bench/shape" --git --levels "$2" --libs "$3" --apps "$3" --files 5 "$work/g$1" >/dev/null
	done
	cd "$work"
	ROUNDS=5 measure plan_growth "100 projects=env -C g100 VX_NO_SNAPSHOT=1 $vx run $tasks --dry=json" "1,000 projects=env -C g1000 VX_NO_SNAPSHOT=1 $vx run $tasks --dry=json" \
		"10,000 projects=env -C g10000 VX_NO_SNAPSHOT=1 $vx run $tasks --dry=json"
	for n in 100 1000 10000; do find "g$n" -name vx.json | wc -l >"$work/n$n"; done
	cat "$work/n100" "$work/n1000" "$work/n10000" | tr '\n' ' ' >"$VX_BUILD/bench/plan_growth.sizes"
	rm -rf g100 g1000 g10000
fi
if wants tasks; then
	mkdir -p "$work/tasks/src" && cd "$work/tasks" && git init -q .
	echo a >src/a.c && echo '{"name":"x","version":"1.0.0"}' >package.json
	python3 -c 'import json
t = {f"t{i}": {"dependsOn": [f"t{i - 1}"] if i else [], "exec": {"command": ":"}, "cache": {"inputs": {"files": ["src/**"]}, "outputs": {"files": []}}} for i in range(100000)}
json.dump({"tasks": t}, open("vx.json", "w"))'
	ROUNDS=3 measure plan_tasks "100,000 tasks in one project=$vx run t99999 --dry=json"
fi
if wants turbo && [ -x "${TURBO_DIR:-/nonexistent}/node_modules/.bin/turbo" ]; then
	turbo="$TURBO_DIR/node_modules/.bin/turbo run ${names#installDeps } --dangerously-disable-package-manager-check --concurrency=2 --no-daemon"
	export TURBO_TELEMETRY_DISABLED=1 TURBO_NO_UPDATE_NOTIFIER=1
	git clone -q "$one" "$work/turbo"
	(cd "$work/turbo" && [ -e package-lock.json ] || echo '{"name":"shape","lockfileVersion":3,"packages":{}}' >package-lock.json
		echo "Turborepo's first run, which takes minutes"
		$turbo >"$work/turbo.log" 2>&1 || { tail -5 "$work/turbo.log"; exit 1; })
	cd "$one"
	settle $tasks
	ROUNDS=5 measure plan_turbo "Turborepo, nothing changed=env -C $work/turbo $turbo" "Turborepo, --dry=env -C $work/turbo $turbo --dry=json" "nothing changed=$vx run $tasks"
elif wants turbo; then
	echo 'Turborepo: not compared; TURBO_DIR names no directory with node_modules/.bin/turbo'
fi

python3 - "$VX_BUILD/bench" <<'P'
import json, os, sys
def rows(name):
    path = os.path.join(sys.argv[1], name + ".json")
    return {r["label"]: r for r in json.load(open(path))["rows"]} if os.path.exists(path) else {}
def say(what, value, goal, unit="x", least=False):
    met = value >= goal if least else value <= goal
    print(f"  {'met    ' if met else 'NOT MET'} {what}: {value:.2f} {unit} (goal: at {'least' if least else 'most'} {goal} {unit})")
p, f, g, t, n = (rows(x) for x in ("plan", "plan_files", "plan_growth", "plan_turbo", "plan_tasks"))
wall = lambda r, label: r[label]["wall_ms"]
if p:
    git = wall(p, "git status -uall")
    say("nothing changed, against git status", wall(p, "nothing changed") / git, 0.5)
    say("the same in CPU", p["nothing changed"]["cpu_ms"] / p["git status -uall"]["cpu_ms"], 0.5)
    say("one file edited (--dry), against nothing changed (--dry)", wall(p, "one file edited, --dry") / wall(p, "nothing changed, --dry"), 1.3)
    say("first run (--dry), against git status", wall(p, "first run, --dry") / git, 4)
    say("no plan kept (--dry), against git status", wall(p, "no plan kept, --dry") / git, 4)
    say("peak memory", max(r["peak_mb"] for k, r in p.items() if "git" not in k), 100, "MB")
if f:
    say("100,000 files in one project, nothing changed, against git status", wall(f, "nothing changed") / wall(f, "git status -uall"), 1.2)
if g:
    size = [int(x) for x in open(os.path.join(sys.argv[1], "plan_growth.sizes")).read().split()]
    ms = [wall(g, k) for k in ("100 projects", "1,000 projects", "10,000 projects")]
    for i in (0, 1):
        say(f"growth from {size[i]} to {size[i + 1]} projects, time against projects", ms[i + 1] / ms[i] / (size[i + 1] / size[i]), 1)
    print(f"          peak memory with {size[2]} projects: {g['10,000 projects']['peak_mb']:.0f} MB")
if n:
    r = n["100,000 tasks in one project"]
    print(f"          100,000 tasks in one project: {r['wall_ms'] / 1000:.2f} s, {r['peak_mb']:.0f} MB")
if t:
    say("Turborepo's time with nothing changed, against ours", wall(t, "Turborepo, nothing changed") / wall(t, "nothing changed"), 20, least=True)
    say("Turborepo's time for --dry, against ours for the run", wall(t, "Turborepo, --dry") / wall(t, "nothing changed"), 20, least=True)
P
