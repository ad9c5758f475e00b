/* What a memory was made for. See question.h. */
#include "question.h"

#include "../worktree/files.h"

#include "vx/arena.h"
#include "vx/workspace.h"

#include <string.h>
#include <unistd.h>

uint64_t vx_question_sum(const char *p, size_t n)
{
	uint64_t h[4] = {1, 2, 3, 4}, w;
	size_t i = 0;
	for (; i + 32 <= n; i += 32)
		for (int k = 0; k < 4; k++) {
			memcpy(&w, p + i + 8 * k, 8);
			h[k] = (h[k] ^ w) * 0x9E3779B97F4A7C15ULL;
			h[k] ^= h[k] >> 29;
		}
	for (; i < n; i++)
		h[0] = (h[0] ^ (uint8_t)p[i]) * 0x9E3779B97F4A7C15ULL;
	return h[0] ^ (h[1] << 1) ^ (h[2] << 2) ^ (h[3] << 3) ^ n;
}

bool vx_question_build(const uint32_t *layout, size_t n, struct vx_digest *ret)
{
	struct stat st;
	if (stat("/proc/self/exe", &st) < 0)
		return false;
	struct vx_fstat f;
	struct vx_sha256 c;
	vx_fstat_of(&st, &f);
	vx_sha256_init(&c);
	vx_sha256_add(&c, &f, sizeof f);
	vx_sha256_add(&c, layout, n * sizeof *layout);
	vx_sha256_done(&c, ret);
	return true;
}

static bool decides(const char *variable)
{
	static const char *const prefixes[] = {
		"VX_", "TURBO_", "GIT_", "HOME=", "XDG_", (VX_SKEW_SWITCH "=")};
	if (vx_starts_with(variable, "VX_STATS="))
		return false;
	for (size_t i = 0; i < sizeof prefixes / sizeof *prefixes; i++)
		if (vx_starts_with(variable, prefixes[i]))
			return true;
	return false;
}

void vx_question_of(const char *root, struct vx_strs asked, struct vx_digest *ret)
{
	struct vx_arena a = {0};
	struct vx_strlist env = {0};
	for (char **e = environ; *e; e++)
		if (decides(*e))
			vx_strlist_add(&env, &a, *e);
	vx_strlist_sort_unique(&env);
	struct vx_sha256 c;
	uint32_t uid = geteuid();
	vx_sha256_init(&c);
	vx_sha256_add(&c, &uid, sizeof uid);
	vx_sha256_add(&c, root, strlen(root) + 1);
	for (uint32_t i = 0; i < asked.n; i++)
		vx_sha256_add(&c, asked.v[i], strlen(asked.v[i]) + 1);
	vx_sha256_add(&c, "", 1);
	for (uint32_t i = 0; i < env.n; i++)
		vx_sha256_add(&c, env.v[i], strlen(env.v[i]) + 1);
	vx_sha256_done(&c, ret);
	vx_arena_free(&a);
}
