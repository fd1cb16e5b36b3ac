# The cases of a file (read with -n -R), as lines to put in: one object each, in the order of time.
def fault($why): error("\($file):\(.at): \($why)");
def pad($n): tostring | ("0" * ($n - length)) + .;
# The conversation of case $c, and the id of its message of that name; "?..." is a text as it stands.
def uuid($c; $n): "00000000-0000-4000-8000-\($c * 1000 + $n | pad(12))";
def number_of: ltrimstr("m") | tonumber;
def clock: (. * 1000 | round) as $ms
  | (1772366400 + ($ms / 1000 | floor) | strftime("%Y-%m-%dT%H:%M:%S")) + ".\($ms % 1000 | pad(3))Z";
def sized: if .payload then .content_length = (.content_length // (.payload | tojson | utf8bytelength)) else . end;

def id_of($p; $c; $name):
  if $name | startswith("?") then $name[1:]
  elif $p == "sw4rm" then uuid($c; $name | number_of)
  elif $p == "rtp" then "evt_\($c)_\($name)"
  elif $p == "amp" then "task_dispatch-T-2026-\($c | pad(3))-\($name | number_of)"
  elif $p == "aop" then "S\($c)/T/\($name | number_of)"
  else "aof-\($c)-\($name)" end;

# sw4rm: a message, or an acknowledgement of one.
def sw4rm($c; $i; $s):
  if $s[1] == "send" then
    {message_id: uuid($c; $s[2] | number_of), producer_id: "p\($c)", correlation_id: uuid($c; 0),
     sequence_number: ($s[2] | number_of), retry_count: 0, message_type: "DATA",
     content_type: "application/json", payload: {}} * ($s[3] // {}) | sized
  else
    {message_id: uuid($c; 900 + $i), producer_id: "r\($c)", correlation_id: uuid($c; 0),
     sequence_number: ($i + 1), retry_count: 0, message_type: "ACKNOWLEDGEMENT",
     content_type: "application/json",
     payload: ({ack_for_message_id: id_of("sw4rm"; $c; $s[2]), ack_stage: $s[1]}
       + if $s[1] | IN("REJECTED", "FAILED") then {error_code: "INTERNAL_ERROR"} else {} end)}
    * ($s[3] // {}) | sized
  end;

# rtp: an event of p's outbox, or one of the recipient's.
def rtp($c; $i; $s):
  {eventId: "evt_\($c)_s\($i)", seq: ($i + 1), kind: $s[1], sourceNodeId: "n\($c)r", sourceAgentId: "r\($c)",
   toAgentId: "p\($c)", corrId: "corr_\($c)", createdAt: (0 | clock), trace: {attempt: 1}} as $e
  | "tsk_\($c)" as $task
  | (if $s[1] == "send" then
       $e + {eventId: id_of("rtp"; $c; $s[2]), kind: "task_create", sourceNodeId: "n\($c)", sourceAgentId: "p\($c)",
         toAgentId: "r\($c)", payload: {taskId: $task, title: "t", toAgents: ["r\($c)"],
         requesterAgentId: "p\($c)", responseRequired: true}}
     elif $s[1] | IN("accepted", "processed", "failed_terminal") then
       $e + {kind: "ack", payload: {refEventId: id_of("rtp"; $c; $s[2]), refKind: "task_create",
         ackType: $s[1], ackedByNodeId: "n\($c)r", ackedByAgentId: "r\($c)", ackedAt: ($s[0] | clock)}}
     elif $s[1] == "task_accept" then
       $e + {payload: {taskId: $task, acceptedByAgentId: "r\($c)", etaSeconds: 60}}
     elif $s[1] == "task_update" then
       $e + {payload: {taskId: $task, status: "in_progress", progress: 5}}
     elif $s[1] == "task_complete" then
       $e + {payload: {taskId: $task, completedByAgentId: "r\($c)", resultSummary: "r", completedAt: ($s[0] | clock)}}
     elif $s[1] == "task_failed" then
       $e + {payload: {taskId: $task, failedByAgentId: "r\($c)", failureClass: "timeout", errorSummary: "e",
         failedAt: ($s[0] | clock)}}
     else $e + {payload: {refEventId: id_of("rtp"; $c; $s[2]), body: "b"}} end)
  * ($s[3] // {});

def amp($c; $i; $s):
  "T-2026-\($c | pad(3))" as $task
  | (if $s[1] == "send" then
       {msg_id: id_of("amp"; $c; $s[2]), protocol_version: "AMP/1.0", type: "task_dispatch", from: "coordinator",
        to: "executor", task_id: $task, timestamp: (0 | clock), requires_ack: true, ack_timeout_sec: 300,
        payload: {description: "d", repo: "/srv/repo", branch: "feature/x", subtasks: [{subtask_id: "\($task)-S1",
          description: "d", estimated_lines: 1}], acceptance_criteria: ["c"], risk_level: "low"}}
     else
       {protocol_version: "AMP/1.0", type: "ack", task_id: $task, timestamp: ($s[0] | clock),
        ref_msg_id: id_of("amp"; $c; $s[2]), from: "executor", ack_stage: $s[1]}
       | if $s[1] | IN("REJECTED", "FAILED") then
           .type = "nack" | .failed_stage = "READ" | .code = "branch_violation" | .message = "m" |
           .rule = "branch" | .retryable = false | del(.ack_stage)
         else . end
     end) * ($s[3] // {});

def aop($c; $i; $s):
  {aop_version: "2.0.2-C", schema_version: "2.0.2", protocol_family: "AOP"} as $head
  | (if $s[1] == "send" then
       $head + {message_type: "TASK", session: {session_id: "S\($c)", created_at: (0 | clock), orchestrator: "o",
         origin: "CLI"}, target: {agent_name: "Emma", role: "EXECUTOR", provider: "CODEX", model: "m"},
         task: {task_id: "T", attempt: ($s[2] | number_of), objective: "do it", category: "ANALYSIS", complexity: "LOW",
         environment: {workspace_root: "/srv/w"}}}
     elif $s[1] == "RESPONSE" then
       $head + {message_type: "RESPONSE", session_id: "S\($c)", task_id: "T", agent: {name: "Emma", provider: "CODEX",
         model: "m"}, task_status: {state: "COMPLETED", final_signal: "SUCCESS", message: "ok"},
         execution_summary: {summary: "did it", actions: ["a"]}, timing: {started_at: (0 | clock),
         completed_at: ($s[0] | clock), duration_seconds: 1}}
     else
       {aop_version: "2.0.2-C", message_type: "EVENT", event: $s[1], session_id: "S\($c)", task_id: "T",
        timestamp: ($s[0] | clock)}
     end) * ($s[3] // {});

[foreach (inputs | select(length > 0)) as $text (0; . + 1;
  . as $n | ($text | try fromjson catch error("\($file):\($n): \(.)")) + {at: $n})
 | if (.what | type) != "string" or (.steps | type) != "array" then fault("what and steps, please")
   elif (keys - ["what", "p", "options", "steps", "lines", "states", "late", "timely", "dead", "told", "sent", "at"]) != []
   then fault("an unknown member") else . end
 | . as $case | (.p // "sw4rm") as $p
 | ((.states // {}) | keys[] | split("@")[1] // empty | tonumber
    | {options: ($case.options // []), time: ., case: $case.at, step: -1}),
   (.steps | to_entries[] | .key as $i | .value as $s
 | (if $s[1] == "raw" then $s[2]
    elif $p == "sw4rm" then sw4rm($case.at; $i; $s)
    elif $p == "rtp" then rtp($case.at; $i; $s)
    elif $p == "amp" then amp($case.at; $i; $s)
    else aop($case.at; $i; $s) end) as $m
 | {options: ($case.options // []), time: $s[0], case: $case.at, step: $i, want: ($case.lines[$i] // "pass"),
    text: (if $m | type == "string" then $m else ($m | tojson) end)})]
| group_by(.options) | to_entries[] | .key as $g | .value
| sort_by(.time, .case, .step)[] | . + {group: $g, now: (.time | clock)}
