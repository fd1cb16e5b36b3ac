#!/bin/bash
# Jobs a second through the durable queue (submit, claim, start, done; no process is started) beside
# SQLite alone doing the same, in batches of 1, 16 and 256 between two syncs. Both take turns in each
# of ROUNDS rounds on BENCH_DIR; the rates and the ratio are medians. Then the time of a pick among
# WAITING waiting jobs of 40 priorities, and of the first reading of their order.
set -euo pipefail
cd "$(dirname "$0")/.."
rounds=${ROUNDS:-5} n=${N:-4000} waiting=${WAITING:-100000}
work=$(mktemp -d "${BENCH_DIR:-/var/tmp}/amp-queue-XXXXXX")
trap 'rm -rf "$work"' EXIT
"${CC:-cc}" -O2 -std=gnu11 -D_GNU_SOURCE -Iinclude -Ilib -o "$work/queue" bench/queue.c \
  build/lib/libamp.a -lsqlite3 -lsodium -ljansson

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
measure pick "$waiting" | awk -v n="$waiting" '{
  printf "a pick among %d waiting jobs: %s us; reading their order at first: %s ms\n", n, $1, $2 }'
