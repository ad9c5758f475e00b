/* The random workspace of affected_model.h and the edits made to it. Included there alone. */
static uint32_t am_rand(struct am *m, uint32_t n)
{
	m->rng ^= m->rng << 13;
	m->rng ^= m->rng >> 7;
	m->rng ^= m->rng << 17;
	return (uint32_t)(m->rng >> 20) % n;
}
#define AM_ONE(m, ...)                                 \
	(((const char *const[]){__VA_ARGS__})[am_rand( \
		m, (uint32_t)(sizeof((const char *const[]){__VA_ARGS__}) / sizeof(char *)))])

/* Text under construction; each call has the line of its edit in m->last. */
static void am_write(struct am *m, const char *path, const char *text)
{
	struct stat st;
	const char *abs = vxt_path(m->p.dir, path);

	if (lstat(abs, &st) == 0 && !S_ISREG(st.st_mode))
		vx_rm_rf(AT_FDCWD, abs);
	for (char *slash = strchr((char *)(uintptr_t)(abs + strlen(m->p.dir) + 1), '/'); slash;
		slash = strchr(slash + 1, '/')) { /* a file or a link in a directory's place */
		*slash = '\0';
		if (lstat(abs, &st) == 0 && !S_ISDIR(st.st_mode))
			vx_rm_rf(AT_FDCWD, abs);
		*slash = '/';
	}
	vxt_write(m->p.dir, path, text);
}

static const char *am_dir(struct am *m)
{
	return AM_ONE(m, "p/a", "p/b", "p/c", "p/d", "p/e", "p/a/in", "q/f");
}

static const char *am_name(const char *dir)
{
	return strrchr(dir, '/') + 1;
}

static const char *am_file(struct am *m)
{
	static char path[2][256];
	static unsigned at;
	char *p = path[at++ % 2];

	snprintf(p, 256, "%s%s%s", am_rand(m, 8) ? am_dir(m) : AM_ONE(m, "shared", "vendor/lib/s"),
		AM_ONE(m, "/src/", "/src/deep/", "/test/", "/", "/docs/", "/gen/"),
		AM_ONE(m, "x", "y.c", "z.txt", "w.md", "probe.txt", "data.bin"));
	return p;
}

static void am_manifest(struct am *m, const char *dir)
{
	char text[1024];
	size_t n = (size_t)snprintf(text, sizeof text,
		"{%s\"name\":\"%s%s\",\"version\":\"%u.0.0\"", AM_ONE(m, "", " ", "\n"),
		am_name(dir), am_rand(m, 25) ? "" : "-renamed", 1 + am_rand(m, 2));

	n += (size_t)snprintf(text + n, sizeof text - n, ",\"%s\":{",
		AM_ONE(m, "dependencies", "devDependencies"));
	bool first = true;
	/* upstream is earlier in the alphabet: no cycles, except now and then */
	for (const char *d = "abcdef"; *d; d++)
		if ((*d < *am_name(dir) || !am_rand(m, 60)) && am_rand(m, 3) == 0) {
			n += (size_t)snprintf(text + n, sizeof text - n, "%s\"%c\":\"%s\"",
				first ? "" : ",", *d, AM_ONE(m, "*", "*", "*", "^1.0.0"));
			first = false;
		}
	n += (size_t)snprintf(
		text + n, sizeof text - n, "},\"scripts\":{\"build\":\"echo %u\"", am_rand(m, 3));
	if (am_rand(m, 2))
		n += (size_t)snprintf(text + n, sizeof text - n, ",\"test\":\"echo t\"");
	if (!am_rand(m, 4))
		n += (size_t)snprintf(text + n, sizeof text - n, ",\"lint\":\"echo l\"");
	snprintf(text + n, sizeof text - n, "}}\n");
	char path[256];
	snprintf(path, sizeof path, "%s/package.json", dir);
	am_write(m, path, text);
}

/* One task of a vx.json. */
static size_t am_task(struct am *m, const char *name, char *out, size_t cap)
{
	size_t n = (size_t)snprintf(out, cap, "\"%s\":{", name);

	if (!am_rand(m, 12)) /* a group */
		return n + (size_t)snprintf(out + n, cap - n, "\"dependsOn\":[%s]}",
				   AM_ONE(m, "\"^build\"", "\"^gen.*\"", "\"^test\""));
	if (am_rand(m, 2))
		n += (size_t)snprintf(out + n, cap - n, "\"dependsOn\":[%s%s],",
			strcmp(name, "build") == 0 ? "\"^build\""
						   : AM_ONE(m, "\"build\"", "\"^build\""),
			AM_ONE(m, "", "", ",\"^gen.*\"", ",\"^test\""));
	n += (size_t)snprintf(out + n, cap - n, "\"exec\":{\"command\":\"echo %u\"%s}",
		am_rand(m, 3),
		AM_ONE(m, "", "", ",\"env\":{\"define\":{\"A\":\"1\"}}", ",\"sandbox\":true",
			",\"timeout\":5"));
	if (!am_rand(m, 6))
		return n + (size_t)snprintf(out + n, cap - n, "}");
	n += (size_t)snprintf(out + n, cap - n, ",\"cache\":{\"inputs\":{\"files\":[%s]%s%s%s},",
		AM_ONE(m, "\"src/**\"", "\"**\"", "\"src/**\",\"!src/deep/**\"", "\"x\",\"*.md\"",
			"", "\"{src,test}/**\"", "\"**\",\"!**/*.md\"", "\"docs/\""),
		AM_ONE(m, "", "", "", ",\"workspaceFiles\":[\"shared/**\"]",
			",\"workspaceFiles\":[\"tsconfig.json\",\"!shared/x\"]",
			",\"workspaceFiles\":[\"**/z.txt\"]"),
		AM_ONE(m, "", "", "", "", "", ",\"runtime\":[\"cat probe.txt || :\"]",
			",\"runtime\":[\"git --version\"]"),
		AM_ONE(m, "", "", "", ",\"env\":[\"HOME\"]", ",\"tasks\":[]"));
	n += (size_t)snprintf(out + n, cap - n, "\"outputs\":{\"files\":[%s]}}}",
		strcmp(name, "build") == 0
			? AM_ONE(m, "\"dist/**\"", "\"dist/**\"", "\"gen/**\"", "")
			: "");
	return n;
}

static void am_config(struct am *m, const char *dir)
{
	static const char *const tasks[] = {"build", "test", "gen.a", "lint"};
	char text[8192], path[256];
	size_t n = (size_t)snprintf(text, sizeof text, "%s{\"tasks\":{", AM_ONE(m, "", " "));
	bool first = true;

	for (size_t i = 0; i < sizeof tasks / sizeof *tasks; i++)
		if (am_rand(m, i < 2 ? 6 : 2)) {
			n += (size_t)snprintf(text + n, sizeof text - n, "%s", first ? "" : ",");
			n += am_task(m, tasks[i], text + n, sizeof text - n);
			first = false;
		}
	snprintf(text + n, sizeof text - n, "}}\n");
	snprintf(path, sizeof path, "%s/vx.json", dir);
	if (!am_rand(m, 15))
		vx_rm_rf(AT_FDCWD, vxt_path(m->p.dir, path));
	else
		am_write(m, path, text);
}

static size_t am_turbo_task(struct am *m, const char *name, char *out, size_t cap)
{
	return (size_t)snprintf(out, cap, "\"%s\":{%s%s%s%s}", name,
		AM_ONE(m, "\"dependsOn\":[\"^build\"]", "\"dependsOn\":[]",
			"\"dependsOn\":[\"^build\"]"),
		AM_ONE(m, "", "", ",\"inputs\":[\"src/**\"]",
			",\"inputs\":[\"$TURBO_DEFAULT$\",\"!**/*.md\"]",
			",\"inputs\":[\"$TURBO_DEFAULT$\",\"$TURBO_ROOT$/shared/**\"]",
			",\"inputs\":[\"src/**\",\".env\",\"../../tsconfig.json\"]"),
		AM_ONE(m, "", ",\"outputs\":[\"dist/**\"]", ",\"outputs\":[\"gen/**\"]"),
		AM_ONE(m, "", "", ",\"cache\":false", ",\"env\":[\"HOME\"]"));
}

static void am_turbo(struct am *m, const char *dir)
{
	static const char *const tasks[] = {"build", "test", "lint"};
	char text[8192], path[256];
	bool root = !*dir, first = true;
	size_t n = (size_t)snprintf(text, sizeof text, "{%s",
		!root ? "\"extends\":[\"//\"],"
		      : AM_ONE(m, "", "\"globalDependencies\":[\"shared/*.md\",\".env\"],",
				"\"globalDependencies\":[\"tsconfig.json\"],",
				"\"globalEnv\":[\"HOME\"],"));

	n += (size_t)snprintf(text + n, sizeof text - n, "\"tasks\":{");
	for (size_t i = 0; i < sizeof tasks / sizeof *tasks; i++)
		if (root || am_rand(m, 2)) {
			n += (size_t)snprintf(text + n, sizeof text - n, "%s", first ? "" : ",");
			n += am_turbo_task(m, tasks[i], text + n, sizeof text - n);
			first = false;
		}
	snprintf(text + n, sizeof text - n, "}}\n");
	snprintf(path, sizeof path, "%s%sturbo.json", dir, root ? "" : "/");
	if (!root && !am_rand(m, 3))
		vx_rm_rf(AT_FDCWD, vxt_path(m->p.dir, path));
	else
		am_write(m, path, text);
}

static void am_program(struct am *m, const char *dir)
{
	char text[2048], path[256];

	snprintf(text, sizeof text,
		"import { cmd } from \"../../shared/preset%s.mjs\"\n%s"
		"export default { tasks: { build: { exec: { command: cmd + %u },"
		" cache: { inputs: { files: [\"src/**\"] }, outputs: { files: [] } } }%s } }\n",
		AM_ONE(m, "", "2"),
		AM_ONE(m, "", "",
			"import { readdirSync } from \"node:fs\"\nreaddirSync(\"shared\")\n"),
		am_rand(m, 2), AM_ONE(m, "", ", \"gen.a\": { exec: { command: \"g\" } }"));
	snprintf(path, sizeof path, "%s/vx.json", dir);
	vx_rm_rf(AT_FDCWD, vxt_path(m->p.dir, path));
	snprintf(path, sizeof path, "%s/vx.config.mjs", dir);
	if (!am_rand(m, 4))
		vx_rm_rf(AT_FDCWD, vxt_path(m->p.dir, path));
	else
		am_write(m, path, text);
}

static void am_root(struct am *m)
{
	char text[512];

	snprintf(text, sizeof text,
		"{%s\"name\":\"root\",\"workspaces\":[\"p/*\",\"p/a/in\",\"q/*\"%s%s],"
		"\"packageManager\":\"npm@10.0.0\"%s}\n",
		AM_ONE(m, "", " "), AM_ONE(m, "", "", ",\"vendor/lib/*\""),
		AM_ONE(m, "", "", "", ",\"!p/e\""),
		AM_ONE(m, "", "", ",\"devDependencies\":{\"a\":\"*\"}",
			",\"scripts\":{\"build\":\"echo r\"}"));
	am_write(m, "package.json", text);
}

static void am_link(struct am *m)
{
	char link[256], up[64] = "";
	const char *from = am_file(m), *to = am_file(m);

	snprintf(link, sizeof link, "%s", from);
	for (const char *s = link; (s = strchr(s, '/')); s++)
		strcat(up, "../");
	char target[512];
	snprintf(target, sizeof target, "%s%s", up, am_rand(m, 3) ? to : "shared");
	am_write(m, link, "");
	unlink(vxt_path(m->p.dir, link));
	assert_int_equal(symlink(target, vxt_path(m->p.dir, link)), 0);
}

/* A manifest that is a link, as some generators of workspaces make them. */
static void am_linked_manifest(struct am *m)
{
	const char *dir = am_dir(m);
	char path[256], target[256];

	am_manifest(m, dir);
	snprintf(path, sizeof path, "%s/package.json", dir);
	snprintf(target, sizeof target, "manifests/%s.json", am_name(dir));
	vx_mkdir_p(AT_FDCWD, vxt_path(m->p.dir, "manifests"), 0777);
	rename(vxt_path(m->p.dir, path), vxt_path(m->p.dir, target));
	snprintf(target, sizeof target, "%smanifests/%s.json",
		strchr(strchr(dir, '/') + 1, '/') ? "../../../" : "../../", am_name(dir));
	assert_int_equal(symlink(target, vxt_path(m->p.dir, path)), 0);
}

static void am_edit_file(struct am *m)
{
	const char *path = am_file(m), *other;
	char text[32];

	switch (am_rand(m, 8)) {
	case 0:
		vx_rm_rf(AT_FDCWD, vxt_path(m->p.dir, path));
		break;
	case 1:
		other = am_file(m);
		am_write(m, other, "");
		rename(vxt_path(m->p.dir, path), vxt_path(m->p.dir, other));
		break;
	case 2:
		am_write(m, path, "x\n");
		chmod(vxt_path(m->p.dir, path), am_rand(m, 2) ? 0755 : 0644);
		break;
	case 3:
		am_link(m);
		break;
	case 4:
		am_write(m, path, "1\r\n2\r\n");
		break;
	default:
		snprintf(text, sizeof text, "%u\n", am_rand(m, 4));
		am_write(m, path, text);
	}
}

static void am_edit_top(struct am *m)
{
	char text[128];

	snprintf(text, sizeof text, "{ \"n\": %u }\n", am_rand(m, 3));
	switch (am_rand(m, 7)) {
	case 0:
		am_write(m, AM_ONE(m, "package-lock.json", ".npmrc", "yarn.lock"),
			am_rand(m, 2) ? "a\n" : "b\n");
		break;
	case 1:
		vx_rm_rf(AT_FDCWD,
			vxt_path(m->p.dir, AM_ONE(m, "package-lock.json", ".npmrc", "yarn.lock")));
		break;
	case 2:
		am_write(m, AM_ONE(m, ".gitattributes", "p/b/.gitattributes"),
			AM_ONE(m, "*.txt eol=crlf\n", "*.md text\n", "*.x linguist-generated\n",
				"* -text\n*.c text\n"));
		break;
	case 3:
		am_write(m, "tsconfig.json", text);
		break;
	case 4:
		am_write(m, AM_ONE(m, "README.md", "shared/x", "shared/w.md"), text);
		break;
	case 5:
		if (m->kind == AM_VX)
			am_write(m, "vx.workspace.json",
				AM_ONE(m, "{}", "{\"concurrency\":\"2\"}",
					"{\"tasks\":{\"lint\":{\"exec\":{\"command\":\"l\"}}}}",
					"{\"rules\":{\"exclusiveOutputs\":true}}",
					"{\"tasks\":{\"test\":{\"dependsOn\":[\"^build\"]}}}"));
		break;
	default:
		am_root(m);
	}
}

static void am_edit_project(struct am *m)
{
	const char *dir = am_dir(m);

	if (!am_rand(m, 12))
		vx_rm_rf(AT_FDCWD, vxt_path(m->p.dir, dir));
	else if (!am_rand(m, 12))
		am_linked_manifest(m);
	else if (m->kind == AM_TURBO && am_rand(m, 2))
		am_turbo(m, am_rand(m, 2) ? dir : "");
	else if (m->kind == AM_VX && m->programs && !am_rand(m, 3))
		am_program(m, AM_ONE(m, "p/b", "p/d"));
	else if (m->kind == AM_VX && am_rand(m, 2))
		am_config(m, dir);
	else
		am_manifest(m, dir);
}

/* Repositories inside: a submodule, and one that nobody tracks until the next commit does. */
static void am_edit_inside(struct am *m)
{
	switch (am_rand(m, 4)) {
	case 0:
		am_write(m, AM_ONE(m, "vendor/lib/s/x", "vendor/lib/s/src/x", "vendor/lib/t/x"),
			AM_ONE(m, "1\n", "2\n", "3\n"));
		break;
	case 1:
		am_write(m, "vendor/lib/s/package.json",
			AM_ONE(m,
				"{\"name\":\"s\",\"version\":\"1.0.0\",\"scripts\":{\"build\":\"s\"}}",
				"{\"name\":\"s\",\"version\":\"1.0.1\",\"scripts\":{\"build\":\"s\"}}"));
		break;
	case 2:
		am_write(m, "vendor/lib/s/x", AM_ONE(m, "4\n", "5\n"));
		am_git(m, "vendor/lib", "add -A");
		am_git(m, "vendor/lib", "commit -q --allow-empty -m inside");
		break;
	default:
		if (m->embedded)
			am_write(m, "p/c/src/emb/x", AM_ONE(m, "1\n", "2\n"));
		m->embedded = true;
		am_write(m, "p/c/src/emb/y", "1\n");
		am_git(m, "p/c/src/emb", "init -q -b main .");
	}
}

static void am_edit(struct am *m)
{
	uint32_t k = am_rand(m, 20);

	if (k < 9)
		am_edit_file(m);
	else if (k < 14)
		am_edit_project(m);
	else if (k < 18)
		am_edit_top(m);
	else if (k < 19 && m->programs)
		am_write(m, AM_ONE(m, "shared/preset.mjs", "shared/preset2.mjs"),
			AM_ONE(m, "export const cmd = \"a\"\n", "export const cmd = \"b\"\n"));
	else
		am_edit_inside(m);
}
