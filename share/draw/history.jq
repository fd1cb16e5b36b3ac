# The history that `amp-ack log` prints, for the drawings beside this file. Names and texts come from
# messages and are untrusted: each drawing escapes them when it writes them.

# How many lanes, rows of a table and steps a drawing has at most.
def ACTORS: 12;
def STEPS: 500;

# ---- texts ----

# In one line: controls and characters that turn or hide their neighbours become U+FFFD.
def visible:
  explode | map(
    if . >= 32 and . < 127 then .
    elif . == 9 or . == 10 or . == 13 then 32
    elif . < 160 or . == 173 or . == 1564 or (. >= 8203 and . <= 8207) or (. >= 8232 and . <= 8238) or
      (. >= 8288 and . <= 8303) or (. >= 55296 and . <= 57343) or . == 65279 or (. >= 65529 and . <= 65535) or
      (. >= 917504 and . <= 921599) then 65533
    else . end) | implode;

# To a number of characters, or of columns of a fixed-width font.
def cut($most): if length > $most then .[:$most - 1] + "…" else . end;
def columns: if length == utf8bytelength then length else [explode[] | if . < 4352 then 1 else 2 end] | add end;

def fit($room): visible | if columns <= $room then . else cut($room) | until(columns <= $room; .[:-2] + "…") end;

# At most $most lines of $room columns; a last line that is cut ends in "…".
def wrap($room; $most):
  def pieces: if columns <= $room then . else
    (if length == utf8bytelength then $room else $room / 2 | floor end) as $n | .[:$n], (.[$n:] | pieces) end;
  reduce (cut($room * $most + 1) | visible | split(" ")[] | select(. != "") | pieces) as $word ({lines: [], left: 0};
    ($word | columns) as $w | if .left > $w then .left = .left - $w - 1 | .lines = .lines[:-1] + [.lines[-1] + " " + $word]
      else .left = $room - $w | .lines = .lines + [$word] end)
  | .lines | if length > $most then .[:$most - 1] + [.[$most - 1] | (if columns < $room then . else .[:-2] end) + "…"] else . end;

# For XML and HTML.
def xml: visible | @html;

def is_in(words): . as $v | any(words; . == $v);

# ---- times: all are in UTC ----

def ms: (.[:19] + "Z" | fromdateiso8601) * 1000 + ((.[19:] | ltrimstr(".") | rtrimstr("Z")) + "000" | .[:3] | tonumber);
def moment: . / 1000 | floor | todate | sub("T"; " ") | .[:19];
def day: moment | .[:10];
# Within $span ms.
def clock($span): (. % 1000 | tostring | "00"[:3 - length] + .) as $rest | moment |
  if $span > 172800000 then .[5:16] elif $span > 60000 then .[11:] else .[11:] + "." + $rest end;
def duration:
  if . < 1000 then "\(round) ms" elif . < 120000 then "\(. / 100 | round / 10) s"
  elif . < 7200000 then "\(. / 60000 | round) min" else "\(. / 360000 | round / 10) h" end;

# ---- what a message says ----

# The first of these members is its word, and the first of the others its text. Add yours.
def WORDS: ["decision"], ["completion_status"], ["outcome"], ["task_status", "final_signal"], ["escalation_type"],
  ["status"], ["ackType"], ["ack_stage"], ["operation"], ["reason_type"], ["failureClass"], ["tool_name"],
  ["error_code"], ["review_scope"], ["event"], ["kind"];
def TEXTS: ["description"], ["note"], ["rationale"], ["reason"], ["execution_summary", "summary"], ["progress", "message"],
  ["task", "objective"], ["title"], ["subject"], ["body"], ["text"], ["progress"], ["notes"], ["resultSummary"],
  ["errorSummary"], ["planSummary"], ["topic"], ["task_type"], ["summaryRef"];

def member(paths): first(. as $v | paths as $p | try ($v | getpath($p)) catch empty | strings | select(. != ""));
def count($what): if . == 1 then "1 \($what)" else "\(.) \($what)s" end;
def dollars: "$\(. * 10000 | round / 10000)";
def at_place: "\(.file // "" | tostring)\(if .line then ":\(.line)" else "" end)";

def body: if .payload | type == "object" then .payload else . end;
def cost: (select(.usd > 0) | .usd | dollars), (select(.tokens > 0) | "\(.tokens) tokens");
# What an executor's work log says that it used: {usd, tokens}.
def used: body.work_log | arrays | .[] | objects | select(.action == "usage") | .detail | strings | (try fromjson catch null) | objects
  | {usd: (.cost_usd | numbers // 0), tokens: ([.input_tokens, .output_tokens | numbers] | add // 0)};

# The parts of what a message says, the short ones first; costs: what is known of it besides.
def parts(costs):
  body as $p
  | ($p | member(WORDS)),
    ($p.tech_constraints | objects | .attempt | numbers | "attempt \(.)"),
    ($p.diff_summary | objects | "+\(.lines_added // 0) −\(.lines_removed // 0)",
      (.files_changed | arrays | length | count("file"))),
    ($p.commit_hash | strings | .[:12]),
    ($p.confidence | numbers | "confidence \(.)"),
    (.cost_tracking | objects | .actual_cost_usd // .estimated_cost_usd | numbers | dollars),
    ($p.cost_summary | objects | .total_cost_usd | numbers | dollars),
    costs, (used | cost),
    (.progress_percentage, $p.progress, (.progress | objects | .percentage) | numbers | "\(.) %"),
    ($p.tests | objects | "\(.passed // 0) of \(.total // 0) tests"),
    ($p.issues | arrays | map(objects) | select(length > 0) | (length | count("issue")) + ": " + (.[0] |
      [.severity, at_place, .description | strings | select(. != "")] | join(" "))),
    ($p.blockers | arrays | map(strings) | select(length > 0) | (length | count("blocker")) + ": " + .[0]),
    ($p | member(TEXTS)),
    ($p.self_assessment | objects | .notes | arrays | map(strings) | join("; ") | select(. != "")),
    (.payload | strings);

# How a word looks.
def look: is_in("approved", "complete", "completed", "COMPLETED", "SUCCESS", "done", "APPROVED", "approve") as $good
  | if $good then "good" elif is_in("rejected", "failed", "FAILED", "FAILURE", "ABORTED", "REJECTED", "TIMED_OUT", "expired") then "bad"
    elif is_in("partial", "blocked", "locked", "rework", "cancelled", "PARTIAL") then "warn" else "" end;

# ---- the rows ----

# {rows, first, last, sent}: sent has the delivery of each message by its id; times are ms.
def history:
  [., inputs | objects | select(.at) | .details |= (. // {}) | select(.details.implied | not) | .ms = (.at | ms)
    | if .message then .message = (.message | .msg // .) else . end]
  | . as $rows
  | {rows: $rows, first: ([$rows[].ms] | min // 0), last: ([$rows[].ms] | max // 0),
     sent: ($rows | map(select(.what == "step" and .kind == "message" and .id)) | group_by(.id) | map({key: .[0].id, value: {
       id: .[0].id, n: .[0].n, sent: .[0].ms, type: .[0].details.type, protocol: .[0].details.protocol,
       from: .[0].details.sender, to: .[0].details.recipient, correlation: .[0].correlation,
       task: (map(.details.task | strings)[-1]), original: (map(.details.original | strings)[-1]),
       code: (map(.details.code | strings)[-1]), state: (map(.to | strings)[-1]),
       acked: (map(select(.details.stage) | .ms)[0]), read: (map(select(.to == "READ") | .ms)[0]),
       end: (map(select(.to | is_in("FULFILLED", "FAILED", "REJECTED", "TIMED_OUT")) | .ms)[0])}}) | from_entries)};

def failed: .state | is_in("FAILED", "REJECTED", "TIMED_OUT");
def deliveries: [.sent[]] | sort_by(.n);
def spent: [(.rows[] | select(.kind == "spent") | .details.cost_micros // 0 | . / 1000000), (.rows[].message | objects | used | .usd)] | add // 0;
# The one task of all messages, or null.
def task: [.sent[].task | strings] | unique | if length == 1 then .[0] else null end;
def title: $ARGS.named.title // (task | if . then "History of \(.)" else "History of the messages" end);
def period: if .first > 0 then "\(.first | moment) – \(.last | moment) UTC" else "no entries" end;
def hint: if any(.rows[]; .message) or (.sent | length == 0) then null else "amp-ack log --messages has also what was said" end;

# What only the tools need: sources, routers, outboxes, changes without a new state.
def bookkeeping:
  .what != "step" or (.kind | is_in("log", "route", "cursor", "sequence", "nonce", "inboxes", "awaited", "job", "told", "base",
    "capability", "task_ids", "outbox")) or (.from and .from == .to);

# The costs that agents reported, by "agent id" of the message that asked for the work.
def costs: reduce (.rows[] | select(.kind == "spent" and .details.agent)) as $r ({};
  reduce ($r | .details.agent + " " + (.correlation, .id | strings)) as $k (.; .[$k] =
    {usd: ((.[$k].usd // 0) + ($r.details.cost_micros // 0) / 1000000), tokens: ((.[$k].tokens // 0) + ($r.details.tokens // 0))}));
# The keys of costs that a step is about: what a message answers, or an acknowledgement.
def answered: .id as $id | .details | if .by then "\(.by) \($id)" else empty end;
def answers: .details.sender as $by | select($by) | .message.context_ref | arrays | .[] | strings | "\($by) \(.)";

# A name that is not a tool's, or null.
def actor: strings // "" | if test("^($|amp-(ack|route|sign|mcp|top)|task-(dispatch|queue)|hitl-prompt|worktree-bind|agent-registry)([.]|$)") then null else . end;

# What happened, one object for each arrow, note or change of a task's state:
#   is     message, reply, refusal, note or state
#   from, to  actors; null: the step is about none
#   what   its name; said: a list of texts
#   look   good, bad, warn or ""
def steps:
  . as $h | costs as $costs
  | (reduce (.rows[] | answers, answered) as $k ({}; .[$k] = true)) as $told
  | .rows[] | select(.what == "step") | .details as $d
  | {ms, id, is: "note", from: null, to: null, what: "\(.kind) \(.event)", said: [], look: ""} +
    if .kind == "message" and .to == "SENT" then
      {is: "message", from: ($d.sender // $d.recipient), to: ($d.recipient // $d.sender), what: ($d.type // "message"),
       look: ((.message | objects | body | member(WORDS) | look) // ""),
       said: [if .event == "resend" then "again" else null end,
         ([answers | $costs[.] // empty | cost] as $cost | .message | objects | parts($cost[]))]}
    elif .kind == "message" and (.event | startswith("nack_")) then
      {is: "refusal", from: $d.by, to: $d.sender, what: ($d.stage // .to), said: [$d.code, $d.why, if $d.late then "late" else null end], look: "bad"}
    elif .kind == "message" and (.event | startswith("ack_")) then
      {is: "reply", from: $d.by, to: $d.sender, what: $d.stage, protocol: $d.protocol,
       said: [(answered | $costs[.] // empty | cost), if $d.late then "late" else null end]}
    elif .kind == "message" and .from != .to then
      {from: $d.sender, to: $d.recipient, what: .event, said: ["\(.from // "") → \(.to)", $d.code], look: (.to | look)}
    elif .kind == "dead" and .from == null then
      {from: $d.sender, what: "dead letter", said: [.to, $d.code, $d.why], look: "bad"}
    elif .kind == "dead" and .from != .to then {from: $d.sender, what: "dead letter", said: ["\(.from) → \(.to)", $d.code]}
    elif .kind == "token" and .event != "claim" then
      {from: $d.sender, what: ($d.decision // .event), said: [if $d.original then "of \($d.original)" else null end]}
    elif .kind == "refused" and .from == null then {from: $d.sender, what: "refused", said: [$d.type, $d.code, $d.why], look: "bad"}
    elif .kind == "escalation" and $d.decision and .from != .to then
      {is: "message", from: $d.by, to: ($h.sent[.id].from // null), what: "decision", said: [$d.decision, $d.why], look: "warn"}
    elif .kind == "escalation" and .from == null and ($h.sent[.id] | not) then
      {what: "question", said: [$d.type, $d.why], look: "warn"}
    elif .kind == "task" and .from != .to then
      {is: "state", id: null, what: .id, said: ["\(if .from then .from + " → " else "" end)\(.to)", $d.code], look: (.to | look)}
    elif .kind == "landing" and .to == "landed" then {is: "state", what: "landing", said: [.id, .to], look: "good"}
    elif (.kind | is_in("override", "approval", "suspend", "pause")) and .from != .to then {said: [.id, .to]}
    elif .kind == "spent" and (any($told["\($d.agent) " + (.correlation, .id | strings)]; .) | not) then
      {from: $d.agent, what: "cost", said: [{usd: ($d.cost_micros // 0 | . / 1000000), tokens: ($d.tokens // 0)} | cost]}
    else empty end
  | .to = (.to | actor) | .from = ((.from | actor) // .to)
  | if .from == null and .is != "state" then .is = "note" elif .is | is_in("message", "reply", "refusal") then .to = (.to // .from) else . end
  | .said |= map(strings | select(. != ""));

# The actors of steps, in the order of their first; the last may stand for the others.
def actors($most):
  reduce (.[] | .from, .to | strings) as $a ([]; if index([$a]) then . else . + [$a] end)
  | if length > $most then .[:$most - 1] + ["\(length - $most + 1) others"] else . end;
