# Both compilers accept the sources with all warnings.
# static
load lib

@test "clang has no warning" {
  need clang
  cd "$AMP_TOP"
  flags=$(env -u MAKEFLAGS -u MFLAGS make -s print-flags DEVELOPER=1 CC=clang)
  flags=${flags//\'/}
  # shellcheck disable=SC2086
  find lib cmd libexec tests/unit tests/fixture -name '*.c' -print0 |
    xargs -0 -n 8 -P 2 clang -fsyntax-only $flags
}
