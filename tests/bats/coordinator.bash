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
# of_task FILTER: of the task's file. These words are asked often, and jq takes 20 ms to start: the first member
# of the name is the task's.
of_task() {
  local file
  case $1 in
  .state | .base | .reject_count)
    file=$(<"$S/tasks/$task.json")
    [[ $file =~ \"${1#.}\":(\"([^\"]*)\"|([0-9]+)) ]] || return
    echo "${BASH_REMATCH[2]}${BASH_REMATCH[3]}"
    ;;
  *) jq -r "$1" "$S/tasks/$task.json" ;;
  esac
}

# ref TYPE [MEMBER]: the quoted id, or another member's text, of the newest message of a type, or null.
ref() {
  local line
  line=$(last "$1")
  if [[ $line =~ \"${2:-msg_id}\":(\"[^\"]*\") ]]; then
    echo "${BASH_REMATCH[1]}"
  else
    echo null
  fi
}

# filtered JSON [JQ]: as the filter makes it.
filtered() {
  if [ "${2:-.}" = . ]; then
    printf '%s\n' "$1"
  else
    jq -c --arg task "$task" "$2" <<<"$1"
  fi
}

# quoted TEXT: as a JSON string.
quoted() {
  case $1 in
  *[\"\\[:cntrl:]]*) jq -n --arg text "$1" '$text' ;;
  *) printf '"%s"\n' "$1" ;;
  esac
}

# envelope TYPE FROM TO REFS PAYLOAD: one message; REFS and PAYLOAD are JSON.
envelope() {
  local ack=true
  [ "$1" != escalation ] || ack=false
  printf '{"msg_id":"%s-%s-%s","protocol_version":"AMP/1.0","type":"%s","from":"%s","to":"%s","task_id":"%s",' \
    "$1" "$task" "${EPOCHREALTIME/./}" "$1" "$2" "$3" "$task"
  printf '"timestamp":"2026-02-26T14:32:07+00:00","requires_ack":%s,"context_ref":%s,"payload":%s}\n' "$ack" "$4" "$5"
}

# message TYPE FROM TO PAYLOAD [CONTEXT...]
message() {
  local refs=
  [ $# -le 4 ] || refs=$(printf ',"%s"' "${@:5}")
  envelope "$1" "$2" "$3" "[${refs#,}]" "${4//$'\n'/ }"
}

# new_task [JQ]: a task of one subtask; JQ changes the payload.
new_task() {
  local p='{"description":"Parse durations","repo":"/srv/none","branch":"fix/units","subtasks":[{"subtask_id":"'
  p+="$task-S1\",\"description\":\"Several units\",\"estimated_lines\":40}],"
  p+='"acceptance_criteria":["1h30m is 5400","5x is refused"],"risk_level":"medium"}'
  p=$(filtered "$p" "${1:-.}") || return
  envelope task_dispatch admin coordinator '[]' "$p"
}

# result STATUS COMMIT [JQ]: the answer to the newest dispatch.
result() {
  local p
  p="{\"subtask_id\":$(ref task_dispatch subtask_id),\"completion_status\":\"$1\","
  p+='"diff_summary":{"files_changed":["a.c"],"lines_added":1,"lines_removed":0},'
  p+='"self_assessment":{"criteria_met":[true,null],"notes":["n"]},"work_log":[{"timestamp":'
  p+='"2026-02-26T14:28:00Z","action":"edit","file":"a.c","detail":"d"}],'
  p+="\"commit_hash\":\"$2\""
  [ "$1" = complete ] || p+=',"blockers":["no key"]'
  p=$(filtered "$p}" "${3:-.}") || return
  envelope task_result executor coordinator "[$(ref task_dispatch)]" "$p"
}

# verdict DECISION [JQ]: the answer to the newest review request.
verdict() {
  local p passed=true more=
  case $1 in
  rejected)
    passed=false
    more=',"issues":[{"severity":"critical","file":"a.c","line":87,"description":"overflow","suggested_fix":"use long"}]'
    ;;
  approved_with_fix) more=',"direct_fixes":[{"file":"a.c","change_type":"typo","diff_lines":1}]' ;;
  esac
  p="{\"decision\":\"$1\",\"criteria_results\":[{\"criterion\":\"1h30m is 5400\",\"passed\":$passed,\"evidence\":\"e\"}],"
  p=$(filtered "$p\"confidence\":0.95$more}" "${2:-.}") || return
  envelope review_verdict reviewer coordinator "[$(ref review_request)]" "$p"
}

# control TYPE MEMBERS: a record of the control plane, of this microsecond.
control() {
  local now=${EPOCHREALTIME/./}
  printf '{"protocol_version":"AMP/1.0","type":"%s","task_id":"%s",%s,"timestamp":"2026-02-26T14:32:07.%sZ"}\n' \
    "$1" "$task" "$2" "${now: -6}"
}

# decision WORD [NOTE [COMMIT]]: the admin's answer to the newest escalation.
decision() {
  local m
  m="\"ref_msg_id\":$(ref escalation),\"decision\":\"$1\",\"operator\":\"ann\""
  [ -z "${2:-}" ] || m+=",\"note\":$(quoted "$2")"
  [ -z "${3:-}" ] || m+=",\"commit\":\"$3\""
  control decision "$m"
}

# ci COMMIT STATE
ci() {
  control ci_status "\"branch\":\"fix/units\",\"commit\":\"$1\",\"checks\":{\"build\":\"passed\",\"test\":\"$2\"}"
}

# One round: a result with this commit, and its verdict.
round() {
  result complete "$1" | hear
  verdict "$2" "${3:-.}" | hear
}
