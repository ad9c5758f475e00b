/* Files whose bytes on disk are not those of their blob: text with other line ends, files that a
 * filter writes. A key has the identity of the bytes, a commit that of the blob, and nothing here
 * runs a filter. Such a file is the same as in the commit where git's index says so: the index
 * records the commit's blob, and the file has the stat that the index recorded.
 *
 * Where an attributes file itself has changed, the bytes that a checkout of the commit would make
 * cannot be told: what its changed lines name counts as changed. */
#include "narrow.h"

#include "../git/ignore.h"

#include "vx/assert.h"
#include "vx/buf.h"
#include "vx/fd.h"
#include "vx/path.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define MAX_ATTRIBUTES_BYTES (100U << 20) /* as of the scan (list_native.c) */

#define MAX_TEXT_BYTES (16U << 20) /* a longer file has no line ends to speak of */

/* Words that decide about conversion, in any form: "-text", "eol=lf", "!filter". Of those the
 * latter may give a checkout other bytes than the blob's; plain text has its line ends from there.
 */
static const char *const deciding[] = {
	"text", "binary", "crlf", "eol", "ident", "filter", "working-tree-encoding"};
static const char *const rewriting[] = {"crlf", "ident", "filter", "working-tree-encoding"};

static bool has_word(const char *line, size_t n, const char *const *words, size_t n_words)
{
	for (size_t i = 0; i < n_words; i++)
		if (memmem(line, n, words[i], strlen(words[i])))
			return true;
	return n > 0 && *line == '[';
}

static bool converts(const char *line, size_t n)
{
	return has_word(line, n, deciding, VX_ARRAY_LEN(deciding));
}

/* The line's pattern, as one that converts. */
static void add_pattern(const char *line, size_t n, struct vx_buf *out)
{
	size_t blanks = strspn(line, " \t\r");
	const char *pattern = line + blanks;
	size_t k = blanks >= n || *pattern == '"' ? 0 : strcspn(pattern, " \t\r\n");

	/* a macro may be meant by any line */
	if (*pattern == '[' || !k)
		vx_buf_adds(out, "**");
	else
		vx_buf_add(out, pattern, k);
	vx_buf_adds(out, " filter=x\n");
}

/* Identities that no file has: of what cannot be told. */
enum { ANYTHING, ENDS };

static int text_of(int root_fd, const char *path, struct vx_buf *b)
{
	int r = vx_read_file(root_fd, path, b);

	return r == -ENOENT || r == -ENOTDIR || r == -EISDIR || r == -EACCES ? 0 : r;
}

/* Appends the lines of x that decide and that y has not. */
static void add_other_lines(const struct vx_buf *x, const struct vx_buf *y, struct vx_buf *out)
{
	struct vx_map have = {0};

	for (const char *p = vx_buf_str(y); *p;) {
		size_t n = strcspn(p, "\n");
		vx_map_put(&have, p, n, 1);
		p += n + (p[n] == '\n');
	}
	for (const char *p = vx_buf_str(x); *p;) {
		size_t n = strcspn(p, "\n");
		if (converts(p, n) && vx_map_get(&have, p, n) == VX_MAP_NONE)
			add_pattern(p, n, out);
		p += n + (p[n] == '\n');
	}
	vx_map_free(&have);
}

/* The order of lines counts as well: the same lines in another order decide otherwise. */
static bool same_order(const struct vx_buf *x, const struct vx_buf *y)
{
	const char *p = vx_buf_str(x), *q = vx_buf_str(y);

	for (;;) {
		while (*p && !converts(p, strcspn(p, "\n")))
			p += strcspn(p, "\n") + (p[strcspn(p, "\n")] == '\n');
		while (*q && !converts(q, strcspn(q, "\n")))
			q += strcspn(q, "\n") + (q[strcspn(q, "\n")] == '\n');
		size_t n = strcspn(p, "\n"), m = strcspn(q, "\n");
		if (!*p || !*q || n != m || memcmp(p, q, n) != 0)
			return !*p && !*q;
		p += n + (p[n] == '\n');
		q += m + (q[m] == '\n');
	}
}

/* Marks what the lines match below the directory of `path`: `mark` 0 everything, 1 (ENDS) what has
 * no identity yet. */
static void distrust(struct narrower *w, const char *path, const struct vx_buf *lines, uint8_t mark)
{
	const char *dir = vx_path_dir(w->a, path);
	size_t strip = strcmp(dir, ".") == 0 ? 0 : strlen(dir) + 1;
	const struct vx_rules *rules = vx_attr_parse(vx_buf_str(lines), lines->len, "", NULL, w->a);
	struct vx_files *now = &w->now->table;
	uint32_t lo, hi;

	vx_files_below(now, dir, &lo, &hi);
	for (uint32_t i = lo; i < hi; i++) {
		struct vx_file *f = now->v[i];
		const char *rel = f->path + strip;
		if (f->mode == 0120000 || !vx_attr_match(rules, rel, f->len - strip,
						  (size_t)(vx_path_base(rel) - rel)))
			continue;
		if (mark == ENDS && f->has_oid)
			continue;
		f->has_oid = true;
		f->oid = (struct vx_oid){.n = (uint8_t)w->base.kind};
		memset(f->oid.b, mark, f->oid.n);
		w->distrusts = true;
	}
}

/* `was`: the file in the commit; NULL none. */
static int attributes_changed(struct narrower *w, const char *path, const struct vx_file *was)
{
	struct vx_buf now = VX_BUF(MAX_ATTRIBUTES_BYTES), then = VX_BUF(MAX_ATTRIBUTES_BYTES),
		      lines = VX_BUF(2 * (size_t)MAX_ATTRIBUTES_BYTES);
	int r = text_of(vx_source_fd(w->now->src), path, &now);

	if (r == 0 && was)
		r = base_text(&w->base, was, &then);
	add_other_lines(&now, &then, &lines);
	add_other_lines(&then, &now, &lines);
	if (!lines.len && !same_order(&now, &then))
		vx_buf_adds(&lines, "** filter=x\n");
	if (r == 0 && lines.len)
		distrust(w, path, &lines, ANYTHING);
	vx_buf_free(&now);
	vx_buf_free(&then);
	vx_buf_free(&lines);
	return r;
}

/* Known to be what the commit has, though the bytes are others. */
static void settle(struct narrower *w, struct vx_file *f)
{
	const struct vx_file *was = vx_files_find(&w->base.files, f->path);
	struct vx_recorded recorded;

	if (!was || was->mode != f->mode || f->mode == 0120000 ||
		!vx_source_recorded(w->now->src, f->path, &recorded) || !recorded.clean ||
		recorded.oid.n != was->oid.n || memcmp(recorded.oid.b, was->oid.b, was->oid.n) != 0)
		return;
	f->oid = was->oid;
	f->has_oid = true;
}

/* What a sparse checkout leaves out now it would leave out of the commit. */
static void leave_out_sparse(struct narrower *w)
{
	struct vx_files *then = &w->base.files;
	struct vx_recorded recorded;
	uint32_t n = 0;

	for (uint32_t i = 0; i < then->n; i++)
		if (vx_files_find(&w->now->table, then->v[i]->path) ||
			!vx_source_recorded(w->now->src, then->v[i]->path, &recorded) ||
			!recorded.absent)
			then->v[n++] = then->v[i];
	then->n = n;
}

static bool is_marked(const struct narrower *w, const char *path, uint8_t mark)
{
	const struct vx_file *f = w->distrusts ? vx_files_find(&w->now->table, path) : NULL;

	for (uint32_t i = 0; f && i < f->oid.n; i++)
		if (f->oid.b[i] != mark)
			return false;
	return f && f->has_oid && f->oid.n;
}

bool converted_distrusts(const struct narrower *w, const char *path)
{
	return is_marked(w, path, ANYTHING);
}

bool converted_doubts(const struct narrower *w, const char *path)
{
	return is_marked(w, path, ANYTHING) || is_marked(w, path, ENDS);
}

bool converted_ends(const struct narrower *w, const char *path)
{
	const struct vx_file *f = vx_files_find(&w->now->table, path),
			     *was = vx_files_find(&w->base.files, path);
	struct vx_buf b = VX_BUF(MAX_TEXT_BYTES);
	struct vx_oid id = {.n = (uint8_t)w->base.kind};
	bool same = is_marked(w, path, ENDS);

	if (!same && f && was && f->mode == was->mode && f->mode != 0120000 &&
		vx_read_file(vx_source_fd(w->now->src), path, &b) == 0 && b.len) {
		size_t n = 0;
		for (size_t i = 0; i < b.len; i++)
			if (b.data[i] != '\r' || i + 1 == b.len || b.data[i + 1] != '\n')
				b.data[n++] = b.data[i];
		vx_git_blob_id(w->base.kind, b.data, n, id.b);
		same = n < b.len && memcmp(id.b, was->oid.b, id.n) == 0;
	}
	vx_buf_free(&b);
	return same;
}

/* Files that a checkout rewrites, and that nothing proves to be as they were checked out: equal
 * bytes say no more of them than others do. */
static int doubt_rewritten(struct narrower *w, const char *path)
{
	struct vx_buf text = VX_BUF(MAX_ATTRIBUTES_BYTES), lines = VX_BUF(MAX_ATTRIBUTES_BYTES);
	int r = text_of(vx_source_fd(w->now->src), path, &text);

	for (const char *p = vx_buf_str(&text); *p;) {
		size_t n = strcspn(p, "\n");
		if (has_word(p, n, rewriting, VX_ARRAY_LEN(rewriting)))
			add_pattern(p, n, &lines);
		p += n + (p[n] == '\n');
	}
	if (r == 0 && lines.len)
		distrust(w, path, &lines, ENDS);
	vx_buf_free(&text);
	vx_buf_free(&lines);
	return r;
}

int converted_settle(struct narrower *w)
{
	const struct vx_files *now = &w->now->table, *then = &w->base.files;
	int r = 0;

	leave_out_sparse(w);
	for (uint32_t i = 0; i < now->n; i++)
		if (!now->v[i]->has_oid)
			settle(w, now->v[i]);
	for (uint32_t i = 0, j = 0; r == 0 && (i < now->n || j < then->n);) {
		int c = i == now->n    ? 1
			: j == then->n ? -1
				       : strcmp(now->v[i]->path, then->v[j]->path);
		struct vx_file *x = c <= 0 ? now->v[i] : NULL, *y = c >= 0 ? then->v[j] : NULL;
		const char *path = x ? x->path : y->path;
		i += c <= 0;
		j += c >= 0;
		if (strcmp(vx_path_base(path), ".gitattributes") == 0)
			r = attributes_changed(w, path, y);
		if (r == 0 && x && strcmp(vx_path_base(path), ".gitattributes") == 0)
			r = doubt_rewritten(w, path);
	}
	return r;
}
