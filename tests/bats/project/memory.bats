# slow: each tool with each of its first allocations failing: it either does all its work without
# that memory, or ends by itself with 75.
# walls
load ../lib
load ../messages
load ../letters

N=${MEMORY_N:-120}
LAST=1000000

setup() {
  native "it needs the allocator of libc"
  cd "$BATS_TEST_TMPDIR"
}

# every_nth TOOL PREPARE COMMAND...: PREPARE makes the surroundings of one run from nothing in an
# empty directory ./run; the command reads ./in. Lines of output are compared by number. Of allocations
# with the same chain of callers the first fails. With LAST, only that many allocations fail, the last ones.
# There are thousands of runs: what the shell can do itself, it does without another process.
every_nth() {
  local tool=$1 prepare=$2 n status well want got lines runs=0 counted=() limit
  limit=$(patient 60)
  shift 2
  try() {
    [ "$prepare" = stateless ] || {
      rm -rf run
      "$prepare"
    }
    status=0
    FAILMALLOC_NTH=$1 FAILMALLOC_NAME=$tool FAILMALLOC_LOG=$PWD/count FAILMALLOC_SECONDS=$limit \
      LD_PRELOAD=$AMP_BUILD/tests/fault/failmalloc.so "${@:2}" <in >out 2>err || status=$?
    mapfile lines <out 2>/dev/null
    # Half a line is none.
    [ ${#lines[@]} -eq 0 ] || [[ ${lines[-1]} == *$'\n' ]] || unset 'lines[-1]'
    got=${#lines[@]}
  }
  : >count
  mkdir -p run
  FAILMALLOC_STACKS=1 try 0 "$@"
  [ "$status" -le 1 ] || [ "$status" -eq 75 ] || {
    echo "without a failure: status $status"
    cat err
    return 1
  }
  want=$got
  well=$status
  # How many there were, and the numbers of those that are tried.
  mapfile -t counted <count
  [ "${counted[0]}" -gt 0 ]
  for n in "${counted[@]:1}"; do
    [ "$n" -ge $((counted[0] - LAST)) ] || continue
    [ "$n" -le "$N" ] || break
    try "$n" "$@"
    runs=$((runs + 1))
    if [ "$status" -ne "$well" ] && [ "$status" -ne 75 ]; then
      echo "allocation $n: status $status: $*"
      cat err
      return 1
    fi
    if [ "$status" -ne 75 ] && [ "$got" -ne "$want" ]; then
      echo "allocation $n: status $status with $got lines of $want: $*"
      cat err
      return 1
    fi
  done
  echo "$tool: $runs of ${counted[0]} allocations"
  [ "$runs" -gt 0 ]
}

# A command that leaves nothing that the next run would find.
stateless() { :; }
nothing() { mkdir run; }

# A copy of what was made once.
prepared() { cp -R ready run; }

@test "the shim fails the calls that it is set to fail" {
  run -0 env FAILMALLOC_NTH=0 LD_PRELOAD="$AMP_BUILD/tests/fault/failmalloc.so" amp-validate --help
  run -75 env FAILMALLOC_NTH=1 FAILMALLOC_ON=1 LD_PRELOAD="$AMP_BUILD/tests/fault/failmalloc.so" \
    amp-validate --help
}

@test "amp-validate" {
  { message task_dispatch; message review_verdict; message task_result; } >in
  every_nth amp-validate stateless amp-validate
  { message task_dispatch '.payload.branch = "main"'; echo '{"a":'; } >in
  every_nth amp-validate stateless amp-validate -e errors.ndjson
}

@test "amp-route" {
  { message task_dispatch; message review_request; message escalation; } >in
  every_nth amp-route stateless amp-route -r 'to=executor => file:run/x' -r 'to=reviewer => stdout' \
    -r 'to=admin => stdout'
  every_nth amp-route stateless amp-route --agent executor=file:run/x --agent reviewer=stdout \
    -r '* => agents'
  every_nth amp-route nothing amp-route --state run/state -r 'to=executor => spool:run/x' \
    -r 'to=reviewer => stdout' -r 'to=admin => stdout'
}

@test "amp-ack" {
  { message task_dispatch; message review_request; } >in
  every_nth amp-ack nothing amp-ack track --state run/state
  every_nth amp-ack nothing amp-ack send --state run/state
  : >in
  every_nth amp-ack nothing amp-ack sweep --state run/state
}

@test "amp-top" {
  message task_dispatch | amp-route -s ready -r '* => inbox:executor'
  : >in
  # The lists are read and printed after SQLite's allocations.
  local N=5000 LAST=150
  every_nth amp-top stateless amp-top --once --state ready
}

@test "amp-ack complete" {
  message task_dispatch | amp-ack track --state ready >/dev/null
  local N=5000 LAST=400 data='{"subtask_id":"T-2026-044-S1","diff_summary":{"files_changed":[],"lines_added":0,"lines_removed":0}}'
  : >in
  every_nth amp-ack prepared amp-ack complete task_dispatch --state run --as executor/ada --text x --data "$data"
}

@test "amp-ack dead" {
  AMP_STATE=ready dead 3
  : >in
  # Letters are read and frames are written after SQLite's allocations.
  local N=5000 LAST=150
  every_nth amp-ack prepared amp-ack dead export --every --bundle run/bundle --state run
  every_nth amp-ack prepared amp-ack dead requeue --every --state run
  LAST=5000
  every_nth amp-ack prepared amp-ack audit --state run --verify
  echo '{"time":"2026-11-22T10:00:00.000Z","tool":"a","from":"executor","code":"bad_sender","message":"m"}' >ready/error.ndjson
  every_nth amp-ack prepared amp-ack audit --state run --format ndjson
}

@test "task-dispatch" {
  : >in
  repo repo
  every_nth task-dispatch nothing task-dispatch new --state run/state --description d --repo repo \
    --branch fix/x --subtask s --criterion c
  every_nth task-dispatch nothing task-dispatch new --print --state run/state --description d --repo repo \
    --branch fix/x --subtask s --criterion c
}

new_task_in() {
  message task_dispatch '.from = "admin" | .to = "coordinator" | .msg_id = "task_dispatch-T-2026-044-1"' >in
}

@test "task-dispatch coordinate" {
  new_task_in
  every_nth task-dispatch nothing task-dispatch coordinate --state run/state
}

@test "aof-board" {
  load ../aof
  local D=$PWD/ready/data T=TASK-2026-02-09
  task in-progress $T-001 "lease: {agent: ann}" "routing: {agent: ann}"
  task ready $T-002
  task in-progress $T-003 "lease: {agent: ann}"
  beat $T-003 2026-01-01T00:05:00.000Z
  { request $T-002 $T-001 ann bob; report $T-001 ann done; update $T-002 bob '"progress":"half"'; } >in
  every_nth aof-board prepared aof-board --data-dir run/data --ask
  : >in
  every_nth aof-board prepared aof-board poll --data-dir run/data --unconfined --agent bob --exec true
}

@test "signed: task-dispatch coordinate, verify and export" {
  unset AMP_IDENTITY
  # Each run makes keys or starts helpers; the other allocations are those of the tests without signatures.
  local N=$((N / 2))
  new_task_in
  every_nth task-dispatch nothing task-dispatch coordinate --state run/state
  repo work
  printf '#!/bin/sh\necho done >"done"\n' >executor
  printf '#!/bin/sh\nexit 0\n' >reviewer
  chmod +x executor reviewer
  sed 's|task-dispatch review |task-dispatch review --verdict-by-exit |' "$AMP_TOP/examples/qa-loop/loop.sh" >loop.sh
  task-dispatch new --print --state "$PWD/ready/state" --repo work --branch b/x --description d --criterion c |
    EXECUTOR=$PWD/executor REVIEWER=$PWD/reviewer timeout 60 bash loop.sh "$PWD/ready/state" >log 2>&1
  : >in
  every_nth task-dispatch prepared task-dispatch export --state run/state --repo work b/x
  task-dispatch export --state ready/state --repo work b/x >bundle
  every_nth task-dispatch prepared task-dispatch verify --bundle bundle --allowed-signers run/state/keys/allowed_signers
}

@test "hitl-prompt" {
  message escalation >in
  echo resume >answers
  echo '{"hitl":{"allow_operator":true}}' >amp.json
  # The operator is named, for the C library's own look-up of a user does not survive this.
  every_nth hitl-prompt nothing hitl-prompt --state run/state --answer answers --operator ann --config amp.json
}

@test "amp-mcp" {
  agent-registry register ann --state ready --connector ci:ann >/dev/null
  {
    echo '{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{}}}'
    echo '{"jsonrpc":"2.0","id":2,"method":"tools/list"}'
    echo '{"jsonrpc":"2.0","id":3,"method":"resources/templates/list"}'
  } >in
  every_nth amp-mcp prepared amp-mcp --state run --agent ann
}

@test "amp-sign" {
  message task_dispatch >in
  amp-sign keygen key >/dev/null
  amp-sign trust add --allowed-signers signers admin,coordinator key.pub
  # A time of its own in each run: lines are compared by number.
  every_nth amp-sign stateless amp-sign --key key
  amp-sign --key key <in >signed
  mv signed in
  every_nth amp-sign stateless amp-sign verify --allowed-signers signers
  every_nth amp-sign stateless amp-sign token make --key key --issuer admin ann key.pub
  amp-sign token make --key key --issuer admin ann key.pub >in
  every_nth amp-sign stateless amp-sign token check --allowed-signers signers
}

@test "worktree-bind" {
  : >in
  repo ready/repo
  every_nth worktree-bind prepared worktree-bind bind -C run/repo --branch feat/x ann
  every_nth worktree-bind stateless worktree-bind list -C ready/repo
  every_nth worktree-bind prepared worktree-bind hooks install -C run/repo
  # A machine that cannot confine has nothing to try.
  ! worktree-bind exec -C ready/repo -- true || every_nth worktree-bind stateless worktree-bind exec -C ready/repo -- echo x
}

@test "hitl-prompt hook: what is denied is never allowed" {
  echo '{"hitl":{"hook":{"rules":[{"decision":"allow","tool":"Bash"},{"decision":"deny","command":"git push *"},
    {"decision":"deny","path":".env"}]}}}' >amp.json
  chmod 600 amp.json
  mkdir work
  printf '{"session_id":"s","cwd":"%s/work","permission_mode":"default","hook_event_name":"PreToolUse","tool_name":"Bash","tool_input":{"command":"ls && sh -c \\"git push\\"; cat .env"}}' "$PWD" >in
  cat >blocks <<'SH'
status=0
said=$(hitl-prompt hook -c amp.json) || status=$?
case $status:$said in
0:*'"permissionDecision":"deny"'*) echo blocked ;;
2:) exit 75 ;;
*) exit 99 ;;
esac
SH
  every_nth hitl-prompt stateless bash blocks
}
