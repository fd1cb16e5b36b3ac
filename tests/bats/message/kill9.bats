#!/usr/bin/env bats
# kill -9 at random moments: what left a tool is in its ledger, what it took is delivered, a spool
# file appears once.
# slow

load ../lib
load ../messages
load ../../kill9

setup() {
  cd "$BATS_TEST_TMPDIR"
  export AMP_STATE=$PWD/state
}

# lines N: a file in.N of messages with ids of that round.
lines() {
  sed "s/@ROUND@/$1/" template >"in.$1"
}

template() {
  message task_dispatch ".payload.description = (\"x\" * ${2:-400}) | .msg_id = \"task_dispatch-T-2026-044-@ROUND@\"" |
    awk -v n="$1" '{ for (i = 0; i < n; i++) { l = $0; sub(/@ROUND@/, "@ROUND@" sprintf("%06d", i), l); print l } }' >template
}

ids() { grep -oh 'task_dispatch-T-2026-044-[0-9]*' "$@" | sort -u; }

# rounds MAX_MS START CHECK ENOUGH: START n until KILL_ROUNDS of them were killed before their end
# and ENOUGH is true, a check after every fortieth. A busy machine does not come as far in the same
# time: there the last rounds have ever more of it.
rounds() {
  local n=0 max=$1
  while ((n < 5 * KILL_ROUNDS)); do
    if ((kills >= KILL_ROUNDS)); then
      "$3" "$n"
      ! "$4" || break
      ((max > 10000)) || max=$((2 * max))
    fi
    n=$((n + 1))
    "$2" "$n" "$max"
    ((n % 40)) || "$3" "$n"
  done
  "$3" "$n"
  echo "# $n rounds, $kills killed before their end (KILL_SEED=$KILL_SEED)" >&3
  ((kills >= KILL_ROUNDS))
}

track_start() {
  lines "$1"
  kill9_round "$2" amp-ack track <"in.$1" >"out.$1" 2>>said
}

track_check() {
  # Only whole lines count as passed on; what a round passed is read once.
  for f in out.*; do [ ! -e "$f" ] || sed -n '/}$/p' "$f"; done | { ids || true; } >>left
  rm -f out.*
  sort -u -o left left
  amp-ack status --all --json | jq -r .msg_id | sort >known
  comm -23 left known >lost
  [ ! -s lost ] || {
    echo "after round $1 the ledger lacks $(wc -l <lost) that had passed" >&2
    return 1
  }
}

track_enough() { [ "$(ids left | wc -l)" -gt 500 ]; }

@test "amp-ack track: what passed is in the ledger" {
  need_tool amp-ack
  template 600
  rounds 25 track_start track_check track_enough
  # The log is whole and takes more.
  run -0 amp-ack track <in.1
  track_enough
}

route_start() {
  lines "$1"
  # The sender repeats what it does not know to have arrived.
  [ "$1" -eq 1 ] || head -n 10 "in.$(($1 - 1))" >>"in.$1"
  kill9_round "$2" amp-route --state state -r 'to=executor => spool:box' <"in.$1" >>answers 2>>said
}

# A consumer: takes what is new, finishes half of it; a name must never come back.
route_check() {
  ls box/new >new 2>/dev/null || return 0
  sort new | comm -12 - <(sort seen) >again
  [ ! -s again ] || {
    echo "after round $1 came again: $(head -n 3 again)" >&2
    return 1
  }
  cat new >>seen
  # Whole, each one: with what comes behind half a line it is none of those that were sent.
  (cd box/new && xargs -r cat) <new >>got
  (cd box/new && xargs -r mv -t ../cur) <new
  head -n $(($(wc -l <new) / 2)) new | (cd box/cur && xargs -r mv -t ../done)
}

route_enough() {
  cat state/log/*.ndjson | jq -Rr 'fromjson? | select(.out) | .out[].id' | sort -u >taken
  [ "$(wc -l <taken)" -gt 200 ]
}

@test "amp-route to a spool: nothing lost, nothing twice" {
  need_tool amp-route
  template 30
  : >seen
  : >got
  rounds 40 route_start route_check route_enough
  # What a killed router took is delivered by the next.
  amp-route --state state -r 'to=executor => spool:box' </dev/null
  route_check end
  route_enough
  ids got >delivered
  comm -23 taken delivered >lost
  [ ! -s lost ]
  # Byte for byte one of the lines that went in, and no name twice.
  sort -u in.* >sent
  [ "$(sort got | comm -23 - sent | wc -l)" -eq 0 ]
  [ "$(sort seen | uniq -d | wc -l)" -eq 0 ]
}
