#!/usr/bin/env bats
# Task files under kills, full disks, other file systems, several routers and people with mv and an editor: no task is
# lost or in two folders, no event is missing or doubled, no file is half-written.
# AOF_ROUNDS=1000 for more kills (default: 6), AOF_TASKS=100000 for a full folder (default: 300). # slow

load lib
load aof

setup_file() {
  export T=TASK-2026-02-09 shim=$AMP_BUILD/tests/fault/faildisk.so
  [ -e "$shim" ]
  cd "$BATS_FILE_TMPDIR" || return
  D=$PWD/data
  task in-progress $T-001 "lease:" "  agent: ann"
  mkdir -p "$D/tasks/in-progress/$T-001/outputs/deep" "$D/runs/$T-001"
  echo summary >"$D/tasks/in-progress/$T-001/outputs/summary.md"
  echo more >"$D/tasks/in-progress/$T-001/outputs/deep/file"
  printf '{"taskId":"%s","agentId":"ann","startedAt":"2026-02-09T20:00:00.000Z","status":"running"}\n' $T-001 >"$D/runs/$T-001/run.json"
  task in-progress $T-002 "lease: {agent: ann}"
  task ready $T-003
  aof </dev/null
  { report $T-001 ann done
    update $T-002 ann '"progress":"half"'
    request $T-003 $T-002 ann bob
    message handoff.rejected $T-003 bob '"accepted":false,"reason":"no time"'; } >in
  cp -a data before
  aof <in >out
  state >after
  events_of >after.events
  cp -a before data.count
  AMP_FAULT_COUNT=$PWD/steps AMP_FAULT_ROOT=$PWD/data.count AMP_FAULT=step:0:KILL LD_PRELOAD=$shim \
    task-dispatch aof --data-dir "$PWD/data.count" <in >/dev/null
  STEPS=$(cat steps)
  export STEPS
  [ "$STEPS" -gt 60 ]
}

setup() {
  native "a preloaded shim must come first"
  cd "$BATS_FILE_TMPDIR" || return
  D=$PWD/data
}

# All files below tasks/ and runs/, and their contents without times.
state() { (cd "$D" && find tasks runs -type f | sort | xargs grep -H '' | sed -E 's/20[0-9-]{8}T[0-9:.]+Z/TIME/g'); }
# The log without times; polls and notes about faults are not of the messages.
events_of() { grep -v -e scheduler.poll "$D/events.ndjson" | sed -E 's/"eventId":[0-9]+/N/; s/20[0-9-]{8}T[0-9:.]+Z/TIME/g'; }

# After a fault: the next command completes what was begun; the rest of the messages is sent again.
finish() {
  local done f n
  aof_poll >/dev/null
  [ ! -e "$D/.amp/change.ndjson" ]
  for n in 1 2 3; do
    f=("$D"/tasks/*/$T-00$n.md)
    [ ${#f[@]} -eq 1 ] && [ -e "${f[0]}" ] || fail "$T-00$n: ${f[*]}"
  done
  done=$(grep -c protocol.message.received "$D/events.ndjson" || true)
  tail -n +$((done + 1)) in | aof >/dev/null
  state | diff after -
  events_of | diff after.events -
  # Numbers without gaps.
  grep -o '"eventId":[0-9]*' "$D/events.ndjson" | cut -d: -f2 | diff - <(seq "$(wc -l <"$D/events.ndjson")")
}

# fault STEP HOW: the router meets a fault at a step.
fault() {
  local status=0
  rm -rf data
  cp -a before data
  AMP_FAULT_ROOT=$D AMP_FAULT=step:$1:$2 LD_PRELOAD=$shim task-dispatch aof --data-dir "$D" <in >out 2>err || status=$?
  echo "step $1 $2: status $status"
  case $2 in
  KILL) [ $status -eq 137 ] ;;
  *) [[ $status == @(0|73|74|75) ]] ;;
  esac
}

@test "kill -9 at every step of four messages, and of the recovery" {
  local rounds=${AOF_ROUNDS:-6} i k
  for ((i = 0; i < rounds; i++)); do
    # With few rounds they are spread over the steps, from another one on each day.
    k=$(((i * STEPS / (rounds < STEPS ? rounds : STEPS) + ${AOF_FROM:-$(date +%j | sed 's/^0*//')}) % STEPS + 1))
    fault $k KILL
    AMP_FAULT_ROOT=$D AMP_FAULT=step:$((i % 13 + 1)):KILL LD_PRELOAD=$shim task-dispatch aof poll --data-dir "$D" >/dev/null 2>&1 || [ $? -eq 137 ]
    finish
  done
}

@test "a full disk, and one that fails: the next command completes the change" {
  local k rounds=${AOF_ROUNDS:-3}
  for ((k = 1; k <= STEPS; k += STEPS / (rounds < STEPS ? rounds : STEPS))); do
    fault $k ENOSPC
    finish
    [ "$rounds" -lt 100 ] || { fault $k EIO && finish; }
  done
  # Half of a line is in the log.
  rm -rf data
  cp -a before data
  AMP_FAULT_MATCH=events AMP_FAULT_ROOT=$D AMP_FAULT=write:2:TORN LD_PRELOAD=$shim task-dispatch aof --data-dir "$D" <in >out || [ $? -eq 137 ]
  [ -n "$(tail -c 1 "$D/events.ndjson")" ]
  finish
}

@test "a folder on another file system: the task and its folder are copied, and removed after that" {
  rm -rf data
  cp -a before data
  ln -s elsewhere "$D/tasks/in-progress/$T-001/outputs/link"
  chmod 640 "$D/tasks/in-progress/$T-001/outputs/deep/file"
  # Both renames of the move fail as between file systems.
  sed -n 1p in >one
  for n in 1 2 4; do
    rm -rf other
    cp -a data other
    AMP_FAULT_MATCH=tasks/done AMP_FAULT_ROOT=$PWD/other AMP_FAULT=rename:$n:EXDEV LD_PRELOAD=$shim \
      task-dispatch aof --data-dir "$PWD/other" <one >out
    (D=$PWD/other && [ "$(at $T-001)" = "done" ])
    [ "$(cat other/tasks/done/$T-001/outputs/deep/file)" = more ]
    [ "$(stat -c %a other/tasks/done/$T-001/outputs/deep/file)" = 640 ]
    [ "$(readlink other/tasks/done/$T-001/outputs/link)" = elsewhere ]
    [ -z "$(ls -A other/tasks/in-progress | grep $T-001)" ]
  done
}

@test "a real mount as a folder" {
  [ "$(id -u)" -eq 0 ] || skip "mounts need root"
  rm -rf data
  cp -a before data
  unshare -m true 2>/dev/null || skip "no mount namespaces"
  unshare -m bash -c 'mount -t tmpfs tmpfs "$0/tasks/done" && task-dispatch aof --data-dir "$0" <in >out &&
    ls -A "$0/tasks/done" "$0/tasks/in-progress" && cat "$0"/tasks/done/*/outputs/deep/file' "$D" >seen
  [ "$(tr '\n' ' ' <seen)" = "$D/tasks/done: $T-001 $T-001.md  $D/tasks/in-progress: $T-002.md more " ]
}

@test "a folder that ignores case: a task with the same letters is not taken for another" {
  [ "$(id -u)" -eq 0 ] || skip "mounts need root"
  rm -rf data
  mkdir -p data/tasks
  unshare -m bash -c 'mount -t tmpfs -o casefold tmpfs "$0"' "$D/tasks" 2>/dev/null || skip "no tmpfs that ignores case"
  unshare -m bash -c 'mount -t tmpfs -o casefold tmpfs "$0/tasks" && chattr +F "$0/tasks" && mkdir "$0/tasks/in-progress" &&
    printf -- "---\nid: TASK-2026-02-09-ABCDEFGH\n---\n" >"$0/tasks/in-progress/TASK-2026-02-09-ABCDEFGH.md" &&
    task-dispatch aof --data-dir "$0"' "$D" >out < <(update $T-abcdefgh ann '"status":"review"')
  grep -q '"reason":"id_mismatch"' out
}

@test "a person moves or edits a task while a change is under way: the person's work stays" {
  local k n
  # Killed after the commit and before the move of the first task.
  for ((k = 1; k < STEPS; k++)); do
    fault $k KILL >/dev/null
    [ ! -s "$D/.amp/change.ndjson" ] || [ ! -e "$D/tasks/in-progress/$T-001.md" ] || break
  done
  [ -s "$D/.amp/change.ndjson" ]
  cp -a data committed
  mv "$D/tasks/in-progress/$T-001.md" "$D/tasks/blocked/"
  aof_poll >out
  [ "$(at $T-001)" = blocked ]
  grep -q '"type":"system.drift-detected".*"reason":"task_moved"' out
  [ "$(events task.transitioned $T-001) $(events task.completed $T-001)" = "0 0" ]
  rm -rf data
  mv committed data
  echo "a line of a person" >>"$D/tasks/in-progress/$T-001.md"
  aof_poll >out
  [ "$(at $T-001)" = "done" ]
  grep -qx "a line of a person" "$D/tasks/done/$T-001.md"
}

@test "two routers and a person at once: every message counts once, and every task is somewhere once" {
  local n
  rm -rf data
  mkdir data
  for n in $(seq 101 112); do
    task in-progress $T-$n "lease: {agent: ann}"
  done
  aof </dev/null
  for n in $(seq 101 112); do report $T-$n ann done; done >one
  for n in $(seq 101 112); do report $T-$n ann done; done | tac >two
  rm -f ended
  { aof <one >out1 && touch ended; } &
  aof <two >out2 &
  until [ -e ended ]; do
    for n in 103 107 111; do
      mv -n "$D/tasks/done/$T-$n.md" "$D/tasks/review/$T-$n.md" 2>/dev/null || true
      mv -n "$D/tasks/review/$T-$n.md" "$D/tasks/done/$T-$n.md" 2>/dev/null || true
    done
  done
  wait
  for n in $(seq 101 112); do
    [ "$(at $T-$n | wc -w)" -eq 1 ]
    [[ $n == @(103|107|111) ]] || [ "$(events task.completed $T-$n)" -eq 1 ]
  done
  [ "$(grep -c protocol.message.received "$D/events.ndjson")" -eq 24 ]
  cat out1 out2 | sort | cmp - <(sort "$D/events.ndjson")
  grep -o '"eventId":[0-9]*' "$D/events.ndjson" | cut -d: -f2 | diff - <(seq "$(wc -l <"$D/events.ndjson")")
}

@test "a poll of many tasks: 10 us of processor time for each" {
  local n=${AOF_TASKS:-300} i id
  rm -rf data
  mkdir -p data/tasks/in-progress data/runs
  for ((i = 0; i < n; i++)); do
    printf -v id 'TASK-2026-02-09-%08d' $i
    printf -- '---\nid: %s\n---\n' $id >data/tasks/in-progress/$id.md
    echo data/runs/$id
  done | xargs mkdir
  for ((i = 0; i < n; i++)); do
    printf -v id 'TASK-2026-02-09-%08d' $i
    echo '{"taskId":"'$id'","agentId":"ann","lastHeartbeat":"2026-01-01T00:00:00.000Z","beatCount":1,"expiresAt":"2999-01-01T00:00:00.000Z"}' >data/runs/$id/run_heartbeat.json
  done
  TIMEFORMAT='%U %S'
  { time aof_poll >out; } 2>took
  grep -q "\"inProgress\":$n,\"stale\":0" out
  awk -v n="$n" '{ if ($1 + $2 > 0.1 + n * 0.00001) { print $1 + $2 " s for " n; exit 1 } }' took
}
