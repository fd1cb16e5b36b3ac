#!/bin/bash
# The start of a confined command over bare fork and exec, at both levels: median, and the 5 %
# quantile as "best", of differences between starts that follow each other.
set -euo pipefail
cd "$(dirname "$0")/.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/worktree"
cc -O2 -std=gnu11 -Iinclude -Ilib -o "$work/bench" bench/confine.c build/lib/libamp.a -lpthread -lpcre2-8 -lsqlite3 \
  -ljansson -lsodium
AMP_LIBEXEC=$PWD/build/libexec/amp "$work/bench" "$work/worktree"
