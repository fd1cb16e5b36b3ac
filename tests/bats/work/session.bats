#!/usr/bin/env bats
# aop-session run: the executor of sessions.
# long
# walls

setup() {
  load ../lib
  load ../session
  need jq
  need_tool task-dispatch
  sessions
}

@test "a TASK is carried out in its workspace and gets one RESPONSE" {
  task good >in
  session_run <in
  ended T-1 COMPLETED SUCCESS
  [ "$(response T-1 .session_id .agent .execution_summary.summary .execution_summary.actions .timing.retries_attempted)" = \
    '["S-1",{"name":"Emma","provider":"CODEX","model":"good"},"Done.",["a"],0]' ]
  [ "$(cat ws/calls.txt)" = "good balanced" ]
  amp-validate --protocol aop <out.ndjson >valid.ndjson
  cmp out.ndjson valid.ndjson
  # The same TASK again gets no second RESPONSE; another one with its name is refused.
  session_run <in
  [ ! -s out.ndjson ]
  jq -c '.task.objective = "Something else."' in >other
  ends 1 session_run <other
  ended T-1 FAILED FAILURE E_SCHEMA_VALIDATION
  response T-1 .error_details.message .error_details.extensions.x_rule | jq -e '.[0] == "duplicate_msg_id: the session has another TASK of this task_id and attempt; it goes on" and .[1] == "duplicate_msg_id"'
  amp-validate --strict --protocol aop <out.ndjson | cmp - out.ndjson
  # That is not the outcome of the other one.
  before=$(amp-ack status -s "$STATE" --all --json)
  amp-ack track -s "$STATE" <out.ndjson | cmp - out.ndjson
  [ "$(amp-ack status -s "$STATE" --all --json)" = "$before" ]
  grep -q duplicate_msg_id "$STATE/error.ndjson"
  [ "$(wc -l <ws/calls.txt)" = 1 ]
}

@test "TASKs of other agents, and other lines, pass through; invalid TASKs are answered" {
  { task good '.target.agent_name = "Bob"'
    task good
    echo '{"aop_version":"2.0.2-C","message_type":"EVENT","event":"HEARTBEAT","session_id":"S","task_id":"X","timestamp":"2026-02-26T14:00:00Z","agent":"Bob","progress_percentage":1}'; } >in
  session_run --agent Emma <in
  ended T-2 COMPLETED SUCCESS
  grep -qxF "$(sed -n 1p in)" out.ndjson
  grep -qxF "$(sed -n 3p in)" out.ndjson
  { task good '.task.complexity = "HUGE"'
    task good '.task.inputs = [{type: "FILE", path: "/etc/passwd"}]
      | .task.access.filesystem.read_paths = [.task.environment.workspace_root]'; } >in
  TASKS=4
  ends 1 session_run <in
  jq -se '(.[0] | .event == "VERSION_FALLBACK" and (.v1_prompt | startswith("# Task: T-")))
    and (.[1] | .message_type == "RESPONSE" and .error_details.error_code == "E_PERMISSION_DENIED")' out.ndjson
}

@test "what the command leaves is the end of the TASK" {
  { for m in part abort crash away exit1 silent nosignal noreport prints bad other failed odd whole; do
      task $m
    done
    task nosignal '.guard_rails.require_final_signal = false'
    task silent '.guard_rails = {require_final_signal: false, require_minimal_report: false}'
    task good '.target.capabilities.headless_mode = false'
    task again
    task good '.target.provider = "OTHER"'
    task x '.target.provider = "GEMINI"'
    task good '.target.provider = "LOCAL"'; } >in
  ends 1 session_run --pause 0 <in
  ended T-1 COMPLETED PARTIAL_SUCCESS
  ended T-2 ABORTED ABORTED
  ended T-3 FAILED FAILURE E_PROCESS_CRASH
  ended T-4 FAILED FAILURE E_MODEL_UNAVAILABLE
  ended T-5 FAILED FAILURE E_PROCESS_CRASH
  [[ $(response T-5 .error_details.message) == *"exit 1: oops"* ]]
  ended T-6 FAILED FAILURE E_MALFORMED_RESPONSE
  ended T-7 FAILED FAILURE E_MALFORMED_RESPONSE
  [[ $(response T-7 .error_details.message) == *require_final_signal* ]]
  ended T-8 FAILED FAILURE E_MALFORMED_RESPONSE
  [[ $(response T-8 .error_details.message) == *require_minimal_report* ]]
  ended T-9 COMPLETED SUCCESS
  [ "$(response T-9 .execution_summary.summary .execution_summary.actions)" = '["what I did",["step one"]]' ]
  ended T-10 FAILED FAILURE E_MALFORMED_RESPONSE
  ended T-11 FAILED FAILURE E_MALFORMED_RESPONSE
  ended T-12 FAILED FAILURE E_FILE_NOT_FOUND
  ended T-13 FAILED FAILURE E_UNKNOWN
  ended T-14 COMPLETED SUCCESS
  [ "$(response T-14 .agent.name '(.timing.duration_seconds < 9)')" = '["Emma",true]' ]
  ended T-15 COMPLETED SUCCESS
  ended T-16 COMPLETED SUCCESS
  ended T-17 FAILED FAILURE E_AGENT_NOT_FOUND
  ended T-18 COMPLETED SUCCESS
  ended T-19 FAILED FAILURE E_MODEL_UNAVAILABLE
  [[ $(response T-19 .error_details.message) == *providers.OTHER.command* ]]
  ended T-20 FAILED FAILURE E_MODEL_UNAVAILABLE
  ended T-21 FAILED FAILURE E_MODEL_UNAVAILABLE
}

@test "whatever a command leaves, its TASK gets a valid RESPONSE, and the next one is worked on" {
  { task 'printf "\\xff\\xfe\\x1b[31m bad\\n" >&2; exit 1'
    task 'head -c 100000 /dev/urandom; answer SUCCESS; printf "{\"completion_status\":\"complete\",\"execution_summary\":{\"actions\":[\"a\"]}}" >$AMP_RESULT'
    task 'jq -nc "{completion_status: \"complete\", execution_summary: {summary: \"s\", actions: [\"a\"], errors: [range(300) | \"x\" * 9000]},
      task_status: {message: (\"\u00e9\" * 5000)}}" >$AMP_RESULT'
    task 'jq -nc "{completion_status: \"complete\", execution_summary: {summary: \"s\", actions: [\"a\"]},
      extensions: {x_human_review: {decision: \"reviewed\"}, x_own: 1}}" >$AMP_RESULT'
    task 'ln -s /etc/passwd $AMP_RESULT'
    task 'mkfifo $AMP_RESULT'
    task 'echo "[]" >$AMP_RESULT'
    task 'printf "\\0\\n{\\n" >$AMP_CONTROL; answer SUCCESS'
    task 'rm -rf ./* "$(dirname "$AMP_RESULT")"/* 2>/dev/null; exit 0'
    task 'jq -nc "{completion_status: \"complete\", execution_summary: {summary: \"s\", actions: [\"a\"]}, agent: {name: \"Eve\"}, cost_tracking: {actual_cost_usd: 1e300}}" >$AMP_RESULT'
    task good
    # What is said of a run is what its own command printed.
    task "cd \"\$(dirname \"\$AMP_RESULT\")\"; rm stdout; ln -s $PWD/secret stdout; echo '{\"completion_status\":\"complete\",\"execution_summary\":{\"actions\":[\"a\"]}}' >\$AMP_RESULT"; } >in
  echo a-secret-of-the-person >secret
  session_run <in
  [ "$(jq -c 'select(.message_type == "RESPONSE")' out.ndjson | wc -l)" = 12 ]
  amp-validate --protocol aop <out.ndjson >valid.ndjson
  cmp out.ndjson valid.ndjson
  ended T-1 FAILED FAILURE E_PROCESS_CRASH
  ended T-2 COMPLETED SUCCESS
  ended T-3 FAILED FAILURE E_CONTEXT_OVERFLOW
  ended T-4 COMPLETED SUCCESS
  [ "$(response T-4 .extensions)" = '[{"x_own":1}]' ]
  for n in 5 6 7 9; do ended T-$n FAILED FAILURE E_MALFORMED_RESPONSE; done
  ended T-8 COMPLETED SUCCESS
  [ "$(response T-10 .agent.name)" = '["Emma"]' ]
  ended T-11 COMPLETED SUCCESS
  ended T-12 FAILED FAILURE E_MALFORMED_RESPONSE
  [ "$(grep -c a-secret out.ndjson)" = 0 ]
}

@test "after an error the models take turns by their triggers" {
  { task slow ".execution_policy.timeout_seconds = 60 | .guard_rails.timeout_seconds = 1 | $(others GEMINI unlisted TIMEOUT GEMINI good ALL_ERRORS)"
    task crash "$(others GEMINI good TIMEOUT)"
    task crash "$(others GEMINI unlisted CRITICAL_ERROR LOCAL x TIMEOUT)"
    task failed "$(others GEMINI good CRITICAL_ERROR)"
    task failed "$(others GEMINI good FIRST_ERROR)"
    task crash ".execution_policy.abort_on_first_critical_error = true | $(others GEMINI good ALL_ERRORS)"
    task failed ".guard_rails.abort_on_first_critical_error = true | $(others GEMINI good ALL_ERRORS)"
    task crash "$(others GEMINI crash FIRST_ERROR GEMINI good FIRST_ERROR CODEX part ALL_ERRORS)"
    task good '.execution_policy.alternative_models = [range(33) | {provider: "GEMINI", model: "good"}]'; } >in
  ends 1 session_run <in
  ended T-1 COMPLETED SUCCESS
  [ "$(response T-1 .agent.model '(.execution_summary.errors | map(.[:11]))' .timing.retries_attempted)" = \
    '["good",["E_TIMEOUT: ","E_MODEL_UNA"],2]' ]
  ended T-2 FAILED FAILURE E_PROCESS_CRASH
  ended T-3 FAILED FAILURE E_ALL_MODELS_EXHAUSTED
  [[ $(response T-3 .error_details.message) == *E_MODEL_UNAVAILABLE* ]]
  ended T-4 FAILED FAILURE E_FILE_NOT_FOUND
  ended T-5 COMPLETED SUCCESS
  ended T-6 ABORTED ABORTED E_PROCESS_CRASH
  ended T-7 COMPLETED SUCCESS
  ended T-8 COMPLETED PARTIAL_SUCCESS
  [ "$(response T-8 .agent.provider .agent.model '(.execution_summary.errors | length)')" = '["CODEX","part",2]' ]
  ended T-9 FAILED FAILURE E_CONTEXT_OVERFLOW
}

@test "the time limit: guard rails first, the worker's if there is none, a warning if it does not end the work" {
  { task slow '.guard_rails.timeout_seconds = 1 | .execution_policy.timeout_seconds = 60'
    task late '.execution_policy = {timeout_seconds: 1, auto_terminate_on_timeout: false} | .task.expected_outputs = [
      {type: "FILE", path: "calls.txt", description: "c", validation: {command: "sleep 1.2", expects: "EXIT_CODE_0"}}]'
    task slow; } >in
  session_run --timeout 300ms <in
  ended T-1 FAILED FAILURE E_TIMEOUT
  [[ $(response T-1 .error_details.message) == *"1 s (guard_rails)"* ]]
  ended T-2 COMPLETED SUCCESS
  [[ $(response T-2 .execution_summary.warnings) == *E_TIMEOUT*auto_terminate_on_timeout* ]]
  ended T-3 FAILED FAILURE E_TIMEOUT
  [[ $(response T-3 .error_details.message) == *"0.3 s (--timeout)"* ]]
}

@test "TASKs that wait are begun by their priority, also one that was changed" {
  { task good '.task.priority = "LOW"'
    task good
    task good '.task.priority = "LOW"'
    echo '{"aop_version":"2.0.2-C","message_type":"EVENT","event":"PRIORITY_ESCALATION","session_id":"S-1","task_id":"T-3","timestamp":"2026-02-26T14:00:00Z","old_priority":"LOW","new_priority":"CRITICAL","reason":"now","escalated_by":"user@example.org"}'; } >in
  session_run <in
  [ "$(jq -r 'select(.message_type == "RESPONSE").task_id' out.ndjson | tr '\n' ' ')" = "T-3 T-2 T-1 " ]
  grep -qxF "$(sed -n 4p in)" out.ndjson
}

@test "a signal stops the work, which goes on in the next run; soft limits are warnings" {
  task good '.task.objective = ("x" * 40001)' >in
  task 'touch started; [ -e second ] || sleep 30' >>in
  aop-session run --state "$STATE" --config amp.json <in >out.ndjson 2>err.txt 3>&- &
  local pid=$!
  wait_until 10 test -e ws/started
  kill $pid
  ends 130 wait $pid
  ended T-1 COMPLETED SUCCESS
  [[ $(response T-1 .execution_summary.warnings) == *E_PAYLOAD_SIZE_WARNING*objective* ]]
  ! grep -q '"T-2"' out.ndjson
  touch ws/second
  session_run </dev/null
  ended T-2 COMPLETED SUCCESS
}

@test "the workspace and its paths are those of this machine" {
  mkdir ws/sub elsewhere
  echo x >ws/sub/in.txt
  ln -s /etc/hostname ws/link
  { task env '.task.environment = {workspace_root: "C:\\work\\sub", shell: "powershell", os: "win32"}
      | .target.execution_profile = "fast" | .target.role = "SPECIALIST" | .orchestration_metadata.tags = ["A", "B"] | .task.inputs = [{type: "FILE", path: "C:/work/sub/in.txt"}]
      | .task.expected_outputs = [{type: "FILE", path: "env.txt", description: "e"}]'
    task good '.task.environment.workspace_root = "/etc"'
    task good '.task.environment.workspace_root = "D:/work"'
    task good ".task.inputs = [{type: \"FILE\", path: \"$WS/none\"}]"
    task good '.task.inputs = [{type: "FILE", path: "link"}]'
    task env '.target.capabilities.aop_versions_supported = ["1.x"]'
    task good '.task.expected_outputs = [{type: "FILE", path: "never", description: "n"}]'
    task good '.orchestration_metadata.tags = ["x" * 5000]'
    task good | sed 's/Do it/Do\\u0000it/'
    task 'mkfifo pipe' '.task.expected_outputs = [{type: "FILE", path: "pipe", description: "n"}]'
    task 'ln -s /etc/passwd users' '.task.expected_outputs = [{type: "FILE", path: "users", description: "n"}]'
    task good '.task.environment.workspace_root += "/." * 3000 + "/none"'; } >in
  ends 1 session_run <in
  ended T-1 COMPLETED SUCCESS
  printf '%s\n' AMP_CATEGORY=ANALYSIS AMP_COMPLEXITY=LOW AMP_MODEL=env AMP_PHASE= AMP_PROFILE=fast AMP_PROVIDER=CODEX AMP_ROLE=specialist AMP_SHELL=powershell AMP_TAGS=A,B "AMP_WORKSPACE=$WS/sub" |
    cmp - ws/sub/env.txt
  jq -e --arg p "$WS/sub" '.task.inputs[0].path == $p + "/in.txt" and .task.environment.workspace_root == $p' ws/sub/message.txt
  [[ $(response T-1 .execution_summary.warnings) == *win32* ]]
  [ "$(response T-1 '(.execution_summary.output_artifacts[0] | [.path, .status])')" = '[["env.txt","CREATED"]]' ]
  ended T-2 FAILED FAILURE E_PERMISSION_DENIED
  ended T-3 FAILED FAILURE E_FILE_NOT_FOUND
  ended T-4 FAILED FAILURE E_FILE_NOT_FOUND
  ended T-5 FAILED FAILURE E_PERMISSION_DENIED
  ended T-6 COMPLETED SUCCESS
  head -n 1 ws/message.txt | grep -qx '# Task: T-6'
  ended T-7 FAILED FAILURE E_UNKNOWN
  ended T-8 FAILED FAILURE E_CONTEXT_OVERFLOW
  [ "$(jq -r 'select(.event == "VERSION_FALLBACK") | .task_id' out.ndjson)" = T-9 ]
  ended T-9 FAILED FAILURE E_UNKNOWN
  ended T-10 FAILED FAILURE E_UNKNOWN
  # It is not cut to a directory that exists.
  ended T-11 FAILED FAILURE E_PERMISSION_DENIED
  [[ $(response T-11 .error_details.message) == *"has more than 4095 bytes"* ]]
}

@test "a confined command in a workspace that has the state directory in it sees its own attempt only" {
  unset AMP_CONFINE
  repo ws
  local at
  for at in ws/state ws/.git/amp; do
    mkdir -m 700 $at
    STATE=$PWD/$at
    task "find '$STATE' -type f >found; echo x 2>/dev/null >'$STATE/new'; answer SUCCESS" >in
    session_run --best-effort <in
    grep -q 'level.":."full' "$STATE/error.ndjson" || skip "no namespaces on this machine"
    ended "T-$TASKS" COMPLETED SUCCESS
    [ -s "$STATE/index.db" ] && [ ! -e "$STATE/new" ]
    [ -s ws/found ] && ! grep -vF "$STATE/run/T-$TASKS/" ws/found
  done
}

@test "a branch of the workspace: a worktree, a commit, and none that is protected" {
  need git
  repo ws
  { task "echo new >new.txt" '.task.environment.git_branch = "feature/x"'
    task good '.task.environment.git_branch = "main"'
    task "echo here >here.txt"
    task good '.task.environment = {workspace_root: (.task.environment.workspace_root + "/sub"), git_branch: "x"}'; } >in
  mkdir ws/sub
  ends 1 session_run <in
  ended T-1 COMPLETED SUCCESS
  [ "$(git -C ws show feature/x:new.txt)" = new ]
  [ "$(git -C ws log -1 --format='%an %s' feature/x)" = "executor Work on T-1" ]
  [ ! -e ws/new.txt ]
  [[ $(response T-1 .execution_summary.output_artifacts) == *"$WS/new.txt"* ]]
  ended T-2 FAILED FAILURE E_PERMISSION_DENIED
  ended T-3 COMPLETED SUCCESS
  [ -e ws/here.txt ]
  ended T-4 FAILED FAILURE E_FILE_NOT_FOUND
}

# questions: the ids of the open ones.
questions() { hitl-prompt list --state "$STATE" --json | jq -r "select(.task == \"$1\" or .about.task == \"$1\") | .id"; }

@test "a person reviews the RESPONSE while other TASKs go on, also after kill -9" {
  need_tool hitl-prompt
  { task good '.guard_rails.extensions.x_human_review_required = true'
    task good
    task 'echo new >kept.txt' '.task.extensions.x_human_review_required = true
      | .task.expected_outputs = [{type: "FILE", path: "kept.txt", description: "k", rollback_snapshot: {enabled: true}}]'; } >in
  echo old >ws/kept.txt
  mkfifo more
  aop-session run --state "$STATE" --config amp.json <>more >out.ndjson 2>err.txt 3>&- &
  local pid=$!
  cat in >more
  wait_until 10 grep -q 'T-3: waits for a person' err.txt
  wait_until 10 has_lines out.ndjson 1
  ended T-2 COMPLETED SUCCESS
  kill -9 $pid
  ends 137 wait $pid
  [ "$(wc -l <out.ndjson)" = 1 ]
  hitl-prompt answer --state "$STATE" "$(questions T-1)" approve "looks good" >/dev/null
  ends 75 session_run </dev/null
  grep -q '1 message is kept until a person decides' err.txt
  ended T-1 COMPLETED SUCCESS
  [ "$(response T-1 .extensions.x_human_review.decision .extensions.x_human_review.note)" = '["approve","looks good"]' ]
  # With an open input the decision ends the wait.
  : >out.ndjson
  aop-session run --state "$STATE" --config amp.json <>more >out.ndjson 2>err.txt 3>&- &
  pid=$!
  hitl-prompt answer --state "$STATE" "$(questions T-3)" reject >/dev/null
  wait_until 10 has_lines out.ndjson 1
  kill $pid
  ends 130 wait $pid
  ended T-3 ABORTED ABORTED
  # Other TASKs may have changed its files since.
  [ "$(cat ws/kept.txt)" = new ]
  aop-session rollback --state "$STATE" --config amp.json S-1 T-3 >event
  [ "$(cat ws/kept.txt)" = old ]
  # What failed is not reviewed.
  task failed '.task.task_id = "T-9" | .guard_rails.extensions.x_human_review_required = true' | session_run
  ended T-9 FAILED FAILURE E_FILE_NOT_FOUND
  # The work was done once.
  [ "$(wc -l <ws/calls.txt)" = 4 ]
}

@test "with identities: the lines of --agent are signed; a person reviews them as well" {
  unset AMP_IDENTITY
  need_tool hitl-prompt
  { task good; task good '.guard_rails.extensions.x_human_review_required = true'; } >in
  ends 75 session_run --agent Emma <in
  jq -se 'length == 1 and .[0].msg.task_id == "T-1" and (.[0].sig.key | startswith("SHA256:"))' out.ndjson
  # Agents of a pool sign for their type, and for no other agent.
  for name in Emma Bob; do
    task good ".session.session_id = \"S-2\" | .target.agent_name = \"$name\" | .task.task_id = \"$name\""
  done | task-queue submit --state "$STATE" --type Emma >/dev/null
  task-queue work --state "$STATE" --config amp.json --type Emma=1 --drain >out.ndjson 2>err.txt
  [ "$(jq -r '[.msg.agent.name // "-", .agent.name // "-"] | join(" ")' out.ndjson | sort | paste -sd,)" = "- Bob,Emma -" ]
  grep Emma out.ndjson | amp-sign verify --state "$STATE" >verified
  grep -c '"task_id":"Emma"' verified
  hitl-prompt answer --state "$STATE" "$(questions T-2)" approve >/dev/null
  session_run --agent Emma </dev/null
  jq -se '.[0].msg | .task_id == "T-2" and .extensions.x_human_review.decision == "approve"' out.ndjson
  # Without --agent there is no key of the agent.
  { task good; task good '.guard_rails.extensions.x_human_review_required = true'; } >in
  ends 75 session_run <in
  ended T-3 COMPLETED SUCCESS
}

@test "jobs of work: a pool carries out TASKs" {
  need_tool hitl-prompt
  { task good '.task.objective = "x" * 40001'
    task crash "$(others CODEX part ALL_ERRORS) | .session.origin = \"\""
    task good '.guard_rails.extensions.x_human_review_required = true'
    task failed; } >in
  task-queue submit --state "$STATE" <in >/dev/null
  echo '{}' >none.json
  ends 64 task-queue work --state "$STATE" --config none.json --type Emma=1 2>err.txt
  grep -q 'providers.NAME.command' err.txt
  task-queue work --state "$STATE" --config amp.json --type Emma=1 --pause 200ms >out.ndjson 2>err.txt 3>&- &
  local pid=$!
  wait_until 20 has_lines out.ndjson 3
  ended T-1 COMPLETED SUCCESS
  ended T-2 COMPLETED PARTIAL_SUCCESS
  ended T-4 FAILED FAILURE E_FILE_NOT_FOUND
  hitl-prompt answer --state "$STATE" "$(questions T-3)" approve >/dev/null
  wait_until 20 has_lines out.ndjson 4
  ended T-3 COMPLETED SUCCESS
  # Another job has no command.
  jq -c 'select(.base == "dispatch") | .line' "$AMP_TOP/tests/fixture/protocols/amp.jsonl" | task-queue submit --state "$STATE" --type Emma >/dev/null
  wait_until 20 has_lines out.ndjson 5
  [ "$(tail -n 1 out.ndjson | jq -r '[.type, .task_id, .code] | join(" ")')" = "nack T-2026-044 no_command" ]
  kill $pid
  ends 130 wait $pid
  [ "$(task-queue list --state "$STATE" --all --json | jq -r '"\(.task) \(.state) \(.code // "-")"' | sort | tr '\n' ,)" = \
    "T-1 DONE -,T-2 DONE -,T-2026-044 FAILED no_command,T-3 DONE -,T-4 FAILED E_FILE_NOT_FOUND," ]
  # Of the warnings about a TASK, only those of its size are about the limits.
  [ "$(jq -r 'select(.payload.check_type == "PAYLOAD_LIMIT") | "\(.task_id) \(.payload.result)"' "$WS"/_skills/*/v2/audit_trails/S-1.ndjson | sort | tr '\n' ,)" = \
    "T-1 WARN,T-2 PASS,T-3 PASS,T-4 PASS," ]
  [[ $(response T-2 '.execution_summary.warnings[]') == *E_SCHEMA_VALIDATION* ]]
}

@test "a confined command: its access, its read-only inputs, and the repository's own files" {
  need python3
  unset AMP_CONFINE
  repo ws
  mkdir ws/out
  echo in >ws/in.txt
  local try='for f in in.txt new.txt out/new.txt .git/new; do echo x >>$f; done 2>/dev/null' port pid
  coproc python3 -u -c 'import socket
s = socket.socket(); s.bind(("127.0.0.1", 0)); s.listen(); print(s.getsockname()[1])
while True: s.accept()[0].close()' 3>&-
  pid=$COPROC_PID
  read -r port <&"${COPROC[0]}"
  local net="(: </dev/tcp/127.0.0.1/$port) 2>/dev/null && echo \$AMP_WORKSPACE >>out/reached; answer SUCCESS"
  nets() { echo ".target.capabilities.network_access = \"$1\" | .task.access = {filesystem: {read_paths: [\".\"], write_paths: [\"out\"]}, network: \"$2\"}"; }
  { task "$try" '.task.inputs = [{type: "FILE", path: "in.txt"}]'
    task "$try" '.task.access.filesystem = {read_paths: ["."], write_paths: ["out"]}'
    task "$try" '.task.constraints.read_only_mode = true'
    task "$net" "$(nets FULL FULL)"
    task "$net" "$(nets FULL NONE)"
    task "$net" "$(nets NONE FULL)"; } >in
  session_run --best-effort --network FULL_ACCESS <in
  kill "$pid"
  grep -q 'level.":."full' "$STATE/error.ndjson" || skip "no namespaces on this machine"
  [ "$(cat ws/in.txt)" = in ]
  [ ! -e ws/.git/new ]
  [ "$(wc -l <ws/out/new.txt)" = 2 ]
  [ "$(wc -l <ws/new.txt)" = 1 ]
  # The network is that of both.
  [ "$(wc -l <ws/out/reached)" = 1 ]
}

@test "a TASK without git_branch is in the activity buffer with its repository and the branch there" {
  git init -q -b side ws
  git -C ws commit -q --allow-empty -m root
  mkdir ws/sub
  task good '.task.environment.workspace_root += "/sub"' >in
  session_run <in
  ended T-1 COMPLETED SUCCESS
  agent-handoff activity -s "$STATE" --all --json >entries
  jq -es --arg ws "$WS" 'length > 0 and all(.task_id == "T-1" and .repo_id == $ws and .branch == "side" and .worktree_id == $ws + "/sub")' entries ||
    { cat entries; return 1; }
}
