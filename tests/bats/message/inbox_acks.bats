#!/usr/bin/env bats
# amp-route inbox --acks: what is said of a hand-over, in each protocol; once, whoever is killed.
# plain: inbox.bats hands over by the same code

load ../lib
load ../messages
load ../../kill9

setup() {
  need_tool amp-route amp-ack
  need jq
  cd "$BATS_TEST_TMPDIR" || return 1
  export AMP_STATE=$PWD/state
}

teardown() {
  local p
  for p in ${pids-}; do kill "$p" 2>/dev/null || true; done
}

base() {
  jq -c --arg name "$2" "select(.base == \$name) | .line | ${3:-.}" "$AMP_TOP/tests/fixture/protocols/$1.jsonl"
}
amp() { message task_dispatch ".msg_id = \"task_dispatch-T-2026-044-$1\""; }
sw4rm() {
  jq -cn --arg n "$1" --arg type "${2:-DATA}" '{message_id: "7f3f41a2-2017-4b8f-9b8b-\("000000000000\($n)"[-12:])",
    producer_id: "agent-1", correlation_id: "7f3f41a2-2017-4b8f-9b8b-2ad3caaee002", sequence_number: ($n | tonumber),
    retry_count: 0, message_type: $type, content_type: "application/json", content_length: 2,
    hlc_timestamp: "1772116327001000.000000.agent-1", timestamp: "2026-02-26T14:32:07Z", payload: {}}'
}
rtp() {
  jq -cn --arg n "$1" --argjson reply "${2:-false}" '{eventId: "evt_\($n)", seq: ($n | tonumber), kind: "message",
    sourceNodeId: "n", sourceAgentId: "architect", corrId: "corr_1", createdAt: "2026-02-25T16:22:10.123Z",
    expiresAt: "2099-02-26T16:22:10.123Z", payload: {toAgents: ["executor"], subject: "s", body: "b",
    priority: "normal", expectsReply: $reply}, trace: {attempt: 1}}'
}
# put < LINES: into the inbox of executor; what the router answers is in `router`.
put() { amp-route -r '* => inbox:executor' >>router; }
# said [FILE]: what each line says, in a few words.
said() {
  jq -r '(.msg // .) | if .ref_msg_id then "amp \(.type) \(.ack_stage // .failed_stage) \(.ref_msg_id[-1:]) \(.from)"
    elif .message_id then "sw4rm \(.payload.ack_stage) \(.payload.ack_for_message_id[-1:]) \(.producer_id)"
    else "rtp \(.payload.ackType) \(.payload.refEventId[-1:]) \(.payload.ackedByAgentId) \(.sourceNodeId) \(.seq)" end' "$@"
}
outbox() { amp-ack log --format ndjson | jq -c 'select(.what == "emit")' | wc -l; }

@test "each protocol in its own words; none where it has none" {
  { amp 1; sw4rm 2; rtp 3; base aop minimal; base aof request; amp 4 | jq -c '.requires_ack = false | del(.ack_timeout_sec)'
    sw4rm 5 HEARTBEAT; } >in
  put <in
  amp-route inbox executor --acks file:acks >got
  [ "$(wc -l <got)" -eq "$(wc -l <in)" ]
  amp-validate <acks | cmp - acks
  [ "$(said acks)" = "amp ack READ 1 executor
sw4rm READ 2 executor" ]
  # Addressed to the producer, in its conversation.
  [ "$(jq -r 'select(.to) | .to + " " + .msg.correlation_id[-4:]' acks)" = "agent-1 e002" ]
  # The Runtime Protocol's word was given when it was put.
  [ "$(jq -r 'select(.eventId) | .payload.ackType' router)" = accepted ]
  # A producer with a state of its own hears of it.
  { amp 1; sw4rm 2; } | amp-ack track --state producer >/dev/null
  amp-ack --state producer <acks >/dev/null
  [ "$(amp-ack status --state producer --all --json | jq -r .state | sort -u)" = READ ]
  # Nothing is left.
  amp-route inbox executor --acks file:acks || [ $? -eq 1 ]
  [ "$(wc -l <acks)" -eq 2 ]
}

@test "--fulfill: READ and FULFILLED, processed; the Runtime Protocol's only with an outcome, and without a gap" {
  { amp 1; sw4rm 2; rtp 3; rtp 4 true; rtp 5; } | put
  run -0 --separate-stderr amp-route inbox executor --acks file:acks --fulfill --exec true
  [ "$(said acks)" = "amp ack READ 1 executor
sw4rm READ 2 executor
sw4rm FULFILLED 2 executor
rtp processed 3 executor executor 1
rtp processed 5 executor executor 2" ]
  amp-validate <acks | cmp - acks
  jq -se '[.[] | .msg // empty] | (map(.message_id) | unique | length) == 2 and
    .[0].sequence_number < .[1].sequence_number' acks
}

@test "what the command refuses is answered there too" {
  { sw4rm 1; amp 2; } | put
  run -1 --separate-stderr amp-route inbox executor --acks file:acks --exec false
  [ "$(said acks)" = "sw4rm FAILED 1 system
amp nack FAILED 2 system" ]
  [ -z "$(amp-ack sweep)" ]
}

@test "the numbers of SW4RM's stream rise, also within a millisecond" {
  for i in 1 2 3 4 5 6 7 8 9; do sw4rm $i; done | put
  amp-route inbox executor --acks file:acks >/dev/null
  jq -se 'map(.msg.sequence_number) | length == 9 and . == (unique)' acks
}

@test "ports: FIFO, spool, command, exec-each, another inbox; not those of messages, nor elsewhere" {
  mkfifo fifo
  amp 1 | put
  cat fifo >acks &
  pids=$!
  timeout 60 amp-route inbox executor --acks fifo:fifo >/dev/null
  wait "$pids"
  [ "$(said acks)" = "amp ack READ 1 executor" ]
  amp 2 | put
  amp-route inbox executor --acks spool:sp >/dev/null
  [ "$(said sp/new/*)" = "amp ack READ 2 executor" ]
  amp 3 | put
  amp-route inbox executor --acks "command:tee acks3" >/dev/null
  [ "$(said acks3)" = "amp ack READ 3 executor" ]
  amp 4 | put
  amp-route inbox executor --acks "exec-each:tee acks4" >/dev/null
  [ "$(said acks4)" = "amp ack READ 4 executor" ]
  amp 5 | put
  sw4rm 6 | put
  amp-route inbox executor --acks inbox:coordinator >/dev/null
  [ "$(amp-route inbox coordinator | said)" = "amp ack READ 5 executor
sw4rm READ 6 executor" ]
  for port in stdout reject dead agents https://example.org/ nothing; do
    run -64 amp-route inbox executor --acks $port
  done
}

@test "without a reader the messages go on; their acknowledgements wait for the next hand-over" {
  mkfifo fifo
  { amp 1; amp 2; } | put
  run -69 --separate-stderr amp-route inbox executor --acks fifo:fifo --open-timeout 100ms
  [ "${#lines[@]}" -eq 2 ]
  [[ "$stderr" == *"2 lines stay in the outbox inbox:executor"* ]]
  run -1 --separate-stderr amp-route inbox executor --acks file:acks
  [ "$(said acks)" = "amp ack READ 1 executor
amp ack READ 2 executor" ]
}

@test "however many wait, the next hand-over writes them all" {
  message task_dispatch '.msg_id = "task_dispatch-T-2026-044-@"' |
    awk -F@ '{ for (i = 1; i <= 150; i++) print $1 i $2 }' |
    amp-route --inbound 200 -r '* => inbox:executor'
  mkfifo fifo
  run -69 --separate-stderr amp-route inbox executor --acks fifo:fifo --open-timeout 100ms
  [ "${#lines[@]}" -eq 150 ]
  [[ "$stderr" == *"150 lines stay in the outbox inbox:executor"* ]]
  cp -r state other
  run -1 --separate-stderr amp-route inbox executor --acks file:acks
  [ "$(jq -r .ref_msg_id acks | sort -u | wc -l)" -eq 150 ]
  [ "$(wc -l <acks)" -eq 150 ]
  cat fifo >read &
  pids=$!
  run -1 timeout 60 amp-route inbox executor --state other --acks fifo:fifo
  wait "$pids"
  cmp acks read
}

@test "those that the port refuses for good do not stand in the way of the others" {
  message task_dispatch '.msg_id = "task_dispatch-T-2026-044-@"' |
    awk -F@ '{ for (i = 1; i <= 110; i++) print $1 i $2 }' |
    amp-route --inbound 200 -r '* => inbox:executor'
  printf '%s\n' '#!/bin/sh' 'read -r line' 'case $line in *-1[0-9][0-9]\"*) echo "$line" >>taken ;; *) exit 65 ;; esac' >port
  chmod +x port
  run -1 --separate-stderr amp-route inbox executor --acks "exec-each:$PWD/port"
  [ "${#lines[@]}" -eq 110 ]
  [ "${#stderr_lines[@]}" -eq 99 ]
  [ "$(wc -l <taken)" -eq 11 ]
  run -1 --separate-stderr amp-route inbox executor --acks file:acks
  [ "$(cat taken acks | jq -r .ref_msg_id | sort -u | wc -l) $(wc -l <acks)" = "110 99" ]
}

@test "they leave while the next message waits for its reader" {
  mkfifo out
  exec 7<>out
  { amp 1; amp 2; } | put
  amp-route inbox executor --follow -o out --acks file:acks 7>&- 3>&- &
  pids=$!
  read -r -t 20 line <&7
  wait_until 20 has_lines acks 1
  [ "$(said acks)" = "amp ack READ 1 executor" ]
  read -r -t 20 line <&7
  wait_until 20 has_lines acks 2
  exec 7>&-
}

@test "a full disk: nothing is lost, and the messages go on" {
  { amp 1; amp 2; } | put
  run -74 --separate-stderr amp-route inbox executor --acks file:/dev/full
  [ "${#lines[@]}" -eq 2 ]
  [ "$(grep -c 'stays in the outbox' <<<"$stderr")" -le 4 ]
  run -1 --separate-stderr amp-route inbox executor --acks file:acks
  [ "$(said acks | sort)" = "amp ack READ 1 executor
amp ack READ 2 executor" ]
}

@test "killed at each write and sync: every message acknowledged, the same words each time" {
  shim=$AMP_BUILD/tests/fault/faildisk.so
  [ -e "$shim" ] || make_same "$shim" || make_same build/tests/fault/faildisk.so
  native "a preloaded shim must come first"
  { amp 1; sw4rm 2; rtp 3; } | put
  cp -r state first
  inbox() { amp-route inbox executor --acks "file:$PWD/acks" --fulfill --exec true; }
  inbox >/dev/null
  mv acks whole
  for op in log/0:write:TORN log/0:sync:KILL /acks:write:TORN /acks:sync:KILL; do
    for ((i = 1; i <= 100; i++)); do
      rm -rf state acks
      cp -r first state
      rc=0
      AMP_FAULT_MATCH=${op%%:*} AMP_FAULT_ROOT=${PWD%/*} AMP_FAULT=$(cut -d: -f2 <<<"$op"):$i:${op##*:} \
        LD_PRELOAD=$shim inbox >/dev/null 2>&1 || rc=$?
      [ "$rc" -eq 137 ] || break # it does not do that many
      inbox >/dev/null 2>&1 || [ $? -eq 1 ]
      # A torn last line is ended, and stands again whole.
      if [ "$(said <(kill9_lines <acks) | cut -d' ' -f1-4 | sort -u)" != "$(said whole | cut -d' ' -f1-4 | sort -u)" ]; then
        # Between READ and FULFILLED a kill loses FULFILLED, in the ledger too.
        said <(kill9_lines <acks) | grep -q 'amp ack READ 1'
        said <(kill9_lines <acks) | grep -q 'sw4rm READ 2'
        state=$(amp-ack status --all --json | jq -r 'select(.state != "FULFILLED") | .state' | head -1)
        [ "$state" = READ ] || {
          echo "$op $i: $(cat acks)"
          return 1
        }
      fi
      # What stands there twice is the same line: one id for each thing said.
      [ "$(kill9_lines <acks | sort -u | wc -l)" -eq "$(said <(kill9_lines <acks) | sort -u | wc -l)" ]
    done
    [ "$i" -gt 1 ] && [ "$i" -lt 100 ]
  done
}
