#!/bin/bash
# What a new user types, with recorded agents: init, a task, the loop with a rejection and a question, and the landing.
#   session.sh EXAMPLES DIR      EXAMPLES: the directory examples of the source or of share/amp; DIR: a new directory
# The programs are in PATH. Prints each command and what it prints, then "took N s".
set -euo pipefail
examples=$(cd "$1" && pwd)
began=$SECONDS
mkdir "$2"
cd "$2"
work=$PWD
export PATH=$examples/agent-clis/stand-in:$PATH PLAYED=$work/played
mkdir "$PLAYED"
# In the place of the coding agents, which would be installed and logged in.
jq -n --arg here "$examples/agent-clis" --arg played "$PLAYED" \
  '{read: ["\($here)/stand-in", "\($here)/recorded"], write: [$played], environment: ["PLAYED"]}' >policy.json
cp -R "$examples/qa-loop/project" project
cd project
git init -q -b main
git config user.name "A Person"
git config user.email person@example.org
git add -A
git commit -qm "A duration parser, with tests that it fails"

run() {
  printf '$ %s\n' "$*"
  "$@"
}

run task-dispatch init --yes -x agent-claude -y agent-codex
cat >../units.md <<'TASK'
# Durations with several units
Branch: fix/units
Risk: high

## Acceptance criteria
- 1h30m is 5400 seconds
- 5x is refused
- an empty text is refused
TASK
printf '$ cat ../units.md\n'
cat ../units.md

# The loop on a terminal of its own; the question comes there, and the answer is typed.
printf '$ ./loop.sh --policy ../policy.json ../units.md\n'
mkfifo ../typed
TERM=dumb timeout 240 script -qefc './loop.sh --policy ../policy.json ../units.md' ../terminal <../typed >/dev/null &
loop=$!
exec 3>../typed
until grep -q 'An empty line leaves' ../terminal 2>/dev/null; do
  kill -0 "$loop" 2>/dev/null || break
  sleep 0.1
done
echo 'yes looks right' >&3
status=0
wait "$loop" || status=$?
exec 3>&-
tr -d '\r' <../terminal | grep -v '^Script '
[ "$status" -eq 0 ]
grep -q 'rejected, 1 issue' ../terminal
grep -q 'resume by ' ../terminal

run task-dispatch land T-"$(date +%Y)"-001
run git log --oneline
make -s check >../checked 2>&1 || : # tests of another task fail
grep '^ok - 1h30m is 5400 seconds' ../checked
[ "$(git rev-list --count main)" -ge 3 ]
run hitl-prompt audit
echo "took $((SECONDS - began)) s"
