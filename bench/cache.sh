#!/bin/bash
# What the store's cache gains: commits a second of four writers with it and without, in batches of 1
# and 16, in memory (SHM_DIR) and on a disk (BENCH_DIR). Runs with and without take turns; "gain" is
# the median of the ROUNDS ratios. What gains less than 20 % everywhere does not belong there;
# lib/message/store/cache/cache.h says what was measured last.
set -euo pipefail
cd "$(dirname "$0")/.."
rounds=${ROUNDS:-7} n=${N:-16000}
memory=$(mktemp -d "${SHM_DIR:-/dev/shm}/amp-cache-XXXXXX")
disk=$(mktemp -d "${BENCH_DIR:-/var/tmp}/amp-cache-XXXXXX")
trap 'rm -rf "$memory" "$disk"' EXIT
"${CC:-cc}" -O2 -std=gnu11 -D_GNU_SOURCE -Iinclude -Ilib -o "$disk/durable" bench/durable.c \
  build/lib/libamp.a -lsqlite3 -lsodium

rate() { # WHAT DIR BATCH
  local out
  rm -rf "$2/d"
  mkdir -m 700 "$2/d"
  out=$("$disk/durable" "$1" "$2/d" 4 "$3" $(($3 == 1 ? n / 8 : n)))
  echo "${out% *}"
}

printf '%-8s %5s %12s %12s %7s\n' where batch with without gain
for where in memory disk; do
  for batch in 1 16; do
    for ((r = 0; r < rounds; r++)); do
      echo "$(rate store "${!where}" $batch) $(rate no-cache "${!where}" $batch)"
    done | awk '{ print $1, $2, $1 / $2 }' | sort -g -k 3 |
      awk -v where=$where -v batch=$batch -v middle=$((rounds / 2 + 1)) 'NR == middle {
        printf "%-8s %5d %12d %12d %6.0f%%\n", where, batch, $1, $2, ($3 - 1) * 100 }'
  done
done
