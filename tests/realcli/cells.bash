# Helpers for the real command lines: the model server, its scenes, each agent's settings.

load ../bats/lib
load ../bats/agents

agent_setup() {
  [ -e "${REALCLI-}/complete" ] || skip "tests/realcli/run starts this suite"
  need jq git node
  PATH=$REALCLI/node_modules/.bin:$AMP_BUILD/libexec/amp:$PATH
  # Claude Code refuses its mode without questions to root, unless it is told that it is walled in.
  export IS_SANDBOX=1 DISABLE_AUTOUPDATER=1
  unset AMP_CONFINE
  workplace
  # A command that no agent takes for harmless without being told.
  printf 'test:\n\t@echo ran-$$((40 + 2)); cat hello.txt || true\n' >"$REPO/Makefile"
  git -C "$REPO" add Makefile
  git -C "$REPO" commit -qm "a test"
  exec 8< <(exec node "$AMP_TOP/tests/realcli/model.mjs" "$PWD/script.json" "$PWD/requests" 3>&-)
  MODEL_PID=$!
  read -ru 8 PORT
  for agent; do "${agent}_settings"; done
}

agent_teardown() {
  [ -z "${MODEL_PID-}" ] || kill "$MODEL_PID"
  [ -n "${BATS_TEST_COMPLETED-}" ] || tail -n 30 "$BATS_TEST_TMPDIR"/{out.ndjson,err,said,said.err} 2>/dev/null || true
}

claude_settings() {
  mkdir -p ~/.claude
  export ANTHROPIC_BASE_URL=http://127.0.0.1:$PORT ANTHROPIC_API_KEY=none CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1
}
codex_settings() {
  mkdir -p ~/.codex
  cat >~/.codex/config.toml <<X
model = "gpt-5.5"
model_provider = "scripted"
[model_providers.scripted]
name = "scripted"
base_url = "http://127.0.0.1:$PORT/v1"
wire_api = "responses"
request_max_retries = 0
stream_max_retries = 0
X
}

gemini_settings() {
  mkdir -p ~/.gemini
  export GOOGLE_GEMINI_BASE_URL=http://127.0.0.1:$PORT GEMINI_API_KEY=none
  echo '{"security": {"auth": {"selectedType": "gemini-api-key"}}}' >~/.gemini/settings.json
}
qwen_settings() {
  mkdir -p ~/.qwen
  export OPENAI_BASE_URL=http://127.0.0.1:$PORT/v1 OPENAI_API_KEY=none OPENAI_MODEL=scripted
  echo '{}' >~/.qwen/settings.json
}
opencode_settings() {
  mkdir -p ~/.config/opencode/plugins
  # It installs the types of its plugins at each start, and goes on without them.
  printf 'registry=http://127.0.0.1:1/\nfetch-retries=0\n' >~/.npmrc
  export XDG_CONFIG_HOME=$HOME/.config OPENCODE_DISABLE_AUTOUPDATE=1 OPENCODE_DISABLE_MODELS_FETCH=1
  jq -n --arg url "http://127.0.0.1:$PORT/v1" '{model: "scripted/m", snapshot: false, provider: {scripted: {npm: "@ai-sdk/openai-compatible",
    options: {baseURL: $url, apiKey: "none"}, models: {m: {name: "m"}}}}}' >~/.config/opencode/opencode.json
}
# merged FILE: the JSON on standard input into the settings.
merged() { jq -s '.[0] * .[1]' "$1" - >"$1.new" && mv "$1.new" "$1"; }

# asks AGENT PROMPT [OPTION...]: one turn of the agent in the current directory, as a person starts it who wants no
# questions; its output is in said.
asks() {
  case $1 in
  claude) set -- claude -p "$2" --output-format stream-json --verbose --permission-mode bypassPermissions "${@:3}" ;;
  codex) set -- codex exec --json --dangerously-bypass-approvals-and-sandbox "${@:3}" "$2" ;;
  gemini) set -- gemini -m gemini-2.5-flash -p "$2" -o stream-json --yolo --skip-trust "${@:3}" ;;
  qwen) set -- qwen -p "$2" -o stream-json --yolo "${@:3}" ;;
  opencode) set -- opencode run --format json "${@:3}" "$2" ;;
  esac
  timeout 120 "$@" </dev/null >"$BATS_TEST_TMPDIR/said" 2>"$BATS_TEST_TMPDIR/said.err" 3>&- || {
    echo "status $? of $*"
    tail -n 20 "$BATS_TEST_TMPDIR/said" "$BATS_TEST_TMPDIR/said.err"
  }
}

# plays <SCENES: what the model does from now on; @NAME@ is the variable.
plays() {
  local text
  text=$(cat)
  text=${text//@REPO@/$REPO}
  jq . <<<"${text//@TOP@/$BATS_TEST_TMPDIR}" >"$BATS_TEST_TMPDIR/script.json"
}

# requested JQ: the filter holds for some request that the model got.
requested() {
  jq -e -s "any(.[]; $1)" "$BATS_TEST_TMPDIR/requests" >/dev/null || {
    echo "no request with: $1"
    jq -c 'del(.tools, .prompt)' "$BATS_TEST_TMPDIR/requests"
    return 1
  }
}

# The end of an executor's turn.
DONE='{"say": {"completion_status": "complete", "self_assessment": {"criteria_met": [true, true], "notes": ["", ""]}, "blockers": [],
  "commit_message": "Say hello"}}'
# verdict DECISION: the end of a reviewer's turn.
verdict() {
  printf '{"say": {"decision": "%s", "criteria_results": [{"criterion": "it works", "passed": true, "evidence": "ran it"}],
    "issues": %s, "confidence": 0.9}}' "$1" "$([ "$1" = approved ] && echo '[]' ||
    echo '[{"severity": "major", "file": "hello.txt", "line": 1, "description": "GREETING is missing", "suggested_fix": "say hello"}]')"
}

# walls AGENT: the shipped policy of the agent, with our server as its vendor, in AGENT.json.
walls() {
  "$AMP_BUILD/libexec/amp/confine" --probe | jq -e .namespaces >/dev/null || skip "no namespaces here"
  jq --arg dir "$REALCLI" --arg host "127.0.0.1:$PORT" '.read += [$dir] | .hosts = [$host] | .environment += ["ANTHROPIC_*", "IS_SANDBOX"]' \
    "$AMP_TOP/examples/policies/$1.json" >"$BATS_TEST_TMPDIR/$1.json"
}

# ---- the cells ----

# cell_run AGENT MODE: the executor runs a command and writes a file.
cell_run() {
  local how=(--unconfined)
  [ "$2" = unconfined ] || { walls "$1" && how=(--policy "$PWD/$1.json"); }
  plays <<X
[{"when": "You are the executor", "steps": [{"run": "make test"}, {"run": "echo hello >hello.txt"}, $DONE]}]
X
  dispatch | run_agent "${how[@]}" --retries 0 --exec "agent-$1"
  requested '.results // [] | any(test("ran-42"))'
  got out.ndjson '.type == "task_result" and .payload.completion_status == "complete"
    and .payload.diff_summary.files_changed == ["hello.txt"]
    and (.payload.work_log | any(.action == "usage"))'
  [ "$(git -C "$REPO" log -1 --format=%s feat/x)" = "Say hello" ]
}

# cell_review AGENT MODE: the reviewer runs the tests, and its verdict counts.
cell_review() {
  local how=(--unconfined)
  [ "$2" = unconfined ] || { walls "$1" && how=(--policy "$PWD/$1.json"); }
  agent good <<'EOS'
echo "hello" >>hello.txt
EOS
  dispatch | run_agent --unconfined --exec ./good
  plays <<X
[{"when": "You are the reviewer", "steps": [{"run": "make test"}, $(verdict approved)]}]
X
  review | review_agent "${how[@]}" --retries 0 --exec "agent-$1"
  requested '.results // [] | any(test("ran-42"))'
  got verdict.ndjson '.type == "review_verdict" and .payload.decision == "approved"'
}

# cell_loop EXECUTOR REVIEWER MODE: rejected once, reworked with the review in the prompt, approved, by ./loop.sh of init.
cell_loop() {
  local how=(--unconfined)
  [ "$3" = unconfined ] || { walls "$1" && walls "$2" && how=(--executor-policy "$PWD/$1.json" --reviewer-policy "$PWD/$2.json"); }
  unset AMP_CONFINE AMP_IDENTITY
  cd "$REPO"
  task-dispatch init -x "agent-$1" -y "agent-$2" </dev/null >../init 2>&1
  git add -A && git commit -qm init
  plays <<X
[{"when": "You are the executor[^]*GREETING is missing", "steps": [{"run": "echo hello GREETING >hello.txt"}, $DONE]},
 {"when": "You are the executor", "steps": [{"run": "echo hello >hello.txt"}, $DONE]},
 {"when": "You are the reviewer[^]*Rejected so far: 0", "steps": [{"run": "cat hello.txt"}, $(verdict rejected)]},
 {"when": "You are the reviewer", "steps": [{"run": "make test"}, $(verdict approved)]}]
X
  printf '# Say hello\nBranch: feat/x\n## Acceptance criteria\n- it works\n' >../task.md
  timeout 240 task-dispatch loop -x "agent-$1" -y "agent-$2" "${how[@]}" ../task.md </dev/null >../out 2>../err 3>&- || {
    cat ../out ../err
    return 1
  }
  [ "$(git show feat/x:hello.txt)" = "hello GREETING" ]
  requested '.results // [] | any(test("hello GREETING"))'
  [ "$(jq -r '.subtasks[0].attempts' .git/amp/tasks/*.json)" -eq 2 ]
  task-dispatch verify --quiet feat/x
}

# serves AGENT: the shipped settings of the agent's MCP server.
serves() {
  case $1 in
  claude) cp "$AMP_TOP/share/agents/claude/mcp.json" "$REPO/.mcp.json" && git -C "$REPO" add .mcp.json && git -C "$REPO" commit -qm "the server" ;;
  codex) cat "$AMP_TOP/share/agents/codex/config.toml" >>~/.codex/config.toml ;;
  gemini | qwen) jq 'del(.hooks)' "$AMP_TOP/share/agents/$1/settings.json" | merged ~/."$1"/settings.json ;;
  opencode) merged ~/.config/opencode/opencode.json <"$AMP_TOP/share/agents/opencode/opencode.json" ;;
  esac
}

# cell_mcp AGENT MODE: inside of an attempt the shipped settings start the server: the task, progress, and the answer go through it.
# Without an adapter for it, the agent's command line is the command.
cell_mcp() {
  local how=(--unconfined) find='' name='' command=agent-$1
  [ "$2" = unconfined ] || { walls "$1" && how=(--policy "$PWD/$1.json"); }
  serves "$1"
  # Some have not all tools in the first request: the model searches for them.
  case $1 in
  claude) find='{"tool": "ToolSearch", "input": {"query": "select:mcp__amp__my_task,mcp__amp__progress,mcp__amp__reply", "max_results": 5}},' ;;
  codex) find='{"tool": "tool_search", "input": {"query": "amp my_task progress reply"}},' ;;
  qwen) name=mcp__amp__ find='{"tool": "tool_search", "input": {"query": "select:mcp__amp__my_task,mcp__amp__progress,mcp__amp__reply", "max_results": 5}},' ;;
  esac
  case $1 in
  claude | codex) ;;
  *) command=./asks && { echo '#!/bin/bash'; declare -f asks; echo "BATS_TEST_TMPDIR=$PWD; asks $1 'You are the executor.'"; } >asks && chmod +x asks ;;
  esac
  plays <<X
[{"when": "You are the executor", "steps": [$find {"tool": "${name}my_task", "input": {}}, {"tool": "${name}progress", "input": {"text": "half of it", "percent": 50}},
  {"run": "echo hello >hello.txt"},
  {"tool": "${name}reply", "input": {"outcome": "complete", "criteria_met": [true, null], "notes": ["ran it", "could not"], "commit_message": "Say hello by MCP"}},
  {"say": "done"}]}]
X
  dispatch | run_agent "${how[@]}" --retries 0 --exec "$command"
  requested '.results // [] | any(test("T-2026-001-S1"))'
  got out.ndjson '.type == "task_result" and .payload.completion_status == "complete" and .payload.self_assessment.criteria_met == [true, null]
    and (.payload.work_log | any(.detail | test("half of it")))'
  [ "$command" = ./asks ] || got out.ndjson '.payload.work_log? // [] | any(.action == "usage")'
  [ "$(git -C "$REPO" log -1 --format=%s feat/x)" = "Say hello by MCP" ]
}

# hooks AGENT: the shipped settings of the agent's hook, and rules that only people can change.
hooks() {
  local dir=$AMP_TOP/share/agents to
  (umask 077 && mkdir -p ~/rules && jq --arg state "$BATS_TEST_TMPDIR/asked" '.hitl.hook += {state: $state, deadline: "3m"}
    | .hitl.hook.rules += [{decision: "allow", kind: "command", command: "touch *"}, {decision: "allow", kind: "command", command: "cat *"}]' "$dir/amp.json" >~/rules/amp.json)
  case $1 in
  claude) to=~/.claude/settings.json && cp "$dir/claude/settings.json" "$to" ;;
  codex) to=~/.codex/hooks.json && cp "$dir/codex/hooks.json" "$to" ;;
  gemini | qwen) to=~/.$1/settings.json && merged "$to" <"$dir/$1/settings.json" ;;
  opencode) to=~/.config/opencode/plugins/hitl-prompt.js && cp "$dir/opencode/hitl-prompt.js" "$to" ;;
  esac
  sed -i "s,hitl-prompt hook,& -c $HOME/rules/amp.json,; s,\"hook\",&\, \"-c\"\, \"$HOME/rules/amp.json\"," "$to"
}

# cell_hooks AGENT [OPTION...]: what the rules deny does not run and the model reads why; what they allow runs; a person is
# asked; without rules nothing runs, and the model reads that.
cell_hooks() {
  hooks "$1"
  hitl-prompt hook --check "$1" -- "${@:2}"
  cd "$REPO"
  plays <<X
[{"when": "PLAY", "steps": [{"run": "touch allowed"}, {"run": "git push origin main"}, {"run": "rm @REPO@/allowed"}, {"run": "cat read"}, {"say": $(answered said | jq -c tojson)}]},
 {"when": "BLIND", "steps": [{"run": "touch blind"}, {"say": "tried"}]}]
X
  answered read >read
  git init -q --bare ../origin && git remote add origin ../origin
  (wait_until 40 is_asked && hitl-prompt answer --state ../asked "$(asked_id)" deny no, keep it) >../answered 2>&1 3>&- 8<&- &
  asks "$1" "PLAY it" "${@:2}"
  wait $!
  [ -e allowed ]
  ! git -C ../origin rev-parse -q --verify main
  requested '.results // [] | any(test("people push"))'
  requested '.results // [] | any(test("no, keep it"))'
  # What the agent said comes out once, and nothing that it read.
  amp-validate --extract --from "$1" ../said 2>/dev/null | diff <(answered said) -
  # The rules decide about what the agent recorded as they did in its hook; Codex does not print what was denied.
  record=../said
  # shellcheck disable=SC2012 # names of Codex
  [ "$1" != codex ] || record=$(ls -t ~/.codex/sessions/*/*/*/*.jsonl | head -n 1)
  hitl-prompt hook -c ~/rules/amp.json --replay "$record" | tee ../replayed
  [[ $(tail -n 1 ../replayed) == "would have allowed 2, asked 1, denied 1 of 4;"* ]]
  # Fail closed: the rules are gone.
  rm ~/rules/amp.json
  asks "$1" "BLIND" "${@:2}"
  [ ! -e blind ]
  requested '.results // [] | any(test("amp.json|the hook failed"))'
}
# answered ID: a message.
answered() { printf '{"protocol_version":"AMP/1.0","type":"ack","ref_msg_id":"%s","task_id":"T-2026-001","from":"executor","ack_stage":"READ","timestamp":"2026-11-27T21:06:02.519Z"}\n' "$1"; }
is_asked() { [ -n "$(asked_id)" ]; }
asked_id() { hitl-prompt list --state "$BATS_TEST_TMPDIR/asked" --json 2>/dev/null | jq -r ".id // .question // .key" | head -n 1; }

# limit AGENT SECONDS STEP: the server's refusal is a limit that ends in about SECONDS: the attempt waits, and is no failure.
limit() {
  local state=$BATS_TEST_TMPDIR/state-$((++LIMITS)) pid
  plays <<<"[{\"when\": \"You are the executor\", \"steps\": [$3]}]"
  : >"$BATS_TEST_TMPDIR/requests"
  dispatch >in.ndjson
  task-dispatch run --state "$state" --in in.ndjson --unconfined --retries 0 --exec "agent-$1" >out.ndjson 2>err 3>&- 8<&- &
  pid=$!
  wait_until 20 has_ended "$state"
  kill -TERM $pid
  ends 130 wait $pid
  got_no out.ndjson '.type == "task_result"'
  # The words of limits have no seconds, and the machine may be slow.
  cat "$state"/log/*.ndjson | jq -es --argjson due "$((($(date +%s) + $2) * 1000))" \
    'any(.[]; (.key // "" | startswith("queue.")) and .to == "PARKED" and ((.state.until | sub("[.][0-9]+Z"; "Z") | fromdate * 1000) | . < $due + 61000 and . > $due - 200000))'
  # It is not tried again at once.
  [ "$(grep -c '"scene"' "$BATS_TEST_TMPDIR/requests")" -eq 1 ]
}
# has_ended STATE: the attempt of the only job.
has_ended() { cat "$1"/log/*.ndjson | jq -es 'any(.[]; (.key // "" | startswith("queue.")) and (.to // "" | IN("PARKED", "DONE", "FAILED")))'; }

# cell_killed AGENT: the command line is killed in the middle; the next attempt does the work.
cell_killed() {
  local pid cli
  plays <<X
[{"when": "You are the executor", "steps": [{"run": "echo half >half.txt"}, {"hang": true}]}]
X
  dispatch >in.ndjson
  task-dispatch run --state "$STATE" --in in.ndjson --unconfined --pause 10ms --exec "agent-$1" >out.ndjson 2>err 3>&- 8<&- &
  pid=$!
  wait_until 60 is_asked_again
  plays <<X
[{"when": "You are the executor", "steps": [{"run": "cat half.txt; echo hello >hello.txt"}, $DONE]}]
X
  # The program itself; Codex is started by a script.
  cli=$(started_by "$pid" "$1")
  [ -n "$cli" ]
  kill -KILL "$cli"
  wait "$pid"
  run -1 kill -0 "$cli"
  got out.ndjson '.type == "task_result" and .payload.completion_status == "complete" and (.payload.diff_summary.files_changed | index("hello.txt"))'
  grep -F "agent-$1: $1 failed with status" err
}
is_asked_again() { grep -q '"step":1' "$BATS_TEST_TMPDIR/requests"; }
# started_by PID NAME: the process of this name among the descendants of PID that started last.
started_by() {
  local child
  for child in $(pgrep -P "$1"); do
    [ "$(cat "/proc/$child/comm")" != "$2" ] || echo "$child"
    started_by "$child" "$2"
  done | tail -n 1
}

# cell_beside: Claude Code and Codex work at the same time in one repository and one state, each in its own worktree.
cell_beside() {
  local pid
  # Each waits until the other one has asked the model. Codex takes a command that lasts for one that goes on, so it waits in steps.
  waits() { printf '{"run": "timeout %s sh -c '"'until grep -q By.%s @TOP@/requests; do sleep 0.1; done'"' && echo %s >hello.txt"}' "$@"; }
  plays <<X
[{"when": "You are the executor[^]*Task: By Claude", "steps": [$(waits 100 Codex claude), $DONE]},
 {"when": "You are the executor[^]*Task: By Codex", "steps": [$(waits 8 Claude codex), $(waits 8 Claude codex), $(waits 8 Claude codex), $DONE]}]
X
  dispatch '.task_id = "T-2026-002" | .payload.subtasks[0].subtask_id = "T-2026-002-S1" | .payload.branch = "feat/y"
    | .payload.description = "By Codex" | .msg_id |= sub("001"; "002")' >codex.ndjson
  dispatch '.payload.description = "By Claude"' >in.ndjson
  task-dispatch run --state "$STATE" --unconfined --retries 0 --agent cx --in codex.ndjson --exec agent-codex >codex.out 2>codex.err 3>&- 8<&- &
  pid=$!
  run_agent --unconfined --retries 0 --in in.ndjson --exec agent-claude
  wait "$pid"
  got out.ndjson '.type == "task_result" and .task_id == "T-2026-001" and .payload.completion_status == "complete"
    and (.payload.work_log | any(.action == "usage"))'
  got codex.out '.type == "task_result" and .task_id == "T-2026-002" and .payload.completion_status == "complete"
    and (.payload.work_log | any(.action == "usage"))'
  [ "$(git -C "$REPO" show feat/x:hello.txt)" = claude ]
  [ "$(git -C "$REPO" show feat/y:hello.txt)" = codex ]
}
