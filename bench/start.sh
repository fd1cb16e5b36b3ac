#!/bin/bash
# How long the start of an agent takes beside fork and exec of the same command by a small program, and
# what a job costs that does nothing. Pools of an older or other build take part with BINS="DIR DIR2":
# their build/bin. Everything takes turns in each of ROUNDS rounds of JOBS jobs; the figures are medians
# of the rounds' medians, in microseconds:
#
#   claim-sync   from the frame of the claim to the end of its sync
#   sync-agent   from there to the first instruction of the agent's command
#   start        both, without the time of the sync itself (sync): what the bare start is compared with
#   bare         fork and exec of the same command, to its first instruction
#   job          from one end to the next: the claim, the agent's process, its answer, the end
#
# Places: no worktree; a worktree that the agent keeps; a new one for each branch. Not confined.
# In memory (/dev/shm) and on BENCH_DIR.
set -euo pipefail
cd "$(dirname "$0")/.."
export AMP_CONFINE=off AMP_IDENTITY=off
rounds=${ROUNDS:-5} jobs=${JOBS:-60}
unset AMP_STATE
disk=$(mktemp -d "${BENCH_DIR:-/var/tmp}/amp-start-XXXXXX")
memory=$(mktemp -d "/dev/shm/amp-start-XXXXXX")
trap 'rm -rf "$disk" "$memory"' EXIT
cc=${CC:-cc}
"$cc" -O2 -std=gnu11 -D_GNU_SOURCE -DPROBE -shared -fPIC -o "$disk/probe.so" bench/start.c -ldl
"$cc" -O2 -std=gnu11 -D_GNU_SOURCE -DAGENT -static -o "$disk/agent" bench/start.c
"$cc" -O2 -std=gnu11 -D_GNU_SOURCE -o "$disk/bare" bench/start.c
git -c init.defaultBranch=main init -q "$disk/repo"
git -C "$disk/repo" -c user.name=a -c user.email=a@b commit -q --allow-empty -m 'Begin'
export MARKS=$disk/marks

# submissions WHERE: JOBS lines
submissions() {
  local i id work scope
  for ((i = 0; i < jobs; i++)); do
    case $1 in
    none) scope="\"job-$i\"" ;;
    kept) scope="{\"repositories\":[\"$disk/repo\"],\"branches\":[\"work/kept\"]}" ;;
    new) scope="{\"repositories\":[\"$disk/repo\"],\"branches\":[\"work/$2-$i\"]}" ;;
    esac
    id=$(printf '%08x-0000-4000-8000-%012d' "$RANDOM" "$i")
    work="{\"task_id\":\"t-$i\",\"params\":{},\"scope\":$scope}"
    printf '{"message_id":"%s","producer_id":"cli","correlation_id":"%s","sequence_number":%d,"retry_count":0,"message_type":"DATA","content_type":"application/json","content_length":%d,"payload":%s}\n' \
      "$id" "$id" "$i" "${#work}" "$work"
  done
}
middle() { sort -g | awk '{ v[NR] = $1 } END { if (NR) print v[int((NR + 1) / 2)]; else print "-" }'; }

# pool BIN DIR WHERE ROUND: a line of medians
pool() {
  rm -rf "$2/state"
  mkdir -m 700 "$2/state"
  submissions "$3" "$4" | "$1/task-queue" submit --state "$2/state" --type builder >/dev/null
  : >"$MARKS"
  LD_PRELOAD=$disk/probe.so "$1/task-queue" work --state "$2/state" --type builder=1 --drain \
    -x "$disk/agent" >/dev/null 2>"$disk/err" || {
    cat "$disk/err" >&2
    return 1
  }
  awk '$1 == "claim" { claim = $2; n++ } $1 == "sync" { began = $2 } $1 == "synced" { if (claim && !synced) { synced = $2; sync = $2 - began } }
    $1 == "agent" && claim { print (synced - claim) / 1e3, ($2 - synced) / 1e3, sync / 1e3 > "/dev/stderr"; claim = synced = 0 }
    $1 == "done" { if (was) print ($2 - was) / 1e3; was = $2 }' "$MARKS" >"$disk/job" 2>"$disk/start"
  echo "$(cut -d' ' -f1 "$disk/start" | middle) $(cut -d' ' -f2 "$disk/start" | middle) $(cut -d' ' -f3 "$disk/start" | middle)" \
    "$(awk '{ print $1 + $2 - $3 }' "$disk/start" | middle) $(middle <"$disk/job")"
}
bare() {
  : >"$MARKS"
  "$disk/bare" "$jobs" "$disk/agent"
  awk '$1 == "fork" { at = $2 } $1 == "agent" { print ($2 - at) / 1e3 }' "$MARKS" | middle
}

bins=${BINS:-$PWD/build/bin}
for ((r = 0; r < rounds; r++)); do
  for dir in "$memory" "$disk"; do
    for where in none kept new; do
      for bin in $bins; do
        echo "$([ "$dir" = "$disk" ] && echo disk || echo memory) $where $bin $(pool "$bin" "$dir" "$where" "$r") $(bare)"
      done
    done
  done
done >"$disk/rounds"
printf '%-8s %-9s %11s %11s %7s %9s %7s %12s %8s\n' state worktree claim-sync sync-agent sync start bare start-bare job
for bin in $bins; do
  [ "$bins" = "$bin" ] || echo "$bin"
  for dir in memory disk; do
    for where in none kept new; do
      awk -v d=$dir -v w=$where -v b="$bin" '$1 == d && $2 == w && $3 == b' "$disk/rounds" >"$disk/these"
      of() { awk -v c="$1" '{ print $c }' "$disk/these" | middle; }
      printf '%-8s %-9s %11.0f %11.0f %7.0f %9.0f %7.0f %12.0f %8.0f\n' $dir $where "$(of 4)" "$(of 5)" "$(of 6)" \
        "$(of 7)" "$(of 9)" "$(awk '{ print $7 - $9 }' "$disk/these" | middle)" "$(of 8)"
    done
  done
done
