#!/usr/bin/env bats
# amp-route and socket files: readers that are late, slow, gone or back again.

load ../lib
load ../messages

setup() {
  need_tool amp-route
  cd "$BATS_TEST_TMPDIR"
}

teardown() {
  # Only what this test started.
  for p in $(jobs -p); do kill "$p" 2>/dev/null || :; done
}

# many N [BYTES]: N messages, to executor.
many() {
  message task_dispatch ".payload.description = (\"x\" * ${2:-1})" |
    jq -c --argjson n "$1" '. as $m | range($n) | . as $i | $m | .msg_id += "\($i)"'
}

# serve ARG...: the server of the fixtures, listening when this returns.
serve() {
  rm -f "$1"
  "$AMP_BUILD/tests/fixture/unix-server" "$@" 8>&- &
  server=$!
  wait_until 30 test -S "$1"
}

@test "every line, byte for byte, in order, through one connection" {
  serve s got
  many 300 4000 >in
  run -0 amp-route -r '* => unix:s' <in
  [ -z "$output" ]
  wait_until 30 cmp in got
}

@test "a listener that comes later gets everything" {
  many 3 >in
  amp-route -r '* => unix:s' <in &
  route=$!
  serve s got
  wait $route
  wait_until 30 cmp in got
}

@test "nobody listens: answered after the time, the others unaffected" {
  { message task_dispatch; message review_request; } >in
  run -69 amp-route --open-timeout 200ms -r 'to=executor => unix:s' -r '* => file:x' <in
  [ "$(jq -r '.code, .retryable' <<<"$output" | paste -sd' ')" = "agent_unavailable true" ]
  cmp x <(message review_request)
  # A socket file that nobody holds any more is the same.
  serve s got
  kill $server
  ends 143 wait $server
  run -69 amp-route --open-timeout 200ms -r '* => unix:s' < <(message task_dispatch)
  [ "$(jq -r .code <<<"$output")" = agent_unavailable ]
}

@test "what is no socket, or too long a path, is refused at the start" {
  : >file
  run -73 --separate-stderr amp-route -r '* => unix:file' </dev/null
  [[ "$stderr" == *"not a socket"* ]]
  run -64 amp-route -r "* => unix:$(printf 'x%.0s' {1..120})" </dev/null
}

@test "a listener that reads nothing delays nobody else and fills its own bound" {
  serve s got hold
  mkfifo in
  amp-route --max-pending 100000 -r 'to=executor => unix:s' -r '* => file:other' --in in >out &
  route=$!
  exec 8>in
  many 400 4000 >&8
  message review_request >&8
  wait_until 30 has_lines other 1
  [ "$(jq -r .code out | sort -u)" = buffer_full ]
  kill $route
  exec 8>&-
  ends 130 wait $route
}

@test "a reader that goes away in the middle: the next gets all that it had not read" {
  serve s got1 7
  mkfifo in
  many 20 5000 >lines
  amp-route -r '* => unix:s' --in in &
  route=$!
  exec 8>in
  cat lines >&8
  wait $server
  serve s got2
  exec 8>&-
  wait $route
  wait_until 30 eval 'tail -n 1 lines | cmp -s - <(tail -n 1 got2)'
  # Nothing is missing, the order holds, and what came twice is the same.
  head -n 7 lines | cmp - got1
  n=$(wc -l <got2)
  [ "$n" -ge 13 ]
  tail -n "$n" lines | cmp - got2
}

@test "what a reader is known to have read does not come again" {
  serve s got1 3
  mkfifo in
  many 3 >first
  message review_request >second
  amp-route -r 'to=admin => file:other' -r '* => unix:s' --in in &
  route=$!
  exec 8>in
  head -n 2 first >&8
  wait_until 30 has_lines got1 2
  # The turn that writes this looks at the socket too.
  message escalation >&8
  wait_until 30 has_lines other 1
  tail -n 1 first >&8
  wait $server
  serve s got2
  cat second >&8
  exec 8>&-
  wait $route
  wait_until 30 eval 'tail -n 1 got2 | cmp -s - second'
  # At most the last one, which was under way when the reader left.
  [ "$(wc -l <got2)" -le 2 ]
  cmp got1 first
}

@test "a reader that talks is let talk" {
  serve s got talk
  many 2000 >in
  run -0 amp-route -r '* => unix:s' <in
  wait_until 30 cmp in got
}
