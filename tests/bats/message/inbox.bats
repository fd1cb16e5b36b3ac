#!/usr/bin/env bats
# Inboxes: one message at a time, exactly once, by whom and when.

load ../lib
load ../messages
load ../lanes

setup() {
  cd "$BATS_TEST_TMPDIR"
  export AMP_STATE=$PWD/state
}

teardown() {
  [ -z "${follower-}" ] || kill "$follower" 2>/dev/null || true
}

# put AGENT ID...: messages for it, through a router.
put() {
  local agent=$1 id
  shift
  for id in "$@"; do message task_dispatch ".msg_id = \"task_dispatch-T-2026-044-$id\" | .to = \"$agent\""; done |
    amp-route -r "to=$agent => inbox:$agent" -r '* => stdout'
}

ids() { jq -r '.msg_id | split("-") | last'; }
state_of() { amp-ack status --all --json | jq -r --arg i "task_dispatch-T-2026-044-$1" 'select(.msg_id == $i) | .state'; }
events() { jq -r --arg k "inbox.$1.task_dispatch-T-2026-044-$2" 'select(.key == $k) | .event' state/log/*.ndjson | paste -sd' '; }

@test "in order, byte for byte, once; RECEIVED when put, READ when handed over" {
  message task_dispatch '.msg_id = "task_dispatch-T-2026-044-1"' >in
  message task_dispatch '.msg_id = "task_dispatch-T-2026-044-2"' >>in
  amp-route -r '* => inbox:executor' <in
  [ "$(state_of 1) $(state_of 2)" = "RECEIVED RECEIVED" ]
  run -0 amp-route inbox executor --list
  [ "${#lines[@]}" -eq 2 ]
  AMP_AGENT=boss run -77 --separate-stderr amp-route inbox executor
  [[ -z $output && $stderr == *'only people and the agent itself may'* ]]
  [ "$(state_of 1) $(state_of 2)" = "RECEIVED RECEIVED" ]
  AMP_AGENT=executor amp-route inbox executor --one >out
  head -n 1 in | cmp - out
  [ "$(state_of 1) $(state_of 2)" = "READ RECEIVED" ]
  amp-route inbox executor >>out
  cmp in out
  [ "$(state_of 2)" = READ ]
  run -1 --separate-stderr amp-route inbox executor
  [ -z "$output" ]
  run -1 --separate-stderr amp-route inbox executor --list
  # Sent again by somebody who does not know: it was read.
  amp-route -r '* => inbox:executor' <in
  run -1 --separate-stderr amp-route inbox executor
  [ "$(events executor 1)" = "put offer read" ]
}

@test "each recipient of a message has its own delivery" {
  message task_dispatch >in
  amp-route --all -r '* => inbox:one' -r '* => inbox:two' <in
  amp-route inbox one | cmp - in
  run -1 --separate-stderr amp-route inbox one
  amp-route inbox two | cmp - in
  [ "$(amp-ack status --all --json | jq -r '[.acks[] | .stage + " " + .by] | sort | join(", ")')" = \
    "READ one, READ two, RECEIVED one, RECEIVED two" ]
}

@test "a full inbox refuses: buffer_full, answered and kept, nothing dropped" {
  run -1 --separate-stderr put executor {1..12}
  [ "${#lines[@]}" -eq 2 ]
  [ "$(jq -r '.code + " " + .ref_msg_id' <<<"${lines[0]}")" = "buffer_full task_dispatch-T-2026-044-11" ]
  [ "$(amp-ack dead list --json | jq -r '.code + " " + .route' | sort -u)" = "buffer_full inbox:executor" ]
  [ "$(amp-route inbox executor | ids | paste -sd' ')" = "1 2 3 4 5 6 7 8 9 10" ]
  # The dead letters come once there is room.
  amp-ack dead requeue --every | amp-route -r '* => inbox:executor'
  [ "$(amp-route inbox executor | ids | sort -n | paste -sd' ')" = "11 12" ]
}

@test "urgent messages have places of their own in an inbox, which BULK cannot fill" {
  local n
  for n in {10..24}; do control "$n" 15; done >bulk
  for n in {41..43}; do control "$n" -15; done >urgent
  route() { amp-route -r '* => inbox:b' "$@"; }
  waiting() { amp-route inbox b --list --json | jq -r '.msg.sequence_number' | paste -sd' '; }
  run -1 --separate-stderr route <bulk
  [ "$stderr" = "amp-route: warning: refused: 5 buffer_full" ]
  [ "$(waiting)" = "10 11 12 13 14 15 16 17 18 19" ]
  run -1 --separate-stderr route < <(control 31 0)
  run -1 --separate-stderr route <urgent
  [ "$(waiting)" = "10 11 12 13 14 15 16 17 18 19 41 42" ]
  [ "$(amp-ack dead list --json | jq -r '.code + " " + .id[6:8]' | paste -sd,)" = "buffer_full 20,buffer_full 21,\
buffer_full 22,buffer_full 23,buffer_full 24,buffer_full 31,buffer_full 43" ]
  amp-route inbox b --one | jq -e '.sequence_number == 41'
  # How many is set, also in the configuration; none is none.
  echo '{"lanes": {"privileged_places": 3}}' >amp.json
  run -0 route --config amp.json < <(control 51 -15; control 52 -15)
  run -1 --separate-stderr route --lane privileged_places=0 < <(control 53 -15)
  run -64 route --lane privileged_places=-1 </dev/null
}

@test "--inbound says how many may wait" {
  run -1 --separate-stderr amp-route --inbound inbox:b=2 -r 'to=executor => inbox:a' -r '* => inbox:b' < <(
    for i in {1..11}; do message task_dispatch ".msg_id = \"task_dispatch-T-2026-044-$i\""; done
    for i in {21..23}; do message task_dispatch ".msg_id = \"task_dispatch-T-2026-044-$i\" | .to = \"reviewer\""; done
  )
  [ "$(jq -r '.ref_msg_id | split("-") | last' <<<"$output" | paste -sd' ')" = "11 23" ]
}

@test "amp-ack status reports inboxes" {
  put executor 1 2
  put reviewer 3
  amp-route inbox reviewer --between-turns >/dev/null
  run -0 amp-ack status
  [[ "$output" == *"inbox of executor: 2 of 10, the oldest for "* ]]
  [[ "$output" == *"inbox of reviewer: 0 of 10, busy"* ]]
  run -0 amp-ack status --open --json
  [[ "$output" != *inbox* ]]
}

@test "credits: what is read and not ended counts, and its end gives room again" {
  run -1 --separate-stderr amp-route --credits 2 -r '* => inbox:executor' < <(
    for i in 1 2 3; do message task_dispatch ".msg_id = \"task_dispatch-T-2026-044-$i\""; done
  )
  [ "$(jq -r '.ref_msg_id[-1:] + .code' <<<"$output")" = 3buffer_full ]
  amp-route inbox executor >got
  # Read, not done: no room yet.
  run -1 --separate-stderr amp-route --credits 2 -r '* => inbox:executor' < <(message task_dispatch '.msg_id = "task_dispatch-T-2026-044-4"')
  head -n 1 got | amp-ack send --stage FULFILLED >/dev/null
  amp-route --credits 2 -r '* => inbox:executor' < <(message task_dispatch '.msg_id = "task_dispatch-T-2026-044-5"')
  run -1 --separate-stderr amp-route --credits 2 -r '* => inbox:executor' < <(message task_dispatch '.msg_id = "task_dispatch-T-2026-044-6"')
  [ "$(amp-route inbox executor | ids)" = 5 ]
}

@test "SW4RM is answered RECEIVED, the Runtime Protocol accepted, AMP not" {
  sw4rm=$(jq -cn '{message_id: "7f3f41a2-2017-4b8f-9b8b-2ad3caaee001", producer_id: "agent-1",
    correlation_id: "7f3f41a2-2017-4b8f-9b8b-2ad3caaee002", sequence_number: 1, retry_count: 0,
    message_type: "DATA", content_type: "application/json", content_length: 2,
    idempotency_token: "agent-1:op:0011223344556677", hlc_timestamp: "1772116327001000.000000.agent-1",
    timestamp: "2026-02-26T14:32:07Z", payload: {}}')
  rtp=$(jq -cn '{eventId: "evt_1", seq: 1, kind: "message", sourceNodeId: "n", sourceAgentId: "architect",
    corrId: "corr_1", createdAt: "2026-02-25T16:22:10.123Z", expiresAt: "2099-02-26T16:22:10.123Z",
    payload: {toAgents: ["executor"], subject: "s", body: "b", priority: "normal", expectsReply: false},
    trace: {attempt: 1}}')
  { echo "$sw4rm"; echo "$rtp"; message task_dispatch; } | amp-route -r '* => inbox:executor' >answers
  amp-validate <answers >/dev/null
  [ "$(wc -l <answers)" -eq 2 ]
  [ "$(jq -r 'select(.msg) | [.to, .msg.correlation_id[-4:], .msg.payload.ack_for_message_id[-4:],
    .msg.payload.ack_stage, .msg.producer_id] | join(" ")' answers)" = "agent-1 e002 e001 RECEIVED executor" ]
  [ "$(jq -r 'select(.eventId) | [.kind, .payload.ackType, .payload.refEventId, .payload.refKind, .corrId,
    .payload.ackedByAgentId, .sourceNodeId, .seq] | join(" ")' answers)" = "ack accepted evt_1 message corr_1 executor amp-route 1" ]
  [ "$(amp-route inbox executor | wc -l)" -eq 3 ]
  [ "$(amp-ack status --all --json | jq -r .state | sort -u)" = READ ]
  # The answers are written: the next router has none left.
  run -0 amp-route -r '* => inbox:executor' </dev/null
  [ -z "$output" ]
}

@test "urgent messages come first; what belongs together keeps its order" {
  { control 1 10; control 2 0; control 3 -19; } | amp-route -r '* => inbox:ann' >/dev/null
  amp-route inbox ann >got
  [ "$(jq -r '.payload.priority' got | paste -sd' ')" = "-19 0 10" ]
  # Of one conversation the last is urgent.
  { task 4 low c1; task 5 normal c1; task 6 high c1; } >in
  amp-route -r '* => inbox:bob' <in >/dev/null
  amp-route inbox bob | cmp - in
}

@test "what has no id is known by its bytes" {
  message ack >in
  amp-route -r '* => inbox:coordinator' <in
  amp-route -r '* => inbox:coordinator' <in
  amp-route inbox coordinator | cmp - in
  run -1 --separate-stderr amp-route inbox coordinator
}

@test "another message under the same id is not put" {
  message task_dispatch >in
  amp-route -r '* => inbox:executor' <in
  run --separate-stderr -1 amp-route -r '* => inbox:executor' < <(message task_dispatch '.payload.branch = "other"')
  [[ "$stderr" == *"already has the id"* ]]
  amp-route inbox executor | cmp - in
}

@test "a reader that ends loses nothing that it had not taken" {
  put executor 1 2 3
  # head takes one line and ends.
  amp-route inbox executor | head -n 1 | ids >got || true
  [ "$(cat got)" = 1 ]
  [ "$(state_of 2)" = RECEIVED ]
  amp-route inbox executor --format wrap 2>said | jq -r '[.msg.msg_id[-1:], .redelivered, .attempt] | join(" ")' >got
  grep -c again said || true
  [ "$(tail -n 1 got)" = "3 false 1" ]
  [ "$(head -n 1 got | cut -c1)" = 2 ]
  # Nobody reads at all.
  put executor 4
  run -74 bash -c 'amp-route inbox executor --one >&-'
  [ "$(state_of 4)" = RECEIVED ]
  amp-route inbox executor --one | ids | grep -qx 4
}

@test "killed before READ: it comes again, and that is said" {
  put executor 1
  mkfifo slow
  exec 7<>slow
  # The FIFO's reader takes nothing.
  amp-route inbox executor -o slow 3>&- &
  follower=$!
  wait_until 20 eval '[ "$(events executor 1)" = "put offer" ]'
  kill -9 "$follower"
  ends 137 wait "$follower"
  exec 7>&-
  run -0 --separate-stderr amp-route inbox executor
  [ "$(ids <<<"$output")" = 1 ]
  [[ "$stderr" == *"may have been handed over before"* ]]
  [ "$(events executor 1)" = "put offer offer read" ]
}

@test "one process hands over at a time" {
  put executor 1
  amp-route inbox executor --follow >out 3>&- &
  follower=$!
  wait_until 20 has_lines out 1
  run -75 amp-route inbox executor
  [[ "$output" == *"another process hands over"* ]]
  # One that waits goes on where the other ends.
  amp-route inbox executor --wait --follow --max 1 >out2 3>&- &
  second=$!
  kill "$follower"
  wait "$follower" || [ $? -eq 130 ]
  follower=$second
  put executor 2
  wait "$second"
  [ "$(ids <out2)" = 2 ]
}

@test "--follow is woken by what comes, and does nothing in between" {
  need strace
  not_under_valgrind "strace would show what valgrind does"
  amp-route -r '* => inbox:executor' </dev/null
  ASAN_OPTIONS=detect_leaks=0 strace -f -qq -o trace amp-route inbox executor --follow --max 2 >out 3>&- &
  follower=$!
  wait_until 20 grep -q 'ppoll.*NULL' trace
  wait_until 30 quiet trace 1.2
  put executor 1
  wait_until 20 has_lines out 1
  put executor 2
  wait_until 20 has_lines out 2
  [ "$(ids <out | paste -sd' ')" = "1 2" ]
  wait_until 20 eval '[ "$(state_of 2)" = READ ]'
}

@test "--follow ends with its reader" {
  mkfifo pipe
  put executor 1
  amp-route inbox executor --follow -o pipe 3>&- &
  follower=$!
  head -n 1 pipe >out
  [ "$(ids <out)" = 1 ]
  wait_until 20 gone "$follower"
  [ "$(state_of 1)" = READ ]
}

@test "between turns: nothing while the agent is busy" {
  put executor 1 2 3
  amp-route inbox executor --busy
  run -1 --separate-stderr amp-route inbox executor --between-turns
  [ -z "$output" ]
  run -0 --separate-stderr amp-route inbox executor --list
  [[ "$stderr" == *"executor is busy"* ]]
  # Its turn ends: one, and it is busy again.
  run -0 amp-route inbox executor --idle --between-turns --one
  [ "$(ids <<<"$output")" = 1 ]
  run -1 --separate-stderr amp-route inbox executor --between-turns
  run -0 amp-route inbox executor --idle --between-turns --format text
  [[ "$output" == "Message task_dispatch-T-2026-044-2:"*"Message task_dispatch-T-2026-044-3:"* ]]
  # Nothing waits: it stays idle.
  run -1 --separate-stderr amp-route inbox executor --idle --between-turns
  put executor 4
  run -0 amp-route inbox executor --between-turns
  [ "$(ids <<<"$output")" = 4 ]
}

@test "between turns with --follow: one message a turn, woken by --idle" {
  put executor 1 2
  amp-route inbox executor --follow --between-turns >out 3>&- &
  follower=$!
  wait_until 20 has_lines out 1
  wait_until 20 eval '[ "$(state_of 1)" = READ ]'
  command sleep 0.3
  [ "$(wc -l <out)" -eq 1 ]
  amp-route inbox executor --idle
  wait_until 20 has_lines out 2
  [ "$(ids <out | paste -sd' ')" = "1 2" ]
}

@test "an agent that never reports the end of its turn is busy for the lease only" {
  put executor 1 2
  echo '{"inbox": {"busy_lease": "3s"}}' >amp.json
  run -0 amp-route inbox executor --between-turns --one -c amp.json
  run -1 --separate-stderr amp-route inbox executor --between-turns --one
  # Waiting for it needs no word of anybody.
  run -0 amp-route inbox executor --between-turns --follow --max 1
  [ "$(ids <<<"$output")" = 2 ]
}

@test "--exec: status 0 is read, a refusal is kept and answered, what may pass is tried again" {
  put executor 1 2 3
  cat >work <<'SH'
#!/bin/sh
id=$(jq -r '.msg_id | split("-") | last')
echo "$id $AMP_AGENT $AMP_ATTEMPT ${AMP_REDELIVERED-no} ${AMP_MSG_ID##*-}" >>ran
case $id in
1) exit 0 ;;
2) exit 3 ;;
3) [ "$AMP_ATTEMPT" -gt 1 ] || exit 75 ;;
esac
SH
  chmod +x work
  run -1 --separate-stderr amp-route inbox executor --fulfill --exec ./work
  [ "$(cat ran)" = "1 executor 1 no 1
2 executor 1 no 2
3 executor 1 no 3
3 executor 2 1 3" ]
  [ "$(state_of 1) $(state_of 2) $(state_of 3)" = "FULFILLED FAILED FULFILLED" ]
  [ "$(amp-ack dead list --json | jq -r '.code + " " + .route')" = "command_refused inbox:executor" ]
  # Its sender hears of it from the sweep.
  amp-ack sweep | jq -r 'select(.type == "nack") | .code + " " + .ref_msg_id' >nack
  [ "$(cat nack)" = "command_refused task_dispatch-T-2026-044-2" ]
  # A person sends it again.
  amp-ack dead requeue --every | amp-route -r '* => inbox:executor'
  run -0 amp-route inbox executor
  [ "$(ids <<<"$output")" = 2 ]
}

@test "--exec: a command that cannot be started is refused at start, and the message stays" {
  put executor 1
  : >plain
  for command in no-such-command ./plain; do
    run -64 --separate-stderr amp-route inbox executor --exec "$command"
    [[ "$stderr" == *"--exec: $command: "* ]]
  done
  [ "$(events executor 1)" = put ]
}

@test "--exec: after the last attempt it is a dead letter" {
  put executor 1 2
  run -1 --separate-stderr amp-route inbox executor --attempts 2 --exec sh -c 'grep -q 044-1.,.proto || exit 0; exit 75'
  [ "$(state_of 1) $(state_of 2)" = "FAILED READ" ]
  [ "$(amp-ack dead list --json | jq -r .code)" = command_failed ]
  put executor 3
  run --separate-stderr amp-route inbox executor --attempts 1 --attempt-timeout 100ms --exec sleep 60
  [ "$(amp-ack dead list --json | jq -r .code | sort | paste -sd' ')" = "command_failed command_timeout" ]
}

@test "what expired is not handed over, and its sender hears of it" {
  event() {
    jq -cn --arg id "$1" --arg exp "$2" '{eventId: $id, seq: 1, kind: "message", sourceNodeId: "n",
      sourceAgentId: "architect", corrId: "corr_1", createdAt: "2026-02-25T16:22:10.123Z", expiresAt: $exp,
      payload: {toAgents: ["executor"], subject: "s", body: "b", priority: "normal", expectsReply: false},
      trace: {attempt: 1}}'
  }
  local after
  for after in 2 8 32; do
    # A machine that is too slow to put it in the inbox before its end gets more time.
    rm -rf state
    soon=$(date -u -d "+$after seconds" +%Y-%m-%dT%H:%M:%S.000Z)
    { event e1 "$soon"; event e2 2099-01-01T00:00:00.000Z; } | amp-route -r '* => inbox:executor' >/dev/null
    [ "$(date +%s%3N)" -ge "$(date -d "$soon" +%s%3N)" ] || break
  done
  wait_until 60 eval '[ "$(date +%s%3N)" -gt "$(date -d "$soon" +%s%3N)" ]'
  run -0 amp-route inbox executor
  [ "$(jq -r .eventId <<<"$output")" = e2 ]
  [ "$(amp-ack dead list --json | jq -r '.msg_id + " " + .code')" = "e1 ttl_expired" ]
  [ "$(amp-ack status --all --json | jq -r 'select(.msg_id == "e1") | .state')" = FAILED ]
}

@test "what expires unread is found by the sweep" {
  jq -cn --arg exp 2099-01-01T00:00:00.000Z '{eventId: "e1", seq: 1, kind: "message",
    sourceNodeId: "n", sourceAgentId: "architect", corrId: "corr_1", createdAt: "2026-02-25T16:22:10.123Z",
    expiresAt: $exp, payload: {toAgents: ["executor"], subject: "s", body: "b", priority: "normal",
    expectsReply: false}, trace: {attempt: 1}}' | amp-route -r '* => inbox:executor' >/dev/null
  [ -z "$(amp-ack sweep)" ]
  amp-ack sweep --now 2099-01-01T00:00:01Z >swept
  [ -s swept ]
  [ "$(amp-ack dead list --json | jq -r '.msg_id + " " + .code')" = "e1 ttl_expired" ]
  run -1 --separate-stderr amp-route inbox executor --list
  [ -z "$(amp-ack sweep)" ]
}

@test "--return: read, not done: it comes again, first, and marked" {
  put executor 1 2
  amp-route inbox executor --one >/dev/null
  run -1 --separate-stderr amp-route inbox executor --return task_dispatch-T-2026-044-9
  run -1 --separate-stderr amp-route inbox executor --return task_dispatch-T-2026-044-2
  [[ "$stderr" == *"return"* ]]
  amp-route inbox executor --return task_dispatch-T-2026-044-1
  [ "$(amp-route inbox executor --format wrap | jq -r '[.msg.msg_id[-1:], .redelivered] | join(" ")' | paste -sd,)" = \
    "1 true,2 false" ]
}

@test "names of agents are text, never paths" {
  local hostile='../../../tmp/x $(touch pwned) "é'
  amp-route -r "* => inbox:$hostile" < <(message task_dispatch)
  amp-route inbox "$hostile" --follow --max 1 >out
  [ "$(wc -l <out)" -eq 1 ]
  [ ! -e pwned ]
  [ "$(find state/run -name 'inbox.=*' | wc -l)" -eq 2 ]
  [ -z "$(find state/run -name '*tmp*')" ]
  run -64 amp-route inbox $'a\nb'
  run -64 amp-route inbox ""
  run -64 amp-route inbox "$(printf 'x%.0s' {1..200})"
}

@test "ports that could never be delivered to are refused at the start" {
  local long
  long=$(printf 'x%.0s' {1..129})
  for route in $'* => inbox:a\tb' "* => inbox:$long"; do
    run -64 amp-route -r '* => file:x' -r "$route" <&-
    [[ "$output" == *"the port inbox:"*": an agent's name has 1 to 128 bytes and no control characters"* ]]
    [[ "$output" != *$'\t'* ]]
    run -64 amp-route -n -r "$route" <&-
    run -64 amp-route -r '* => agents' --agent "bob=${route#*=> }" <&-
  done
  unset AMP_STATE
  for args in "* => inbox:bob" "* => dead" "* => agents"; do
    run -64 amp-route -r "$args" <&-
    [[ "$output" == *"needs --state"* ]]
  done
  run -64 amp-route -r '* => agents' --agent bob=inbox:bob <&-
  [[ "$output" == *"the port inbox:bob needs --state"* ]]
  run -64 amp-route -r '* => agents' --agent bob=dead <&-
  [[ "$output" == *"the port dead needs --state"* ]]
  # What a route may be is told without a state.
  message task_dispatch | amp-route -n -r '* => inbox:bob' >told
  [ "$(wc -l <told)" -eq 1 ]
  # A reload keeps the routes that it had.
  export AMP_STATE=$PWD/state
  echo '{"route": {"routes": ["* => file:x"]}}' >amp.json
  mkfifo in
  amp-route -c amp.json --in in --hold 2>err 8>&- &
  router=$!
  exec 8>in
  message task_dispatch >&8
  wait_until 30 has_lines x 1
  echo '{"route": {"routes": ["* => inbox:a\tb"]}}' >amp.json
  kill -HUP $router
  wait_until 30 grep -q "no control characters" err
  message review_request >&8
  wait_until 30 has_lines x 2
  kill $router
  wait $router || [ $? -eq 130 ]
  exec 8>&-
}

@test "a bell that is not a FIFO is refused, a missing state is reported" {
  put executor 1
  mkdir -p state/run
  echo x >state/run/inbox.executor.bell
  run -73 amp-route inbox executor --follow
  [[ "$output" == *"not a FIFO"* || "$output" == *"is not a FIFO"* ]]
  run -69 amp-route inbox executor --state nowhere
  [ ! -e nowhere ]
  run -64 amp-route inbox
  run -64 env -u AMP_STATE amp-route inbox executor
  run -64 env -u AMP_STATE amp-route -r '* => inbox:executor' </dev/null
}

@test "a full disk: nothing is READ that the file does not have" {
  need_tool amp-route
  put executor 1 2
  [ -c /dev/full ]
  run -74 amp-route inbox executor -o /dev/full
  [ "$(state_of 1)" = RECEIVED ]
  printf '{"half' >out
  amp-route inbox executor -o out
  [ "$(sed 1d out | ids | paste -sd' ')" = "1 2" ]
}

@test "of two attempts at one operation that both came the agent gets one" {
  attempt() {
    jq -cn --arg id "$1" --argjson n "$2" '{message_id: "7f3f41a2-2017-4b8f-9b8b-2ad3caaee00\($id)",
      producer_id: "agent-1", correlation_id: "7f3f41a2-2017-4b8f-9b8b-2ad3caaee009", sequence_number: 1,
      retry_count: $n, message_type: "DATA", content_type: "application/json", content_length: 2,
      idempotency_token: "agent-1:op:0011223344556677", hlc_timestamp: "1772116327001000.000000.agent-1",
      timestamp: "2026-02-26T14:32:07Z", payload: {}}'
  }
  attempt 1 0 | amp-ack track >one
  # It is held up; its sender does not wait.
  amp-ack sweep --now "$(date -u -d '+10 minutes' +%FT%TZ)" >/dev/null || true
  attempt 2 1 | amp-ack track >two
  [ -s one ] && [ -s two ]
  cat one two | amp-route -r '* => inbox:executor' >/dev/null
  amp-route inbox executor | cmp - two
  run -1 --separate-stderr amp-route inbox executor
  # The other way round.
  rm -r state
  amp-ack track <one >/dev/null
  amp-route -r '* => inbox:other' <one >/dev/null
  amp-route inbox other | cmp - one
  amp-ack track <two >/dev/null # it is at work: nothing passes
  amp-route -r '* => inbox:other' <two >/dev/null
  run -1 --separate-stderr amp-route inbox other
  [ -z "$output" ]
}

@test "a command that fails is given no more messages than were asked for" {
  put executor 1 2 3 4 >/dev/null
  run -1 --separate-stderr amp-route inbox executor --one -x false
  [ "$(amp-route inbox executor --list | wc -l)" -eq 3 ]
  run -1 --separate-stderr amp-route inbox executor --max 2 -x false
  [ "$(amp-route inbox executor --list | wc -l)" -eq 1 ]
  # A command that is not there says nothing about the message: it is tried again, and may be sent again.
  run -1 --separate-stderr amp-route inbox executor --one --attempts 2 -x sh -c 'exit 127'
  [ "$(amp-ack dead show task_dispatch-T-2026-044-4 | jq -r .code)" = command_failed ]
}

@test "how long messages waited and the command took is counted" {
  put executor 1 2 3 >/dev/null
  amp-route inbox executor --one --metrics m.ndjson >/dev/null
  value() { jq -s --arg n "$1" 'last | .metrics[] | select(.name == $n) | .count // .value' m.ndjson; }
  [ "$(value agent.dequeue_latency_seconds) $(value messages.sent_total)" = "1 1" ]
  [ -z "$(value agent.process_time_seconds)" ]
  amp-route inbox executor --metrics m.ndjson -x sleep 0.01
  [ "$(value agent.dequeue_latency_seconds) $(value agent.process_time_seconds)" = "2 2" ]
  amp-route inbox executor --metrics m.txt --metrics-format openmetrics || [ $? -eq 1 ]
  [ "$(tail -n 1 m.txt)" = "# EOF" ]
}

@test "who waits for the turn of another ends by a signal" {
  put executor 1
  mkfifo hold
  amp-route inbox executor --follow >hold 3>&- &
  follower=$!
  exec 9<hold
  read -r _ <&9
  for delay in 0 0.001 0.002 0.003 0.005 0.1; do # from the first moment on
    amp-route inbox executor --wait >other 3>&- &
    waiter=$!
    # Before, it is this shell's copy, which would end as a failed test.
    wait_until 30 grep -q amp-route "/proc/$waiter/comm"
    command sleep "$delay"
    kill "$waiter"
    wait_until 30 gone "$waiter"
  done
  # As in an interactive shell, which lets INT through; its program ignores it until it is there.
  env --default-signal=INT amp-route inbox executor --wait >other 3>&- &
  waiter=$!
  wait_until 30 grep -q amp-route "/proc/$waiter/comm"
  kill -s INT "$waiter"
  wait_until 30 gone "$waiter"
  kill "$follower"
}

# attempts: two of one operation, the first given up by its sender, in the inboxes of two agents.
attempts() {
  for n in 1 2; do
    jq -cn --argjson n $n --arg t "${1:-t}" '{message_id: "7f3f41a2-2017-4b8f-9b8b-2ad3caaee00\($n)",
      producer_id: "agent-1", correlation_id: "7f3f41a2-2017-4b8f-9b8b-2ad3caaee009", sequence_number: 1,
      retry_count: ($n - 1), message_type: "DATA", content_type: "application/json", content_length: 2,
      idempotency_token: $t, timestamp: "2026-02-26T14:32:07Z", payload: {}}' >$n
    amp-ack track <$n >/dev/null
    amp-ack sweep --now "$(date -u -d '+10 minutes' +%FT%TZ)" >/dev/null
  done
  amp-route -r '* => inbox:ann' <1 >/dev/null
  amp-route -r '* => inbox:bob' <2 >/dev/null
}
dropped() {
  jq -r 'select(.event == "supersede") | .key | split(".")[1]' state/log/*.ndjson | paste -sd' '
}

@test "of two attempts in two inboxes the one that is handed over first is done, the other is taken out" {
  attempts
  [ "$(amp-route inbox ann --list --json | wc -l) $(amp-route inbox bob --list --json | wc -l)" = "1 1" ]
  amp-route inbox bob | cmp - 2
  # At once, not when ann looks: her place is free.
  [ "$(dropped)" = ann ]
  run -1 --separate-stderr amp-route inbox ann --list
  run -1 --separate-stderr amp-route inbox ann
  [ -z "$output" ]
  rm -r state
  attempts
  amp-route inbox ann | cmp - 1 # the older one, as she was faster
  run -1 --separate-stderr amp-route inbox bob
  [ -z "$output" ]
  [ "$(dropped)" = bob ]
}

@test "two agents who take two attempts at the same moment: one gets one" {
  for i in 1 2 3 4 5 6 7 8; do
    rm -rf state
    attempts
    amp-route inbox ann >ann & amp-route inbox bob >bob &
    wait
    [ "$(cat ann bob | wc -l)" -eq 1 ]
  done
}

@test "while one is at work on an attempt nobody else gets the other; what a dead one left is taken over" {
  attempts
  mkfifo go
  amp-route inbox ann --exec sh -c 'echo begun >begun; read -r _ <go' &
  worker=$!
  wait_until 30 test -s begun
  run -1 --separate-stderr amp-route inbox bob # ann holds it, though it is not READ
  [ -z "$output" ]
  kill -KILL $worker
  echo >go
  wait $worker || :
  # Another one who was killed on the way, and a newer attempt that another agent has.
  rm -r state begun
  attempts
  amp-route inbox ann --exec sh -c 'echo begun >begun; read -r _ <go' &
  worker=$!
  wait_until 30 test -s begun
  kill -KILL $worker
  echo >go
  wait $worker || :
  amp-route inbox bob | cmp - 2
  run -1 --separate-stderr amp-route inbox ann
  [ -z "$output" ]
  [ "$(dropped)" = ann ]
}

@test "a newer attempt that somebody took up without an inbox ends the one that waits in one" {
  attempts
  rm -r state
  for n in 1 2; do
    amp-ack track <$n >/dev/null
    amp-ack sweep --now "$(date -u -d '+10 minutes' +%FT%TZ)" >/dev/null
  done
  amp-route -r '* => inbox:ann' <1 >/dev/null
  amp-ack send --stage READ --from carl <2 >/dev/null
  run -1 --separate-stderr amp-route inbox ann
  [ -z "$output" ]
  [ "$(dropped)" = ann ]
  # What carl could not do is ann's again.
  rm -r state
  attempts
  amp-ack send --stage READ --from carl <2 >/dev/null
  amp-ack send --stage FAILED --code tool_timeout --from carl <2 >/dev/null
  amp-route inbox ann | cmp - 1
}

@test "work whose task was suspended after it came waits in the inbox, and others pass" {
  need_tool hitl-prompt task-dispatch
  message task_dispatch >work
  message task_dispatch '.task_id = "T-2026-045" | .msg_id = "task_dispatch-T-2026-045-1"' >other
  message review_request >review
  message task_result '.to = "executor"' >news
  cat work review other news | amp-route -r '* => inbox:executor'
  # A critical escalation that nobody answers.
  message escalation >question
  run -1 hitl-prompt --answer /dev/null <question
  amp-route inbox executor >out 2>err
  cat other news | cmp - out
  [ "$(grep -c 'stays in the inbox: task T-2026-044 is suspended until the admin decides' err)" = 2 ]
  run -1 --separate-stderr amp-route inbox executor
  run -0 amp-route inbox executor --list
  [ "${#lines[@]}" -eq 2 ]
  # Who waits for it has it soon after the decision.
  timeout 60 amp-route inbox executor --follow --max 2 >out 2>err 3>&- &
  follower=$!
  wait_until 30 grep -q 'stays in the inbox' err
  echo resume >answers
  hitl-prompt --answer answers </dev/null >decision
  task-dispatch coordinate <decision >/dev/null
  wait "$follower"
  cat work review | cmp - out
}
