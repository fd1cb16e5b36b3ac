#!/usr/bin/env bats
# The port "agents": whoever a message is addressed to gets it, once, and nobody else.

load ../lib
load ../messages

setup() {
  need_tool amp-route amp-ack agent-registry
  cd "$BATS_TEST_TMPDIR"
  export AMP_STATE=$PWD/state
}

teardown() {
  for p in $(jobs -p); do kill "$p" 2>/dev/null || :; done
}

# join NAME [OPTION...]
join() { agent-registry register "$1" --connector x:y "${@:2}" >>events; }
# event FROM KIND PAYLOAD [JQ]: of the Runtime Protocol.
event() {
  edited "{\"eventId\":\"evt_1\",\"seq\":1,\"kind\":\"$2\",\"sourceNodeId\":\"n\",\"sourceAgentId\":\"$1\",\"corrId\":\"corr_1\",\
\"createdAt\":\"2026-02-25T16:00:00Z\",\"payload\":$3,\"trace\":{\"attempt\":1}}" "${4-}"
}
# says FROM TO...: a message for these.
says() {
  local to
  to=$(printf '"%s",' "${@:2}")
  event "$1" message "{\"toAgents\":[${to%,}],\"body\":\"b\"}"
}
# published NAME...: the lines on standard input, with these in place of all.
published() {
  local to
  to=$(printf '"%s",' "$@")
  sed "s/\[\"all\"\]/[${to%,}]/"
}
# say_often N FROM TO...: so many, numbered.
say_often() {
  local line i
  line=$(says "${@:2}")
  for ((i = 1; i <= $1; i++)); do echo "${line/'"evt_1","seq":1'/"\"evt_$i\",\"seq\":$i"}"; done
}
# task FROM TO-JSON CAPABILITIES-JSON [JQ]
task() {
  event "$1" task_create "{\"taskId\":\"tsk_1\",\"title\":\"t\",\"toAgents\":$2,\"requiredCapabilities\":$3,\
\"requesterAgentId\":\"x\"}" "${4-}"
}
# sw4rm FROM [PAYLOAD [JQ]]
sw4rm() {
  local payload=${2:-"{}"}
  edited "{\"message_id\":\"5a1d9c8e-6b3f-4a87-8f5e-91a2c0ab1234\",\"producer_id\":\"$1\",\
\"correlation_id\":\"7f3f41a2-2017-4b8f-9b8b-2ad3caaee001\",\"sequence_number\":1,\"retry_count\":0,\
\"message_type\":\"DATA\",\"content_type\":\"application/json\",\"content_length\":${#payload},\"payload\":$payload}" "${3-}"
}
# to NAMES-JSON: the inner message of the file inner, for them.
to() { echo "{\"to\":$1,\"msg\":$(<inner)}"; }
capability() {
  jq -nc --arg c "$1" --arg o "$2" '{capabilityId: $c, name: "n", version: "1.3.0", status: "active",
    ownerAgentId: $o, ownerNodeId: "n1", delegationSkillRef: {name: "d", version: "1.3.0", path: "/d"},
    executorSkillRef: {name: "e", version: "1.3.0", path: "/e"}, contractSchemaRef: "schema://x",
    defaultEtaSeconds: 900, publishedAt: "2026-02-25T16:30:00.000Z", publishedByAgentId: "architect"} | '"${3:-.}" |
    agent-registry publish >>events
}
# agents NAME...: the router with a file for each.
agents() {
  local n args=()
  for n; do args+=(--agent "$n=file:$n.out"); done
  amp-route -r '* => agents' "${args[@]}"
}
# who: the files that got something, with their number of lines.
who() {
  local f
  for f in *.out; do [ ! -s "$f" ] || echo "${f%.out}:$(wc -l <"$f")"; done | paste -sd ' '
}
# lost CODE [SEED]: the answer, the dead letter and the record in the error log.
lost() {
  local id code
  read -r id code < <(jq -r '"\(.ref_msg_id // .payload.refEventId // .msg.payload.ack_for_message_id) \(.code //
    .payload.code // (.msg.payload.error_code | ascii_downcase))"' <<<"$output")
  [ "$code" = "$1" ]
  [ "$(amp-ack dead list --json | jq -r --arg i "$id" 'select(.msg_id == $i) | .code')" = "$1" ]
  [ "$(tail -n 1 state/error.ndjson | jq -r '.code + " " + (.seed_code // "")')" = "$1 ${2:-}" ]
}

@test "by agent: the one that is named, byte for byte" {
  join ann
  join bob
  says carl bob >in
  agents ann bob <in
  cmp in bob.out
  [ "$(who)" = bob:1 ]
}

@test "without a state only those with a port are there" {
  unset AMP_STATE
  says carl bob >in
  agents ann bob <in
  cmp in bob.out
  says ann all >in
  agents ann bob <in
  [ "$(who)" = bob:2 ]
  run -1 --separate-stderr agents ann <<<"$(says carl zoe)"
  [ "$(jq -r '.code // .payload.code' <<<"$output")" = invalid_targets ]
}

@test "who has a port need not be registered; who is registered and has none has an inbox" {
  join ann
  says carl bob | agents bob
  [ "$(who)" = bob:1 ]
  says carl ann >in
  agents bob <in >answer
  # Durably queued: told to the sender.
  [ "$(jq -r .payload.ackType answer)" = accepted ]
  amp-route inbox ann | cmp - in
  run -1 --separate-stderr amp-route inbox ann
  # Sent again it is known.
  agents bob <in >answer
  run -1 --separate-stderr amp-route inbox ann
  # Who left, though it was meant, is told of.
  agent-registry deregister ann >>events
  run -1 --separate-stderr agents bob <<<"$(jq -c '.eventId = "evt_2"' in)"
  lost invalid_targets
}

@test "all: an inbox each, its bound is each one's own" {
  for n in ann bob carl; do join "$n"; done
  say_often 5 carl all >said
  published ann bob <said >in
  run -1 --separate-stderr amp-route -r '* => agents' --inbound inbox:bob=3 <said
  [ "$(jq -r 'select(.payload.code == "buffer_full") | .payload.refEventId' <<<"$output" | paste -sd ' ')" = "evt_4 evt_5" ]
  amp-route inbox ann | cmp - in
  amp-route inbox bob | cmp - <(head -n 3 in)
  run -1 --separate-stderr amp-route inbox carl
  # Requeued, it comes to whoever has not had it.
  amp-ack dead requeue --every | amp-route -r '* => agents' >/dev/null
  amp-route inbox bob | cmp - <(tail -n 2 in)
  run -1 --separate-stderr amp-route inbox ann
}

@test "sw4rm in an inbox: members that only served routing are removed, the recipient is on record" {
  join bob
  sw4rm carl >inner
  to '"bob"' | amp-route -r '* => agents' >answer
  [ "$(jq -r '.to + " " + .msg.payload.ack_stage' answer)" = "carl RECEIVED" ]
  amp-route inbox bob | cmp - inner
  [ "$(amp-ack status --all --json | jq -r '.to + " " + .state')" = "bob READ" ]
}

@test "by role: one agent, the same for a task" {
  join ex1 --role executor
  join ex2 --role executor
  join ex3 --role executor
  join rev --role reviewer
  for n in 1 2 3 4 5 6 7 8; do
    for i in 1 2 3; do
      message task_dispatch ".task_id = \"T-2026-00$n\" | .msg_id = \"task_dispatch-T-2026-00$n-$i\""
    done
  done >in
  agents ex1 ex2 ex3 rev <in
  [ "$(cat ex?.out | sort | cmp - <(sort in) && echo same)" = same ]
  [ ! -s rev.out ]
  # More than one works, and no task is with two.
  [ "$(who | wc -w)" -gt 1 ]
  for f in ex?.out; do jq -r '.task_id' "$f" | sort -u; done | sort >tasks
  [ "$(uniq -d tasks | wc -l)" -eq 0 ]
  # An agent called so comes before a role.
  join executor
  message task_dispatch | agents ex1 ex2 ex3 executor
  [ "$(wc -l <executor.out)" -eq 1 ]
}

@test "a role nobody plays, and one whose agents do not answer" {
  run -1 --separate-stderr agents ann <<<"$(message task_dispatch)"
  [ "$(jq -r '.type + " " + .code + " " + (.retryable | tostring)' <<<"$output")" = "nack no_route true" ]
  join ex1 --role executor
  agent-registry --interval 10ms --timeout 10ms --misses 1 heartbeat --emit --count 1 </dev/null >/dev/null
  [ "$(agent-registry show ex1 | jq -r .reachability)" = UNREACHABLE ]
  run -1 --separate-stderr agents ex1 <<<"$(message task_dispatch)"
  [ "$(jq -r '.code + " " + (.retryable | tostring)' <<<"$output")" = "agent_unavailable true" ]
  # By its name it still gets what is for it.
  says carl ex1 | agents ex1
  [ "$(who)" = ex1:1 ]
}

@test "all: every agent that answers, once, but the sender" {
  for n in ann bob carl dora; do join "$n"; done
  agent-registry deregister dora >>events
  says ann all bob | agents ann bob carl dora
  [ "$(who)" = "bob:1 carl:1" ]
  # Only its sender is there.
  agent-registry deregister bob >>events
  agent-registry deregister carl >>events
  run -1 --separate-stderr agents ann bob carl <<<"$(says ann all | jq -c '.eventId = "evt_2"')"
  lost invalid_targets
}

@test "several names: each once; unknown ones are reported" {
  join ann
  join bob
  run -1 --separate-stderr agents ann bob <<<"$(says carl ann bob ann zoe)"
  [ "$(who)" = "ann:1 bob:1" ]
  lost invalid_targets
}

@test "sw4rm has one recipient, and loses the members that only served routing" {
  join ann
  join bob
  sw4rm carl >inner
  to '"bob"' | agents ann bob
  cmp inner bob.out
  for to in '"all"' '["ann", "bob"]'; do
    to "$to" >in
    run -1 --separate-stderr agents ann bob <in
    [ "$(tail -n 1 state/error.ndjson | jq -r '.code + " " + .rule')" = "validation_error unicast" ]
  done
  [ "$(who)" = bob:1 ]
  # Nobody is named at all.
  run -1 --separate-stderr agents ann bob <inner
  lost no_route
  # A role is one agent.
  join ex1 --role executor
  join ex2 --role executor
  to '"executor"' | agents ex1 ex2
  [ "$(cat ex?.out | wc -l)" -eq 1 ]
}

@test "by capability: the eligible owner; named agents go first" {
  join ann
  join owner
  capability cap.x owner
  task carl '[]' '["cap.x"]' | agents ann owner
  [ "$(who)" = owner:1 ]
  task carl '["ann"]' '["cap.x"]' | agents ann owner
  [ "$(who)" = "ann:1 owner:1" ]
  # The envelope's recipient does not stand for the payload's.
  task carl '[]' '["cap.x"]' '.toAgentId = "ann"' | agents ann owner
  [ "$(who)" = "ann:1 owner:2" ]
}

@test "a capability that nobody offers, or nobody just now" {
  join ann
  join owner
  capability cap.x owner
  capability cap.y ann
  capability cap.z ann '.compatibilityMode = "strict" | .executorSkillRef.version = "2.0.0"'
  run -1 --separate-stderr agents ann owner <<<"$(task carl '[]' '["cap.none"]' '.eventId = "evt_1"')"
  lost no_route
  run -1 --separate-stderr agents ann owner <<<"$(task carl '[]' '["cap.x", "cap.y"]' '.eventId = "evt_2"')"
  lost no_route
  run -1 --separate-stderr agents ann owner <<<"$(task carl '[]' '["cap.z"]' '.eventId = "evt_3"')"
  lost version_incompatible no_route
  agent-registry deregister owner >>events
  run -1 --separate-stderr agents ann owner <<<"$(task carl '[]' '["cap.x"]' '.eventId = "evt_4"')"
  lost capability_unavailable no_route
  [ "$(jq -r .payload.retryable <<<"$output")" = true ]
  capability cap.y ann '.status = "disabled"'
  run -1 --separate-stderr agents ann owner <<<"$(task carl '[]' '["cap.y"]' '.eventId = "evt_5"')"
  lost capability_unavailable no_route
  # The owner's own question goes to nobody.
  run -1 --separate-stderr agents ann <<<"$(task ann '[]' '["cap.z"]' '.eventId = "evt_6"')"
  [ "$(who)" = "" ]
}

@test "a task for nobody, or for a stranger" {
  run -1 --separate-stderr agents ann <<<"$(task carl '[]' '[]')"
  [ "$(tail -n 1 state/error.ndjson | jq -r '.code + " " + .seed_code')" = "missing_route_fields no_route" ]
  run -1 --separate-stderr agents ann <<<"$(task carl '["zoe"]' '[]')"
  lost invalid_targets no_route
}

@test "a handoff to whoever can do it" {
  join ann --capability build
  join bob --capability build --capability test
  handoff() {
    sw4rm carl "$(jq -nc --argjson c "$1" '{request_id: "r", from_agent: "carl", to_agent: "",
      reason: "x", context_snapshot: "", capabilities_required: $c, priority: 0, timeout_ms: 60000}')" \
      '.message_type = "CONTROL"'
  }
  handoff '["build", "test"]' >in
  amp-validate in >/dev/null
  agents ann bob <in
  [ "$(who)" = bob:1 ]
  run -1 --separate-stderr agents ann bob <<<"$(handoff '["cook"]' | jq -c '.message_id = "5a1d9c8e-6b3f-4a87-8f5e-91a2c0ab1235" | .sequence_number += 1')"
  lost no_route
}

# call [PAYLOAD [JQ]]: of a tool of bob.
call() {
  sw4rm carl "{\"tool_name\":\"ls\",\"provider_id\":\"bob\",\"args\":{},\"content_type\":\"application/json\",\"execution_policy\":{}${1-}}" \
    ".message_type = \"TOOL_CALL\" | ${2:-.}"
}

@test "a TOOL_CALL goes to its provider, with a call_id" {
  join ann
  join bob
  call >in
  agents ann bob <in >answer
  [ "$(who)" = bob:1 ]
  jq -ce '.payload.call_id == .message_id and .content_length == (.payload | tojson | length) and .payload.provider_id == "bob"' bob.out
  amp-validate --strict bob.out >/dev/null
  # Its own call_id stays, and so does the line.
  call ',"call_id":"c-1"' '.message_id = "5a1d9c8e-6b3f-4a87-8f5e-91a2c0ab1235" | .sequence_number = 2' >in
  agents ann bob <in
  tail -n 1 bob.out | cmp - in
  # The outer envelope has priority, and plain routes assign it, too, without a state as well.
  call '' '.message_id = "5a1d9c8e-6b3f-4a87-8f5e-91a2c0ab1236" | .sequence_number = 3' >inner
  to '"ann"' | agents ann bob
  jq -e '.payload.call_id == .message_id' ann.out
  unset AMP_STATE
  to '"ann"' | amp-route -r 'type=TOOL_CALL => file:plain'
  jq -e '.to == "ann" and .msg.payload.call_id == .msg.message_id' plain
}

@test "a TOOL_CALL without a call_id: its tracker, its router and its provider name one call" {
  join bob
  call '' '.idempotency_token //= "carl:ls:1"' >in
  amp-ack track <in >tracked
  cmp in tracked
  amp-route -r '* => agents' <tracked >answer
  amp-route inbox bob >work
  id=$(jq -r .payload.call_id work)
  [ "$id" = "$(jq -r .message_id in)" ]
  # Again it is known.
  amp-route -r '* => agents' <tracked >answer
  run -1 amp-route inbox bob
  sw4rm bob "{\"call_id\":\"$id\",\"status\":\"OK\",\"result_b64\":\"aGk=\",\"content_type\":\"application/json\"}" \
    '.message_type = "TOOL_RESULT" | .message_id = "5a1d9c8e-6b3f-4a87-8f5e-91a2c0ab1299"' | amp-ack track >/dev/null
  [ "$(amp-ack status --all --json | jq -r --arg i "$(jq -r .message_id in)" 'select(.msg_id == $i).state')" = FULFILLED ]
}

@test "what publish writes passes: the index record is for no agent, each task for its agent" {
  join owner
  join ann
  capability cap.fs.diff-apply owner
  tail -n 2 events >published
  jq -es 'map(.capabilityId // .kind) == ["cap.fs.diff-apply", "task_create"]' published
  run -0 --separate-stderr agents owner ann <published
  [ "$(who)" = ann:1 ]
  [ -z "$output$(amp-ack dead list --json)" ]
  # A message without recipients is no record.
  run -1 --separate-stderr agents owner ann <<<"$(says zoe)"
}

@test "other routes, native and jq, stand beside it" {
  join ann
  join bob
  says carl all | published ann bob >in
  amp-route -r 'from=carl => file:first' -r '* => agents' --agent ann=file:ann.out --agent bob=file:bob.out <<<"$(says carl all)"
  cmp in first
  [ "$(who)" = "" ]
  amp-route -r 'jq:.sourceAgentId == "zoe" => file:none' -r 'jq:.kind == "message" => agents' \
    --agent ann=file:ann.out --agent bob=file:bob.out <in
  [ "$(who)" = "ann:1 bob:1" ]
  amp-route --all -r '* => file:second' -r '* => agents' --agent ann=file:ann.out --agent bob=file:bob.out <in
  cmp in second
  [ "$(who)" = "ann:2 bob:2" ]
  # Nothing is left open: the next run says nothing.
  run -0 --separate-stderr agents ann bob </dev/null
  [ -z "$stderr" ]
}

@test "a recipient that cannot be reached is answered for, the others have it" {
  join ann
  join bob
  mkfifo nobody
  run -69 --separate-stderr amp-route -r '* => agents' --open-timeout 100ms \
    --agent ann=fifo:nobody --agent bob=file:bob.out <<<"$(says carl all)"
  [ "$(who)" = bob:1 ]
  [ "$(jq -r '.code // .payload.code' <<<"$output")" = agent_unavailable ]
  [ "$(amp-ack dead list --json | jq -r .code)" = agent_unavailable ]
}

@test "killed between expansion and delivery: those who were meant get it, once" {
  mkfifo in fifo
  for n in ann bob carl; do join "$n"; done
  amp-route --in in -r '* => agents' --agent ann=file:ann.out --agent bob=fifo:fifo --agent carl=file:carl.out &
  route=$!
  exec 8>in
  says dora all >&8
  wait_until 30 has_lines ann.out 1
  wait_until 30 has_lines carl.out 1
  # Their entries are closed on disk; bob has no reader.
  closed() { jq -se '[.[] | select(.close) | .close[]] | length >= 2' state/log/*.ndjson; }
  wait_until 30 closed
  kill -KILL $route
  wait $route || :
  exec 8>&-
  # Who comes later was not meant, who leaves was.
  join eve
  agent-registry deregister bob >>events
  agents ann bob carl eve </dev/null
  [ "$(who)" = "ann:1 bob:1 carl:1" ]
  agents ann bob carl eve </dev/null
  [ "$(who)" = "ann:1 bob:1 carl:1" ]
}

@test "killed at any point, inboxes: each gets each message once" {
  for n in ann bob carl; do join "$n"; done
  say_often 30 dora all >in
  for ms in 10 20 40 60 80; do
    timeout --foreground -s KILL "0.0$ms" amp-route --inbound 100 -r '* => agents' <in >/dev/null || :
  done
  amp-route --inbound 100 -r '* => agents' <in >/dev/null
  for n in ann bob carl; do amp-route inbox "$n" | sort | cmp - <(published ann bob carl <in | sort); done
}

@test "killed at any point: nobody is left out" {
  for n in ann bob carl; do join "$n"; done
  say_often 60 dora all >in
  for ms in 00 02 05 10 20; do
    timeout --foreground -s KILL "0.0$ms" amp-route -r '* => agents' --agent ann=spool:ann --agent bob=spool:bob \
      --agent carl=spool:carl <in || :
  done
  amp-route -r '* => agents' --agent ann=spool:ann --agent bob=spool:bob --agent carl=spool:carl <in
  for n in ann bob carl; do
    cat "$n"/new/* | sort | cmp - <(published ann bob carl <in | sort)
  done
}

@test "what --agent takes" {
  run -64 amp-route -r '* => agents' --agent ann
  run -64 amp-route -r '* => agents' --agent ann=agents
  run -64 amp-route -r '* => agents' --agent all=stdout
  run -64 amp-route -r '* => agents' --agent ann=stdout --agent ann=reject
  echo '{"route": {"routes": ["* => agents"], "agents": ["ann=file:ann.out"]}}' >amp.json
  says carl ann | amp-route --config amp.json
  [ "$(who)" = ann:1 ]
}

@test "a full agent is buffer_full, the others get all" {
  join ann
  join bob
  mkfifo bob.fifo
  # It has the FIFO open and reads nothing, until most were refused.
  exec 9<>bob.fifo
  say_often 40 carl all >in
  refused() { jq -r 'select((.code // .payload.code) == "buffer_full") | .ref_msg_id // .payload.refEventId' <<<"$output" | sort -u; }
  enough() { output=$(cat answers) && [ "$(refused | wc -l)" -ge 20 ]; }
  timeout 60 amp-route -r '* => agents' --patience 50ms --inbound 5 --open-timeout 100ms \
    --agent ann=file:ann.out --agent bob=fifo:bob.fifo <in >answers 9>&- &
  wait_until 30 enough
  exec 9>&-
  status=0
  wait $! || status=$?
  [ "$status" = 69 ]
  jq -r .eventId ann.out | cmp - <(jq -r .eventId in)
  enough
  # What waited for bob is told when the reader goes.
  [ "$(amp-ack dead list --json | jq -r .code | sort -u | paste -sd ,)" = agent_unavailable,buffer_full ]
}

@test "a time to live without a beginning counts from when it is read" {
  join bob
  sw4rm carl '{}' '.ttl_ms = 300' >inner
  to '"bob"' | amp-route -r '* => agents' >answer
  jq -c '{to: "bob", msg: (.message_id = "5a1d9c8e-6b3f-4a87-8f5e-91a2c0ab1235" | .sequence_number = 2 | .ttl_ms = 60000)}' inner |
    amp-route -r '* => agents' >answer
  sleep 0.4
  amp-route inbox bob >out
  [ "$(jq -r .ttl_ms out)" = 60000 ]
  [ "$(amp-ack dead list --json | jq -r .code)" = ttl_expired ]
}
