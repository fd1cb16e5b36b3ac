#!/usr/bin/env bats
# amp-ack doctor: each problem, and the fix that the doctor prints; a shell runs the fix as printed.
# plain

load ../lib
load ../messages

setup() {
  cd "$BATS_TEST_TMPDIR" || return
  unset AMP_IDENTITY
  export AMP_STATE=$PWD/state
  message task_dispatch '.requires_ack = false | del(.ack_timeout_sec)' | amp-ack track >/dev/null
}

teardown() {
  local p
  for p in $(jobs -p) ${pids-}; do kill -9 "$p" 2>/dev/null || :; done
}

# wrong ARG...: the problems, in $wrong, one "check: what" per line. The clock of a test machine need not be
# synchronised.
wrong() {
  local rc=0
  out=$("${by[@]}" amp-ack doctor --json --skip "${skip:-clock}" "$@") || rc=$?
  wrong=$(jq -r 'select(.level != "ok") | "\(.check): \(.what)"' <<<"$out")
  echo "wrong: $wrong"
  [ "$rc" -eq "$(grep -q '"level":"fail"' <<<"$out" && echo 1 || echo 0)" ]
}
# ill TEXT ARG...: the doctor reports a problem with TEXT; its fix is in $fix.
ill() {
  local text=$1
  shift
  wrong "$@"
  fix=$(jq -rs --arg t "$text" '[.[] | select(.level != "ok" and (.what | contains($t))) | .fix // ("# " + .advice)] | .[0] // ""' <<<"$out")
  echo "fix: $fix"
  [ -n "$fix" ]
}
well() {
  wrong "$@"
  [ -z "$wrong" ]
}
fault() {
  shim=$AMP_BUILD/tests/fault/$1.so
  [ -e "$shim" ] || make_same "$shim" || make_same "build/tests/fault/$1.so"
  native "a preloaded shim must come first"
}
# A sudo that only root may need.
own_sudo() {
  mkdir -p sbin
  printf '#!/bin/sh\nexec "$@"\n' >sbin/sudo
  chmod +x sbin/sudo
  PATH=$PWD/sbin:$PATH
}

@test "state: missing, no directory, of another owner, open to others" {
  rm -r state
  ill 'no state directory'
  eval "$fix"
  well
  mv state kept
  touch state
  ill 'is not a directory'
  [[ $fix == *"another one with --state"* ]]
  AMP_STATE=$PWD/kept well
  rm state
  mv kept state
  chmod 755 state
  ill 'other users can enter'
  [ "$(amp-ack doctor --skip clock --json | jq -c 'select(.level != "ok")' | wc -l)" -eq 1 ]
  eval "$fix"
  well
  chmod -R go+r state/log
  ill 'other users can open'
  eval "$fix"
  well
  [ "$(id -u)" -eq 0 ] || skip "only root can give files away"
  own_sudo
  chown -R 12345 state
  ill 'belongs to user 12345'
  eval "$fix"
  well
}

@test "state: on a network file system" {
  fault failfs
  by=(env LD_PRELOAD="$shim" FAIL_FS_ROOT="$PWD/nfs")
  mkdir nfs
  mv state nfs/state
  AMP_STATE=$PWD/nfs/state
  ill 'network file system'
  [[ $fix == "# stop its programs, then cp -a $PWD/nfs/state to a local disk, and use that with --state" ]]
  cp -a "$PWD/nfs/state" .
  AMP_STATE=$PWD/state
  well
}

@test "state: no room, no inodes" {
  unshare -rm true 2>/dev/null || skip "no user namespaces here"
  mkdir disk
  cat >small <<'SH'
set -e
mount -t tmpfs -o size=8m,nr_inodes=400,mode=700 none disk
cp -a state disk/state
export AMP_STATE=$PWD/disk/state
amp-ack doctor --skip clock --min-free 2M >first
head -c 7m /dev/zero >disk/film
! amp-ack doctor --skip clock --min-free 2M --json >full
jq -r 'select(.level == "fail") | .fix' full >fix
sh fix >said
rm disk/film
amp-ack doctor --skip clock --min-free 2M >fixed
mkdir disk/many
(cd disk/many && touch $(seq 350))
! amp-ack doctor --skip clock --min-free 1K --json >full2
jq -r 'select(.level == "fail") | .fix' full2 >fix2
sh fix2 >said2
rm -r disk/many
amp-ack doctor --skip clock --min-free 1K >mended2
SH
  unshare -rm true && unshare -rm sh -c 'mount -t tmpfs none disk' || skip "no mounts in a namespace here"
  unshare -rm bash small
  grep -q 'are free on its disk' full
  grep -q 'Avail' said
  grep -q 'files can still be made' full2
  grep -q 'IFree' said2
}

@test "state: a failed write, damage, a torn end, no index, a bad one" {
  (umask 077 && touch state/log/FAILED)
  ill 'a write to the log failed'
  eval "$fix"
  well
  rm -f state/index*
  ill 'index is missing'
  eval "$fix"
  well
  amp-ack track < <(message review_request '.requires_ack = false | del(.ack_timeout_sec)') >/dev/null
  sed -i '1s/task_dispatch/task_dispetch/' "$(ls state/log/0*.ndjson | head -1)"
  rm -f state/index*
  ill 'is damaged at offset'
  [[ $fix == "amp-ack repair --state $PWD/state" ]]
  eval "$fix"
  well
}

@test "locks: a stopped process has the state's lock" {
  need strace
  not_under_valgrind "strace would show what valgrind does"
  # It stops where it writes to the log, with the lock.
  message review_request >in
  strace -qq -o /dev/null -e trace=pwrite64,write -e inject=pwrite64,write:signal=STOP:when=1 -P "$PWD/state/log/000001.ndjson" \
    amp-ack track <in >/dev/null 2>&1 3>&- &
  wait_until 20 ill "lock is held for more than a second"
  # The process stays stopped without its tracer.
  kill -9 $!
  wait_until 30 ill "lock is held for more than a second"
  [[ $out != *"no locks held"* ]]
  [[ $fix == "kill -CONT "* ]]
  pids=${fix##* }
  eval "$fix"
  wait_until 30 well
  [ "$(amp-ack status --all --json | wc -l)" -eq 2 ]
}

@test "outbox: answers of a router, acknowledgements of an inbox" {
  mkfifo fifo
  { message task_dispatch '.msg_id = "task_dispatch-T-2026-044-7"'; } | amp-route -r '* => inbox:executor' >/dev/null
  run -69 amp-route inbox executor --acks fifo:fifo --open-timeout 50ms
  ill 'inbox:executor: 1 line waits' --old-after 0
  eval "$fix" || [ $? -eq 1 ]
  [ "$(jq -r .msg.ref_msg_id acks.ndjson)" = task_dispatch-T-2026-044-7 ]
  well --old-after 0
  run amp-route --as door -r 'to=nobody => file:x' -o /dev/full < <(message task_result)
  ill 'door.answers: 1 line waits' --old-after 0
  [[ $fix == "# restart the program that is named door"* ]]
  amp-route --as door -r 'to=nobody => file:x' </dev/null >answers
  [ "$(jq -r .code answers)" = no_route ]
  well --old-after 0
}

@test "deadlines, dead letters" {
  amp-ack track --now 2026-02-26T14:32:07Z < <(message review_verdict) >/dev/null
  ill 'overdue since'
  eval "timeout 60 ${fix/amp-ack watch/amp-ack watch --until-idle}"
  [ -s escalations.ndjson ]
  well
  ill '1 dead letter' --most-dead 0
  eval "$fix" | grep -q review_verdict
  amp-ack dead purge --every >/dev/null 2>&1 || amp-ack dead purge --every --yes >/dev/null
  well --most-dead 0
}

@test "tasks: a person decides" {
  need script
  need_tool hitl-prompt task-dispatch
  message escalation >escalations.ndjson
  run -1 hitl-prompt --answer /dev/null <escalations.ndjson
  ill 'T-2026-044 is suspended'
  mkfifo typed
  exec 7<>typed
  timeout -k 5 30 script -qfec "$fix" screen <typed >/dev/null 3>&- 7>&- &
  pids=$!
  wait_until 20 grep -q 'leaves it undecided' screen
  echo 'resume go on' >&7
  wait_until 20 well
}

@test "peers: a helper that is missing, a command, git" {
  mkdir helpers
  cp "$AMP_BUILD"/libexec/amp/* helpers/
  export AMP_LIBEXEC=$PWD/helpers
  rm helpers/jq-worker
  ill 'jq-worker is missing'
  [[ $fix == "# install the toolkit again: make install" ]]
  # What make install does with it.
  install -m 755 "$AMP_BUILD/libexec/amp/jq-worker" helpers/
  well
  printf '#!/bin/sh\nexit 1\n' >helpers/git-worker
  ill 'git-worker does not run'
  install -m 755 "$AMP_BUILD/libexec/amp/git-worker" helpers/
  well
  echo '{"route": {"routes": ["* => command:my-worker --now"]}}' >amp.json
  ill 'my-worker of a route does not exist' -c amp.json
  [[ $fix == "# install it, or give its path" ]]
  mkdir bin
  printf '#!/bin/sh\n' >bin/my-worker
  chmod +x bin/my-worker
  PATH=$PWD/bin:$PATH well -c amp.json
  sed -i "s:my-worker:$PWD/bin/my-worker:" amp.json
  well -c amp.json
}

@test "permissions" {
  echo '{"route": {"routes": ["* => https://ann:hunter2@host/"]}}' >amp.json
  chmod 666 amp.json
  ill 'other users can write' -c amp.json
  eval "$fix"
  well -c amp.json
  chmod 644 amp.json
  ill 'which contains a secret' -c amp.json
  eval "$fix"
  well -c amp.json
  [ "$(id -u)" -eq 0 ] || skip "only root can give files away"
  own_sudo
  chown 12345 amp.json
  ill 'belongs to user 12345' -c amp.json
  eval "$fix"
  well -c amp.json
}

@test "hooks: no repository, no guard, a hook that does not run" {
  need_tool worktree-bind
  mkdir here
  ill '' --repo here
  [[ $fix == "git init here" ]]
  eval "$fix -q"
  git -C here commit -q --allow-empty -m start
  ill 'no guard is installed' --repo here
  eval "$fix" >/dev/null
  well --repo here
  chmod -x here/.git/hooks/branch-guard
  ill 'executable' --repo here
  eval "$fix" >/dev/null
  well --repo here
}

@test "FIFOs" {
  ill 'no such file' pipe
  eval "$fix"
  ill 'no process has it open' pipe
  exec 7<>pipe # its reader and its writer
  well pipe
  head -c 65536 /dev/zero >&7
  ill 'it is full' pipe
  head -c 65536 <&7 >/dev/null
  well pipe
  exec 9<pipe 7>&-
  ill 'waits for a writer' pipe
  exec 8>pipe
  well pipe
  exec 9<&-
  ill 'no process reads' pipe
  exec 9<pipe
  well pipe
  chmod +t pipe
  exec 8>&-
  ill 'within a line' pipe
  eval "$fix"
  [ ! -k pipe ]
  exec 8>pipe
  well pipe
  echo notes >notes
  echo '{"route": {"routes": ["* => fifo:notes"]}}' >amp.json
  ill 'is not a FIFO' -c amp.json
  eval "$fix"
  exec 7<>notes
  well -c amp.json
  [ "$(cat notes.was)" = notes ]
}

@test "clock: set back, not synchronised, jumping" {
  fault failclock
  own_sudo
  # What synchronises a clock.
  printf '#!/bin/sh\n[ "$*" = "set-ntp true" ] && echo 0 >clock && echo 1 >synced\n' >sbin/timedatectl
  chmod +x sbin/timedatectl
  echo -3600 >clock
  echo 1 >synced
  skip=peers
  at() { by=(env LD_PRELOAD="$shim" FAIL_CLOCK_FILE="$PWD/clock" FAIL_CLOCK_SYNC="$(cat synced)" "$@"); }
  at
  ill 'in the future'
  eval "$fix"
  at
  well
  echo 0 >synced
  at
  ill 'not synchronized'
  eval "$fix"
  at
  well
  at FAIL_CLOCK_JUMP=5000
  ill 'clock jumped by'
  [[ $fix == *journalctl* ]]
  at # it was stopped
  well
}
