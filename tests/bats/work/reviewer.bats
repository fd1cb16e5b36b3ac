#!/usr/bin/env bats
# task-dispatch review and verify: the Reviewer around an agent's command.

setup() {
  load ../lib
  load ../agents
  need jq git
  need_tool task-dispatch
}

verdict_agent() {
  agent judge <<EOS
cat >"\$AMP_RESULT.new" <<'V' && mv "\$AMP_RESULT.new" "\$AMP_RESULT"
$1
V
EOS
}

@test "the answer becomes a review_verdict, every criterion in it" {
  done_work
  verdict_agent '{"decision":"approved","confidence":0.9,
    "criteria_results":[{"criterion":"tests pass","passed":true,"evidence":"I ran them"}]}'
  review | review_agent --exec ./judge
  got verdict.ndjson '.type == "ack" and .from == "reviewer"'
  got verdict.ndjson '.type == "review_verdict" and .payload.decision == "approved" and .payload.confidence == 0.9
    and .payload.criteria_results == [
      {criterion: "it works", passed: null, evidence: "not judged by the reviewer"},
      {criterion: "tests pass", passed: true, evidence: "I ran them"}]
    and (.context_ref | length) == 3'
  # The number has the digits that it was given.
  grep -q '"confidence":0[.]9[,}]' verdict.ndjson
  amp-validate <verdict.ndjson >valid.ndjson
  cmp verdict.ndjson valid.ndjson
}

@test "the reviewer sees the commit detached, the diff, the open criteria first, the result" {
  workplace
  agent work <<'EOS'
echo new >hello.txt
echo '{"self_assessment":{"criteria_met":[true,null]}}' >"$AMP_RESULT"
EOS
  dispatch | run_agent --exec ./work
  agent look <<'EOS'
cp "$AMP_DIFF" "$AMP_STATE/diff"
cp "$AMP_CRITERIA" "$AMP_STATE/criteria"
cp "$AMP_CONTEXT" "$AMP_STATE/context"
git rev-parse HEAD >"$AMP_STATE/head"
git symbolic-ref -q HEAD >"$AMP_STATE/branch"
echo '{"decision":"approved","confidence":1}' >"$AMP_RESULT"
EOS
  review | review_agent --exec ./look
  grep -q '^+new' "$STATE/diff"
  [ "$(jq -c . "$STATE/criteria")" = '["tests pass","it works"]' ]
  [ "$(jq -r .result.payload.commit_hash "$STATE/context")" = "$(cat "$STATE/head")" ]
  [ "$(jq -r .dispatch.type "$STATE/context")" = task_dispatch ]
  [ ! -s "$STATE/branch" ]
}

@test "exit 0 without a verdict approves nothing: repeated, then reported to the coordinator" {
  done_work
  agent silent <<'EOS'
echo run >>"$AMP_STATE/runs"
echo "decision: approved"
EOS
  review | review_agent --retries 2 --exec ./silent
  [ "$(wc -l <"$STATE/runs")" = 3 ]
  got_no verdict.ndjson '.type == "review_verdict"'
  got verdict.ndjson '.type == "nack" and .code == "no_verdict" and .failed_stage == "FAILED" and .retryable'
  run -1 task-dispatch verify --state "$STATE" --repo "$REPO" feat/x
}

@test "a reviewer that crashes, fails or writes nonsense has rejected nothing" {
  done_work
  agent crash <<'EOS'
kill -SEGV $$
EOS
  review | review_agent --retries 0 --exec ./crash
  got_no verdict.ndjson '.type == "review_verdict"'
  got verdict.ndjson '.type == "nack"'

  agent fails <<'EOS'
echo '{"decision":"approved","confidence":1}' >"$AMP_RESULT"
exit 2
EOS
  review | review_agent --retries 0 --exec ./fails
  got_no verdict.ndjson '.type == "review_verdict"'

  verdict_agent '{"decision":"maybe","confidence":1}'
  review | review_agent --retries 0 --exec ./judge
  got verdict.ndjson '.type == "nack" and .code == "bad_answer" and (.message | test("decision"))'

}

@test "an answer that breaks a rule of the verdict is refused with its field, its rule and its file" {
  done_work
  refused() {
    verdict_agent "$1"
    review | review_agent --retries 0 --exec ./judge
    got verdict.ndjson ".type == \"nack\" and .code == \"bad_answer\"
      and (.message | test(\"^$2: .*schemas/agent/verdict.json, in $STATE/run/T-2026-001/.*/result.json\"))"
    got_no verdict.ndjson '.type == "review_verdict"'
    grep -q "no verdict: $2: " err
    # The published schema says the same.
    printf '%s\n' "$1" | tr -d '\n' >answer.json
    run -1 amp-validate -S agent/verdict answer.json
  }
  refused '{"decision":"rejected","confidence":1}' "issues: required"
  refused '{"decision":"rejected","confidence":1,"issues":[]}' "issues: minItems"
  refused '{"decision":"approved_with_fix","confidence":1}' "direct_fixes: required"
  refused '{"decision":"approved","confidence":2}' "confidence: maximum"
  refused '{"decision":"approved","confidence":1,"issues":[{"severity":"bad","description":"x"}]}' "issues.0..severity: enum"
}

@test "a reviewer's retry_after_sec past 30 days is reported, and the pause counts" {
  done_work
  agent later <<'EOS'
n=$(wc -l 2>/dev/null <"$AMP_STATE/runs" || echo 0)
echo run >>"$AMP_STATE/runs"
case $n in
0) echo '{"retry_after_sec":1000000000000}' ;;
1) echo '{"retry_after_sec":9223372036854775}' ;;
2) echo '{"retry_after_sec":-1}' ;;
3) echo '{"retry_after_sec":"soon"}' ;;
*) echo '{"decision":"approved","confidence":1}' ;;
esac >"$AMP_RESULT"
[ "$n" -ge 4 ] || exit 75
EOS
  review | timeout 60 task-dispatch review --state "$STATE" --pause 10ms --exec ./later >verdict.ndjson 2>err
  got verdict.ndjson '.type == "review_verdict"'
  [ "$(wc -l <"$STATE/runs")" = 5 ]
  [ "$(grep -c 'result.json: retry_after_sec is not used: expected an integer from 0 to 2592000' err)" = 4 ]
}

@test "a plain test runner may be the reviewer, when asked for" {
  done_work
  agent passes <<'EOS'
true
EOS
  review | review_agent --verdict-by-exit --exec ./passes
  got verdict.ndjson '.type == "review_verdict" and .payload.decision == "approved" and .payload.confidence == 1'

  agent fails <<'EOS'
echo "test 3 is red" >&2
exit 1
EOS
  review | review_agent --verdict-by-exit --exec ./fails
  got verdict.ndjson '.type == "review_verdict" and .payload.decision == "rejected"
    and (.payload.issues[0].description | test("test 3 is red"))'
}

@test "small fixes are measured, committed by the reviewer, and the branch moves forward" {
  done_work
  agent fixes <<'EOS'
sed -i s/hello/Hello/ hello.txt
echo object >leftover.o
echo '{"decision":"approved_with_fix","confidence":1,
  "direct_fixes":[{"file":"hello.txt","change_type":"typo","diff_lines":0}]}' >"$AMP_RESULT"
EOS
  before=$(git -C "$REPO" rev-parse feat/x)
  review | review_agent --exec ./fixes
  got verdict.ndjson '.type == "review_verdict" and .payload.decision == "approved_with_fix"
    and .payload.direct_fixes == [{file: "hello.txt", change_type: "typo", diff_lines: 2}]'
  [ "$(git -C "$REPO" rev-parse feat/x^)" = "$before" ]
  [ "$(git -C "$REPO" log -1 --format=%an feat/x)" = reviewer ]
  [ "$(git -C "$REPO" show --format= --name-only feat/x)" = hello.txt ]
  # The fixed tree is the approved one, the one before it is not.
  task-dispatch verify --no-coordinator --state "$STATE" --repo "$REPO" feat/x
  run -1 task-dispatch verify --no-coordinator --state "$STATE" --repo "$REPO" "$before"
}

@test "fixes out of range are refused by measuring them" {
  done_work
  before=$(git -C "$REPO" rev-parse feat/x)
  agent big <<'EOS'
printf '1\n2\n3\n4\n5\n' >>hello.txt
echo '{"decision":"approved_with_fix","confidence":1,
  "direct_fixes":[{"file":"hello.txt","change_type":"typo","diff_lines":1}]}' >"$AMP_RESULT"
EOS
  review | review_agent --retries 0 --exec ./big
  got_no verdict.ndjson '.type == "review_verdict"'
  got verdict.ndjson '.type == "nack" and .code == "fix_out_of_range" and (.message | test("5 lines"))'

  agent other <<'EOS'
sed -i s/hello/Hello/ hello.txt
echo sly >>file.txt
echo '{"decision":"approved_with_fix","confidence":1,
  "direct_fixes":[{"file":"hello.txt","change_type":"typo"}]}' >"$AMP_RESULT"
EOS
  review | review_agent --retries 0 --exec ./other
  got verdict.ndjson '.type == "nack" and .code == "fix_out_of_range" and (.message | test("file.txt"))'

  agent none <<'EOS'
echo '{"decision":"approved_with_fix","confidence":1,
  "direct_fixes":[{"file":"hello.txt","change_type":"typo"}]}' >"$AMP_RESULT"
EOS
  review | review_agent --retries 0 --exec ./none
  got verdict.ndjson '.type == "nack" and .code == "fix_out_of_range"'
  [ "$(git -C "$REPO" rev-parse feat/x)" = "$before" ]
}

@test "what reviews leave in their worktree goes with it, and is kept under no ref" {
  done_work
  agent builds <<'EOS'
echo object >leftover.o
echo '{"decision":"rejected","confidence":1,
  "issues":[{"severity":"minor","file":"hello.txt","line":1,"description":"dull"}]}' >"$AMP_RESULT"
EOS
  {
    review
    review
  } | review_agent --exec ./builds
  [ "$(grep -c '"type":"review_verdict"' verdict.ndjson)" = 2 ]
  [ -z "$(git -C "$REPO" for-each-ref refs/amp)" ]
  [ ! -e "$REPO.worktrees/reviewer" ]
}

@test "a reviewer that puts another directory in its worktree's place has nothing removed there" {
  done_work
  agent swap <<'EOS'
git -C "$REPO" worktree add -q --detach "$REPO.mine"
echo mine >"$REPO.mine/precious"
git -C "$REPO.mine" checkout -q --detach "$(git rev-parse HEAD)"
sed -i s/hello/Hello/ "$REPO.mine/hello.txt"
rm -r "$AMP_WORKTREE"
ln -s "$REPO.mine" "$AMP_WORKTREE"
echo '{"decision":"approved_with_fix","confidence":1,
  "direct_fixes":[{"file":"hello.txt","change_type":"typo","diff_lines":0}]}' >"$AMP_RESULT"
EOS
  export REPO
  before=$(git -C "$REPO" rev-parse feat/x)
  review | review_agent --retries 0 --exec ./swap
  got_no verdict.ndjson '.type == "review_verdict"'
  [ "$(cat "$REPO.mine/precious")" = mine ]
  [ "$(git -C "$REPO" rev-parse feat/x)" = "$before" ]
}

@test "references that cannot be read are refused" {
  done_work
  verdict_agent '{"decision":"approved","confidence":1}'
  review '.payload.task_result_ref = "task_result-T-2026-001-999"' | review_agent --exec ./judge
  got verdict.ndjson '.type == "nack" and .code == "unknown_ref"'
}

@test "verify: exactly the approved commit, nothing else" {
  done_work
  run -1 task-dispatch verify --state "$STATE" --repo "$REPO" feat/x
  verdict_agent '{"decision":"approved","confidence":1}'
  review | review_agent --exec ./judge
  verify=(task-dispatch verify --no-coordinator --state "$STATE" --repo "$REPO")
  "${verify[@]}" feat/x
  # Another commit of the same tree is not approved: on top of a fix it would undo it.
  same=$(git -C "$REPO" commit-tree -m again -p main "feat/x^{tree}")
  run -1 --separate-stderr "${verify[@]}" "$same"
  [[ "$stderr" == *"no verdict approves the commit ${same:0:12}"* ]]
  run -1 "${verify[@]}" main
  run -1 "${verify[@]}" no-such-commit
  git -C "$REPO" checkout -q --detach feat/x
  run -1 --separate-stderr "${verify[@]}" ""
  [[ "$stderr" == *"no such commit"* ]]
  # A verdict on a task that no coordinator accepted is the reviewer's word only.
  run -1 --separate-stderr task-dispatch verify --state "$STATE" --repo "$REPO" feat/x
  [[ "$stderr" == *"is not approved: task T-2026-001 is not in the state directory (--no-coordinator"* ]]
  run -64 task-dispatch verify --state "$STATE"
  run -69 task-dispatch verify --state "$BATS_TEST_TMPDIR/none" --repo "$REPO" feat/x
  [ ! -e "$BATS_TEST_TMPDIR/none" ]
}

@test "verify believes only what is synced" {
  shim=$AMP_BUILD/tests/fault/faildisk.so
  native "a preloaded shim must come first"
  done_work
  verdict_agent '{"decision":"approved","confidence":1}'
  review | review_agent --exec ./judge
  verify=(task-dispatch verify --no-coordinator --state "$STATE" --repo "$REPO" feat/x)
  # Without the watermark nobody knows how far the log is on disk.
  rm "$STATE/log/watermark"
  AMP_FAULT_MATCH=log/0 AMP_FAULT_ROOT=$STATE AMP_FAULT=sync:1:EIO LD_PRELOAD=$shim \
    run -75 --separate-stderr "${verify[@]}"
  [[ "$stderr" == *"cannot sync the log"* ]]
  "${verify[@]}"
  touch "$STATE/log/FAILED"
  run -75 --separate-stderr "${verify[@]}"
  [[ "$stderr" == *"a write to the log failed"* ]]
}

@test "the reviewer that moves main trips the wire" {
  done_work
  agent evil <<'EOS'
git update-ref refs/heads/main HEAD
echo '{"decision":"approved","confidence":1}' >"$AMP_RESULT"
EOS
  review | review_agent --exec ./evil
  got verdict.ndjson '.type == "escalation" and .payload.escalation_type == "branch_violation"
    and .payload.triggered_by == "reviewer"'
  got_no verdict.ndjson '.type == "review_verdict"'
}

@test "what reviews and repeated attempts used counts, once" {
  workplace
  agent work <<'EOS'
if [ ! -e "$AMP_KEPT" ]; then
  touch "$AMP_KEPT"
  echo '{"usage":{"input_tokens":1,"output_tokens":2,"cost_usd":0.01}}' >"$AMP_RESULT"
  exit 75
fi
echo hello >hello.txt
echo '{"usage":{"input_tokens":100,"output_tokens":20,"cost_usd":0.5,"turns":3}}' >"$AMP_RESULT"
EOS
  dispatch | run_agent --exec ./work
  verdict_agent '{"decision":"approved","confidence":0.9,"usage":{"input_tokens":40,"output_tokens":7,"cost_usd":0.25}}'
  review | review_agent --exec ./judge
  amp-top -s "$STATE" --format ndjson >records
  run jq -r 'select(.list == "cost") | "\(.task_id) \(.results) \(.input_tokens) \(.output_tokens) \(.cost_usd) \(.agent)"' records
  [ "$output" = "T-2026-001 1 141 29 0.76 reviewer" ]
  run jq -r 'select(.list == "summary") | "\(.cost_usd) \(.input_tokens) \(.output_tokens)"' records
  [ "$output" = "0.76 141 29" ]
}
