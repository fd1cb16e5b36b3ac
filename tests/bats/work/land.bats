#!/usr/bin/env bats
# task-dispatch land: a branch moves to exactly what was approved, by a person or on a server.

load ../lib

setup() {
  need git jq ssh-keygen
  need_tool task-dispatch amp-validate
  unset AMP_IDENTITY
  top=$BATS_FILE_TMPDIR
  [ -d "$top/state" ] || begin
  cd "$BATS_TEST_TMPDIR" || return
  cp -a "$top/work" work
  cp -a "$top/state" state
  x=$(git -C work rev-parse agent/x)
  main=$(git -C work rev-parse main)
  land=(task-dispatch land -s state -C work)
}

# Two tasks that are done, and one that is not, all from the same commit.
begin() {
  cd "$top" || return
  repo work
  printf 'one\ntwo\n' >work/file
  git -C work add -A
  git -C work commit -qm "a file"
  cat >executor <<'A'
#!/bin/sh
echo "$AMP_TASK_ID" >"done-$AMP_TASK_ID"
echo three >>file
git add -A && git commit -qm "the work"
A
  cat >reviewer <<'A'
#!/bin/sh
[ "$AMP_TASK_ID" != T-2026-003 ] || exit 3
jq '{decision: "approved", confidence: 1,
     criteria_results: [.[] | {criterion: (if type == "object" then .criterion else . end), passed: true, evidence: "seen"}]}' \
  "$AMP_CRITERIA" >"$AMP_RESULT.new"
mv "$AMP_RESULT.new" "$AMP_RESULT"
A
  chmod +x executor reviewer
  local n=0
  for b in x y z; do
    task-dispatch new --print --id "T-2026-00$((++n))" -s state -C work --branch "agent/$b" --description "work of $b" \
      --criterion "a file says so"
  done >tasks
  EXECUTOR=$PWD/executor REVIEWER=$PWD/reviewer ends 75 timeout 60 "$AMP_TOP/examples/qa-loop/loop.sh" \
    "$PWD/state" <tasks >loop.out 2>loop.err
  cd "$BATS_TEST_TMPDIR" || return
}

# refused STATUS CODE WORDS ARGS...: land is refused, says so, and changes nothing.
refused() {
  local status=$1 words=$2 before
  before=$(git -C work for-each-ref && git -C work status --porcelain)
  shift 2
  run "-$status" --separate-stderr "${land[@]}" "$@"
  [[ "$stderr" == *"$words"* ]]
  [ "$(git -C work for-each-ref && git -C work status --porcelain)" = "$before" ]
}

state_of() {
  task-dispatch list -s state --all --json | jq -r "select(.task == \"$1\").state"
}

@test "main moves to the approved commit, with its worktree; the record is signed; again changes nothing" {
  "${land[@]}" --check --json T-2026-001 >checked
  jq -e '.landed == false and .already == false' checked
  [ "$(git -C work rev-parse main)" = "$main" ]
  "${land[@]}" --json 1 >landed
  amp-validate -S "$AMP_TOP/schemas/records/landing.json" landed | cmp - landed
  [ "$(git -C work rev-parse main)" = "$x" ]
  [ -z "$(git -C work status --porcelain)" ]
  [ -e work/done-T-2026-001 ]
  grep -q "amp: land T-2026-001" <(git -C work reflog main)
  [ "$(state_of T-2026-001)" = landed ]
  [ "$(state_of T-2026-002)" = done ]
  task-dispatch show -s state --json 1 | jq -e --arg x "$x" '.events[-1] | .event == "land" and .to == "main" and .commit == $x and .key'
  jq -ce 'select(.key? == "landing.T-2026-001" and .event == "moved").state.list[0] |
    .alg == "Ed25519" and (.signature | length == 88) and .operator and .by == "login"' state/log/*.ndjson
  "${land[@]}" --json 1 | jq -e .already
  run -0 --separate-stderr "${land[@]}" "$x"
  [[ "$stderr" == *"already"* ]]
  jq -se 'map(select(.key? == "landing.T-2026-001")) | length == 2' state/log/*.ndjson
}

@test "the audit lists landings and verifies who signed them" {
  "${land[@]}" 1
  hitl-prompt audit -s state --what landed --json --verify | head -n 1 >all
  jq -e --arg me "$(id -un)" --arg moved "main moved from ${main:0:12} to ${x:0:12}" '.task == "T-2026-001" and
    .operator == $me and .by == "login" and .decision == "land" and .changed == $moved and .signature == "valid"' all
  key=$(jq -r .key all)
  ssh-keygen -lf "state/keys/operator.$(id -un).pub" | grep -qF "$key"
  # A changed record is damage of the log.
  cp -a state forged
  sed -i 's/"operator":"[^"]*","by":"login"/"operator":"eve","by":"login"/g' forged/log/*.ndjson
  run -74 --separate-stderr hitl-prompt audit -s forged --verify
  [[ "$stderr" == *damaged* ]]
  amp-sign revoke --state state --from 2020-01-01T00:00:00Z "$key"
  run -1 --separate-stderr hitl-prompt audit -s state --what landed --verify --json
  [ "$(jq -r .signature <<<"${lines[0]}")" = key_revoked ]
  [[ "$stderr" == *"1 signatures are not valid"* ]]
}

@test "what nobody approved does not land: other commits, changed trees, unfinished tasks; an agent lands nothing" {
  refused 1 "is not approved: no verdict approves the commit" main~0
  git -C work checkout -q -b other agent/x
  echo more >>work/file
  git -C work commit -qam "one word more"
  refused 1 "is not approved: no verdict approves the commit" other
  git -C work checkout -q main
  refused 1 "task T-2026-003 is " 3
  refused 1 'is neither a task of state nor a commit' T-2026-099
  refused 1 'is neither a task of state nor a commit' nothing
  # The verdict's signature is gone.
  rm state/keys/reviewer.*
  sed -i /reviewer/d state/keys/allowed_signers
  refused 1 "unknown_key" 1
  AMP_AGENT=ann refused 77 'only people may land work' 1
  echo '{"hitl":{"operators":["somebody-else"]}}' >amp.json
  land+=(-c amp.json)
  refused 77 "operator" 1
}

@test "a branch that moved on needs a new review; one that is behind the reviewed work too" {
  git -C work commit -q --allow-empty -m "another"
  refused 1 "the merged tree would be one that nobody approved" 1
  [[ "$stderr" == *"task-dispatch new --state state --repo work --branch agent/x"* ]]
  # The command can be copied into a shell, whatever the texts are.
  mkdir "odd \$(touch ran) it's"
  cp -a work "odd \$(touch ran) it's/w"
  run -1 --separate-stderr task-dispatch land -s state -C "odd \$(touch ran) it's/w" 1
  command=$(grep -o 'task-dispatch new --state .*' <<<"$stderr")
  bash -c "set -- ${command#task-dispatch}; printf '%s\n' \"\$@\"" >words
  [ "$(paste -sd' ' words)" = "new --state state --repo odd \$(touch ran) it's/w --branch agent/x --description Merge main into this branch: work of x --criterion the work of T-2026-001 is unchanged" ]
  [ ! -e ran ]
  # It works: the task is there.
  run -0 --separate-stderr bash -c "$command"
  [[ "$output" == T-*"-004 created" ]]
  [ "$(state_of "${output% created}")" = dispatched ]
  [ ! -e ran ]
  refused 1 "nobody approved" --no-ff 1
  git -C work branch release "$(git -C work rev-list --max-parents=0 main)"
  refused 1 "would land without a review" --into release 1
  refused 1 "gone: no such branch" --into gone 1
  [ "$(state_of T-2026-001)" = done ]
}

@test "--no-ff makes a merge commit with the approved tree, also into a branch that nobody has checked out" {
  git -C work branch release
  git -C work config user.name Ann
  git -C work config user.email ann@example.org
  "${land[@]}" --into refs/heads/release --no-ff 1
  git -C work log -1 --format=%P release | grep -qx "$main $x"
  [ "$(git -C work rev-parse release^{tree})" = "$(git -C work rev-parse "$x^{tree}")" ]
  git -C work log -1 --format=%B release | grep -qx "Approved-commit: $x"
  git -C work log -1 --format=%s release | grep -qx "Land work of x"
  [ "$(git -C work log -1 --format=%ae release)" = ann@example.org ]
  [ "$(git -C work rev-parse main)" = "$main" ]
  # Then into main. A refused one leaves what was before.
  echo mine >>work/file
  refused 1 "with changes that are not committed" 1
  [ "$(state_of T-2026-001)" = landed ]
  git -C work checkout -q file
  "${land[@]}" 1
  [ "$(git -C work rev-parse main)" = "$x" ]
  task-dispatch show -s state --json 1 | jq -e '[.events[] | select(.event == "land").to] == ["release", "main"]'
}

@test "changes in the worktree are never lost: tracked ones and files in the way refuse, others stay" {
  echo mine >>work/file
  refused 1 "with changes that are not committed" 1
  refused 1 "with changes that are not committed" --check 1
  [[ "$stderr" == *"commit or stash the changes there"* ]]
  [ "$(state_of T-2026-001)" = done ]
  git -C work checkout -q file
  echo mine >work/done-T-2026-001
  refused 1 "with changes that are not committed" 1
  refused 1 "with changes that are not committed" --check 1
  [ "$(cat work/done-T-2026-001)" = mine ]
  rm work/done-T-2026-001
  echo note >work/untracked
  # What a killed landing left: the files of the new commit, the old branch.
  git -C work show agent/x:file >work/file
  git -C work show agent/x:done-T-2026-001 >work/done-T-2026-001
  git -C work add file
  git -C work status --porcelain >before
  "${land[@]}" --check 1
  git -C work status --porcelain | cmp - before
  "${land[@]}" 1
  [ "$(git -C work status --porcelain)" = "?? untracked" ]
  [ "$(git -C work rev-parse main)" = "$x" ]
}

@test "no hook and no filter of the repository runs" {
  for h in reference-transaction post-checkout post-merge post-commit pre-commit; do
    printf '#!/bin/sh\necho %s >>%s/ran\nexit 1\n' "$h" "$PWD" >"work/.git/hooks/$h"
    chmod +x "work/.git/hooks/$h"
  done
  "${land[@]}" --no-ff 1
  [ ! -e ran ]
  cp -a "$top/work" other
  echo 'file filter=evil' >other/.git/info/attributes
  git -C other config filter.evil.smudge "touch $PWD/ran; cat"
  run -1 --separate-stderr task-dispatch land -s state -C other 1
  [ ! -e ran ]
}

@test "--prune removes the worktree, unless something would be lost" {
  git -C work worktree add -q "$PWD/work.worktrees/ann" agent/x
  "${land[@]}" --prune 1
  [ ! -e work.worktrees/ann ]
  [ "$(git -C work rev-parse agent/x)" = "$x" ]
  git -C work worktree add -q "$PWD/work.worktrees/ann" agent/x
  echo mine >>work.worktrees/ann/file
  run -0 --separate-stderr "${land[@]}" --prune 1
  [[ "$stderr" == *"kept"* ]]
  [ -e work.worktrees/ann/file ]
}

@test "on a server: a bare repository, a bundle or a note, no state directory; an update hook" {
  task-dispatch export -s state -C work -o bundle T-2026-001 -C work || task-dispatch export -s state -C work -o bundle agent/x
  task-dispatch export -s state -C work --note agent/x
  cp state/keys/allowed_signers signers
  git clone -q --bare work bare.git
  git -C bare.git fetch -q "$PWD/work" refs/notes/amp:refs/notes/amp
  rm -r state
  server=(task-dispatch land -C bare.git --allowed-signers signers)
  run -1 --separate-stderr "${server[@]}" --bundle bundle agent/y
  [[ "$stderr" == *"the bundle is about other commits"* ]]
  # Changed, and made with other keys.
  sed 's/\\"approved\\"/\\"rejected\\"/' bundle >forged
  run -1 --separate-stderr "${server[@]}" --bundle forged agent/x
  [[ "$stderr" == *"is not approved"* ]]
  ssh-keygen -q -t ed25519 -N '' -f key
  echo "reviewer/eve,executor/eve,coordinator $(cat key.pub)" >others
  run -1 --separate-stderr task-dispatch land -C bare.git --allowed-signers others --bundle bundle agent/x
  [[ "$stderr" == *"is not approved"* ]]
  run -78 --separate-stderr task-dispatch land -C bare.git --bundle bundle agent/x
  [ "$(git -C bare.git rev-parse main)" = "$main" ]
  "${server[@]}" --note agent/x
  [ "$(git -C bare.git rev-parse main)" = "$x" ]
  # The hook lets in what may land, and nothing else.
  git -C bare.git update-ref refs/heads/main "$main"
  cat >bare.git/hooks/update <<H
#!/bin/sh
[ "\$1" = refs/heads/main ] || exit 0
exec "$(command -v task-dispatch)" land --check --note --allowed-signers $PWD/signers --into main --old "\$2" "\$3"
H
  chmod +x bare.git/hooks/update
  run -1 git -C work push -q "$PWD/bare.git" agent/y:main
  [[ "$output" == *no_note* || "$output" == *"no note"* || "$output" == *"has no note"* ]]
  git -C work push -q "$PWD/bare.git" agent/x:main
  [ "$(git -C bare.git rev-parse main)" = "$x" ]
  # A forced push back to the approved commit would lose what came later, also beside it.
  git -C work checkout -q --detach "$x"
  git -C work commit -q --allow-empty -m "a fix"
  git -C bare.git fetch -q "$PWD/work" HEAD
  for later in "$(git -C work rev-parse HEAD)" "$(git -C work rev-parse agent/y)"; do
    git -C bare.git fetch -q "$PWD/work" "$later" agent/y
    git -C bare.git update-ref refs/heads/main "$later"
    run -1 git -C work push -qf "$PWD/bare.git" agent/x:main
    [[ "$output" == *"main is at ${later:0:12}, which ${x:0:12} does not contain"* ]]
    # A hook without the old value sees that of the branch.
    run -1 --separate-stderr "${server[@]}" --check --into main --note "$x"
    [[ "$stderr" == *"does not contain: its commits would be lost"* ]]
    [ "$(git -C bare.git rev-parse main)" = "$later" ]
  done
  # The branch is no longer where the hook saw it; it is there already.
  run -1 --separate-stderr "${server[@]}" --check --into main --old "$x" --note "$x"
  [[ "$stderr" == *"main: no longer at ${x:0:12}"* ]]
  git -C bare.git update-ref refs/heads/main "$x"
  "${server[@]}" --check --into main --old "$x" --note "$x"
  run -64 "${server[@]}" --into main --old "$x" --note "$x"
}

@test "on a server: a pre-receive hook reads the objects of the push, which git keeps apart, and moves nothing" {
  task-dispatch export -s state -C work --note agent/x
  cp state/keys/allowed_signers signers
  git init -q --bare -b main bare.git
  git -C work push -q "$PWD/bare.git" "$main:refs/heads/main" refs/notes/amp
  run -1 git -C bare.git cat-file -e "$x"
  cat >bare.git/hooks/pre-receive <<H
#!/bin/sh
while read -r old new ref; do
  [ "\$ref" = refs/heads/main ] || continue
  \$BEFORE "$(command -v task-dispatch)" land --check --note --allowed-signers $PWD/signers --into main --old "\$old" "\$new" || exit 1
done
H
  chmod +x bare.git/hooks/pre-receive
  run -1 git -C work push -q "$PWD/bare.git" agent/y:main
  [[ "$output" == *"has no note"* ]]
  # A directory that is not git's own for this push is not read.
  BEFORE="env GIT_QUARANTINE_PATH=$PWD/work/.git/objects" run -1 git -C work push -q "$PWD/bare.git" agent/x:main
  [[ "$output" == *"unknown_revision"* || "$output" == *"no such commit"* ]]
  # The hook cannot move the branch itself, also if it has the objects.
  sed 's/ --check//; s/ --old "$old"//' bare.git/hooks/pre-receive >changed
  cp bare.git/hooks/pre-receive kept
  cat changed >bare.git/hooks/pre-receive
  run -1 git -C work push -q "$PWD/bare.git" agent/x:main
  [[ "$output" == *"in a pre-receive hook nothing can be landed: use --check"* ]]
  [ "$(git -C bare.git rev-parse main)" = "$main" ]
  cat kept >bare.git/hooks/pre-receive
  git -C work push -q "$PWD/bare.git" agent/x:main
  [ "$(git -C bare.git rev-parse main)" = "$x" ]
}

@test "replay: a commit with the tree of an approved one lands nowhere, by the state, a bundle or a note" {
  task-dispatch export -s state -C work -o bundle "$x"
  task-dispatch export -s state -C work --note "$x"
  cp state/keys/allowed_signers signers
  "${land[@]}" 1
  git -C work commit -q --allow-empty -m "a fix"
  fix=$(git -C work rev-parse main)
  replay=$(git -C work commit-tree -m "the work" -p "$fix" "$x^{tree}")
  fake=$(git -C work commit-tree -m "Land it" -p "$fix" -p "$x" "$x^{tree}")
  for c in "$replay" "$fake"; do
    git -C work notes --ref amp copy -f "$x" "$c"
    refused 1 "is not approved: " "$c"
    refused 1 "is not approved: " --check --old "$fix" "$c"
    run -1 --separate-stderr task-dispatch verify -s state -C work "$c"
    [[ "$stderr" == *"is not approved: no "* ]]
    for how in "--bundle bundle" --note; do
      # shellcheck disable=SC2086
      run -1 --separate-stderr task-dispatch verify -C work $how --allowed-signers signers "$c"
      [[ "$stderr" == *"the bundle is about other commits"* ]]
      # shellcheck disable=SC2086
      run -1 --separate-stderr task-dispatch land --check -C work $how --allowed-signers signers --into main "$c"
      [[ "$stderr" == *"the bundle is about other commits"* ]]
    done
  done
  [ "$(git -C work rev-parse main)" = "$fix" ]
}

@test "a merge that a landing made is approved where it was made, by the state and by a bundle; another is not" {
  git -C work branch release
  "${land[@]}" --into release --no-ff 1
  merge=$(git -C work rev-parse release)
  task-dispatch verify -s state -C work "$merge"
  task-dispatch export -s state -C work --note "$merge"
  git -C work notes --ref amp show "$merge" >bundle
  amp-validate --schema "$AMP_TOP/schemas/records/bundle.json" bundle
  cp state/keys/allowed_signers signers
  server=(task-dispatch land -C work --allowed-signers signers --check --note)
  git -C work branch -f release "$main"
  "${server[@]}" --into release --old "$main" "$merge"
  # On another branch, or on later commits, it is not what was recorded.
  run -1 --separate-stderr "${server[@]}" --into main --old "$main" "$merge"
  [[ "$stderr" == *"is a merge into release at ${main:0:12}, and main is at ${main:0:12}"* ]]
  # A merge like it that was not recorded, and a record of which the signature does not count.
  other=$(git -C work commit-tree -m again -p "$main" -p "$x" "$x^{tree}")
  run -1 --separate-stderr task-dispatch verify -s state -C work "$other"
  [[ "$stderr" == *"no landing of ${x:0:12} made the merge ${other:0:12}"* ]]
  git -C work notes --ref amp copy "$merge" "$other"
  run -1 --separate-stderr task-dispatch verify -C work --note --allowed-signers signers "$other"
  [[ "$stderr" == *"made the merge ${other:0:12}"* ]]
  grep -v ^operator/ signers >strangers
  run -1 --separate-stderr task-dispatch verify -C work --note --allowed-signers strangers "$merge"
  [[ "$stderr" == *"the landing: unknown_key"* ]]
  # Without a state directory nothing records what was made.
  run -64 task-dispatch land -C work --allowed-signers signers --no-ff --note --into release "$x"
}

@test "kill -9 while it lands: afterwards the record and the branch agree, and nothing is lost" {
  git -C work branch release
  for i in 1 2 3 4 5 6 7 8; do
    git -C work reset -q --hard "$main"
    rm -rf state
    cp -a "$top/state" state
    "${land[@]}" 1 2>/dev/null &
    sleep "0.0$i"
    kill -9 $! || [ $? -eq 1 ] # it may have ended
    wait $! || [ $? -eq 137 ]
    # A worker that is left finishes its request first.
    "${land[@]}" 1
    [ "$(git -C work rev-parse main)" = "$x" ]
    [ -z "$(git -C work status --porcelain)" ]
    [ "$(state_of T-2026-001)" = landed ]
  done
}

@test "a file that was written in part is completed, and a person's change is not overwritten" {
  tree=$(git -C work rev-parse "agent/x^{tree}")
  printf 'one\ntwo\nth' >work/file
  refused 1 "changes that are not committed" 1
  echo "refs/heads/main $tree" >work/.git/amp-land.moving
  echo mine >>work/file
  refused 1 "changes that are not committed" 1
  printf 'one\ntwo\nth' >work/file
  "${land[@]}" --check 1
  "${land[@]}" 1
  [ "$(git -C work rev-parse main)" = "$x" ]
  [ -z "$(git -C work status --porcelain)" ]
  [ ! -e work/.git/amp-land.moving ]
  # A file that was removed and not yet written again.
  git -C work reset -q --hard "$main"
  echo "refs/heads/main $tree" >work/.git/amp-land.moving
  rm work/file
  "${land[@]}" 1
  [ -z "$(git -C work status --porcelain)" ]
}

@test "two at once: of one task both succeed and it lands once; of two tasks one is refused" {
  "${land[@]}" 1 2>one &
  "${land[@]}" 1 2>two
  wait $!
  [ "$(git -C work reflog main | grep -c 'amp: land')" -eq 1 ]
  git -C work reset -q --hard "$main"
  git -C work branch release
  rc=0
  "${land[@]}" --into release 1 2>one &
  "${land[@]}" --into release 2 2>two || rc=$?
  first=0
  wait $! || first=$?
  [ $((rc + first)) -eq 1 ]
  grep -q "nobody approved" one two
  git -C work rev-parse release | grep -qx "$x\|$(git -C work rev-parse agent/y)"
}
