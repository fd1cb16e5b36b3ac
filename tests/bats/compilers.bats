# Both compilers accept the sources with all warnings.
# static
load lib

@test "clang has no warning" {
  need clang
  cd "$AMP_TOP"
  flags=$(env -u MAKEFLAGS -u MFLAGS make -s print-flags DEVELOPER=1 CC=clang)
  flags=${flags//\'/}
  # The driver starts its compiler once more for each file, which takes longer than the file; the compiler itself
  # takes several, with the arguments that the driver tells.
  # shellcheck disable=SC2086
  told=$(clang -### -fsyntax-only $flags lib/base/process/child.c 2>&1 | tail -n 1)
  eval "compiler=($told)"
  [ "${compiler[-1]}" = lib/base/process/child.c ]
  unset 'compiler[-1]'
  find lib cmd libexec tests/unit tests/fixture -name '*.c' -print0 |
    xargs -0 -n 16 -P 2 "${compiler[@]}"
  # It does see what is wrong, in any of the files.
  echo 'int f(void) { int x; return 0; }' >"$BATS_TEST_TMPDIR/bad.c"
  run -1 "${compiler[@]}" lib/base/process/child.c "$BATS_TEST_TMPDIR/bad.c" lib/base/num.c
  [[ $output == *"unused variable"* ]]
  [[ $output == *"no previous prototype"* ]]
}
