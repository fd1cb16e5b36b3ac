# amp-validate --now: expiry and estimates of the Runtime Protocol by a clock.

load ../lib

setup() {
  need jq
  cd "$BATS_TEST_TMPDIR" || return 1
}

# event EXPIRES
event() {
  jq -nc --arg e "$1" '{eventId: "e", seq: 1, kind: "signal", sourceNodeId: "n", sourceAgentId: "a",
    createdAt: "1999-01-01T00:00:00Z", expiresAt: $e, payload: {}, trace: {attempt: 1}}'
}

@test "without --now an old log is as good as ever" {
  event 2000-01-01T00:00:00Z >in
  amp-validate in | cmp - in
}

@test "--now takes a time with an offset, or the word now" {
  { event 2000-01-01T00:00:00Z; event 2000-01-01T00:00:01Z; event 2999-01-01T00:00:00Z; } >in
  amp-validate -e records --now 2000-01-01T01:00:00+01:00 in >out || [ $? -eq 1 ]
  [ "$(jq -r '"\(.line) \(.code) \(.field)"' records)" = "1 expired expiresAt" ]
  sed -n 2,3p in | cmp - out
  amp-validate --now now in 2>/dev/null >out || [ $? -eq 1 ]
  sed -n 3p in | cmp - out
}

@test "--now refuses what is no time" {
  for time in yesterday 2000-01-01 2000-01-01T00:00:00 '' 1969-01-01T00:00:00Z; do
    run --separate-stderr amp-validate --now "$time" /dev/null
    [ "$status" -eq 64 ]
    [ -z "$output" ]
  done
}
