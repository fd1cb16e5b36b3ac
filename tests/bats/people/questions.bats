#!/usr/bin/env bats
# Questions of the five protocols: asked, listed, deferred, answered, and decided by a fallback.
# plain

teardown() {
  local p
  for p in $(jobs -p); do kill "$p" 2>/dev/null || :; done
}

setup() {
  load ../lib
  load ../agents
  load ../messages
  load ../../kill9
  need jq ssh-keygen
  cd "$BATS_TEST_TMPDIR"
  export AMP_STATE=$PWD/state
  mkdir -p "$XDG_CONFIG_HOME/amp"
  config '{}'
}

# config HITL: the section hitl of amp.json; --operator may name ada.
config() { jq -nc --argjson h "$1" '{hitl: ({allow_operator: true} + $h)}' >"$XDG_CONFIG_HOME/amp/amp.json"; }
prompt() { hitl-prompt "$1" --operator ada "${@:2}"; }
ask() { hitl-prompt --operator ada "$@"; }

# question N PROTOCOL KIND: a message that asks; its name in answers is `name N PROTOCOL`.
question() {
  local n=$1
  case $2 in
  sw4rm)
    sw4rm "00000000-0000-4000-8000-00000000$(printf %04d "$n")" sched HITL_INVOCATION \
      '{"invocation_id":"hitl-'"$n"'","reason_type":"'"$3"'","subject":{"task_id":"t"},"proposed_actions":["QUEUE_TASKS"]}' "" .
    ;;
  amp)
    message escalation ".msg_id = \"escalation-T-2026-$(printf %03d "$n")-$n\" | .task_id = \"T-2026-$(printf %03d "$n")\"" |
      sed "s/hallucination_lock/$3/"
    ;;
  aop)
    local ext='' code=''
    [ "$3" != required ] || ext=',"extensions":{"x_human_review_required":true}'
    [ "$3" != failed ] || code=',"error_details":{"error_code":"E_PERMISSION_DENIED","message":"no"}'
    echo '{"aop_version":"2.0.2-C","schema_version":"2.0.2","protocol_family":"AOP","message_type":"RESPONSE","session_id":"S'"$n"'","task_id":"TASK-'"$n"'","agent":{"name":"bob","provider":"CLAUDE","model":"m"},"task_status":{"state":"'"$([ "$3" = failed ] && echo FAILED || echo COMPLETED)"'","final_signal":"'"$([ "$3" = failed ] && echo FAILURE || echo SUCCESS)"'","message":"m"},"execution_summary":{"summary":"s","actions":["a"]}'"$code"',"timing":{"started_at":"2026-02-26T14:32:07Z","completed_at":"2026-02-26T14:35:07Z","duration_seconds":180}'"$ext}"
    ;;
  aof)
    local what='"type":"completion.report"' payload='"outcome":"needs_review","summaryRef":"o.md","tests":{"total":1,"passed":1,"failed":0},"notes":"look"'
    [ "$3" = needs_review ] || what='"type":"status.update"' payload='"taskId":"TASK-2026-02-09-'"$(printf %03d "$n")"'","agentId":"swe","status":"blocked","blockers":["key"]'
    echo '{"protocol":"aof","version":1,'"$what"',"taskId":"TASK-2026-02-09-'"$(printf %03d "$n")"'","fromAgent":"swe","toAgent":"router","sentAt":"2026-02-09T21:00:00.000Z","payload":{'"$payload"'}}'
    ;;
  rtp)
    echo '{"reviewId":"rev_'"$n"'","capabilityId":"cap.fs.diff-apply","failureClass":"'"$3"'","sampleCorrIds":["corr_'"$n"'"],"createdAt":"2026-02-25T18:05:00.000Z"}'
    ;;
  esac
}
name() {
  case $2 in
  sw4rm) echo "hitl-$1" ;;
  amp) printf 'T-2026-%03d\n' "$1" ;;
  aop) echo "TASK-$1" ;;
  aof) printf 'TASK-2026-02-09-%03d\n' "$1" ;;
  rtp) echo "rev_$1" ;;
  esac
}
# The conversation that the answer keeps.
keeps() {
  case $2 in
  sw4rm) echo ".msg.payload.invocation_id == \"hitl-$1\" and (.msg.correlation_id | length > 0)" ;;
  amp) printf '.ref_msg_id == "escalation-T-2026-%03d-%d"\n' "$1" "$1" ;;
  aop) echo "(.session_id // .session.session_id) == \"S$1\" and (.task_id // .task.task_id) == \"TASK-$1\"" ;;
  aof) printf '.taskId == "TASK-2026-02-09-%03d" and .toAgent == "swe"\n' "$1" ;;
  rtp) echo ".payload.reviewId == \"rev_$1\" and .corrId == \"corr_$1\"" ;;
  esac
}
aop_task() {
  echo '{"aop_version":"2.0.2-C","schema_version":"2.0.2","protocol_family":"AOP","message_type":"TASK","session":{"session_id":"S'"$1"'","created_at":"2026-02-26T14:32:07Z","orchestrator":"cli","origin":"x"},"target":{"agent_name":"bob","role":"EXECUTOR","provider":"CLAUDE","model":"m"},"task":{"task_id":"TASK-'"$1"'","objective":"o","category":"OTHER","complexity":"LOW","environment":{"workspace_root":"/srv"}},"guard_rails":{"extensions":{"x_human_review_required":true}}}'
}
# arrive: records the questions of `in` and answers none.
arrive() {
  : >none
  ask --answer none <in >acks 2>/dev/null || [ $? -eq 1 ]
}
state_of() { cat "$AMP_STATE"/log/*.ndjson | jq -r --arg k "escalation.$1" 'select(.key == $k).to' | tail -1; }
record_of() { cat "$AMP_STATE"/log/*.ndjson | jq -c --arg k "escalation.$1" 'select(.key == $k).state' | tail -1; }

# answered NAME: the lines in the file NAME are valid, and each question of `want` has its answer among them.
answered() {
  amp-validate "$1" | cmp - "$1"
  jq -cs . "$1" >all
  # One filter for all rows, which gives those that do not hold.
  {
    printf '. as $all | ['
    while IFS=$'\t' read -r who filter; do
      printf 'if ($all | map(select(%s)) | length) == 1 then empty else "%s: no line is %s" end,' "$filter" "$who" "${filter//\"/}"
    done <want
    echo 'empty] | .[]'
  } >check.jq
  jq -r -f check.jq all >missing
  [ ! -s missing ] || { cat missing >&2 && false; }
}

# told NAME: the questions that a channel told, on standard input as JSON with question, invocation, task and token;
# prints {token, question, answer} for each row of `commands`.
told() {
  jq -s '.' >told.json
  jq -cR --slurpfile told told.json 'split("\t") as [$name, $answer] |
    ($told[0] | map(select(any(.question, .invocation, .task; . == $name)))) as [$q] |
    {token: $q.token, question: $q.question, answer: $answer}' commands
}

# The table: each kind of question with each answer, through every channel.
@test "questions of the five protocols are answered in their terms: file, command line, folder, webhook, mail, signed" {
  grep -v '^#' "$BATS_TEST_DIRNAME/questions.tsv" |
    awk -F '\t' -v OFS='\t' '{ n = split($2, kinds, ","); for (i = 1; i <= n; i++) { $2 = kinds[i]; print } }' >table
  local n=0 protocol kind answer filter
  while IFS=$'\t' read -r protocol kind answer filter; do
    n=$((n + 1))
    [ "$kind" != by_task ] || aop_task "$n"
  done <table | amp-ack track >/dev/null
  n=0
  while IFS=$'\t' read -r protocol kind answer filter; do
    n=$((n + 1))
    question "$n" "$protocol" "$kind" >>in
    # A file's answers name their questions, in the opposite order.
    case $protocol in
    sw4rm) sel="\"invocation_id\":\"hitl-$n\"" ;;
    rtp) sel="\"invocation_id\":\"rev_$n\"" ;;
    *) sel="\"task_id\":\"$(name "$n" "$protocol")\",\"protocol\":\"$protocol\"" ;;
    esac
    word=${answer%% *} note=${answer#"$word"} note=${note# } commit=''
    [ "$word" != rollback ] || { commit=",\"commit\":\"${note%% *}\"" && note=${note#* }; }
    echo "{$sel,\"decision\":\"$word\",\"note\":\"$note\"$commit}" >>answers.up
    printf '%s\t(%s) and (%s)\n' "$(name "$n" "$protocol")" "$filter" "$(keeps "$n" "$protocol")" >>want
    printf '%s\t%s\n' "$(name "$n" "$protocol")" "$answer" >>commands
  done <table
  tac answers.up >answers
  [ "$n" -eq 102 ]
  cp -r state before
  run -0 --separate-stderr ask --answer answers <in
  printf '%s\n' "$output" >from_file
  answered from_file
  # The same from the command line: each answer is one line on standard output.
  AMP_STATE=$PWD/before arrive
  for channel in folder webhook mail signed; do cp -r before "$channel"; done
  while IFS=$'\t' read -r who answer; do
    # shellcheck disable=SC2086
    AMP_STATE=$PWD/before prompt answer --print "$who" $answer >>from_command 2>>said
  done <commands
  answered from_command
  # In a folder: a file for each answer.
  config "{\"channels\": {\"folder\": \"$PWD/q\"}}"
  mkdir -m 700 -p q/answers/{tmp,new,cur,refused} q/questions/{tmp,new,cur}
  chmod 700 q q/answers q/questions
  (cd q/answers/new && jq -cR 'split("\t") | {question: .[0], answer: .[1]}' ../../../commands | split -l 1 -a 3 - answer-)
  AMP_STATE=$PWD/folder setsid hitl-prompt --operator ada </dev/null >from_folder 2>>said
  answered from_folder
  # By a webhook, whose answers are polled.
  "$AMP_BUILD/tests/fixture/http-server" port log 3>&- &
  wait_until 30 test -s port
  : >polled
  url=http://127.0.0.1:$(cat port)
  config "{\"channels\": {\"scripts\": [{\"name\": \"webhook\", \"operator\": \"ada\", \"every\": \"100ms\",
    \"settings\": {\"url\": \"$url/ok\", \"answers\": \"$url/read/polled\"}}]}}"
  AMP_STATE=$PWD/webhook setsid hitl-prompt --operator ada </dev/null >from_webhook 2>>said &
  wait_until 30 eval '[ "$(grep -c "\"event\":\"asked\"" log)" -eq 102 ]'
  jq -c 'select(.body.event == "asked").body' log | told >answers.new
  mv answers.new polled
  wait $!
  kill %1
  answered from_webhook
  # By mail, and on the page behind its link.
  printf '#!/bin/sh\nexec cat >"mail.$$"\n' >sendmail
  chmod +x sendmail
  config "{\"channels\": {\"scripts\": [{\"name\": \"mail\", \"operator\": \"ada\", \"link\": \"https://h.example/r\", \"settled\": false,
    \"settings\": {\"to\": \"ada@example.org\", \"sendmail\": \"$PWD/sendmail\"}}]}}"
  AMP_STATE=$PWD/mail setsid hitl-prompt --operator ada </dev/null >from_mail 2>>said &
  cp told.json asked.json
  # The question and the token of each mail, with the names that the question had in the webhook.
  mails() {
    cat mail.* | sed -n 's/^Question: //p; s/^To answer: .*t=//p' | paste - - |
      jq -cR --slurpfile told asked.json 'split("\t") as [$key, $token] | $told[0][] | select(.question == $key) | {question, invocation, task, token: $token}'
  }
  wait_until 30 eval '[ "$(mails | wc -l)" -eq 102 ]'
  mails | told | jq -r '"token=\(.token)&confirm=yes&answer=\(.answer | @uri)"' >posts
  while read -r body; do
    printf 'POST / HTTP/1.1\r\nHost: x\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: %s\r\n\r\n%s' \
      "${#body}" "$body" | AMP_STATE=$PWD/mail hitl-prompt receive >>pages
  done <posts
  [ "$(grep -c '^HTTP/1.1 200 OK' pages)" -eq 102 ]
  wait $!
  answered from_mail
  # As files signed by the person's own key.
  ssh-keygen -qt ed25519 -N '' -f ada
  amp-sign trust add --allowed-signers signers operator/ada ada.pub
  config "{\"channels\": {\"folder\": {\"path\": \"$PWD/s\", \"signed\": true}}}"
  jq --arg s "$PWD/signers" '.identity.allowed_signers = $s' "$XDG_CONFIG_HOME/amp/amp.json" >a && mv a "$XDG_CONFIG_HOME/amp/amp.json"
  mkdir -m 700 -p s/answers/{tmp,new,cur,refused} s/questions/{tmp,new,cur}
  chmod 700 s s/answers s/questions
  n=0
  while IFS=$'\t' read -r who answer; do
    n=$((n + 1))
    # shellcheck disable=SC2086
    AMP_IDENTITY=local AMP_STATE=$PWD/signed hitl-prompt sign --key ada "$who" $answer >"s/answers/new/$n" 2>>said
  done <commands
  AMP_IDENTITY=local AMP_STATE=$PWD/signed setsid hitl-prompt --operator ada </dev/null >signed_lines 2>>said
  jq -c 'if .sig then (if .to then {to, msg} else .msg end) else . end' signed_lines >from_signed
  answered from_signed
  # Nothing is left, and a second answer hears who was first.
  run -0 --separate-stderr prompt list
  [ -z "$output" ]
  run -1 --separate-stderr env AMP_STATE="$PWD/before" hitl-prompt answer hitl-1 deny
  [[ "$stderr" == *"already decided by ada: approve"* ]]
}

@test "list shows the most severe and oldest first, in a table and as JSON with a published schema; names may be prefixes" {
  { question 1 sw4rm CONFLICT && question 2 rtp timeout && question 3 aof blocked && question 4 amp conflict &&
    question 5 aop required; } >in
  arrive
  prompt list --json >out
  amp-validate -S "$AMP_TOP/schemas/records/question.json" --formats out | cmp - out
  [ "$(jq -r .protocol out | head -n 1)" = amp ] # it is critical
  [ "$(jq -r .protocol out | wc -l)" = 5 ]
  [ "$(jq -r .arrived out | tail -n 4 | sort)" = "$(jq -r .arrived out | tail -n 4)" ]
  [ "$(jq -rs 'map(.reason) | unique | join(" ")' out)" = "CONFLICT TASK_ESCALATION" ]
  got out '.protocol == "aof" and .actions == ["ready"] and .fallback == "none" and .deadline == null'
  got out '.protocol == "sw4rm" and .fallback == "DENY_BY_DEFAULT" and .deadline != null'
  run -0 --separate-stderr prompt list
  [[ "${lines[0]}" == ID*PROTOCOL*SEVERITY*REASON* ]]
  [[ "${lines[1]}" == *critical* ]]
  [ "${#lines[@]}" = 6 ]
  run -0 --separate-stderr prompt list --protocol rtp --json
  [ "$(jq -r .id <<<"$output")" = rev_2 ]
  run -0 --separate-stderr prompt show rev
  [[ "$output" == *"capability"*"| cap.fs.diff-apply"*"resolved [NOTE]"* ]]
  run -1 --separate-stderr prompt show nothing
  [[ "$stderr" == *'no open question has the name "nothing"'* ]]
  run -1 --separate-stderr prompt answer T done
  [[ "$stderr" == *'"T" names 3 questions'* ]]
  run -65 --separate-stderr prompt answer TASK-2026-02-09-003 "done"
  [[ "$stderr" == *"the answer is not ready"* ]]
  # The name of a decided question is not a prefix: the second answer decides nothing else.
  question 10 sw4rm CONFLICT >in
  arrive
  prompt answer --print hitl-1 approve >first
  run -1 --separate-stderr prompt answer hitl-1 deny
  [[ "$stderr" == *"already decided by ada: approve"* ]]
  [ -z "$output" ]
  # A time that is out of range is no reason for an answer that defers for ever.
  run -65 --separate-stderr prompt answer hitl-10 defer 99y
  [ "$(prompt list --json | jq -r 'select(.invocation == "hitl-10").state')" = OPEN ]
  # A refused answer is in the error log, with who and how.
  jq -es 'any(.[]; .code == "bad_answer" and .from == "ada" and .file == "command")' "$AMP_STATE/error.ndjson"
}

@test "a deferred question is asked again at its time, and may be answered before" {
  { question 1 sw4rm CONFLICT && question 2 amp conflict && question 3 rtp timeout; } >in
  arrive
  run -0 --separate-stderr prompt answer hitl-1 defer 2h after lunch
  [ -z "$output" ]
  run -0 --separate-stderr prompt answer T-2026-002 defer 1h
  run -0 --separate-stderr prompt answer T-2026-002 defer 3h
  run -0 --separate-stderr prompt answer rev_3 defer 1h
  run -65 --separate-stderr prompt answer rev_3 defer
  [ "$(prompt list --json | jq -r .state | sort -u)" = DEFERRED ]
  # A deferred question is not asked, but may be answered.
  printf 'approve\nterminate\n' >answers
  run -0 --separate-stderr ask --answer answers </dev/null
  [ -z "$output" ]
  run -0 --separate-stderr prompt answer --print rev_3 resolved
  [ "$(jq -r .payload.status <<<"$output")" = resolved ]
  amp-ack sweep --now "$(date -u -d '+2 hours 5 minutes' +%FT%TZ)" >out
  [ ! -s out ]
  [ "$(prompt list --json | jq -r '.state + " " + .protocol' | sort | tr '\n' ' ')" = "DEFERRED amp OPEN sw4rm " ]
  run -0 --separate-stderr ask --answer answers </dev/null
  [ "$(jq -r .msg.payload.decision <<<"$output")" = approve ]
}

@test "an answer without a running prompt waits for the next one, wherever the output goes" {
  question 1 sw4rm SECURITY_APPROVAL >in
  arrive
  run -0 --separate-stderr prompt answer hitl-1 approve
  [[ $stderr == *"hitl-1: the decision is recorded"* ]]
  [ -z "$output" ]
  : >answers
  run -0 --separate-stderr ask --answer answers </dev/null
  [ "$(jq -r .msg.payload.decision <<<"$output")" = approve ]
}

@test "after the deadline the fallback denies, accepts above the threshold, extends three times, or leaves it open" {
  config '{"deadline":"1h","threshold":0.8,"fallback":{"default":"none","SECURITY_APPROVAL":"DENY_BY_DEFAULT","DEBATE_DEADLOCK":"AUTO_DECIDE_THRESHOLD","CONFLICT":"EXTEND_TIMEOUT"}}'
  { question 1 sw4rm SECURITY_APPROVAL && question 2 sw4rm CONFLICT && question 3 amp ci_failure &&
    question 4 sw4rm DEBATE_DEADLOCK | jq -c '.payload.context = {proposals: [{action: "A", score: 0.5}, {action: "B", score: 0.9}]} | .content_length = (.payload | tojson | length)' &&
    question 5 sw4rm DEBATE_DEADLOCK | jq -c '.payload.context = {confidence_score: 0.7} | .content_length = (.payload | tojson | length)'; } >in
  arrive
  sweep() { amp-ack sweep --now "$(date -u -d "+$1 minutes" +%FT%TZ)" >out; }
  sweep 50
  [ ! -s out ]
  sweep 61
  amp-validate out | cmp - out
  got out '.msg.payload | .invocation_id == "hitl-1" and .decision == "deny" and .operator == "policy" and .policy == "DENY_BY_DEFAULT"
    and .error_code == "deadline" and (.rationale | startswith("DENY_BY_DEFAULT: nobody decided"))'
  got out '.msg.payload | .invocation_id == "hitl-4" and .decision == "B" and .policy == "AUTO_DECIDE_THRESHOLD"'
  got out '.msg.payload | .invocation_id == "hitl-5" and .decision == "deny"'
  # AMP has no fallback: its sender hears that there is no decision, and the question is open.
  got out '.type == "nack" and .code == "hitl_unavailable" and .task_id == "T-2026-003"'
  [ "$(wc -l <out)" = 4 ]
  [ "$(prompt list --json | jq -r .protocol | sort | tr '\n' ' ')" = "amp sw4rm " ]
  record_of sw4rm%2F00000000-0000-4000-8000-000000000001 |
    jq -e '.policy == "DENY_BY_DEFAULT" and .because == "deadline" and .operator == "policy" and .channel == "policy"'
  for i in 122 183; do
    sweep $i
    [ ! -s out ]
  done
  got <(prompt list --json) '.extensions == 3'
  sweep 244
  got out '.msg.payload | .invocation_id == "hitl-2" and .decision == "deny" and .policy == "EXTEND_TIMEOUT"'
  [ "$(wc -l <out)" = 1 ]
  # Nothing more becomes due.
  sweep 1000
  [ ! -s out ]
  prompt answer --print T-2026-003 terminate >out 2>/dev/null
  got out '.decision == "terminate"'
}

@test "the protocol's deadline counts if it is earlier; the running filter applies the fallback itself" {
  question 1 sw4rm CONFLICT | jq -c --arg t "$(date -u -d '+1 second' +%FT%T.%3NZ)" '.payload.deadline_ts = $t | .content_length = (.payload | tojson | length)' >in
  mkfifo answers
  exec 8<>answers
  ask --answer answers <in >out 2>err 8>&- &
  wait $!
  exec 8>&-
  got out '.msg.payload | .decision == "deny" and .policy == "DENY_BY_DEFAULT"'
  [ "$(state_of sw4rm%2F00000000-0000-4000-8000-000000000001)" = DECIDED ]
}

@test "nobody can be reached: the configured fallback applies, and the record says so" {
  config '{"unavailable_after":"100ms","fallback":{"SECURITY_APPROVAL":"DENY_BY_DEFAULT"}}'
  { question 1 sw4rm SECURITY_APPROVAL && question 2 sw4rm CONFLICT; } >in
  run -69 --separate-stderr setsid -w hitl-prompt <in
  jq -es 'any(.[]; .msg.payload | .invocation_id == "hitl-1" and .decision == "deny" and .error_code == "hitl_unavailable"
    and (.decided_at | length > 0))' <<<"$output"
  # Without a configured fallback the sender hears that nobody decides now.
  jq -es 'any(.[]; .msg.payload | .ack_stage == "READ" and (.note // "" | startswith("hitl_unavailable: ")) and (.ack_for_message_id | endswith("2")))' <<<"$output"
  [ "$(state_of sw4rm%2F00000000-0000-4000-8000-000000000001)" = DECIDED ]
  [ "$(state_of sw4rm%2F00000000-0000-4000-8000-000000000002)" = OPEN ]
  record_of sw4rm%2F00000000-0000-4000-8000-000000000001 | jq -e '.because == "hitl_unavailable" and .decided_at > 0'
}

@test "a question ends when a later message settles it, and not by what an agent may say" {
  { question 1 aof blocked && question 2 rtp timeout && question 3 sw4rm CONFLICT; } >in
  arrive
  {
    echo '{"protocol":"aof","version":1,"type":"status.update","taskId":"TASK-2026-02-09-001","fromAgent":"router","toAgent":"swe","sentAt":"2026-02-09T22:00:00.000Z","payload":{"taskId":"TASK-2026-02-09-001","agentId":"swe","status":"ready"}}'
    sw4rm 00000000-0000-4000-8000-000000000099 ops HITL_DECISION '{"invocation_id":"hitl-3","decision":"deny","rationale":"no","patch_b64":null}' "" .
  } >later
  # An input that is not trusted, unsigned: nothing ends.
  mkfifo fifo
  cat later >fifo &
  AMP_IDENTITY=local run -1 --separate-stderr ask --answer none --in fifo
  [ "$(prompt list --json | wc -l)" = 3 ]
  run -1 --separate-stderr ask --answer none <later
  [[ "$stderr" == *"a later message settled it"* ]]
  [ "$(prompt list --json | jq -r .id)" = rev_2 ]
  run -1 --separate-stderr prompt answer hitl-3 approve
  [[ "$stderr" == *"its subject has ended"* ]]
}

@test "an answer reaches the running filter at once, which writes it; the second of two filters waits its turn" {
  { question 1 sw4rm CONFLICT && question 2 sw4rm CONFLICT; } >in
  mkfifo in.fifo none.fifo
  : >none
  exec 7<>in.fifo 8<>none.fifo
  hitl-prompt --operator ada --answer none.fifo --in in.fifo >out 2>err 7>&- 8>&- &
  first=$!
  cat in >in.fifo
  listed() { prompt list --json | grep -q hitl-2; }
  wait_until 30 listed
  run -0 --separate-stderr prompt answer hitl-1 approve
  [ -z "$output" ] # the filter has the name
  wait_until 30 grep -q '"decision":"approve"' out
  run -1 --separate-stderr ask --answer none </dev/null
  [[ "$stderr" == *"another process with the name hitl-prompt runs"* ]]
  kill "$first"
  ends 130 wait "$first"
  exec 7>&- 8>&-
  run -0 --separate-stderr prompt answer --print hitl-2 deny
  [[ "$output" == *'"decision":"deny"'* ]]
}

@test "kill -9 at random moments: each of 500 questions is answered exactly once; lists of them are fast" {
  question 7777 sw4rm CONFLICT >one
  awk '{ for (i = 1; i <= 500; i++) { l = $0; gsub(/7777/, sprintf("%04d", i), l); print l } }' one >in
  arrive
  [ "$(prompt list --json | wc -l)" = 500 ]
  for i in {1..500}; do echo approve; done >answers
  n=0
  # The rounds get longer: a busy machine needs more time to start.
  while [ "$n" -lt 60 ]; do
    n=$((n + 1))
    ((n % 3)) || [ -n "$(prompt list --json 2>/dev/null)" ] || break
    kill9_round $((6 + 3 * n)) hitl-prompt --operator ada --answer answers </dev/null >"out.$n" 2>/dev/null
  done
  ask --answer answers </dev/null >out.last 2>/dev/null
  # One decision for each question in the log, and one message, however often it was written.
  cat state/log/*.ndjson | jq -r 'select(.to == "DECIDED" and (.key | startswith("escalation."))).key' | sort >decided
  [ "$(wc -l <decided)" = 500 ]
  [ "$(sort -u decided | wc -l)" = 500 ]
  cat out.* | jq -R 'fromjson? | select(.msg.message_type == "HITL_DECISION") | [.msg.payload.invocation_id, .msg.message_id] | join(" ")' | sort -u >sent
  [ "$(wc -l <sent)" = 500 ]
  [ "$(cut -d' ' -f1 sent | sort -u | wc -l)" = 500 ]
  [ "$kills" -ge 5 ]
}

@test "the answers of the five protocols verify as the operator's" {
  unset AMP_IDENTITY
  { question 1 sw4rm CONFLICT && question 2 rtp timeout && question 3 aof blocked && question 4 amp conflict &&
    question 5 aop required; } >in
  arrive
  for who in 'hitl-1 approve' 'rev_2 resolved' 'TASK-2026-02-09-003 ready' 'T-2026-004 resume' 'TASK-5 terminate'; do
    # shellcheck disable=SC2086
    prompt answer --print $who >>answers
  done
  [ "$(wc -l <answers)" -eq 5 ]
  run -0 --separate-stderr amp-sign verify -s "$AMP_STATE" <answers
  diff answers <(printf '%s\n' "$output")
  # An agent cannot review its own work, and an operator does not speak for another one.
  for by in 'bob ada' 'operator/ada bob'; do
    question 6 aop required | jq -c --arg op "${by#* }" '.extensions.x_human_review = {operator: $op, decision: "reviewed"}' |
      amp-sign -s "$AMP_STATE" --as "${by% *}" >forged
    run -1 --separate-stderr amp-sign verify -s "$AMP_STATE" <forged
    [[ $stderr == *bad_sender* ]]
    run -1 --separate-stderr ask --answer none <forged
    [[ $stderr == *bad_sender* ]]
  done
}

@test "an answer after the deadline is late, though no process ran then" {
  config '{"deadline":"500ms"}'
  question 1 sw4rm SECURITY_APPROVAL >in
  arrive
  [ "$(grep -c HITL_DECISION acks)" -eq 0 ]
  wait_until 10 eval '[ "$(prompt list --json | jq "(.deadline[:19] + \"Z\" | fromdate) + 1 < now")" = true ]'
  run -1 --separate-stderr prompt answer --print hitl-1 approve
  [[ "$stderr" == *"already decided by policy: deny"* ]]
  [ "$(jq -r .msg.payload.decision <<<"$output")" = deny ]
}
