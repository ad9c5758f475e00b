"""Directories, files and their parents are exchanged for links to what is not granted, again and again, while sandboxes are built, run and swept.

usage: swaps.py LABEL BOXRUN ATTEMPT VX_INIT BASE      T_SECONDS: how long (default 5)
"""
import os
import subprocess
import sys
import time

from boxlib import HOME, base, put, run, tap

WS, OUT = base + "/ws", base + "/out"
A, B = WS + "/pkgs/a", WS + "/pkgs/b"
FLIP = """
import ctypes, os, sys
libc = ctypes.CDLL(None)
pairs = [p.encode() for p in sys.argv[1:]]
parent = os.getppid()
n = 0
while os.getppid() == parent:
    for i in range(0, len(pairs), 2):
        libc.renameat2(-100, pairs[i], -100, pairs[i + 1], 2)
    n += 1
    if n % 7 == 0:  # now and then it stays for a while, so that some tasks get to run
        os.sched_yield()
        libc.usleep((n * 37) % 3000)
"""
# What is exchanged for a link to what: a granted directory, the parent of one, a granted file, where a placeholder is made, a directory with something denied.
KINDS = {
    "a granted directory": ("gen", "../b", [], ["gen/"], "echo x >gen/pwned; cat gen/secret"),
    "the parent of a granted directory": ("mid", "../b", [], ["mid/sub/"], "echo x >mid/sub/pwned; cat mid/sub/secret mid/secret"),
    "a file granted for reading": ("file", "../b/secret", ["file"], [], "cat file"),
    "a file granted for writing": ("file", "../b/secret", [], ["file"], "cat file; echo pwned >file"),
    "where a placeholder is made": ("place", "../b", [], ["place/x/y/new/", "place/n.txt"], "true"),
    "a directory read by a glob": ("glob", "../b", ["glob/*", "glob/**/x"], [], "cat glob/* glob/*/*"),
    "what holds something denied": ("work/d", "../../b", [], ["work/"], "echo pwned >work/d/.mcp.json; rm -rf work/d/.vscode; mkdir -p work/d/.idea; cat work/d/secret"),
    "a directory looked through afterwards": ("work/d", "../../../../out", [], ["work/"], "mkdir -p work/d/n/.vscode work/e; ln -s ../../b work/e/l"),
}


def make_tree():
    for d in ("gen", "mid/sub", "place", "glob/sub", "work/d/.vscode"):
        os.makedirs(f"{A}/{d}")
    for f in ("gen/ok", "mid/sub/ok", "file", "glob/ok", "glob/sub/x", "work/d/.mcp.json", "work/d/.vscode/s"):
        put(f"{A}/{f}", "fine\n")
    for f in (B + "/secret", B + "/sub/secret", B + "/.vscode/mine", B + "/.mcp.json", OUT + "/secret", OUT + "/n/.vscode/mine"):
        put(f)
    os.makedirs(HOME, exist_ok=True)


def fingerprint():
    seen = {}
    for top in (B, OUT):
        for d, dirs, files in os.walk(top):
            for n in dirs + files:
                p = os.path.join(d, n)
                seen[p] = (os.lstat(p).st_mode, open(p, "rb").read() if os.path.isfile(p) else b"")
    return seen


def kind(name, seconds):
    victim, to, read, write, command = KINDS[name]
    link = A + "/swapped-link"
    os.symlink(to, link)
    before, ran, refused, bad, rest = fingerprint(), 0, 0, [], ""
    flip = subprocess.Popen([sys.executable, "-c", FLIP, A + "/" + victim, link])
    until = time.time() + seconds
    try:
        while time.time() < until:
            t = {"root": WS, "project": "pkgs/a", "home": HOME, "read": read, "write": write, "stores": [WS + "/.vx/cache"], "command": command}
            results, out = run([t] * 10)
            ran += sum(r["kind"] == "exited" for r in results)
            refused += sum(r["kind"] == "refused" for r in results)
            bad += [r for r in results if r["kind"] not in ("exited", "refused")]
            if "secret\n" in out or len(results) != 10:
                rest += out
    finally:
        flip.kill()
        flip.wait()
    after = fingerprint()
    changed = [p for p in set(before) | set(after) if before.get(p) != after.get(p)]
    tap(not changed and not bad and not rest and ran + refused > 0, f"{name} is swapped for a link ({ran} ran, {refused} refused)", f"{changed} {bad} {rest[-600:]}")
    tap(not os.path.isdir(WS + "/.vx/sweep") or not os.listdir(WS + "/.vx/sweep"), f"{name}: no record is left")
    if not os.path.islink(link):
        os.rename(A + "/" + victim, link + "2")
        os.rename(link, A + "/" + victim)
        os.rename(link + "2", link)
    os.unlink(link)


make_tree()
for one in KINDS:
    subprocess.run(["rm", "-rf", A, B, OUT], check=True)
    make_tree()
    kind(one, float(os.environ.get("T_SECONDS", "5")))
