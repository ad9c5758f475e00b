"""What must work inside, and what must be gone afterwards. Run by sandbox_box.sh."""
import json
import os
import shutil
import signal
import socket
import subprocess
import time

from boxlib import HOME, base, boxrun, init, put, run, start, tap, verdict

WS = base + "/ws"
A = WS + "/pkgs/a"
ROOT = os.getuid() == 0


def task(command=None, **more):
    t = {"root": WS, "project": "pkgs/a", "home": HOME, "read": ["src"], "write": ["dist/"]}
    if command:
        t["command"] = command
    t.update(more)
    return t


def works(name, command, **more):
    r, out = run([task(command, **more)])
    tap(len(r) == 1 and r[0]["kind"] == "exited" and r[0]["end"] == 1 and r[0]["code"] == 0, name, f"{r}\n{out}")
    return r[0] if r else {}, out


def fresh():
    subprocess.run(["chmod", "-R", "u+rwx", WS], check=False, stderr=subprocess.DEVNULL)
    shutil.rmtree(WS, ignore_errors=True)
    for f in ["secret", "pkgs/b/secret", ".vx/cache/e"]:
        put(f"{WS}/{f}")
    put(A + "/src/main.c", '#include <stdio.h>\nint main(void) { puts("hello"); return 0; }\n')
    put(A + "/src/Makefile", "all:\n\t$(CC) -c -o ../dist/m.o main.c\n\t$(CC) -o ../dist/m ../dist/m.o\n")
    put(A + "/package.json", '{"name": "a", "scripts": {"x": "node -e \\"require(\'fs\').writeFileSync(\'dist/npm\', \'1\')\\""}}\n')
    os.makedirs(HOME, exist_ok=True)


def programs():
    works("cc and ld", "cc -o dist/m src/main.c && dist/m | grep -q hello")
    works("make", "make -s -C src && dist/m | grep -q hello")
    works("python", "python3 -c 'import json,tempfile; f=tempfile.NamedTemporaryFile(); open(\"dist/p\",\"w\").write(f.name)'; grep -q ^/tmp/ dist/p")
    if shutil.which("node"):
        works("node", "node -e \"require('fs').writeFileSync('dist/n', process.version)\" && test -s dist/n")
    if shutil.which("npm"):
        works("an npm script", "npm run --silent x && test -s dist/npm", read=["src", "package.json"], env={"npm_config_cache": "/tmp/npm"})
    works("a write beside and a rename over", "echo 1 >dist/t.tmp && mv dist/t.tmp dist/t && echo 2 >dist/t.tmp && mv -f dist/t.tmp dist/t && grep -q 2 dist/t")
    works("rename and link between directories of one grant", "mkdir -p out/a out/b && echo 1 >out/a/f && mv out/a/f out/b/f && ln out/b/f out/a/g",
          write=["out/", "out/a/", "out/b/**"])
    works("rm -rf dist/*", "mkdir dist/d; echo x >dist/d/f; rm -rf dist/*; test -z \"$(ls -A dist)\"")
    works("own session, default signals, /dev", "echo x >/dev/null && head -c 4 /dev/urandom | wc -c | grep -q 4 && test -w /dev/shm && test -w /tmp")
    works("a process substitution and a here document", "bash -c 'cat <(echo 1) >/dev/stderr'; cat <<X\n1\nX")


def git():
    g = ["git", "-c", "user.name=t", "-c", "user.email=t@example.org", "-C", WS]
    for c in [["init", "-q"], ["add", "pkgs/a"], ["commit", "-qm", "one"]]:
        subprocess.run(g + c, check=True)
    works("git log with .git granted", "git log --oneline | grep -q one && git status --short >/dev/null", read=[".", "../../.git"])
    r, _ = run([task("git log", read=["."])])
    tap(verdict(r[0]) not in (0, False), "no git log without")
    subprocess.run(g + ["worktree", "add", "-q", base + "/wt", "-b", "side"], check=True)
    works("git log in a worktree", "git log --oneline | grep -q one", root=base + "/wt", read=[".", "../../.git"])
    r, out = run([task(f"cat {WS}/.git/config", root=base + "/wt", read=["."])])
    tap(verdict(r[0]) not in (0, False), "a worktree's real git directory is hidden", f"{r} {out}")
    r, out = run([task("echo x >../../.git/refs/x", read=[".", "../../.git"])])
    tap(verdict(r[0]) not in (0, False), ".git is granted read-only", f"{r} {out}")
    r, out = run([task("echo x >x; rm -f .git; echo y >.git/x; test -s .git && exit 4", root=base + "/wt", read=["."], write=["out/"])])
    tap(verdict(r[0]) == 4 or "gitdir" in open(base + "/wt/.git").read(), "a worktree's .git file stays as it is", f"{r} {out}")
    # a submodule: its git directory lies in the superproject's
    sub = base + "/subrepo"
    s = ["git", "-C", sub, "-c", "user.name=x", "-c", "user.email=x@y"]
    put(sub + "/f")
    for c in [["init", "-q"], ["add", "."], ["commit", "-qm", "sub"]]:
        subprocess.run(s + c, check=True)
    subprocess.run(g + ["-c", "protocol.file.allow=always", "submodule", "--quiet", "add", sub, "pkgs/a/vendor"], check=True, env=dict(os.environ, HOME=HOME))
    module = WS + "/.git/modules/pkgs/a/vendor"
    tap(os.path.isdir(module) and os.path.isfile(A + "/vendor/.git"), "git made a submodule as expected")
    works("git log in a submodule with .git granted", "cd vendor && git log --oneline | grep -q sub", read=["vendor", "../../.git"])
    before = open(module + "/config").read()
    attack = (f"cd vendor; git config core.fsmonitor /tmp/x; echo x >{module}/config; echo x >{module}/hooks/post-checkout; rm -f .git; mv .git g; "
              "echo gitdir: /tmp/evil >.git; mkdir -p evil && mv evil .git; true")
    r, out = run([task(attack, write=["vendor/"])])
    tap(verdict(r[0]) == 0 and open(module + "/config").read() == before and not os.path.exists(module + "/hooks/post-checkout")
        and open(A + "/vendor/.git").read().startswith("gitdir: ../../../.git/modules"), "a submodule's .git file, config and hooks stay as they are", f"{r} {out}")
    r, out = run([task(f"cat {module}/config", read=["vendor"])])
    tap(verdict(r[0]) not in (0, False), "a submodule's real git directory is hidden", f"{r} {out}")
    r, out = run([task("true", write=["../../.git/modules/"]), task("true", write=[module + "/hooks/"])])
    tap([x["kind"] for x in r] == ["refused", "refused"], "and cannot be granted for writing", f"{r} {out}")
    # a whole clone below a write grant, with a submodule and a worktree of its own
    subprocess.run(["git", "-c", "protocol.file.allow=always", "clone", "-q", "--recurse-submodules", WS, A + "/dist/clone"], check=False, stderr=subprocess.DEVNULL,
                   env=dict(os.environ, HOME=HOME))
    if os.path.isdir(A + "/dist/clone/.git"):
        r, out = run([task("cd dist/clone && git status --short >/dev/null; git config a.b c; echo x >.git/hooks/pre-commit; echo x >.git/commondir; "
                           "echo x >.git/config.worktree; git worktree add -q ../tree 2>/dev/null; echo y >pkgs/a/new; true", read=["."], write=["dist/"])])
        text = r[0]["text"]
        tap(verdict(r[0]) == 0 and r[0]["flags"] & 4 and "commondir" in text and "config.worktree" in text and not os.path.exists(A + "/dist/clone/.git/commondir")
            and "[a]" not in open(A + "/dist/clone/.git/config").read() and not os.path.exists(A + "/dist/clone/.git/hooks/pre-commit")
            and os.path.exists(A + "/dist/clone/pkgs/a/new"), "a clone below a write grant", f"{r} {out}")


def odd_names():
    names = {"a blank": b"a b", "quotes": b"a'b\"c", "a star": b"a*b", "a bracket": b"a[b", "a newline": b"a\nb", "non-UTF-8": b"a\xff\xfeb", "a backslash": b"a\\b"}
    for what, name in names.items():
        root = base.encode() + b"/odd-" + name
        os.makedirs(root + b"/p/" + name)
        with open(root + b"/p/" + name + b"/f", "w") as f:
            f.write("yes\n")
        env = {b"T_ROOT": root, b"T_PROJECT": b"p/" + name}
        r, out = run([task("grep -q yes f && echo x >dist/o", root="env:T_ROOT", project="env:T_PROJECT", read=["f"])],
                     {os.fsdecode(k): os.fsdecode(v) for k, v in env.items()})
        tap(verdict(r[0]) == 0 and os.path.exists(root + b"/p/" + name + b"/dist/o"), "a path with " + what, f"{r} {out}")


def ends():
    r, _ = run([task("exit 7"), task("kill -9 $$"), task("kill -TERM $$"), task(argv=["no-such-program", "x"], env={"PATH": "/usr/bin:/bin"}), task(argv=["/etc/passwd"]),
                task("true", cwd=A + "/none"), task(argv=["sh", "-c", "exit 3"]), task(argv=["src/script"])])
    tap([x["end"] for x in r[:3]] == [1, 2, 2] and r[0]["code"] == 7 and r[1]["signal"] == 9 and r[2]["signal"] == 15, "exit codes and signals", str(r))
    tap(r[3]["end"] == 5 and "execute" in r[3]["text"] and "No such file" in r[3]["text"], "a program that is not there", str(r[3]))
    tap(r[4]["end"] == 5 and "denied" in r[4]["text"], "a program that cannot be executed", str(r[4]))
    tap(r[5]["end"] == 5 and "directory" in r[5]["text"], "a directory that is not there", str(r[5]))
    tap(r[6]["end"] == 1 and r[6]["code"] == 3, "argv[0] is looked for on the task's PATH", str(r[6]))
    put(A + "/src/script", "exit 4\n")
    os.chmod(A + "/src/script", 0o755)
    r, _ = run([task(argv=["src/script"])])
    tap(r[0]["end"] == 1 and r[0]["code"] == 4, "a script without #! is run by sh", str(r))


def gone(mark):
    """No process with this in its command line is alive, three seconds from now at the latest."""
    for _ in range(60):
        if subprocess.run(["pgrep", "-f", mark], stdout=subprocess.DEVNULL).returncode:
            return True
        time.sleep(0.05)
    return False


def signals():
    n = 7000 + os.getpid() % 1000
    r, out = run([task(f"trap 'echo trapped >dist/trap; exit 9' TERM; sleep {n} & wait", signal=15, after_ms=200)])
    tap(r[0]["end"] == 1 and r[0]["code"] == 9 and os.path.exists(A + "/dist/trap"), "SIGTERM reaches the command's traps", f"{r} {out}")
    r, out = run([task(f"trap '' TERM INT; setsid sleep {n} & sleep {n}", signal=9, after_ms=200)])
    tap(r[0]["end"] == 2 and r[0]["signal"] == 9 and gone(f"sleep {n}"), "SIGKILL ends everything, setsid or not", f"{r} {out}")
    r, out = run([task(f"setsid sleep {n} >/dev/null 2>&1 & (sleep {n} &) ; exit 0")])
    tap(r[0]["end"] == 1 and r[0]["code"] == 0 and gone(f"sleep {n}"), "what the command leaves is killed", f"{r} {out}")
    r, out = run([task(f"trap 'exit 5' INT; sleep {n} & wait", signal=2, after_ms=200)])
    tap(r[0]["code"] == 5, "SIGINT is passed on", f"{r} {out}")


def placeholders():
    swept = lambda: not os.listdir(WS + "/.vx/sweep") if os.path.isdir(WS + "/.vx/sweep") else True
    r, out = run([task("true", write=["o.txt", "d/e/f/", "g/h.js"])])
    tap(verdict(r[0]) == 0 and not any(os.path.lexists(f"{A}/{x}") for x in ("o.txt", "d", "g")) and swept(), "untouched placeholders are swept", f"{r} {out}")
    r, out = run([task("echo x >o.txt; echo y >d/e/f/z", write=["o.txt", "d/e/f/", "g/h.js"])])
    tap(open(A + "/o.txt").read() == "x\n" and os.path.exists(A + "/d/e/f/z") and not os.path.exists(A + "/g"), "what the task wrote stays", f"{r} {out}")
    r, out = run([task("exit 1", write=["made"])])
    tap("write \"made/\"" in r[0]["text"] and "directory" in r[0]["text"], "a failed task that left a placeholder untouched gets the hint", f"{r} {out}")
    r, out = run([task(": >t.txt", write=["t.txt"])])
    tap(os.path.exists(A + "/t.txt"), "an empty file that the task made stays", f"{r} {out}")
    os.symlink("nothing", A + "/dangling")
    r, out = run([task("true", write=["dangling"])])
    tap(os.path.islink(A + "/dangling") and verdict(r[0]) == 0, "a dangling link is left alone", f"{r} {out}")


def host_of(p):
    for _ in range(200):
        out = subprocess.run(["pgrep", "-P", str(p.pid)], capture_output=True, text=True).stdout.split()
        if out:
            return int(out[0])
        time.sleep(0.01)
    raise RuntimeError("no box host")


def kills():
    n = 8000 + os.getpid() % 1000
    wait = lambda: [time.sleep(0.02) for _ in range(250) if not os.path.exists(A + "/dist/up")]
    for who in ("worker", "host", "both", "bwrap"):
        if os.path.exists(A + "/dist/up"):
            os.unlink(A + "/dist/up")
        p, results = start([task(f"setsid sleep {n} & touch dist/up; sleep {n}", write=["dist/", "k.txt", "k/d/"])])
        wait()
        h = host_of(p)
        b = int(subprocess.run(["pgrep", "-P", str(h)], capture_output=True, text=True).stdout.split()[0])
        if who in ("worker", "both"):
            p.send_signal(signal.SIGSTOP)
        for pid in {"worker": [p.pid], "host": [h], "both": [h, p.pid], "bwrap": [b]}[who]:
            os.kill(pid, signal.SIGKILL)
        p.wait()
        dead = gone(f"sleep {n}")
        if who == "both":
            run([{"sweep": WS + "/.vx/sweep"}])
        for _ in range(250):
            left = [x for x in ("k.txt", "k") if os.path.lexists(f"{A}/{x}")] + os.listdir(WS + "/.vx/sweep")
            if not left:
                break
            time.sleep(0.02)
        tap(dead and not left, f"SIGKILL of the {who}: nothing alive, nothing left", f"alive {not dead} left {left}")
        if who == "host":
            tap('"lost"' in open(results).read(), "the death of the host is a lost attempt", open(results).read())


def accounting():
    r, out = run([task("i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done & (i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done); wait"),
                  task("true"), task("python3 -c 'x = bytearray(200 << 20); print(len(x))'")])
    tap(r[0]["cpu_ms"] > 20 and r[0]["cpu_ms"] > 5 * r[1]["cpu_ms"], "CPU time covers the whole tree", str(r[:2]))
    tap(200 << 20 <= r[2]["peak_bytes"] < 260 << 20, "peak memory of the largest process", str(r[2]))
    tap(r[1]["peak_bytes"] < 16 << 20, "nothing of our own memory is counted", str(r[1]))


def grants():
    s = socket.create_server(("127.0.0.1", 0))
    port = s.getsockname()[1]
    connect = f"python3 -c 'import socket; socket.create_connection((\"127.0.0.1\",{port}),2)'"
    works("network: true is the host's network", connect, network=True)
    u = socket.socket(socket.AF_UNIX)
    u.bind(base + "/sock")
    u.listen()
    connect = f"python3 -c 'import socket; socket.socket(socket.AF_UNIX).connect(\"{base}/sock\")'"
    r, out = run([task(connect)])
    tap(verdict(r[0]) not in (0, False), "no unix socket without a grant", f"{r} {out}")
    works("unixSockets: true", connect, unixSockets=True)
    works("unixSockets: a list; /run is emptied", connect + " && test -z \"$(ls -A /run)\"", unixSockets=[base + "/sock"])
    r, out = run([task("python3 -c 'import pty; pty.openpty()'"), task("python3 -c 'import pty; pty.openpty()'", pty=True)])
    tap(verdict(r[0]) != 0 and verdict(r[1]) == 0, "a pseudo-terminal with pty alone", f"{r} {out}")
    r, out = run([task("test -c /dev/fuse"), task("test -c /dev/fuse && test -c /dev/null", devices=["/dev/fuse"]), task("test -c /dev/fuse")])
    tap([verdict(x) for x in r] == [1, 0, 1], "a device with a grant, and not in the next task", f"{r} {out}")
    r, out = run([task("true", network=["example.com"]), task("true", write=["../.."]), task("true", write=["src/../../b/../../.git/"])])
    tap(all(x["kind"] == "refused" and x["end"] == 6 and x["text"].startswith("sandbox: ") for x in r), "refusals", f"{r}")
    r, out = run([task("cat src/main.c >dist/copy; ls -a; test ! -e package.json", read=["src/*.c"])])
    tap(verdict(r[0]) == 0 and os.path.exists(A + "/dist/copy"), "a read glob", f"{r} {out}")


def nested():
    inner = f"{base}/inner.json"
    put(inner, '[{"arm": true}]')
    own_init = shutil.copy(os.environ["VX_INIT"], f"{base}/vx-init")  # the build may lie below /tmp, which is empty inside
    outer = f"VX_INIT={own_init} {base}/../boxrun -r dist/inner {inner}"
    r, out = run([task(outer)])
    text = open(A + "/dist/inner").read()
    tap("sandbox not available" in text and ("root without capabilities" if ROOT else "weakerWhenNested") in text, "a sandbox inside a sandbox is refused with the fix", f"{r} {out} {text}")
    os.unlink(A + "/dist/inner")
    put(inner, f'[{{"root": "{WS}", "project": "pkgs/a", "home": "{HOME}", "read": ["src"], "write": ["dist/"], "record": "/tmp/sweep", '
        '"weaker": true, "command": "echo deep >dist/deep; cat ../b/secret || exit 3"}]')
    r, out = run([task(outer, weakerWhenNested=True, unixSockets=True, read=["src", "../b"], write=["dist/"])])
    text = open(A + "/dist/inner").read()
    if ROOT:
        tap("root without capabilities" in text, "root cannot nest, and is told why", f"{r} {out} {text}")
        return
    tap('"code":3' in text and os.path.exists(A + "/dist/deep"), "with weakerWhenNested it works, and still hides", f"{r} {out} {text}")


def arming():
    """Places where a sandbox cannot be had, each told apart."""
    def arm(name, words, env=None, prefix=None):
        spec = base + "/arm.json"
        put(spec, '[{"arm": true}]')
        e = {**os.environ, "VX_INIT": init, **(env or {})}
        p = subprocess.run((prefix or []) + [boxrun, spec], env=e, capture_output=True, text=True)
        text = p.stderr + p.stdout
        tap(p.returncode == 90 and "sandbox not available" in text and all(w in text for w in words), name, text)

    r, out = run([{"arm": True}, {"arm": True}])
    tap([x["end"] for x in r] == [1, 1], "a good machine", f"{r} {out}")
    bins = base + "/bins"
    os.makedirs(bins)
    arm("bubblewrap missing", ["bwrap", "apt install"], {"PATH": bins})
    put(bins + "/bwrap", "#!/bin/sh\necho bubblewrap 0.3.1\n")
    os.chmod(bins + "/bwrap", 0o755)
    arm("bubblewrap too old", ["0.3 is too old", "0.5"], {"PATH": bins + ":/usr/bin:/bin"})
    put(bins + "/bwrap", "#!/bin/sh\n[ \"$1\" = --version ] && exec /usr/bin/bwrap --version; echo 'bwrap: No permissions to frobnicate' >&2; exit 1\n")
    arm("bubblewrap failing in an unknown way", ["frobnicate"], {"PATH": bins + ":/usr/bin:/bin"})
    arm("vx-init missing", ["vx-init is missing", "make install"], {"VX_INIT": base + "/none/vx-init"})
    put(base + "/plain/vx-init")
    arm("vx-init that cannot be executed", [base + "/plain/vx-init is not a file", "chmod 755"], {"VX_INIT": base + "/plain/vx-init"})
    arm("a directory in vx-init's place", [base + "/plain is not a file"], {"VX_INIT": base + "/plain"})
    ns = ["unshare", "-rm"] if not ROOT else ["unshare", "-m"]
    if subprocess.run(ns + ["true"], stderr=subprocess.DEVNULL).returncode == 0:
        covered = ns + ["sh", "-c", "mount -t tmpfs t /proc/acpi && exec \"$@\"", "-"]
        arm("parts of /proc covered", ["no /proc", "weakerWhenNested"], prefix=covered)
        spec = base + "/weak.json"
        put(spec, json.dumps([task("cat /proc/self/comm && test ! -w /proc/sys/kernel/hostname && cat ../b/secret || exit 3", weaker=True)]))
        p = subprocess.run(covered + [boxrun, spec], env=dict(os.environ, VX_INIT=init, HOME=HOME), capture_output=True, text=True)
        tap(p.returncode == 3 and p.stdout == "cat\n", "with the nested profile agreed on, the host's /proc is read-only", p.stdout + p.stderr)
    r, out = run([task("test $(ls /proc | grep -c '^[0-9]') -lt 6", weaker=True)])
    tap(verdict(r[0]) == 0, "where a /proc can be had, agreeing changes nothing", f"{r} {out}")
    if ROOT:
        old = open("/proc/sys/user/max_user_namespaces").read()
        inner = ["unshare", "-Ur", "sh", "-c", "echo 0 >/proc/sys/user/max_user_namespaces && exec \"$@\"", "-"]
        arm("user.max_user_namespaces is 0", ["user.max_user_namespaces", "sysctl -w"], prefix=inner)
        tap(open("/proc/sys/user/max_user_namespaces").read() == old, "the machine's own sysctl is untouched")


fresh()
programs()
fresh()
git()
odd_names()
fresh()
ends()
signals()
fresh()
placeholders()
kills()
fresh()
accounting()
grants()
fresh()
nested()
arming()
