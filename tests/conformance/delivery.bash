# shellcheck shell=bash disable=SC2154
# What sample cases of several protocols say about the delivery of one message: it is brought into
# the given state by the tools, then what the case names happens, then its state is looked at.
#
# A protocol's file has PROTOCOL_message (prints the message on one line), PROTOCOL_says STAGE N
# (prints what the receiver answers with it, the Nth time), and the words of PROTOCOL_state_of.

# delivery_at SECONDS: so long after the message was sent, as RFC 3339.
delivery_at() {
  jq -nr --argjson s "$1" '(1772035200 + $s) * 1000 | round | . / 1000 | floor as $f
    | ($f | strftime("%Y-%m-%dT%H:%M:%S")) + ((. - $f) * 1000 | round | tostring | ".\("000"[length:])\(.)Z")'
}

# delivery_ack SECONDS ARG...: amp-ack at that time.
delivery_ack() {
  amp-ack "${@:2}" --state "$dir/delivery" --now "$(delivery_at "$1")" 2>>"$dir/err"
}

# delivery_begin MESSAGE: sent at 0.
delivery_begin() {
  sent=$dir/sent clock=1 answers=0
  printf '%s\n' "$1" >"$sent"
  : >"$dir/emitted"
  delivery_ack 0 track <"$sent" >/dev/null
}

# delivery_stage STAGE...: the receiver says so, one after the other.
delivery_stage() {
  local stage
  for stage; do
    clock=$(jq -n "$clock + 1") answers=$((answers + 1))
    "${protocol}_says" "$stage" "$answers" | delivery_ack "$clock" track >>"$dir/emitted"
  done
}

# delivery_pass SECONDS [OPTION...]: so long nothing happens, then what is due does.
delivery_pass() {
  clock=$(jq -n "$clock + $1")
  delivery_ack "$clock" sweep --silence 0 "${@:2}" >>"$dir/emitted"
}

# delivery_into STATE [delivered]: brings it there.
delivery_into() {
  local again=(--retries 3 --backoff "1000s,1000s")
  case $1 in
  SENT) ;;
  RECEIVED | READ | FULFILLED | REJECTED | FAILED) delivery_stage "$1" ;;
  TIMED_OUT) delivery_pass 21 ;;
  RETRYING)
    delivery_pass 21 "${again[@]}"
    [ "${2:-}" != delivered ] || delivery_pass 1001 "${again[@]}"
    ;;
  *) return 1 ;;
  esac
  [ "$(delivery_state)" = "$1" ]
}

# delivery_state: of the first attempt.
delivery_state() {
  delivery_status | jq -r .state
}
delivery_status() {
  amp-ack status --all --json --state "$dir/delivery" 2>>"$dir/err" |
    jq -c --arg id "$(jq -r '.message_id // .eventId' "$sent")" 'select(.msg_id == $id)'
}
delivery_dead() { amp-ack dead list --json --state "$dir/delivery" 2>>"$dir/err"; }

# register NAME [OPTION...]: an agent of the case.
register() {
  agent-registry register "$1" --state "$dir/delivery" --connector x:y "${@:2}" >/dev/null 2>>"$dir/err"
}

# given_agents JQ: registers the agents that this value of the case names, whatever form it has: a
# list of names or of objects, or an object by name. Who is unreachable misses a heartbeat, who is
# neither active nor that leaves again.
given_agents() {
  local name state type types
  local -a options
  jq -r "$1"' // empty
    | if type == "object" then to_entries | map({name: .key, value: .value})
      else map({name: ., value: "active"}) end
    | map(if (.name | type) == "object" then
        .value = .name | .name = (.name.agent_id // .name.id // .name.name) else . end)
    | map({name, state: (.value | if type == "object" then .status // .state // "active" else . end
                         | ascii_downcase),
           types: (.value | if type == "object" then
             [.modalities_supported // .modalities // .content_types // []] | flatten | join(" ") else "" end)})
    | sort_by(.state != "unreachable") | .[] | [.state, .name, .types] | join("\u001f")' <<<"$case" >"$dir/agents"
  while IFS=$'\x1f' read -r state name types; do
    options=()
    for type in $types; do options+=(--modality "$type"); done
    register "$name" "${options[@]}" || return 1
    case $state in
    active | ready | registered | online | running | runnable) ;;
    unreachable)
      agent-registry --interval 10ms --timeout 10ms --misses 1 --state "$dir/delivery" \
        heartbeat --emit --count 1 </dev/null >/dev/null 2>>"$dir/err"
      ;;
    *) agent-registry deregister "$name" --state "$dir/delivery" >/dev/null 2>>"$dir/err" ;;
    esac
  done <"$dir/agents"
}

# routed MESSAGE-FILE [OPTION...]: through amp-route to the agents of the case, a file for each.
# Leaves $dir/to (who got it, sorted), $dir/out (what was answered).
routed() {
  local agent name args=()
  while read -r agent; do
    name=$(jq -rn --arg a "$agent" '$a | @uri')
    args+=(--agent "$agent=file:$dir/got.$name")
  done < <(agent-registry list --json --state "$dir/delivery" 2>>"$dir/err" | jq -r .agent_id)
  amp-route --state "$dir/delivery" -r '* => agents' "${args[@]}" "${@:2}" <"$1" >"$dir/out" 2>>"$dir/err"
  find "$dir" -name 'got.*' -size +0 -printf '%f\n' | sed 's/^got\.//' | sort >"$dir/to"
}
# routed_code: of the answer, or of the error log where a line did not pass the checks.
routed_code() {
  jq -r '.code // .payload.code // .payload.error_code // .msg.payload.error_code // empty' "$dir/out" | head -n 1 | grep . ||
    jq -r 'select(.severity == "error") | .code' "$dir/delivery/error.ndjson" 2>/dev/null | tail -n 1
}
