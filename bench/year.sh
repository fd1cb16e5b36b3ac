#!/bin/bash
# A year of a state directory, with the clock of each day: N messages (default 10,000) that are recorded and
# acknowledged, T tasks (50) that the coordinator takes from their dispatch to "done", with 44 KB in run/ for each,
# and a sweep. Prints the size of the directory's parts each MONTH (30 days), in MB, and fails if the last half of
# the year needs a tenth more than the first. SEGMENT is the size of a segment (64 MiB): for a smaller N take a
# smaller one, so that as many days are in the log. DAYS changes the year, BENCH_DIR where the directory is
# (/var/tmp). It takes 2 to 4 s of a processor for each day, and 2 GB.
#
# Measured with the defaults, in a tmpfs, on 2 processors that other work used as well, in MB; at most 1262 in the
# first half of the year, 1259 in the second:
#
#   day     log   index   terms     run     all  segments  messages   tasks
#    30     781      28      48      63     922        13    307500    1500
#    60    1019      52      62      63    1198        16    386726    1900
#    90    1018      75      61      63    1220        16    376585    1850
#   120    1031      93      60      63    1250        17    364131    1800
#   180     989      93      58      63    1205        16    359093    1800
#   240    1011      93      59      63    1228        16    367678    1800
#   300    1037      93      61      63    1256        17    359272    1800
#   365    1012      93      59      63    1229        16    366820    1800
#
# The log is as large as it gets from day 60 on. The index has the keys of 90 days besides.
set -euo pipefail
cd "$(dirname "$0")/.."
PATH=$PWD/build/bin:$PATH
shim=$PWD/build/tests/fault/failclock.so
[ -e "$shim" ] || make -s "${shim#"$PWD/"}"
unset AMP_STATE AMP_AGENT AMP_IDENTITY
n=${N:-10000} t=${T:-50} days=${DAYS:-365} segment=${SEGMENT:-67108864}
work=$(mktemp -d "${BENCH_DIR:-/var/tmp}/amp-year-XXXXXX")
trap 'rm -rf "$work"' EXIT
cd "$work"
state=$work/state
mkdir -m 700 "$state"
printf '{"store":{"segment_bytes":%s}}\n' "$segment" >"$state/amp.json"
head -c 44000 /dev/zero >attempt

on_day() { env LD_PRELOAD="$shim" FAIL_CLOCK_SHIFT=$((day * 86400)) "$@"; }
# messages: those of the day, each with the acknowledgement that ends it; ten of each task, whose ids come again after 99,900.
messages() {
  awk -v n="$n" -v day="$day" 'BEGIN {
    for (i = 0; i < n; i++) {
      k = int((day * n + i) / 10)
      task = sprintf("T-%d-%03d", 1900 + int(k / 999) % 100, k % 999 + 1)
      id = sprintf("task_dispatch-%s-%d", task, day * n + i + 1)
      printf "{\"msg_id\":\"%s\",\"protocol_version\":\"AMP/1.0\",\"type\":\"task_dispatch\",\"from\":\"coordinator\",", id
      printf "\"to\":\"executor\",\"task_id\":\"%s\",\"timestamp\":\"2026-02-26T14:32:07Z\",\"requires_ack\":true,", task
      printf "\"ack_timeout_sec\":300,\"context_ref\":[],\"payload\":{\"description\":\"d\",\"repo\":\"/srv/r\","
      printf "\"branch\":\"b\",\"subtasks\":[{\"subtask_id\":\"%s-S1\",\"description\":\"s\",\"estimated_lines\":60}],", task
      printf "\"acceptance_criteria\":[\"tests pass\"],\"risk_level\":\"low\",\"forbidden_actions\":[],\"tech_constraints\":{}}}\n"
      printf "{\"protocol_version\":\"AMP/1.0\",\"type\":\"ack\",\"task_id\":\"%s\",\"ref_msg_id\":\"%s\",", task, id
      printf "\"from\":\"executor\",\"ack_stage\":\"FULFILLED\",\"timestamp\":\"2026-02-26T14:32:08Z\"}\n"
    }
  }'
}
# dispatches: the day's tasks.
dispatches() {
  awk -v t="$t" -v day="$day" 'BEGIN {
    for (i = 0; i < t; i++) {
      k = day * t + i
      id = sprintf("T-%04d-%03d", 2000 + int(k / 999), k % 999 + 1)
      printf "{\"msg_id\":\"task_dispatch-%s-1\",\"protocol_version\":\"AMP/1.0\",\"type\":\"task_dispatch\",", id
      printf "\"from\":\"admin\",\"to\":\"coordinator\",\"task_id\":\"%s\",\"timestamp\":\"2026-02-26T14:32:07Z\",", id
      printf "\"requires_ack\":true,\"context_ref\":[],\"payload\":{\"description\":\"Parse durations\",\"repo\":\"/srv/none\","
      printf "\"branch\":\"fix/%s\",\"subtasks\":[{\"subtask_id\":\"%s-S1\",\"description\":\"Several units\",", id, id
      printf "\"estimated_lines\":40}],\"acceptance_criteria\":[\"tests pass\"],\"risk_level\":\"low\"}}\n"
    }
  }'
}
# Tasks that are open at the end of its input are status 75.
coordinate() { on_day task-dispatch coordinate --state "$state" 2>>errors || [ $? -eq 75 ]; }
# answers TYPE: what the agents say to the lines on standard input, with the acknowledgements of these lines.
answers() {
  jq -c --arg type "$1" '
    def reply($from; $kind; $payload): {msg_id: "\($kind)-\(.task_id)-1", protocol_version, type: $kind, from: $from,
      to: "coordinator", task_id, timestamp, requires_ack: true, context_ref: [.msg_id], payload: $payload};
    (.msg // .) | select(.type == $type) |
    {protocol_version, type: "ack", task_id, ref_msg_id: .msg_id, from: .to, ack_stage: "FULFILLED", timestamp},
    if $type == "task_dispatch" then reply("executor"; "task_result"; {subtask_id: .payload.subtasks[0].subtask_id,
      completion_status: "complete", diff_summary: {files_changed: ["a.c"], lines_added: 1, lines_removed: 0},
      self_assessment: {criteria_met: [true], notes: ["n"]}, work_log: [{timestamp, action: "edit", file: "a.c", detail: "d"}],
      commit_hash: "aaaaaaa1"})
    else reply("reviewer"; "review_verdict"; {decision: "approved", confidence: 0.95,
      criteria_results: [{criterion: "tests pass", passed: true, evidence: "e"}]}) end'
}
megabytes() { du -sk --apparent-size "$@" 2>/dev/null | awk '{ s += $1 } END { printf "%d", s / 1024 + 0.5 }'; }

printf '%5s %7s %7s %7s %7s %7s %9s %9s %7s\n' day log index terms run all segments messages tasks
first=0 last=0
for ((day = 0; day < days; day++)); do
  messages | on_day amp-ack --state "$state" >/dev/null
  dispatches | coordinate >dispatched
  answers task_dispatch <dispatched | tee results | coordinate >requests
  answers review_request <requests | coordinate >said
  mapfile -t dirs < <(jq -r --arg run "$state/run/" 'select(.type == "task_result") | $run + .task_id' results)
  mkdir -p "${dirs[@]/%//a}"
  tee "${dirs[@]/%//a/work}" <attempt >/dev/null
  touch -d "+$day days" "${dirs[@]/%//a}" "${dirs[@]}"
  on_day amp-ack sweep --state "$state" >/dev/null
  if [ $((day % 10)) -eq 9 ]; then
    all=$(megabytes "$state")
    if [ "$day" -lt $((days / 2)) ]; then first=$((all > first ? all : first)); else last=$((all > last ? all : last)); fi
  fi
  if [ $((day % 30)) -eq 29 ] || [ "$day" -eq $((days - 1)) ]; then
    printf '%5s %7s %7s %7s %7s %7s %9s %9s %7s\n' $((day + 1)) "$(megabytes "$state/log")" \
      "$(megabytes "$state"/index*)" "$(megabytes "$state/terms")" "$(megabytes "$state/run")" "$(megabytes "$state")" \
      "$(find "$state/log" -name '*.ndjson' | wc -l)" \
      "$(on_day amp-ack status --state "$state" --json | jq '[.messages[]] | add')" \
      "$(find "$state/tasks" -name '*.json' | wc -l)"
  fi
done
amp-ack audit --verify --state "$state"
echo "at most $first MB in the first half, $last MB in the second"
[ "$last" -le $((first + first / 10 + 1)) ] || { echo "the directory grows" >&2; exit 1; }
