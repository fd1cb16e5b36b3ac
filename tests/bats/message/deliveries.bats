#!/usr/bin/env bats
# The checks that the kill tests rely on find what they are for.

load ../lib
load ../messages
load ../deliveries

setup() {
  need_tool amp-ack amp-route
  cd "$BATS_TEST_TMPDIR"
  export AMP_STATE=$PWD/state
  for i in 1 2 3; do
    message task_dispatch ".msg_id = \"task_dispatch-T-2026-044-$i\""
    jq -cn --argjson i "$i" '{eventId: "evt-\($i)", seq: $i, kind: "message", sourceNodeId: "vps",
      sourceAgentId: "architect", corrId: "corr-\($i)", createdAt: "2026-02-25T16:22:10.123Z",
      payload: {toAgents: ["executor"], subject: "s", body: "b"}, trace: {attempt: 1}}'
  done >in
  amp-route --cursor mbp -r 'from=amp-ack* => stdout' -r '* => inbox:executor' <in >/dev/null
  amp-route inbox executor --fulfill --exec sh -c 'echo "$AMP_MSG_ID" >>came'
  frames state/log/*.ndjson >good
  first=$(awk -F'\t' '$2 == "offer" { print $1; exit }' good)
}

# found WHAT: the frames on stdin are wrong, for that reason.
found() {
  local said
  ! said=$(fine) || return 1
  [[ $said == *"$1"* ]]
}

@test "what happened is fine" {
  [ "$(wc -l <came)" -eq 6 ]
  fine <good
  one_end state/log/*.ndjson
  all_reached came came
  no_oftener came good
}

@test "a READ that is not there before the next one is offered" {
  awk -F'\t' -v k="$first" '!($1 == k && $2 == "read")' good | found "not READ is $first"
  # It stands behind the next offer.
  awk -F'\t' -v k="$first" '$1 == k && $2 == "read" { late = $0; next } { print }
    late && $2 == "offer" { print late; late = "" }' good | found "not READ is $first"
}

@test "handed over again, read twice, fulfilled twice" {
  { cat good; awk -F'\t' -v k="$first" '$1 == k && $2 == "offer"' good; } | found "again: $first"
  { cat good; awk -F'\t' -v k="$first" '$1 == k && $2 == "read"' good; } | found "again: $first"
  { cat good; awk -F'\t' '$1 ~ /^message/ && $4 == "FULFILLED"' good | head -n 1; } | found "fulfilled twice"
  cat state/log/*.ndjson >log
  grep -m 1 '"to":"FULFILLED"' log | jq -c '.state.claim = "one"' | tee twice >>log
  run -1 one_end log twice
}

@test "a cursor that left one out" {
  grep -n . good | awk -F'[:\t]' '$2 ~ /^cursor/ && $NF == 2 { print $1 }' >at
  [ -s at ]
  sed "$(sed 's/$/d/' at)" good | found "a gap behind 1"
}

@test "lost, or too often" {
  run -1 all_reached came <(sed 1d came)
  [[ $output == "lost: "* ]]
  run -1 no_oftener <(cat came; head -n 1 came) good
  [[ $output == "too often: "* ]]
}

@test "half a line at the end of a file takes no line of the next file with it" {
  # One reader was killed while it wrote, the next handed over nothing, the third one began with the same message.
  mkdir out
  head -n 1 in | head -c 100 >out/7
  : >out/8
  head -n 1 in >out/9
  [ "$(whole out/*)" = "$(head -n 1 in)" ]
}
