#!/usr/bin/env bats
# An upgrade that ends at one of its writes, syncs, links and renames leaves the old log or the new one.
# slow

load lib
load messages
load upgrade

setup() {
  native "a preloaded shim must come first"
  old_state
  fault=$AMP_BUILD/tests/fault/faildisk.so
  cp -R state pristine
  (cd state/log && sha256sum 0*.ndjson) >old.sums
}

# faulty FAULT: the upgrade, in which this call fails.
faulty() {
  AMP_FAULT_ROOT=$S AMP_FAULT=$1 LD_PRELOAD=$fault amp-ack repair --upgrade --state state >/dev/null 2>&1 || :
}

# each_fault HOW...: OP:HOW, at up to a dozen of its calls. Where the new log is there all that it holds is compared.
each_fault() {
  local how n most old=0 new=0
  for how; do
    rm -rf state count
    cp -R pristine state
    AMP_FAULT_COUNT=$PWD/count faulty "${how%:*}:0:EIO"
    most=$(cat count)
    [ "$most" -ge 1 ]
    for ((n = 1; n <= most; n += 1 + most / 12)); do
      rm -rf state
      cp -R pristine state
      faulty "${how%:*}:$n:${how#*:}"
      if first_line '{"h":"'; then
        is_old || { echo "$how $n: not the old log" && false; }
        old=$((old + 1))
        [ "$n" -eq 1 ] || continue
      else
        new=$((new + 1))
      fi
      [ ! -e state/log/UPGRADING ] || [ -e state/log/FAILED ] || run -78 amp-ack status --state state
      upgrade || { echo "$how $n: $(cat said)" && false; }
      [ ! -e state/log.new ]
      [ ! -e state/log/UPGRADING ]
      holds_all || { echo "$how $n" && false; }
    done
  done
  echo "# $old runs left the old log, $new the new one" >&3
  [ "$old" -gt 0 ]
  [ "$new" -gt 0 ]
}

@test "killed" {
  each_fault sync:KILL rename:KILL link:KILL
}

@test "killed in a write" {
  each_fault write:KILL write:TORN
}

@test "a full disk" {
  each_fault write:ENOSPC write:SHORT
}

@test "a disk that fails" {
  each_fault sync:EIO rename:EIO link:EIO
}
