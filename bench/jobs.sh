#!/bin/bash
# jobs.sh [TRIAL...]: TASKS tasks by task-dispatch loop with land.auto. An executor works for 1 to 3 s, the reviewer for 0.5 s
# and rejects each task once, and two tasks conflict, so that one of them goes back.
#   time   -j 4 -J 2 against -j 1; the agents are not confined
#   kill   a process of the loop, or the loop, is killed each second until all tasks have landed
#   walls  the agents are confined, as init sets it up
#   pools  three pools of task-queue work on one state, without a loop
# Each trial ends with a check by the records: each task has landed once, from an approved commit. Environment: TASKS, SEED (kill),
# KEEP: do not remove the directory, whose name is printed.
set -euo pipefail
cd "$(dirname "$0")/.."
PATH=$PWD/build/bin:$PATH
export GIT_CONFIG_GLOBAL=/dev/null GIT_AUTHOR_NAME=b GIT_AUTHOR_EMAIL=b@x
export GIT_COMMITTER_NAME=b GIT_COMMITTER_EMAIL=b@x
unset AMP_AGENT AMP_STATE AMP_IDENTITY AMP_CONFINE
tasks=${TASKS:-10}
RANDOM=${SEED:-7}
work=$(mktemp -d)
trap '[ -n "${KEEP-}" ] || rm -rf "$work"' EXIT
[ -z "${KEEP-}" ] || echo "$work"
cd "$work"
cat >executor <<'A'
#!/bin/sh
n=$(expr "$AMP_TASK_ID" : '.*-0*\([1-9][0-9]*\)')
sleep "$((1 + n % 3))"
at=$(grep -o 'git merge [0-9a-f]*' "$AMP_MESSAGE" | sed 's/.* //;q')
[ -z "$at" ] || git merge -q -X ours "$at"
[ "$AMP_ATTEMPT" -gt 1 ] || [ "$n" -gt 2 ] || echo "$AMP_TASK_ID" >shared
echo "attempt $AMP_ATTEMPT" >>"done-$AMP_TASK_ID"
git add -A && git commit -qm "Attempt $AMP_ATTEMPT at $AMP_TASK_ID"
A
cat >reviewer <<'A'
#!/bin/sh
sleep 0.5
[ "$(wc -l <"done-$AMP_TASK_ID")" -gt 1 ]
A
chmod +x executor reviewer
# A job is not given up because its pools are killed; three pools may work on more jobs than there are processors.
echo '{"land": {"auto": true, "check": "ls done-*"}, "queue": {"losses": 1000, "max_parallel": 8}}' >amp.json
export AMP_CONFIG=$work/amp.json
for ((i = 1; i <= tasks; i++)); do
  printf '# Task %s\nBranch: b/%s\n## Acceptance criteria\n- two attempts\n' "$i" "$i" >"$i.md"
done

# begin [OPTION...]: ./repo with a loop.sh, as init makes it.
begin() {
  rm -rf repo repo.worktrees
  git init -q -b main repo
  cd repo
  git commit -q --allow-empty -m start
  setsid -w task-dispatch init --yes "$@" -x "$work/executor" -y "$work/reviewer" </dev/null >../log 2>&1
}
# loop [OPTION...]
loop() { setsid -w ./loop.sh --verdict-by-exit "$@" </dev/null >>../log 2>&1; }
# clocked COMMAND...: its milliseconds, in $ms.
clocked() {
  local t0
  t0=$(date +%s%N)
  "$@" || {
    tail -n 40 ../log >&2
    return 1
  }
  ms=$((($(date +%s%N) - t0) / 1000000))
}
report() { awk -v what="$1" -v ms="$2" -v note="${3-}" 'BEGIN { printf "%-40s %7.1f s  %s\n", what, ms / 1000, note }'; }

said() { jq -c '.out[]?.line | fromjson | (.msg // .)' .git/amp/log/*.ndjson; }
fails() {
  echo "jobs.sh: $*" >&2
  git log --graph --oneline main >&2
  task-dispatch list --all >&2
  return 1
}
# landed: by the records, each task has landed once, and nothing was done twice.
landed() {
  local task commit n=0 back=0 unlanded
  said >../said
  for task in $(jq -r .id .git/amp/tasks/*.json); do
    n=$((n + 1))
    # The moves of the branch for this task.
    [ "$(jq -r --arg key "landing.$task" 'select(.key? == $key) | .event' .git/amp/log/*.ndjson | grep -c '^moved$')" -eq 1 ] ||
      fails "$task did not land once"
    commit=$(jq -r --arg key "landing.$task" 'select(.key? == $key) | .state.list[-1].commit' .git/amp/log/*.ndjson | tail -n 1)
    git merge-base --is-ancestor "$commit" main || fails "$task: $commit is not in the history"
    jq -e --arg c "$commit" '.state == "done" and (.subtasks | all(.verdict == "approved" and .commit == $c))' \
      ".git/amp/tasks/$task.json" >/dev/null || fails "$task: $commit was not approved"
    unlanded=$(jq ".unlanded // 0" ".git/amp/tasks/$task.json")
    back=$((back + unlanded))
    # Each attempt left its line once, and each had one verdict: the first a rejection.
    git show "main:done-$task" | diff - <(seq -f 'attempt %g' $((2 + unlanded))) || fails "$task: attempts"
    [ "$(jq -r --arg id "$task" 'select(.type == "review_verdict" and .task_id == $id) | .payload.decision' ../said | paste -sd' ')" = \
      "rejected approved$( ((unlanded == 0)) || echo ' approved')" ] || fails "$task: verdicts"
  done
  [ "$n" -eq "$tasks" ] || fails "$n tasks"
  [ "$back" -eq 1 ] || fails "$back conflicts"
  jq -r 'select(.type == "task_result" or .type == "review_verdict") | .type + " " + .context_ref[0]' ../said | sort | uniq -d >../twice
  [ ! -s ../twice ] || fails "answered twice: $(cat ../twice)"
  # The history has the commits of the attempts, and a merge that names its task unless the branch could move to the task's commit.
  git log --merges --grep '^Land ' --format='%(trailers:key=Task,valueonly,separator=%x20)' main | sort >../merges
  jq -r 'select((.key? // "" | startswith("landing.")) and .event == "moved" and .state.list[-1].merged) | .state.task' .git/amp/log/*.ndjson |
    sort | diff - ../merges || fails "the merges are not those of the records"
  [ "$(git log --format=%s main | grep -vcE '^(start|Attempt [0-9]+ at T-[0-9-]+|Land Task [0-9]+|Merge commit .*)$')" -eq 0 ] ||
    fails "the history has other commits"
  [ -z "$(git status --porcelain -uno)" ] || fails "the worktree has changes"
}

trial_time() {
  local one
  begin --unconfined
  clocked loop ../*.md
  landed
  report "loop -j 1" "$ms"
  one=$ms
  cd .. && begin --unconfined
  clocked loop -j 4 -J 2 ../*.md
  landed
  report "loop -j 4 -J 2" "$ms" "$(awk -v a="$ms" -v b="$one" 'BEGIN { printf "%.3f of it; at most 0.4", a / b }')"
  [ $((ms * 10)) -le $((one * 4)) ]
}

trial_walls() {
  begin
  clocked loop -j 4 -J 2 ../*.md
  landed
  report "confined: loop -j 4 -J 2" "$ms"
}

# The processes below process $1, with it, without those that an agent started: its script would go on without them.
tree() {
  local child
  echo "$1"
  [[ $(tr '\0' ' ' <"/proc/$1/cmdline") != "/bin/sh $work/"* ]] || return 0
  # shellcheck disable=SC2013 # words
  for child in $(cat "/proc/$1/task/"*/children); do tree "$child"; done
}
# loop_killed: the loop with a process killed each second; it is started again when it has ended.
loop_killed() {
  local pid victims n=0 status
  while :; do
    ./loop.sh --verdict-by-exit -j 4 -J 2 --retries 1000 ../*.md </dev/null >>../log 2>&1 &
    pid=$!
    while sleep 1 && kill -0 "$pid" 2>/dev/null; do
      mapfile -t victims < <(tree "$pid")
      n=${victims[RANDOM % ${#victims[@]}]}
      kills=$((kills + 1))
      echo "jobs.sh: kill $(tr '\0' ' ' <"/proc/$n/cmdline" 2>/dev/null | cut -c1-120)" >>../log
      kill -9 "$n" 2>/dev/null || :
    done
    status=0
    wait "$pid" 2>/dev/null || status=$?
    echo "jobs.sh: the loop ended with $status" >>../log
    [ "$status" -ne 0 ] || return 0
    starts=$((starts + 1))
  done
} 2>>"$work/log"
trial_kill() {
  kills=0 starts=1
  begin --unconfined
  clocked loop_killed
  landed
  report "killed: loop -j 4 -J 2" "$ms" "$kills kills, $starts starts"
}

# coordinated: the coordinator's filters until no task is open. Dispatches and reviews enter the queue; what the pools say comes
# back through a FIFO of each.
coordinated() {
  task-dispatch coordinate --until-done --hold --in - --in system=../from-system --in ../from-1 --in ../from-2 --in ../from-3 </dev/null |
    amp-ack track | amp-route --out ../from-system -r 'to=executor => fifo:../submitted' -r 'to=reviewer => fifo:../submitted' \
    -r 'to=admin => fifo:../admin'
}
# Everything is landed by land --all; work that is sent back is led again.
pooled() {
  local i status
  export AMP_STATE=$PWD/.git/amp
  mkfifo ../from-{1,2,3,system} ../submitted ../admin
  task-dispatch new ../*.md
  for i in 1 2 3; do
    task-queue work --unconfined --verdict-by-exit --name "p$i" --type executor=2 --type reviewer=1 \
      --command "reviewer=../reviewer" -x ../executor 1<>"../from-$i" &
  done
  task-queue submit <>../submitted >/dev/null &
  cat <>../admin >/dev/null &
  while :; do
    coordinated
    status=0
    task-dispatch land --unconfined --all || status=$?
    [ "$status" -eq 75 ] || break
  done
  task-queue shutdown
  kill %4 %5
  return "$status"
} >>"$work/log" 2>&1
trial_pools() {
  begin --unconfined
  clocked pooled
  landed
  report "three pools of task-queue work" "$ms"
}

for trial in "${@:-time}"; do
  (
    "trial_$trial"
  )
done
