# amp-validate --state: what only history can tell. The state is only read.

load ../lib
load ../messages

setup() {
  need jq
  need_tool amp-ack
  cd "$BATS_TEST_TMPDIR" || return 1
  message task_dispatch '.msg_id = "task_dispatch-T-2026-044-1"' >dispatch
  message task_result '.msg_id = "task_result-T-2026-044-2"' >result
  amp-ack track --state state <dispatch >/dev/null
}

# codes [OPTION...]: "line code field" of every record for the lines on standard input.
codes() {
  amp-validate --state state -e records "$@" >out || [ $? -eq 1 ]
  jq -r '"\(.line) \(.code) \(.field)"' records 2>/dev/null
}

@test "what is new passes; nothing is written to the state" {
  find state -type f -exec sha256sum {} + | grep -v -e '-shm$' -e '-wal$' | sort >before
  message task_dispatch | codes
  [ -s out ]
  find state -type f -exec sha256sum {} + | grep -v -e '-shm$' -e '-wal$' | sort | diff before -
}

@test "a known id with other bytes is a duplicate, with the same bytes a redelivery" {
  cat dispatch | codes
  cmp dispatch out
  [ "$(jq -c '.payload.description = "other"' dispatch | codes)" = "1 duplicate_msg_id msg_id" ]
  [ ! -s out ]
}

@test "an id that stood earlier in the stream counts too" {
  message task_dispatch >a
  message task_dispatch '.payload.description = "other"' >b
  [ "$(cat a a b | codes)" = "3 duplicate_msg_id msg_id" ]
  cat a a | cmp - out
}

@test "a review request refers to messages that the state knows, of the right type" {
  [ "$(message review_request | codes)" = "1 unknown_ref payload.task_result_ref" ]
  rm records
  amp-ack track --state state <result >/dev/null
  [ -z "$(message review_request | codes)" ]
  [ "$(message review_request '.payload.task_result_ref = "task_dispatch-T-2026-044-1"' | codes)" = \
    "1 unknown_ref payload.task_result_ref" ]
}

@test "a result is for a subtask of the dispatch" {
  [ -z "$(cat result | codes)" ]
  [ "$(message task_result '.payload.subtask_id = "T-2026-044-S9"' | codes)" = \
    "1 unknown_ref payload.subtask_id" ]
}

@test "acks, nacks and decisions are about messages that the state knows" {
  [ -z "$(message ack | codes)" ]
  [ "$(message ack '.ref_msg_id = "task_dispatch-T-2026-044-9"' | codes)" = \
    "1 unknown_ref ref_msg_id" ]
  rm records
  [ "$(message decision | codes)" = "1 unknown_ref ref_msg_id" ]
}

@test "a suspended task gets no new work, but results, verdicts and decisions flow" {
  need_tool task-dispatch
  repo work
  message task_dispatch '.msg_id = "task_dispatch-T-2026-044-5" | .from = "admin" |
    .to = "coordinator" | .payload.repo = "'"$PWD"'/work" | .payload.risk_level = "low"' >task
  message escalation '.msg_id = "escalation-T-2026-044-7" | .from = "executor" |
    .payload.escalation_type = "permission_denied"' >stop
  cat task stop | ends 75 task-dispatch coordinate --state state >/dev/null 2>&1
  { message task_dispatch '.msg_id = "task_dispatch-T-2026-044-8"'; cat result
    message review_verdict; } >in
  [ "$(codes <in)" = "1 suspended task_id" ]
  sed -n 2,3p in | cmp - out
}

@test "a failed check that the state knows of closes the review gate" {
  need_tool task-dispatch
  repo work
  message task_dispatch '.msg_id = "task_dispatch-T-2026-044-5" | .from = "admin" |
    .to = "coordinator" | .payload.repo = "'"$PWD"'/work" | .payload.risk_level = "low"' >task
  message ci_status '.checks = {"ci": "failed"} | .commit = "a3f8d21"' >red
  cat task result red | ends 75 task-dispatch coordinate --state state >/dev/null 2>&1
  amp-ack track --state state <result >/dev/null
  [[ $(message review_request | codes) = *"1 ci_failed payload.ci_status"* ]]
}

@test "lines of protocols without history keep their place" {
  local sw='{"message_id":"5a1d9c8e-6b3f-4a87-8f5e-91a2c0ab1234","producer_id":"p","correlation_id":"7f3f41a2-2017-4b8f-9b8b-2ad3caaee001","sequence_number":1,"retry_count":0,"message_type":"DATA"}'
  local i
  for i in $(seq 200); do
    message task_dispatch ".msg_id = \"task_dispatch-T-2026-044-10$i\""
    echo "$sw"
  done >in
  [ -z "$(codes <in)" ]
  cmp in out
}

@test "--fail-fast stops where history or the line itself says no" {
  message task_dispatch '.msg_id = "task_dispatch-T-2026-044-11"' >a
  message task_dispatch '.msg_id = "task_dispatch-T-2026-044-12"' >b
  jq -c '.payload.description = "other"' dispatch >twin
  cat a twin b | codes --fail-fast
  cmp a out
  { cat a b; echo nonsense; cat b; } | codes --fail-fast
  cat a b | cmp - out
}

@test "a state directory that is not there is a failure, not a yes" {
  run --separate-stderr amp-validate --state nowhere dispatch
  [ "$status" -ge 64 ]
  [ -z "$output" ]
  [ -n "$stderr" ]
}

@test "without the helper nothing is passed" {
  AMP_LIBEXEC=$PWD run --separate-stderr amp-validate --state state dispatch
  [ "$status" -eq 69 ]
  [ -z "$output" ]
}

# A helper that answers "nothing is wrong", but dies of every line that holds the word.
fake_helper() {
  mkdir helpers
  cat >helpers/state-worker <<EOF
#!/bin/bash
while IFS= read -r line; do
  [[ \$line == *$1* ]] && exit 9
  [[ \$line =~ \"q\":([0-9]+) ]] && echo "{\"q\":\${BASH_REMATCH[1]},\"findings\":[]}"
done
EOF
  chmod +x helpers/state-worker
  export AMP_LIBEXEC=$PWD/helpers
}

@test "a line at which the helper dies is undecided; the others pass in order" {
  fake_helper poison
  local i
  for i in 1 2 3 4 5; do message task_dispatch ".msg_id = \"task_dispatch-T-2026-044-2$i\""; done >five
  sed '3s/Rebuild/poison/' five >in
  run --separate-stderr amp-validate --state state -e records in
  [ "$status" -eq 75 ]
  sed 3d in | cmp - <(printf '%s\n' "$output")
  [ "$(jq -r '"\(.line) \(.code)"' records)" = "3 undecided" ]
}

@test "lines at which the helper dies are undecided, however many" {
  fake_helper T-2026
  run -75 --separate-stderr amp-validate --state state -e records dispatch dispatch dispatch dispatch dispatch
  [ -z "$output" ]
  [ "$(jq -r .code records | sort | uniq -c | xargs)" = "5 undecided" ]
}

@test "a helper that dies by itself ends it; nothing passes" {
  fake_helper x
  printf '#!/bin/bash\nexit 9\n' >helpers/state-worker
  run -75 --separate-stderr amp-validate --state state dispatch dispatch dispatch dispatch
  # Lines are undecided (75), which weighs more than the helper's absence (69).
  [ -z "$output" ]
  [[ $stderr == *"died three times within a minute, and does not start"* ]]
}

@test "what history prints is synced before a line passes" {
  shim=$AMP_BUILD/tests/fault/faildisk.so
  grep -q fsanitize "$AMP_BUILD/flags" && skip "the sanitizer comes before the shim"
  # Without the watermark nobody knows how far the log is on disk. The helper has an environment of its own.
  rm state/log/watermark
  printf '{"q":1,"msg":%s}\n' "$(<dispatch)" >request
  AMP_FAULT_MATCH=log/0 AMP_FAULT_ROOT=$PWD/state AMP_FAULT=sync:1:EIO LD_PRELOAD=$shim \
    run -0 "$AMP_BUILD/libexec/amp/state-worker" --state state <request
  jq -e '.q == 1 and .error.status == 75 and (.error.what | test("cannot sync the log"))' <<<"$output"
  amp-validate --state state dispatch | cmp - dispatch
}
