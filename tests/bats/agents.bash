# A repository, dispatches and review requests for it, and agents made on the spot.

# workplace: a repository $REPO on main, a state directory $STATE.
workplace() {
  cd "$BATS_TEST_TMPDIR" || return
  REPO=$BATS_TEST_TMPDIR/repo STATE=$BATS_TEST_TMPDIR/state
  repo "$REPO"
  echo one >"$REPO/file.txt"
  git -C "$REPO" add file.txt
  git -C "$REPO" commit -qm "a file"
}

# agent NAME <body: an executable script.
agent() {
  { printf '#!/bin/bash\n'; cat; } >"$BATS_TEST_TMPDIR/$1"
  chmod +x "$BATS_TEST_TMPDIR/$1"
}

# as_said LINE [JQ]: the line as the filter makes it; without one there is no jq, which takes 20 ms to start.
as_said() {
  if [ "${2:-.}" = . ]; then
    printf '%s\n' "$1"
  else
    jq -c --arg repo "$REPO" "$2" <<<"$1"
  fi
}

# dispatch [JQ]: a task_dispatch for $REPO, branch feat/x, one subtask, edited by a jq filter.
dispatch() {
  local line="{\"msg_id\":\"task_dispatch-T-2026-001-${EPOCHREALTIME/./}\",\"protocol_version\":\"AMP/1.0\","
  line+='"type":"task_dispatch","from":"coordinator","to":"executor","task_id":"T-2026-001",'
  line+='"timestamp":"2026-02-26T14:32:07+00:00","requires_ack":true,"payload":{"description":"Say hello",'
  line+="\"repo\":\"$REPO\",\"branch\":\"feat/x\",\"subtasks\":[{\"subtask_id\":\"T-2026-001-S1\","
  line+='"description":"Write hello","estimated_lines":1}],"acceptance_criteria":["it works","tests pass"],'
  line+='"risk_level":"low","forbidden_actions":[]}}'
  as_said "$line" "${1:-.}"
}

# review [JQ]: a review_request for the first dispatch and the result in out.ndjson.
review() {
  local result line id commit context
  result=$(grep -m 1 -F '"type":"task_result"' out.ndjson) || return
  [[ $result =~ \"msg_id\":\"([^\"]*)\" ]] && id=${BASH_REMATCH[1]}
  [[ $result =~ \"commit_hash\":\"([^\"]*)\" ]] && commit=${BASH_REMATCH[1]}
  [[ $result =~ \"context_ref\":\[\"([^\"]*)\" ]] && context=${BASH_REMATCH[1]}
  line="{\"msg_id\":\"review_request-T-2026-001-${EPOCHREALTIME/./}\",\"protocol_version\":\"AMP/1.0\","
  line+='"type":"review_request","from":"coordinator","to":"reviewer","task_id":"T-2026-001",'
  line+='"timestamp":"2026-02-26T14:32:07+00:00","requires_ack":true,"payload":{'
  line+="\"original_dispatch_ref\":\"$context\",\"task_result_ref\":\"$id\",\"review_scope\":\"full\","
  line+="\"diff_url\":\"file://$REPO#main...$commit\",\"reject_count\":0,"
  line+='"ci_status":{"ci":"not_configured","last_updated":"2026-02-26T14:30:00Z"}}}'
  as_said "$line" "${1:-.}"
}

# escalation [JQ]: a critical one about T-2026-001.
escalation() {
  jq -cn --arg n "$(date +%s%N)" '
    {msg_id: "escalation-T-2026-001-\($n)", protocol_version: "AMP/1.0", type: "escalation",
     from: "coordinator", to: "admin", task_id: "T-2026-001",
     timestamp: "2026-02-26T14:32:07+00:00", requires_ack: false, payload: {
       escalation_type: "hallucination_lock", severity: "critical", triggered_by: "coordinator",
       description: "Three rejections in a row", affected_msgs: ["task_dispatch-T-2026-001-1"],
       system_state_snapshot: {task_status: "locked", reject_count: 3, last_successful_msg_id: ""},
       suggested_actions: ["Look at the diff"], auto_suspended: true}} | '"${1:-.}"
}

# run_agent ARGS...: task-dispatch run over stdin; records in out.ndjson, diagnostics in err.
run_agent() {
  task-dispatch run --state "$STATE" --pause 10ms "$@" >out.ndjson 2>err
}
review_agent() {
  task-dispatch review --state "$STATE" --pause 10ms "$@" >verdict.ndjson 2>err
}

# got FILE JQ: the filter holds for some record of the file.
got() {
  jq -e -s "any(.[]; $2)" "$1" >/dev/null || {
    echo "no record in $1 with: $2" >&2
    cat "$1" >&2
    return 1
  }
}
# got_no FILE JQ: for none.
got_no() {
  ! jq -e -s "any(.[]; $2)" "$1" >/dev/null
}

good_agent() {
  agent good <<'EOS'
echo "hello $AMP_SUBTASK_ID $AMP_ATTEMPT" >>hello.txt
EOS
}

# done_work: a finished task_result in out.ndjson and in the state.
done_work() {
  workplace
  good_agent
  dispatch | run_agent --exec ./good
}
