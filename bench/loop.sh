#!/bin/bash
# The throughput of the QA loop, signed and unsigned: TASKS tasks go through examples/qa-loop/loop.sh with an executor and a
# reviewer that do almost nothing, so that the tools' own work counts. Best of ROUNDS rounds; the two take turns. The agents
# are not confined.
set -euo pipefail
cd "$(dirname "$0")/.."
top=$PWD
PATH=$PWD/build/bin:$PATH
export GIT_CONFIG_GLOBAL=/dev/null GIT_AUTHOR_NAME=b GIT_AUTHOR_EMAIL=b@x AMP_CONFINE=off
export GIT_COMMITTER_NAME=b GIT_COMMITTER_EMAIL=b@x
unset AMP_AGENT AMP_STATE AMP_IDENTITY
tasks=${TASKS:-20} rounds=${ROUNDS:-5}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
# shellcheck disable=SC2016
printf '#!/bin/sh\necho "$AMP_TASK_ID" >"done-$AMP_SUBTASK_ID"\n' >executor
printf '#!/bin/sh\nexit 0\n' >reviewer
chmod +x executor reviewer
# loop.sh with a reviewer that answers by its exit status.
sed 's|task-dispatch review |task-dispatch review --verdict-by-exit |' "$top/examples/qa-loop/loop.sh" >loop.sh

# Milliseconds of one run; identities are $1.
run() {
  local t0 t1 i
  rm -rf repo state
  git init -q -b main repo
  git -C repo commit -q --allow-empty -m start
  for ((i = 1; i <= tasks; i++)); do
    task-dispatch new --print --id "$(printf 'T-2026-%03d' "$i")" -s state -C repo --branch "b/$i" --description d --criterion c
  done >tasks.ndjson 2>/dev/null
  t0=$(date +%s%N)
  AMP_IDENTITY=$1 EXECUTOR=$work/executor REVIEWER=$work/reviewer bash loop.sh "$work/state" <tasks.ndjson >/dev/null 2>log || {
    cat log >&2
    return 1
  }
  t1=$(date +%s%N)
  echo $(((t1 - t0) / 1000000))
}

off=0 local=0
for ((r = 0; r < rounds; r++)); do
  for what in off local; do
    ms=$(run "$what")
    if [ "${!what}" -eq 0 ] || [ "$ms" -lt "${!what}" ]; then printf -v "$what" %d "$ms"; fi
  done
done
awk -v n="$tasks" -v off="$off" -v on="$local" 'BEGIN {
  printf "%-32s %7.1f tasks/s\n", "unsigned (--identity off)", n * 1000 / off
  printf "%-32s %7.1f tasks/s\n", "signed (--identity local)", n * 1000 / on
  printf "%-32s %7.3f    at least 0.9\n", "signed / unsigned", off / on
  exit off / on < 0.9 }'
