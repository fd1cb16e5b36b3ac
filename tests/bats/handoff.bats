#!/usr/bin/env bats
# task-dispatch handoff: work goes from one agent to another (SW4RM §17.6).

load lib

setup() {
  need jq
  need_tool task-dispatch agent-registry amp-ack amp-validate
  cd "$BATS_TEST_TMPDIR" || return
}

handoff() {
  task-dispatch -q handoff "$@"
}

# agents NAME...: registered, with the capability review.
agents() {
  local a
  for a; do
    agent-registry register -s state "$a" --capability review --connector http://localhost >>registered
  done
}

# of ID FILTER: of the record.
of() {
  handoff pending -s state --all --json | jq -r --arg id "$1" "select(.request_id == \$id) | $2"
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
  AMP_AGENT=ann refused bad_sender accept -s state --as bob H-1
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
  load agents
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

@test "Runtime Protocol: task_create, task_accept, task_complete; deadlineAt ends it" {
  rtp() {
    printf '{"eventId":"evt_%s","seq":%s,"kind":"%s","sourceNodeId":"%s","sourceAgentId":"%s","toAgentId":"%s","corrId":"corr_1","createdAt":"2026-11-23T11:00:00.000Z","payload":%s,"trace":{"attempt":1}}\n' "$@"
  }
  {
    rtp 1 1 task_create ann ann bob '{"taskId":"tsk_1","title":"t","description":"d","toAgents":["bob"],"requesterAgentId":"ann","deadlineAt":"2032-01-01T00:00:00.000Z"}'
    rtp 2 2 task_create ann ann bob '{"taskId":"tsk_2","title":"t","description":"d","toAgents":["bob"],"requesterAgentId":"ann","deadlineAt":"2032-01-01T00:00:00.000Z"}'
    rtp 3 1 task_accept bob bob ann '{"taskId":"tsk_1","acceptedByAgentId":"bob","etaSeconds":60}'
    rtp 4 2 task_complete bob bob ann '{"taskId":"tsk_1","completedByAgentId":"bob","completedAt":"2026-11-23T11:00:00.000Z","resultSummary":"ok"}'
  } >all
  handoff -s state <all >out
  cmp all out
  [ "$(of tsk_1 '.status + .reason')" = COMPLETEDd ]
  amp-ack sweep -s state --now 2032-01-01T00:00:01Z >swept
  [ "$(of tsk_2 '.status + .tried[0].outcome')" = EXPIREDexpired ]
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
