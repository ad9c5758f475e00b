#!/usr/bin/env bash
# Each function of targets.h under libFuzzer with AddressSanitizer for $VX_FUZZ_SECONDS (60), from the seeds in corpus/. What it finds is printed as base64 and kept
# in $VX_FUZZ_KEEP where that is a directory: put it into corpus/NAME, so that make check replays it.
. "$(dirname "$0")/../lib.sh"
seconds=${VX_FUZZ_SECONDS:-60}
command -v clang >/dev/null || skip_all 'no clang (Debian: clang)'
echo 'int LLVMFuzzerTestOneInput(const char *d, unsigned long n); int LLVMFuzzerTestOneInput(const char *d, unsigned long n) { return !d && n; }' >"$W/try.c"
clang -fsanitize=fuzzer,address -o "$W/try" "$W/try.c" >/dev/null 2>&1 || skip_all 'clang has no libFuzzer here (Debian: libclang-rt-dev, or the clang package)'
b=$W/build
if ! make -s -C "$SRC" B="$b" CC=clang SAN=fuzzer-no-link,address OPT='-O1 -g' CI= "$b/libvx.a" "$b/flags/libs" >"$W/make.log" 2>&1; then
	fail 'the library is built by clang' "$(tail -20 "$W/make.log")"
	done_testing
fi
export ASAN_OPTIONS=detect_leaks=1:abort_on_error=1
for name in index ignore globs semver jsonc yaml; do
	if ! (cd "$SRC" && clang @"$b/flags/cc" -Wno-unused-function -Itests/unit -DFUZZ_TARGET=fuzz_$name -fsanitize=fuzzer,address -o "$W/$name" tests/fuzz/libfuzzer.c "$b/libvx.a" \
		-lcmocka @"$b/flags/libs") >"$W/log" 2>&1; then
		fail "$name: built" "$(tail -20 "$W/log")"
		continue
	fi
	mkdir -p "$W/corpus.$name" "$W/found.$name"
	if (cd "$W" && "$W/$name" -max_total_time="$seconds" -max_len=16384 -timeout=10 -rss_limit_mb=1024 -print_final_stats=1 -artifact_prefix="$W/found.$name/" "$W/corpus.$name" \
		"$SRC/tests/fuzz/corpus/$name") >"$W/log" 2>&1; then
		pass "$name: $(sed -n 's/^stat::number_of_executed_units: *//p' "$W/log") inputs in $seconds s"
	else
		fail "$name" "$(grep -aE 'ERROR|does not hold|assert|SUMMARY|#[0-9] ' "$W/log" | head -20)" "$(tail -3 "$W/log")"
		for f in "$W/found.$name"/*; do
			[ -f "$f" ] || continue
			diag "$(basename "$f"): $(base64 -w0 "$f" | head -c 4000)"
			[ ! -d "${VX_FUZZ_KEEP:-}" ] || cp "$f" "$VX_FUZZ_KEEP/$name-$(basename "$f")"
		done
	fi
done
done_testing
