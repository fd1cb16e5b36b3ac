#!/usr/bin/env bats
# The registry under kills and failing disks: what it told is on record, what is on record is told.
# slow

load ../lib
load ../../kill9

setup() {
  need_tool agent-registry amp-ack
  cd "$BATS_TEST_TMPDIR" || return 1
  export AMP_STATE=$PWD/state
}

join() { agent-registry register "$1" --connector x:y "${@:2}"; }
# joined FILE...: whose joining the whole lines tell.
joined() {
  cat "$@" | kill9_lines | jq -r 'select(.msg.payload.event == "agent_joined") | .msg.payload.agent_id' | sort -u
}
known() { agent-registry list --json --all | jq -r .agent_id | sort; }

# check: nobody was told of who is not on record; after a run of its name, everybody of everybody.
check() {
  known >known
  [ -z "$(joined told.* | comm -23 - known)" ]
  agent-registry heartbeat first >told.after."$1"
  joined told.* | cmp - known
}

@test "register: killed at any moment" {
  join first >told.0
  n=0
  while ((kills < KILL_ROUNDS / 4 && n < KILL_ROUNDS)); do
    n=$((n + 1))
    kill9_round 12 agent-registry register "a$n" --connector x:y >"told.$n" 2>>said
    ((n % 10)) || check "$n"
  done
  check end
  echo "# $n rounds, $kills killed before their end (KILL_SEED=$KILL_SEED)" >&3
  ((kills > 0))
  # Each participant was told of each event of its own id once, or again under the same id.
  cat told.* | kill9_lines | jq -r '[.msg.message_id, .to, .msg.payload.event, .msg.payload.agent_id] | join(" ")' |
    sort -u >told
  [ "$(cut -d ' ' -f 1 told | uniq -d | wc -l)" -eq 0 ]
  [ "$(cut -d ' ' -f 2- told | sort | uniq -d | wc -l)" -eq 0 ]
}

@test "the filter: a registration sent again until it is answered counts once" {
  join first >told.0
  jq -nc 'range(40) | "5a1d9c8e-6b3f-4a87-8f5e-91a2c0ab1\(. + 100)" as $id | {agent: {agent_id: "b\(.)", name: "b",
    description: "", capabilities: [], communication_class: "STANDARD", modalities_supported: ["text/plain"],
    reasoning_connectors: ["x:y"]}} | {message_id: $id, producer_id: "b", correlation_id: $id,
    sequence_number: 1, retry_count: 0, message_type: "CONTROL", content_type: "application/json",
    content_length: (tojson | utf8bytelength), payload: .}' >in
  for n in $(seq 1 20); do
    kill9_round 25 agent-registry <in >"told.f$n" 2>>said
  done
  agent-registry <in >told.last
  [ "$(known | wc -l)" -eq 41 ]
  joined told.* | cmp - <(known)
  [ "$(kill9_lines <told.last | jq -r 'select(.msg.payload.ack_stage == "FULFILLED") | .msg.payload.ack_for_message_id' |
    sort -u | wc -l)" -eq 40 ]
  cat told.* | kill9_lines | jq -r 'select(.msg.payload.event) | [.msg.message_id, .to, .msg.payload.agent_id] | join(" ")' |
    sort -u | cut -d ' ' -f 2- | sort | uniq -d >twice
  [ ! -s twice ]
}

# failing OP:N:HOW COMMAND...
failing() {
  status=0
  AMP_FAULT_MATCH=log/0 AMP_FAULT_ROOT=$AMP_STATE AMP_FAULT=$1 LD_PRELOAD=$AMP_BUILD/tests/fault/faildisk.so \
    "${@:2}" || status=$?
}

@test "a disk that fails: 75, nothing reported that is not on record, and after the repair all of it" {
  [ -e "$AMP_BUILD/tests/fault/faildisk.so" ]
  native "a preloaded shim must come first"
  join first >told.0
  cp -r state before
  for fault in {sync,write}:{1,2,3}:{EIO,ENOSPC} write:{1,2,3}:SHORT; do
    rm -rf state told.*
    cp -r before state
    failing "$fault" agent-registry register bob --connector x:y >told.1 2>err
    echo "$fault: status $status, $(wc -l <told.1) told"
    # A call that never came did no harm.
    if [ "$status" -eq 0 ]; then
      [ "$(joined told.1)" = bob ]
      continue
    fi
    [ "$status" -eq 75 ]
    amp-ack repair 2>/dev/null
    known >known
    [ -z "$(joined told.1 | comm -23 - known)" ]
    join bob >told.2
    [ "$(joined told.1 told.2)" = bob ]
    [ "$(known | paste -sd ,)" = bob,first ]
  done
}

@test "publish under a failing disk: the index and the tasks leave together, after the record" {
  [ -e "$AMP_BUILD/tests/fault/faildisk.so" ]
  native "a preloaded shim must come first"
  for a in owner ann bob; do join "$a" >/dev/null; done
  cp -r state before
  jq -nc '{capabilityId: "cap.x", name: "n", version: "1.3.0", status: "active", ownerAgentId: "owner",
    ownerNodeId: "n1", delegationSkillRef: {name: "d", version: "1.3.0", path: "/d"},
    executorSkillRef: {name: "e", version: "1.3.0", path: "/e"}, contractSchemaRef: "schema://x",
    defaultEtaSeconds: 900, publishedAt: "2026-02-25T16:30:00.000Z", publishedByAgentId: "ann"}' >cap.json
  for fault in {sync,write}:1:{EIO,ENOSPC} write:1:SHORT; do
    rm -rf state
    cp -r before state
    failing "$fault" agent-registry publish cap.json >out 2>err
    echo "$fault: status $status"
    [ "$status" -eq 75 ]
    [ ! -s out ]
    amp-ack repair 2>/dev/null
    agent-registry publish cap.json >out
    [ "$(jq -r '.eligibleAgentIds[]? // .toAgentId' out | paste -sd ,)" = owner,ann,bob ]
  done
}
