#!/usr/bin/env bats
# task-dispatch loop: the complete loop as one supervised command.
# plain
# walls

load ../lib

setup() {
  need_tool task-dispatch amp-ack amp-route hitl-prompt
  cd "$BATS_TEST_TMPDIR" || return 1
  unset AMP_STATE
  export TMPDIR=$BATS_TEST_TMPDIR/tmp
  mkdir "$TMPDIR"
  repo repo
  cd repo || return 1
  # An executor that writes a line, and a reviewer that likes an even number of them.
  cat >../executor <<'A'
#!/bin/sh
echo "line $AMP_ATTEMPT" >>work
A
  cat >../reviewer <<'A'
#!/bin/sh
[ $(($(wc -l <work) % 2)) -eq 0 ]
A
  # Waits until the test lets it go.
  cat >../waits <<A
#!/bin/sh
[ -e $BATS_TEST_TMPDIR/go ] || echo up >$BATS_TEST_TMPDIR/started
until [ -e $BATS_TEST_TMPDIR/go ]; do sleep 0.02; done
echo "line \$AMP_ATTEMPT" >>work
A
  chmod +x ../executor ../reviewer ../waits
  mkfifo ../started
  task one >../one.md
  task two >../two.md
}

task() { printf '# Task %s\nBranch: work/%s\n## Acceptance criteria\n- an even number of lines\n' "$1" "$1"; }
states() { jq -r '[.id, .state, (.subtasks[] | .attempts, .verdict)] | @tsv' .git/amp/tasks/*.json; }

# begin ARG...: a loop in a session of its own; $loop is its process.
begin() {
  env --default-signal=INT,TERM,HUP setsid task-dispatch loop -x ../waits -y ../reviewer --verdict-by-exit "$@" \
    >../out 2>../err 3>&- &
  loop=$!
}
# filter PATTERN: the loop's process with these arguments.
filter() { pgrep -P "$loop" -f -- "$1" | head -n 1; }
has_filter() { [ -n "$(filter "$1")" ]; }
# nothing_left: no process of the session, no FIFO.
nothing_left() {
  wait_until 20 gone "$loop"
  wait_until 20 bash -c "! pgrep -s $loop >/dev/null"
  [ -z "$(ls -A "$TMPDIR")" ]
  [ ! -e .git/amp/run/loop.fifos ]
}
started() {
  timeout 20 cat ../started >/dev/null
}

@test "two commands and tasks: rejected, reworked, approved; the printed script does the same" {
  mkdir -p "$BATS_TEST_TMPDIR/other"
  cp -R . "$BATS_TEST_TMPDIR/other/repo"
  run -0 --separate-stderr task-dispatch loop -x ../executor -y ../reviewer --verdict-by-exit ../one.md ../two.md
  [[ $stderr == *"T-"*"queued: work/"*"in review"*"rejected, 1 issue: The review command: exit 1"*"reworking: attempt 2"*"approved"* ]]
  states | sed 's/T-[0-9]*-//' >../result
  printf '00%s\tdone\t2\tapproved\n' 1 2 | diff - ../result
  git show work/one:work | diff - <(printf 'line 1\nline 2\n')
  [ -z "$(ls -A "$TMPDIR")" ]
  cp ../executor ../reviewer ../*.md ../other
  cd ../other/repo
  task-dispatch loop -x ../executor -y ../reviewer --verdict-by-exit --print ../one.md ../two.md >../loop.sh
  [ ! -e .git/amp/log ]
  ! command -v shellcheck >/dev/null || shellcheck ../loop.sh
  cd /
  run -0 bash "$BATS_TEST_TMPDIR/other/loop.sh"
  cd "$BATS_TEST_TMPDIR/other/repo"
  states | sed 's/T-[0-9]*-//' | diff ../../result -
  # The same messages were exchanged.
  said() { cat "$1"/.git/amp/log/*.ndjson | jq -r '.out[]?.line | fromjson | (.msg // .) | .type + " " + .from + " " + .to' | sort | uniq -c; }
  diff <(said "$BATS_TEST_TMPDIR/repo") <(said .)
  [ -z "$(ls -A "$TMPDIR")" ]
}

@test "each filter that is killed is started again, and nothing is lost" {
  begin ../one.md
  started
  for victim in 'dispatch run' 'show .*from-executor' amp-route 'dispatch coordinate' 'ack track'; do
    wait_until 20 has_filter "$victim"
    kill -KILL "$(filter "$victim")"
    started
  done
  kill -KILL "$(filter hitl-prompt)" "$(filter 'dispatch review')"
  wait_until 20 grep -q "the reviewer: task-dispatch was killed (signal 9); starting it again" ../err
  wait_until 20 grep -q "the prompt: hitl-prompt was killed (signal 9); starting it again" ../err
  : >../go
  wait_until 20 gone "$loop"
  wait "$loop"
  grep -q "the executor: task-dispatch was killed (signal 9); starting it again in 0.1 s (1 of 5)" ../err
  grep -q "the executor: amp-ack was killed (signal 9); starting it again in 0.2 s (2 of 5)" ../err
  grep -q "the coordinator: amp-route was killed (signal 9); starting all filters again" ../err
  grep -q "the coordinator: task-dispatch was killed (signal 9); starting all filters again" ../err
  [ "$(states | cut -f 2-)" = $'done\t2\tapproved' ]
  nothing_left
}

@test "a filter that is killed again and again ends the loop with 75" {
  begin ../one.md
  started
  for i in 1 2 3 4 5 6; do
    wait_until 20 has_filter 'dispatch review'
    kill -KILL "$(filter 'dispatch review')"
    [ "$i" -eq 6 ] || wait_until 20 grep -q "($i of 5)" ../err
  done
  wait "$loop" || status=$?
  [ "$status" -eq 75 ]
  grep -q 'started again 5 times in a row (the limit): the loop ends' ../err
  nothing_left
}

@test "kill -9 of the supervisor kills its filters; the next loop continues" {
  begin ../one.md
  started
  agent=$(pgrep -s 0 -f /waits || pgrep -f "$BATS_TEST_TMPDIR/waits")
  # A second one would write into the same state.
  run -75 task-dispatch loop -x ../executor -y ../reviewer
  [[ $output == *"another loop runs on $PWD/.git/amp and leads its open tasks"* ]]
  kill -KILL "$loop"
  wait_until 20 bash -c "! pgrep -s $loop >/dev/null"
  for p in $agent; do wait_until 20 gone "$p"; done
  [ -d .git/amp/run/loop.fifos ]
  : >../go
  # The same file is the same task, until it has ended.
  run -0 task-dispatch loop -x ../executor -y ../reviewer --verdict-by-exit ../one.md
  [[ $output == *"../one.md: this is T-"*", which is open: it continues"* ]]
  [ "$(states | cut -f 2-)" = $'done\t2\tapproved' ]
  [ -z "$(ls -A "$TMPDIR")" ]
  # Ended: the file is a new task.
  run -0 task-dispatch loop -x ../executor -y ../reviewer --verdict-by-exit ../one.md
  [ "$(ls .git/amp/tasks | wc -l)" = 2 ]
}

@test "a loop that was killed and starts again with the same files repeats no task; one that ended does, and what is done lands" {
  local kept
  cat >../executor <<A
#!/bin/sh
until [ -e $BATS_TEST_TMPDIR/go ] || [ \$AMP_BRANCH = work/one ]; do sleep 0.02; done
echo "line \$AMP_ATTEMPT" >>work
A
  set -- -x ../executor -y true --verdict-by-exit ../one.md ../two.md
  env --default-signal=INT,TERM,HUP setsid task-dispatch loop "$@" >../out 2>../err 3>&- &
  loop=$!
  wait_until 20 bash -c "grep -q '\"state\":\"done\"' .git/amp/tasks/T-*-001.json"
  kill -KILL "$loop"
  wait_until 20 bash -c "! pgrep -s $loop >/dev/null"
  # As if it had been killed when the second task was created, but its id not kept yet.
  kept=$(grep -l -e '-002' .git/amp/run/loop.tasks/*)
  : >"$kept"
  touch -d '-1 hour' "$kept"
  : >../go
  run -0 --separate-stderr task-dispatch loop "$@"
  [[ $stderr == *"../one.md: this is T-"*"-001, which has ended in the loop that did not end: it is not repeated"* ]]
  [[ $stderr == *"../two.md: this is T-"*"-002, which is open: it continues"* ]]
  [ "$(states | cut -f 2- | sort | uniq -c | tr -s ' ')" = $' 2 done\t1\tapproved' ]
  [ -z "$(ls -A .git/amp/run/loop.tasks)" ]
  # Nothing is open, but the work has not landed.
  run -0 task-dispatch loop -x ../executor -y true --verdict-by-exit --land
  [ "$(task-dispatch list --all --json | jq -r .state | sort | uniq -c | tr -s ' ')" = ' 2 landed' ]
  run -1 --separate-stderr task-dispatch loop -x ../executor -y true --verdict-by-exit --land
  [[ $stderr == *"no task is open"* ]]
  run -0 task-dispatch loop "$@"
  [ "$(states | wc -l)" = 4 ]
}

@test "a task is handed over to the loop that runs, with or without commands, and once" {
  begin ../one.md
  started
  run -0 --separate-stderr task-dispatch loop ../two.md
  [[ $stderr == *"T-"*"-002 was handed over to the loop that runs on $PWD/.git/amp"* ]]
  # The same file is the same task; another file is another one. A loop's own commands count.
  run -0 task-dispatch loop ../two.md
  [[ $output == *"../two.md: this is T-"*"-002, which is open: it continues"* ]]
  task three >../three.md
  run -0 task-dispatch loop -x /bin/false -y /bin/false ../three.md
  [[ $output == *"-003 was handed over"* ]]
  # What the coordinator refuses is said to both.
  sed 's/^Branch:.*/Branch: main/' ../three.md >../main.md
  ends 77 task-dispatch loop ../main.md
  run -65 task-dispatch loop /dev/null
  # Without a file there is nothing to hand over.
  run -75 task-dispatch loop -x ../executor -y ../reviewer
  : >../go
  wait_until 30 gone "$loop"
  wait "$loop"
  [ "$(states | cut -f 2- | sort | uniq -c | tr -s ' ')" = $' 3 done\t2\tapproved' ]
  nothing_left
  # Nobody takes it: without commands there is no loop.
  run -64 task-dispatch loop ../two.md
  [[ $output == *"-x EXECUTOR -y REVIEWER"* ]]
}

@test "a task that is created beside the loop is taken by it, also after kill -9 of the coordinator and of the loop" {
  begin ../one.md
  started
  # The coordinator stands still: the next one takes the task.
  coordinator=$(filter 'dispatch coordinate')
  kill -STOP "$coordinator"
  run -0 --separate-stderr task-dispatch new ../two.md
  [[ $output == T-*"-002 created" ]]
  kill -KILL "$coordinator"
  started
  [ "$(ls .git/amp/tasks | wc -l)" = 2 ]
  # The loop is killed: the next loop takes it, also without a file.
  kill -STOP "$loop"
  task three >../three.md
  run -0 task-dispatch new ../three.md
  kill -KILL "$loop"
  wait_until 20 bash -c "! pgrep -s $loop >/dev/null"
  : >../go
  run -0 task-dispatch loop -x ../executor -y ../reviewer --verdict-by-exit
  [ "$(states | cut -f 2- | sort | uniq -c | tr -s ' ')" = $' 3 done\t2\tapproved' ]
}

@test "a task that is created while the coordinator ends is led by another one" {
  for i in 1 2 3 4 5; do
    rm -rf .git/amp
    git worktree prune
    git branch -q -D work/one work/two 2>/dev/null || :
    task-dispatch loop -x ../executor -y ../reviewer --verdict-by-exit ../one.md >../out 2>../err 3>&- &
    loop=$!
    # Just when the first task ends.
    wait_until 30 bash -c "grep -qs '\"state\":\"done\"' .git/amp/tasks/*"
    status=0
    task-dispatch loop ../two.md 2>../give || status=$?
    wait "$loop"
    case $status in
    0)
      grep -q 'was handed over' ../give
      [ "$(states | cut -f 2,4)" = $'done\tapproved\ndone\tapproved' ]
      ;;
    *) # It had ended before: without commands there is no loop, and the task is there.
      [ "$status" = 64 ] || grep -q 'is created, but the loop on .* has ended' ../give
      ;;
    esac
  done
}

@test "a loop that ends while it is given a task: the giver leads it, or says that nothing does" {
  mkfifo ../slow
  for with in '' commands; do
    begin ../one.md
    started
    # shellcheck disable=SC2046
    task-dispatch loop $([ -z "$with" ] || echo -x ../executor -y ../reviewer --verdict-by-exit) ../slow 2>../give 3>&- &
    giver=$!
    exec 8>../slow
    kill -KILL "$loop"
    wait_until 20 bash -c "! pgrep -s $loop >/dev/null"
    task "task$with" >&8
    : >../go
    exec 8>&-
    status=0
    wait "$giver" || status=$?
    if [ "$with" ]; then
      [ "$status" = 0 ]
      grep -q 'this one leads its tasks now' ../give
    else
      [ "$status" = 75 ]
      grep -q '^task-dispatch: error: T-.*-002 is created, but the loop on .* has ended' ../give
      rm ../go
    fi
  done
  [ "$(states | cut -f 2,4 | sort | uniq -c | tr -s ' ')" = $' 3 done\tapproved' ]
}

@test "INT, TERM and HUP end everything" {
  for signal in INT TERM HUP; do
    rm -rf .git/amp
    git worktree prune
    begin "../one.md"
    started
    # As a terminal does it, and as a person with kill.
    if [ "$signal" = TERM ]; then kill -TERM "$loop"; else kill "-$signal" -- "-$loop"; fi
    status=0
    wait "$loop" || status=$?
    [ "$status" -eq 130 ]
    nothing_left
    ! pgrep -f "$BATS_TEST_TMPDIR/waits"
  done
}

@test "a line on standard input is a task" {
  run -0 --separate-stderr task-dispatch loop -x ../executor -y true --verdict-by-exit - <<<"Fix the parser"
  [[ $stderr == *"queued: task/T-"*"approved"* ]]
  [ "$(states | cut -f 2-)" = $'done\t1\tapproved' ]
  ! command -v amp-top >/dev/null || amp-top --once --show agents | grep -q "^executor  ended "
}

@test "what is wrong is said before anything starts" {
  run -64 task-dispatch loop -x nowhere -y ../reviewer
  [[ $output == *"error: --exec: "*nowhere* ]]
  run -64 task-dispatch loop -x ../executor
  [[ $output == *"-x EXECUTOR -y REVIEWER"* ]]
  run -64 task-dispatch loop -x ../executor -y ' '
  [[ $output == *"--reviewer: an empty command"* ]]
  printf '# bad\nRisk: enormous\n' >../bad.md
  run -65 task-dispatch loop -x ../executor -y ../reviewer ../bad.md
  [[ $output == *"../bad.md:2: risk_level: "* ]]
  run -65 task-dispatch loop -x ../executor -y ../reviewer ../none.md
  run -77 env AMP_AGENT=bob task-dispatch loop -x ../executor -y ../reviewer
  # A worker that cannot work ends the loop with its status.
  echo '{"red":[]}' >../policy
  run -78 task-dispatch loop -x ../executor -y ../reviewer --policy ../policy ../one.md
  [[ $output == *"ended with 78: the loop ends"* ]]
  [ -z "$(ls -A "$TMPDIR")" ]
  rm -rf .git/amp
  run -1 task-dispatch loop -x ../executor -y ../reviewer
  [[ $output == *"no task is open: give a file with one, TASK.md"* ]]
  cd /
  run -64 task-dispatch loop -x true -y true
  [[ $output == *"a state directory is needed"* ]]
}

@test "shell lines, strange paths and options reach the agents" {
  dir=$'a dir\nwith "quotes"'
  mkdir "../$dir"
  cp -R . "../$dir/repo"
  cd "../$dir/repo"
  cp "$BATS_TEST_TMPDIR/one.md" 'the task.md'
  run -0 task-dispatch loop -x "echo \"\$AMP_ATTEMPT; 'x'\" | cat >>work" -y 'grep -q 1 work; test "$(wc -l <work)" = 1' \
    --verdict-by-exit -t 1m --retries 0 'the task.md'
  [ "$(git show work/one:work)" = "1; 'x'" ]
  [ "$(task-dispatch loop -x "echo 'a b'" -y true --print 'the task.md' | tail -n +4 | grep -c "'the task.md'")" -eq 1 ]
  task-dispatch loop -x "echo \"\$AMP_ATTEMPT; 'y'\" | cat >>work" -y true --verdict-by-exit --print 'the task.md' >../loop.sh
  run -0 bash ../loop.sh
  [ "$(git show work/one:work | tail -n 1)" = "1; 'y'" ]
}

@test "on a terminal the question is asked there, other lines wait, and a closed terminal ends the loop" {
  need tmux
  export SOCKET=$BATS_TEST_TMPDIR/tmux
  sed -i '2a Risk: high' ../one.md
  touch ../go
  printf 'echo $$ >../pid; exec task-dispatch loop -x ../executor -y ../reviewer --verdict-by-exit ../one.md\n' >../go.sh
  tmux -S "$SOCKET" -f /dev/null new-session -d -s loop -x 100 -y 40 -e PATH="$PATH" -e HOME="$HOME" -e AMP_CONFINE=off \
    -e AMP_IDENTITY=off -e TMPDIR="$TMPDIR" -e GIT_CONFIG_GLOBAL=/dev/null -e LC_ALL=C.UTF-8 -c "$PWD" \
    "bash --norc ../go.sh; echo \$? >../status; exec sleep 1000"
  asked() { tmux -S "$SOCKET" capture-pane -p -t loop | grep -q 'An empty line leaves'; }
  wait_until 20 asked
  tmux -S "$SOCKET" send-keys -t loop 'resume well done' Enter
  wait_until 20 test -s ../status
  tmux -S "$SOCKET" capture-pane -p -t loop >../screen
  [ "$(cat ../status)" -eq 0 ] || { cat ../screen && return 1; }
  [ "$(states | cut -f 2-)" = $'done\t2\tapproved' ]
  # Again, and the terminal goes away while the question is there.
  tmux -S "$SOCKET" clear-history -t loop; tmux -S "$SOCKET" respawn-pane -k -t loop -c "$PWD" "bash --norc ../go.sh"
  wait_until 20 asked
  loop=$(cat ../pid)
  tmux -S "$SOCKET" kill-server
  wait_until 20 gone "$loop"
  [ -z "$(ls -A "$TMPDIR")" ]
  no_filter() { ! pgrep -f "$PWD/.git/amp/run/loop.fifos" >/dev/null; }
  wait_until 20 no_filter
}

@test "the loop that init makes: with --verdict-by-exit the status of the reviewer's command is the verdict, and land takes it" {
  setsid -w task-dispatch init --yes --unconfined -x "$PWD/../executor" -y "test -s work" </dev/null
  run -0 --separate-stderr setsid -w ./loop.sh --verdict-by-exit ../one.md </dev/null
  [ "$(states)" = "$(printf 'T-2026-001\tdone\t1\tapproved')" ]
  setsid -w task-dispatch land T-2026-001 </dev/null
  [ "$(git show main:work)" = "line 1" ]
}
