#!/usr/bin/env bats
# The activity buffer (SW4RM §10): who works on what and where.

load ../lib
load ../agents

setup() {
  need jq git
  need_tool task-dispatch amp-validate amp-ack
  workplace
  started=()
}

teardown() {
  local p
  for p in "${started[@]}"; do kill -9 "$p" 2>/dev/null || true; done
}

activity() {
  agent-handoff -q activity -s "$STATE" "$@"
}

# waits NAME [OPTION...]: the agent NAME works on task T-2026-00N until the FIFO NAME.go is written.
waits() {
  local name=$1 n=$2
  mkfifo "$name.go"
  agent "$name.sh" <<EOS
cp "\$AMP_ACTIVITY" "$BATS_TEST_TMPDIR/$name.seen"
read -r word <"$BATS_TEST_TMPDIR/$name.go"
echo "\$word" >"$name"
EOS
  dispatch ".task_id = \"T-2026-00$n\" | .msg_id |= sub(\"001-\"; \"00$n-\") | .payload.branch = \"feat/$name\"
    | .payload.subtasks[0].subtask_id = \"T-2026-00$n-S1\" | .payload.subtasks[0].description = \"what $name does\"" >"$name.in"
  task-dispatch run -s "$STATE" --agent "$name" "${@:3}" --exec "./$name.sh" <"$name.in" >"$name.out" 2>"$name.err" 3>&- &
  pid=$!
  started+=("$pid")
  wait_until 20 test -s "$name.seen"
}

@test "an entry before and after each attempt; another agent sees it; filters, follow, history" {
  waits ann 1
  ann=$pid
  [ "$(jq -c . ann.seen)" = '{"entries":[],"more":0}' ]
  agent-handoff -q activity -s "$STATE" --follow --json >followed 2>follow.err 3>&- &
  follow=$!
  started+=("$follow")
  wait_until 10 has_lines followed 1
  waits bob 2
  bob=$pid
  # The seed's fields, and those of the schema.
  activity --json >list
  amp-validate -S "$AMP_TOP/schemas/records/activity.json" list | cmp - list
  jq -es --arg repo "$REPO" 'length == 2 and all(.[]; .state == "ACTIVE" and .repo_id == $repo and .attempt == 1 and .role == "executor")
    and (.[0] | .agent_id == "ann" and .task_id == "T-2026-001" and .branch == "feat/ann" and .description == "what ann does"
      and .worktree_id == ($repo + ".worktrees/ann"))' list
  # Bob's attempt began with ann's entry, and not with its own.
  jq -e '.more == 0 and (.entries | length == 1) and .entries[0].agent_id == "ann"' bob.seen
  amp-validate -S "$AMP_TOP/schemas/records/activity.json" <(jq -c '.entries[]' bob.seen) >valid
  [ "$(activity --agent bob --json | jq -r .task_id)" = T-2026-002 ]
  [ "$(activity --task T-2026-001 --json | jq -r .agent_id)" = ann ]
  [ "$(activity -C "$REPO" --json | wc -l)" = 2 ]
  [ "$(activity --worktree "$REPO.worktrees/bob" --json | jq -r .agent_id)" = bob ]
  [ -z "$(activity -C / --json)" ]
  activity | grep -q 'ann .*T-2026-001-S1 .*active .*feat/ann'
  echo done >ann.go
  wait "$ann"
  wait_until 10 has_lines followed 3
  echo done >bob.go
  wait "$bob"
  wait_until 10 has_lines followed 4
  kill -TERM "$follow"
  ends 130 wait "$follow"
  jq -es '[.[] | .agent_id + " " + (.outcome // .state)] == ["ann ACTIVE", "bob ACTIVE", "ann completed", "bob completed"]' followed
  [ -z "$(activity --json)" ]
  [ "$(activity --all --json | jq -rs 'map(.outcome) | join(" ")')" = "completed completed" ]
  run -69 agent-handoff activity -s none
}

@test "a full buffer is reported and recorded, and prevents nothing; a killed worker's entry is ended" {
  echo '{"activity":{"max":1}}' >amp.json
  waits ann 1 --config "$PWD/amp.json"
  ann=$pid
  grep -q 'activity_buffer_high: the activity buffer has 1 entries of at most 1' ann.err
  waits bob 2 --config "$PWD/amp.json"
  grep -q 'activity_buffer_full: the activity buffer has 1 entries (the limit, activity.max, is 1)' bob.err
  [ "$(jq -r 'select(.rule == "SW4RM §10.1") | .severity + " " + .code' "$STATE/error.ndjson" | tr '\n' ' ')" = \
    "warning activity_buffer_high error activity_buffer_full " ]
  [ "$(activity --json | jq -r .agent_id)" = ann ]
  echo done >bob.go
  wait "$pid"
  got bob.out '.type == "task_result" and .payload.completion_status == "complete"'
  # Killed: the entry stays, and says so, until somebody looks.
  kill -9 "$ann"
  ends 137 wait "$ann"
  activity | grep -q 'ann .*no process'
  activity --reconcile >out
  [ "$(activity --all --agent ann --json | jq -r .outcome)" = lost ]
  # The next attempt of the agent does it, too, and the deadline row.
  rm -r ann.go ann.seen
  waits ann 1
  kill -9 "$pid"
  ends 137 wait "$pid"
  amp-ack sweep -s "$STATE" --now "$(date -ud '+6 min' +%FT%TZ)" >out
  [ "$(activity --all --agent ann --json | jq -r .outcome | sort -u)" = lost ]
  # A day later the history is empty.
  amp-ack sweep -s "$STATE" --now "$(date -ud '+26 hours' +%FT%TZ)" >out
  [ -z "$(activity --all --json)" ]
}

@test "a failed and a stopped attempt; purge is for people, and by task" {
  agent fails <<'EOS'
exit 3
EOS
  dispatch | run_agent --exec ./fails
  [ "$(activity --all --json | jq -r .outcome)" = failed ]
  waits bob 2
  kill -TERM "$pid"
  ends 130 wait "$pid"
  [ "$(activity --all --agent bob --json | jq -r .outcome)" = stopped ]
  AMP_AGENT=bob run -77 agent-handoff activity purge -s "$STATE" -a T-2026-002
  run -64 agent-handoff activity purge -s "$STATE" -a
  agent-handoff -q activity purge -s "$STATE" -a T-2026-002
  [ "$(activity --all --json | jq -r .task_id)" = T-2026-001 ]
}

@test "agents of a pool: each sees the others on its task or repository, and the entries end with the work" {
  load ../pools
  echo '{"queue":{"max_parallel":8},"activity":{"max":10}}' >amp.json
  builder <<'EOS'
cp "$AMP_ACTIVITY" "$marks/$AMP_AGENT_TYPE.seen"
await "$AMP_AGENT_TYPE.go"
EOS
  # One job in the repository, one about the same task, one about another.
  line() {
    local work="{\"task_id\":\"$2\",\"params\":{},\"scope\":$3}"
    printf '{"message_id":"%08d-0000-4000-8000-000000000000","producer_id":"cli","correlation_id":"00000000-0000-4000-8000-000000000001","sequence_number":%d,"retry_count":0,"message_type":"DATA","content_type":"application/json","content_length":%d,"payload":%s}\n' \
      "$1" "$1" ${#work} "$work" | task-queue submit --state "$STATE" --type "$4" >>submitted
  }
  line 1 T-1 "{\"repositories\":[\"$REPO\"],\"branches\":[\"feat/a\"]}" one
  pool_start --type one=1 --type two=1 --type three=1 -x ./agent
  started+=("$POOL")
  wait_until 20 test -e one.seen
  line 2 T-1 '"res-2"' two
  wait_until 20 test -e two.seen
  line 3 T-2 '"res-3"' three
  wait_until 20 test -e three.seen
  activity --json >list
  amp-validate -S "$AMP_TOP/schemas/records/activity.json" list | cmp - list
  jq -es 'all(.[]; .description != "")' list
  [ "$(jq -r '"\(.agent_id) \(.task_id) \(.branch)"' list | sort | paste -sd,)" = 'one-1 T-1 feat/a,three-1 T-2 ,two-1 T-1 ' ]
  [ "$(jq -r '.entries[].agent_id' one.seen two.seen three.seen)" = one-1 ]
  jq -e '.entries[0].agent_id == "one-1"' two.seen
  # What is used of the buffer is a metric.
  amp-ack sweep -s "$STATE" --config amp.json --metrics metrics >out
  [ "$(jq -r '.metrics[] | select(.name | startswith("activity.")) | "\(.name) \(.value)"' metrics | sort | paste -sd,)" = 'activity.entries 3,activity.fill_percent 30' ]
  touch one.go two.go three.go
  idle() { [ -z "$(activity --json)" ]; }
  wait_until 20 idle
  kill -TERM "$POOL"
  pool_end 130
  [ "$(activity --all --json | jq -r '"\(.agent_id) \(.outcome)"' | sort | paste -sd,)" = 'one-1 completed,three-1 completed,two-1 completed' ]
}
