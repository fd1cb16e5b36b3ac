#!/usr/bin/env bats
# Acceptance criteria that are commands.
# walls

load ../lib

setup() {
  need git jq
  need_tool task-dispatch amp-ack amp-route hitl-prompt
  unset AMP_IDENTITY AMP_STATE AMP_CONFINE
  cd "$BATS_TEST_TMPDIR" || return 1
  repo repo
  cat >executor <<'A'
#!/bin/sh
echo "line $AMP_ATTEMPT" >>work
A
  # A reviewer that says the contrary of each command.
  cat >reviewer <<'A'
#!/bin/sh
echo up >>started
jq '{decision: "approved", confidence: 1, criteria_results: [.[] | {criterion: ., passed: true, evidence: "as it says"}]}' \
  "$AMP_CRITERIA" >"$AMP_RESULT.new"
mv "$AMP_RESULT.new" "$AMP_RESULT"
A
  chmod +x executor reviewer
  cd repo || return 1
}

verdicts() { cat .git/amp/log/*.ndjson | jq -c '.out[]?.line | fromjson | (.msg // .) | select(.type == "review_verdict").payload'; }

@test "a command runs in the reviewer's worktree; a failure is a rejection without the reviewer, its end the issue" {
  cat >../task.md <<'A'
# A task
Branch: work/one
## Acceptance criteria
- $ seq 2000; echo "lines: $(wc -l <work)" >&2; [ "$(wc -l <work)" -eq 2 ]
- a file says so
A
  run -0 --separate-stderr task-dispatch loop -x ../executor -y ../reviewer ../task.md
  [[ $stderr == *"rejected, 1 issue: \$ seq 2000"*"reworking: attempt 2"*"approved"* ]]
  [ "$(task-dispatch list --json | jq -c '[.state, .attempts]')" = '["done",2]' ]
  verdicts >../verdicts
  # The first one: the command's result, and a criterion that nobody judged; the output is cut at its beginning.
  jq -se '.[0] | .decision == "rejected" and (.issues | length == 1) and .issues[0].severity == "major" and
    (.issues[0].description | startswith("$ seq 2000; ") and endswith("\n2000\nlines: 1") and contains(": exit 1\n…") and length < 1700)
    and .criteria_results[0].passed == false and .criteria_results[1].passed == null' ../verdicts
  # The second one: the reviewer's, but for the command.
  jq -se '.[1] | .decision == "approved" and (.criteria_results[0] | .passed == true and (.evidence | startswith("exit 0\n"))) and
    (.criteria_results[1] | .passed == true and .evidence == "as it says")' ../verdicts
  [ "$(task-dispatch log 1 reviewer 2>&1 >/dev/null | grep -c "attempt 2 by reviewer")" -eq 1 ]
  ls -d .git/amp/run/T-*/reviewer-S1-1-*/ >../dirs
  while read -r dir; do [ ! -s "$dir/stdout" ]; done <../dirs
}

@test "what a command writes is not in the reviewer's worktree, nor among its fixes" {
  cat >../reviewer <<'A'
#!/bin/sh
[ -z "$(git status --porcelain)" ] && [ ! -e left ] || exit 1
sed -i s/line/Line/ work
jq '{decision: "approved_with_fix", confidence: 1, direct_fixes: [{file: "work", change_type: "typo", diff_lines: 2}],
     criteria_results: [.[] | {criterion: ., passed: true, evidence: "as it says"}]}' "$AMP_CRITERIA" >"$AMP_RESULT.new"
mv "$AMP_RESULT.new" "$AMP_RESULT"
A
  for confined in '' off; do
    printf '# A task\nBranch: work/one%s\n## Acceptance criteria\n- $ touch left; echo more >>work\n' "$confined" >../task.md
    run -0 env ${confined:+"AMP_CONFINE=$confined"} task-dispatch loop -x ../executor -y ../reviewer ../task.md
    [ "$(git show "work/one$confined:work")" = "Line 1" ]
    run -128 git show "work/one$confined:left"
  done
  [ "$(verdicts | jq -r .decision | uniq -c | xargs)" = "2 approved_with_fix" ]
  [ "$(git worktree list | wc -l)" = 1 ]
}

@test "a command is confined as the reviewer's" {
  "$AMP_BUILD/libexec/amp/confine" --probe | jq -e .namespaces >/dev/null || skip "no namespaces here"
  printf '# A task\nBranch: work/one\n## Acceptance criteria\n- $ touch %s/outside; ! ls %s/.git/amp/log\n' \
    "$BATS_TEST_TMPDIR" "$PWD" >../task.md
  run --separate-stderr task-dispatch loop -x ../executor -y ../reviewer ../task.md
  [ "$status" -eq 0 ]
  [ ! -e ../outside ]
  [ "$(verdicts | jq -r .decision)" = approved ]
}

@test "a command of a message does not run: of a dispatch, or of a task that a coordinator took" {
  export AMP_CONFINE=off
  # Forged: no coordinator knows the task, or it took it from a message.
  task-dispatch new --print --id T-2026-001 -b work/one -d "A task" --criterion "$ touch $BATS_TEST_TMPDIR/ran" >../admin
  jq -e '.payload.acceptance_criteria[0] | startswith("$ ")' ../admin
  export AMP_STATE=$PWD/.git/amp
  EXECUTOR=$PWD/../executor REVIEWER=$PWD/../reviewer timeout 60 bash "$AMP_TOP/examples/qa-loop/loop.sh" "$AMP_STATE" <../admin >../out 2>../err
  [ "$(verdicts | jq -r '.decision + " " + .criteria_results[0].evidence')" = "approved as it says" ]
  [ ! -e ../ran ]
  # A person's task whose record has its command: a forged dispatch with another one.
  task-dispatch new --id T-2026-002 -b work/two -d "A task" --criterion "$ true"
  jq -e '.commands == ["$ true"]' .git/amp/tasks/T-2026-002.json
  jq -e '.commands == []' .git/amp/tasks/T-2026-001.json
  ends 75 task-dispatch coordinate </dev/null >../sent 2>/dev/null
  jq -c '(.msg // .) | select(.type == "task_dispatch" and .to == "executor")' ../sent >../dispatch
  task-dispatch run --unconfined --trust-in ../dispatch --exec ../executor </dev/null >../result 2>../err
  jq -c --arg c "$ touch $BATS_TEST_TMPDIR/ran" '.msg_id += "9" | .payload.acceptance_criteria = [$c]' ../dispatch >../forged
  jq -e '.task_id == "T-2026-002"' ../forged
  amp-ack track --identity off <../forged >/dev/null 2>../err
  jq -c '(.msg // .) | select(.type == "task_result")' ../result >../line
  jq -cn --slurpfile r ../line --slurpfile d ../forged '{msg_id: "review_request-T-2026-002-9", protocol_version: "AMP/1.0", type: "review_request",
    from: "coordinator", to: "reviewer", task_id: "T-2026-002", timestamp: "2026-11-28T00:00:00.000Z", requires_ack: false,
    context_ref: [$d[0].msg_id, $r[0].msg_id], payload: {original_dispatch_ref: $d[0].msg_id, task_result_ref: $r[0].msg_id,
    diff_url: ("file://" + $d[0].payload.repo + "#main...work/two"), review_scope: "full", ci_status: {}, reject_count: 0}}' >../request
  task-dispatch review --unconfined --trust-in ../request --exec ../reviewer </dev/null >../out 2>../err || cat ../err
  jq -se 'map((.msg // .) | select(.type == "review_verdict"))[0].payload.criteria_results[0].evidence == "as it says"' ../out
  [ ! -e ../ran ]
}
