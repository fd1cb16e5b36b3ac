#!/usr/bin/env bats
# amp-ack doctor: each problem is reported with its fix; nothing is changed.

load ../lib
load ../messages

setup() {
  cd "$BATS_TEST_TMPDIR" || return
  unset AMP_IDENTITY
  export AMP_STATE=$PWD/state
  amp-ack track < <(message task_dispatch '.requires_ack = false | del(.ack_timeout_sec)') >/dev/null
}

# The clock of a test machine need not be synchronised.
doctor() {
  amp-ack doctor --skip clock "$@"
}

# found LEVEL CHECK TEXT [OPTION...]: one such line with a command behind it, and status 1 for a failure.
found() {
  local level=$1 check=$2 text=$3 status=0
  shift 3
  [ "$level" = warn ] || status=1
  run "-$status" --separate-stderr doctor --json "$@"
  jq -se --arg l "$level" --arg c "$check" --arg t "$text" \
    'map(select(.level == $l and .check == $c and (.what | test($t)))) | length >= 1' <<<"$output" ||
    {
      echo "$output" >&2
      return 1
    }
}

# fixed: runs the fix of the first problem.
fixed() {
  local command
  command=$(jq -rs 'map(select(.level != "ok")) | .[0].fix // "false"' <<<"$output")
  echo "fix: $command"
  (eval "$command")
}

@test "all is well: 0, a line for each check, and nothing is touched" {
  # SQLite's memory for locks is not the index.
  find state -type f ! -name '*-shm' -exec sha256sum {} + | sort >before
  find state -printf '%p %T@ %m\n' | grep -v 'shm\|main.lock' | sort >times
  run -0 --separate-stderr doctor
  [ -z "$stderr" ]
  [ "$(cut -c1-2 <<<"$output" | sort -u)" = ok ]
  [ "$(awk '{print $2}' <<<"$output" | sort -u | paste -sd' ')" = \
    "dead deadlines fifos hooks identity locks peers permissions state tasks" ]
  run -0 doctor --json
  jq -se 'length >= 9 and all(.level == "ok")' <<<"$output"
  find state -type f ! -name '*-shm' -exec sha256sum {} + | sort | cmp before -
  find state -printf '%p %T@ %m\n' | grep -v 'shm\|main.lock' | sort | cmp times -
  run -64 amp-ack doctor --skip nothing
}

@test "one message, two messages" {
  found_ok() { doctor --json | jq -se --arg t "$1" 'any(.check == "state" and (.what | endswith($t)))'; }
  found_ok ' is readable: 1 message'
  amp-ack track >/dev/null \
    < <(message task_dispatch '.requires_ack = false | del(.ack_timeout_sec) | .msg_id = "task_dispatch-T-2026-044-7"')
  found_ok ' is readable: 2 messages'
}

@test "state directory: missing, open to others, no room, failed, damaged, torn, without an index" {
  found fail state 'no state directory' --state nowhere
  chmod 750 state
  found fail state 'other users can enter'
  fixed
  chmod 644 state/log/000001.ndjson
  found fail state 'other users can open'
  fixed
  # As anywhere else, an amp.json may be read if there is no secret in it.
  (umask 022 && echo '{}' >state/amp.json)
  run -0 doctor
  chmod 646 state/amp.json
  found fail permissions 'other users can write [^ ]*state/amp.json'
  fixed
  rm state/amp.json
  found fail state 'free on its disk' --min-free 1000000G
  (umask 077 && touch state/log/FAILED)
  found fail state 'a write to the log failed'
  fixed
  run -0 doctor
  rm -f state/index*
  found warn state 'index is missing'
  fixed
  (umask 077 && echo 'not an index at all, but longer than its head' >state/index.db)
  rm -f state/index.db-*
  found warn state 'is damaged'
  fixed
  amp-ack sweep
  run -0 doctor
  # Another program changes a row that no command needs.
  sqlite3 state/index.db "UPDATE rec SET rev=rev+1; PRAGMA wal_checkpoint(TRUNCATE)" >/dev/null
  found warn state 'the index is damaged: page [0-9]+ is not what was written'
  fixed
  amp-ack sweep
  run -0 doctor
  printf '{"h":"half of a fra' >>"$(ls state/log/0*.ndjson | tail -1)"
  found warn state 'incomplete'
  fixed
  amp-ack track < <(message review_request '.requires_ack = false | del(.ack_timeout_sec)') >/dev/null
  run -0 doctor
  # In the middle of the log: damage.
  sed -i '1s/task_dispatch/task_dispetch/' "$(ls state/log/0*.ndjson | head -1)"
  rm -f state/index*
  found fail state 'log_damaged|cannot be read'
}

@test "a lock that is held long names its holder" {
  (umask 077 && mkdir -p state/run)
  mkfifo in
  amp-route --in in --hold -r '* => file:x' &
  router=$!
  held() { [[ $(doctor) == *'run/amp-route.lock is held by amp-route (pid'* ]]; }
  wait_until 30 held
  kill -STOP $router
  wait_until 30 grep -q '^State:.T' /proc/$router/status
  found warn locks 'held by a stopped process'
  fixed
  run -0 doctor
  kill $router
  ends 130 wait $router
}

@test "lines that nobody writes, deadlines that nobody watches, letters that pile up" {
  amp-ack track --now 2026-02-26T14:32:07Z < <(message review_verdict) >/dev/null
  found warn deadlines 'overdue since'
  amp-ack sweep >/dev/null
  # A sweep that was stopped by a full output leaves its line behind.
  amp-ack track --now 2026-02-26T14:32:07Z < <(message task_result) >/dev/null
  run amp-ack sweep --out /dev/full
  run doctor --json --old-after 0
  found warn outbox 'amp-ack.sweep: 1 line waits' --old-after 0
  fixed
  [ -s escalations.ndjson ]
  for i in 1 2 3; do
    run amp-route -r 'to=nobody => file:x' < <(message task_dispatch ".msg_id = \"task_dispatch-T-2026-044-$i\"")
  done
  found warn dead '5 dead letters' --most-dead 4
  fixed
  run -0 doctor --most-dead 5
}

@test "a suspended task waits for a person" {
  need_tool hitl-prompt
  run -1 hitl-prompt --answer /dev/null < <(message escalation)
  found warn tasks 'T-2026-044 is suspended'
}

@test "helpers that are missing, of another version, and commands that are not there" {
  mkdir helpers
  cp "$AMP_BUILD"/libexec/amp/* helpers/
  export AMP_LIBEXEC=$PWD/helpers
  run -0 doctor
  rm helpers/jq-worker
  found fail peers 'helper jq-worker is missing'
  printf '#!/bin/sh\necho "jq-worker 0.0.1"\n' >helpers/jq-worker
  chmod +x helpers/jq-worker
  found fail peers 'has the wrong version: jq-worker 0.0.1'
  unset AMP_LIBEXEC
  echo '{"route": {"routes": ["to=x => command:no-such-command --now", "* => exec-each:/bin/true"]}}' >amp.json
  found fail peers 'no-such-command of a route does not exist' -c amp.json
  PATH=$AMP_BUILD/bin:$PWD/none found warn peers 'git is missing' || {
    # jq is not there either then: looked at by hand.
    run -1 env PATH="$AMP_BUILD/bin" amp-ack doctor --skip clock --strict
    [[ $output == *"git is missing"* ]]
  }
}

@test "secrets that others can read" {
  echo '{"redact": {"patterns": ["corp-[0-9]{8}"]}}' >amp.json
  chmod 644 amp.json
  run -0 doctor -c amp.json
  chmod 666 amp.json
  found fail permissions 'other users can write' -c amp.json
  fixed
  echo '{"route": {"routes": ["* => https://ann:hunter2@host/"]}}' >amp.json
  chmod 644 amp.json
  found fail permissions 'which contains a secret' -c amp.json
  [[ $output != *hunter2* ]]
  fixed
  echo 'X-Anything: 1' >headers
  chmod 640 headers
  found fail permissions 'which is for secrets' headers
  fixed
  run -0 doctor -c amp.json headers
}

@test "settings that do not count in the state directory, with what moves them" {
  export XDG_CONFIG_HOME=$PWD/cfg
  echo '{"qa": {"min_confidence": 0.1}, "hitl": {"operators": ["eve"]}}' >state/amp.json
  chmod 600 state/amp.json
  found warn permissions 'amp.json: ignored: qa.min_confidence, hitl.operators; a state directory may set only store and redact'
  fixed
  run -0 doctor
  jq -e '.qa.min_confidence == 0.1' cfg/amp/amp.json
  # They are not even checked, in any tool; those that count are.
  echo '{"qa": {"min_confidence": "none"}, "routes": 1, "http": {}, "route": {"no": {"such": []}}, "store": {"keep_days": 3}}' >state/amp.json
  found warn permissions 'amp.json: ignored: qa.min_confidence, routes, http, route.no.such;'
  run -0 --separate-stderr amp-ack status
  [ "$(grep -c 'amp.json: ignored: qa.min_confidence, routes, http, route.no.such;' <<<"$stderr")" -eq 1 ]
  echo '{"qa": {"min_confidence": "none"}, "store": {"keep_days": "x"}}' >state/amp.json
  run -78 amp-ack status
  [[ $output == *"state/amp.json: store.keep_days: "* ]]
  # What belongs there stays, and is moved by hand.
  echo '{"store": {"keep_days": 3}, "qa": {"lock_after": 9}}' >state/amp.json
  chmod 600 state/amp.json
  found warn permissions 'amp.json: ignored: qa.lock_after;'
  EDITOR=echo run -0 fixed
  [[ $output == *"$PWD/state/amp.json $PWD/cfg/amp/amp.json" ]]
}

@test "the guard of a repository" {
  need_tool worktree-bind
  repo repo
  found warn hooks 'no guard is installed' --repo repo
  fixed
  run -0 doctor --repo repo
  chmod -x repo/.git/hooks/branch-guard
  found fail hooks 'executable' --repo repo
  fixed
  run -0 doctor --repo repo
  found fail hooks '' --repo "$PWD"
}

@test "FIFOs without a reader, without a writer, full, with half a line; they are not disturbed" {
  mkfifo pipe
  found warn fifos 'no process has it open' pipe
  found fail fifos 'no such file' nopipe
  echo '{"route": {"routes": ["* => fifo:amp.json"]}}' >amp.json
  found fail fifos 'is not a FIFO' -c amp.json
  # A writer that waits in open() for its reader must go on waiting.
  (echo kept >pipe) &
  writer=$!
  run doctor pipe
  cat pipe >got &
  wait $writer $!
  [ "$(cat got)" = kept ]
  # Only a writer (it was opened while there was a reader).
  exec 7<>pipe
  exec 8>pipe
  exec 7>&-
  found fail fifos 'no process reads' pipe
  exec 8>&-
  exec 7<>pipe
  run -0 doctor pipe
  head -c 65536 /dev/zero >&7
  found fail fifos 'it is full' pipe
  head -c 65536 <&7 >/dev/null
  exec 9<pipe
  exec 7>&-
  found warn fifos 'waits for a writer' pipe
  chmod +t pipe
  found warn fifos 'within a line' pipe
  fixed
  [ ! -k pipe ]
  exec 9>&-
}

@test "a clock that was set back, that jumps, that nobody sets" {
  shim=$AMP_BUILD/tests/fault/failclock.so
  [ -e "$shim" ] || make_same "$shim" || make_same build/tests/fault/failclock.so
  native "a preloaded shim must come first"
  clock() { LD_PRELOAD=$shim FAIL_CLOCK_SYNC=1 amp-ack doctor --skip peers --skip hooks "$@"; }
  run -0 clock
  FAIL_CLOCK_SHIFT=-3600 run -1 clock
  [[ $output == *"fail  clock"*"in the future"* ]]
  FAIL_CLOCK_JUMP=5000 run -1 clock
  [[ $output == *"the clock jumped by"* ]]
  run -0 env LD_PRELOAD="$shim" FAIL_CLOCK_SYNC=0 amp-ack doctor --skip peers --skip hooks
  [[ $output == *"not synchronized"* ]]
}

@test "a warning changes the status only with --strict" {
  rm -f state/index*
  run -0 doctor --skip peers
  [[ $output == *"warn  state"*"fix: amp-ack status --state "* ]]
  [[ $output == *"0 problems, 1 warning"* ]]
  run -1 doctor --skip peers --strict
  amp-ack status >/dev/null
  run -0 doctor --skip peers --strict
}

@test "damage in an old segment is found, and what the doctor says repairs it" {
  echo '{"store": {"segment_bytes": 65536}}' >state/amp.json
  chmod 600 state/amp.json
  message task_result '.requires_ack = false | del(.ack_timeout_sec)' |
    awk '{ for (i = 0; i < 300; i++) { l = $0; sub(/1772116327001/, "1772116327001" i, l); print l } }' >in
  amp-ack track <in >out
  [ -e state/log/000003.ndjson ]
  run -0 doctor --skip peers
  # One bit, in the middle of the first.
  middle=$(($(stat -c %s state/log/000001.ndjson) / 2))
  byte=$(od -An -tu1 -j "$middle" -N 1 state/log/000001.ndjson)
  printf "\\x$(printf %02x $((byte ^ 1)))" | dd of=state/log/000001.ndjson bs=1 seek="$middle" conv=notrunc status=none
  found fail state 'log_damaged: log/000001.ndjson is damaged at offset' --skip peers
  [[ $output != *"can be read"* ]]
  fixed 2>said
  grep -q 'frame [0-9]* is lost' said
  run -0 doctor --skip peers
  [ "$(amp-ack status --all --json | wc -l)" -eq 300 ]
}

@test "on a terminal the doctor says how far it has read" {
  need script
  echo '{"store": {"segment_bytes": 65536}}' >state/amp.json
  message task_dispatch '.requires_ack = false | del(.ack_timeout_sec)' |
    awk '{ for (i = 0; i < 200; i++) { l = $0; sub(/1772116327001/, "1772116327001" i, l); print l } }' |
    amp-ack track >out
  run script -qec "amp-ack doctor --skip clock --skip peers" /dev/null
  [[ $output == *"reading the log: segment 1 of "*"reading the log: segment 2 of "* ]]
}

@test "a directory that cannot be read is one finding" {
  as=()
  if [ "$(id -u)" -eq 0 ]; then
    need setpriv
    as=(setpriv --bounding-set -dac_override,-dac_read_search --inh-caps -all)
    "${as[@]}" true 2>/dev/null || skip "capabilities cannot be dropped here"
  fi
  for below in . log run; do
    mkdir -p state/run
    chmod 700 state/run
    chmod 0 "state/$below"
    run -1 --separate-stderr "${as[@]}" "$(command -v amp-ack)" doctor --skip clock --json
    [ "$(grep -vc '"level":"ok"' <<<"$output")" -eq 1 ]
    [[ $output == *'cannot read the directory'* ]]
    fixed
    "${as[@]}" "$(command -v amp-ack)" doctor --skip clock --skip peers
  done
}

@test "what is not a regular file is found, one finding for each" {
  for file in index.db error.ndjson log/next.lock log/main.lock log/watermark; do
    rm -f "state/$file"
    mkfifo -m 600 "state/$file"
    run -1 --separate-stderr amp-ack doctor --skip clock --json
    [ "$(grep -vc '"level":"ok"' <<<"$output")" -eq 1 ]
    [[ $output == *"state/$file is not a regular file"* ]]
    fixed
    amp-ack doctor --skip clock --skip peers
  done
  [ "$(amp-ack status --open --json --all | grep -c msg_id)" -eq 1 ]
}

@test "questions that nobody can answer any more" {
  need_tool hitl-prompt task-dispatch
  message escalation >one
  message escalation '.msg_id |= sub("1$"; "2")' >two
  cat one two | run -1 hitl-prompt --answer /dev/null
  found warn tasks 'T-2026-044 is suspended: a person must decide' --skip peers
  # Decided, and the decision went nowhere.
  ref=$(jq -r .msg_id one)
  jq -nc --arg ref "$ref" '{ref_msg_id: $ref, decision: "terminate", note: "done"}' >answer
  run -1 --separate-stderr hitl-prompt --answer answer <one
  grep '"type":"decision"' <<<"$output" >decision
  found warn tasks "the question it waits for, $ref, was decided, but no coordinator" --skip peers
  # What the doctor says carries it out, though the decision's line was never read; the other question is left over.
  fixed
  found warn tasks "the question $(jq -r .msg_id two) about T-2026-044 can no longer be answered: its task has ended" --skip peers
  [ "$(jq -s 'map(select(.level != "ok")) | length' <<<"$output")" -eq 1 ]
}

@test "an open question of another protocol can be answered, and is no finding" {
  need_tool hitl-prompt
  sw4rm 00000000-0000-4000-8000-000000000001 sched HITL_INVOCATION \
    '{"invocation_id":"hitl-1","reason_type":"SECURITY_APPROVAL","subject":{"task_id":"t"}}' "" . |
    run -1 hitl-prompt --answer /dev/null
  run -0 --separate-stderr doctor
  [[ $output == *'ok    tasks        no task is suspended'* ]]
}

@test "a log of another format: every tool refuses it with its number, and writes nothing" {
  message task_dispatch >one.ndjson
  export AMP_STATE=$PWD/formats
  amp-ack track <one.ndjson >/dev/null
  local last=(formats/log/0*.ndjson)
  sed -i '1s/^{"v[0-9]*":/{"v99":/' "${last[-1]}"
  cat formats/log/0*.ndjson >before
  for command in "amp-ack status" "amp-ack track" "amp-ack sweep" "amp-ack repair" "amp-ack dead list" \
    "amp-ack cursors list" "amp-route inbox mbp --list" "agent-registry list" "task-dispatch coordinate"; do
    run -78 bash -c "$command <one.ndjson"
    [[ $output == *'format 99'* ]]
  done
  run -78 bash -c "amp-route -r '* => file:x' <one.ndjson"
  [ ! -s x ]
  run -1 amp-ack doctor
  [[ $output == *log_format* ]]
  cat formats/log/0*.ndjson | cmp - before
}

@test "every damaged blob and every missing one is found" {
  local i
  need jq
  # Lines of more than a MiB are in blobs.
  message task_dispatch | jq -c '. as $m | range(12) | . as $i | $m | .msg_id = "task_dispatch-T-2026-044-\($i + 10)" | .requires_ack = false |
    del(.ack_timeout_sec) | .payload.description = "\($i)" + "x" * 1200000' >big.ndjson
  amp-ack track <big.ndjson >/dev/null
  blobs=("$AMP_STATE"/blob/*)
  [ ${#blobs[@]} -ge 12 ]
  doctor >found_out
  ! grep blob/ found_out || false
  for i in {0..9}; do
    case $((i % 3)) in
    0) printf '\0' | dd of="${blobs[i]}" bs=1 seek=$((i * 1000)) conv=notrunc status=none ;;
    1) truncate -s -1 "${blobs[i]}" ;;
    2) : >"${blobs[i]}" ;;
    esac
  done
  rm "${blobs[10]}"
  run -1 doctor --json
  [ "$(grep -c '"check":"state","level":"fail","what":"blob/[0-9a-f]* is damaged"' <<<"$output")" -eq 10 ]
  [ "$(grep -c 'is missing' <<<"$output")" -eq 1 ]
  grep -qF "blob/${blobs[10]##*/} is missing" <<<"$output"
  run -1 grep -q 'is readable: ' <<<"$output"
  # Also when the index is up to date, and with no index at all.
  amp-ack status >/dev/null
  run -1 doctor
  [ "$(grep -c 'blob/' <<<"$output")" -eq 11 ]
  rm "$AMP_STATE"/index*
  run -1 doctor
  [ "$(grep -c 'blob/.* is damaged' <<<"$output") $(grep -c 'blob/.* is missing' <<<"$output")" = "10 1" ]
}
