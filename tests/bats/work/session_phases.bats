#!/usr/bin/env bats
# Phases and checkpoints of a TASK of a session: what is checked here, and what a failure leads to.
# long
# plain: session.bats and session_records.bats run the same code
# walls

setup() {
  load ../lib
  load ../session
  need jq
  need_tool task-dispatch
  sessions
}

SAY='say() { echo "$1" >"$AMP_CONTROL"; }
 answered() { for _ in {1..300}; do [ ! -e "${AMP_CONTROL%/*}/answer-$1.json" ] || break; sleep 0.02; done; cat "${AMP_CONTROL%/*}/answer-$1.json"; }
'
# point ID COMMAND EXPECTS [JQ]: a checkpoint.
point() { jq -nc --arg i "$1" --arg c "$2" --arg e "$3" '{checkpoint_id: $i, description: "d", validation: {command: $c, expects: $e}} | '"${4:-.}"; }
# phases: a jq filter; each argument has the checkpoints of a phase, P1, P2, …
phases() {
  local n=0 list=
  for points in "$@"; do
    n=$((n + 1))
    list+="{phase_id: \"P$n\", phase_order: $n, label: \"l\", objective: \"o\", checkpoints: [$points]},"
  done
  echo ".phases = ([${list%,}] | reverse)"
}
results() { response "$1" '(.checkpoint_results | map(.checkpoint_id + " " + .status) | join(","))' | jq -r '.[0]'; }
result() { jq -r --arg t "$1" --arg c "$2" 'select(.message_type == "RESPONSE" and .task_id == $t) | .checkpoint_results[] | select(.checkpoint_id == $c) | '"$3" out.ndjson; }

@test "phases run in the order of phase_order, and each checkpoint is checked after its phase" {
  local script='echo $AMP_PHASE >>phases.txt; echo "config.get $AMP_PHASE" >>a.txt
    [ $AMP_PHASE = P1 ] || echo "{\"task_status\":{\"state\":\"COMPLETED\",\"final_signal\":\"SUCCESS\"},\"execution_summary\":{\"summary\":\"s\",\"actions\":[\"a\"]},
      \"checkpoint_results\":[{\"checkpoint_id\":\"C8\",\"status\":\"FAIL\",\"notes\":\"not yet\"},{\"checkpoint_id\":\"C8\",\"status\":\"PASS\",\"notes\":\"I looked\"},{\"checkpoint_id\":\"C6\",\"status\":\"PASS\"}]}" >$AMP_RESULT'
  task "$script" "$(phases "$(point C1 'test -f a.txt' EXIT_CODE_0), $(point C2 "grep -n 'config.get P1' C:/work/a.txt" MATCH_FOUND), $(point C3 'grep P2 a.txt' NO_MATCH),
      $(point C4 'C:\work\a.txt' FILE_EXISTS), $(point C5 x EXIT_CODE_0 'del(.validation) | .expected_artifacts = [{type: "FILE", path: "C:/work/a.txt"}]')" \
    "$(point C6 'grep -c P3 a.txt' MATCH_FOUND), $(point C7 x NO_MATCH 'del(.validation)'), $(point C8 x NO_MATCH 'del(.validation)'),
      $(point C9 'false' EXIT_CODE_0 '.status = "SKIP"'), $(point C10 'no-such-program' EXIT_CODE_0 '.recovery_strategy = "CONTINUE"'), $(point C11 '../agent' FILE_EXISTS), $(point C3 'grep P1 a.txt' NO_MATCH)") | .task.environment.workspace_root = \"C:/work\"" >in
  session_run <in
  ended T-1 COMPLETED SUCCESS
  [ "$(paste -sd, ws/phases.txt)" = P1,P2 ]
  # Of two results for one checkpoint_id, of the TASK (C3) or by the agent (C8), the later one stands.
  [ "$(results T-1)" = "C1 PASS,C2 PASS,C3 FAIL,C4 PASS,C5 PASS,C6 FAIL,C7 SKIP,C8 PASS,C9 SKIP,C10 FAIL,C11 FAIL" ]
  [ "$(result T-1 C1 '.evidence[0]')" = "test -f a.txt → exit 0" ]
  [ "$(result T-1 C2 .validation_output)" = "1:config.get P1" ]
  [ "$(result T-1 C5 '.evidence[0]')" = "C:/work/a.txt: 14 bytes" ]
  [ "$(result T-1 C6 '.evidence | join("; ")')" = "grep -c P3 a.txt → exit 1, output, expected exit 0 and output; the agent reported PASS" ]
  [ "$(result T-1 C8 .notes)" = "I looked" ]
  [[ $(result T-1 C10 '.evidence[0]') == *command_not_found* && $(result T-1 C11 '.evidence[0]') == *"outside of the workspace"* ]]
  # What fails without a strategy, or with CONTINUE, is a warning.
  [ "$(response T-1 '(.execution_summary.warnings | map(select(startswith("checkpoint C"))) | length)')" = '[4]' ]
}

@test "recovery_strategy: RETRY runs the phase again, ABORT ends the TASK, and another model begins anew" {
  { task 'echo $AMP_PHASE >>runs1; [ $(grep -c P2 runs1) -lt 2 ] || echo x >good1' "$(phases "$(point A true EXIT_CODE_0)" "$(point B 'test -s good1' EXIT_CODE_0 '.recovery_strategy = "RETRY"')" "$(point C true EXIT_CODE_0)")"
    task 'echo $AMP_PHASE >>runs2; sleep 0' "$(phases "$(point B 'test -s none' EXIT_CODE_0 '.recovery_strategy = "RETRY"')" "$(point C true EXIT_CODE_0)") | .execution_policy.max_retries = 2"
    task 'echo $AMP_PHASE >>runs3; sleep 0' "$(phases "$(point A 'test -s none' EXIT_CODE_0), $(point B 'false' EXIT_CODE_0 '.recovery_strategy = "RETRY"'), $(point C 'echo broken' NO_MATCH '.recovery_strategy = "ABORT"')" "$(point D true EXIT_CODE_0)") | $(others CODEX part ALL_ERRORS)"
    task 'echo $AMP_PHASE >>runs4; sleep 0' "$(phases "$(point A 'test -s runs5' EXIT_CODE_0 '.recovery_strategy = "RETRY"')" "$(point B true EXIT_CODE_0)") | $(others CODEX "$(base64 -w0 <<<'echo $AMP_PHASE >>runs5')" ALL_ERRORS)"; } >in
  session_run <in
  ended T-1 COMPLETED SUCCESS
  [ "$(paste -sd, ws/runs1)" = P1,P2,P2,P3 ]
  [ "$(results T-1)" = "A PASS,B PASS,C PASS" ]
  ended T-2 FAILED FAILURE E_UNKNOWN
  [ "$(paste -sd, ws/runs2)" = P1,P1,P1 ]
  [ "$(results T-2)" = "B FAIL,C PENDING" ]
  [[ $(response T-2 .error_details.message) == *"checkpoint B failed: test -s none → exit 1"* ]]
  ended T-3 ABORTED ABORTED E_UNKNOWN
  [ "$(paste -sd, ws/runs3)" = P1 ]
  [ "$(results T-3)" = "A FAIL,B FAIL,C FAIL,D PENDING" ]
  [[ $(response T-3 .error_details.message) == *"checkpoint C failed"*"recovery_strategy is ABORT"* ]]
  ended T-4 COMPLETED SUCCESS
  [ "$(cat ws/runs4 ws/runs5 | paste -sd,)" = P1,P1,P1,P2 ]
}

@test "what a shell would interpret is refused before any work; what runs too long or prints too much is ended or cut" {
  jq '.aop.validation_sec = 1' amp.json >new.json && mv new.json amp.json
  local tree
  tree=$(printf '#!/bin/bash\nsleep 98.7 & setsid sleep 98.7 & sleep 98.7\n' >ws/tree; chmod +x ws/tree; echo ./tree)
  { for bad in 'a | b' 'a; b' 'a && b' 'a > f' 'echo $HOME' 'echo `id`' 'rm *.c' 'X=1 a' '! a' "a 'b"; do
      task good "$(phases "$(point CP "$bad" EXIT_CODE_0)")"
    done
    task good '.task.expected_outputs = [{type: "TEXT", description: "d", validation: {command: "a $(b)", expects: "EXIT_CODE_0"}}]'
    task 'true ""' "$(phases "$(point A "$tree" EXIT_CODE_0), $(point B 'seq 300000' MATCH_FOUND), $(point C 'sh -c "kill -9 $$"' EXIT_CODE_0 '.validation.command = "sh -c '"'kill -9 \$\$'"'"')")"; } >in
  ends 1 session_run <in
  for n in {1..11}; do ended T-$n FAILED FAILURE E_SCHEMA_VALIDATION; done
  [[ $(response T-1 .error_details.message) == *"checkpoint CP has an operator of the shell at byte 3; no shell runs here"* ]]
  [[ $(response T-11 .error_details.message) == *"expected output 1 has an expansion"* ]]
  # Nothing ran for them.
  [ "$(wc -l <ws/calls.txt)" = 1 ]
  ended T-12 COMPLETED SUCCESS
  [ "$(results T-12)" = "A FAIL,B PASS,C FAIL" ]
  [[ $(result T-12 A '.evidence[0]') == *"ended after 1 s (aop.validation_sec, or the end of the TASK's time)"* ]]
  ! pgrep -f '^sleep 98.7' || false
  [[ $(result T-12 B .validation_output) == 1$'\n'2$'\n'*" bytes]"*299999$'\n'300000 ]]
  [ "$(result T-12 B '.validation_output | length <= 2000')" = true ]
  [[ $(result T-12 C '.evidence[0]') == *"killed by signal 9"* ]]
}

@test "expected_outputs[].validation decides at the end" {
  { task 'echo x >a.txt' '.task.expected_outputs = [{type: "FILE", path: "a.txt", description: "d", validation: {command: "grep x a.txt", expects: "MATCH_FOUND"}}]'
    task 'echo x >a.txt' '.task.expected_outputs = [{type: "FILE", path: "a.txt", description: "d", validation: {command: "grep x a.txt", expects: "MATCH_FOUND"}},
      {type: "FILE", path: "a.txt", description: "d", validation: {command: "grep y a.txt", expects: "MATCH_FOUND"}}]'
    task 'echo x >a.txt' '.task.expected_outputs = [{type: "FILE", path: "a.txt", description: "d", validation: {command: "grep y a.txt", expects: "MATCH_FOUND"}}]'; } >in
  session_run <in
  ended T-1 COMPLETED SUCCESS
  ended T-2 FAILED PARTIAL_SUCCESS E_UNKNOWN
  ended T-3 FAILED FAILURE E_UNKNOWN
  [[ $(response T-3 .error_details.message) == *"1 of 1 validations of expected outputs failed: grep y a.txt → exit 1"* ]]
}

@test "texts of any length and kind, and a workspace that is gone" {
  local long
  long=$(printf 'ä%.0s' {1..400})
  { task "$SAY say '{\"type\":\"progress\",\"detail\":\"$long\",\"phase\":\"${long:0:255}\",\"percent\":5}'; sleep 0.1" "$(phases "$(point "$long" "grep $long" MATCH_FOUND '.recovery_strategy = "RETRY"')") | .phases[0].phase_id = \"$long\""
    task 'sleep 0; rm -r $AMP_WORKSPACE' "$(phases "$(point A true EXIT_CODE_0)") | .task.environment.workspace_root += \"/gone\""
    task 'sleep 0; rm -r $AMP_WORKSPACE' '.task.environment.workspace_root += "/gone2"'
    task good; } >in
  mkdir ws/gone ws/gone2
  session_run <in
  ended T-1 FAILED FAILURE E_UNKNOWN
  [[ $(response T-1 .error_details.message) == *"checkpoint ää"* ]]
  [ "$(jq -c 'select(.event == "PROGRESS_UPDATE") | .progress.current_phase' out.ndjson)" = "\"${long:0:255}\"" ]
  ended T-2 FAILED FAILURE E_FILE_NOT_FOUND
  ended T-3 FAILED FAILURE E_FILE_NOT_FOUND
  ended T-4 COMPLETED SUCCESS
}

@test "the time limit counts for checks, too" {
  { task 'true ""' "$(phases "$(point A 'sleep 0.7' EXIT_CODE_0), $(point B 'sleep 0.7' EXIT_CODE_0), $(point C 'true' EXIT_CODE_0)") | .guard_rails.timeout_seconds = 1"
    task 'echo x >a.txt' '.guard_rails.timeout_seconds = 1 | .task.expected_outputs = [{type: "FILE", path: "a.txt", description: "d", validation: {command: "sleep 1.1", expects: "EXIT_CODE_0"}}]'; } >in
  session_run <in
  ended T-1 FAILED FAILURE E_TIMEOUT
  [[ $(results T-1) == *",C PENDING" ]]
  ended T-2 FAILED FAILURE E_TIMEOUT
}

@test "the agent may ask for a check while it works" {
  task "$SAY ask() { say '{\"type\":\"checkpoint\",\"id\":\"'\$1'\",\"checkpoint\":\"'\$2'\"}'; answered \$1 >>answers; }
    ask 1 C1; echo x >made; ask 2 C1; ask 3 C9
    say '{\"type\":\"heartbeat\",\"id\":\"h\"}'; answered h >>answers" "$(phases "$(point C1 'cat made' MATCH_FOUND)") | .execution_policy.heartbeat = {enabled: true, interval_seconds: 2, max_missed_beats: 1}" >in
  session_run <in
  ended T-1 COMPLETED SUCCESS
  (cd ws && amp-validate -q -S agent/control_answer <answers >/dev/null)
  [ "$(jq -c '[.ok, .status, .code, .result.validation_output]' ws/answers | paste -sd' ')" = \
    '[true,"FAIL",null,"cat: made: No such file or directory"] [true,"PASS",null,"x"] [false,null,"unknown_ref",null] [true,null,null,null]' ]
  [ "$(results T-1)" = "C1 PASS" ]
}

@test "a check has the access of the TASK, and no other" {
  unset AMP_CONFINE
  repo ws
  mkdir ws/out
  local reach='for f in out/v v .git/v ../v; do echo x >$f; done 2>/dev/null; ls "'"$STATE"'" || true'
  echo "$reach" >ws/reach
  task good "$(phases "$(point A 'sh reach' NO_MATCH)") | .task.access.filesystem = {read_paths: [\".\"], write_paths: [\"out\"]}" >in
  session_run --best-effort <in
  grep -q 'level.":."full' "$STATE/error.ndjson" || skip "no namespaces on this machine"
  [ -e ws/out/v ] && [ ! -e ws/v ] && [ ! -e ws/.git/v ] && [ ! -e v ]
  [ "$(results T-1)" = "A PASS" ]
}

@test "a signal ends a check, and the TASK goes on after a restart" {
  printf '#!/bin/bash\n[ -e checked ] || { touch checked; sleep 97.6; }\n' >ws/slow
  chmod +x ws/slow
  task 'echo $AMP_PHASE >>phases.txt; sleep 0' "$(phases "$(point A ./slow EXIT_CODE_0)")" >in
  aop-session run --state "$STATE" --config amp.json <in >out.ndjson 2>err.txt 3>&- &
  local pid=$!
  wait_until 10 test -e ws/checked
  kill -TERM $pid
  ends 130 wait $pid
  ! pgrep -f '^sleep 97.6' || false
  [ ! -s out.ndjson ]
  session_run </dev/null
  ended T-1 COMPLETED SUCCESS
  [ "$(results T-1)" = "A PASS" ]
}
