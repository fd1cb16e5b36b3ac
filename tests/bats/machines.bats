#!/usr/bin/env bats
# The machines' tables, as the unit tests see them.
# static

load lib

@test "every machine in lib is walked by the unit tests" {
  cd "$BATS_TEST_DIRNAME/../.."
  in_lib=$(sed -n 's/^const struct amp_fsm amp_\([a-z0-9_]*\)_fsm = {.*/\1/p' lib/*/*_fsm.c lib/*/*/*_fsm.c | sort)
  listed=$(sed -n 's/^    X(\([a-z0-9_]*\)).*/\1/p' include/amp/machines.h)
  [ -n "$in_lib" ]
  diff <(echo "$in_lib") <(echo "$listed")
}

@test "every machine has a table by hand of what each cell does" {
  cd "$BATS_TEST_DIRNAME/../.."
  listed=$(sed -n 's/^    X(\([a-z0-9_]*\)).*/\1/p' include/amp/machines.h)
  by_hand=$({ sed -n 's/^ *MACHINE(\([a-z0-9_]*\));/\1/p' tests/unit/cells_test.c
    sed -n 's/^static const char \*const \([a-z]*\)_plain.*/\1/p' tests/unit/qa_test.c; } | sort)
  [ -n "$by_hand" ]
  diff <(echo "$listed") <(echo "$by_hand")
}
