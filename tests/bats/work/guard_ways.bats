#!/usr/bin/env bats
# Each way to move main of tests/ways/ways.tsv, tried by an agent from its worktree: what stops it here, what a server
# stops, and that docs/guard.md has the same table. Representative ways run under task-dispatch run, whose trip-wire
# reports them, and all of them confined.
# static
# walls

load ../lib

setup_file() {
  export SCRATCH=$BATS_FILE_TMPDIR
}

# template: $SCRATCH/t with the repository work, its guard, the worktree of bob on task/x, and the bare repository
# origin.git; copied to $SCRATCH/s, the path that it was made at.
template() {
  [ ! -d "$SCRATCH/t" ] || return 0
  mkdir "$SCRATCH/s"
  cd "$SCRATCH/s" || return 1
  repo work
  cd work || return 1
  echo one >file
  git add file
  git commit -q -m one
  echo two >file
  git commit -q -am two
  git branch task/y HEAD~1
  git clone -q --bare . ../origin.git
  git remote add origin ../origin.git
  git config remote.origin.url "$SCRATCH/s/origin.git"
  git fetch -q
  worktree-bind hooks install >/dev/null 2>&1
  worktree-bind bind bob -b task/x >/dev/null
  cd ../work.worktrees/bob || return 1
  echo three >three
  git add three
  git commit -q -m three
  git switch -q --detach
  git -c core.hooksPath=/dev/null commit -q --allow-empty -m y
  git -c core.hooksPath=/dev/null update-ref refs/heads/task/y HEAD
  git switch -q task/x
  mv "$SCRATCH/s" "$SCRATCH/t"
}

# way COMMAND...: runs sh -c in bob's worktree of a new copy, with the environment of task-dispatch run, or with BARE
# only with AMP_AGENT.
way() {
  local status=0 settings="'url.amp-refused://.pushInsteadOf=' 'push.default=nothing'" git_env
  git_env=(GIT_CONFIG_COUNT=2 GIT_CONFIG_KEY_0=url.amp-refused://.pushInsteadOf GIT_CONFIG_VALUE_0=
    GIT_CONFIG_KEY_1=push.default GIT_CONFIG_VALUE_1=nothing GIT_CONFIG_PARAMETERS="$settings")
  [ -z "${BARE-}" ] || git_env=()
  rm -rf "$SCRATCH/s"
  cp -a "$SCRATCH/t" "$SCRATCH/s"
  [ -z "${SERVER-}" ] || worktree-bind -C "$SCRATCH/s/origin.git" hooks install --server >/dev/null 2>&1
  cd "$SCRATCH/s/work.worktrees/bob" || return 1
  env AMP_AGENT=bob "${git_env[@]}" ${CONFINED-} timeout 20 sh -c "top=$SCRATCH/s main=$SCRATCH/s/work origin=$SCRATCH/s/origin.git
      export top main origin
      $1" </dev/null >"$SCRATCH/out" 2>&1 || status=$?
  # A way ends as its commands do; what it moved is compared below. A hang is no refusal.
  [ "$status" -ne 124 ] || return 1
  cd "$SCRATCH" || return 1
}

# main_is REPOSITORY: the value of main, read without the repository's settings.
main_is() {
  git --git-dir="$1" rev-parse -q --verify refs/heads/main 2>/dev/null || echo none
}

# stopped_by: what the last way was stopped by, "-" if main moved here or at the origin, or main may be moved now.
stopped_by() {
  if [ "$(main_is s/work/.git)" != "$before" ] || [ "$(main_is s/origin.git)" != "$before" ]; then
    echo -
  elif grep -q 'only people may' out; then
    echo people
  elif grep -q -e '^branch-guard: error' -e 'branch-guard: error: .*branch_violation' -e '^Could not rewrite' out; then
    echo hook
  elif grep -q '^amp: error: agents do not push .*\[push_refused\]$' out; then
    echo settings
  else
    echo git
  fi
}

@test "each way is stopped by what the table says" {
  template
  cd "$SCRATCH"
  before=$(main_is t/work/.git)
  wrong=0
  while IFS=$'\t' read -r name here _ _ command; do
    way "$command"
    got=$(stopped_by)
    [ "$got" = "$here" ] || {
      echo "$name: stopped by $got, not $here"
      sed 's/^/    /' out | head -n 8
      wrong=$((wrong + 1))
    }
  done < <(grep -v '^#' "$AMP_TOP/tests/ways/ways.tsv")
  [ "$wrong" -eq 0 ]
}

@test "an agent that worktree-bind bound pushes in none of these ways, without the environment of run" {
  template
  cd "$SCRATCH"
  before=$(main_is t/work/.git)
  n=0
  while IFS=$'\t' read -r name here _ _ command; do
    [ "$here" = settings ] || continue
    BARE=1 way "$command"
    [ "$(stopped_by)" = settings ] || {
      echo "$name"
      cat out
      return 1
    }
    n=$((n + 1))
  done < <(grep -v '^#' "$AMP_TOP/tests/ways/ways.tsv")
  [ "$n" -eq 9 ]
}

@test "the ways that pass here are stopped by a server, where the table says so" {
  template
  cd "$SCRATCH"
  before=$(main_is t/origin.git)
  n=0
  while IFS=$'\t' read -r name _ _ server command; do
    [ "$server" = refused ] || continue
    SERVER=1 way "$command"
    [ "$(main_is s/origin.git)" = "$before" ] || {
      echo "$name: passed the server"
      return 1
    }
    grep -q 'protected branch: refused to' out
    n=$((n + 1))
  done < <(grep -v '^#' "$AMP_TOP/tests/ways/ways.tsv")
  [ "$n" -ge 5 ]
}

# confined_state: everything of the repositories that a confined agent must not change.
confined_state() {
  (cd "$SCRATCH/s" && find work/.git origin.git -type f ! -path '*/objects/*' ! -path '*/logs/*' \
    ! -path '*/worktrees/*' \
    ! -path '*/amp/error.ndjson' -exec cksum {} + | sort -k 3)
}

@test "confined, no way moves main or changes the hooks, the policy or the configuration" {
  template
  cd "$SCRATCH"
  rm -rf s
  cp -a t s
  (cd s/work.worktrees/bob && env -u AMP_CONFINE worktree-bind exec -- true) || skip "agents cannot be confined here"
  before=$(main_is t/work/.git)
  whole=$(confined_state)
  export -n AMP_CONFINE
  while IFS=$'\t' read -r name _ _ _ command; do
    CONFINED="worktree-bind exec --" way "$command"
    [ "$(main_is s/work/.git)" = "$before" ]
    [ "$(main_is s/origin.git)" = "$before" ]
    [ "$(confined_state)" = "$whole" ] || {
      echo "$name: changed the repository"
      diff <(confined_state) - <<<"$whole"
      return 1
    }
  done < <(grep -v '^#' "$AMP_TOP/tests/ways/ways.tsv")
}

@test "docs/guard.md has the table of the ways" {
  diff <("$AMP_TOP/tests/ways/table.sh") \
    <(sed -n '/^| way | stopped by/,/^$/p' "$AMP_TOP/docs/guard.md" | grep '^|')
}

@test "the trip-wire of task-dispatch run reports ways that nothing else stops" {
  load ../agents
  need jq
  export AMP_CONFINE=off
  local n=0
  for row in "another committer, without hooks" "the ref's file and its reflog" "symbolic-ref refs/heads/main" \
    "-c remote.origin.pushurl, push --no-verify"; do
    n=$((n + 1))
    mkdir "$BATS_TEST_TMPDIR/$n"
    BATS_TEST_TMPDIR=$BATS_TEST_TMPDIR/$n tripped "$row"
  done
}

# tripped ROW: the way under task-dispatch run.
tripped() {
  local command
  command=$(awk -F '\t' -v n="$1" '$1 == n { print $5 }' "$AMP_TOP/tests/ways/ways.tsv")
  [ -n "$command" ]
  workplace
  git clone -q --bare "$REPO" origin.git
  git -C "$REPO" remote add origin "$PWD/origin.git"
  git -C "$REPO" fetch -q
  worktree-bind -C "$REPO" hooks install >/dev/null 2>&1
  agent evil <<EOF
echo x >x
git add x
git commit -qm x
git branch task/x
top=$PWD main=$REPO origin=$PWD/origin.git
$command
true
EOF
  dispatch | run_agent --exec ./evil
  got out.ndjson '.type == "escalation" and .payload.escalation_type == "branch_violation"' || {
    cat out.ndjson
    return 1
  }
}

@test "a repository whose path has a line feed refuses the pushes of its agents, too" {
  local dir=$BATS_TEST_TMPDIR/$'a\nb "c"'
  mkdir "$dir"
  git init -q -b main "$dir/r"
  git init -q --bare "$dir/origin.git"
  git -C "$dir/r" commit -q --allow-empty -m a
  git -C "$dir/r" remote add origin "$dir/origin.git"
  worktree-bind hooks install -C "$dir/r" >/dev/null
  worktree-bind bind bob -C "$dir/r" --state "$BATS_TEST_TMPDIR/feed" -b t/x --path "$BATS_TEST_TMPDIR/w" >/dev/null
  run -128 git -C "$BATS_TEST_TMPDIR/w" push --no-verify origin HEAD:main
  [[ $output == *'[push_refused]'* ]]
  [ -z "$(git -C "$dir/origin.git" for-each-ref)" ]
}
