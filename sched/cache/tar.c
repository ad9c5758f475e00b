/* tar (pax), written and read: see tar.h. Layout of a header: ustar, POSIX.1-2017 "pax", tables
 * 4-13 to 4-15. */
#include "tar.h"

#include "vx/arena.h"
#include "vx/buf.h"
#include "vx/limits.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct ustar {
	char name[100], mode[8], uid[8], gid[8], size[12], mtime[12], sum[8], type, link[100],
		magic[6], version[2], uname[32], gname[32], major[8], minor[8], prefix[155],
		pad[12];
};
_Static_assert(sizeof(struct ustar) == VX_TAR_BLOCK, "ustar header");

#define MAX_OCTAL_11 077777777777ULL
#define NS 1000000000LL

size_t vx_tar_padding(uint64_t size)
{
	return (size_t)((VX_TAR_BLOCK - size % VX_TAR_BLOCK) % VX_TAR_BLOCK);
}

/* ---- writing ---- */

/* `digits` octal digits and a NUL. */
static void octal(char *p, int digits, uint64_t v)
{
	for (int i = digits - 1; i >= 0; i--, v >>= 3)
		p[i] = (char)('0' + (v & 7));
	p[digits] = '\0';
}

static uint32_t checksum(const struct ustar *h)
{
	const uint8_t *p = (const uint8_t *)h;
	uint32_t sum = 0;
	for (size_t i = 0; i < sizeof *h; i++)
		sum += p[i];
	for (size_t i = 0; i < sizeof h->sum; i++)
		sum += ' ' - (uint8_t)h->sum[i]; /* counted as blanks */
	return sum;
}

/* In decimal, at least `digits` of them. Returns how many. (Headers are made for each file of each
 * save.) */
static size_t decimal(char *p, int digits, uint64_t v)
{
	char back[20];
	size_t n = 0;
	do
		back[n++] = (char)('0' + v % 10);
	while ((v /= 10) || n < (size_t)digits);
	for (size_t i = 0; i < n; i++)
		p[i] = back[n - 1 - i];
	return n;
}

static void write_block(struct vx_buf *out, const char *name, size_t name_n, char type,
	uint32_t mode, uint64_t size, uint64_t mtime, const char *target)
{
	struct ustar h;
	memset(&h, 0, sizeof h);
	memcpy(h.name, name, name_n < sizeof h.name ? name_n : sizeof h.name);
	octal(h.mode, 7, mode);
	octal(h.uid, 7, 0);
	octal(h.gid, 7, 0);
	octal(h.size, 11, size);
	octal(h.mtime, 11, mtime);
	h.type = type;
	if (target) {
		size_t n = strlen(target);
		memcpy(h.link, target, n < sizeof h.link ? n : sizeof h.link);
	}
	memcpy(h.magic, "ustar", 6);
	memcpy(h.version, "00", 2);
	octal(h.major, 7, 0);
	octal(h.minor, 7, 0);
	octal(h.sum, 6, checksum(&h));
	h.sum[7] = ' ';
	vx_buf_add(out, &h, sizeof h);
}

/* "LEN key=value\n", where LEN counts itself. */
static void pax_record(struct vx_buf *b, const char *key, const char *val, size_t n)
{
	size_t key_n = strlen(key), body = 1 + key_n + 1 + n + 1, len = body + 1, digits;
	char text[24];
	while ((digits = decimal(text, 1, len)) + body != len)
		len = digits + body;
	vx_buf_add(b, text, digits);
	vx_buf_addc(b, ' ');
	vx_buf_add(b, key, key_n);
	vx_buf_addc(b, '=');
	vx_buf_add(b, val, n);
	vx_buf_addc(b, '\n');
}

static void pad(struct vx_buf *out, size_t n)
{
	static const char zeros[VX_TAR_BLOCK];
	vx_buf_add(out, zeros, n);
}

void vx_tar_header(const struct vx_tar_member *m, struct vx_buf *out)
{
	char name[VX_MAX_PATH + 1], text[64];
	size_t name_n = strlen(m->path);
	if (name_n > sizeof name - 2)
		name_n = sizeof name - 2;
	memcpy(name, m->path, name_n);
	if (m->type == VX_TAR_DIR)
		name[name_n++] = '/';
	name[name_n] = '\0';
	int64_t sec = m->mtime_ns / NS, frac = m->mtime_ns % NS;
	if (frac < 0) {
		frac += NS;
		sec--;
	}
	bool plain_time = frac == 0 && sec >= 0 && (uint64_t)sec <= MAX_OCTAL_11;
	uint64_t size = m->type == VX_TAR_FILE ? m->size : 0;
	struct vx_buf pax = VX_BUF(VX_TAR_MAX_PAX);
	if (name_n > 100)
		pax_record(&pax, "path", name, name_n);
	if (m->type == VX_TAR_LINK && strlen(m->target) > 100)
		pax_record(&pax, "linkpath", m->target, strlen(m->target));
	if (size > MAX_OCTAL_11)
		pax_record(&pax, "size", text, decimal(text, 1, size));
	if (!plain_time) {
		/* A time before 1970 is minus (seconds and fraction). */
		bool neg = m->mtime_ns < 0;
		uint64_t t = neg ? 0 - (uint64_t)m->mtime_ns : (uint64_t)m->mtime_ns;
		size_t n = 0;
		if (neg)
			text[n++] = '-';
		n += decimal(text + n, 1, t / NS);
		text[n++] = '.';
		n += decimal(text + n, 9, t % NS);
		pax_record(&pax, "mtime", text, n);
	}
	uint64_t shown = sec < 0 ? 0 : (uint64_t)sec > MAX_OCTAL_11 ? MAX_OCTAL_11 : (uint64_t)sec;
	if (pax.len) {
		write_block(out, "PaxHeader", 9, 'x', 0644, pax.len, shown, NULL);
		vx_buf_add(out, pax.data, pax.len);
		pad(out, vx_tar_padding(pax.len));
	}
	write_block(out, name, name_n, (char)m->type, m->mode & 07777,
		size > MAX_OCTAL_11 ? 0 : size, shown, m->type == VX_TAR_LINK ? m->target : NULL);
	vx_buf_free(&pax);
}

/* ---- reading ---- */

enum state { S_HEADER, S_PAX, S_DATA, S_PADDING, S_END };

struct vx_tar_reader {
	const struct vx_tar_events *ev;
	void *arg;
	enum state state;
	uint8_t block[VX_TAR_BLOCK];
	size_t have;   /* bytes of `block` */
	uint64_t left; /* bytes of data or of pax records still to come */
	size_t padding;
	bool in_file, saw_zero;
	struct vx_buf pax;
	bool pax_seen, has_size, has_mtime;
	uint64_t pax_size;
	int64_t pax_mtime_ns;
	char path[VX_MAX_PATH + 1], target[VX_MAX_PATH + 1];
	char pax_path[VX_MAX_PATH + 1], pax_link[VX_MAX_PATH + 1];
};

struct vx_tar_reader *vx_tar_reader_new(const struct vx_tar_events *ev, void *arg)
{
	struct vx_tar_reader *r = vx_xcalloc(1, sizeof *r);
	r->ev = ev;
	r->arg = arg;
	r->pax = VX_BUF(VX_TAR_MAX_PAX);
	return r;
}

void vx_tar_reader_free(struct vx_tar_reader *r)
{
	if (!r)
		return;
	vx_buf_free(&r->pax);
	free(r);
}

bool vx_tar_complete(const struct vx_tar_reader *r)
{
	return r->state == S_END;
}

bool vx_tar_path_ok(const char *path)
{
	size_t len = strlen(path);
	if (!len || len >= VX_MAX_PATH || path[0] == '/')
		return false;
	for (const char *p = path; p;) {
		const char *slash = strchr(p, '/');
		size_t n = slash ? (size_t)(slash - p) : strlen(p);
		if (!n || (n == 1 && p[0] == '.') || (n == 2 && memcmp(p, "..", 2) == 0) ||
			(n == 4 && memcmp(p, ".git", 4) == 0) ||
			(n == 3 && memcmp(p, ".vx", 3) == 0))
			return false;
		p = slash ? slash + 1 : NULL;
	}
	return true;
}

static int read_octal(const char *p, size_t n, uint64_t *ret)
{
	uint64_t v = 0;
	size_t i = 0;
	while (i < n && p[i] == ' ')
		i++;
	for (; i < n && p[i] >= '0' && p[i] <= '7'; i++)
		v = v << 3 | (uint64_t)(p[i] - '0');
	for (; i < n; i++)
		if (p[i] != '\0' && p[i] != ' ')
			return -EBADMSG;
	*ret = v;
	return 0;
}

static int read_decimal(const char *p, const char *end, uint64_t *ret)
{
	uint64_t v = 0;
	if (p == end || end - p > 19)
		return -EBADMSG;
	for (; p < end; p++) {
		if (*p < '0' || *p > '9')
			return -EBADMSG;
		v = v * 10 + (uint64_t)(*p - '0');
	}
	*ret = v;
	return 0;
}

static int read_mtime(const char *p, const char *end, int64_t *ret)
{
	bool neg = p < end && *p == '-';
	p += neg;
	const char *dot = memchr(p, '.', (size_t)(end - p));
	uint64_t sec, ns = 0;
	if (read_decimal(p, dot ? dot : end, &sec) < 0 || sec > INT64_MAX / NS)
		return -EBADMSG;
	int digits = 0;
	for (p = dot ? dot + 1 : end; p < end; p++) {
		if (*p < '0' || *p > '9')
			return -EBADMSG;
		if (digits++ < 9)
			ns = ns * 10 + (uint64_t)(*p - '0');
	}
	for (; digits < 9; digits++)
		ns *= 10;
	if (sec * NS + ns > INT64_MAX)
		return -EBADMSG;
	int64_t t = (int64_t)(sec * NS + ns);
	*ret = neg ? -t : t;
	return 0;
}

static int take_record(
	struct vx_tar_reader *r, const char *key, size_t key_n, const char *val, const char *end)
{
	size_t n = (size_t)(end - val);
	if (key_n == 4 && memcmp(key, "path", 4) == 0) {
		if (n >= sizeof r->pax_path || memchr(val, '\0', n))
			return -EBADMSG;
		memcpy(r->pax_path, val, n);
		r->pax_path[n] = '\0';
	} else if (key_n == 8 && memcmp(key, "linkpath", 8) == 0) {
		if (n >= sizeof r->pax_link || memchr(val, '\0', n))
			return -EBADMSG;
		memcpy(r->pax_link, val, n);
		r->pax_link[n] = '\0';
	} else if (key_n == 4 && memcmp(key, "size", 4) == 0) {
		r->has_size = true;
		return read_decimal(val, end, &r->pax_size);
	} else if (key_n == 5 && memcmp(key, "mtime", 5) == 0) {
		r->has_mtime = true;
		return read_mtime(val, end, &r->pax_mtime_ns);
	} /* atime, ctime, SCHILY.*: nothing to us */
	return 0;
}

static int read_pax(struct vx_tar_reader *r)
{
	const char *p = vx_buf_str(&r->pax), *end = p + r->pax.len;
	r->pax_seen = true;
	while (p < end) {
		const char *blank = memchr(p, ' ', (size_t)(end - p));
		uint64_t len;
		if (!blank || read_decimal(p, blank, &len) < 0 || len > (uint64_t)(end - p) ||
			len < (uint64_t)(blank - p) + 3 || p[len - 1] != '\n')
			return -EBADMSG;
		const char *last = p + len - 1, *eq = memchr(blank, '=', (size_t)(last - blank));
		if (!eq)
			return -EBADMSG;
		int k = take_record(r, blank + 1, (size_t)(eq - blank - 1), eq + 1, last);
		if (k < 0)
			return k;
		p += len;
	}
	return 0;
}

static int member_path(struct vx_tar_reader *r, const struct ustar *h)
{
	if (r->pax_seen && r->pax_path[0]) {
		memcpy(r->path, r->pax_path, sizeof r->path);
	} else {
		size_t pn = strnlen(h->prefix, sizeof h->prefix),
		       nn = strnlen(h->name, sizeof h->name);
		snprintf(r->path, sizeof r->path, "%.*s%s%.*s", (int)pn, h->prefix, pn ? "/" : "",
			(int)nn, h->name);
	}
	size_t n = strlen(r->path);
	if (h->type == VX_TAR_DIR && n > 1 && r->path[n - 1] == '/')
		r->path[n - 1] = '\0';
	if (r->pax_seen && r->pax_link[0])
		memcpy(r->target, r->pax_link, sizeof r->target);
	else
		snprintf(r->target, sizeof r->target, "%.*s", (int)strnlen(h->link, sizeof h->link),
			h->link);
	return vx_tar_path_ok(r->path) ? 0 : -EBADMSG;
}

static int begin_member(struct vx_tar_reader *r, const struct ustar *h)
{
	uint64_t mode, size, mtime;
	if (read_octal(h->mode, sizeof h->mode, &mode) < 0 ||
		read_octal(h->size, sizeof h->size, &size) < 0 ||
		read_octal(h->mtime, sizeof h->mtime, &mtime) < 0)
		return -EBADMSG;
	if (h->type != VX_TAR_FILE && h->type != VX_TAR_LINK && h->type != VX_TAR_DIR)
		return -EBADMSG;
	if (r->has_size)
		size = r->pax_size;
	if (member_path(r, h) < 0 || mode > 07777 || size > INT64_MAX ||
		(h->type != VX_TAR_FILE && size) || (h->type == VX_TAR_LINK && !r->target[0]))
		return -EBADMSG;
	struct vx_tar_member m = {.path = r->path,
		.target = h->type == VX_TAR_LINK ? r->target : NULL,
		.type = (enum vx_tar_type)h->type,
		.mode = (uint32_t)mode,
		.size = size,
		.mtime_ns = r->has_mtime ? r->pax_mtime_ns : (int64_t)mtime * NS};
	int k = r->ev->member(r->arg, &m);
	r->pax_seen = r->has_size = r->has_mtime = false;
	r->pax_path[0] = r->pax_link[0] = '\0';
	if (k < 0)
		return k;
	r->in_file = h->type == VX_TAR_FILE;
	r->left = size;
	r->padding = vx_tar_padding(size);
	r->state = S_DATA;
	return 0;
}

static int take_header(struct vx_tar_reader *r)
{
	struct ustar h;
	uint64_t sum;
	memcpy(&h, r->block, sizeof h);
	bool zero = true;
	for (size_t i = 0; i < sizeof r->block && zero; i++)
		zero = r->block[i] == 0;
	if (zero) {
		if (r->saw_zero)
			r->state = S_END;
		r->saw_zero = true;
		return r->pax_seen ? -EBADMSG : 0;
	}
	if (r->saw_zero || memcmp(h.magic, "ustar", 6) != 0 ||
		read_octal(h.sum, sizeof h.sum, &sum) < 0 || sum != checksum(&h))
		return -EBADMSG;
	if (h.type != 'x')
		return begin_member(r, &h);
	if (r->pax_seen || read_octal(h.size, sizeof h.size, &r->left) < 0 || !r->left ||
		r->left > VX_TAR_MAX_PAX)
		return -EBADMSG;
	r->padding = vx_tar_padding(r->left);
	vx_buf_clear(&r->pax);
	r->state = S_PAX;
	return 0;
}

/* What ends without further bytes. */
static int settle(struct vx_tar_reader *r)
{
	int k = 0;
	if (r->state == S_PAX && !r->left) {
		k = read_pax(r);
		r->state = S_PADDING;
	} else if (r->state == S_DATA && !r->left) {
		if (r->in_file)
			k = r->ev->end(r->arg);
		r->state = S_PADDING;
	}
	if (r->state == S_PADDING && !r->padding)
		r->state = S_HEADER;
	return k;
}

int vx_tar_feed(struct vx_tar_reader *r, const void *buf, size_t n)
{
	const uint8_t *p = buf;
	while (n) {
		int k = 0;
		size_t m = n;
		if (r->state == S_END) {
			for (size_t i = 0; i < n; i++) /* GNU tar pads to its record size */
				if (p[i])
					return -EBADMSG;
		} else if (r->state == S_HEADER) {
			if (m > VX_TAR_BLOCK - r->have)
				m = VX_TAR_BLOCK - r->have;
			memcpy(r->block + r->have, p, m);
			r->have += m;
			if (r->have == VX_TAR_BLOCK) {
				r->have = 0;
				k = take_header(r);
			}
		} else if (r->state == S_PADDING) {
			if (m > r->padding)
				m = r->padding;
			r->padding -= m;
		} else {
			if (m > r->left)
				m = (size_t)r->left;
			if (r->state == S_PAX)
				vx_buf_add(&r->pax, p, m);
			else
				k = r->ev->data(r->arg, p, m);
			r->left -= m;
		}
		if (k == 0)
			k = settle(r);
		if (k < 0)
			return k;
		p += m;
		n -= m;
	}
	return 0;
}
