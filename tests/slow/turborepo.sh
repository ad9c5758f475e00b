#!/usr/bin/env bash
# What vx plans for a turbo.json is what Turborepo plans: some hundred small workspaces (turborepo_cases.py), each by both. Turborepo comes from npm into the
# scratch directory; $VX_TURBO names one that is there.
. "$(dirname "$0")/../lib.sh"
[ -x "$VX" ] || skip_all "no $VX"
command -v python3 >/dev/null || skip_all 'no python3'
turbo=${VX_TURBO:-}
if [ -z "$turbo" ]; then
	command -v npm >/dev/null || skip_all 'no npm to get turbo with'
	mkdir "$W/npm"
	(cd "$W/npm" && echo '{}' >package.json && npm install --no-audit --no-fund turbo@2.11.11) >"$W/npm.log" 2>&1 ||
		skip_all "npm cannot install turbo: $(tail -1 "$W/npm.log")"
	turbo=$W/npm/node_modules/.bin/turbo
fi
mkdir "$W/ws"
VXT_ENDED=1 # turborepo.py prints the plan
python3 "$SRC/tests/slow/turborepo.py" "$VX" "$turbo" "$W/ws"
