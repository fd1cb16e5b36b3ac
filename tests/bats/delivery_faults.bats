#!/usr/bin/env bats
# Disks that fail: nothing leaves that is not recorded, and afterwards everything that left is there.

load lib
load messages

setup() {
  need_tool amp-ack amp-route
  cd "$BATS_TEST_TMPDIR" || return 1
  shim=$AMP_BUILD/tests/fault/faildisk.so
  [ -e "$shim" ]
  grep -q fsanitize "$AMP_BUILD/flags" && skip "the sanitizer comes before the shim"
  export AMP_STATE=$PWD/state
  # Three reads' worth.
  message task_dispatch | awk '{ for (i = 0; i < 300; i++) { l = $0; sub(/1772116327001/, "1772116327001" i, l); print l } }' >in
  message review_request | amp-ack --state before >/dev/null
}

# failing OP:N:HOW COMMAND...: the command with that call on the log failing; its status in $status.
failing() {
  status=0
  AMP_FAULT_MATCH=log/0 AMP_FAULT_ROOT=$AMP_STATE AMP_FAULT=$1 LD_PRELOAD=$shim "${@:2}" || status=$?
}

ids() { jq -r .msg_id "$1" | sort; }

@test "track: a log that cannot be written or synced lets nothing more pass" {
  for fault in {sync,write}:{1,2,3}:{EIO,ENOSPC} write:{1,2,3}:SHORT; do
    rm -rf state
    cp -r before state
    failing "$fault" amp-ack track <in >out 2>err
    echo "$fault: status $status, $(wc -l <out) passed"
    [ "$status" -eq 75 ]
    [ "$(wc -l <out)" -lt 300 ]
    # Everybody is told, until it is repaired.
    run -75 amp-ack status
    amp-ack repair 2>said
    [ -s said ]
    amp-ack status --all --json | jq -r .msg_id | sort >known
    [ -z "$(comm -23 <(ids out) known)" ]
    # Sent again, all of it passes.
    amp-ack track <in | cmp in -
  done
}

@test "route: what was recorded before the failure is delivered after the repair" {
  for fault in {sync,write}:{1,2,3}:EIO write:2:SHORT; do
    rm -rf state box got
    cp -r before state
    failing "$fault" amp-route -r '* => spool:box' <in >out 2>err
    echo "$fault: status $status"
    [ "$status" -eq 75 ]
    amp-ack repair 2>/dev/null
    amp-route -r '* => spool:box' <in
    cat box/new/* | sort | cmp - <(sort in)
  done
}

@test "a spool whose disk fails: answered, kept, and nothing half there" {
  head -n 3 in >three
  mkdir box
  status=0
  AMP_FAULT_ROOT=$PWD/box AMP_FAULT=sync:3:EIO LD_PRELOAD=$shim \
    amp-route -r '* => spool:box' <three >out 2>err || status=$?
  [ "$status" -eq 74 ]
  [ "$(jq -r .code out | sort -u)" = eio ]
  amp-ack dead requeue --every | amp-route -r '* => spool:box'
  cat box/new/* | sort | cmp - <(sort three)
}
