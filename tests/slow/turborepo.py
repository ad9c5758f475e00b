#!/usr/bin/env python3
"""turborepo.py VX TURBO DIR [CASE...]: small workspaces of every kind, planned by Turborepo and by vx; TAP, one line a case.

Compared for every task of every case: which commands there are, edges (through tasks without a command), directory, command, cache, persistent, outputs,
environment names, input files with their blob ids; and what filters select. package.json and turbo.json are left out of the inputs: Turborepo adds them silently.
The cases are in turborepo_cases.py."""
import importlib.util, json, os, shutil, subprocess, sys

vx, turbo, work = sys.argv[1:4]
here = os.path.dirname(os.path.abspath(__file__))
spec = importlib.util.spec_from_file_location("cases", os.path.join(here, "turborepo_cases.py"))
cases = importlib.util.module_from_spec(spec)
spec.loader.exec_module(cases)

ENV = {"PATH": os.environ["PATH"], "HOME": os.path.join(work, "home"), "TURBO_TELEMETRY_DISABLED": "1", "DO_NOT_TRACK": "1",
       "TURBO_NO_UPDATE_NOTIFIER": "1", "GIT_CONFIG_NOSYSTEM": "1", "GIT_AUTHOR_NAME": "n", "GIT_AUTHOR_EMAIL": "e", "GIT_COMMITTER_NAME": "n",
       "GIT_COMMITTER_EMAIL": "e"}
AUTO = {"package.json", "turbo.json", "turbo.jsonc"}


def sh(cwd, *argv, env=None):
    return subprocess.run(argv, cwd=cwd, env={**ENV, **(env or {})}, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=120)


def put(root, path, content):
    full = os.path.join(root, path)
    os.makedirs(os.path.dirname(full), exist_ok=True)
    if isinstance(content, cases.Link):
        os.symlink(content.target, full)
    elif isinstance(content, cases.Run):
        open(full, "w").write(content.text)
        os.chmod(full, 0o755)
    else:
        open(full, "w").write(content if isinstance(content, str) else json.dumps(content, indent=1))


def make(name, case):
    root = os.path.join(work, name)
    shutil.rmtree(root, ignore_errors=True)
    os.makedirs(root)
    for path, content in case["files"].items():
        put(root, path, content)
    sh(root, "git", "init", "-q", "-b", "main", ".")
    sh(root, "git", "add", "-A")
    sh(root, "git", "commit", "-q", "-m", "first")
    for step in case.get("after", []):
        if step == "commit":
            sh(root, "git", "add", "-A")
            sh(root, "git", "commit", "-q", "-m", "next")
        elif isinstance(step, str):
            sh(root, "sh", "-ec", step)
        else:
            for path, content in step.items():
                put(root, path, content)
    return root


def parse(r):
    try:
        return json.loads(r.stdout[r.stdout.index("{"):])
    except ValueError:
        return None


def contract(deps, real):
    def walk(t, seen):
        out = set()
        for d in deps.get(t, ()):
            if d in real:
                out.add(d)
            elif d not in seen:
                seen.add(d)
                out |= walk(d, seen)
        return out
    return {t: walk(t, set()) for t in real}


def lists(label, mine, theirs, bad):
    mine, theirs = sorted(mine or []), sorted(theirs or [])
    if mine != theirs:
        bad.append(f"{label}: vx {mine}, turbo {theirs}")


def compare_task(t, m, g, bad):
    r = g["resolvedTaskDefinition"]
    if m["dir"] != (g.get("directory") or "."):
        bad.append(f"{t}: directory: vx {m['dir']}, turbo {g.get('directory')}")
    if m.get("command") != g["command"]:
        bad.append(f"{t}: command: vx {m.get('command')!r}, turbo {g['command']!r}")
    for k in ("cache", "persistent"):
        if bool(m.get(k)) != bool(r[k]):
            bad.append(f"{t}: {k}: vx {m.get(k)}, turbo {r[k]}")
    if not r["cache"]:
        return
    lists(f"{t}: outputs", m.get("outputs"), g["outputs"], bad)
    lists(f"{t}: excluded outputs", m.get("excludedOutputs"), g["excludedOutputs"], bad)
    lists(f"{t}: env", m.get("env"), g["environmentVariables"]["specified"]["env"], bad)
    gi = {k: v for k, v in g["inputs"].items() if k not in AUTO}
    mi = {k: v for k, v in (m.get("inputs") or {}).items() if k not in AUTO}
    lists(f"{t}: inputs", mi, gi, bad)
    for k in gi:
        if k in mi and mi[k] != gi[k]:
            bad.append(f"{t}: id of {k}: vx {mi[k]}, turbo {gi[k]}")
    # What frameworks infer is a list of NAME=hash.
    inferred = [x.split("=")[0] for x in g["environmentVariables"]["inferred"] or []]
    if inferred or m.get("inferredEnv"):
        lists(f"{t}: inferred variables", m.get("inferredEnv"), inferred, bad)


def compare_plans(p, g, label, bad):
    real = {t["taskId"]: t for t in g["tasks"] if t["command"] not in ("<NONEXISTENT>", "")}
    mine = {t["id"]: t for t in p["tasks"]}
    mreal = {t: x for t, x in mine.items() if x.get("command")}
    lists(f"{label}: tasks", mreal, real, bad)
    ge = contract({t["taskId"]: t["dependencies"] for t in g["tasks"]}, real)
    me = contract({t: x["deps"] for t, x in mine.items()}, mreal)
    for t in sorted(real.keys() & mreal.keys()):
        lists(f"{label}: {t}: edges", me[t], ge[t], bad)
        compare_task(f"{label}: {t}", mreal[t], real[t], bad)
    return len(real)


def plan(args, root, cwd, env):
    at = os.path.join(root, cwd)
    g = sh(at, turbo, "run", *args, "--dry=json", env=env)
    p = sh(at, vx, "run", *args, *([] if any(a.startswith(("--filter", "-F", "--affected")) for a in args) or cwd else ["--all"]), "--dry=full", env=env)
    return parse(p), p, parse(g), g


def meant(case, line):
    return next((why for what, why in case.get("apart", {}).items() if what in line), None)


def same_plan(args, root, env, locked, bad):
    """One plan, whichever way: derived again, from the lock (which some task that is not asked for may forbid), with git's own list of files. To the byte."""
    run = lambda *more, **e: sh(root, vx, "run", *args, "--all", "--dry=full", *more, env={**env, **e})
    want = run(VX_NO_SNAPSHOT="1")
    if want.returncode:
        return
    for what, r in (("kept", run()), ("kept twice", run()), ("frozen", run("--frozen") if locked else want), ("by git", run(VX_FILES="git", VX_NO_SNAPSHOT="1"))):
        if r.stdout != want.stdout:
            bad.append(f"{' '.join(args)}: the plan {what} differs: {first_line(r.stderr)}")


def first_line(text):
    lines = [x for x in text.strip().splitlines() if x.strip() and "WARNING" not in x and not x.startswith("• ")]
    return " / ".join(lines[:4])[:300]


def run_case(name, case):
    bad, n = [], 0
    root, env = make(name, case), case.get("env", {})
    todo = [[t] for t in case.get("tasks", [])] + case.get("runs", [])
    for args in todo:
        p, pr, g, gr = plan(args, root, case.get("cwd", ""), env)
        label = " ".join(args)
        if g and case.get("single"):
            for t in g["tasks"]:
                t["taskId"], t["dependencies"] = "//#" + t["taskId"], ["//#" + d for d in t["dependencies"]]
        if g is None or p is None:
            if (g is None) != (p is None):
                bad.append(f"{label}: vx {'plans' if p else 'refuses: ' + first_line(pr.stderr)}, turbo {'plans' if g else 'refuses: ' + first_line(gr.stderr)}")
            n += 1
            continue
        n += compare_plans(p, g, label, bad)
    if todo and not case.get("cwd") and not case.get("whole_env"):
        with open(os.path.join(root, ".git/info/exclude"), "a") as x:
            x.write("/vx-lock.json\n/.vx\n")
        locked = sh(root, vx, "lock", env=env).returncode == 0
        for args in todo[:2]:
            same_plan(args, root, env, locked, bad)
    for f in case.get("filters", []):
        f = f if isinstance(f, list) else [f]
        args = [case.get("filter_task", "build")] + ["--filter=" + x for x in f]
        p, pr, g, gr = plan(args, root, case.get("cwd", ""), env)
        got = sorted(x for x in p["selected"] if x != "//") if p else None
        want = sorted(x for x in g["packages"] if x != "//") if g else None
        n += 1
        if not got and not want:
            continue
        if got != want:
            bad.append(f"filter {' '.join(f)}: vx {got if p else first_line(pr.stderr)}, turbo {want if g else first_line(gr.stderr)}")
    return n, bad


names = sys.argv[4:] or list(cases.CASES)
os.makedirs(ENV["HOME"], exist_ok=True)
print(f"1..{len(names)}")
for i, name in enumerate(names, 1):
    n, bad = run_case(name, cases.CASES[name])
    wrong = [b for b in bad if not meant(cases.CASES[name], b)]
    print(f"{'not ok' if wrong else 'ok'} {i} - {name}: {n} compared" + (f", {len(bad) - len(wrong)} of them apart" if len(bad) > len(wrong) else ""))
    for b in bad:
        why = meant(cases.CASES[name], b)
        print(f"# {b}" + (f" ({why})" if why else ""))
    sys.stdout.flush()
