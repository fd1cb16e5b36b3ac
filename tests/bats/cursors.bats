#!/usr/bin/env bats
# Cursors: how far a consumer has read the stream of a source.

load lib

setup() {
  need_tool amp-ack amp-route amp-validate
  cd "$BATS_TEST_TMPDIR"
  export AMP_STATE=$PWD/state
}

teardown() {
  for p in $(jobs -p); do kill "$p" 2>/dev/null || :; done
}

# at CONSUMER SOURCE EXPR: a member of the cursor.
at() { amp-ack cursors show "$1" "$2" | jq -r "$3"; }

@test "a person sees, sets and ends cursors" {
  amp-ack track </dev/null
  run -0 amp-ack cursors list
  [[ $output == *"no cursors" ]]
  amp-ack cursors move mbp vps 7
  amp-ack cursors move mbp hub 0
  run -0 --separate-stderr amp-ack cursors list
  [ "${#lines[@]}" = 3 ]
  [[ ${lines[2]} == mbp*vps*7*ACTIVE* ]]
  amp-ack cursors list --json >records
  amp-validate --protocol rtp <records | cmp - records
  [ "$(jq -r .lastSeq records | sort -n | paste -sd,)" = 0,7 ]
  [ "$(at mbp vps .status)" = active ]
  amp-ack cursors retire mbp vps
  [ "$(at mbp vps .state)" = RETIRED ]
  amp-ack cursors retire mbp vps
  amp-ack cursors move mbp vps 3
  [ "$(at mbp vps '"\(.state) \(.lastSeq) \(.epoch)"')" = "ACTIVE 3 route-epoch-2" ]
}

@test "what is not there, and what is no number, is told" {
  amp-ack track </dev/null
  run -1 amp-ack cursors show mbp vps
  [[ $output == *"mbp has no cursor over vps"* ]]
  run -1 amp-ack cursors retire mbp vps
  run -64 amp-ack cursors move mbp vps
  run -64 amp-ack cursors move mbp vps seven
  run -64 amp-ack cursors show mbp
  run -69 amp-ack -s elsewhere cursors list
}

@test "the sweep ends a lease that ran out" {
  amp-ack track </dev/null
  amp-ack cursors move mbp vps 7
  amp-ack sweep --now "$(date -u -d '+4 minutes' +%FT%TZ)"
  [ "$(at mbp vps .status)" = active ]
  amp-ack sweep --now "$(date -u -d '+6 minutes' +%FT%TZ)"
  [ "$(at mbp vps '"\(.status) \(.lastSeq) \(.epoch)"')" = "expired 7 route-epoch-2" ]
}
