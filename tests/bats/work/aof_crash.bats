#!/usr/bin/env bats
# Task files under kills, full disks, other file systems, several routers and people with mv and an editor: no task is
# lost or in two folders, no event is missing or doubled, no file is half-written.
# AOF_ROUNDS=1000 for more kills (default: 6), AOF_TASKS=100000 for a full folder (default: 300). # slow
# walls

load ../lib
load ../aof

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
    aof-board --data-dir "$PWD/data.count" <in >/dev/null
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
events_of() { grep -v -e scheduler.poll -e system.recovery "$D/events.ndjson" | sed -E 's/"eventId":[0-9]+/N/; s/20[0-9-]{8}T[0-9:.]+Z/TIME/g'; }

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
  numbers_follow
}

# Each line of the log has the next number: none twice, no gap.
numbers_follow() { grep -o '^{"eventId":[0-9]*' "$D/events.ndjson" | cut -d: -f2 | diff - <(seq "$(wc -l <"$D/events.ndjson")"); }

# fault STEP HOW: the router meets a fault at a step.
fault() {
  local status=0
  rm -rf data
  cp -a before data
  AMP_FAULT_ROOT=$D AMP_FAULT=step:$1:$2 LD_PRELOAD=$shim aof-board --data-dir "$D" <in >out 2>err || status=$?
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
    AMP_FAULT_ROOT=$D AMP_FAULT=step:$((i % 13 + 1)):KILL LD_PRELOAD=$shim aof-board poll --data-dir "$D" >/dev/null 2>&1 || [ $? -eq 137 ]
    finish
  done
}

# chain TASK: the transitions of the log lead from ready to where the task is, each from where the last one ended.
chain() {
  local at=ready from to
  while read -r from to; do
    [ "$from" = "$at" ] || fail "$1: from $from, but it was in $at"
    at=$to
  done < <(sed -n 's/.*"type":"task.transitioned".*"taskId":"'"$1"'".*"from":"\([a-z-]*\)","to":"\([a-z-]*\)".*/\1 \2/p' "$D/events.ndjson")
  [ "$(at "$1")" = "$at" ] || fail "$1: the log ends in $at, the task is in $(at "$1")"
}

@test "kill -9 at every step of dispatches, of their agents and of notifications" {
  local rounds=${AOF_ROUNDS:-4} steps i k n tries
  printf '#!/bin/sh\ncat >>"%s/told"\n' "$PWD" >notify
  cat >agent <<'SH'
#!/bin/sh
cat >outputs/input
echo "$AMP_TASK_ID" >outputs/summary.md
printf '{"protocol":"aof","version":1,"type":"completion.report","taskId":"%s","fromAgent":"ann","toAgent":"aof","sentAt":"2026-02-09T21:00:00.000Z","payload":{"outcome":"partial","summaryRef":"outputs/summary.md","tests":{"total":1,"passed":1,"failed":0},"notes":"n"}}\n' "$AMP_TASK_ID"
SH
  chmod +x notify agent
  rm -rf ready
  D=$PWD/ready
  for n in 001 002; do task ready $T-$n "routing: {agent: ann}"; done
  D=$PWD/data
  executor() { aof-board poll --data-dir "$D" --unconfined --heartbeat 300ms --notify ./notify --exec ./agent; }
  rm -rf data told
  cp -a ready data
  AMP_FAULT_COUNT=$PWD/steps AMP_FAULT_ROOT=$D AMP_FAULT=step:0:KILL LD_PRELOAD=$shim executor >out 2>err
  steps=$(cat steps)
  [ "$steps" -gt 100 ]
  for ((i = 0; i < rounds; i++)); do
    k=$(((i * steps / (rounds < steps ? rounds : steps) + ${AOF_FROM:-$(date +%j | sed 's/^0*//')}) % steps + 1))
    rm -rf data told
    cp -a ready data
    AMP_FAULT_ROOT=$D AMP_FAULT=step:$k:KILL LD_PRELOAD=$shim executor >out 2>err || [ $? -eq 137 ] || fail "step $k: $(cat err)"
    # The heartbeats of what was killed expire.
    for ((tries = 0; tries < 20; tries++)); do
      executor >out 2>err
      [ "$(at $T-001) $(at $T-002)" != "review review" ] || break
      sleep 0.1
    done
    for n in 001 002; do
      [ "$(at $T-$n)" = review ] || fail "step $k: $T-$n is in $(at $T-$n)"
      chain $T-$n
      [ "$(cat "$D/tasks/review/$T-$n/outputs/summary.md")" = $T-$n ]
      grep -q "\"notify\":\"review\",\"taskId\":\"$T-$n\"" told || fail "step $k: no notification of $T-$n"
      [ "$(events dispatch.matched $T-$n)" -eq "$(events lease.acquired $T-$n)" ]
      [ "$(events lease.acquired $T-$n)" -eq "$(($(events lease.expired $T-$n) + $(events lease.released $T-$n)))" ]
    done
    [ -z "$(ls "$D/.amp/notices")" ]
    [ ! -e "$D/.amp/change.ndjson" ]
    grep -o '"eventId":[0-9]*' "$D/events.ndjson" | cut -d: -f2 | diff - <(seq "$(wc -l <"$D/events.ndjson")")
  done
  # Killed after a question was written and before that is known: it is written again, with the same time.
  rm -rf data
  task in-progress $T-004 "lease: {agent: ann}"
  report $T-004 ann needs_review >ask
  run -137 env AMP_FAULT_MATCH=notices AMP_FAULT_ROOT="$D" AMP_FAULT=unlink:2:KILL LD_PRELOAD="$shim" \
    aof-board --data-dir "$D" --ask <ask
  [ "$(at $T-004)" = review ]
  asked=$(grep '^{"protocol":"aof".*"status":"review"' <<<"$output")
  run -0 aof_poll --ask
  [ "$(grep '^{"protocol"' <<<"$output")" = "$asked" ]
  [ -z "$(ls "$D/.amp/notices")" ]
}

@test "a full disk, and one that fails: the next command completes the change" {
  local k status rounds=${AOF_ROUNDS:-3}
  for ((k = 1; k <= STEPS; k += STEPS / (rounds < STEPS ? rounds : STEPS))); do
    fault $k ENOSPC
    finish
    [ "$rounds" -lt 100 ] || { fault $k EIO && finish; }
  done
  # A small disk that is really full: some pages are free, then a person makes room.
  if [ "$(id -u)" -eq 0 ] && unshare -m true 2>/dev/null; then
    cat >full.sh <<'SH'
    mkdir disk && mount -t tmpfs -o size=512k tmpfs disk && cp -a before/. disk/ || exit 9
    free=$(stat -f -c %f disk)
    head -c $(((free - $1) * 4096)) /dev/zero >disk/filler
    aof-board --data-dir disk <in >out 2>err || status=$?
    rm disk/filler && cp -a disk data && umount disk && rmdir disk || exit 9
    exit ${status-0}
SH
    for ((k = 0; k < 26; k += rounds < 26 ? 26 / rounds : 1)); do
      rm -rf data
      status=0
      unshare -m bash full.sh $k || status=$?
      echo "$k pages: status $status"
      [[ $status == @(0|73|74|75) ]]
      finish
    done
  fi
  # Half of a line is in the log.
  rm -rf data
  cp -a before data
  AMP_FAULT_MATCH=events AMP_FAULT_ROOT=$D AMP_FAULT=write:2:TORN LD_PRELOAD=$shim aof-board --data-dir "$D" <in >out || [ $? -eq 137 ]
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
      aof-board --data-dir "$PWD/other" <one >out
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
  unshare -m bash -c 'mount -t tmpfs tmpfs "$0/tasks/done" && aof-board --data-dir "$0" <in >out &&
    ls -A "$0/tasks/done" "$0/tasks/in-progress" && cat "$0"/tasks/done/*/outputs/deep/file' "$D" >seen
  [ "$(tr '\n' ' ' <seen)" = "$D/tasks/done: $T-001 $T-001.md  $D/tasks/in-progress: $T-002 $T-002.md more " ]
  # A folder of this name on the other file system, from elsewhere: neither is lost.
  rm -rf data
  cp -a before data
  unshare -m bash -c 'mount -t tmpfs tmpfs "$0/tasks/done" && mkdir "$0/tasks/done/$1" && echo other >"$0/tasks/done/$1/file" &&
    aof-board --data-dir "$0" <in >out && cat "$0/tasks/done/$1/file"' "$D" $T-001 >seen
  [ "$(cat seen "$D/tasks/in-progress/$T-001/outputs/summary.md" | tr '\n' ' ')" = "other summary " ]
  grep -q '"type":"protocol.message.warning".*"reason":"folder_differs"' out
  # A FIFO is made again; a folder with a device stays where it is, which is logged.
  rm -rf data
  cp -a before data
  mkfifo "$D/tasks/in-progress/$T-001/outputs/fifo"
  unshare -m bash -c 'mount -t tmpfs tmpfs "$0/tasks/done" && aof-board --data-dir "$0" <in >out && test -p "$0"/tasks/done/*/outputs/fifo' "$D"
  rm -rf data
  cp -a before data
  mknod "$D/tasks/in-progress/$T-001/outputs/s" c 1 3 || skip "no devices can be made"
  unshare -m bash -c 'mount -t tmpfs tmpfs "$0/tasks/done" && aof-board --data-dir "$0" <in >out && ls -A "$0/tasks/done"' "$D" >seen
  [ "$(cat seen)" = "$T-001.md" ]
  [ -c "$D/tasks/in-progress/$T-001/outputs/s" ]
  grep -q '"type":"protocol.message.warning".*"reason":"special_file"' out
}

@test "kill -9 at every step of a move to another file system, and of its completion" {
  [ "$(id -u)" -eq 0 ] || skip "mounts need root"
  unshare -m true 2>/dev/null || skip "no mount namespaces"
  sed -n 1p in >one
  cat >rounds.sh <<'SH'
  set -eu
  message=$1 shim=$2 rounds=$3 D=$PWD/data k=0 steps=0
  router() { aof-board "$@" --data-dir "$D"; }
  # killed STEP [VERB]: 137 at that step; 0 if it ends before.
  killed() {
    local status=0
    AMP_FAULT_ROOT=$D AMP_FAULT=step:$1:KILL LD_PRELOAD=$shim router "${@:2}" >/dev/null 2>&1 || status=$?
    echo $status
  }
  fresh() {
    ! mountpoint -q "$D/tasks/done" || umount "$D/tasks/done"
    rm -rf "$D"
    cp -a before "$D"
    mount -t tmpfs tmpfs "$D/tasks/done"
  }
  fresh
  AMP_FAULT_COUNT=$PWD/steps AMP_FAULT_ROOT=$D AMP_FAULT=step:0:KILL LD_PRELOAD=$shim router <"$message" >/dev/null
  steps=$(cat steps)
  for ((i = 0; i < rounds; i++)); do
    k=$(((i * steps / (rounds < steps ? rounds : steps) + 7) % steps + 1))
    fresh
    [ "$(killed $k <"$message")" = 137 ]
    [[ "$(killed $((i % 9 + 1)) poll)" = @(0|137) ]]
    router poll >/dev/null
    [ -e "$D/tasks/done/TASK-2026-02-09-001.md" ] || router <"$message" >/dev/null
    ls -A "$D/tasks/done" "$D/tasks/in-progress" | grep -e 001 -e '^[.]' | tr '\n' ' '
    cat "$D/tasks/done/TASK-2026-02-09-001/outputs/deep/file" "$D/tasks/done/TASK-2026-02-09-001/outputs/summary.md" | tr '\n' ' '
    echo "$(grep -c '"type":"task.completed"' "$D/events.ndjson") $(grep -c '"type":"task.transitioned"' "$D/events.ndjson")"
  done
SH
  run -0 unshare -m bash rounds.sh one "$shim" "${AOF_ROUNDS:-4}"
  printf "%s\n" "${lines[@]}" | sort | uniq -c | head -n 20
  [ "$(printf '%s\n' "${lines[@]}" | grep -v Killed | sort -u)" = "$T-001 $T-001.md more summary 1 2" ]
  rm -rf data
}

@test "folders that ignore case: a task with the same letters is not taken for another, and not moved onto it" {
  local fold=$AMP_BUILD/tests/fault/failcase.so up=TASK-2026-02-09-ABCDEFGH low=TASK-2026-02-09-abcdefgh
  rm -rf data
  mkdir data
  folded() { FAIL_CASE_ROOT=$D LD_PRELOAD=$fold aof-board --data-dir "$D"; }
  task in-progress $up "routing: {agent: ann}"
  task ready $T-001
  # The front matter need not have an id.
  sed -i '/^id:/d' "$D/tasks/in-progress/$up.md"
  update $low ann '"status":"blocked"' | folded >out
  grep -q '"reason":"task_not_found"' out
  [ "$(at $up)" = in-progress ]
  update $up ann '"status":"review"' | folded >out
  [ "$(at $up)" = review ]
  # Both exist, in two folders: each is found by its own name.
  task blocked $low "routing: {agent: bob}"
  { update $low bob '"progress":"low"'; update $up ann '"progress":"up"'; } | folded >out
  run -1 grep rejected out
  grep -q 'Progress: low' "$D/tasks/blocked/$low.md"
  grep -q 'Progress: up' "$D/tasks/review/$up.md"
  # One is not moved onto the other, also if their texts are the same.
  cp "$D/tasks/blocked/$low.md" "$D/tasks/review/$up.md"
  sed -i '/^id:/d' "$D/tasks/review/$up.md" "$D/tasks/blocked/$low.md"
  update $up bob '"status":"blocked"' | folded >out
  grep -q '"type":"system.drift-detected".*"reason":"name_taken"' out
  [ "$(at $up) $(at $low)" = "review blocked" ]
  # The run of one is not written over that of the other.
  mkdir "$D/runs/$low"
  report $up bob "done" | folded >out
  grep -q '"reason":"case_collision"' out
  [ -z "$(ls "$D/runs/$low")" ]
  # Where case counts, nothing of this holds.
  report $up bob "done" | aof >out
  [ "$(at $up) $(at $low)" = "done blocked" ]
}

@test "kill -9 at every step beside a person's mv: each number is in the log once" {
  local k f n m drifts=0 rounds=${AOF_ROUNDS:-6}
  # person FOLDER: moves the tasks there, with their folders.
  person() {
    for n in 1 2 3; do
      f=("$D"/tasks/*/$T-00$n.md)
      [[ ! -e ${f[0]} || ${f[0]} = */$1/* ]] || mv "${f[0]%.md}"* "$D/tasks/$1/"
    done
  }
  for ((k = 1; k <= STEPS; k += rounds < 60 ? 60 / rounds / 5 : 1)); do
    fault $k KILL >/dev/null
    person blocked
    # The recovery is killed, too, and the person moves the tasks again.
    for m in $((k % 7 + 1)) $((k % 5 + 1)); do
      AMP_FAULT_ROOT=$D AMP_FAULT=step:$m:KILL LD_PRELOAD=$shim aof-board poll --data-dir "$D" >/dev/null 2>&1 || [ $? -eq 137 ]
      [ $((k % 2)) -eq 0 ] || person ready
    done
    aof_poll >/dev/null
    [ ! -e "$D/.amp/change.ndjson" ]
    numbers_follow || fail "step $k"
    ! grep -q 'system.drift-detected' "$D/events.ndjson" || drifts=$((drifts + 1))
    # The change of the first message is logged completely, or not at all.
    [ "$(events task.transitioned $T-001)" -eq $((2 * $(events task.completed $T-001))) ]
  done
  [ $drifts -gt 3 ]
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
  # Killed behind the exchange of a task file: its former text is removed, but not what a person saved at that moment.
  rm -rf data
  cp -a before data
  sed -n 2p in >one
  AMP_FAULT_MATCH=.edit AMP_FAULT_ROOT=$D AMP_FAULT=unlink:2:KILL LD_PRELOAD=$shim aof-board --data-dir "$D" <one >out || [ $? -eq 137 ]
  f=$D/tasks/in-progress/$T-002.md
  [ -e "${f%/*}/.$T-002.edit" ]
  for n in no yes; do
    rm -rf other
    cp -a data other
    [ $n = no ] || echo "saved by a person" >>"other/tasks/in-progress/.$T-002.edit"
    aof-board poll --data-dir other >out
    [ "$(grep -c 'Progress: half$' "other/tasks/in-progress/$T-002.md")" -eq 1 ]
    [ "$(grep -c '^saved by a person$' "other/tasks/in-progress/$T-002.md")" -eq $([ $n = yes ] && echo 1 || echo 0) ]
    [ -z "$(find other/tasks -name '.*')" ]
  done
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

@test "editors that rename and editors that write in place, beside a router: every save stays" {
  local n rounds=${AOF_SAVES:-40}
  rm -rf data ended
  mkdir data
  task in-progress $T-001 "lease: {agent: ann}"
  task in-progress $T-002 "lease: {agent: ann}"
  for n in $(seq "$rounds"); do
    update $T-001 ann "\"progress\":\"step $n.\""
    update $T-002 ann "\"progress\":\"step $n.\""
  done >many
  f=$D/tasks/in-progress/$T-001.md g=$D/tasks/in-progress/$T-002.md
  aof <many >out &
  # One editor writes a new file and renames it over the old one, the other appends to the file.
  for ((n = 1; n <= rounds; n++)); do
    { cat "$f" && echo "saved $n."; } >"$f.new~" && mv "$f.new~" "$f"
    grep -qx "saved $n\." "$f" || echo "save $n is gone" >>gone
    echo "appended $n." >>"$g"
  done
  wait $!
  [ ! -e gone ]
  [ "$(grep -c '^saved [0-9]*\.$' "$f")" -eq "$rounds" ]
  [ "$(grep -c protocol.message.received "$D/events.ndjson")" -eq $((2 * rounds)) ]
  # A line that is appended to a file which has just been replaced is in neither: the last one is in.
  for n in 1 2; do
    [ "$(grep -c 'Progress: step' "$D/tasks/in-progress/$T-00$n.md")" -ge 1 ]
    [ "$(at $T-00$n)" = in-progress ]
  done
  [ -z "$(find "$D/tasks" -name '.*')" ]
}

@test "the memory of the router does not grow with the messages: AOF_MESSAGES=100000 for more" {
  local n=${AOF_MESSAGES:-1500} pid early late
  rm -rf data
  mkdir data
  task in-progress $T-001 "lease: {agent: ann}"
  task blocked $T-002 "routing: {agent: ann}"
  # Half of them move a task, the others are refused or change nothing.
  { update $T-002 ann '"status":"ready"'; update $T-002 ann '"status":"blocked"'; report $T-009 ann done
    update $T-001 ann '"status":"in-progress"'; } >four
  mkfifo messages
  AMP_FAULT_NOSYNC=1 LD_PRELOAD=$shim aof-board --data-dir "$D" <messages >out 2>err &
  pid=$!
  exec 9>messages
  grow() { awk '/VmHWM/ { print $2 }' /proc/$pid/status; }
  handled() { [ "$(grep -c 'protocol.message.received' "$D/events.ndjson")" -ge "$1" ]; }
  copies() { awk -v n="$1" '{ l[NR] = $0 } END { for (i = 0; i < n; i++) print l[i % NR + 1] }' four; }
  copies 500 >&9
  wait_until 60 handled 500
  early=$(grow)
  copies $((n / 4 * 4 - 500)) >&9
  wait_until 600 handled $((n / 4 * 4))
  late=$(grow)
  exec 9>&-
  wait $pid
  echo "$early KB after 500 messages, $late KB after $n"
  [ "$late" -lt $((early + 1024)) ]
}

@test "a poll of many tasks makes at most six system calls for each" {
  need strace
  not_under_valgrind "strace would show what valgrind does"
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
  strace -f -qq -o calls aof-board poll --data-dir data >out
  grep -q "\"inProgress\":$n,\"stale\":0" out
  [ "$(wc -l <calls)" -le $((6 * n + 500)) ]
}
