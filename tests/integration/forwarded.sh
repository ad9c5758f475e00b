#!/usr/bin/env bash
# Words after -- reach the last command of each requested task, wherever it ends, or are refused before anything has run.
. "$(dirname "$0")/../lib.sh"
. "$SRC/tests/vx.sh"

# gets NAME COMMAND: `echo args:`, the command's last, prints them
gets() {
	project a <<<"$(task "$2")"
	vx run a#build -- hello "it's \$HOME #1"
	like "$1: they arrive" "$out" "args: hello it's \\\$HOME #1"
}
# refuses NAME COMMAND REASON: one line, and the command has not run
refuses() {
	project a <<<"$(task "echo ran >>$W/ran; $2")"
	vx run a#build -- hello
	one_line "$1" "words after -- cannot be appended to the command of a#build: $3"
	is "$1: nothing has run" "$(ran)" ''
	vx run a#build -- # no words: the command is the user's own
	unlike "$1: without words it runs" "$err" 'words after'
	: >"$W/ran"
}

workspace
gets 'a word' 'echo args:'
gets 'blanks at the end' 'echo args:   '
gets 'a newline at the end' $'echo args:\n'
gets 'newlines and comments' $'echo args: # one\n\n  # two; | && ( "\n'
gets 'a comment' 'echo args: # show'
gets 'a # in a word' 'echo a#b args:'
gets 'a semicolon' 'true; echo args: ;'
gets 'the background in front' 'true & echo args:'
gets 'a line that goes on' $'echo \\\n args: \\\n'
gets 'a list' 'cd . && X=1 echo args:'
gets 'a pipe in front' 'true | cat; echo args:'
gets 'a redirection in front' '>/dev/null true; 2>&1 echo args:'
gets 'a redirection behind' 'echo args: 2>/dev/null'
gets 'a redirection with a number' 'echo args: 2>&1'
gets 'quotes' "echo 'a # b' \"c ; \\\" \$(echo ')') d\" args:"
gets 'expansions' 'echo ${HOME#/} $(echo a; (echo b)) `echo c` $((1 + (2 * 3))) args:'
gets 'a compound command in front' 'if true; then echo a; fi; for x in 1 2; do echo $x; done; { echo b; }; (echo c); echo args:'
gets 'words that are reserved elsewhere' 'echo fi done } args:'

refuses 'a here-document' $'cat <<E\nargs: $1\nE\n' 'it has a here-document'
refuses 'a pipe' 'echo args: | cat' 'its last command comes behind'
refuses 'a pipe over lines' $'echo args: |\n cat' 'its last command comes behind'
refuses 'an alternative' 'echo args: || true' 'its last command comes behind'
refuses 'a subshell' '(echo args:)' 'it ends in a compound command'
refuses 'a condition' 'if true; then echo args:; fi' 'it ends in a compound command'
refuses 'a loop with a redirection' 'while false; do echo args:; done </dev/null' 'it ends in a compound command'
refuses 'a group' '{ echo args:; }' 'it ends in a compound command'
refuses 'a choice' 'case a in a) echo args:;; esac' 'it has a parenthesis'
refuses 'an assignment' 'true; X=1' 'it ends in no command that takes words'
refuses 'what bash reads otherwise' 'echo args: &>/dev/null' 'it has &>'
refuses 'quotes of bash' "echo \$'args:\\' # c'" 'it has a quote or an expansion'
for odd in "echo 'args:" 'echo "args:' 'echo $(args:' 'echo `args:' 'echo ${args:' 'echo args: \' 'echo args: &&' 'echo args: >' 'echo args: ; ;' '# nothing'; do
	project a <<<"$(task "$odd")"
	vx run a#build -- hello
	one_line "refused: $odd" 'words after -- cannot be appended'
done

project a <<'JSON'
{ "tasks": { "x": { "exec": { "command": "echo got" } }, "group": { "dependsOn": ["x"] } } }
JSON
vx run a#group -- hello
one_line 'a group' 'a#group runs no command, so nothing would get the words after --'
vx run a#group --dry -- hello
one_line 'also for the plan' 'a#group runs no command'
vx run a#group a#x -- hello
like 'beside a task that gets them' "$rc $out" '^0 (.*|.*\n)got hello|^0 a#x: got hello'
done_testing
