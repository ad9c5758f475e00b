#!/bin/sh
# lib.sh NAME [DEPENDENCY...]: in a library's directory, builds what others use of it: dist/libNAME.a and dist/include/.
set -eu
. ../../tools/flags.sh
name=$1
shift
use_libraries "$@"

mkdir -p dist/include dist/obj
cp include/*.h dist/include/
[ ! -d gen ] || cp gen/*.h dist/include/
for source in src/*.c; do
	object=dist/obj/$(basename "$source" .c).o
	# shellcheck disable=SC2086 # flags are words
	cc $flags -Idist/include $includes -c "$source" -o "$object"
	echo "compiled $source"
done
ar rcs "dist/lib$name.a" dist/obj/*.o
echo "packed dist/lib$name.a"
