#!/usr/bin/env bats
# task-dispatch list, show, open and cancel.
# walls

load ../lib

setup() {
  need git jq
  need_tool task-dispatch hitl-prompt amp-validate
  unset AMP_IDENTITY
  top=$BATS_FILE_TMPDIR
  [ -d "$top/state" ] || begin
  cd "$BATS_TEST_TMPDIR" || return
  cp -a "$top/work" work
  cp -a "$top/state" state
  export AMP_STATE=$PWD/state
}

teardown() {
  exec 4>&- 5>&-
  for p in "${pids[@]}"; do kill -9 "$p" 2>/dev/null || true; done
}

# Tasks: 1 is done, 2 is locked after three rejections, 3 is dispatched.
begin() {
  cd "$top" || return
  repo work
  echo one >work/file
  git -C work add -A
  git -C work commit -qm "a file"
  cat >executor <<'A'
#!/bin/sh
echo "the work of $AMP_TASK_ID"
echo "$AMP_ATTEMPT" >>"done-$AMP_TASK_ID"
A
  cat >reviewer <<'A'
#!/bin/sh
echo "looked at $AMP_TASK_ID"
word=approved issues='[]'
[ "$AMP_TASK_ID" != T-2026-002 ] || {
  word=rejected
  issues='[{"severity":"major","file":"file","line":1,"description":"it is \u001b[31mwrong","suggested_fix":"make it right"}]'
}
jq --arg word "$word" --argjson issues "$issues" '{decision: $word, confidence: 0.9, issues: $issues,
     criteria_results: [.[] | {criterion: (if type == "object" then .criterion else . end), passed: ($word == "approved"), evidence: "seen"}]}' \
  "$AMP_CRITERIA" >"$AMP_RESULT.new"
mv "$AMP_RESULT.new" "$AMP_RESULT"
A
  chmod +x executor reviewer
  local n=0
  for b in x y z; do
    task-dispatch new --print --id "T-2026-00$((++n))" -s state -C work --branch "agent/$b" --description "work of $b" \
      --criterion "a file says so"
  done >tasks
  head -n 2 tasks | EXECUTOR=$PWD/executor REVIEWER=$PWD/reviewer ends 75 timeout 60 "$AMP_TOP/examples/qa-loop/loop.sh" \
    "$PWD/state" >loop.out 2>loop.err
  ends 75 task-dispatch coordinate -s state --trust-in tasks </dev/null >out 2>err
  cd "$BATS_TEST_TMPDIR" || return
}

@test "list: what waits for a person comes first; filters; JSON by its schema" {
  task-dispatch list >out
  [ "$(sed 's/  */ /g; s/ [0-9]*s work/ AGE work/' out)" = "ID STATE TRY AGE TASK
T-2026-002 asks you: rejected too often 3 AGE work of y
T-2026-001 approved 1 AGE work of x
T-2026-003 queued (1st) 1 AGE work of z" ]
  task-dispatch list --protocol >out
  [ "$(awk '{ print $1 " " $2 }' out | paste -sd' ')" = "ID STATE T-2026-002 locked T-2026-001 done T-2026-003 dispatched" ]
  grep -q "T-2026-002  locked.*3 .*rejected .*rejected too often .*agent/y .*work of y" out
  task-dispatch list --json >json
  amp-validate -S "$AMP_TOP/schemas/records/task.json" --formats json | cmp - json
  jq -se 'map(.task) == ["T-2026-002", "T-2026-001", "T-2026-003"] and .[0].questions == 1 and .[0].severity == "critical"
    and .[0].attempts == 3 and (.[0].log | endswith("stdout") | not) and .[1].verdict == "approved"' json
  [ -e "$(jq -r 'select(.task == "T-2026-001").log' json)/stdout" ]
  of() { task-dispatch list --json "$@" | jq -r .task | paste -sd' '; }
  [ "$(of --waiting)" = "T-2026-002" ]
  [ "$(of --open)" = "T-2026-002 T-2026-003" ]
  [ "$(of --state-of done)" = "T-2026-001" ]
  [ "$(of --state-of landed)" = "" ]
  [ "$(of --agent executor)" = "T-2026-002 T-2026-001" ]
  [ "$(of --agent nobody)" = "" ]
  task-dispatch land -C work 1
  [ "$(of)" = "T-2026-002 T-2026-003" ]
  [ "$(of --all)" = "T-2026-002 T-2026-003 T-2026-001" ]
  [ "$(of --state-of landed)" = "T-2026-001" ]
  task-dispatch list --paths | grep -q "log       $PWD/state/run/T-2026-002/"
  # It writes nothing, and finds the state directory of the repository.
  unset AMP_STATE
  run -64 --separate-stderr task-dispatch list
  [[ "$stderr" == *"a state directory is needed"* ]]
  run -69 task-dispatch list -s nowhere
  cp -a state work/.git/amp
  (cd work && task-dispatch list | grep -q T-2026-002)
  run -64 task-dispatch list --open --all
}

@test "list fits the terminal" {
  need script
  script -qec "stty cols 60; task-dispatch list --color never" /dev/null </dev/null | tr -d '\r' | grep "^T-2026-002 " >row
  [ "$(sed 's/…/./g' row | wc -c)" -le 61 ]
  grep -q "…" row
  task-dispatch list --color always >colored
  grep -qF $'\e[31masks you: rejected too often' colored
}

@test "show prints the story; what others wrote is behind a bar; what comes next" {
  task-dispatch show 2 >out
  grep -q "^== T-2026-002: asks you: rejected too often" out
  task-dispatch show --protocol 2 | grep -q "^== T-2026-002: locked"
  grep -q "^  task         | work of y" out
  [ "$(grep -c "verdict: rejected, confidence 0.90" out)" -eq 3 ]
  grep -q '^               | it is \\x1b\[31mwrong' out
  grep -q "^  fix          | make it right" out
  grep -q "question, open" out
  grep -q "^-- next: it waits for a person's decision (rejected too often)" out
  grep -q "^  hitl-prompt show T-2026-002" out
  grep -q "^  logs         | $PWD/state/run/T-2026-002/executor" out
  run -1 grep -v '^$\|^==\|^--\|^  \|^[0-9-]\{10\} ' out
  hitl-prompt show T-2026-002 >/dev/null
  # Programs get the events before the question.
  hitl-prompt show T-2026-002 --json |
    jq -e '.history | length > 3 and .[0].at != null and .[0].depth == 0 and .[0].text == "dispatch to coordinator by admin"'
  task-dispatch show 1 | grep -q "^  task-dispatch land T-2026-001"
  # The log takes the same names, and is not silent about others.
  amp-ack log --task 2 >by-number
  amp-ack log --task T-2026-002 | cmp by-number
  [ -s by-number ]
  run -0 --separate-stderr amp-ack log --task T-2030-007
  [ "$stderr" = "amp-ack: note: the log has nothing about T-2030-007" ]
  for t in 1 T-2026-002 2026-003; do task-dispatch show --json $t; done >json
  amp-validate -S "$AMP_TOP/schemas/records/story.json" --formats json | cmp - json
  jq -se '.[1].events | map(.event) | index("asked") == 0 and (map(select(. == "verdict")) | length == 3)' json
  jq -se '.[0].events | map(select(.event == "result" or .event == "verdict").key) | all(startswith("SHA256:"))' json
  # After the decision the story has who decided.
  hitl-prompt answer T-2026-002 terminate "not worth it" >/dev/null
  task-dispatch show 2 | grep -A3 decision | grep -q "| not worth it"
  run -1 --separate-stderr task-dispatch show 9
  [[ "$stderr" == *'no task "9"'* ]]
  run -1 --separate-stderr task-dispatch show T-2026
  [[ "$stderr" == *"is the beginning of 3 tasks"* ]]
  run -64 task-dispatch show
}

@test "open prints the worktree, makes it again, and not for an agent" {
  # The record names the repository where the tasks ran.
  sed "s|$top/work|$PWD/work|g" -i state/log/*.ndjson 2>/dev/null || true
  rm -rf state
  cp -a "$top/state" state
  AMP_AGENT=ann run -77 --separate-stderr task-dispatch open 1
  [[ "$stderr" == *"only people may make a worktree"* ]]
  place=$(task-dispatch open 1 2>said)
  [ "$place" = "$top/work.worktrees/T-2026-001" ]
  grep -q "made the worktree again" said
  [ "$(git -C "$place" rev-parse --abbrev-ref HEAD)" = agent/x ]
  run -0 --separate-stderr task-dispatch open 1
  [ -z "$stderr" ]
  rm -rf "$place"
  [ "$(task-dispatch open 1 2>/dev/null)" = "$place" ]
  [ -e "$place/done-T-2026-001" ]
  git -C "$top/work" worktree remove --force "$place"
  # Without its branch, at the commit of its result; without a commit there is nothing to open.
  git -C "$top/work" branch -m agent/x agent/renamed
  place=$(task-dispatch open 1 2>said)
  grep -q "without a branch" said
  [ -e "$place/done-T-2026-001" ]
  git -C "$top/work" worktree remove --force "$place"
  git -C "$top/work" branch -m agent/renamed agent/x
  run -1 --separate-stderr task-dispatch open 3
  [[ "$stderr" == *"agent/z does not exist yet"* ]]
}

@test "cancel ends a task in each state, closes its question, and keeps its branch" {
  AMP_AGENT=ann run -77 --separate-stderr task-dispatch cancel 2
  [[ "$stderr" == *"only people may cancel a task"* ]]
  run -1 --separate-stderr task-dispatch cancel 1
  [[ "$stderr" == *"task T-2026-001 has ended: it is done"* ]]
  run -1 --separate-stderr task-dispatch cancel 9
  [[ "$stderr" == *'no task "9"'* ]]
  echo '{"hitl":{"operators":["somebody-else"]}}' >amp.json
  run -77 task-dispatch cancel -c amp.json 2
  [ "$(task-dispatch list --json --waiting | jq -r .task)" = T-2026-002 ]
  # Locked, with an open question; dispatched.
  task-dispatch cancel 2 --reason "not worth it"
  task-dispatch cancel T-2026-003
  task-dispatch list --all --json | jq -se 'map(select(.state == "terminated").task) | sort == ["T-2026-002", "T-2026-003"]'
  run -0 --separate-stderr hitl-prompt list --json
  [ -z "$output" ]
  run -1 --separate-stderr hitl-prompt answer T-2026-002 resume
  task-dispatch show --json 2 | jq -e '.events[-1] | .event == "cancel" and .text == "not worth it" and (.key | startswith("SHA256:"))'
  jq -e '.state == "terminated" and (.cancelled | contains("terminate"))' state/tasks/T-2026-002.json
  git -C "$top/work" rev-parse -q --verify agent/y
  [ "$(hitl-prompt suspend --list 2>/dev/null)" = "" ]
  # The next coordinator notifies the receiver of the open dispatch, once.
  task-dispatch coordinate </dev/null >told 2>/dev/null || true
  jq -se 'map((.msg // .) | select(.type == "nack" and .code == "terminated").task_id) | index("T-2026-003") != null' told
  task-dispatch coordinate </dev/null >again 2>/dev/null || true
  run -1 grep terminated again
  # Again changes nothing.
  run -0 --separate-stderr task-dispatch cancel 2
  [[ "$stderr" == *"was cancelled before"* ]]
  jq -se 'map(select(.key? == "task.T-2026-002" and .event == "terminate")) | length == 1' state/log/*.ndjson
}

@test "a coordinator that waits sends the nack of a cancelled task at once; the audit lists the cancel" {
  mkfifo cin
  exec 5<>cin
  task-dispatch coordinate --in cin --hold >told 2>err &
  pids+=($!)
  wait_until 20 grep -q T-2026-003 told # the open dispatch is sent again
  began=$(date +%s%N)
  task-dispatch cancel 3 --reason "not worth it"
  wait_until 5 grep -q '"terminated"' told
  echo "$((($(date +%s%N) - began) / 1000000)) ms"
  jq -se 'map((.msg // .) | select(.type == "nack" and .code == "terminated")) | length == 1 and .[0].task_id == "T-2026-003"' told
  # The last record is about the log.
  hitl-prompt audit --what cancelled --json --verify | head -n 1 >all
  jq -e --arg me "$(id -un)" '.task == "T-2026-003" and .operator == $me and .decision == "terminate" and
    .why == "not worth it" and .signature == "valid" and .at' all
  amp-sign revoke --from 2020-01-01T00:00:00Z "$(jq -r .key all)"
  run -1 --separate-stderr hitl-prompt audit --what cancelled --json --verify
  [ "$(jq -r .signature <<<"${lines[0]}")" = key_revoked ]
}

@test "retry sends a task again with the reason and the hint: under its id, or a new one if it has ended" {
  run -1 --separate-stderr task-dispatch retry 1
  [[ $stderr == *"task T-2026-001 is approved: there is nothing to retry"* ]]
  run -1 --separate-stderr task-dispatch retry 3
  [[ $stderr == *"task T-2026-003 is queued (1st)"* ]]
  run -1 task-dispatch retry 9
  run -64 task-dispatch retry 1 2
  # The task was locked: its question ends, and the executor gets the reason.
  run -0 task-dispatch retry 2 --hint "look at the file"
  [ "$output" = "T-2026-002 sent again" ]
  [ "$(task-dispatch list --waiting --json)" = "" ]
  [ "$(hitl-prompt list --json)" = "" ]
  task-dispatch list | grep -q "^T-2026-003  queued (1st) "
  task-dispatch list | grep -q "^T-2026-002  queued (2nd) "
  ends 75 task-dispatch coordinate </dev/null >told 2>/dev/null
  text() { jq -r --arg t "$1" '(.msg // .) | select(.type == "task_dispatch" and .task_id == $t) | .payload.description' told; }
  [ "$(text T-2026-002)" = "work of y

This task is tried again. It was rejected:
- it is "$'\e'"[31mwrong
Hint: look at the file" ]
  # Ended: a new task with the same text; what an earlier retry added is replaced.
  task-dispatch cancel 2
  task-dispatch list --all | grep -q "^T-2026-002  cancelled "
  run -0 task-dispatch retry 2
  [ "$output" = "T-2026-004 created" ]
  task-dispatch list --json | jq -se 'map(select(.task == "T-2026-004"))[0] | .branch == "agent/y" and .state == "dispatched" and .attempts == 1'
  ends 75 task-dispatch coordinate </dev/null >told 2>/dev/null
  run -0 text T-2026-004
  [[ $output == "work of y"$'\n\n'"This task is tried again."* ]]
  [[ $output != *Hint* ]]
}

@test "edit sends the text that was changed; what cannot be read is kept" {
  EDITOR="grep -c" run -1 --separate-stderr task-dispatch edit 3
  [[ $stderr == *"the editor failed; nothing is changed"* ]]
  VISUAL='cat' EDITOR=false run -0 --separate-stderr task-dispatch edit 3
  jq -e '.description == "work of z" and .branch == "agent/z" and .risk_level == "medium" and
    .acceptance_criteria == ["a file says so"]' <<<"$output"
  [[ $stderr == *"T-2026-003 is not changed"* ]]
  EDITOR="sed -i 's/a file/the file/; s/\"medium\"/\"low\"/'" run -0 task-dispatch edit 3
  [ "$output" = "T-2026-003 sent again" ]
  jq -e '.acceptance_criteria == ["the file says so"] and .risk_level == "low" and .branch == "agent/z" and .base != null' state/tasks/T-2026-003.json
  # A task file is opened as it is; what it does not have, such as the branch of an option, stays.
  printf '# work of u\n\n  - indented\n\n## Criteria\n- a file says so\n' >text
  task-dispatch new -C work --branch agent/u text
  VISUAL=cat run -0 --separate-stderr task-dispatch edit 4
  diff text <(printf '%s\n' "$output")
  EDITOR="sed -i 's/a file/the file/'" run -0 task-dispatch edit 4
  jq -e '.acceptance_criteria == ["the file says so"] and .branch == "agent/u"' state/tasks/T-2026-004.json
  VISUAL=cat run -0 --separate-stderr task-dispatch edit 4
  diff <(sed 's/a file/the file/' text) <(printf '%s\n' "$output")
  EDITOR="sed -i 's/## .*/## Else/'" TMPDIR=$PWD run -65 --separate-stderr task-dispatch edit 4
  [[ $stderr == *"your text is in $PWD/T-2026-004."*"line 5: unknown section"* ]]
  grep -q "## Else" T-2026-004.*.md
  # A text that no file could have, and one that options changed.
  task-dispatch new -C work --branch agent/v --description $'work\n## of v' --criterion 'a file says so'
  EDITOR="sed -i 's/a file/the file/'" run -0 task-dispatch edit 5
  jq -e '.acceptance_criteria == ["the file says so"] and .description == "work\n## of v"' state/tasks/T-2026-005.json
  task-dispatch new -C work --branch agent/w --criterion 'and more' text
  VISUAL=cat run -0 --separate-stderr task-dispatch edit 6
  jq -e '.acceptance_criteria == ["a file says so", "and more"]' <<<"$output"
  run -1 --separate-stderr task-dispatch edit 1
  [[ $stderr == *"task T-2026-001 has ended: it is approved"* ]]
}

@test "diff is git's, with the pager of the person and no program of the repository" {
  need script
  run -0 task-dispatch diff 1
  [[ $output == *"+++ b/done-T-2026-001"*"+1"* ]]
  run -1 --separate-stderr task-dispatch diff 3
  [[ $stderr == *agent/z* ]]
  cp -a "$top/work/.git/config" config
  for key in core.pager pager.diff diff.external diff.x.command diff.x.textconv core.fsmonitor; do
    git -C "$top/work" config "$key" "touch $PWD/hostile; cat"
  done
  mkdir -p "$top/work/.git/info"
  echo '* diff=x' >"$top/work/.git/info/attributes"
  GIT_PAGER='' PAGER='' script -qec "env -u GIT_PAGER PAGER='sed s/^/paged:/' task-dispatch diff 1" /dev/null </dev/null >out
  mv config "$top/work/.git/config"
  rm "$top/work/.git/info/attributes"
  grep -q "paged:.*+1" out
  [ ! -e hostile ]
}

@test "diff without a base: against the branch for which the work is, also when the task's is checked out" {
  git init -qb main new
  task-dispatch new --print -C new --id T-2026-004 -b agent/n -d "work of n" --criterion x >message
  ends 75 task-dispatch coordinate <message >told 2>err
  grep -q "unknown base HEAD" err
  jq -e '.base == ""' state/tasks/T-2026-004.json
  for n in one two three; do
    [ "$n" != two ] || git -C new checkout -q -b agent/n
    [ "$n" != three ] || git -C new checkout -q main
    echo "$n" >>"new/$n"
    git -C new add -A
    git -C new commit -qm "$n"
  done
  for at in main agent/n --detach; do
    git -C new checkout -q "$at"
    [ "$(GIT_PAGER=cat task-dispatch diff 4 | grep '^[+][^+]')" = +two ]
  done
}

@test "log prints the newest attempt, escaped on a terminal, and follows until the task ends" {
  need script
  run -0 --separate-stderr task-dispatch log 1
  [ "$output" = "the work of T-2026-001" ]
  [[ $stderr == *"S1: attempt 1 by executor"* ]]
  run -0 --separate-stderr task-dispatch log 1 reviewer
  [ "$output" = "looked at T-2026-001" ]
  [[ $stderr == *"S1: attempt 1 by reviewer"* ]]
  amp-ack track -s empty </dev/null
  run -1 --separate-stderr task-dispatch log -s empty -f 9
  [[ $stderr == *'no task "9" in empty'* ]]
  run -0 --separate-stderr task-dispatch log 1 review
  [[ $stderr == *"no agent review has worked on T-2026-001"* ]]
  run -0 --separate-stderr task-dispatch log 3
  [ "$output" = "" ]
  [[ $stderr == *"no agent has worked on T-2026-003"* ]]
  at=state/run/T-2026-003
  mkdir -p "$at/bob-S1-1-00000001" "$at/bob-S1-2-00000002"
  echo first >"$at/bob-S1-1-00000001/stdout"
  touch -d "1 minute ago" "$at/bob-S1-1-00000001/message.json"
  touch "$at/bob-S1-2-00000002/message.json"
  task-dispatch log -f 3 >out 2>err &
  pids+=($!)
  wait_until 10 grep -q "attempt 2 by bob" err
  printf 'a part' >"$at/bob-S1-2-00000002/stdout"
  wait_until 10 grep -q "a part" out
  printf ' \e[31mred\n' >>"$at/bob-S1-2-00000002/stdout"
  echo trouble >"$at/bob-S1-2-00000002/stderr"
  wait_until 10 grep -q trouble out
  mkdir "$at/bob-S1-3-00000003"
  touch -d "1 minute" "$at/bob-S1-3-00000003/message.json"
  echo third >"$at/bob-S1-3-00000003/stdout"
  wait_until 10 grep -q third out
  task-dispatch cancel 3
  wait "${pids[0]}"
  [ "$(cat out)" = $'a part \e[31mred\ntrouble\nthird' ]
  touch "$at/bob-S1-3-00000003/message.json"
  touch -d "1 minute" "$at/bob-S1-2-00000002/message.json"
  script -qec "task-dispatch log 3" /dev/null </dev/null >out
  grep -qF 'a part \x1b[31mred' out
}

@test "cancel ends a running attempt within a second, also a stubborn one; the executor goes on" {
  cat >stubborn <<'A'
#!/bin/bash
trap '' TERM
setsid -f bash -c 'trap "" TERM; echo $$ >"$0/orphan"; while :; do sleep 1000; done' "$PLACE"
echo $$ >"$PLACE/child"
while :; do sleep 1000; done
A
  chmod +x stubborn
  export PLACE=$PWD
  mkfifo in
  jq -c '(.msg // .) | select(.type == "task_dispatch" and .from == "coordinator")' "$top/out" >dispatch
  [ -s dispatch ]
  AMP_CONFINE=off task-dispatch run --unconfined --agent bob --trust-in in --exec ./stubborn --grace 60s >out 2>err &
  pids+=($!)
  exec 4>in
  cat dispatch >&4
  wait_until 30 test -s child
  wait_until 30 test -s orphan
  task-dispatch list --json | jq -se 'map(select(.task == "T-2026-003"))[0].working'
  task-dispatch list | grep -qE "^T-2026-003  working \(bob, [0-9]+ s\) "
  run -1 --separate-stderr task-dispatch edit 3
  [[ $stderr == *"task T-2026-003 is working (bob, "*"its result would be refused; edit the task when the attempt has ended"* ]]
  began=$(date +%s%N)
  task-dispatch cancel 3
  took=$((($(date +%s%N) - began) / 1000000))
  run -1 kill -0 "$(cat child)"
  run -1 kill -0 "$(cat orphan)"
  [ "$took" -lt 1500 ]
  # It does not start again, and its executor takes other work.
  wait_until 30 grep -q "dropped: terminal" err
  kill -0 "${pids[0]}"
}

@test "the examples of task-dispatch-list(1), task-dispatch-land(1), task-dispatch-cancel(1) run as they stand" {
  for page in task-dispatch-list.1 task-dispatch-land.1 task-dispatch-cancel.1; do
    sed -n '/^\.Sh EXAMPLES/,/^\.Sh SEE ALSO/p' "$AMP_TOP/man/$page" | sed -n 's/^\$ //p'
  done >script
  [ "$(grep -c '^task-dispatch\|^cd\|^cat' script)" -eq 8 ]
  run -0 --separate-stderr bash -euo pipefail script
  [ "${lines[0]}" = T-2026-002 ]
  [ "${lines[-1]}" = "looked at T-2026-001" ]
  [[ "$stderr" == *"main can move from"*"main moved from"*"T-2026-002 is cancelled"* ]]
  [ -e "$top/work/done-T-2026-001" ]
}

@test "the examples of task-dispatch-diff(1), task-dispatch-retry(1) run as they stand" {
  for page in task-dispatch-diff.1 task-dispatch-retry.1; do
    sed -n '/^\.Sh EXAMPLES/,/^\.Sh SEE ALSO/p' "$AMP_TOP/man/$page" | sed -n 's/^\$ //p'
  done >script
  [ "$(grep -c '^task-dispatch' script)" -eq 3 ]
  run -0 --separate-stderr bash -euo pipefail script
  [[ $output == *"+1"*"the work of T-2026-001"*"T-2026-002 sent again" ]]
}
