#!/bin/bash
# task-dispatch loop with several agents against one: TASKS tasks whose executor works for 1 to 3 s and whose reviewer
# rejects once and works for 0.5 s, by one executor and one reviewer, and by four and two. The agents are not confined.
set -euo pipefail
cd "$(dirname "$0")/.."
PATH=$PWD/build/bin:$PATH
export GIT_CONFIG_GLOBAL=/dev/null GIT_AUTHOR_NAME=b GIT_AUTHOR_EMAIL=b@x AMP_CONFINE=off
export GIT_COMMITTER_NAME=b GIT_COMMITTER_EMAIL=b@x
unset AMP_AGENT AMP_STATE AMP_IDENTITY
tasks=${TASKS:-10}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
cat >executor <<'E2'
#!/bin/sh
n=${AMP_TASK_ID##*[!0-9]}
sleep "$((1 + ${n#00} % 3))"
echo "attempt $AMP_ATTEMPT" >>"done-$AMP_TASK_ID"
E2
cat >reviewer <<'E2'
#!/bin/sh
sleep 0.5
[ "$(wc -l <"done-$AMP_TASK_ID")" -gt 1 ]
E2
chmod +x executor reviewer

# Milliseconds of one run; the options are "$@".
run() {
  local t0 t1 i
  rm -rf repo
  git init -q -b main repo
  git -C repo commit -q --allow-empty -m start
  for ((i = 1; i <= tasks; i++)); do
    printf '# Task %s\nBranch: b/%s\n## Acceptance criteria\n- two attempts\n' "$i" "$i" >"$i.md"
  done
  t0=$(date +%s%N)
  (cd repo && task-dispatch loop -x ../executor -y ../reviewer --verdict-by-exit "$@" ../*.md) </dev/null 2>log || {
    cat log >&2
    return 1
  }
  t1=$(date +%s%N)
  [ "$(jq -r .state repo/.git/amp/tasks/*.json | grep -c '^done$')" -eq "$tasks" ]
  echo $(((t1 - t0) / 1000000))
}

one=$(run)
four=$(run -j 4 -J 2)
awk -v n="$tasks" -v one="$one" -v four="$four" 'BEGIN {
  printf "%-32s %7.1f s\n", "one executor, one reviewer", one / 1000
  printf "%-32s %7.1f s\n", "loop -j 4 -J 2", four / 1000
  printf "%-32s %7.3f    at most 0.4\n", "four / one", four / one
  exit four / one > 0.4 }'
