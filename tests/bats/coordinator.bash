# Conversations with the coordinator: the lines that others would say, and what it answered.
# Each `hear` is a run of its own over one state directory; what it wrote gathers in $said.

# The last part of a pipeline runs in the test itself: `new_task | hear` leaves its status.
shopt -s lastpipe

setup_coordinator() {
  S=$BATS_TEST_TMPDIR/state
  said=$BATS_TEST_TMPDIR/said
  : >"$said"
  task=T-2026-001
}

# hear [OPTION...] <lines: one run of the coordinator. Status in $status, stderr in $err.
hear() {
  status=0
  task-dispatch coordinate -s "$S" "$@" >>"$said" 2>"$BATS_TEST_TMPDIR/err" || status=$?
  err=$(cat "$BATS_TEST_TMPDIR/err")
}

# last TYPE: the newest message of a type; count TYPE: how many different ones. Without jq, for these are asked often.
last() {
  grep -F "\"type\":\"$1\"" "$said" | tail -n 1 | grep . || echo null
}
count() {
  awk -v type="\"type\":\"$1\"" 'index($0, type) && match($0, /"(ref_)?msg_id":"[^"]*"/) &&
    !seen[substr($0, RSTART, RLENGTH)]++ { n++ } END { print n + 0 }' "$said"
}
# state FILTER: of the task's file.
of_task() {
  jq -r "$1" "$S/tasks/$task.json"
}

# One jq a message: the whole of it is composed at once, from what was said so far.
envelope='def envelope(type; from; to; refs; p): {msg_id: "\(type)-\($task)-\($n)",
    protocol_version: "AMP/1.0", type: type, from: from, to: to, task_id: $task,
    timestamp: "2026-02-26T14:32:07+00:00", requires_ack: (type != "escalation"),
    context_ref: refs, payload: p};
  def newest(type): map(select(.type == type)) | last;'
compose() {
  jq -sc --arg task "$task" --arg n "${EPOCHREALTIME/./}" "${@:2}" "$envelope $1" "$said"
}

# message TYPE FROM TO PAYLOAD [CONTEXT...]
message() {
  jq -nc --arg task "$task" --arg n "${EPOCHREALTIME/./}" --arg type "$1" --arg from "$2" \
    --arg to "$3" --argjson p "$4" \
    "$envelope"' envelope($type; $from; $to; $ARGS.positional; $p)' --args "${@:5}"
}

# new_task [JQ]: a task of one subtask; JQ changes the payload.
new_task() {
  compose 'envelope("task_dispatch"; "admin"; "coordinator"; []; {
    description: "Parse durations", repo: "/srv/none", branch: "fix/units",
    subtasks: [{subtask_id: "\($task)-S1", description: "Several units", estimated_lines: 40}],
    acceptance_criteria: ["1h30m is 5400", "5x is refused"], risk_level: "medium"}
    | '"${1:-.})"
}

# result STATUS COMMIT [JQ]: the answer to the newest dispatch.
result() {
  compose 'newest("task_dispatch") as $d
    | envelope("task_result"; "executor"; "coordinator"; [$d.msg_id]; {
      subtask_id: $d.payload.subtasks[0].subtask_id, completion_status: $s,
      diff_summary: {files_changed: ["a.c"], lines_added: 1, lines_removed: 0},
      self_assessment: {criteria_met: [true, null], notes: ["n"]},
      work_log: [{timestamp: "2026-02-26T14:28:00Z", action: "edit", file: "a.c", detail: "d"}],
      commit_hash: $c} + (if $s == "complete" then {} else {blockers: ["no key"]} end)
      | '"${3:-.})" --arg s "$1" --arg c "$2"
}

# verdict DECISION [JQ]: the answer to the newest review request.
verdict() {
  compose 'newest("review_request") as $r
    | envelope("review_verdict"; "reviewer"; "coordinator"; [$r.msg_id]; {decision: $d,
      criteria_results: [{criterion: "1h30m is 5400", passed: ($d != "rejected"), evidence: "e"}],
      confidence: 0.95}
      + (if $d == "rejected" then {issues: [{severity: "critical", file: "a.c", line: 87,
           description: "overflow", suggested_fix: "use long"}]} else {} end)
      + (if $d == "approved_with_fix" then
           {direct_fixes: [{file: "a.c", change_type: "typo", diff_lines: 1}]} else {} end)
      | '"${2:-.})" --arg d "$1"
}

# decision WORD [NOTE [COMMIT]]: the admin's answer to the newest escalation.
decision() {
  compose '{protocol_version: "AMP/1.0", type: "decision",
    ref_msg_id: newest("escalation").msg_id, task_id: $task, decision: $w, operator: "ann",
    timestamp: "2026-02-26T14:32:07.\($n[-6:])Z"}
    + (if $note == "" then {} else {note: $note} end)
    + (if $commit == "" then {} else {commit: $commit} end)' \
    --arg w "$1" --arg note "${2:-}" --arg commit "${3:-}"
}

# ci COMMIT STATE
ci() {
  compose '{protocol_version: "AMP/1.0", type: "ci_status", task_id: $task, branch: "fix/units",
    commit: $c, checks: {build: "passed", test: $s},
    timestamp: "2026-02-26T14:32:07.\($n[-6:])Z"}' --arg c "$1" --arg s "$2"
}

# One round: a result with this commit, and its verdict.
round() {
  result complete "$1" | hear
  verdict "$2" "${3:-.}" | hear
}
