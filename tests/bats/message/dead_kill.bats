#!/usr/bin/env bats
# slow
# kill -9 at any moment of requeue and purge: no letter is lost, none is sent again twice.

load ../lib
load ../messages
load ../letters

setup() {
  cd "$BATS_TEST_TMPDIR" || return
  export AMP_STATE=$PWD/state
}

# killed AFTER COMMAND...: runs it and kills it after so many thousandths of a second.
killed() {
  local after=$1 pid
  shift
  "$@" &
  pid=$!
  sleep "0.$(printf %03d "$after")"
  kill -KILL $pid 2>/dev/null || :
  wait $pid 2>/dev/null || :
}

@test "requeue: each message is written at least once, each letter closed by one commit" {
  dead 120
  for round in $(seq 25); do
    killed $((RANDOM % 30)) amp-ack dead requeue --every --out sent
  done
  touch sent
  amp-ack dead requeue --every --out sent
  # A line that a killed writer left half is no message; the whole ones are the originals.
  grep -x '{.*}' sent | sort -u >whole
  sort messages >want
  [ -z "$(comm -13 whole want)" ]
  [ -z "$(amp-ack dead list --json)" ]
  jq -c 'select(.event == "requeue" and ((.key // "") | startswith("dead."))) | .key' state/log/*.ndjson | sort |
    uniq -c >commits
  [ "$(awk '{print $1}' commits | sort -u)" = 1 ]
  [ "$(wc -l <commits)" -eq 120 ]
  # Nothing is open: another run writes nothing.
  [ -z "$(amp-ack dead requeue --every)" ]
}

@test "purge: what is gone was exported, what is not is there" {
  dead 120
  for round in $(seq 25); do
    killed $((RANDOM % 30)) amp-ack dead purge --limit 20 --raw --export "gone-$round"
  done
  amp-ack dead list --json | jq -r .id >left
  cat gone-* | grep -x '{.*}' | jq -r .id >gone
  jq -r .msg_id messages | sort >want
  sort -u left gone | cmp - want
  # Each was removed once.
  jq -c 'select(.event == "purge") | .key' state/log/*.ndjson | sort | uniq -d >twice
  [ ! -s twice ]
  run -0 amp-ack dead purge --every
  [ -z "$(amp-ack dead list --json)" ]
}
