#!/usr/bin/env bash
# What is remembered, when it is used, and what the outputs look like afterwards.
. "$(dirname "$0")/../lib.sh"
. "$SRC/tests/vx.sh"

one() { # COMMAND
	workspace "$W/ws$((++n))"
	project a <<<"$(cached "echo a >>$W/ran; $1")"
	put p/a/src/x x
	git add -A
}
n=0

# what is saved is read without a trace, where that is allowed: the files are ours
one 'mkdir dist && echo 1 >dist/f && echo 2 >dist/g && touch -a -d 2001-01-01 dist/f dist/g dist'
vx run build --all
is 'saving leaves access times alone' "$rc $(stat -c %x p/a/dist/f p/a/dist | cut -c1-10 | tr '\n' ' ')" '0 2001-01-01 2001-01-01 '

# a task beside whose dependencies were left out is built from what those have left, whatever their keys say: it is not saved
workspace "$W/leftout"
project a <<<"$(cached 'mkdir -p dist; cat src/f >dist/o')"
project b a <<<"$(cached 'mkdir -p dist; cat ../a/dist/o >dist/o' '' '"dependsOn": ["^build"]')"
project c b <<<"$(cached 'mkdir -p dist; cat ../b/dist/o >dist/o' '' '"dependsOn": ["^build"]')"
put p/a/src/f v1
git add -A
vx run build --all
put p/a/src/f v2
vx run b#build c#build --exclude-dependencies
is 'left out dependencies: what runs beside them succeeds' "$rc $(cat p/c/dist/o)" '0 v1'
like 'each is counted' "$out" '2 miss, 2 not saved'
like 'and is said not to be saved' "$err" '^vx run: b#build runs on what the tasks that --exclude-dependencies leaves out have left on disk, and is not saved'
vx run build --all
is 'so the next whole run makes all anew' "$rc $(cat p/a/dist/o p/b/dist/o p/c/dist/o | paste -sd' ')" '0 v2 v2 v2'
vx run c#build --exclude-dependencies
is 'a hit under its full key stays one, and nothing is said' "$rc $(grep -c 'is not saved' <<<"$err")" '0 0'

# git is told to ignore case where the disk does not: a file of the other case is one of its own
workspace "$W/case"
project a <<<"$(cached "cat src/* >>$W/ran")"
put p/a/src/f one
git add -A
git config core.ignoreCase true
vx run build --all
put p/a/src/F two
vx run build --all
is 'core.ignoreCase hides no input from a disk that knows case' "$rc $(ran)" '0 one one two'

# the mode of a directory belongs to what is restored, also where its files are all right
one 'mkdir -p dist/s && echo 1 >dist/s/x && chmod 750 dist/s'
vx run build --all
vx run build --all
chmod 700 p/a/dist/s
vx run build --all
is 'the mode of a directory that holds outputs is put right' "$rc $(stat -c %a p/a/dist/s) $(ran)" '0 750 a'
vx run build --all
like 'once' "$out" 'up to date'

# the exact set comes back
one 'mkdir -p dist/sub dist/empty; cp src/x dist/sub/; echo tool >dist/tool; chmod 755 dist/tool; echo ro >dist/ro; chmod 444 dist/ro; ln -s sub/x dist/link; ln -s nowhere dist/dangling; printf "\\377\\n" >"dist/$(printf "odd \\377 name")"; touch -d "2001-02-03 04:05:06.789012345" dist/tool; touch -h -d "2002-01-01" dist/link'
vx run build --all
is 'the first run' "$rc $(ran)" '0 a'
tree p/a/dist >"$W/before"
restored() { is "$1" "$(tree p/a/dist | timeless) $(ran)" "$(timeless <"$W/before") "; }
vx run build --all
is 'the second executes nothing' "$rc $(ran)" '0 '
is 'nothing was touched' "$(tree p/a/dist)" "$(cat "$W/before")"
rm -rf p/a/dist
vx run build --all
is 'removed outputs: nothing is executed' "$rc $(ran)" '0 '
restored 'and all is as it was: bytes, modes, link targets'
by_time() { (cd p/a/dist && find . -type f -o -type l | xargs -d '\n' stat -c '%.9Y %n' | LC_ALL=C sort -n | cut -d' ' -f2- | paste -sd' '); }
is 'times are those of the restore' "$(find p/a/dist \( -type f -o -type l \) ! -newer "$W/before")" ''
is 'in the order that was saved' "$(by_time)" "$(grep -aE ' [fl] ' "$W/before" | LC_ALL=C sed -E 's/^(.*) (f [0-7]+|l) ([0-9.]+) .*/\3 .\/\1/' | LC_ALL=C sort -n | cut -d' ' -f2- | paste -sd' ')"
tree p/a/dist >"$W/after"
vx run build --all
like 'a restore is up to date at once' "$out" '1 up to date'
is 'and nothing is touched' "$(tree p/a/dist)" "$(cat "$W/after")"
put p/a/dist/stray x
put p/a/dist/sub/deep/stray x
ln -s x p/a/dist/straylink
mkdir p/a/dist/straydir
vx run build --all
is 'stray files are gone after a hit, and what is right keeps its time' "$(tree p/a/dist) $(ran)" "$(cat "$W/after") "
touch -d '2001-02-03' p/a/dist/ro
tree p/a/dist >"$W/after"
vx run build --all
is 'also one that another has given' "$(tree p/a/dist) $(ran)" "$(cat "$W/after") "
chmod 600 p/a/dist/tool
vx run build --all
restored 'a changed mode is put right'
printf 'loot\n' >p/a/dist/tool
touch -d '2001-02-03 04:05:06.789012345' p/a/dist/tool
vx run build --all
restored 'and so are changed bytes behind an old mtime'
rm p/a/dist/link && mkdir p/a/dist/link
rm -rf p/a/dist/sub && echo file >p/a/dist/sub
vx run build --all
restored 'files where directories were, and the other way'
mkdir "$W/elsewhere" && put "$W/elsewhere/keep" keep
rm -rf p/a/dist && ln -s "$W/elsewhere" p/a/dist
vx run build --all
is 'a restore never goes through a symlink' "$(ls "$W/elsewhere")" keep
is 'the store holds no hard link to an output' "$(find p/a/dist -type f -links +1)" ''
rm -rf p/a/dist

# what changes a key
put p/a/src/x y
vx run build --all
is 'another input: a miss' "$rc $(ran)" '0 a'
put p/a/src/x x
vx run build --all
is 'the old input: the old hit' "$rc $(ran)" '0 '
put p/a/src/new x
vx run build --all
is 'an untracked input counts' "$rc $(ran)" '0 a'
rm p/a/src/new
put p/a/other x
vx run build --all
is 'what is no input does not' "$rc $(ran)" '0 '
chmod +x p/a/src/x
vx run build --all
is 'a mode counts' "$rc $(ran)" '0 a'
chmod -x p/a/src/x
touch p/a/src/x
vx run build --all
is 'an mtime does not' "$rc $(ran)" '0 '
rm p/a/src/x && ln -s y p/a/src/x
vx run build --all
is 'a link is not its target' "$(ran)" a
rm p/a/src/x && put p/a/src/x x
put package-lock.json '{}'
vx run build --all
is 'a lockfile counts' "$rc $(ran)" '0 a'
rm package-lock.json
put p/a/package.json '{ "name": "a", "version": "1.0.1" }'
vx run build --all
is 'a manifest counts' "$rc $(ran)" '0 a'

# The index has the id of converted bytes. What converts them goes, and git says that nothing has changed; then the bytes become those that the id is of.
converted() { # NAME ON OFF: switches conversion
	one 'mkdir -p dist; cp src/x dist/'
	eval "$2"
	printf 'x\r\n' >p/a/src/x
	touch -d 2020-01-01 p/a/src/x
	git add -A 2>/dev/null
	[ "$1" = 'at the first run' ] || vx run build --all
	eval "$3"
	git add -A
	vx run build --all
	ran >/dev/null
	vx run build --all
	is "$1, conversion ends: nothing changes then" "$rc $(ran)" '0 '
	printf 'x\n' >p/a/src/x
	vx run build --all
	is "$1, conversion ends: other bytes are other bytes" "$rc $(ran) $(od -c p/a/dist/x | head -1)" '0 a 0000000   x  \n'
}
converted 'at the first run' 'put .gitattributes "* text=auto"' ': >.gitattributes'
converted 'attributes emptied' 'put .gitattributes "* text=auto"' ': >.gitattributes'
converted 'attributes removed' 'put .gitattributes "* text=auto"' 'rm .gitattributes'
converted 'attributes of a directory removed' 'put p/a/.gitattributes "* text=auto"' 'git rm -q --cached p/a/.gitattributes; rm p/a/.gitattributes'
converted 'attributes of the repository removed' 'mkdir -p .git/info; put .git/info/attributes "* text"' 'rm .git/info/attributes'
converted 'a setting' 'git config core.autocrlf true' 'git config --unset core.autocrlf'

# the flags
one 'mkdir -p dist; cp src/x dist/'
vx run build --all --no-cache
is '--no-cache runs' "$rc $(ran)" '0 a'
vx run build --all
is 'and saves nothing' "$rc $(ran)" '0 a'
vx run build --all --no-cache
is '--no-cache reads nothing' "$rc $(ran)" '0 a'
vx run build --all --force
is '--force runs' "$rc $(ran)" '0 a'
project a <<<"$(cached "echo a >>$W/ran; mkdir -p dist; cp $W/outside dist/")"
put "$W/outside" first
vx run build --all
put "$W/outside" second
vx run build --all
is '(hit)' "$(cat p/a/dist/outside) $(ran)" 'first a'
vx run build --all --force
rm -rf p/a/dist
vx run build --all
is '--force replaces what was saved' "$(cat p/a/dist/outside) $(ran)" 'second a'
vx run build --all --cache-dir "$W/other"
is '--cache-dir is another store' "$rc $(ran)" '0 a'
ok 'there' test -d "$W/other/v1"
VX_CACHE_DIR=$W/other vx run build --all
is 'VX_CACHE_DIR too' "$rc $(ran)" '0 '
put vx.workspace.json '{ "cacheDir": "tools/store" }'
vx run build --all
is 'cacheDir too' "$rc $(ran)" '0 a'
vx run build --all
is 'and is used again' "$rc $(ran) $(ls tools/store/v1/vx-store)" '0  tools/store/v1/vx-store'
rm -r tools

# strict outputs: cleaned before the command, nothing else kept
one 'mkdir -p dist; cp src/x "dist/$(cat src/x)"'
vx run build --all
put p/a/src/x z
put p/a/dist/stray s
vx run build --all
is 'declared outputs are cleaned before the command' "$(ls p/a/dist) $(ran)" 'z a a'
git add -f p/a/dist/z
put p/a/src/x w
vx run build --all
is 'files that git tracks are never cleaned' "$(ls p/a/dist | paste -sd' ') $(ran)" 'w z a'
like 'which is said' "$err$out" 'tracked'

# a failure is never cached
one 'mkdir -p dist; echo x >dist/x; exit 1'
vx run build --all
vx run build --all
is 'a failure runs again' "$rc $(ran)" '1 a a'

# nor is what runs after a task whose inputs moved: the count names all of them
workspace "$W/moved"
project a <<<"$(cached 'mkdir -p dist; cp src/x dist/; date +%N >>src/x')"
project b a <<<"$(cached "mkdir -p dist; echo b >>$W/ran" '' '"dependsOn": ["^build"]')"
project c b <<<"$(cached "mkdir -p dist; echo c >>$W/ran" '' '"dependsOn": ["^build"]')"
project d <<<"$(cached "mkdir -p dist; echo d >>$W/ran")"
for p in a b c d; do put p/$p/src/x $p; done
git add -A
vx run build --all
is 'a task whose inputs move, and what runs after it' "$rc $(ran)" '0 b c d'
like 'are counted together' "$out" '4 miss, 3 not saved'
vx run build --all
is 'they run again' "$rc $(ran)" '0 b c'

# inputs that move while the task runs
one 'mkdir -p dist; cp src/x dist/; echo more >>src/x; cp src/x dist/y'
vx run build --all
is 'an input edited meanwhile: the result stands' "$rc $(ran)" '0 a'
like 'that it is not saved is said, naming the file' "$out$err" 'src/x'
like 'and counted' "$out" '1 miss, 1 not saved'
vx run build --all
is 'and it was not' "$rc $(ran)" '0 a'
one 'mkdir -p dist; cp src/x keep; echo other >src/x; cp src/x dist/; cat keep >src/x'
vx run build --all
like 'an input edited meanwhile and put back: what was made is not saved' "$out$err" 'inputs changed while it ran: p/a/src/x'
vx run build --all
is 'and runs again' "$rc $(ran)" '0 a a'
rm p/a/keep
one 'mkdir -p dist; cp src/x dist/; [ -e src/late ] || echo late >src/late'
vx run build --all
like 'an input that appeared meanwhile' "$out$err" 'src/late'
ran >/dev/null
vx run build --all
is 'is one in the next run' "$rc $(ran)" '0 a'
vx run build --all
is 'which is saved' "$rc $(ran)" '0 '

# upstream keys
workspace "$W/up"
project a <<<"$(cached "echo a >>$W/ran; mkdir -p dist; cat src/x >dist/x")"
project b a <<<"$(cached "echo b >>$W/ran; mkdir -p dist; cat ../a/dist/x src/x >dist/x" '' '"dependsOn": ["^build"]')"
put p/a/src/x a1
put p/b/src/x b1
git add -A
vx run build --all
is 'both' "$rc $(ran)" '0 a b'
vx run build --all
is 'none' "$rc $(ran)" '0 '
put p/b/src/x b2
vx run build --all
is 'the dependent alone' "$rc $(ran)" '0 b'
put p/a/src/x a2
vx run build --all
is 'a change goes downstream' "$rc $(ran) $(paste -sd' ' p/b/dist/x)" '0 a b a2 b2'
put p/a/src/x a1
put p/b/src/x b1
rm -rf p/a/dist
vx run build --all
is 'back again: two hits' "$rc $(ran) $(paste -sd' ' p/b/dist/x)" '0  a1 b1'

# an upstream without a cache that writes where we read
workspace "$W/writer"
project a <<<"{ \"tasks\": {
	\"gen\": { \"exec\": { \"command\": \"cp seed src/gen\" } },
	\"build\": { \"dependsOn\": [\"gen\"], \"exec\": { \"command\": \"echo a >>$W/ran; mkdir -p dist; cp src/gen dist/\" },
	\"cache\": { \"inputs\": { \"files\": [\"src/**\"] }, \"outputs\": { \"files\": [\"dist/**\"] } } } } }"
put p/a/seed 1
put p/a/src/gen 0
git add -A
vx run build --all
is 'keyed after the writer has run' "$rc $(ran) $(cat p/a/dist/gen)" '0 a 1'
vx run build --all
ran >/dev/null
vx run build --all
is 'hit, once the writer changes nothing' "$rc $(ran)" '0 '
put p/a/seed 2
vx run build --all
is 'never a hit on what the writer is about to change' "$rc $(ran) $(cat p/a/dist/gen)" '0 a 2'

# logs
one 'echo one; sleep 0.1; echo two >&2; sleep 0.1; echo three; sleep 0.1; echo four >&2; sleep 0.1; printf "no newline"; mkdir -p dist; echo x >dist/x'
vx run build --all --output-logs full
like 'the output of a miss' "$(paste -sd' ' <<<"$out$err")" 'one.*two.*three.*four.*no newline'
vx run build --all --output-logs full
is '(hit)' "$(ran)" a
like 'a hit replays it in order' "$(paste -sd' ' <<<"$out")" 'one.*two.*three.*four.*no newline'
vx run build --all
unlike 'but not by default' "$out" 'three'
CI=1 vx run build --all
like 'in CI it is shown' "$out" 'three'
vx run build --all --force --output-logs none
unlike 'none' "$out" 'three'

# damage
one 'mkdir -p dist; seq 10000 >dist/x'
vx run build --all
artifact=$(find .vx/cache/v1/[as] -type f)
is 'one artifact' "$(wc -l <<<"$artifact")" 1
like 'in a segment' "$artifact" '/v1/s/'
ok 'that tar can read' tar --zstd -itf "$artifact"
ran >/dev/null
ok 'harmed' "$SRC/tests/artifacts.py" .vx/cache/v1 harm
rm -rf p/a/dist
vx run build --all
is 'a damaged artifact is a miss' "$rc $(ran) $(tail -1 p/a/dist/x)" '0 a 10000'
like 'that is said' "$out$err" '[Dd]amaged|digest'
rm -rf p/a/dist
vx run build --all
is 'and was saved anew' "$rc $(ran) $(tail -1 p/a/dist/x)" '0  10000'
is 'in the same segment' "$(find .vx/cache/v1/[as] -type f)" "$artifact"
rm "$artifact"
rm -rf p/a/dist
vx run build --all
is 'a missing artifact is a miss' "$rc $(ran)" '0 a'
chmod -R u+w .vx/cache/v1/index
for f in .vx/cache/v1/index/*; do head -c 100000 /dev/urandom >"$f"; done
vx run build --all
is 'a ruined index never fails the run' "$rc $(ran)" '0 a'
is 'no temporary is left' "$(find .vx/cache/v1/tmp .vx/stage -type f 2>/dev/null)" ''
is '.vx ignores itself' "$(git status --porcelain --untracked-files=all | grep -c '\.vx')" 0

# a large one is a file of its own
one 'mkdir -p dist; head -c 200000 /dev/urandom >dist/x'
vx run build --all
artifact=$(find .vx/cache/v1/a -type f)
like 'large: one artifact' "$artifact" 'tar.zst$'
is 'large: and no segment' "$(find .vx/cache/v1/s -type f 2>/dev/null)" ''
ok 'large: that tar can read' tar --zstd -tf "$artifact"
is 'large: named by its digest' "$(basename "$artifact" .tar.zst)" "$(sha256sum <"$artifact" | cut -d' ' -f1)"
ran >/dev/null
ok 'large: harmed' "$SRC/tests/artifacts.py" .vx/cache/v1 harm
rm -rf p/a/dist
vx run build --all
is 'large: a damaged artifact is a miss' "$rc $(ran)" '0 a'
rm "$(find .vx/cache/v1/a -type f)"
rm -rf p/a/dist
vx run build --all
is 'large: a missing artifact is a miss' "$rc $(ran)" '0 a'

# no outputs: rows only
workspace "$W/rows"
project a <<<"{ \"tasks\": { \"lint\": { \"exec\": { \"command\": \"echo a >>$W/ran; echo looks good\" }, \"cache\": { \"inputs\": { \"files\": [\"src/**\"] }, \"outputs\": { \"files\": [] } } } } }"
put p/a/src/x x
git add -A
vx run lint --all
vx run lint --all --output-logs full
is 'a task without outputs hits' "$rc $(ran)" '0 a'
like 'with its log' "$out" 'looks good'
is 'and needs no artifact' "$(find .vx/cache/v1/[as] -type f 2>/dev/null)" ''

# cacheRetention: the end of a run makes room
one 'mkdir -p dist; head -c 20000 /dev/urandom >dist/x'
put vx.workspace.json '{ "cacheRetention": { "maxSize": "30K" } }'
for i in 1 2 3; do
	put p/a/src/x "$i"
	vx run build --all
done
is 'cacheRetention keeps what fits' "$rc $("$VX" cache stats --format json | grep -o '"artifacts": *[0-9]*' | grep -o '[0-9]*$')" '0 1'
put vx.workspace.json '{ "cacheRetention": { "maxSize": "lots" } }'
put p/a/src/x 4
vx run build --all
like 'a size that is none is named' "$err" 'maxSize'

done_testing
