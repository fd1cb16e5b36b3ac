#!/bin/bash
# A QA loop from pipes and FIFOs. Copy it and put your own commands in.
#   loop.sh STATE <tasks.ndjson          (AMP_ANSWER=FILE answers escalations from a file)
# It exits with 0 when every task has ended. If a task still waits for a decision, it exits with 75
# and prints the task; "loop.sh STATE </dev/null" asks again and continues.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
export AMP_STATE=${1:?usage: loop.sh STATE <tasks.ndjson}
: "${EXECUTOR:=$here/executor.sh}" "${REVIEWER:=$here/reviewer.sh}"
# The agents are confined (worktree-bind-exec(1)). POLICY, or EXECUTOR_POLICY and REVIEWER_POLICY, name
# files that grant what they need besides.
executor=() reviewer=()
[ -z "${EXECUTOR_POLICY:=${POLICY-}}" ] || executor=(--policy "$EXECUTOR_POLICY")
[ -z "${REVIEWER_POLICY:=${POLICY-}}" ] || reviewer=(--policy "$REVIEWER_POLICY")

fifos=$(mktemp -d)
trap 'rm -rf "$fifos"' EXIT
trap 'trap - INT TERM; kill 0' INT TERM
mkfifo "$fifos"/{executor,reviewer,admin}
inputs=()
for role in executor reviewer admin system; do
  mkfifo "$fifos/from-$role" "$fifos/shown-$role"
  amp-ack show --quiet --in "$fifos/from-$role" --out "$fifos/shown-$role" &
  inputs+=(--in "$role=$fifos/shown-$role")
done

# Each worker reads its own FIFO and writes to its own, from which the coordinator takes only what
# that role may say.
task-dispatch run ${executor[@]+"${executor[@]}"} --progress never --in "$fifos/executor" --out "$fifos/from-executor" --exec "$EXECUTOR" &
task-dispatch review ${reviewer[@]+"${reviewer[@]}"} --progress never --in "$fifos/reviewer" --out "$fifos/from-reviewer" --exec "$REVIEWER" &
hitl-prompt ${AMP_ANSWER:+--answer "$AMP_ANSWER"} --in "$fifos/admin" --out "$fifos/from-admin" &

# The coordinator owns the cycle: tasks arrive through the pipe, answers through the FIFOs. Refusals
# of undeliverable messages also go to it, and from it to the admin.
status=0
task-dispatch coordinate --until-done --in - "${inputs[@]}" |
  amp-ack show --quiet |
  amp-ack track |
  amp-route --out "$fifos/from-system" \
    -r "to=executor => fifo:$fifos/executor" \
    -r "to=reviewer => fifo:$fifos/reviewer" \
    -r "to=admin => fifo:$fifos/admin" ||
  status=$?
# A worker that did not start leaves its FIFO without a writer; opening and closing it ends what reads it.
for role in executor reviewer admin system; do : <>"$fifos/from-$role"; done
wait
exit "$status"
