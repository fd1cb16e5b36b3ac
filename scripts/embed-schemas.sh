#!/bin/sh
# Prints a C file that holds the given schema files as strings.
set -eu
printf '%s\n' '#include <amp/schema/schema.h>' ''
i=0
for f in "$@"; do
  printf 'static const char schema_%d[] =\n' "$i"
  sed -e 's/\\/\\\\/g' -e 's/"/\\"/g' -e 's/^/    "/' -e 's/$/\\n"/' "$f"
  printf '    ;\n'
  i=$((i + 1))
done
printf '\nconst struct amp_schema_file amp_schema_files[] = {\n'
i=0
for f in "$@"; do
  printf '    {"%s", {schema_%d, sizeof(schema_%d) - 1}},\n' "${f#schemas/}" "$i" "$i"
  i=$((i + 1))
done
printf '    {NULL, {NULL, 0}},\n};\nconst size_t amp_schema_files_count = %d;\n' "$i"
