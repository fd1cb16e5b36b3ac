#!/usr/bin/env bash
# amp-route beside the least that could be done with the same lines: a pass with the same scanner
# that copies them with writes of the same size (bench/route.c), and the same with the checks that
# amp-route makes of every line. MB/s of wall time and the processor's time, medians of BENCH_ROUNDS
# (5) rounds in which all rows take turns, on BENCH_MB (100) of mixed messages, into fresh files; the
# ratios are medians of the rounds' own. Then what one hop costs a single message, the targets (by the
# processor's time: all rows have one thread), and instructions (valgrind, where it is installed),
# which no other work on the machine disturbs. It is for reading, the status does not tell.
# shellcheck disable=SC2016 # the backquotes are Markdown
set -euo pipefail
cd "$(dirname "$0")/.."
build=${BUILD_DIR:-build}
export PATH=$PWD/$build/bin:$PATH
mb=${BENCH_MB:-100}
rounds=${BENCH_ROUNDS:-5}
hops=${BENCH_HOPS:-20000}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

cc=${CC:-cc}
"$cc" -O2 -o "$work/corpus" bench/corpus*.c
"$cc" -O2 -D_GNU_SOURCE -o "$work/measure" bench/measure.c
"$cc" -O2 -Iinclude -D_GNU_SOURCE -o "$work/route" bench/route.c "$build/lib/libamp.a" -lpcre2-8
"$work/corpus" mixed "$mb" >"$work/all"
amp-validate <"$work/all" >"$work/lines" 2>/dev/null || :

cat >"$work/run" <<'EOF2'
#!/bin/sh
# run ROW: one row's program.
cd "$(dirname "$0")" || exit
case $1 in
scan | check) exec ./route "$1" out.1 ;;
one) exec amp-route -r '* => file:out.1' ;;
four) exec amp-route -r 'protocol=amp,kind=dispatch|result => file:out.1' \
  -r 'protocol=amp => file:out.2' -r 'protocol=sw4rm|rtp => file:out.3' -r '* => file:out.4' ;;
esac
EOF2
chmod +x "$work/run"

rows=(scan check one four)
for ((round = 0; round < rounds; round++)); do
  for row in "${rows[@]}"; do
    rm -f "$work"/out.*
    echo "$round $row $("$work/measure" "$work/lines" 1 "$work/run" "$row")" >>"$work/raw" ||
      echo "row $row failed" >&2
    [ "$(cat "$work"/out.* | wc -c)" = "$(stat -c %s "$work/lines")" ] ||
      echo "row $row: not all of it arrived" >&2
  done
done
head -n 1 "$work/lines" >"$work/message"
hop() { "$work/route" hop "$hops" "$@" <"$work/message"; }
with=$(hop amp-route -r '* => stdout')
without=$(hop cat)

size=$(stat -c %s "$work/lines")
echo "$(wc -l <"$work/lines") messages of all five protocols, $((size / 1000000)) MB," \
  "$(nproc) processors."
echo
awk -v size="$size" -v with="$with" -v without="$without" -v hops="$hops" '
  { took[$2, $1] = $3; cpu[$2, $1] = $5; if ($1 > last) last = $1 }
  function median(v, n,   i, j, t) {
    for (i = 1; i < n; i++)
      for (j = i; j > 0 && v[j] < v[j - 1]; j--) { t = v[j]; v[j] = v[j - 1]; v[j - 1] = t }
    return v[int(n / 2)]
  }
  function middle(from, row,   r, v) {
    for (r = 0; r <= last; r++) v[r] = from[row, r]
    return median(v, last + 1)
  }
  function ratio(of, row, to,   r, v) {
    for (r = 0; r <= last; r++) v[r] = of[row, r] ? of[to, r] / of[row, r] : 0
    return median(v, last + 1)
  }
  function line(row, what) {
    printf "| %s | %.0f | %.0f | %.2f × | %.2f × |\n", what, size / 1e3 / middle(took, row),
      middle(cpu, row), ratio(took, row, "scan"), ratio(took, row, "check")
  }
  function check(what, value, target, most) {
    printf "%-62s %7.2f  %s %-5s %s\n", what, value, most ? "<=" : ">=", target,
      (most ? value <= target : value >= target) ? "PASS" : "FAIL"
  }
  END {
    print "| | MB/s | processor ms | beside scanning and copying | and checking |"
    print "|---|---:|---:|---:|---:|"
    line("scan", "scanned and copied")
    line("check", "scanned, checked and copied")
    line("one", "`amp-route`, one file")
    line("four", "`amp-route`, four files by native predicates")
    printf "\nOne message through one more process, median of %d: cat %s µs, amp-route %s µs.\n\n", hops,
      without, with
    check("one file, of scanning, checking and copying", ratio(cpu, "one", "check"), 0.9)
    check("four files, of scanning, checking and copying", ratio(cpu, "four", "check"), 0.9)
    check("microseconds that a hop adds", with - without, 20, 1)
  }' "$work/raw"

if command -v valgrind >/dev/null; then
  count() { # ROW LINES
    head -n "$2" "$work/lines" >"$work/some"
    rm -f "$work"/out.*
    valgrind --tool=callgrind --callgrind-out-file=/dev/null --trace-children=yes "$work/run" "$1" \
      <"$work/some" 2>&1 >/dev/null | awk '/Collected/ { n = $4 } END { print n }'
  }
  per() { echo $((($(count "$1" 12000) - $(count "$1" 2000)) / 10000)); }
  check=$(per check)
  one=$(per one)
  echo
  echo "Instructions a message: $check checked and copied, $one routed:" \
    "$(awk -v a="$check" -v b="$one" 'BEGIN { printf "%.2f", a / b }') ×."
fi
