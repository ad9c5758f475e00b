#!/usr/bin/env bash
# No verb runs what a repository brings: a marker stands in every place where git's documentation names a program (git-config(1), githooks(5), gitattributes(5)), in the
# workspace's repository, a submodule, a linked worktree, an embedded repository and a partial clone that lacks objects; read by vx's own reader and by git.
. "$(dirname "$0")/../lib.sh"
. "$SRC/tests/vx.sh"

mkdir "$W/ran.d"
put "$W/mark" <<EOF
#!/bin/sh
: >"$W/ran.d/\$1"
exit 1
EOF
chmod +x "$W/mark"

# poison_config FILE: every setting that names a program, a transport or a helper; `*` where the documentation has a name of one's own
poison_config() {
	cat >>"$1" <<EOF
[core]
	fsmonitor = $W/mark core.fsmonitor
	hooksPath = $W/hooks
	sshCommand = $W/mark core.sshCommand
	gitProxy = $W/mark-proxy
	pager = $W/mark core.pager
	editor = $W/mark core.editor
	askPass = $W/mark-askpass
	alternateRefsCommand = $W/mark core.alternateRefsCommand
	attributesFile = $W/attributes
[filter "evil"]
	clean = $W/mark filter.clean
	smudge = $W/mark filter.smudge
	process = $W/mark filter.process
	required = true
[diff]
	external = $W/mark diff.external
	submodule = log
[diff "evil"]
	command = $W/mark diff.command
	textconv = $W/mark diff.textconv
[merge "evil"]
	driver = $W/mark merge.driver
[merge]
	tool = evil
	guitool = evil
[mergetool "evil"]
	cmd = $W/mark mergetool.cmd
[difftool "evil"]
	cmd = $W/mark difftool.cmd
[remote "evil"]
	url = $W/none.git
	promisor = true
	partialclonefilter = blob:none
	uploadpack = $W/mark remote.uploadpack
	receivepack = $W/mark remote.receivepack
[remote "ext"]
	url = ext::$W/mark remote.ext
	promisor = true
[remote "ssh"]
	url = ssh://nowhere.invalid/x
	promisor = true
[remote "vcs"]
	vcs = evil
	url = evil::x
	promisor = true
[protocol]
	allow = always
[protocol "ext"]
	allow = always
[protocol "file"]
	allow = always
[url "ext::$W/mark url.insteadOf "]
	insteadOf = evil:
[gpg]
	program = $W/mark-gpg
[gpg "ssh"]
	program = $W/mark-gpg
	defaultKeyCommand = $W/mark gpg.ssh.defaultKeyCommand
[gpg "x509"]
	program = $W/mark-gpg
[log]
	showSignature = true
[commit]
	gpgSign = true
[credential]
	helper = !$W/mark credential.helper
[alias]
	ls-files = !$W/mark alias
	ls-tree = !$W/mark alias
	rev-parse = !$W/mark alias
	config = !$W/mark alias
	evil = !$W/mark alias
[uploadpack]
	packObjectsHook = $W/mark uploadpack.packObjectsHook
[sequence]
	editor = $W/mark sequence.editor
[interactive]
	diffFilter = $W/mark interactive.diffFilter
[trailer "evil"]
	command = $W/mark trailer.command
	cmd = $W/mark trailer.cmd
[submodule]
	recurse = true
	fetchJobs = 1
[submodule "lib"]
	update = !$W/mark submodule.update
[diff]
	ignoreSubmodules = none
[gc]
	auto = 1
[maintenance]
	auto = true
[pager]
	ls-files = $W/mark pager.ls-files
	ls-tree = $W/mark pager.ls-tree
	config = $W/mark pager.config
	diff = $W/mark pager.diff
[man "evil"]
	cmd = $W/mark man.cmd
[browser "evil"]
	cmd = $W/mark browser.cmd
[web]
	browser = evil
[help]
	browser = evil
	autoCorrect = 1
[sendemail]
	toCmd = $W/mark sendemail.toCmd
[instaweb]
	httpd = $W/mark instaweb.httpd
[include]
	path = $W/included
[includeIf "gitdir/i:**"]
	path = $W/included
EOF
}
# poison GITDIR: its configuration, config.worktree, hooks and attributes
hooks='applypatch-msg commit-msg fsmonitor-watchman post-applypatch post-checkout post-commit post-index-change post-merge post-receive post-rewrite post-update pre-applypatch
	pre-auto-gc pre-commit pre-merge-commit pre-push pre-rebase pre-receive prepare-commit-msg proc-receive push-to-checkout reference-transaction sendemail-validate update'
poison() {
	local hook
	poison_config "$1/config"
	put "$1/config.worktree" "[core]
	fsmonitor = $W/mark config.worktree"
	put "$1/info/attributes" '* filter=evil diff=evil merge=evil'
	for hook in $hooks; do
		put "$1/hooks/$hook" "#!/bin/sh
: >$W/ran.d/hook.$hook"
		chmod +x "$1/hooks/$hook"
	done
}
put "$W/attributes" '* filter=evil diff=evil merge=evil'
put "$W/included" "[core]
	fsmonitor = $W/mark include.path"
for p in proxy askpass gpg; do
	put "$W/mark-$p" "#!/bin/sh
: >$W/ran.d/$p; exit 1"
	chmod +x "$W/mark-$p"
done
mkdir "$W/hooks"
for hook in $hooks; do
	put "$W/hooks/$hook" "#!/bin/sh
: >$W/ran.d/hooksPath.$hook"
	chmod +x "$W/hooks/$hook"
done
mkdir "$W/evilbin" # a remote helper of the vcs that a remote names; PATH is the user's own
put "$W/evilbin/git-remote-evil" "#!/bin/sh
: >$W/ran.d/git-remote-evil; exit 1"
chmod +x "$W/evilbin/git-remote-evil"
export PATH=$W/evilbin:$PATH

# ---- the workspace: projects a, one in a submodule, an embedded repository, a missing tree ----
clean=(env GIT_CONFIG_GLOBAL=/dev/null git -c protocol.file.allow=always)
mkdir -p "$W/up/lib/s/src"
put "$W/up/lib/s/package.json" '{ "name": "s", "version": "1.0.0" }'
put "$W/up/lib/s/vx.json" "$(cached true)"
put "$W/up/lib/s/src/x" 1
(cd "$W/up/lib" && git init -q -b main && git add -A && git commit -qm s)
workspace
put package.json '{ "name": "root", "private": true, "workspaces": ["p/*", "lib/*"] }'
project a <<<"$(cached 'mkdir -p dist; cat src/* >dist/o')"
put p/a/src/x.bin 1
put p/a/src/deep/y 1
put sparse/deep/z 1
put .gitattributes '* filter=evil diff=evil merge=evil'
"${clean[@]}" submodule --quiet add "$W/up/lib" lib
git add -A
git commit -qm one
put p/a/src/x.bin 2
git commit -qam two
git worktree add -q "$W/linked" main~1 2>/dev/null || git worktree add -q --detach "$W/linked" HEAD~1
(cd "$W/linked" && "${clean[@]}" submodule --quiet update --init)
for top in "$W/ws" "$W/linked"; do
	e=$top/p/a/src/embedded
	mkdir -p "$e/deep/x" "$e/k"
	put "$e/deep/x/z" 1
	put "$e/k/f" 1
	(cd "$e" && git init -q -b main && git add -A && git commit -qm e && git sparse-checkout init --cone --sparse-index && git sparse-checkout set k) 2>/dev/null
	t=$(git -C "$e" rev-parse HEAD:deep)
	rm -f "$e/.git/objects/${t:0:2}/${t:2}"
	git -C "$e" config extensions.partialClone evil
	git -C "$e" config core.repositoryFormatVersion 1
	poison "$e/.git"
done
cp -a "$W/ws" "$W/partial"
(cd "$W/partial" && git worktree prune)
# the partial clone lacks a tree of the base and, sparse, one that reading the index needs
t=$(git -C "$W/partial" rev-parse HEAD~1:p/a/src) u=$(git -C "$W/partial" rev-parse HEAD:sparse/deep)
(cd "$W/partial" && git sparse-checkout init --cone --sparse-index && git sparse-checkout set p lib) 2>/dev/null
for id in $t $u; do rm -f "$W/partial/.git/objects/${id:0:2}/${id:2}"; done
git -C "$W/partial" config extensions.partialClone evil
git -C "$W/partial" config core.repositoryFormatVersion 1
for d in "$W/ws/.git" "$W/ws/.git/modules/lib" "$W/partial/.git" "$W/partial/.git/modules/lib"; do poison "$d"; done
poison_config "$W/ws/.git/worktrees/linked/config.worktree"
poison_config "$HOME/.gitconfig" # the user's own, too, names nothing that vx runs
cat >>"$HOME/.gitconfig" <<EOF
[core]
	excludesFile = $W/excludes
[safe]
	directory = *
[trace2]
	eventTarget = af_unix:$W/socket
EOF
put "$W/excludes" '*.mine'
put "$W/ws/p/a/src/q.mine" 1
rm -f "$W/ran.d/"*

traps() { (cd "$W/ran.d" && echo *); }
# quiet NAME COMMAND...: it sets no marker off, whatever it answers
quiet() {
	local name=$1
	shift
	vx "$@"
	is "$name" "$rc$(traps)" "$rc*"
	[ "$rc" != 124 ] || fail "$name: it hung"
	rm -f "$W/ran.d/"*
}
verbs() { # WHAT
	touch p/a/src/x.bin lib/s/src/x # no stat proves anything
	quiet "$1: run" run build --all
	quiet "$1: run again" run build --all
	quiet "$1: run --dry" run build --all --dry=full
	quiet "$1: --affected" run build --all --affected=HEAD --dry
	quiet "$1: --affected of the base" run build --all --affected --dry
	quiet "$1: [ref]" run build --filter '[HEAD~1]' --dry
	quiet "$1: [ref...ref]" run build --filter '[HEAD~1...HEAD]' --dry
	quiet "$1: --filter" run build --filter a... --dry
	quiet "$1: info" info
	quiet "$1: lock" lock
	quiet "$1: init" init
	quiet "$1: cache stats" cache stats
	quiet "$1: cache verify" cache verify
	quiet "$1: cache prune" cache prune
}

# the traps are live: git by itself sets some of them off
cd "$W/ws" || exit 1
touch p/a/src/x.bin
git status >/dev/null 2>&1
git diff >/dev/null 2>&1
git -C "$W/partial" ls-files -s >/dev/null 2>&1
git -C p/a/src/embedded ls-files -s >/dev/null 2>&1
like 'git alone runs a fsmonitor' "$(traps)" 'core.fsmonitor|include.path'
like 'a filter' "$(traps)" 'filter\.'
like 'and the transport of a promisor' "$(traps)" 'remote\.|git-remote|core.sshCommand'
rm -f "$W/ran.d/"*

for top in ws linked partial; do
	cd "$W/$top" || exit 1
	verbs "$top, own reader"
	export VX_FILES=git
	verbs "$top, git"
	unset VX_FILES
	env GIT_CONFIG_GLOBAL=/dev/null git -c core.fsmonitor= -c core.hooksPath=/dev/null config core.ignoreCase true
	quiet "$top, core.ignoreCase: run" run build --all
	quiet "$top, core.ignoreCase: --affected" run build --all --affected=HEAD~1 --dry
	env GIT_CONFIG_GLOBAL=/dev/null git -c core.fsmonitor= -c core.hooksPath=/dev/null config core.ignoreCase false
done
cd "$W/ws" || exit 1
env GIT_CONFIG_GLOBAL=/dev/null git -c core.fsmonitor= -c core.hooksPath=/dev/null update-index --split-index
env GIT_CONFIG_GLOBAL=/dev/null git -C lib -c core.fsmonitor= -c core.hooksPath=/dev/null update-index --split-index
rm -f "$W/ran.d/"*
verbs 'split index'

# a git that knows no GIT_NO_LAZY_FETCH: what it starts may speak no protocol
put "$W/oldgit/git" "#!/bin/sh
unset GIT_NO_LAZY_FETCH
exec $(command -v git) \"\$@\""
chmod +x "$W/oldgit/git"
for top in ws partial; do
	cd "$W/$top" || exit 1
	PATH=$W/oldgit:$PATH VX_FILES=git verbs "$top, an old git"
done

# what the user's own configuration says about listing holds
for way in '' git; do
	cd "$W/ws" || exit 1
	VX_FILES=$way vx run a#build --dry=json
	unlike "core.excludesFile holds ${way:+(git)}" "$out" 'q\.mine'
done
is 'git is started by one file' "$(grep -rlE '\{"git"[,}]|execl?p?\("git"' "$SRC/sched" "$SRC/worker" "$SRC/shm")" "$SRC/sched/git/git.c"
done_testing
