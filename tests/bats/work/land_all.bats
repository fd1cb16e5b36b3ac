#!/usr/bin/env bats
# task-dispatch land --all: many approved branches land one after the other; merges are checked, conflicts go back.
# plain: land.bats and tasks.bats land by the same code
# walls

load ../lib

setup() {
  need git jq ssh-keygen
  need_tool task-dispatch amp-validate
  unset AMP_IDENTITY
  top=$BATS_FILE_TMPDIR
  [ -d "$top/state" ] || begin
  cd "$BATS_TEST_TMPDIR" || return
  # The tasks name the repository by its path: it is there again for each test.
  rm -rf "$top/work" "$top/work.worktrees"
  cp -a "$top/made" "$top/work"
  ln -s "$top/work" work
  cp -a "$top/state" "$top/executor" "$top/reviewer" .
  land=(task-dispatch land -s state)
  main=$(git -C work rev-parse main)
}

# Ten tasks that are done. 2 is on top of 1, 3 conflicts with 1, the others are from the same commit.
begin() {
  cd "$top" || return
  repo work
  printf 'one\ntwo\n' >work/file
  git -C work add -A
  git -C work commit -qm "a file"
  cat >executor <<'A'
#!/bin/sh
if [ "$AMP_ATTEMPT" -gt 1 ]; then
  git merge -q -X ours "$(grep -o 'git merge [0-9a-f]*' "$AMP_MESSAGE" | sed 's/.* //;q')"
  exit
fi
[ "$AMP_TASK_ID" != T-2026-002 ] || git merge -q --ff-only agent/01
echo "$AMP_TASK_ID" >"done-$AMP_TASK_ID"
case $AMP_TASK_ID in *-001 | *-003) echo "$AMP_TASK_ID" >>file ;; esac
git add -A && git commit -qm "the work of $AMP_TASK_ID"
A
  cat >reviewer <<'A'
#!/bin/sh
jq '{decision: "approved", confidence: 1,
     criteria_results: [.[] | {criterion: (if type == "object" then .criterion else . end), passed: true, evidence: "seen"}]}' \
  "$AMP_CRITERIA" >"$AMP_RESULT.new"
mv "$AMP_RESULT.new" "$AMP_RESULT"
A
  chmod +x executor reviewer
  for n in 01 02 03 04 05 06 07 08 09 10; do
    task-dispatch new --print --id "T-2026-0$n" -s state -C work --branch "agent/$n" --description "work of $n" \
      --criterion "a file says so"
  done >tasks
  ends 0 loop <tasks
  cp -a work made
  cd "$BATS_TEST_TMPDIR" || return
}

# loop [OPTION...]: the QA loop of the examples on ./state.
loop() {
  EXECUTOR=$PWD/executor REVIEWER=$PWD/reviewer timeout 60 "$AMP_TOP/examples/qa-loop/loop.sh" "$PWD/state" >>loop.out 2>>loop.err
}

# states: STATE TASK, sorted.
states() { task-dispatch list -s state --all --json | jq -r '"\(.state) \(.task)"' | sort; }
state_of() { states | sed -n "s/ $1\$//p"; }
record() { jq -c "select(.key? == \"$1\") | .state" state/log/*.ndjson | tail -n 1; }
# landed TASK: the record of its landing.
landed() { record "landing.$1" | jq -c '.list[-1]'; }

@test "ten branches: two fast-forwards, seven merges that the check let in, and a conflict that goes back in words" {
  ends 75 "${land[@]}" --all --test 'ls; test -e file' 2>said
  [ "$(grep -c 'main moved from' said)" -eq 9 ]
  [ "$(grep -c ', merged' said)" -eq 7 ]
  grep -q 'T-2026-003 does not land: .* conflict in 1 file; it is sent back' said
  [ "$(states | cut -d' ' -f1 | sort | uniq -c | tr -s ' ' | paste -sd,)" = " 9 landed, 1 rework" ]
  # The first two are the approved commits themselves.
  git -C work merge-base --is-ancestor agent/02 main
  [ "$(git -C work rev-list --first-parent --merges main | wc -l)" -eq 7 ]
  [ -z "$(git -C work status --porcelain)" ]
  [ ! -e "$top/work.worktrees/amp-land" ]
  for n in 01 02 04 05 06 07 08 09 10; do [ -e "work/done-T-2026-0$n" ]; done
  # What the making was is recorded and signed, with the digest of the check's output.
  landed T-2026-010 >rec
  jq -e --arg tip "$(git -C work rev-parse agent/10)" '.merged == "check" and .check == "ls; test -e file" and
    .commit == $tip and (.output_sha256 | length == 64) and (.signature | length > 80)' rec
  [ "$(jq -r .from rec) $(jq -r .commit rec)" = "$(git -C work log -1 --format=%P main)" ]
  git -C work worktree add -q --detach "$PWD/there" main
  (cd there && ls) | sha256sum | cut -d' ' -f1 | grep -qx "$(jq -r .output_sha256 rec)"
  hitl-prompt audit -s state --what landed --json --verify | jq -se 'map(select(.what == "landed")) | length == 9 and all(.signature == "valid")'
  task-dispatch verify -q -s state -C work main
  # The conflict, for the executor: what to merge, and what each side did.
  moved=$(git -C work rev-parse 'main~6')
  record task.T-2026-003 | jq -e --arg at "$moved" '.unlanded == 1 and .blockers[1] == "Conflict in file: both changed it" and
    (.blockers[0] | contains("has moved to \($at)") or contains("git merge"))'
  run -1 --separate-stderr task-dispatch verify -s state -C work agent/03
  # The loop leads it again, and then it lands.
  loop </dev/null
  jq -e '.payload.tech_constraints | .attempt == 2 and (.blockers | length == 2)' < <(grep -h '"attempt":2' state/log/*.ndjson |
    jq -c '.. | strings | select(startswith("{")) | fromjson | select(.type == "task_dispatch")' | tail -n 1)
  "${land[@]}" --all --test 'test -e done-T-2026-003'
  [ "$(states | cut -d' ' -f1 | uniq)" = landed ]
  "${land[@]}" --all
}

@test "a landing whose git-worker is killed is tried again" {
  cp -as "$AMP_BUILD/libexec/amp" libexec
  rm libexec/git-worker
  printf '#!/bin/bash\nif [ ! -e %q ]; then\n  : >%q\n  read -r\n  exit 1\nfi\nexec %q "$@"\n' "$PWD/died" "$PWD/died" "$AMP_BUILD/libexec/amp/git-worker" \
    >libexec/git-worker
  chmod +x libexec/git-worker
  AMP_LIBEXEC=$PWD/libexec ends 75 "${land[@]}" --all --test 'test -e file' 2>said
  [ -e died ]
  [ "$(grep -c 'main moved from' said)" -eq 9 ]
  [ "$(states | cut -d' ' -f1 | sort | uniq -c | tr -s ' ' | paste -sd,)" = " 9 landed, 1 rework" ]
}

@test "a check that fails moves nothing and sends the reason to the executor; after too many times a person is asked" {
  "${land[@]}" 4
  tip=$(git -C work rev-parse main)
  echo '{"qa": {"lock_after": 2}}' >amp.json
  ends 75 "${land[@]}" -c amp.json --all --test 'echo "a test is red" >&2; exit 3' 2>said
  [ "$(git -C work rev-parse main)" = "$tip" ]
  [ -z "$(git -C work status --porcelain)" ]
  record task.T-2026-005 | jq -e '.state == "rework" and (.blockers[1] | contains("it ended with 3: a test is red"))'
  [ "$(states | grep -c rework)" -eq 9 ]
  [ -z "$(record landing.T-2026-005)" ]
  loop </dev/null
  ends 75 "${land[@]}" -c amp.json --all --test false 2>said
  # The first one contains main now.
  first=$(grep 'moved from' said | grep -o 'T-2026-[0-9]*')
  [ "$(git -C work rev-parse main)" = "$(git -C work rev-parse "agent/${first#T-2026-0}")" ]
  [ "$(grep -c "does not land: .*; a person is asked" said)" -eq 8 ]
  record "task.$(grep 'person is asked' said | grep -om1 'T-2026-[0-9]*')" |
    jq -e '.state == "waiting" and .escalations[0].type == "conflict" and .escalations[0].why == "does not land"'
}

@test "one task by a person: a conflict or a failed check refuses it, and sends nothing back" {
  "${land[@]}" 1
  for args in "--test true 3" "--test false 4" "--merged never 4" "4"; do
    # shellcheck disable=SC2086
    run -1 --separate-stderr "${land[@]}" $args
    case $args in
      *true*) [[ $stderr == *"conflict in 1 file"*"file: both changed it"* ]] ;;
      *false*) [[ $stderr == *"fails the check (false): it ended with 1"* ]] ;;
      *) [[ $stderr == *"nobody approved"* ]] ;;
    esac
  done
  [ "$(git -C work rev-parse main)" = "$(git -C work rev-parse agent/01)" ]
  [ "$(states | cut -d' ' -f1 | sort | uniq -c | tr -s ' ' | paste -sd,)" = " 9 done, 1 landed" ]
  run -1 --separate-stderr "${land[@]}" --test-timeout 100ms --test 'sleep 9' 4
  [[ $stderr == *"it ran for longer than 0.1 s"* ]]
  "${land[@]}" --merged person 4
  landed T-2026-004 | jq -e '.merged == "person"'
  git -C work checkout -q -b elsewhere
  rm work/file
  run -0 --separate-stderr "${land[@]}" --into main --test true --json 5
  amp-validate -S "$AMP_TOP/schemas/records/landing.json" <<<"$output" | jq -e '.merged and .output_sha256'
}

@test "the check runs within the walls, on the merge, and cannot reach the state" {
  "${land[@]}" 4
  unset AMP_CONFINE
  run --separate-stderr "${land[@]}" --test 'exit 0' 5
  [ "$status" -ne 77 ] || skip "no confinement here: $stderr"
  cat >check <<A
#!/bin/sh
[ -e done-T-2026-004 ] && [ -e done-T-2026-006 ] && ! ls $PWD/state && { touch $PWD/out; echo x >scratch; }
A
  chmod +x check
  "${land[@]}" --test "$(tail -n 1 check)" 6
  [ ! -e out ]
  [ ! -e work/scratch ]
}

@test "a check that writes without end is ended at its time limit" {
  "${land[@]}" 1
  run -1 --separate-stderr timeout 60 "${land[@]}" --merged check --test yes --test-timeout 1s 4
  [[ $stderr == *check_failed* || $stderr == *"it ran for longer than 1 s"* ]]
}

@test "a person decides about a merge, once for each approved commit; never leaves it" {
  "${land[@]}" 1
  ends 1 "${land[@]}" --all --merged never 2>said
  grep -q "T-2026-004 does not land: target_moved" said
  [ "$(state_of T-2026-004)" = done ]
  ends 75 "${land[@]}" --all --merged person 2>said
  grep -q "T-2026-004 does not land: .*; a person is asked" said
  record task.T-2026-004 | jq -e '.state == "waiting" and .escalations[0].why == "may it be merged?"'
  [ "$(state_of T-2026-002)" = landed ]
  printf '{"decision": "resume"}\n%.0s' 1 2 3 4 5 6 7 8 >answers
  AMP_ANSWER=$PWD/answers loop </dev/null
  [ "$(state_of T-2026-004)" = done ]
  ends 75 "${land[@]}" --all --merged person 2>said # 3 conflicts
  [ "$(states | grep -c landed)" -eq 9 ]
  landed T-2026-010 | jq -e '.merged == "person" and (has("check") | not) and .signature'
  task-dispatch verify -q -s state -C work main
  grep -q "T-2026-003 does not land: .*; it is sent back" said
}

@test "without land.check merges without a conflict land, and a note says that nothing checked them; one task stays" {
  "${land[@]}" 1
  run -1 --separate-stderr "${land[@]}" 4
  [[ $stderr == *"which "*" does not contain: the merged tree would be one that nobody approved"* ]]
  ends 75 "${land[@]}" --all 2>said # 3 conflicts
  [ "$(states | cut -d' ' -f1 | sort | uniq -c | tr -s ' ' | paste -sd,)" = " 9 landed, 1 rework" ]
  [ "$(grep -c 'without a conflict; no command checks the merge (land.check)' said)" -eq 7 ]
  landed T-2026-010 | jq -e '.merged == "clean" and (has("check") | not) and .signature'
  task-dispatch verify -q -s state -C work main
}

@test "review: the executor merges the branch, the reviewer sees the result, and that is a fast-forward" {
  "${land[@]}" 1
  ends 75 "${land[@]}" --all --merged review 2>said
  [ "$(states | grep -c rework)" -eq 8 ]
  loop </dev/null
  ends 75 "${land[@]}" --all --merged review 2>said
  [ "$(states | grep -c landed)" -eq 3 ]
  [ "$(git -C work rev-parse main)" = "$(git -C work rev-parse agent/03)" ]
  # One by a person, who decides.
  "${land[@]}" --merged person 4 || ends 1 "${land[@]}" --merged person 4
}

@test "kill -9 at any point: the branch is old or new, the record is true, and the next start goes on" {
  for i in 1 2 3 4 5 6 7 8 9; do
    "${land[@]}" --all --test 'sleep 0.03' 2>>said &
    sleep "0.$i"
    kill -9 $! || [ $? -eq 1 ] # it may have ended
    wait $! || [[ $? -eq 137 || $? -eq 75 || $? -eq 0 ]]
    task-dispatch verify -q -s state -C work main || [ "$(git -C work rev-parse main)" = "$main" ]
  done
  rc=0
  "${land[@]}" --all --test true 2>>said || rc=$?
  [[ $rc -eq 75 || $rc -eq 0 ]]
  [ "$(states | cut -d' ' -f1 | sort | uniq -c | tr -s ' ' | paste -sd,)" = " 9 landed, 1 rework" ]
  [ -z "$(git -C work status --porcelain)" ]
  for n in 01 02 04 05 06 07 08 09 10; do
    to=$(landed "T-2026-0$n" | jq -r .to)
    git -C work merge-base --is-ancestor "$to" main
    task-dispatch verify -q -s state -C work "$to"
  done
}

@test "two at once: one has the queue, the other waits, and says so" {
  "${land[@]}" 4
  "${land[@]}" --all --test "touch $PWD/busy; sleep 2" 2>one &
  wait_until 10 test -e busy
  run -75 --separate-stderr "${land[@]}" --all --lock-timeout 200ms
  [[ $stderr == *"another process lands what was approved"* ]]
  kill $!
  wait $! || [ $? -eq 130 ]
  [ ! -e "$top/work.worktrees/amp-land" ]
  "${land[@]}" --all --follow --test true 2>two &
  wait_until 30 bash -c "[ \$(grep -c 'main moved' two) -eq 8 ]"
  kill $!
  wait $!
  grep -q "T-2026-003 does not land" two
}

@test "a merge made by hand is refused by verify and by a server's hook; the recorded one is let in" {
  "${land[@]}" 4
  "${land[@]}" --test true 5
  merge=$(git -C work rev-parse main)
  first=$(git -C work rev-parse agent/04)
  git clone -q --bare work bare.git
  git -C bare.git update-ref refs/heads/main "$first"
  cp state/keys/allowed_signers signers
  cat >bare.git/hooks/update <<H
#!/bin/sh
[ "\$1" = refs/heads/main ] || exit 0
exec "$(command -v task-dispatch)" land --check --note --allowed-signers $PWD/signers --into main --old "\$2" "\$3"
H
  chmod +x bare.git/hooks/update
  task-dispatch export -s state -C work --note "$merge"
  # The same parents, the same tree, another commit; and a merge of approved work that nobody recorded.
  same=$(git -C work commit-tree -m "Land it" -p "$first" -p agent/05 "$merge^{tree}")
  git -C work checkout -q -b by-hand main
  git -C work merge -q --no-ff -m "by hand" agent/06
  for c in "$same" by-hand; do
    git -C work notes --ref amp copy -f "$merge" "$c"
    git -C work push -q -f "$PWD/bare.git" refs/notes/amp
    run -1 --separate-stderr task-dispatch verify -s state -C work "$c"
    [[ $stderr == *"is not approved: no "* ]]
    run -1 git -C work push -q "$PWD/bare.git" "$c:main"
    [[ $output == *"is not approved"* || $output == *"made the merge"* ]]
    [ "$(git -C bare.git rev-parse main)" = "$first" ]
  done
  git -C work push -q "$PWD/bare.git" "$merge:main"
  [ "$(git -C bare.git rev-parse main)" = "$merge" ]
  # A record that says otherwise is damage; one that is not signed does not count.
  grep -v ^operator/ signers >strangers
  run -1 --separate-stderr task-dispatch verify -C work --note --allowed-signers strangers "$merge"
  [[ $stderr == *"the landing: unknown_key"* ]]
}

# forge NAME: a stand-in for gh or glab, which records its arguments and its input.
forge() {
  mkdir -p bin
  cat >"bin/$1" <<A
#!/bin/sh
printf '%s\0' "\$@" >"$PWD/argv"
cat >"$PWD/body"
echo https://forge.example/1
exit \${FORGE_STATUS-0}
A
  chmod +x "bin/$1"
  PATH=$PWD/bin:$PATH
}

@test "--pr pushes the branch and opens a pull request; texts of others are neither options nor shell" {
  forge gh
  git init -q --bare -b main up.git
  git -C work remote add origin "$PWD/up.git"
  evil='agent/$(touch${IFS}ran);`touch_ran`"'"'&|-x"
  task-dispatch new --print --id T-2026-011 -s state -C work --branch "$evil" --description $'--web @everyone $(touch ran)\nsecond `line`' \
    --criterion "a file says so" >task
  loop <task
  [ "$(state_of T-2026-011)" = done ]
  run -0 --separate-stderr "${land[@]}" --pr 11
  [ "$output" = https://forge.example/1 ]
  tip=$(git -C work rev-parse "refs/heads/$evil")
  [ "$(git -C up.git rev-parse "refs/heads/$evil")" = "$tip" ]
  printf '%s\0' pr create "--head=$evil" --base=main '--title=--web @everyone $(touch ran)' --body-file=- | cmp - argv
  grep -qx '    second `line`' body
  grep -qxF -- "- Verdict: \`approved\`" body
  grep -qxF -- "- Approved commit: \`$tip\`" body
  # The proof in it is the bundle.
  sed -n '/^```json$/,/^```$/p' body | sed '1d;$d' >bundle
  task-dispatch verify --bundle bundle --allowed-signers state/keys/allowed_signers -C work "$tip"
  [ ! -e ran ]
  [ ! -e work/ran ]
  [ "$(git -C work rev-parse main)" = "$main" ]
  [ "$(state_of T-2026-011)" = done ]
  # The push is not forced, and its failure is reported.
  FORGE_STATUS=4 run -1 --separate-stderr "${land[@]}" --pr 11
  [[ $stderr == *"gh pr ended with 4"* ]]
  git -C up.git update-ref refs/heads/agent/04 "$(git -C up.git commit-tree -m other "$tip^{tree}")"
  rm argv
  run -1 --separate-stderr "${land[@]}" --pr 4
  [[ $stderr == *"git push ended with 1"* ]]
  [ ! -e argv ]
  git -C work remote remove origin
  run -64 --separate-stderr "${land[@]}" --pr 5
  [[ $stderr == *"has no remote origin"* ]]
}

@test "--pr with a remote of GitLab: one JSON object for the API" {
  forge glab
  git init -q --bare -b main gitlab.git
  git -C work remote add up "$PWD/gitlab.git"
  git -C work config remote.pushDefault up
  "${land[@]}" --pr 5
  [ "$(tr '\0' ' ' <argv)" = "api projects/:fullpath/merge_requests --method POST --header Content-Type: application/json --input - " ]
  jq -e '.source_branch == "agent/05" and .target_branch == "main" and .title == "work of 05" and
    (.description | contains("Verdict: `approved`") and contains("amp-bundle-1"))' body
  # What is missing is noticed before the push.
  mkdir few
  for p in sh cat tr git jq; do ln -s "$(command -v "$p")" few/; done
  run -69 --separate-stderr env PATH="$PWD/few" "$(command -v task-dispatch)" land -s state --pr 6
  [[ $stderr == *"glab is not installed"*"T-2026-006: no pull request was opened"* ]]
  run -1 git -C gitlab.git rev-parse -q --verify refs/heads/agent/06
  AMP_AGENT=ann run -77 "${land[@]}" --pr 5
  AMP_AGENT=ann run -77 "${land[@]}" --all
}

@test "options that exclude each other" {
  for args in "--all 1" "--all --no-ff" "--all --check" "--all --pr" "--follow 1" "--pr --check 1" "--merged check 1" "--all --note"; do
    # shellcheck disable=SC2086
    run -64 "${land[@]}" $args
  done
}

# Three tasks, of which the third conflicts, in a loop that lands; the lander is killed once.
@test "the loop lands each task when it is approved, and ends when what it sent back has landed too" {
  rm -rf state
  echo '{"land": {"auto": true, "check": "sleep 0.2; test -e file"}}' >amp.json
  export AMP_STATE=$PWD/state AMP_CONFIG=$PWD/amp.json
  for n in 01 04 03; do
    task-dispatch new --id "T-2026-0$n" -C "$top/work" --branch "loop/$n" --description "work of $n" --criterion "a file says so"
  done
  task-dispatch loop -x ./executor -y ./reviewer 2>err &
  loop=$!
  lander() { pgrep -P "$loop" -f -- "land --all --follow"; }
  wait_until 10 lander
  kill -9 "$(lander)"
  wait "$loop"
  grep -q "the lander: .* was killed" err
  grep -q "T-2026-003 does not land: .*sent back" err
  run -1 grep -q branch_violation err
  [ "$(states | cut -d' ' -f1 | sort | uniq -c | tr -s ' ')" = " 3 landed" ]
  task-dispatch verify -q -C work main
  # The same as a script.
  task-dispatch loop -x ./executor -y ./reviewer --print >script
  grep -q '^task-dispatch land --all --follow &$' script
  grep -q '^task-dispatch land --all || status=$?$' script
}

@test "a loop whose last landing fails does not end with 0" {
  rm -rf state
  cp -as "$AMP_BUILD/libexec/amp" libexec
  rm libexec/git-worker
  # It hangs for the landings beside the loop, and ends early for the last one.
  cat >libexec/git-worker <<A
#!/bin/bash
case \$(tr '\\0' ' ' <"/proc/\$PPID/cmdline") in
*' land '*--follow*) exec sleep 60 ;;
*' land '*) exit 1 ;;
esac
exec "$AMP_BUILD/libexec/amp/git-worker" "\$@"
A
  chmod +x libexec/git-worker
  export AMP_STATE=$PWD/state AMP_LIBEXEC=$PWD/libexec
  task-dispatch new --id T-2026-001 -C "$top/work" --branch loop/1 --description work --criterion "a file says so"
  ends 75 task-dispatch loop -x ./executor -y ./reviewer --land 2>err
  grep -q 'git-worker ended early' err
  [ "$(states)" = "done T-2026-001" ]
  unset AMP_LIBEXEC
  task-dispatch loop -x ./executor -y ./reviewer --land
  [ "$(states)" = "landed T-2026-001" ]
}
