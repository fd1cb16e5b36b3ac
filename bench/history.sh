#!/bin/bash
# Look-ups in a state directory of N messages (default 1,000,000; ten of each task): `amp-ack log` of
# one id and of one task, early (retention removes the first segment), in the middle and at the end,
# `amp-ack status`, opening the
# directory (`amp-ack` without input), and the first command after a boot (without log/watermark,
# which is valid for one boot). Beside them SQLite alone reads the same row by its key, and `amp-ack`
# opens an empty directory. Figures are means of RUNS runs: milliseconds, those of the processor, and
# the largest resident memory in KiB. A million messages take 1.8 GB in BENCH_DIR. HISTORY_DIR names
# a directory that is kept, and used again.
set -euo pipefail
cd "$(dirname "$0")/.."
PATH=$PWD/build/bin:$PATH
unset AMP_STATE
n=${1:-${N:-1000000}} runs=${RUNS:-20}
work=$(mktemp -d "${BENCH_DIR:-/var/tmp}/amp-history-XXXXXX")
trap 'rm -rf "$work"' EXIT
state=${HISTORY_DIR:-$work/state}
places=($((n / 4)) $((n / 2)) "$n")
"${CC:-cc}" -O2 -o "$work/measure" bench/measure.c

task_of() { # task_of I: the task of message I
  local k=$((($1 - 1) / 10))
  printf 'T-%04d-%03d' $((2000 + k / 999)) $((k % 999 + 1))
}
messages() {
  awk -v n="$n" 'BEGIN {
    for (i = 1; i <= n; i++) {
      k = int((i - 1) / 10)
      t = sprintf("T-%04d-%03d", 2000 + int(k / 999), k % 999 + 1)
      printf "{\"msg_id\":\"task_dispatch-%s-%d\",\"protocol_version\":\"AMP/1.0\",", t, i
      printf "\"type\":\"task_dispatch\",\"from\":\"coordinator\",\"to\":\"executor\","
      printf "\"task_id\":\"%s\",\"timestamp\":\"2026-02-26T14:32:07Z\",", t
      printf "\"requires_ack\":true,\"ack_timeout_sec\":300,\"context_ref\":[],"
      printf "\"payload\":{\"description\":\"d\",\"repo\":\"/srv/r\",\"branch\":\"feature/b\","
      printf "\"subtasks\":[{\"subtask_id\":\"%s-S1\",\"description\":\"s\",", t
      printf "\"estimated_lines\":60}],\"acceptance_criteria\":[\"tests pass\"],"
      printf "\"risk_level\":\"low\",\"forbidden_actions\":[],\"tech_constraints\":{}}}\n"
    }
  }'
}
measure() { # measure NAME RUNS COMMAND…
  local ms kib cpu
  read -r ms kib cpu < <("$work/measure" /dev/null "${@:2}")
  printf '%-34s %10s %10s %10s\n' "$1" "$ms" "$cpu" "$kib"
}

if [ ! -d "$state/log" ]; then
  began=$SECONDS
  messages | amp-ack --state "$state" >/dev/null
  echo "$n messages recorded in $((SECONDS - began)) s"
fi
found=$(amp-ack status --state "$state" --json | jq '[.messages[]] | add')
[ "$found" = "$n" ] || { echo "the directory has $found messages" >&2; exit 1; }
for part in log index.db terms; do
  echo "$part: $(du -sm "$state/$part" | cut -f1) MB"
done
# That the answers are there.
for i in "${places[@]}"; do
  t=$(task_of "$i")
  [ "$(amp-ack log --state "$state" --id "task_dispatch-$t-$i" | jq -r .id)" = "task_dispatch-$t-$i" ]
  [ "$(amp-ack log --state "$state" --task "$t" | wc -l)" -ge 1 ]
done

printf '\n%-34s %10s %10s %10s\n' "" ms "cpu ms" KiB
mkdir -m 700 "$work/empty"
amp-ack --state "$work/empty" </dev/null >/dev/null
measure "open an empty directory" "$runs" amp-ack --state "$work/empty"
measure "open" "$runs" amp-ack --state "$state"
for i in "${places[@]}"; do
  t=$(task_of "$i")
  measure "log --id, message $i" "$runs" amp-ack log --state "$state" --id "task_dispatch-$t-$i"
  measure "log --task of it" "$runs" amp-ack log --state "$state" --task "$t"
done
measure "status" "$runs" amp-ack status --state "$state"
if command -v sqlite3 >/dev/null; then
  key=$(sqlite3 -readonly "$state/index.db" \
    "SELECT key FROM rec WHERE key>='message.' AND key LIKE '%-$((n / 2))' AND key<'message/' LIMIT 1")
  measure "SQLite alone, the row of the id" "$runs" sqlite3 -readonly "$state/index.db" \
    "SELECT * FROM rec WHERE key='$key'"
fi
for k in 1 2; do
  rm -f "$state/log/watermark"
  measure "first command of a boot, round $k" 1 amp-ack status --state "$state"
done
