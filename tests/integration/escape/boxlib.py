"""Shared by the Python drivers here: running tasks by boxrun, and TAP lines without numbers.

argv: LABEL BOXRUN ATTEMPT VX_INIT BASE      BASE: an empty directory of ours, not below /tmp
"""
import json
import os
import subprocess
import sys

label, boxrun, attempt, init, base = sys.argv[1:6]
HOME = base + "/home"
serial = 0


def put(path, text="secret\n"):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w") as f:
        f.write(text)


def tap(fine, name, detail="", skip=""):
    print(("ok" if fine else "not ok") + f" - {label}: {name}" + (f" # SKIP {skip}" if skip else ""))
    if not fine:
        for line in detail.splitlines():
            print("# " + line)
    sys.stdout.flush()


def start(tasks, extra_env=None):
    """A boxrun under way, and where its results will be."""
    global serial
    serial += 1
    spec, results = f"{base}/spec{serial}.json", f"{base}/results{serial}"
    with open(spec, "w") as f:
        json.dump(tasks, f)
    inherited = {k: v for k, v in os.environ.items() if not k.startswith("MAKE") and k != "MFLAGS"}  # a make around us is none of the tasks'
    inherited["PATH"] = ":".join(d for d in os.environ["PATH"].split(":") if "ccache" not in d)  # its cache is not granted
    env = dict(inherited, HOME=HOME, T_HOSTONLY="1", VX_INIT=init, **(extra_env or {}))
    leak = os.open(boxrun, os.O_RDONLY)  # descriptors that whoever started vx has left open
    for fd in (10, 11, 40):
        os.dup2(leak, fd)
    p = subprocess.Popen([boxrun, "-r", results, spec], env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                         pass_fds=(10, 11, 40))
    for fd in (leak, 10, 11, 40):
        os.close(fd)
    return p, results


def run(tasks, extra_env=None, wait=True):
    """Returns the result lines and the output of one boxrun over the tasks."""
    p, results = start(tasks, extra_env)
    if not wait:
        return p
    out = p.communicate(timeout=120)[0].decode(errors="replace")
    lines = [json.loads(x) for x in open(results)] if os.path.exists(results) else []
    return lines, out


def verdict(r):
    return r["kind"] == "exited" and r["end"] == 1 and r["code"]
