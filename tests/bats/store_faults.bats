#!/usr/bin/env bats
# Each single write and sync of a whole run fails once, in every way: what was acknowledged is on
# disk, the status says so, and after a repair the same input goes through.
# slow

load lib
load messages

setup() {
  fault=$AMP_BUILD/tests/fault
  tool=$fault/storetool
  cd "$BATS_TEST_TMPDIR" || return 1
  native "a preloaded shim must come first"
  S=$PWD/state
}

# failing FAULT COMMAND...: that call on the state directory fails; the status in $status.
failing() {
  status=0
  AMP_FAULT_ROOT=$S AMP_FAULT=$1 LD_PRELOAD=$fault/faildisk.so "${@:2}" || status=$?
}

# total OP COMMAND...: how many there are in a run that nothing disturbs; the directory is then as
# before.
total() {
  local n
  rm -rf count kept
  [ ! -e "$S" ] || cp -R "$S" kept
  AMP_FAULT_COUNT=$PWD/count failing "$1:0:EIO" "${@:2}" >/dev/null 2>&1 </dev/stdin
  rm -rf "$S"
  [ ! -e kept ] || mv kept "$S"
  n=$(cat count)
  echo "$n"
}

@test "the store: keys, closed lines, blobs, segments that go" {
  export AMP_TEST_KEEP=3 AMP_TEST_SEGMENT=2048
  "$tool" "$S" work seed 3 1 >base
  cp -R "$S" pristine
  local runs=0 refused=0
  for what in write:EIO write:ENOSPC write:SHORT sync:EIO; do
    most=$(total "${what%:*}" "$tool" "$S" mix x 4)
    [ "$most" -ge 10 ]
    for ((n = 1; n <= most; n++)); do
      rm -rf "$S"
      cp -R pristine "$S"
      cp base acked
      failing "${what%:*}:$n:${what#*:}" "$tool" "$S" mix x 4 >>acked 2>errors
      runs=$((runs + 1))
      case $status in
        0) ;;
        73 | 74 | 75) refused=$((refused + 1)) ;;
        *) echo "$what $n: status $status" && cat errors && false ;;
      esac
      [ ! -e "$S/log/FAILED" ] || "$tool" "$S" repair >/dev/null
      "$tool" "$S" check <acked || { echo "$what $n" && false; }
      "$tool" "$S" mix y 1 >/dev/null
    done
  done
  echo "# $runs runs, $refused of them refused" >&3
  [ "$refused" -ge 40 ]
}

# The ids of whole lines; without jq, for there are hundreds of runs.
ids() { sed -n 's/^{"msg_id":"\([^"]*\)".*}$/\1/p' "$@" | sort; }

# each_fault COMMAND...: the tool with each call of its run failing once; then check is called.
each_fault() {
  local runs=0 refused=0
  for what in write:EIO write:ENOSPC write:SHORT sync:EIO; do
    rm -rf "$S"
    cp -R before "$S"
    most=$(total "${what%:*}" "$@" <in)
    [ "$most" -ge 2 ]
    for ((n = 1; n <= most; n++)); do
      rm -rf "$S" box
      cp -R before "$S"
      failing "${what%:*}:$n:${what#*:}" "$@" <in >out 2>err
      runs=$((runs + 1))
      [ "$status" -eq 0 ] || refused=$((refused + 1))
      [ "$status" -eq 0 ] || [ "$status" -ge 69 ] || { echo "$what $n: status $status" && cat err && false; }
      [ ! -e "$S/log/FAILED" ] || amp-ack repair 2>/dev/null
      check || { echo "$what $n of $most: status $status" && cat err && false; }
    done
  done
  echo "# $runs runs, $refused of them refused" >&3
  [ "$refused" -ge 4 ]
}

prepare() {
  need_tool amp-ack amp-route
  export AMP_STATE=$S
  message task_dispatch | awk '{ for (i = 0; i < 40; i++) { l = $0; sub(/1772116327001/, "1772116327001" i, l); print l } }' >in
  message review_request | amp-ack --state before track >/dev/null
}

@test "amp-ack track: what passed is in the ledger" {
  prepare
  check() {
    amp-ack status --all --json | ids >known
    [ -z "$(comm -23 <(ids out) known)" ] && amp-ack track <in | cmp in -
  }
  each_fault amp-ack track
}

@test "amp-route to a spool: what was taken is delivered, once" {
  prepare
  check() {
    amp-route -r '* => spool:box' <in >again && cat box/new/* | sort | cmp - <(sort in)
  }
  each_fault amp-route -r '* => spool:box'
}

@test "amp-route to an inbox: what was put there, and what is sent again, is there once" {
  prepare
  head -n 6 in >six && mv six in
  check() {
    amp-route -r '* => inbox:executor' <in >again && amp-route inbox executor | sort | cmp - <(sort in)
  }
  each_fault amp-route -r '* => inbox:executor'
}

@test "amp-route inbox: all is handed over, nothing again once its READ is on disk" {
  prepare
  head -n 6 in >six && mv six in
  amp-route --state before -r '* => inbox:executor' <in
  check() {
    amp-ack status --all --json | sed -n '/"state":"READ"/p' | ids >read
    # 1: it was empty.
    amp-route inbox executor >rest || [ $? -eq 1 ]
    # A line that was cut off by the end is none.
    { sed -n '/}$/p' out && cat rest; } | sort -u | cmp - <(sort in) &&
      [ -z "$(comm -12 read <(ids rest))" ]
  }
  each_fault amp-route inbox executor
}
