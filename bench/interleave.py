#!/usr/bin/env python3
"""Runs several commands in turn, round after round, and compares wall and CPU time.

usage: bench/interleave.py NAME [--rounds N] [--per N] [--dir DIR] [--prepare COMMAND] LABEL=COMMAND...

Interleaved, in an order that turns round each time, so that what else the machine does hits all of them alike; the ratio is the median of those of each round. CPU is user and system time of the command and all children it has waited for; peak memory that of the largest process. --per divides by a number of
tasks. --prepare runs before each command and is not measured. The first round warms up and is not counted. Writes $VX_BUILD/bench/NAME.json, which bench/run prints; the first label is the one that the others are compared to.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys
import time


def once(command, cwd):
    begin = time.monotonic_ns()
    proc = subprocess.Popen(["sh", "-c", "exec " + command], cwd=cwd, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    error = proc.stderr.read()
    _, status, usage = os.wait4(proc.pid, 0)
    wall = time.monotonic_ns() - begin
    proc.returncode = os.waitstatus_to_exitcode(status)
    if proc.returncode:
        sys.exit(f"bench: '{command}' ended with {proc.returncode}: {error.decode(errors='replace')}")
    return wall / 1e6, (usage.ru_utime + usage.ru_stime) * 1e3, usage.ru_maxrss / 1024


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("name")
    parser.add_argument("--rounds", type=int, default=21)
    parser.add_argument("--per", type=int, default=1)
    parser.add_argument("--dir", default=".")
    parser.add_argument("--prepare")
    parser.add_argument("commands", nargs="+")
    args = parser.parse_args()
    commands = [c.split("=", 1) for c in args.commands]
    samples = {label: [] for label, _ in commands}
    for i in range(args.rounds + 1):
        for label, command in commands if i % 2 else reversed(commands):
            if args.prepare:
                subprocess.run(args.prepare, shell=True, cwd=args.dir, check=True)
            sample = once(command, args.dir)
            if i:
                samples[label].append(sample)
    rows = []
    for label, _ in commands:
        wall = [w / args.per for w, _, _ in samples[label]]
        cpu = [c / args.per for _, c, _ in samples[label]]
        peak = max(p for _, _, p in samples[label])
        rows.append({"label": label, "wall_ms": statistics.median(wall), "wall_ms_min": min(wall), "wall_ms_max": max(wall), "cpu_ms": statistics.median(cpu), "peak_mb": peak})
    base = samples[commands[0][0]]
    for row in rows:
        mine = samples[row["label"]]
        row["ratio"] = statistics.median(m[0] / b[0] for m, b in zip(mine, base))
        row["cpu_ratio"] = statistics.median(m[1] / b[1] for m, b in zip(mine, base))
    out = os.path.join(os.environ["VX_BUILD"], "bench")
    os.makedirs(out, exist_ok=True)
    with open(os.path.join(out, args.name + ".json"), "w") as f:
        json.dump({"bench": args.name, "rounds": args.rounds, "per": args.per, "cpus": os.cpu_count(), "rows": rows}, f, indent=1)
        f.write("\n")


if __name__ == "__main__":
    main()
