#!/usr/bin/env bash
# Runs sample cases of the protocols (one JSON object a line: id, given, input, expect) through the
# real tools.
#
#   tests/conformance/protocols.sh FILE.jsonl...
#
# The protocol is the file's name; PROTOCOL.sh beside this file says what its cases mean here: it
# has the function PROTOCOL_case, which ends in pass, fail, skip or later. Prints a line for each
# failed and each skipped case with the reason, and last "N passed, N failed, N skipped".
set -u
# These cases are about messages.
export AMP_CONFINE=off AMP_IDENTITY=off
cd "$(dirname "$0")/../.." || exit 70
BUILD_DIR=$(realpath -m "${BUILD_DIR:-build}")
PATH=$BUILD_DIR/bin:$PATH

work=$(mktemp -d) || exit 73
[ -n "${KEEP:-}" ] || trap 'rm -rf "$work"' EXIT
passed=0 failed=0 skipped=0
declare -A reasons

# This file also has a function `refused`; the one below replaces it.
# shellcheck source=tests/bats/messages.bash
. tests/bats/messages.bash

# The current case: id, what, case (the JSON); dir is its own directory.
pass() { passed=$((passed + 1)); }
fail() {
  failed=$((failed + 1))
  echo "FAIL $id ($what): $*"
}
skip() {
  skipped=$((skipped + 1))
  echo "skip $id ($what): $*"
}
# later WHY: a case about something that is not built; told once a reason, with the ids.
later() {
  skipped=$((skipped + 1))
  reasons[$*]+=" $id"
}
have() { [ -x "$BUILD_DIR/bin/$1" ]; }

# want JQ: a value of the case's "expect", "" where it says nothing.
want() { jq -r ".expect.$1 // empty" <<<"$case"; }
# given JQ: whether the jq condition holds for the case.
given() { jq -e "$1" <<<"$case" >/dev/null 2>&1; }

# check_line [OPTION...]: the case's input through amp-validate. Leaves $dir/in, out, records, err,
# and sets status, first ("PROTOCOL CODE FIELD" of the first error, empty without one) and warned
# (the codes of the warnings).
check_line() {
  [ -f "$dir/in" ] || jq -c .input <<<"$case" >"$dir/in"
  : >"$dir/records"
  amp-validate -e "$dir/records" "$@" "$dir/in" >"$dir/out" 2>"$dir/err"
  # shellcheck disable=SC2034 # read by the protocols' files
  status=$?
  first=$(jq -rs '[.[] | select(.severity == "error")][0] // empty |
    "\(.protocol) \(.code) \(.field)"' "$dir/records")
  warned=$(jq -r 'select(.severity == "warning") | .code' "$dir/records" | xargs)
}
# passes [WARNING]: after check_line: passes or fails the case by whether the line came out as it
# went in, with that warning.
passes() {
  if [ -n "$first" ]; then
    fail "refused: $(cat "$dir/records" "$dir/err")"
  elif ! cmp -s "$dir/in" "$dir/out"; then
    fail "the output differs from the input"
  elif [ -n "${1:-}" ] && [[ " $warned " != *" $1 "* ]]; then
    fail "no warning $1 but \"$warned\""
  else
    pass
  fi
}
# refused PROTOCOL CODE [FIELD]: the same for a line that is refused.
refused() {
  local got=$first
  [ -n "${3:-}" ] || got=${first% *}
  if [ "$got" != "$1 $2${3:+ $3}" ]; then
    fail "got \"$first\", not \"$1 $2${3:+ $3}\": $(cat "$dir/records" "$dir/err")"
  elif [ -s "$dir/out" ]; then
    fail "a refused line came out"
  else
    pass
  fi
}

# shellcheck source=tests/conformance/delivery.bash
. tests/conformance/delivery.bash

for file in "$@"; do
  protocol=$(basename "$file" .jsonl)
  reasons=()
  [ -f "tests/conformance/$protocol.sh" ] || {
    echo "FAIL $protocol: nothing here says what its cases mean"
    failed=$((failed + 1))
    continue
  }
  # shellcheck source=/dev/null
  . "tests/conformance/$protocol.sh"
  while IFS= read -r case; do
    [ -n "$case" ] || continue
    { read -r id && read -r what; } < <(jq -r '.id, .what' <<<"$case")
    dir=$work/$id
    mkdir -p "$dir"
    before=$((passed + failed + skipped))
    "${protocol}_case"
    [ $((passed + failed + skipped)) -eq $((before + 1)) ] ||
      fail "was counted $((passed + failed + skipped - before)) times"
  done <"$file"
  for why in "${!reasons[@]}"; do
    n=$(wc -w <<<"${reasons[$why]}")
    echo "skip $n of $protocol: $why:${reasons[$why]}"
  done
done
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ]
