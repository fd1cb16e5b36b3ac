# A pool of agents: their states are those of their processes, urgent work takes the place of other work, and
# the end of the pool leaves nothing behind. # long
# walls

setup() {
  load ../lib
  load ../agents
  load ../pools
  STATE=$BATS_TEST_TMPDIR/state
  cd "$BATS_TEST_TMPDIR"
}

teardown() {
  pool_kill
}

@test "a pool drains the queue, the most urgent job first, and its agents go through their states" {
  builder <<'EOS'
echo "$AMP_AGENT_TYPE $AMP_AGENT" >>"$marks/who"
EOS
  a=$(submit 5) b=$(submit -3) c=$(submit 0)
  pool --drain --type builder=1 -x ./agent
  [ "$(state_of "$a") $(state_of "$b") $(state_of "$c")" = "DONE DONE DONE" ]
  [ "$(cat who)" = "$(printf 'builder builder-1\n%.0s' 1 2 3)" ]
  [ "$(states builder-1)" = "INITIALIZING RUNNABLE$(printf ' SCHEDULED RUNNING COMPLETED RUNNABLE%.0s' 1 2 3) SHUTTING_DOWN SHUTTING_DOWN" ]
  # The order of the starts is that of the priorities.
  [ "$(grep -o '"key":"queue\.[0-9a-f]*".*"to":"RUNNING"' "$STATE"/log/*.ndjson | grep -o 'queue\.[0-9a-f]*' | paste -sd' ')" = "queue.$b queue.$c queue.$a" ]
  [ "$(grep -c '"ack_stage":"FULFILLED"' out.ndjson)" -eq 3 ]
}

@test "the agents of a type have its command" {
  builder <<'EOS'
mark builder
EOS
  printf '#!/bin/sh\nprintf "%%s|" "$AMP_AGENT_TYPE" "$@" >%q/other\n' "$PWD" >other.sh
  chmod +x other.sh
  a=$(submit 0) b=$(submit 0 other)
  pool --drain --type builder=1 --type other=1 --command "other=./other.sh 'a b' c" -x ./agent
  is_state "$a" DONE
  is_state "$b" DONE
  [ -e builder ]
  [ "$(cat other)" = 'other|a b|c|' ]
}

@test "urgent work takes the place of other work at a safe point, which goes on in its directory and session" {
  builder <<'EOS'
if [ "$AMP_ATTEMPT" = 2 ]; then
  [ "$AMP_SESSION" = s-1 ] && [ -e half ] && mark resumed
  exit 0
fi
[ -e "$marks/first" ] && exit 0
touch half "$marks/first"
say '{"type":"session","session":"s-1"}'
safe_points
exit 75
EOS
  low=$(submit 5)
  pool_start --drain --type builder=1 -x ./agent
  wait_until 10 test -e first
  high=$(submit -5)
  pool_end 0
  is_state "$low" DONE
  is_state "$high" DONE
  [ -e resumed ]
  [[ $(states builder-1) == *"RUNNING SUSPENDED RESUMED RUNNING COMPLETED"* ]]
  grep -F "asked to yield to $high (priority -5)" err
}

@test "work of the same priority does not preempt" {
  builder <<'EOS'
[ "$AMP_AGENT_TYPE" = builder ] || exit 0
mark started
await go
EOS
  a=$(submit 0)
  pool_start --drain --type builder=1 --type other=1 -x ./agent
  wait_until 10 test -e started
  b=$(submit 0)
  c=$(submit 1)
  # The pool has seen both: it has done a later one.
  d=$(submit 0 other)
  wait_until 10 is_state "$d" DONE
  [ "$(state_of "$a") $(state_of "$b") $(state_of "$c")" = "RUNNING QUEUED QUEUED" ]
  touch go
  pool_end 0
  [ "$(grep -c 'asked to yield' err)" -eq 0 ]
}

@test "a section that must not be interrupted is deferred to; its end is no safe point, and the next one has its time" {
  builder <<'EOS'
[ -e "$marks/first" ] && exit 0
trap 'mark signal' USR1
trap 'mark term' TERM
say '{"type":"signal"}'
say '{"type":"hold","max_ms":60000,"id":"h"}'
answered h >/dev/null
touch "$marks/first"
await signal
say '{"type":"hold","max_ms":60000,"id":"again"}'
answered again | grep -q '"code":"preempting"' && touch "$marks/refused"
nap 3.2
say '{"type":"release"}'
nap 0.4
safe_points
nap 0.4
mark saved
exit 75
EOS
  low=$(submit 5)
  pool_start --drain --type builder=1 --safe-point 3s --grace 5s -x ./agent
  wait_until 10 test -e first
  submit 0 >/dev/null
  wait_until 10 test -e refused
  wait_until 10 grep -qs '"event":"yield"' "$STATE"/log/*.ndjson
  pool_end 0
  is_state "$low" DONE
  [ -z "$(code_of "$low")" ]
  [ "$(cat saved)" = 1 ]
  [ ! -e term ]
  [[ $(states builder-1) == *"RUNNING SUSPENDED RESUMED RUNNING COMPLETED"* ]]
}

@test "an agent that is told to stop at a safe point gets time to stop, and does not fail, however it ends" {
  # i: itself with status 75, s: with another one, k: by a signal of its own, t: at TERM, which comes after the time.
  builder <<'EOS'
[ -e "$marks/first-$AMP_AGENT_TYPE" ] && exit 0
trap 'mark "term-$AMP_AGENT_TYPE"' TERM
touch "$marks/first-$AMP_AGENT_TYPE"
safe_points
case $AMP_AGENT_TYPE in
i) nap 0.3; exit 75 ;;
s) nap 0.3; exit 3 ;;
k) nap 0.3; kill -KILL $$ ;;
t) until [ -e "$marks/term-t" ]; do nap 0.05; done; exit 1 ;;
esac
EOS
  for t in i s k t; do submit 5 "$t" >"id-$t"; done
  pool_start --drain --type i=1 --type s=1 --type k=1 --type t=1 --safe-point 3s --grace 20s -x ./agent
  for t in i s k t; do wait_until 10 test -e "first-$t"; done
  for t in i s k t; do submit 0 "$t" >/dev/null; done
  pool_end 0
  for t in i s k t; do
    is_state "$(cat "id-$t")" DONE
    [[ $(states "$t-1") == *"RUNNING SUSPENDED RESUMED RUNNING COMPLETED"* ]]
    [[ $(states "$t-1") != *FAILED* ]]
  done
  [ "$(echo term-*)" = term-t ]
}

@test "a section that ends without a safe point after it is no safe point" {
  builder <<'EOS'
[ -e "$marks/first" ] && exit 0
trap 'mark signal' USR1
say '{"type":"signal"}'
say '{"type":"hold","max_ms":60000,"id":"h"}'
answered h >/dev/null
touch "$marks/first"
await signal
say '{"type":"release"}'
sleep 600
EOS
  low=$(submit 5)
  pool_start --drain --type builder=1 --safe-point 50ms --grace 5s -x ./agent
  wait_until 10 test -e first
  submit 0 >/dev/null
  pool_end 0
  [ "$(state_of "$low") $(code_of "$low")" = "FAILED forced_preemption" ]
  grep -F "the agent reached no safe point" err
}

@test "an agent that reaches no safe point is ended: TERM, KILL of its tree, forced_preemption" {
  builder <<'EOS'
[ -e "$marks/first" ] && exit 0
trap '' TERM
(trap '' TERM; setsid sleep 600) &
touch "$marks/first"
sleep 600
EOS
  low=$(submit 5)
  pool_start --drain --type builder=1 --safe-point 50ms --grace 50ms -x ./agent
  wait_until 10 test -e first
  high=$(submit 0)
  pool_end 0
  is_state "$low" FAILED
  [ "$(code_of "$low")" = forced_preemption ]
  is_state "$high" DONE
  [[ $(states builder-1) == *"RUNNING FAILED RECOVERING RUNNABLE"* ]]
}

@test "a hold that is over is not deferred to" {
  builder <<'EOS'
[ -e "$marks/first" ] && exit 0
say '{"type":"hold","max_ms":200,"id":"h"}'
answered h >/dev/null
touch "$marks/first"
sleep 600
EOS
  low=$(submit 5)
  pool_start --drain --type builder=1 --safe-point 10ms --grace 5s -x ./agent
  wait_until 10 test -e first
  submit 0 >/dev/null
  pool_end 0
  [ "$(code_of "$low")" = forced_preemption ]
  grep -F "the agent's hold is over" err
}

@test "at a shutdown agents may finish; work that is not finished is reported and queued again" {
  builder <<'EOS'
case $AMP_AGENT in
*-1) touch "$marks/one"; await finish ;;
*-2) touch "$marks/two"; sleep 600 ;;
*) trap '' TERM; touch "$marks/three"; while :; do sleep 0.1; done ;;
esac
EOS
  a=$(submit 0) b=$(submit 0) c=$(submit 0) d=$(submit 0)
  pool_start --type builder=3 --shutdown 500ms --grace 100ms -x ./agent
  wait_until 10 test -e one
  wait_until 10 test -e two
  wait_until 10 test -e three
  kill -TERM "$POOL"
  wait_until 10 grep -q 'shutting down' err
  touch finish
  pool_end 75
  [ "$(for j in $a $b $c $d; do state_of "$j"; done | sort | paste -sd' ')" = "DONE QUEUED QUEUED QUEUED" ]
  [ "$(grep -c 'incomplete; queued again' err)" -eq 2 ]
  grep -F 'agent_shutdown_timeout' err
  [[ $(states builder-3) == *"SHUTTING_DOWN FAILED" ]]
  [[ $(states builder-1) == *"SHUTTING_DOWN" ]]
  # No lock is held.
  builder </dev/null
  pool --drain --type builder=3 -x ./agent
  [ "$(for j in $a $b $c $d; do state_of "$j"; done | sort -u)" = DONE ]
}

@test "shutdown ends pools by their names, and says when there is none" {
  builder <<'EOS'
sleep 600
EOS
  submit 0 >/dev/null
  pool_start --name alpha --type builder=1 --shutdown 0 --grace 5s -x ./agent
  wait_until 10 grep -qs '"to":"RUNNING"' "$STATE"/log/*.ndjson
  run -1 task-queue shutdown --state "$STATE" beta
  [[ $output == *unknown_pool* || $output == *"no such pool"* ]]
  task-queue shutdown --state "$STATE" alpha
  pool_end 75
  run -1 task-queue shutdown --state "$STATE"
}

@test "a usage limit parks the work until its end, and the agent waits for resources" {
  builder <<'EOS'
mark tries
if [ "$AMP_ATTEMPT" = 1 ] && [ ! -e "$marks/limited" ]; then
  touch "$marks/limited"
  say '{"type":"limit","retry_after_sec":1,"id":"l"}'
  answered l >/dev/null
  exit 75
fi
EOS
  a=$(submit 0)
  pool_start --drain --type builder=2 -x ./agent
  wait_until 10 is_state "$a" PARKED
  b=$(submit -5)
  pool_end 0
  [ "$(state_of "$a") $(state_of "$b")" = "DONE DONE" ]
  [ "$(wc -l <tries)" -eq 3 ]
  [[ $(states builder-1) == *"RUNNING WAITING_RESOURCES "* ]]
  until=$(sed -n 's/.*the account builder: no new work of it until //p' err)
  began=$(cat "$STATE"/log/*.ndjson | grep -E "\"key\":\"queue\.$b\".*\"to\":\"RUNNING\"" | grep -o '"at":"[^"]*"' | cut -d'"' -f4)
  [[ ! $began < $until ]]
}

@test "types share an account: no agent of it gets work, in any pool, also after a restart, until a person lifts the limit" {
  echo '{"queue":{"max_parallel":8,"types":{"builder":{"account":"plan"},"tester":{"account":"plan"}}}}' >amp.json
  builder <<'EOS'
if [ "$AMP_AGENT_TYPE" = builder ] && [ ! -e "$marks/limited" ]; then
  touch "$marks/limited"
  echo '{"retry_after_sec":6000}' >"$AMP_RESULT"
  exit 75
fi
EOS
  a=$(submit 0)
  pool_start --name alpha --type builder=2 -x ./agent
  wait_until 10 is_state "$a" PARKED
  # Another agent, another type of the same account, in another pool: they wait. One of another account does not.
  b=$(submit -5) c=$(submit -5 tester) d=$(submit 0 painter)
  pool --drain --name beta --type painter=1 -x ./agent
  is_state "$d" DONE
  job_of "$b" >waits
  job_of "$c" >>waits
  [ "$(grep -c '"waits":"usage_limit".*"until":"2' waits)" -eq 2 ]
  task-queue list --state "$STATE" --config amp.json >list
  [ "$(grep -c 'usage_limit until 2.*Z' list)" -eq 2 ]
  kill -9 "$POOL"
  ends 137 wait "$POOL"
  pool_start --name alpha --type builder=2 --type tester=1 --drain -x ./agent
  e=$(submit 0 painter)
  pool --drain --name beta --type painter=1 -x ./agent
  [ "$(state_of "$a") $(state_of "$b") $(state_of "$c") $(state_of "$e")" = "PARKED QUEUED QUEUED DONE" ]
  task-queue accounts --state "$STATE" --json >limits
  grep -E '^\{"account":"plan","until":"2.*,"agent":"builder-1"\}$' limits
  run -1 task-queue accounts --state "$STATE" --config amp.json --lift builder
  [[ $output == *unknown_account* || $output == *"has no usage limit"* ]]
  task-queue accounts --state "$STATE" --config amp.json --lift plan
  pool_end 0
  [ "$(state_of "$a") $(state_of "$b") $(state_of "$c")" = "DONE DONE DONE" ]
}

@test "an agent that waits says so, and one that waits too long for a resource is ended" {
  builder <<'EOS'
if [ "$AMP_ATTEMPT" = 1 ]; then
  say '{"type":"waiting","for":"event"}'
  say '{"type":"running"}'
  say '{"type":"waiting","for":"resource","detail":"disk"}'
  sleep 600
fi
EOS
  a=$(submit 0)
  pool --drain --type builder=1 --resource-timeout 200ms -x ./agent
  is_state "$a" DONE
  [[ $(states builder-1) == *"RUNNING WAITING RUNNING WAITING_RESOURCES"* ]]
  grep -F resource_timeout err
}

@test "what agents used is added up; a budget warns, and stops new work" {
  echo '{"budgets":{"day":{"tokens":1000,"usd":10}}}' >amp.json
  builder <<'EOS'
say '{"type":"usage","input_tokens":100,"output_tokens":1,"cost_usd":0.5,"id":"u"}'
answered u >/dev/null
echo '{"usage":{"input_tokens":700,"output_tokens":150,"cost_usd":1.25}}' >"$AMP_RESULT"
EOS
  a=$(submit 0) b=$(submit 1) c=$(submit 2)
  pool_start --type builder=1 -x ./agent
  wait_until 10 grep -q 'the budget of the day is spent' err
  kill -TERM "$POOL"
  pool_end 130
  [ "$(state_of "$a") $(state_of "$b") $(state_of "$c")" = "DONE DONE QUEUED" ]
  grep -F 'budget_warning: 80 % of the budget of the day' err
  grep -F '"cost_micros":2500000,"input_tokens":1400,"output_tokens":300' "$STATE"/log/*.ndjson
}

@test "a dispatch of AMP is carried out as by run: the commit, the result, the signed answer" {
  unset AMP_IDENTITY AMP_CONFINE
  need jq git
  workplace
  builder <<'EOS'
echo hello >hello.txt
echo evil >"$OUTSIDE" 2>/dev/null
echo '{"msg_id":"review_verdict-T-2026-001-1","protocol_version":"AMP/1.0","type":"review_verdict","from":"reviewer"}'
EOS
  export OUTSIDE=$BATS_TEST_TMPDIR/outside
  dispatch | submit_line 0 >id
  pool --drain --type builder=1 -x ./agent || {
    cat err >&2
    [ $? -eq 77 ] && skip "confinement is not available"
    false
  }
  is_state "$(cat id)" DONE
  [ "$(git -C "$REPO" show feat/x:hello.txt)" = hello ]
  [ ! -e outside ]
  jq -se 'map(select(.msg.type == "task_result")) | length == 1' out.ndjson
  jq -se 'map(select(.msg.type == "task_result"))[0] | .msg.payload.completion_status == "complete" and .sig.alg == "Ed25519"' out.ndjson
  # The verdict that the agent printed is nobody's.
  jq -se 'all(.[]; .msg.type != "review_verdict")' out.ndjson
}

@test "a dispatch whose place is taken keeps its worktree, and goes on there" {
  need jq git
  workplace
  builder <<'EOS'
[ -e "$AMP_WORKTREE/.git" ] || exit 0
if [ -e half.txt ]; then
  echo done >>half.txt
  exit 0
fi
echo half >half.txt
touch "$marks/first"
safe_points
sleep 600
EOS
  dispatch | submit_line 5 >id
  pool_start --drain --type builder=1 --safe-point 300ms -x ./agent
  wait_until 10 test -e first
  high=$(submit 0)
  pool_end 0
  is_state "$(cat id)" DONE
  is_state "$high" DONE
  [ "$(git -C "$REPO" show feat/x:half.txt | paste -sd' ')" = "half done" ]
  [ "$(git -C "$REPO" rev-list --count main..feat/x)" -eq 1 ]
}

@test "a job that is cancelled while an agent works on it ends, and its agent with it" {
  builder <<'EOS'
touch "$marks/first"
sleep 600
EOS
  a=$(submit 0)
  pool_start --drain --type builder=1 --safe-point 10ms -x ./agent
  wait_until 10 test -e first
  task-queue cancel --state "$STATE" "$a"
  pool_end 0
  is_state "$a" CANCELLED
}

@test "an idle pool makes no system call, and a submission wakes it" {
  need strace
  native "no leaks are detected under strace"
  builder <<'EOS'
:
EOS
  pool_start --type builder=4 --type reviewer=2 -x ./agent
  strace -f -o trace -p "$POOL" 3>&- &
  tracer=$!
  wait_until 20 quiet trace 0.8
  a=$(submit 0)
  wait_until 10 is_state "$a" DONE
  kill -TERM "$POOL"
  pool_end 130
  ends 0 wait "$tracer"
}
