# Signed lines, {"to":…,"sig":{…},"msg":…}: every tool reads the message in them. The signatures here are not valid;
# these tests are about the form.

load ../lib

setup() {
  need jq
  cases=$AMP_TOP/tests/fixture/protocols
  dir=$BATS_TEST_TMPDIR
  sig='{"key":"SHA256:0123456789012345678901234567890123456789012","alg":"Ed25519","time":"2026-01-31T12:00:00.000Z","value":"AAAA"}'
}

# sign: signs each line of standard input, without a check.
sign() {
  sed 's|^|{"sig":'"$sig"',"msg":|; s|$|}|'
}

# each_case FILE: the lines of its cases that are JSON and need no options.
each_case() {
  jq -n -R -c --arg file "$1" -f "$cases/expand.jq" "$cases/$1.jsonl" |
    jq -r 'select(.options == []).cases[] | select(.line | type == "object") | select(.line.sig == null) | .text'
}

@test "a signed message is judged like the message" {
  local p pin
  for p in amp sw4rm aop aof rtp; do
    each_case "$p" >"$dir/plain"
    [ "$(wc -l <"$dir/plain")" -gt 10 ]
    # A recipient beside a message stays outside.
    sign <"$dir/plain" | sed -E 's|^(\{"sig":.*,"msg":)\{"to":("[^"]*"),"msg":(.*)\}\}$|{"to":\2,\1\3}|; s|^(\{"to":"[^"]*",)\{"sig"|\1"sig"|' >"$dir/signed"
    for pin in "" "-p$p"; do
      amp-validate $pin --check "$dir/plain" >"$dir/of_plain" || [ $? -eq 1 ]
      amp-validate $pin --check -j 2 "$dir/signed" >"$dir/of_signed" || [ $? -eq 1 ]
      diff <(jq -c '[.ok, .protocol, .type, .id, [.findings[]? | [.code, .field, .pointer, .message]]]' "$dir/of_plain") \
        <(jq -c '[.ok, .protocol, .type, .id, [.findings[]? | [.code, .field, .pointer, .message]]]' "$dir/of_signed")
    done
  done
}

@test "a signed line passes byte for byte, and a finding has its offset in the line" {
  load ../messages
  line='{ "msg" : '$(message ack)' , "sig" : '$sig'}'
  amp-validate <<<"$line" >"$dir/out"
  diff <(printf '%s\n' "$line") "$dir/out"
  run -1 --separate-stderr amp-validate -e "$dir/errors" <<<"${line/\"READ\"/\"DEAD\"}"
  [ "$(jq -r .field "$dir/errors")" = ack_stage ]
  bad=${line/\"READ\"/\"DEAD\"} before=${line%%\"READ\"*}
  [ "$(jq .offset "$dir/errors")" -eq "${#before}" ]
}

@test "the same message signed twice is the same message" {
  load ../messages
  message task_dispatch >"$dir/plain"
  sign <"$dir/plain" >"$dir/one"
  sed 's/"AAAA"/"BBBB"/' "$dir/one" >"$dir/two"
  amp-ack track -s "$dir/state" <"$dir/one" >"$dir/out" 2>"$dir/err"
  amp-ack track -s "$dir/state" <"$dir/two" >>"$dir/out" 2>>"$dir/err"
  amp-ack track -s "$dir/state" <"$dir/plain" >>"$dir/out" 2>>"$dir/err"
  run -1 grep -q duplicate_msg_id "$dir/err"
  amp-ack log -s "$dir/state" >"$dir/log"
  cat "$dir/log"
  [ "$(jq -s 'map(select(.kind == "message")) | length' "$dir/log")" -eq 1 ]
  run -0 amp-validate --state "$dir/state" "$dir/two"
}

@test "predicates, extraction and conversion use the message" {
  load ../messages
  message task_dispatch | sign >"$dir/one"
  amp-route -r "type=task_dispatch => file:$dir/native" -r '* => file:/dev/null' <"$dir/one"
  amp-route -r "jq:.payload.branch != null => file:$dir/jq" -r '* => file:/dev/null' <"$dir/one"
  diff "$dir/one" "$dir/native"
  diff "$dir/one" "$dir/jq"
  { echo 'The message is:'; cat "$dir/one"; } | amp-validate --extract >"$dir/found"
  diff "$dir/one" "$dir/found"
  amp-validate --to aop "$dir/one" >"$dir/converted" || amp-validate --to rtp "$dir/one" >"$dir/converted"
  [ "$(jq -r 'has("sig")' "$dir/converted")" = false ]
}
