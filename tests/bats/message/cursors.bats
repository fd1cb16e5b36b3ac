#!/usr/bin/env bats
# Cursors: how far a consumer has read the stream of a source.

load ../lib

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
  AMP_AGENT=executor run -77 --separate-stderr amp-ack cursors retire mbp vps
  [[ $stderr == *'only people and the agent itself may'* ]]
  [ "$(at mbp vps .state)" = ACTIVE ]
  amp-ack cursors retire mbp vps
  [ "$(at mbp vps .state)" = RETIRED ]
  amp-ack cursors retire mbp vps
  amp-ack cursors move mbp vps 3
  [ "$(at mbp vps '"\(.state) \(.lastSeq) \(.epoch)"')" = "ACTIVE 3 route-epoch-2" ]
}

@test "a missing value and one that is not a number are reported" {
  amp-ack track </dev/null
  run -1 amp-ack cursors show mbp vps
  [[ $output == *"mbp has no cursor over vps"* ]]
  run -1 amp-ack cursors retire mbp vps
  run -64 amp-ack cursors move mbp vps
  run -64 amp-ack cursors move mbp vps seven
  run -64 amp-ack cursors show mbp
  run -69 amp-ack -s elsewhere cursors list
  run -69 --separate-stderr amp-ack cursors show c s --state "$BATS_TEST_TMPDIR/none"
  [[ $stderr == *"there is no state directory $BATS_TEST_TMPDIR/none"* ]]
  run -69 amp-ack cursors move c s 1 --state "$BATS_TEST_TMPDIR/none"
  run -69 amp-ack cursors retire c s --state "$BATS_TEST_TMPDIR/none"
}

@test "the sweep ends a lease that ran out" {
  amp-ack track </dev/null
  amp-ack cursors move mbp vps 7
  amp-ack sweep --now "$(date -u -d '+4 minutes' +%FT%TZ)"
  [ "$(at mbp vps .status)" = active ]
  amp-ack sweep --now "$(date -u -d '+6 minutes' +%FT%TZ)"
  [ "$(at mbp vps '"\(.status) \(.lastSeq) \(.epoch)"')" = "expired 7 route-epoch-2" ]
}

# events N...: of the node vps.
events() {
  local n
  for n in "$@"; do
    jq -nc --argjson n "$n" --arg x "${BODY:-b}" '{eventId: "evt_\($n)\($x)", seq: $n, kind: "message",
      sourceNodeId: "vps", sourceAgentId: "arch", createdAt: "2026-02-25T16:22:10Z",
      payload: {toAgents: ["mbp"], subject: "s", body: $x}, trace: {attempt: 1}}'
  done
}
route() { amp-route --cursor mbp -r 'kind=* => file:out' "$@"; }
seqs() { jq -r 'if .kind == "signal" then .payload.signal else .seq end' out | paste -sd' '; }

@test "an event behind a gap waits, also for the next router, and goes in order" {
  run -75 --separate-stderr route < <(events 1 2 5 4)
  [[ $stderr == *"vps: 2 events wait until 3 to 3 came"* ]]
  [ "$(seqs)" = "1 2" ]
  [ "$(at mbp vps '"\(.lastSeq) \(.gapFrom) \(.gapTo) \(.waiting)"')" = "2 3 3 2" ]
  run -0 --separate-stderr route < <(events 3 5 6 4 2)
  [ "$(seqs)" = "1 2 3 4 5 6" ]
  [ -z "$output" ]
  [ "$(at mbp vps '"\(.lastSeq) \(.state)"')" = "6 ACTIVE" ]
}

@test "the number of another event is refused" {
  route < <(events 1 2)
  BODY=other run -1 --separate-stderr route < <(BODY=other events 2)
  [ "$(jq -r '"\(.payload.code) \(.payload.ackType) \(.sourceNodeId) \(.seq)"' <<<"$output")" = \
    "seq_not_monotonic failed_terminal amp-route 1" ]
  [ "$(amp-ack dead list --json | jq -r '"\(.msg_id) \(.class)"')" = "evt_2other permanent" ]
  [ "$(seqs)" = "1 2" ]
}

@test "a gap that stays is reported, and given up as configured" {
  mkfifo in
  exec 7<>in
  amp-route --cursor mbp -r '* => file:out' --gap-timeout 300ms -i in >said 2>err &
  router=$!
  events 1 4 >&7
  wait_until 20 has_lines out 2
  [ "$(seqs)" = "1 4" ]
  wait_until 20 has_lines said 1
  amp-validate --protocol rtp <said | cmp - said
  [ "$(jq -r '.payload | "\(.signal) \(.code) \(.sourceNodeId) \(.fromSeq) \(.toSeq) \(.policy)"' said)" = \
    "incident gap_timeout vps 2 3 skip" ]
  events 3 >&7
  wait_until 20 has_lines said 2
  [ "$(tail -n 1 said | jq -r .payload.code)" = seq_not_monotonic ]
  exec 7>&-
  kill "$router"
  ends 130 wait "$router"
  [ "$(amp-ack dead list --json | jq -r .msg_id)" = evt_3b ]
  # Or a mark in its place, with the consumer's next number; the incident was told before.
  route --on-gap hold --gap-timeout 1ms < <(events 6) >>said || [ $? -eq 75 ]
  route --on-gap hold --gap-timeout 1ms </dev/null >>said || [ $? -eq 75 ]
  printf '{"cursor": {"on_gap": "tombstone"}}' >amp.json
  run -0 --separate-stderr route -c amp.json </dev/null
  [ -z "$output" ]
  [ "$(seqs)" = "1 4 tombstone 6" ]
  [ "$(jq -r 'select(.kind == "signal") | "\(.sourceNodeId) \(.seq)"' out said | sort)" = \
    "$(printf 'mbp 1\nmbp 2\nmbp 3')" ]
}

@test "of a gap that is held nothing goes on" {
  route --on-gap hold --gap-timeout 1ms < <(events 1 3) || [ $? -eq 75 ]
  run -75 --separate-stderr route --on-gap hold --gap-timeout 1ms </dev/null
  [ "$(seqs)" = 1 ]
  run -0 --separate-stderr route --on-gap hold < <(events 2)
  [ "$(seqs)" = "1 2 3" ]
}

# afresh STATE COMMAND...: STATE is a copy of the cursor's, made before; afterwards the cursor is printed.
afresh() {
  rm -rf state
  cp -r "$1" state
  "${@:2}" >/dev/null 2>err || [ $? -eq 75 ]
  at mbp vps '"\(.state) \(.lastSeq)"'
}

@test "a cursor with a gap, overdue or not, is moved, ended, taken over" {
  route --on-gap hold --gap-timeout 1h < <(events 1 3 5) || [ $? -eq 75 ]
  [ "$(at mbp vps .state)" = GAP ]
  mv state gap
  route --on-gap hold --gap-timeout 1ms < <(events 1 3 5) || [ $? -eq 75 ]
  route --on-gap hold --gap-timeout 1ms </dev/null || [ $? -eq 75 ]
  [ "$(at mbp vps .state)" = OVERDUE ]
  cp -r state overdue
  [ "$(afresh gap amp-ack cursors move mbp vps 7)" = "ACTIVE 7" ]
  [ "$(afresh gap amp-ack cursors retire mbp vps)" = "RETIRED 1" ]
  [ "$(afresh gap route --on-gap hold --gap-timeout 1h < <(events 2))" = "GAP 3" ]
  [ "$(afresh overdue amp-ack cursors move mbp vps 7)" = "ACTIVE 7" ]
  [ "$(afresh overdue amp-ack cursors retire mbp vps)" = "RETIRED 1" ]
  [ "$(afresh overdue route --on-gap hold --gap-timeout 1h < <(events 6))" = "OVERDUE 1" ]
  [ "$(afresh overdue route --on-gap hold --gap-timeout 1h < <(events 2))" = "GAP 3" ]
}

@test "an expired cursor is moved, ended, taken over" {
  mkfifo in
  local gap
  for gap in 1h 1ms; do
    rm -rf state
    amp-route --cursor mbp -r '* => file:out' --on-gap hold --gap-timeout $gap -i in --hold >said 2>err &
    router=$!
    events 1 3 >in
    wait_until 20 has_lines out 1
    waits() { [ "$(at mbp vps .waiting)" = 1 ] && { [ $gap = 1h ] || [ "$(at mbp vps .state)" = OVERDUE ]; }; }
    wait_until 20 waits
    kill -9 "$router"
    wait "$router" || [ $? -eq 137 ]
    amp-ack sweep --now "$(date -u -d '+6 minutes' +%FT%TZ)" >/dev/null
    [ "$(at mbp vps .state)" = EXPIRED ]
    mv state "expired$gap"
    : >out
  done
  [ "$(afresh expired1h amp-ack cursors move mbp vps 7)" = "ACTIVE 7" ]
  [ "$(afresh expired1h amp-ack cursors retire mbp vps)" = "RETIRED 1" ]
  [ "$(afresh expired1h route --on-gap hold --gap-timeout 1h </dev/null)" = "GAP 1" ]
  [ "$(afresh expired1ms route --on-gap hold --gap-timeout 1h </dev/null)" = "OVERDUE 1" ]
}

@test "one router at a time follows as a consumer" {
  mkfifo in
  amp-route --cursor mbp -r '* => file:out' -i in --hold >said 2>err &
  router=$!
  events 1 >in
  wait_until 20 has_lines out 1
  run -75 --separate-stderr amp-route --as other --cursor mbp -r '* => stdout' < <(events 2)
  [[ $stderr == *"amp-route/$router holds the cursor of mbp over vps for another"* ]]
  # A person fences it: its next event is not committed.
  run -1 amp-ack cursors move mbp vps 7
  amp-ack cursors move mbp vps 7 --force
  events 2 >in
  wait "$router" && false || [ $? -eq 75 ]
  grep -q 'was taken over or moved' err
  run -0 route < <(events 8)
  [ "$(seqs)" = "1 8" ]
  # Moved back, what was read comes again.
  amp-ack cursors move mbp vps 0
  run -0 route < <(events 1 2)
  [ "$(seqs)" = "1 8 1 2" ]
  amp-ack cursors retire mbp vps
  run -1 --separate-stderr route < <(events 9)
  [[ $stderr == *"is retired"* ]]
}

# sw4rm N [RETRIES [DIGITS]]: a message of the producer ann.
sw4rm() {
  jq -nc --argjson n "$1" --argjson again "${2:-0}" --arg id "$(printf '%08d-0000-4000-8000-%012d' "$1" "${3:-0}")" '
    {message_id: $id, producer_id: "ann", correlation_id: "7f3f41a2-2017-4b8f-9b8b-2ad3caaee001",
     sequence_number: $n, retry_count: $again, message_type: "DATA", timestamp: "2026-03-01T12:00:00Z",
     content_type: "application/json", content_length: 7, payload: {x: 1}}'
}

@test "the numbers of a SW4RM producer only rise" {
  run -1 --separate-stderr route --eager < <(sw4rm 10; sw4rm 500; sw4rm 10; sw4rm 20; sw4rm 10 1 7)
  [ "$(jq -r '"\(.sequence_number) \(.retry_count)"' out | paste -sd,)" = "10 0,500 0" ]
  # A further attempt may bear the number of the first: what that means, other rules say.
  [ "$(jq -r '(.msg // .).payload.error_code' <<<"$output" | paste -sd,)" = VALIDATION_ERROR,ALREADY_IN_PROGRESS ]
  [ "$(at mbp sw4rm:ann '"\(.lastSeq) \(.state)"')" = "500 ACTIVE" ]
}

@test "a producer and a node of one name are two sources" {
  same() {
    jq -nc --argjson n "$1" --arg id "$(printf '%08d-0000-4000-8000-000000000000' "$1")" '
      {message_id: $id, producer_id: "vps", correlation_id: "7f3f41a2-2017-4b8f-9b8b-2ad3caaee001",
       sequence_number: $n, retry_count: 0, message_type: "DATA",
       content_type: "application/json", content_length: 7, payload: {x: 1}}'
  }
  run -0 --separate-stderr route < <(events 1; same 700; events 2; same 900; events 3)
  [ "$(jq -r '.seq // .sequence_number' out | paste -sd' ')" = "1 700 2 900 3" ]
  [ "$(at mbp vps .lastSeq)" = 3 ]
  [ "$(at mbp sw4rm:vps .lastSeq)" = 900 ]
  run -0 route < <(same 950; events 4; events 4 | sed s/vps/sw4rm:vps/)
  [ "$(at mbp vps .lastSeq) $(at mbp sw4rm:vps .lastSeq) $(at mbp rtp:sw4rm:vps .lastSeq)" = "4 950 4" ]
}

@test "a source's name may hold anything" {
  nul() { events "$@" | jq -c '.sourceNodeId = "a\u0000b"'; }
  run -0 route < <(nul 1 2 && events 1 && nul 3)
  [ "$(seqs)" = "1 2 1 3" ]
  run -0 route < <(nul 4)
  [ "$(seqs)" = "1 2 1 3 4" ]
}

@test "too many that wait are refused, for a while" {
  run -75 --separate-stderr route --max-waiting 2 < <(events 1 5 6 7)
  [ "$(jq -r '"\(.payload.code) \(.payload.retryable)"' <<<"$output")" = "backpressure true" ]
  [ "$(at mbp vps .waiting)" = 2 ]
}

@test "streams are followed with a state and a name only" {
  unset AMP_STATE
  run -64 route </dev/null
  AMP_STATE=state run -64 amp-route --cursor a/b -r '* => stdout' </dev/null
  AMP_STATE=state amp-route -r '* => file:out' < <(events 1 9 4 4)
  [ "$(seqs)" = "1 9 4 4" ]
}

@test "what a person sent again out of the dead letters passes beside the cursor, once" {
  # A full inbox refuses the third and fourth; their numbers are taken.
  run -1 --separate-stderr amp-route --cursor mbp --inbound 2 -r '* => inbox:mbp' < <(events 1 2 3 4)
  [ "$(amp-ack dead list --json | jq -r .code | paste -sd' ')" = "buffer_full buffer_full" ]
  [ "$(at mbp vps .lastSeq)" = 4 ]
  amp-route inbox mbp >got
  amp-ack dead requeue --every >again
  [ "$(wc -l <again)" = 2 ]
  amp-route --cursor mbp -r '* => inbox:mbp' <again >answers
  amp-route inbox mbp >>got
  [ "$(jq -r .seq got | sort | paste -sd' ')" = "1 2 3 4" ]
  [ "$(at mbp vps .lastSeq)" = 4 ]
  # The same again is a repetition, also for another port.
  amp-route --cursor mbp -r '* => file:out' <again
  [ ! -s out ]
  run -1 --separate-stderr amp-route inbox mbp
  # It fails once more, and is sent once more.
  run -1 --separate-stderr amp-route --cursor mbp --inbound 2 -r '* => inbox:hub' < <(events 5 6 7)
  amp-ack dead requeue --every | run -1 --separate-stderr amp-route --cursor mbp --inbound 2 -r '* => inbox:hub'
  [ "$(amp-ack dead list --json | wc -l)" = 1 ]
  amp-route inbox hub >got
  amp-ack dead requeue --every | amp-route --cursor mbp --inbound 2 -r '* => inbox:hub'
  amp-route inbox hub >>got
  [ "$(jq -r .seq got | paste -sd' ')" = "5 6 7" ]
}

@test "what the cursor refused is refused again when it is sent again" {
  amp-ack track </dev/null
  amp-ack cursors move mbp vps 3
  run -1 --separate-stderr route < <(events 2)
  [[ $output == *seq_not_monotonic* ]]
  run -1 --separate-stderr route < <(amp-ack dead requeue --every)
  [[ $output == *seq_not_monotonic* ]]
  [ ! -s out ]
}

numbers() { jq -r '.seq // .sequence_number' out | paste -sd' '; }
codes() { amp-ack dead list --json | jq -r '"\(.code) \(.routing.tried[0] // "-")"' | paste -sd,; }

# of PROTOCOL N...: its messages with these numbers.
of() {
  if [ "$1" = rtp ]; then events "${@:2}"; else for n in "${@:2}"; do sw4rm "$n"; done; fi
}

@test "what timed out and came too late for its cursor is delivered when a person sends it again" {
  local p
  for p in sw4rm rtp; do
    export AMP_STATE=$PWD/$p
    rm -f out
    of $p 4 | amp-ack track --now 2026-03-01T12:00:00Z >late
    of $p 5 6 | amp-ack track | route
    amp-ack sweep --retries 0 >/dev/null
    [ "$(codes)" = "retries_exhausted -" ]
    # The line itself comes now: nobody sent it again, so its number counts.
    run -1 --separate-stderr route <late
    [[ $output == *"number 4 is not above 6"* ]]
    [ "$(amp-ack dead list --json | jq -r '.history | map(.code) | .[0]')" = ack_timeout ]
    amp-ack dead requeue --every >again
    run -0 route <again
    run -0 route <again
    [ "$(numbers)" = "5 6 4" ]
    amp-ack dead list --all --json | jq -e '.state == "REQUEUED" and .requeued.n == 1 and .attempts == 2'
  done
}

@test "a letter that failed again on its way, or arrived by then, passes once for each time it was sent again" {
  local p
  for p in sw4rm rtp; do
    export AMP_STATE=$PWD/$p
    rm -f out
    of $p 4 | amp-ack track --now 2026-03-01T12:00:00Z >/dev/null
    of $p 5 6 | amp-ack track --ack-timeout $p=1d | route
    amp-ack sweep --retries 0 >/dev/null
    amp-ack dead requeue --every >first
    amp-ack sweep --retries 0 --now "$(date -u -d '+1 minute' +%FT%TZ)" >/dev/null
    [ "$(codes)" = "retries_exhausted -" ]
    route <first
    route <first
    [ "$(numbers)" = "5 6 4" ]
    # Its letter is open still, and a person sends it once more.
    amp-ack dead requeue --every >second
    cmp first second
    route <second
    route <second
    [ "$(numbers)" = "5 6 4 4" ]
    amp-ack dead list --all --json | jq -e '.requeued.n == 2'
  done
}

@test "letters of every cause pass their cursor" {
  local p cause
  for p in sw4rm rtp; do
    for cause in no_route rejected ttl_expired; do
      export AMP_STATE=$PWD/$p.$cause
      rm -f out
      of $p 4 | if [ $cause != ttl_expired ]; then cat; elif [ $p = rtp ]; then
        jq -c '.expiresAt = "2026-03-01T12:00:30Z"'; else jq -c '.ttl_ms = 30000'; fi >line
      case $cause in
        no_route) amp-route --cursor mbp -r 'kind=NOBODY => stdout' <line >/dev/null || [ $? -eq 1 ] ;;
        ttl_expired) route <line >/dev/null || [ $? -eq 1 ] ;;
        rejected)
          amp-ack track <line | route
          if [ $p = rtp ]; then
            jq -c '{eventId: "ack", seq: 1, kind: "ack", sourceNodeId: "mbp", sourceAgentId: "mbp", corrId: "c",
              createdAt: "2026-03-01T12:00:00.000Z", payload: {refEventId: .eventId, refKind: .kind, ackType: "failed_terminal",
              ackedByNodeId: "mbp", ackedByAgentId: "mbp", ackedAt: "2026-03-01T12:00:00.000Z"}, trace: {attempt: 1}}' line
          else
            jq -c '.payload = {ack_for_message_id: .message_id, ack_stage: "REJECTED", error_code: "VALIDATION_ERROR"} |
              .message_id = "22222222-2222-4222-8222-222222222222" | .producer_id = "bob" |
              .message_type = "ACKNOWLEDGEMENT" | .content_length = (.payload | tojson | length)' line
          fi | amp-ack track >/dev/null
          amp-ack sweep >/dev/null
          rm -f out
          ;;
      esac
      [ "$(amp-ack dead list --json | wc -l)" = 1 ]
      of $p 5 6 | route
      amp-ack dead requeue --every >again
      if [ $cause = ttl_expired ]; then # it passes, and is too late still
        run -1 --separate-stderr route <again
        [[ $(codes) == *expired* ]]
        continue
      fi
      route <again
      route <again
      [ "$(numbers)" = "5 6 4" ]
    done
  done
}

@test "a retry has a number in the sweep's outbox: the first one's stays a gap, its letter passes both cursors" {
  amp-ack track </dev/null
  amp-ack cursors move mbp vps 3
  events 4 | amp-ack track --now 2026-03-01T12:00:00Z >/dev/null
  events 5 | amp-ack track --now 2026-03-01T12:00:00Z --ack-timeout rtp=1d | route || [ $? -eq 75 ]
  amp-ack sweep --retries 1 --backoff 1s,1s --now 2026-03-01T12:00:20Z >/dev/null
  amp-ack sweep --retries 1 --backoff 1s,1s --now 2026-03-01T12:00:21Z >second
  route <second || [ $? -eq 75 ]
  # The operation came; the event did not, and what is behind it waits.
  [ "$(jq -r '"\(.sourceNodeId) \(.seq) \(.trace.idempotencyKey // "-")"' out)" = "amp-ack.sweep 1 evt_4b" ]
  [ "$(at mbp vps '"\(.lastSeq) \(.waiting)"')" = "3 1" ]
  route < <(events 4)
  [ "$(jq -r .seq out | paste -sd' ')" = "1 4 5" ]
  amp-ack sweep --retries 1 --backoff 1s,1s --now 2026-03-01T12:00:41Z | route
  [ "$(amp-ack dead list --json | jq -r '"\(.attempts) \(.msg.sourceNodeId)"')" = "2 amp-ack.sweep" ]
  [ "$(at mbp amp-ack.sweep .lastSeq)" = 2 ]
  rm out
  amp-ack dead requeue --every >again
  route <again
  route <again
  [ "$(jq -r '"\(.sourceNodeId) \(.seq)"' out)" = "amp-ack.sweep 1" ]
}

gone_on() {
  route --gap-timeout 1ms </dev/null >/dev/null || [ $? -eq 75 ]
  [ "$(at mbp vps .waiting)" = 0 ]
}

@test "too many that waited is no fault of a number: such a letter passes later" {
  run -75 --separate-stderr route --max-waiting 1 < <(events 1 3 4)
  [ "$(codes)" = "backpressure cursor" ]
  route --gap-timeout 1ms < <(events 2 5) || [ $? -eq 75 ]
  wait_until 20 gone_on
  [ "$(numbers)" = "1 2 3 5" ]
  amp-ack dead requeue --every | route
  [ "$(numbers)" = "1 2 3 5 4" ]
}
