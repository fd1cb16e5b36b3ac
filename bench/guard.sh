#!/bin/bash
# What the guard costs a ref update: git update-ref on a branch of one's own, without hooks, with an
# empty shell hook, and with the guard for a person and for an agent; then with 10,000 packed refs.
# Each update runs the hook twice (prepared, committed). Best of ROUNDS rounds of N updates.
set -euo pipefail
cd "$(dirname "$0")/.."
PATH=$PWD/build/bin:$PATH
export GIT_CONFIG_GLOBAL=/dev/null GIT_AUTHOR_NAME=b GIT_AUTHOR_EMAIL=b@x
export GIT_COMMITTER_NAME=b GIT_COMMITTER_EMAIL=b@x
unset AMP_AGENT AMP_STATE
n=${N:-200} rounds=${ROUNDS:-5}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
git init -q -b main "$work/r"
cd "$work/r"
git commit -q --allow-empty -m one
a=$(git rev-parse HEAD)
git commit -q --allow-empty -m two
b=$(git rev-parse HEAD)

# Best time of an update in microseconds.
updates() {
  local best=0 t0 t1 us i r
  for ((r = 0; r < rounds; r++)); do
    t0=$(date +%s%N)
    for ((i = 0; i < n; i += 2)); do
      git update-ref "$1" "$a"
      git update-ref "$1" "$b"
    done
    t1=$(date +%s%N)
    us=$(((t1 - t0) / n / 1000))
    if [ "$best" -eq 0 ] || [ "$us" -lt "$best" ]; then best=$us; fi
  done
  echo "$best"
}
row() {
  printf '%-44s %6d us  + %5d us\n' "$1" "$2" "$(($2 - none))"
}

none=$(updates refs/heads/work)
row "no hook" "$none"
printf '#!/bin/sh\n' >.git/hooks/reference-transaction
chmod +x .git/hooks/reference-transaction
row "an empty sh hook" "$(updates refs/heads/work)"
rm .git/hooks/reference-transaction
worktree-bind hooks install 2>/dev/null
row "guard, a person" "$(updates refs/heads/work)"
export AMP_AGENT=bench
row "guard, an agent on its own branch" "$(updates refs/heads/work)"
unset AMP_AGENT
for ((i = 0; i < 10000; i++)); do echo "create refs/tags/t$i $a"; done | git update-ref --stdin
git pack-refs --all
worktree-bind hooks uninstall
none=$(updates refs/heads/work)
row "no hook, 10,000 packed refs" "$none"
worktree-bind hooks install 2>/dev/null
export AMP_AGENT=bench
row "guard, an agent, 10,000 packed refs" "$(updates refs/heads/work)"
