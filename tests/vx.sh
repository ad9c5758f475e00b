# Sourced by the integration tests after lib.sh: small workspaces, who ran, processes.
#
# A task says that it ran with `echo WHAT >> $W/ran` (an absolute path, outside the workspace); `ran` reads that back and forgets it.
[ -x "$VX" ] || skip_all "no $VX"

# workspace [DIR]: an empty workspace ($W/ws) of projects in p/*, a git repository, the current directory from now on
workspace() {
	new_repo "${1:-$W/ws}"
	put package.json '{ "name": "root", "private": true, "workspaces": ["p/*"] }'
	put .gitignore 'dist/'
	: >"$W/ran"
}
# project NAME [DEPENDENCY...]: p/NAME with its manifest; its vx.json is stdin
project() {
	local name=$1 dep deps=
	shift
	for dep in "$@"; do deps="$deps${deps:+, }\"$dep\": \"workspace:*\""; done
	put "p/$name/package.json" "{ \"name\": \"$name\", \"version\": \"1.0.0\", \"dependencies\": { $deps } }"
	put "p/$name/vx.json"
}
# json STRING: as a JSON string; of control characters newline and tab alone
json() {
	local s=${1//\\/\\\\}
	s=${s//\"/\\\"}
	s=${s//$'\n'/\\n}
	printf '"%s"' "${s//$'\t'/\\t}"
}
# task COMMAND [MORE]: a vx.json of one task, `build`; MORE is further JSON of exec
task() { printf '{ "tasks": { "build": { "exec": { "command": %s%s } } } }\n' "$(json "$1")" "${2:+, $2}"; }
# cached COMMAND [EXEC [TASK]]: the same with a cache: inputs src/**, outputs dist/**; EXEC and TASK are further JSON of exec and of the task
cached() {
	printf '{ "tasks": { "build": { "exec": { "command": %s%s }, "cache": { "inputs": { "files": ["src/**"] }, "outputs": { "files": ["dist/**"] } }%s } } }\n' \
		"$(json "$1")" "${2:+, $2}" "${3:+, $3}"
}

# vx ARGS...: like `run`; a run that hangs is killed
vx() { run timeout -k 1 "$VXT_HANG_S" "$VX" "$@"; }

# ran: what ran since the last call, sorted, on one line
ran() {
	sort "$W/ran" | paste -sd' '
	: >"$W/ran"
}

# one_line NAME [PATTERN]: the last `vx` was refused: exit status 1, one line on stderr that holds PATTERN
one_line() {
	is "$1: exit 1" "$rc" 1
	is "$1: one line" "$(wc -l <<<"$err") $err" "1 $err"
	like "$1: says it" "$err" "^vx( [a-z]+)?: .*${2:-.}"
}

# tree DIR: everything in it: type, mode, and of files and links mtime and digest or target
tree() {
	(cd "$1" && find . -mindepth 1 \( -type f -printf '%P f %m %T@ ' -exec sh -c 'sha256sum <"$1"' _ {} \; \) -o -type l -printf '%P l %T@ %l\n' -o -type d -printf '%P d %m\n' | sort)
}

# timeless: a tree without its times, which a restore does not give back
timeless() { LC_ALL=C sed -E 's/ [0-9]+\.[0-9]{10} / /'; }

# ---- processes ----
# below PID: every process below it, by parent
below() {
	ps -e -o pid=,ppid= | awk -v top="$1" '{ parent[$1] = $2 } END { for (p in parent) { for (q = parent[p]; q != top && q > 1; q = parent[q]); if (q == top) print p } }'
}
# forkserver PID: of a vx; worker PID: one worker of it
forkserver() {
	local c
	for c in $(ps -o pid= --ppid "$1"); do ! grep -qz -- '-forkserver' "/proc/$c/cmdline" 2>/dev/null || { echo "$c"; return; }; done
}
worker() { ps -o pid= --ppid "$(forkserver "$1")" | head -1 | tr -d ' '; }
# called TEXT: pids whose command line holds TEXT, this script's own apart
called() {
	python3 - "$1" <<'P'
import os, sys
text = os.fsencode(sys.argv[1])
for pid in filter(str.isdigit, os.listdir("/proc")):
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as f:
            line = f.read().replace(b"\0", b" ")
        with open(f"/proc/{pid}/stat", "rb") as f:
            state = f.read().rsplit(b")", 1)[1].split()[0]
    except OSError:
        continue
    if text in line and int(pid) != os.getpid() and state not in b"ZX":
        print(pid)
P
}
none_called() { [ -z "$(called "$1")" ]; }

# ---- the sandbox, users ----
# can_sandbox: may this machine make user namespaces at all?
can_sandbox() { unshare -Ur true 2>/dev/null && command -v bwrap >/dev/null; }
# as_user COMMAND...: as an unused uid with a HOME and TMPDIR of its own; $W/user is its directory and $W/user/bin/vx its vx. Only root can.
VXT_UID=61234
as_user() {
	chmod o+x "$W"
	mkdir -p "$W/user/tmp" "$W/user/bin"
	[ -x "$W/user/bin/vx" ] || cp "$VX" "$VX_INIT" "$W/user/bin/"
	chown -R $VXT_UID:$VXT_UID "$W/user"
	HOME=$W/user TMPDIR=$W/user/tmp XDG_CACHE_HOME=$W/user/.cache setpriv --reuid $VXT_UID --regid $VXT_UID --clear-groups "$@"
}
