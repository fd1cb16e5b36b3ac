#!/usr/bin/env bats
# How `task-dispatch coordinate --until-done` ends where FIFOs stay open: never by waiting for what
# nobody will say.

setup() {
  load ../lib
  load ../coordinator
  need jq
  need_tool task-dispatch
  setup_coordinator
  back=$BATS_TEST_TMPDIR/back
  mkfifo "$back"
  exec 8<>"$back" # the workers' end, which stays open
}

# cycle [LINES on stdin]: the owner of a cycle; a run that hangs is 124.
cycle() {
  status=0
  timeout 60 task-dispatch coordinate -s "$S" --until-done -i - -i "$back" \
    >>"$said" 2>"$BATS_TEST_TMPDIR/err" || status=$?
  err=$(cat "$BATS_TEST_TMPDIR/err")
}
# no_answer: what hitl-prompt says of the last escalation when nobody answered.
no_answer() {
  last escalation | jq -c '{protocol_version, type: "nack", ref_msg_id: .msg_id, task_id,
    from: "admin", failed_stage: "FULFILLED", code: "hitl_unavailable", message: "no answer",
    rule: "", retryable: true, timestamp}'
}

@test "no task was opened because it was refused: 1, and it says so" {
  new_task '.branch = "main"' | cycle
  [ "$status" = 1 ]
  [[ "$err" == *branch_violation* ]]
  [[ "$err" == *"ended without a new task"* ]]
}

@test "no task came at all: 1" {
  cycle </dev/null
  [ "$status" = 1 ]
  [[ "$err" == *"ended without a new task"* ]]
}

@test "a task without criteria waits to be completed: 75 names it" {
  new_task '.acceptance_criteria = []' | cycle
  [ "$status" = 75 ]
  [[ "$err" == *"open: T-2026-001"* ]]
  cycle </dev/null
  [ "$status" = 75 ]
}

@test "a new task under the id of an ended one is refused: 1" {
  new_task | hear
  round aaaaaaa1 approved
  new_task '.description = "again"' | cycle
  [ "$status" = 1 ]
  [[ "$err" == *"T-2026-001: the task was refused: terminal"* ]]
}

@test "nobody answers the escalation: 75 names the task; the decision of a later run ends it" {
  new_task | hear
  result failed aaaaaaa1 '.blockers = ["no permission to push"]' | hear
  no_answer >&8
  cycle </dev/null
  [ "$status" = 75 ]
  [[ "$err" == *"open: T-2026-001"* ]]
  decision terminate >&8
  cycle </dev/null
  [ "$status" = 0 ]
}

@test "a nack about anything but its open escalation does not give a task up" {
  new_task | hear
  result failed aaaaaaa1 '.blockers = ["no permission to push"]' | hear
  decision terminate >"$BATS_TEST_TMPDIR/decision"
  no_answer | jq -c --arg ref "$(last task_dispatch | jq -r .msg_id)" '.ref_msg_id = $ref' >&8
  # Behind it one that passes through: when that is out, the nack was taken.
  new_task '.description = "behind it"' |
    sed 's/"to":"coordinator"/"to":"executor"/; s/"from":"admin"/"from":"coordinator"/' >&8
  timeout 60 task-dispatch coordinate -s "$S" --until-done -i - -i "$back" </dev/null >>"$said" 3>&- &
  wait_until 30 grep -qF '"description":"behind it"' "$said"
  cat "$BATS_TEST_TMPDIR/decision" >&8
  wait $!
}

@test "a decision after the missing answer puts the task to work again" {
  new_task | hear
  result failed aaaaaaa1 '.blockers = ["no permission to push"]' | hear
  no_answer >&8
  decision resume >&8
  # In review the task is waited for: nothing but a signal ends this run.
  task-dispatch coordinate -s "$S" --until-done -i - -i "$back" </dev/null >>"$said" 3>&- &
  wait_until 30 eval '[ "$(count task_dispatch)" = 2 ]'
  status=0
  command timeout 1 tail --pid=$! -f /dev/null || status=$?
  [ "$status" = 124 ]
  kill $!
  status=0
  wait $! || status=$?
  [ "$status" = 130 ]
}

@test "a recorded decision is carried out at the next start, wherever its line went" {
  need_tool hitl-prompt amp-ack
  cd "$BATS_TEST_TMPDIR"
  for lost in answer --print filter; do
    rm -rf "$S"
    : >"$said"
    new_task '.risk_level = "high"' | hear
    round aaaaaaa1 approved
    last escalation >question
    [ "$(of_task .state)" != done ]
    case $lost in
    filter)
      echo terminate >answer
      hitl-prompt -s "$S" --answer answer <question >/dev/null
      ;;
    *)
      run -1 hitl-prompt -s "$S" --answer /dev/null <question
      hitl-prompt answer "${lost/#answer/--quiet}" -s "$S" $task terminate >/dev/null
      ;;
    esac
    # The task does not say that it is suspended, and nobody is asked any more.
    run -0 amp-ack doctor -s "$S" --skip clock --skip peers
    [[ $output == *"$task is "*", was decided, but no coordinator has carried it out (terminate)"* ]]
    [[ $output == *"task-dispatch coordinate --state $S </dev/null"* ]]
    cycle </dev/null
    [ "$status" = 0 ]
    [ "$(of_task .state)" = terminated ]
    # Once: the line that comes late changes nothing.
    hitl-prompt -s "$S" --answer /dev/null </dev/null >late
    hear <late
    [ "$status" = 0 ]
    [[ $err != *refused* ]]
    run -0 amp-ack doctor -s "$S" --skip clock --skip peers
    [[ $output != *"no coordinator"* ]]
  done
}

@test "a recorded decision that does not count any more opens its question again" {
  need_tool hitl-prompt
  cd "$BATS_TEST_TMPDIR"
  export AMP_IDENTITY=local
  new_task '.risk_level = "high"' | hear
  round aaaaaaa1 approved
  last escalation >question
  run -1 hitl-prompt -s "$S" --answer /dev/null <question
  hitl-prompt answer --quiet -s "$S" $task resume
  echo '{"hitl":{"operators":["somebody-else"]}}' >amp.json
  task-dispatch coordinate -c amp.json -s "$S" </dev/null >>"$said" 2>err || [ $? = 75 ]
  grep -q "$task: the recorded decision was refused: .*; the question is open again" err
  hitl-prompt list -s "$S" --json | grep -q '"state":"OPEN"'
}
