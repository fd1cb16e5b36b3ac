#!/usr/bin/env bats
# The state directory of a repository, which verbs for people find by themselves.

load ../lib
load ../messages

setup() {
  cd "$BATS_TEST_TMPDIR" || return 1
  unset AMP_STATE AMP_CONTROL
}

@test "verbs for people find the repository's state, also from a linked worktree and a strange path" {
  local dir=$'with space\nand line'
  mkdir "$dir"
  repo "$dir/repo"
  git -C "$dir/repo" worktree add -q "$PWD/$dir/linked"
  message task_dispatch >one
  amp-ack track --state "$dir/repo/.git/amp" <one >/dev/null
  mkdir "$dir/linked/below"
  for at in repo linked linked/below repo/.git; do
    cd "$BATS_TEST_TMPDIR/$dir/$at" || return 1
    run -0 amp-ack status
    run -0 amp-ack log
    [[ $output == *T-2026-044* ]]
  done
  hitl-prompt list
  run -0 hitl-prompt suspend --list
  hitl-prompt audit
  amp-ack audit
  amp-ack dead list
  amp-ack cursors list
  agent-registry list
  agent-registry capabilities
  run -0 task-queue submit </dev/null
  # The reader of what new --print writes.
  run -0 task-dispatch </dev/null
  # What is given counts; and what a sandbox shows is not the repository.
  run -69 amp-ack status --state "$BATS_TEST_TMPDIR/none"
  run -64 env AMP_CONTROL=x amp-ack status
}

@test "filters want the state directory said, and the error names the repository's" {
  repo repo
  run -64 amp-ack status
  [[ $output == *"a state directory is needed: --state DIR or AMP_STATE"$'\n'* ]]
  cd repo
  run -64 amp-ack status
  [[ $output == *"this repository has none ('task-dispatch init' makes it)"* ]]
  mkdir -m 700 .git/amp
  run -64 amp-ack track
  [[ $output == *"that of this repository is $PWD/.git/amp"$'\n'* ]]
  run -64 task-dispatch review -x true
  [[ $output == *"that of this repository is $PWD/.git/amp"$'\n'* ]]
  # A broken .git file is no repository.
  mkdir ../broken
  cd ../broken
  echo 'gitdir: nowhere' >.git
  run -64 amp-ack status
  [ "$(id -u)" -ne 0 ] || {
    cd ../repo
    chown 1 .git/amp
    run -64 amp-ack status
    [[ $output == *"$PWD/.git/amp does not belong to you"* ]]
  }
}
