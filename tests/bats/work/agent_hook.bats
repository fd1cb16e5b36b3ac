#!/usr/bin/env bats
# worktree-bind agent-hook: the decisions about command lines, and the inputs of coding agents' hooks.

load ../lib

setup() {
  need_tool worktree-bind
  need jq
  cd "$BATS_TEST_TMPDIR" || return 1
  repo work
  cd work || return 1
  worktree-bind hooks install --forbid '*.pem' >/dev/null 2>&1
  worktree-bind bind bob -b task/x >/dev/null
  cd ../work.worktrees/bob || return 1
  export AMP_AGENT=bob
}

@test "plain command lines that move a protected branch are refused, others pass" {
  wrong=0 n=0
  while IFS= read -r expected && IFS= read -r command && IFS= read -r input; do
    status=0
    worktree-bind agent-hook <<<"$input" 2>said || status=$?
    n=$((n + 1))
    [ "$status" -eq "$expected" ] && { [ "$status" -eq 0 ] || grep -q '^worktree-bind: error: refused: .*\[[a-z_]*\]$' said; } && continue
    echo "$command: $status, not $expected: $(<said)"
    wrong=$((wrong + 1))
  done < <(grep -v '^#' "$AMP_TOP/tests/fixture/agent_hook/commands.txt" |
    jq -Rr --arg cwd "$PWD" 'index("|") as $i | .[:$i], .[$i + 1:],
      ({hook_event_name: "PreToolUse", tool_name: "Bash", cwd: $cwd, tool_input: {command: (.[$i + 1:]
        | gsub("\\\\\\\\"; "\u0001") | gsub("\\\\n"; "\n") | gsub("\\\\r"; "\r") | gsub("\u0001"; "\\"))}} | tojson)')
  [ "$wrong" -eq 0 ]
  [ "$n" -gt 80 ]
}

@test "the inputs of coding agents are read, and everything else is refused" {
  wrong=0 n=0
  while IFS='|' read -r expected input; do
    status=0
    worktree-bind agent-hook <<<"${input//@CWD@/$PWD}" 2>said || status=$?
    n=$((n + 1))
    [ "$status" -eq "$expected" ] && { [ "$status" -eq 0 ] || [ -s said ]; } && continue
    echo "$input: $status, not $expected: $(<said)"
    wrong=$((wrong + 1))
  done < <(grep -v '^#' "$AMP_TOP/tests/fixture/agent_hook/inputs.txt")
  [ "$wrong" -eq 0 ]
  [ "$n" -gt 30 ]
}

@test "hostile input ends with 2: bytes, depth, size, no input" {
  head -c 100000 /dev/urandom | { run -2 worktree-bind agent-hook; }
  run -2 worktree-bind agent-hook </dev/null
  run -2 worktree-bind agent-hook < <(printf '%0100000d' 0 | tr 0 '[')
  run -2 worktree-bind agent-hook < <(printf '{"tool_name":"Bash","tool_input":{"command":"\xff git push origin main"}}')
  run -2 worktree-bind agent-hook < <(head -c 17000000 /dev/zero | tr '\0' ' ')
}

@test "every failure is status 2, also wrong usage and a broken policy" {
  run -2 worktree-bind agent-hook --no-such-option
  run -2 worktree-bind agent-hook operand
  echo nonsense >>../../work/.git/amp/guard
  run -2 worktree-bind agent-hook <<<'{"tool_name":"Bash","tool_input":{"command":"git commit -m x"}}'
  [[ $output == *"guard's policy"* ]]
  run -0 worktree-bind agent-hook --help
}

@test "roles and the bound branch count as well" {
  unset AMP_AGENT
  cd ../../work
  worktree-bind hooks install --bound --role '*=task/*' >/dev/null 2>&1
  cd ../work.worktrees/bob
  ask() { printf '{"tool_name":"Bash","tool_input":{"command":"%s"}}' "$1" | worktree-bind agent-hook; }
  run -0 ask "git commit -m x"
  run -2 ask "git branch other"
  [[ $output == *"[branch_not_of_role]"* ]]
  run -2 ask "git switch task/y && git commit -m x"
  [[ $output == *"[branch_not_bound]"* ]]
}

@test "nothing of the input is executed" {
  # shellcheck disable=SC2016  # for the tool, not this shell
  run -0 worktree-bind agent-hook \
    <<<'{"tool_name":"Bash","tool_input":{"command":"touch ran; $(touch ran) `touch ran`"}}'
  [ ! -e ran ]
}
