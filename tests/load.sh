#!/usr/bin/env bash
# Runs a command beside busy processes, as on a machine that others use too:
#
#   tests/load.sh N COMMAND...
#
# N loops take all of the CPU that they get until COMMAND ends; its exit status is this script's. The loops die with this script, however it ends.
set -u
case ${1-} in '' | *[!0-9]*) echo 'usage: tests/load.sh N COMMAND...' >&2; exit 2 ;; esac
n=$1
shift
[ $# -gt 0 ] || { echo 'tests/load.sh: no command given' >&2; exit 2; }

busy=()
stop() { [ ${#busy[@]} = 0 ] || kill -KILL "${busy[@]}" 2>/dev/null; }
trap stop EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
trap 'exit 129' HUP
for ((i = 0; i < n; i++)); do
	setpriv --pdeathsig KILL bash -c '[ $PPID = $1 ] || exit; while :; do :; done' busy $$ </dev/null >/dev/null 2>&1 &
	busy+=($!)
	disown $!
done
"$@"
