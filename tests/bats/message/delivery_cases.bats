#!/usr/bin/env bats
# What the protocols say about delivery, case by case: tests/cases.
# plain

load ../lib

setup() {
  need jq
  need_tool amp-ack
  cases=$AMP_TOP/tests/cases
  cd "$BATS_TEST_TMPDIR" || return 1
}

# delivered FILE: the lines of all cases, time by time: what stands at one goes through track, then
# what is due is swept. Files are named KIND@GROUP@TIME.
delivered() {
  local group at now wanted options=() seen=()
  jq -n -R -c --arg file "$1.jsonl" -f "$cases/expand.jq" "$cases/$1.jsonl" >lines
  jq -r '"in@\(.group)@\(.time)\t\(.text // "")"' lines |
    awk -F'\t' '{ f = $1; sub(/^[^\t]*\t/, ""); if ($0 != "") print >f; else printf "" >f }'
  while IFS=$'\t' read -r group at now wanted; do
    read -ra options <<<"$wanted"
    amp-ack track --state "state.$group" --now "$now" <"in@$group@$at" >"out@$group@$at" 2>>err || [ $? -eq 1 ]
    amp-ack sweep --silence 0 --severity warning --state "state.$group" --now "$now" "${options[@]}" \
      >"swept@$group@$at" 2>>err
    amp-ack status --all --json --state "state.$group" >"status@$group@$at"
  done < <(jq -r '[.group, .time, .now, (.options | join(" "))] | @tsv' lines | uniq)
  for wanted in state.*; do
    amp-ack dead list --json --state "$wanted" >"dead@${wanted#state.}@0"
    [ ! -f "$wanted/error.ndjson" ] || cp "$wanted/error.ndjson" "error@${wanted#state.}@0"
  done
  seen=({out,swept,status,dead,error}@*)
  jq -n -R -c 'inputs | (input_filename | split("@")) as $f | {g: ($f[1] | tonumber), t: ($f[2] | tonumber),
    kind: $f[0], text: ., v: (fromjson? // null)}' "${seen[@]}" >seen
  jq -n -r --arg file "$1.jsonl" --slurpfile cases "$cases/$1.jsonl" --slurpfile lines lines -f "$cases/compare.jq" seen >faults
  [ ! -s faults ] || {
    echo "$(wc -l <faults) cases went otherwise:" >&2
    cat faults >&2
    return 1
  }
}

@test "delivery of SW4RM, AMP/1.0, AOP and the Runtime Protocol" { delivered delivery; }
