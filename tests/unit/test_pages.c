/* The walk over an index's pages: what LMDB writes passes it, whatever was done before; each kind
 * of damage in a header does not. */
#include "vxtest.h"

#include "../../sched/cache/index.h"
#include "../../sched/cache/lmdb_check.h"

#include "vx/buf.h"
#include "vx/fd.h"

#include <errno.h>
#include <fcntl.h>

enum { KEYS = 400, ROUNDS = 250 };

struct round {
	unsigned seed;
};

/* Small rows, rows that fill pages of their own, rows that go: free lists of every length. */
static int change(struct vx_tx *t, void *arg)
{
	struct round *r = arg;
	static unsigned char value[40000];
	int n = rand_r(&r->seed) % 60, result = 0;

	for (int i = 0; i < n && result == 0; i++) {
		char key[400];
		enum vx_db db = VX_DB_ENTRIES + rand_r(&r->seed) % 4;
		int k = rand_r(&r->seed) % KEYS, kind = rand_r(&r->seed) % 8;
		int len = snprintf(key, sizeof key, "%0*d", 1 + k % 390, k);

		if (kind < 3)
			result = vx_tx_del(t, db, key, (size_t)len);
		else
			result = vx_tx_put(t, db, key, (size_t)len, value,
				(size_t)(rand_r(&r->seed) % (kind == 7 ? sizeof value : 600)));
	}
	return result;
}

static struct vx_index *open_index(const char *dir)
{
	struct vx_index *ix;
	bool aside;

	assert_int_equal(vx_index_open(dir, true, false, 0, &ix, &aside), 0);
	assert_false(aside);
	return ix;
}

/* Each opening walks anew; some have a second transaction that reuses what the first one freed. */
static void what_is_written_passes(void **state)
{
	char *dir = vxt_tmpdir();
	struct round r = {.seed = 11};

	(void)state;
	assert_int_equal(mkdir(vxt_path(dir, "tmp"), 0700), 0);
	for (int i = 0; i < ROUNDS; i++) {
		struct vx_index *ix = open_index(dir);

		for (int more = i % 3; more >= 0; more--)
			assert_int_equal(vx_index_write(ix, change, &r), 0);
		vx_index_close(ix);
	}
	vxt_rm(dir);
}

static struct vx_buf file_of(const char *dir)
{
	struct vx_buf b = VX_BUF(64 << 20);

	assert_int_equal(vx_read_file(AT_FDCWD, vxt_path(dir, "index/data.mdb"), &b), 0);
	return b;
}

static uint64_t word(const struct vx_buf *b, size_t at)
{
	uint64_t v;

	memcpy(&v, b->data + at, sizeof v);
	return v;
}

static uint64_t newest(const struct vx_buf *b)
{
	uint64_t a = word(b, 144), c = word(b, 4096 + 144);

	return a > c ? a : c;
}

static int check(const struct vx_buf *b)
{
	return vx_pages_check((const unsigned char *)b->data, b->len, 4096, newest(b) + 1);
}

/* Every header field of every page in use set to what it is not. Pages that are free may hold
 * anything. */
static void headers_that_lie(void **state)
{
	char *dir = vxt_tmpdir();
	struct round r = {.seed = 5};
	struct vx_index *ix;
	struct vx_buf b;
	int refused = 0, pages = 0;

	(void)state;
	assert_int_equal(mkdir(vxt_path(dir, "tmp"), 0700), 0);
	ix = open_index(dir);
	for (int i = 0; i < 40; i++)
		assert_int_equal(vx_index_write(ix, change, &r), 0);
	vx_index_close(ix);
	b = file_of(dir);
	assert_int_equal(check(&b), 0);
	for (size_t page = 2; page < b.len / 4096; page++) {
		static const struct {
			size_t at;
			unsigned char flip;
		} fields[] = {{0, 1}, {10, 3}, {13, 0x80}, {15, 0x80}, {17, 0x80}};
		int bad = 0;

		for (size_t f = 0; f < sizeof fields / sizeof fields[0]; f++) {
			b.data[page * 4096 + fields[f].at] ^= (char)fields[f].flip;
			bad += check(&b) == -EBADMSG;
			b.data[page * 4096 + fields[f].at] ^= (char)fields[f].flip;
		}
		pages += bad > 0;
		refused += bad;
	}
	assert_true(pages > 20);
	assert_true(refused >= 3 * pages);
	assert_int_equal(check(&b), 0);
	/* the newer meta page: its transaction, the last page, the main tree's flags, depth and
	 * root, the size of a page */
	size_t meta = word(&b, 144) > word(&b, 4096 + 144) ? 0 : 4096;
	uint64_t txn = newest(&b) + 1;
	static const size_t at[] = {144, 136, 88 + 4, 88 + 6, 88 + 40, 40};
	for (size_t i = 0; i < sizeof at / sizeof at[0]; i++) {
		char was[8];

		memcpy(was, b.data + meta + at[i], 8);
		memset(b.data + meta + at[i], at[i] == 136 ? 0 : 3,
			at[i] == 88 + 4 || at[i] == 88 + 6 ? 1 : 8);
		assert_int_equal(
			vx_pages_check((const unsigned char *)b.data, b.len, 4096, txn), -EBADMSG);
		memcpy(b.data + meta + at[i], was, 8);
	}
	assert_int_equal(vx_pages_check((const unsigned char *)b.data, 8192, 4096, txn), -EBADMSG);
	vx_buf_free(&b);
	vxt_rm(dir);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_written_passes),
		cmocka_unit_test(headers_that_lie),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
