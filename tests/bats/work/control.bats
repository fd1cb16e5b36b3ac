# The control FIFO of an attempt: what an agent may say and ask, the answers in its directory, and
# what happens to everything else: it is refused with a code, and never blocks or grows the worker.

setup() {
  load ../lib
  load ../agents
  need jq git
  workplace
}

attempt() {
  find "$STATE"/run/T-2026-001 -mindepth 1 -maxdepth 1 -type d ! -name 'kept-*'
}

# talker <body: an agent with helpers: say LINE, and answered ID, which waits for an answer.
talker() {
  { cat <<'EOS' && cat; } | agent talks
here=${AMP_CONTROL%/*}
say() { printf '%s\n' "$1" >"$AMP_CONTROL"; }
answered() { until [ -e "$here/answer-$1.json" ]; do sleep 0.02; done; cat "$here/answer-$1.json" >>"$here/answers"; }
echo x >x
EOS
}

# log_of ACTION: the details of the work log's entries.
log_of() {
  jq -r --arg a "$1" 'select(.type == "task_result").payload.work_log[] | select(.action == $a).detail' out.ndjson
}

@test "progress, heartbeats, safe points and holds are taken, and answers match their schema" {
  talker <<'EOS'
say '{"type":"progress","detail":"half","percent":50,"file":"x","id":"p"}'
answered p
say '{"type":"heartbeat","id":"h"}'
answered h
say '{"type":"safe","id":"s"}'
answered s
say '{"type":"hold","max_ms":1000,"reason":"writing","id":"o"}'
answered o
say '{"type":"release","id":"r"}'
answered r
say '{"type":"progress","detail":"no answer is asked for"}'
say '{"type":"inbox","id":"i"}'
answered i
EOS
  dispatch | run_agent --exec ./talks
  [ "$(log_of progress)" = "$(printf '50%%: half\nno answer is asked for')" ]
  [ "$(log_of hold)" = "for 1000 ms: writing" ]
  jq -se 'map(.ok) | all' "$(attempt)/answers"
  jq -se '.[2].stop == false and (.[3].until | length) > 0 and .[5].inbox == []' "$(attempt)/answers"
  amp-validate -S agent/control_answer <"$(attempt)/answers" >valid
  cmp valid "$(attempt)/answers"
  # Nothing was refused.
  [ "$(log_of control_refused)" = "" ]
}

@test "an agent reads its own task, and its own inbox, which stays as it is" {
  dispatch '.from = "admin" | .to = "coordinator"' >new.ndjson
  run -75 --separate-stderr task-dispatch coordinate --state "$STATE" <new.ndjson
  printf '%s\n' "${lines[@]}" | grep '"type":"task_dispatch"' >dispatched.ndjson
  dispatch '.task_id = "T-2026-009" | .msg_id = "task_dispatch-T-2026-009-1"' |
    amp-route --state "$STATE" -r 'type=* => inbox:executor' >/dev/null
  talker <<'EOS'
say '{"type":"task","id":"t"}'
answered t
say '{"type":"inbox","id":"i"}'
answered i
EOS
  run_agent --exec ./talks <dispatched.ndjson
  jq -se '.[0].ok and .[0].task.branch == "feat/x" and (.[1].inbox | map(.task_id)) == ["T-2026-009"]' "$(attempt)/answers"
  [ "$(amp-route inbox --state "$STATE" executor --max 1 | jq -r .task_id)" = T-2026-009 ]
}

@test "a question goes to the admin, and the answer comes back into the attempt" {
  mkfifo in
  talker <<'EOS'
say '{"type":"question","id":"q","text":"Which colour?","suggestions":["red","blue"]}'
until grep -q decision "$here/answer-q.json" 2>/dev/null; do
  n=$((n + 1))
  say "{\"type\":\"safe\",\"id\":\"s$n\"}"
  answered "s$n"
  sleep 0.1
done
cp "$here/answer-q.json" "$here/answers"
EOS
  dispatch >in.ndjson
  run_agent --exec ./talks <in.ndjson &
  pid=$!
  wait_until 20 grep -q '"type":"escalation"' out.ndjson
  grep '"type":"escalation"' out.ndjson >question.ndjson
  jq -e '.to == "admin" and .from == "executor" and .payload.severity == "warning"
    and .payload.description == "The agent executor asks: Which colour?" and .payload.suggested_actions == ["red", "blue"]' question.ndjson
  amp-validate <question.ndjson >/dev/null
  echo '{"task_id":"*","decision":"resume","note":"blue"}' >answer
  # The question suspends the agent until it is answered; it goes on waiting.
  run -1 hitl-prompt --state "$STATE" --answer /dev/null <question.ndjson
  said=$(find "$(attempt)" -name 'answer-s*' | wc -l)
  wait_until 20 eval '[ "$(find "$(attempt)" -name "answer-s*" | wc -l)" -ge $((said + 10)) ]'
  hitl-prompt --state "$STATE" --answer answer <question.ndjson >decision.ndjson
  wait "$pid"
  jq -e '.decision == "resume" and .note == "blue" and .escalation != ""' "$(attempt)/answers"
  [ "$(log_of question)" = "The agent executor asks: Which colour?" ]
}

@test "the agent withdraws its question: its task goes on, nobody is suspended, and no answer counts" {
  talker <<'EOS'
until_() { for _ in {1..1500}; do "$@" && return; sleep 0.02; done; exit 1; }
say '{"type":"withdraw","question":"none","id":"w0"}'
answered w0
say '{"type":"question","id":"q","text":"Which colour?"}'
answered q
until_ test -e "$here/go-1"
say '{"type":"withdraw","question":"q","id":"w1","reason":"red will do"}'
answered w1
cat "$here/answer-q.json" >>"$here/answers"
say '{"type":"withdraw","question":"q","id":"w2"}'
answered w2
say '{"type":"question","id":"r","text":"Which size?"}'
until_ grep -qs decision "$here/answer-r.json"
say '{"type":"withdraw","question":"r","id":"w3"}'
answered w3
EOS
  coordinated() { task-dispatch coordinate --state "$STATE" 2>>said; }
  state() { jq -r '[.state, (.escalations | length)] | join(" ")' "$STATE/tasks/T-2026-001.json"; }
  # Signs of life come with time alone.
  suspensions() { cat "$STATE"/log/*.ndjson | jq -r 'select(.key? | strings | startswith("agent")) | .event | select(. != "beat" and . != "seen")' | paste -sd' '; }
  dispatch '.from = "admin" | .to = "coordinator"' | coordinated | grep '"type":"task_dispatch"' >in.ndjson || :
  run_agent --exec ./talks <in.ndjson &
  pid=$!
  wait_until 20 grep -q '"type":"escalation"' out.ndjson
  grep '"type":"escalation"' out.ndjson >question.ndjson
  coordinated <question.ndjson >asked.ndjson || :
  [ "$(state)" = "waiting 1" ]
  run -1 hitl-prompt --state "$STATE" --answer /dev/null <asked.ndjson
  suspensions >s1
  # A person looks at it while the agent withdraws it.
  id=$(jq -r .msg_id question.ndjson)
  hitl-prompt list --state "$STATE" | grep -qF "$id"
  touch "$(attempt)/go-1"
  wait_until 20 grep -q '"code":"withdrawn"' out.ndjson
  run -1 hitl-prompt answer --state "$STATE" "$id" resume
  [[ $output == *"withdrew the question: red will do"* ]]
  grep '"code":"withdrawn"' out.ndjson | coordinated >again.ndjson || :
  [ "$(state)" = "dispatched 0" ]
  [ "$(suspensions)" = "$(cat s1) lift" ]
  jq -e 'select(.type == "nack") | .from == "coordinator" and .code == "withdrawn" and .message == "red will do"' again.ndjson
  # A filter with the same state says it, and asks nothing.
  run -0 --separate-stderr hitl-prompt --state "$STATE" --answer /dev/null <again.ndjson
  [[ $stderr == *"is no longer asked: it was withdrawn"* ]]
  hitl-prompt audit --state "$STATE" --json >audit.ndjson
  got audit.ndjson ".what == \"withdrawn\" and .question == \"$id\" and .why == \"red will do\""
  # The second question is answered first.
  wait_until 20 eval '[ "$(grep -c "\"type\":\"escalation\"" out.ndjson)" -eq 2 ]'
  grep '"type":"escalation"' out.ndjson | tail -n 1 | coordinated >asked.ndjson || :
  echo '{"task_id":"*","decision":"resume","note":"7"}' >answer
  hitl-prompt --state "$STATE" --answer answer <asked.ndjson >decision.ndjson
  wait "$pid"
  jq -se 'map([.id, .ok, .code // .withdrawn // .decision])
    == [["w0",false,"unknown_ref"],["q",true,null],["w1",true,true],["q",true,true],["w2",false,"withdrawn"],["w3",false,"already_decided"]]' \
    "$(attempt)/answers"
  amp-validate -S agent/control_answer <"$(attempt)/answers" >valid
  cmp valid "$(attempt)/answers"
  [ "$(log_of question_withdrawn)" = "red will do" ]
}

@test "what is not a valid line is refused with its code and logged, and the rest is taken" {
  talker <<'EOS'
say 'garbage'
say '{"type":"resume","id":"a"}'
answered a
say '{"type":"progress","id":"b"}'
answered b
say '{"type":"progress","detail":"x","to":"admin","id":"c"}'
answered c
say '{"type":"hold","id":"d","max_ms":99999999}'
answered d
say '{"msg_id":"x","type":"decision","decision":"resume","task_id":"T-2026-001"}'
say '{"type":"heartbeat","id":"../../../x"}'
head -c 70000 /dev/zero | tr '\0' y >"$AMP_CONTROL"
say ''
printf '\0\377{"type":\n' >"$AMP_CONTROL"
printf '{"type":"prog' >"$AMP_CONTROL"
printf 'ress","detail":"in two parts"}\n' >"$AMP_CONTROL"
say '{"type":"progress","detail":"after it","id":"e"}'
answered e
EOS
  dispatch | run_agent --exec ./talks
  jq -se 'map(.ok) == [false, false, false, false, true] and (map(.code)[0:4] | unique) == ["schema_violation"]' "$(attempt)/answers"
  [ "$(log_of progress)" = "$(printf 'in two parts\nafter it')" ]
  for code in invalid_json schema_violation line_too_long; do
    jq -se --arg c "$code" 'any(.code == $c and .rule == "control" and .severity == "error")' "$STATE/error.ndjson"
  done
  [[ "$(log_of control_refused)" == *"9 lines of AMP_CONTROL were refused"* ]] || { log_of control_refused && return 1; }
  [ "$(find . -name 'answer-*' | wc -l)" -eq 5 ]
  # Nobody resumed anything.
  run -1 grep -q '"type":"decision"' out.ndjson
}

@test "a flood is refused by its rate, while the worker goes on" {
  talker <<'EOS'
for i in {1..3000}; do echo '{"type":"progress","detail":"flood"}'; done >"$AMP_CONTROL"
EOS
  dispatch | timeout 60 task-dispatch run --state "$STATE" --pause 10ms --exec ./talks >out.ndjson 2>err
  jq -se 'any(.code == "rate_limited")' "$STATE/error.ndjson"
  [ "$(log_of progress | wc -l)" -ge 100 ]
  [ "$(log_of progress | wc -l)" -lt 400 ]
  [ "$(grep -c rate_limited err)" -eq 1 ]
}

@test "the FIFO is read whatever is put into its place, and answers leave the directory by no link" {
  echo untouched >outside
  talker <<EOS
exec 5>"\$AMP_CONTROL"
mv "\$AMP_CONTROL" "\$AMP_CONTROL.old"
ln -s /dev/zero "\$AMP_CONTROL"
ln -s "$PWD/outside" "\$here/answer-l.json"
echo '{"type":"heartbeat","id":"l"}' >&5
until [ ! -L "\$here/answer-l.json" ]; do sleep 0.02; done
mkdir "\$here/answer-m.json"
echo '{"type":"heartbeat","id":"m"}' >&5
echo '{"type":"progress","detail":"still here"}' >&5
chmod 500 "\$here"
echo '{"type":"heartbeat","id":"n"}' >&5
chmod 700 "\$here"
EOS
  dispatch | run_agent --exec ./talks
  [ "$(cat outside)" = untouched ]
  [ "$(log_of progress)" = "still here" ]
  got out.ndjson '.payload.completion_status? == "complete"'
}

# suspend_held: starts the agent, suspends it while it has a hold, and waits for the worker, whose task stays open.
suspend_held() {
  local pid ended=0
  dispatch >in.ndjson
  escalation >esc.ndjson
  run_agent --grace 5s --exec ./talks <in.ndjson &
  pid=$!
  wait_until 20 eval '[ -e "$(attempt)"/answer-o.json ]'
  run -1 hitl-prompt --state "$STATE" --answer /dev/null <esc.ndjson
  wait "$pid" || ended=$?
  [ "$ended" -eq 75 ]
}

@test "a hold defers a suspension until it is released or over" {
  talker <<'EOS'
trap 'echo stopped >>"$here/events"; exit 3' TERM
say '{"type":"hold","max_ms":60000,"id":"o"}'
answered o
until grep -q '"stop":true' "$here"/answer-s*.json 2>/dev/null; do
  n=$((n + 1))
  say "{\"type\":\"safe\",\"id\":\"s$n\"}"
  sleep 0.1
done
echo "asked to stop" >>"$here/events"
say '{"type":"release"}'
while :; do sleep 0.05; done
EOS
  suspend_held
  [ "$(cat "$(attempt)/events")" = "$(printf 'asked to stop\nstopped')" ]
  grep -q 'suspended; the agent asked for' err
}

@test "a hold that is over does not defer any longer" {
  talker <<'EOS'
trap 'echo stopped >>"$here/events"; exit 3' TERM
# Long enough for the suspension to come meanwhile.
say '{"type":"hold","max_ms":4000,"id":"o"}'
answered o
while :; do sleep 0.05; done
EOS
  suspend_held
  [ "$(cat "$(attempt)/events")" = stopped ]
  grep -q 'forced_preemption' err
}
