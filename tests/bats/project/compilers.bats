# Both compilers accept the sources with all warnings.
# static
load ../lib

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
  find lib cmd libexec tests/unit tests/fixture -name '*.c' >"$BATS_TEST_TMPDIR/files"
  # The headers that most files include are read once. What a file fails to include is found when gcc compiles it.
  # (<unistd.h> and <signal.h> have names, such as pause, that a file may give to something else.)
  xargs grep -hE '^#include <.*>$' <"$BATS_TEST_TMPDIR/files" | sort | uniq -c |
    awk '$1 >= 20 && $3 !~ "unistd|signal" { print $2, $3 }' >"$BATS_TEST_TMPDIR/common.h"
  [ "$(wc -l <"$BATS_TEST_TMPDIR/common.h")" -ge 5 ]
  precompile=("${compiler[@]/-fsyntax-only/-emit-pch}")
  [ "${precompile[*]: -2}" = "-x c" ]
  "${precompile[@]}"-header -o "$BATS_TEST_TMPDIR/common.pch" "$BATS_TEST_TMPDIR/common.h"
  compiler+=(-include-pch "$BATS_TEST_TMPDIR/common.pch")
  xargs -n 64 -P 2 "${compiler[@]}" <"$BATS_TEST_TMPDIR/files"
  # It does see what is wrong, in any of the files.
  echo 'int f(void) { int x; return 0; }' >"$BATS_TEST_TMPDIR/bad.c"
  run -1 "${compiler[@]}" lib/base/process/child.c "$BATS_TEST_TMPDIR/bad.c" lib/base/num.c
  [[ $output == *"unused variable"* ]]
  [[ $output == *"no previous prototype"* ]]
}
