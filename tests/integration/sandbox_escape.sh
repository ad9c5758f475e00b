#!/bin/bash
# Attempts at getting out of the sandbox, and isolation between tasks, as root and as a normal user (an unused uid with its own HOME and TMPDIR).
. "$(dirname "$0")/../lib.sh"

ESC=$SRC/tests/integration/escape
CC=${CC:-cc}
"$CC" -O1 -Wall -Wextra -D_GNU_SOURCE -o "$W/attempt" "$ESC"/*.c -lrt || skip_all 'no C compiler'
"$CC" @"$VX_BUILD/flags/cc" @"$VX_BUILD/flags/ld" -I"$SRC/include" -o "$W/boxrun" "$SRC/tests/integration/boxrun.c" "$VX_BUILD/libvx.a" @"$VX_BUILD/flags/libs" ||
	{ fail 'the driver is built'; done_testing; exit; }

# Not below /tmp, which every task has for itself.
BASE=$(mktemp -d /var/tmp/vx-escape.XXXXXX)
trap 'chmod -R u+rwx "$BASE"; rm -rf "$BASE"; vxt_exit' EXIT
cp "$W/boxrun" "$W/attempt" "$VX_INIT" "$BASE"
chmod 755 "$BASE" "$BASE/vx-init"

# run AS LABEL COMMAND...: numbers the lines of run.py
run() {
	local label=$1 line
	shift
	while IFS= read -r line; do
		case $line in
		"ok - "*) pass "${line#ok - }" ;;
		"not ok - "*) fail "${line#not ok - }" ;;
		*) echo "$line" ;;
		esac
	done < <("$@" python3 "$ESC/run.py" "$label" "$BASE/boxrun" "$BASE/attempt" "$BASE/vx-init" "$BASE/$label" 2>&1 || echo "not ok - $label: run.py ended with $?")
}

mkdir "$BASE/user" "$BASE/root"
if [ "$(id -u)" = 0 ]; then
	cp "$(command -v id)" "$BASE/user.suid" && chmod 4755 "$BASE/user.suid"
	uid=54321
	while getent passwd "$uid" >/dev/null; do uid=$((uid + 1)); done
	chown "$uid:$uid" "$BASE/user"
	mkdir "$BASE/tmp" && chown "$uid:$uid" "$BASE/tmp"
	run root env
	run user setpriv --reuid "$uid" --regid "$uid" --clear-groups env HOME="$BASE/user/home" TMPDIR="$BASE/tmp"
else
	run user env
fi
done_testing
