#!/usr/bin/env bats
# The queue without workers: submissions, their order, the list.

load lib
load pools

setup() {
  cd "$BATS_TEST_TMPDIR" || return
  STATE=$PWD/st
}

@test "jobs wait in the order of their priorities, then of their submission; the list shows place and reason" {
  b=$(submit 0)
  c=$(submit 20)
  a=$(submit -19)
  d=$(submit 0)
  task-dispatch queue --state "$STATE" --json >list
  grep -o '"id":"[0-9a-f]*"' list | cut -d'"' -f4 | diff <(printf '%s\n' "$a" "$b" "$d" "$c") -
  [[ $(job_of "$d") == *'"position":3,"waits":"turn"'* ]]
  run -0 task-dispatch queue --state "$STATE"
  [[ ${lines[1]} == "${a:0:12}"*QUEUED*builder*-19*1* ]]
}

@test "the same work again is the same job, until it is cancelled" {
  work='{"task_id":"t","params":{"n":1},"scope":"x"}'
  line="{\"message_id\":\"%s\",\"producer_id\":\"cli\",\"correlation_id\":\"c\",\"sequence_number\":%s,\"retry_count\":0,"
  line+="\"message_type\":\"DATA\",\"content_type\":\"application/json\",\"content_length\":${#work},\"payload\":$work}\n"
  printf "$line" 00000000-0000-4000-8000-000000000001 1 >one
  printf "$line" 00000000-0000-4000-8000-000000000002 2 >two
  id=$(submit_line 0 <one)
  run -1 task-dispatch submit --state "$STATE" --type builder <two
  [[ $output == *'"accepted":false,"code":"duplicate_job"'* ]]
  run -0 task-dispatch queue show --state "$STATE" "$id"
  [[ ${lines[0]} == *"\"scope\":\"{"*'"attempts":0'* ]]
  [ "${lines[1]}" = "$(cat one)" ]
  task-dispatch queue cancel --state "$STATE" "$id"
  is_state "$id" CANCELLED
  [ "$(submit_line 0 <two)" = "$id" ]
  is_state "$id" QUEUED
}

@test "a submission says its scope, a priority has 40 levels, and an unknown job is refused" {
  work='{"task_id":"t","params":{}}'
  line="{\"message_id\":\"00000000-0000-4000-8000-000000000001\",\"producer_id\":\"cli\",\"correlation_id\":\"c\","
  line+="\"sequence_number\":1,\"retry_count\":0,\"message_type\":\"DATA\",\"content_type\":\"application/json\","
  run -1 task-dispatch submit --state "$STATE" --type builder <<<"$line\"content_length\":${#work},\"payload\":$work}"
  [[ $output == *'"code":"scope_required"'* ]]
  run -64 task-dispatch submit --state "$STATE" --type builder --priority 21 </dev/null
  run -1 task-dispatch queue show --state "$STATE" 0123
  [[ $output == *"no job has the id 0123"* ]]
}
