# The examples of task-dispatch(1) run as they stand.
# walls

load ../lib

@test "task-dispatch(1)" {
  need_tool amp-ack amp-route hitl-prompt
  unset AMP_IDENTITY
  repo "$BATS_TEST_TMPDIR/r"
  cd "$BATS_TEST_TMPDIR/r"
  cat >executor.sh <<'SH'
#!/bin/sh
echo "$AMP_TASK_ID" >>work
echo '{"completion_status": "complete", "self_assessment": {"criteria_met": [null], "notes": []}}' \
  >"$AMP_RESULT.new" && mv "$AMP_RESULT.new" "$AMP_RESULT"
SH
  cat >reviewer.sh <<'SH'
#!/bin/sh
echo '{"decision": "approved", "confidence": 1, "criteria_results": []}' >"$AMP_RESULT.new" &&
  mv "$AMP_RESULT.new" "$AMP_RESULT"
SH
  chmod +x ./*.sh
  # The task file is the one that the manual shows.
  sed -n '/^\.Sh DESCRIPTION/,/^\.Sh OPTIONS/p' "$AMP_TOP/man/task-dispatch-new.1" |
    sed -n '/^\.Bd/,/^\.Ed/p' | sed '/^\./d; s/fix\/units/fix\/others/' >task.md
  for page in task-dispatch-init.1 task-dispatch-new.1 task-dispatch.1 task-dispatch-coordinate.1 task-dispatch-run.1 \
    task-dispatch-review.1 task-dispatch-verify.1 task-dispatch-export.1; do
    sed -n '/^\.Sh EXAMPLES/,/^\.Sh SEE ALSO/p' "$AMP_TOP/man/$page" |
      sed -n '/^\.Bd/,/^\.Ed/p' | sed -e '/^\./d' -e 's/^\$ //' -e 's/\\e$/\\/' -e 's/init --yes/init --unconfined --yes/'
    [ "$page" != task-dispatch.1 ] || echo wait
  done >script
  run timeout 60 bash -eu script
  echo "$output" # a failure shows it
  [ "$status" -eq 0 ]
  [[ "$output" == *task_dispatch* ]]
  [[ "$output" == *"not approved"* ]]
  cat "$HOME"/qa/tasks/*.json | jq -se 'map(.state) == ["done"]'
}

@test "task-dispatch-loop(1)" {
  need_tool amp-ack amp-route hitl-prompt
  repo "$BATS_TEST_TMPDIR/r"
  cd "$BATS_TEST_TMPDIR/r"
  printf 'check:\n\ttest -e work\n' >Makefile
  git add Makefile
  git commit -q -m check
  printf '#!/bin/sh\necho x >>work\n' >executor.sh
  chmod +x executor.sh
  printf '# Work\nBranch: work/one\n## Acceptance criteria\n- a file\n' >task.md
  sed -n '/^\.Sh EXAMPLES/,/^\.Sh SEE ALSO/p' "$AMP_TOP/man/task-dispatch-loop.1" | sed -n '/^\.Bd/,/^\.Ed/p' |
    sed -e '/^\./d' -e 's/^\$ //' >script
  run -0 timeout 60 bash -eu script
  [[ $output == *"in review"*"approved"* ]]
  bash -n loop.sh
}
