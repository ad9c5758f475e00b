#!/usr/bin/env bash
# After an edit of a real workspace what misses in Turborepo misses here, and what misses here alone has a reason that is known (corpus_edits.py). The corpora are
# those of tests/integration/corpus.sh; Turborepo comes from npm into the scratch directory; $VX_TURBO names one that is there.
. "$(dirname "$0")/../lib.sh"
[ -x "$VX" ] || skip_all "no $VX"
corpus=${VX_CORPUS:-}
common=$(git -C "$SRC" rev-parse --path-format=absolute --git-common-dir 2>/dev/null)
for d in "$SRC/../shared/corpus" "$(dirname "${common:-/}")/../shared/corpus"; do
	[ -n "$corpus" ] || [ ! -d "$d" ] || corpus=$d
done
[ -n "$corpus" ] && [ -x "$corpus/materialize.sh" ] || skip_all 'no corpora (VX_CORPUS names their directory)'
command -v python3 >/dev/null || skip_all 'no python3'
turbo=${VX_TURBO:-}
if [ -z "$turbo" ]; then
	command -v npm >/dev/null || skip_all 'no npm to get turbo with'
	mkdir "$W/npm"
	(cd "$W/npm" && echo '{}' >package.json && npm install --no-audit --no-fund turbo@2.11.11) >"$W/npm.log" 2>&1 ||
		skip_all "npm cannot install turbo: $(tail -1 "$W/npm.log")"
	turbo=$W/npm/node_modules/.bin/turbo
fi
for tar in "$corpus"/*.tar.gz; do
	name=$(basename "$tar" .tar.gz)
	if ! "$corpus/materialize.sh" "$tar" "$W/$name" >"$W/log" 2>&1; then
		fail "$name: the tree is made" "$(tail -3 "$W/log")"
		continue
	fi
	run python3 "$SRC/tests/slow/corpus_edits.py" "$VX" "$turbo" "$W/$name" "$W/$name.golden.json.gz"
	if [ "$rc" = 0 ]; then pass "$name: $(tail -2 <<<"$out" | head -1 | sed 's/^ok [0-9]* - //')"; else fail "$name" "$(grep -v '^ok' <<<"$out")" "$err"; fi
	diag "$(grep '^#' <<<"$out" | sed 's/^# //')"
	rm -rf "${W:?}/$name"*
done
done_testing
