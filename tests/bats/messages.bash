# Valid messages to start from. `message TYPE [JQ]` prints one on one line, edited by a jq filter.

message() {
  local type=$1 to=executor from=coordinator payload ack='true,"ack_timeout_sec":300'
  case $type in
  task_dispatch)
    payload='{"description":"Rebuild the timer","repo":"/srv/repo","branch":"feature/x",'
    payload+='"subtasks":[{"subtask_id":"T-2026-044-S1","description":"Replace it","estimated_lines":60},'
    payload+='{"subtask_id":"T-2026-044-S2","description":"Handle sleep","estimated_lines":30}],'
    payload+='"acceptance_criteria":["error < 500ms","tests pass"],"risk_level":"medium",'
    payload+='"forbidden_actions":["change permissions"],"tech_constraints":{"swift":"6.0"}}'
    ;;
  task_result)
    from=executor to=coordinator
    payload='{"subtask_id":"T-2026-044-S1","completion_status":"complete",'
    payload+='"diff_summary":{"files_changed":["a.c"],"lines_added":6,"lines_removed":2},'
    payload+='"self_assessment":{"criteria_met":[true,null],"notes":["n"]},"work_log":[{"timestamp":'
    payload+='"2026-02-26T14:28:00Z","action":"edit","file":"a.c","detail":"d"}],"commit_hash":"a3f8d21"}'
    ;;
  review_request)
    to=reviewer
    payload='{"original_dispatch_ref":"task_dispatch-T-2026-044-1","task_result_ref":'
    payload+='"task_result-T-2026-044-2","review_scope":"full","diff_url":'
    payload+='"https://example.org/compare/main...x","reject_count":0,"coordinator_notes":"look at sleep",'
    payload+='"ci_status":{"ci":"passed","lint":"running","last_updated":"2026-02-26T14:30:00Z"}}'
    ;;
  review_verdict)
    from=reviewer to=coordinator
    payload='{"decision":"rejected","criteria_results":[{"criterion":"c1","passed":false,"evidence":"e"},'
    payload+='{"criterion":"c2","passed":null,"evidence":""}],"issues":[{"severity":"critical","file":"a.c",'
    payload+='"line":87,"description":"d","suggested_fix":"f"}],"architecture_notes":"n","confidence":0.95}'
    ;;
  escalation)
    to=admin ack=false
    payload='{"escalation_type":"hallucination_lock","severity":"critical","triggered_by":"coordinator",'
    payload+='"description":"locked","affected_msgs":["task_dispatch-T-2026-044-1"],'
    payload+='"system_state_snapshot":{"task_status":"locked","reject_count":3,"last_successful_msg_id":""},'
    payload+='"suggested_actions":["split it"],"auto_suspended":true}'
    ;;
  ack | nack | decision | ci_status)
    record "$@"
    return
    ;;
  esac
  local line="{\"msg_id\":\"$type-T-2026-044-1772116327001\",\"protocol_version\":\"AMP/1.0\",\"type\":\"$type\","
  line+="\"from\":\"$from\",\"to\":\"$to\",\"task_id\":\"T-2026-044\",\"timestamp\":\"2026-02-26T14:32:07+00:00\","
  edited "$line\"requires_ack\":$ack,\"payload\":$payload}" "${2-}"
}

# edited LINE [JQ]: the line as the filter makes it. jq takes 20 ms to start, and there are thousands of messages:
# `.KEY = "TEXT"` or a number of an envelope, in a row, and no filter at all, do without.
edited() {
  local line=$1 rest=${2:-.} key value before after
  local set='^\.([A-Za-z_]+) = ("[A-Za-z0-9:._/+-]*"|[1-9][0-9]*|true|false)( \| (.*))?$'
  local old='^("[^"\\]*"|[0-9]+|true|false)([,}].*)$'
  while [[ $rest =~ $set ]]; do
    key=${BASH_REMATCH[1]} value=${BASH_REMATCH[2]} after=${BASH_REMATCH[4]:-.}
    if [[ $line != *"\"$key\":"* ]]; then
      line="${line%\}},\"$key\":$value}" rest=$after
      continue
    fi
    before=${line%%"\"$key\":"*}
    [[ $before != *'"payload":'* && ${line#"$before\"$key\":"} =~ $old ]] || break
    line="$before\"$key\":$value${BASH_REMATCH[2]}" rest=$after
  done
  if [ "$rest" = . ]; then
    printf '%s\n' "$line"
  else
    jq -c "$rest" <<<"$line"
  fi
}

# Control records.
record() {
  local body
  case $1 in
  ack) body='"ref_msg_id":"task_dispatch-T-2026-044-1","from":"executor","ack_stage":"READ"' ;;
  nack)
    body='"ref_msg_id":"task_dispatch-T-2026-044-1","from":"executor","failed_stage":"READ",'
    body+='"code":"branch_violation","message":"m","rule":"branch","retryable":false'
    ;;
  decision) body='"ref_msg_id":"escalation-T-2026-044-1","decision":"resume","operator":"ann"' ;;
  ci_status) body='"branch":"feature/x","commit":"a3f8d21","checks":{"ci":"passed"}' ;;
  esac
  edited "{\"protocol_version\":\"AMP/1.0\",\"type\":\"$1\",\"task_id\":\"T-2026-044\",\"timestamp\":\"2026-02-26T14:32:07Z\",$body}" "${2-}"
}

# accepted TYPE JQ: passes byte for byte, without a word.
accepted() {
  local line
  line=$(message "$1" "${2:-.}")
  run --separate-stderr amp-validate "${@:3}" <<<"$line"
  [ "$status" -eq 0 ] && [ "$output" = "$line" ] && [ -z "$stderr" ] || {
    echo "not accepted: $1 $2: status $status: $stderr" >&2
    return 1
  }
}

# report MEMBER...: these of the first record in $stderr.
report() {
  local m found=()
  for m; do
    [[ ${stderr%%$'\n'*} =~ \"$m\":\"([^\"]*)\" ]] || BASH_REMATCH[1]=null
    found+=("${BASH_REMATCH[1]}")
  done
  echo "${found[*]}"
}

# warned TYPE JQ CODE: passes, with one warning.
warned() {
  local line
  line=$(message "$1" "$2")
  run --separate-stderr amp-validate -e - <<<"$line"
  [ "$status" -eq 0 ] && [ "$output" = "$line" ] && [ "$(report severity code)" = "warning $3" ] &&
    [[ $stderr != *$'\n'* ]] || {
    echo "not warned: $1 $2: status $status: $stderr" >&2
    return 1
  }
}

# refused TYPE JQ CODE FIELD [OPTION...]: nothing passes; the first record has code and field.
refused() {
  local line got
  line=$(message "$1" "$2")
  run --separate-stderr amp-validate -e - "${@:5}" <<<"$line"
  got=$(report severity code field)
  [ "$status" -eq 1 ] && [ -z "$output" ] && [ "$got" = "error $3 $4" ] || {
    echo "not refused: $1 $2: status $status: $got: $stderr" >&2
    return 1
  }
}

# sw4rm ID PRODUCER TYPE PAYLOAD MEMBERS [JQ]: a message of SW4RM with more members ("" or ",…"); the length is made
# to fit after the filter.
sw4rm() {
  local line="{\"message_id\":\"$1\",\"producer_id\":\"$2\",\"correlation_id\":\"7f3f41a2-2017-4b8f-9b8b-2ad3caaee001\","
  line+="\"sequence_number\":1,\"retry_count\":0,\"message_type\":\"$3\",\"content_type\":\"application/json\","
  line+="\"payload\":$4,\"content_length\":${#4}$5}"
  if [ $# -eq 5 ]; then
    printf '%s\n' "$line"
  else
    jq -c "$6 | .content_length = (.payload | tojson | length)" <<<"$line"
  fi
}
