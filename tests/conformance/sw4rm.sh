# shellcheck shell=bash disable=SC2154
# Sample cases of SW4RM: see protocols.sh. The input is a message, a payload (which then gets an
# envelope), a list of votes (a message each), or the nodes of a workflow with their dependencies.

# The lines that amp-validate is to judge; nothing where the input is no message.
sw4rm_lines() {
  jq -c 'def envelope($type): {message_id: "5a1d9c8e-6b3f-4a87-8f5e-91a2c0ab1234",
      producer_id: "cli", correlation_id: "7f3f41a2-2017-4b8f-9b8b-2ad3caaee001",
      sequence_number: 1, retry_count: 0, message_type: $type,
      content_type: "application/json", content_length: (tojson | utf8bytelength), payload: .};
    .input
    | if type == "array" and length > 0 and all(type == "object" and has("score")) then
        .[] | envelope("NEGOTIATION")
      elif type != "object" then empty
      elif has("message_id") or has("message_type") or (has("to") and has("msg")) then .
      elif has("nodes") then
        if (.nodes | type) == "object" and (.nodes | all(type == "array")) then
          .nodes |= with_entries(.key as $k | .value |=
            {node_id: $k, agent_id: "a", dependencies: .})
        else . end
        | {workflow_id: "7f3f41a2-2017-4b8f-9b8b-2ad3caaee001"} + . | envelope("DATA")
      elif has("ack_stage") or has("ack_for_message_id") then envelope("ACKNOWLEDGEMENT")
      elif has("max_rounds") then {policy: .} | envelope("CONTROL")
      elif has("network_policy") or has("privilege_level") or has("budget_cpu_ms") or
          has("budget_wall_ms") then
        {call_id: "c", tool_name: "t", provider_id: "p", args: {}, execution_policy: .,
          content_type: "application/json"} | envelope("TOOL_CALL")
      elif (has("topic") or has("participants")) and (has("kind") | not) then
        {negotiation_id: "7f3f41a2-2017-4b8f-9b8b-2ad3caaee001"} + . | envelope("NEGOTIATION")
      elif has("reason_type") then envelope("HITL_INVOCATION")
      elif has("decision") or has("action") then envelope("HITL_DECISION")
      elif has("operation") then envelope("WORKTREE_CONTROL")
      elif has("tool_name") and (has("input_schema") | not) then envelope("TOOL_CALL")
      elif has("call_id") and has("error_code") then envelope("TOOL_ERROR")
      elif has("call_id") then envelope("TOOL_RESULT")
      elif has("kind") or has("negotiation_id") or has("artifact_id") or has("score") then
        envelope("NEGOTIATION")
      elif has("priority") or has("params") then envelope("CONTROL")
      else envelope("DATA") end' <<<"$case"
}

# sw4rm_nack [OPTION...]: after check_line: a refusal as the protocol's own message says the same.
sw4rm_nack() {
  given .expect.nack || return 0
  amp-validate --options | cut -f 3 | grep -qx nack || return 0
  amp-validate "$@" --nack -e /dev/null "$dir/in" 2>/dev/null | jq -es --argjson case "$case" '
    .[0].message_type == "ACKNOWLEDGEMENT" and .[0].payload.ack_stage == "REJECTED" and
    .[0].payload.error_code == ($case.expect.code | ascii_upcase) and
    .[0].payload.ack_for_message_id == ($case.input.message_id // .[0].payload.ack_for_message_id) and
    .[0].correlation_id == ($case.input.correlation_id // .[0].correlation_id)' >/dev/null
}

# The token of an operation, from its canonical bytes in hexadecimal digits.
sw4rm_token() {
  local hex got
  local -a parts
  have amp-ack || {
    skip "amp-ack is not built"
    return
  }
  hex=$(jq -r .input.canonical_hex <<<"$case")
  readarray -t -d '' parts < <(jq -j '.input | .producer_id, "\u0000", .operation, "\u0000"' <<<"$case")
  got=$(fold -w 2 <<<"$hex" | sed '/./s/^/\\x/' | tr -d '\n' | xargs -0 printf %b | amp-ack token "${parts[@]}" 2>"$dir/err")
  if ! given .expect.token; then
    if [ -z "$got" ]; then pass; else fail "not refused: $got"; fi
  elif [ "$got" = "$(want token)" ]; then
    pass
  else
    fail "got \"$got\": $(cat "$dir/err")"
  fi
}

# A message whose token is known: the first attempt is brought into the given state, then the case's
# message comes.
sw4rm_known_token() {
  local state=$dir/state state_given now=1772116327 age first ack kind code
  have amp-ack || {
    skip "amp-ack is not built"
    return
  }
  at() { jq -nr "$1 | todate"; }
  age=$(jq -r '.given.age_s // 1' <<<"$case")
  first=$(jq -c '.input | .message_id = "11111111-1111-4111-8111-111111111111"' <<<"$case")
  amp-ack --state "$state" --now "$(at $now)" <<<"$first" >/dev/null 2>"$dir/err"
  state_given=$(jq -r '.given.token_state' <<<"$case")
  case $state_given in
  TIMED_OUT) amp-ack sweep --silence 0 --state "$state" --now "$(at $((now + 11)))" >/dev/null 2>>"$dir/err" && now=$((now + 11)) ;;
  esac
  for kind in RECEIVED READ $state_given; do
    case $kind/$state_given in
    "${ack:-}"/* | SENT/* | TIMED_OUT/* | */SENT | */TIMED_OUT | READ/RECEIVED) continue ;;
    esac
    ack=$kind
    jq -c --arg s "$kind" '{message_id: "22222222-2222-4222-8222-222222222222", producer_id: "bob",
      correlation_id, sequence_number: 1, retry_count: 0, message_type: "ACKNOWLEDGEMENT",
      content_type: "application/json", payload: {ack_for_message_id: .message_id, ack_stage: $s}}
      | if $s == "FAILED" or $s == "REJECTED" then .payload.error_code = "INTERNAL_ERROR" else . end
      | .content_length = (.payload | tojson | length)' <<<"$first" |
      amp-ack --state "$state" --now "$(at $now)" >/dev/null 2>>"$dir/err"
  done
  jq -c .input <<<"$case" >"$dir/in"
  amp-ack --state "$state" --now "$(at $((now + age)))" <"$dir/in" >"$dir/out" 2>>"$dir/err"
  code=$(want code)
  if [ -z "$code" ]; then
    if cmp -s "$dir/in" "$dir/out"; then pass; else fail "answered: $(cat "$dir/out" "$dir/err")"; fi
  elif jq -es --argjson case "$case" '.[0].msg as $m | length == 1 and .[0].to == $case.input.producer_id and
      $m.correlation_id == $case.input.correlation_id and
      ([$m.payload.status, $m.payload.error_code] | index($case.expect.code)) != null and
      all($case.expect.fields // [] | .[]; . as $f | $m.payload | has($f))' "$dir/out" >/dev/null &&
    amp-validate "$dir/out" >/dev/null 2>>"$dir/err"; then
    pass
  else
    fail "got $(cat "$dir/out" "$dir/err")"
  fi
}

# ---- delivery ----

sw4rm_message() {
  jq -nc '{message_id: "5a1d9c8e-6b3f-4a87-8f5e-91a2c0ab1234", producer_id: "cli",
    correlation_id: "7f3f41a2-2017-4b8f-9b8b-2ad3caaee001", sequence_number: 1, retry_count: 0,
    message_type: "DATA", content_type: "application/json", content_length: 2,
    payload: {}}'
}

# sw4rm_says STAGE N: by the receiver; CODE is that of a refusal.
sw4rm_says() {
  jq -c --arg s "$1" --argjson n "$2" --arg c "${CODE:-INTERNAL_ERROR}" '{
    message_id: "22222222-2222-4222-8222-2222222222\($n + 10)", producer_id: "bob", correlation_id,
    sequence_number: $n, retry_count: 0, message_type: "ACKNOWLEDGEMENT", content_type: "application/json",
    payload: {ack_for_message_id: .message_id, ack_stage: $s}}
    | if $s == "FAILED" or $s == "REJECTED" then .payload.error_code = $c else . end
    | .content_length = (.payload | tojson | length)' "$sent"
}

# A message in a given state, and what happens to it: acknowledgements by their stage, or time.
sw4rm_lifecycle() {
  local event state options=() ttl elapsed CODE=INTERNAL_ERROR
  ttl=$(jq -r '.given | .ttl_ms? // empty' <<<"$case")
  elapsed=$(jq -r '.given | if .elapsed_ms? then .elapsed_ms / 1000 elif .elapsed_s? then .elapsed_s
    else empty end' <<<"$case")
  [[ $what != *buffer_full* ]] || CODE=BUFFER_FULL
  delivery_begin "$(sw4rm_message | jq -c --arg t "$ttl" 'if $t == "" then . else .ttl_ms = ($t | tonumber) end')"
  state=$(jq -r '.given.state // "SENT"' <<<"$case")
  # What times out is sent again by the sweep that sees it.
  if [ "$state" = TIMED_OUT ] && given '[.input] | flatten | any(test("^retry"; "i"))'; then state=SENT clock=11; fi
  delivery_into "$state" "$(given .given.retry_delivered && echo delivered)" || {
    fail "not in the given state but $(delivery_state): $(cat "$dir/err")"
    return
  }
  [ -z "$elapsed" ] || clock=$elapsed
  while read -r event; do
    case $event in
    RECEIVED | READ | FULFILLED | REJECTED | FAILED) delivery_stage "$event" ;;
    retry | RETRY | RETRYING) delivery_pass 0 --retries 3 --backoff 1000s,1000s ;;
    *) if [ -n "$elapsed" ]; then delivery_pass 0; else delivery_pass 11; fi ;;
    esac
  done < <(jq -r '.input | if . == [] or . == null then "tick" elif type == "array" then .[] else . end' <<<"$case")
  state=$(delivery_state)
  if ! jq -e --arg s "$state" '.expect.state // $s | gsub("[(].*"; "") | split(" or ")
      | map(gsub("^ +| +$"; "")) | index($s)' <<<"$case" >/dev/null; then
    fail "it is $state: $(cat "$dir/err")"
  elif given '.expect.log == "late_ack"' && ! delivery_status | jq -e 'any(.acks[]; .late)' >/dev/null; then
    fail "no late acknowledgement is on record: $(delivery_status)"
  elif [ -n "$(want code)" ] && ! { delivery_dead | jq -r .code && jq -r '.. | .error_code? // empty' "$dir/emitted"; } |
    grep -qixF -- "$(want code)"; then
    fail "nothing says $(want code): $(cat "$dir/emitted" "$dir/err")"
  else
    pass
  fi
}

# A message to deliver: among agents, into a buffer.
sw4rm_deliver() {
  local to
  given_agents '.given.agents // [.given.agent]' || {
    fail "the agents could not be registered: $(cat "$dir/err")"
    return
  }
  to=$(jq -r '.given | .to? // .target? // (.agent? | objects | .agent_id // .id // .name) // .agent? // empty | strings' <<<"$case")
  sw4rm_lines | jq -c --arg to "$to" 'if has("msg") or $to == "" then . else {to: $to, msg: .} end' >"$dir/in"
  routed "$dir/in"
  if [ "$(want verdict)" = accept ]; then
    if [ -s "$dir/to" ]; then pass; else fail "went to nobody: $(cat "$dir/out" "$dir/err")"; fi
  elif [ -s "$dir/to" ]; then
    fail "went to $(cat "$dir/to")"
  elif [ "$(routed_code | tr '[:upper:]' '[:lower:]')" = "$(want code | tr '[:upper:]' '[:lower:]')" ]; then
    pass
  else
    fail "got $(routed_code): $(cat "$dir/out" "$dir/err")"
  fi
}

# A buffer that holds so many, of which so many are taken; then the message comes.
sw4rm_buffer() {
  local agent bound queued options
  agent=$(jq -r '.given | .agent? // .agent_id? // .to? // "agent-42" | if type == "object" then .agent_id else . end' <<<"$case")
  bound=$(jq -r '[.given | to_entries[] | select(.key | test("cap|max|limit|size|bound"; "i")) | .value | numbers][0] // 10' <<<"$case")
  queued=$(jq -r --argjson b "$bound" '[.given | to_entries[] | select(.key | test("queue|depth|pending|count|used|waiting"; "i"))
    | .value | if type == "array" then length else numbers end][0] // $b' <<<"$case")
  register "$agent" || {
    fail "the agent could not be registered: $(cat "$dir/err")"
    return
  }
  options=(--state "$dir/delivery" --inbound "$bound" -r '* => agents')
  sw4rm_message | jq -c --arg a "$agent" --argjson n "$queued" '. as $m | range($n) | {to: $a, msg: ($m
    + {message_id: "5a1d9c8e-6b3f-4a87-8f5e-\(100000000000 + .)", sequence_number: (. + 1000)})}' | amp-route "${options[@]}" >/dev/null 2>>"$dir/err"
  sw4rm_lines | jq -c --arg a "$agent" 'if has("msg") then . else {to: $a, msg: .} end' |
    amp-route "${options[@]}" >"$dir/out" 2>>"$dir/err"
  if [ "$(want verdict)" = accept ]; then
    if [ -z "$(jq -r 'select(.. | .error_code? // .code? // empty)' "$dir/out")" ]; then pass; else fail "got $(cat "$dir/out")"; fi
  elif [ "$(routed_code | tr '[:upper:]' '[:lower:]')" = "$(want code | tr '[:upper:]' '[:lower:]')" ] &&
    delivery_dead | grep -q .; then
    pass
  else
    fail "got $(cat "$dir/out" "$dir/err")"
  fi
}

# sw4rm_submissions JQ: submissions of the objects that jq selects, each with a scope and an id of its
# own where it has none; further options for submit follow. Leaves $dir/answers.
sw4rm_submissions() {
  local jq=$1
  shift
  jq -c "[$jq] | to_entries[] | .key as \$k | .value | if type == \"object\" then . else {} end
    | {task_id: (.task_id // .id // .name // \"t\(\$k)\"), params: (.params // {n: \$k}), scope: (.scope // [\"s\(\$k)\"])}
      + (with_entries(select(.key == \"priority\" and .value != null)))
    | {message_id: \"5a1d9c8e-6b3f-4a87-8f5e-\(${sent:=100000000000} + \$k)\", producer_id: \"cli\",
      correlation_id: \"7f3f41a2-2017-4b8f-9b8b-2ad3caaee001\", sequence_number: (${sent} + \$k), retry_count: 0,
      message_type: \"DATA\", content_type: \"application/json\", content_length: (tojson | utf8bytelength), payload: .}" \
    <<<"$case" >"$dir/in"
  sent=$((sent + 1000))
  task-queue submit --state "$dir/queue" --config "$dir/amp.json" --type agent "$@" <"$dir/in" >"$dir/answers" 2>>"$dir/err"
}

# Tasks for a type whose limit is given, with those that are at work: refused with --no-queue, else queued.
sw4rm_queue() {
  local most sent=100000000000
  have task-dispatch || {
    skip "needs task-dispatch"
    return
  }
  most=$(jq -r '[.given // {} | to_entries[] | select(.key | test("max_parallel|limit")) | .value | numbers][0] // 1' <<<"$case")
  echo "{\"queue\":{\"max_parallel\":$most}}" >"$dir/amp.json"
  sw4rm_submissions '.given // {} | (.running, .active, .queued, .queue, .jobs) // empty
    | if type == "array" then .[] elif type == "number" then range(.) | {scope: ["given\(.)"]} else . end'
  if [[ $(want verdict) == reject* ]]; then
    sw4rm_submissions '.input | if type == "array" then .[] else . end' --no-queue
    if jq -es 'any(.[]; .ok | not)' "$dir/answers" >/dev/null; then pass; else fail "accepted: $(cat "$dir/answers")"; fi
  else
    sw4rm_submissions '.input | if type == "array" then .[] else . end'
    if jq -es 'all(.[]; .ok and .state == "QUEUED" and .reason)' "$dir/answers" >/dev/null; then pass; else fail "not queued: $(cat "$dir/answers")"; fi
  fi
}

# The states that follow one of an agent's, a message's or a binding's, as the machine has them;
# what comes late is no move, and what changes nothing is none either.
sw4rm_successors() {
  local got state tool=task-dispatch machine=agent
  state=$(jq -r .given.state <<<"$case")
  case $state in
  SENT | RECEIVED | READ | FULFILLED | REJECTED | TIMED_OUT | RETRYING) tool=amp-ack machine=delivery ;;
  UNBOUND | BOUND_HOME | SWITCH_PENDING | BOUND_NON_HOME | BIND_FAILED) tool=worktree-bind machine=worktree_binding ;;
  FAILED) [[ $what != *message* ]] || tool=amp-ack machine=delivery ;;
  ACCEPTED | EXPIRED) machine=handoff ;;
  PENDING | COMPLETED) [[ ${what,,} != *handoff* ]] || machine=handoff ;;
  esac
  have $tool || {
    skip "needs $tool"
    return
  }
  got=$($tool --machine=ndjson | jq -sc --arg s "$state" --arg m "$machine" '
    [.[] | select(.machine == $m and .from == $s and .to != $s and (.extra | not) and
      ((.effects // []) | index("log_late") | not)) | .to] | unique')
  if jq -e --argjson got "$got" '(.expect.legal | sort) == $got' <<<"$case" >/dev/null; then
    pass
  else
    fail "the machine has $got"
  fi
}

# A handoff in a given state, and what the target, the origin or time does: accept, reject, complete, expire, pending.
sw4rm_handoff() {
  local state word by=bob code='' at=2026-02-25T16:00:00Z
  local -a handoff=(agent-handoff -q)
  step() {
    "${handoff[@]}" "$@" --state "$dir/delivery" >>"$dir/out" 2>"$dir/err" || code=$(sed -n 's/^task-dispatch: error: \([a-z_]*\): .*/\1/p' "$dir/err")
  }
  status() { "${handoff[@]}" pending --all --json --state "$dir/delivery" | jq -r .status; }
  if ! given '.given.known == false or .given.exists == false or (.given | has("state") | not)' || given '.input | tostring | test("request"; "i")'; then
    step request --as ann --to bob --reason r --id H
  fi
  state=$(jq -r '.given.state // "PENDING"' <<<"$case")
  case $state in
  ACCEPTED | COMPLETED) step accept --as bob H ;;
  REJECTED) step reject --as bob --reason no H ;;
  EXPIRED) amp-ack sweep --now "$(date -u -d '+10 min' +%FT%TZ)" --state "$dir/delivery" >/dev/null 2>>"$dir/err" ;;
  esac
  [ "$state" != COMPLETED ] || step complete --as ann H
  by=$(jq -r 'if .given.by? then "eve" else "bob" end' <<<"$case")
  while read -r word; do
    case ${word,,} in
    *request*) ;;
    *accept*) step accept --as "$by" H ;;
    *reject*) step reject --as "$by" --reason "$(jq -r '.input | if type == "object" then .reason // .rejection_reason // "no" else "no" end' <<<"$case")" H ;;
    *complete*) step complete --as "$([ "$by" = eve ] && echo eve || echo ann)" H ;;
    *timeout* | *expire* | *tick*) amp-ack sweep --now "$(date -u -d '+10 min' +%FT%TZ)" --state "$dir/delivery" >/dev/null 2>>"$dir/err" ;;
    *pending*) ;;
    *)
      later "is about a machine: deliveries, agents, rooms, workflows, tools"
      return
      ;;
    esac
  done < <(jq -r '.input | if type == "array" then .[] | strings elif type == "object" then .event // .operation // .call // "?" else . end' <<<"$case")
  if given '.expect | has("state")' && [ "$(status)" != "$(want state)" ]; then
    fail "it is $(status): $(cat "$dir/err")"
  elif given '.expect | has("pending")' &&
    [ "$("${handoff[@]}" pending --json --state "$dir/delivery" | wc -l)" -ne "$(jq -r '.expect.pending | if type == "array" then length else . end' <<<"$case")" ]; then
    fail "pending: $("${handoff[@]}" pending --json --state "$dir/delivery")"
  elif given '.expect | has("error") or has("error_contains") or .verdict == "reject"' && {
    [ -z "$code" ] || ! grep -qiF -- "$(jq -r '.expect | .error_contains // .error // "" | strings' <<<"$case")" "$dir/err"
  }; then
    fail "no refusal of this kind: $(cat "$dir/err")"
  elif ! given '.expect | has("error") or has("error_contains") or .verdict == "reject"' && [ -n "$code" ]; then
    fail "refused: $(cat "$dir/err")"
  else
    pass
  fi
}

# Submissions of a type, in order: the order of the queue.
sw4rm_order() {
  local n=0 line
  while read -r line; do
    n=$((n + 1))
    task-queue submit --type any --state "$dir/delivery" <<<"$line" >>"$dir/out" 2>>"$dir/err" || {
      [[ $(want verdict) == reject* ]] && pass || fail "submission $n: $(cat "$dir/err")"
      return
    }
  done < <(jq -c '[.input] | flatten | to_entries[] | (.value | if type == "number" then {priority: .} else . end) as $v
    | {task_id: ($v.task_id // $v.id // $v.name // "t\(.key)"), params: {n: .key}, scope: ["r\(.key)"]}
      + (if $v.priority == null then {} else {priority: $v.priority} end)
    | . as $p | {message_id: "5a1d9c8e-6b3f-4a87-8f5e-\(100000000000 + $p.params.n)", producer_id: "cli",
        correlation_id: "7f3f41a2-2017-4b8f-9b8b-2ad3caaee001", sequence_number: ($p.params.n + 1), retry_count: 0,
        message_type: "CONTROL", content_type: "application/json", content_length: ($p | tojson | utf8bytelength), payload: $p}' <<<"$case")
  if [[ $(want verdict) == reject* ]]; then
    fail "was taken: $(cat "$dir/out")"
  elif [ "$(task-queue list --json --state "$dir/delivery" | jq -r '[.position, .task] | @tsv' | sort -n | cut -f2 | paste -sd' ')" = \
    "$(jq -r '.expect.order | map(tostring) | join(" ")' <<<"$case")" ]; then
    pass
  else
    fail "the order is $(task-queue list --json --state "$dir/delivery" | jq -c '[.position, .task]' | paste -sd' ')"
  fi
}

sw4rm_case() {
  local verdict code strange options=()
  verdict=$(want verdict) code=$(want code)
  given '.input | type == "object" and has("canonical_hex")' && {
    sw4rm_token
    return
  }
  given '.given.token_state and (.input | has("message_id"))' && {
    sw4rm_known_token
    return
  }
  given '(.expect | has("legal")) and (.given | has("state"))' && {
    sw4rm_successors
    return
  }
  given '(.what | test("handoff"; "i")) and (.input | type != "object" or (has("message_id") or has("request_id") or has("from_agent") | not))' && {
    sw4rm_handoff
    return
  }
  given '(.expect | has("order")) and ([.input] | flatten | all(type == "number" or type == "object"))' && {
    sw4rm_order
    return
  }
  given '(.expect | has("state")) and ((.given.state? // "SENT") as $s | ["SENT", "RECEIVED", "READ",
      "FULFILLED", "REJECTED", "FAILED", "TIMED_OUT", "RETRYING"] | index($s)) and
      ([.input] | flatten | all(type == "string"))' && {
    sw4rm_lifecycle
    return
  }
  given '.given | type == "object" and any(keys[]; test("max_parallel"))' && {
    sw4rm_queue
    return
  }
  [ -n "$verdict" ] || {
    later "is about a machine: deliveries, agents, rooms, workflows, tools"
    return
  }
  given '.input | type != "object" or (has("events") | not)' || {
    later "is about a machine: deliveries, agents, rooms, workflows, tools"
    return
  }
  given '(.given | keys | any(test("queue|depth|pending"; "i"))) and (.input | type == "object" and has("message_id"))' && {
    sw4rm_buffer
    return
  }
  [ "${code,,}" != buffer_full ] || ! given '.input | type == "object" and (has("message_id") or has("msg"))' || {
    sw4rm_buffer
    return
  }
  given '(.given | has("agents") or has("agent")) and (.input | type == "object" and (has("message_id") or has("msg")))' && {
    sw4rm_deliver
    return
  }
  case ${code,,} in
  no_route | buffer_full | ack_timeout | agent_unavailable | agent_shutdown | permission_denied)
    later "is about delivering a message, not about the message"
    return
    ;;
  esac
  strange=$(jq -r '.given // {} | keys - ["now", "max_payload", "max_payload_bytes"]
    | map(select(test("hlc"; "i") | not)) | join(", ")' <<<"$case")
  [ -z "$strange" ] || {
    later "needs a state that nothing here can prepare: $strange"
    return
  }
  given '.given // {} | with_entries(select(.key | test("hlc"; "i")))
    | any(. != false and . != null and . != "off")' && options+=(--hlc)
  given .given.now && options+=(--now "$(jq -r .given.now <<<"$case")")
  given '.given.max_payload // .given.max_payload_bytes // false' &&
    options+=(--max-payload "$(jq -r '.given.max_payload // .given.max_payload_bytes' <<<"$case")")
  sw4rm_lines >"$dir/in"
  [ -s "$dir/in" ] || {
    later "its input is no message"
    return
  }
  case $verdict in
  *strict*)
    check_line "${options[@]}"
    if [ -n "$first" ] || [[ $warned != *"${code,,}"* ]]; then
      fail "no warning ${code,,}: $(cat "$dir/records")"
      return
    fi
    check_line --strict "${options[@]}"
    refused sw4rm "${code,,}"
    ;;
  reject*)
    check_line "${options[@]}"
    if sw4rm_nack "${options[@]}"; then refused sw4rm "${code,,}"; else fail "the refusal is not as it should be"; fi
    ;;
  *)
    check_line "${options[@]}"
    passes "$(want warn)"
    ;;
  esac
}
