#!/bin/sh
# machines.sh [--check] BINDIR: draws the state machines in the manual pages.
#
# A page has a line .\" machine NAME TOOL; what follows, up to .\" end machine, is the machine NAME as
# TOOL --machine prints it: an arrow for each pair of states, with the events that lead from one to the other.
# Events that lead back to their own state are left out. --check changes nothing and fails if a page differs,
# or if a machine of a tool is on no page.
set -eu
check=false
[ "${1-}" = --check ] && check=true && shift
bin=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
status=0

# draw NAME TOOL
draw() {
  "$bin/$2" --machine | awk -v name="$1" '
    !on && $1 == name && substr($2, 1, 1) == "(" { on = 1; next }
    on && $1 == "starts" {
      line = $0
      sub(/;.*/, "", line)
      start = line
      sub(/^starts in /, "", start)
      sub(/,.*/, "", start)
      if (sub(/.*ends in /, "", line)) {
        n = split(line, w, ", ")
        for (i = 1; i <= n; i++) end[w[i]] = 1
      }
      next
    }
    on && /^  FROM/ { to_at = index($0, " TO") + 1; next }
    on && /^$/ { exit }
    on {
      row = substr($0, 3)
      from = row; sub(/ .*/, "", from)
      event = row; sub(/^[^ ]+ +/, "", event); sub(/ .*/, "", event)
      to = substr($0, to_at); sub(/ .*/, "", to)
      if (!(from in known)) { known[from] = ++states; state[states] = from }
      if (!(to in known)) { known[to] = ++states; state[states] = to }
      if (from == to) next
      if ((from, to, event) in seen) next
      seen[from, to, event] = 1
      n = ++rows
      row_from[n] = from; row_to[n] = to; row_event[n] = event
      sources[event, to]++
      list[event, to] = list[event, to] (list[event, to] == "" ? "" : ", ") from
      if (length(to) > widest) widest = length(to)
    }
    # The first state, then each where an arrow leads first.
    function visit(s) { if (!(s in placed)) { placed[s] = 1; order[++count] = s } }
    END {
      if (!states) exit 1
      # What leads from many states to one is drawn once, below the rest.
      for (i = 1; i <= rows; i++) {
        if (sources[row_event[i], row_to[i]] > 4) {
          key = list[row_event[i], row_to[i]] SUBSEP row_to[i]
          if ((row_event[i], row_to[i]) in taken) continue
          taken[row_event[i], row_to[i]] = 1
          if (!(key in shared)) { commons[++n_shared] = key }
          shared[key] = shared[key] (shared[key] == "" ? "" : ", ") row_event[i]
          continue
        }
        key = row_from[i] SUBSEP row_to[i]
        if (!(key in events)) { arrows[row_from[i]]++; target[row_from[i], arrows[row_from[i]]] = row_to[i] }
        events[key] = events[key] (events[key] == "" ? "" : ", ") row_event[i]
      }
      visit(start)
      for (i = 1; i <= count; i++)
        for (j = 1; j <= arrows[order[i]]; j++) visit(target[order[i], j])
      for (i = 1; i <= states; i++) visit(state[i])
      for (i = 1; i <= count; i++) {
        s = order[i]
        print (s == start ? "> " : "  ") s (s in end ? "  (end)" : "")
        for (j = 1; j <= arrows[s]; j++) arrow(target[s, j], events[s SUBSEP target[s, j]])
      }
      for (i = 1; i <= n_shared; i++) {
        split(commons[i], part, SUBSEP)
        if (part[1] != last) fold(part[1])
        last = part[1]
        arrow(part[2], shared[commons[i]])
      }
    }
    # A list of states, in lines of at most 72 characters.
    function fold(text,   n, w, i, line) {
      n = split(text, w, ", ")
      line = "  " w[1]
      for (i = 2; i <= n; i++) {
        if (length(line) + length(w[i]) > 70) { print line ","; line = "  " w[i] }
        else line = line ", " w[i]
      }
      print line
    }
    # The events of an arrow, broken into lines of at most 72 characters.
    function arrow(to, list,   n, w, i, line, lines, text) {
      n = split(list, w, ", ")
      line = w[1]
      lines = 0
      for (i = 2; i <= n; i++) {
        if (length(line) + length(w[i]) + 2 + widest > 58) { text[++lines] = line ","; line = w[i] }
        else line = line ", " w[i]
      }
      text[++lines] = line
      for (i = 1; i < lines; i++) print "    |  " text[i]
      line = "    |- " text[lines] " "
      while (length(line) < 66 - widest) line = line "-"
      print line "-> " to
    }'
}

for page in man/*.[157]; do
  grep -q '^\.\\" machine ' "$page" || continue
  while IFS= read -r line; do
    case $line in
    '.\" machine '*)
      printf '%s\n.Bd -literal\n' "$line"
      # shellcheck disable=SC2086 # two words
      set -- ${line#??? machine }
      echo "$1" >>"$work/drawn"
      draw "$1" "$2"
      printf '.Ed\n'
      skip=true
      ;;
    '.\" end machine')
      skip=false
      printf '%s\n' "$line"
      ;;
    *) ${skip:-false} || printf '%s\n' "$line" ;;
    esac
  done <"$page" >"$work/page"
  cmp -s "$work/page" "$page" && continue
  if $check; then
    diff -u "$page" "$work/page" || status=1
  else
    cp "$work/page" "$page"
    echo "$page"
  fi
done

for tool in "$bin"/*; do
  "$tool" --options | grep -q "$(printf '\tmachine\t')" || continue
  "$tool" --machine | sed -n 's/^\([a-z_]*\) (.*/\1/p'
done | sort -u >"$work/all"
missing=$(sort -u "$work/drawn" | comm -13 - "$work/all")
[ -z "$missing" ] || {
  echo "machines: on no page:" $missing >&2
  status=1
}
exit $status
