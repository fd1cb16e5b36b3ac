# Agents that misbehave, each of a type of its own, in one pool at the same time: what the pool makes of each, and that
# none holds up the others. The tests look at what that pool left.

setup_file() {
  load ../lib
  load ../agents
  load ../pools
  cd "$BATS_FILE_TMPDIR" || return
  export BATS_TEST_TMPDIR=$BATS_FILE_TMPDIR STATE=$BATS_FILE_TMPDIR/state
  builder <<'EOS'
mark "tries-$AMP_AGENT_TYPE"
again() { [ "$AMP_ATTEMPT" -gt 1 ]; }
case $AMP_AGENT_TYPE in
hangs) sleep 600 ;;
deaf) trap '' TERM; while :; do sleep 0.1; done ;;
crashes) kill -9 $$ ;;
recovers) again || kill -9 $$ ;;
fails) echo 'not possible' >&2; exit 3 ;;
forks) (trap '' TERM HUP; setsid setsid sleep 600 >/dev/null 2>&1 &) & (setsid sh -c 'trap "" TERM; sleep 600' &) ;;
floods)
  again && exit 0
  head -c 20000 /dev/zero | tr '\0' y >"$AMP_CONTROL"
  for i in $(seq 300); do echo junk; done >"$AMP_CONTROL"
  head -c 3000000 /dev/zero
  yes "$(head -c 9000 /dev/zero | tr '\0' x)" | head -n 300 >&2
  ;;
garbage) echo '{"usage":' >"$AMP_RESULT" ;;
link) ln -s /etc/passwd "$AMP_RESULT" ;;
fifo) mkfifo "$AMP_RESULT" ;;
poses)
  # Another's words in its answer; another task's id.
  echo '{"message_id":"x","producer_id":"boss","message_type":"ACKNOWLEDGEMENT","payload":{}}' >"$AMP_RESULT"
  ;;
invents) echo '{"task_id":"t-other","subtask_id":"t-other-S1","files":["/no/such/file"],"text":"done"}' >"$AMP_RESULT" ;;
starves) say '{"type":"waiting","for":"resource"}'; sleep 600 ;;
later) again || exit 75 ;;
forgets)
  # Each attempt loses the session of the one before.
  echo "${AMP_SESSION:-none}" >>"$marks/sessions"
  say "{\"type\":\"session\",\"session\":\"s-$AMP_ATTEMPT\",\"id\":\"s\"}"
  answered s >/dev/null
  [ "$AMP_ATTEMPT" = 3 ] || exit 75
  ;;
good)
  mark good
  # What it printed cannot be another file.
  cd "${AMP_RESULT%/*}" && rm stdout && ln -s /etc/passwd stdout
  ;;
esac
exit 0
EOS
  types=(hangs deaf crashes recovers fails forks floods garbage link fifo poses invents starves later forgets good)
  for t in "${types[@]}"; do
    submit 0 "$t" >"id-$t" || return
    args+=(--type "$t=1")
  done
  pool --drain "${args[@]}" --timeout 1500ms --grace 100ms --retries 1 --resource-timeout 200ms --max-output 64k -x ./agent
  task-queue list --state "$STATE" --config "$(config)" --json >jobs
}

setup() {
  load ../lib
  load ../agents
  load ../pools
  cd "$BATS_FILE_TMPDIR"
  STATE=$BATS_FILE_TMPDIR/state
}

# ended TYPE STATE [CODE]: its job.
ended() {
  grep -F "\"id\":\"$(cat "id-$1")\"" jobs >job
  grep -F "\"state\":\"$2\"" job
  [ -z "${3-}" ] || grep -F "\"code\":\"$3\"" job
}
tries() { [ "$(wc -l <"tries-$1")" -eq "$2" ]; }

@test "an agent that hangs, ignores TERM or crashes is repeated as often as --retries says, then its job has failed" {
  for t in hangs deaf crashes; do
    ended "$t" FAILED machinery
    tries "$t" 2
    [[ $(states "$t-1") == *"RUNNING FAILED RECOVERING RUNNABLE"* ]]
  done
  grep -F 'exceeded its time limit' err
  grep -F 'killed by signal 9' err
  ended recovers DONE
  tries recovers 2
}

@test "an agent that reports a failure has failed, and is not repeated" {
  ended fails FAILED task_failed
  tries fails 1
}

@test "no process is left of an agent that forks twice into sessions of its own" {
  ended forks DONE
  [ -z "$(attempts_left)" ]
}

@test "a flood of output is cut, and one of the control FIFO is refused with codes" {
  ended floods DONE
  [ "$(find "$STATE/run" -size +64k -name std\* | wc -l)" -eq 0 ]
  for code in line_too_long invalid_json rate_limited; do
    grep -F "$code: t-" err
  done
}

@test "an answer that is no JSON, a link or a FIFO has failed with bad_answer; a link is no output" {
  for t in garbage link fifo; do
    ended "$t" FAILED bad_answer
  done
  ended good DONE
  grep -F root: "$STATE"/log/*.ndjson out.ndjson && return 1
  true
}

@test "an answer that is a message of another has failed with bad_sender, and nothing of it is sent" {
  ended poses FAILED bad_sender
  [ "$(grep -c '"producer_id":"boss"' out.ndjson)" -eq 0 ]
}

@test "ids and files that an agent invents change nothing: its answer is about its own message" {
  ended invents DONE
  [ "$(grep -c 't-other\|no/such/file' out.ndjson)" -eq 0 ]
  # The ids of the answers are those of the messages.
  message=$(sed -n 's/.*"message":"\([^"]*\)".*/\1/p' job)
  [ "$(grep -F "\"ref_message_id\":\"$message\"" out.ndjson | grep -c FULFILLED)" -eq 1 ] ||
    [ "$(grep -F "$message" out.ndjson | grep -c FULFILLED)" -eq 1 ]
}

@test "an agent that waits too long for a resource has failed with resource_timeout" {
  ended starves FAILED resource_timeout
  [[ $(states starves-1) == *"RUNNING WAITING_RESOURCES FAILED RECOVERING"* ]]
}

@test "an agent that asks for another attempt waits, and gets it after the pause" {
  ended later DONE
  tries later 2
  [[ $(states later-1) == *"RUNNING WAITING RUNNING COMPLETED"* ]]
  grep -F "\"key\":\"queue.$(cat id-later)\"" "$STATE"/log/*.ndjson | grep -F '"to":"PARKED"' | grep -F again_later
}

@test "an agent gets back the session that its last attempt named, also if that was lost before" {
  ended forgets DONE
  [ "$(paste -sd' ' sessions)" = "none s-1 s-2" ]
}

@test "the agent that behaves was not held up, and each agent is free at the end" {
  ended good DONE
  # It had ended before the first time limit.
  good=$(sed -n 's/.*"ended":"\([^"]*\)".*/\1/p' job)
  ended hangs FAILED >/dev/null
  hangs=$(sed -n 's/.*"ended":"\([^"]*\)".*/\1/p' job)
  [[ $good < $hangs ]]
  for t in id-*; do
    [[ $(states "${t#id-}-1") == *"RUNNABLE SHUTTING_DOWN SHUTTING_DOWN" ]]
  done
}
