#!/usr/bin/env bats
# Inboxes with messages of all five protocols, and agents that die, stop reading, or are too many.
# plain: inbox.bats hands over by the same code

load ../lib
load ../messages

setup() {
  need_tool amp-route amp-ack
  cd "$BATS_TEST_TMPDIR" || return 1
  export AMP_STATE=$PWD/state AMP_AGENT=executor
}

teardown() {
  local p
  for p in ${pids-}; do kill -9 "$p" 2>/dev/null || true; done
}

base() {
  jq -c --arg name "$2" "select(.base == \$name) | .line | ${3:-.}" "$AMP_TOP/tests/fixture/protocols/$1.jsonl"
}
# five: one of each protocol.
five() {
  message task_dispatch '.msg_id = "task_dispatch-T-2026-044-1"'
  jq -cn '{message_id: "7f3f41a2-2017-4b8f-9b8b-000000000002", producer_id: "agent-1", sequence_number: 2,
    correlation_id: "7f3f41a2-2017-4b8f-9b8b-2ad3caaee002", retry_count: 0, message_type: "DATA",
    content_type: "application/json", content_length: 2, payload: {}}'
  jq -cn '{eventId: "evt_3", seq: 3, kind: "message", sourceNodeId: "n", sourceAgentId: "architect", corrId: "corr_1",
    createdAt: "2026-02-25T16:22:10.123Z", expiresAt: "2099-02-26T16:22:10.123Z", payload: {toAgents: ["executor"],
    subject: "s", body: "b", priority: "normal", expectsReply: false}, trace: {attempt: 1}}'
  base aop minimal
  base aof request
}
put() { amp-route -r '* => inbox:executor' >answers; }

@test "one at a time, as they came; each wakes its reader" {
  five >five
  amp-route -r '* => inbox:executor' </dev/null
  amp-route inbox executor --follow --max 5 >out 3>&- &
  pids=$!
  n=0
  while read -r line; do
    put <<<"$line"
    n=$((n + 1))
    wait_until 20 has_lines out $n
  done <five
  wait "$pids"
  cmp five out
  put <five
  run -1 --separate-stderr amp-route inbox executor
  [ -z "$output" ]
}

@test "a message that is larger than any pipe; its reader dies in the middle" {
  head -c 300000 /dev/zero | tr '\0' x >text
  message task_dispatch | jq -c --rawfile t text '.payload.description = $t' >in
  five >>in
  put <in
  mkfifo pipe
  amp-route inbox executor -o pipe 2>said 3>&- &
  pids=$!
  head -c 100000 pipe >half
  rc=0
  wait "$pids" || rc=$?
  [ "$rc" -eq 74 ]
  # It was not read: it comes again, whole, and then the others.
  amp-route inbox executor 2>said | cmp - in
  grep -q 'may have been handed over before' said
}

@test "a reader that is killed between two messages: what it did not take comes to the next" {
  five | put
  mkfifo pipe
  amp-route inbox executor -o pipe 3>&- &
  pids=$!
  exec 9<pipe
  read -r one <&9
  read -r two <&9
  exec 9<&-
  rc=0
  wait "$pids" || rc=$?
  [ "$rc" -eq 74 ]
  { echo "$one"; echo "$two"; amp-route inbox executor; } >got
  five | sort >want
  sort -u got | cmp - want
  [ "$(wc -l <got)" -le 6 ]
}

@test "a command that is killed, that hangs" {
  five | put
  cat >work <<'SH'
#!/bin/sh
cat >"got.$AMP_MSG_ID.$AMP_ATTEMPT"
[ "$AMP_ATTEMPT" -gt 1 ] || case $AMP_MSG_ID in
*evt_3) kill -9 $$ ;;
*000002) sleep 60 ;;
esac
SH
  chmod +x work
  run -0 --separate-stderr amp-route inbox executor --attempt-timeout 3s --exec ./work
  [ "$(ls got.* | wc -l)" -eq 7 ]
  cmp got.evt_3.1 got.evt_3.2
  [ "$(amp-ack dead list --json | wc -l)" -eq 0 ]
}

@test "a command that is not there is no fault of the message: it stays" {
  not_under_valgrind "it ends where execve fails"
  put < <(message review_request)
  printf '#!/no/such/interpreter\n' >none
  chmod +x none
  run -69 --separate-stderr amp-route inbox executor --attempts 1 --exec ./none
  [ "$(amp-ack dead list --json | wc -l)" -eq 0 ]
  amp-route inbox executor 2>/dev/null | grep -q review_request
}

@test "killed while the command is at work: the command is run again, marked as redelivered" {
  five | sed -n 1p | put
  cat >work <<'SH'
#!/bin/sh
echo "$AMP_ATTEMPT ${AMP_REDELIVERED-first}" >>ran
[ "$AMP_ATTEMPT" -gt 1 ] || sleep 60
SH
  chmod +x work
  amp-route inbox executor --exec ./work 3>&- &
  pids=$!
  wait_until 20 has_lines ran 1
  child=$(pgrep -P "$pids")
  kill -9 "$pids"
  wait "$pids" || :
  kill -9 "$child" 2>/dev/null || :
  amp-route inbox executor --exec ./work
  [ "$(cat ran)" = $'1 first\n2 1' ]
  run -1 --separate-stderr amp-route inbox executor --exec ./work
}

@test "two copies at once: each message once, whoever hands it over" {
  for i in 1 2 3 4 5 6 7 8 9; do message task_dispatch ".msg_id = \"task_dispatch-T-2026-044-$i\""; done >nine
  put <nine
  for i in 1 2 3; do
    amp-route inbox executor --wait >"out$i" 3>&- &
    pids="${pids-} $!"
  done
  for p in $pids; do wait "$p" || [ $? -eq 1 ]; done
  cat out? | sort | cmp - <(sort nine)
  amp-route inbox executor --follow >/dev/null 3>&- &
  pids=$!
  # It has the inbox's lock before it opens the bell.
  has_inbox() { readlink "/proc/$pids/fd/"* | grep -q '/inbox.executor.bell$'; }
  wait_until 20 has_inbox
  run -75 amp-route inbox executor
  kill "$pids"
  wait "$pids" || [ $? -eq 130 ]
}

@test "the example hooks: nothing while a turn runs, all that waits at its end" {
  hooks=$AMP_TOP/examples/hooks
  five | put
  # The prompt has what waits, and begins a turn.
  sh "$hooks/prompt.sh" >prompt
  [ "$(grep -c '^Message ' prompt)" -eq 5 ]
  message review_request | put
  run -1 --separate-stderr amp-route inbox executor --between-turns
  [ -z "$output" ]
  # Its end goes on with what came meanwhile.
  sh "$hooks/stop.sh" >stop
  [ "$(jq -r .decision stop)" = block ]
  jq -r .reason stop | grep -q '^Message review_request'
  # Nothing more: it may rest.
  [ -z "$(sh "$hooks/stop.sh")" ]
  # What comes then wakes who waits elsewhere.
  amp-route inbox executor --follow --between-turns --max 1 >out 3>&- &
  pids=$!
  message task_result | put
  wait_until 20 has_lines out 1
  wait "$pids"
}

@test "a full disk and a closed output, for each protocol" {
  five >in
  put <in
  [ -c /dev/full ]
  for i in 1 2 3 4 5; do
    run -74 amp-route inbox executor --one -o /dev/full
    run -74 bash -c 'amp-route inbox executor --one >&-'
    amp-route inbox executor --one >>out 2>/dev/null
  done
  cmp in out
}
