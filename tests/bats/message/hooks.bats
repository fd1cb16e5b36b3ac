#!/usr/bin/env bats
# The example hooks of coding agents, as an agent calls them.

load ../lib
load ../messages

setup() {
  need_tool amp-ack amp-route
  cd "$BATS_TEST_TMPDIR"
  export AMP_STATE=$PWD/state AMP_AGENT=executor
  hooks=$AMP_TOP/examples/hooks
  amp-ack track </dev/null
}

put() { message task_dispatch ".msg_id = \"task_dispatch-T-2026-044-$1\"" | amp-route -r '* => inbox:executor'; }
state_of() { amp-ack status --all --json | jq -r --arg i "task_dispatch-T-2026-044-$1" 'select(.msg_id == $i) | .state'; }

@test "a turn begins with what waits, and ends with what came meanwhile" {
  put 1
  run -0 --separate-stderr "$hooks/prompt.sh"
  [[ $output == "Message task_dispatch-T-2026-044-1:"* ]]
  [ "$(state_of 1)" = READ ]
  # At work: nobody hands anything over.
  put 2
  run -1 --separate-stderr amp-route inbox executor --between-turns
  [ -z "$output" ]
  [ "$(state_of 2)" = RECEIVED ]
  run -0 --separate-stderr "$hooks/stop.sh"
  [ "$(jq -r .decision <<<"$output")" = block ]
  [[ $(jq -r .reason <<<"$output") == *"task_dispatch-T-2026-044-2"* ]]
  [ "$(state_of 2)" = READ ]
  run -0 --separate-stderr "$hooks/stop.sh"
  [ -z "$output" ]
}

@test "a prompt without messages says nothing and begins a turn" {
  run -0 --separate-stderr "$hooks/prompt.sh"
  [ -z "$output" ]
  put 1
  run -1 amp-route inbox executor --between-turns
  [ "$(state_of 1)" = RECEIVED ]
}

@test "without a state the hooks fail and say so" {
  AMP_STATE=$PWD/nowhere run -69 "$hooks/stop.sh"
  [[ $output == *"no state directory"* ]]
  AMP_STATE=$PWD/nowhere run -69 "$hooks/prompt.sh"
}
