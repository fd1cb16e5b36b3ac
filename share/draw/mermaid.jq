# A Mermaid sequence diagram:  amp-ack log --messages --task TASK | jq -nrf mermaid.jq >story.mmd
# Participants are P1, P2 … with their names as labels. Every character except plain letters, digits and
# signs is written as an entity, so that no text is read as syntax.
include "history" {search: "./"};

def PEOPLE: 200;
def LINES: 2000;

def entities($most):
  visible | explode | .[:$most] as $head
  # "--" could be read as an arrow or, behind a tag, as the end of a comment.
  | [range($head | length) as $i | $head[$i]
    | if (. >= 97 and . <= 122) or (. >= 65 and . <= 90) or (. >= 44 and . <= 57 and . != 45) or . == 32 or . == 95 or
        . == 40 or . == 41 or (. == 45 and ($i == 0 or $head[$i - 1] != 45)) then [.] | implode else "#\(.);" end]
  | join("") + if length > $most then "#8230;" else "" end;

history | [steps] as $all | $all[:LINES] as $steps | ($steps | actors(PEOPLE)) as $who
| def person($name): "P\(($who | index([$name]) // (length - 1)) + 1)";
  "sequenceDiagram",
  (if $who == [] then "    participant P0 as none" else range($who | length) | "    participant P\(. + 1) as \($who[.] | entities(60))" end),
  ($steps[] | ([.what, .said[], .id // empty] | map(select(. != "") | entities(120)) | join(" ") | if . == "" then "-" else . end) as $words |
    if .is == "message" then "    \(person(.from))->>\(person(.to)): \($words)"
    elif .is == "reply" then "    \(person(.from))-->>\(person(.to)): \($words)"
    elif .is == "refusal" then "    \(person(.from))--x\(person(.to)): \($words)"
    elif $who == [] then "    Note over P0: \($words)"
    elif .from == null then "    Note over P1,P\($who | length): \($words)"
    else "    Note over \([person(.from), person(.to // .from)] | unique | sort_by(.[1:] | tonumber) | join(",")): \($words)" end),
  if ($all | length) > LINES then "    Note over P1: \(($all | length) - LINES) more are left out" else empty end
