# Codex, the real program, against the model server: see run.
# long
# walls
load cells

setup() { agent_setup claude codex; }
teardown() { agent_teardown; }

@test "run, unconfined" { cell_run codex unconfined; }
@test "run, confined" { cell_run codex confined; }
@test "review, unconfined" { cell_review codex unconfined; }
@test "review, confined" { cell_review codex confined; }
@test "loop with a rework, unconfined" { cell_loop codex claude unconfined; }
@test "loop with a rework, confined" { cell_loop codex claude confined; }
@test "hooks: deny, ask, fail closed" { cell_hooks codex --dangerously-bypass-hook-trust; }
@test "MCP inside of an attempt, unconfined" { cell_mcp codex unconfined; }
@test "MCP inside of an attempt, confined" { cell_mcp codex confined; }
@test "limits: no quota, and when a limit ends" {
  limit codex 3600 '{"fail": 429, "body": {"error": {"type": "insufficient_quota", "code": "insufficient_quota",
    "message": "You exceeded your current quota, please check your plan and billing details."}}}'
  limit codex 900 '{"fail": 429, "body": {"error": {"type": "rate_limit", "message": "slow down"}}}'
  limit codex 7200 "$(jq -cn --argjson at $(($(date +%s) + 7200)) '{fail: 429, body: {error: {type: "usage_limit_reached",
    message: "The usage limit has been reached", plan_type: "plus", resets_at: $at}}}')"
}
@test "a killed command line" { cell_killed codex; }
@test "hook --check finds a hook that is not trusted" {
  hooks codex
  run -1 hitl-prompt hook --check codex
  [[ $output == *"codex ran a command without asking hitl-prompt: its hook is not set up or not trusted"* ]]
}
@test "two agents side by side" { cell_beside; }
