#!/bin/sh
# Prints the highest house of lib that each program includes, as variables of make (HOUSE_cmd/amp-validate := message): it is
# linked with that house and those below it. Headers beside the tests, and files of cmd/shared, count for those that include them.
# A unit test is in the folder of its house.
set -eu
grep -roE '^#include ["<][a-z_]+[/.][a-z_/]*(\.[ch])?' cmd libexec tests --include='*.[ch]' --exclude-dir=unit |
  awk -F: '
    function raise(name, to) { if (to > level[name]) { level[name] = to; changed = 1 } }
    {
      to = $2
      sub(/^#include ["<]/, "", to)
      if ($1 ~ /^cmd\/shared\//) { from = $1; sub(/^cmd\//, "", from); sub(/\.[ch]$/, "", from) }
      else if ($1 ~ /^tests\/.*\.h$/) { from = $1 }
      else if ($1 ~ /^tests\//) { from = $1; sub(/\.c$/, "", from); programs[from] = 1 }
      else { split($1, part, "/"); from = part[1] "/" part[2]; programs[from] = 1 }
      if (!(from in level)) level[from] = 0
      if (to ~ /^(amp\/machines|people\/)/) raise(from, 3)
      else if (to ~ /^work\//) raise(from, 2)
      else if (to ~ /^(message\/|amp\/(protocol|compose))/) raise(from, 1)
      else if (to ~ /^shared\//) { sub(/\.h$/, "", to); uses[from, to] = 1 }
      else if (from ~ /^tests\// && to !~ /\//) {
        dir = $1
        sub(/[^\/]*$/, "", dir)
        sub(/\.c$/, "", to)
        uses[from, dir to] = 1
      }
    }
    END {
      split("ground message work people", house, " ")
      do {
        changed = 0
        for (pair in uses) { split(pair, part, SUBSEP); raise(part[1], level[part[2]]) }
      } while (changed)
      for (p in programs) print "HOUSE_" p " := " house[level[p] + 1]
    }' | sort
