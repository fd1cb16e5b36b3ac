#!/usr/bin/env bats
# amp-route inbox --exec: the command answers its message by a result file, $AMP_RESULT.
# plain: inbox.bats hands over by the same code

# shellcheck disable=SC2154 # stderr is set by run
load ../lib
load ../messages

unset AMP_IDENTITY

setup() {
  cd "$BATS_TEST_TMPDIR" || return 1
  export AMP_STATE=$PWD/state
  for t in good.sh bad.sh; do
    printf '#!/bin/sh\ncat >>seen\n' >"$t"
    chmod +x "$t"
  done
  : >answers
}

# sends ID: a SW4RM message for bob.
sends() {
  amp-validate --example sw4rm/data | jq -c --arg id "$1" '{to: "bob", msg: (.message_id = "5a1d9c8e-6b3f-4a87-8f5e-9000000000\($id)" |
    .correlation_id = .message_id | .sequence_number = ($id | tonumber))}' | amp-route -r '* => inbox:bob' >/dev/null
}
hands() { amp-route inbox bob --acks "file:$PWD/answers" "$@"; }
stage() { jq -r '.msg.payload | select(.ack_for_message_id != null) | .ack_stage' answers | paste -sd' '; }
# command SCRIPT: the script of good.sh, after the message was read.
command() { printf '%s\n' "$1" >>good.sh; }

@test "the outcome is composed, recorded and signed; without a file the message is READ as before" {
  sends 11
  command 'printf "{\"outcome\":\"complete\",\"text\":\"done\",\"data\":{\"n\":1}}" >"$AMP_RESULT.new"; mv "$AMP_RESULT.new" "$AMP_RESULT"'
  hands -x ./good.sh
  [ "$(stage)" = FULFILLED ]
  [ "$(jq -c '.msg.payload | [.note, .result.n]' answers)" = '["done",1]' ]
  amp-validate <answers | cmp - answers
  amp-sign verify -s "$AMP_STATE" <answers | cmp - answers
  [ -z "$(ls "$AMP_STATE/run/.inbox")" ]
  # It is never handed over again.
  run -1 hands -x ./good.sh
  [ "$(grep -o message_id seen | wc -l)" -eq 1 ]
  sends 12
  hands -x ./bad.sh
  [ "$(stage)" = "FULFILLED READ" ]
  # Without --acks there is no way for an answer.
  sends 13
  amp-route inbox bob -x sh -c 'echo "${AMP_RESULT-none}" >variable'
  [ "$(<variable)" = none ]
}

@test "exit statuses: 0 done, 75 once more, any other status failed" {
  sends 21
  hands -x sh -c 'echo "{\"outcome\":\"complete\",\"text\":\"x\"}" >$AMP_RESULT; exit 3'
  [ "$(jq -r '.msg.payload | .ack_stage + " " + .error_code + " " + .note' answers)" = "FAILED INTERNAL_ERROR x" ]
  : >answers
  sends 22
  hands -x sh -c 'echo "{\"outcome\":\"fail\",\"code\":\"overloaded\",\"text\":\"later\"}" >$AMP_RESULT'
  [ "$(jq -r '.msg.payload | .ack_stage + " " + .error_code' answers)" = "FAILED OVERLOADED" ]
  : >answers
  sends 23
  # 75: the file of this attempt does not count.
  hands -x sh -c 'echo x >>tries; if [ "$AMP_ATTEMPT" = 1 ]; then echo "{\"outcome\":\"fail\"}" >$AMP_RESULT; exit 75; fi
    [ ! -e "$AMP_RESULT" ] || exit 1; echo "{\"outcome\":\"complete\"}" >$AMP_RESULT'
  [ "$(wc -l <tries)" -eq 2 ]
  [ "$(stage)" = FULFILLED ]
}

@test "an answer that is not valid, or that the protocol does not have, makes a dead letter" {
  sends 31
  run -1 --separate-stderr hands -x sh -c 'echo "{\"outcome\":\"perhaps\"}" >$AMP_RESULT'
  [[ "$stderr" == *agent/outcome.json* ]]
  sends 32
  run -1 --separate-stderr hands -x sh -c 'ln -s /etc/passwd $AMP_RESULT'
  sends 33
  run -1 --separate-stderr hands -x sh -c 'mkfifo $AMP_RESULT'
  [[ "$stderr" == *"not a regular file"* ]]
  sends 34
  run -1 --separate-stderr hands -x sh -c 'echo "{\"outcome\":\"reply\"}" >$AMP_RESULT'
  [[ "$stderr" == *"the answer needs a text"* ]]
  [ "$(amp-ack dead list --json | jq -r .code | sort | paste -sd' ')" = "bad_answer bad_answer bad_answer missing_field" ] || {
    amp-ack dead list --json | jq -r .code >&2
    false
  }
}

@test "kill -9 between the result and its record: the command runs once, and one answer is sent" {
  local n
  for n in 1 2 3 4 5 6 7 8 9 10 11 12; do
    export AMP_STATE=$PWD/state.$n
    : >answers
    rm -f runs
    sends 41
    # The n-th write to the log after the command has written its result does not return.
    timeout 20 strace -qq -e trace=pwrite64,pwritev,write,writev,fdatasync,unlink \
      -e inject=pwrite64,pwritev,write,writev,fdatasync,unlink:signal=KILL:when="$n" \
      amp-route inbox bob --acks "file:$PWD/answers" \
      -x sh -c 'echo x >>runs; echo "{\"outcome\":\"complete\",\"text\":\"once\"}" >$AMP_RESULT.new; mv $AMP_RESULT.new $AMP_RESULT' \
      >/dev/null 2>&1 || :
    timeout 20 amp-route inbox bob --acks "file:$PWD/answers" \
      -x sh -c 'echo x >>runs; echo "{\"outcome\":\"complete\",\"text\":\"once\"}" >$AMP_RESULT' 2>/dev/null || [ $? -eq 1 ]
    [ "$(wc -l <runs)" -eq 1 ] || {
      echo "n=$n: the command ran $(wc -l <runs) times" >&2
      false
    }
    # The same line may be written twice, under one id.
    [ "$(jq -r '.msg | select(.payload.ack_stage == "FULFILLED") | .message_id' answers | sort -u | wc -l)" -eq 1 ] || {
      echo "n=$n: $(<answers)" >&2
      false
    }
    [ "$(amp-route inbox bob --list 2>/dev/null | wc -l)" -eq 0 ]
  done
}
