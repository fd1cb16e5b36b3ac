#!/bin/sh
# schemas.sh [--check] BINDIR [SCHEMA]: makes the properties of schemas/records/ that verbs print.
#
# The members of a view are those that TOOL VERB --options prints: their order, their types and which of them are
# always there come from it; what a schema says beyond that (descriptions, words, bounds, titles) stays. A schema may
# have more members that another view or a document has: they are named below. --check changes nothing and fails if a
# schema differs.
set -eu
check=false
[ "${1-}" = --check ] && check=true && shift
bin=$1 only=${2-}
dir=schemas/records
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
differ=0

cat >"$work/make.jq" <<'JQ'
def plain($form): {text: {type: "string", minLength: 1}, word: {type: "string", minLength: 1},
  time: {type: "string", format: "date-time"}, integer: {type: "integer"}, boolean: {type: "boolean"}}[$form];
def fits($form; $defs):
  (if has("$ref") then $defs[.["$ref"] | ltrimstr("#/$defs/")] else . end) as $p |
  $p == null or $form == "other" or # null: of another file
  (($form == "text" or $form == "word") and ($p.type == "string" or ($p.enum // [null] | all(type == "string")))) or
  ($form == "time" and $p.format == "date-time") or
  ($p.type // ($p.const | type)) == $form;
def object($members; $defs; $more): (.properties // {}) as $old |
  .required = [$members[] | select(.path | length == 1) | select(.ever) | .path[0]] |
  .properties = (reduce ($members[] | select(.path | length == 1)) as $m ({};
      ($old[$m.path[0]] // null) as $was | .[$m.path[0]] =
      if $m.form == "rows" then
        ($was // {type: "array"}) | .items = ((.items // {type: "object", additionalProperties: false}) |
          object([$members[] | select(.path[0] == $m.path[0] and (.path | length > 1)) | .path |= .[1:]]; $defs; []))
      elif $was != null and ($was | fits($m.form; $defs)) then $was
      else plain($m.form) + (if $was.description then {description: $was.description} else {} end) end)
    + ($old | with_entries(select(.key as $k | $more | index($k)))));
def line: if type == "object" then "{" + (to_entries | map((.key | tojson) + ": " + (.value | line)) | join(", ")) + "}"
  elif type == "array" then "[" + (map(line) | join(", ")) + "]" else tojson end;
def page($in): line as $l | if ($in == 0 and type == "object" or ($l | length) + $in > 200) and type == "object" then
    "{\n" + (to_entries | map((" " * ($in + 2)) + (.key | tojson) + ": " + (.value | page($in + 2))) | join(",\n")) + "\n" + (" " * $in) + "}"
  else $l end;
[$rows | split("\n")[] | select(startswith("member\t")) | split("\t")[1:] |
  {path: (.[0] | split(".")), form: .[1], ever: (.[2] == "ever")}] as $members |
(."$defs" // {}) as $defs | . as $whole | object($members; $defs; $more | split(" ")) |
if $check then . == $whole | if . then empty else "differs" end else page(0) end
JQ

# Schema, command; then, behind a colon, members that its view does not have.
while IFS=: read -r schema command more; do
  [ -z "$only" ] || [ "$only" = "$schema" ] || continue
  # shellcheck disable=SC2086 # the words of a command
  rows=$("$bin"/$command --options)
  jq -r --arg rows "$rows" --arg more "${more# }" --argjson check $check -f "$work/make.jq" "$dir/$schema.json" >"$work/out"
  $check || cat "$work/out" >"$dir/$schema.json"
  ! $check || [ ! -s "$work/out" ] || { echo "$dir/$schema.json is not what '$command' prints" >&2 && differ=1; }
done <<'LIST'
activity:agent-handoff activity
agent:agent-registry show
binding:worktree-bind list
cursor:amp-ack cursors list
decision_entry:hitl-prompt audit
delivery:amp-ack status
handoff:agent-handoff pending
job:task-queue list: overrides
question:hitl-prompt show
reservation:worktree-bind reservations
security_event:amp-ack audit
story:task-dispatch show
suspension:hitl-prompt suspend
task:task-dispatch list
trusted_key:amp-sign trust list
work_status:task-queue status
worktree_report:worktree-bind gc
LIST
exit $differ
