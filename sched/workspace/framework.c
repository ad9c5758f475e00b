/* Turborepo's framework inference: a package that depends on a framework is keyed by, and sees, the
 * variables that the framework builds into what it makes. The table is that of Turborepo 2.11
 * (docs: "Framework Inference"); the first entry that fits counts. */
#include "manifest.h"

#include "vx/plan.h"

#include <string.h>

/* What Nitro looks at, and so what is built on it. */
#define NITRO                                                                                   \
	"NITRO_*", "SERVER_*", "AWS_APP_ID", "INPUT_AZURE_STATIC_WEB_APPS_API_TOKEN", "CLEAVR", \
		"CF_PAGES", "FIREBASE_APP_HOSTING", "NETLIFY", "STORMKIT", "NOW_BUILDER",       \
		"ZEABUR", "RENDER"

static const struct framework {
	const char *packages[4]; /* one of them */
	const char *beside;      /* and this one too; NULL none */
	const char *env[16];
} table[] = {
	{{"astro"}, NULL, {"PUBLIC_*"}},
	{{"blitz"}, NULL, {"NEXT_PUBLIC_*"}},
	{{"react-scripts", "react-dev-utils"}, NULL, {"REACT_APP_*"}},
	{{"expo"}, NULL, {"EXPO_PUBLIC_*"}},
	{{"gatsby"}, NULL, {"GATSBY_*"}},
	{{"next"}, NULL, {"NEXT_PUBLIC_*", "NEXT_DEPLOYMENT_ID", VX_SKEW_ID}},
	{{"nitropack", "nitropack-nightly", "nitro", "nitro-nightly"}, NULL, {NITRO}},
	{{"nuxt", "nuxt-edge", "nuxt3", "nuxt3-edge"}, NULL,
		{"NUXT_*", "NUXT_ENV_*", NITRO, "LAUNCH_EDITOR"}},
	{{"@redwoodjs/core"}, NULL, {"REDWOOD_ENV_*"}},
	{{"@remix-run/dev", "@remix-run/react", "@remix-run/serve"}, NULL, {"REMIX_*"}},
	{{"@sanity/cli"}, NULL, {"SANITY_STUDIO_*"}},
	{{"solid-js"}, "solid-start", {"VITE_*"}},
	{{"@sveltejs/kit"}, NULL, {"VITE_*", "PUBLIC_*"}},
	{{"vite"}, NULL, {"VITE_*"}},
	{{"@vue/cli-service"}, NULL, {"VUE_APP_*", "LAUNCH_EDITOR"}},
};

struct package {
	const struct vx_manifest *m;
	const struct vx_workspace *ws;
	const struct vx_project *p;
};

/* Of the registry: a framework's own repository is built with none. */
static bool depends_on(const struct package *k, const char *name)
{
	bool found = false;
	for (uint32_t i = 0; i < k->m->n_deps && !found; i++)
		found = !k->m->deps[i].peer && strcmp(k->m->deps[i].name, name) == 0;
	for (uint32_t i = 0; i < k->p->n_deps && found; i++)
		found = strcmp(k->ws->projects[k->p->deps[i]].name, name) != 0;
	return found;
}

static bool fits(const struct framework *f, const struct package *k)
{
	if (f->beside && !depends_on(k, f->beside))
		return false;
	for (size_t i = 0; i < sizeof f->packages / sizeof *f->packages && f->packages[i]; i++)
		if (depends_on(k, f->packages[i]))
			return true;
	return false;
}

struct vx_strs vx_framework_env(
	const struct vx_manifest *m, const struct vx_workspace *ws, const struct vx_project *p)
{
	struct package k = {m, ws, p};
	struct vx_strs s = {0};

	for (uint32_t i = 0; i < sizeof table / sizeof *table; i++)
		if (fits(&table[i], &k)) {
			s.v = table[i].env;
			while (s.n < 16 && s.v[s.n])
				s.n++;
			break;
		}
	return s;
}
