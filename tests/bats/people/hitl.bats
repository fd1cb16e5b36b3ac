#!/usr/bin/env bats
# hitl-prompt: escalations to a person, decisions back.

setup() {
  load ../lib
  load ../agents
  load ../messages
  load ../events
  need jq
  need_tool hitl-prompt
  cd "$BATS_TEST_TMPDIR"
  STATE=$BATS_TEST_TMPDIR/state
  mkdir -p "$XDG_CONFIG_HOME/amp"
  echo '{"hitl":{"allow_operator":true}}' >"$XDG_CONFIG_HOME/amp/amp.json"
}

teardown() {
  [ -z "${TMUX_SOCKET-}" ] || tmux -S "$TMUX_SOCKET" kill-server 2>/dev/null || true
}

ask() { hitl-prompt --state "$STATE" --operator ada "$@"; }
no_decision() { jq -es 'all(.type != "decision")' <<<"$1" >/dev/null; }
# state_of ID: the last state of an escalation in the log.
state_of() { cat "$STATE"/log/*.ndjson | jq -r --arg k "escalation.$1" 'select(.key == $k).to' | tail -1; }
suspended() { cat "$STATE"/log/*.ndjson | jq -es 'any(.[]; .key == "task.T-2026-001" and .to == "suspended")' >/dev/null; }

@test "an escalation with a NUL in a text is refused, and the next one is asked" {
  escalation | sed 's/"description":"/&a\\u0000b/' >in.ndjson
  escalation >>in.ndjson
  id=$(tail -n 1 in.ndjson | jq -r .msg_id)
  echo resume >answers
  run -1 --separate-stderr ask --answer answers <in.ndjson
  [[ $stderr == *"bad_value: \\u0000 cannot be part of a text here"* ]]
  [[ $output == *"\"decision\""*"\"ref_msg_id\":\"$id\""* ]]
  [ "$(grep -c '"event":"arrive"' "$STATE/log/000001.ndjson")" -eq 1 ]
}

@test "a plain word from a file decides; the record says who, when and why" {
  escalation >in.ndjson
  id=$(jq -r .msg_id in.ndjson)
  echo "resume multiply first" >answers
  ask --answer answers <in.ndjson >out.ndjson
  got out.ndjson '.type == "decision" and .decision == "resume" and .operator == "ada"
    and .note == "multiply first" and .task_id == "T-2026-001" and .timestamp != null'
  [ "$(jq -r .ref_msg_id out.ndjson)" = "$id" ]
  [ "$(state_of "$id")" = DECIDED ]
  cat "$STATE"/log/*.ndjson | jq -es --arg k "escalation.$id" 'any(.[]; .key == $k and .state.operator == "ada"
    and .state.decision == "resume" and .state.decided_at > 0)' >/dev/null
  amp-validate <out.ndjson | cmp - out.ndjson
}

@test "JSON answers find their escalation by id or by task, in whatever order" {
  escalation '.task_id = "T-2026-007" | .msg_id = "escalation-T-2026-007-1"' >in.ndjson
  escalation '.msg_id = "escalation-T-2026-001-1"' >>in.ndjson
  cat >answers <<'EOS'
# first the second one
{"ref_msg_id":"escalation-T-2026-001-1","decision":"terminate","note":"hopeless","operator":"bob"}
{"task_id":"T-2026-007","decision":"rollback","commit":"abc1234"}
EOS
  ask --answer answers <in.ndjson >out.ndjson
  got out.ndjson '.task_id == "T-2026-001" and .decision == "terminate" and .operator == "bob"'
  got out.ndjson '.task_id == "T-2026-007" and .decision == "rollback" and .commit == "abc1234" and .operator == "ada"'
}

@test "no answer is no decision: exit 1, it stays open and suspended, and is asked again" {
  escalation >in.ndjson
  id=$(jq -r .msg_id in.ndjson)
  : >answers
  run -1 --separate-stderr ask --answer answers <in.ndjson
  # Whoever waits for the decision is told that none comes now.
  jq -es --arg id "$id" 'length == 1 and (.[0] | .type == "nack" and .code == "hitl_unavailable"
    and .ref_msg_id == $id and .retryable)' <<<"$output"
  [[ "$stderr" == *"waits for a decision"* ]]
  [ "$(state_of "$id")" = OPEN ]
  suspended
  echo terminate >answers
  ask --answer answers </dev/null >out.ndjson
  got out.ndjson '.decision == "terminate"'
}

@test "a critical escalation suspends its task when it arrives, an info nobody" {
  escalation >in.ndjson
  : >answers
  run -1 ask --answer answers <in.ndjson
  suspended
  STATE=$BATS_TEST_TMPDIR/state2
  escalation '.payload.severity = "info" | .payload.auto_suspended = false' >in.ndjson
  run -0 ask --answer answers <in.ndjson
  [[ "$output" == *"Three rejections"* ]]
  run -1 suspended
}

@test "an unknown word in the answers is refused with 65" {
  escalation >in.ndjson
  echo "perhaps" >answers
  run -65 --separate-stderr ask --answer answers <in.ndjson
  no_decision "$output"
  [ "$(state_of "$(jq -r .msg_id in.ndjson)")" = OPEN ]
}

@test "a rollback without a commit is refused as missing_commit, as a word and as JSON; the next answer counts" {
  escalation '.msg_id = "escalation-T-2026-001-1"' >in.ndjson
  escalation '.task_id = "T-2026-002" | .msg_id = "escalation-T-2026-002-1"' >>in.ndjson
  printf 'rollback\n' >answers
  run -65 --separate-stderr ask --answer answers <in.ndjson
  no_decision "$output"
  [[ "$stderr" == *"T-2026-001: the answer is refused: missing_commit: rollback needs a commit"* ]]
  [ "$(state_of escalation-T-2026-001-1)" = OPEN ]
  # An empty commit is none, and what follows is taken.
  cat >answers <<'EOS'
{"ref_msg_id":"escalation-T-2026-001-1","decision":"rollback"}
{"task_id":"T-2026-001","decision":"rollback","commit":""}
{"task_id":"T-2026-002","decision":"resume"}
EOS
  run -65 --separate-stderr ask --answer answers </dev/null
  [ "$(grep -c "T-2026-001: the answer is refused: missing_commit" <<<"$stderr")" = 2 ]
  jq -es 'map(select(.type == "decision")) | length == 1 and .[0].task_id == "T-2026-002"' <<<"$output"
  [ "$(state_of escalation-T-2026-001-1)" = OPEN ]
  [ "$(state_of escalation-T-2026-002-1)" = DECIDED ]
}

@test "a rollback without a commit through a FIFO leaves the question open for the next line" {
  mkfifo answers
  escalation >in.ndjson
  ask --answer answers <in.ndjson >out.ndjson 2>err 3>&- &
  pid=$!
  exec 8>answers
  echo "rollback" >&8
  wait_until 30 grep -q "missing_commit" err
  echo "resume as it is" >&8
  wait_until 30 test -s out.ndjson
  exec 8>&-
  wait $pid && status=0 || status=$?
  [ "$status" = 65 ]
  got out.ndjson '.decision == "resume" and .note == "as it is"'
}

@test "answers from a pipe without a name end with it, and a late one counts" {
  escalation >in.ndjson
  run -65 --separate-stderr timeout 60 hitl-prompt --state "$STATE" --operator ada --answer <(echo rollback) <in.ndjson
  no_decision "$output"
  mkfifo go
  { read -r line && echo "$line"; } <go | ask --answer /dev/stdin --in in.ndjson >out.ndjson 3>&- &
  pid=$!
  echo "resume in time" >go
  wait $pid
  got out.ndjson '.decision == "resume" and .note == "in time"'
}

@test "where the state does not know the task, a rollback needs the id of a commit; a commit counts only for a rollback" {
  printf '%s\n' '{"decision":"rollback","commit":"HEAD"}' 'rollback ../main' >answers
  escalation >in.ndjson
  run -65 --separate-stderr ask --answer answers <in.ndjson
  no_decision "$output"
  [ "$(grep -c 'the answer is refused: unknown_revision: the task is not in the state directory, so ".*4 to 64 hex' <<<"$stderr")" = 2 ]
  echo '{"decision":"resume","commit":"no commit"}' >answers
  ask --answer answers </dev/null >out.ndjson
  amp-validate out.ndjson >/dev/null
  got out.ndjson '.decision == "resume" and (has("commit") | not)'
}

# stuck: a task of $REPO whose executor asks for a decision; the coordinator's words in said.ndjson.
stuck() {
  workplace
  task-dispatch new --print --state "$STATE" --repo "$REPO" --base main --branch feat/x --description d --criterion c >new.ndjson
  id=$(jq -r .task_id new.ndjson)
  escalation ".task_id = \"$id\" | .msg_id = \"escalation-$id-1\" | .from = \"executor\"" >asked.ndjson
  cat new.ndjson asked.ndjson | coordinate
}
# coordinate <LINES: one run of the coordinator, which leaves its task open.
coordinate() {
  run -75 --separate-stderr task-dispatch coordinate --state "$STATE"
  printf '%s\n' "$output" >said.ndjson
}

@test "a rollback to a commit that the task's repository does not have is refused; one that it has leaves as its full id" {
  stuck
  git -C "$REPO" branch feat/x
  printf '{"decision":"rollback","commit":"0123456789abcdef"}\n' >answers
  run -65 --separate-stderr ask --answer answers <said.ndjson
  no_decision "$output"
  [[ "$stderr" == *"$id: the answer is refused: unknown_revision: 0123456789abcdef"* ]]
  [ "$(state_of "escalation-$id-1")" = OPEN ]
  echo "rollback main" >answers
  ask --answer answers </dev/null >out.ndjson
  jq -es --arg c "$(git -C "$REPO" rev-parse main)" 'any(.[]; .decision == "rollback" and .commit == $c)' out.ndjson
  coordinate <out.ndjson
  got said.ndjson '.type == "task_dispatch"'
}

@test "the coordinator refuses a decision: the question is open again with the reason, also after a restart" {
  stuck
  # The commit is there, the branch is not.
  echo "rollback main" >answers
  ask --answer answers <said.ndjson >out.ndjson
  [ "$(state_of "escalation-$id-1")" = DECIDED ]
  coordinate <out.ndjson
  [[ "$stderr" == *"$id: decision rollback refused: unknown_revision: "*"feat/x"*"the question is open again"* ]]
  got said.ndjson '.type == "nack" and .code == "unknown_revision"'
  [ "$(state_of "escalation-$id-1")" = OPEN ]
  # The nack itself says nothing new.
  : >answers
  run -1 --separate-stderr ask --answer answers <said.ndjson
  [[ "$stderr" == *"the last answer was refused: unknown_revision: "*"feat/x"* ]]
  [ "$(state_of "escalation-$id-1")" = OPEN ]
  term 'hitl-prompt --state "$STATE" --operator ada </dev/null >out.ndjson'
  wait_until 30 shows "refused      | unknown_revision"
  keys "resume" Enter
  wait_until 30 test -s status
  [ "$(cat status)" = 0 ]
  coordinate <out.ndjson
  got said.ndjson '.type == "task_dispatch"'
}

@test "a decision that is not valid is refused too: the question is open again with the reason" {
  stuck
  ref=escalation-$id-1
  echo "resume" >answers
  # While a coordinator runs: at its start it would take the decision that is recorded.
  cp said.ndjson asked.ndjson
  mkfifo in
  task-dispatch coordinate --state "$STATE" <in >running.ndjson 2>running 3>&- &
  exec 5>in
  echo nothing >&5
  wait_until 10 grep -q '1: ' running
  ask --answer answers <asked.ndjson >out.ndjson
  jq -c 'select(.type == "decision") | .decision = "rollback" | .commit = "no commit"' out.ndjson >bad.ndjson
  cat bad.ndjson >&5
  exec 5>&-
  wait $! || status=$?
  [ "$status" -eq 75 ]
  stderr=$(<running)
  cp running.ndjson said.ndjson
  [[ "$stderr" == *"$id: decision refused: bad_value: invalid decision: bad_value: commit; the question is open again"* ]]
  got said.ndjson ".type == \"nack\" and .ref_msg_id == \"$ref\" and .code == \"bad_value\""
  [ "$(state_of "$ref")" = OPEN ]
  # What names no task, or no escalation that could be referred to, is only reported.
  { jq -c '.task_id = "../x"' bad.ndjson && jq -c '.ref_msg_id += "\u0000x"' bad.ndjson; } | coordinate
  got_no said.ndjson '.type == "nack"'
  jq -c 'select(.type == "decision")' out.ndjson | coordinate
  got said.ndjson '.type == "task_dispatch"'
}

@test "a refusal that comes as a message opens the question once; what is settled all the same stays" {
  escalation '.msg_id = "escalation-T-2026-001-1"' >in.ndjson
  refusal() {
    jq -cn --arg code "$1" --arg time "$2" '{protocol_version: "AMP/1.0", type: "nack", ref_msg_id: "escalation-T-2026-001-1",
      task_id: "T-2026-001", from: "coordinator", failed_stage: "REJECTED", code: $code, message: "so it is", rule: $code,
      retryable: false, timestamp: $time}'
  }
  echo "resume" >answers
  ask --answer answers <in.ndjson >out.ndjson
  : >none
  refusal already_decided 2026-02-26T14:32:07Z | ask --answer none
  [ "$(state_of escalation-T-2026-001-1)" = DECIDED ]
  refusal unknown_ref 2026-02-26T14:32:08Z >nack.ndjson
  run -1 --separate-stderr ask --answer none <nack.ndjson
  [[ "$stderr" == *"the last answer was refused: unknown_ref: so it is"* ]]
  [ "$(state_of escalation-T-2026-001-1)" = OPEN ]
  # Decided again; the nack of the first decision comes again.
  ask --answer answers <nack.ndjson >out.ndjson
  got out.ndjson '.decision == "resume"'
  run -0 ask --answer none <nack.ndjson
  [ "$(state_of escalation-T-2026-001-1)" = DECIDED ]
}

@test "only the operators of the configuration decide" {
  mkdir -m 700 "$STATE"
  echo '{"hitl":{"operators":["carol"],"allow_operator":true}}' >amp.json
  escalation >in.ndjson
  echo resume >answers
  run -77 --separate-stderr ask --config amp.json --answer answers <in.ndjson
  no_decision "$output"
  echo resume >answers
  hitl-prompt --state "$STATE" --operator carol --config amp.json --answer answers </dev/null >out.ndjson
  got out.ndjson '.operator == "carol"'
}

@test "an operator other than the login is named only where the configuration allows it" {
  rm -r "$XDG_CONFIG_HOME"
  login=$(id -un)
  escalation >in.ndjson
  id=$(jq -r .msg_id in.ndjson)
  echo resume >answers
  run -77 --separate-stderr ask --answer answers <in.ndjson
  [ -z "$output" ]
  [[ "$stderr" == *"--operator ada: the login is \"$login\""*hitl.allow_operator* ]]
  [ ! -e "$STATE" ]
  echo '{"decision":"resume","operator":"ada"}' >answers
  run -77 --separate-stderr hitl-prompt --state "$STATE" --answer answers <in.ndjson
  no_decision "$output"
  [[ "$stderr" == *'names the operator "ada", but the login is "'"$login"'"'* ]]
  [ "$(state_of "$id")" = OPEN ]
  echo resume >answers
  hitl-prompt --state "$STATE" --operator "$login" --answer answers </dev/null >out.ndjson
  got out.ndjson ".operator == \"$login\""
}

@test "an agent answers no escalation" {
  escalation >in.ndjson
  echo resume >answers
  for agent in executor ""; do
    AMP_AGENT=$agent run -77 --separate-stderr ask --answer answers <in.ndjson
    [ -z "$output" ]
    [[ "$stderr" == *"only people may answer escalations"*"AMP_AGENT is set"* ]]
  done
  [ ! -e "$STATE" ]
}

@test "the same escalation again is not a second question" {
  escalation >in.ndjson
  printf 'resume one\nresume two\n' >answers
  cat in.ndjson in.ndjson | ask --answer answers >out.ndjson
  [ "$(wc -l <out.ndjson)" = 1 ]
  ask --answer answers <in.ndjson >again.ndjson
  [ ! -s again.ndjson ]
}

@test "answers may come through a FIFO while it waits; --timeout leaves it undecided" {
  mkfifo answers
  escalation >in.ndjson
  ask --answer answers <in.ndjson >out.ndjson 3>&- &
  pid=$!
  wait_until 30 grep -qs OPEN "$STATE"/log/000001.ndjson "$STATE"/log/000000.ndjson
  echo "redispatch with two criteria" >answers
  wait $pid
  got out.ndjson '.decision == "redispatch"'
  escalation '.task_id = "T-2026-002" | .msg_id = "escalation-T-2026-002-1"' >in.ndjson
  run -124 --separate-stderr ask --timeout 200ms --answer answers <in.ndjson
  [ -z "$output" ]
}

@test "messages for others pass through" {
  dispatch '.payload.repo = "/srv/x"' >in.ndjson 2>/dev/null
  : >answers
  ask --answer answers <in.ndjson >out.ndjson
  cmp in.ndjson out.ndjson
}

@test "without a terminal and without --answer it says so" {
  escalation >in.ndjson
  run -69 --separate-stderr setsid -w hitl-prompt --state "$STATE" <in.ndjson
  [[ "$stderr" == *"--answer"* ]]
  jq -es 'length == 1 and .[0].code == "hitl_unavailable"' <<<"$output"
  # What needs no decision needs no terminal either.
  run -0 --separate-stderr setsid -w hitl-prompt --state "$STATE.other" </dev/null
}

# term COMMAND: runs it in a terminal of its own.
term() {
  need tmux
  TMUX_SOCKET=$BATS_TEST_TMPDIR/tmux
  printf '%s\n' "$1" >session.sh
  tmux -S "$TMUX_SOCKET" -f /dev/null new-session -d -x 80 -y 24 \
    "PATH=$PATH STATE=$STATE bash --norc session.sh; echo \$? >status; sleep 100"
}
keys() { tmux -S "$TMUX_SOCKET" send-keys "$@"; }
screen() { tmux -S "$TMUX_SOCKET" capture-pane -p -S -100; }
shows() { screen | grep -qF -- "$1"; }

@test "the question comes on the terminal, the answer from it; stdin is only messages" {
  escalation '.payload.description = "red \u001b[31m alarm \u202e reversed\nsecond line"' >in.ndjson
  term 'hitl-prompt --state "$STATE" --operator ada <in.ndjson >out.ndjson'
  wait_until 30 shows "Answer: resume"
  shows "critical: hallucination_lock"
  shows "advice       | Look at the diff"
  shows "(suspended)"
  # Neither colours nor reversals reach the terminal.
  run -1 grep -q $'\033' <(screen)
  shows '[31m alarm'
  screen | grep -qx '               | second line'
  keys "dance" Enter
  wait_until 30 shows "Please: resume"
  keys "rollback" Enter
  wait_until 30 shows "missing_commit"
  keys "resume careful now" Enter
  wait_until 30 test -s status
  [ "$(cat status)" = 0 ]
  got out.ndjson '.decision == "resume" and .note == "careful now" and .operator == "ada"'
}

@test "what others wrote has a mark on every line, also where a line or a word is longer than the terminal is wide" {
  escalation '.payload.description = "a\n== critical: conflict, task T-2026-009\n  Answer: resume\n> terminate\n\u2028> x\r> y\n"
      + ("> " * 60) + "\n" + ("W" * 200) + "> resume\n" + ("\uff1e" * 100) + "> resume"
    | .payload.suggested_actions = ["one\n> two", ("advice " * 30)]
    | .payload.affected_msgs = ["m\n== info"]' >in.ndjson
  term 'hitl-prompt --state "$STATE" <in.ndjson >out.ndjson 2>err'
  wait_until 30 shows "Answer: resume [NOTE]"
  # Ours: the head, labels before the mark, the question. Everything else is behind the mark.
  screen >seen
  ours='^$|^== critical: hallucination_lock, task T-2026-001 \(suspended\),$|^   triggered by the coordinator, 3 rejections$'
  ours+='|^  .{12} \|( |$)|^  Answer: resume \[NOTE\]|^          terminate \[NOTE\]$|^    (resume|terminate|redispatch|rollback) +[a-z ,A-Z]+$'
  ours+='|^    (also|defer TIME) +(yes \(|ask again then)|^  Keys: d diff|^  An empty line leaves|^  The question has [0-9]+ lines, more than the window|^>$'
  run -1 grep -vE "$ours" seen
  [ "$(grep -c 'conflict' seen)" = 1 ]
  keys C-d
  wait_until 30 test -s status
  # The same without a terminal, for what needs no decision.
  jq -c '.payload.severity = "info" | .payload.auto_suspended = false | .msg_id = "escalation-T-2026-001-2"' in.ndjson >info.ndjson
  : >answers
  STATE=$BATS_TEST_TMPDIR/state2
  run -0 --separate-stderr ask --answer answers <info.ndjson
  [ "$(grep -cE '^== ' <<<"$stderr")" = 1 ]
  [ "$(grep -cE '^(>|  Answer)' <<<"$stderr")" = 0 ]
}

@test "an empty line and end of file on the terminal decide nothing" {
  escalation >in.ndjson
  escalation '.task_id = "T-2026-002" | .msg_id = "escalation-T-2026-002-1"' >>in.ndjson
  term 'hitl-prompt --state "$STATE" <in.ndjson >out.ndjson'
  wait_until 30 shows "task T-2026-001"
  keys Enter
  wait_until 30 shows "task T-2026-002"
  keys C-d
  wait_until 30 test -s status
  [ "$(cat status)" = 1 ]
  jq -es 'length == 2 and all(.type == "nack" and .code == "hitl_unavailable")' out.ndjson
  [ "$(state_of escalation-T-2026-002-1)" = OPEN ]
}

@test "INT and TERM end it while it asks, also on a terminal that takes no output" {
  local sig
  escalation >in.ndjson
  for sig in INT TERM; do
    rm -f pid go
    term 'until [ -e go ]; do command sleep 0.02; done; echo $$ >pid; exec hitl-prompt --state "$STATE" <in.ndjson >out.ndjson'
    touch go
    wait_until 30 shows "Answer: resume"
    kill -$sig "$(cat pid)"
    wait_until 30 gone "$(cat pid)"
    tmux -S "$TMUX_SOCKET" kill-server
    wait_until 30 eval '! tmux -S "$TMUX_SOCKET" list-sessions'
    rm -f pid go
    term 'until [ -e go ]; do command sleep 0.02; done; echo $$ >pid; exec hitl-prompt --state "$STATE" <in.ndjson >out.ndjson'
    keys C-s
    touch go
    wait_until 30 test -s pid
    wait_until 30 eval '[ "$(cat "/proc/$(cat pid)/comm")" = hitl-prompt ]'
    wait_until 30 eval 'grep -q "State:.S" "/proc/$(cat pid)/status"'
    kill -$sig "$(cat pid)"
    wait_until 30 gone "$(cat pid)"
    tmux -S "$TMUX_SOCKET" kill-server
    wait_until 30 eval '! tmux -S "$TMUX_SOCKET" list-sessions'
  done
}

@test "nobody at the terminal: after --timeout it stays undecided, exit 124" {
  escalation >in.ndjson
  term 'hitl-prompt --state "$STATE" --timeout 300ms <in.ndjson >out.ndjson'
  wait_until 30 test -s status
  [ "$(cat status)" = 124 ]
  jq -es 'length == 1 and .[0].type == "nack"' out.ndjson
}

@test "in the background of a terminal it says why it waits, and asks when it is brought forward" {
  escalation >in.ndjson
  term 'set -m; hitl-prompt --state "$STATE" <in.ndjson >out.ndjson 2>err & tail --pid=$$ -n +1 -f err & while [ ! -e go ]; do command sleep 0.1; done; fg %1'
  wait_until 30 grep -q "bring it to the foreground" err
  run -1 shows "Answer: resume"
  : >go
  wait_until 30 shows "Answer: resume"
  keys "terminate" Enter
  wait_until 30 shows "Type yes to confirm"
  keys "yes" Enter
  wait_until 30 grep -q terminate out.ndjson
}

# work TASK: a task of the Runtime Protocol that exec admitted; finish TASK: exec accepts and completes it.
work() {
  ev task_create "{\"taskId\":\"$1\",\"title\":\"T\",\"toAgents\":[\"exec\"],\"requesterAgentId\":\"cli\"}" \
    ".sourceAgentId = \"cli\" | .corrId = \"$1\""
  ev ack "{\"refEventId\":\"evt_$(<n)\",\"ackType\":\"accepted\",\"ackedByAgentId\":\"exec\",\"ackedAt\":\"2026-02-25T16:31:00Z\"}" \
    ".corrId = \"$1\""
}
finish() {
  local task=".payload.taskId = \"$1\" | .corrId = \"$1\""
  { accept "$task"; complete "$task"; } | amp-ack track --state "$STATE" --now 2026-03-01T12:03:00Z >/dev/null
}

@test "escalations about another protocol's work are asked one by one, and each ends with its work" {
  echo 0 >n
  { work tsk_1; work tsk_2; work tsk_3; work tsk_4; } | amp-ack track --state "$STATE" --now 2026-03-01T12:00:00Z >/dev/null
  amp-ack sweep --state "$STATE" --now 2026-03-01T12:02:00Z >told
  [ "$(grep -c '(rtp task tsk_' told)" = 4 ]
  amp-validate told | cmp - told
  grep tsk_4 told >fourth
  grep -v tsk_4 told >three
  echo '{"task_id":"tsk_1","decision":"terminate","note":"not needed"}' >answers
  run -1 --separate-stderr ask --answer answers <three
  [ "$(grep -c '"type":"decision"' <<<"$output")" = 1 ]
  [[ "$stderr" == *"rtp tsk_1: terminate by ada"* ]]
  [[ "$stderr" == *"rtp tsk_2 waits for a decision"* ]]
  [[ "$stderr" == *"rtp tsk_3 waits for a decision"* ]]
  # The next one is asked although one was terminated; no task has their common name.
  echo '{"task_id":"tsk_2","protocol":"rtp","decision":"resume"}' >answers
  run -1 --separate-stderr ask --answer answers </dev/null
  [[ "$stderr" == *"rtp tsk_2: resume by ada"* ]]
  grep '"type":"decision"' <<<"$output" >decision
  ! grep -l 'task.T-0000-000' "$STATE"/log/*.ndjson
  # A rollback has nothing to go back to.
  echo rollback main >answers
  run -65 --separate-stderr ask --answer answers </dev/null
  [[ "$stderr" == *"rtp tsk_3: the answer is refused: no_task: "* ]]
  # Work that ends takes its question with it: one that waits, and one that comes too late.
  finish tsk_3
  finish tsk_4
  : >answers
  run -0 --separate-stderr ask --answer answers </dev/null
  jq -es 'length == 1 and .[0].code == "terminal" and (.[0].ref_msg_id | startswith("escalation-T-0000-000-"))' <<<"$output"
  [[ "$stderr" == *"rtp tsk_3: "*" is no longer asked: "* ]]
  run -1 --separate-stderr ask --answer answers <fourth
  jq -es 'length == 1 and .[0].code == "terminal"' <<<"$output"
  run -0 --separate-stderr ask --answer answers </dev/null
  [ -z "$output" ]
  # The coordinator has no part in it.
  run -0 --separate-stderr task-dispatch coordinate --state "$STATE" < <(cat fourth decision)
  [ "$output" = "$(cat fourth)" ]
}

@test "an AOP task that is named like one of AMP's is another task; redispatch sends its dead letter again" {
  jq -nc '{aop_version: "2.0.2-C", schema_version: "2.0.2", protocol_family: "AOP", message_type: "TASK",
    session: {session_id: "s", created_at: "2026-02-26T14:32:07Z", orchestrator: "cli", origin: "x"},
    target: {agent_name: "bob", role: "EXECUTOR", provider: "CLAUDE", model: "m"},
    task: {task_id: "T-2026-001", objective: "o", category: "OTHER", complexity: "LOW", environment: {workspace_root: "/srv"}},
    execution_policy: {heartbeat: {enabled: true, interval_seconds: 60, max_missed_beats: 2, on_heartbeat_failure: "WARN"}}}' >in
  amp-ack track --state "$STATE" --now 2026-03-01T12:00:00Z <in >/dev/null
  # A person is warned of the silence; the end of its time makes the dead letter.
  amp-ack sweep --state "$STATE" --severity critical --now 2026-03-01T12:05:00Z >told
  amp-ack sweep --state "$STATE" --now 2026-03-01T13:00:00Z | grep -q '"error_code":"E_TIMEOUT"'
  got told '.task_id == "T-0000-000" and .payload.severity == "critical" and (.payload.description | contains("(aop task T-2026-001)"))'
  echo '{"task_id":"T-2026-001","protocol":"amp","decision":"terminate"}' >answers
  run -1 --separate-stderr ask --answer answers <told
  [[ "$stderr" == *"aop T-2026-001 waits for a decision"* ]]
  run -1 suspended
  echo 'redispatch' >answers
  run -0 --separate-stderr ask --answer answers </dev/null
  [[ "${lines[0]}" == *'"decision":"redispatch"'* ]]
  [ "${lines[1]}" = "$(cat in)" ]
}

@test "an escalation about a task that ended is answered, and suspends nobody" {
  stuck
  echo terminate >answers
  ask --answer answers <said.ndjson >out.ndjson
  run -0 task-dispatch coordinate --state "$STATE" <out.ndjson
  escalation ".task_id = \"$id\" | .msg_id = \"escalation-$id-2\"" >late.ndjson
  run -1 --separate-stderr ask --answer answers <late.ndjson
  jq -es --arg id "escalation-$id-2" 'length == 1 and .[0].type == "nack" and .[0].code == "terminal" and .[0].ref_msg_id == $id' <<<"$output"
  [ "$(state_of "escalation-$id-2")" = ENDED ]
}

# invocation ID [JQ]: a question of SW4RM, edited.
invocation() {
  sw4rm "$1" sched HITL_INVOCATION '{"invocation_id":"hitl-001","reason_type":"SECURITY_APPROVAL","subject":{"repo_id":"core","task_id":"T-2026-001"},"context_uri":"sw4rm://hitl/context/hitl-001","suggested_action":"approve","proposed_actions":["QUEUE_TASKS"],"deadline_ts":"2026-12-24T12:00:00Z"}' "" "${@:2}"
}

@test "SW4RM: a HITL_INVOCATION, addressed or not, is answered by a HITL_DECISION with its invocation_id" {
  invocation 11111111-1111-4111-8111-111111111111 >in
  invocation 11111111-1111-4111-8111-111111111112 '.payload.invocation_id = "hitl-002" | del(.payload.subject)' |
    jq -c '{to: "admin", msg: .}' >>in
  invocation 11111111-1111-4111-8111-111111111113 'del(.payload.invocation_id)' >>in
  cat >answers <<'EOS'
{"invocation_id":"hitl-002","decision":"modify","rationale":"smaller","patch_b64":"YQ=="}
{"ref_msg_id":"*113","decision":"queue_tasks"}
{"invocation_id":"hitl-001","decision":"resume"}
EOS
  run -65 --separate-stderr ask --answer answers <in
  [[ "$stderr" == *"approve, deny, modify, defer or a proposed action"* ]]
  printf '%s\n' "$output" >out
  amp-validate out | cmp - out
  # Each is acknowledged, two are answered, and who waits for the third is told.
  [ "$(jq -c 'select(.msg.payload | .ack_stage == "READ" and .note == null)' out | wc -l)" = 3 ]
  got out '.to == "sched" and .msg.message_type == "HITL_DECISION" and .msg.correlation_id == "7f3f41a2-2017-4b8f-9b8b-2ad3caaee001"
    and (.msg.payload | .invocation_id == "hitl-002" and .decision == "modify" and .rationale == "smaller" and .patch_b64 == "YQ=="
      and .operator == "ada" and (.decided_at | length > 0))'
  got out '.msg.payload | .invocation_id == "11111111-1111-4111-8111-111111111113" and .decision == "QUEUE_TASKS" and .patch_b64 == null'
  got out '.to == "sched" and (.msg.payload | .ack_stage == "READ" and .error_code == null and (.note // "" | startswith("hitl_unavailable: ")) and
    (.ack_for_message_id | endswith("111")))'
  # The question is open, so nothing has failed.
  run -1 grep '"ack_stage":"FAILED"' out
  [ "$(state_of sw4rm%2F11111111-1111-4111-8111-111111111111)" = OPEN ]
  # It suspends no task of AMP, and is asked again by the next run.
  run -1 suspended
  echo "approve low risk" >answers
  ask --answer answers </dev/null >out
  jq -es 'length == 1 and (.[0].msg.payload | .invocation_id == "hitl-001" and .decision == "approve" and .rationale == "low risk")' out
  # Once answered it is no question any more.
  run -0 ask --answer answers <in
}

@test "SW4RM: the question on the terminal, with its facts behind marks; without one the status is 69" {
  invocation 11111111-1111-4111-8111-111111111111 '.payload.context = {diff: "a\n> b"} | .producer_id = "x\n== fake"' >in
  run -69 --separate-stderr setsid -w hitl-prompt --state "$STATE" <in
  [[ "$stderr" == *"sw4rm T-2026-001 waits for a decision; there is no terminal"* ]]
  [[ "$output" == *'"note":"hitl_unavailable: '* ]]
  term 'hitl-prompt --state "$STATE" --operator ada </dev/null >out'
  wait_until 30 shows "Answer: approve [WHY]"
  shows "== SECURITY_APPROVAL, asked in SW4RM"
  shows "question     | hitl-001"
  shows "task         | T-2026-001"
  shows "suggested    | approve"
  shows '             | == fake'
  keys "resume" Enter
  wait_until 30 shows "Please: approve, deny, modify, defer or a proposed action."
  keys "deny too risky" Enter
  wait_until 30 test -s status
  [ "$(cat status)" = 0 ]
  got out '.msg.payload | .decision == "deny" and .rationale == "too risky"'
}
