# Killing a filter at random moments. Load it in a bats file:
#
#   kill9_round MAX_MS COMMAND...   runs COMMAND; SIGKILL after a random time up to MAX_MS
#   kill9_lines                     passes the whole lines of stdin, drops a torn last one
#
# $kills counts how often the kill came before the command's own end; $KILL_ROUNDS (default 200) is
# how many rounds a test should make. The seed is printed: KILL_SEED=N repeats the moments.

KILL_ROUNDS=${KILL_ROUNDS:-200}
KILL_SEED=${KILL_SEED:-$RANDOM}
RANDOM=$KILL_SEED
kills=0

kill9_round() {
  local ms=$((RANDOM % $1 + 1)) rc=0
  shift
  # --foreground: otherwise timeout kills itself too, and what the command was about to write may
  # still come after this has returned. Helpers die with the tool.
  timeout --foreground -s KILL "$(printf '0.%03d' "$ms")" "$@" || rc=$?
  [ "$rc" -ne 137 ] || kills=$((kills + 1))
  return 0
}

kill9_lines() {
  jq -cR 'fromjson? // empty'
}
