# Messages of different urgency, and their order.

# control N PRIORITY: a command of SW4RM's scheduler.
control() {
  local payload="{\"command\":\"RUN\",\"agent_id\":\"ann\",\"priority\":$2}"
  printf '{"message_id":"%08d-0000-4000-8000-000000000000","producer_id":"scheduler",' "$1"
  printf '"correlation_id":"c","sequence_number":%d,"retry_count":0,"message_type":"CONTROL",' "$1"
  printf '"content_type":"application/json","content_length":%d,"payload":%s}\n' ${#payload} "$payload"
}

# task N PRIORITY CORRELATION: a task of the Runtime Protocol.
task() {
  printf '{"eventId":"evt-%s","seq":%d,"kind":"task_create","sourceNodeId":"n","sourceAgentId":"a","toAgentId":"b",' "$1" "$1"
  printf '"corrId":"%s","createdAt":"2026-02-25T16:22:10.123Z","payload":{"taskId":"tsk-%s","title":"t",' "$3" "$1"
  printf '"description":"d","toAgents":["b"],"priority":"%s","requesterAgentId":"a","responseRequired":true},' "$2"
  printf '"trace":{"attempt":1,"routingPolicyVersion":"r","capabilityPolicyVersion":"c"}}\n'
}

# numbers FILE: the numbers of the messages, in their order.
numbers() {
  jq -r '.sequence_number // .seq' "$1" | paste -sd' '
}
