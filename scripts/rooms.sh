#!/bin/sh
# Prints the rooms of lib that each program links, as variables of make (ROOMS_cmd/amp-validate := base cli …): those
# whose headers its files include, and the rooms that those rooms include. Headers beside the tests count for each test.
set -eu
grep -roE '^#include ["<](\.\./\.\./lib/|amp/)?[a-z_]+[/.][a-z_]*' lib include cmd libexec tests --include='*.[ch]' |
  awk -F: '
    function room_of(path, part) {
      split(path, part, "/")
      # What knows subjects, for several programs: the rest of cli knows none.
      if (path ~ /^lib\/cli\/(identity|state|work)/) return "cli/identity"
      return part[2] == "amp" ? part[3] : part[2]
    }
    {
      to = $2
      sub(/^#include ["<](\.\.\/\.\.\/lib\/|amp\/)?/, "", to)
      if (to ~ /^compose\./) to = "protocol/"
      if (to ~ /^machines\./) to = "machines/"
      if ($1 ~ /^(lib|include)\//) from = room_of($1)
      else if ($1 ~ /^tests\/.*\.h$/) from = "tests"
      else if ($1 ~ /^tests\//) { from = $1; sub(/\.c$/, "", from); programs[from] = link[from, "tests"] = 1 }
      else { split($1, part, "/"); from = part[1] "/" part[2]; programs[from] = 1 }
      if (to == "cli/state" || to == "cli/work") to = "cli/identity"
      if (to == "cli/identity") link["cli/identity", "cli"] = 1
      # A test that is another one, compiled otherwise.
      else if (from ~ /^tests\// && to ~ /\.c$/) { sub(/[^\/]*$/, "", $1); to = $1 substr(to, 1, length(to) - 2) }
      else sub(/\/.*/, "", to)
      link[from, to] = 1
    }
    END {
      while (("ls lib" | getline name) > 0) rooms[++n] = name
      # The list of all machines names them without their headers.
      for (i = 1; i <= n; i++) link["machines", rooms[i]] = 1
      rooms[++n] = "cli/identity"
      rooms[++n] = "tests"
      for (pair in link) { split(pair, part, SUBSEP); next_of[part[1]] = next_of[part[1]] " " part[2] }
      for (p in programs) {
        split("", seen)
        top = split(next_of[p], todo, " ")
        while (top > 0) {
          room = todo[top--]
          if (seen[room]++) continue
          k = split(next_of[room], more, " ")
          for (i = 1; i <= k; i++) todo[++top] = more[i]
        }
        printf "ROOMS_%s :=", p
        for (i = 1; i <= n; i++) if (rooms[i] in seen && rooms[i] !~ /\/|^tests$/) printf " %s", rooms[i]
        print ""
      }
    }' | sort
