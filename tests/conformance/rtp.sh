# shellcheck shell=bash disable=SC2154
# Sample cases of the Runtime Protocol: see protocols.sh.

# The samples have one word for every field at fault; one names what a gate would say.
rtp_code() {
  case $1 in
  validation) echo bad_value ;;
  default_eta_seconds*) echo eta_range ;;
  *) echo "$1" ;;
  esac
}

# What the case says came before, as events of an outbox of its own.
rtp_before() {
  jq -c '.input as $in | ($in.payload.taskId // "tsk_sample") as $task
    | (.given | .toAgents? // .assignees? // []) as $assignees
    | (.given | .retryable_failures? // .retries? // .failures? // 0) as $failures
    | (.given.by? // $in.payload.acceptedByAgentId // $in.payload.completedByAgentId //
       $in.payload.failedByAgentId //
       (if $in.kind == "task_update" or $in.kind == "ack" then $in.sourceAgentId else "executor-mbp" end)) as $by
    | def event($n; $id; $kind; $payload): {eventId: $id, seq: $n, kind: $kind, sourceNodeId: "before",
        sourceAgentId: $by, corrId: "corr_before", createdAt: "2026-02-25T16:00:00Z",
        payload: $payload, trace: {attempt: 1}};
    def at: "2026-02-25T16:10:00Z";
    event(0; "evt_before"; "signal"; {}),
    ((.given.seen // []) | to_entries[] | event(.key + 1; .value; "signal"; {})),
    (.given.lastSeq // .given.last_seq // empty
      | event(.; "evt_last"; "signal"; {}) | .sourceNodeId = $in.sourceNodeId),
    # Other tasks that the agent has.
    (.given.active_claims // .given.claims // 0 | range(.) |
      event(200 + . * 2; "evt_other_\(.)"; "task_create";
        {taskId: "tsk_other_\(.)", title: "t", requesterAgentId: "a", requiredCapabilities: ["cap.x"]}),
      event(201 + . * 2; "evt_held_\(.)"; "task_accept";
        {taskId: "tsk_other_\(.)", acceptedByAgentId: $by, etaSeconds: 60})),
    (.given.task // empty | . as $state
      | ["pending", "accepted", "in_progress"] as $steps
      | (($steps | index($state)) // 3) as $last
      | event(100; $in.payload.refEventId // "evt_create"; "task_create";
          {taskId: $task, title: "t", requesterAgentId: "a", requiredCapabilities: ["cap.x"],
           toAgents: $assignees}),
        (if $last >= 1 then
           ($failures | range(.) |
             event(110 + . * 2; "evt_try_\(.)"; "task_accept"; {taskId: $task, acceptedByAgentId: $by, etaSeconds: (. + 60)}),
             event(111 + . * 2; "evt_lost_\(.)"; "task_failed"; {taskId: $task, failedByAgentId: $by,
               failureClass: "timeout", errorSummary: "try \(.)", failedAt: at, retryable: true})),
           event(150; "evt_accept"; "task_accept"; {taskId: $task, acceptedByAgentId: $by, etaSeconds: 30})
         else empty end),
        (if $state == "in_progress" then
           event(152; "evt_update"; "task_update"; {taskId: $task, status: "in_progress"})
         elif $state == "failed" then
           event(153; "evt_failed"; "task_failed"; {taskId: $task, failedByAgentId: $by,
             failureClass: "unknown", errorSummary: "e", failedAt: at})
         elif $state == "completed" then
           event(153; "evt_complete"; "task_complete"; {taskId: $task, completedByAgentId: $by,
             resultSummary: "r", completedAt: at})
         else empty end))' <<<"$case"
}

# The capability of the case's task with its risk, and the approval of a person.
rtp_risk() {
  local risk
  risk=$(jq -r '.given | .risk // .riskClass // empty' <<<"$case")
  [ -n "$risk" ] || return 0
  agent-registry register owner --state "$dir/state" --connector x:y >/dev/null 2>>"$dir/before.err" || return
  jq -nc --arg r "$risk" '{capabilityId: "cap.x", name: "n", version: "1.0.0", status: "active", riskClass: $r,
    ownerAgentId: "owner", ownerNodeId: "n1", delegationSkillRef: {name: "d", version: "1.0.0", path: "/d"},
    executorSkillRef: {name: "e", version: "1.0.0", path: "/e"}, contractSchemaRef: "schema://x",
    defaultEtaSeconds: 900, publishedAt: "2026-02-25T15:30:00.000Z", publishedByAgentId: "architect"}' |
    agent-registry publish --state "$dir/state" >/dev/null 2>>"$dir/before.err" || return
  given '.given | .approved // .approval // false' || return 0
  agent-registry approve "$(jq -r .input.payload.taskId <<<"$case")" --why sample --state "$dir/state" >/dev/null 2>>"$dir/before.err"
}

# ---- delivery ----

rtp_message() {
  jq -nc '{eventId: "evt_01JV3M2N8V1ZK4J2A0M7Y6P9QF", seq: 1, kind: "task_create", sourceNodeId: "n1",
    sourceAgentId: "cli", toAgentId: "bob", corrId: "corr_1", createdAt: "2026-02-25T16:00:00Z",
    payload: {taskId: "tsk_1", title: "t", toAgents: ["bob"], requesterAgentId: "cli",
      responseRequired: true}, trace: {attempt: 1}}'
}

# rtp_says STAGE N: the receiver's ack, behind the outcome that it needs.
rtp_says() {
  jq -c --arg s "$1" --argjson n "$2" '
    def event($k; $p): {eventId: "evt_\($n)_\($k)", seq: ($n * 3 + ({task_complete: 1, ack: 2}[$k] // 0)),
      kind: $k, sourceNodeId: "n2", sourceAgentId: "bob", toAgentId: "cli", corrId,
      createdAt: "2026-02-25T16:00:01Z", payload: $p, trace: {attempt: 1}};
    (if $s == "FULFILLED" then event("task_accept"; {taskId: "tsk_1", acceptedByAgentId: "bob", etaSeconds: 60}),
       event("task_complete"; {taskId: "tsk_1", completedByAgentId: "bob",
       resultSummary: "r", completedAt: "2026-02-25T16:00:01Z"}) else empty end),
    event("ack"; {refEventId: .eventId, refKind: .kind, ackedByNodeId: "n2", ackedByAgentId: "bob",
      ackType: ({RECEIVED: "accepted", FULFILLED: "processed"}[$s] // "failed_terminal"),
      ackedAt: "2026-02-25T16:00:01Z"})' "$sent"
}

# How far the delivery came, in the protocol's words.
rtp_delivery() {
  # A letter that a late acknowledgement withdrew was one all the same.
  if amp-ack dead list -a --json --state "$dir/delivery" 2>>"$dir/err" | grep -q .; then
    echo DeadLetter
  elif grep -q '"description":"sla_breach' "$dir/emitted"; then
    echo Incident
  else
    case $(delivery_state) in
    SENT) echo Emitted ;;
    RECEIVED) echo Accepted ;;
    FULFILLED) echo Processed ;;
    TIMED_OUT | RETRYING) echo RetryPending ;;
    *) delivery_state ;;
    esac
  fi
}

# Whether another attempt left.
delivery_resent() { jq -es --arg id "$(jq -r .eventId "$sent")" 'any(.kind == "task_create" and .eventId != $id)' "$dir/emitted" >/dev/null; }

# A delivery in a given state, and what the receiver says or time brings.
rtp_lifecycle() {
  local event elapsed got again=(--retries "rtp=$(jq -r '.given.max_attempts // 5 | . - 1' <<<"$case")"
    --backoff "rtp=1s,1s")
  elapsed=$(jq -r '.given.elapsed_s // empty' <<<"$case")
  # A task has another end; a reply is what a message waits for.
  if given '[.input] | flatten | any(test("reply"))'; then
    delivery_begin "$(rtp_message | jq -c '.kind = "message" | .payload = {toAgents: ["bob"], body: "b", expectsReply: true}')"
  else
    delivery_begin "$(rtp_message)"
  fi
  case $(jq -r '.given.event // .given.delivery' <<<"$case") in
  Emitted) ;;
  Accepted) delivery_stage RECEIVED ;;
  Processed | Replied) delivery_stage RECEIVED FULFILLED ;;
  RetryPending) delivery_pass 21 "${again[@]}" ;;
  DeadLetter) for _ in 1 2 3 4 5 6 7; do delivery_pass 21 "${again[@]}" && delivery_pass 2 "${again[@]}"; done ;;
  *)
    later "is about a machine that nothing here has"
    return
    ;;
  esac
  if given '.given | .attempts? // .attempt? // 0 | . >= 5'; then
    for _ in 1 2 3 4 5 6 7; do delivery_pass 21 "${again[@]}" && delivery_pass 2 "${again[@]}"; done
  fi
  while read -r event; do
    case $event in
    *accepted*) delivery_stage RECEIVED ;;
    *processed*) delivery_stage FULFILLED ;;
    *failed_terminal*) delivery_stage FAILED ;;
    *reply*)
      clock=$(jq -n "$clock + 1")
      jq -c '{eventId: "evt_reply", seq: 100, kind: "reply", sourceNodeId: "n2", sourceAgentId: "bob",
        toAgentId: "cli", corrId, createdAt: "2026-02-25T16:00:01Z", trace: {attempt: 1},
        payload: {refEventId: .eventId, taskId: "tsk_1", body: "b"}}' "$sent" | delivery_ack "$clock" track >>"$dir/emitted"
      ;;
    *retry* | *resend*)
      delivery_pass 2 "${again[@]}"
      delivery_resent && {
        [ "$(want delivery)" = Emitted ] && pass || fail "it was sent again"
        return
      }
      ;;
    *)
      if [ -n "$elapsed" ]; then
        clock=$elapsed
      elif given '.given.sla? == "over"'; then
        clock=$(jq -n "$clock + 121")
      fi
      delivery_pass 0 "${again[@]}"
      ;;
    esac
  done < <(jq -r '.input | if type == "array" then .[] else . end' <<<"$case")
  got=$(rtp_delivery)
  if [ "$got" = "$(want delivery)" ] || [ "$got/$(want delivery)" = Processed/Replied ]; then
    pass
  else
    fail "it is $got: $(cat "$dir/emitted" "$dir/err")"
  fi
}

# rtp_publish_for CAPABILITY OWNER: puts it into the index.
rtp_publish_for() {
  jq -nc --arg c "$1" --arg o "$2" '{capabilityId: $c, name: "n", version: "1.3.0", status: "active",
    ownerAgentId: $o, ownerNodeId: "n1", delegationSkillRef: {name: "d", version: "1.3.0", path: "/d"},
    executorSkillRef: {name: "e", version: "1.3.0", path: "/e"}, contractSchemaRef: "schema://x",
    defaultEtaSeconds: 900, publishedAt: "2026-02-25T16:30:00.000Z", publishedByAgentId: "architect"}' |
    agent-registry publish --state "$dir/delivery" >/dev/null 2>>"$dir/err"
}

# A failure after so many retryable ones: whether it ends the task. One after it shows that.
rtp_budget() {
  local terminal
  rtp_before | amp-ack track --state "$dir/state" >/dev/null 2>"$dir/before.err" || {
    fail "the state could not be prepared: $(cat "$dir/before.err")"
    return
  }
  jq -c '.input' <<<"$case" >"$dir/in"
  check_line --state "$dir/state"
  [ -z "$first" ] || {
    fail "refused: $(cat "$dir/records" "$dir/err")"
    return
  }
  jq -c '.eventId = "evt_after" | .seq += 1 | .kind = "task_accept"
    | .payload = {taskId: .payload.taskId, acceptedByAgentId: .payload.failedByAgentId, etaSeconds: 5}' "$dir/in" >"$dir/after"
  cat "$dir/in" "$dir/after" | amp-validate --state "$dir/state" -e "$dir/after.records" >/dev/null 2>>"$dir/err"
  terminal=$(jq -s 'any(.[]; .code == "terminal")' "$dir/after.records" 2>/dev/null || echo false)
  if [ "$terminal" != "$(jq -r '.expect | .terminal // (.failureCode == "retry_budget_exceeded")' <<<"$case")" ]; then
    fail "terminal: $terminal: $(cat "$dir/after.records" "$dir/err")"
  elif [[ " $warned " != *" retry_budget_exceeded "* ]] && given '.expect.failureCode == "retry_budget_exceeded"'; then
    fail "no warning of it: $(cat "$dir/records")"
  else
    pass
  fi
}

# A task whose estimate passes, fails, breaks its contract, or has no route: whether a review item is made. Times are
# "t0", "t0+119s", or RFC 3339.
rtp_review() {
  local eta=60 late made
  rtp_publish_owner || return
  late=$(jq -r '.given | (.etaAt // "t0") as $eta | (.now // "t0")
    | if ($eta | test("^t0")) and test("^t0") then
        ((sub("^t0[+]?"; "") | sub("s$"; "")) | if . == "" then 0 else tonumber end) -
        (($eta | sub("^t0[+]?"; "") | sub("s$"; "")) | if . == "" then 0 else tonumber end)
      else (sub("[.][0-9]+Z$"; "Z") | fromdateiso8601) - ($eta | sub("[.][0-9]+Z$"; "Z") | fromdateiso8601) end' <<<"$case")
  rtp_message | jq -c '.payload.requiredCapabilities = ["cap.sample"]' >"$dir/sent"
  sent=$dir/sent
  delivery_ack 0 track <"$sent" >/dev/null
  jq -c --argjson eta "$eta" '{eventId: "evt_accept", seq: 1, kind: "task_accept", sourceNodeId: "n2", sourceAgentId: "bob",
    toAgentId: "cli", corrId, createdAt: "2026-02-25T16:00:00Z", trace: {attempt: 1},
    payload: {taskId: "tsk_1", acceptedByAgentId: "bob", etaAt: ((1772035200 + $eta) | todate)}}' "$sent" |
    delivery_ack 0 track >/dev/null
  delivery_ack "$((eta + late))" sweep --silence 0 >/dev/null
  made=$(agent-registry reviews --json --state "$dir/delivery" | jq -s 'length > 0')
  if [ "$made" = "$(jq -r .expect.review_item <<<"$case")" ]; then
    pass
  else
    fail "a review item: $made: $(cat "$dir/err")"
  fi
}
rtp_publish_owner() {
  register bob && rtp_publish_for cap.sample bob || {
    fail "the capability could not be published: $(cat "$dir/err")"
    return 1
  }
}

# Whom an event goes to, by the agents and the index of the case.
rtp_routed() {
  local capability owner code
  while IFS=$'\t' read -r capability owner; do
    [ "$owner" ] || continue
    register "$owner" && rtp_publish_for "$capability" "$owner" || {
      fail "the index could not be prepared: $(cat "$dir/err")"
      return
    }
  done < <(jq -r '.given.index // {} | to_entries[] | [.key, (.value | if type == "array" then .[0] else . end // "")] | @tsv' <<<"$case")
  given_agents .given.agents || {
    fail "the agents could not be registered: $(cat "$dir/err")"
    return
  }
  # Owners that the case does not have among its agents are not there.
  if given .given.agents; then
    while read -r owner; do
      agent-registry deregister "$owner" --state "$dir/delivery" >/dev/null 2>>"$dir/err"
    done < <(jq -r '(.given.agents | if type == "object" then keys else map(strings) end) as $a
      | [.given.index // {} | .[] | if type == "array" then .[0] else . end // empty] - $a | .[]' <<<"$case")
  fi
  # The samples are of another day.
  jq -c '.input | del(.expiresAt)' <<<"$case" >"$dir/routed"
  routed "$dir/routed"
  code=$(want code)
  if [ -n "$code" ]; then
    if [ -s "$dir/to" ]; then
      fail "went to $(paste -sd ' ' "$dir/to")"
    elif [ "$(routed_code)" = "$(rtp_code "$code")" ] ||
      [ "$(jq -r '.seed_code // empty' "$dir/delivery/error.ndjson" | tail -n 1)" = "$code" ]; then
      pass
    else
      fail "got $(routed_code): $(cat "$dir/out" "$dir/err")"
    fi
  elif ! given .expect.targets; then
    if [ -s "$dir/to" ]; then pass; else fail "went to nobody: $(cat "$dir/out" "$dir/err")"; fi
  elif cmp -s "$dir/to" <(jq -r '.expect.targets | sort[]' <<<"$case"); then
    pass
  else
    fail "went to $(paste -sd ' ' "$dir/to"): $(cat "$dir/out" "$dir/err")"
  fi
}

# A capability record to the registry.
rtp_published() {
  local options=() skill owner code got
  owner=$(jq -r .input.ownerAgentId <<<"$case")
  if given .given.skills; then
    mkdir -p "$dir/skills"
    while read -r skill; do mkdir -p "$dir/skills/$skill"; done < <(jq -r '.given.skills
      | if type == "object" then keys[] else .[] end | if type == "object" then .path // .name else . end
      | select(test("^[A-Za-z0-9/_-]+$"))' <<<"$case")
    # A skill may be known by its name where the record has a path.
    skill=$(jq -r '.input.executorSkillRef | select(.path) | [.name, .path] | join(" ")' <<<"$case")
    if [ -n "$skill" ] && [ -d "$dir/skills/${skill% *}" ]; then mkdir -p "$dir/skills/${skill#* }"; fi
    options+=(--skills "$dir/skills")
  fi
  if given .given.agents; then given_agents .given.agents; else register "$owner"; fi || {
    fail "the agents could not be registered: $(cat "$dir/err")"
    return
  }
  jq -c .input <<<"$case" | agent-registry "${options[@]}" --state "$dir/delivery" >"$dir/out" 2>>"$dir/err"
  got=$(jq -r 'select(.severity == "error") | .code' "$dir/delivery/error.ndjson" 2>/dev/null | tail -n 1)
  code=$(want code)
  if [ -n "$code" ]; then
    if [ "$got" = "$(rtp_code "$code")" ] && [ ! -s "$dir/out" ]; then pass; else fail "got \"$got\": $(cat "$dir/out" "$dir/err")"; fi
  elif [ -n "$got" ]; then
    fail "was refused: $got: $(cat "$dir/err")"
  elif jq -es --argjson case "$case" '. as $all | $case.expect
      | (if .emit then [$all[] | select(.kind) | [.kind, .toAgentId]] | sort == ($case.expect.emit | sort) else true end) and
        (if .taskType then all($all[] | select(.kind); .payload.taskType == $case.expect.taskType) else true end) and
        (if .index then any($all[]; .eligibleAgentIds == $case.expect.index) else true end)' "$dir/out" >/dev/null &&
    amp-validate "$dir/out" >/dev/null 2>>"$dir/err"; then
    pass
  else
    fail "got $(cat "$dir/out" "$dir/err")"
  fi
}

# A cursor whose lease is so old.
rtp_lease() {
  local age counts
  age=$(jq -r '.given.leaseAge_s' <<<"$case")
  delivery_begin "$(rtp_message)" # makes the state
  amp-ack cursors move bob n1 10 --state "$dir/delivery" >/dev/null 2>>"$dir/err" &&
    amp-ack sweep --silence 0 --state "$dir/delivery" --now "$(date -u -d "+$age seconds" +%FT%TZ)" >"$dir/out" 2>>"$dir/err" || {
    fail "no cursor: $(cat "$dir/err")"
    return
  }
  counts=$(amp-ack cursors list --json --state "$dir/delivery" | jq -r '.status == "active"')
  if [ "$counts" = "$(jq -r .expect.counts_for_watermark <<<"$case")" ]; then
    pass
  else
    fail "counts: $counts: $(cat "$dir/out" "$dir/err")"
  fi
}

# rtp_numbered SEQ...: an event of one source for each.
rtp_numbered() {
  jq -nc --args '$ARGS.positional[] | tonumber | {eventId: "evt_\(.)", seq: ., kind: "signal", sourceNodeId: "n1",
    sourceAgentId: "cli", corrId: "corr_1", createdAt: "2026-02-25T16:00:00Z", payload: {}, trace: {attempt: 1}}' "$@"
}

# A cursor at a number, the numbers that come, and how long a gap has been there: where it is then.
rtp_cursor() {
  local last age at policy
  local options=(--cursor bob --gap-timeout 1h)
  local -a numbers
  last=$(jq -r '.given | .lastSeq // .last_seq // .cursor' <<<"$case")
  age=$(jq -r '.given | .gapAge_s // .gap_age_s // .gap_s // .elapsed_s // 0' <<<"$case")
  policy=$(jq -r '.given.policy // .given.gapPolicy // "hold" | if IN("skip", "tombstone") then . else "hold" end' <<<"$case")
  mapfile -t numbers < <(jq -r '[.input] | flatten[] | if type == "object" then .seq else . end | numbers' <<<"$case")
  # A gap that only time is to tell of: the next but one is there.
  [ ${#numbers[@]} -gt 0 ] || numbers=($((last + 2)))
  if jq -en --argjson a "$age" '$a >= 30' >/dev/null; then options=(--cursor bob --gap-timeout 100ms); fi
  options+=(--on-gap "$policy" --state "$dir/delivery" -r '* => file:'"$dir/taken")
  rtp_numbered "$last" | amp-route "${options[@]}" >/dev/null 2>"$dir/err"
  {
    rtp_numbered "${numbers[@]}"
    sleep 0.5
  } | amp-route "${options[@]}" >"$dir/out" 2>>"$dir/err"
  at=$(amp-ack cursors list --json --state "$dir/delivery" 2>>"$dir/err" | jq -r .lastSeq)
  if ! jq -e --argjson at "${at:-null}" --argjson last "$last" '.expect
      | ([.cursor, .lastSeq, .last_seq | numbers] | all(. == $at)) and
        (if has("advance") or has("advances") then (.advance // .advances) == ($at > $last) else true end) and
        (if has("blocked") then .blocked == ($at == $last) else true end)' <<<"$case" >/dev/null; then
    fail "the cursor is at $at: $(cat "$dir/err")"
  elif given '.expect | has("incident")' &&
    ! jq -es --argjson case "$case" 'any(.payload.signal == "incident") == $case.expect.incident' "$dir/out" >/dev/null; then
    fail "told: $(cat "$dir/out" "$dir/err")"
  else
    pass
  fi
}

rtp_case() {
  given '(.expect | has("delivery")) and (.given | has("event") or has("delivery")) and
      ([.input] | flatten | all(type == "string"))' && {
    rtp_lifecycle
    return
  }
  given '(.given | has("leaseAge_s")) and (.expect | has("counts_for_watermark"))' && {
    rtp_lease
    return
  }
  given '(.given | .lastSeq? // .last_seq? // .cursor? | type == "number") and
      (.expect | has("cursor") or has("lastSeq") or has("last_seq") or has("advance") or has("advances") or
        has("blocked") or has("incident")) and
      (.input | type != "object" or (has("kind") | not))' && {
    rtp_cursor
    return
  }
  given '(.expect | has("review_item")) and (.given | has("etaAt") and has("now"))' && {
    rtp_review
    return
  }
  given '(.input | type == "object" and .kind == "task_failed") and (.given | has("retryable_failures") or has("retries"))' && {
    rtp_budget
    return
  }
  given '.input | type == "object"' || {
    later "is about what time or a broker does, not about one message"
    return
  }
  local strange options=()
  given '(.input | has("capabilityId")) and (.input | has("ownerAgentId")) and
      ((.given | has("skills") or has("agents")) or (.expect | has("emit")))' && {
    check_line
    [ -n "$first" ] || {
      rtp_published
      return
    }
  }
  strange=$(jq -r '.given // {} | keys - ["now", "task", "by", "seen", "index",
    "agents", "toAgents", "assignees", "lastSeq", "last_seq", "active_claims", "claims",
    "retryable_failures", "retries", "failures", "risk", "riskClass", "approved", "approval"] | join(", ")' \
    <<<"$case")
  [ -z "$strange" ] || {
    later "needs a state that nothing here can prepare: $strange"
    return
  }
  if given '.given.now and (.given.now | sub("[.][0-9]+Z$"; "Z") | fromdateiso8601? // 0) == 0'; then
    later "is about time"
    return
  fi
  if given '.given | has("seen") or has("task") or has("lastSeq") or has("last_seq")'; then
    have amp-ack || {
      skip "needs amp-ack"
      return
    }
    rtp_before | amp-ack track --state "$dir/state" >/dev/null 2>"$dir/before.err" && rtp_risk || {
      fail "the state could not be prepared: $(cat "$dir/before.err")"
      return
    }
    options+=(--state "$dir/state")
    # In the samples an ack has the id of the event that it acknowledges.
    jq -c '.input | if .payload.refEventId == .eventId then .eventId = "evt_ack" else . end' \
      <<<"$case" >"$dir/in"
  fi
  given .given.now && options+=(--now "$(jq -r .given.now <<<"$case")")
  check_line "${options[@]}"
  if given '.given | has("agents") or has("index")' && [ -z "$first" ]; then
    rtp_routed
    return
  fi
  case $(want verdict) in
  reject | dead_letter)
    if [ "$(want code)" = "$(jq -rs '.[0].seed_code // "none"' "$dir/records")" ]; then
      pass
    elif [ "$(want code)" = validation ] && [[ "${first#rtp }" =~ ^(bad_[a-z]+|missing_route_fields|invalid_targets|eta_range)\  ]]; then
      refused rtp "${BASH_REMATCH[1]}"
    else
      refused rtp "$(rtp_code "$(want code)")"
    fi
    ;;
  duplicate) refused rtp duplicate_event ;;
  *)
    if given '.expect | .verdict == "accept" or .verdict == "idempotent" or has("targets") or
        .delivery == "Processed"'; then
      passes
    else
      later "is about what a broker does with the message"
    fi
    ;;
  esac
}
