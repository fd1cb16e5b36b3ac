#!/bin/bash
# The executor: a stand-in for a coding agent. It applies the prepared patch of this attempt, builds,
# and reports only what it has checked. It runs in the task's worktree; see amp-agent-contract(7).
set -eu
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)

name=${AMP_BRANCH##*/}
patch=$here/patches/$name-$AMP_ATTEMPT.patch
# A person's note arrives with the dispatch, and selects the patch.
note=$(jq -r '.payload.tech_constraints.note // empty' "$AMP_MESSAGE")
[ -z "$note" ] || patch=$here/patches/$name-after-note.patch

git apply "$patch"
if make -s duration_test 2>build.log; then built=true; else built=false; fi
rm -f build.log

# One entry per criterion, null if it was not checked: the reviewer judges.
jq -n --argjson built "$built" --slurpfile criteria "$AMP_CRITERIA" --arg patch "${patch##*/}" '{
  completion_status: (if $built then "complete" else "failed" end),
  self_assessment: {
    criteria_met: [$criteria[0][] | null],
    notes: ["applied \($patch)", "it compiles: \($built)"]
  }
} + (if $built then {} else {blockers: ["does not compile"]} end)' >"$AMP_RESULT.new"
mv "$AMP_RESULT.new" "$AMP_RESULT"
