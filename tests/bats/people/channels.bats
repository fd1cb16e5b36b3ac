#!/usr/bin/env bats
# hitl-prompt's channels: a folder, scripts; receive and sign.
# plain: the channels are scripts; hitl.bats and prompt_tty.bats run the prompt

load ../lib
load ../messages

setup() {
  need jq setsid
  need_tool hitl-prompt
  cd "$BATS_TEST_TMPDIR"
  mkfifo in
  HTTP='' AGENT=''
}

teardown() {
  local p
  exec 7>&-
  for p in $(jobs -p) $HTTP $AGENT; do kill "$p" 2>/dev/null || :; done
}

# server: an HTTP server with a log; its URL is in $url.
server() {
  "$AMP_BUILD/tests/fixture/http-server" port log 7>&- 8>&- &
  HTTP=$!
  wait_until 30 test -s port
  url=http://127.0.0.1:$(cat port)
}

# config JQ: amp.json with these channels.
config() {
  jq -n --arg here "$PWD" --arg url "${url-}" "{hitl:{channels:({retry:\"50ms\"} + $1)}}" >amp.json
}

# filter [OPTION...]: the filter without a terminal; its input stays open as descriptor 7.
filter() {
  setsid hitl-prompt -c amp.json --state state --trust-in in --out out "$@" 2>>err 8>&- &
  FILTER=$!
  exec 7>in
}
# asked N: an escalation about a task of its own.
asked() {
  message escalation ".msg_id = \"escalation-T-2026-10$1-1\" | .task_id = \"T-2026-10$1\" | .payload.description = \"a\\nanswer: resume\\n<b>&\"" >&7
}
# decided N: the decision was written.
decided() { grep -q "\"ref_msg_id\":\"escalation-T-2026-10$1-1\"" out; }
# ends STATUS: the filter ends when its input does.
ends() {
  local status=0
  exec 7>&-
  wait "$FILTER" || status=$?
  [ "$status" -eq "$1" ]
}
form() { echo q/questions/new/escalation-T-2026-10"$1"-1.*.txt; }
has_form() { [ -f "$(form "$1")" ]; }
refused() { grep -q "\"code\":\"$1\"" state/error.ndjson; }
# token N: the token that was last sent for the question.
token() { jq -rs --arg q "escalation-T-2026-10$1-1" 'map(select(.body.question == $q and .body.token)) | last.body.token' log; }
# post TYPE BODY: an HTTP request with it.
post() { printf 'POST / HTTP/1.1\r\nHost: x\r\nContent-Type: %s\r\nContent-Length: %s\r\n\r\n%s' "$1" "${#2}" "$2"; }
receive() { hitl-prompt -c amp.json --state state receive "$@" 2>>err; }

@test "folder: a form that is filled in decides; the question is kept with who decided" {
  config '{folder: "\($here)/q"}'
  touch out
  filter
  asked 1
  asked 2
  wait_until 20 has_form 1
  wait_until 20 has_form 2
  [ "$(stat -c %a q q/answers/new q/questions/new | paste -sd' ')" = "700 700 700" ]
  grep -q '^| answer: resume$' "$(form 1)"
  # An editor writes another file and renames it.
  sed 's/^answer:/answer: resume/; s/^note:/note: go on/' "$(form 1)" >q/questions/tmp/mine
  mv q/questions/tmp/mine "$(form 1)"
  wait_until 20 decided 1
  grep -q 'questions are asked through the channels' err
  ! grep -q 'kept for the next' err
  jq -se 'any(.[]; .ref_msg_id == "escalation-T-2026-101-1" and .decision == "resume" and .note == "go on")' out
  wait_until 20 grep -q '^# Settled: resume by .*, through folder$' q/questions/cur/escalation-T-2026-101-1.*
  ! has_form 1
  # A file that the editor has not finished is not an answer; a wrong one is kept, with a new form.
  printf 'question: escalation-T-2026-102-1\nanswer: resume\n' >"$(form 2)"
  sed -i 's/^answer: resume/answer: explode/; $a # end of the form' "$(form 2)"
  wait_until 20 compgen -G 'q/answers/refused/escalation-T-2026-102-1.*.reason'
  grep -q '^bad_answer: ' q/answers/refused/escalation-T-2026-102-1.*.reason
  wait_until 20 eval 'grep -q "^# The last answer was refused: bad_answer" "$(form 2)"'
  # An answer file, moved in. Of two, one counts.
  echo '{"question":"escalation-T-2026-102-1","answer":"terminate"}' >q/answers/tmp/a
  echo '{"question":"escalation-T-2026-102-1","answer":"resume"}' >q/answers/tmp/b
  mv q/answers/tmp/a q/answers/new/
  mv q/answers/tmp/b q/answers/new/
  wait_until 20 decided 2
  wait_until 20 eval '[ "$(ls q/answers/refused/*.reason | wc -l)" -eq 2 ]'
  [ "$(grep -c escalation-T-2026-102-1 out)" -eq 1 ]
  ends 0
}

@test "folder: a form may have the line until" {
  config '{folder: "\($here)/q"}'
  touch out
  filter
  asked 1
  wait_until 20 has_form 1
  sed -i 's/^answer:/answer: resume\nuntil: soon/; $a # end of the form' "$(form 1)"
  wait_until 20 compgen -G 'q/answers/refused/escalation-T-2026-101-1.*.reason'
  grep -q '^bad_answer: .*until is neither a time nor a duration' q/answers/refused/escalation-T-2026-101-1.*.reason
  wait_until 20 has_form 1
  sed -i 's/^answer:/answer: resume\nuntil: 1h/; $a # end of the form' "$(form 1)"
  wait_until 20 decided 1
  ends 0
}

@test "folder: what others may have written proves nothing" {
  config '{folder: "\($here)/q"}'
  mkdir -p q/answers
  chmod 777 q/answers
  run -77 --separate-stderr setsid hitl-prompt -c amp.json --state state </dev/null
  [[ $stderr == *"folder_permissions"* || $stderr == *"others may write it"* ]]
  chmod 700 q/answers
  touch out
  filter
  asked 1
  wait_until 20 has_form 1
  a='{"question":"escalation-T-2026-101-1","answer":"resume"}'
  echo "$a" >outside
  ln -s ../../../outside q/answers/new/link
  mkfifo q/answers/new/fifo
  ln outside q/answers/new/hard
  (umask 0 && echo "$a" >q/answers/tmp/open)
  mv q/answers/tmp/open q/answers/new/
  head -c 2000000 /dev/zero >q/answers/tmp/big
  mv q/answers/tmp/big q/answers/new/
  wait_until 20 eval '[ "$(ls q/answers/refused/*.reason 2>/dev/null | wc -l)" -eq 5 ]'
  [ ! -s out ]
  refused folder_permissions
  refused bad_answer
  # With "signed" the user's own files prove nothing either.
  kill "$FILTER"
  ends 130 wait "$FILTER"
  jq '.hitl.channels.folder |= {path: ., signed: true}' amp.json >amp2.json && mv amp2.json amp.json
  exec 7>&-
  filter
  echo "$a" >q/answers/tmp/mine
  mv q/answers/tmp/mine q/answers/new/
  wait_until 20 refused not_proven
  [ ! -s out ]
}

@test "all channels ask; the first answer closes the others and says so there" {
  server
  cat >sendmail <<'EOS'
#!/bin/bash
{ echo "== $*"; cat; } >>mails
EOS
  cat >command <<'EOS'
#!/bin/bash
notice=$(cat)
echo "$notice" >>commands
jq -r --arg a "$1" '"\(.event) \(.question) \(.decision // "") [\($a)]"' <<<"$notice" >>events
EOS
  chmod +x sendmail command
  config '{folder: "\($here)/q", scripts: [
      {name: "plain", command: ["webhook"], operator: "ann", link: "https://h.example/r", settings: {url: "\($url)/ok"}},
      {name: "ntfy", operator: "bob", link: "https://h.example/r", settings: {topic: "t", url: "\($url)/ok"}},
      {name: "slack", settings: {url: "\($url)/ok"}},
      {name: "tg", command: ["telegram"], settings: {chat: "7", url: "\($url)/ok"}},
      {name: "own", command: ["webhook"], settled: false,
        settings: {url: "\($url)/ok", asked: {t: "x {task} {", l: ["{text}"]}}},
      {name: "mail", operator: "ann", link: "https://h.example/r",
        settings: {to: "ann@example.org", from: "tool@example.org", sendmail: "\($here)/sendmail"}},
      {name: "rec", command: ["./command", "$(touch hacked)"]}]}'
  touch out
  filter --notify './command "a b"'
  asked 1
  wait_until 20 has_lines log 5
  wait_until 20 has_lines events 2
  wait_until 20 grep -q '^To answer: ' mails
  wait_until 20 has_form 1
  [ ! -e hacked ]
  grep -qF 'asked escalation-T-2026-101-1  [a b]' events
  jq -se 'length == 2 and all(.message.msg_id == "escalation-T-2026-101-1" and .token == null)' commands
  jq -se 'map(.body) | any(.topic == "t" and .priority == 4 and (.actions | length == 2)) and
    any(.chat_id == "7" and (.text | contains("<b>&"))) and
    any(.text? // "" | contains("&lt;b&gt;&amp;")) and
    any(.t == "x T-2026-101 {" and (.l[0] | contains("| answer: resume"))) and
    any(.event == "asked" and .link == "https://h.example/r?t=" + .token)' log
  # The description has line ends, the subject has none.
  run -1 grep -v '^Subject: \|^ =?UTF-8\|^X-Amp' <(sed -n '/^Subject: /,/^X-Amp-Question: escalation-T-2026-101-1$/p' mails)
  [ "$(sed '/^$/q' mails | grep -c '^[A-Z][A-Za-z-]*: ')" -eq 8 ]
  # Another token for each recipient.
  t=$(token 1)
  [ "$(grep -oh 't=[A-Za-z0-9_-]\{43\}' log mails | sort -u | wc -l)" -eq 3 ]
  ! grep -rqF "$t" state
  run -0 receive < <(post application/x-www-form-urlencoded "token=$t&answer=resume")
  [[ $output == "HTTP/1.1 200 OK"* ]]
  wait_until 20 decided 1
  wait_until 20 grep -q 'Settled: ' mails
  wait_until 20 has_lines log 9
  wait_until 20 grep -q '^# Settled: resume by ann, through webhook$' q/questions/cur/escalation-T-2026-101-1.*
  jq -se 'map(select(.body.event == "settled")) | length == 1 and .[0].body.operator == "ann" and .[0].body.channel == "webhook"' log
  [ "$(jq -c 'select(.body.t)' log | wc -l)" -eq 1 ]
  wait_until 20 eval '[ "$(grep -c "settled escalation-T-2026-101-1 resume" events)" -eq 2 ]'
  # Their JSON is as published.
  { jq -c 'select(.body.recipient == "plain").body' log && jq -c . commands; } >notices
  [ "$(jq -r .event notices | sort | uniq -c | tr -s ' ' | paste -sd,)" = " 3 asked, 3 settled" ]
  amp-validate -S "$AMP_TOP/schemas/records/notice.json" --formats notices | cmp - notices
  # A replay, and the token of another recipient for the closed question.
  run -0 receive < <(post application/json "{\"token\":\"$t\",\"answer\":\"terminate\"}")
  [[ $output == "HTTP/1.1 410 Gone"* ]]
  refused token_replayed
  other=$(grep -o 't=[A-Za-z0-9_-]\{43\}' mails | head -1)
  run -0 receive < <(post application/json "{\"token\":\"${other#t=}\",\"answer\":\"terminate\"}")
  [[ $output == "HTTP/1.1 409 Conflict"* ]]
  [ "$(wc -l <out)" -eq 1 ]
  ends 0
}

@test "the channels carry the task's history, the files, the beginning of the diff and the effect of each answer" {
  load ../agents
  need git
  need_tool task-dispatch
  workplace
  server
  agent works <<'EOS'
printf 'hello\n\tworld \302\233\377\nAKIAIOSFODNN7EXAMPL2\n' >hello.txt
seq 500 >"two
lines.txt"
git add .
git commit -qm "by the agent"
EOS
  task-dispatch new --print --id T-2026-101 --repo "$REPO" --branch feat/x --criterion works --description "Say hello" |
    task-dispatch coordinate --state state --trust-in - >dispatch 2>/dev/null || [ $? -eq 75 ] # the task is open
  task-dispatch run --state state --exec ./works <dispatch >result 2>/dev/null
  task-dispatch coordinate --state state --trust-in - <result >review 2>/dev/null || [ $? -eq 75 ]
  cat >sendmail <<'EOS'
#!/bin/sh
cat >>mails
EOS
  chmod +x sendmail
  config '{folder: "\($here)/q", scripts: [
      {name: "plain", command: ["webhook"], operator: "ann", settings: {url: "\($url)/ok"}},
      {name: "tg", command: ["telegram"], settings: {chat: "7", url: "\($url)/ok"}},
      {name: "mail", operator: "ann", settings: {to: "ann@example.org", from: "tool@example.org", sendmail: "\($here)/sendmail"}}]}'
  touch out
  filter
  asked 1
  wait_until 20 has_lines log 2
  wait_until 20 has_form 1
  wait_until 20 grep -q '^Digest: ' mails
  jq -c 'select(.body.recipient == "plain").body' log >notice
  amp-validate -S "$AMP_TOP/schemas/records/notice.json" --formats notice | cmp - notice
  jq -e '(.history | test("^\\| [-0-9: ]+ dispatch to ") and test("\n\\| [-0-9: ]+ result: complete, 2 files, \\+503 -0"))
    and (.files | startswith("  2 files, +503 -0\n| hello.txt\n"))
    and (.diff | contains("\n| + world ??\n") and endswith("  [cut]\n") and (split("\n") | length) < 210)
    and (.effects | contains("  terminate: ")) and (.history as $h | .diff as $d | .evidence | contains($d) and contains($h))' notice
  # Everywhere the lines of others are behind a bar.
  for f in mails q/questions/new/*; do
    grep -q '^| +hello$' "$f"
    grep -q '^| hello.txt$' "$f"
    run -1 grep -n '^[+]' "$f"
  done
  jq -es 'map(select(.body.chat_id)) | .[0].body.text | (utf8bytelength < 4096) and contains("[cut]") and test("Answers: [^\n]*$")' log
  # A secret in the diff leaves the machine nowhere.
  run -1 grep -rn AKIA mails q log
  grep -q '^| +\[redacted:' mails
  # The record has the digest of the body that this channel got.
  body=$(jq -cj 'select(.body.recipient == "plain").body' log | b2sum -l 256 | cut -d' ' -f1)
  run -0 receive < <(post application/json "{\"token\":\"$(token 1)\",\"answer\":\"resume\"}")
  wait_until 20 decided 1
  run -0 hitl-prompt audit --state state --what decided --json
  [ "$(jq -r .shown <<<"$output")" = "$body" ]
  ends 0
}

@test "a channel that fails is reported and tried again; the others go on" {
  server
  config '{folder: "\($here)/q", scripts: [
      {name: "flaky", command: ["webhook"], settings: {url: "\($url)/flaky/500"}},
      {name: "hang", command: ["webhook"], settings: {url: "\($url)/hang"}, timeout: "2s"},
      {name: "away", command: ["webhook"], settings: {url: "\($url)/to/9"}},
      {name: "gone", command: ["webhook"], settings: {url: "http://127.0.0.1:1/"}},
      {name: "mail", settings: {to: "a@example.org", sendmail: "./none"}},
      {name: "slow", command: ["sleep", "60"], timeout: "100ms"}, {name: "no", command: ["false"]},
      {name: "loud", command: ["yes"]}, {name: "absent", command: ["./absent"]}]}'
  touch out
  filter
  asked 1
  wait_until 20 has_form 1
  # URLs may have secrets: they are not in the arguments of a process.
  echo "$url" >secret
  sends() { cat /proc/[0-9]*/cmdline 2>/dev/null | tr '\0' '\n' >words || :; grep -qx curl words; }
  wait_until 20 sends
  run -1 grep -F -f secret words
  for c in flaky hang away gone mail slow no loud absent; do
    wait_until 20 grep -q "the channel $c fails: " err
  done
  wait_until 20 grep -q 'the channel flaky works again' err
  wait_until 20 eval '[ "$(grep -c /hang log)" -ge 2 ]'
  [ "$(grep -c 'the channel hang fails' err)" -eq 1 ]
  grep -q 'the channel away fails: command_failed: the server answered 307;' err
  grep -q 'the channel flaky fails: command_failed: the server answered 500;' err
  [ "$(jq -r 'select(.path == "/flaky/500").key' log | sort -u | wc -l)" -eq 1 ]
  refused channel_failed
  ! grep -q "$url" err state/error.ndjson
  sed -i 's/^answer:/answer: resume/' "$(form 1)"
  wait_until 20 decided 1
  ends 0
}

@test "the scripts: what an agent wrote adds no header, no markup and no template" {
  server
  scripts=$AMP_BUILD/share/amp/channels
  printf '#!/bin/sh\ncat >letter\n' >sendmail
  chmod +x sendmail
  # event JQ: an event whose texts are hostile.
  event() {
    jq -nc --arg url "$url/ok" '{event: "asked", question: "q\r\nBcc: x", title: "<a> {token}\r\nBcc: x", text: "| $(touch hacked) `touch hacked` {token}\n",
      answers: "yes", recipient: "w", token: "T", settings: {url: $url, to: "a@example.org\nBcc: x", sendmail: "./sendmail"}} | '"$1"
  }
  event . | "$scripts/mail"
  [ "$(sed '/^$/q' letter | grep -c '^[A-Z][A-Za-z-]*: ')" -eq 7 ]
  run -1 grep -n '^Bcc' <(sed '/^$/q' letter)
  grep -q '^To: a@example.org Bcc: x$' letter
  # RFC 2047, in words of at most 75 bytes.
  event '.title = "ä" * 100' | "$scripts/mail"
  [ "$(sed -n '/^Subject: /,/^X-Amp/p' letter | grep -o '=?UTF-8?B?[^?]*?=' | awk 'length > 75' | wc -l)" -eq 0 ]
  [ "$(sed -n '/^Subject: /,/^X-Amp/p' letter | grep -o '=?UTF-8?B?[^?]*?=' | cut -d'?' -f4 | while read -r w; do base64 -d <<<"$w"; done)" = "$(printf 'ä%.0s' {1..100})" ]
  event '.settings.asked = {t: "{title}{nothing}", l: [1, "{text}"]}' | "$scripts/webhook"
  jq -e '.body.t == "<a> {token}\r\nBcc: x" and .body.l == [1, "| $(touch hacked) `touch hacked` {token}\n"] and .key == "asked%2Fw%2Fq%0D%0ABcc%3A%20x"' log
  event . | "$scripts/slack"
  tail -n 1 log | jq -e '.body.text | startswith("*&lt;a&gt; {token}\r\nBcc: x*\n")'
  run -78 "$scripts/webhook" < <(event '.settings.url += "\"\noutput = hacked"')
  [[ $output == *"has a blank, a quote or a backslash" ]]
  [ ! -e hacked ]
  # Files with secrets are private.
  echo 'X-Test: key' >headers
  chmod 640 headers
  run -78 "$scripts/webhook" < <(event '.settings.headers = "headers"')
  chmod 600 headers
  event '.settings.headers = "headers"' | "$scripts/webhook"
  [ "$(tail -n 1 log | jq -r .x)" = key ]
  run -69 "$scripts/webhook" < <(event '.settings.url = "http://127.0.0.1:1/secret"')
  [[ $output == "no answer: "* && $output != *secret* ]]
  run -65 "$scripts/webhook" <<<'{'
  run -65 "$scripts/mail" <<<'{'
}

@test "polling: answers of a server, once each, with their own tokens only" {
  server
  : >lines
  : >array
  : >msgs
  config '{scripts: [
      {name: "a", command: ["webhook"], operator: "ann", every: "100ms", settings: {url: "\($url)/ok", answers: "\($url)/read/lines"}},
      {name: "b", command: ["webhook"], operator: "bob", every: "100ms", settings: {url: "\($url)/ok", answers: "\($url)/read/array"}},
      {name: "c", command: ["ntfy"], operator: "cy", every: "100ms",
        settings: {topic: "t", url: "\($url)/ok", answers: "\($url)/read/msgs/json"}}]}'
  touch out
  filter
  for n in 1 2 3; do asked $n; done
  wait_until 20 eval '[ "$(jq -c "select(.body)" log | wc -l)" -eq 9 ]'
  of() { jq -rs --arg q "escalation-T-2026-10$2-1" --arg r "$1" 'map(select(.body.question == $q and .body.recipient == $r))[0].body.token' log; }
  echo garbage >lines
  wait_until 20 grep -q 'the channel a fails: poll_failed' err
  # The token of b in the answers of a is refused.
  printf '{"token":"%s","answer":"resume"}\n' "$(of b 1)" >lines
  wait_until 20 refused token_mismatch
  printf '{"token":"%s","answer":"resume"}\n' "$(of a 1)" "$(of a 1)" >lines
  wait_until 20 decided 1
  printf '[{"token":"%s","answer":"terminate","note":"no"}]' "$(of b 2)" >array
  wait_until 20 decided 2
  # Without a link, the buttons of ntfy send the answers to the topic that is polled.
  answer=$(jq -r 'select(.body.title // "" | contains("T-2026-103")).body.actions[]? | select(.label == "resume" and (.url | endswith("/read/msgs"))).body' log)
  jq -cn --arg m "$answer" '{id:"x1",event:"open"}, {id:"x2",event:"message",message:$m}' >msgs
  wait_until 20 decided 3
  wait_until 20 grep -q 'since=x2' log
  [ "$(wc -l <out)" -eq 3 ]
  ! refused token_replayed
  ends 0
}

@test "receive: limits, CGI, and nothing without a token" {
  server
  config '{scripts: [{name: "w", command: ["webhook"], operator: "ann", settings: {url: "\($url)/ok"}}]}'
  touch out
  filter
  asked 1
  wait_until 20 has_lines log 1
  t=$(token 1)
  run -0 receive < <(printf 'GET /?t=%s HTTP/1.1\r\n\r\n' "$t")
  [[ $output == "HTTP/1.1 200 OK"*"&lt;b&gt;&amp;"* && $output == *"Content-Security-Policy: default-src 'none'"* ]]
  run -0 receive < <(printf 'GET /?t=%s HTTP/1.1\r\n\r\n' "${t^^}")
  [[ $output == "HTTP/1.1 404"* && $output != *escalation-T-2026-101-1* ]]
  run -0 receive < <(post application/json "{\"token\":\"${t%?}\",\"answer\":\"resume\"}")
  [[ $output == "HTTP/1.1 404"* ]]
  run -0 receive < <(printf 'POST / HTTP/1.1\r\nContent-Length: 300000\r\n\r\n')
  [[ $output == "HTTP/1.1 413"* ]]
  run -0 receive < <(head -c 100000 /dev/zero | tr '\0' a)
  [[ $output == "HTTP/1.1 400"* ]]
  # A client that sends one byte and waits.
  mkfifo slow
  (exec 9>slow; printf G >&9; exec sleep 30 >&9) 7>&- &
  run -124 receive --timeout 200ms <slow
  [[ $output == "HTTP/1.1 408"* ]]
  kill $!
  # A word of people that loses work is confirmed, too.
  run -0 receive < <(post application/x-www-form-urlencoded "token=$t&answer=no")
  [[ $output == "HTTP/1.1 200 OK"*"This cannot be taken back."* ]]
  [ ! -s out ]
  jq '.hitl.token_answers = "deny_and_defer"' amp.json >limited.json
  body="{\"token\":\"$t\",\"answer\":\"resume\"}"
  run -0 hitl-prompt -c limited.json --state state receive < <(post application/json "$body")
  [[ $output == *"HTTP/1.1 403"* ]]
  refused token_not_allowed
  export GATEWAY_INTERFACE=CGI/1.1 REQUEST_METHOD=POST CONTENT_TYPE=application/json REMOTE_ADDR=192.0.2.7
  CONTENT_LENGTH=${#body} run -0 receive <<<"$body and more"
  [[ $output == "Status: 200 OK"*"Decided."* ]]
  CONTENT_LENGTH=${#body} run -0 receive <<<"$body"
  [[ $output == "Status: 410 Gone"* ]]
  CONTENT_LENGTH=-1 run -0 receive <<<"$body"
  [[ $output == "Status: 400"* ]]
  grep -q '"file":"receive from 192.0.2.7"' state/error.ndjson
  unset GATEWAY_INTERFACE
  wait_until 20 decided 1
  ends 0
}

@test "sign: an answer with an SSH key counts by any road, once, for its question" {
  need ssh-agent ssh-keygen ssh-add
  export AMP_IDENTITY=local
  eval "$(ssh-agent -s 3>&- 7>&-)" >/dev/null
  AGENT=$SSH_AGENT_PID
  for k in ann eve; do ssh-keygen -qt ed25519 -N '' -f $k; done
  ssh-add -q ann && mv ann ann.away
  amp-sign trust add --allowed-signers signers operator/ann ann.pub
  amp-sign trust add --allowed-signers signers executor/eve eve.pub
  config '{folder: {path: "\($here)/q", signed: true}}'
  jq --arg s "$PWD/signers" '.identity.allowed_signers = $s' amp.json >a && mv a amp.json
  touch out
  filter
  for n in 1 2 3; do asked $n; done
  for n in 1 2 3; do wait_until 20 has_form $n; done
  ours=(hitl-prompt -c amp.json --state state)
  "${ours[@]}" sign --key ann.pub escalation-T-2026-101-1 resume 'well done' >one
  "${ours[@]}" sign --key eve escalation-T-2026-102-1 resume >eves
  "${ours[@]}" sign --key ann.pub --expires 1s escalation-T-2026-103-1 resume >brief
  run -65 --separate-stderr "${ours[@]}" sign --key ann.pub escalation-T-2026-101-1 explode
  [[ $stderr == *"bad_answer"* || $stderr == *"is not"* ]]
  sed '1d;$d' one | base64 -d >one.json
  jq -c . one.json | amp-validate -S "$AMP_TOP/schemas/records/answer.json" >valid
  [ -s valid ]
  jq -e '.answer.question == "escalation-T-2026-101-1" and .answer.action == "resume well done"' one.json
  # OpenSSH agrees that the key signed it: raw Ed25519 in an armoured SSHSIG.
  printf '%s\n%s' "$(jq -r .sig.time one.json)" "$(jq -c .answer one.json)" >text
  string() { printf "\\x00\\x00\\x$(printf %02x $(($(stat -c %s "$1") / 256)))\\x$(printf %02x $(($(stat -c %s "$1") % 256)))" && cat "$1"; }
  cut -d' ' -f2 ann.pub | base64 -d >p1
  printf amp-answer >p2 && : >p3 && printf sha512 >p4 && printf ssh-ed25519 >p5
  jq -r .sig.value one.json | base64 -d >p6
  { string p5 && string p6; } >p7
  { printf 'SSHSIG\0\0\0\1' && string p1 && string p2 && string p3 && string p4 && string p7; } | base64 -w 70 >body
  { echo '-----BEGIN SSH SIGNATURE-----' && cat body && echo '-----END SSH SIGNATURE-----'; } >text.sig
  echo "ann $(cut -d' ' -f1-2 ann.pub)" >ssh.signers
  ssh-keygen -qY verify -f ssh.signers -I ann -n amp-answer -s text.sig <text
  # By the folder.
  cp one q/answers/tmp/x && mv q/answers/tmp/x q/answers/new/
  wait_until 20 decided 1
  jq -se 'map(.msg // .) | any(.ref_msg_id == "escalation-T-2026-101-1" and .operator == "ann" and .note == "well done")' out
  # Again, by a file and by HTTP.
  run -1 --separate-stderr "${ours[@]}" answer --file one
  [[ $stderr == *"answer_replayed"* || $stderr == *"used before"* ]]
  run -0 receive < <(post text/plain "$(cat one)")
  [[ $output == "HTTP/1.1 410"* ]]
  refused answer_replayed
  run -77 --separate-stderr "${ours[@]}" answer --file - <eves
  refused not_operator
  # For another question, or with another action.
  jq -c '.answer.question = "escalation-T-2026-102-1"' one.json >changed
  run -1 --separate-stderr "${ours[@]}" answer --file changed
  refused bad_signature
  wait_until 20 eval '[ "$(date +%s%N)" -gt "$(date -d "$(sed "1d;\$d" brief | base64 -d | jq -r .answer.expires)" +%s%N)" ]'
  run -1 --separate-stderr "${ours[@]}" answer --file brief
  refused answer_expired
  # On another machine, from what a channel told; it comes back within a mail.
  jq -n --arg d "$(sed -n 's/^digest: //p' "$(form 2)")" '{question: "escalation-T-2026-102-1", digest: $d}' >told.json
  { echo 'Dear tool,'; hitl-prompt sign --key ann.pub --question told.json resume; echo regards; } >mail
  run -0 receive < <(post text/plain "$(cat mail)")
  [[ $output == "HTTP/1.1 200"* ]]
  wait_until 20 decided 2
  jq '.digest |= gsub("[0-9]"; "a")' told.json >other.json
  jq '.question = "escalation-T-2026-103-1"' other.json | hitl-prompt sign --key ann.pub --question /dev/stdin resume >wrong
  run -1 --separate-stderr "${ours[@]}" answer --file wrong
  refused digest_mismatch
  [ "$(wc -l <out)" -eq 2 ]
}

@test "a filter that was killed sends nothing twice, and its successor sends who settled the question" {
  server
  config '{scripts: [{name: "w", command: ["webhook"], operator: "ann", settings: {url: "\($url)/ok"}}]}'
  touch out
  filter
  asked 1
  wait_until 20 has_lines log 1
  wait_until 20 grep -q '"key":"told.escalation-T-2026-101-1.w"' state/log/000001.ndjson
  kill -9 "$FILTER"
  wait "$FILTER" || :
  exec 7>&-
  run -0 receive < <(post application/json "{\"token\":\"$(token 1)\",\"answer\":\"resume\"}")
  [[ $output == "HTTP/1.1 200"* ]]
  filter
  wait_until 20 has_lines log 2
  wait_until 20 decided 1
  ends 0
  [ "$(jq -r '.body.event + " " + .body.operator' log | paste -sd,)" = "asked ,settled ann" ]
  [ "$(wc -l <out)" -eq 1 ]
}

@test "the desktop: notify-send on a bus of its own" {
  need notify-send dbus-run-session
  [ -x "$AMP_BUILD/tests/fixture/notify-daemon" ] || { echo "notify-daemon is not built" >&2 && false; }
  config '{scripts: [{name: "desktop"}]}'
  cat >session <<'EOS'
"$AMP_BUILD/tests/fixture/notify-daemon" ready notes &
for ((i = 0; i < 1500; i++)); do
  [ ! -s ready ] || break
  sleep 0.02
done
[ -s ready ] || exec true <in # the writer goes on, and the test fails
setsid hitl-prompt -c amp.json --state state --trust-in in --out out --timeout 60s 2>>err
kill %1
EOS
  touch out
  export AMP_BUILD
  dbus-run-session -- bash session 3>&- &
  exec 7>in
  asked 1
  wait_until 30 has_lines notes 1
  # The body of a notification may be markup.
  grep -qF '&lt;b&gt;&amp;' notes
  grep -q '^asked: critical: hallucination_lock' notes
  hitl-prompt -c amp.json --state state answer --print escalation-T-2026-101-1 resume >direct
  wait_until 30 has_lines notes 2
  grep -q '^settled: ' notes
  exec 7>&-
  wait
}

@test "a malformed configuration stops the filter" {
  echo 'X-Key: 1' >open
  chmod 644 open
  for c in '{scripts: [{name: "webhook", settings: {url: "ftp://x"}}]}' '{scripts: [{name: "a b"}]}' '{scripts: [{name: "slack"}]}' \
    '{scripts: [{name: "ntfy", settings: {url: "http://127.0.0.1:1/"}}]}' '{folder: "relative"}' '{scripts: [{name: "mail"}]}' \
    '{scripts: [{name: "telegram", settings: {url: "http://127.0.0.1:1/"}}]}' '{scripts: [{name: "a", command: []}]}' \
    '{scripts: [{name: "webhook", settings: {url: "http://127.0.0.1:1/", headers: "open"}}]}' \
    '{scripts: [{name: "folder"}], folder: "/nonexistent"}' '{scripts: [{name: "slack", settings: {url_file: "open"}}]}'; do
    config "$c"
    run -78 --separate-stderr setsid hitl-prompt -c amp.json --state state </dev/null
  done
}

@test "killed between the use of a token and the decision: the token stays good until it has decided once" {
  need strace
  not_under_valgrind "strace would kill valgrind"
  server
  config '{scripts: [{name: "w", command: ["webhook"], operator: "ann", settings: {url: "\($url)/ok"}}]}'
  touch out
  filter
  asked 1
  wait_until 20 has_lines log 1
  t=$(token 1)
  kills=0 begun=0
  for ((k = 1; k < 60; k++)); do
    post application/json "{\"token\":\"$t\",\"answer\":\"resume\"}" |
      strace -f -qq -o trace -e trace=write,pwrite64,writev,pwritev,fdatasync -e "inject=write,pwrite64,writev,pwritev,fdatasync:signal=KILL:when=$k" \
        hitl-prompt -c amp.json --state state receive >page 2>>err || :
    ! grep -q '^HTTP/1.1 200' page || break
    decided 1 && break
    kills=$((kills + 1))
    # Until it is decided, the page behind the link is there.
    ! grep -qh '"to":"DECIDED"' state/log/*.ndjson || break
    ! tail -n 1 state/log/*.ndjson | grep -q '"to":"USING"' || begun=$((begun + 1))
    run -0 receive < <(printf 'GET /?t=%s HTTP/1.1\r\n\r\n' "$t")
    [[ $output == "HTTP/1.1 200 OK"* ]]
  done
  [ "$kills" -ge 2 ]
  [ "$begun" -ge 1 ] # one of them was between the two
  wait_until 20 decided 1
  run -0 receive < <(post application/json "{\"token\":\"$t\",\"answer\":\"terminate\"}")
  [[ $output == "HTTP/1.1 410"* || $output == "HTTP/1.1 409"* ]]
  [ "$(wc -l <out)" -eq 1 ]
  [ "$(cat state/log/*.ndjson | grep -c '"to":"DECIDED"')" -eq 1 ]
  ends 0
}
