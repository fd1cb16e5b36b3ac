#!/usr/bin/env bats
# Each single write and sync of a whole run fails once, in every way: what was acknowledged is on
# disk, the status says so, and after a repair the same input goes through.
# slow

load ../lib
load ../messages

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

# every FAULT: how far to the next call that fails. A full disk takes the same way through the code as EIO: each third call.
every() { [ "$1" = write:ENOSPC ] && echo 3 || echo 1; }

@test "the store: keys, closed lines, blobs, segments that go" {
  export AMP_TEST_KEEP=3 AMP_TEST_SEGMENT=2048
  "$tool" "$S" work seed 3 1 >base
  cp -R "$S" pristine
  local runs=0 refused=0
  for what in write:EIO write:ENOSPC write:SHORT sync:EIO; do
    most=$(total "${what%:*}" "$tool" "$S" mix x 4)
    [ "$most" -ge 10 ]
    step=$(every "$what")
    for ((n = 1; n <= most; n += step)); do
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
    step=$(every "$what")
    for ((n = 1; n <= most; n += step)); do
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

# disk_full KIND: each size of the room left on a disk of that kind, in KiB, for a new state and for one with messages: no
# program ends by a signal, what prints prints, and what records does or refuses.
disk_full() {
  [ "$(id -u)" -eq 0 ] || skip "a file system can be mounted by root only"
  cat >full.sh <<'SH'
mkdir -p disk
case $1 in
ext4)
  truncate -s 4M image
  mkfs.ext4 -q -F -b 1024 -m 0 -O ^has_journal image && mount -o loop image disk || exit 9
  ;;
tmpfs) mount -t tmpfs -o size=4M tmpfs disk || exit 9 ;;
esac
for kept in '' kept; do
  for room in 0 1 2 4 8 12 16 20 24 28 32 40 48 64 96 128 192 256; do
    rm -rf disk/state disk/filler
    mkdir -m 700 disk/state
    [ -z "$kept" ] || amp-ack track --state disk/state <message >/dev/null || exit 9
    cat /dev/zero >disk/filler 2>/dev/null
    truncate -s -${room}K disk/filler || exit 9
    amp-ack status --state disk/state >out 2>err && task-queue status --state disk/state 2>>err &&
      task-dispatch list --state disk/state 2>>err
    echo "${kept:-new} look $?"
    amp-ack doctor --state disk/state --min-free 1M --skip peers --skip hooks >out 2>err
    echo "doctor $?"
    [ $room -gt 192 ] || grep -q '^fail  state  .* KiB are free on its disk' out || cat out err
    [ -z "$kept" ] || grep -q 'readable: 1 message' out || cat out err
    amp-ack track --state disk/state <message >out 2>err
    echo "track $?"
  done
done >seen 2>&1
umount disk
SH
  message task_dispatch >message
  run unshare -m bash full.sh "$1"
  [ "$status" -ne 9 ] || skip "no $1 can be mounted"
  [ "$status" -eq 0 ]
  sort seen | uniq -c
  run -1 grep -vxE 'kept look 0|new look (0|75)|doctor 1|track (0|73|74|75)' seen
  grep -qx 'track 0' seen
  grep -qx 'track 7[345]' seen
  # The commands of the last room pass.
  [ "$(tail -n 1 seen)" = "track 0" ]
}

@test "a full disk with blocks smaller than a page of memory ends nothing by a signal; doctor and lists work" {
  disk_full ext4
}

@test "a full tmpfs ends nothing by a signal; doctor and lists work" {
  disk_full tmpfs
}
