#!/usr/bin/env bats
# kill -9 at random moments over the whole way of messages: track, route with a cursor into an inbox,
# the inbox's reader or its worker, and watch. What was acknowledged is there, what was READ is not
# handed over again, nothing is fulfilled twice, cursors have no gaps.
# slow

load ../lib
load ../messages
load ../deliveries
load ../../kill9

LANES=4 # so many at once, each with a state of its own

setup() {
  need_tool amp-ack amp-route
  cd "$BATS_TEST_TMPDIR"
  message task_dispatch '.msg_id = "task_dispatch-T-2026-044-@N@"' >amp.template
  jq -cn '{eventId: "evt-@N@", seq: 77777, kind: "message", sourceNodeId: "vps", sourceAgentId: "architect",
    corrId: "corr-@N@", createdAt: "2026-02-25T16:22:10.123Z", payload: {toAgents: ["executor"], subject: "s",
    body: ("x" * 300), priority: "normal", expectsReply: false}, trace: {attempt: 1}}' >rtp.template
  jq -cn '{message_id: "00000000-0000-4000-8000-@12@", producer_id: "agent-1", correlation_id:
    "00000000-0000-4000-9000-@12@", sequence_number: 77777, retry_count: 0, message_type: "DATA", content_type:
    "application/json", content_length: 2, idempotency_token: "agent-1:op:@16@", hlc_timestamp:
    "1772116327001000.000000.agent-1", timestamp: "2026-02-26T14:32:07Z", payload: {}}' >sw4rm.template
  cat >work <<'SH'
#!/bin/sh
# The work itself: said on one line, with what the caller says of it.
echo "$AMP_MSG_ID ${AMP_REDELIVERED-0}" >>ran
SH
  chmod +x work
}

# One message of each protocol, with the number N.
fresh() {
  local twelve
  printf -v twelve %012d "$1"
  sed "s/@N@/$1/" ../amp.template
  sed "s/@N@/$1/g; s/77777/$1/" ../rtp.template
  sed "s/@12@/$twelve/g; s/@16@/0000$twelve/; s/77777/$1/" ../sw4rm.template
}

# The sender keeps what it was not told to have been queued or refused; of AMP what stands last in the ledger
# does not tell it, so the last round's goes again.
sender() {
  fresh "$1" >new
  cat pending new >in
  [ "$1" -eq 1 ] || fresh $(($1 - 1)) | sed -n 1p >>in
}

heard() {
  # What track says of a repetition (it is under way) does not tell that it was queued.
  sed -n '/}$/{ /amp-ack\.track/!p }' answers | sed -nE 's/.*"(refEventId|ack_for_message_id|ref_msg_id)":("[^"]*").*/\2/p' | sort -u >told
  grep -vE '"type":"task_dispatch"' in | grep -vFf told | sort -u >pending || true
  # In the order of their numbers, as a source sends them.
  sort -t: -k2,2 pending | awk 'match($0, /"(seq|sequence_number)":[0-9]+/) {
    n = substr($0, RSTART, RLENGTH); sub(/.*:/, "", n); print n "\t" $0 }' | sort -n | cut -f2- >pending.sorted
  mv pending.sorted pending
}

round() {
  local n=$1 p killed=0 pids=() how=(--follow -o "$PWD/out/$1")
  : >"out/$n"
  ((n % 2)) || how=(--follow --fulfill --exec ../work)
  sender "$n"
  echo >>answers
  # Each has its own moments: these are the random numbers of this shell.
  local a=$((RANDOM % 60 + 1)) b=$((RANDOM % 90 + 1)) c=$((RANDOM % 90 + 1)) d=$((RANDOM % 90 + 1)) e=$((RANDOM % 60 + 1))
  RANDOM=$a during 60 amp-ack track <in >mid 2>>said &
  p=$!
  RANDOM=$c during 90 amp-route inbox executor "${how[@]}" 2>>said &
  pids+=($!)
  RANDOM=$d during 90 amp-ack watch >>raised 2>>said &
  pids+=($!)
  RANDOM=$b
  wait "$p" || killed=1
  # A person sends again what has come back by then. What track was writing may end in the middle.
  [ -z "$(tail -c 1 mid)" ] || echo >>mid
  if ((n % 4 == 0)); then
    RANDOM=$e during 60 amp-ack dead requeue --every >>mid 2>>said || [ $? -ne 137 ] || killed=1
  fi
  RANDOM=$b
  RANDOM=$b during 90 amp-route --cursor mbp --gap-timeout 1h -r 'from=amp-ack* => stdout' -r '* => inbox:executor' <mid >>answers 2>>said &
  pids+=($!)
  for p in "${pids[@]}"; do
    wait "$p" || [ $? -ne 137 ] || killed=1
  done
  kills=$((kills + killed))
  awk 1 mid >>passed
  heard
}

# What the state's log says of the deliveries so far.
log_check() {
  frames state/log/*.ndjson >frames
  fine <frames >wrong || {
    echo "after round $1:" >&2
    head -n 5 wrong >&2
    return 1
  }
}

# names: of the messages on stdin, and lines that begin with a name, those that the sender made.
names() {
  jq -rR '. as $l | (try fromjson catch {msg_id: ($l | split(" ")[0])}) | objects |
    .msg_id // .eventId // .message_id // .msg.message_id? // empty' |
    grep -xE 'task_dispatch-T-2026-044-[0-9]+|evt-[0-9]+|00000000-0000-4000-8000-[0-9]+' | sort
}

# lane NAME ROUNDS: in a directory of its own; what was killed, and how much came, in NAME/sum.
lane() {
  mkdir "$1" "$1/out"
  cd "$1"
  # Soon too late, so that watch has something to do in each round. What timed out is kept for a person: a further
  # attempt at an event would have a number of its own, and the first one's would stay a gap.
  echo '{"ack": {"timeout": ["amp=1s", "rtp=1s", "sw4rm=1s"]}, "retry": {"budget": ["rtp=0"]}}' >amp.json
  export AMP_STATE=$PWD/state AMP_CONFIG=$PWD/amp.json
  RANDOM=$((KILL_SEED + $1))
  touch answers pending ran
  # The cursor of the events begins before the first, whichever comes first.
  amp-ack track </dev/null
  amp-ack cursors move mbp vps 0
  local n=0 left=1 i
  while ((kills < $2 && n < 3 * $2)); do
    n=$((n + 1))
    round "$n"
    ((n % 25)) || log_check "$n"
  done
  # Now nobody dies: what a killed watch had begun ends, what is under way arrives, what found no room is sent again by a
  # person. Otherwise a message that timed out and is no dead letter yet would wait for the next watch.
  amp-ack sweep >>raised 2>>said
  for i in {1..60}; do
    sed -n '/}$/p' pending >in
    amp-ack track --resend <in 2>>said >mid || true
    cat mid >>passed
    echo >>answers
    amp-route --cursor mbp --gap-timeout 1h -r 'from=amp-ack* => stdout' -r '* => inbox:executor' <mid >>answers 2>>said || true
    amp-route inbox executor >>"out/last" 2>>said || true
    amp-ack dead requeue --every 2>>said |
      amp-route --cursor mbp --gap-timeout 1h -r 'from=amp-ack* => stdout' -r '* => inbox:executor' >>answers 2>>said || true
    amp-route inbox executor >>"out/last" 2>>said || true
    heard
    left=$(amp-ack dead list --json | wc -l)
    [ "$left" -gt 0 ] || [ -s pending ] || break
  done
  [ "$left" -eq 0 ] && [ ! -s pending ] || {
    echo "after $i rounds without a kill: $left dead letters, $(wc -l <pending) not acknowledged" >&2
    amp-ack dead list | head -n 4 >&2
    head -n 3 pending >&2
    tail -n 3 said >&2
    return 1
  }
  log_check end || return 1
  # All that left track, and all that was answered, reached the agent; each line whole.
  whole passed | names | uniq >expected
  tr -d '"' <told | names >>expected
  { whole out/* && cat ran; } | names >reached
  all_reached expected reached >&2 && no_oftener reached frames >&2 && one_end state/log/*.ndjson >&2 || return 1
  echo "$n $kills $(sort -u reached | wc -l) $(uniq -d reached | wc -l)" >sum
}

@test "track, route, inbox and watch killed at any moment" {
  local i pids=() failed=0
  for ((i = 1; i <= LANES; i++)); do
    (lane "$i" $((KILL_ROUNDS * i / LANES - KILL_ROUNDS * (i - 1) / LANES))) &
    pids+=($!)
  done
  for i in "${pids[@]}"; do wait "$i" || failed=$((failed + 1)); done
  echo "KILL_SEED=$KILL_SEED, $failed failed"
  [ "$failed" -eq 0 ]
  [ "$(cat ./*/sum | wc -l)" -eq "$LANES" ]
  read -r n k m again < <(awk '{ n += $1; k += $2; m += $3; a += $4 } END { print n, k, m, a }' ./*/sum)
  echo "# $n rounds, $k with a kill, $m messages, $again came again (KILL_SEED=$KILL_SEED)" >&3
  ((k == KILL_ROUNDS))
}
