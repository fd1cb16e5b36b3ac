#!/usr/bin/env bats
# amp-route reads its routes again on SIGHUP.

load ../lib
load ../messages

setup() {
  need_tool amp-route
  cd "$BATS_TEST_TMPDIR"
  mkfifo in
}

teardown() {
  # Only what this test started.
  for p in $(jobs -p); do kill "$p" 2>/dev/null || :; done
}

# routes ROUTE...: the configuration.
routes() { jq -n '{route: {routes: $ARGS.positional}}' --args "$@" >amp.json.new && mv amp.json.new amp.json; }
# start ARG...: the router, its input held open.
start() {
  amp-route --eager --in in --config amp.json "$@" >answers 2>said 6<&- 7<&- &
  route=$!
  exec 8>in
}
# hangup WORD: sends the signal, waits until that is said.
hangup() {
  local n
  n=$(grep -c "$1" said || :)
  kill -HUP $route
  more() { [ "$(grep -c "$1" said)" -gt "$n" ]; }
  wait_until 30 more "$1"
}
stop() {
  exec 8>&-
  status=0
  wait $route || status=$?
}
nth() { message task_dispatch ".msg_id = \"task_dispatch-T-2026-044-1772116327001$1\""; }

@test "routes are read again, between two messages" {
  routes '* => file:a'
  start
  nth 1 >&8
  wait_until 30 has_lines a 1
  routes 'type=task_dispatch => file:b' '* => file:a'
  hangup 'SIGHUP: 2 routes'
  nth 2 >&8
  message escalation >&8
  wait_until 30 has_lines b 1
  routes 'jq:.type == "escalation" => file:c' '* => file:a'
  hangup 'SIGHUP: 2 routes'
  nth 3 >&8
  message escalation >&8
  stop
  [ "$status" -eq 0 ]
  cmp b <(nth 2)
  cmp a <(nth 1; message escalation; nth 3)
  cmp c <(message escalation)
}

@test "a bad configuration is refused, and the old routes stay" {
  routes '* => file:a'
  start
  nth 1 >&8
  wait_until 30 has_lines a 1
  for bad in '{"route": {"routes": ["* => file:b", "nothing"]}}' '{"route": {"rutes": []}}' '{' '{}' \
    '{"route": {"routes": ["jq:( => file:b"]}}' '{"route": {"routes": ["* => file:b", "* => file:/no/such/b"]}}' \
    '{"route": {"routes": ["* => file:b"]}, "lanes": {"privileged_priority": 12}}'; do
    echo "$bad" >amp.json
    hangup 'SIGHUP: routes not changed'
  done
  nth 2 >&8
  stop
  [ "$(grep -c 'error:' said)" -ge 7 ]
  cmp a <(nth 1; nth 2)
  [ ! -s b ]
}

@test "a port that stays keeps what waits for it; one that goes delivers it first" {
  mkfifo s g
  exec 6<>s 7<>g
  routes 'task=T-2026-001 => fifo:s' 'type=review_request => file:mark' '* => fifo:g'
  start --inbound 100
  for i in {1..60}; do nth "$i" | sed 's/T-2026-044/T-2026-001/g'; nth "$i"; done >messages
  cat messages >&8
  message escalation >&8
  nth 61 >&8
  message review_request >&8
  wait_until 30 has_lines mark 1
  routes 'type=task_dispatch => fifo:s' '* => file:rest'
  hangup 'SIGHUP: 2 routes'
  nth 62 >&8
  message escalation '.msg_id += "9"' >&8
  wait_until 30 has_lines rest 1
  cat <&6 >got_s 8>&- &
  readers=$!
  cat <&7 >got_g 8>&- &
  readers+=" $!"
  wait_until 30 has_lines got_g 62
  wait_until 30 has_lines got_s 61
  closed() { ! readlink /proc/$route/fd/* | grep -qx "$PWD/g"; }
  wait_until 30 closed
  stop
  # shellcheck disable=SC2086 # two of them
  kill $readers
  cmp got_s <(grep 2026-001 messages; nth 62)
  cmp got_g <(grep -v 2026-001 messages; message escalation; nth 61)
}

@test "routes of the command line stay" {
  routes '* => file:b'
  start -r '* => file:a'
  hangup 'routes were given with -r'
  nth 1 >&8
  stop
  cmp a <(nth 1)
}
