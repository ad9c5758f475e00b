/* The random worktree of git_oracle.h and the edits made to it. Included there alone. */
static uint32_t go_rand(struct go *g, uint32_t n)
{
	g->rng ^= g->rng << 13;
	g->rng ^= g->rng >> 7;
	g->rng ^= g->rng << 17;
	return (uint32_t)(g->rng >> 20) % n;
}

static int go_mem_get(void *self, const char *space, const void *key, size_t n, struct vx_arena *a,
	void **ret, size_t *ret_n)
{
	struct go *g = self;
	(void)space, (void)key, (void)n;
	if (!g->memory)
		return -ENOENT;
	*ret = vx_arena_dup(a, g->memory, g->memory_n);
	*ret_n = g->memory_n;
	return 0;
}

static int go_mem_put(
	void *self, const char *space, const void *key, size_t n, const void *val, size_t val_n)
{
	struct go *g = self;
	(void)space, (void)key, (void)n;
	free(g->memory);
	g->memory = malloc(val_n);
	memcpy(g->memory, val, val_n);
	g->memory_n = val_n;
	return 0;
}

/* Runs git in the repository (or `sub` below it); its output is in g->out. */
static int go_git_in(struct go *g, const char *sub, const char *const *args)
{
	const char *argv[32] = {"git"};
	char cwd[PATH_MAX];
	uint32_t n = 1;
	while (*args)
		argv[n++] = *args++;
	snprintf(cwd, sizeof cwd, "%s%s%s", g->repo, *sub ? "/" : "", sub);
	struct vx_spawn sp = VX_SPAWN_INIT;
	int status = 0;
	sp.path = "/usr/bin/git";
	sp.argv = argv;
	sp.cwd = cwd;
	vx_buf_clear(&g->out);
	if (vx_spawn_capture(&sp, &g->out, NULL, 0, -1, &status) < 0)
		return -1;
	return status;
}
#define GO_GIT(g, ...) go_git_in(g, "", (const char *const[]){__VA_ARGS__, NULL})

static const char *go_pick_dir(struct go *g)
{
	static const char *const dirs[] = {"", "a", "a/b", "a/b/c", "src", "src/[id]", "build",
		"build/out", "lib.d", "lib", "x y", "node_modules/m", "a/node_modules", ".hid",
		"sub", "sub/in", "deep/er/still", "\xc3\xa9"};
	return dirs[go_rand(g, sizeof dirs / sizeof *dirs)];
}

/* A random path below the repository (static buffers). */
static const char *go_pick(struct go *g)
{
	static const char *const names[] = {"f", "g.c", "h.o", "x.log", "keep.log", "build", "lib",
		"-dash", "sp ace", "new\nline", "\xff\xfe", "\xc3\xbc.txt", ".env", "crlf.txt",
		"README.md", "a", "[id]", "sub", "t.tmp", "f~"};
	static char ring[4][512];
	static unsigned at;
	char *p = ring[at++ % 4];
	const char *d = go_pick_dir(g);
	snprintf(p, 512, "%s%s%s", d, *d ? "/" : "",
		names[go_rand(g, sizeof names / sizeof *names)]);
	return p;
}

static const char *go_abs(struct go *g, const char *rel)
{
	return vxt_path(g->repo, rel);
}

static void go_mkdirs(struct go *g, const char *rel)
{
	char p[512];
	snprintf(p, sizeof p, "%s", rel);
	char *slash = strrchr(p, '/');
	if (slash) {
		*slash = '\0';
		vx_mkdir_p(AT_FDCWD, go_abs(g, p), 0777);
	}
}

static void go_write(struct go *g, const char *rel, const char *text)
{
	go_mkdirs(g, rel);
	int fd = open(go_abs(g, rel),
		O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0666);
	if (fd >= 0) {
		assert_int_equal(vx_write_full(fd, text, strlen(text)), 0);
		close(fd);
	}
}

static const char *go_content(struct go *g)
{
	static const char *const texts[] = {
		"1\n", "2\n", "", "a\r\nb\r\n", "a\nb\n", "longer text\n", "$Id$\n", "3\n"};
	return texts[go_rand(g, sizeof texts / sizeof *texts)];
}

static void go_rules(struct go *g, char *text, size_t cap)
{
	static const char *const rules[] = {"*.o", "*.log", "!keep.log", "build/", "/build", "a/b",
		"lib*", "!lib.d", "**/c", "c/**", "a/**/f", "f", "!f", "\\#x", "\\!y", "trail \\ ",
		"trail   ", "[fg]", "[!a]*.c", "?.c", "src/[id]", "src/\\[id\\]", "*", "!*/",
		"!*.c", "/a/*", "node_modules", "sub/", "x y/", "**/er/**", "ab**/c", "*.t?p",
		"\xff*", "\xc3\xbc.txt", "[[:alpha:]]", "*~", "#comment", "/", "!", "**", "a*/b",
		"d**r/still", "README.md\r", "dee?/*r", "de*/**/f", "[a-", "src/**"};
	*text = '\0';
	for (uint32_t n = 1 + go_rand(g, 4); n; n--)
		snprintf(text + strlen(text), cap - strlen(text), "%s\n",
			rules[go_rand(g, sizeof rules / sizeof *rules)]);
	if (go_rand(g, 6) == 0 && *text)
		text[strlen(text) - 1] = '\0';
}

static void go_edit_ignore(struct go *g)
{
	char text[512], rel[256];
	go_rules(g, text, sizeof text);
	switch (g->plain ? 2 + go_rand(g, 6) : go_rand(g, 8)) {
	case 0:
		go_write(g, ".git/info/exclude", text);
		break;
	case 1:
		vxt_write(g->top, "home/.config/git/ignore", text);
		break;
	case 2: /* a link counts for nothing */
		snprintf(rel, sizeof rel, "%s/.gitignore", go_pick_dir(g));
		unlink(go_abs(g, rel));
		(void)!symlink("../f", go_abs(g, rel));
		break;
	case 3:
		snprintf(rel, sizeof rel, "%s/.gitignore", go_pick_dir(g));
		unlink(go_abs(g, rel));
		break;
	default:
		snprintf(rel, sizeof rel, "%s/.gitignore", go_pick_dir(g));
		unlink(go_abs(g, rel[0] == '/' ? rel + 1 : rel));
		go_write(g, rel[0] == '/' ? rel + 1 : rel, text);
	}
}

static void go_edit_attributes(struct go *g)
{
	static const char *const lines[] = {"* text=auto\n", "*.c text eol=crlf\n", "*.txt -text\n",
		"* binary\n", "*.md ident\n", "[attr]mine text\n* mine\n", "f filter=none\n",
		"\"sp ace\" text\n", ""};
	char rel[256];
	const char *d = go_pick_dir(g);
	snprintf(rel, sizeof rel, "%s%s.gitattributes", d, *d ? "/" : "");
	if (go_rand(g, 3) == 0)
		unlink(go_abs(g, rel));
	else
		go_write(g, g->plain || go_rand(g, 6) ? rel : ".git/info/attributes",
			lines[go_rand(g, sizeof lines / sizeof *lines)]);
}

static void go_edit_times(struct go *g, const char *p)
{
	struct timespec ts[2] = {{.tv_sec = 1600000000 + go_rand(g, 3)},
		{.tv_sec = 1600000000 + go_rand(g, 3), .tv_nsec = go_rand(g, 2) * 5}};
	if (go_rand(g, 2))
		ts[1].tv_nsec = UTIME_NOW;
	utimensat(AT_FDCWD, go_abs(g, p), ts, AT_SYMLINK_NOFOLLOW);
}

/* Same length, perhaps with the old time stamps put back. */
static void go_edit_in_place(struct go *g, const char *p)
{
	struct stat st;
	if (lstat(go_abs(g, p), &st) < 0 || !S_ISREG(st.st_mode) || !st.st_size || st.st_size > 64)
		return;
	int fd = open(go_abs(g, p), O_WRONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd >= 0) {
		(void)!pwrite(fd, go_rand(g, 2) ? "7" : "8", 1, 0);
		close(fd);
	}
	if (go_rand(g, 2)) {
		struct timespec ts[2] = {st.st_atim, st.st_mtim};
		utimensat(AT_FDCWD, go_abs(g, p), ts, 0);
	}
}

static void go_edit_nested(struct go *g)
{
	const char *d = go_pick_dir(g);
	char rel[256];
	if (!*d)
		return;
	vx_mkdir_p(AT_FDCWD, go_abs(g, d), 0777);
	snprintf(rel, sizeof rel, "%s/.git", d);
	switch (go_rand(g, 6)) {
	case 0:
		vx_rm_rf(AT_FDCWD, go_abs(g, rel));
		break;
	case 1: /* not a repository */
		vx_rm_rf(AT_FDCWD, go_abs(g, rel));
		vx_mkdir_p(AT_FDCWD, go_abs(g, rel), 0777);
		break;
	case 2:
		vx_rm_rf(AT_FDCWD, go_abs(g, rel));
		go_write(g, rel, "gitdir: nowhere\n");
		break;
	case 3:
		GO_GIT(g, "init", "-q", d);
		go_git_in(g, d, (const char *const[]){"add", "-A", ".", NULL});
		go_git_in(g, d,
			(const char *const[]){"commit", "-q", "--allow-empty", "-m", "x", NULL});
		GO_GIT(g, "add", "--", d); /* a gitlink, unless there are tracked files below */
		break;
	default:
		GO_GIT(g, "init", "-q", d);
	}
}

static void go_edit_swap(struct go *g)
{
	const char *d = go_pick_dir(g), *p = go_pick(g);
	char rel[300], target[300];
	snprintf(rel, sizeof rel, "%s.real", d);
	if (!*d)
		return;
	switch (go_rand(g, 4)) {
	case 0: /* a directory becomes a link to itself under another name: every stat below stays
		   equal */
		if (rename(go_abs(g, d), go_abs(g, rel)) == 0) {
			const char *slash = strrchr(rel, '/');
			snprintf(target, sizeof target, "%s", slash ? slash + 1 : rel);
			(void)!symlink(target, go_abs(g, d));
		}
		break;
	case 1: /* and back */
		if (unlink(go_abs(g, d)) == 0)
			(void)!rename(go_abs(g, rel), go_abs(g, d));
		break;
	case 2: /* a file becomes a directory */
		if (unlink(go_abs(g, p)) == 0)
			vx_mkdir_p(AT_FDCWD, go_abs(g, p), 0777);
		break;
	default: /* a file becomes a link, or a link a file */
		if (unlink(go_abs(g, p)) == 0)
			(void)!symlink(go_rand(g, 2) ? "f" : "nowhere", go_abs(g, p));
	}
}

static void go_edit_index(struct go *g, const char *p)
{
	static const char *const flags[] = {"--assume-unchanged", "--no-assume-unchanged",
		"--skip-worktree", "--no-skip-worktree", "--force-remove"};
	switch (go_rand(g, 10)) {
	case 0:
		GO_GIT(g, "update-index", "--index-version",
			(const char *const[]){"2", "3", "4"}[go_rand(g, 3)]);
		break;
	case 1:
		GO_GIT(g, "update-index",
			go_rand(g, 2) ? "--untracked-cache" : "--no-untracked-cache");
		break;
	case 2:
		if (go_rand(g, 3) == 0)
			GO_GIT(g, "update-index", "--split-index");
		else
			GO_GIT(g, "update-index", "--no-split-index");
		break;
	case 3:
		GO_GIT(g, "update-index", "-q", "--refresh");
		break;
	case 4: {
		char line[700], cmd[1500];
		if (strchr(p, '\n') || GO_GIT(g, "hash-object", "-w", "--stdin") != 0)
			break;
		snprintf(line, sizeof line, "%.40s", vx_buf_str(&g->out));
		snprintf(cmd, sizeof cmd,
			"cd '%s' && printf '100644 %s 1\\t%s\\n100644 %s 3\\t%s\\n' | git update-index --index-info 2>/dev/null",
			g->repo, line, p, line, p);
		vxt_sh(cmd, NULL);
		break;
	}
	default:
		GO_GIT(g, "update-index", flags[go_rand(g, 5)], "--", p);
	}
}

static void go_edit_config(struct go *g)
{
	static const char *const pairs[][2] = {{"core.fileMode", "false"},
		{"core.fileMode", "true"}, {"core.trustctime", "false"},
		{"core.trustctime", "true"}, {"core.checkStat", "minimal"},
		{"core.checkStat", "default"}, {"core.fileMode", "true"},
		{"core.trustctime", "true"}, {"core.checkStat", "default"},
		{"index.skipHash", "true"}};
	uint32_t i = go_rand(g, sizeof pairs / sizeof *pairs);
	GO_GIT(g, "config", pairs[i][0], pairs[i][1]);
}

static void go_edit(struct go *g)
{
	const char *p = go_pick(g), *q = go_pick(g);
	uint32_t kind = go_rand(g, 30);
	while (g->plain && ((kind >= 12 && kind <= 17) || (kind >= 23 && kind <= 25) || kind == 28))
		kind = go_rand(g, 30);
	snprintf(g->last, sizeof g->last, "kind %u on \"%.80s\" \"%.80s\"", kind, p, q);
	switch (kind) {
	case 0 ... 5:
		go_write(g, p, go_content(g));
		break;
	case 6 ... 7:
		go_edit_in_place(g, p);
		break;
	case 8:
		unlink(go_abs(g, p));
		break;
	case 9:
		if (*(p = go_pick_dir(g)))
			vx_rm_rf(AT_FDCWD, go_abs(g, p));
		break;
	case 10:
		chmod(go_abs(g, p), go_rand(g, 2) ? 0755 : 0644);
		break;
	case 11:
		go_edit_swap(g);
		break;
	case 12 ... 14:
		GO_GIT(g, "add", "-f", "--", p);
		break;
	case 15:
		GO_GIT(g, "add", "-A");
		break;
	case 16:
		GO_GIT(g, "commit", "-q", "-m", "x");
		break;
	case 17:
		GO_GIT(g, "add", "-N", "--", p);
		break;
	case 18 ... 20:
		go_edit_ignore(g);
		break;
	case 21:
		if (g->attributes)
			go_edit_attributes(g);
		break;
	case 22:
		go_edit_times(g, p);
		break;
	case 23:
		go_edit_nested(g);
		break;
	case 24 ... 25:
		go_edit_index(g, p);
		break;
	case 26:
		(void)!rename(go_abs(g, p), go_abs(g, q));
		break;
	case 27:
		go_mkdirs(g, p);
		(void)!mkfifo(go_abs(g, p), 0666);
		break;
	case 28:
		go_edit_config(g);
		break;
	default:
		go_mkdirs(g, p);
		(void)!symlink(go_rand(g, 2) ? "f" : "..", go_abs(g, p));
	}
}
