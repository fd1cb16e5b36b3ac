#!/usr/bin/env bats
# amp-route and suspensions by people: every kind of port holds the messages for a suspended agent.

load ../lib
load ../messages

setup() {
  need_tool amp-route hitl-prompt
  cd "$BATS_TEST_TMPDIR"
  export AMP_STATE=$PWD/state
  mkdir -m 700 state
}

teardown() {
  for p in $(jobs -p); do kill -9 "$p" 2>/dev/null || :; done
}

# to AGENT N [TASK]
to() { message task_dispatch ".msg_id = \"task_dispatch-${3:-T-2026-044}-$2\" | .to = \"$1\" | .task_id = \"${3:-T-2026-044}\""; }

# route ARGS...: a router that reads the FIFO in, descriptor 7.
route() {
  [ -p in ] || mkfifo in
  amp-route --in in --hold "$@" >answers 2>>err 7>&- 8>&- &
  router=$!
  exec 7>in
}

# has FILE AGENT N: how many messages of the agent are in the file.
has() { [ "$(grep -c "\"to\":\"$2\"" "$1")" = "$3" ]; }

# every AGENT N: the file, spool, command, socket and server have N messages of the agent.
every() {
  has file "$1" "$2" && has ran "$1" "$2" && has socket "$1" "$2" &&
    [ "$(cat spool/new/* | grep -c "\"to\":\"$1\"")" = "$2" ] && [ "$(grep -c "$1" log)" = "$2" ]
}

@test "each kind of port holds the messages of a suspended agent, also after kill -9, and delivers those of others" {
  cat >each <<'E'
#!/bin/sh
cat >>ran
E
  chmod +x each
  "$AMP_BUILD/tests/fixture/unix-server" sock socket 8>&- &
  "$AMP_BUILD/tests/fixture/http-server" port log 8>&- &
  wait_until 30 test -S sock
  wait_until 30 test -s port
  touch file ran
  ports=(--all -r '* => file:file' -r '* => spool:spool' -r "* => command:tee -a ran -" -r '* => unix:sock'
    -r "* => http://127.0.0.1:$(cat port)/ok")
  hitl-prompt suspend --agent executor --reason "out of hand"
  route "${ports[@]}"
  for n in 1 2 3; do to executor "10$n" && to reviewer "20$n"; done >&7
  wait_until 30 every reviewer 3
  grep -q "file:file: .* waits: .* suspended agent executor: out of hand" err
  kill -9 "$router"
  wait "$router" || :
  every executor 0
  exec 7>&-
  route "${ports[@]}"
  to reviewer 204 >&7
  wait_until 30 grep -q 204 file
  wait_until 30 grep -q 204 log
  every executor 0
  # It is woken by the log.
  start=${EPOCHREALTIME/./}
  hitl-prompt resume --agent executor
  wait_until 30 every executor 3
  [ $((${EPOCHREALTIME/./} - start)) -lt 1500000 ]
  diff <(jq -r 'select(.to == "executor").msg_id' file) <(printf 'task_dispatch-T-2026-044-%s\n' 101 102 103)
  kill "$router"
  run -0 amp-ack dead list --json
  [ -z "$output" ]
}

@test "a reader that is slow gets nothing more of what is suspended while it waits" {
  mkfifo out
  exec 8<>out
  # The pipe is full: the rest waits in the port.
  head -c 65536 /dev/zero | tr '\0' x >&8
  route -r '* => fifo:out'
  { to executor 101; to reviewer 201; to executor 102; to reviewer 202; } >&7
  wait_until 30 grep -rqs 202 state/log
  hitl-prompt suspend --agent executor
  wait_until 30 grep -q "fifo:out: .* waits" err
  head -c 65536 <&8 >/dev/null
  read -r -t 20 one <&8
  read -r -t 20 two <&8
  jq -e '.msg_id == "task_dispatch-T-2026-044-201"' <<<"$one"
  jq -e '.msg_id == "task_dispatch-T-2026-044-202"' <<<"$two"
  run -142 read -r -t 0.3 three <&8
  hitl-prompt resume --all
  read -r -t 20 three <&8
  jq -e '.msg_id == "task_dispatch-T-2026-044-101"' <<<"$three"
  kill "$router"
}

@test "suspend --all holds everything but questions to people; the limit has its code; the end of input waits" {
  touch people
  hitl-prompt suspend --all
  route --inbound 2 -r 'to=admin => file:people' -r '* => file:file'
  message escalation >&7
  wait_until 30 test -s people
  for n in 1 2 3; do to reviewer "20$n"; done >&7
  message ack >&7
  wait_until 30 grep -q buffer_full answers
  grep -q 203 answers
  [ ! -s file ]
  kill "$router"
  wait "$router" || :
  exec 7>&-
  # At the end of its input the next one waits until the suspension ends.
  amp-route --inbound 4 -r '* => file:file' </dev/null >answers &
  router=$!
  hitl-prompt resume --all
  wait "$router"
  [ "$(jq -r .msg_id file | head -n 2 | paste -sd' ')" = "task_dispatch-T-2026-044-201 task_dispatch-T-2026-044-202" ]
}

@test "a suspended task: its new work waits, its results pass; an agent is known by its port, too" {
  hitl-prompt suspend --task T-2026-044
  hitl-prompt suspend --agent executor
  mkfifo port.fifo
  exec 8<>port.fifo
  route --agent executor=fifo:port.fifo -r 'type=ack => fifo:port.fifo' -r 'to=executor => agents' -r '* => file:file'
  to reviewer 201 >&7
  to reviewer 202 T-2026-045 >&7
  message task_result >&7
  message ack >&7
  wait_until 30 has_lines file 2
  run -1 grep -q 'T-2026-044-201' file
  grep -q task_result file
  run -142 read -r -t 0.3 line <&8
  hitl-prompt resume --all
  read -r -t 20 line <&8
  jq -e '.type == "ack"' <<<"$line"
  wait_until 30 grep -q 'T-2026-044-201' file
  kill "$router"
}

@test "the deadline of a message for a suspended agent waits, and begins anew when it is resumed" {
  {
    to executor 301
    to reviewer 302
    message task_dispatch '.msg_id = "task_dispatch-T-2026-045-303" | .to = "reviewer" | .task_id = "T-2026-045"'
  } | amp-ack track >/dev/null
  states() { amp-ack status --all --json | jq -r '.msg_id[-3:] + " " + .state' | sort | tr '\n' ' '; }
  hitl-prompt suspend --agent executor --reason "out of hand"
  hitl-prompt suspend --task T-2026-045
  run -0 amp-ack sweep --now 2099-01-01T00:00:00Z
  held() { jq -r 'select(.type == "escalation").payload.affected_msgs[0][-3:]' <<<"$output" | sort | tr '\n' ' '; }
  [ "$(held)" = "302 " ]
  [[ $(states) == "301 SENT "*"303 SENT "* ]]
  hitl-prompt resume --all
  # After the suspension there is the whole time, at least once.
  run -0 amp-ack sweep --now 2099-01-01T00:05:01Z
  [[ $(held) != *30[13]* && $(states) == "301 SENT "*"303 SENT "* ]]
  run -0 amp-ack sweep --now 2099-01-01T00:10:02Z
  [ "$(held)" = "301 303 " ]
  run -0 amp-ack sweep --now 2099-01-01T01:00:00Z
  [ -z "$output" ]
}
