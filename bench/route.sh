#!/usr/bin/env bash
# amp-route beside the least that could be done with the same lines, as a table in Markdown: MB/s of
# wall time, medians of BENCH_ROUNDS rounds (5) in which all rows take turns, on BENCH_MB (100) of
# mixed messages, into files. Then what one hop costs a single message, and where its instructions go
# (valgrind, where it is installed), which no other work on the machine disturbs.
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

cat >"$work/run" <<'EOF'
#!/bin/sh
# run ROW: one row's program, into fresh files.
cd "$(dirname "$0")" || exit
rm -f out.*
case $1 in
scan | check) exec ./route "$1" out.1 ;;
one) exec amp-route -r '* => file:out.1' ;;
four) exec amp-route -r 'protocol=amp,kind=dispatch|result => file:out.1' -r 'protocol=amp => file:out.2' \
  -r 'protocol=sw4rm|rtp => file:out.3' -r '* => file:out.4' ;;
fifo) exec amp-route -r '* => stdout' ;;
cat) exec cat ;;
esac
EOF
chmod +x "$work/run"

rows="scan check one four"
for ((round = 0; round < rounds; round++)); do
  for row in $rows; do
    "$work/measure" "$work/lines" 1 "$work/run" "$row" >>"$work/t.$row" || echo "row $row failed" >&2
    cat "$work"/out.* | wc -c >"$work/n.$row"
  done
done
size=$(stat -c %s "$work/lines")
median() { sort -n "$work/t.$1" | awk '{ t[NR] = $1 } END { print t[int((NR + 1) / 2)] }'; }
speed() { awk -v s="$size" -v t="$(median "$1")" 'BEGIN { printf "%.0f", s / 1e3 / t }'; }
beside() { awk -v a="$(median "$2")" -v b="$(median "$1")" 'BEGIN { printf "%.2f ×", a / b }'; }
echo "$(wc -l <"$work/lines") messages of all five protocols, $((size / 1000000)) MB."
echo
echo "| | MB/s | beside checking and copying |"
echo "|---|---:|---:|"
line() { echo "| $2 | $(speed "$1") | $(beside "$1" check) |"; }
line scan 'scanned only, and copied'
line check 'scanned, checked and copied'
line one '`amp-route`, one file'
line four '`amp-route`, four files by native predicates'
for row in $rows; do
  [ "$(cat "$work/n.$row")" -eq "$size" ] || echo "row $row: not all of it arrived" >&2
done
echo
head -n 1 "$work/lines" >"$work/message"
hop() { "$work/route" hop "$hops" "$@" <"$work/message"; }
with=$(hop amp-route -r '* => stdout')
without=$(hop cat)
echo "One message through one more process, median of $hops: cat $without µs, amp-route $with µs:" \
  "$(awk -v a="$with" -v b="$without" 'BEGIN { printf "%.1f", a - b }') µs more."
if command -v valgrind >/dev/null; then
  count() { # ROW LINES
    head -n "$2" "$work/lines" >"$work/some"
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
