#!/bin/bash
# Durable commits a second: a bare append with fdatasync, the store, `amp-ack track`, and SQLite alone
# with synchronous=FULL in both journal modes; batches of 1 and 16, 1 and 4 processes; on this disk as
# it is, and with each sync 1 ms longer for all of them (bench/slowsync.c). Disks are moody, so all
# take turns in each of ROUNDS rounds, and the ratios are medians of the rounds' own. "share" is how
# far the slowest process was when the fastest had done, in parts of the average (1 is fair). N
# commits of each process, and in batches 32 N of all of them together, are enough that making the
# files and leaving them weighs little. The last table compares with what is asked for; it is for
# reading, the status does not tell.
set -euo pipefail
cd "$(dirname "$0")/.."
PATH=$PWD/build/bin:$PATH
unset AMP_STATE
rounds=${ROUNDS:-5} n=${N:-2000}
work=$(mktemp -d "${BENCH_DIR:-/var/tmp}/amp-durable-XXXXXX")
trap 'rm -rf "$work"' EXIT
cc=${CC:-cc}
"$cc" -O2 -std=gnu11 -D_GNU_SOURCE -Iinclude -Ilib -o "$work/durable" bench/durable.c \
  build/lib/libamp.a -lsqlite3 -lsodium
"$cc" -O2 -std=gnu11 -D_GNU_SOURCE -shared -fPIC -o "$work/slowsync.so" bench/slowsync.c -ldl

measure() { # SYNC_US ARGS…: one measurement in a fresh directory
  rm -rf "$work/d" "$work/d-bare"
  mkdir -m 700 "$work/d"
  if [ "$1" = 0 ]; then
    "$work/durable" "$2" "$work/d" "${@:3}"
  else
    AMP_SYNC_US=$1 LD_PRELOAD=$work/slowsync.so "$work/durable" "$2" "$work/d" "${@:3}"
  fi
}

kinds=(bare store track wal delete)
[ -x build/bin/amp-ack ] || kinds=(bare store wal delete)
for ((r = 0; r < rounds; r++)); do
  for us in 0 1000; do
    for p in 1 4; do
      for b in 1 16; do
        for k in "${kinds[@]}"; do
          c=$((b == 1 ? n : 32 * n / p))
          [ "$us" = 0 ] || c=$((c / 8))
          printf '%s %s %s %s %s %s\n' "$us" "$r" "$p" "$b" "$k" "$(measure "$us" "$k" "$p" "$b" "$c")"
        done
      done
    done
    printf '%s %s 1 1 latency %s\n' "$us" "$r" "$(measure "$us" latency 1 1 "$((us ? n / 4 : n))")"
  done
done >"$work/raw"

awk '
  { rate[$1, $3, $4, $5, $2] = $6; share[$1, $3, $4, $5, $2] = $7; sync[$1, $2] = $8; tail[$1, 1, 1, "latency", $2] = $9
    if ($2 > last) last = $2 }
  function median(v, n,   i, j, t) {
    for (i = 1; i < n; i++)
      for (j = i; j > 0 && v[j] < v[j - 1]; j--) { t = v[j]; v[j] = v[j - 1]; v[j - 1] = t }
    return v[int(n / 2)]
  }
  function ratio(u, p, b, k, to,   r, v, d) {
    for (r = 0; r <= last; r++) {
      d = rate[u, p, b, to, r]
      v[r] = d ? rate[u, p, b, k, r] / d : 0
    }
    return median(v, last + 1)
  }
  function middle(from, u, p, b, k,   r, v) {
    for (r = 0; r <= last; r++) v[r] = from[u, p, b, k, r]
    return median(v, last + 1)
  }
  function check(what, value, target, most) {
    printf "%-62s %7.2f  %s %-5s %s\n", what, value, most ? "<=" : ">=", target,
      (most ? value <= target : value >= target) ? "PASS" : "FAIL"
  }
  END {
    split("0 1000", us); split("1 4", ps); split("1 16", bs); nk = split(kinds, ks)
    for (h = 1; h <= 2; h++) {
      u = us[h]
      for (r = 0; r <= last; r++) v[r] = rate[u, 1, 1, "latency", r] ? sync[u, r] : 0
      name[h] = u ? "sync + 1 ms" : "this disk"
      printf "%s (a bare append and sync takes %.0f us)\n", name[h], median(v, last + 1)
      printf "%9s %5s  %-6s %10s %7s %12s %13s %6s\n", "processes", "batch", "", "commits/s", "/ bare",
        "/ SQLite WAL", "/ SQLite DEL", "share"
      for (i = 1; i <= 2; i++) for (j = 1; j <= 2; j++) for (k = 1; k <= nk; k++)
        printf "%9d %5d  %-6s %10.0f %7.2f %12.2f %13.2f %6.2f\n", ps[i], bs[j], ks[k],
          middle(rate, u, ps[i], bs[j], ks[k]), ratio(u, ps[i], bs[j], ks[k], "bare"),
          ratio(u, ps[i], bs[j], ks[k], "wal"), ratio(u, ps[i], bs[j], ks[k], "delete"),
          middle(share, u, ps[i], bs[j], ks[k])
    }
    print ""
    for (h = 1; h <= 2; h++) {
      u = us[h]
      check(name[h] ": one writer, batch 1, of a bare append", ratio(u, 1, 1, "store", "bare"), 0.8)
      check(name[h] ": one writer, batch 16, of a bare append", ratio(u, 1, 16, "store", "bare"), 0.5)
      if (u) {
        check(name[h] ": four writers, batch 1, times SQLite WAL", ratio(u, 4, 1, "store", "wal"), 3)
        check(name[h] ": four writers, batch 16, times SQLite WAL", ratio(u, 4, 16, "store", "wal"), 3)
      }
      check(name[h] ": median of an unsaturated append, in syncs", middle(rate, u, 1, 1, "latency"), 2, 1)
      check(name[h] ": p99 of an unsaturated append, in syncs", middle(share, u, 1, 1, "latency"), 2, 1)
      printf "%-62s %7.2f\n", name[h] ": p99 of a bare append in the same run", middle(tail, u, 1, 1, "latency")
      for (r = 0; r <= last; r++)
        v[r] = tail[u, 1, 1, "latency", r] ? share[u, 1, 1, "latency", r] / tail[u, 1, 1, "latency", r] : 0
      printf "%-62s %7.2f\n", name[h] ": p99 of ours in parts of that", median(v, last + 1)
      check(name[h] ": slowest of four writers, batch 1, of its share", middle(share, u, 4, 1, "store"), 0.8)
      check(name[h] ": slowest of four writers, batch 16, of its share", middle(share, u, 4, 16, "store"), 0.8)
    }
  }' kinds="${kinds[*]}" "$work/raw"
