# The coordinator under load and in company. # slow

load ../lib
load ../coordinator

setup() {
  setup_coordinator
}

# An executor or a reviewer that answers every line of its input: jq, one line in, one line out.
executor='select(.type == "task_dispatch") | {msg_id: ("task_result" + .msg_id[13:]),
  protocol_version: "AMP/1.0", type: "task_result", from: "executor", to: "coordinator",
  task_id: .task_id, timestamp: "2026-02-26T14:32:07Z", requires_ack: true,
  context_ref: [.msg_id], payload: {subtask_id: .payload.subtasks[0].subtask_id,
  completion_status: "complete", diff_summary: {files_changed: [], lines_added: 0,
  lines_removed: 0}, self_assessment: {criteria_met: [null], notes: [.payload.description]},
  work_log: [], commit_hash: "abcdef\(.task_id[-3:])\(.payload.tech_constraints.attempt)"}}'
reviewer='select(.type == "review_request") | {msg_id: ("review_verdict" + .msg_id[14:]),
  protocol_version: "AMP/1.0", type: "review_verdict", from: "reviewer", to: "coordinator",
  task_id: .task_id, timestamp: "2026-02-26T14:32:07Z", requires_ack: true,
  context_ref: [.msg_id], payload: ({decision: (if .payload.reject_count == 0 then "rejected"
  else "approved" end), criteria_results: [], confidence: 0.9} + (if .payload.reject_count == 0
  then {issues: [{severity: "major", file: "a", line: 1, description: ("d" * 2000),
  suggested_fix: "f"}]} else {} end))}'

tasks() {
  local i
  for ((i = $1; i <= $2; i++)); do
    task=$(printf 'T-2026-%03d' "$i")
    new_task '.acceptance_criteria = ["c"] | .description = "w" * 5000'
  done
}

@test "a cycle of FIFOs with 100 tasks of 5 KB comes to its end" {
  tasks 1 100 >"$BATS_TEST_TMPDIR/new"
  cd "$BATS_TEST_TMPDIR"
  mkfifo back work
  # The workers stand behind one FIFO and answer into another: 500 KB in flight in each direction.
  jq --unbuffered -c "($executor), ($reviewer)" <work >back &
  worker=$!
  run -0 timeout 120 task-dispatch coordinate -s "$S" --until-done --in - --in back --out work \
    <new
  wait "$worker"
  [ "$(cat "$S"/tasks/*.json | jq -s 'map(select(.state == "done")) | length')" -eq 100 ]
}

@test "two coordinators on one state: every step is made once" {
  tasks 1 20 >"$BATS_TEST_TMPDIR/new"
  cd "$BATS_TEST_TMPDIR"
  for round in 1 2 3 4 5 6; do
    cat new said >in
    [ "$round" -eq 1 ] || jq -c "($executor), ($reviewer)" said | sort -u >>in
    task-dispatch coordinate -s "$S" <in >a 2>/dev/null &
    one=$!
    shuf --random-source=<(yes "$round") in | task-dispatch coordinate -s "$S" >b 2>/dev/null || :
    wait "$one" || :
    cat a b >>"$said"
    jq -c 'select(.msg_id)' "$said" | sort -u >said.new
    mv said.new "$said"
  done
  [ "$(cat "$S"/tasks/*.json | jq -s 'map(select(.state == "done")) | length')" -eq 20 ]
  jq -s 'map(select(.key // "" | startswith("task."))) | group_by(.key)
    | map(map(.event)) | unique' "$S"/log/*.ndjson |
    jq -e '. == [["open", "result_complete", "verdict_rejected", "result_complete",
                  "verdict_approved"]]'
}

@test "end of file with open tasks is 75 and names them; --until-done ends with the last one" {
  tasks 1 2 >"$BATS_TEST_TMPDIR/new"
  cd "$BATS_TEST_TMPDIR"
  run -75 --separate-stderr task-dispatch coordinate -s "$S" <new
  [[ "$stderr" == *"2 open: T-2026-001 T-2026-002"* ]]
}

@test "--until-done: a state in which all is ended needs no more words" {
  cd "$BATS_TEST_TMPDIR"
  new_task | hear
  round aaaaaaa1 approved
  mkfifo back
  exec {keep}<>back
  # The FIFO stays open; the pipe ends: nothing new came, nothing is open.
  run -0 timeout 60 task-dispatch coordinate -s "$S" --until-done --in - --in back </dev/null
  exec {keep}>&-
}

@test "--hold: no end of file on the FIFO, a signal ends it" {
  cd "$BATS_TEST_TMPDIR"
  mkfifo in
  task-dispatch coordinate -s "$S" --hold --in in >out 2>err &
  pid=$!
  new_task >in
  wait_until 30 has_lines out 2
  kill -0 "$pid"
  kill -TERM "$pid"
  status=0
  wait "$pid" || status=$?
  [ "$status" -eq 130 ]
}

@test "a reader that goes away leaves the outbox for the next run" {
  tasks 1 5 >"$BATS_TEST_TMPDIR/new"
  cd "$BATS_TEST_TMPDIR"
  ends 75 task-dispatch coordinate -s "$S" <new 2>err | head -c 10 >/dev/null
  hear </dev/null
  [ "$(count task_dispatch)" -eq 5 ]
}
