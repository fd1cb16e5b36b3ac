#!/bin/bash
# The executor: an honest stand-in for a coding agent. It applies the patch that "it came up with"
# at this attempt, builds, and says only what it has checked itself.
# It is started in the task's worktree; the contract is in docs/agent-contract.md.
set -eu
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)

name=${AMP_BRANCH##*/}
patch=$here/patches/$name-$AMP_ATTEMPT.patch
# A person's note arrives with the dispatch; this agent does listen.
note=$(jq -r '.payload.tech_constraints.note // empty' "$AMP_MESSAGE")
[ -z "$note" ] || patch=$here/patches/$name-after-note.patch

git apply "$patch"
if make -s duration_test 2>build.log; then built=true; else built=false; fi
rm -f build.log

# One entry a criterion, null where this agent did not check: judging is the reviewer's work.
jq -n --argjson built "$built" --slurpfile criteria "$AMP_CRITERIA" --arg patch "${patch##*/}" '{
  completion_status: (if $built then "complete" else "failed" end),
  self_assessment: {
    criteria_met: [$criteria[0][] | null],
    notes: ["applied \($patch)", "it compiles: \($built)"]
  }
} + (if $built then {} else {blockers: ["does not compile"]} end)' >"$AMP_RESULT.new"
mv "$AMP_RESULT.new" "$AMP_RESULT"
