#!/usr/bin/env bash
# A package script run by vx sees and does what it does under the package manager itself: npm, pnpm, Yarn and bun, from npm, each beside vx on the same workspace. Those that
# cannot be had or started here are skipped.
. "$(dirname "$0")/../lib.sh"
. "$SRC/tests/vx.sh"
command -v npm >/dev/null || skip_all 'no npm to get package managers with'
command -v node >/dev/null || skip_all 'no node'

manifest='{ "name": "@s/n", "version": "1.2.3", "description": "d", "keywords": ["k"], "bin": "./x.js", "engines": { "node": ">=1" },
 "config": { "port": "8080", "number": 5, "yes": true, "no": false, "null": null, "list": ["a", { "b": 2 }], "deep": { "a": 1 } },
 "scripts": { "prebuild": "echo pre $npm_lifecycle_event >>log", "build": "env >env; echo main $npm_lifecycle_event >>log; pwd >>log; echo", "postbuild": "echo post $npm_lifecycle_event $? >>log",
  "prefail": "echo pre >>log", "fail": "echo main >>log; exit 7", "postfail": "echo post >>log", "preearly": "exit 6", "early": "echo main >>log", "prefix": "echo pre >>log", "fix": "echo prefix >>log" } }'

# names of variables that vx promises where the manager sets them
promised='npm_package_[A-Za-z0-9_]*|npm_lifecycle_event|npm_lifecycle_script|npm_command|INIT_CWD|npm_execpath|npm_node_execpath|NODE|npm_config_node_gyp|npm_config_local_prefix|PNPM_SCRIPT_SRC_DIR|PROJECT_CWD|pnpm_config_verify_deps_before_run'

# compare LABEL MANAGER PACKAGE
compare() {
	local label=$1 manager=$2 package=$3 dir=$W/pm/$1 version bin script got
	mkdir -p "$dir"
	(cd "$dir" && echo '{}' >package.json && npm install --no-audit --no-fund "$package") >"$W/npm.log" 2>&1 || {
		skip "$label" "npm cannot install it: $(tail -1 "$W/npm.log")"
		return
	}
	bin=$dir/node_modules/.bin
	if [ "$manager" = bun ]; then
		bin=$dir/bin
		mkdir -p "$bin"
		ln -sf "$dir/node_modules/bun/bin/bun.exe" "$bin/bun"
	fi
	PATH=$bin:$PATH "$manager" --version >"$W/said" 2>&1 || {
		skip "$label" "it does not start: $(grep -m1 . "$W/said")"
		return
	}
	version=$(PATH=$bin:$PATH "$manager" --version | tail -1)
	new_repo "$W/ws/$label"
	put package.json "{ \"name\": \"root\", \"private\": true, \"packageManager\": \"$manager@$version\", \"workspaces\": [\"p/*\"] }"
	[ "$manager" != pnpm ] || put pnpm-workspace.yaml 'packages: ["p/*"]'
	[ "$label" != yarn4 ] || put .yarnrc.yml $'nodeLinker: node-modules\nenableTelemetry: false'
	put .gitignore $'node_modules\n.vx\nlog\nenv\n'
	put turbo.json '{ "tasks": { "build": { "cache": false }, "fail": { "cache": false }, "early": { "cache": false }, "fix": { "cache": false } } }'
	put p/n/package.json "$manifest"
	[ "$label" != yarn4 ] || (PATH=$bin:$PATH yarn install) >"$W/said" 2>&1
	git add -A && git commit -qm one
	for script in build fail early fix; do
		rm -f p/n/log p/n/env
		(cd p/n && PATH=$bin:$PATH COREPACK_ENABLE_STRICT=0 "$manager" run $script x 'two words') >"$W/theirs" 2>&1 </dev/null
		echo "exit $?" >"$W/status"
		mv p/n/log "$W/log" 2>/dev/null || : >"$W/log"
		[ $script != build ] || mv p/n/env "$W/env"
		PATH=$bin:$PATH run timeout 60 "$VX" run "@s/n#$script" -- x 'two words'
		got=$(grep -oE 'exit [0-9]+' <<<"$out" | head -1)
		is "$label, $script: what runs, in which order" "$(cat p/n/log 2>/dev/null)" "$(cat "$W/log")"
		is "$label, $script: how it ends" "${got:-exit 0}" "$(cat "$W/status")"
		[ $script != build ] || cp p/n/env "$W/ours"
	done
	# pnpm appends the words to the script's text
	for f in env ours; do
		grep -E "^($promised)=" "$W/$f" | sed "s/ x 'two words'\$//; s/ \"x\" \"two words\"\$//" | sort >"$W/$f.set"
	done
	# of Yarn 4 these lie in a directory of the one run
	[ "$label" != yarn4 ] || sed -i -E '/^npm_(node_)?execpath=/d' "$W/env.set"
	is "$label: every variable is as it sets it" "$(comm -23 "$W/env.set" "$W/ours.set")" ''
	is "$label: it calls itself so" "$(sed -n 's/^npm_config_user_agent=\([^ ]*\) .*/\1/p' "$W/ours")" "$(sed -n 's/^npm_config_user_agent=\([^ ]*\) .*/\1/p' "$W/env")"
}

compare npm10 npm npm@10
compare npm11 npm npm@11
compare pnpm8 pnpm pnpm@8
compare pnpm9 pnpm pnpm@9
compare pnpm10 pnpm pnpm@10
compare pnpm11 pnpm pnpm@11
compare yarn1 yarn yarn@1
compare yarn4 yarn @yarnpkg/cli-dist@4
compare bun bun bun@1
done_testing
