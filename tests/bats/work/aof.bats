#!/usr/bin/env bats
# The router and scheduler of AOF/1 over task files: aof-board, aof poll, aof end, aof new.

load ../lib
load ../aof

setup() {
  cd "$BATS_TEST_TMPDIR" || return
  D=$PWD/data
  mkdir data
  T=TASK-2026-02-09
}

@test "each status may be left and entered as the machine allows; a wish for the present one changes nothing" {
  local all=(backlog ready in-progress blocked review done cancelled deadletter) from to n=100
  declare -A ok=([backlog]="ready blocked cancelled" [ready]="in-progress blocked cancelled deadletter"
    [in-progress]="review ready blocked cancelled deadletter" [blocked]="ready cancelled deadletter"
    [review]="done in-progress blocked cancelled" [done]="" [cancelled]="" [deadletter]="ready")
  for from in "${all[@]}"; do
    for to in "${all[@]}"; do
      n=$((n + 1))
      task "$from" "$T-$n" "routing: {agent: ann}"
      update "$T-$n" ann "\"status\":\"$to\""
    done
  done >in
  run -0 aof <in
  # Read once: the status in each file, and how often each task was moved.
  declare -A is moves
  while IFS=: read -r file line; do is[${file#tasks/}]=${line#status: }; done < <(cd "$D" && grep -H '^status:' tasks/*/*.md)
  while read -r count task; do moves[$task]=$count; done < <(sed -n 's/.*"type":"task.transitioned".*"taskId":"\([^"]*\)".*/\1/p' "$D/events.ndjson" | sort | uniq -c)
  [ ${#is[@]} -eq 64 ]
  n=100
  for from in "${all[@]}"; do
    for to in "${all[@]}"; do
      n=$((n + 1))
      [[ " ${ok[$from]} " == *" $to "* ]] && expected=$to moved=1 || expected=$from moved=0
      [ "${is[$expected/$T-$n.md]-none}" = "$expected" ] || fail "$from to $to: $(at "$T-$n")"
      [ "${moves[$T-$n]-0}" -eq $moved ] || fail "$from to $to: events"
    done
  done
}

@test "outcomes move tasks: done to review and done, blocked to blocked, needs_review and partial to review" {
  local outcome n=0 expected
  for outcome in done blocked needs_review partial; do
    n=$((n + 1))
    task in-progress "$T-00$n" "lease:" "  agent: ann" "  expiresAt: 2026-02-10T00:00:00.000Z"
    mkdir -p "$D/tasks/in-progress/$T-00$n/outputs" "$D/runs/$T-00$n"
    echo text >"$D/tasks/in-progress/$T-00$n/outputs/summary.md"
    printf '{"taskId":"%s","agentId":"ann","startedAt":"2026-02-09T20:00:00.000Z","status":"running"}\n' "$T-00$n" \
      >"$D/runs/$T-00$n/run.json"
    report "$T-00$n" ann "$outcome"
  done >in
  run -0 aof <in
  diff <(printf '%s\n' "${lines[@]}") "$D/events.ndjson"
  [ "$(at $T-001) $(at $T-002) $(at $T-003) $(at $T-004)" = "done blocked review review" ]
  for n in 1:done 2:blocked 3:review 4:review; do
    expected=${n#*:} n=$T-00${n%:*}
    [ -f "$D/tasks/$expected/$n/outputs/summary.md" ]
    [ ! -e "$D/tasks/in-progress/$n" ]
    run -1 grep lease "$D/tasks/$expected/$n.md"
    grep -q '"status":"completed".*"endedAt"' "$D/runs/$n/run.json"
    [ "$(events protocol.message.warning "$n")" -eq 0 ]
  done
  [ "$(events task.transitioned $T-001)" -eq 2 ]
  [ "$(events task.completed $T-001)" -eq 1 ]
  grep -q '"from":"in-progress","to":"review"' <(grep $T-001 "$D/events.ndjson")
  grep -q '"from":"review","to":"done"' <(grep $T-001 "$D/events.ndjson")
  # What the router writes is valid by the published schemas.
  cat "$D"/runs/*/*.json "$D/events.ndjson" | amp-validate -p aof >valid
  [ "$(wc -l <valid)" -eq "$(cat "$D"/runs/*/*.json "$D/events.ndjson" | wc -l)" ]
  grep -qx '{"taskId":"'$T-001'","agentId":"ann","completedAt":"2026-02-09T21:00:00.000Z","outcome":"done","summaryRef":"outputs/summary.md","handoffRef":"outputs/handoff.md","deliverables":\["src/foo.ts"\],"tests":{"total":2,"passed":2,"failed":0},"blockers":\[\],"notes":"n"}' "$D/runs/$T-001/run_result.json"
  # All that is stored is files of these kinds.
  run -1 bash -c "cd '$D' && find . -type f | grep -vE '^./(tasks/[a-z-]+/$T-00[0-9](.md|/outputs/summary.md)|runs/$T-00[0-9]/run(_result)?.json|events.ndjson|.amp/(lock|next))\$'"
  # Again: every task has its status, so nothing changes.
  find "$D/tasks" "$D/runs" -type f -exec cat {} + | sha256sum >before
  run -0 aof <in
  [ "${#lines[@]}" -eq 5 ] # the fifth is the poll
  find "$D/tasks" "$D/runs" -type f -exec cat {} + | sha256sum | diff before -
}

@test "--stop-at-review leaves done work in review, but for reviewRequired false" {
  task in-progress $T-001 "lease: {agent: ann}"
  task in-progress $T-002 "lease: {agent: ann}" "metadata:" "  reviewRequired: false"
  task review $T-003 "routing: {agent: ann}"
  { report $T-001 ann done; report $T-002 ann done; report $T-003 ann done; } | aof --stop-at-review >out
  [ "$(at $T-001) $(at $T-002) $(at $T-003)" = "review done review" ]
  echo '{"aof":{"done_stops_at_review":true}}' >amp.json
  task in-progress $T-004 "lease: {agent: ann}"
  report $T-004 ann done | aof --config amp.json >out
  [ "$(at $T-004)" = review ]
  # Only a person says that a review is done; other ways out of it are open to the task's agent.
  task review $T-005 "routing: {agent: ann}"
  { update $T-003 ann '"status":"done"'; update $T-002 ann '"status":"done"'; update $T-005 ann '"status":"in-progress"'; } |
    aof --stop-at-review >out
  [ "$(grep -c '"type":"protocol.message.rejected".*"reason":"unauthorized_agent"' out)" -eq 1 ]
  [ "$(at $T-003) $(at $T-005)" = "review in-progress" ]
  update $T-003 operator/ada '"status":"done"' | aof --stop-at-review >out
  [ "$(at $T-003)" = "done" ]
}

@test "who may speak: the agent of the lease, else of the routing; anyone about progress" {
  task in-progress $T-001 "lease: {agent: ann}" "routing:" "  agent: bob"
  task in-progress $T-002 "routing: {\"agent\": \"bob\"}"
  task in-progress $T-003
  { report $T-001 bob done; report $T-001 mallory done; report $T-002 ann done; report $T-003 ann done
    message handoff.accepted $T-002 mallory '"accepted":true'
    update $T-001 mallory '"progress":"50% complete"'
    update $T-001 mallory '"status":"blocked","notes":"mine"'
    update $T-003 mallory '"status":"cancelled"'
    update $T-003 operator/ '"status":"cancelled"'
    report $T-002 bob partial; } | aof >out
  [ "$(grep -o '"reason":"[a-z_]*"' out | tr -d '\n')" = '"reason":"unauthorized_agent""reason":"unauthorized_agent""reason":"unauthorized_agent""reason":"unassigned_task""reason":"unauthorized_agent""reason":"unauthorized_agent""reason":"unassigned_task""reason":"unassigned_task""reason":"missing_summary""reason":"partial"' ]
  [ "$(at $T-001) $(at $T-002) $(at $T-003)" = "in-progress review in-progress" ]
  grep -q 'Progress: 50% complete$' "$D/tasks/in-progress/$T-001.md"
  run -1 grep mine "$D/tasks/in-progress/$T-001.md"
  [ ! -e "$D/runs/$T-001" ]
  # A person moves any task.
  update $T-003 operator/ada '"status":"cancelled"' | aof >out
  [ "$(at $T-003)" = cancelled ]
  # Files that are named and missing are warnings; the transition comes all the same.
  task in-progress $T-004 "lease: {agent: ann}"
  report $T-004 ann done | sed 's/"outputs\/summary.md"/&,"handoffRef":"outputs\/notes.md"/' | aof >out
  [ "$(grep -o '"reason":"missing_[a-z]*"' out | tr -d '\n') $(at $T-004)" = '"reason":"missing_summary""reason":"missing_handoff" done' ]
}

@test "status.update: blockers, notes or progress are the reason; without a transition they are a line of the work log" {
  task in-progress $T-001 "# a comment" "title: 'It''s'" "routing: {agent: ann}" "tags:" "  - a" "  - b"
  printf '\n## Notes\n\nlast\n' >>"$D/tasks/in-progress/$T-001.md"
  { update $T-001 ann '"progress":"half\n# no heading","notes":"n","blockers":["a","b"]'
    update $T-001 ann '"status":"in-progress","progress":"more"'
    update $T-001 ann '"status":"blocked","progress":"p","blockers":["Awaiting API key","x"]'; } | aof >out
  grep -q '"reason":"Awaiting API key; x"' out
  [ "$(at $T-001)" = blocked ]
  f=$D/tasks/blocked/$T-001.md
  [ "$(grep -c '^- 20.*Progress: half # no heading | Notes: n | Blockers: a, b$' "$f")" -eq 1 ]
  [ "$(grep -c 'Progress: more$' "$f")" -eq 1 ]
  # What a person wrote is as it was.
  grep -v -e '^status' -e At: -e '^- 20' "$f" | head -n 13 >got
  printf -- '---\nid: %s\n# a comment\ntitle: '"'It''s'"'\nrouting: {agent: ann}\ntags:\n  - a\n  - b\n---\n\n# Task %s\n\n## Notes\n' $T-001 $T-001 | diff - got
}

@test "a blocked report: its blockers are the reason, of a report and of a result" {
  task in-progress $T-001 "lease: {agent: ann}"
  task in-progress $T-002 "lease: {agent: ann}"
  task in-progress $T-003 "lease: {agent: ann}"
  task in-progress $T-004 "lease: {agent: ann}"
  task in-progress $T-005 "lease: {agent: ann}"
  { report $T-001 ann blocked | sed 's/"blockers":\[\]/"blockers":["no key\\nat all","quota"]/'
    report $T-002 ann blocked
    report $T-003 ann partial | sed 's/"blockers":\[\]/"blockers":["not a reason"]/'; } | aof >out
  grep -q '"taskId":"'$T-001'","payload":{"from":"in-progress","to":"blocked","reason":"no key at all; quota"}' out
  grep -q '"taskId":"'$T-002'","payload":{"from":"in-progress","to":"blocked","reason":"blocked"}' out
  grep -q '"taskId":"'$T-003'","payload":{"from":"in-progress","to":"review","reason":"partial"}' out
  for n in 004 005; do
    result $T-$n blocked
    sed -i 's/"blockers":\[\]/"blockers":["disk full"]/' "$D/runs/$T-$n/run_result.json"
  done
  aof-board end --data-dir "$D" $T-004 >out
  grep -q '"to":"blocked","reason":"disk full"}' out
  beat $T-005 2026-01-01T00:05:00.000Z
  aof_poll >out
  grep -q '"to":"blocked","reason":"stale_heartbeat_blocked: disk full"}' out
}

@test "what is not a message: silence for text and other objects, rejected or unknown for bad envelopes" {
  task in-progress $T-001 "lease: {agent: ann}"
  local good
  good=$(report $T-001 ann partial)
  printf '%s\n' 'plain text' 'null' '17' '[]' '{"a":1}' '{"protocol":"other"}' >foreign
  { cat foreign; echo 'AOF/1 {invalid json'; echo "{\"payload\":{\"protocol\":\"aof\",\"version\":2,${good#*1,}}"
    echo "${good/completion.report/nope}"; echo "${good/-001\",\"from/-002\",\"from}"
    echo "${good/Z\"/+01:00\"}"; echo "AOF/1 $good"; } >in
  run -0 aof <in
  # Foreign lines pass byte for byte.
  printf '%s\n' "${lines[@]}" | grep -v eventId | diff foreign -
  grep -o '"type":"[a-z.]*".*' "$D/events.ndjson" | grep -oE '"type":"[a-z.]*"|"reason":"[A-Za-z_]*"' | tr -d '\n' >got
  [[ $(cat got) == *'rejected""reason":"invalid_json"'* ]]
  [[ $(cat got) == *'rejected""reason":"invalid_envelope"'* ]]
  [[ $(cat got) == *'"type":"protocol.message.unknown"'* ]]
  [[ $(cat got) == *'"reason":"taskId_mismatch"'* ]]
  [ "$(at $T-001)" = review ]
  # Names as long as a message: each is refused, with a beginning that identifies it, and the router goes on.
  local name long
  task in-progress $T-002 "lease: {agent: ann}"
  long=$(head -c 1100000 /dev/zero | tr '\0' x)
  { for name in type messageId projectId fromAgent toAgent; do update $T-002 ann '"progress":"p"' | sed "s/,\"$name\":\"[a-zA.]*\"//; s/^{/{\"$name\":\"/; s/:\"/&LONG\",/" | sed "s/LONG/$(printf '%01500d' 0)/"; done
    printf '{"protocol":"aof","version":1,"type":"%s","taskId":"%s","fromAgent":"a","toAgent":"b","sentAt":"2026-02-09T21:00:00.000Z","payload":{}}\n' "$long" $T-002
    update $T-002 ann '"status":"blocked"'; } >in
  run -0 aof <in
  [ "$(grep -oE '"type":"protocol.message.(rejected|unknown)"|"reason":"[a-z_]*"' <<<"$output" | tr -d '\n')" = \
    '"type":"protocol.message.unknown""type":"protocol.message.rejected""reason":"invalid_envelope""type":"protocol.message.rejected""reason":"invalid_project_id""type":"protocol.message.rejected""reason":"invalid_envelope""type":"protocol.message.rejected""reason":"invalid_envelope""type":"protocol.message.unknown"' ]
  [ "$(wc -c <<<"$output")" -lt 20000 ]
  [ "$(at $T-002)" = blocked ]
  # An envelope above 10 MiB.
  { printf 'AOF/1 '; head -c 10485761 /dev/zero | tr '\0' ' '; echo "$good"; } | aof >out
  grep -q '"reason":"payload_too_large"' out
}

@test "a missing task is logged and people are notified; nothing is fatal" {
  cat >notify <<'SH'
#!/bin/sh
cat >>notified
[ ! -e fails ]
SH
  chmod +x notify
  task in-progress $T-001 "lease: {agent: ann}"
  task in-progress $T-002 "lease: {agent: ann}"
  task in-progress $T-003 "lease: {agent: ann}"
  { report $T-009 ann done; update $T-009 ann '"notes":"x"'; report $T-001 ann done; report $T-002 ann partial
    update $T-003 ann '"status":"blocked","notes":"why"'; } >in
  run -0 aof --notify ./notify <in
  [ "$(grep -o '"notify":"[a-z]*","taskId":"[A-Z0-9-]*"' notified | tr -d '\n')" = \
    '"notify":"alert","taskId":"'$T-009'""notify":"alert","taskId":"'$T-009'""notify":"done","taskId":"'$T-001'""notify":"review","taskId":"'$T-002'""notify":"blocked","taskId":"'$T-003'"' ]
  grep -q '"reason":"why"' notified
  [ "$(events protocol.message.rejected $T-009)" -eq 2 ]
  # A notification that fails is a warning.
  task in-progress $T-004 "lease: {agent: ann}"
  touch fails
  report $T-004 ann done >in
  run -0 --separate-stderr aof --notify ./notify <in
  [[ $stderr == *"warning: notification {\"notify\":\"done\",\"taskId\":\"$T-004"* ]]
  [ "$(at $T-004)" = done ]
}

@test "handoff: the child gets its parent, handoff.json and handoff.md; accepted and rejected are answered once" {
  task in-progress $T-001 "lease: {agent: ann}"
  task ready $T-002
  task ready $T-003 "parentId: $T-001"
  { request $T-002 $T-001 ann bob; request $T-002 $T-001 ann bob; request $T-003 $T-001 ann bob
    message handoff.accepted $T-002 bob '"accepted":true'
    message handoff.accepted $T-002 bob '"accepted":true'
    message handoff.rejected $T-003 bob '"accepted":false,"reason":"no time"'
    message handoff.rejected $T-003 bob '"accepted":false,"reason":"no time"'; } | aof >out
  [ "$(events delegation.requested $T-002) $(events delegation.accepted $T-002)" = "1 1" ]
  [ "$(events delegation.rejected $T-003) $(events task.transitioned $T-003) $(at $T-003)" = "1 1 blocked" ]
  grep -q '"to":"blocked","reason":"no time"' out
  amp-validate -p aof <"$D/tasks/ready/$T-002/inputs/handoff.json" >valid
  diff valid "$D/tasks/ready/$T-002/inputs/handoff.json"
  grep -q '"acceptanceCriteria":\["All tests pass"\]' valid
  grep -qx -- '- All tests pass' "$D/tasks/ready/$T-002/inputs/handoff.md"
  grep -qx "parentId: \"$T-001\"\|parentId: $T-001" "$D/tasks/ready/$T-002.md"
  grep -qx '  delegationDepth: 1' "$D/tasks/ready/$T-002.md"
  [ -f "$D/tasks/blocked/$T-003/inputs/handoff.json" ]
}

@test "handoff: a missing parent, a missing child and nested delegation are refused; bad criteria are logged" {
  task in-progress $T-001 "lease: {agent: ann}"
  task in-progress $T-002 "lease: {agent: bob}" "parentId: $T-001" "metadata:" "  delegationDepth: 1"
  task ready $T-003
  task done $T-005
  task in-progress $T-006 "lease: {agent: bob}" "metadata: {delegationDepth: 100000}"
  local bad
  bad=$(request $T-003 $T-001 ann bob)
  { request $T-003 $T-008 ann bob; request $T-009 $T-001 ann bob; request $T-003 $T-002 bob cleo
    request $T-003 $T-003 ann bob; request $T-005 $T-001 ann bob; request $T-003 $T-001 mallory bob
    request $T-003 $T-006 bob cleo; echo "${bad/\[\"All tests pass\"\]/\"all\"}"; } | aof >out
  [ "$(grep '"type":"delegation.rejected"' out | grep -o '"reason":"[a-z_]*"' | tr -d '\n')" = \
    '"reason":"parent_not_found""reason":"task_not_found""reason":"nested_delegation""reason":"parent_not_found""reason":"task_ended""reason":"nested_delegation"' ]
  [ "$(grep -c '^{"protocol":"aof".*"type":"handoff.rejected".*"toAgent":"bob".*"reason":"nested_delegation"' out)" -eq 2 ]
  grep '^{"protocol"' out | amp-validate -p aof | cmp - <(grep '^{"protocol"' out)
  grep '"type":"protocol.message.warning"' out | grep -q '"reason":"nested_delegation"'
  grep '"type":"protocol.message.warning"' out | grep -q '"reason":"invalid_acceptance_criteria"'
  # Accepted all the same.
  [ "$(events delegation.requested $T-003)" -eq 1 ]
  [ -f "$D/tasks/ready/$T-003/inputs/handoff.json" ]
}

@test "handoff: answers twice, in both orders, by others and without sense; pointers in the parent's folder" {
  local n bad
  task in-progress $T-001 "lease: {agent: ann}" "routing: {agent: ann}"
  for n in 002 003 004; do task ready $T-$n; done
  task ready $T-005 "parentId: $T-099"
  { for n in 002 003 004 005; do request $T-$n $T-001 ann bob; done
    # Accepted, then given back; given back, then accepted all the same.
    message handoff.accepted $T-002 bob '"accepted":true'
    message handoff.rejected $T-002 bob '"accepted":false,"reason":"too much"'
    message handoff.rejected $T-003 bob '"accepted":false'
    message handoff.accepted $T-003 bob '"accepted":true'
    # Neither of the two parties; a type that says the contrary of its payload.
    message handoff.accepted $T-004 mallory '"accepted":true'
    message handoff.accepted $T-004 bob '"accepted":false'
    message handoff.rejected $T-004 bob '"accepted":true'
    message handoff.accepted $T-098 bob '"accepted":true'; } | aof >out
  [ "$(at $T-002) $(at $T-003) $(at $T-004) $(at $T-005)" = "blocked blocked ready ready" ]
  [ "$(events delegation.accepted $T-002) $(events delegation.rejected $T-002)" = "1 1" ]
  [ "$(events delegation.accepted $T-003) $(events delegation.rejected $T-003)" = "1 1" ]
  grep -q '"to":"blocked","reason":"handoff_rejected"' <(grep $T-003 out)
  [ "$(events delegation.accepted $T-004) $(events delegation.rejected $T-004)" = "0 0" ]
  [ "$(grep '"type":"protocol.message.rejected"' out | grep $T-004 | grep -o '"reason":"[a-z_]*"' | tr -d '\n')" = \
    '"reason":"unauthorized_agent""reason":"invalid_envelope""reason":"invalid_envelope"' ]
  grep -q '"type":"delegation.rejected".*"taskId":"'$T-005'".*"reason":"parent_mismatch"' out
  grep '"type":"protocol.message.rejected"' out | grep -q '"taskId":"'$T-098'".*"reason":"task_not_found"'
  # The child is assigned to its agent; the parent has a pointer to it, which moves with the parent.
  [ "$(events task.assigned $T-002)" -eq 1 ]
  [ "$(cd "$D/tasks/in-progress/$T-001/subtasks" && echo *)" = "$T-002.md $T-003.md $T-004.md" ]
  grep -qx -- "- Parent: $T-001" "$D/tasks/in-progress/$T-001/subtasks/$T-002.md"
  grep -qx -- "- To: bob" "$D/tasks/in-progress/$T-001/subtasks/$T-002.md"
  report $T-001 ann partial | aof >out
  [ -f "$D/tasks/review/$T-001/subtasks/$T-004.md" ]
  run -0 aof-board new --data-dir "$D" --parent $T-001 --agent eve
  grep -qx -- "- To: eve" "$D/tasks/review/$T-001/subtasks/$(date -u +TASK-%F)-001.md"
  # A request that was answered is not made again by its repetition, but by another one.
  { request $T-003 $T-001 ann bob; request $T-003 $T-001 ann bob | sed 's/All tests pass/Two tests pass/'; } | aof >out
  [ "$(grep -c '"type":"delegation.requested"' out)" -eq 1 ]
}

@test "a poll follows the messages: a stale task is taken back without another command" {
  task in-progress $T-001 "lease: {agent: ann}"
  task in-progress $T-002 "lease: {agent: ann}"
  beat $T-001 2026-01-01T00:05:00.000Z
  echo "no message" | aof >out
  [ "$(cat out) $(at $T-001)" = "no message in-progress" ]
  mkfifo fifo
  aof-board --data-dir "$D" <fifo >out &
  exec 9>fifo
  update $T-002 ann '"progress":"half"' >&9
  wait_until 20 test -e "$D/tasks/ready/$T-001.md"
  update $T-002 ann '"status":"blocked"' >&9
  exec 9>&-
  wait $!
  [ "$(at $T-002)" = blocked ]
  # Each burst of messages has one poll, behind it.
  [ "$(grep -o '"type":"[a-z.]*"' out | tr -d '\n')" = \
    '"type":"protocol.message.received""type":"task.transitioned""type":"lease.expired""type":"scheduler.poll""type":"protocol.message.received""type":"task.transitioned""type":"lease.released""type":"scheduler.poll"' ]
  # What a status ends is an event of its own.
  task review $T-003 "routing: {agent: ann}"
  task blocked $T-004 "routing: {agent: ann}"
  { update $T-003 ann '"status":"cancelled","notes":"no need"'; update $T-004 ann '"status":"deadletter","notes":"why"'; } | aof >out
  grep -q '"type":"task.cancelled".*"taskId":"'$T-003'","payload":{"reason":"no need"}' out
  grep -q '"type":"task.failed".*"taskId":"'$T-004'","payload":{"reason":"why"}' out
}

@test "poll: the table of the resume protocol" {
  local n old=2026-01-01T00:05:00.000Z
  for n in 1 2 3 4 5 6 7 8; do
    task in-progress $T-00$n "lease:" "  agent: ann"
    beat $T-00$n $old
    # Other members of run.json stay.
    printf '{\n"sessionId":"s1",\n"taskId":"%s","agentId":"ann","startedAt":"2026-02-09T20:00:00.000Z","status":"running","x":{"a": [1]}}\n' $T-00$n \
      >"$D/runs/$T-00$n/run.json"
  done
  result $T-001 done
  result $T-002 blocked
  result $T-003 needs_review
  result $T-004 partial
  echo '{"taskId":"'$T-006'"}' >"$D/runs/$T-006/run_result.json" # invalid
  rm "$D/runs/$T-007/run_heartbeat.json"
  beat $T-008 2999-01-01T00:00:00.000Z
  task in-progress $T-009 # no run at all
  task in-progress $T-010
  beat $T-010 $old # no run.json
  task in-progress $T-011
  mkdir -p "$D/runs/$T-011"
  echo garbage >"$D/runs/$T-011/run_heartbeat.json"
  run -0 aof_poll
  for n in 001:done 002:blocked 003:review 004:review 005:ready 006:in-progress 007:in-progress 008:in-progress \
    009:in-progress 010:ready 011:in-progress; do
    [ "$(at $T-${n%:*})" = "${n#*:}" ] || fail "$n is in $(at $T-${n%:*})"
  done
  grep -q '"reason":"stale_heartbeat_reclaim"' <(grep $T-005 "$D/events.ndjson")
  grep -q '"reason":"stale_heartbeat_partial"' <(grep $T-004 "$D/events.ndjson")
  [ "$(events lease.expired $T-005) $(events task.completed $T-001) $(events protocol.message.rejected $T-006)" = "1 1 1" ]
  grep -q '"status":"failed","expiredAt":"[^"]*","expiredReason":"stale_heartbeat","sessionId":"s1","x":{"a": \[1\]}}' "$D/runs/$T-005/run.json"
  grep -q '"status":"completed","endedAt":"[^"]*","sessionId":"s1","x":{"a": \[1\]}}' "$D/runs/$T-001/run.json"
  [[ ${lines[-1]} == *'"type":"scheduler.poll"'*'{"inProgress":11,"stale":7,"reclaimed":2,"finished":4}'* ]]
  run -1 grep lease "$D/tasks/ready/$T-005.md"
  # Again: only the invalid result is still there.
  run -0 aof_poll
  [ "${#lines[@]}" -eq 2 ]
  # The others are as they were.
  amp-validate -p aof <"$D/events.ndjson" >valid
  cmp valid "$D/events.ndjson"
}

@test "aof end: the transition of the result, once; without a result, or a task, status 1" {
  task in-progress $T-001 "lease: {agent: ann}"
  task in-progress $T-002
  result $T-001 partial
  end() { aof-board end --data-dir "$D" "$@"; }
  run -0 end $T-001
  [ "$(at $T-001)" = review ]
  run -0 end $T-001
  [ -z "$output" ]
  run -1 end $T-002
  run -1 end $T-009
  [[ $output == *'"reason":"task_not_found"'* ]]
  run -64 end ../x
  run -69 aof-board end --data-dir "$PWD/none" $T-001
  [ ! -e none ]
}

@test "aof new: into ready, with the next number of the day; children of children are refused" {
  new() { aof-board new --data-dir "$D" "$@"; }
  run -0 new --title 'a: "b" #c' --agent ann --priority high - <<<"text"
  [[ $output == *'"type":"task.created"'*'"title":"a: \"b\" #c","status":"ready"'* ]]
  day=$(date -u +TASK-%F)
  [ "$(at "$day-001")" = ready ]
  [ "$(tail -n 1 "$D/tasks/ready/$day-001.md")" = text ]
  run -0 new --parent "$day-001" --backlog
  [ "$(at "$day-002")" = backlog ]
  grep -qx "parentId: $day-001" "$D/tasks/backlog/$day-002.md"
  run -1 new --parent "$day-002"
  [[ $output == *"children have no children"* ]]
  run -1 new --parent "$day-009"
  run -64 new --parent 17
  # Bytes that JSON cannot carry are refused, not replaced.
  printf 'caf\351\n' >latin1
  run -65 new latin1
  [[ $output == *"the text is not UTF-8 at byte 4"* ]]
  run -65 new --title $'\377'
  # Whatever has the name of a task takes its number.
  mkdir -p "$D/tasks/blocked/$day-003.md" "$D/runs/$day-004" "$D/tasks/done/$day-005"
  ln -s nowhere "$D/tasks/ready/$day-006.md"
  run -0 new
  [ -f "$D/tasks/ready/$day-007.md" ]
  # By default below the home directory.
  HOME=$PWD/home aof-board new >out
  [ -f "home/.openclaw/aof/tasks/ready/$day-001.md" ]
  # A number that is taken in another folder, and the last one of the day.
  rm -r "$D"/tasks/*/*.md
  for n in $(seq -w 1 998); do :>"$D/tasks/done/$day-$n.md"; done
  run -0 new
  [ "$(at "$day-999")" = ready ]
  run -1 new
  [[ $output == *"the limit of a day"* ]]
}

@test "hostile files: links, FIFOs, folders, large files and other ids are logged and left alone" {
  echo secret >secret
  task in-progress $T-001 "lease: {agent: ann}"
  mkdir -p "$D"/tasks/{ready,in-progress,done} "$D/runs"
  ln -s ../../../secret "$D/tasks/in-progress/$T-002.md"
  mkfifo "$D/tasks/in-progress/$T-003.md"
  mkdir "$D/tasks/in-progress/$T-004.md"
  truncate -s 5M "$D/tasks/in-progress/$T-005.md"
  task in-progress $T-006
  sed -i s/-006/-007/ "$D/tasks/in-progress/$T-006.md"
  printf -- '---\nid: x\n' >"$D/tasks/in-progress/$T-008.md"
  task in-progress $T-009 "lease: {agent: ann}"
  cp "$D/tasks/in-progress/$T-009.md" "$D/tasks/ready/$T-009.md"
  mkdir outside
  ln -s "$PWD/outside" "$D/runs/$T-001"
  task in-progress $T-010 "lease: {agent: ann}"
  mkdir -p "$D/runs/$T-010"
  mkfifo "$D/runs/$T-010/run_heartbeat.json" "$D/runs/$T-010/run.json"
  touch "$D/tasks/in-progress/../../tasks/in-progress/.hidden.md" "$D/tasks/in-progress/notes.md"
  { for n in 002 003 004 005 006 008 009; do update $T-$n ann '"status":"review"'; done
    report $T-001 ann partial; report $T-010 ann partial; } >in
  run -0 timeout 20 aof-board --data-dir "$D" <in
  [ "$(grep -o '"reason":"[a-z_]*"' <<<"$output" | head -n 7 | tr -d '\n')" = \
    '"reason":"not_a_file""reason":"not_a_file""reason":"not_a_file""reason":"file_too_large""reason":"id_mismatch""reason":"bad_front_matter""reason":"two_folders"' ]
  [ "$(cat secret)" = secret ]
  [ -z "$(ls outside)" ]
  [ "$(at $T-010)" = review ]
  run -0 timeout 20 aof-board poll --data-dir "$D"
  # A name of 5,000 bytes is not the end of the poll, and a long line not that of the numbers.
  task in-progress $T-011 "lease: {agent: $(printf '%05000d' 0)}"
  task in-progress $T-012 "lease: {agent: ann}"
  beat $T-011 2026-01-01T00:00:00.000Z
  beat $T-012 2026-01-01T00:00:00.000Z
  n=$(wc -l <"$D/events.ndjson")
  { head -c 300000 /dev/zero | tr '\0' z; echo; } >>"$D/events.ndjson"
  run -0 aof_poll
  [[ ${lines[0]} == '{"eventId":'$((n + 1))',"type":"task.validation.failed"'*'"taskId":"'$T-011'","payload":{"reason":"agent_too_long"'* ]]
  [ "$(at $T-012)" = ready ]
  # A work log grows until its task can still be read; what does not fit is a warning.
  { printf '%s\n' --- "id: $T-013" 'routing: {agent: ann}' ---; head -c 4115000 /dev/zero | tr '\0' z; } >"$D/tasks/in-progress/$T-013.md"
  n=$(printf '%09000d' 0)
  { update $T-013 ann "\"notes\":\"$n\""; update $T-013 ann "\"notes\":\"$n\""; report $T-013 ann partial; } >in
  aof <in >out
  [ "$(grep -o '"reason":"file_too_large"' out | wc -l)" -eq 1 ]
  [ "$(at $T-013)" = review ]
  # A folder of statuses that is a link is refused.
  rmdir "$D/tasks/done" || rm -r "$D/tasks/done"
  ln -s "$PWD/outside" "$D/tasks/done"
  run -78 aof_poll
}

@test "the examples of the protocol's text" {
  local at='"sentAt":"2026-02-09T21:00:00.000Z"' parent=TASK-2026-02-09-057 child=TASK-2026-02-09-060
  task in-progress $parent "lease: {agent: swe-backend}"
  task ready $child "routing: {agent: swe-backend}"
  mkdir -p "$D/runs/$parent"
  # A request in an event, then an update in the content of one.
  {
    echo '{"payload":{"protocol":"aof","version":1,"type":"handoff.request","taskId":"'$child'","parentTaskId":"'$parent'","fromAgent":"swe-backend","toAgent":"swe-qa",'"$at"',"messageId":"optional-string","payload":{"taskId":"TASK-2026-02-09-060","parentTaskId":"TASK-2026-02-09-057","fromAgent":"swe-backend","toAgent":"swe-qa","acceptanceCriteria":["All tests pass","Update docs"],"expectedOutputs":["tests/report.md","docs/QA.md"],"contextRefs":["tasks/in-progress/TASK-2026-02-09-057.md","tasks/in-progress/TASK-2026-02-09-057/outputs/handoff.md"],"constraints":["No new dependencies"],"dueBy":"2026-02-10T12:00:00.000Z"}}}'
    echo '{"content":"AOF/1 {\"protocol\":\"aof\",\"version\":1,\"type\":\"status.update\",\"taskId\":\"'$child'\",\"fromAgent\":\"swe-backend\",\"toAgent\":\"aof\",\"sentAt\":\"2026-02-09T21:00:00.000Z\",\"payload\":{\"taskId\":\"'$child'\",\"agentId\":\"swe-backend\",\"status\":\"blocked\",\"progress\":\"Implemented core logic; waiting on API key\",\"blockers\":[\"Awaiting API key\"],\"notes\":\"ETA after credentials arrive\"}}"}'
  } | aof >out
  grep -q '"type":"delegation.requested"' out
  [ "$(at $child)" = blocked ]
  grep -q '"reason":"Awaiting API key"' out
  # The content is JSON.
  echo '{"content":"{\"protocol\":\"aof\",\"version\":1,\"type\":\"status.update\",\"taskId\":\"'$child'\",\"fromAgent\":\"swe-backend\",\"toAgent\":\"aof\",'"${at//\"/\\\"}"',\"payload\":{\"taskId\":\"'$child'\",\"agentId\":\"swe-backend\",\"status\":\"ready\"}}"}' | aof >out
  [ "$(at $child)" = ready ]
  # The report is also a run_result.json.
  echo '{"taskId":"TASK-2026-02-09-057","agentId":"swe-backend","completedAt":"2026-02-09T21:10:00.000Z","outcome":"partial","summaryRef":"outputs/summary.md","handoffRef":"outputs/handoff.md","deliverables":["src/foo.ts"],"tests":{"total":120,"passed":120,"failed":0},"blockers":["Awaiting API key"],"notes":"Implemented core logic; needs QA review."}' \
    >"$D/runs/$parent/run_result.json"
  run -0 aof-board end --data-dir "$D" $parent
  [ "$(at $parent)" = review ]
}

@test "a task that was completed directly: the report is recorded, and nothing moves" {
  task "done" $T-001 "routing: {agent: ann}"
  task blocked $T-002 "routing: {agent: ann}"
  { report $T-001 ann done; report $T-001 ann blocked; report $T-002 ann done; report $T-002 ann blocked; } | aof >out
  [ "$(at $T-001) $(at $T-002)" = "done blocked" ]
  run -1 grep transitioned out
  grep -q '"outcome":"done"' "$D/runs/$T-001/run_result.json"
}
