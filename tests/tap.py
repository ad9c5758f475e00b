"""What the drivers in Python share: TAP, the programs under test, and an environment that neither reads nor writes the user's."""
import os
import sys
import threading

SRC = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
BUILD = os.path.abspath(os.environ.get("VX_BUILD", os.path.join(SRC, "build")))
VX, VX_TEST = os.path.join(BUILD, "vx"), os.path.join(BUILD, "vx-test")
count = failed = 0
lock = threading.Lock()


def report(ok, name, *detail):
    global count, failed
    with lock:
        count += 1
        failed += not ok
        print(("ok" if ok else "not ok") + f" {count} - {name}", flush=True)
        for d in detail if not ok else ():
            print("\n".join("# " + line for line in str(d).splitlines()), flush=True)


def done():
    print(f"1..{count}")
    sys.exit(1 if failed else 0)


def put(path, text):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w") as f:
        f.write(text)


def environment(home, **more):
    env = {k: v for k, v in os.environ.items() if not k.startswith("GIT_")}
    env.update(HOME=home, NO_COLOR="1", GIT_CONFIG_NOSYSTEM="1", GIT_AUTHOR_NAME="t", GIT_AUTHOR_EMAIL="t@e", GIT_COMMITTER_NAME="t", GIT_COMMITTER_EMAIL="t@e")
    for k in ("CI", "VX_CACHE_DIR", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "VX_CRASH_AT"):
        env.pop(k, None)
    env.update(more)
    return env
