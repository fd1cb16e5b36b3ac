# shellcheck shell=bash disable=SC2154
# Sample cases of AOF/1: see protocols.sh. The input is the event that a router would get, so it is
# checked with -p aof.

# The event that the protocol logs instead of an answer, and the record's code.
aof_event() {
  local event reason got
  event=$(want event) reason=$(want reason)
  got=$(amp-validate -p aof --nack "$dir/in" 2>/dev/null | jq -r '"\(.type) \(.payload.reason // "")"')
  if [ "$got" != "$event $reason" ]; then
    fail "the event is \"$got\", not \"$event $reason\""
  elif [ "$event" = protocol.message.unknown ]; then
    refused aof protocol.message.unknown
  else
    refused aof "$reason"
  fi
}

# The task files of a case: given.task, .child, .parent and .grandparent, the result and the heartbeat of the first one.
aof_files() {
  local task status front expires
  while IFS=$'\t' read -r task status front; do
    mkdir -p "$dir/data/tasks/$status"
    printf -- '---\nid: %s\nstatus: %s\n%b---\n\n# Task\n' "$task" "$status" "$front" >"$dir/data/tasks/$status/$task.md"
  done < <(jq -r '.given | .task, .child, .parent, .grandparent | select(type == "object") |
    [.id, .status // "in-progress",
     ((if .lease then "lease:\n  agent: \(.lease | if type == "object" then .agent else . end)\n" else "" end) +
      (if .agent // .routing then "routing:\n  agent: \(.agent // .routing | if type == "object" then .agent else . end)\n" else "" end) +
      (if .parentId // .parent then "parentId: \(.parentId // .parent)\n" else "" end) +
      (if (.depth // .delegationDepth) != null or .reviewRequired != null then "metadata:\n" else "" end) +
      (if (.depth // .delegationDepth) != null then "  delegationDepth: \(.depth // .delegationDepth)\n" else "" end) +
      (if .reviewRequired != null then "  reviewRequired: \(.reviewRequired)\n" else "" end))] | @tsv' <<<"$case")
  task=$(jq -r '.given | (.task // .child).id // empty' <<<"$case")
  mkdir -p "$dir/data/runs/$task"
  given '.given.result | type == "string"' &&
    jq -c --arg id "$task" '{taskId: $id, agentId: "swe-backend", completedAt: "2026-02-09T21:10:00.000Z", outcome: .given.result,
      summaryRef: "outputs/summary.md", handoffRef: "outputs/handoff.md", deliverables: [], tests: {total: 1, passed: 1, failed: 0},
      blockers: [], notes: "n"}' <<<"$case" >"$dir/data/runs/$task/run_result.json"
  expires=$(jq -r '.given.heartbeat // empty | if type == "object" then .expiresAt elif . == "stale" then "2026-01-01T00:00:00.000Z"
    elif . == "fresh" then "2999-01-01T00:00:00.000Z" else empty end' <<<"$case")
  [ -z "$expires" ] ||
    printf '{"taskId":"%s","agentId":"swe-backend","lastHeartbeat":"2026-01-01T00:00:00.000Z","beatCount":0,"expiresAt":"%s"}\n' "$task" "$expires" \
      >"$dir/data/runs/$task/run_heartbeat.json"
  printf '%s\n' "$task"
}

# What the router makes of a message to these files, or of the end of a session, or of a poll.
aof_files_case() {
  local task got
  task=$(aof_files)
  case $(jq -r '.input | if type == "string" then . else "message" end' <<<"$case") in
  message) jq -c .input <<<"$case" | aof-board --data-dir "$dir/data" >"$dir/out" 2>"$dir/err" ;;
  session_end) aof-board end --data-dir "$dir/data" "$task" >"$dir/out" 2>"$dir/err" ;;
  poll | scheduler_poll | scheduler.poll) aof-board poll --data-dir "$dir/data" >"$dir/out" 2>"$dir/err" ;;
  *)
    later "has an input of another form"
    return
    ;;
  esac
  if given '.expect | has("status")'; then
    got=$(jq -sc '[.[] | select(.type == "task.transitioned") | .payload.to]' "$dir/out")
    [ "$got" = "$(jq -c '.expect.status | if type == "array" then . else [.] end' <<<"$case")" ] || {
      fail "the task went to $got"
      return
    }
  fi
  if given '.expect | has("event")'; then
    jq -e --arg event "$(want event)" --arg reason "$(want reason)" -s 'any(.type == $event and ($reason == "" or .payload.reason == $reason))' \
      "$dir/out" >/dev/null || {
      fail "no event $(want event) $(want reason): $(cat "$dir/out")"
      return
    }
  elif given '.expect | has("reason")'; then
    jq -e --arg reason "$(want reason)" -s 'any(.type == "task.transitioned" and .payload.reason == $reason)' "$dir/out" >/dev/null || {
      fail "no transition with the reason $(want reason): $(cat "$dir/out")"
      return
    }
  fi
  if given '.expect.worklog == true' && ! grep -q '^## Work Log' "$dir"/data/tasks/*/"$task.md"; then
    fail "nothing in the work log"
    return
  fi
  if given '.expect.result == null and (.expect | has("result"))' && grep -q '"type":"task.transitioned"' "$dir/out"; then
    fail "a refused message moved a task"
    return
  fi
  pass
}

aof_case() {
  given '.given == {} or (.expect.verdict // "" | test("reject")) or
    (.expect.reason // "" | IN("taskId_mismatch", "invalid_json", "invalid_envelope",
                               "invalid_project_id", "payload_too_large"))' || {
    aof_files_case
    return
  }
  if given '.input | has("content_bytes")'; then
    jq -r .input.content_bytes <<<"$case" |
      awk '{ n = $1 - length("AOF/1 "); printf "{\"content\":\"AOF/1 "
             while (n-- > 0) printf "x"; print "\"}" }' >"$dir/in"
  fi
  check_line -p aof
  case $(want event) in
  protocol.message.rejected | protocol.message.unknown)
    aof_event
    return
    ;;
  protocol.message.warning)
    passes invalid_acceptance_criteria
    return
    ;;
  esac
  case $(want verdict) in
  *reject*)
    if [ -n "$first" ]; then pass; else fail "was accepted"; fi
    ;;
  *)
    # The defaults of a payload are filled in by those who read it; the line stays as it is.
    if given '.expect | .result == "envelope" or (has("result") and .result == null)'; then
      passes
    else
      later "is about what a router does with the message"
    fi
    ;;
  esac
}
