#!/usr/bin/env bash
# What a command gets: environment, PATH, arguments, stdin, directory; secrets; commands executed directly.
. "$(dirname "$0")/../lib.sh"
. "$SRC/tests/vx.sh"

workspace
project a <<<"$(task "env >$W/env" '"env": { "passThrough": ["MINE", "ABSENT"], "define": { "DEFINED": "d", "HOME": "/defined" } }')"
export MINE=mine OTHER=other LD_LIBRARY_PATHX=x npm_config_x=y CI=1 NODE_OPTIONS=--x https_proxy=http://p SSL_CERT_FILE=/c
vx run build --all
unset CI
is 'it runs' "$rc" 0
has() { grep -c "^$1\$" "$W/env"; }
is 'passThrough' "$(has MINE=mine)" 1
is 'define' "$(has DEFINED=d)" 1
is 'define wins' "$(has HOME=/defined)" 1
is 'the base set: PATH' "$(has 'PATH=.*')" 1
is 'CI' "$(has CI=1)" 1
is 'NODE_OPTIONS' "$(has NODE_OPTIONS=--x)" 1
is 'proxies' "$(has https_proxy=http://p)" 1
is 'certificates' "$(has SSL_CERT_FILE=/c)" 1
is 'VX_RUN_TASK' "$(has VX_RUN_TASK=a#build)" 1
is 'VX_RUN_WORKSPACE' "$(has "VX_RUN_WORKSPACE=$PWD")" 1
is 'nothing else: OTHER' "$(has 'OTHER=.*')" 0
is 'nothing else: npm_config_x' "$(has 'npm_config_x=.*')" 0
is 'nothing else at all' "$(sed 's/=.*//' "$W/env" | grep -vxE 'PATH|HOME|SHELL|USER|LOGNAME|TMPDIR|TEMP|TMP|LANG|LC_ALL|LC_CTYPE|TERM|COLORTERM|FORCE_COLOR|NO_COLOR|CI|NODE_OPTIONS|https_proxy|SSL_CERT_(FILE|DIR)|[A-Z_]*_CA_[A-Z]*|GIT_SSL_CAINFO|MINE|DEFINED|VX_RUN_WORKSPACE|VX_RUN_TASK|npm_execpath|PWD|OLDPWD|SHLVL|_' | paste -sd' ')" ''
unset OTHER LD_LIBRARY_PATHX npm_config_x NODE_OPTIONS https_proxy SSL_CERT_FILE

project a <<<"$(task "pwd >$W/pwd; cat >$W/stdin; ls -l /proc/self/fd | awk 'NF > 8 && \$9 > 2 { print \$9, \$11 }' | grep -v /proc >$W/fds; ps -o sid=,pid= -p \$\$ >$W/session")"
echo typed | timeout "$VXT_HANG_S" "$VX" run build --all >/dev/null
is 'the project is the directory' "$(cat "$W/pwd")" "$PWD/p/a"
is 'stdin is empty' "$(cat "$W/stdin")" ''
is 'no descriptor of ours' "$(cat "$W/fds")" ''
sid= pid=none
read -r sid pid <"$W/session"
is 'a session of its own' "$sid" "$pid"

# PATH
project a <<<"$(task 'mine; rooted')"
put p/a/node_modules/.bin/mine "#!/bin/sh
echo mine >>$W/ran"
put node_modules/.bin/rooted "#!/bin/sh
echo rooted >>$W/ran"
put node_modules/.bin/mine "#!/bin/sh
echo wrong >>$W/ran"
chmod +x p/a/node_modules/.bin/mine node_modules/.bin/*
vx run build --all
is "node_modules/.bin of the project, then of the root" "$rc $(ran)" '0 mine rooted'
put p/a/node_modules/.bin/sh "#!/bin/false"
chmod +x p/a/node_modules/.bin/sh
vx run build --all
is "the shell is not looked up on the task's PATH" "$rc $(ran)" '0 mine rooted'
rm -r node_modules p/a/node_modules

# arguments after --
project a <<<"$(cached "echo a >>$W/ran; mkdir -p dist; printf '<%s>\\n' \"\$0\" >/dev/null; printf '<%s>'")"
project b a <<<"$(task "printf '[%s]\\n'" '"timeout": 0')"
put p/a/src/x x
vx run a#build -- 'two words' "it's" '$HOME' '' '*' $'new\nline'
like 'arguments are appended, quoted' "$(paste -sd'|' <<<"$out")" "<two words><it's><\\\$HOME><><\\*><new\\|line>"
ran >/dev/null
vx run a#build -- other
is 'they are part of the key' "$(ran)" a
vx run a#build -- other
is 'and hit' "$(ran)" ''
project b a <<<"{ \"tasks\": { \"build\": { \"dependsOn\": [\"^build\"], \"exec\": { \"command\": \"echo b\" } } } }"
project a <<<"$(task 'echo a')"
vx run b#build --output-logs full -- extra
like 'only the requested task gets them' "$out" 'b extra'
unlike 'not its dependencies' "$out" 'a extra'

# direct execution and sh tell the same
n=0
same() { # COMMAND: run by vx, in a form that vx may execute directly, and by sh
	n=$((n + 1))
	project a <<<"$(task "$1")"
	(cd p/a && sh -c "$1" >"$W/sh.out" 2>&1 </dev/null; echo "exit $?" >"$W/sh.rc")
	vx run a#build
	like "direct: $1" "$out$err" "$(head -1 "$W/sh.out" | sed 's/^sh: 1: //; s/[][\\.*^$+?(){}|]/\\&/g')"
	is "its exit: $1" "$([ "$rc" = 0 ] && echo 'exit 0' || grep -oE 'exit [0-9]+' <<<"$out" | head -1)" "$(cat "$W/sh.rc")"
}
put p/a/args "#!/bin/sh
printf '<%s>' \"\$@\"; exit 7"
put p/a/noshebang 'echo no shebang "$@"'
put p/a/plain 'not executable'
chmod +x p/a/args p/a/noshebang
same './args a b   c'
same "./args 'a b' \"c d\" e\\ f"
same './noshebang x'
same './plain'
same './absent'
same 'absent-program'
same '/usr'
same 'echo $((1 + 2))'
same 'A=1 printenv A'
same 'exit 3'
same 'true && echo yes'
same '"./args" x'
same './args ~ *'
same ':'

# secrets
export MY_TOKEN=hunter2hunter2 SHORT_KEY=abc PLAIN=plainvalue LISTED=listedvalue MULTI_SECRET=$'first-line-value\nsecond-line-value'
project a <<<"$(task 'echo "t=$MY_TOKEN k=$SHORT_KEY p=$PLAIN l=$LISTED"; printf %s hunter2; sleep 0.1; echo hunter2; echo second-line-value; echo "$MY_TOKEN" >&2' \
	'"env": { "passThrough": ["MY_TOKEN", "SHORT_KEY", "PLAIN", "MULTI_SECRET"], "secret": ["LISTED"] }')"
vx run a#build
like 'secrets are masked' "$out" 't=\*\*\* k=abc p=plainvalue'
like 'listed ones too' "$out" 'l=(\*\*\*)?$|l=\*\*\*'
unlike 'split over chunks' "$out$err" 'hunter2'
unlike 'each line of one' "$out$err" 'second-line-value'
project a <<<"$(cached 'mkdir -p dist; echo "t=$MY_TOKEN"' '"env": { "passThrough": ["MY_TOKEN"] }')"
vx run a#build
vx run a#build --output-logs full
like 'in what is replayed too' "$out" 't=\*\*\*'
is 'and in the store' "$(grep -rl hunter2 .vx | head -1)" ''

# env in keys
project a <<<'{ "tasks": { "build": { "exec": { "command": "echo a >>'"$W"'/ran", "env": { "passThrough": ["FLAVOUR"] } }, "cache": { "inputs": { "files": ["src/**"], "env": ["FLAVOUR"] }, "outputs": { "files": [] } } } } }'
vx run a#build
FLAVOUR=x vx run a#build
FLAVOUR='' vx run a#build
is 'inputs.env: unset, set and empty are three' "$(ran)" 'a a a'
FLAVOUR=x vx run a#build
is 'and each hits' "$(ran)" ''
MINE=else vx run a#build
is 'other variables are not in the key' "$(ran)" ''

# vx inside vx
project a <<<"$(task "'$VX' run b#build")"
vx run a#build
is 'vx run inside a task of the same workspace is refused' "$rc" 1
like 'with a reason' "$out" 'vx run: .*(inside|within)'

done_testing
