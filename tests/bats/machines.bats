#!/usr/bin/env bats
# The machines' tables, as the unit tests see them.

load lib

@test "every machine in lib is walked by the unit tests" {
  cd "$BATS_TEST_DIRNAME/../.."
  in_lib=$(sed -n 's/^const struct amp_fsm amp_\([a-z0-9_]*\)_fsm = {.*/\1/p' lib/*/*_fsm.c | sort)
  listed=$(sed -n 's/^ *X(\([a-z0-9_]*\)).*/\1/p' tests/unit/machines_list.h | sort)
  [ -n "$in_lib" ]
  diff <(echo "$in_lib") <(echo "$listed")
}
