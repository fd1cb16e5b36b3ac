#!/bin/bash
# The queue beside other queues on the same work: N no-op jobs, put by one process and done by one
# worker. What runs a command for each job: task-spooler, nq, and a pool with one agent. What starts
# no process: BullMQ with redis-server (appendfsync always and everysec), beanstalkd (-f0: a sync for
# each write), and claims by a program that links libamp.a. A peer that is missing is left out, and
# the first lines say how to install it. PEERS="amp bean" measures only these.
#
# A job is done when its number is in a list that the job itself writes; so what is lost or done twice
# is counted from two lists, that one and the list of acknowledged puts. Times are of the monotonic
# clock.
#
#   jobs/s   N jobs, from the first put to the last job; the puts one by one, and in batches of 16
#   latency  from the put to the job, one at a time; median and 99th percentile
#   kill -9  of the worker, and of the server, KILLS times while jobs are put and done; what was killed
#            starts again. lost: acknowledged, and not done 10 s after the last one was. twice: done
#            more than once. Without a server it is the process that puts, or, of nq, all of its processes.
set -euo pipefail
cd "$(dirname "$0")/.."
PATH=$PWD/build/bin:$PATH
export BENCH_NPM=${BENCH_NPM:-$PWD/build/bench-npm} AMP_CONFINE=off AMP_IDENTITY=off
rounds=${ROUNDS:-3} n=${N:-1000} slow_n=${SLOW_N:-200} kills=${KILLS:-5}
work=$(mktemp -d "${BENCH_DIR:-/var/tmp}/amp-peers-XXXXXX")
here=$PWD
unset AMP_STATE
"${CC:-cc}" -O2 -std=gnu11 -D_GNU_SOURCE -Iinclude -Ilib -o "$work/peers" bench/peers.c \
  build/lib/libamp.a -lsqlite3 -lsodium -ljansson -lpcre2-8 -lm
"${CC:-cc}" -O2 -std=gnu11 -D_GNU_SOURCE -static -o "$work/mark" bench/mark.c
d=$work/d # of one measurement: lists, data, sockets
server='' worker=''

# ---- the queues: NAME_server, NAME_work BATCH, NAME_put FROM TO PAUSE BATCH; each runs in the foreground

redis_run() { exec redis-server --port 0 --unixsocket "$d/s" --dir "$d/data" --save '' --appendonly yes --appendfsync "$1" --daemonize no; }
redis_up() { redis-cli -s "$d/s" ping 2>&1 | grep -q PONG; }
always_server() { redis_run always; }
always_work() { exec node "$here/bench/npm/bullmq.cjs" work "$d/done" "$1" "$d/s"; }
always_put() { exec node "$here/bench/npm/bullmq.cjs" put "$d/acked" "$@" "$d/s"; }
always_up() { redis_up; }
everysec_server() { redis_run everysec; }
everysec_work() { always_work "$@"; }
everysec_put() { always_put "$@"; }
everysec_up() { redis_up; }

bean_server() { exec beanstalkd -b "$d/data" -f0 -l "unix:$d/s"; }
bean_work() { exec "$work/peers" bean-work "$d/done" "$d/s"; }
bean_put() { exec "$work/peers" bean-put "$d/acked" "$@" "$d/s"; }
bean_up() { [ -S "$d/s" ]; }

amp_work() { exec "$work/peers" amp-work "$d/done" "$1" "$d/data"; }
amp_put() { exec "$work/peers" amp-put "$d/acked" "$@" "$d/data"; }

pool_work() { exec task-queue work --state "$d/data" --type builder=1 --name bench -x "$work/mark" "$d/done"; }
pool_put() { amp_put "$@"; }

spooler_put() { TS_SOCKET=$d/s TMPDIR=$d/data exec "$work/peers" exec-put "$d/acked" "$1" "$2" "$3" "$tsp" -n "$work/mark" "$d/done" >>"$d/log" 2>&1; }
spooler_pids() { holders "TS_SOCKET=$d/s" "$(basename "$(realpath "$(command -v "$tsp")")")"; }
nq_put() { NQDIR=$d/data exec "$work/peers" exec-put "$d/acked" "$1" "$2" "$3" nq -q "$work/mark" "$d/done" >>"$d/log" 2>&1; }
nq_pids() { holders "NQDIR=$d/data" nq; }

# holders VARIABLE=VALUE NAME: the processes of that name with this in their environment.
holders() {
  local f
  for f in $(grep -lzxF "$1" /proc/[0-9]*/environ 2>/dev/null); do
    f=${f%/environ}
    [ "$(cat "$f/comm" 2>/dev/null)" != "$2" ] || echo "${f#/proc/}"
  done
}

# ---- one measurement

server_start() {
  [ "$(type -t "$1_server")" = function ] || return 0
  "$1_server" >>"$d/log" 2>&1 &
  server=$!
  until "$1_up"; do sleep 0.02; done
}
worker_start() {
  [ "$(type -t "$1_work")" = function ] || return 0
  "$1_work" "$2" >>"$d/log" 2>&1 &
  worker=$!
}
# end PID...: kill -9; nothing of these processes is left.
end() {
  local pid
  for pid in "$@"; do
    kill -9 "$pid" 2>/dev/null || true
    wait "$pid" 2>/dev/null || true
  done
}
end_each() {
  local pid
  while read -r pid; do end "$pid"; done
}
all_end() {
  [ -z "$worker" ] || end "$worker"
  [ -z "$server" ] || end "$server"
  server='' worker=''
  [ ! -d "$d" ] || end_each < <(spooler_pids; nq_pids)
}
trap 'all_end; rm -rf "$work"' EXIT

begin() { # NAME BATCH
  rm -rf "$d"
  mkdir -m 700 "$d" "$d/data"
  : >"$d/done"
  : >"$d/acked"
  : >"$d/log"
  server_start "$1"
  worker_start "$1" "$2"
}
done_count() { cut -d' ' -f1 "$d/done" | sort -u | wc -l; }
# settle COUNT: until COUNT jobs are done, or none was for 10 s.
settle() {
  local was=-1 now=0 still=0
  while now=$(wc -l <"$d/done"); [ "$now" -lt "$1" ] || [ "$(done_count)" -lt "$1" ]; do
    [ "$now" -eq "$was" ] && still=$((still + 1)) || still=0
    [ "$still" -lt 200 ] || return 0
    was=$now
    sleep 0.05
  done
}

# rate NAME BATCH COUNT: jobs/s
rate() {
  begin "$1" "$2"
  ("$1_put" 1 "$3" 0 "$2")
  settle "$3"
  all_end
  awk -v n="$3" 'NR == FNR { if (!first || $2 < first) first = $2; next } $2 > last { last = $2 }
    END { printf "%.0f\n", n / ((last - first) / 1e9) }' "$d/acked" "$d/done"
}

# latency NAME COUNT: median and 99th percentile in ms
latency() {
  begin "$1" 1
  (DONE=$d/done "$1_put" 1 "$2" -1 1)
  settle "$2"
  all_end
  awk 'NR == FNR { put[$1] = $2; next } ($1 in put) { print ($2 - put[$1]) / 1e6 }' "$d/acked" "$d/done" |
    sort -g | awk '{ v[NR] = $1 } END { printf "%.2f %.2f\n", v[int((NR + 1) / 2)], v[int(NR * .99 + .5)] }'
}

# kill_part NAME WHAT: kills the worker, or the server, or what puts
kill_part() {
  case $1.$2 in
  *.worker)
    end "$worker"
    worker_start "$1" 1
    ;;
  amp.server | pool.server) # the process of task-queue submit
    end_child "$putter" task-queue
    ;;
  spooler.server) end_each < <(spooler_pids) ;;
  nq.server) end_each < <(nq_pids) ;;
  *.server)
    end "$server"
    rm -f "$d/s"
    server_start "$1"
    ;;
  esac
}
end_child() {
  local pid
  for pid in $(cat "/proc/$1/task/$1/children" 2>/dev/null); do
    [ "$(cat "/proc/$pid/comm" 2>/dev/null)" != "$2" ] || kill -9 "$pid" 2>/dev/null || true
  done
}

# killed NAME WHAT COUNT: "lost twice"
killed() {
  local k at
  begin "$1" 1
  "$1_put" 1 "$3" 1 1 2>>"$d/log" &
  putter=$!
  for ((k = 1; k <= kills; k++)); do
    at=$((k * $3 / (kills + 1)))
    until [ "$(wc -l <"$d/acked")" -ge "$at" ] || ! kill -0 "$putter" 2>/dev/null; do sleep 0.005; done
    kill_part "$1" "$2"
  done
  wait "$putter" || true
  settle "$(wc -l <"$d/acked")"
  all_end
  awk 'NR == FNR { acked[$1]; next } { done[$1]++ } END {
    for (i in acked) if (!(i in done)) lost++
    for (i in done) if (done[i] > 1) twice++
    print lost + 0, twice + 0 }' "$d/acked" "$d/done"
}

# ---- what there is

tsp=$(command -v tsp || command -v task-spooler || true)
has() { [[ " ${PEERS:-pool amp spooler nq always everysec bean} " == *" $1 "* ]]; }
missing() { echo "left out: $1 (install: $2)"; }
bullmq_there() {
  command -v node >/dev/null && command -v npm >/dev/null || return 1
  [ -d "$BENCH_NPM/node_modules/ioredis" ] || {
    mkdir -p "$BENCH_NPM"
    cp bench/npm/package.json "$BENCH_NPM"
    (cd "$BENCH_NPM" && npm install --no-audit --no-fund --loglevel=error >/dev/null 2>&1)
  }
  [ -d "$BENCH_NPM/node_modules/bullmq" ] && [ -d "$BENCH_NPM/node_modules/ioredis" ]
}
with_process=() without=()
! has pool || with_process+=(pool)
! has amp || without+=(amp)
if has spooler; then
  if [ -n "$tsp" ]; then with_process+=(spooler); else missing task-spooler 'apt-get install task-spooler'; fi
fi
if has nq; then
  if command -v nq >/dev/null; then with_process+=(nq); else missing nq 'apt-get install nq'; fi
fi
if has always || has everysec; then
  if ! command -v redis-server >/dev/null; then
    missing BullMQ 'apt-get install redis-server nodejs npm'
  elif ! bullmq_there; then
    missing BullMQ 'apt-get install nodejs npm, and a registry of packages'
  else
    ! has always || without+=(always)
    ! has everysec || without+=(everysec)
  fi
fi
if has bean; then
  if command -v beanstalkd >/dev/null; then without+=(bean); else missing beanstalkd 'apt-get install beanstalkd'; fi
fi
declare -A title=([pool]='task-queue work' [amp]='claims, libamp' [spooler]='task-spooler' [nq]='nq'
  [always]='BullMQ, redis always' [everysec]='BullMQ, redis everysec' [bean]='beanstalkd -f0')

# measured in turns; the medians of ROUNDS rounds
middle() { sort -g | awk '{ v[NR] = $1 } END { print v[int((NR + 1) / 2)] }'; }
table() { # COUNT NAME...
  local count=$1 name r b
  shift
  for ((r = 0; r < rounds; r++)); do
    for name in "$@"; do
      rate "$name" 1 "$count" >>"$work/$name.1"
      case $name in spooler | nq) ;; *) rate "$name" 16 "$count" >>"$work/$name.16" ;; esac
      latency "$name" 200 >>"$work/$name.latency"
    done
  done
  for name in "$@"; do
    read -r lw tw < <(case $name in spooler | nq) echo - - ;; *) killed "$name" worker "$count" ;; esac)
    read -r ls ts < <(killed "$name" server "$count")
    b=-
    [ ! -e "$work/$name.16" ] || b=$(middle <"$work/$name.16")
    printf '%-24s %8s %8s %10s %10s %7s %7s %7s %7s\n' "${title[$name]}" "$(middle <"$work/$name.1")" "$b" \
      "$(cut -d' ' -f1 "$work/$name.latency" | middle)" "$(cut -d' ' -f2 "$work/$name.latency" | middle)" \
      "$lw" "$tw" "$ls" "$ts"
  done
}
head_line() {
  printf '\n%s\n%-24s %8s %8s %10s %10s %15s %15s\n' "$1" '' 'jobs/s' 'by 16' 'median ms' 'p99 ms' 'kill -9 worker' 'kill -9 server'
  printf '%-24s %8s %8s %10s %10s %7s %7s %7s %7s\n' '' '' '' '' '' lost twice lost twice
}
if [ "${#with_process[@]}" -gt 0 ]; then
  head_line "a process for each job ($slow_n jobs)"
  table "$slow_n" "${with_process[@]}"
fi
if [ "${#without[@]}" -gt 0 ]; then
  head_line "without processes ($n jobs)"
  table "$n" "${without[@]}"
fi
