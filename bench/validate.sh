#!/usr/bin/env bash
# Throughput of amp-validate: MB/s of wall time on generated corpora, best of 3 runs each, beside
# `jq -c .`, `cat` and `cat | cat | cat` in the same run. BENCH_MB sets the corpus' size (64).
set -euo pipefail
cd "$(dirname "$0")/.."
build=${BUILD_DIR:-build}
PATH=$PWD/$build/bin:$PATH
mb=${BENCH_MB:-64}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

"${CC:-cc}" -O2 -o "$work/corpus" bench/corpus*.c
"${CC:-cc}" -O2 -Iinclude -D_GNU_SOURCE -o "$work/inprocess" bench/inprocess.c \
  "$build/lib/libamp.a" -lpcre2-8

# MB/s of a shell command that reads $1.
speed() {
  local file=$1 size best=0 start end rate
  shift
  size=$(stat -c %s "$file")
  for _ in 1 2 3; do
    start=$(date +%s%N)
    bash -c "$*" <"$file" >"$work/out" 2>/dev/null || true
    end=$(date +%s%N)
    rate=$((size * 1000 / (end - start)))
    [ "$rate" -gt "$best" ] && best=$rate
  done
  echo "$best"
}
ratio() {
  awk -v a="$1" -v b="$2" 'BEGIN { printf "%.2f", b ? a / b : 0 }'
}

"$work/corpus" mixed "$mb" >"$work/mixed"
"$work/corpus" mixed $((mb / 8 + 1)) >"$work/small"
lines=$(wc -l <"$work/mixed")
cat=$(speed "$work/mixed" 'cat >/dev/null')
cats=$(speed "$work/mixed" 'cat | cat | cat >/dev/null')
ours=$(speed "$work/mixed" 'amp-validate >/dev/null')
piped=$(speed "$work/mixed" 'cat | amp-validate | cat >/dev/null')
jq=$(speed "$work/small" 'jq -c . >/dev/null')
passed=$(amp-validate <"$work/mixed" 2>/dev/null | wc -l)
echo "Mixed AMP messages, $mb MB, $((mb * 1048576 / lines)) bytes a line, $passed of $lines valid"
printf '%-28s %8s %14s %14s\n' '' MB/s 'x jq -c .' 'x cat|cat|cat'
row() {
  printf '%-28s %8s %14s %14s\n' "$1" "$2" "$(ratio "$2" "$jq")" "$(ratio "$2" "$cats")"
}
row amp-validate "$ours"
row 'cat | amp-validate | cat' "$piped"
row 'jq -c .' "$jq"
row cat "$cat"
row 'cat | cat | cat' "$cats"

echo
echo "Worst cases, $((mb / 4 + 1)) MB each; the last two columns in process, per second of processor time"
printf '%-28s %8s %14s %14s\n' '' MB/s 'scan MB/s' 'scan + check'
for kind in mixed invalid strings numbers deep; do
  "$work/corpus" "$kind" $((mb / 4 + 1)) >"$work/kind"
  "$work/inprocess" "$work/kind" >"$work/figures"
  printf '%-28s %8s %14s %14s\n' "$kind" \
    "$(speed "$work/kind" 'amp-validate >/dev/null')" \
    "$(awk '$1 == "scan" { print $2 }' "$work/figures")" \
    "$(awk '$1 == "scan+check" { print $2 }' "$work/figures")"
done
