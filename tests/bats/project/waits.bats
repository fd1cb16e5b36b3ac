# Every wait of every tool ends on INT and on TERM, at once: for input, for room in an output, for
# the other end of a FIFO, for a lock, an inbox, a helper, a command, a person.
# plain

load ../lib
load ../messages

setup() {
  load ../agents
  cd "$BATS_TEST_TMPDIR" || return 1
  PIDS=() COMMANDS=() HOLDER=
  declare -gA LOOK=()
  mkfifo quiet
  exec 7<>quiet
}

teardown() {
  [ ${#PIDS[@]} -eq 0 ] || kill -KILL "${PIDS[@]}" 2>/dev/null || true
  [ -z "$HOLDER" ] || kill "$HOLDER" 2>/dev/null || true
  [ -z "${TMUX_SOCKET-}" ] || tmux -S "$TMUX_SOCKET" kill-server 2>/dev/null || true
}

# asleep PID: in the same system call as when it was looked at before.
asleep() {
  local now before=${LOOK[$1]-}
  now=$(cat "/proc/$1/syscall")
  LOOK[$1]=$now
  [ "$now" = "$before" ] && [[ $now != running* ]] && [[ $now != -1* ]]
}

# helper PID NAME: its child of that name that takes requests. A child that only checked something
# reads /dev/null and ends while we look; without an input it is not the one either.
helper() {
  local p name input
  for p in $(cat "/proc/$1/task/$1/children"); do
    name=$(cat "/proc/$p/comm" 2>/dev/null) || continue
    input=$(readlink "/proc/$p/fd/0" 2>/dev/null) || continue
    [ "$name" != "$2" ] || [ "$input" = /dev/null ] || echo "$p"
  done
}

# begin COMMAND...: in the background, hearing INT, with the silent FIFO as its input.
begin() {
  env --default-signal=INT "$@" <&7 7>&- >>out 2>>err &
  PIDS+=($!)
  COMMANDS+=("$*")
}

# each COMMAND...: begun twice, to be ended by INT and by TERM.
each() {
  begin "$@"
  begin "$@"
}

# ended: what was begun is asleep, and ends on its signal, by it or with 130.
ended() {
  local i sig status
  for i in "${!PIDS[@]}"; do
    wait_until 20 asleep "${PIDS[i]}" || {
      echo "not asleep: ${COMMANDS[i]}"
      return 1
    }
  done
  for i in "${!PIDS[@]}"; do
    sig=$((i % 2 ? 15 : 2))
    kill -$sig "${PIDS[i]}" || {
      echo "ended before: ${COMMANDS[i]}"
      tail -n 3 err
      return 1
    }
  done
  for i in "${!PIDS[@]}"; do
    sig=$((i % 2 ? 15 : 2))
    status=0
    wait_until 30 gone "${PIDS[i]}" && wait "${PIDS[i]}" || status=$?
    # What only follows has nothing else to say.
    [ "$status" -eq 130 ] || [ "$status" -eq $((128 + sig)) ] || [[ $status = 0 && ${COMMANDS[i]} = *--follow* ]] || {
      echo "signal $sig: status $status: ${COMMANDS[i]}"
      return 1
    }
  done
  PIDS=() COMMANDS=()
}

# hold FILE...: somebody else holds these locks.
hold() {
  "$AMP_BUILD/tests/fixture/hold-lock" "$@" <quiet >held 7>&- &
  HOLDER=$!
  wait_until 30 grep -q held held
}

@test "for input" {
  repo r
  amp-ack sweep --state s10
  each amp-validate
  each amp-validate quiet
  each amp-validate -j 2
  each amp-validate --extract
  each amp-validate --document
  each bash -c 'exec amp-validate -S quiet </dev/null'
  each amp-route -r 'type=* => file:/dev/null'
  each amp-ack track --state s1
  each amp-ack token producer operation
  begin agent-registry --state s2
  begin agent-registry --state s3
  begin task-dispatch coordinate --state s4
  begin task-dispatch coordinate --state s5
  begin task-dispatch run --state s6 --agent a -x true
  begin task-dispatch run --state s6 --agent b -x true
  begin task-dispatch review --state s6 --agent c -x true
  begin task-dispatch review --state s6 --agent d -x true
  each task-dispatch new --state s7 quiet
  begin hitl-prompt --state s8
  begin hitl-prompt --state s9
  each worktree-bind -C r
  each "$AMP_BUILD/libexec/amp/git-worker"
  each "$AMP_BUILD/libexec/amp/jq-worker" .
  each "$AMP_BUILD/libexec/amp/state-worker" --state s10
  each "$AMP_BUILD/libexec/amp/port-http" http://127.0.0.1:9/
  ended
}

@test "for the other end of a FIFO" {
  message task_dispatch >in
  mkfifo none
  each amp-validate -e none
  each amp-ack track --state s1 --open-timeout 60s --out none
  each amp-ack sweep --state s1 --open-timeout 60s --out none
  each task-dispatch coordinate --state s2 --open-timeout 60s --out none
  begin task-dispatch run --state s3 --agent a --open-timeout 60s --out none -x true
  begin task-dispatch run --state s3 --agent b --open-timeout 60s --out none -x true
  each hitl-prompt --state s4 --open-timeout 60s --out none
  each amp-route -i in --open-timeout 60s -r "type=* => fifo:none"
  ended
}

@test "for room in an output, and in standard error" {
  local i
  for i in $(seq 300); do message task_dispatch; done >in
  seq 4000 >bad
  amp-ack track --state s1 <in >/dev/null
  mkfifo full
  exec 8<>full
  agent-registry register bob --connector x:y --state s1 >registered
  amp-validate </dev/null >full # makes the pipe as wide as any of them does
  ends 1 dd if=/dev/zero bs=4k count=1000 oflag=nonblock of=full 2>/dev/null
  each bash -c 'exec amp-validate in >full'
  each bash -c 'exec amp-validate bad 2>full >/dev/null'
  each bash -c 'exec amp-route -i in -r "type=* => stdout" >full'
  each bash -c 'exec amp-route replay --state s1 >full'
  each bash -c 'exec amp-ack log --state s1 >full'
  each bash -c 'exec amp-ack log --follow --state s1 >full'
  each bash -c 'exec amp-ack status --open --json --state s1 >full'
  each bash -c 'exec agent-registry list --follow --state s1 >full'
  each bash -c 'exec amp-ack track --state s3 <in >full'
  each bash -c 'exec agent-registry --state s4 <in >full'
  ended
  exec 8>&-
}

@test "for a lock, also where the wait has no limit" {
  repo r
  message task_dispatch >in
  amp-ack track --state st <in >/dev/null
  hold st/log/main.lock st/log/next.lock
  each amp-ack track --state st --lock-timeout 60s
  each amp-ack status --state st --lock-timeout 60s
  each amp-ack sweep --state st --lock-timeout 60s
  begin amp-ack watch --as one --state st --lock-timeout 60s
  begin amp-ack watch --as two --state st --lock-timeout 60s
  each amp-ack log --state st --lock-timeout 60s
  each amp-ack dead list --state st --lock-timeout 60s
  each amp-ack repair --state st
  each amp-route -i in -r 'type=* => stdout' --state st --lock-timeout 60s
  begin amp-route inbox bob --state st --lock-timeout 60s
  begin amp-route inbox ann --state st --lock-timeout 60s
  each amp-route replay --state st --lock-timeout 60s
  each agent-registry --state st --lock-timeout 60s
  each agent-registry list --state st --lock-timeout 60s
  each task-dispatch coordinate --state st
  begin task-dispatch run --agent a --state st -x true
  begin task-dispatch run --agent b --state st -x true
  each task-dispatch verify main -C r --state st
  each hitl-prompt --state st
  each worktree-bind -C r --state st
  each worktree-bind -C r list --state st
  ended
  each amp-validate --state st in
  ended
}

@test "for an inbox, the log, the next deadline" {
  message task_dispatch >in
  amp-ack track --state st <in >/dev/null
  begin amp-ack watch --as one --state st
  begin amp-ack watch --as two --state st
  each amp-ack log --follow --state st
  each agent-registry list --follow --state st
  begin amp-route inbox bob --follow --state st
  begin amp-route inbox ann --follow --state st
  ended
  hold st/run/inbox.bob.lock
  each amp-route inbox bob --wait --state st
  ended
}

@test "for the lock of a spool" {
  message task_dispatch >in
  amp-route -i in -r "type=* => spool:sp"
  hold sp/.lock
  each amp-route -i in -r "type=* => spool:sp"
  ended
}

# stuck SIGNAL HELPER COMMAND...: started with its input first.$HELPER, its helper is stopped, second.$HELPER follows, and
# the signal ends it and the helper with it.
stuck() {
  local sig=$1 name=$2 pid peer status=0
  shift 2
  rm -f fed
  mkfifo fed
  env --default-signal=INT "$@" <fed >>out 2>>err 7>&- &
  pid=$!
  PIDS+=("$pid")
  exec 9>fed
  cat "first.$name" >&9
  wait_until 30 eval '[ -n "$(helper "$pid" "$name")" ]'
  peer=$(helper "$pid" "$name")
  PIDS+=("$peer")
  kill -STOP "$peer"
  cat "second.$name" >&9
  wait_until 30 asleep "$pid"
  kill -"$sig" "$pid"
  wait_until 30 gone "$pid" && wait "$pid" || status=$?
  exec 9>&-
  [ "$status" -gt 128 ] || {
    echo "$sig: status $status: $*"
    return 1
  }
  wait_until 30 gone "$peer"
  PIDS=()
}

# control AGENT BRANCH NUMBER: the line that binds the agent.
control() {
  local payload="{\"operation\":\"BIND\",\"agent_id\":\"$1\",\"branch\":\"$2\"}"
  printf '{"message_id":"6ae58b74-4e19-4b2f-9e7a-1a1a1fd2d%03d","producer_id":"scheduler","correlation_id":"6ae58b74-4e19-4b2f-9e7a-1a1a1fd2d999","sequence_number":1,"retry_count":0,"message_type":"WORKTREE_CONTROL","content_type":"application/json","content_length":%d,"timestamp":"2026-01-01T00:00:00Z","payload":%s}\n' \
    "$3" "${#payload}" "$payload"
}

@test "for a helper, which ends with its tool, also when that is killed" {
  local sig number=1
  repo r
  message task_dispatch >first.jq-worker
  cp first.jq-worker second.jq-worker
  cp first.jq-worker first.state-worker
  cp first.jq-worker second.state-worker
  cp first.jq-worker first.port-http
  cp first.jq-worker second.port-http
  control bob task/x 1 >second.git-worker
  amp-ack sweep --state st
  for sig in INT TERM KILL; do
    stuck $sig jq-worker amp-route -r 'jq:.type == "x" => stdout' -r 'type=* => stdout'
    stuck $sig state-worker amp-validate --state st
    stuck $sig port-http amp-route -r 'type=* => http://127.0.0.1:9/'
    # The helper starts with the first line that needs git.
    control "ann-${sig,,}" "task/${sig,,}" "$((++number))" >first.git-worker
    stuck $sig git-worker worktree-bind -C r
  done
}

@test "for a command" {
  workplace
  dispatch >work
  message task_dispatch >in
  each amp-route -i in -r 'type=* => exec-each:sleep 600'
  each amp-route -i in -r 'type=* => command:sleep 600'
  amp-route -i in -r 'type=* => inbox:bob' --state st
  begin amp-route inbox bob --state st -x sleep 600
  begin task-dispatch run --state s1 -i work --agent a -x sleep 600
  wait_until 30 eval '[ -n "$(pgrep -P "${PIDS[5]}" -x sleep)" ]'
  ended
}

@test "no wait for an output's reader once the input has ended with nothing" {
  local i
  mkfifo back in{1..4}
  timeout 60 task-dispatch run --state A --in in1 --out back --exec true &
  timeout 60 task-dispatch review --state B --in in2 --out back --exec true &
  timeout 60 hitl-prompt --state C --in in3 --out back &
  timeout 60 amp-ack show --in in4 --out back &
  PIDS=($(jobs -p))
  for i in {1..4}; do
    # Opening waits for the reader.
    timeout 60 sh -c ': >"$1"' - "in$i"
  done
  for i in "${PIDS[@]}"; do
    wait "$i"
  done
}
