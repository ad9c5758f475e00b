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
# order: as `ran`, in the order in which it happened
order() {
	paste -sd' ' "$W/ran"
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
is 'they are in no key' "$rc $(order)" '0 a'
TURBO_CI_VENDOR_ENV_KEY=VITE_CI_ VITE_CI_X=1 vx run a#test
is 'nor is what begins with TURBO_CI_VENDOR_ENV_KEY' "$rc $(order)" '0 '
VITE_CI_X=1 vx run a#test
is 'which is a variable of the framework else' "$rc $(order)" '0 a'

# pre and post
around() { # MANAGER: build logs, with what runs around it
	turbo "$1" '"build": { "cache": false }' <<<'{ "name": "a", "scripts": { "prebuild": "echo pre-$npm_lifecycle_event-$HERE >>log; export HERE=1; cd /", "build": "echo main-$npm_lifecycle_event-$HERE \"$PWD\" >>log; echo", "postbuild": "echo post-$npm_lifecycle_event-$? >>log" } }'
}
logged() { paste -sd, p/a/log 2>/dev/null; rm -f p/a/log; }
for manager in npm@10.0.0 npm@11.2.0 pnpm@9.0.0 pnpm@10.4.0 yarn@1.22.22 bun@1.1.0; do
	around $manager
	vx run a#build -- 'some words'
	is "$manager runs pre and post scripts, each in a shell of its own" "$rc $(logged)" "0 pre-prebuild-,main-build- $PWD/p/a,post-postbuild-0"
	is "$manager: the words of the command line are the script's" "$(head -1 <<<"$out")" 'some words'
done
for manager in yarn@4.1.0 yarn@2.0.0 pnpm@8.15.0 pnpm@6.0.0; do
	around $manager
	put .yarnrc.yml 'nodeLinker: node-modules'
	vx run a#build
	is "$manager does not" "$rc $(logged)" "0 main-build- $PWD/p/a"
done
around pnpm@8.0.0
put .npmrc 'enable-pre-post-scripts = true ; a comment'
vx run a#build
is 'pnpm: switched on in .npmrc' "$(logged | tr -dc ,)" ,,
around pnpm@10.0.0
put pnpm-workspace.yaml $'packages: ["p/*"]\nenablePrePostScripts: false\n'
vx run a#build
is 'pnpm: switched off in pnpm-workspace.yaml' "$(logged | tr -dc ,)" ''
around npm@10.0.0
put .npmrc 'ignore-scripts=true'
vx run a#build
is 'npm: ignore-scripts' "$rc $(logged | tr -dc ,)" '0 '
turbo pnpm@10.0.0 '"build": { "cache": false }' <<<'{ "name": "a", "scripts": { "prebuild": "echo pre >>log", "build": "echo prebuild >>log", "postbuild": "echo post >>log" } }'
vx run a#build
is 'pnpm leaves out what the script seems to call itself' "$(logged)" prebuild,post

# each end of them
end() { # PRE MAIN POST
	turbo npm@10.0.0 '"build": { "outputs": ["dist/**"] }' <<<"{ \"name\": \"a\", \"scripts\": { \"prebuild\": $(json "echo a >>log; $1"), \"build\": $(json "echo b >>log; $2"), \"postbuild\": $(json "echo c >>log; $3") } }"
	vx run a#build
	got="$rc $(logged) $(grep -oE 'exit [0-9]+' <<<"$out" | head -1)"
}
end true true true
is 'all well' "$got" '0 a,b,c '
end 'exit 3' true true
is 'a pre script that fails ends the task' "$got" '1 a exit 3'
end true 'exit 4' true
is 'so does the script' "$got" '1 a,b exit 4'
end true true 'exit 5'
is 'and the post script' "$got" '1 a,b,c exit 5'
end true 'kill -9 $$' true
is 'a script that kills itself' "$got" '1 a,b exit 137'
turbo npm@10.0.0 '"build": { "cache": false }' <<<'{ "name": "a", "scripts": { "prebuild": " ", "build": "echo main >>log", "postbuild": "" } }'
vx run a#build
is 'blank ones are none' "$rc $(logged)" '0 main'

# they are in the key, in the plan and in the lock
turbo npm@10.0.0 '"build": { "inputs": ["in"], "outputs": [] }' <<<"{ \"name\": \"a\", \"scripts\": { \"prebuild\": \"echo one >>$W/ran\", \"build\": \"echo main >>$W/ran\" } }"
vx run a#build
vx run a#build
is 'a script with one before it is cached' "$rc $(order)" '0 one main'
sed -i 's/echo one/echo two/' p/a/package.json
vx run a#build
is 'one that changes is run' "$(order)" 'two main'
vx run a#build --dry
like 'the plan shows it' "$out" "echo two >>$W/ran"
vx run a#build --dry=json
like 'as JSON too' "$out" "\"script\":\{\"name\":\"build\",\"pre\":\"echo two >>$W/ran\"\}"
vx lock
vx run a#build --force --frozen
is 'and the lock holds it' "$rc $(order)" '0 two main'

# a signal is the script's to answer, and nothing is started after it
turbo npm@10.0.0 '"build": { "cache": false }' <<<'{ "name": "a", "scripts": { "prebuild": "true", "build": "trap \"echo asked >>log; while ! [ -e go ]; do sleep 0.05; done; echo told >>log; exit 0\" TERM; echo up >>log; while :; do sleep 0.05; done", "postbuild": "echo post >>log" } }'
VX_KILL_GRACE_MS=60000 "$VX" run a#build >"$W/out" 2>&1 &
pid=$!
wait_for grep -q up p/a/log
kill -TERM $pid
wait_for grep -q asked p/a/log
: >p/a/go
wait $pid
is 'a script that is stopped ends as it wants, and nothing is started after it' "$? $(logged)" '143 up,asked,told'

# what they see
turbo npm@10.0.0 '"build": { "cache": false }' <<<'{ "name": "@s/a", "version": "1.2.3", "bin": "./x.js", "config": { "port": "8080", "deep": { "list": ["x", 2, false, null] } }, "engines": { "node": ">=18" }, "description": "d", "keywords": ["typescript"], "scripts": { "build": "env >env; tool; mid; rooted" } }'
for dir in p/a:tool p:mid .:rooted; do
	put "${dir%:*}/node_modules/.bin/${dir#*:}" '#!/bin/sh'
	chmod +x "${dir%:*}/node_modules/.bin/${dir#*:}"
done
npm_lifecycle_event=outer vx run @s/a#build
is 'node_modules/.bin of every directory up to the root' "$rc" 0
A=$PWD/p/a
for v in npm_lifecycle_event=build 'npm_lifecycle_script=env >env; tool; mid; rooted' npm_command=run-script npm_package_name=@s/a npm_package_version=1.2.3 npm_package_bin_a=x.js npm_package_config_port=8080 \
	npm_package_config_deep_list_0=x npm_package_config_deep_list_1=2 npm_package_config_deep_list_2= npm_package_config_deep_list_3= 'npm_package_engines_node=>=18' "npm_package_json=$A/package.json" "INIT_CWD=$A" "npm_config_local_prefix=$PWD"; do
	is "npm sets ${v%%=*}" "$(grep -cxF "$v" p/a/env)" 1
done
like 'npm_config_user_agent' "$(grep ^npm_config_user_agent= p/a/env)" '=npm/10\.0\.0 node/[^ ]+ linux [a-z0-9]+ workspaces/true$'
is 'and nothing of the rest of the manifest' "$(grep -cE '^npm_package_(description|keywords|scripts)' p/a/env)" 0
! command -v npm >/dev/null && skip npm_execpath 'no npm' || like 'npm_execpath' "$(sed -n 's/^npm_execpath=//p' p/a/env)" '^/.*npm'
npm_config_user_agent='npm/9.9.9 node/v1 x' npm_execpath=/of/npm npm_node_execpath=/of/node vx run @s/a#build
is 'within a script of the same manager: what that says' "$(sees npm_execpath=/of/npm) $(sees npm_node_execpath=/of/node) $(sees 'npm_config_user_agent=npm/9.9.9 node/v1 x')" '1 1 1'
npm_config_user_agent='pnpm/9.9.9 node/v1 x' npm_node_execpath=/of/node vx run @s/a#build
is 'within one of another: not' "$(sees npm_node_execpath=/of/node) $(grep -c 'agent=npm/10' p/a/env)" '0 1'
for manager in yarn@1.22.22 pnpm@9.0.0; do
	sed -i "s/\"npm@10.0.0\"/\"$manager\"/; s/\"pnpm@9.0.0\"/\"$manager\"/; s/\"yarn@1.22.22\"/\"$manager\"/" package.json
	vx run @s/a#build
	is "$manager sets the whole manifest" "$(sees npm_package_description=d) $(sees npm_package_keywords_0=typescript) $(sees npm_package_config_deep_list_2=false) $(grep -c '^npm_package_scripts_build=' p/a/env)" '1 1 1 1'
done
unlike 'whose keywords are no secrets' "$(vx run @s/a#build --force --output-logs full; echo "$out")" '\*\*\*'
sed -i 's/"pnpm@9.0.0"/"pnpm@10.0.0"/' package.json
vx run @s/a#build
is 'pnpm 10 sets what npm does' "$(sees npm_package_description=d) $(sees npm_package_bin=./x.js) $(sees npm_package_config_deep_list_3=null) $(sees "PNPM_SCRIPT_SRC_DIR=$A")" '0 1 1 1'
sed -i 's/"pnpm@10.0.0"/"yarn@4.0.0"/' package.json
vx run @s/a#build
is 'Yarn from 2 on sets name and version' "$(sees npm_package_version=1.2.3) $(grep -c ^npm_package_config p/a/env) $(sees "PROJECT_CWD=$PWD")" '1 0 1'
printf '{ "name": "a", "scripts": { "build": "true" }, "config": "%0300000d" }' 1 >p/a/package.json
sed -i 's/"yarn@4.0.0"/"npm@10.0.0"/' package.json
vx run a#build
is 'more of a manifest than an environment takes' "$rc" 1
like 'is said' "$out" 'p/a/package\.json gives more than [0-9]+ bytes of npm_package_'

# loose
turbo npm@10.0.0 '"build": { "cache": false }' <<<'{ "name": "a", "scripts": { "build": "env >env; tool" } }'
put turbo.json '{ "envMode": "loose", "tasks": { "build": { "cache": false } } }'
put p/a/node_modules/.bin/tool '#!/bin/sh'
chmod +x p/a/node_modules/.bin/tool
ANY=1 npm_lifecycle_event=outer PWD_OF=x vx run a#build
is 'where every variable is let through, those of a script are its own' "$rc $(sees ANY=1) $(sees npm_lifecycle_event=build) $(sees "PWD=$PWD/p/a")" '0 1 1 1'

# script-shell
turbo npm@10.0.0 '"build": { "cache": false }' <<<'{ "name": "a", "scripts": { "prebuild": "echo pre", "build": "echo main", "direct": "printenv HOME" } }'
put sh "#!/bin/sh
echo \"shell \$*\" >>$W/ran
exec /bin/sh \"\$@\""
chmod +x sh
put .npmrc "script-shell=$PWD/sh"
vx run a#build
is 'script-shell of .npmrc reads the scripts' "$rc $(order)" '0 shell -c echo pre shell -c echo main'
put .npmrc 'script-shell=no-such-shell'
vx run a#build
is 'one that is not there' "$rc" 1
like 'is said' "$out" 'script-shell "no-such-shell" was not found'

# node-options
turbo npm@10.0.0 '"build": { "cache": false }' <<<'{ "name": "a", "scripts": { "build": "printenv NODE_OPTIONS >>'"$W"'/ran" } }'
put .npmrc 'node-options="--max-old-space-size=4096 --no-warnings"'
NODE_OPTIONS=--mine vx run a#build
is 'node-options of .npmrc' "$rc $(order)" '0 --max-old-space-size=4096 --no-warnings'
vx lock
vx run a#build --frozen
is 'locked' "$rc $(order)" '0 --max-old-space-size=4096 --no-warnings'
rm vx-lock.json
sed -i 's/npm@10.0.0/pnpm@10.0.0/' package.json
put pnpm-workspace.yaml $'packages: ["p/*"]\nnodeOptions: --no-warnings\n'
vx run a#build
is 'nodeOptions of pnpm-workspace.yaml' "$rc $(order)" '0 --no-warnings'
rm .npmrc pnpm-workspace.yaml
NODE_OPTIONS=--mine vx run a#build
is 'without either, that of the run' "$rc $(order)" '0 --mine'

# `run` of Yarn from 2 on
turbo yarn@4.1.0 '"build": { "cache": false }, "one": { "cache": false }, "none": { "cache": false }' <<<'{ "name": "a", "scripts": { "build": "true && run other --x", "one": "run other", "none": "echo run other" } }'
put .yarnrc.yml 'nodeLinker: node-modules'
put "$W/yarn/yarn" "#!/bin/sh
echo \"yarn \$*\" >>$W/ran"
chmod +x "$W/yarn/yarn"
PATH=$W/yarn:$PATH vx run a#build -- word
is 'run within a script of Yarn 4 is yarn run' "$rc $(order)" '0 yarn run other --x word'
PATH=$W/yarn:$PATH vx run a#one
is 'alone too' "$rc $(order)" '0 yarn run other'
vx run a#none
is 'and a word like another elsewhere' "$rc $(head -1 <<<"$out")" '0 run other'

# TURBO_HASH
turbo npm@10.0.0 '"build": {}, "test": { "cache": false }' <<<'{ "name": "a", "scripts": { "build": "echo $TURBO_HASH >>'"$W"'/ran", "test": "echo $TURBO_HASH >>'"$W"'/ran" } }'
vx run a#build --dry=json
want=$(grep -oE '"hash":"[0-9a-f]{16}' <<<"$out" | cut -d'"' -f4)
TURBO_HASH=outer vx run a#build
is 'TURBO_HASH is the key' "$rc $(order)" "0 $want"
TURBO_HASH=outer vx run a#test
is 'and not set where no key was made' "$rc $(order)" '0 '

# as tasks of vx.json files
new_repo "$W/made"
put package.json '{ "name": "root", "packageManager": "npm@10.0.0", "workspaces": ["p/*"] }'
put .gitignore $'dist\nlog\n.vx\n'
put p/a/package.json "{ \"name\": \"a\", \"version\": \"1.0.0\", \"scripts\": { \"prebuild\": \"echo pre >>$W/ran\", \"build\": \"echo \$npm_package_version-\$npm_lifecycle_event >>$W/ran\", \"other\": \"true\" } }"
: >"$W/ran"
vx init
vx run a#build
is 'vx init makes tasks of scripts, which run as npm runs them' "$rc $(order)" '0 pre 1.0.0-build'
put p/a/vx.json '{ "tasks": { "made": { "exec": { "script": "build" }, "cache": { "inputs": { "files": [] }, "outputs": { "files": [] } } } } }'
vx run a#made
vx run a#made
is 'a task of another name' "$rc $(order)" '0 pre 1.0.0-build'
sed -i 's/1\.0\.0/2.0.0/' p/a/package.json
vx run a#made
is 'what it sees of its manifest is in its key' "$rc $(order)" '0 pre 2.0.0-build'
vx lock
vx run a#made --force --frozen
is 'in the lock too' "$rc $(order)" '0 pre 2.0.0-build'
put p/a/vx.json '{ "tasks": { "made": { "exec": { "script": "biuld" } } } }'
vx run a#made
one_line 'a script that is not there' 'vx\.json: .*exec\.script names "biuld", which is no script of p/a/package\.json \(did you mean "build"\?\)'
put p/a/vx.json '{ "tasks": { "made": { "exec": { "script": "build", "command": "true" } } } }'
vx run a#made
one_line 'a command beside it' 'exec has both a command and a script'
put p/a/vx.json '{ "tasks": { "made": { "exec": { "command": "echo cmd >>'"$W"'/ran" } }, "build": {} } }'
put vx.workspace.json '{ "tasks": { "made": { "exec": { "script": "other" } }, "build": { "exec": { "timeout": 5000 } } } }'
vx run a#made a#build
is 'a command of its own in place of the default script; a default without a command is the script' "$rc $(order | tr ' ' '\n' | sort | paste -sd' ')" '0 2.0.0-build cmd pre'
rm p/a/vx.json vx.workspace.json vx-lock.json
put turbo.json '{ "tasks": { "build": { "outputs": [] } } }'
vx init --from-turbo
like 'vx init --from-turbo says what Turborepo lets through' "$out" '^note: variables that Turborepo lets through'
vx run a#build
is 'vx init --from-turbo: the same' "$rc $(order)" '0 pre 2.0.0-build'

# Plug'n'Play
turbo yarn@4.1.0 '"build": {}' <<<"{ \"name\": \"a\", \"scripts\": { \"build\": \"only-pnp-knows\" } }"
put .pnp.cjs ''
put "$W/yarn/yarn" "#!/bin/sh
echo \"yarn \$*\" >>$W/ran; pwd >>$W/ran"
chmod +x "$W/yarn/yarn"
without=$(tr : '\n' <<<"$PATH" | while read -r d; do [ -x "$d/yarn" ] || echo "$d"; done | paste -sd:)
PATH=$W/yarn:$PATH vx run a#build -- 'two words' x
is "Plug'n'Play: Yarn runs the script" "$rc $(order)" "0 yarn run build two words x $PWD/p/a"
PATH=$without run timeout 60 "$VX" run a#build
one_line 'without Yarn it is refused' "Plug'n'Play.*yarn is not on PATH \\(.*nodeLinker: node-modules"
PATH=$without run timeout 60 "$VX" run a#build --dry
is 'by the plan too' "$rc" 1
put .yarnrc.yml 'nodeLinker: node-modules'
PATH=$W/yarn:$PATH vx run a#build
is 'what it left behind is not it' "$rc $(order)" '1 '
like 'the script is run by itself' "$out" 'only-pnp-knows'
put .yarnrc.yml 'nodeLinker: pnp'
rm .pnp.cjs
PATH=$W/yarn:$PATH vx run a#build
is 'said before it is installed' "$rc $(order | cut -d' ' -f1-3)" '0 yarn run build'

done_testing
