#!/usr/bin/env bash
# check.sh TASKS LINES TRAIL REPORT STORAGE: whether the final report of a session adds up. It is computed anew from the
# TASKs that were sent, the lines that were emitted, and the audit trail; no tool of the project is used. Prints a line
# for each rule that is broken, "RULE: what"; status 1 if there is any.
set -eu
exec jq -rn --slurpfile tasks "$1" --slurpfile lines "$2" --slurpfile trail "$3" --slurpfile report "$4" --arg storage "$5" '
  def micros: (. // 0) * 1000000 | round;
  def used: {micros: (.actual_cost_usd | micros), in: (.tokens_input // 0), out: (.tokens_output // 0)};
  def sum: {micros: (map(.micros) | add // 0), in: (map(.in) | add // 0), out: (map(.out) | add // 0)};
  def group(f; v): group_by(f) | map({key: .[0] | f | tostring, value: map(v) | sum}) | from_entries;
  def rule($name; ok; what): if ok then empty else "\($name): \(what)" end;
  $report[0] as $r
  | ($lines | map(select(.message_type == "RESPONSE"))) as $responses
  | ($lines | map(select(.message_type == "EVENT"))) as $events
  | ($tasks | map({key: .task.task_id, value: .}) | from_entries) as $sent
  | ($responses | map({key: .task_id, value: .}) | from_entries) as $answer
  | ($r.tasks | map({key: .task_id, value: .}) | from_entries) as $told
  | def parent: $sent[.].task.parent_task_id;
    def depth: if parent == null then 1 else 1 + (parent | depth) end;
    def ancestors: if parent == null then empty else parent, (parent | ancestors) end;
    def records($type): $trail | map(select(.record_type == $type));
  [rule("one-response"; ($responses | map(.task_id) | sort) == ($sent | keys | sort);
    "the TASKs and the RESPONSEs differ: \(($sent | keys) - ($responses | map(.task_id)))"),
  rule("tasks"; ($told | keys | sort) == ($sent | keys | sort); "the report has not the TASKs that were sent"),
  rule("status"; all($r.tasks[]; . as $t | $answer[.task_id] | . != null and .task_status.state == $t.state
      and .task_status.final_signal == $t.final_signal and .error_details.error_code == $t.error_code);
    "a state, signal or code is not that of the RESPONSE"),
  rule("total-cost"; ($r.cost_summary.total_cost_usd | micros) == ($responses | map(.cost_tracking // {} | used) | sum.micros);
    "the total is not the sum of the RESPONSEs"),
  rule("total-tokens"; [$r.cost_summary.total_tokens_input, $r.cost_summary.total_tokens_output]
      == ($responses | map(.cost_tracking // {} | used) | sum | [.in, .out]); "the tokens are not the sum of the RESPONSEs"),
  rule("by-task"; ($r.cost_summary.by_task | group(.task_id; used)) == ($responses | group(.task_id; .cost_tracking // {} | used));
    "a cost is not that of the RESPONSE"),
  rule("by-agent"; ($r.cost_summary.by_agent | group(.agent; used))
      == ($responses | group($sent[.task_id].target.agent_name; .cost_tracking // {} | used)); "the agents do not add up"),
  rule("runs"; all($r.tasks[]; . as $t | (.cost_tracking | used) == (.runs | map(used) | sum)
      and ([.runs[] | [.provider, .model]] == [records("ROUTING_DECISION")[] | select(.task_id == $t.task_id)
        | [.actor.provider, .payload.model_selected]])); "runs do not add up, or are not those that were chosen"),
  rule("models"; all($r.tasks[]; . as $t | all(.runs[]; [.provider, .model] as $m
      | $sent[$t.task_id] | any(.target, .execution_policy.alternative_models[]?; [.provider, .model] == $m)));
    "a model is not one of the TASK"),
  rule("by-model"; ($r.cost_summary.by_model | group([.provider, .model]; used)) == ([$r.tasks[].runs[]] | group([.provider, .model]; used))
      and ($r.cost_summary.by_model | map(.runs) | add // 0) == ([$r.tasks[].runs[]] | length); "the models do not add up"),
  rule("by-provider"; ($r.cost_summary.by_provider | group(.provider; used)) == ([$r.tasks[].runs[]] | group(.provider; used));
    "the providers do not add up"),
  rule("nodes"; ($r.delegation_graph.nodes | map([.task_id, .state, .depth]) | sort)
      == ([$sent | keys[] | [., $answer[.].task_status.state, depth]] | sort); "the nodes are not the TASKs"),
  rule("edges"; ($r.delegation_graph.edges | map([.from, .to]) | sort)
      == ([$sent | keys[] | select(parent) | [parent, .]] | sort); "the edges are not the parents"),
  rule("depth"; $r.delegation_graph.depth == ([$sent | keys[] | depth | select(. <= 3)] | max)
      and all($sent | keys[]; depth <= 3 or $answer[.].error_details.error_code == "E_MAX_DEPTH_EXCEEDED");
    "the depth is another one, or a TASK on a fourth level was carried out"),
  rule("branches"; all($sent | keys[]; ($answer[.].task_status.state == "SKIPPED")
      == any(ancestors; $answer[.].task_status.state as $s | $s == "FAILED" or $s == "ABORTED"));
    "a TASK below one that was lost was not skipped, or another one was"),
  rule("events"; $r.events == $events; "the events are not those that were emitted"),
  rule("counts"; ($r.extensions.x_states | to_entries | map(select(.value > 0)) | from_entries)
      == ($responses | group_by(.task_status.state) | map({key: .[0].task_status.state, value: length}) | from_entries)
      and $r.extensions.x_tasks == ($sent | length); "the numbers of states are wrong"),
  rule("errors"; ($r.extensions.x_errors | map([.error_code, .tasks]) | sort)
      == ($responses | map(.error_details.error_code | values) | group_by(.) | map([.[0], length])); "the numbers of codes are wrong"),
  rule("storage"; $r.audit_trail.storage_path == $storage; "the storage path is another one"),
  rule("sequence"; ($trail | map(.audit_sequence)) as $n | $n == ($n | unique) and ($trail | map(.audit_record_id) | unique | length) == ($n | length);
    "a record of the trail is out of order, or there twice"),
  rule("dispatched"; (records("TASK_DISPATCHED") | map(.payload) | sort_by(.task.task_id)) == ($tasks | sort_by(.task.task_id));
    "the trail has not each TASK once"),
  rule("received"; (records("RESPONSE_RECEIVED") | map(.payload) | sort_by(.task_id)) == ($responses | sort_by(.task_id));
    "the trail has not each RESPONSE once"),
  rule("fallbacks"; all(records("ROUTING_DECISION")[]; .task_id as $t | .payload.fallback_triggered == (.payload.fallback_reason != null)
      and (.payload.fallback_reason as $why | $why == null or any($told[$t].runs[]?; .error_code == $why)));
    "a fallback has no error before it"),
  rule("budgets"; all($sent[]; .task.task_id as $t
      | (.task.budgets.max_cost_usd // .task.constraints.max_cost_usd) as $usd | (.task.budgets.max_tokens // .task.constraints.max_tokens) as $tokens
      | ($answer[$t].cost_tracking // {} | used) as $u
      | ($usd != null and $u.micros > ($usd | micros) or $tokens != null and $u.in + $u.out > $tokens) as $over
      | $over == ($answer[$t].error_details.error_code == "E_COST_LIMIT_EXCEEDED")
      and $over == any($trail[]; .task_id == $t and .payload.check_type? == "BUDGET" and .payload.result == "FAIL"));
    "a spent budget and the checks of the trail differ"),
  rule("summary"; records("SESSION_SUMMARY") | length == 1 and (.[0].payload | .total_tasks == ($sent | length)
      and ([.completed, .failed, .aborted, .skipped] == ($r.extensions.x_states | [.COMPLETED, .FAILED, .ABORTED, .SKIPPED]))
      and (.total_cost_usd | micros) == ($r.cost_summary.total_cost_usd | micros)); "the trail and the report differ")
  ] | if . == [] then empty else (join("\n") + "\n" | halt_error(1)) end'
