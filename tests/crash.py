#!/usr/bin/env python3
"""Kills vx with SIGKILL and looks at what is left. Prints TAP.

    tests/crash.py points            at every named point of save, restore, clean, prune and recovery (vx/point.h; build/vx-test)
    tests/crash.py random [N [FROM]] at N random moments (500) of a run of 200 tasks, with edits, deletions and strays in between; in slices of 25 kills, each
                                     with a workspace and a seed of its own, so that a campaign can go on from slice FROM (VX_SEED picks the campaign)

After each: `vx cache verify` finds nothing, a new run succeeds, every output equals a clean build's (the same commands by sh, without vx), and after that run
no temporary remains: not in the store, not in .vx, not in TMPDIR.
"""
import hashlib
import json
import os
import random
import re
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import time

import artifacts
import tap
from tap import SRC, VX, VX_TEST, environment, report

SLICE = 25  # random moments in one workspace
BIG = 4600000  # more than is packed in memory
# the same each time, and more than goes to a segment however it is compressed
NOISE = "awk 'BEGIN { s = 1; for (i = 0; i < 100000; i++) { s = (s * 16807) % 2147483647; printf \"%c\", 32 + s % 95 } }' >dist/noise;"


class Workspace:
    def __init__(self, projects, chain):
        self.root = os.path.realpath(tempfile.mkdtemp(prefix="vx-crash-"))
        self.names = [f"p{i:03d}" for i in range(projects)]
        self.env = environment(self.root, TMPDIR=self.root + "-tmp")
        os.mkdir(self.env["TMPDIR"])
        self.write("package.json", json.dumps({"name": "crash", "private": True, "workspaces": ["p/*"]}))
        self.write(".gitignore", "dist\n.vx\n")
        for i, name in enumerate(self.names):
            deps = {self.names[i - 1]: "*"} if chain and i % chain else {}
            self.write(f"p/{name}/package.json", json.dumps({"name": name, "version": "1.0.0", "dependencies": deps}))
            self.write(f"p/{name}/src/in", f"{name}\n")
            self.write(f"p/{name}/vx.json", json.dumps({"tasks": {"build": self.task(i, chain)}}))
        subprocess.run("git init -q && git add -A && git commit -qm x", shell=True, cwd=self.root, env=self.env, check=True)

    def task(self, i, chain):
        up = f"cat ../{self.names[i - 1]}/dist/one;" if chain and i % chain else ""
        big = f"yes big{i} | head -c {BIG} >dist/big;" if not chain and i == 0 else NOISE if not chain and i == 1 else ""
        command = (f"mkdir -p dist/sub/deep dist/empty; {{ {up} cat src/in; }} >dist/one; cksum <dist/one >dist/sub/two; chmod 750 dist/sub/two; {big} "
                   "ln -s ../one dist/sub/link; sh -c 'seq 1 20000' | cksum >dist/sub/deep/three; seq 1 12000 | tail -n 11000 >&2")
        return {"dependsOn": ["^build"], "exec": {"command": command}, "cache": {"inputs": {"files": ["src/**"]}, "outputs": {"files": ["dist/**"]}}}

    def write(self, path, text):
        tap.put(os.path.join(self.root, path), text)

    def sh(self, command):
        subprocess.run(command, shell=True, cwd=self.root, check=True)

    def vx(self, *args, program=VX, **env):
        r = subprocess.run([program, *args], cwd=self.root, env=dict(self.env, **env), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=120)
        return r.returncode, r.stdout.decode(errors="replace")

    def run(self, *extra, **kw):
        return self.vx("run", "build", "--all", "--concurrency", "2", "--output-logs", "none", *extra, **kw)

    def tree(self, root=None):
        """What the outputs are: kinds, modes, contents, targets."""
        out, root = {}, root or self.root
        for name in self.names:
            top = os.path.join(root, "p", name, "dist")
            for d, dirs, files in os.walk(top):
                for f in dirs + files:
                    path = os.path.join(d, f)
                    st = os.lstat(path)
                    key = os.path.relpath(path, root)
                    if stat.S_ISLNK(st.st_mode):
                        out[key] = os.readlink(path)
                    elif stat.S_ISREG(st.st_mode):
                        with open(path, "rb") as g:
                            out[key] = (oct(st.st_mode), hashlib.sha256(g.read()).hexdigest())
                    else:
                        out[key] = oct(st.st_mode)
        return out

    def litter(self):
        found = []
        for top in (".vx/stage", ".vx/journal", ".vx/cache/v1/tmp"):
            for d, dirs, files in os.walk(os.path.join(self.root, top)):
                found += [os.path.relpath(os.path.join(d, f), self.root) for f in dirs + files]
        found += [f for f in os.listdir(os.path.join(self.root, ".vx")) if f.startswith(("stamp-", "plan.", ".vx-"))]
        found += ["TMPDIR/" + f for f in os.listdir(self.env["TMPDIR"])]
        return found

    def check(self, want):
        """None, or what is wrong after a crash."""
        code, text = self.vx("cache", "verify")
        if code:
            return "vx cache verify: " + text
        code, text = self.run()
        if code:
            return f"the next run exits {code}: " + text
        now = self.tree()
        if now != want:
            return "outputs differ: " + ", ".join(sorted(k for k in set(now) | set(want) if now.get(k) != want.get(k))[:10]) + "\n" + text
        if self.litter():
            return "left behind: " + ", ".join(self.litter()[:10])
        code, text = self.vx("cache", "verify")
        if code:
            return "vx cache verify after the next run: " + text
        code, text = self.run()
        if code or not re.search(rf"{len(self.names)} up to date", text):
            return "the run after that does something: " + text
        return None

    def close(self):
        shutil.rmtree(self.root, ignore_errors=True)
        shutil.rmtree(self.env["TMPDIR"], ignore_errors=True)


MESS = "rm -rf p/p001/dist && echo other >p/p002/dist/one && echo stray >p/p002/dist/stray && rm -r p/p002/dist/empty && rm p/p003/dist/sub/link && mkdir p/p003/dist/sub/link && rm p/p000/dist/big"


MESS_ONE = "echo other >p/p002/dist/one && echo stray >p/p002/dist/stray && rm -r p/p002/dist/empty && rm p/p002/dist/sub/two"


def damage(w):
    for path, at, _ in artifacts.artifacts(os.path.join(w.root, ".vx/cache/v1")):
        artifacts.write(path, at + 60, b"XXXX")


def list_points():
    """Every name in the sources: a point that no scenario passes is a failure too."""
    names = set()
    for d, _, files in [x for top in ("sched", "shm") for x in os.walk(os.path.join(SRC, top))]:
        for f in files:
            if f.endswith(".c"):
                with open(os.path.join(d, f)) as g:
                    names |= set(re.findall(r'VX_POINT\("([^"]+)"\)', g.read()))
    return sorted(names)


def crash_at(w, point, want):
    """Brings the workspace to where the point is passed and dies there."""
    kind = point.split(".")[0]
    w.sh("rm -rf .vx")
    args, prepare = None, None
    if kind in ("restore", "journal", "recover"):
        w.run()
        w.sh(MESS_ONE if kind == "recover" else MESS)
        if ".drop_" in point:
            damage(w)
            w.sh("rm -rf p/*/dist")
        if kind == "recover":
            code, text = w.run(program=VX_TEST, VX_CRASH_AT="restore.op:2")
            if code != -signal.SIGKILL:
                return f"restore.op:2 was not passed ({code})\n{text}"
    elif kind in ("file", "plan"):  # what a run that had nothing to do remembers, once all is old enough
        for _ in range(8):
            time.sleep(0.05)
            w.run(program=VX_TEST, VX_CRASH_AT=point)
            if any(f.startswith((".vx-", "plan.")) for f in os.listdir(os.path.join(w.root, ".vx"))):
                return w.check(want)
        return "the point was not passed"
    elif kind == "prune":
        w.run()
        args = ("cache", "prune", "--max-size", "1K" if point == "prune.hole_made" else "1")
    code, text = w.vx(*args, program=VX_TEST, VX_CRASH_AT=point) if args else w.run(program=VX_TEST, VX_CRASH_AT=point)
    if code != -signal.SIGKILL:
        return f"the point was not passed: exit {code}\n{text}"
    if ".drop_" in point:  # what we damaged and it had not come to yet is still damaged: every hit of the next run finds its own
        w.run()
    return w.check(want)


def points():
    w = Workspace(6, 0)
    code, text = w.run()
    want = w.tree()
    report(code == 0 and len(want) > 30, "a clean build", text)
    names = list_points()
    report(len(names) >= 40, f"at least 40 points ({len(names)})")
    for io in ("uring", "blocking"):
        w.env["VX_IO"] = io
        for point in names if io == "uring" else [p for p in names if p.split(".")[0] in ("save", "tmp", "commit", "clean")]:
            problem = crash_at(w, point, want)
            report(problem is None, f"killed at {point} ({io})", problem)
    w.close()


def disturb(w, rng, state):
    """An edit, a deletion, a stray, or nothing; in some of the projects."""
    for _ in range(rng.randrange(4)):
        name = rng.choice(w.names)
        dist = os.path.join(w.root, "p", name, "dist")
        what = rng.randrange(6)
        if what == 0:
            state[name] = rng.randrange(3)
            w.write(f"p/{name}/src/in", f"{name} {state[name]}\n")
        elif what == 1:
            shutil.rmtree(dist, ignore_errors=True)
        elif os.path.isdir(dist):
            if what == 2:
                w.write(f"p/{name}/dist/stray{rng.randrange(9)}/x", "stray")
            elif what == 3 and os.path.exists(dist + "/one"):
                os.unlink(dist + "/one")
            elif what == 4:
                w.write(f"p/{name}/dist/sub/two", "wrong")


class Reference:
    """The outputs as the commands themselves make them, from scratch, in a tree of its own that vx never sees. A project is built again when a source at or above it changed."""

    def __init__(self, w, chain):
        self.w, self.chain, self.built = w, chain, {}
        self.root = w.root + "-reference"
        shutil.copytree(w.root, self.root, ignore=shutil.ignore_patterns(".vx", "dist", ".git"))

    def tree(self):
        for i, name in enumerate(self.w.names):
            above = self.w.names[i - i % self.chain : i + 1]
            texts = tuple(open(os.path.join(self.w.root, "p", n, "src/in")).read() for n in above)
            if self.built.get(name) == texts:
                continue
            here = os.path.join(self.root, "p", name)
            with open(here + "/src/in", "w") as f:
                f.write(texts[-1])
            shutil.rmtree(here + "/dist", ignore_errors=True)
            subprocess.run(["sh", "-c", self.w.task(i, self.chain)["exec"]["command"]], cwd=here, stderr=subprocess.DEVNULL, check=True)
            self.built[name] = texts
        return self.w.tree(self.root)

    def close(self):
        shutil.rmtree(self.root, ignore_errors=True)


class Moments:
    """When to kill: anywhere within what such a run took lately, so that most kills find it alive."""

    def __init__(self, whole):
        self.takes = {True: whole, False: whole / 3}

    def pick(self, rng, cold):
        return rng.random() * self.takes[cold]

    def learn(self, cold, killed):
        self.takes[cold] = max(0.03, self.takes[cold] * (1.15 if killed else 0.7))


def moment(w, ref, rng, state, moments):
    """Kills one run; returns whether it still ran and what is wrong after it."""
    for _ in range(rng.randrange(1, 8)):
        disturb(w, rng, state)
    cold = rng.randrange(8) == 0
    if cold:
        w.sh("rm -rf .vx/cache")
    p = subprocess.Popen([VX, "run", "build", "--all", "--concurrency", "2", "--output-logs", "none"], cwd=w.root, env=w.env, stdin=subprocess.DEVNULL,
                         stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    killed = False
    try:
        p.wait(timeout=moments.pick(rng, cold))
    except subprocess.TimeoutExpired:
        killed = p.poll() is None
        p.kill()
        p.wait()
    moments.learn(cold, killed)
    code, text = w.vx("cache", "verify")
    if code:
        return killed, "vx cache verify: " + text
    code, text = w.run()
    if code:
        return killed, f"the next run exits {code}: {text}"
    if w.litter():
        return killed, "left behind: " + ", ".join(w.litter()[:10])
    got, want = w.tree(), ref.tree()
    if got != want:
        return killed, "outputs differ: " + ", ".join(sorted(k for k in set(got) | set(want) if got.get(k) != want.get(k))[:10])
    if rng.randrange(4) == 0:
        code, text = w.run()
        if code or not re.search(rf"{len(w.names)} up to date", text):
            return killed, "the run after that does something: " + text
    return killed, None


def random_slice(k, n):
    seed = f"{os.environ.get('VX_SEED', '1')}-{k}"
    rng = random.Random(seed)
    w = Workspace(200, 5)
    w.env["VX_IO"] = ("uring", "blocking")[k % 2]
    ref = Reference(w, 5)
    start = time.monotonic()
    code, text = w.run()
    moments = Moments(time.monotonic() - start)
    report(code == 0 and w.tree() == ref.tree(), f"a clean build (seed {seed})", text)
    state, killed, tried, bad = {}, 0, 0, tap.failed
    while killed < n and tried < 10 * n:
        hit, problem = moment(w, ref, rng, state, moments)
        killed += hit
        tried += 1
        if problem:
            report(False, f"moment {tried} (seed {seed})", problem)
    report(killed == n, f"killed at {killed} moments, {tried - killed} runs were over before (seed {seed})")
    if tap.failed > bad:
        print(f"# kept for a look: {w.root}", flush=True)
        return
    ref.close()
    w.close()


def random_moments(n, first):
    for k in range(first, (n + SLICE - 1) // SLICE):
        random_slice(k, min(SLICE, n - k * SLICE))


if sys.argv[1:2] == ["points"]:
    points()
elif sys.argv[1:2] == ["random"]:
    random_moments(int(sys.argv[2]) if len(sys.argv) > 2 else 500, int(sys.argv[3]) if len(sys.argv) > 3 else 0)
else:
    sys.exit(__doc__)
tap.done()
