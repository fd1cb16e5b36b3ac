# The proof that work was approved: verify asks for the complete chain, and a bundle carries it.

load ../lib

setup() {
  need ssh-keygen jq
  unset AMP_IDENTITY
  cd "$BATS_TEST_TMPDIR" || return
  top=$BATS_FILE_TMPDIR
  [ -d "$top/state" ] || begin
  S=$top/state
  commit=$(git -C "$top/work" rev-parse agent/x)
}

# One task through the loop, and one with a high risk that an operator approves.
begin() {
  cd "$top" || return
  repo work
  echo start >work/file
  git -C work add -A
  git -C work commit -qm "a file"
  cat >executor <<'A'
#!/bin/sh
echo "$AMP_TASK_ID" >"done-$AMP_SUBTASK_ID"
A
  cat >reviewer <<'A'
#!/bin/sh
jq '{decision: "approved", confidence: 1,
     criteria_results: [.[] | {criterion: (if type == "object" then .criterion else . end), passed: true, evidence: "seen"}]}' \
  "$AMP_CRITERIA" >"$AMP_RESULT.new"
mv "$AMP_RESULT.new" "$AMP_RESULT"
A
  chmod +x executor reviewer
  echo '{"task_id":"*","decision":"resume","note":"fine"}' >answer
  {
    task-dispatch new --print --id "T-$(date -u +%Y)-001" -s state -C work --branch agent/x --description "secret word" --criterion "a file says so"
    task-dispatch new --print --id "T-$(date -u +%Y)-002" -s state -C work --branch agent/y --description "risky" --criterion "a file says so" --risk high
  } >tasks
  EXECUTOR=$PWD/executor REVIEWER=$PWD/reviewer AMP_ANSWER=$PWD/answer \
    timeout 60 "$AMP_TOP/examples/qa-loop/loop.sh" "$PWD/state" <tasks >loop.out 2>loop.err
  cd "$BATS_TEST_TMPDIR" || return
}

@test "verify says who produced and who approved a commit" {
  run -0 --separate-stderr task-dispatch verify -s "$S" -C "$top/work" "$commit"
  [[ "$stderr" == *"result of executor/executor, verdict of reviewer/reviewer"* ]]
  run -0 --separate-stderr task-dispatch verify -s "$S" -C "$top/work" agent/y
  [[ "$stderr" == *", decision of operator/"* ]]
}

@test "verify --json prints one object per commit, by the state and by a bundle" {
  cp "$S/keys/allowed_signers" signers
  task-dispatch export -s "$S" -C "$top/work" -o bundle "$commit"
  task-dispatch verify --json -s "$S" -C "$top/work" "$commit" 2>err >lines
  [ ! -s err ]
  ends 1 task-dispatch verify --json -s "$S" -C "$top/work" main 2>err >>lines
  [ ! -s err ]
  task-dispatch verify --json --bundle bundle --allowed-signers signers >>lines
  task-dispatch verify --json --bundle bundle --allowed-signers signers -C "$top/work" "$commit" >>lines
  ends 1 task-dispatch verify --json --bundle bundle --allowed-signers signers -C "$top/work" main >>lines
  task-dispatch verify --json --bundle bundle --self-signed -C "$top/work" "$commit" >>lines 2>err
  grep -q 'does not show that the work was approved' err
  echo "coordinator $(ssh-keygen -q -t ed25519 -N '' -C '' -f stranger && cat stranger.pub)" >strangers
  ends 1 task-dispatch verify --json --bundle bundle --allowed-signers strangers >>lines
  amp-validate --schema "$AMP_TOP/schemas/records/verified.json" --formats lines | cmp - lines
  run jq -c '[.approved, .task, .executor, .reviewer, .relied_on, .consistent, (.why // "" | .[:20])]' lines
  [ "${lines[0]}" = '[true,"T-2026-001","executor/executor","reviewer/reviewer",null,null,""]' ]
  [[ "${lines[1]}" = '[false,null,null,null,null,null,"no verdict'* ]]
  [ "${lines[2]}" = '[true,"T-2026-001","executor/executor","reviewer/reviewer","signers",null,""]' ]
  [ "${lines[3]}" = "${lines[2]}" ]
  [ "${lines[4]}" = '[false,null,null,null,"signers",null,"the bundle is about "]' ]
  [ "${lines[5]}" = '[false,"T-2026-001","executor/executor","reviewer/reviewer",null,true,""]' ]
  [[ "${lines[6]}" = '[false,null,null,null,"strangers",null,"'* ]]
}

@test "verify refuses a commit whose chain has no signatures" {
  cp -R "$S" state
  # The keys are others than those that signed: the messages of an attacker who wrote the records.
  rm -r state/keys/{executor,reviewer,coordinator}*
  sed -i '/executor\|reviewer/d' state/keys/allowed_signers
  run -1 --separate-stderr task-dispatch verify -s state -C "$top/work" "$commit"
  [[ "$stderr" == *"unknown_key"* ]]
  run -0 task-dispatch verify --identity off -s state -C "$top/work" "$commit"
}

@test "verify refuses a key that was revoked before it signed" {
  cp -R "$S" state
  key=$(ssh-keygen -lf state/keys/reviewer.reviewer.pub | cut -d' ' -f2)
  echo "$key 2020-01-01T00:00:00.000Z lost" >state/keys/allowed_signers.revoked
  run -1 --separate-stderr task-dispatch verify -s state -C "$top/work" "$commit"
  [[ "$stderr" == *"the verdict: key_revoked"* ]]
}

@test "a bundle is verified without the state directory" {
  task-dispatch export -s "$S" -C "$top/work" -o bundle 1
  task-dispatch export -s "$S" -C "$top/work" -o same T-2026-001
  jq -c .bundle.proofs bundle | cmp - <(jq -c .bundle.proofs same)
  task-dispatch export -s "$S" -C "$top/work" -o bundle "$commit"
  amp-validate --schema "$AMP_TOP/schemas/records/bundle.json" bundle
  cp "$S/keys/allowed_signers" signers
  run -0 --separate-stderr task-dispatch verify --bundle bundle --allowed-signers signers -C "$top/work" "$commit"
  [[ "$stderr" == *"relied on the keys of signers"* ]]
  # Of another commit, and with the keys of others.
  run -1 --separate-stderr task-dispatch verify --bundle bundle --allowed-signers signers -C "$top/work" main
  [[ "$stderr" == *"the bundle is about other commits"* ]]
  ssh-keygen -q -t ed25519 -N '' -C '' -f other
  echo "coordinator $(cat other.pub)" >others
  run -1 --separate-stderr task-dispatch verify --bundle bundle --allowed-signers others
  [[ "$stderr" == *"the bundle: unknown_key"* ]]
  # Its signature is one that OpenSSH accepts.
  sed -E 's/^\{"sig":\{[^}]*\},"bundle":(.*)\}$/\1/' bundle | tr -d '\n' >content
  key=$(sed -n 's/^coordinator [^ ]* //p' signers)
  {
    echo '-----BEGIN SSH SIGNATURE-----'
    {
      string() { printf '%08x' "${#1}" | sed 's/../\\x&/g' | xargs -0 printf; printf '%s' "$1"; }
      blob=$(cut -d' ' -f2 <<<"$key" | base64 -d | od -An -v -tx1 | tr -d ' \n')
      sig=$(jq -r .sig.value bundle | base64 -d | od -An -v -tx1 | tr -d ' \n')
      hex() { printf '%s' "$1" | sed 's/../\\x&/g' | xargs -0 printf; }
      printf 'SSHSIG\0\0\0\1'
      hex "$(printf '%08x' $((${#blob} / 2)))$blob"
      string amp-bundle
      printf '\0\0\0\0'
      string sha512
      hex "$(printf '%08x' $((4 + 11 + 4 + 64)))"
      string ssh-ed25519
      hex "00000040$sig"
    } | base64 -w 70
    echo '-----END SSH SIGNATURE-----'
  } >content.sig
  run -0 ssh-keygen -Y verify -f signers -I coordinator -n amp-bundle -s content.sig <content
}

@test "a changed bundle is refused" {
  task-dispatch export -s "$S" -C "$top/work" "$commit" >bundle
  sed 's/secret word/Secret word/' bundle >changed
  ! cmp -s bundle changed
  run -1 --separate-stderr task-dispatch verify --bundle changed --self-signed
  [[ "$stderr" == *"the bundle: bad_signature"* ]]
  jq -c '.sig.time = "2020-01-01T00:00:00.000Z"' bundle >changed
  run -65 --separate-stderr task-dispatch verify --bundle changed --self-signed
  echo '{"sig":{},"bundle":{}}' >changed
  run -65 --separate-stderr task-dispatch verify --bundle changed --self-signed
  [[ "$stderr" == *"not a bundle"* ]]
}

# resigned FILTER: the bundle, with content that jq changes and the coordinator signs again.
resigned() {
  jq -c "$1" <bundle | jq -cj .bundle >content
  rm -f content.sig
  ssh-keygen -q -Y sign -n amp-bundle -f "$S/keys/coordinator" content
  printf '{"sig":%s,"bundle":%s}\n' \
    "$(jq -c --arg v "$(sed '/^-/d' content.sig | base64 -d | tail -c 64 | base64 -w 0)" '.sig.value = $v | .sig' bundle)" \
    "$(cat content)"
}

@test "a bundle with the keys of its maker is refused without trusted keys" {
  task-dispatch export -s "$S" -C "$top/work" "$commit" >bundle
  for how in "--bundle bundle" "--bundle bundle -s nowhere"; do
    # shellcheck disable=SC2086
    run -78 --separate-stderr task-dispatch verify $how -C "$top/work" "$commit"
    [[ "$stderr" == *"no trusted keys: give --allowed-signers FILE"* ]]
    [ -z "$output" ]
  done
  run -78 task-dispatch verify --quiet --bundle - -C "$top/work" "$commit" <bundle
  # Consistent, and nothing more; for those who ask for that.
  run -0 --separate-stderr task-dispatch verify --bundle bundle --self-signed -C "$top/work" "$commit"
  [[ "$stderr" == *"has a consistent proof"*"does not show that the work was approved"* ]]
  [[ "$stderr" != *"is approved"* ]]
  run -64 task-dispatch verify --bundle bundle --self-signed --allowed-signers "$S/keys/allowed_signers"
  run -64 task-dispatch verify -s "$S" --self-signed "$commit"
  # amp.json may name the file.
  echo "{\"identity\":{\"allowed_signers\":\"$S/keys/allowed_signers\"}}" >amp.json
  run -0 task-dispatch verify --config amp.json --bundle bundle -C "$top/work" "$commit"
}

@test "the approved commit counts, not its tree, nor the name in the result" {
  cp "$S/keys/allowed_signers" signers
  task-dispatch export -s "$S" -C "$top/work" "$commit" >bundle
  resigned . >same
  run -0 task-dispatch verify --bundle same --allowed-signers signers -C "$top/work" "$commit"
  resigned ".bundle.proofs[0].approved = \"$(git -C "$top/work" rev-parse main)\"" >other
  run -1 --separate-stderr task-dispatch verify --bundle other --allowed-signers signers -C "$top/work" "$commit"
  [[ "$stderr" == *"the bundle is about other commits"* ]]
  same=$(git -C "$top/work" commit-tree -m again -p "$commit" "$commit^{tree}")
  run -1 --separate-stderr task-dispatch verify --bundle bundle --allowed-signers signers -C "$top/work" "$same"
  [[ "$stderr" == *"the bundle is about other commits"* ]]
}

@test "a bundle is attached to its commit as a note" {
  cp "$S/keys/allowed_signers" signers
  git clone -q "$top/work" clone
  run -1 --separate-stderr task-dispatch verify --note --allowed-signers signers -C clone origin/agent/x
  [[ "$stderr" == *"has no note"* ]]
  task-dispatch export --note -s "$S" -C "$top/work" "$commit"
  git -C clone fetch -q origin refs/notes/amp:refs/notes/amp
  run -0 --separate-stderr task-dispatch verify --note --allowed-signers signers -C clone origin/agent/x
  [[ "$stderr" == *"relied on the keys of signers"* ]]
  run -78 task-dispatch verify --note -C clone origin/agent/x
}

@test "a server's hook verifies the note with the keys of the server's owner" {
  cp "$S/keys/allowed_signers" signers
  git clone -q --bare "$top/work" server
  git -C server update-ref -d refs/notes/amp
  # The example of docs/guard.md.
  sed -n '/^A server without the state directory/,/^## /p' "$AMP_TOP/docs/guard.md" | sed -n 's/^    //p' |
    sed "s|/etc/amp/allowed_signers|$PWD/signers|" >server/hooks/update
  grep -q 'land --check --note --allowed-signers' server/hooks/update
  chmod +x server/hooks/update
  task-dispatch export --note -s "$S" -C "$top/work" "$commit"
  run -1 git -C "$top/work" push -q "$PWD/server" agent/x:main
  git -C "$top/work" push -q "$PWD/server" refs/notes/amp
  run -1 git -C "$top/work" push -q "$PWD/server" agent/y:main
  git -C "$top/work" push -q "$PWD/server" agent/x:main
  # The keys of the bundle's maker do not count.
  git -C server update-ref refs/heads/main "$commit~1"
  ssh-keygen -q -t ed25519 -N '' -C '' -f other
  echo "coordinator $(cat other.pub)" >signers
  run -1 git -C "$top/work" push -q "$PWD/server" agent/x:main
}

@test "all subtasks of a task, and nothing of work that was not approved" {
  run -1 --separate-stderr task-dispatch export -s "$S" -C "$top/work" main
  [[ "$stderr" == *"is not approved"* ]]
  run -0 task-dispatch export -s "$S" -C "$top/work" T-2026-002
  [ "$(jq '.bundle.proofs | length' <<<"$output")" -eq 1 ]
  [ "$(jq '.bundle.proofs[0].needs_decision' <<<"$output")" = true ]
  run -1 --separate-stderr task-dispatch export -s "$S" -C "$top/work" T-2099-001
  run -64 --separate-stderr task-dispatch export -s "$S" --identity off T-2026-002
}

@test "a bundle carries the votes of several operators, and verify counts them" {
  need_tool hitl-prompt
  repo voted
  echo start >voted/file
  git -C voted add -A
  git -C voted commit -qm "a file"
  ssh-keygen -q -t ed25519 -N '' -C ben -f ben
  echo "operator/ben $(cut -d' ' -f1,2 ben.pub)" >trusted
  chmod 600 trusted
  echo "{\"identity\":{\"allowed_signers\":\"$PWD/trusted\"},\"hitl\":{\"approvals\":[{\"risk\":\"high\",\"need\":2}]}}" >amp.json
  export AMP_CONFIG=$PWD/amp.json
  task-dispatch new --print -s votes -C voted --branch agent/z --description risky --criterion "a file says so" --risk high >tasks
  EXECUTOR=$top/executor REVIEWER=$top/reviewer AMP_ANSWER=$top/answer \
    timeout 60 "$AMP_TOP/examples/qa-loop/loop.sh" "$PWD/votes" <tasks >loop.out 2>loop.err 3>&- &
  wait_until 30 bash -c "grep -qs '\"event\":\"vote\"' votes/log/*.ndjson"
  hitl-prompt answer -s votes --key ben "$(hitl-prompt list -s votes --json | jq -r .id)" resume fine
  wait $!
  c=$(git -C voted rev-parse agent/z)
  run -0 --separate-stderr task-dispatch verify -s votes -C voted "$c"
  [[ "$stderr" == *", decision of operator/ben"* ]]
  task-dispatch export -s votes -C voted -o bundle "$c"
  amp-validate --schema "$AMP_TOP/schemas/records/bundle.json" bundle
  [ "$(jq '.bundle.proofs[0].needs_votes' bundle)" = 2 ]
  [ "$(jq -r '.bundle.proofs[0].votes' bundle | jq -r .sig.key | sort -u | wc -l)" = 2 ]
  cat trusted votes/keys/allowed_signers >both
  chmod 600 both
  run -0 task-dispatch verify --bundle bundle --allowed-signers both -C voted "$c"
  # Without the key of the first voter the decision is still signed by an operator, but by one of two.
  grep -v "^operator/$(id -un) " both >one
  chmod 600 one
  run -1 --separate-stderr task-dispatch verify --bundle bundle --allowed-signers one -C voted "$c"
  [[ "$stderr" == *"1 of the 2 operators who had to agree signed it"* ]]
}
