#!/usr/bin/env python3
"""Runs test programs that print TAP and sums them up.

usage: tests/run.py FILE...

Each FILE is a program or a shell script. Two run at a time (VX_TEST_JOBS). A file fails when one of its tests fails, when it exits with a failure, prints no
TAP, when its plan does not match what it ran, or when it takes longer than VX_TEST_TIMEOUT seconds (1800). The last line is the sum; the exit status is 1 when
anything failed. The output of a failing file is printed whole; of a passing one only why it skipped what it did.

Nothing may be left behind: what a file started and is still alive VX_TEST_LEFT_S seconds (20) after its end is named, ended, and a failure of that file,
however it has forked or changed its session. Each of the two that run at a time does so below a process of its own, a child subreaper, to which orphans come.
"""
import concurrent.futures
import ctypes
import multiprocessing
import os
import re
import signal
import subprocess
import sys
import threading
import time

# Each of these catches a hang and nothing else: on a loaded machine everything may take many times as long as it does alone.
TIMEOUT_S = float(os.environ.get("VX_TEST_TIMEOUT", "1800"))
READ_S = float(os.environ.get("VX_TEST_READ_S", "20"))  # how long output may stay open after a file's end
LEFT_S = float(os.environ.get("VX_TEST_LEFT_S", "20"))  # how long a file's processes may outlive it
SWEEP_S = 120  # how long killing may take; longer does only what waits in the kernel
JOBS = int(os.environ.get("VX_TEST_JOBS", "2"))
PLAN = re.compile(r"^\s*1\.\.(\d+)(?:\s*#\s*(skip\S*)\s*(.*))?$", re.I)
LINE = re.compile(r"^\s*(not ok|ok)\b[\s-]*(\d+)?(.*)$")
CMOCKA_SKIP = re.compile(r"^not ok \d+ # SKIP ")  # how cmocka 1.1.5 says that a test called skip()
SKIP = re.compile(r"#\s*skip\b\s*(.*)", re.I)
WHY = re.compile(r"^# skipped: (.*)")  # cmocka has no room for a reason (vxt_skip)


class Result:
    def __init__(self, name):
        self.name, self.passed, self.failed, self.skipped = name, 0, 0, 0
        self.problems, self.output, self.seconds = [], "", 0.0
        self.why = {}  # reasons of what was skipped, and how often


def note(res, why):
    if why:
        res.why[why] = res.why.get(why, 0) + 1


def parse(res):
    """Counts the tests of res.output. A program may hold several groups, each with a plan of its own."""
    planned = ran = 0
    plans = 0
    for line in res.output.splitlines():
        plan = PLAN.match(line)
        if plan:
            plans += 1
            planned += int(plan.group(1))
            if int(plan.group(1)) == 0 and plan.group(2):
                res.skipped += 1
                note(res, plan.group(3))
            continue
        why = WHY.match(line)
        if why:
            note(res, why.group(1))
        test = LINE.match(line)
        if not test:
            continue
        ran += 1
        if CMOCKA_SKIP.match(line):
            res.skipped += 1
        elif test.group(1) == "not ok":
            res.failed += 1
            res.problems.append("not ok" + (" " + test.group(2) if test.group(2) else "") + test.group(3))
        elif SKIP.search(test.group(3)):
            res.skipped += 1
            note(res, SKIP.search(test.group(3)).group(1))
        else:
            res.passed += 1
    if not plans:
        res.problems.append("prints no plan (1..N)" if ran else "prints no TAP")
    elif planned != ran:
        res.problems.append(f"planned {planned} tests but ran {ran}")


def become_subreaper():
    ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)  # PR_SET_CHILD_SUBREAPER


def children(pid):
    found = []
    try:
        for task in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{task}/children", encoding="ascii") as f:
                found += [int(word) for word in f.read().split()]
    except OSError:
        pass  # it is gone
    return found


def send(pid, sig):
    try:
        os.kill(pid, sig)
    except (ProcessLookupError, PermissionError):
        pass


def reap(spare):
    """Reaps our dead children but `spare` (a Popen waits for that one). Returns those that live.

    A child that dies after it was listed leaves us its own children, which the list does not hold: only a list of which nobody was reaped is the whole."""
    while True:
        live, reaped = [], False
        for pid in children(os.getpid()):
            try:
                if pid == spare:
                    continue
                if os.waitpid(pid, os.WNOHANG)[0] == 0:
                    live.append(pid)
                else:
                    reaped = True
            except ChildProcessError:
                pass
        if live or not reaped:
            return live


def describe(pid):
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as f:
            return f"{pid} " + f.read().replace(b"\0", b" ").decode("utf-8", "replace").strip()
    except OSError:
        return str(pid)


def end_all(spare=0):
    """Ends everything below us. A process that starts the next and exits is never there when it is killed: all is stopped first, from the top down."""
    end = time.monotonic() + SWEEP_S
    while True:
        known, fresh = [], reap(spare)
        if spare:
            fresh.append(spare)
        if not fresh or time.monotonic() > end:
            return
        while fresh:
            for pid in fresh:
                send(pid, signal.SIGSTOP)
            known += fresh
            fresh = [c for p in fresh for c in children(p) if c not in known]
        for pid in reversed(known):
            send(pid, signal.SIGKILL)
        if spare and not reap(spare):
            return
        time.sleep(0.001)


def end_leftovers(res):
    """After the end of a file: whatever is alive below us is its."""
    end = time.monotonic() + LEFT_S
    while reap(0) and time.monotonic() < end:
        time.sleep(0.01)
    left = reap(0)
    if left:
        res.problems.append("left behind: " + "; ".join(describe(p) for p in left))
        end_all()


def prepare_job(runner):
    """One process of the pool. It outlives nobody: when the runner dies, so does everything below."""
    def die(*_):
        end_all()
        os._exit(1)

    become_subreaper()
    signal.signal(signal.SIGTERM, die)
    ctypes.CDLL(None).prctl(1, signal.SIGTERM, 0, 0, 0)  # PR_SET_PDEATHSIG
    if os.getppid() != runner:
        os._exit(1)  # it died before the line above


def run(path):
    res = Result(path)
    # A test that calls make or git sees nothing of the make, or of the hook of git, that runs it: GIT_DIR would have it work on the developer's repository.
    env = {k: v for k, v in os.environ.items()
           if k not in ("MAKEFLAGS", "MFLAGS", "MAKELEVEL", "MAKEOVERRIDES", "B", "SAN", "OPT", "T", "WERROR") and not k.startswith("GIT_")}
    env["CMOCKA_MESSAGE_OUTPUT"] = "TAP"
    argv = ["bash", path] if path.endswith(".sh") else [os.path.abspath(path)]
    begin = time.monotonic()
    try:
        proc = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=env, start_new_session=True)
    except OSError as e:
        res.problems.append(f"cannot start: {e}")
        res.failed = 1
        return res
    chunks = []
    reader = threading.Thread(target=lambda: chunks.append(proc.stdout.read()), daemon=True)
    reader.start()
    try:
        proc.wait(TIMEOUT_S)
    except subprocess.TimeoutExpired:
        res.problems.append(f"took longer than {TIMEOUT_S:g} s")
        end_all(proc.pid)
        proc.wait()
        end_all()
    reader.join(READ_S)
    if reader.is_alive():
        res.problems.append("left a process behind that holds its output open")
        end_leftovers(res)
        reader.join(5)
    end_leftovers(res)
    res.seconds = time.monotonic() - begin
    res.output = b"".join(chunks).decode("utf-8", "replace")
    parse(res)
    if proc.returncode and not res.failed:
        how = f"exit status {proc.returncode}" if proc.returncode > 0 else signal.Signals(-proc.returncode).name
        res.problems.append(how)
    if res.problems and not res.failed:
        res.failed = 1
    return res


def report(res):
    name = re.sub(r"^.*?(tests/)", r"\1", res.name)
    mark = "FAILED" if res.failed else "ok"
    skipped = f", {res.skipped} skipped" if res.skipped else ""
    print(f"{mark:6} {name}: {res.passed} passed{skipped} ({res.seconds:.1f} s)")
    for why, times in res.why.items():
        print(f"       skipped: {why}" + (f" ({times} times)" if times > 1 else ""))
    if res.failed:
        for line in res.output.splitlines():
            print("    | " + line)
        for problem in res.problems:
            print("    ! " + problem)
    sys.stdout.flush()


def main(files):
    passed = failed = skipped = 0
    become_subreaper()
    fork = multiprocessing.get_context("fork")
    with concurrent.futures.ProcessPoolExecutor(max_workers=JOBS, mp_context=fork, initializer=prepare_job, initargs=(os.getpid(),)) as pool:
        for res in concurrent.futures.as_completed([pool.submit(run, f) for f in files]):
            res = res.result()
            report(res)
            passed, failed, skipped = passed + res.passed, failed + res.failed, skipped + res.skipped
    whole = Result("everything")
    end_leftovers(whole)
    for problem in whole.problems:
        print("    ! " + problem)
        failed += 1
    print(f"{passed} passed, {failed} failed, {skipped} skipped")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
