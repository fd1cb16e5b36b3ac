# run and review confine the agent's command by default: what it sees and reaches, where its commits
# go, and what the tools say about it. The escape suite tries the walls one by one.
# plain: confine.bats and executor.bats run the same code
# walls

setup() {
  load ../lib
  load ../agents
  need jq git
  unset AMP_CONFINE
  workplace
}

# walls LEVEL: skips the test on a machine that cannot enforce a level.
walls() {
  "$AMP_BUILD/libexec/amp/confine" --probe >probe
  case $1 in
  full) jq -e '.namespaces == true' probe >/dev/null || skip "no namespaces here: $(cat probe)" ;;
  esac
  jq -e '.landlock > 0 and .seccomp == true' probe >/dev/null || skip "no Landlock or seccomp here: $(cat probe)"
}

# without_namespaces COMMAND...: in a user namespace in which no further one can be made.
without_namespaces() {
  unshare -r sh -c 'echo 0 >/proc/sys/user/max_user_namespaces && exec "$@"' sh "$@"
}

# The attempt's directory.
attempt() {
  find "$STATE"/run/T-2026-001 -mindepth 1 -maxdepth 1 -type d ! -name 'kept-*'
}

@test "a confined agent commits, and its branch and files are taken over" {
  walls full
  agent work <<'EOS'
echo one >a
git add a
git commit -qm "by the agent"
git log --format=%s >"$AMP_RESULT.log"
echo two >b
EOS
  dispatch | run_agent --exec ./work
  got out.ndjson '.type == "task_result" and .payload.completion_status == "complete"
    and .payload.diff_summary.files_changed == ["a", "b"]
    and (.payload.work_log | map(.action) == ["confinement", "taken_over", "run_agent"])
    and (.payload.work_log[0].detail | fromjson | .level == "full" and .demand == "require" and .not_enforced == [])'
  [ "$(git -C "$REPO" log --format='%an %s' feat/x | head -2)" = "$(printf 'executor Write hello\nexecutor by the agent')" ]
  [ "$(cat "$(attempt)"/result.json.log)" = "$(printf 'by the agent\na file\nstart')" ]
  git -C "$REPO" fsck --strict --no-dangling
  # Nothing is left of its git directory.
  [ ! -e "$(attempt)/git" ]
  amp-validate <out.ndjson >valid.ndjson
  cmp out.ndjson valid.ndjson
  # The record of the attempt says it too.
  grep -h '"START"\|"start"' "$STATE"/log/*.ndjson | grep -q 'confinement: {\\"level\\":\\"full\\"'
}

@test "it has no state directory, no repository, no other worktree, no keys, no other processes" {
  walls full
  mkdir -p "$HOME/.ssh" keys
  echo secret | tee "$HOME/.ssh/id" keys/k "$REPO/.git/hooks/pre-commit" >/dev/null
  git -C "$REPO" config user.token secret
  git -C "$REPO" worktree add -q other 2>/dev/null
  agent look <<EOS
for f in "$STATE/log" "$STATE/amp.json" "$STATE/keys" "$REPO/.git/config" "$REPO/.git/hooks/pre-commit" "$REPO/.git/HEAD" \\
  "$REPO/.git/refs" "$PWD/other" "$PWD/keys/k" "$HOME/.ssh/id" /proc/$$/environ; do
  ! cat "\$f" 2>/dev/null && ! ls -A "\$f" 2>/dev/null | grep -q . || echo "sees \$f"
done
[ -z "\${AMP_STATE+x}" ] || echo "has AMP_STATE"
env | grep -E '^(SSH_|DBUS|XDG|AMP_CONFINE=)' && echo "has more of the environment"
git config --get user.token && echo "sees the configuration"
git rev-parse -q --verify main && echo "sees main"
git for-each-ref --format='%(refname)'
touch "$REPO/.git/objects/x" 2>/dev/null && echo "writes objects"
echo x >x
EOS
  SSH_AUTH_SOCK=/x dispatch | run_agent --exec ./look
  [ "$(cat "$(attempt)/stdout")" = refs/heads/feat/x ]
  got out.ndjson '.payload.completion_status? == "complete"'
}

@test "what it puts into its git directory is not run by the tools, and other refs are not taken" {
  walls full
  agent plant <<'EOS'
git=$(git rev-parse --absolute-git-dir)
printf '#!/bin/sh\ntouch /tmp/ran "%s/ran"\n' "$AMP_WORKTREE" >/tmp/spy
chmod +x /tmp/spy
mkdir -p "$git/hooks"
for hook in pre-commit post-commit reference-transaction post-checkout post-index-change; do cp /tmp/spy "$git/hooks/$hook"; done
rm -f "$AMP_WORKTREE/ran"
echo x >x
git add x
git -c core.hooksPath=/dev/null commit -qm x
git config core.fsmonitor "touch $AMP_WORKTREE/ran"
git config filter.x.clean "touch $AMP_WORKTREE/ran; cat"
git config core.hooksPath "$git/hooks"
git config diff.external "touch $AMP_WORKTREE/ran"
git config include.path /dev/zero
git update-ref refs/heads/main HEAD 2>/dev/null || printf '%s\n' "$(cat "$git/refs/heads/feat/x")" >"$git/refs/heads/main"
rm -f "$AMP_WORKTREE/ran"
echo y >y
EOS
  before=$(git -C "$REPO" rev-parse main)
  dispatch | run_agent --exec ./plant
  got out.ndjson '.payload.completion_status? == "complete" and .payload.diff_summary.files_changed == ["x", "y"]'
  [ "$(git -C "$REPO" rev-parse main)" = "$before" ]
  [ "$(git -C "$REPO" for-each-ref --format='%(refname)' refs/heads)" = "$(printf 'refs/heads/feat/x\nrefs/heads/main')" ]
  [ -z "$(find . -name ran)" ]
}

@test "what cannot be taken over fails the result with its code, and the branch stays" {
  walls full
  agent evil <<'EOS'
blob=$(echo x | git hash-object -w --stdin)
tree=$({ printf '100644 .git\0'; printf "$(sed 's/../\\x&/g' <<<"$blob")"; } | git hash-object -t tree -w --literally --stdin)
git update-ref refs/heads/feat/x "$(git commit-tree -p HEAD -m evil "$tree")"
EOS
  dispatch | run_agent --exec ./evil
  got out.ndjson '.payload.completion_status? == "failed" and (.payload.blockers[0] | startswith("quarantine_refused: not taken over"))'
  grep -q 'quarantine_refused: .*: not taken over: the tree [0-9a-f]* has the name ".git"' err
  [ "$(git -C "$REPO" rev-parse feat/x)" = "$(git -C "$REPO" rev-parse main)" ]
  # It stays for people to look at.
  [ -e "$(attempt)/git/HEAD" ]
}

@test "an agent that leaves its branch or a merge has not done the task" {
  walls full
  agent leaves <<'EOS'
git checkout -q -b elsewhere
echo x >x
EOS
  dispatch | run_agent --exec ./leaves
  got out.ndjson '.payload.completion_status? == "failed" and (.payload.blockers[0] | test("left the branch feat/x"))'
  rm -rf "$STATE"
  agent merges <<'EOS'
git rev-parse HEAD >"$(git rev-parse --git-dir)/MERGE_HEAD"
echo x >x
EOS
  dispatch | run_agent --exec ./merges
  got out.ndjson '.payload.completion_status? == "failed" and (.payload.blockers[0] | test("worktree_unfinished"))'
}

@test "a killed attempt's commits are kept, and the next attempt begins anew" {
  walls full
  agent dies <<'EOS'
[ "$(ls)" = file.txt ] || exit 1
echo x >x
git add x
git commit -qm lost
kill -9 $$
EOS
  dispatch | run_agent --retries 1 --exec ./dies
  got out.ndjson '.payload.completion_status? == "failed"'
  [ "$(git -C "$REPO" log -1 --format=%s "$(git -C "$REPO" for-each-ref --format='%(refname)' refs/amp/kept | head -1)")" = lost ]
}

@test "a reviewer is confined too: it judges, and its fixes are committed" {
  walls full
  agent work <<'EOS'
echo teh >x
EOS
  dispatch | run_agent --exec ./work
  cp out.ndjson result.ndjson
  agent judge <<'EOS'
[ -z "${AMP_STATE+x}" ] || exit 9
git show --stat --format=%s HEAD >"$AMP_RESULT.log"
echo the >x
git add x
echo '{"decision":"approved_with_fix","confidence":1,"criteria_results":[{"criterion":"it works","passed":true,"evidence":"x"},{"criterion":"tests pass","passed":true,"evidence":"x"}],"direct_fixes":[{"file":"x","change_type":"typo","diff_lines":2}]}' >"$AMP_RESULT"
EOS
  cp result.ndjson out.ndjson
  review >request.ndjson
  task-dispatch review --state "$STATE" --pause 10ms --exec ./judge <request.ndjson >verdict.ndjson 2>err
  got verdict.ndjson '.type == "review_verdict" and .payload.decision == "approved_with_fix"'
  [ "$(git -C "$REPO" show feat/x:x)" = the ]
}

@test "confined, a person may move main meanwhile: it is noted and not escalated" {
  walls full
  mkfifo up
  agent waits <<'EOS'
echo '{"type":"heartbeat","id":"up"}' >"$AMP_CONTROL"
until [ -e "${AMP_CONTROL%/*}/go" ]; do sleep 0.05; done
echo x >x
EOS
  dispatch >in.ndjson
  run_agent --exec ./waits <in.ndjson &
  pid=$!
  wait_until 20 eval '[ -e "$(attempt)"/answer-up.json ]'
  git -C "$REPO" commit -q --allow-empty -m "by a person"
  touch "$(attempt)/go"
  wait $pid
  got_no out.ndjson '.type == "escalation"'
  grep -q 'refs/heads/main moved.*the agent was confined' err
}

@test "the policy grants paths, variables and limits; another option overrides its network" {
  walls full
  mkdir data
  echo given >data/file
  printf '{"read":["%s/data/**","%s/data"],"environment":["MINE"],"network":"DENY_ALL"}\n' "$PWD" "$PWD" >policy.json
  agent reads <<EOS
cat "$PWD/data/file" >x
echo "\$MINE \${OTHER-none}" >>x
touch "$PWD/data/new" 2>/dev/null && echo wrote >>x
:
EOS
  dispatch >in.ndjson
  MINE=1 OTHER=2 run_agent --policy policy.json --exec ./reads <in.ndjson
  [ "$(git -C "$REPO" show feat/x:x)" = "$(printf 'given\n1 none')" ]
  echo '{"raed":[]}' >policy.json
  run -78 --separate-stderr task-dispatch run --state "$STATE" --policy policy.json --exec ./reads <in.ndjson
  [[ $stderr == *bad_policy* || $stderr == *raed* ]]
}

@test "level landlock: GIT_DIR names the private directory, and the rest holds" {
  walls landlock
  without_namespaces true 2>/dev/null || skip "user namespaces cannot be limited here"
  agent look <<EOS
echo "\${GIT_DIR##*/} \$GIT_WORK_TREE" >x
cat "$STATE/log/000001.ndjson" "$REPO/.git/config" 2>/dev/null && echo seen >>x
git add x && git commit -qm "by the agent"
EOS
  dispatch >in.ndjson
  run -77 --separate-stderr without_namespaces task-dispatch run --state "$STATE" --exec ./look <in.ndjson
  [[ $stderr == *confinement_unavailable* || $stderr == *"--best-effort"* ]]
  without_namespaces task-dispatch run --state "$STATE" --pause 10ms --best-effort --exec ./look <in.ndjson >out.ndjson 2>err
  grep -q 'not enforced' err
  got out.ndjson '.payload.completion_status? == "complete"
    and (.payload.work_log[0].detail | fromjson | .level == "landlock" and .demand == "best-effort" and (.not_enforced | length) > 0)'
  [ "$(git -C "$REPO" show feat/x:x)" = "git $REPO.worktrees/executor" ]
}

@test "the demand: options before AMP_CONFINE, one of them, and off is said" {
  agent work <<'EOS'
echo "${AMP_STATE-none}" >x
EOS
  dispatch >in.ndjson
  AMP_CONFINE=require run_agent --unconfined --exec ./work <in.ndjson
  grep -q 'not confined' err
  [ "$(git -C "$REPO" show feat/x:x)" = "$STATE" ]
  run -64 --separate-stderr task-dispatch run --state "$STATE" --unconfined --require --exec ./work <in.ndjson
  [[ $stderr == *"exclude each other"* ]]
  AMP_CONFINE=maybe run -64 --separate-stderr task-dispatch run --state "$STATE" --exec ./work <in.ndjson
  [[ $stderr == *"AMP_CONFINE"* ]]
  run -64 task-dispatch run --state "$STATE" --network SOME --exec ./work <in.ndjson
}

@test "level landlock: an agent that replaces its worktree's .git gets nothing taken over" {
  walls landlock
  without_namespaces true 2>/dev/null || skip "user namespaces cannot be limited here"
  agent plants <<'EOS'
echo x >x
git add x && git commit -qm x
unset GIT_DIR GIT_WORK_TREE
rm .git && git init -q . && git config core.fsmonitor "touch $PWD/ran" && git config core.worktree / || exit 3
mkdir -p .git/hooks
printf '#!/bin/sh\ntouch "%s/ran"\n' "$PWD" | tee .git/hooks/pre-commit >.git/hooks/post-commit
chmod +x .git/hooks/*commit
EOS
  dispatch >in.ndjson
  without_namespaces task-dispatch run --state "$STATE" --pause 10ms --best-effort --exec ./plants <in.ndjson >out.ndjson 2>err
  got out.ndjson '.payload.completion_status? == "failed" and (.payload.blockers[0] | startswith("worktree_unknown"))'
  [ "$(git -C "$REPO" rev-parse feat/x)" = "$(git -C "$REPO" rev-parse main)" ]
  [ -z "$(find . -name ran)" ]
}

@test "the limits of amp.json hold for what is taken over" {
  walls full
  agent large <<'EOS'
head -c 5000 /dev/zero >x
git add x && git commit -qm x
EOS
  echo '{"quarantine":{"object_bytes":4999}}' >amp.json
  dispatch | run_agent --config amp.json --exec ./large
  got out.ndjson '.payload.completion_status? == "failed" and (.payload.blockers[0] | startswith("quarantine_limit"))'
  echo '{"quarantine":{"object_byte":4999}}' >amp.json
  run -78 task-dispatch run --state "$STATE" --config amp.json --exec ./large </dev/null
}

@test "EGRESS_RESTRICTED: the agent's way out is a gate, and the state directory has its records" {
  walls full
  agent ask <<'EOS'
proxy=${HTTPS_PROXY#http://}
exec 3<>"/dev/tcp/${proxy%:*}/${proxy#*:}"
printf 'CONNECT evil.example:443 HTTP/1.1\r\n\r\n' >&3
head -n 1 <&3 >x
EOS
  echo '{"network":"EGRESS_RESTRICTED","hosts":["api.example.com:443"]}' >policy.json
  dispatch | run_agent --policy policy.json --exec ./ask
  got out.ndjson '.payload.completion_status? == "complete"
    and (.payload.work_log[0].detail | fromjson | .network == "EGRESS_RESTRICTED")'
  [[ "$(git -C "$REPO" show feat/x:x)" == "HTTP/1.1 403 "* ]]
  jq -e '.decision == "refused" and .code == "host_refused" and .host == "evil.example" and .client == "executor"' \
    "$STATE/egress.ndjson"
}

@test "FULL_ACCESS is said" {
  walls full
  agent work <<<'echo one >a'
  dispatch | run_agent --network FULL_ACCESS --exec ./work
  grep -q 'FULL_ACCESS' err
}

@test "level none: best effort runs, says so, and the trip-wire counts the agent" {
  WITHOUT=$AMP_BUILD/tests/fixture/without
  [ -x "$WITHOUT" ] || make_same "${WITHOUT#"$AMP_TOP"/}"
  native "the program that takes Landlock away"
  agent evil <<'EOS'
echo "${AMP_STATE-none}" >x
git update-ref refs/heads/main "$(git commit-tree -p main -m m 'main^{tree}')" || :
EOS
  dispatch >in.ndjson
  run -77 --separate-stderr "$WITHOUT" landlock namespaces -- task-dispatch run --state "$STATE" --exec ./evil <in.ndjson
  "$WITHOUT" landlock namespaces -- task-dispatch run --state "$STATE" --pause 10ms --best-effort --exec ./evil <in.ndjson >out.ndjson 2>err
  grep -q 'not enforced: .*Landlock' err
  got out.ndjson '.type == "task_result" and (.payload.work_log[0].detail | fromjson | .level == "none" and .demand == "best-effort")'
  got out.ndjson '.type == "escalation" and .payload.escalation_type == "branch_violation"'
  [ "$(git -C "$REPO" show feat/x:x)" = none ]
}

@test "the post-create command has the walls of the agent, runs once in each worktree, and its failure is the result's" {
  walls full
  printf 'prepared\n.env\n' >"$REPO/.gitignore"
  echo .env >"$REPO/.worktreeinclude"
  git -C "$REPO" add -A
  git -C "$REPO" commit -qm ignore
  echo A=1 >"$REPO/.env"
  agent look <<'EOS'
[ "$(cat .env prepared)" = "$(printf 'A=1\nonce')" ] && echo x >>x
EOS
  cat >prepare <<EOS
echo once >>prepared
! cat "$STATE"/log/* "$STATE"/keys/* "$REPO/file.txt" "$REPO/.git/config" 2>/dev/null && ! touch "$REPO/x" 2>/dev/null
[ -z "\${AMP_STATE+x}" ]
! echo gitdir: /x >.git
EOS
  { dispatch; dispatch '.msg_id += "0" | .payload.description = "more"'; } |
    run_agent --include --post-create "$(cat prepare)" --exec ./look
  [ "$(jq -c 'select(.type == "task_result") | .payload.completion_status' out.ndjson | sort | uniq -c | tr -s ' ')" = ' 2 "complete"' ]
  rm -rf "$STATE"
  dispatch '.payload.branch = "feat/y"' | run_agent --post-create 'exit 3' --exec ./look
  got out.ndjson '.payload.completion_status? == "failed" and (.payload.blockers[0] | startswith("post_create_failed: the post-create command ended with status 3"))'
  # Without namespaces, too.
  rm -rf "$STATE"
  dispatch '.payload.branch = "feat/z"' | without_namespaces task-dispatch run --state "$STATE" --best-effort --include \
    --post-create "$(sed '$d' prepare)" --exec ./look >out.ndjson 2>err
  got out.ndjson '.payload.completion_status? == "complete"'
  [ -z "$(find "$STATE/run" -name 'amp-confine-*')" ]
}

# killed_run: an attempt that commits, and whose worker is killed with -9 then.
killed_run() {
  agent work <<EOS
$1
git commit -qm "before the kill"
echo '{"type":"heartbeat","id":"up"}' >"\$AMP_CONTROL"
sleep 60
EOS
  dispatch >in.ndjson
  task-dispatch run --state "$STATE" --exec ./work <in.ndjson >out.ndjson 2>err &
  wait_until 20 eval '[ -e "$(attempt)"/answer-up.json ]'
  kill -9 $!
  wait $! || :
}
# The refs of kept commits; the files of the worktree are kept under others.
kept() { git -C "$REPO" for-each-ref --format='%(refname) %(contents:subject)' refs/amp/kept | grep 'before the kill$' || :; }

@test "kill -9 of run: what the agent had committed is checked and kept, and the next run says where" {
  walls full
  killed_run 'echo one >x; git add x'
  [ -z "$(kept)" ]
  [ "$(ls "$STATE/run/.unfinished" | wc -l)" -eq 1 ]
  killed=$(ls "$STATE/run/.unfinished")
  # While the agent is at work, repair leaves it alone.
  task-dispatch run --state "$STATE" --exec sleep 60 <in.ndjson >out.ndjson 2>err &
  pid=$!
  wait_until 20 eval '[ -n "$(kept)" ]'
  ref=$(kept | cut -d' ' -f1)
  grep -q "T-2026-001: an attempt of executor was killed; its commits are kept as $ref" err
  # The record of the killed attempt goes after its ref is there; then comes the one of this attempt.
  wait_until 20 eval '[[ "$(ls "$STATE/run/.unfinished")" != @(|*"$killed"*) ]]'
  worktree-bind repair -C "$REPO" -s "$STATE"
  [ "$(ls "$STATE/run/.unfinished" | wc -l)" -eq 1 ]
  kill -9 $pid
  wait $pid || :
  jq -se 'any(.[]; .code == "attempt_kept")' "$STATE/error.ndjson"
  # The branch is where the work began; the second attempt had nothing.
  [ "$(git -C "$REPO" rev-parse feat/x)" = "$(git -C "$REPO" rev-parse main)" ]
  worktree-bind repair -C "$REPO" -s "$STATE"
  [ -z "$(ls "$STATE/run/.unfinished")" ]
  [ "$(kept | wc -l)" -eq 1 ]
  [ -z "$(find "$STATE/run" -name objects)" ]
  git -C "$REPO" fsck --strict --no-dangling
}

@test "kill -9 of run: worktree-bind repair keeps the commits, and refuses what is not valid" {
  walls full
  killed_run 'echo one >x; git add x'
  worktree-bind repair -C "$REPO" -s "$STATE" 2>err
  grep -q "are kept as $(kept | cut -d' ' -f1) " err
  rm -rf "$STATE"
  killed_run 'blob=$(echo x | git hash-object -w --stdin)
tree=$({ printf "100644 .git\\0"; printf "$(sed "s/../\\\\x&/g" <<<"$blob")"; } | git hash-object -t tree -w --literally --stdin)
git update-ref refs/heads/feat/x "$(git commit-tree -p HEAD -m evil "$tree")"; git reset -q --soft HEAD; echo y >y; git add y'
  run -1 --separate-stderr worktree-bind repair -C "$REPO" -s "$STATE"
  [[ $stderr == *"are not kept: quarantine_refused: "*".git"*"; they are in $(attempt)/git"* ]]
  [ "$(kept | wc -l)" -eq 1 ]
  [ -e "$(attempt)/git/HEAD" ]
  # It is said once.
  worktree-bind repair -C "$REPO" -s "$STATE"
  [ -z "$(ls "$STATE/run/.unfinished")" ]
}

@test "what an agent keeps for its next attempt is its own, and bounded" {
  walls full
  agent keeper <<'EOS'
ls -A "$AMP_KEPT_DIR" >>kept.txt
echo "$AMP_CONFINED" >>kept.txt
mkdir -p "$AMP_KEPT_DIR/sub"
echo mine >"$AMP_KEPT"
ln -sfn /etc "$AMP_KEPT_DIR/sub/link"
[ "$AMP_AGENT" != many ] || seq -f "$AMP_KEPT_DIR/sub/%.0f" 20001 | xargs touch
[ "$AMP_AGENT" != many ] || chmod 0 "$AMP_KEPT_DIR/sub"
EOS
  dispatch | run_agent --exec ./keeper
  dispatch | run_agent --exec ./keeper
  [ "$(git -C "$REPO" show feat/x:kept.txt)" = "$(printf 'full\nkept\nsub\nfull')" ]
  git -C "$REPO" branch -D feat/x
  dispatch | run_agent --agent many --exec ./keeper
  [ "$(git -C "$REPO" show feat/x:kept.txt)" = full ]
  grep -q "kept-many-S1 had more than 256 MiB or 20000 files: it was emptied" err
  [ -z "$(ls -A "$STATE/run/T-2026-001/kept-many-S1")" ]
  [ -e "$STATE/run/T-2026-001/kept-executor-S1/kept" ]
  [ -e /etc/passwd ]
}
