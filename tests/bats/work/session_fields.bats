# Fields of a TASK of AOP (schemas/aop/task.json) that reach the agent, or that only the executor acts on.
load ../lib
load ../aop

setup() {
  need jq
  need_tool task-dispatch
  cd "$BATS_TEST_TMPDIR" || return 1
}

@test "the agent gets the TASK with the paths of this machine, and its variables" {
  echo text >in.txt
  agent looks <<'END'
cp "$AMP_MESSAGE" "$AMP_WORKSPACE/message.json"
env | grep -E '^AMP_(CATEGORY|COMPLEXITY|PROVIDER|MODEL|PROFILE|PHASE|ROLE|SHELL|TAGS|WORKSPACE|TASK_ID)=' >"$AMP_WORKSPACE/env.$AMP_PHASE"
answer
END
  base task "
    .session |= (.session_id = \"S\" | .workflow_pattern = \"PARALLEL\") | del(.task.environment.git_branch) |
    .task.environment.workspace_root = \"C:/w\" | .target.execution_profile = \"thorough\" |
    .task.inputs = [{type: \"FILE\", path: \"C:/w/in.txt\"}, {type: \"TEXT\", content: \"the text itself\"}] |
    .task.expected_outputs = [{type: \"TEXT\", description: \"an answer\"}] |
    .task.access.filesystem = {read_paths: [\"C:/w\"], write_paths: [\"C:/w\"]} |
    .phases |= (map(.checkpoints |= map({checkpoint_id, description})) | reverse)" >in
  echo "{\"aop\":{\"workspaces\":{\"C:/w\":\"$PWD\"}}}" >amp.json
  ends 0 run_tasks "$PWD/looks" -c amp.json <in >out
  [ "$(ended out TASK-001)" = "COMPLETED SUCCESS -" ]
  # Nothing of the TASK is missing, and nothing else is changed.
  jq -S --arg here "$PWD" '(.. | strings | select(startswith("C:/w"))) |= ($here + .[4:])' in >want
  jq -S . message.json | diff want -
  sort env.PHASE-IMPLEMENTATION | diff - <(printf '%s\n' AMP_CATEGORY=CODE_REFACTORING AMP_COMPLEXITY=MEDIUM AMP_MODEL=gpt-5.3-codex AMP_PHASE=PHASE-IMPLEMENTATION \
    AMP_PROFILE=thorough AMP_PROVIDER=CODEX AMP_ROLE=executor AMP_SHELL=powershell AMP_TAGS=AOP_V2,REFACTORING,CONTRACT AMP_TASK_ID=TASK-001 "AMP_WORKSPACE=$PWD")
  grep -qx AMP_PHASE=PHASE-ANALYSIS env.PHASE-ANALYSIS
  # Another system than this one is a warning.
  jq -se '.[-1].execution_summary.warnings | any(contains("win32"))' out
}

@test "an agent that reads no version 2 gets the prompt of version 1" {
  agent looks <<'END'
cp "$AMP_MESSAGE" "$AMP_WORKSPACE/message.$AMP_TASK_ID"
answer
END
  {
    task T1 '.target.capabilities.aop_versions_supported = ["1.x"]'
    task T2 '.target.capabilities.aop_versions_supported = ["1.x", "2.0.0"]'
    task T3 '.target.capabilities = {}'
  } >in
  ends 0 run_tasks "$PWD/looks" <in >out
  [ "$(head -n 1 message.T1)" = "# Task: T1" ]
  grep -qF 'Read and summarize the README.md file.' message.T1
  for t in T2 T3; do jq -e --arg t $t '.task.task_id == $t and .aop_version == "2.0.2-C"' message.$t; done
}

@test "TASKs begin in the order of their arrival, whatever their names are" {
  agent notes <<'END'
echo "$AMP_TASK_ID" >>"$AMP_WORKSPACE/order"
answer
END
  # A child before its parent by name, after it in the input.
  { task Z '.task.constraints.delegation_allowed = true'; task A '.task.parent_task_id = "Z"'; } >in
  for i in {9..1}; do task "T$i"; done >>in
  ends 0 run_tasks "$PWD/notes" <in >out
  [ "$(paste -sd, order)" = Z,A,T9,T8,T7,T6,T5,T4,T3,T2,T1 ]
  [ "$(ended out A)" = "COMPLETED SUCCESS -" ]
}

@test "what may not be written is found: read_only_mode, an agent without files, a read-only input" {
  mkdir ws
  echo kept >ws/in
  agent writes <<<'echo more >>"$AMP_WORKSPACE/in"; answer'
  here='.task.environment.workspace_root += "/ws"'
  {
    task T1 "$here | .task.constraints.read_only_mode = true"
    task T2 "$here | .target.capabilities.file_system_access = false"
    task T3 "$here | .task.inputs = [{type: \"FILE\", path: \"in\"}]"
    task T4 "$here | .task.inputs = [{type: \"FILE\", path: \"in\", read_only: false}]"
  } >in
  ends 0 run_tasks "$PWD/writes" <in >out
  for t in T1 T2 T3; do [ "$(ended out $t)" = "FAILED FAILURE E_PERMISSION_DENIED" ]; done
  [ "$(ended out T4)" = "COMPLETED SUCCESS -" ]
}

@test "expected outputs must be there at the end" {
  mkdir ws
  agent makes <<<'[ "$AMP_TASK_ID" = T2 ] || echo x >"$AMP_WORKSPACE/made"; answer'
  for t in T1 T2; do
    rm -f ws/made
    task $t '.task.environment.workspace_root += "/ws" | .task.expected_outputs = [{type: "FILE", path: "made", description: "d"}]' >in
    ends 0 run_tasks "$PWD/makes" <in >>out
  done
  [ "$(ended out T1)" = "COMPLETED SUCCESS -" ]
  jq -se --arg h "sha256:$(echo x | sha256sum | cut -d' ' -f1)" '.[0].execution_summary.output_artifacts |
    length == 1 and (.[0] | .status == "CREATED" and .hash == $h and .size_bytes == 2)' out
  [ "$(ended out T2)" = "FAILED FAILURE E_UNKNOWN" ]
}

@test "snapshots: of outputs and of artifacts of checkpoints, by each strategy, and only if enabled" {
  need git
  git init -q -b main ws
  (cd ws && echo before >file && git add file && git commit -qm start)
  agent breaks <<<'echo after >"$AMP_WORKSPACE/file"; exit 3'
  shot() { echo "rollback_snapshot: {enabled: $1, snapshot_path: \"snaps/$2\", snapshot_strategy: \"$2\"}"; }
  here='.task.environment.workspace_root += "/ws"'
  while read -r id enabled strategy left; do
    echo before >ws/file
    task "$id" "$here | .task.expected_outputs = [{type: \"FILE\", path: \"file\", description: \"d\", $(shot $enabled $strategy)}]" >in
    ends 0 run_tasks "$PWD/breaks" <in >>out
    [ "$(ended out "$id")" = "FAILED FAILURE E_PROCESS_CRASH" ]
    [ "$(cat ws/file)" = "$left" ]
  done <<'END'
T1 true COPY before
T2 true DIFF before
T3 true GIT_STASH before
T4 false COPY after
END
  echo before >ws/file
  task T5 "$here | .phases = [{phase_id: \"P\", phase_order: 1, label: \"l\", objective: \"o\", checkpoints: [{checkpoint_id: \"C\",
    description: \"d\", expected_artifacts: [{type: \"FILE\", path: \"file\", $(shot true COPY)}]}]}]" >in
  ends 0 run_tasks "$PWD/breaks" <in >>out
  [ "$(cat ws/file)" = before ]
  jq -se 'map(select(.event == "ROLLBACK_INITIATED") | .task_id) == ["T1", "T2", "T3", "T5"]' out
  amp-validate -e faults out | cmp - out
}

@test "a person rolls a TASK back after its end; the executor alone does not" {
  mkdir ws
  echo before >ws/file
  agent changes <<<'echo after >"$AMP_WORKSPACE/file"; echo new >"$AMP_WORKSPACE/more"; answer'
  task T1 '.task.environment.workspace_root += "/ws" | .task.expected_outputs = [
    {type: "FILE", path: "file", description: "d", rollback_snapshot: {enabled: true}},
    {type: "FILE", path: "more", description: "d", rollback_snapshot: {enabled: true}}]' >in
  ends 0 run_tasks "$PWD/changes" <in >out
  [ "$(ended out T1)" = "COMPLETED SUCCESS -" ]
  [ "$(cat ws/file ws/more | paste -sd,)" = after,new ]
  run -0 --separate-stderr aop-session rollback --state state S T1
  jq -e --arg here "$PWD/ws" '.event == "ROLLBACK_INITIATED" and .trigger == "USER" and (.artifacts_rolled_back | map(.status) ==
    ["SUCCESS", "SUCCESS"])' <<<"$output"
  amp-validate <<<"$output" | cmp - <(echo "$output")
  [ "$(cat ws/file)" = before ]
  [ ! -e ws/more ]
}
