#!/bin/sh
# Prints what the public headers declare, one name a line, or with --map as a linker's version
# script that exports these names and no others.
#
#   scripts/exports.sh [--map] HEADER...
#
# The headers are preprocessed, so that declarations made by macros count; what they include from
# elsewhere does not.
set -u
map=false
[ "${1-}" = --map ] && map=true && shift
work=$(mktemp -d) || exit 70
trap 'rm -rf "$work"' EXIT

for h in "$@"; do
  echo "#include \"$h\""
done >"$work/all.c"
${CC:-cc} -std=gnu11 -D_GNU_SOURCE -Iinclude -I. -E "$work/all.c" >"$work/text" || exit 70
awk '
  # Line markers: # LINE "FILE" FLAGS. Only declarations of the public headers are kept.
  /^# [0-9]+ "/ { ours = $3 ~ /include\/amp\// ; next }
  ours { text = text " " $0 }
  END {
    # Bodies of structures, enumerations and inline functions say nothing about names. What ends
    # with one of the last is a declaration too.
    while (match(text, /\{[^{}]*\}/))
      text = substr(text, 1, RSTART - 1) "@" substr(text, RSTART + RLENGTH)
    n = split(text, part, ";")
    for (i = 1; i <= n; i++) {
      # "inline ...(...) @ next declaration": an inline function has no semicolon behind it.
      while (match(part[i], /(static|inline)[^@]*\)[ \t]*@/))
        part[i] = substr(part[i], RSTART + RLENGTH)
      if (part[i] ~ /(^|[ \t])(typedef|static)[ \t]/)
        continue
      gsub(/__attribute__[ \t]*\(\(([^()]|\([^()]*\))*\)\)/, "", part[i])
      sub(/^[ \t]*extern[ \t]+"C"[ \t]*/, "", part[i])
      if (match(part[i], /[A-Za-z_][A-Za-z_0-9]*[ \t]*\(/)) {
        name = substr(part[i], RSTART, RLENGTH - 1)
      } else if (part[i] ~ /(^|[ \t])extern[ \t]/) {
        sub(/[ \t]*(\[[^\]]*\][ \t]*)*$/, "", part[i])
        match(part[i], /[A-Za-z_][A-Za-z_0-9]*$/)
        name = substr(part[i], RSTART, RLENGTH)
      } else {
        continue
      }
      sub(/[ \t]+$/, "", name)
      print name
    }
  }' "$work/text" | sort -u >"$work/names"
# A preprocessor or a header that this script does not understand leaves no list.
[ -s "$work/names" ] || {
  echo "exports: no declarations found in: $*" >&2
  exit 70
}
if $map; then
  printf 'AMP_0 {\n    global:\n'
  sed 's/.*/        &;/' "$work/names"
  printf '    local:\n        *;\n};\n'
else
  cat "$work/names"
fi
