# The test runner itself: what fails must be seen to fail.
# static
load ../lib

suite() {
  printf '#!/bin/sh\n%s\n' "$2" >"$BATS_TEST_TMPDIR/$1"
  chmod +x "$BATS_TEST_TMPDIR/$1"
}

sum_of() {
  cd "$AMP_TOP"
  run tests/run "$@"
  sum=${lines[-1]}
}

@test "passed and skipped are counted" {
  suite a 'echo "ok 1 - x"; echo "ok 2 # skip y"; echo 1..2'
  suite b 'echo 1..1; echo "ok 1 - x"'
  sum_of "$BATS_TEST_TMPDIR/a" "$BATS_TEST_TMPDIR/b"
  [ "$status" -eq 0 ]
  [ "$sum" = "2 passed, 0 failed, 1 skipped" ]
}

@test "a failed test fails the run and is shown" {
  suite a 'echo "ok 1 - x"; echo "not ok 2 - broken"; echo "# why"; echo 1..2; exit 1'
  sum_of "$BATS_TEST_TMPDIR/a"
  [ "$status" -eq 1 ]
  [ "$sum" = "1 passed, 1 failed" ]
  [[ "$output" == *broken*why* ]]
}

@test "a suite that dies fails" {
  suite a 'echo "ok 1 - x"; kill -SEGV $$'
  sum_of "$BATS_TEST_TMPDIR/a"
  [ "$status" -eq 1 ]
  [ "$sum" = "1 passed, 1 failed" ]
}

@test "a suite that runs less than it planned fails" {
  suite a 'echo 1..3; echo "ok 1 - x"'
  sum_of "$BATS_TEST_TMPDIR/a"
  [ "$sum" = "1 passed, 1 failed" ]
}

@test "a suite that fails without a failed test fails" {
  suite a 'echo 1..1; echo "ok 1 - x"; exit 1'
  sum_of "$BATS_TEST_TMPDIR/a"
  [ "$sum" = "1 passed, 1 failed" ]
}

@test "a suite that does not end is ended" {
  suite a 'echo 1..1; exec sleep 98.1'
  export SUITE_SECONDS=1
  sum_of "$BATS_TEST_TMPDIR/a"
  [ "$status" -eq 1 ]
  [ "$sum" = "0 passed, 1 failed" ]
  [[ $output == *"ended after 1 seconds of its own; alone: SUITE_SECONDS=4 tests/run $BATS_TEST_TMPDIR/a"* ]]
  ! pgrep -f '^sleep 98.1$' || false
}

@test "a house is one folder of suites" {
  cd "$BATS_TEST_TMPDIR"
  mkdir -p top/tests/{bats,unit}/{message,work} build/tests/unit
  cp "$AMP_TOP"/tests/{run,busy.bash} top/tests/
  touch top/tests/unit/{message/m,work/w}_test.c
  for h in message work; do
    printf '@test "of %s" {\n  true\n}\n' $h >top/tests/bats/$h/$h.bats
    printf '#!/bin/sh\necho "ok 1 - %s"; echo 1..1\n' $h >build/tests/unit/${h:0:1}_test
    chmod +x build/tests/unit/${h:0:1}_test
  done
  BUILD_DIR=$PWD/build run -0 top/tests/run --house work
  [ "${lines[-1]}" = "2 passed, 0 failed" ]
  grep -qx 'ok 1 of work' build/tests/tap/work.bats.tap
  grep -qx 'ok 1 - work' build/tests/tap/w_test.tap
  BUILD_DIR=$PWD/build run -64 top/tests/run --house cellar
}

@test "a suite that is absent fails" {
  sum_of "$BATS_TEST_TMPDIR/none"
  [ "$sum" = "0 passed, 1 failed" ]
}
