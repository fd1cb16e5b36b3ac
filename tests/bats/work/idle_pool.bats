#!/usr/bin/env bats
# A pool without work makes no system call, also while jobs wait that its agents cannot take.
# static

load ../lib
load ../pools

setup() {
  need strace
  not_under_valgrind "strace would show what valgrind does"
  cd "$BATS_TEST_TMPDIR" || return 1
  export STATE=$PWD/state
}

teardown() {
  [ ! -s trace ] || kill -9 "$(head -n 1 trace | cut -d' ' -f1)" 2>/dev/null || :
}

@test "a pool is silent while jobs wait for other agents, and takes one for its own at once" {
  submit 0 >other
  submit 5 >>other
  strace -qq -o trace -f task-queue work --state "$STATE" --type tester=2 -x true >out 2>err 3>&- &
  wait_until 20 quiet trace 0.8
  # The last call is the one in which it waits, without a time limit.
  [[ $(tail -n 1 trace) =~ 'ppoll('.*', NULL, [], 8' ]]
  submit 0 tester >own
  wait_until 20 grep -qs FULFILLED out
  wait_until 20 quiet trace 0.8
  # It wakes once more when its last heartbeat ends, after 30 s.
  [[ $(tail -n 1 trace) =~ 'ppoll('.*', {tv_sec=2'[0-9]', tv_nsec='[0-9]+'}, [], 8' ]]
  is_state "$(head -n 1 other)" QUEUED
  is_state "$(cat own)" DONE
  kill -TERM "$(head -n 1 trace | cut -d' ' -f1)"
  ends 130 wait $!
}
