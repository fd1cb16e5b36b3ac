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
    | (.given.by? // $in.payload.acceptedByAgentId // $in.payload.completedByAgentId //
       $in.payload.failedByAgentId //
       (if $in.kind == "task_update" then $in.sourceAgentId else "executor-mbp" end)) as $by
    | def event($n; $id; $kind; $payload): {eventId: $id, seq: $n, kind: $kind, sourceNodeId: "before",
        sourceAgentId: $by, corrId: "corr_before", createdAt: "2026-02-25T16:00:00Z",
        payload: $payload, trace: {attempt: 1}};
    def at: "2026-02-25T16:10:00Z";
    event(0; "evt_before"; "signal"; {}),
    ((.given.seen // []) | to_entries[] | event(.key + 1; .value; "signal"; {})),
    (.given.lastSeq // .given.last_seq // empty
      | event(.; "evt_last"; "signal"; {}) | .sourceNodeId = $in.sourceNodeId),
    (.given.task // empty | . as $state
      | ["pending", "accepted", "in_progress"] as $steps
      | (($steps | index($state)) // 3) as $last
      | event(100; $in.payload.refEventId // "evt_create"; "task_create";
          {taskId: $task, title: "t", requesterAgentId: "a", requiredCapabilities: ["cap.x"],
           toAgents: $assignees}),
        (if $last >= 1 then
           event(101; "evt_accept"; "task_accept"; {taskId: $task, acceptedByAgentId: $by, etaSeconds: 60})
         else empty end),
        (if $state == "in_progress" then
           event(102; "evt_update"; "task_update"; {taskId: $task, status: "in_progress"})
         elif $state == "failed" then
           event(103; "evt_failed"; "task_failed"; {taskId: $task, failedByAgentId: $by,
             failureClass: "unknown", errorSummary: "e", failedAt: at})
         elif $state == "completed" then
           event(103; "evt_complete"; "task_complete"; {taskId: $task, completedByAgentId: $by,
             resultSummary: "r", completedAt: at})
         else empty end))' <<<"$case"
}

rtp_case() {
  given '.input | type == "object"' || {
    later "is about what time or a broker does, not about one message"
    return
  }
  local strange options=()
  strange=$(jq -r '.given // {} | keys - ["now", "task", "by", "seen", "index",
    "agents", "toAgents", "assignees", "lastSeq", "last_seq"] | join(", ")' \
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
    rtp_before | amp-ack track --state "$dir/state" >/dev/null 2>"$dir/before.err" || {
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
  if given '.given | has("agents") or has("index")' && [ -z "$first" ] && [ -n "$(want code)" ]; then
    later "needs the registry of agents and capabilities"
    return
  fi
  case $(want verdict) in
  reject | dead_letter)
    if [ "$(want code)" = "$(jq -rs '.[0].seed_code // "none"' "$dir/records")" ]; then
      pass
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
