#!/usr/bin/env bats
# hitl-prompt suspend and resume: the emergency stop.

setup() {
  load lib
  load agents
  need jq git
  need_tool task-dispatch hitl-prompt
}

teardown() {
  [ -z "${pid:-}" ] || kill -9 "$pid" 2>/dev/null || true
}

# An agent that ignores TERM and has a child in a session of its own, once; then it finishes.
stubborn() {
  agent stubborn <<'EOS'
if [ -e "$AMP_STATE/second" ]; then
  cat draft.txt >>hello.txt
  exit 0
fi
touch "$AMP_STATE/second"
echo draft >draft.txt
trap '' TERM
setsid -f bash -c 'trap "" TERM; echo $$ >"$AMP_STATE/orphan"; while :; do sleep 1000; done'
echo $$ >"$AMP_STATE/child"
while :; do sleep 1000; done
EOS
}

# begin ARGS...: task-dispatch run on the FIFO `in`, descriptor 4; it has begun the first dispatch.
begin() {
  mkfifo in
  task-dispatch run --state "$STATE" --grace 60s --in in "$@" >out.ndjson 2>err 3>&- &
  pid=$!
  exec 4>in
  dispatch >&4
  wait_until 30 test -s "$STATE/child"
}

finish() {
  exec 4>&-
  rc=0
  wait "$pid" || rc=$?
  pid=
}

@test "suspend --all ends a stubborn agent with all that it started; resume goes on in its worktree" {
  workplace
  stubborn
  begin --exec ./stubborn
  wait_until 30 test -s "$STATE/orphan"
  place=$(readlink "/proc/$(cat "$STATE/child")/cwd")
  hitl-prompt suspend --state "$STATE" --all --reason "smoke in the room" 2>said
  # It returns when nothing runs any more.
  run -1 kill -0 "$(cat "$STATE/child")"
  run -1 kill -0 "$(cat "$STATE/orphan")"
  grep -q "suspended everything: smoke in the room" said
  wait_until 30 grep -q "it goes on in its worktree when it is resumed" err
  wait_until 30 grep -q "waits: .* suspended everything: smoke in the room" err
  [ "$(cat "$place/draft.txt")" = draft ]
  got_no out.ndjson '.type == "task_result"'
  # Once more changes nothing; the list has it once.
  hitl-prompt suspend --state "$STATE" --all
  [ "$(hitl-prompt suspend --state "$STATE" --list --json | jq -c '[.scope, .reason, .channel, .by]')" = '["all","smoke in the room","command","login"]' ]
  # At the end of its input it waits for the resumption.
  exec 4>&-
  hitl-prompt resume --state "$STATE" --all
  finish
  [ "$rc" = 0 ]
  got out.ndjson '.type == "task_result" and .payload.completion_status == "complete"
    and .payload.diff_summary.files_changed == ["draft.txt", "hello.txt"]'
  [ "$(git -C "$REPO" show feat/x:hello.txt)" = draft ]
  # Neither a rejection nor a failure: the job has no breaks.
  amp-ack log --state "$STATE" --format ndjson >log.ndjson
  got_no log.ndjson '.kind == "job" and (.event == "break" or .event == "refuse")'
  [ -z "$(git -C "$REPO" for-each-ref refs/amp/)" ]
}
