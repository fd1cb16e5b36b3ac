# TASKs of sessions, and an agent whose model says what it does.

# sessions: a workspace $WS, a state directory $STATE, the settings amp.json with the providers.
sessions() {
  cd "$BATS_TEST_TMPDIR" || return
  WS=$BATS_TEST_TMPDIR/ws STATE=$BATS_TEST_TMPDIR/state TASKS=0
  mkdir -p "$WS"
  agent_make
  cat >amp.json <<E
{"providers": {"CODEX": {"command": ["$PWD/agent", "{model}", "{profile}"]},
  "GEMINI": {"command": ["$PWD/agent", "{model}"], "models": ["good", "slow", "crash", "dear"]},
  "LOCAL": {"command": ["$PWD/nothing"]}},
 "aop": {"workspaces": {"C:/work": "$WS"}}}
E
}

# agent_make: the model is one of the words below, or a script in base64; calls.txt has the arguments of each run.
agent_make() {
  cat >agent <<'E'
#!/bin/bash
[ ! -w . ] || echo "$*" >>calls.txt
answer() { printf '{"task_status":{"state":"COMPLETED","final_signal":"%s"},"execution_summary":{"summary":"Done.","actions":["a"]}}' "$1" >"$AMP_RESULT"; }
case $1 in
good) answer SUCCESS ;;
part) answer PARTIAL_SUCCESS ;;
abort) echo '{"task_status":{"state":"ABORTED","final_signal":"ABORTED"},"execution_summary":{"summary":"s","actions":["a"]}}' >"$AMP_RESULT" ;;
crash) kill -9 $$ ;;
slow) sleep 30 ;;
late) sleep 1.2; answer SUCCESS ;;
away) exit 69 ;;
exit1) echo oops >&2; exit 1 ;;
silent) ;;
nosignal) echo '{"execution_summary":{"summary":"s","actions":["a"]}}' >"$AMP_RESULT" ;;
noreport) echo '{"completion_status":"complete"}' >"$AMP_RESULT" ;;
prints) echo "what I did"; echo '{"type":"progress","detail":"step one","percent":50}' >"$AMP_CONTROL"; sleep 0.1
  echo '{"completion_status":"complete"}' >"$AMP_RESULT" ;;
bad) echo nonsense >"$AMP_RESULT" ;;
other) echo '{"session_id":"S-9","task_id":"T-9","completion_status":"complete"}' >"$AMP_RESULT" ;;
failed) echo '{"task_status":{"state":"FAILED","final_signal":"FAILURE"},"error_details":{"error_code":"E_FILE_NOT_FOUND","message":"no such file"}}' >"$AMP_RESULT" ;;
odd) echo '{"completion_status":"failed","error_details":{"error_code":"E_STRANGE","message":"odd","extensions":{"x_critical":true}}}' >"$AMP_RESULT" ;;
whole) sed -E 's/.*"session_id":"([^"]*)".*"task_id":"([^"]*)".*/{"aop_version":"2.0.2-C","schema_version":"2.0.2","protocol_family":"AOP","message_type":"RESPONSE","session_id":"\1","task_id":"\2","agent":{"name":"x","provider":"LOCAL","model":"x"},"task_status":{"state":"COMPLETED","final_signal":"SUCCESS","message":"all"},"execution_summary":{"summary":"s","actions":["a"]},"timing":{"started_at":"2026-01-01T00:00:00Z","completed_at":"2026-01-01T00:00:00Z","duration_seconds":9}}/' "$AMP_MESSAGE" >"$AMP_RESULT" ;;
env) env | grep -E '^AMP_(PROVIDER|MODEL|PROFILE|PHASE|WORKSPACE|SHELL|TAGS|CATEGORY|COMPLEXITY|ROLE)=' | sort >env.txt; cp "$AMP_MESSAGE" message.txt; answer SUCCESS ;;
again) [ -e again ] || { touch again; exit 75; }; answer SUCCESS ;;
*) eval "$(base64 -d <<<"$1")"; [ -e "$AMP_RESULT" ] || answer SUCCESS ;;
esac
E
  chmod +x agent
}

# task MODEL [JQ]: a TASK for Emma with the provider CODEX and the task_id $id (default: T-1, T-2, …).
# A model with a space is a script.
task() {
  local model=$1
  TASKS=$((TASKS + 1))
  [[ $model != *[[:space:]]* ]] || model=$(base64 -w0 <<<"$model")
  jq -nc --arg id "T-$TASKS" --arg m "$model" --arg ws "$WS" '
    {aop_version: "2.0.2-C", schema_version: "2.0.2", protocol_family: "AOP", message_type: "TASK",
     session: {session_id: "S-1", created_at: "2026-02-26T14:00:00Z", orchestrator: "Cyclops", origin: "CLI"},
     target: {agent_name: "Emma", role: "EXECUTOR", provider: "CODEX", model: $m},
     task: {task_id: $id, objective: "Do it.", category: "ANALYSIS", complexity: "LOW",
            environment: {workspace_root: $ws}}} | '"${2:-.}"
}

# others PROVIDER MODEL TRIGGER...: a jq filter that adds alternative_models.
others() {
  local list=
  while [ $# -gt 0 ]; do
    list+="{provider: \"$1\", model: \"$2\", fallback_trigger: \"$3\"},"
    shift 3
  done
  echo ".execution_policy.alternative_models = [${list%,}]"
}

# session_run [OPTION...]: carries out the TASKs on standard input; out.ndjson and err.txt.
session_run() {
  aop-session run --state "$STATE" --config amp.json "$@" >out.ndjson 2>err.txt
}

# response TASK JQ...: members of its RESPONSE in out.ndjson. There must be exactly one.
response() {
  local id=$1 found IFS=,
  shift
  found=$(jq -c --arg id "$id" "select(.message_type == \"RESPONSE\" and .task_id == \$id) | [$*]" out.ndjson)
  [ -n "$found" ] && [[ $found != *$'\n'* ]] || {
    echo "$id: not one RESPONSE: $found" >&2
    return 1
  }
  printf '%s\n' "$found"
}

# ended TASK STATE SIGNAL [CODE]
ended() {
  local got
  got=$(response "$1" .task_status.state .task_status.final_signal '(.error_details.error_code // "")')
  [ "$got" = "[\"$2\",\"$3\",\"${4-}\"]" ] || {
    echo "$1: $got, expected $2 $3 ${4-}" >&2
    cat err.txt >&2
    return 1
  }
}
