#!/usr/bin/env bats
# What a TASK of a session may use while its command works, and what is heard of it: heartbeats,
# progress, budgets, errors, delegation.
# long
# plain: session.bats and session_records.bats run the same code

setup() {
  load ../lib
  load ../session
  need jq
  need_tool task-dispatch
  sessions
}

# What the scripts of agents use.
SAY='say() { echo "$1" >"$AMP_CONTROL"; }
 answered() { for _ in {1..300}; do [ ! -e "${AMP_CONTROL%/*}/answer-$1.json" ] || break; sleep 0.02; done; cat "${AMP_CONTROL%/*}/answer-$1.json"; }
'
# events KIND [JQ]: of out.ndjson.
events() { jq -c "select(.event == \"$1\") | ${2:-.}" out.ndjson; }
beats() { echo ".execution_policy.heartbeat = {enabled: true, interval_seconds: $1, max_missed_beats: $2, on_heartbeat_failure: \"$3\"}"; }
usage() { echo "say '{\"type\":\"usage\",\"input_tokens\":$1,\"output_tokens\":$2,\"cost_usd\":$3}'"; }

@test "heartbeats: events for real ones only, one in an interval; the three ends of silence" {
  local alive="$SAY for i in {1..12}; do say '{\"type\":\"heartbeat\"}'; sleep 0.1; done"
  { task "$alive" "$(beats 0.5 20 ABORT)"
    task "$SAY sleep 300" "$(beats 0.2 2 ABORT)"
    task "$SAY sleep 0.8" "$(beats 0.2 2 WARN)"
    task "$SAY sleep 0.8" "$(beats 0.2 2 CONTINUE)"
    task "$SAY sleep 300" "$(beats 0.2 2 ABORT) | $(others GEMINI good TIMEOUT CODEX part CRITICAL_ERROR)"
    task "$SAY sleep 0.8"
    task "$SAY sleep 0.1" "$(beats 1e300 9007199254740992 ABORT) | .execution_policy.timeout_seconds = 4611686018427387904"
    task "$SAY sleep 1" "$(beats 0.2 1e300 ABORT)"; } >in
  session_run <in
  ended T-1 COMPLETED SUCCESS
  # Twelve signs of life in more than a second.
  [ "$(events HEARTBEAT '[.task_id, .agent, .progress_percentage]' | sort -u)" = '["T-1","Emma",0]' ]
  events HEARTBEAT | jq -se 'map(.timestamp | (.[:19] + "Z" | fromdate) + (.[20:23] | tonumber) / 1000) |
    length >= 2 and length < 12 and ([.[1:], .[:-1]] | transpose | map(.[0] - .[1] > 0.48) | all)'
  ended T-2 FAILED FAILURE E_HEARTBEAT_FAILURE
  [[ $(response T-2 .error_details.message) == *"2 beats were missed"* ]]
  ended T-3 COMPLETED SUCCESS
  [ "$(response T-3 '(.execution_summary.warnings | length)')" = '[1]' ]
  [[ $(response T-3 .execution_summary.warnings) == *"E_HEARTBEAT_FAILURE: no sign of life"*"the work goes on"* ]]
  ended T-4 COMPLETED SUCCESS
  [ "$(response T-4 '(.execution_summary.warnings // [])')" = '[[]]' ]
  grep -q 'T-4: no sign of life' err.txt
  ended T-5 COMPLETED PARTIAL_SUCCESS
  ended T-6 COMPLETED SUCCESS
  ended T-7 COMPLETED SUCCESS
  ended T-8 COMPLETED SUCCESS
  amp-validate -q --protocol aop out.ndjson >/dev/null
}

@test "progress: at most one event in 30 s, with what was reported last" {
  native "a preloaded shim must come first"
  shim=$AMP_BUILD/tests/fault/failclock.so
  [ -e "$shim" ] || make_same "$shim" || make_same build/tests/fault/failclock.so
  task "$SAY for i in 10 20 30; do say '{\"type\":\"progress\",\"detail\":\"step '\$i'\",\"percent\":'\$i',\"phase\":\"P\",\"checkpoint\":\"C\",\"eta_seconds\":7}'; done
    for i in {1..14}; do sleep 0.1; say '{\"type\":\"heartbeat\"}'; done; say '{\"type\":\"progress\",\"detail\":\"over\",\"percent\":99}'; sleep 0.1" >in
  FAIL_CLOCK_FAST=30 LD_PRELOAD=$shim session_run <in
  ended T-1 COMPLETED SUCCESS
  events PROGRESS_UPDATE '[.progress.percentage, .progress.message, .progress.current_phase, .progress.current_checkpoint, .progress.estimated_time_remaining_seconds]' >got
  printf '%s\n' '[10,"step 10","P","C",7]' '[30,"step 30","P","C",7]' | cmp got -
  # Not sooner than 30 s after the first, also by the times in them.
  amp-ack track --state "$BATS_TEST_TMPDIR/other" <in >/dev/null
  events PROGRESS_UPDATE | amp-ack track --state "$BATS_TEST_TMPDIR/other" 2>warned >/dev/null
  [ ! -s warned ]
  [ "$(response T-1 .progress_log.progress_percentage)" = '[99]' ]
  [ "$(response T-1 .execution_summary.actions)" = '[["step 10","step 20","step 30","over","a"]]' ]
}

@test "budgets: over all models and phases, to the last token; then the command is ended" {
  local slow="sleep 300" cost='echo "{\"completion_status\":\"complete\",\"execution_summary\":{\"summary\":\"said before\",\"actions\":[\"a\"]},\"cost_tracking\":{\"actual_cost_usd\":0.25,\"tokens_input\":3,\"tokens_output\":4}}" >$AMP_RESULT'
  { task "$SAY $(usage 600 400 0.5); sleep 0.2" '.task.budgets = {max_tokens: 1000, max_cost_usd: 0.5}'
    task "$SAY $(usage 600 401 0.1); $slow" '.task.budgets = {max_tokens: 1000}'
    task "$SAY $(usage 1 1 0.51); $slow" '.task.budgets = {max_cost_usd: 0.6} | .task.constraints.max_cost_usd = 0.5'
    task "$SAY $(usage 600 100 0.1); sleep 0.2; exit 1" ".task.budgets = {max_tokens: 1000} | $(others CODEX "$(base64 -w0 <<<"$SAY $(usage 200 101 0.2); $slow")" ALL_ERRORS)"
    task "$SAY $(usage 900 100 0); sleep 0.2; exit 1" ".task.budgets = {max_tokens: 1000} | $(others CODEX good ALL_ERRORS)"
    task "$SAY $(usage 1001 0 0); $slow" ".task.budgets = {max_tokens: 1000} | $(others CODEX good COST_LIMIT_EXCEEDED)"
    task "$SAY $(usage 500 0 0); $(usage 100 0 0); sleep 0.2" '.task.budgets = {max_tokens: 600} | .phases = [{phase_id: "A", phase_order: 1, label: "l", objective: "o"}, {phase_id: "B", phase_order: 2, label: "l", objective: "o"}]'
    task good '.task.budgets = {max_tokens: 0, max_cost_usd: 0}'
    task 'echo "{\"task_status\":{\"state\":\"COMPLETED\",\"final_signal\":\"SUCCESS\"},\"execution_summary\":{\"summary\":\"s\",\"actions\":[\"a\"]},\"cost_tracking\":{\"estimated_cost_usd\":0.15,\"actual_cost_usd\":0.18,\"tokens_input\":12500,\"tokens_output\":3200,\"model_pricing_tier\":\"standard\"}}" >$AMP_RESULT' '.task.budgets = {max_cost_usd: 0.18}'
    task 'echo "{\"task_status\":{\"state\":\"COMPLETED\",\"final_signal\":\"SUCCESS\"},\"execution_summary\":{\"summary\":\"s\",\"actions\":[\"a\"]},\"cost_tracking\":{\"estimated_cost_usd\":0.15}}" >$AMP_RESULT' '.task.budgets = {max_cost_usd: 0.14}'
    task "$SAY $(usage 1 1 0.5000001); $slow" '.task.budgets = {max_cost_usd: 0.5}'
    task "$SAY $(usage 1 1 0.29); sleep 0.2" '.task.budgets = {max_cost_usd: 0.29}'
    task "$cost; [ \$AMP_PHASE = A ] || { rm \$AMP_RESULT; kill -9 \$\$; }" '.phases = [{phase_id: "A", phase_order: 1, label: "l", objective: "o"}, {phase_id: "B", phase_order: 2, label: "l", objective: "o"}]'
    task "$cost; [ -e later ] || { touch later; exit 75; }"; } >in
  session_run --pause 0 <in
  ended T-1 COMPLETED SUCCESS
  [ "$(response T-1 .cost_tracking)" = '[{"tokens_input":600,"tokens_output":400,"actual_cost_usd":0.5}]' ]
  ended T-2 FAILED FAILURE E_COST_LIMIT_EXCEEDED
  [[ $(response T-2 .error_details.message) == *"1001 tokens were used, the limit is 1000"* ]]
  ended T-3 FAILED FAILURE E_COST_LIMIT_EXCEEDED
  [[ $(response T-3 .error_details.message) == *"0.51 USD were spent, the limit is 0.5"* ]]
  ended T-4 FAILED FAILURE E_COST_LIMIT_EXCEEDED
  [ "$(response T-4 .cost_tracking)" = '[{"tokens_input":800,"tokens_output":201,"actual_cost_usd":0.3}]' ]
  # Nothing is left for another model.
  ended T-5 FAILED FAILURE E_PROCESS_CRASH
  ended T-6 FAILED FAILURE E_COST_LIMIT_EXCEEDED
  # A smaller number takes nothing back, and the second phase counts, too.
  ended T-7 FAILED FAILURE E_COST_LIMIT_EXCEEDED
  [ "$(response T-7 .cost_tracking.tokens_input)" = '[1000]' ]
  ended T-8 COMPLETED SUCCESS
  [ "$(response T-8 .cost_tracking)" = '[null]' ]
  ended T-9 COMPLETED SUCCESS
  [ "$(response T-9 .cost_tracking)" = '[{"tokens_input":12500,"tokens_output":3200,"estimated_cost_usd":0.15,"actual_cost_usd":0.18,"model_pricing_tier":"standard"}]' ]
  ended T-10 FAILED FAILURE E_COST_LIMIT_EXCEEDED
  # So the trail says of a cost that was only estimated.
  [ "$(jq -c 'select(.task_id == "T-10") | if .payload.check_type == "BUDGET" then [.payload.result, .payload.details]
    elif .record_type == "RESPONSE_RECEIVED" then .governance.budget_status else empty end' "$WS"/_skills/*/v2/audit_trails/S-1.ndjson | paste -sd' ')" = \
    '["FAIL","0 tokens and 0.150000 USD were spent"] {"max_cost_usd":0.14,"current_cost_usd":0.15,"within_budget":false}' ]
  # A part of a millionth counts as one.
  ended T-11 FAILED FAILURE E_COST_LIMIT_EXCEEDED
  ended T-12 COMPLETED SUCCESS
  # The answer of a phase counts once, and is not that of a phase without one.
  ended T-13 FAILED FAILURE E_PROCESS_CRASH
  [ "$(response T-13 .cost_tracking)" = '[{"tokens_input":3,"tokens_output":4,"actual_cost_usd":0.25}]' ]
  [[ $(response T-13 .execution_summary.summary) != *"said before"* ]]
  # A run that asks to be repeated has used what its answer says.
  ended T-14 COMPLETED SUCCESS
  [ "$(response T-14 .cost_tracking.tokens_input .cost_tracking.actual_cost_usd)" = '[6,0.5]' ]
}

@test "budgets: what was used before kill -9 counts; and a pool has budgets of its own" {
  task "$SAY $(usage 600 0 0.1); if [ ! -e begun ]; then sleep 0.4; touch begun; sleep 20; fi; sleep 20" '.task.budgets = {max_tokens: 1000}' >in
  aop-session run --state "$STATE" --config amp.json <in >out.ndjson 2>err.txt 3>&- &
  local pid=$!
  wait_until 10 test -e ws/begun
  kill -9 $pid
  ends 137 wait $pid
  session_run </dev/null
  ended T-1 FAILED FAILURE E_COST_LIMIT_EXCEEDED
  [ "$(response T-1 .cost_tracking.tokens_input)" = '[1200]' ]
  jq '.budgets.day.tokens = 1000' amp.json >new.json && mv new.json amp.json
  STATE=$PWD/state2
  { task "$SAY $(usage 400 101 0); sleep 0.2" '.phases = [{phase_id: "A", phase_order: 1, label: "l", objective: "o", checkpoints: [{checkpoint_id: "C", description: "d", validation: {command: "seq 200000", expects: "MATCH_FOUND"}}]}, {phase_id: "B", phase_order: 2, label: "l", objective: "o"}]'
    task good; } >in
  task-queue submit --state "$STATE" <in >/dev/null
  task-queue work --state "$STATE" --config amp.json --type Emma=1 --pause 200ms -x "$PWD/agent" >out.ndjson 2>err.txt 3>&- &
  pid=$!
  wait_until 20 grep -q 'the budget of the day today is spent' err.txt
  ended T-2 COMPLETED SUCCESS
  [ "$(response T-2 '(.checkpoint_results | map(.status))')" = '[["PASS"]]' ]
  kill $pid
  ends 130 wait $pid
  [ "$(task-queue list --state "$STATE" --all --json | jq -r '"\(.task) \(.state)"' | sort | paste -sd,)" = "T-2 DONE,T-3 QUEUED" ]
}

@test "errors that the agent reports: those of the RESPONSE, and critical ones end the run" {
  { task "$SAY say '{\"type\":\"error\",\"id\":\"1\",\"code\":\"E_FILE_NOT_FOUND\",\"detail\":\"no x\"}'; answered 1 >a1
      say '{\"type\":\"error\",\"id\":\"2\",\"code\":\"E_NONE\",\"detail\":\"d\"}'; answered 2 >a2
      say '{\"type\":\"delegate\",\"id\":\"4\",\"task\":{}}'; answered 4 >a4"
    task "$SAY say '{\"type\":\"error\",\"code\":\"E_UNKNOWN\",\"detail\":\"all is lost\",\"critical\":true}'; sleep 20" "$(others CODEX part CRITICAL_ERROR)"; } >in
  session_run <in
  ended T-1 COMPLETED SUCCESS
  [ "$(response T-1 .execution_summary.errors)" = '[["E_FILE_NOT_FOUND: no x"]]' ]
  [ "$(jq -c .ok ws/a1)" = true ]
  [ "$(jq -rs 'map(.code) | join(" ")' ws/a2 ws/a4)" = "bad_value E_PERMISSION_DENIED" ]
  ended T-2 COMPLETED PARTIAL_SUCCESS
  [[ $(response T-2 .execution_summary.errors) == *"E_UNKNOWN: all is lost"* ]]
}

# asked TEXT: the open question with this text.
asked() { hitl-prompt list --state "$STATE" --json | jq -r 'select(.about.task == "T-1" or .task == "T-1") | .id' |
  while read -r id; do hitl-prompt show --state "$STATE" --json "$id"; done |
  jq -r --arg text "$1" 'select(.message.payload.context.question == $text) | .message.payload.invocation_id'; }

@test "questions to a person: the decision comes into the work; one without a decision ends with it" {
  need_tool hitl-prompt
  ask() { printf '%s' "say '{\"type\":\"question\",\"id\":\"$1\",\"text\":\"$2\",\"suggestions\":[\"80\",\"443 or more\"]}'; answered $1 >/dev/null;"; }
  task "$SAY $(ask q 'Which port?') $(ask w 'Which host?') $(ask u 'Which user?')
    say '{\"type\":\"withdraw\",\"question\":\"w\",\"id\":\"x\"}'; answered x >/dev/null
    for _ in {1..200}; do ! grep -q decision \${AMP_CONTROL%/*}/answer-q.json || break; sleep 0.1; done
    say '{\"type\":\"withdraw\",\"question\":\"q\",\"id\":\"y\"}'; answered y >/dev/null
    jq -s . \${AMP_CONTROL%/*}/answer-{q,w,u,x,y}.json >answers" '.execution_policy.timeout_seconds = 3600' >in
  session_run <in 3>&- &
  local pid=$!
  wait_until 20 eval '[ -n "$(asked "Which user?")" ] && [ -z "$(asked "Which host?")" ]'
  hitl-prompt show --state "$STATE" --json "$(asked "Which port?")" | jq -e '.message.payload |
    .context.session_id == "S-1" and .context.agent == "Emma" and .context.objective == "Do it." and .proposed_actions == ["80", "443 or more"]
    and (.deadline_ts[:19] + "Z" | fromdate) <= now + 3601'
  hitl-prompt answer --state "$STATE" "$(asked "Which port?")" "443 or more" "the firewall has it" >/dev/null
  wait "$pid"
  ended T-1 COMPLETED SUCCESS
  jq -e '(map(.ok) == [true, true, true, true, false]) and .[0].decision == "443 or more" and .[0].note == "the firewall has it"
    and .[1].withdrawn and (.[2] | has("decision") | not) and .[4].code == "already_decided"' ws/answers
  jq -c '.[]' ws/answers >each
  (cd ws && amp-validate -S agent/control_answer <../each) | cmp - each
  [ "$(hitl-prompt list --state "$STATE" --json)" = "" ]
}

@test "delegation: a child TASK on the output, within the access and the depth of its parent" {
  child() { jq -nc --arg id "$1" '{target: {agent_name: "Bob", role: "EXECUTOR", provider: "CODEX", model: "good"},
    task: {task_id: $id, objective: "A part.", category: "ANALYSIS", complexity: "LOW", environment: {workspace_root: $ENV.HERE}}} | '"${2:-.}"; }
  export HERE=$WS
  # send ID CHILD: a line of a script; script NAME LINE...: a model that runs the lines.
  send() { printf "say '%s'; answered %s >>answers\n" "$(jq -nc --arg id "$1" --argjson t "$2" '{type: "delegate", id: $id, task: $t}')" "$1"; }
  script() { echo "$SAY" | cat - <(printf '%s\n' "${@:2}") >"$1.sh"; base64 -w0 <<<". $PWD/$1.sh"; }
  local may='.task.constraints.delegation_allowed = true | .task.access = {filesystem: {read_paths: ["."], write_paths: ["out", "answers", "calls.txt"]}, network: "NONE"} | .session.workflow_pattern = "HIERARCHICAL"'
  local within='.task.access = {filesystem: {read_paths: ["a"], write_paths: ["out/x", "answers", "calls.txt"]}, network: "NONE"}' third second
  third=$(script third "$(send 9 "$(child M-1 "$within")")")
  second=$(script second "$(send 10 "$(child L-1 "$within | .task.constraints.delegation_allowed = true | .target.model = \"$third\"")")")
  task "$(script first "$(send 1 "$(child K-1 "$within | .task.constraints.delegation_allowed = true | .target.model = \"$second\"")")" \
    "$(send 2 "$(child K-2 '.task.access = {filesystem: {read_paths: ["a"], write_paths: ["src"]}, network: "NONE"}')")" \
    "$(send 3 "$(child K-3 '.task.access = {filesystem: {read_paths: ["a"], write_paths: []}, network: "FULL"}')")" \
    "$(send 4 "$(child K-4 '.task.complexity = "HUGE"')")" "$(send 5 "$(child K-5 '.session = {}')")" \
    "$(send 6 "$(child K-6 '.task.parent_task_id = "other"')")" "$(send 7 "$(child K-1 "$within")")" \
    "$(send 8 "$(child T-1 "$within")")")" "$may" >in
  session_run <in
  ended T-1 COMPLETED SUCCESS
  [ "$(jq -rs 'map(.code // "ok") | join(" ")' ws/answers)" = "ok E_PERMISSION_DENIED E_PERMISSION_DENIED E_SCHEMA_VALIDATION bad_value bad_value ok E_SCHEMA_VALIDATION" ]
  [ "$(jq -c 'select(.id == "1") | [.task_id, .msg_id]' ws/answers)" = '["K-1","S-1/K-1/1"]' ]
  (cd ws && amp-validate -q -S agent/control_answer <answers >/dev/null)
  jq -c 'select(.message_type == "TASK")' out.ndjson >children
  [ "$(jq -c '[.task.task_id, .task.parent_task_id, .session.session_id, .session.orchestrator, .aop_version]' children)" = '["K-1","T-1","S-1","Cyclops","2.0.2-C"]' ]
  amp-validate -q --protocol aop children >/dev/null
  # The child delegates in its turn, in a pool; the next level is too deep.
  task-queue submit --state "$STATE" <children >/dev/null
  : >out.ndjson # before the pool does so
  task-queue work --state "$STATE" --config amp.json --type Bob=1 -x "$PWD/agent" >out.ndjson 2>err.txt 3>&- &
  local pid=$!
  wait_until 20 has_lines out.ndjson 2
  kill $pid
  ends 130 wait $pid
  ended K-1 COMPLETED SUCCESS
  jq -c 'select(.message_type == "TASK")' out.ndjson >children
  [ "$(jq -r .task.parent_task_id children)" = K-1 ]
  session_run <children
  ended L-1 COMPLETED SUCCESS
  [ "$(jq -c 'select(.id == "9") | .code' ws/answers)" = '"E_MAX_DEPTH_EXCEEDED"' ]
  # The ledger waits for the RESPONSEs of what was delegated.
  [ "$(amp-ack status --state "$STATE" --all --json | jq -r '"\(.msg_id) \(.state)"' | grep -v T-1 | sort | paste -sd,)" = "S-1/K-1/1 FULFILLED,S-1/L-1/1 FULFILLED" ]
}
