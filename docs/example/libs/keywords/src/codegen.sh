#!/bin/sh
# codegen.sh < keywords.txt: the header that lists the keywords.
set -eu
echo "/* Made by codegen.sh from keywords.txt. KEYWORD(NAME, \"name\", values it takes) */"
awk '/^[a-z]/ { printf "KEYWORD(%s, \"%s\", %d)\n", toupper($1), $1, $2 }'
