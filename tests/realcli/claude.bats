# Claude Code, the real program, against the model server: see run.
# long
# walls
load cells

setup() { agent_setup claude codex; }
teardown() { agent_teardown; }

@test "run, unconfined" { cell_run claude unconfined; }
@test "run, confined" { cell_run claude confined; }
@test "review, unconfined" { cell_review claude unconfined; }
@test "review, confined" { cell_review claude confined; }
@test "loop with a rework, unconfined" { cell_loop claude codex unconfined; }
@test "loop with a rework, confined" { cell_loop claude codex confined; }
@test "hooks: deny, ask, fail closed" { cell_hooks claude; }
@test "MCP inside of an attempt, unconfined" { cell_mcp claude unconfined; }
@test "MCP inside of an attempt, confined" { cell_mcp claude confined; }
@test "limits: no credit, and when a limit ends" {
  limit claude 3600 '{"fail": 400, "body": {"type": "error", "error": {"type": "invalid_request_error",
    "message": "Your credit balance is too low to access the Anthropic API. Please go to Plans & Billing."}}}'
  limit claude 900 '{"fail": 429, "headers": {"x-should-retry": "false"}, "body": {"type": "error", "error": {"type": "rate_limit_error",
    "message": "too much"}}}'
  # A subscriber's limit has a time.
  unset ANTHROPIC_API_KEY
  export CLAUDE_CODE_OAUTH_TOKEN=sk-ant-oat01-none
  limit claude 7200 "$(jq -cn --arg at $(($(date +%s) + 7200)) '{fail: 429, body: {type: "error", error: {type: "rate_limit_error", message: "x"}},
    headers: {"anthropic-ratelimit-unified-status": "rejected", "anthropic-ratelimit-unified-reset": $at,
      "anthropic-ratelimit-unified-representative-claim": "five_hour"}}')"
}
@test "a killed command line" { cell_killed claude; }
@test "hook --check finds a hook that is missing, and one that fails" {
  run -1 hitl-prompt hook --check claude
  [[ $output == *"claude ran a command without asking hitl-prompt"* ]]
  hooks claude
  rm ~/rules/amp.json
  run -1 hitl-prompt hook --check claude
  [[ $output == *"not because hitl-prompt denied it: the hook fails"* ]]
  # Where the program does not start, or is another one.
  ANTHROPIC_BASE_URL='' run -69 hitl-prompt hook --check claude -- --no-such-option
  run -69 hitl-prompt hook --check no-such-agent
  ln -s /bin/true cursor
  PATH=$PWD:$PATH run -64 hitl-prompt hook --check cursor
}
