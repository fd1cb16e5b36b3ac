#!/bin/bash
# Durable commits a second: a bare append with fdatasync, the store, `amp-ack track`, and SQLite alone
# with synchronous=FULL in both journal modes; batches of 1 and 16, 1 and 4 processes. Disks are moody,
# so all of them take turns in each of ROUNDS rounds, and the ratios are medians of the rounds' own.
# "share" is how far the slowest process was when the fastest had done (1 is fair).
set -euo pipefail
cd "$(dirname "$0")/.."
PATH=$PWD/build/bin:$PATH
unset AMP_STATE
rounds=${ROUNDS:-5} n=${N:-160}
work=$(mktemp -d "${BENCH_DIR:-/var/tmp}/amp-durable-XXXXXX")
trap 'rm -rf "$work"' EXIT
"${CC:-cc}" -O2 -std=gnu11 -D_GNU_SOURCE -Iinclude -Ilib -o "$work/durable" bench/durable.c \
  build/lib/libamp.a -lsqlite3 -lsodium

kinds=(bare store track wal delete)
[ -x build/bin/amp-ack ] || kinds=(bare store wal delete)
for ((r = 0; r < rounds; r++)); do
  for p in 1 4; do
    for b in 1 16; do
      for k in "${kinds[@]}"; do
        rm -rf "$work/d"
        mkdir -m 700 "$work/d"
        printf '%s %s %s %s %s\n' "$r" "$p" "$b" "$k" "$("$work/durable" "$k" "$work/d" "$p" "$b" "$n")"
      done
    done
  done
done >"$work/raw"

# A round's ratio to bare, to wal and to delete; medians over the rounds.
awk '
  { rate[$2, $3, $4, $1] = $5; share[$2, $3, $4, $1] = $7 ? $6 / $7 : 0; if ($1 > last) last = $1 }
  function median(v, n,   i, j, t) {
    for (i = 1; i < n; i++)
      for (j = i; j > 0 && v[j] < v[j - 1]; j--) { t = v[j]; v[j] = v[j - 1]; v[j - 1] = t }
    return v[int(n / 2)]
  }
  function ratio(p, b, k, to,   r, v) {
    for (r = 0; r <= last; r++) v[r] = rate[p, b, to, r] ? rate[p, b, k, r] / rate[p, b, to, r] : 0
    return median(v, last + 1)
  }
  function middle(from, p, b, k,   r, v) {
    for (r = 0; r <= last; r++) v[r] = from[p, b, k, r]
    return median(v, last + 1)
  }
  END {
    printf "%9s %5s  %-6s %10s %7s %10s %13s %6s\n", "processes", "batch", "", "commits/s", "/ bare",
      "/ SQLite WAL", "/ SQLite DEL", "share"
    split("1 4", ps); split("1 16", bs); nk = split(kinds, ks)
    for (i = 1; i <= 2; i++) for (j = 1; j <= 2; j++) for (k = 1; k <= nk; k++)
      printf "%9d %5d  %-6s %10.0f %7.2f %12.2f %13.2f %6.2f\n", ps[i], bs[j], ks[k],
        middle(rate, ps[i], bs[j], ks[k]), ratio(ps[i], bs[j], ks[k], "bare"),
        ratio(ps[i], bs[j], ks[k], "wal"), ratio(ps[i], bs[j], ks[k], "delete"),
        middle(share, ps[i], bs[j], ks[k])
  }' kinds="${kinds[*]}" "$work/raw"
