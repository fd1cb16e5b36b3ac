#!/usr/bin/env bats
# amp-validate --example: a valid message of each type.

load ../lib

normal() {
  tr 'A-Z.-' 'a-z__' | sort
}

@test "every example is valid without a warning, and new each time" {
  cd "$BATS_TEST_TMPDIR"
  amp-validate --example >types
  [ "$(wc -l <types)" -gt 100 ]
  # shellcheck disable=SC2046 # names without blanks
  amp-validate --example $(<types) >one
  # shellcheck disable=SC2046
  amp-validate --example $(<types) >two
  [ "$(wc -l <one)" -eq "$(wc -l <types)" ]
  amp-validate --strict -e said <one >passed
  cmp one passed
  [ ! -s said ]
  # Both runs fit one ledger: no id is used twice.
  cat one two | amp-ack track -s state >tracked 2>said || [ $? -eq 1 ] # some refer to messages that are missing
  run -1 grep -E 'duplicate_msg_id|amp-ack.track.*DUPLICATE_DETECTED' tracked said
}

@test "every schema has an example, but for those that other schemas extend, and parts of other messages" {
  local more='aof/envelope aop/envelope rtp/envelope sw4rm/envelope sw4rm/opaque sw4rm/negotiation_event sw4rm/worktree_control'
  more+=' sw4rm/data sw4rm/notification sw4rm/text aop/task_full amp/message aop/event'
  more+=' sw4rm/chunk sw4rm/batch' # their checksums are of other messages
  diff <(amp-validate --list | awk '{print $1}' | grep -E '^(amp|sw4rm|aop|aof|rtp)/' | grep -v /common | normal) <(amp-validate --example | normal) |
    sed -n 's/^[<>] //p' | while read -r name; do
    [[ " $more " == *" $name "* ]] || echo "$name"
  done >"$BATS_TEST_TMPDIR/missing" || :
  [ ! -s "$BATS_TEST_TMPDIR/missing" ] || {
    cat "$BATS_TEST_TMPDIR/missing" >&2
    return 1
  }
}

@test "types are found as the protocol spells them; others are refused" {
  [[ $(amp-validate --example TOOL_CALL) == *'"message_type":"TOOL_CALL"'* ]]
  [[ $(amp-validate --example completion-report) == *'"type":"completion.report"'* ]]
  [[ $(amp-validate --example sw4rm/negotiation_proposal) == *'"producer_id"'* ]]
  run -64 amp-validate --example ack
  [[ "$output" == *'amp/ack, sw4rm/ack, rtp/ack'* ]]
  run -64 amp-validate --example task_dispach
  [[ "$output" == *"did you mean 'task_dispatch'"* ]]
  run -64 amp-validate --example nothing-like-it
  [[ "$output" == *'--example list'* ]]
  run -64 amp-validate --example --list
}

@test "examples that wait for an answer get one from amp-ack" {
  cd "$BATS_TEST_TMPDIR"
  amp-validate --example task_dispatch review_request sw4rm/handoff_request tool_call TASK aof/handoff.request \
    task_create rtp/message | amp-ack track -s state >messages
  id() { sed -n "$1p" messages | grep -o "\"$2\":\"[^\"]*\"" | head -n 1 | cut -d '"' -f 4; }
  agent() { sed -n "$1p" messages | grep -o "\"$2\":\"[^\"]*\"" | head -n 1 | cut -d '"' -f 4; }
  {
    amp-ack accept "$(id 1 msg_id)" -s state --as executor/ada
    amp-ack complete "$(id 2 msg_id)" -s state --as reviewer/bob --data '{"decision":"approved"}'
    amp-ack accept "$(id 3 message_id)" -s state --as "$(agent 3 to_agent)"
    amp-ack complete "$(id 4 message_id)" -s state --as fs --data '{"ok":true}'
    amp-ack complete "$(id 5 session_id)/TASK-001/1" -s state --as Emma --text 'Read it.'
    amp-ack accept "$(id 6 messageId)" -s state --as "$(agent 6 toAgent)"
    amp-ack accept "$(id 7 eventId)" -s state --as "$(agent 7 toAgentId)" --eta 10m
    amp-ack reply "$(id 8 eventId)" -s state --as "$(agent 8 toAgentId)" --text 'Done.'
  } >answers
  [ "$(wc -l <answers)" -eq 8 ]
  amp-validate --strict <answers >passed
  cmp answers passed
}
