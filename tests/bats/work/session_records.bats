#!/usr/bin/env bats
# The records of sessions: admission, aborts, reports, the audit trail, priorities.
# long

setup() {
  load ../lib
  load ../session
  need jq
  need_tool task-dispatch
  sessions
}

verb() {
  aop-session "$@" -s "$STATE" -c amp.json
}

# codes: TASK STATE CODE of each RESPONSE in out.ndjson, in the order of the tasks.
codes() {
  jq -r 'select(.message_type == "RESPONSE") | [.task_id, .task_status.state, .error_details.error_code // "-"] | join(" ")' \
    out.ndjson | sort -V | paste -sd,
}

# costs MICROS: a command that answers with this cost.
costs() {
  echo "printf '{\"task_status\":{\"state\":\"COMPLETED\",\"final_signal\":\"SUCCESS\"},\"execution_summary\":{\"summary\":\"s\",\"actions\":[\"a\"]},\"cost_tracking\":{\"actual_cost_usd\":%d.%06d,\"tokens_input\":7,\"tokens_output\":3}}' $(($1 / 1000000)) $(($1 % 1000000)) >\"\$AMP_RESULT\""
}

@test "lists and the report have the TASKs, exact sums, the graph and the trail; a later TASK opens the session again" {
  ends 69 verb list
  [ ! -e "$STATE" ]
  jq '.audit_trail.storage_path = "trail/of/it"' amp.json >with && mv with amp.json
  { task "$(costs 100001)" '.task.constraints.delegation_allowed = true'
    task "$(costs 200002)" '.task.parent_task_id = "T-1" | .target.agent_name = "Bob"'
    task crash "$(others GEMINI good CRITICAL_ERROR)"; } >in
  session_run <in
  verb list --json | tee list | jq -e '.state == "OPEN" and .tasks == 3 and .actual_cost_usd == 0.300003 and .depth == 2'
  amp-validate -S "$AMP_TOP/schemas/records/session.json" list | cmp - list
  verb show S-1 --json >shown
  amp-validate -S "$AMP_TOP/schemas/records/session.json" shown | cmp - shown
  verb show S-1 | grep -E '^T-3 +COMPLETED .* good '
  verb list | grep -E '^S-1 +OPEN +- +3/3 +0 +0.31 '
  verb report S-1 >report
  amp-validate report | cmp - report
  jq -e '.audit_trail.storage_path == "trail/of/it" and .extensions.x_interim == false
    and .cost_summary.total_cost_usd == 0.300003 and .cost_summary.total_tokens_input == 14
    and ([.cost_summary.by_agent[] | [.agent, .tasks, .actual_cost_usd]] == [["Emma", 2, 0.100001], ["Bob", 1, 0.200002]])
    and ([.cost_summary.by_provider[] | [.provider, .runs]] == [["CODEX", 3], ["GEMINI", 1]])
    and ([.tasks[] | [.role, .category, .complexity, .priority]] | unique) == [["EXECUTOR", "ANALYSIS", "LOW", "NORMAL"]]
    and .extensions.x_session.origin == "CLI"
    and .delegation_graph.edges == [{from: "T-1", to: "T-2"}] and .delegation_graph.depth == 2
    and ([.tasks[2].runs[] | [.model, .error_code]] == [["crash", "E_PROCESS_CRASH"], ["good", null]])' report
  trail=ws/trail/of/it/S-1.ndjson
  amp-validate -S "$AMP_TOP/schemas/records/audit.json" --formats $trail | cmp - $trail
  [ "$(jq -r .record_type $trail | sort | uniq -c | awk '$2 != "GUARD_RAIL_CHECK" { print $2 "=" $1 }' | paste -sd' ')" = \
    "RESPONSE_RECEIVED=3 ROUTING_DECISION=4 SESSION_SUMMARY=1 TASK_DISPATCHED=3" ]
  [ "$(jq -c 'select(.record_type == "RESPONSE_RECEIVED").payload' $trail)" = \
    "$(jq -c 'select(.message_type == "RESPONSE")' out.ndjson)" ]
  jq -se 'map(.audit_sequence) == (map(.audit_sequence) | unique)' $trail
  # Again: the same, and nothing more is recorded.
  cp $trail before
  verb report S-1 | jq -c 'del(.timestamp)' >again
  jq -c 'del(.timestamp)' report | cmp - again
  cmp before $trail
  [ "$(verb list --state-of REPORTED --json | jq -r .session_id)" = S-1 ]
  task good >in
  session_run <in
  verb list --json | jq -e '.state == "OPEN" and .tasks == 4'
  ends 1 verb report S-9
  ends 1 verb show S-9
  ends 64 verb report
}

is_running() {
  [ "$(verb list --json 2>/dev/null | jq .states.IN_PROGRESS)" = 1 ]
}

@test "a report before the end needs --interim, says so, and records nothing" {
  task slow >in
  aop-session run --state "$STATE" --config amp.json --grace 100ms <in >out.ndjson 2>err.txt 3>&- &
  run=$!
  wait_until 15 is_running
  ends 1 verb report S-1
  verb report --interim S-1 | jq -e '.extensions.x_interim and .extensions.x_open_tasks == ["T-1"] and .tasks[0].state == "IN_PROGRESS"'
  verb list --json | jq -e '.state == "OPEN" and (has("reported_at") | not)'
  verb escalate S-1 T-1 HIGH | jq -e '.new_priority == "HIGH"'
  kill "$run"
  ends 130 wait "$run"
}

@test "the audit trail is completed after a crash, made again after a change, and not written through a link" {
  task good >in
  session_run <in
  trail=ws/_skills/agent-orchestration-protocol_d/v2/audit_trails/S-1.ndjson
  verb report S-1 >report
  cp $trail whole
  head -c $(($(wc -c <whole) - 40)) whole >$trail # half of the last line
  verb report S-1 >report
  cmp whole $trail
  rm $trail
  verb report S-1 >report
  cmp whole $trail
  sed -i '$s/ALLOWED/DENIED/; $s/N\/A/DENIED/' $trail
  task good >in
  session_run <in
  grep -q 'S-1.ndjson was changed by another program: made again' err.txt
  [ "$(head -n "$(wc -l <whole)" $trail)" = "$(cat whole)" ]
  # An empty line, a long one, and a change in the middle are found as well; the file keeps its mode.
  chmod 600 $trail
  for line in "" "$(head -c 9000 /dev/zero | tr '\0' x)"; do
    cp $trail whole
    echo "$line" >>$trail
    task good >in
    session_run <in
    grep -q 'S-1.ndjson was changed by another program: made again' err.txt
    [ "$(head -n "$(wc -l <whole)" $trail)" = "$(cat whole)" ]
  done
  [ "$(stat -c %a $trail)" = 600 ]
  verb report S-1 >report 2>err.txt
  ! grep changed err.txt || return 1
  cp $trail whole
  sed -i '1s/ORCHESTRATOR/EXECUTOR/' $trail
  verb report S-1 >report 2>err.txt
  grep -q 'S-1.ndjson was changed by another program: made again' err.txt
  cmp whole $trail
  # Another state directory has a file of its own.
  had=$(wc -l <$trail)
  STATE=$BATS_TEST_TMPDIR/state2 session_run <in
  [ "$(wc -l <$trail)" = "$had" ]
  ls "${trail%/*}" | grep -qE '^S-1\.[0-9a-f]{16}\.ndjson$'
  # An agent that makes a link there gains nothing, and the TASK goes on.
  rm -rf ws/_skills
  mkdir out
  ln -s "$PWD/out" ws/_skills
  task good >in
  session_run <in
  ended T-5 COMPLETED SUCCESS
  grep -q 'S-1: the audit trail is not written yet' err.txt
  [ -z "$(ls out)" ]
  rm ws/_skills
  verb report S-1 >report
  [ "$(jq -r 'select(.record_type == "RESPONSE_RECEIVED").task_id' $trail | paste -sd' ')" = "T-1 T-2 T-3 T-4 T-5" ]
}

@test "a TASK is admitted by its session: members, SINGLE, CHAIN, the parent, depth and access" {
  may='.task.constraints.delegation_allowed = true'
  child() { echo ".task.parent_task_id = \"$1\""; }
  { task good "$may"
    task good '.session.orchestrator = "Other"'
    task good '.session.created_at = "2026-02-26T14:00:01Z"'
    task good "$(child T-1) | $may"
    task good "$(child T-4) | $may"
    task good "$(child T-5)"
    task good "$(child none)"
    task failed "$may"
    task good "$(child T-8)"
    task good
    task good "$(child T-10)"
    task good "$(child T-1) | .task.access.network = \"FULL\" | .target.capabilities.network_access = \"FULL\""
    task good "$(child T-13)"; } >in
  ends 1 session_run <in
  [ "$(codes)" = "T-1 COMPLETED -,T-2 FAILED E_SCHEMA_VALIDATION,T-3 FAILED E_SCHEMA_VALIDATION,T-4 COMPLETED -,T-5 COMPLETED -,T-6 FAILED E_MAX_DEPTH_EXCEEDED,T-7 SKIPPED E_DEPENDENCY_FAILED,T-8 FAILED E_FILE_NOT_FOUND,T-9 SKIPPED E_DEPENDENCY_FAILED,T-10 COMPLETED -,T-11 FAILED E_PERMISSION_DENIED,T-12 FAILED E_PERMISSION_DENIED,T-13 FAILED E_MAX_DEPTH_EXCEEDED" ]
  [ "$(verb show S-1 | sed -n 's/^\(T-[0-9]*\) .*/\1/p' | paste -sd' ')" = "T-1 T-4 T-5 T-6 T-7 T-8 T-9 T-10 T-11 T-12 T-13" ]
  verb report S-1 | jq -e '.delegation_graph.depth == 3 and ([.tasks[].task_id] | index("T-2") == null)
    and (.delegation_graph.edges | length) == 8'
  single='.session.session_id = "S-s" | .session.workflow_pattern = "SINGLE"'
  chain='.session.session_id = "S-c" | .session.workflow_pattern = "CHAIN"'
  TASKS=20
  { task good "$single"
    task good "$single"
    task failed "$chain"
    task good "$chain"
    task abort "$chain"
    task good "$chain"
    task good "$chain | .task.attempt = 2 | .task.task_id = \"T-23\""; } >in
  ends 1 session_run <in
  [ "$(codes)" = "T-21 COMPLETED -,T-22 FAILED E_SCHEMA_VALIDATION,T-23 COMPLETED -,T-23 FAILED E_FILE_NOT_FOUND,T-24 COMPLETED -,T-25 ABORTED -,T-26 SKIPPED E_DEPENDENCY_FAILED" ]
  verb report S-c | jq -e '.tasks[0] | .attempt == 2 and [.runs[].attempt] == [1, 2]'
  # Later attempts at those that were completed, aborted and skipped.
  TASKS=23
  { for n in 24 25 26; do task good "$chain | .task.attempt = 2"; done; } >in
  session_run <in
  [ "$(codes)" = "T-24 COMPLETED -,T-25 COMPLETED -,T-26 COMPLETED -" ]
}

@test "the audit trail does not make the repository dirty, and has TASKs that were skipped without a start" {
  git init -q ws && git -C ws commit -q --allow-empty -m root
  trail=ws/_skills/agent-orchestration-protocol_d/v2/audit_trails
  printf '*.o' >ws/.git/info/exclude # without a line feed
  { task good '.session.session_id = "S-1" | .task.parent_task_id = "T-9"'
    task good '.session.session_id = "S-1" | .task.parent_task_id = "T-9"'; } >in
  ends 1 session_run <in
  [ "$(codes)" = "T-1 SKIPPED E_DEPENDENCY_FAILED,T-2 SKIPPED E_DEPENDENCY_FAILED" ]
  [ "$(jq -r 'select(.record_type == "RESPONSE_RECEIVED") | "\(.task_id) \(.payload.task_status.state)"' $trail/S-1.ndjson | paste -sd,)" = \
    "T-1 SKIPPED,T-2 SKIPPED" ]
  task good '.session.session_id = "S-2"' >in
  session_run <in
  [ -s $trail/S-2.ndjson ]
  [ -z "$(git -C ws status --porcelain | grep -v calls.txt)" ]
  [ "$(cat ws/.git/info/exclude)" = $'*.o\n/_skills/agent-orchestration-protocol_d/v2/audit_trails/' ]
  # A list that is a link is not written; the trail is.
  echo kept >kept
  ln -sf ../../../kept ws/.git/info/exclude
  task good '.session.session_id = "S-3"' >in
  session_run <in
  [ -s $trail/S-3.ndjson ]
  [ "$(cat kept)" = kept ]
  grep -q 'git does not ignore the audit trail' err.txt
  # A directory that a person chose is that person's.
  rm ws/.git/info/exclude
  jq '.audit_trail.storage_path = "trail"' amp.json >with && mv with amp.json
  task good '.session.session_id = "S-4"' >in
  session_run <in
  [ -s ws/trail/S-4.ndjson ]
  [ ! -e ws/.git/info/exclude ]
}

@test "ABORT_SESSION skips what waits and what comes later, also in the queue" {
  { task good
    task failed '.execution_policy.on_failure = "ABORT_SESSION"'
    task good
    task good '.session.session_id = "S-2"'; } >in
  ends 1 session_run <in
  [ "$(codes)" = "T-1 COMPLETED -,T-2 FAILED E_FILE_NOT_FOUND,T-3 SKIPPED E_DEPENDENCY_FAILED,T-4 COMPLETED -" ]
  verb report S-1 | jq -e '.extensions.x_session.aborted_by == "T-2" and .extensions.x_states.SKIPPED == 1'
  task good >in
  ends 1 session_run <in
  ended T-5 SKIPPED ABORTED E_DEPENDENCY_FAILED
  [ "$(verb list --state-of ABORTED --json | jq -r .aborted_by)" = T-2 ]
  { task good '.task.task_id = "T-late"'
    task good '.task.task_id = "T-nowhere" | .session.session_id = "S-p" | .execution_policy.on_failure = "ABORT_SESSION"
      | .task.environment.workspace_root += "/missing"'; } >in
  TASKS=5
  ends 1 session_run <in
  [ "$(codes)" = "T-late SKIPPED E_DEPENDENCY_FAILED,T-nowhere FAILED E_FILE_NOT_FOUND" ]
  # Its trail is where the report is made.
  verb report S-p >report
  [ "$(jq -r .record_type _skills/agent-orchestration-protocol_d/v2/audit_trails/S-p.ndjson | paste -sd' ')" = \
    "TASK_DISPATCHED GUARD_RAIL_CHECK GUARD_RAIL_CHECK RESPONSE_RECEIVED SESSION_SUMMARY" ]
  # Nobody works on the type of the others.
  { task failed '.execution_policy.on_failure = "ABORT_SESSION" | .session.session_id = "S-q" | .target.agent_name = "b"'
    task good '.session.session_id = "S-q" | .target.agent_name = "c"'
    task good '.session.session_id = "S-q" | .target.agent_name = "c"'
    task good '.session.session_id = "S-other" | .target.agent_name = "c"'; } >in
  task-queue submit -s "$STATE" -c amp.json <in >submitted
  ends 0 task-queue work -s "$STATE" -c amp.json --type b=1 --drain -x true >out.ndjson 2>err.txt
  [ "$(codes)" = "T-6 FAILED E_FILE_NOT_FOUND,T-7 SKIPPED E_DEPENDENCY_FAILED,T-8 SKIPPED E_DEPENDENCY_FAILED" ]
  [ "$(task-queue list -s "$STATE" --json | jq -r '[.task, .state, .code // "-"] | join(" ")' | sort | paste -sd,)" = \
    "T-6 FAILED E_FILE_NOT_FOUND,T-7 CANCELLED E_DEPENDENCY_FAILED,T-8 CANCELLED E_DEPENDENCY_FAILED,T-9 QUEUED -" ]
}

@test "a TASK whose job is cancelled is ABORTED with one RESPONSE, and the next of its CHAIN is skipped" {
  chain='.session.workflow_pattern = "CHAIN" | .execution_policy.max_retries = 2'
  { task good "$chain"; task good "$chain"; } >in
  task-queue submit -s "$STATE" -c amp.json <in >submitted
  task-queue cancel -s "$STATE" -c amp.json S-1/T-1/1 --reason "not needed"
  task-queue cancel -s "$STATE" -c amp.json S-1/T-1/1
  verb show S-1 --json | jq -e '[.list[].state] == ["ABORTED", "PENDING"]'
  task-queue work -s "$STATE" -c amp.json --type Emma=1 --drain -x true >out.ndjson 2>err.txt
  [ "$(codes)" = "T-1 ABORTED E_UNKNOWN,T-2 SKIPPED E_DEPENDENCY_FAILED" ]
  response T-1 '(.task_status.message | endswith(" cancelled its job: not needed"))' '(.task_status.final_signal == "ABORTED")' | jq -e all
  amp-validate out.ndjson | cmp - out.ndjson
  verb report S-1 | jq -e '.extensions.x_states | .ABORTED == 1 and .SKIPPED == 1'
  [ "$(jq -r 'select(.record_type == "RESPONSE_RECEIVED") | .task_id' ws/_skills/*/v2/audit_trails/S-1.ndjson | sort | paste -sd' ')" = "T-1 T-2" ]
  # No further attempt is made at what a person cancelled.
  amp-ack sweep -s "$STATE" --now 2036-01-01T00:00:00Z --retries 9 >swept
  [ "$(jq -c 'select(.message_type == "TASK")' swept)" = "" ]
  [ "$(amp-ack status -s "$STATE" --all --json | jq -r '"\(.msg_id) \(.state)"' | sort | head -n 1)" = "S-1/T-1/1 FAILED" ]
  # While its agent works, which then stops at a safe point.
  task "while sleep 0.05; do echo '{\"type\":\"safe\"}' >\$AMP_CONTROL; done" '.session.session_id = "S-2"' |
    task-queue submit -s "$STATE" -c amp.json >submitted
  task-queue work -s "$STATE" -c amp.json --type Emma=1 --safe-point 300ms --drain -x true >out.ndjson 2>err.txt 3>&- &
  wait_until 15 eval '[ "$(verb list --json | jq -s "map(.states.IN_PROGRESS) | add")" = 1 ]'
  task-queue cancel -s "$STATE" -c amp.json S-2/T-3/1
  wait
  verb show S-2 --json | jq -e '.list[0] | .state == "ABORTED" and (.runs | length) == 1'
  ended T-3 ABORTED ABORTED E_UNKNOWN
  response T-3 '(.timing.duration_seconds | type)' .agent.model | jq -e '.[0] == "number"'
  TASKS=3
  # A pool that works says so at once. What fails by ABORT_SESSION takes the others with it.
  { task good '.session.session_id = "S-3" | .execution_policy.on_failure = "ABORT_SESSION" | .target.agent_name = "b"'
    task good '.session.session_id = "S-3" | .target.agent_name = "b"'; } >in
  task-queue submit -s "$STATE" -c amp.json <in >submitted
  jq '.queue.losses = 1' amp.json >with && mv with amp.json
  task-queue work -s "$STATE" -c amp.json --type Emma=1 -x true >out.ndjson 2>err.txt 3>&- &
  pool=$!
  task slow >in
  task-queue submit -s "$STATE" -c amp.json <in >submitted
  wait_until 15 eval '[ "$(verb list --json | jq -s "map(.states.IN_PROGRESS) | add")" = 1 ]'
  task good >in
  task-queue submit -s "$STATE" -c amp.json <in >submitted
  task-queue cancel -s "$STATE" -c amp.json S-1/T-7/1 S-3/T-4/1
  wait_until 15 grep -q T-7 out.ndjson
  [ "$(codes)" = "T-7 ABORTED E_UNKNOWN" ]
  verb show S-3 --json | jq -e '[.list[].state] == ["ABORTED", "SKIPPED"] and .aborted_by == "T-4"'
  # Its worker is killed as often as is allowed: the TASK has failed, and its session can be reported.
  kill -9 "$pool"
  ends 137 wait "$pool"
  task-queue work -s "$STATE" -c amp.json --type b=1 --type Emma=1 --drain -x true >out.ndjson 2>err.txt
  [ "$(codes)" = "T-4 ABORTED E_UNKNOWN,T-5 SKIPPED E_DEPENDENCY_FAILED,T-6 FAILED E_PROCESS_CRASH" ]
}

# raise TASK PRIORITY [BY]: the EVENT.
raise() {
  printf '{"aop_version":"2.0.2-C","message_type":"EVENT","event":"PRIORITY_ESCALATION","session_id":"S-1","task_id":"%s","timestamp":"2026-02-26T14:00:00Z","old_priority":"NORMAL","new_priority":"%s","reason":"r","escalated_by":"%s"}\n' "$@" Cyclops
}

@test "a person, and messages that count, change the priority of a TASK: its job and the order of run follow" {
  { task good; task good; task good '.task.priority = "HIGH"'; } >in
  { cat in; raise T-1 LOW; raise T-9 HIGH; } | ends 1 task-queue submit -s "$STATE" -c amp.json >submitted
  jq -se '[.[] | .ok] == [true, true, true, true, false] and .[3].priority == 10 and .[4].code == "unknown_ref"' submitted
  verb escalate S-1 T-2 CRITICAL --reason "it is late" >event
  amp-validate event | cmp - event
  jq -e '.event == "PRIORITY_ESCALATION" and .old_priority == "NORMAL" and .new_priority == "CRITICAL" and .reason == "it is late"' event
  [ "$(task-queue list -s "$STATE" --json | jq -r '"\(.task) \(.priority)"' | paste -sd,)" = "T-2 -15,T-3 -5,T-1 10" ]
  verb escalate S-1 T-2 CRITICAL >same
  [ ! -s same ]
  ends 1 verb escalate S-1 T-2 URGENT
  ends 1 verb escalate S-1 T-9 HIGH
  ends 1 verb escalate S-9 T-1 HIGH
  AMP_AGENT=executor AMP_TASK=T-1 ends 77 verb escalate S-1 T-1 CRITICAL
  task-queue work -s "$STATE" -c amp.json --type Emma=1 --drain -x true >out.ndjson 2>err.txt
  [ "$(jq -r 'select(.message_type == "RESPONSE").task_id' out.ndjson | paste -sd' ')" = "T-2 T-3 T-1" ]
  verb report S-1 | jq -e '[.events[] | [.task_id, .new_priority]] == [["T-1", "LOW"], ["T-2", "CRITICAL"]]
    and [.tasks[].priority] == ["LOW", "CRITICAL", "HIGH"]'
  ends 1 verb escalate S-1 T-1 HIGH
  # In run: the line takes effect and passes.
  { task good; task good; task good; raise T-6 HIGH; raise T-4 LOW; } >in
  session_run <in
  [ "$(jq -r 'select(.message_type == "RESPONSE").task_id' out.ndjson | paste -sd' ')" = "T-6 T-5 T-4" ]
  [ "$(grep -c PRIORITY_ESCALATION out.ndjson)" = 2 ]
  # From an input that is not trusted it is refused.
  task good | task-queue submit -s "$STATE" -c amp.json >submitted
  mkfifo fifo
  raise T-7 HIGH >fifo &
  ends 1 session_run --identity local --in fifo
  grep -q E_PERMISSION_DENIED "$STATE/error.ndjson"
  [ "$(verb show S-1 --json | jq -r '.list[-1].priority')" = NORMAL ]
}
