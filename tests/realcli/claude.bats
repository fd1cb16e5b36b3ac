# Claude Code, the real program, against the model server: see run.
# long
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
