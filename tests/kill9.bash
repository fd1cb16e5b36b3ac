# Killing a filter at random moments. Load it in a bats file:
#
#   during MAX_MS COMMAND...        runs COMMAND; SIGKILL after a random time up to MAX_MS, which grows on a busy machine
#   kill9_round MAX_MS COMMAND...   the same, counted; its status is 0
#   kill9_lines                     passes the whole lines of stdin, drops a torn last one
#
# $kills counts how often the kill came before the command's own end; $KILL_ROUNDS (default 80) is
# how many rounds a test should make. The seed is printed: KILL_SEED=N repeats the moments.

KILL_ROUNDS=${KILL_ROUNDS:-80}
KILL_SEED=${KILL_SEED:-$RANDOM}
RANDOM=$KILL_SEED
kills=0

during() {
  local ms
  # MAX_MS is for two busy processes on each processor, as in the complete test run.
  busy
  ms=$((RANDOM % ($1 * (busy > 200 ? busy : 200) / 200) + 1))
  # --foreground: otherwise timeout kills itself too, and what the command was about to write may
  # still come after this has returned. Helpers die with the tool.
  env timeout --foreground -s KILL "$(printf '%d.%03d' $((ms / 1000)) $((ms % 1000)))" "${@:2}"
}

kill9_round() {
  local rc=0
  during "$@" || rc=$?
  [ "$rc" -ne 137 ] || kills=$((kills + 1))
}

kill9_lines() {
  jq -cR 'fromjson? // empty'
}
