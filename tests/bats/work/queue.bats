#!/usr/bin/env bats
# The queue without workers: submissions of each protocol, their answers, their order, the list.

load ../lib
load ../agents
load ../pools

setup() {
  cd "$BATS_TEST_TMPDIR" || return
  STATE=$PWD/st
}

teardown() {
  pool_kill
}

# work N PAYLOAD: a message that asks for this work; N makes its id.
work() {
  printf '{"message_id":"00000000-0000-4000-8000-%012d","producer_id":"cli","correlation_id":"c","sequence_number":%d,' "$1" "$1"
  printf '"retry_count":0,"message_type":"DATA","content_type":"application/json","content_length":%d,"payload":%s}\n' "${#2}" "$2"
}
# job N SCOPE [MEMBERS]: work with this scope, a JSON value; a text names a resource.
job() {
  local scope=$2
  [[ $scope != '"'* ]] || scope="[$scope]"
  work "$1" "{\"task_id\":\"t$1\",\"params\":{\"n\":$1},\"scope\":$scope${3:+,$3}}"
}
# answers STATUS [OPTION...] <lines: what submit answers, in the file answers.
answers() {
  local status=$1
  shift
  ends "$status" task-queue submit --state "$STATE" --config "$(config)" --type "${TYPE:-builder}" "$@" >answers 2>err
}
# answer LINE: one of them.
answer() { sed -n "${1}p" answers; }
# frames: how many records the log has.
frames() { cat "$STATE"/log/*.ndjson | wc -l; }

@test "jobs wait in the order of their priorities, then of their submission; the list shows place and reason" {
  echo '{"queue":{"max_parallel":2}}' >amp.json
  p='"priority":'
  { job 1 '"a"' ${p}0 && job 2 '"b"' ${p}20 && job 3 '"c"' ${p}-19 && job 4 '"d"' ${p}0; } | answers 0
  # In one batch: each answer has the place after all of them.
  [[ $(answer 1) == '{"ok":true,"line":1,"id":"'*'","state":"QUEUED","type":"builder","priority":0,"position":2,"reason":"no_worker","task":"t1","message_id":"'*'"}' ]]
  [[ $(answer 2) == *'"position":4,'* ]]
  [[ $(answer 3) == *'"priority":-19,"position":1,'* ]]
  [[ $(answer 4) == *'"position":3,'* ]]
  task-queue list --state "$STATE" --config amp.json --json >list
  grep -o '"task":"[^"]*"' list | paste -sd' ' | grep -qx '"task":"t3" "task":"t1" "task":"t4" "task":"t2"'
  run -0 task-queue list --state "$STATE" --config amp.json
  [[ ${lines[1]} == *QUEUED*builder*-19*1*no_worker*t3* ]]
}

@test "the same work again is the same job, until it is cancelled; the same message changes nothing" {
  work='{"task_id":"t","params":{"n":1},"scope":"x"}'
  work 1 "$work" >one
  work 2 "$work" >two
  id=$(submit_line 0 <one)
  before=$(frames)
  answers 1 <two
  [[ $(answer 1) == *'"ok":false,"line":1,"id":"'"$id"'","message_id":"00000000-0000-4000-8000-000000000002","code":"duplicate_job"'*QUEUED* ]]
  answers 0 <one
  [[ $(answer 1) == *"\"id\":\"$id\""*'"repeated":true'* ]]
  TYPE=other answers 1 <one
  [[ $(answer 1) == *'"code":"duplicate_msg_id"'* ]]
  # A refused message leaves nothing, so it can be sent again.
  [ "$(frames)" = "$before" ]
  run -0 task-queue show --state "$STATE" "$id"
  [[ ${lines[0]} == *"\"scope\":\"{"*'"attempts":0'* ]]
  [ "${lines[1]}" = "$(cat one)" ]
  task-queue cancel --state "$STATE" "$id"
  is_state "$id" CANCELLED
  [ "$(submit_line 0 <two)" = "$id" ]
  is_state "$id" QUEUED
  run -0 task-queue show --state "$STATE" "$id"
  [ "${lines[1]}" = "$(cat two)" ]
}

@test "each line gets an answer; an invalid one with its number, code and what was expected" {
  {
    work 1 '{"task_id":"t","params":{}}'
    echo
    echo '{bad'
    work 2 '{"task_type":"CreateTicket","title":"x"}'
    job 3 '{"paths":["a","a"],"branch":["b"]}'
    job 4 '"x"' '"priority":"urgent"'
    job 5 '"x"' '"priority":-20'
    work 6 '{"text":"no work"}'
    job 7 '"x"' | sed 's/"DATA"/"CONTROL"/; s/,"scope":\["x"\]//; s/"content_length":[0-9]*/"content_length":36/'
    job 8 '"y"'
  } | answers 1
  [[ $(answer 1) == *'"ok":false,"line":1,'*'"code":"scope_required"'* ]]
  [[ $(answer 2) == *'"ok":false,"line":3,"code":"invalid_json"'* ]]
  [[ $(answer 3) == *'"line":4,'*'"code":"scope_required"'* ]]
  [[ $(answer 4) == *'"line":5,'*'"code":"bad_scope"'* ]]
  [[ $(answer 5) == *'"line":6,'*'"code":"validation_error"'*'"field":"payload.priority"'* ]]
  [[ $(answer 6) == *'"line":7,'*'"code":"validation_error"'*'"field":"payload.priority","expected":"at least -19"'* ]]
  [[ $(answer 7) == *'"line":8,'*'"code":"not_a_submission"'* ]]
  [[ $(answer 8) == *'"line":9,'*'"code":"validation_error"'*'"field":"payload.scope"'* ]]
  [[ $(answer 9) == *'"ok":true,"line":10,'*'"task":"t8"'* ]]
  [ "$(grep -c '"code":"scope_required"' "$STATE/error.ndjson")" = 2 ]
  run -1 task-queue submit --state "$STATE" <<<"$(job 9 '"x"')"
  [[ $output == *'"code":"type_required"'* ]]
  run -1 task-queue submit --state "$STATE" --type 'a/b' <<<"$(job 9 '"x"')"
  [[ $output == *'"code":"bad_value"'* ]]
  run -64 task-queue submit --state "$STATE" --type builder --priority 21 </dev/null
  run -1 task-queue show --state "$STATE" 0123
  [[ $output == *"no job has the id 0123"* ]]
}

@test "--no-queue refuses what cannot start at once, and leaves no trace of it" {
  echo '{"queue":{"max_parallel":3}}' >amp.json
  { job 1 '"a"' && job 2 '"a"' && job 3 '"b"'; } | answers 1 --no-queue
  [[ $(answer 1) == *'"ok":true'*'"position":1'* ]]
  [[ $(answer 2) == *'"ok":false'*'"code":"scope_taken"'* ]]
  [[ $(answer 3) == *'"ok":true'*'"position":2'* ]]
  job 4 '"c"' | answers 0 --no-queue
  before=$(frames)
  { job 5 '"d"' && job 6 '"e"' '"priority":-5' && job 7 '"f"' '"priority":5'; } | answers 1 --no-queue
  [[ $(answer 1) == *'"code":"type_full"'*builder* ]]
  # The jobs that wait are behind the more urgent one.
  [[ $(answer 2) == *'"ok":true'*'"position":1'* ]]
  [[ $(answer 3) == *'"code":"type_full"'* ]]
  [ "$(frames)" = $((before + 3)) ]
  run -0 grep -c 000000000005 "$STATE"/log/*.ndjson "$STATE/error.ndjson"
  # Later it can enter; another type has places of its own.
  job 5 '"d"' | TYPE=other answers 0 --no-queue
  hitl-prompt suspend --state "$STATE" --task t8 --reason rest
  job 8 '"g"' | TYPE=third answers 1 --no-queue
  [[ $(answer 1) == *'"code":"suspended"'* ]]
  job 8 '"g"' | TYPE=third answers 0
  [[ $(answer 1) == *'"reason":"suspended"'* ]]
}

@test "a lone line is answered while the input stays open; what was answered survives a kill" {
  mkfifo in
  task-queue submit --state "$STATE" --type builder <in >out 2>err &
  pid=$!
  exec 9>in
  job 1 '"a"' >&9
  wait_until 10 grep -q '"line":1,' out
  job 2 '"b"' >&9
  wait_until 10 grep -q '"line":2,' out
  kill -9 $pid
  exec 9>&-
  ends 137 wait $pid
  { job 1 '"a"' && job 2 '"b"' && job 3 '"c"'; } | answers 0
  [ "$(grep -c '"repeated":true' answers)" = 2 ]
  cmp <(grep -o '"id":"[^"]*"' out) <(grep -o '"id":"[^"]*"' answers | head -n 2)
  [ "$(task-queue list --state "$STATE" --json | wc -l)" = 3 ]
}

@test "tasks of AOP bring their priority, and the workspace, branch and paths that they write as their scope" {
  amp-validate --example aop/task | jq -c '.target.agent_name = "builder" | .task += {
    priority: "CRITICAL", environment: {workspace_root: "/srv/p", git_branch: "b1"},
    access: {filesystem: {read_paths: ["/srv/p"], write_paths: ["/srv/p/src/", "/srv/p/docs"]}},
    expected_outputs: [{type: "FILE", path: "/srv/p/src/a.txt", description: "d"}],
    inputs: [{type: "FILE", path: "/srv/p/b.txt"}, {type: "FILE", path: "/srv/p/docs/c.txt", read_only: false}]}
    | ., (.task.task_id = "T2" | .task.priority = "LOW" | del(.task.access)
      | .task.environment.workspace_root = "C:\\w" | .task.expected_outputs[0].path = "C:\\w\\x\\y.c" | del(.task.inputs)),
      (.task.task_id = "T3" | .task.priority = "HIGH" | .task.environment.workspace_root = "/srv/p/src"),
      (.task.task_id = "T4" | del(.task.priority) | del(.task.access, .task.expected_outputs, .task.inputs)),
      (.task.task_id = "T5" | .task.priority = "URGENT"),
      (.task.task_id = "T6" | .task.expected_outputs[0].path = "/srv/q/x")' >tasks
  run -1 task-queue submit --state "$STATE" <tasks
  [[ $output == *'"line":5,'*'"code":"E_SCHEMA_VALIDATION"'*'"field":"task.priority"'* ]]
  [[ $output == *'"line":6,'*'"code":"E_PERMISSION_DENIED"'* ]]
  task-queue list --state "$STATE" --json | jq -r '"\(.task) \(.type) \(.priority) \(.scope)"' >got
  diff - got <<'END'
TASK-001 builder -15 {"repositories":["/srv/p"],"branches":["b1"],"paths":["/docs","/docs/c.txt","/src","/src/a.txt"]}
T3 builder -5 {"repositories":["/srv/p/src"],"branches":["b1"]}
T4 builder 0 {"repositories":["/srv/p"],"branches":["b1"]}
T2 builder 10 {"repositories":["C:\\w"],"branches":["b1"],"paths":["/x/y.c"]}
END
}

@test "each protocol's messages are refused with its own code, and leave no job" {
  for example in amp/task_dispatch amp/task_result aop/task aop/response aof/handoff_request rtp/task_create rtp/ack sw4rm/task_submission; do
    amp-validate --example $example
  done | jq -c '
    if .type == "task_dispatch" then (.payload.acceptance_criteria = []), (.payload.branch = "main"),
      (.payload.risk_level = "huge"), (.extra = 1), (.payload.risk_level = "high")
    elif .message_type == "TASK" then del(.session), (.aop_version = "3.0.0"), (.task.environment = {})
    elif .kind == "task_create" then del(.payload.toAgents, .payload.requiredCapabilities), (.expiresAt = "2020-01-01T00:00:00.000Z"),
      (.payload.priority = "urgent"), (.payload.title = "t" * 201)
    elif .message_type == "CONTROL" then (.payload.task_id = ""), (.payload.scope = ""), del(.content_type)
    else . end' >bad
  answers 1 <bad
  jq -r 'if .ok then "ok \(.priority)" else .code end' answers | diff - <(tr ' ' '\n' <<<'empty_acceptance_criteria branch_violation bad_enum unknown_field
ok_-5 not_a_submission E_SCHEMA_VALIDATION E_PARSE_FAILURE E_SCHEMA_VALIDATION not_a_submission not_a_submission
missing_route_fields expired bad_enum bad_value not_a_submission validation_error validation_error validation_error' | tr _ ' ' | sed '/^ok/!s/ /_/g')
  [ "$(task-queue list --state "$STATE" --json | wc -l)" = 1 ]
}

@test "a scope in a text is JSON, a path, or words that keep all work of the type apart" {
  # text N TEXT: work with this scope. The first of each pair can start; the second can start only if they do not meet.
  text() { work "$1" "$(jq -cn --arg s "$2" "{task_id: \"t$1\", params: {n: $1}, scope: \$s}")"; }
  echo '{"queue":{"max_parallel":100}}' >amp.json
  n=0
  while IFS=$'\t' read -r meets a b; do
    rm -rf "$STATE"
    { text $((n += 1)) "$a" && text $((n += 1)) "$b"; } | answers $((meets)) --no-queue
    [[ $meets == 0 || $(answer 2) == *'"code":"scope_taken"'* ]] || { echo "$meets $a $b" && cat answers && false; }
    [ "$(grep -c '"ok":true' answers)" = $((2 - meets)) ] || { echo "$meets $a $b" && cat answers && false; }
  done <<'END'
1	/src	/src/a.c
0	/src/a.c	/src/b.c
1	./src/	src/a.c
1	../x	/src/a.c
1	/	/src/a.c
1	/srv/web/src	{"repositories":["/srv/web"],"paths":["/src/a.c"]}
0	/srv/web/src	{"repositories":["/srv/web"],"paths":["/doc"]}
0	["a"]	["b"]
1	["/src"]	/src/a.c
1	{"resources":["db"]}	["db"]
1	the parser	/doc/a.c
1	/doc/a.c	the parser
1	web:src/	/doc/a.c
1	https://example.org/a	{}
1	{"paths":	["x"]
END
  # Words say nothing about other types of agents, but a name is a name.
  rm -rf "$STATE"
  text 50 "the parser" | answers 0 --no-queue
  text 51 /src/a.c | TYPE=other answers 0 --no-queue
  text 52 '["the parser"]' | TYPE=other answers 1 --no-queue
  [[ $(answer 1) == *'"code":"scope_taken"'* ]]
  text 53 '{"path":["/src"]}' | answers 1
  [[ $(answer 1) == *'"code":"bad_scope"'* ]]
}

@test "a job has the deadline of its message or task; what has expired is refused, and what expires while it waits fails" {
  amp-validate --example rtp/task_create | jq -c '.toAgentId = "builder" | .payload.priority = "low"
    | ., (.eventId = "evt_2" | .payload.taskId = "T2" | .payload.deadlineAt = "2020-01-01T00:00:00.000Z"),
      (.eventId = "evt_3" | .payload.taskId = "T3" | .payload.priority = "urgent")' >tasks
  { cat tasks && job 1 '"a"' | sed 's/"retry_count"/"ttl_ms":1,&/'; } | answers 1
  [[ $(answer 1) == *'"ok":true'*'"priority":10,'* ]]
  [[ $(answer 2) == *'"code":"deadline_passed"'* ]]
  [[ $(answer 3) == *'"ok":false'* ]]
  [[ $(answer 4) == *'"ok":true'* ]]
  [ "$(task-queue list --state "$STATE" --json | jq -r 'select(.type == "builder" and .priority == 10) | .deadline[:10]')" = \
    "$(jq -r '[.expiresAt, .payload.deadlineAt] | min[:10]' tasks | head -n 1)" ]
  # Without a pool, a sweep ends what has expired.
  id=$(answer 4 | grep -o '"id":"[^"]*' | cut -d'"' -f4)
  amp-ack sweep --state "$STATE" >swept || true
  [ "$(state_of "$id") $(code_of "$id")" = "FAILED deadline_passed" ]
  # A pool ends it at its deadline, though its agents are busy, and never starts it.
  builder <<'EOS'
echo "$AMP_TASK_ID" >>"$marks/began"
await go
EOS
  job 2 '"b"' | TYPE=busy answers 0
  pool_start --drain --type busy=1 -x ./agent
  wait_until 20 test -e began
  job 3 '"c"' | sed 's/"retry_count"/"ttl_ms":200,&/' | TYPE=busy answers 0
  [[ $(answer 1) == *'"ok":true'*'"state":"QUEUED"'* ]]
  id=$(answer 1 | grep -o '"id":"[^"]*' | cut -d'"' -f4)
  wait_until 20 is_state "$id" FAILED
  [ "$(code_of "$id")" = deadline_passed ]
  touch go
  pool_end 0
  [ "$(cat began)" = t2 ]
}

@test "cancel ends jobs by their id, its beginning, the id of their message, or their task" {
  for i in 1 2 3 4 5; do job $i "\"s$i\""; done | answers 0
  id=$(answer 1 | grep -o '"id":"[^"]*' | cut -d'"' -f4)
  run -0 --separate-stderr task-queue cancel --state "$STATE" --reason "not needed" "${id:0:12}" 00000000-0000-4000-8000-000000000002 t3
  [ "$(grep -c 'job .* is cancelled' <<<"$stderr")" = 3 ]
  task-queue list --state "$STATE" --json --state-of CANCELLED >ended
  [ "$(wc -l <ended)" = 3 ]
  grep -F "\"id\":\"$id\"" ended | grep -qF '"reason":"not needed"'
  grep -q "\"cancelled_by\":\"$(id -un)\"" ended
  run -0 --separate-stderr task-queue cancel --state "$STATE" "$id"
  [[ "$stderr" == *"was cancelled before"* ]]
  # What is unknown does not keep the others.
  run -1 --separate-stderr task-queue cancel --state "$STATE" 0123456789abcdef t4 T-1 --reason x
  [[ "$stderr" == *"no job has the id 0123456789abcdef"*"is cancelled"*"T-1"* ]]
  run -1 --separate-stderr task-queue cancel --state "$STATE" ''
  echo '{"hitl":{"operators":["nobody-here"]}}' >policy.json
  run -77 --separate-stderr task-queue cancel --state "$STATE" -c policy.json t5
  run -77 --separate-stderr task-queue rank --state "$STATE" -c policy.json --priority 1 "$(answer 5 | grep -o '"id":"[^"]*' | cut -d'"' -f4)"
  AMP_AGENT=ann run -77 --separate-stderr task-queue cancel --state "$STATE" t5
  [ "$(task-queue list --state "$STATE" --json | grep -c '"state":"QUEUED"')" = 1 ]
}

@test "status shows types, workers with their heartbeat, agents at work, usage, parked jobs and questions" {
  echo '{"queue":{"max_parallel":8},"budgets":{"day":{"usd":1},"agent":{"tokens":1000}}}' >amp.json
  task-queue submit --state "$STATE" </dev/null
  run -0 --separate-stderr task-queue status --state "$STATE"
  [[ "$output" == "" && "$stderr" == *"no jobs, workers, agents or questions"* ]]
  builder <<'END'
[ "$AMP_AGENT" = builder-1 ] || exec cat "$marks/go"
say '{"type":"usage","cost_usd":0.9,"input_tokens":100,"output_tokens":20}'
mark first
exec cat "$marks/go"
END
  mkfifo go
  pool_start --name alpha --type builder=1 --type painter=2 -x ./agent
  { job 1 '"a"' && job 2 '"a"' '"priority":1' && job 3 '"b"' '"priority":2'; } | answers 0
  { job 4 '"c"'; } | TYPE=none answers 0
  amp-validate --example sw4rm/hitl_invocation | ends 1 hitl-prompt --state "$STATE" --trust-in - --answer /dev/null >/dev/null
  wait_until 10 test -e first
  wait_until 10 at_work t1
  run -0 task-queue status --state "$STATE" --config amp.json
  [ "$(grep -cE '^(TYPE|WORKER|AGENT|BUDGET|QUESTION) ' <<<"$output")" -ge 4 ]
  task-queue status --state "$STATE" --config amp.json --json >now
  amp-validate -S "$AMP_TOP/schemas/records/work_status.json" --formats now >/dev/null
  jq -e '(.types[] | select(.type == "builder")) == {type: "builder", places: 8, running: 1, waiting: 2, parked: 0, agents: 1}' now
  jq -e '(.types[] | select(.type == "none") | .waiting) == 1 and (.types[] | select(.type == "painter") | .agents) == 2' now
  jq -e '.workers == [.workers[] | select(.worker == "alpha" and .state == "working" and .jobs == 1 and .lost_in_ms > 0 and .heartbeat)]' now
  jq -e '.agents[] | select(.agent == "builder-1") | .state == "RUNNING" and .task == "t1" and .worker == "alpha" and .since and (.job | length) == 32' now
  jq -e '.questions | length == 1' now
  grep -o '"task":"t[23]","priority":[0-9],"effective":[0-9],"position":[12],"waits":"[a-z_]*"' <(task-queue list --state "$STATE" --config amp.json --json) |
    grep -o '"waits.*' | paste -sd' ' | grep -qx '"waits":"scope_taken" "waits":"behind"' || task-queue list --state "$STATE" --config amp.json --json
  kill -9 "$POOL"
  ends 137 wait "$POOL"
  task-queue status --state "$STATE" --json | jq -e '.workers[0].state == "lost" and (.types[] | select(.type == "builder") | .agents) == 0'
}
# at_work TASK: an agent works on it.
at_work() { task-queue status --state "$STATE" --json | jq -e --arg t "$1" 'any(.agents[]; .task == $t and .state == "RUNNING")' >/dev/null; }
