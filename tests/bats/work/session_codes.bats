# Each code of AOP's error taxonomy (AOP §12), brought about by the tools: never composed here. A TASK that is refused
# before its work ends `run` with status 1, the failure of work that was carried out with status 0.
# plain: session.bats and session_records.bats run the same code
# walls
load ../lib
load ../aop

setup() {
  need jq
  need_tool task-dispatch
  cd "$BATS_TEST_TMPDIR" || return 1
}

# validated: the first error that amp-validate finds in the line on standard input, and its exit status.
validated() {
  local status=0
  amp-validate -e records "$@" >/dev/null 2>&1 || status=$?
  echo "$status $(jq -rs '.[0].code' records)"
}

# refused CODE: `out` has exactly one RESPONSE, FAILED or as in $2, with this code.
refused() {
  [ "$(jq -r 'select(.message_type == "RESPONSE") | "\(.task_status.state) \(.error_details.error_code)"' out)" = "${2:-FAILED} $1" ]
}

@test "every code of the contract has a test here, and there are 18" {
  sed -n 's/^    {"\(E_[A-Z_]*\)",.*/\1/p' "$AMP_TOP/lib/message/protocol/aop/codes.c" | sort >codes
  [ "$(wc -l <codes)" -eq 18 ]
  sed -n 's/^@test "\(E_[A-Z_]*\): .*/\1/p' "$BATS_TEST_FILENAME" | sort -u | diff codes -
}

@test "E_PARSE_FAILURE: a line that is neither JSON nor Markdown of version 1" {
  [ "$(echo 'do something' | validated -p aop)" = "1 E_PARSE_FAILURE" ]
  [ "$(base minimal '.aop_version = "3.0.0"' | validated)" = "1 E_PARSE_FAILURE" ]
  base minimal '.aop_version = "3.0.0"' | amp-validate --nack 2>/dev/null >out && return 1
  jq -se 'length == 1 and .[0].event == "VERSION_FALLBACK" and .[0].classification == "UNSTRUCTURED" and
    .[0].error_details.error_code == "E_PARSE_FAILURE"' out
}

@test "E_SCHEMA_VALIDATION: a TASK without a session, and one of a session that was opened otherwise" {
  [ "$(base minimal 'del(.session)' | validated)" = "1 E_SCHEMA_VALIDATION" ]
  agent works <<<answer
  task T1 'del(.task.category)' >in
  run -1 --separate-stderr run_tasks ./works <in
  jq -se 'length == 1 and .[0].event == "VERSION_FALLBACK" and .[0].reason == "E_SCHEMA_VALIDATION"' <<<"$output"
  { task T1; task T2 '.session.created_at = "2026-02-26T15:00:00Z"'; task T3 '.session.orchestrator = "Eve"'; } >in
  ends 1 run_tasks ./works <in >out
  [ "$(ended out T1)" = "COMPLETED SUCCESS -" ]
  [ "$(ended out T2)" = "FAILED FAILURE E_SCHEMA_VALIDATION" ]
  [ "$(ended out T3)" = "FAILED FAILURE E_SCHEMA_VALIDATION" ]
}

@test "E_CONTEXT_OVERFLOW: 101 inputs, 51 outputs, 200 KiB" {
  input='{type: "TEXT", content: "x"}' expected='{type: "TEXT", description: "x"}'
  [ "$(base minimal ".task.inputs = [range(101) | $input]" | validated)" = "1 E_CONTEXT_OVERFLOW" ]
  [ "$(base minimal ".task.expected_outputs = [range(51) | $expected]" | validated)" = "1 E_CONTEXT_OVERFLOW" ]
  [ "$(base minimal '.task.objective = "x" * 204800' | validated)" = "1 E_CONTEXT_OVERFLOW" ]
  agent works <<<answer
  task T1 ".task.inputs = [range(101) | $input]" >in
  ends 1 run_tasks ./works <in >out
  refused E_CONTEXT_OVERFLOW
}

@test "E_PAYLOAD_SIZE_WARNING: 11 phases are a warning, and are carried out" {
  phase='{phase_id: "P\(.)", phase_order: ., label: "l", objective: "o"}'
  task T1 ".phases = [range(11) | $phase]" >in
  amp-validate -e records in | cmp - in
  jq -se 'map([.code, .severity]) == [["E_PAYLOAD_SIZE_WARNING", "warning"]]' records
  agent works <<<'echo "$AMP_PHASE" >>phases; answer'
  ends 0 run_tasks ./works <in >out
  [ "$(ended out T1)" = "COMPLETED SUCCESS -" ]
  [ "$(wc -l <phases)" -eq 11 ]
}

@test "E_PERMISSION_DENIED: a path outside of the access, a workspace elsewhere, a change outside" {
  access='.task.access.filesystem = {read_paths: ["src"], write_paths: ["src"]}'
  [ "$(base minimal "$access | .task.inputs = [{type: \"FILE\", path: \"srcs/a\"}]" | validated)" = "1 E_PERMISSION_DENIED" ]
  agent works <<<'echo new >other; answer'
  mkdir src
  task T1 '.task.environment.workspace_root = "/usr"' >in
  ends 1 run_tasks ./works <in >out
  refused E_PERMISSION_DENIED
  # What git runs, and the keys of the state directory, are no workspace, also by a link.
  git init -q repo
  git init -q --bare bare
  mkdir -m 700 keys
  mkdir keys/in
  ln -s repo/.git/hooks link
  for at in repo/.git repo/.git/hooks link bare bare/refs; do
    task T3 ".task.environment.workspace_root += \"/$at\"" >in
    rm -rf state
    ends 1 run_tasks ./works <in >out
    refused E_PERMISSION_DENIED
  done
  for at in keys keys/in; do
    task T4 ".task.environment.workspace_root += \"/$at\"" >in
    AMP_STATE=keys ends 1 run_tasks ./works <in >out
    refused E_PERMISSION_DENIED
    rm -rf keys/*
    mkdir keys/in
  done
  [ ! -e repo/.git/other ] && [ ! -e repo/.git/hooks/other ] && [ ! -e bare/other ]
  # Without confinement the change is found when the artifacts are measured.
  task T2 "$access" >in
  ends 0 run_tasks ./works <in >out
  refused E_PERMISSION_DENIED
}

@test "E_MALFORMED_RESPONSE: a RESPONSE without a report, and an answer that is none" {
  [ "$(base response 'del(.execution_summary)' | validated)" = "1 E_MALFORMED_RESPONSE" ]
  agent silent <<<':'
  agent garbage <<<'echo "{" >"$AMP_RESULT"'
  agent other <<<'answer "{\"session_id\":\"S\",\"task_id\":\"T9\"}"'
  for a in silent garbage other; do
    rm -rf state
    task T1 >in
    ends 0 run_tasks ./$a <in >out
    refused E_MALFORMED_RESPONSE
  done
}

@test "E_AGENT_NOT_FOUND: no route to the agent, and an agent that needs a terminal" {
  task T1 >in
  ends 1 amp-route -r 'to=admin => file:a' <in >out 2>/dev/null
  refused E_AGENT_NOT_FOUND
  agent works <<<answer
  task T1 '.target.capabilities.headless_mode = false' >in
  ends 1 run_tasks ./works <in >out
  refused E_AGENT_NOT_FOUND
}

@test "E_MODEL_UNAVAILABLE: a provider without a command, a model that is not listed, a command with status 69" {
  task T1 >in
  ends 0 run_tasks '' <in >out
  refused E_MODEL_UNAVAILABLE
  agent works <<<answer
  agent away <<<'exit 69'
  echo '{"providers":{"CODEX":{"command":["./works"],"models":["other"]}}}' >amp.json
  task T2 >in
  ends 0 run_tasks '' -c amp.json <in >out
  refused E_MODEL_UNAVAILABLE
  # An option that the TASK would give to the command.
  echo '{"providers":{"CODEX":{"command":["./works","{model}"]}}}' >amp.json
  task T4 '.target.model = "--unsafe"' >in
  ends 0 run_tasks '' -c amp.json <in >out
  refused E_MODEL_UNAVAILABLE
  grep -q 'read \\"--unsafe\\" as an option' out
  task T3 >in
  ends 0 run_tasks ./away <in >out
  refused E_MODEL_UNAVAILABLE
}

@test "E_ALL_MODELS_EXHAUSTED: the model and each alternative fail" {
  agent crash <<<'echo "$AMP_MODEL" >>tried; exit 3'
  task T1 '.execution_policy.alternative_models = [{provider: "LOCAL", model: "a", fallback_trigger: "CRITICAL_ERROR"},
    {provider: "LOCAL", model: "b", fallback_trigger: "TIMEOUT"}, {provider: "LOCAL", model: "c"}]' >in
  ends 0 run_tasks ./crash <in >out
  refused E_ALL_MODELS_EXHAUSTED
  [ "$(paste -sd' ' tried)" = "gpt-5.3-codex a c" ]
  jq -e 'select(.message_type == "RESPONSE") | .agent.model == "c" and (.error_details.message | contains("E_PROCESS_CRASH"))' out
}

@test "E_FILE_NOT_FOUND: an input, or the workspace, does not exist" {
  agent works <<<answer
  task T1 '.task.inputs = [{type: "FILE", path: "absent"}]' >in
  ends 1 run_tasks ./works <in >out
  refused E_FILE_NOT_FOUND
  task T2 '.task.environment.workspace_root += "/absent"' >in
  ends 1 run_tasks ./works <in >out
  refused E_FILE_NOT_FOUND
}

@test "E_TIMEOUT: the command runs longer than the limit; a RESPONSE does not come" {
  agent slow <<<'sleep 60'
  task T1 '.guard_rails.timeout_seconds = 1 | .execution_policy.timeout_seconds = 900' >in
  ends 0 run_tasks ./slow --grace 1 <in >out
  refused E_TIMEOUT
  task T2 '.execution_policy.timeout_seconds = 60' | amp-ack track --state ledger --now 2026-03-01T12:00:00Z >/dev/null
  amp-ack sweep --state ledger --now 2026-03-01T12:02:00Z >/dev/null
  amp-ack dead list --state ledger --json | jq -e '.history[0].code == "E_TIMEOUT"'
}

@test "E_HEARTBEAT_FAILURE: the agent misses its beats" {
  agent mute <<<'sleep 60'
  task T1 '.execution_policy.heartbeat = {enabled: true, interval_seconds: 0.3, max_missed_beats: 2}' >in
  ends 0 run_tasks ./mute --grace 1 <in >out
  refused E_HEARTBEAT_FAILURE
}

@test "E_DEPENDENCY_FAILED: the parent is unknown or failed, the TASK before it in the chain was aborted" {
  agent by-id <<<'
    case $AMP_TASK_ID in
    T1) exit 3 ;;
    C1) answer "{\"task_status\":{\"state\":\"ABORTED\",\"final_signal\":\"ABORTED\"},\"execution_summary\":{\"summary\":\"s\",\"actions\":[\"a\"]}}" ;;
    *) answer ;;
    esac'
  {
    task T1 '.task.constraints.delegation_allowed = true'
    task T2 '.task.parent_task_id = "T1"'
    task T3 '.task.parent_task_id = "T0"'
    task C1 '.session |= (.session_id = "C" | .workflow_pattern = "CHAIN")'
    task C2 '.session |= (.session_id = "C" | .workflow_pattern = "CHAIN")'
  } >in
  ends 1 run_tasks ./by-id <in >out
  [ "$(ended out T1)" = "FAILED FAILURE E_PROCESS_CRASH" ]
  [[ $(ended out T2) == *" E_DEPENDENCY_FAILED" ]]
  [[ $(ended out T3) == *" E_DEPENDENCY_FAILED" ]]
  [[ $(ended out C1) == "ABORTED ABORTED "* ]]
  [[ $(ended out C2) == *" E_DEPENDENCY_FAILED" ]]
}

@test "E_MAX_DEPTH_EXCEEDED: delegation is three levels deep at most" {
  agent works <<<answer
  may='.task.constraints.delegation_allowed = true'
  {
    task T1 "$may"
    task T2 "$may | .task.parent_task_id = \"T1\""
    task T3 "$may | .task.parent_task_id = \"T2\""
    task T4 ".task.parent_task_id = \"T3\""
  } >in
  ends 1 run_tasks ./works <in >out
  [ "$(ended out T3)" = "COMPLETED SUCCESS -" ]
  [[ $(ended out T4) == *" E_MAX_DEPTH_EXCEEDED" ]]
}

@test "E_PROCESS_CRASH: a signal, and an exit status other than 0" {
  agent killed <<<'kill -9 $$'
  agent fails <<<'echo "no disk" >&2; exit 3'
  task T1 >in
  ends 0 run_tasks ./killed <in >out
  refused E_PROCESS_CRASH
  task T2 >in
  ends 0 run_tasks ./fails <in >out
  refused E_PROCESS_CRASH
  jq -e 'select(.message_type == "RESPONSE") | .error_details.message | contains("no disk")' out
}

@test "E_COST_LIMIT_EXCEEDED: the agent uses more than its budget; equal to it is within" {
  agent spends <<<'control "{\"type\":\"usage\",\"input_tokens\":60,\"output_tokens\":41,\"cost_usd\":0.1}"; sleep 60'
  agent equal <<<'control "{\"type\":\"usage\",\"input_tokens\":60,\"output_tokens\":40,\"cost_usd\":0.1}"; answer'
  budget='.task.budgets.max_tokens = 100 | .task.constraints.max_cost_usd = 0.1'
  task T1 "$budget" >in
  ends 0 run_tasks ./spends --grace 1 <in >out
  refused E_COST_LIMIT_EXCEEDED
  task T2 "$budget" >in
  ends 0 run_tasks ./equal <in >out
  [ "$(ended out T2)" = "COMPLETED SUCCESS -" ]
}

@test "E_ROLLBACK_FAILED: what a snapshot would restore is gone" {
  echo before >file
  # The command is not confined: it reaches the state directory.
  agent breaks <<<'echo after >file; rm -rf "$AMP_WORKSPACE/state/snapshots"/*/contents; exit 3'
  task T1 '.task.expected_outputs = [{type: "FILE", path: "file", description: "d", rollback_snapshot:
    {enabled: true, snapshot_path: "snaps/file.before", snapshot_strategy: "COPY"}}]' >in
  ends 0 run_tasks ./breaks <in >out
  refused E_ROLLBACK_FAILED
}

@test "E_UNKNOWN: an error that the contract has no code for" {
  agent odd <<<'answer "{\"task_status\":{\"state\":\"FAILED\",\"final_signal\":\"FAILURE\"},\"error_details\":{\"error_code\":\"out_of_luck\",\"message\":\"m\"},\"execution_summary\":{\"summary\":\"s\",\"actions\":[\"a\"]}}"'
  task T1 >in
  ends 0 run_tasks ./odd <in >out
  refused E_UNKNOWN
  jq -e 'select(.message_type == "RESPONSE") | .error_details.message | contains("out_of_luck")' out
}
