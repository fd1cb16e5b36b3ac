#!/usr/bin/env bats
# The events of one negotiation stay in order, whatever overtakes whom beside them.

load ../lib
load ../messages
load ../order

setup() {
  need_tool amp-route
  cd "$BATS_TEST_TMPDIR" || exit
}

teardown() {
  for p in $(jobs -p); do kill "$p" 2>/dev/null || :; done
}

# talks N: N messages of four negotiations, and of a scheduler whose commands are urgent or not.
talks() {
  jq -nc --argjson n "$1" --argjson seed "${2:-1}" '
    def rnd(k): ((. * 1103515245 + 12345) / 65536 | floor) % k;
    def id(a; b): "\("0000000\(a)" | .[-8:])-0000-4000-8000-\("00000000000\(b)" | .[-12:])";
    range($n) | . as $i | ($i * 7919 + $seed * 104729) | rnd(6) as $who | rnd(31) as $prio
    | {message_id: id($i; $seed), producer_id: "p\($who)", sequence_number: $i, retry_count: 0,
       content_type: "application/json"}
    + if $who < 4 then
        {correlation_id: id(900 + $who; $seed), message_type: "NEGOTIATION",
         payload: {kind: "propose", ts: "2026-02-25T16:22:10Z", from: "p\($who)", ct: "text/plain",
                   payload_b64: "eA=="}}
      else
        {correlation_id: id(990; $seed), message_type: "CONTROL",
         payload: {command: "RUN", agent_id: "ann", priority: ($prio - 19)}}
      end
    | .content_length = (.payload | tojson | utf8bytelength)'
}

@test "through lanes to a reader that comes late" {
  talks 400 >messages
  mkfifo a
  exec 8<>a
  amp-route --inbound 500 --lane privileged_priority=-5 -r '* => fifo:a' <messages >answers &
  route=$!
  # All is read, and most of it waits in lanes behind the full FIFO.
  wait_until 30 grep -q "^pos:[[:space:]]*$(stat -c %s messages)$" "/proc/$route/fdinfo/0"
  wait_until 30 grep -q '^State:.S' "/proc/$route/status"
  cat <&8 >got &
  reader=$!
  wait_until 30 has_lines got 400
  wait "$route"
  kill "$reader"
  [ ! -s answers ]
  order_kept messages got >/dev/null
  # The test would see it: commands did overtake.
  run -1 cmp -s messages got
  run -1 order_kept <(tac messages) got
}

@test "a router that is killed leaves them in order to the next one" {
  talks 300 >messages
  mkfifo a
  exec 8<>a
  amp-route -s state --inbound 500 --lane privileged_priority=-5 -r '* => fifo:a' <messages >answers &
  route=$!
  head -c 20000 <&8 >got
  kill -9 "$route"
  wait "$route" || :
  timeout 60 amp-route -s state --inbound 500 --lane privileged_priority=-5 -r '* => fifo:a' <messages >>answers &
  route=$!
  cat <&8 >>got &
  reader=$!
  wait "$route"
  wait_until 30 grep -q '"sequence_number":299[,}]' got
  kill "$reader"
  # What comes twice counts where it came first.
  jq -cR 'fromjson? // empty' got | awk '!seen[$0]++' >first
  order_kept messages first >/dev/null
}
