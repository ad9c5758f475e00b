#!/usr/bin/env bash
# Planning on broken, huge and hostile input: one clear line or git's answer, never a crash, a hang or a wrong key. (Broken configurations: bad_input.sh.)
. "$(dirname "$0")/../lib.sh"
. "$SRC/tests/vx.sh"

good() {
	workspace "$W/ws$((++n))"
	project a <<<"$(cached "echo a >>$W/ran; mkdir -p dist; cp -r src/. dist/")"
	put p/a/src/x x
	git add -A
	git commit -qm one
}
n=0
# keys: of all tasks, by the way in use; as git's own way makes them
keys() { "$VX" run build --all --dry=json 2>&1 | grep -o '"id":"[^"]*"\|"hash":"[^"]*"'; }
same_as_git() { is "$1: as by git" "$(keys)" "$(VX_FILES=git keys)"; }
signal() { isnt "$1: no signal" "$rc" 139 && isnt "$1: no abort" "$rc" 134; }

# ---- configuration ----
good
python3 -c 'print("[" * 200000)' >p/a/vx.json
vx run build --all
one_line 'a vx.json of 200,000 brackets' 'p/a/vx\.json.*(deep|nest)'
python3 -c 'print("{\"tasks\":" * 5000 + "{}" + "}" * 5000)' >p/a/vx.json
vx run build --all
one_line 'objects 5,000 deep' 'p/a/vx\.json.*(deep|nest)'
good
python3 -c 'print("{\"name\":\"a\",\"x\":" + "[" * 100000 + "]" * 100000 + "}")' >p/a/package.json
vx run build --all
one_line 'a package.json 100,000 deep' 'p/a/package\.json'
for f in package.json vx.json; do
	good
	truncate -s 100M "p/a/$f"
	vx run build --all
	one_line "a $f of 100 MB of nothing" "p/a/${f/./\\.}.*larger"
done
good
python3 -c 'print("{\"name\":\"a\",\"x\":\"" + "y" * 104857600 + "\"}")' >p/a/package.json
vx run build --all
one_line 'a package.json of 100 MB' 'p/a/package\.json.*larger'
good
python3 -c 'print("{\"name\":\"root\",\"workspaces\":[\"" + "{a,b}" * 40 + "\"]}")' >package.json
vx run build --all
one_line 'members with 2^40 alternatives' 'alternatives'
good
python3 -c 'print("packages:\n  - &a [x,x]\n" + "".join(f"  - &{chr(98+i)} [*{chr(97+i)},*{chr(97+i)},*{chr(97+i)},*{chr(97+i)}]\n" for i in range(20)))' >pnpm-workspace.yaml
vx run build --all
one_line 'YAML whose aliases multiply' 'pnpm-workspace\.yaml'
good
mkfifo p/a/vx.jsonc
rm p/a/vx.json
vx run build --all
one_line 'a configuration that is a pipe' 'p/a/vx\.jsonc'
good
mv p/a/package.json p/a/real.json
ln -s package.json p/a/package.json
vx run build --all
signal 'a manifest that is a link to itself'
isnt 'a manifest that is a link to itself: refused or not there' "$rc" 139
good
mkdir p/b
ln -s ../a p/b/a
ln -s .. p/b/up
ln -s b p/c
ln -s d p/d
vx run build --all
is 'links in a circle among the members' "$rc $(ran)" '0 a'

# ---- files ----
good
ln -s . p/a/src/self
ln -s ../src p/a/src/again
ln -s two p/a/src/one
ln -s one p/a/src/two
git add -A
vx run build --all --dry
is 'links in a circle among the inputs' "$rc" 0
same_as_git 'links in a circle'
good
d=p/a/src
for i in $(seq 300); do d=$d/dddddddd; done
mkdir -p "$d" 2>/dev/null
put "$d/f" x
git add -A 2>/dev/null
vx run build --all --dry
is 'a tree 300 deep' "$rc" 0
same_as_git 'a tree 300 deep'
python3 - <<'PY'
import os
os.chdir("p/a/src")
for i in range(600):
    os.mkdir("e" * 8)
    os.chdir("e" * 8)
open("f", "w").write("x")
PY
vx run build --all --dry
signal 'a path of more than 4096 bytes'
[ "$rc" = 0 ] || is 'a path of more than 4096 bytes: one line' "$(wc -l <<<"$err")" 1

# ---- the index ----
for damage in 'truncate -s 0 .git/index' 'truncate -s 11 .git/index' 'truncate -s -1 .git/index' 'truncate -s 100 .git/index' \
	'printf X | dd of=.git/index bs=1 seek=4 conv=notrunc' 'printf XXXX | dd of=.git/index bs=1 seek=8 conv=notrunc' 'printf X | dd of=.git/index bs=1 seek=70 conv=notrunc' \
	'head -c 4096 /dev/urandom >.git/index' 'rm .git/index; mkdir .git/index' 'rm .git/index; ln -s index .git/index'; do
	good
	sh -c "$damage" 2>/dev/null
	theirs=$(timeout "$VXT_HANG_S" git ls-files 2>&1 >/dev/null)
	vx run build --all --dry=json
	signal "$damage"
	if [ -z "$theirs" ]; then
		is "$damage: git can, so can we" "$rc" 0
	else
		isnt "$damage: git cannot, nor do we" "$rc" 0
		is "$damage: one line" "$(wc -l <<<"$err")" 1
	fi
	is "$damage: nothing ran" "$(ran)" ''
done
good
rm .git/index
mkfifo .git/index # git itself waits for it for ever
vx run build --all
one_line 'a pipe in place of the index' 'index is no file'
# where git is asked all the same, it can be stopped
VX_FILES=git "$VX" run build --all >"$W/out" 2>&1 &
pid=$!
asked() { [ -n "$(below $pid)" ]; }
wait_for asked
kill -TERM $pid
wait $pid
is 'a git that hangs is ended by a signal' $? 143
rm .git/index
good
git update-index --split-index
same_as_git 'a split index'
git update-index --no-split-index --index-version 4
same_as_git 'version 4'
chmod 000 .git/index

# ---- permissions, as a normal user ----
if [ "$(id -u)" = 0 ]; then
	mkdir -p "$W/user"
	(
		workspace "$W/user/ws"
		project a <<<"$(cached "mkdir -p dist; echo x >dist/x")"
		put p/a/src/x x
		put p/a/src/locked/y y
		put p/b/package.json '{ "name": "b" }'
		git add -A
	)
	cd "$W/user/ws" || exit 1
	as_user true
	for dir in p .git; do
		chmod 000 $dir
		run as_user timeout -k 1 "$VXT_HANG_S" "$W/user/bin/vx" run build --all --dry=json
		chmod 755 $dir
		isnt "an unreadable $dir: refused" "$rc" 0
		like "an unreadable $dir: said" "$err" "^vx run: (.*\\(p: permission denied|$W/user/ws is not in a git repository)"
		is "an unreadable $dir: and nothing but what vx says" "$(grep -vc '^vx run: ' <<<"$err")" 0
	done
	put p/b/vx.json "$(task true)"
	chmod 000 p/a
	run as_user timeout -k 1 "$VXT_HANG_S" "$W/user/bin/vx" run build --all --dry
	chmod 755 p/a
	is 'a project in an unreadable directory: the others run' "$rc" 0
	like 'and it is said' "$err" '^vx run: p/a: permission denied, so no project is looked for in it$'
	# what git lists of an unreadable directory: nothing, and what is tracked there counts as deleted
	for dir in p/a/src/locked p/a/src; do
		chmod 000 $dir
		run as_user "$W/user/bin/vx" run build --all --dry=full
		ours=$(grep -o '"inputs":{[^}]*}\|"hash":"[^"]*"' <<<"$out")
		run as_user env VX_FILES=git "$W/user/bin/vx" run build --all --dry=full
		theirs=$(grep -o '"inputs":{[^}]*}\|"hash":"[^"]*"' <<<"$out")
		chmod 755 $dir
		is "an unreadable $dir: git's answer" "$ours" "$theirs"
	done
	chmod 000 .git/index
	run as_user timeout -k 1 "$VXT_HANG_S" "$W/user/bin/vx" run build --all --dry=json
	chmod 644 .git/index
	isnt 'an unreadable index: refused' "$rc" 0
	is 'an unreadable index: one line' "$(wc -l <<<"$err")" 1
	run as_user timeout -k 1 "$VXT_HANG_S" "$W/user/bin/vx" run build --all --dry=json
	is 'and all is well again' "$rc" 0
else
	skip 'unreadable directories' 'needs root to become a user'
fi

# ---- replaced while it is read ----
good
head -c 2000000 /dev/zero >p/a/src/big
git add -A
(while :; do
	head -c 2000000 /dev/urandom >p/a/src/.new && mv p/a/src/.new p/a/src/big
	rm -f p/a/src/x && ln -s nowhere p/a/src/x
	rm -f p/a/src/x && mkdir p/a/src/x
	rmdir p/a/src/x && echo x >p/a/src/x
	printf '{ "name": "a" }' >p/a/.new && mv p/a/.new p/a/package.json
done) 2>/dev/null &
churn=$!
crashed=
for i in $(seq 15); do
	vx run build --all --dry=json
	case $rc in 0) ;; 1) [ "$(wc -l <<<"$err")" = 1 ] || crashed="$crashed status $rc: $err" ;; *) crashed="$crashed status $rc: $err" ;; esac
done
is 'files that are replaced while they are read: a plan or one line' "$crashed" ''
kill $churn
wait $churn 2>/dev/null
rm -rf p/a/src/x p/a/src/.new
put p/a/src/x x
same_as_git 'and afterwards'
done_testing
