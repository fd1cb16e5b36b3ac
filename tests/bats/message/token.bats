#!/usr/bin/env bats
# Tokens that are bound to a key (Runtime Protocol level 3): amp-sign token, and what the tools do with messages
# of external agents.
load ../lib

setup_file() {
  cd "$BATS_FILE_TMPDIR" || exit
  local k
  for k in olga ann eve; do
    amp-sign keygen $k >/dev/null
  done
  amp-sign trust add --allowed-signers signers operator/olga olga.pub
  amp-sign trust add --allowed-signers signers ann ann.pub
  amp-sign trust add --allowed-signers signers eve eve.pub
  echo '{"rtp":{"level":3}}' >amp.json
  amp-sign token make --key olga --issuer operator/olga ann ann.pub >token
  jq -cn 'first(inputs | select(.base) | .line) | .sourceAgentId = "ann" | del(.expiresAt) | .sessionId = "ses-1"' \
    "$AMP_TOP/tests/fixture/protocols/rtp.jsonl" >plain
}

setup() {
  export AMP_IDENTITY=local
  cd "$BATS_TEST_TMPDIR"
  cp "$BATS_FILE_TMPDIR"/* .
  mkfifo in
}

# says KEY TOKEN NONCE [ID]: a signed message with a token.
says() {
  local id=${4:-evt_01JV3M2N8V1ZK4J2A0M7Y6P9QF}
  sed "s/evt_01JV3M2N8V1ZK4J2A0M7Y6P9QF/$id/; s/\"trace\":/\"auth\":{\"token\":\"$2\",\"nonce\":\"$3\"},\"trace\":/" plain |
    amp-sign --key "$1"
}

# track -STATUS FILE: the lines come through a FIFO, which is not a trusted input.
track() {
  cat "$2" >in &
  run "$1" --separate-stderr amp-ack track --in in --state state --config amp.json --allowed-signers signers
}

# refused CODE: it is on stderr and in the error log, and nothing passed.
refused() {
  [ -z "$output" ]
  [[ $stderr == *"$1"* ]]
  amp-ack audit --state state --format ndjson --code "$1" | grep -q .
}

@test "a token is made and checked" {
  run -0 --separate-stderr amp-sign token check --allowed-signers signers --subject ann --holder ann.pub <token
  jq -e '.iss == "operator/olga" and .sub == "ann" and .aud == "amp" and .exp - .iat >= 900 and .exp - .iat <= 901 and (.jti | length) == 36' \
    <<<"$output"
  [ "$(jq -r .cnf <<<"$output")" = "$(ssh-keygen -lf ann.pub | cut -d' ' -f2)" ]
}

@test "a token is refused with the exact code" {
  check() { run -1 --separate-stderr amp-sign token check --allowed-signers signers "${@:2}" <"$1"; }
  check token --audience other
  [[ $stderr == *token_wrong_audience* ]]
  check token --subject eve
  [[ $stderr == *token_wrong_subject* ]]
  check token --holder eve.pub
  [[ $stderr == *token_key_mismatch* ]]
  check token --nonce n
  [[ $stderr == *token_nonce_mismatch* ]]
  # Another key than that of the issuer.
  amp-sign token make --key eve --issuer operator/olga ann ann.pub >forged
  check forged
  [[ $stderr == *token_untrusted* ]]
  # Other claims with the signature of these.
  amp-sign token make --key olga --issuer operator/olga eve eve.pub >other
  echo "$(cut -d. -f1,2 other).$(cut -d. -f3 token)" >mixed
  check mixed
  [[ $stderr == *bad_signature* ]]
  echo "amp1.e30.AAAA" >empty
  check empty
  [[ $stderr == *token_malformed* ]]
  amp-sign token make --key olga --issuer operator/olga --ttl 1s ann ann.pub >short
  short_is_over() { [[ $(amp-sign token check --allowed-signers signers <short 2>&1) == *token_expired* ]]; }
  wait_until 10 short_is_over
  check short
  [[ $stderr == *token_expired* ]]
}

@test "an external agent's message passes with a token, and is not a replay of itself" {
  says ann "$(cat token)" n1 >m
  track -0 m
  cmp <(echo "$output") m
  track -0 m
}

@test "without a token, or with that of another, it is refused" {
  amp-sign --key ann <plain >m
  track -1 m
  refused token_missing
  amp-sign token make --key olga --issuer operator/olga eve eve.pub >eves
  says ann "$(cat eves)" n1 >m
  track -1 m
  refused token_wrong_subject
  # The token is ann's, the key is not.
  amp-sign token make --key olga --issuer operator/olga ann eve.pub >bound
  says ann "$(cat bound)" n1 >m
  track -1 m
  refused token_key_mismatch
  # Nobody admits himself.
  amp-sign token make --key ann --issuer ann ann ann.pub >own
  says ann "$(cat own)" n1 >m
  track -1 m
  refused token_untrusted
}

@test "a nonce is used once, and a token for one message only once" {
  says ann "$(cat token)" n1 evt_01JV3M2N8V1ZK4J2A0M7Y6P9Q1 >m1
  says ann "$(cat token)" n1 evt_01JV3M2N8V1ZK4J2A0M7Y6P9Q2 >m2
  says ann "$(cat token)" n2 evt_01JV3M2N8V1ZK4J2A0M7Y6P9Q3 >m3
  track -0 m1
  track -1 m2
  refused token_replayed
  track -0 m3
  amp-sign token make --once --key olga --issuer operator/olga ann ann.pub >once
  says ann "$(cat once)" a evt_01JV3M2N8V1ZK4J2A0M7Y6P9Q4 >m4
  says ann "$(cat once)" b evt_01JV3M2N8V1ZK4J2A0M7Y6P9Q5 >m5
  track -0 m4
  track -1 m5
  refused token_replayed
}

@test "an unsigned message needs a trusted input" {
  track -1 plain
  refused unsigned
  run -0 amp-ack track --state state --config amp.json --allowed-signers signers <plain
  # Below level 3 no token is needed.
  echo '{"rtp":{"level":2}}' >amp.json
  track -0 plain
}

@test "amp-route and agent-registry ask for tokens, too" {
  amp-sign --key ann <plain >m
  route() {
    cat "$2" >in &
    run "$1" --separate-stderr amp-route --in in -s state -c amp.json --allowed-signers signers -r '* => file:got'
  }
  route -1 m
  [[ $output == *token_missing* ]]
  says ann "$(cat token)" n1 >m2
  route -0 m2
  cmp got m2
  amp-ack audit --state state --kind token --format ndjson | jq -e '.code == "token_missing" and .from == "ann"'
  run -1 --separate-stderr agent-registry --state reg --config amp.json --allowed-signers signers <m
  [[ $stderr == *token_missing* ]]
  # Without a state nothing can be told from a replay.
  run -78 amp-route -c amp.json --allowed-signers signers -r '* => file:got' <m2
}

@test "records of expired tokens are removed by the sweep" {
  says ann "$(cat token)" n1 >m
  track -0 m
  run -0 amp-ack sweep --state state --now "$(date -ud '+1 hour' +%FT%TZ)"
  amp-ack log --state state --format ndjson | jq -se 'map(select(.kind == "nonce") | .event) == ["USE", "forget"]'
}

@test "the log is read by session" {
  says ann "$(cat token)" n1 evt_01JV3M2N8V1ZK4J2A0M7Y6P9Q1 >m1
  says ann "$(cat token)" n2 evt_01JV3M2N8V1ZK4J2A0M7Y6P9Q2 >m2
  sed -i 's/ses-1/ses-2/' plain
  says ann "$(cat token)" n3 evt_01JV3M2N8V1ZK4J2A0M7Y6P9Q3 >m3
  cat m1 m2 m3 >all
  track -0 all
  amp-ack log --state state --session ses-1 --format ndjson >rows
  [ "$(jq -r 'select(.kind == "message") | .id' rows | sort -u | tr '\n' ' ')" = \
    "evt_01JV3M2N8V1ZK4J2A0M7Y6P9Q1 evt_01JV3M2N8V1ZK4J2A0M7Y6P9Q2 " ]
  amp-ack log --state state --session ses-2 --format ndjson >rows
  grep -q evt_01JV3M2N8V1ZK4J2A0M7Y6P9Q3 rows
  run -1 grep -q evt_01JV3M2N8V1ZK4J2A0M7Y6P9Q1 rows
}

@test "a message with a token that arrives again, byte for byte, is handed over once" {
  says ann "$(cat token)" n1 >m
  cat m m >twice
  route() {
    cat twice >in &
    run -1 --separate-stderr amp-route --in in -s state -c amp.json --allowed-signers signers "$@"
  }
  printf '#!/bin/sh\ncat >>got\n' >handler
  chmod +x handler
  for port in "exec-each:$PWD/handler" file:lines inbox:bob; do
    rm -rf state got lines
    route -r "* => $port"
    [[ $stderr == *"handed over before"* ]]
    # Another run, and the log has it.
    route -r "* => $port"
    [ "$(amp-ack audit -s state --format ndjson --code token_replayed | wc -l)" -eq 3 ]
    case $port in
    exec*) n=$(wc -l <got) ;;
    file*) n=$(wc -l <lines) ;;
    inbox*) n=$(amp-route inbox bob -s state | wc -l) ;;
    esac
    [ "$n" -eq 1 ]
  done
  # After amp-ack track with the same state directory it is handed over, once.
  rm -rf state got
  track -0 m
  cat m >in &
  amp-route --in in -s state -c amp.json --allowed-signers signers -r "* => exec-each:$PWD/handler"
  [ "$(wc -l <got)" -eq 1 ]
}
