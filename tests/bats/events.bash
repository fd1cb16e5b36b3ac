# Events of the Runtime Protocol: a task of one agent, exec, and what is said of it.

# ev KIND PAYLOAD [JQ]: an event with a number and an id of its own, counted in the file n, as the events are
# made in subshells. Edited by a jq filter.
ev() {
  local n line payload=${2//$'\n'/}
  n=$(($(<n) + 1))
  echo "$n" >n
  line="{\"eventId\":\"evt_$n\",\"seq\":$n,\"kind\":\"$1\",\"sourceNodeId\":\"node\",\"sourceAgentId\":\"exec\",\"corrId\":\"c\","
  edited "$line\"createdAt\":\"2026-02-25T16:22:10.123Z\",\"payload\":$payload,\"trace\":{\"attempt\":1}}" "${3-}"
}
accept() { ev task_accept '{"taskId":"t","acceptedByAgentId":"exec","etaSeconds":60}' "$@"; }
update() { ev task_update '{"taskId":"t","status":"in_progress","progress":5}' "$@"; }
complete() {
  ev task_complete '{"taskId":"t","completedByAgentId":"exec","resultSummary":"r","completedAt":"2026-02-25T16:25:00Z"}' "$@"
}
fail() {
  ev task_failed '{"taskId":"t","failedByAgentId":"exec","failureClass":"timeout","errorSummary":"e",'\
'"failedAt":"2026-02-25T16:25:00Z"}' "$@"
}
