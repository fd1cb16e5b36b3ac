#!/usr/bin/env bats
# Verbs that print tables or lists: the lines of their JSON match the published schemas.

load ../lib

# One state directory and one repository with an entry of each kind.
setup_file() {
  need_tool agent-registry amp-ack amp-route amp-sign amp-validate hitl-prompt task-dispatch worktree-bind
  cd "$BATS_FILE_TMPDIR" || return
  export AMP_STATE=$PWD/state
  amp-validate --example sw4rm/hitl_invocation >question
  ends 1 hitl-prompt --trust-in question --answer /dev/null >/dev/null
  agent-registry register ann --connector x:y --role executor --capability review >/dev/null
  agent-registry deregister ann >/dev/null
  agent-registry register ann --connector x:y --role executor --capability review >/dev/null
  amp-validate --example rtp/capability_catalog | sed 's/"executor-mbp"/"ann"/' >capability
  agent-registry publish capability >/dev/null
  agent-registry confirm ann cap.fs.diff-apply 1.3.0
  amp-validate --example amp/task_dispatch >dispatch
  ends 1 amp-route -r 'to=nobody => file:x' <dispatch >/dev/null
  amp-validate --example sw4rm/data | amp-route -r '* => inbox:ann'
  amp-validate --example amp/task_dispatch | amp-ack track >tracked
  amp-ack send --as executor <tracked >ack
  amp-ack track <ack >/dev/null
  amp-ack cursors move mbp vps 7
  ssh-keygen -q -t ed25519 -N '' -f key
  for id in evt_1 evt_2; do
    amp-validate --example rtp/task_create | sed "s/\"eventId\":\"[^\"]*\"/\"eventId\":\"$id\"/"
  done | tee tasks | task-queue submit --type builder >/dev/null
  cp tasks again
  amp-validate --example sw4rm/data >>again
  touch signers
  amp-sign trust add --allowed-signers signers ann key.pub
  hitl-prompt suspend --agent ann --reason rest
  echo '{"hitl":{"hook":{"rules":[{"decision":"deny","command":"git push"}]}}}' >rules.json
  printf '{"tool_name":"Bash","tool_input":{"command":"git %s"}}\n' push pull >calls
  repo repo
  cd repo || return
  worktree-bind bind ann -b agent/ann >/dev/null
  worktree-bind reserve 'src/*' --holder ann >/dev/null
}

setup() {
  export AMP_STATE=$BATS_FILE_TMPDIR/state
  cd "$BATS_FILE_TMPDIR/repo" || return
}

# Schema, then the command. "1:" before the command: its exit status.
table='
status         amp-ack status --json
delivery       amp-ack status --all --json
delivery       amp-ack status --open --json
history        amp-ack log --format ndjson
security_event amp-ack audit --json
log_verdict    amp-ack audit --verify --json
cursor         amp-ack cursors list --json
cursor         amp-ack cursors show mbp vps
dead_letter    amp-ack dead list --json
dead_action    amp-ack dead purge --every --dry-run
question       hitl-prompt list --json
question       hitl-prompt show hitl-001 --json
schema_name    amp-validate --list --json
code           amp-validate --explain all --json
code           amp-validate --explain bad_enum --json
example        amp-validate --example --json
route          amp-route --dry-run -r to=nobody=>file:y -r to=*=>file:x -i ../dispatch
route          1:amp-route --dry-run -r to=nobody=>file:x -i ../dispatch
dead_letter    amp-ack dead show --every
dead_letter    amp-ack dead export --every
check          amp-ack doctor --json --min-free 1
trusted_key    amp-sign trust list --allowed-signers ../signers --json
registry_key   agent-registry list --keys --allowed-signers ../signers --json
agent          agent-registry list --json
agent          agent-registry show ann
capability     agent-registry capabilities --json
inbox_message  amp-route inbox ann --list --json
suspension     hitl-prompt suspend --list --json
decision_entry hitl-prompt audit --json
top            amp-top --format ndjson
top            amp-top --json --show agents
binding        worktree-bind list --json
binding        worktree-bind status ann --json
binding        worktree-bind path ann --json
reservation    worktree-bind reservations --json
worktree_report worktree-bind gc --json
skill          agent-registry capabilities --installed --json
job            task-queue list --json
work_status    task-queue status --json
submission     1:submit_again
hook_record    1:worktree-bind hooks check --json
hook_record    worktree-bind hooks install --json
hook_record    worktree-bind hooks check --prove --json
hook_record    worktree-bind hooks uninstall --json
hook_replay    hitl-prompt hook -c ../rules.json --replay ../calls --json
'

submit_again() { task-queue submit --type builder <../again; }

@test "every line of JSON output matches the published schema, and there is at least one" {
  local schema command status n=0 bad=0
  while read -r schema command; do
    [ -n "$schema" ] || continue
    status=0
    [[ $command != 1:* ]] || { status=1 && command=${command#1:}; }
    # shellcheck disable=SC2086 # the words of the command
    ends "$status" $command >out 2>err || { echo "$command" && cat err && bad=1; }
    [ -s out ] || { echo "no output: $command" && bad=1; }
    case $schema in
    capability) schema=$AMP_TOP/schemas/rtp/capability_catalog.json ;;
    *) schema=$AMP_TOP/schemas/records/$schema.json ;;
    esac
    amp-validate -S "$schema" --formats out 2>err | cmp - out || { echo "$command" && cat err out && bad=1; }
    n=$((n + 1))
  done <<<"$table"
  [ "$n-$bad" = 45-0 ]
}

@test "a schema refuses an unknown member and a missing one" {
  local schema command
  while read -r schema command; do
    case $schema in
    '' | capability | top | history | status) continue ;;
    esac
    run -1 amp-validate -S "$AMP_TOP/schemas/records/$schema.json" <<<'{"unknown":1}'
    # shellcheck disable=SC2086
    ${command#1:} >lines 2>/dev/null || [ "$?:" = "${command%%[!0-9:]*}" ]
    head -n 1 lines | jq -c '. + {unknown: 1}' >line
    [ -s line ]
    run -1 amp-validate -S "$AMP_TOP/schemas/records/$schema.json" line
  done < <(sort -u -k 1,1 <<<"$table")
}

@test "the schemas of records have the members of the views, and no other" {
  cd "$AMP_TOP"
  sh scripts/schemas.sh --check "$AMP_BUILD/bin"
  mkdir -p "$BATS_TEST_TMPDIR/schemas"
  cp -r schemas/records "$BATS_TEST_TMPDIR/schemas/"
  cd "$BATS_TEST_TMPDIR"
  local way
  for way in 'del(.properties.agent)' '.properties.old = {type: "string"}' '.required -= ["state"]' \
    '.properties.created = {type: "string"}' '.properties.attempts = {type: "string"}'; do
    jq "$way" "$AMP_TOP/schemas/records/task.json" >schemas/records/task.json
    run -1 sh "$AMP_TOP/scripts/schemas.sh" --check "$AMP_BUILD/bin" task
    [ "$output" = "schemas/records/task.json is not what 'task-dispatch list' prints" ]
  done
  # Written again, it is as it was, but for what only its author knew.
  sh "$AMP_TOP/scripts/schemas.sh" "$AMP_BUILD/bin" task
  [ "$(jq -c '[.required, (.properties | keys), .properties.created.format, .properties.attempts.type]' schemas/records/task.json)" = \
    "$(jq -c '[.required, (.properties | keys), .properties.created.format, .properties.attempts.type]' "$AMP_TOP/schemas/records/task.json")" ]
}
