#!/bin/bash
# What binding an agent to a new worktree costs, against git worktree add on the same repository.
# FILES files of 4 KiB; the best of ROUNDS rounds each, in turns. Nothing is removed before the end:
# ext4 searches longer for a free inode where files were removed lately.
set -euo pipefail
cd "$(dirname "$0")/.."
PATH=$PWD/build/bin:$PATH
export GIT_CONFIG_GLOBAL=/dev/null GIT_AUTHOR_NAME=b GIT_AUTHOR_EMAIL=b@x
export GIT_COMMITTER_NAME=b GIT_COMMITTER_EMAIL=b@x
unset AMP_AGENT AMP_STATE
rounds=${ROUNDS:-7}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# Microseconds of a command.
took() {
  local t0 t1
  t0=$(date +%s%N)
  "$@" >/dev/null 2>&1
  t1=$(date +%s%N)
  echo $(((t1 - t0) / 1000))
}
less() { if [ "$1" -eq 0 ] || [ "$2" -lt "$1" ]; then echo "$2"; else echo "$1"; fi; }

for files in ${FILES:-10 1000 10000}; do
  git init -q -b main "$work/$files"
  cd "$work/$files"
  for ((i = 0; i < files; i++)); do
    dir=d$((i / 100))
    [ -d $dir ] || mkdir $dir
    printf '%4096d' "$i" >"$dir/f$i"
  done
  git add -A
  git commit -qm files
  git=0 ours=0
  for ((r = 0; r <= rounds; r++)); do
    g=$(took git worktree add -q -b "g$r" "../$files.worktrees/g$r" main)
    o=$(took worktree-bind bind "a$r" -b "b$r" --base main)
    # The first round warms up: the state directory is made.
    [ "$r" -eq 0 ] || { git=$(less $git "$g") && ours=$(less $ours "$o"); }
  done
  printf '%6d files: git worktree add %7d us, worktree-bind bind %7d us: %d.%02d times\n' "$files" \
    "$git" "$ours" $((ours / git)) $((ours * 100 / git % 100))
  cd "$OLDPWD"
done
