# Messages about worktrees, for the suites of worktree-bind.

# envelope N PRODUCER TYPE PAYLOAD: a message of SW4RM.
envelope() {
  printf '{"message_id":"6ae58b74-4e19-4b2f-9e7a-1a1a1fd2d%03d","producer_id":"%s",' "$1" "$2"
  printf '"correlation_id":"6ae58b74-4e19-4b2f-9e7a-1a1a1fd2d999","sequence_number":%d,' "$1"
  printf '"retry_count":0,"message_type":"%s","content_type":"application/json",' "$3"
  printf '"content_length":%d,"timestamp":"2026-01-01T00:00:00Z",' "${#4}"
  printf '"payload":%s}\n' "$4"
}

# control N OPERATION AGENT [MEMBERS [PRODUCER]]: a WORKTREE_CONTROL message.
control() {
  envelope "$1" "${5:-scheduler}" WORKTREE_CONTROL \
    "$(printf '{"operation":"%s","agent_id":"%s"%s}' "$2" "$3" "${4:+,$4}")"
}

# decision N INVOCATION DECISION [PRODUCER]: a person's HITL_DECISION.
decision() {
  envelope "$1" "${4:-ada}" HITL_DECISION \
    "{\"invocation_id\":\"$2\",\"decision\":\"$3\",\"rationale\":\"looked at it\"}"
}

# spare NAME: a worktree that nobody is bound to.
spare() { git worktree add -q -b "$1" "../work.worktrees/$1"; }

# answers [FILE]: the bindings in its acknowledgements, or the code of a refusal without one.
answers() {
  jq -c '.msg | select(.message_type == "ACKNOWLEDGEMENT").payload | .result // {error_code: (.error_code | ascii_downcase)}' "$@"
}
# states FILE: the states in it, in one line.
states() { answers "$1" | jq -r .state | tr '\n' ' '; }

# state_of AGENT: the state of its binding.
state_of() { worktree-bind status "$1" | cut -f 2; }
