/* Upkeep of the store: what is in it, whether it is whole, and what may go. */
#include "upkeep.h"

#include "vx/arena.h"
#include "vx/clock.h"
#include "vx/err.h"
#include "vx/fd.h"
#include "vx/json.h"
#include "vx/point.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- a census of the index and of the files ---- */

static uint32_t add_file(
	struct vx_census *c, const struct vx_digest *d, const char *suffix, uint64_t bytes)
{
	char path[VX_ARTIFACT_PATH];
	vx_artifact_path(d, suffix, path);
	uint32_t i = vx_map_gets(&c->by_path, path);
	if (i == VX_MAP_NONE) {
		if (c->n_files == c->cap_files) {
			c->cap_files = c->cap_files ? c->cap_files * 2 : 256;
			c->files = vx_xrealloc(c->files, c->cap_files * sizeof *c->files);
		}
		i = c->n_files++;
		c->files[i] = (struct vx_census_file){
			.path = vx_arena_strdup(&c->a, path), .digest = *d, .bytes = bytes};
		vx_map_puts(&c->by_path, c->files[i].path, i);
	}
	c->files[i].refs++;
	return i;
}

static int count_entry(void *arg, const void *key, size_t key_n, const void *val, size_t n, bool ok)
{
	struct vx_census *c = arg;
	struct vx_row row;
	struct vx_digest d = {{0}};
	if (key_n == sizeof d.b)
		memcpy(d.b, key, key_n);
	if (c->n == c->cap) {
		c->cap = c->cap ? c->cap * 2 : 256;
		c->v = vx_xrealloc(c->v, c->cap * sizeof *c->v);
	}
	struct vx_census_entry *e = &c->v[c->n++];
	*e = (struct vx_census_entry){.key = d, .artifact = VX_MAP_NONE, .log = VX_MAP_NONE};
	e->ok = ok && key_n == sizeof d.b && vx_row_decode(&d, val, n, &row) == 0;
	if (!e->ok) {
		e->odd_key = key_n != sizeof d.b;
		c->bad_rows++;
		return 0;
	}
	e->used_ns = row.used_ns;
	e->portable = row.e.portable;
	e->n_outputs = row.e.n_outputs;
	c->output_bytes += row.e.output_bytes;
	c->log_bytes_in_rows += row.log_n;
	if (row.e.artifact_bytes)
		e->artifact = add_file(c, &row.e.artifact, VX_SUFFIX_TAR, row.e.artifact_bytes);
	if (row.log_kind == VX_LOG_FILE)
		e->log = add_file(c, &row.log_digest, VX_SUFFIX_LOG, row.log_file_bytes);
	return 0;
}

static int count_bad(void *arg, const void *key, size_t key_n, const void *val, size_t n, bool ok)
{
	(void)key;
	(void)key_n;
	(void)val;
	(void)n;
	struct vx_census *c = arg;
	c->bad_rows += !ok;
	return 0;
}

void vx_census_free(struct vx_census *c)
{
	vx_map_free(&c->by_path);
	vx_arena_free(&c->a);
	free(c->v);
	free(c->files);
	free(c->spare);
	*c = (struct vx_census){0};
}

static int count_place(void *arg, const struct vx_digest *artifact, const struct vx_place *p)
{
	struct vx_census *c = arg;
	char path[VX_ARTIFACT_PATH];
	vx_artifact_path(artifact, VX_SUFFIX_TAR, path);
	uint32_t i = vx_map_gets(&c->by_path, path);
	if (i != VX_MAP_NONE) {
		c->files[i].place = *p;
		return 0;
	}
	if (c->n_spare == c->cap_spare) {
		c->cap_spare = c->cap_spare ? c->cap_spare * 2 : 64;
		c->spare = vx_xrealloc(c->spare, c->cap_spare * sizeof *c->spare);
	}
	c->spare[c->n_spare++] = (struct vx_census_place){*artifact, *p};
	return 0;
}

/* Repeatable: a transaction may be run again. */
int vx_census_entries(struct vx_tx *t, struct vx_census *c)
{
	vx_census_free(c);
	int r = vx_tx_each(t, VX_DB_ENTRIES, count_entry, c);
	return r < 0 ? r : vx_place_each(t, count_place, c);
}

static int census_all(struct vx_tx *t, void *arg)
{
	struct vx_census *c = arg;
	int r = vx_census_entries(t, c);
	static const enum vx_db others[] = {
		VX_DB_META, VX_DB_SNAPS, VX_DB_HISTORY, VX_DB_BLOBS, VX_DB_PLACES};
	for (size_t i = 0; i < sizeof others / sizeof *others && r == 0; i++)
		r = vx_tx_each(t, others[i], count_bad, c);
	return r;
}

/* "ab", and in it "abcd....tar.zst": what has another name is not the store's. */
static bool is_artifact(const char *dir, const char *name)
{
	return strncmp(name, dir, 2) == 0 && vx_is_hex(name, VX_DIGEST_HEX - 1) &&
	       (strcmp(name + VX_DIGEST_HEX - 1, VX_SUFFIX_TAR) == 0 ||
		       strcmp(name + VX_DIGEST_HEX - 1, VX_SUFFIX_LOG) == 0);
}

/* Calls f for every artifact below a/. */
int vx_store_each_file(const struct vx_store *s,
	void (*f)(void *arg, const char *path, const struct stat *st), void *arg)
{
	DIR *top = NULL;
	if (s->a_fd < 0)
		return 0;
	int fd = vx_open(s->a_fd, ".", O_RDONLY | O_DIRECTORY, 0);
	if (fd < 0 || !(top = fdopendir(fd))) {
		vx_close(fd);
		return fd < 0 ? fd : -ENOMEM;
	}
	for (struct dirent *e; (e = readdir(top));) {
		if (strlen(e->d_name) != 2 || !vx_is_hex(e->d_name, 2))
			continue;
		int sub = vx_open(s->a_fd, e->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
		DIR *d = sub < 0 ? NULL : fdopendir(sub);
		if (!d) {
			vx_close(sub);
			continue;
		}
		for (struct dirent *g; (g = readdir(d));) {
			char path[300];
			struct stat st;
			if (!is_artifact(e->d_name, g->d_name))
				continue;
			snprintf(path, sizeof path, "%s/%s", e->d_name, g->d_name);
			if (fstatat(sub, g->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
				S_ISREG(st.st_mode))
				f(arg, path, &st);
		}
		closedir(d);
	}
	closedir(top);
	return 0;
}

static void count_orphan(void *arg, const char *path, const struct stat *st)
{
	struct vx_orphans *o = arg;
	uint32_t i = vx_map_gets(&o->c->by_path, path);
	if (i != VX_MAP_NONE && !o->c->files[i].place.segment)
		return;
	o->n++;
	o->bytes += (uint64_t)st->st_size;
}

void vx_store_orphans(struct vx_store *s, struct vx_orphans *o)
{
	uint64_t n, bytes;
	vx_store_each_file(s, count_orphan, o);
	for (uint32_t i = 0; i < o->c->n_spare; i++)
		o->bytes += o->c->spare[i].place.bytes;
	o->n += o->c->n_spare;
	vx_segments_gaps(s, &n, &bytes);
	o->n += n;
	o->bytes += bytes;
}

static void set_int(struct vx_json *o, const char *key, uint64_t v)
{
	vx_json_set(o, key, vx_json_new_int((int64_t)v));
}

int vx_store_open_err(struct vx_store *s, struct vx_err *err)
{
	if (s->ix)
		return 0;
	const char *why = vx_store_why(s);
	return why ? vx_err_set(err, -ENOENT, "%s", why) : 0; /* none yet: an empty one */
}

int vx_store_stats(struct vx_store *s, struct vx_json **ret, struct vx_err *err)
{
	struct vx_census c = {0};
	int r = vx_store_open_err(s, err);
	if (r < 0)
		return r;
	if (s->ix)
		r = vx_index_read(s->ix, census_all, &c);
	if (r < 0) {
		vx_census_free(&c);
		return vx_err_set(err, r, "the index of the cache %s: %s", s->dir,
			r == -EBADMSG ? "it is damaged (the next run begins a new one)"
				      : vx_strerror(r));
	}
	struct vx_orphans o = {.c = &c};
	vx_store_orphans(s, &o);
	uint64_t artifacts = 0, bytes = 0, fixed = 0, outputs = 0, oldest = 0;
	for (uint32_t i = 0; i < c.n_files; i++) {
		artifacts += vx_ends_with(c.files[i].path, VX_SUFFIX_TAR);
		bytes += c.files[i].bytes;
	}
	for (uint32_t i = 0; i < c.n; i++) {
		fixed += c.v[i].ok && !c.v[i].portable;
		outputs += c.v[i].n_outputs;
		if (c.v[i].ok && (!oldest || c.v[i].used_ns < oldest))
			oldest = c.v[i].used_ns;
	}
	struct vx_json *j = vx_json_object();
	vx_json_set(j, "dir", vx_json_new_str(s->dir));
	set_int(j, "entries", c.n);
	set_int(j, "artifacts", artifacts);
	set_int(j, "logFiles", c.n_files - artifacts);
	set_int(j, "bytes", bytes);
	set_int(j, "indexBytes", s->ix ? vx_index_bytes(s->ix) : 0);
	set_int(j, "outputs", outputs);
	set_int(j, "outputBytes", c.output_bytes);
	set_int(j, "notPortable", fixed);
	set_int(j, "orphans", o.n);
	set_int(j, "orphanBytes", o.bytes);
	set_int(j, "oldestUseSeconds", oldest ? (vx_wall_ns() - oldest) / 1000000000 : 0);
	vx_census_free(&c);
	*ret = j;
	return 0;
}

/* ---- verifying ---- */

/* NULL when the file is whole, else what is wrong with it. */
static const char *check_file(const struct vx_store *s, const struct vx_census_file *f)
{
	char path[VX_SEGMENT_PATH];
	bool in_segment = f->place.segment;
	if (in_segment)
		vx_segment_path(f->place.segment, path);
	/* nothing that stands there instead is waited for */
	int fd = vx_open_beneath(in_segment ? s->dir_fd : s->a_fd, in_segment ? path : f->path,
		O_RDONLY | O_NOFOLLOW | O_NONBLOCK, 0);
	if (fd == -ENOENT)
		return "is missing";
	if (fd < 0)
		return "cannot be opened";
	size_t cap = 1 << 20;
	uint8_t *buf = vx_xmalloc(cap);
	struct vx_sha256 sha;
	struct vx_digest d;
	uint64_t bytes = 0;
	ssize_t n;
	vx_sha256_init(&sha);
	if (in_segment && f->place.bytes < cap)
		cap = (size_t)f->place.bytes;
	while ((n = in_segment ? pread(fd, buf, cap - bytes, (off_t)(f->place.off + bytes))
			       : vx_read(fd, buf, cap)) > 0) {
		vx_sha256_add(&sha, buf, (size_t)n);
		bytes += (uint64_t)n;
	}
	vx_close(fd);
	free(buf);
	vx_sha256_done(&sha, &d);
	return n < 0                              ? "cannot be read"
	       : bytes != f->bytes                ? "has another size than was saved"
	       : !vx_digest_equal(&d, &f->digest) ? "does not have the bytes that were saved"
						  : NULL;
}

/* How a file is named to the user. */
static const char *file_name(const struct vx_census_file *f, char *ret, size_t cap)
{
	char path[VX_SEGMENT_PATH];
	if (!f->place.segment)
		return f->path;
	vx_segment_path(f->place.segment, path);
	snprintf(ret, cap, "%s: %s, %llu bytes from %llu on,", path, f->path,
		(unsigned long long)f->place.bytes, (unsigned long long)f->place.off);
	return ret;
}

static void add_problem(struct vx_json *list, const char *what, const char *problem)
{
	struct vx_json *o = vx_json_object();
	vx_json_set(o, "what", vx_json_new_str(what));
	vx_json_set(o, "problem", vx_json_new_str(problem));
	vx_json_add(list, o);
}

static int entries_now(struct vx_tx *t, void *arg)
{
	return vx_census_entries(t, arg);
}

/* Was the file removed, with its rows, by a prune that came between? Then nothing is wrong. */
static const char *check_again(
	const struct vx_store *s, const struct vx_census_file *f, const char *bad)
{
	struct vx_census now = {0};
	if (vx_index_read(s->ix, entries_now, &now) == 0) {
		uint32_t i = vx_map_gets(&now.by_path, f->path);
		bad = i == VX_MAP_NONE ? NULL : check_file(s, &now.files[i]);
	}
	vx_census_free(&now);
	return bad;
}

int vx_store_verify(
	struct vx_store *s, struct vx_json **ret, uint32_t *ret_problems, struct vx_err *err)
{
	struct vx_census c = {0};
	uint32_t problems = 0;
	int r = vx_store_open_err(s, err);
	if (r < 0)
		return r;
	if (s->ix)
		r = vx_index_read(s->ix, census_all, &c);
	if (r < 0 && r != -EBADMSG) {
		vx_census_free(&c);
		return vx_err_set(err, r, "the index of the cache %s: %s", s->dir, vx_strerror(r));
	}
	struct vx_json *j = vx_json_object(), *list = vx_json_array();
	if (r == -EBADMSG) {
		add_problem(list, "index", "is damaged (the next run begins a new one)");
		problems++;
	} else if (c.bad_rows) {
		char text[64];
		snprintf(text, sizeof text, "holds %llu rows that do not check",
			(unsigned long long)c.bad_rows);
		add_problem(list, "index", text);
		problems++;
	}
	for (uint32_t i = 0; i < c.n_files; i++) {
		const char *bad = check_file(s, &c.files[i]);
		for (int tries = 0; bad && tries < 3; tries++)
			bad = check_again(s, &c.files[i], bad);
		if (!bad)
			continue;
		char name[VX_SEGMENT_PATH + VX_ARTIFACT_PATH + 64];
		add_problem(list, file_name(&c.files[i], name, sizeof name), bad);
		problems++;
	}
	struct vx_orphans o = {.c = &c};
	vx_store_orphans(s, &o);
	set_int(j, "entries", c.n);
	set_int(j, "files", c.n_files);
	set_int(j, "orphans", o.n);
	vx_json_set(j, "problems", list);
	vx_census_free(&c);
	*ret = j;
	*ret_problems = problems;
	return 0;
}
