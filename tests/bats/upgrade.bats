#!/usr/bin/env bats
# State directories that earlier builds wrote (tests/fixture/state-N; its script make says how).

load lib
load messages
load upgrade

setup() { old_state; }

@test "a state directory of an earlier build holds what it held" {
  upgrade
  grep -F 'the log has format 2 now: 171 frames' said
  grep -F 'the former log is kept in' said
  holds_all
  first_line '{"v2":"'
  [ "$(cat state/log.format-1/0*.ndjson | wc -l)" -eq 171 ]
}

@test "no key and no id of an entry has a line feed, and every entry has its role" {
  upgrade
  run -1 grep -hE '"(key|full)":"[^"]*(%0A|\\n)' state/log/*.ndjson
  run -1 grep -hE '"id":"[^"]*\\n' state/log/*.ndjson
  jq -r 'select(.key) | .key' state/log/*.ndjson | sort -u >keys
  grep -x 'cursor\.mbp\.vps' keys
  grep -x 'cursor\.mbp\.sha256:52c18dd0ed33ab63fbbcaa832ba8ffda790fe026843a158e48754aa501f98e83' keys
  grep -x 'awaited\.sw4rm\.7f3f41a2-2017-4b8f-9b8b-2ad3caaee001\.call-1' keys
  grep -x 'token\.cli\.t' keys
  grep -x 'token\.cli\.\.1' keys
  grep -x 'token\.\.rtp\.59e0c3cc08b87ae03a358bb8440f9df7b6fccfef38bb8d91aabc60ec383df4c1' keys
  grep -x 'inbox\.mbp\.evt_1' keys
  grep -x 'dead\.line:0b6be0295ead5aa0b42aa010fd78a6c9404b8508160eafb38d6747f68605827e' keys
  grep -x 'base\.T-2026-003\.feat%2Fx' keys
  grep -x 'sequence\.sw4rm\.agent-registry' keys
  jq -r '.out[]? | .role // "message"' state/log/*.ndjson | sort | uniq -c | awk '{ print $2 "=" $1 }' >roles
  grep -x group=2 roles
  grep -x recipient=4 roles
  grep -x answer=9 roles
  grep -x held=2 roles
}

@test "every tool refuses an old log before it writes anything, and names the command" {
  (cd state/log && sha256sum 0*.ndjson) >old.sums
  export AMP_STATE=$S
  run -78 amp-ack status
  [[ $output == *'format 1'*'amp-ack repair --upgrade'* ]]
  message task_dispatch >one.ndjson
  run -78 amp-ack track <one.ndjson
  run -78 amp-ack sweep
  run -78 amp-ack dead list
  run -78 amp-ack cursors list
  run -78 amp-ack repair
  run -78 amp-route -r '* => file:x' <one.ndjson
  [ ! -s x ]
  run -78 amp-route inbox mbp --list
  run -78 agent-registry list
  run -78 task-dispatch coordinate <one.ndjson
  git init -q repo
  run -78 worktree-bind -C repo list
  run amp-ack doctor
  [[ $output == *log_old* ]]
  is_old
  first_line '{"h":"'
}

@test "every tool refuses a newer log, also repair --upgrade" {
  upgrade
  sed -i '1s/^{"v2":/{"v3":/' "$(printf '%s\n' state/log/0*.ndjson | tail -1)"
  cat state/log/0*.ndjson >before
  export AMP_STATE=$S
  run -78 amp-ack status
  [[ $output == *'format 3'*'newer build'* ]]
  run -78 amp-ack track </dev/null
  run -78 amp-ack sweep
  run -78 amp-ack repair
  run -78 amp-ack repair --upgrade
  [[ $output == *'format 3'* ]]
  run -78 agent-registry list
  run amp-ack doctor
  [[ $output == *log_newer* ]]
  cat state/log/0*.ndjson | cmp - before
}

@test "an upgrade that was done is not done again" {
  upgrade
  cat state/log/0*.ndjson >before
  upgrade
  grep -F 'the log has format 2 already' said
  cat state/log/0*.ndjson | cmp - before
  holds_all
}

@test "two upgrades at once: one converts, the other waits for it" {
  amp-ack repair --upgrade --state state 2>said.1 &
  local other=$!
  amp-ack repair --upgrade --state state 2>said.2
  wait $other
  [ "$(cat said.1 said.2 | grep -c 'the log has format 2 now')" -eq 1 ]
  holds_all
}

@test "where a former log is kept already nothing is converted" {
  mkdir state/log.format-1
  (cd state/log && sha256sum 0*.ndjson) >old.sums
  run -73 amp-ack repair --upgrade --state state
  [[ $output == *'log.format-1, move that away first'* ]]
  is_old
  [ ! -e state/log.new ]
  rmdir state/log.format-1
  upgrade
  holds_all
}

@test "a log that is damaged is not converted; a torn end is left out" {
  cp -R state torn
  printf '{"h":"0000' >>"$(printf '%s\n' torn/log/0*.ndjson | tail -1)"
  upgrade torn
  holds_all torn
  local segment
  segment=$(printf '%s\n' state/log/0*.ndjson | head -1)
  printf X | dd of="$segment" bs=1 seek=5000 conv=notrunc status=none
  (cd state/log && sha256sum 0*.ndjson) >old.sums
  run -74 amp-ack repair --upgrade --state state
  [[ $output == *'is damaged at offset'* ]]
  is_old
  [ ! -e state/log.new ]
}

@test "what was upgraded is worked with" {
  upgrade
  export AMP_STATE=$S XDG_CONFIG_HOME=$PWD/config
  # A token and an id of before are known, also those that are too long for a key.
  m() { sw4rm "33333333-3333-4333-8333-33333333333$1" "${2:-cli}" DATA '{}' ",\"timestamp\":\"2026-03-01T12:00:30Z\",\"idempotency_token\":\"$3\"" | jq -c '{to: "bob", msg: .}'; }
  for token in t "$(printf '%0800d' 0 | tr 0 t)"; do
    m 1 cli "$token" | amp-ack track --now 2026-03-01T12:00:30Z >answer.ndjson
    [ "$(jq -r .msg.message_type answer.ndjson)" = ACKNOWLEDGEMENT ]
  done
  # Dead letters: by their ids, by the digest of one without an id, and one that failed before.
  amp-ack dead requeue task_dispatch-T-2026-044-72 >out.1
  grep -q task_dispatch-T-2026-044-72 out.1
  amp-ack dead requeue sha256:0b6be0295ead5aa0b42aa010fd78a6c9404b8508160eafb38d6747f68605827e | grep -q ci_status
  amp-ack dead requeue "evt_$(printf '%0950d' 0 | tr 0 f)" | grep -q evt_ffff
  # The inbox goes on where it was.
  run amp-route inbox mbp --one
  [ "$status" -eq 0 ]
  [[ $output == *evt_2* ]]
  # What waited behind a gap that timed out long ago is delivered, and the cursor goes on.
  amp-route --cursor mbp -r '* => file:streamed' </dev/null >/dev/null
  echo '{"eventId":"evt_6","seq":6,"kind":"message","sourceNodeId":"vps","sourceAgentId":"arch","createdAt":"2026-02-25T16:22:10Z","corrId":"corr","payload":{"toAgents":["mbp"],"subject":"s","body":"evt_6"},"trace":{"attempt":1}}' >six.ndjson
  amp-route --cursor mbp -r '* => file:streamed' <six.ndjson >/dev/null
  [ "$(jq -r .eventId streamed | tr '\n' ' ')" = "evt_4 evt_5 evt_6 " ]
  # What a killed router had not delivered: each recipient once.
  amp-route --as many --agent ann=file:ann --agent mbp=file:mbp -r '* => agents' </dev/null >/dev/null
  [ "$(wc -l <ann)" -eq 2 ]
  [ "$(wc -l <mbp)" -eq 2 ]
  amp-route --as killed -r '* => file:killed' </dev/null >/dev/null
  [ "$(wc -l <killed)" -eq 3 ]
  amp-route --as killed -r '* => file:twice' </dev/null >/dev/null
  [ ! -s twice ]
  # Answers that were not written are written once.
  amp-route -r '* => file:y' </dev/null | wc -l
  # The coordinator knows its tasks.
  ends 75 task-dispatch coordinate </dev/null >/dev/null 2>open
  grep -F 'T-2026-002' open
  amp-ack sweep --now 2026-03-01T12:00:40Z >/dev/null || [ $? -le 1 ]
  amp-ack status --all >/dev/null
  run amp-ack doctor --skip peers --skip hooks
  [[ $output != *log_* ]]
}
