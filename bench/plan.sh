#!/usr/bin/env bash
# plan: what a run costs that has nothing to do, on the generated shape (1,601 projects, 9,602 tasks), against `git status -uall` on the same tree. Goals: at most 0.5 x with
# nothing changed; a --dry after one edit at most 1.3 x the --dry without; a first plan without any memory at most 4 x git status.
# VX_SHAPE=DIR measures in a shape that has been built already (building it takes minutes).
set -euo pipefail
src=$(cd "$(dirname "$0")/.." && pwd)
export VX_BUILD=${VX_BUILD:-$src/build}
unset CI GITHUB_ACTIONS VX_CACHE_DIR
tasks="installDeps build lint test publish typecheck --all"
if [ -n "${VX_SHAPE:-}" ]; then
	cd "$VX_SHAPE"
else
	work=$(mktemp -d "${TMPDIR:-/tmp}/vx-bench.XXXXXX")
	trap 'rm -rf "$work"' EXIT
	"$src/bench/shape" --git "$work/shape" >/dev/null
	cd "$work/shape"
fi
# The first run builds, the others keep the memories: what was written a moment ago is not remembered.
for i in 1 2 3; do "$VX_BUILD/vx" run $tasks >/dev/null; sleep 0.1; done
first=app-000
edit="touch packages/$first/src/edited.ts"
undo="rm -f packages/$first/src/edited.ts"
"$src/bench/interleave.py" plan --rounds "${VX_ROUNDS:-15}" --dir "$PWD" 'git status -uall=git status -uall' \
	"vx run, nothing changed=$VX_BUILD/vx run $tasks" \
	"vx --dry, nothing changed=$VX_BUILD/vx run $tasks --dry=json" \
	"vx --dry, one file more=sh -c '$edit; $VX_BUILD/vx run $tasks --dry=json; $undo'" \
	"vx --dry, no plan kept=env VX_NO_SNAPSHOT=1 $VX_BUILD/vx run $tasks --dry=json"
