#!/usr/bin/env bats
# amp-ack sweep: what nobody acknowledged is sent again, what cannot be sent again is kept.

load ../lib
load ../messages

setup() {
  need_tool amp-ack
  cd "$BATS_TEST_TMPDIR"
  export AMP_STATE=$PWD/state
}

# m N [JQ]: a message of SW4RM; a N STAGE [JQ]: bob's acknowledgement of it; e N [JQ]: an event.
m() {
  sw4rm "11111111-1111-4111-8111-11111111111$1" cli DATA '{}' \
    ',"timestamp":"2026-03-01T12:00:00Z","idempotency_token":"t"' "${@:2}"
}
a() {
  sw4rm 22222222-2222-4222-8222-222222222222 bob ACKNOWLEDGEMENT \
    "{\"ack_for_message_id\":\"$1\",\"ack_stage\":\"$2\"}" '' "${@:3}"
}
e() {
  edited "{\"eventId\":\"evt_$1\",\"seq\":7,\"kind\":\"task_create\",\"sourceNodeId\":\"node\",\"sourceAgentId\":\"cli\",\
\"corrId\":\"corr_1\",\"createdAt\":\"2026-03-01T12:00:00.000Z\",\"payload\":{\"taskId\":\"t\",\"title\":\"T\",\
\"toAgents\":[\"bob\"],\"requesterAgentId\":\"cli\"},\"trace\":{\"attempt\":1}}" "${2-}"
}
M=11111111-1111-4111-8111-111111111111
# at TIME…: the same day.
track() { amp-ack track --now "2026-03-01T$1Z"; }
sweep() { amp-ack sweep --now "2026-03-01T$1Z" --retries 2 --backoff 1s,2s "${@:2}"; }
letters() { amp-ack dead list --json | jq -r '"\(.code) \(.attempts)"' | paste -sd,; }
state() { amp-ack status --all --json | grep -F "\"msg_id\":\"$1\"" | sed -n 's/^[^{]*{[^{]*"state":"\([A-Z_]*\)".*/\1/p'; }

@test "SW4RM: two more attempts with growing counts, one operation; then a dead letter with the complete history" {
  m 1 | jq -c '{to: "bob", msg: .}' | sed 's/,/ ,/g' >first
  track 12:00:00 <first >/dev/null
  sweep 12:00:10 >told
  jq -e '.to == "cli" and .msg.payload.error_code == "ACK_TIMEOUT"' told
  [ -z "$(sweep 12:00:10.999)" ]
  sweep 12:00:11 >second
  # Only the id and the count are others: the rest is the same to the byte.
  id=$(jq -r .msg.message_id second)
  sed "s/$id/$M/;s/\"retry_count\":1/\"retry_count\":0/" second | cmp - first
  [[ $id =~ ^[0-9a-f]{8}-[0-9a-f]{4}-4 ]]
  amp-validate second | cmp - second
  sweep 12:00:21 >/dev/null
  [ "$(sweep 12:00:23 | jq .msg.retry_count)" -eq 2 ]
  sweep 12:00:33 >/dev/null
  [ -z "$(sweep 13:00:00)" ]
  [ "$(letters)" = "retries_exhausted 3" ]
  amp-ack dead list --json | jq -e --arg first $M --arg second "$id" '.class == "temporary" and
    .from == "cli" and .to == "bob" and [.history[].code] == ["ack_timeout", "ack_timeout", "ack_timeout"]
    and .history[0].msg_id == $first and .history[1].msg_id == $second and .history[2].msg_id == .msg_id and .history[0].at_ms == 1772366410000'
  # Each decision about the operation is in the log, with the first attempt.
  jq -r 'select(.key // "" | startswith("token.")) | "\(.event) \(.state.original[-1:])"' state/log/*.ndjson |
    paste -sd, | grep -qx "claim 1,retry 1,retry 1"
}

@test "AMP: a person hears of it when there is no further attempt, and then it is critical" {
  message task_dispatch '.ack_timeout_sec = 10' | track 12:00:00 >/dev/null
  [ -z "$(sweep 12:00:10)" ]
  sweep 12:00:11 >second
  amp-validate second | cmp - second
  jq -e '.msg_id | startswith("task_dispatch-T-2026-044-") and . != "task_dispatch-T-2026-044-1772116327001"' second
  sweep 12:00:21 >/dev/null
  sweep 12:00:23 >/dev/null
  sweep 12:00:33 >told
  jq -e '.type == "escalation" and .payload.severity == "critical" and .payload.escalation_type == "ack_timeout"
    and (.payload.description | startswith("retries_exhausted"))' told
  amp-validate told | cmp - told
  [ "$(letters)" = "retries_exhausted 3" ]
}

@test "Runtime Protocol: attempts rise in an outbox of the sweeper, under the first event's key" {
  e 1 | track 12:00:00 >/dev/null
  [ -z "$(sweep 12:00:20)" ]
  sweep 12:00:21 >second
  jq -e '.eventId != "evt_1" and .corrId == "corr_1" and .trace == {attempt: 2, idempotencyKey: "evt_1"}
    and .sourceNodeId == "amp-ack.sweep" and .sourceAgentId == "cli" and .seq == 1' second
  amp-validate second | cmp - second
  sweep 12:00:41 >/dev/null
  sweep 12:00:43 | jq -e '.trace == {attempt: 3, idempotencyKey: "evt_1"}'
  sweep 12:01:03 >told
  jq -e '.kind == "dead_letter" and .toAgentId == "cli" and .corrId == "corr_1" and .payload.code == "retries_exhausted"' told
  amp-validate told | cmp - told
  [ "$(letters)" = "retries_exhausted 3" ]
}

@test "a late acknowledgement cancels the attempt that did not leave" {
  m 1 | track 12:00:00 >/dev/null
  sweep 12:00:10 >/dev/null
  [ "$(state $M)" = RETRYING ]
  a $M READ | track 12:00:10.5 >/dev/null
  [ "$(state $M)" = READ ]
  [ -z "$(sweep 13:00:00)" ]
  [ -z "$(letters)" ]
}

@test "when the attempt is out both are tracked, and no third is made" {
  m 1 | track 12:00:00 >/dev/null
  sweep 12:00:10 >/dev/null
  second=$(sweep 12:00:11 | jq -r .message_id)
  a $M READ | track 12:00:12 >/dev/null
  [ "$(state $M) $(state "$second")" = "RETRYING SENT" ]
  amp-ack status --all --json | jq -se --arg i $M 'any(.[]; .msg_id == $i and .acks[0].late)'
  sweep 12:00:21 >/dev/null
  [ -z "$(sweep 13:00:00)" ]
  [ -z "$(letters)" ]
  # The second turns out to be done as well: the operation has one outcome.
  a $M FULFILLED '.payload.result = 1' | track 12:00:30 >/dev/null
  m 3 | track 12:00:31 | jq -e --arg i $M '.msg.payload | .status == "DUPLICATE_DETECTED" and
    .original_message_id == $i and .cached_at == "2026-03-01T12:00:30.000Z" and .cached_result == 1'
}

@test "in TIMED_OUT a late acknowledgement changes nothing, and nothing is sent again" {
  m 1 | track 12:00:00 >/dev/null
  amp-ack sweep --now 2026-03-01T12:00:10Z >/dev/null
  a $M RECEIVED | track 12:00:11 >/dev/null
  [ "$(state $M)" = TIMED_OUT ]
  [ -z "$(sweep 13:00:00)" ]
  amp-ack log --format ndjson | jq -se 'map(select(.event == "ack_received"))[0].details |
    .timed_out_at == "2026-03-01T12:00:10.000Z" and .acked_at == "2026-03-01T12:00:11.000Z"'
}

@test "without retries a timeout is reported once and kept as a dead letter, in each protocol's own words" {
  { m 1; message task_dispatch '.ack_timeout_sec = 10'; } | track 12:00:00 >/dev/null
  amp-ack sweep --now 2026-03-01T12:00:10Z >told
  jq -se 'length == 2 and any(.msg.payload.error_code == "ACK_TIMEOUT") and
    any(.type == "escalation" and .payload.severity == "warning")' told
  e 1 | track 12:00:10 >/dev/null
  amp-ack sweep --now 2026-03-01T12:00:30Z --retries 0 |
    jq -se 'length == 1 and .[0].kind == "dead_letter" and .[0].payload.code == "retries_exhausted"'
  [ -z "$(amp-ack sweep --now 2026-03-01T13:00:00Z)" ]
  [ "$(letters)" = "retries_exhausted 1,retries_exhausted 1,retries_exhausted 1" ]
  amp-ack dead list --json | jq -se 'all(.failure_class == "retries_exhausted" and .class == "temporary" and
    [.history[] | [.code, .msg_id]] == [["ack_timeout", .msg_id]] and .routing.by == "amp-ack.sweep")'
}

# closed: ids and states of the letters, those that are closed too.
closed() { amp-ack dead list --json --all | jq -r .state | sort | paste -sd' '; }

@test "who answers after all has his letter withdrawn: the message stays TIMED_OUT, nothing is sent again" {
  { m 1; message task_dispatch '.ack_timeout_sec = 10'; } | track 12:00:00 >/dev/null
  amp-ack sweep --now 2026-03-01T12:00:10Z >/dev/null
  a $M REJECTED '.payload.error_code = "VALIDATION_ERROR"' | track 12:00:11 >/dev/null
  [ "$(closed)" = "DEAD DEAD" ] # a refusal brings nothing through
  { a $M RECEIVED; record ack '.ref_msg_id = "task_dispatch-T-2026-044-1772116327001"'; } | track 12:00:12 >/dev/null
  [ "$(closed)" = "WITHDRAWN WITHDRAWN" ]
  [ "$(state $M)" = TIMED_OUT ]
  [ -z "$(letters)" ]
  run -1 --separate-stderr amp-ack dead requeue $M
  [[ -z $output && $stderr == *"withdrawn"* ]]
  # Only the work that was read, late, is watched still.
  amp-ack sweep --now 2026-03-01T13:00:00Z |
    jq -se 'length == 1 and .[0].payload.escalation_type == "heartbeat_timeout"'
  [ "$(closed)" = "WITHDRAWN WITHDRAWN" ]
  # Nothing is due of it any more.
  amp-ack status --all --json | jq -se 'all(.due == null)'
  # The outcome counts for who sends the operation again.
  a $M FULFILLED '.payload.result = 7' | track 13:00:01 >/dev/null
  m 2 | track 13:00:02 | jq -e '.msg.payload | .status == "DUPLICATE_DETECTED" and .cached_result == 7'
}

@test "an attempt that comes through takes the letters of the others with it" {
  m 1 | track 12:00:00 >/dev/null
  sweep 12:00:10 >/dev/null
  sweep 12:00:11 >/dev/null
  sweep 12:00:21 >/dev/null
  third=$(sweep 12:00:23 | jq -r .message_id)
  sweep 12:00:33 >/dev/null
  [ "$(letters)" = "retries_exhausted 3" ]
  a $M FULFILLED | track 12:00:40 >/dev/null # the first of the three
  [ "$(state "$third") $(closed)" = "TIMED_OUT WITHDRAWN" ]
  [ -z "$(sweep 13:00:00)" ]
  # The producer's own new attempt does so too.
  { m 4 '.idempotency_token = "u"'; } | track 12:00:00 >/dev/null
  amp-ack sweep --now 2026-03-01T12:00:10Z >/dev/null
  { m 5 '.idempotency_token = "u"'; a ${M%1}5 READ; a ${M%1}5 FULFILLED; } | track 12:00:11 >/dev/null
  [ "$(state ${M%1}5) $(closed)" = "FULFILLED WITHDRAWN WITHDRAWN" ]
  [ -z "$(sweep 13:00:00)" ]
}

@test "a letter that an answer came too early for, or a crash left open, is closed by the next sweep" {
  m 1 | track 12:00:00 >/dev/null
  amp-ack sweep --now 2026-03-01T12:00:10Z >/dev/null
  jq -c 'select(.key // "" | startswith("dead."))' state/log/*.ndjson >frame
  a $M FULFILLED | track 12:00:11 >/dev/null
  # Only the frames up to the acknowledgement: the letter's own frame is cut.
  n=$(jq -r 'select(.event == "withdraw").n' state/log/*.ndjson)
  sed -i "/\"n\":$n,/,\$d" state/log/000001.ndjson
  rm -f state/index*
  amp-ack repair >/dev/null 2>&1
  [ "$(closed)" = DEAD ]
  [ -z "$(amp-ack sweep --now 2026-03-01T12:00:12Z)" ]
  [ "$(closed)" = WITHDRAWN ]
}

@test "past its time to live a message is answered and kept, before it is passed or after" {
  m 1 '.ttl_ms = 5000' | track 12:00:00 >/dev/null
  [ -z "$(sweep 12:00:04.999)" ]
  sweep 12:00:05 >told
  jq -e --arg i $M '.to == "cli" and (.msg.payload | .ack_for_message_id == $i and .ack_stage == "FAILED"
    and .error_code == "TTL_EXPIRED")' told
  [ "$(state $M)" = FAILED ]
  run -1 --separate-stderr amp-ack track --now 2026-03-01T12:00:05Z < <(m 2 '.ttl_ms = 5000 | .idempotency_token = "u"')
  jq -e '.msg.payload.error_code == "TTL_EXPIRED"' <<<"$output"
  [ "$(letters)" = "ttl_expired 1,ttl_expired 1" ]
  # One that arrived in time does not expire.
  { m 4 '.ttl_ms = 5000 | .idempotency_token = "v"' && a ${M%1}4 READ; } | track 12:00:01 >/dev/null
  [ -z "$(sweep 12:00:06)" ]
  e 1 '.expiresAt = "2026-03-01T12:00:03.000Z"' | track 12:00:00 >/dev/null
  sweep 12:00:03 | jq -e '.kind == "ack" and .payload.ackType == "failed_terminal" and .payload.code == "ttl_expired"'
}

@test "no attempt leaves that would expire before" {
  m 1 '.ttl_ms = 10500' | track 12:00:00 >/dev/null
  sweep 12:00:10 >/dev/null
  [ "$(letters)" = "ttl_expired 1" ]
  [ -z "$(sweep 13:00:00)" ]
}

@test "a refusal that may pass is tried again, another one is a dead letter, a duplicate is neither" {
  { m 1; a $M REJECTED '.payload.error_code = "BUFFER_FULL"'; } | track 12:00:00 >/dev/null
  [ -z "$(sweep 12:00:00)" ]
  sweep 12:00:01 | jq -e '.retry_count == 1'
  { m 2 '.idempotency_token = "u"'; a ${M%1}2 FAILED '.payload.error_code = "VALIDATION_ERROR"'; } |
    track 12:00:00 >/dev/null
  [ -z "$(sweep 12:00:01)" ]
  [ "$(letters)" = "VALIDATION_ERROR 1" ]
  [ "$(state ${M%1}2)" = FAILED ]
  { m 3 '.idempotency_token = "v"'; a ${M%1}3 REJECTED '.payload.error_code = "ALREADY_IN_PROGRESS"'; } |
    track 12:00:00 >/dev/null
  [ -z "$(sweep 12:00:05)" ]
  { message task_dispatch; record nack '.ref_msg_id = "task_dispatch-T-2026-044-1772116327001" | .retryable = true'; } |
    track 12:00:00 >/dev/null
  sweep 12:00:00 >/dev/null
  [ "$(sweep 12:00:01 | jq -r .type)" = task_dispatch ]
  [ "$(letters)" = "VALIDATION_ERROR 1" ]
}

@test "a failure at work that may pass is tried again, though the work was taken up" {
  { m 1; a $M READ; a $M FAILED '.payload.error_code = "TOOL_TIMEOUT"'; } | track 12:00:00 >/dev/null
  sweep 12:00:00 >/dev/null
  sweep 12:00:01 | jq -e '.retry_count == 1 and .idempotency_token == "t"'
}

@test "a tool is called twice only where its descriptor says that it may be" {
  call() { m "$1" '.message_type = "TOOL_CALL" | .idempotency_token = "t'"$1"'" | .payload = {call_id: "c'"$1"'", tool_name: "write_file",
    provider_id: "fs", args: {}, content_type: "application/json", execution_policy: {timeout_ms: 5000}, stream: false}'; }
  call 1 | track 12:00:00 >/dev/null
  sweep 12:00:10 >/dev/null
  [ "$(letters)" = "not_idempotent 1" ]
  call 2 | track 12:00:00 >/dev/null
  sweep 12:00:10 --idempotent-tool write_file >/dev/null
  [ "$(sweep 12:00:11 | jq -r .payload.call_id)" = c2 ]
}

@test "a tool call that allows no retry, or one, is not repeated more often" {
  for n in 1 2; do
    m $n '.message_type = "TOOL_CALL" | .idempotency_token = "t'$n'" | .payload = {call_id: "c'$n'", tool_name: "w", provider_id: "fs",
      args: {}, content_type: "application/json", execution_policy: {timeout_ms: 5000, retries: '$((n - 1))'}}'
  done | track 12:00:00 >/dev/null
  for s in 10 11 22 23 34; do sweep 12:00:$s --idempotent-tool w; done | jq -r 'select(.payload.call_id).payload.call_id' >again
  [ "$(cat again)" = c2 ]
  [ "$(letters)" = "retries_exhausted 1,retries_exhausted 2" ]
}

@test "what is refused for good is kept as a dead letter, also where nothing is sent again" {
  { m 1; a $M REJECTED '.payload.error_code = "PERMISSION_DENIED"'; } | track 12:00:00 >/dev/null
  { m 2 '.idempotency_token = "u"'; a ${M%1}2 REJECTED '.payload.error_code = "BUFFER_FULL"'; } | track 12:00:00 >/dev/null
  [ -z "$(amp-ack sweep --now 2026-03-01T12:00:00Z)" ]
  [ "$(letters)" = "PERMISSION_DENIED 1,retries_exhausted 1" ]
  amp-ack dead list --json | jq -se 'map([.failure_class, .class, .history[0].code]) ==
    [["terminal_error", "permanent", "PERMISSION_DENIED"], ["retries_exhausted", "temporary", "BUFFER_FULL"]]'
}

@test "an event of the Runtime Protocol has five attempts by default" {
  e 1 | track 12:00:00 >/dev/null
  for m in 01 10 20 30 40 50; do
    amp-ack sweep --now "2026-03-01T12:$m:00Z" --backoff 1s,1s
    amp-ack sweep --now "2026-03-01T12:$m:59Z" --backoff 1s,1s
  done | jq -r 'select(.kind == "task_create").trace.attempt' >attempts
  [ "$(paste -sd' ' attempts)" = "2 3 4 5" ]
  [ "$(letters)" = "retries_exhausted 5" ]
}

@test "the producer's own attempt that is at work takes the place of ours" {
  m 1 | track 12:00:00 >/dev/null
  sweep 12:00:10 >/dev/null
  { m 2; a ${M%1}2 READ; } | track 12:00:10.5 >passed
  [ "$(wc -l <passed)" -eq 2 ]
  [ -z "$(sweep 12:00:11)" ]
  [ -z "$(letters)" ]
}

@test "many sweepers at once send each attempt once" {
  for i in $(seq 100 129); do m 0 '.message_id = "11111111-1111-4111-8111-111111111'"$i"'" | .idempotency_token = "'"$i"'"'; done |
    track 12:00:00 >/dev/null
  sweep 12:00:10 >/dev/null
  for i in 1 2 3 4; do sweep 12:00:11 >"out$i" & done
  wait
  [ "$(cat out? | jq -r .idempotency_token | sort -u | wc -l)" -eq 30 ]
  [ "$(cat out? | wc -l)" -eq 30 ]
}

@test "budgets and waits by protocol, from options and from amp.json" {
  echo '{"retry": {"budget": ["sw4rm=1"], "backoff": ["1s"]}}' >amp.json
  m 1 | track 12:00:00 >/dev/null
  message task_dispatch '.ack_timeout_sec = 10' | track 12:00:00 >/dev/null
  amp-ack sweep --config amp.json --now 2026-03-01T12:00:10Z >told
  [ "$(jq -r '.type // "nack"' told | sort | paste -sd' ')" = "escalation nack" ]
  amp-ack sweep --config amp.json --now 2026-03-01T12:00:11Z | jq -e '.retry_count == 1'
  run -64 amp-ack sweep --retries many
  run -64 amp-ack sweep --retries smtp=1
  run -64 amp-ack sweep --backoff 5s..1s
}

@test "between waits that are not listed lies a draw: never later than the bound" {
  m 1 | track 12:00:00 >/dev/null
  amp-ack sweep --retries 1 --backoff 4s..4s --now 2026-03-01T12:00:10Z >/dev/null
  amp-ack status --open --json | jq -e '.due >= "2026-03-01T12:00:10" and .due <= "2026-03-01T12:00:14.000Z"'
  [ "$(amp-ack sweep --retries 1 --now 2026-03-01T12:00:14Z | wc -l)" -eq 1 ]
}

@test "what the router found expired has one letter, with one entry, and one answer" {
  need_tool amp-route
  m 1 '.ttl_ms = 5000' | jq -c '{to: "bob", msg: .}' | amp-route -r '* => inbox:bob' >told || [ $? -eq 1 ]
  [ "$(jq -r .msg.payload.error_code told)" = TTL_EXPIRED ]
  [ "$(state $M)" = FAILED ]
  [ -z "$(amp-ack sweep --now 2100-01-01T00:00:00Z)" ]
  amp-ack dead list --json | jq -e '.code == "ttl_expired" and .attempts == 1 and (.history | length) == 1'
}

@test "a tool is called again where every provider's descriptor in the directory says idempotent, and no longer where one does not" {
  need_tool agent-registry
  tool() {
    jq -nc --argjson i "$1" '{tool_name: "write_file", description: "d", idempotent: $i, input_schema: {type: "object"},
      output_schema: {type: "object"}}' >tool
    agent-registry register "$2" --connector x:y --tool tool >/dev/null
  }
  call() { m "$1" '.message_type = "TOOL_CALL" | .idempotency_token = "t'"$1"'" | .payload = {call_id: "c'"$1"'", tool_name: "write_file",
    provider_id: "fs", args: {}, content_type: "application/json", execution_policy: {timeout_ms: 5000}, stream: false}'; }
  tool true fs
  call 1 | track 12:00:00 >/dev/null
  sweep 12:00:10 >/dev/null
  [ "$(sweep 12:00:11 | jq -r 'select(.payload.call_id).retry_count')" = 1 ]
  tool false other
  call 2 | track 12:00:20 >/dev/null
  sweep 12:00:30 >/dev/null
  amp-ack dead list --json --code not_idempotent | jq -se --arg i ${M%1}2 'any(.id == $i)'
}

@test "Runtime Protocol: no attempt after deadlineAt; the requester gets failed_terminal, with the policies' versions" {
  local terminal='.kind == "ack" and .toAgentId == "cli" and .corrId == "corr_1" and .payload.ackType == "failed_terminal"'
  local versions='{attempt: 1, routingPolicyVersion: "rpv_1", capabilityPolicyVersion: "cpv_1"}'
  routed() { e "$1" ".payload.deadlineAt = \"2026-03-01T12:00:$2.000Z\" | .trace += {routingPolicyVersion: \"rpv_1\", capabilityPolicyVersion: \"cpv_1\"}"; }
  # The second attempt ends with the deadline.
  routed 1 45 | track 12:00:00 >/dev/null
  sweep 12:00:20 >told
  sweep 12:00:21 | jq -e '.trace.attempt == 2'
  sweep 12:00:45 | jq -e "(.msg // .) | $terminal and .payload.code == \"ttl_expired\" and .trace == $versions"
  [ -z "$(sweep 12:10:00)" ]
  [ "$(letters)" = "ttl_expired 2" ]
  # The next one would leave behind it.
  routed 2 20 | jq -c '.payload.taskId = "u" | .payload.deadlineAt = "2026-03-01T12:00:20.500Z"' | track 12:00:00 >/dev/null
  amp-ack sweep --now 2026-03-01T12:00:20Z --retries 2 --backoff 1s,2s |
    jq -e "(.msg // .) | $terminal and .payload.code == \"ttl_expired\" and .trace == $versions"
  [ -z "$(sweep 12:10:00)" ]
  # One that is late already is not tracked; a router leaves the refusal to its executor.
  routed 3 20 | jq -c '.payload.taskId = "v"' >late
  run -1 --separate-stderr track 12:00:21 <late
  jq -e "(.msg // .) | $terminal and .trace == $versions" <<<"$output"
  amp-route --state other -r '* => stdout' <late | jq -e '.kind == "task_create"'
  # An attempt that was decided before, and whose time passed while no tool ran, is not sent.
  routed 4 45 | jq -c '.payload.taskId = "w"' | track 12:00:00 >/dev/null
  sweep 12:00:20 >told
  sweep 12:01:00 | jq -e "(.msg // .) | $terminal"
}

# read_of ID: bob's READ of this attempt.
read_of() {
  jq -nc --arg id "$1" '{message_id: "22222222-2222-4222-8222-222222222222", producer_id: "bob", correlation_id:
    "7f3f41a2-2017-4b8f-9b8b-2ad3caaee001", sequence_number: 1, retry_count: 0, message_type: "ACKNOWLEDGEMENT",
    content_type: "application/json", payload: {ack_for_message_id: $id, ack_stage: "READ"}} |
    .content_length = (.payload | tojson | length)'
}
# open_attempts: the ids of the attempts in the log, the oldest first.
open_attempts() { amp-ack log | jq -r 'select(.kind == "token" and .event == "retry") | .id'; }

@test "an attempt that a sweep could not write does not leave after its operation was READ" {
  local state first=11111111-1111-4111-8001-000000000000 i
  at() { date -u -d "@$((1772366400 + 12 * $1))" +%Y-%m-%dT%H:%M:%SZ; }
  again() { amp-ack sweep --retries 3 --backoff 1s --now "$(at "$1")"; }
  for state in first second third; do
    export AMP_STATE=$PWD/$state
    jq -nc --arg id $first '{message_id: $id, producer_id: "cli", correlation_id: "7f3f41a2-2017-4b8f-9b8b-2ad3caaee001",
      sequence_number: 1, retry_count: 0, message_type: "DATA", content_type: "application/json", content_length: 2,
      payload: {}, idempotency_token: "cli:x:1"}' | amp-ack track --now "$(at 0)" >/dev/null
    for i in 1 2 3 4; do ends 74 again $i 2>/dev/null >/dev/full; done
    # The second attempt and the third wait.
    [ "$(open_attempts | wc -l)" -eq 2 ]
    case $state in
    first) read_of $first ;;
    second) read_of "$(open_attempts | sed -n 1p)" ;;
    third) read_of "$(open_attempts | sed -n 2p)" ;;
    esac | amp-ack track --now "$(at 4)" >/dev/null
    again 4 >out
    grep -c '"message_type":"ACKNOWLEDGEMENT"' out
    run -1 grep '"message_type":"DATA"' out
    # Nothing is left of it.
    [ -z "$(again 4)" ]
  done
}
