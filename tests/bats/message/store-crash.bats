# The store under kill -9, failing disks and power loss: what was acknowledged is there afterwards.
# plain

load ../lib
load ../messages

setup() {
  fault=$AMP_BUILD/tests/fault
  tool=$fault/storetool
  [ -x "$tool" ]
  S=$BATS_TEST_TMPDIR/s
  cd "$BATS_TEST_TMPDIR"
}

# with_shim VAR=VALUE... COMMAND...
with_shim() {
  env AMP_FAULT_ROOT="$S" LD_PRELOAD="$fault/faildisk.so" "$@"
}

# Three processes at work, their disk operations traced.
record_trace() {
  local i
  for i in 1 2; do
    with_shim AMP_FAULT_TRACE="$PWD/trace" "$@" "$tool" "$S" work "p$i" 40 1 >/dev/null &
  done
  with_shim AMP_FAULT_TRACE="$PWD/trace" "$@" "$tool" "$S" work p3 60 5 >/dev/null
  wait
}

# replay SEED IMAGES: recoveries need no real sync.
replay() {
  mkdir -p work
  env AMP_FAULT_ROOT="$PWD/work/image" AMP_FAULT_NOSYNC=1 LD_PRELOAD="$fault/faildisk.so" \
    "$fault/replay" trace work "$tool" "$1" "$2"
}

@test "kill -9 at any moment loses nothing that was acknowledged" {
  : >acked
  # More work than the pipe takes: no round is over before it is killed.
  for ((round = 1; round <= ${KILL_ROUNDS:-80}; round++)); do
    exec {out}< <(exec "$tool" "$S" work "r$round" 1000000 $((1 + round % 7)) 2>>errors)
    pid=$!
    for ((k = RANDOM % 12; k >= 0; k--)); do
      read -r -u "$out" id && echo "$id" >>acked
    done
    kill -9 "$pid"
    cat <&"$out" >>acked
    exec {out}<&-
  done
  [ ! -s errors ] || { cat errors; false; }
  [ "$(wc -l <acked)" -gt $((2 * ${KILL_ROUNDS:-80})) ]
  "$tool" "$S" check <acked
}

@test "kill -9 while the index is written: it is complete, and not made again" {
  for ((round = 1; round <= ${KILL_ROUNDS:-25}; round++)); do
    exec {out}< <(exec "$tool" "$S" index "r$round" 1000 2>>errors)
    pid=$!
    for ((k = RANDOM % 100; k >= 0; k--)); do
      read -r -u "$out" id && echo "$id" >>acked
    done
    kill -9 "$pid"
    cat <&"$out" >>acked
    exec {out}<&-
  done
  [ ! -s errors ] || { cat errors; false; }
  "$tool" "$S" check <acked
  [ -e "$S/index.db" ]
  [ ! -e "$S/index.1.db" ]
}

@test "a counter that four processes raise misses no step" {
  for i in 1 2 3 4; do "$tool" "$S" count n 100 & done
  wait
  run -0 "$tool" "$S" get n
  [ "$output" = '{"v":400}' ]
}

@test "four writers get their turns" {
  local n=${FAIR_N:-300}
  for i in 1 2 3 4; do "$tool" "$S" work "w$i" "$n" 1 >"out$i" & done
  wait -n # the fastest has done
  for i in 1 2 3 4; do
    lines=$(wc -l <"out$i")
    # Far from starving, also where other programs take the processors.
    [ "$lines" -ge $((n / 4)) ] || { wc -l out?; false; }
  done
  wait
  cat out? | "$tool" "$S" check
}

@test "after a failed write or sync there is no ack, status 75, and repair brings back the rest" {
  native "a preloaded shim must come first"
  "$tool" "$S" work seed 3 1 >base
  cp -R "$S" pristine
  failed=0
  for what in write:EIO write:ENOSPC write:SHORT sync:EIO; do
    for n in 1 2 3 7 12; do
      rm -rf "$S"
      cp -R pristine "$S"
      cp base acked
      rc=0
      with_shim AMP_FAULT_MATCH=log/ AMP_FAULT="${what%:*}:$n:${what#*:}" \
        "$tool" "$S" work x 10 1 >>acked 2>errors || rc=$?
      if [ "$rc" -ne 0 ]; then
        failed=$((failed + 1))
        [ "$rc" -eq 75 ] || { echo "$what $n: status $rc"; cat errors; false; }
        [ -e "$S/log/FAILED" ]
        run -75 "$tool" "$S" work y 1 1
        "$tool" "$S" repair
      fi
      "$tool" "$S" check <acked || { echo "$what $n"; false; }
      "$tool" "$S" work y 1 1
    done
  done
  [ "$failed" -ge 15 ]
}

@test "a full disk: a new state directory is refused by every tool that writes, and none crashes" {
  mkdir disk
  unshare -rm mount -t tmpfs none disk 2>/dev/null || skip "no mounts in a namespace here"
  cat >full <<'SH'
set -e
mount -t tmpfs -o size=256k,mode=700 none disk
mkdir -m 700 disk/half disk/half/log
head -c 1m /dev/zero >disk/film 2>/dev/null || :
for state in disk/new disk/half; do
  for tool in "amp-ack track" "amp-ack status" "amp-ack doctor" "amp-ack sweep" "amp-ack repair" \
    "amp-route -r *=>file:out" agent-registry "task-dispatch coordinate"; do
    rc=0
    # shellcheck disable=SC2086
    $tool --state $state <line >>said 2>&1 || rc=$?
    echo "$tool: $rc"
  done
done
rm disk/film
amp-ack track --state disk/new <line >out
SH
  message task_dispatch >line
  unshare -rm bash full >statuses || { cat statuses said; false; }
  cat statuses
  [ "$(grep -c '^amp-ack doctor: 1$' statuses)" -eq 2 ]
  [ "$(grep -c '^amp-ack status: 0$' statuses)" -eq 2 ]
  [ "$(grep -c ': 75$' statuses)" -eq 12 ]
  cmp line out
}

@test "a failing index is no failure of the log" {
  native "a preloaded shim must come first"
  "$tool" "$S" work seed 3 1 >base
  cp -R "$S" pristine
  for what in write:EIO write:ENOSPC sync:EIO; do
    for n in 1 2 5 9; do
      rm -rf "$S"
      cp -R pristine "$S"
      cp base acked
      rc=0
      with_shim AMP_FAULT_MATCH=index AMP_FAULT="${what%:*}:$n:${what#*:}" \
        "$tool" "$S" work x 10 1 >>acked 2>errors || rc=$?
      [ "$rc" -eq 0 ] || [ "$rc" -eq 75 ]
      "$tool" "$S" check <acked || { echo "$what $n"; false; }
    done
  done
}

@test "whichever allocation fails, nothing that was acknowledged is lost" {
  native "a preloaded shim must come first"
  "$tool" "$S" work seed 3 1 >base
  cp -R "$S" pristine
  for ((n = 1; n < 300; n += 7)); do
    rm -rf "$S"
    cp -R pristine "$S"
    cp base acked
    rc=0
    FAILMALLOC_NTH=$n FAILMALLOC_NAME=storetool LD_PRELOAD="$fault/failmalloc.so" \
      "$tool" "$S" work x 6 2 >>acked 2>errors || rc=$?
    [ "$rc" -lt 128 ] || { echo "allocation $n: status $rc"; cat errors; false; }
    [ ! -e "$S/log/FAILED" ] || "$tool" "$S" repair
    "$tool" "$S" check <acked || { echo "allocation $n"; false; }
  done
}

@test "power loss at any moment loses nothing that was acknowledged" {
  native "a preloaded shim must come first"
  record_trace
  replay "${CRASH_SEED:-1}" "${CRASH_IMAGES:-120}"
}

@test "power loss while the index is written: no page of it is lost" {
  native "a preloaded shim must come first"
  with_shim AMP_FAULT_TRACE="$PWD/trace" "$tool" "$S" index a 12 >/dev/null &
  with_shim AMP_FAULT_TRACE="$PWD/trace" "$tool" "$S" index b 12 >/dev/null
  wait
  run -0 replay "${CRASH_SEED:-5}" "${INDEX_IMAGES:-16}"
  echo "# $output" >&3
  [[ $output == *" 0 with a new index"* ]]
}

@test "nor while old segments go" {
  native "a preloaded shim must come first"
  export AMP_TEST_KEEP=3 AMP_TEST_SEGMENT=4096
  record_trace
  [ ! -e "$S/log/000001.ndjson" ]
  replay "${CRASH_SEED:-2}" "${CRASH_IMAGES:-60}"
}

# Turns of 2 to 9 messages; nothing is synced, so that an image has any part of what was written.
record_turns() {
  local i
  for i in 2 5 9; do
    with_shim AMP_FAULT_TRACE="$PWD/trace" AMP_FAULT_NOSYNC=1 "$@" "$tool" "$S" work "t$i" 40 "$i" >/dev/null &
  done
  wait
}

@test "power loss at any moment leaves each turn with all of its changes or none" {
  native "a preloaded shim must come first"
  record_trace
  replay "${CRASH_SEED:-7}" "${CRASH_IMAGES:-60}"
  rm -rf work trace "$S"
  record_turns
  run replay "${CRASH_SEED:-1}" "${CRASH_IMAGES:-200}"
  [[ $output != *"a part of turn"* ]]
  # Some of the images are refused, because a later frame knew a lost one to be on the disk.
  [[ $output == *"images from"* ]]
}

@test "control: with a turn for each change the same test finds parts" {
  native "a preloaded shim must come first"
  for seed in {1..20}; do
    rm -rf work trace "$S"
    record_turns AMP_TEST_SPLIT=1
    run -1 replay "$seed" 200
    [[ $output != *"a part of turn"* ]] || break
  done
  [[ $output == *"a part of turn"* ]]
}

@test "control: without fdatasync the same test finds losses" {
  native "a preloaded shim must come first"
  record_trace AMP_FAULT_NOSYNC=1
  run -1 replay 1 40
  [[ $output == *"was acknowledged and is not there"* ]]
}

# Two processes that do all that a store does, over several segments of which the oldest go.
record_mix() {
  export AMP_TEST_KEEP=4 AMP_TEST_SEGMENT=4096
  with_shim AMP_FAULT_TRACE="$PWD/trace" "$@" "$tool" "$S" mix a 14 >/dev/null &
  with_shim AMP_FAULT_TRACE="$PWD/trace" "$@" "$tool" "$S" mix b 14 >/dev/null
  wait
}

@test "power loss before and after each sync: keys, closed lines, blobs, segments that went" {
  native "a preloaded shim must come first"
  record_mix
  [ ! -e "$S/log/000001.ndjson" ]
  [ -n "$(ls "$S/blob")" ]
  run -0 replay "${CRASH_SEED:-3}" each
  echo "# $output" >&3
}

@test "control: without fdatasync the images of each sync show losses" {
  native "a preloaded shim must come first"
  record_mix AMP_FAULT_NOSYNC=1
  run -1 replay 1 60
  [[ $output == *"was acknowledged and is not there"* ]]
}
