# Disks that fail under the coordinator: nothing is said that is not recorded, and after the repair
# the same messages bring everything to where it would have been. # slow

load ../lib
load ../coordinator

setup() {
  setup_coordinator
  need_tool amp-ack
  shim=$AMP_BUILD/tests/fault/faildisk.so
  [ -e "$shim" ]
  native "a preloaded shim must come first"
  cd "$BATS_TEST_TMPDIR"
}

@test "a log that cannot be written or synced: no word leaves, and the repair finds the way back" {
  for i in 1 2 3; do
    task=T-2026-00$i
    new_task
  done >in
  task-dispatch coordinate -s "$S" </dev/null >/dev/null
  cp -r "$S" before
  # One turn is one write and one sync.
  for fault in sync:1:{EIO,ENOSPC} write:1:{EIO,ENOSPC,SHORT}; do
    rm -rf "$S"
    cp -r before "$S"
    status=0
    AMP_FAULT_MATCH=log/0 AMP_FAULT_ROOT=$S AMP_FAULT=$fault LD_PRELOAD=$shim \
      task-dispatch coordinate -s "$S" <in >out 2>err || status=$?
    echo "$fault: status $status, $(wc -l <out) lines"
    [ "$status" -eq 75 ]
    [ ! -s out ]
    amp-ack repair --state "$S" 2>/dev/null
    cp out "$said"
    hear <in
    [ "$(count task_dispatch)" -eq 3 ]
    [ "$(count ack)" -eq 3 ]
    # A torn line stays where it was; what counts stands again behind it.
    cat "$S"/log/*.ndjson | jq -cR 'fromjson? | select(.key // "" | startswith("task."))' |
      jq -se 'unique_by(.key, .rev) | map(.event) == ["open", "open", "open"]'
  done
}

@test "a task file that cannot be written stops the run, and the next one mends it" {
  new_task >in
  status=0
  AMP_FAULT_MATCH=tasks/ AMP_FAULT_ROOT=$S AMP_FAULT=write:1:ENOSPC LD_PRELOAD=$shim \
    task-dispatch coordinate -s "$S" <in >out 2>err || status=$?
  [ "$status" -ge 73 ]
  [ ! -s out ]
  hear </dev/null
  [ "$(count task_dispatch)" -eq 1 ]
  [ "$(of_task .state)" = dispatched ]
  hear <in
  [ "$(count ack)" -eq 1 ]
}
