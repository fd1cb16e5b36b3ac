#!/usr/bin/env bats
# amp-route and HTTP: what is sent, what is tried again, what is refused, and what never leaves.

load ../lib
load ../messages

setup() {
  need_tool amp-route
  cd "$BATS_TEST_TMPDIR"
  "$AMP_BUILD/tests/fixture/http-server" port log 8>&- &
  wait_until 30 test -s port
  url=http://127.0.0.1:$(cat port)
}

teardown() {
  # Only what this test started.
  for p in $(jobs -p); do kill "$p" 2>/dev/null || :; done
}

# many N: N messages.
many() {
  message task_dispatch | jq -c --argjson n "$1" '. as $m | range($n) | . as $i | $m | .msg_id += "\($i)"'
}

# sw4rm_message: one of SW4RM.
sw4rm_message() {
  jq -cn 'first(inputs | select(.accept and (.line | type) == "object" and (.options | not))) | .line' \
    "$AMP_TOP/tests/fixture/protocols/sw4rm.jsonl"
}

# helper_of PID: the port-http that it started.
helper_of() {
  pgrep -P "$1" port-http
}

@test "each message is one request: its bytes, its id as the key" {
  many 20 >in
  run -0 amp-route -r "* => $url/ok" <in
  [ -z "$output" ]
  cmp <(jq -c .body log) <(jq -c . in)
  cmp <(jq -r .key log) <(jq -r .msg_id in)
}

@test "a status that may pass is tried again under the same key, any other is final" {
  for s in 408 409 425 429 500 502 503 504; do
    run --separate-stderr amp-route -r "* => $url/flaky/$s" \
      < <(message task_dispatch ".msg_id |= sub(\"[0-9]+\$\"; \"1$s\")")
    [ "$status $output" = "0 " ]
  done
  [ "$(wc -l <log)" -eq 16 ]
  [ "$(jq -r .key log | sort -u | wc -l)" -eq 8 ]
  for s in 400 401 403 404 413 422 501 505 304; do
    : >log
    run -1 --separate-stderr amp-route -r "* => $url/status/$s" < <(message task_dispatch)
    [ "$(jq -r '.code, .retryable' <<<"$output" | paste -sd' ')" = "http_refused false" ]
    [ "$(wc -l <log)" -eq 1 ]
  done
}

@test "attempts end: a temporary dead letter" {
  need_tool amp-ack
  run -69 amp-route -s state --attempts 2 -r "* => $url/status/503" < <(message task_dispatch)
  [ "$(jq -r '.code, .retryable' <<<"$output" | paste -sd' ')" = "http_failed true" ]
  [ "$(wc -l <log)" -eq 2 ]
  amp-ack dead list --state state --json >letters
  [ "$(jq -r '.code, .class' letters | paste -sd' ')" = "http_failed temporary" ]
}

@test "Retry-After is waited for" {
  start=$EPOCHREALTIME
  run -0 amp-route -r "* => $url/after" < <(message task_dispatch)
  [ "$(wc -l <log)" -eq 2 ]
  awk -v a="$start" -v b="$EPOCHREALTIME" 'BEGIN { exit !(b - a >= 1) }'
}

@test "an outcome that nobody saw is asked for again under the same key" {
  run -0 amp-route -r "* => $url/drop" < <(message task_dispatch)
  [ "$(wc -l <log)" -eq 2 ]
  [ "$(jq -r .key log | sort -u | wc -l)" -eq 1 ]
  : >log
  run -69 amp-route --attempts 2 --attempt-timeout 2s -r "* => $url/hang" < <(message task_dispatch)
  [ "$(wc -l <log)" -eq 2 ]
  [ "$(jq -r .key log | sort -u | wc -l)" -eq 1 ]
}

@test "no server is temporary" {
  run -69 amp-route --attempts 1 -r "* => http://127.0.0.1:1/x" < <(message task_dispatch)
  [ "$(jq -r '.code, .retryable' <<<"$output" | paste -sd' ')" = "http_failed true" ]
}

@test "a redirection is followed at home only" {
  run -0 amp-route -r "* => $url/same" < <(message task_dispatch)
  [ "$(jq -r .path log | paste -sd' ')" = "/same /ok" ]
  "$AMP_BUILD/tests/fixture/http-server" port2 log2 &
  wait_until 30 test -s port2
  run -1 --separate-stderr amp-route -r "* => $url/to/$(cat port2)" < <(message task_dispatch)
  [[ "$output" == *"another origin"* ]]
  [ ! -s log2 ]
  run -1 --separate-stderr amp-route -r "* => $url/loop" < <(message task_dispatch)
  [ "$(grep -c '"/loop"' log)" -eq 4 ]
}

@test "an answer without end is cut off" {
  run -0 amp-route -r "* => $url/big" < <(many 2)
  [ "$(wc -l <log)" -eq 2 ]
}

@test "headers come from a private file, and go to their host only" {
  printf '# a comment\nX-Test: se=cret\n\n' >h
  chmod 600 h
  host=${url#http://}
  run -0 amp-route --http-headers "$host=h" -r "* => $url/ok" < <(message task_dispatch)
  [ "$(jq -r .x log)" = "se=cret" ]
  : >log
  run -0 amp-route --http-headers "127.0.0.1=h" --http-headers "example.org=h" -r "* => $url/ok" \
    < <(message task_dispatch)
  [ "$(jq -r .x log)" = "" ]
  : >log
  # Never said again.
  run -1 --separate-stderr amp-route -v --http-headers "$host=h" -r "* => $url/status/400" \
    < <(message task_dispatch)
  [[ "$output$stderr" != *cret* ]]
  for mode in 640 604 620; do
    chmod "$mode" h
    run -64 --separate-stderr amp-route --http-headers "$host=h" -r "* => $url/ok" </dev/null
    [[ "$stderr" == *"chmod 600"* ]]
  done
  chmod 600 h
  ln -s h link
  run -64 amp-route --http-headers "$host=link" -r "* => $url/ok" </dev/null
  for bad in 'no colon secret' 'Idempotency-Key: 7' 'Host: x' 'A B: c'; do
    echo "$bad" >h
    run -64 --separate-stderr amp-route --http-headers "$host=h" -r "* => $url/ok" </dev/null
    [[ "$stderr" == *"h:1: not a header"* && "$stderr" != *secret* ]]
  done
  run -64 amp-route --http-headers h -r "* => $url/ok" </dev/null
}

@test "a URL with a password, or none at all, is wrong usage" {
  for bad in http://user:pw@127.0.0.1/ http: http:// http:/x 'http://a b/' 'http://127.0.0.1\@x/' \
    http://x:99999999/ ftp://x/; do
    run -64 amp-route -r "* => $bad" </dev/null
  done
}

@test "sw4rm leaves this machine signed only" {
  sw4rm_message >in
  [ -s in ]
  run -1 --separate-stderr amp-route -r '* => http://192.0.2.1/x' <in
  [[ "$output" == *unsigned* ]]
  for host in 127.0.0.1.example.org localhost.example.org 128.0.0.1 '[2001:db8::1]' 127.1; do
    run -1 --separate-stderr amp-route -r "* => http://$host/x" <in
    [[ "$output" == *unsigned* ]]
  done
  # At home it may, as it is; and with the option, which is told.
  run -0 --separate-stderr amp-route -r "* => $url/ok" <in
  [ -z "$stderr" ]
  cmp <(jq -c .body log) <(jq -c . in)
  run --separate-stderr amp-route -s state --allow-unsigned --attempts 1 --attempt-timeout 100ms \
    -r '* => http://192.0.2.1/x' <in
  [[ "$stderr" == *"unsigned"* && "$output" != *"is unsigned"* ]]
  [ "$(jq -r '.code, .severity, .protocol' state/error.ndjson | paste -sd' ')" = "unsigned warning sw4rm" ]
  # Other protocols need none.
  run -69 --separate-stderr amp-route --attempts 1 --attempt-timeout 100ms \
    -r '* => http://192.0.2.1/x' < <(message task_dispatch)
  [ "$(jq -r .code <<<"$output")" = http_failed ]
}

@test "a server that hangs delays no other port; a helper that is killed is started again" {
  mkfifo in
  amp-route --attempts 3 -r "to=executor => $url/hang" -r '* => file:other' --in in >out &
  route=$!
  exec 8>in
  message task_dispatch >&8
  wait_until 30 has_lines log 1
  message review_request >&8
  wait_until 30 has_lines other 1
  kill -9 "$(helper_of $route)"
  # The same message again, by a new one, under the same key.
  wait_until 30 has_lines log 2
  [ "$(jq -r .key log | sort -u | wc -l)" -eq 1 ]
  [ -n "$(helper_of $route)" ]
  kill $route
  exec 8>&-
  ends 130 wait $route
}

@test "certificates are checked" {
  need openssl
  openssl req -x509 -newkey rsa:2048 -nodes -keyout k.pem -out c.pem -days 2 -subj /CN=localhost \
    -addext subjectAltName=DNS:localhost 2>/dev/null
  # Silent, and open for as long as the test.
  mkfifo silence
  exec 7<>silence
  openssl s_server -accept 127.0.0.1:0 -cert c.pem -key k.pem <silence >tls 2>&1 &
  wait_until 30 grep -q ACCEPT tls
  port=$(sed -n 's/^ACCEPT .*:\([0-9]*\)$/\1/p' tls)
  run -1 --separate-stderr amp-route -r "* => https://localhost:$port/x" < <(message task_dispatch)
  [ "$(jq -r '.code, .retryable' <<<"$output" | paste -sd' ')" = "http_refused false" ]
  # The name has to be the certificate's too.
  run -1 --separate-stderr amp-route --http-ca c.pem -r "* => https://127.0.0.1:$port/x" < <(message task_dispatch)
  [ "$(jq -r .code <<<"$output")" = http_refused ]
  [ "$(grep -c task_dispatch tls)" -eq 0 ]
  run amp-route --http-ca c.pem --attempts 1 --attempt-timeout 1s -r "* => https://localhost:$port/x" \
    < <(message task_dispatch)
  wait_until 30 grep -q task_dispatch tls
}

@test "amp-route itself does not load libcurl" {
  run -0 ldd "$AMP_BUILD/bin/amp-route"
  [[ "$output" != *curl* ]]
}
