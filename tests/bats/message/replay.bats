#!/usr/bin/env bats
# What a state recorded is read again: amp-route --from, amp-route replay.

load ../lib
load ../messages

setup() {
  need_tool amp-ack amp-route
  cd "$BATS_TEST_TMPDIR" || exit
  export AMP_STATE=$PWD/state
}

teardown() {
  for p in $(jobs -p); do kill "$p" 2>/dev/null || :; done
}

# some FROM TO [JQ]: messages with these numbers in their ids.
some() {
  message task_dispatch "${3:-.}" |
    jq -c --argjson a "$1" --argjson b "$2" '. as $m | range($a; $b + 1) | . as $i | $m | .msg_id = "task_dispatch-T-2026-044-\($i)"'
}
numbers() { jq -r '.msg_id | sub(".*-"; "")' "$@" | paste -sd' '; }

@test "replay writes what was recorded, byte for byte, and changes nothing" {
  # Two through the ledger and a router, two through a router only, one with a payload of its own file.
  some 1 2 | amp-ack track | amp-route -r '* => file:sent'
  some 3 4 | sed 's/": "/":  "/' | amp-route -r '* => file:sent'
  some 5 5 '.payload.description = ("é" * 700000)' | amp-route --as other -r '* => file:sent'
  cp -r state before
  amp-route replay >again
  cmp again sent
  run -0 --separate-stderr amp-route replay --dry-run --where 'id=*-4|*-2'
  [ -z "$output" ]
  [ "$(grep -c 'redelivered: task_dispatch' <<<"$stderr")" = 2 ]
  [[ $stderr == *"2 messages" ]]
  amp-route replay --where 'to=executor' --where 'id=*-3' --wrap >wrapped
  [ "$(jq -c '[.redelivered, .msg.msg_id]' wrapped)" = '[true,"task_dispatch-T-2026-044-3"]' ]
  frame=$(jq .frame wrapped)
  [ "$(amp-route replay --from "$frame" --to "$frame" | numbers)" = "3 4" ]
  [ "$(amp-route replay --to $((frame - 1)) | numbers)" = "1 2" ]
  [ -z "$(amp-route replay --from end)" ]
  diff -r state before
}

@test "replay filters by source, producer and correlation" {
  for n in 1 2 3; do
    jq -nc --argjson n "$n" '{eventId: "evt_\($n)", seq: $n, kind: "task_update", sourceNodeId: "n\($n % 2)",
      sourceAgentId: "a\($n)", corrId: "c\($n)", createdAt: "2026-02-25T16:22:10Z",
      payload: {taskId: "t", status: "in_progress"}, trace: {attempt: 1}}'
  done | amp-route -r '* => file:out'
  [ "$(amp-route replay --where source=n1 | jq -r .seq | paste -sd,)" = 1,3 ]
  [ "$(amp-route replay --where from=a2 | jq -r .seq)" = 2 ]
  [ "$(amp-route replay --where correlation=c3 --where type=task_update | jq -r .seq)" = 3 ]
}

@test "wrong positions, predicates and states are reported" {
  some 1 1 | amp-route -r '* => file:sent'
  run -1 amp-route replay --from nobody
  [[ $output == *"nobody has no cursor over the log"* ]]
  run -64 amp-route replay --where 'jq:.'
  run -64 amp-route replay --where 'no'
  run -64 amp-route replay more
  run -1 amp-route --from nobody -r '* => stdout' </dev/null
  AMP_STATE=elsewhere run -69 amp-route replay
  [ ! -e elsewhere ]
  unset AMP_STATE
  run -64 amp-route replay
  run -64 amp-route --from start -r '* => stdout' </dev/null
}

@test "--from delivers the log again, then the input; by name it goes on where it was" {
  some 1 3 | amp-ack track | amp-route -r '* => file:sent'
  some 9 9 | amp-route --as again --from start -r '* => file:out'
  [ "$(numbers out)" = "1 2 3 9" ]
  some 4 5 | amp-route -r '* => file:sent'
  # Its own input is recorded too: it comes once more, what it read again does not.
  run -0 --separate-stderr amp-route --as again --from again -r '* => file:out' </dev/null
  [[ $stderr == *"3 messages of the log"*"are delivered again"* ]]
  [ "$(numbers out)" = "1 2 3 9 9 4 5" ]
  run -0 --separate-stderr amp-route --as again --from again -r '* => file:out' </dev/null
  [ -z "$stderr" ]
  [ "$(numbers out)" = "1 2 3 9 9 4 5" ]
  [ -z "$(find state/run -name 'pin.*')" ]
  # Another router may do it under that name.
  amp-ack cursors move again @log 0
  amp-route --as third --from again -r 'id=*-2 => file:two' -r '* => dead' </dev/null
  [ "$(numbers two)" = 2 ]
}

@test "a router that is killed while it reads the log loses nothing" {
  some 1 3000 | amp-ack track >/dev/null
  amp-route --as re --from start -r '* => file:out' </dev/null 2>err &
  router=$!
  wait_until 20 test -s out
  kill -9 "$router"
  wait "$router" || :
  for _ in 1 2 3; do
    timeout --foreground -s KILL 0.05 amp-route --as re --from re -r '* => file:out' </dev/null 2>>err || :
  done
  amp-route --as re --from re -r '* => file:out' </dev/null
  # A half line of who was killed is ended by the next.
  grep '}$' out | numbers | tr ' ' '\n' | sort -nu | cmp - <(seq 3000)
}
