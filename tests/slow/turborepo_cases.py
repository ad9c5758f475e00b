"""The workspaces of turborepo.py. Each case: files (text, or an object that is written as JSON), tasks (each planned alone), runs (lists of arguments),
filters (each a value or a list of values, for filter_task), env (variables of both tools), after (edits behind the first commit), cwd, single (one package:
Turborepo's task ids have no package then), whole_env (keys fold all of the
environment, so they differ with every variable), apart (what of the differences is meant, and why)."""
from collections import namedtuple

Link = namedtuple("Link", "target")
Run = namedtuple("Run", "text")
B = "echo build"


def pkg(name, scripts=("build",), version="1.0.0", **more):
    scripts = scripts if isinstance(scripts, dict) else {s: "echo " + s for s in scripts}
    return {"name": name, "version": version, "scripts": scripts, **more}


def root(pm="pnpm@9.0.0", scripts=None, **more):
    return {"name": "root", "private": True, "packageManager": pm, "scripts": scripts or {}, **more}


PNPM = {"pnpm-workspace.yaml": "packages:\n  - apps/*\n  - packages/*\n", "pnpm-lock.yaml": "lockfileVersion: '9.0'\n\nsettings:\n  autoInstallPeers: true\n  excludeLinksFromLockfile: false\n\nimporters:\n\n  .: {}\n",
        ".gitignore": "node_modules\ndist\n.turbo\n.vx\n", "package.json": root()}
SRC = {"apps/web/src/index.ts": "web", "apps/web/README.md": "r", "packages/ui/src/index.ts": "ui", "packages/ui/README.md": "r",
       "packages/util/src/index.ts": "util", "packages/util/test/a.test.ts": "t"}
THREE = {**PNPM, **SRC, "apps/web/package.json": pkg("web", ("build", "lint", "test", "dev"), dependencies={"ui": "workspace:*"}),
         "packages/ui/package.json": pkg("ui", ("build", "lint"), dependencies={"util": "workspace:^"}),
         "packages/util/package.json": pkg("util", ("build", "test", "dev"))}
SCOPED = {**PNPM, **SRC, "apps/web/package.json": pkg("@acme/web", ("build",), dependencies={"@acme/ui": "workspace:*"}),
          "apps/docs/package.json": pkg("@acme/docs", ("build",), dependencies={"@acme/util": "workspace:*"}),
          "apps/nested/deep/package.json": pkg("not-a-member"),
          "packages/ui/package.json": pkg("@acme/ui", ("build",), dependencies={"@acme/util": "workspace:*"}),
          "packages/util/package.json": pkg("@acme/util"), "packages/plain/package.json": pkg("plain"),
          "turbo.json": {"tasks": {"build": {"dependsOn": ["^build"]}}}}


def turbo(tasks, **more):
    return {"$schema": "https://turborepo.com/schema.json", **more, "tasks": tasks}


def with_tasks(tasks, base=THREE, more=None, **settings):
    return {**base, "turbo.json": turbo(tasks, **settings), **(more or {})}


CASES = {}
LINKS = "turbo takes the content behind a link for its id; here a link is its target's name, and stands in `links`; what it leads to stands among the inputs by its own path"
NOT_THERE = "documented: a task with \"extends\": false alone does not exist for the package, nor for those that extend it; turbo still runs it where something leads to it"
CASES["pnpm: graph shapes"] = dict(tasks=["build", "lint", "test", "dev"], files=with_tasks({
    "build": {"dependsOn": ["^build"], "outputs": ["dist/**", "!dist/cache/**"]}, "lint": {"dependsOn": ["^lint"]},
    "test": {"dependsOn": ["build"], "env": ["CI", "TEST_*", "!TEST_X"], "inputs": ["src/**", "test/**"]},
    "dev": {"cache": False, "persistent": True}}))
CASES["pkg#task and root tasks"] = dict(tasks=["build", "lint", "check"], files=with_tasks({
    "build": {"dependsOn": ["^build", "//#prepare"]}, "web#build": {"dependsOn": ["ui#build", "util#test"], "outputs": [".next/**", "!.next/cache/**"]},
    "//#prepare": {"inputs": ["scripts/**"], "outputs": ["generated/**"]}, "//#check": {"dependsOn": ["build"]}, "lint": {"dependsOn": ["//#prepare", "util#dev"]},
    "test": {}, "dev": {}, "check": {}},
    more={"package.json": root(scripts={"prepare": "echo p", "check": "echo c", "build": "turbo run build"}), "scripts/a.sh": "x", "generated/x": "x"}))
CASES["transit nodes"] = dict(tasks=["topo", "lint", "build"], files=with_tasks({
    "topo": {"dependsOn": ["^topo"]}, "lint": {"dependsOn": ["topo"]}, "build": {"dependsOn": ["^topo", "^missing"]}, "missing": {"dependsOn": ["^missing"]}}))
CASES["inputs"] = dict(tasks=["build", "lint", "test", "dev", "a", "b", "c", "d", "e", "f"], files=with_tasks({
    "build": {"inputs": ["$TURBO_DEFAULT$", "!README.md"]}, "lint": {"inputs": ["src", "!src/gen"]}, "test": {"inputs": ["**/*.ts", "!**/*.test.ts"]},
    "dev": {"inputs": ["$TURBO_DEFAULT$", ".env*"]}, "a": {"inputs": ["../../tsconfig.base.json", "src/**"]},
    "b": {"inputs": ["$TURBO_ROOT$/tsconfig.base.json", "$TURBO_DEFAULT$"]}, "c": {"inputs": ["$TURBO_ROOT$/conf/**", "!$TURBO_ROOT$/conf/x.*", "src/*"]},
    "d": {"inputs": ["{src,test}/**", "*.{md,json}"]}, "e": {"inputs": ["dist/**", "node_modules/x/**"]}, "f": {"inputs": ["./src/**", "src/[id]/*", "s?c/*"]}},
    more={f"{p}/package.json": pkg(n, "build lint test dev a b c d e f".split()) for p, n in (("apps/web", "web"), ("packages/ui", "ui"))} | {
        "tsconfig.base.json": "{}", "conf/a.json": "1", "conf/x.json": "2", "apps/web/.env": "E", "apps/web/.env.local": "E2", "apps/web/src/gen/g.ts": "g",
        "apps/web/src/[id]/page.tsx": "p", "apps/web/src/i/page.tsx": "p", "apps/web/.gitignore": ".env.local\n"}),
    after=[{"apps/web/dist/out.js": "o", "apps/web/node_modules/x/i.js": "m", "apps/web/new.ts": "untracked", "packages/ui/src/index.ts": "changed"}])
CASES["outputs"] = dict(tasks=["build", "lint", "test", "dev"], files=with_tasks({
    "build": {"outputs": ["dist/**", "!dist/**/*.map", "build"]}, "lint": {"outputs": ["$TURBO_ROOT$/out/**", "!$TURBO_ROOT$/out/tmp/**", "./lib/**"]},
    "test": {"outputs": []}, "dev": {"outputs": ["../shared/**", "dist/"], "outputLogs": "hash-only"}}))
CASES["env"] = dict(whole_env=True, tasks=["build", "lint", "test", "dev"], env={"MY_API_URL": "1", "MY_API_KEY": "2", "NODE_ENV": "test"}, files=with_tasks({
    "build": {"env": ["MY_API_*", "!MY_API_KEY", "NODE_ENV", "A"]}, "lint": {"env": ["*"], "passThroughEnv": ["SECRET"]}, "test": {"env": ["B", "A", "B"]},
    "dev": {"env": [], "passThroughEnv": []}}, globalEnv=["GLOBAL", "G_*"], globalPassThroughEnv=["HOME2"], globalDependencies=["tsconfig.base.json", ".env", "conf/**", "!conf/x"],
    more={"tsconfig.base.json": "{}", ".env": "x", "conf/a": "1"}))
CASES["package configurations"] = dict(tasks=["build", "lint", "test", "dev", "special"], files=with_tasks({
    "build": {"dependsOn": ["^build"], "outputs": ["dist/**"], "env": ["A"], "inputs": ["src/**"]}, "lint": {"outputs": ["l"], "outputLogs": "new-only"}, "test": {"cache": False},
    "dev": {"cache": False, "persistent": True, "passThroughEnv": ["P"]}, "ui#lint": {"env": ["UI"]}}, more={
        "apps/web/package.json": pkg("web", ("build", "lint", "test", "dev", "special"), dependencies={"ui": "workspace:*"}),
        "apps/web/turbo.json": {"extends": ["//"], "tasks": {"build": {"outputs": ["$TURBO_EXTENDS$", ".next/**", "!.next/cache/**"], "env": ["$TURBO_EXTENDS$", "B"]},
                                                             "special": {"dependsOn": ["build"], "outputs": ["s"]}, "test": {"cache": True, "dependsOn": ["special"]}}},
        "packages/ui/turbo.json": {"extends": ["//"], "tasks": {"lint": {"outputs": ["x"]}, "build": {"dependsOn": [], "inputs": ["$TURBO_DEFAULT$"]}}},
        "packages/util/turbo.jsonc": "// with comments\n{\"extends\": [\"//\"], /* and more */ \"tasks\": {\"dev\": {\"persistent\": false,},},}\n"}))
CASES["extends another package, extends false"] = dict(tasks=["build", "lint", "test"], files=with_tasks({
    "build": {"outputs": ["dist/**"], "env": ["A"]}, "lint": {"dependsOn": ["build"]}, "test": {"inputs": ["test/**"], "dependsOn": ["^build"]}}, more={
        "packages/base/package.json": pkg("base", ()),
        "packages/base/turbo.json": {"extends": ["//"], "tasks": {"build": {"outputs": ["$TURBO_EXTENDS$", "lib/**"]}, "lint": {"extends": False}}},
        "apps/web/turbo.json": {"extends": ["//", "base"], "tasks": {"build": {"env": ["$TURBO_EXTENDS$", "W"]}}},
        "packages/util/turbo.json": {"extends": ["//"], "tasks": {"test": {"extends": False, "outputs": ["coverage/**"]}, "build": {"extends": False}}}}),
    apart={"lint: tasks:": NOT_THERE, "test: tasks:": NOT_THERE})
CASES["with, interactive, interruptible"] = dict(tasks=["dev", "build", "shell"], files=with_tasks({
    "build": {"dependsOn": ["^build"]}, "web#dev": {"with": ["util#dev"], "persistent": True, "cache": False}, "dev": {"persistent": True, "interruptible": True, "cache": False},
    "shell": {"interactive": True, "cache": False}}, more={"packages/ui/package.json": pkg("ui", ("build", "shell"))}),
    runs=[["dev", "--filter=web"], ["build", "dev", "--filter=ui"]])
CASES["several tasks, pkg#task on the command line"] = dict(tasks=[], files=with_tasks({
    "build": {"dependsOn": ["^build"]}, "test": {"dependsOn": ["build"]}, "lint": {}, "dev": {}}),
    runs=[["build", "test"], ["web#build"], ["util#test", "lint"], ["lint", "test", "--filter=ui"]])
CASES["a script that is empty, pre and post scripts"] = dict(tasks=["build", "lint"], files=with_tasks({"build": {"dependsOn": ["^build"]}, "lint": {}}, more={
    "packages/ui/package.json": pkg("ui", {"build": "", "lint": "l", "prebuild": "echo pre", "postbuild": "echo post"}, dependencies={"util": "workspace:*"})}))
CASES["pipeline, the older key"] = dict(tasks=["build"], files={**THREE, "turbo.json": {"pipeline": {"build": {"dependsOn": ["^build"]}}}},
    apart={"vx plans, turbo refuses": "turbo 2 has dropped the key; repositories that still have it run"})
CASES["turbo.jsonc"] = dict(tasks=["build"], files={**THREE, "turbo.jsonc": "{\n  // a comment\n  \"tasks\": {\"build\": {\"dependsOn\": [\"^build\"],},}\n}\n"})
CASES["unknown and future keys"] = dict(tasks=["build"], files=with_tasks({"build": {"dependsOn": ["^build"], "tags": ["a"], "description": "d"}}, ui="tui", envMode="loose", cacheDir=".c",
    concurrency="50%", noUpdateNotifier=True, daemon=False, remoteCache={"signature": False}, boundaries={"tags": {}}, tags=["r"],
    futureFlags={"errorsOnlyShowHash": True}, cacheMaxAge="7d", agentGuidance=False))
CASES["global configuration block"] = dict(tasks=["build", "lint"], files=with_tasks({"build": {"dependsOn": ["^build"]}, "lint": {"inputs": ["src/**", "!$TURBO_ROOT$/conf/x"]}},
    futureFlags={"globalConfiguration": True}, **{"global": {"inputs": ["tsconfig.base.json", "conf/**"], "env": ["G"], "passThroughEnv": ["P"]}},
    more={"tsconfig.base.json": "{}", "conf/a": "1", "conf/x": "2"}))


# ---- package managers and what links to what ----
def members(**deps):
    """a (1.0.0), b (2.3.4), c (1.0.0-beta.1) and one package for every way to ask for b."""
    out = {"packages/a/package.json": pkg("a"), "packages/b/package.json": pkg("b", version="2.3.4"), "packages/c/package.json": pkg("c", version="1.0.0-beta.1"),
           "packages/none/package.json": {"name": "none", "scripts": {"build": B}}, "packages/noname/package.json": {"version": "1.0.0", "scripts": {"build": B}},
           "turbo.json": {"tasks": {"build": {"dependsOn": ["^build"]}}}, ".gitignore": "node_modules\n.turbo\n.vx\n"}
    for i, (dep, want) in enumerate(deps["list"]):
        out[f"packages/p{i}/package.json"] = pkg(f"p{i}", dependencies={dep: want})
    return out


RANGES = [("b", "^2.0.0"), ("b", "~2.3.0"), ("b", "2.x"), ("b", "*"), ("b", "^1.0.0"), ("b", ">=1 <3"), ("b", "1 || 2"), ("b", "2.3.4"), ("b", "=2.3.4"), ("b", ""), ("b", "latest"),
          ("b", "file:../b"), ("b", "link:../b"), ("b", "npm:b@^2.0.0"), ("x", "npm:b@^2.0.0"), ("b", "npm:other@1"), ("b", "github:u/b"), ("b", "1.0.0 - 3.0.0"), ("c", "^1.0.0"),
          ("c", "1.0.0-beta.1"), ("c", "*"), ("none", "*"), ("none", "^1.0.0"), ("b", "v2.3.4"), ("b", "2"), ("b", "<2"), ("c", ">=1.0.0-alpha"), ("b", "git+https://x/y.git"),
          ("b", "https://x/b.tgz"), ("b", "next"), ("b", ">2.3.3-0")]
SPACE = [("b", "workspace:*"), ("b", "workspace:^"), ("b", "workspace:~"), ("b", "workspace:^1.0.0"), ("b", "workspace:../b"), ("b", "workspace:packages/b"), ("x", "workspace:b@*"),
         ("x", "workspace:b@^1"), ("b", "workspace:2.3.4"), ("a", "workspace:^2.0.0"), ("none", "workspace:*"), ("b", "catalog:"), ("b", "portal:../b"), ("x", "workspace:../b"), ("x", "link:../b"),
         ("b", "workspace:")]
NPM_LOCK = '{"name":"root","lockfileVersion":3,"requires":true,"packages":{}}\n'
YARN1_LOCK = "# yarn lockfile v1\n\n\n"
BERRY_LOCK = "__metadata:\n  version: 8\n  cacheKey: 10c0\n"
for i, (pm, lock, text, more, ranges) in enumerate([
        ("npm@10.0.0", "package-lock.json", NPM_LOCK, {}, RANGES), ("yarn@1.22.19", "yarn.lock", YARN1_LOCK, {}, RANGES),
        ("yarn@4.1.0", "yarn.lock", BERRY_LOCK, {}, RANGES + SPACE), ("yarn@4.1.0", "yarn.lock", BERRY_LOCK, {".yarnrc.yml": "enableTransparentWorkspaces: false\n"}, RANGES + SPACE),
        ("bun@1.2.0", "bun.lock", '{"lockfileVersion":1,"workspaces":{},"packages":{}}', {}, RANGES + SPACE)]):
    CASES[f"edges: {pm}" + (" with a file of its own" if more else "")] = dict(tasks=["build"], files={
        "package.json": root(pm, workspaces=["packages/*"]), lock: text, **more, **members(list=ranges)})
for name, more in {"": {}, " linkWorkspacePackages: true": {"y": "linkWorkspacePackages: true\n"}, " linkWorkspacePackages: false": {"y": "linkWorkspacePackages: false\n"},
                   " .npmrc true": {"n": "link-workspace-packages=true\n"}, " .npmrc false": {"n": "link-workspace-packages=false\n"}, " .npmrc deep": {"n": "link-workspace-packages = deep\n"},
                   " catalog": {"y": "catalog:\n  b: ^2.0.0\ncatalogs:\n  x:\n    b: ^1.0.0\n    a: workspace:*\n"}}.items():
    for version in ("8.0.0", "9.0.0", "10.0.0"):
        CASES[f"edges: pnpm {version}{name}"] = dict(tasks=["build"], files={
            **PNPM, "package.json": root(f"pnpm@{version}"), "pnpm-workspace.yaml": "packages:\n  - packages/*\n" + more.get("y", ""), **({".npmrc": more["n"]} if "n" in more else {}),
            **members(list=RANGES + SPACE + [("a", "catalog:x"), ("b", "catalog:x"), ("b", "catalog:default")])})
CASES["dependency kinds, peers, cycles"] = dict(tasks=["build"], files={**PNPM, "turbo.json": {"tasks": {"build": {"dependsOn": ["^build"]}}},
    "packages/a/package.json": pkg("a", dependencies={"b": "workspace:*"}), "packages/b/package.json": pkg("b", devDependencies={"c": "workspace:*"}),
    "packages/c/package.json": pkg("c", optionalDependencies={"d": "workspace:*"}), "packages/d/package.json": pkg("d", peerDependencies={"e": "workspace:*"}),
    "packages/e/package.json": pkg("e"), "packages/f/package.json": pkg("f", peerDependencies={"a": "*", "e": "^1.0.0"}, peerDependenciesMeta={"e": {"optional": True}})})
CASES["a peer that would close a cycle"] = dict(tasks=["build"], files={**PNPM, "turbo.json": {"tasks": {"build": {"dependsOn": ["^build"]}}},
    "packages/a/package.json": pkg("a", dependencies={"b": "workspace:*"}), "packages/b/package.json": pkg("b", peerDependencies={"a": "workspace:*"})})
CASES["a cycle of packages"] = dict(tasks=["build", "lint"], files={**PNPM, "turbo.json": {"tasks": {"build": {"dependsOn": ["^build"]}, "lint": {}}},
    "packages/a/package.json": pkg("a", ("build", "lint"), dependencies={"b": "workspace:*"}), "packages/b/package.json": pkg("b", ("build", "lint"), devDependencies={"a": "workspace:*"})})
CASES["the root depends on a package"] = dict(tasks=["build"], files={**THREE, "package.json": root(devDependencies={"util": "workspace:*"}, scripts={"build": "x"}),
                                                                      "turbo.json": turbo({"build": {"dependsOn": ["^build"]}, "//#build": {"dependsOn": ["^build"]}})})
for name, globs in {"negated": ["packages/*", "!packages/skip"], "double star": ["packages/**"], "literal and dot": ["./packages/a", "packages/b/", "tools/x"], "nested": ["packages/*", "packages/*/sub/*"],
                    "braces": ["{packages,tools}/*"], "brackets": ["packages/[ab]"], "dot directories": ["packages/*", ".hidden/*"]}.items():
    tree = {f"{d}/package.json": pkg(d.replace("/", "-").replace(".", "")) for d in ("packages/a", "packages/b", "packages/skip", "packages/a/sub/s", "tools/x", "packages/b/node_modules/m",
                                                                                      "packages/.dot", ".hidden/h", "packages/group/g")}
    for pm in ("pnpm", "npm", "yarn", "bun"):
        base = {"turbo.json": {"tasks": {"build": {"dependsOn": ["^build"]}}}, ".gitignore": ".turbo\n.vx\n", **tree}
        if pm == "pnpm":
            base |= {"pnpm-workspace.yaml": "packages:\n" + "".join(f"  - '{g}'\n" for g in globs), "package.json": root(), "pnpm-lock.yaml": PNPM["pnpm-lock.yaml"]}
        elif pm == "yarn":
            base |= {"package.json": root("yarn@4.1.0", workspaces={"packages": globs}), "yarn.lock": BERRY_LOCK}
        elif pm == "npm":
            base |= {"package.json": root("npm@10.0.0", workspaces=globs), "package-lock.json": NPM_LOCK}
        else:
            base |= {"package.json": root("bun@1.2.0", workspaces=globs), "bun.lock": '{"lockfileVersion":1,"workspaces":{},"packages":{}}'}
        CASES[f"member globs, {name}: {pm}"] = dict(tasks=["build"], files=base, apart={"'packages-dot#build'": "a wildcard matches no leading dot for package managers"})
CASES["one package alone"] = dict(single=True, tasks=["build", "test"], files={"package.json": {**root("npm@10.0.0", scripts={"build": B, "test": "echo t"}), "name": "alone"}, "package-lock.json": NPM_LOCK,
                                                                  "src/a.ts": "1", ".gitignore": ".turbo\n.vx\ndist\n", "turbo.json": turbo({"build": {"outputs": ["dist/**"]}, "test": {"dependsOn": ["build"], "inputs": ["src/**"]}})})
CASES["nested packages, submodule-like trees"] = dict(tasks=["build", "lint"], files={**PNPM, "pnpm-workspace.yaml": "packages:\n  - packages/**\n", "turbo.json": turbo({"build": {}, "lint": {"inputs": ["**"]}}),
    "packages/a/package.json": pkg("a", ("build", "lint")), "packages/a/x.ts": "1", "packages/a/sub/package.json": pkg("a-sub", ("build", "lint")), "packages/a/sub/y.ts": "2",
    "packages/a/link.ts": Link("x.ts"), "packages/a/broken": Link("nowhere"), "packages/a/run.sh": Run("#!/bin/sh\n"), "packages/a/ü/ö.txt": "u",
    "packages/a/sp ace/\"q\".txt": "q", "packages/a/.gitignore": "*.log\n", "packages/a/.gitattributes": "*.crlf text eol=crlf\n", "packages/a/t.crlf": "a\r\nb\r\n"},
    after=[{"packages/a/x.log": "ignored", "packages/a/untracked.ts": "u", "packages/a/t2.crlf": "a\r\nb\r\n"}, "rm packages/a/sub/y.ts; chmod +x packages/a/x.ts"],
    apart={"a#build: inputs": LINKS, "a#lint: inputs": LINKS, "id of t.crlf": "an id is that of the bytes on disk, filters or not"})

# ---- frameworks ----
FRAMEWORKS = {"next": {"next": "14"}, "vite": {"vite": "5"}, "cra": {"react-scripts": "5"}, "nuxt": {"nuxt": "3"}, "nuxt3": {"nuxt3": "3"}, "gatsby": {"gatsby": "5"}, "astro": {"astro": "4"}, "remix": {"@remix-run/dev": "2"},
              "rr7": {"@react-router/dev": "7"}, "svelte": {"@sveltejs/kit": "2"}, "solid": {"solid-js": "1", "solid-start": "1"}, "blitz": {"blitz": "2"}, "redwood": {"@redwoodjs/core": "6"}, "sanity": {"sanity": "3"},
              "sanity2": {"@sanity/cli": "3"}, "vue": {"@vue/cli-service": "5"}, "expo": {"expo": "50"}, "nitro": {"nitropack": "2"}, "tanstack": {"@tanstack/react-start": "1"}, "vercel": {"nothing": "1"}}
CASES["framework inference"] = dict(tasks=["build", "lint"], env={k: "1" for k in (
    "NEXT_PUBLIC_A VITE_A REACT_APP_A NUXT_A NUXT_ENV_A NITRO_A GATSBY_A PUBLIC_A REMIX_A SOLID_A REDWOOD_ENV_A SANITY_STUDIO_A VUE_APP_A EXPO_PUBLIC_A VERCEL_A SVELTE_A VERCEL_ENV OTHER SERVER_A "
    "LAUNCHDARKLY_A TSS_A").split()} | {"VITE_B": "2"}, files={**PNPM, "turbo.json": turbo({"build": {"dependsOn": ["^build"]}, "lint": {"env": ["!VITE_B", "OTHER"]}}),
    **{f"apps/{k}/package.json": pkg(k, ("build", "lint"), **({"devDependencies": d} if i % 2 else {"dependencies": d})) for i, (k, d) in enumerate(FRAMEWORKS.items())}})

# ---- filters ----
CASES["filters"] = dict(tasks=[], files=SCOPED, filters=[
    "@acme/web", "web", "@acme/web...", "...@acme/util", "...^@acme/util", "@acme/web^...", "...@acme/ui...", "@acme/*", "@acme/u*", "*", "u*", "*/web", "!@acme/web", ["@acme/*", "!@acme/ui"],
    ["!@acme/ui", "@acme/web..."], "./apps/*", "./apps/web", "apps/web", "apps/*", "{apps/*}", "{./apps/*}", "{./apps/web}...", "...{./packages/util}", "./apps", "{apps}", "{packages/**}", "./packages/**",
    "./apps/web...", "...{packages/ui}^", "plain", "pla*", "nothing", "@acme/nothing", "//", "root", "@acme/*{./packages/*}", "@acme/web{./packages/*}", "{./apps/*}^...", "!./apps/*", "!{packages/*}",
    ["./apps/web", "./packages/plain"], "...plain...", "^...@acme/ui", "@acme/ui...^", "", "!", "./", ".", "{.}", "...", "./apps/web/", "./apps/web/src", "{./apps/web/src}", "./nowhere", "{./nowhere/*}", "!nothing",
    "...!@acme/web", "@acme/{web,ui}", "*web", "@*/web", "*acme*", "./**", "{./**}", "./*/web", "tag:x", "@acme/util...@acme/web"],
    apart={"filter web:": "an unscoped name that one scope alone has is taken for it"})
CASES["filters in a directory"] = dict(tasks=[], files=SCOPED, cwd="apps/web", filters=["@acme/ui", "./src", ".", "..", "../docs", "{../docs}", "{.}...", "./", "...{.}", "../*", "../../packages/*", "!."],
    apart={"filter ../": "paths that lead up count too", "filter {../": "paths that lead up count too"})
GIT = SCOPED | {"package.json": root(scripts={})}
CASES["filters by commits"] = dict(tasks=[], files=GIT, after=[
    {"packages/ui/src/index.ts": "second"}, "commit", {"apps/docs/new.ts": "third", "loose.txt": "root file"}, "commit", "git branch side HEAD~1",
    {"packages/plain/untracked.ts": "u", "apps/web/src/index.ts": "dirty"}],
    filters=["[HEAD]", "[HEAD~1]", "[HEAD^1]", "[HEAD~2]", "[main]", "[side]", "...[HEAD~1]", "[HEAD~1]...", "...[HEAD~2]...", "[HEAD~2...HEAD~1]", "[HEAD~1...HEAD]", "...[HEAD~2...HEAD~1]", "@acme/*[HEAD~2]",
             "@acme/web...[HEAD~2]", "{./apps/*}[HEAD~2]", "{./packages/*}[HEAD]", "![HEAD~1]", ["@acme/*", "![HEAD~2]"], "[nosuch]", "...^[HEAD~1]", "[HEAD~1]^...", "@acme/docs...[HEAD~2]", "plain[HEAD]",
             "./apps/*[HEAD~1]", "...@acme/util[HEAD~2]", "[main...side]", "[side...main]", "[HEAD~2...]"],
    apart={"filter ./apps/*[HEAD~1]": "the commits count behind a path as they do behind {path}"})
CASES["a changed lockfile"] = dict(apart={"filter [HEAD]": "what is in every key concerns every package"}, tasks=[], files=GIT, after=[{"pnpm-lock.yaml": PNPM["pnpm-lock.yaml"] + "\n"}], filters=["[HEAD]"])
CASES["a changed turbo.json"] = dict(tasks=[], files=GIT, after=[{"turbo.json": turbo({"build": {"dependsOn": ["^build"], "env": ["X"]}})}], filters=["[HEAD]"])
CASES["a changed root package.json"] = dict(apart={"filter [HEAD]": "what is in every key concerns every package"}, tasks=[], files=GIT, after=[{"package.json": root(scripts={"x": "y"})}], filters=["[HEAD]"])
CASES["a changed globalDependency"] = dict(tasks=[], files={**GIT, "g.txt": "1", "turbo.json": turbo({"build": {}}, globalDependencies=["g.txt"])}, after=[{"g.txt": "2"}], filters=["[HEAD]"])
CASES["a removed and a renamed file"] = dict(tasks=[], files=GIT, after=["git mv packages/ui/src/index.ts packages/util/src/moved.ts; rm apps/web/README.md"], filters=["[HEAD]"])

# ---- found once, or of a kind of its own ----
IGN = {"a": {"inputs": ["$TURBO_DEFAULT$", "$TURBO_ROOT$/.env"]}, "b": {"inputs": ["src/**", "../../.env*"]}, "c": {"inputs": ["$TURBO_DEFAULT$", "../../.env.local"]},
       "d": {"inputs": ["$TURBO_ROOT$/.env*"], "outputs": ["gen/**"]}, "e": {"inputs": ["$TURBO_DEFAULT$", ".env*", "!.env.x"], "outputs": ["gen/**"]},
       "f": {"inputs": ["src/*"], "outputs": ["gen/**", "dist/**", "!gen/no/**"]}, "g": {"inputs": ["$TURBO_DEFAULT$", "dist"], "outputs": []}, "h": {"outputs": ["gen/**"]}}
CASES["ignored inputs, tracked outputs"] = dict(tasks=list(IGN), files=with_tasks(IGN, more={
    "apps/web/package.json": pkg("web", list(IGN)), ".gitignore": "node_modules\ndist\n.env*\n.turbo\n.vx\n", "apps/web/gen/tracked.ts": "x", "apps/web/gen/no/x.ts": "x"}),
    after=[{".env": "1", ".env.local": "2", "apps/web/.env": "3", "apps/web/.env.x": "4", "apps/web/dist/o.js": "o", "apps/web/node_modules/m/i.js": "m"}])
COMBOS = {"av": dict(dependencies={"astro": "1", "vite": "1"}), "nv": dict(devDependencies={"vite": "1", "next": "1"}), "peer": dict(peerDependencies={"next": "1"}),
          "opt": dict(optionalDependencies={"next": "1"}), "nn": dict(dependencies={"nuxt": "1"}, devDependencies={"nitropack": "1"}),
          "split": dict(dependencies={"solid-js": "1"}, devDependencies={"solid-start": "1"}), "ws": dict(dependencies={"next": "workspace:*"})}
for skew in ("0", "1"):
    CASES[f"several frameworks, skew protection {skew}"] = dict(tasks=["build", "lint"], env={"VERCEL_SKEW_PROTECTION_ENABLED": skew} | {k: "1" for k in (
        "NEXT_PUBLIC_A VITE_A PUBLIC_A NUXT_A NITRO_A VERCEL_DEPLOYMENT_ID NEXT_DEPLOYMENT_ID LAUNCH_EDITOR RENDER").split()}, files={
            **PNPM, "package.json": root(scripts={"build": "x"}, dependencies={"next": "1"}),
            "turbo.json": turbo({"build": {"env": ["NEXT_PUBLIC_*"]}, "//#build": {}, "lint": {"env": ["!NEXT_PUBLIC_*"]}}),
            **{f"apps/{k}/package.json": pkg(k, ("build", "lint"), **v) for k, v in COMBOS.items()}})
for i, (tasks, apart) in enumerate([
        ({"a": {"dependsOn": ["nowhere"]}}, None), ({"a": {"dependsOn": ["^nowhere"]}}, None), ({"a": {"dependsOn": ["nopkg#build"]}}, None), ({"a": {"dependsOn": ["web#nowhere"]}}, None),
        ({"nopkg#a": {}, "a": {}}, None), ({"a": {"dependsOn": ["$X"]}}, None), ({"a": {"dependsOn": ["a"]}}, None), ({"a": {"dependsOn": ["//#nothere"]}}, None),
        ({"//#nothere": {}, "a": {"dependsOn": ["//#nothere"]}}, None), ({"web#a": {"dependsOn": ["^a"]}, "a": {"dependsOn": ["b"]}, "b": {}}, None),
        ({"a": {"persistent": True, "cache": False}, "b": {"dependsOn": ["a"]}}, "a task may wait for a server to be ready"),
        ({"a": {"outputs": ["/abs/**"]}}, None), ({"a": {"inputs": ["/abs/**"]}}, None), ({"a": {"outputs": ["../../../../x/**"]}}, "outputs outside of the workspace are refused instead of ignored"),
        ({"a": {"outputs": ["dist/{a,b}/**", "*.d.ts", "!**/*.map"], "inputs": ["src/*.{ts,tsx}", "!**/*.test.*"]}}, None)]):
    CASES[f"entries {i}"] = dict(tasks=list(tasks), apart={"vx ": apart} if apart else {}, files=with_tasks(tasks, more={
        "apps/web/package.json": pkg("web", ["a", "b", "build"], dependencies={"ui": "workspace:*"}), "packages/ui/package.json": pkg("ui", ["a", "b"])}))
MORE = [("none", "latest"), ("none", "0.x"), ("none", ">=0"), ("none", "^0.0.0"), ("b", "npm:^2.0.0"), ("b", "npm:^1.0.0"), ("b", "npm:2.x"), ("b", "file:../a"), ("b", "link:../nowhere"),
        ("b", "file:./x.tgz"), ("b", "file:../../packages/b"), ("b", "./../b"), ("b", "../b"), ("b", "workspace:../a"), ("b", "^2.0.0-beta"), ("c", "1.0.0-beta.1 || 2"), ("b", "  ^2.0.0 "), ("b", "2.3"),
        ("b", "~2"), ("b", ">=2.0.0 <3.0.0"), ("b", "^2.3.4 || ^3"), ("b", "X"), ("b", "2.*"), ("b", "workspace:2.x"), ("b", "file:/abs"), ("b", "x"), ("c", "workspace:^1"), ("b", "u/b"), ("b", ">= 2"),
        ("b", "> 2.3.3"), ("b", "2.3.4 - 2.3.5"), ("b", "~> 2.3"), ("b", "^2 <2.4"), ("b", "||"), ("b", "1||2"), ("b", "<=2.3.4"), ("b", "2.3.4-rc.1"), ("c", "^1.0.0-beta"), ("c", "1.x"), ("c", ">=1.0.0-beta.0 <2")]
for pm in ("pnpm@8.0.0", "npm@10.0.0"):
    CASES[f"edges: more ranges: {pm}"] = dict(tasks=["build"], files={**PNPM, "package.json": root(pm, workspaces=["packages/*"]), "package-lock.json": NPM_LOCK, **members(list=MORE)})
    if not pm.startswith("pnpm"):
        for f in ("pnpm-workspace.yaml", "pnpm-lock.yaml"):
            del CASES[f"edges: more ranges: {pm}"]["files"][f]
peers = {f"packages/{k}{i}/package.json": pkg(f"{k}{i}", **{kind: {"e": v} for kind in kinds}) for i, v in enumerate(["*", "^1.0.0", "workspace:*", ">=1"])
         for k, kinds in (("p", ["peerDependencies"]), ("q", ["peerDependencies", "devDependencies"]), ("r", ["optionalDependencies"]))}
CASES["peers are no edges by themselves"] = dict(tasks=["build"], files={**PNPM, "package.json": root("pnpm@8.0.0"), "turbo.json": {"tasks": {"build": {"dependsOn": ["^build"]}}}, **peers,
                                                                         "packages/e/package.json": pkg("e")})
CASES["the root is a member"] = dict(apart={"'root#build'": "turbo makes two packages of it, // and root"}, tasks=["build"], files={**THREE, "pnpm-workspace.yaml": "packages:\n  - .\n  - apps/*\n  - packages/*\n", "package.json": root(scripts={"build": "x"}),
                                                             "turbo.json": turbo({"build": {"dependsOn": ["^build"]}})}, filters=["web", "./apps/*", "...util"])
CASES["below the top of the repository"] = dict(tasks=["build", "lint"], cwd="sub/ws", files={"sub/ws/" + k: v for k, v in with_tasks({
    "build": {"dependsOn": ["^build"], "inputs": ["$TURBO_DEFAULT$", "$TURBO_ROOT$/conf.json"]}, "lint": {}}, more={"conf.json": "1"}).items()} | {".gitignore": "*.log\n", "outside.txt": "o"},
    after=[{"sub/ws/apps/web/x.log": "ignored", "sub/ws/apps/web/new.ts": "n"}])
CASES["tests directories below **"] = dict(tasks=["build"], files={**PNPM, "pnpm-workspace.yaml": "packages:\n  - packages/**\n", "turbo.json": turbo({"build": {}}), **{
    f"packages/{d}/package.json": pkg(d.replace("/", "-")) for d in ("a", "a/test/fixture", "a/tests/fixture", "test", "tests/x", "a/__tests__/y", "a/fixtures/z")}})
CASES["devEngines names the manager"] = dict(tasks=["build"], files={**THREE, "package.json": {"name": "root", "devEngines": {"packageManager": {"name": "pnpm", "version": "9.0.0"}}},
                                                                    "turbo.json": turbo({"build": {"dependsOn": ["^build"]}}), "packages/ui/package.json": pkg("ui", dependencies={"util": "^1.0.0"})})
for d in ("@scope/pkg", "a.b", "a_b", "A", "a-b"):
    CASES[f"a package called {d}"] = dict(tasks=["build"], filters=[d, d + "...", "..." + d], files={**PNPM, "turbo.json": turbo({"build": {"dependsOn": ["^build"]}, d + "#build": {"env": ["X"]}}),
        "packages/x/package.json": pkg(d, dependencies={"y": "workspace:*"}), "packages/y/package.json": pkg("y"), "packages/z/package.json": pkg("z", dependencies={d: "workspace:*"})})
CASES["bun and yarn catalogs"] = dict(tasks=["build"], files={"package.json": {**root("bun@1.2.0"), "workspaces": {"packages": ["packages/*"], "catalog": {"b": "^2.0.0"}, "catalogs": {"x": {"b": "^1.0.0"}}}},
    "bun.lock": '{"lockfileVersion":1,"workspaces":{},"packages":{}}', **members(list=[("b", "catalog:"), ("b", "catalog:x"), ("b", "^2.0.0")])})

CASES["persistent and cache"]=dict(tasks=["dev","build","test","lint"],files=with_tasks({"dev":{"persistent":True},"build":{"persistent":True,"cache":True,"outputs":["x"]},"test":{"cache":False,"outputs":["c"],"inputs":["src/**"]},"lint":{"dependsOn":["//#lint"]},"//#lint":{"dependsOn":["^build"],"inputs":["*.json"]}},more={"package.json":root(scripts={"lint":"eslint .","build":"turbo build"})}))
CASES["root deep"]=dict(tasks=["build","check"],files=with_tasks({"build":{"dependsOn":["^build"]},"//#check":{"dependsOn":["web#build","ui#lint"]},"check":{"dependsOn":["//#check","^check"]},"lint":{}},more={"package.json":root(scripts={"check":"c"})}))
CASES["pkg task of a package with turbo.json"]=dict(tasks=["build"],files=with_tasks({"build":{"dependsOn":["^build"],"outputs":["a"]},"web#build":{"outputs":["b"],"env":["E"]}},more={"apps/web/turbo.json":{"extends":["//"],"tasks":{"build":{"outputs":["$TURBO_EXTENDS$","c"]}}}}))
CASES["dup outputs"]=dict(tasks=["build"],files=with_tasks({"build":{"outputs":["a/**","a/**","!b","!b"],"env":["B","A","B","!C","!C"],"passThroughEnv":["*"]}}))
CASES["odd patterns"]=dict(tasks=list("abcdefghij"),files=with_tasks({"a":{"inputs":["src/**/*"]},"b":{"inputs":["src/*.ts","src/**/index.*"]},"c":{"inputs":["*.md","!README.md"]},"d":{"inputs":["**/*.{ts,tsx}","!**/*.d.ts"]},"e":{"inputs":["src/"]},"f":{"inputs":["src**"]},"g":{"inputs":["./src"]},"h":{"inputs":["$TURBO_DEFAULT$","!**/*.md","!src/i/**"]},"i":{"inputs":["[rR]*.md","src/[!x]ndex.ts"]},"j":{"inputs":["!README.md"]}},
  more={"apps/web/package.json":pkg("web",list("abcdefghij")),"apps/web/src/i/page.tsx":"p","apps/web/src/x.d.ts":"d","apps/web/src2/y.ts":"y","apps/web/.hidden/z.ts":"z","apps/web/src/.dot.ts":"q","apps/web/src/i/index.js":"j"}))
CASES["prefix weird filters"]=dict(tasks=[],files=SCOPED,filters=["@acme/we*","*docs","@acme/*b","@ACME/web","@acme/web{./apps/*}...","...{./apps/*}...","{./packages/ui}[HEAD]","@acme/ui^...","...^@acme/ui...","...^{./packages/util}","{./apps/*}...","!{./apps/**}",["@acme/*","!./apps/*"],["...@acme/util","!@acme/docs"],["!./packages/*","!plain"],"./packages/ui/...","...[HEAD]...","@acme/util..."])
