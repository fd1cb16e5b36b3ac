# The coordinator killed at random moments, while everybody else sends again what was not
# acknowledged. # slow

load ../lib
load ../coordinator
load ../../kill9

# world FILE [FILTER]: what executor and reviewer answer to all that the file says, without what is acknowledged,
# or the questions that are open. An answer's id comes from the question's: said again it is the same message. The
# first result of a task is rejected, the second approved.
world() {
  jq -nc --arg what "${2:-answers}" '
    def envelope(type; from; of; p): {msg_id: (type + (of.msg_id | sub("^[a-z_]+"; ""))),
      protocol_version: "AMP/1.0", type: type, from: from, to: "coordinator", task_id: of.task_id,
      timestamp: "2026-02-26T14:32:07Z", requires_ack: true, context_ref: [of.msg_id], payload: p};
    [inputs] as $said
    | ([$said[] | select(.type == "ack") | {(.ref_msg_id): true}] | add // {}) as $acked
    | [$said[] | select(.type == "task_dispatch" or .type == "review_request")]
    | unique_by(.msg_id)[] | . as $question
    | if .type == "task_dispatch" then
        envelope("task_result"; "executor"; .; {subtask_id: .payload.subtasks[0].subtask_id,
          completion_status: "complete", diff_summary: {files_changed: [], lines_added: 0,
          lines_removed: 0}, self_assessment: {criteria_met: [null], notes: []}, work_log: [],
          commit_hash: "abcdef\(.task_id[-3:])\(.payload.tech_constraints.attempt)"})
      else
        envelope("review_verdict"; "reviewer"; .; {decision: (if .payload.reject_count == 0
          then "rejected" else "approved" end), criteria_results: [], confidence: 0.9}
          + (if .payload.reject_count == 0 then {issues: [{severity: "major", file: "a", line: 1,
             description: "d", suggested_fix: "f"}]} else {} end))
      end
    | select($acked[.msg_id] | not) | if $what == "questions" then $question else . end' "$1"
}

# whole_lines FILE: without what a kill left half.
whole_lines() {
  local lines
  mapfile lines <"$1"
  [ ${#lines[@]} -eq 0 ] || [[ ${lines[-1]} == *$'\n' ]] || unset 'lines[-1]'
  [ ${#lines[@]} -eq 0 ] || printf %s "${lines[@]}"
}

@test "killed at random: nothing acknowledged is lost, nothing happens twice" {
  setup_coordinator
  echo "seed $KILL_SEED"
  out=$BATS_TEST_TMPDIR/out new=$BATS_TEST_TMPDIR/new
  heard=$BATS_TEST_TMPDIR/heard
  : >"$new"
  : >"$heard"
  template=$(new_task '.acceptance_criteria = ["c"]')
  for ((round = 1; kills < KILL_ROUNDS && round <= 4 * KILL_ROUNDS; round++)); do
    printf -v id 'T-%d-%03d' $((2026 + round / 1000)) $((round % 1000))
    echo "${template//"$task"/"$id"}" >>"$new"
    { tail -n 3 "$new"; world "$heard" | shuf -n 12 --random-source=<(yes "$round"); } \
      >"$BATS_TEST_TMPDIR/in"
    kill9_round 15 task-dispatch coordinate -s "$S" <"$BATS_TEST_TMPDIR/in" >"$out" 2>/dev/null
    whole_lines "$out" | tee -a "$heard" >>"$said"
    # What is settled the world need not hear again.
    if [ $((round % 10)) -eq 0 ]; then
      world "$heard" questions >"$out"
      cp "$out" "$heard"
    fi
  done
  rounds=$((round - 1))
  echo "# $rounds rounds, $kills killed before their end (KILL_SEED=$KILL_SEED)" >&3
  [ "$kills" -eq "$KILL_ROUNDS" ]
  # What was acknowledged before a kill is in the state after it.
  jq -r 'select(.type == "ack") | .ref_msg_id' "$said" | sort -u >"$BATS_TEST_TMPDIR/acked"
  # The last kill may have left half a frame.
  jq -rR 'fromjson? | select(.key // "" | startswith("message.")) | .key[8:]' "$S"/log/*.ndjson |
    sort -u >"$BATS_TEST_TMPDIR/known"
  [ -z "$(comm -23 "$BATS_TEST_TMPDIR/acked" "$BATS_TEST_TMPDIR/known")" ]

  # Left in peace it comes to an end by the same messages.
  hear <"$new"
  for ((i = 0; i < 40; i++)); do
    world "$said" >"$BATS_TEST_TMPDIR/in"
    [ -s "$BATS_TEST_TMPDIR/in" ] || break
    hear <"$BATS_TEST_TMPDIR/in"
  done
  [ "$status" -eq 0 ]
  [ "$(cat "$S"/tasks/*.json | jq -s 'map(select(.state == "done")) | length')" -eq "$rounds" ]
  # Two dispatches and two reviews a task, whatever was said again.
  jq -s '[.[] | select(.type == "task_dispatch" or .type == "review_request")]
    | unique_by(.msg_id) | group_by([.task_id, .type]) | map(length) | unique' "$said" |
    jq -e '. == [2]'
  # One transition each in the log.
  jq -s 'map(select(.key // "" | startswith("task."))) | group_by(.key)
    | map(map(.event)) | unique' "$S"/log/*.ndjson |
    jq -e '. == [["open", "result_complete", "verdict_rejected", "result_complete",
                  "verdict_approved"]]'
}
