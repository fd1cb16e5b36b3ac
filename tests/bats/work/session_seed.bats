# The examples of AOP's text as they stand, carried out: no member is changed; and the session in the README.
# walls
load ../lib
load ../aop

setup() {
  need jq
  need git
  need_tool task-dispatch
  cd "$BATS_TEST_TMPDIR" || return 1
  export AMP_STATE=$PWD/state
  # The commands of the full envelope's validations; the machine need not have them.
  mkdir bin project
  printf '#!/bin/sh\n[ "$1 $2" = "-m py_compile" ] && grep -q "^class\\|^import" "$3"\n' >bin/python
  printf '#!/bin/sh\ngrep -q "^def test_" "$1"\n' >bin/pytest
  chmod +x bin/*
  PATH=$PWD/bin:$PATH
  jq -n --arg dir "$PWD/project" '{aop: {workspaces: {"C:/ai/my-project": $dir, "C:/workspace/project-x": $dir}}}' >amp.json
}

run_seed() { aop-session run -q -c amp.json "$@"; }

@test "the minimal envelope is carried out in the directory that its C:/ path is mapped to" {
  echo '# Readme' >project/README.md
  agent reads <<'END'
[ "$PWD" = "$AMP_WORKSPACE" ] && [ "$AMP_PROVIDER $AMP_MODEL" = "CODEX gpt-5.3-codex" ] || exit 3
answer "{\"task_status\":{\"final_signal\":\"SUCCESS\"},\"execution_summary\":{\"summary\":\"$(cat README.md)\",\"actions\":[\"Read README.md\"]}}"
END
  base minimal >in
  ends 0 run_seed -x "$PWD/reads" <in >out
  amp-validate -e faults out | cmp - out
  jq -se '.[-1] | .message_type == "RESPONSE" and .session_id == "AOP-SESSION-2026-02-26-001" and .task_id == "TASK-001" and
    .agent == {name: "Emma", provider: "CODEX", model: "gpt-5.3-codex"} and .task_status.state == "COMPLETED" and
    .task_status.final_signal == "SUCCESS" and .execution_summary.summary == "# Readme" and .error_details == null' out
  # Once: a repetition is not carried out again.
  ends 0 run_seed -x "$PWD/reads" <in >again
  [ ! -s again ] || jq -se 'map(select(.message_type == "RESPONSE")) | length == 0' again
}

@test "the full envelope: branch, snapshot, phases, checkpoints, artifacts, budget and events" {
  (
    cd project
    git init -q -b main .
    mkdir -p src tests
    printf 'import config\nx = config.get("a")\n' >src/module_x.py
    git add -A
    git commit -qm start
  )
  agent refactors <<'END'
echo "$AMP_PHASE $AMP_MODEL $AMP_PROFILE $AMP_SHELL" >>"$TMPDIR/../runs" 2>/dev/null || true
case $AMP_PHASE in
PHASE-ANALYSIS)
  control '{"type":"progress","percent":45,"detail":"Identified 1 use of global configuration.","phase":"PHASE-ANALYSIS"}'
  answer '{"execution_summary":{"summary":"analysed","actions":["Read src/module_x.py"]},"task_status":{"final_signal":"SUCCESS"}}'
  ;;
PHASE-IMPLEMENTATION)
  printf 'class ConfigProvider: pass\n' >src/module_x.py
  mkdir -p tests
  printf 'def test_x(): pass\n' >tests/test_module_x.py
  control '{"type":"usage","input_tokens":12000,"output_tokens":3000,"cost_usd":0.18}'
  answer '{"execution_summary":{"summary":"Refactored module_x.py","actions":["Wrote src/module_x.py"]},"task_status":{"final_signal":"SUCCESS"}}'
  ;;
esac
END
  base task >in
  ends 0 run_seed -x "$PWD/refactors" <in >out
  amp-validate -e faults out | cmp - out
  jq -se 'map(select(.message_type == "RESPONSE")) | length == 1 and (.[0] |
    .task_status.state == "COMPLETED" and .task_status.final_signal == "SUCCESS" and .error_details == null and
    ([.checkpoint_results[] | "\(.checkpoint_id) \(.status)"] == ["CP-ANA-001 PASS", "CP-IMPL-001 PASS"]) and
    ([.execution_summary.output_artifacts[] | "\(.path) \(.status)"] | sort) ==
      ["C:/workspace/project-x/src/module_x.py UPDATED", "C:/workspace/project-x/tests/test_module_x.py CREATED"] and
    (.execution_summary.output_artifacts | all(.hash | test("^sha256:[0-9a-f]{64}$"))) and
    .cost_tracking.tokens_input == 12000 and .cost_tracking.tokens_output == 3000 and .cost_tracking.actual_cost_usd == 0.18)' out
  # The work is on the branch; the checked-out one is as it was.
  [ "$(git -C project show feature/new-refactor:src/module_x.py)" = "class ConfigProvider: pass" ]
  [ "$(git -C project symbolic-ref --short HEAD)" = main ]
  grep -q config.get project/src/module_x.py
  # Events name the phase and the checkpoint.
  jq -se 'map(select(.event == "PROGRESS_UPDATE")) | length > 0 and all(.agent == "Emma" and .task_id == "TASK-001")' out
}

@test "the full envelope, aborted at a checkpoint: its snapshot is restored, and ROLLBACK_INITIATED says so" {
  (
    cd project
    git init -q -b feature/new-refactor .
    mkdir -p src tests
    printf 'import config\nx = config.get("a")\n' >src/module_x.py
    git add -A
    git commit -qm start
  )
  cp project/src/module_x.py before
  agent breaks <<'END'
[ "$AMP_PHASE" = PHASE-ANALYSIS ] || printf 'no python\n' >src/module_x.py
answer
END
  base task >in
  ends 0 run_seed -x "$PWD/breaks" <in >out
  amp-validate -e faults out | cmp - out
  cmp before project/src/module_x.py
  jq -se 'map(select(.message_type == "RESPONSE"))[0] | .task_status.state == "ABORTED" and .task_status.final_signal == "ABORTED" and
    any(.checkpoint_results[]; .checkpoint_id == "CP-IMPL-001" and .status == "FAIL")' out
  jq -se 'map(select(.event == "ROLLBACK_INITIATED")) | length == 1 and (.[0] | .trigger == "TASK_ABORTED" and
    .artifacts_rolled_back == [{path: "C:/workspace/project-x/src/module_x.py",
      restored_from: "C:/workspace/project-x/.aop_snapshots/module_x.py.before", status: "SUCCESS"}])' out
}

@test "the RESPONSE and the EVENTs of the text are taken by the tools" {
  for m in heartbeat progress rollback priority response; do base $m; done >events
  amp-validate -e faults events | cmp - events
  base minimal | amp-ack track >/dev/null
  for m in heartbeat progress priority rollback; do base $m; done >in
  amp-ack track <in | cmp - in
  [ "$(amp-ack status --all --json | jq -r .state)" = READ ]
  base response | amp-ack track | cmp - <(base response)
  [ "$(amp-ack status --all --json | jq -r .state)" = FULFILLED ]
  amp-route -r '* => file:routed' --state route <events >/dev/null
  cmp events routed
}

@test "the session in the README runs as it is printed" {
  local line got= want=
  cd "$BATS_TEST_TMPDIR"
  git init -q -b main project
  mkdir project/src
  echo 'timeout = 30' >project/src/settings.py
  git -C project add .
  git -C project commit -qm first
  cat >agent.sh <<'E'
#!/bin/sh
echo "$1" >>src/settings.py
echo '{"type":"usage","input_tokens":1200,"output_tokens":300,"cost_usd":0.02}' >"$AMP_CONTROL"
[ "$1" != small ] || kill -9 $$
echo '{"completion_status":"complete","execution_summary":{"summary":"s","actions":["a"]}}' >"$AMP_RESULT"
E
  chmod +x agent.sh
  jq -nc '{aop_version: "2.0.2-C", schema_version: "2.0.2", protocol_family: "AOP", message_type: "TASK",
    session: {session_id: "release-7", created_at: "2026-11-23T14:00:00Z", orchestrator: "ci", origin: "CLI"},
    target: {agent_name: "ada", role: "EXECUTOR", provider: "LOCAL", model: "small"},
    task: {task_id: "settings", objective: "o", category: "CODE_REFACTORING", complexity: "LOW",
      environment: {workspace_root: "/srv/project"},
      expected_outputs: [{type: "FILE", path: "src/settings.py", description: "d", rollback_snapshot: {enabled: true}}]},
    execution_policy: {alternative_models: [{provider: "LOCAL", model: "large", fallback_trigger: "CRITICAL_ERROR"}]}}' >task.json
  sed -n '/^## Sessions of AOP/,/^## /{/^```$/,/^```$/{/^```$/!p}}' "$AMP_TOP/README.md" |
    sed "s|/srv/agent.sh|$PWD/agent.sh|; s|/srv/ada/project|$PWD/project|" >session
  sed -n '/^{"providers/,/}$/p' session | sed '/^\$/,$d' >amp.json
  export AMP_STATE=$PWD/state
  while IFS= read -r line; do
    if [[ $line == '$ '* ]]; then
      got+=$line$'\n'$(eval "${line#$ }" 2>&1)$'\n'
    fi
  done <session
  # Only the time may differ, and notes on how tests run.
  diff <(sed 's/ [0-9]*s$/ 0s/' session) <(sed 's/ [0-9]*s$/ 0s/; /identities are off/d; /not confined/d; /^$/d' <<<"$got")
}
