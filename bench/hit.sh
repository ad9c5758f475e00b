#!/usr/bin/env bash
# hit: a run of the example in which every task is up to date, against `git status` in the same repository. Goal: at most 3 x.
set -euo pipefail
src=$(cd "$(dirname "$0")/.." && pwd)
export VX_BUILD=${VX_BUILD:-$src/build}
work=$(mktemp -d "${TMPDIR:-/tmp}/vx-bench.XXXXXX")
trap 'rm -rf "$work"' EXIT
cp -r "$src/docs/example/." "$work"
cd "$work"
git init -q .
git add -A
git -c user.name=bench -c user.email=bench@example.invalid commit -q -m example
unset CI GITHUB_ACTIONS VX_CACHE_DIR
"$VX_BUILD/vx" run build test --all >"$work/.vx.log" 2>&1 || { cat "$work/.vx.log"; exit 1; }
rm "$work/.vx.log"
"$src/bench/interleave.py" hit --rounds 31 --dir "$work" 'git status=git status --porcelain' "vx run, all hits=$VX_BUILD/vx run build test --all"
