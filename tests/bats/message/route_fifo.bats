#!/usr/bin/env bats
# amp-route and FIFOs: readers that are slow, late, absent or dead.

load ../lib
load ../messages

setup() {
  need_tool amp-route
  cd "$BATS_TEST_TMPDIR"
  mkfifo a b
}

teardown() {
  # Only what this test started.
  for p in $(jobs -p); do kill "$p" 2>/dev/null || :; done
}

# many N [BYTES]: N messages, to executor.
many() {
  message task_dispatch ".payload.description = (\"x\" * ${2:-1})" |
    jq -c --argjson n "$1" '. as $m | range($n) | . as $i | $m | .msg_id += "\($i)"'
}

@test "a FIFO's reader may come later; at the end it is let go" {
  message task_dispatch >in
  amp-route -r 'to=executor => fifo:a' <in &
  route=$!
  cat a >got
  wait $route
  cmp in got
}

@test "a reader without a message is let go too" {
  message task_dispatch >in
  cat b >none &
  reader=$!
  amp-route -r 'to=executor => file:x' -r 'to=admin => fifo:b' <in
  wait_until 30 gone $reader
  [ ! -s none ]
}

@test "a reader that never comes: answered after the time, the others unaffected" {
  { message task_dispatch; message review_request; } >in
  run -69 --separate-stderr amp-route --open-timeout 300ms -r 'to=executor => fifo:a' \
    -r 'to=reviewer => file:x' <in
  [ "$(jq -r '.code, .retryable' <<<"$output" | paste -sd' ')" = "agent_unavailable true" ]
  cmp x <(message review_request)
}

@test "a reader that takes nothing delays nobody else" {
  many 400 5000 >in
  many 400 5000 | jq -c '.to = "reviewer" | .type = "task_dispatch"' >in2
  # Opens it and never reads.
  exec 8<>a
  paste -d '\n' in in2 | amp-route -r 'to=executor => fifo:a' -r 'to=reviewer => fifo:b' &
  route=$!
  cat b >got
  # All of the other's messages came while the first port stood still.
  cmp in2 got &
  wait_until 30 has_lines got 400
  kill $route
  wait $route || [ $? -eq 130 ]
  exec 8<&-
}

@test "past the bound it is buffer_full, not a drop" {
  many 100 5000 >in
  exec 8<>a
  amp-route --max-pending 64K -r 'to=executor => fifo:a' <in >answers &
  route=$!
  wait_until 30 has_lines answers 70
  n=$(jq -s 'map(select(.code == "buffer_full")) | length' answers)
  # What was not refused comes out.
  cat <&8 >got &
  reader=$!
  status=0
  wait $route || status=$?
  [ $status -eq 1 ]
  wait_until 30 has_lines got $((100 - n))
  kill $reader
  exec 8<&-
  [ "$(wc -l <got)" -eq $((100 - n)) ]
}

@test "a reader that dies: what it had not taken whole goes to the next one" {
  many 100 5000 >in
  amp-route -r 'to=executor => fifo:a' <in &
  route=$!
  # Takes some lines and a part of one.
  dd bs=20300 count=1 iflag=fullblock status=none if=a of=first
  # The router has seen it (a reader that takes over unseen would get the rest of the line).
  let_go() { ! readlink /proc/$route/fd/* | grep -qx "$PWD/a"; }
  wait_until 30 let_go
  cat a >second
  wait $route
  grep '^{.*}$' first >whole || :
  [ "$(wc -l <whole)" -lt 100 ]
  grep -v '^$' second | cat whole - | cmp in -
}

@test "a reader that dies after the last message: what lay unread goes to the next one" {
  many 5 500 >in
  mkfifo in2
  amp-route --in in2 -r 'to=executor => fifo:a' &
  route=$!
  exec 8>in2
  exec 7<a
  cat in >&8
  # Reads one message, and no more.
  read -r first <&7
  # One after the other: the reader is gone before the input ends.
  exec 7<&-
  exec 8>&-
  timeout 60 cat a >rest
  wait $route
  # read took byte by byte: the others are whole.
  echo "$first" | cat - rest | grep -v '^$' | cmp in -
}

@test "three routers into one FIFO tear no line" {
  for i in 1 2 3; do
    many 60 10000 | jq -c ".task_id = \"T-2026-10$i\" | .msg_id |= sub(\"T-2026-044\"; \"T-2026-10$i\")" >in$i
  done
  cat a >got &
  reader=$!
  exec 7>a
  pids=()
  for i in 1 2 3; do
    amp-route -r '* => fifo:a' <in$i &
    pids+=($!)
  done
  for p in "${pids[@]}"; do wait "$p"; done
  exec 7>&-
  wait $reader
  cmp <(grep -v '^$' got | sort) <(sort in1 in2 in3)
}

@test "messages that come by a FIFO: no end before the first writer" {
  amp-route --in a -r '* => file:x' &
  route=$!
  message task_dispatch >a
  wait $route
  cmp x <(message task_dispatch)
}

@test "--out names where the answers go, also a FIFO" {
  amp-route --out b -r 'to=admin => stdout' < <(message task_dispatch) &
  route=$!
  jq -r .code b >code
  status=0
  wait $route || status=$?
  [ $status -eq 1 ]
  [ "$(cat code)" = no_route ]
}

@test "lines go on at once, not at the end" {
  mkfifo in
  amp-route --eager -r '* => file:x' --in in &
  route=$!
  exec 8>in
  message task_dispatch >&8
  wait_until 30 has_lines x 1
  exec 8>&-
  wait $route
}

@test "a signal ends it with 130, also while a reader is missing" {
  many 3 >in
  mkfifo in2
  amp-route -r '* => fifo:a' --in in2 &
  route=$!
  exec 8>in2
  cat in >&8
  kill -TERM $route
  status=0
  wait $route || status=$?
  exec 8>&-
  [ $status -eq 130 ]
}
