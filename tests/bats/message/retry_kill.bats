#!/usr/bin/env bats
# kill -9 over the sweep that sends again: an attempt has one id, leaves once, and never after its
# operation was READ.
# slow

load ../lib
load ../../kill9

setup() {
  need_tool amp-ack
  cd "$BATS_TEST_TMPDIR"
  export AMP_STATE=$PWD/state
}

# Twelve seconds are a step: a deadline of ten, a wait of one.
now() { date -u -d "@$((1772366400 + 12 * $1))" +%Y-%m-%dT%H:%M:%SZ; }
sweep() { amp-ack sweep --retries 3 --backoff 1s --now "$(now "$1")"; }
N=20

# messages BATCH
messages() {
  jq -nc --argjson n $N --arg b "$1" 'range($n) | tostring as $i | "\($b)-\($i)" as $t | {
    message_id: "11111111-1111-4111-8\("0" * (3 - ($b | length)) + $b)-\("0" * (12 - ($i | length)) + $i)",
    producer_id: "cli", correlation_id: "7f3f41a2-2017-4b8f-9b8b-2ad3caaee001", sequence_number: 1,
    retry_count: 0, message_type: "DATA", content_type: "application/json", content_length: 2,
    payload: {}, idempotency_token: "cli:x:\($t)"}'
}

# read_some STEP BATCH: bob reads the newest attempt that he saw of two operations. What he saw of the batch is
# in the file batch.
read_some() {
  jq -c --arg a "cli:x:$2-$((RANDOM % N))" --arg b "cli:x:$2-$((RANDOM % N))" -n '
    (reduce inputs as $m ({}; .[$m.idempotency_token] = $m)) as $newest | $newest[$a, $b] |
    {message_id: "22222222-2222-4222-8222-222222222222", producer_id: "bob", correlation_id,
     sequence_number: 1, retry_count: 0, message_type: "ACKNOWLEDGEMENT", content_type: "application/json",
     payload: {ack_for_message_id: .message_id, ack_stage: "READ"}, of: .idempotency_token} |
    .content_length = (.payload | tojson | length)' batch >picked
  sed 's/,"of":"[^"]*"//' picked | amp-ack track --now "$(now "$1")" >/dev/null || return 1
  sed 's/.*"of":"\([^"]*\)".*/\1/' picked >>done
}

# sent_again: the attempts among the whole lines of the file out; none may be of an operation that was read before.
sent_again() {
  jq -cR 'fromjson? // empty | select(.retry_count > 0)' out >again
  awk 'NR == FNR { done["\"idempotency_token\":\"" $0 "\""] = 1; next }
    match($0, /"idempotency_token":"[^"]*"/) && substr($0, RSTART, RLENGTH) in done {
      print "sent again after READ: " $0; bad = 1 } END { exit bad }' done again >&2
}

# round STEP: what leaves is none of an operation that was read before.
round() {
  kill9_round 40 amp-ack sweep --retries 3 --backoff 1s --now "$(now "$1")" >out
  sent_again || return 1
  cat again >>seen
  cat again >>batch
}

@test "sweep: each attempt under one id, none after READ, all end" {
  local batch=0 step=0 i want=$(((KILL_ROUNDS + 3) / 4))
  : >first
  : >seen
  : >done
  while ((kills < want && batch < want)); do
    batch=$((batch + 1))
    messages $batch >new
    cat new >>first
    cp new batch
    amp-ack track --now "$(now $step)" <new >/dev/null
    for i in 1 2 3 4; do
      step=$((step + 1))
      round $step
      round $step
      read_some $step $batch || return 1
      round $step
    done
  done
  # Without kills the rest comes to its end.
  for i in 1 2 3 4 5 6 7 8; do
    step=$((step + 1))
    sweep $step >out
    sent_again
    cat again >>seen
  done
  echo "# $kills killed (KILL_SEED=$KILL_SEED), $(wc -l <seen) lines of attempts, $(sort -u done | wc -l) operations read" >&3
  # One id for each attempt, however often its line was written.
  jq -r '"\(.idempotency_token) \(.retry_count) \(.message_id)"' seen | sort -u >attempts
  cut -d' ' -f1,2 attempts | sort | uniq -d >twice
  [ ! -s twice ]
  # What nobody read is a dead letter, once, after all its attempts.
  amp-ack dead list --json | jq -r .msg.idempotency_token | sort >dead
  uniq -d dead >twice
  [ ! -s twice ]
  jq -r .idempotency_token first | sort | comm -23 - <(sort -u dead done) >lost
  [ ! -s lost ]
  cut -d' ' -f1 attempts | sort | uniq -c | awk '$1 == 3 { print $2 }' | sort >all_three
  comm -23 dead all_three >short
  [ ! -s short ]
  [ -z "$(sweep $((step + 100)))" ]
}
