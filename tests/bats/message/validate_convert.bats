# amp-validate --to: what one protocol says, said in another, and back.

load ../lib
load ../messages
load ../events

setup() {
  need jq
  cd "$BATS_TEST_TMPDIR" || return 1
  all=$AMP_TOP/tests/fixture/protocols/convert.jsonl
}

protocols="amp sw4rm aop aof rtp"

# there PROTOCOL [OPTION...]: everything in that protocol, and what was said about it.
there() {
  local to=$1
  shift
  amp-validate --to "$to" -e "$to.records" "$@" "$all" >"$to.out" || [ $? -eq 1 ]
}

@test "what comes out is valid in its protocol, and nothing else comes out" {
  for to in $protocols; do
    there "$to" --fill repo=/srv/r --fill branch=feature/x --fill percent=40 --fill to=someone \
      --fill subject=task_dispatch-T-2026-001-1
    amp-validate --check <"$to.out" >checked
    [ "$(jq -r .protocol checked | sort -u)" = "$to" ]
    # One line a message: converted, the same, or refused.
    out=$(wc -l <"$to.out")
    refused=$(jq -r 'select(.severity == "error") | .code' "$to.records" | sort | uniq -c)
    [ "$(wc -w <<<"$refused")" -eq 2 ]
    [[ $refused == *cannot_convert ]]
    [ $((out + ${refused//[^0-9]/})) -eq "$(wc -l <"$all")" ]
  done
}

@test "every message that came through comes back as it was, unless a loss was named" {
  amp-validate --check <"$all" | jq -r .protocol >protocol
  n=0
  for from in $protocols; do
    paste protocol "$all" | sed -n "s/^$from\t//p" >all
    for to in $protocols; do
      : >records
      amp-validate --to "$to" -e records all >there || [ $? -eq 1 ]
      amp-validate --to "$from" -e /dev/null there >back
      # By the numbers of the lines: those that came through, and of them those that lost nothing.
      jq -r 'select(.severity == "error") | .line' records | sort -u >refused
      jq -r 'select(.code == "not_carried") | .line' records | sort -u >lost
      grep -n . all | awk -F: 'FILENAME == ARGV[1] { no[$1]; next } !($1 in no)' refused - |
        paste -d '\t' - back | awk -F'[:\t]' 'FILENAME == ARGV[1] { no[$1]; next } !($1 in no)' lost - >pairs
      diff <(cut -f 1 pairs | cut -d : -f 2- | jq -S -c .) <(cut -f 2 pairs | jq -S -c .)
      n=$((n + $(wc -l <pairs)))
    done
  done
  [ "$n" -gt 150 ]
}

@test "a message of the protocol itself stays byte for byte" {
  printf '%s\n' '{ "protocol": "aof", "version": 1, "type": "handoff.accepted", "taskId": "TASK-2026-02-09-057", "fromAgent": "a", "toAgent": "b", "sentAt": "2026-02-09T21:00:00Z", "payload": {"taskId":"TASK-2026-02-09-057","accepted":true} }' >in
  amp-validate --to aof <in | cmp - in
}

@test "what was changed on the way stays changed, the rest is restored" {
  sed -n 1p "$all" >went
  amp-validate --to aop -e /dev/null <went |
    jq -c '.task.environment.git_branch = "feature/y" | .task.objective = "Less"' |
    amp-validate --to amp -e /dev/null >came
  diff <(jq -S 'del(.payload.branch, .payload.description) | del(.payload.tech_constraints.x_amp_origin)' went) \
    <(jq -S 'del(.payload.branch, .payload.description) | del(.payload.tech_constraints.x_amp_origin)' came)
  [ "$(jq -r '.payload.branch + .payload.description' came)" = "feature/yLess" ]
}

@test "facts are not made up: the reason names what to give" {
  jq -c 'select(.kind == "task_create")' "$all" >in
  run -1 --separate-stderr amp-validate --to amp -e records in
  [ -z "$output" ]
  [ "$(jq -r .code records)" = cannot_convert ]
  [[ $(jq -r .message records) == *payload.repo*"--fill repo="* ]]
  amp-validate --to amp --fill repo=/srv/r --fill branch=f/x -e records in >out
  [ "$(jq -r '.payload.repo + " " + .payload.branch + " " + .payload.description' out)" = \
    "/srv/r f/x Generate" ]
}

@test "kept fields and lost fields are named; with --strict nothing is lost" {
  jq -c 'select(.message_type == "HITL_INVOCATION")' "$all" >in
  amp-validate --to amp -e records in >out
  jq -r 'select(.code == "not_carried") | .field' records | grep -qx payload.context_uri
  run amp-validate --strict --to amp in
  [ "$status" -eq 1 ]
  [[ $output == *not_carried* ]]
  jq -c 'select(.msg_id) | select(.type == "task_dispatch") | select(.context_ref)' "$all" | head -n 1 >in
  : >records
  amp-validate --strict --to rtp -e records in >out
  jq -r 'select(.code == "kept_in_extension") | .pointer' records | grep -qx /context_ref
  jq -e '.x_amp_origin.fields["/context_ref"].is | length == 1' out
}

@test "what an origin would bring back is checked like any message" {
  sed -n 1p "$all" | amp-validate --to aop -e /dev/null |
    jq -c '.extensions.x_amp_origin.fields["/payload/branch"] = {is: "release/1"}' >in
  amp-validate --to amp -e /dev/null in >out
  [ "$(jq -r .payload.branch out)" = release/1 ]
  run -1 --separate-stderr amp-validate --to amp --protect 'release/*' -e records in
  [ -z "$output" ]
  jq -r 'select(.code == "cannot_convert") | .message' records | grep -q payload.branch
}

@test "the words of the table" {
  there sw4rm
  there rtp
  # AOP's CRITICAL, HIGH … and SW4RM's numbers; the runtime protocol's ack of a failure.
  jq -c 'select(.priority // .payload.priority == "high") | .payload.priority' rtp.out >/dev/null
  jq -c 'select(.kind == "task_create")' "$all" | amp-validate --to sw4rm -e /dev/null |
    jq -e '.payload.priority == -5 and .payload.task_id == "tsk_01JV3Q9A1V7M4R3N8E2W0D6Y5U"'
  jq -c 'select(.type == "escalation")' "$all" | amp-validate --to sw4rm -e /dev/null |
    jq -e '.message_type == "HITL_INVOCATION" and .payload.reason_type == "TASK_ESCALATION"'
  jq -c 'select(.type == "decision" and .decision == "resume")' "$all" |
    amp-validate --to sw4rm -e /dev/null | jq -e '.payload.decision == "approve"'
  jq -c 'select(.type == "completion.report" and .payload.outcome == "needs_review")' "$all" |
    amp-validate --to aop -e /dev/null |
    jq -e '.task_status.state == "COMPLETED" and .task_status.final_signal == "PARTIAL_SUCCESS"'
  jq -c 'select(.type == "task_result" and .payload.completion_status == "failed")' "$all" |
    amp-validate --to rtp -e /dev/null | jq -e '.kind == "task_failed"'
  jq -c 'select(.type == "nack")' "$all" | amp-validate --to rtp -e /dev/null |
    jq -e '.kind == "ack" and .payload.ackType == "failed_terminal"'
  jq -c 'select(.type == "ack" and .ack_stage == "FULFILLED")' "$all" |
    amp-validate --to rtp -e /dev/null | jq -e '.payload.ackType == "processed"'
}

@test "the code of a refusal is one of the protocol that it goes to" {
  local code sw4rm
  while read -r code sw4rm; do
    jq -c --arg c "$code" 'select(.type == "nack") | .code = $c' "$all" | amp-validate --to sw4rm -e /dev/null |
      jq -e --arg c "$sw4rm" '.payload.error_code == $c'
  done <<'END'
validation_error VALIDATION_ERROR
usage_limit AGENT_UNAVAILABLE
not_authorized PERMISSION_DENIED
git_error INTERNAL_ERROR
no_such_code INTERNAL_ERROR
already_claimed ALREADY_IN_PROGRESS
E_TIMEOUT TOOL_TIMEOUT
END
  while read -r code aop; do
    jq -c --arg c "$code" 'select(.message_type == "ACKNOWLEDGEMENT" and .payload.ack_stage == "FAILED") |
      .payload.error_code = $c' "$all" | amp-validate --to aop -e /dev/null |
      jq -e --arg c "$aop" '.error_details.error_code == $c'
  done <<'END'
PERMISSION_DENIED E_PERMISSION_DENIED
OVERSIZE_PAYLOAD E_CONTEXT_OVERFLOW
TOOL_TIMEOUT E_TIMEOUT
SOMETHING_ELSE E_UNKNOWN
END
}

@test "an unlisted failure class is the one that it or the summary hints at" {
  local word text
  echo 0 >n
  while IFS=/ read -r word text; do
    ev task_failed "{\"taskId\":\"t\",\"failedByAgentId\":\"a\",\"failureClass\":\"$word\",
      \"errorSummary\":\"$text\",\"failedAt\":\"2026-02-25T16:22:10Z\"}"
  done <<'END' | amp-validate --to sw4rm -e /dev/null >there
SLA missed/The connection was reset
boom/The connection was reset
boom/It broke
END
  [ "$(jq -r .payload.failure_class there | paste -sd' ')" = "timeout transport_error execution_error" ]
  jq -c '.payload.failure_class = "E_TIMEOUT" | del(.x_amp_origin) |
    .content_length = (.payload | tojson | length)' there | head -n 1 |
    amp-validate --to rtp -e /dev/null | jq -e '.payload.failureClass == "timeout"'
}

@test "a single recipient is kept, to and from the Runtime Protocol and SW4RM" {
  event() {
    jq -nc --arg k "$1" --argjson p "$2" '{eventId: "evt_1", seq: 1, kind: $k, sourceNodeId: "n", sourceAgentId: "ann",
      corrId: "c", createdAt: "2026-02-25T16:22:10.123Z", payload: $p, trace: {attempt: 1}}'" | ${3:-.}"
  }
  to() { # where the recipient is, in each protocol
    jq -r '[.to, .toAgentId, .toAgent, .target.agent_name?, .payload?.toAgents?[0], .payload?.agent_id] | map(values) | unique | join(" ")'
  }
  # Where only the list names it.
  event task_create '{"taskId": "t", "title": "T", "toAgents": ["bob"], "requesterAgentId": "ann"}' >create
  [ "$(amp-validate --to aof -e /dev/null create | to)" = bob ]
  amp-validate --to sw4rm -e /dev/null create >there
  [ "$(to <there)" = bob ]
  amp-validate there | cmp - there
  amp-validate --to rtp -e /dev/null there | cmp - create
  [ "$(amp-validate --to aof -e /dev/null there | to)" = bob ]
  # Where SW4RM's payload has no place for it.
  event task_complete '{"taskId": "t", "completedByAgentId": "ann", "resultSummary": "r", "completedAt": "2026-02-25T16:25:00Z"}' \
    '.toAgentId = "bob"' >complete
  event ack '{"refEventId": "evt_0", "ackType": "processed", "ackedByAgentId": "ann", "ackedAt": "2026-02-25T16:31:00Z"}' \
    '.toAgentId = "bob"' >ack
  for f in complete ack; do
    amp-validate --to sw4rm -e /dev/null $f >there
    [ "$(to <there)" = bob ]
    jq -e '.msg.message_type' there
    amp-validate there | cmp - there
    cmp <(amp-validate --to rtp -e /dev/null there | jq -S .) <(jq -S . $f)
    # What routing would strip is said by the outer object alone.
    jq -c '.to = "eve"' there >changed
    [ "$(amp-validate --to rtp -e /dev/null changed | to)" = eve ]
    [ "$(amp-validate --to aof -e /dev/null there | to)" = bob ]
  done
  sed -n "/\"type\":\"task_result\"/{p;q}" "$all" >result
  amp-validate --to sw4rm -e /dev/null result >there
  [ "$(to <there)" = coordinator ]
  cmp <(amp-validate --to amp -e /dev/null there | jq -S .) <(jq -S . result)
  # Several are not made one.
  event task_create '{"taskId": "t", "title": "T", "toAgents": ["bob", "eve"], "requesterAgentId": "ann"}' >several
  run -1 amp-validate --to sw4rm several
  [[ $output == *"has one recipient; this one has several"* ]]
}

@test "options that contradict are wrong usage" {
  run amp-validate --fill repo=x </dev/null
  [ "$status" -eq 64 ]
  run amp-validate --to amp --fill nothing=x </dev/null
  [ "$status" -eq 64 ]
  run amp-validate --to amp --effective </dev/null
  [ "$status" -eq 64 ]
}
