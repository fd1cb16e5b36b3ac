#!/bin/bash
# Look-ups in a state directory of N messages (default 1,000,000; ten of each task), of which no
# segment is removed: opening the directory (`amp-ack` without input), also as the first command of a
# boot (without log/watermark, which is valid for one boot), with its files not in the page cache,
# and after a writer was killed; `amp-ack log` of one id and of one task, early, in the middle and at
# the end; `amp-ack status`; and, after a writer was killed, every verb that looks. Beside them SQLite alone reads the same row by its key, and `amp-ack`
# opens an empty directory. Figures are means of RUNS runs: milliseconds, those of the processor, and
# the largest resident memory in KiB. A million messages take 1.7 GB in BENCH_DIR, and a minute or
# two. HISTORY_DIR names a directory that is kept, and used again.
#
# Measured on 2 processors that others used as well, so in ms of the processor (largest memory in MiB):
#
#                                       1,000,000    10,000,000
# open                                  2.4 (5.7)    2.4 (5.6)
# open, first of a boot                 2.8 (5.6)    2.3 (5.6)   before checksums of pages: 8,324 (24)
# the same from the disk, in all        5.0          3.2 to 15
# log --id                              6.0 (7.7)    11 (6.2)
# log --task                            7.2 (7.6)    14 to 31 (6.2)
# status                                3.6 (6.1)    3.8 (6.1)
# amp-top --once                        11 (7)            when deadlines were counted one by one: 213 (24)
# open after kill -9                    9 to 14 (8)  5 to 10 (7)
# on disk (MB): log                     1,414        14,226
#   index.db, index.db-sums, terms      171, 1, 98   1,742, 4, 973
set -euo pipefail
cd "$(dirname "$0")/.."
PATH=$PWD/build/bin:$PATH
unset AMP_STATE
n=${1:-${N:-1000000}} runs=${RUNS:-20}
work=$(mktemp -d "${BENCH_DIR:-/var/tmp}/amp-history-XXXXXX")
trap 'rm -rf "$work"' EXIT
state=${HISTORY_DIR:-$work/state}
places=($((n / 100)) $((n / 2)) "$n")
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
  mkdir -m 700 "$state"
  echo '{"store":{"keep_segments":1000000}}' >"$state/amp.json"
  messages | amp-ack --state "$state" >/dev/null
  echo "$n messages recorded in $((SECONDS - began)) s"
fi
found=$(amp-ack status --state "$state" --json | jq '[.messages[]] | add')
[ "$found" -ge "$n" ] || { echo "the directory has $found messages" >&2; exit 1; }
for part in log index.db index.db-sums terms; do
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
for k in 1 2 3; do
  rm -f "$state/log/watermark"
  measure "open, first of a boot, round $k" 1 amp-ack --state "$state"
done
# The files that opening reads: their pages leave the page cache.
forget() {
  local file segments=("$state"/log/*.ndjson)
  for file in "$state"/index.db* "${segments[-1]}"; do
    dd of="$file" oflag=nocache conv=notrunc,fdatasync count=0 status=none
  done
}
for k in 1 2 3; do
  forget
  rm -f "$state/log/watermark"
  measure "the same from the disk, round $k" 1 amp-ack --state "$state"
done
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
# A writer of other messages is killed; the next one would bring the index up.
mkfifo "$work/in"
for k in 1 2 3; do
  amp-ack --state "$state" <"$work/in" >/dev/null &
  exec {feed}>"$work/in"
  (n=$((20000 + 5003 * k)) && messages) |
    sed -E 's/("msg_id":"[^"]*)"/\1'"$((RANDOM + 10000))"'"/' >&"$feed"
  kill -9 $!
  wait $! 2>/dev/null || :
  exec {feed}>&-
  printf '%s: ' "$(stat -c 'write-ahead log of %s bytes' "$state/index.db-wal")"
  measure "open after kill -9" 5 amp-ack --state "$state"
done
# Every verb that looks, each behind a writer of its own that was killed.
looks=("task-dispatch list" "task-dispatch list --all" "task-dispatch show T-2000-001"
  "task-queue list" "task-queue status" "amp-ack status" "amp-ack cursors list" "amp-ack dead list"
  "amp-route inbox executor --list" "agent-registry list" "agent-registry show executor"
  "hitl-prompt list" "hitl-prompt audit" "worktree-bind list" "amp-ack log --limit 1" "amp-top --once")
for look in "${looks[@]}"; do
  amp-ack --state "$state" <"$work/in" >/dev/null &
  exec {feed}>"$work/in"
  (n=20000 && messages) | sed -E 's/("msg_id":"[^"]*)"/\1'"$RANDOM$RANDOM"'"/' >&"$feed"
  kill -9 $!
  wait $! 2>/dev/null || :
  exec {feed}>&-
  # Some end with 1, as there is nothing to show.
  # shellcheck disable=SC2086
  measure "killed: $look" 1 sh -c '"$@" || [ $? -le 1 ]' look $look --state "$state"
done
