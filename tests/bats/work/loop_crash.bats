# The whole loop with real workers: its coordinator is killed in the middle, again and again, and
# the next loop on the same state directory goes on where it was. # slow

load ../lib

setup() {
  need_tool amp-ack amp-route hitl-prompt
  cd "$BATS_TEST_TMPDIR" || return
  S=$BATS_TEST_TMPDIR/state
  repo r
  # The executor writes a line; the reviewer likes an even number of them.
  cat >executor <<'SH'
#!/bin/sh
echo "$AMP_SUBTASK_ID $AMP_ATTEMPT" >>work
echo '{"completion_status": "complete", "self_assessment": {"criteria_met": [null], "notes": []}}' \
  >"$AMP_RESULT.new" && mv "$AMP_RESULT.new" "$AMP_RESULT"
SH
  cat >reviewer <<'SH'
#!/bin/sh
if [ $(($(wc -l <work) % 2)) -eq 0 ]; then d=approved ok=true i=; else
  d=rejected ok=false i='"issues": [{"severity": "major", "file": "work", "line": 1,
    "description": "odd", "suggested_fix": "one more"}],'
fi
echo "{\"decision\": \"$d\", $i \"confidence\": 1,
  \"criteria_results\": [{\"criterion\": \"even\", \"passed\": $ok, \"evidence\": \"wc\"}]}" \
  >"$AMP_RESULT.new" && mv "$AMP_RESULT.new" "$AMP_RESULT"
SH
  chmod +x executor reviewer
  echo '{"task_id": "*", "decision": "resume"}' >answer
}

# In the background its pid is the session's id.
loop() {
  export EXECUTOR=$PWD/executor REVIEWER=$PWD/reviewer AMP_ANSWER=$PWD/answer
  exec setsid timeout 60 "$AMP_TOP/examples/qa-loop/loop.sh" "$S" <tasks >>log 2>&1
}
steps() {
  [ "$(grep -hc '"key":"task[.]' "$S"/log/*.ndjson)" -ge "$1" ]
}
nobody() {
  ! pgrep -s "$1" >/dev/null
}

@test "a loop whose coordinator is killed is finished by the next ones" {
  for i in 1 2 3; do
    task-dispatch new --print --id "T-$(date -u +%Y)-00$i" -s "$S" --repo r --branch "fix/$i" -d "work" --subtask one --subtask two \
      --criterion even
  done >tasks
  local kills=0
  for at in 4 12 20 28; do
    loop &
    loop=$!
    wait_until 30 steps "$at"
    # On a busy machine the loop may be over before its steps are seen.
    if pkill -KILL -s "$loop" -f ' coordinate '; then
      kills=$((kills + 1))
    fi
    wait "$loop" || :
    wait_until 30 nobody "$loop"
  done
  [ "$kills" -ge 1 ]
  loop &
  wait $!
  [ "$(cat "$S"/tasks/*.json | jq -s 'map(select(.state == "done")) | length')" -eq 3 ]
  # Each subtask: one rejection, one approval, whatever was killed in between.
  cat "$S"/tasks/*.json | jq -se '[.[].subtasks[]] | all(.attempts == 2 and .verdict == "approved")'
  for i in 1 2 3; do
    [ "$(git -C r show "fix/$i:work" | wc -l)" -eq 4 ]
  done
}
