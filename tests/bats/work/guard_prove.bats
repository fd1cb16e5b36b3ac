#!/usr/bin/env bats
# worktree-bind hooks check --prove: each rule of the policy is tried on a scratch clone.

load ../lib

setup() {
  need_tool worktree-bind
  mkdir "$BATS_TEST_TMPDIR/tmp"
  export TMPDIR=$BATS_TEST_TMPDIR/tmp
  cd "$BATS_TEST_TMPDIR" || return 1
  repo work
  cd work || return 1
}

@test "every kind of rule holds, and nothing is left" {
  worktree-bind hooks install --protect 'release/*' --bound --role 'executor=task/*' --role '*=wip/*' --trailer Task \
    --trailer Agent --forbid '*.pem' --forbid deploy/ --max-file 1000 --max-commit 2500 --humans refuse >/dev/null 2>&1
  before=$(find . -type f ! -path '*/amp/*' -exec cksum {} + | sort)
  run -0 --separate-stderr worktree-bind hooks check --prove
  [ "$(grep -c '^holds: ' <<<"$output")" -eq 14 ]
  [ "${#lines[@]}" -eq 14 ]
  [ "$before" = "$(find . -type f ! -path '*/amp/*' -exec cksum {} + | sort)" ]
  [ -z "$(ls "$TMPDIR")" ]
}

@test "pushes past the hooks are tried, and an agent's worktree whose pushes are not refused is reported" {
  worktree-bind bind early -b task/early >/dev/null
  worktree-bind hooks install >/dev/null 2>&1
  worktree-bind bind bob -b task/x >/dev/null
  worktree-bind bind ann -b task/y --push >/dev/null
  run -0 --separate-stderr worktree-bind hooks check --prove
  [[ $output == *"holds: push: a violation is refused: push_refused; a permitted change passes"* ]]
  sed -i '/worktrees\/early/,+1d' .git/amp/agents.gitconfig
  run -1 worktree-bind --json hooks check
  [[ $output == *"/work/.git/worktrees/early"* ]]
  [[ $output == *'"code":"push_allowed"'* ]]
  worktree-bind hooks install >/dev/null 2>&1
  run -0 worktree-bind hooks check
  git config --unset-all include.path
  run -1 worktree-bind hooks check
  [[ $output == *"/work/.git/config: "*"git does not refuse the pushes of agents: install again"* ]]
}

@test "a server's rules, and a repository without commits" {
  git init -q --bare ../server.git
  worktree-bind -C ../server.git hooks install --server --pusher alice --trailer Task >/dev/null 2>&1
  run -0 --separate-stderr worktree-bind -C ../server.git --json hooks check --prove
  [[ $output == *'{"rule":"server all","holds":"yes","code":"branch_violation","refused":"yes","passes":"yes",'* ]]
}

@test "a guard that does not refuse is status 1, with a record for each rule" {
  worktree-bind hooks install --forbid '*.pem' >/dev/null 2>&1
  cp -r "$AMP_BUILD/libexec/amp" ../libexec
  rm ../libexec/branch-guard
  printf '#!/bin/sh\nexit 0\n' >../libexec/branch-guard
  chmod +x ../libexec/branch-guard
  AMP_LIBEXEC=$PWD/../libexec run -1 --separate-stderr worktree-bind hooks check --prove
  [ "$(grep -c '^fails: ' <<<"$output")" -eq 3 ]
  [[ $output == *"fails: path *.pem: a violation is NOT refused"* ]]
  [ -z "$(ls "$TMPDIR")" ]
}

@test "a rule that permits nothing does not hold" {
  worktree-bind hooks install --forbid '*' >/dev/null 2>&1
  run -1 --separate-stderr worktree-bind hooks check --prove
  [[ $output == *"fails: path *: a violation is refused: path_forbidden; a permitted change is refused"* ]]
}

@test "a signal ends it, and the clone is removed" {
  worktree-bind hooks install >/dev/null 2>&1
  for ((i = 0; i < 60; i++)); do
    set -- "$@" --protect "b$i"
  done
  worktree-bind hooks install "$@" >/dev/null 2>&1
  worktree-bind hooks check --prove >out 2>&1 &
  pid=$!
  made() { [ -n "$(ls "$TMPDIR")" ]; }
  wait_until 20 made
  kill -TERM $pid
  status=0
  wait $pid || status=$?
  [ "$status" -eq 130 ]
  [ -z "$(ls "$TMPDIR")" ]
}
