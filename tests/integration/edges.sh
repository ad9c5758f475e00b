#!/usr/bin/env bash
# Odd surroundings: few descriptors, full disks, closed streams, odd environments, directories that are links or read-only.
. "$(dirname "$0")/../lib.sh"
. "$SRC/tests/vx.sh"

# few descriptors, many tasks
workspace "$W/many"
for ((i = 0; i < 120; i++)); do put "p/p$i/package.json" "{ \"name\": \"p$i\" }"; put "p/p$i/vx.json" <<<"$(cached "echo $i >>$W/ran; mkdir -p dist; echo $i >dist/x; echo out $i")"; put "p/p$i/src/x" $i; done
git add -A
run bash -c "ulimit -n 64; exec timeout $VXT_HANG_S '$VX' run build --all --concurrency 4"
is '64 descriptors: exit 0' "$rc" 0
is 'each once' "$(sort -u "$W/ran" | wc -l) $(ran | wc -w)" '120 120'
rm -rf p/*/dist
run bash -c "ulimit -n 64; exec timeout $VXT_HANG_S '$VX' run build --all --concurrency 4"
is 'and restores with them' "$rc $(ran) $(cat p/*/dist/x | sort -n | tail -1)" '0  119'
run bash -c "ulimit -n 40; exec timeout $VXT_HANG_S '$VX' run build --all --force --concurrency 64"
is 'too few for the slots asked for: it runs with fewer' "$rc $(ran | wc -w)" '0 120'
is 'and says so in one line' "$(grep -c . <<<"$err")" 1
like 'with the way out' "$err" '^vx run: .*ulimit -n'
run bash -c "ulimit -Sn 40; exec timeout $VXT_HANG_S '$VX' run build --all --force --concurrency 64"
is 'a soft limit is raised' "$rc $err" '0 '
project p0 <<<"$(task 'ulimit -Sn')"
run bash -c "ulimit -Sn 77; exec '$VX' run p0#build"
like 'commands have the limit that vx was started with' "$out" '^77$'
: >"$W/ran"

# a file size limit that vx's own shared memory meets: an error, no death by SIGXFSZ
run bash -c "ulimit -f 1; exec timeout $VXT_HANG_S '$VX' run p0#build"
is 'ulimit -f: exit 1' "$rc" 1
like 'said in a line' "$err" '^vx run: .*File too large'
is 'once' "$(grep -c . <<<"$err")" 1
: >"$W/ran"

# few processes
if [ "$(id -u)" = 0 ]; then
	mkdir -p "$W/user"
	(workspace "$W/user/ws" && project a <<<"$(task 'echo fine')")
	as_user true
	cd "$W/user/ws" || exit 1
	run as_user env ASAN_OPTIONS=detect_leaks=0 bash -c "ulimit -u 1; exec '$W/user/bin/vx' run build --all"
	is 'no process to be had: exit 1' "$rc" 1
	like 'with a reason' "$out$err" 'vx'

	# a workspace that cannot be written
	chown -R 0:0 "$W/user/ws"
	run as_user timeout "$VXT_HANG_S" "$W/user/bin/vx" run build --all
	is "a workspace that is not ours to write: it runs" "$rc" 0
	like 'or says why not' "$out$err" 'fine|cannot|ok'
fi

# full disks
if [ "$(id -u)" = 0 ] && unshare -m true 2>/dev/null; then
	workspace "$W/full"
	project a <<<"$(cached "echo a >>$W/ran; mkdir -p dist; head -c 3000000 /dev/urandom >dist/x")"
	project b <<<"$(cached "echo b >>$W/ran; mkdir -p dist; echo b >dist/x")"
	put p/a/src/x x
	put p/b/src/x x
	git add -A
	mkdir "$W/small"
	export W
	run unshare -m bash -c "mount -t tmpfs -o size=1500k none '$W/small' && timeout $VXT_HANG_S '$VX' run build --all --cache-dir '$W/small'; rc=\$?; timeout $VXT_HANG_S '$VX' run build --all --cache-dir '$W/small' >/dev/null 2>'$W/second' || rc=2; find '$W/small/v1/tmp' -type f >'$W/litter'; exit \$rc"
	is 'a full store: exit 0' "$rc" 0
	like 'it is said' "$err" 'No space'
	is 'the big one ran twice' "$(tr ' ' '\n' <<<"$(ran)" | grep -c a)" 2
	is 'no litter' "$(cat "$W/litter")" ''
	run unshare -m bash -c "mount -t tmpfs -o size=300k none p/a && cp -r '$W/full/p/b/.' p/a/ && sed -i 's/\"b\"/\"a\"/' p/a/package.json && timeout $VXT_HANG_S '$VX' run build --all --continue"
	isnt 'a full project hangs nothing' "$rc" 124
	: >"$W/ran"
fi

# streams
workspace "$W/streams"
project a <<<"$(task "echo hello; echo error >&2; echo a >>$W/ran")"
"$VX" run build --all <&- >"$W/out" 2>&1
is 'no stdin' "$? $(ran)" '0 a'
"$VX" run build --all 2>&- >"$W/out"
is 'no stderr' "$? $(ran)" '0 a'
"$VX" run build --all <&- >&- 2>&-
is 'none at all' "$? $(ran)" '0 a'
"$VX" run a#build >/dev/full 2>/dev/full
is 'both full' "$? $(ran)" '0 a'

# environments
env -i "$VX" run build --all >"$W/out" 2>&1
is 'an empty environment' "$? $(ran)" '0 a'
env -u HOME "$VX" run build --all >"$W/out" 2>&1
is 'no HOME' "$? $(ran)" '0 a'
env HOME=/nonexistent TMPDIR=/nonexistent "$VX" run build --all >"$W/out" 2>&1
is 'HOME and TMPDIR that are not there' "$? $(ran)" '0 a'
env PATH= "$VX" run build --all >"$W/out" 2>&1
like 'an empty PATH: runs or is refused' "$? $(ran)" '^(0 a|1 )$'
LC_ALL=xx_YY.nothing LANG=zz "$VX" run build --all >"$W/out" 2>&1
is 'an unknown locale' "$? $(ran)" '0 a'
GIT_DIR=/nonexistent GIT_INDEX_FILE=/nonexistent "$VX" run build --all >"$W/out" 2>&1
is "git's variables pointing elsewhere" "$? $(ran)" '0 a'
(umask 077; "$VX" run build --all --cache-dir "$W/private" >"$W/out" 2>&1)
is 'umask 077' "$? $(ran)" '0 a'
(trap '' PIPE CHLD HUP; "$VX" run build --all >"$W/out" 2>&1)
is 'signals that were ignored by whom started it' "$? $(ran)" '0 a'
project a <<<"$(task "trap >$W/traps; grep -E 'Sig(Ign|Blk)' /proc/self/status >$W/signals")"
(trap '' PIPE CHLD HUP; "$VX" run build --all >"$W/out" 2>&1)
is 'commands start with default signals, none blocked' "$(awk '{ print $2 }' "$W/signals" | paste -sd' ')" '0000000000000000 0000000000000000'

# directories
workspace "$W/real"
project a <<<"$(cached "echo a >>$W/ran; mkdir -p dist; cp src/x dist/; pwd >$W/pwd")"
put p/a/src/x x
git add -A
ln -s "$W/real" "$W/alias"
cd "$W/alias/p/a" || exit 1
vx run build
is 'through a symlink' "$rc $(ran)" '0 a'
cd "$W/real" || exit 1
vx run build --all
is 'is the same workspace' "$rc $(ran)" '0 '
mkdir -p "$W/gone" && cd "$W/gone" && rmdir "$W/gone"
vx run build --all
is 'a current directory that is gone: exit 1' "$rc" 1
like 'and a line' "$err" '^vx'
cd "$W/real" || exit 1
mkdir real-member && put real-member/package.json '{ "name": "linked" }' && put real-member/vx.json <<<"$(task "echo linked >>$W/ran")"
ln -s ../real-member p/linked
vx run build --all
is 'a member that is a symlink' "$rc $(ran)" '0 linked'
cd p/linked || exit 1
vx run build
is 'from inside it' "$rc $(ran)" '0 linked'
cd "$W/real" || exit 1

# a submodule and an embedded repository
new_repo "$W/other"
put file one
git add -A
git commit -q -m one
cd "$W/real" || exit 1
git -c protocol.file.allow=always submodule --quiet add "$W/other" p/a/src/sub 2>/dev/null
vx run a#build
is 'a submodule among the inputs' "$rc $(ran)" '0 a'
vx run a#build
is 'hits' "$rc $(ran)" '0 '
put p/a/src/sub/file two
vx run a#build
is 'an edit in it counts' "$rc $(ran)" '0 a'

# attributes: what git would store is not what is on disk
printf '* text=auto\n*.x ident\n' >.gitattributes
printf 'a\r\nb\r\n' >p/a/src/crlf
git add -A 2>/dev/null
vx run a#build
ran >/dev/null
vx run a#build
is 'text=auto: hits' "$rc $(ran)" '0 '
printf 'a\nb\n' >p/a/src/crlf
vx run a#build
is 'bytes on disk count, not what git would make of them' "$rc $(ran)" '0 a'

# files that are no files
mkfifo p/a/src/fifo
vx run a#build
isnt 'a fifo among the inputs hangs nothing' "$rc" 124
rm p/a/src/fifo
: >"$W/ran"
project a <<<"$(cached "mkdir -p dist; mkfifo dist/fifo; echo x >dist/x; echo a >>$W/ran")"
vx run a#build
is 'a fifo among the outputs: the run is fine' "$rc $(ran)" '0 a'
is 'and that it is not saved is said' "$err" 'vx run: a#build was not saved: p/a/dist/fifo is a FIFO'
like 'and counted at the end' "$out" '1 not saved'

# outputs that hold the path of the workspace
project a <<<"$(cached "mkdir -p dist; pwd >dist/x; echo a >>$W/ran")"
vx run a#build
like 'outputs that hold the path are named' "$err" 'outputs of a#build hold the path of this workspace'
vx cache stats
like 'and counted' "$out" '1 holds? this workspace'
: >"$W/ran"
cp -a . "$W/moved"
store=$PWD/.vx/cache
cd "$W/moved" || exit 1
vx run a#build --cache-dir "$store"
is 'in another place it is a miss' "$rc $(ran)" '0 a'
is 'which makes what is right there' "$(cat "$W/moved/p/a/dist/x")" "$W/moved/p/a"

done_testing
