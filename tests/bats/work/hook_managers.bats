#!/usr/bin/env bats
# The snippets for lefthook, husky and pre-commit, with the real programs; then the guard on top of them.
# static

load ../lib

setup() {
  need_tool worktree-bind
  cd "$BATS_TEST_TMPDIR" || return 1
  repo work
  cd work || return 1
  git branch feat
  git init -q --bare ../origin.git
  git remote add origin ../origin.git
  snippets=$AMP_TOP/examples/hooks
}

# from_npm NAME VERSION: puts the program in PATH, from a cache below build/, or skips the test.
from_npm() {
  local dir=$AMP_BUILD/npm
  need npm
  if [ ! -x "$dir/node_modules/.bin/$1" ]; then
    mkdir -p "$dir"
    (cd "$dir" && HOME=$dir timeout 60 npm install --no-audit --no-fund --ignore-scripts --no-save "$1@$2") \
      >"$BATS_TEST_TMPDIR/npm" 2>&1 || skip "npm cannot install $1: $(tail -n 1 "$BATS_TEST_TMPDIR/npm")"
  fi
  PATH=$dir/node_modules/.bin:$PATH
}

# change: something to commit; lefthook skips its commands if no file is staged.
change() {
  echo "$RANDOM$RANDOM" >>file
  git add file
}

# guards: an agent is refused on main by the manager's hooks alone, a person is not.
guards() {
  change
  run -1 env AMP_AGENT=bob git commit -m no
  [[ $output == *"protected branch: refused to bob [branch_violation]"* ]]
  git commit -q -m yes
  git switch -q feat
  change
  AMP_AGENT=bob git commit -q -m yes
  run -1 env AMP_AGENT=bob git push -q origin feat:main
  [[ $output == *"[branch_violation]"* ]]
  AMP_AGENT=bob git push -q origin feat
}

# messages: the rule of trailers.
messages() {
  mkdir -p .git/amp
  printf 'amp-guard 1\ntrailer Task\n' >.git/amp/guard
  run -1 env AMP_AGENT=bob git commit --allow-empty -m no
  [[ $output == *"[trailer_missing]"* ]]
  AMP_AGENT=bob git commit -q --allow-empty -m yes -m "Task: T-2026-001"
  rm .git/amp/guard
}

# both ARGUMENT...: with the guard on top, --no-verify is refused as well, and the manager's hooks still run.
both() {
  worktree-bind hooks install "$@" >/dev/null 2>&1
  worktree-bind hooks check
  git switch -q main
  run -128 env AMP_AGENT=bob git commit --no-verify --allow-empty -m no
  [[ $output == *"[branch_violation]"* ]]
  git switch -q feat
  AMP_AGENT=bob git commit --allow-empty -m yes
}

@test "lefthook" {
  from_npm lefthook 1
  cp "$snippets/lefthook/lefthook.yml" .
  lefthook install >/dev/null
  guards
  messages
  both
}

@test "husky" {
  from_npm husky 9
  echo '{"private":true}' >package.json
  husky >/dev/null
  cp "$snippets"/husky/* .husky/
  guards
  messages
  git config core.hooksPath "$PWD/.husky/_"
  both --hooks-dir .husky/_
}

@test "pre-commit" {
  need pre-commit
  export XDG_CACHE_HOME=$BATS_TEST_TMPDIR/cache
  cp "$snippets/pre-commit/pre-commit-config.yaml" .pre-commit-config.yaml
  git add .pre-commit-config.yaml
  git commit -q -m config
  git branch -f feat
  pre-commit install -t pre-commit -t commit-msg -t pre-push >/dev/null
  guards
  messages
  both
}

@test "pre-commit: the repository's own list of hooks" {
  need pre-commit
  export XDG_CACHE_HOME=$BATS_TEST_TMPDIR/cache
  git init -q ../hooks
  cp "$AMP_TOP/.pre-commit-hooks.yaml" ../hooks
  git -C ../hooks add .
  git -C ../hooks commit -q -m hooks
  printf 'repos:\n- repo: %s\n  rev: %s\n  hooks:\n  - id: branch-guard\n' "$PWD/../hooks" \
    "$(git -C ../hooks rev-parse HEAD)" >.pre-commit-config.yaml
  git add .pre-commit-config.yaml
  git commit -q -m config
  pre-commit validate-manifest ../hooks/.pre-commit-hooks.yaml
  run -1 env AMP_AGENT=bob pre-commit run branch-guard
  [[ $output == *"[branch_violation]"* ]]
  pre-commit run branch-guard
}
