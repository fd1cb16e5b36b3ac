#!/usr/bin/env bats
# amp-ack: the ledger, acknowledgements, the sweep.

load ../lib
load ../messages

setup() {
  need_tool amp-ack
  cd "$BATS_TEST_TMPDIR"
  export AMP_STATE=$PWD/state
}

teardown() {
  for p in $(jobs -p); do kill "$p" 2>/dev/null || :; done
}

id() { echo ".msg_id |= sub(\"[0-9]+\$\"; \"$1\")"; }
many() {
  message task_dispatch |
    jq -c --argjson n "$1" '. as $m | range($n) | . as $i | $m | .msg_id += "\($i)"'
}
# state ID: how far it came, by the tool's own account.
state() { amp-ack status --all --json | jq -r --arg i "$1" 'select(.msg_id == $i) | .state'; }
D=task_dispatch-T-2026-044-1772116327001
ack() { record ack ".ref_msg_id = \"$D\" | .ack_stage = \"$1\""; }

@test "without a state directory it is wrong usage" {
  unset AMP_STATE
  run -64 amp-ack </dev/null
  run -64 amp-ack status
  run -64 amp-ack sweep
}

@test "looking into a state directory that is not there makes none" {
  for verb in status "dead list" "dead show x" "dead requeue --every"; do
    run -69 amp-ack $verb
    [[ $output == *"no state directory $AMP_STATE" ]]
    [ ! -e "$AMP_STATE" ]
  done
}

@test "track passes byte for byte, and the ledger has what passed" {
  { message task_dispatch; message task_result; message escalation; message decision; } |
    sed 's/":/" :/g' >in
  amp-ack <in | cmp in -
  run -0 amp-ack status --all --json
  [ "$(jq -r .type <<<"$output" | sort | paste -sd' ')" = "escalation task_dispatch task_result" ]
  # The deadline is the message's own.
  jq -se '.[] | select(.type == "task_dispatch") | .due and .sent' <<<"$output"
  jq -se '.[] | select(.type == "escalation") | .due == null' <<<"$output"
  # And it is in the log as it came, for jq to read.
  jq -se 'any(.[]; .. | objects | select(.msg?) | .msg.msg_id == "'$D'")' state/log/*.ndjson
}

@test "the default deadline is 300 seconds" {
  message task_dispatch 'del(.ack_timeout_sec)' | amp-ack >/dev/null
  run -0 amp-ack status --open --json
  jq -e '((.due | sub("[.].*"; "Z") | fromdate) - (.sent | sub("[.].*"; "Z") | fromdate)) as $d | $d >= 299 and $d <= 301' <<<"$output"
}

@test "the same again is a redelivery: passed on, recorded once" {
  message task_dispatch >in
  amp-ack <in >/dev/null
  amp-ack <in | cmp in -
  [ "$(amp-ack status --all --json | wc -l)" -eq 1 ]
}

@test "other bytes under a known id are rejected and do not pass" {
  message task_dispatch | amp-ack >/dev/null
  run -1 --separate-stderr amp-ack < <(message task_dispatch '.payload.description = "other"')
  [ -z "$output" ]
  [[ "$stderr" == *duplicate_msg_id* ]]
  jq -se 'any(.[]; .code == "duplicate_msg_id" and .line == 1)' state/error.ndjson
}

@test "acknowledgements that pass move the message on; then nothing is due" {
  { message task_dispatch; ack READ; ack READ; } >in
  amp-ack <in | cmp in -
  [ "$(state $D)" = READ ]
  ack FULFILLED | amp-ack >/dev/null
  [ "$(state $D)" = FULFILLED ]
  run -0 amp-ack sweep --now 2099-01-01T00:00:00Z
  [ -z "$output" ]
  # The repeated one was recorded once.
  [ "$(amp-ack status --all --json | jq '.acks | length')" -eq 2 ]
}

@test "RECEIVED alone does not settle an AMP message" {
  { message task_dispatch; ack RECEIVED; } | amp-ack >/dev/null
  [ "$(state $D)" = RECEIVED ]
  run -0 amp-ack sweep --now 2099-01-01T00:00:00Z
  [ "$(jq -r .payload.escalation_type <<<"$output")" = ack_timeout ]
}

@test "RECEIVED by an agent that a person suspended: the deadline waits" {
  need_tool hitl-prompt
  { message task_dispatch; ack RECEIVED; } | amp-ack >/dev/null
  hitl-prompt suspend --agent executor
  run -0 amp-ack sweep --now 2099-01-01T00:00:00Z
  [ -z "$output" ]
  [ "$(state $D)" = RECEIVED ]
  grep -q '"from":"RECEIVED","event":"hold","to":"RECEIVED"' "$AMP_STATE"/log/000001.ndjson
}

@test "a nack settles it with its code" {
  { message task_dispatch; record nack ".ref_msg_id = \"$D\" | .failed_stage = \"REJECTED\""; } |
    amp-ack >/dev/null
  [ "$(state $D)" = REJECTED ]
  [ "$(amp-ack status --all --json | jq -r '.acks[0].code')" = branch_violation ]
}

@test "an acknowledgement of nothing known passes, with a word" {
  ack READ >in
  run -0 --separate-stderr amp-ack <in
  [ "$output" = "$(cat in)" ]
  [[ "$stderr" == *unknown_ref* ]]
}

@test "a late acknowledgement is recorded with its time and changes nothing" {
  message task_dispatch | amp-ack >/dev/null
  amp-ack sweep --now 2099-01-01T00:00:00Z >/dev/null
  ack READ | amp-ack >/dev/null
  run -0 amp-ack status --all --json
  [ "$(jq -r '.state, .acks[0].late, .timed_out' <<<"$output" | paste -sd' ')" = \
    "TIMED_OUT true 2099-01-01T00:00:00.000Z" ]
}

@test "sweep escalates what is overdue, once, valid, to the admin" {
  many 3 | amp-ack >/dev/null
  run -0 amp-ack sweep
  [ -z "$output" ]
  run -0 amp-ack sweep --now 2099-01-01T00:00:00Z
  [ ${#lines[@]} -eq 3 ]
  amp-validate <<<"$output" | cmp - <(echo "$output")
  jq -se 'all(.[]; .to == "admin" and .payload.severity == "warning" and
    (.payload.affected_msgs | length) == 1)' <<<"$output"
  run -0 amp-ack sweep --now 2099-01-02T00:00:00Z
  [ -z "$output" ]
}

@test "many sweepers at once make each escalation once" {
  many 30 | amp-ack >/dev/null
  for i in 1 2 3 4; do
    amp-ack sweep --now 2099-01-01T00:00:00Z >"out$i" &
  done
  wait
  [ "$(cat out? | jq -r '.payload.affected_msgs[0]' | sort | uniq -c | awk '$1 == 1' | wc -l)" -eq 30 ]
  [ "$(cat out? | wc -l)" -eq 30 ]
}

@test "a sweeper that was killed before it wrote: the next one writes the same escalation" {
  many 400 | amp-ack >/dev/null
  mkfifo slow
  exec 7<>slow
  amp-ack sweep --now 2099-01-01T00:00:00Z --out slow &
  sweeper=$!
  wait_until 30 bash -c '[ "$(amp-ack status --all --json | jq -r .state | grep -c TIMED_OUT)" -eq 400 ]'
  kill -KILL $sweeper
  wait $sweeper || :
  exec 7<&-
  amp-ack sweep --now 2099-01-01T00:00:00Z >late
  # None is made twice: each id stands for one message.
  jq -r '.payload.affected_msgs[0]' late | sort | uniq -d | wc -l | grep -qx 0
  [ -s late ]
  run -0 amp-ack sweep --now 2099-01-01T00:00:00Z
  [ -z "$output" ]
}

@test "sweep --follow reports it when it falls due, and ends by signal" {
  message task_dispatch '.ack_timeout_sec = 1' | amp-ack >/dev/null
  amp-ack sweep --follow >out &
  sweeper=$!
  wait_until 30 has_lines out 1
  kill -TERM $sweeper
  status=0
  wait $sweeper || status=$?
  [ $status -eq 130 ]
  [ "$(jq -r .payload.escalation_type out)" = ack_timeout ]
}

@test "two trackers at once into one state directory" {
  many 40 >in1
  message review_request |
    jq -c '. as $m | range(40) | . as $i | $m | .msg_id += "\($i)"' >in2
  amp-ack <in1 >out1 &
  amp-ack <in2 >out2
  wait
  cmp in1 out1
  cmp in2 out2
  [ "$(amp-ack status --all --json | wc -l)" -eq 80 ]
}

@test "send acknowledges what asks for it, as its recipient" {
  { message task_dispatch; message escalation; } >in
  run -0 amp-ack send <in
  [ ${#lines[@]} -eq 1 ]
  amp-validate <<<"$output"
  [ "$(jq -r '.type, .from, .ref_msg_id, .ack_stage' <<<"$output" | paste -sd' ')" = \
    "ack executor $D READ" ]
  [ "$(state $D)" = READ ]
  run -0 amp-ack send --stage FULFILLED --from reviewer <in
  [ "$(jq -r '.from, .ack_stage' <<<"$output" | paste -sd' ')" = "reviewer FULFILLED" ]
}

@test "send works alone, and refuses with a code" {
  unset AMP_STATE
  run -0 amp-ack send --stage REJECTED --code branch_violation < <(message task_dispatch)
  [ "$(jq -r '.type, .code, .failed_stage' <<<"$output" | paste -sd' ')" = \
    "nack branch_violation REJECTED" ]
  amp-validate <<<"$output"
}

@test "track in a cycle: a FIFO in, a FIFO out, an output that is full does not stop it" {
  mkfifo in out
  exec 7<>out
  amp-ack --in in --out out &
  track=$!
  exec 8>in
  many 200 | jq -c '.payload.description = ("x" * 2000)' >lines
  cat lines >&8 &
  # 400 KB do not fit into the output, yet all of it is recorded.
  wait_until 20 bash -c '[ "$(amp-ack status --open --json | wc -l)" -eq 200 ]'
  timeout 60 head -n 200 <&7 | cmp lines -
  exec 8>&- 7<&-
  wait $track
}

@test "a reader that goes away ends track quietly, the ledger has what passed" {
  many 200 >in
  amp-ack <in 2>said | head -n 1 >/dev/null || :
  [ ! -s said ]
}

@test "--resend brings again what nobody acknowledged" {
  { message task_dispatch; message review_request; ack READ; } | amp-ack >/dev/null
  run -0 amp-ack --resend </dev/null
  [ "$output" = "$(message review_request)" ]
}

@test "status: a table for people, safe for the terminal" {
  message task_dispatch | amp-ack >/dev/null
  run -0 amp-ack status --open
  [[ "${lines[1]}" == *"coordinator → executor"*SENT* ]]
  [ "${lines[2]}" = "1 SENT" ]
  run -0 amp-ack status --task 'T-1*'
  [ "${lines[0]}" = "no messages" ]
}

@test "show prints a line about each message and passes it on" {
  { message task_dispatch; message review_verdict; message escalation; ack READ; } >in
  run -0 --separate-stderr amp-ack show <in
  [ "$output" = "$(cat in)" ]
  [[ "${stderr_lines[0]}" == "14:32:07  coordinator → executor   task_dispatch   T-2026-044   feature/x, 2 criteria, risk medium" ]]
  [[ "${stderr_lines[1]}" == *"rejected, 1 issue: d" ]]
  [[ "${stderr_lines[2]}" == *"critical hallucination_lock: locked" ]]
  [[ "${stderr_lines[3]}" == *"READ $D" ]]
}

@test "show: what a message says cannot drive the terminal" {
  message escalation '.payload.description = "a\u001b[2Jb\u009bc\u202ed"' >in
  run -0 --separate-stderr amp-ack show --color=always <in
  [ "$output" = "$(cat in)" ]
  seen=$(printf '%s' "$stderr" | sed 's/\x1b\[[0-9;]*m//g')
  [[ "$seen" != *$'\e'* && "$seen" != *$'\u009b'* && "$seen" != *$'\u202e'* ]]
}

@test "a full disk: nothing passes that is not recorded" {
  # An output that takes nothing is an error of the output, the ledger has the message.
  run -74 bash -c 'amp-ack >/dev/full' < <(message task_dispatch)
  [ "$(state $D)" = SENT ]
}

@test "docs/delivery.md shows the machines as they are" {
  for machine in delivery cursor; do
    sed -n "/^$machine (/,/^\`\`\`\$/p" "$AMP_TOP/docs/delivery.md" | sed '$d' >documented
    [ -s documented ]
    amp-ack --machine | sed -n "/^$machine (/,/^\$/p" | sed '/^$/d' | diff documented -
  done
}

@test "the error log is bounded: full files are renamed, the oldest dropped, and counted" {
  mkdir -m 700 state
  echo '{"store": {"error_bytes": 65536, "error_files": 3}}' >state/amp.json
  seq -f '{"type":"task_dispatch","n":%g}' 600 >junk
  for i in 1 2 3; do amp-ack track --state state <junk 2>said$i & done
  for i in 1 2 3; do wait -n || [ $? -eq 1 ]; done
  wc -l said?
  [ "$(ls state | grep -c '^error')" -eq 3 ]
  sizes=$(stat -c %s state/error*)
  for n in $sizes; do [ "$n" -le 65536 ]; done
  cat state/error.2.ndjson state/error.1.ndjson state/error.ndjson >all
  jq -es 'map(select(.code != "older_records")) as $kept | map(select(.code == "older_records")) as $heads |
    ($heads | length) == 3 and $heads[0].earlier == $heads[2].dropped and
    $heads[2].dropped + ($kept | length) == '"$(($(grep -c . said1) + $(grep -c . said2) + $(grep -c . said3)))" all
  jq -c 'select(.code == "older_records")' all >heads
  amp-validate -S "$AMP_TOP/schemas/records/older_records.json" heads | cmp - heads
}

@test "status, log and letters on a read-only medium" {
  message task_dispatch | amp-ack track >out
  mkdir medium
  unshare -rm mount --bind state medium 2>/dev/null || skip "no mounts in a namespace here"
  cat >look <<'SH'
set -e
mount --bind state medium
mount -o remount,ro,bind medium
export AMP_STATE=$PWD/medium
amp-ack status --all --json
amp-ack log | grep -c task_dispatch
amp-ack dead list
amp-ack cursors list
amp-route inbox executor --list || [ $? -eq 1 ] # it is empty
agent-registry list
amp-ack doctor --skip clock --skip peers
rc=0
amp-ack sweep || rc=$?
[ $rc -eq 73 ]
SH
  run -0 unshare -rm bash look
  [[ $output == *'"msg_id":"task_dispatch-T-2026-044-'*"is readable: 1 message"*"Read-only file system"* ]]
  # The same where only the index has to be read again from the log.
  rm state/index*
  run -0 unshare -rm bash look
  [[ $output == *'"msg_id":"task_dispatch-T-2026-044-'* ]]
}

@test "a refusal mentions no recipient where the message names none" {
  need jq
  sw4rm m1 producer DATA '{"a":1}' "" | amp-ack track --state state --now 2026-03-01T12:00:00Z >/dev/null
  amp-ack sweep --state state --now 2026-03-01T12:01:00Z |
    jq -e '.msg.payload.note | startswith("No acknowledgement of DATA: sent at")'
}

@test "final messages leave the live set after their days, and duplicates are still found" {
  native "a preloaded shim must come first"
  local shim=$AMP_BUILD/tests/fault/failclock.so
  [ -e "$shim" ] || make_same "$shim"
  mkdir -m 700 state
  echo '{"store":{"segment_bytes":65536,"keep_segments":2,"keep":{"messages":20,"duplicates":60}}}' >state/amp.json
  later() { env LD_PRELOAD="$shim" FAIL_CLOCK_SHIFT=$(($1 * 86400)) "${@:2}"; }
  fill() { many 400 | jq -c --arg d "$1${2-}" '.msg_id += $d' | later "$1" amp-ack >/dev/null; }
  message task_dispatch "$(id 1)" >first
  amp-ack <first >/dev/null
  message task_dispatch "$(id 2)" | amp-ack >/dev/null
  record ack '.ref_msg_id = "task_dispatch-T-2026-044-1" | .ack_stage = "FULFILLED"' | amp-ack >/dev/null
  fill 19
  [ "$(later 19 amp-ack status --all --json | jq -r 'select(.msg_id == "task_dispatch-T-2026-044-1") | .state')" = FULFILLED ]
  # Retention works on behind what is recorded. The other one still waits for its acknowledgement.
  local batch
  left() { later 22 amp-ack status --all --json | jq -r .msg_id | grep -c '^task_dispatch-T-2026-044-[12]$'; }
  for batch in {1..8}; do
    fill 22 "$batch"
    [ "$(left)" -gt 1 ] || break
  done
  [ "$(left)" -eq 1 ]
  grep -h '"forget":' state/log/*.ndjson | jq -e '.forget[][0] | select(. == "message.task_dispatch-T-2026-044-1")'
  n=$(later 22 amp-ack status --all --json | wc -l)
  later 22 amp-ack <first >again
  cmp first again
  [ "$(later 22 amp-ack status --all --json | wc -l)" -eq "$n" ]
  run -0 amp-ack audit --verify
  # After its days it is a new message.
  fill 70
  later 70 amp-ack <first >/dev/null
  [ "$(later 70 amp-ack status --all --json | jq -r .msg_id | grep -c '^task_dispatch-T-2026-044-1$')" -eq 1 ]
}
