#!/usr/bin/env bats
# Task files and people: notifications by command, by port and as questions, and who may speak when signatures count.
# walls

load ../lib
load ../aof

setup() {
  cd "$BATS_TEST_TMPDIR" || return
  D=$PWD/data
  mkdir data
  T=TASK-2026-02-09
}

# told FILE: the kinds and tasks of the notifications in it.
told() { grep -o '"notify":"[a-z]*","taskId":"[A-Z0-9-]*"' "$1" | sed 's/"notify":"\([a-z]*\)","taskId":"'$T-'\(.*\)"/\1 \2/' | tr '\n' ' '; }
waiting() { find "$D/.amp/notices" -type f 2>/dev/null | wc -l; }

@test "notifications are repeated until they are delivered, in their order, also those of a router that was killed" {
  local n
  printf '#!/bin/sh\n[ ! -e fails ] || exit 3\ncat >>told\n' >notify
  chmod +x notify
  for n in 001 002 003 004 005; do task in-progress $T-$n "lease: {agent: ann}"; done
  touch fails
  { report $T-001 ann done; report $T-002 ann blocked; } >in
  run -0 --separate-stderr aof --notify ./notify <in
  [[ $stderr == *"warning: notification {\"notify\":\"done\",\"taskId\":\"$T-001\""*"ended with status 3"* ]]
  [ "$(waiting)" -eq 2 ]
  # The next change delivers all of them; a command without --notify leaves them.
  aof_poll >out
  [ "$(waiting)" -eq 2 ]
  rm fails
  update $T-003 ann '"status":"review","notes":"look"' | aof --notify ./notify >out
  [ "$(told told)" = "done 001 blocked 002 review 003 " ]
  grep -q '"notify":"review","taskId":"'$T-003'","agent":"ann","reason":"look","timestamp":"20' told
  [ "$(waiting)" -eq 0 ]
  amp-validate -S "$AMP_TOP/schemas/records/task_notice.json" --formats told | cmp - told
  # Killed in the notification: the task has its status, and the next poll repeats it.
  printf '#!/bin/sh\ncat >/dev/null\nkill -9 $PPID\n' >dies
  chmod +x dies
  report $T-004 ann partial >in
  run -137 aof --notify ./dies <in
  [ "$(at $T-004) $(waiting)" = "review 1" ]
  run -0 aof_poll --notify ./notify
  [ "$(told told)" = "done 001 blocked 002 review 003 review 004 " ]
  # The text is words, as for hitl-prompt: options and quotes, no shell.
  printf '#!/bin/sh\ncat >/dev/null\nprintf "%%s\\n" "$@" >words\n' >words.sh
  chmod +x words.sh
  task in-progress $T-006 "lease: {agent: ann}"
  report $T-006 ann partial | aof --notify "./words.sh -c 'a  b' \$HOME" >out
  [ "$(cat words)" = $'-c\na  b\n$HOME' ]
  run -64 aof --notify "./words.sh 'open" </dev/null
  # A command that hangs has a time limit; a signal ends the wait, and the notification is not lost.
  printf '#!/bin/sh\necho $$ >hangs.pid\nexec sleep 100\n' >hangs
  chmod +x hangs
  report $T-005 ann partial >in
  run -0 --separate-stderr aof --notify ./hangs --notify-timeout 300ms <in
  [[ $stderr == *"notification {"* ]]
  rm hangs.pid
  aof-board poll --data-dir "$D" --notify ./hangs >out 2>err &
  wait_until 10 test -s hangs.pid
  kill -TERM $!
  wait $! || n=$?
  [ "$n" -eq 130 ]
  [ "$(waiting)" -eq 1 ]
}

@test "notifications by port: a file, a spool; amp.json has the port; one that fails is tried again" {
  task in-progress $T-001 "lease: {agent: ann}"
  task in-progress $T-002 "lease: {agent: ann}"
  report $T-001 ann partial | aof --notify-port "file:$PWD/told" >out
  [ "$(told told)" = "review 001 " ]
  echo '{"aof":{"notify_port":"spool:'"$PWD"'/spool"}}' >amp.json
  update $T-002 ann '"status":"blocked","blockers":["key"]' | aof -c amp.json >out
  cat spool/new/* >spooled
  [ "$(told spooled)" = "blocked 002 " ]
  run -64 aof --notify-port nowhere: </dev/null
  # No server yet.
  task in-progress $T-003 "lease: {agent: ann}"
  report $T-003 ann partial >in
  run -0 --separate-stderr aof --notify-port http://127.0.0.1:9/ <in
  [[ $stderr == *"warning: notification"* ]]
  [ "$(waiting)" -eq 1 ]
  aof_poll --notify-port "file:$PWD/told" >out
  [ "$(told told)" = "review 001 review 003 " ]
}

@test "questions: a person answers through hitl-prompt, and the answer moves the task" {
  task in-progress $T-001 "lease: {agent: ann}"
  task in-progress $T-002 "lease: {agent: ann}"
  beat $T-002 2026-01-01T00:05:00.000Z
  result $T-002 blocked
  mkdir -p amp
  echo '{"hitl":{"allow_operator":true}}' >amp/amp.json
  export XDG_CONFIG_HOME=$PWD AMP_IDENTITY=off
  # One is asked because of a message, the other because of the poll that follows it.
  report $T-001 ann needs_review | aof --ask >asked
  [ "$(grep -c '^{"protocol":"aof".*"type":"status.update"' asked)" -eq 2 ]
  grep '^{"protocol"' asked | amp-validate -p aof | cmp - <(grep '^{"protocol"' asked)
  printf '{"task_id":"%s","protocol":"aof","decision":"%s","note":"%s"}\n' $T-001 "done" fine $T-002 ready '' >said
  hitl-prompt -s state --operator ada --answer said <asked >answers 2>err || { cat err; false; }
  aof --ask --stop-at-review <answers >after
  [ "$(at $T-001) $(at $T-002)" = "done ready" ]
  grep -q '"from":"review","to":"done","reason":"done by ada: fine"' after
  # Both are settled: their messages say so, and asking again is not needed.
  [ "$(grep -c '^{"protocol":"aof".*"status":"\(done\|ready\)"' after)" -eq 2 ]
  # A question that is settled by another way is closed.
  task in-progress $T-003 "lease: {agent: ann}"
  report $T-003 ann needs_review | aof --ask >asked
  update $T-003 operator/bob '"status":"done"' | aof --ask >>asked
  hitl-prompt -s state2 --operator ada --answer /dev/null <asked >answers 2>err
  [ "$(hitl-prompt list -s state2 --json 2>/dev/null | wc -l)" -eq 0 ]
}

@test "signatures: a message counts only by a key that may speak for its sender; an agent's own pipe needs none" {
  local k
  need_tool amp-sign
  export AMP_IDENTITY=local
  for k in ann bob; do
    amp-sign keygen $k >/dev/null
    amp-sign trust add --allowed-signers signers $k $k.pub
  done
  amp-sign keygen stranger >/dev/null
  task in-progress $T-001 "lease: {agent: ann}"
  task in-progress $T-002 "lease: {agent: bob}"
  signed() { aof-board --data-dir "$D" --allowed-signers signers --identity all "$@"; }
  report $T-001 ann done >ann.said
  report $T-002 ann done >other.said
  {
    cat ann.said                                    # unsigned
    amp-sign --key stranger <ann.said               # an unknown key
    amp-sign --key bob <ann.said                    # the key of another agent
    amp-sign --key ann <ann.said | sed 's/"n"}/"m"}/' # changed
    amp-sign --key ann <other.said                  # its sender's key, but the lease is bob's
    update $T-001 ann '"status":"blocked"'          # unsigned as well
  } >in
  run -0 signed <in
  [ "$(grep -o '"reason":"[a-z_]*"' <<<"$output" | tr -d '\n')" = \
    '"reason":"unsigned""reason":"unknown_key""reason":"bad_sender""reason":"bad_signature""reason":"unauthorized_agent""reason":"unsigned"' ]
  [ "$(at $T-001) $(at $T-002)" = "in-progress in-progress" ]
  amp-sign --key ann <ann.said | signed >out
  [ "$(at $T-001)" = "done" ]
  # Unsigned messages count from standard input, but not from a FIFO with a name.
  report $T-002 bob partial >in
  mkfifo fifo
  cat in >fifo &
  aof-board --data-dir "$D" --allowed-signers signers <fifo >out
  grep -q '"reason":"unsigned"' out
  aof-board --data-dir "$D" --allowed-signers signers <in >out
  [ "$(at $T-002)" = review ]
  # Without keys there is nothing to check.
  run -64 aof-board --data-dir "$D" --identity all <in
  # The agent of an executor is known by its pipe.
  task ready $T-003 "routing: {agent: ann}"
  report $T-003 ann partial >said
  run -0 aof-board poll --data-dir "$D" --allowed-signers signers --identity all --unconfined --exec cat "$PWD/said"
  [ "$(at $T-003)" = review ]
  # With a state directory the router's own messages are signed by its key.
  task in-progress $T-004 "lease: {agent: ann}"
  request $T-005 $T-004 ann bob | aof-board -s state --data-dir "$D" >out
  grep '"type":"handoff.rejected"' out | amp-sign verify -s state --unwrap | grep -q '"fromAgent":"aof-board"'
}
