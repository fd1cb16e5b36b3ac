#!/usr/bin/env bats
# --metrics: what is counted, in both formats, within bounds.

load lib
load messages

setup() {
  need_tool amp-ack
  cd "$BATS_TEST_TMPDIR"
  export AMP_STATE=$PWD/state
}

teardown() {
  for p in $(jobs -p); do kill -9 "$p" 2>/dev/null || :; done
}

D=task_dispatch-T-2026-044-1772116327001
# values NAME: LABELS VALUE of the last record, a line each.
values() {
  jq -src --arg n "$1" '.[-1].metrics[] | select(.name == $n) |
    "\((.labels // {}) | to_entries | map(.value) | join(" ")) \(.value // .count)"' m.ndjson
}
om() { "$AMP_BUILD/tests/conformance/openmetrics" "$1"; }

@test "track: received, sent, acknowledgements, refusals, times" {
  {
    message task_dispatch
    message task_dispatch
    message task_dispatch '.payload.description = "other"' # another message under the same id
    message task_dispatch 'del(.to)'
    record ack ".ref_msg_id = \"$D\" | .ack_stage = \"RECEIVED\""
    record ack ".ref_msg_id = \"$D\" | .ack_stage = \"READ\""
    record nack '.ref_msg_id = "unknown"'
  } >in
  run -1 amp-ack --metrics m.ndjson <in
  [ "$(values messages.received_total)" = "amp STANDARD 6" ]
  [ "$(values messages.sent_total)" = "amp executor STANDARD 2" ]
  [ "$(values messages.redelivered_total)" = "amp executor 1" ]
  [ "$(values messages.acked_total)" = $'amp executor RECEIVED 1\namp executor READ 1' ]
  [ "$(values messages.rejected_total | sort)" = $'amp duplicate_msg_id 1\nmissing_field 1' ]
  # The histogram has one value for each acknowledgement, and its buckets rise to it.
  jq -se '[.[-1].metrics[] | select(.name == "messages.ack_latency_seconds")] | length == 2 and
    all(.count == 1 and .sum < 60 and (.buckets | [.[]] | . == sort and .[-1] == 1))' m.ndjson
}

@test "send: what it answers" {
  message task_dispatch | amp-ack >/dev/null
  message task_dispatch | amp-ack send --stage REJECTED --code branch_violation --metrics m.ndjson >/dev/null
  [ "$(values router.nacks_total)" = "amp executor branch_violation 1" ]
  # Also without a state directory.
  message task_dispatch | env -u AMP_STATE amp-ack send --metrics m.txt --metrics-format openmetrics >/dev/null
  run -0 om m.txt
  grep -qx 'amp_messages_acked_total{agent_id=executor|protocol=amp|stage=READ|tool=amp-ack.send|} 1' <<<"$output"
}

@test "OpenMetrics text is whole at every moment" {
  mkfifo fifo
  amp-ack --metrics m.txt --metrics-format openmetrics --metrics-interval 1ms -i fifo >/dev/null 3>&- &
  track=$!
  exec 5>fifo
  wait_until 10 test -e m.txt
  for ((round = 0; round < 60; round++)); do
    message task_dispatch ".msg_id = \"task_dispatch-T-2026-044-$round\"" >&5
    run -0 om m.txt
  done
  exec 5>&-
  wait $track
  om m.txt | grep -q '^amp_messages_sent_total{.*} 60$'
  [ "$(find . -name 'm.txt*' | wc -l)" -eq 1 ]
}

@test "label sets are bounded: the rest is counted as other" {
  message task_dispatch | jq -c '. as $m | range(30) as $i | $m | .msg_id += "\($i)"' | amp-ack >/dev/null
  record ack '.ack_stage = "RECEIVED"' | jq -c --arg d "$D" '. as $a | range(30) as $i | $a |
    .ref_msg_id = $d + "\($i)" | .from = ["executor", "reviewer", "coordinator"][$i % 3]' >acks
  amp-ack --metrics m.ndjson --metrics-sets 1 <acks >/dev/null
  [ "$(values messages.acked_total)" = $'amp executor RECEIVED 10\nother other 20' ]
  # Of the acknowledgements and of their times.
  [ "$(values metrics.other_total)" = " 40" ]
}

@test "a reader of the metrics that is slow, or gone, holds up nothing" {
  mkfifo slow
  sleep 100 <>slow 3>&- &
  message task_dispatch | jq -c '. as $m | range(300) as $i | $m | .msg_id += "\($i)"' >in
  (while read -r line; do echo "$line"; done <in) |
    timeout 30 amp-ack --metrics slow --metrics-interval 1ms | cmp - in
  # A record that could not be written whole does not stand there as half a line.
  timeout 1 cat slow >got || :
  head -c -1 got | jq -c .final >/dev/null
}
