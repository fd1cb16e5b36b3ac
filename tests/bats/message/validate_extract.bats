# amp-validate --extract: messages wherever they stand in a text.

load ../lib
load ../messages

setup() {
  need jq
  cd "$BATS_TEST_TMPDIR" || return 1
  message task_dispatch >dispatch
  message task_result >result
  message escalation '.payload.description = "braces {\"a\": [} and `ticks`"' >escalation
  aof='{"protocol":"aof","version":1,"type":"handoff.accepted","taskId":"TASK-2026-02-09-057","fromAgent":"a","toAgent":"b","sentAt":"2026-02-09T21:00:00Z","payload":{"taskId":"TASK-2026-02-09-057","accepted":true}}'
}

# A text with a message of every kind of place; `said` is what has to come out.
text() {
  echo "Hello, {name}! if (x) { return {}; } and f({\"a\": 1}) are no messages."
  printf '  ```json title="x"\n'
  jq . dispatch
  printf '  ```\n'
  echo "Then $(cat result), and $(cat escalation) {"
  jq . result | sed 's/^/> /'
  printf '~~~~\r\n%s\r\n~~~~\r\n' "$(jq . escalation | sed 's/$/\r/')"
  printf '2026-02-26T10:00:00Z \033[32mINFO\033[0m AOF/1 %s\n' "$aof"
  printf 'AOF/1 %s\n' "$aof"
  jq -C . dispatch
  jq -c '{type: "assistant", message: {role: "assistant", content: [{type: "text",
    text: ("Done:\n```json\n" + (. | tojson) + "\n```\n")}]}}' result
  jq -c '{type: "tool_use", input: {deep: [.]}}' escalation
  jq -c '{log: ({line: ("see " + tojson)} | tojson)}' result
  jq . dispatch | awk '{ printf "web_1  | 2026-02-26 10:00:%02d %s\n", NR, $0 }'
}

said() {
  cat dispatch result escalation result escalation
  printf '%s\n%s\n' "$aof" "$aof"
  cat dispatch result escalation result dispatch
}

@test "each message comes out on a line of its own, with where it was found" {
  text >in
  run --separate-stderr amp-validate --extract in
  [ "$status" -eq 0 ]
  diff <(said | jq -c .) <(cat <<<"$output")
  [ "$(sed 's/^amp-validate: note: in:[0-9]*:[0-9]*: [a-z]* [a-z._]* //' <<<"$stderr" | xargs)" = \
    "in a fence in prose in prose in prose in a fence in prose on a line on a line in a string inside an object in a string in prose" ]
  amp-validate --extract -e records in >out
  amp-validate -S "$AMP_TOP/schemas/records/found.json" records | cmp - records
  [ "$(jq -r .found records | xargs)" = \
    "fence prose prose prose fence prose line line string object string prose" ]
  # The place is where the message, or the string that it is in, begins.
  jq -r '"\(.offset) \(.line) \(.column)"' records | while read -r offset line column; do
    c=$(dd if=in bs=1 skip="$offset" count=1 status=none)
    [ "$c" = "$(sed -n "${line}p" in | LC_ALL=C cut -b "$column")" ]
  done
}

@test "bytes between tokens go, the others stay" {
  printf 'x {\n\t"protocol" : "aof", "n": 1.50,\r\n "e":[ 1E2 , {}, "\\u00e9 \\/ {" ] }\n' >in
  run amp-validate --extract --check in
  [ "$(jq -r .code <<<"$output")" = invalid_envelope ]
  amp-validate --extract --annotate in >out || [ $? -eq 1 ]
  grep -F '"message":{"protocol":"aof","n":1.50,"e":[1E2,{},"\u00e9 \/ {"]}' out
}

@test "what claims to be a message and is wrong, or breaks off, is refused with its place" {
  {
    echo 'Look: {"msg_id": "x", "type": "ack"} and {"message_id": 5, "channel": "c"}'
    echo 'AOF/1 {not json}'
    head -c 200 dispatch
    echo
    cat result
    jq -c . dispatch | sed 's/}$/,}/'
  } >in
  run --separate-stderr amp-validate --extract -e records in
  [ "$status" -eq 1 ]
  [ "$output" = "$(jq -c . result)" ]
  jq -r 'select(.code) | .code' records >codes
  grep -q missing_field codes
  [ "$(grep -c invalid_json codes)" -eq 3 ]
  [ "$(jq -r 'select(.code == "invalid_json") | .line' records | xargs)" = "2 3 5" ]
}

@test "an object past --max-line is named, and what follows is found" {
  { printf '{"text": "%05000d"} ' 0; cat result; } >in
  run --separate-stderr amp-validate --extract --max-line 1K -e records in
  [ "$status" -eq 1 ]
  [ "$output" = "$(jq -c . result)" ]
  [ "$(jq -r 'select(.code) | "\(.code) \(.line)"' records)" = "line_too_long 1" ]
}

@test "a message comes out as soon as its last byte is there" {
  mkfifo pipe
  amp-validate --extract <pipe >out 2>/dev/null &
  pid=$!
  exec 5>pipe
  printf 'so far: %s' "$(cat result)" >&5
  wait_until 30 has_lines out 1
  kill -0 "$pid"
  exec 5>&-
  wait "$pid"
  diff <(jq -c . result) out
}

@test "garbage neither crashes nor comes out" {
  LC_ALL=C awk 'BEGIN { srand(3); s = "{}[]\":,\\\n `~>ab1\033\200\377";
    for (i = 0; i < 300000; i++) printf "%s", substr(s, int(rand() * length(s)) + 1, 1) }' >in
  head -c 200000 /dev/urandom >>in
  run -1 --separate-stderr amp-validate --extract in
  [ -z "$output" ]
  [ "$stderr" = "amp-validate: error: no message found in in" ]
}

@test "with other modes: verdicts, refusals, conversion, one protocol" {
  text >in
  amp-validate --extract --check in >out
  [ "$(jq -s 'map(.valid) | all' out) $(jq -s length out)" = "true 12" ]
  jq -s -e '.[0].found.in == "fence" and .[0].line == 3' out
  [ "$(amp-validate --extract -p aof in 2>/dev/null | wc -l)" -eq 2 ]
  amp-validate --extract --to sw4rm -e /dev/null in >out
  amp-validate --check <out | jq -s -e 'map(.protocol == "sw4rm" and .valid) | all and length == 12'
  run amp-validate --extract --document in
  [ "$status" -eq 64 ]
}

@test "a text without a message is a no, with the reason" {
  echo "Hello, {name}!" >prose
  run -1 --separate-stderr amp-validate --extract prose
  [ -z "$output" ]
  [ "$stderr" = "amp-validate: error: no message found in prose" ]
  run -1 amp-validate --extract </dev/null
  [ "$output" = "amp-validate: error: no message found in stdin" ]
  run -1 amp-validate --extract -p aop prose dispatch
  [[ $output == *"no message found in any of the 2 files"* ]]
  # One message in one of the files is enough; what is refused was found.
  run -0 amp-validate --extract prose dispatch prose
  run -1 amp-validate --extract prose - < <(message task_dispatch '.from = "robot"')
  [[ $output != *"no message found"* ]]
  run -65 amp-validate --extract nowhere
  [[ $output != *"no message found"* ]]
}

# output AGENT: what the agent's command line printed: a prompt with a dispatch, a tool that read an escalation, and in two
# texts of the assistant a result and an escalation. Made from outputs of the real programs (tests/realcli).
output() {
  local said
  said=$(printf 'Done:\n```json\n%s\n```\n' "$(cat result)")
  case $1 in
  claude | qwen)
    jq -c '{type: "user", message: {role: "user", content: [{type: "text", text: tojson}]}}' dispatch
    jq -c '{type: "stream_event", event: {type: "content_block_delta", delta: {type: "text_delta", text: tojson}}, parent_tool_use_id: null}' result
    jq -cn --arg t "$said" '{type: "assistant", message: {role: "assistant", content: [{type: "text", text: $t}]}, parent_tool_use_id: null}'
    jq -c '{type: "assistant", message: {content: [{type: "text", text: tojson}]}, parent_tool_use_id: "toolu_1"}' escalation
    jq -c '{type: "assistant", message: {content: [{type: "tool_use", name: "Write", input: {content: tojson}}]}}' escalation
    jq -c '{type: "user", message: {content: [{type: "tool_result", content: tojson}]}, tool_use_result: .}' escalation
    jq -c '{type: "assistant", message: {content: [{type: "text", text: "and"}, {type: "text", text: tojson}]}}' dispatch
    jq -c '{type: "result", subtype: "success", is_error: false, result: tojson}' dispatch
    ;;
  codex)
    jq -c '{type: "thread.started", thread_id: "t"}, {type: "item.completed", item: {type: "reasoning", text: tojson}},
      {type: "item.completed", item: {type: "command_execution", command: "cat x", aggregated_output: tojson, exit_code: 0}}' escalation
    jq -cn --arg t "$said" '("started", "completed") | {type: "item.\(.)", item: {type: "agent_message", text: $t}}'
    jq -c '{type: "item.completed", item: {type: "agent_message", text: tojson}}' dispatch
    ;;
  gemini)
    jq -c '{type: "message", role: "user", content: tojson}' dispatch
    jq -c '{type: "tool_result", tool_id: "1", status: "success", output: tojson}' escalation
    jq -cn --arg t "$said" '$t[:30], $t[30:90], $t[90:] | {type: "message", role: "assistant", content: ., delta: true}'
    jq -c '{type: "tool_use", tool_name: "write_file", parameters: {content: tojson}}' escalation
    jq -c '{type: "message", role: "assistant", content: tojson}' dispatch
    ;;
  opencode)
    jq -c '{type: "tool_use", part: {type: "tool", state: {input: {command: "cat x"}, output: tojson}}}' escalation
    jq -cn --arg t "$said" '{type: "text", part: {type: "text", text: $t}}'
    jq -c '{type: "text", part: {type: "text", text: tojson}}' dispatch
    ;;
  esac
}

@test "--from takes what the assistant said, once, and nothing that it read" {
  for agent in claude codex gemini opencode qwen; do
    { echo "a line that is not JSON"; output $agent; } >in
    amp-validate --extract --from $agent -e records in >out
    diff <(cat result dispatch | jq -c .) out
    # The places are those of the events.
    diff <(grep -nE 'item.completed.*agent_message|"assistant"|"type":"text"' in | grep -vE '"parent_tool_use_id":"|tool_use' | cut -d : -f 1 | tail -n 1) \
      <(jq -r .line records | tail -n 1)
    # As a list on one line, or as a document over several.
    output $agent | jq -cs . | amp-validate --extract --from $agent 2>/dev/null | cmp - out
    output $agent | jq -s . | amp-validate --extract --from $agent 2>/dev/null | cmp - out
  done
}

@test "--from takes the result if no text came before it" {
  jq -c '{type: "result", is_error: false, result: tojson}' result >in
  amp-validate --extract --from claude in 2>/dev/null | diff <(jq -c . result) -
  jq '{session_id: "s", response: ("Done: " + tojson), stats: {}}' result >in
  amp-validate --extract --from gemini in 2>/dev/null | diff <(jq -c . result) -
  jq -c '{type: "result", is_error: true, result: tojson}' result >in
  run -1 amp-validate --extract --from claude in
  [ "$output" = "amp-validate: error: no message found in in" ]
  run -64 amp-validate --from claude in
  run -64 amp-validate --extract --from aider in
}

@test "--from refuses an event that is longer than --max-line, and reads on" {
  { jq -cn '{type: "text", part: {text: ("x" * 5000)}}'; jq -c '{type: "text", part: {text: tojson}}' result; } >in
  run -1 --separate-stderr amp-validate --extract --from opencode --max-line 2K -e records in
  [ "$output" = "$(jq -c . result)" ]
  [ "$(jq -r 'select(.code) | "\(.code) \(.line)"' records)" = "line_too_long 1" ]
}
