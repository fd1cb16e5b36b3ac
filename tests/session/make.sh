#!/usr/bin/env bash
# make.sh N DIR: a session of at least N TASKs for the trial, and its three providers. Writes DIR/amp.json, DIR/agent,
# DIR/ws and the TASKs to standard output. The session has all kinds of ends again and again: runs that succeed, with a part
# of the work, by an alternative model after a crash, a missing model or a spent budget; TASKs that fail with all models,
# with a spent budget or a broken checkpoint; delegation over three levels and one too many; branches below a TASK that
# was aborted.
set -eu
n=$1 dir=$2
mkdir -p "$dir/ws"

# The model has what the run does, its cost in millionths of a dollar, and its tokens: WORD-MICROS-IN-OUT.
cat >"$dir/agent" <<'E'
#!/bin/bash
IFS=- read -r word micros in out <<<"$1"
printf -v usd '%d.%06d' $((micros / 1000000)) $((micros % 1000000))
cost="\"actual_cost_usd\":$usd,\"tokens_input\":$in,\"tokens_output\":$out"
used="{\"type\":\"usage\",\"input_tokens\":$in,\"output_tokens\":$out,\"cost_usd\":$usd}"
answer() {
  printf '{"task_status":{"state":"%s","final_signal":"%s"},"execution_summary":{"summary":"s","actions":["a"]},"cost_tracking":{%s}}' \
    "$1" "$2" "$cost" >"$AMP_RESULT"
}
# say LINE: to the worker, which reads it before the command goes on.
say() {
  echo "$1" >"$AMP_CONTROL"
  read -rt 0.05 _ <> <(:) || :
}
case $word in
ok) answer COMPLETED SUCCESS ;;
part) answer COMPLETED PARTIAL_SUCCESS ;;
file) echo x >made.$AMP_SUBTASK; answer COMPLETED SUCCESS ;;
tell) say '{"type":"progress","percent":50,"detail":"half"}'; answer COMPLETED SUCCESS ;;
crash) say "$used"; kill -9 $$ ;;
away) exit 69 ;;
failed) answer FAILED FAILURE ;;
dear) say "$used"; sleep 5 ;;
esac
E
chmod +x "$dir/agent"
jq -n --arg agent "$dir/agent" '{providers: ({command: [$agent, "{model}"]} | {CODEX: ., GEMINI: ., LOCAL: .})}' >"$dir/amp.json"

jq -nc --argjson n "$n" --arg ws "$dir/ws" '
  def others($list): .execution_policy.alternative_models = [$list | .[] | {provider: .[0], model: .[1], fallback_trigger: .[2]}];
  def may: .task.constraints.delegation_allowed = true;
  def phase($strategy): .phases = [{phase_id: "P", phase_order: 1, label: "l", objective: "o", checkpoints: [{checkpoint_id: "C",
    description: "d", expected_artifacts: [{type: "FILE", path: "\($ws)/missing"}], recovery_strategy: $strategy}]}];
  # Of a round of TASKs: [a name, the parent in the round, a filter].
  def kinds: [
    ["ok"], ["part"], ["tell"], ["crash-else"], ["away-else"], ["dear-else"], ["exhausted"], ["spent"], ["tokens"], ["failed"],
    ["broken-abort"], ["broken-on"], ["top"], ["child", "top"], ["grandchild", "child"], ["too-deep", "grandchild"],
    ["lost"], ["below", "lost"], ["below-below", "below"], ["retried"]];
  def kind($k; $i):
    def model($word): "\($word)-\(100003 + 7919 * $i)-\(100 + $i)-\(10 + $i)";
    def small($word): "\($word)-\(11 + $i)-3-2";
    .target.model = model("ok") |
    if $k == "part" then .target.model = model("part")
    elif $k == "tell" then .target.model = model("tell")
      | .execution_policy.heartbeat = {enabled: true, interval_seconds: 1, max_missed_beats: 50}
    elif $k == "crash-else" then .target.model = small("crash") | others([["GEMINI", model("ok"), "CRITICAL_ERROR"]])
    elif $k == "away-else" then .target.model = "away-0-0-0" | others([["GEMINI", "x", "TIMEOUT"], ["LOCAL", model("ok"), "ALL_ERRORS"]])
    elif $k == "dear-else" then .target.model = model("dear") | .task.budgets.max_tokens = 90
      | others([["LOCAL", "away-0-0-0", "COST_LIMIT_EXCEEDED"]])
    elif $k == "exhausted" then .target.model = small("crash")
      | others([["GEMINI", small("crash"), "FIRST_ERROR"], ["LOCAL", "away-0-0-0", "ALL_ERRORS"]])
    elif $k == "spent" then .target.model = model("dear") | .task.budgets.max_cost_usd = 0.05
    elif $k == "tokens" then .target.model = model("ok") | .task.constraints.max_tokens = 50
    elif $k == "failed" then .target.model = model("failed")
    elif $k == "broken-abort" then phase("ABORT")
    elif $k == "broken-on" then phase("CONTINUE")
    elif $k == "top" or $k == "child" or $k == "grandchild" then may
    elif $k == "lost" then may | .target.model = model("crash") | .execution_policy.abort_on_first_critical_error = true
    elif $k == "below" then may
    else . end;
  [kinds[]] as $kinds | range(([$n, ($kinds | length)] | max) / ($kinds | length) | ceil) as $round
  | $kinds | to_entries[] | ($round * ($kinds | length) + .key) as $i | .value as $v
  | {aop_version: "2.0.2-C", schema_version: "2.0.2", protocol_family: "AOP", message_type: "TASK",
     session: {session_id: "TRIAL", created_at: "2026-02-26T14:00:00Z", orchestrator: "Cyclops", origin: "CLI",
               workflow_pattern: "HIERARCHICAL"},
     target: {agent_name: (["Emma", "Bob", "Ann"][$i % 3]), role: "EXECUTOR", provider: (["CODEX", "GEMINI", "LOCAL"][$i % 3])},
     task: ({task_id: "\($round).\($v[0])", objective: "Do \($v[0]).", category: "OTHER", complexity: "LOW",
             environment: {workspace_root: $ws}}
            + if $v[1] then {parent_task_id: "\($round).\($v[1])"} else {} end)}
  | kind($v[0]; $i)'
