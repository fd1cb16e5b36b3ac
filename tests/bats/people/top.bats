#!/usr/bin/env bats
# amp-top on a terminal and without one: what it shows at three sizes, keys, an answer, a suspension, hostile text, what is
# left of the terminal, and that it does nothing while nothing happens. All tests use one tmux server.

# A task whose work was rejected, with a question of the coordinator, an inbox, and messages; texts have escape sequences.
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
  echo 'int a;' >repo/a.c
  git -C repo add a.c
  git -C repo commit -qm base
  new_task ".repo = \"$AT/repo\"" | hear
  git -C repo switch -qc fix/units
  echo 'int b;' >repo/a.c
  git -C repo commit -qam one
  round "$(git -C repo rev-parse HEAD)" rejected '.issues[0].description = "over\u001b[2Jflow\u001b]0;owned\u0007"'
  escalation_line "$task" >question
  ends 1 hitl-prompt -s state --answer /dev/null <question >/dev/null 2>&1
  load ../messages
  for i in 1 2 3; do message task_dispatch ".msg_id = \"task_dispatch-T-2026-044-$i\""; done |
    amp-route -s state -r '* => inbox:executor'
  # The server ends with the file.
  env --default-signal tmux -S "$SOCKET" -f /dev/null new-session -d -s keep "exec sleep 10000"
  tmux -S "$SOCKET" set-option -g default-terminal screen-256color
}

teardown_file() {
  [ ! -S "${SOCKET-}" ] || tmux -S "$SOCKET" kill-server
}

escalation_line() {
  printf '{"msg_id":"escalation-%s-1","protocol_version":"AMP/1.0","type":"escalation","from":"coordinator","to":"admin",' "$1"
  printf '"task_id":"%s","timestamp":"2026-02-26T14:32:07Z","requires_ack":false,"payload":{"escalation_type":"hallucination_lock",' "$1"
  printf '"severity":"critical","triggered_by":"coordinator","description":"Three rejections\\u001b[31m \\u6f22\\u5b57 \\u202e",'
  printf '"affected_msgs":[],"system_state_snapshot":{"task_status":"locked","reject_count":3,"last_successful_msg_id":""},'
  printf '"suggested_actions":["look at the diff"],"auto_suspended":true}}\n'
}

setup() {
  load ../lib
  command -v tmux >/dev/null || skip "tmux is not installed"
  cd "$BATS_TEST_TMPDIR" || return
  SCREEN=t$BATS_TEST_NUMBER
  ME=$(id -un)
  export AMP_STATE=$BATS_TEST_TMPDIR/state
  cp -R "$AT/state" "$AMP_STATE"
}

teardown() {
  [ -n "${BATS_TEST_COMPLETED-}" ] || [ -z "${SCREEN-}" ] || screen | tail -n 60
  ! tmux -S "$SOCKET" has-session -t "=$SCREEN" 2>/dev/null || tmux -S "$SOCKET" kill-session -t "=$SCREEN"
}

# term COLUMNS ROWS [COMMAND]: amp-top in a terminal; its output is in the file `raw`, its status in `status`.
term() {
  printf '%s\n' "${3:-amp-top}" >"$SCREEN.sh"
  tmux -S "$SOCKET" new-session -d -s "$SCREEN" -x "$1" -y "$2" -e PATH="$PATH" -e AMP_STATE="$AMP_STATE" -e HOME="$HOME" \
    -e XDG_CONFIG_HOME="$XDG_CONFIG_HOME" -e AMP_IDENTITY=off -e NO_COLOR="${COLORS-1}" -e LC_ALL="${LOCALE-C.UTF-8}" \
    -c "$BATS_TEST_TMPDIR" "until [ -e $SCREEN.go ]; do sleep 0.02; done; bash --norc $SCREEN.sh; echo \$? >$SCREEN.status; stty -a >$SCREEN.stty; exec sleep 1000"
  tmux -S "$SOCKET" pipe-pane -t "=$SCREEN:" "cat >'$BATS_TEST_TMPDIR/$SCREEN.raw'"
  wait_until 10 test -e "$SCREEN.raw"
  touch "$SCREEN.go"
}
keys() { tmux -S "$SOCKET" send-keys -t "=$SCREEN:" "$@"; }
screen() { tmux -S "$SOCKET" capture-pane -p -t "=$SCREEN:"; }
shows() { screen | grep -qF -- "$1"; }
see() { wait_until 20 shows "$1"; }
log_has() { grep -qF -- "$1" "$AMP_STATE"/log/*.ndjson; }
# ended STATUS: the command has ended with it, and the terminal is as it was.
ended() {
  wait_until 20 test -s "$SCREEN.stty"
  [ "$(<"$SCREEN.status")" = "$1" ]
  grep -qE '(^| )icanon' "$SCREEN.stty"
  grep -qE '(^| )echo ' "$SCREEN.stty"
  grep -qE '(^| )isig' "$SCREEN.stty"
}
# No character of a hostile text reached the terminal as itself.
unharmed() {
  run -1 grep -qF $'\e]0;' "$SCREEN.raw"
  run -1 grep -qF $'\e[2Jflow' "$SCREEN.raw"
  run -1 grep -qF $'rejections\e[31m' "$SCREEN.raw"
  run -1 grep -qF $'\u202e' "$SCREEN.raw"
}

@test "80x24: one list, tabs and keys; rows are opened, filtered and sorted; quit leaves the terminal as it was" {
  term 80 24
  see "1 Tasks"
  see "T-2026-001"
  [ "$(screen | sed -n 3p)" = " Tasks 1  Agents  Questions 1  Inboxes 1  Lanes  Messages 4  Deadlines 4  Cost" ]
  see "Activity"
  keys Enter
  see "story"
  see "fix/units"
  keys G
  see 'over\x1b[2Jflow\x1b]0;owned\x07'
  keys Escape
  see "1 Tasks"
  keys 3
  see "hallucination_lock"
  see 'Three rejections\x1b[31m'
  keys Enter
  see "lift the suspension and continue"
  see "漢字"
  keys Escape 4 Enter
  see "task_dispatch-T-2026-044-3"
  keys Escape 6 o o
  see "TYPE▲"
  keys / "044-2"
  see "1 of 4 match"
  keys Enter Enter
  see '"msg_id": "task_dispatch-T-2026-044-2"'
  keys Escape '?'
  see "suspend the selected task or agent at once"
  keys q
  ended 0
  unharmed
}

@test "an inbox leads to its messages, a message to its history and its task, and Escape back" {
  term 80 24
  see "1 Tasks"
  keys 4 Enter
  see "inbox of executor"
  see "task_dispatch-T-2026-044-1"
  keys Down Enter
  see "─ task_dispatch-T-2026-044-2 ─"
  see "message ack_received  SENT → RECEIVED  executor"
  keys Enter
  see "─ T-2026-044 ─"
  see "story"
  keys Escape
  see "─ task_dispatch-T-2026-044-2 ─"
  keys Escape
  see "inbox of executor"
  # The selected message is still the second; it is handed over meanwhile, and the text follows.
  keys Enter
  see "─ task_dispatch-T-2026-044-2 ─"
  amp-route inbox executor --one >/dev/null
  amp-route inbox executor --one >/dev/null
  see "SENT → RECEIVED"
  see "RECEIVED → READ"
  keys Escape
  see "task_dispatch-T-2026-044-3"
  run -1 shows "task_dispatch-T-2026-044-2"
  keys Escape
  see "4 Inboxes"
  keys q
  ended 0
}

@test "the cost of AOP's responses counts once, and an estimate only without an actual cost" {
  need jq
  amp-validate --example aop/task >task
  session=$(jq -r .session.session_id task)
  jq -c '.task.task_id = "TASK-002"' task >second
  amp-validate --example aop/response | jq -c --arg s "$session" '.session_id = $s' >response
  jq -c '.task_id = "TASK-002" | del(.cost_tracking.actual_cost_usd) | .cost_tracking.estimated_cost_usd = 0.1500001' response >estimated
  amp-ack track -s aop <task >/dev/null
  amp-ack track -s aop <second >/dev/null
  amp-ack track -s aop <response >/dev/null
  amp-ack track -s aop <response >/dev/null
  amp-ack track -s aop <estimated >/dev/null
  amp-top -s aop --format ndjson >records
  amp-validate -S "$AMP_TOP/schemas/records/top.json" --formats records | cmp - records
  run jq -r 'select(.list == "summary") | "\(.cost_usd) \(.input_tokens) \(.output_tokens)"' records
  [ "$output" = "0.330001 25000 6400" ] # a part of a millionth counts as one
  run jq -r 'select(.list == "cost") | "\(.task_id) \(.agent) \(.cost_usd)"' records
  [ "${lines[*]}" = "TASK-002 of $session Emma 0.150001 TASK-001 of $session Emma 0.18" ] ||
    [ "${lines[*]}" = "TASK-001 of $session Emma 0.18 TASK-002 of $session Emma 0.150001" ]
}

@test "120x40 and 200x60: more lists, what is behind the selected row, and the activity; resizing; too small" {
  COLORS='' term 120 40 # with colours
  see "3 Questions"
  see "4 Inboxes"
  see "6 Messages"
  see "Activity"
  see "story"
  run -1 shows "8 Cost"
  tmux -S "$SOCKET" resize-window -t "=$SCREEN:" -x 200 -y 60
  see "8 Cost"
  see "7 Deadlines"
  see "5 Lanes"
  [ "$(screen | wc -l)" -eq 60 ]
  tmux -S "$SOCKET" resize-window -t "=$SCREEN:" -x 20 -y 5
  see "20x5 is too small"
  tmux -S "$SOCKET" resize-window -t "=$SCREEN:" -x 80 -y 24
  see "1 Tasks"
  grep -qF $'\e[38;5;' "$SCREEN.raw" # 256 colours
  keys C-c
  ended 0
  unharmed
}

@test "a question is answered by its keys, with a reason; another process's answer is seen at once" {
  term 80 24
  see "Questions 1"
  keys a
  see "answer T-2026-001:"
  keys "resume" Enter
  see "why:"
  keys "it is fine" Enter
  see "decided by $ME"
  keys 3
  see "no open questions"
  log_has '"decision":"resume"'
  log_has 'it is fine'
  run -0 --separate-stderr hitl-prompt list --json
  [ -z "$output" ]
  log_has '"channel":"terminal"'
  keys q
  ended 0
}

@test "what another process writes is shown without a key" {
  term 120 40
  see "hallucination_lock"
  hitl-prompt answer T-2026-001 terminate "no more" >/dev/null
  see "no open questions"
  keys q
  ended 0
}

@test "an answer that loses work is confirmed; Escape answers nothing" {
  term 80 24
  see "Questions 1"
  keys a
  see "answer T-2026-001:"
  keys terminate Enter
  see "why:"
  keys Enter
  see "terminate loses work. Type yes:"
  keys no Enter
  see "not answered"
  # Also by a word of people.
  keys a
  see "answer T-2026-001:"
  keys no Enter
  see "why:"
  keys Enter
  see "no loses work. Type yes:"
  keys no Enter
  see "not answered"
  keys a
  see "answer T-2026-001:"
  keys Escape
  keys Escape q
  ended 0
  run -1 log_has '"decision":"terminate"'
}

@test "suspend and resume a task by keys, and everything" {
  term 80 24
  see "T-2026-001"
  keys s
  see "suspend task T-2026-001"
  keys "too hot" Enter
  see "suspended 1"
  log_has 'too hot'
  keys r
  see "resume task T-2026-001"
  keys Enter
  see "is resumed"
  keys S
  see "suspend EVERYTHING"
  keys Enter
  see "all suspended by $ME"
  keys q
  ended 0
}

@test "an agent only looks: actions are refused with the code of the tools" {
  term 80 24 'AMP_AGENT=executor amp-top'
  see "read-only"
  keys a
  see "permission_denied: only people may answer escalations"
  keys S
  see "permission_denied: only people may suspend and resume work"
  keys q
  ended 0
}

@test "a state directory that cannot be written is shown, and actions are refused" {
  local drop=
  # root may write in any case, without this capability it may not.
  [ "$(id -u)" -ne 0 ] || drop='setpriv --bounding-set -dac_override,-dac_read_search '
  [ -z "$drop" ] || need setpriv
  chmod -R u-w "$AMP_STATE"
  sum=$(find "$AMP_STATE" -type f -exec sha256sum {} + | sort)
  term 80 24 "${drop}amp-top"
  see "read-only"
  see "T-2026-001"
  keys S
  see "the state directory cannot be written"
  keys 3 a
  see "the state directory cannot be written"
  keys q
  ended 0
  [ "$(find "$AMP_STATE" -type f -exec sha256sum {} + | sort)" = "$sum" ]
  chmod -R u+w "$AMP_STATE"
}

@test "stopped and continued; ended by TERM or a crash, the terminal is as it was" {
  term 80 24 'set -m; amp-top; stty -a >stopped; fg >/dev/null'
  see "1 Tasks"
  keys C-z
  wait_until 20 grep -qE '(^| )icanon' stopped
  see "1 Tasks"
  keys q
  ended 0
  tmux -S "$SOCKET" kill-session -t "=$SCREEN"
  local sig
  for sig in TERM SEGV; do
    SCREEN=t$BATS_TEST_NUMBER-$sig
    # shellcheck disable=SC2016
    term 80 24 'echo $$ >pid; ulimit -c 0; exec amp-top'
    see "1 Tasks"
    kill -s "$sig" "$(<pid)"
    if [ "$sig" = TERM ]; then ended 130; else ended 139; fi
    tmux -S "$SOCKET" kill-session -t "=$SCREEN"
  done
}

@test "without colours, in 8 colours, in ASCII" {
  term 80 24 'TERM=vt100 amp-top'
  see "1 Tasks"
  keys q
  ended 0
  run -1 grep -qE $'\e\\[[0-9;]*3[0-7]m' "$SCREEN.raw"
  tmux -S "$SOCKET" kill-session -t "=$SCREEN"
  SCREEN=$SCREEN-8
  COLORS='' term 80 24 'TERM=xterm amp-top'
  see "1 Tasks"
  keys q
  ended 0
  grep -qE $'\e\\[[0-9;]*3[0-7]m' "$SCREEN.raw"
  run -1 grep -qF $'\e[38;5;' "$SCREEN.raw"
  tmux -S "$SOCKET" kill-session -t "=$SCREEN"
  SCREEN=$SCREEN-ascii
  LOCALE=C term 80 24
  see "+- 1 Tasks ---"
  keys q
  ended 0
  run -1 grep -qP '[\x80-\xff]' "$SCREEN.raw"
}

@test "without a terminal: plain lines, and records that match their schema" {
  need jq
  run -0 --separate-stderr amp-top
  [[ "$output" == *"Tasks (1)"*"T-2026-001"*"Questions (1)"*'Three rejections\x1b[31m'*"Inboxes (1)"*"3/10"* ]]
  run -0 --separate-stderr env TERM=dumb amp-top --show questions
  [[ "$output" != *"Inboxes"* ]]
  amp-top --format ndjson >records
  amp-validate -S "$AMP_TOP/schemas/records/top.json" --formats records | cmp - records
  [ "$(jq -r 'select(.list == "inboxes") | "\(.agent) \(.waiting)/\(.bound)"' records)" = "executor 3/10" ]
  [ "$(jq -r 'select(.list == "summary") | "\(.total.questions) \(.total.messages) \(.in_inboxes)"' records)" = "1 4 3" ]
  run -69 --separate-stderr amp-top --state missing
  [[ "$stderr" == *"there is no state directory missing"* ]]
  # Reading changes nothing.
  cat "$AMP_STATE"/log/*.ndjson | cmp - <(cat "$AT"/state/log/*.ndjson)
}

@test "while nothing happens there is no system call, but for the minute's" {
  need strace
  not_under_valgrind "strace would show what valgrind does"
  term 80 24 'exec strace -qq -o trace amp-top'
  see "1 Tasks"
  keys 3
  see "hallucination_lock"
  # A new minute ends a quiet time once.
  wait_until 20 quiet trace 1.5
  hitl-prompt answer T-2026-001 resume >/dev/null
  see "no open questions"
  wait_until 20 quiet trace 1.5
  keys q
  ended 0
}
