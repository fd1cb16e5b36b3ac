#!/usr/bin/env bats
# Signed messages between machines: SW4RM messages leave through network ports only signed (SW4RM §6.2), and
# --from-network takes only signed messages.
load ../lib
load ../messages

setup_file() {
  cd "$BATS_FILE_TMPDIR" || exit
  jq -cn 'first(inputs | select(.accept and (.line | type) == "object" and (.options | not))) | .line' \
    "$AMP_TOP/tests/fixture/protocols/sw4rm.jsonl" >in
  from=$(jq -r '.msg.producer_id' in)
  for k in key other; do amp-sign keygen $k >/dev/null; done
  amp-sign trust add --allowed-signers signers "$from,executor" key.pub
  amp-sign trust add --allowed-signers signers somebody other.pub
  amp-sign --key key <in >signed
  amp-sign --key other <in >foreign
  message task_result >result
  amp-sign --key key <result >result.signed
}

setup() {
  export AMP_IDENTITY=local
  cd "$BATS_TEST_TMPDIR"
  cp "$BATS_FILE_TMPDIR"/* .
}

# leave FILE OPTION...: towards an address that never answers.
leave() {
  amp-route --attempts 1 --attempt-timeout 100ms "${@:2}" -r '* => http://192.0.2.1/x' <"$1"
}

@test "a signed sw4rm message may leave by a network port" {
  run -69 --separate-stderr leave signed --allowed-signers signers
  [[ $output == *http_failed* ]]
  # Without keys, the receiver verifies it.
  run -69 --separate-stderr leave signed
  [[ $output == *http_failed* ]]
}

@test "an unsigned one may not" {
  run -1 --separate-stderr leave in --allowed-signers signers
  [[ $output == *unsigned* ]]
}

@test "nor one that is signed by another, or changed" {
  run -1 --separate-stderr leave foreign --allowed-signers signers
  [[ $output == *bad_sender* ]]
  sed 's/"value":"../"value":"AA/' signed >forged
  run -1 --separate-stderr leave forged --allowed-signers signers
  [[ $output == *bad_signature* ]]
  # Also not with the option, which is for unsigned messages.
  run -1 --separate-stderr leave forged --allowed-signers signers --allow-unsigned
  [[ $output == *bad_signature* ]]
}

@test "a signed message arrives as it is" {
  "$AMP_BUILD/tests/fixture/http-server" port log 8>&- &
  server=$!
  wait_until 30 test -s port
  run -0 --separate-stderr amp-route --allowed-signers signers -r "* => http://127.0.0.1:$(cat port)/ok" <signed
  kill $server
  cmp <(jq -c .body log) <(jq -c . signed)
}

@test "from a network, only signed messages are routed" {
  cat result result.signed >both
  run -1 --separate-stderr amp-route --from-network --allowed-signers signers -s state -r '* => file:got' <both
  cmp got result.signed
  jq -e '.code == "unsigned"' <<<"$output"
  run -0 --separate-stderr amp-ack audit --state state --format ndjson
  jq -e '.kind == "signature" and .code == "unsigned" and .from == "executor"' <<<"$output"
}

@test "from a network, an unknown key and a changed message are refused" {
  grep -v "$(cut -d' ' -f2 key.pub)" signers >fewer
  run -1 --separate-stderr amp-route --from-network --allowed-signers fewer -r '* => file:got' <result.signed
  jq -e '.code == "unknown_key"' <<<"$output"
  sed 's/complete/faulted/' result.signed >changed
  run -1 --separate-stderr amp-route --from-network --allowed-signers signers -r '* => file:got' <changed
  [ ! -s got ]
}

@test "with identity all, requests are routed and tracked only signed, also from standard input" {
  export AMP_IDENTITY=all
  # A file of the trusted keys, as --from-network has it.
  run -0 --separate-stderr amp-route --allowed-signers signers -r '* => file:got' <signed
  cmp got signed
  for what in in foreign; do
    [ $what = in ] && code=unsigned || code=bad_sender
    run -1 --separate-stderr amp-route -s state --allowed-signers signers -r '* => file:not' <$what
    [[ $stderr == *$code* && ! -s not ]]
    run -1 --separate-stderr amp-ack track -s tracked --allowed-signers signers <$what
    [[ -z $output && $stderr == *$code* ]]
    run -1 --separate-stderr amp-ack send --allowed-signers signers <$what
    [[ -z $output && $stderr == *$code* ]]
  done
  [ -z "$(amp-ack status -s tracked --all --json)" ]
  run -0 --separate-stderr amp-ack track -s tracked --allowed-signers signers <signed
  [ "$output" = "$(cat signed)" ]
  # The configuration says it as well; without keys nothing can be checked.
  echo '{"identity":{"require":"all"}}' >amp.json
  run -1 --separate-stderr env -u AMP_IDENTITY amp-route -c amp.json --allowed-signers signers -r '* => file:not' <in
  [[ $stderr == *unsigned* ]]
  run -64 --separate-stderr amp-route -r '* => file:not' <signed
  [[ $stderr == *"give --state or --allowed-signers"* ]]
  run -64 --separate-stderr amp-ack send <signed
}

@test "from a network, identities must be on" {
  AMP_IDENTITY=off run -64 amp-route --from-network --allowed-signers signers -r '* => file:got' <result.signed
}

@test "an agent gets the signed message without its outer recipient" {
  run -0 --separate-stderr amp-route -s state --agent agent-1=file:got -r '* => agents' <signed
  cmp got <(jq -c '{sig, msg}' signed)
}
