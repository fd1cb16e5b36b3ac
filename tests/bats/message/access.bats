#!/usr/bin/env bats
# Access rules (SW4RM §6.3): type, sender, recipient, tool and scope; a rule that denies wins.
load ../lib
load ../messages

setup() {
  cd "$BATS_TEST_TMPDIR"
}

rules() {
  printf '{"access":{%s}}\n' "$1" >amp.json
}

track() {
  rm -rf state
  amp-ack track --state state --config amp.json
}

@test "a rule that denies a type refuses it, and records who said what" {
  rules '"rules":[{"effect":"deny","type":"task_dispatch","recipient":"exec*"}]'
  run -1 track <<<"$(message task_dispatch)"
  [[ $output == *"access_denied: coordinator must not send task_dispatch to executor (access rule 1)"* ]]
  run -0 --separate-stderr amp-ack audit --state state --format ndjson
  jq -e '.kind == "access" and .code == "access_denied" and .from == "coordinator"' <<<"$output"
  run -0 track <<<"$(message task_result)"
}

@test "deny wins over allow, in any order" {
  rules '"rules":[{"effect":"allow","sender":"coordinator"},{"effect":"deny","scope":"branch:feature/*"}]'
  run -1 track <<<"$(message task_dispatch)"
  rules '"rules":[{"effect":"deny","scope":"repo:/srv/*"},{"effect":"allow","sender":"coordinator"}]'
  run -1 track <<<"$(message task_dispatch)"
  rules '"rules":[{"effect":"deny","scope":"branch:other"},{"effect":"allow","sender":"coordinator"}]'
  run -0 track <<<"$(message task_dispatch)"
}

@test "with the default deny, only what a rule allows passes" {
  rules '"default":"deny","rules":[{"effect":"allow","type":"task_result","sender":"executor","recipient":"coordinator"}]'
  run -0 track <<<"$(message task_result)"
  run -1 track <<<"$(message task_dispatch)"
  [[ $output == *"access_denied"*"(the default)"* ]]
}

@test "allowed decisions are recorded when asked" {
  rules '"log":"all","rules":[{"effect":"allow","sender":"coord*"}]'
  run -0 track <<<"$(message task_dispatch)"
  run -0 --separate-stderr amp-ack audit --state state --format ndjson
  jq -e '.code == "access_allowed" and (.what | test("access rule 1"))' <<<"$output"
  rules '"rules":[{"effect":"allow","sender":"coord*"}]'
  run -0 track <<<"$(message task_dispatch)"
  run -0 --separate-stderr amp-ack audit --state state --format ndjson
  [ -z "$output" ]
}

@test "amp-route refuses a denied message with a NACK, also without a state directory" {
  rules '"rules":[{"effect":"deny","sender":"coordinator","recipient":"executor"}]'
  : >to
  run -1 --separate-stderr amp-route --config amp.json --route "to=executor => file:to" <<<"$(message task_dispatch)"
  [ ! -s to ]
  jq -e '.type == "nack" and .code == "access_denied"' <<<"$output"
  run -0 --separate-stderr amp-route --config amp.json --route "to=coordinator => file:to" <<<"$(message task_result)"
  [ -s to ]
}

@test "a tool call is refused by its tool" {
  rules '"rules":[{"effect":"deny","tool":"shell*"}]'
  local payload='{"call_id":"33333333-3333-4333-8333-333333333333","tool_name":"shell.exec","provider_id":"p","content_type":"application/json","args":{},"execution_policy":{"timeout_ms":1000}}'
  local call='{"message_id":"5a1d9c8e-6b3f-4a87-8f5e-91a2c0ab1234","producer_id":"cli","correlation_id":'
  call+='"7f3f41a2-2017-4b8f-9b8b-2ad3caaee001","sequence_number":1,"retry_count":0,"message_type":"TOOL_CALL",'
  call+="\"content_type\":\"application/json\",\"content_length\":${#payload},\"payload\":$payload}"
  run track <<<"$call"
  [ "$status" -eq 1 ]
  [[ $output == *access_denied*"tool shell.exec"* ]]
}

@test "a malformed rule is an error of the configuration" {
  rules '"rules":[{"effect":"maybe"}]'
  run -78 track <<<"$(message task_dispatch)"
  rules '"rules":[{"type":"x"}]'
  run -78 track <<<"$(message task_dispatch)"
  rules '"rules":[{"effect":"deny","who":"x"}]'
  run -78 track <<<"$(message task_dispatch)"
}

@test "rules in the amp.json of the state directory are ignored with a warning" {
  mkdir -m 700 state
  echo '{"access":{"rules":[{"effect":"allow"}],"default":"deny"}}' >state/amp.json
  run -0 amp-ack track --state state <<<"$(message task_dispatch)"
  [[ $output == *"access"* ]]
}
