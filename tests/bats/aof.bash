# A data directory of AOF/1, its tasks and messages, without jq.

fail() { echo "$*" >&2; false; }
# task STATUS ID [LINE...]: a task file with these lines in its front matter.
task() {
  local path=$D/tasks/$1/$2.md
  [ -d "${path%/*}" ] || mkdir -p "${path%/*}"
  { printf -- '---\nid: %s\nstatus: %s\n' "$2" "$1"
    [ $# -lt 3 ] || printf '%s\n' "${@:3}"
    printf -- '---\n\n# Task %s\n' "$2"; } >"$path"
}
# at TASK: the folders that it is in.
at() {
  local f
  f=$(cd "$D/tasks" && echo */"$1".md)
  f=${f//\/$1.md/}
  [ "$f" = '*' ] || echo "$f"
}
# message TYPE TASK FROM PAYLOAD: the members of the payload besides taskId.
message() {
  printf '{"protocol":"aof","version":1,"type":"%s","taskId":"%s","fromAgent":"%s","toAgent":"aof","sentAt":"2026-02-09T21:00:00.000Z","payload":{"taskId":"%s",%s}}\n' \
    "$1" "$2" "$3" "$2" "$4"
}
# report TASK FROM OUTCOME, update TASK FROM MEMBERS, request CHILD PARENT FROM TO
report() {
  message completion.report "$1" "$2" "\"outcome\":\"$3\",\"summaryRef\":\"outputs/summary.md\",\"deliverables\":[\"src/foo.ts\"],\"tests\":{\"total\":2,\"passed\":2,\"failed\":0},\"blockers\":[],\"notes\":\"n\""
}
update() { message status.update "$1" "$2" "\"agentId\":\"$2\",$3"; }
request() {
  message handoff.request "$1" "$3" "\"parentTaskId\":\"$2\",\"fromAgent\":\"$3\",\"toAgent\":\"$4\",\"acceptanceCriteria\":[\"All tests pass\"],\"expectedOutputs\":[\"tests/report.md\"],\"contextRefs\":[\"x.md\"],\"constraints\":[\"No new dependencies\"],\"dueBy\":\"2026-02-10T12:00:00.000Z\""
}
aof() { aof-board --data-dir "$D" "$@"; }
aof_poll() { aof-board poll --data-dir "$D" "$@"; }
# events TYPE TASK: how many such events the log has.
events() { grep -c "\"type\":\"$1\".*\"taskId\":\"$2\"" "$D/events.ndjson" || true; }
# beat TASK EXPIRES: a heartbeat.
beat() {
  mkdir -p "$D/runs/$1"
  printf '{"taskId":"%s","agentId":"ann","lastHeartbeat":"2026-01-01T00:00:00.000Z","beatCount":1,"expiresAt":"%s"}\n' "$1" "$2" \
    >"$D/runs/$1/run_heartbeat.json"
}
# result TASK OUTCOME: a run_result.json.
result() {
  mkdir -p "$D/runs/$1"
  printf '{"taskId":"%s","agentId":"ann","completedAt":"2026-02-09T21:10:00.000Z","outcome":"%s","summaryRef":"outputs/summary.md","handoffRef":"outputs/handoff.md","deliverables":[],"tests":{"total":1,"passed":1,"failed":0},"blockers":[],"notes":"n"}\n' \
    "$1" "$2" >"$D/runs/$1/run_result.json"
}
