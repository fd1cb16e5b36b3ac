#!/usr/bin/env bats
# agent-claude and agent-codex with recorded stand-ins for the command lines they wrap.
# plain: the adapters are scripts; run.bats and executor.bats run the worker
# walls

setup() {
  load ../lib
  load ../agents
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

# claude_says REPLY: a Claude Code that replies seen/replyN, or this. As the real one (2.1.331) does, it keeps its sessions below
# CLAUDE_CONFIG_DIR, prints nothing on standard output for a session that is gone, counts the cost of the complete session and
# the tokens of this call, refuses bypassPermissions to root outside of a sandbox, and runs commands only with a permission.
claude_says() {
  stand_in claude <<'EOS'
n=$(ls "$seen" | grep -c prompt)
printf '%s\n' "$*" >"$seen/args$n"
cat >"$seen/prompt$n"
home=${CLAUDE_CONFIG_DIR:-$HOME/.claude} id='' mode=manual allowed='' format=text
while [ $# -gt 0 ]; do
  case $1 in
  --resume) id=$2 ;;
  --permission-mode) mode=$2 ;;
  --allowedTools) allowed=$2 ;;
  --output-format) format=$2 ;;
  esac
  shift
done
if [ "$mode" = bypassPermissions ] && [ "$(id -u)" = 0 ] && [ -z "${IS_SANDBOX-}" ]; then
  echo "--dangerously-skip-permissions cannot be used with root/sudo privileges for security reasons" >&2
  exit 1
fi
if [ -n "$id" ] && [ ! -e "$home/projects/$id" ]; then
  echo "No conversation found with session ID: $id" >&2
  exit 1
fi
id=${id:-5e551011-$n}
mkdir -p "$home/projects"
echo x >>"$home/projects/$id"
echo "$AMP_CONFINED" >"$seen/confined$n"
if [ "$mode" = bypassPermissions ] || [[ ,$allowed, = *,Bash,* ]]; then
  echo "hello $n" >>hello.txt
  [ ! -e "$seen/do$n" ] || . "$seen/do$n"
fi
calls=$(wc -l <"$home/projects/$id")
[ "$format" != stream-json ] || jq -cn --arg id "$id" '{type: "system", subtype: "init", session_id: $id}'
jq -cn --arg r "$(cat "$seen/reply$n" 2>/dev/null || cat "$seen/reply0")" --arg id "$id" --argjson calls "$calls" '{type: "result",
  subtype: "success", is_error: false, duration_ms: 1200, num_turns: 3, result: $r, session_id: $id,
  total_cost_usd: (0.25 * $calls), usage: {input_tokens: 100, output_tokens: 20}}'
EOS
  printf '%s' "$1" >seen/reply0
}

# used: what the newest result says that was used.
used() {
  jq -r 'select(.type == "task_result").payload.work_log[] | select(.action == "usage").detail' out.ndjson | tail -n 1
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
    and (.payload.work_log | any(.action == "note" and (.detail | test("every command of Bash is allowed"))))'
  [ "$(used)" = '{"input_tokens":100,"output_tokens":20,"turns":3,"cost_usd":0.25}' ]
  [ "$(git -C "$REPO" log -1 --format=%s feat/x)" = "Say hello" ]
  for words in "Say hello" "Write hello" "1. it works" "2. tests pass" "touch README" "feat/x" "$STATE/run/T-2026-001/" "the tool reply"; do
    grep -qF "$words" seen/prompt0
  done
  [[ "$(cat seen/args0)" == *"-p --add-dir $STATE/run/"*" --output-format stream-json --verbose --permission-mode acceptEdits --allowedTools Bash,mcp__amp --model opus --max-turns 5" ]]
}

@test "agent-claude: one repair round in the same session, then the work counts without a word" {
  claude_says 'All done, trust me.'
  printf '{"completion_status":"partial","blockers":["no network"]}' >seen/reply1
  dispatch | run_agent --exec "$ADAPTERS/agent-claude"
  got out.ndjson '.payload.completion_status? == "partial" and .payload.blockers == ["no network"]'
  [[ "$(cat seen/args1)" == *"--resume 5e551011-0"* ]]
  grep -q "You gave no answer" seen/prompt1
  [ ! -e seen/prompt2 ]
  [ "$(used)" = '{"input_tokens":200,"output_tokens":40,"turns":6,"cost_usd":0.5}' ]

  rm seen/* "$STATE"/run/T-2026-001/kept-*/kept
  claude_says 'All done, trust me.'
  dispatch | run_agent --exec "$ADAPTERS/agent-claude"
  got out.ndjson '.payload.completion_status? == "complete" and (.payload.work_log | any(.action == "usage"))'
}

@test "agent-claude: rework goes on in the session, counts what is new, and hears what the review found" {
  claude_says '{"completion_status":"complete"}'
  dispatch | run_agent --exec "$ADAPTERS/agent-claude"
  dispatch '.payload.description += "\nFix: - minor: a said one" | .payload.tech_constraints = {base: "main", layout: "flat", review:
    {decision: "rejected", issues: [{severity: "major", file: "a.c", line: 12, description: "wrong sign", suggested_fix: "negate it"},
     {severity: "minor", file: "", line: 0, description: "a said one", suggested_fix: ""}]}}' | run_agent --exec "$ADAPTERS/agent-claude"
  [[ "$(cat seen/args1)" == *"--resume 5e551011-0"* ]]
  [ "$(used)" = '{"input_tokens":100,"output_tokens":20,"turns":3,"cost_usd":0.25}' ]
  grep -qxF -- "- major in a.c, line 12: wrong sign Suggested: negate it" seen/prompt1
  [ "$(grep -c "a said one" seen/prompt1)" = 1 ]
  grep -qxF 'Constraints: {"layout":"flat"}' seen/prompt1
}

@test "agent-claude: a session that is gone is begun anew, and the work counts" {
  claude_says '{"completion_status":"complete"}'
  dispatch | run_agent --exec "$ADAPTERS/agent-claude"
  rm -r "$HOME/.claude/projects"
  dispatch | run_agent --retries 0 --exec "$ADAPTERS/agent-claude"
  [[ "$(cat seen/args1)" == *"--resume 5e551011-0"* ]]
  [[ "$(cat seen/args2)" != *"--resume"* ]]
  [ "$(used)" = '{"input_tokens":100,"output_tokens":20,"turns":3,"cost_usd":0.25}' ]
  dispatch | run_agent --exec "$ADAPTERS/agent-claude"
  [[ "$(cat seen/args3)" == *"--resume 5e551011-2"* ]]
}

@test "agent-claude: an answer in AMP_RESULT counts, with usage and session; an invalid one does not" {
  claude_says 'I am done.'
  echo 'echo "{\"completion_status\":\"partial\",\"blockers\":[\"no disk\"]}" >"$AMP_RESULT"' >seen/do0
  dispatch | run_agent --exec "$ADAPTERS/agent-claude"
  got out.ndjson '.payload.completion_status? == "partial" and .payload.blockers == ["no disk"]'
  [ "$(used)" = '{"input_tokens":100,"output_tokens":20,"turns":3,"cost_usd":0.25}' ]
  [ ! -e seen/prompt1 ]

  # Written with the tool reply of amp-mcp, by a reviewer; a result that is no verdict is asked for again.
  rm seen/*
  claude_says 'I am done.'
  cat >seen/do0 <<'EOS'
printf '%s\n' '{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}' \
  '{"jsonrpc":"2.0","method":"notifications/initialized"}' \
  '{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"reply","arguments":{"decision":"rejected","confidence":0.9,"issues":[{"severity":"major","description":"too quiet"}]}}}' |
  amp-mcp >"$seen/mcp"
EOS
  review | review_agent --exec "$ADAPTERS/agent-claude"
  got verdict.ndjson '.type == "review_verdict" and .payload.decision == "rejected" and .payload.issues[0].description == "too quiet"'
  [ ! -e seen/prompt1 ]

  rm seen/* "$STATE"/run/T-2026-001/kept-*/kept
  claude_says '{"completion_status":"complete"}'
  echo 'echo "{\"completion_status\":\"great\"" >"$AMP_RESULT"' >seen/do0
  dispatch | run_agent --exec "$ADAPTERS/agent-claude"
  got out.ndjson '.payload.completion_status? == "complete"'
}

@test "options after -- replace those of the adapter, also from a shell's line" {
  claude_says '{"completion_status":"complete"}'
  dispatch | run_agent --exec "$ADAPTERS/agent-claude" --model a -- --permission-mode plan --model b
  [[ "$(cat seen/args0)" == *"--verbose --permission-mode plan --model b" ]]
  dispatch | run_agent --exec sh -c "agent-claude -- --allowedTools 'Bash(make *)'"
  [[ "$(cat seen/args1)" == *"--permission-mode acceptEdits --resume "*" --allowedTools Bash(make *)" ]]
  dispatch | run_agent --exec "$ADAPTERS/agent-claude" -- --output-format=json
  [[ "$(cat seen/args2)" != *stream-json* ]]
  got out.ndjson '.payload.completion_status? != "failed"'
}

@test "in walls the adapters give every permission, and find their sessions and the user's settings" {
  unset AMP_CONFINE
  "$AMP_BUILD/libexec/amp/confine" --probe | jq -e .namespaces >/dev/null || skip "no namespaces here"
  claude_says '{"completion_status":"complete"}'
  codex_says '{"completion_status":"complete"}'
  mkdir -p "$HOME/.claude" "$HOME/.codex"
  echo key | tee "$HOME/.claude/.credentials.json" "$HOME/.codex/auth.json" >/dev/null
  jq -n --arg d "$PWD" '{read: ["\($d)/cli", "~/.claude/.credentials.json", "~/.codex/auth.json"], write: ["\($d)/seen"]}' >"$BATS_TEST_TMPDIR/policy"
  echo 'cat "$CLAUDE_CONFIG_DIR/.credentials.json" >"$seen/key"' >seen/do0
  for attempt in 0 1; do
    dispatch | run_agent --policy policy --exec "$ADAPTERS/agent-claude"
    got out.ndjson '.payload.completion_status? != "failed"'
  done
  [[ "$(cat seen/args1)" == *"--permission-mode bypassPermissions --resume 5e551011-0"* ]]
  [ "$(cat seen/confined1 seen/key)" = "$(printf 'full\nkey')" ]
  [ ! -e "$HOME/.claude/projects" ]
  # Credentials do not stay behind.
  [ -e "$STATE/run/T-2026-001/kept-executor-S1/claude/projects/5e551011-0" ]
  [ ! -L "$STATE/run/T-2026-001/kept-executor-S1/claude/.credentials.json" ]

  for attempt in 0 1; do
    dispatch | run_agent --policy policy --agent cx --exec "$ADAPTERS/agent-codex"
    got out.ndjson '.payload.completion_status? != "failed"'
  done
  [[ "$(tail -n 1 seen/codex)" == *"--dangerously-bypass-approvals-and-sandbox resume th-1 -" ]]
  [ -s codex.txt ] || git -C "$REPO" show feat/x:codex.txt
}

@test "limits: when they end, in the words of the command lines" {
  need date
  AMP_ROLE=executor
  # shellcheck source=/dev/null
  . "$ADAPTERS/agent-adapter.sh"
  # about SECONDS TEXT: at most a minute less, because the texts have no seconds, and what the test took so far.
  about() {
    local got
    got=$(TZ=UTC limited "$2") && [ "$got" -le $(($1 + 2)) ] && [ "$got" -ge $(($1 - 62 - SECONDS)) ] || {
      echo "${got:-no limit} instead of $1: $2"
      return 1
    }
  }
  SECONDS=0
  later=$(($(date +%s) + 7200)) month=$(($(date +%s) + 864000))
  about 7200 "You've hit your 5-hour limit · resets $(date -u -d @$later +%-I:%M%P) (UTC)"
  about 7200 "You've hit your session limit · resets $(TZ=Asia/Tokyo date -d @$later +%-I:%M%P) (Asia/Tokyo)"
  about 864000 "You've hit your weekly limit · resets $(date -u -d @$month '+%b %-d, %-I:%M%P') (UTC)"
  about 7200 "You’ve hit your usage limit. Upgrade to Pro, or try again at $(date -u -d @$later '+%-I:%M %p')."
  about 864000 "You’ve hit your usage limit. Or try again at $(date -u -d @$month '+%b %-dth, %Y %-I:%M %p')."
  about 266700 "You've hit your usage limit. Please try again in 3 days 2 hours 5 minutes."
  about 7200 "Claude AI usage limit reached|$later"
  about 3600 "Credit balance is too low"
  about 3600 "Quota exceeded. Check your plan and billing details."
  about 3600 '{"error":{"code":"insufficient_quota"}}'
  about 900 "You've hit your limit · resets soon"
  about 900 "API Error: Request rejected (429) · no more"
  ends 1 limited "Invalid API key · Please run /login"
  ends 1 limited "the train resets 4:41pm (UTC)"
  reset_at=$later
  about 7200 "anything"
}

@test "agent-claude: a usage limit parks the attempt until it ends" {
  stand_in claude <<'EOS'
cat >/dev/null
touch "$seen/called"
jq -cn --argjson at "$(($(date +%s) + 3600))" '{type: "system", subtype: "init", session_id: "x"},
  {type: "rate_limit_event", rate_limit_info: {status: "rejected", resetsAt: $at, rateLimitType: "five_hour"}, session_id: "x"},
  {type: "result", is_error: true, result: "You have hit your 5-hour limit · resets at noon", session_id: "x", api_error_status: 429}'
exit 1
EOS
  dispatch >in.ndjson
  task-dispatch run --state "$STATE" --in in.ndjson --exec "$ADAPTERS/agent-claude" >out.ndjson 2>err 3>&- &
  pid=$!
  parked() { cat "$STATE"/log/*.ndjson | jq -es --argjson soon "$((($(date +%s) + 3000) * 1000))" 'any(.[]; (.key // "" | startswith("queue.")) and .to == "PARKED" and (.state.until | sub("[.][0-9]+Z"; "Z") | fromdate * 1000) > $soon)'; }
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
  grep -q ": agent-claude: claude failed with status 1: Invalid API key: not counted against the agent" err
  got out.ndjson '.payload.blockers[0]? // "" | test(": agent-claude: claude failed with status 1: Invalid API key")'
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

# codex_says REPLY: a Codex that replies this. As the real one (0.169.0) does, it takes each of these options once, keeps its
# sessions below CODEX_HOME, counts the tokens of the complete session, and runs no command in walls unless its sandbox is off.
codex_says() {
  stand_in codex <<'EOS'
printf '%s\n' "$*" >>"$seen/codex"
cat >>"$seen/prompt"
home=${CODEX_HOME:-$HOME/.codex} id='' last='' sandbox='' bypass=false
while [ $# -gt 0 ]; do
  case $1 in
  --output-last-message) last=$2 ;;
  --sandbox) [ -z "$sandbox" ] || { echo "error: the argument '--sandbox <SANDBOX_MODE>' cannot be used multiple times" >&2 && exit 2; } && sandbox=$2 ;;
  --dangerously-bypass-approvals-and-sandbox) bypass=true ;;
  resume) id=$2 ;;
  esac
  shift
done
if [ -n "$id" ] && [ ! -e "$home/sessions/$id" ]; then
  echo "Error: thread/resume: thread/resume failed: no rollout found for thread id $id (code -32600)" >&2
  exit 1
fi
if $bypass || [ "$AMP_CONFINED" = none ]; then echo hello >>codex.txt; fi
[ -d "$home/sessions" ] || mkdir -p "$home/sessions"
id=${id:-th-1}
echo x >>"$home/sessions/$id"
n=$(wc -l <"$home/sessions/$id")
printf '%s\n' "{\"type\":\"thread.started\",\"thread_id\":\"$id\"}" '{"type":"turn.started"}' \
  '{"type":"item.completed","item":{"id":"i1","type":"agent_message","text":"done"}}' \
  "{\"type\":\"turn.completed\",\"usage\":{\"input_tokens\":$((7 * n)),\"cached_input_tokens\":0,\"output_tokens\":$((3 * n))}}"
cat "$seen/codex-reply" >"$last"
EOS
  printf '%s\n' "$1" >seen/codex-reply
}

@test "agent-codex: events, last message, session, usage" {
  codex_says 'Done.
{"completion_status":"complete","self_assessment":{"criteria_met":[null,true],"notes":[]}}'
  dispatch | run_agent --exec "$ADAPTERS/agent-codex" --model gpt-5
  got out.ndjson '.payload.completion_status? == "complete" and .payload.self_assessment.criteria_met == [null, true]'
  [ "$(used)" = '{"input_tokens":7,"output_tokens":3,"turns":1}' ]
  grep -qE -- "exec --json .*--sandbox workspace-write --add-dir $STATE/run/[^ ]* --model gpt-5 -$" seen/codex
  dispatch | run_agent --exec "$ADAPTERS/agent-codex" -- --sandbox read-only
  grep -q -- "--sandbox read-only resume th-1 -$" seen/codex
  got out.ndjson '.payload.completion_status? != "failed"'
  [ "$(used)" = '{"input_tokens":7,"output_tokens":3,"turns":1}' ]

  # The session is gone: a new one, whose numbers begin again.
  rm "$HOME/.codex/sessions/th-1"
  dispatch | run_agent --exec "$ADAPTERS/agent-codex" -- -c sandbox_mode=read-only
  [[ "$(tail -n 1 seen/codex)" == *"/last -c sandbox_mode=read-only -" ]]
  [ "$(used)" = '{"input_tokens":7,"output_tokens":3,"turns":1}' ]

  # The user's hook of hitl-prompt holds without the terminal interface, where Codex asks whether it is trusted.
  run -1 grep -q hook-trust seen/codex
  cp "$AMP_TOP/share/agents/codex/hooks.json" "$HOME/.codex/hooks.json"
  dispatch | run_agent --exec "$ADAPTERS/agent-codex"
  [[ "$(tail -n 1 seen/codex)" == *" --dangerously-bypass-hook-trust "* ]]
}

@test "agent-codex: a failed turn with a limit parks, another is the machinery's failure" {
  stand_in codex <<'EOS'
cat >/dev/null
printf '%s\n' '{"type":"thread.started","thread_id":"th-1"}' '{"type":"turn.failed","error":{"message":"stream disconnected"}}'
exit 1
EOS
  dispatch | run_agent --retries 0 --exec "$ADAPTERS/agent-codex"
  got out.ndjson '.payload.completion_status? == "failed"
    and (.payload.blockers | join(" ") | test("126.*: agent-codex: codex failed with status 1: stream disconnected"))'
}

@test "the adapters say how they are used and need the contract" {
  run -0 "$ADAPTERS/agent-claude" --help
  [[ "$output" == *"--model"* ]]
  run -64 "$ADAPTERS/agent-codex" --nonsense
  run -1 "$ADAPTERS/agent-claude"
}
