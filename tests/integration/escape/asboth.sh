# Sourced: builds what the drivers need and runs one of them as root and as a normal user (an unused uid with its own HOME and TMPDIR).
. "$(dirname "${BASH_SOURCE[0]}")/../../lib.sh"

ESC=$SRC/tests/integration/escape
CC=${CC:-cc}
command -v "$CC" >/dev/null || skip_all 'no C compiler'
"$CC" -O1 -Wall -Wextra -D_GNU_SOURCE -o "$W/attempt" "$ESC"/*.c -lrt || { fail 'the attempts are built'; done_testing; exit; }
"$CC" @"$VX_BUILD/flags/cc" @"$VX_BUILD/flags/ld" -I"$SRC/include" -o "$W/boxrun" "$SRC/tests/integration/boxrun.c" "$VX_BUILD/libvx.a" @"$VX_BUILD/flags/libs" ||
	{ fail 'the driver is built'; done_testing; exit; }

# Not below /tmp, which every task has for itself.
BASE=$(mktemp -d /var/tmp/vx-escape.XXXXXX)
trap 'chmod -R u+rwx "$BASE"; rm -rf "$BASE"; vxt_exit' EXIT
cp "$W/boxrun" "$W/attempt" "$VX_INIT" "$BASE"
chmod 755 "$BASE" "$BASE/vx-init"

# run DRIVER LABEL COMMAND...: numbers the driver's lines
run() {
	local driver=$1 label=$2 line
	shift 2
	while IFS= read -r line; do
		case $line in
		"ok - "*) pass "${line#ok - }" ;;
		"not ok - "*) fail "${line#not ok - }" ;;
		*) echo "$line" ;;
		esac
	done < <("$@" python3 -B "$ESC/$driver" "$label" "$BASE/boxrun" "$BASE/attempt" "$BASE/vx-init" "$BASE/$label" 2>&1 ||
		echo "not ok - $label: $driver ended with $?")
}

# as_user DRIVER LABEL [VAR=VALUE...]
as_user() {
	local driver=$1 label=$2 uid=54321
	shift 2
	mkdir "$BASE/$label"
	if [ "$(id -u)" != 0 ]; then
		run "$driver" "$label" env "$@"
		return
	fi
	cp "$(command -v id)" "$BASE/$label.suid" && chmod 4755 "$BASE/$label.suid"
	while getent passwd "$uid" >/dev/null; do uid=$((uid + 1)); done
	mkdir -p "$BASE/tmp"
	chown "$uid:$uid" "$BASE/$label" "$BASE/tmp"
	run "$driver" "$label" setpriv --reuid "$uid" --regid "$uid" --clear-groups env HOME="$BASE/$label/home" TMPDIR="$BASE/tmp" "$@"
}

as_root() {
	[ "$(id -u)" = 0 ] || return 0
	mkdir "$BASE/$2"
	run "$1" "$2" env
}
