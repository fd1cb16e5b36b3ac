#!/usr/bin/env bats
# Disks that fail: nothing leaves that is not recorded, and afterwards everything that left is there.

load ../lib
load ../messages

setup() {
  need_tool amp-ack amp-route
  cd "$BATS_TEST_TMPDIR" || return 1
  shim=$AMP_BUILD/tests/fault/faildisk.so
  [ -e "$shim" ]
  native "a preloaded shim must come first"
  export AMP_STATE=$PWD/state
  # Three reads' worth.
  message task_dispatch | awk '{ for (i = 0; i < 300; i++) { l = $0; sub(/1772116327001/, "1772116327001" i, l); print l } }' >in
  message review_request | amp-ack --state before >/dev/null
}

# failing OP:N:HOW COMMAND...: the command with that call on the log failing; its status in $status.
failing() {
  status=0
  AMP_FAULT_MATCH=log/0 AMP_FAULT_ROOT=$AMP_STATE AMP_FAULT=$1 LD_PRELOAD=$shim "${@:2}" || status=$?
}

ids() { jq -r .msg_id "$1" | sort; }

@test "track: a log that cannot be written or synced lets nothing more pass" {
  for fault in {sync,write}:{1,2,3}:{EIO,ENOSPC} write:{1,2,3}:SHORT; do
    rm -rf state
    cp -r before state
    failing "$fault" amp-ack track <in >out 2>err
    echo "$fault: status $status, $(wc -l <out) passed"
    [ "$status" -eq 75 ]
    [ "$(wc -l <out)" -lt 300 ]
    # Everybody is told, until it is repaired.
    run -75 amp-ack status
    amp-ack repair 2>said
    [ -s said ]
    amp-ack status --all --json | jq -r .msg_id | sort >known
    [ -z "$(comm -23 <(ids out) known)" ]
    # Sent again, all of it passes.
    amp-ack track <in | cmp in -
  done
}

@test "route: what was recorded before the failure is delivered after the repair" {
  for fault in {sync,write}:{1,2,3}:EIO write:2:SHORT; do
    rm -rf state box got
    cp -r before state
    failing "$fault" amp-route -r '* => spool:box' <in >out 2>err
    echo "$fault: status $status"
    [ "$status" -eq 75 ]
    amp-ack repair 2>/dev/null
    amp-route -r '* => spool:box' <in
    cat box/new/* | sort | cmp - <(sort in)
  done
}

@test "route: more answers than are committed at once, none of which is on the disk" {
  for ((i = 1; i <= 340; i++)); do
    echo "{\"eventId\":\"e$i\",\"seq\":$i,\"kind\":\"message\",\"sourceNodeId\":\"n\",\"sourceAgentId\":\"a\",\"corrId\":\"c\",\"createdAt\":\"2026-02-25T16:30:00.000Z\",\"payload\":{\"toAgents\":[]}}"
  done >many
  [ "$(head -c 65536 many | wc -l)" -gt 260 ]
  amp-route -r '* => agents' --agent b=file:got --state counted <many >answers || [ $? -eq 1 ]
  [ "$(wc -l <answers)" -eq 340 ]
  rm -rf state
  cp -r before state
  failing sync:1:EIO amp-route -r '* => agents' --agent b=file:got <many >out 2>err
  [ "$status" -eq 75 ]
  [ ! -s out ]
  amp-ack repair 2>/dev/null
  # Who repeats them is answered about each.
  amp-route -r '* => agents' --agent b=file:got <many >out || [ $? -eq 1 ]
  [ "$(jq -r .payload.refEventId out | sort -u | wc -l)" -eq 340 ]
}

@test "a spool whose disk fails: answered, kept, and nothing half there" {
  head -n 3 in >three
  mkdir box
  status=0
  AMP_FAULT_ROOT=$PWD/box AMP_FAULT=sync:3:EIO LD_PRELOAD=$shim \
    amp-route -r '* => spool:box' <three >out 2>err || status=$?
  [ "$status" -eq 74 ]
  [ "$(jq -r .code out | sort -u)" = eio ]
  amp-ack dead requeue --every | amp-route -r '* => spool:box'
  cat box/new/* | sort | cmp - <(sort three)
}

# inbox_messages N: for the executor.
inbox_messages() {
  for ((i = 1; i <= $1; i++)); do message task_dispatch ".msg_id = \"task_dispatch-T-2026-044-$i\""; done
}

@test "killed at each write and sync of putting and of handing over: all comes, READ never again" {
  inbox_messages 3 >three
  rm -rf state
  amp-ack track </dev/null
  cp -R state empty
  amp-route -r '* => inbox:executor' <three
  cp -R state full
  points=0
  for op in write:KILL write:TORN sync:KILL; do
    # Putting.
    for ((n = 1; n < 100; n++)); do
      rm -rf state
      cp -R empty state
      failing "${op%:*}:$n:${op#*:}" amp-route -r '* => inbox:executor' <three >out 2>err
      [ "$status" -eq 137 ] || break
      points=$((points + 1))
      # Sent again by who was not told, and by the router's own outbox.
      amp-route -r '* => inbox:executor' <three 2>err
      amp-route inbox executor 2>err | sort | cmp - <(sort three)
    done
    [ "$status" -eq 0 ]
    # Handing over.
    for ((n = 1; n < 100; n++)); do
      rm -rf state
      cp -R full state
      failing "${op%:*}:$n:${op#*:}" amp-route inbox executor >out 2>err
      [ "$status" -eq 137 ] || break
      points=$((points + 1))
      # A turn without its end does not count.
      tac state/log/*.ndjson | sed -n '/"end":1/,$p' |
        jq -rR 'fromjson? | select(.key // "" | startswith("inbox.")) | select(.to == "READ") | .key | split(".")[2]' |
        sort -u >were_read
      amp-route inbox executor >again 2>err || [ $? -eq 1 ]
      # One that was on its way may come twice.
      [ "$(cat out again | wc -l)" -le 4 ]
      sort -u out again | cmp - <(sort three)
      [ -z "$(comm -12 were_read <(ids again))" ]
    done
    [ "$status" -eq 0 ]
  done
  echo "# $points points" >&3
  [ "$points" -gt 20 ]
}

@test "killed behind each line that a put writes: whoever is read before the router comes again is answered, too" {
  local id=00000000-0000-4000-8000-000000000001 n l points=0
  sw4rm $id agent-1 DATA '{}' ',"idempotency_token":"agent-1:op:0000000000000001"' >two
  jq -cn '{eventId: "evt-1", seq: 1, kind: "message", sourceNodeId: "vps", sourceAgentId: "architect", corrId: "c",
    createdAt: "2026-02-25T16:22:10.123Z", payload: {toAgents: ["executor"], subject: "s", body: "b"},
    trace: {attempt: 1}}' >>two
  rm -rf state
  amp-ack track </dev/null
  cp -R state empty
  for n in 1 2; do
    for ((l = 0; l < 20; l++)); do
      rm -rf state
      cp -R empty state
      AMP_FAULT_TEXT='"key":"inboxes.executor"' AMP_FAULT_LINES=$l failing write:$n:TORN \
        amp-route -r '* => inbox:executor' <two >out 2>err
      [ "$status" -eq 137 ] || break
      points=$((points + 1))
      amp-route inbox executor >first 2>err || [ $? -eq 1 ]
      amp-route -r '* => inbox:executor' </dev/null >>out 2>err
      amp-route inbox executor >last 2>err || [ $? -eq 1 ]
      echo "write $n, $l lines: $(cat out)"
      sort first last | cmp - <(sort two)
      sed -nE 's/.*"(refEventId|ack_for_message_id)":"([^"]*)".*/\2/p' out | sort | cmp - <(printf '%s\n' $id evt-1)
    done
    [ "$status" -eq 0 ]
  done
  echo "# $points points" >&3
  [ "$points" -gt 4 ]
}

@test "cut off behind each line of a refusal, by a kill or a full disk: one answer, one letter" {
  local l how points=0
  jq -cn '{eventId: "evt-1", seq: 1, kind: "message", sourceNodeId: "vps", sourceAgentId: "architect", corrId: "c",
    createdAt: "2026-02-25T16:22:10.123Z", payload: {toAgents: ["executor"], subject: "s", body: "b"},
    trace: {attempt: 1}}' >one
  rm -rf state
  amp-route -r '* => inbox:executor' <one >/dev/null
  cp -R state full
  for how in TORN SHORT; do
    for ((l = 1; l < 20; l++)); do
      rm -rf state
      cp -R full state
      AMP_FAULT_TEXT='"key":"dead.' AMP_FAULT_LINES=$l failing write:1:$how \
        amp-route inbox executor --attempts 1 --exec false >out 2>err
      [ "$status" -ne 1 ] || break
      points=$((points + 1))
      if [ "$how" = SHORT ]; then
        [ "$status" -eq 75 ]
        amp-ack repair 2>/dev/null
      else
        [ "$status" -eq 137 ]
        rm state/log/watermark # another boot
      fi
      amp-route inbox executor --attempts 1 --exec false >>out 2>err || [ $? -eq 1 ]
      amp-ack sweep >>out
      amp-ack dead list --json >letters
      echo "$how, $l lines: $(cat out letters)"
      [ "$(grep -c failed_terminal out)" -eq 1 ]
      [ "$(jq -r .attempts letters)" = 1 ]
    done
    [ "$status" -eq 1 ]
  done
  echo "# $points points" >&3
  [ "$points" -ge 8 ]
}

@test "killed in the middle of a line in a file: the next run writes all of it on a line of its own" {
  inbox_messages 1 >one
  rm -rf state
  ends 1 amp-route -r 'type=none => stdout' <one >answers
  cp -R state dead
  torn() {
    status=0
    AMP_FAULT_ROOT=$PWD AMP_FAULT_MATCH=said AMP_FAULT=write:1:TORN LD_PRELOAD=$shim "$@" || status=$?
    [ "$status" -eq 137 ] && [ -s said ] && [ -n "$(tail -c 1 said)" ]
  }
  # What is sent again, on standard output and with --out.
  : >said
  torn amp-ack dead requeue --every >>said
  amp-ack dead requeue --every >>said
  tail -n 1 said | cmp - one
  rm -rf state
  cp -R dead state
  : >said
  torn amp-ack dead requeue --every --out said
  amp-ack dead requeue --every --out said
  tail -n 1 said | cmp - one
  # Answers of a router.
  rm -rf state
  : >said
  torn amp-route -r 'type=none => stdout' <one >>said
  amp-route -r 'type=none => stdout' </dev/null >>said
  [ "$(tail -n 1 said | jq -r .code)" = "$(jq -r .code answers)" ]
  # What ends with a line is left as it is.
  cp said kept
  amp-route -r 'type=none => stdout' </dev/null >>said
  cmp said kept
}

@test "power loss at each sync: READ of a message is on the disk before the next one leaves" {
  replay=$AMP_BUILD/tests/fault/replay
  inbox_messages 6 >six
  cat >checker <<'SH'
#!/bin/sh
# What an image hands over: of what left before, the last one at most; all of the rest.
cat >left
sed '$d' left | sort >done_with
[ -s left ] || exit 0
unset LD_PRELOAD
AMP_STATE=$1 amp-route inbox executor 2>said >now || [ $? -eq 1 ] || exit 1
sort now >sorted
[ -z "$(comm -12 done_with sorted)" ] || { echo "again: $(comm -12 done_with sorted | cut -c 1-60)" >&2; exit 1; }
cat left now | sort -u | cmp - <<END || exit 1
$(sort six)
END
SH
  chmod +x checker
  traced() {
    rm -rf state trace work
    mkdir work
    for part in route inbox; do
      local how=()
      [ "$part" = route ] || how=("$@")
      if [ "$part" = route ]; then
        AMP_FAULT_ROOT=$AMP_STATE AMP_FAULT_TRACE=$PWD/trace LD_PRELOAD=$shim amp-route -r '* => inbox:executor' <six
      else
        env AMP_FAULT_ROOT="$AMP_STATE" AMP_FAULT_TRACE="$PWD/trace" LD_PRELOAD="$shim" "${how[@]}" \
          amp-route inbox executor >got
      fi
    done
    cmp six got
  }
  traced
  run -0 "$replay" trace work "$PWD/checker" 1 each
  echo "$output"
  [ "$(wc -l <left)" -eq 6 ]
  # Where the disk does not keep what it says, the same look finds it.
  traced AMP_FAULT_NOSYNC=1
  for seed in {1..40}; do
    rm -rf work
    mkdir work
    run -1 "$replay" trace work "$PWD/checker" "$seed" 200
    [[ $output != *again:* ]] || break
  done
  echo "seed $seed"
  [[ $output == *again:* ]]
}

# seqs NODE: the numbers in its outbox that the log knows, each once.
seqs() {
  cat state/log/*.ndjson | jq -r --arg node "$1" '.. | strings | select(startswith("{\"eventId\"")) | fromjson |
    select(.sourceNodeId == $node).seq' | sort -nu
}

@test "a kill leaves no hole in an outbox's numbers, whoever answers" {
  event() {
    jq -nc --argjson n "$1" --arg to "$2" '{eventId: "evt_\($n)", seq: $n, kind: "message", sourceNodeId: "n1",
      sourceAgentId: "a", createdAt: "2026-02-25T16:22:10Z", trace: {attempt: 1},
      payload: {toAgents: [$to], subject: "s", body: "b"}}'
  }
  # Some have no route, some a place in an inbox, some find it full, and a gap times out.
  local routes=(-r 'id=evt_1 => inbox:ann' -r 'id=evt_2 => inbox:ann' -r 'id=evt_3 => inbox:ann' --inbound ann=1)
  for n in 1 2 3 4 9; do event "$n" ann; done >in
  local n killed=0
  for ((n = 1; n < 100; n++)); do
    rm -rf state
    failing write:$n:KILL amp-route "${routes[@]}" --cursor c --gap-timeout 1ms <in >said.1 2>/dev/null
    [ "$status" -eq 137 ] || break
    killed=$((killed + 1))
    amp-route "${routes[@]}" --cursor c --gap-timeout 1ms <in >said.2 2>/dev/null || [ $? -ne 70 ]
    for node in amp-route c; do
      seqs "$node" >numbers
      [ "$(cat numbers)" = "$(seq "$(wc -l <numbers)")" ] || { echo "write $n: $node"; cat numbers; return 1; }
    done
  done
  [ "$killed" -gt 5 ]
}

# on_disk COMMAND...: ends with 0, and the log then ends with a line that is noted as synced.
on_disk() {
  "$@" >out 2>err || { echo "$*: status $?"; cat err; return 1; }
  amp-ack audit --verify --format ndjson 2>/dev/null | jq -e '.log == "intact" and .last == .noted_end' >end ||
    { echo "$*: $(tail -n 2 state/log/*.ndjson | cut -c 1-200)"; return 1; }
}

@test "a command that ends with 0 has its last change on the disk" {
  inbox_messages 4 >four
  head -n 1 four >one
  rm -rf state
  ends 1 amp-route -r 'type=none => stdout' <one >answers
  cp -R state dead
  local id=task_dispatch-T-2026-044-1
  on_disk amp-ack dead requeue $id
  on_disk amp-route -r '* => inbox:executor' <four
  on_disk amp-route inbox executor --one
  on_disk amp-route inbox executor --one --exec true
  on_disk amp-route inbox executor --fulfill --exec true
  on_disk amp-route -r '* => file:got' <four
  on_disk amp-ack track <four
  on_disk amp-ack sweep
  on_disk amp-ack dead purge --every
  on_disk agent-registry register ann --connector x:y
  on_disk hitl-prompt suspend --agent executor
  on_disk hitl-prompt resume --agent executor
  # The last sync of a run, which is that of the close, fails: late, but it is said.
  rm -rf state
  cp -R dead state
  AMP_FAULT_COUNT=$PWD/count failing sync:0:EIO amp-ack dead requeue $id >out
  [ "$status" -eq 0 ]
  rm -rf state
  cp -R dead state
  failing "sync:$(cat count):EIO" amp-ack dead requeue $id >out 2>err
  cat err
  [ "$status" -eq 75 ]
  grep -q 'cannot sync the log' err
  [ "$(wc -l <out)" -eq 1 ]
}
