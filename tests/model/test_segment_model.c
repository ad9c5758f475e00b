/* Two processes, as it were, save, restore, prune and close on one store at random, while somebody
 * damages it; a model says which keys must be restored, bit by bit, which may be missing, and which
 * must be. VX_MODEL_STEPS and VX_MODEL_SEED are for long runs. */
#include "segtest.h"

#include "vx/assert.h"

#include <pthread.h>
#include <sys/file.h>

#define KEYS 40
#define PROCESSES 2
#define MOST_BYTES 200000

/* the last: what it needs was damaged. Somebody may have saved the same since */
enum state { ABSENT, SURE, UNSURE };

static struct {
	struct lt t[PROCESSES]; /* one root */
	struct vx_outputs o;
	enum state state[KEYS];
	uint32_t content[KEYS];
	uint32_t n_contents;
	unsigned seed;
	uint64_t hits, misses, damaged;
} m;

static uint32_t below(uint32_t n)
{
	return (uint32_t)(((uint64_t)(uint32_t)rand_r(&m.seed) * n) >> 31);
}

static char *name_of(uint32_t k)
{
	static char ring[4][16];
	static unsigned next;
	char *p = ring[next++ % 4];
	snprintf(p, 16, "key%u", k);
	return p;
}

/* The bytes that a number stands for: most are small, some compress well. */
static size_t bytes_of(uint32_t content, uint8_t *ret)
{
	unsigned s = content * 2654435761U + 1;
	uint32_t kind = (uint32_t)rand_r(&s) % 10;
	size_t n = (size_t)rand_r(&s) % (kind == 0         ? MOST_BYTES
						: kind < 4 ? 70000
						: kind < 9 ? 6000
							   : 2);
	for (size_t i = 0; i < n; i++)
		ret[i] = kind == 3 ? (uint8_t)(i / 1000) : (uint8_t)(rand_r(&s) >> 7);
	return n;
}

static void write_outputs(uint32_t content)
{
	static uint8_t b[MOST_BYTES];
	size_t n = bytes_of(content, b);
	const char *path = vxt_path(m.t[0].root, "p/dist/f");
	assert_int_equal(vx_mkdir_p(AT_FDCWD, vxt_path(m.t[0].root, "p/dist"), 0777), 0);
	unlink(path);
	int fd = vx_open(AT_FDCWD, path, O_WRONLY | O_CREAT, 0644);
	assert_int_equal(vx_write_full(fd, b, n), 0);
	/* the same bytes at the same time are the same artifact */
	assert_int_equal(
		futimens(fd, (struct timespec[2]){{.tv_sec = 1000000}, {.tv_sec = 1000000}}), 0);
	vx_close(fd);
}

static void same_outputs(uint32_t k)
{
	static uint8_t b[MOST_BYTES];
	size_t n = bytes_of(m.content[k], b);
	struct vx_buf f = VX_BUF(1 << 20);
	assert_int_equal(vx_read_file(AT_FDCWD, vxt_path(m.t[0].root, "p/dist/f"), &f), 0);
	if (f.len != n || (n && memcmp(f.data, b, n) != 0))
		fail_msg("a wrong hit of %s", name_of(k));
	vx_buf_free(&f);
}

static bool find(struct lt *t, uint32_t k, struct vx_entry *ret)
{
	struct vx_digest d = lt_key(name_of(k));
	bool found = false;
	assert_true(vx_store_probe(t->store, &d, 1, &found, ret) >= 0);
	return found;
}

static void save_key(struct lt *t, uint32_t k, bool may_fail)
{
	struct vx_lane_event e;
	uint32_t c = below(4) ? m.n_contents++ : m.content[below(KEYS)];
	write_outputs(c);
	bool ok = lt_save(t, name_of(k), &m.o, &e);
	if (!ok && !may_fail)
		fail_msg("%s was not saved: %s", name_of(k), e.text);
	if (!ok)
		return;
	m.content[k] = c;
	m.state[k] = SURE;
}

static void restore_key(struct lt *t, uint32_t k)
{
	struct vx_lane_event e = {0};
	if (below(2))
		vx_rm_rf(AT_FDCWD, vxt_path(t->root, "p"));
	else
		write_outputs(m.content[below(KEYS)]);
	bool found = lt_restore(t, name_of(k), &m.o, &e), hit = found && e.ok;
	if (m.state[k] == SURE && !hit)
		fail_msg("%s is lost: %s", name_of(k), found ? e.text : "not found");
	if (m.state[k] == ABSENT && found)
		fail_msg("%s is back", name_of(k));
	if (hit)
		same_outputs(k);
	m.hits += hit;
	m.misses += !hit;
}

/* ---- prunes ---- */

static void age_some(struct lt *t, bool *ret_aged)
{
	uint32_t n = below(8);
	memset(ret_aged, 0, KEYS);
	while (n--) {
		uint32_t k = below(KEYS);
		struct vx_entry e;
		if (!find(t, k, &e))
			continue;
		lt_used_at(t, name_of(k), 1000000000);
		ret_aged[k] = true;
	}
}

static void prune_old(struct lt *t)
{
	struct vx_prune_opts o = {.older_than_ns = 86400 * 1000000000ULL};
	struct vx_json *j = NULL;
	struct vx_err err = {0};
	assert_int_equal(vx_store_prune(t->store, &o, &j, &err), 0);
	vx_json_free(j);
}

static void *prune_beside(void *t)
{
	prune_old(t);
	return NULL;
}

static void do_prune(struct lt *t)
{
	bool aged[KEYS];
	age_some(t, aged);
	prune_old(t);
	for (uint32_t k = 0; k < KEYS; k++)
		if (aged[k])
			m.state[k] = ABSENT;
}

/* One process prunes while another saves what is to stay; a save that wanted to use again what is
 * being pruned may fail. */
static void do_prune_beside(struct lt *t, struct lt *other)
{
	bool aged[KEYS];
	pthread_t thread;
	age_some(t, aged);
	assert_int_equal(pthread_create(&thread, NULL, prune_beside, t), 0);
	for (int i = 0; i < 4; i++) {
		uint32_t k = below(KEYS);
		if (!aged[k])
			save_key(other, k, true);
	}
	pthread_join(thread, NULL);
	for (uint32_t k = 0; k < KEYS; k++)
		if (aged[k])
			m.state[k] = ABSENT;
}

static void do_prune_size(struct lt *t)
{
	struct vx_prune_opts o = {.max_bytes = 1 + below(3000000)};
	struct vx_json *j = NULL;
	struct vx_err err = {0};
	struct vx_entry e;
	assert_int_equal(vx_store_prune(t->store, &o, &j, &err), 0);
	assert_true(num(j, "leftBytes") <= (int64_t)o.max_bytes);
	vx_json_free(j);
	for (uint32_t k = 0; k < KEYS; k++)
		if (m.state[k] == SURE && !find(t, k, &e))
			m.state[k] = ABSENT;
}

/* ---- damage ---- */

/* What may be missing once these bytes of a segment (of the file of an artifact: segment 0) are
 * others. */
static void doubt(struct lt *t, uint64_t segment, const struct vx_digest *artifact, uint64_t from,
	uint64_t to)
{
	struct vx_entry e;
	for (uint32_t k = 0; k < KEYS; k++) {
		if (m.state[k] != SURE || !find(t, k, &e) || !e.artifact_bytes ||
			e.segment != segment)
			continue;
		if (segment ? e.offset < to && from < e.offset + e.artifact_bytes
			    : vx_digest_equal(&e.artifact, artifact))
			m.state[k] = UNSURE;
	}
}

static void do_damage(struct lt *t)
{
	struct vx_entry e;
	uint32_t k = below(KEYS), how = below(4);
	char path[VX_ARTIFACT_PATH], all[PATH_MAX];
	if (!find(t, k, &e) || !e.artifact_bytes)
		return;
	if (e.segment)
		vx_segment_path(e.segment, path);
	else
		vx_artifact_path(&e.artifact, VX_SUFFIX_TAR, path);
	snprintf(all, sizeof all, "%s/.vx/cache/v1/%s%s", t->root, e.segment ? "" : "a/", path);
	m.damaged++;
	if (how == 0) {
		doubt(t, e.segment, &e.artifact, 0, UINT64_MAX);
		assert_int_equal(unlink(all), 0);
		return;
	}
	int fd = vx_open(AT_FDCWD, all, O_RDWR, 0);
	assert_true(fd >= 0);
	if (how == 1) {
		off_t to = (off_t)(e.offset + below((uint32_t)e.artifact_bytes));
		doubt(t, e.segment, &e.artifact, (uint64_t)to, UINT64_MAX);
		assert_int_equal(ftruncate(fd, to), 0);
	} else {
		off_t at = (off_t)(e.offset + below((uint32_t)e.artifact_bytes));
		uint8_t b;
		doubt(t, e.segment, &e.artifact, (uint64_t)at, (uint64_t)at + 1);
		assert_int_equal(pread(fd, &b, 1, at), 1);
		b ^= (uint8_t)(1 << below(8));
		assert_int_equal(pwrite(fd, &b, 1, at), 1);
	}
	vx_close(fd);
}

/* What a process that died has left behind the last place; where somebody appends, nobody else
 * writes. */
static void do_dead_save(struct lt *t)
{
	struct vx_entry e;
	char path[VX_SEGMENT_PATH];
	if (!find(t, below(KEYS), &e) || !e.segment)
		return;
	vx_segment_path(e.segment, path);
	int fd = vx_open(t->store->dir_fd, path, O_RDWR | O_APPEND, 0);
	assert_true(fd >= 0);
	if (flock(fd, LOCK_EX | LOCK_NB) == 0)
		assert_int_equal(write(fd, "litter of a process that died", 29), 29);
	vx_close(fd);
}

static void do_drop(struct lt *t)
{
	struct vx_entry e;
	if (find(t, below(KEYS), &e) && e.segment)
		assert_int_equal(vx_store_drop(t->store, &e, NULL), 0);
}

static void do_verify(struct lt *t)
{
	struct vx_json *j;
	struct vx_err err = {0};
	uint32_t problems;
	bool doubts = false;
	assert_int_equal(vx_store_verify(t->store, &j, &problems, &err), 0);
	vx_json_free(j);
	for (uint32_t k = 0; k < KEYS; k++)
		doubts |= m.state[k] == UNSURE;
	assert_true(doubts || !problems);
}

static void step(void)
{
	uint32_t what = below(100);
	struct lt *t = &m.t[below(PROCESSES)], *other = t == m.t ? m.t + 1 : m.t;
	if (what < 40)
		save_key(t, below(KEYS), false);
	else if (what < 70)
		restore_key(t, below(KEYS));
	else if (what < 76)
		do_prune(t);
	else if (what < 80)
		do_prune_beside(t, other);
	else if (what < 81)
		do_prune_size(t);
	else if (what < 84)
		do_damage(t);
	else if (what < 87)
		do_dead_save(t);
	else if (what < 90)
		do_drop(t);
	else if (what < 92)
		do_verify(t);
	else
		lt_reopen(t);
}

static void test_model(void **state)
{
	(void)state;
	const char *steps = getenv("VX_MODEL_STEPS"), *seed = getenv("VX_MODEL_SEED");
	uint32_t n = steps ? (uint32_t)strtoul(steps, NULL, 10) : 300;
	m.seed = seed ? (unsigned)strtoul(seed, NULL, 10) : 7;
	print_message("seed %u\n", m.seed);
	lt_begin(&m.t[0]);
	m.t[1] = (struct lt){.root = m.t[0].root};
	lt_open(&m.t[1]);
	m.o = lt_outputs(&m.t[0], "p", "dist/**");
	for (uint32_t i = 0; i < n; i++)
		step();
	for (uint32_t k = 0; k < KEYS; k++)
		restore_key(&m.t[0], k);
	lt_close(&m.t[1]);
	vx_arena_free(&m.t[1].a);
	do_prune_size(&m.t[0]);
	print_message("%llu hits, %llu misses, %llu times damaged\n", (unsigned long long)m.hits,
		(unsigned long long)m.misses, (unsigned long long)m.damaged);
	lt_end(&m.t[0]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_model)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
