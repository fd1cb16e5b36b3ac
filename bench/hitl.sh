#!/bin/bash
# hitl-prompt: N open questions are listed; the time from the start of `hitl-prompt answer` to the decision in the output
# of a running filter (its start is included), the median of ROUNDS. Required: at most 50 ms.
set -euo pipefail
cd "$(dirname "$0")/.."
rounds=${ROUNDS:-21} n=${N:-1000}
work=$(mktemp -d "${BENCH_DIR:-/var/tmp}/amp-hitl-XXXXXX")
filter=
trap '[ -z "$filter" ] || kill "$filter" 2>/dev/null; rm -rf "$work"' EXIT
export AMP_IDENTITY=off AMP_STATE=$work/state XDG_CONFIG_HOME=$work LC_ALL=C
line='{"message_id":"00000000-0000-4000-8000-00000000%04d","producer_id":"sched","correlation_id":'
line+='"7f3f41a2-2017-4b8f-9b8b-2ad3caaee001","sequence_number":%d,"retry_count":0,"message_type":"HITL_INVOCATION",'
line+='"content_type":"application/json","payload":{"invocation_id":"q%04d","reason_type":"CONFLICT"},"content_length":51}\n'
# shellcheck disable=SC2059 # the line is the format
for ((i = 1; i <= n; i++)); do printf "$line" "$i" "$i" "$i"; done >"$work/in"
: >"$work/none"
build/bin/hitl-prompt --answer "$work/none" <"$work/in" >"$work/out" 2>/dev/null || true
ms() { echo $(((${EPOCHREALTIME/./} - $1) / 1000)); }
start=${EPOCHREALTIME/./}
listed=$(build/bin/hitl-prompt list --json 2>/dev/null | wc -l)
echo "$listed open questions listed: $(ms "$start") ms"

# The filter reads a FIFO that stays open, and writes to one that this script reads.
mkfifo "$work/in.fifo" "$work/out.fifo" "$work/answers"
exec 5<>"$work/in.fifo" 6<>"$work/answers" 7<>"$work/out.fifo"
build/bin/hitl-prompt --in "$work/in.fifo" --answer "$work/answers" >&7 2>/dev/null &
filter=$!
build/bin/hitl-prompt answer q0001 approve >/dev/null 2>&1
read -r -t 10 _ <&7 || true
for ((r = 2; r < rounds + 2; r++)); do
  start=${EPOCHREALTIME/./}
  build/bin/hitl-prompt answer "$(printf 'q%04d' "$r")" approve >/dev/null 2>&1
  read -r -t 10 _ <&7
  echo $((${EPOCHREALTIME/./} - start))
done | sort -n | awk -v n="$listed" '{ v[NR] = $1 }
  END { printf "answer to effect, %d open: median %.1f ms, worst %.1f ms\n", n, v[int(NR / 2) + 1] / 1e3, v[NR] / 1e3 }'
