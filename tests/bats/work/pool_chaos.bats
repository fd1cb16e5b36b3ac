# Pools, agents and helpers that are killed and stopped at random, clocks that are set, and a disk that is full (tests/chaos/pool):
# each job is done exactly once, in order, and no two jobs at work have a common scope. CHAOS_JOBS=1000 runs it at length. # long

setup() {
  load ../lib
  need jq flock git
  native "a preloaded shim must come first"
  for built in failclock.so claimants; do
    built=$AMP_BUILD/tests/fault/$built
    [ -e "$built" ] || make_same "$built" || make_same "build/tests/fault/${built##*/}"
  done
  export AMP_BUILD
  cd "$BATS_TEST_TMPDIR" || return 1
}

teardown() {
  local p
  for p in ${pids-}; do kill -9 "$p" 2>/dev/null || :; done
}

# trial JOBS FAULTS
trial() {
  DIR=$BATS_TEST_TMPDIR/chaos SEED=${SEED:-7} FAULTS=$2 "$AMP_TOP/tests/chaos/pool" "${CHAOS_JOBS:-$1}" 900
}

@test "jobs are done exactly once, in order, and alone in their scope, whoever is killed or stopped, and whatever the clock says" {
  trial 16 "kill stop long end agent git submit watch clock all"
}

@test "a full disk stops the pools with 75, and nothing is lost or done twice when it has room again" {
  unshare "$([ "$(id -u)" -eq 0 ] && echo -m || echo -Urm)" mount -t tmpfs chaos "$BATS_TEST_TMPDIR" ||
    skip "a tmpfs cannot be mounted here"
  trial 5 "disk kill watch stop agent"
}

@test "a disk that is full, and kills: one answer to each message, and the state says the same" {
  local what
  for what in inbox pool; do
    "$AMP_TOP/tests/chaos/full-disk" "$what" tmpfs "${FULL_DISKS:-3}" || {
      [ $? -ne 77 ] || skip "a tmpfs cannot be mounted here"
      return 1
    }
  done
  [ "$(id -u)" -ne 0 ] || [ -z "${FULL_DISKS-}" ] || for what in inbox pool; do
    "$AMP_TOP/tests/chaos/full-disk" "$what" ext4 "$FULL_DISKS" || [ $? -eq 77 ]
  done
}

@test "claimants of one queue that are killed and stopped: each job once, in order, within limits and scopes" {
  "$AMP_BUILD/tests/fault/claimants" state "${CHAOS_CLAIMS:-60}" "${SEED:-7}" 4
  LIMITS="t0=4 t1=2" "$AMP_TOP/tests/chaos/check" "${CHAOS_CLAIMS:-60}" state/log
}

@test "a lease lasts three heartbeats of true time, whatever the wall's clock is set to" {
  load ../agents
  load ../pools
  export STATE=$PWD/state
  echo '{"queue":{"max_parallel":8,"heartbeat":"100ms"}}' >amp.json
  builder <<'EOF'
mark began
await go
EOF
  # clocked NAME: a pool by the clock of a file.
  clocked() {
    echo 0 >"clock.$1"
    LD_PRELOAD="$AMP_BUILD/tests/fault/failclock.so" FAIL_CLOCK_FILE="$PWD/clock.$1" task-queue work --state "$STATE" \
      --config amp.json --name "$1" --type builder=1 -x "$PWD/agent" >"out.$1" 2>"err.$1" 3>&- &
    pids="${pids-} $!"
    pool=$!
  }
  set_clock() {
    echo "$1" | tee clock.p1 clock.p2 >/dev/null
    kill -USR1 $pids
  }
  beats() { grep '"key":"queue_worker.p1"' "$STATE/log/000001.ndjson" | grep -c '"event":"working"'; }
  beats_are() { [ "$(beats)" -ge "$1" ]; }
  clocked p1
  first=$pool
  id=$(submit 0)
  wait_until 10 is_state "$id" RUNNING
  clocked p2
  wait_until 10 grep -qs '"key":"agent.builder-2".*"to":"RUNNABLE"' "$STATE"/log/000001.ndjson
  # Hours pass in a moment: the claim stays.
  set_clock 10800
  wait_until 10 beats_are $(($(beats) + 5))
  run -1 grep '"event":"lose"' "$STATE"/log/000001.ndjson
  # Two days back, and its pool is killed: the claim does not last for two days.
  set_clock -172800
  wait_until 10 beats_are $(($(beats) + 2))
  kill -9 "$first"
  taken() { [[ $(job_of "$id") == *'"worker":"p2"'* ]]; }
  wait_until 10 taken
  wait_until 10 has_lines began 2
  touch go
  wait_until 10 is_state "$id" DONE
  [ "$(grep -c '"event":"lose"' "$STATE"/log/000001.ndjson)" -eq 1 ]
}

# line N EVENT STATE JOB WORKER [PRIORITY [AREA [ATTEMPT]]]: of a log.
line() {
  printf '{"n":%s,"key":"queue.%s","event":"%s","to":"%s","actor":"%s","state":{"type":"t","priority":%s,"seq":%s,"worker":"%s","message":"m%s","attempts":%s,"scope":"{\\"resources\\":[\\"area-%s\\"]}"}}\n' \
    "$1" "$4" "$2" "$3" "$5" "${6:-0}" "$((16#$4))" "$5" "$4" "${8:-0}" "${7:-$4}"
}
answer() { printf '{"to":"cli","msg":{"message_id":"%s","payload":{"ack_for_message_id":"m%s","ack_stage":"FULFILLED"}}}\n' "$2" "$1"; }
# good: what three jobs leave, of which the second was lost once.
good() {
  mkdir -p log
  {
    line 1 submit QUEUED 1 - && line 2 submit QUEUED 2 - -5 && line 3 submit QUEUED 3 -
    line 4 claim CLAIMED 2 p0 -5 2 1 && line 5 start RUNNING 2 p0 -5 2 1 && line 6 lose QUEUED 2 - -5 2 1
    line 7 claim CLAIMED 2 p1 -5 2 2 && line 8 start RUNNING 2 p1 -5 2 2 && line 9 done DONE 2 p1 -5 2 2
    line 10 claim CLAIMED 1 p0 0 1 1 && line 11 start RUNNING 1 p0 0 1 1
    line 12 claim CLAIMED 3 p1 0 3 1 && line 13 start RUNNING 3 p1 0 3 1
    line 14 done DONE 1 p0 0 1 1 && line 15 done DONE 3 p1 0 3 1
  } >log/000001.ndjson
  printf 'begin %s 1\nend %s 1\n' t1 t1 t2 t2 t3 t3 >notes
  : >overlaps
  { answer 1 a && answer 2 b && answer 3 c && answer 3 c; } >out
}
check() { LIMITS=${limits:-t=2} "$AMP_TOP/tests/chaos/check" "${jobs:-3}" log notes overlaps out; }
# finds TEXT COMMAND...: after the damage that the command makes, check fails with this line only.
finds() {
  local text=$1
  good
  shift
  "$@"
  run -1 check
  grep -qF "$text" <<<"$output" || { echo "$output" && false; }
  [ "$(grep -cE '^(gap|fork|stolen|limit|overlap|order|late|lost|twice|answers|unended):' <<<"$output")" -eq "${lines_are:-1}" ]
}
damage() { sed -i "$@"; }
add() {
  local file=$1
  shift
  "$@" >>"$file"
}

@test "the check of a trial fails for each damage" {
  good
  check
  lines_are=2 finds "twice: 3 was done 2 times" add log/000001.ndjson line 16 done DONE 3 p1 0 3 1
  finds "late: 3 is done by p0, but p1 had it" damage '15s/"actor":"p1"/"actor":"p0"/' log/000001.ndjson
  finds "overlap: 3 and 1 at 12" damage '/"queue.3"/s/area-3/area-1/' log/000001.ndjson
  lines_are=3 finds "order: 2 (-5/2) before 3 (-9/3) at 4" damage '/"queue.3"/s/"priority":0/"priority":-9/' log/000001.ndjson
  limits="t=1" finds "limit: 2 jobs of t at work at 12" :
  lines_are=2 finds "stolen: 3 was claimed while DONE" add log/000001.ndjson line 16 claim CLAIMED 3 p0 0 3 2
  finds "stolen: attempt 4 of 3 follows 0" damage '/"queue.3"/s/"attempts":1/"attempts":4/' log/000001.ndjson
  finds "lost: 3 is RUNNING" damage '15d' log/000001.ndjson
  jobs=4 finds "lost: 3 submissions, expected 4" :
  finds "gap: line 6 of the log follows 4" damage 5d log/000001.ndjson
  finds "fork: there are two lines 15" add log/000001.ndjson echo '{"n":15,"m":"other","key":"task.1"}'
  finds "answers: more than one to m3" add out answer 3 d
  finds "answers: none to m2" damage '/"m2"/d' out
  finds "answers: to an unknown job: m9" add out answer 9 e
  finds "unended: no attempt ended of t2" damage '/end t2/d' notes
  finds "overlap: agents met: t1" add overlaps echo t1
}
