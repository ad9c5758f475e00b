#!/usr/bin/env bash
# Input that would keep a careless reader for minutes, at each parser and matcher: refused by a line that names the limit, or answered. The clock here is generous; what
# bounds the time is counted in steps, so no machine is too slow for it.
. "$(dirname "$0")/../lib.sh"
. "$SRC/tests/vx.sh"
VXT_HANG_S=120

good() { # a workspace that runs
	workspace "$W/ws$((++n))"
	project a <<<"$(cached "mkdir -p dist; echo x >dist/x")"
	put p/a/src/x x
	git add -A
}
n=0
# make FILE PYTHON: writes what the expression gives
make() { mkdir -p "$(dirname "$1")"; python3 -c "import sys; sys.stdout.write($2)" >"$1"; }
# refused NAME PATTERN [ARGS...]: by that limit
refused() {
	local name=$1 pattern=$2
	shift 2
	[ $# -gt 0 ] || set -- run build --all
	vx "$@"
	one_line "$name" "$pattern"
}
# fine NAME [ARGS...]: an answer, and no other
fine() {
	local name=$1
	shift
	[ $# -gt 0 ] || set -- run build --all
	vx "$@"
	is "$name" "$rc" 0
}
pnpm() { good; make pnpm-workspace.yaml "$1"; }
globs() { # INPUTS OUTPUTS: Python lists
	good
	make p/a/vx.json "__import__('json').dumps({'tasks': {'build': {'exec': {'command': 'true'}, 'cache': {'inputs': {'files': $1}, 'outputs': {'files': $2}}}}})"
	git add -A
}

pnpm '"packages: " + "[" * 100000'
refused 'brackets in pnpm-workspace.yaml' 'pnpm-workspace\.yaml: line 1: more than 64 levels of nesting'
pnpm '"packages:\n" + "".join(" " * i + "-\n" for i in range(2000))'
refused 'nested lists in pnpm-workspace.yaml' 'more than 64 levels of nesting'
pnpm '"packages: " + "- " * 100000'
refused 'dashes in one line' 'pnpm-workspace\.yaml: line 1'
pnpm '"packages: " + "{a: " * 100000'
refused 'braces in pnpm-workspace.yaml' 'more than 64 levels of nesting'
pnpm '"packages: [p/*]\nx: [" + ",".join("&a%d 1" % i for i in range(100000)) + "]"'
refused 'anchors in pnpm-workspace.yaml' 'more than 256 anchors'
pnpm '"%TAG !a! b\n" * 100000 + "---\npackages: [p/*]\n"'
refused 'directives in pnpm-workspace.yaml' 'more than 16 directives'
pnpm '"packages: [p/*]\nx: [" + "1," * 1000000 + "]"'
refused 'values in pnpm-workspace.yaml' 'more than 200000 values'
pnpm '"packages: [p/*]\n#" + "x" * 5000000'
refused 'a large pnpm-workspace.yaml' 'larger than 4194304 bytes'
pnpm '"a: &a [x]\nb: &b [*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b]\nd: [*c,*c,*c,*c]\npackages: [p/*]\n"'
fine 'aliases of aliases'
pnpm '"packages: [p/*]\ncatalog:\n" + "".join("  p%d: ^1.0.0\n" % i for i in range(50000))'
fine 'a catalog of 50,000'

good
make vx.workspace.json '"[" * 100000'
refused 'brackets in JSON' 'nested deeper than 64 levels'
make vx.workspace.json '"[" + "1," * 5000000 + "1]"'
refused 'values in JSON' 'more than 4000000 values'
rm vx.workspace.json
make p/a/vx.json '"{\"tasks\": {" + ",".join("\"t%d\": {\"dependsOn\": [\"x\"]}" % i for i in range(50000)) + "}}"'
refused 'tasks of one project' 'p/a/vx\.json.*tasks has 50000 members, more than the limit of 20000'
make p/a/vx.json '"{\"tasks\": {\"" + "t" * 100000 + "\": {}}}"'
refused 'a long name of a task' 'longer than 1024 bytes'
make p/a/vx.json '"{\"tasks\": {\"x\": {\"dependsOn\": [" + ",".join("\"t%d\"" % i for i in range(50000)) + "]}}}"'
refused 'a long list' 'dependsOn has 50000 entries, more than the limit of 20000'
good
make p/a/package.json '"{\"name\": \"" + "n" * 100000 + "\"}"'
refused 'a long name of a project' 'p/a/package\.json: the name .* longer than 1024 bytes'
make p/a/package.json '"{\"name\": \"a\", \"scripts\": {" + ",".join("\"s%d\": \"x\"" % i for i in range(50000)) + "}}"'
refused 'scripts of one project' 'scripts has 50000 entries, more than the limit of 20000'
make p/a/package.json '"{\"name\": \"a\", \"dependencies\": {" + ",".join("\"s%d\": \"1\"" % i for i in range(50000)) + "}}"'
refused 'dependencies of one project' 'dependencies has 50000 entries, more than the limit of 20000'
good
make p/a/package.json '"{\"name\": \"a\", \"version\": \"1.0.0\", \"dependencies\": {\"b\": \"" + "1 || " * 800 + "1\", \"c\": \"" + "1 - " * 1000 + "1\", \"d\": \"" + "9" * 100000 + "\"}}"'
fine 'ranges'

members() { good; make package.json "__import__('json').dumps({'name': 'root', 'workspaces': $1})"; }
members '["{a,b}" * 30]'
refused 'braces in members' 'more than 4096 alternatives'
members '["p/*"] + ["{" * 4000] * 4000'
fine 'open braces in members'
members '["p/*"] + ["**/x%d/**/y" % i for i in range(4000)]'
mkdir -p d/{a,b,c,d,e,f,g,h}/{a,b,c,d,e,f,g,h}/{a,b,c,d,e,f,g,h}
refused 'thousands of deep patterns' 'the patterns of the workspace take more than [0-9]+ steps'
members '["p/*", "*" * 4000 + "x", "[" * 4000, "*[" * 2000]'
mkdir -p "$(printf 'a%.0s' {1..250})"
fine 'stars and brackets in members'
members '["p/*"] * 30000'
refused 'many patterns' 'workspaces has 30000 entries, more than the limit of 20000'
good
make package.json '"{\"name\": \"root\", \"workspaces\": [\"p/*\", \"" + "a/" * 2000 + "\"]}"'
refused 'many components' 'more than 128 path components'

# globs are compiled when keys are made: the task has failed, and says why
no_key() { # NAME PATTERN
	vx run build --all
	is "$1: exit 1" "$rc" 1
	like "$1: says it" "$out" "no key: .*$2"
}
globs '["{a,b}" * 30]' '[]'
no_key 'braces in inputs' 'more than 1024 alternatives'
globs '["{" * 4000 + "x"] * 1000' '[]'
fine 'open braces in inputs'
globs '["src/" + "{a,b}" * 9 + "x" * 3000] * 100' '[]'
no_key 'braces in many inputs' 'the globs of one list are more than 4194304 bytes'
globs '["*a" * 400 + "b%d/x" % i for i in range(100)]' '["*a" * 400 + "c%d/y" % i for i in range(100)]'
fine 'stars that are compared with stars'
globs '["*a" * 400 + "b%d/x" % i for i in range(2000)]' '["*a" * 400 + "c%d/y" % i for i in range(2000)]'
refused 'thousands of them' 'takes? more than [0-9]+ steps to compare'
globs '["src/**"] + ["**/*a*a*a*a*a*a*a*a*a*a*%d*" % i for i in range(19000)]' '[]'
for i in $(seq 40); do mkdir -p p/a/src/$i; (cd p/a/src/$i && touch $(printf "$(printf 'a%.0s' {1..200})%d " $(seq 50))); done
git add -A
no_key 'inputs that are slow to match' 'take more than [0-9]+ steps to match'
good
vx run build --filter "{./$(printf '**/*%.0s' {1..60})x}"
is 'a filter of stars' "$rc" 1
vx run build --filter "$(printf '*a%.0s' {1..30000})"
is 'a name of stars' "$rc" 1

good
make .gitignore '"".join("/x%d/*y\n" % i for i in range(300000))'
fine 'many rules'
(cd p/a/src && touch $(seq 4000))
refused 'many rules and many files' '\.gitignore and \.gitattributes past [0-9]+ steps'
good
make .gitignore '"*a" * 2000 + "b\n" + "**/*a" * 500 + "\n" + "[" * 4000 + "\n" + "[[:alpha:" * 400 + "]\n"'
(cd p/a/src && touch "$(printf 'a%.0s' {1..250})")
fine 'rules of stars and brackets'
good
for i in 1 2 3 4 5 6 7 8; do
	for k in 1 2 3 4 5 6 7 8; do printf '[include]\n\tpath = %s/c%d\n' "$PWD/.git" $((i + 1)); done >".git/c$i"
done
printf '[include]\n\tpath = %s/c1\n' "$PWD/.git" >>.git/config
refused 'includes of includes' "includes more than 1000 files"

good
make turbo.json '"{\"tasks\": {\"build\": {\"inputs\": [" + ",".join("\"i%d\"" % i for i in range(50000)) + "]}}}"'
rm p/a/vx.json
refused 'a long list in turbo.json' 'inputs has 50000 entries, more than the limit of 20000'
make turbo.json '"/*" + "/* " * 1000000 + "*/ {\"tasks\": {\"build\": {}}" + " " * 1000000 + "}"'
fine 'comments and blanks' run build --all --dry
good
make vx-lock.json '"{\"lockVersion\": 1, \"projects\": [" + "{}," * 200000 + "{}]}"'
refused 'projects of a lock' 'vx-lock\.json' run build --all --frozen
done_testing
