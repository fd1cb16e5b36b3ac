# amp-mcp: the protocol, the tools with a state directory and inside of an attempt, who it speaks for.
# walls

setup() {
  load ../lib
  load ../agents
  need jq
  unset AMP_IDENTITY
  cd "$BATS_TEST_TMPDIR" || return 1
  export AMP_STATE=$PWD/state
}

teardown() {
  stop_server
}

INIT='{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"bats","version":"1"}}}'

# call ID TOOL [ARGUMENTS]: a line.
call() {
  printf '{"jsonrpc":"2.0","id":%s,"method":"tools/call","params":{"name":"%s","arguments":%s,"_meta":{"progressToken":%s}}}\n' \
    "$1" "$2" "${3-"{}"}" "$1"
}

# once AGENT: the lines of stdin in a session of their own; the answers are in out.ndjson.
once() {
  { echo "$INIT" && cat; } | amp-mcp --agent "$1" 2>err >out.ndjson
}

# answer FILTER: a filter of jq over the answers, by their ids.
answer() {
  jq -ce --slurp "map(select(has(\"id\"))) | INDEX(.id) | $1" out.ndjson
}

agents_register() {
  for a; do agent-registry register "$a" --connector "ci:$a" >>registered.ndjson; done
}

# server ARGUMENTS...: a session that stays; tell LINE, hear (into $line), stop_server.
server() {
  mkfifo to from
  amp-mcp "$@" <to >from 2>err 9>&- &
  server_pid=$!
  exec 7>to 8<from
  limit=$(patient 30)
  tell "$INIT"
  hear
}
tell() { printf '%s\n' "$*" >&7; }
hear() { IFS= read -r -t "${limit:-30}" line <&8; }
# hears ID: the answer with this id; what comes before it is in heard.ndjson.
hears() {
  while hear; do
    [[ $line == '{"jsonrpc":"2.0","id":'"$1",* ]] && return
    printf '%s\n' "$line" >>heard.ndjson
  done
  return 1
}
# ended_by SIGNAL STATUS
ended_by() {
  local status=0
  kill "-$1" "$server_pid"
  wait "$server_pid" || status=$?
  server_pid=
  exec 7>&- 8<&-
  [ "$status" -eq "$2" ]
}
stop_server() {
  [ -n "${server_pid-}" ] || return 0
  exec 7>&- 8<&-
  kill "$server_pid" 2>/dev/null || :
  wait "$server_pid" || :
  server_pid=
}

@test "each revision of the handshake, and a newer one, which gets the newest" {
  agents_register ann
  while read -r wanted got; do
    sed "s/2025-11-25/$wanted/" <<<"$INIT"
  done >revisions <<'EOS'
2024-11-05 2024-11-05
2025-03-26 2025-03-26
2025-06-18 2025-06-18
2025-11-25 2025-11-25
2026-07-28 2025-11-25
1999-01-01 2025-11-25
EOS
  while IFS= read -r line; do
    amp-mcp --agent ann <<<"$line"
  done <revisions | jq -r .result.protocolVersion >got
  [ "$(paste -sd ' ' got)" = "2024-11-05 2025-03-26 2025-06-18 2025-11-25 2025-11-25 2025-11-25" ]
}

@test "malformed lines get the code of JSON-RPC, and the session goes on" {
  agents_register ann
  {
    echo 'garbage'
    echo '{"jsonrpc":"2.0","id":1,"method":"ping"'
    echo '[]'
    echo '[{"jsonrpc":"2.0","id":2,"method":"ping"}]'
    echo '{"jsonrpc":"1.0","id":3,"method":"ping"}'
    echo '{"jsonrpc":"2.0","id":4}'
    echo '{"jsonrpc":"2.0","id":5,"method":"nope"}'
    echo '{"jsonrpc":"2.0","id":6,"method":"tools/call","params":[]}'
    echo '{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"nope"}}'
    echo '{"jsonrpc":"2.0","id":8,"method":"resources/read","params":{"uri":"amp://nope"}}'
    echo '{"jsonrpc":"2.0","id":9.5,"method":"ping"}'
    echo '{"jsonrpc":"2.0","id":10,"method":"logging/setLevel","params":{"level":"loud"}}'
    echo '{"jsonrpc":"2.0","id":11,"method":"initialize","params":{"protocolVersion":"2025-11-25"}}'
    echo '{"jsonrpc":"2.0","id":12,"id":13,"method":"ping"}'
    awk 'BEGIN { for (i = 0; i < 100; i++) printf "["; print "" }'
    awk 'BEGIN { printf "\""; for (i = 0; i < 4200000; i++) printf "x"; print "\"" }'
    printf '"\xff"\n'
    echo '{"jsonrpc":"2.0","id":15,"method":"tools/list","params":{"cursor":"1"}}'
    echo '{"jsonrpc":"2.0","id":16,"method":"resources/list","params":{"cursor":"x"}}'
    echo '{"jsonrpc":"2.0","id":17,"method":"resources/list","params":{"cursor":"2"}}'
    echo '{"jsonrpc":"2.0","method":"notifications/unknown"}'
    echo '{"jsonrpc":"2.0","id":99,"result":{}}'
    printf '{"jsonrpc":"2.0","id":14,"method":"ping"}' # without a line end
  } | once ann
  [ "$(jq -r '[.id, .error.code // "ok"] | join(":")' out.ndjson | paste -sd ' ')" = \
    "0:ok :-32700 :-32700 :-32600 :-32600 3:-32600 4:-32600 5:-32601 6:-32602 7:-32602 8:-32002 :-32600 10:-32602 11:-32600 :-32700 :-32700 :-32600 :-32700 15:-32602 16:-32602 17:ok 14:ok" ]
}

@test "batches in the revisions that have them" {
  agents_register ann
  {
    echo "${INIT/2025-11-25/2025-03-26}"
    echo '[{"jsonrpc":"2.0","id":1,"method":"ping"},{"jsonrpc":"2.0","method":"notifications/x"},3,{"jsonrpc":"2.0","id":2,"method":"nope"}]'
    echo '[{"jsonrpc":"2.0","method":"notifications/x"}]'
    echo '[{"jsonrpc":"2.0","id":3,"method":"initialize","params":{"protocolVersion":"2025-03-26"}}]'
  } | amp-mcp --agent ann >out.ndjson
  [ "$(jq -c 'if type == "array" then map([.id, .error.code]) else .id end' out.ndjson | paste -sd ' ')" = \
    '0 [[1,null],[null,-32600],[2,-32601]] [[3,-32600]]' ]
}

@test "the revision without a handshake: each request says its version" {
  agents_register ann
  modern() { # ID METHOD [VERSION [PARAMS]]
    printf '{"jsonrpc":"2.0","id":%s,"method":"%s","params":{%s"_meta":{"io.modelcontextprotocol/protocolVersion":"%s","io.modelcontextprotocol/clientCapabilities":{}}}}\n' \
      "$1" "$2" "${4-}" "${3-2026-07-28}"
  }
  {
    echo '{"jsonrpc":"2.0","id":1,"method":"tools/list"}'
    modern 2 server/discover
    modern 3 tools/list
    modern 4 tools/list 1900-01-01
    modern 5 ping
    modern 6 resources/read 2026-07-28 '"uri":"amp://nope",'
    modern 7 subscriptions/listen 2026-07-28 '"notifications":{"resourceSubscriptions":["amp://inbox"],"resourcesListChanged":true},'
    echo '{"jsonrpc":"2.0","id":8,"method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}'
  } | amp-mcp --agent ann >out.ndjson
  answer '.["1"].error.code == -32602
    and (.["2"].result | .supportedVersions == ["2026-07-28"] and .resultType == "complete" and .cacheScope == "private")
    and (.["3"].result | (.tools | map(.name)) == ["inbox","send","reply","progress","ask_human","my_task"]
      and ._meta["io.modelcontextprotocol/serverInfo"].name == "amp-mcp")
    and (.["4"].error | .code == -32022 and .data.requested == "1900-01-01" and .data.supported[0] == "2026-07-28")
    and .["5"].error.code == -32601 and .["6"].error.code == -32602 and .["8"].error.code == -32602
    and .["7"].result._meta["io.modelcontextprotocol/subscriptionId"] == 7'
  jq -e --slurp 'map(select(.method == "notifications/subscriptions/acknowledged"))[0].params.notifications
    == {"resourcesListChanged":true,"resourceSubscriptions":["amp://inbox"]}' out.ndjson
}

@test "a message: sent, taken once, answered; each result fits its schema" {
  agents_register ann bob
  {
    call 1 send '{"to":"bob","text":"Build it","subject":"Build","expects_reply":true}'
    call 2 send '{"to":"nobody","text":"x"}'
    call 3 send '{"to":"ann","text":"x"}'
    call 4 send '{"to":"bob","text":"x","from":"admin"}'
    call 5 send '{"to":"bob"}'
    call 6 my_task
    echo '{"jsonrpc":"2.0","id":7,"method":"tools/list"}'
    echo '{"jsonrpc":"2.0","id":8,"method":"resources/templates/list"}'
  } | once ann
  answer '.["1"].result.structuredContent.delivered and (.["2"].result._meta["amp/code"] == "invalid_targets")
    and ([.["3", "4", "5", "6"].result | .isError, ._meta["amp/code"]]
      == [true,"bad_recipient",true,"bad_arguments",true,"bad_arguments",true,"no_task"])
    and (.["8"].result.resourceTemplates | length == 1)'
  id=$(answer '.["1"].result.structuredContent.id' | tr -d '"')
  answer '.["7"].result.tools' >tools.json
  {
    call 1 inbox
    call 2 inbox
    call 3 reply "{\"id\":\"$id\",\"outcome\":\"reply\",\"text\":\"built\"}"
    call 4 reply "{\"id\":\"$id\",\"outcome\":\"reply\",\"text\":\"built\"}"
    call 5 reply '{"id":"no-such","outcome":"complete"}'
  } | once bob
  answer '(.["1"].result.structuredContent | .found and .taken and .from == "ann" and .text == "Build it"
      and .subject == "Build" and .wants_outcome and (.redelivered | not) and .waiting == 0)
    and .["2"].result.structuredContent == {"found":false} and .["3"].result.structuredContent.outcome == "reply"
    and .["5"].result._meta["amp/code"] == "unknown_ref"'
  # The answer is signed by bob.
  { call 1 inbox; } | once ann
  answer '.["1"].result.structuredContent | .from == "bob" and .text == "built"'
  amp-ack log --id "$id" >log
  grep -qE 'READ' log
  # What the tools return is what their schemas say.
  jq -c '.[] | select(.name == "inbox").outputSchema' tools.json >inbox.schema.json
  answer '.["1"].result.structuredContent' >result.json
  run -0 amp-validate --schema "$PWD/inbox.schema.json" --document result.json
  # Each schema is a valid one.
  jq -c '.[] | .inputSchema, .outputSchema' tools.json | while IFS= read -r s; do
    printf '%s\n' "$s" >s.json
    echo '{}' | amp-validate --schema "$PWD/s.json" --document - >/dev/null 2>bad || ! grep -q invalid_schema bad
  done
}

@test "what an agent says carries the version of the routing policy" {
  agents_register ann bob
  echo '{"runtime":{"routing_policy":"rpv_7"}}' >amp.json
  { echo "$INIT"; call 1 send '{"to":"bob","text":"one"}'; } | amp-mcp --agent ann -c amp.json >out.ndjson
  amp-route inbox bob | jq -e '.msg // . | .trace == {attempt: 1, routingPolicyVersion: "rpv_7"}'
  call 1 send '{"to":"bob","text":"two"}' | once ann
  amp-route inbox bob | jq -e '.msg // . | .trace == {attempt: 1}'
}

@test "a message whose answer the client did not read is handed over again after a kill" {
  agents_register ann bob
  call 1 send '{"to":"bob","text":"one"}' | once ann
  server --agent bob
  tell "$(call 1 inbox)"
  offered() { amp-route inbox bob --list --json | grep -q '"state":"OFFERED"'; }
  wait_until 10 offered
  kill -9 "$server_pid"
  stop_server
  rm to from
  server --agent bob
  tell "$(call 1 inbox)"
  hears 1
  jq -e '.result.structuredContent | .redelivered and .attempt == 2' <<<"$line"
  none() { ! amp-route inbox bob --list 2>/dev/null; }
  wait_until 10 none
  # A second server of the same agent gets nothing twice.
  tell "$(call 2 inbox '{"wait_seconds":60}')"
  hear
  [[ $line == *'"progressToken":2'* ]]
  tell '{"jsonrpc":"2.0","id":3,"method":"resources/subscribe","params":{"uri":"amp://inbox"}}'
  hears 3
  call 1 send '{"to":"bob","text":"two"}' | once ann
  hears 2
  jq -e '.result.structuredContent.text == "two"' <<<"$line"
  tell '{"jsonrpc":"2.0","id":4,"method":"ping"}'
  hears 4
  grep -q notifications/resources/updated heard.ndjson
}

@test "a person is asked: an answer, a deadline, a cancellation, the end of the session" {
  agents_register ann
  server --agent ann
  tell "$(call 1 ask_human '{"question":"Delete the table?","details":"It has 3 rows.","choices":["archive"]}')"
  hear
  id=$(jq -r 'select(.method == "notifications/progress") | .params.message | capture("question (?<id>[^ ]+)").id' <<<"$line")
  run -0 hitl-prompt show "$id"
  [[ $output == *"Delete the table?"* ]]
  # Meanwhile the session is not blocked.
  tell '{"jsonrpc":"2.0","id":2,"method":"ping"}'
  hears 2
  # The agent cannot answer it by another tool.
  tell "$(call 3 reply "{\"id\":\"$id\",\"outcome\":\"complete\"}")"
  hears 3
  jq -e '.result._meta["amp/code"] == "permission_denied"' <<<"$line"
  hitl-prompt answer --print "$id" archive 'keep a copy' >decision.ndjson
  hears 1
  jq -e --arg me "$(id -un)" '.result.structuredContent
    | .answered and .decision == "archive" and .note == "keep a copy" and .by == $me' <<<"$line"

  tell "$(call 4 ask_human '{"question":"Now?","timeout_seconds":1}')"
  hears 4
  jq -e '.result.structuredContent.answered == false and (.result.content[0].text | test("not an approval"))' <<<"$line"

  tell "$(call 5 ask_human '{"question":"Push?"}')"
  hear
  id=$(jq -r '.params.message | capture("question (?<id>[^ ]+)").id' <<<"$line")
  tell '{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":5}}'
  tell '{"jsonrpc":"2.0","id":6,"method":"ping"}'
  hear
  [[ $line == *'"id":6,'* ]] # nothing more about 5
  run -1 hitl-prompt answer "$id" approve
  [[ $output == *"withdrew the question"* ]]

  tell "$(call 7 ask_human '{"question":"Merge?"}')"
  hear
  id=$(jq -r '.params.message | capture("question (?<id>[^ ]+)").id' <<<"$line")
  ended_by TERM 130
  run -1 hitl-prompt answer "$id" approve
  [[ $output == *"withdrew the question"* ]]
}

@test "it speaks as its agent only, and an agent cannot start it as another" {
  agents_register ann
  AMP_AGENT=bob run -77 amp-mcp --agent ann </dev/null
  [[ $output == *"cannot act as ann"* ]]
  run -77 env AMP_AGENT=bob sh -c 'unset AMP_AGENT; amp-mcp --agent ann; exit $?' </dev/null
  [[ $output == *"cannot act as ann"* ]]
  for name in admin operator coordinator system amp-route; do
    run -77 amp-mcp --agent "$name" </dev/null
  done
  run -64 amp-mcp --agent 'a/b' </dev/null
  run -64 amp-mcp </dev/null
  (unset AMP_STATE && run -64 amp-mcp --agent ann </dev/null && [[ $output == *"state directory"* ]])
  call 1 inbox | AMP_STATE=$PWD/none once ann
  answer '.["1"].result._meta["amp/code"] == "state_missing"'
}

@test "a closed pipe ends it with 74, a signal with 130, the end of the input with 0" {
  agents_register ann
  run -0 amp-mcp --agent ann </dev/null
  [ -z "$output" ]
  run -74 bash -c 'set -o pipefail; { echo "$1"; sleep 0.05; yes "$2" | head -n 20000; } | amp-mcp --agent ann | head -n 1 >first' \
    - "$INIT" '{"jsonrpc":"2.0","id":1,"method":"ping"}'
  server --agent ann
  ended_by TERM 130
}

# router BODY: amp-mcp has this script instead of amp-route, with the real one in $route.
router() {
  mkdir -p bin
  ln -sf "$AMP_BUILD"/bin/* bin/
  rm bin/amp-mcp bin/amp-route
  cp "$AMP_BUILD/bin/amp-mcp" bin/
  printf '#!/bin/bash\nroute=%q\n%s\n' "$AMP_BUILD/bin/amp-route" "$1" >bin/amp-route
  chmod +x bin/amp-route
}

@test "while a message leaves, other calls are answered; messages leave in order" {
  agents_register ann bob
  mkfifo go
  router "read -r _ <'$PWD/go' || exit 75; exec \"\$route\" \"\$@\""
  PATH=$PWD/bin:$PATH AMP_LIBEXEC=$AMP_BUILD/libexec/amp server --agent ann
  exec 9<>go
  tell "$(call 1 send '{"to":"bob","text":"first"}')"
  tell "$(call 2 send '{"to":"bob","text":"second"}')"
  tell "$(call 3 send '{"to":"bob","text":"cancelled"}')"
  tell '{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":3}}'
  tell '{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}'
  tell '{"jsonrpc":"2.0","id":4,"method":"ping"}'
  hears 4
  run -1 grep -q '"result"' heard.ndjson
  echo >&9
  hears 1
  jq -e '.result.structuredContent.delivered' <<<"$line"
  # The input ends: what was asked for before still leaves.
  exec 7>&-
  echo >&9
  hears 2
  jq -e '.result.structuredContent.delivered' <<<"$line"
  wait "$server_pid"
  server_pid=
  exec 8<&- 9<&-
  run -0 --separate-stderr amp-route inbox bob --max 3
  [ "${#lines[@]}" -eq 2 ]
  [[ ${lines[0]} == *first* && ${lines[1]} == *second* ]]
}

@test "a message of a killed server leaves with the next session, once, and its numbers have no gap" {
  agents_register ann bob
  mkfifo there
  # Killed before amp-route has it, and after it was delivered, but before the answer.
  for when in before after; do
    [ "$when" = before ] && router "echo >'$PWD/there'; sleep 60 & wait" ||
      router "\"\$route\" \"\$@\" || exit; echo >'$PWD/there'; sleep 60 & wait"
    rm -f to from
    PATH=$PWD/bin:$PATH AMP_LIBEXEC=$AMP_BUILD/libexec/amp server --agent ann
    tell "$(call 1 send "{\"to\":\"bob\",\"text\":\"$when\"}")"
    read -r -t 10 _ <there
    kill -9 "$server_pid"
    wait "$server_pid" 2>/dev/null || :
    server_pid=
    exec 7>&- 8<&-
    # A session that only begins.
    amp-mcp --agent ann <<<"$INIT" >/dev/null
  done
  call 1 send '{"to":"bob","text":"last"}' | once ann
  answer '.["1"].result.structuredContent.delivered'
  amp-mcp --agent ann <<<"$INIT" >/dev/null
  run -0 --separate-stderr amp-route inbox bob --max 9
  jq -se 'map([.msg // . | .payload.body, .seq]) == [["before",1],["after",2],["last",3]]' <<<"$output"
}

@test "what cannot leave now is recorded, and leaves later" {
  agents_register ann
  { echo "$INIT" && call 1 send '{"to":"bob","text":"one"}'; } | amp-mcp --agent ann --out said >out.ndjson
  answer '.["1"].result | .isError == false and .structuredContent.delivered == false
    and (.content[0].text | test("do not send it again"))'
  : >said
  amp-mcp --agent ann --out said <<<"$INIT" >/dev/null
  amp-mcp --agent ann --out said <<<"$INIT" >/dev/null
  jq -se 'map((.msg // .).payload.body) == ["one"]' said
}

@test "a batch does not block the session: its calls can be cancelled, and are answered together" {
  agents_register ann bob
  mkfifo go
  router "read -r _ <'$PWD/go' || exit 75; exec \"\$route\" \"\$@\""
  INIT=${INIT/2025-11-25/2025-03-26}
  PATH=$PWD/bin:$PATH AMP_LIBEXEC=$AMP_BUILD/libexec/amp server --agent ann
  exec 9<>go
  tell "[$(call 1 send '{"to":"bob","text":"first"}'),$(call 2 send '{"to":"bob","text":"second"}'),{\"jsonrpc\":\"2.0\",\"method\":\"notifications/x\"},$(call 3 ask_human '{"question":"q"}'),[],{\"jsonrpc\":\"2.0\",\"id\":4,\"method\":\"ping\"}]"
  tell '{"jsonrpc":"2.0","id":5,"method":"ping"}'
  hears 5
  tell '{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":2}}'
  tell '{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":3}}'
  tell '{"jsonrpc":"2.0","id":6,"method":"ping"}'
  hears 6
  echo >&9
  while hear && [[ $line != '['* ]]; do :; done
  jq -e 'map([.id, .error.code // (.result.structuredContent.delivered // .result)]) | sort
    == [[null,-32600],[1,true],[4,{}]]' <<<"$line"
  exec 9<&-
  none() { [ "$(hitl-prompt list --json | wc -l)" -eq 0 ]; }
  wait_until 10 none
}

@test "accept and progress with an end in sight, and files of the work only from below the directory" {
  agents_register ann bob
  jq -c --slurpfile rest "$AMP_TOP/tests/fixture/protocols/rtp.jsonl" -n '
    first($rest[] | select(.base == "create" and (.line | has("eventId")))).line
    | del(.expiresAt, .payload.requiredCapabilities, .payload.deadlineAt) | .eventId = "evt_4" | .corrId = "corr_4" | .seq = 1
    | .sourceNodeId = "node-4" | .toAgentId = "bob" | .payload.toAgents = ["bob"] | .payload.taskId = "tsk_4"' |
    amp-route -r '* => inbox:bob' --identity off >/dev/null
  mkdir work
  : >said
  cd work
  echo result >out.txt
  ln -s /etc/passwd link
  {
    echo "$INIT"
    call 1 inbox
    call 2 reply '{"id":"evt_4","outcome":"accept"}'
    call 3 reply '{"id":"evt_4","outcome":"accept","eta_seconds":600,"text":"plan"}'
    call 4 progress '{"id":"evt_4","text":"half","percent":50,"eta_seconds":300}'
    call 5 reply '{"id":"evt_4","outcome":"complete","files":["../err"]}'
    call 6 reply '{"id":"evt_4","outcome":"complete","files":["link"]}'
    call 7 reply '{"id":"evt_4","outcome":"complete","files":["/etc/passwd"]}'
    call 8 reply "{\"id\":\"evt_4\",\"outcome\":\"complete\",\"text\":\"done\",\"files\":[\"out.txt\",\"$PWD/out.txt\"]}"
  } | amp-mcp --agent bob --identity off --out ../said >../out.ndjson
  cd ..
  answer '[.["2","5","6","7"].result._meta["amp/code"]] == ["eta_required","bad_file","bad_file","permission_denied"]
    and ([.["3","4","8"].result.structuredContent.outcome] == ["accept","progress","complete"])'
  jq -c '.msg // .' said >lines
  jq -se '.[0].kind == "task_accept" and (.[0].payload | .planSummary == "plan" and (.etaAt | length > 0))
    and (.[1].payload | .progress == 50 and (.revisedEtaAt | length > 0))
    and (.[2].payload | tostring | test("out.txt") and test("'"$(sha256sum <work/out.txt | cut -d' ' -f1)"'"))' lines || {
    cat lines
    return 1
  }
}

@test "inside of a confined attempt: the task, progress, a question, the answer" {
  native "a sanitizer reserves more memory than the sandbox gives"
  unset AMP_STATE AMP_CONFINE AMP_IDENTITY
  "$AMP_BUILD/libexec/amp/confine" --probe | jq -e '.namespaces and .landlock > 0 and .seccomp' ||
    skip "this machine cannot confine"
  export AMP_IDENTITY=off
  workplace
  agent work <<EOS
touch a
coproc MCP { amp-mcp --agent executor; }
printf '%s\n' '$INIT' \
  '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"my_task"}}' \
  '{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"progress","arguments":{"text":"half","percent":50}}}' \
  '{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"send","arguments":{"to":"x","text":"y"}}}' \
  '{"jsonrpc":"2.0","id":4,"method":"tools/call","params":{"name":"inbox"}}' \
  '{"jsonrpc":"2.0","id":5,"method":"resources/read","params":{"uri":"amp://attempt/criteria"}}' \
  '{"jsonrpc":"2.0","id":6,"method":"tools/call","params":{"name":"reply","arguments":{"outcome":"partial"}}}' \
  '{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"reply","arguments":{"outcome":"complete","criteria_met":[true],"notes":["ran it"]}}}' \
  '{"jsonrpc":"2.0","id":8,"method":"resources/list"}' \
  '{"jsonrpc":"2.0","id":9,"method":"tools/list"}' \
  '{"jsonrpc":"2.0","id":10,"method":"tools/call","params":{"name":"ask_human","arguments":{"question":"Which colour?"}}}' >&\${MCP[1]}
while IFS= read -r line <&\${MCP[0]}; do
  printf '%s\n' "\$line" >>"\${AMP_RESULT%/*}/mcp.ndjson"
  [[ \$line != *'"id":10,'* ]] || break
done
EOS
  # The program is one of ours: no policy has to grant it. A person outside answers the question.
  dispatch >in.ndjson
  run_agent --exec ./work <in.ndjson &
  pid=$!
  wait_until 20 grep -q '"type":"escalation"' out.ndjson
  grep '"type":"escalation"' out.ndjson >question.ndjson
  echo '{"task_id":"*","decision":"resume","note":"blue"}' >given
  hitl-prompt --state "$STATE" --answer given <question.ndjson >decision.ndjson
  wait "$pid"
  mv out.ndjson result.ndjson
  cp "$STATE"/run/T-2026-001/*/mcp.ndjson out.ndjson
  answer '(.["1"].result.structuredContent | .task_id == "T-2026-001" and .role == "executor" and (.criteria | length > 0))
    and .["2"].result.structuredContent.recorded
    and .["3"].result._meta["amp/code"] == "permission_denied"
    and .["4"].result.structuredContent == {"found":false,"taken":false,"waiting":0}
    and (.["5"].result.contents[0].text | fromjson | length > 0)
    and .["6"].result._meta["amp/code"] == "schema_violation"
    and .["7"].result.structuredContent.written
    and (.["8"].result.resources | map(.uri) | index("amp://attempt/result") != null and index("amp://inbox") == null)
    and (.["9"].result.tools | map(.name) == ["inbox","reply","progress","ask_human","my_task"])
    and (.["10"].result.structuredContent | .answered and .decision == "resume" and .note == "blue")'
  cp result.ndjson out.ndjson
  got out.ndjson '.payload?.self_assessment?.notes == ["ran it"]'
}

@test "with Landlock alone and with identities: a cancelled question is withdrawn, signed, and the task goes on" {
  native "a sanitizer reserves more memory than the sandbox gives"
  unset AMP_STATE AMP_CONFINE AMP_IDENTITY
  "$AMP_BUILD/libexec/amp/confine" --probe | jq -e '.landlock > 0 and .seccomp' || skip "this machine cannot confine"
  workplace
  agent work <<EOS
touch a
coproc MCP { amp-mcp --agent executor; }
say() { printf '%s\n' "\$1" >&\${MCP[1]}; }
heard() { while IFS= read -r -t 20 line <&\${MCP[0]}; do [[ \$line != *"\$1"* ]] || return 0; done; exit 1; }
say '$INIT'
say '$(call 1 ask_human '{"question":"Which colour?"}')'
heard 'waiting for a person: question '
say '{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}'
say '$(call 2 progress '{"text":"blue, then"}')'
heard '"id":2,'
say '$(call 3 reply '{"outcome":"complete","criteria_met":[true,true],"notes":["ran it"]}')'
heard '"id":3,'
EOS
  coordinated() { task-dispatch coordinate --state "$STATE" 2>>said || :; }
  dispatch '.from = "admin" | .to = "coordinator"' | coordinated | grep '"type":"task_dispatch"' >in.ndjson
  "$AMP_BUILD/tests/fixture/without" namespaces -- task-dispatch run --best-effort --state "$STATE" --exec ./work <in.ndjson >out.ndjson 2>err
  grep -q 'namespaces' err
  got out.ndjson '.msg.code? == "withdrawn" and (.sig.key | length > 0)'
  coordinated <out.ndjson >next.ndjson
  jq -e '.state == "in_review" and (.withdrawn | length) == 1 and .escalations == []' "$STATE/tasks/T-2026-001.json"
  got next.ndjson '.msg.type? == "review_request"'
  [ "$(hitl-prompt list --state "$STATE" --json | wc -l)" -eq 0 ]
}

@test "in an attempt without a role the agent is an executor" {
  mkdir attempt
  mkfifo attempt/control
  exec 9<>attempt/control
  unset AMP_STATE AMP_ROLE
  export AMP_AGENT=executor AMP_CONTROL=$PWD/attempt/control AMP_RESULT=$PWD/attempt/result.json
  server
  tell "$(call 1 my_task '{}')"
  hears 1
  [ "$(jq -r .result.structuredContent.role <<<"$line")" = executor ]
}

@test "a question through the control FIFO of an attempt" {
  # The worker's side, played by this test: the answers are files beside the FIFO.
  mkdir attempt
  mkfifo attempt/control
  exec 9<>attempt/control
  unset AMP_STATE
  export AMP_AGENT=executor AMP_ROLE=executor AMP_CONTROL=$PWD/attempt/control AMP_RESULT=$PWD/attempt/result.json
  server
  tell "$(call 1 ask_human '{"question":"Which port?","details":"8080 is taken.","choices":["9090"]}')"
  IFS= read -r -t 10 asked <&9
  jq -e '.type == "question" and .text == "Which port?\n8080 is taken." and .suggestions == ["9090"]' <<<"$asked"
  id=$(jq -r .id <<<"$asked")
  put() { printf '%s\n' "$1" >attempt/.new && mv attempt/.new "attempt/answer-$id.json"; }
  put "{\"id\":\"$id\",\"ok\":true,\"escalation\":\"e-1\"}"
  put "{\"id\":\"$id\",\"ok\":true,\"escalation\":\"e-1\",\"decision\":\"resume\",\"note\":\"9090\"}"
  hears 1
  jq -e '.result.structuredContent == {"answered":true,"question":"e-1","decision":"resume","note":"9090"}' <<<"$line"
  # Cancelled: it is withdrawn. Not answered in time: withdrawn, but a person was quicker.
  tell "$(call 11 ask_human '{"question":"Now?"}')"
  IFS= read -r -t 10 asked <&9
  tell '{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":11}}'
  IFS= read -r -t 10 withdrawn <&9
  jq -e --argjson asked "$asked" '.type == "withdraw" and .question == $asked.id' <<<"$withdrawn"
  amp-validate -S agent/control --document - <<<"$withdrawn"
  tell "$(call 12 ask_human '{"question":"Now?","timeout_seconds":1}')"
  IFS= read -r -t 10 asked <&9
  IFS= read -r -t 10 withdrawn <&9
  id=$(jq -r .id <<<"$withdrawn")
  put "{\"id\":\"$id\",\"ok\":false,\"code\":\"already_decided\",\"message\":\"m\"}"
  id=$(jq -r .id <<<"$asked")
  put "{\"id\":\"$id\",\"ok\":true,\"escalation\":\"e-2\",\"decision\":\"resume\",\"note\":\"ok\"}"
  hears 12
  jq -e '.result.structuredContent.decision == "resume"' <<<"$line"
  tell "$(call 13 ask_human '{"question":"Now?","timeout_seconds":1}')"
  IFS= read -r -t 10 asked <&9
  IFS= read -r -t 10 withdrawn <&9
  id=$(jq -r .id <<<"$withdrawn")
  put "{\"id\":\"$id\",\"ok\":true,\"withdrawn\":true,\"escalation\":\"e-3\"}"
  hears 13
  jq -e '.result.structuredContent.answered == false' <<<"$line"
  # While the worker does not answer, the session does.
  tell "$(call 14 progress '{"text":"x"}')"
  IFS= read -r -t 10 asked <&9
  tell '{"jsonrpc":"2.0","id":15,"method":"ping"}'
  hears 15
  id=$(jq -r .id <<<"$asked")
  put "{\"id\":\"$id\",\"ok\":true}"
  hears 14
  jq -e '.result.structuredContent.recorded' <<<"$line"
  # Refused by the worker; too long; the worker is gone.
  tell "$(call 2 progress '{"text":"x"}')"
  IFS= read -r -t 10 asked <&9
  id=$(jq -r .id <<<"$asked")
  put "{\"id\":\"$id\",\"ok\":false,\"code\":\"control_limit\",\"message\":\"too many lines\"}"
  hears 2
  jq -e '.result._meta["amp/code"] == "control_limit"' <<<"$line"
  tell "$(call 3 ask_human "{\"question\":\"q\",\"details\":\"$(printf 'x%.0s' {1..5000})\"}")"
  hears 3
  jq -e '.result._meta["amp/code"] == "line_too_long"' <<<"$line"
  exec 9>&-
  tell "$(call 4 progress '{"text":"x"}')"
  hears 4
  jq -e '.result._meta["amp/code"] == "no_worker"' <<<"$line"
}

@test "too many calls at once, and too fast, are refused" {
  agents_register ann
  {
    for i in {1..17}; do call "$i" ask_human '{"question":"q","timeout_seconds":60}'; done
  } >lines
  server --agent ann
  cat lines >&7
  hears 17
  jq -e '.result._meta["amp/code"] == "too_many_calls"' <<<"$line"
  for i in {101..260}; do call "$i" my_task; done >lines
  cat lines >&7
  hears 260
  jq -e --slurp 'map(select(.result._meta["amp/code"]? == "rate_limited")) | length > 0' heard.ndjson
}

@test "the settings for coding agents are valid, and start the server" {
  cd "$AMP_TOP/share/agents"
  local n=0
  for f in claude/mcp.json cursor/mcp.json windsurf/mcp_config.json copilot/mcp-config.json gemini/settings.json \
    qwen/settings.json vscode/mcp.json opencode/opencode.json; do
    jq -e '[.mcpServers.amp?, .servers.amp?, .mcp.amp? | objects][0] | [.command] + (.args // []) | flatten
      == ["amp-mcp"]' "$f"
    n=$((n + 1))
  done
  [ "$n" -eq 8 ]
  grep -qx 'command = "amp-mcp"' codex/config.toml
  run -1 grep '^args' codex/config.toml
  # Codex passes on only what is listed: each variable that the server reads.
  for v in $(grep -rhoE '"AMP_[A-Z_]+"' "$AMP_TOP/cmd/amp-mcp" "$AMP_TOP/lib/cli/rows.h" "$AMP_TOP/lib/cli/config_file.c"); do
    grep -qF "$v" codex/config.toml || { echo "codex/config.toml does not list $v"; false; }
  done
  # Every file is named in the README, and the other way round.
  for f in */*; do grep -qF "\`$f\`" README.md; done
  cd "$BATS_TEST_TMPDIR"
  repo r
  mkdir -m 700 r/.git/amp
  unset AMP_STATE
  cd r
  run -0 amp-mcp --agent builder <<<"$INIT"
  jq -e '.result.serverInfo.name == "amp-mcp"' <<<"$output"
}

@test "SKILL.md has its front matter, and what it shows is right" {
  sed -n '2,/^---$/p' "$AMP_TOP/share/SKILL.md" | grep -qE '^name: amp-tools$'
  [ "$(sed -n 's/^description: //p' "$AMP_TOP/share/SKILL.md" | wc -c)" -le 1024 ]
  sed -n 's/^Executor: `\(.*\)`$/\1/p' "$AMP_TOP/share/SKILL.md" >answer.json
  run -0 amp-validate -S agent/result --document answer.json
  sed -n 's/^Reviewer: `\(.*\)`$/\1/p' "$AMP_TOP/share/SKILL.md" >answer.json
  run -0 amp-validate -S agent/verdict --document answer.json
  grep -oE "echo '[^']*'" "$AMP_TOP/share/SKILL.md" | sed "s/echo '//; s/'\$//" >lines
  [ "$(wc -l <lines)" -eq 2 ]
  while IFS= read -r l; do
    printf '%s\n' "$l" >line.json
    run -0 amp-validate -S agent/control --document line.json
  done <lines
}
