#!/bin/bash
# Jobs a second through the durable queue (submit, claim, start, done; no process is started) beside
# SQLite alone doing the same, in batches of 1, 16 and 256 between two syncs. Both take turns in each
# of ROUNDS rounds on BENCH_DIR; the rates and the ratio are medians. The processor time of a job is
# measured in /dev/shm, where a sync costs nothing. Then WAITING waiting jobs of 40 priorities: a pick,
# the first reading of their order, jobs that all wait for others, and the verbs.
set -euo pipefail
cd "$(dirname "$0")/.."
rounds=${ROUNDS:-5} n=${N:-4000} waiting=${WAITING:-100000}
work=$(mktemp -d "${BENCH_DIR:-/var/tmp}/amp-queue-XXXXXX")
trap 'rm -rf "$work"' EXIT
"${CC:-cc}" -O2 -std=gnu11 -D_GNU_SOURCE -Iinclude -Ilib -o "$work/queue" bench/queue.c \
  build/lib/libamp.a -lsqlite3 -lsodium -ljansson -lpcre2-8 -lm

measure() { # WHAT ARGS…
  rm -rf "$work/d"
  mkdir -m 700 "$work/d"
  "$work/queue" "$1" "$work/d" "${@:2}"
}

printf '%5s %12s %12s %7s %14s %14s\n' batch queue SQLite ratio submissions claims
for batch in 1 16 256; do
  c=$((batch == 1 ? n / 4 : n))
  for ((r = 0; r < rounds; r++)); do
    echo "$(measure queue $c $batch) $(measure sqlite $c $batch)"
  done | awk '{ print $1, $4, $1 / $4, $2, $3 }' | sort -g -k 3 |
    awk -v batch=$batch -v middle=$((rounds / 2 + 1)) 'NR == middle {
      printf "%5d %12d %12d %7.2f %14d %14d\n", batch, $1, $2, $3, $4, $5 }'
done
cpu() { # KIND: microseconds of processor time for a job, one by one
  local dir
  dir=$(mktemp -d /dev/shm/amp-queue-XXXXXX)
  local TIMEFORMAT='%U %S'
  { time "$work/queue" "$1" "$dir" "$n" 1 >/dev/null; } 2>&1 | awk -v n="$n" '{ print ($1 + $2) * 1e6 / n }'
  rm -rf "$dir"
}
for ((r = 0; r < rounds; r++)); do echo "$(cpu queue) $(cpu sqlite)"; done | awk '{ print $1, $2, $1 / $2 }' |
  sort -g -k 3 | awk -v middle=$((rounds / 2 + 1)) 'NR == middle {
    printf "processor time of a job, one by one: %.0f us; SQLite: %.0f us (%.2f)\n", $1, $2, $3 }'
measure pick "$waiting" | awk -v n="$waiting" '{
  printf "a pick among %d waiting jobs: %s us; reading their order at first: %s ms, %s MiB\n", n, $1, $2, $3 }'
for scopes in 1000 "$waiting"; do
  measure blocked "$waiting" "$scopes" | awk -v n="$waiting" -v s="$scopes" '{
    printf "%d jobs with %d scopes behind 8 jobs at work: a look for one that can start: %s ms, again %s ms; the place of one: %s ms; of all: %s ms\n",
      n, s, $1, $2, $3, $4 }'
done
measure waiting "$waiting" >"$work/last"
verb() { # WHAT COMMAND...: its processor time
  local TIMEFORMAT='%U %S'
  { time AMP_IDENTITY=off build/bin/task-queue "${@:2}" --state "$work/d" >/dev/null 2>&1; } 2>&1 |
    awk -v what="$1" '{ printf "%s: %.0f ms of processor time\n", what, ($1 + $2) * 1e3 }'
}
verb "list --json of $waiting jobs" list --json
verb 'cancel of one of them' cancel "$(cat "$work/last")"
