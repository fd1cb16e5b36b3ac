#!/usr/bin/env bats
# Who has nothing to do does nothing: not one system call, until something comes.
# static

load ../lib
load ../messages

setup() {
  need strace
  not_under_valgrind "strace would show what valgrind does"
  cd "$BATS_TEST_TMPDIR" || return 1
  export AMP_STATE=$PWD/state ASAN_OPTIONS=detect_leaks=0
  amp-ack track </dev/null
}

teardown() {
  [ ! -s trace ] || end
}

# traced COMMAND...: in the background, its system calls in the file trace.
traced() {
  rm -f trace
  strace -f -qq -o trace "$@" 3>&- 7>&- 8>&- 9>&- &
  wait_until 20 test -s trace
}
# end: the traced process ends by TERM.
end() {
  kill "$(head -n 1 trace | cut -d' ' -f1)" 2>/dev/null || :
  ends 130 wait $!
}
# still: the process lives, and for 1.5 s there is not one call.
still() {
  wait_until 30 quiet trace 1.5 || {
    tail -n 20 trace
    return 1
  }
  ! gone "$(head -n 1 trace | cut -d' ' -f1)"
}
task() { message task_dispatch ".msg_id = \"task_dispatch-T-2026-044-$1\""; }

@test "a router whose input and readers are silent" {
  mkfifo in out
  exec 8<>out 7<>in
  traced amp-route --in in --hold -r '* => fifo:out' >answers
  still
  task 1 >&7
  read -r -t 20 line <&8
  still
  # Signals come in all the same.
  kill -HUP "$(head -n 1 trace | cut -d' ' -f1)"
  kill -TERM "$(head -n 1 trace | cut -d' ' -f1)"
  rc=0
  wait $! || rc=$?
  [ "$rc" -eq 130 ]
}

@test "a router that holds messages for a suspended agent, also at the end of its input" {
  need_tool hitl-prompt
  hitl-prompt suspend --all
  task 1 >in
  traced amp-route --in in -r '* => file:out' >answers
  still
  hitl-prompt resume --all
  wait $!
  [ "$(wc -l <out)" -eq 1 ]
  rm -f trace
}

@test "a coordinator between messages, also after another process wrote" {
  need_tool task-dispatch hitl-prompt
  mkfifo in
  exec 7<>in
  traced task-dispatch coordinate --in in --hold >answers
  still
  hitl-prompt suspend --all
  still
}

@test "a router that follows a stream: only its lease" {
  mkfifo in
  exec 7<>in
  traced amp-route --in in --hold --cursor mbp --cursor-lease 10m -r '* => file:out' >answers
  jq -nc '{eventId: "evt_1", seq: 1, kind: "message", sourceNodeId: "vps", sourceAgentId: "arch",
    createdAt: "2026-02-25T16:22:10Z", payload: {toAgents: ["mbp"], subject: "s", body: "b"}, trace: {attempt: 1}}' >&7
  wait_until 20 has_lines out 1
  still
}

@test "credits: who waits for an acknowledgement is woken by it" {
  mkfifo in out
  exec 8<>out 7<>in
  traced amp-route --in in --hold --credits 1 -r '* => fifo:out' >answers
  { task 1; task 2; task 3; } | tee sent >&7
  read -r -t 20 line <&8
  [[ $line == *-044-1* ]]
  still
  # By a process that shares nothing with it but the state.
  head -n 1 sent | amp-ack track >/dev/null
  still
  record ack '.ref_msg_id = "task_dispatch-T-2026-044-1"' | amp-ack >/dev/null
  read -r -t 20 line <&8
  [[ $line == *-044-2* ]]
  still
  # By its own input.
  record ack '.ref_msg_id = "task_dispatch-T-2026-044-2"' >&7
  read -r -t 20 line <&8
  [[ $line == *-044-3* ]]
}

@test "an inbox with acknowledgements, and one between turns" {
  mkfifo acks
  exec 8<>acks
  traced amp-route inbox executor --follow --acks fifo:acks >out
  still
  task 1 | amp-route -r '* => inbox:executor'
  read -r -t 20 line <&8
  [ "$(jq -r .ref_msg_id <<<"$line")" = task_dispatch-T-2026-044-1 ]
  still
  end
  { task 2; task 3; } | amp-route -r '* => inbox:executor'
  traced amp-route inbox executor --follow --between-turns --lease 1h --acks fifo:acks >out2
  wait_until 20 has_lines out2 1
  still
  amp-route inbox executor --idle
  wait_until 20 has_lines out2 2
}

@test "watch, log --follow, the registry's heartbeats" {
  traced amp-ack watch >out
  still
  end
  traced amp-ack log --follow >out
  still
  end
  repo work
  task-dispatch new -C work --id T-2026-001 -d x
  traced task-dispatch log --follow 1 >out
  still
  end
  mkfifo in
  exec 9<>in
  traced agent-registry heartbeat --emit --interval 1h <in >out
  still
}

@test "hitl-prompt with nothing to ask: the records of others neither wake it nor are synced by it; a question does" {
  need_tool hitl-prompt
  load ../agents
  local i began
  mkfifo in
  exec 7<>in
  : >answers
  traced hitl-prompt --in in --answer answers >out
  # It looks once a second.
  calls() { grep -cE "$1\(" trace || true; }
  wait_until 20 grep -qE 'p?poll\(' trace
  syncs=$(calls fdatasync) polls=$(calls 'p?poll')
  began=$SECONDS
  for i in {1..60}; do task "$i" | amp-ack track >/dev/null; done
  [ "$(calls fdatasync)" -eq "$syncs" ]
  [ "$(calls 'p?poll')" -le $((polls + SECONDS - began + 3)) ]
  # The decision of another process is written by this one.
  escalation >&7
  wait_until 20 bash -c '[[ $(hitl-prompt list 2>/dev/null) == *T-2026-001* ]]'
  hitl-prompt answer T-2026-001 resume >/dev/null
  wait_until 20 grep -q '"type":"decision"' out
}
