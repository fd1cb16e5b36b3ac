#!/usr/bin/env bats
# slow: a hundred thousand messages to fifty agents of whom five never read. FLOOD_N messages
# (100000) in all; the soak takes more.

load ../lib
load ../messages

N=${FLOOD_N:-100000}
AGENTS=50
IDLE=5

setup() {
  need_tool amp-route
  cd "$BATS_TEST_TMPDIR"
}

teardown() {
  # Only what this test started.
  for p in $(jobs -p); do kill "$p" 2>/dev/null || :; done
}

# messages N: to the agents in turn, numbered.
flood() {
  message escalation '.task_id = "T-2026-@A@" | .msg_id = "escalation-T-2026-@A@-@N@"' |
    LC_ALL=C awk -F@ -v n="$1" -v agents=$AGENTS '{
      for (i = 1; i <= n; i++) {
        a = sprintf("%03d", i % agents + 1)
        print $1 a $3 i $5 a $7
      }
    }'
}

@test "100,000 messages to 50 agents of whom 5 never read" {
  routes=()
  readers=()
  for ((i = 1; i <= AGENTS; i++)); do
    name=$(printf %03d "$i")
    mkfifo "f$name"
    routes+=(-r "task=T-2026-$name => fifo:f$name")
    if [ "$i" -le $IDLE ]; then
      # Opened, and never read.
      exec {fd}<>"f$name"
      idle[i]=$fd
    else
      cat "f$name" >"got$name" &
      readers+=($!)
    fi
  done
  flood "$N" >messages
  # Longer than a reader can be without a processor; each idle agent holds up the input for that time, once.
  amp-route --inbound 10 --patience 3s -v "${routes[@]}" <messages >answers 2>said &
  route=$!
  each=$((N / AGENTS))
  refused=$((IDLE * (each - 10)))
  peak=0
  while ! has_lines answers $refused; do
    rss=$(awk '/^VmHWM/ { print $2 }' /proc/$route/status 2>/dev/null) || break
    peak=${rss:-$peak}
    command sleep 0.05
  done
  # Flat: queues and buffers, however many messages come (these are far more).
  [ "$peak" -gt 0 ]
  [ "$peak" -le 20480 ]
  [ "$(stat -c %s messages)" -gt 20971520 ]
  # Those that read got all of theirs, in order, while the others stood still.
  for ((i = IDLE + 1; i <= AGENTS; i++)); do
    name=$(printf %03d "$i")
    wait_until 30 has_lines "got$name" $each
    grep "\"T-2026-$name\"" messages | cmp - "got$name"
  done
  # Every overflow is answered, and what was not refused is still there to be had.
  [ "$(jq -r .code answers | sort -u)" = buffer_full ]
  [ "$(wc -l <answers)" -eq $refused ]
  for ((i = 1; i <= IDLE; i++)); do
    name=$(printf %03d "$i")
    timeout 60 head -n 10 <&"${idle[i]}" >"got$name"
    [ "$(wc -l <"got$name")" -eq 10 ]
    exec {idle[i]}<&-
  done
  status=0
  wait $route || status=$?
  [ $status -eq 1 ]
  [ "$(grep -c ": $((each - 10)) refused (buffer_full)" said)" -eq $IDLE ]
  cat got* answers | jq -r '.ref_msg_id // .msg_id' | sort | cmp - <(jq -r .msg_id messages | sort)
}
