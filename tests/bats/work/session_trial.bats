#!/usr/bin/env bats
# A session of many TASKs over three providers (tests/session/make.sh): its final report adds up, as tests/session/check.sh
# computes it from the lines and the audit trail. SESSION_TASKS: how many, by default 20, of each kind one.
# long
# plain

STORAGE=_skills/agent-orchestration-protocol_d/v2/audit_trails/

setup_file() {
  load ../lib
  need jq
  need_tool task-dispatch
  cd "$BATS_FILE_TMPDIR" || return
  "$AMP_TOP/tests/session/make.sh" "${SESSION_TASKS:-20}" "$PWD" >tasks
  ends 1 aop-session run -s state -c amp.json <tasks >lines 2>errors
  aop-session report TRIAL -s state >report
  cp "ws/$STORAGE/TRIAL.ndjson" trail
}

setup() {
  load ../lib
  need jq
  cd "$BATS_FILE_TMPDIR" || return
}

@test "the final report of a session of many TASKs adds up" {
  "$AMP_TOP/tests/session/check.sh" tasks lines trail report "$STORAGE"
  amp-validate lines | cmp - lines
  amp-validate report | cmp - report
  amp-validate -S "$AMP_TOP/schemas/records/audit.json" trail | cmp - trail
  [ "$(jq -r 'select(.message_type == "RESPONSE") | [.task_status.state, .error_details.error_code] | map(values) | join(" ")' lines |
    sort -u | paste -sd,)" = "ABORTED E_PROCESS_CRASH,ABORTED E_UNKNOWN,COMPLETED,FAILED E_ALL_MODELS_EXHAUSTED,FAILED E_COST_LIMIT_EXCEEDED,FAILED E_MAX_DEPTH_EXCEEDED,FAILED E_UNKNOWN,SKIPPED E_DEPENDENCY_FAILED" ]
}

@test "continued by another process after kill -9, it adds up as well" {
  mkdir killed_run
  cd killed_run || return
  "$AMP_TOP/tests/session/make.sh" 20 "$PWD" >tasks
  # One process carries out a part, and is killed in the middle: it waits for the other half of its TASKs.
  mkfifo input
  aop-session run -s state -c amp.json <input >killed 2>errors 3>&- &
  run=$!
  exec {feed}>input
  head -n 10 tasks >&"$feed"
  wait_until 15 has_lines killed 6
  kill -9 $run
  ends 137 wait $run
  exec {feed}>&-
  # 1: among the TASKs that were left was one that is refused. Before the kill all ten may have been done.
  rc=0
  aop-session run -s state -c amp.json <tasks >rest 2>>errors || rc=$?
  [ "$rc" -le 1 ]
  # A line that was written and not yet recorded as written is written again. Of a long line the kill may leave the beginning.
  { head -n "$(wc -l <killed)" killed && cat rest; } | awk '!seen[$0]++' >lines
  aop-session report TRIAL -s state >report
  "$AMP_TOP/tests/session/check.sh" tasks lines "ws/$STORAGE/TRIAL.ndjson" report "$STORAGE"
}

@test "in the pool of a queue it adds up as well" {
  mkdir pool
  cd pool || return
  "$AMP_TOP/tests/session/make.sh" 20 "$PWD" >tasks
  task-queue submit -s state -c amp.json <tasks >submitted
  task-queue work -s state -c amp.json --type Emma=1 --type Bob=2 --type Ann=1 --drain -x true >lines 2>errors
  aop-session report TRIAL -s state >report
  "$AMP_TOP/tests/session/check.sh" tasks lines "ws/$STORAGE/TRIAL.ndjson" report "$STORAGE"
}

# breaks RULE FILE JQ: with this change of a file, the script reports this rule.
breaks() {
  local files=(tasks lines trail report) i
  jq -c "$3" "$2" >changed
  for i in 0 1 2 3; do [ "${files[i]}" != "$2" ] || files[i]=changed; done
  ends 1 "$AMP_TOP/tests/session/check.sh" "${files[@]}" "$STORAGE" 2>said
  [[ $(<said) == *"$1: "* ]] || {
    echo "$1: reported instead: $(<said)" >&2
    return 1
  }
  rules+=$1$'\n'
}

@test "each rule of the check fails for what it is about" {
  rules=
  breaks one-response lines 'select(.message_type != "RESPONSE" or .task_id != "0.ok")'
  breaks tasks report 'del(.tasks[3])'
  breaks status report '.tasks[9].error_code = "E_TIMEOUT"'
  breaks total-cost report '.cost_summary.total_cost_usd += 0.000001'
  breaks total-tokens report '.cost_summary.total_tokens_output += 1'
  breaks by-task report '.cost_summary.by_task[2].actual_cost_usd += 0.000001'
  breaks by-agent report '.cost_summary.by_agent[1].tokens_input -= 1'
  breaks runs report '.tasks[3].runs[1].actual_cost_usd += 0.000001'
  breaks models report '.tasks[3].runs[1].provider = "OTHER"'
  breaks by-model report '.cost_summary.by_model[0].runs += 1'
  breaks by-provider report '.cost_summary.by_provider[0].actual_cost_usd += 0.000001'
  breaks nodes report '.delegation_graph.nodes[13].depth = 1'
  breaks edges report 'del(.delegation_graph.edges[0])'
  breaks depth report '.delegation_graph.depth = 2'
  breaks branches lines 'if .task_id == "0.below" then .task_status.state = "COMPLETED" else . end'
  breaks events report '.events |= .[1:]'
  breaks counts report '.extensions.x_states.COMPLETED += 1'
  breaks errors report '.extensions.x_errors[0].tasks += 1'
  breaks storage report '.audit_trail.storage_path = "elsewhere/"'
  breaks sequence trail 'if .record_type == "SESSION_SUMMARY" then .audit_sequence = 1 else . end'
  breaks dispatched trail 'select(.record_type != "TASK_DISPATCHED" or .task_id != "0.ok")'
  breaks received trail 'if .record_type == "RESPONSE_RECEIVED" and .task_id == "0.ok" then ., . else . end'
  breaks fallbacks trail 'if .payload.fallback_triggered? then .payload.fallback_reason = "E_TIMEOUT" else . end'
  breaks budgets trail 'if .payload.check_type? == "BUDGET" then .payload.result = "PASS" else . end'
  breaks summary trail 'if .record_type == "SESSION_SUMMARY" then .payload.total_cost_usd += 0.000001 else . end'
  # None is left out.
  diff <(grep -oE 'rule\("[a-z-]+"' "$AMP_TOP/tests/session/check.sh" | cut -d'"' -f2 | sort) <(sort <<<"${rules%?}")
}
