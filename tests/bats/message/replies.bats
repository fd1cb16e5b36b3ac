#!/usr/bin/env bats
# amp-ack accept, progress, complete, fail, reply: each verb in each protocol, from one table. What is composed must be
# valid, signed by the agent that answers, and must move the state of its message.

# shellcheck disable=SC2154,SC2016 # stderr is set by run; the inner shell expands
load ../lib
load ../messages

unset AMP_IDENTITY

setup_file() {
  export S=$BATS_FILE_TMPDIR/state
  cd "$BATS_FILE_TMPDIR" || return 1
  printf 'result\n' >out.txt
  { # The messages that are answered. Each protocol has its own ids.
    message task_dispatch
    message task_dispatch '.msg_id = "task_dispatch-T-2026-045-2" | .task_id = "T-2026-045"'
    message task_dispatch '.msg_id = "task_dispatch-T-2026-046-3" | .task_id = "T-2026-046"'
    message review_request
    message task_result '.msg_id = "task_result-T-2026-044-9"'
    jq -c --slurpfile rest <(cat "$AMP_TOP"/tests/fixture/protocols/{sw4rm,aop,aof,rtp}.jsonl) -n '
      def base(n; p): first($rest[] | select(.base == n and (.line | p))).line;
      def sw(n; id): {to: "exec", msg: (base(n; has("message_id")) | .message_id = id | .correlation_id = id | .sequence_number = (id[-2:] | tonumber))};
      def id(n): "5a1d9c8e-6b3f-4a87-8f5e-9000000000\(n)";
      def rtp(n; i): base(n; has("eventId")) | del(.expiresAt) | .eventId = i | .corrId = "corr_\(i)" | .seq = 1 |
        .sourceNodeId = "node-\(i)" | .toAgentId = "exec" | .payload.toAgents = ["exec"];
      def task(i): rtp("create"; i) | del(.payload.requiredCapabilities) | .payload.taskId = "tsk_\(i)" |
        .payload.deadlineAt = "2099-01-01T00:00:00.000Z";
      def aop(i): base("minimal"; .message_type == "TASK") | .task.task_id = i;
      def aof(i): base("request"; .protocol == "aof") | .messageId = i | .fromAgent = "parent" | .toAgent = "exec" |
        .payload.fromAgent = "parent" | .payload.toAgent = "exec" |
        .taskId = "TASK-2026-02-09-\(i[-3:])" | .payload.taskId = .taskId;
      sw("data"; id("01")), sw("data"; id("02")), sw("data"; id("03")), sw("data"; id("04")),
      sw("call"; id("11")), sw("call"; id("12")),
      (sw("call"; id("13")) | .msg.payload.stream = true | .msg.content_length = (.msg.payload | tojson | utf8bytelength)),
      sw("handoff"; id("21")), sw("handoff"; id("22")), sw("hitl"; id("31")),
      aop("TASK-A"), aop("TASK-B"),
      aof("m-101"), aof("m-102"), aof("m-103"),
      task("evt_1"), task("evt_2"), task("evt_3"), (task("evt_4") | del(.payload.deadlineAt)),
      (rtp("message"; "evt_5") | .payload.expectsReply = true), (rtp("message"; "evt_6") | .payload.expectsReply = false),
      (rtp("message"; "evt_7") | .payload.expectsReply = false)'
  } >messages
  amp-ack track -s "$S" <messages >tracked
  cmp messages tracked
}

# The table: who, verb and id, what follows them; the status, and for a refusal the code; else a jq filter that is true
# for the line, and the state of the message afterwards ("-": not looked at).
T=task_dispatch-T-2026-04
D='{"subtask_id":"T-2026-044-S1","diff_summary":{"files_changed":["a.c"],"lines_added":1,"lines_removed":0}}'
U=5a1d9c8e-6b3f-4a87-8f5e-9000000000
table() {
  cat <<END
executor/ada^accept ${T}4^--text on~it^0^.type=="ack" and .ack_stage=="READ" and .note=="on it"^READ
executor/ada^accept ${T}4^^1^already_accepted
executor/ada^progress ${T}4 50^^1^unsupported_reply
executor/ada^reply ${T}4^--text x^1^unsupported_reply
ada^accept ${T}5^^1^bad_sender
reviewer/bob^accept ${T}5^^1^bad_sender
executor/ada^accept task_disp^^1^ambiguous
executor/ada^accept nothing^^1^unknown_ref
executor/ada^complete ${T}4^--text x^1^missing_field
executor/ada^complete ${T}4^--data {"subtask_id":"T-2026-044-S9","diff_summary":{}}^1^unknown_ref
executor/ada^complete ${T}4^--data {"subtask_id":"T-2026-044-S1","diff_summary":{}}^1^missing_field
executor/ada^complete ${T}4^--text done --file out.txt --data $D^0^.type=="task_result" and .payload.completion_status=="complete" and .payload.self_assessment.notes==["done"] and .payload.self_assessment.criteria_met==[null,null] and (.payload.work_log|length)==2 and .context_ref==["${T}4-1772116327001"]^FULFILLED
executor/ada^complete ${T}4^--text done --data $D^1^already_completed
executor/ada^fail ${T}5^--text no --code branch_violation^0^.type=="nack" and .failed_stage=="REJECTED" and .code=="branch_violation"^REJECTED
executor/ada^accept ${T}5^^1^refused_before
executor/ada^accept ${T}6^^0^.type=="ack"^READ
executor/ada^fail ${T}6^--code env --text stuck --data {"subtask_id":"T-2026-044-S2","diff_summary":{"files_changed":[],"lines_added":0,"lines_removed":0}}^0^.payload.completion_status=="failed" and .payload.blockers==["env: stuck"]^FULFILLED
reviewer/bob^complete review_request^--text nice^1^missing_field
reviewer/bob^complete review_request^--text wrong --data {"decision":"rejected"}^0^.type=="review_verdict" and .payload.issues[0].description=="wrong" and .payload.confidence==1^FULFILLED
coordinator/c^accept task_result-T-2026-044-9^^0^.ack_stage=="READ"^READ
coordinator/c^complete task_result-T-2026-044-9^^1^unsupported_reply
exec^accept ${U}01^--text read^0^.msg.message_type=="ACKNOWLEDGEMENT" and .msg.payload.ack_stage=="READ" and .msg.payload.ack_for_message_id=="${U}01" and .msg.correlation_id=="${U}01"^READ
other^complete ${U}01^^1^permission_denied
exec^progress ${U}01 5^^1^unsupported_reply
exec^complete ${U}01^--data {"n":1}^0^.msg.payload.ack_stage=="FULFILLED" and .msg.payload.result=={"n":1}^FULFILLED
exec^fail ${U}02^--code overloaded --text later^0^.msg.payload.ack_stage=="REJECTED" and .msg.payload.error_code=="OVERLOADED"^REJECTED
exec^accept ${U}03^^0^.msg.payload.ack_stage=="READ"^READ
exec^fail ${U}03^--code internal_error --text x^0^.msg.payload.ack_stage=="FAILED"^FAILED
exec^reply ${U}04^--text hello^0^.msg.message_type=="DATA" and .msg.payload.text=="hello" and .msg.correlation_id=="${U}04" and .to=="cli"^READ
exec^reply ${U}04^^1^missing_field
exec^complete ${U}11^--file out.txt^0^.msg.message_type=="TOOL_RESULT" and (.msg.payload.result_b64|@base64d)=="result\n"^FULFILLED
exec^fail ${U}12^--code tool_timeout --text slow^0^.msg.message_type=="TOOL_ERROR" and .msg.payload.error_code=="TOOL_TIMEOUT" and .msg.payload.note=="slow"^FAILED
exec^accept ${U}13^^0^.msg.payload.ack_stage=="READ"^READ
exec^progress ${U}13 25^--text a^0^.msg.payload.final==false and .msg.payload.data.percent==25^READ
exec^progress ${U}13 50^--text b^0^.msg.payload.final==false and .msg.payload.frame_no==1 and .msg.payload.data.text=="b"^READ
exec^complete ${U}13^--text c^0^.msg.payload.final==true and .msg.payload.summary.text=="c"^FULFILLED
exec^complete ${U}21^^1^unsupported_reply
exec^accept ${U}21^^0^.msg.payload.accepted==true and .msg.payload.accepting_agent=="exec"^READ
exec^complete ${U}21^^0^.msg.payload.status=="COMPLETED"^FULFILLED
exec^fail ${U}22^^1^missing_field
exec^fail ${U}22^--text busy^0^.msg.payload.accepted==false and .msg.payload.rejection_reason=="busy"^REJECTED
exec^complete ${U}31^^1^unsupported_reply
Emma^accept AOP-SESSION-2026-02-26-001/TASK-A/1^^1^unsupported_reply
Emma^progress AOP-SESSION-2026-02-26-001/TASK-A/1^^1^missing_field
Emma^progress AOP-SESSION-2026-02-26-001/TASK-A/1 60^--text half^0^.event=="PROGRESS_UPDATE" and .progress=={"percentage":60,"message":"half"}^READ
Emma^progress AOP-SESSION-2026-02-26-001/TASK-A/1 61^^1^too_frequent
Emma^complete AOP-SESSION-2026-02-26-001/TASK-A/1^^1^missing_field
other^complete AOP-SESSION-2026-02-26-001/TASK-A/1^--text x^1^E_PERMISSION_DENIED
Emma^complete AOP-SESSION-2026-02-26-001/TASK-A/1^--text x --data {"task_id":"y"}^1^bad_value
Emma^complete AOP-SESSION-2026-02-26-001/TASK-A/1^--text done --data {"cost_tracking":{"actual_cost_usd":0.1}}^0^.task_status.state=="COMPLETED" and .execution_summary.actions==["done"] and .agent.name=="Emma" and .cost_tracking.actual_cost_usd==0.1 and .timing.retries_attempted==0^FULFILLED
Emma^fail AOP-SESSION-2026-02-26-001/TASK-B/1^--code E_FILE_NOT_FOUND --text gone^0^.task_status.final_signal=="FAILURE" and .error_details.error_code=="E_FILE_NOT_FOUND"^FAILED
exec^reply m-101^--text x^1^unsupported_reply
exec^accept m-101^--text ok^0^.type=="handoff.accepted" and .payload.accepted and .fromAgent=="exec" and .toAgent=="parent"^READ
exec^progress m-101 40^--text tests^0^.type=="status.update" and .payload.progress=="40 %: tests"^READ
exec^complete m-101^--text done^1^missing_field
exec^complete m-101^--text done --file out.txt --data {"tests":{"total":1,"passed":1,"failed":0}}^0^.type=="completion.report" and .payload.outcome=="done" and .payload.summaryRef=="out.txt" and .payload.deliverables==["out.txt"]^FULFILLED
exec^fail m-102^--text no^0^.type=="handoff.rejected" and .payload.accepted==false and .payload.reason=="no"^REJECTED
exec^accept m-103^^0^.type=="handoff.accepted"^READ
exec^fail m-103^--text stuck --data {"summaryRef":"s.md","tests":{"total":0,"passed":0,"failed":0}}^0^.payload.outcome=="blocked" and .payload.blockers==["stuck"]^FAILED
exec^complete evt_1^--text x^1^accept_required
exec^progress evt_1 5^^1^accept_required
other^accept evt_1^^1^not_assignee
exec^accept evt_1^--text plan^0^.kind=="task_accept" and .payload.etaAt=="2099-01-01T00:00:00.000Z" and .payload.planSummary=="plan" and .corrId=="corr_evt_1"^-
exec^accept evt_4^^1^eta_required
exec^accept evt_4^--eta 10m^0^.kind=="task_accept"^-
exec^progress evt_1 60^--text links^0^.kind=="task_update" and .payload.progress==60 and .payload.note=="links"^-
exec^complete evt_1^^1^missing_field
exec^complete evt_1^--text made --file out.txt^0^.kind=="task_complete" and .payload.resultSummary=="made" and (.payload.resultRef|startswith("file:///")) and (.payload.artifacts[0].sha256|length)==64^FULFILLED
exec^fail evt_2^--code overloaded^0^.kind=="ack" and .payload.ackType=="failed_terminal"^-
exec^accept evt_3^^0^.kind=="task_accept"^-
exec^fail evt_3^--text approval~is~missing --retryable^0^.kind=="task_failed" and .payload.failureClass=="approval_required" and .payload.retryable^FAILED
exec^complete evt_5^^1^unsupported_reply
exec^reply evt_5^--text hello^0^.kind=="reply" and .payload.body=="hello" and .payload.refEventId=="evt_5"^FULFILLED
exec^accept evt_6^^0^.payload.ackType=="accepted"^RECEIVED
exec^complete evt_6^^0^.payload.ackType=="processed"^FULFILLED
exec^fail evt_7^--code unknown^0^.payload.ackType=="failed_terminal"^-
END
}

@test "each verb in each protocol: composed, or refused with its code" {
  cd "$BATS_FILE_TMPDIR"
  local who verb args want check state got words rows=0 bad=0
  : >composed
  : >checks
  while IFS='^' read -r who verb args want check state; do
    ((++rows))
    # shellcheck disable=SC2206 # the words of the table; "~" is a blank in a word
    words=($verb $args)
    got=0
    amp-ack "${words[@]//\~/ }" -s "$S" --as "$who" >line 2>said || got=$?
    if [ "$got" -ne "$want" ] || { [ "$want" -ne 0 ] && [[ $(<said) != *" $check: "* ]]; } ||
      { [ "$want" -ne 0 ] && [ -s line ]; }; then
      echo "row $rows: $who: $verb $args: status $got: $(<said)" >&2
      bad=1
    elif [ "$want" -eq 0 ]; then
      cat line >>composed
      printf '%s\n' "{\"row\":$rows,\"state\":\"$state\"}" >>checks
      jq -e "(.msg // .) as \$m | (if .sig then (if \$m.message_id then {to, msg: \$m} else \$m end) else . end) | $check" \
        line >/dev/null || {
        echo "row $rows: $verb $args: $check: $(<line)" >&2
        bad=1
      }
    fi
  done < <(table)
  [ "$rows" -gt 70 ]
  [ "$bad" -eq 0 ]
}

@test "what was composed passes amp-validate and amp-sign verify, each line signed" {
  cd "$BATS_FILE_TMPDIR"
  amp-validate <composed >valid
  cmp composed valid
  amp-sign verify -s "$S" <composed >verified
  cmp composed verified
  [ "$(grep -c '"sig":{"key":"SHA256:' composed)" -eq "$(wc -l <composed)" ]
}

@test "a line that was not written is written by the same verb, once" {
  cd "$BATS_TEST_TMPDIR"
  message task_dispatch | amp-ack track -s s >/dev/null
  run -73 amp-ack accept task_dispatch -s s --as executor/ada -o "$PWD/missing"
  run -74 bash -c 'amp-ack accept task_dispatch -s s --as executor/ada >/dev/full'
  amp-ack accept task_dispatch -s s --as executor/ada >first 2>said
  grep -q 'was composed before' said
  [ "$(wc -l <first)" -eq 1 ]
  [ "$(jq -r .msg.type first)" = ack ]
  run -1 --separate-stderr amp-ack accept task_dispatch -s s --as executor/ada
  [[ "$stderr" == *already_accepted* ]]
  [ -z "$output" ]
  # What a killed process left is also written by the next answer.
  run -74 bash -c 'amp-ack complete task_dispatch -s s --as executor/ada --data "$1" --text x >/dev/full' - "$D"
  amp-ack complete task_dispatch -s s --as executor/ada --data "$D" --text y >second 2>said
  [ "$(jq -r '.msg.payload.self_assessment.notes[0]' second)" = x ]
}

@test "kill -9 at any time: one answer, and the state moves with it" {
  cd "$BATS_TEST_TMPDIR"
  local n
  for n in 1 2 3 4 5 6 7 8; do
    message task_dispatch | amp-ack track -s "k$n" >/dev/null
    # The n-th sync, write or rename of the process does not return.
    strace -f -qq -e trace=fdatasync,pwrite64,pwritev,write,writev -e inject=fdatasync,pwrite64,pwritev,write,writev:signal=KILL:when=$n \
      amp-ack complete task_dispatch -s "k$n" --as executor/ada --data "$D" --text x >out 2>/dev/null || :
    if [ ! -s out ]; then
      run -0 --separate-stderr amp-ack complete task_dispatch -s "k$n" --as executor/ada --data "$D" --text x
      [ "${#lines[@]}" -eq 1 ]
    fi
    run -1 --separate-stderr amp-ack complete task_dispatch -s "k$n" --as executor/ada --data "$D" --text x
    [[ "$stderr" == *already_completed* ]]
  done
}

@test "a full disk took the ledger's frame of an answer: the answer is given once, by any agent" {
  cd "$BATS_TEST_TMPDIR"
  native "a preloaded shim must come first"
  local shim=$AMP_BUILD/tests/fault/faildisk.so log=s/log/000001.ndjson
  message task_dispatch | amp-ack track -s s >/dev/null
  message task_dispatch '.msg_id = "task_dispatch-T-2026-045-2" | .task_id = "T-2026-045"' | amp-ack track -s s >/dev/null
  AMP_FAULT=sync:1:KILL AMP_FAULT_MATCH=log/0 AMP_FAULT_ROOT=$PWD/s LD_PRELOAD=$shim \
    run -137 amp-ack complete task_dispatch-T-2026-044 -s s --as executor/ada --data "$D" --text x
  # Only the frame of the answer was on the disk: those of the result and of the dispatch were not.
  head -n -2 "$log" >cut
  [[ "$(tail -n 1 cut)" == *'"key":"reply.task_dispatch-T-2026-044'* ]]
  cp cut "$log"
  rm -f s/index/*
  # They are one turn, so there is no answer.
  amp-ack accept task_dispatch-T-2026-045-2 -s s --as executor/ada >first
  [ "$(jq -r .msg.type first)" = ack ]
  amp-ack complete task_dispatch-T-2026-044 -s s --as executor/ada --data "$D" --text y >second
  [ "$(jq -r .msg.type second)" = task_result ]
  run -1 --separate-stderr amp-ack complete task_dispatch-T-2026-044 -s s --as executor/bob --data "$D" --text z
  [[ "$stderr" == *already_completed* ]]
  [ -z "$output" ]
}

@test "a message that failed and was requeued by a person is answered again" {
  cd "$BATS_TEST_TMPDIR"
  local task=AOP-SESSION-2026-02-26-001/TASK-001/1
  jq -c 'select(.base == "minimal" and .line.message_type == "TASK") | .line' "$AMP_TOP/tests/fixture/protocols/aop.jsonl" |
    head -n 1 | amp-ack track -s s >/dev/null
  amp-ack progress "$task" 10 -s s --as Emma --text begun >/dev/null
  amp-ack fail "$task" -s s --as Emma --code E_UNKNOWN --text stuck >/dev/null
  run -1 --separate-stderr amp-ack complete "$task" -s s --as Emma --text done
  [[ "$stderr" == *refused_before* ]]
  amp-ack sweep -s s >/dev/null
  amp-ack dead requeue -s s "$task" >/dev/null
  amp-ack complete "$task" -s s --as Emma --text done >line
  [ "$(jq -r '(.msg // .).task_status.state' line)" = COMPLETED ]
  run -1 --separate-stderr amp-ack complete "$task" -s s --as Emma --text done
  [[ "$stderr" == *already_completed* ]]
}

@test "an agent answers as itself only; a late answer is sent if asked for" {
  cd "$BATS_TEST_TMPDIR"
  message task_dispatch '.ack_timeout_sec = 1' | amp-ack track -s s >/dev/null
  run -64 env -u AMP_AGENT amp-ack accept task_dispatch -s s
  AMP_AGENT=eve run -77 --separate-stderr amp-ack accept task_dispatch -s s --as executor/ada
  [[ "$stderr" == *'only people and the agent itself may'* ]]
  wait_until 10 eval 'amp-ack sweep -s s | grep -q ack_timeout'
  AMP_AGENT=ada run -1 --separate-stderr amp-ack accept task_dispatch -s s --as executor/ada
  [[ "$stderr" == *" late: "* ]]
  AMP_AGENT=ada run -0 --separate-stderr amp-ack accept task_dispatch -s s --as executor/ada --late
  [ "$(jq -r .msg.type <<<"$output")" = ack ]
  run -69 amp-ack accept task_dispatch -s nowhere --as executor/ada
}

@test "a task by hand: from the dispatch to the approval, with the change measured on the branch" {
  cd "$BATS_TEST_TMPDIR"
  git init -q -b main repo
  git -C repo commit -q --allow-empty -m first
  git -C repo branch task/1
  coordinates() { task-dispatch coordinate -s s >"$1" 2>said || [ $? -eq 75 ]; } # 75: the task is open
  of() { jq -r --arg t "$1" '.msg | select(.type == $t) | .msg_id' "$2"; }
  message task_dispatch ".msg_id = \"task_dispatch-T-2026-044-1\" | .from = \"admin\" | .to = \"coordinator\" |
    .payload.repo = \"$PWD/repo\" | .payload.branch = \"task/1\" | .payload.subtasks = [.payload.subtasks[0]]" | coordinates out1
  amp-ack accept "$(of task_dispatch out1)" -s s --as executor/ada >in2
  git -C repo checkout -q task/1
  echo a >repo/a.c
  git -C repo add a.c
  git -C repo commit -q -m work
  amp-ack complete "$(of task_dispatch out1)" -s s --as executor/ada --text 'by hand' >>in2
  [ "$(tail -n 1 in2 | jq -c '.msg.payload | [.diff_summary, .commit_hash == $c]' --arg c "$(git -C repo rev-parse task/1)")" = \
    '[{"files_changed":["a.c"],"lines_added":1,"lines_removed":0},true]' ]
  coordinates out2 <in2
  amp-ack complete "$(of review_request out2)" -s s --as reviewer/bob --data '{"decision":"approved"}' >in3
  run -0 task-dispatch coordinate -s s <in3
  [ "$(jq -r .state s/tasks/T-2026-044.json)" = done ] || {
    jq -c . s/tasks/T-2026-044.json >&2
    false
  }
}
