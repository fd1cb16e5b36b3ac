#!/usr/bin/env bats
# Work that needs a worktree: only agents that are bound to one get it, or call tools that need one.

load ../lib
load ../messages
load ../worktrees

setup() {
  need_tool worktree-bind amp-route agent-registry
  cd "$BATS_TEST_TMPDIR" || return 1
  repo work
  cd work || return 1
  export AMP_STATE=$PWD/.git/amp
}

# message N FROM TYPE PAYLOAD [WORKTREE]: about a worktree, if one is given.
message() {
  local line
  line=$(envelope "$@")
  echo "${line/'"sequence_number"'/${5:+"\"worktree_id\":\"$5\","}'"sequence_number"'}"
}
call() { # N FROM TOOL [POLICY]
  message "$1" "$2" TOOL_CALL "{\"call_id\":\"c$1\",\"tool_name\":\"$3\",\"provider_id\":\"fs\",\"args\":{},\
\"content_type\":\"application/json\",\"stream\":false,\"execution_policy\":${4:-{\}}}"
}
handoff() { # N CAPABILITY WORKTREE [TO]
  message "$1" carl CONTROL "{\"request_id\":\"r$1\",\"from_agent\":\"carl\",\"to_agent\":\"${4-}\",\"reason\":\"x\",\
\"context_snapshot\":\"\",\"capabilities_required\":[$2],\"priority\":0,\"timeout_ms\":60000}" "$3"
}
route() { amp-route -r "* => ${1:-file:out}" "${@:2}"; }
code() { jq -r '.payload.error_code // .msg.payload.error_code | ascii_downcase' <<<"$output" | tail -n 1; }

@test "a tool that needs a worktree is not for a caller without one" {
  agent-registry register fs --connector x:y >/dev/null
  # By the policy of the call.
  run -1 --separate-stderr route < <(call 1 bob write '{"worktree_required":true}')
  [ "$(code)" = worktree_not_bound ]
  amp-validate <<<"$output" >/dev/null
  [ "$(amp-ack dead list --json | jq -r .code)" = worktree_not_bound ]
  [ ! -s out ]
  run -1 --separate-stderr route < <(call 2 bob write '{"isolation":"worktree"}')
  [ "$(code)" = worktree_not_bound ]
  # A bind that failed is none either.
  run -1 worktree-bind bind bob -b task/x --base no-such
  run -1 --separate-stderr route < <(call 3 bob write '{"worktree_required":true}')
  [ "$(code)" = worktree_not_bound ]
  # Bound, also while a switch is pending; tools that need none are for everybody.
  spare other
  worktree-bind bind bob -b task/x >/dev/null
  route < <(call 4 bob write '{"worktree_required":true}')
  worktree-bind switch bob other >/dev/null 2>&1
  route < <(call 5 bob write '{"worktree_required":true}'; call 6 eve read)
  [ "$(jq -r .payload.call_id out | paste -sd ' ')" = "c4 c5 c6" ]
}

@test "a tool's description says that it needs one" {
  message 1 fs CONTROL '{"agent":{"agent_id":"fs","name":"fs","description":"Files.","capabilities":["files"],"communication_class":"STANDARD","modalities_supported":["application/json"],"reasoning_connectors":["https://llm.example"],"public_key":"AAEC","tools":[{"tool_name":"write_file","input_schema":{"type":"object"},"output_schema":"https://example.org/out.json","idempotent":true,"needs_worktree":true,"default_timeout_s":5,"max_concurrency":1,"side_effects":"filesystem"}]}}' |
    agent-registry >/dev/null
  agent-registry list | grep -q fs
  run -1 --separate-stderr route < <(call 2 bob write_file)
  [ "$(code)" = worktree_not_bound ]
  route < <(call 3 bob read_file)
  worktree-bind bind bob -b task/x >/dev/null
  route < <(call 4 bob write_file)
  [ "$(jq -r .payload.call_id out | paste -sd ' ')" = "c3 c4" ]
}

@test "work about a worktree goes only to agents that are bound" {
  for a in ann bob; do agent-registry register $a --connector x:y --capability build >/dev/null; done
  agents() { route agents --agent ann=file:ann.out --agent bob=file:bob.out; }
  handoff 1 '"build"' wt >in
  amp-validate in >/dev/null
  run -1 --separate-stderr agents <in
  [ "$(code)" = worktree_not_bound ]
  # Of several, the bound one.
  worktree-bind bind bob -b task/x >/dev/null
  agents < <(handoff 2 '"build"' wt; handoff 3 '"build"' wt)
  [ "$(wc -l <bob.out)" -eq 2 ]
  # Named, it is refused; without a worktree it is not.
  run -1 --separate-stderr agents < <(handoff 4 '"build"' wt ann)
  [ "$(code)" = worktree_not_bound ]
  agents < <(handoff 5 '"build"' "" ann)
  [ "$(wc -l <ann.out)" -eq 1 ]
  # Its bind ends, and with it the work.
  worktree-bind unbind bob >/dev/null
  run -1 --separate-stderr agents < <(handoff 6 '"build"' wt)
  [ "$(code)" = worktree_not_bound ]
}
