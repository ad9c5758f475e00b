#!/bin/sh
# Every test/NAME.calc must print test/NAME.expected.
set -eu
failed=0
for program in test/*.calc; do
	if dist/calc -v < "$program" | cmp - "${program%.calc}.expected"; then
		echo "ok $program"
	else
		echo "FAILED $program"
		failed=1
	fi
done
echo 'print 1 +' | dist/calc 2>&1 | grep -q 'line 1: wanted a value' || { echo "FAILED: no error for a broken program"; failed=1; }
exit $failed
