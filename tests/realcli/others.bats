# Gemini CLI, OpenCode and Qwen Code, the real programs, against the model server: see run.
# long
# walls
load cells

setup() { agent_setup "${BATS_TEST_DESCRIPTION%%:*}"; }
teardown() { agent_teardown; }

@test "gemini: hooks: deny, ask, fail closed; --extract" { cell_hooks gemini; }
@test "opencode: hooks: deny, ask, fail closed; --extract" { cell_hooks opencode; }
@test "qwen: hooks: deny, ask, fail closed; --extract" { cell_hooks qwen; }
@test "gemini: MCP inside of an attempt" { cell_mcp gemini unconfined; }
@test "opencode: MCP inside of an attempt" { cell_mcp opencode unconfined; }
@test "qwen: MCP inside of an attempt" { cell_mcp qwen unconfined; }
