#!/usr/bin/env bats
# amp-ack token: the idempotency token of an operation.

load lib

setup() { need_tool amp-ack; }

# token TEXT PRODUCER OPERATION: of these bytes, without a line feed.
token() { printf %s "$1" | amp-ack token "${@:2}"; }

@test "a token is made of producer, operation and the bytes as they are" {
  params='{"a":1,"b":2}'
  [ "$(token "$params" agent work)" = agent:work:f65efee16e55e693 ]
  [ "$(token "$params" other work)" = other:work:b8dbde8912a6b867 ]
  [ "$(token "$params" agent other)" = agent:other:f52acb7079319be0 ]
  [ "$(token ✓ λ-agent 操作)" = λ-agent:操作:1237c18398ffb569 ]
  # Its digits are those that sha256sum gives; a line feed at the end is one byte more.
  for end in "" '\n'; do
    want=$(printf "a\nb\n$params$end" | sha256sum | cut -c 1-16)
    [ "$(printf "$params$end" | amp-ack token a b)" = "a:b:$want" ]
  done
  head -c 300000 /dev/zero >"$BATS_TEST_TMPDIR/zeros"
  want=$({ printf 'a\nb\n' && cat "$BATS_TEST_TMPDIR/zeros"; } | sha256sum | cut -c 1-16)
  [ "$(amp-ack token a b <"$BATS_TEST_TMPDIR/zeros")" = "a:b:$want" ]
}

@test "what could be read in two ways has no token" {
  no() {
    run -64 amp-ack token "$@" </dev/null
    [[ $output == "amp-ack: "* ]]
  }
  no $'a\nb' c
  no a $'b\n'
  no "" b
  no a ""
  no a
  no a b c
}
