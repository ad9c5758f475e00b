#!/usr/bin/env bash
# All outputs of bench/shape restored, in a run of all its tasks: vx against Turborepo. TURBO names its program; else npm is asked for it, and without either this is
# skipped. VX_BENCH_SHAPE: options of bench/shape for something smaller; VX_BENCH_TASKS: other tasks (only build: what has outputs, alone); VX_BENCH_ROUNDS (5).
set -euo pipefail
src=$(cd "$(dirname "$0")/.." && pwd)
export VX_BUILD=${VX_BUILD:-$src/build} TURBO_TELEMETRY_DISABLED=1 DO_NOT_TRACK=1
vx=$VX_BUILD/vx
work=$(mktemp -d "${TMPDIR:-/tmp}/vx-turbo-XXXXXX")
trap 'rm -rf "$work"' EXIT
turbo=${TURBO:-}
tasks=${VX_BENCH_TASKS:-build lint test typecheck publish}
if [ -z "$turbo" ]; then
	mkdir "$work/npm"
	(cd "$work/npm" && npm install --silent --no-audit --no-fund turbo@2 >/dev/null 2>&1) || true
	for f in "$work"/npm/node_modules/@turbo/linux-*/bin/turbo "$work"/npm/node_modules/turbo-linux-*/bin/turbo; do [ ! -x "$f" ] || turbo=$f; done
fi
[ -n "$turbo" ] || { echo "turbo: skipped, there is no turbo (TURBO=...) and npm cannot fetch one"; exit 0; }
# Its first run would start npm for each script; a stand-in does what npm would, so that filling its cache does not take minutes. Restoring starts neither.
mkdir "$work/bin"
cat >"$work/bin/npm" <<'E'
#!/bin/sh
[ "$1" = run ] || exit 1
exec sh -c "$(sed -n "s/^  \"$2\": \"\(.*\)\",\{0,1\}\$/\1/p" package.json)"
E
chmod +x "$work/bin/npm"
export PATH="$work/bin:$PATH"
# shellcheck disable=SC2086
"$src/bench/shape" --git ${VX_BENCH_SHAPE:-} "$work/shape"
cd "$work/shape"
run_turbo="$turbo run $tasks --no-daemon --output-logs=none"
$run_turbo >"$work/log" 2>&1 || { tail -5 "$work/log" >&2; exit 1; }
cp packages/app-000/dist/fold.txt "$work/fold"
"$src/bench/shape_away" . ../trash
# shellcheck disable=SC2086
"$vx" run $tasks --all >/dev/null
cmp packages/app-000/dist/fold.txt "$work/fold"
"$src/bench/interleave.py" turbo --rounds "${VX_BENCH_ROUNDS:-5}" --dir "$work/shape" --prepare "'$src/bench/shape_away' . ../trash" \
	"Turborepo=$run_turbo" "vx=$vx run $tasks --all"
cmp packages/app-000/dist/fold.txt "$work/fold"
python3 - "$VX_BUILD/bench/turbo.json" <<'P'
import json, sys
turbo, vx = json.load(open(sys.argv[1]))["rows"]
print(f"  restoring everything: {1 / vx['ratio']:.1f} x faster than Turborepo (least of each: {turbo['wall_ms_min'] / vx['wall_ms_min']:.1f} x), "
      f"{1 / vx['cpu_ratio']:.1f} x less CPU; goal: at least 10 x")
P
