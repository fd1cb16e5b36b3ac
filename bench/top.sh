#!/bin/bash
# What a key costs in amp-top with many open messages: CPU time of a frame on a terminal of 200x60, in tmux.
# usage: bench/top.sh [MESSAGES] (100000)
set -eu
command -v tmux >/dev/null || {
  echo "tmux is not installed"
  exit 0
}

top=$(cd "$(dirname "$0")/.." && pwd)
export PATH=$top/build/bin:$PATH AMP_IDENTITY=off LC_ALL=C.UTF-8
messages=${1:-100000} keys=20
dir=$(mktemp -d)
trap 'tmux -S "$dir/tmux" kill-server 2>/dev/null || :; rm -rf "$dir"' EXIT

amp-validate --example task_dispatch | jq -c --argjson n "$messages" 'range($n) as $i | .task_id = "T-2026-\($i % 900 + 100)" |
  .msg_id = "task_dispatch-\(.task_id)-\($i)" | .requires_ack = true' | amp-ack track --state "$dir/state" >/dev/null

tmux -S "$dir/tmux" -f /dev/null new-session -d -x 200 -y 60 -s top "exec amp-top -s '$dir/state' --show messages"
pid=$(tmux -S "$dir/tmux" list-panes -t top -F '#{pane_pid}')
until tmux -S "$dir/tmux" capture-pane -p -t top | grep -q "6 Messages"; do sleep 0.1; done
[ "$(<"/proc/$pid/comm")" = amp-top ]

# Microseconds that it ran on a processor.
used() { awk '{ printf "%d\n", $1 / 1000 }' "/proc/$pid/schedstat"; }
echo "start: $(($(used) / 1000)) ms"
for key in Down PageDown "G g"; do
  before=$(used) sent=0
  for ((i = 0; i < keys; i++)); do
    for k in $key; do
      tmux -S "$dir/tmux" send-keys -t top "$k"
      sent=$((sent + 1))
      sleep 0.05
    done
  done
  sleep 0.3
  echo "$key: $((($(used) - before) / sent)) us per key, $messages messages"
done
