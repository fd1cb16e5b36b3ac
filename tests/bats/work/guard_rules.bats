#!/usr/bin/env bats
# The guard's rules for agents: branches per role, the bound branch, trailers, forbidden and reserved paths, sizes;
# in the local hooks and on a server.

load ../lib

setup() {
  need_tool worktree-bind
  cd "$BATS_TEST_TMPDIR" || return 1
  repo work
  cd work || return 1
  echo one >file
  git add file
  git commit -q -m one
  git branch feat
}

# install OPTION...: the guard with this policy.
install() {
  worktree-bind hooks install "$@" >/dev/null 2>&1
}

# bob OPTION...: in a worktree of the agent bob, bound to task/x, in the role executor.
bob() {
  worktree-bind bind bob -b task/x --role executor "$@" >/dev/null
  cd ../work.worktrees/bob || return 1
}

# refused CODE STATUS COMMAND...
refused() {
  local code=$1 expected=$2
  shift 2
  run "-$expected" "$@"
  [[ $output == *"branch-guard: error: "*"[$code]"* ]] || {
    echo "$output"
    return 1
  }
  [[ $output == *"branch-guard: hint: "* ]]
}

@test "roles: an agent moves only branches that match its role's patterns" {
  install --role 'executor=task/*' --role '*=wip/*'
  bob
  git commit -q --allow-empty -m mine
  git branch wip/a
  refused branch_not_of_role 128 git branch other
  [[ $output == *"refused to bob (role: executor)"* ]]
  refused branch_not_of_role 128 git branch -f feat HEAD
  refused branch_not_of_role 128 git branch -M task/x other
  git switch -q --detach
  git commit -q --allow-empty -m "on no branch"
  # Without a role of its own, an agent has the patterns of every role only.
  cd ../../work
  AMP_AGENT=eve refused branch_not_of_role 128 git branch task/y
  AMP_AGENT=eve git branch wip/b
  AMP_AGENT=eve AMP_ROLE=executor git branch task/y
  git branch other
}

@test "roles: the marker's role counts, whatever AMP_ROLE is" {
  install --role 'executor=task/*' --role 'admin=*'
  bob
  AMP_ROLE=admin refused branch_not_of_role 128 git branch other
}

@test "roles: a commit is refused before git changes anything" {
  install --role 'executor=task/*'
  AMP_AGENT=eve AMP_ROLE=executor
  export AMP_AGENT AMP_ROLE
  git switch -q feat
  echo two >>file
  refused branch_not_of_role 1 git commit -am no
  [ "$(git status --porcelain)" = " M file" ]
  refused branch_not_of_role 128 git commit --no-verify -am no
}

@test "bound: a worktree moves only the branch that it is bound to" {
  install --bound
  bob
  git commit -q --allow-empty -m mine
  git commit -q --amend --allow-empty -m "mine again"
  git reset -q --hard HEAD~1
  refused branch_not_bound 128 git branch other
  refused branch_not_bound 128 git branch -D feat
  git switch -q feat
  refused branch_not_bound 1 git commit --allow-empty -m no
  [[ $output == *"this worktree is bound to task/x"* ]]
  refused branch_not_bound 128 git commit --no-verify --allow-empty -m no
  git switch -q task/x
  # From another worktree, or by the name of another agent, it is not the bound branch.
  AMP_AGENT=eve refused branch_not_bound 1 git commit --allow-empty -m no
  AMP_AGENT=bob refused branch_not_bound 128 git -C ../../work update-ref refs/heads/task/x HEAD~1
  git -C ../../work branch other
}

@test "bound: a push goes to the bound branch only" {
  install --bound
  git init -q --bare ../origin.git
  git remote add origin ../origin.git
  bob --push
  git push -q ../../origin.git task/x
  refused branch_not_bound 1 git push ../../origin.git task/x:other
  run -1 git -C ../../origin.git rev-parse -q --verify other
}

@test "trailers: an agent's commits must have them, with its own name and task" {
  install --trailer Task --trailer Agent
  bob
  refused trailer_missing 1 git commit --allow-empty -m none
  [[ $output == *"--trailer 'Task: VALUE'"* ]]
  refused trailer_missing 1 git commit --allow-empty -m title -m "Task: T-2026-001"
  [[ $output == *"Agent: bob"* ]]
  refused trailer_missing 1 git commit --allow-empty -m title -m $'Task: T-2026-001\nAgent: eve'
  git commit -q --allow-empty -m title -m body -m $'task:T-2026-001\nAgent: bob'
  AMP_TASK_ID=T-2026-002 refused trailer_missing 1 git commit --allow-empty -m title \
    -m $'Task: T-2026-001\nAgent: bob'
  # The title is not a trailer; comments are not part of the message.
  refused trailer_missing 1 git commit --allow-empty -m $'Task: T-2026-001\nAgent: bob'
  printf 'title\n\nTask: T-2026-001\nAgent: bob\n\n# a comment\n' >../message
  GIT_EDITOR="cp ../message" git commit -q --allow-empty
  git -c core.commentChar=';' commit -q --allow-empty --cleanup=strip -m title -m $'Task: T\nAgent: bob\n; x'
}

@test "trailers: every new commit of an update is checked, without hooks of the commit" {
  install --trailer Task
  bob
  refused trailer_missing 128 git commit --no-verify --allow-empty -m no
  tree=$(git rev-parse 'HEAD^{tree}')
  bad=$(git commit-tree -p HEAD -m no "$tree")
  good=$(git commit-tree -p "$bad" -m title -m "Task: T-2026-001" "$tree")
  refused trailer_missing 128 git update-ref refs/heads/task/x "$good"
  [[ $output == *"commit ${bad:0:12}"* ]]
  # What a person wrote and what came from a remote is not the agent's.
  git -C ../../work commit -q --allow-empty -m "a person's"
  git merge -q --ff-only main
  git -C ../../work update-ref refs/remotes/origin/next "$good"
  git reset -q --hard "$good"
}

@test "trailers: a replaced commit is read as it is stored" {
  install --trailer Task
  bob
  tree=$(git rev-parse 'HEAD^{tree}')
  bad=$(git commit-tree -p HEAD -m no "$tree")
  good=$(git commit-tree -p HEAD -m title -m "Task: T-2026-001" "$tree")
  git replace "$bad" "$good"
  refused trailer_missing 128 git update-ref refs/heads/task/x "$bad"
}

@test "paths: forbidden files are refused when they are committed" {
  install --forbid '*.pem' --forbid /deploy/ --forbid 'src/**/secret.*'
  bob
  mkdir -p sub deploy src/a/b
  touch sub/key.pem deploy/run src/a/b/secret.txt fine
  for file in sub/key.pem deploy/run src/a/b/secret.txt; do
    git add $file
    refused path_forbidden 1 git commit -m no
    [[ $output == *"$file: forbidden path"* ]]
    refused path_forbidden 128 git commit --no-verify -m no
    git rm -q --cached $file
  done
  git add fine
  git commit -q -m fine
  # Removing and renaming are changes too; an amended commit is checked completely.
  cd ../../work
  touch key.pem
  git add key.pem
  git commit -q -m "a person's key"
  cd ../work.worktrees/bob
  git merge -q -m merged main
  git rm -q key.pem
  refused path_forbidden 1 git commit -m no
  git reset -q --hard
  git mv key.pem key.txt
  refused path_forbidden 1 git commit -m no
}

@test "paths: a merge is checked for what it changes itself" {
  install --forbid '*.pem'
  bob
  git commit -q --allow-empty -m mine
  tree=$(git rev-parse 'HEAD^{tree}')
  blob=$(git hash-object -w --stdin <<<evil)
  evil=$(printf '100644 blob %s\tx.pem\n' "$blob" | git mktree)
  side=$(git commit-tree -p HEAD~1 -m side "$tree")
  merge=$(git commit-tree -p HEAD -p "$side" -m merge "$evil")
  refused path_forbidden 128 git update-ref refs/heads/task/x "$merge"
  git update-ref refs/heads/task/x "$(git commit-tree -p HEAD -p "$side" -m merge "$tree")"
}

@test "paths: the first commit of a repository is checked as well" {
  git init -q -b work ../new
  cd ../new
  install --forbid '*.pem'
  touch key.pem file
  git add .
  AMP_AGENT=eve refused path_forbidden 1 git commit -m no
  git rm -q --cached key.pem
  AMP_AGENT=eve git commit -q -m yes
}

@test "paths: reserved ones are refused to other agents" {
  install
  printf 'amp-reservations 1\neve T-2026-001 docs/\n' >.git/amp/reservations
  bob
  mkdir docs
  touch docs/a
  git add docs/a
  refused path_reserved 1 git commit -m no
  [[ $output == *"reserved for eve (docs/)"* ]]
  refused path_reserved 128 git commit --no-verify -m no
  sed -i s/^eve/bob/ ../../work/.git/amp/reservations
  git commit -q -m yes
  echo broken >../../work/.git/amp/reservations
  refused bad_reservations 1 git commit --allow-empty -m no
}

@test "sizes: a large file and a large commit are refused" {
  install --max-file 1000 --max-commit 1500
  bob
  head -c 1001 /dev/zero >large
  git add large
  refused file_too_large 1 git commit -m no
  refused file_too_large 128 git commit --no-verify -m no
  git rm -q --cached large
  head -c 900 /dev/zero >a
  head -c 901 /dev/zero >b
  git add a b
  refused commit_too_large 1 git commit -m no
  refused commit_too_large 128 git commit --no-verify -m no
  git rm -q --cached b
  git commit -q -m a
  git add b
  git commit -q -m b
}

@test "a push of an agent is checked: what is not on the remote and not on a protected branch" {
  install --trailer Task --forbid '*.pem'
  git init -q --bare ../origin.git
  git remote add origin ../origin.git
  bob --push
  git commit -q --allow-empty -m mine -m "Task: T-2026-001"
  git push -q ../../origin.git task/x
  # A commit that came to the branch without hooks.
  git -c core.hooksPath=/dev/null commit -q --allow-empty -m no
  refused trailer_missing 1 git push ../../origin.git task/x
}

@test "the plumbing runs nothing of the repository and of its configuration" {
  install --trailer Task --forbid '*.pem' --max-file 1M
  bob
  printf '#!/bin/sh\ntouch "%s/ran"\n' "$BATS_TEST_TMPDIR" >../evil
  chmod +x ../evil
  for key in core.fsmonitor diff.external core.sshCommand gpg.program filter.x.clean filter.x.smudge \
    diff.x.textconv diff.x.command trailer.task.command interactive.diffFilter core.pager; do
    git config "$key" "$PWD/../evil"
  done
  git config alias.rev-list '!touch ../ran'
  git config log.showSignature true
  git config remote.origin.promisor true
  git config remote.origin.url "ext::$PWD/../evil"
  git config protocol.ext.allow always
  echo '* diff=x filter=x' >.gitattributes
  git -c core.fsmonitor= -c filter.x.clean=cat add .gitattributes
  rm -f ../ran
  GIT_EXTERNAL_DIFF=$PWD/../evil refused trailer_missing 128 git -c core.fsmonitor= commit --no-verify -m no
  tree=$(git rev-parse 'HEAD^{tree}')
  lost=$(git commit-tree -p HEAD -m lost -m "Task: T" "$tree")
  next=$(git commit-tree -p "$lost" -m next -m "Task: T" "$tree")
  rm "$(git rev-parse --git-path "objects/${lost:0:2}/${lost:2}")"
  run -128 git update-ref refs/heads/task/x "$next"
  [ ! -e ../ran ]
}

@test "a server checks everybody but the pushers, and refuses the complete push" {
  git init -q --bare ../server.git
  worktree-bind -C ../server.git hooks install --server --pusher alice --trailer Task --forbid '*.pem' \
    --max-file 1000 >/dev/null 2>&1
  git remote add origin ../server.git
  REMOTE_USER=alice git push -q origin main
  git switch -q -c topic
  git commit -q --allow-empty -m "no trailer"
  git branch good main
  refused trailer_missing 1 git push -q origin topic good
  [[ $output == *"refused to"* ]]
  run -1 git -C ../server.git rev-parse -q --verify good
  git commit -q --amend --allow-empty -m title -m "Task: T-2026-001"
  git push -q origin topic
  touch key.pem
  git add key.pem
  git commit -q -m title -m "Task: T-2026-001"
  refused path_forbidden 1 git push -q origin topic
  # A tag brings commits as well.
  git tag bad
  refused path_forbidden 1 git push -q origin bad
  head -c 1001 /dev/zero >large
  git rm -q --cached key.pem
  git add large
  git commit -q --amend -m title -m "Task: T-2026-001"
  refused file_too_large 1 git push -q origin topic
  REMOTE_USER=alice git push -q origin topic
  refused branch_violation 1 git push -q origin topic:main
}

@test "a server holds agents that the transport names to their roles" {
  git init -q --bare ../server.git
  worktree-bind -C ../server.git hooks install --server --role 'executor=task/*' >/dev/null 2>&1
  git remote add origin ../server.git
  AMP_AGENT=bob AMP_ROLE=executor git push -q origin feat:task/a
  AMP_AGENT=bob AMP_ROLE=executor refused branch_not_of_role 1 git push -q origin feat
  git push -q origin feat
}

@test "a kept pre-receive hook gets its input, and commit-msg its file" {
  git init -q --bare ../server.git
  printf '#!/bin/sh\ncat >"%s/got"\n' "$PWD" >../server.git/hooks/pre-receive
  chmod +x ../server.git/hooks/pre-receive
  worktree-bind -C ../server.git hooks install --server --pusher "$(id -un)" >/dev/null 2>&1
  git push -q ../server.git main
  grep -q ' refs/heads/main$' got
  printf '#!/bin/sh\ncp "$1" "%s/message"\n' "$PWD" >.git/hooks/commit-msg
  chmod +x .git/hooks/commit-msg
  install
  git commit -q --allow-empty -m hello
  [ "$(cat message)" = hello ]
}

@test "install refuses values that cannot be rules" {
  run -64 worktree-bind hooks install --role executor
  [[ $output == *"ROLE=PATTERN expected"* ]]
  run -64 worktree-bind hooks install --trailer 'a b'
  run -64 worktree-bind hooks install --forbid ../x
  run -64 worktree-bind hooks install --max-file many
  [ ! -e .git/amp/guard ]
}

@test "the rules come from amp.json where no option says otherwise" {
  echo '{"guard":{"roles":["executor=task/*"],"bound":true,"trailers":["Task"],"forbidden":["*.pem"],
    "max_file":"5M","max_commit":1000}}' >../amp.json
  worktree-bind hooks install --config ../amp.json >/dev/null 2>&1
  [ "$(grep -c -e '^role executor task/\*$' -e '^bound on$' -e '^trailer Task$' -e '^path \*.pem$' \
    -e '^max-file 5242880$' -e '^max-commit 1000$' .git/amp/guard)" -eq 6 ]
}

# commit AGENT MESSAGE: git-worker commits everything in the worktree of bob, as task-dispatch run does.
commit() {
  printf '{"q":1,"op":"commit","repo":"%s","worktree":"%s","name":"%s","email":"%s@x","message":"%s","agent":"%s","task":"T-2026-001"}\n' \
    "$BATS_TEST_TMPDIR/work" "$BATS_TEST_TMPDIR/work.worktrees/bob" "$1" "$1" "$2" "$1" |
    "$AMP_BUILD/libexec/amp/git-worker"
}

@test "the tools' own commits get the trailers, and are held to the rules" {
  install --trailer Task --trailer Agent --forbid '*.pem' --max-file 1000
  bob
  before=$(git rev-parse HEAD)
  touch key.pem
  run -0 commit bob work
  [[ $output == *'"code":"path_forbidden"'* ]]
  rm key.pem
  head -c 1001 /dev/zero >large
  run -0 commit bob work
  [[ $output == *'"code":"file_too_large"'* ]]
  [ "$(git rev-parse HEAD)" = "$before" ]
  echo small >large
  run -0 commit bob 'work\n\nReviewed: no'
  [ "$(git log -1 --format=%B)" = $'work\n\nReviewed: no\nTask: T-2026-001\nAgent: bob' ]
  cd ../../work
  install --trailer Signed
  cd ../work.worktrees/bob
  echo more >large
  run -0 commit bob work
  [[ $output == *'"code":"trailer_missing"'* ]]
}

@test "branch-guard as a hook of a hook manager runs no other hook" {
  install --trailer Task
  printf '#!/bin/sh\ntouch "%s/ran"\n' "$BATS_TEST_TMPDIR" >.git/hooks/pre-commit.amp-kept
  chmod +x .git/hooks/pre-commit.amp-kept
  guard=$AMP_BUILD/libexec/amp/branch-guard
  AMP_AGENT=bob refused branch_violation 1 "$guard" --hook pre-commit
  git switch -q feat
  AMP_AGENT=bob "$guard" --hook pre-commit
  [ ! -e ../ran ]
  printf 'title\n' >../message
  AMP_AGENT=bob refused trailer_missing 1 "$guard" --hook commit-msg ../message
  AMP_AGENT=bob PRE_COMMIT_LOCAL_BRANCH=feat PRE_COMMIT_TO_REF="$(git rev-parse feat)" \
    PRE_COMMIT_REMOTE_BRANCH=refs/heads/main refused branch_violation 1 "$guard" --hook pre-push </dev/null
  run -64 "$guard" --hook unknown
}
