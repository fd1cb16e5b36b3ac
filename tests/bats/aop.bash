# TASKs of AOP from the examples of its text, agents as scripts, and the executor. Loaded after lib.bash.

SEED=$AMP_TOP/tests/fixture/protocols/aop.jsonl

# base NAME [JQ]: an example of the contract (minimal, task, response, …), edited.
base() { jq -c --arg name "$1" "select(.base == \$name) | .line | ${2:-.}" "$SEED"; }

# task ID [JQ]: a TASK of session S for Emma, in the current directory, edited.
task() {
  base minimal ".session.session_id = \"S\" | .task.task_id = \"$1\" |
    .task.environment.workspace_root = \"$PWD\" | ${2:-.}"
}

# agent NAME: an executable of this name with the script on standard input; `answer` in it leaves members of a RESPONSE.
agent() {
  {
    cat <<'END'
#!/bin/sh
answer() { printf '%s\n' "${1-{\"task_status\":{\"final_signal\":\"SUCCESS\"\},\"execution_summary\":{\"summary\":\"done\",\"actions\":[\"worked\"]\}\}}" >"$AMP_RESULT"; }
control() { printf '%s\n' "$1" >"$AMP_CONTROL"; }
END
    cat
  } >"$1"
  chmod +x "$1"
}

# run_tasks AGENT [OPTION...]: the TASKs on standard input, by the executor.
run_tasks() { aop-session run --state "${AMP_STATE:-state}" -q "${@:2}" ${1:+-x "$1"}; }

# ended FILE ID: "STATE SIGNAL CODE" of the RESPONSE to a TASK.
ended() {
  jq -r --arg id "$2" 'select(.message_type == "RESPONSE" and .task_id == $id) |
    "\(.task_status.state) \(.task_status.final_signal) \(.error_details.error_code // "-")"' "$1"
}
