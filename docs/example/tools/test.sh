#!/bin/sh
# test.sh NAME [DEPENDENCY...]: in the directory of library NAME, compiles test/*.c against its dist/ and runs it.
set -eu
. ../../tools/flags.sh
use_libraries "$@"

program=$(mktemp)
trap 'rm -f "$program"' EXIT
# shellcheck disable=SC2086 # flags are words
cc $flags -I../../tools $includes test/*.c $archives -o "$program"
"$program"
