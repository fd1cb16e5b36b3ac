#!/usr/bin/env bats
# amp-ack: answers in the protocol of the message, and what an answer may claim.
# plain: ack.bats, replies.bats and signed_answers.bats answer by the same code

load ../lib
load ../messages
load ../events

setup() {
  need_tool amp-ack
  cd "$BATS_TEST_TMPDIR"
  export AMP_STATE=$PWD/state
  echo 0 >n
}

# m N [JQ]: a message of SW4RM.
m() { sw4rm "11111111-1111-4111-8111-11111111111$1" cli DATA '{}' ",\"idempotency_token\":\"cli:x:$1\"" "${@:2}"; }
create() { ev task_create '{"taskId":"t","title":"T","toAgents":["exec"],"requesterAgentId":"cli"}' ".sourceAgentId = \"cli\" | ${1:-.}"; }
processed() { ev ack '{"refEventId":"evt_1","ackType":"processed","ackedByAgentId":"exec","ackedAt":"2026-02-25T16:31:00Z"}'; }
state() { amp-ack status --all --json | grep -F "\"msg_id\":\"$1\"" | sed -n 's/^[^{]*{[^{]*"state":"\([A-Z_]*\)".*/\1/p'; }
track() { amp-ack track --now "2026-03-01T$1Z"; }
sweep() { amp-ack sweep --now "2026-03-01T$1Z" "${@:2}"; }

@test "SW4RM: every stage, addressed to the producer, in its conversation" {
  m 1 | jq -c '{to: "bob", msg: .}' >in
  for s in RECEIVED READ FULFILLED; do
    amp-ack send --stage $s --note hello <in >out
    amp-validate out | cmp - out
    jq -e --arg s $s '.to == "cli" and .msg.producer_id == "bob" and .msg.message_type == "ACKNOWLEDGEMENT"
      and .msg.correlation_id == "7f3f41a2-2017-4b8f-9b8b-2ad3caaee001" and (.msg.payload | .ack_stage == $s
      and .note == "hello" and .ack_for_message_id[-1:] == "1" and (has("error_code") | not))' out
  done
  [ "$(state 11111111-1111-4111-8111-111111111111)" = FULFILLED ]
  m 2 | jq -c '{to: "bob", msg: .}' | amp-ack send --stage FAILED --code tool_timeout --message late --retryable >out
  amp-validate out | cmp - out
  jq -e '.msg.payload | .ack_stage == "FAILED" and .error_code == "TOOL_TIMEOUT" and .note == "late"' out
  # Unless told, the stage that the protocol waits for.
  m 3 | amp-ack send | jq -e '.msg.payload.ack_stage == "RECEIVED"'
  m 4 '.message_type = "HEARTBEAT" | .payload = {state: "RUNNING"}' | amp-ack send | cmp - /dev/null
}

@test "Runtime Protocol: accepted is on disk before it is said, in an outbox of the receiver" {
  create >in
  amp-ack send <in >out
  amp-validate out | cmp - out
  jq -e '.kind == "ack" and .sourceNodeId == "exec" and .sourceAgentId == "exec" and .seq == 1 and .toAgentId == "cli"
    and .corrId == "c" and (.payload | .refEventId == "evt_1" and .refKind == "task_create" and .ackType == "accepted"
      and .ackedByAgentId == "exec")' out
  [ "$(state evt_1)" = RECEIVED ]
  amp-ack send <in | jq -e '.seq == 2'
  amp-ack send --as gateway <in | jq -e '.sourceNodeId == "gateway" and .seq == 1'
  unset AMP_STATE
  run -1 --separate-stderr amp-ack send <in
  [ -z "$output" ]
  [[ $stderr == *not_durable* ]]
  run -1 --separate-stderr amp-ack send --stage READ <in
  [[ $stderr == *unsupported_stage* ]]
  amp-ack send --stage FAILED --code overloaded <in | jq -e '.payload | .ackType == "failed_terminal" and .code == "overloaded"'
}

@test "the disk is written before accepted is, to the last system call" {
  need strace
  not_under_valgrind "strace would show what valgrind does"
  create >in
  ASAN_OPTIONS=detect_leaks=0 strace -f -e trace=fdatasync,write,writev -s 40 -o trace amp-ack send <in >out
  # The last sync comes before the line on stdout.
  sync=$(grep -n 'fdatasync(' trace | tail -n 1 | cut -d: -f1)
  said=$(grep -nE 'writev?\(1, ' trace | head -n 1 | cut -d: -f1)
  [ "$sync" -lt "$said" ]
}

@test "processed is reported only for messages with an outcome, also a failure" {
  create >in
  run -1 --separate-stderr amp-ack send --stage FULFILLED <in
  [[ $stderr == *outcome_missing* ]]
  track 12:00:00 <in >/dev/null
  run -1 amp-ack send --stage FULFILLED <in
  { accept; complete; } | track 12:00:01 >/dev/null
  [ "$(state evt_1)" = FULFILLED ]
  amp-ack send --stage FULFILLED --from exec <in | jq -e '.payload.ackType == "processed"'
  rm -r state
  { cat in; accept; fail; } | track 12:00:00 >/dev/null
  [ "$(state evt_1)" = FAILED ]
  amp-ack send --stage FULFILLED --from exec <in | jq -e '.payload.ackType == "processed"'
  [ "$(state evt_1)" = FAILED ]
}

@test "processed without an outcome passes with a word and settles nothing" {
  { create; processed; } >in
  run -0 --separate-stderr track 12:00:00 <in
  [ "$output" = "$(cat in)" ]
  [[ $stderr == *outcome_missing* ]]
  [ "$(state evt_1)" = SENT ]
  { accept; complete; processed; } | track 12:00:01 >/dev/null
  [ "$(state evt_1)" = FULFILLED ]
  # A message that nobody answers is processed when its receiver says so.
  ev message '{"toAgents":["exec"],"subject":"s","body":"b","expectsReply":false}' '.eventId = "evt_m" | .sourceAgentId = "cli"' >msg
  { cat msg; processed | jq -c '.payload.refEventId = "evt_m"'; } | track 12:00:02 >/dev/null
  [ "$(state evt_m)" = FULFILLED ]
}

@test "a reply ends what asked for it, and only what asked" {
  ev message '{"toAgents":["exec"],"subject":"s","body":"b","expectsReply":true}' '.sourceAgentId = "cli"' >ask
  { cat ask; ev reply '{"body":"yes"}'; } | track 12:00:00 >/dev/null
  [ "$(state evt_1)" = FULFILLED ]
  [ "$(jq -r .payload.body ask)" = b ]
}

@test "accepted, and then no outcome in time: an incident, once, put off by the eta" {
  { create; ev ack '{"refEventId":"evt_1","ackType":"accepted","ackedByAgentId":"exec","ackedAt":"2026-02-25T16:31:00Z"}'; } |
    track 12:00:00 >/dev/null
  [ -z "$(sweep 12:01:59)" ]
  sweep 12:02:00 >told
  jq -e '.type == "escalation" and (.payload.description | startswith("sla_breach"))' told
  amp-validate told | cmp - told
  [ -z "$(sweep 13:00:00 --retries 3)" ]
  rm -r state
  echo 0 >n
  { create; accept '.payload |= (del(.etaSeconds) | .etaAt = "2026-03-01T12:10:00Z")'; } | track 12:00:00 >/dev/null
  # (The acceptance is an event that nobody accepted.)
  sweep 12:11:59 --retries 0 | jq -se 'all(.[]; .kind == "dead_letter" and .payload.code == "retries_exhausted")'
  sweep 12:12:00 --retries 0 | jq -se 'length == 1 and (.[0].payload.description | startswith("sla_breach"))'
}

@test "a TOOL_RESULT is the outcome of its call: who calls again is answered with it" {
  call() { m "$1" '.message_type = "TOOL_CALL" | .idempotency_token = "cli:call:c" | .payload = {call_id: "c", tool_name: "ls",
    provider_id: "fs", args: {}, content_type: "application/json", execution_policy: {timeout_ms: 5000}, stream: false}'; }
  result() { m 8 '.message_type = "TOOL_RESULT" | .producer_id = "fs" | .idempotency_token = "fs:r:1" |
    .payload = {call_id: "c", status: "OK", result_b64: "aGk=", content_type: "application/json"}' | jq -c "${1:-.}"; }
  call 1 | jq -c '{to: "fs", msg: .}' | track 12:00:00 >/dev/null
  run -1 --separate-stderr track 12:00:01 < <(result '.producer_id = "eve"')
  [[ $stderr == *permission_denied* ]]
  call 2 | track 12:00:01 | jq -e '.msg.payload.error_code == "ALREADY_IN_PROGRESS"'
  result '.message_id |= sub("8$"; "7") | .idempotency_token = "fs:r:2"' | track 12:00:02 >/dev/null
  call 3 | track 12:00:03 | jq -e '.msg.payload | .status == "DUPLICATE_DETECTED" and .cached_result.result_b64 == "aGk="'
}

@test "a TOOL_ERROR that may pass is tried again where the tool allows it" {
  m 1 '.message_type = "TOOL_CALL" | .payload = {call_id: "c", tool_name: "ls", provider_id: "fs", args: {},
    content_type: "application/json", execution_policy: {timeout_ms: 5000}, stream: false}' | track 12:00:00 >/dev/null
  m 8 '.message_type = "TOOL_ERROR" | .producer_id = "fs" | .idempotency_token = "fs:r:1" |
    .payload = {call_id: "c", error_code: "TOOL_TIMEOUT", note: "n"}' | track 12:00:01 >/dev/null
  [ -z "$(sweep 12:00:01 --retries 1 --backoff 1s --idempotent-tool ls)" ]
  sweep 12:00:02 --retries 1 --backoff 1s --idempotent-tool ls | jq -e '.message_type == "TOOL_CALL" and .retry_count == 1'
}

@test "Runtime Protocol: an operation passes once, and its attempts rise" {
  create >first
  jq -c '.eventId = "evt_b" | .trace.attempt = 2' first >second
  track 12:00:00 <first | cmp - first
  track 12:00:01 <first | cmp - first
  run -1 --separate-stderr track 12:00:02 < <(jq -c '.eventId = "evt_c"' first)
  [[ $stderr == *attempt_not_incremented* ]]
  track 12:00:03 <second >told
  amp-validate told | cmp - told
  jq -e '.kind == "ack" and .toAgentId == "cli" and .corrId == "c" and .seq == 1 and (.payload | .refEventId == "evt_b"
    and .ackType == "accepted" and .code == "already_in_progress" and (.reason | startswith("evt_1 ")))' told
  { accept; complete; } | track 12:00:04 >/dev/null
  jq -c '.eventId = "evt_d" | .trace.attempt = 3' second | track 12:00:05 | jq -e '.payload | .ackType == "processed" and .code == "duplicate_detected"'
  # Another source's task of the same id is another operation.
  jq -c '.sourceAgentId = "ann" | .eventId = "evt_e"' first >other
  track 12:00:06 <other | cmp - other
  # Nobody took the first one up: the second passes.
  rm -r state
  track 12:00:00 <first >/dev/null
  sweep 12:00:20 --retries rtp=0 >/dev/null
  track 12:00:21 <second | cmp - second
  # Words may be said twice.
  ev message '{"toAgents":["exec"],"subject":"s","body":"ok","expectsReply":false}' >words
  { cat words && jq -c '.eventId = "evt_z"' words; } >twice
  track 12:00:22 <twice | cmp - twice
}

@test "deadlines by protocol, from options and from amp.json" {
  echo '{"ack": {"timeout": ["sw4rm=60s", "rtp=5s"], "sla": "30s"}}' >amp.json
  { create; m 1; message task_dispatch; message review_request 'del(.ack_timeout_sec)'; } |
    amp-ack track --config amp.json --ack-timeout amp=1h --ack-timeout sw4rm=60s --now 2026-03-01T12:00:00Z >/dev/null
  due() { amp-ack status --all --json | jq -r --arg t "$1" 'select(.type == $t) | .due[11:19]'; }
  [ "$(due DATA) $(due task_create) $(due review_request)" = "12:01:00 12:00:20 13:00:00" ]
  # A message's own time goes first; an option takes the place of the configured list.
  [ "$(due task_dispatch)" = 12:05:00 ]
  rm -r state
  create | amp-ack track --config amp.json --now 2026-03-01T12:00:00Z >/dev/null
  [ "$(due task_create)" = 12:00:05 ]
  run -64 amp-ack track --ack-timeout aop=1s </dev/null
  run -64 amp-ack track --ack-timeout 1s </dev/null
}

@test "whoever records a message waits as long as the configuration says" {
  need_tool amp-route
  waits() { jq -r --arg k "message.$1" 'select(.key == $k) | .state | "\(.ack_timeout_ms) \(.sla_ms)"' state/log/*.ndjson | tail -1; }
  echo '{"ack": {"timeout": ["sw4rm=60s", "rtp=5s", "amp=7m"], "sla": "30s"}}' >amp.json
  export AMP_CONFIG=amp.json
  m 1 | amp-route -r '* => file:out'
  [ "$(waits 11111111-1111-4111-8111-111111111111)" = "60000 null" ]
  { m 2 && create && message review_request 'del(.ack_timeout_sec) | .msg_id = "review_request-T-2026-044-7"'; } |
    amp-route -r '* => inbox:bob' >out
  [ "$(waits 11111111-1111-4111-8111-111111111112)" = "60000 null" ]
  [ "$(waits evt_1)" = "5000 30000" ]
  [ "$(waits review_request-T-2026-044-7)" = "420000 null" ]
  m 3 | amp-ack send >out
  [ "$(waits 11111111-1111-4111-8111-111111111113)" = "60000 null" ]
  echo '{"ack": {"timeout": ["sw4rm"]}}' >wrong.json
  run -78 amp-route -c wrong.json -r '* => stdout' <out
  [[ "$output" == *"ack.timeout in amp.json"* ]]
}

@test "a message for more agents than a message may name is refused, not cut" {
  many() { ev message "$(jq -nc --argjson n "$1" '{toAgents: [range($n) | "a\(.)"], body: "b", expectsReply: false}')"; }
  many 1024 | amp-validate >/dev/null
  run -1 --separate-stderr amp-validate -e - < <(many 1025)
  jq -e '.code == "invalid_targets" and .rule == "maxItems"' <<<"$stderr"
  run -1 amp-validate < <(create | jq -c '.payload.toAgents = [range(1025) | "a\(.)"]')
}

@test "an id too long to be kept is refused, and the stream goes on" {
  need_tool amp-route agent-registry hitl-prompt task-dispatch
  local long=() t argv
  for t in 1001 70000; do
    m 1 ".message_id = \"i\" * $t"
    create | jq -c ".eventId = \"e\" * $t"
    create | jq -c ".payload.taskId = \"t\" * $t"
    create | jq -c ".kind = \"k\" * $t | .eventId = \"e\" * $t"
  done >bad
  { cat bad && m 2; } >in
  for t in "amp-ack track" "amp-ack send --every" "amp-route -r *=>file:x" "amp-route -r *=>inbox:bob" \
    "amp-route -r *=>agents" "amp-route --cursor me -r *=>stdout" agent-registry hitl-prompt \
    "task-dispatch coordinate --until-done"; do
    rm -rf state
    set -f
    argv=($t)
    set +f
    run "${argv[@]}" <in
    [ "$status" -eq 1 ] || { echo "$t: $status $output"; return 1; }
    jq -es 'map(select(.code == "bad_id")) | length == 6 and all(.[]; .id | length <= 1001 and length > 4)' \
      state/error.ndjson || { echo "$t"; return 1; }
    [ "$(wc -L <state/error.ndjson)" -lt 4000 ]
    # What comes behind it is dealt with.
    [ "$(cat state/log/*.ndjson | grep -c 11111111-1111-4111-8111-111111111112)" -gt 0 ] ||
      [[ "$output" == *11111111-1111-4111-8111-111111111112* ]] || { echo "$t: $output"; return 1; }
  done
}

@test "SW4RM's numbers rise, whoever answers, over processes and clocks" {
  need_tool amp-route
  # One process, several answers in a millisecond; then others of the same producer.
  { for n in 1 2 3 4 5; do m "$n" '.message_type = "DATA"'; done; } >in
  run -1 --separate-stderr amp-route -o one -r 'from=nobody => stdout' <in
  run -1 --separate-stderr amp-route -o two -r 'from=nobody => stdout' < <(m 6)
  jq -r 'select(.msg.producer_id == "amp-route") | .msg.sequence_number' one two >numbers
  [ "$(wc -l <numbers)" -eq 6 ]
  sort -nuc numbers
  # The state knows the last one: a clock that was put back changes nothing.
  jq -es 'map(select(.key == "sequence.sw4rm.amp-route").state.last) | length == 6 and .[-1] == $last' \
    --argjson last "$(tail -1 numbers)" state/log/*.ndjson
  # An agent that acknowledges by one tool and gets messages by another has one row of numbers.
  m 7 | jq -c '{to: "bob", msg: .}' | amp-ack send >>three
  m 8 | amp-route -r '* => inbox:bob' >>three
  m 9 | jq -c '{to: "bob", msg: .}' | amp-ack send --stage READ >>three
  jq -r 'select(.msg.producer_id == "bob") | .msg.sequence_number' three >numbers
  [ "$(wc -l <numbers)" -eq 3 ]
  sort -nuc numbers
  # Routers of other names are other producers.
  run -1 --separate-stderr amp-route --as gate -r 'from=nobody => stdout' < <(m 0)
  jq -e '.msg.producer_id == "gate"' <<<"$output"
}

@test "an eta in accepted puts the end off as well" {
  { create; ev ack '{"refEventId":"evt_1","ackType":"accepted","ackedByAgentId":"exec","ackedAt":"2026-03-01T12:00:00Z",
    "etaAt":"2026-03-01T12:30:00Z"}'; } | track 12:00:00 >/dev/null
  [ -z "$(sweep 12:31:59)" ]
  sweep 12:32:00 | jq -e '.payload.description | startswith("sla_breach")'
}

@test "who waited for an outcome is forgotten a day later, but not while it is open" {
  waiting() { jq -r 'select(.key // "" | startswith("awaited.")) | .event // "gone"' state/log/*.ndjson | paste -sd,; }
  { create; ev ack '{"refEventId":"evt_1","ackType":"accepted","ackedByAgentId":"exec","ackedAt":"2026-03-01T12:00:00Z",
    "etaAt":"2026-03-04T12:00:00Z"}'; } | track 12:00:00 >/dev/null
  amp-ack sweep --now 2026-03-02T12:00:00Z >/dev/null
  [ "$(waiting)" = await,keep ]
  { accept; complete; } | track 12:00:00 >/dev/null
  amp-ack sweep --now 2026-03-03T12:00:00Z >/dev/null
  [ "$(waiting)" = await,keep,forget ]
}

@test "an outcome ends the newest attempts of a task, at least 64, whichever record has them" {
  keys() { jq -r 'select(.key // "" | startswith("awaited.")) | [.key, .event] | join(" ")' state/log/*.ndjson; }
  for ((i = 1; i <= 80; i++)); do create ".corrId = \"c$i\""; done | track 12:00:00 >/dev/null
  [ "$(keys | grep -c '^awaited\.rtp\.task\.t await')" -eq 80 ]
  [ "$(keys | grep -c '^awaited\.rtp\.task\.t\.[0-7] await')" -eq 9 ]
  # A message that comes again is not noted twice.
  echo 79 >n
  create '.corrId = "c80"' | track 12:00:01 >/dev/null
  [ "$(keys | wc -l)" -eq 89 ]
  { accept; complete; } | track 12:00:02 >/dev/null
  for ((i = 1; i <= 80; i++)); do echo "evt_$i"; done >ids
  amp-ack status --all --json | jq -r 'select(.state == "FULFILLED") | .msg_id' | sort -V | cmp - <(tail -72 ids)
  # Each record is forgotten when it is not needed; that of the work after its pages. Without
  # retries: a further attempt at one of the oldest, after a random wait that may be 0, is noted.
  amp-ack sweep --now 2026-03-02T12:00:02Z --retries 0 >/dev/null
  [ "$(keys | grep -c forget)" -eq 9 ]
  [ "$(keys | tail -1)" = 'awaited.rtp.task.t forget' ]
}

@test "the router refuses an event in its own protocol, numbered in its outbox" {
  need_tool amp-route
  create >in
  amp-route --state state -r 'to=nobody => file:x' <in >told || [ $? -eq 1 ]
  amp-validate told | cmp - told
  jq -e '.kind == "ack" and .toAgentId == "cli" and .corrId == "c" and .sourceNodeId == "amp-route" and .seq == 1 and
    (.payload | .refEventId == "evt_1" and .ackType == "failed_terminal" and .code == "no_route")' told
}

@test "an outbox has no gap where an inbox was full, or had the message already" {
  for t in 1 2 3; do create ".payload.taskId = \"t$t\" | .corrId = \"c$t\""; done >in
  route() { amp-route -r '* => inbox:exec' --inbound 1; }
  run -1 --separate-stderr route <in
  jq -es 'map([.seq, .payload.ackType]) == [[1, "accepted"], [2, "failed_terminal"], [3, "failed_terminal"]]' <<<"$output"
  head -n 1 in | route >again
  [ ! -s again ]
  create '.corrId = "c4"' >fourth
  run -1 --separate-stderr route <fourth
  jq -e '.seq == 4' <<<"$output"
}

@test "Runtime Protocol: an agent that was not given the task, or did not claim it, cannot report its end" {
  create | track 12:00:00 >/dev/null
  run -1 --separate-stderr track 12:00:01 < <(complete '.payload.completedByAgentId = "eve" | .sourceAgentId = "eve"')
  [[ -z $output && $stderr == *"not_assignee: exec holds the work, not eve"*evt_1* ]]
  run -1 --separate-stderr track 12:00:01 < <(accept '.payload.acceptedByAgentId = "eve" | .sourceAgentId = "eve"')
  [[ -z $output && $stderr == *"not_assignee: exec holds the work, not eve"* ]]
  echo 3 >n
  accept | track 12:00:02 >/dev/null
  run -1 --separate-stderr track 12:00:03 < <(complete '.payload.completedByAgentId = "eve" | .sourceAgentId = "eve"')
  [[ $stderr == *"not_claimant: exec holds the work, not eve"*evt_1* ]]
  [ "$(state evt_1)" = RECEIVED ]
  complete | track 12:00:04 >/dev/null
  [ "$(state evt_1)" = FULFILLED ]
}

@test "Runtime Protocol: an agent accepts a task before it ends it, in the minimal profile too" {
  create | track 12:00:00 >/dev/null
  run -1 --separate-stderr track 12:00:01 < <(complete)
  [[ -z $output && $stderr == *"accept_required: no agent has accepted evt_1: its end reported by exec is refused"* ]]
  run -1 --separate-stderr track 12:00:01 < <(fail)
  [[ -z $output && $stderr == *accept_required* ]]
  [ "$(state evt_1)" = SENT ]
  # "accepted" acknowledges the delivery of the task; it is not a task_accept.
  processed | jq -c '.payload.ackType = "accepted"' | track 12:00:02 >/dev/null
  run -1 --separate-stderr track 12:00:03 < <(complete)
  [[ $stderr == *accept_required* ]]
  echo 10 >n
  ev ack '{"taskId":"t","acceptedByAgentId":"exec","etaSeconds":60}' | track 12:00:04 >/dev/null
  run -1 --separate-stderr track 12:00:05 < <(accept '.payload.acceptedByAgentId = "eve"')
  [[ $stderr == *"already_claimed: exec holds the work, not eve"* ]]
  complete | track 12:00:06 >/dev/null
  [ "$(state evt_1)" = FULFILLED ]
}

# refused ID: the codes that the log gives for refusals of a message.
refused() { amp-ack log --id "$1" --format ndjson | jq -r 'select(.event == "refuse") | [.kind, .id, .details.code] | join(" ")'; }

@test "a refused outcome leaves nothing that is retried or delivered; the log shows the refusal" {
  create | track 12:00:00 >/dev/null
  complete '.payload.completedByAgentId = "eve" | .sourceAgentId = "eve"' >forged # evt_1 too: the number is counted in a subshell
  jq -c '.eventId = "evt_9"' forged >in
  run -1 --separate-stderr track 12:00:01 <in
  [ -z "$output" ]
  [ "$(refused evt_9)" = "refused evt_9 not_assignee" ]
  [ -z "$(state evt_9)" ]
  for at in 12:00:20 12:01:20 13:00:00; do sweep $at --retries 3; done >out
  run -1 grep -e '"evt_9"' -e task_complete out
  amp-ack dead list --json >dead
  run -1 grep '"evt_9"' dead
  amp-route --state "$AMP_STATE" -r '* => file:all' --from start </dev/null
  run -1 grep -s '"evt_9"' all
  # Its id is free: the true event may bear it.
  accept | track 12:00:02 >/dev/null
  complete '.eventId = "evt_9"' | track 12:00:03 >/dev/null
  [ "$(state evt_9)" = SENT ]
}

@test "SW4RM: a refused TOOL_RESULT claims no operation and is not sent again" {
  call() { m "$1" '.message_type = "TOOL_CALL" | .idempotency_token = "cli:call:c" | .payload = {call_id: "c", tool_name: "ls",
    provider_id: "fs", args: {}, content_type: "application/json", execution_policy: {timeout_ms: 5000}, stream: false}'; }
  result() { m 8 '.message_type = "TOOL_RESULT" | .producer_id = "eve" | .idempotency_token = "eve:r:1" |
    .payload = {call_id: "c", status: "OK", result_b64: "aGk=", content_type: "application/json"}'; }
  call 1 | jq -c '{to: "fs", msg: .}' | track 12:00:00 >/dev/null
  run -1 --separate-stderr track 12:00:01 < <(result)
  [ -z "$output" ]
  [ "$(refused 11111111-1111-4111-8111-111111111118)" = "refused 11111111-1111-4111-8111-111111111118 permission_denied" ]
  jq -r 'select(.key // "" | startswith("token.eve")) | .event' "$AMP_STATE"/log/*.ndjson >claims
  [ ! -s claims ]
  for at in 12:00:20 12:01:20 13:00:00; do sweep $at --retries 3; done >out
  run -1 grep TOOL_RESULT out
  # Nor does a message that is refused for its id claim the operation it names.
  m 5 '.payload = {a: 1}' | track 12:00:02 >/dev/null
  run -1 --separate-stderr track 12:00:03 < <(m 5 '.payload = {a: 2} | .idempotency_token = "cli:x:6"')
  [[ $stderr == *duplicate_msg_id* ]]
  m 6 | track 12:00:04 | jq -e '.message_id | endswith("6")'
}

@test "send records nothing of a message whose answer is refused" {
  create >in
  run -1 --separate-stderr amp-ack send --stage FAILED --from eve <in
  [[ -z $output && $stderr == *not_assignee* ]]
  [ -z "$(state evt_1)" ]
}

@test "the router delivers no outcome that the holder did not send" {
  need_tool amp-route
  route() { amp-route -r 'type=task_create => inbox:exec' -r '* => file:cli' "$@"; }
  create | route >/dev/null
  complete '.eventId = "evt_9" | .payload.completedByAgentId = "eve" | .sourceAgentId = "eve"' >in
  run -1 --separate-stderr route <in
  [[ -z $output && $stderr == *"evt_9: not_assignee: exec holds the work, not eve"* ]]
  [ ! -s cli ]
  [ "$(refused evt_9)" = "refused evt_9 not_assignee" ]
  [ "$(state evt_1)" = RECEIVED ]
  complete '.eventId = "evt_7"' >in
  run -1 --separate-stderr route <in
  [[ -z $output && $stderr == *"evt_7: accept_required: no agent has accepted evt_1"* ]]
  [ ! -s cli ]
  accept | amp-ack >/dev/null
  complete '.eventId = "evt_8"' | route
  [ "$(jq -r .eventId cli)" = evt_8 ]
  [ "$(state evt_1)" = FULFILLED ]
}

# later SECONDS: the escalations and answers that a sweep so much later gives.
later() { amp-ack sweep --now "$(date -u -d "+$1 seconds" +%FT%TZ)" "${@:2}"; }

@test "work that was read from an inbox has its time, until its outcome" {
  need_tool amp-route
  create '.payload.taskId = "t1"' >in # a task without an outcome
  echo 1 >n
  create '.payload.taskId = "t2"' >>in # one that is put off
  echo 2 >n
  create '.payload.taskId = "t3"' >>in # one that ends
  amp-route -r '* => inbox:exec' <in >/dev/null
  amp-route inbox exec >read
  cmp in read
  [ "$(state evt_1)" = READ ]
  echo 3 >n
  accept ".payload |= (del(.etaSeconds) + {taskId: \"t2\", etaAt: \"$(date -u -d '+1 hour' +%FT%TZ)\"})" | amp-ack >/dev/null
  { accept '.eventId = "evt_41" | .payload.taskId = "t3"'; complete '.eventId = "evt_9" | .payload.taskId = "t3"'; } | amp-ack >/dev/null
  [ -z "$(later 60 --retries 3 | grep -v evt_4)" ]
  later 300 --retries 3 | grep sla_breach >told
  jq -se 'length == 1 and (.[0] | .type == "escalation" and .payload.affected_msgs == ["evt_1"] and
    (.payload.description | startswith("sla_breach: exec accepted task_create")))' told
  [ "$(state evt_1)" = TIMED_OUT ]
  [ -z "$(later 400 | grep sla_breach)" ]
  later 4000 | grep sla_breach | jq -e '.payload.affected_msgs == ["evt_2"]'
}

# silences: which messages the heartbeat_timeouts on standard input are about.
silences() { jq -r 'select(.payload.escalation_type == "heartbeat_timeout") | .payload.affected_msgs[0]' | sort | paste -sd' '; }
# work N [JQ]: a task_dispatch of the subtask SN of T-2026-044.
work() { message task_dispatch ".msg_id = \"task_dispatch-T-2026-044-$1\" | .payload.subtasks |= [.[0] | .subtask_id = \"S$1\"] | ${2:-.}"; }
# done_with N [JQ]: the result of that subtask.
done_with() { message task_result ".msg_id = \"task_result-T-2026-044-$1\" | .payload.subtask_id = \"S$1\" | ${2:-.}"; }
W=task_dispatch-T-2026-044-

@test "AMP: work that was read from an inbox is watched until its outcome" {
  need_tool amp-route
  message review_request '.msg_id = "review_request-T-2026-044-1"' >review
  work 4 '.to = "coordinator"' >own
  { work 1; work 2; work 3; cat review own; } | amp-route -r 'to=executor => inbox:exe' -r '* => inbox:rev'
  [ -z "$(later 1000 | silences)" ] # nobody has read it: that is told by ack_timeout
  amp-route inbox exe >/dev/null
  amp-route inbox rev >/dev/null
  [ "$(state ${W}1)" = TIMED_OUT ] # however late it was read
  # It refers to its work, or names the subtask only; another agent's word about the task is none.
  done_with 2 ".context_ref = [\"${W}2\"]" | amp-ack >/dev/null
  done_with 3 | amp-ack >/dev/null
  message ack ".ref_msg_id = \"x\" | .from = \"admin\"" | amp-ack >/dev/null 2>&1
  amp-ack status --open --json | jq -se --arg id ${W}1 'map(select(.msg_id == $id)) | length == 1 and .[0].due'
  [ -z "$(later 1740 | silences)" ]
  later 1860 | jq -c 'select(.payload.escalation_type == "heartbeat_timeout")' >told
  [ "$(silences <told)" = "review_request-T-2026-044-1 ${W}1" ]
  amp-validate told | cmp - told
  jq -se --arg id ${W}1 'map(select(.payload.affected_msgs == [$id])) | length == 1 and (.[0] | .task_id == "T-2026-044" and
    (.payload.description | startswith("Agent exe, at work on T-2026-044, gave no sign of life for 30 min: ") and
      endswith(", message \($id)")))' told
  rm state/index* # all of it stands in the log
  [ -z "$(later 9000 | silences)" ] # once for each last sign of life
  message review_verdict '.context_ref = ["review_request-T-2026-044-1"]' | amp-ack >/dev/null
  message escalation '.from = "executor" | .payload.severity = "info" | .payload.auto_suspended = false' | amp-ack >/dev/null
  [ -z "$(later 1740 | silences)" ]
  [ "$(later 1860 | silences)" = "${W}1" ]
  done_with 1 | amp-ack >/dev/null
  [ -z "$(later 9000 | silences)" ]
  amp-ack status --all --json | jq -se 'all(.[]; .due == null or (.msg_id | startswith("task_dispatch") | not))'
}

@test "AMP: the router sees signs of life and outcomes as the tracker does" {
  need_tool amp-route
  route() { amp-route --state state -r 'type=task_dispatch => inbox:exe' -r '* => file:out'; }
  { work 1; work 2; work 3; } | route
  amp-route inbox exe >/dev/null
  [ "$(later 1860 | silences)" = "${W}1 ${W}2 ${W}3" ]
  # One refers to its work, one names the subtask only, and both say that the agent is alive.
  { done_with 2 ".context_ref = [\"${W}2\"]"; done_with 3; } | route
  [ "$(state ${W}2) $(state ${W}3) $(state ${W}1)" = "FULFILLED FULFILLED READ" ]
  [ "$(later 1860 | silences)" = "${W}1" ]
  record ack ".ref_msg_id = \"${W}1\"" | route
  [ "$(later 1860 | silences)" = "${W}1" ]
  record nack ".ref_msg_id = \"${W}1\"" | route
  [ -z "$(later 1860 | silences)" ]
}

@test "AMP: the silence is the one that the sweep is given, as for agents" {
  need_tool amp-route
  work 1 | amp-route -r '* => inbox:exe'
  amp-route inbox exe >/dev/null
  [ -z "$(later 240 --silence 5m)" ]
  [ "$(later 360 --silence 5m | silences)" = "${W}1" ]
  work 2 | amp-route -r '* => inbox:exe'
  amp-route inbox exe >/dev/null
  [ -z "$(later 90000 --silence 0)" ]
  [ -z "$(later 7000 --silence 2h)" ]
  [ "$(later 7300 --silence 2h | silences)" = "${W}2" ]
  work 3 | amp-route -r '* => inbox:exe'
  amp-route inbox exe >/dev/null
  # The watcher wakes for it by itself.
  amp-ack watch --silence 1s >told 3>&- &
  watcher=$!
  wait_until 30 grep -q "${W}3" told
  kill "$watcher"
  wait "$watcher" || [ $? -eq 130 ]
  [ "$(silences <told)" = "${W}3" ]
}

@test "AMP: while its task is suspended nobody is expected to give a sign of life" {
  need_tool amp-route hitl-prompt task-queue
  work 1 | amp-route -r '* => inbox:executor'
  amp-route inbox executor >/dev/null
  message escalation >question
  run -1 hitl-prompt --answer /dev/null <question
  [ -z "$(later 1860 | silences)" ]
  [ "$(later 3700 | silences)" = "" ]
  echo resume >answers
  hitl-prompt --answer answers </dev/null | task-dispatch coordinate >/dev/null
  [ -z "$(later 3700 | silences)" ]
  [ "$(later 5600 | silences)" = "${W}1" ]
}

@test "a TOOL_CALL has the time of its execution_policy from when it is taken up" {
  need_tool amp-route
  call() { m "$1" '.message_type = "TOOL_CALL" | .idempotency_token = "cli:call:'"$1"'" | .payload = {call_id: "'"$1"'", tool_name: "ls",
    provider_id: "fs", args: {}, content_type: "application/json", execution_policy: {timeout_ms: 600000'"$2"'}, stream: false}' |
    jq -c '{to: "fs", msg: .}'; }
  { call 1; call 2 ', budget_wall_ms: 60000'; } >in
  amp-route -r '* => inbox:fs' <in >/dev/null
  [ -z "$(later 900)" ] # in the inbox it has not begun
  amp-route inbox fs >/dev/null
  [ -z "$(later 30)" ]
  later 120 | jq -se 'length == 1 and (.[0] | .to == "cli" and (.msg.payload | .ack_stage == "TIMED_OUT" and
    .error_code == "TOOL_TIMEOUT" and .ack_for_message_id[-1:] == "2"))'
  later 900 | jq -e '.msg.payload.ack_for_message_id[-1:] == "1"'
  [ "$(state 11111111-1111-4111-8111-111111111111)" = TIMED_OUT ]
  # While a person suspends the agent, its time does not end.
  call 3 ', budget_wall_ms: 60000' | amp-route -r '* => inbox:fs' >/dev/null
  amp-route inbox fs >/dev/null
  hitl-prompt suspend --agent fs
  [ -z "$(later 1800)" ]
  grep -q '"from":"READ","event":"hold","to":"READ"' "$AMP_STATE"/log/000001.ndjson
}

@test "what refuses names the message, the stage and the code, in the conversation, in each protocol" {
  m 1 | jq -c '{to: "bob", msg: .}' | amp-ack send --stage REJECTED --code no_route --message why |
    jq -e '.msg | .correlation_id == "7f3f41a2-2017-4b8f-9b8b-2ad3caaee001" and (.payload |
      .ack_for_message_id[-1:] == "1" and .ack_stage == "REJECTED" and .error_code == "NO_ROUTE")'
  message task_dispatch | amp-ack send --stage REJECTED --code branch_violation --message why >nack
  amp-validate nack | cmp - nack
  jq -e '.type == "nack" and .ref_msg_id == "task_dispatch-T-2026-044-1772116327001" and .code == "branch_violation" and
    .failed_stage and .task_id == "T-2026-044"' nack
  create >in
  amp-ack send --stage REJECTED --code overloaded --retryable <in >first
  amp-ack send --stage FAILED --code overloaded <in >second
  jq -se '[.[].seq] == [1, 2] and all(.sourceNodeId == "exec" and .corrId == "c" and .payload.refEventId == "evt_1" and
    .payload.refKind == "task_create" and .payload.ackType == "failed_terminal" and .payload.code == "overloaded")' first second
}

@test "a skill distribution is fulfilled only by a confirmation that says the version" {
  need jq
  ev task_create '{"taskId":"t","taskType":"skill_distribution","title":"T","toAgents":["exec"],"capabilityId":"cap.a",
    "delegationSkillRef":{"name":"d","version":"1.3.0"},"requiredBy":"2026-02-25T18:30:00.000Z","requesterAgentId":"cli"}' \
    '.sourceAgentId = "cli"' | track 12:00:00 >/dev/null
  accept | track 12:00:01 >/dev/null
  # The agent of another completion is answered, and may repeat it; the requester does not get it.
  for version in . '.payload.installedVersion = "1.2.9"'; do
    complete "$version" >wrong
    run -1 --separate-stderr track 12:00:02 <wrong
    amp-validate <<<"$output" | cmp - <(echo "$output")
    jq -e --arg id "$(jq -r .eventId wrong)" '.kind == "ack" and .toAgentId == "exec" and .payload.refEventId == $id and
      .payload.ackType == "failed_terminal" and .payload.code == "version_incompatible" and .payload.retryable' <<<"$output"
    run -1 --separate-stderr amp-route --state "$AMP_STATE" -r '* => stdout' <wrong
    jq -e '.kind == "ack" and .payload.code == "version_incompatible"' <<<"$output"
    [ "$(state evt_1)" != FULFILLED ]
  done
  complete '.payload.installedVersion = "1.3.0"' | track 12:00:03 >/dev/null
  [ "$(state evt_1)" = FULFILLED ]
}

@test "Runtime Protocol: all becomes the agents of the registry once, also for later attempts" {
  need_tool amp-route amp-sign
  for name in ann bob; do agent-registry register $name --connector x:y >/dev/null; done
  said() { ev message '{"toAgents": ["all"],"body":"b"}' ".eventId = \"evt_$1\" | .sourceAgentId = \"ann\" | ${2:-.}"; }
  said 1 >first
  track 12:00:00 <first >told
  [ "$(jq -c .payload.toAgents told)" = '["bob"]' ]
  # Nothing else is changed. Who joins later gets neither a repetition nor another attempt.
  cmp told <(sed 's/\["all"\]/["bob"]/' first)
  agent-registry register carl --connector x:y >/dev/null
  track 12:00:01 <first | cmp - told
  amp-route -r '* => stdout' <first | cmp - told
  amp-ack sweep --now 2026-03-01T12:00:20Z --retries 2 --backoff 1s,1s >/dev/null
  [ "$(amp-ack sweep --now 2026-03-01T12:00:21Z --retries 2 --backoff 1s,1s | jq -c '[.trace.attempt, .payload.toAgents]')" = '[2,["bob"]]' ]
  # The next message has both; amp-route does it as well, for each recipient.
  said 2 | amp-route -r '* => agents' --agent bob=file:bob --agent carl=file:carl --agent ann=file:ann
  [ "$(jq -c .payload.toAgents bob carl)" = $'["bob","carl"]\n["bob","carl"]' ]
  [ ! -s ann ]
  # A signed message is its sender's: it stays.
  amp-sign keygen key >/dev/null
  said 3 | amp-sign --key key >signed
  track 12:00:02 <signed | cmp - signed
}
