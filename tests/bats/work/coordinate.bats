# task-dispatch coordinate: the QA loop, black box, over canned lines.

load ../lib
load ../coordinator

setup() {
  setup_coordinator
}

# configured JSON: the configuration of the tools from here on.
configured() {
  export AMP_CONFIG=$BATS_TEST_TMPDIR/amp.json
  echo "$1" >"$AMP_CONFIG"
}

@test "a task is dispatched, reviewed, approved and done" {
  new_task | hear
  [ "$status" -eq 75 ]
  [[ "$err" == *"1 open: $task"* ]]
  last task_dispatch | jq -e '.from == "coordinator" and .to == "executor" and .requires_ack
    and .payload.acceptance_criteria == ["1h30m is 5400", "5x is refused"]
    and .payload.branch == "fix/units"'
  [ "$(of_task .state)" = dispatched ]

  result complete aaaaaaa1 | hear
  last review_request | jq -e '.to == "reviewer" and .payload.review_scope == "full"
    and .payload.reject_count == 0 and .payload.ci_status.ci == "not_configured"
    and (.payload.diff_url | endswith("...aaaaaaa1"))'
  [ "$(of_task .state)" = in_review ]
  last review_request | jq -e --arg d "$(last task_dispatch | jq -r .msg_id)" \
    '.payload.original_dispatch_ref == $d'

  verdict approved | hear
  [ "$status" -eq 0 ]
  [ "$(of_task .state)" = done ]
  [ "$(count task_dispatch)" -eq 1 ]
  [ "$(count escalation)" -eq 0 ]
}

@test "what the coordinator takes is acknowledged to its sender" {
  new_task >"$BATS_TEST_TMPDIR/in"
  hear <"$BATS_TEST_TMPDIR/in"
  last ack | jq -e --arg id "$(jq -r .msg_id "$BATS_TEST_TMPDIR/in")" \
    '.ref_msg_id == $id and .from == "coordinator" and .ack_stage == "READ"'
}

@test "all that the coordinator says is valid" {
  need_tool amp-validate
  new_task | hear
  round aaaaaaa1 rejected
  round aaaaaaa2 rejected
  round aaaaaaa3 rejected
  decision resume "use long" | hear
  result partial aaaaaaa4 | hear
  amp-validate -p amp "$said" >"$BATS_TEST_TMPDIR/valid"
  cmp "$said" "$BATS_TEST_TMPDIR/valid"
}

@test "a rejection goes back with its issues, and the next review is incremental" {
  new_task | hear
  round aaaaaaa1 rejected
  [ "$(of_task .state)" = rework ]
  [ "$(of_task .reject_count)" = 1 ]
  last task_dispatch | jq -e '.payload.tech_constraints.review.issues[0].description == "overflow"
    and .payload.tech_constraints.attempt == 2
    and (.payload.description | contains("a.c:87: overflow"))
    and .payload.acceptance_criteria == ["1h30m is 5400", "5x is refused"]'
  result complete aaaaaaa2 | hear
  last review_request | jq -e '.payload.review_scope == "incremental"
    and (.payload.diff_url | endswith("#aaaaaaa1...aaaaaaa2"))'
}

@test "the notes warn before the lock" {
  new_task | hear
  round aaaaaaa1 rejected
  round aaaaaaa2 rejected
  result complete aaaaaaa3 | hear
  last review_request | jq -e '.payload.reject_count == 2
    and (.payload.coordinator_notes | contains("Lock is approaching"))'
}

@test "the executor's open criteria are pointed out to the reviewer" {
  new_task | hear
  result complete aaaaaaa1 | hear
  last review_request | jq -e '.payload.coordinator_notes | contains("- 5x is refused")'
}

@test "the third rejection in a row locks: a critical escalation, suspended, nothing dispatched" {
  new_task | hear
  round aaaaaaa1 rejected
  round aaaaaaa2 rejected
  round aaaaaaa3 rejected
  [ "$status" -eq 75 ]
  last escalation | jq -e '.to == "admin" and .payload.escalation_type == "hallucination_lock"
    and .payload.severity == "critical" and .payload.auto_suspended
    and .payload.system_state_snapshot.task_status == "locked"
    and .payload.system_state_snapshot.reject_count == 3'
  [ "$(of_task .state)" = locked ]
  [ "$(of_task .suspended.ref)" = "$(last escalation | jq -r .msg_id)" ]
  [ "$(count task_dispatch)" -eq 3 ]
  # The suspension and the escalation are one frame.
  jq -se 'map(select(.key == "task.T-2026-001" and .to == "locked")) | length == 1' \
    "$S"/log/*.ndjson
}

@test "three rejections that name no request lock as well" {
  new_task | hear
  for i in 1 2 3; do
    result complete aaaaaaa$i | hear
    message review_verdict reviewer coordinator '{"decision": "rejected", "confidence": 0.95,
      "criteria_results": [{"criterion": "timing", "passed": false, "evidence": "e"},
        {"criterion": "CI", "passed": null, "evidence": "CI is still running"}],
      "issues": [{"severity": "critical", "file": "a.swift", "line": 87, "description": "d",
        "suggested_fix": "f"}], "architecture_notes": "n"}' | hear
    [ "$(of_task .reject_count)" = "$i" ]
  done
  [ "$(of_task .state)" = locked ]
  last escalation | jq -e '.payload.escalation_type == "hallucination_lock"
    and .payload.system_state_snapshot.reject_count == 3'
}

@test "an approval between rejections starts the count again" {
  new_task '.subtasks += [{subtask_id: "T-2026-001-S2", description: "b", estimated_lines: 1}]' | hear
  round aaaaaaa1 rejected
  round aaaaaaa2 rejected
  round aaaaaaa3 approved
  [ "$(of_task .reject_count)" = 0 ]
  last task_dispatch | jq -e '.payload.subtasks[0].subtask_id == "T-2026-001-S2"'
  round aaaaaaa4 rejected
  [ "$(of_task .state)" = rework ]
  [ "$(count escalation)" -eq 0 ]
  round aaaaaaa5 approved
  [ "$(of_task .state)" = done ]
}

@test "subtasks are dispatched one after the other" {
  new_task '.subtasks += [{subtask_id: "T-2026-001-S2", description: "b", estimated_lines: 1}]' | hear
  [ "$(count task_dispatch)" -eq 1 ]
  last task_dispatch | jq -e '.payload.subtasks | length == 1 and .[0].subtask_id == "T-2026-001-S1"'
  result complete aaaaaaa1 | hear
  last review_request | jq -e '.payload.coordinator_notes | contains("Subtask 1 of 2")'
}

lock() {
  new_task | hear
  round aaaaaaa1 rejected
  round aaaaaaa2 rejected
  round aaaaaaa3 rejected
}

@test "decision resume: lifted, counted from zero, dispatched again with the note" {
  lock
  decision resume "multiply first" | hear
  [ "$(of_task .state)" = rework ]
  [ "$(of_task .suspended)" = null ]
  [ "$(of_task .reject_count)" = 0 ]
  last task_dispatch | jq -e '.payload.tech_constraints.note == "multiply first"
    and (.payload.description | contains("multiply first"))'
  round aaaaaaa4 approved
  [ "$status" -eq 0 ]
  [ "$(of_task .state)" = done ]
}

@test "decision redispatch: the note joins the criteria" {
  lock
  decision redispatch "only seconds are needed" | hear
  last task_dispatch | jq -e '.payload.acceptance_criteria | index("only seconds are needed")'
  [ "$(of_task .reject_count)" = 0 ]
}

@test "decision terminate: the task ends and the dispatch is called off" {
  lock
  decision terminate | hear
  [ "$status" -eq 0 ]
  [ "$(of_task .state)" = terminated ]
  [ "$(of_task .suspended)" = null ]
  last nack | jq -e --arg d "$(last task_dispatch | jq -r .msg_id)" \
    '.ref_msg_id == $d and .code == "terminated"'
}

@test "decision rollback: the branch goes back, then the work goes on" {
  repo "$BATS_TEST_TMPDIR/r"
  git -C "$BATS_TEST_TMPDIR/r" branch fix/units
  first=$(git -C "$BATS_TEST_TMPDIR/r" rev-parse HEAD)
  git -C "$BATS_TEST_TMPDIR/r" checkout -q fix/units
  git -C "$BATS_TEST_TMPDIR/r" commit -q --allow-empty -m wrong
  git -C "$BATS_TEST_TMPDIR/r" checkout -q main
  new_task ".repo = \"$BATS_TEST_TMPDIR/r\"" | hear
  [ "$(of_task .base)" = "$first" ]
  round aaaaaaa1 rejected
  round aaaaaaa2 rejected
  round aaaaaaa3 rejected
  # The branch's worktree is an agent's, with a file that nobody committed.
  git -C "$BATS_TEST_TMPDIR/r" worktree add -q "$BATS_TEST_TMPDIR/r.worktrees/bob" fix/units
  echo bob >"$BATS_TEST_TMPDIR/r/.git/worktrees/bob/amp-agent"
  echo mine >"$BATS_TEST_TMPDIR/r.worktrees/bob/precious"
  git -C "$BATS_TEST_TMPDIR/r.worktrees/bob" add precious
  wrong=$(git -C "$BATS_TEST_TMPDIR/r" rev-parse fix/units)
  decision rollback "start over" "$first" | hear
  [ "$(git -C "$BATS_TEST_TMPDIR/r" rev-parse fix/units)" = "$first" ]
  [ "$(of_task .state)" = rework ]
  [[ $err =~ "kept as "(refs/amp/kept/rollback/[^ ]*) ]]
  kept=${BASH_REMATCH[1]%%[[:space:]]*}
  [ "$(git -C "$BATS_TEST_TMPDIR/r" rev-parse "$kept^")" = "$wrong" ]
  [ "$(git -C "$BATS_TEST_TMPDIR/r" show "$kept:precious")" = mine ]
}

@test "a rollback that git refuses changes nothing and is answered with a nack" {
  lock
  decision rollback "start over" 0123456789abcdef | hear
  [ "$(of_task .state)" = locked ]
  last nack | jq -e '.code == "repo_not_git"'
}

@test "a rollback that nobody is waiting for leaves the branch alone" {
  repo "$BATS_TEST_TMPDIR/r"
  first=$(git -C "$BATS_TEST_TMPDIR/r" rev-parse HEAD)
  git -C "$BATS_TEST_TMPDIR/r" checkout -q -b fix/units
  git -C "$BATS_TEST_TMPDIR/r" commit -q --allow-empty -m good
  git -C "$BATS_TEST_TMPDIR/r" checkout -q main
  new_task ".repo = \"$BATS_TEST_TMPDIR/r\"" | hear
  round aaaaaaa1 rejected
  round aaaaaaa2 rejected
  round aaaaaaa3 rejected
  decision resume | hear
  good=$(git -C "$BATS_TEST_TMPDIR/r" rev-parse fix/units)
  decision rollback "start over" "$first" | hear
  last nack | jq -e '.code == "already_decided"'
  [ "$(git -C "$BATS_TEST_TMPDIR/r" rev-parse fix/units)" = "$good" ]
}

@test "the same decision twice is one; another one for the same escalation is refused" {
  lock
  decision resume "multiply first" >"$BATS_TEST_TMPDIR/d"
  hear <"$BATS_TEST_TMPDIR/d"
  hear <"$BATS_TEST_TMPDIR/d"
  [ "$(count task_dispatch)" -eq 4 ]
  decision terminate | hear
  [ "$(of_task .state)" = rework ]
  last nack | jq -e '.code == "already_decided"'
}

# decide_about REF WORD: a decision that names any message.
decide_about() {
  control decision "\"ref_msg_id\":$1,\"decision\":\"$2\",\"operator\":\"ann\",\"note\":\"skip the tests\""
}

@test "a decision about a message that is no open escalation of the task is unknown_ref" {
  new_task | hear
  # About the dispatch, about the admin's own message, and about the escalation of another task.
  source=$(quoted "$(of_task .source_ref)")
  dispatch=$(ref task_dispatch)
  task=T-2026-002
  new_task | hear
  result failed 0000001 '.blockers = ["permission denied"]' | hear
  other=$(ref escalation)
  task=T-2026-001
  for about in "$dispatch" "$source" "$other"; do
    for word in redispatch terminate; do
      decide_about "$about" "$word" | hear
      [ "$status" -eq 75 ]
      [ "$(ref nack code)" = '"unknown_ref"' ]
    done
  done
  [ "$(of_task .state)" = dispatched ]
  [ "$(of_task '.acceptance_criteria | length')" = 2 ]
  [ "$(count task_dispatch)" -eq 2 ]
}

@test "a bogus reference does not terminate a task that waits for a decision" {
  lock
  decide_about "$(ref task_dispatch)" terminate | hear
  [ "$(ref nack code)" = '"unknown_ref"' ]
  [ "$(of_task .state)" = locked ]
}

@test "an escalation that the admin's new dispatch overtook is decided" {
  lock
  old=$(ref escalation)
  new_task | hear
  dispatches=$(count task_dispatch)
  decide_about "$old" redispatch | hear
  [ "$(ref nack code)" = '"already_decided"' ]
  [ "$(count task_dispatch)" -eq "$dispatches" ]
}

@test "a decision about no known escalation is unknown_ref" {
  new_task | hear
  jq -nc --arg task "$task" '{protocol_version: "AMP/1.0", type: "decision",
    ref_msg_id: "escalation-T-2026-001-9", task_id: $task, decision: "resume", operator: "ann",
    timestamp: "2026-02-26T14:32:07Z"}' | hear
  last nack | jq -e '.code == "unknown_ref"'
}

@test "a verdict of low confidence goes to the admin before the executor hears" {
  new_task | hear
  result complete aaaaaaa1 | hear
  verdict rejected '.confidence = 0.5' | hear
  [ "$(count task_dispatch)" -eq 1 ]
  [ "$(of_task .state)" = waiting ]
  last escalation | jq -e '.payload.severity == "warning"
    and (.payload.description | contains("confidence 0.50"))'
  decision resume | hear
  [ "$(count task_dispatch)" -eq 2 ]
  last task_dispatch | jq -e '.payload.tech_constraints.review.issues | length == 1'
}

@test "an approval of low confidence takes effect when the admin says resume" {
  new_task | hear
  round aaaaaaa1 approved '.confidence = 0.79'
  [ "$(of_task .state)" = waiting ]
  decision resume | hear
  [ "$status" -eq 0 ]
  [ "$(of_task .state)" = done ]
}

@test "a third rejection locks even when its confidence is low" {
  new_task | hear
  round aaaaaaa1 rejected
  round aaaaaaa2 rejected
  round aaaaaaa3 rejected '.confidence = 0.1'
  [ "$(of_task .state)" = locked ]
}

@test "high risk wants the admin's approval before the task is done" {
  new_task '.risk_level = "high"' | hear
  round aaaaaaa1 rejected
  result complete aaaaaaa2 | hear
  last review_request | jq -e '.payload.review_scope == "full"'
  verdict approved | hear
  [ "$status" -eq 75 ]
  [ "$(of_task .state)" = waiting ]
  last escalation | jq -e '.payload.escalation_type == "unknown" and (.payload.suggested_actions[0] | contains("approve"))'
  # People read why it asks, and say yes.
  task-dispatch list -s "$S" | grep -q 'T-2026-001  asks you: approval '
  task-dispatch show -s "$S" "$task" | grep -q "waits for a person's decision (needs your approval)"
  last escalation | run -1 hitl-prompt -s "$S" --answer /dev/null
  hitl-prompt list -s "$S" | grep -q ' needs your approval '
  hitl-prompt list -s "$S" --json | jq -e '.why == "needs your approval" and .reason == "TASK_ESCALATION"'
  hitl-prompt show -s "$S" "$task" | grep -q '^== warning: needs your approval, task T-2026-001,'
  hitl-prompt answer -s "$S" --print "$task" yes | tee "$BATS_TEST_TMPDIR/decided" | hear
  jq -e '.decision == "resume"' "$BATS_TEST_TMPDIR/decided"
  [ "$status" -eq 0 ]
  [ "$(of_task .state)" = done ]
}

@test "the approval path of a risk level comes from amp.json" {
  config='{"risk": {"high": {"approval": "reviewer"}, "low": {"approval": "admin"}}}'
  configured "$config"
  new_task '.risk_level = "high"' | hear
  round aaaaaaa1 approved
  [ "$(of_task .state)" = done ]
  task=T-2026-002
  new_task '.risk_level = "low"' | hear
  round aaaaaaa1 approved
  [ "$(of_task .state)" = waiting ]
  # In the state directory, where others may write, it changes nothing and is reported.
  unset AMP_CONFIG
  echo "$config" >"$S/amp.json"
  task=T-2026-003
  new_task '.risk_level = "high"' | hear
  [[ $err == *"$S/amp.json: ignored: risk.high.approval, risk.low.approval;"*"to $XDG_CONFIG_HOME/amp/amp.json or"* ]]
  round aaaaaaa1 approved
  [ "$(of_task .state)" = waiting ]
}

@test "a configuration that says nonsense is refused" {
  echo '{"qa": {"lock_after": "three"}}' >"$BATS_TEST_TMPDIR/c.json"
  hear --config "$BATS_TEST_TMPDIR/c.json" </dev/null
  [ "$status" -eq 78 ]
  [[ "$err" == *qa.lock_after* ]]
}

@test "minor issues do not block: such a rejection counts as approval" {
  new_task | hear
  round aaaaaaa1 rejected '.issues[0].severity = "minor" | .criteria_results[0].passed = true'
  [ "$(of_task .state)" = done ]
  [ "$(of_task '.issues | length')" -eq 1 ]
}

@test "a rejection with minor issues and a criterion not met stays a rejection" {
  new_task | hear
  round aaaaaaa1 rejected '.issues[0].severity = "minor"'
  [ "$(of_task .state)" = rework ]
}

@test "an approval that names a blocking issue is a conflict" {
  new_task | hear
  round aaaaaaa1 approved '.criteria_results[0].passed = false'
  [ "$(of_task .state)" = waiting ]
  last escalation | jq -e '.payload.escalation_type == "conflict"'
}

@test "red checks: no review but the work again; red twice: ci_failure" {
  new_task | hear
  ci aaaaaaa1 failed | hear
  result complete aaaaaaa1 | hear
  [ "$(count review_request)" -eq 0 ]
  [ "$(count task_dispatch)" -eq 2 ]
  last task_dispatch | jq -e '.payload.tech_constraints.ci_status.test == "failed"'
  ci aaaaaaa2 failed | hear
  result complete aaaaaaa2 | hear
  [ "$(count review_request)" -eq 0 ]
  last escalation | jq -e '.payload.escalation_type == "ci_failure"'
  [ "$(of_task .state)" = waiting ]
}

@test "checks that turn red during the review call it off" {
  new_task | hear
  result complete aaaaaaa1 | hear
  ci aaaaaaa1 failed | hear
  [ "$(count task_dispatch)" -eq 2 ]
  [ "$(of_task .state)" = rework ]
  verdict approved | hear
  [ "$(of_task .state)" = rework ]
  last nack | jq -e '.code == "unknown_ref"'
}

@test "green checks stand in the review request" {
  new_task | hear
  ci aaaaaaa1 passed | hear
  result complete aaaaaaa1 | hear
  last review_request | jq -e '.payload.ci_status.test == "passed"'
}

@test "only the checks that the configuration names count" {
  configured '{"ci": {"checks": ["build"]}}'
  new_task | hear
  ci aaaaaaa1 failed | hear
  result complete aaaaaaa1 | hear
  [ "$(count review_request)" -eq 1 ]
}

@test "partial and failed results: again, then the admin" {
  new_task | hear
  result failed aaaaaaa1 | hear
  [ "$(count task_dispatch)" -eq 2 ]
  last task_dispatch | jq -e '.payload.tech_constraints.blockers == ["no key"]'
  result failed aaaaaaa2 | hear
  [ "$(count task_dispatch)" -eq 2 ]
  [ "$(of_task .state)" = waiting ]
  last escalation | jq -e '.payload.description | contains("no key")'
}

@test "what the table of results says is done" {
  configured '{"results": [{"status": "partial", "blocker": "*key*", "action": "fail"}]}'
  new_task | hear
  result partial aaaaaaa1 | hear
  [ "$status" -eq 0 ]
  [ "$(of_task .state)" = failed ]
}

@test "a missing permission is escalated at once" {
  new_task | hear
  result failed aaaaaaa1 '.blockers = ["no permission to push"]' | hear
  last escalation | jq -e '.payload.escalation_type == "permission_denied"'
}

@test "the rejected commit again is a conflict" {
  new_task | hear
  round aaaaaaa1 rejected
  result complete aaaaaaa1 | hear
  [ "$(of_task .state)" = waiting ]
  last escalation | jq -e '.payload.escalation_type == "conflict"'
}

@test "a second verdict that contradicts the first is a conflict" {
  new_task | hear
  round aaaaaaa1 rejected
  verdict approved | hear
  [ "$(of_task .state)" = waiting ]
  last escalation | jq -e '.payload.escalation_type == "conflict"'
}

@test "a second verdict that says the same changes nothing" {
  new_task | hear
  round aaaaaaa1 rejected
  verdict rejected | hear
  [ "$(of_task .reject_count)" = 1 ]
  [ "$(count escalation)" -eq 0 ]
  [ "$(count task_dispatch)" -eq 2 ]
}

@test "a task without acceptance criteria is sent back and can be completed" {
  new_task '.acceptance_criteria = []' | hear
  last nack | jq -e '.code == "empty_acceptance_criteria"'
  [ "$(of_task .state)" = incomplete ]
  [ "$(count task_dispatch)" -eq 0 ]
  new_task | hear
  [ "$(of_task .state)" = dispatched ]
  [ "$(count task_dispatch)" -eq 1 ]
}

@test "results and verdicts for what is not known are unknown_ref" {
  new_task | hear
  result complete aaaaaaa1 '.subtask_id = "T-2026-001-S9"' | hear
  last nack | jq -e '.code == "unknown_ref"'
  task=T-2026-009
  message review_verdict reviewer coordinator '{"decision": "approved", "confidence": 1,
    "criteria_results": []}' | hear
  last nack | jq -e '.code == "unknown_ref" and .task_id == "T-2026-009"'
}

@test "a late result of a replaced dispatch is unknown_ref" {
  new_task | hear
  result complete aaaaaaa2 >"$BATS_TEST_TMPDIR/late"
  round aaaaaaa1 rejected
  hear <"$BATS_TEST_TMPDIR/late"
  last nack | jq -e '.code == "unknown_ref"'
  [ "$(of_task .state)" = rework ]
}

@test "the same message again is acknowledged again and changes nothing" {
  new_task >"$BATS_TEST_TMPDIR/in"
  hear <"$BATS_TEST_TMPDIR/in"
  hear <"$BATS_TEST_TMPDIR/in"
  [ "$(count task_dispatch)" -eq 1 ]
  [ "$(jq -s '[.[] | select(.type == "ack")] | length' "$said")" -eq 2 ]
}

@test "another message under a known id is refused" {
  new_task >"$BATS_TEST_TMPDIR/in"
  hear <"$BATS_TEST_TMPDIR/in"
  jq -c '.payload.description = "other"' "$BATS_TEST_TMPDIR/in" | hear
  last nack | jq -e '.code == "duplicate_msg_id"'
  [ "$(of_task .description)" = "Parse durations" ]
}

@test "dispatches that nobody answered are sent again by the next run" {
  new_task | hear
  hear </dev/null
  [ "$(jq -s '[.[] | select(.type == "task_dispatch")] | length' "$said")" -eq 2 ]
  [ "$(count task_dispatch)" -eq 1 ]
  jq -nc --arg ref "$(last task_dispatch | jq -r .msg_id)" --arg task "$task" '{
    protocol_version: "AMP/1.0", type: "ack", ref_msg_id: $ref, task_id: $task, from: "executor",
    ack_stage: "READ", timestamp: "2026-02-26T14:32:07Z"}' | hear
  : >"$said"
  hear </dev/null
  [ ! -s "$said" ]
}

@test "what was replaced or called off is not sent again" {
  new_task | hear
  old=$(last task_dispatch | jq -r .msg_id)
  new_task '.acceptance_criteria = ["1h is 3600"]' | hear
  : >"$said"
  hear </dev/null
  [ "$(count task_dispatch)" -eq 1 ]
  last task_dispatch | jq -e --arg old "$old" '.msg_id != $old'
  result partial aaaaaaa1 '.blockers = ["no permission"]' | hear
  decision terminate | hear
  : >"$said"
  hear </dev/null
  [ ! -s "$said" ]
}

@test "an executor's critical escalation suspends the task and is passed on" {
  new_task | hear
  message escalation executor admin "$(jq -nc '{escalation_type: "branch_violation",
    severity: "critical", triggered_by: "executor", description: "main moved",
    affected_msgs: [], system_state_snapshot: {task_status: "dispatched", reject_count: 0,
    last_successful_msg_id: ""}, suggested_actions: [], auto_suspended: true}')" \
    >"$BATS_TEST_TMPDIR/e"
  hear <"$BATS_TEST_TMPDIR/e"
  cmp <(tail -n 1 "$said") "$BATS_TEST_TMPDIR/e"
  [ "$(of_task .state)" = suspended ]
  # Work in flight is kept, not lost, and not acted on.
  result complete aaaaaaa1 | hear
  [ "$(count review_request)" -eq 0 ]
  [ "$(of_task '.subtasks[0].held')" = review ]
  decision resume | hear
  [ "$(of_task .suspended)" = null ]
  [ "$(count review_request)" -eq 1 ]
}

escalate() {
  message escalation "$2" "${3:-admin}" "$(jq -nc --arg s "$1" --arg by "$2" '{escalation_type: "unknown",
    severity: $s, triggered_by: $by, description: "x", affected_msgs: [],
    system_state_snapshot: {task_status: "dispatched", reject_count: 0,
    last_successful_msg_id: ""}, suggested_actions: [], auto_suspended: ($s != "info")}')"
}

@test "an escalation addressed to the coordinator reaches the admin, and its decision lifts what it suspended" {
  new_task | hear
  escalate critical executor coordinator >"$BATS_TEST_TMPDIR/e"
  id=$(jq -r .msg_id "$BATS_TEST_TMPDIR/e")
  hear <"$BATS_TEST_TMPDIR/e"
  # Under an id of its own: other bytes under the executor's would be a conflict further on.
  last escalation | jq -e --arg id "$id" '.to == "admin" and .from == "coordinator" and .msg_id != $id
    and (.context_ref | index($id)) and .payload.triggered_by == "executor" and .payload.severity == "critical"'
  last escalation | amp-validate | cmp - <(last escalation)
  [ "$(of_task .suspended.ref)" = "$(last escalation | jq -r .msg_id)" ]
  # The same one again is the same one.
  hear <"$BATS_TEST_TMPDIR/e"
  [ "$(count escalation)" -eq 1 ]
  # The executor's own id is no question that anybody was asked.
  for word in redispatch terminate; do
    decide_about "$(quoted "$id")" "$word" | hear
    [ "$(ref nack code)" = '"unknown_ref"' ]
  done
  [ "$(of_task '.acceptance_criteria | length')" = 2 ]
  decision resume | hear
  [ "$(of_task .state)" = rework ]
  [ "$(count task_dispatch)" -eq 2 ]
}

@test "a reviewer that breaks down has judged nobody: the review is asked for again" {
  new_task | hear
  result complete aaaaaaa1 | hear
  escalate warning reviewer | hear
  [ "$(of_task .state)" = waiting ]
  decision resume | hear
  [ "$(of_task .state)" = in_review ]
  [ "$(count review_request)" -eq 2 ]
  [ "$(of_task .reject_count)" = 0 ]
}

@test "a suspension that comes before its task holds it until the decision" {
  escalate critical executor | hear
  [ "$(of_task .state)" = suspended ]
  new_task | hear
  [ "$(count task_dispatch)" -eq 0 ]
  decision resume | hear
  [ "$(count task_dispatch)" -eq 1 ]
  [ "$(of_task .state)" = dispatched ]
}

@test "a suspended task that nobody knows more of is forgotten with the decision" {
  escalate critical executor | hear
  [ "$status" -eq 75 ]
  decision resume | hear
  [ "$status" -eq 0 ]
  [ "$(of_task .suspended)" = null ]
}

@test "a verdict before any result is unknown_ref" {
  new_task | hear
  message review_verdict reviewer coordinator '{"decision": "approved", "confidence": 1,
    "criteria_results": []}' | hear
  last nack | jq -e '.code == "unknown_ref"'
  [ "$(of_task .state)" = dispatched ]
}

@test "a warning holds the task, an info nobody" {
  new_task | hear
  for s in info warning; do
    escalate $s executor | hear
    echo "$s: $(of_task .state)" >>"$BATS_TEST_TMPDIR/states"
  done
  diff "$BATS_TEST_TMPDIR/states" - <<<"info: dispatched
warning: waiting"
}

@test "a refusal of the executor is the admin's business" {
  new_task | hear
  jq -nc --arg ref "$(last task_dispatch | jq -r .msg_id)" --arg task "$task" '{
    protocol_version: "AMP/1.0", type: "nack", ref_msg_id: $ref, task_id: $task, from: "executor",
    failed_stage: "REJECTED", code: "repo_not_git", message: "no git", rule: "repo",
    retryable: false, timestamp: "2026-02-26T14:32:07Z"}' | hear
  [ "$(of_task .state)" = waiting ]
  last escalation | jq -e '.payload.description | contains("executor refused it (repo_not_git): no git")'
  task-dispatch list -s "$S" --json | jq -e '.question_why == "refused the work" and .question_type == "unknown"'
}

@test "the admin's new dispatch of a locked task lifts the lock" {
  lock
  new_task '.acceptance_criteria = ["1h is 3600"]' | hear
  [ "$(of_task .state)" = dispatched ]
  [ "$(of_task .suspended)" = null ]
  last task_dispatch | jq -e '.payload.acceptance_criteria == ["1h is 3600"]'
}

@test "an ended task is not opened again" {
  new_task | hear
  round aaaaaaa1 approved
  new_task | hear
  last nack | jq -e '.code == "terminal"'
  [ "$(of_task .state)" = done ]
}

@test "messages for others pass through untouched" {
  new_task >"$BATS_TEST_TMPDIR/in"
  sed 's/"to":"coordinator"/"to":"executor"/; s/"from":"admin"/"from":"coordinator"/' \
    "$BATS_TEST_TMPDIR/in" >"$BATS_TEST_TMPDIR/other"
  hear <"$BATS_TEST_TMPDIR/other"
  cmp "$said" "$BATS_TEST_TMPDIR/other"
}

@test "a bad line is logged and the stream goes on" {
  { echo '{"type": "task_dispatch"'; new_task; } | hear
  [ "$(count task_dispatch)" -eq 1 ]
  [ -s "$S/error.ndjson" ]
}

@test "a text with a NUL and a number out of range are refused, and the next message is taken" {
  {
    new_task | sed 's/"payload":{/&"tech_constraints":{"most":99999999999999999999},/'
    escalate critical executor coordinator | sed 's/"description":"x"/"description":"x\\u0000y"/'
  } | hear
  [ "$status" -eq 1 ]
  [[ $err == *"bad_value: too big integer"* && $err == *"bad_value: \\u0000 cannot be part of a text here"* ]]
  [ "$(grep -c '"code":"bad_value"' "$said")" -eq 2 ]
  [ ! -e "$S/tasks/$task.json" ]
  new_task | hear
  [ "$(of_task .state)" = dispatched ]
}

@test "the sender of an invalid message gets a refusal" {
  new_task '.branch = "main"' | hear
  last nack | jq -e '.code == "branch_violation" and .task_id == "T-2026-001"'
  [ ! -e "$S/tasks/$task.json" ]
  new_task | hear
  round aaaaaaa1 approved_with_fix '.direct_fixes[0].diff_lines = 5'
  last nack | jq -e '.code == "fix_out_of_range"'
  [ "$(of_task .state)" = in_review ]
}

@test "the answer to an escalation that a sweep raised" {
  need_tool amp-ack hitl-prompt
  new_task | hear
  amp-ack sweep --state "$S" --now 2036-01-01T00:00:00Z >"$BATS_TEST_TMPDIR/late"
  grep -q ack_timeout "$BATS_TEST_TMPDIR/late"
  echo '{"task_id": "*", "decision": "resume", "note": "again"}' \
    >"$BATS_TEST_TMPDIR/answer"
  hitl-prompt --state "$S" --answer "$BATS_TEST_TMPDIR/answer" <"$BATS_TEST_TMPDIR/late" | hear
  [ "$(of_task .state)" = rework ]
  [ "$(count task_dispatch)" -eq 2 ]
}

@test "without a state directory it is wrong usage" {
  run task-dispatch coordinate </dev/null
  [ "$status" -eq 64 ]
}

@test "the machines are printed" {
  run -0 task-dispatch --machine=ndjson
  jq -se 'map(select(.machine == "qa" and .from == "in_review" and .event == "verdict_rejected"
    and .to == "held" and .code == "hallucination_lock")) | length == 1' <<<"$output"
}

@test "the documented tables are the ones that are printed" {
  sed -n '/^```$/,/^```$/p' "$AMP_TOP/docs/qa-loop.md" | sed '1d;$d' >"$BATS_TEST_TMPDIR/documented"
  task-dispatch --machine=table | awk 'BEGIN { RS = ""; ORS = "" } /^(task|qa) \(/ {
    print sep $0 "\n"; sep = "\n" }' >"$BATS_TEST_TMPDIR/printed"
  diff "$BATS_TEST_TMPDIR/documented" "$BATS_TEST_TMPDIR/printed"
}

@test "the id of a task is not used again after its record left the live set" {
  native "a preloaded shim must come first"
  need_tool amp-ack
  local shim=$AMP_BUILD/tests/fault/failclock.so
  [ -e "$shim" ] || make_same "$shim"
  mkdir -m 700 "$S"
  echo '{"store":{"segment_bytes":65536,"keep_segments":2}}' >"$S/amp.json"
  new_task | hear
  round aaaaaaa1 approved
  [ "$(of_task .state)" = done ]
  export LD_PRELOAD=$shim FAIL_CLOCK_SHIFT=$((32 * 86400))
  # Retention works on behind what is recorded.
  local batch
  forgotten() { grep -h '"forget":' "$S"/log/*.ndjson | jq -e ".forget[][0] | select(. == \"task.$task\")"; }
  for batch in {1..8}; do
    envelope task_dispatch coordinator executor '[]' '{"description":"d","repo":"/r","branch":"b","subtasks":[{"subtask_id":"T-2026-001-S1","description":"s","estimated_lines":6}],"acceptance_criteria":["c"],"risk_level":"low","forbidden_actions":[],"tech_constraints":{}}' |
      jq -c --argjson batch "$batch" '. as $m | range(400) as $i | $m | .msg_id = "task_dispatch-T-1999-001-\($batch * 1000 + $i)"
        | .task_id = "T-1999-001" | .payload.subtasks[0].subtask_id = "T-1999-001-S1"' |
      amp-ack --state "$S" >"$BATS_TEST_TMPDIR/passed"
    ! forgotten || break
  done
  forgotten
  new_task | hear
  unset LD_PRELOAD
  last nack | jq -e '.code == "terminal"'
  [ "$(count task_dispatch)" -eq 1 ]
}
