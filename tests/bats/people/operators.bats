#!/usr/bin/env bats
# Who may decide what, and how many have to agree.

setup() {
  load ../lib
  load ../agents
  need jq
  need_tool hitl-prompt
  workplace
  unset AMP_IDENTITY # answers are signed
  export AMP_CONFIG=$BATS_TEST_TMPDIR/amp.json
  ME=$(id -un)
}

# configured JSON: the section hitl.
configured() {
  echo "{\"hitl\":$1}" >"$AMP_CONFIG"
}

# asked [JQ]: records a question; no answer is given to it.
asked() {
  : >none
  escalation "${1:-.}" >asked.ndjson
  run -1 hitl-prompt --state "$STATE" --trust-in asked.ndjson --answer none
  ID=$(jq -r .msg_id asked.ndjson)
}

# record JQ: of the question; .to is its state, .state the record.
record() {
  grep -h '"key":"escalation\.' "$STATE"/log/0*.ndjson | tail -1 | jq -c "$1"
}

@test "a person who is not an operator, or not for this reason, risk or proof, is refused and recorded" {
  configured '{"operators":["somebody"]}'
  asked
  run -77 hitl-prompt answer --state "$STATE" "$ID" resume
  grep -q "not_operator\|not in hitl.operators" <<<"$output"
  configured "{\"operators\":[{\"name\":\"$ME\",\"reasons\":[\"conflict\"]}]}"
  run -77 hitl-prompt answer --state "$STATE" "$ID" resume
  grep -q 'may not decide questions with the reason' <<<"$output"
  configured "{\"operators\":[{\"name\":\"$ME\",\"risks\":[\"low\"]}]}"
  run -77 hitl-prompt answer --state "$STATE" "$ID" resume
  grep -q 'with the risk "unknown"' <<<"$output"
  configured "{\"operators\":[{\"name\":\"$ME\",\"by\":[\"key\"]}]}"
  run -77 hitl-prompt answer --state "$STATE" "$ID" resume
  grep -q 'with the proof "login"' <<<"$output"
  configured "{\"operators\":[{\"name\":\"$ME\",\"protocols\":[\"sw4rm\"]}]}"
  run -77 hitl-prompt answer --state "$STATE" "$ID" resume
  [ "$(jq -r 'select(.type == "answer").code' "$STATE/error.ndjson" | tr '\n' ' ')" = "not_operator not_authorized not_authorized not_authorized not_authorized " ]
  # The same person may decide what is listed.
  configured "{\"operators\":[{\"name\":\"$ME\",\"reasons\":[\"hallucination_lock\"],\"by\":[\"login\"],\"protocols\":[\"amp\"]}]}"
  hitl-prompt answer --print --state "$STATE" "$ID" resume go on >out.ndjson
  jq -e '.sig.key and .msg.decision == "resume"' out.ndjson
}

@test "several have to agree: a person counts once, different answers do not add up" {
  configured '{"allow_operator":true,"operators":["ann","ben","eve"],"approvals":[{"reason":"hallucination_lock","need":2}]}'
  asked
  # A name that is not the login proves nothing where several are needed.
  run -77 hitl-prompt answer --state "$STATE" --operator ann "$ID" resume
  grep -q "several approvals are needed" <<<"$output"
  configured "{\"operators\":[\"$ME\",\"ann\"],\"approvals\":[{\"need\":2}]}"
  hitl-prompt answer --print --state "$STATE" "$ID" resume first >out.ndjson 2>err
  [ ! -s out.ndjson ]
  grep -q "1 more must agree" err
  [ "$(record '[.to, (.state.votes | length), .state.decision]')" = '["OPEN",1,null]' ]
  run -1 hitl-prompt answer --state "$STATE" "$ID" resume again
  grep -q "has answered this question" <<<"$output"
  [ "$(jq -r 'select(.type == "answer").code' "$STATE/error.ndjson" | tail -1)" = duplicate_vote ]
  # An answer against ends it at once.
  hitl-prompt answer --print --state "$STATE" "$ID" terminate >out.ndjson 2>err
  [ "$(jq -r .msg.decision out.ndjson)" = terminate ]
  [ "$(record '[.to, (.state.votes | length), .state.decision]')" = '["DECIDED",1,"terminate"]' ]
  run -1 hitl-prompt answer --state "$STATE" "$ID" resume late
  grep -q "already decided by $ME: terminate" <<<"$output"
}

# signer NAME PRINCIPAL: an SSH key that is trusted.
signer() {
  ssh-keygen -q -t ed25519 -N '' -C "$1" -f "$1"
  echo "$2 $(cut -d' ' -f1,2 "$1.pub")" >>trusted
}

@test "two persons with keys of their own decide; two keys of one person are one" {
  need ssh-keygen
  : >trusted
  chmod 600 trusted
  signer ann operator/ann
  signer ann2 operator/ann
  signer ben operator/ben
  signer eve executor/eve
  echo '{"hitl":{"operators":[{"name":"ann","by":["key"]},{"name":"ben","by":["key"]}],"approvals":[{"risk":"high","need":2}]}}' >"$AMP_CONFIG"
  asked
  answered() { hitl-prompt answer --print --state "$STATE" --allowed-signers trusted --key "$1" "$ID" "${@:2}"; }
  answered ann resume as ann >out.ndjson 2>err
  grep -q "1 more must agree" err
  run -1 answered ann2 resume as ann again
  grep -q "ann has answered this question" <<<"$output"
  # Another answer does not add up with it.
  answered ben redispatch as ben >out.ndjson 2>err
  grep -q "1 more must agree" err
  [ ! -s out.ndjson ]
  # A key that is not an operator's is a login, which may not decide here.
  run -77 answered eve resume
  configured "{\"operators\":[\"ann\",\"ben\",\"kim\"],\"approvals\":[{\"need\":2}]}"
  signer kim operator/kim
  answered kim resume as kim >out.ndjson 2>err
  jq -e '.msg.decision == "resume" and .msg.operator == "kim"' out.ndjson
  [ "$(jq -r .sig.key out.ndjson)" = "$(ssh-keygen -lf kim.pub | cut -d' ' -f2)" ]
  # Each vote is a decision that its person signed.
  [ "$(record '[.to, (.state.votes | map([.operator, .by, .action]))]')" = '["DECIDED",[["ann","key","resume"],["ben","key","redispatch"],["kim","key","resume"]]]' ]
  record '.state.votes[] | [.key, (.line | fromjson | .sig.key)] | unique | length' >same
  [ "$(sort -u same)" = 1 ]
}

@test "the coordinator counts the signatures itself: a decision that one person sends alone is refused" {
  need ssh-keygen
  need_tool task-dispatch
  : >trusted
  chmod 600 trusted
  signer ann operator/ann
  signer ben operator/ben
  configured '{"approvals":[{"reason":"hallucination_lock","need":2}]}'
  asked
  coordinated() { task-dispatch coordinate --state "$STATE" --allowed-signers trusted --in "$1"; }
  # A state of her own gives Ann a decision that she signed.
  echo '{}' >alone.json
  : >none
  run -1 hitl-prompt --state alone --trust-in asked.ndjson --answer none
  hitl-prompt answer --print --state alone --config alone.json --allowed-signers trusted --key ann "$ID" resume |
    jq -c 'select(.msg.type == "decision")' >alone.ndjson
  ends 75 coordinated alone.ndjson >out.ndjson 2>err
  got "$STATE/error.ndjson" '.code == "not_authorized" and .type == "decision"'
  [ "$(record .to)" = '"OPEN"' ]
  hitl-prompt answer --print --state "$STATE" --allowed-signers trusted --key ann "$ID" resume >first.ndjson
  hitl-prompt answer --print --state "$STATE" --allowed-signers trusted --key ben "$ID" resume >both.ndjson
  [ ! -s first.ndjson ]
  n=$(grep -c not_authorized "$STATE/error.ndjson")
  coordinated both.ndjson >out.ndjson 2>err
  [ "$(grep -c not_authorized "$STATE/error.ndjson")" = "$n" ]
  got_no out.ndjson '(.msg // .).code == "not_authorized"'
}

@test "the coordinator refuses a decision of an operator who may not decide the matter" {
  need ssh-keygen
  need_tool task-dispatch
  : >trusted
  chmod 600 trusted
  signer ann operator/ann
  signer ben operator/ben
  signer eve operator/eve
  configured '{}'
  asked
  echo '{}' >alone.json
  : >none
  run -1 hitl-prompt --state alone --trust-in asked.ndjson --answer none
  # sent NAME STATUS: a decision that NAME signed in a state of the own goes into the coordinator, which ends with STATUS.
  sent() {
    rm -rf "alone-$1"
    cp -R alone "alone-$1"
    hitl-prompt answer --print --state "alone-$1" --config alone.json --allowed-signers trusted --key "$1" "$ID" resume |
      jq -c 'select(.msg.type == "decision")' >alone.ndjson
    [ -s alone.ndjson ]
    ends "$2" task-dispatch coordinate --state "$STATE" --allowed-signers trusted --in alone.ndjson >out.ndjson 2>err
  }
  configured '{"operators":[{"name":"ann","reasons":["conflict"]},{"name":"ben","reasons":["hallucination_lock"]}]}'
  sent ann 75
  [ "$(jq -r 'select(.type == "decision") | .code' "$STATE/error.ndjson")" = not_authorized ]
  sent eve 75
  [ "$(jq -r 'select(.type == "decision") | .code' "$STATE/error.ndjson" | tail -1)" = not_operator ]
  sent ben 0
  [ "$(jq -r 'select(.type == "decision") | .code' "$STATE/error.ndjson" | grep -c '^not_')" = 2 ]
  # The vote of a person who may not decide it does not count.
  configured '{"operators":[{"name":"ann","reasons":["conflict"]},"ben"],"approvals":[{"need":2}]}'
  sent ben 1
  [ "$(jq -r 'select(.type == "decision") | .code' "$STATE/error.ndjson" | tail -1)" = not_authorized ]
  # Of an unsigned decision on a trusted input, the named operator counts.
  configured '{"operators":["ben"]}'
  jq -c '.msg | .operator = "mallory"' alone.ndjson | ends 1 task-dispatch coordinate --state "$STATE" >out.ndjson 2>err
  [ "$(jq -r 'select(.type == "decision") | .code' "$STATE/error.ndjson" | tail -1)" = not_operator ]
}

@test "the coordinator distinguishes an answer with a token from one by login" {
  need_tool task-dispatch
  configured '{}'
  asked
  # The same person may answer by login only, or with a token only; one process asks, another carries it out.
  conf='{"token_answers":"all","operators":[{"name":"'"$ME"'","by":["login","token"]}],"channels":{
    "scripts":[{"name":"webhook","settings":{"url":"http://127.0.0.1:1/x"},"operator":"'"$ME"'"}]}}'
  "$AMP_BUILD/tests/fixture/http-server" port log 3>&- &
  server=$!
  wait_until 30 test -s port
  configured "${conf/127.0.0.1:1/127.0.0.1:$(cat port)}"
  cp -R "$STATE" by-login
  setsid hitl-prompt --state "$STATE" </dev/null >out.ndjson 2>err 3>&- &
  filter=$!
  wait_until 30 test -s log
  body="{\"token\":\"$(jq -r .body.token log | head -1)\",\"answer\":\"resume\"}"
  printf 'POST / HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: %s\r\n\r\n%s' "${#body}" "$body" |
    hitl-prompt --state "$STATE" receive | grep -q '200 OK'
  wait "$filter"
  kill "$server"
  [ "$(record '.state.method')" = '"token"' ]
  hitl-prompt answer --print --state by-login "$ID" resume >login.ndjson
  jq -c 'select(.msg.type == "decision")' out.ndjson >token.ndjson
  [ "$(jq -r .sig.key token.ndjson)" != null ]
  # carried STATE FILE BY STATUS CODES: the refusals of the coordinator.
  carried() {
    configured "{\"operators\":[{\"name\":\"$ME\",\"by\":[\"$3\"]}]}"
    rm -rf carried && cp -R "$1" carried
    rc=0
    task-dispatch coordinate --state carried --in "$2" >carried.ndjson 2>err || rc=$?
    [ "$rc" = "$4" ]
    [ "$(jq -r 'select(.type == "decision").code' carried/error.ndjson 2>/dev/null | paste -sd' ')" = "$5" ]
  }
  carried "$STATE" token.ndjson login 75 not_authorized
  carried "$STATE" token.ndjson token 0 ""
  carried by-login login.ndjson token 75 not_authorized
  carried by-login login.ndjson login 0 ""
}
