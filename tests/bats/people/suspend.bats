#!/usr/bin/env bats
# hitl-prompt suspend and resume: the emergency stop.
# walls

setup() {
  load ../lib
  load ../agents
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
  run -1 grep "killed by this command" said # the worker ended it
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

@test "the coordinator sends no work of a suspended task, and sends it when the task is resumed" {
  workplace
  mkfifo in
  task-dispatch new --print --id T-2026-001 --repo "$REPO" --branch feat/x --criterion works --description "Say hello" >task.ndjson
  task-dispatch new --print --id T-2026-002 --repo "$REPO" --branch feat/y --criterion works --description "Say more" >>task.ndjson
  mkdir -m 700 "$STATE"
  hitl-prompt suspend --state "$STATE" T-2026-001 --reason "wait for Ann"
  task-dispatch coordinate --state "$STATE" --trust-in in >out.ndjson 2>err 3>&- &
  pid=$!
  exec 4>in
  cat task.ndjson >&4
  wait_until 30 got out.ndjson '.type == "task_dispatch" and .task_id == "T-2026-002"'
  grep -q "T-2026-001.* is not sent: .* suspended task T-2026-001: wait for Ann" err
  got_no out.ndjson '.type == "task_dispatch" and .task_id == "T-2026-001"'
  hitl-prompt resume --state "$STATE" T-2026-001
  wait_until 30 got out.ndjson '.type == "task_dispatch" and .task_id == "T-2026-001"'
  finish
}

@test "an inbox hands over nothing that is suspended; its command ends with what it started" {
  workplace
  need_tool amp-route
  agent take <<'EOS'
[ -e "$AMP_STATE/second" ] && { cat >>"$AMP_STATE/taken"; exit 0; }
touch "$AMP_STATE/second"
trap '' TERM
setsid bash -c 'trap "" TERM; echo $$ >"$AMP_STATE/orphan"; while :; do sleep 1000; done' &
echo $$ >"$AMP_STATE/child"
while :; do sleep 1000; done
EOS
  export AMP_STATE=$STATE
  dispatch | amp-route -r '* => inbox:ann'
  amp-route inbox ann --follow --attempts 1 --exec ./take 2>err 3>&- &
  pid=$!
  wait_until 30 test -s "$STATE/orphan"
  hitl-prompt suspend --agent ann
  wait_until 30 gone "$(cat "$STATE/child")"
  wait_until 30 gone "$(cat "$STATE/orphan")"
  wait_until 30 grep -q "stays in the inbox: .* suspended agent ann" err
  [ ! -e "$STATE/taken" ]
  # The attempt that was ended does not count, though only one is allowed.
  hitl-prompt resume --agent ann
  wait_until 30 test -s "$STATE/taken"
  kill "$pid"
}

@test "a task, an agent, and both: each is resumed by itself" {
  workplace
  mkdir -m 700 "$STATE"
  run -1 hitl-prompt suspend --state "$STATE" nobody
  grep -q "neither a task nor an agent" <<<"$output"
  run -64 hitl-prompt suspend --state "$STATE"
  run -64 hitl-prompt suspend --state "$STATE" --all T-2026-001
  run -69 hitl-prompt suspend --state "$STATE/none" --all
  hitl-prompt suspend --state "$STATE" T-2026-001 T-2026-002
  hitl-prompt suspend --state "$STATE" --agent ann ben
  hitl-prompt suspend --state "$STATE" --all
  [ "$(hitl-prompt suspend --state "$STATE" --list --json | jq -r '.scope + (.name // "")' | paste -sd' ')" = \
    "taskT-2026-001 taskT-2026-002 agentann agentben all" ]
  hitl-prompt resume --state "$STATE" T-2026-001
  hitl-prompt resume --state "$STATE" --agent ben 2>err
  grep -q "everything is still suspended" err
  hitl-prompt resume --state "$STATE" T-2026-001 2>err
  grep -q "is not suspended by a person" err
  [ "$(hitl-prompt suspend --state "$STATE" --list --json | jq -r '.scope + (.name // "")' | paste -sd' ')" = "taskT-2026-002 agentann all" ]
  hitl-prompt resume --state "$STATE" --all
  [ -z "$(hitl-prompt suspend --state "$STATE" --list)" ]
  # An agent suspends and resumes nothing.
  AMP_AGENT=eve run -77 hitl-prompt suspend --state "$STATE" --all
  AMP_AGENT=eve run -77 hitl-prompt resume --state "$STATE" --all
}

@test "commands of exec-each wait while their task is suspended, and the ended one does not count" {
  workplace
  need_tool amp-route
  agent take <<'EOS'
[ -e "$AMP_STATE/second" ] && { cat >>"$AMP_STATE/taken"; exit 0; }
touch "$AMP_STATE/second"
echo $$ >"$AMP_STATE/child"
exec sleep 1000
EOS
  export AMP_STATE=$STATE
  mkfifo in
  amp-route --attempts 1 -r '* => exec-each:./take' <in 2>err 3>&- &
  pid=$!
  exec 4>in
  dispatch >&4
  wait_until 30 test -s "$STATE/child"
  hitl-prompt suspend T-2026-001
  wait_until 30 gone "$(cat "$STATE/child")"
  dispatch '.task_id = "T-2026-002" | .msg_id = "task_dispatch-T-2026-002-1" | .payload.subtasks[0].subtask_id = "T-2026-002-S1"' >&4
  wait_until 30 grep -q T-2026-002 "$STATE/taken"
  run -1 grep -q T-2026-001-1 "$STATE/taken"
  [ "$(wc -l <"$STATE/taken")" = 1 ]
  hitl-prompt resume T-2026-001
  exec 4>&-
  finish
  [ "$rc" = 0 ]
  [ "$(wc -l <"$STATE/taken")" = 2 ]
}

@test "a confined agent is ended with its namespace; its commits and uncommitted files stay for the next attempt" {
  workplace
  unset AMP_CONFINE
  "$AMP_BUILD/libexec/amp/confine" --probe >probe
  jq -e '.namespaces == true and .landlock > 0 and .seccomp == true' probe >/dev/null || skip "no confinement here: $(cat probe)"
  agent works <<'EOS'
if [ -e draft.txt ]; then
  cat draft.txt committed.txt >hello.txt
  exit 0
fi
echo one >committed.txt
git add committed.txt
git commit -qm "by the agent"
echo two >draft.txt
trap '' TERM
setsid sh -c 'trap "" TERM; while :; do sleep 1000; done' &
echo >ready.txt
while :; do sleep 1000; done
EOS
  mkfifo in
  task-dispatch run --state "$STATE" --grace 60s --in in --exec ./works >out.ndjson 2>err 3>&- &
  pid=$!
  exec 4>in
  dispatch >&4
  wait_until 30 test -e "$REPO.worktrees/executor/ready.txt"
  hitl-prompt suspend --state "$STATE" T-2026-001 2>said
  run -1 grep "killed by this command" said
  # Nobody has the environment of the attempt any more.
  [ -z "$(grep -lsz "AMP_RESULT=$STATE/run/" /proc/[0-9]*/environ || true)" ]
  wait_until 30 grep -q "it goes on in its worktree" err
  hitl-prompt resume --state "$STATE" T-2026-001
  finish
  [ "$rc" = 0 ]
  got out.ndjson '.type == "task_result" and .payload.completion_status == "complete"
    and .payload.diff_summary.files_changed == ["committed.txt", "draft.txt", "hello.txt", "ready.txt"]'
  [ "$(git -C "$REPO" show feat/x:hello.txt)" = "$(printf 'two\none')" ]
}

@test "a tool that is stopped does not keep its agent alive" {
  workplace
  stubborn
  begin --exec ./stubborn
  kill -STOP "$pid"
  hitl-prompt suspend --state "$STATE" --all 2>said
  grep -q "killed by this command" said
  gone "$(cat "$STATE/child")"
  kill -CONT "$pid"
  wait_until 30 grep -q "it goes on in its worktree" err
  hitl-prompt resume --state "$STATE" --all
  finish
  [ "$rc" = 0 ]
  got out.ndjson '.type == "task_result" and .payload.completion_status == "complete"'
}

@test "the hooks refuse the calls, commits and pushes of a suspended agent only" {
  workplace
  need_tool worktree-bind
  worktree-bind hooks install -C "$REPO" >/dev/null 2>&1
  worktree-bind bind -C "$REPO" --state "$STATE" bob -b feat/bob >/dev/null
  worktree-bind bind -C "$REPO" --state "$STATE" eve -b feat/eve >/dev/null
  call() { printf '{"tool_name":"Bash","cwd":"%s","tool_input":{"command":"ls"}}' "$PWD" | AMP_AGENT=$1 worktree-bind agent-hook; }
  hitl-prompt suspend --state "$STATE" --agent bob --reason "out of hand"
  cd "$REPO.worktrees/bob"
  echo x >x
  git add x
  AMP_AGENT=bob run -1 git commit -m x
  grep -q "suspended by .*out of hand.*suspended" <<<"$output"
  run -2 call bob
  grep -q "out of hand" <<<"$output"
  cd "$REPO.worktrees/eve"
  call eve
  echo x >x
  git add x
  AMP_AGENT=eve git commit -qm x
  cd "$BATS_TEST_TMPDIR"
  hitl-prompt resume --state "$STATE" --agent bob
  [ ! -e "$REPO/.git/amp/suspended" ]
  cd "$REPO.worktrees/bob"
  AMP_AGENT=bob git commit -qm x
  # What cannot be read is not taken for empty.
  echo nonsense >"$REPO/.git/amp/suspended"
  AMP_AGENT=bob run -1 git commit --amend -m y
  grep -q bad_suspended <<<"$output"
}

@test "worktree-bind exec refuses a suspended agent, and ends its command; list and status say so" {
  workplace
  need_tool worktree-bind amp-ack
  worktree-bind bind -C "$REPO" --state "$STATE" bob -b feat/bob >/dev/null
  place=$(worktree-bind list -C "$REPO" --state "$STATE" --json | jq -r .worktree_id)
  hitl-prompt suspend --state "$STATE" --agent bob 2>/dev/null
  run -77 --separate-stderr worktree-bind exec --best-effort -C "$place" --state "$STATE" -- touch began
  [[ "$stderr" == *"suspended agent bob"* ]]
  [ ! -e "$place/began" ]
  run -0 amp-ack status --state "$STATE"
  [[ "$output" == *"suspended by $(id -un): agent bob"* ]]
  run -0 --separate-stderr hitl-prompt list --state "$STATE"
  [[ "$stderr" == *"1 suspension by people is in force"* ]]
  hitl-prompt resume --state "$STATE" --agent bob
  worktree-bind exec --best-effort -C "$place" --state "$STATE" -- \
    sh -c 'trap "" TERM; touch began; while :; do sleep 1000; done' 2>err 3>&- &
  pid=$!
  wait_until 30 test -e "$place/began"
  # Another agent's suspension does not touch it.
  hitl-prompt suspend --state "$STATE" --agent eve
  kill -0 "$pid"
  start=${EPOCHREALTIME/./}
  hitl-prompt suspend --state "$STATE" --agent bob
  rc=0
  wait "$pid" || rc=$?
  [ $((${EPOCHREALTIME/./} - start)) -lt 1500000 ]
  [ "$rc" = 137 ]
  grep -q "suspended agent bob" err
  pid=
}

@test "suspensions survive kill -9 at any moment" {
  workplace
  need_tool amp-ack
  mkdir -m 700 "$STATE"
  for i in {1..40}; do
    hitl-prompt suspend --state "$STATE" "T-2026-$((100 + i))" 2>/dev/null &
    kill -9 $! || [ $? -eq 1 ] # it may have ended
    wait $! || [ $? -eq 137 ]
  done
  hitl-prompt suspend --state "$STATE" T-2026-999
  hitl-prompt suspend --state "$STATE" --list --json >list
  [ "$(jq -r 'select(.name == "T-2026-999").scope' list)" = task ]
  [ "$(jq -r .name list | sort | uniq -d | wc -l)" = 0 ]
  hitl-prompt resume --state "$STATE" --all
  [ -z "$(hitl-prompt suspend --state "$STATE" --list)" ]
  amp-ack audit --state "$STATE" --verify
}
