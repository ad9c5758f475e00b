#!/usr/bin/env python3
"""Many processes against one store. Prints TAP; VX_SEED picks the sequence (1). (tests/property.py: one process, random graphs.)

    tests/stress.py concurrent [SECONDS]   6 clones and 2 processes of a seventh on one store, with prunes and verifications in between and kills among
                                           them: no lost, no wrong entry, and what is verified is clean at every moment
    tests/stress.py damaged [SECONDS]      the same, and somebody damages, removes and swaps artifacts all the while: no wrong output, no failed run
"""
import hashlib
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import threading
import time

import tap
from tap import VX, environment, report

SEED = int(os.environ.get("VX_SEED", "1"))


class Workspace:
    """Projects with random dependencies; a build hashes its source and what it depends on."""

    def __init__(self, root, rng, n, env):
        self.root, self.env, self.rng = root, env, rng
        self.deps = {f"p{i}": sorted(rng.sample([f"p{k}" for k in range(i)], min(i, rng.randrange(4)))) for i in range(n)}
        self.write("package.json", json.dumps({"name": "w", "private": True, "workspaces": ["p/*"]}))
        self.write(".gitignore", "dist\n.vx\n")
        for name, deps in self.deps.items():
            ups = " ".join(f"../{d}/dist/out" for d in deps)
            extra = rng.choice(["", " && ln -s out dist/link", " && mkdir dist/void", " && mkdir dist/d && cp dist/out dist/d/copy && chmod 700 dist/d", " && echo said && echo so >&2"])
            command = f"mkdir dist && cat src/in {ups} | sha256sum >dist/out{extra}"
            self.write(f"p/{name}/package.json", json.dumps({"name": name, "version": "1.0.0", "dependencies": {d: "*" for d in deps}}))
            self.write(f"p/{name}/src/in", name + "\n")
            self.write(f"p/{name}/vx.json", json.dumps({"tasks": {"build": {"dependsOn": ["^build"], "exec": {"command": command},
                                                                            "cache": {"inputs": {"files": ["src/**"]}, "outputs": {"files": ["dist/**"]}}}}}))
        subprocess.run("git init -q && git add -A && git commit -qm x", shell=True, cwd=root, env=env, check=True)

    def write(self, path, text):
        tap.put(os.path.join(self.root, path), text)

    def read(self, path):
        with open(os.path.join(self.root, path)) as f:
            return f.read()

    def vx(self, *args):
        r = subprocess.run([VX, *args], cwd=self.root, env=self.env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=300)
        return r.returncode, r.stdout.decode(errors="replace")

    def run(self, *extra):
        return self.vx("run", "build", "--all", "--concurrency", "2", "--output-logs", "none", *extra)

    def wrong(self):
        """The first output that is not what the sources make, or None."""
        made = {}
        for name, deps in self.deps.items():
            text = self.read(f"p/{name}/src/in") + "".join(made[d] for d in deps)
            made[name] = hashlib.sha256(text.encode()).hexdigest() + "  -\n"
            try:
                if self.read(f"p/{name}/dist/out") != made[name]:
                    return f"p/{name}/dist/out is wrong"
            except OSError as e:
                return str(e)
            extra = set(os.listdir(os.path.join(self.root, "p", name, "dist"))) - {"out", "link", "void", "d"}
            if extra:
                return f"p/{name}/dist holds {extra}"
        return None

    def tree(self):
        cmd = "find p/*/dist ! -type f -printf '%p %y %m %l\\n'; find p/*/dist -type f -printf '%m ' -exec sha256sum {} \\;"
        return sorted(subprocess.run(cmd, shell=True, cwd=self.root, capture_output=True, check=True).stdout.decode().splitlines())


def concurrent(seconds, damage):
    top = os.path.realpath(tempfile.mkdtemp(prefix="vx-stress-"))
    env = dict(environment(top), VX_CACHE_DIR=os.path.join(top, "store"))
    ends, runs, problems = time.monotonic() + seconds, [0], []
    made = Workspace(os.path.join(top, "w0"), random.Random(f"{SEED}"), 12, env)
    spaces = [made]
    for i in range(1, 7):
        root = os.path.join(top, f"w{i}")
        shutil.copytree(made.root, root, symlinks=True)
        w = object.__new__(Workspace)
        w.__dict__.update(made.__dict__, root=root, rng=random.Random(f"{SEED}-{i}"), env=dict(env, VX_IO=("uring", "blocking")[i % 2]))
        spaces.append(w)

    def kill_one(w):
        p = subprocess.Popen([VX, "run", "build", "--all", "--output-logs", "none"], cwd=w.root, env=w.env, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(w.rng.random() * 0.3)
        p.kill()
        p.wait()

    def own(w):
        while time.monotonic() < ends and not problems:
            if w.rng.randrange(6) == 0:
                kill_one(w)
            w.write(f"p/{w.rng.choice(list(w.deps))}/src/in", f"v{w.rng.randrange(6)}\n")
            if w.rng.randrange(3) == 0:
                shutil.rmtree(os.path.join(w.root, "p", w.rng.choice(list(w.deps)), "dist"), ignore_errors=True)
            code, text = w.run(*(["--force"] if w.rng.randrange(8) == 0 else []))
            wrong = f"exit {code}: {text}" if code else w.wrong()
            runs[0] += 1
            if wrong:
                problems.append(f"{w.root}: {wrong}")

    def pair(w):
        while time.monotonic() < ends and not problems:
            w.write(f"p/{w.rng.choice(list(w.deps))}/src/in", f"v{w.rng.randrange(6)}\n")
            ps = [subprocess.Popen([VX, "run", "build", "--all", "--output-logs", "none"], cwd=w.root, env=w.env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) for _ in range(2)]
            for p in ps:
                text = p.communicate(timeout=300)[0].decode(errors="replace")
                if p.returncode:
                    problems.append(f"one of two runs: exit {p.returncode}: {text}")
            runs[0] += 2
            wrong = w.wrong()
            if wrong and not problems:
                problems.append(f"{w.root}: {wrong}")

    def prune(w):
        while time.monotonic() < ends and not problems:
            time.sleep(0.7)
            code, text = w.vx("cache", "prune", "--max-size", "20K", "--cache-dir", env["VX_CACHE_DIR"])
            if code:
                problems.append(f"prune: {text}")

    def verify(w):
        while time.monotonic() < ends and not problems:
            code, text = w.vx("cache", "verify")
            if code and not damage:
                problems.append(f"verify: {text}")
            time.sleep(0.2)

    def harm(w):
        rng = random.Random(f"{SEED}-harm")
        while time.monotonic() < ends and not problems:
            time.sleep(0.15)
            files = [os.path.join(d, f) for top in "as" for d, _, fs in os.walk(os.path.join(env["VX_CACHE_DIR"], "v1", top)) for f in fs]
            try:
                f, g, how = rng.choice(files), rng.choice(files), rng.randrange(4)
                if how == 0:
                    os.unlink(f)
                elif how == 1:
                    os.rename(f, g)
                else:
                    os.chmod(f, 0o644)
                    with open(f, "r+b") as h:
                        h.seek(rng.randrange(os.path.getsize(f)))
                        h.write(b"X")
            except (OSError, IndexError, ValueError):
                pass  # gone meanwhile, or none there

    threads = [threading.Thread(target=own, args=(w,)) for w in spaces[:6]] + [threading.Thread(target=pair, args=(spaces[6],)), threading.Thread(target=prune, args=(spaces[0],)), threading.Thread(target=verify, args=(spaces[1],))]
    threads += [threading.Thread(target=harm, args=(spaces[0],))] if damage else []
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    report(not problems, f"{runs[0]} runs in {seconds} s, 8 at a time on one store (seed {SEED})", *problems[:3])
    if damage:
        spaces[0].vx("cache", "prune", "--max-size", "1")
    code, text = spaces[0].vx("cache", "verify")
    report(code == 0, "the store is whole afterwards", text)
    code, text = spaces[0].run()
    code, text = spaces[0].run()
    report(code == 0 and "12 up to date" in text, "and nothing that was saved is lost", text)
    left = os.listdir(os.path.join(env["VX_CACHE_DIR"], "v1/tmp"))
    report(not left, "no temporary remains", left)
    shutil.rmtree(top, ignore_errors=True)


if sys.argv[1:2] in (["concurrent"], ["damaged"]):
    concurrent(float(sys.argv[2]) if len(sys.argv) > 2 else 60, sys.argv[1] == "damaged")
else:
    sys.exit(__doc__)
tap.done()
