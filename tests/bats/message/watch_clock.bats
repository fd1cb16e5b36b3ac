#!/usr/bin/env bats
# amp-ack watch when the clock is set, and when several watch.

load ../lib
load ../messages

setup() {
  need_tool amp-ack
  cd "$BATS_TEST_TMPDIR" || return 1
  export AMP_STATE=$PWD/state
  shim=$AMP_BUILD/tests/fault/failclock.so
  [ -e "$shim" ] || make_same "$shim" || make_same build/tests/fault/failclock.so
}

teardown() {
  local p
  for p in ${pids-}; do kill -9 "$p" 2>/dev/null || :; done
}

no_sanitizer() {
  native "a preloaded shim must come first"
}
# due SECONDS N...: messages that must be acknowledged within SECONDS.
due() {
  local s=$1
  shift
  message task_dispatch ".ack_timeout_sec = $s" |
    jq -c '. as $m | $ARGS.positional[] as $i | $m | .msg_id = "task_dispatch-T-2026-044-\($i)"' --args "$@" |
    "${by_clock[@]}" amp-ack >/dev/null
}
# set_clock SECONDS: from the true time.
set_clock() {
  echo "$1" >clock.new
  mv clock.new clock
  [ -z "${pids-}" ] || kill -USR1 $pids
}
# asleep: each watch waits.
asleep() {
  local p
  for p in $pids; do
    [ "$(cat "/proc/$p/comm")" = amp-ack ] || return 1
    grep -q anon_inode:inotify < <(readlink "/proc/$p/fd/"*) || return 1
    grep -q '^State:.S' "/proc/$p/status" || return 1
  done
}
told() { cat "$@" | jq -r '.payload.affected_msgs[0]' | sed 's/.*-//' | sort -n | paste -sd' '; }
# watch OUT ARG...: one more, under the clock of the file.
watch() {
  local out=$1
  shift
  "${by_clock[@]}" amp-ack watch "$@" >"$out" 3>&- &
  pids="${pids-} $!"
}

@test "set forward: what is overdue by it is reported at once" {
  no_sanitizer
  by_clock=(env LD_PRELOAD="$shim" FAIL_CLOCK_FILE="$PWD/clock")
  set_clock 0
  due 600 1
  due 7200 2
  watch out
  wait_until 30 asleep
  command sleep 0.3
  [ ! -s out ]
  set_clock 900
  wait_until 20 has_lines out 1
  command sleep 0.3
  [ "$(told out)" = 1 ]
  # And again: the timer was set anew.
  set_clock 9000
  wait_until 20 has_lines out 2
  [ "$(told out)" = "1 2" ]
}

@test "set back: a deadline is a time of the clock, and is waited for longer" {
  no_sanitizer
  by_clock=(env LD_PRELOAD="$shim" FAIL_CLOCK_FILE="$PWD/clock")
  local after
  for after in 2 8 32; do
    # A machine that is too slow for this deadline gets a longer one.
    set_clock 0
    due $after 1
    at=$(($(date +%s) + after))
    watch out
    wait_until 30 asleep
    set_clock -3600
    [ ! -s out ] && [ "$(date +%s)" -lt $((at - 1)) ] && break
    kill -9 $pids
    wait $pids || :
    pids=
    rm -rf out state
  done
  # The deadline passes, by the true time.
  wait_until 60 eval '[ "$(date +%s)" -gt $((at + 1)) ]'
  [ ! -s out ]
  # What is recorded by the new time comes by it.
  due 1 2
  wait_until 20 has_lines out 1
  [ "$(told out)" = 2 ]
  # Set right: the old one is due.
  set_clock 0
  wait_until 20 has_lines out 2
  [ "$(told out)" = "1 2" ]
}

@test "several watch while the clock is set: each deadline acted on once" {
  no_sanitizer
  by_clock=(env LD_PRELOAD="$shim" FAIL_CLOCK_FILE="$PWD/clock")
  set_clock 0
  due 600 $(seq 20)
  for i in 1 2 3; do watch "out$i"; done
  wait_until 30 asleep
  set_clock 601
  set_clock -601
  set_clock 700
  all() { [ "$(cat out? | wc -l)" -ge 20 ]; }
  wait_until 20 all
  command sleep 0.3
  [ "$(told out?)" = "$(seq -s' ' 20)" ]
  [ "$(grep -c '"event":"timeout"' state/log/000001.ndjson)" -eq 20 ]
}

@test "several watch: one set of retries, and one letter each" {
  by_clock=()
  due 1 $(seq 12)
  for i in 1 2 3 4; do
    timeout -k 5 60 amp-ack watch --until-idle --retries 2 --backoff 100ms,100ms >"out$i" 3>&- &
    pids="${pids-} $!"
  done
  wait_until 30 eval '[ "$(cat out? | jq -c "select(.type == \"task_dispatch\")" | wc -l)" -ge 6 ]'
  # One of them dies on the way.
  kill -9 "$(pgrep -P "${pids##* }")" || :
  rc=0
  for p in ${pids% *}; do wait "$p" || rc=$?; done
  wait "${pids##* }" || :
  [ "$rc" -eq 0 ]
  amp-ack sweep --retries 2 --backoff 100ms,100ms >out5
  # Two further attempts each, a new id each, and what was written twice (who was killed) is the same line.
  jq -cR 'fromjson? // empty' out? | sort -u >lines
  [ "$(jq -r 'select(.type == "task_dispatch") | .msg_id' lines | sort -u | wc -l)" -eq 24 ]
  [ "$(jq -c 'select(.type == "task_dispatch")' lines | wc -l)" -eq 24 ]
  [ "$(jq -c 'select(.type == "escalation")' lines | wc -l)" -eq 12 ]
  [ "$(amp-ack dead list --json | wc -l)" -eq 12 ]
  [ "$(amp-ack dead list --json | jq -r '"\(.code) \(.attempts)"' | sort -u)" = "retries_exhausted 3" ]
}
