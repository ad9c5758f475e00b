#!/usr/bin/env bash
# docs/start.md, word by word: files are written, commands run, and what is printed is what the page says but for times.
. "$(dirname "$0")/../lib.sh"
. "$SRC/tests/vx.sh"
command -v python3 >/dev/null || skip_all 'no python3'
can_sandbox || skip_all 'the page has a sandbox, and there is none here'

cat >"$W/page.py" <<'P'
# Writes the page's files as steps: N.file (first line: its path), N.sh, N.text (what the N.sh before it prints).
import re, sys

steps = re.findall(r"(?:^`([^`]+)`\n\n)?^```(json|sh|text)\n(.*?)^```$", open(sys.argv[1]).read(), re.M | re.S)
for i, (path, kind, text) in enumerate(steps):
    if kind == "json":
        assert path, text
        text = path + "\n" + text
    with open(f"{sys.argv[2]}/{i:02}.{'file' if kind == 'json' else kind}", "w") as f:
        f.write(text)
P
mkdir "$W/steps" "$W/bin" "$W/ws"
python3 "$W/page.py" "$SRC/docs/start.md" "$W/steps" || fail 'the page is understood'
ln -s "$VX" "$W/bin/vx"
PATH=$W/bin:$PATH
# Times, sizes of the overhead and the number of workers are nobody's promise.
steady() { sed -E 's/[0-9.]+(us|ms|s)\b/T/g; s/^([✓✗]) +T/\1 T/; s/^time .*/time/; s/^overhead .*/overhead/; s/; saved .*//'; }

cd "$W/ws" || exit 1
for step in "$W"/steps/*; do
	case $step in
	*.file)
		path=$(head -n 1 "$step")
		mkdir -p "$(dirname "$path")"
		tail -n +2 "$step" >"$path"
		;;
	*.sh)
		if ! bash -e "$step" >"$W/said" 2>&1; then fail "$(tail -n 1 "$step")" "$(cat "$W/said")"; else pass "$(tail -n 1 "$step")"; fi
		;;
	*.text) # rows of tasks that run side by side come in any order
		is 'prints what the page says' "$(steady <"$W/said" | sort)" "$(steady <"$step" | sort)"
		;;
	esac
done
like 'the two summaries differ where the page says' "$(cat "$W"/steps/*.sh)" 'diff before'
is 'what the page leaves behind' "$(git status --porcelain | sort | tr '\n' ' ')" '?? .gitignore ?? package.json ?? packages/ '

# the configurations that other pages show are accepted
block() { awk '/^```jsonc/ { on = 1; next } /^```/ && on { exit } on' "$SRC/$1"; }
printf '#!/bin/sh\necho v22.0.0\n' >"$W/bin/node"
chmod +x "$W/bin/node"
for page in README.md docs/config.md; do
	new_repo "$W/page"
	put package.json '{ "name": "root", "workspaces": ["p/*"] }'
	put p/a/package.json '{ "name": "a", "dependencies": { "b": "*" } }'
	put p/b/package.json '{ "name": "b" }'
	put p/b/vx.json '{ "tasks": { "build": { "exec": { "command": "true" } } } }'
	block $page >p/a/vx.jsonc
	put p/a/probe.sh 'echo probed'
	chmod +x p/a/probe.sh
	vx run build --all --dry=json
	is "$page: its configuration is accepted" "$rc $err" '0 '
	like 'and has its task' "$out" '"id":"a#build".*"command":"tsc -b"'
	cd "$W" && rm -rf "$W/page"
done
done_testing
