# Sourced by the shell tests: TAP and a scratch directory.
#
#   . "$(dirname "$0")/../lib.sh"
#   is 'what it is about' "$got" "$wanted"
#   done_testing
#
# $W is a fresh directory that is removed at the end, $VX, $VX_INIT and $VX_BUILD are absolute. HOME, TMPDIR and the caches lie below $W, so a test neither reads nor
# writes the user's. Every test ends with done_testing (it prints the plan) or begins with skip_all REASON.
set -u
SRC=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
VX_BUILD=${VX_BUILD:-$SRC/build}
VX=$VX_BUILD/vx
VX_INIT=$VX_BUILD/vx-init
export VX VX_INIT VX_BUILD
VXT_N=0
VXT_FAILED=0
VXT_ENDED=

W=$(mktemp -d "${TMPDIR:-/tmp}/vx-test.XXXXXX")
W=$(cd "$W" && pwd -P)
mkdir "$W/.home" "$W/.tmp"
export HOME=$W/.home TMPDIR=$W/.tmp XDG_CACHE_HOME=$W/.home/.cache LC_ALL=C.UTF-8 NO_COLOR=1
unset "${!GIT_@}" XDG_CONFIG_HOME # of the user, or of a git hook that runs the tests
export GIT_CONFIG_NOSYSTEM=1 GIT_AUTHOR_NAME=t GIT_AUTHOR_EMAIL=t@example.org GIT_COMMITTER_NAME=t GIT_COMMITTER_EMAIL=t@example.org
unset CI GITHUB_ACTIONS FORCE_COLOR VX_CACHE_DIR TURBO_SCM_BASE MAKEFLAGS MAKELEVEL MFLAGS

vxt_exit() {
	local rc=$?
	[ $BASHPID = $$ ] || exit $rc # a subshell that bash itself gave up in: $W is not its to remove
	cd /
	chmod -R u+rwx "$W" 2>/dev/null
	rm -rf "$W"
	if [ -z "$VXT_ENDED" ]; then
		echo "# the script ended before done_testing (status $rc)"
		exit 1
	fi
}
trap vxt_exit EXIT

diag() { printf '%s\n' "$@" | sed 's/^/# /'; }

# pass NAME, fail NAME [DETAIL...]
pass() { VXT_N=$((VXT_N + 1)); echo "ok $VXT_N - $1"; }
fail() {
	VXT_N=$((VXT_N + 1)); VXT_FAILED=$((VXT_FAILED + 1))
	echo "not ok $VXT_N - $1"
	shift
	[ $# -eq 0 ] || diag "$@"
	return 0
}

# ok NAME COMMAND...: the command succeeds
ok() {
	local name=$1 out
	shift
	if out=$("$@" 2>&1); then pass "$name"; else fail "$name" "status $? of: $*" "$out"; fi
}
# nok NAME COMMAND...: the command fails
nok() {
	local name=$1 out
	shift
	if out=$("$@" 2>&1); then fail "$name" "unexpected success of: $*" "$out"; else pass "$name"; fi
}
is() { # NAME GOT WANTED
	if [ "$2" = "$3" ]; then pass "$1"; else fail "$1" "got:    $2" "wanted: $3"; fi
}
isnt() { # NAME GOT UNWANTED
	if [ "$2" != "$3" ]; then pass "$1"; else fail "$1" "got: $2"; fi
}
like() { # NAME TEXT EXTENDED-REGEX
	if grep -Eq -- "$3" <<<"$2"; then pass "$1"; else fail "$1" "text:     $2" "no match: $3"; fi
}
unlike() { # NAME TEXT EXTENDED-REGEX
	if grep -Eq -- "$3" <<<"$2"; then fail "$1" "text:    $2" "matches: $3"; else pass "$1"; fi
}
# run COMMAND...: sets $out (stdout), $err (stderr) and $rc
run() {
	"$@" >"$W/.out" 2>"$W/.err"
	rc=$?
	out=$(cat "$W/.out") err=$(cat "$W/.err")
	return 0
}
skip() { VXT_N=$((VXT_N + 1)); echo "ok $VXT_N - $1 # SKIP $2"; }  # NAME REASON
skip_all() { echo "1..0 # SKIP $1"; VXT_ENDED=1; exit 0; }         # REASON
done_testing() { echo "1..$VXT_N"; VXT_ENDED=1; [ "$VXT_FAILED" = 0 ]; exit; }

# new_repo DIR: an empty git repository, the current directory from now on
new_repo() {
	mkdir -p "$1" && cd "$1" && git init -q -b main . || { fail "git init $1"; done_testing; }
}
# put FILE [TEXT]: writes a file and its directories; the text is stdin without a second argument
put() {
	mkdir -p "$(dirname "$1")"
	if [ $# -gt 1 ]; then printf '%s\n' "$2" >"$1"; else cat >"$1"; fi
}
# ---- waiting ----
# A test waits for what it means (a file, a line, the end of a process), and bounds no time: what takes a second alone takes a minute on a loaded machine. The one
# limit is VXT_HANG_S, which only catches what will never come.
VXT_HANG_S=${VXT_HANG_S:-300}
# moment: a moment passes. No process is started for it: a shell that starts thousands while a job of its own is under way may see that job's pid given out again,
# and then says "wait_for: No record of process" or has lost the job's status.
[ -p "$W/.moment" ] || mkfifo "$W/.moment"
moment() { read -rt 0.02 <>"$W/.moment"; :; }
# wait_for COMMAND...: until it succeeds; fails after VXT_HANG_S
wait_for() {
	local ends=$((SECONDS + VXT_HANG_S))
	case $1 in *[!0-9]*) ;; *) echo "wait_for takes no seconds: $*" >&2; return 2 ;; esac
	until "$@" >/dev/null 2>&1; do
		[ "$SECONDS" -lt "$ends" ] || return 1
		moment
	done
}
# settled [DIR]: waits until nothing below DIR (.) but in .vx and .git/objects is of the last moment: what changes in the tick of a look cannot be told from what was
# looked at, so that only older files are remembered
settled() { wait_for older_than_a_tick "${1:-.}"; }
older_than_a_tick() {
	local us=$((${EPOCHREALTIME/[.,]/} - 50000))
	[ -z "$(find "$1" \( -name .vx -o -path '*/.git/objects' \) -prune -o -newerct "@${us%??????}.${us: -6}" -print -quit)" ]
}
# ended PID: has the process ended? (A zombie has.)
ended() {
	local stat=
	{ read -r stat <"/proc/$1/stat"; } 2>/dev/null || return 0
	case ${stat##*) } in [ZX]* | '') ;; *) return 1 ;; esac
}
# gone PID...: waits until all of them have ended
gone() {
	local pid
	for pid; do wait_for ended "$pid" || return 1; done
}
# finished PID: waits for a job of this shell and returns its status; one that hangs is killed and is 124
finished() {
	gone "$1" || { kill -KILL "$1"; wait "$1" 2>/dev/null; return 124; }
	wait "$1" 2>/dev/null
}
