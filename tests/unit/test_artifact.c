/* tar and zstd: what we write others read, what others write we read, and what is damaged is
 * refused. */
#include "vxtest.h"

#include "../../sched/cache/tar.h"
#include "../../sched/cache/zstd.h"

#include "vx/arena.h"
#include "vx/buf.h"
#include "vx/hash.h"

#include <errno.h>
#include <malloc.h>
#include <sys/random.h>

struct sum {
	struct vx_buf text;
	size_t data;
	int fail_at;
};

static int on_member(void *arg, const struct vx_tar_member *m)
{
	struct sum *s = arg;
	vx_buf_printf(&s->text, "%s %c %o %llu %lld %s\n", m->path, m->type, m->mode,
		(unsigned long long)m->size, (long long)m->mtime_ns, m->target ? m->target : "");
	return s->fail_at && --s->fail_at == 0 ? -EIO : 0;
}

static int on_data(void *arg, const void *p, size_t n)
{
	(void)p;
	((struct sum *)arg)->data += n;
	return 0;
}

static int on_end(void *arg)
{
	vx_buf_adds(&((struct sum *)arg)->text, "end\n");
	return 0;
}

static const struct vx_tar_events events = {on_member, on_data, on_end};

static int read_all(const void *p, size_t n, size_t piece, struct sum *s)
{
	*s = (struct sum){.text = VX_BUF(1 << 20), .fail_at = s->fail_at};
	struct vx_tar_reader *r = vx_tar_reader_new(&events, s);
	int k = 0;
	for (size_t at = 0; at < n && k == 0; at += piece)
		k = vx_tar_feed(r, (const char *)p + at, n - at < piece ? n - at : piece);
	if (k == 0 && !vx_tar_complete(r))
		k = -ENODATA;
	vx_tar_reader_free(r);
	return k;
}

static void add_file(
	struct vx_buf *b, const char *path, const char *text, uint32_t mode, int64_t mtime_ns)
{
	struct vx_tar_member m = {.path = path,
		.type = VX_TAR_FILE,
		.mode = mode,
		.size = strlen(text),
		.mtime_ns = mtime_ns};
	vx_tar_header(&m, b);
	vx_buf_adds(b, text);
	memset(vx_buf_reserve(b, 512), 0, 512);
	vx_buf_commit(b, vx_tar_padding(m.size));
}

static void finish(struct vx_buf *b)
{
	memset(vx_buf_reserve(b, VX_TAR_END_BYTES), 0, VX_TAR_END_BYTES);
	vx_buf_commit(b, VX_TAR_END_BYTES);
}

static char *long_name(size_t n)
{
	char *p = vx_xmalloc(n + 1);
	for (size_t i = 0; i < n; i++)
		p[i] = i % 50 == 49 ? '/' : 'n';
	p[n] = '\0';
	return p;
}

static void make_sample(struct vx_buf *b)
{
	char *name = long_name(230), *target = long_name(150);
	struct vx_tar_member dir = {.path = "d", .type = VX_TAR_DIR, .mode = 0700},
			     link = {.path = "d/l",
				     .target = "../x",
				     .type = VX_TAR_LINK,
				     .mode = 0777,
				     .mtime_ns = 5},
			     far = {.path = "d/m",
				     .target = target,
				     .type = VX_TAR_LINK,
				     .mode = 0777,
				     .mtime_ns = 1000000000};
	vx_tar_header(&dir, b);
	add_file(b, "d/a", "hello", 0644, 1234567890123456789LL);
	add_file(b, "d/b \n\xff\xfe=1", "", 04755, -1500000000LL);
	vx_tar_header(&link, b);
	vx_tar_header(&far, b);
	add_file(b, name, "long", 0600, 86400LL * 1000000000);
	finish(b);
	free(name);
	free(target);
}

static void test_round_trip(void **state)
{
	(void)state;
	struct vx_buf b = VX_BUF(1 << 20), again = VX_BUF(1 << 20);
	struct sum s = {0}, t = {0};
	make_sample(&b);
	make_sample(&again);
	assert_int_equal(b.len, again.len);
	assert_memory_equal(b.data, again.data, b.len); /* deterministic */
	assert_int_equal(read_all(b.data, b.len, b.len, &s), 0);
	assert_non_null(strstr(vx_buf_str(&s.text), "d 5 700 0 0 \n"));
	assert_non_null(strstr(vx_buf_str(&s.text), "d/a 0 644 5 1234567890123456789 \nend\n"));
	assert_non_null(
		strstr(vx_buf_str(&s.text), "d/b \n\xff\xfe=1 0 4755 0 -1500000000 \nend\n"));
	assert_non_null(strstr(vx_buf_str(&s.text), "d/l 2 777 0 5 ../x\n"));
	assert_int_equal(s.data, 9);
	for (size_t piece = 1; piece < 1100; piece += 7) {
		assert_int_equal(read_all(b.data, b.len, piece, &t), 0);
		assert_string_equal(vx_buf_str(&s.text), vx_buf_str(&t.text));
		vx_buf_free(&t.text);
	}
	t.fail_at = 3;
	assert_int_equal(read_all(b.data, b.len, 512, &t), -EIO);
	vx_buf_free(&t.text);
	vx_buf_free(&s.text);
	vx_buf_free(&b);
	vx_buf_free(&again);
}

static void put(const char *path, const struct vx_buf *b)
{
	assert_int_equal(vx_write_file_atomic(AT_FDCWD, path, b->data, b->len, 0644), 0);
}

/* GNU tar and libarchive, where it is installed, list and unpack it. */
static void test_others_read(void **state)
{
	(void)state;
	char *dir = vxt_tmpdir(), cmd[PATH_MAX * 2];
	const char *out;
	struct vx_buf b = VX_BUF(1 << 20);
	make_sample(&b);
	put(vxt_path(dir, "t.tar"), &b);
	snprintf(cmd, sizeof cmd,
		"cd '%s' && mkdir x && TZ=UTC tar --full-time --numeric-owner -tvf t.tar >list && tar -xpf t.tar -C x 2>&1 && grep -q '2009-02-13 23:31:30' list && "
		"grep -q '0/0' list && cat x/d/a && stat -c '%%a %%.9Y' x/d/a x/d && readlink x/d/l",
		dir);
	assert_int_equal(vxt_sh(cmd, &out), 0);
	assert_non_null(strstr(out, "hello644 1234567890.123456789"));
	assert_non_null(strstr(out, "../x"));
	snprintf(cmd, sizeof cmd,
		"cd '%s' && command -v bsdtar >/dev/null || exit 0; cd '%s' && mkdir y && bsdtar -xpf t.tar -C y && cmp x/d/a y/d/a && test \"$(cd x && find . | sort)\" = \"$(cd y && find . | sort)\"",
		dir, dir);
	assert_int_equal(vxt_sh(cmd, &out), 0);
	vx_buf_free(&b);
	vxt_rm(dir);
}

static void test_reads_others(void **state)
{
	(void)state;
	char *dir = vxt_tmpdir(), cmd[PATH_MAX * 2], *name = long_name(220);
	const char *out;
	struct vx_buf b = VX_BUF(1 << 20);
	struct sum s = {0};
	snprintf(cmd, sizeof cmd,
		"cd '%s' && mkdir -p d/e \"$(dirname %s)\" && echo one >d/e/f && touch -d '2020-01-02 03:04:05.123456789Z' d/e/f && ln -s e/f d/l && : >%s && "
		"tar --format=pax -cf t.tar d nnn*",
		dir, name, name);
	assert_int_equal(vxt_sh(cmd, &out), 0);
	assert_int_equal(vx_read_file(AT_FDCWD, vxt_path(dir, "t.tar"), &b), 0);
	assert_int_equal(read_all(b.data, b.len, 1000, &s), 0);
	assert_non_null(strstr(vx_buf_str(&s.text), "d/e/f 0 644 4 1577934245123456789"));
	assert_non_null(strstr(vx_buf_str(&s.text), name));
	assert_non_null(strstr(vx_buf_str(&s.text), "d/l 2 777"));
	vx_buf_free(&s.text);
	vx_buf_free(&b);
	free(name);
	vxt_rm(dir);
}

static void test_refuses(void **state)
{
	(void)state;
	static const char *const bad[] = {"/abs", "../up", "a/../b", "a//b", "./a", "a/.", "",
		".git/x", "a/.git", ".vx/lock", "a/.vx/x", "a/"};
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		struct vx_buf b = VX_BUF(1 << 20);
		struct sum s = {0};
		assert_false(vx_tar_path_ok(bad[i]));
		add_file(&b, bad[i], "x", 0644, 0);
		finish(&b);
		assert_int_equal(read_all(b.data, b.len, 512, &s), -EBADMSG);
		vx_buf_free(&s.text);
		vx_buf_free(&b);
	}
	/* other kinds, a checksum that does not fit, cut short */
	struct vx_buf b = VX_BUF(1 << 20);
	struct sum s = {0};
	add_file(&b, "a", "x", 0644, 0);
	finish(&b);
	static const char kinds[] = "134567gLKS";
	for (const char *k = kinds; *k; k++) {
		char copy[8192];
		memcpy(copy, b.data, b.len);
		copy[156] = *k;
		assert_int_equal(read_all(copy, b.len, 512, &s), -EBADMSG);
		vx_buf_free(&s.text);
	}
	for (size_t cut = 512; cut < b.len; cut += 512) {
		assert_true(read_all(b.data, b.len - cut, 512, &s) < 0);
		vx_buf_free(&s.text);
	}
	vx_buf_addc(&b, 'x');
	assert_int_equal(read_all(b.data, b.len, 512, &s), -EBADMSG);
	vx_buf_free(&s.text);
	vx_buf_free(&b);
}

/* Any one flipped bit: refused or harmless, never a crash; sizes stay bounded. */
static void test_flips(void **state)
{
	(void)state;
	struct vx_buf b = VX_BUF(1 << 20);
	make_sample(&b);
	for (size_t bit = 0; bit < b.len * 8; bit += 3) {
		struct sum s = {0};
		b.data[bit / 8] ^= (char)(1 << bit % 8);
		read_all(b.data, b.len, 4096, &s);
		b.data[bit / 8] ^= (char)(1 << bit % 8);
		vx_buf_free(&s.text);
	}
	vx_buf_free(&b);
}

static int collect(void *arg, const void *p, size_t n)
{
	vx_buf_add(arg, p, n);
	return 0;
}

static void test_zstd(void **state)
{
	(void)state;
	size_t n = 20 << 20;
	char *text = vx_xmalloc(n);
	for (size_t i = 0; i < n; i++)
		text[i] = (char)((i * 2654435761U) >> (i % 7 ? 28 : 20));
	struct vx_zip *z = vx_zip_new();
	struct vx_unzip *u = vx_unzip_new();
	struct vx_buf one = VX_BUF(64 << 20), two = VX_BUF(64 << 20), back = VX_BUF(64 << 20);
	/* however the bytes are cut, the frame is the same */
	for (int k = 0; k < 2; k++) {
		struct vx_buf *out = k ? &two : &one;
		assert_int_equal(vx_zip_begin(z, n, NULL), 0);
		for (size_t at = 0; at < n;) {
			size_t m = k ? 1 << 20 : 77777;
			m = n - at < m ? n - at : m;
			assert_int_equal(vx_zip_feed(z, text + at, m, false, collect, out), 0);
			at += m;
		}
		assert_int_equal(vx_zip_feed(z, NULL, 0, true, collect, out), 0);
	}
	assert_int_equal(one.len, two.len);
	assert_memory_equal(one.data, two.data, one.len);
	bool done = false;
	vx_unzip_begin(u);
	for (size_t at = 0; at < one.len; at += 12345)
		assert_int_equal(
			vx_unzip_feed(u, one.data + at, one.len - at < 12345 ? one.len - at : 12345,
				&done, collect, &back),
			0);
	assert_true(done);
	assert_int_equal(back.len, n);
	assert_memory_equal(back.data, text, n);
	assert_int_equal(vx_unzip_feed(u, "x", 1, &done, collect, &back), -EBADMSG);
	size_t got;
	char small[100];
	assert_int_equal(vx_unzip_all(u, one.data, one.len, small, sizeof small, &got), -EBADMSG);
	assert_int_equal(
		vx_unzip_all(u, "not zstd at all", 15, small, sizeof small, &got), -EBADMSG);
	/* a small frame by itself, after a streamed one */
	void *dst = vx_xmalloc(vx_zip_bound(1000));
	assert_int_equal(vx_zip_all(z, text, 1000, dst, vx_zip_bound(1000), &got), 0);
	char plain[1000];
	assert_int_equal(vx_unzip_all(u, dst, got, plain, sizeof plain, &got), 0);
	assert_int_equal(got, 1000);
	assert_memory_equal(plain, text, 1000);
	free(dst);
	free(text);
	vx_zip_free(z);
	vx_unzip_free(u);
	vx_buf_free(&one);
	vx_buf_free(&two);
	vx_buf_free(&back);
}

/* Many small pieces ahead of the compressing thread are held as few large ones. */
static size_t zipped(struct vx_zip *z, const uint8_t *p, size_t n)
{
	size_t cap = vx_zip_bound(n), got = 0, back = 0;
	uint8_t *packed = vx_xmalloc(cap), *plain = vx_xmalloc(n);
	struct vx_unzip *u = vx_unzip_new();
	assert_int_equal(vx_zip_all(z, p, n, packed, cap, &got), 0);
	assert_int_equal(vx_unzip_all(u, packed, got, plain, n, &back), 0);
	assert_int_equal(back, n);
	assert_memory_equal(plain, p, n);
	vx_unzip_free(u);
	free(packed);
	free(plain);
	return got;
}

/* What is as good as random is not searched for what entropy coding could gain; everything else is,
 * also after it. */
static void test_zstd_haste(void **state)
{
	(void)state;
	enum { N = 60000, LARGE = 800000 };
	uint8_t *b = vx_xmalloc(N);
	uint32_t seed = 7;
	struct vx_zip *z = vx_zip_new();
	for (size_t i = 0; i < N; i++)
		b[i] = (uint8_t)((seed = seed * 1664525 + 1013904223) >> 24);
	assert_true(zipped(z, b, N) < N + 100);
	assert_true(zipped(z, b, 1) < 20);
	memcpy(b + N / 2, b, N / 2);
	assert_true(zipped(z, b, N) < N * 6 / 10); /* long repeats are found nevertheless */
	for (size_t i = 0; i < N; i++)
		b[i] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"[b[i] &
											  63];
	/* base64 of random bytes: 3/4 are possible */
	assert_true(zipped(z, b + 1, N / 3) < N / 3 * 78 / 100);
	for (size_t i = 0; i < N; i++)
		b[i] = (seed = seed * 1664525 + 1013904223) >> 30 ? (uint8_t)(seed >> 16) : 0x90;
	assert_true(zipped(z, b, N) < N * 90 / 100); /* one value a quarter of the time */
	memset(b, 0, N);
	assert_true(zipped(z, b, N) < 100);
	b = vx_xrealloc(b, LARGE); /* half random, half short repeats of what lies far back */
	for (size_t i = 0; i < LARGE;) {
		uint32_t r = seed = seed * 1664525 + 1013904223, back = (r >> 8) % 50000 + 1;
		for (uint32_t k = (r >> 28) + 8; k && i < LARGE; k--, i++)
			b[i] = r >> 31 || i < back
				       ? (uint8_t)((seed = seed * 1664525 + 1013904223) >> 24)
				       : b[i - back];
	}
	assert_true(zipped(z, b, LARGE) < LARGE * 85 / 100);
	vx_zip_free(z);
	free(b);
}

static void test_zstd_crumbs(void **state)
{
	(void)state;
	enum { N = 24 << 20, CRUMB = 96 };
	char *text = vx_xmalloc(N);
	uint32_t seed = 1;
	for (size_t i = 0; i < N; i++)
		text[i] = (char)((seed = seed * 1664525 + 1013904223) >> 24);
	struct vx_zip *z = vx_zip_new();
	struct vx_buf large = VX_BUF(64 << 20), crumbs = VX_BUF(64 << 20);
	vx_buf_reserve(&crumbs, 30 << 20);
	assert_int_equal(vx_zip_begin(z, N, NULL), 0);
	assert_int_equal(vx_zip_feed(z, text, N, false, collect, &large), 0);
	assert_int_equal(vx_zip_feed(z, NULL, 0, true, collect, &large), 0);
	struct mallinfo2 before = mallinfo2();
	size_t most = 0;
	assert_int_equal(vx_zip_begin(z, N, NULL), 0);
	for (size_t at = 0; at < N; at += CRUMB) {
		assert_int_equal(vx_zip_feed(z, text + at, N - at < CRUMB ? N - at : CRUMB, false,
					 collect, &crumbs),
			0);
		if (at % (CRUMB * 1000) == 0) {
			struct mallinfo2 now = mallinfo2();
			size_t held = now.hblkhd + now.arena - before.hblkhd - before.arena;
			most = held > most && held < SIZE_MAX / 2 ? held : most;
		}
	}
	assert_int_equal(vx_zip_feed(z, NULL, 0, true, collect, &crumbs), 0);
	assert_true(most < 64 << 20);
	assert_int_equal(crumbs.len, large.len);
	assert_memory_equal(crumbs.data, large.data, large.len);
	vx_zip_free(z);
	vx_buf_free(&large);
	vx_buf_free(&crumbs);
	free(text);
}

/* Repeats from as far back as compression looks, and from beyond, while what is in front is
 * overwritten. */
static void far_repeats(uint8_t *p, size_t n)
{
	uint32_t seed = 3;
	for (size_t i = 0; i < n;) {
		uint32_t r = seed = seed * 1664525 + 1013904223, k = (r >> 8) % 300 + 6;
		size_t back = r % 5 ? (512 << 10) - (seed >> 12) % 2000 + (r % 5 == 1 ? 4000 : 0)
				    : seed >> 12;
		for (; k && i < n; k--, i++)
			p[i] = r >> 30 == 0 || i < back
				       ? (uint8_t)((seed = seed * 1664525 + 1013904223) >> 24)
				       : p[i - back];
	}
}

static int slow_collect(void *arg, const void *p, size_t n)
{
	usleep(2000);
	return collect(arg, p, n);
}

static int refuse(void *arg, const void *p, size_t n)
{
	(void)p;
	(void)n;
	return ++*(int *)arg > 3 ? -ENOSPC : 0;
}

/* Put where it is compressed, in line and beside a thread, up to where a piece ends and one byte to
 * either side of it. */
static void test_zstd_room(void **state)
{
	(void)state;
	enum { PIECE = 256 << 10, MOST = (9 << 20) + 1 };
	static const size_t sizes[] = {0, 1, PIECE - 1, PIECE, PIECE + 1, (5 << 20) - 1, 5 << 20,
		(9 << 20) - 1, 9 << 20, MOST};
	uint8_t *text = vx_xmalloc(MOST), *back = vx_xmalloc(MOST);
	far_repeats(text, MOST);
	for (size_t at = PIECE; at + PIECE < MOST;
		at += at % 3 ? 3 * PIECE : PIECE) /* pieces that can hardly be compressed, also one
						     behind the other */
		assert_int_equal(getrandom(text + at, PIECE, 0), PIECE);
	struct vx_zip *z = vx_zip_new();
	struct vx_unzip *u = vx_unzip_new();
	struct vx_buf packed = VX_BUF(64 << 20), again = VX_BUF(64 << 20);
	for (size_t t = 0; t < sizeof sizes / sizeof *sizes; t++) {
		size_t n = sizes[t], got = 0, k;
		struct vx_sha256 sha;
		struct vx_digest d, want;
		vx_buf_clear(&packed);
		vx_buf_clear(&again);
		vx_sha256_init(&sha);
		assert_int_equal(vx_zip_begin(z, n, &sha), 0);
		for (size_t at = 0; at < n; at += k) {
			void *room = vx_zip_room(z, &k);
			k = n - at < k ? n - at : k;
			k = at % 3 ? k : (k + 1) / 2;
			memcpy(room, text + at, k);
			assert_int_equal(
				vx_zip_filled(z, k, t % 2 ? slow_collect : collect, &packed), 0);
		}
		assert_int_equal(vx_zip_feed(z, NULL, 0, true, collect, &packed), 0);
		vx_sha256_done(&sha, &d);
		vx_sha256_of(packed.data, packed.len, &want);
		assert_memory_equal(&d, &want, sizeof d);
		assert_int_equal(vx_unzip_all(u, packed.data, packed.len, back, MOST, &got), 0);
		assert_int_equal(got, n);
		assert_memory_equal(back, text, n);
		assert_int_equal(vx_zip_begin(z, n, NULL), 0);
		assert_int_equal(vx_zip_feed(z, text, n, true, collect, &again), 0);
		assert_int_equal(again.len, packed.len);
		assert_memory_equal(again.data, packed.data, packed.len);
	}
	/* given up by the sink, by the caller, and with too little; then all is well again */
	for (size_t n = 5 << 20; n <= 9 << 20; n += 4 << 20) {
		struct vx_sha256 sha;
		int calls = 0;
		vx_sha256_init(&sha);
		assert_int_equal(vx_zip_begin(z, n, &sha), 0);
		assert_int_equal(vx_zip_feed(z, text, n, true, refuse, &calls), -ENOSPC);
		assert_int_equal(calls, 4);
		vx_buf_clear(&packed);
		assert_int_equal(vx_zip_begin(z, n, &sha), 0);
		assert_int_equal(vx_zip_feed(z, text, n / 2, false, collect, &packed), 0);
		vx_zip_stop(z); /* from here on the digest is the caller's */
		struct vx_sha256 then = sha;
		usleep(5000);
		assert_memory_equal(&sha, &then, sizeof sha);
		assert_int_equal(vx_zip_begin(z, n, NULL), 0);
		assert_int_equal(vx_zip_feed(z, text, n / 2, true, collect, &packed), -EIO);
	}
	vx_zip_free(z);
	vx_unzip_free(u);
	vx_buf_free(&packed);
	vx_buf_free(&again);
	free(text);
	free(back);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_round_trip),
		cmocka_unit_test(test_others_read),
		cmocka_unit_test(test_reads_others),
		cmocka_unit_test(test_refuses),
		cmocka_unit_test(test_flips),
		cmocka_unit_test(test_zstd),
		cmocka_unit_test(test_zstd_haste),
		cmocka_unit_test(test_zstd_crumbs),
		cmocka_unit_test(test_zstd_room),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
