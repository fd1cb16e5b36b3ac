#!/usr/bin/env bats
# The registry: registrations, heartbeats, their misses, capabilities; each by the verbs and by
# messages. What it sends passes the strict checks.

load ../lib

setup() {
  cd "$BATS_TEST_TMPDIR" || return 1
  export AMP_STATE=state
  need_tool agent-registry amp-validate
}

# join NAME [OPTION...]
join() {
  local name=$1
  shift
  agent-registry register "$name" --connector x:y "$@" >>events.ndjson
}

# sw4rm TYPE FROM PAYLOAD [JQ]: a message on one line.
sw4rm() {
  jq -nc --arg t "$1" --arg f "$2" --argjson p "$3" --arg id "$(uuid)" '{message_id: $id,
    producer_id: $f, correlation_id: $id, sequence_number: 1, retry_count: 0, message_type: $t,
    content_type: "application/json", content_length: ($p | tojson | utf8bytelength), payload: $p}'" | ${4:-.}"
}
uuid() { cat /proc/sys/kernel/random/uuid; }

descriptor() {
  jq -nc --arg a "$1" '{agent_id: $a, name: $a, description: "works", capabilities: ["build"],
    communication_class: "STANDARD", modalities_supported: ["application/json"],
    reasoning_connectors: ["x:y"]}' | jq -c "${2:-.}"
}

# capability ID OWNER [JQ]
capability() {
  jq -nc --arg c "$1" --arg o "$2" '{capabilityId: $c, name: "n", version: "1.3.0", status: "active",
    ownerAgentId: $o, ownerNodeId: "n1", delegationSkillRef: {name: "d", version: "1.3.0", path: "/skills/d"},
    executorSkillRef: {name: "e", version: "1.3.0", path: "/skills/e"}, contractSchemaRef: "schema://x",
    defaultEtaSeconds: 900, publishedAt: "2026-02-25T16:30:00.000Z", publishedByAgentId: "architect"}' |
    jq -c "${3:-.}"
}

state_of() { agent-registry show "$1" | jq -r .reachability; }

# told FILE: recipient and event of each notification.
told() { jq -r 'select(.msg.message_type == "NOTIFICATION") | .to + " " + .msg.payload.event + " " +
  .msg.payload.agent_id' "$1"; }

@test "every agent is notified of who joins and leaves, in valid messages" {
  join ann --role executor
  join bob --role reviewer --capability test
  agent-registry deregister bob --reason tired >>events.ndjson
  [ "$(told events.ndjson | paste -sd ,)" = \
    "ann agent_joined ann,bob agent_joined bob,ann agent_joined bob,bob agent_left bob,ann agent_left bob" ]
  [ "$(tail -n 1 events.ndjson | jq -r .msg.payload.reason)" = tired ]
  amp-validate --strict --hlc events.ndjson | cmp - events.ndjson
  # Numbers grow, ids are new, one event is one conversation.
  jq -es '[.[].msg.sequence_number] | . == sort and . == unique' events.ndjson
  [ "$(jq -r .msg.message_id events.ndjson | sort -u | wc -l)" -eq 5 ]
  [ "$(jq -r .msg.correlation_id events.ndjson | sort -u | wc -l)" -eq 3 ]
  [ "$(agent-registry list --json | jq -r .agent_id)" = ann ]
  [ "$(agent-registry list --json --all | jq -r .reachability | paste -sd ' ')" = "REACHABLE LEFT" ]
  [ "$(agent-registry list --json -a --role reviewer | jq -r .agent_id)" = bob ]
  [ "$(agent-registry list --json -a --capability test | jq -r .agent_id)" = bob ]
  run -1 agent-registry deregister bob
  [[ "$output" == *"not registered"* ]]
  run -1 agent-registry show nobody
  # It may come back.
  join bob
  [ "$(state_of bob)" = REACHABLE ]
}

@test "what a registration must have" {
  run -1 agent-registry register ann
  [[ "$output" == *reasoning_connectors* ]]
  run -1 agent-registry register ann --connector x:y --description "$(printf 'word %.0s' {1..201})"
  [[ "$output" == *"201 words"* ]]
  run -0 agent-registry register ann --connector x:y --description "$(printf 'word %.0s' {1..200})"
  run -1 agent-registry register bob --connector x:y --modality text
  [[ "$output" == *modalities_supported* ]]
  run -1 agent-registry register bob --connector x:y --signing
  [[ "$output" == *public_key* ]]
  run -1 agent-registry register bob --connector x:y --signing --public-key AAEC
  [[ "$output" == *"not an Ed25519 or ECDSA key"* ]]
  run -0 agent-registry register bob --connector x:y --signing --public-key "$(head -c 32 /dev/urandom | base64 -w 0)"
  run -1 agent-registry register all --connector x:y
  run -64 agent-registry register ann --class OTHER --connector x:y
  echo '{"input_schema": {}}' >tool.json
  run -1 agent-registry register cat --connector x:y --tool tool.json
  [[ "$output" == *tool_name* ]]
  descriptor dan '.tools = []' >dan.json
  run -0 agent-registry register --descriptor dan.json --role executor
  [ "$(agent-registry show dan | jq -r '.role + .descriptor.description')" = executorworks ]
  [ "$(agent-registry list --json | wc -l)" -eq 3 ]
}

@test "the filter takes its own, answers it, and passes everything else on" {
  {
    sw4rm CONTROL cli "$(descriptor ann | jq -c '{agent: .}')"
    sw4rm DATA bob "$(descriptor bob)"
    sw4rm DATA cli '{"x": 1}'
    sw4rm CONTROL cli "$(descriptor cat 'del(.name) | {agent: .}')"
    sw4rm HEARTBEAT ann '{"agent_id": "ann", "state": "RUNNING", "health": {"load": "0.3"}}'
    sw4rm HEARTBEAT registry '{"agent_id": "bob"}'
    sw4rm HEARTBEAT eve '{"agent_id": "eve", "state": "RUNNING"}'
    sw4rm CONTROL cli '{"command": "deregister", "agent_id": "bob"}'
    sw4rm CONTROL cli '{"command": "start", "agent_id": "ann"}'
    sw4rm DATA cli '{"type": "DeregisterAgentRequest", "agent_id": "bob"}'
  } >in.ndjson
  run -1 --separate-stderr agent-registry <in.ndjson
  printf '%s\n' "$output" >out.ndjson
  amp-validate --strict --hlc <(jq -c 'select(.to)' out.ndjson) >/dev/null
  jq -c 'select(.to | not)' out.ndjson | cmp - <(sed -n '3p;6p;9p' in.ndjson)
  # One answer each, to the sender, about the message: registrations, refusals, deregistrations.
  jq -r 'select(.msg.message_type == "ACKNOWLEDGEMENT") | .to + " " + .msg.payload.ack_stage + " " +
    (.msg.payload.error_code // "-") + " " + .msg.payload.ack_for_message_id' out.ndjson >acks
  id() { sed -n "$1p" in.ndjson | jq -r .message_id; }
  diff acks - <<EOF
cli FULFILLED - $(id 1)
bob FULFILLED - $(id 2)
cli REJECTED VALIDATION_ERROR $(id 4)
eve REJECTED NOT_FOUND $(id 7)
cli FULFILLED - $(id 8)
cli REJECTED NOT_FOUND $(id 10)
EOF
  [ "$(agent-registry show ann | jq -r '.state + .health.load')" = RUNNING0.3 ]
  [ "$(state_of bob)" = LEFT ]
  jq -es 'map(.code) == ["validation_error", "not_registered", "not_registered"]' state/error.ndjson
  # The same registration again: answered, told nobody.
  run -0 --separate-stderr agent-registry <<<"$(sed -n 1p in.ndjson)"
  [ "$(jq -r .msg.message_type <<<"$output")" = ACKNOWLEDGEMENT ]
}

@test "with identity all, the filter takes and passes only signed messages" {
  need_tool amp-sign
  export AMP_IDENTITY=all
  amp-sign keygen key >/dev/null
  amp-sign trust add --allowed-signers signers cli key.pub
  { sw4rm CONTROL cli "$(descriptor ann | jq -c '{agent: .}')"; sw4rm DATA cli '{"x": 1}'; } >plain
  run -1 --separate-stderr agent-registry --allowed-signers signers <plain
  [[ $stderr == *unsigned* ]]
  run -1 grep -F '{"x":1}' <<<"$output"
  run -1 agent-registry show ann
  amp-sign --key key <plain >signed
  run -0 --separate-stderr agent-registry --allowed-signers signers <signed
  grep -qF '{"x":1}' <<<"$output"
  run -0 agent-registry show ann
}

@test "what the registry says is numbered by the state, whatever the clock" {
  join ann
  join bob
  agent-registry heartbeat --emit --count 2 --interval 100ms --timeout 50ms </dev/null >>events.ndjson
  sw4rm CONTROL ann '{"command":"deregister","agent_id":"ann"}' | agent-registry >>events.ndjson
  local producer
  jq -r .msg.producer_id events.ndjson | sort -u >producers
  [ -s producers ]
  while read -r producer; do
    jq -r --arg p "$producer" 'select(.msg.producer_id == $p).msg.sequence_number' events.ndjson >numbers
    sort -nuc numbers
    jq -r --arg k "sequence.sw4rm.${producer//./%2E}" 'select(.key == $k).state.last' state/log/*.ndjson >lasts
    [ "$(tail -n 1 lasts)" -ge "$(tail -n 1 numbers)" ] # it may skip some
  done <producers
}

@test "missed heartbeats are debounced, and never deregister" {
  join ann
  join bob
  # Nobody answers; the third miss tells it, once.
  agent-registry heartbeat --emit --count 4 --interval 100ms --timeout 50ms --misses 3 </dev/null >out.ndjson
  amp-validate --strict --hlc out.ndjson >/dev/null
  [ "$(jq -r 'select(.msg.message_type == "HEARTBEAT") | .to' out.ndjson | sort | uniq -c | tr -s ' ' |
    paste -sd ,)" = " 4 ann, 4 bob" ]
  agent-registry heartbeat --emit --count 2 --interval 100ms --timeout 50ms --misses 3 </dev/null >>out.ndjson # they are asked still
  [ "$(told out.ndjson | sort | paste -sd ,)" = "ann agent_unreachable ann,ann agent_unreachable bob,\
bob agent_unreachable ann,bob agent_unreachable bob" ]
  [ "$(state_of ann)" = UNREACHABLE ]
  [ "$(agent-registry list --json | wc -l)" -eq 2 ]
  # A sign of life brings it back, which is told too.
  agent-registry heartbeat ann >back.ndjson
  [ "$(told back.ndjson | paste -sd ,)" = "ann agent_reachable ann,bob agent_reachable ann" ]
  [ "$(agent-registry show ann | jq -r '.reachability, .missed_heartbeats' | paste -sd ' ')" = "REACHABLE 0" ]
  # One late answer in time for the debounce: nothing is told.
  agent-registry heartbeat --emit --count 2 --interval 100ms --timeout 50ms --misses 1000 </dev/null >late.ndjson
  [ "$(state_of ann)" = LATE ]
  [ -z "$(told late.ndjson)" ]
}

@test "who was late or unreachable registers again, or leaves" {
  join ann
  join bob
  join cid
  beats() { agent-registry heartbeat --emit --count 2 --interval 100ms --timeout 50ms --misses "$1" </dev/null >>events.ndjson; }
  beats 1000
  [ "$(state_of ann) $(state_of bob) $(state_of cid)" = "LATE LATE LATE" ]
  agent-registry deregister cid >>events.ndjson
  [ "$(agent-registry list --json | jq -r .agent_id | paste -sd ' ')" = "ann bob" ]
  join ann
  [ "$(state_of ann)" = REACHABLE ]
  beats 1
  [ "$(state_of ann) $(state_of bob)" = "UNREACHABLE UNREACHABLE" ]
  join ann
  [ "$(state_of ann)" = REACHABLE ]
  agent-registry deregister bob >>events.ndjson
  [ "$(agent-registry list --json | jq -r .agent_id)" = ann ]
}

@test "answers to heartbeats are timed" {
  join ann
  join bob
  mkfifo asked answers
  agent-registry heartbeat --emit --count 1 --timeout 5s >asked <answers &
  # shellcheck disable=SC2016
  jq --unbuffered -c 'if .to == "ann" then .msg | .producer_id = "ann" | .payload.state = "RUNNING" |
      .content_length = (.payload | tojson | length)
    else .msg | {message_id: "5a1d9c8e-6b3f-4a87-8f5e-91a2c0ab1234", producer_id: "bob",
      correlation_id, sequence_number: 1, retry_count: 0, message_type: "ACKNOWLEDGEMENT",
      content_type: "application/json", payload: {ack_for_message_id: .message_id, ack_stage: "READ"}} |
      .content_length = (.payload | tojson | length) end' <asked >answers
  wait $!
  agent-registry list --json | jq -es 'length == 2 and all(.answers == 1 and .answer_ms >= 0 and
    .answer_ms < 5000 and .reachability == "REACHABLE")'
  [[ "$(agent-registry list)" == *ms* ]]
}

@test "a capability: the index record and a task for everyone but its owner" {
  join owner
  join ann
  join bob
  join gone
  agent-registry deregister gone >/dev/null
  capability cap.fs.diff-apply owner >cap.json
  run -0 --separate-stderr agent-registry publish cap.json
  printf '%s\n' "$output" >out.ndjson
  amp-validate --strict out.ndjson | cmp - out.ndjson
  jq -es '(.[0] | .capabilityId == "cap.fs.diff-apply" and .eligibleAgentIds == ["owner"] and
      (.policyVersion | test("^cpv_[0-9]{4}_[0-9]{2}_[0-9]{2}_1$")))
    and (.[1:] | map(.toAgentId) | sort == ["ann", "bob"]) and (.[1:] | all(.kind == "task_create" and
      .payload.taskType == "skill_distribution" and .payload.toAgents == [.toAgentId] and
      .payload.delegationSkillRef == {name: "d", version: "1.3.0"} and .payload.requiredBy > .createdAt))
    and (.[1:] | map(.corrId) | unique | length == 1) and ([.[1:][].seq] == [1, 2])' out.ndjson
  jq -es 'all(.[1:][].trace; has("capabilityPolicyVersion") and (has("routingPolicyVersion") | not))' out.ndjson
  # Published once, and not lower; the status alone may change.
  run -0 agent-registry publish cap.json
  [ -z "$output" ]
  run -1 agent-registry publish <(jq -c '.version = "1.2.9"' cap.json)
  [[ "$output" == *1.2.9* ]]
  run -1 agent-registry publish <(jq -c '.defaultEtaSeconds = 901' cap.json)
  run -0 --separate-stderr agent-registry publish <(jq -c '.status = "disabled"' cap.json)
  [ "$(jq -c .eligibleAgentIds <<<"$output")" = '[]' ]
  [ "$(agent-registry capabilities --json | wc -l) $(agent-registry capabilities --json -a | wc -l)" = "0 1" ]
  echo '{"runtime":{"routing_policy":"rpv_7"}}' >amp.json
  run -0 --separate-stderr agent-registry publish -c amp.json <(jq -c '.version = "1.10.0"' cap.json)
  jq -es 'all(.[1:][].trace; .routingPolicyVersion == "rpv_7")' <<<"$output"
  # Its events have the next numbers: what was refused in between took none.
  [ "$(jq -rs 'map(.seq // empty) | join(" ")' <<<"$output")" = "3 4" ]
  [ "$(agent-registry capabilities --index | jq -r .policyVersion)" = "$(head -n 1 <<<"$output" | jq -r .policyVersion)" ]
  [[ "$(agent-registry capabilities)" == *1.10.0*owner*REACHABLE*900s* ]]
  run -1 agent-registry capabilities cap.none
}

@test "what a capability must have" {
  join owner
  refused() {
    run -1 agent-registry publish <<<"$(capability cap.x owner "$1")"
    [[ "$output" == *"$2"* ]] || {
      echo "$1: $output"
      return 1
    }
  }
  refused '.defaultEtaSeconds = 29' defaultEtaSeconds
  refused '.defaultEtaSeconds = 86401' defaultEtaSeconds
  refused '.version = "1.3"' version
  refused '.capabilityId = "fs"' capabilityId
  refused '.ownerAgentId = "nobody"' "not registered"
  refused 'del(.executorSkillRef)' executorSkillRef
  capability cap.x owner >cap.json
  mkdir -p gateway
  run -1 agent-registry publish --skills gateway cap.json
  [[ "$output" == *executorSkillRef* ]]
  mkdir -p gateway/skills/e
  run -0 agent-registry publish --skills gateway cap.json
  # As messages: the codes are in the error log.
  {
    capability cap.y nobody
    capability cap.x owner '.version = "1.0.0"'
    capability cap.z owner '.executorSkillRef.path = "../e"'
  } >in.ndjson
  run -1 --separate-stderr agent-registry --skills gateway <in.ndjson
  [ -z "$output" ]
  jq -es 'map(.code) == ["owner_unavailable", "version_incompatible", "install_failed"]' state/error.ndjson
  agent-registry deregister owner >/dev/null
  run -1 agent-registry publish <(capability cap.w owner)
  [[ "$output" == *deregistered* ]]
  # The order of versions.
  join owner
  for v in 1.0.0-alpha 1.0.0-alpha.1 1.0.0-alpha.beta 1.0.0-beta.2 1.0.0-beta.11 1.0.0-rc.1 1.0.0 1.0.1 1.2.0 1.10.0; do
    run -0 agent-registry publish <(capability cap.v owner ".version = \"$v\"")
  done
}

@test "who follows sees each change, and sleeps meanwhile" {
  need strace
  not_under_valgrind "strace would show what valgrind does"
  join ann
  agent-registry list --json --follow >seen 3>&- &
  pid=$!
  wait_until 30 has_lines seen 1
  join bob
  wait_until 30 has_lines seen 2
  agent-registry deregister ann >/dev/null
  wait_until 30 has_lines seen 3
  [ "$(jq -r '.agent_id + " " + .reachability' seen | paste -sd ,)" = \
    "ann REACHABLE,bob REACHABLE,ann LEFT" ]
  # Asleep: one wait without a time limit.
  strace -f -qq -e trace=all -p "$pid" -o calls 3>&- &
  tracer=$!
  wait_until 30 test -s calls
  wait_until 30 quiet calls 1
  kill "$tracer"
  kill "$pid"
  wait "$pid" || [ $? -eq 130 ]
}

@test "who follows ends when the state directory is taken away" {
  join ann
  agent-registry list --follow >seen 2>err 3>&- &
  pid=$!
  wait_until 20 has_lines seen 2
  mv state gone
  rc=0
  wait "$pid" || rc=$?
  [ "$rc" -eq 74 ]
  grep -q 'removed or renamed' err
}

@test "events that a killed run left are written once, by the next" {
  join ann
  # The reader is gone before the events are written: they stay.
  agent-registry register bob --connector x:y >/dev/full 2>/dev/null || [ $? -eq 74 ]
  [ "$(state_of bob)" = REACHABLE ]
  agent-registry register cat --connector x:y >events
  [ "$(told events | paste -sd ,)" = "bob agent_joined bob,ann agent_joined bob,\
cat agent_joined cat,ann agent_joined cat,bob agent_joined cat" ]
  agent-registry heartbeat cat >events
  [ ! -s events ]
}

@test "one process of a name at a time; nothing without a state" {
  mkfifo in
  agent-registry <in >/dev/null &
  pid=$!
  exec 9>in
  wait_until 30 test -e state/run/agent-registry.filter.lock
  wait_until 30 eval '[ -n "$(ls -A state/log)" ]'
  run -75 agent-registry --lock-timeout 0 </dev/null
  # The verbs have a name of their own.
  run -0 agent-registry register ann --connector x:y
  run -0 agent-registry --as other </dev/null
  exec 9>&-
  wait "$pid"
  run -69 agent-registry list --state nowhere
  [ ! -e nowhere ]
  unset AMP_STATE
  run -64 agent-registry list
}

@test "a name that no inbox could have is refused" {
  run -1 --separate-stderr agent-registry register $'a\nb' --connector x:y
  [[ "$stderr" == *"control characters"* ]]
  run -1 --separate-stderr agent-registry register "$(printf 'x%.0s' {1..129})" --connector x:y
  run -0 agent-registry list --json
  [ -z "$output" ]
}

@test "trusted keys and revocations are listed, and published to the agents that answer" {
  need_tool amp-sign
  unset AMP_IDENTITY
  join ann
  join bob
  agent-registry deregister bob >>events.ndjson
  amp-sign keygen --as executor/ann >/dev/null
  amp-sign keygen outside >/dev/null
  amp-sign trust add --allowed-signers signers operator/eve outside.pub
  run -0 --separate-stderr agent-registry list --keys --json --allowed-signers signers
  [ "$(jq -r .principals <<<"$output")" = $'executor/ann\noperator/eve' ]
  key=$(jq -r 'select(.principals == "executor/ann").key' <<<"$output")
  amp-sign revoke "$key" --from 2026-01-02T03:04:05Z
  run -0 agent-registry list --keys
  [[ "$output" == *"$key"*"2026-01-02T03:04:05.000Z"* ]]
  agent-registry publish --keys >published
  # The agent that left gets none; what is sent is signed by the registry, and has no secret.
  [ "$(jq -r .to published)" = ann ]
  amp-sign verify <published | cmp - published
  jq -e '.msg.payload | .event == "keys_published" and
    any(.keys[]; .key == "'"$key"'" and .revoked_from == "2026-01-02T03:04:05.000Z")' published
  run -1 grep -i private published
  amp-validate --strict <published >/dev/null
  agent-registry publish --keys --identity off 2>/dev/null | jq -e 'has("sig") | not'
}
