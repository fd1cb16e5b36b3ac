#!/usr/bin/env bats
# The ledger keeps tasks of AOP and hand-overs of AOF, which bear no ids.
# plain

load ../lib

setup() {
  need_tool amp-ack
  need jq
  cd "$BATS_TEST_TMPDIR" || return 1
  export AMP_STATE=$PWD/state
}

# base PROTOCOL NAME [JQ]: a message of the rules' file, edited.
base() {
  jq -c --arg name "$2" "select(.base == \$name) | .line | ${3:-.}" "$AMP_TOP/tests/fixture/protocols/$1.jsonl"
}
task() {
  base aop minimal '.session.session_id = "S" | .execution_policy = {timeout_seconds: 60, max_retries: 2,
    retry_backoff_seconds: [30, 120]} | '"${1:-.}"
}
response() { base aop response '.session_id = "S" | '"${1:-.}"; }
failed() {
  response '.task_status = {state: "FAILED", final_signal: "FAILURE", message: "m"} |
    .error_details = {error_code: "'"$1"'", message: "m"}'
}
handoff() {
  local t=TASK-2026-02-09-060
  base aof "$1" '.taskId = "'$t'" | .payload.taskId = "'$t'" | del(.messageId) | '"${2:-.}"
}
QA='.fromAgent = "swe-qa" | .toAgent = "swe-backend"'
track() { amp-ack track --now "2026-03-01T$1Z" "${@:2}"; }
sweep() { amp-ack sweep --now "2026-03-01T$1Z" "${@:2}"; }
states() { amp-ack status --all --json | jq -r '"\(.msg_id) \(.state)"' | paste -sd,; }

@test "AOP: signs of life, then a response; what passes stays as it is" {
  { task; base aop heartbeat '.session_id = "S"'; } >in
  track 12:00:00 <in | cmp - in
  [ "$(states)" = "S/TASK-001/1 READ" ]
  response | track 12:00:50 >/dev/null
  [ "$(states)" = "S/TASK-001/1 FULFILLED" ]
  [ -z "$(sweep 13:00:00 --retries 3)" ]
}

# over CODE [TASK]: a filter for the RESPONSE to a TASK that got none in time.
over() {
  amp-validate --strict | jq -se --arg c "$1" --arg t "${2:-TASK-001}" 'length == 1 and (.[0] | .message_type == "RESPONSE" and .session_id == "S" and
    .task_id == $t and .agent.name == "Emma" and .task_status.state == "FAILED" and .task_status.final_signal == "FAILURE" and
    .error_details.error_code == $c)'
}

@test "AOP: a task whose time ran out begins anew by its own list of waits, as often as it allows" {
  { task; base aop heartbeat '.session_id = "S"'; } | track 12:00:00 >/dev/null
  for at in 12:01:00 12:01:29 12:01:30 12:02:30 12:04:29 12:04:30 12:05:30; do
    sweep $at --retries 9 | sed "s/^/$at /"
  done >out
  # Byte for byte but for the attempt.
  sed -n 's/^12:01:30 //p' out >second
  amp-validate second | cmp - second
  jq -e '.task.attempt == 2' second
  [ "$(jq -cS 'del(.task.attempt)' second)" = "$(task | jq -cS .)" ]
  [ "$(cut -d' ' -f1 out | paste -sd' ')" = "12:01:30 12:04:30 12:05:30" ]
  sed -n 's/^12:05:30 //p' out | over E_TIMEOUT
  amp-ack dead list --json | jq -e '.code == "retries_exhausted" and .attempts == 3 and .id == "S/TASK-001/3"'
}

@test "what cannot be delivered is answered in its own protocol, and an answer by nobody" {
  need_tool amp-route
  { task; handoff request; response; base aop heartbeat '.session_id = "S"'; } >in
  run -1 --separate-stderr bash -c 'amp-route -r "to=admin => file:a" <in >out'
  amp-validate -e faults out | cmp - out
  [ "$(jq -r '.message_type // .type' out | paste -sd' ')" = "RESPONSE dispatch.no-match" ]
  head -n 1 out | jq -e '.session_id == "S" and .task_id == "TASK-001" and .agent.name == "Emma" and
    .task_status.state == "FAILED" and .error_details.error_code == "E_AGENT_NOT_FOUND" and
    (.error_details.message | startswith("no_route"))'
  tail -n 1 out | jq -e '.taskId == "TASK-2026-02-09-060" and .payload.reason == "no_route" and
    .payload.messageType == "handoff.request" and .payload.fromAgent == "swe-backend" and
    .payload.toAgent == "swe-qa"'
  # Who cannot find an agent for an answer says nothing to it.
  run -1 --separate-stderr amp-route -r 'to=admin => file:a' <out
  [ -z "$output" ]
}

@test "AOP: a task that was read from an inbox has the time that it says, until its RESPONSE" {
  need_tool amp-route
  later() { amp-ack sweep --now "$(date -u -d "+$1 seconds" +%FT%TZ)"; }
  { task '.execution_policy.timeout_seconds = 600'; task '.execution_policy.timeout_seconds = 600 | .task.task_id = "T2"'; } |
    amp-route -r '* => inbox:Emma' >/dev/null
  amp-route inbox Emma >/dev/null
  response '.task_id = "T2"' | amp-ack >/dev/null
  [ -z "$(later 500)" ]
  later 700 >told
  over E_TIMEOUT <told
  jq -e '.task_status.message == "E_TIMEOUT: no RESPONSE by Emma within 600 s, after 1 attempt"' told
  # Without a further attempt this is once; what comes late counts nevertheless.
  [ -z "$(later 800)" ]
  response | amp-ack >/dev/null
  [ -z "$(amp-ack dead list --json)" ]
}

@test "AOP: the refusal of a TASK that has the name of another one is not the outcome of that one" {
  task | track 12:00:00 >/dev/null
  response '.task_status = {state: "FAILED", final_signal: "FAILURE", message: "m"} | .error_details = {error_code: "E_SCHEMA_VALIDATION",
    message: "m", extensions: {x_rule: "duplicate_msg_id"}}' >refusal
  track 12:00:10 <refusal | cmp - refusal
  [ "$(states)" = "S/TASK-001/1 SENT" ]
  response | track 12:00:20 >/dev/null
  [ "$(states)" = "S/TASK-001/1 FULFILLED" ]
}

# checked FILE: the codes and fields that amp-validate finds with the state, or "valid".
checked() {
  amp-validate --state state -e - "$1" 2>&1 >passed | jq -r '.code + " " + .field' | sort -u
  [ ! -s passed ] || echo valid
}

@test "AOP: the TASK's own guard rails say what its RESPONSE must have, in track and with --state" {
  { task '.guard_rails.require_minimal_report = false'
    task '.task.task_id = "T2" | .guard_rails.require_final_signal = false'
    task '.task.task_id = "T3"'; } | track 12:00:00 >/dev/null
  response '.execution_summary |= (.actions = [] | .summary = "")' >bare
  response '.task_id = "T2" | del(.task_status.final_signal)' >silent
  jq -c '.task_id = "T3"' bare silent >strict
  jq -c '.task_id = "T4"' bare silent >unknown
  jq -c '.task_id = "T2"' bare >mixed
  [ "$(checked bare)" = valid ]
  [ "$(checked silent)" = valid ]
  [ "$(checked mixed)" = "E_MALFORMED_RESPONSE execution_summary.actions
E_MALFORMED_RESPONSE execution_summary.summary" ]
  [ "$(checked strict | grep -c E_MALFORMED_RESPONSE)" -eq 3 ]
  [ "$(checked unknown | grep -c E_MALFORMED_RESPONSE)" -eq 3 ]
  # Without the state, the defaults count.
  run -1 amp-validate -e - bare
  for f in strict unknown mixed; do
    run -1 --separate-stderr track 12:00:01 <$f
    [[ $stderr == *E_MALFORMED_RESPONSE* ]]
    # Nothing but the events that say so to the sender (AOP §1.3).
    [ "$(jq -r '.event + " " + .reason' <<<"$output" | sort -u)" = "VERSION_FALLBACK E_MALFORMED_RESPONSE" ]
  done
  cat bare silent | track 12:00:02 >out
  cmp out <(cat bare silent)
  [ "$(states)" = "S/T2/1 FULFILLED,S/T3/1 SENT,S/TASK-001/1 FULFILLED" ]
  # Blank text is no report either, where one is required; a failure without a signal is one.
  task '.task.attempt = 2 | .guard_rails = {require_minimal_report: false, require_final_signal: false}' | track 12:00:03 >/dev/null
  response '.execution_summary |= (.actions = [" "] | .summary = " ") | .task_status = {state: "FAILED", message: "m"}' |
    track 12:00:04 >/dev/null
  [[ $(states) == *"S/TASK-001/2 FAILED"* ]]
  # No state and no signal tells nothing: that is refused whatever the TASK says.
  response '.task_status = {message: "m"}' >in
  run -1 --separate-stderr track 12:00:05 <in
  [[ $stderr == *E_MALFORMED_RESPONSE* ]]
}

@test "AOP: a RESPONSE that cost more than the TASK's budget is refused, and the work is not begun anew" {
  spent() { response ".cost_tracking = {estimated_cost_usd: 9, actual_cost_usd: $1, tokens_input: 10, tokens_output: ${2:-10}}"; }
  budget='.task.constraints.max_cost_usd = 2 | .task.budgets = {max_cost_usd: 1.5, max_tokens: 100}'
  task "$budget" | track 12:00:00 >/dev/null
  spent 1.51 >over
  [ "$(checked over)" = "E_COST_LIMIT_EXCEEDED cost_tracking" ]
  spent 1 91 >many
  [ "$(checked many)" = "E_COST_LIMIT_EXCEEDED cost_tracking" ]
  spent 1.5 90 >equal
  [ "$(checked equal)" = valid ]
  # Nobody else's bill counts.
  jq -c '.agent.name = "Eve"' over >in
  run -1 --separate-stderr track 12:00:01 <in
  [[ $stderr == *E_PERMISSION_DENIED* ]]
  [ "$(states)" = "S/TASK-001/1 SENT" ]
  run -1 --separate-stderr track 12:00:01 <over
  [[ -z $output && $stderr == *E_COST_LIMIT_EXCEEDED* ]]
  jq -se 'map(.code) == ["E_PERMISSION_DENIED", "E_COST_LIMIT_EXCEEDED"]' state/error.ndjson
  [ "$(states)" = "S/TASK-001/1 FAILED" ]
  sweep 13:00:00 --retries 3 >out
  run -1 grep '"attempt":2' out
  amp-ack dead list --json | jq -e '.id == "S/TASK-001/1" and .code == "E_COST_LIMIT_EXCEEDED"'
  rm -r state
  task "$budget" | track 12:00:00 >/dev/null
  track 12:00:01 <equal | cmp - equal
  [ "$(states)" = "S/TASK-001/1 FULFILLED" ]
  # 0 is a budget; none is none.
  { task '.task.task_id = "T2" | .task.budgets.max_cost_usd = 0'; task '.task.task_id = "T3"'; } | track 12:00:02 >/dev/null
  jq -c '.task_id = "T3"' over | track 12:00:03 >/dev/null
  jq -c '.task_id = "T2" | .cost_tracking.actual_cost_usd = 0.01' over >in
  run -1 track 12:00:03 <in
  [[ $output == *E_COST_LIMIT_EXCEEDED* ]]
}

@test "AOP: a RESPONSE must fit its TASK: model, checkpoints, artifacts; what is malformed may be sent again" {
  task '.task.access.filesystem = {read_paths: ["C:/ai"], write_paths: ["C:/ai/out"]} |
    .execution_policy.alternative_models = [{provider: "LOCAL", model: "m2"}] |
    .phases = [{phase_id: "P", phase_order: 1, label: "l", objective: "o", checkpoints:
      [{checkpoint_id: "CP-IMPL-001", description: "d", recovery_strategy: "ABORT"}]}]' | track 12:00:00 >/dev/null
  made='.execution_summary.output_artifacts = [{type: "FILE", path: "C:/ai/out/a", status: "CREATED"}]'
  while IFS='|' read -r code field edit; do
    response "$made | $edit" >bad
    [ "$(checked bad)" = "$code $field" ]
    [ "$code" = E_MALFORMED_RESPONSE ] || continue
    run -1 --separate-stderr track 12:00:01 <bad
    [[ -z $output && $stderr == *"$code: "* ]]
    [ "$(states)" = "S/TASK-001/1 SENT" ]
  done <<'END'
E_MALFORMED_RESPONSE|agent.model|.agent.model = "m3"
E_MALFORMED_RESPONSE|agent.model|.agent.model = "m2"
E_MALFORMED_RESPONSE|checkpoint_results|.checkpoint_results[0].checkpoint_id = "CP-2"
E_MALFORMED_RESPONSE|checkpoint_results|.checkpoint_results += .checkpoint_results
E_MALFORMED_RESPONSE|checkpoint_results|.checkpoint_results[0].status = "PENDING"
E_MALFORMED_RESPONSE|checkpoint_results|.checkpoint_results[0].status = "FAIL"
E_PERMISSION_DENIED|execution_summary.output_artifacts|.execution_summary.output_artifacts[0].path = "C:/ai/outside"
E_PERMISSION_DENIED|execution_summary.output_artifacts|.execution_summary.output_artifacts[0].path = "C:/ai/out/../a"
END
  response "$made"' | .agent.provider = "LOCAL" | .agent.model = "m2"' >good
  [ "$(checked good)" = valid ]
  response '.execution_summary.output_artifacts[0].path = "C:/ai/README"' >bad
  run -1 --separate-stderr track 12:00:02 <bad
  [[ -z $output && $stderr == *E_PERMISSION_DENIED* ]]
  [ "$(states)" = "S/TASK-001/1 FAILED" ]
  run -0 --separate-stderr track 12:00:03 <good
}

@test "AOP: a PROGRESS_UPDATE less than 30 s after the one before passes with a warning, in track and with --state" {
  progress() { base aop progress ".session_id = \"S\" | .timestamp = \"2026-03-01T12:$1Z\" | ${2:-.}"; }
  task | track 12:00:00 >/dev/null
  progress 00:10 >first
  run -0 --separate-stderr track 12:00:10 <first
  [ "$output" = "$(cat first)" ] && [ -z "$stderr" ]
  progress 00:39 >early
  run -0 --separate-stderr amp-validate -s "$AMP_STATE" -e - early
  jq -e '.code == "too_frequent" and .severity == "warning" and .field == "timestamp" and
    .found == "seconds after the last: 29"' <<<"$stderr"
  run -0 --separate-stderr track 12:00:40 <early
  [ "$output" = "$(cat early)" ]
  [[ $stderr == *"too_frequent: Emma reports progress on TASK-001 after 29 s; at most one report in 30 s"* ]]
  # One that is sent again, one after 30 s, another task.
  { cat early; progress 01:09; progress 01:10 '.task_id = "T2"'; } >in
  run -0 --separate-stderr track 12:01:10 <in
  [ "$output" = "$(cat in)" ] && [ -z "$stderr" ]
  # In one run, without the ledger's help.
  { progress 10:00 '.task_id = "T3"'; progress 10:29 '.task_id = "T3"'; progress 10:59 '.task_id = "T3"'; } >in
  run -0 --separate-stderr amp-validate -s "$AMP_STATE" -e - in
  jq -se 'map(.line) == [2]' <<<"$stderr"
}

@test "AOP: a failure that may pass is tried again, another one is a dead letter" {
  { task; failed E_TIMEOUT; } | track 12:00:00 >/dev/null
  [ -z "$(sweep 12:00:00 --retries 9)" ]
  [ "$(sweep 12:00:30 --retries 9 | jq .task.attempt)" -eq 2 ]
  { task '.task.task_id = "TASK-002"'; failed E_PERMISSION_DENIED | jq -c '.task_id = "TASK-002"'; } |
    track 12:00:00 >/dev/null
  sweep 12:00:00 >/dev/null
  amp-ack dead list --json | jq -e '.id == "S/TASK-002/1" and .code == "E_PERMISSION_DENIED"'
}

@test "AOP: on_failure: RETRY is one more attempt without max_retries, ABORT_SESSION none with them" {
  attempts() {
    rm -rf state
    { task "del(.execution_policy.max_retries) | .execution_policy.retry_backoff_seconds = [0] | $1"; failed E_PROCESS_CRASH; } |
      track 12:00:00 >/dev/null
    for at in 12:00:01 12:00:02 12:30:00; do sweep $at --retries 9; done | jq -r '.task.attempt // empty' | sort -u | paste -sd,
  }
  [ "$(attempts .)" = "" ]
  [ "$(attempts '.execution_policy.on_failure = "REPORT_AND_CONTINUE"')" = "" ]
  [ "$(attempts '.execution_policy.on_failure = "RETRY"')" = 2 ]
  [ "$(attempts '.execution_policy += {on_failure: "RETRY", max_retries: 0}')" = "" ]
  [ "$(attempts '.execution_policy += {on_failure: "REPORT_AND_CONTINUE", max_retries: 1}')" = 2 ]
  [ "$(attempts '.execution_policy += {on_failure: "ABORT_SESSION", max_retries: 1}')" = "" ]
}

@test "AOP: the same attempt in other words passes with a word" {
  task | track 12:00:00 >/dev/null
  task '.task.objective = "another"' >in
  run --separate-stderr -0 track 12:00:01 <in
  [ "$output" = "$(cat in)" ]
  [[ $stderr == *"passed on without a record"* ]]
}

@test "AOF: a hand-over is taken, worked at and reported, or refused" {
  handoff request >in
  track 12:00:00 <in | cmp - in
  handoff accepted "$QA" | track 12:00:01 >/dev/null
  [[ $(states) == "handoff.request/TASK-2026-02-09-060/"*" READ" ]]
  handoff report "$QA" | track 12:00:02 >/dev/null
  [[ $(states) == *" FULFILLED" ]]
  rm -r state
  { handoff request; handoff rejected "$QA"; } | track 12:00:00 >/dev/null
  [[ $(states) == *" REJECTED" ]]
  # Its dueBy is no time to live.
  rm -r state
  track 23:00:00 <in | cmp - in
}

@test "AOP: only the agent that the task names reports its end; who else does is refused with the attempt's name" {
  { task; base aop heartbeat '.session_id = "S" | .agent = "Eve"'; } | track 12:00:00 >/dev/null
  response '.agent.name = "Eve"' >in
  run -1 --separate-stderr track 12:00:01 <in
  [ -z "$output" ]
  [[ $stderr == *"E_PERMISSION_DENIED: Emma holds the work, not Eve: outcome of S/TASK-001/1 refused"* ]]
  jq -e '.code == "E_PERMISSION_DENIED" and (.message | contains("S/TASK-001/1"))' state/error.ndjson
  failed E_TIMEOUT | jq -c '.agent.name = "Eve"' >in
  run -1 --separate-stderr track 12:00:02 <in
  [[ $(states) == "S/TASK-001/1 READ" ]] # signs of life are nobody's end
  response | track 12:00:03 | cmp - <(response)
  [ "$(states)" = "S/TASK-001/1 FULFILLED" ]
  # Attempts for two agents: the answer of either is to its own.
  rm -r state
  { task; task '.task.attempt = 2 | .target.agent_name = "Ann"'; } | track 12:00:00 >/dev/null
  response '.agent.name = "Ann"' | track 12:00:01 >/dev/null
  [ "$(states)" = "S/TASK-001/1 SENT,S/TASK-001/2 FULFILLED" ]
}

@test "AOP: a task for a role is answered by an agent of that role" {
  need_tool agent-registry
  jq -nc '{agent_id: "ex1", name: "ex1", description: "d", capabilities: [], modalities_supported: ["application/json"],
    communication_class: "STANDARD", reasoning_connectors: ["http://localhost:1/v1"]}' >ex1
  agent-registry register --role Emma --descriptor ex1 >/dev/null
  task | track 12:00:00 >/dev/null
  run -1 --separate-stderr track 12:00:01 < <(response '.agent.name = "ex2"')
  response '.agent.name = "ex1"' | track 12:00:02 >/dev/null
  [ "$(states | tr , '\n' | grep ^S/)" = "S/TASK-001/1 FULFILLED" ]
}

@test "AOF: only who the work was handed to accepts, refuses or reports; a status may come from anybody" {
  handoff request | track 12:00:00 >/dev/null
  for what in accepted rejected report; do
    handoff $what >in # from who handed it over
    run -1 --separate-stderr track 12:00:01 <in
    [[ -z $output && $stderr == *"unauthorized_agent: swe-qa holds the work, not swe-backend"*"handoff.request/TASK-2026-02-09-060/"* ]]
  done
  [[ $(states) == *" SENT" ]]
  [ "$(jq -r .code state/error.ndjson | sort -u)" = unauthorized_agent ]
  handoff status | track 12:00:02 >/dev/null
  [[ $(states) == *" READ" ]]
  handoff report "$QA" | track 12:00:03 >/dev/null
  [[ $(states) == *" FULFILLED" ]]
}

# beating WHAT: a task of ten minutes with a sign of life due each twenty seconds, three may be missed.
beating() {
  task '.execution_policy.timeout_seconds = 600 | .execution_policy.heartbeat = {enabled: true, interval_seconds: 20,
    max_missed_beats: 3, on_heartbeat_failure: "'"$1"'"}'
}
beat() { base aop heartbeat '.session_id = "S" | .agent = "'"${1:-Emma}"'"'; }

@test "AOP: an agent that misses its beats is lost: another attempt, or a RESPONSE and a dead letter" {
  beating ABORT | track 12:00:00 >/dev/null
  [ -z "$(sweep 12:00:59 --retries 9)" ]
  beat | track 12:00:59 >/dev/null
  [ -z "$(sweep 12:01:58 --retries 9)" ]
  beat | track 12:01:50 >/dev/null
  beat Eve | track 12:02:40 >/dev/null # no sign of Emma's life
  [ -z "$(sweep 12:02:49 --retries 9)" ]
  [ -z "$(sweep 12:02:50 --retries 9)" ] # and thirty seconds later it begins anew
  [ "$(states)" = "S/TASK-001/1 RETRYING" ]
  [ "$(sweep 12:03:20 --retries 9 | jq .task.attempt)" -eq 2 ]
  # Its beats are due, too.
  sweep 12:04:20 >told
  over E_HEARTBEAT_FAILURE <told
  jq -e '.task_status.message == "E_HEARTBEAT_FAILURE: no sign of life by Emma within 60 s, after 2 attempts"' told
  amp-ack dead list --json | jq -e '.code == "retries_exhausted" and
    [.history[].code] == ["E_HEARTBEAT_FAILURE", "E_HEARTBEAT_FAILURE"]'
  [ -z "$(sweep 13:00:00)" ]
}

@test "AOP: beats that are only warned of, or do not matter; the task's own time runs on" {
  beating WARN | track 12:00:00 >/dev/null
  sweep 12:01:00 --retries 9 | jq -se 'length == 1 and (.[0].payload | .escalation_type == "heartbeat_timeout" and
    .suggested_actions[0] == "Check that Emma is running and reads its input")'
  [ -z "$(sweep 12:05:00 --retries 9)" ]
  beat | track 12:05:00 >/dev/null # it lives; then it is silent again
  sweep 12:06:00 --retries 9 | jq -se 'length == 1 and .[0].payload.escalation_type == "heartbeat_timeout"'
  [ "$(states)" = "S/TASK-001/1 READ" ]
  sweep 12:10:00 | over E_TIMEOUT
  amp-ack dead list --json | jq -e '.history[0].code == "E_TIMEOUT"'
  rm -r state
  beating CONTINUE | track 12:00:00 >/dev/null
  [ -z "$(sweep 12:09:59)" ]
  response | track 12:09:59 >/dev/null
  [ -z "$(sweep 13:00:00)" ]
}

@test "AOP: what waits in an inbox is not begun: of that no sign of life is due" {
  need_tool amp-route
  beating ABORT >in
  amp-route -r '* => inbox:Emma' <in
  amp-ack status --open --json | jq -e '.state == "RECEIVED"' || { amp-ack status --all --json; return 1; }
  soon=$(date -u -d '+65 seconds' +%Y-%m-%dT%H:%M:%SZ)
  [ -z "$(amp-ack sweep --now "$soon")" ]
  amp-route inbox Emma | cmp - in
  amp-ack sweep --now "$(date -u -d '+65 seconds' +%Y-%m-%dT%H:%M:%SZ)" | over E_HEARTBEAT_FAILURE
}
