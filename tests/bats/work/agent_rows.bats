#!/usr/bin/env bats
# The rows of the agent machine, through the worker: what is killed, stopped, suspended or ended between two steps.

setup() {
  load ../lib
  load ../agents
  need jq git
  need_tool task-dispatch hitl-prompt amp-ack
  shim=$AMP_BUILD/tests/fault/faildisk.so
  [ -e "$shim" ]
  native "a preloaded shim must come first"
  workplace
  mkfifo in
  echo resume >answers
  : >err
}

teardown() {
  [ -z "${pid-}" ] || kill -9 "$pid" 2>/dev/null || :
  [ ! -s "$STATE/child" ] || kill -9 "$(cat "$STATE/child")" 2>/dev/null || :
}

# work N: the coordinator's dispatch of task N, on a branch of its own.
work() {
  local line
  line=$(dispatch)
  line=${line//T-2026-001/T-2026-00$1}
  line=${line/'"from":"coordinator","to":"executor"'/'"from":"admin","to":"coordinator"'}
  run -75 --separate-stderr task-dispatch coordinate --state "$STATE" <<<"${line/feat\/x/feat\/$1}"
  grep -F '"type":"task_dispatch"' <<<"$output"
}
# step FROM EVENT: how the log has it.
step() { echo "\"from\":\"$1\",\"event\":\"$2\""; }
# took N FROM EVENT: the agent has taken the step so often.
took() { [ "$(cat "$STATE"/log/0*.ndjson | grep -c "$(step "$2" "$3")")" -ge "$1" ]; }
# pauses N: so often it was suspended in the middle of its work.
pauses() { [ "$(cat "$STATE"/log/0*.ndjson | grep -c '"event":"suspend","to":"SUSPENDED"')" -ge "$1" ]; }
# faulty HOW FROM EVENT [OPTION...]: a worker to which this happens when it writes the step.
faulty() {
  AMP_FAULT_MATCH=log/0 AMP_FAULT_ROOT=$STATE AMP_FAULT=write:1:$1 AMP_FAULT_TEXT=$(step "$2" "$3") LD_PRELOAD=$shim \
    task-dispatch run --state "$STATE" "${@:4}" --exec ./agent >>out.ndjson 2>>err
}
killed() { run -137 faulty KILL "$@"; }
# starts COMMAND...: in the background, its input is descriptor 4.
starts() {
  exec 4<>in
  "$@" 3>&- 4>&- &
  pid=$!
}
worker() { exec task-dispatch run --state "$STATE" --in in "$@" --exec ./agent >>out.ndjson 2>>err; }
# at HOW FROM EVENT [OPTION...]: a worker that gets the signal when it writes the step.
at() {
  AMP_FAULT_MATCH=log/0 AMP_FAULT_ROOT=$STATE AMP_FAULT=write:1:$1 AMP_FAULT_TEXT=$(step "$2" "$3") LD_PRELOAD=$shim \
    worker "${@:4}"
}
stopping() { at STOP "$@"; }
worker_ends() {
  kill "-$1" "$pid"
  exec 4>&-
  wait "$pid" || :
}
stopped() { grep -q '^State:[[:space:]]*T' "/proc/$pid/status"; }
# suspend N: an escalation that suspends the agent, not its task N.
suspend() {
  local line
  line=$(escalation '.payload.severity = "warning" | .payload.triggered_by = "executor"')
  run -1 hitl-prompt --state "$STATE" --answer /dev/null <<<"${line//T-2026-001/T-2026-00$1}"
}
# lift: the admin decides that the work goes on; the coordinator's new dispatch in $again.
lift() {
  hitl-prompt --state "$STATE" --answer answers </dev/null >decision
  run -75 --separate-stderr task-dispatch coordinate --state "$STATE" <decision
  [[ $stderr != *refused* ]]
  again=$(grep -F '"type":"task_dispatch"' <<<"$output")
}
# held N: so many jobs were found to wait for a decision.
held() { [ "$(grep -c ' waits: task ' err)" -ge "$1" ]; }
# swept TIME CODE: a sweep so much later finds that the agent's limit passed.
swept() {
  amp-ack sweep --state "$STATE" --now "$(date -u -d "$1" +%FT%TZ)" >told
  grep -q "\"error_code\":\"$2\"" told
}

@test "an agent that is killed between two steps begins anew; one that nobody begins fails by its limit" {
  agent agent <<'EOS'
[ -e "$AMP_STATE/fails" ] || { echo x >>x && exit 0; }
exit 1
EOS
  killed SCHEDULED start < <(work 1)
  killed COMPLETED ready </dev/null
  took 1 RUNNING complete
  killed RUNNABLE shutdown </dev/null
  touch "$STATE/fails"
  killed RECOVERING ready < <(work 2)
  killed RECOVERING ready < <(work 3)
  swept "10 minutes" recovery_timeout
  # From FAILED; and it is asked to end while it recovers.
  run -130 faulty TERM RUNNING fail < <(work 4)
  took 1 RECOVERING shutdown
  killed SHUTTING_DOWN exit </dev/null
  swept "20 minutes" agent_shutdown_timeout
  [ "$(cat "$STATE"/log/0*.ndjson | grep -oE '"from":"[A-Z_]*","event":"begin"' | cut -d'"' -f4 | tr '\n' ' ')" = \
    "SCHEDULED COMPLETED RUNNABLE RECOVERING FAILED SHUTTING_DOWN " ]
}

# waits STATE EVENT SOON LATE: an agent that waits so takes other work, ends, begins anew, and is held by a suspension.
waits() {
  agent agent <<'EOS'
[ -e "${0%/*}/answer" ] || { echo x >>x && exit 0; }
cat "${0%/*}/answer" >"$AMP_RESULT"
exit 75
EOS
  echo "$4" >answer
  starts worker --pause 1h
  work 1 >&4
  wait_until 30 took 1 RUNNING "$2"
  worker_ends KILL
  starts worker --pause 1h
  work 2 >&4
  wait_until 30 took 2 RUNNING "$2"
  work 3 >&4
  wait_until 30 took 3 RUNNING "$2"
  worker_ends TERM
  took 1 "$1" begin
  took 1 "$1" assign
  took 1 "$1" shutdown

  echo "$3" >answer
  starts stopping RUNNING "$2" --pause 1s
  work 4 >&4
  wait_until 30 stopped
  # A run of the coordinator would lift the suspension.
  work 5 >next
  suspend 4
  rm answer
  cat next >&4
  kill -CONT "$pid"
  wait_until 30 held 2
  run -1 grep -s '"completion_status"' out.ndjson
  lift
  echo "$again" >&4
  wait_until 30 took 2 RUNNING complete
  worker_ends TERM
}

@test "an agent that waits takes other work, and none while it is suspended" {
  waits WAITING wait '{}' '{}'
}

@test "an agent that waits for a usage limit takes other work, and none while it is suspended" {
  waits WAITING_RESOURCES lack '{"retry_after_sec": 1}' '{"retry_after_sec": 3600}'
}

@test "an agent that waits for a usage limit goes on when it ends" {
  agent agent <<'EOS'
[ ! -e "${0%/*}/asked" ] || { echo x >>x && exit 0; }
touch "${0%/*}/asked"
echo '{"retry_after_sec": 1}' >"$AMP_RESULT"
exit 75
EOS
  task-dispatch run --state "$STATE" --exec ./agent < <(work 1) >out.ndjson 2>err
  took 1 RUNNING lack
  took 1 WAITING_RESOURCES start
  grep -q '"completion_status":"complete"' out.ndjson
}

@test "a suspended agent goes on when it may, in each state on the way; killed, it fails by its limit" {
  agent agent <<'EOS'
echo $$ >"$AMP_STATE/child"
exec sleep 1000
EOS
  starts stopping SUSPENDED resume --grace 100ms
  work 1 >&4
  wait_until 30 took 1 SCHEDULED start
  suspend 1
  wait_until 30 pauses 1
  wait_until 30 held 1
  lift
  echo "$again" >&4
  wait_until 30 stopped
  suspend 1
  kill -CONT "$pid"
  wait_until 30 held 2
  run -1 took 1 RESUMED start
  lift
  echo "$again" >&4
  wait_until 30 took 1 RESUMED start
  suspend 1
  wait_until 30 pauses 2
  worker_ends KILL
  swept "2 hours" suspend_timeout
}

@test "an agent that is killed while it is suspended, or as it goes on, begins anew" {
  agent agent <<'EOS'
echo $$ >"$AMP_STATE/child"
[ ! -e "${0%/*}/free" ] || { echo x >>x && exit 0; }
exec sleep 1000
EOS
  starts worker --grace 100ms
  work 1 >&4
  wait_until 30 took 1 SCHEDULED start
  suspend 1
  wait_until 30 pauses 1
  worker_ends KILL
  lift
  starts at KILL RESUMED start --grace 100ms
  echo "$again" >&4
  wait_until 30 took 2 SCHEDULED start
  suspend 1
  wait_until 30 pauses 2
  lift
  echo "$again" >&4
  exec 4>&-
  rc=0
  wait "$pid" || rc=$?
  [ $rc -eq 137 ]
  touch free
  # The worker may have been killed before it read this.
  task-dispatch run --state "$STATE" --exec ./agent <<<"$again" >>out.ndjson 2>>err
  took 1 SUSPENDED begin
  took 1 RESUMED begin
  grep -q '"completion_status":"complete"' out.ndjson
}

@test "a suspension between an assignment and its start holds the agent; asked to end, it gives the task back" {
  agent agent <<<'echo x >>x'
  starts stopping RUNNABLE assign
  work 1 >&4
  wait_until 30 stopped
  suspend 1
  kill -CONT "$pid"
  wait_until 30 held 1
  worker_ends TERM
  took 1 SCHEDULED shutdown
  run -1 took 1 SCHEDULED start
}

@test "asked to end while its output has no reader, an agent is not reported as one that failed to begin" {
  agent agent <<<'echo x >>x'
  mkfifo out
  work 1 >line
  task-dispatch run --state "$STATE" --in line --out out --exec ./agent 2>>err 3>&- &
  pid=$!
  begun() { grep -qs '"to":"INITIALIZING"' "$STATE"/log/*; }
  wait_until 30 begun
  rc=0
  kill "$pid"
  wait "$pid" || rc=$?
  [ $rc -eq 130 ]
  took 1 INITIALIZING shutdown
  took 1 SHUTTING_DOWN exit
  amp-ack sweep --state "$STATE" --now "$(date -u -d "10 minutes" +%FT%TZ)" >told
  run -1 grep agent_failed told
}
