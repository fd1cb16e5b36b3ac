# Valid messages to start from. `message TYPE [JQ]` prints one on one line, edited by a jq filter.

message() {
  local type=$1 edit=${2:-.} to=executor from=coordinator payload ack='true, "ack_timeout_sec": 300'
  case $type in
  task_dispatch)
    payload='{"description": "Rebuild the timer", "repo": "/srv/repo", "branch": "feature/x",
      "subtasks": [{"subtask_id": "T-2026-044-S1", "description": "Replace it", "estimated_lines": 60},
                   {"subtask_id": "T-2026-044-S2", "description": "Handle sleep", "estimated_lines": 30}],
      "acceptance_criteria": ["error < 500ms", "tests pass"], "risk_level": "medium",
      "forbidden_actions": ["change permissions"], "tech_constraints": {"swift": "6.0"}}'
    ;;
  task_result)
    from=executor to=coordinator
    payload='{"subtask_id": "T-2026-044-S1", "completion_status": "complete",
      "diff_summary": {"files_changed": ["a.c"], "lines_added": 6, "lines_removed": 2},
      "self_assessment": {"criteria_met": [true, null], "notes": ["n"]},
      "work_log": [{"timestamp": "2026-02-26T14:28:00Z", "action": "edit", "file": "a.c", "detail": "d"}],
      "commit_hash": "a3f8d21"}'
    ;;
  review_request)
    to=reviewer
    payload='{"original_dispatch_ref": "task_dispatch-T-2026-044-1", "task_result_ref": "task_result-T-2026-044-2",
      "review_scope": "full", "diff_url": "https://example.org/compare/main...x", "reject_count": 0,
      "coordinator_notes": "look at sleep", "ci_status": {"ci": "passed", "lint": "running",
      "last_updated": "2026-02-26T14:30:00Z"}}'
    ;;
  review_verdict)
    from=reviewer to=coordinator
    payload='{"decision": "rejected", "criteria_results": [{"criterion": "c1", "passed": false, "evidence": "e"},
      {"criterion": "c2", "passed": null, "evidence": ""}], "issues": [{"severity": "critical", "file": "a.c",
      "line": 87, "description": "d", "suggested_fix": "f"}], "architecture_notes": "n", "confidence": 0.95}'
    ;;
  escalation)
    to=admin ack=false
    payload='{"escalation_type": "hallucination_lock", "severity": "critical", "triggered_by": "coordinator",
      "description": "locked", "affected_msgs": ["task_dispatch-T-2026-044-1"], "system_state_snapshot":
      {"task_status": "locked", "reject_count": 3, "last_successful_msg_id": ""},
      "suggested_actions": ["split it"], "auto_suspended": true}'
    ;;
  ack | nack | decision | ci_status)
    record "$type" "$edit"
    return
    ;;
  esac
  jq -c "$edit" <<EOF
{"msg_id": "$type-T-2026-044-1772116327001", "protocol_version": "AMP/1.0", "type": "$type",
 "from": "$from", "to": "$to", "task_id": "T-2026-044", "timestamp": "2026-02-26T14:32:07+00:00",
 "requires_ack": $ack, "payload": $payload}
EOF
}

# Control records.
record() {
  local body
  case $1 in
  ack) body='"ref_msg_id": "task_dispatch-T-2026-044-1", "from": "executor", "ack_stage": "READ"' ;;
  nack)
    body='"ref_msg_id": "task_dispatch-T-2026-044-1", "from": "executor", "failed_stage": "READ",
      "code": "branch_violation", "message": "m", "rule": "branch", "retryable": false'
    ;;
  decision) body='"ref_msg_id": "escalation-T-2026-044-1", "decision": "resume", "operator": "ann"' ;;
  ci_status) body='"branch": "feature/x", "commit": "a3f8d21", "checks": {"ci": "passed"}' ;;
  esac
  jq -c "$2" <<EOF
{"protocol_version": "AMP/1.0", "type": "$1", "task_id": "T-2026-044",
 "timestamp": "2026-02-26T14:32:07Z", $body}
EOF
}

# accepted TYPE JQ: passes byte for byte, without a word.
accepted() {
  local line
  line=$(message "$1" "${2:-.}")
  run --separate-stderr amp-validate "${@:3}" <<<"$line"
  [ "$status" -eq 0 ] && [ "$output" = "$line" ] && [ -z "$stderr" ] || {
    echo "not accepted: $1 $2: status $status: $stderr" >&2
    return 1
  }
}

# warned TYPE JQ CODE: passes, with one warning.
warned() {
  local line code
  line=$(message "$1" "$2")
  run --separate-stderr amp-validate -e - <<<"$line"
  code=$(jq -r '.severity + " " + .code' <<<"$stderr")
  [ "$status" -eq 0 ] && [ "$output" = "$line" ] && [ "$code" = "warning $3" ] || {
    echo "not warned: $1 $2: status $status: $stderr" >&2
    return 1
  }
}

# refused TYPE JQ CODE FIELD [OPTION...]: nothing passes; the first record has code and field.
refused() {
  local line got
  line=$(message "$1" "$2")
  run --separate-stderr amp-validate -e - "${@:5}" <<<"$line"
  got=$(jq -rs '.[0] | .severity + " " + .code + " " + .field' <<<"$stderr")
  [ "$status" -eq 1 ] && [ -z "$output" ] && [ "$got" = "error $3 $4" ] || {
    echo "not refused: $1 $2: status $status: $got: $stderr" >&2
    return 1
  }
}
