#!/bin/sh
# app.sh NAME [DEPENDENCY...]: in a program's directory, compiles and links dist/bin/NAME; dist/NAME is a link to it.
set -eu
. ../../tools/flags.sh
name=$1
shift
use_libraries "$@"

mkdir -p dist/bin
# shellcheck disable=SC2086 # flags are words
cc $flags $includes src/*.c $archives -o "dist/bin/$name"
ln -sf "bin/$name" "dist/$name"
echo "linked dist/bin/$name"
