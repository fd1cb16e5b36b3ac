#!/usr/bin/env bats
# Executors of task files: local commands, confined, and sessions of a server (aof-board poll).
# walls

load ../lib
load ../aof

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

@test "what the command of a task prints never moves a task out of review" {
  task ready $T-001 "routing: {agent: ann}"
  task ready $T-002 "routing: {agent: bob}"
  task review $T-003 "routing: {agent: ann}"
  agent 'own() { say status.update "$AMP_AGENT" "\"agentId\":\"$AMP_AGENT\",\"status\":\"$1\""; }' \
    'if [ $AMP_AGENT = ann ]; then own review; own done; own in-progress; own blocked; own cancelled; report done; AMP_TASK_ID='$T-003' own done; else' \
    'report needs_review; report done; say status.update operator/ada "\"agentId\":\"bob\",\"status\":\"done\""; fi'
  run -0 aof_poll --unconfined --exec ./agent
  [ "$(at $T-001) $(at $T-002) $(at $T-003)" = "review review review" ]
  [ "$(events protocol.message.rejected $T-001) $(events protocol.message.rejected $T-002) $(events protocol.message.rejected $T-003)" = "5 2 1" ]
  [ ! -e "$D/runs/$T-001/run_result.json" ]
  # Neither with --stop-at-review, nor at the end of a command that was blocked and went on.
  task ready $T-004 "routing: {agent: cleo}"
  sed -i 's/^if .*/report blocked; own ready; own in-progress; own review; exit; &/' agent
  run -0 aof_poll --stop-at-review --unconfined --exec ./agent
  [ "$(at $T-004)" = review ]
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
  # At the end of a command a result that it did not report counts as well.
  task ready $T-002 "routing: {agent: ann}"
  result $T-002 blocked
  cp "$D/runs/$T-002/run_result.json" written
  run -0 aof_poll --unconfined --exec cp "$PWD/written" "$D/runs/$T-002/run_result.json"
  [ "$(at $T-002)" = blocked ]
  # A command that never stops writing has its time limit all the same.
  task ready $T-003 "routing: {agent: ann}"
  run -0 timeout -s KILL 30 aof-board poll --data-dir "$D" --unconfined --timeout 300ms --grace 100ms --exec yes
  grep -q '"type":"action.completed".*"taskId":"'$T-003'".*"result":"timeout"' "$D/events.ndjson"
}

@test "heartbeats are written and leases renewed while a command works; TERM gives its task back" {
  task ready $T-001 "routing: {agent: ann}"
  mkfifo go
  agent 'read line <"'"$PWD"'/go"'
  aof-board poll --data-dir "$D" --heartbeat 300ms --lease-time 1s --renewals 1000 --exec ./agent >out &
  wait_until 20 grep -q '"beatCount":[2-9]' "$D/runs/$T-001/run_heartbeat.json"
  wait_until 20 grep -q lease.renewed "$D/events.ndjson"
  grep -qE '^  renewCount: [1-9]' "$D/tasks/in-progress/$T-001.md"
  grep -q '"status":"running"' "$D/runs/$T-001/run.json"
  kill -TERM $!
  ends 130 wait $!
  [ "$(at $T-001)" = ready ]
  grep -q '"type":"dispatch.error".*"reason":"stopped"' "$D/events.ndjson"
  run -1 grep lease: "$D/tasks/ready/$T-001.md"
  # Its agent has another lease by now: that of another run, which keeps the task and gets no heartbeats from here.
  aof-board poll --data-dir "$D" --heartbeat 300ms --exec ./agent >out &
  wait_until 20 grep -q acquiredAt: "$D/tasks/in-progress/$T-001.md"
  sed -i 's/acquiredAt: .*/acquiredAt: "2026-02-09T21:00:00.000Z"/' "$D/tasks/in-progress/$T-001.md"
  expired() { grep -q stale_heartbeat_reclaim < <(aof-board poll --data-dir "$D"); }
  cp "$D/tasks/in-progress/$T-001.md" kept
  wait_until 20 expired
  cp kept "$D/tasks/in-progress/$T-001.md"
  rm "$D/tasks/ready/$T-001.md"
  kill -TERM $!
  ends 130 wait $!
  [ "$(at $T-001)" = in-progress ]
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
  # A server that hangs up: it may have begun the session. Three requests with one key; then the heartbeat decides.
  rm port
  "$AMP_BUILD/tests/fixture/http-server" port gone 3>&- &
  server=$!
  wait_until 10 test -s port
  run -75 aof_poll --heartbeat 3s --executor "http://127.0.0.1:$(cat port)/gone"
  [ "$(wc -l <gone) $(sed 's/.*"key":"\([^"]*\)".*/\1/' gone | sort -u | wc -l)" = "3 1" ]
  [ "$(at $T-002) $(events lease.acquired $T-002) $(events dispatch.error $T-002)" = "in-progress 2 2" ]
  run -0 aof_poll
  [ "$(at $T-002)" = in-progress ]
  # Killed while the server does not answer: the task is neither lost nor spawned again before its heartbeat expired.
  task ready $T-003 "routing: {agent: ann}"
  mkdir other
  mv "$D/tasks/in-progress/$T-002.md" other/
  aof-board poll --data-dir "$D" --heartbeat 400ms --executor "http://127.0.0.1:$(cat port)/hang" >out 2>err 3>&- &
  wait_until 10 grep -q hang gone
  kill -9 $!
  ends 137 wait $!
  [ "$(at $T-003) $(events lease.acquired $T-003) $(events action.started $T-003)" = "in-progress 1 0" ]
  again() { aof_poll --executor "http://127.0.0.1:$(cat port)/ok" >>out && [ "$(events lease.acquired $T-003)" -eq 2 ]; }
  wait_until 10 again
  kill $server
  [ "$(events lease.expired $T-003) $(events action.started $T-003) $(at $T-003)" = "1 1 in-progress" ]
  [ "$(grep $T-003 gone | sed 's/.*"key":"\([^"]*\)".*/\1/' | sort -u | wc -l)" -eq 2 ]
}

@test "a lease is renewed as often as it may be; then the command is stopped and its task goes back" {
  task ready $T-001 "routing: {agent: ann}"
  agent '[ ! -e "'"$PWD"'/seen" ] || { say status.update ann "\"agentId\":\"ann\",\"status\":\"blocked\""; exit; }' ': >"'"$PWD"'/seen"; exec sleep 60'
  run -0 timeout 30 aof-board poll --data-dir "$D" --unconfined --heartbeat 600ms --lease-time 1s --renewals 2 --grace 1s --exec ./agent
  [ "$(events lease.acquired $T-001) $(events lease.renewed $T-001) $(events lease.expired $T-001)" = "2 2 1" ]
  [[ $output == *'"type":"action.completed"'*'"result":"lease_expired"'*'"type":"dispatch.error"'*'"reason":"lease_expired"'*'"to":"ready","reason":"lease_expired"'*lease.expired* ]]
  # The second time it blocks itself, which releases the lease.
  [ "$(at $T-001)" = blocked ]
  [ "$(events lease.released $T-001) $(events action.started $T-001) $(events action.completed $T-001)" = "1 2 2" ]
  grep -q '"status":"completed"' "$D/runs/$T-001/run.json"
}

@test "tasks that no executor can get: dispatch.no-match and task.validation.failed once, the rest is counted" {
  local n
  for n in $(seq 101 204); do task ready $T-$n; done
  printf -- '---\nid: other\n---\n' >"$D/tasks/ready/$T-001.md"
  printf -- '---\nid: x\n' >"$D/tasks/ready/$T-002.md"
  task ready $T-003 "routing: {agent: $(printf '%0200d' 0)}"
  run -0 aof_poll --unconfined --exec true
  [ "$(grep -c '"type":"dispatch.no-match"' <<<"$output") $(grep -c task.validation.failed <<<"$output")" = "101 3" ]
  [[ $output == *'"type":"dispatch.no-match"'*'"payload":{"reason":"no_agent","tasks":4}'* ]]
  for n in 001:id_mismatch 002:bad_front_matter 003:agent_too_long; do
    grep -q '"taskId":"'"$T-${n%:*}"'","payload":{"reason":"'"${n#*:}"'"' <<<"$output"
  done
  amp-validate -p aof <"$D/events.ndjson" | cmp - "$D/events.ndjson"
  run -64 aof_poll --unconfined --agent "$(printf '%0128d' 0)" --exec true
  # The agent of --agent gets them; each is said to be a fallback.
  rm "$D"/tasks/ready/$T-1[1-9]*.md "$D"/tasks/ready/$T-20*.md
  run -0 aof_poll --unconfined --agent cleo --parallel 8 --exec true
  [ "$(grep -c '"type":"dispatch.fallback".*"agent":"cleo"' <<<"$output") $(grep -c '"type":"task.assigned".*"agent":"cleo"' <<<"$output")" = "9 9" ]
}

@test "a command that stays: it starts, polls as messages come, notices new and urgent tasks, and ends by a signal" {
  mkfifo go
  agent 'read line <"'"$PWD"'/go"' 'report partial'
  task ready $T-001 "routing: {agent: ann}"
  aof-board poll --data-dir "$D" --unconfined --every 200ms --exec ./agent >out 2>err 3>&- &
  poller=$!
  wait_until 20 test -e "$D/tasks/in-progress/$T-001.md"
  task ready $T-002 "routing: {agent: ann}"
  task ready $T-003 "routing: {agent: ann}" "priority: critical"
  echo >go
  wait_until 20 test -e "$D/tasks/in-progress/$T-003.md"
  [ "$(at $T-002)" = ready ]
  echo >go
  wait_until 20 test -e "$D/tasks/in-progress/$T-002.md"
  echo >go
  wait_until 20 test -e "$D/tasks/review/$T-002.md"
  kill -TERM $poller
  ends 130 wait $poller
  head -n 1 out | grep -q '"type":"system.startup"'
  tail -n 1 out | grep -q '"type":"system.shutdown"'
  diff out "$D/events.ndjson"
}

@test "kill -9 while a command works: it is killed as well, and another poll gives its task out again" {
  task ready $T-001 "routing: {agent: ann}"
  agent 'echo $$ >>"'"$PWD"'/pids"' '[ "$(wc -l <"'"$PWD"'/pids")" -gt 1 ] || exec sleep 100' 'report done'
  aof-board poll --data-dir "$D" --unconfined --heartbeat 300ms --exec ./agent >out 2>err 3>&- &
  poller=$!
  wait_until 20 test -s pids
  kill -9 $poller
  ends 137 wait $poller
  wait_until 10 gone "$(cat pids)"
  [ "$(at $T-001)" = in-progress ]
  retried() { aof_poll --unconfined --heartbeat 300ms --exec ./agent >>out && [ "$(at $T-001)" = "done" ]; }
  wait_until 10 retried
  [ "$(events dispatch.matched $T-001) $(events lease.expired $T-001) $(events lease.released $T-001) $(events task.completed $T-001)" = "2 1 1 1" ]
  [ "$(wc -l <pids)" -eq 2 ]
}

@test "EGRESS_RESTRICTED: each command has a gate, whose decisions are recorded" {
  local status=0
  repo r
  worktree-bind exec --require -C r -- true 2>why || status=$?
  [ "$status" -eq 0 ] || skip "not enforced here: $(cat why)"
  unset AMP_CONFINE
  task ready $T-001 "routing: {agent: ann}"
  task ready $T-002 "routing: {agent: bob}"
  sed -i '1s/.*/#!\/bin\/bash/' agent
  agent 'proxy=${HTTPS_PROXY#http://}' 'exec 3<>"/dev/tcp/${proxy%:*}/${proxy#*:}"' \
    "printf 'CONNECT evil.example:443 HTTP/1.1\\r\\n\\r\\n' >&3" 'head -n 1 <&3 >outputs/summary.md' 'report partial'
  echo '{"network":"EGRESS_RESTRICTED","hosts":["api.example.com:443"]}' >policy.json
  run -0 aof_poll --policy policy.json --parallel 2 --exec ./agent
  [ "$(at $T-001) $(at $T-002)" = "review review" ]
  [[ $(cat "$D/tasks/review/$T-001/outputs/summary.md") == "HTTP/1.1 403 "* ]]
  [ "$(grep -c '"decision":"refused".*"host":"evil.example"\|"host":"evil.example".*"decision":"refused"' "$D/.amp/egress.ndjson")" -eq 2 ]
  grep -q '"client":"bob"' "$D/.amp/egress.ndjson"
}
