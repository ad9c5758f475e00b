#!/usr/bin/env bash
# Package scripts, under a turbo.json and as tasks of a vx.json, run as the package manager (and Turborepo around it) runs them: what else runs before and after, what they
# see of the environment, how their end is told.
. "$(dirname "$0")/../lib.sh"
. "$SRC/tests/vx.sh"
unset npm_execpath npm_config_user_agent npm_node_execpath

# turbo MANAGER TASKS: a workspace of a turbo.json in $W/wsN; the manifest of package a is stdin
n=0
turbo() {
	new_repo "$W/ws$((++n))"
	put package.json "{ \"name\": \"root\", \"private\": true, \"packageManager\": \"$1\", \"workspaces\": [\"p/*\"] }"
	put .gitignore $'node_modules\n.vx\ndist\nlog\nenv\n'
	put turbo.json "{ \"tasks\": { $2 } }"
	put p/a/package.json
	git add -A
	git commit -qm one
	: >"$W/ran"
}
sees() { grep -c "^$1\$" p/a/env; }

# what Turborepo lets through in its strict mode
turbo npm@10.0.0 '"build": { "cache": false }, "test": {}' <<<'{ "name": "a", "version": "1.2.3", "devDependencies": { "vite": "5" }, "scripts": { "build": "env >env; echo t=$GITHUB_TOKEN", "test": "echo a >>'"$W"'/ran; env >env" } }'
through='TZ LD_LIBRARY_PATH LD_PRELOAD DISPLAY XAUTHORITY XDG_RUNTIME_DIR XDG_DATA_DIRS DBUS_SESSION_BUS_ADDRESS TERM_PROGRAM GITHUB_SHA RUNNER_OS VERCEL VERCEL_ENV NEXT_TELEMETRY_DISABLED NOW_BUILDER DOCKER_HOST BUILDKIT_PROGRESS COMPOSE_FILE VSCODE_PID ELECTRON_RUN_AS_NODE JB_IDE_HOST JB_INTERPRETER COREPACK_ROOT TURBO_X NIX_PATH __NIXOS_X'
kept='XDG_CONFIG_HOME GITLAB_CI LD_DEBUG JB_X DISPLAYS VSCODE DOCKER NODE_ENV TERM_PROGRAM_VERSION VITE_CI_X'
given=()
for v in $through $kept; do given+=("$v="); done
GITHUB_TOKEN=hunter2hunter2 VITE_A=1 VITE_CI_X=1 TURBO_CI_VENDOR_ENV_KEY=VITE_CI_ run env "${given[@]}" VITE_CI_X=1 timeout -k 1 60 "$VX" run a#build
is 'variables that Turborepo lets through' "$rc $(for v in $through; do [ "$(sees "$v=")" = 1 ] || echo "$v"; done)" '0 '
is 'and no others' "$(for v in $kept; do [ "$(sees "$v=.*")" = 0 ] || echo "$v"; done)" ''
is 'inferred variables' "$(sees VITE_A=1)" 1
like 'a token among them is masked' "$out" '^t=\*\*\*$'
vx run a#test
GITHUB_SHA=1 TZ=UTC vx run a#test
is 'they are in no key' "$rc $(ran)" '0 a'
TURBO_CI_VENDOR_ENV_KEY=VITE_CI_ VITE_CI_X=1 vx run a#test
is 'nor is what begins with TURBO_CI_VENDOR_ENV_KEY' "$rc $(ran)" '0 '
VITE_CI_X=1 vx run a#test
is 'which is a variable of the framework else' "$rc $(ran)" '0 a'

done_testing
