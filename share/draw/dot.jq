# A graph for dot(1): the states that tasks went through, and who sent what to whom:
#   amp-ack log | jq -nrf dot.jq | dot -Tsvg >log.svg
include "history" {search: "./"};

# A quoted string of the DOT language.
def quoted: visible | cut(200) | "\"\(gsub("\\\\"; "\\\\") | gsub("\""; "\\\""))\"";

# Edges {group, from, to, label} in the order of their first, equal ones counted.
def edges($look):
  [to_entries[] | .value + {first: (.key + 1)}] | group_by([.group, .from, .to, .label]) | map(.[0] + {n: length}) | sort_by(.first)[]
  | ("\(.group)/\(.from)" | quoted) as $a | ("\(.group)/\(.to)" | quoted) as $b
  | "    \($a) [label=\(.from | quoted)];", "    \($b) [label=\(.to | quoted)];",
    "    \($a) -> \($b) [label=\("\(.first) \(.label // "")\(if .n > 1 then " ×\(.n)" else "" end)" | quoted)\($look)];";

history
| "digraph history {", "  rankdir=LR;", "  fontname=\"sans-serif\";", "  node [shape=box, style=rounded, fontname=\"sans-serif\"];",
  "  edge [fontname=\"sans-serif\", fontsize=10];", "  subgraph cluster_tasks {", "    label=\"tasks\";",
  ([.rows[] | select(.what == "step" and .kind == "task" and .to and .from != .to) | {group: .id, from: (.from // "(new)"), to, label: .event}] | edges("")),
  "  }", "  subgraph cluster_messages {", "    label=\"messages\";",
  ([deliveries[] | {group: "who", from: (.from // "unknown"), to: (.to // "unknown"), label: .type}] | edges(", style=dashed")),
  "  }", "}"
