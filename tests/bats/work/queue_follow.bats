#!/usr/bin/env bats
# Jobs that follow other jobs: submit --after.

setup() {
  load ../lib
  load ../agents
  load ../pools
  STATE=$BATS_TEST_TMPDIR/state
  cd "$BATS_TEST_TMPDIR"
  builder <<'EOS'
task=$(jq -r .payload.task_id "$AMP_MESSAGE")
echo "$task" >>"$marks/ran"
[ ! -e "$marks/fails-$task" ] || exit 1
EOS
}

teardown() {
  pool_kill
}

# line TASK: a message that asks for this work.
line() {
  local id work
  id=$(printf '%08x-0000-4000-8000-%012d' $((RANDOM * 32768 + RANDOM)) "$((${EPOCHREALTIME/[.,]/} % 1000000000000))")
  work="{\"task_id\":\"$1\",\"params\":{},\"scope\":[\"res-$1\"]}"
  echo "{\"message_id\":\"$id\",\"producer_id\":\"cli\",\"correlation_id\":\"$id\",\"sequence_number\":${EPOCHREALTIME/[.,]/}," \
    "\"retry_count\":0,\"message_type\":\"DATA\",\"content_type\":\"application/json\",\"content_length\":${#work},\"payload\":$work}"
}
# item TASK [OPTION...]: submits it; prints the id of its job.
item() {
  local task=$1
  shift
  line "$task" | task-queue submit --state "$STATE" --type builder "$@" >submitted || return
  submitted_id
}
ran() { paste -sd' ' ran; }

@test "a job starts when those that it follows have ended, whatever its priority is" {
  a=$(item a --priority 10)
  b=$(item b --priority 20)
  c=$(item c --priority -19 --after "$a" --after "$b")
  d=$(item d --priority -19 --after "$c")
  run -0 task-queue list --state "$STATE" --json
  [ "$(jq -r --arg c "$c" 'select(.id == $c) | .waits + " " + .behind' <<<"$output")" = "follows $a" ]
  [ "$(jq -r --arg d "$d" 'select(.id == $d) | .waits + " " + .behind' <<<"$output")" = "follows $c" ]
  run -0 task-queue show --state "$STATE" "$c"
  [ "$(jq -r 'select(.follows) | .follows' <<<"${lines[0]}")" = "$a $b" ]
  pool --drain --type builder=3 -x ./agent
  [[ $(ran) == "a b c d" || $(ran) == "b a c d" ]]
  # They have ended: it is ready at once.
  item e --after "$a" --no-queue
}

@test "a predecessor fails: the job fails with an answer, is skipped, or starts" {
  touch fails-a
  a=$(item a)
  fails=$(item f --after "$a")
  skipped=$(item s --after "$a" --on-failed skip)
  starts=$(item g --after "$a" --on-failed start)
  behind=$(item h --after "$skipped")
  pool --drain --type builder=2 -x ./agent
  [ "$(ran)" = "a g" ]
  is_state "$a" FAILED
  is_state "$fails" FAILED
  [ "$(code_of "$fails")" = predecessor_failed ]
  is_state "$skipped" CANCELLED
  is_state "$starts" DONE
  is_state "$behind" FAILED
  # Its sender gets an answer in the protocol of the message.
  [ "$(grep -c predecessor_failed out.ndjson)" -ge 2 ]
}

@test "unknown jobs, cycles and wrong words are refused, and leave nothing" {
  run -64 --separate-stderr item x --after a/b
  run -64 --separate-stderr item x --on-failed perhaps
  [[ $stderr == *"--on-failed perhaps: expected fail, skip or start"* ]]
  run -1 --separate-stderr item x --after 0123456789abcdef0123456789abcdef
  [[ $(cat submitted) == *'"code":"unknown_job"'* ]]
  # The same work again, behind what follows it.
  a=$(item a)
  b=$(item b --after "$a")
  c=$(item c --after "$b")
  task-queue cancel --state "$STATE" "$a"
  run -1 --separate-stderr item a --after "$c"
  [[ $(cat submitted) == *'"code":"follow_cycle"'*"job $a follows itself: $a before $b before $c"* ]]
  is_state "$a" CANCELLED
  run -1 --separate-stderr item d --after "$b" --no-queue
  [[ $(cat submitted) == *'"code":"follows"'* ]]
}

@test "a pool that is killed between two jobs of a chain: each is done once, in order" {
  prev=$(item t0)
  for i in 1 2 3 4 5 6 7; do prev=$(item "t$i" --after "$prev"); done
  pool_start --drain --type builder=2 -x ./agent
  for i in 1 3 5; do
    wait_until 20 grep -qsx "t$i" ran
    kill -9 "$POOL"
    pool_start --drain --type builder=2 -x ./agent
  done
  pool_end 0
  is_state "$prev" DONE
  # An attempt that was killed may have run twice, never before its predecessor.
  uniq ran | paste -sd' ' | grep -qx 't0 t1 t2 t3 t4 t5 t6 t7'
}
