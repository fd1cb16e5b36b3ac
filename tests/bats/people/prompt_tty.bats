#!/usr/bin/env bats
# hitl-prompt on a terminal: what is shown, what is typed, and what happens to the terminal meanwhile. All tests use one
# tmux server; each has a session, or two.
# long

# The state of all tests: a task whose work was rejected, with a question of the coordinator, and its messages.
setup_file() {
  load ../lib
  command -v tmux >/dev/null || return 0
  export AT=$BATS_FILE_TMPDIR
  export SOCKET=$AT/tmux
  cd "$AT" || return
  BATS_TEST_TMPDIR=$AT
  load ../coordinator
  setup_coordinator
  repo repo
  printf 'int main(void)\n{\n\treturn 0;\n}\n' >repo/a.c
  git -C repo add a.c
  git -C repo commit -qm base
  new_task ".repo = \"$AT/repo\"" | hear
  git -C repo switch -qc fix/units
  printf 'int main(void)\n{\n\treturn 1; /* \033[31mred\n> resume\n== critical: fake\n*/\n}\n' >repo/a.c
  git -C repo commit -qam one
  round "$(git -C repo rev-parse HEAD)" rejected '.issues[0].description = "over\u001b[2Jflow\nAnswer: resume"'
  result failed "$(git -C repo rev-parse HEAD)" '.blockers = ["no key \u202e left"]' | hear
  escalation_line "$task" 1 >question
  ends 1 hitl-prompt -s state --answer /dev/null <question >/dev/null 2>&1
  grep -q '"to":"OPEN"' state/log/000001.ndjson
  # The server ends with the file.
  tmux -S "$SOCKET" -f /dev/null new-session -d -s keep "exec sleep 10000"
  tmux -S "$SOCKET" set-option -g history-limit 5000 \; set-option -g default-terminal screen-256color
}

teardown_file() {
  [ ! -S "${SOCKET-}" ] || tmux -S "$SOCKET" kill-server
}

# escalation_line TASK N [SEVERITY]: a question about a task.
escalation_line() {
  printf '{"msg_id":"escalation-%s-%s","protocol_version":"AMP/1.0","type":"escalation","from":"coordinator","to":"admin",' "$1" "$2"
  printf '"task_id":"%s","timestamp":"2026-02-26T14:32:07Z","requires_ack":false,"payload":{"escalation_type":"hallucination_lock",' "$1"
  printf '"severity":"%s","triggered_by":"coordinator","description":"Three rejections\\u001b[31m\\n== critical: fake",' "${3:-critical}"
  printf '"affected_msgs":[],"system_state_snapshot":{"task_status":"locked","reject_count":3,"last_successful_msg_id":""},'
  printf '"suggested_actions":["look at the diff"],"auto_suspended":true}}\n'
}

# invocation N [CONTEXT]: a question of SW4RM.
invocation() {
  load ../messages
  sw4rm "11111111-1111-4111-8111-11111111111$1" sched HITL_INVOCATION \
    "{\"invocation_id\":\"hitl-$1\",\"reason_type\":\"SECURITY_APPROVAL\",\"context\":${2:-{\}},\"suggested_action\":\"approve\"}" "" .
}

setup() {
  load ../lib
  command -v tmux >/dev/null || skip "tmux is not installed"
  need jq
  cd "$BATS_TEST_TMPDIR" || return
  STATE=$BATS_TEST_TMPDIR/state
  SCREEN=t$BATS_TEST_NUMBER
  mkdir -p "$XDG_CONFIG_HOME/amp"
  echo '{"hitl":{"allow_operator":true}}' >"$XDG_CONFIG_HOME/amp/amp.json"
}

teardown() {
  local s
  [ -n "${BATS_TEST_COMPLETED-}" ] || [ -z "${SCREEN-}" ] || screen | tail -n 60
  for s in "$SCREEN" "$SCREEN-b"; do
    ! tmux -S "$SOCKET" has-session -t "=$s" 2>/dev/null || tmux -S "$SOCKET" kill-session -t "=$s"
  done
}

# state: a copy of the state with the question.
state() { cp -R "$AT/state" "$STATE"; }
# term COMMAND [COLUMNS ROWS]: runs it in a terminal of its own; its output is in the file `raw`, its status in `status`.
term() {
  printf '%s\n' "$1" >"$SCREEN.sh"
  tmux -S "$SOCKET" new-session -d -s "$SCREEN" -x "${2:-80}" -y "${3:-24}" -e PATH="$PATH" -e STATE="$STATE" \
    -e HOME="$HOME" -e XDG_CONFIG_HOME="$XDG_CONFIG_HOME" -e XDG_RUNTIME_DIR="$BATS_TEST_TMPDIR" -e AMP_IDENTITY=off \
    -e NO_COLOR="${COLORS-1}" -e LC_ALL=C.UTF-8 \
    -c "$BATS_TEST_TMPDIR" "until [ -e $SCREEN.go ]; do sleep 0.02; done; bash --norc $SCREEN.sh; echo \$? >$SCREEN.status; exec sleep 1000"
  tmux -S "$SOCKET" pipe-pane -t "=$SCREEN:" "cat >'$BATS_TEST_TMPDIR/$SCREEN.raw'"
  wait_until 10 test -e "$SCREEN.raw"
  touch "$SCREEN.go"
}
keys() { tmux -S "$SOCKET" send-keys -t "=$SCREEN:" "$@"; }
screen() { tmux -S "$SOCKET" capture-pane -p -t "=$SCREEN:" -S -3000; }
shows() { screen | grep -qF -- "$1"; }
bottom() { screen | grep . | tail -n "${1:-1}"; }
# at_prompt [TEXT]: the last line is the prompt with the text.
at_prompt() { [ "$(bottom)" = "> ${1-}" ] || { [ -z "${1-}" ] && [ "$(bottom)" = ">" ]; }; }
# ended STATUS: the command has ended with it.
ended() {
  wait_until 20 test -s "$SCREEN.status"
  [ "$(<"$SCREEN.status")" = "$1" ]
}
# page_end: until the prompt, through the pages of a text.
page_end() {
  wait_until 20 eval 'at_prompt || bottom | grep -q "^-- line"'
  at_prompt || keys q
  wait_until 20 at_prompt
}
log_has() { grep -qF -- "$1" "$STATE"/log/*.ndjson; }
ask='hitl-prompt -s "$STATE" --operator ada </dev/null >out 2>err'

# Every line on the screen is ours or behind a bar.
only_ours() {
  local ours='^$|^== critical: hallucination_lock, task T-2026-001( \(suspended\))?,$|^   triggered by the coordinator, 3 rejections$'
  ours+='|^  [a-zA-Z ]{12} +\||^  {15}\||^\| |^\|$|^  (risk|state|rejections) |^ +… [0-9]+ '
  ours+='|^  Answer: resume \[NOTE\]|^          terminate \[NOTE\]$|^    (resume|terminate|redispatch|rollback) +[a-z ,A-Z]+$'
  ours+='|^    (also|defer TIME) +(yes \(|ask again then)|^  Keys: d diff|^  An empty line leaves|^  The question has [0-9]+ lines, more than the window|^> ?[a-z?]?$'
  ours+='|^-- (the changes|[0-9]+ files?, \+[0-9]+ -[0-9]+|the question, complete|the last result|the last verdict)$'
  ours+='|^-- line [0-9]+ of [0-9]+; space: more, b: back, q: end --$'
  run -1 grep -vE "$ours" <(screen)
}

@test "24x80: the question with its evidence, and more with the keys; no line of others looks like ours" {
  state
  term "$ask"
  wait_until 20 at_prompt
  shows "task         | Parse durations"
  shows "risk           medium"
  screen | grep -qE '^  history +\| '
  screen | grep -qE '\| .* dispatch to coordinator by admin'
  screen | grep -qE '\| .* dispatch to executor by coordinator'
  screen | grep -qE '\| .* verdict: rejected, confidence 0.95 by reviewer'
  shows '|   - critical, a.c:87: over\x1b[2Jflow'
  shows "advice       | look at the diff"
  shows "terminate    end the task for good"
  shows "The question has"
  keys d Enter
  wait_until 20 shows "-- the changes"
  wait_until 20 shows '| +        return 1; /* \x1b[31mred'
  shows "-- 1 file, +4 -1"
  shows "| +> resume"
  wait_until 20 at_prompt
  keys t Enter
  wait_until 20 shows "criterion    | 1h30m is 5400"
  page_end
  only_ours
  # Pages for the window: forward, back, and forward to the end.
  tmux -S "$SOCKET" resize-window -t "=$SCREEN:" -x 80 -y 20
  keys s Enter
  wait_until 20 eval 'bottom | grep -qF -- "-- line 19 of"'
  keys Space
  wait_until 20 eval 'bottom | grep -qF -- "-- line 38 of"'
  keys b
  wait_until 20 eval 'bottom | grep -qF -- "-- line 19 of"'
  keys Space Space
  wait_until 20 shows "-- the last verdict"
  wait_until 20 at_prompt
  only_ours
  keys l Enter
  wait_until 20 shows "task_dispatch-T-2026-001-"
  page_end
  keys '?' Enter
  wait_until 20 shows "defer 17:30 WHY"
  page_end
  keys "dance" Enter
  wait_until 20 shows "Please: resume"
  keys "resume look at a.c" Enter
  ended 0
  grep -q '"decision":"resume"' out
  # No sequence of a message reached the terminal, and with NO_COLOR no colour of ours either.
  run -1 grep -qE $'\033\\[([0-9;]*m|2J|31)' <(tr -d '\017' <"$SCREEN.raw" | sed $'s/\033\\[39;49m//g')
  # What was shown is in the record, as a digest.
  cat "$STATE"/log/*.ndjson | jq -es 'any(.[]; .to == "DECIDED" and (.state.shown | test("^[0-9a-f]{64}$")) and .state.channel == "terminal")'
}

@test "200 columns, colours, a smaller window: the typed line stays, and the bars are right again" {
  state
  COLORS='' term "$ask" 200 50
  wait_until 20 at_prompt
  keys d Enter
  wait_until 20 shows "-- the changes"
  grep -qF $'\033[32m+' "$SCREEN.raw"
  grep -qF $'\033[31m-' "$SCREEN.raw"
  wait_until 20 at_prompt
  keys "resume my no"
  wait_until 20 at_prompt "resume my no"
  tmux -S "$SOCKET" resize-window -t "=$SCREEN:" -x 60 -y 20
  # Now narrower than the question was: it is shown again, wrapped for the window.
  wait_until 20 shows "The question has"
  wait_until 20 at_prompt "resume my no"
  run -1 grep -vE '^  .{12} \| |^\| ' <(screen | grep -E 'fake|Jflow|no key|Answer: resume$|> resume$|x1b')
  keys "te" Left Left BSpace BSpace n o Enter
  ended 0
  grep -q '"note":"my note"' out
}

@test "^C interrupts and restores the terminal; a long line is shown in a window and arrives complete" {
  state
  term 'stty -a >before; hitl-prompt -s "$STATE" </dev/null >out 2>err; echo $? >code; stty -a >after; cmp before after'
  wait_until 20 at_prompt
  keys "half"
  wait_until 20 at_prompt half
  keys C-c
  ended 0
  [ "$(<code)" = 130 ]
  log_has '"to":"ASKED"'
  run -1 log_has '"to":"DECIDED"'
  rm "$SCREEN.status" "$SCREEN.go"
  tmux -S "$SOCKET" kill-session -t "=$SCREEN"
  term "$ask"
  wait_until 20 at_prompt
  long=$(printf 'word%03d ' {1..60})
  keys -l "resume $long"
  keys -l "end"
  wait_until 20 eval 'bottom | grep -qE "^> <.*word060 end$"'
  [ "$(bottom | wc -L)" -le 80 ]
  keys Home
  wait_until 20 eval 'bottom | grep -qE "^> resume word001.*>$"'
  keys Enter
  ended 0
  grep -qF "\"note\":\"${long}end\"" out
}

@test "^Z stops it and the shell works; after fg the typed line is there, and ^D leaves the question open" {
  state
  term 'exec bash --norc -i'
  wait_until 20 shows "bash-"
  keys "hitl-prompt -s \"\$STATE\" </dev/null >out 2>err; echo code \$?" Enter
  wait_until 20 at_prompt
  keys "resume so far"
  wait_until 20 at_prompt "resume so far"
  keys C-z
  wait_until 20 shows "Stopped"
  keys "echo shell \$((6*7))" Enter
  wait_until 20 shows "shell 42"
  keys "fg" Enter
  wait_until 20 at_prompt "resume so far"
  keys C-u
  wait_until 20 at_prompt
  keys C-d
  wait_until 20 eval 'bottom | grep -q "^bash-"'
  keys "jobs; stty | grep -c icanon; echo done \$((40+2))" Enter
  wait_until 20 shows "done 42"
  run -1 shows "Running"
  grep -q '"code":"hitl_unavailable"' out
  log_has '"to":"OPEN"'
}

@test "a terminal that vanishes leaves the question open: status 69, and no time of the processor while it goes on" {
  state
  mkfifo in
  exec 8<>in
  term 'set +m; trap "" HUP; (trap - HUP; exec hitl-prompt -s "$STATE" --operator ada <in >out 2>err) & echo $! >pid; wait $!; echo $? >code'
  wait_until 20 at_prompt
  keys "resume never sen"
  pid=$(<pid)
  tmux -S "$SOCKET" kill-session -t "=$SCREEN"
  wait_until 20 grep -q "the terminal is gone" err || { cat err; false; }
  wait_until 20 log_has '"event":"pass"'
  # It goes on as a filter, asleep.
  escalation_line T-2026-002 1 >&8
  wait_until 20 grep -q "T-2026-002 waits for a decision; there is no terminal" err
  read -r _ _ _ _ _ _ _ _ _ _ _ _ _ before _ <"/proc/$pid/stat"
  wait_until 5 sleeping "$pid"
  command sleep 0.3
  read -r _ _ _ _ _ _ _ _ _ _ _ _ _ after _ <"/proc/$pid/stat"
  [ $((after - before)) -le 3 ]
  kill -TERM "$pid"
  wait_until 20 test -s code
  [ "$(<code)" = 69 ]
  exec 8>&-
  log_has '"to":"OPEN"'
  run -1 log_has '"to":"DECIDED"'
  # The same with an input that has ended.
  rm -f "$SCREEN".* code
  term 'trap "" HUP; hitl-prompt -s "$STATE" --operator ada </dev/null >out 2>err; echo $? >code'
  wait_until 20 at_prompt
  tmux -S "$SOCKET" kill-session -t "=$SCREEN"
  wait_until 20 test -s code
  [ "$(<code)" = 69 ]
}
sleeping() { grep -q '^State:[[:space:]]*S' "/proc/$1/status"; }

@test "two people in two terminals: the first decision wins; the other gets a note and the next question" {
  state
  escalation_line T-2026-002 1 >second
  ends 1 hitl-prompt -s "$STATE" --answer /dev/null <second >/dev/null 2>&1
  term 'hitl-prompt -s "$STATE" --operator ada --as ada </dev/null >out 2>err'
  wait_until 20 at_prompt
  first=$SCREEN SCREEN=$SCREEN-b
  term 'hitl-prompt -s "$STATE" --operator bob --as bob </dev/null >out-b 2>err-b'
  wait_until 20 at_prompt
  keys "resume I was typi"
  wait_until 20 at_prompt "resume I was typi"
  SCREEN=$first
  keys "resume as it is" Enter
  SCREEN=$first-b
  wait_until 20 shows "T-2026-001: decided by ada through terminal: resume"
  wait_until 20 at_prompt
  shows "task T-2026-002"
  # What bob had typed is gone; it answers nothing.
  keys "resume two" Enter
  ended 0
  SCREEN=$first
  wait_until 20 shows "T-2026-002: decided by bob through terminal: resume"
  ended 0
  [ "$(grep -c '"type":"decision"' out)" = 1 ]
  [ "$(grep -c '"type":"decision"' out-b)" = 1 ]
}

@test "an answer from elsewhere ends the prompt, and the filter at the terminal writes the decision" {
  local start
  state
  term 'hitl-prompt -s "$STATE" --operator ada </dev/null >out 2>err'
  wait_until 20 at_prompt
  keys "resume half"
  wait_until 20 at_prompt "resume half"
  hitl-prompt -s "$STATE" --operator bob answer T-2026-001 terminate no use >answered
  start=${EPOCHREALTIME/./}
  wait_until 20 test -s out
  echo "# written $(((${EPOCHREALTIME/./} - start) / 1000)) ms after the answer" >&3
  ended 0
  shows "T-2026-001: decided by bob through command: terminate"
  [ ! -s answered ]
  grep -q '"decision":"terminate".*"operator":"bob"' out
}

@test "two of them on one terminal take turns" {
  state
  cp -R "$STATE" other
  term 'hitl-prompt -s "$STATE" --operator ada </dev/null >out 2>err & hitl-prompt -s other --operator ada </dev/null >out-b 2>err-b & wait'
  wait_until 20 at_prompt
  keys "resume one" Enter
  wait_until 20 eval '[ -s out ] || [ -s out-b ]'
  wait_until 20 at_prompt
  [ "$(screen | grep -c '^== ')" = 2 ]
  keys "resume two" Enter
  ended 0
  [ "$(cat out out-b | grep -c '"note":"resume\|"note":"one"\|"note":"two"')" = 2 ]
}

@test "messages and output do not come into the line that is typed; in plain mode they wait" {
  state
  mkfifo in
  exec 8<>in
  term 'hitl-prompt -s "$STATE" --operator ada <in'
  wait_until 20 at_prompt
  keys "resume half"
  wait_until 20 at_prompt "resume half"
  # A note of ours, and a line that passes through to the same terminal.
  escalation_line T-2026-003 1 info >&8
  wait_until 20 shows "== info: hallucination_lock, task T-2026-003"
  printf '{"protocol_version":"AMP/1.0","type":"ack","ref_msg_id":"unknown-1","task_id":"T-2026-001","from":"executor","stage":"READ"}\n' >&8
  wait_until 20 at_prompt "resume half"
  keys " done" Enter
  wait_until 20 shows '"note":"half done"'
  screen | grep -qxF '> resume half done'
  exec 8>&-
  wait_until 20 test -s "$SCREEN.status"
  tmux -S "$SOCKET" kill-session -t "=$SCREEN"
  # A terminal that can do nothing but lines.
  rm -rf "$STATE" "$SCREEN".*
  state
  exec 8<>in
  term 'TERM=dumb hitl-prompt -s "$STATE" --operator ada <in >out'
  wait_until 20 at_prompt
  keys "resume half"
  wait_until 20 at_prompt "resume half"
  escalation_line T-2026-003 1 info >&8
  wait_until 20 log_has '"to":"NOTED"'
  keys " done" Enter
  wait_until 20 shows "== info: hallucination_lock, task T-2026-003"
  wait_until 20 grep -q '"note":"half done"' out
  screen | grep -qxF '> resume half done'
  exec 8>&-
  # It wrote nothing but lines: no escape sequence, no carriage return of its own, no backspace.
  run -1 grep -qE $'\033|\b' "$SCREEN.raw"
}

@test "terminate and rollback are confirmed; commits are checked before they count" {
  state
  term "$ask"
  wait_until 20 at_prompt
  keys "terminate hopeless" Enter
  wait_until 20 shows "Type yes to confirm"
  keys "no" Enter
  wait_until 20 shows "Not confirmed."
  wait_until 20 at_prompt
  keys "rollback" Enter
  wait_until 20 grep -q missing_commit err
  wait_until 20 at_prompt
  keys "rollback 0123456789" Enter
  wait_until 20 eval 'bottom | grep -q "^yes?"'
  keys "yes" Enter
  wait_until 20 grep -q unknown_revision err
  wait_until 20 at_prompt
  keys "rollback main to the start" Enter
  wait_until 20 eval 'bottom | grep -q "^yes?"'
  keys "yes" Enter
  ended 0
  grep -q "\"commit\":\"$(git -C "$AT/repo" rev-parse main)\"" out
  grep -q '"note":"to the start"' out
}

# editor NAME <body: a program that edits.
editor() {
  { printf '#!/bin/bash\n' && cat; } >"$1"
  chmod +x "$1"
}

@test "modify opens the editor on the payload: private, checked with its schema, removed" {
  invocation 1 '{"proposal":"all"}' >question
  ends 1 hitl-prompt -s "$STATE" --answer /dev/null <question >/dev/null 2>&1
  editor edit <<'EOS'
stat -c '%a' "$1" "$(dirname "$1")" >modes
echo "$1" >path
n=$(cat count 2>/dev/null || echo 0)
echo $((n + 1)) >count
case $n in
0) echo '{"invocation_id":7}' >"$1" ;;
1) echo 'no json' >"$1" ;;
*) sed -i 's/all/some/' "$1" && jq -c . "$1" >/dev/null || printf '%s' '{"invocation_id":"hitl-1","reason_type":"SECURITY_APPROVAL","context":{"proposal":"some"}}' >"$1" ;;
esac
EOS
  term 'VISUAL=./edit hitl-prompt -s "$STATE" --operator ada </dev/null >out 2>err'
  wait_until 20 at_prompt
  keys "modify smaller" Enter
  wait_until 20 shows "The payload is not accepted:"
  screen | grep -qE '\| .*invocation_id: validation_error'
  keys Enter
  wait_until 20 shows "not a JSON object"
  keys Enter
  ended 0
  [ "$(tr '\n' ' ' <modes)" = "600 700 " ]
  [ ! -e "$(dirname "$(<path)")" ]
  jq -es 'any(.[]; .msg.payload.decision == "modify" and .msg.payload.rationale == "smaller"
    and (.msg.payload.patch_b64 | @base64d | fromjson | .context.proposal == "some"))' out
}

@test "redispatch changes the criteria of the task's dispatch, nothing else, and the coordinator sends them" {
  state
  editor edit <<'EOS'
n=$(cat count 2>/dev/null || echo 0)
echo $((n + 1)) >count
case $n in
0) sed -i 's/Parse durations/Something else/' "$1" ;;
1) sed -i 's/Something else/Parse durations/; s/1h30m is 5400/1h30m is 5400 s/' "$1" ;;
esac
EOS
  term 'EDITOR=./edit hitl-prompt -s "$STATE" --operator ada </dev/null >out 2>err'
  wait_until 20 at_prompt
  # A pasted line end is no answer.
  printf 'terminate\nresume\n' | tmux -S "$SOCKET" load-buffer -
  tmux -S "$SOCKET" paste-buffer -p -t "=$SCREEN:"
  wait_until 20 eval 'bottom | grep -qx "> terminate resume *"'
  keys C-u
  wait_until 20 at_prompt
  keys "redispatch use long" Enter
  wait_until 20 shows "description: only acceptance_criteria can be changed"
  keys Enter
  ended 0
  grep -q '"acceptance_criteria":\["1h30m is 5400 s","5x is refused"\]' out
  amp-validate out | cmp - out
  [ "$(task-dispatch coordinate -s "$STATE" <out 2>/dev/null | jq -c 'select(.type == "task_dispatch").payload.acceptance_criteria')" = \
    '["1h30m is 5400 s","5x is refused","use long"]' ]
  # Without a change there are none.
  jq -c '.decision = "resume"' out >bad
  run -1 --separate-stderr amp-validate bad
  [[ $stderr == *acceptance_criteria* || $stderr == *decision* ]]
}

@test "defer takes a time; a question whose change was dropped is still there" {
  invocation 1 >question
  invocation 2 >>question
  ends 1 hitl-prompt -s "$STATE" --answer /dev/null <question >/dev/null 2>&1
  editor edit <<'EOS'
echo broken >"$1"
EOS
  term 'EDITOR=./edit hitl-prompt -s "$STATE" --operator ada </dev/null >out 2>err'
  wait_until 20 at_prompt
  keys "modify it" Enter
  wait_until 20 shows "The payload is not accepted:"
  keys n Enter
  wait_until 20 shows "The change is dropped."
  wait_until 20 at_prompt
  keys "deny no" Enter
  wait_until 20 shows "hitl-2"
  wait_until 20 at_prompt
  keys "defer $(date -d '2 minutes' +%H:%M) after lunch" Enter
  wait_until 20 test -s "$SCREEN.status"
  cat "$STATE"/log/*.ndjson | jq -es --argjson now "$(date +%s)" 'any(.[]; .to == "DEFERRED" and .state.until / 1000 - $now < 180)'
  jq -es 'any(.[]; .msg.payload.decision == "deny")' out
  [ -z "$(ls -d hitl-prompt.* 2>/dev/null)" ]
}

@test "what a person edits while another one decides is kept, and the terminal says where" {
  invocation 1 >question
  ends 1 hitl-prompt -s "$STATE" --answer /dev/null <question >/dev/null 2>&1
  mkfifo edited goes
  editor edit <<'EOS'
echo '{"much":"work"}' >"$1"
echo >edited
read -r _ <goes
EOS
  term 'EDITOR=./edit hitl-prompt -s "$STATE" --operator ada </dev/null >out 2>err'
  wait_until 20 at_prompt
  keys "modify it" Enter
  read -r _ <edited
  hitl-prompt answer -s "$STATE" --operator ben hitl-1 deny no >/dev/null
  wait_until 20 shows "it is kept in"
  kept=$(echo hitl-prompt.*/payload.json)
  [ "$(jq -r .much "$kept")" = work ]
  rm -r "${kept%/*}"
}

@test "1,000 open questions: the first prompt is there at once" {
  local i start
  for ((i = 1; i <= 1000; i++)); do
    escalation_line "T-2025-$(printf %03d $((i % 1000)))" "$i"
  done >questions
  ends 1 hitl-prompt -s "$STATE" --answer /dev/null <questions >/dev/null 2>&1
  start=${EPOCHREALTIME/./}
  term "$ask"
  wait_until 20 at_prompt
  echo "# the first prompt after $(((${EPOCHREALTIME/./} - start) / 1000)) ms" >&3
  [ $((${EPOCHREALTIME/./} - start)) -lt 2000000 ]
  keys C-c
  ended 130
}
