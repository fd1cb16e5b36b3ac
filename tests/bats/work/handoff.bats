#!/usr/bin/env bats
# agent-handoff: work goes from one agent to another (SW4RM §17.6).

load ../lib

setup() {
  need jq
  need_tool task-dispatch agent-registry amp-ack amp-validate
  cd "$BATS_TEST_TMPDIR" || return
}

handoff() {
  agent-handoff -q "$@"
}

# agents NAME...: registered, with the capability review.
agents() {
  local a
  for a; do
    agent-registry register -s state "$a" --capability review --connector http://localhost >>registered
  done
}

# of ID FILTER: of the record; a member that is a string without jq, which takes 20 ms to start.
of() {
  local list
  list=$(handoff pending -s state --all --json)
  if [[ $2 =~ ^\.[a-z_]+$ ]]; then
    list=$(grep -F "\"request_id\":\"$1\"" <<<"$list")
    [[ $list =~ "\"${2#.}\":\""([^\"]*)\" ]] && echo "${BASH_REMATCH[1]}"
  else
    jq -r --arg id "$1" "select(.request_id == \$id) | $2" <<<"$list"
  fi
}

# refused CODE ARGS...: with status 1, and the log has no new frame.
refused() {
  local code=$1 before
  shift
  before=$(cat state/log/* | grep -c '"key":"handoff')
  run -1 --separate-stderr handoff "$@"
  [[ "$stderr" == *": $code: "* ]]
  [ "$(cat state/log/* | grep -c '"key":"handoff')" -eq "$before" ]
}

@test "request, accept, complete: messages of SW4RM, the snapshot, and the states" {
  printf '{"step":3,"name":"\303\244"}' >ctx
  handoff request -s state --as ann --to bob --reason "needs a GPU" --task T-2026-001 --context ctx --id H-1 >request
  handoff accept -s state --as bob --context got H- >answer
  cmp ctx got
  [ "$(stat -c %a got)" = 600 ]
  handoff complete -s state --as ann H-1 >end
  cat request answer end | amp-validate --strict >valid
  cat request answer end | cmp - valid
  jq -es '.[0].to == "bob" and .[0].msg.producer_id == "ann" and (.[0].msg.payload
      | .from_agent == "ann" and .to_agent == "bob" and .capabilities_required == [] and .timeout_ms == 60000
        and .context_snapshot.content_type == "application/json" and .context_snapshot.bytes == 22)
    and .[1].to == "ann" and .[1].msg.payload == {request_id: "H-1", accepted: true, accepting_agent: "bob"}
    and .[2].to == "bob" and .[2].msg.payload.status == "COMPLETED"' valid
  handoff pending -s state --all --json | amp-validate -S "$AMP_TOP/schemas/records/handoff.json" >record
  jq -e '.status == "COMPLETED" and .accepted <= .ended and .depth == 1 and .tried == []' record
  [ -z "$(handoff pending -s state --json)" ]
}

@test "refusals: another agent, another state, unknown, ambiguous, without a reason, as another" {
  handoff request -s state --as ann --to bob --reason r --id H-1 >out
  handoff request -s state --as ann --to bob --reason r --id H-2 >out
  refused bad_sender accept -s state --as cleo H-1
  refused bad_sender reject -s state --as cleo --reason no H-1
  refused unknown_ref accept -s state --as bob H-3
  refused ambiguous accept -s state --as bob H
  refused not_accepted complete -s state --as bob H-1
  refused no_context accept -s state --as bob --context x H-1
  AMP_AGENT=ann run -77 --separate-stderr handoff accept -s state --as bob H-1
  [[ "$stderr" == *'only people and the agent itself may'* ]]
  handoff accept -s state --as bob H-1 >out
  refused not_pending accept -s state --as bob H-1
  [[ "$stderr" == *"not in PENDING"* ]]
  refused not_pending reject -s state --as bob --reason no H-1
  refused bad_sender complete -s state --as cleo H-1
  refused duplicate_request request -s state --as eve --to bob --reason other --id H-2
  run -64 handoff reject -s state --as bob H-2
  run -64 handoff request -s state --as ann --reason r
  run -64 handoff request -s state --as ann --to bob --reason r --timeout 5s
  run -69 handoff pending -s none
}

@test "by capability: the next candidate after a rejection and after the time, then EXPIRED or REJECTED" {
  agents b1 b2 b3
  handoff request -s state --as b1 --capability review --reason "a second look" --id H-1 >request
  first=$(of H-1 .to_agent)
  [ "$(jq -r .to request)" = "$first" ]
  [[ "$first" = b[23] ]]
  handoff reject -s state --as "$first" --reason busy H-1 >offer
  second=$(of H-1 .to_agent)
  [ "$(jq -r '.to, .msg.payload.to_agent, .msg.payload.from_agent' offer | tr '\n' ' ')" = "$second $second b1 " ]
  [ "$second" != "$first" ]
  # The deadline row; the second run finds no work.
  amp-ack sweep -s state --now 2033-01-01T00:00:00Z >expired
  amp-ack sweep -s state --now 2033-01-01T00:00:00Z >again
  [ ! -s again ]
  jq -e '.to == "b1" and .msg.payload.status == "EXPIRED" and .msg.payload.request_id == "H-1"' expired
  amp-validate <expired >valid
  [ "$(of H-1 '[.status, .tried[0].outcome, .tried[0].reason, .tried[1].outcome] | join(" ")')" = "EXPIRED rejected busy expired" ]
  refused not_pending accept -s state --as "$second" H-1

  handoff request -s state --as b1 --to b2 --reason r --id H-2 >out
  handoff reject -s state --as b2 --reason "not mine" H-2 >answer
  jq -e '.to == "b1" and .msg.payload == {request_id: "H-2", accepted: false, rejection_reason: "not mine"}' answer
  [ "$(of H-2 .status)" = REJECTED ]

  handoff request -s state --as b1 --capability review --reason r --id H-3 >out
  amp-ack sweep -s state --now "$(date -ud '+2 min' +%FT%TZ)" >next
  jq -e --arg was "$(jq -r .to out)" '.to != $was and .msg.payload.from_agent == "b1"' next
  refused capability_unavailable request -s state --as b1 --capability fly --reason r
  agent-registry register -s state other --capability fly --connector http://localhost >out
  refused capability_unavailable request -s state --as b1 --to other --capability review --reason r
}

@test "the origin may not go on: its answers, a further handoff, an attempt of its worker" {
  load ../agents
  need git
  workplace
  agent never <<'EOS'
touch "$AMP_STATE/ran"
EOS
  handoff request -s "$STATE" --as executor --to bob --reason r --task T-2026-001 --id H-1 >out
  handoff accept -s "$STATE" --as bob H-1 >out
  run_agent --exec ./never < <(dispatch)
  got out.ndjson '.type == "nack" and .code == "handed_over"'
  [ ! -e "$STATE/ran" ]
  refused handed_over request -s state --as executor --to cleo --reason r --task T-2026-001
  # The new owner may hand it over, three times in all.
  for pair in bob:cleo cleo:dan; do
    handoff request -s state --as "${pair%:*}" --to "${pair#*:}" --reason r --task T-2026-001 --id "$pair" >out
    handoff accept -s state --as "${pair#*:}" "$pair" >out
  done
  refused nested_delegation request -s state --as dan --to eve --reason r --task T-2026-001
  # What comes back may go on.
  handoff request -s state --as ann --to executor --reason r --task T-2026-002 --id there >out
  handoff accept -s state --as executor there >out
  agent good <<'EOS'
echo x >x
EOS
  run_agent --exec ./good < <(dispatch '.task_id = "T-2026-002" | .msg_id |= sub("001-"; "002-") | .payload.subtasks[0].subtask_id = "T-2026-002-S1"')
  got out.ndjson '.type == "task_result"'
}

@test "a snapshot that has changed is refused; a large one and bytes that are not text arrive" {
  head -c 100000 /dev/urandom >big
  handoff request -s state --as ann --to bob --reason r --context big --id H-1 >request
  jq -e '.msg.payload.context_snapshot | .content_type == "application/octet-stream" and .bytes == 100000 and has("data_b64")' request
  handoff accept -s state --as bob --context got H-1 >out
  cmp big got
  # The record keeps a reference, not the contents.
  [ "$(grep -h '"key":"handoff.H-1"' state/log/* | tail -n 1 | wc -c)" -lt 4000 ]
  handoff request -s state --as ann --to bob --reason r --context big --id H-2 >out
  printf x >>"state/handoff/$(printf H-2 | sha256sum | cut -c1-64)"
  refused context_changed accept -s state --as bob H-2
  rm "state/handoff/$(printf H-2 | sha256sum | cut -c1-64)"
  ln -s /etc/passwd "state/handoff/$(printf H-2 | sha256sum | cut -c1-64)"
  refused context_changed accept -s state --as bob --context got H-2
  cmp big got
  truncate -s 9M huge
  refused payload_too_large request -s state --as ann --to bob --reason r --context huge
  # A digest that the sender got wrong.
  jq -c '.msg.payload.context_snapshot.sha256 = ("0" * 64) | .msg.payload.request_id = "H-9" | .msg.message_id = "00000000-0000-4000-8000-000000000009"
    | .msg.content_length = (.msg.payload | tojson | length)' request >wrong
  run -1 --separate-stderr handoff -s state <wrong
  [[ "$stderr" == *context_changed* ]]
}

@test "the filter: SW4RM's messages make the steps, others pass byte for byte, refusals are answered" {
  handoff request -s other --as ann --to bob --reason r --id H-1 >request
  handoff accept -s other --as bob H-1 >accept
  handoff complete -s other --as bob H-1 >complete
  echo '{"msg_id":"task_dispatch-T-2026-044-1","protocol_version":"AMP/1.0","type":"ack"}' >bad
  cat request accept complete >all
  handoff -s state <all >out
  cmp all out
  [ "$(of H-1 .status)" = COMPLETED ]
  # Again: the same messages change nothing and are not written twice.
  handoff -s state <all >again
  [ ! -s again ]
  # A verb made the step; its line passes here.
  handoff -s other <all >out
  cmp all out
  # Another acceptance.
  jq -c '.msg.message_id = "00000000-0000-4000-8000-000000000001"' accept >late
  run -1 --separate-stderr handoff -s state <late
  [[ "$stderr" == *"not_pending"*"not in PENDING"* ]]
  jq -e '.to == "bob" and .msg.payload.ack_stage == "REJECTED"' <<<"$output"
  grep -q '"code":"not_pending"' state/error.ndjson
  jq -c '.msg.message_id = "00000000-0000-4000-8000-000000000002" | .msg.payload.request_id = "H-0" | .msg.content_length = (.msg.payload | tojson | length)' accept >unknown
  run -1 --separate-stderr handoff -s state <unknown
  [[ "$stderr" == *unknown_ref* ]]
  # By capability, in a foreign request: the candidate gets an offer.
  agents bob
  jq -c '.msg | .message_id = "00000000-0000-4000-8000-000000000003" | .payload += {request_id: "H-5", to_agent: "", capabilities_required: ["review"], context_snapshot: {any: [1]}}
    | .content_length = (.payload | tojson | length)' request >open
  handoff -s state <open >offer
  jq -e '.to == "bob" and .msg.payload.request_id == "H-5" and .msg.payload.context_snapshot.text == "{\"any\":[1]}"' offer
  head -n 3 registered >others
  handoff -s state <others >out
  cmp others out
}

# foreign N PAYLOAD: the file request as another client writes it, with the id F-N.
foreign() {
  jq -c --arg n "$1" ".msg | .message_id = \"00000000-0000-4000-8000-0000000000\(\$n)\" | .payload += {request_id: \"F-\(\$n)\"} |
    .payload |= ($2) | .content_length = (.payload | tojson | length)" request
}

@test "a timeout is a Duration in any JSON form" {
  handoff request -s other --as ann --to bob --reason r --id H-1 >request
  local n=10 form
  for form in '"90s"' '"90.000s"' '90' '90.0' '{"seconds": 90}' '{"seconds": "89", "nanos": 1000000000}' '{"seconds": "90", "nanos": 0}'; do
    n=$((n + 1))
    foreign $n "del(.timeout_ms) | .timeout = $form"
  done >forms
  sed -i '6s/"89"/"88"/; 6s/1000000000/999999999/' forms
  handoff -s state <forms >out
  cmp forms out
  [ "$(handoff pending -s state --json | jq -sc 'map(.timeout_ms)')" = "[90000,90000,90000,90000,90000,89000,90000]" ]
  # The protocol's own member counts; its limits hold; without one there is the default.
  { foreign 21 '.timeout = "12.5s"'; foreign 22 'del(.timeout_ms) | .timeout = "0.5s"'; foreign 23 'del(.timeout_ms)'; } >more
  handoff -s second <more >out
  [ "$(handoff pending -s second --json | jq -sc 'map(.timeout_ms)')" = "[12500,10000,60000]" ]
  { foreign 31 '.timeout = "soon"'; foreign 32 '.timeout = {seconds: -1}'; foreign 33 '.timeout = "-1s"'; } >bad
  run -1 --separate-stderr handoff -s third <bad
  [ "$(grep -c '"code":"validation_error"' third/error.ndjson)" = 3 ]
}

@test "a context in base64 is decoded; other text stays as it is, and an empty one is none" {
  handoff request -s other --as ann --to bob --reason r --id H-1 >request
  {
    foreign 11 '.context_snapshot = ("{\"step\":3}" | @base64)'
    foreign 12 '.context_snapshot = "AP/+gA=="'
    foreign 13 '.context_snapshot = "go on with step 3"'
    foreign 14 '.context_snapshot = ""'
  } >in
  handoff -s state <in >out
  cmp in out
  for n in 11 12 13; do handoff accept -s state --as bob --context "got$n" "F-$n" >answer; done
  [ "$(<got11)" = '{"step":3}' ]
  printf '\0\377\376\200' | cmp - got12
  [ "$(<got13)" = '"go on with step 3"' ]
  [ "$(handoff pending -s state --all --json | jq -sc 'map(.context.content_type)')" = \
    '["application/json","application/octet-stream","application/json",null]' ]
  refused no_context accept -s state --as bob --context got F-14
}

# aof TYPE TASK FROM TO PAYLOAD
aof() {
  printf '{"protocol":"aof","version":1,"type":"%s","projectId":"p","taskId":"%s","fromAgent":"%s","toAgent":"%s","sentAt":"2026-11-23T11:00:00.000Z","payload":%s}\n' "$@"
}
ask() {
  aof handoff.request "TASK-2026-02-09-0$1" "$3" "$4" "{\"taskId\":\"TASK-2026-02-09-0$1\",\"parentTaskId\":\"TASK-2026-02-09-0$2\",\"fromAgent\":\"$3\",\"toAgent\":\"$4\",\"acceptanceCriteria\":[\"x\"],\"dueBy\":\"2026-11-24T11:00:00.000Z\"}"
}

@test "AOF: request, acceptance, report; a child of a child is rejected; without a limit for the answer" {
  {
    ask 60 57 be qa
    aof handoff.accepted TASK-2026-02-09-060 qa be '{"taskId":"TASK-2026-02-09-060","accepted":true}'
    ask 61 57 be qa
  } >all
  handoff -s state <all >out
  cmp all out
  [ "$(of TASK-2026-02-09-060 '.status + .parent_task_id + .protocol')" = "ACCEPTEDTASK-2026-02-09-057aof" ]
  # A blocked task is still the child's.
  aof completion.report TASK-2026-02-09-060 qa be '{"taskId":"TASK-2026-02-09-060","outcome":"blocked","summaryRef":"s.md","tests":{"total":0,"passed":0,"failed":0},"notes":"n","blockers":["a key"]}' >blocked
  handoff -s state <blocked >out
  cmp blocked out
  [ "$(of TASK-2026-02-09-060 .status)" = ACCEPTED ]
  run -1 --separate-stderr handoff -s state < <(ask 62 60 qa x)
  [[ "$stderr" == *nested_delegation* ]]
  jq -e '.type == "handoff.rejected" and .toAgent == "qa" and .payload.accepted == false' <<<"$output"
  # dueBy is no limit for the answer.
  amp-ack sweep -s state --now 2026-12-20T00:00:00Z >swept
  [ "$(of TASK-2026-02-09-061 .status)" = PENDING ]
  handoff reject -s state --as qa --reason busy TASK-2026-02-09-061 >answer
  jq -e '.type == "handoff.rejected" and .fromAgent == "qa" and .toAgent == "be"' answer
  [ "$(of TASK-2026-02-09-061 .status)" = REJECTED ]
  handoff complete -s state --as qa --text done --data '{"summaryRef":"s.md","tests":{"total":1,"passed":1,"failed":0}}' TASK-2026-02-09-060 >report
  jq -e '.type == "completion.report" and .payload.outcome == "done"' report
  amp-validate <report >valid
  [ "$(of TASK-2026-02-09-060 .status)" = COMPLETED ]
  # A report about a task that was never handed over is not the filter's.
  sed 's/-060/-099/g' report | handoff -s state >out
  [ -s out ]
}

# rtp EVENT SEQ KIND FROM TO PAYLOAD: an event; the node is the sender's.
rtp() {
  printf '{"eventId":"evt_%s","seq":%s,"kind":"%s","sourceNodeId":"%s","sourceAgentId":"%s","toAgentId":"%s","corrId":"corr_1","createdAt":"2026-11-23T11:00:00.000Z","payload":%s,"trace":{"attempt":1}}\n' \
    "$1" "$2" "$3" "$4" "$4" "$5" "$6"
}
# create N TO [MEMBERS]: a task_create from ann. TO: a list.
create() {
  rtp "$1" "$1" task_create ann ann "{\"taskId\":\"tsk_$1\",\"title\":\"t\",\"description\":\"d\",\"toAgents\":$2,\"requesterAgentId\":\"ann\",\"deadlineAt\":\"2032-01-01T00:00:00.000Z\"$3}"
}
# refusal EVENT OF FROM: an ack failed_terminal.
refusal() {
  rtp "$1" 1 ack "$3" ann "{\"refEventId\":\"$2\",\"refKind\":\"task_create\",\"ackType\":\"failed_terminal\",\"ackedByNodeId\":\"$3\",\"ackedByAgentId\":\"$3\",\"ackedAt\":\"2026-11-23T11:00:00.000Z\",\"code\":\"overloaded\",\"reason\":\"too much to do\"}"
}

@test "Runtime Protocol: task_create, task_accept, task_complete; task_failed and failed_terminal decline; deadlineAt ends it" {
  {
    for i in 1 2 3 4 5; do create $i '["bob"]'; done
    rtp 11 1 task_accept bob ann '{"taskId":"tsk_1","acceptedByAgentId":"bob","etaSeconds":60}'
    rtp 12 2 task_complete bob ann '{"taskId":"tsk_1","completedByAgentId":"bob","completedAt":"2026-11-23T11:00:00.000Z","resultSummary":"ok"}'
    refusal 13 evt_3 bob
    rtp 14 4 task_failed bob ann '{"taskId":"tsk_4","failedByAgentId":"bob","failureClass":"overloaded","errorSummary":"no time","failedAt":"2026-11-23T11:00:00.000Z"}'
    rtp 15 5 ack bob ann '{"taskId":"tsk_5","acceptedByAgentId":"bob","etaSeconds":60}'
    # Of an event that is no offer, and a delivery: neither is the filter's.
    refusal 16 evt_99 bob
    rtp 17 7 ack bob ann '{"refEventId":"evt_2","refKind":"task_create","ackType":"accepted","ackedByNodeId":"bob","ackedByAgentId":"bob","ackedAt":"2026-11-23T11:00:00.000Z"}'
    # For several agents: the first one that accepts has it, without a handoff.
    create 6 '["bob","cleo"]'
  } >all
  handoff -s state <all >out
  cmp <(sort all) <(sort out)
  handoff pending -s state --all --json | jq -r '[.request_id, .status, .tried[0].outcome, .tried[0].reason] | join(" ")' | sort >states
  diff states - <<'EOS' >&2
tsk_1 COMPLETED  
tsk_2 PENDING  
tsk_3 REJECTED rejected too much to do
tsk_4 REJECTED rejected no time
tsk_5 ACCEPTED  
EOS
  # Another agent's refusal.
  run -1 --separate-stderr handoff -s state < <(refusal 18 evt_2 eve)
  [[ "$stderr" == *bad_sender* ]]
  [ "$(of tsk_2 .status)" = PENDING ]
  amp-ack sweep -s state --now 2032-01-01T00:00:01Z >swept
  [ "$(jq -r '"\(.payload.refEventId) \(.payload.code)"' swept)" = 'evt_2 handoff_expired' ]
  [ "$(of tsk_2 '.status + .tried[0].outcome')" = EXPIREDexpired ]
}

@test "Runtime Protocol: a task for capabilities goes to one agent after the other" {
  # b1 has it by its descriptor, b2 and b3 as agents of a published capability.
  agent-registry register -s state b1 --capability cap.count --connector http://localhost >out
  for a in b2 b3; do agent-registry register -s state $a --connector http://localhost >out; done
  jq -nc '{capabilityId: "cap.count", name: "Count", version: "1.0.0", status: "active", ownerAgentId: "b2",
    ownerNodeId: "n", delegationSkillRef: {name: "d", version: "1.0.0"}, executorSkillRef: {name: "e", version: "1.0.0", path: "/p"},
    contractSchemaRef: "schema://x", defaultEtaSeconds: 600, publishedAt: "2026-02-25T16:30:00.000Z", publishedByAgentId: "ann"}' |
    agent-registry publish -s state >out
  create 1 '[]' ',"requiredCapabilities":["cap.count"]' >in
  handoff -s state <in >one
  first=$(of tsk_1 .to_agent)
  # The declining agent names the event with its offer.
  handoff -s state < <(refusal 20 "$(jq -r .eventId one)" "$first") >two
  second=$(of tsk_1 .to_agent)
  [[ "$first $second" =~ ^b[12]\ b[12]$ ]]
  [ "$first" != "$second" ]
  # No answer within 120 s: nobody is left, since b3 is not eligible.
  amp-ack sweep -s state --now "$(date -ud '+1 min' +%FT%TZ)" >swept
  [ "$(of tsk_1 .status)" = PENDING ]
  amp-ack sweep -s state --now "$(date -ud '+3 min' +%FT%TZ)" >swept
  [ "$(of tsk_1 '.status + " " + ([.tried[] | .outcome + ":" + (.reason // "")] | join(" "))')" = "EXPIRED rejected:too much to do expired:" ]
  # The origin is told.
  jq -e '.kind == "ack" and .toAgentId == "ann" and .corrId == "corr_1" and .seq == 3 and
    (.payload | .refEventId == "evt_1" and .ackType == "failed_terminal" and .code == "handoff_expired")' swept
  amp-validate one two swept >valid
  handoff -s state <swept >passed
  cmp swept passed
  sed -i 3d valid
  jq -es --arg a "$first" --arg b "$second" 'map([.payload.toAgents[0], .toAgentId, .seq, .trace.attempt, .corrId, .payload.taskId, .payload.requesterAgentId, .sourceAgentId, .sourceNodeId]) ==
    [[$a, $a, 1, 1, "corr_1", "tsk_1", "ann", "coordinator", "coordinator.tsk_1"], [$b, $b, 2, 2, "corr_1", "tsk_1", "ann", "coordinator", "coordinator.tsk_1"]]' valid
  run -1 --separate-stderr handoff -s state < <(create 2 '[]' ',"requiredCapabilities":["cap.fly"]')
  [[ "$stderr" == *capability_unavailable* ]]
}

@test "of two requests for a task one is accepted; what another agent has is not handed over" {
  handoff request -s state --as ann --to bob --reason r --task T-1 --id H-1 >out
  handoff request -s state --as ann --to cleo --reason r --task T-1 --id H-2 >out
  handoff accept -s state --as cleo H-2 >out
  refused handed_over accept -s state --as bob H-1
  [ "$(of H-1 .status)" = PENDING ]
  refused handed_over request -s state --as ann --to dan --reason r --task T-1 --id H-3
  refused bad_sender request -s state --as eve --to dan --reason r --task T-1 --id H-3
  # A task whose name begins alike is another.
  handoff request -s state --as ann --to bob --reason r --task T-11 --id H-4 >out
  # Thirty days later nothing refers to them.
  handoff complete -s state --as cleo H-2 >out
  handoff reject -s state --as bob --reason no H-1 >out
  handoff reject -s state --as bob --reason no H-4 >out
  amp-ack sweep -s state --now "$(date -ud '+31 days' +%FT%TZ)" >swept
  [ -z "$(handoff pending -s state --all --json)" ]
  [ "$(cat state/log/* | grep -c '"key":"handoff_ref.*"to":"REMOVED"')" -eq 3 ]
}

# says NAME <lines: signed with this key of the state.
says() {
  amp-sign -q -s state --key "state/keys/$1"
}

@test "identities: agents speak for themselves; a forged message is refused, recorded, and changes nothing" {
  unset AMP_IDENTITY
  for a in ann bob eve coordinator; do amp-sign -q keygen -s state --as $a >key; done
  # The verbs sign.
  handoff request -s state --as ann --to bob --reason r --task T-1 --id H-1 >request
  jq -e '.sig.alg == "Ed25519" and .msg.producer_id == "ann"' request
  # The messages of another state, which the agents of this one sign.
  AMP_IDENTITY=off handoff request -s other --as ann --to bob --reason r --id H-2 | jq -c .msg >offer
  AMP_IDENTITY=off handoff accept -s other --as bob H-2 | jq -c .msg >accept
  AMP_IDENTITY=off handoff complete -s other --as bob H-2 | jq -c .msg >complete
  AMP_IDENTITY=off handoff request -s third --as ann --to bob --reason r --id H-2 >out
  AMP_IDENTITY=off handoff reject -s third --as bob --reason no H-2 | jq -c .msg >reject
  # as FILE WHO: the message, from WHO.
  as() { jq -c --arg w "$2" '.producer_id = $w | .message_id = "00000000-0000-4000-8000-\(now * 1000 | floor)"[0:36]' "$1"; }
  # forged CODE FILE: refused by a filter whose input is a file that anyone may write.
  mkfifo line
  forged() {
    local before
    before=$(cat state/log/* | grep -c '"key":"handoff')
    cat "$2" >line &
    run -1 --separate-stderr handoff -s state <line
    [[ "$stderr" == *": $1: "* ]]
    [[ $(tail -n 1 state/error.ndjson) == *"\"code\":\"$1\""* ]]
    [ "$(cat state/log/* | grep -c '"key":"handoff')" -eq "$before" ]
  }
  forged unsigned offer
  says eve <offer >in
  forged bad_sender in # eve's key, ann's name
  as offer eve | says eve >in
  forged bad_sender in # eve asks in ann's name
  says ann <offer >line &
  handoff -s state <line >out
  [ "$(of H-2 .status)" = PENDING ]
  forged unsigned accept
  says eve <accept >in
  forged bad_sender in
  as accept eve | says eve >in
  forged bad_sender in # in bob's name
  as reject eve | says eve >in
  forged bad_sender in # not the candidate
  sed 's/"reason":"no"/"reason":"oh"/' <(says bob <reject) | sed 's/rejection_reason":"no/rejection_reason":"oh/' >in
  forged bad_signature in
  [ "$(of H-2 .status)" = PENDING ]
  # The coordinator passes on what bob said.
  as accept coordinator | says coordinator >line &
  handoff -s state <line >out
  [ "$(of H-2 '.status + .to_agent')" = ACCEPTEDbob ]
  as complete eve | says eve >in
  forged bad_sender in
  says bob <complete >line &
  handoff -s state <line >out
  [ "$(of H-2 .status)" = COMPLETED ]
  # The same in the other protocols.
  create 9 '["bob"]' | says ann >line &
  handoff -s state <line >out
  rtp 91 1 task_accept eve ann '{"taskId":"tsk_9","acceptedByAgentId":"bob","etaSeconds":60}' | says eve >in
  forged bad_sender in
  refusal 92 evt_9 eve | says eve >in
  forged bad_sender in
  create 10 '["eve"]' | says eve >in
  forged bad_sender in
  ask 63 57 ann bob | says eve >in
  forged bad_sender in
  [ "$(of tsk_9 .status)" = PENDING ]
  # A message that is about no handoff of this state is not judged here.
  rtp 1 1 task_accept bob ann '{"taskId":"tsk_1","acceptedByAgentId":"bob","etaSeconds":60}' >other.in
  cat other.in >line &
  handoff -s state <line >out
  cmp other.in out
}

@test "a pool gives no job of a task to the agent that handed it over" {
  load ../agents
  load ../pools
  STATE=$PWD/state
  builder <<'EOS'
echo "$AMP_TASK_ID $AMP_AGENT" >>"$marks/who"
EOS
  # gives ID AGENT: builder-1 hands the job's task over.
  gives() {
    task=$(job_of "$1" | sed 's/.*"task":"\([^"]*\)".*/\1/')
    handoff request -s state --as builder-1 --to "$2" --reason r --task "$task" >out
    handoff accept -s state --as "$2" "$(handoff pending -s state --json | jq -r .request_id)" >out
  }
  a=$(submit 0)
  gives "$a" builder-2
  pool --drain --type builder=3 -x ./agent
  is_state "$a" DONE
  [ "$(cat who)" = "$task builder-2" ]
  rm who
  # Nobody else is there: it is refused, and the sender gets an answer.
  b=$(submit 0)
  gives "$b" bob
  pool --drain --type builder=1 -x ./agent
  is_state "$b" FAILED
  [ "$(code_of "$b")" = handed_over ]
  [ ! -e who ]
  grep -F 'handed_over: builder-1 handed the task over to bob' err
  jq -e '.to == "cli" and .msg.payload.ack_stage == "REJECTED" and (.msg.payload.note | startswith("handed_over"))' out.ndjson
}

@test "two accept at once: one gets it; killed between the commit and the output, the line is written later" {
  handoff request -s state --as ann --to bob --reason r --id H-1 >out
  for i in 1 2 3 4; do
    { handoff accept -s state --as bob H-1 >"answer$i" 2>"err$i" || echo $? >"status$i"; } &
  done
  wait
  [ "$(cat answer? | wc -l)" -eq 1 ]
  [ "$(cat status? | grep -c '^1$')" -eq 3 ]
  [ "$(cat err? | grep -c not_pending)" -eq 3 ]
  # The output is a FIFO that nobody reads beyond its buffer: the commit is made, then the process is killed.
  head -c 300000 /dev/zero | tr '\0' a >big
  mkfifo pipe
  sleep 60 <pipe &
  reader=$!
  handoff request -s state --as ann --to bob --reason r --context big --id H-2 >pipe &
  writer=$!
  wait_until 10 grep -q '"key":"handoff.H-2"' state/log/000001.ndjson
  kill -9 "$writer" "$reader"
  ends 137 wait "$writer"
  handoff request -s state --as ann --to bob --reason r --id H-3 >out
  [ "$(jq -r .msg.payload.request_id out | tr '\n' ' ')" = "H-2 H-3 " ]
  [ "$(of H-2 .status)" = PENDING ]
}
