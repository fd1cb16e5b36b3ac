#!/usr/bin/env bats
# amp-route without state, with native predicates that lead to files: lines take a short way, on
# which less of them is looked at. What is written and reported is what the long way writes and
# reports.

load ../lib
load ../messages

# Some 9 MB of all five protocols: good ones and bad ones, urgent ones, some whose time has passed,
# empty lines, CRLF, lines that are too long, and a last one without an end.
setup_file() {
  export BUILD_DIR=$AMP_BUILD
  read -ra compiler <<<"${CC:-cc}"
  command -v "${compiler[0]}" >/dev/null || skip "needs a compiler"
  cd "$BATS_FILE_TMPDIR" || return 1
  "${compiler[@]}" -O1 -o corpus "$AMP_TOP"/bench/corpus*.c
  ./corpus mixed 8 >lines
  message task_dispatch '.from = "robot"' >bad
  message task_dispatch '.payload.description = "x" * 70000' >long
  local of="payload: {}, content_length: 2, content_type: \"application/json\", retry_count: 0" i
  sw4rm() { jq -nc "{message_id: \"5a1d9c8e-6b3f-4a87-8f5e-91a2c0ab1234\", producer_id: \"ann\",
    correlation_id: \"7f3f41a2-2017-4b8f-9b8b-2ad3caaee001\", sequence_number: 1, $of} + $1"; }
  {
    sw4rm '{message_type: "DATA", ttl_ms: 60000, timestamp: "2026-02-25T16:00:00Z"}'
    sw4rm '{message_type: "DATA", ttl_ms: 2000000000000, timestamp: "2026-02-25T16:00:00.5Z"}'
    sw4rm '{message_type: "CONTROL", timestamp: "2026-02-25T16:00:00Z",
      payload: {priority: -20, agent_id: "a"}}'
    jq -nc '{eventId: "evt_1", seq: 1, kind: "message", sourceNodeId: "n", sourceAgentId: "a",
      corrId: "c", createdAt: "2026-02-25T16:00:00Z", expiresAt: "2026-02-25T17:00:00Z",
      payload: {toAgents: ["b"], body: "b"}, trace: {attempt: 1}}'
    grep -m1 '"message_type":"TASK"' lines | jq -c '.task.priority = "CRITICAL"'
    grep -m1 '"message_type":"TASK"' lines | jq -c '.task.priority = "LOW"'
    echo nonsense
    printf '\n\r\n'
    cat bad long
    sed 's/$/\r/' bad
    grep -m1 msg_id lines | sed 's/$/\r/'
  } >odd
  split -n l/9 lines part.
  for i in part.*; do cat "$i" odd; done >in
  grep -m1 msg_id lines | tr -d '\n' >>in
}

setup() {
  need_tool amp-route
  cd "$BATS_TEST_TMPDIR"
  in=$BATS_FILE_TMPDIR/in
}

# Each line fits one of them.
rest='protocol!=amp,kind!=dispatch'
routes=(-r 'protocol=amp,kind=dispatch|result => file:1' -r 'protocol=amp,kind!=dispatch,kind!=result => file:2'
  -r 'protocol!=amp,kind=dispatch,priority=0 => file:3' -r 'protocol!=amp,kind=dispatch,priority!=0 => file:4'
  -r "$rest,type=*e* => file:5" -r "$rest,type!=*e* => file:6")

# go DIR ARGS...: routes all of it, with what is said and answered in files, too.
go() {
  local status=0
  mkdir "$1"
  (cd "$1" && shift && timeout 60 amp-route --max-line 64K -v "$@" <"$in" >answers 2>said) || status=$?
  # What a refusal says, but for its own time and ids; those of one batch may change places.
  jq -c 'del(.. | .timestamp?, .message_id?, .msg_id?, .eventId?, .createdAt?, .ackedAt?, .seq?,
    .sequence_number?, .hlc_timestamp?, .idempotency_token?)' "$1/answers" | sort >"$1/answered"
  sed -i "s/, [0-9.]* s\$/, TIME/" "$1/said" # of the summary
  sort -o "$1/said" "$1/said"
  rm "$1/answers"
  echo "$status" >"$1/status"
}

@test "the same is written, reported and answered on the short way and on the long way" {
  go close --all "${routes[@]}"
  go short "${routes[@]}"
  [ "$(cat close/status)" -eq 1 ]
  for f in 1 2 3 4 5 6; do [ -s "close/$f" ]; done
  [ "$(wc -l <close/answered)" -ge 18 ]
  diff -r close short
}

@test "predicates that ask for more than protocol, kind, type and priority" {
  mine=(-r 'from=ann => file:1' -r 'from!=ann,to=executor => file:2' -r 'from!=ann,to!=executor => file:3')
  go close --all "${mine[@]}"
  go short "${mine[@]}"
  [ -s close/1 ]
  [ -s close/2 ]
  [ -s close/3 ]
  diff -r close short
}

@test "what a file that takes no more is not given is answered, each" {
  message task_dispatch '.msg_id = "task_dispatch-T-2026-044-@"' |
    awk -F@ '{ for (i = 1; i <= 12000; i++) print $1 i $2 }' >in
  status=0
  (
    trap '' XFSZ
    ulimit -f 4096
    timeout 60 amp-route -r '* => file:out' <in >answers 2>said
  ) || status=$?
  [ "$status" -eq 74 ]
  head -n -1 out >whole
  [ "$(wc -l <whole)" -gt 4000 ]
  [ "$(wc -l <answers)" -gt 4000 ]
  cmp whole <(head -n "$(wc -l <whole)" in)
  # The last one in the file may be cut; of those under way some may be both.
  { jq -r .msg_id whole && jq -r 'select(.type == "nack").ref_msg_id' answers; } | sort -u |
    diff - <(jq -r .msg_id in | sort -u)
}
