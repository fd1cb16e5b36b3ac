#!/usr/bin/env bats
# task-dispatch run: the Executor around an agent's command.
# long
# walls

setup() {
  load ../lib
  load ../agents
  need jq git
  need_tool task-dispatch
}

@test "work is acknowledged, committed under the agent's name, measured, reported" {
  workplace
  agent work <<'EOS'
printf 'a\nb\n' >hello.txt
echo two >file.txt
echo '{"timestamp":"2026-02-26T14:28:00Z","action":"edit","file":"hello.txt","detail":"new"}' >>"$AMP_WORK_LOG"
echo "a plain line" >>"$AMP_WORK_LOG"
echo '{"self_assessment":{"criteria_met":[true],"notes":["n1"]}}' >"$AMP_RESULT"
EOS
  dispatch | run_agent --exec ./work
  got out.ndjson '.type == "ack" and .ack_stage == "READ" and .from == "executor"'
  got out.ndjson '.type == "task_result" and .payload.completion_status == "complete"
    and .payload.diff_summary == {files_changed: ["file.txt", "hello.txt"], lines_added: 3, lines_removed: 1}
    and .payload.self_assessment == {criteria_met: [true, null], notes: ["n1"]}
    and (.payload.work_log | map(.action)) == ["edit", "note", "confinement", "run_agent"]'
  [ "$(git -C "$REPO" log -1 --format='%an %ae %cn %s' feat/x)" = "executor executor@agents.invalid executor Write hello" ]
  [ "$(jq -r 'select(.type=="task_result").payload.commit_hash' out.ndjson)" = "$(git -C "$REPO" rev-parse feat/x)" ]
  amp-validate <out.ndjson >valid.ndjson
  cmp out.ndjson valid.ndjson
}

@test "each subtask of a dispatch gets its own run, commit and result" {
  workplace
  good_agent
  dispatch '.payload.subtasks += [{subtask_id: "T-2026-001-S2", description: "More", estimated_lines: 2}]' |
    run_agent --exec ./good
  [ "$(jq -r 'select(.type=="task_result").payload.subtask_id' out.ndjson | tr '\n' ' ')" = "T-2026-001-S1 T-2026-001-S2 " ]
  [ "$(git -C "$REPO" rev-list --count main..feat/x)" = 2 ]
  # One acknowledgement, and the last result counts from the base.
  [ "$(jq -r 'select(.type=="ack").type' out.ndjson | wc -l)" = 1 ]
  got out.ndjson '.payload.subtask_id? == "T-2026-001-S2" and .payload.diff_summary.lines_added == 2'
}

@test "a protected branch is refused: nack, critical escalation, the task is suspended" {
  workplace
  agent never <<'EOS'
touch "$AMP_STATE/ran"
EOS
  run -1 run_agent --exec ./never < <(dispatch '.payload.branch = "main"')
  got out.ndjson '.type == "nack" and .code == "branch_violation" and .retryable == false'
  got out.ndjson '.type == "escalation" and .payload.escalation_type == "branch_violation"
    and .payload.severity == "critical" and .payload.auto_suspended and .payload.triggered_by == "executor"'
  [ ! -e "$STATE/ran" ]
  # New work for the task is refused now.
  run_agent --exec ./never < <(dispatch)
  got out.ndjson '.type == "nack" and .code == "suspended" and .retryable'
  [ ! -e "$STATE/ran" ]
}

@test "branches that amp.json protects are refused like main" {
  workplace
  good_agent
  mkdir -p "$STATE" && chmod 700 "$STATE"
  echo '{"branches":{"protected":["release/*"]}}' >amp.json
  run run_agent --config amp.json --exec ./good < <(dispatch '.payload.branch = "release/1"')
  got out.ndjson '.type == "escalation" and .payload.escalation_type == "branch_violation"'
  run -1 git -C "$REPO" rev-parse -q --verify refs/heads/release/1
}

@test "empty acceptance criteria are sent back to be completed" {
  workplace
  good_agent
  run -1 run_agent --exec ./good < <(dispatch '.payload.acceptance_criteria = []')
  got out.ndjson '.type == "nack" and .code == "empty_acceptance_criteria" and .retryable
    and (.message | test("missing"))'
  got_no out.ndjson '.type == "task_result"'
}

@test "no change is partial, with a blocker" {
  workplace
  agent idle <<'EOS'
true
EOS
  dispatch | run_agent --exec ./idle
  got out.ndjson '.type == "task_result" and .payload.completion_status == "partial"
    and (.payload.blockers | length) > 0 and .payload.diff_summary.files_changed == []'
}

@test "another exit status is a failed result with its last words; 75 is repeated" {
  workplace
  agent fails <<'EOS'
echo x >x
echo "cannot go on" >&2
exit 3
EOS
  dispatch | run_agent --exec ./fails
  got out.ndjson '.type == "task_result" and .payload.completion_status == "failed"
    and (.payload.blockers[0] | test("exit 3: cannot go on"))'

  agent later <<'EOS'
[ -e "$AMP_STATE/second" ] && { echo y >y; exit 0; }
touch "$AMP_STATE/second"
echo '{"retry_after_sec":0}' >"$AMP_RESULT"
exit 75
EOS
  dispatch '.task_id = "T-2026-002" | .msg_id |= sub("001-"; "002-") | .payload.branch = "feat/y"
    | .payload.subtasks[0].subtask_id = "T-2026-002-S1"' | run_agent --exec ./later
  got out.ndjson '.payload.subtask_id? == "T-2026-002-S1" and .payload.completion_status == "complete"'
}

@test "a command that is not found or not executable is refused at start" {
  workplace
  echo "not a program" >noexec
  mkdir folder
  for verb in run review; do
    for command in no-such-command-here ./no-such-file ./noexec "$PWD/noexec" ./folder; do
      run -64 --separate-stderr task-dispatch $verb --state "$STATE" --exec "$command" </dev/null
      [[ "$stderr" == *"--exec: $command: "* ]]
    done
  done
  [[ "$stderr" == *"not executable"* ]]
  [ ! -e "$STATE" ]
}

@test "a command that cannot be started after all is the machinery's failure" {
  not_under_valgrind "it ends where execve fails"
  workplace
  printf '#!/no/such/interpreter\n' >noexec
  chmod +x noexec
  dispatch | run_agent --retries 1 --exec ./noexec
  got out.ndjson '.type == "task_result" and .payload.completion_status == "failed"'
  grep -q "not counted against the agent; repeating" err
  got out.ndjson '.type == "task_result" and (.payload.blockers | join(" ") | test("could not be started"))'
}

@test "an agent that is killed is repeated from where it began, and nobody is blamed" {
  workplace
  agent crash <<'EOS'
echo more >>file.txt
git commit -qam "half of it"
echo rest >>file.txt
[ -e "$AMP_STATE/second" ] && exit 0
touch "$AMP_STATE/second"
kill -KILL $$
EOS
  dispatch | run_agent --exec ./crash
  got out.ndjson '.type == "task_result" and .payload.completion_status == "complete"
    and .payload.diff_summary.lines_added == 2'
  [ "$(git -C "$REPO" show feat/x:file.txt | tr '\n' ' ')" = "one more rest " ]
  [ "$(jq -r 'select(.type=="task_result").type' out.ndjson | wc -l)" = 1 ]
}

@test "a time limit ends the agent with all that it started" {
  workplace
  agent slow <<'EOS'
trap '' TERM
(setsid sh -c 'trap "" TERM; echo $$ >'"$AMP_STATE"'/daemon; while :; do sleep 1; done' >/dev/null 2>&1 &)
while [ ! -s "$AMP_STATE/daemon" ]; do :; done
sleep 1000
EOS
  dispatch | run_agent --timeout 2s --grace 100ms --retries 0 --exec ./slow
  got out.ndjson '.type == "task_result" and .payload.completion_status == "failed"
    and (.payload.blockers | join(" ") | test("time limit"))'
  gone "$(cat "$STATE/daemon")"
}

@test "a daemon that the agent left behind ends with the attempt" {
  workplace
  agent daemon <<'EOS'
(setsid sh -c 'echo $$ >'"$AMP_STATE"'/daemon; exec sleep 1000' >/dev/null 2>&1 &)
while [ ! -s "$AMP_STATE/daemon" ]; do :; done
echo x >x
EOS
  dispatch | run_agent --exec ./daemon
  got out.ndjson '.payload.completion_status? == "complete"'
  gone "$(cat "$STATE/daemon")"
}

@test "an interrupt ends the agent's tree, keeps the job, and the next start finishes it" {
  workplace
  agent waits <<'EOS'
[ -e "$AMP_STATE/second" ] && { echo x >x; exit 0; }
touch "$AMP_STATE/second"
sleep 1000 &
echo "$!" >"$AMP_STATE/child"
wait
EOS
  dispatch >in.ndjson
  env --default-signal=INT task-dispatch run --state "$STATE" --exec ./waits <in.ndjson >first.ndjson 2>err 3>&- &
  pid=$!
  wait_until 30 test -s "$STATE/child"
  kill -INT $pid
  rc=0
  wait $pid || rc=$?
  [ $rc = 130 ]
  gone "$(cat "$STATE/child")"
  got first.ndjson '.type == "ack"'
  # Nothing comes in any more: the job was kept.
  run_agent --exec ./waits </dev/null
  got out.ndjson '.type == "task_result" and .payload.completion_status == "complete"'
}

@test "killed in the middle, run begins the attempt again and loses nothing" {
  workplace
  agent waits <<'EOS'
[ -e "$AMP_STATE/second" ] && { echo x >x; exit 0; }
touch "$AMP_STATE/second"
echo $$ >"$AMP_STATE/child"
echo dirt >dirt
exec sleep 1000
EOS
  dispatch >in.ndjson
  task-dispatch run --state "$STATE" --exec ./waits <in.ndjson >first.ndjson 2>err 3>&- &
  pid=$!
  wait_until 30 test -s "$STATE/child"
  kill -KILL $pid
  ends 137 wait $pid
  wait_until 30 gone "$(cat "$STATE/child")"
  run_agent --exec ./waits <in.ndjson
  got out.ndjson '.type == "ack"'
  got out.ndjson '.type == "task_result" and .payload.diff_summary.files_changed == ["x"]'
}

@test "killed in the middle, what the agent had started is ended by the next run" {
  workplace
  agent waits <<'EOS'
[ -e "$AMP_STATE/second" ] && { echo x >x; exit 0; }
touch "$AMP_STATE/second"
(setsid sh -c 'echo $$ >"$AMP_STATE/daemon"; while :; do echo dirt >>late; command sleep 0.05; done' >/dev/null 2>&1 &)
exec sleep 1000
EOS
  dispatch >in.ndjson
  task-dispatch run --state "$STATE" --exec ./waits <in.ndjson >first.ndjson 2>err 3>&- &
  pid=$!
  wait_until 30 test -s "$STATE/daemon"
  kill -KILL $pid
  ends 137 wait $pid
  run -1 gone "$(cat "$STATE/daemon")"
  run_agent --exec ./waits </dev/null
  gone "$(cat "$STATE/daemon")"
  got out.ndjson '.type == "task_result" and .payload.diff_summary.files_changed == ["x"]'
}

@test "two processes cannot act as the same agent" {
  workplace
  good_agent
  mkfifo in
  task-dispatch run --state "$STATE" --in in --exec ./good >first.ndjson 2>err 3>&- &
  pid=$!
  wait_until 30 grep -qs RUNNABLE "$STATE"/log/000001.ndjson "$STATE"/log/000000.ndjson
  run -75 --separate-stderr task-dispatch run --state "$STATE" --exec ./good </dev/null
  [[ "$stderr" == *"--agent"* ]]
  task-dispatch run --state "$STATE" --agent second --exec ./good </dev/null
  : >in
  wait $pid
}

@test "the same dispatch again is acknowledged again and not worked on again" {
  workplace
  good_agent
  dispatch >in.ndjson
  run_agent --exec ./good <in.ndjson
  cp out.ndjson first.ndjson
  run_agent --exec ./good <in.ndjson
  got out.ndjson '.type == "ack"'
  [ "$(git -C "$REPO" rev-list --count main..feat/x)" = 1 ]
  # The result nobody acknowledged is sent again, byte for byte.
  [ "$(grep task_result out.ndjson)" = "$(grep task_result first.ndjson)" ]
}

@test "an acknowledged result is not sent again" {
  workplace
  good_agent
  dispatch | run_agent --exec ./good
  jq -c 'select(.type=="task_result") | {protocol_version: "AMP/1.0", type: "ack", ref_msg_id: .msg_id,
    task_id, from: "coordinator", ack_stage: "READ", timestamp}' out.ndjson >ack.ndjson
  # At its start it still sends the result, before it reads that it arrived.
  run_agent --exec ./good <ack.ndjson
  run_agent --exec ./good </dev/null
  [ ! -s out.ndjson ]
}

@test "the trip-wire: main moved by the agent is a critical branch_violation" {
  workplace
  agent evil <<'EOS'
echo x >x
git add x && git commit -qm "sneaky"
git update-ref refs/heads/main HEAD
EOS
  dispatch | run_agent --exec ./evil
  got out.ndjson '.type == "escalation" and .payload.escalation_type == "branch_violation"
    and .payload.severity == "critical" and (.payload.description | test("refs/heads/main.*reflog names executor"))'
  got out.ndjson '.type == "task_result" and .payload.completion_status == "failed"'
}

# moved BODY: a move of an unconfined agent that the trip-wire has to find.
moved() {
  rm -rf "$REPO" "$REPO.worktrees" "$STATE" origin.git
  workplace
  git init -q --bare origin.git
  git -C "$REPO" remote add origin "$PWD/origin.git"
  git -C "$REPO" push -q origin main
  git -C "$REPO" branch other
  agent evil <<<"echo x >x; git add x; git commit -qm x
cd '$REPO'; $1"
  dispatch | run_agent --exec ./evil
  got out.ndjson '.type == "escalation" and .payload.escalation_type == "branch_violation"
    and (.payload.description | test("'"$2"'"))'
}

@test "the trip-wire compares refs by value, whoever the reflog names" {
  workplace
  moved 'GIT_COMMITTER_NAME=human GIT_COMMITTER_EMAIL=h@example.org git commit -q --allow-empty -m m' 'refs/heads/main moved.*names human'
  # A ref's file and its log are written together.
  moved 'new=$(git rev-parse feat/x); old=$(git rev-parse main); printf "%s\\n" "$new" >.git/refs/heads/main
    printf "%s %s human <h@example.org> 1 +0000\\tcommit: m\\n" "$old" "$new" >>.git/logs/refs/heads/main' 'refs/heads/main moved.*names human'
  moved 'git symbolic-ref refs/heads/main refs/heads/other' 'refs/heads/main moved.*to ref: refs/heads/other'
  moved 'git update-ref -d refs/heads/main' 'refs/heads/main moved.*to nothing'
  moved 'git update-ref refs/remotes/origin/main feat/x' 'refs/remotes/origin/main moved'
  moved 'git send-pack -q "$(git remote get-url origin)" +feat/x:main' 'remote origin: refs/heads/main moved'
}

@test "a person's recorded override explains a move, and other branches are free" {
  workplace
  worktree-bind --state "$STATE" -C "$REPO" hooks install
  worktree-bind --state "$STATE" -C "$REPO" hooks override main --agent executor --for 1h --reason 'by hand'
  agent human <<'EOS'
echo x >x
cd "$AMP_STATE/../repo" && git branch free HEAD && git update-ref refs/heads/main feat/x
git update-ref refs/heads/main "$(git commit-tree -p main -m m 'main^{tree}')"
EOS
  dispatch | run_agent --exec ./human
  got_no out.ndjson '.type == "escalation"'
  [ "$(git -C "$REPO" log -1 --format=%s main)" = m ]
}

@test "forbidden files and files beyond the risk level escalate permission_denied" {
  workplace
  agent plist <<'EOS'
mkdir -p Sources && echo x >Sources/Info.plist
EOS
  dispatch '.payload.forbidden_actions = ["modify Info.plist"]' | run_agent --exec ./plist
  got out.ndjson '.type == "escalation" and .payload.escalation_type == "permission_denied"
    and (.payload.description | test("Info.plist"))'
  got out.ndjson '.type == "task_result" and .payload.completion_status == "failed"'

  agent lock <<'EOS'
mkdir -p deps && echo x >deps/a.lock
EOS
  echo '{"risk":{"low":{"forbid":["deps/"]}}}' >amp.json
  dispatch '.task_id = "T-2026-002" | .msg_id = "task_dispatch-T-2026-002-1" | .payload.branch = "feat/y"' >two
  task-dispatch run --state "$BATS_TEST_TMPDIR/state2" --config amp.json --exec ./lock <two >out.ndjson 2>err
  got out.ndjson '.payload.escalation_type? == "permission_denied"'
}

@test "the agent's environment is the contract's, and pushes are refused" {
  workplace
  git init -q --bare origin.git
  git -C "$REPO" remote add origin "$BATS_TEST_TMPDIR/origin.git"
  agent look <<'EOS'
echo x >x && git add x && git commit -qm x
{ env -0 | tr '\n\0' ' \n'; } | grep -E '^(AMP_|GIT_|CI|NO_COLOR|TERM)' | sort >"$AMP_STATE/env"
ls -l /proc/self/fd | wc -l >"$AMP_STATE/fds"
cat >"$AMP_STATE/stdin"
cp "$AMP_CRITERIA" "$AMP_STATE/criteria"
git push origin HEAD:refs/heads/stolen 2>"$AMP_STATE/push" && touch "$AMP_STATE/pushed"
tty >/dev/null && touch "$AMP_STATE/tty"
true
EOS
  dispatch >in.ndjson
  AMP_FOO=1 GIT_DIR=/nowhere GIT_INDEX_FILE=/nowhere/index \
    run_agent --exec ./look <in.ndjson
  cmp "$STATE/stdin" <(tr -d '\n' <in.ndjson)
  [ "$(jq -c . "$STATE/criteria")" = '["it works","tests pass"]' ]
  for v in AMP_MESSAGE AMP_ROLE=executor AMP_AGENT=executor AMP_TASK_ID=T-2026-001 \
    AMP_SUBTASK_ID=T-2026-001-S1 AMP_ATTEMPT=1 AMP_WORKTREE= AMP_BRANCH=feat/x AMP_BASE= \
    AMP_RESULT="$STATE" AMP_WORK_LOG= AMP_STATE="$STATE" NO_COLOR=1 TERM=dumb CI=1 \
    GIT_TERMINAL_PROMPT=0 GIT_EDITOR=true GIT_AUTHOR_NAME=executor GIT_COMMITTER_EMAIL=executor@; do
    grep -q "^$v" "$STATE/env" || { echo "missing $v"; cat "$STATE/env"; false; }
  done
  run -1 grep -qE '^(AMP_FOO|GIT_DIR|GIT_INDEX_FILE)=' "$STATE/env"
  [ ! -e "$STATE/pushed" ]
  [ -z "$(git -C origin.git for-each-ref)" ]
  [ ! -e "$STATE/tty" ]
}

@test "an answer that breaks its schema is a failed result that says where" {
  workplace
  agent odd <<'EOS'
echo x >x
echo '{"self_assessment":{"criteria_met":["yes"]}}' >"$AMP_RESULT"
EOS
  dispatch | run_agent --exec ./odd
  got out.ndjson '.payload.completion_status? == "failed" and (.payload.blockers[0] | test("criteria_met"))'
}

@test "a dispatch whose id has a NUL is not answered, and the next one is done" {
  workplace
  agent work <<'EOS'
echo hi >hello.txt
EOS
  dispatch >good
  sed 's/"msg_id":"[^"]*/&\\u0000x/' good >in.ndjson
  cat good >>in.ndjson
  run -1 task-dispatch run --state "$STATE" --pause 10ms --exec ./work <in.ndjson
  [[ $output == *bad_msg_id* && $output != *'"nack"'* && $output != *refused* ]]
  [[ $output == *'"type":"task_result"'* ]]
}

@test "an answer that is a FIFO or a link does not hang or lead astray" {
  workplace
  agent odd <<'EOS'
echo x >x
mkfifo "$AMP_RESULT"
ln -s /etc/passwd "$AMP_WORK_LOG"
EOS
  dispatch | run_agent --exec ./odd
  got out.ndjson '.payload.completion_status? == "failed"'
  run -1 grep -q root: out.ndjson
}

@test "what the agent prints is kept up to a bound and never reaches our stdout" {
  workplace
  agent loud <<'EOS'
echo x >x
head -c 300000 /dev/zero | tr '\0' 'y'
printf '{"type":"task_result"}\n'
EOS
  dispatch | run_agent --max-output 1000 --exec ./loud
  [ "$(wc -l <out.ndjson)" = 2 ]
  [ "$(stat -c %s "$STATE"/run/*/*/stdout)" = 1000 ]
}

@test "an agent that leaves its branch has not done the task" {
  workplace
  agent wander <<'EOS'
echo x >x
git checkout -q -b elsewhere
EOS
  dispatch | run_agent --exec ./wander
  got out.ndjson '.payload.completion_status? == "failed" and (.payload.blockers[0] | test("left the branch"))'
}

@test "work that came through an inbox is reported once when its agent falls silent" {
  workplace
  need_tool amp-route amp-ack
  agent waits <<'EOS'
echo $$ >"$AMP_STATE/child"
exec sleep 1000
EOS
  dispatch | amp-route --state "$STATE" -r '* => inbox:executor'
  amp-route inbox executor --state "$STATE" >in.ndjson
  env --default-signal=INT task-dispatch run --state "$STATE" --exec ./waits <in.ndjson >out.ndjson 2>err 3>&- &
  pid=$!
  wait_until 30 test -s "$STATE/child"
  amp-ack sweep --state "$STATE" --now "$(date -u -d '+2000 seconds' +%FT%TZ)" >told
  amp-ack sweep --state "$STATE" --now "$(date -u -d '+9000 seconds' +%FT%TZ)" >>told
  jq -se 'length == 1 and (.[0].payload | .escalation_type == "heartbeat_timeout" and .affected_msgs == [] and
    (.description | startswith("Agent executor, at work on T-2026-001")))' told
  kill -INT $pid
  wait $pid || [ $? = 130 ]
}

@test "a suspension in the middle ends the agent; the job waits and goes on after it" {
  workplace
  need_tool hitl-prompt
  agent waits <<'EOS'
[ -e "$AMP_STATE/second" ] && { echo x >x; exit 0; }
touch "$AMP_STATE/second"
echo $$ >"$AMP_STATE/child"
exec sleep 1000
EOS
  mkfifo in
  task-dispatch run --state "$STATE" --grace 100ms --in in --exec ./waits >out.ndjson 2>err 3>&- &
  pid=$!
  exec 4>in
  dispatch >&4
  wait_until 30 test -s "$STATE/child"
  : >none
  run -1 hitl-prompt --state "$STATE" --answer none < <(escalation)
  wait_until 30 gone "$(cat "$STATE/child")"
  wait_until 30 grep -q "is repeated later" err
  exec 4>&-
  rc=0
  wait $pid || rc=$?
  [ $rc = 75 ]
  got_no out.ndjson '.type == "task_result"'
}

@test "a suspended task names itself where other work waits for it; suspension.scope: task lets that go on" {
  workplace
  need_tool hitl-prompt
  good_agent
  second() { dispatch '.task_id = "T-2026-002" | .msg_id |= sub("001-"; "002-") | .payload.branch = "feat/y"'; }
  # The executor had the task last.
  dispatch | run_agent --exec ./good
  escalation >question
  run -1 --separate-stderr hitl-prompt --state "$STATE" --answer /dev/null <question
  [[ "$stderr" == *"task T-2026-001 suspends its agent executor because of escalation-T-2026-001-"* ]]
  [[ "$stderr" == *"work on all other tasks also waits"*"suspension.scope: task"* ]]
  second >in.ndjson
  run -75 run_agent --exec ./good <in.ndjson
  got_no out.ndjson '.type == "task_result" and .task_id == "T-2026-002"'
  [ "$(grep -c 'waits: task T-2026-001 suspends agent executor until the admin decides escalation-' err)" = 1 ]
  cat "$STATE"/log/*.ndjson | jq -es 'any(.[]; .key == "agent.executor" and .event == "suspend"
    and .state.work.suspended.task == "T-2026-001")' >/dev/null
  # Decided, and asked again where the scope is the task.
  mkdir -p "$XDG_CONFIG_HOME/amp"
  echo '{"suspension":{"scope":"task"}}' >"$XDG_CONFIG_HOME/amp/amp.json"
  echo resume >answers
  hitl-prompt --state "$STATE" --answer answers </dev/null >decision
  task-dispatch coordinate --state "$STATE" <decision >/dev/null
  escalation >question
  run -1 --separate-stderr hitl-prompt --state "$STATE" --answer /dev/null <question
  [[ "$stderr" != *"suspends its agent"* ]]
  run_agent --exec ./good </dev/null
  got out.ndjson '.type == "task_result" and .task_id == "T-2026-002" and .payload.completion_status == "complete"'
  # Its own work waits all the same.
  run -0 run_agent --exec ./good < <(dispatch)
  got out.ndjson '.type == "nack" and .code == "suspended"'
  echo '{"suspension":{"scope":"all"}}' >"$XDG_CONFIG_HOME/amp/amp.json"
  run -78 run_agent --exec ./good </dev/null
}

@test "an answer that breaks a rule of the result is refused with its field, its rule and its file" {
  workplace
  agent odd <<'EOS'
echo x >>x
case $AMP_TASK_ID in
*1) echo '{"completion_status":"partial"}' ;;
*2) echo '{"completion_status":"complete","blockers":["no disk"]}' ;;
*3) echo '{"completion_status":"done"}' ;;
*4) echo '{"blockers":["no disk"]}' ;;
esac >"$AMP_RESULT"
EOS
  for i in 1 2 3 4; do
    dispatch ".task_id = \"T-2026-00$i\" | .msg_id |= sub(\"001-\"; \"00$i-\") | .payload.branch = \"feat/$i\""
  done | run_agent --exec ./odd
  refused() {
    got out.ndjson ".task_id == \"T-2026-00$1\" and .payload.completion_status? == \"failed\"
      and (.payload.blockers[0] | test(\"answer is invalid: $2.*schemas/agent/result.json, in $STATE/run/T-2026-00$1/.*/result.json\"))"
  }
  refused 1 "blockers: required"
  refused 2 "blockers: maxItems"
  refused 3 "completion_status: enum"
  # Blockers alone say that it is not complete.
  got out.ndjson '.task_id == "T-2026-004" and .payload.completion_status? == "partial" and .payload.blockers == ["no disk"]'
}

@test "messages for others pass through byte for byte" {
  workplace
  good_agent
  escalation '.payload.description = "caf\u00e9  two spaces"' >in.ndjson
  run_agent --exec ./good <in.ndjson
  cmp in.ndjson out.ndjson
}

@test "a reader that goes away costs nothing: the next run sends what was not read" {
  workplace
  good_agent
  dispatch >in.ndjson
  run -0 bash -c 'task-dispatch run --state "$1" --exec ./good <in.ndjson 2>err | true' - "$STATE"
  run_agent --exec ./good </dev/null
  got out.ndjson '.type == "task_result" and .payload.completion_status == "complete"'
  [ "$(git -C "$REPO" rev-list --count main..feat/x)" = 1 ]
}

@test "usage: no state, no command" {
  workplace
  run -64 task-dispatch run --exec true </dev/null
  run -64 task-dispatch run --state "$STATE" </dev/null
}

@test "two loops with state directories of their own do not share a worktree" {
  workplace
  good_agent
  cat >waits <<'A'
#!/bin/sh
echo mine >precious
echo "$AMP_WORKTREE" >"$TOP/started"
while [ ! -e "$TOP/go" ]; do command sleep 0.05; done
exec "$TOP/good"
A
  chmod +x waits
  export TOP=$PWD
  dispatch >in.ndjson
  task-dispatch run --state "$STATE" --exec ./waits <in.ndjson >first.ndjson 2>err 3>&- &
  pid=$!
  wait_until 30 test -s started
  dispatch '.task_id = "T-2026-002" | .msg_id = "task_dispatch-T-2026-002-1" | .payload.branch = "agent/other"
    | .payload.subtasks[0].subtask_id = "T-2026-002-S1"' >other.ndjson
  task-dispatch run --state "$STATE.other" --exec ./good <other.ndjson >second.ndjson
  got second.ndjson '.type == "task_result" and .payload.completion_status == "complete"'
  : >go
  wait $pid
  got first.ndjson '.type == "task_result" and .payload.completion_status == "complete"
    and (.payload.diff_summary.files_changed | index("precious"))'
}

@test "a worktree that an earlier state directory left is taken over; what nobody committed stays" {
  workplace
  good_agent
  dispatch >in.ndjson
  git -C repo worktree add -q "$PWD/repo.worktrees/executor" -b left main
  echo executor >"$(git -C repo.worktrees/executor rev-parse --absolute-git-dir)/amp-agent"
  task-dispatch run --state "$STATE" --exec ./good <in.ndjson >out.ndjson
  got out.ndjson '.type == "task_result" and .payload.completion_status == "complete"'
  [ ! -e repo.worktrees/executor ]

  git -C repo worktree add -q "$PWD/repo.worktrees/executor" left
  echo executor >"$(git -C repo.worktrees/executor rev-parse --absolute-git-dir)/amp-agent"
  echo mine >repo.worktrees/executor/precious
  run -0 --separate-stderr task-dispatch run --state "$STATE.other" --exec ./good <in.ndjson
  jq -es 'any(.[]; .type == "task_result" and .payload.completion_status == "complete")' <<<"$output"
  [[ "$stderr" == *": kept"* ]]
  [ "$(cat repo.worktrees/executor/precious)" = mine ]
}

@test "an agent that does away with its worktree has failed; the loop goes on" {
  workplace
  good_agent
  cat >gone <<'A'
#!/bin/sh
case $AMP_BRANCH in
*dir) rm -rf "$AMP_WORKTREE" ;;
*file) rm .git ;;
*own) rm .git && git init -q -b "$AMP_BRANCH" && git config user.email a@example.org &&
  git config user.name a && git add -A && git commit -qm mine ;;
*) exec "$TOP/good" ;;
esac
A
  chmod +x gone
  export TOP=$PWD
  n=1
  for b in dir file own good; do
    dispatch ".payload.branch = \"agent/$b\" | .task_id = \"T-2026-00$n\" | .msg_id = \"task_dispatch-T-2026-00$n-1\"
      | .payload.subtasks[0].subtask_id = \"T-2026-00$n-S1\""
    n=$((n + 1))
  done >in.ndjson
  run_agent --exec ./gone <in.ndjson
  jq -es '[.[] | select(.type == "task_result") | .payload.completion_status] ==
    ["failed", "failed", "failed", "complete"]' out.ndjson
  # What has no .git that leads back is nobody's, and stays.
  [ -e repo.worktrees/executor/file.txt ]
  [ ! -e repo.worktrees/executor/.git ]
  [ -d repo.worktrees/executor-2/.git ]
  [ ! -e repo.worktrees/executor-3 ]
}

@test "an agent that moves its worktree's entry gets nothing committed or removed elsewhere" {
  workplace
  mkdir victim
  echo mine >victim/precious
  cat >forge <<'A'
#!/bin/sh
echo x >x
entry=$(git rev-parse --absolute-git-dir)
echo "$TOP/victim/.git" >"$entry/gitdir"
case $AMP_BRANCH in
*linked) cp .git "$TOP/victim/.git" ;;
*again) [ ! -e "$TOP/once" ] && touch "$TOP/once" && exit 75 ;;
esac
exit 0
A
  chmod +x forge
  export TOP=$PWD
  n=1
  for b in plain linked again; do
    dispatch ".payload.branch = \"agent/$b\" | .task_id = \"T-2026-00$n\" | .msg_id = \"task_dispatch-T-2026-00$n-1\"
      | .payload.subtasks[0].subtask_id = \"T-2026-00$n-S1\""
    n=$((n + 1))
  done >in.ndjson
  run_agent --exec ./forge <in.ndjson
  jq -es '[.[] | select(.type == "task_result") | .payload.completion_status] ==
    ["failed", "failed", "failed"]' out.ndjson
  grep -q "its .git does not belong" err
  [ "$(cat victim/precious)" = mine ]
  [ -z "$(git -C repo log --branches --format=%H -- precious)" ]
}

@test "an agent whose .git leads to another repository gets nothing committed there" {
  workplace
  repo other
  git -C other switch -qc feat/x
  cat >lead <<'A'
#!/bin/sh
echo x >x
echo "gitdir: $TOP/other/.git" >.git
A
  chmod +x lead
  export TOP=$PWD
  before=$(git -C other rev-parse feat/x)
  run_agent --exec ./lead < <(dispatch)
  got out.ndjson '.type == "task_result" and .payload.completion_status == "failed"'
  [ "$(git -C other rev-parse feat/x)" = "$before" ]
}

# bound NAME BRANCH: the agent's worktree, bound in $STATE, with a file that nobody committed.
bound() {
  worktree-bind -C "$REPO" --state "$STATE" bind "$1" -b "$2"
  echo mine >"$REPO.worktrees/$1/precious"
}

@test "work that nobody committed on another branch is kept: a ref, the folder, a new worktree" {
  need_tool worktree-bind
  workplace
  good_agent
  bound executor feat/old
  echo staged >"$REPO.worktrees/executor/file.txt"
  git -C "$REPO.worktrees/executor" add file.txt
  echo changed >"$REPO.worktrees/executor/file.txt"
  run_agent --exec ./good < <(dispatch)
  got out.ndjson '.type == "task_result" and .payload.completion_status == "complete"'
  [ "$(cat repo.worktrees/executor/precious)" = mine ]
  [ "$(git -C repo.worktrees/executor symbolic-ref HEAD)" = refs/heads/feat/old ]
  ref=$(grep -o 'refs/amp/kept/executor/[^ ;]*' err)
  grep -q "$PWD/repo.worktrees/executor: kept" err
  [ "$(git -C repo show "$ref:precious")" = mine ]
  [ "$(git -C repo show "$ref:file.txt")" = changed ]
  [ "$(git -C repo show "$ref^2:file.txt")" = staged ]
  [ "$(git -C repo rev-parse "$ref^1")" = "$(git -C repo rev-parse feat/old)" ]
  [ "$(git -C repo log -1 --format=%s feat/x)" = "Write hello" ]
  [ -z "$(git -C repo log --format=%H feat/x -- precious)" ]
}

@test "a commit that no branch has is kept under a ref when its worktree goes" {
  need_tool worktree-bind
  workplace
  good_agent
  worktree-bind -C "$REPO" --state "$STATE" bind executor -b feat/old
  git -C repo.worktrees/executor switch -q --detach
  git -C repo.worktrees/executor commit -q --allow-empty -m lonely
  lonely=$(git -C repo.worktrees/executor rev-parse HEAD)
  run_agent --exec ./good < <(dispatch)
  got out.ndjson '.type == "task_result" and .payload.completion_status == "complete"'
  [ "$(git -C repo for-each-ref --format='%(objectname)' refs/amp/kept/executor)" = "$lonely" ]
}

@test "what a repeated attempt throws away is kept under a ref: files, and commits of the branch" {
  workplace
  agent twice <<'EOS'
if [ ! -e "$TOP/once" ]; then
  touch "$TOP/once"
  git commit -q --allow-empty -m "first attempt"
  echo one >precious
  git init -q nested && echo deep >nested/deep
  [ "$MODE" = plain ] && rm -r nested
  exit 75
fi
echo two >hello.txt
EOS
  export TOP=$PWD MODE=plain
  run_agent --exec ./twice < <(dispatch)
  got out.ndjson '.type == "task_result" and .payload.completion_status == "complete"'
  ref=$(grep -o 'refs/amp/kept/executor/[^ ;]*' err | head -1)
  [ "$(git -C repo show "$ref:precious")" = one ]
  [ "$(git -C repo log -1 --format=%s "$ref^")" = "first attempt" ]
  [ "$(git -C repo rev-list --count main..feat/x)" = 1 ]
  [ ! -e repo.worktrees/executor ]

  # A repository inside cannot be copied to a ref: the folder stays, and gives the branch free.
  rm once
  MODE=nested
  run_agent --exec ./twice < <(dispatch '.task_id = "T-2026-002" | .payload.branch = "feat/y"
    | .msg_id = "task_dispatch-T-2026-002-1" | .payload.subtasks[0].subtask_id = "T-2026-002-S1"')
  got out.ndjson '.type == "task_result" and .payload.completion_status == "complete"'
  grep -q "$PWD/repo.worktrees/executor: kept" err
  [ "$(cat repo.worktrees/executor/nested/deep)" = deep ]
  [ "$(cat repo.worktrees/executor/precious)" = one ]
}

@test "a run in a copied repository, with a copied state, leaves the original's worktree alone" {
  need_tool worktree-bind
  workplace
  good_agent
  STATE=$REPO/.git/run-state
  worktree-bind -C "$REPO" --state "$STATE" bind executor -b feat/old
  cp -a repo copy
  STATE=$PWD/copy/.git/run-state
  REPO=$PWD/copy
  run_agent --exec ./good < <(dispatch)
  got out.ndjson '.type == "task_result" and .payload.completion_status == "complete"'
  [ "$(git -C repo.worktrees/executor symbolic-ref HEAD)" = refs/heads/feat/old ]
  [ -e repo/.git/worktrees/executor/amp-agent ]
}

@test "a dispatch for which no directory of the agent is free is refused, with what to do" {
  workplace
  good_agent
  mkdir -p repo.worktrees/executor
  echo mine >repo.worktrees/executor/precious
  for i in 2 3 4 5 6 7 8 9; do cp -r repo.worktrees/executor "repo.worktrees/executor-$i"; done
  run_agent --exec ./good < <(dispatch)
  got out.ndjson '.type == "task_result" and .payload.completion_status == "failed"
    and (.payload.blockers | tostring | test("no free directory for executor"))'
  [ "$(cat repo.worktrees/executor*/precious | sort -u)" = mine ]
  [ ! -e repo.worktrees/executor-10 ]
}

@test "a state that lasts for longer than its time limit fails the agent, and the admin hears of it once" {
  workplace
  agent limited <<'EOS'
echo '{"retry_after_sec": 600}' >"$AMP_RESULT"
exit 75
EOS
  mkfifo in
  task-dispatch run --state "$STATE" --in in --exec ./limited >out.ndjson 2>err 3>&- &
  pid=$!
  exec 4>in
  dispatch >&4
  wait_until 30 grep -q '"to":"WAITING_RESOURCES"' "$STATE"/log/*
  kill -9 $pid
  exec 4>&-
  wait $pid || :
  amp-ack sweep --state "$STATE" --now 2099-01-01T00:00:00Z >told
  jq -c 'select(.msg.payload.event? == "agent_failed") | [.to, (.msg.payload | .agent_id, .state, .error_code)]' told >failed
  [ "$(cat failed)" = '["admin","executor","WAITING_RESOURCES","resource_timeout"]' ]
  amp-ack sweep --state "$STATE" --now 2099-01-01T00:00:00Z >told
  [ -z "$(jq -c 'select(.msg.payload.event? == "agent_failed")' told)" ]
}

@test "an agent whose output had no reader for too long takes work once there is one" {
  workplace
  agent hello <<<'echo hello >hello'
  mkfifo out
  dispatch >in
  task-dispatch run --state "$STATE" --in in --out out --exec ./hello 2>err 3>&- &
  pid=$!
  begun() { grep -qs '"to":"INITIALIZING"' "$STATE"/log/*; }
  wait_until 30 begun
  amp-ack sweep --state "$STATE" --now 2099-01-01T00:00:00Z >told
  grep -q '"error_code":"init_timeout"' told
  timeout 60 cat out >out.ndjson
  wait $pid
  got out.ndjson '.type == "task_result" and .payload.completion_status == "complete"'
}
