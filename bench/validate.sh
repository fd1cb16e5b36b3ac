#!/usr/bin/env bash
# amp-validate beside other tools, as tables in Markdown: MB/s of wall time, medians of BENCH_ROUNDS
# rounds (5) in which all rows take turns, on corpora made here: BENCH_MB (300) and BENCH_SMALL_MB
# (20) of mixed messages. Every program reads the same lines and its output goes to /dev/null. ajv
# and @sourcemeta/jsonschema are installed once into BENCH_NPM (build/bench-npm), in the versions of
# bench/npm/package.json; where they cannot be had, their rows say so.
# shellcheck disable=SC2016 # the backquotes are Markdown
set -euo pipefail
cd "$(dirname "$0")/.."
build=${BUILD_DIR:-build}
export PATH=$PWD/$build/bin:$PATH
big_mb=${BENCH_MB:-300}
small_mb=${BENCH_SMALL_MB:-20}
rounds=${BENCH_ROUNDS:-5}
export BENCH_NPM=${BENCH_NPM:-$PWD/$build/bench-npm}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

cc=${CC:-cc}
"$cc" -O2 -o "$work/corpus" bench/corpus*.c
"$cc" -O2 -D_GNU_SOURCE -o "$work/measure" bench/measure.c
"$cc" -O2 -Iinclude -D_GNU_SOURCE -o "$work/inprocess" bench/inprocess.c "$build/lib/libamp.a" \
  -lpcre2-8
echo 'int main(void) { return 0; }' >"$work/empty.c"
"$cc" -O2 -o "$work/empty" "$work/empty.c"

"$work/corpus" mixed "$big_mb" >"$work/big"
"$work/corpus" mixed "$small_mb" >"$work/small"
"$work/corpus" task_result "$small_mb" >"$work/one"
head -n 1 "$work/one" >"$work/message"
# One schema that needs no other file, for the tools that take one.
jq -s '.[0] + {"$defs": ((.[0]["$defs"] // {}) + .[1]["$defs"])}
  | walk(if type == "object" and has("$ref") then .["$ref"] |= sub("^common.json#"; "#") else . end)' \
  schemas/amp/task_result.json schemas/amp/common.json >"$work/schema.json"

npm_tools() {
  [ -d "$BENCH_NPM/node_modules/ajv" ] && return
  command -v npm >/dev/null || return 1
  mkdir -p "$BENCH_NPM"
  cp bench/npm/package.json "$BENCH_NPM"
  (cd "$BENCH_NPM" && npm install --no-audit --no-fund --loglevel=error >/dev/null 2>&1)
}
has_npm=false
if npm_tools; then
  mkdir -p "$work/schemas/one"
  for p in amp sw4rm aop aof rtp; do cp -R "schemas/$p" "$work/schemas"; done
  cp "$work/schema.json" "$work/schemas/one/task_result.json"
  node bench/npm/compile.cjs "$BENCH_NPM/validators.cjs" "$work/schemas" && has_npm=true
fi
sourcemeta=$(find "$BENCH_NPM/node_modules/@sourcemeta" -type f -name "jsonschema-linux-$(uname -m | sed s/aarch64/arm64/)" \
  2>/dev/null | head -n 1 || true)

# Rows: name, input, command. The times of a row gather in $work/t.NAME.
names=()
declare -A input command
row() {
  names+=("$1")
  input[$1]=$2
  command[$1]=$3
}
row file big 'exec amp-validate'
amp-validate -j 2 </dev/null >/dev/null 2>&1 && row j2 big 'exec amp-validate -j 2'
row pipe big 'cat | amp-validate | cat'
row cats big 'cat | cat | cat'
row small small 'exec amp-validate'
row jq small 'exec jq -c .'
if $has_npm; then
  row ajv small "exec node bench/npm/lines.cjs '$BENCH_NPM/validators.cjs'"
  row ajv1 one "exec node bench/npm/lines.cjs '$BENCH_NPM/validators.cjs' one/task_result"
  [ -n "$sourcemeta" ] && cp "$work/one" "$work/one.jsonl" &&
    row meta one "exec '$sourcemeta' validate --fast -F '$work/schema.json' '$work/one.jsonl'"
fi
amp-validate -S "$work/schema.json" </dev/null >/dev/null 2>&1 &&
  row schema one "exec amp-validate -S '$work/schema.json' --formats"
row built one 'exec amp-validate'

for ((round = 0; round < rounds; round++)); do
  for name in "${names[@]}"; do
    "$work/measure" "$work/${input[$name]}" 1 sh -c "${command[$name]}" >>"$work/t.$name" ||
      echo "row $name failed: ${command[$name]}" >&2
  done
done

# Median MB/s of a row, or nothing.
speed() {
  [ -s "$work/t.$1" ] || return 0
  sort -n "$work/t.$1" | awk -v size="$(stat -c %s "$work/${input[$1]}")" \
    '{ t[NR] = $1 } END { printf "%.0f", size / 1e3 / t[int((NR + 1) / 2)] }'
}
# times OURS OTHER: how many times as fast.
times() {
  [ -n "$(speed "$1")" ] && [ -n "$(speed "$2")" ] || return 0
  awk -v a="$(speed "$1")" -v b="$(speed "$2")" 'BEGIN { printf "%.1f ×", a / b }'
}
line() { # what, corpus, row, remark
  local s
  s=$(speed "$3")
  echo "| $1 | $2 | ${s:-not measured} | ${4:-} |"
}
peak() { "$work/measure" "$@" | awk '{ printf "%.1f", $2 / 1024 }'; }
start() {
  for _ in 1 2 3 4 5; do "$work/measure" "$@"; done | sort -n | awk 'NR == 3 { print $1 }'
}

lines=$(wc -l <"$work/big")
passed=$(amp-validate <"$work/big" 2>/dev/null | wc -l)
version() { jq -r ".dependencies[\"$1\"]" bench/npm/package.json; }
echo "$passed of $lines messages of all five protocols are valid, $((big_mb * 1000000 / lines)) bytes each."
echo
echo "| | corpus | MB/s | |"
echo "|---|---|---:|---|"
line '`amp-validate`' "$big_mb MB, mixed" file
line '`amp-validate -j 2`, beside one thread' "$big_mb MB, mixed" j2 "$(times j2 file)"
line '`cat \| amp-validate \| cat`' "$big_mb MB, mixed" pipe \
  "$(awk -v a="$(speed pipe)" -v b="$(speed cats)" 'BEGIN { printf "%.0f %%", 100 * a / b }') of \`cat \\| cat \\| cat\`"
line '`cat \| cat \| cat`' "$big_mb MB, mixed" cats
line '`amp-validate`' "$small_mb MB, mixed" small
line '`jq -c .`, which only parses' "$small_mb MB, mixed" jq "amp-validate: $(times small jq)"
line "ajv $(version ajv), standalone code in node" "$small_mb MB, mixed" ajv "amp-validate: $(times small ajv)"
line '`amp-validate -S SCHEMA`' "$small_mb MB, one type" schema
line '`amp-validate`, its own schema' "$small_mb MB, one type" built
ours=schema
[ -n "$(speed schema)" ] || ours=built
line "ajv $(version ajv), the same schema" "$small_mb MB, one type" ajv1 "amp-validate: $(times $ours ajv1)"
line "@sourcemeta/jsonschema $(version @sourcemeta/jsonschema), the same schema" \
  "$small_mb MB, one type" meta "amp-validate: $(times $ours meta)"
echo
"$work/corpus" long "$small_mb" >"$work/long"
echo "| | |"
echo "|---|---:|"
echo "| peak memory, $big_mb MB of mixed lines | $(peak "$work/big" 1 amp-validate) MB |"
echo "| peak memory, $small_mb MB of mixed lines | $(peak "$work/small" 1 amp-validate) MB |"
echo "| peak memory, $small_mb MB in lines of 60 KiB | $(peak "$work/long" 1 amp-validate) MB |"
echo "| one message, start to exit | $(start "$work/message" 100 amp-validate) ms |"
echo "| an empty C program, start to exit | $(start /dev/null 100 "$work/empty") ms |"

echo
echo "Worst cases, $small_mb MB each; in process: MB per second of processor time."
echo
echo "| lines | \`amp-validate\` MB/s | valid | peak MB | scanned, in process | judged, in process |"
echo "|---|---:|---:|---:|---:|---:|"
worst() { # kind, what
  "$work/corpus" "$1" "$small_mb" >"$work/kind"
  "$work/inprocess" "$work/kind" >"$work/figures"
  for _ in 1 2 3; do "$work/measure" "$work/kind" 1 amp-validate; done | sort -n >"$work/kind.t"
  awk -v what="$2" -v size="$(stat -c %s "$work/kind")" -v lines="$(wc -l <"$work/kind")" \
    -v valid="$(amp-validate <"$work/kind" 2>/dev/null | wc -l)" \
    'FILENAME ~ /kind.t/ { if (FNR == 2) speed = size / 1e3 / $1; if ($2 > kib) kib = $2; next }
     { f[$1] = $2 }
     END { printf "| %s | %.0f | %.0f %% | %.1f | %s | %s |\n",
             what, speed, 100 * valid / lines, kib / 1024, f["scan"], f["judge"] }' \
    "$work/kind.t" "$work/figures"
}
worst mixed 'mixed, as above'
worst invalid 'mixed, a wrong value in each'
worst broken 'mixed, each one broken JSON'
worst strings 'strings of 70 KB'
worst long 'lines of 60 KiB'
worst escapes 'escapes and UTF-8'
worst numbers '2000 small numbers'
worst keys '300 keys an object'
worst deep '100 levels deep'
