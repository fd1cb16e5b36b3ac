#!/usr/bin/env bats
# AMP_TRACE: a line for each step, commit, port and child; nothing secret and nothing raw in it.

load ../lib
load ../messages

setup() {
  need_tool amp-ack amp-route
  cd "$BATS_TEST_TMPDIR"
  export AMP_STATE=$PWD/state
}

# traced TOPICS COMMAND...: the trace of a command is in the file trace, without the ids of processes.
traced() {
  local topics=$1
  shift
  rm -f trace.all
  AMP_TRACE=$topics AMP_TRACE_TO=$PWD/trace.all "$@"
  jq -c 'del(.pid, .child)' trace.all >trace
}

@test "a message that is recorded and delivered: exactly these lines" {
  message task_dispatch >in
  traced fsm,store,port,child amp-ack <in >out
  cmp in out
  cmp trace - <<'END'
{"trace":"store","kind":"awaited","key":"awaited.amp.task.T-2026-044","rev":1,"event":"await","to":"AWAITED","n":1}
{"trace":"fsm","machine":"delivery","from":"SENT","event":"record","to":"SENT"}
{"trace":"store","kind":"message","key":"message.task_dispatch-T-2026-044-1772116327001","rev":1,"event":"record","to":"SENT","n":2}
END
  traced store,port,child amp-route -r '* => spool:box' <in
  cmp trace - <<'END'
{"trace":"port","event":"open","port":"stdout"}
{"trace":"port","event":"open","port":"spool","name":"box"}
{"trace":"store","kind":"route","key":"route.amp-route","rev":1,"event":"record","to":"OPEN","n":3}
{"trace":"port","event":"close","port":"stdout"}
{"trace":"port","event":"close","port":"spool","name":"box"}
END
  [ "$(stat -c %a trace.all)" = 600 ]
}

@test "a child: its program and its end, but neither its arguments nor a URL" {
  unset AMP_STATE
  message task_dispatch >in
  traced port,child amp-route -r '* => exec-each:sh -c "exit 3" SECRET' <in || [ $? -eq 1 ]
  cmp trace - <<'END'
{"trace":"port","event":"open","port":"stdout"}
{"trace":"port","event":"open","port":"exec-each","name":"sh"}
{"trace":"child","event":"start","program":"sh"}
{"trace":"child","event":"end","status":3}
{"trace":"port","event":"fail","port":"exec-each","name":"sh","code":"command_refused"}
{"trace":"port","event":"close","port":"stdout"}
{"trace":"port","event":"close","port":"exec-each","name":"sh"}
END
  [ "$(jq -s 'map(.child | values) | length, (unique | length)' trace.all | paste -sd' ')" = "2 1" ]
  traced port,child amp-route -r '* => http://127.0.0.1:1/SECRET' --attempts 1 <in || [ $? -eq 1 ]
  run -1 grep SECRET trace.all
  jq -se 'any(.event == "fail" and .port == "http")' trace
}

@test "hostile keys and names are escaped, and cut" {
  local name
  # A key is encoded as in the log; with a control character it is a digest.
  for id in ']0;"\\é' $'\u001b]0;'; do
    jq -c --arg id "$id" 'select(.base == "data").line | .message_id = $id + "x" * 180' \
      "$AMP_TOP/tests/fixture/protocols/sw4rm.jsonl" >in
    rm -rf state
    traced store amp-ack <in >/dev/null
    jq -r 'select(.kind == "message").key' trace
  done >keys
  [ "$(sed -n '1s/x*[.]*$//p' keys)" = message.%5D0%3B%22%5C%5C%C3%A9 ]
  [[ $(tail -n 1 keys) == message.sha256:* ]]
  message task_dispatch >in
  name=$(printf 'a\e]0;"\\\302\205\303\251%0200d' 7)
  traced port amp-route -r "* => file:$name" <in
  cmp in "$name"
  [[ $(sed -n 2p trace.all) == *',"name":"a\u001b]0;\"\\\u00c2\u0085\u00c3\u00a9'*'000..."}' ]]
  run -1 grep -aP '[^\x20-\x7e]' trace.all
}

@test "a wrong value is reported, and nothing else changes" {
  message task_dispatch >in
  AMP_TRACE=fsm,stor AMP_TRACE_TO=$PWD/t amp-ack <in | cmp in -
  [ "$(jq -c 'del(.pid)' t | head -n 1)" = '{"trace":"trace","AMP_TRACE":"stor","error":"no such topic"}' ]
  AMP_STATE=$PWD/new AMP_TRACE=fsm AMP_TRACE_TO=t2 run -0 --separate-stderr amp-ack <in
  [ "$(jq -c 'del(.pid)' <<<"$stderr")" = '{"trace":"trace","AMP_TRACE_TO":"t2","error":"Invalid argument"}' ]
  [ ! -e t2 ]
}

@test "a descriptor is this process's: its children write none, and a full pipe makes it lose lines, not wait" {
  unset AMP_STATE
  message task_dispatch >in
  AMP_TRACE=child AMP_TRACE_TO=7 amp-route -r '* => exec-each:sh -c "[ -z \"$AMP_TRACE\" ]"' <in 7>t
  [ "$(jq -c '[.event, .status]' t | paste -sd' ')" = '["start",null] ["end",0]' ]
  mkfifo full
  exec 8<>full
  timeout 20 dd if=/dev/zero bs=65536 count=1 status=none >&8
  AMP_TRACE=port AMP_TRACE_TO=8 timeout 20 amp-route -r '* => file:out' <in
  cmp in out
  exec 8>&-
}
