# Signatures of what tools say for others: acknowledgements of an inbox, further attempts, requeued and replayed messages;
# and what is not passed on as signed.

load ../lib
load ../messages

setup() {
  need jq
  unset AMP_IDENTITY
  cd "$BATS_TEST_TMPDIR" || return
  export AMP_STATE=$PWD/state
}

# m [N]: a SW4RM message of cli for bob.
m() {
  sw4rm "${1:-1}1111111-1111-4111-8111-111111111111" cli DATA '{"note":"n"}' \
    ",\"timestamp\":\"$(date -u +%FT%TZ)\",\"idempotency_token\":\"t${1-}\"" | sed 's/^/{"to":"bob","msg":/; s/$/}/'
}
at() { date -u -d "+$1 sec" +%Y-%m-%dT%H:%M:%S.%3NZ; }
# again [OPTION...]: the further attempt at the message that was tracked.
again() {
  amp-ack sweep --now "$(at 60)" --retries 2 --backoff 1s,2s "$@" >/dev/null
  amp-ack sweep --now "$(at 70)" --retries 2 --backoff 1s,2s "$@"
}
signed() { jq -e 'has("sig")' "$1" >/dev/null; }
# principal FILE: who signed its only line.
principal() {
  [ "$(amp-sign verify <"$1" | wc -l)" -eq 1 ]
  amp-sign trust list | grep -F "$(jq -r .sig.key "$1")" >/dev/null
  grep -F "$(cut -d' ' -f2 <<<"$(ssh-keygen -lf "state/keys/$2.pub")")" "$1" >/dev/null
}

@test "acknowledgements of an inbox are signed as the role and the agent, and count in an input" {
  need ssh-keygen
  message task_dispatch | amp-sign --as coordinator >line
  amp-route -r '* => inbox:bob' <line
  run -0 --separate-stderr amp-route inbox bob --acks file:acks
  principal acks executor.bob
  # A file is not trusted. An unsigned one is refused, that of another agent's key as well.
  jq -c .msg acks >plain
  amp-sign --as reviewer/bob <plain >other
  signers=$PWD/state/keys/allowed_signers
  export AMP_STATE=$PWD/producer
  amp-ack track <line >/dev/null
  run -1 --separate-stderr amp-ack track --in plain
  [[ $stderr == *unsigned* ]]
  run -1 --separate-stderr amp-ack track --allowed-signers "$signers" --in other
  [[ $stderr == *bad_sender* ]]
  [ "$(amp-ack status --all --json | jq -r .state)" = SENT ]
  run -0 --separate-stderr amp-ack track --allowed-signers "$signers" --in acks
  [ "$(amp-ack status --all --json | jq -r .state)" = READ ]
}

@test "in other protocols the agent's own key signs them, and the router's RECEIVED; system signs failures" {
  need ssh-keygen
  m >line
  amp-route -r '* => inbox:bob' <line >router
  run -0 --separate-stderr amp-route inbox bob --acks file:acks --exec true
  [ "$(jq -r .msg.payload.ack_stage acks)" = READ ]
  [ "$(jq -r .to acks)" = cli ]
  principal acks bob
  message task_dispatch | amp-route -r '* => inbox:bob'
  run -1 --separate-stderr amp-route inbox bob --acks file:nacks --exec false
  [ "$(jq -r .msg.type nacks)" = nack ]
  principal nacks system
}

@test "the router signs RECEIVED as the agent" {
  need ssh-keygen
  edited "{\"eventId\":\"evt_1\",\"seq\":7,\"kind\":\"message\",\"sourceNodeId\":\"n\",\"sourceAgentId\":\"architect\",\
\"corrId\":\"corr_1\",\"createdAt\":\"$(date -u +%FT%T.000Z)\",\"payload\":{\"toAgents\":[\"bob\"],\"subject\":\"s\",\"body\":\"b\",\
\"priority\":\"normal\",\"expectsReply\":false},\"trace\":{\"attempt\":1}}" >line
  amp-route -r '* => inbox:bob' <line >router
  [ "$(jq -r .msg.payload.ackType router)" = accepted ]
  principal router bob
}

@test "with identity off, and for a name that keys do not have, they are unsigned" {
  message task_dispatch | amp-route -r '* => inbox:log'
  m | amp-route -r '* => inbox:log' >/dev/null
  run -0 --separate-stderr amp-route inbox log --acks file:acks
  [ "$(jq -c 'has("sig")' acks | paste -sd,)" = true,false ]
  m 2 | amp-route -r '* => inbox:bob' >/dev/null
  run -0 --separate-stderr amp-route inbox bob --acks file:off --identity off
  run -1 signed off
}

@test "an agent's command and prompt get the message, ports and lines the signed line" {
  message task_dispatch >plain
  amp-sign --as coordinator <plain >line
  amp-route -r '* => inbox:bob' <line
  run -0 --separate-stderr amp-route inbox bob --exec sh -c 'cat >got'
  printf %s "$(cat plain)" | cmp - got
  id=$(jq -r .msg_id plain)
  amp-route inbox bob --return "$id"
  run -0 --separate-stderr amp-route inbox bob --format text
  [ "${lines[1]}" = "$(cat plain)" ]
  amp-route inbox bob --return "$id"
  amp-route inbox bob | cmp - line
  amp-route --state other -r "* => exec-each:tee each" <line >/dev/null
  cmp line each
}

@test "a further attempt is signed with the key that signed the first, and keeps its recipient" {
  need ssh-keygen
  m | amp-sign --as cli >line
  amp-ack track <line >/dev/null
  again >second
  principal second cli
  [ "$(jq -r '"\(.to) \(.msg.retry_count)"' second)" = "bob 1" ]
  # The log has it as it was composed. Requeued by hand, it is signed again.
  amp-route --as other -r '* => dead' <second
  jq -c 'del(.sig)' second | amp-route --as other -r '* => reject' >/dev/null || [ $? -eq 1 ]
  amp-ack sweep --now "$(at 700)" --retries 0 >/dev/null
  amp-ack sweep --now "$(at 800)" --retries 0 >/dev/null
  amp-ack dead requeue --every >requeued
  [ "$(wc -l <requeued)" -ge 1 ]
  amp-sign verify <requeued | cmp - requeued
}

@test "it stays unsigned if the first has no valid signature of a key of the state" {
  need ssh-keygen
  # Unsigned; with another message's signature; by a key from outside.
  m >one
  m | amp-sign --as cli | sed 's/"note":"n"/"note":"x"/' >two
  ssh-keygen -q -t ed25519 -N '' -f outside
  echo "cli $(cut -d' ' -f1,2 outside.pub)" >signers
  m | amp-sign --key outside >three
  amp-sign verify --allowed-signers signers <three | cmp - three
  for file in one two three; do
    export AMP_STATE=$PWD/of-$file
    m 2 | amp-sign --as cli >/dev/null # the state has a key of cli
    amp-ack track <"$file" >/dev/null
    again --allowed-signers signers >second
    [ "$(jq -r '"\(.to) \(.msg.retry_count)"' second)" = "bob 1" ]
    run -1 signed second
  done
}

@test "a line with the id of a further attempt gets no signature by a requeue" {
  m | amp-sign --as cli >line
  amp-ack track <line >/dev/null
  again >second
  jq -c 'del(.sig) | .msg.payload.note = "evil" | .msg.content_length = 15' second >forged
  amp-route --as other -r '* => dead' <forged
  run -0 --separate-stderr amp-ack dead requeue --every
  [[ $output == *evil* ]]
  run -1 jq -e 'has("sig")' <<<"$output"
}

@test "requeue and replay print a signed line as it was recorded" {
  m | amp-sign --as cli >line
  amp-route -r '* => dead' <line
  amp-ack dead requeue --every | cmp - line
  amp-route replay | cmp - line
}

@test "a redacted message has no signature" {
  m | sed 's/"note":"n"/"note":"ghp_0123456789abcdefghijABCDEFGHIJ012345"/; s/"content_length":[0-9]*/"content_length":51/' |
    amp-sign --as cli >secret
  m 2 | amp-sign --as cli >plain
  amp-route -r '* => dead' <secret
  amp-route -r '* => dead' <plain
  amp-ack dead show --every >shown
  jq -se '[.[].msg | [.sig, .msg.payload.note]] | sort_by(.[1])[0] | .[0] == "[redacted:signature]" and .[1] == "[redacted:github_token]"' shown
  # One without a secret is printed as it is, and still verifies.
  jq -c '.msg | select(.sig | type == "object")' shown >kept
  cmp kept plain
  # So with a pattern, and nothing accepts the line.
  amp-ack --redact '^n$' dead show --every | jq -c '.msg' >none
  [ "$(jq -r .sig none | sort -u)" = "[redacted:signature]" ]
  run -1 --separate-stderr amp-sign verify <none
  [ -z "$output" ]
  amp-ack dead show --every --raw | jq -c .msg | sort >raw
  sort secret plain | cmp - raw
}

@test "a user's schema sees the message of a signed line" {
  message task_dispatch | amp-sign --as coordinator >line
  echo '{"required": ["msg_id"], "properties": {"payload": {"properties": {"branch": {"type": "integer"}}}}}' >schema
  run -1 --separate-stderr amp-validate --schema schema -e errors line
  [ "$(jq -r '"\(.code) \(.pointer)"' errors)" = "schema_violation /payload/branch" ]
  before=$(sed 's/"branch":.*/"branch":/' line)
  [ "$(jq .offset errors)" -eq "${#before}" ]
  sed 's/"integer"/"string"/' schema >good
  amp-validate --schema good line | cmp - line
  # A text is checked as it is.
  run -1 --separate-stderr amp-validate --schema good --document line
  [[ $stderr == *msg_id* ]]
}

@test "the notices of sweep are signed as system, also those of SW4RM; a reader with identity all accepts them" {
  need ssh-keygen
  m | amp-ack track >/dev/null
  # A nack to the producer, and the notice about an agent whose bind failed.
  repo repo
  git -C repo branch x
  git -C repo worktree add -q other x
  run -1 --separate-stderr worktree-bind -C repo bind ann --branch x
  amp-ack sweep --now "$(at 90000)" >told
  [ "$(jq -r '[.msg.message_type, .msg.producer_id, (.msg.payload.event // .msg.payload.ack_stage), has("sig")] | join(" ")' told |
    sort | paste -sd ,)" = "ACKNOWLEDGEMENT system TIMED_OUT true,NOTIFICATION system bind_failed true" ] || { cat told && false; }
  # Their tokens name the producer.
  jq -es 'all(.msg.idempotency_token | startswith("system:"))' told
  amp-validate told | cmp - told
  # By readers without the state directory.
  cp state/keys/allowed_signers signers
  run -0 --separate-stderr env -u AMP_STATE amp-sign verify --allowed-signers "$PWD/signers" <told
  [ "${#lines[@]}" -eq 2 ]
  AMP_STATE=$PWD/reader run -0 --separate-stderr amp-ack track --identity all --allowed-signers "$PWD/signers" --in told
  [ "${#lines[@]}" -eq 2 ]
  # From another key of the same name they are not.
  ssh-keygen -q -t ed25519 -N '' -C '' -f own
  echo "system $(cat own.pub)" >signers
  run -1 env -u AMP_STATE amp-sign verify --allowed-signers "$PWD/signers" <told
  # --from names another sender, whose key signs.
  m 2 | amp-ack track >/dev/null
  amp-ack sweep --now "$(at 90000)" --from watcher >told
  [ "$(jq -r '.msg.producer_id' told)" = watcher ]
  principal told watcher
}
