#!/usr/bin/env bash
# Values that are secret, by the name of their variable or by declaration, stand in no file that a run leaves and in nothing that vx prints: as they are, and as
# JSON, HTML, a URL or a shell spells them.
. "$(dirname "$0")/../lib.sh"
. "$SRC/tests/vx.sh"

plain=supersecret1
odd=$'two "quotes" & <tags>\nsecond it\'s \\ line'
declared='declared-value-7'
cat >"$W/spellings.py" <<'PY'
import html, json, os, sys, urllib.parse
forms = set()
for value in sys.argv[2:]:
    for part in [value, *value.split("\n")]:
        forms |= {part, json.dumps(part)[1:-1], html.escape(part), urllib.parse.quote(part, safe=""), part.replace("'", "'\\''")}
found = []
for top, dirs, names in os.walk(sys.argv[1]):
    if ".git" in dirs:
        dirs.remove(".git")
    for n in names:
        path = os.path.join(top, n)
        if n in ("vx.json", "vx.config.mjs") or not os.path.isfile(path):
            continue
        data = open(path, "rb").read()
        found += [f"{path}: {f!r}" for f in sorted(forms) if len(f) > 5 and f.encode() in data]
print("\n".join(found[:5]))
PY
# nowhere NAME: in no file below the workspace, and in neither output of the last vx
nowhere() {
	cp "$W/.out" "$W/.err" "$PWD/"
	is "$1" "$(python3 "$W/spellings.py" "$PWD" "$plain" "$odd" "$declared")" ''
	rm -f .out .err
}

workspace
printf 'dist/\n.vx/\n' >.gitignore
project a <<'JSON'
{ "tasks": {
  "keyed": { "exec": { "command": "echo \"$API_TOKEN\"; printf '%s\\n' \"$ODD_SECRET\"; echo \"$OTHER\"",
      "env": { "passThrough": ["API_TOKEN", "ODD_SECRET"], "secret": ["OTHER"], "define": { "MY_PASSWORD": "in-the-file-itself" } } },
    "cache": { "inputs": { "files": [], "env": ["API_TOKEN", "ODD_SECRET", "OTHER"], "runtime": ["echo $API_TOKEN; printf '%s\\n' \"$ODD_SECRET\" >&2"] }, "outputs": { "files": [] } } },
  "late": { "exec": { "command": "echo args:" }, "cache": { "inputs": { "files": [] }, "outputs": { "files": [] } } },
  "probe": { "exec": { "command": "true" }, "cache": { "inputs": { "files": [], "runtime": ["echo \"no: $API_TOKEN\" >&2; exit 3"] }, "outputs": { "files": [] } } },
  "fails": { "exec": { "command": "echo $API_TOKEN; exit 3", "env": { "passThrough": ["API_TOKEN"] } } }
} }
JSON
git add -A && git commit -qm c
export API_TOKEN=$plain ODD_SECRET=$odd OTHER=$declared
all="--summarize=s.json --events=e.json --profile=p.json"
for dry in text json full; do
	vx run a#keyed a#late --dry=$dry -- "--token=$plain" "$odd"
	is "--dry=$dry" "$rc" 0
	nowhere "nowhere in --dry=$dry"
done
vx run a#keyed $all --report=html
is 'a run' "$rc" 0
like 'what the task printed is masked' "$out" '^\*\*\*$'
nowhere 'nowhere after a run'
like 'its key is told by a digest' "$(cat s.json)" '"env:API_TOKEN","value":"sha256:[0-9a-f]{64}"'
like 'the markup of a define is masked too' "$(grep -o '.\{30\}MY_PASSWORD.\{20\}' s.json)" 'MY_PASSWORD\\":\\"\*\*\*'
vx run a#keyed $all --report=markdown
nowhere 'nowhere after a hit'
vx run a#late $all -- "--token=$plain" "$odd"
is 'the command gets them, and what it prints of them is masked' "$(grep args: <<<"$out")" 'args: --token=*** ***'
nowhere 'nowhere with forwarded words'
vx run a#probe a#fails $all --report=html
is 'failures' "$rc" 1
nowhere 'nowhere after failures'
vx run a#probe a#fails $all --report=markdown --verbosity 3 --continue=always
nowhere 'nowhere in what is said of them'
GITHUB_ACTIONS=true vx run a#probe a#fails
nowhere 'nor on GitHub'
for i in 1 2; do vx run a#late -- "$plain"; done
nowhere 'nowhere in what is kept of a run that had nothing to do'
vx lock
is 'a lock' "$rc" 0
nowhere 'nowhere in the lock'
vx run a#late "--no$plain"
nowhere 'nowhere in an error that quotes the command line'
vx info --format json
nowhere 'nowhere in vx info'
vx init
nowhere 'nowhere in vx init'

if command -v node >/dev/null; then
	rm p/a/vx.json vx-lock.json
	put p/a/vx.config.mjs 'export default { tasks: { js: { exec: { command: "true", env: { define: { X: process.env.API_TOKEN, Y: process.env.ODD_SECRET } } } } } };'
	git add -A
	for i in 1 2; do vx run a#js $all; done
	is 'a configuration that takes one from the environment' "$rc" 0
	nowhere 'nowhere, the kept evaluations included'
	vx lock
	one_line 'it cannot be locked' 'a#js: exec\.env\.define holds the value of a secret variable'
	nowhere 'nowhere: there is no lock'
else
	skip 'JavaScript' 'there is no node'
fi
done_testing
