#!/bin/bash
# The loop with recorded coding agents: the programs claude and codex in stand-in/ replay recorded
# answers, so that the demo needs neither the agents nor a network, and always gives the same result.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
top=$(cd "$here/../.." && pwd)
export PATH=$here/stand-in:$top/build/bin:$PATH PLAYED=$work/played
mkdir "$PLAYED"
# The stand-ins need their recordings, and count what they played. Real command lines need the policy
# of their vendor: see ../policies.
jq -n --arg here "$here" --arg played "$PLAYED" \
  '{read: ["\($here)/stand-in", "\($here)/recorded"], write: [$played], environment: ["PLAYED"]}' >"$work/policy.json"
export POLICY=$work/policy.json

cp -R "$here/../qa-loop/project" "$work/repo"
git -C "$work/repo" init -q -b main
git -C "$work/repo" config user.name "Demo Human"
git -C "$work/repo" config user.email human@example.org
git -C "$work/repo" add -A
git -C "$work/repo" commit -qm "A duration parser, with tests that it fails"

task-dispatch new --print --state "$work/state" --repo "$work/repo" --base main --branch fix/units \
  --description "Durations with several units" --criterion "1h30m is 5400 seconds" \
  --criterion "5x is refused" --criterion "an empty text is refused" |
  "$here/loop.sh" "$work/state"

cd "$work/repo"
task-dispatch verify --state "$work/state" "$(git rev-parse fix/units)"
