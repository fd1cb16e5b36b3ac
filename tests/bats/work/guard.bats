#!/usr/bin/env bats
# Protected branches: what an agent is refused, what a person may go on doing, and what stays clean.
# plain: most of its time is that of git; guard_rules.bats, guard_prove.bats and planted.bats run the same programs

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
  git branch side
  git switch -q feat
  echo two >file
  git commit -q -am two
  git switch -q main
  echo other >other
  git add other
  git commit -q -m other
  git branch ahead
  git switch -q ahead
  git commit -q --allow-empty -m ahead
  git switch -q main
  worktree-bind hooks install --protect 'release/*' 2>/dev/null
  main=$(git rev-parse main)
}

# agent COMMAND...: as an agent would run it.
agent() {
  AMP_AGENT=bob "$@"
}

# refused STATUS COMMAND...: the agent is refused with that status, and main did not move.
refused() {
  local expected=$1
  shift
  run "-$expected" agent "$@"
  [[ $output == *"protected branch: refused to bob"* ]]
  [ "$(git rev-parse main)" = "$main" ]
}

clean() {
  [ -z "$(git status --porcelain)" ]
  [ ! -e .git/MERGE_HEAD ]
  [ "$(git symbolic-ref HEAD)" = refs/heads/main ]
}

@test "agent: commit is refused, what was staged stays staged" {
  echo change >>file
  refused 1 git commit -am no
  [ "$(git status --porcelain)" = " M file" ]
}

@test "agent: commit --no-verify is refused" {
  refused 128 git commit --no-verify --allow-empty -m no
  clean
}

@test "agent: commit --amend is refused" {
  refused 1 git commit --amend -m no
  clean
}

@test "agent: merge (fast-forward) is refused before the working tree changes" {
  refused 128 git merge --ff-only ahead
  clean
}

@test "agent: merge (no fast-forward) is refused before the working tree changes" {
  refused 128 git merge --no-ff -m no feat
  clean
  refused 128 git merge --no-verify -m no feat
  clean
}

@test "agent: pull is refused before the working tree changes" {
  git clone -q --bare . ../origin.git
  git remote add origin ../origin.git
  refused 128 git pull -q --no-rebase origin feat
  clean
}

@test "agent: rebase of main is refused" {
  refused 128 git rebase feat
  clean
}

@test "agent: rebase --no-verify is refused at its end, and --abort restores" {
  refused 128 git rebase --no-verify feat
  [[ $output == *"git rebase --abort"* ]]
  agent git rebase --abort
  clean
}

@test "agent: rebase of main from elsewhere is refused" {
  git switch -q side
  refused 128 git rebase feat main
  [ "$(git symbolic-ref HEAD)" = refs/heads/side ]
}

@test "agent: cherry-pick is refused, with a hint how to clean up" {
  refused 128 git cherry-pick feat
  [[ $output == *"git cherry-pick --quit; git reset --merge"* ]]
  agent git cherry-pick --quit
  agent git reset -q --merge
  clean
}

@test "agent: a cherry-pick of several is refused, with a hint how to clean up" {
  git switch -q feat
  echo three >>file
  git commit -q -am three
  git switch -q main
  refused 128 git cherry-pick feat~2..feat
  agent git cherry-pick --quit
  agent git reset -q --merge
  clean
}

@test "agent: revert is refused, with a hint how to clean up" {
  refused 128 git revert --no-edit HEAD
  [[ $output == *"git revert --quit; git reset --merge"* ]]
  agent git revert --quit
  agent git reset -q --merge
  clean
}

@test "agent: reset --hard is refused, with a hint how to clean up" {
  refused 128 git reset --hard HEAD~1
  [[ $output == *"git reset --hard"* ]]
  agent git reset -q --hard
  clean
}

@test "agent: reset --soft is refused" {
  refused 128 git reset --soft HEAD~1
  clean
}

@test "agent: branch -f is refused" {
  git switch -q side
  refused 128 git branch -f main feat
}

@test "agent: branch -D is refused, also of a packed branch" {
  git switch -q side
  refused 128 git branch -D main
  git pack-refs --all
  refused 128 git branch -D main
}

@test "agent: branch -M onto main is refused and loses nothing" {
  git switch -q side
  feat=$(git rev-parse feat)
  run -128 agent git branch -M feat main
  [[ $output == *"renamed onto a protected branch"* ]]
  [ "$(git rev-parse feat)" = "$feat" ]
  [ "$(git rev-parse main)" = "$main" ]
  run -128 agent git branch -m main feat
  [ "$(git rev-parse main)" = "$main" ]
}

@test "agent: checkout -B and switch -C are refused, with a hint how to clean up" {
  git switch -q side
  for command in "checkout -B" "switch -C"; do
    # shellcheck disable=SC2086
    refused 128 git $command main feat
    [[ $output == *"git reset --hard"* ]]
    git reset -q --hard
    [ -z "$(git status --porcelain)" ]
  done
}

@test "agent: update-ref is refused, also by a symbolic name and for deletion" {
  git switch -q side
  refused 128 git update-ref refs/heads/main feat
  refused 128 git update-ref -d refs/heads/main
  git symbolic-ref refs/heads/alias refs/heads/main
  refused 128 git update-ref refs/heads/alias feat
}

@test "agent: from a subdirectory, by --git-dir, in a bare repository, on a borrowed HEAD" {
  mkdir sub
  cd sub
  refused 128 git commit --no-verify --allow-empty -m no
  cd "$BATS_TEST_TMPDIR"
  run -128 agent git --git-dir=work/.git --work-tree=work commit -q --no-verify --allow-empty -m no
  run -128 agent git -C work/.git update-ref refs/heads/main feat
  [ "$(git -C work rev-parse main)" = "$main" ]
  git clone -q --bare work bare.git
  worktree-bind -C bare.git hooks install 2>/dev/null
  run -128 agent git -C bare.git update-ref refs/heads/main feat
  [ "$(git -C bare.git rev-parse main)" = "$main" ]
  cd work
  git worktree add -q -b work/bob ../wt
  cd ../wt
  git symbolic-ref HEAD refs/heads/main
  refused 128 git commit --no-verify --allow-empty -m no
}

@test "agent: rebase --update-refs that would move main is refused, and --abort restores" {
  git switch -q side
  git merge -q main
  git commit -q --allow-empty -m top
  run -128 agent git rebase --update-refs --onto feat main~1
  [ "$(git rev-parse main)" = "$main" ]
  agent git rebase --abort || true
  [ -z "$(git status --porcelain)" ]
}

@test "agent: fetch into main is refused" {
  git switch -q side
  git clone -q --bare . ../origin.git
  git remote add origin ../origin.git
  refused 128 git fetch -q origin +feat:main
}

@test "agent: am is refused before the working tree changes" {
  git format-patch -q -1 feat --stdout >../patch
  refused 128 git am ../patch
  clean
}

@test "agent: push to main is refused" {
  git init -q --bare ../origin.git
  git remote add origin ../origin.git
  refused 1 git push -q origin main
  refused 1 git push -q origin feat:main
  refused 1 git push -q -f origin +feat:refs/heads/main
  run -1 git -C ../origin.git rev-parse -q --verify main
  agent git push -q origin feat
}

@test "agent: patterns are protected as well" {
  run -128 agent git branch release/1 feat
  [[ $output == *"refs/heads/release/1: protected branch"* ]]
  agent git branch released feat
}

@test "agent: known by the marker in its worktree's git directory alone" {
  worktree-bind bind bob -b work/bob
  cd ../work.worktrees/bob
  run -128 git branch -f release/2 HEAD
  run -128 git update-ref refs/heads/main HEAD~1
  [[ $output == *"refused to bob"* ]]
  git commit -q --allow-empty -m mine
}

@test "agent: everything on its own branch works" {
  worktree-bind bind bob -b work/bob
  cd ../work.worktrees/bob
  export AMP_AGENT=bob
  echo x >x
  git add x
  git commit -q -m x
  echo y >>x
  git stash -q
  git stash pop -q
  git commit -q -am y
  git commit -q --amend -m "y again"
  git merge -q -m merge feat
  git rebase -q main || git rebase --abort
  run -128 git rebase -q --onto side~0 main~1 main
  git reset -q --hard HEAD~1
  git cherry-pick ahead --allow-empty
  git tag v1
  git branch another
  git branch -M another renamed
  git branch -D renamed
  git switch -q -c next
  git gc -q --prune=now
  git pack-refs --all
  git reflog expire --expire=now --all
  git fsck
}

@test "agent: no-ops on main pass" {
  agent git reset -q --hard HEAD
  echo x >>file
  agent git stash -q
  agent git stash pop -q
  git checkout -q file
  agent git gc -q
  agent git pack-refs --all --prune
  agent git branch -f side main
  git switch -q side
  agent git update-ref refs/heads/main "$main"
  [ "$(git rev-parse main)" = "$main" ]
}

@test "person: everything is allowed" {
  git commit -q --allow-empty -m a
  git commit -q --no-verify --allow-empty -m b
  git merge -q --no-ff -m merge feat
  git reset -q --hard HEAD~1
  git merge -q -m c ahead
  git cherry-pick feat
  git revert --no-edit HEAD
  git rebase -q side
  git switch -q side
  git branch -f main ahead
  git branch -M feat main
  git branch feat "$main"
  git update-ref refs/heads/main feat
  git fetch -q . +ahead:main
  git switch -q main
  git init -q --bare ../origin.git
  git remote add origin ../origin.git
  git push -q origin main
  git clone -q ../origin.git ../clone
  git -C ../clone commit -q --allow-empty -m cloned
  git -C ../clone push -q
  git pull -q --ff-only origin main
  echo x >>file
  git stash -q
  git stash pop -q
  git commit -q -am x
  git gc -q --prune=now
  git pack-refs --all
  git branch release/1
  git branch -D release/1
  git fsck
}

@test "person: the first commit of a repository is allowed, an agent's is not" {
  git init -q -b main ../new
  cd ../new
  worktree-bind hooks install 2>/dev/null
  run -1 agent git commit -q --allow-empty -m first
  git commit -q --allow-empty -m first
}

@test "people are held to it where the policy says so" {
  worktree-bind hooks install --humans refuse 2>/dev/null
  run -1 git commit -q --allow-empty -m no
  [[ $output == *"refused to people"* ]]
  git switch -q side
  git commit -q --allow-empty -m yes
  git gc -q
}

@test "an override is used once, and only for its branch and agent" {
  worktree-bind hooks override main --agent bob --reason "release by hand"
  git log -1 --format=%H main
  run -1 env AMP_AGENT=eve git commit -q --allow-empty -m no
  run -128 agent git branch release/1 feat
  agent git commit -q --allow-empty -m once
  run -1 agent git commit -q --allow-empty -m twice
  grep -q 'for main used by bob' .git/amp/guard.log
  grep -h '"key":"override' .git/amp/log/* | grep -q 'release by hand'
}

@test "an override that is too old does not count, and agents cannot write one" {
  worktree-bind hooks override main --reason x --for 1s
  sed -i 's/^until .*/until 1000/' .git/amp/override
  run -1 agent git commit -q --allow-empty -m no
  run -77 agent worktree-bind hooks override main --reason x
  run -77 agent worktree-bind hooks install
  run -77 agent worktree-bind hooks uninstall
  worktree-bind bind eve -b work/eve
  cd ../work.worktrees/eve
  run -77 worktree-bind hooks uninstall
  [[ $output == *'"eve"'* ]]
}

@test "a policy that cannot be read refuses agents and lets people work" {
  echo nonsense >>.git/amp/guard
  git switch -q side
  run -1 agent git commit -q --allow-empty -m no
  [[ $output == *"the guard's policy, line"* ]]
  git commit -q --allow-empty -m yes
}

@test "hooks that stood there are kept and called with the same arguments and input" {
  worktree-bind hooks uninstall
  for hook in pre-commit reference-transaction pre-push; do
    printf '#!/bin/sh\necho "%s $*" >>"%s/log"\ncat >>"%s/log"\n' $hook "$PWD" "$PWD" \
      >.git/hooks/$hook
    chmod +x .git/hooks/$hook
  done
  worktree-bind hooks install 2>/dev/null
  git switch -q side
  agent git commit -q --allow-empty -m yes </dev/null
  grep -q '^pre-commit' log
  grep -q '^reference-transaction prepared' log
  grep -q 'refs/heads/side$' log
  git init -q --bare ../origin.git
  agent git push -q ../origin.git side
  grep -q '^refs/heads/side .* refs/heads/side ' log
  worktree-bind hooks uninstall
  [ ! -L .git/hooks/pre-commit ]
  [ ! -e .git/hooks/pre-commit.amp-kept ]
  [ ! -e .git/hooks/branch-guard ]
}

@test "a kept hook's refusal counts" {
  worktree-bind hooks uninstall
  printf '#!/bin/sh\nexit 1\n' >.git/hooks/pre-commit
  chmod +x .git/hooks/pre-commit
  worktree-bind hooks install 2>/dev/null
  run -1 git commit -q --allow-empty -m no
}

@test "the server's hook refuses everybody but the pushers" {
  git init -q --bare ../server.git
  worktree-bind -C ../server.git hooks install --server --pusher alice 2>/dev/null
  git remote add origin ../server.git
  run -1 git push -q origin main
  [[ $output == *"protected branch: refused to $(id -un)"* ]]
  run -1 env REMOTE_USER=mallory git push -q origin main
  [[ $output == *"refused to mallory"* ]]
  git push -q origin side
  REMOTE_USER=alice git push -q origin main
  run -1 env REMOTE_USER=alice AMP_AGENT=bob git -c core.hooksPath=/dev/null push -q origin feat:main
  [ "$(git -C ../server.git rev-parse main)" = "$main" ]
}

@test "hooks check: nothing to say after install" {
  run worktree-bind hooks check
  [ "$status" -eq 0 ]
  [ -z "$output" ]
}

@test "hooks check finds what git would pass over in silence, and what would make it fail" {
  printf '#!/no/such/interpreter\n' >.git/hooks/post-commit
  printf '#!/usr/bin/env no-such-program\n' >.git/hooks/post-merge
  chmod +x .git/hooks/post-commit .git/hooks/post-merge
  printf '#!/bin/sh\n' >.git/hooks/post-checkout
  chmod -x .git/hooks/post-checkout
  rm .git/hooks/pre-push
  run -1 worktree-bind --json hooks check
  [ "$(jq -r .code <<<"$output" | sort | tr '\n' ' ')" = \
    "hook_missing hook_not_executable interpreter_missing interpreter_missing " ]
  chmod -x .git/hooks/branch-guard
  run -1 worktree-bind hooks check
  [[ $output == *"reference-transaction: not executable: git silently ignores it"* ]]
}

@test "hooks check finds a program that was written over through a link" {
  [ "$(stat -c %a .git/hooks/branch-guard)" = 555 ]
  chmod 755 .git/hooks/branch-guard
  printf '#!/bin/sh\nexit 0\n' >.git/hooks/pre-commit
  run -1 worktree-bind --json hooks check
  [ "$(jq -r .code <<<"$output")" = guard_differs ]
  worktree-bind hooks install 2>/dev/null
  worktree-bind hooks check
}

@test "hooks check compares the guard and runs nothing from the repository" {
  rm .git/hooks/branch-guard
  printf '#!/bin/sh\ntouch "%s"\necho branch-guard 9.9\n' "$PWD/ran" >.git/hooks/branch-guard
  chmod +x .git/hooks/branch-guard
  run -1 worktree-bind --json hooks check
  [ "$(jq -r .code <<<"$output")" = guard_differs ]
  run -1 amp-ack doctor --repo .
  [[ $output == *guard_differs* ]]
  [ ! -e ran ]
}

@test "hooks check looks where git looks" {
  git config core.hooksPath "$PWD/.husky"
  worktree-bind hooks install --hooks-dir .husky 2>/dev/null
  # What is wrong in .git/hooks does not matter, what is wrong there does.
  rm .git/hooks/pre-push
  worktree-bind hooks check
  rm .husky/pre-push
  run -1 worktree-bind hooks check
  [[ $output == *"$PWD/.husky/pre-push: not installed"* ]]
  HOME=$PWD git config core.hooksPath '~/.husky'
  HOME=$PWD run -1 worktree-bind hooks check
  [[ $output == *"$PWD/.husky/pre-push: not installed"* ]]
  git config core.hooksPath .husky
  run -1 worktree-bind --json hooks check
  [ "$(jq -r .code <<<"$output" | tr '\n' ' ')" = "relative_hooks_path hook_missing " ]
  git config core.hooksPath "$PWD/.husky"
  worktree-bind hooks uninstall
  [ ! -e .husky/branch-guard ]
  [ ! -e .git/hooks/branch-guard ]
}

@test "hooks install and uninstall report what they did" {
  worktree-bind hooks uninstall
  printf '#!/bin/sh\n' >.git/hooks/pre-commit
  chmod +x .git/hooks/pre-commit
  run -0 --separate-stderr worktree-bind hooks install
  [[ $output == *"policy: $PWD/.git/amp/guard"* ]]
  [[ $output == *"copied: $PWD/.git/hooks/branch-guard"* ]]
  [[ $output == *"kept: $PWD/.git/hooks/pre-commit.amp-kept: "* ]]
  [[ $output == *"linked: $PWD/.git/hooks/pre-push: to branch-guard"* ]]
  run -0 --separate-stderr worktree-bind --json hooks install
  [ "$(jq -r .action <<<"$output" | sort | uniq -c | tr -s ' \n' ' ')" = " 1 copied 1 policy 6 unchanged " ]
  run -0 --separate-stderr worktree-bind hooks uninstall
  [[ $output == *"restored: $PWD/.git/hooks/pre-commit"* ]]
  [[ $output == *"removed: $PWD/.git/hooks/pre-push"* ]]
}

@test "hooks check finds a foreign core.hooksPath, and install refuses it" {
  git config core.hooksPath /some/where
  run -1 worktree-bind hooks check
  [[ $output == *"/some/where: core.hooksPath leads git here"* ]]
  run -78 worktree-bind hooks install
  git config core.hooksPath "$PWD/.husky"
  worktree-bind hooks install --hooks-dir .husky 2>/dev/null
  refused 1 git commit --allow-empty -m no
}

@test "hooks are not installed through a link" {
  mv .git/hooks ../shared-hooks
  ln -s "$PWD/../shared-hooks" .git/hooks
  before=$(ls ../shared-hooks)
  run -78 worktree-bind hooks install
  [[ $output == *"linked_hooks"* || $output == *".git/hooks is a symbolic link"* ]]
  [ "$(ls ../shared-hooks)" = "$before" ]
}

@test "not covered locally, as docs/guard.md says: the trip-wire is for these" {
  git switch -q side
  # With --push, git refuses nothing by its settings.
  git init -q --bare ../away.git
  worktree-bind bind bob -b task/x --push
  run -1 git -C "$PWD.worktrees/bob" push -q ../../away.git main
  git -C "$PWD.worktrees/bob" push -q --no-verify ../../away.git main
  git -C ../away.git rev-parse -q --verify main
  agent git branch -C feat main
  [ "$(git rev-parse main)" = "$(git rev-parse feat)" ]
  agent git -c core.hooksPath=/dev/null update-ref refs/heads/main "$main"
  agent git symbolic-ref refs/heads/main refs/heads/feat
  [ "$(git rev-parse main)" = "$(git rev-parse feat)" ]
}

@test "the policy comes from amp.json where no option says otherwise" {
  echo '{"branches":{"protected":["rel/*"]},"guard":{"humans":"refuse"}}' >../amp.json
  worktree-bind hooks install --config ../amp.json 2>/dev/null
  run -128 git branch rel/1
  worktree-bind hooks install 2>/dev/null
  git branch rel/1
}
