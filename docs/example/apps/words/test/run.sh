#!/bin/sh
# The counts of a small text, whole and cut.
set -eu
want='rose  4
a     3
is    3'
[ "$(dist/words < test/rose.txt)" = "$want" ] || { echo "FAILED: rose.txt"; dist/words < test/rose.txt; exit 1; }
[ "$(dist/words 1 < test/rose.txt)" = "rose  4" ] || { echo "FAILED: the first word"; exit 1; }
[ -z "$(dist/words < /dev/null)" ] || { echo "FAILED: an empty text"; exit 1; }
echo "ok"
