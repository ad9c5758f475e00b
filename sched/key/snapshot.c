/* The memory of a plan: its file, and the proof that it still holds. See vx/snapshot.h.
 *
 * Layout: header | facts | image. The facts are read with every length checked and must hold before
 * the image is mapped at all. */
#include "image.h"
#include "proof.h"
#include "question.h"
#include "seed.h"

#include "../worktree/files.h"

#include "vx/buf.h"
#include "vx/clock.h"
#include "vx/facts.h"
#include "vx/fd.h"
#include "vx/key.h"
#include "vx/limits.h"
#include "vx/point.h"
#include "vx/state.h"
#include "vx/secret.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define MAGIC 0x316e616c70585656ULL
#define MAX_FACTS_BYTES ((uint64_t)1 << 30)
#define IMAGE_ALIGN 65536U /* as large as pages get */
#define IMAGE_LAYOUT 5U    /* changes with what image.c writes where the structs' sizes do not */

struct header {
	uint64_t magic, n_facts, facts_bytes, image_bytes, facts_sum, image_sum;
	struct vx_digest build, asked;
};

struct vx_snapshot {
	struct vx_arena a;
	const char *root;
	struct vx_digest build, asked;
	struct vx_digest bound; /* `asked`, by the secret that was there when it was opened */
	int fd;                 /* of the file found; -1 none */
	struct header h;
	char *facts_raw;
	struct vx_image im; /* of what was taken, or of what is being kept */
	bool off, taken;
	bool moved; /* a directory that was taken by its names has another stat now */
	struct vx_facts facts;
	uint64_t started_ns; /* wall time in front of planning */
	const struct vx_workspace *ws;
	const struct vx_selection *sel;
	const struct vx_graph *g;
};

/* The image begins on a page of its own. */
static uint64_t image_offset(uint64_t facts_bytes)
{
	return (sizeof(struct header) + facts_bytes + IMAGE_ALIGN - 1) &
	       ~(uint64_t)(IMAGE_ALIGN - 1);
}

/* Opens the file and reads its header and facts; anything odd is "none". */
static bool open_file(struct vx_snapshot *s)
{
	struct stat st;
	int root = vx_open(AT_FDCWD, s->root, O_PATH | O_DIRECTORY, 0);
	s->fd = root < 0 ? root
			 : vx_open_beneath(root, ".vx/plan", O_RDONLY | O_NOFOLLOW | O_NONBLOCK, 0);
	vx_close(root);
	if (s->fd < 0 || fstat(s->fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_uid != geteuid() ||
		(st.st_mode & 022))
		return false;
	if (vx_read_full(s->fd, &s->h, sizeof s->h) != (ssize_t)sizeof s->h || s->h.magic != MAGIC)
		return false;
	if (memcmp(&s->h.build, &s->build, sizeof s->build) != 0 ||
		memcmp(&s->h.asked, &s->bound, sizeof s->bound) != 0)
		return false;
	if (s->h.facts_bytes > MAX_FACTS_BYTES || s->h.image_bytes > VX_MAX_IMAGE_BYTES ||
		!s->h.n_facts || s->h.n_facts > s->h.facts_bytes / sizeof(struct vx_fact) ||
		s->h.image_bytes < sizeof(struct vx_image_root) ||
		(uint64_t)st.st_size != image_offset(s->h.facts_bytes) + s->h.image_bytes)
		return false;
	s->facts_raw = malloc(s->h.facts_bytes);
	return s->facts_raw &&
	       vx_read_full(s->fd, s->facts_raw, s->h.facts_bytes) == (ssize_t)s->h.facts_bytes &&
	       vx_question_sum(s->facts_raw, s->h.facts_bytes) == s->h.facts_sum;
}

struct vx_snapshot *vx_snapshot_open(const char *root, struct vx_strs asked)
{
	struct vx_snapshot *s = vx_xcalloc(1, sizeof *s);
	const char *off = getenv("VX_NO_SNAPSHOT");
	s->fd = -1;
	s->root = vx_arena_strdup(&s->a, root);
	vx_facts_init(&s->facts, &s->a);
	uint32_t layout[] = {IMAGE_LAYOUT, VX_KEY_VERSION, sizeof(struct vx_image_root),
		sizeof(struct vx_task_decl)};
	s->off = (off && *off && !vx_streq(off, "0")) ||
		 !vx_question_build(layout, sizeof layout / sizeof *layout, &s->build);
	s->started_ns = vx_wall_ns();
	if (s->off)
		return s;
	vx_question_of(root, asked, &s->asked);
	s->bound = s->asked;
	if (vx_state_bind(root, false, &s->bound) < 0 || !open_file(s)) {
		s->fd = vx_close(s->fd);
		free(s->facts_raw);
		s->facts_raw = NULL;
	}
	return s;
}

struct proof {
	struct vx_fact **v;
	_Atomic bool broken, moved;
};

static void check_fact(void *arg, uint32_t i)
{
	struct proof *p = arg;
	struct vx_seen_stat now;
	if (atomic_load_explicit(&p->broken, memory_order_relaxed))
		return;
	if (!vx_fact_holds(p->v[i], &now)) {
		atomic_store(&p->broken, true);
	} else if (memcmp(&now, &p->v[i]->st, sizeof now) != 0) {
		p->v[i]->st = now;
		atomic_store(&p->moved, true);
	}
}

static bool prove(struct vx_snapshot *s)
{
	struct proof p = {.v = vx_xcalloc(s->h.n_facts, sizeof(struct vx_fact *))};
	char *at = s->facts_raw, *end = at + s->h.facts_bytes;
	bool sane = true, root_seen = false;
	for (uint64_t i = 0; i < s->h.n_facts && sane; i++) {
		struct vx_fact *f = (void *)at;
		sane = vx_fact_sane(at, end);
		if (!sane)
			break;
		root_seen |= f->kind == VX_SEEN_DIR && strcmp(vx_fact_path(f), s->root) == 0;
		p.v[i] = f;
		at += f->total;
	}
	if (sane && root_seen)
		vx_parallel((uint32_t)s->h.n_facts, vx_cpus(), 64, check_fact, &p);
	free(p.v);
	s->moved = atomic_load(&p.moved);
	return sane && root_seen && !atomic_load(&p.broken);
}

/* Mapped from the file, privately: what is only read is neither copied nor cleared. The file is
 * never changed in place, only replaced. */
static bool load_image(struct vx_snapshot *s)
{
	if (!vx_image_map_file(&s->im, s->fd, image_offset(s->h.facts_bytes), s->h.image_bytes))
		return false;
	if (vx_question_sum(s->im.base, s->h.image_bytes) != s->h.image_sum) {
		vx_image_unmap(&s->im);
		return false;
	}
	s->im.used = s->h.image_bytes;
	return true;
}

static void make_maps(struct vx_workspace *ws)
{
	ws->by_name = ws->by_dir = (struct vx_map){0};
	vx_map_reserve(&ws->by_name, ws->n_projects + 1);
	vx_map_reserve(&ws->by_dir, ws->n_projects);
	for (uint32_t i = 0; i < ws->n_projects; i++) {
		vx_map_puts(&ws->by_name, ws->projects[i].name, i);
		vx_map_puts(&ws->by_dir, ws->projects[i].dir, i);
	}
	if (ws->root_project != VX_MAP_NONE)
		vx_map_puts(&ws->by_name, "//", ws->root_project);
}

bool vx_snapshot_take(struct vx_snapshot *s, struct vx_workspace *ws, struct vx_selection *sel,
	struct vx_graph *g)
{
	if (s->fd < 0 || !prove(s) || !load_image(s))
		return false;
	const struct vx_image_root *root = (const void *)s->im.base;
	*ws = root->ws;
	*sel = root->sel;
	*g = root->graph;
	make_maps(ws);
	s->taken = true;
	s->ws = ws;
	s->sel = sel;
	s->g = g;
	return true;
}

struct vx_facts *vx_snapshot_facts(struct vx_snapshot *s)
{
	return &s->facts;
}

void vx_snapshot_planned(struct vx_snapshot *s, const struct vx_workspace *ws,
	const struct vx_selection *sel, const struct vx_graph *g)
{
	s->ws = ws;
	s->sel = sel;
	s->g = g;
}

void vx_snapshot_free(struct vx_snapshot *s)
{
	if (!s)
		return;
	vx_close(s->fd);
	free(s->facts_raw);
	vx_image_unmap(&s->im);
	vx_arena_free(&s->a);
	free(s);
}

bool vx_snapshot_each_fact(
	const struct vx_snapshot *s, bool (*each)(void *arg, const struct vx_fact *f), void *arg)
{
	const char *at = s->facts_raw;
	for (uint64_t i = 0; s->taken && i < s->h.n_facts; i++) {
		const struct vx_fact *f = (const void *)at;
		if (!each(arg, f))
			return false;
		at += f->total;
	}
	return s->taken;
}

const struct vx_seed *vx_snapshot_seed(const struct vx_snapshot *s)
{
	const struct vx_image_root *root = (const void *)s->im.base;
	return s->taken && root->has_seed ? &root->seed : NULL;
}

bool vx_snapshot_keeps(const struct vx_snapshot *s)
{
	if (s->off || !s->ws || !s->sel || s->sel->nothing || s->sel->reasons ||
		(!s->taken && (s->facts.unstable || !s->facts.n)))
		return false;
	for (uint32_t i = 0; i < s->ws->n_projects; i++)
		if ((s->ws->projects[i].files & VX_CONFIG_PROGRAMS) || s->ws->projects[i].broken)
			return false;
	return !(s->ws->root_files & (VX_CONFIG_PROGRAMS | VX_WORKSPACE_PROGRAMS));
}

/* What has been put last: a directory whose names alone count, and which may have changed unseen,
 * will be listed again. */
static void forget_young(const struct vx_snapshot *s, struct vx_fact *f)
{
	if (f->kind == VX_SEEN_NAMES &&
		vx_fact_young(&(struct vx_seen){.kind = VX_SEEN_NAMES, .st = f->st}, s->started_ns))
		vx_fact_forget_stat(f);
}

/* Facts as they will be read. False when one may have changed unseen. */
static bool put_facts(const struct vx_snapshot *s, struct vx_buf *b, uint64_t *ret_n)
{
	struct stat st;
	struct vx_seen root = {.path = s->root, .kind = VX_SEEN_DIR};
	if (stat(s->root, &st) < 0)
		return false;
	vx_seen_stat_of(&st, &root.st);
	for (uint32_t i = 0; i <= s->facts.n; i++) {
		const struct vx_seen *seen = i < s->facts.n ? &s->facts.v[i] : &root;
		size_t at = b->len;
		if (seen->kind != VX_SEEN_NAMES && vx_fact_young(seen, s->started_ns))
			return false;
		vx_fact_put(b, seen);
		if (b->overflow)
			return false;
		forget_young(s, (void *)(b->data + at));
	}
	*ret_n = s->facts.n + 1;
	return true;
}

/* Facts as they were read, and as they are now. */
static void put_taken(const struct vx_snapshot *s, struct vx_buf *b)
{
	vx_buf_add(b, s->facts_raw, s->h.facts_bytes);
	for (uint64_t i = 0, at = 0; s->moved && !b->overflow && i < s->h.n_facts; i++) {
		struct vx_fact *f = (void *)(b->data + at);
		forget_young(s, f);
		at += f->total;
	}
}

static int write_file(const struct vx_snapshot *s, const struct header *h,
	const struct vx_buf *facts, const struct vx_image *im)
{
	static const char zero[IMAGE_ALIGN];
	char tmp[64];
	int root = vx_open(AT_FDCWD, s->root, O_PATH | O_DIRECTORY, 0);
	int dir = root < 0 ? root : vx_open_beneath(root, ".vx", O_PATH | O_DIRECTORY, 0);
	vx_close(root);
	if (dir < 0)
		/* nothing of ours is here: not the place to begin */
		return dir == -ENOENT ? 0 : dir;
	snprintf(tmp, sizeof tmp, "plan.%d", (int)getpid());
	int fd = vx_open(dir, tmp, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0600);
	int r = fd < 0 ? fd : vx_write_full(fd, h, sizeof *h);
	if (r == 0)
		r = vx_write_full(fd, vx_buf_str(facts), facts->len);
	if (r == 0)
		r = vx_write_full(fd, zero, image_offset(facts->len) - sizeof *h - facts->len);
	if (r == 0)
		r = vx_write_full(fd, im->base, im->used);
	VX_POINT("plan.written");
	if (r == 0 && renameat(dir, tmp, dir, "plan") < 0)
		r = -errno;
	if (r < 0 && fd >= 0)
		unlinkat(dir, tmp, 0);
	vx_close(fd);
	vx_close(dir);
	return r;
}

static bool moved(const struct vx_fact *f)
{
	return f->kind == VX_SEEN_DIR && !vx_fact_holds(f, NULL);
}

static bool fact_stays(void *arg, const struct vx_fact *f)
{
	(void)arg;
	return !moved(f);
}

/* Has the run itself changed a directory that the plan was read from (its outputs came to be)? Then
 * nobody will ever take what would be kept. */
static bool outdated(const struct vx_snapshot *s)
{
	struct vx_buf one = VX_BUF(2U * VX_MAX_PATH + sizeof(struct vx_fact) + 16);
	bool yes = s->taken && !vx_snapshot_each_fact(s, fact_stays, NULL);
	for (uint32_t i = 0; i < s->facts.n && !yes; i++) {
		if (s->facts.v[i].kind != VX_SEEN_DIR)
			continue;
		vx_buf_clear(&one);
		vx_fact_put(&one, &s->facts.v[i]);
		yes = moved((const void *)one.data);
	}
	vx_buf_free(&one);
	return yes;
}

static bool stat_stays(void *arg, const struct vx_fact *f)
{
	struct stat st;
	struct vx_seen_stat now;
	(void)arg;
	if (f->kind != VX_SEEN_NAMES)
		return true;
	if (stat(vx_fact_path(f), &st) < 0)
		return false;
	vx_seen_stat_of(&st, &now);
	return memcmp(&now, &f->st, sizeof now) == 0;
}

bool vx_snapshot_stale(const struct vx_snapshot *s)
{
	return s->taken && s->moved && vx_snapshot_each_fact(s, stat_stays, NULL);
}

int vx_snapshot_keep(struct vx_snapshot *s, const struct vx_seed *seed)
{
	struct vx_buf facts = VX_BUF(MAX_FACTS_BYTES);
	struct header h = {.magic = MAGIC, .build = s->build, .asked = s->asked};
	struct vx_image im = s->im;
	int r = 0;
	if (!vx_snapshot_keeps(s) || (s->taken && !vx_snapshot_seed(s)) || outdated(s) ||
		vx_state_bind(s->root, true, &h.asked) < 0)
		return 0;
	/* the plan is in the image already and its facts were proven: the seed alone is new */
	if (s->taken) {
		struct vx_image_root *root = (void *)s->im.base;
		put_taken(s, &facts);
		h.n_facts = s->h.n_facts;
		vx_seed_copy(&root->seed, seed, s->g->n_tasks, s->ws->n_projects);
	} else if (!put_facts(s, &facts, &h.n_facts) || !vx_image_map(&im, VX_MAX_IMAGE_BYTES)) {
		goto out;
	} else if (!vx_image_build(&im, s->ws, s->sel, s->g, seed)) {
		vx_image_unmap(&im);
		goto out;
	}
	h.facts_bytes = facts.len;
	h.facts_sum = vx_question_sum(vx_buf_str(&facts), facts.len);
	if (vx_secrets_in((const char *)im.base, im.used)) {
		/* a plan that holds a secret is made anew rather than written down */
		if (!s->taken)
			vx_image_unmap(&im);
		goto out;
	}
	h.image_bytes = im.used;
	h.image_sum = vx_question_sum(im.base, im.used);
	r = write_file(s, &h, &facts, &im);
	if (!s->taken)
		vx_image_unmap(&im);
out:
	vx_buf_free(&facts);
	return r;
}
