#!/usr/bin/env bats
# What only people may do, and how an agent is recognised that tries it.

setup() {
  load lib
  need_tool hitl-prompt task-dispatch agent-registry amp-ack worktree-bind
  cd "$BATS_TEST_TMPDIR"
  export AMP_STATE=$PWD/state
  repo code
}

# acts FUNCTION: calls it with each command that belongs to people.
acts() {
  "$1" hitl-prompt
  "$1" task-dispatch
  "$1" task-dispatch coordinate
  "$1" task-dispatch new -C code -b feat -d text --criterion criterion
  "$1" task-dispatch run --exec true
  "$1" task-dispatch review --exec true
  "$1" task-dispatch verify -C code HEAD
  "$1" agent-registry deregister other
  "$1" amp-ack dead purge --every
  "$1" amp-ack repair
  "$1" amp-sign --as executor/ann
  "$1" amp-sign keygen --as executor/ann
  "$1" amp-sign rotate executor/ann
  "$1" amp-sign revoke SHA256:47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU
  "$1" amp-sign trust add --allowed-signers signers ann 'ssh-ed25519 AAAA'
  "$1" amp-sign trust remove --allowed-signers signers SHA256:47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU
  "$1" worktree-bind -C code hooks install
  "$1" worktree-bind -C code hooks uninstall
  "$1" worktree-bind -C code hooks override main --reason why
}

# refused COMMAND...: with 77, without a trace.
refused() {
  run -77 --separate-stderr "${how[@]}" "$@" </dev/null
  [ -z "$output" ]
  [[ "$stderr" == *"$reason"* ]]
  [ ! -e "$AMP_STATE" ]
  [ ! -e code/.git/amp ]
}

@test "with AMP_AGENT, also an empty one, nobody decides, leads, removes or opens anything" {
  reason="AMP_AGENT is set in the environment"
  how=(env AMP_AGENT=executor)
  acts refused
  how=(env AMP_AGENT=)
  acts refused
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
  acts refused
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
  [[ "$stderr" == *'the agent "ann" may deregister only itself, not "bob"'* ]]
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
  load agents
  workplace
  dispatch | run_agent --read "$AMP_BUILD/bin" --exec ./sly
  [ "$(git -C "$REPO" show feat/x:status)" = 77 ]
  git -C "$REPO" show feat/x:err | grep -q 'only people may start a reviewer'
}
