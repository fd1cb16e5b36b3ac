#!/usr/bin/env bats
# What only people may do, and how an agent is recognised that tries it.
# plain: each verb has a suite of its own
# walls

setup() {
  load ../lib
  need_tool hitl-prompt task-dispatch agent-registry amp-ack worktree-bind
  cd "$BATS_TEST_TMPDIR"
  export AMP_STATE=$PWD/state
  repo code
}

# acts FUNCTION: calls it with each command that belongs to people, or to another agent than executor.
acts() {
  local key=SHA256:47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU
  "$1" hitl-prompt
  "$1" hitl-prompt list
  "$1" hitl-prompt show 1
  "$1" hitl-prompt answer 1 approve
  "$1" hitl-prompt receive
  "$1" hitl-prompt sign 1 approve
  "$1" hitl-prompt sign --question question.json approve
  "$1" hitl-prompt suspend --all
  "$1" hitl-prompt resume --all
  "$1" task-dispatch
  "$1" task-dispatch init -x true -y true --unconfined
  "$1" task-dispatch loop -x true -y true
  "$1" task-dispatch coordinate
  "$1" task-dispatch new -C code -b feat -d text --criterion criterion
  "$1" task-dispatch edit T-2026-001
  "$1" task-dispatch retry T-2026-001
  "$1" task-dispatch cancel T-2026-001
  "$1" task-dispatch land T-2026-001
  "$1" task-dispatch run --exec true
  "$1" task-dispatch review --exec true
  "$1" agent-handoff activity purge T-2026-001
  "$1" agent-handoff
  "$1" agent-handoff request --as boss --to eve --reason why
  "$1" agent-handoff accept 1 --as boss
  "$1" agent-handoff reject 1 --as boss --reason why
  "$1" agent-handoff complete 1 --as boss
  "$1" task-queue submit
  "$1" task-queue rank 1 --priority 1 --why why
  "$1" task-queue accounts --lift main
  "$1" task-queue override 1 --beside 2 --why why
  "$1" task-queue preempt 1
  "$1" task-queue work --type coder=1 --exec true
  "$1" task-queue shutdown
  "$1" task-queue cancel 1
  "$1" aop-session run -x true
  "$1" aop-session report 1
  "$1" aop-session escalate 1 2 HIGH
  "$1" aop-session rollback 1 2
  "$1" aof-board --data-dir aof
  "$1" aof-board poll --data-dir aof
  "$1" aof-board end --data-dir aof TASK-2026-11-24-001
  "$1" aof-board new --data-dir aof
  "$1" task-dispatch verify -C code HEAD
  "$1" task-dispatch export -C code HEAD
  "$1" agent-registry
  "$1" agent-registry register boss --connector x:y
  "$1" agent-registry deregister boss
  "$1" agent-registry heartbeat boss
  "$1" agent-registry heartbeat --emit
  "$1" agent-registry publish capability.json
  "$1" agent-registry confirm boss skill 1
  "$1" agent-registry approve 1 --why why
  "$1" agent-registry reviews --close 1
  "$1" amp-ack accept 1 --as boss
  "$1" amp-ack progress 1 50 --as executor/boss
  "$1" amp-ack complete 1 --as boss
  "$1" amp-ack fail 1 --as boss
  "$1" amp-ack reply 1 --as boss
  "$1" amp-ack send --from boss
  "$1" amp-ack sweep
  "$1" amp-ack watch
  "$1" amp-ack dead requeue --every
  "$1" amp-ack dead purge --every
  "$1" amp-ack export archive
  "$1" amp-ack repair
  "$1" amp-ack cursors move boss source 1
  "$1" amp-ack cursors retire boss source
  "$1" amp-route inbox boss
  "$1" amp-route inbox boss --idle
  "$1" amp-sign --as executor/ann
  "$1" amp-sign keygen --as executor/ann
  "$1" amp-sign rotate executor/ann
  "$1" amp-sign revoke $key
  "$1" amp-sign trust add --allowed-signers signers ann 'ssh-ed25519 AAAA'
  "$1" amp-sign trust remove --allowed-signers signers $key
  "$1" amp-sign token make ann $key --as coordinator
  "$1" worktree-bind -C code bind boss
  "$1" worktree-bind -C code unbind boss
  "$1" worktree-bind -C code switch boss other
  "$1" worktree-bind -C code approve boss
  "$1" worktree-bind -C code reject boss
  "$1" worktree-bind -C code revoke boss
  "$1" worktree-bind -C code gc --apply
  "$1" worktree-bind -C code repair
  "$1" worktree-bind -C code reserve --holder boss src
  "$1" worktree-bind -C code release --holder boss src
  "$1" worktree-bind -C code hooks install
  "$1" worktree-bind -C code hooks uninstall
  "$1" worktree-bind -C code hooks override main --reason why
}

# names TOOL ARG...: prints the tool and the verb, the first words that name one.
names() {
  local tool=$1 i
  shift
  for ((i = 1; i <= $#; i++)); do
    if [[ ${verbs[$tool]} == *"|${*:i:2}|"* ]]; then
      echo "$tool ${*:i:2}"
      return
    elif [[ ${verbs[$tool]} == *"|${!i}|"* ]]; then
      echo "$tool ${!i}"
      return
    fi
  done
  echo "$tool"
}

# refused COMMAND...: with 77, without a trace.
refused() {
  run -77 --separate-stderr "${how[@]}" "$@" </dev/null
  [ -z "$output" ]
  [[ "$stderr" == *"$reason"* ]]
  [ ! -e "$AMP_STATE" ]
  [ ! -e code/.git/amp ]
  [ ! -e aof ]
}

# The same for every eighth command: how an agent is recognised is one function.
some_refused() {
  n=$((${n-0} + 1))
  [ $((n % 8)) -ne 1 ] || refused "$@"
}

@test "with AMP_AGENT, also an empty one, nobody decides, leads, removes or opens anything" {
  reason="AMP_AGENT is set in the environment"
  how=(env AMP_AGENT=executor)
  acts refused
  how=(env AMP_AGENT=)
  acts some_refused
}

@test "the commands above are all verbs that the tools reserve, and the others refuse no agent" {
  need_tool amp-sign amp-route amp-mcp amp-top amp-validate
  local -A verbs=()
  local tool verb who
  for tool in "$AMP_TOP"/cmd/*/main.c; do
    tool=${tool%/main.c} tool=${tool##*/}
    verbs[$tool]="|$("$tool" --options | awk -F '\t' '$1 == "verb" { print $2 }' | paste -sd '|')|"
    "$tool" --options | awk -F '\t' -v OFS='\t' -v t="$tool" '
      $1 == "verbless" { print $2, t }
      $1 == "verb" { print $7, t " " $2 }'
  done >table
  # These look at each message, or at the agent they serve: worktree-bind.bats, mcp.bats.
  grep -v '^-' table | cut -f 2 | grep -vxe worktree-bind -e amp-mcp | sort >reserved
  acts names | sort -u | diff reserved -
  export AMP_AGENT=executor
  while IFS=$'\t' read -r who verb; do
    status=0
    # shellcheck disable=SC2086 # the tool and its verb
    timeout 20 $verb </dev/null >out 2>&1 3>&- || status=$?
    [ "$status" -ne 77 ] || { echo "$verb"; cat out; return 1; }
  done < <(grep '^-' table)
}

@test "an agent that clears its environment is known by its parents, its session and its worktree" {
  # What it was started with stays readable in /proc.
  cat >clean <<'SH'
#!/bin/bash
env -i PATH="$PATH" AMP_STATE="$AMP_STATE" "$@"
exit $?
SH
  chmod +x clean
  reason="was started with AMP_AGENT"
  how=(env AMP_AGENT=executor ./clean)
  acts some_refused
  # The file of an answer is given to agents only.
  reason="AMP_RESULT is set in the environment"
  how=(env AMP_RESULT=result.json)
  refused hitl-prompt
  # An orphan of the agent's session: its parent has ended, the leader lives.
  mkfifo go
  cat >orphan <<'SH'
#!/bin/bash
hitl-prompt </dev/null 2>said
echo $? >status
SH
  chmod +x orphan
  reason="was started with AMP_AGENT"
  AMP_AGENT=executor setsid bash -c '(./clean ./orphan &) ; read -r _ <go; exit 0' 3>&- &
  leader=$!
  wait_until 20 test -s status
  echo >go
  wait "$leader"
  [ "$(<status)" = 77 ]
  grep -q "$reason" said
}

@test "in an agent's worktree nobody is taken for a person" {
  worktree-bind -C code --state bound bind executor --branch feat
  cd code.worktrees/executor
  mkdir sub
  cd sub
  reason="the agent's worktree"
  how=(env)
  refused hitl-prompt
  run -77 --separate-stderr worktree-bind hooks override main --reason why
  [[ "$stderr" == *'the caller is the agent "executor"'* ]]
}

@test "an agent deregisters itself, and a person anybody" {
  agent-registry register ann --connector x:y >/dev/null
  agent-registry register bob --connector x:y >/dev/null
  AMP_AGENT=ann run -77 --separate-stderr agent-registry deregister bob
  [[ "$stderr" == *'only people and the agent itself may deregister an agent; the caller is the agent "ann"'* ]]
  AMP_AGENT= run -77 agent-registry deregister ann
  AMP_AGENT=ann agent-registry deregister ann >/dev/null
  agent-registry deregister bob >/dev/null
}

@test "a refusal is recorded where the state directory can be reached" {
  AMP_CONFINE=off task-dispatch run --exec true </dev/null
  for tool in 'task-dispatch review --exec true' 'task-dispatch run --exec true' 'task-dispatch coordinate' hitl-prompt; do
    # shellcheck disable=SC2086
    run -77 --separate-stderr env AMP_AGENT=eve $tool </dev/null
    [[ $stderr == *"only people may"* ]]
  done
  [ "$(grep -c '"code":"permission_denied".*the caller is the agent \\"eve\\".*"rule":"people_only"' "$AMP_STATE/error.ndjson")" -eq 4 ]
}

@test "in a sandbox, an agent that clears its environment is known by the sandbox's first process" {
  native "the limits of memory leave no room for it"
  "$AMP_BUILD/libexec/amp/confine" --probe | grep -q '"namespaces":true' || skip "no namespaces here"
  unset AMP_CONFINE AMP_STATE
  cat >sly <<EOS
#!/bin/sh
env -u AMP_AGENT -u AMP_RESULT setsid sh -c 'cd /; task-dispatch review --state "'"\$AMP_WORKTREE"'/mine" --exec true; echo \$? >"'"\$AMP_WORKTREE"'/status"' 2>err </dev/null
EOS
  chmod +x sly
  load ../agents
  workplace
  dispatch | run_agent --read "$AMP_BUILD/bin" --exec ./sly
  [ "$(git -C "$REPO" show feat/x:status)" = 77 ]
  git -C "$REPO" show feat/x:err | grep -q 'only people may start a reviewer'
}
