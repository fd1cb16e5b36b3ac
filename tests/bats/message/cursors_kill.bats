#!/usr/bin/env bats
# kill -9 at random moments while events come in any order, some again: the cursor never skips, an
# event is queued once, and none is lost.
# slow

load ../lib
load ../../kill9

setup() {
  need_tool amp-route amp-ack
  cd "$BATS_TEST_TMPDIR" || exit
  export AMP_STATE=$PWD/state
}

# The events from $1 to $2 as they arrive: out of order within a window, a tenth of them twice.
arrive() {
  awk -v a="$1" -v b="$2" -v seed="$RANDOM" 'BEGIN {
    srand(seed)
    for (i = a; i <= b; i++) {
      at = i + rand() * 30
      print at, i
      if (rand() < 0.1) print at + rand() * 50, i
    }
  }' | sort -n | awk '{
    printf "{\"eventId\":\"evt_%d\",\"seq\":%d,\"kind\":\"message\",\"sourceNodeId\":\"vps\",\"sourceAgentId\":\"arch\",\"createdAt\":\"2026-02-25T16:22:10Z\",\"payload\":{\"toAgents\":[\"mbp\"],\"subject\":\"s\",\"body\":\"b\"},\"trace\":{\"attempt\":1}}\n", $2, $2
  }'
}

position() { amp-ack cursors show mbp vps 2>/dev/null | sed -n 's/.*"lastSeq":\([0-9]*\).*/\1/p'; }

# Every move of the cursor in the log is by one. A frame that a kill cut off does not count. On a slow
# machine every run may have been killed before its first move.
contiguous() {
  { grep -h '"event":"enqueue"' state/log/*.ndjson || [ $? -eq 1 ]; } | sed -n 's/.*"last_seq":\([0-9]*\)[,}].*}$/\1/p' >moves
  awk 'NR > 1 && $1 != last + 1 { print "after " last " came " $1; bad = 1 } { last = $1 } END { exit bad }' moves
}

@test "a cursor is contiguous, whatever is killed" {
  # It begins before the first event, whichever comes first.
  amp-ack track </dev/null
  amp-ack cursors move mbp vps 0
  n=0
  while ((kills < KILL_ROUNDS && n < 5 * KILL_ROUNDS)); do
    n=$((n + 1))
    # The sender repeats what it does not know to have arrived.
    at=$(position)
    arrive $((at > 20 ? at - 20 : 1)) $((at + 150)) >in
    kill9_round 60 amp-route --cursor mbp -r '* => spool:box' <in >>answers 2>>said
    ((n % 20)) || contiguous
  done
  echo "# $n rounds, $kills killed before their end (KILL_SEED=$KILL_SEED), up to $(position)" >&3
  ((kills == KILL_ROUNDS))
  at=$(position)
  arrive 1 $((at + 100)) >in
  amp-route --cursor mbp -r '* => spool:box' <in >>answers
  contiguous
  [ -s moves ]
  [ "$(position)" -eq $((at + 100)) ]
  cat box/new/* | sed -n 's/.*"seq":\([0-9]*\),.*/\1/p' | sort -n | cmp - <(seq $((at + 100)))
  # Nobody was refused: what came again was known.
  [ ! -s answers ]
}
