#!/usr/bin/env bats
# The executor of sessions under kill -9 at each of its steps: each TASK ends with one RESPONSE, whose work was recorded.
# SESSION_ROUNDS=1000 for more kills (default: 8). # slow

load ../lib
load ../session

setup_file() {
  export SHIM=$AMP_BUILD/tests/fault/faildisk.so
  [ -e "$SHIM" ]
}

setup() {
  native "a preloaded shim must come first"
  need jq
  sessions
  # A chain: a fallback, a refusal, work with a snapshot that fails, and what depends on nothing.
  { task crash ".session.workflow_pattern = \"CHAIN\" | $(others CODEX part ALL_ERRORS)"
    task good '.session.workflow_pattern = "CHAIN" | .task.inputs = [{type: "FILE", path: "none"}]'
    task 'echo changed >kept.txt; exit 1' '.session.workflow_pattern = "CHAIN"
      | .task.expected_outputs = [{type: "FILE", path: "kept.txt", description: "k",
          rollback_snapshot: {enabled: true, snapshot_path: "kept.before", snapshot_strategy: "COPY"}}]'
    task good '.session.workflow_pattern = "CHAIN"'; } >in
}

fail() {
  echo "$*" >&2
  return 1
}

# one_of STATUS|STATUS COMMAND...: the command ends with one of them.
one_of() {
  local status=0
  "${@:2}" || status=$?
  # shellcheck disable=SC2053 # a pattern
  [[ $status == @($1) ]] || fail "status $status, expected $1: ${*:2}"
}

# begin: a new state and workspace.
begin() {
  rm -rf "$STATE" ws
  mkdir -m 700 "$STATE"
  mkdir ws
  echo original >ws/kept.txt
}

# one_each FILE...: the RESPONSEs in the files; each TASK has one, which may have been written twice.
one_each() {
  cat "$@" | jq -c 'select(.message_type == "RESPONSE")' | sort -u >all.ndjson
  [ "$(jq -r '"\(.task_id) \(.task_status.state) \(.task_status.final_signal) \(.error_details.error_code)"' all.ndjson | sort)" = \
    "$(printf '%s\n' 'T-1 COMPLETED PARTIAL_SUCCESS null' 'T-2 FAILED FAILURE E_FILE_NOT_FOUND' \
      'T-3 FAILED FAILURE E_PROCESS_CRASH' 'T-4 COMPLETED SUCCESS null')" ] || {
    cat all.ndjson err.txt >&2
    return 1
  }
}

@test "kill -9 at each step: every TASK ends with exactly one RESPONSE" {
  local n steps rounds=${SESSION_ROUNDS:-8} seed=${SESSION_SEED:-$RANDOM}
  begin
  AMP_FAULT_COUNT=$PWD/steps AMP_FAULT_ROOT=$STATE AMP_FAULT=step:0:KILL LD_PRELOAD=$SHIM ends 1 session_run <in
  steps=$(cat steps)
  [ "$steps" -gt 40 ]
  one_each out.ndjson
  [ "$(cat ws/kept.txt)" = original ]
  echo "# $steps steps, seed $seed" >&3
  RANDOM=$seed
  for ((n = 0; n < rounds; n++)); do
    local at=$((rounds >= steps && n < steps ? n + 1 : (RANDOM << 15 | RANDOM) % steps + 1))
    begin
    : >out.ndjson
    AMP_FAULT_ROOT=$STATE AMP_FAULT=step:$at:KILL LD_PRELOAD=$SHIM one_of '137|1' session_run <in 2>/dev/null
    mv out.ndjson first.ndjson
    one_of '0|1' session_run <in
    one_each first.ndjson out.ndjson || fail "killed at step $at of $steps"
    [ "$(cat ws/kept.txt)" = original ] || fail "killed at step $at of $steps: $(cat ws/kept.txt)"
  done
}

@test "what a killed run left in a file with a snapshot is undone before the next one" {
  begin
  TASKS=0
  task 'cat kept.txt >>seen.txt; echo half >kept.txt; [ -e second ] || { touch started; sleep 30; }' \
    '.task.expected_outputs = [{type: "FILE", path: "kept.txt", description: "k", rollback_snapshot: {enabled: true}}]' >in
  aop-session run --state "$STATE" --config amp.json <in >out.ndjson 2>err.txt 3>&- &
  local pid=$!
  wait_until 10 test -e ws/started
  kill -9 $pid
  ends 137 wait $pid
  touch ws/second
  session_run </dev/null
  ended T-1 COMPLETED SUCCESS
  [ "$(cat ws/seen.txt)" = "original
original" ]
  [ "$(cat ws/kept.txt)" = half ]
  ! grep -q ROLLBACK_INITIATED out.ndjson
}

# killed COMMAND: kills the command at some of its steps, each time in a new copy of submitted.state; `check` follows after the
# command was given again.
killed() {
  local n at steps rounds=${SESSION_ROUNDS:-8} seed=${SESSION_SEED:-$RANDOM}
  cp -a submitted.state "$STATE"
  AMP_FAULT_COUNT=$PWD/steps AMP_FAULT_ROOT=$STATE AMP_FAULT=step:0:KILL LD_PRELOAD=$SHIM ends 0 "$@"
  steps=$(cat steps)
  [ "$steps" -gt 10 ]
  echo "# $1: $steps steps, seed $seed" >&3
  RANDOM=$seed
  for ((n = 0; n < rounds && n < steps; n++)); do
    at=$((rounds >= steps ? n + 1 : (RANDOM << 15 | RANDOM) % steps + 1))
    rm -rf "$STATE"
    cp -a submitted.state "$STATE"
    AMP_FAULT_ROOT=$STATE AMP_FAULT=step:$at:KILL LD_PRELOAD=$SHIM one_of '137|0' "$@" 2>/dev/null
    "$@" || fail "$1, killed at step $at of $steps: $(cat err.txt)"
    check || fail "$1, killed at step $at of $steps: $(cat err.txt out.ndjson)"
  done
  rm -rf "$STATE"
}

@test "a cancel or a change of priority that is killed at any step is completed by the next one" {
  # The TASK is one of those that abort their session: what waits for it is skipped.
  { task good '.execution_policy.on_failure = "ABORT_SESSION"'; task good; } >in
  rm -rf "$STATE"
  task-queue submit -s "$STATE" -c amp.json <in >submitted
  mv "$STATE" submitted.state
  cancel() { task-queue cancel -s "$STATE" -c amp.json S-1/T-5/1 2>err.txt; }
  check() {
    task-queue work -s "$STATE" -c amp.json --type Emma=1 --drain -x true >out.ndjson 2>err.txt
    [ "$(jq -r 'select(.message_type == "RESPONSE") | "\(.task_id) \(.task_status.state)"' out.ndjson | sort | paste -sd,)" = "T-5 ABORTED,T-6 SKIPPED" ] &&
      [ "$(amp-ack status -s "$STATE" --all --json | jq -r .state | sort -u)" = FAILED ] &&
      [ "$(aop-session list -s "$STATE" --json | jq -r .aborted_by)" = T-5 ]
  }
  killed cancel
  escalate() { aop-session escalate -s "$STATE" -c amp.json S-1 T-5 CRITICAL >out.ndjson 2>err.txt; }
  check() {
    aop-session report -s "$STATE" -c amp.json --interim S-1 >out.ndjson 2>err.txt
    jq -e '.tasks[0].priority == "CRITICAL" and ([.events[] | .new_priority] == ["CRITICAL"])' out.ndjson >/dev/null &&
      [ "$(task-queue list -s "$STATE" --json | jq -r 'select(.task == "T-5").priority')" = -15 ]
  }
  killed escalate
}
