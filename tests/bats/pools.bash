# Pools of agents: jobs for them, agents that behave and that do not, and what the log says about both.

# submit PRIORITY [TYPE]: a job for builders, or agents of another type; prints its id. Each has other contents, so that none is the job of another.
submit() {
  local id line work
  id=$(printf '%08x-0000-4000-8000-%012d' $((RANDOM * 32768 + RANDOM)) "$((${EPOCHREALTIME/[.,]/} % 1000000000000))")
  work="{\"task_id\":\"t-$id\",\"params\":{},\"scope\":[\"res-$id\"]}"
  line="{\"message_id\":\"$id\",\"producer_id\":\"cli\",\"correlation_id\":\"$id\",\"sequence_number\":${EPOCHREALTIME/[.,]/},"
  line+="\"retry_count\":0,\"message_type\":\"DATA\",\"content_type\":\"application/json\",\"content_length\":${#work},"
  line+="\"payload\":$work}"
  printf '%s\n' "$line" | submit_line "$@"
}
# submit_line PRIORITY [TYPE] <a message.
submit_line() {
  task-queue submit --state "$STATE" --type "${2:-builder}" --priority "$1" >submitted || {
    cat submitted >&2
    return 1
  }
  submitted_id
}
# submitted_id: the id of the job that was submitted last.
submitted_id() { [[ ! $(<submitted) =~ '"ok":true'.*'"id":"'([0-9a-f]*)'"' ]] || echo "${BASH_REMATCH[1]}"; }
# job_of ID: its line in the list.
job_of() {
  task-queue list --state "$STATE" --config "$(config)" --json | grep -F "\"id\":\"$1\""
}
state_of() { job_of "$1" | sed 's/^{"state":"\([A-Z]*\)".*/\1/'; }
is_state() { [ "$(state_of "$1")" = "$2" ]; }
code_of() { job_of "$1" | grep -o '"code":"[a-z_]*"' | cut -d'"' -f4; }

# config: a configuration for eight agents of a type; a test may have written another one.
config() {
  [ -e amp.json ] || echo '{"queue":{"max_parallel":8}}' >amp.json
  echo "$PWD/amp.json"
}

# pool ARGS...: a pool over the queue until it is drained; its lines in out.ndjson, its diagnostics in err.
pool() {
  timeout 120 task-queue work --state "$STATE" --config "$(config)" --pause 50ms "$@" >out.ndjson 2>err
}
# pool_start ARGS...: the same in the background; its id in POOL.
pool_start() {
  task-queue work --state "$STATE" --config "$(config)" --pause 50ms "$@" >out.ndjson 2>err 3>&- &
  POOL=$!
  wait_until 10 agents_ready
}
agents_ready() { grep -qs '"key":"agent\.[a-z]*-1".*"to":"RUNNABLE"' "$STATE"/log/*.ndjson; }
# For teardown: a failed test leaves its pool.
pool_kill() { [ -z "${POOL-}" ] || kill -9 "$POOL" 2>/dev/null || true; }
# pool_end STATUS: the pool ends, with this status, and leaves no process.
pool_end() {
  ends "$1" wait "$POOL"
  [ -z "$(attempts_left)" ]
}
# attempts_left: processes that have the environment of an attempt in this state.
attempts_left() {
  local f
  for f in $(grep -lzF "AMP_RESULT=$(realpath "$STATE")/run/" /proc/[0-9]*/environ 2>/dev/null); do
    f=${f%/environ}
    gone "${f#/proc/}" || echo "${f#/proc/}"
  done
}
# states AGENT: the states that it entered, in order, on one line.
states() {
  cat "$STATE"/log/*.ndjson | grep -F "\"key\":\"agent.$1\"" | sed -n 's/.*"to":"\([A-Z_]*\)".*/\1/p' | paste -sd' '
}

# builder <body: the agent of these tests: ./agent, with say LINE, answered ID and a place for marks.
builder() {
  { cat <<'EOS' && cat; } | agent agent
here=${AMP_CONTROL%/*}
marks=${0%/*}
say() { printf '%s\n' "$1" >"$AMP_CONTROL"; }
# nap SECONDS: without a process, since many agents wait at the same time.
nap() {
  [ -n "${never-}" ] || exec {never}<> <(:)
  read -rt "$1" -u "$never" || :
}
await_file() { until [ -e "$1" ]; do nap 0.02; done; }
answered() {
  await_file "$here/answer-$1.json"
  cat "$here/answer-$1.json"
}
mark() { echo "$AMP_ATTEMPT" >>"$marks/$1"; }
await() { await_file "$marks/$1"; }
# stop_asked: whether it is asked to stop at this safe point.
stop_asked() {
  points=$((${points-0} + 1))
  say "{\"type\":\"safe\",\"id\":\"s$points\"}"
  await_file "$here/answer-s$points.json"
  [[ $(<"$here/answer-s$points.json") == *'"stop":true'* ]]
}
# safe_points: works on, with safe points, until it is asked to stop.
safe_points() { until stop_asked; do nap 0.05; done; }
EOS
}
