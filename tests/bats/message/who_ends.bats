#!/usr/bin/env bats
# Who may take work up and report its end: amp-validate --state and amp-ack track give the same verdicts.
# plain: ack.bats and validate_state.bats run the same code

load ../lib
load ../messages
load ../events

setup() {
  need jq
  need_tool amp-ack
  cd "$BATS_TEST_TMPDIR" || return 1
  export AMP_STATE=$PWD/state
  echo 0 >n
}

# given: what stands on standard input is in the state, and nothing else.
given() {
  rm -rf state
  amp-ack track >/dev/null 2>&1
}
# verdicts WHAT CODE: both tools are asked about the line on standard input, first the one that records nothing. CODE: "pass",
# or the code of the refusal.
verdicts() {
  local validates tracks
  cat >asked
  validates=$(amp-validate --state state -e - <asked 2>&1 >out | jq -r .code) || :
  tracks=$(amp-ack track <asked 2>&1 >out2 | sed -n 's/.*error: line 1: \([A-Za-z_]*\):.*/\1/p') || :
  [ "${validates:-pass} ${tracks:-pass}" = "$2 $2" ] ||
    { echo "$1: amp-validate ${validates:-pass}, amp-ack ${tracks:-pass}, expected $2"; return 1; }
  cmp -s out out2 || { echo "$1: one of the tools let it through"; return 1; }
}
# ask WHAT CODE KIND AGENT [JQ]: an event by that agent; its number and id are new.
ask() {
  local key=sourceAgentId
  case $3 in accept) key=acceptedByAgentId ;; complete) key=completedByAgentId ;; fail) key=failedByAgentId ;; esac
  "$3" ".payload.$key = \"$4\" | .sourceAgentId = \"$4\" | ${5:-.}" | jq -c 'del(.payload.sourceAgentId)' | verdicts "$@"
}
create() { ev task_create "{\"taskId\":\"t\",\"title\":\"T\",\"toAgents\":${1:-[\"exec\"]},\"requesterAgentId\":\"cli\"}" '.sourceAgentId = "cli"'; }
to_all() { ev task_create '{"taskId":"t","title":"T","requiredCapabilities":["cap.a"],"requesterAgentId":"cli"}' '.sourceAgentId = "cli"'; }
answers() { ev ack "{\"refEventId\":\"evt_1\",\"ackType\":\"$1\",\"ackedByAgentId\":\"$2\",\"ackedAt\":\"2026-02-25T16:31:00Z\"}" ".sourceAgentId = \"$2\""; }

@test "Runtime Protocol: a task that nobody accepted" {
  create | given
  ask "the addressee" accept_required complete exec
  ask "the addressee" accept_required fail exec
  ask "another agent" not_assignee complete eve
  ask "another agent" not_assignee fail eve
  ask "another agent" not_assignee accept eve
  answers failed_terminal eve | verdicts "another agent's refusal" not_assignee
  answers accepted eve | verdicts "an admission" pass
  ask "the addressee" pass accept exec
}

@test "Runtime Protocol: a task that an agent accepted" {
  { create '["exec","other"]'; accept; } | given
  for agent in other eve; do
    ask "$agent" not_claimant complete $agent
    ask "$agent" not_claimant fail $agent
    ask "$agent" already_claimed accept $agent
    answers failed_terminal $agent | verdicts "$agent's refusal" not_claimant
  done
  ask "the one who accepted" pass accept exec '.payload.etaSeconds = 90'
  ask "the one who accepted" pass complete exec
  answers processed other | verdicts "after the end" not_claimant
  answers processed exec | verdicts "after the end" pass
}

@test "Runtime Protocol: a task for several agents, for all, for nobody by name" {
  create '["exec","other"]' | given
  ask "none of several" not_assignee accept eve
  ask "none of several" not_assignee complete eve
  ask "the second of several" accept_required complete other
  ask "the second of several" pass accept other
  ask "the second of several" pass complete other
  echo 0 >n
  create '["all"]' | given
  ask "any" pass accept eve
  ask "any" pass complete eve
  echo 0 >n
  to_all | given
  ask "a capable one" accept_required complete eve
  ask "a capable one" pass accept eve
  ask "another" not_claimant complete exec
}

@test "Runtime Protocol: after a failure that may be retried another agent takes the task up" {
  { create '["exec","other"]'; accept; } | given
  ask "the one who accepted" pass fail exec '.payload.retryable = true'
  ask "the one who failed" accept_required complete exec
  ask "another agent" accept_required complete other
  ask "another agent" pass accept other
  ask "the one who failed" not_claimant complete exec
  ask "the other agent" pass complete other
}

@test "Runtime Protocol: an agent whose role the task is for" {
  need_tool agent-registry
  create '["executor"]' | given
  jq -nc '{agent_id: "ex1", name: "ex1", description: "d", capabilities: [], modalities_supported: ["application/json"],
    communication_class: "STANDARD", reasoning_connectors: ["http://localhost:1/v1"]}' >ex1
  agent-registry register --role executor --descriptor ex1 >/dev/null
  ask "an agent without the role" not_assignee accept ex2
  ask "an agent of the role" accept_required complete ex1
  ask "an agent of the role" pass accept ex1
  ask "an agent of the role" pass complete ex1
}

@test "Runtime Protocol: a skill distribution has ended when the version is confirmed" {
  ev task_create '{"taskId":"t","taskType":"skill_distribution","title":"T","toAgents":["exec"],"capabilityId":"cap.a",
    "delegationSkillRef":{"name":"d","version":"1.3.0"},"requiredBy":"2099-02-25T18:30:00.000Z","requesterAgentId":"cli"}' \
    '.sourceAgentId = "cli"' >skill
  { cat skill; accept; } | given
  answers processed exec >processed
  for said in . '.payload.installedVersion = "1.2.9"'; do
    complete "$said" >asked
    run -1 amp-validate --state state -e records asked
    jq -e '.code == "version_incompatible"' records
    run -1 amp-ack track <asked
    run -1 amp-validate --state state -e records processed
    jq -e '.code == "no_terminal_outcome"' records
    run -0 --separate-stderr amp-ack track <processed
    [[ $stderr == *outcome_missing* ]]
  done
  ask "with the version" pass complete exec '.payload.installedVersion = "1.3.0"'
  answers processed exec | verdicts "after the end" pass
}

@test "Runtime Protocol: a reply comes from an addressee" {
  ev message '{"toAgents":["exec"],"body":"b","expectsReply":true}' '.sourceAgentId = "cli"' | given
  reply() { ev reply '{"body":"yes"}' ".sourceAgentId = \"$1\""; }
  reply eve | verdicts "another agent" not_assignee
  reply exec | verdicts "the addressee" pass
}

# m N [JQ]: a message of SW4RM.
m() { sw4rm "11111111-1111-4111-8111-11111111111$1" cli DATA '{}' ",\"idempotency_token\":\"cli:x:$1\"" "${@:2}"; }

@test "SW4RM: the result of a tool call, and the acknowledgement of an operation" {
  m 1 '.message_type = "TOOL_CALL" | .payload = {call_id: "c", tool_name: "ls", provider_id: "fs", args: {},
    content_type: "application/json", execution_policy: {timeout_ms: 5000}, stream: false}' | jq -c '{to: "fs", msg: .}' | given
  result() {
    m "$1" '.message_type = "TOOL_RESULT" | .producer_id = "'"$2"'" | .idempotency_token = "'"$2"':r:1" |
      .payload = {call_id: "c", status: "OK", result_b64: "aGk=", content_type: "application/json"}'
  }
  result 8 eve | verdicts "another provider" permission_denied
  result 7 fs | verdicts "the provider" pass
  ack() {
    m "$1" '.message_type = "ACKNOWLEDGEMENT" | .producer_id = "'"$2"'" | .idempotency_token = "'"$2"':a:'"$1"'" |
      .payload = {ack_for_message_id: "11111111-1111-4111-8111-111111111112", ack_stage: "'"$3"'", note: ""'"${4-}"'}'
  }
  { m 2 | jq -c '{to: "bob", msg: .}'; ack 3 bob READ; } | given
  ack 4 eve FULFILLED | verdicts "another agent" permission_denied
  ack 5 eve REJECTED ', error_code: "OVERLOADED"' | verdicts "another agent" permission_denied
  ack 6 bob FULFILLED | verdicts "the agent that read it" pass
}

# base PROTOCOL NAME [JQ]: a message of the rules' file, edited.
base() { jq -c --arg name "$2" "select(.base == \$name) | .line | ${3:-.}" "$AMP_TOP/tests/fixture/protocols/$1.jsonl"; }

@test "AOP: the agent that the task names" {
  base aop minimal '.session.session_id = "S"' | given
  response() { base aop response ".session_id = \"S\" | .agent.name = \"$1\""; }
  response Eve | verdicts "another agent" E_PERMISSION_DENIED
  response Emma | verdicts "the agent that the task names" pass
}

@test "AOF: the agent that the work was handed to" {
  t='.taskId = "TASK-2026-02-09-060" | .payload.taskId = .taskId | del(.messageId)'
  base aof request "$t" | given
  for what in accepted rejected report; do
    base aof $what "$t" | verdicts "$what by who handed it over" unauthorized_agent
  done
  base aof report "$t | .fromAgent = \"swe-qa\" | .toAgent = \"swe-backend\"" | verdicts "the agent" pass
}

@test "AMP: results come from whoever sends them" {
  message task_dispatch '.msg_id = "task_dispatch-T-2026-044-1"' | given
  message task_result | verdicts "the executor" pass
}
