#!/bin/sh
# Prints a C file with the example messages of the given table as one string, without pointers: name,
# NUL, line, NUL for each.
set -eu
printf '%s\n' '#include "cmd/amp-validate/example/example.h"' '' 'const char amp_examples[] ='
sed -e 's/\\/\\\\/g' -e 's/"/\\"/g' -e 's/	/\\0"\n    "/' "$1" |
  sed -e '/^    "/!s/^/    "/' -e 's/}$/}\\0"/'
printf '    ;\n'
