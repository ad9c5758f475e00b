#!/usr/bin/env bash
# What a sandboxed task can and cannot do, with the real bwrap, as root and as a normal user.
. "$(dirname "$0")/../lib.sh"
. "$SRC/tests/vx.sh"
can_sandbox || skip_all 'no user namespaces or no bwrap'

# HOME lies outside /tmp, which is private inside.
home=$(mktemp -d /var/tmp/vx-test.XXXXXX)
trap 'rm -rf "$home"; vxt_exit' EXIT
chmod 755 "$home"

python3 - "$W/port" <<'P' &
import os, socket, sys
s = socket.socket()
s.bind(("127.0.0.1", 0))
s.listen(8)
u = socket.socket(socket.AF_UNIX)
u.bind(os.path.dirname(sys.argv[1]) + "/sock")
u.listen(8)
open(sys.argv[1] + ".new", "w").write(str(s.getsockname()[1]))
os.rename(sys.argv[1] + ".new", sys.argv[1])
s.settimeout(120)
try:
    while True:
        s.accept()
except OSError:
    pass
P
server=$!
trap 'kill $server; rm -rf "$home"; vxt_exit' EXIT
wait_for test -s "$W/port"
port=$(cat "$W/port")

box() { # ALLOW [COMMAND]: the task of project a; its command runs probe.sh
	printf '{ "tasks": { "build": { "exec": { "command": %s, "sandbox": { "allow": { %s } } } } } }\n' "$(json "${2:-sh probe.sh}")" "$1"
}
make_workspace() { # DIR
	workspace "$1"
	put rootfile root
	put p/b/package.json '{ "name": "b" }'
	put p/b/secret b
	put p/b/shared/x shared
	put p/a/src/x x
	put p/a/package.json '{ "name": "a" }'
	put package.json '{ "name": "root", "workspaces": ["p/*", "p/a/inner"] }'
	put p/a/inner/package.json '{ "name": "inner" }'
	put p/a/inner/file inner
	put p/a/.vscode/settings.json '{}'
	cp "$W/probe.sh" p/a/
	put p/a/vx.json <<<"$(box '"read": [".", "../b/shared"], "write": ["dist/"]')"
	git add -A 2>/dev/null
	mkdir -p "$home/.ssh" "$home/.config/gh"
	echo key >"$home/.ssh/id_rsa"
	echo token >"$home/.netrc"
	echo token >"$home/.config/gh/hosts.yml"
	echo plain >"$home/plain"
}
cat >"$W/probe.sh" <<P
can() { name=\$1; shift; if "\$@" >/dev/null 2>&1; then echo "\$name yes"; else echo "\$name no"; fi >>dist/result; }
py() { name=\$1; can "\$name" python3 -c "\$2"; }
mkdir -p dist
can own-read cat src/x
can own-write sh -c 'echo y >src/x'
can own-create sh -c 'echo y >new'
can dist-write sh -c 'echo y >dist/y'
can granted-sibling cat ../b/shared/x
can granted-sibling-write sh -c 'echo y >../b/shared/x'
can sibling cat ../b/secret
can sibling-manifest cat ../b/package.json
can root-file cat ../../rootfile
can git ls ../../.git
can store ls ../../.vx
can nested cat inner/file
can home-plain cat $home/plain
can ssh cat $home/.ssh/id_rsa
can netrc cat $home/.netrc
can gh cat $home/.config/gh/hosts.yml
can home-write sh -c 'echo y >$home/new'
can etc-write sh -c 'echo y >/etc/vx-test-new'
can usr-write sh -c 'echo y >/usr/vx-test-new'
can vartmp-write sh -c 'echo y >/var/tmp/vx-test-new'
can tmp-write sh -c 'echo y >/tmp/vx-test-new'
can tmp-others cat $W/outside
can tmpdir sh -c 'echo y >\$TMPDIR/vx-test-new'
can proc-sys sh -c ': >>/proc/sys/kernel/domainname'
can sysrq sh -c ': >>/proc/sysrq-trigger'
can shm sh -c 'echo y >/dev/shm/y'
can null sh -c 'echo y >/dev/null'
can kmsg sh -c ': <>/dev/kmsg'
can mount mount -t tmpfs none /tmp
can unshare unshare -Ur true
can unshare-net unshare -n true
can chroot chroot / true
can chown chown 1:1 dist/result
py host-net "import socket; socket.create_connection(('127.0.0.1', $port), 3)"
py loopback "
import socket, threading
s = socket.socket(); s.bind(('127.0.0.1', 0)); s.listen(1)
socket.create_connection(s.getsockname(), 3)"
py unix "import socket; socket.socket(socket.AF_UNIX)"
py unix-connect "import socket; socket.socket(socket.AF_UNIX).connect('$W/sock')"
py socketpair "import socket; socket.socketpair()"
py io_uring "import ctypes, errno, os
l = ctypes.CDLL(None, use_errno=True)
assert l.syscall(425, 1, 0) == -1 and ctypes.get_errno() != errno.ENOSYS"
py userns-clone "import ctypes
assert ctypes.CDLL(None).unshare(0x10000000) == 0"
py keyring "import ctypes
assert ctypes.CDLL(None).syscall(250, 0, -3, 0) >= 0"
py parent "import os; os.kill($$, 0)"
{
	echo "interfaces \$(sed '1,2d; s/:.*//' /proc/net/dev | tr -d ' ' | paste -sd,)"
	echo "descriptors \$(ls -l /proc/self/fd | awk 'NF > 8 && \$9 > 2 && \$11 !~ "^/proc" { print \$9 \$10 \$11 }' | paste -sd, | sed 's/^\$/none/')"
	echo "caps \$(grep -E '^Cap' /proc/self/status | grep -vc '0000000000000000')"
	echo "nnp \$(awk '/NoNewPrivs/ { print \$2 }' /proc/self/status)"
	echo "seccomp \$(awk '/^Seccomp:/ { print \$2 }' /proc/self/status)"
	echo "uid \$(id -u) \$(id -g)"
	echo "pids \$(ls -d /proc/[0-9]* | wc -l | awk '{ print (\$1 < 10) }')"
	echo "tmp \$(ls /tmp | grep -v vx-test | paste -sd,)"
	echo "owner \$(stat -c %u dist/y)"
	echo "cwd \$(pwd)"
	echo "tty \$(tty)"
	echo "gitenv \$GIT_DISCOVERY_ACROSS_FILESYSTEM"
	echo "groupmembers \$(ls .. | paste -sd,)"
} >>dist/result 2>&1
P

look() { # WHO UID: holds p/a/dist/result to what must be
	local who=$1 uid=$2 line
	while read -r line; do
		if grep -qxF -- "$line" p/a/dist/result; then pass "$who: $line"; else fail "$who: $line" "$(grep "^${line%% *} " p/a/dist/result)"; fi
	done <<-L
		own-read yes
		own-write no
		own-create no
		dist-write yes
		granted-sibling yes
		granted-sibling-write no
		sibling no
		sibling-manifest no
		root-file no
		git no
		store no
		nested no
		home-plain yes
		ssh no
		netrc no
		gh no
		home-write no
		etc-write no
		usr-write no
		vartmp-write no
		tmp-write yes
		tmp-others no
		tmpdir yes
		proc-sys no
		sysrq no
		shm yes
		null yes
		mount no
		unshare no
		unshare-net no
		chroot no
		chown no
		host-net no
		loopback yes
		unix no
		unix-connect no
		socketpair yes
		io_uring no
		userns-clone no
		keyring no
		parent no
		interfaces lo
		descriptors none
		caps 0
		nnp 1
		seccomp 2
		uid $uid $uid
		pids 1
		owner $uid
		cwd $PWD/p/a
		tty not a tty
		gitenv 1
	L
	is "$who: files are the user's on the host too" "$(stat -c %u p/a/dist/y)" "$uid"
	is "$who: /tmp was private" "$(ls /tmp/vx-test-new /dev/shm/y 2>/dev/null)" ''
}

put "$W/outside" outside
make_workspace "$W/ws"
export HOME=$home
vx run build --all
is 'as this user: exit 0' "$rc" 0
[ "$rc" = 0 ] || diag "$out" "$err"
if [ -e p/a/dist/result ]; then look "uid $(id -u)" "$(id -u)"; else fail 'the probe ran' "$out" "$err"; fi

if [ "$(id -u)" = 0 ]; then
	mkdir -p "$W/user"
	chmod o+x "$W"
	make_workspace "$W/user/ws"
	as_user true
	chown -R $VXT_UID:$VXT_UID "$home"
	chmod 644 "$W/outside"
	run setpriv --reuid $VXT_UID --regid $VXT_UID --clear-groups env HOME="$home" TMPDIR="$W/user/tmp" timeout "$VXT_HANG_S" "$W/user/bin/vx" run build --all
	is 'as a normal user: exit 0' "$rc" 0
	[ "$rc" = 0 ] || diag "$out" "$err"
	if [ -e p/a/dist/result ]; then look "uid $VXT_UID" $VXT_UID; else fail 'the probe ran' "$out" "$err"; fi
	chown -R 0:0 "$home"
else
	skip 'as a normal user' 'run by a normal user already'
fi

# grants
cd "$W/ws" || exit 1
attempt() { # ALLOW COMMAND
	put p/a/vx.json <<<"$(box "$1" "$2")"
	vx run a#build
}
attempt '"network": true' "python3 -c 'import socket; socket.create_connection((\"127.0.0.1\", $port), 3)'"
is 'network: true reaches the host' "$rc" 0
attempt '"read": ["."], "unixSockets": true' "python3 -c 'import socket; socket.socket(socket.AF_UNIX)'"
is 'unixSockets: true' "$rc" 0
attempt '"read": ["src/*"]' 'cat src/x && ! cat package.json'
is 'a read glob grants what matches, nothing beside it' "$rc" 0
attempt '' 'pwd && ! cat src/x'
is 'sandbox: {} starts in a directory of which nothing is granted' "$rc" 0
attempt '"read": ["absent"]' 'true; ! cat absent'
is 'a read grant that is not there is left out' "$rc" 0
attempt '"read": ["~/.ssh/id_rsa"]' "cat $home/.ssh/id_rsa"
is 'a grant that names a credential opens it' "$rc" 0
mkdir -p "$home/moved/gh"
for f in moved/gh/hosts.yml moved/kube moved/kube2 moved/npmrc; do echo token >"$home/$f"; done
export XDG_CONFIG_HOME=$home/moved KUBECONFIG=$home/moved/kube:$home/moved/kube2 npm_config_userconfig=$home/moved/npmrc
attempt '' "! cat $home/moved/gh/hosts.yml && ! cat $home/moved/kube && ! cat $home/moved/kube2 && ! cat $home/moved/npmrc && ls $home/moved"
is 'stores are hidden where variables of vx have moved them' "$rc" 0
unset XDG_CONFIG_HOME KUBECONFIG npm_config_userconfig
attempt '' "cat $home/moved/kube"
is 'and nowhere else' "$rc" 0
put p/a/vx.json <<<"{ \"tasks\": { \"build\": { \"exec\": { \"command\": \"! cat $home/moved/kube\", \"env\": { \"define\": { \"KUBECONFIG\": \"$home/moved/kube\" } }, \"sandbox\": true } } } }"
vx run a#build
is 'or where the task itself says that they are' "$rc" 0
attempt '"read": ["."], "write": ["out/deep/**", "one.txt"]' 'echo x >out/deep/x; echo x >one.txt'
is 'write grants: a glob, a file' "$rc $(cat p/a/out/deep/x p/a/one.txt | paste -sd' ')" '0 x x'
rm -rf p/a/out p/a/one.txt
attempt '"read": ["."], "write": ["out/", "one.txt"]' 'true'
is 'untouched placeholders are swept' "$rc $(ls -d p/a/out p/a/one.txt 2>/dev/null)" '0 '
attempt '"read": ["."], "write": ["dist/"]' 'mkdir -p dist/a && echo x >dist/a/x && mv dist/a dist/b && ln dist/b/x dist/linked'
is 'renames and links inside one grant' "$rc" 0
mv p/a/inner "$W/inner"
attempt '"read": ["."], "write": ["."]' 'echo x >made && ! echo x >.vscode/settings.json && ! mv .vscode other'
is 'mandatory denies hold inside a write grant' "$rc $(cat p/a/.vscode/settings.json)" '0 {}'
is 'the write grant of the whole project is one' "$(cat p/a/made 2>/dev/null)" x
rm -f p/a/made

attempt '"read": ["."], "write": ["made"]' 'exit 1'
like 'a failed task that left a file placeholder untouched is told' "$out$err" 'write "made/"'
refused() { # NAME ALLOW PATTERN
	attempt "$2" "echo ran >>$W/ran; true"
	is "$1: exit 1" "$rc" 1
	like "$1: says why" "$out$err" "$3"
	is "$1: nothing ran" "$(ran)" ''
}
ln -s ../../rootfile p/a/escape
ln -s /etc p/a/outlink
sleep 0.05; : >"$W/stamp"; sleep 0.05
refused 'a grant that leaves through a symlink' '"read": ["escape"]' 'escape'
refused 'a write grant that leaves through a symlink' '"write": ["outlink/"]' 'outlink'
refused 'a write grant that holds the workspace' '"write": ["../.."]' '\.\./\.\.'
refused 'a write grant on .git' '"write": ["../../.git/"]' '\.git'
refused 'a write grant on the store' '"write": ["../../.vx/"]' '\.vx'
refused 'a write grant on /' '"write": ["/"]' '/'
refused 'a write grant on home' '"write": ["~"]' '~|home'
is 'nothing was created for those' "$(find . -newer "$W/stamp" -not -path './.vx*' -not -path './.git*' -not -type d -not -name vx.json)" ''
rm p/a/escape p/a/outlink
mv "$W/inner" p/a/inner
refused 'a write grant around a nested project' '"write": ["."]' 'inner'

# dependencies by node_modules
workspace "$W/deps"
project lib <<<"$(cached 'mkdir -p dist; echo lib >dist/x' '"sandbox": { "allow": { "write": ["dist/"] } }')"
put p/lib/src/x x
put p/lib/file lib
mkdir -p p/app/node_modules
ln -s ../../lib p/app/node_modules/lib
project app lib <<<"$(cached "cat node_modules/lib/file >>$W/none || true; mkdir -p dist; cat node_modules/lib/file >dist/x" '"sandbox": { "allow": { "read": ["."], "write": ["dist/"] } }' '"dependsOn": ["^build"]')"
put p/app/src/x x
printf 'node_modules\n' >>.gitignore
git add -A
vx run app#build
is 'a linked package that the key answers for is granted' "$rc $(cat p/app/dist/x)" '0 lib'
project app lib <<<"$(cached "mkdir -p dist; cat node_modules/lib/file >dist/x" '"sandbox": { "allow": { "read": ["."], "write": ["dist/"] } }')"
vx run app#build
is 'one that it does not is withheld' "$rc" 1
put p/lib/bin/tool '#!/bin/sh'
chmod +x p/lib/bin/tool
mkdir -p p/app/node_modules/.bin
ln -s ../lib/bin/tool p/app/node_modules/.bin/lib-tool
project app lib <<<"$(cached "lib-tool x" '"sandbox": { "allow": { "read": ["."], "write": ["dist/"] } }')"
vx run app#build
is 'a program in a withheld package is not found' "$rc" 1
like 'and one line says why' "$out$err" 'p/lib/bin/tool is withheld: it was looked for through .*p/app/node_modules/lib'
like 'and how to have it' "$out$err" 'dependsOn "lib#...".*allow.read "../lib".*inputs.workspaceFiles'
project app lib <<<"$(cached "lib-tool && echo y" '"sandbox": { "allow": { "read": ["."], "write": ["dist/"] } }')"
vx run app#build
like 'from a shell, too' "$out$err" 'p/lib/bin/tool is withheld'
project app lib <<<"$(cached "no-such-tool; true" '"sandbox": { "allow": { "read": ["."], "write": ["dist/"] } }')"
vx run app#build
unlike 'never without a denial' "$out$err" 'withheld'
project app lib <<<"$(task "cat node_modules/lib/file" '"sandbox": { "allow": { "read": ["."] } }')"
vx run app#build
is 'a task without cache gets all' "$rc" 0

# --sandbox
workspace "$W/flag"
put rootfile root
project a <<<"$(cached "echo a >>$W/ran; mkdir -p dist; cat ../../rootfile >dist/x" '"sandbox": { "allow": { "write": ["dist/"] } }')"
put p/a/src/x x
git add -A
vx run a#build
is 'sandboxed: refused' "$rc" 1
vx run a#build --sandbox=off
is '--sandbox=off: runs' "$rc $(ran)" '0 a'
like 'said' "$out$err" '[Ss]andbox'
vx run a#build --sandbox=off
is 'and is not saved' "$rc $(ran)" '0 a'
project a <<<"$(task "echo a >>$W/ran")"
vx run a#build --sandbox=require
is '--sandbox=require refuses a task without one' "$rc $(ran)" '1 '

# inside: signals, leftovers, exits
workspace "$W/inside"
sb='"sandbox": { "allow": { "read": ["."], "write": ["state/"] } }'
project a <<<"$(task 'exit 9' "$sb")"
vx run a#build
is 'exit codes pass through: exit 1' "$rc" 1
like 'and are named' "$out" 'exit 9'
project a <<<"$(task 'kill -SEGV $$' "$sb")"
vx run a#build
like 'signals too' "$out" 'SIGSEGV'
project a <<<"$(task "setsid sleep 71.$$ & (setsid sleep 71.$$ >/dev/null 2>&1 &); echo done" "$sb")"
vx run a#build
is 'leftovers do not hold it up' "$rc" 0
ok 'and are gone' none_called "sleep 71.$$"
# the pause: two pipes carry no common order, and what arrives together may meet within a line
project a <<<"$(task "echo one; echo two >&2; sleep 0.2; seq 20000; echo end" "$sb")"
vx run a#build
is 'all output arrives' "$rc $(grep -cE '^[0-9]+$' <<<"$out") $(grep -c '^end$' <<<"$out")" '0 20000 1'
project a <<<"$(task "trap 'echo trapped; exit 0' TERM; sleep 72.$$ & wait" "$sb, \"timeout\": 300")"
vx run a#build
is 'a time limit inside' "$rc" 1
like 'timed out' "$out" 'timed out'
like 'the trap ran' "$out" 'trapped'
ok 'nothing is left' none_called "sleep 72.$$"

# a memory limit, where a cgroup can be had: its own status; bubblewrap and all below it live in the cgroup, vx does not
eat='python3 -c "b = bytearray(200 << 20); print(len(b))"'
project a <<<"$(task "$eat" "$sb, \"resources\": { \"memory\": \"64M\" }")"
vx run a#build
if grep -q 'resources.memory is no limit here' <<<"$err"; then
	skip 'a memory limit' 'no cgroup can be had here'
else
	is 'a sandboxed task that takes too much fails' "$rc" 1
	like 'and is said to have run out of memory' "$out" 'out of memory, limit 64'
	project a <<<"$(task "$eat; setsid sleep 73.$$ >/dev/null 2>&1 &" "$sb, \"resources\": { \"memory\": \"400M\" }")"
	vx run a#build
	is 'with enough it runs' "$rc" 0
	ok 'nothing is left' none_called "sleep 73.$$"
	project a <<<"$(task "trap '' TERM; setsid sh -c \"trap '' TERM; sleep 74.$$\" & wait; sleep 74.$$" "$sb, \"timeout\": 300, \"resources\": { \"memory\": \"400M\" }")"
	VX_KILL_GRACE_MS=200 vx run a#build
	like 'one that ignores SIGTERM times out' "$out" 'timed out'
	ok 'and nothing is left' none_called "sleep 74.$$"
	if [ "$(id -u)" = 0 ]; then
		project a <<<"$(task true '"resources": { "memory": "64M" }')"
		project b <<<"$(task true '"resources": { "memory": "64M" }')"
		git add -A
		export VX
		run unshare -m sh -c 'mount -t tmpfs none /sys/fs/cgroup && exec "$VX" run build --all'
		is 'where no cgroup can be had the task runs' "$rc" 0
		is 'and that is said, once' "$(grep -c 'resources.memory is no limit here' <<<"$err")" 1
	fi
	is 'no cgroup stays behind' "$(find /sys/fs/cgroup -maxdepth 4 -type d -name 'vx.*' 2>/dev/null | while read -r d; do kill -0 "${d##*vx.}" 2>/dev/null || echo "$d"; done)" ''
fi

done_testing
