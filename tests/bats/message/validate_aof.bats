# AOF/1 envelopes: at most 10 MiB, in whatever form they come.

load ../lib

setup() {
  need jq
  cd "$BATS_TEST_TMPDIR" || return 1
}

# envelope BYTES: one of that size.
envelope() {
  local head='{"protocol":"aof","version":1,"type":"status.update","taskId":"TASK-2026-02-09-057","fromAgent":"a","toAgent":"b","sentAt":"2026-02-09T21:00:00Z","payload":{"taskId":"TASK-2026-02-09-057","agentId":"a","progress":"p"},"x":"'
  printf '%s' "$head"
  head -c $(($1 - ${#head} - 2)) /dev/zero | tr '\0' x
  printf '"}'
}

@test "an envelope has at most 10485760 bytes: as an object, in a string, behind the prefix" {
  envelope 10485760 >most
  envelope 10485761 >more
  envelope 10485754 >most6
  envelope 10485755 >more6
  {
    cat most && echo
    jq -Rc . most
    jq -Rc '{content: .}' most
    printf 'AOF/1 ' && cat most6 && echo
    jq -c '{payload: .}' most
    cat more && echo
    jq -Rc . more
    jq -Rc '{content: .}' more
    printf 'AOF/1 ' && cat more6 && echo
    jq -c '{payload: .}' more
  } >in
  run amp-validate -e records --max-line 64M in
  [ "$status" -eq 1 ]
  [ "$(jq -r '"\(.line) \(.protocol) \(.code)"' records | xargs)" = \
    "6 aof payload_too_large 7 aof payload_too_large 8 aof payload_too_large 9 aof payload_too_large 10 aof payload_too_large" ]
}

@test "with -p aof a text that starts as an envelope is too large before it is anything else" {
  { printf '{"content":"{' && head -c 10485760 /dev/zero | tr '\0' x && echo '"}'; } >in
  { printf '{"content":"' && head -c 10485761 /dev/zero | tr '\0' x && echo '"}'; } >>in
  amp-validate -p aof -e records in >out || [ $? -eq 1 ]
  [ "$(jq -r '"\(.line) \(.code)"' records)" = "1 payload_too_large" ]
  sed -n 2p in | cmp - out
}
