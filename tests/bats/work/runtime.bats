#!/usr/bin/env bats
# Tasks of the Runtime Protocol: accepted with an estimate before any work, reported, checked, and
# answered; review items, confirmed skills, and claims among several agents.
# walls

load ../lib

setup() {
  need jq
  need_tool task-dispatch agent-registry
  cd "$BATS_TEST_TMPDIR" || return 1
  cat >agent <<'END'
#!/bin/bash
# Acts by the title of its task; without jq, which takes longer to start than all the rest.
[[ $(<"$AMP_MESSAGE") =~ '"title":"'([a-z]*)'"' ]]
case ${BASH_REMATCH[1]} in
good) grep -qs '"act":"accept"\|task_accept' "$AMP_TOP_OF_TEST"/s/log/*.ndjson || exit 9
  for p in 10 20 30; do echo '{"type":"progress","percent":'$p',"detail":"at '$p'"}'; done >"$AMP_CONTROL"
  echo '{"resultSummary":"Counted.","output":{"n":3}}' >"$AMP_RESULT" ;;
odd) echo '{"resultSummary":"Counted.","output":{"n":"three"}}' >"$AMP_RESULT" ;;
mute) echo "said last" ;;
lacks) echo '{"failureClass":"dependency_missing","errorSummary":"No data.","retryable":true}' >"$AMP_RESULT"; exit 1 ;;
breaks) echo "it broke" >&2; exit 3 ;;
garbage) echo 'not JSON' >"$AMP_RESULT" ;;
slow) exec timeout 20 cat "$AMP_TOP_OF_TEST/never" ;;
esac
END
  sed -i "s|\$AMP_TOP_OF_TEST|$PWD|" agent
  chmod +x agent
  mkfifo never
}

# task ID TITLE [JQ]: a task_create for worker.
task() {
  local line now
  TZ=UTC printf -v now '%(%FT%TZ)T'
  printf -v line '%s' '{"eventId":"evt_'"$1"'","seq":1,"kind":"task_create","sourceNodeId":"vps","sourceAgentId":"architect",' \
    '"corrId":"corr_'"$1"'","createdAt":"'"$now"'","trace":{"attempt":1,"routingPolicyVersion":"rpv_1",' \
    '"capabilityPolicyVersion":"cpv_1"},"payload":{"taskId":"tsk_'"$1"'","title":"'"$2"'","description":"D",' \
    '"toAgents":["worker"],"priority":"high","requesterAgentId":"architect","responseRequired":true}}'
  case ${3-} in
  '') echo "$line" ;;
  "$published") echo "${line/%\}\}/,$needs\}\}}" ;;
  *) jq -c "$3" <<<"$line" ;;
  esac
}
needs='"requiredCapabilities":["cap.count"]'
published='.payload.requiredCapabilities = ["cap.count"]'

registry() {
  for a in "$@"; do agent-registry register "$a" --connector x:y --state s; done >/dev/null
  mkdir -p contracts/local/cap.count
  echo '{"type":"object","required":["n"],"properties":{"n":{"type":"integer"}}}' >contracts/local/cap.count/1.0.0.json
  jq -nc '{capabilityId: "cap.count", name: "Count", version: "1.0.0", status: "active", ownerAgentId: "worker",
    ownerNodeId: "n", delegationSkillRef: {name: "d", version: "1.2.0", path: "/p"},
    executorSkillRef: {name: "e", version: "1.3.0", path: "/p"}, contractSchemaRef: "schema://local/cap.count/1.0.0",
    defaultEtaSeconds: 600, publishedAt: "2026-02-25T16:30:00.000Z", publishedByAgentId: "architect"}' >capability
  agent-registry publish capability --state s >distributed
}

executor() { task-dispatch run --state s --agent worker --contracts contracts "$@" -x ./agent; }
lines() { jq -r '"\(.kind) \(.payload | .taskId // .refEventId) \(.payload | .ackType // .failureClass // .progress // "-")"' "$@"; }

@test "a task is accepted with an estimate before its command starts, updated at a limited rate, and completed" {
  registry worker
  { task 1 good "$published"; task 2 mute '.payload.deadlineAt = (now + 60 | todate)'; } >in
  run -0 --separate-stderr executor --update-every 1h <in
  echo "$output" >out
  amp-validate out >/dev/null
  diff <(lines out) - <<'END' >&2
ack evt_1 accepted
ack evt_2 accepted
task_accept tsk_1 -
task_update tsk_1 10
task_complete tsk_1 -
ack evt_1 processed
task_accept tsk_2 -
task_complete tsk_2 -
ack evt_2 processed
END
  # The capability's estimate, or the deadline if that is earlier than the default.
  [ "$(jq -r 'select(.kind == "task_accept") | (.payload.etaAt | sub("[.][0-9]+"; "") | fromdate) -
    (.createdAt | sub("[.][0-9]+"; "") | fromdate) | (. + 2) / 60 | floor' out | paste -sd' ')" = '10 1' ]
  [ "$(jq -r 'select(.kind == "task_complete") | .payload | "\(.resultSummary) \(.result.n)"' out | paste -sd,)" = 'Counted. 3,said last null' ]
  # The versions of the policies are repeated, and the numbers have no gap.
  [ "$(jq -r 'select(.kind != "ack") | .trace.routingPolicyVersion' out | sort -u)" = rpv_1 ]
  [ "$(jq -r .seq out | sort -n | paste -sd' ')" = '1 2 3 4 5 6 7 8 9' ]
  [ "$(amp-ack status --all --json --state s | jq -r 'select(.id? == "evt_1" or .msg_id? == "evt_1") | .state')" = FULFILLED ]
  # The same tasks again are known.
  run -0 --separate-stderr executor <in
  [ -z "$output" ]
  # Without an interval each report is an update.
  task 3 good "$published" >in
  run -0 --separate-stderr executor --update-every 0 <in
  [ "$(jq -r 'select(.kind == "task_update") | .payload.progress' <<<"$output" | paste -sd' ')" = '10 20 30' ]
}

@test "failures have a class, a broken contract is one, and each makes a review item" {
  registry worker other
  { for t in odd lacks breaks garbage; do task "$t" "$t" "$published"; done; } >in
  run -0 --separate-stderr executor <in
  echo "$output" >out
  amp-validate out >/dev/null
  diff <(jq -r 'select(.kind == "task_failed") | .payload | "\(.taskId) \(.failureClass) \(.retryable // false)"' out | sort) - <<'END' >&2
tsk_breaks execution_error false
tsk_garbage execution_error false
tsk_lacks dependency_missing true
tsk_odd failed_terminal false
END
  [[ $(jq -r 'select(.payload.taskId == "tsk_odd" and .kind == "task_failed") | .payload.errorSummary' out) == \
    contract_violation:*schema://local/cap.count/1.0.0:*integer* ]]
  [[ $(jq -r 'select(.payload.taskId == "tsk_breaks" and .kind == "task_failed") | .payload.errorSummary' out) == *'it broke' ]]
  agent-registry reviews --json --state s >reviews
  amp-validate reviews >/dev/null
  diff <(jq -r '"\(.capabilityId) \(.failureClass) \(.delegationSkillVersion) \(.executorSkillVersion) \(.sampleCorrIds | join("+"))"' reviews) - <<'END' >&2
cap.count dependency_missing 1.2.0 1.3.0 corr_lacks
cap.count execution_error 1.2.0 1.3.0 corr_breaks+corr_garbage
cap.count failed_terminal 1.2.0 1.3.0 corr_odd
END
  id=$(jq -r 'select(.failureClass == "failed_terminal") | .reviewId' reviews)
  agent-registry reviews --close "$id" --note fixed --state s
  [ "$(agent-registry reviews --json --state s | wc -l)" -eq 2 ]
  [ "$(agent-registry reviews --json --all --state s | wc -l)" -eq 3 ]
  run -1 --separate-stderr agent-registry reviews --close "$id" --state s
  [[ $stderr == *'no open review item'* ]]
  # After it was closed, the next failure makes another item.
  task again odd "$published" | executor >/dev/null
  new=$(agent-registry reviews --json --state s | jq -r 'select(.failureClass == "failed_terminal") | .reviewId')
  [ -n "$new" ] && [ "$new" != "$id" ]
}

@test "what cannot be carried out here is refused with its code before any work" {
  registry worker other
  { task late good '.payload.deadlineAt = "2026-02-25T20:00:00.000Z"'
    task policy good '.trace.routingPolicyVersion = "rpv_0"'
    task contract good "$published"; } >in
  rm contracts/local/cap.count/1.0.0.json
  run -1 --separate-stderr executor --routing-policy rpv_1 <in
  echo "$output" >out
  amp-validate out >/dev/null
  diff <(jq -r 'select(.payload.ackType == "failed_terminal") | "\(.payload.refEventId) \(.payload.code)"' out | sort) - <<'END' >&2
evt_contract dependency_missing
evt_late deadline_passed
evt_policy version_incompatible
END
  [ "$(jq -r .kind out | sort -u)" = ack ]
  [ ! -d s/run/tsk_late ]
  # An agent that is neither named nor eligible passes the task on.
  task other good "$published | .payload.toAgents = []" >in
  run -0 --separate-stderr task-dispatch run --state s --agent other -x ./agent <in
  [ "$output" = "$(cat in)" ]
}

@test "work that its deadline ends fails with the class timeout" {
  task slow slow ".payload.deadlineAt = \"$(date -u -d "+$(patient 1) sec" +%FT%T.%3NZ)\"" >in
  run -0 --separate-stderr executor --grace 0 --retries 0 <in
  [ "$(jq -r 'select(.kind == "task_failed") | .payload.failureClass' <<<"$output")" = timeout ]
}

@test "of several candidates the first one that accepts has the task" {
  task 1 good '.payload.toAgents = ["worker", "other"]' >in
  run -0 --separate-stderr executor <in
  [ "$(jq -r 'select(.kind == "task_complete") | .payload.completedByAgentId' <<<"$output")" = worker ]
  task 2 slow '.payload.toAgents = ["worker", "other"]' >in2
  task-dispatch run --state s --agent worker -x ./agent <in2 >first 2>err &
  wait_until 10 grep -q task_accept first
  run -0 --separate-stderr task-dispatch run --state s --agent other -x ./agent <in2
  [[ $stderr == *already_claimed* ]]
  [ "$(jq -r .kind <<<"$output" | paste -sd' ')" = ack ]
  # After a crash the one that accepted it goes on, without another acceptance.
  kill -9 $!
  ends 137 wait $!
  echo 'echo done' >>agent
  sed -i 's/^slow).*/slow) ;;/' agent
  run -0 --separate-stderr executor </dev/null
  [ "$(jq -r .kind <<<"$output" | paste -sd' ')" = 'task_complete ack' ]
}

@test "an agent accepts at most as many tasks as it may, and a task fails for good at the fourth time" {
  for i in 1 2 3 4 5 6 7 8; do task $i good; done | amp-ack track --state s >/dev/null
  accept() { amp-ack accept "$1" --as "${2:-worker}" --eta 1h --state s "${@:3}"; }
  for i in 1 2 3 4 5 6; do accept evt_$i >>out; done
  run -1 --separate-stderr accept evt_7
  [[ $stderr == *'worker has accepted 6 tasks that have not ended (the limit, runtime.max_claims, is 6)'* ]]
  [ -z "$output" ]
  # The same for an acceptance that passes, and for the executor.
  jq -c 'select(.payload.taskId == "tsk_1") | .eventId = "evt_x" | .seq = 99 | .payload.taskId = "tsk_7"' out >line
  run -1 --separate-stderr amp-ack track --state s <line
  [[ $stderr == *backpressure* ]]
  [ -z "$(grep -F tsk_7 <<<"$output")" ]
  amp-validate --state s line >passed 2>refused || [ $? -eq 1 ]
  [ ! -s passed ]
  grep -q backpressure refused
  # Another limit; an end makes room.
  echo '{"runtime":{"max_claims":7}}' >amp.json
  accept evt_7 worker --config amp.json >>out
  run -1 --separate-stderr accept evt_8 worker --config amp.json
  [[ $stderr == *'is 7)'* ]]
  run -78 accept evt_8 worker --config <(echo '{"runtime":{"max_claims":201}}')
  amp-ack complete evt_1 --as worker --text done --state s >>out
  amp-ack complete evt_2 --as worker --text done --state s >>out
  accept evt_8 >>out
}

@test "an executor refuses what it may not accept now, and asks for another attempt" {
  registry worker
  jq -c '.version = "1.0.1" | .riskClass = "high"' capability | agent-registry publish --state s >distributed
  task risky good "$published" >in
  run -1 --separate-stderr executor <in
  [ "$(jq -r 'select(.payload.ackType == "failed_terminal") | .payload | "\(.code) \(.retryable)"' <<<"$output")" = 'approval_required true' ]
  [ "$(jq -r .kind <<<"$output" | sort -u)" = ack ]
  agent-registry approve tsk_risky --why "it may" --state s
  jq -c '.eventId = "evt_again" | .seq = 2 | .trace.attempt = 2' in >again
  run -0 --separate-stderr executor <again
  [ "$(jq -r 'select(.kind == "task_complete") | .payload.taskId' <<<"$output")" = tsk_risky ]
  # The same with as many tasks as it may have.
  for i in 1 2 3 4 5 6; do task $i good; done | amp-ack track --state s >/dev/null
  for i in 1 2 3 4 5 6; do amp-ack accept evt_$i --as worker --eta 1h --state s >/dev/null; done
  task 7 good >in
  run -1 --separate-stderr executor <in
  [ "$(jq -r 'select(.payload.ackType == "failed_terminal") | .payload | "\(.code) \(.retryable)"' <<<"$output")" = 'backpressure true' ]
}

@test "the distribution of a skill ends with the confirmed version" {
  registry worker other third
  # One task for each agent except the owner.
  [ "$(jq -r 'select(.kind == "task_create") | .payload.toAgents[0]' distributed | sort | paste -sd' ')" = 'other third' ]
  state() { agent-registry capabilities --installed --json --state s cap.count | jq -r '"\(.agentId) \(.wantedVersion) \(.installedVersion) \(.confirmed)"'; }
  diff <(state) <(printf '%s\n' 'other 1.2.0  false' 'third 1.2.0  false') >&2
  jq -c 'select(.payload.toAgents[0]? == "other")' distributed >in
  echo 'echo "{\"installedVersion\":\"1.1.0\"}" >"$AMP_RESULT"' >>agent
  run -0 --separate-stderr task-dispatch run --state s --agent other -x ./agent <in
  [ "$(jq -r 'select(.kind == "task_failed") | .payload.failureClass' <<<"$output")" = version_incompatible ]
  diff <(state) <(printf '%s\n' 'other 1.2.0  false' 'third 1.2.0  false') >&2
  # Published again, the skill is asked for again.
  sed -i 's/1.1.0/1.2.1/' agent
  jq -c '.version = "1.0.1" | .delegationSkillRef.version = "1.2.1"' capability >next
  agent-registry publish next --state s >distributed
  jq -c 'select(.payload.toAgents[0]? == "other")' distributed >in
  run -0 --separate-stderr task-dispatch run --state s --agent other -x ./agent <in
  [ "$(jq -r 'select(.kind == "task_complete") | .payload.installedVersion' <<<"$output")" = 1.2.1 ]
  run -1 --separate-stderr agent-registry confirm third cap.count 1.2.0 --state s
  [[ $stderr == *'1.2.1 of cap.count is wanted, not 1.2.0'* ]]
  run -1 --separate-stderr agent-registry confirm third cap.other 1.2.0 --state s
  [[ $stderr == *'cap.other is not published'* ]]
  # The confirmation also completes the task, if the state has it.
  amp-ack track --state s <distributed >/dev/null
  run -0 --separate-stderr agent-registry confirm third cap.count 1.2.1 --state s
  [ "$(jq -r .kind <<<"$output" | paste -sd' ')" = 'task_accept task_complete' ]
  diff <(state) <(printf '%s\n' 'other 1.2.1 1.2.1 true' 'third 1.2.1 1.2.1 true') >&2
}

@test "a missed estimate and routes that fail again and again make review items, too" {
  registry worker other
  task 1 good "$published" | amp-ack track --state s >/dev/null
  amp-ack accept evt_1 --as worker --eta 1m --state s >/dev/null
  # Within the grace of 120 s there is none.
  amp-ack sweep --now "$(date -u -d '+2 min' +%FT%TZ)" --state s >/dev/null || true
  [ -z "$(agent-registry reviews --json --state s)" ]
  amp-ack sweep --now "$(date -u -d '+4 min' +%FT%TZ)" --state s >/dev/null || true
  [ "$(agent-registry reviews --json --state s | jq -r '"\(.failureClass) \(.sampleCorrIds[0])"')" = 'sla_breach corr_1' ]
  agent-registry deregister worker --state s >/dev/null
  for i in a b c; do task $i good "$published | .payload.toAgents = []"; done >in
  head -2 in | amp-route --state s -r '* => agents' >/dev/null 2>&1 || true
  [ "$(agent-registry reviews --json --state s | wc -l)" -eq 1 ]
  tail -1 in | amp-route --state s -r '* => agents' >/dev/null 2>&1 || true
  [ "$(agent-registry reviews --json --state s | jq -r 'select(.failureClass == "capability_unavailable") | .sampleCorrIds | join("+")')" = corr_a+corr_b+corr_c ]
}

@test "a sweep writes at most as many messages as it may, and the next one goes on; so does watch" {
  for i in 1 2 3 4 5; do task $i good; done | amp-ack track --state s >/dev/null
  later=$(date -u -d '+1 min' +%FT%TZ)
  made() { amp-ack sweep --now "$later" --retries rtp=0 "$@" --state s | wc -l; }
  [ "$(made --most 2)" -eq 2 ]
  echo '{"ack":{"most":2}}' >amp.json
  [ "$(made --config amp.json)" -eq 2 ]
  [ "$(made)" -eq 1 ]
  [ "$(made)" -eq 0 ]
  # In watch the next sweep is a second later.
  for i in 1 2 3 4 5; do task $i good; done | amp-ack track --ack-timeout rtp=1ms --state watched >/dev/null
  run -0 --separate-stderr timeout 40 amp-ack watch --state watched --retries rtp=0 --most 2 --until-idle
  jq -es 'map(.createdAt | (.[:19] + "Z" | fromdate) + (.[20:23] | tonumber) / 1000) | length == 5 and
    .[1] - .[0] < 0.9 and .[2] - .[1] >= 0.9 and .[3] - .[2] < 0.9 and .[4] - .[3] >= 0.9' <<<"$output"
}

@test "agents of a pool carry out tasks as an executor does, with the same answers and codes" {
  registry worker worker-1 other
  echo '{"runtime":{"routing_policy":"rpv_1","update_every":"1h"}}' >amp.json
  mine='.payload.toAgents = ["worker-1"]'
  {
    task good good "$published | $mine"
    task any good "$published | .payload.toAgents = []"
    task mute mute "$mine | .payload.deadlineAt = (now + 60 | todate)"
    for t in odd lacks breaks garbage; do task $t $t "$published | $mine"; done
    task late good "$mine | .payload.deadlineAt = \"2026-02-25T20:00:00.000Z\""
    task policy good "$mine | .trace.routingPolicyVersion = \"rpv_0\""
    task contract good "$mine | .payload.requiredCapabilities = [\"cap.lost\"]"
  } >rest
  jq -c '.capabilityId = "cap.lost" | .contractSchemaRef = "schema://local/cap.lost/1.0.0"' capability | agent-registry publish --state s >distributed
  jq -c '.ownerAgentId = "worker-1" | .version = "1.0.1"' capability | agent-registry publish --state s >>distributed
  # The first, and made last: its deadline is after its start also on a busy machine.
  task slow slow "$mine | .payload.deadlineAt = (now + 4 | todate)" | cat - rest >in
  ends 1 task-queue submit --state s --type worker <in >submitted
  [ "$(jq -r 'select(.ok | not) | "\(.code) \(.line)"' submitted)" = 'deadline_passed 9' ]
  run -0 --separate-stderr timeout 60 task-queue work --state s --config amp.json --contracts contracts --drain \
    --grace 0 --retries 0 --pause 50ms --type worker=1 -x ./agent
  echo "$output" >out
  amp-validate out >/dev/null
  # Each task is accepted with an estimate before anything else is said about it, and updated once.
  jq -r 'select(.kind != "ack") | "\(.payload.taskId) \(.kind)\(if .payload.etaAt then " eta" else "" end) \(.payload.failureClass // .payload.progress // "-")"' out | sort -s -k1,1 >said
  diff said - <<'END' >&2
tsk_any task_accept eta -
tsk_any task_update 10
tsk_any task_complete -
tsk_breaks task_accept eta -
tsk_breaks task_failed execution_error
tsk_garbage task_accept eta -
tsk_garbage task_failed execution_error
tsk_good task_accept eta -
tsk_good task_update 10
tsk_good task_complete -
tsk_lacks task_accept eta -
tsk_lacks task_failed dependency_missing
tsk_mute task_accept eta -
tsk_mute task_complete -
tsk_odd task_accept eta -
tsk_odd task_failed failed_terminal
tsk_slow task_accept eta -
tsk_slow task_failed timeout
END
  # Refused before any work, each with its code; the others are processed.
  diff <(jq -r 'select(.kind == "ack" and .payload.ackType == "failed_terminal") | "\(.payload.refEventId) \(.payload.code)"' out | sort) - <<'END' >&2
evt_contract dependency_missing
evt_policy version_incompatible
END
  [ "$(jq -r 'select(.payload.ackType == "processed") | .payload.refEventId' out | sort -u | wc -l)" -eq 8 ]
  # The jobs end as their tasks do.
  task-queue list --state s --all --json | jq -r '"\(.task) \(.state) \(.code // "-")"' | sort >jobs
  diff jobs - <<'END' >&2
tsk_any DONE -
tsk_breaks FAILED execution_error
tsk_contract FAILED dependency_missing
tsk_garbage FAILED execution_error
tsk_good DONE -
tsk_lacks FAILED dependency_missing
tsk_mute DONE -
tsk_odd FAILED failed_terminal
tsk_policy FAILED version_incompatible
tsk_slow FAILED timeout
END
  [ "$(agent-registry reviews --json --state s | jq -r .failureClass | sort | paste -sd' ')" = 'dependency_missing execution_error failed_terminal' ]
}

@test "with identities and walls as by default a task is carried out, too" {
  unset AMP_IDENTITY AMP_CONFINE
  printf '%s\n' '#!/bin/sh' 'echo "{\"resultSummary\":\"walled\"}" >"$AMP_RESULT"' >agent
  task 1 good >in
  run -0 --separate-stderr task-dispatch run --state s --agent worker --best-effort -x ./agent <in
  [ "$(jq -r '.msg | select(.kind == "task_complete") | .payload.resultSummary' <<<"$output")" = walled ]
  # Each line is signed, by the agent under its own name.
  echo "$output" >out
  [ "$(jq -r '.msg.kind' out | paste -sd' ')" = 'ack task_accept task_complete ack' ]
  amp-sign verify --state s <out | cmp - out
  [ "$(jq -r .sig.key out | sort -u)" = "$(ssh-keygen -lf s/keys/worker.pub | cut -d' ' -f2)" ]
  # An agent with the name of a part of the toolkit does not speak for it.
  task 2 good '.payload.toAgents = ["coordinator"]' >in
  run -0 --separate-stderr task-dispatch run --state s --agent coordinator --best-effort -x ./agent <in
  [ "$(jq -r 'has("sig")' <<<"$output" | sort -u)" = false ]
}
