# LOOP_ROUNDS sets how many loops run in a row, LOOP_TASKS how many tasks are in flight at once.
# The whole loop, from `task-dispatch new` to the last verdict, through the script that users copy.
# long
# plain: it joins filters that have suites of their own
# walls

load ../lib

: "${LOOP_ROUNDS:=10}" "${LOOP_TASKS:=40}"
LOOP=$AMP_TOP/examples/qa-loop/loop.sh

setup() {
  # The loop runs as a user would run it.
  unset AMP_IDENTITY AMP_CONFINE
  cd "$BATS_TEST_TMPDIR" || return
  repo work
  echo start >work/file
  git -C work add -A
  git -C work commit -qm "a file"

  # An executor that leaves a change, and a reviewer that approves it.
  cat >executor <<'A'
#!/bin/sh
set -eu
. "$MAYBE_DIE"
echo "$AMP_TASK_ID attempt $AMP_ATTEMPT" >"done-$AMP_SUBTASK_ID"
A
  cat >reviewer <<'A'
#!/bin/sh
set -eu
. "$MAYBE_DIE"
criterion='a file says so'
grep -qF "$criterion" "$AMP_CRITERIA"
echo '{"decision":"approved","confidence":1,"criteria_results":[' >"$AMP_RESULT.new"
echo "{\"criterion\":\"$criterion\",\"passed\":true,\"evidence\":\"seen\"}]}" >>"$AMP_RESULT.new"
mv "$AMP_RESULT.new" "$AMP_RESULT"
A
  # Dies at random, but at most twice at one piece of work: a third time would end its attempts.
  cat >maybe_die <<'A'
if [ -n "${DEATHS:-}" ] && [ $(($(od -An -N2 -tu2 /dev/urandom) % 3)) -eq 0 ]; then
  for n in 1 2; do
    ! mkdir "$DEATHS/$AMP_ROLE-$AMP_TASK_ID-$n" 2>/dev/null || kill -9 $$
  done
fi
A
  export MAYBE_DIE=$PWD/maybe_die
  # What these agents need besides their worktree.
  mkdir deaths
  mkfifo started
  jq -n --arg here "$PWD" '{read: ["\($here)/maybe_die"], write: ["\($here)/deaths", "\($here)/started"],
    environment: ["MAYBE_DIE", "DEATHS", "STARTED", "LOOP_MARK"]}' >policy.json
  export POLICY=$PWD/policy.json
  chmod +x executor reviewer
  export EXECUTOR=$PWD/executor REVIEWER=$PWD/reviewer
}

# tasks N BYTES [PREFIX]: N new tasks whose description has BYTES bytes.
tasks() {
  local i text before
  text=$(head -c "$2" /dev/zero | tr '\0' x)
  before=$({ find state/tasks -name '*.json' 2>/dev/null || :; } | wc -l)
  for ((i = 1; i <= $1; i++)); do
    task-dispatch new --print --id "$(printf 'T-%s-%03d' "$(date -u +%Y)" $((before + i)))" --repo "$PWD/work" --base main --branch "${3:-agent/t}$i" \
      --description "$text" --criterion "a file says so"
  done
}

# The processes that carry our mark in their environment.
marked() {
  grep -lsz "^LOOP_MARK=$1\$" /proc/[0-9]*/environ | cut -d/ -f3 |
    while read -r p; do gone "$p" || echo "$p"; done
}
none_marked() { [ -z "$(marked "$1")" ]; }

approved() {
  cat state/log/*.ndjson |
    jq -r 'select((.key // "") | startswith("task.")) | [.key, .to] | @tsv' |
    awk '{ s[$1] = $2 } END { for (k in s) n[s[k]]++; print n["done"] + 0 }'
}

# The lines of the session in the README are among those in $output; only times, ids and the user differ.
readme_session() {
  local line n=0
  plain() {
    sed -E 's/^[0-9:]{8}  //; s/[0-9]{4}-[0-9]{3}/ID/g; s/[0-9a-f]{12}/COMMIT/g; s/(it was: )[0-9a-f]{7}/\1COMMIT/; s/ by [a-z]+$/ by USER/; s,/tmp/[^/ ]*/,TMP/,; s/…$//'
  }
  plain <<<"$output" | sed -E "s,$BATS_TEST_TMPDIR/[^/ ]*/,TMP/,; s,${TMPDIR:-/tmp}/[^/ ]*/,TMP/," >real
  while IFS= read -r line; do
    case $line in '```' | '' | …) continue ;; esac
    grep -qF -- "$line" real || { echo "not printed: $line" && return 1; }
    n=$((n + 1))
  done < <(sed -n '/^## A session/,/^```sh/p' "$AMP_TOP/README.md" | sed -n '/^```$/,/^```$/p' | plain)
  [ "$n" -ge 25 ]
}

@test "the demo runs: rejection, rework, lock, decision, guard, forgery, proof" {
  run -0 timeout 120 bash "$AMP_TOP/examples/qa-loop/demo.sh"
  readme_session
  [[ $output == *"hallucination_lock"* ]]
  [[ $output == *"fix/units at "*" is approved"* ]]
  [[ $output == *"fix/decimals at "*" is approved"* ]]
  [[ $output == *"main is where it was"* ]]
  [[ $output == *"from-reviewer:1: unsigned: "* ]]
  [[ $output == *"T-2026-003 is dispatched"* ]]
  [[ $output == *"relied on the keys of "* ]]
  [[ $output == *"the bundle: bad_signature: "* ]]
}

@test "the loop with coding agents runs on recordings: a rejection, a rework, an approval" {
  run -0 timeout 60 bash "$AMP_TOP/examples/agent-clis/demo.sh"
  [[ $output == *"rejected, 1 issue: unit() may return -1"* ]]
  [[ $output == *"is approved: task T-"* ]]
}

@test "loops in a row end, each with its approval" {
  for ((i = 1; i <= LOOP_ROUNDS; i++)); do
    rm -rf state work.worktrees
    git -C work worktree prune
    tasks 1 20 "agent/row$i-" >tasks.ndjson
    LOOP_MARK=row$BATS_ROOT_PID timeout 60 bash "$LOOP" state <tasks.ndjson >out 2>err
    [ "$(approved)" -eq 1 ]
    wait_until 30 none_marked "row$BATS_ROOT_PID"
  done
}

@test "more tasks of 5 KB than pipes hold are in flight at once, and all are approved" {
  tasks "$LOOP_TASKS" 5000 >tasks.ndjson
  timeout 240 bash "$LOOP" state <tasks.ndjson >out 2>err
  [ "$(approved)" -eq "$LOOP_TASKS" ]
}

@test "agents that are killed at random cost attempts, not tasks" {
  tasks 6 100 >tasks.ndjson
  DEATHS=$PWD/deaths timeout 120 bash "$LOOP" state <tasks.ndjson >out 2>err
  [ "$(approved)" -eq 6 ]
  echo "# killed $(find deaths -mindepth 1 | wc -l) times" >&3
}

@test "Ctrl-C in the middle leaves no process behind, and the next run ends the work" {
  tasks 4 100 >tasks.ndjson
  mark=intr$BATS_ROOT_PID.$RANDOM
  cat >slow <<'A'
#!/bin/sh
echo up >"$STARTED"
exec sleep 600
A
  chmod +x slow
  STARTED=$PWD/started LOOP_MARK=$mark EXECUTOR=$PWD/slow \
    env --default-signal=INT setsid bash "$LOOP" "$PWD/state" <tasks.ndjson >out 2>err 3>&- &
  loop=$!
  read -r _ <started
  kill -INT -- "-$loop"
  wait_until 30 gone "$loop"
  wait_until 30 none_marked "$mark"

  LOOP_MARK=$mark timeout 120 bash "$LOOP" state </dev/null >out 2>err
  [ "$(approved)" -eq 4 ]
}

@test "nobody to ask: the loop ends with 75, and the next one, with an answer, ends the task" {
  cat >reviewer <<'A'
#!/bin/sh
jq '{decision: "rejected", confidence: 1,
     criteria_results: [.[] | {criterion: ., passed: false, evidence: "no"}],
     issues: [{severity: "major", file: "file", line: 1, description: "bad", suggested_fix: "good"}]}' \
  "$AMP_CRITERIA" >"$AMP_RESULT"
A
  : >maybe_die
  tasks 1 10 >new.ndjson
  run -75 --separate-stderr timeout 60 setsid -w "$LOOP" "$PWD/state" <new.ndjson
  [[ "$stderr" == *"no terminal"* ]]
  [[ "$stderr" == *"1 open: T-"* ]]
  echo terminate >answer
  AMP_ANSWER=$PWD/answer timeout 60 setsid -w "$LOOP" "$PWD/state" </dev/null
}

@test "the loop in the README runs as it is printed" {
  printf '#!/bin/sh\necho line >>work\n' >executor.sh
  cat >reviewer.sh <<'A'
#!/bin/sh
jq '{decision: "approved", confidence: 1, criteria_results: [.[] | {criterion: ., passed: true, evidence: "seen"}]}' \
  "$AMP_CRITERIA" >"$AMP_RESULT"
A
  chmod +x executor.sh reviewer.sh
  export AMP_STATE=$PWD/state fifos=$PWD/fifos
  mkdir fifos
  mkfifo fifos/{,from-}{executor,reviewer,admin} fifos/from-system
  tasks 1 1 >task
  sed -n '/^```sh/,/^```/p' "$AMP_TOP/README.md" | sed '/^```/d' >script
  [ "$(grep -c '&$' script)" = 3 ]
  run -0 timeout 60 bash script <task
  run task-dispatch list --all --json
  echo "$output"
  [ "$(jq -r '[.state, .verdict, .attempts] | join(" ")' <<<"$output")" = "done approved 1" ]
}
