#!/usr/bin/env python3
"""corpus_edits.py VX TURBO TREE GOLDEN: edits of a real workspace, and which tasks miss after each; TAP, one line an edit.

A task misses after an edit when its hash is another than before: by `turbo run ... --dry=json` and `vx run ... --dry=json` over every task that has a command.
What misses in Turborepo must miss here. What misses here alone must have one of the reasons in REASONS, each of which looks at the edit and at the task; which
were used is printed at the end. Edits are chosen by what a package is (leaf, core, without scripts, configuration, root), always the same ones of one tree; VXT_EDITS
of them, 100."""
import gzip, json, os, subprocess, sys

vx, turbo, tree, golden = map(os.path.abspath, sys.argv[1:5])
G = json.load(gzip.open(golden))
TASKS = sorted(n for n, tasks in G["tasks"].items() if any(t["command"] not in ("<NONEXISTENT>", "") for t in tasks.values()))
ENV = {"PATH": os.environ["PATH"], "HOME": tree + ".home", "TURBO_TELEMETRY_DISABLED": "1", "DO_NOT_TRACK": "1", "TURBO_NO_UPDATE_NOTIFIER": "1",
       "GIT_CONFIG_NOSYSTEM": "1"}
os.makedirs(ENV["HOME"], exist_ok=True)


def sh(*argv, env=None):
    return subprocess.run(argv, cwd=tree, env={**ENV, **(env or {})}, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=300)


def git(*args):
    r = sh("git", *args)
    assert r.returncode == 0, r.stderr
    return r.stdout


def parse(r, who):
    try:
        return json.loads(r.stdout[r.stdout.index("{"):])
    except ValueError:
        raise SystemExit(f"# {who} makes no plan: {(r.stderr or r.stdout).strip()[:400]}")


def plans(env=None):
    """({task: hash} of Turborepo, the same of vx, vx's tasks), of tasks with a command."""
    t = parse(sh(turbo, "run", *TASKS, "--dry=json", env=env), "turbo")
    v = parse(sh(vx, "run", *TASKS, "--all", "--dry=json", env=env), "vx")
    return ({x["taskId"]: x["hash"] for x in t["tasks"] if x["command"] not in ("<NONEXISTENT>", "")},
            {x["id"]: x.get("hash") or x["preliminaryHash"] for x in v["tasks"] if x.get("command")}, {x["id"]: x for x in v["tasks"]})


# ---- the workspace ----
def read(path):
    with open(os.path.join(tree, path)) as f:
        return f.read()


def write(path, text):
    full = os.path.join(tree, path)
    os.makedirs(os.path.dirname(full), exist_ok=True)
    with open(full, "w") as f:
        f.write(text)


tracked = git("ls-files", "-z").split("\0")[:-1]
T0, V0, TASK = plans()
dirs = {t["project"]: t["dir"] for t in TASK.values() if t["project"] != "//"}
for g in G["tasks"].values():
    for i, t in g.items():
        dirs.setdefault(i.rsplit("#", 1)[0], t["dir"])
dirs = {p: d for p, d in dirs.items() if p != "//" and d not in ("", ".")}
manifests = {p: json.loads(read(os.path.join(d, "package.json"))) for p, d in dirs.items()}
root_manifest = json.loads(read("package.json"))
FIELDS = ("dependencies", "devDependencies", "optionalDependencies")


def internal(m):
    return sorted({n for f in FIELDS for n in m.get(f, {})} & set(dirs))


needs = {p: internal(m) for p, m in manifests.items()}
needed_by = {p: sorted(q for q in needs if p in needs[q]) for p in dirs}


def closure(start):
    seen, todo = set(), list(start)
    while todo:
        p = todo.pop()
        if p not in seen:
            seen.add(p)
            todo += needs[p]
    return seen


root_needs = closure(internal(root_manifest))


def files_of(p):
    d = dirs[p] + "/"
    nested = [x + "/" for x in dirs.values() if x.startswith(d)]
    return [f for f in tracked if f.startswith(d) and not any(f.startswith(n) for n in nested) and not f.endswith(("package.json", "turbo.json")) and
            os.path.isfile(os.path.join(tree, f)) and not os.path.islink(os.path.join(tree, f))]


def spread(items, n):
    items = list(items)
    return items if len(items) <= n else [items[i * len(items) // n] for i in range(n)]


def has_tasks(p):
    return any(t.rsplit("#", 1)[0] == p for t in V0)


def is_config(p):
    return any(w in dirs[p] for w in ("tooling/", "config", "tsconfig", "eslint", "prettier")) and needed_by[p]


kinds = {
    "core": sorted((p for p in dirs if needed_by[p] and has_tasks(p)), key=lambda p: (-len(needed_by[p]), p))[:6],
    "leaf": spread(sorted(p for p in dirs if not needed_by[p] and has_tasks(p)), 6),
    "silent": spread(sorted(p for p in dirs if needed_by[p] and not manifests[p].get("scripts")), 5),
    "taskless": spread(sorted(p for p in dirs if needed_by[p] and not has_tasks(p)), 3),
    "alone": spread(sorted(p for p in dirs if not needed_by[p] and not has_tasks(p)), 3),
    "config": spread(sorted(p for p in dirs if is_config(p)), 4),
    "tooling": spread(sorted(root_needs), 3),
}

# ---- edits: (name, kind, package or None, function, environment) ----
edits = []


def edit(name, kind, what, package=None, env=None):
    edits.append((name, kind, package, what, env))


def append(path, text="\n// edited\n"):
    return lambda: write(path, read(path) + text)


def manifest(path, change):
    def do():
        m = json.loads(read(path))
        change(m)
        write(path, json.dumps(m, indent=2) + "\n")
    return do


for kind, packages in kinds.items():
    for p in packages:
        d, own = dirs[p], files_of(p)
        for f in spread([f for f in own if f.count("/") > d.count("/") + 1], 1) + spread([f for f in own if f.count("/") == d.count("/") + 1], 1):
            edit(f"{kind} {p}: {f} changes", "file", append(f), p)
        if own:
            edit(f"{kind} {p}: {own[-1]} goes", "file", lambda f=own[-1]: os.unlink(os.path.join(tree, f)), p)
        edit(f"{kind} {p}: a file comes", "file", lambda d=d: write(f"{d}/vx-came.ts", "export {}\n"), p)
        edit(f"{kind} {p}: its manifest", "manifest", manifest(f"{d}/package.json", lambda m: m.__setitem__("description", "edited")), p)
for p in kinds["core"][:2] + kinds["leaf"][:2] + kinds["silent"][:1]:
    d, own = dirs[p], files_of(p)
    edit(f"{p}: a package comes to its dependencies", "manifest", manifest(f"{d}/package.json", lambda m: m.setdefault("devDependencies", {}).__setitem__("left-pad", "1.3.0")), p)
    edit(f"{p}: a script of another name", "manifest", manifest(f"{d}/package.json", lambda m: m.setdefault("scripts", {}).__setitem__("vx-other", "true")), p)
    edit(f"{p}: its version", "manifest", manifest(f"{d}/package.json", lambda m: m.__setitem__("version", "0.0.0-vx")), p)
    edit(f"{p}: what git ignores", "ignored", lambda d=d: write(f"{d}/node_modules/x/index.js", "1\n"), p)
    if own:
        edit(f"{p}: {own[0]} is executable", "mode", lambda f=own[0]: os.chmod(os.path.join(tree, f), 0o755), p)
for p in kinds["core"][:2] + kinds["leaf"][:2]:
    task = sorted(t for t in V0 if t.rsplit("#", 1)[0] == p)[0].rsplit("#", 1)[1]
    edit(f"{p}: the command of {task}", "manifest", manifest(f"{dirs[p]}/package.json", lambda m, t=task: m["scripts"].__setitem__(t, m["scripts"][t] + " # edited")), p)

lock = next((f for f in ("pnpm-lock.yaml", "package-lock.json", "yarn.lock", "bun.lock") if f in tracked), None)


def lock_version():
    text = read(lock)
    at = text.index("\n  ", text.index("\npackages:")) if "\npackages:" in text else 0
    for name in ("typescript@", "react@", "zod@", "vite@"):
        i = text.find(f"\n  {name}", at)
        if i >= 0:
            break
    j = text.index("integrity: ", i) + 11
    write(lock, text[:j] + "sha512-edited" + text[j + 7:])


if lock:
    edit("the lockfile: an integrity", "lockfile", lock_version)
    edit("the lockfile: a comment", "lockfile", append(lock, "\n# edited\n"))
edit("the root's manifest: description", "root", manifest("package.json", lambda m: m.__setitem__("description", "edited")))
edit("the root's manifest: a script", "root", manifest("package.json", lambda m: m.setdefault("scripts", {}).__setitem__("vx-other", "true")))
edit("the root's manifest: a dependency", "root", manifest("package.json", lambda m: m.setdefault("devDependencies", {}).__setitem__("left-pad", "1.3.0")))
for f in spread([f for f in tracked if "/" not in f and f.endswith((".json", ".md", ".js", ".ts", ".mjs")) and f not in ("package.json", "turbo.json")], 5):
    edit(f"the root's {f}", "root", append(f))
edit("a file comes to the root", "root", lambda: write("vx-came", "1\n"))
edit(".npmrc", "fingerprint", lambda: write(".npmrc", "# edited\n"))
if "pnpm-workspace.yaml" in tracked:
    edit("pnpm-workspace.yaml: a comment", "fingerprint", append("pnpm-workspace.yaml", "\n# edited\n"))

conf = "turbo.json" if "turbo.json" in tracked else "turbo.jsonc"


def turbo_json(change):
    def do():
        text = "\n".join(l for l in read(conf).split("\n") if not l.strip().startswith("//"))
        c = json.loads(text)
        change(c)
        write(conf, json.dumps(c, indent=2) + "\n")
    return do


cached = [n for n in TASKS if any(t["task"] == n and t["cache"] and t["id"] in V0 for t in TASK.values())]
edit("turbo.json: another layout", "turbo", turbo_json(lambda c: None))
edit("turbo.json: a task comes", "turbo", turbo_json(lambda c: c["tasks"].__setitem__("vx-other", {})))
edit("turbo.json: globalEnv", "turbo", turbo_json(lambda c: c.__setitem__("globalEnv", c.get("globalEnv", []) + ["VXT_G"])))
edit("turbo.json: globalDependencies", "turbo", turbo_json(lambda c: c.__setitem__("globalDependencies", c.get("globalDependencies", []) + ["package.json"])))
edit("turbo.json: globalPassThroughEnv", "turbo", turbo_json(lambda c: c.__setitem__("globalPassThroughEnv", c.get("globalPassThroughEnv", []) + ["VXT_G"])))
for n in spread(cached, 3):
    if n not in json.loads("\n".join(l for l in read(conf).split("\n") if not l.strip().startswith("//")))["tasks"]:
        continue
    for field, value in (("env", ["VXT_E"]), ("outputs", ["vx-out/**"]), ("inputs", ["package.json"]), ("passThroughEnv", ["VXT_P"]), ("dependsOn", [])):
        edit(f"turbo.json: {field} of {n}", "turbo", turbo_json(lambda c, n=n, f=field, v=value: c["tasks"][n].__setitem__(f, v)))
names = sorted({e for t in TASK.values() for e in t.get("env", []) if e.isidentifier()})
top = json.loads("\n".join(l for l in read(conf).split("\n") if not l.strip().startswith("//")))
for e in spread(top.get("globalEnv", []), 3) + spread(names, 3) + ["NEXT_PUBLIC_VXT", "VITE_VXT", "PUBLIC_VXT", "VXT_NOBODY", "NODE_ENV"]:
    if e.isidentifier():
        edit(f"environment: {e}", "env", lambda: None, None, {e: "edited"})


# ---- reasons for a miss of ours alone ----
def upstream(task):
    seen, todo = set(), [task]
    while todo:
        t = todo.pop()
        if t not in seen:
            seen.add(t)
            todo += TASK[t]["deps"]
    return seen


def in_uncached(e, task):
    """A task without cache answers for every file of its package, whatever its inputs say."""
    return e[1] in ("file", "manifest", "mode") and any(TASK[t]["project"] == e[2] and TASK[t].get("command") and not TASK[t]["cache"] for t in upstream(task))


REASONS = {
    "the lockfile counts as a whole, and so do the settings of the package manager": lambda e, t: e[1] in ("lockfile", "fingerprint"),
    "a task without cache answers for every file of its package": in_uncached,
    "what the root depends on counts with what that depends on": lambda e, t: e[2] in root_needs,
    "inputs, outputs and env of turbo.json are the task's configuration": lambda e, t: e[1] == "turbo" and any(w in e[0] for w in (" of ", "global")),
    "the executable bit counts": lambda e, t: e[1] == "mode",
}

edits = spread(edits, int(os.environ.get("VXT_EDITS", "100")))
# What misses in Turborepo alone, on purpose: docs/config.md, turbo.json.
EXCEPT = {
    "untracked node_modules are no inputs, though `**/*` stands in them": lambda e, t: e[1] == "ignored" and "**/*" in read(conf),
}
used, n, failed = {}, 0, 0
T1, V1, _ = plans()
assert (T1, V1) == (T0, V0), "two plans of one tree differ"
only = sorted(set(T0) ^ set(V0))
print(f"# {len(V0)} tasks with a command, {len(edits)} edits" + (f"; planned by one alone: {only[:5]}" if only else ""))
moved = 0
for e in edits:
    name, kind, package, what, env = e
    n += 1
    bad = []
    try:
        what()
        T, V, _ = plans(env)
        theirs, ours = {t for t in T0 if T.get(t) != T0[t]} & set(V0), {t for t in V0 if V.get(t) != V0[t]}
        moved += len(theirs)
        for why, holds in EXCEPT.items():
            left = {t for t in theirs - ours if holds(e, t)}
            theirs = theirs - left
            if left:
                used[why] = used.get(why, 0) + len(left)
        if theirs - ours:
            bad.append(f"{len(theirs - ours)} of {len(theirs)} miss in Turborepo alone: {sorted(theirs - ours)[:6]}")
        for t in sorted(ours - theirs):
            why = next((r for r, holds in REASONS.items() if holds(e, t)), None)
            if why:
                used[why] = used.get(why, 0) + 1
            else:
                bad.append(f"{t} misses here alone")
    finally:
        git("checkout", "-q", "-f", ".")
        git("clean", "-qffdx", "-e", ".vx")
    failed += bool(bad)
    print(f"{'not ok' if bad else 'ok'} {n} - {name}: {len(theirs)} miss in Turborepo, {len(ours)} here")
    for b in bad[:8]:
        print(f"#   {b}" + (f" (and {len(bad) - 8} more)" if b is bad[7:8] else ""))
for r in sorted(used):
    print(f"# {used[r]} misses {'in Turborepo' if r in EXCEPT else 'here'} alone: {r}")
n += 1
enough = len(edits) >= 60 and moved
failed += not enough
print(f"{'ok' if enough else 'not ok'} {n} - there are enough edits: {len(edits)}, after which {moved} tasks miss in Turborepo")
print(f"1..{n}")
sys.exit(bool(failed))
