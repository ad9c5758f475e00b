#include "vx/report.h"

#include "vx/assert.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

int vx_output_logs_parse(const char *word, enum vx_output_logs *ret)
{
	static const char *const words[] = {[VX_LOGS_FULL] = "full",
		[VX_LOGS_ERRORS] = "errors-only",
		[VX_LOGS_HASH] = "hash-only",
		[VX_LOGS_NONE] = "none",
		[VX_LOGS_NEW] = "new-only"};

	for (size_t i = VX_LOGS_FULL; i < VX_ARRAY_LEN(words); i++)
		if (!strcmp(word, words[i])) {
			*ret = (enum vx_output_logs)i;
			return 0;
		}
	return -EINVAL;
}

const char *vx_fmt_ns(uint64_t ns, char *ret, size_t cap)
{
	uint64_t ms = ns / 1000000, s = ns / 1000000000;

	if (ns < 1000000)
		snprintf(ret, cap, "%lluus", (unsigned long long)(ns / 1000));
	else if (ms < 1000)
		snprintf(ret, cap, "%llums", (unsigned long long)ms);
	else if (s < 60)
		snprintf(ret, cap, "%llu.%02llus", (unsigned long long)s,
			(unsigned long long)(ms % 1000 / 10));
	else if (s < 3600)
		snprintf(ret, cap, "%llum %02llus", (unsigned long long)(s / 60),
			(unsigned long long)(s % 60));
	else
		snprintf(ret, cap, "%lluh %02llum", (unsigned long long)(s / 3600),
			(unsigned long long)(s % 3600 / 60));
	return ret;
}

const char *vx_fmt_bytes(uint64_t bytes, char *ret, size_t cap)
{
	static const char *const units[] = {"B", "KB", "MB", "GB", "TB", "PB", "EB"};
	unsigned u = 0;
	uint64_t unit = 1;

	while (u + 1 < sizeof units / sizeof *units && bytes / unit >= 1024) {
		unit *= 1024;
		u++;
	}
	uint64_t whole = bytes / unit;
	if (u == 0 || whole >= 100)
		snprintf(ret, cap, "%llu %s", (unsigned long long)whole, units[u]);
	else
		snprintf(ret, cap, "%llu.%llu %s", (unsigned long long)whole,
			(unsigned long long)(bytes % unit * 10 / unit), units[u]);
	return ret;
}
