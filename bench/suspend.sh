#!/bin/bash
# The emergency stop: from the start of `hitl-prompt suspend --all` until no process of the agents runs any more, and
# from the start of `resume --all` until an agent works again. With N=5 agents that end at TERM, with N that ignore it
# and have a child in a session of its own, and with N confined ones; then again while the state has MESSAGES=30000
# messages.
set -euo pipefail
cd "$(dirname "$0")/.."
PATH=$PWD/build/bin:$PATH
export GIT_CONFIG_GLOBAL=/dev/null GIT_AUTHOR_NAME=b GIT_AUTHOR_EMAIL=b@x
export GIT_COMMITTER_NAME=b GIT_COMMITTER_EMAIL=b@x AMP_IDENTITY=off
unset AMP_AGENT AMP_STATE
n=${N:-5} messages=${MESSAGES:-30000} first=100
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
git init -q -b main "$work/r"
git -C "$work/r" commit -q --allow-empty -m one

cat >"$work/gentle" <<'A'
#!/bin/bash
echo $$ >"$PWD/pid"
exec sleep 1000
A
cat >"$work/stubborn" <<'A'
#!/bin/bash
trap '' TERM
setsid bash -c 'trap "" TERM; while :; do sleep 1000; done' &
echo $$ >"$PWD/pid"
while :; do sleep 1000; done
A
chmod +x "$work/gentle" "$work/stubborn"

dispatch() {
  printf '{"msg_id":"task_dispatch-T-2026-%03d-%s","protocol_version":"AMP/1.0","type":"task_dispatch","from":"coordinator","to":"executor","task_id":"T-2026-%03d","timestamp":"2026-02-26T14:32:07+00:00","requires_ack":true,"payload":{"description":"d","repo":"%s","branch":"feat/%s","subtasks":[{"subtask_id":"T-2026-%03d-S1","description":"d","estimated_lines":1}],"acceptance_criteria":["c"],"risk_level":"low","forbidden_actions":[]}}\n' \
    "$1" "$1" "$1" "$work/r" "$2" "$1"
}

begun() {
  local i
  for ((i = 1; i <= n; i++)); do
    until [ -s "$work/r.worktrees/$1-$i/pid" ]; do sleep 0.01; done
  done
}

# measure NAME COMMAND OPTIONS...: N agents of the state.
measure() {
  local name=$1 command=$2 i fd t0 t1 t2 pids=()
  first=$((first + 20))
  shift 2
  for ((i = 1; i <= n; i++)); do
    mkfifo "$work/$name-$i.in"
    exec {fd}<>"$work/$name-$i.in"
    task-dispatch run --state "$work/state" --agent "$name-$i" --grace 60s --in "$work/$name-$i.in" "$@" --exec "$work/$command" >/dev/null 2>&1 &
    pids+=($!)
    dispatch $((first + i)) "$name-$i" >&"$fd"
  done
  begun "$name"
  rm "$work"/r.worktrees/"$name"-*/pid
  t0=$(date +%s%N)
  hitl-prompt suspend --state "$work/state" --all 2>/dev/null
  t1=$(date +%s%N)
  hitl-prompt resume --state "$work/state" --all 2>/dev/null
  begun "$name"
  t2=$(date +%s%N)
  printf '%-12s %2d agents: stopped after %4d ms, working again after %4d ms\n' "$name" "$n" $(((t1 - t0) / 1000000)) $(((t2 - t1) / 1000000))
  kill "${pids[@]}"
  hitl-prompt suspend --state "$work/state" --all 2>/dev/null
  wait "${pids[@]}" || true
  hitl-prompt resume --state "$work/state" --all 2>/dev/null
}

measure gentle gentle --unconfined
measure stubborn stubborn --unconfined
measure confined stubborn --best-effort
dispatch 999 m | awk -v n="$messages" '{ for (i = 1; i <= n; i++) { s = $0; sub("dispatch-T-2026-999-999", "dispatch-T-2026-999-" i, s); print s } }' |
  amp-ack track --state "$work/state" >/dev/null 2>&1
echo "with $messages messages in the state:"
measure gentle2 gentle --unconfined
measure stubborn2 stubborn --unconfined
