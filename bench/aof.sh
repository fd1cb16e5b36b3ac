#!/bin/bash
# aof-board: one poll of a data directory with N tasks in progress, and one that gives out a task of N in ready;
# wall and processor time, the best of ROUNDS. Required: at most 1 s for a poll of 100,000 tasks on a quiet machine. Then
# the rate of messages, each of which is a change on disk.
set -euo pipefail
cd "$(dirname "$0")/.."
n=${N:-100000} rounds=${ROUNDS:-5} messages=${MESSAGES:-500}
work=$(mktemp -d "${BENCH_DIR:-/var/tmp}/amp-aof-XXXXXX")
trap 'rm -rf "$work"' EXIT
export AMP_IDENTITY=off XDG_CONFIG_HOME=$work LC_ALL=C AMP_CONFINE=off
unset AMP_CONFIG AMP_STATE
D=$work/data
mkdir -p "$D"/tasks/{ready,in-progress} "$D/runs"
beat='{"taskId":"%s","agentId":"ann","lastHeartbeat":"2026-01-01T00:00:00.000Z","beatCount":1,"expiresAt":"2999-01-01T00:00:00.000Z"}\n'
for ((i = 0; i < n; i++)); do printf "$D/runs/TASK-2026-02-09-%08d\n" "$i"; done | xargs mkdir
for ((i = 0; i < n; i++)); do
  printf -v id 'TASK-2026-02-09-%08d' "$i"
  printf -- '---\nid: %s\ntitle: one of many\npriority: normal\nrouting:\n  agent: ann\n---\n\ntext\n' "$id" >"$D/tasks/in-progress/$id.md"
  # shellcheck disable=SC2059 # the heartbeat is the format
  printf "$beat" "$id" >"$D/runs/$id/run_heartbeat.json"
done
TIMEFORMAT='%R %U %S'
# best WHAT COMMAND...: the fastest of the rounds.
best() {
  local what=$1 r
  shift
  for ((r = 0; r < rounds; r++)); do
    { time "$@" >"$work/out" 2>"$work/err"; } 2>&1
  done | sort -n | awk -v what="$what" 'NR == 1 { printf "%s: %.2f s, %.2f s of processor time\n", what, $1, $2 + $3 }'
}
best "poll of $n tasks in progress" build/bin/aof-board poll --data-dir "$D"
grep -q "\"inProgress\":$n,\"stale\":0" "$work/out"
# The same tasks in ready: COUNT of them name an agent and are given out, one after the other.
count=20
mv "$D/tasks/in-progress" "$D/tasks/all"
rm -r "$D/tasks/ready"
mv "$D/tasks/all" "$D/tasks/ready"
once() { { time "$@" >"$work/out" 2>"$work/err"; } 2>&1 | awk -v n="$count" '{ printf "%d tasks given out, of many in ready: %.2f s, %.2f s of processor time\n", n, $1, $2 + $3 }'; }
find "$D/tasks/ready" -name '*.md' | tail -n +$((count + 1)) | xargs sed -i '/^routing/d; /^  agent/d'
sync -f "$D" # what was just written is not to be measured
once build/bin/aof-board poll --data-dir "$D" --exec true
[ "$(grep -c '"dispatch.matched"' "$work/out")" -eq $count ]
# Messages, each of which is a change on disk.
for ((i = 0; i < messages; i++)); do
  printf '{"protocol":"aof","version":1,"type":"status.update","taskId":"TASK-2026-02-09-%08d","fromAgent":"ann","toAgent":"aof","sentAt":"2026-02-09T21:00:00.000Z","payload":{"taskId":"TASK-2026-02-09-%08d","agentId":"ann","progress":"half"}}\n' "$((i + 100))" "$((i + 100))"
done >"$work/messages"
{ time build/bin/aof-board --data-dir "$D" <"$work/messages" >"$work/out"; } 2>&1 | awk -v n="$messages" '{ printf "%d messages: %.0f a second, %.2f ms of processor time each\n", n, n / $1, ($2 + $3) * 1000 / n }'
