#!/bin/sh
# settings.sh [--check]: writes the settings of schemas/config/amp.json into the pages amp.json*(5).
#
# A page has lines .\" settings SECTION...; what follows, up to .\" end settings, is a row for each setting of these
# sections: its name, type, default and meaning, and which file may set it. --check changes nothing and fails if a
# page differs, or if a section is on no page or on two.
set -eu
check=false
[ "${1-}" = --check ] && check=true && shift
schema=schemas/config/amp.json
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
status=0

# "SECTION NAME TYPE DEFAULT TEXT", separated by tabs, for each setting and each member of a list.
jq -r '
  . as $root |
  def target: if has("$ref") then (."$ref" | ltrimstr("#/$defs/")) as $n | ($root."$defs"[$n] + del(."$ref")) + {ref: $n} else . end;
  def text: if type == "string" then . else tojson end;
  def words: if length == 1 then .[0] elif length == 2 then join(" or ") else (.[:-1] | join(", ")) + " or " + .[-1] end;
  def range($unit): if has("minimum") and has("maximum") then "\($unit), \(.minimum) to \(.maximum)"
    elif has("minimum") and .minimum > 0 then "\($unit), at least \(.minimum)" else $unit end;
  def kind($name): target |
    if .ref == "duration" then "time"
    elif .enum then [.enum[] | text] | words
    elif (.oneOf // .anyOf) then [(.oneOf // .anyOf)[] | kind($name)] | unique | words
    elif .type == ["string", "integer"] then (if $name | test("bytes|max_file|max_commit") then "size" else "time" end)
    elif .type == "array" then
      (.items | target) as $i |
      if $i.type == "string" then "list of strings"
      elif $i.enum then "list of " + ([$i.enum[] | text] | words)
      elif $i.anyOf then "list of strings or objects" else "list of objects" end
    elif .type == "integer" then range("integer")
    elif .type == "number" then range("number")
    elif (.type | type) == "array" then .type | words
    else .type end;
  def member($path): $path | join(".");
  # The rows of a property; the members of a list follow it. Properties that differ in their names only are one row.
  def rows($name):
    def all($in): . as $all |
      if length > 2 and ([$all[]] | unique | length) == 1 then
        ($all | keys_unsorted) as $keys | $all[$keys[0]] | rows($in + "." + ($keys | join("|")))
      else to_entries[] | .key as $k | .value | rows($in + "." + $k) end;
    target | . as $p |
    if .type == "object" and .properties then .properties | all($name)
    else
      [$name, kind($name), (if has("default") then (.default | if type == "array" then join(", ") else text end) else "" end),
       (.description // "")],
      (([.oneOf, .anyOf] | map(. // []) | add | if . == [] then [$p] else . end | map(target)) as $forms |
       first($forms[] | select(.type == "array") | .items | target | [., (.anyOf // [])[]] | .[] | target | select(.properties)) //
         first($forms[] | select(.properties)) // empty |
       .properties | all($name + (if $p.type == "array" or ($forms | any(.type == "array")) then "[]" else "" end)))
    end;
  .properties | to_entries[] | .key as $section | .value | rows($section) | [$section] + . | @tsv
' $schema >"$work/rows"
jq -r '.properties | to_entries[] | [.key, (.value."x-state-directory" | tostring), .value.description // ""] | @tsv' \
  $schema >"$work/sections"

# list SECTION...: their rows in mdoc.
list() {
  awk -F '\t' -v wanted=" $* " '
    function mdoc(s) {
      gsub(/\\/, "\\e", s)
      gsub(/\xc2\xa7/, "\\(sc", s)
      if (s ~ /^[.\047]/) s = "\\\\&" s
      # Each sentence begins a line; a page that the text ends with is a reference.
      while (match(s, /[.:] [A-Z*?]/) && substr(s, RSTART, 1) == ".")
        s = substr(s, 1, RSTART) "\n" substr(s, RSTART + 2)
      if (match(s, /see [a-z.-]+\([0-9]\)\.$/)) {
        page = substr(s, RSTART + 4, RLENGTH - 8)
        s = substr(s, 1, RSTART + 2) "\n.Xr " page " " substr(s, length(s) - 2, 1) " ."
      }
      return s
    }
    NR == FNR { who[$1] = $2; about[$1] = $3; next }
    index(wanted, " " $1 " ") {
      if (!($1 in seen)) {
        if (open) print ".El"
        seen[$1] = open = 1
        print ".Ss " $1
        if (about[$1] != "") print mdoc(about[$1])
        print (who[$1] == "true" ? ($1 == "store" ? "Read from\n.Pa STATE/amp.json\nonly." : "Also read from\n.Pa STATE/amp.json .") : "")
        print ".Bl -tag -width Ds -compact"
      }
      name = $2
      gsub(/\|/, " | ", name)
      print ".It Li " name
      detail = $3 ($4 == "" ? "" : "; default: " $4)
      text = mdoc($5)
      print mdoc(detail) "."
      if (text != "") print text
    }
    END { if (open) print ".El" }' "$work/sections" "$work/rows" | sed '/^$/d'
}

for page in man/amp.json*.5; do
  awk -F '\t' 1 "$page" | while IFS= read -r line; do
    case $line in
    '.\" settings '*)
      printf '%s\n' "$line"
      # shellcheck disable=SC2086 # names of sections
      set -- ${line#??? settings }
      printf '%s\n' "$@" >>"$work/shown"
      list "$@"
      skip=true
      ;;
    '.\" end settings')
      skip=false
      printf '%s\n' "$line"
      ;;
    *) ${skip:-false} || printf '%s\n' "$line" ;;
    esac
  done >"$work/page"
  cmp -s "$work/page" "$page" && continue
  if $check; then
    diff -u "$page" "$work/page" || status=1
  else
    cp "$work/page" "$page"
    echo "$page"
  fi
done

cut -f 1 "$work/sections" | sort >"$work/all"
other=$(sort "$work/shown" | comm -3 - "$work/all")
[ -z "$other" ] || {
  echo "settings: on no page, on two, or not in the schema:" $other >&2
  status=1
}
exit $status
