#!/usr/bin/env bats
# One producer must not monopolize the router (SW4RM §13.1).

load ../lib

setup() {
  need jq
  cd "$BATS_TEST_TMPDIR" || return 1
}

# events PRODUCER N: N messages of one producer.
events() {
  jq -nc --arg p "$1" --argjson n "$2" 'range($n) | {eventId: "\($p)-\(.)", seq: (. + 1), kind: "message", sourceNodeId: $p,
    sourceAgentId: $p, createdAt: "2026-02-25T16:30:00.000Z", payload: {toAgents: ["b"], body: "b"}, trace: {attempt: 1}}'
}

@test "a producer past its rate is refused, and the others are not" {
  { events busy 20 && events calm 3; } >in
  run -1 --separate-stderr amp-route -r '* => file:got' --producer-rate 1 --producer-burst 5 <in
  [ "$(jq -r .sourceAgentId got | sort | uniq -c | xargs)" = '5 busy 3 calm' ]
  echo "$output" >out
  amp-validate out >/dev/null
  [ "$(jq -r '"\(.payload.code) \(.payload.retryable)"' out | sort | uniq -c | xargs)" = '15 rate_limited true' ]
  # The dead letters are temporary failures; a metric counts them.
  run -1 --separate-stderr amp-route --state s -r '* => file:more' --producer-rate 1 --producer-burst 5 --metrics m --metrics-format ndjson <in
  [ "$(amp-ack dead list --json --state s | jq -r '"\(.code) \(.class)"' | sort | uniq -c | xargs)" = '15 rate_limited temporary' ]
  grep -q rate_limited m
  # The first messages pass at once with the rate as burst; without the option all do.
  amp-route -r '* => file:all' <in
  [ "$(wc -l <all)" -eq 23 ]
}

@test "the rate is a setting, and acknowledgements are not limited" {
  events busy 3 >in
  jq -nc 'range(3) | {eventId: "a\(.)", seq: (. + 1), kind: "ack", sourceNodeId: "busy", sourceAgentId: "busy", corrId: "c",
    createdAt: "2026-02-25T16:30:00.000Z", payload: {refEventId: "x", refKind: "message", ackType: "accepted",
      ackedByNodeId: "busy", ackedByAgentId: "busy", ackedAt: "2026-02-25T16:30:00.000Z"}, trace: {attempt: 1}}' >>in
  echo '{"route": {"producer_rate": 1}}' >amp.json
  ends 1 amp-route --config amp.json -r '* => file:got' <in >out
  [ "$(jq -r .kind got | xargs)" = 'message ack ack ack' ]
  [ "$(wc -l <out)" -eq 2 ]
  run -64 amp-route -r '* => file:got' --producer-rate 0 <in
}

@test "with --fair the senders that wait for a port take turns, each in its order" {
  { events busy 30 && events calm 3 && events other 1; } >in
  mkfifo f
  for fair in '' --fair; do
    # The port has no reader yet: a quarter of the limit goes ahead, the others wait.
    amp-route -r '* => fifo:f' --inbound 40 --patience 0 $fair <in >out &
    exec 5<>f
    timeout 10 head -34 <&5 >got$fair
    exec 5>&-
    wait $!
  done
  place() { jq -r .eventId "$1" | grep -n "^$2\$" | cut -d: -f1; }
  [ "$(place got calm-2)" -eq 33 ] && [ "$(place got other-0)" -eq 34 ]
  [ "$(place got--fair other-0)" -le 13 ] && [ "$(place got--fair calm-2)" -le 20 ]
  for p in busy calm; do
    jq -r .eventId got--fair | grep "^$p" | cut -d- -f2 | sort -n -c
  done
  [ "$(jq -r .eventId got--fair | sort)" = "$(jq -r .eventId in | sort)" ]
}

@test "--producer-waiting leaves room for others in an inbox, where senders take turns with --fair" {
  { events busy 8 && events calm 2; } >in
  agent-registry register b --connector https://llm.example --modality application/json --state s >/dev/null
  ends 1 amp-route --state s -r '* => inbox:b' --inbound 9 --producer-waiting 5 --fair <in >out 2>/dev/null
  [ "$(grep -c producer_full out)" -eq 3 ]
  amp-route inbox b --state s >got
  [ "$(jq -r .eventId got | xargs)" = 'busy-0 calm-0 busy-1 calm-1 busy-2 busy-3 busy-4' ]
}
