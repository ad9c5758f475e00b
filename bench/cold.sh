#!/usr/bin/env bash
# What saving costs a cold run: every build of bench/shape (1,601 projects, 20 KB blobs) with an empty store, against --no-cache; each begins with nothing left to write. VX_BENCH_SHAPE: options of
# bench/shape for something smaller; VX_BENCH_ROUNDS (9).
set -euo pipefail
src=$(cd "$(dirname "$0")/.." && pwd)
export VX_BUILD=${VX_BUILD:-$src/build}
vx=$VX_BUILD/vx
work=$(mktemp -d "${TMPDIR:-/tmp}/vx-cold-XXXXXX")
trap 'rm -rf "$work"' EXIT
# shellcheck disable=SC2086
"$src/bench/shape" --git ${VX_BENCH_SHAPE:-} "$work/shape"
"$src/bench/interleave.py" cold --rounds "${VX_BENCH_ROUNDS:-9}" --dir "$work/shape" --prepare "'$src/bench/shape_away' --store . ../trash && sync" \
	"without a cache=$vx run build --all --no-cache" "with an empty store=$vx run build --all"
python3 - "$VX_BUILD/bench/cold.json" <<'P'
import json, sys
none, cold = json.load(open(sys.argv[1]))["rows"]
print(f"  saving costs a cold run {100 * (cold['ratio'] - 1):+.1f} % wall (least of each: {100 * (cold['wall_ms_min'] / none['wall_ms_min'] - 1):+.1f} %), "
      f"{100 * (cold['cpu_ratio'] - 1):+.1f} % CPU; goal: at most +3 % wall")
P
