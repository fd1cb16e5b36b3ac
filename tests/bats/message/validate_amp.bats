# AMP/1.0: what a run says as a whole. Rule by rule: protocol_rules.bats.

load ../lib
load ../messages

setup() {
  need jq
}

@test "every message type and every control record passes" {
  local t
  for t in task_dispatch task_result review_request review_verdict escalation ack nack decision ci_status; do
    accepted "$t"
  done
}

@test "another protocol version is refused before all else" {
  refused task_dispatch '.protocol_version = "AMP/2.0"' version_incompatible protocol_version
  refused task_dispatch '.protocol_version = "AMP/2.0" | .new_field = 1 | del(.payload)' \
    version_incompatible protocol_version
  [ "$(jq -s length <<<"$stderr")" -eq 1 ]
}

@test "--strict turns warnings into refusals" {
  refused task_dispatch '.requires_ack = false' ack_timeout_ignored ack_timeout_sec --strict
  refused review_request '.payload.reject_count = 2' lock_note_missing payload.coordinator_notes \
    --strict
}

@test "several faults are all reported, once each" {
  run --separate-stderr amp-validate -e - <<<"$(message task_dispatch \
    '.from = "robot" | .extra = 1 | .payload.branch = "main" | del(.payload.repo)')"
  [ "$status" -eq 1 ]
  [ "$(jq -rs 'map(.code) | sort | join(" ")' <<<"$stderr")" = \
    "bad_enum branch_violation missing_field unknown_field" ]
}
