#!/usr/bin/env bats
# amp-route --dry-run and --tee: what would be done, and what was.

load ../lib
load ../messages

setup() {
  need_tool amp-route agent-registry
  cd "$BATS_TEST_TMPDIR"
  { message task_dispatch; message review_request; message escalation; } >in
}

teardown() {
  # Only what this test started.
  for p in $(jobs -p); do kill "$p" 2>/dev/null || :; done
}

@test "a dry run says what was asked, what held and where that leads, and opens nothing" {
  mkfifo f
  run -1 --separate-stderr amp-route -n -r 'to=executor => fifo:f' -r 'jq:.type == "review_request" => file:x' \
    -r 'type=task_dispatch => command:touch started' -r 'to=nobody => http://127.0.0.1:1/' <in
  [ "$(jq -c '[.line, .ports, .lane, .refused, [.tried[].holds]]' <<<"$output")" = \
'[1,["fifo:f"],"STANDARD",null,[true]]
[2,["file:x"],"STANDARD",null,[false,true]]
[3,[],"STANDARD","no_route",[false,false,false,false]]' ]
  [ "$(jq -r '.id' <<<"$output" | paste -sd' ')" = "$(jq -r .msg_id in | paste -sd' ')" ]
  [ "$(jq -r '.tried[1].predicate' <<<"$output" | sed -n 2p)" = 'jq:.type == "review_request"' ]
  [ ! -e x ]
  [ ! -e started ]
  run -0 --separate-stderr amp-route -n --all -r '* => spool:box' -r 'to=executor => file:x' < <(message task_dispatch)
  [ "$(jq -c .ports <<<"$output")" = '["spool:box","file:x"]' ]
  [ ! -e box ]
}

@test "a dry run with a state directory: what the registry and a suspension would say, nothing recorded" {
  export AMP_STATE=$PWD/state
  run -1 amp-route -n -r '* => agents' <in
  [ ! -e state ]
  agent-registry register ann --role executor --connector x:y >/dev/null
  before=$(cat state/log/* | wc -c)
  run -1 --separate-stderr amp-route -n -r 'to=admin => dead' -r 'to=reviewer => inbox:rev' -r '* => agents' <in
  [ "$(jq -c '[.ports, .recipients, .refused]' <<<"$output")" = \
'[["agents"],["ann"],null]
[["inbox:rev"],null,null]
[["dead"],null,"kept_back"]' ]
  [ "$(cat state/log/* | wc -c)" -eq "$before" ]
}

@test "--tee copies what is routed, and only that" {
  run -1 --separate-stderr amp-route --tee seen --tee file:seen2 -r 'to=executor|reviewer => file:x' <in
  cmp x <(head -n 2 in)
  cmp x seen
  cmp x seen2
  run -64 amp-route --tee inbox:ann -r '* => file:x' <in
}

@test "a tee that nobody reads delays nothing, and does not keep the end" {
  mkfifo t
  exec 8<>t
  message task_dispatch '.payload.description = ("x" * 5000)' |
    jq -c '. as $m | range(200) | . as $i | $m | .msg_id += "\($i)"' >many
  run -0 --separate-stderr timeout 60 amp-route --max-pending 256K --tee t -r '* => file:x' <many
  exec 8<&-
  cmp many x
  [[ $stderr == *"copies did not reach their ports (--tee)"* ]]
}
