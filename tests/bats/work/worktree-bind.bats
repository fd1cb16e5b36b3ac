#!/usr/bin/env bats
# Binding agents to worktrees, by verbs and by messages.
# walls

load ../lib
load ../messages
load ../worktrees

setup() {
  need_tool worktree-bind
  cd "$BATS_TEST_TMPDIR" || return 1
  repo work
  cd work || return 1
  git branch feat
}

@test "bind makes a linked worktree on a new branch, with the agent's marker" {
  run -0 --separate-stderr worktree-bind --json bind bob -b task/x --base main
  [ "$(jq -r .state <<<"$output")" = BOUND_HOME ]
  [ "$(jq -r .worktree_id <<<"$output")" = "$PWD.worktrees/bob" ]
  [ "$(git -C ../work.worktrees/bob symbolic-ref HEAD)" = refs/heads/task/x ]
  [ "$(head -n 1 .git/worktrees/bob/amp-agent)" = bob ]
  git worktree list | grep -q 'work.worktrees/bob'
  [ -z "$(git -C ../work.worktrees/bob status --porcelain)" ]
}

@test "bind without a branch is detached at the base" {
  worktree-bind bind rev --base feat
  run -1 git -C ../work.worktrees/rev symbolic-ref -q HEAD
  [ "$(git -C ../work.worktrees/rev rev-parse HEAD)" = "$(git rev-parse feat)" ]
}

@test "binding twice is the same, binding elsewhere is refused" {
  worktree-bind bind bob -b task/x
  worktree-bind bind bob -b task/x
  worktree-bind bind bob
  run -77 worktree-bind bind bob --path ../elsewhere
  [[ $output == *"is already bound to"* ]]
  [ ! -e ../elsewhere ]
  [ "$(git worktree list | wc -l)" -eq 2 ]
}

@test "a worktree that a person made is taken over, another agent's is locked" {
  git worktree add -q -b task/y ../mine
  worktree-bind bind bob --path ../mine -b task/y
  [ "$(head -n 1 .git/worktrees/mine/amp-agent)" = bob ]
  run -1 worktree-bind bind eve --path ../mine -b task/y
  [ "$(worktree-bind --json status eve | jq -r .reason)" = worktree_locked ]
}

@test "failures are recorded with their reasons" {
  run -1 worktree-bind bind a -b task/a --base no-such-commit
  run -77 worktree-bind bind b -b main
  git worktree add -q ../taken feat
  run -1 worktree-bind bind d -b feat
  mkdir ../full
  touch ../full/x
  run -73 worktree-bind bind e -b task/e --path ../full
  run -0 worktree-bind --json list
  reason() { jq -r --arg a "$1" 'select(.agent_id == $a) | .reason // .state' <<<"$output"; }
  [ "$(reason a)" = worktree_not_found ]
  [ "$(reason b)" = permission_denied ]
  [ "$(reason d)" = worktree_locked ]
  [ "$(reason e)" = filesystem_error ]
  [ -z "$(git branch --list 'task/*')" ]
  [ -e ../full/x ]
}

@test "after a failure: unbind clears it, a new bind mends it" {
  run -77 worktree-bind bind bob -b main
  run -1 worktree-bind status bob
  [[ $output == *BIND_FAILED* ]]
  worktree-bind unbind bob
  run -1 worktree-bind status bob
  [[ $output == *UNBOUND* ]]
  run -77 worktree-bind bind bob -b main
  worktree-bind bind bob -b task/x
  worktree-bind status bob
  # Another branch is another bind: its tries are its own.
  grep -q '"event":"RETRY_RESET"' .git/amp/log/*
}

@test "unbind keeps the worktree for people; --remove takes it away, with changes only by --force" {
  worktree-bind bind bob -b task/x
  AMP_AGENT=executor run -77 --separate-stderr worktree-bind unbind bob
  [[ $stderr == *'only people and the agent itself may'* ]]
  [ -e .git/worktrees/bob/amp-agent ]
  AMP_AGENT=bob worktree-bind unbind bob
  [ -d ../work.worktrees/bob ]
  [ ! -e .git/worktrees/bob/amp-agent ]
  worktree-bind bind bob -b task/x
  touch ../work.worktrees/bob/new
  run -1 worktree-bind unbind bob --remove
  [ -e ../work.worktrees/bob/new ]
  worktree-bind status bob
  worktree-bind unbind bob --remove --force
  [ ! -e ../work.worktrees/bob ]
  git rev-parse -q --verify task/x
  [ -z "$(git worktree prune -n -v)" ]
  # Deeper than the tools have descriptors for.
  worktree-bind bind bob -b task/x
  (cd ../work.worktrees/bob && perl -e 'for (1 .. 1200) { mkdir "d"; chdir "d" or die }')
  (ulimit -n 200 && worktree-bind unbind bob --remove --force)
  [ ! -e ../work.worktrees/bob ]
}

@test "a directory whose .git does not lead back to the repository is never removed" {
  worktree-bind bind bob -b task/x
  wt=$PWD.worktrees/bob
  echo mine >"$wt/precious"
  # Another repository stands there now.
  mv "$wt/.git" ../kept
  git init -q "$wt"
  run -1 worktree-bind unbind bob --remove --force
  [[ $output == *"its .git does not belong to"* ]]
  # A symbolic link, even to what leads back, is not a file.
  rm -r "$wt/.git"
  ln -s ../../kept "$wt/.git"
  run -1 worktree-bind unbind bob --remove --force
  # None at all: git's record of it goes, the files stay.
  rm "$wt/.git"
  run -0 worktree-bind unbind bob --remove --force
  [ "$(cat "$wt/precious")" = mine ]
  [ ! -e .git/worktrees/bob ]
}

@test "an entry that names another directory removes nothing there" {
  worktree-bind bind bob -b task/x
  mkdir ../victim
  echo mine >../victim/precious
  echo "$BATS_TEST_TMPDIR/victim/.git" >.git/worktrees/bob/gitdir
  worktree-bind unbind bob --remove --force
  # Half made, as a crash leaves it, and at the place of the next worktree.
  mkdir -p ../work.worktrees/eve
  echo mine >../work.worktrees/eve/precious
  echo "$PWD.worktrees/eve/.git" >.git/worktrees/bob/gitdir
  echo "amp: being made" >.git/worktrees/bob/locked
  run -73 worktree-bind bind eve -b task/e
  [ "$(cat ../victim/precious)" = mine ]
  [ "$(cat ../work.worktrees/eve/precious)" = mine ]
}

@test "a worktree outside REPO.worktrees is not removed" {
  git worktree add -q -b task/y ../mine
  worktree-bind bind bob --path ../mine -b task/y
  run -1 worktree-bind unbind bob --remove --force
  [[ $output == *"only worktrees inside $PWD.worktrees are"* ]]
  [ -e ../mine/.git ]
}

@test "a copied repository leaves the worktrees of the original alone" {
  worktree-bind bind bob -b task/x
  echo mine >../work.worktrees/bob/precious
  cp -a ../work ../copy
  run -1 worktree-bind -C ../copy unbind bob --remove --force
  [[ $output == *"not of this repository"* ]]
  worktree-bind -C ../copy unbind bob
  [ -e .git/worktrees/bob/amp-agent ]
  # The copy's own entry still names the original's directory.
  worktree-bind -C ../copy bind bob -b task/x
  [ -e ../copy.worktrees/bob/.git ]
  worktree-bind -C ../copy unbind bob --remove
  [ "$(cat ../work.worktrees/bob/precious)" = mine ]
}

@test "a worktree that somebody deleted is made again" {
  worktree-bind bind bob -b task/x
  rm -r ../work.worktrees/bob
  worktree-bind bind bob -b task/x
  [ -d ../work.worktrees/bob ]
}

@test "a bind that is killed at any moment can be repeated" {
  for i in 1 2 3 4 5 6 7 8 9 10; do
    worktree-bind bind "a$i" -b "task/$i" >/dev/null 2>&1 &
    pid=$!
    # No clock: the moments are those of the work itself.
    case $((i % 5)) in
    0) ;;
    1) wait_until 5 test -d .git/worktrees || true ;;
    2) wait_until 5 test -e ".git/refs/heads/task/$i" || true ;;
    3) wait_until 5 test -d ".git/worktrees/a$i" || true ;;
    4) wait_until 5 test -e "../work.worktrees/a$i/.git" || true ;;
    esac
    kill -9 $pid 2>/dev/null || [ $? -eq 1 ]
    wait $pid || [ $? -eq 137 ]
    worktree-bind bind "a$i" -b "task/$i"
    [ -z "$(git -C "../work.worktrees/a$i" status --porcelain)" ]
  done
  [ "$(worktree-bind list | grep -c BOUND_HOME)" -eq 10 ]
  [ "$(git worktree list | wc -l)" -eq 11 ]
  [ -z "$(git worktree prune -n -v)" ]
}

@test "what the records answer is answered without git-worker" {
  mkdir "$BATS_TEST_TMPDIR/none"
  worktree-bind status bob || [ $? -eq 1 ]
  for verb in list reservations; do
    run -0 env AMP_LIBEXEC="$BATS_TEST_TMPDIR/none" worktree-bind $verb
    [ -z "$output" ]
  done
  worktree-bind bind bob -b task/x
  cd ../work.worktrees/bob
  [ "$(AMP_LIBEXEC="$BATS_TEST_TMPDIR/none" worktree-bind path bob)" = "$PWD" ]
  [[ $(AMP_LIBEXEC="$BATS_TEST_TMPDIR/none" worktree-bind status bob) == bob*BOUND_HOME* ]]
  run -69 env AMP_LIBEXEC="$BATS_TEST_TMPDIR/none" worktree-bind list
  [[ $output == *git-worker* ]]
}

@test "names of agents cannot leave the directory" {
  run -64 worktree-bind bind ../evil
  run -64 worktree-bind bind .hidden
  run -64 worktree-bind bind
}

@test "outside a repository it says so" {
  run -65 worktree-bind -C "$BATS_TEST_TMPDIR" list
  [[ $output == *"not a git repository"* ]]
}

@test "the state lives in the common git directory, or where --state says" {
  worktree-bind bind bob -b task/x
  [ -d .git/amp/log ]
  cd ../work.worktrees/bob
  [[ $(worktree-bind list) == bob* ]]
  [ -z "$(worktree-bind --state "$BATS_TEST_TMPDIR/state" list)" ]
  [ -d "$BATS_TEST_TMPDIR/state/log" ]
}

@test "messages: bind, status, unbind, each with one state" {
  {
    control 1 BIND bob '"worktree_id":"wt","branch":"task/x"'
    control 2 STATUS bob
    control 3 UNBIND bob
  } | worktree-bind >out
  [ "$(states out)" = "BOUND_HOME BOUND_HOME UNBOUND " ]
  [ "$(answers out | jq -r .ref_message_id | tail -1)" = 6ae58b74-4e19-4b2f-9e7a-1a1a1fd2d003 ]
}

@test "messages: each is acknowledged, also in the ledger; another repository is not found" {
  need_tool amp-ack amp-route
  control 1 BIND bob '"branch":"task/x"' >bind
  control 2 BIND ann "\"repo_id\":\"$PWD\",\"branch\":\"task/a\"" >same
  control 3 BIND eve '"repo_id":"other","worktree_id":"wt","branch":"task/e"' >other
  cat bind same other | amp-route -q --state .git/amp -r 'type=* => file:in' >/dev/null
  run -1 --separate-stderr worktree-bind <in
  amp-validate - <<<"$output" >valid
  jq -r '.to + " " + .msg.producer_id + " " + (.msg.payload | .ack_for_message_id[-1:] + " " + .ack_stage + " " + .result.state + " " + (.error_code // "-"))' valid >got
  diff got - <<'END'
scheduler bob 1 FULFILLED BOUND_HOME -
scheduler ann 2 FULFILLED BOUND_HOME -
scheduler eve 3 FAILED BIND_FAILED WORKTREE_NOT_FOUND
END
  [ ! -e ../work.worktrees/wt ]
  run -1 worktree-bind --json status eve
  [ "$(jq -r '.state + " " + .reason' <<<"$output")" = "BIND_FAILED worktree_not_found" ]
  run -0 amp-ack sweep --state .git/amp --now 2099-01-01T00:00:00Z
  [[ $output != *ACK_TIMEOUT* ]]
  [ "$(amp-ack status --state .git/amp --all --json | jq -r '.msg_id[-1:] + " " + .state' | sort | paste -sd,)" = "1 FULFILLED,2 FULFILLED,3 FAILED" ]
  # A refused message may be forged: it ends nothing.
  control 4 BIND max >in
  amp-route -q --state .git/amp -r 'type=* => stdout' <in >/dev/null
  run -1 worktree-bind < <(control 4 SWITCH_APPROVE bob)
  [ "$(amp-ack status --state .git/amp --all --json | jq -r 'select(.msg_id[-1:] == "4") | .state')" = SENT ]
}

@test "messages: a switch is asked for, approved for a time, and revoked" {
  spare other
  {
    control 1 BIND bob '"branch":"task/x"'
    control 2 SWITCH_REQUEST bob '"target_worktree_id":"other"'
    control 3 SWITCH_APPROVE bob '"target_worktree_id":"other","ttl_ms":900000'
    control 4 SWITCH_REVOKE bob
    control 5 SWITCH_REQUEST bob '"target_worktree_id":"other"'
    control 6 SWITCH_REJECT bob
  } | worktree-bind --approver scheduler >all
  answers all >out
  [ "$(states all)" = \
    "BOUND_HOME SWITCH_PENDING BOUND_NON_HOME BOUND_HOME SWITCH_PENDING BOUND_HOME " ]
  [ "$(sed -n 3p out | jq -r .worktree_id)" = "$PWD.worktrees/other" ]
}

@test "messages: an unbind ends a switch that waits or that was approved" {
  spare other
  {
    control 1 BIND bob '"branch":"task/x"'
    control 2 SWITCH_REQUEST bob '"target_worktree_id":"other"'
    control 3 UNBIND bob
    control 4 BIND bob '"branch":"task/x"'
    control 5 SWITCH_REQUEST bob '"target_worktree_id":"other"'
    control 6 SWITCH_APPROVE bob '"ttl_ms":900000'
    control 7 UNBIND bob
  } | worktree-bind --approver scheduler >out
  [ "$(states out)" = "BOUND_HOME SWITCH_PENDING UNBOUND BOUND_HOME SWITCH_PENDING BOUND_NON_HOME UNBOUND " ]
}

@test "messages: a switch ends by itself" {
  spare other
  {
    control 1 BIND bob '"branch":"task/x"'
    control 2 SWITCH_REQUEST bob '"target_worktree_id":"other"'
    control 3 SWITCH_APPROVE bob '"ttl_ms":1'
  } | worktree-bind --approver scheduler >/dev/null
  home() { worktree-bind status bob | grep -q BOUND_HOME; }
  wait_until 30 home
}

@test "messages: a switch that requires a person waits for the person's decision" {
  spare other
  {
    control 1 BIND bob '"branch":"task/x"'
    control 2 SWITCH_REQUEST bob '"target_worktree_id":"other","requires_hitl":true'
  } | worktree-bind >out
  sed -n 3p out >question
  amp-validate <question >/dev/null
  jq -e --arg to "$PWD.worktrees/other" '.to == "admin" and .msg.message_type == "HITL_INVOCATION" and
    (.msg.payload | .reason_type == "WORKTREE_OVERRIDE" and .context.agent_id == "bob" and .subject.worktree_id == $to)' question
  id=$(jq -r .msg.payload.invocation_id question)
  # The same request again: the same question.
  control 2 SWITCH_REQUEST bob '"target_worktree_id":"other","requires_hitl":true' | worktree-bind >again
  [ "$(jq -r '.msg.payload.invocation_id // empty' again)" = "$id" ]
  # Nobody else's word counts, nor another question's answer, nor bob's own.
  {
    control 3 SWITCH_APPROVE bob
    decision 4 "$id-x" approve
    decision 5 "$id" approve bob
    decision 6 "$id" defer
  } >in
  run -77 --separate-stderr worktree-bind --approver scheduler <in
  [ "$(answers <<<"$output" | jq -r '.error_code // .state' | tr '\n' ' ')" = \
    "permission_denied validation_error permission_denied SWITCH_PENDING " ]
  decision 7 "$id" approve | worktree-bind >out
  [ "$(states out)" = "BOUND_NON_HOME " ]
  answers out >bound
  jq -e '(.until | fromdateiso8601) - (.since | fromdateiso8601) | . >= 899 and . <= 901' <(sed 's/\.[0-9]*Z/Z/g' bound)
  # Denied, the agent stays at home; the answer to an old question has no effect.
  {
    control 8 SWITCH_REVOKE bob
    control 9 SWITCH_REQUEST bob '"target_worktree_id":"other","requires_hitl":true'
  } | worktree-bind >out
  run -1 worktree-bind < <(decision 10 "$id" approve)
  id=$(jq -r '.msg.payload.invocation_id // empty' out)
  decision 11 "$id" deny | worktree-bind >out
  [ "$(states out)" = "BOUND_HOME " ]
}

@test "messages: a person answers through hitl-prompt" {
  need_tool hitl-prompt
  spare other
  {
    control 1 BIND bob '"branch":"task/x"'
    control 2 SWITCH_REQUEST bob '"target_worktree_id":"other","requires_hitl":true'
  } | worktree-bind >out
  echo "approve for the fix" >answers
  hitl-prompt <out --state ../asked --answer answers >answer
  worktree-bind <answer >out
  [ "$(states out)" = "BOUND_NON_HOME " ]
}

@test "messages: an agent does not approve its own switch" {
  spare other
  {
    control 1 BIND scheduler '"branch":"task/x"'
    control 2 SWITCH_REQUEST scheduler '"target_worktree_id":"other"'
  } | worktree-bind >/dev/null
  run -77 --separate-stderr worktree-bind --approver scheduler < <(control 3 SWITCH_APPROVE scheduler)
  [ "$(answers <<<"$output" | jq -r '.state + " " + .error_code')" = "SWITCH_PENDING permission_denied" ]
  # A process of an agent, whatever producer it names.
  {
    control 4 BIND bob '"branch":"task/y"'
    control 5 SWITCH_REQUEST bob '"target_worktree_id":"other"'
  } | worktree-bind >/dev/null
  AMP_AGENT=bob run -77 --separate-stderr worktree-bind --approver scheduler < <(control 6 SWITCH_APPROVE bob)
  # Nor does it change the binding of another agent; it may look.
  AMP_AGENT=bob run -77 --separate-stderr worktree-bind < <(control 8 UNBIND scheduler)
  [ "$(answers <<<"$output" | jq -r .error_code)" = permission_denied ]
  AMP_AGENT=bob worktree-bind < <(control 9 STATUS scheduler) >out
  [ "$(states out)" = "SWITCH_PENDING " ]
  worktree-bind --approver scheduler < <(control 7 SWITCH_APPROVE bob) >out
  [ "$(states out)" = "BOUND_NON_HOME " ]
}

@test "messages: a worktree that another agent holds is no target, and none to bind to" {
  spare free
  worktree-bind bind other -b task/o
  {
    control 1 BIND bob '"branch":"task/x"'
    control 2 BIND eve '"branch":"task/e"'
    control 3 SWITCH_REQUEST eve '"target_worktree_id":"free"'
    control 4 SWITCH_REQUEST bob '"target_worktree_id":"free"'
    control 5 SWITCH_APPROVE eve
  } | worktree-bind --approver scheduler >out
  {
    control 6 SWITCH_APPROVE bob
    control 7 SWITCH_REJECT bob
    control 8 SWITCH_REQUEST bob '"target_worktree_id":"other"'
    control 9 SWITCH_REQUEST bob '"target_worktree_id":"free"'
    control 10 BIND ann '"worktree_id":"free","branch":"free"'
  } >in
  run -1 --separate-stderr worktree-bind --approver scheduler <in
  [ "$(answers <<<"$output" | jq -r '.error_code // .state' | tr '\n' ' ')" = \
    "worktree_locked BOUND_HOME worktree_locked worktree_locked worktree_locked " ]
  [ "$(answers <<<"$output" | tail -n 1 | jq -r '.state + " " + .reason')" = "BIND_FAILED worktree_locked" ]
  [[ $stderr == *"held by eve"* ]]
  [[ $stderr == *"held by other"* ]]
}

@test "amp-ack watch and sweep end switches, and report a bind that stays failed, once" {
  need_tool amp-ack
  spare other
  {
    control 1 BIND bob '"branch":"task/x"'
    control 2 SWITCH_REQUEST bob '"target_worktree_id":"other"'
    control 3 SWITCH_APPROVE bob '"ttl_ms":1'
  } | worktree-bind --approver scheduler >/dev/null
  amp-ack watch --until-idle --state .git/amp >said
  [ ! -s said ]
  grep -q '"event":"TTL_EXPIRED"' .git/amp/log/*.ndjson
  run -77 worktree-bind bind ann -b main
  amp-ack sweep --state .git/amp --now 2099-01-01T00:00:00Z >said
  [ "$(wc -l <said)" -eq 1 ]
  amp-validate <said >/dev/null
  jq -e '.to == "admin" and .msg.message_type == "NOTIFICATION" and (.msg.payload |
    .event == "bind_failed" and .agent_id == "ann" and .reason == "permission_denied")' said
  amp-ack sweep --state .git/amp --now 2099-01-02T00:00:00Z >said
  [ ! -s said ]
  run -1 worktree-bind status ann
  [[ $output == *BIND_FAILED* ]]
}

@test "messages: what leads out of the directory for worktrees is refused, the stream goes on" {
  ln -s /etc ../link
  {
    control 1 BIND a '"worktree_id":"../../etc/x"'
    control 2 BIND b '"worktree_id":"/tmp/somewhere"'
    control 3 BIND c '"worktree_id":"."'
    control 4 BIND d '"worktree_id":"ok","branch":"task/d"'
  } >in
  run -77 --separate-stderr worktree-bind <in
  [ "$(answers <<<"$output" | jq -r '.error_code // "-"' | tr '\n' ' ')" = \
    "permission_denied permission_denied permission_denied - " ]
}

@test "messages: a redelivery is answered again without effect, other contents are refused" {
  control 1 BIND bob '"branch":"task/x"' >in
  worktree-bind <in >/dev/null
  worktree-bind <in >out
  [ "$(states out)" = "BOUND_HOME " ]
  [ "$(grep -c '"event":"BIND"' .git/amp/log/*.ndjson)" -eq 1 ]
  control 1 UNBIND bob >in
  run -1 --separate-stderr worktree-bind <in
  [ "$(answers <<<"$output" | jq -r .error_code)" = duplicate_msg_id ]
}

@test "messages: nonsense is reported and the stream goes on" {
  {
    echo '{"no json'
    control 1 FLY bob
    control 2 SWITCH_REJECT bob
    control 3 STATUS bob
  } >in
  run -1 --separate-stderr worktree-bind <in
  [ "$(answers <<<"$output" | jq -r '.error_code // "-"' | tr '\n' ' ')" = \
    "illegal_transition - " ]
  # What is no message of the protocol is reported as any bad line is.
  [[ $stderr == *"payload.operation: validation_error"* ]]
}

@test "the machine is printable" {
  worktree-bind --machine=ndjson | jq -c '[.from, .to]' | grep -q '"UNBOUND","BOUND_HOME"'
  worktree-bind --machine=dot | grep -q '^digraph'
  worktree-bind --machine | grep -q 'SW4RM §16.2'
}

@test "the machine's table is SW4RM's, row by row; what practice adds is marked" {
  worktree-bind --machine=ndjson |
    jq -r 'select(.extra | not) | "\(.from) \(.to) \(.event)"' | sort >got
  sort >want <<'TABLE'
UNBOUND BOUND_HOME BIND
UNBOUND BIND_FAILED BIND_ERROR
BIND_FAILED UNBOUND RETRY_RESET
BIND_FAILED UNBOUND UNBIND
BIND_FAILED BOUND_HOME BIND
BOUND_HOME SWITCH_PENDING SWITCH_REQUEST
SWITCH_PENDING BOUND_NON_HOME SWITCH_APPROVE
SWITCH_PENDING BOUND_HOME SWITCH_REJECT
BOUND_NON_HOME BOUND_HOME TTL_EXPIRED
BOUND_NON_HOME BOUND_HOME SWITCH_REVOKE
BOUND_HOME UNBOUND UNBIND
BOUND_NON_HOME UNBOUND UNBIND
TABLE
  diff want got
}

@test "a path that is not UTF-8 is refused by its name, and nothing is made at another one" {
  local bad=$BATS_TEST_TMPDIR/$'w\xff' option
  cd "$BATS_TEST_TMPDIR"
  repo plain
  git -C plain worktree add -q -b y "$bad"
  git init -q "${bad}r"
  git -C "${bad}r" commit -q --allow-empty -m s
  ls -d w* plain* >before
  for option in "bind bob -C plain -b t/x --path ${bad}x" "bind bob -C ${bad}r" "hooks install -C ${bad}r" \
    "exec -C $bad -- true" "exec -C plain --best-effort --read ${bad}r -- true"; do
    run --separate-stderr worktree-bind $option
    [ "$status" -eq 65 ]
    [[ $stderr == *': byte '*' of the path, 0xFF, is not UTF-8, which records and messages need: rename it'* ]]
  done
  ls -d w* plain* | diff before -
  [ "$(worktree-bind status -C plain bob | cut -f 2)" = UNBOUND ]
}

@test "list has changes, commits, age and task; path prints the directory" {
  worktree-bind bind bob -b task/T-2026-001
  worktree-bind bind ann
  echo x >../work.worktrees/bob/new.c
  git -C ../work.worktrees/bob commit -q --allow-empty -m own
  git commit -q --allow-empty -m elsewhere
  message task_dispatch ".task_id = \"T-2026-001\" | .msg_id = \"task_dispatch-T-2026-001-1\" | .payload.repo = \"$PWD\" | .payload.branch = \"task/T-2026-001\" |
    .from = \"admin\" | .to = \"coordinator\"" | task-dispatch coordinate --state .git/amp >/dev/null 2>&1 || [ $? -eq 75 ] # a task is open
  run -0 worktree-bind list
  [[ "${lines[0]}" == $'ann\tBOUND_HOME\t'*$'\t\tclean\t+0 -1\t'*$'s\t-' ]]
  [[ "${lines[1]}" == $'bob\tBOUND_HOME\t'*$'\ttask/T-2026-001\t1 file\t+1 -1\t'*$'s\tT-2026-001' ]]
  worktree-bind list --json >listed
  amp-validate -S "$AMP_TOP/schemas/records/binding.json" --formats listed | cmp - listed
  [ "$(jq -r 'select(.agent_id == "bob") | "\(.dirty) \(.changes) \(.ahead) \(.behind) \(.task_id)"' listed)" = "true 1 1 1 T-2026-001" ]
  run -0 script -qec 'worktree-bind list' /dev/null
  [[ "${lines[0]}" == 'agent  state       branch'*'changes  commits  age  task'*worktree* ]]
  [ "$(cd "$(worktree-bind path bob)" && pwd -P)" = "$(realpath ../work.worktrees/bob)" ]
  run -1 worktree-bind path zoe
  [[ "$output" == *"zoe is not bound"* ]]
  rm -r ../work.worktrees/ann
  run -1 worktree-bind path ann
  [[ "$output" == *"worktree-bind repair"* ]]
  run -0 worktree-bind list
  [[ "${lines[0]}" == *$'\t-1'* || "${lines[0]}" == *$'\t? '* ]]
}
