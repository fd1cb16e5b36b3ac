#!/usr/bin/env bats
# --metrics: what is counted, in both formats, within bounds; and the table that tells of it.

load ../lib
load ../messages

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
  wait_until 30 test -e m.txt
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

# table: the rows of amp-metrics(7), as "name type label,label".
table() {
  sed -nE 's/^\.It Li ([a-z_.]+) Pq ([a-z]+) ?/\1 \2 /p' "$AMP_TOP/man/amp-metrics.7" | sed 's/, /,/g'
}

@test "amp-metrics(7) has the list" {
  jq -Rrs '{COUNTER: "counter", GAUGE: "gauge", TIMES: "histogram", COUNTS: "histogram"} as $types
    | {p: "protocol", a: "agent_id", l: "lane"} as $labels | gsub("\\\\\n"; " ")
    | scan("X\\((\\w+), (\\w+), \"([^\"]*)\", \"[^\"]*\", \"([^\"]*)\", \"([^\"]*)\"") | . as $m
    | "\($m[2]) \($types[$m[1]]) \([$m[3] | split("")[] | $labels[.] // $m[4]] | join(","))"' \
    "$AMP_TOP/lib/message/metrics/list.h" >list
  [ "$(wc -l <list)" -gt 30 ]
  table | diff - list
}

# sw4rm N TYPE TOKEN: attempt N at an operation.
sw4rm() {
  jq -nc --arg n "$1" --arg type "$2" --arg t "$3" '{call_id: "c", status: "OK"} as $p | {message_id: "11111111-1111-4111-8111-11111111111\($n)",
    producer_id: "cli", correlation_id: "7f3f41a2-2017-4b8f-9b8b-2ad3caaee001", sequence_number: ($n | tonumber),
    retry_count: 0, message_type: $type, content_type: "application/json", content_length: ($p | tojson | length),
    payload: $p, idempotency_token: $t}'
}
control() {
  jq -nc --argjson n "$1" --argjson p "$2" '{command: "RUN", agent_id: "ann", priority: $p} as $payload |
    {message_id: "\(10000000 + $n)-0000-4000-8000-000000000000", producer_id: "scheduler", correlation_id: "c",
    sequence_number: $n, retry_count: 0, message_type: "CONTROL", content_type: "application/json",
    content_length: ($payload | tojson | length), payload: $payload}'
}
event() {
  jq -nc --argjson n "$1" '{eventId: "evt_\($n)", seq: $n, kind: "message", sourceNodeId: "vps", sourceAgentId: "arch",
    createdAt: "2026-02-25T16:22:10Z", payload: {toAgents: ["mbp"], subject: "s", body: "b"}, trace: {attempt: 1}}'
}

@test "the router says of an inbox what is in it, whoever put it there" {
  need_tool amp-route
  for i in 1 2 3; do message review_request ".msg_id = \"review_request-T-2026-044-$i\""; done >in
  amp-route --inbound 2 -r '* => inbox:reviewer' --metrics m.ndjson <in >/dev/null || [ $? -eq 1 ]
  [ "$(values router.inbound_queue_depth) $(values router.inbound_queue_capacity)" = "inbox:reviewer 2 inbox:reviewer 2" ]
  [ "$(values messages.sent_total)" = "amp inbox:reviewer STANDARD 2" ]
  [ "$(values router.enqueue_latency_seconds)" = "inbox:reviewer 2" ]
  amp-route inbox reviewer --one >/dev/null
  amp-route --as two --inbound 2 -r '* => inbox:reviewer' --metrics m.ndjson </dev/null
  [ "$(values router.inbound_queue_depth)" = "inbox:reviewer 1" ]
}

@test "who only looks where a message would go has metrics too, without a state" {
  message task_dispatch | env -u AMP_STATE amp-route --dry-run --metrics dry -r '* => inbox:ann' >would
  [ "$(jq -r '.ports[]' would)" = inbox:ann ]
  jq -es '.[-1] | .final and any(.metrics[]; .name == "messages.received_total")' dry
}

@test "every metric of the table is written, as the table says" {
  need_tool amp-route
  M="--metrics all.ndjson"
  # The ledger: what passes, comes again, is refused, acknowledged, late, overdue, sent again, given up.
  { message task_dispatch; message task_dispatch; message task_result 'del(.to)'; record ack ".ref_msg_id = \"$D\""
    record nack ".ref_msg_id = \"$D\""; sw4rm 1 DATA cli:op:1; sw4rm 2 DATA cli:op:1; sw4rm 3 TOOL_RESULT cli:op:2; } |
    ends 1 amp-ack $M >/dev/null
  message task_dispatch '.msg_id = "task_dispatch-T-2026-044-9"' | amp-ack track --now 2026-01-01T00:00:00Z >/dev/null
  amp-ack sweep --now 2026-01-01T01:00:00Z --retries 1 --backoff 1s $M >/dev/null
  amp-ack sweep --now 2026-01-01T01:00:10Z --retries 1 --backoff 1s $M >/dev/null
  amp-ack sweep --now 2026-01-01T02:00:10Z --retries 1 --backoff 1s $M >/dev/null
  record ack '.ref_msg_id = "task_dispatch-T-2026-044-9" | .ack_stage = "READ"' | amp-ack $M >/dev/null
  record ack ".ref_msg_id = \"$D\" | .from = \"reviewer\"" >acks
  record ack ".ref_msg_id = \"$D\" | .from = \"admin\"" | cat acks - | amp-ack $M --metrics-sets 1 >/dev/null
  # Inboxes: full, read, worked at.
  for i in 1 2 3; do message review_request ".msg_id = \"review_request-T-2026-044-$i\""; done |
    ends 1 amp-route --credits 2 -r '* => inbox:reviewer' $M >/dev/null
  amp-route inbox reviewer --one $M >/dev/null
  amp-route inbox reviewer $M --exec true
  # Lanes, and a port that is full.
  mkfifo a in
  exec 8<>a
  { for i in 1 2 3 4 5 6; do control $i 0; done; for i in 11 12 13 14; do control $i -15; done; } >messages
  amp-route --in in $M --inbound 20 --credits 30 --lane privileged_burst=2 --lane privileged_rate=0 \
    --lane starved_ms=1 -r 'task=T-2026-044 => file:mark' -r '* => fifo:a' >/dev/null 2>&1 3>&- 8>&- &
  route=$!
  { cat messages; message escalation; } >in
  wait_until 30 has_lines mark 1
  command sleep 0.05
  cat <&8 >got 3>&- &
  wait_until 30 has_lines got 10
  kill $!
  exec 8<&-
  wait $route
  # Cursors: a gap, given up; another that stays; a lease that ends.
  # 75: the input ended before the gap was given up.
  { event 1; event 3; } | amp-route --cursor mbp --on-gap skip --gap-timeout 1ms -r '* => file:out' $M >/dev/null || [ $? -eq 75 ]
  amp-route --cursor mbp --on-gap skip --gap-timeout 1ms -r '* => file:out' $M </dev/null >/dev/null
  { event 4; event 6; } | ends 75 amp-route --as two --cursor hub --gap-timeout 1h -r '* => file:out' $M >/dev/null
  amp-ack sweep --now "$(date -u -d '+2 hours' +%FT%TZ)" $M >/dev/null
  # All that was written is in the table, with its type and no other labels …
  jq -r '.metrics[] | "\(.name) \(.type) \((.labels // {}) | keys_unsorted | join(","))"' all.ndjson | sort -u >seen
  table | sort >rows
  awk 'NR == FNR { type[$1] = $2; split($3, l, ","); for (i in l) has[$1, l[i]] = 1; next }
    { if (type[$1] != $2) { print "type: " $0; bad = 1 }
      n = split($3, l, ","); for (i = 1; i <= n; i++) if (!has[$1, l[i]]) { print "label: " $0; bad = 1 } }
    END { exit bad }' rows seen
  # … and all of the table was written.
  diff <(cut -d' ' -f1 rows) <(cut -d' ' -f1 seen | sort -u)
  # Also as OpenMetrics text.
  amp-ack sweep --metrics m.txt --metrics-format openmetrics >/dev/null
  run -0 om m.txt
  grep -q '^amp_cursor_position{agent_id=mbp|source=vps|tool=amp-ack.sweep|} 3$' <<<"$output"
}
