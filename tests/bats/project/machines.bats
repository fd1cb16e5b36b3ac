#!/usr/bin/env bats
# The machines' tables, as the unit tests see them.

load ../lib

@test "every machine in lib is walked by the unit tests" {
  cd "$AMP_TOP"
  in_lib=$(sed -n 's/^const struct amp_fsm amp_\([a-z0-9_]*\)_fsm = {.*/\1/p' lib/*/*/*_fsm.c lib/*/*/*/*_fsm.c | sort)
  listed=$(sed -n 's/^    X(\([a-z0-9_]*\)).*/\1/p' include/amp/machines.h)
  [ -n "$in_lib" ]
  diff <(echo "$in_lib") <(echo "$listed")
}

@test "every machine has a table by hand of what each cell does" {
  cd "$AMP_TOP"
  listed=$(sed -n 's/^    X(\([a-z0-9_]*\)).*/\1/p' include/amp/machines.h)
  by_hand=$({ sed -n 's/^ *MACHINE(\([a-z0-9_]*\));/\1/p' tests/unit/people/cells_test.c
    sed -n 's/^static const char \*const \([a-z]*\)_plain.*/\1/p' tests/unit/work/qa_test.c; } | sort)
  [ -n "$by_hand" ]
  diff <(echo "$listed") <(echo "$by_hand")
}

# tests/machines.ndjson says which function carries out each effect that a tool prints, and which test takes each row
# through a tool, or why none does. tests/rows/run checks that these tests really take them.
@test "each printed effect has a handler, and each printed row a test that takes it, or a reason" {
  need jq
  cd "$AMP_TOP/tests"
  rows/printed "$AMP_BUILD/bin" >"$BATS_TEST_TMPDIR/rows"
  jq -rs 'map([.machine, .from, .event, .guard[]], (.effects[] as $e | ["effect", .machine, $e])) | unique[] | join(" ")' \
    "$BATS_TEST_TMPDIR/rows" >"$BATS_TEST_TMPDIR/printed"
  jq -rs 'map(if .effect then ["effect", .machine, .effect] else [.machine, .from, .event, .guard[]] end) | sort[] | join(" ")' \
    machines.ndjson >"$BATS_TEST_TMPDIR/listed"
  diff "$BATS_TEST_TMPDIR/printed" "$BATS_TEST_TMPDIR/listed"
  # Functions are defined and tests are there; a reason says something.
  jq -r 'select(.handler) | .handler' machines.ndjson | sort -u >"$BATS_TEST_TMPDIR/handlers"
  grep -rhoE '^[a-z][a-z_0-9 ]*[ *]([a-z_0-9]+)\(' ../lib ../cmd --include='*.c' | grep -oE '[a-z_0-9]+\($' |
    tr -d '(' | sort -u | comm -23 "$BATS_TEST_TMPDIR/handlers" - | diff /dev/null -
  jq -r 'select(.test) | "\(.file):@test \"\(.test)\" {"' machines.ndjson | sort -u >"$BATS_TEST_TMPDIR/tests"
  grep -H '^@test' bats/*/*.bats | sed 's|^bats/[a-z]*/||; s|\(@test ".*" {\).*|\1|' | sort -u | comm -23 "$BATS_TEST_TMPDIR/tests" - | diff /dev/null -
  [ -z "$(jq -c 'select((.effect and .handler) or (.from and (.test or (.reason | length > 20))) | not)' machines.ndjson)" ]
}
