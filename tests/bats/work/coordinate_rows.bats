# The rows of the qa machine, one by one, through the coordinator: for each state of a subtask, what each message
# makes of it, and what is answered.
# plain

load ../lib
load ../coordinator

setup() {
  need_tool task-dispatch
  setup_coordinator
  S1=$task-S1 S2=$task-S2
  cd "$BATS_TEST_TMPDIR"
  echo '{"results": [{"status": "partial", "action": "fail"}, {"status": "failed", "action": "fail"}]}' >fails.json
  echo '{"results": [{"status": "partial", "action": "redispatch"}, {"status": "failed", "action": "redispatch"}]}' >retries.json
  echo '{"ci": {"escalate_after": 1}}' >ci.json
  echo '{"qa": {"lock_after": 1}}' >lock.json
  repo r
  git -C r branch fix/units
  first=$(git -C r rev-parse HEAD)
}
# with CONFIGURATION COMMAND...
with() { AMP_CONFIG=$BATS_TEST_TMPDIR/$1.json "${@:2}"; }

CRITERIA='"c"'
# work [N [TEXT]]: the admin's task of N subtasks; TEXT changes the first.
work() {
  local p
  p="{\"description\":\"d\",\"repo\":\"${REPO:-/srv/none}\",\"branch\":\"fix/units\",\"risk_level\":\"${RISK:-medium}\","
  p+="\"acceptance_criteria\":[$CRITERIA],\"subtasks\":[{\"subtask_id\":\"$S1\",\"description\":\"${2:-a}\",\"estimated_lines\":1}"
  [ "${1:-1}" -eq 1 ] || p+=",{\"subtask_id\":\"$S2\",\"description\":\"b\",\"estimated_lines\":1}"
  envelope task_dispatch admin coordinator '[]' "$p]}"
}
# done_ STATUS [COMMIT [SUBTASK]]: a result, of the first subtask.
done_() {
  local p
  p="{\"subtask_id\":\"${3:-$S1}\",\"completion_status\":\"$1\",\"diff_summary\":{\"files_changed\":[\"a.c\"],"
  p+="\"lines_added\":1,\"lines_removed\":0},\"self_assessment\":{\"criteria_met\":[true],\"notes\":[\"n\"]},\"work_log\":[{\"timestamp\":"
  p+='"2026-02-26T14:28:00Z","action":"edit","file":"a.c","detail":"d"}],'
  p+="\"commit_hash\":\"${2:-aaaaaaa1}\",\"blockers\":[\"${BLOCKER:-no key}\"]}"
  [ "$1" != complete ] || p=${p/,\"blockers\"*/\}}
  envelope task_result executor coordinator "[${CONTEXT-$(ref task_dispatch)}]" "$p"
}
escalate() {
  local p
  p="{\"escalation_type\":\"unknown\",\"severity\":\"$1\",\"triggered_by\":\"executor\",\"description\":\"x\","
  p+='"affected_msgs":[],"system_state_snapshot":{"task_status":"dispatched","reject_count":0,"last_successful_msg_id":""},'
  p+='"suggested_actions":[],"auto_suspended":true}'
  envelope escalation executor admin '[]' "$p"
}
# refused [REF]: by the executor.
refused() {
  printf '{"protocol_version":"AMP/1.0","type":"nack","ref_msg_id":%s,"task_id":"%s","from":"executor",' \
    "${1:-$(ref task_dispatch)}" "$task"
  printf '"failed_stage":"REJECTED","code":"repo_not_git","message":"m","rule":"repo","retryable":false,'
  printf '"timestamp":"2026-02-26T14:32:07Z"}\n'
}
# withdraw [FROM [REF]]: the executor does not wait for the decision about its escalation any more.
withdraw() {
  printf '{"protocol_version":"AMP/1.0","type":"nack","ref_msg_id":%s,"task_id":"%s","from":"%s",' \
    "${2:-$(ref escalation)}" "$task" "${1:-executor}"
  printf '"failed_stage":"FAILED","code":"withdrawn","message":"m%s","rule":"","retryable":false,' "$RANDOM"
  printf '"timestamp":"2026-02-26T14:32:07Z"}\n'
}
# judge WORD [CONFIDENCE]: a verdict on the newest request; minor: a rejection that names nothing that blocks.
judge() {
  local p passed=true refs word=$1 issues=
  refs=$(ref review_request)
  [ "$refs" != null ] || refs=
  case $1 in
  rejected) passed=false issues=',"issues":[{"severity":"critical","file":"a.c","line":1,"description":"d","suggested_fix":"f"}]' ;;
  minor) word=rejected issues=',"issues":[{"severity":"minor","file":"a.c","line":1,"description":"d","suggested_fix":"f"}]' ;;
  esac
  p="{\"decision\":\"$word\",\"criteria_results\":[{\"criterion\":\"c\",\"passed\":${PASSED:-$passed},\"evidence\":\"e\"}],"
  envelope review_verdict reviewer coordinator "[${CONTEXT-$refs}]" "$p\"confidence\":${2:-0.95}$issues}"
}
# stale TYPE COMMAND...: the message of COMMAND names another message of TYPE than the current one.
stale() { CONTEXT="\"$1-$task-1\"" "${@:2}"; }
# to_first COMMAND...: names the first review request.
to_first() { CONTEXT="\"$(grep -o -m1 'review_request-T-[^"]*' "$said")\"" "${@:1}"; }
# swept WORD: a sweep escalates what was not acknowledged in time, and that is decided.
swept() {
  echo "{\"task_id\": \"*\", \"decision\": \"$1\", \"note\": \"n\"}" >answer.json
  amp-ack sweep --state "$S" --now 2036-01-01T00:00:00Z | hitl-prompt --state "$S" --answer answer.json
}
# lacks_first COMMAND...: before the line of COMMAND comes, the executor finds no criteria.
lacks_first() {
  "$@" >line
  lacks | hear
  cat line
}
# decided WORD...: a critical escalation suspends the task, and is decided.
decided() {
  escalate critical | hear
  decision "$@"
}
# lacks: the executor finds no criteria.
lacks() { refused | sed 's/repo_not_git/empty_acceptance_criteria/'; }
red() { ci "${1:-aaaaaaa1}" failed; }

# base COMMAND...: the state from which rows begin: what the coordinator has after these, one after the other.
base() {
  rm -rf "$S" "$S.base"
  : >"$said"
  local line
  for line; do eval "$line" | hear; done
  cp -r "$S" "$S.base"
  cp "$said" "$said.base"
}
# row STATE ANSWERS COMMAND...: begun from there, the line of COMMAND leaves the first subtask in STATE (with PART
# another one, with WHOLE the task) and is answered with ANSWERS: types, a nack with its code, an escalation with its type.
row() {
  rm -rf "$S"
  cp -r "$S.base" "$S"
  cp "$said.base" "$said"
  "${@:3}" | hear
  local got
  got="$(state) $(answers)"
  [ "$got" = "$1 $2" ] || {
    echo "${*:3}: $got, not $1 $2"
    grep '"type":"nack"' "$said"
    return 1
  }
}
state() {
  local file
  [ -z "${WHOLE-}" ] || {
    of_task .state
    return
  }
  file=$(<"$S/tasks/$task.json")
  file=${file#*\"subtask_id\":\""${PART:-$S1}"\"}
  [[ $file =~ \"state\":\"([a-z_]*)\" ]] && echo "${BASH_REMATCH[1]}"
}
answers() {
  # What was not acknowledged is sent again.
  grep -vxF -f "$said.base" "$said" | awk '!seen[$0]++ && !/"type":"ack"/' | sed -E '
    s/.*"type":"nack".*"code":"([a-z_]*)".*/nack:\1/
    s/.*"type":"escalation".*"escalation_type":"([a-z_]*)".*/escalation:\1/
    s/.*"type":"([a-z_]*)".*/\1/' | paste -sd' ' || :
}



@test "pending" {
  base "escalate critical" work
  for how in complete partial failed; do CONTEXT='' row pending nack:unknown_ref done_ $how; done
  row pending "" refused '"task_dispatch-T-2026-001-1"'
  row pending nack:unknown_ref judge approved
  row pending nack:unknown_ref judge rejected
  row held escalation:unknown escalate warning
  row working task_dispatch decision resume
  row working task_dispatch decision redispatch more
  row abandoned "" decision terminate
  base "escalate critical" work "escalate critical"
  row pending "" decision resume
  row pending "" decision redispatch more
  # The second of two subtasks, whose first was changed.
  base "work 2" "done_ complete" "judge approved" "done_ complete bbbbbbb1 $S2" "work 2 changed"
  PART=$S2 row pending "" red bbbbbbb1
  base "escalate critical" "escalate warning" work
  row pending nack:withdrawn withdraw
  export REPO=$PWD/r
  base "escalate critical" work
  row working task_dispatch decision rollback again "$first"
  base "escalate critical" work "escalate critical"
  row pending "" decision rollback again "$first"
}

# at_work STATE COMMAND...: the rows that working and rework share; COMMAND... lead to STATE.
at_work() {
  local s=$1 how
  shift
  base "$@"
  row $s nack:unknown_ref stale task_dispatch done_ complete aaaaaaa9
  row in_review review_request done_ complete aaaaaaa9
  for how in partial failed; do
    row $s nack:unknown_ref stale task_dispatch done_ $how aaaaaaa9
    with retries row rework task_dispatch done_ $how aaaaaaa9
    with fails row abandoned "" done_ $how aaaaaaa9
    BLOCKER="no permission" row held escalation:permission_denied done_ $how aaaaaaa9
  done
  row $s "" refused '"task_dispatch-T-2026-001-1"'
  row held escalation:unknown refused
  row $s nack:unknown_ref stale review_request judge approved
  row $s nack:unknown_ref stale review_request judge rejected
  row held escalation:unknown escalate warning
  row rework "escalation:unknown task_dispatch" decided resume
  row rework "escalation:unknown task_dispatch" decided redispatch more
  row abandoned "escalation:unknown nack:terminated" decided terminate
  base "$@" "red aaaaaaa9"
  with ci row held escalation:ci_failure done_ complete aaaaaaa9
  row rework task_dispatch done_ complete aaaaaaa9
  base "$@" "escalate critical"
  for how in complete partial failed; do row held "" done_ $how aaaaaaa9; done
  row held "" refused
  base "$@" "escalate critical" "escalate critical"
  row held "" decision resume
  row held "" decision redispatch more
  local -x REPO=$PWD/r
  base "$@"
  row rework "escalation:unknown task_dispatch" decided rollback again "$first"
  base "$@" "escalate critical" "escalate critical"
  row held "" decision rollback again "$first"
}

@test "working" {
  at_work working work
  base "escalate warning" work
  row working nack:withdrawn withdraw
  # Sent anew by the admin, with the commit and the verdict of before.
  base work "done_ complete" "judge rejected" work
  row working "" red
  row held escalation:conflict judge approved
  row working "" judge rejected
  base work "done_ complete" "judge approved 0.5" work
  row working "" judge approved
  row held escalation:conflict judge rejected
}

@test "rework" {
  at_work rework work "done_ complete" "judge rejected"
  base work "escalate warning" "escalate warning" "decision resume"
  row rework nack:withdrawn withdraw executor "$(grep -o -m1 '"escalation-T-[^"]*"' "$said")"
  base work "done_ complete" "judge rejected"
  row held escalation:conflict done_ complete
  row rework "" red
  row held escalation:conflict judge approved
  row rework "" judge rejected
  base work "done_ complete" "judge approved 0.5" "decision redispatch more"
  row rework "" judge approved
  row held escalation:conflict judge rejected
}

@test "in review" {
  base "escalate warning" work "done_ complete"
  row in_review nack:withdrawn withdraw
  base work "done_ complete"
  for how in complete partial failed; do row in_review nack:unknown_ref done_ $how aaaaaaa9; done
  row in_review "" refused '"task_dispatch-T-2026-001-1"'
  row held escalation:unknown refused
  with ci row held escalation:ci_failure red
  row rework task_dispatch red
  row in_review nack:unknown_ref stale review_request judge approved
  PASSED=false row held escalation:conflict judge approved
  row held escalation:unknown judge approved 0.5
  row approved "" judge approved
  row in_review nack:unknown_ref stale review_request judge rejected
  with lock row held escalation:hallucination_lock judge rejected
  row held escalation:unknown judge rejected 0.5
  row rework task_dispatch judge rejected
  row held escalation:unknown escalate warning
  row in_review "escalation:unknown review_request" decided resume
  row rework "escalation:unknown task_dispatch" decided redispatch more
  row abandoned "escalation:unknown nack:terminated" decided terminate
  base "RISK=high work" "done_ complete"
  row held escalation:unknown judge approved
  base "work 2" "done_ complete"
  row approved task_dispatch judge approved
  base work "done_ complete" "judge rejected" "done_ complete aaaaaaa9"
  row held escalation:conflict to_first judge approved
  row in_review "" to_first judge rejected
  base work "done_ complete" "judge approved 0.5" "decision redispatch more" "done_ complete aaaaaaa9"
  row in_review "" to_first judge approved
  row held escalation:conflict to_first judge rejected
  base work "done_ complete" "escalate critical"
  row held "" refused
  row in_review "" red
  row held "" judge approved
  row held "" judge rejected
  base work "done_ complete" "escalate critical" "escalate critical"
  row held "" decision resume
  row held "" decision redispatch more
  export REPO=$PWD/r
  base work "done_ complete"
  row rework "escalation:unknown task_dispatch" decided rollback again "$first"
  base work "done_ complete" "escalate critical" "escalate critical"
  row held "" decision rollback again "$first"
}

@test "held" {
  base work "escalate warning"
  for how in complete partial failed; do
    row held nack:unknown_ref stale task_dispatch done_ $how
    row held "" done_ $how
  done
  row held "" refused
  row held nack:unknown_ref judge approved
  row held nack:unknown_ref judge rejected
  row held escalation:unknown escalate warning
  row rework task_dispatch decision resume
  row rework task_dispatch decision redispatch more
  row abandoned nack:terminated decision terminate
  row working nack:withdrawn withdraw
  base work "escalate warning" "escalate warning"
  row held nack:withdrawn withdraw
  base work "escalate warning" "done_ complete"
  row held "" withdraw # the result is left to the admin
  base work "done_ complete" "judge rejected" "escalate warning"
  row rework nack:withdrawn withdraw
  # In review when it was held.
  base work "escalate warning" "withdraw" "done_ complete" "escalate warning"
  row in_review nack:withdrawn withdraw
  row held "" red
  row held nack:unknown_ref stale review_request judge approved
  row held "" judge approved
  row held nack:unknown_ref stale review_request judge rejected
  row held "" judge rejected
  row in_review review_request decision resume
  # Judged before.
  base work "done_ complete" "judge rejected" "escalate warning"
  row held escalation:conflict judge approved
  row held "" judge rejected
  base work "done_ complete" "judge approved 0.5"
  row held "" judge approved
  row held escalation:conflict judge rejected
  row approved "" decision resume
  base "work 2" "done_ complete" "judge approved 0.5"
  row approved task_dispatch decision resume
  # The newer escalation is decided, the critical one stays open.
  base work "escalate critical" "escalate warning"
  row held "" decision resume
  row held "" decision redispatch more
  export REPO=$PWD/r
  base work "escalate warning"
  row rework task_dispatch decision rollback again "$first"
  base work "escalate critical" "escalate warning"
  row held "" decision rollback again "$first"
}

@test "approved" {
  base "work 2" "done_ complete" "judge approved"
  for how in complete partial failed; do CONTEXT='' row approved nack:unknown_ref done_ $how; done
  row approved escalation:ci_failure red
  row approved "" judge approved
  row approved escalation:conflict judge rejected
  # By a rejection that named nothing that blocks.
  base "work 2" "done_ complete" "judge minor"
  row approved escalation:conflict judge approved
  row approved "" judge rejected
  base work "done_ complete" "judge approved"
  row approved nack:unknown_ref stale review_request judge approved
  row approved nack:unknown_ref stale review_request judge rejected
}

@test "abandoned" {
  base work "done_ complete" "escalate warning" "decision terminate"
  for how in complete partial failed; do row abandoned nack:terminal done_ $how; done
  row abandoned "" red
  row abandoned nack:terminal judge approved
  row abandoned nack:terminal judge rejected
}

@test "a question is withdrawn by the agent that asked, once, before it is decided" {
  need_tool hitl-prompt
  work | hear
  escalate warning | hear
  said_no() { # CODE COMMAND...
    "${@:2}" | hear
    [[ "$err" == *": the withdrawal of "*" was refused: $1: "* ]]
    [ "$(state)" = held ]
  }
  said_no bad_sender withdraw reviewer
  said_no unknown_ref withdraw executor '"escalation-T-2026-001-1"'
  withdraw | hear
  [ "$(state)" = working ]
  [ "$(of_task '.withdrawn | length')" = 1 ]
  [ "$(of_task '.escalations | length')" = 0 ]
  withdraw | hear
  [[ "$err" == *" was refused: withdrawn: "* ]]
  # A person who comes later does not see it, and a decision has no effect.
  last escalation >question
  echo '{"task_id":"*","decision":"terminate","note":"n"}' >answer.json
  run -0 --separate-stderr hitl-prompt --state "$S" --answer answer.json <question
  [ "$output" = "" ]
  decision terminate | hear
  [ "$(state)" = working ]
  run -0 hitl-prompt audit --state "$S" --json
  jq -es 'map(.what) == ["withdrawn"]' <<<"$output"
  # Decided by a person, before the decision arrives: the coordinator finds it in the state.
  escalate warning | hear
  last escalation >question
  hitl-prompt --state "$S" --answer answer.json <question >decision.ndjson
  withdraw | hear
  [[ "$err" == *" was refused: already_decided: "* ]]
  [ "$(state)" = abandoned ]
  hear <decision.ndjson
  [ "$(state)" = abandoned ]
}

@test "the task as a whole" {
  need_tool amp-ack hitl-prompt
  export WHOLE=1
  base "work | amp-ack track --state $S >/dev/null"
  row terminated "" swept terminate
  # Without criteria, at first or as the executor finds.
  base "CRITERIA= work"
  CRITERIA='' row incomplete nack:empty_acceptance_criteria work
  row suspended escalation:unknown escalate critical
  base work
  row terminated nack:terminated swept terminate
  row incomplete "" lacks
  row terminated nack:terminated lacks_first swept terminate
  base work "done_ complete"
  row in_review review_request swept resume
  row terminated nack:terminated swept terminate
  base work "done_ complete" "judge rejected"
  row incomplete "" lacks
  row terminated nack:terminated swept terminate
  base work "escalate warning"
  row incomplete "" lacks
  row dispatched task_dispatch work
  row suspended escalation:unknown escalate critical
  base work "escalate critical"
  row dispatched task_dispatch work
  base work "done_ complete" "escalate critical" "judge approved"
  row done "" decision resume
  # Locked, what comes meanwhile is kept.
  with lock base work "done_ complete" "judge rejected"
  row locked escalation:unknown escalate critical
  with lock base work "done_ complete" "judge rejected" "done_ complete aaaaaaa9"
  row in_review review_request decision resume
  with lock base work "done_ complete" "judge rejected" "done_ complete aaaaaaa9" "CONTEXT= judge approved"
  row done "" decision resume
  with lock base "work 2" "done_ complete" "judge rejected" "done_ complete aaaaaaa9" "CONTEXT= judge approved"
  row dispatched task_dispatch decision resume
}
