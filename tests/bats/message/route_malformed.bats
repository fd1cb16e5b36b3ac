#!/usr/bin/env bats
# What is not valid is no message of anybody's to lose: its sender is told, and it is kept.

load ../lib

setup() {
  need jq
  need_tool amp-ack
  cd "$BATS_TEST_TMPDIR" || return 1
}

# lines: each with its own fault; want: what its sender is told, "-" where nobody is.
lines() {
  local m='{message_id: "00000000-0000-4000-8000-00000000000\($n)", producer_id: "cli", sequence_number: $n,
    correlation_id: "7f3f41a2-2017-4b8f-9b8b-2ad3caaee001", retry_count: 0, message_type: "DATA",
    content_type: "application/json", content_length: 2, payload: {}}'
  local e='{eventId: "e\($n)", seq: $n, kind: "message", sourceNodeId: "n", sourceAgentId: "arch", corrId: "c",
    createdAt: "2026-02-25T16:30:00.000Z", payload: {toAgents: ["b"], body: "b"}, trace: {attempt: 1}}'
  jq -nc "def m(\$n): $m; def e(\$n): $e;"'
    def b: {to: "b", msg: .};
    {to: "all", msg: m(1)}, {to: ["a", "b"], msg: m(2)}, (m(3) | del(.correlation_id) | b),
    (m(4) | .message_type = "FOO" | b), (m(5) | .content_length = 9 | b), (m(6) | .retry_count = -1 | b),
    (m(7) | del(.message_id) | b), (m(8) | del(.producer_id) | b), (m(9) | .message_type = "ACKNOWLEDGEMENT" | b),
    (e(1) | .payload.toAgents = []), (e(2) | .kind = "task_create" | del(.corrId)), (e(3) | .payload.priority = "urgent"),
    (e(4) | .kind = "signals"), (e(5) | .trace.attempt = 0), (e(6) | .kind = "ack"), (e(7) | del(.eventId)),
    ({protocol_version: "AMP/1.0", type: "task_dispatch", msg_id: "task_dispatch-T-2026-001-1", from: "coordinator"})'
  echo '{"to":"b","msg":{"message_id":'
}
told='00000000-0000-4000-8000-000000000001 VALIDATION_ERROR
00000000-0000-4000-8000-000000000002 VALIDATION_ERROR
00000000-0000-4000-8000-000000000003 VALIDATION_ERROR
00000000-0000-4000-8000-000000000004 UNSUPPORTED_MESSAGE_TYPE
00000000-0000-4000-8000-000000000005 VALIDATION_ERROR
00000000-0000-4000-8000-000000000006 VALIDATION_ERROR
e1 missing_route_fields
e2 corr_id_required
e3 bad_enum
e4 unknown_kind
e5 bad_value'

@test "what is not valid is answered, in valid messages, and kept" {
  lines >in
  run -1 --separate-stderr amp-route --state state -r '* => agents' --agent b=file:got <in
  echo "$output" >out
  [ ! -s got ]
  diff <(jq -r '(.msg // .) | .payload | "\(.ack_for_message_id // .refEventId) \(.error_code // .code)"' out) <(echo "$told") >&2
  amp-validate out >/dev/null
  [ "$(jq -r 'select(.to) | .to' out | sort -u)" = cli ]
  diff <(amp-ack dead list --json --state state | jq -r '.id' | sort) <(cut -d ' ' -f 1 <<<"$told" | sort) >&2
  [ "$(amp-ack dead list --json --state state | jq -r '.class' | sort -u)" = permanent ]
  [ "$(jq -r .line state/error.ndjson | sort -u | wc -l)" -eq 18 ]
}

@test "without a state directory the sender is notified as well, and a dry run notifies nobody" {
  lines >in
  run -1 --separate-stderr amp-route -r '* => agents' --agent b=file:got <in
  [ "${#lines[@]}" -eq 11 ]
  [[ $output != *dead[_\ -]letter* ]]
  run -1 --separate-stderr amp-route -n --state state -r '* => agents' --agent b=file:got <in
  [ -z "$output" ]
  [ -z "$(amp-ack dead list --json --state state)" ]
}

@test "a refusal names the message, and is valid, whatever protocol it was of" {
  jq -nc '{aop_version: "2.0.2-C", schema_version: "2.0.2", protocol_family: "AOP", message_type: "TASK",
    session: {session_id: ("S1", "S" * 190, "S" * 240), created_at: "2026-02-26T14:00:00Z", orchestrator: "o", origin: "CLI"},
    target: {agent_name: "Emma", role: "EXECUTOR", provider: "CODEX", model: "m"},
    task: {task_id: "TASK-1", objective: "o", category: "ANALYSIS", complexity: "LOW", environment: {workspace_root: "/srv/w"}}}' >in
  jq -nc '{protocol: "aof", version: 1, type: "handoff.request", projectId: "_inbox", taskId: "TASK-2026-02-09-060",
    fromAgent: "a", toAgent: "zed", sentAt: "2026-02-09T21:00:00.000Z", payload: {taskId: "TASK-2026-02-09-060",
    parentTaskId: "TASK-2026-02-09-057", fromAgent: "a", toAgent: "zed", dueBy: "2026-03-02T12:00:00Z",
    acceptanceCriteria: ["x"], expectedOutputs: [], contextRefs: [], constraints: []}}' >>in
  run -1 --separate-stderr amp-route --state state -r '* => agents' --agent b=file:got <in
  echo "$output" >out
  amp-validate out >/dev/null
  # The agent of a RESPONSE is what the TASK says of it.
  diff <(jq -r '"\(.error_details.error_code // .type) \(.session_id // .payload.messageId) \(.agent.model // "-")"' out) - <<END >&2
E_AGENT_NOT_FOUND S1 m
E_AGENT_NOT_FOUND $(printf 'S%.0s' {1..190}) m
E_AGENT_NOT_FOUND $(printf 'S%.0s' {1..240}) m
dispatch.no-match handoff.request/TASK-2026-02-09-060/1770670800000 -
END
}

@test "a TASK that is not valid version 2 falls back to a version 1 prompt in every tool that takes it" {
  jq -nc '{aop_version: "2.0.2-C", schema_version: "2.0.2", protocol_family: "AOP", message_type: "TASK",
    session: {session_id: "S1", created_at: "2026-02-26T14:00:00Z", orchestrator: "o", origin: "CLI"},
    target: {agent_name: "Emma", role: "EXECUTOR", provider: "CODEX", model: "m"}, novelty: 1,
    task: {task_id: "TASK-1", objective: "Count the words", category: "ANALYSIS", complexity: "LOW",
      environment: {workspace_root: "/srv/w"}}}' >in
  # Beyond a hard limit it is valid version 2: then the answer is its RESPONSE.
  jq -c 'del(.novelty) | .task.task_id = "TASK-2" | .task.inputs = [range(101) | {type: "FILE", path: "/srv/w/\(.)"}]' in >>in
  run -1 --separate-stderr amp-route -r '* => file:got' <in
  echo "$output" >route
  run -1 --separate-stderr amp-route --state state -r '* => file:got' <in
  echo "$output" >route_state
  run -1 --separate-stderr amp-ack track --state s_ack <in
  echo "$output" >ack
  run -1 --separate-stderr task-dispatch run --state s_run --as executor -x true <in
  echo "$output" >work
  run -1 --separate-stderr task-dispatch coordinate --state s_coordinate <in
  echo "$output" >coordinate
  for f in route route_state ack work coordinate; do
    amp-validate "$f" >/dev/null
    diff <(jq -r '"\(.event // .message_type) \(.session_id) \(.task_id) \(.error_details.error_code) \(.to_version)"' "$f") - <<END >&2
VERSION_FALLBACK S1 TASK-1 E_SCHEMA_VALIDATION 1.x
RESPONSE S1 TASK-2 E_CONTEXT_OVERFLOW null
END
    [[ $(jq -r 'select(.event) | .v1_prompt' "$f") == *'Count the words'* ]]
  done
  [ ! -s got ]
  # A dry run answers nothing, and an answer is not answered.
  run -1 --separate-stderr amp-route -n -r '* => file:got' <in
  [ -z "$output" ]
  jq -c 'select(.event) | .novelty = 1' route >again
  run --separate-stderr amp-route -r '* => file:again.got' <again
  [ -z "$output" ]
}
