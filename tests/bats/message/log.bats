#!/usr/bin/env bats
# amp-ack log: conversations out of the log, as lines and records, and the drawings of share/draw.
# plain: most of its time is that of jq and of Chromium; seventeen other suites read the log

load ../lib
load ../messages

setup() {
  need_tool amp-ack amp-route
  cd "$BATS_TEST_TMPDIR"
  export AMP_STATE=$PWD/state
  FLOW=7f3f41a2-2017-4b8f-9b8b-2ad3caaee001
  OTHER=7f3f41a2-2017-4b8f-9b8b-2ad3caaee002
}

teardown() {
  for p in $(jobs -p); do kill -9 "$p" 2>/dev/null || :; done
}

# data FLOW N [JQ]: the N-th message of a conversation; the same operation for the same N % 10.
data() {
  local id line
  printf -v id %04d "$2"
  line="{\"message_id\":\"d2b6a7a9-0e0c-4f44-b2d9-6e9e24f0$id\",\"producer_id\":\"agent-1\",\"correlation_id\":\"$1\","
  line+="\"sequence_number\":$2,\"retry_count\":0,\"message_type\":\"DATA\",\"content_type\":\"application/json\",\"content_length\":2,"
  edited "$line\"idempotency_token\":\"agent-1:Make:000000000000000${2: -1}\",\"payload\":{}}" "${3:-.}"
}
answer() { # answer FLOW N STAGE [CODE]
  local id payload
  printf -v id %04d "$2"
  payload="{\"ack_for_message_id\":\"d2b6a7a9-0e0c-4f44-b2d9-6e9e24f0$id\",\"ack_stage\":\"$3\"${4:+,\"error_code\":\"$4\"}}"
  printf '{"message_id":"e2b6a7a9-0e0c-4f44-b2d9-6e9e24f0%s","producer_id":"agent-2","correlation_id":"%s","sequence_number":1,' "$id" "$1"
  printf '"retry_count":0,"message_type":"ACKNOWLEDGEMENT","content_type":"application/json","content_length":%d,"payload":%s}\n' \
    ${#payload} "$payload"
}
log() { amp-ack log "$@"; }
draw() { jq -nrf "$AMP_TOP/share/draw/$1.jq" "${@:2}"; }
story() { log --format ndjson "$@" | jq -r '[.kind, .event, .to // "-"] | join(" ")' | paste -sd';'; }

conversation() {
  data "$FLOW" 1 | amp-ack >/dev/null
  { answer "$FLOW" 1 RECEIVED; answer "$FLOW" 1 READ; answer "$FLOW" 1 FULFILLED; } | amp-ack >/dev/null
  data "$FLOW" 11 | amp-ack >/dev/null # the same operation again
  data "$OTHER" 2 | amp-ack >/dev/null
  data "$FLOW" 3 | amp-ack | ends 1 amp-route -r 'to=nobody => spool:box' >/dev/null
  data "$FLOW" 4 | amp-ack --now 2026-01-01T00:00:00Z >/dev/null
  amp-ack sweep >/dev/null
}

@test "a conversation: messages, acknowledgements, decisions, dead letters, timeouts" {
  conversation
  [ "$(story --correlation "$FLOW" | tr ';' '\n' | grep -v '^route\|^outbox' | paste -sd';')" = "$(paste -sd';' <<'END'
token claim RUNNING
message record SENT
message ack_received RECEIVED
message ack_read READ
message ack_fulfilled FULFILLED
token duplicate_detected DONE
token claim RUNNING
message record SENT
dead no_route DEAD
dead emit -
message nack_rejected REJECTED
token claim RUNNING
message record SENT
message timeout TIMED_OUT
message emit -
message give_up TIMED_OUT
dead retries_exhausted DEAD
message settle TIMED_OUT
END
  )" ]
  # Every row bears time, correlation, actor, event and details.
  log --format ndjson --correlation "$FLOW" |
    jq -se --arg f "$FLOW" 'all(.[] | select(.what == "step" and .kind != "route"); .at and .correlation == $f and .actor and .event and .details)'
  # Nothing of the other one.
  run -1 grep "$OTHER" <(log --correlation "$FLOW")
  [ "$(story --correlation "$OTHER")" = "token claim RUNNING;message record SENT" ]
}

@test "one message, one agent, a time" {
  conversation
  id=d2b6a7a9-0e0c-4f44-b2d9-6e9e24f00003
  log --id $id --format ndjson | jq -se --arg i $id 'length > 3 and all(.id == $i or .details.original == $i)'
  log --agent agent-2 --format ndjson | jq -se 'length == 3 and all(.details.by == "agent-2")'
  [ -z "$(log --since 2099-01-01T00:00:00Z)" ]
  [ "$(log --since 1h)" = "$(log)" ]
  run -64 log --since yesterday
  run -69 amp-ack log -s none
  [ ! -e none ]
}

@test "--limit: the newest entries" {
  conversation
  log --format ndjson >every
  log --format text --all >lines
  for n in 1 2 5 1000; do
    log --limit $n | cmp - <(tail -n $n every)
  done
  log --limit 3 --correlation "$FLOW" | cmp - <(log --correlation "$FLOW" | tail -n 3)
  log --limit 2 --since 1h | cmp - <(tail -n 2 every)
  # A day has a line of its own; what is not shown does not count.
  log --limit 2 --format text --all | tail -n 2 | cmp - <(tail -n 2 lines)
  [ "$(log --limit 4 --format text | grep -c ' [a-z]* ')" -eq 4 ]
}

@test "text is for people: a row a line, safe for the terminal" {
  data "$FLOW" 1 '.producer_id = "agent\u001b[2J\u202e"' | amp-ack >/dev/null
  run -0 log --correlation "$FLOW" --format text
  [[ "$output" != *$'\e'* && "$output" != *$'\u202e'* ]]
  [[ "$output" == *"message record "*" SENT "*"DATA  d2b6a7a9-0e0c-4f44-b2d9-6e9e24f00001"* ]]
}

@test "tasks are conversations where the protocol knows no other" {
  { message task_dispatch; message task_dispatch '.task_id = "T-2026-045" | .msg_id = "task_dispatch-T-2026-045-1"'; } | amp-ack >/dev/null
  [ "$(story --correlation T-2026-045)" = "message record SENT" ]
}

@test "follow: what others write comes at once, without looking now and then" {
  need strace
  not_under_valgrind "strace would show what valgrind does"
  data "$FLOW" 1 | amp-ack >/dev/null
  ASAN_OPTIONS=detect_leaks=0 strace -f -o trace amp-ack log -f --correlation "$FLOW" --format ndjson >out 3>&- &
  wait_until 20 has_lines out 2
  wait_until 30 quiet trace 1.2
  data "$OTHER" 2 | amp-ack >/dev/null
  answer "$FLOW" 1 RECEIVED | amp-ack >/dev/null
  wait_until 30 has_lines out 3
  tail -1 out | jq -e '.event == "ack_received" and .actor == "agent-2"'
  [ "$(wc -l <out)" -eq 3 ]
  pkill -TERM -P $! amp-ack
  rc=0
  wait $! || rc=$?
  [ "$rc" -eq 130 ]
}

@test "a diagram: participants, arrows, notes" {
  conversation
  log --correlation "$FLOW" | draw mermaid >d.mmd
  [ "$(head -1 d.mmd)" = sequenceDiagram ]
  grep -q '^    participant P1 as agent-1$' d.mmd
  grep -q '^    P[0-9]*-->>P1: FULFILLED d2b6a7a9-0e0c-4f44-b2d9-6e9e24f00001$' d.mmd
  grep -q 'Note over P1: duplicate_detected of d2b6a7a9-0e0c-4f44-b2d9-6e9e24f00001 d2b6a7a9-0e0c-4f44-b2d9-6e9e24f00011$' d.mmd
  grep -q 'dead letter DEAD no_route' d.mmd
  grep -q 'timeout SENT #8594; TIMED_OUT' d.mmd
  [ "$(log --correlation none 2>/dev/null | draw mermaid)" = $'sequenceDiagram\n    participant P0 as none' ]
  [ "$(log --correlation none 2>/dev/null | draw svg | grep -c 'nothing to draw')" -eq 1 ]
}

# hostile: a history in which every name and text wants to be syntax of one of the formats, or is wide.
hostile() {
  jq -nc --arg long "$(printf 'W%.0s' {1..900})" --arg wide "$(printf '漢%.0s' {1..300})" '[
    "a\nend\nP1->>P2: x", "; Note over P1: y", "#59;#35;", "%%{init: {}}%%", "style: #abc;", "classDef x:#fff;", "end", "as",
    "<script>alert(1)</script>", "a-->>b", "P1", "wrap:x", "participant P9 as z", "\"quoted\\", "\u202e\u200b\ufffe", "\ud83d\udca3",
    "\u001b[2J\u0007", "a:b,c/d\\e", " ", "--", "-x", "}", "</svg></title><b onload=x>", "]]>", "&lt;&#60;", "\u0027><img src=x>",
    "x -> y; z", "$long", $long, $wide] as $h | ($h | length) as $n
    | range($n) as $i | $h[$i] as $a | $h[($i + 7) % $n] as $b
    | {n: ($i + 1), at: "2026-11-28T17:17:0\($i % 10).\($i + 100)Z", actor: $b, what: "step", correlation: $a,
       details: {protocol: $a, type: $b, task: $a, sender: $a, recipient: $b, by: $b, agent: $a, code: $a, why: $b, decision: $a,
         original: $b, tokens: 1}}
    | . + {kind: "message", id: $a, event: "record", to: "SENT", message: {payload: {decision: $b, description: $a,
          diff_summary: {lines_added: $a, lines_removed: $b, files_changed: [$a]}, confidence: $b, commit_hash: $a,
          issues: [{severity: $a, file: $b, line: $a, description: $b}], blockers: [$a], self_assessment: {notes: [$b]}}}},
      . + {kind: "message", id: $a, event: "nack_x", from: "SENT", to: $b, details: (.details + {stage: $b, late: true})},
      . + {kind: "message", id: $a, event: "ack_x", from: "SENT", to: $b, details: (.details + {stage: "READ"})},
      (. + {id: $b, event: $a, from: $b, to: $a} | . + {kind: ("dead", "task", "token", "escalation", "spent", "landing", $a)}),
      (. + {id: $b, event: $a, to: $a} | . + {kind: ("dead", "refused", "task", "escalation", "agent")}),
      . + {kind: "agent", id: $a, event: "start", to: "RUNNING"}'
}

@test "Mermaid: a hostile name or text stays within its place" {
  hostile | draw mermaid >d.mmd
  text='([A-Za-z0-9 ._,/()-]|#[0-9]+;)+'
  run -1 grep -vE "^(sequenceDiagram|    participant P[0-9]+ as $text|    P[0-9]+(->>|-->>|--x)P[0-9]+: $text|    Note over P[0-9]+(,P[0-9]+)?: $text)\$" d.mmd
  run -1 grep -E '^    [^>]*(: |as ).*--' d.mmd
  [ "$(wc -l <d.mmd)" -gt 200 ]
  # Past the limit they are counted.
  conversation
  log --format ndjson | sed 's/"n":/"m":/' >all
  for _ in {1..300}; do cat all; done | draw mermaid | tail -n 1 | grep -qE '^    Note over P1: [0-9]+ more are left out$'
}

@test "SVG, HTML and DOT: a hostile name or text stays text" {
  hostile >h
  for p in svg charts html; do
    draw $p <h >page
    # No other element, comment or attribute than those of the program.
    run -1 grep -vE '^</?(!doctype|html|head|meta|title|style|body|main|h1|h2|p|div|b|span|svg|g|text|tspan|line|path|circle|rect|table|colgroup|col|thead|tbody|tr|th|td)$' <(grep -oE '<[^ >]*' page | sed 's|/$||' | grep -v '^</$')
    run -1 grep -E '<[^>]* (on[a-z]+|src|href)=' page
    [ "$(grep -c '&lt;script&gt;' page)" -gt 0 ] || [ $p = charts ]
    # No control, no character that turns or hides its neighbours.
    run -1 grep -P '[\x00-\x08\x0b-\x1f\x7f]|\x{202e}|\x{200b}|\x{fffe}' page
  done
  grep -q "default-src 'none'" page
  draw dot <h >d.dot
  string='"([^"\\]|\\.)*"'
  grep -v '^digraph\|^  [a-z}]\|^    label\|^}$' d.dot |
    grep -vE "^    $string (\[label=$string\]|-> $string \[label=$string(, style=dashed)?\]);\$" >more || :
  [ ! -s more ]
  [ "$(grep -c ' -> ' d.dot)" -gt 20 ]
  draw otlp <h | jq -e '.resourceSpans[0].scopeSpans[0].spans | length > 30 and (map(.spanId) | unique | length) == length'
}

# beyond FILE: what of an SVG's coordinates, also of its texts, is outside of 0 to 1280.
beyond() {
  grep -oE ' (x|x1|x2|cx|width)="[^"]*"' "$1" | awk -F '"' '$2 + 0 < 0 || $2 + 0 > 1280'
  grep -oE '(translate\(|d="M|H)-?[0-9.]+' "$1" | grep -oE -- '-?[0-9.]+$' | awk '$1 < 0 || $1 > 1280'
  grep -oE '<rect x="[^"]*" y="[^"]*" width="[^"]*"' "$1" | awk -F '"' '$2 + $6 > 1280'
  # A character of the fixed-width font is 7.3 wide; a wide one two of them; an entity is one.
  sed 's/<text/\n&/g; s|</text>|\n|g' "$1" | grep '^<text x=.*class="m"' |
    jq -Rr 'capture("x=\"(?<x>[0-9.]+)\"(?<more>[^>]*)>(?<text>.*)") | (.x | tonumber) as $x |
      ([.text | gsub("<[^>]*>"; "") | gsub("&[#a-z0-9]+;"; "x") | explode[] | if . < 4352 then 7.3 else 14.6 end] | add // 0) as $width |
      select(if .more | test("end") then $x < $width else $x + $width > 1280 end) | .text'
}

@test "drawings are within 1280 pixels, their lanes are actors, their time zone is named" {
  hostile >h
  for i in $(seq 30); do data "$FLOW" $((100 + i)) ".producer_id = \"a-long-name-of-agent-$i\""; done | amp-ack >/dev/null
  conversation
  log >c
  for f in h c; do
    for p in svg charts html; do
      draw $p <$f >page
      [ -z "$(beyond page)" ]
      grep -q ' UTC' page
      TZ=Asia/Tokyo draw $p <$f | cmp - page
    done
  done
  # beyond() finds what is outside.
  echo '<rect x="1200" y="1" width="81"/><text x="700" y="1" class="m">'"$(printf 'x%.0s' {1..80})"'</text><line x1="-1"/>' >page
  [ "$(beyond page | wc -l)" -eq 3 ]
  lanes() { grep -oE 'class="m w"[^>]*><title>[^<]*' | sed 's/.*>//' | sort -u | paste -sd' '; }
  [ "$(log --correlation "$FLOW" | grep -v a-long-name | draw svg | lanes)" = "agent-1 agent-2" ]
  [ "$(draw svg <c | grep -oE '<title>[0-9]+ others' | sort -u)" = "<title>21 others" ]
}

@test "a drawing has beside each arrow what was said: verdict, issues, lines, decision, cost" {
  { message task_result; message review_verdict; message escalation; } | amp-ack >/dev/null
  echo "resume go <on>" >answers
  message escalation | hitl-prompt --state "$AMP_STATE" --answer answers >/dev/null 2>&1
  amp-validate --example aop/TASK >task
  amp-validate --example aop/RESPONSE | sed -E "s/AOP-SESSION-[0-9]+/$(jq -r .session.session_id task)/" >response
  amp-ack <task >/dev/null
  amp-ack <response >/dev/null
  log -m >h
  amp-validate --schema "$AMP_TOP/schemas/records/history.json" <h >/dev/null
  jq -se 'map(select(.message)) | length == 4 and all(.event == "record")' h
  log >without
  jq -se 'all(.message == null)' without
  # In the order of the log; a title has the complete text.
  draw svg <h | grep -oE '<g><title>[^<]*' | sed 's/<g><title>//; s/ [^ ]*-[0-9]*\(\/TASK-001\/1\)*$//' >said
  diff said - <<'END'
task_result complete +6 −2 1 file a3f8d21 n
review_verdict rejected confidence 0.95 1 issue: critical a.c:87 d
escalation hallucination_lock locked
T-2026-044 suspended
decision resume go &lt;on&gt;
TASK Read and summarize the README.md file.
FULFILLED $0.18 15700 tokens
END
  [ "$(draw svg <without | grep -c 'amp-ack log --messages has also what was said')" -eq 1 ]
  [ "$(draw svg <h | grep -c 'messages has also')" -eq 0 ]
}

@test "Mermaid reads the diagrams, also those of hostile names" {
  need node
  # Where mermaid and jsdom are installed: NODE_MODULES=DIR/node_modules
  [ -d "${NODE_MODULES:-/usr/lib/node_modules}/mermaid" ] || skip "mermaid is not installed"
  ln -s "${NODE_MODULES:-/usr/lib/node_modules}" node_modules
  cat >parse.mjs <<'END'
import { JSDOM } from 'jsdom';
import fs from 'fs';
globalThis.window = new JSDOM('<body></body>').window;
globalThis.document = window.document;
const { default: mermaid } = await import('mermaid');
mermaid.initialize({ startOnLoad: false });
const d = await mermaid.mermaidAPI.getDiagramFromText(fs.readFileSync(0, 'utf8'));
console.log(d.type, d.db.getActors().size, d.db.getMessages().length);
END
  conversation
  log | draw mermaid >d.mmd
  hostile | draw mermaid >h.mmd
  for f in d.mmd h.mmd; do
    actors=$(grep -c '^    participant' $f)
    run -0 node parse.mjs <$f
    [ "$output" = "sequence $actors $(($(wc -l <$f) - 1 - actors))" ]
  done
}

@test "every change in the log says who made it" {
  need_tool task-dispatch agent-registry
  conversation
  agent-registry </dev/null >/dev/null 2>&1
  message task_dispatch | sed 's/T-2026-044/T-2026-046/g' | timeout 60 task-dispatch coordinate --state "$AMP_STATE" >/dev/null 2>&1
  [ "$(jq -r 'select(.key) | .key | sub("[.].*"; "")' state/log/*.ndjson | sort -u | wc -l)" -ge 4 ]
  run -0 jq -c 'select(.key and (.actor // .in.c // "") == "")' state/log/*.ndjson
  [ -z "$output" ]
}

@test "stages that a later acknowledgement implies are steps of their own" {
  data "$FLOW" 1 | amp-ack >/dev/null
  answer "$FLOW" 1 FULFILLED | amp-ack >/dev/null
  [ "$(log --format ndjson | jq -r 'select(.kind == "message" and .to) | [.from, .to, .details.implied] | map(. // "-" | tostring) | join(" ")' | paste -sd';')" = \
    "- SENT -;SENT RECEIVED true;RECEIVED READ true;READ FULFILLED -" ]
  amp-ack status --all --json | jq -e '[.acks[] | .stage + (if .implied then "*" else "" end)] == ["RECEIVED*", "READ*", "FULFILLED"]'
  # What is acknowledged itself after all is recorded.
  answer "$FLOW" 1 READ | amp-ack >/dev/null
  amp-ack status --all --json | jq -e '.acks[-1] | .stage == "READ" and .late'
}

@test "each format is well formed, and a hostile name stays text" {
  data "$FLOW" 1 '.producer_id = "<script>alert(1)</script>"' | amp-ack >/dev/null
  { message task_dispatch; ack READ; } | amp-ack >/dev/null 2>&1 || :
  log --correlation "$FLOW" | draw html >page.html
  grep -q "Content-Security-Policy" page.html
  run -1 grep -c "<script" page.html
  log | draw otlp >t1
  log | draw otlp | cmp - t1
  jq -e '.resourceSpans[0].scopeSpans[0].spans | length >= 2 and all(.spanId | length == 16)' t1
  log --format sw4rm | jq -se 'all(.ts and .level and (.details_json | fromjson | .n))'
  [ "$(log | draw dot | grep -c '^digraph history {')" -eq 1 ]
  [ "$(log | draw svg | grep -c '^<svg xmlns=')" -eq 1 ]
  log >h
  amp-validate --schema "$AMP_TOP/schemas/records/history.json" <h >/dev/null
  amp-ack status --json | amp-validate --schema "$AMP_TOP/schemas/records/status.json" >/dev/null
  amp-ack status --all --json >h
  [ "$(wc -l <h)" -ge 2 ]
  amp-validate --schema "$AMP_TOP/schemas/records/delivery.json" <h >/dev/null
}

@test "the page in Chromium: rows and drawings, nothing loaded, two widths, light and dark" {
  need chromium
  conversation
  log --correlation "$FLOW" | draw html >page.html
  browse() { # browse ARGS…: what Chromium says of itself is in `said`
    timeout 60 chromium --headless=new --no-sandbox --disable-gpu --hide-scrollbars --disable-component-update \
      --user-data-dir="$PWD/profile" --enable-logging=stderr --log-net-log="$PWD/net.json" "$@" "file://$PWD/page.html" 2>said
  }
  browse --dump-dom >dom
  # As many rows and drawings as are in the page, and some of each.
  for part in '<tr>' '<svg ' '<path \|<line \|<rect '; do
    n=$(grep -o "$part" page.html | wc -l)
    [ "$n" -ge 3 ]
    [ "$(grep -o "$part" dom | wc -l)" -eq "$n" ]
  done
  run -1 grep -E 'CONSOLE|Refused to' said
  # The browser asks for addresses of its own maker; the page for none.
  run -1 grep -F '"initiator":"null"' net.json
  run -1 grep -E '(src|href)="?(https?:)?//|url\(|@import' dom
  for width in 1280 480; do
    for scheme in 0 1; do # dark, light
      browse --window-size=$width,900 --blink-settings=preferredColorScheme=$scheme --screenshot="$PWD/$width.$scheme.png"
      [ "$(od -An -j16 -N4 -tx1 $width.$scheme.png | tr -d ' ')" = "$(printf %08x $width)" ]
    done
    run -1 cmp -s $width.0.png $width.1.png
  done
}
