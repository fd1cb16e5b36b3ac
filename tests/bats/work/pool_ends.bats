# How jobs leave an agent that is asked to stop, for each way to end an attempt, and that the end of a pool leaves nothing
# behind.
# plain: pool.bats runs the same code
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

# started N: that many agents have begun.
started() { [ "$(cat started 2>/dev/null | wc -l)" -ge "$1" ]; }
# verb VERB NAME...: about the jobs whose ids are in these files.
verb() {
  local n ids=()
  for n in "${@:2}"; do ids+=("$(cat "id-$n")"); done
  task-queue "$1" --state "$STATE" "${ids[@]}"
}
# left_as NAME...: their states, on one line.
left_as() {
  local n
  for n in "$@"; do state_of "$(cat "id-$n")"; done | paste -sd' '
}

@test "a job whose place is wanted, or that is cancelled, ends as its agent does" {
  # p…: preempted, c…: cancelled; …d: done, …y: at a safe point, …f: by force, …p: by a usage limit, …x: with a failure.
  builder <<'EOS'
[ "$AMP_ATTEMPT" = 1 ] || exit 0
if [[ $AMP_AGENT_TYPE != ?f ]]; then
  say '{"type":"hold","max_ms":60000,"id":"h"}'
  answered h >/dev/null
fi
mark started
[[ $AMP_AGENT_TYPE = ?f ]] && sleep 600
await go
case $AMP_AGENT_TYPE in
?d) exit 0 ;;
?y) say '{"type":"release"}'; safe_points; exit 75 ;;
?p) say '{"type":"limit","retry_after_sec":1,"id":"l"}'; answered l >/dev/null; exit 75 ;;
?x) exit 3 ;;
esac
EOS
  types=(pd py pf pp px cd cy cf cp cx)
  for t in "${types[@]}"; do
    submit 0 "$t" >"id-$t"
    args+=(--type "$t=1")
  done
  pool_start --drain "${args[@]}" --safe-point 2s --grace 200ms -x ./agent
  wait_until 10 started 10
  verb preempt pd py pf pp px cy
  verb preempt py
  verb cancel cd cy cf cp cx
  asked() { [ "$(grep -c 'is asked to stop' err)" -eq 10 ]; }
  wait_until 10 asked
  touch go
  pool_end 0
  [ "$(left_as pd py pf pp px)" = "DONE DONE FAILED DONE FAILED" ]
  [ "$(left_as cd cy cf cp cx)" = "DONE CANCELLED CANCELLED CANCELLED CANCELLED" ]
  [ "$(code_of "$(cat id-pf)") $(code_of "$(cat id-px)")" = "forced_preemption task_failed" ]
}

@test "jobs of a pool that shuts down or is killed wait again, unless they were cancelled or lost too often" {
  echo '{"queue":{"max_parallel":8,"losses":2}}' >amp.json
  builder <<'EOS'
say '{"type":"hold","max_ms":60000,"id":"h"}'
answered h >/dev/null
mark started
[ -e "$marks/go" ] || sleep 600
EOS
  for t in plain wanted ended; do
    submit 0 "$t" >"id-$t"
    args+=(--type "$t=1")
  done
  pool_start "${args[@]}" --safe-point 1m --grace 5s --shutdown 0 -x ./agent
  wait_until 10 started 3
  verb preempt wanted
  verb cancel ended
  asked() { [ "$(grep -c 'is asked to stop' err)" -eq "$1" ]; }
  wait_until 10 asked 2
  task-queue shutdown --no-wait --state "$STATE"
  kill -TERM "$POOL"
  pool_end 75
  [ "$(left_as plain wanted ended)" = "QUEUED QUEUED CANCELLED" ]
  # Killed: the next pool takes what it had.
  submit 0 other >id-other
  rm started
  pool_start --type plain=1 --type wanted=1 --type other=1 --safe-point 1m --grace 5s -x ./agent
  wait_until 10 started 3
  verb preempt wanted
  verb cancel other
  wait_until 10 asked 2
  kill -9 "$POOL"
  ends 137 wait "$POOL"
  rm started
  pool_start --type plain=1 --type wanted=1 --safe-point 1m --grace 5s -x ./agent
  wait_until 10 started 2
  [ "$(left_as other)" = CANCELLED ]
  verb preempt wanted
  wait_until 10 asked 1
  kill -9 "$POOL"
  ends 137 wait "$POOL"
  touch go
  pool --drain --type plain=1 --type wanted=1 -x ./agent
  [ "$(left_as plain wanted)" = "FAILED FAILED" ]
  [ "$(code_of "$(cat id-plain)") $(code_of "$(cat id-wanted)")" = "worker_lost worker_lost" ]
  [ -z "$(attempts_left)" ]
}

# lose TIMES ARGS...: one pool after another with these arguments is killed while its agents are at work on all jobs.
lose() {
  local i jobs
  jobs=$(task-queue list --state "$STATE" --json | wc -l)
  rm -f started
  for ((i = 1; i <= $1; i++)); do
    pool_start "${@:2}" -x ./agent
    wait_until 20 started $((i * jobs))
    kill -9 "$POOL"
    ends 137 wait "$POOL"
    cat out.ndjson >>said
  done
}

@test "a job of any protocol whose pools are killed as often as allowed ends with one answer, and without another attempt" {
  need jq git
  load ../session
  sessions
  done_work
  jq '.queue = {losses: 2}' amp.json >with && mv with amp.json
  agent-registry register worker-1 --connector x:y --state "$STATE" >registered
  {
    submit 0 plain
    dispatch '.task_id = "T-2026-002" | .msg_id = "task_dispatch-T-2026-002-1" | .payload.branch = "feat/y"' | submit_line 0 coder
    review | submit_line 0 reviewer
    jq -c --arg now "$(date -u +%FT%TZ)" '.kind = "task_create" | .createdAt = $now | .payload = {taskId: "tsk_1", title: "T",
      description: "D", toAgents: ["worker-1"], priority: "high", requesterAgentId: "architect", responseRequired: true}
      | .trace = {attempt: 1, routingPolicyVersion: "rpv_1", capabilityPolicyVersion: "cpv_1"}' <<'EOS' | submit_line 0 worker
{"eventId": "evt_1", "seq": 1, "sourceNodeId": "vps", "sourceAgentId": "architect", "corrId": "corr_1"}
EOS
    task "echo 1 >>$PWD/started; sleep 600" >in
    task-queue submit --state "$STATE" --config amp.json <in >submitted
    submitted_id
  } >ids
  builder <<'EOS'
mark started
exec sleep 600
EOS
  types=(--type plain=1 --type coder=1 --type reviewer=1 --type worker=1 --type Emma=1)
  lose 2 "${types[@]}"
  # The last loss is released like any other. Nothing was said about the end yet.
  amp-ack sweep --state "$STATE" >swept
  task-queue list --state "$STATE" --json >jobs
  [ "$(jq -c '[.state, .losses]' jobs | sort | uniq -c | xargs)" = '5 [QUEUED,2]' ]
  run -0 amp-ack doctor --state "$STATE" --skip peers --skip hooks
  [[ $output != *"was killed"* ]]
  pool --drain "${types[@]}" -x ./agent
  [ "$(wc -l <started)" -eq 10 ]
  task-queue list --state "$STATE" --all --json >jobs
  jq -r '"\(.type) \(.state) \(.code)"' jobs | sort | diff - <(
    echo Emma FAILED E_PROCESS_CRASH
    echo coder FAILED worker_lost
    echo plain FAILED worker_lost
    echo reviewer FAILED worker_lost
    echo worker FAILED worker_lost
  )
  cat out.ndjson >>said
  jq -r '(.msg // .) | .payload as $p |
    "\(.message_type // .type // .kind) \($p.ack_stage? // $p.completion_status? // $p.failureClass? // .failed_stage // .task_status.state // $p.ackType? // "")"' said | sort | diff - <(
    echo "ACKNOWLEDGEMENT FAILED"
    echo "RESPONSE FAILED"
    echo "ack processed"
    echo "nack FAILED"
    echo "task_accept "
    echo "task_failed execution_error"
    echo "task_result failed"
  )
  # Another pool has nothing to do, and repeats at most lines that were not acknowledged.
  pool --drain "${types[@]}" -x ./agent
  [ -z "$(grep -vxFf said out.ndjson)" ]
  [ "$(wc -l <started)" -eq 10 ]
  [ -z "$(attempts_left)" ]
}

@test "a job that its agent answered before its pool was killed ends as the answer says, without another attempt" {
  need jq
  builder <<'EOS'
mark started
exec sleep 600
EOS
  submit 0 good >id-good
  submit 0 bad >id-bad
  lose 1 --type good=1 --type bad=1
  message() { job_of "$(cat "id-$1")" | jq -r .message; }
  amp-ack complete "$(message good)" --as good-1 --state "$STATE" >answers
  amp-ack fail "$(message bad)" --as bad-1 --code no_data --state "$STATE" >>answers
  [ "$(wc -l <answers)" -eq 2 ]
  pool --drain --type good=1 --type bad=1 -x ./agent
  [ ! -s out.ndjson ]
  [ "$(wc -l <started)" -eq 2 ]
  [ "$(left_as good bad)" = "DONE FAILED" ]
  [ "$(job_of "$(cat id-bad)" | jq -r .code)" = INTERNAL_ERROR ]
}

# traces: what refers to the state directory: processes by their environment, arguments, directories or open files;
# locks that are held; worktrees and unfinished attempts.
traces() {
  local f found
  found=$(grep -lsF "$STATE" /proc/[0-9]*/environ /proc/[0-9]*/cmdline)
  for f in $found; do
    f=${f#/proc/}
    gone "${f%/*}" || echo "process ${f%/*}"
  done
  find /proc/[0-9]*/cwd /proc/[0-9]*/fd -maxdepth 1 -lname "$STATE/*" 2>/dev/null
  for f in "$STATE"/run/*.lock; do
    flock -n "$f" true || echo "locked: $f"
  done
  find "$STATE/run" -mindepth 1 -type p -o -path '*/git/*' -o -name '*.scratch*'
  git -C "$REPO" worktree list --porcelain | grep -c ^worktree | grep -vx 1
  ls "$REPO.worktrees" 2>/dev/null
  awk -v s="$STATE" -v r="$REPO" 'index($5, s) == 1 || index($5, r) == 1' /proc/self/mountinfo
}

@test "a pool that ends by any signal, a second one or a closed output leaves no process, file, lock, mount or worktree" {
  unset AMP_CONFINE
  need git flock
  workplace
  builder <<'EOS'
trap '' TERM
(setsid sh -c 'trap "" TERM HUP; sleep 600' >/dev/null 2>&1 &)
say '{"type":"heartbeat","id":"h"}'
while :; do sleep 0.1; done
EOS
  task() { submit 0 >id-plain; }
  work() { dispatch | sed "s/T-2026-001/T-2026-10$1/g" | submit_line 0 >id-git; }
  # answers N: as many agents had an answer, or the pool has ended.
  answers() { [ "$(find "$STATE/run" -name answer-h.json | wc -l)" -ge "$1" ] || gone "$POOL"; }
  n=0
  for how in TERM INT HUP twice closed; do
    n=$((n + 1))
    task && work $n
    mkfifo "out-$how"
    cat "out-$how" >out.ndjson &
    reader=$!
    env --default-signal=INT,HUP task-queue work --state "$STATE" --config "$(config)" --type builder=2 --safe-point 10s --grace 100ms \
      --shutdown "$([ "$how" = twice ] && echo 1m || echo 0)" -x ./agent >"out-$how" 2>err 3>&- &
    POOL=$!
    wait_until 10 answers $((2 * n))
    ! grep -q confinement_unavailable err || skip "confinement is not available"
    ! gone "$POOL"
    case $how in
    twice)
      kill -TERM "$POOL"
      wait_until 10 grep -q 'shutting down' err
      kill -TERM "$POOL"
      ;;
    closed) kill "$reader" ;;
    *) kill -s "$how" "$POOL" ;;
    esac
    ends 75 wait "$POOL"
    wait "$reader" || true
    traces >"traces-$how" || true
    diff /dev/null "traces-$how"
    task-queue cancel --state "$STATE" "$(cat id-plain)" "$(cat id-git)"
  done
}

@test "a sweep releases what a killed pool or a killed run had: its jobs, its record and its agents" {
  export AMP_CONFINE=off
  workplace
  builder <<'EOS'
mark started
exec sleep 600
EOS
  submit 0 builder >id-plain
  pool_start --type builder=1 -x ./agent
  wait_until 10 started 1
  dispatch >in.ndjson
  task-dispatch run --state "$STATE" -x ./agent <in.ndjson >run.ndjson 2>run.err 3>&- &
  run_pid=$!
  wait_until 10 started 2
  status() { task-queue status --state "$STATE" --json; }
  [[ $(status) != *'"lost":true'* ]]
  [[ $(amp-ack doctor --state "$STATE" --skip peers --skip hooks) != *"was killed"* ]]
  amp-ack sweep --state "$STATE" >none
  [ ! -s none ]
  kill -9 "$POOL" "$run_pid"
  ends 137 wait "$POOL"
  ends 137 wait "$run_pid"
  [ "$(left_as plain)" = RUNNING ]
  status >now
  grep -q '"state":"lost","pid":'"$POOL" now
  [ "$(grep -o '"lost":true' now | wc -l)" -eq 2 ]
  amp-ack doctor --state "$STATE" --skip peers --skip hooks >found || [ $? -eq 1 ]
  [ "$(grep -c 'the process of .* was killed' found)" -eq 3 ]
  [ "$(grep -c "fix: amp-ack sweep --state $STATE" found)" -eq 3 ]
  amp-ack sweep --state "$STATE" >told
  [ "$(left_as plain)" = QUEUED ]
  [ "$(grep -c '"error_code":"worker_lost"' told)" -eq 2 ]
  [ "$(states builder-1 | sed 's/.* //') $(states executor | sed 's/.* //')" = "FAILED FAILED" ]
  status >now
  ! grep -q '"lost"' now || false
  ! grep -q '"worker":"' now || false
  amp-ack sweep --state "$STATE" >none
  [ ! -s none ]
  [ -z "$(attempts_left)" ]
}

# failing FAULT COMMAND...: that call on the log fails; the status in $status.
failing() {
  status=0
  AMP_FAULT_MATCH=log/0 AMP_FAULT_ROOT=$STATE AMP_FAULT=$1 LD_PRELOAD=$AMP_BUILD/tests/fault/faildisk.so "${@:2}" || status=$?
}
# told WORD: how often the sender gets an answer with it, from either pool.
told() { cat out.1 out.ndjson | grep -c "^{.*\"$1\".*}$" || true; }

@test "an answer and the end of its job are one turn: cut off behind any line of it, both are there or none" {
  native "a preloaded shim must come first"
  local how l points=0 word state worth next text
  builder <<'EOS'
mark ran
exit "$(cat "$marks/worth")"
EOS
  submit 0 >id
  cp -R state full
  # Next: an event of the agent, in the write after the turn.
  for word in 'FULFILLED DONE 0 "from":"RUNNING","event":"complete"' 'FAILED FAILED 3 "event":"recover"'; do
    read -r word state worth next <<<"$word"
    echo "$worth" >worth
    for how in TORN SHORT KILL; do
      for ((l = 1; l < 20; l++)); do
        rm -rf state ran
        cp -R full state
        text='"key":"reply.'
        [ $how != KILL ] || text=$next
        AMP_FAULT_TEXT=$text AMP_FAULT_LINES=$l failing write:1:$how pool --drain --type builder=1 -x ./agent
        [ "$status" -ge 75 ] || break
        points=$((points + 1))
        cp out.ndjson out.1
        if [ $how = SHORT ]; then
          [ "$status" -eq 75 ]
          amp-ack repair --state state 2>said
        else
          [ "$status" -eq 137 ]
        fi
        pool --drain --type builder=1 -x ./agent
        echo "$how $l: $(wc -l <ran) runs, $(state_of "$(cat id)"), $(cat out.1 out.ndjson)"
        is_state "$(cat id)" "$state"
        [ "$(told "$word")" -eq 1 ]
        # Without the answer the work is done again, with it never.
        [ "$(wc -l <ran)" -eq $([ $how = KILL ] && echo 1 || echo 2) ]
        [ $how != KILL ] || break
      done
    done
  done
  echo "# $points points" >&3
  [ "$points" -ge 10 ]
}

@test "a watch learns that an agent was killed, also if nothing else happens" {
  export AMP_CONFINE=off
  workplace
  builder <<'EOS'
mark started
exec sleep 600
EOS
  dispatch >in.ndjson
  task-dispatch run --state "$STATE" -x ./agent <in.ndjson >run.ndjson 2>run.err 3>&- &
  run_pid=$!
  wait_until 10 started 1
  amp-ack watch --state "$STATE" >told 2>watch.err 3>&- &
  watch_pid=$!
  # It looks; then only the kill happens.
  wait_until 10 bash -c "ls /proc/$watch_pid/fd 2>/dev/null | xargs -I{} readlink /proc/$watch_pid/fd/{} | grep -q inotify"
  kill -9 "$run_pid"
  ends 137 wait "$run_pid"
  wait_until 30 grep -q '"error_code":"worker_lost"' told
  kill "$watch_pid"
  ends 130 wait "$watch_pid"
}
