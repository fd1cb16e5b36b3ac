#!/usr/bin/env bats
# Messages in chunks and in batches (SW4RM §5.4, amp-transport(7)).

load ../lib
load ../messages

setup_file() {
  cd "$BATS_FILE_TMPDIR" || return 1
  # big.N: messages of 5,000 bytes; small.N: of 50. lines.N: their chunks of 1,000 bytes.
  local i
  for i in 1 2 3; do
    sw4rm "$i" 5000 >big.$i
    sw4rm "4$i" 50 >small.$i
    amp-route --chunk 1000 --takes "file:lines.$i=chunks" -r "* => file:lines.$i" <big.$i || return 1
  done
  cat big.1 small.1 big.2 small.2 small.3 big.3 >mixed
}

setup() {
  cd "$BATS_TEST_TMPDIR" || return 1
  ln -s "$BATS_FILE_TMPDIR" d
}

# sw4rm N BYTES: a DATA message with the number N, sent by cli, whose title has BYTES bytes.
sw4rm() {
  local title
  title=$(head -c "$2" /dev/zero | tr '\0' x)
  printf '{"message_id":"5a1d9c8e-6b3f-4a87-8f5e-91a2c0ab%04d","producer_id":"cli","correlation_id":"7f3f41a2-2017-4b8f-9b8b-2ad3caaee001","sequence_number":%d,"retry_count":0,"message_type":"DATA","content_type":"application/json","content_length":%d,"payload":{"title":"%s"}}\n' \
    "$1" "$1" "$(($2 + 12))" "$title"
}

types() { sed 's/.*"content_type":"application\/\([^"]*\)".*/\1/' "$1" | uniq -c | xargs; }

# codes FILE: the codes of the refusals in it, and what they are about.
codes() { sed -n 's/.*"ack_for_message_id":"[^"]*\(....\)","ack_stage":"\([A-Z]*\)","error_code":"\([A-Z_]*\)".*/\1 \2 \3/p' "$1"; }

@test "through a FIFO that takes both, messages arrive byte for byte and in their order" {
  mkfifo f
  amp-route -r '* => file:got' <f >back &
  amp-route --chunk 1K --batch 4 --takes fifo:f=chunks,batches -r '* => fifo:f' <d/mixed
  wait $!
  cmp d/mixed got
  [ ! -s back ]
  # Every line on the way is a valid message; the three that were together are one batch or two.
  amp-route --chunk 1K --batch 4 --takes file:way=chunks,batches -r '* => file:way' <d/mixed
  amp-validate <way >/dev/null
  [ "$(types way)" = '6 vnd.amp.chunk+json 1 json 6 vnd.amp.chunk+json 1 vnd.amp.batch+json 6 vnd.amp.chunk+json' ]
  # A reader that takes batches only gets large messages complete, and one that takes nothing gets all of them so.
  amp-route --chunk 1K --batch 4 --takes file:batches=batches -r '* => file:batches' <d/mixed
  [ "$(types batches)" = '1 vnd.amp.batch+json 1 vnd.amp.batch+json' ] || [ "$(types batches)" = '2 vnd.amp.batch+json' ]
  amp-route --chunk 1K --batch 4 --takes file:other=chunks -r '* => file:plain' <d/mixed
  cmp d/mixed plain
  run -64 amp-route --chunk 1K --takes file:x=parts -r '* => file:x' <d/mixed
}

@test "chunks in any order, repeated and late, make the message byte for byte" {
  { tac d/lines.1 && cat d/lines.1 && sed -n '3p;3p;1p;2p;6p;5p;4p;2p' d/lines.2; } >in
  cat d/big.1 d/big.2 >want
  amp-route -r '* => file:memory' <in
  cmp want memory
  amp-route --state s -r '* => file:durable' <in
  cmp want durable
  [ -z "$(ls s/transfers)" ]
  # The same through the other tools that take messages.
  amp-ack track --state t <in >tracked
  cmp want tracked
  grep -q '"message.5a1d9c8e-6b3f-4a87-8f5e-91a2c0ab0001"' t/log/000001.ndjson
  timeout 20 task-dispatch run --state u -x true <in >passed
  cmp want passed
  # Two senders with the same transfer id do not mix.
  sed 's/"producer_id":"amp-route"/"producer_id":"other"/' d/lines.1 >other
  sed -n 1,3p d/lines.1 >two && cat other >>two && sed -n '4,$p' d/lines.1 >>two
  amp-route -r '* => file:both' <two
  [ "$(sort -u both | wc -l) $(wc -l <both)" = '1 2' ]
}

@test "a wrong chunk fails its message alone, with a code and an answer to its sender" {
  # Other bytes; another count; the place of another one with other bytes; a digest of the message that is not true.
  sed '2s/"sha256":"./"sha256":"g/; 2s/"sha256":"g/"sha256":"0/' d/lines.1 >in
  sed -n 1p d/lines.1 >count && sed -n '2s/"total_size":[0-9]*/"total_size":999/p' d/lines.1 >>count
  sed -n 1p d/lines.2 >twice && sed -n '1s/"index":0/"index":1/; 1s/"sha256":"0\?./&/; 1p' d/lines.2 >>twice
  sed -n '2s/"index":1/"index":0/p' d/lines.2 >>twice
  sed 's/"total_sha256":"[0-9a-f]*"/"total_sha256":"'"$(printf '0%.0s' {1..64})"'"/' d/lines.3 >digest
  for way in in count twice digest; do
    for state in '' "--state s.$way"; do
      # shellcheck disable=SC2086 # no state is no option
      cat $way d/small.1 d/small.2 | ends 1 amp-route $state -r '* => file:got' >back 2>err
      cat d/small.1 d/small.2 | cmp - got
      rm got
      [ "$(codes back | wc -l)" -eq 1 ]
      [[ $(codes back) == *' FAILED PARTIAL_DELIVERY' ]]
      grep -q 'chunk_corrupt\|chunk_mismatch' err
      amp-validate <back >/dev/null
    done
    grep -q '"code":"chunk_' s.$way/error.ndjson
    [ -z "$(ls s.$way/transfers)" ]
  done
}

@test "a message past a limit is refused with its code" {
  refused() {
    printf '%s' "{\"transport\":{$1}}" >amp.json
    cat "${@:3}" | ends 1 amp-route --config amp.json -r '* => file:got' >back 2>err
    codes back >got_codes
    grep -q " FAILED $2\$" got_codes
  }
  refused '"message_bytes":4096' OVERSIZE_PAYLOAD d/lines.1
  refused '"chunks":2' OVERSIZE_PAYLOAD d/lines.1
  refused '"unfinished_bytes":8192' BUFFER_FULL <(sed '$d' d/lines.1) d/lines.2
  refused '"unfinished":1' BUFFER_FULL <(sed '$d' d/lines.1) d/lines.2
  # A message that ended makes room for the next one.
  echo '{"transport":{"unfinished":1}}' >amp.json
  cat d/lines.1 d/lines.2 | amp-route --config amp.json -r '* => file:all'
  [ "$(wc -l <all)" -eq 2 ]
  cat d/small.1 d/small.2 d/small.3 | amp-route --batch 4 --takes file:b=batches -r '* => file:b'
  refused '"batch":2' OVERSIZE_PAYLOAD b
}

@test "a batch is one unit for the transport, and its messages are on their own afterwards" {
  cat d/small.1 d/small.2 d/small.3 | amp-route --batch 4 --takes file:way=batches -r '* => file:way'
  [ "$(wc -l <way)" -eq 1 ]
  # One of its messages is invalid: it is refused, and the others are taken.
  jq -c '.payload.messages[1] |= sub("DATA"; "TEXT")' way >changed
  ends 1 amp-route -r '* => file:got' <changed >back 2>err
  [ "$(codes back)" = "$(jq -r '.message_id[-4:]' way) FAILED PARTIAL_DELIVERY" ]
  grep -q batch_corrupt err
  [ ! -s got ]
  messages=$(jq -c '.payload.messages[1] |= sub("\"DATA\""; "\"TEXT\"") | .payload.messages' way)
  sum=$(jq -r '.[]' <<<"$messages" | sha256sum | cut -d' ' -f1)
  jq -c --argjson m "$messages" --arg s "$sum" '.payload.messages = $m | .payload.sha256 = $s' way >changed
  ends 1 amp-route -r '* => file:some' <changed >back 2>err
  cat d/small.1 d/small.3 | cmp - some
  [ "$(codes back)" = '0042 REJECTED UNSUPPORTED_MESSAGE_TYPE' ]
  # With a state each of them has its own record.
  amp-ack track --state s <way >tracked
  cat d/small.1 d/small.2 d/small.3 | cmp - tracked
}

@test "killed between two chunks, a receiver goes on where it was" {
  mkfifo f
  amp-route --state s -r '* => file:got' <f &
  pid=$!
  exec 5>f
  sed -n 1,3p d/lines.1 >&5
  wait_until 10 grep -qs '"got":3' s/log/000001.ndjson
  kill -9 $pid
  wait $pid || true
  exec 5>&-
  sed -n '3,$p' d/lines.1 | amp-route --state s -r '* => file:got'
  cmp d/big.1 got
}

@test "a reader that is killed in the middle of a message leaves it to the next one" {
  mkfifo in f
  amp-route --state s --chunk 1000 --takes fifo:f=chunks -r '* => fifo:f' --hold --in in &
  router=$!
  cat d/big.1 d/small.1 >in
  { read -r _ && read -r _ && read -r _; } <f
  cat d/small.2 >in # which shows the router that the reader is gone
  wait_until 10 grep -qs 0042 s/log/000001.ndjson
  amp-route -r '* => file:got' <f 2>err &
  reader=$!
  # The chunks that the first one may have lost come again beside the others.
  wait_until 20 eval "grep -qs ab0001 got && grep -qs ab0041 got && grep -qs ab0042 got"
  kill -TERM $router
  wait $router || true
  wait $reader || true
  # Each of them arrived, complete.
  cat d/big.1 d/small.1 d/small.2 | sort | cmp - <(sort -u got)
}

@test "amp-ack sweep drops an unfinished message and tells its sender" {
  echo '{"transport":{"chunk_timeout":"10ms"}}' >amp.json
  sed '$d' d/lines.1 | amp-route --config amp.json --state s -r '* => file:got'
  [ ! -s got ]
  wait_until 10 eval 'amp-ack sweep --config amp.json --state s >back && [ -s back ]'
  [ "$(codes back)" = '0001 FAILED PARTIAL_DELIVERY' ]
  amp-validate <back >/dev/null
  [ -z "$(ls s/transfers)" ]
  # Without a state it is dropped at the end of input.
  sed '$d' d/lines.2 | ends 1 amp-route -r '* => file:got' >back
  [ "$(codes back)" = '0002 FAILED PARTIAL_DELIVERY' ]
}

@test "a signature is that of the message: it survives chunks, and a changed byte is found" {
  unset AMP_IDENTITY
  amp-sign keygen key >/dev/null
  amp-sign trust add --allowed-signers signers cli key.pub
  amp-sign --key key <d/big.1 >signed
  cut() { amp-route --chunk 1000 --takes "file:$1=chunks" -r "* => file:$1"; }
  cut way <signed
  [ "$(types way)" = '6 vnd.amp.chunk+json' ]
  tac way | amp-sign verify --allowed-signers signers | cmp signed -
  network() { amp-route --from-network --allowed-signers signers --state "s.$1" -r "* => file:got.$1" <"$1"; }
  network way
  cmp signed got.way
  # Changed before it was cut, so that all digests are right; unsigned; changed on the way.
  sed 's/xxx"/xxy"/' signed | cut forged
  cut unsigned <d/big.1
  sed '3s/"data":"..../"data":"AAAA/' way >corrupt
  for code in bad_signature:forged unsigned:unsigned chunk_corrupt:corrupt; do
    run -1 --separate-stderr network "${code#*:}"
    [[ $stderr == *" ${code%:*}: "* ]]
    [ ! -s "got.${code#*:}" ]
  done
}

@test "work is submitted in chunks" {
  local work
  work="{\"task_id\":\"t-1\",\"scope\":\"res-1\",\"params\":{\"note\":\"$(head -c 3000 /dev/zero | tr '\0' x)\"}}"
  sed "s/\"content_length\":.*/\"content_length\":${#work},\"payload\":$work}/" d/small.1 >work
  amp-route --chunk 1000 --takes file:way=chunks -r '* => file:way' <work
  tac way | task-queue submit --state s --type builder >answers
  [ "$(jq -c '[.ok, .message_id[-4:], .position]' answers)" = '[true,"0041",1]' ]
  # The log has the line as it was sent.
  grep -qF -f work s/log/000001.ndjson
}

@test "killed when it had the last chunk, a receiver that starts again takes the message" {
  native "a preloaded shim must come first"
  local what shim=$AMP_BUILD/tests/fault/faildisk.so
  # killed STATE TEXT TOOL...: it is killed when it writes this text to the log.
  killed() {
    AMP_FAULT_MATCH=log/0 AMP_FAULT_ROOT=$PWD/$1 AMP_FAULT=write:1:KILL AMP_FAULT_TEXT=$2 LD_PRELOAD=$shim \
      "${@:3}" --state "$1" <d/lines.1 >/dev/null 2>&1 && return 1
    [ $? -eq 137 ]
  }
  for what in '"key":"message.5a1d' '"event":"taken"'; do
    killed "s${#what}" "$what" amp-route -r '* => file:got'
    [ ! -s got ]
    amp-route --state "s${#what}" -r '* => file:got' </dev/null
    # What was in the router's outbox too may come twice.
    sort -u got | cmp d/big.1 -
    [ -z "$(ls "s${#what}/transfers")" ]
    rm got
  done
  # Others record the message and the end of the transfer at once.
  killed c '"event":"taken"' task-dispatch coordinate
  task-dispatch coordinate --state c </dev/null >/dev/null
  grep -q '"event":"resume"' c/log/000001.ndjson
  grep '"key":"transfer' c/log/000001.ndjson | tail -n 1 | grep '"to":"COMPLETE"'
  [ -z "$(ls c/transfers)" ]
  # A router of another name does not take it; if nobody does, the sender is told.
  echo '{"transport":{"chunk_timeout":"10ms"}}' >amp.json
  killed t '"key":"message.5a1d' amp-route --config amp.json -r '* => file:got'
  amp-route --state t --as other -r '* => file:got' </dev/null
  [ ! -s got ]
  wait_until 10 eval 'amp-ack sweep --config amp.json --state t >back && [ -s back ]'
  [ "$(codes back)" = '0001 FAILED PARTIAL_DELIVERY' ]
  [ -z "$(ls t/transfers)" ]
}
