#!/usr/bin/env bats
# agent-claude and agent-codex with recorded stand-ins for the command lines they wrap.

setup() {
  load lib
  load agents
  need jq git
  need_tool task-dispatch
  workplace
  ADAPTERS=$AMP_BUILD/libexec/amp
  mkdir -p "$BATS_TEST_TMPDIR/cli" "$BATS_TEST_TMPDIR/seen"
  PATH=$BATS_TEST_TMPDIR/cli:$PATH
}

# stand_in NAME <body: replaces the real command line; $seen is where it may leave notes.
stand_in() {
  { printf '#!/bin/bash\nseen=%q\n' "$BATS_TEST_TMPDIR/seen"; cat; } >"cli/$1"
  chmod +x "cli/$1"
}

# What Claude Code prints, with $1 as the reply.
claude_says() {
  stand_in claude <<EOS
n=\$(ls "\$seen" | grep -c prompt)
printf '%s\n' "\$*" >"\$seen/args\$n"
cat >"\$seen/prompt\$n"
[ "\$n" != 0 ] || { echo hello >hello.txt; }
jq -cn --arg r "\$(cat "\$seen/reply\$n" 2>/dev/null || cat "\$seen/reply0")" '{type: "result", subtype: "success", is_error: false,
  duration_ms: 1200, num_turns: 3, result: \$r, session_id: "5e551011", total_cost_usd: 0.25,
  usage: {input_tokens: 100, output_tokens: 20}}'
EOS
  printf '%s' "$1" >seen/reply0
}

@test "agent-claude: JSON out of prose, self-assessment, usage, the prompt has the task" {
  claude_says 'I wrote the file {carefully}.

```json
{"completion_status": "complete", "self_assessment": {"criteria_met": [true, null], "notes": ["é ran it"]},
 "blockers": [], "commit_message": "Say hello", "mood": "fine"}
```'
  dispatch '.payload.forbidden_actions = ["touch README"]' | run_agent --exec "$ADAPTERS/agent-claude" --model opus -- --max-turns 5
  got out.ndjson '.type == "task_result" and .payload.completion_status == "complete"
    and .payload.self_assessment == {criteria_met: [true, null], notes: ["é ran it"]}
    and (.payload.work_log | any(.action == "usage" and (.detail | test("0.25"))))'
  [ "$(git -C "$REPO" log -1 --format=%s feat/x)" = "Say hello" ]
  for words in "Say hello" "Write hello" "1. it works" "2. tests pass" "touch README" "feat/x"; do
    grep -qF "$words" seen/prompt0
  done
  [[ "$(cat seen/args0)" == "-p --output-format json --permission-mode acceptEdits --model opus --max-turns 5" ]]
}

@test "agent-claude: one repair round in the same session, then the work counts without a word" {
  claude_says 'All done, trust me.'
  printf '{"completion_status":"partial","blockers":["no network"]}' >seen/reply1
  dispatch | run_agent --exec "$ADAPTERS/agent-claude"
  got out.ndjson '.payload.completion_status? == "partial" and .payload.blockers == ["no network"]'
  [[ "$(cat seen/args1)" == *"--resume 5e551011"* ]]
  grep -q "did not end with the JSON object" seen/prompt1
  [ ! -e seen/prompt2 ]
}

@test "agent-claude: rework goes on in the session of the attempt before" {
  claude_says '{"completion_status":"complete"}'
  dispatch | run_agent --exec "$ADAPTERS/agent-claude"
  dispatch | run_agent --exec "$ADAPTERS/agent-claude"
  [[ "$(cat seen/args1)" == *"--resume 5e551011"* ]]
}

@test "agent-claude: a usage limit parks the attempt until it ends" {
  stand_in claude <<'EOS'
cat >/dev/null
touch "$seen/called"
jq -cn --arg r "Claude AI usage limit reached|$(($(date +%s) + 3600))" '{type: "result", is_error: true, result: $r, session_id: "x"}'
exit 1
EOS
  dispatch >in.ndjson
  task-dispatch run --state "$STATE" --in in.ndjson --exec "$ADAPTERS/agent-claude" >out.ndjson 2>err 3>&- &
  pid=$!
  parked() { cat "$STATE"/log/*.ndjson | jq -es --argjson soon "$((($(date +%s) + 3000) * 1000))" 'any(.[]; (.key // "" | startswith("job.")) and .to == "PARKED" and .due > $soon)'; }
  wait_until 30 parked
  kill -TERM $pid
  ends 130 wait $pid
  got_no out.ndjson '.type == "task_result"'
}

@test "agent-claude: a command line that is missing or broken is the machinery's failure" {
  dispatch | PATH=/usr/bin:/bin:$AMP_BUILD/bin run_agent --retries 0 --exec "$ADAPTERS/agent-claude" --command no-claude-here
  got out.ndjson '.payload.completion_status? == "failed" and (.payload.blockers | join(" ") | test("not found"))'
  stand_in claude <<'EOS'
echo "Invalid API key" >&2
exit 1
EOS
  dispatch '.msg_id += "1"' | run_agent --retries 1 --exec "$ADAPTERS/agent-claude"
  grep -q "not counted against the agent" err
}

@test "agent-claude as reviewer: a verdict out of the reply, none out of prose" {
  good_agent
  dispatch | run_agent --exec ./good
  claude_says 'Looks good!

{"decision": "rejected", "confidence": 0.9,
 "criteria_results": [{"criterion": "it works", "passed": false, "evidence": "it prints nothing"}],
 "issues": [{"severity": "major", "file": "hello.txt", "line": 1, "description": "empty", "suggested_fix": "fill it"}],
 "direct_fixes": []}'
  review | review_agent --exec "$ADAPTERS/agent-claude"
  got verdict.ndjson '.type == "review_verdict" and .payload.decision == "rejected" and .payload.issues[0].file == "hello.txt"'
  grep -q "diff under review" seen/prompt0

  rm -f seen/*
  claude_says 'Approved, ship it. decision: approved'
  review | review_agent --retries 0 --exec "$ADAPTERS/agent-claude"
  got_no verdict.ndjson '.type == "review_verdict" and .payload.decision != "rejected"'
  got verdict.ndjson '.type == "nack" and .code == "no_verdict"'
}

@test "agent-codex: events, last message, session, usage" {
  stand_in codex <<'EOS'
printf '%s\n' "$*" >>"$seen/args"
cat >>"$seen/prompt"
echo hello >>hello.txt
while [ $# -gt 0 ]; do [ "$1" != --output-last-message ] || last=$2; shift; done
printf '%s\n' '{"type":"thread.started","thread_id":"th-1"}' '{"type":"turn.started"}' \
  '{"type":"item.completed","item":{"id":"i1","type":"agent_message","text":"done"}}' \
  '{"type":"turn.completed","usage":{"input_tokens":7,"cached_input_tokens":0,"output_tokens":3}}'
printf 'Done.\n{"completion_status":"complete","self_assessment":{"criteria_met":[null,true],"notes":[]}}\n' >"$last"
EOS
  dispatch | run_agent --exec "$ADAPTERS/agent-codex" --model gpt-5
  got out.ndjson '.payload.completion_status? == "complete" and .payload.self_assessment.criteria_met == [null, true]
    and (.payload.work_log | any(.action == "usage" and (.detail | test("\"output_tokens\":3"))))'
  grep -q -- "exec --json .*--model gpt-5 -$" seen/args
  dispatch | run_agent --exec "$ADAPTERS/agent-codex"
  grep -q -- "resume th-1 -$" seen/args
}

@test "agent-codex: a failed turn with a limit parks, another is the machinery's failure" {
  stand_in codex <<'EOS'
cat >/dev/null
printf '%s\n' '{"type":"thread.started","thread_id":"th-1"}' '{"type":"turn.failed","error":{"message":"stream disconnected"}}'
exit 1
EOS
  dispatch | run_agent --retries 0 --exec "$ADAPTERS/agent-codex"
  got out.ndjson '.payload.completion_status? == "failed" and (.payload.blockers | join(" ") | test("126"))'
}

@test "the adapters say how they are used and need the contract" {
  run -0 "$ADAPTERS/agent-claude" --help
  [[ "$output" == *"--model"* ]]
  run -64 "$ADAPTERS/agent-codex" --nonsense
  run -1 "$ADAPTERS/agent-claude"
}
