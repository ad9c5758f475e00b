#!/usr/bin/env bash
# Real workspaces: what vx plans is what Turborepo planned, without a difference. The corpora are not part of this repository: $VX_CORPUS, else ../shared/corpus
# beside it or beside its main worktree.
. "$(dirname "$0")/../lib.sh"
[ -x "$VX" ] || skip_all "no $VX"
corpus=${VX_CORPUS:-}
common=$(git -C "$SRC" rev-parse --path-format=absolute --git-common-dir 2>/dev/null)
for d in "$SRC/../shared/corpus" "$(dirname "${common:-/}")/../shared/corpus"; do
	[ -n "$corpus" ] || [ ! -d "$d" ] || corpus=$d
done
[ -n "$corpus" ] && [ -x "$corpus/compare.py" ] || skip_all 'no corpora (VX_CORPUS names their directory)'
command -v python3 >/dev/null || skip_all 'no python3'

for tar in "$corpus"/*.tar.gz; do
	name=$(basename "$tar" .tar.gz)
	if ! "$corpus/materialize.sh" "$tar" "$W/$name" >"$W/log" 2>&1; then
		fail "$name: the tree is made" "$(tail -3 "$W/log")"
		continue
	fi
	run python3 "$corpus/compare.py" "$VX" "$W/$name"
	if [ "$rc" = 0 ]; then pass "$name: $(tail -1 <<<"$out")"; else fail "$name" "$out" "$err"; fi
	rm -rf "${W:?}/$name"
done
done_testing
