#!/usr/bin/env bats
# Several agents of a role: task-dispatch loop -j, run -j and review -j.

load ../lib

setup() {
  need_tool task-dispatch amp-ack amp-route hitl-prompt
  cd "$BATS_TEST_TMPDIR" || return 1
  unset AMP_STATE AMP_IDENTITY
  export TMPDIR=$BATS_TEST_TMPDIR/tmp
  mkdir "$TMPDIR"
  repo repo
  cd repo || return 1
  # An executor that notes the start and the end of its work, and a reviewer that likes an even number of lines.
  cat >../executor <<A
#!/bin/sh
echo "+ \$AMP_AGENT \$AMP_TASK_ID" >>$BATS_TEST_TMPDIR/at_work
# NEED: so many work at once before one of them goes on.
until [ "\$(grep -c '^+' $BATS_TEST_TMPDIR/at_work)" -ge "\${NEED:-0}" ]; do sleep 0.05; done
sleep "\${WORKS:-0.3}"
echo "line \$AMP_ATTEMPT" >>work
echo "- \$AMP_AGENT \$AMP_TASK_ID" >>$BATS_TEST_TMPDIR/at_work
A
  cat >../reviewer <<'A'
#!/bin/sh
[ $(($(wc -l <work) % 2)) -eq 0 ]
A
  chmod +x ../executor ../reviewer
  : >../at_work
}

# tasks N [BRANCH]: N files with tasks, on branches of their own or all on one.
tasks() {
  for i in $(seq "$1"); do
    printf '# Task %s\nBranch: %s\n## Acceptance criteria\n- an even number of lines\n' "$i" "${2:-work/$i}" >"../$i.md"
  done
}
states() { jq -r '[.state, (.subtasks[] | .attempts, .verdict)] | @tsv' .git/amp/tasks/*.json | sort | uniq -c; }
# dispatches N: dispatches of a coordinator with the same state, for the executor.
dispatches() {
  tasks "$1"
  for i in $(seq "$1"); do task-dispatch new --print --state state --id "T-2026-00$i" "../$i.md"; done >../new
  run -75 --separate-stderr bash -c 'task-dispatch coordinate --state state <../new >../sent'
  jq -c 'select((.msg // .) | .type == "task_dispatch" and .to == "executor")' ../sent >../messages
  [ "$(wc -l <../messages)" = "$1" ]
}
# The largest number of executors that worked at once.
most() { awk '$1 == "+" { if (++n > most) most = n } $1 == "-" { n-- } END { print most + 0 }' ../at_work; }
nothing_left() {
  wait_until 20 bash -c "! pgrep -s $1 >/dev/null"
  [ -z "$(ls -A "$TMPDIR")" ]
}

@test "loop -j: tasks are worked on side by side, each under review, with a rework" {
  tasks 8
  NEED=4 run -0 --separate-stderr task-dispatch loop -j 4 -J 2 -x ../executor -y ../reviewer --verdict-by-exit ../[1-8].md
  [ "$(states)" = "      8 done"$'\t'"2"$'\t'"approved" ]
  [ "$(most)" = 4 ]
  # Each task was worked on twice and never twice at once; the first agent gets its rework if it is free.
  [ "$(grep -c '^+' ../at_work)" = 16 ]
  awk '$1 == "+" { if ($3 in at) exit 1; at[$3] = 1 } $1 == "-" { delete at[$3] }' ../at_work
  for i in 1 2 3 4 5 6 7 8; do git show "work/$i:work" | diff - <(printf 'line 1\nline 2\n'); done
  [[ $stderr != *error* ]]
  [ -z "$(ls -A "$TMPDIR")" ]
  # Worktrees of agents without work are removed.
  [ "$(git worktree list | wc -l)" = 1 ]
}

@test "loop -j: tasks on one branch wait for each other" {
  tasks 3 work/same
  run -0 task-dispatch loop -j 3 -x ../executor -y true --verdict-by-exit ../[1-3].md
  [ "$(states)" = "      3 done"$'\t'"1"$'\t'"approved" ]
  [ "$(most)" = 1 ]
  git show work/same:work | diff - <(printf 'line 1\nline 1\nline 1\n')
}

@test "loop -j --print: the script of pipes does the same" {
  tasks 4
  task-dispatch loop -j 2 -J 2 -x ../executor -y ../reviewer --verdict-by-exit --print ../[1-4].md >../loop.sh
  grep -q 'task-dispatch run .*--jobs 2 ' ../loop.sh
  grep -q 'task-dispatch review .*--jobs 2 ' ../loop.sh
  grep -qx 'export AMP_SUSPENSION=task' ../loop.sh
  NEED=2 run -0 bash ../loop.sh
  [ "$(states)" = "      4 done"$'\t'"2"$'\t'"approved" ]
  [ "$(most)" = 2 ]
  [ -z "$(ls -A "$TMPDIR")" ]
}

@test "loop --type: each task is worked on by agents of its type, with the command of the type; the printed script does the same" {
  local way
  printf '#!/bin/sh\necho "writer: $AMP_AGENT_TYPE $*" >>work\n' >../writer
  printf '#!/bin/sh\necho "$AMP_AGENT_TYPE" >>work\n' >../executor
  chmod +x ../writer
  tasks 4
  sed -i '1a Type: writer' ../[23].md
  sed -i '1a Type: nobody' ../4.md
  cp -R . ../printed
  set -- -x ../executor -y ../reviewer --verdict-by-exit --type builder=2 --type writer=2 --command 'writer=../writer a b'
  run -0 --separate-stderr task-dispatch loop "$@" ../[1-4].md
  [[ $stderr == *'-004: no agents of the type "nobody": it is for the type builder'* ]]
  cd ../printed
  task-dispatch loop "$@" --print ../[1-4].md >../loop.sh
  run -0 bash ../loop.sh
  for way in ../repo .; do
    cd "$way"
    [ "$(states)" = "      4 done"$'\t'"2"$'\t'"approved" ]
    for i in 1 4; do git show "work/$i:work" | diff - <(printf 'builder\nbuilder\n'); done
    for i in 2 3; do git show "work/$i:work" | diff - <(printf 'writer: writer a b\nwriter: writer a b\n'); done
  done
  # A task that is tried again keeps its type.
  task-dispatch new --type writer --print -d Text --id T-2026-009 -b work/9 | jq -e '(.msg // .).payload.tech_constraints == {agent_type: "writer"}'
}

@test "loop --type: wrong values" {
  refused() {
    run -64 --separate-stderr task-dispatch loop -x true -y true "${@:2}"
    [[ $stderr == *"$1"* ]]
  }
  refused '--jobs and --type exclude each other' -j 2 --type builder=2
  refused '--type reviewer: the reviewers have this type' --type reviewer=2
  refused 'expected TYPE=N with N from 1 to' --type builder=0
  refused '--command wirter=true: expected TYPE=COMMAND with a TYPE of --type' --type writer=1 --command wirter=true
  refused 'error: --command: ' --type writer=1 --command writer=nowhere
  run -64 --separate-stderr task-dispatch run --type builder=1 --command 'builder=echo $HOME' -x true
  [[ $stderr == *'--command: '* ]]
  [ ! -e .git/amp/log ]
}

@test "loop -j: processes that are killed lose nothing, and do nothing twice" {
  local loop i victim
  tasks 6
  WORKS=0.1 env --default-signal=INT,TERM,HUP setsid task-dispatch loop -j 3 -J 2 -x ../executor -y ../reviewer \
    --verdict-by-exit --retries 100 ../[1-6].md >../out 2>../err 3>&- &
  loop=$!
  wait_until 20 grep -q '^+' ../at_work
  for victim in 'bin/task-dispatch run' "^/bin/sh $BATS_TEST_TMPDIR/executor" 'bin/task-dispatch review' \
    'bin/task-dispatch run' "^/bin/sh $BATS_TEST_TMPDIR/reviewer"; do
    pkill -KILL -o -f -- "$victim .*" || pkill -KILL -o -f -- "$victim" || :
    sleep 0.3
  done
  wait "$loop"
  [ "$(states | awk '{ print $2, $NF }')" = "done approved" ]
  grep -q 'was killed (signal 9); starting it again' ../err
  for i in 1 2 3 4 5 6; do [ "$(git show "work/$i:work" | wc -l)" = 2 ]; done
  # One answer to each dispatch and to each review.
  cat .git/amp/log/*.ndjson | jq -r '.out[]?.line | fromjson | (.msg // .) | select(.type == "task_result" or .type == "review_verdict") |
    .type + " " + .context_ref[0]' | sort | uniq -d >../twice
  [ ! -s ../twice ]
  nothing_left "$loop"
}

@test "run -j: what a killed agent left on its branch does not keep the branch from another agent" {
  local run at
  dispatches 2
  cat >../executor <<A
#!/bin/sh
echo half >>work
echo "+ \$AMP_AGENT \$AMP_TASK_ID" >>$BATS_TEST_TMPDIR/at_work
until [ -e $BATS_TEST_TMPDIR/go ]; do sleep 0.02; done
A
  task-dispatch run --state state -j 2 -x ../executor <../messages >../results 2>../err 3>&- &
  run=$!
  wait_until 20 bash -c "[ \$(grep -c '^+' ../at_work) = 2 ]"
  kill -KILL "$run"
  # The agents have their conversations about each other's tasks, so that each gets the other's task.
  for at in state/run/*/kept-executor-1-*; do mv "$at" "${at/executor-1/executor-0}"; done
  for at in state/run/*/kept-executor-2-*; do mv "$at" "${at/executor-2/executor-1}"; done
  for at in state/run/*/kept-executor-0-*; do mv "$at" "${at/executor-0/executor-2}"; done
  : >../go
  run -0 --separate-stderr bash -c 'task-dispatch run --state state -j 2 --pause 100ms -x ../executor <../messages >../results'
  [ "$(jq -r '(.msg // .) | select(.type == "task_result") | .payload.completion_status' ../results | sort | uniq -c)" = "      2 complete" ]
  [ "$(sort -u ../at_work | cut -d' ' -f 2- | paste -sd,)" = "executor-1 T-2026-001,executor-1 T-2026-002,executor-2 T-2026-001,executor-2 T-2026-002" ]
  for i in 1 2; do [ "$(git show "work/$i:work")" = half ]; done
  # What the killed ones left is kept under refs.
  [ "$(git for-each-ref refs/amp/kept | wc -l)" -ge 2 ]
  [ "$(git worktree list | wc -l)" = 1 ]
}

@test "run -j: an attempt that another agent repeats begins where the killed one began" {
  local run at other
  dispatches 1
  cat >../executor <<A
#!/bin/sh
echo half >>work
git add work && git commit -qm half
echo "+ \$AMP_AGENT \$AMP_TASK_ID" >>$BATS_TEST_TMPDIR/at_work
until [ -e $BATS_TEST_TMPDIR/go ]; do sleep 0.02; done
A
  task-dispatch run --state state -j 2 -x ../executor <../messages >../results 2>../err 3>&- &
  run=$!
  wait_until 20 grep -q '^+' ../at_work
  kill -KILL "$run"
  # The conversation about the task is the other agent's, so that this one gets it.
  at=$(echo state/run/*/kept-executor-*)
  case $at in *executor-1*) other=${at/executor-1/executor-2} ;; *) other=${at/executor-2/executor-1} ;; esac
  mv "$at" "$other"
  : >../go
  run -0 bash -c 'task-dispatch run --state state -j 2 --pause 100ms -x ../executor <../messages >../results'
  [ "$(cut -d' ' -f2 ../at_work | sort | xargs)" = "executor-1 executor-2" ]
  [ "$(git show work/1:work)" = half ]
  [ "$(jq -r '(.msg // .) | select(.type == "task_result") | .payload.diff_summary.lines_added' ../results)" = 1 ]
  # What the killed one had committed is kept under a ref.
  [ "$(git for-each-ref refs/amp/kept | wc -l)" -ge 1 ]
}

@test "loop -j: INT ends everything; the next loop goes on" {
  local loop
  tasks 4
  WORKS=60 env --default-signal=INT,TERM,HUP setsid task-dispatch loop -j 2 -x ../executor -y ../reviewer \
    --verdict-by-exit ../[1-4].md >../out 2>../err 3>&- &
  loop=$!
  wait_until 20 bash -c "[ \$(grep -c '^+' ../at_work) = 2 ]"
  kill -INT "$loop"
  status=0
  wait "$loop" || status=$?
  [ "$status" -eq 130 ]
  nothing_left "$loop"
  run -0 task-dispatch loop -j 2 -x ../executor -y true --verdict-by-exit
  [ "$(states)" = "      4 done"$'\t'"1"$'\t'"approved" ]
}

@test "run -j in a pipe: it ends when its input has ended and its messages are answered" {
  dispatches 3
  NEED=3 run -0 --separate-stderr bash -c 'task-dispatch run --state state -j 3 -x ../executor <../messages >../results'
  [ "$(jq -r '(.msg // .) | select(.type == "task_result") | .payload.completion_status' ../results | sort | uniq -c)" = "      3 complete" ]
  # Received when the queue has it, read when an agent has it.
  [ "$(jq -r '(.msg // .) | select(.type == "ack") | .ack_stage' ../results | sort | uniq -c | xargs)" = "3 READ 3 RECEIVED" ]
  [ "$(most)" = 3 ]
  # The same messages again are answered, the results are sent until they are acknowledged, and nothing is done again.
  run -0 bash -c 'task-dispatch run --state state -j 3 -x ../executor <../messages >../again'
  [ "$(jq -r '(.msg // .) | .type' ../again | sort | uniq -c | xargs)" = "3 ack 3 task_result" ]
  [ "$(grep -c '^+' ../at_work)" = 3 ]
}

@test "run: a dispatch that its coordinator signed again is the same message" {
  local jobs
  dispatches 1
  jq -ce .msg ../messages >../again
  cp -R state other
  for jobs in 1 2; do
    run -0 bash -c "task-dispatch run --state state -j $jobs -x ../executor <../messages >../results"
    run -0 bash -c "task-dispatch run --state state -j $jobs -x ../executor <../again >../results"
    [ "$(jq -r '(.msg // .) | .type' ../results | sort | uniq -c | xargs)" = "1 ack 1 task_result" ]
    rm -rf state
    mv other state || [ "$jobs" = 2 ]
    git worktree prune
  done
  [ "$(grep -c '^+' ../at_work)" = 2 ]
}

@test "run -j: messages of suspended tasks are kept, with 75" {
  dispatches 2
  hitl-prompt suspend --state state T-2026-001
  run -75 --separate-stderr bash -c 'task-dispatch run --state state -j 2 -x ../executor <../messages >../results'
  [[ $stderr == *"1 message is kept until a suspension is lifted"* ]]
  [ "$(jq -r '(.msg // .) | select(.type == "task_result") | .payload.completion_status' ../results)" = complete ]
}

@test "run -j: wrong numbers, names that are used, and forged messages" {
  run -64 --separate-stderr task-dispatch run --state state -j 0 -x true
  run -64 --separate-stderr task-dispatch run --state state -j 257 -x true
  # A FIFO's writer is nobody: the message must be signed by the coordinator.
  dispatches 1
  mkfifo ../fifo
  jq -c '.msg // .' ../messages >../fifo &
  run -1 --separate-stderr task-dispatch run --state state -j 2 --in ../fifo -x ../executor
  [[ $stderr == *bad_sender* || $stderr == *unsigned* ]]
  [ ! -s ../at_work ]
}

@test "loop -j: a locked task is suspended alone and the others land; with suspension.scope: agents they wait" {
  local loop scope id n=0
  printf '#!/bin/sh\n[ ! -e bad ]\n' >../reviewer
  # The other tasks are worked on when the first one is locked.
  cat >../executor <<A
#!/bin/sh
case \$AMP_BRANCH in
  *-bad) echo "line \$AMP_ATTEMPT" >>bad ;;
  *) until jq -e '.state == "locked"' "\$(cat "$BATS_TEST_TMPDIR/first")"; do sleep 0.05; done; echo good >"good-\$AMP_TASK_ID" ;;
esac
A
  state() { jq -r .state ".git/amp/tasks/$1.json"; }
  landed() { [ "$(git ls-tree --name-only main | grep -c "^good-T-.*-00[$1]$")" = 2 ]; }
  # The question has a channel, where nobody answers.
  export AMP_CONFIG=$BATS_TEST_TMPDIR/amp.json
  for scope in '' agents; do
    tasks 3
    sed -i "s|^Branch: .*|&$scope|" ../[1-3].md
    sed -i "s|^Branch: .*|&-bad|" ../1.md
    id=T-$(date -u +%Y)-00$((n + 1))
    echo "$PWD/.git/amp/tasks/$id.json" >../first
    jq -n --arg dir "$BATS_TEST_TMPDIR/people" --arg scope "$scope" '{hitl: {channels: {folder: $dir}}}
      + if $scope == "" then {} else {suspension: {scope: $scope}} end' >../amp.json
    env --default-signal=INT,TERM,HUP setsid task-dispatch loop -j 3 -x ../executor -y ../reviewer --verdict-by-exit \
      --land ../[1-3].md </dev/null >../out 2>../err 3>&- &
    loop=$!
    if [ -z "$scope" ]; then
      wait_until 30 landed 23
      [ "$(grep -c 'suspends its agent' ../err)" = 0 ]
    else
      wait_until 30 grep -q "waits: task $id suspends agent reviewer until" ../err
      run -1 landed 56
    fi
    [ "$(state "$id")" = locked ]
    n=$((n + 3))
    # The task's end lets everything go on.
    task-dispatch cancel "$id"
    wait "$loop"
    landed "$((n - 1))$n"
  done
}
