#!/bin/bash
# The main job on a real git repository: a rejection, a rework and an approval; a task that locks
# after three rejections and is decided by a human; a commit to main that the guard refuses; an executor
# that forges a verdict; the proof of the approval, verified without the state directory.
# KEEP=1 keeps the repository, and prints where it is.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
PATH=$(cd "$here/../.." && pwd)/build/bin:$PATH
work=$(mktemp -d)
coordinator=
trap '[ -z "$coordinator" ] || kill "$coordinator"; [ -n "${KEEP-}" ] || rm -rf "$work"' EXIT
say() { printf '\n== %s\n' "$*"; }

say "a small C program with failing tests, a bare origin, and the branch guard"
cp -R "$here/project" "$work/repo"
cd "$work/repo"
git init -q -b main
git config user.name "Demo Human"
git config user.email human@example.org
git add -A
git commit -qm "A duration parser, with tests that it fails"
git init -q --bare "$work/origin.git"
git remote add origin "$work/origin.git"
git push -q origin main
worktree-bind hooks install
before=$(git rev-parse main)

say "two tasks"
task() { task-dispatch new --print --state "$work/state" --repo "$work/repo" --base main "$@"; }
task --id "T-$(date -u +%Y)-001" --branch fix/units --description "Durations with several units" \
  --criterion "a single unit still works" --criterion "1h30m is 5400 seconds" \
  --criterion "5x is refused" --criterion "an empty text is refused" >"$work/tasks.ndjson"
task --id "T-$(date -u +%Y)-002" --branch fix/decimals --description "Decimal durations" \
  --criterion "1.5h is 5400 seconds" --criterion "0.25m is 15 seconds" >>"$work/tasks.ndjson"
jq -r '"\(.task_id)  \(.payload.branch)  \(.payload.description)"' "$work/tasks.ndjson"

say "the loop"
# What the human will say to the escalation; without this file hitl-prompt asks on the terminal.
cat >"$work/answer" <<'ANSWER'
{"task_id":"*","decision":"resume","note":"multiply first, convert to long afterwards"}
ANSWER
# The agents see their worktree and the toolchain; the executor needs its patches besides.
jq -n --arg dir "$here/patches" '{read: [$dir]}' >"$work/policy.json"
POLICY=$work/policy.json EXECUTOR=$here/executor.sh REVIEWER=$here/reviewer.sh AMP_ANSWER=$work/answer \
  "$here/loop.sh" "$work/state" <"$work/tasks.ndjson"

say "an agent tries to commit to main"
cd "$work/repo"
echo "/* quick fix */" >>duration.c
if AMP_AGENT=executor git commit -qam "straight to main"; then
  echo "the guard let it pass" >&2
  exit 1
fi
git checkout -q -- duration.c
[ "$(git rev-parse main)" = "$before" ]
echo "main is where it was: $(git rev-parse --short main)"

say "an executor tries to approve its own work"
mkfifo "$work/from-reviewer"
task --id T-2026-003 --branch fix/forged --description "Work that nobody reviews" --criterion "it is reviewed" >"$work/third"
task-dispatch coordinate --state "$work/state" --hold --trust-in "$work/third" --in "reviewer=$work/from-reviewer" \
  >"$work/out" 2>"$work/refusals" &
coordinator=$!
until [ -e "$work/state/tasks/T-2026-003.json" ]; do sleep 0.05; done
echo "confined:"
status=0
worktree-bind exec --read "$here" -- bash "$here/forge.sh" T-2026-003 "$work" >"$work/forged" || status=$?
cat "$work/forged"
# 77: this machine cannot confine
[ "$status" -eq 77 ] || grep -qx "wrote a verdict into 0 FIFOs" "$work/forged"
echo "not confined:"
bash "$here/forge.sh" T-2026-003 "$work"
until grep -q unsigned "$work/refusals"; do sleep 0.05; done
grep -h unsigned "$work/refusals"
kill "$coordinator"
wait "$coordinator" || :
coordinator=
jq -r '"\(.id) is \(.state)"' "$work/state/tasks/T-2026-003.json"
[ "$(jq -r .state "$work/state/tasks/T-2026-003.json")" = dispatched ]

say "what happened"
for branch in fix/units fix/decimals; do
  commit=$(git rev-parse "$branch")
  task-dispatch verify --state "$work/state" "$commit" >/dev/null
  echo "$branch at $(git rev-parse --short "$commit") is approved"
done

say "the log, read with jq"
jq -r 'select(.key // "" | startswith("task.")) | "\(.n)\t\(.key)\t\(.event)\t\(.from) -> \(.to)"' \
  "$work/state/log/"*.ndjson

say "the proof, verified without the state directory"
task-dispatch export --state "$work/state" --out "$work/bundle.json" fix/units
# What a team would keep elsewhere: the keys that it trusts.
cp "$work/state/keys/allowed_signers" "$work/allowed_signers"
if [ -n "${KEEP-}" ]; then mv "$work/state" "$work/state-kept"; else rm -r "$work/state"; fi
task-dispatch verify --bundle "$work/bundle.json" --allowed-signers "$work/allowed_signers" fix/units

say "the same proof with one word changed"
if sed -E 's/"approved(\\?")([,}])/"rejected\1\2/' "$work/bundle.json" |
  task-dispatch verify --bundle - --allowed-signers "$work/allowed_signers" fix/units; then
  echo "a changed bundle passed" >&2
  exit 1
fi

say "where to go from here"
if [ -n "${KEEP-}" ]; then
  # The proof above was verified without the state; a copy of it was made.
  mv "$work/state-kept" "$work/state"
  cat <<NEXT
The repository is $work/repo, the state $work/state:
  git -C '$work/repo' log --oneline fix/units
  amp-ack log --state '$work/state'
NEXT
else
  echo "make demo KEEP=1                                  keeps the repository and the state"
fi
cat <<'NEXT'
task-dispatch init -x EXECUTOR -y REVIEWER        in a repository of yours, then ./loop.sh TASK.md
man man/amp.7                                     the entry page; man man/task-dispatch-loop.1
NEXT
