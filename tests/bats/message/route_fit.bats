#!/usr/bin/env bats
# What amp-route does not hand over: messages whose time has passed, and content that the recipient
# has not said it takes.

load ../lib
load ../messages

setup() {
  need_tool amp-route agent-registry
  cd "$BATS_TEST_TMPDIR"
}

teardown() {
  # Only what this test started.
  for p in $(jobs -p); do kill "$p" 2>/dev/null || :; done
}

# sw4rm [JQ]: a message that lives for a minute from now on.
sw4rm() {
  jq -nc --arg now "$(date -u +%FT%T.%3NZ)" '{message_id: "5a1d9c8e-6b3f-4a87-8f5e-91a2c0ab1234",
    producer_id: "ann", correlation_id: "7f3f41a2-2017-4b8f-9b8b-2ad3caaee001", sequence_number: 1,
    retry_count: 0, message_type: "DATA", content_type: "application/json", content_length: 2,
    timestamp: $now, ttl_ms: 60000, payload: {}}' | jq -c "${1:-.}"
}

@test "a message whose time has passed is answered, not handed over" {
  { sw4rm '.timestamp = "2026-02-25T16:00:00Z"'
    sw4rm '.message_id = "6a1d9c8e-6b3f-4a87-8f5e-91a2c0ab1234"'
    jq -nc '{eventId: "evt_1", seq: 1, kind: "message", sourceNodeId: "n", sourceAgentId: "a",
      corrId: "c", createdAt: "2026-02-25T16:00:00Z", expiresAt: "2026-02-25T17:00:00Z",
      payload: {toAgents: ["b"], body: "b"}, trace: {attempt: 1}}'; } >in
  run -1 --separate-stderr amp-route -r '* => file:out' <in
  jq -r .message_id out | diff - <(echo 6a1d9c8e-6b3f-4a87-8f5e-91a2c0ab1234)
  [ "$(jq -r '.payload.code // .msg.payload.error_code' <<<"$output" | sort | paste -sd' ')" = "TTL_EXPIRED expired" ]
  # What expired failed; it was not refused.
  [ "$(jq -r '.msg.payload.ack_stage // empty' <<<"$output")" = FAILED ]
}

@test "a message whose time passes while it waits" {
  mkfifo a
  exec 8<>a
  { for i in 1 2 3; do sw4rm ".message_id = \"${i}a1d9c8e-6b3f-4a87-8f5e-91a2c0ab1234\" $([ $i = 1 ] || echo "| .ttl_ms = 1500")"; done; } >in
  amp-route --inbound 4 -r '* => fifo:a' <in >answers &
  route=$!
  # One lies in the pipe, the others wait for it to be read.
  wait_until 30 has_lines answers 2
  timeout 60 head -n 1 <&8 | jq -r .message_id | diff - <(echo 1a1d9c8e-6b3f-4a87-8f5e-91a2c0ab1234)
  status=0
  wait $route || status=$?
  exec 8<&-
  [ $status -eq 1 ]
  [ "$(jq -r '.msg.payload | .error_code + " " + .ack_for_message_id[:2]' answers | paste -sd' ')" = \
    "TTL_EXPIRED 2a TTL_EXPIRED 3a" ]
}

@test "an agent gets only what its registration says that it takes" {
  export AMP_STATE=$PWD/state
  agent-registry register bob --connector x:y --modality 'text/*' --modality application/json >/dev/null
  agent-registry register cat --connector x:y --modality image/png >/dev/null
  { for to in bob cat; do
      sw4rm "{to: \"$to\", msg: .}"
      sw4rm "{to: \"$to\", msg: (.content_type = \"Text/Plain; charset=utf-8\" | .payload = \"hi\")}"
    done; } | jq -c '.msg.message_id |= "\(input_line_number)" + .[1:] | .msg.sequence_number = input_line_number' >in
  run -1 --separate-stderr amp-route --agent bob=file:bob --agent cat=file:cat -r '* => agents' <in
  [ "$(wc -l <bob)" -eq 2 ]
  [ ! -s cat ]
  [ "$(jq -r .msg.payload.error_code <<<"$output" | sort -u)" = UNSUPPORTED_MESSAGE_TYPE ]
  [ "$(wc -l <<<"$output")" -eq 2 ]
  [ "$(amp-ack dead list --json | jq -r .code | sort -u)" = unsupported_message_type ]
}
