#!/usr/bin/env bats
# Switches of agents to other worktrees: who may allow them, how they end, and what is never shared.

load ../lib
load ../worktrees

setup() {
  need_tool worktree-bind
  cd "$BATS_TEST_TMPDIR" || return 1
  repo work
  cd work || return 1
  spare other
  worktree-bind bind bob -b task/x >/dev/null
}

@test "a switch is forbidden until a person allows it; the request is a question to the admin" {
  run -0 --separate-stderr worktree-bind switch bob other
  [[ $output == bob$'\t'SWITCH_PENDING$'\t'* && $stderr == *"worktree-bind approve bob"* ]]
  worktree-bind reject bob
  run -0 --separate-stderr worktree-bind switch --print bob other
  echo "$output" >question
  amp-validate <question >/dev/null
  jq -e '.to == "admin" and .msg.message_type == "HITL_INVOCATION" and
    .msg.payload.reason_type == "WORKTREE_OVERRIDE" and .msg.payload.context.agent_id == "bob"' question
  [[ $stderr == *"SWITCH_PENDING"* ]]
  [ ! -e .git/worktrees/other/amp-agent ]
  # No sender's word is enough, unless the configuration lists it.
  run -77 --separate-stderr worktree-bind < <(control 1 SWITCH_APPROVE bob)
  [ "$(answers <<<"$output" | jq -r '.state + " " + .error_code')" = "SWITCH_PENDING permission_denied" ]
  [[ $stderr == *"worktree.approvers"* ]]
  run -0 --separate-stderr worktree-bind --json approve bob
  [ "$(jq -r '.state + " " + .approved_by' <<<"$output")" = "BOUND_NON_HOME $(id -un)" ]
  [ "$(head -n 1 .git/worktrees/other/amp-agent)" = bob ]
  worktree-bind revoke bob
  [ "$(state_of bob)" = BOUND_HOME ]
  [ ! -e .git/worktrees/other/amp-agent ]
  for event in SWITCH_REQUEST SWITCH_APPROVE SWITCH_REVOKE; do
    grep -q "\"event\":\"$event\"" .git/amp/log/*.ndjson
  done
}

@test "hitl-prompt answers the question, and the answer allows or refuses the switch" {
  need_tool hitl-prompt
  worktree-bind switch --print bob other --switch-ttl 1h >question
  echo "approve for the fix" >answers
  hitl-prompt --state ../asked --answer answers <question >answer
  worktree-bind <answer >out
  [ "$(states out)" = "BOUND_NON_HOME " ]
  answers out | sed 's/\.[0-9]*Z/Z/g' >bound
  jq -e '(.until | fromdateiso8601) - (.since | fromdateiso8601) | . >= 3599 and . <= 3601' bound
  worktree-bind revoke bob
  worktree-bind switch --print bob other >question
  echo "deny not now" >answers
  hitl-prompt --state ../asked --answer answers <question >answer
  worktree-bind <answer >out
  [ "$(states out)" = "BOUND_HOME " ]
}

@test "the person's amp.json allows a switch, or names who may; a worktree's or an agent's does not" {
  mkdir -p "$XDG_CONFIG_HOME/amp"
  echo '{"worktree":{"switches":["bo*=oth*"],"switch_ttl":"30m"}}' >"$XDG_CONFIG_HOME/amp/amp.json"
  run -0 --separate-stderr worktree-bind --json switch bob other
  [ "$(jq -r '.state + " " + .approved_by' <<<"$output")" = "BOUND_NON_HOME policy:worktree.switches" ]
  worktree-bind revoke bob
  # As a message; a request that requires a person is asked in any case.
  {
    control 1 SWITCH_REQUEST bob '"target_worktree_id":"other"'
    control 2 SWITCH_REVOKE bob
    control 3 SWITCH_REQUEST bob '"target_worktree_id":"other","requires_hitl":true'
    control 4 SWITCH_REJECT bob
  } | worktree-bind >out
  [ "$(states out)" = "BOUND_NON_HOME BOUND_HOME SWITCH_PENDING BOUND_HOME " ]
  # An agent's process could name a file of its own.
  AMP_AGENT=bob run -0 --separate-stderr worktree-bind switch --print bob other
  [ "$(jq -r .msg.payload.reason_type <<<"$output")" = WORKTREE_OVERRIDE ]
  worktree-bind reject bob
  rm "$XDG_CONFIG_HOME/amp/amp.json"
  for place in ../work.worktrees/bob .git/amp; do
    echo '{"worktree":{"switches":["*=*"],"approvers":["scheduler"]}}' >$place/amp.json
  done
  (cd ../work.worktrees/bob && worktree-bind switch bob other >/dev/null 2>&1)
  [ "$(state_of bob)" = SWITCH_PENDING ]
  run -77 --separate-stderr worktree-bind < <(control 5 SWITCH_APPROVE bob)
  # With a setting of the person, the scheduler may.
  echo '{"worktree":{"approvers":["scheduler"]}}' >"$XDG_CONFIG_HOME/amp/amp.json"
  worktree-bind < <(control 6 SWITCH_APPROVE bob) >out
  [ "$(states out)" = "BOUND_NON_HOME " ]
}

@test "an agent neither approves its own switch nor touches that of another" {
  worktree-bind switch bob other >/dev/null
  AMP_AGENT=bob run -77 worktree-bind approve bob
  [[ $output == *"only people may approve a switch"* ]]
  AMP_AGENT=eve run -77 worktree-bind approve bob
  AMP_AGENT=eve run -77 worktree-bind reject bob
  [[ $output == *"only people and the agent itself may reject its switch"* ]]
  AMP_AGENT=eve run -77 worktree-bind switch bob other
  (cd ../work.worktrees/bob && run -77 worktree-bind approve bob)
  run -77 worktree-bind --approver bob < <(control 1 SWITCH_APPROVE bob "" bob)
  [ "$(state_of bob)" = SWITCH_PENDING ]
  # Its own it may give up.
  AMP_AGENT=bob worktree-bind reject bob
  [ "$(state_of bob)" = BOUND_HOME ]
}

@test "what is not there, is locked, is its own or leads outside is no target" {
  git worktree lock ../work.worktrees/other
  run -1 worktree-bind switch bob other
  [[ $output == *"is locked"* ]]
  run -1 worktree-bind switch bob nothing
  [[ $output == *"no worktree of"* ]]
  run -1 worktree-bind switch bob bob
  [[ $output == *"own worktree"* ]]
  run -77 worktree-bind switch bob ../work
  run -1 worktree-bind switch eve other
  [[ $output == *SWITCH_REQUEST* ]]
  [ "$(state_of bob)" = BOUND_HOME ]
}

@test "a worktree is never bound to two agents: many at once, one gets it" {
  for i in 1 2 3 4 5 6; do worktree-bind bind "a$i" -b "t/$i" >/dev/null; done
  for i in 1 2 3 4 5 6; do worktree-bind switch "a$i" other >/dev/null 2>&1; done
  git worktree add -q -b free ../free
  for i in 1 2 3 4 5 6; do
    worktree-bind approve "a$i" >"approve.$i" 2>&1 &
    worktree-bind bind "b$i" --path ../free -b free >"bind.$i" 2>&1 &
  done
  wait
  worktree-bind list >all
  [ "$(grep -c "work.worktrees/other" all)" -eq 1 ]
  [ "$(grep BOUND_HOME all | grep -c "/free	")" -eq 1 ]
  grep -qx "$(cut -f 1 <(grep "work.worktrees/other" all))" .git/worktrees/other/amp-agent
  grep -qx "$(cut -f 1 <(grep "/free	" all | grep BOUND_HOME))" .git/worktrees/free/amp-agent
}

@test "the time limit: amp-ack watch returns the agent, also if it starts too late" {
  need_tool amp-ack
  worktree-bind switch bob other --switch-ttl 1ms >/dev/null 2>&1
  worktree-bind approve bob >/dev/null
  [ -e .git/worktrees/other/amp-agent ]
  amp-ack watch --until-idle --state .git/amp
  [ ! -e .git/worktrees/other/amp-agent ]
  grep -q '"event":"TTL_EXPIRED"' .git/amp/log/*.ndjson
  [ "$(state_of bob)" = BOUND_HOME ]
  # Without the repository's entry the record is enough.
  worktree-bind switch bob other >/dev/null 2>&1
  worktree-bind approve bob >/dev/null
  git worktree remove --force ../work.worktrees/other
  amp-ack sweep --state .git/amp --now 2099-01-01T00:00:00Z
  [ "$(state_of bob)" = BOUND_HOME ]
}

@test "a failed bind is repeated three times, further and further apart, then the operator hears of it" {
  need_tool amp-ack
  worktree-bind unbind bob >/dev/null
  git worktree add -q ../taken -b busy
  run -1 worktree-bind bind ann -b busy
  since=$(worktree-bind --json list | jq 'select(.agent_id == "ann") | .since | sub("\\.[0-9]+Z"; "Z") | fromdateiso8601')
  at() { amp-ack sweep --state .git/amp --now "$(date -u -d "@$((since + $1))" +%FT%TZ)"; }
  tries() { grep -c '"event":"BIND_ERROR"' .git/amp/log/*.ndjson; }
  at 3 && [ "$(tries)" -eq 1 ]
  at 7 && [ "$(tries)" -eq 2 ]
  at 15 && [ "$(tries)" -eq 2 ]
  at 19 && [ "$(tries)" -eq 3 ]
  at 35 && [ "$(tries)" -eq 3 ]
  at 41 && [ "$(tries)" -eq 4 ]
  # That was the last; at 60 s there is one notice.
  at 58 >said && [ ! -s said ]
  at 62 >said && [ "$(tries)" -eq 4 ]
  jq -e '.msg.payload | .event == "bind_failed" and .tries == 4 and .reason == "worktree_locked"' said
  at 4000 >said && [ ! -s said ]
  [ "$(state_of ann)" = BIND_FAILED ]
}

@test "a retry that succeeds binds the agent, where it was asked for" {
  need_tool amp-ack
  git worktree add -q ../taken -b busy
  run -1 worktree-bind bind ann -b busy --path ../work.worktrees/place
  git worktree remove ../taken
  (cd / && amp-ack sweep --state "$OLDPWD/.git/amp" --now "$(date -u -d '+7 seconds' +%FT%TZ)")
  [ "$(worktree-bind --json status ann | jq -r '.state + " " + .worktree_id')" = "BOUND_HOME $PWD.worktrees/place" ]
  [ "$(git -C ../work.worktrees/place symbolic-ref --short HEAD)" = busy ]
}

@test "a decision counts only if an operator signed it, or its input is trusted" {
  need_tool amp-sign hitl-prompt
  unset AMP_IDENTITY
  export AMP_STATE=$PWD/.git/amp
  mkfifo in
  # through COMMAND...: its output goes through a FIFO with a name, which any process can open.
  through() {
    "$@" >in &
    worktree-bind <in
  }
  worktree-bind switch --print bob other >question
  id=$(jq -r .msg.payload.invocation_id question)
  decision 1 "$id" approve >forged
  run -1 --separate-stderr through cat forged
  [ "$(answers <<<"$output" | jq -r '.state + " " + .error_code')" = "SWITCH_PENDING unsigned" ]
  amp-sign --as executor/bob <forged >signed
  run -77 --separate-stderr through cat signed
  [ "$(answers <<<"$output" | jq -r '.state + " " + .error_code')" = "SWITCH_PENDING permission_denied" ]
  amp-sign --as executor/eve <forged >signed
  run -1 --separate-stderr through cat signed
  [ "$(answers <<<"$output" | jq -r '.state + " " + .error_code')" = "SWITCH_PENDING bad_sender" ]
  sed 's/looked at it/LOOKED at it/' signed >changed
  run -1 --separate-stderr through cat changed
  [ "$(answers <<<"$output" | jq -r .error_code)" = bad_signature ]
  for code in unsigned bad_sender bad_signature; do
    grep -q "\"code\":\"$code\"" .git/amp/error.ndjson
  done
  # hitl-prompt signs with the key of the operator.
  echo "approve for the fix" >answers
  hitl-prompt --answer answers <question | grep HITL_DECISION >answer
  [ "$(jq -r .sig.alg answer)" = Ed25519 ]
  through cat answer >out
  [ "$(states out)" = "BOUND_NON_HOME " ]
}
