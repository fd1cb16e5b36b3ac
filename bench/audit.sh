#!/bin/bash
# amp-ack audit --verify: megabytes of log in a second of processor time (user and system), in the page cache. The
# median of ROUNDS runs; the start of the program is included. Required: 300 MB/s.
set -euo pipefail
cd "$(dirname "$0")/.."
rounds=${ROUNDS:-7} n=${N:-40000}
work=$(mktemp -d "${BENCH_DIR:-/var/tmp}/amp-audit-XXXXXX")
trap 'rm -rf "$work"' EXIT
line='{"msg_id":"task_result-T-2026-044-%d","protocol_version":"AMP/1.0","type":"task_result","from":"executor",'
line+='"to":"coordinator","task_id":"T-2026-044","timestamp":"2026-02-26T14:32:07+00:00","requires_ack":true,"payload":'
line+='{"subtask_id":"T-2026-044-S1","completion_status":"complete","diff_summary":{"files_changed":["a.c"],"lines_added":6,'
line+='"lines_removed":2},"self_assessment":{"criteria_met":[true,null],"notes":["n"]},"work_log":[],"commit_hash":"a3f8d21"}}\n'
# shellcheck disable=SC2059 # the line is the format
for ((i = 1000000; i < 1000000 + n; i++)); do printf "$line" "$i"; done >"$work/in"
AMP_IDENTITY=off build/bin/amp-ack track --state "$work/state" <"$work/in" >"$work/out"
bytes=$(cat "$work"/state/log/0*.ndjson | wc -c)

TIMEFORMAT='%U %S'
for ((r = 0; r < rounds; r++)); do
  { time build/bin/amp-ack audit --state "$work/state" --verify >"$work/out"; } 2>&1
done | awk '{ print $1 + $2 }' | sort -g | awk -v b="$bytes" -v n="$n" -v middle=$((rounds / 2 + 1)) 'NR == middle {
  printf "%d messages, %.0f MB of log: %.0f MB/s (%.0f ms)\n", n, b / 1e6, b / 1e6 / $1, $1 * 1e3 }'
