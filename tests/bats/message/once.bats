#!/usr/bin/env bats
# amp-ack track: an operation of SW4RM passes once; who sends it again is answered.

load ../lib

setup() {
  need_tool amp-ack
  cd "$BATS_TEST_TMPDIR"
  export AMP_STATE=$PWD/state
}

# m N TOKEN [JQ]: attempt N; a N STAGE BY [JQ]: its acknowledgement.
m() {
  jq -nc --arg n "$1" --arg t "$2" '{message_id: "11111111-1111-4111-8111-11111111111\($n)",
    producer_id: "cli", correlation_id: "7f3f41a2-2017-4b8f-9b8b-2ad3caaee001", sequence_number: 1,
    retry_count: 0, message_type: "DATA", content_type: "application/json", content_length: 2,
    payload: {}, idempotency_token: $t}'" | ${3:-.}"
}
a() {
  jq -nc --arg n "$1" --arg s "$2" --arg by "$3" '{
    message_id: "22222222-2222-4222-8222-222222222222", producer_id: $by,
    correlation_id: "7f3f41a2-2017-4b8f-9b8b-2ad3caaee001", sequence_number: 1, retry_count: 0,
    message_type: "ACKNOWLEDGEMENT", content_type: "application/json",
    payload: {ack_for_message_id: "11111111-1111-4111-8111-11111111111\($n)", ack_stage: $s}}
    '" | ${4:-.} "'| .content_length = (.payload | tojson | length)'
}
# what: of each line of the output, its kind in a word.
what() {
  jq -r '.msg.payload.status // .msg.payload.error_code // .payload.ack_stage // "passed"' | paste -sd' '
}

@test "in one stream: passed, in progress, a stranger's word, done" {
  {
    m 1 a:b:c
    m 2 a:b:c
    a 1 READ bob
    a 1 FULFILLED eve '.payload.result = {poison: true}'
    a 1 FULFILLED bob '.payload.result = {ticket: 7}'
    m 3 a:b:c
    m 1 a:b:c
    m 4 a:b:d
    m 5 a:b:c '.producer_id = "ann"'
  } >in
  run -1 --separate-stderr amp-ack <in
  echo "$output" >out
  [ "$(what <out)" = "passed ALREADY_IN_PROGRESS READ FULFILLED DUPLICATE_DETECTED DUPLICATE_DETECTED passed passed" ]
  [[ $stderr == *"permission_denied: bob holds the work, not eve"* ]]
  jq -se '.[4] | .to == "cli" and .msg.correlation_id == "7f3f41a2-2017-4b8f-9b8b-2ad3caaee001"
    and (.msg.payload | .original_message_id[-1:] == "1" and .original_status == "FULFILLED"
      and .ack_for_message_id[-1:] == "3" and .cached_result.ticket == 7 and (.cached_at | endswith("Z")))' out
  # What passed is as it came, and the answers are valid messages.
  head -n 1 out | cmp - <(head -n 1 in)
  amp-validate --strict out | cmp - out
  # Each decision is in the log, with the first attempt.
  jq -r 'select(.key // "" | startswith("token.")) | [.event, .state.last.id[-1:], .state.original[-1:]] | join(" ")' \
    state/log/*.ndjson | paste -sd, >log
  [ "$(cat log)" = "claim 1 1,already_in_progress 2 1,duplicate_detected 3 1,duplicate_detected 1 1,claim 4 4,claim 5 5" ]
}

@test "outcomes are known to the next process, for as long as the window says" {
  end=2026-03-01T12:00:00Z
  { m 1 t && a 1 READ bob && a 1 FAILED bob '.payload.error_code = "TOOL_TIMEOUT"'; } |
    amp-ack --now $end >/dev/null
  m 2 t | amp-ack --now 2026-03-01T12:59:59Z >out
  jq -e '.msg.payload | .status == "DUPLICATE_DETECTED" and .original_status == "FAILED"
    and .error_code == "TOOL_TIMEOUT" and .cached_at == "2026-03-01T12:00:00.000Z"' out
  m 3 t | amp-ack --now 2026-03-01T12:59:59Z --window 1m | cmp - <(m 3 t)
  run -64 amp-ack --now yesterday </dev/null
}

@test "two at once: one passes" {
  for i in 1 2 3 4 5 6 7 8; do m $i same | amp-ack >out.$i & done
  wait
  [ "$(cat out.* | what | tr ' ' '\n' | sort | uniq -c | awk '{ print $1 $2 }' | paste -sd' ')" = \
    "7ALREADY_IN_PROGRESS 1passed" ]
}

@test "without a token the producer's sequence number counts" {
  for i in 1 2 3; do m $i x "del(.idempotency_token) | .sequence_number = $((i / 2))"; done | amp-ack >out
  [ "$(what <out)" = "passed passed ALREADY_IN_PROGRESS" ]
}

@test "answers find their way back" {
  need_tool amp-route
  { m 1 t && m 2 t; } | jq -c '{to: "bob", msg: .}' | amp-ack |
    amp-route --state state -r 'to=bob => file:bob' -r 'to=cli => file:cli' >back
  [ ! -s back ]
  [ "$(wc -l <bob)" -eq 1 ] && [ "$(wc -l <cli)" -eq 1 ]
  jq -e '(.msg // .).payload.error_code == "ALREADY_IN_PROGRESS"' cli
}

@test "SW4RM waits ten seconds for RECEIVED; then the producer is notified, once, and may send again" {
  { m 1 t && m 2 u '.message_type = "HEARTBEAT" | .payload = {state: "RUNNING"} |
      .content_length = (.payload | tojson | length)'; } | amp-ack --now 2026-03-01T12:00:00Z >/dev/null
  run -0 amp-ack sweep --now 2026-03-01T12:00:09Z
  [ -z "$output" ]
  run -0 amp-ack sweep --now 2026-03-01T12:00:10Z
  [ "${#lines[@]}" -eq 1 ]
  jq -e '.to == "cli" and .msg.correlation_id == "7f3f41a2-2017-4b8f-9b8b-2ad3caaee001" and (.msg.payload |
    .ack_for_message_id[-1:] == "1" and .ack_stage == "TIMED_OUT" and .error_code == "ACK_TIMEOUT")' <<<"$output"
  amp-validate --strict <<<"$output" | cmp - <(echo "$output")
  run -0 amp-ack sweep --now 2026-03-01T12:10:00Z
  [ -z "$output" ]
  # Nobody took it up: the next attempt passes. Then the first one turns out to be done.
  m 3 t | amp-ack --now 2026-03-01T12:00:11Z | cmp - <(m 3 t)
  a 1 FULFILLED bob | amp-ack --now 2026-03-01T12:00:12Z >/dev/null
  m 4 t | amp-ack --now 2026-03-01T12:00:13Z | jq -e '.msg.payload |
    .original_message_id[-1:] == "1" and .original_status == "FULFILLED" and .cached_at == "2026-03-01T12:00:12.000Z"'
  # Late, it did not change the first attempt.
  amp-ack status --all --json | jq -se 'any(.[]; .msg_id[-1:] == "1" and .state == "TIMED_OUT")'
}

@test "an admitted message of SW4RM does not time out" {
  { m 1 t && a 1 RECEIVED bob; } | amp-ack --now 2026-03-01T12:00:00Z >/dev/null
  run -0 amp-ack sweep --now 2026-03-01T13:00:00Z
  [ -z "$output" ]
}

@test "an event of the Runtime Protocol waits twenty seconds to be accepted" {
  event() {
    jq -nc --arg n "$1" --arg k "$2" --argjson p "$3" '{eventId: "evt_\($n)", seq: ($n | tonumber), kind: $k,
      sourceNodeId: "n", sourceAgentId: "ann", toAgentId: "bob", corrId: "corr_1",
      createdAt: "2026-03-01T12:00:00.000Z", payload: $p, trace: {attempt: 1}}'
  }
  hello='{"toAgents": ["bob"], "subject": "s", "body": "b", "priority": "normal", "expectsReply": false}'
  accepted='{"refEventId": "evt_1", "refKind": "message", "ackType": "accepted", "ackedByNodeId": "n",
    "ackedByAgentId": "bob", "ackedAt": "2026-03-01T12:00:01.000Z"}'
  { event 1 message "$hello" && event 2 message "$hello" && event 3 ack "$accepted"; } >in
  amp-ack --now 2026-03-01T12:00:00Z <in | cmp - in
  run -0 amp-ack sweep --now 2026-03-01T12:00:19Z
  [ -z "$output" ]
  run -0 amp-ack sweep --now 2026-03-01T12:00:20Z --retries 0
  jq -e '.kind == "dead_letter" and .payload.refEventId == "evt_2"' <<<"$output"
}

@test "the router alone: an operation is routed once, also by the next router" {
  need_tool amp-route
  route() { amp-route --state state -r 'type=ACKNOWLEDGEMENT => file:acks' -r '* => file:bob' "$@"; }
  { m 1 t; m 2 t; m 1 t; } | route >told
  [ "$(what <bob)" = "passed passed" ] # the same message again is a redelivery
  jq -e '.to == "cli" and .msg.producer_id == "amp-route" and (.msg.payload | .error_code == "ALREADY_IN_PROGRESS"
    and .ack_for_message_id[-1:] == "2")' told
  amp-validate --strict told | cmp - told
  { a 1 READ bob; a 1 FULFILLED eve '.payload.result = 1'; a 1 FULFILLED bob '.payload.result = 2'; } >in
  run -1 --separate-stderr route <in
  [[ $stderr == *permission_denied* ]]
  [ "$(wc -l <acks)" -eq 2 ] # a stranger's word goes nowhere
  [ "$(jq -r .code state/error.ndjson | grep -c permission_denied)" -eq 1 ]
  m 3 t | route | jq -e '.msg.payload | .status == "DUPLICATE_DETECTED" and .cached_result == 2'
  m 4 t | route --window 1ms | cmp - /dev/null
  [ "$(wc -l <bob)" -eq 3 ]
}

@test "behind a tracker of the same state the router decides nothing again" {
  need_tool amp-route
  { m 1 t; m 2 t; } | amp-ack | amp-route --state state -r 'type=ACKNOWLEDGEMENT => file:acks' -r '* => file:bob' >told
  [ ! -s told ] && [ "$(wc -l <bob)" -eq 1 ] && [ "$(wc -l <acks)" -eq 1 ]
  jq -r 'select(.key // "" | startswith("token.")) | .event' state/log/*.ndjson | paste -sd, | grep -qx claim,already_in_progress
}

@test "what nobody acknowledged by its deadline may be sent again before a sweep says so" {
  m 1 t | amp-ack --now 2026-03-01T12:00:00Z >/dev/null
  m 2 t | amp-ack --now 2026-03-01T12:00:09Z | jq -e '.msg.payload.error_code == "ALREADY_IN_PROGRESS"'
  m 3 t | amp-ack --now 2026-03-01T12:00:10Z | cmp - <(m 3 t)
}
