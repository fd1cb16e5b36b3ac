# Codex, the real program, against the model server: see run.
# long
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
