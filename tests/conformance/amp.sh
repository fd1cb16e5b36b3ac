# shellcheck shell=bash disable=SC2154
# Sample cases of AMP/1.0: see protocols.sh.

# Puts messages with these ids into the state's ledger; the text is not that of the input.
seed_state() {
  local seen task
  for seen in "$@"; do
    task=$(grep -oE 'T-[0-9]{4}-[0-9]{3}' <<<"$seen" | head -n 1)
    message "${seen%%-*}" ".msg_id = \"$seen\" | .task_id = \"$task\" | .requires_ack = false |
      del(.ack_timeout_sec) | .timestamp = \"2026-01-01T00:00:00Z\"" |
      amp-ack track --state "$dir/state" >/dev/null 2>>"$dir/seed.err" || return 1
  done
}

amp_validates() {
  local options=() status verdict code field warn
  verdict=$(want verdict) code=$(want code) field=$(want field) warn=$(want warn)
  if jq -e '.given | has("seen")' <<<"$case" >/dev/null; then
    have amp-ack || {
      skip "needs amp-ack"
      return
    }
    mapfile -t seen < <(jq -r '.given.seen[]' <<<"$case")
    seed_state task_dispatch-T-1999-001-1 "${seen[@]}" || {
      fail "the state could not be prepared: $(cat "$dir/seed.err")"
      return
    }
    options+=(--state "$dir/state")
  fi
  [ "$code" = repo_not_git ] && options+=(--check-repo)
  jq -c .input <<<"$case" >"$dir/in"
  amp-validate -e "$dir/records" "${options[@]}" "$dir/in" >"$dir/out" 2>"$dir/err"
  status=$?
  touch "$dir/records"
  if [ "$verdict" = accept ]; then
    [ "$status" -eq 0 ] || { fail "status $status: $(cat "$dir/records" "$dir/err")" && return; }
    cmp -s "$dir/in" "$dir/out" || { fail "the output differs from the input" && return; }
    if [ -n "$warn" ]; then
      jq -e --arg w "$warn" 'select(.severity == "warning" and .code == $w)' "$dir/records" \
        >/dev/null || { fail "no warning $warn" && return; }
    fi
  else
    [ "$status" -eq 1 ] || { fail "status $status: $(cat "$dir/err")" && return; }
    [ ! -s "$dir/out" ] || { fail "a refused line came out" && return; }
    local got
    got=$(jq -rs '.[0] | .code + " " + .field' "$dir/records")
    [ "${got%% *}" = "$code" ] || { fail "code ${got%% *}, not $code" && return; }
    [ -z "$field" ] || [ "${got#* }" = "$field" ] || { fail "field ${got#* }, not $field" && return; }
  fi
  amp_follows || return
  pass
}

# What other tools do with the message. Returns 1 after a failure.
amp_follows() {
  local seconds escalate ask
  seconds=$(want effective_ack_timeout_sec) escalate=$(want escalate) ask=$(want ask)
  if [ -n "$seconds" ] && have amp-ack; then
    amp-ack track --state "$dir/acks" <"$dir/in" >/dev/null 2>&1
    amp-ack status --all --json --state "$dir/acks" >"$dir/status" 2>&1
    jq -e --argjson s "$seconds" 'def at: sub("[.][0-9]+Z$"; "Z") | fromdateiso8601;
      (.due | at) - (.sent | at) == $s' "$dir/status" >/dev/null 2>&1 ||
      { fail "the effective ack timeout is not $seconds s: $(cat "$dir/status")" && return 1; }
  fi
  if [ -n "$escalate" ] && have task-dispatch && grep -q '"type":"task_dispatch"' "$dir/in"; then
    task-dispatch run --state "$dir/run" --exec true <"$dir/in" >"$dir/ran" 2>"$dir/err"
    jq -e --arg t "$escalate" 'select(.type == "escalation" and .payload.escalation_type == $t)' \
      "$dir/ran" >/dev/null 2>&1 ||
      { fail "no escalation $escalate from task-dispatch run: $(cat "$dir/err")" && return 1; }
  fi
  if [ "$ask" = coordinator ] && have task-dispatch; then
    task-dispatch run --state "$dir/run" --exec true <"$dir/in" >"$dir/ran" 2>"$dir/err"
    jq -e --arg c "$(want code)" 'select(.type == "nack" and .code == $c and .retryable)' \
      "$dir/ran" >/dev/null 2>&1 ||
      { fail "the executor does not ask the coordinator: $(cat "$dir/err")" && return 1; }
  fi
}

# Verdicts in a row against the coordinator, each after a result of its own.
amp_coordinates() {
  have task-dispatch || { skip "needs task-dispatch" && return; }
  local n i first task
  task=$(jq -r '.input[0].task_id' <<<"$case")
  case=$(jq -c '.input |= if type == "array" then . else [.] end' <<<"$case")
  n=$(jq '.input | length' <<<"$case")
  jq -c '{qa: {lock_after: (.given.lock_threshold // 3)}}' <<<"$case" >"$dir/amp.json"
  repo=$dir/repo
  git init -q -b main "$repo" && git -C "$repo" -c user.name=t -c user.email=t@t commit -q \
    --allow-empty -m start || { fail "no repository" && return; }
  first=$(message task_dispatch ".from = \"admin\" | .to = \"coordinator\" | .task_id = \"$task\" |
    .msg_id = \"task_dispatch-$task-1\" | .payload.repo = \"$repo\" |
    .payload.risk_level = \"low\" | .payload.subtasks |= [.[0]]")
  {
    echo "$first"
    for ((i = 0; i < n; i++)); do
      message task_result ".task_id = \"$task\" | .msg_id = \"task_result-$task-$((100 + i))\" |
        .payload.commit_hash = \"a3f8d2$i\""
      jq -c --arg i "$i" ".input[$i] | .msg_id = \"review_verdict-$task-\" + \$i" <<<"$case"
    done
  } >"$dir/in"
  timeout 20 task-dispatch coordinate --config "$dir/amp.json" --state "$dir/state" <"$dir/in" >"$dir/out" 2>"$dir/err"
  local emit
  emit=$(jq -c '.expect.emit // {}' <<<"$case")
  jq -se --argjson e "$emit" 'map(select(.type == "escalation") | .payload) |
    $e == {} or any(. as $p | $e | to_entries | all(
      (if .key == "reject_count" then $p.system_state_snapshot else $p end)[.key] == .value))' "$dir/out" >/dev/null 2>&1 ||
    { fail "no such escalation: $(cat "$dir/out" "$dir/err" | tail -n 5)" && return; }
  local status
  status=$(want task_status)
  [ -z "$status" ] || jq -se --arg s "$status" 'map(select(.type == "escalation") | .payload) |
    any(.system_state_snapshot.task_status == $s)' "$dir/out" >/dev/null ||
    { fail "task_status is not $status" && return; }
  pass
}

amp_case() {
  local strange
  strange=$(jq -r '.given // {} | keys - ["seen", "lock_threshold"] | join(", ")' <<<"$case")
  if [ -n "$strange" ]; then
    skip "no way here to prepare: $strange"
  elif jq -e '(.input | type == "array") or (.expect | has("emit") or has("task_status"))' \
    <<<"$case" >/dev/null; then
    amp_coordinates
  elif [ -z "$(want verdict)" ]; then
    skip "expects nothing that can be seen from outside"
  else
    amp_validates
  fi
}
