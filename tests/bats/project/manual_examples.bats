#!/usr/bin/env bats
# The examples of the manuals run as they stand.
# plain
# walls

load ../lib
load ../messages

# examples PAGE...: their commands, each with what follows until the next.
examples() {
  local page
  for page; do
    sed -n '/^\.Sh EXAMPLES/,/^\.Sh SEE ALSO/p' "$AMP_TOP/man/$page" | sed -n '/^\.Bd/,/^\.Ed/p' |
      awk '/^\.Bd/ { first = 1; next } first { command = /^\$ /; first = 0 } command && !/^\.Ed/' |
      sed -e 's/^\$ //' -e 's/\\e$/\\/'
  done
}

# session SECTION: runs the commands of a section of the README, which print what stands there, line by line; only times, the
# user and the widths of columns differ.
session() {
  sed -n "/^## $1\$/,/^## /p" "$AMP_TOP/README.md" | sed -n '/^```/,/^```/p' | sed '/^```/d' >session
  sed -n 's/^\$ //p' session >script
  run -0 bash -u script
  plain() { sed -E "s/[0-9-]{10}T[0-9:.]+Z/TIME/g; s/ [0-9]s / AGE /g; s/\\b$(id -un)\\b/root/g" | tr -s ' '; }
  diff <(grep -v '^\$ ' session | plain | sort) <(plain <<<"$output" | sort)
}

setup() {
  cd "$BATS_TEST_TMPDIR" || return 1
  # The files that are installed for these examples.
  cp "$AMP_TOP"/examples/manual/*.* .
}

@test "amp-top(1)" {
  need jq
  export AMP_STATE=$PWD/state
  amp-ack track <messages.ndjson >/dev/null
  examples amp-top.1 >script
  run -0 bash -euo pipefail script
  [ "$(grep -c '^amp-top' script)" -eq 3 ]
  [ "${lines[-2]} ${lines[-1]}" = "0 0" ]
}

@test "amp-channels(7)" {
  need jq
  need_tool hitl-prompt
  examples amp-channels.7 >script
  run -0 --separate-stderr setsid bash -euo pipefail script
  [[ $output == *'"decision":"resume","operator":"ann"'* ]]
  [ "${lines[-1]}" = '"settled","resume","ann"' ]
}

@test "amp-validate(1)" {
  need_tool amp-validate
  message task_dispatch 'del(.to)' >>messages.ndjson
  examples amp-validate.1 amp-convert.7 amp-extract.7 amp-protocols.7 amp-records.7 amp-schema.7 amp-codes.7 >script
  # That lines are rejected is what they show: no -e.
  run -0 bash -u script
  [[ "$output" == *missing_field* ]]
  [[ "$output" == *criteria_results* ]]
  [[ "$output" == *'"field":"port"'* ]]
  [[ "$output" == *'[4,"to","is missing ('* ]]
  [[ "$output" == *'"type":"task_dispatch","valid":2,"refused":1'* ]]
  [[ "$output" == *'missing_field (error, AMP/1.0)'* ]]
  head -n 3 messages.ndjson | cmp - valid.ndjson
  cmp valid.ndjson passed.ndjson
  head -n 3 answered.ndjson | cmp - valid.ndjson
  [ "$(tail -n 1 answered.ndjson | jq -r '.type + " " + .code')" = "nack missing_field" ]
  [ "$(jq -r .field rejected.ndjson)" = to ]
  [ "$(jq -r .type said.ndjson) $(jq -r .found found.ndjson)" = "escalation fence" ]
}

@test "worktree-bind(1)" {
  need_tool worktree-bind
  unset AMP_STATE AMP_AGENT
  git init -q -b main repo
  cd repo
  git -c user.name=p -c user.email=p@example.org commit -q --allow-empty -m first
  mkdir -p "$HOME/.config"
  echo '{}' >"$HOME/.config/tool.json"
  examples worktree-bind.1 worktree-bind-bind.1 worktree-bind-switch.1 worktree-bind-reserve.1 worktree-bind-gc.1 \
    worktree-bind-hooks.1 worktree-bind-agent-hook.1 worktree-bind-exec.1 >../script
  run -0 bash -euo pipefail ../script
  [[ "$output" == *executor-1* ]]
  [ "$(git worktree list | wc -l)" -eq 1 ]
  [ -x .git/hooks/reference-transaction ]
}

@test "amp-mcp(1)" {
  need_tool amp-mcp
  examples amp-mcp.1 >script
  run -0 bash -u script
  [ "$output" = "Build it, please" ]
}

@test "amp-sign(1)" {
  need_tool amp-sign
  examples amp-sign.1 >script
  run -0 bash -euo pipefail script
  cmp signed.ndjson verified.ndjson
  cmp messages.ndjson plain.ndjson
  [ "$(jq -r .sig.alg signed.ndjson | uniq -c)" = "      3 Ed25519" ]
  examples amp-sign-trust.1 >script
  run -0 bash -euo pipefail script
  [[ "$output" == *revoked*operator/bob* ]]
  # The issuer's key and the holder's; each is trusted.
  amp-sign keygen olga
  amp-sign trust add --allowed-signers signers operator/olga olga.pub
  amp-sign trust add --allowed-signers signers ann ann.pub
  examples amp-sign-token.1 amp-token.7 >script
  run -0 bash -euo pipefail script
}

@test "amp-route(1), amp-lanes(7), amp-transport(7)" {
  need_tool amp-route
  examples amp-route.1 amp-route-inbox.1 amp-route-replay.1 >script
  run -0 bash -euo pipefail script
  cmp exec.ndjson <(head -n 2 messages.ndjson)
  [ "$(find work/new -type f | wc -l)" -eq 2 ]
  examples amp-lanes.7 amp-transport.7 >script
  echo wait >>script
  run -0 bash -euo pipefail script
  cmp shared.ndjson messages.ndjson
  cmp got.ndjson messages.ndjson
}

@test "amp-ack(1)" {
  need_tool amp-ack amp-route
  # Something that had no route.
  amp-route --state state -r 'to=admin => stdout' <messages.ndjson >nacks || [ $? -eq 1 ]
  mkfifo work.fifo
  examples amp-ack.1 amp-ack-track.1 amp-ack-send.1 amp-ack-status.1 amp-ack-watch.1 amp-ack-dead.1 amp-ack-log.1 \
    amp-ack-show.1 amp-ack-token.1 amp-ack-cursors.1 amp-ack-doctor.1 amp-ack-audit.1 amp-ack-export.1 \
    amp-metrics.7 amp-draw.7 | sed "s|/usr/share/amp/draw|$AMP_TOP/share/draw|" >script
  run -0 bash -euo pipefail script
  grep -q "^    participant P1 as " log.mmd
  grep -q "<title>History of T-2026-044</title>" story.html
  cmp messages.ndjson tracked.ndjson
  [ "$(wc -l <acks.ndjson)" -eq 3 ]
  [ "$(find work/new -type f | wc -l)" -eq 3 ]
}

@test "amp-ack-reply(1)" {
  need_tool amp-ack amp-route
  { head -n 1 messages.ndjson && tail -n 1 messages.ndjson; } | amp-ack track --state state >/dev/null
  examples amp-ack-reply.1 >script
  run -0 bash -euo pipefail script
  [ "$(jq -r .type <<<"$output")" = ack ]
  [ "$(jq -r .payload.commit_hash,.type results.ndjson)" = $'null\ntask_result' ]
  [ "$(jq -r '.payload.issues[0].description' verdict.ndjson)" = 'The timer is released twice' ]
}

@test "agent-registry(1)" {
  need_tool agent-registry amp-route
  unset AMP_STATE
  {
    examples agent-registry-register.1
    echo 'agent-registry register reviewer-1 --role reviewer --connector https://llm.example >again.ndjson'
    examples agent-registry-heartbeat.1 agent-registry-list.1 agent-registry-publish.1 agent-registry.1
  } >script
  run -0 bash -euo pipefail script
  [[ "$output" == *cap.build* ]]
  cmp messages.ndjson rest.ndjson
  [ "$(wc -l <asked-1) $(wc -l <asked-others)" = "1 1" ]
  [ "$(wc -l <events.ndjson) $(wc -l <published.ndjson)" = "5 2" ]
}

@test "hitl-prompt(1)" {
  need_tool hitl-prompt
  examples hitl-prompt.1 >script
  run -0 bash -euo pipefail script
  [[ "$output" == *" resume"* ]]
  [ "$(jq -r .note decisions.ndjson)" = "multiply before converting" ]
}

@test "hitl-prompt-list(1)" {
  need_tool hitl-prompt
  sw4rm 11111111-1111-4111-8111-111111111111 sched HITL_INVOCATION '{"invocation_id":"h","reason_type":"SECURITY_APPROVAL"}' "" >in
  : >none
  run -1 hitl-prompt -s state --answer none <in
  examples hitl-prompt-list.1 >script
  run -0 --separate-stderr bash -euo pipefail script
  [[ "${lines[0]}" == ID*REASON* ]]
  [ "${lines[2]}" = 11111111-1111-4111-8111-111111111111 ]
}

@test "amp(7), amp.json(5), the pages of the protocols, amp-streams(7), amp-egress(7)" {
  need_tool amp-route
  mkdir -p "$HOME/.config/amp"
  sed -n '/^\.Bd/,/^\.Ed/p' "$AMP_TOP/man/amp.json.5" | sed '/^\.Ed/q' | sed '/^\./d' >"$HOME/.config/amp/amp.json"
  : >events.ndjson
  # A record of the gate, for its page.
  echo '{"decision":"refused","host":"h.example","port":443,"code":"host_not_listed"}' >egress.ndjson
  examples amp.7 amp.json.5 amp-streams.7 amp-egress.7 amp-protocol-amp.7 amp-protocol-sw4rm.7 amp-protocol-aop.7 \
    amp-protocol-aof.7 amp-protocol-rtp.7 >script
  run -0 bash -euo pipefail script
  [[ "$output" == *'["h.example",443,"host_not_listed"]'* ]]
  [[ "$output" == *"Runtime Protocol v1 task_create: "* ]]
}

@test "README: the session about delivery prints what stands there" {
  need_tool agent-registry amp-route
  local i
  unset AMP_STATE AMP_IDENTITY
  for i in {1..12}; do
    jq -cn --arg i "$i" '{eventId: "evt_\($i)", seq: ($i | tonumber), kind: "task_create", sourceNodeId: "n",
      sourceAgentId: "lead", corrId: "corr_\($i)", createdAt: "2026-02-25T16:22:10.123Z", trace: {attempt: 1},
      payload: {taskId: "task_\($i)", title: "Fix the header", requesterAgentId: "lead", objective: "o",
        priority: "normal", toAgents: ["builder"], requiredCapabilities: ["x"]}}'
  done >work.ndjson
  # amp-route ends with 1, because it refuses two messages.
  session Delivery
}

@test "README: the session about questions prints what stands there" {
  need_tool hitl-prompt
  unset AMP_STATE AMP_IDENTITY
  sw4rm 9b2f6c0e-0a51-4f0a-9a63-0a6f2d3b7c11 deploy-7 HITL_INVOCATION \
    '{"invocation_id":"hitl-001","reason_type":"SECURITY_APPROVAL","subject":{"task_id":"deploy-7"}}' "" >in
  run -69 --separate-stderr setsid hitl-prompt -s state <in
  session "Questions to a person"
  # Pages whose examples need a state directory with a question.
  examples hitl-prompt-audit.1 | sed "s|/usr/share/amp/draw|$AMP_TOP/share/draw|" >script
  run -0 --separate-stderr bash -euo pipefail script
  [[ ${lines[1]} == *decided*"reviewed the diff" ]]
  [[ $stderr == *"The log is intact"* ]]
  grep -q "reviewed the diff" report.html
  examples hitl-prompt-suspend.1 >script
  run -0 --separate-stderr bash -euo pipefail script
  [[ $output == *" all "*"wrong branch" ]]
  run -0 --separate-stderr hitl-prompt suspend -s state --list
  [[ $output != *"wrong branch"* ]]
}

@test "each page with a command among its examples is run by a test" {
  local page
  for page in "$AMP_TOP"/man/*; do
    sed -n '/^\.Sh EXAMPLES/,/^\.Sh SEE ALSO/p' "$page" | grep -q '^\$ ' || continue
    grep -qwF "${page##*/}" "$AMP_TOP"/tests/bats/{project/manual_examples,project/task_manual,people/tasks}.bats || {
      echo "${page##*/}"
      return 1
    }
  done
}

@test "agent-handoff(1), agent-handoff-activity(1)" {
  need jq
  examples agent-handoff.1 agent-handoff-activity.1 >script
  run -0 bash -euo pipefail script
  cmp notes.json got.json
}

@test "task-queue(1), task-queue-status(1)" {
  need jq
  export AMP_IDENTITY=off
  examples task-queue.1 task-queue-status.1 >script
  run -0 --separate-stderr bash -euo pipefail script
  [[ $output == *QUEUED*builder*T-41*scope_taken*'"waiting": 1'* ]]
  [[ "$stderr" == *"job "*" is cancelled"*"job "*" is cancelled"* ]]
}

@test "task-queue-override(1)" {
  need jq
  need_tool hitl-prompt
  export AMP_IDENTITY=off
  examples task-queue-override.1 >script
  run -0 --separate-stderr bash -euo pipefail script
  [[ $output == *overridden*login*command*beside*"they change other modules"* ]]
  grep -q '"conflicts":\[{.*"state":"PARALLEL".*"overrides":\[{' job.ndjson
}

@test "aof-board(1), aof-board-poll(1)" {
  examples aof-board.1 aof-board-poll.1 >script
  run -0 bash -euo pipefail script
  [[ $output == *task.created*TASK-*.md*task_not_found*scheduler.poll*task.created*scheduler.poll*lease.acquired* ]]
}

@test "aop-session(1), aop-session-run(1)" {
  need jq
  export AMP_CONFINE=off AMP_IDENTITY=off
  jq -c --arg here "$PWD" 'select(.base == "minimal") | .line | .task.environment.workspace_root = $here' \
    "$AMP_TOP/tests/fixture/protocols/aop.jsonl" >tasks.ndjson
  # The work costs 0.25 dollars.
  printf '#!/bin/sh\n%s\n' 'echo "{\"completion_status\":\"complete\",\"execution_summary\":{\"summary\":\"s\",\"actions\":[\"a\"]},
    \"cost_tracking\":{\"actual_cost_usd\":0.25}}" >"$AMP_RESULT"' >agent.sh
  chmod +x agent.sh
  examples aop-session-run.1 aop-session.1 >script
  run -0 --separate-stderr bash -euo pipefail script
  [[ ${lines[1]} == "AOP-SESSION-2026-02-26-001 "*OPEN*1/1*0.25* ]]
  [ "${lines[2]}" = 0.25 ]
}

@test "hitl-prompt-receive(1)" {
  need_tool hitl-prompt amp-sign
  need ssh-keygen
  export AMP_IDENTITY=local
  mkdir -p "$HOME/.ssh" "$XDG_CONFIG_HOME/amp"
  ssh-keygen -qt ed25519 -N '' -f "$HOME/.ssh/id_ed25519"
  amp-sign trust add --allowed-signers signers operator/ann "$HOME/.ssh/id_ed25519.pub"
  echo "{\"identity\":{\"allowed_signers\":\"$PWD/signers\"}}" >"$XDG_CONFIG_HOME/amp/amp.json"
  message escalation '.task_id = "T-2026-001" | .msg_id = "escalation-T-2026-001-1"' >in
  run -69 --separate-stderr setsid hitl-prompt -s state <in
  examples hitl-prompt-receive.1 >script
  run -0 --separate-stderr bash -eu script
  [[ $stderr == *": resume by ann"* ]]
  run -0 --separate-stderr hitl-prompt -s state --answer /dev/null </dev/null
  [[ $output == *'"decision":"resume"'*'"note":"well done"'*'"operator":"ann"'* ]]
}

@test "hitl-prompt-hook(1)" {
  need_tool hitl-prompt
  examples hitl-prompt-hook.1 >script
  run -0 bash -euo pipefail script
  [ "$(jq -r .hookSpecificOutput.permissionDecision decision.json)" = deny ]
  diff <(sed -n '/^2: denied/,/^\.Ed/{/^\.Ed/!p}' "$AMP_TOP/man/hitl-prompt-hook.1") <(echo "$output")
}
