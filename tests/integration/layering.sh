# The directions of dependencies, from #include lines and from the symbols of the built objects; and the size of files.
#
#   include <- shm <- {git, glob, worktree, workspace, config, graph, key, affected, cache, core, lane, request, box, trace, net} <- {loop, worker} <- cli
#   request is pure and linked into both sides: the scheduler's loop assembles with it, the box acts on it.
#   peers: worktree, glob -> git; workspace -> worktree, glob; config -> glob; graph -> workspace, config; key -> graph, worktree; affected -> key; cache -> key; lane -> cache;
#   report -> core
. "$(dirname "$0")/../lib.sh"
cd "$SRC" || exit 1

cat >"$W/layering.py" <<'PY'
import os, re, subprocess, sys

build = sys.argv[1]
PEERS = {"git": [], "glob": ["git"], "worktree": ["git"], "workspace": ["worktree", "glob"], "config": ["glob"], "graph": ["workspace", "config"],
         "key": ["graph", "worktree", "request"], "cache": ["key"], "lane": ["cache"], "core": [], "affected": ["key"],
         "report": ["core"], "request": [], "box": ["request"], "trace": [], "net": [], "init": []}
SCHED = ["git", "glob", "worktree", "workspace", "config", "graph", "key", "cache", "core", "lane", "report", "affected"]
WORKER = ["request", "box", "trace", "net"]
THIRD_PARTY = ["liburing.h", "lmdb.h", "zstd.h", "seccomp.h", "msgpack", "nettle/", "json-c/", "yaml.h", "pcre2.h", "cmocka.h", "curl/"]


def closure(module):
    seen, todo = set(), [module]
    while todo:
        for peer in PEERS.get(todo.pop(), []):
            if peer not in seen:
                seen.add(peer)
                todo.append(peer)
    return seen


def allowed(module):
    """What a module may use besides itself and include/vx."""
    if module == "shm":
        return set()
    if module == "loop":
        return {"shm", "request", *SCHED}
    if module == "cli":
        return {"shm", "request", "loop", *SCHED}
    if module == "worker":
        return {"shm", *WORKER}
    if module == "main":
        return {"shm", "loop", "cli", "worker", *SCHED, *WORKER}
    if module == "init":
        return set()
    return {"shm"} | closure(module)


def module_of(path):
    parts = path.split("/")
    if parts[0] == "shm":
        return "shm"
    if path == "sched/main.c":
        return "main"
    return parts[1] if len(parts) > 2 else parts[0]


def files(roots, ends):
    return sorted(os.path.join(d, f) for root in roots for d, _, names in os.walk(root) for f in names if f.endswith(ends))


sources = files(["sched", "worker", "shm"], (".c", ".h"))
headers = files(["include/vx"], (".h",))
tests = files(["tests", "bench"], (".c", ".h"))
problems = {k: [] for k in ["unknown", "sides", "private", "headers", "third", "symbols", "size", "door"]}
by_stem = {}
for f in sources:
    if f.endswith(".c"):
        by_stem.setdefault(os.path.basename(f)[:-2], set()).add(module_of(f))


def owner_of_header(name):
    """The module that implements include/vx/NAME.h, None when it is a contract without code or several have such a file."""
    if name in PEERS and any(module_of(f) == name for f in sources):
        return name
    owners = by_stem.get(name, set())
    return next(iter(owners)) if len(owners) == 1 else None


third = {}
for f in sources + headers + tests:
    try:
        text = open(f, encoding="utf-8").read()
    except UnicodeDecodeError:
        problems["size"].append(f"{f}: is not UTF-8")
        continue
    lines = text.count("\n")
    if lines > 700:
        problems["size"].append(f"{f}: {lines} lines, at most 700")
    ours = f in sources
    me = module_of(f) if ours else None
    if ours and me not in PEERS and me not in ("shm", "main", "loop", "cli", "worker"):
        problems["unknown"].append(f"{f}: module '{me}' is not in the architecture; place it in this test's table")
    for bracket, inc in re.findall(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]', text, re.M):
        own = bracket == '"' and os.path.exists(os.path.join(os.path.dirname(f), inc))
        if not own and (f not in tests or inc.startswith("cmocka")):
            for t in THIRD_PARTY:
                if inc == t or (t.endswith("/") and inc.startswith(t)) or (t == "msgpack" and inc.startswith(t)):
                    third.setdefault(t, set()).add(f)
        if bracket == "<" or f in tests:
            continue
        if inc.startswith("vx/"):
            owner = owner_of_header(inc[3:-2])
            if f in headers or owner is None or owner == me:
                continue
            if owner in SCHED + ["loop", "cli"] and me in SCHED + ["loop", "cli", "shm"] and owner not in allowed(me):
                problems["headers"].append(f"{f}: {me} includes {inc} of {owner}")
            continue
        target = next((p for p in (os.path.normpath(os.path.join(os.path.dirname(f), inc)), inc) if os.path.exists(p)), None)
        if target is None:
            problems["private"].append(f'{f}: cannot find "{inc}"')
        elif f in headers:
            problems["private"].append(f'{f}: a contract includes the private "{inc}"')
        else:
            other = module_of(target)
            if {f.split("/")[0], target.split("/")[0]} == {"sched", "worker"} and me != "main":
                problems["sides"].append(f"{f}: includes {target}")
            elif other != me and other not in allowed(me):
                problems["private"].append(f"{f}: {me} includes {target}")

# Text for people goes through shm/base/text.c, which escapes and masks; a line that is written in another way would forget it.
STDIO = re.compile(r"\b(?:f|v|vf|d|vd)?printf\(|\bf?puts\(|\bf?putc\(|\bputchar\(|\bfwrite\(|\bperror\(|\b(?:vx_)?write(?:_full)?\((?:1|2|STDOUT_FILENO|STDERR_FILENO),")
REPORT = re.compile(r"\bvx_buf_\w+\(\s*&r->out\.buf")
for f in sources:
    text = open(f, encoding="utf-8", errors="replace").read()
    if f.startswith("sched/") and f != "sched/cli/common.c":
        problems["door"] += [f"{f}: {m.group(0)} instead of vx_say, vx_text_* or vx_cli_out" for m in STDIO.finditer(text)]
    if f.startswith("sched/report/") and f != "sched/report/rows.c":
        problems["door"] += [f"{f}: {m.group(0)} instead of text, control or task_bytes" for m in REPORT.finditer(text)]

for t, users in sorted(third.items()):
    if len(users) > 1:
        problems["third"].append(f"<{t}>: included by {', '.join(sorted(users))}")

# Symbols say what includes cannot: a declaration may come by way of any header.
defined, used = {}, {}
objects = {f"{build}/obj/{f[:-2]}.o": f for f in sources if f.endswith(".c") and os.path.exists(f"{build}/obj/{f[:-2]}.o")}
if objects:
    for line in subprocess.run(["nm", "-A", "-g", *objects], capture_output=True, text=True, check=True).stdout.splitlines():
        where, kind, name = line.rpartition(":")[0], *line.split()[-2:]
        f = objects[where]
        if kind == "U":
            used.setdefault(f, set()).add(name)
        elif kind not in "wv":
            defined[name] = f
for f, names in used.items():
    for name in sorted(names):
        target = defined.get(name)
        if not target:
            continue
        me, other = module_of(f), module_of(target)
        if name == "vx_box_sweep_records":  # file-system work that the scheduler does for boxes of runs that are dead, see include/vx/box.h
            continue
        if me != other and other not in allowed(me):
            problems["symbols"].append(f"{f}: {me} uses {name}() of {target}")

TITLES = {"unknown": "every directory is a module of the architecture", "sides": "sched/ and worker/ never include each other",
          "private": "private headers stay in their module or go along allowed edges", "headers": "contracts are used along allowed edges",
          "third": "each third-party header is included by one file", "symbols": "functions are used along allowed edges",
          "size": "no file is longer than 700 lines", "door": "text for people goes through one door"}
for i, (kind, title) in enumerate(TITLES.items(), 1):
    print(f"{'not ' if problems[kind] else ''}ok {i} - {title}")
    for p in problems[kind]:
        print(f"# {p}")
print(f"1..{len(TITLES)}")
sys.exit(any(problems.values()))
PY
python3 "$W/layering.py" "$VX_BUILD"
rc=$?
VXT_ENDED=1
exit $rc
