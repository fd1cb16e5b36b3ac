#!/usr/bin/env bats
# What a reader took and did not acknowledge before it died goes to the next one; credits of ports.

load ../lib
load ../messages

setup() {
  need_tool amp-route amp-ack
  cd "$BATS_TEST_TMPDIR"
  export AMP_STATE=$PWD/state
  mkfifo a in
}

teardown() {
  for p in $(jobs -p); do kill "$p" 2>/dev/null || :; done
}

many() {
  message task_dispatch | jq -c --argjson n "$1" '. as $m | range($n) | . as $i | $m | .msg_id += "\($i)"'
}
ids() { jq -r .msg_id "$@"; }
# reader FILE: takes messages until it is killed.
reader() {
  cat a >"$1" 8>&- &
  reader=$!
}
track() { amp-ack track <"$1" >"$1.tracked"; }
ack() {
  record ack ".ref_msg_id = \"$1\"" | amp-ack track >/dev/null
}
start() {
  amp-route --in in "$@" 2>told &
  route=$!
  exec 8>in
}

@test "a killed reader's unacknowledged messages go to the next one, first and in order" {
  many 6 >m
  track m
  start -r '* => fifo:a'
  head -n 4 m >&8
  reader first
  wait_until 30 has_lines first 4
  # The second is acknowledged.
  ack "$(sed -n 2p m | ids)"
  kill -KILL $reader
  wait_until 30 grep -q 'its reader is gone: 3 unacknowledged' told
  tail -n 2 m >&8
  reader second
  wait_until 30 has_lines second 5
  exec 8>&-
  wait $route
  wait_until 30 has_lines second 5
  { sed -n '1p;3,6p' m; } | cmp - second
  [ "$(jq -c 'select(.event == "redeliver").state.redelivered' state/log/*.ndjson)" = \
    "$(sed -n '1p;3,4p' m | jq -sc 'map(.msg_id)')" ]
}

@test "what is acknowledged, or not in the ledger, does not come again" {
  many 3 >m
  head -n 2 m >n
  track n
  start -r '* => fifo:a'
  cat m >&8
  reader first
  wait_until 30 has_lines first 3
  ack "$(sed -n 1p m | ids)"
  ack "$(sed -n 2p m | ids)"
  kill -KILL $reader
  wait_until 30 gone $reader
  exec 8>&-
  wait $route
  [ ! -s told ]
}

@test "a killed router's next run delivers again what was not acknowledged, and only that" {
  many 3 >m
  track m
  start -r '* => fifo:a'
  cat m >&8
  reader first
  wait_until 30 has_lines first 3
  ack "$(sed -n 2p m | ids)"
  kill -KILL $route
  wait $route || :
  exec 8>&-
  amp-route -r '* => file:out' </dev/null
  sed -n '1p;3p' m | cmp - out
  amp-route -r '* => file:out2' </dev/null
  [ ! -s out2 ]
}

@test "at the end of input, or by a signal, what a living reader has is delivered" {
  n=0
  for how in end signal; do
    many 2 | jq -c ".msg_id += \"$((++n))\"" >m
    track m
    start -r '* => fifo:a'
    cat m >&8
    reader first
    wait_until 30 has_lines first 2
    [ $how = end ] || kill -TERM $route
    exec 8>&-
    wait $route || [ $how = signal ]
    amp-route -r '* => file:out' </dev/null
    [ ! -s out ]
    rm out
  done
}

@test "a reader that dies with the end of input: the next one gets it, or it is answered" {
  many 2 >m
  track m
  amp-route --open-timeout 3s --in in -r '* => fifo:a' >answers 2>told &
  route=$!
  exec 8>in
  reader first
  cat m >&8
  wait_until 30 has_lines first 2
  kill -KILL $reader
  wait_until 30 grep -q 'its reader is gone: 2' told
  exec 8>&-
  status=0
  wait $route || status=$?
  [ $status -eq 69 ]
  [ "$(jq -r .code answers | sort -u)" = agent_unavailable ]
}

@test "credits: no more than N unacknowledged messages are out; an acknowledgement that passes gives one back" {
  many 5 >m
  AMP_STATE= amp-route --in in --credits 2 --agent executor=fifo:a --agent coordinator=file:rest -r '* => agents' \
    --metrics metrics --metrics-interval 50ms &
  route=$!
  exec 8>in
  cat m >&8
  reader got
  wait_until 30 has_lines got 2
  zero() { jq -se 'last | .. | objects | select(.name? == "router.credits") | .value == 0' metrics >/dev/null; }
  record ack ".ref_msg_id = \"$(sed -n 1p m | ids)\"" >&8
  wait_until 30 has_lines got 3
  record ack ".ref_msg_id = \"$(sed -n 3p m | ids)\"" >&8
  record ack ".ref_msg_id = \"$(sed -n 2p m | ids)\"" >&8
  wait_until 30 has_lines got 5
  exec 8>&-
  wait $route || :
  cmp m got
  grep -q 'router.credits' metrics
  grep -q 'router.enqueue_latency' metrics
}

@test "credits: an acknowledgement in the ledger gives one back" {
  many 3 >m
  track m
  start --credits 1 --agent executor=fifo:a -r 'to=executor => agents'
  cat m >&8
  reader got
  for n in 1 2 3; do
    wait_until 30 has_lines got $n
    [ "$(wc -l <got)" -eq $n ]
    ack "$(sed -n ${n}p m | ids)"
  done
  exec 8>&-
  wait $route
  cmp m got
}

@test "credits: what waits at the end without a state is refused, not dropped" {
  many 3 >m
  reader got
  status=0
  AMP_STATE= amp-route --credits 1 --agent executor=fifo:a -r '* => agents' <m >answers || status=$?
  [ $status -eq 1 ]
  wait_until 30 has_lines got 1
  head -n 1 m | cmp - got
  [ "$(jq -r '"\(.code) \(.retryable)"' answers | sort | uniq -c | xargs)" = "2 buffer_full true" ]
}
