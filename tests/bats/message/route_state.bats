#!/usr/bin/env bats
# amp-route with a state directory: nothing that it took is lost, a spool file appears once.

load ../lib
load ../messages

setup() {
  need_tool amp-route amp-ack
  cd "$BATS_TEST_TMPDIR"
  export AMP_STATE=$PWD/state
}

teardown() {
  for p in $(jobs -p); do kill "$p" 2>/dev/null || :; done
}

id() { echo ".msg_id |= sub(\"[0-9]+\$\"; \"$1\")"; }
many() {
  message task_dispatch "${2:-.}" |
    jq -c --argjson n "$1" '. as $m | range($n) | . as $i | $m | .msg_id += "\($i)"'
}

@test "a spool gets one file a message, complete, under the same name each time" {
  many 5 >in
  amp-route -r '* => spool:box' <in
  [ "$(find box/new -type f | wc -l)" -eq 5 ]
  cat box/new/* | sort | cmp - <(sort in)
  find box -type f -name '*.json' | sort >before
  amp-route -r '* => spool:box' <in
  find box -type f -name '*.json' | sort | cmp before -
}

@test "another message under a known id is reported, and replaces none" {
  { message task_dispatch; message task_dispatch '.payload.description = "other"'; } >in
  for state in state ""; do
    rm -rf box
    AMP_STATE=$state run -1 --separate-stderr amp-route -r '* => spool:box' <in
    [ -z "$output" ]
    [[ "$stderr" == *"task_dispatch-T-2026-044-"*"another message of the same id"* ]]
    head -n 1 in | cmp - box/new/*
  done
  [ "$(jq -r .code state/error.ndjson)" = duplicate_msg_id ]
  run -0 amp-ack dead list --state state --json
  [ -z "$output" ]
}

@test "the id of a task with a NUL is refused" {
  local line
  line=$(jq -c 'select(.base == "minimal").line' "$AMP_TOP/tests/fixture/protocols/aop.jsonl" | head -n 1)
  echo "${line/TASK-001/TASK-001\\u0000x}" >in
  run -1 --separate-stderr amp-route --state state -r '* => spool:box' <in
  [[ $stderr == *"validation_error: the id of its task contains a NUL"* ]]
  [ -z "$(ls box/new)" ]
}

@test "an id with a NUL is refused by every tool, and takes nobody's place" {
  local line code=validation_error
  line=$(message task_dispatch | jq -c --arg t 2026-02-25T16:22:10.123Z '{eventId: "evt-1", seq: 1, kind: "message",
    sourceNodeId: "node", sourceAgentId: "ann", toAgentId: "bob", corrId: "c", createdAt: $t, trace: {attempt: 1},
    payload: {toAgents: ["bob"], subject: "s", body: "b", priority: "normal", expectsReply: false}}')
  { echo "${line/evt-1/evt-1\\u0000x}"; echo "$line"; } >in
  amp-validate in | cmp - in # it is a message
  for state in state ""; do
    for route in spool:box file:out inbox:bob; do
      [[ -n $state || $route != inbox:* ]] || continue
      rm -rf box out state
      AMP_STATE=$state run -1 --separate-stderr amp-route -r "* => $route" <in
      [[ $output != *evt-1*u0000* && $stderr == *"$code: its id contains a NUL"* ]]
      [[ $route != inbox:* ]] || amp-route inbox bob >out
      case $route in spool:*) mv box/new/* out ;; esac
      cmp out <(tail -n 1 in)
    done
    [ -n "$state" ] || continue
    [ "$(jq -r .code state/error.ndjson)" = $code ]
    run -0 amp-ack dead list --json
    [ -z "$output" ]
  done
  run -1 --separate-stderr amp-ack track <in
  [ "$output" = "$(tail -n 1 in)" ]
  [[ $stderr == *"$code: its id contains a NUL"* ]]
  # Many at once go a shorter way.
  for i in {1..2000}; do echo "${line/evt-1/evt-$i}"; done >many
  cat many in many >all
  AMP_STATE='' run -1 --separate-stderr amp-route -r '* => file:fast' <all
  cat many <(tail -n 1 in) many | cmp - fast
}

@test "what a consumer took or finished does not appear again" {
  many 3 >in
  amp-route -r '* => spool:box' <in
  mapfile -t names < <(ls box/new)
  mv "box/new/${names[0]}" box/cur/
  mv "box/new/${names[1]}" box/done/
  amp-route -r '* => spool:box' <in
  [ "$(ls box/new)" = "${names[2]}" ]
}

@test "only what was published counts as delivered: no empty file, FIFO or link in a spool" {
  need strace
  many 3 >in
  amp-route -r '* => spool:box' <in
  mapfile -t names < <(ls box/new)
  cp -r box first
  : >"box/new/${names[0]}"
  rm "box/new/${names[1]}" "box/new/${names[2]}"
  mkfifo "box/new/${names[1]}"
  ln -s /dev/null "box/cur/${names[2]}"
  run -74 --separate-stderr amp-route -r '* => spool:box' <in
  cmp "first/new/${names[0]}" "box/new/${names[0]}"
  [ "$(jq -r .code <<<"$output" | sort | uniq -c | xargs)" = "2 not_a_file" ]
  # What is finished may be made empty; a link is not finished.
  mv first/new/* first/done/
  : >"first/done/${names[0]}"
  amp-route -r '* => spool:first' <in
  [ -z "$(ls first/new)" ]
  ln -sf /dev/null "first/done/${names[0]}"
  run -74 --separate-stderr amp-route -r '* => spool:first' <in
}

@test "a spool's three directories may not be links" {
  local room
  many 1 >in
  for room in new cur done; do
    rm -rf box
    mkdir -p box elsewhere
    ln -s ../elsewhere "box/$room"
    run -74 --separate-stderr amp-route -r '* => spool:box' <in
    [[ $stderr == *"cannot open the directory $room of the spool"* ]]
    [ -z "$(ls elsewhere)" ]
  done
}

@test "what is known already is synced before it is reported, with its directory" {
  need strace
  export ASAN_OPTIONS=detect_leaks=0${ASAN_OPTIONS:+:$ASAN_OPTIONS}
  many 1 >in
  amp-route -r '* => spool:box' <in
  strace -y -e trace=fsync,fdatasync -o trace amp-route -r '* => spool:box' <in
  grep -q 'fsync([0-9]*<.*/box/new>)' trace
}

@test "half written files of killed routers are removed from a spool, and nothing else" {
  many 1 >in
  amp-route -r '* => spool:box' <in
  name=$(ls box/new)
  touch "box/new/.$name.0123456789abcdef.tmp" "box/new/.$name.tmp" box/new/.hidden box/new/other.tmp
  amp-route -r '* => spool:box' <in
  [ "$(ls -A box/new | sort | xargs)" = "$(printf '%s\n' ".$name.tmp" .hidden "$name" other.tmp | sort | xargs)" ]
}

@test "another consumer's spool entries are its own" {
  many 1 >in
  amp-route --as one -r '* => spool:box' <in
  amp-route --as two -r '* => spool:box' <in
  [ "$(find box/new -type f | wc -l)" -eq 2 ]
}

@test "two routers of one name: the second says why it does not start" {
  mkfifo in
  amp-route --in in -r '* => spool:box' &
  exec 8>in
  wait_until 30 test -e state/run/amp-route.lock
  message task_dispatch >&8
  wait_until 30 eval 'ls box/new/*.json'
  run -75 --separate-stderr amp-route --lock-timeout 0s -r '* => spool:box' </dev/null
  [[ "$stderr" == *--as* ]]
  run -0 amp-route --as other -r '* => spool:box' </dev/null
  exec 8>&-
  wait
}

@test "what is not delivered when it is killed is delivered by the next run" {
  mkfifo port in
  many 20 >lines
  amp-route --in in -r '* => fifo:port' &
  route=$!
  exec 8>in
  cat lines >&8
  # All are in the log, none has a reader.
  recorded() { [ "$(grep -o 'task_dispatch-T-2026-044-[0-9]*' state/log/*.ndjson | sort -u | wc -l)" -ge 20 ]; }
  wait_until 30 recorded
  kill -KILL $route
  wait $route || :
  exec 8>&-
  amp-route -r '* => file:out' </dev/null
  sort lines | cmp - <(sort out)
  # And only once: now nothing is open.
  amp-route -r '* => file:out2' </dev/null
  [ ! -s out2 ]
}

@test "no_route: answered, kept, listed, shown and sent again" {
  run -1 --separate-stderr amp-route -r 'to=admin => file:x' < <(message task_dispatch)
  jq -e '.message | test("dead letters")' <<<"$output"
  run -0 amp-ack dead list --json
  [ "$(jq -r '.code, .class, .attempts, .task' <<<"$output" | paste -sd' ')" = \
    "no_route temporary 1 T-2026-044" ]
  letter=$(jq -r .msg_id <<<"$output")
  run -0 amp-ack dead show "$letter"
  [ "$(jq -c .msg <<<"$output")" = "$(message task_dispatch)" ]
  amp-ack dead requeue "$letter" | amp-route -r '* => file:x'
  cmp x <(message task_dispatch)
  run -0 amp-ack dead list --json
  [ -z "$output" ]
  run -1 amp-ack dead requeue "$letter"
  run -1 amp-ack dead show nothing
}

@test "the same message refused again is one letter with two attempts" {
  for i in 1 2; do
    run -1 --separate-stderr amp-route -r 'to=admin => file:x' < <(message task_dispatch)
  done
  run -0 amp-ack dead list --json
  [ "$(jq -r '.attempts, (.history | length)' <<<"$output" | paste -sd' ')" = "2 2" ]
}

@test "the answer of a router that was killed before it wrote it comes from the next" {
  # An output that nobody reads: the answer is committed and stays open.
  mkfifo answers in
  exec 7<>answers
  amp-route --in in --out answers --max-pending 4K -r 'to=admin => file:x' &
  route=$!
  exec 8>in
  many 60 >&8 &
  wait_until 30 bash -c '[ "$(amp-ack dead list --json 2>/dev/null | wc -l)" -ge 20 ]'
  kill -KILL $route
  wait $route || :
  exec 8>&- 7<&-
  status=0
  amp-route -r 'to=admin => file:x' </dev/null >late || status=$?
  [ -s late ]
  jq -se 'all(.[]; .code == "no_route")' late
}

@test "reject and dead keep the message" {
  run -1 --separate-stderr amp-route -r 'to=executor => reject' < <(message task_dispatch)
  [ "$(jq -r .code <<<"$output")" = rejected ]
  run -0 amp-route -r 'to=reviewer => dead' < <(message review_request)
  [ -z "$output" ]
  run -0 amp-ack dead list --json
  [ "$(jq -r .code <<<"$output" | sort | paste -sd' ')" = "kept_back rejected" ]
  run -0 amp-ack dead list --json --code rejected
  [ "${#lines[@]}" -eq 1 ]
}

@test "a message over the frame's size is routed, and kept, whole" {
  message task_dispatch '.payload.description = ("x" * 3000000)' >big
  amp-route -r 'to=executor => spool:box' <big
  cmp big box/new/*.json
  run -1 --separate-stderr amp-route -r 'to=admin => file:x' <big
  amp-ack dead requeue --every >again
  cmp big again
}

@test "work for a suspended task is refused, retryable, and kept" {
  need_tool hitl-prompt
  # A critical escalation that nobody answers.
  run -1 hitl-prompt --answer /dev/null < <(message escalation)
  run -1 --separate-stderr amp-route -r '* => file:x' < <(message task_dispatch)
  [ "$(jq -r '.code, .retryable' <<<"$output" | paste -sd' ')" = "suspended true" ]
  [ ! -s x ]
  run -0 amp-route -r '* => file:x' < <(message task_result)
  cmp x <(message task_result)
}

@test "an executor that is not there becomes the admin's question, and the loop ends" {
  need_tool task-dispatch hitl-prompt
  sed -e '/^task-dispatch run/d' -e 's#amp-route #amp-route --open-timeout 500ms #' \
    -e "s#^here=.*#here=$AMP_TOP/examples/qa-loop#" "$AMP_TOP/examples/qa-loop/loop.sh" >loop.sh
  repo repo
  task-dispatch new --print --repo repo --branch fix/x --description d --subtask s --criterion c >tasks
  echo terminate >answers
  # The router says so too, with its status.
  status=0
  AMP_ANSWER=$PWD/answers timeout 60 bash loop.sh "$AMP_STATE" <tasks >out 2>err || status=$?
  [ "$status" -eq 69 ]
  grep -q 'nack .*agent_unavailable' err
  grep -q 'escalation .*agent_unavailable\|escalation .*refused' err
  run -0 amp-ack dead list --json
  [ "$(jq -r .code <<<"$output")" = agent_unavailable ]
}
