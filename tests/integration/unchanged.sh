#!/usr/bin/env bash
# The memory of a run that had nothing to do: believed while nothing changed, by one look at every file and directory, and never when anything did.
. "$(dirname "$0")/../lib.sh"

tasks='{"tasks":{"build":{"dependsOn":["^build"],"exec":{"command":"mkdir -p dist/deep && cat src/* >dist/out && cp dist/out dist/deep/copy","env":{"passThrough":["VXT_MODE"]}},"cache":{"inputs":{"files":["src/**"],"env":["VXT_MODE"]},"outputs":{"files":["dist/**"]}}},
"test":{"dependsOn":["build"],"exec":{"command":":"},"cache":{"inputs":{"files":["src/**"],"workspaceFiles":["base.json"]},"outputs":{"files":[]}}}}}'
mark=0000 # more letters, so that an edit can keep the size
. "$SRC/tests/packages.sh"
printf 'dist\n.vx\n*.log\nyarn.lock\n' >.gitignore
project a
project b a
project c a b
git add -A && git commit -qm x
T='build test --all'
run() { VX_STATS="$W/stats" "$VX" run $T "$@" >"$W/run.out" 2>&1; }
unchanged() { sed -n 's/.*"unchanged": *\([a-z]*\).*/\1/p' "$W/stats"; }
counter() { sed -n "s/^  \"$1\": *\([0-9]*\).*/\1/p" "$W/stats"; }
settle() { # runs until nothing is left to be remembered
	local i
	for i in 1 2 3 4 5 6; do
		settled
		run
		[ "$(unchanged)" = true ] && return 0
	done
	return 1
}

ok 'after a few runs the memory is used' settle
is 'every task counts as up to date' "$(counter upToDate)" 6
"$VX" run $T >"$W/fast" 2>&1
VX_NO_SNAPSHOT=1 "$VX" run $T >"$W/slow" 2>&1
is 'and the run says what it would have said' "$(grep -v -e ^time -e ^overhead "$W/fast")" "$(grep -v -e ^time -e ^overhead "$W/slow")"
ok 'both say that nothing was run' grep -q '6 up to date' "$W/fast"
focused() { (cd packages/a && VX_STATS="$W/stats" "$VX" run say build "$@"); }
sed -i 's/^{"tasks":{/{"tasks":{"say":{"exec":{"command":"printf hello; printf there >\&2"},"cache":{"inputs":{"files":["src\/**"]},"outputs":{"files":[]}}},/' packages/a/vx.json
for i in 1 2 3 4; do focused >/dev/null 2>&1; settled; done
focused >"$W/fast" 2>&1
is 'a run of one project too' "$(unchanged)" true
(cd packages/a && VX_NO_SNAPSHOT=1 "$VX" run say build >"$W/slow" 2>&1)
rest() { grep -v -e ^time -e ^overhead "$1"; }
is 'with rows and stored output as they were' "$(rest "$W/fast")" "$(rest "$W/slow")"
like 'which is there' "$(cat "$W/fast")" 'hello'
CI=1 focused >"$W/fast" 2>&1
is 'shown in another way it is another question' "$(unchanged)" false
for i in 1 2 3; do focused --verbosity=2 >/dev/null 2>&1; done
focused --verbosity=2 >"$W/fast" 2>&1
(cd packages/a && VX_NO_SNAPSHOT=1 "$VX" run say build --verbosity=2 >"$W/slow" 2>&1)
is 'rows of hits are shown where they are asked for' "$(unchanged) $(rest "$W/fast" | sort)" "true $(rest "$W/slow" | sort)"
settle
(cd packages/a && VX_STATS="$W/stats" "$VX" run $T >/dev/null)
is 'another directory is another question' "$(unchanged)" false
ok 'which the first one survives only by asking anew' settle

# Every fact in turn. NAME, what is done; the run must not believe the memory, and what is in dist must be what the sources say.
whole() {
	local p
	for p in packages/*/; do
		[ "$(cat "$p"src/* 2>/dev/null)" = "$(cat "${p}dist/out")" ] && cmp -s "${p}dist/out" "${p}dist/deep/copy" || return 1
	done
}
sees() {
	eval "$2"
	run
	is "seen: $1" "$(unchanged) $(whole && echo whole)" 'false whole'
	settle || fail "settled after: $1"
}
sees 'an edit of the same size with its mtime put back' 'touch -r packages/a/src/a.c "$W/t"; echo a1111 >packages/a/src/a.c; touch -r "$W/t" packages/a/src/a.c'
sees 'a file put in the place of another, of equal size and mtime' 'cp -p packages/a/src/a.c "$W/n"; touch -r packages/a/src/a.c "$W/t"; echo a2222 >"$W/n"; touch -r "$W/t" "$W/n"; mv "$W/n" packages/a/src/a.c'
sees 'a new file' 'echo new >packages/b/src/n.c'
sees 'a file gone' 'rm packages/b/src/n.c'
sees 'a new file in a new directory' 'mkdir packages/b/src/.d && echo x >packages/b/src/.d/n.c'
sees 'that directory gone' 'rm -r packages/b/src/.d'
sees 'an ignored file (it changes a listing)' 'echo x >packages/b/src/x.log; rm packages/b/src/x.log'
sees 'a mode' 'chmod +x packages/c/src/a.c'
sees 'a file that became a link' 'cp packages/c/src/a.c packages/c/moved; rm packages/c/src/a.c; ln -s ../moved packages/c/src/a.c'
sees 'the target of that link' 'ln -sfn ../../c/moved packages/c/src/a.c'
sees 'sources swapped for a link to themselves' 'mv packages/b/src packages/b/real; ln -s real packages/b/src'
sees 'and back' 'rm packages/b/src; mv packages/b/real packages/b/src'
sees 'an output edited, size and mtime put back' 'touch -r packages/a/dist/out "$W/t"; echo x9999 >packages/a/dist/out; touch -r "$W/t" packages/a/dist/out'
sees 'an output gone' 'rm packages/b/dist/deep/copy'
sees 'all outputs gone' 'rm -r packages/b/dist'
sees 'a stray file among the outputs' 'echo x >packages/b/dist/deep/stray'
is 'which is gone again' "$(ls packages/b/dist/deep)" copy
sees 'outputs swapped for a link to themselves' 'mv packages/b/dist "$W/away"; ln -s "$W/away" packages/b/dist'
sees 'a directory of outputs swapped for a link' 'mv packages/b/dist/deep packages/b/elsewhere; ln -s ../elsewhere packages/b/dist/deep'
rm -rf packages/b/elsewhere
settle
sees 'a configuration' 'sed -i "s/mkdir -p dist/mkdir  -p dist/" packages/a/vx.json'
sees 'a manifest' 'sed -i "s/1.0.0/1.0.1/" packages/a/package.json'
sees 'a new project' 'project d a'
sees 'a project gone' 'rm -r packages/d'
sees 'a workspace configuration that appears' 'echo "{\"concurrency\": 2}" >vx.workspace.json'
sees 'and goes' 'rm vx.workspace.json'
sees 'a lockfile that git ignores' 'echo 1 >yarn.lock'
sees 'an edit of it' 'echo 2 >yarn.lock'
sees 'its end' 'rm yarn.lock'
sees '.gitignore' 'echo "*.tmp" >>.gitignore'
sees 'a .gitignore further down' 'echo "*.o" >packages/a/.gitignore'
sees 'info/exclude' 'echo "*.p" >>.git/info/exclude'
sees 'an excludes file named by the configuration' 'echo "*.q" >"$W/q"; git config core.excludesFile "$W/q"'
sees 'an edit of it' 'echo "*.r" >>"$W/q"'
sees 'the user'"'"'s configuration of git, which was not there' 'git config --global core.autocrlf false'
sees 'attributes' 'echo "* text=auto" >.gitattributes'
sees 'their end' 'rm .gitattributes'
sees "git's index" 'git add -A; git commit -qm y'
sees 'a variable that a key folds' 'export VXT_MODE=1'
sees 'another value' 'VXT_MODE=2'
sees 'its end' 'unset VXT_MODE'
sees 'the store emptied' 'rm -rf .vx/cache'
sees 'an artifact gone' 'rm -f "$(find .vx/cache/v1/[as] -name "*.tar.zst" | head -1)"'
sees "the index in another one's place" 'cp -a .vx/cache/v1/index "$W/ix"; rm -r .vx/cache/v1/index; mv "$W/ix" .vx/cache/v1/index'

run --force
is '--force runs' "$(unchanged) $(counter missed)" 'false 6'
settle
VX_NO_SNAPSHOT=1 run
is 'VX_NO_SNAPSHOT derives everything' "$(unchanged)" false
run
is 'and leaves the memory alone' "$(unchanged)" true
VX_RUN_WORKSPACE=$PWD VX_RUN_TASK=a#build run
is 'a run inside a run is refused as ever' "$?" 1
run -- --flag
is 'forwarded arguments are another question' "$(unchanged)" false
settle

# Damage, and what is not ours.
cp .vx/unchanged "$W/kept"
size=$(stat -c %s .vx/unchanged)
for at in 0 8 40 120 200 240 260 $((size / 4)) $((size / 2)) $((size - 20)); do
	cp "$W/kept" .vx/unchanged && printf '\377\376\375\374\373\372\371\370' | dd of=.vx/unchanged bs=1 seek="$at" conv=notrunc status=none
	run || fail "damage at $at: status $?"
	[ "$(unchanged)" = false ] || fail "damage at $at was believed"
done
for damage in 'truncate -s 100 .vx/unchanged' 'truncate -s -1 .vx/unchanged' ': >.vx/unchanged' 'rm .vx/unchanged; mkdir .vx/unchanged' 'rmdir .vx/unchanged; ln -s "$W/kept" .vx/unchanged' 'rm .vx/unchanged; cp "$W/kept" .vx/unchanged; chmod 666 .vx/unchanged'; do
	eval "$damage"
	run
	is "no memory is made of: $damage" "$(unchanged)" false
done
rm -rf .vx/unchanged
settle || fail 'a new one is kept'
cp -a "$PWD" "$W/copy"
(cd "$W/copy" && run)
is 'a copy of the checkout is another one' "$(unchanged)" false

# A run that works on the workspace is waited for: its files are not looked at meanwhile.
settle
mkfifo "$W/go"
flock .vx/lock sh -c ': >"$0/held"; read -r go <"$0/go"; echo a3333 >packages/a/src/a.c' "$W" &
wait_for test -e "$W/held"
rm -f "$W/run.out"
run &
wait_for grep -q 'waiting for' "$W/run.out"
echo go >"$W/go"
wait
is 'while another run holds the lock nothing is believed' "$(unchanged) $(whole && echo whole)" 'false whole'

# Edits at any moment, of the same size, in the same tick as a run or not.
bad=0
for i in $(seq 10 "${VX_STEPS:-40}"); do
	printf 'a%04d\n' "$i" >packages/a/src/a.c
	[ $((i % 3)) = 0 ] && sleep 0.0$((i % 10))
	run
	whole || bad=$((bad + 1))
	[ $((i % 4)) = 0 ] && run && run
done
is 'whatever the moment of an edit, the outputs are those of the sources' "$bad" 0

# Counters: each file and directory is looked at once; nothing is read but the memory.
if command -v strace >/dev/null && strace -c true 2>/dev/null; then
	settle
	mkdir many && (cd many && for i in $(seq 300); do echo "$i" >"f$i"; done)
	settle
	strace -f -o "$W/trace" "$VX" run $T >/dev/null 2>&1
	files=$(find . -path ./.git -prune -o -path ./.vx -prune -o -type f -print | wc -l)
	dirs=$(find . -path ./.git -prune -o -path ./.vx -prune -o -type d -print | wc -l)
	stats=$(grep -c -E '(newfstatat|statx|lstat|stat)\(.*"[^/.\"]' "$W/trace")
	ok "of $files files and $dirs directories each is stat'ed once ($stats)" test "$stats" -le $((files + dirs + 300))
	is 'the one of 300 files too' "$(grep -c 'stat.*"f17"' "$W/trace")" 1
	ok 'nothing is listed but .vx' test "$(grep -c getdents "$W/trace")" -le 6
	is 'no index is opened, no process started' "$(grep -c -E 'execve|lock.mdb|git/index.*O_RDONLY' "$W/trace")" 1
else
	diag 'no strace: system calls are not counted'
fi
done_testing
