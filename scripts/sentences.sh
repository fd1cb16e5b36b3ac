#!/usr/bin/env bash
# sentences.sh [--check]: writes the tables of protocol sentences into docs/.
#
# tests/sentences/NAME.tsv has a line for each sentence of a protocol's text that demands something: its section, the
# sentence, a suite and the name of the test in it, separated by tabs. A suite is a file of tests/bats, a program of
# tests/unit, or a file of tests/fixture/protocols (rules, case by case); the name is that of its @test, the text of
# one of its checks, or what the case is. A sentence with several tests has a line for each, one after another. A
# sentence that no test holds has the suite "-" and the reason as its test.
#
# docs/NAME.md has the lines <!-- sentences --> and <!-- end of sentences -->; what is between them is the table.
# Fails if a line is incomplete or names a test that does not exist. --check changes nothing and fails if a table
# differs, too.
set -eu
cd "$(dirname "$0")/.."
check=false
[ "${1-}" = --check ] && check=true && shift
[ $# -eq 0 ] || {
  echo "usage: scripts/sentences.sh [--check]" >&2
  exit 64
}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
status=0
sources=(tests/sentences/*.tsv)

wrong() {
  echo "$*" >&2
  status=1
}

# The tests that a line may name: ${exists[SUITE<tab>NAME]}.
declare -A exists
while IFS= read -r line; do
  exists[$line]=1
done < <(
  for file in tests/bats/*/*.bats; do
    sed -n "s/^@test \"\(.*\)\" {.*\$/${file##*/}\t\1/p" "$file"
  done
  for file in tests/fixture/protocols/*.jsonl; do
    [ ! -f "$file" ] || sed -n "s/^{\"what\": *\"\([^\"\\\\]*\)\".*/${file##*/}\t\1/p" "$file"
  done
)

# A check of a unit test is a string in its source.
unit_has() { # SUITE TEXT
  grep -qsF "\"$2\"" tests/unit/*/"$1.c"
}

for source in "${sources[@]}"; do
  name=${source##*/}
  name=${name%.tsv}
  page=docs/$name.md
  n=0
  while IFS= read -r line; do
    n=$((n + 1))
    IFS=$'\x1f' read -r section sentence suite test rest <<<"${line//$'\t'/$'\x1f'}"
    if [ -z "$section" ] || [ -z "$sentence" ] || [ -n "$rest" ]; then
      wrong "$source:$n: not a section, a sentence, a suite and a test"
    elif [ -z "$suite" ] || [ -z "$test" ]; then
      wrong "$source:$n: no test holds: $sentence"
    elif [ "$suite" = - ]; then
      [ ${#test} -ge 20 ] || wrong "$source:$n: not held, without a reason: $sentence"
    elif [ -z "${exists["$suite"$'\t'"$test"]-}" ] && ! unit_has "$suite" "$test"; then
      wrong "$source:$n: $suite has no test '$test'"
    fi
  done <"$source"
  if ! grep -qsx '<!-- sentences -->' "$page" || ! grep -qx '<!-- end of sentences -->' "$page"; then
    wrong "$page: no place for the table of $source"
    continue
  fi
  awk -F'\t' '
    function cell(text) { gsub(/\|/, "\\|", text); return text }
    function flush() { if (row != "") print row " |"; row = "" }
    FNR == 1 { print ""; print "| section | sentence | test |"; print "|---|---|---|" }
    {
      held = $3 == "-" ? "not held: " cell($4) : "`" $3 "`: `" cell($4) "`"
      if ($1 == section && $2 == sentence) { row = row "; " held; next }
      flush()
      section = $1; sentence = $2
      row = "| " cell($1) " | " cell($2) " | " held
    }
    END { flush(); print "" }' "$source" >"$work/table"
  awk -v table="$work/table" '
    /^<!-- end of sentences -->$/ { inside = 0 }
    !inside { print }
    /^<!-- sentences -->$/ { inside = 1; while ((getline line < table) > 0) print line }' "$page" >"$work/page"
  if ! cmp -s "$work/page" "$page"; then
    if $check; then
      wrong "$page: the table is not that of $source (scripts/sentences.sh)"
    else
      cat "$work/page" >"$page"
    fi
  fi
done
exit $status
