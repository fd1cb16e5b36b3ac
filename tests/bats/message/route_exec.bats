#!/usr/bin/env bats
# amp-route and exec-each: a process for each message, whose status is the outcome.

load ../lib
load ../messages

setup() {
  need_tool amp-route
  cd "$BATS_TEST_TMPDIR"
}

# many N: N messages.
many() {
  message task_dispatch | jq -c --argjson n "$1" '. as $m | range($n) | . as $i | $m | .msg_id += "\($i)"'
}

# script NAME: an executable from standard input.
script() {
  { echo '#!/bin/bash'; cat; } >"$1"
  chmod +x "$1"
}

# said FIELD...: members of the one answer.
said() {
  jq -r "[$(IFS=,; echo "$*")] | join(\" \")" <<<"$output"
}

@test "each message is the whole input of a process of its own, byte for byte" {
  message task_dispatch | sed 's/":/" : /g' >in
  many 5 >>in
  # A file: it can be read twice.
  script take <<'S'
cat >"got.$$" && [ "$(wc -c </dev/stdin)" -gt 0 ] && [ -f /dev/stdin ]
S
  run -0 amp-route -r '* => exec-each:./take' <in
  [ -z "$output" ]
  [ "$(ls got.* | wc -l)" -eq 6 ]
  cmp <(sort in) <(cat got.* | sort)
}

@test "words are split with quotes, without a shell" {
  script words <<'S'
printf '[%s]' "$@" >words.out
S
  amp-route -r '* => exec-each:./words "a b" $HOME ; `x`' < <(message task_dispatch)
  [ "$(cat words.out)" = '[a b][$HOME][;][`x`]' ]
  run -64 amp-route -r '* => exec-each:"a' </dev/null
  run -64 amp-route -r '* => exec-each:' </dev/null
}

@test "a status that says not now is tried again, any other is final" {
  script once <<'S'
echo x >>tries.$1
exit "$1"
S
  while read -r status want tries; do
    run --separate-stderr amp-route --attempts 2 -r "* => exec-each:./once $status" \
      < <(message task_dispatch)
    [ "$(said .code .retryable) $(wc -l <"tries.$status")" = "$want $tries" ] || {
      echo "$status: $output"
      return 1
    }
  done <<'T'
1 command_refused false 1
2 command_refused false 1
64 command_refused false 1
65 command_refused false 1
69 command_failed true 2
70 command_refused false 1
73 command_failed true 2
74 command_failed true 2
75 command_failed true 2
77 command_refused false 1
78 command_refused false 1
124 command_failed true 2
130 command_failed true 2
T
}

@test "the exit status distinguishes a refusal from an absent handler" {
  run -1 --separate-stderr amp-route -r '* => exec-each:false' < <(message task_dispatch)
  run -69 amp-route --attempts 1 -r '* => exec-each:sh -c "exit 75"' < <(message task_dispatch)
  run -69 amp-route --attempts 1 -r '* => exec-each:sh -c "kill -9 \$\$"' < <(message task_dispatch)
  [ "$(said .code .retryable)" = "command_failed true" ]
  run -69 amp-route --attempts 1 -r '* => exec-each:./absent' < <(message task_dispatch)
  [ "$(said .retryable)" = true ]
}

@test "what fails once is delivered by the second attempt" {
  script flaky <<'S'
id=$(jq -r .msg_id)
[ -e "seen.$id" ] && { echo "$id" >>done; exit 0; }
: >"seen.$id"
exit 75
S
  run -0 amp-route -r '* => exec-each:./flaky' < <(many 6)
  [ -z "$output" ]
  [ "$(sort -u done | wc -l)" -eq 6 ] && [ "$(wc -l <done)" -eq 6 ]
}

@test "no more than --jobs at once; one keeps the order" {
  script count <<'S'
exec 9>lock
flock 9
n=$(($(cat now 2>/dev/null || echo 0) + 1))
echo $n >now
echo $n >>most
flock -u 9
jq -r .msg_id >>order
flock 9
echo $(($(cat now) - 1)) >now
S
  need flock
  many 12 >in
  amp-route -j 3 -r '* => exec-each:./count' <in
  [ "$(sort -n most | tail -1)" -le 3 ]
  rm -f most now order
  amp-route -j 1 -r '* => exec-each:./count' <in
  [ "$(sort -u most)" = 1 ]
  cmp order <(jq -r .msg_id in)
}

@test "a handler that hangs delays no other port, and is ended at its time" {
  mkfifo in
  script hang <<'S'
trap '' TERM
echo $$ >hang.pid
sleep 1000 & wait
wait
S
  amp-route --attempts 1 --attempt-timeout 3s -r 'to=executor => exec-each:./hang' \
    -r '* => file:other' --in in >out &
  route=$!
  exec 8>in
  message task_dispatch >&8
  wait_until 30 test -s hang.pid
  message review_request >&8
  wait_until 30 has_lines other 1
  exec 8>&-
  wait $route && return 1
  [ "$(jq -r '.code, .retryable' out | paste -sd' ')" = "command_timeout true" ]
  wait_until 30 gone "$(cat hang.pid)"
}

@test "with a state: a router that is ended leaves no process and delivers again" {
  mkfifo in
  script slow <<'S'
echo $$ >slow.pid
sleep 1000
S
  amp-route -s state -r '* => exec-each:./slow' --in in >out &
  route=$!
  exec 8>in
  message task_dispatch >&8
  wait_until 30 test -s slow.pid
  kill $route
  wait $route && return 1
  exec 8>&-
  wait_until 30 gone "$(cat slow.pid)"
  run -0 --separate-stderr amp-route -s state -r '* => exec-each:cp /dev/stdin got' </dev/null
  [[ "$stderr" == *"1 message of an earlier run"* ]]
  cmp got <(message task_dispatch)
  run -0 --separate-stderr amp-route -s state -r '* => exec-each:false' </dev/null
  [ -z "$stderr" ]
}

@test "with a state: what a handler refuses is a permanent dead letter" {
  need_tool amp-ack
  run -1 --separate-stderr amp-route -s state -r '* => exec-each:sh -c "exit 77"' < <(message task_dispatch)
  amp-ack dead list --state state --json >letters
  [ "$(jq -r '.code, .class' letters | paste -sd' ')" = "command_refused permanent" ]
  [ "$(amp-ack dead list --state state --json --route 'exec-each:*' | jq -r .route)" = 'exec-each:sh -c "exit 77"' ]
}

@test "a report to a SW4RM producer has a code of its protocol, and ours beside it" {
  sw4rm=$(jq -cn '{message_id: "7f3f41a2-2017-4b8f-9b8b-2ad3caaee001", producer_id: "agent-1",
    correlation_id: "7f3f41a2-2017-4b8f-9b8b-2ad3caaee002", sequence_number: 1, retry_count: 0,
    message_type: "DATA", content_type: "application/json", content_length: 2, payload: {}}')
  code() { amp-validate | jq -r '.msg.payload | [.error_code, (.note | split(":")[0])] | join(" ")'; }
  [ "$(amp-route -r '* => exec-each:false' <<<"$sw4rm" | code)" = "VALIDATION_ERROR command_refused" ]
  [ "$(amp-route --attempts 1 -r '* => exec-each:sh -c "exit 127"' <<<"$sw4rm" | code)" = \
    "AGENT_UNAVAILABLE command_failed" ]
  [ "$(amp-route -r '* => reject' <<<"$sw4rm" | code)" = "PERMISSION_DENIED rejected" ]
  [ "$(amp-route -r 'to=x => stdout' <<<"$sw4rm" | jq -r .msg.payload.error_code)" = NO_ROUTE ]
}

@test "a limit of descriptors that is too small for a process is reported, not waited for" {
  run -70 --separate-stderr timeout 60 prlimit --nofile=8 amp-route -r '* => exec-each:cat' < <(message task_dispatch)
  [ "$(jq -r '[.type, .code] | join(" ")' <<<"$output")" = "nack emfile" ]
  [[ $stderr == *"refused: 1 emfile"* ]]
}
