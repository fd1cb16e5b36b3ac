#!/bin/sh
# who.sh [--check] BINDIR: writes the table of who may run which verb into docs/security.md.
#
# The table is between the lines <!-- who --> and <!-- end of who -->: a row for each tool, with its verbs as
# TOOL --options prints them. --check changes nothing and fails if the page differs.
set -eu
check=false
[ "${1-}" = --check ] && check=true && shift
bin=$1
page=docs/security.md
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

for main in cmd/*/main.c; do
  tool=${main#cmd/} tool=${tool%/main.c}
  "$bin/$tool" --options | awk -F '\t' -v tool="$tool" '
    $1 == "verbless" { add("(no verb)", $2) }
    $1 == "verb" { add("`" $2 "`", $7) }
    function add(verb, who) {
      if (sub(/^person with /, "", who)) {
        add(verb " with `" who "`", "person")
        who = "-"
        verb = verb " without"
      }
      list[who] = list[who] (list[who] == "" ? "" : ", ") verb
    }
    END { print "| `" tool "` | " list["person"] " | " list["self"] " | " list["-"] " |" }'
done | sed 's/|  |/| |/g; s/|  |/| |/g' >"$work/rows"
grep -qx '<!-- who -->' $page && grep -qx '<!-- end of who -->' $page
awk -v rows="$work/rows" '
  /^<!-- end of who -->$/ { inside = 0 }
  !inside { print }
  /^<!-- who -->$/ {
    inside = 1
    print "\n| tool | a person only | a person, and the agent itself | any agent, too |\n|---|---|---|---|"
    while ((getline line < rows) > 0) print line
    print ""
  }' $page >"$work/page"
cmp -s "$work/page" $page && exit 0
if $check; then
  echo "$page: the table of verbs is not that of the programs (scripts/who.sh)" >&2
  exit 1
fi
cat "$work/page" >$page
