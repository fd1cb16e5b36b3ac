#!/usr/bin/env bats
# Executors of task files: local commands, confined, and sessions of a server (task-dispatch aof poll).

load lib
load aof

setup() {
  cd "$BATS_TEST_TMPDIR" || return
  D=$PWD/data
  mkdir data
  T=TASK-2026-02-09
  cat >agent <<'SH'
#!/bin/sh
say() {
  printf 'AOF/1 {"protocol":"aof","version":1,"type":"%s","taskId":"%s","fromAgent":"%s","toAgent":"aof","sentAt":"2026-02-09T21:00:00.000Z","payload":{"taskId":"%s",%s}}\n' \
    "$1" "$AMP_TASK_ID" "$2" "$AMP_TASK_ID" "$3"
}
report() { say completion.report "$AMP_AGENT" "\"outcome\":\"$1\",\"summaryRef\":\"outputs/summary.md\",\"tests\":{\"total\":1,\"passed\":1,\"failed\":0},\"notes\":\"n\""; }
SH
}
# agent LINE...: the rest of the agent's script.
agent() { printf '%s\n' "$@" >>agent && chmod +x agent; }

@test "a poll with --exec starts agents" {
  unset AMP_CONFINE
  task ready $T-001 "routing: {agent: ann}"
  task ready $T-002 "priority: critical" "routing: {agent: bob}"
  task ready $T-003
  result $T-001 blocked # of an earlier run
  agent 'cat >input; echo chatter; echo text >outputs/summary.md' \
    'ls ../.. "'"$D"'/events.ndjson" >seen 2>&1' \
    'say status.update mallory "\"agentId\":\"mallory\",\"status\":\"blocked\""' \
    'say status.update "$AMP_AGENT" "\"agentId\":\"$AMP_AGENT\",\"progress\":\"half\""' 'report done'
  run -0 aof_poll --exec ./agent
  [ "$(at $T-001) $(at $T-002) $(at $T-003)" = "done done ready" ]
  # The more urgent one first; each with a lease, a run and a heartbeat.
  [ "$(grep -o '"type":"lease.acquired".*"agent":"[a-z]*"' <<<"$output" | grep -o '"agent":"[a-z]*"' | tr -d '\n')" = '"agent":"bob""agent":"ann"' ]
  [ "$(events dispatch.matched $T-001) $(events task.completed $T-001) $(events protocol.message.rejected $T-001)" = "1 1 1" ]
  grep -q '"outcome":"done"' "$D/runs/$T-001/run_result.json"
  grep -q '"status":"completed"' "$D/runs/$T-001/run.json"
  grep -q '"beatCount":0' "$D/runs/$T-001/run_heartbeat.json"
  grep -q 'Progress: half$' "$D/tasks/done/$T-001.md"
  # It got the task, and did not reach anything beside its folder.
  grep -qx 'id: '$T-001 "$D/tasks/done/$T-001/input"
  run -1 grep -E '^(ready|review|[{])' "$D/tasks/done/$T-001/seen"
  amp-validate -p aof <"$D/events.ndjson" | cmp - "$D/events.ndjson"
  # --agent: also tasks whose routing names none.
  run -0 aof_poll --agent cleo --exec ./agent
  [ "$(at $T-003)" = "done" ]
}

@test "a command that fails is logged, and its task waits for its heartbeat; one that cannot start is not begun" {
  task ready $T-001 "routing: {agent: ann}"
  agent 'exit 3'
  run -0 aof_poll --exec ./agent
  [ "$(at $T-001)" = in-progress ]
  grep -q '"type":"dispatch.error".*"reason":"agent_failed"' "$D/events.ndjson"
  run -64 aof_poll --exec ./missing
  run -64 aof_poll --executor http://localhost --exec ./agent
  # When the heartbeat has expired, the next poll gives it out again.
  beat $T-001 2026-01-01T00:05:00.000Z
  sed -i '$d' agent
  agent 'report partial'
  run -0 aof_poll --exec ./agent
  [ "$(at $T-001)" = review ]
  [[ $output == *stale_heartbeat_reclaim*lease.expired*dispatch.matched* ]]
}

@test "heartbeats are written and leases renewed while a command works; TERM gives its task back" {
  task ready $T-001 "routing: {agent: ann}"
  mkfifo go
  agent 'read line <"'"$PWD"'/go"'
  task-dispatch aof poll --data-dir "$D" --heartbeat 300ms --lease-time 1s --exec ./agent >out &
  wait_until 20 grep -q '"beatCount":[2-9]' "$D/runs/$T-001/run_heartbeat.json"
  wait_until 20 grep -q lease.renewed "$D/events.ndjson"
  grep -qE '^  renewCount: [1-9]' "$D/tasks/in-progress/$T-001.md"
  kill -TERM $!
  wait $! || true
  [ "$(at $T-001)" = ready ]
  grep -q '"type":"dispatch.error".*"reason":"stopped"' "$D/events.ndjson"
  run -1 grep lease: "$D/tasks/ready/$T-001.md"
}

@test "an executor at a URL gets sessions_spawn; if it refuses, the task goes back to ready" {
  [ -x "$AMP_BUILD/tests/fixture/http-server" ] || skip "no server to test with"
  task ready $T-001 "routing: {agent: ann}"
  "$AMP_BUILD/tests/fixture/http-server" port log 3>&- &
  server=$!
  wait_until 10 test -s port
  run -0 aof_poll --executor "http://127.0.0.1:$(cat port)/"
  kill $server
  [ "$(at $T-001)" = in-progress ]
  cat log
  grep -q '/tools/invoke' log
  grep -q 'sessions_spawn' log
  task ready $T-002 "routing: {agent: ann}"
  run -69 aof_poll --executor "http://127.0.0.1:$(cat port)"
  [ "$(at $T-002)" = ready ]
  grep -q '"type":"dispatch.error"' "$D/events.ndjson"
}
