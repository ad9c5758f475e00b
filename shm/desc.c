/* Task descriptors as msgpack; the contract is vx/desc.h.
 *
 * A message is one array of fields, sub-structures being arrays of their own. One walk over the
 * fields serves both directions, so that writer and reader cannot disagree on the order. There is
 * no version in it: both ends are the same binary, and the region's header says so. */
#include "vx/desc.h"

#include "vx/arena.h"
#include "vx/buf.h"
#include "vx/err.h"
#include "vx/limits.h"

#include <errno.h>
#include <msgpack.h>
#include <string.h>

enum { TASK_FIELDS = 12, SPEC_FIELDS = 13, DECL_FIELDS = 17, PACKAGE_FIELDS = 4 };

/* Either `pack` is set (writing), or `at` walks over the objects of the innermost open array
 * (reading). */
struct codec {
	msgpack_packer *pack;
	struct vx_arena *arena;
	const msgpack_object *at, *end;
	bool bad;
};

struct level {
	const msgpack_object *at, *end;
};

static const msgpack_object *next_object(struct codec *c, msgpack_object_type type)
{
	if (c->bad || c->at == c->end || c->at->type != type) {
		c->bad = true;
		return NULL;
	}
	return c->at++;
}

/* Enters an array: of *n items when writing, and telling *n when reading. Pairs with array_end. */
static struct level array_begin(struct codec *c, uint32_t *n)
{
	struct level outer;
	const msgpack_object *o;

	if (c->pack != NULL) {
		msgpack_pack_array(c->pack, *n);
		return (struct level){0};
	}
	o = next_object(c, MSGPACK_OBJECT_ARRAY);
	outer = (struct level){c->at, c->end};
	*n = o != NULL ? o->via.array.size : 0;
	c->at = o != NULL ? o->via.array.ptr : NULL;
	c->end = o != NULL ? c->at + *n : NULL;
	return outer;
}

static void array_end(struct codec *c, struct level outer)
{
	if (c->pack != NULL)
		return;
	if (c->at != c->end)
		c->bad = true;
	c->at = outer.at;
	c->end = outer.end;
}

static struct level struct_begin(struct codec *c, uint32_t fields)
{
	uint32_t n = fields;
	struct level outer = array_begin(c, &n);

	if (n != fields)
		c->bad = true;
	return outer;
}

static void do_uint(struct codec *c, uint64_t *v, uint64_t max)
{
	const msgpack_object *o;

	if (c->pack != NULL) {
		msgpack_pack_uint64(c->pack, *v);
		return;
	}
	o = next_object(c, MSGPACK_OBJECT_POSITIVE_INTEGER);
	if (o == NULL || o->via.u64 > max)
		c->bad = true;
	else
		*v = o->via.u64;
}

static void do_u32(struct codec *c, uint32_t *v)
{
	uint64_t wide = *v;

	do_uint(c, &wide, UINT32_MAX);
	*v = (uint32_t)wide;
}

static void do_u16(struct codec *c, uint16_t *v)
{
	uint64_t wide = *v;

	do_uint(c, &wide, UINT16_MAX);
	*v = (uint16_t)wide;
}

static void do_bool(struct codec *c, bool *v)
{
	const msgpack_object *o;

	if (c->pack != NULL) {
		if (*v)
			msgpack_pack_true(c->pack);
		else
			msgpack_pack_false(c->pack);
		return;
	}
	o = next_object(c, MSGPACK_OBJECT_BOOLEAN);
	if (o != NULL)
		*v = o->via.boolean;
}

static void do_str(struct codec *c, const char **v)
{
	const msgpack_object *o;

	if (c->pack != NULL) {
		const char *s = *v != NULL ? *v : "";
		size_t n = strlen(s) + 1;

		msgpack_pack_str(c->pack, n);
		msgpack_pack_str_body(c->pack, s, n);
		return;
	}
	o = next_object(c, MSGPACK_OBJECT_STR);
	/* Exactly one NUL, at the end. */
	if (o == NULL || o->via.str.size == 0 ||
		memchr(o->via.str.ptr, 0, o->via.str.size) != o->via.str.ptr + o->via.str.size - 1)
		c->bad = true;
	else
		*v = o->via.str.ptr;
}

static void do_strs(struct codec *c, struct vx_strs *s)
{
	uint32_t n = s->n;
	struct level outer = array_begin(c, &n);
	/* One more for the NULL that execve wants. */
	const char **v =
		c->pack == NULL ? vx_arena_array(c->arena, (size_t)n + 1, sizeof *v) : NULL;

	for (uint32_t i = 0; i < n && !c->bad; i++) {
		const char *one = v == NULL ? s->v[i] : NULL;

		do_str(c, &one);
		if (v != NULL)
			v[i] = one;
	}
	if (v != NULL)
		*s = (struct vx_strs){v, n};
	array_end(c, outer);
}

static void do_ports(struct codec *c, struct vx_sbx_decl *d)
{
	struct level outer = array_begin(c, &d->n_bind_ports);
	uint16_t *v = c->pack == NULL ? vx_arena_array(c->arena, d->n_bind_ports, sizeof *v) : NULL;

	for (uint32_t i = 0; i < d->n_bind_ports && !c->bad; i++) {
		uint16_t one = v == NULL ? d->bind_ports[i] : 0;

		do_u16(c, &one);
		if (v != NULL)
			v[i] = one;
	}
	if (v != NULL)
		d->bind_ports = v;
	array_end(c, outer);
}

static void do_decl(struct codec *c, struct vx_sbx_decl *d)
{
	struct level outer = struct_begin(c, DECL_FIELDS);

	do_strs(c, &d->read);
	do_strs(c, &d->write);
	do_bool(c, &d->net_all);
	do_bool(c, &d->unix_all);
	do_bool(c, &d->bind_all);
	do_strs(c, &d->net_allow);
	do_strs(c, &d->net_deny);
	do_strs(c, &d->unix_paths);
	do_ports(c, d);
	do_bool(c, &d->pty);
	do_bool(c, &d->git_config);
	do_strs(c, &d->devices);
	do_strs(c, &d->protect);
	do_strs(c, &d->ignore_read);
	do_strs(c, &d->ignore_write);
	do_strs(c, &d->ignore_net);
	do_bool(c, &d->weaker_when_nested);
	array_end(c, outer);
}

static void do_packages(struct codec *c, struct vx_sbx_spec *s)
{
	struct level outer = array_begin(c, &s->n_packages);
	struct vx_sbx_package *v =
		c->pack == NULL ? vx_arena_array(c->arena, s->n_packages, sizeof *v) : NULL;

	for (uint32_t i = 0; i < s->n_packages && !c->bad; i++) {
		struct vx_sbx_package one = v == NULL ? s->packages[i] : (struct vx_sbx_package){0};
		struct level inner = struct_begin(c, PACKAGE_FIELDS);

		do_str(c, &one.name);
		do_str(c, &one.dir);
		do_bool(c, &one.keyed);
		do_bool(c, &one.declared);
		array_end(c, inner);
		if (v != NULL)
			v[i] = one;
	}
	if (v != NULL)
		s->packages = v;
	array_end(c, outer);
}

static void do_spec(struct codec *c, struct vx_sbx_spec *s)
{
	struct level outer = struct_begin(c, SPEC_FIELDS);

	do_decl(c, &s->decl);
	do_str(c, &s->root);
	do_str(c, &s->project_dir);
	do_strs(c, &s->nested);
	do_strs(c, &s->store_dirs);
	do_packages(c, s);
	do_strs(c, &s->members);
	do_strs(c, &s->written);
	do_bool(c, &s->narrow);
	do_str(c, &s->home);
	do_strs(c, &s->moves);
	do_str(c, &s->record_dir);
	do_bool(c, &s->weaker);
	array_end(c, outer);
}

static void do_task(struct codec *c, struct vx_task_desc *d)
{
	struct level outer = struct_begin(c, TASK_FIELDS);

	do_u32(c, &d->task);
	do_u16(c, &d->attempt);
	do_str(c, &d->id);
	do_strs(c, &d->argv);
	do_str(c, &d->cwd);
	do_strs(c, &d->env);
	do_u32(c, &d->timeout_ms);
	do_u32(c, &d->grace_ms);
	do_bool(c, &d->persistent);
	do_uint(c, &d->memory_bytes, UINT64_MAX);
	do_bool(c, &d->sandboxed);
	if (d->sandboxed)
		do_spec(c, &d->sandbox);
	else if (c->pack != NULL)
		msgpack_pack_nil(c->pack);
	else
		next_object(c, MSGPACK_OBJECT_NIL);
	array_end(c, outer);
}

static int append(void *data, const char *p, size_t n)
{
	struct vx_buf *out = data;

	vx_buf_add(out, p, n);
	return out->overflow ? -1 : 0;
}

int vx_desc_encode(const struct vx_task_desc *d, struct vx_buf *out, struct vx_err *err)
{
	msgpack_packer pack;
	struct codec c = {.pack = &pack};
	/* the walk takes fields it may change; writing changes none */
	struct vx_task_desc copy = *d;
	size_t before = out->len;

	msgpack_packer_init(&pack, out, append);
	do_task(&c, &copy);
	if (!out->overflow && out->len - before <= VX_MAX_DESC_BYTES)
		return 0;
	vx_err_set(err, -E2BIG,
		"%s: command, environment and sandbox together are larger than %u bytes (VX_MAX_DESC_BYTES)",
		d->id, VX_MAX_DESC_BYTES);
	return vx_err_fix(err, "shorten its command, its passed-through environment or its grants");
}

/* Big-endian unsigned of `width` bytes at p. */
static uint64_t be(const unsigned char *p, uint32_t width)
{
	uint64_t v = 0;

	while (width-- > 0)
		v = v << 8 | *p++;
	return v;
}

/* The library allocates what a count claims before it sees the items. So: every type is one of
 * ours, and no count or length exceeds the bytes that are left. Returns false for anything else. */
static bool plausible(const unsigned char *p, size_t n)
{
	uint64_t pending = 1; /* objects still to come */

	while (pending > 0) {
		uint64_t skip = 0, items = 0;
		unsigned char tag;

		if (n == 0)
			return false;
		tag = *p++;
		n--;
		pending--;
		if (tag >= 0x90 && tag <= 0x9f) {
			items = tag & 0x0f;
		} else if (tag >= 0xa0 && tag <= 0xbf) {
			skip = tag & 0x1f;
		} else if (tag >= 0xcc && tag <= 0xcf) {
			skip = 1ULL << (tag - 0xcc);
		} else if ((tag >= 0xd9 && tag <= 0xdb) || tag == 0xdc || tag == 0xdd) {
			uint32_t width = tag == 0xd9 ? 1 : tag == 0xda || tag == 0xdc ? 2 : 4;

			if (n < width)
				return false;
			*(tag <= 0xdb ? &skip : &items) = be(p, width);
			p += width;
			n -= width;
		} else if (tag > 0x7f && tag != 0xc0 && tag != 0xc2 && tag != 0xc3) {
			return false;
		}
		if (skip > n || items > n)
			return false;
		p += skip;
		n -= skip;
		pending += items;
	}
	return n == 0;
}

static bool valid(const struct vx_task_desc *d)
{
	if (d->argv.n == 0 || d->argv.v[0][0] == 0 || d->cwd[0] != '/' ||
		d->timeout_ms > VX_MAX_TIMEOUT_MS || d->grace_ms > VX_MAX_TIMEOUT_MS)
		return false;
	for (uint32_t i = 0; i < d->env.n; i++)
		if (strchr(d->env.v[i], '=') == NULL)
			return false;
	return true;
}

int vx_desc_decode(const void *p, size_t n, struct vx_arena *a, struct vx_task_desc *ret)
{
	struct vx_task_desc d = {0};
	struct codec c = {.arena = a};
	msgpack_unpacked u;
	size_t off = 0;
	char *copy;

	if (n == 0 || n > VX_MAX_DESC_BYTES)
		return -EBADMSG;
	copy = vx_arena_dup(a, p, n);
	if (!plausible((const unsigned char *)copy, n))
		return -EBADMSG;
	msgpack_unpacked_init(&u);
	if (msgpack_unpack_next(&u, copy, n, &off) != MSGPACK_UNPACK_SUCCESS || off != n) {
		msgpack_unpacked_destroy(&u);
		return -EBADMSG;
	}
	c.at = &u.data;
	c.end = &u.data + 1;
	do_task(&c, &d);
	msgpack_unpacked_destroy(&u); /* strings point into `copy` */
	if (c.bad || !valid(&d))
		return -EBADMSG;
	*ret = d;
	return 0;
}
