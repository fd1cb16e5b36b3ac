# AMP/1.0: every rule accepts what it should and refuses what it should.

load lib
load messages

setup() {
  need jq
}

@test "every message type and every control record passes" {
  local t
  for t in task_dispatch task_result review_request review_verdict escalation ack nack decision ci_status; do
    accepted "$t"
  done
}

@test "every required field of the envelope is missed" {
  local f
  for f in msg_id protocol_version type from to task_id timestamp requires_ack payload; do
    refused task_dispatch "del(.$f)" missing_field "$f"
  done
}

@test "every required field of every payload is missed" {
  local f
  for f in description repo branch subtasks risk_level; do
    refused task_dispatch "del(.payload.$f)" missing_field "payload.$f"
  done
  for f in subtask_id completion_status diff_summary self_assessment work_log; do
    refused task_result "del(.payload.$f)" missing_field "payload.$f"
  done
  for f in original_dispatch_ref task_result_ref review_scope diff_url reject_count ci_status; do
    refused review_request "del(.payload.$f)" missing_field "payload.$f"
  done
  for f in decision criteria_results confidence; do
    refused review_verdict "del(.payload.$f)" missing_field "payload.$f"
  done
  for f in escalation_type severity triggered_by description affected_msgs system_state_snapshot \
    suggested_actions auto_suspended; do
    refused escalation "del(.payload.$f)" missing_field "payload.$f"
  done
}

@test "every required field inside lists and objects is missed" {
  local f
  for f in subtask_id description estimated_lines; do
    refused task_dispatch "del(.payload.subtasks[1].$f)" missing_field "payload.subtasks[1].$f"
  done
  for f in timestamp action file detail; do
    refused task_result "del(.payload.work_log[0].$f)" missing_field "payload.work_log[0].$f"
  done
  for f in files_changed lines_added lines_removed; do
    refused task_result "del(.payload.diff_summary.$f)" missing_field "payload.diff_summary.$f"
  done
  for f in criterion passed evidence; do
    refused review_verdict "del(.payload.criteria_results[0].$f)" missing_field \
      "payload.criteria_results[0].$f"
  done
  for f in severity file line description suggested_fix; do
    refused review_verdict "del(.payload.issues[0].$f)" missing_field "payload.issues[0].$f"
  done
  for f in task_status reject_count last_successful_msg_id; do
    refused escalation "del(.payload.system_state_snapshot.$f)" missing_field \
      "payload.system_state_snapshot.$f"
  done
}

@test "every required field of the control records is missed" {
  local f
  for f in ref_msg_id task_id from ack_stage timestamp; do
    refused ack "del(.$f)" missing_field "$f"
  done
  for f in ref_msg_id task_id from failed_stage code message rule retryable timestamp; do
    refused nack "del(.$f)" missing_field "$f"
  done
  for f in ref_msg_id task_id decision operator timestamp; do
    refused decision "del(.$f)" missing_field "$f"
  done
  for f in task_id branch commit checks timestamp; do
    refused ci_status "del(.$f)" missing_field "$f"
  done
}

@test "a wrong JSON type is bad_type" {
  local f
  for f in msg_id protocol_version type from to task_id timestamp; do
    refused task_dispatch ".$f = 5" bad_type "$f"
  done
  refused task_dispatch '.requires_ack = "true"' bad_type requires_ack
  refused task_dispatch '.ack_timeout_sec = "300"' bad_type ack_timeout_sec
  refused task_dispatch '.ack_timeout_sec = 1.5' bad_type ack_timeout_sec
  refused task_dispatch '.context_ref = "x"' bad_type context_ref
  refused task_dispatch '.context_ref = [1]' bad_type 'context_ref[0]'
  refused task_dispatch '.payload = []' bad_type payload
  refused task_dispatch '.payload.acceptance_criteria = "all"' bad_type payload.acceptance_criteria
  refused task_dispatch '.payload.subtasks[0].estimated_lines = "60"' bad_type \
    'payload.subtasks[0].estimated_lines'
  refused task_dispatch '.payload.tech_constraints = []' bad_type payload.tech_constraints
  refused task_result '.payload.self_assessment.criteria_met = ["yes"]' bad_type \
    'payload.self_assessment.criteria_met[0]'
  refused task_result '.payload.diff_summary.lines_added = 1.5' bad_type \
    payload.diff_summary.lines_added
  refused task_result '.payload.completion_status = "partial" | .payload.blockers = "no key"' \
    bad_type payload.blockers
  refused review_request '.payload.reject_count = "2"' bad_type payload.reject_count
  refused review_verdict '.payload.criteria_results[0].passed = "no"' bad_type \
    'payload.criteria_results[0].passed'
  refused review_verdict '.payload.confidence = "high"' bad_type payload.confidence
  refused escalation '.payload.auto_suspended = "yes"' bad_type payload.auto_suspended
  run --separate-stderr amp-validate -p amp -e - <<<'[]'
  [ "$status" -eq 1 ]
  [ "$(jq -r .code <<<"$stderr")" = bad_type ]
}

@test "a word outside its list is bad_enum" {
  refused task_dispatch '.type = "invalid"' bad_enum type
  refused task_dispatch '.from = "robot"' bad_enum from
  refused task_dispatch '.to = "system"' bad_enum to
  refused task_dispatch '.to = "all"' bad_enum to
  refused task_dispatch '.payload.risk_level = "extreme"' bad_enum payload.risk_level
  refused task_result '.payload.completion_status = "done"' bad_enum payload.completion_status
  refused review_request '.payload.review_scope = "partial"' bad_enum payload.review_scope
  refused review_request '.payload.ci_status.ci = "green"' bad_enum payload.ci_status.ci
  refused review_verdict '.payload.decision = "maybe"' bad_enum payload.decision
  refused review_verdict '.payload.issues[0].severity = "blocker"' bad_enum \
    'payload.issues[0].severity'
  refused escalation '.payload.escalation_type = "lol"' bad_enum payload.escalation_type
  refused escalation '.payload.severity = "fatal"' bad_enum payload.severity
  refused escalation '.payload.triggered_by = "admin"' bad_enum payload.triggered_by
  refused ack '.ack_stage = "SEEN"' bad_enum ack_stage
  refused decision '.decision = "retry"' bad_enum decision
  refused ci_status '.checks.ci = "red"' bad_enum checks.ci
}

@test "every word of every list passes" {
  local w
  for w in admin coordinator executor reviewer system; do accepted task_dispatch ".from = \"$w\""; done
  for w in admin coordinator executor reviewer; do accepted task_dispatch ".to = \"$w\""; done
  for w in low medium high; do accepted task_dispatch ".payload.risk_level = \"$w\""; done
  for w in full incremental; do accepted review_request ".payload.review_scope = \"$w\""; done
  for w in passed running skipped not_configured; do
    accepted review_request ".payload.ci_status.ci = \"$w\""
  done
  for w in critical major minor; do
    accepted review_verdict ".payload.issues[0].severity = \"$w\""
  done
  for w in hallucination_lock ack_timeout branch_violation ci_failure conflict heartbeat_timeout \
    permission_denied unknown; do
    accepted escalation ".payload.escalation_type = \"$w\""
  done
  for w in critical warning info; do accepted escalation ".payload.severity = \"$w\""; done
  for w in coordinator executor reviewer system; do
    accepted escalation ".payload.triggered_by = \"$w\""
  done
  for w in RECEIVED READ FULFILLED; do accepted ack ".ack_stage = \"$w\""; done
  for w in resume terminate redispatch; do accepted decision ".decision = \"$w\""; done
  accepted decision '.decision = "rollback" | .commit = "a3f8d21"'
}

@test "another protocol version is refused before all else" {
  refused task_dispatch '.protocol_version = "AMP/2.0"' version_incompatible protocol_version
  refused task_dispatch '.protocol_version = "AMP/2.0" | .new_field = 1 | del(.payload)' \
    version_incompatible protocol_version
  [ "$(jq -s length <<<"$stderr")" -eq 1 ]
}

@test "msg_id agrees with type and task_id" {
  accepted task_dispatch '.msg_id = "task_dispatch-T-2026-044-001"'
  refused task_dispatch '.msg_id = "task_result-T-2026-044-1"' bad_msg_id msg_id
  refused task_dispatch '.msg_id = "task_dispatch-T-2026-045-1"' bad_msg_id msg_id
  refused task_dispatch '.msg_id = "task_dispatch-T-2026-044"' bad_msg_id msg_id
  refused task_dispatch '.msg_id = "task_dispatch-T-2026-044-"' bad_msg_id msg_id
  refused task_dispatch '.msg_id = "task_dispatch-T-2026-044-1x"' bad_msg_id msg_id
  refused task_dispatch '.msg_id = "123"' bad_msg_id msg_id
  refused task_dispatch '.msg_id = ""' bad_msg_id msg_id
}

@test "the number in msg_id is never compared with the timestamp" {
  accepted task_dispatch '.msg_id = "task_dispatch-T-2026-044-1740576727001"'
}

@test "task_id is T-YYYY-NNN" {
  local id
  for id in T-26-044 T-2026-44 T-2026-0444 2026-044 t-2026-044 T-2026-04a 'T-2026-044 ' ''; do
    refused task_dispatch ".task_id = \"$id\"" bad_task_id task_id
  done
  refused task_dispatch '.task_id = "T-26-44" | .msg_id = "task_dispatch-T-26-44-1"' bad_task_id task_id
  refused ack '.task_id = "44"' bad_task_id task_id
}

@test "times have an offset or Z" {
  accepted task_dispatch '.timestamp = "2026-02-26T14:32:07Z"'
  accepted task_dispatch '.timestamp = "2026-02-26T14:32:07.123456-05:30"'
  local t
  for t in 2026-02-26T14:32:07 2026-02-26 '2026-02-26 14:32' 2026-02-30T14:32:07Z \
    2026-02-26T25:32:07Z 1772116327 yesterday ''; do
    refused task_dispatch ".timestamp = \"$t\"" bad_timestamp timestamp
  done
  refused task_result '.payload.work_log[0].timestamp = "14:28"' bad_timestamp \
    'payload.work_log[0].timestamp'
  refused review_request '.payload.ci_status.last_updated = "now"' bad_timestamp \
    payload.ci_status.last_updated
}

@test "fields that the protocol does not know are refused" {
  refused task_dispatch '.priority = 1' unknown_field priority
  refused task_dispatch '.payload.deadline = "x"' unknown_field payload.deadline
  refused task_dispatch '.payload.subtasks[0].x = 1' unknown_field 'payload.subtasks[0].x'
  refused task_result '.payload.self_assessment.x = 1' unknown_field payload.self_assessment.x
  refused review_verdict '.payload.fixes = []' unknown_field payload.fixes
  refused escalation '.payload.system_state_snapshot.x = 1' unknown_field \
    payload.system_state_snapshot.x
  refused ack '.to = "coordinator"' unknown_field to
  accepted task_dispatch '.payload.tech_constraints = {"anything": [1, {"goes": null}]}'
}

@test "ack_timeout_sec" {
  accepted task_dispatch 'del(.ack_timeout_sec)'
  accepted task_dispatch '.requires_ack = false | del(.ack_timeout_sec)'
  warned task_dispatch '.requires_ack = false' ack_timeout_ignored
  refused task_dispatch '.ack_timeout_sec = 0' bad_value ack_timeout_sec
  refused task_dispatch '.ack_timeout_sec = -1' bad_value ack_timeout_sec
  accepted task_dispatch '.ack_timeout_sec = 3e2'
}

@test "a dispatch never names a protected branch" {
  local b
  for b in main master refs/heads/main heads/master; do
    refused task_dispatch ".payload.branch = \"$b\"" branch_violation payload.branch
  done
  accepted task_dispatch '.payload.branch = "maintenance"'
  accepted task_dispatch '.payload.branch = "feature/main"'
  accepted task_dispatch '.payload.branch = "release/1"'
  refused task_dispatch '.payload.branch = "release/1"' branch_violation payload.branch \
    --protect 'release/*'
}

@test "an escaped branch name is decoded before it is judged" {
  line=$(message task_dispatch '.payload.branch = "XX"' | sed 's/"XX"/"m\\u0061in"/')
  run --separate-stderr amp-validate -e - <<<"$line"
  [ "$status" -eq 1 ]
  [ "$(jq -r .code <<<"$stderr")" = branch_violation ]
}

@test "a branch name that git refuses is refused" {
  local b
  for b in 'a..b' '-x' 'a b' 'a~1' 'a:b' 'x.lock' 'a//b' '/a' 'a/' '@' HEAD 'a@{1}' '.a' 'a/.b'; do
    refused task_dispatch ".payload.branch = \"$b\"" bad_value payload.branch
  done
}

@test "a dispatch has acceptance criteria" {
  refused task_dispatch 'del(.payload.acceptance_criteria)' empty_acceptance_criteria \
    payload.acceptance_criteria
  refused task_dispatch '.payload.acceptance_criteria = []' empty_acceptance_criteria \
    payload.acceptance_criteria
}

@test "a dispatch has subtasks with ids of their own" {
  refused task_dispatch '.payload.subtasks = []' bad_value payload.subtasks
  refused task_dispatch '.payload.subtasks[1].subtask_id = "T-2026-044-S1"' bad_value \
    'payload.subtasks[1].subtask_id'
  refused task_dispatch '.payload.subtasks[0].estimated_lines = -1' bad_value \
    'payload.subtasks[0].estimated_lines'
}

@test "--check-repo wants a git repository" {
  repo "$BATS_TEST_TMPDIR/git"
  git init -q --bare "$BATS_TEST_TMPDIR/bare.git"
  mkdir "$BATS_TEST_TMPDIR/empty"
  accepted task_dispatch ".payload.repo = \"$BATS_TEST_TMPDIR/nowhere\""
  accepted task_dispatch ".payload.repo = \"$BATS_TEST_TMPDIR/git\"" --check-repo
  accepted task_dispatch ".payload.repo = \"$BATS_TEST_TMPDIR/bare.git\"" --check-repo
  local d
  for d in nowhere empty; do
    refused task_dispatch ".payload.repo = \"$BATS_TEST_TMPDIR/$d\"" repo_not_git payload.repo \
      --check-repo
  done
}

@test "blockers where the result is partial or failed, and only there" {
  local s
  for s in partial failed; do
    refused task_result ".payload.completion_status = \"$s\"" missing_field payload.blockers
    refused task_result ".payload.completion_status = \"$s\" | .payload.blockers = []" \
      missing_field payload.blockers
    accepted task_result ".payload.completion_status = \"$s\" | .payload.blockers = [\"no key\"]"
  done
  accepted task_result '.payload.blockers = []'
  refused task_result '.payload.blockers = ["no key"]' bad_value payload.blockers
}

@test "a failed check closes the review gate" {
  refused review_request '.payload.ci_status.ci = "failed"' ci_failed payload.ci_status.ci
  refused review_request '.payload.ci_status = {"xcode_cloud": "failed"}' ci_failed \
    payload.ci_status.xcode_cloud
  accepted review_request '.payload.ci_status = {}'
}

@test "the lock note" {
  warned review_request '.payload.reject_count = 2' lock_note_missing
  warned review_request '.payload.reject_count = 3 | del(.payload.coordinator_notes)' lock_note_missing
  accepted review_request '.payload.reject_count = 2 | .payload.coordinator_notes = "Lock is approaching."'
  accepted review_request '.payload.reject_count = 1'
  refused review_request '.payload.reject_count = -1' bad_value payload.reject_count
}

@test "issues where the verdict is rejected" {
  refused review_verdict 'del(.payload.issues)' missing_field payload.issues
  refused review_verdict '.payload.issues = []' missing_field payload.issues
}

fix='.payload.decision = "approved_with_fix" | del(.payload.issues) | .payload.direct_fixes =
  [{"file": "a.c", "change_type": "lint", "diff_lines": 1}]'

@test "direct fixes where the verdict is approved_with_fix, small ones only" {
  refused review_verdict '.payload.decision = "approved_with_fix" | del(.payload.issues)' \
    missing_field payload.direct_fixes
  refused review_verdict "$fix | .payload.direct_fixes = []" missing_field payload.direct_fixes
  local t
  for t in typo lint whitespace import_order import; do
    accepted review_verdict "$fix | .payload.direct_fixes[0].change_type = \"$t\""
  done
  accepted review_verdict "$fix | .payload.direct_fixes[0].diff_lines = 4"
  accepted review_verdict "$fix | .payload.direct_fixes[0].diff_lines = 0"
  refused review_verdict "$fix | .payload.direct_fixes[0].diff_lines = 5" fix_out_of_range \
    'payload.direct_fixes[0].diff_lines'
  refused review_verdict "$fix | .payload.direct_fixes[0].diff_lines = -1" fix_out_of_range \
    'payload.direct_fixes[0].diff_lines'
  refused review_verdict "$fix | .payload.direct_fixes[0].change_type = \"refactor\"" \
    fix_out_of_range 'payload.direct_fixes[0].change_type'
  for t in file change_type diff_lines; do
    refused review_verdict "$fix | del(.payload.direct_fixes[0].$t)" missing_field \
      "payload.direct_fixes[0].$t"
  done
}

@test "a verdict that contradicts itself is worth a warning" {
  warned review_verdict '.payload.decision = "approved" | del(.payload.issues)' inconsistent_verdict
  warned review_verdict '.payload.decision = "approved" | .payload.criteria_results = []' \
    inconsistent_verdict
  accepted review_verdict '.payload.decision = "approved" | .payload.criteria_results = [] |
    .payload.issues[0].severity = "minor"'
  warned review_verdict '.payload.criteria_results[].passed = true |
    .payload.issues[0].severity = "minor"' inconsistent_verdict
  accepted review_verdict '.payload.criteria_results[].passed = true'
}

@test "confidence is within 0 and 1" {
  accepted review_verdict '.payload.confidence = 0'
  accepted review_verdict '.payload.confidence = 1'
  refused review_verdict '.payload.confidence = 1.01' bad_value payload.confidence
  refused review_verdict '.payload.confidence = -0.01' bad_value payload.confidence
}

@test "auto_suspended is false at info only" {
  local s
  for s in critical warning; do
    accepted escalation ".payload.severity = \"$s\""
    refused escalation ".payload.severity = \"$s\" | .payload.auto_suspended = false" must_suspend \
      payload.auto_suspended
  done
  accepted escalation '.payload.severity = "info" | .payload.auto_suspended = false'
  accepted escalation '.payload.severity = "info"'
}

@test "a rollback names its commit" {
  refused decision '.decision = "rollback"' missing_field commit
  refused decision '.decision = "rollback" | .commit = "xyz"' bad_value commit
}

@test "--strict turns warnings into refusals" {
  refused task_dispatch '.requires_ack = false' ack_timeout_ignored ack_timeout_sec --strict
  refused review_request '.payload.reject_count = 2' lock_note_missing payload.coordinator_notes \
    --strict
}

@test "several faults are all told, once each" {
  run --separate-stderr amp-validate -e - <<<"$(message task_dispatch \
    '.from = "robot" | .extra = 1 | .payload.branch = "main" | del(.payload.repo)')"
  [ "$status" -eq 1 ]
  [ "$(jq -rs 'map(.code) | sort | join(" ")' <<<"$stderr")" = \
    "bad_enum branch_violation missing_field unknown_field" ]
}
