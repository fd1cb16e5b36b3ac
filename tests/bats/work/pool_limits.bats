# What keeps pools from work, and agents of a pool from each other: addressees, budgets that several pools share, a slow
# repository, a disk that is full.
# plain: pool.bats runs the same code

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

# rtp ID AGENT: a task of the Runtime Protocol for an agent.
rtp() {
  printf '%s' "{\"eventId\":\"evt_$1\",\"seq\":1,\"kind\":\"task_create\",\"sourceNodeId\":\"vps\",\"sourceAgentId\":\"architect\"," \
    "\"corrId\":\"corr_$1\",\"createdAt\":\"2026-02-25T16:30:00.000Z\",\"trace\":{\"attempt\":1,\"routingPolicyVersion\":\"rpv_1\"," \
    "\"capabilityPolicyVersion\":\"cpv_1\"},\"payload\":{\"taskId\":\"tsk_$1\",\"title\":\"T\",\"description\":\"D\"," \
    "\"toAgents\":[\"$2\"],\"priority\":\"high\",\"requesterAgentId\":\"architect\",\"responseRequired\":true,\"scope\":\"[\\\"$1\\\"]\"}}"
  echo
}

# in_repo REPO: a task of SW4RM in a repository, on feat/x.
in_repo() {
  local id=00000001-0000-4000-8000-000000000001 work="{\"task_id\":\"t-repo\",\"params\":{},"
  work+="\"scope\":{\"repositories\":[\"$1\"],\"branches\":[\"feat/x\"]}}"
  printf '%s' "{\"message_id\":\"$id\",\"producer_id\":\"cli\",\"correlation_id\":\"$id\",\"sequence_number\":1," \
    "\"retry_count\":0,\"message_type\":\"DATA\",\"content_type\":\"application/json\",\"content_length\":${#work}," \
    "\"payload\":$work}"
  echo
}

@test "a task of the Runtime Protocol goes to the agent that it names; for another node it is neither accepted nor begun" {
  builder <<'EOS'
echo "$AMP_AGENT $AMP_TASK_ID" >>"$marks/who"
EOS
  a=$(rtp 1 builder-2 | submit_line 0) b=$(rtp 2 mbp-jane | submit_line 0)
  pool --drain --type builder=2 -x ./agent
  [ "$(state_of "$a") $(state_of "$b") $(code_of "$b")" = "DONE FAILED not_assignee" ]
  [ "$(cat who)" = "builder-2 tsk_1" ]
  [ "$(grep -c '"kind":"task_accept"' out.ndjson)" -eq 1 ]
  [ "$(grep -c 'mbp-jane\|tsk_2' out.ndjson)" -eq 0 ]
}

@test "a reviewer that says it is safe and works on is ended by force: its review has failed, and the sender hears it" {
  need jq git
  done_work
  builder <<'EOS'
[ "$AMP_AGENT_TYPE" = reviewer ] || exit 0
[ -e "$marks/first" ] && exit 0
trap '' TERM
touch "$marks/first"
safe_points
while :; do sleep 0.1; done
EOS
  review >request
  a=$(submit_line 5 reviewer <request)
  pool_start --drain --type reviewer=1 --safe-point 300ms --grace 50ms -x ./agent
  wait_until 10 test -e first
  b=$(submit 0 reviewer)
  pool_end 0
  [ "$(state_of "$a") $(code_of "$a") $(state_of "$b")" = "FAILED forced_preemption DONE" ]
  grep '"type":"nack"' out.ndjson | grep -F '"code":"forced_preemption"'
  [[ $(states reviewer-1) == *"RUNNING FAILED RECOVERING RUNNABLE"* ]]
}

@test "a repository that is slow holds up only the agent that works in it" {
  need git
  repo slow
  # git-worker waits until something has opened the FIFO for writing.
  mkfifo slow.fifo
  mkdir libexec
  ln -s "$AMP_BUILD"/libexec/amp/* libexec
  rm libexec/git-worker
  printf '#!/bin/bash\n: <"%s"\nexec "%s" "$@"\n' "$PWD/slow.fifo" "$AMP_BUILD/libexec/amp/git-worker" >libexec/git-worker
  chmod +x libexec/git-worker
  builder <<'EOS'
:
EOS
  a=$(in_repo "$PWD/slow" | submit_line -19)
  b=$(submit 0) c=$(submit 0)
  AMP_LIBEXEC=$PWD/libexec pool_start --drain --type builder=2 -x ./agent
  wait_until 10 is_state "$c" DONE
  [ "$(state_of "$a") $(state_of "$b")" = "CLAIMED DONE" ]
  exec {writer}<>slow.fifo
  pool_end 0
  is_state "$a" DONE
}

@test "pools share the budget of the day: one warning and one end, and then no new work in any of them" {
  echo '{"queue":{"max_parallel":8},"budgets":{"day":{"tokens":1000}}}' >amp.json
  builder <<'EOS'
echo '{"usage":{"input_tokens":400,"output_tokens":10}}' >"$AMP_RESULT"
EOS
  for t in one two one two one two; do submit 0 "$t"; done >ids
  for n in one two; do
    task-queue work --state "$STATE" --config amp.json --name "$n" --type "$n=1" -x ./agent >"$n.ndjson" 2>"$n.err" 3>&- &
    pools+=("$!")
  done
  for n in one two; do
    wait_until 20 grep -q 'the budget of the day is spent; no new work until' "$n.err"
  done
  kill -TERM "${pools[@]}"
  for n in "${pools[@]}"; do ends 130 wait "$n"; done
  [ "$(cat ./*.err | grep -c 'budget_warning: 80 % of the budget of the day')" -eq 1 ]
  [ "$(cat ./*.err | grep -c 'the budget of the day today is spent')" -eq 1 ]
  # The third job spends it; a fourth may have been at work then.
  while read -r id; do state_of "$id"; done <ids | sort | uniq -c | tr -s ' \n' ' ' >done
  [[ $(cat done) == " 3 DONE 3 QUEUED " || $(cat done) == " 4 DONE 2 QUEUED " ]]
}

@test "a task without budget is not begun, and answered; an agent without budget leaves work to others" {
  echo '{"queue":{"max_parallel":8},"budgets":{"task":{"tokens":400},"agent":{"tokens":400}}}' >amp.json
  builder <<'EOS'
echo "$AMP_AGENT" >>"$marks/who"
echo '{"usage":{"input_tokens":400}}' >"$AMP_RESULT"
EOS
  a=$(rtp 1 builder-1 | submit_line 0)
  b=$(rtp 1 builder-1 | sed 's/evt_1/evt_2/;s/\[\\"1/[\\"2/' | submit_line 1)
  c=$(submit 2)
  pool --drain --type builder=3 -x ./agent
  [ "$(state_of "$a") $(state_of "$c")" = "DONE DONE" ]
  [ "$(grep -c builder-1 who) $(wc -l <who)" = "1 2" ]
  grep -F 'the budget of the agent builder-1 is spent; it gets no new work until the next day' err
  [ "$(state_of "$b") $(code_of "$b")" = "FAILED budget_exceeded" ]
}

@test "an agent that fills the disk fails alone, and its work is done when there is room" {
  need git unshare
  unshare -rm mount -t tmpfs none /mnt 2>/dev/null || skip "no mounts in a user namespace"
  workplace
  mkdir repo.worktrees
  builder <<'EOS'
[ -e "$marks/room" ] || [ "$AMP_AGENT_TYPE" != fills ] || head -c 30000000 /dev/zero >big || exit 4
EOS
  in_repo "$REPO" >full
  a=$(submit_line -19 fills <full)
  b=$(submit 0)
  export REPO STATE
  unshare -rm sh -c 'mount -t tmpfs -o size=4m none "$REPO.worktrees" && exec "$@"' sh \
    timeout 120 task-queue work --state "$STATE" --config "$(config)" --drain --type fills=1 --type builder=1 -x ./agent >out.ndjson 2>err
  is_state "$b" DONE
  job_of "$a" >job
  grep -E '"state":"FAILED".*"code":"task_failed"' job
  # The same work again, when there is room.
  touch room
  [ "$(sed 's/000000000001"/000000000002"/g' full | submit_line 0 fills)" = "$a" ]
  pool --drain --type fills=1 -x ./agent
  is_state "$a" DONE
}
