# What became of the cases: $cases (their lines), $lines (as put in), and on the input what came of
# them: {g, t, kind, v}. Prints a sentence for each case that went otherwise.
def pad($n): tostring | ("0" * ($n - length)) + .;
def id_of($p; $c; $name):
  ($name | ltrimstr("m")) as $n
  | if $p == "sw4rm" then "00000000-0000-4000-8000-\($c * 1000 + ($n | tonumber) | pad(12))"
    elif $p == "rtp" then "evt_\($c)_\($name)"
    elif $p == "amp" then "task_dispatch-T-2026-\($c | pad(3))-\($n)"
    elif $p == "aop" then "S\($c)/T/\($n)"
    else "aof-\($c)-\($name)" end;
def flow_of($p; $c):
  if $p == "sw4rm" then "00000000-0000-4000-8000-\($c * 1000 | pad(12))" elif $p == "rtp" then "corr_\($c)"
  else "T-2026-\($c | pad(3))" end;
# What a line is an answer to, or what it tells of.
def about: .msg.payload.ack_for_message_id? // .payload.refEventId? // .ref_msg_id? // (.payload.affected_msgs? // [])[0]
  // .payload.original_event_id? // null;
def word: .msg.payload.status? // .msg.payload.error_code? // .payload.code? // .code? // .payload.escalation_type? //
  .payload.ackType? // .payload.signal? // .error_details.error_code? // "?";

[inputs] as $seen
| (reduce $seen[] as $s ({}; .["\($s.g)/\($s.kind)"] += [$s])) as $by
| $cases | to_entries[] | (.key + 1) as $c | .value as $case | ($case.p // "sw4rm") as $p
| [$lines[] | select(.case == $c and .step >= 0)] as $mine | $mine[0].group as $g
| ($by["\($g)/out"] // []) as $out | ($by["\($g)/error"] // []) as $errors
| ($by["\($g)/swept"] // []) as $swept | (($by["\($g)/status"] // []) | sort_by(.t)) as $status
| ($by["\($g)/dead"] // []) as $dead
| flow_of($p; $c) as $flow
| ([$mine[] | . as $l | ($l.text | fromjson?) as $m
    | ($m.message_id // $m.eventId // $m.msg_id // "") as $id
    | if any($out[]; .t == $l.time and .text == $l.text) then "pass"
      else ([$out[] | select(.t == $l.time) | .v | select(.) | select(about == $id) | "answer \(word)"]
            + [$errors[] | .v | select(.id == $id and .severity == "error") | "refuse \(.code)"])[0] // "nothing" end
    | select(. != $l.want) | "line \($l.step + 1): \(.), not \($l.want)"]
   + [($case.states // {}) | to_entries[] | (.key | split("@")) as $k | id_of($p; $c; $k[0]) as $id
      | (if $k[1] then ($k[1] | tonumber) else ([$status[].t] | max) end) as $t
      | ([$status[] | select(.t == $t) | .v | select(.msg_id == $id) | .state] | last // "unknown") as $got
      | select($got != .value) | "\(.key) is \($got), not \(.value)"]
   + [["late", "timely"][] as $how | ($case[$how] // [])[] as $name | id_of($p; $c; $name) as $id
      | ([$status[] | .v | select(.msg_id == $id) | .acks] | last // []) as $acks
      | select(any($acks[]; .late) != ($how == "late")) | "\($name) has no late acknowledgement: \($acks | tojson)"]
   + [($case.dead // {}) | to_entries[] | . as $e | id_of($p; $c; if .key == "*" then "m0" else .key end) as $id
      | ([$dead[] | .v | select(.id == $id or .msg_id == $id or ($e.key == "*" and .correlation == $flow)) | .code] | last) as $got
      | select($got != .value) | "\(.key) is a dead letter of \($got), not \(.value)"]
   + [($case.told // {}) | to_entries[] | id_of($p; $c; .key) as $id
      | ([$swept[], $out[] | select(.text | IN($mine[].text) | not) | .v | select(.) | select(about == $id) | word]) as $got
      | select($got != .value) | "\(.key): told \($got | tojson), not \(.value | tojson)"]
   + [$case | select(has("sent")) | .sent as $n
      | ([$swept[] | .v | select(.) | (.msg? // .) | select((.correlation_id // .corrId // .task_id) == $flow)
         | select(.message_type == "DATA" or .message_type == "TOOL_CALL" or .kind == "task_create" or .kind == "message" or .type == "task_dispatch")]
         | length) as $got
      | select($got != $n) | "sent \($got) times again, not \($n)"])
| select(length > 0) | "\($file):\($c): \($case.what): \(join("; "))"
