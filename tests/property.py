#!/usr/bin/env python3
"""Random task graphs under random edits, damage and interruptions. Prints TAP; VX_SEED picks the campaign (1).

    tests/property.py [GRAPHS [STEPS [FROM]]]   from graph FROM on (each has a seed of its own, so that a campaign can go on)

After each run every output is what the commands make of the sources from scratch, without vx, in a tree that vx never sees; nothing is left behind and no process
is left alive; what was saved is a hit in the run after it. At the end of each graph the same is asked of `vx run --no-cache`.
"""
import hashlib
import json
import os
import random
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import time

import tap
from tap import VX, environment, put, report

SEED = os.environ.get("VX_SEED", "1")
OUTPUTS = ("dist", "pkg", "rep", "gen")

# What a build makes beside dist/out: every kind of thing that an output can be.
EXTRAS = [
    "ln -s out dist/link && ln -s ../src dist/up && ln -s nowhere dist/dangling",
    "mkdir -p dist/void/inner",
    "mkdir dist/d && cp dist/out dist/d/copy && chmod 700 dist/d && chmod 640 dist/out",
    "cp dist/out dist/ro && chmod 444 dist/ro && mkdir dist/rod && cp dist/out dist/rod/f && chmod 555 dist/rod",
    "ln dist/out dist/hard",
    "mkdir 'dist/a b' && cp dist/out \"dist/a b/$(printf 'new\\nline \\377')\"",
    "{ head -c 70000 /dev/zero; cat dist/out; } >dist/holes",
    "yes \"$(cat dist/out)\" | head -c 4600000 >dist/big",
    "touch -d '1999-01-01 00:00:00.123456789' dist/out",
    "echo said && echo so >&2",
    "for i in 1 2 3 4 5 6 7 8 9; do cp dist/out dist/f$i; done",
    "seq 1 30000",
]


class Graph:
    """The workspace, and what its tasks are."""

    def __init__(self, rng, sandbox):
        self.rng = rng
        self.top = os.path.realpath(tempfile.mkdtemp(prefix="vx-property-"))
        self.moves = 0
        self.index_damaged = False  # since when a run may find it, when it comes to what is damaged; a copy of it may come back
        self.root = os.path.join(self.top, "w0")
        self.names = [f"p{i}" for i in range(rng.randrange(2, 13))]
        self.deps = {n: sorted(rng.sample(self.names[:i], min(i, rng.randrange(4)))) for i, n in enumerate(self.names)}
        self.additive = rng.randrange(3) == 0
        self.sandboxed = {n for n in self.names if sandbox and rng.randrange(3) == 0}
        self.shared = {n for n in self.names if rng.randrange(4) == 0}  # writes below the root too
        self.extras = {n: [e for e in rng.sample(EXTRAS, rng.randrange(4)) if "4600000" not in e or rng.randrange(3) == 0] for n in self.names}
        kinds = ["pack", "e2e", "left", "right"] + (["more"] if self.additive else [])
        self.more = {n: [k for k in kinds if rng.randrange(4) == 0] for n in self.names}
        self.variant = {n: 0 for n in self.names}
        self.env = environment(os.path.join(self.top, "home"), TMPDIR=os.path.join(self.top, "tmp"), VX_IO=rng.choice(["uring", "blocking"]))
        os.makedirs(self.env["HOME"])
        os.makedirs(self.env["TMPDIR"])
        self.write_all()

    def path(self, *parts):
        return os.path.join(self.root, *parts)

    def build_command(self, n):
        ups = " ".join(f"../{d}/dist/out" + (f" ../../out/{d}/w" if d in self.shared else "") for d in self.deps[n])
        parts = ["mkdir -p dist", f"{{ echo {self.variant[n]}; cat $(find src -type f | LC_ALL=C sort) {ups}; }} | cksum >dist/out",
                 "if grep -qs fail src/in; then mkdir dist/partial; exit 3; fi"]
        if n in self.shared:
            parts.append(f"mkdir -p ../../out/{n} && cat dist/out >../../out/{n}/w")
        return " && ".join(parts[:2]) + "; " + "; ".join(parts[2:]) + "".join(" && " + e for e in (["true"] + self.extras[n]))

    def commands(self, n):
        more = {"pack": "mkdir -p pkg && cat dist/out src/in >pkg/all && tail -n 1 pkg/all >pkg/last", "more": "cat dist/out >dist/more", "e2e": "mkdir -p rep && cat dist/out >rep/r",
                "left": "mkdir -p gen/left && cat dist/out >gen/left/l", "right": "mkdir -p gen/right/void && cat dist/out >gen/right/r"}
        return [("build", self.build_command(n))] + [(k, more[k]) for k in self.more[n]]

    def tasks(self, n):
        out = {}
        for name, command in self.commands(n):
            outputs = {"build": "dist/**", "more": "dist/**", "pack": "pkg/**", "e2e": "rep/**", "left": "gen/left/**", "right": "gen/right/**"}[name]
            exe = {"command": command}
            cache = {"inputs": {"files": ["src/**"]}, "outputs": {"files": [outputs]}}
            if name == "build" and n in self.shared:
                cache["outputs"]["workspaceFiles"] = [f"out/{n}/**"]
            if name == "build" and n in self.sandboxed:
                read = ["src"] + [f"../{d}/dist" for d in self.deps[n]] + [f"../../out/{d}" for d in self.deps[n] if d in self.shared]
                exe["sandbox"] = {"allow": {"read": read, "write": ["dist/"] + ([f"../../out/{n}/"] if n in self.shared else [])}}
            depends = ["^build"] if name == "build" else ["build", "serve"] if name == "e2e" else ["build"]
            out[name] = {"dependsOn": depends, "exec": exe, "cache": cache}
            if name == "e2e":
                out["serve"] = {"exec": {"command": "echo ready; exec sleep 1000", "persistent": {"readyWhen": "ready"}}}
        return out

    def write_config(self, n):
        put(self.path("p", n, "vx.json"), json.dumps({"tasks": self.tasks(n)}))

    def write_all(self):
        put(self.path("package.json"), json.dumps({"name": "w", "private": True, "workspaces": ["p/*"]}))
        put(self.path(".gitignore"), "dist\npkg\nrep\ngen\nout\n.vx\n")
        if self.additive:
            put(self.path("vx.workspace.json"), json.dumps({"rules": {"exclusiveOutputs": False}}))
        for n in self.names:
            put(self.path("p", n, "package.json"), json.dumps({"name": n, "version": "1.0.0", "dependencies": {d: "*" for d in self.deps[n]}}))
            put(self.path("p", n, "src/in"), n + "\n")
            self.write_config(n)
        self.git("init -q && git add -A && git commit -qm x")

    def git(self, command):
        subprocess.run("git " + command, shell=True, cwd=self.root, env=self.env, check=True, stdout=subprocess.DEVNULL)

    def task_names(self):
        return sorted({k for n in self.names for k, _ in self.commands(n)})

    def argv(self, *extra):
        slots = 3 if self.rng.randrange(4) else self.rng.randrange(1, 5)  # mostly the same question: what is kept of its answer is put to the test
        return [VX, "run", *self.task_names(), "--all", "--output-logs", "none", "--concurrency", str(slots), *extra]

    def run(self, *extra):
        r = subprocess.run(self.argv(*extra), cwd=self.root, env=self.env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=300)
        return r.returncode, r.stdout.decode(errors="replace")

    def alive(self):
        """Processes that work in here."""
        out = []
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                if os.readlink(f"/proc/{pid}/cwd").startswith(self.top):
                    out.append(pid + " " + open(f"/proc/{pid}/cmdline").read().replace("\0", " ")[:80])
            except OSError:
                pass
        return out

    def left(self):
        found = []
        for top in (".vx/stage", ".vx/journal", ".vx/sweep", ".vx/cache/v1/tmp"):
            for d, dirs, files in os.walk(self.path(top)):
                found += [os.path.relpath(os.path.join(d, f), self.root) for f in dirs + files]
        found += [f for f in os.listdir(self.path(".vx")) if f.startswith(("stamp-", "plan.", ".vx-"))]
        found += ["TMPDIR/" + f for f in os.listdir(self.env["TMPDIR"])]
        return found

    def close(self):
        subprocess.run(["chmod", "-R", "u+rwx", self.top], check=False)
        shutil.rmtree(self.top, ignore_errors=True)


def tree(root, names):
    """Outputs: kinds, modes, contents, targets; and the times of those whose command sets one."""
    out = {}
    for top in [f"p/{n}/{o}" for n in names for o in OUTPUTS] + ["out"]:
        full = os.path.join(root, top).encode()
        seen = [full] if os.path.lexists(full) else []
        for d, dirs, files in os.walk(full):
            seen += [os.path.join(d, f) for f in dirs + files]
        for path in seen:
            st = os.lstat(path)
            key = os.path.relpath(path, root.encode())
            if stat.S_ISLNK(st.st_mode):
                out[key] = os.readlink(path)
            elif stat.S_ISREG(st.st_mode):
                with open(path, "rb") as f:
                    out[key] = (oct(st.st_mode), hashlib.sha256(f.read()).hexdigest())
            elif key != b"out":
                out[key] = oct(st.st_mode)
    return out


class Reference:
    """The same commands by sh, in dependency order, in another tree; a project is built again when something that it reads has changed."""

    def __init__(self, g):
        self.g, self.root, self.built = g, os.path.join(g.top, "reference"), {}

    def sources(self, n):
        out = []
        for d, dirs, files in os.walk(self.g.path("p", n, "src")):
            dirs.sort()
            for f in sorted(files):
                path = os.path.join(d, f)
                out.append((os.path.relpath(path, self.g.path("p", n)), open(path).read()))
        return tuple(out)

    def tree(self):
        for n in self.g.names:
            made_of = (self.sources(n), tuple(self.g.commands(n)), tuple(self.built.get(d) for d in self.g.deps[n]))
            if self.built.get(n) == made_of:
                continue
            here = os.path.join(self.root, "p", n)
            subprocess.run(["chmod", "-R", "u+rwx", here], stderr=subprocess.DEVNULL, check=False)
            shutil.rmtree(here, ignore_errors=True)
            shutil.rmtree(os.path.join(self.root, "out", n), ignore_errors=True)
            for path, text in made_of[0]:
                put(os.path.join(here, path), text)
            for _, command in self.g.commands(n):
                subprocess.run(["sh", "-c", command], cwd=here, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            self.built[n] = made_of
        return tree(self.root, self.g.names)


class Steps:
    """What can happen between two runs. Each returns nothing; names say what is done."""

    def __init__(self, g):
        self.g, self.rng = g, g.rng

    def some(self):
        return self.rng.choice(self.g.names)

    def source(self, n):
        return self.g.path("p", n, "src/in")

    def edit(self):
        n = self.some()
        put(self.source(n), f"{n} {self.rng.randrange(4)}\n")

    def edit_forged(self):
        """Other bytes, the same size and time."""
        n = self.some()
        st = os.stat(self.source(n))
        text = open(self.source(n)).read()
        put(self.source(n), text[:-2] + chr(97 + self.rng.randrange(4)) + "\n")
        os.utime(self.source(n), ns=(st.st_atime_ns, st.st_mtime_ns))

    def add_source(self):
        put(self.g.path("p", self.some(), f"src/sub{self.rng.randrange(2)}/f{self.rng.randrange(3)}"), str(self.rng.randrange(3)))

    def drop_source(self):
        shutil.rmtree(self.g.path("p", self.some(), f"src/sub{self.rng.randrange(2)}"), ignore_errors=True)

    def edit_config(self):
        n = self.some()
        self.g.variant[n] = self.rng.randrange(3)
        self.g.write_config(n)

    def commit(self):
        self.g.git("add -A && git commit -qm y --allow-empty")

    def outputs(self):
        files = []
        n = self.some()
        for o in OUTPUTS:
            for d, dirs, fs in os.walk(self.g.path("p", n, o).encode()):
                files += [os.path.join(d, f) for f in fs]
        return n, sorted(files)

    def drop_outputs(self):
        for o in self.rng.sample(OUTPUTS, 2):
            shutil.rmtree(self.g.path("p", self.some(), o), ignore_errors=True)

    def drop_output(self):
        _, files = self.outputs()
        if files:
            os.unlink(self.rng.choice(files))

    def spoil_output(self):
        _, files = self.outputs()
        files = [f for f in files if not os.path.islink(f)]
        if files:
            f = self.rng.choice(files)
            how = self.rng.randrange(6)
            st = os.stat(f)
            if how == 0:
                os.utime(f)
            elif how == 1:
                os.chmod(f, 0o604)
            elif how == 2:
                with open(f, "ab") as g:
                    g.write(b"wrong")
            elif how == 3 and st.st_size:  # the same size and time
                with open(f, "r+b") as g:
                    g.write(b"W")
                os.utime(f, ns=(st.st_atime_ns, st.st_mtime_ns))
            elif how == 4:  # through another name
                other = os.path.join(self.g.top, "other").encode()
                if os.path.lexists(other):
                    os.unlink(other)
                os.link(f, other)
                with open(other, "ab") as g:
                    g.write(b"wrong")
                os.unlink(other)
            else:
                os.unlink(f)
                os.mkdir(f)
                put(os.path.join(f, b"inside").decode(errors="surrogateescape"), "x")

    def stray(self):
        n = self.some()
        if os.path.isdir(self.g.path("p", n, "dist")):
            put(self.g.path("p", n, f"dist/stray{self.rng.randrange(3)}/x"), "stray")
            os.makedirs(self.g.path("p", n, "dist/empty"), exist_ok=True)

    def link_instead(self):
        """The outputs behind a link to their very copy."""
        n = self.some()
        dist, aside = self.g.path("p", n, "dist"), os.path.join(self.g.top, "aside-" + n)
        if os.path.isdir(dist) and not os.path.islink(dist):
            shutil.rmtree(aside, ignore_errors=True)
            os.rename(dist, aside)
            os.symlink(aside, dist)

    def file_instead(self):
        n = self.some()
        dist = self.g.path("p", n, "dist")
        shutil.rmtree(dist, ignore_errors=True)
        if not os.path.lexists(dist):
            put(dist, "a file")

    def artifacts(self):
        return sorted(os.path.join(d, f) for top in "as" for d, _, fs in os.walk(self.g.path(".vx/cache/v1/" + top)) for f in fs)

    def damage_artifact(self):
        files = self.artifacts()
        if files:
            f = self.rng.choice(files)
            os.chmod(f, 0o644)
            with open(f, "r+b") as g:
                g.seek(self.rng.randrange(os.path.getsize(f)))
                g.write(b"X")

    def drop_artifact(self):
        files = self.artifacts()
        if files:
            os.unlink(self.rng.choice(files))

    def swap_artifacts(self):
        files = self.artifacts()
        if len(files) > 1:
            a, b = self.rng.sample(files, 2)
            os.rename(a, a + ".x")
            os.rename(b, a)
            os.rename(a + ".x", b)

    def drop_store(self):
        shutil.rmtree(self.g.path(self.rng.choice([".vx", ".vx/cache", ".vx/cache/v1/index", ".vx/cache/v1/a", ".vx/cache/v1/s"])), ignore_errors=True)

    def damage_index(self):
        path = self.g.path(".vx/cache/v1/index/data.mdb")
        if os.path.exists(path):
            self.g.index_damaged = True
            with open(path, "r+b") as f:
                if self.rng.randrange(3) == 0:
                    f.truncate(self.rng.randrange(os.path.getsize(path)))
                else:
                    f.seek(self.rng.randrange(os.path.getsize(path)))
                    f.write(bytes([self.rng.randrange(256)]))

    def keep_store(self):
        kept = os.path.join(self.g.top, "kept")
        if os.path.isdir(self.g.path(".vx")):
            shutil.rmtree(kept, ignore_errors=True)
            shutil.copytree(self.g.path(".vx"), kept, symlinks=True)

    def old_store(self):
        """A store and snapshots from earlier."""
        kept = os.path.join(self.g.top, "kept")
        if os.path.isdir(kept):
            shutil.rmtree(self.g.path(".vx"), ignore_errors=True)
            shutil.copytree(kept, self.g.path(".vx"), symlinks=True)

    def prune(self):
        subprocess.run([VX, "cache", "prune", "--max-size", self.rng.choice(["1", "3K", "1G"])], cwd=self.g.root, env=self.g.env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def move(self):
        """The workspace with all that is in it to another place; or a copy of it takes its place."""
        self.g.moves += 1
        new = os.path.join(self.g.top, f"w{self.g.moves}")
        if self.rng.randrange(2):
            subprocess.run(["cp", "-a", self.g.root, new], check=True)
            subprocess.run(["chmod", "-R", "u+rwx", self.g.root], check=True)
            shutil.rmtree(self.g.root)
            if self.rng.randrange(2):
                os.rename(new, self.g.root)
                return
        else:
            os.rename(self.g.root, new)
        self.g.root = new

    def some_run(self):
        self.g.run(*self.rng.choice([["--no-cache"], ["--force"], ["--cache=local:r"], ["--sandbox=off"], ["--filter", self.some()]]))

    def interrupt(self):
        p = subprocess.Popen(self.g.argv(), cwd=self.g.root, env=self.g.env, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(self.rng.random() ** 2 * 0.5)
        p.send_signal(self.rng.choice([signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGKILL, signal.SIGKILL]))
        p.wait(timeout=60)

    def fail(self):
        """A run that fails, and its repair."""
        n = self.some()
        text = open(self.source(n)).read()
        put(self.source(n), "fail\n")
        code, out = self.g.run()
        put(self.source(n), text)
        assert code == 1, f"a failing task, and exit {code}: {out}"


WEIGHTS = {"edit": 6, "interrupt": 6, "drop_outputs": 2, "drop_output": 2, "spoil_output": 4}


def says_damaged(text):
    """Pages of the index are checked as they are read: the run that comes to a damaged one, which need not be the first, and the one that then begins a new index
    lose what was saved, and say so."""
    return any(line.startswith("vx run: the index of the cache") and "damaged" in line for line in text.splitlines())


def check(g, ref, quiet_before):
    """None, or what is wrong after a run."""
    code, text = g.run(*g.rng.choice([[], [], [], [], ["--force"]]))
    if code:
        return f"exit {code}: {text}"
    got, want = tree(g.root, g.names), ref.tree()
    if got != want:
        return "outputs differ: " + ", ".join(repr(k) for k in sorted(set(got) | set(want)) if got.get(k) != want.get(k))[:2000] + "\n" + text
    if g.left():
        return "left behind: " + ", ".join(g.left()[:10])
    if g.alive():
        return "left alive: " + "; ".join(g.alive())
    for _ in range(g.rng.randrange(4) if "vx run:" not in text else 0):
        code, again = g.run()
        if code or " miss" in again and not (g.index_damaged and says_damaged(again)):
            return f"what was saved is lost (exit {code}): {again}"
        if tree(g.root, g.names) != want:
            return "outputs differ after a run of hits: " + again
    return None


def one_graph(k, steps, sandbox):
    rng = random.Random(f"{SEED}-{k}")
    g = Graph(rng, sandbox)
    ref, does = Reference(g), Steps(g)
    kinds = [s for s in dir(Steps) if not s.startswith("_") and s not in ("some", "source", "outputs", "artifacts")]
    weights = [WEIGHTS.get(s, 1) for s in kinds]
    done, problem = [], None
    for step in range(steps):
        done.append([])
        for _ in range(rng.randrange(5)):
            what = rng.choices(kinds, weights)[0]
            done[-1].append(what)
            try:
                getattr(does, what)()
            except PermissionError:
                pass  # a plain user cannot do it, so it has not happened
        problem = check(g, ref, done)
        if problem:
            problem = f"step {step}: {problem}\nsteps: {done}\nin {g.root}"
            break
    if not problem:
        subprocess.run("chmod -R u+rwx p out; rm -rf p/*/dist p/*/pkg p/*/rep p/*/gen out", shell=True, cwd=g.root, check=False, stderr=subprocess.DEVNULL)
        code, text = g.run("--no-cache")
        if code or tree(g.root, g.names) != ref.tree():
            problem = f"a run from scratch differs (exit {code}): {text}"
    report(problem is None, f"graph {k} of {len(g.names)} projects, {steps} steps (seed {SEED}-{k})", problem)
    if problem is None or not os.environ.get("VX_KEEP"):
        g.close()


def can_sandbox():
    with tempfile.TemporaryDirectory() as d:
        put(d + "/package.json", json.dumps({"name": "s", "private": True}))
        put(d + "/vx.json", json.dumps({"tasks": {"t": {"exec": {"command": "true", "sandbox": {"allow": {}}}}}}))
        subprocess.run(["git", "init", "-q"], cwd=d, check=True)
        return subprocess.run([VX, "run", "t"], cwd=d, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode == 0


graphs, steps, first = (int(sys.argv[i]) if len(sys.argv) > i else d for i, d in ((1, 5), (2, 8), (3, 0)))
sandbox = can_sandbox()
print(f"# sandboxed tasks: {'some' if sandbox else 'none, for none can be made here'}")
for k in range(first, first + graphs):
    one_graph(k, steps, sandbox)
tap.done()
