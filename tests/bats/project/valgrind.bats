# tests/valgrind/run: an error is found in valgrind's log, whatever the program's test makes of it.
# static

load ../lib

setup() {
  need valgrind gcc
  cd "$BATS_TEST_TMPDIR" || return
  mkdir -p build/bin build/tests/fault
  : >build/flags
  cp "$AMP_BUILD/tests/fault/failvalgrind.so" build/tests/fault/
  printf '%s\n' "load $AMP_TOP/tests/bats/lib" '@test "x" { amp-sample || true; }' >x.bats
}

# sample STATEMENT: the program that the test runs.
sample() {
  printf '#include <stdlib.h>\nint main(void) { int *p = calloc(1, 4), rc = 0; %s free(p); return rc; }\n' "$1" |
    gcc -g -O0 -x c -o build/bin/amp-sample -
}

@test "a memory error fails the file, also where its status is expected" {
  sample 'if (p[1]) rc = 3;'
  BUILD_DIR=$PWD/build run -1 "$AMP_TOP/tests/soak" --valgrind "$PWD/x.bats"
  [[ $output == *"Invalid read of size 4"*"FAIL x: errors in 1 of 1 runs"*"0 passed, 1 failed" ]]
}

@test "without an error it passes, and without a run it fails" {
  sample 'rc = 3;'
  BUILD_DIR=$PWD/build run -0 "$AMP_TOP/tests/soak" --valgrind "$PWD/x.bats"
  [[ $output == *"ok   x: 1 runs without an error (1 passed, 0 failed)"*"1 passed, 0 failed" ]]
  sed -i 's/amp-sample/true/' x.bats
  BUILD_DIR=$PWD/build run -1 "$AMP_TOP/tests/soak" --valgrind "$PWD/x.bats"
  [[ $output == *"FAIL x: none of our programs ran"* ]]
}
