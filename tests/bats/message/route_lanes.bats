#!/usr/bin/env bats
# amp-route where messages wait: lanes, bounded buffers, and who is waited for.

load ../lib
load ../messages
load ../lanes

setup() {
  need_tool amp-route
  cd "$BATS_TEST_TMPDIR"
  mkfifo a in
}

teardown() {
  # Only what this test started.
  for p in $(jobs -p); do kill "$p" 2>/dev/null || :; done
}

# waiting ARG...: a router whose reader of a has not begun; it has read all of the file messages.
waiting() {
  exec 8<>a
  amp-route --in in "$@" -r 'task=T-2026-044 => file:mark' -r '* => fifo:a' >answers 2>said &
  route=$!
  { cat messages; message escalation; } >in
  wait_until 30 has_lines mark 1
}

# begin_reading N: the reader comes, until it has so many; the router ends.
begin_reading() {
  cat <&8 >got &
  reader=$!
  wait_until 30 has_lines got "$1"
  status=0
  wait $route || status=$?
  kill $reader
  exec 8<&-
}

@test "an urgent message overtakes what the reader has not nearly got" {
  { for i in 1 2 3 4 5 6 7 8; do control $i 0; done
    for i in 11 12 13; do control $i -15; done; } >messages
  waiting --inbound 20
  begin_reading 11
  [ "$status" -eq 0 ]
  [ "$(numbers got)" = "1 2 3 4 5 11 12 13 6 7 8" ]
}

@test "what can wait goes last, but goes" {
  { for i in 1 2 3 4 5; do control $i 0; done
    for i in 21 22; do control $i 15; done
    for i in 6 7 8 9 10 11; do control $i 0; done; } >messages
  waiting --inbound 20
  begin_reading 13
  [ "$(numbers got)" = "1 2 3 4 5 6 21 7 8 9 10 22 11" ]
}

@test "past their limit urgent messages wait with the others" {
  { for i in 1 2 3 4 5 6; do control $i 0; done
    for i in 11 12 13 14; do control $i -15; done; } >messages
  waiting --inbound 20 -v --lane privileged_burst=2 --lane privileged_rate=0 --metrics counted
  begin_reading 10
  [ "$(numbers got)" = "1 2 3 4 5 11 12 6 13 14" ]
  grep -q 'urgent: 00000011-' said
  grep -q '2 urgent, 2 past their limit in 1 bursts' said
  # counted NAME: its last values of the port.
  counted() {
    tail -n 1 counted | jq --arg n "$1" \
      '[.metrics[] | select(.name == $n and .labels.agent_id == "fifo:a") | .value // .count] | add'
  }
  [ "$(counted messages.sent_total)" -eq 10 ]
  [ "$(counted router.urgent_dispatches_total)" -eq 2 ]
  [ "$(counted router.urgent_overflow_total)" -eq 2 ]
  [ "$(counted router.urgent_bursts_total)" -eq 1 ]
  [ "$(counted router.inbound_queue_capacity)" -eq 20 ]
  [ "$(counted agent.dequeue_latency_seconds)" -eq 5 ]
}

@test "urgent messages without end: every few of them another goes" {
  { for i in 1 2 3 4 5 6 7; do control $i 0; done
    for i in 11 12 13 14 15 16; do control $i -15; done; } >messages
  waiting --inbound 20 --lane privileged_run=2
  begin_reading 13
  [ "$(numbers got)" = "1 2 3 4 5 11 12 6 13 14 7 15 16" ]
}

@test "what belongs to one conversation keeps its order through the lanes" {
  { for i in 1 2 3 4 5; do task $i normal "c$i"; done
    task 6 normal x
    task 7 normal y
    task 11 high x
    task 12 high z; } >messages
  waiting --inbound 20 --lane privileged_priority=-5
  begin_reading 9
  [ "$(numbers got)" = "1 2 3 4 5 12 6 7 11" ]
}

@test "a message that starved is warned about" {
  { for i in 1 2 3 4 5 6; do control $i 0; done
    for i in 11 12 13 14; do control $i -15; done; } >messages
  waiting --inbound 20 --lane starved_ms=1
  command sleep 0.05
  begin_reading 10
  grep -q 'a STANDARD message waited .* ms while others went: 00000006-' said
}

@test "the lanes' limits come from the configuration, and an option stands before it" {
  echo '{"lanes": {"privileged_run": 1, "privileged_priority": -15}, "route": {"inbound": ["20"]}}' >amp.json
  { for i in 1 2 3 4 5 6 7; do control $i 0; done
    for i in 11 12 13 14; do control $i -15; done; } >messages
  waiting --config amp.json --lane privileged_run=3
  begin_reading 11
  [ "$(numbers got)" = "1 2 3 4 5 11 12 13 6 14 7" ]
  run -64 --separate-stderr amp-route --lane weight=3 -r '* => stdout' </dev/null
  run -64 --separate-stderr amp-route --lane standard_weight=0 -r '* => stdout' </dev/null
  run -64 --separate-stderr amp-route --lane privileged_priority=10 -r '* => stdout' </dev/null
}

@test "past its bound a buffer refuses, and nothing is lost" {
  for i in {1..15}; do control "$i" 0; done >messages
  waiting --inbound 10 --patience 0 -v
  wait_until 30 has_lines answers 5
  [ "$(jq -r '.msg.payload.error_code' answers | sort | uniq -c | tr -s ' ')" = " 5 BUFFER_FULL" ]
  begin_reading 10
  [ "$status" -eq 1 ]
  [ "$(numbers got)" = "1 2 3 4 5 6 7 8 9 10" ]
  grep -q 'fifo:a: 5 refused (buffer_full)' said
}

@test "a bound of its own for one port" {
  mkfifo b
  exec 9<>b
  for i in {1..8}; do control "$i" 0; done >messages
  waiting --all -r '* => fifo:b' --inbound 5 --inbound fifo:b=3 --patience 0
  wait_until 30 has_lines answers 7
  timeout 60 head -n 3 <&9 >got_b &
  begin_reading 5
  wait_until 30 has_lines got_b 3
  exec 9<&-
  [ "$(numbers got)" = "1 2 3 4 5" ]
  run -64 --separate-stderr amp-route --inbound x -r '* => stdout' </dev/null
}

@test "a reader that reads is waited for: nothing is refused in a burst" {
  for i in {1..500}; do control "$i" 0; done >messages
  # It begins late, and in steps.
  { command sleep 0.3; for i in {1..50}; do head -c 2700 | cat; command sleep 0.005; done; cat; } <a >got &
  reader=$!
  run -0 --separate-stderr amp-route --inbound 10 --patience 60s -r '* => fifo:a' <messages
  wait $reader
  cmp messages got
}

@test "a reader that does not read holds the input up once, and briefly" {
  exec 8<>a
  { for i in {1..500}; do control "$i" 0; done; for i in {1..500}; do message task_dispatch; done; } |
    shuf --random-source=<(yes) >messages
  amp-route --inbound 10 --patience 300ms -r 'protocol=sw4rm => fifo:a' -r '* => file:x' <messages >answers &
  route=$!
  wait_until 30 has_lines answers 490
  wait_until 30 has_lines x 500
  kill $route
  wait $route || [ $? -eq 130 ]
  exec 8<&-
  [ "$(wc -l <answers)" -eq 490 ]
}

@test "a message without a priority goes by its recipient's communication class" {
  need_tool agent-registry amp-ack
  export AMP_STATE=$PWD/state
  agent-registry register fast --class PRIVILEGED --connector x:y >/dev/null
  agent-registry register slow --class BULK --connector x:y >/dev/null
  { for i in 1 2 3 4 5 6 7 8; do task $i normal c$i | sed 's/"b"/"slow"/g'; done
    task 9 normal c9 | sed 's/"b"/"fast"/g'; } >lines
  exec 8<>a
  amp-route --in in --inbound 20 --agent slow=fifo:a --agent fast=fifo:a -r 'task=T-2026-044,to=admin => file:mark' \
    -r '* => agents' >answers 2>said &
  route=$!
  { cat lines; message escalation; } >in
  wait_until 30 has_lines mark 1
  begin_reading 9
  [ "$(numbers got)" = "1 2 3 4 5 9 6 7 8" ]
}

@test "a payload larger than its type may carry: its sender is answered, and it is kept with its lane" {
  need_tool amp-ack
  export AMP_STATE=$PWD/state
  control 1 -15 | jq -c '.payload.reason = ("x" * 70000) | .content_length = (.payload | tojson | length)' >large
  control 2 0 >>large
  status=0
  amp-route -r '* => file:out' <large >answers 2>said || status=$?
  [ $status -eq 1 ]
  [ "$(jq -r '.msg | "\(.message_type) \(.payload.ack_for_message_id) \(.payload.ack_stage) \(.payload.error_code)"' answers)" = \
    "ACKNOWLEDGEMENT 00000001-0000-4000-8000-000000000000 REJECTED OVERSIZE_PAYLOAD" ] || { cat answers >&2; false; }
  [ "$(wc -l <out)" -eq 1 ]
  [ "$(amp-ack dead list --json | jq -r '"\(.code) \(.routing.lane)"')" = "oversize_payload PRIVILEGED" ] ||
    { amp-ack dead list --json >&2; false; }
}

@test "a dead letter names the port that was tried" {
  need_tool amp-ack
  export AMP_STATE=$PWD/state
  message task_dispatch | ends 69 amp-route --open-timeout 100ms -r '* => fifo:a' >answers
  [ "$(amp-ack dead list --json | jq -c '[.code, .routing.lane, .routing.tried]')" = '["agent_unavailable","STANDARD",["fifo:a"]]' ] ||
    { amp-ack dead list --json >&2; false; }
}

@test "an inbox is handed over by the same limits" {
  export AMP_STATE=$PWD/inbox-state
  echo '{"lanes": {"privileged_run": 1, "privileged_priority": -15}}' >amp.json
  { for i in 1 2 3; do control $i 0; done
    for i in 11 12 13; do control $i -15; done; } | amp-route --config amp.json -r '* => inbox:a' >/dev/null
  cp -R inbox-state as-it-is
  amp-route inbox a --config amp.json >got
  echo "$(numbers got)"
  [ "$(numbers got)" = "11 1 12 2 13 3" ]
  AMP_STATE=$PWD/as-it-is amp-route inbox a >got
  [ "$(numbers got)" = "11 12 13 1 2 3" ]
}
