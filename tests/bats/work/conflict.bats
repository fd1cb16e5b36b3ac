#!/usr/bin/env bats
# Jobs whose scopes overlap: a command judges them, a person is asked, a person overrides; else one after the other. # long

load ../lib
load ../pools
load ../agents

setup() {
  cd "$BATS_TEST_TMPDIR" || return
  STATE=$PWD/st
  ME=$(id -un)
  export AMP_CONFIG=$PWD/amp.json
  echo '{}' >amp.json
}

teardown() {
  touch go
  pool_kill
}

# job N SCOPE [OPTION...]: submits the task t-N with a scope; prints the job's id. The work is the same for the same N.
job() {
  local work="{\"task_id\":\"t-$1\",\"params\":{},\"scope\":[\"$2\"]}"
  local us=${EPOCHREALTIME/[.,]/}
  N=$((${N:-0} + 1))
  printf '{"message_id":"%08x-0000-4000-8000-%s","producer_id":"cli","correlation_id":"c","sequence_number":%d,"retry_count":0,"message_type":"DATA","content_type":"application/json","content_length":%d,"payload":%s}\n' \
    "$1" "${us: -12}" "$N" ${#work} "$work" >"line-$1"
  task-queue submit --state "$STATE" --type builder "${@:3}" <"line-$1" >submitted || return
  submitted_id
}
# jobs SCOPE...: two jobs for each scope, t-1a and t-1b …; their ids in A[1], B[1] …
jobs() {
  local i=0 s
  for s in "$@"; do
    i=$((i + 1))
    A[i]=$(job "${i}1" "$s")
    B[i]=$(job "${i}2" "$s")
  done
}
# waits_for N: the second job of a pair waits for a person.
asked() { [[ $(job_of "${B[$1]}") == *'"waits":"conflict"'*'"state":"ASKED"'* ]]; }
pair_is() { [[ $(job_of "$1") == *"\"conflicts\":[{"*"\"state\":\"$2\""* ]]; }
has() { [[ $(job_of "$1") == *"$2"* ]]; }
question_of() { job_of "$1" | grep -o '"question":"[^"]*"' | cut -d'"' -f4; }
answer() { hitl-prompt answer --state "$STATE" "$(question_of "${B[$1]}")" "$2" "${@:3}" >>answers; }
# worked N: the builder began or ended t-N.
worked() { grep -qx "$1" marks; }

# other_login: a job of another login, in $c.
other_login() {
  [ "$(unshare -U --map-user=1 id -un 2>/dev/null)" = daemon ] || skip "no user namespaces: there is no other login"
  sed 's/"t-3"/"t-4"/; s/"message_id":"0/"message_id":"4/' line-3 >line-4
  c=$(AMP_IDENTITY=off unshare -U --map-user=1 task-queue submit --state "$STATE" --type builder <line-4 | sed -n 's/.*"id":"\([0-9a-f]*\)".*/\1/p')
  [[ $(job_of "$c") == *'"by":"daemon"'* ]]
}

# An agent that works until `go` exists, stops at a safe point if it is asked, and says what it does.
slow() {
  builder <<'EOS'
echo "begin $AMP_TASK_ID $AMP_ATTEMPT" >>"$marks/marks"
until [ -e "$marks/go" ] || [ -e "$marks/go-$AMP_TASK_ID" ]; do
  stop_asked && exit 75
  nap 0.1
done
echo "end $AMP_TASK_ID" >>"$marks/marks"
EOS
}

@test "a person is asked about each conflict, with the evidence, and the answer is carried out" {
  slow
  echo '{"queue":{"max_parallel":16,"overlap":"ask"}}' >amp.json
  jobs r1 r2 r3 r4 r5 r6 r7
  pool_start --drain --type builder=14 --safe-point 10s -x ./agent
  for i in 1 2 3 4 5 6 7; do wait_until 20 asked $i; done
  # The evidence: both jobs, their scopes, who submitted them, what overlaps.
  hitl-prompt show --state "$STATE" --json "$(question_of "${B[1]}")" >question
  for text in "\"id\":\"${A[1]}\"" "\"id\":\"${B[1]}\"" '"scope":{"resources":["r1"]}' "\"by\":\"$ME\"" '"from":"cli"' \
    '"overlap":{"resources":["r1"]}' CONFLICT; do
    grep -qF "$text" question
  done
  # Its own words, and the line for a prompt elsewhere.
  hitl-prompt list --state "$STATE" --json >list
  [ "$(head -n 1 list | jq -r '.proposed | join(" ")')" = "parallel running_first waiting_first cancel_running cancel_waiting" ]
  [ "$(hitl-prompt list --state "$STATE" | grep -c 'parallel, running_first')" -eq 7 ]
  invoked() { [ "$(jq -r '(.msg // .) | select(.message_type == "HITL_INVOCATION").payload.invocation_id' out.ndjson | sort -u | wc -l)" -eq 7 ]; }
  wait_until 10 invoked
  answer 1 parallel 'other modules'
  answer 2 running_first
  answer 3 waiting_first
  answer 4 cancel_waiting
  answer 5 cancel_running
  answer 6 deny
  wait_until 10 worked "begin t-12 1"
  wait_until 10 worked "begin t-32 1"
  wait_until 10 is_state "${B[4]}" CANCELLED
  wait_until 10 is_state "${A[5]}" CANCELLED
  wait_until 10 worked "begin t-52 1"
  wait_until 10 pair_is "${B[6]}" SERIAL
  has "${B[2]}" "\"waits\":\"scope_taken\",\"behind\":\"${A[2]}\""
  has "${A[3]}" "\"waits\":\"scope_taken\",\"behind\":\"${B[3]}\""
  task-queue override --state "$STATE" "${A[6]}" --beside "${B[6]}" --why 'on second thoughts'
  wait_until 10 worked "begin t-62 1"
  has "${B[1]}" "\"decision\":\"parallel\",\"person\":\"$ME\",\"by\":\"login\",\"why\":\"other modules\""
  # The end of one of the jobs closes the question.
  task-queue cancel --state "$STATE" "${B[7]}"
  run -1 hitl-prompt answer --state "$STATE" "$(grep -o '"question":"[^"]*"' <<<"$(hitl-prompt list --state "$STATE" --json)" || echo t-72)" parallel
  [ "$(hitl-prompt list --state "$STATE" --json | grep -c CONFLICT)" -eq 0 ]
  # One after the other: the one at work first.
  touch go-t-21
  wait_until 10 worked "begin t-22 1"
  [ "$(grep -nx 'end t-21' marks | cut -d: -f1)" -lt "$(grep -nx 'begin t-22 1' marks | cut -d: -f1)" ]
  [ "$(grep -c 'begin t-31' marks)" -eq 1 ]
  touch go
  pool_end 0
  # The one that stopped went on after the other one.
  [ "$(grep -nx 'end t-32' marks | cut -d: -f1)" -lt "$(grep -nx 'begin t-31 2' marks | cut -d: -f1)" ]
  [ "$(grep -c 'begin t-42' marks)" -eq 0 ]
  # Seven pairs: asked, decided (but for the one whose job was cancelled), one overridden, ended.
  [ "$(cat "$STATE"/log/*.ndjson | grep -c '"key":"conflict\.')" -eq 21 ]
  run -0 hitl-prompt audit --state "$STATE" --json
  [ "$(grep -c '"what":"decided"' <<<"$output")" -eq 6 ]
  [[ $output == *'"decision":"waiting_first"'* ]]
}

@test "the confidence of a command decides: parallel from the threshold on, else a person; two pools start it once" {
  slow
  echo '{"queue":{"max_parallel":16,"threshold":0.6,"conflict_exec":["./judge","an argument"]}}' >amp.json
  agent judge <<'EOS'
here=${0%/*}
read -r request
echo "$request" >>"$here/requests"
[ "$1" = "an argument" ] && [ -z "${AMP_STATE-}${GIT_DIR-}" ] || exit 1
case $request in
*'"task":"t-12"'*) echo '{"version":1,"confidence":0.6,"reason":"they are disjoint"}' ;;
*'"task":"t-22"'*) echo '{"version":1,"confidence":0.58,"reason":"the same table","model":"x"}' ;;
esac
EOS
  jobs r1 r2
  GIT_DIR=x pool_start --type builder=4 -x ./agent
  task-queue work --state "$STATE" --config amp.json --name other --type builder=4 -x ./agent >out2 2>err2 3>&- &
  OTHER=$!
  wait_until 20 worked "begin t-12 1"
  wait_until 10 asked 2
  [ "$(wc -l <requests)" -eq 2 ]
  amp-validate -S "$AMP_TOP/schemas/queue/conflict_request.json" --formats requests | cmp - requests
  grep -q '"submission":{"message_id"' requests
  has "${B[1]}" '"state":"PARALLEL","overlap":{"resources":["r1"]},"confidence":0.6,"reason":"they are disjoint"'
  has "${B[2]}" '"confidence":0.58,"reason":"the same table"'
  task-queue list --state "$STATE" --json >list
  amp-validate -S "$AMP_TOP/schemas/records/job.json" --formats list | cmp - list
  hitl-prompt show --state "$STATE" --json t-22 | jq -e '.message.payload.context | .confidence_score == 0.58 and .judgement == "the same table"'
  # A restart keeps both.
  kill -9 "$OTHER" "$POOL"
  wait "$OTHER" "$POOL" || true
  POOL=
  answer 2 approve
  : >marks
  pool_start --drain --type builder=4 -x ./agent
  wait_until 20 worked "begin t-22 1"
  [ "$(wc -l <requests)" -eq 2 ]
  [ "$(hitl-prompt list --state "$STATE" --json | grep -c CONFLICT)" -eq 0 ]
  touch go
  pool_end 0
}

@test "a command that hangs, forks, answers garbage or late, crashes or is missing serialises; other jobs do not wait" {
  slow
  busy
  local limit=$((9 * busy))
  echo '{"queue":{"max_parallel":22,"conflict_timeout":"'$limit'ms","conflict_failures":99}}' >amp.json
  agent judge <<'EOS'
here=${0%/*}
read -r request
good='{"version":1,"confidence":1,"reason":"fine"}'
case $request in
*'"task":"t-12"'* | *'"task":"t-22"'* | *'"task":"t-32"'*) # hangs, and a daemon of it
  setsid sh -c 'echo $$ >"$1/daemon"; trap "" TERM; exec >&- 2>&-; sleep 1000' sh "$here" &
  trap '' TERM
  while :; do sleep 1; done
  ;;
*'"task":"t-42"'*) echo "no JSON" ;;
*'"task":"t-52"'*) sleep 60; echo "$good" ;;
*'"task":"t-62"'*) kill -SEGV $$ ;;
*'"task":"t-72"'*) echo "$good"; exit 3 ;;
*'"task":"t-82"'*) echo "${good/:1,/:2,}" ;;
*'"task":"t-92"'*) echo "${good/:1,\"r/:1.5,\"r}" ;;
*'"task":"t-102"'*) while :; do echo "$good"; done ;;
*'"task":"t-112"'*) # a daemon without its session or parent, and a good answer
  (setsid sh -c 'sleep 1000' >/dev/null 2>&1 &)
  echo "$good"
  ;;
esac
EOS
  jobs r1 r2 r3 r4 r5 r6 r7 r8 r9 r10 r11
  pool_start --drain --type builder=22 --conflict-exec "$PWD/judge 'a b'" -x ./agent
  # While a command judges them, a job may be cancelled, and a person may decide.
  wait_until 10 pair_is "${B[2]}" CHECKING
  task-queue cancel --state "$STATE" "${B[2]}"
  wait_until 10 pair_is "${B[3]}" CHECKING
  task-queue override --state "$STATE" "${A[3]}" --beside "${B[3]}" --why 'it takes too long'
  wait_until 10 worked "begin t-32 1"
  wait_until 20 worked "begin t-112 1"
  codes=(x command_timeout x x bad_answer command_timeout command_failed command_failed version_incompatible bad_answer bad_answer)
  for i in 1 4 5 6 7 8 9 10; do
    wait_until 20 has "${B[i]}" "\"state\":\"UNJUDGED\""
    has "${B[i]}" "\"code\":\"${codes[i]}\""
    has "${B[i]}" '"waits":"scope_taken"'
  done
  [ -e daemon ]
  ! kill -0 "$(cat daemon)" 2>/dev/null
  [ -z "$(grep -lz '^AMP_CONFLICT_CHECK=' /proc/[0-9]*/environ 2>/dev/null)" ]
  grep -q 'command_failed: exit status 3' err
  grep -q 'command_failed: killed by signal 11' err
  grep -q "command_timeout: no answer within $limit ms" err
  touch go
  pool_end 0
  # One after the other: no second job of a pair began before the end of the first one.
  for i in 1 4 5 6 7 8 9 10; do
    [ "$(sed -n "/begin t-${i}2/q; /end t-${i}1/p" marks | wc -l)" -ge "$(grep -c "begin t-${i}2" marks)" ]
  done
}

@test "after some failures in a row the command is not started for a time, which the queue shows; then it is tried again" {
  slow
  agent judge <<'EOS'
echo start >>"${0%/*}/starts"
[ -e "${0%/*}/works" ] && echo '{"version":1,"confidence":1,"reason":"fine"}'
EOS
  echo '{"queue":{"max_parallel":20,"conflict_exec":["./judge"],"conflict_failures":2,"conflict_pause":"700ms"}}' >amp.json
  jobs r1 r2 r3 r4
  pool_start --drain --type builder=8 -x ./agent
  wait_until 10 grep -q 'breaker_open: 2 failures in a row' err
  # Each of its trials fails, too, until it works. The queue shows the pause between them.
  is_paused() {
    task-queue list --state "$STATE" 2>&1 >/dev/null |
      grep -E 'conflict_exec: not started after [0-9]+ failures in a row \(command_failed: exit status 1\); until '
  }
  wait_until 20 is_paused
  wait_until 10 eval '[ "$(grep -c breaker_open err)" -ge 2 ]'
  touch works
  wait_until 20 worked "begin t-12 1"
  for i in 2 3 4; do wait_until 20 worked "begin t-${i}2 1"; done
  run -0 --separate-stderr task-queue list --state "$STATE"
  [ -z "$stderr" ]
  # A command that is missing.
  touch go
  pool_end 0
  rm go
  slow
  echo '{"queue":{"max_parallel":20,"overlap":"ask"}}' >amp.json
  jobs q1
  pool_start --type builder=2 --conflict-exec ./none -x ./agent
  wait_until 10 asked 1
  has "${B[1]}" '"code":"command_not_found"'
  run -64 task-queue work --state "$STATE" --type builder=1 --conflict-exec "'" -x ./agent
}

@test "a person overrides a conflict until a time, signed and recorded; others are refused" {
  slow
  unset AMP_IDENTITY
  echo '{"queue":{"max_parallel":8,"overlap":"ask"}}' >amp.json
  jobs r1 r2 r3
  task-queue override --state "$STATE" "${A[3]}" --beside "${B[3]}" --why 'known before' 2>/dev/null
  pool_start --drain --type builder=6 -x ./agent
  wait_until 10 asked 1
  wait_until 10 asked 2
  wait_until 10 worked "begin t-32 1"
  over() { task-queue override --state "$STATE" "$@"; }
  run -64 over "${A[1]}" --beside "${B[1]}"
  [[ $output == *"needs a reason"* ]]
  run -64 over "${A[1]}" --why x
  run -64 over "${A[1]}" --beside "${B[1]}" --why x --until sometime
  run -1 over "${A[1]}" --beside "${B[1]}" --why x --until 2020-01-01T00:00:00Z
  [[ $output == *"has passed"* ]]
  run -1 over "${A[1]}" --beside 00000000000000000000000000000000 --why x
  [[ $output == *"no job 0000"* ]]
  AMP_AGENT=x AMP_RESULT=$STATE/run/x run -77 over "${A[1]}" --beside "${B[1]}" --why x
  echo '{"queue":{"max_parallel":8,"overlap":"ask"},"hitl":{"operators":["somebody"]}}' >other.json
  AMP_CONFIG=$PWD/other.json run -77 over "${A[1]}" --beside "${B[1]}" --why x
  [[ $output == *"not_operator"* || $output == *"hitl.operators"* ]]
  over "${A[1]}" --beside "${B[1]}" --why 'a person watches' --until 2500ms
  wait_until 10 worked "begin t-12 1"
  over "${B[2]}" --beside "${A[2]}" --why 'other files'
  wait_until 10 worked "begin t-22 1"
  [ "$(hitl-prompt list --state "$STATE" --json | grep -c CONFLICT)" -eq 0 ]
  run -1 over "${A[2]}" --beside "${B[2]}" --why again
  [[ $output == *"$ME let them run side by side before"* ]]
  over "${A[2]}" --beside "${B[2]}" --why 'no longer' --until 1h
  # At its end the permission is gone; what is at work goes on.
  wait_until 10 grep -q 'the permission to run side by side has expired' err
  pair_is "${B[1]}" UNJUDGED
  is_state "${B[1]}" RUNNING
  over "${A[1]}" --beside "${B[1]}" --why 'once more' --until 1h
  run -0 task-queue show --state "$STATE" "${B[1]}"
  [[ $output == *"\"overrides\":[{\"id\":"*"\"override\":\"beside\",\"with\":\"${A[1]}\",\"person\":\"$ME\",\"by\":\"login\",\"key\":\"SHA256:"*"\"why\":\"a person watches\""*'"until":'* ]]
  touch go
  wait_until 10 is_state "${A[1]}" DONE
  run -1 over "${A[1]}" --beside "${B[2]}" --why x
  [[ $output == *"has ended"* ]]
  run -0 --separate-stderr hitl-prompt audit --state "$STATE" --what overridden --verify --json
  [ "$(grep -c '"signature":"valid"' <<<"$output")" -eq 5 ]
  [[ $output == *"\"operator\":\"$ME\",\"by\":\"login\""*"\"decision\":\"beside\",\"why\":\"a person watches\",\"changed\":\"jobs ${A[1]} and ${B[1]} may run side by side, until "* ]]
  pool_end 0
}

@test "types of agents whose jobs may always run side by side do not conflict" {
  echo '{"queue":{"max_parallel":4,"types":{"builder":{"overlap":"parallel"}}}}' >amp.json
  builder <<'EOS'
mark "began-$AMP_TASK_ID"
await began-t-11
await began-t-12
EOS
  jobs r1
  pool --drain --type builder=2 -x ./agent
  is_state "${A[1]}" DONE
  is_state "${B[1]}" DONE
  grep -q '"decision":"parallel","person":"policy"' "$STATE"/log/*.ndjson
  # Work that was done runs again only by an override.
  sed 's/"message_id":"0/"message_id":"1/' line-11 >second
  run -1 task-queue submit --state "$STATE" --type builder <second
  [[ $output == *'"code":"duplicate_job"'* ]]
  run -0 task-queue submit --state "$STATE" --type builder --again --why 'the first one was wrong' <second
  is_state "${A[1]}" QUEUED
  [[ $(hitl-prompt audit --state "$STATE" --json) == *"\"decision\":\"again\",\"why\":\"the first one was wrong\""* ]]
  echo '{"queue":{"overlap":"parallel"}}' >amp.json
  run -78 task-queue list --state "$STATE"
}

@test "identical work again, and the jobs of others, need an override with its reason" {
  unset AMP_IDENTITY
  a=$(job 1 r1)
  sed 's/"message_id":"0/"message_id":"1/' line-1 >second
  sed 's/"message_id":"0/"message_id":"2/' line-1 >third
  again() { task-queue submit --state "$STATE" --type builder "$@"; }
  run -64 again --again <second
  [[ $output == *"needs a reason"* ]]
  # There is a job: another one of the same work.
  run -0 again --again --why 'twice on purpose' <second
  [[ $output == *'"ok":true'* ]]
  [[ $output != *"$a"* ]]
  task-queue cancel --state "$STATE" "$a"
  run -0 hitl-prompt audit --state "$STATE" --what overridden --json
  [ "$(wc -l <<<"$output")" -eq 1 ]
  [[ $output == *"\"decision\":\"again\",\"why\":\"twice on purpose\",\"changed\":\"the work of job $a runs again\""* ]]
  # Work that was cancelled needs no override.
  [ "$(again --again --why 'once more' <third | grep -o '"id":"[0-9a-f]*"')" = "\"id\":\"$a\"" ]
  # Where there are operators, they change the jobs of others, with a reason; others nothing.
  b=$(job 3 r3)
  echo '{"hitl":{"operators":["somebody"]}}' >amp.json
  run -77 task-queue rank --state "$STATE" --priority 3 "$b"
  run -77 task-queue cancel --state "$STATE" "$b"
  echo "{\"hitl\":{\"operators\":[\"$ME\"]}}" >amp.json
  task-queue rank --state "$STATE" --priority 3 "$b"
  [ "$(hitl-prompt audit --state "$STATE" --what overridden --json | wc -l)" -eq 1 ]
  other_login
  run -64 task-queue rank --state "$STATE" --priority 4 "$c"
  [[ $output == *"to rank another person's job needs a reason"* ]]
  run -64 task-queue cancel --state "$STATE" "$c"
  is_state "$c" QUEUED
  task-queue rank --state "$STATE" --priority 4 --why 'it is urgent' "$c"
  task-queue cancel --state "$STATE" --reason 'not needed' "$c"
  is_state "$c" CANCELLED
  [[ $(hitl-prompt audit --state "$STATE" --what overridden --json | sed -n '$p') == *"\"decision\":\"cancel\",\"why\":\"not needed\",\"changed\":\"cancel of job $c\""* ]]
}
