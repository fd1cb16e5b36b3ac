# amp-validate --state and the Runtime Protocol: what only other events can tell.

load ../lib
load ../messages
load ../events

setup() {
  need jq
  need_tool amp-ack
  cd "$BATS_TEST_TMPDIR" || return 1
  echo 0 >n
}

create() { ev task_create '{"taskId":"t","title":"T","toAgents":["exec","other"],"requesterAgentId":"a"}' "$@"; }
ack() { ev ack '{"refEventId":"evt_1","ackType":"accepted","ackedByAgentId":"exec","ackedAt":"2026-02-25T16:31:00Z"}' "$@"; }

# known: what stands on standard input is in the state.
known() { amp-ack track --state state >/dev/null; }
# codes: "line code field" of every record for the lines on standard input.
codes() {
  rm -f records
  amp-validate --state state -e records "$@" >out || [ $? -eq 1 ]
  [ ! -f records ] || jq -r '"\(.line) \(.code) \(.field)"' records
}

@test "a task from its creation to its end, in one stream or with a part of it in the state" {
  { create; accept; update; complete; ack '.payload.ackType = "processed"'; } >all
  ev signal '{}' '.sourceNodeId = "elsewhere"' | known
  [ -z "$(codes <all)" ]
  cmp all out
  head -n 2 all | known
  [ -z "$(codes <all)" ]
  cmp all out
  sed -n '3,$p' all >rest
  [ -z "$(codes <rest)" ]
  cmp rest out
}

@test "an id names one event; the same bytes are a redelivery" {
  create >one
  known <one
  [ -z "$(cat one one | codes)" ]
  cat one one | cmp - out
  [ "$(jq -c '.payload.title = "other" | .seq = 99' one | codes)" = "1 duplicate_event eventId" ]
  [ ! -s out ]
}

@test "the numbers of an outbox grow, in the state and in the stream" {
  create '.seq = 10' | known
  accept '.seq = 10' >same
  accept '.seq = 9' >lower
  accept '.seq = 9 | .sourceNodeId = "another" | .corrId = "d"' >elsewhere
  accept '.seq = 11' >higher
  [ "$(cat same lower elsewhere higher | codes)" = "1 seq_not_monotonic seq
2 seq_not_monotonic seq" ]
  cat elsewhere higher | cmp - out
}

@test "a resend has a higher attempt" {
  update >first
  { create; accept; cat first; } | known
  echo 10 >n
  jq -c '.eventId = "evt_r" | .seq = 20' first >again
  jq -c '.trace.attempt = 2' again >resend
  jq -c '.payload.progress = 6 | .eventId = "evt_s" | .seq = 21' first >other
  [ "$(cat again resend other | codes)" = "1 attempt_not_incremented trace.attempt" ]
  cat resend other | cmp - out
}

@test "an event refers to what the state or the stream knows" {
  ev signal '{}' '.corrId = "x"' | known
  [ "$(accept | codes)" = "1 unknown_ref payload.taskId" ]
  [ "$(ack '.payload.refEventId = "evt_99"' | codes)" = "1 unknown_ref payload.refEventId" ]
  [ -z "$(ack | codes)" ]
}

@test "one agent takes a task, one of those that it is for" {
  create | known
  [ "$(accept '.payload.acceptedByAgentId = "third"' | codes)" = \
    "1 not_assignee payload.acceptedByAgentId" ]
  { accept; accept '.payload.acceptedByAgentId = "other"'; accept '.trace.attempt = 2'; } >in
  [ "$(codes <in)" = "2 already_claimed payload.acceptedByAgentId" ]
  create '.payload.taskId = "u" | .payload.toAgents = ["all"]' >all
  accept '.payload.taskId = "u" | .payload.acceptedByAgentId = "third"' >anyone
  [ -z "$(cat all anyone | codes)" ]
}

@test "work follows an acceptance and is reported by who accepted" {
  create | known
  [ "$({ update; complete; fail; } | codes)" = "1 accept_required payload.taskId
2 accept_required payload.taskId
3 accept_required payload.taskId" ]
  accept | known
  { update '.sourceAgentId = "other"'; complete '.payload.completedByAgentId = "other"'
    fail '.payload.failedByAgentId = "other"'; } >in
  [ "$(codes <in)" = "1 not_claimant sourceAgentId
2 not_claimant payload.completedByAgentId
3 not_claimant payload.failedByAgentId" ]
}

@test "nothing comes after the end, but a failure that may be retried is no end" {
  { create; accept; } | known
  { complete; update; complete '.payload.resultSummary = "other"'; accept '.payload.etaSeconds = 7'; } >in
  [ "$(codes <in)" = "2 terminal payload.taskId
3 terminal payload.taskId
4 terminal payload.taskId" ]
  # Who has seen no answer says it again.
  { complete; complete '.trace.attempt = 2'; accept '.trace.attempt = 2'; complete; } >in
  [ "$(codes <in)" = "4 attempt_not_incremented trace.attempt" ]
  { fail '.payload.retryable = true'; accept '.payload.acceptedByAgentId = "other"'
    complete '.payload.completedByAgentId = "other"'; } >in
  [ -z "$(codes <in)" ]
  { fail; update; } >in
  [ "$(codes <in)" = "2 terminal payload.taskId" ]
}

@test "processed needs an outcome: the end of the task, a failure, a reply" {
  { create; accept; } | known
  ack '.payload.ackType = "processed"' >done
  [ "$(codes <done)" = "1 no_terminal_outcome payload.ackType" ]
  echo 5 >n
  { fail; ack '.payload.ackType = "processed"'; } >in
  [ -z "$(codes <in)" ]
  echo 20 >n
  ev message '{"toAgents":["exec"],"body":"b"}' '.corrId = "m"' | known
  ack '.payload.refEventId = "evt_21" | .payload.ackType = "processed" | .corrId = "m"' >done
  [ "$(codes <done)" = "1 no_terminal_outcome payload.ackType" ]
  ev reply '{"body":"r"}' '.corrId = "m"' >reply
  jq -c '.seq = 30' done >later
  [ -z "$(cat reply later | codes)" ]
}

@test "what another process records is seen by a run that goes on" {
  create >task
  ev signal '{}' '.sourceNodeId = "elsewhere"' | known
  mkfifo in
  amp-validate --state state -e records in >out &
  local pid=$!
  exec 7>in
  accept '.sourceNodeId = "third"' >&7
  wait_until 30 grep -q unknown_ref records
  known <task
  taken() { accept '.sourceNodeId = "third"' >&7 && [ -s out ]; }
  wait_until 20 taken
  exec 7>&-
  wait "$pid" || [ $? -eq 1 ]
}

@test "records of the control plane have no history" {
  create | known
  echo '{"capabilityId":"cap.a","eligibleAgentIds":[],"policyVersion":"p","updatedAt":"2026-02-25T16:30:05Z"}' >index
  [ -z "$(cat index index | codes)" ]
  cat index index | cmp - out
}

@test "an agent has at most six tasks at a time, and a task ends with the fourth retryable failure" {
  # of N EVENT [JQ]: the event for the task N.
  of() { "$2" '.payload.taskId = "t'"$1"'" | .corrId = "c'"$1"'" | '"${3:-.}"; }
  for i in 1 2 3 4 5 6 7; do of $i create; done | known
  for i in 1 2 3 4 5 6; do of $i accept; done >six
  [ -z "$(codes <six)" ]
  known <six
  of 7 accept >seventh
  [ "$(codes <seventh)" = "1 backpressure payload.acceptedByAgentId" ]
  # Another attempt at a task of its own is no further task.
  [ -z "$(of 1 accept '.trace.attempt = 2' | codes)" ]
  # After the end of one of them there is room, in the same stream.
  { of 2 complete; of 7 accept; } >later
  [ -z "$(codes <later)" ]
  # Three failures release the task; the fourth ends it.
  for i in 1 2 3; do
    of 1 fail '.payload.retryable = true | .trace.attempt = '$i
    of 1 accept '.trace.attempt = '$((i + 1))
  done >tries
  [ -z "$(codes <tries)" ]
  { cat tries; of 1 fail '.payload.retryable = true | .trace.attempt = 4'; of 1 accept '.payload.etaSeconds = 5'; } >last
  [ "$(codes <last)" = "7 retry_budget_exceeded payload.retryable
8 terminal payload.taskId" ]
}

@test "a task that requires a capability of high risk is accepted after a person approved it" {
  agent-registry register owner --connector x:y --state state >out
  for risk in high low; do
    printf '{"capabilityId":"cap.%s","name":"n","version":"1.0.0","status":"active","riskClass":"%s","ownerAgentId":"owner","ownerNodeId":"n","delegationSkillRef":{"name":"d","version":"1.0.0"},"executorSkillRef":{"name":"e","version":"1.0.0","path":"/p"},"contractSchemaRef":"schema://x","defaultEtaSeconds":600,"publishedAt":"2026-02-25T16:30:00.000Z","publishedByAgentId":"a"}\n' $risk $risk |
      agent-registry publish --state state >out
  done
  wants() { create '.payload.taskId = "'"$1"'" | .payload.requiredCapabilities = ["cap.'"$2"'"]'; }
  takes() { accept '.payload.taskId = "'"$1"'"'; }
  { wants risky high; wants plain low; } | known
  [ "$({ takes plain; takes risky; } | codes)" = "2 approval_required payload.taskId" ]
  # The ledger and an agent's own answer, too.
  run -1 --separate-stderr amp-ack track --state state < <(takes risky)
  [[ $stderr == *approval_required* ]]
  run -1 --separate-stderr amp-ack accept evt_1 --as exec --eta 1h --state state
  [[ $stderr == *'approval_required: the capability cap.high has a high risk, and no person approved the task risky'* ]]
  run -64 agent-registry approve risky --state state
  AMP_AGENT=exec run -77 agent-registry approve risky --why "I want to" --state state
  agent-registry approve risky --why "the backup is there" --state state
  cat state/log/*.ndjson | grep -a '"key":"task_approval.risky"' | grep -F '"why":"the backup is there"' | grep -q '"person":"'
  [ -z "$(takes risky | codes)" ]
  amp-ack accept evt_1 --as exec --eta 1h --state state >out
}
