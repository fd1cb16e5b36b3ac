# Traces for OpenTelemetry, as OTLP/JSON: a trace for each task or correlation, a span for each message and
# attempt:  amp-ack log | jq -ncf otlp.jq >traces.json
# The ids are digests of the names, so a second export has the same ids.
include "history" {search: "./"};

# 8 hex digits: a polynomial over the characters modulo a prime; each $by gives others. The last terms spread
# the last character.
def hash($by): reduce ((explode + [range(8)])[]) as $c (7; (. * $by + $c) % 4294967291)
  | [range(8) as $i | (. / pow(16; 7 - $i) | floor) % 16 | "0123456789abcdef"[.:. + 1]] | join("");
def digest($kind; $digits): "\($kind)\n\(.)" | [hash(65599, 131071, 31337, 524287)] | join("") | .[:$digits];
def trace: digest("trace"; 32);
def span($kind): digest($kind; 16);
def nanos: "\(.)000000";
def attributes: to_entries | map(select(.value) | {key, value: {stringValue: (.value | tostring)}});
# The transitions of a record.
def events: map({timeUnixNano: (.ms | nanos), name: .event,
  attributes: ({"amp.state": .to, "amp.actor": .actor, "amp.code": .details.code} | attributes)});

history | . as $h
| (.rows | map(select(.what == "step" and (.kind | is_in("message", "task")) and .id)) | group_by(.kind + " " + .id) |
    map({key: "\(.[0].kind) \(.[0].id)", value: events}) | from_entries) as $events
| [.rows[] | select(.details.task)] | group_by(.details.task) | map({task: .[0].details.task, from: (map(.ms) | min), to: (map(.ms) | max), n: .[0].n})
| sort_by(.n) | map({traceId: (.task | trace), spanId: (.task | span("task")), name: .task, kind: 1, startTimeUnixNano: (.from | nanos),
    endTimeUnixNano: (.to | nanos), events: ($events["task \(.task)"] // []), status: {}}) as $tasks
| {resourceSpans: [{resource: {attributes: ({"service.name": "amp"} | attributes)}, scopeSpans: [{scope: {name: "amp-ack log"}, spans: ($tasks + [
    $h | deliveries[] | (.original // .id) as $first | {traceId: (.task // .correlation // .id | trace), spanId: (.id | span("message"))}
      + (if $first != .id then {parentSpanId: ($first | span("message"))} elif .task then {parentSpanId: (.task | span("task"))} else {} end)
      + {name: (.type // "message"), kind: 4, startTimeUnixNano: (.sent | nanos), endTimeUnixNano: ([.end // $h.last, .sent] | max | nanos),
         attributes: ({"messaging.message.id": .id, "messaging.message.conversation_id": .correlation, "messaging.destination.name": .to,
           "amp.sender": .from, "amp.protocol": .protocol, "amp.task": .task, "amp.state": .state,
           "error.type": (if failed then .code else null end)} | attributes),
         events: ($events["message \(.id)"] // []), status: (if failed then {code: 2} elif .end then {code: 1} else {} end)}])}]}]}
