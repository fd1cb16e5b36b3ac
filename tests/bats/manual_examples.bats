#!/usr/bin/env bats
# The examples of the manuals run as they stand.

load lib
load messages

# examples MAN: its commands, each with what follows until the next.
examples() {
  sed -n '/^\.Sh EXAMPLES/,/^\.Sh SEE ALSO/p' "$1" | sed -n '/^\.Bd/,/^\.Ed/p' |
    sed -e '/^\./d' -e 's/^\$ //' -e 's/\\e$/\\/'
}

setup() {
  cd "$BATS_TEST_TMPDIR" || return 1
  {
    message task_dispatch
    message task_dispatch '.msg_id += "1" | .payload.risk_level = "high"'
    message review_request
  } >messages.ndjson
}

@test "amp-validate(1)" {
  need_tool amp-validate
  message task_dispatch 'del(.to)' >>messages.ndjson
  { printf 'Done:\n```\n' && message escalation . && printf '```\n'; } >transcript.txt
  echo '{"properties":{"port":{"type":"integer"}}}' >settings.schema.json
  printf '{\n  "port": "http"\n}\n' >web.conf.json
  examples "$AMP_TOP/man/amp-validate.1" >script
  # That lines are rejected is what they show: no -e.
  run -0 bash -u script
  [[ "$output" == *missing_field* ]]
  [[ "$output" == *criteria_results* ]]
  [[ "$output" == *'"field":"port"'* ]]
  [[ "$output" == *'[4,"to","is missing ('* ]]
  [[ "$output" == *'"type":"task_dispatch","valid":2,"refused":1'* ]]
  [[ "$output" == *'missing_field (error, AMP/1.0)'* ]]
  head -n 3 messages.ndjson | cmp - valid.ndjson
  cmp valid.ndjson passed.ndjson
  head -n 3 answered.ndjson | cmp - valid.ndjson
  [ "$(tail -n 1 answered.ndjson | jq -r '.type + " " + .code')" = "nack missing_field" ]
  [ "$(jq -r .field rejected.ndjson)" = to ]
  [ "$(jq -r .type said.ndjson) $(jq -r .found found.ndjson)" = "escalation fence" ]
}

@test "worktree-bind(1)" {
  need_tool worktree-bind
  unset AMP_STATE AMP_AGENT
  git init -q -b main repo
  cd repo
  git -c user.name=p -c user.email=p@example.org commit -q --allow-empty -m first
  examples "$AMP_TOP/man/worktree-bind.1" >../script
  run -0 bash -euo pipefail ../script
  [[ "$output" == *executor-1* ]]
  [ "$(git worktree list | wc -l)" -eq 1 ]
}

@test "amp-route(1)" {
  need_tool amp-route
  examples "$AMP_TOP/man/amp-route.1" >script
  run -0 bash -euo pipefail script
  cmp exec.ndjson <(head -n 2 messages.ndjson)
  [ "$(find work/new -type f | wc -l)" -eq 2 ]
  [ "$(wc -l <look.ndjson)" -eq 1 ]
}

@test "amp-ack(1)" {
  need_tool amp-ack amp-route
  # Something that had no route.
  amp-route --state state -r 'to=admin => stdout' <messages.ndjson >nacks || [ $? -eq 1 ]
  examples "$AMP_TOP/man/amp-ack.1" >script
  run -0 bash -euo pipefail script
  cmp messages.ndjson tracked.ndjson
  [ "$(wc -l <acks.ndjson)" -eq 3 ]
  [ "$(find work/new -type f | wc -l)" -eq 3 ]
}

@test "agent-registry(1)" {
  need_tool agent-registry amp-route
  unset AMP_STATE
  echo '{"capabilityId":"cap.build","name":"Build","version":"1.0.0","status":"active",
    "ownerAgentId":"executor-1","ownerNodeId":"n1","delegationSkillRef":{"name":"d","version":"1.0.0"},
    "executorSkillRef":{"name":"e","version":"1.0.0"},"contractSchemaRef":"schema://x",
    "defaultEtaSeconds":900,"publishedAt":"2026-02-25T16:30:00Z","publishedByAgentId":"admin"}' \
    >capability.json
  examples "$AMP_TOP/man/agent-registry.1" >script
  run -0 bash -euo pipefail script
  [[ "$output" == *cap.build* ]]
  cmp messages.ndjson rest.ndjson
  [ "$(wc -l <asked-1) $(wc -l <asked-others)" = "1 1" ]
  [ "$(wc -l <events.ndjson) $(wc -l <published.ndjson)" = "5 2" ]
}

@test "hitl-prompt(1)" {
  need_tool hitl-prompt
  message escalation >escalations.ndjson
  examples "$AMP_TOP/man/hitl-prompt.1" >script
  run -0 bash -euo pipefail script
  [[ "$output" == *" resume"* ]]
  [ "$(jq -r .note decisions.ndjson)" = "multiply before converting" ]
}
