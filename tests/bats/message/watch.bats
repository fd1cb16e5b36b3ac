#!/usr/bin/env bats
# amp-ack watch: deadlines at their moment, without polling, by several at once.
# slow

load ../lib
load ../messages
load ../../kill9

setup() {
  need_tool amp-ack
  cd "$BATS_TEST_TMPDIR"
  export AMP_STATE=$PWD/state
}

teardown() {
  for p in $(jobs -p); do kill -9 "$p" 2>/dev/null || :; done
  # Who was traced outlives the tracer.
  [ ! -s trace ] || kill "$(head -n 1 trace | cut -d' ' -f1)" 2>/dev/null || :
}

# due SECONDS N...: messages that must be acknowledged within SECONDS, in the ledger.
due() {
  local s=$1
  shift
  message task_dispatch ".ack_timeout_sec = $s" |
    jq -c '. as $m | $ARGS.positional[] as $i | $m | .msg_id = "task_dispatch-T-2026-044-\($i)"' --args "$@" >in
  # From a file: it is read in few pieces.
  amp-ack ${NOW:+--now "$NOW"} <in >/dev/null
}
told() { jq -r '.payload.affected_msgs[0]' "$@" | sed 's/.*-//' | sort -n | paste -sd' '; }
# has_open PID NAME: the process has the file open, as /proc names it.
has_open() { readlink "/proc/$1/fd/"* | grep -qxF "$2"; }
# ends STATUS PID: the process ends, and with that status.
ends() {
  local rc=0
  wait "$2" || rc=$?
  [ "$rc" -eq "$1" ]
}

@test "overdue messages are reported at their deadline, also those recorded later" {
  due 6 1
  amp-ack watch >out 3>&- &
  due 1 2
  wait_until 30 has_lines out 1
  [ "$(told out)" = 2 ]
  wait_until 30 has_lines out 2
  [ "$(told out)" = "1 2" ]
  # Neither before its time nor long after it.
  jq -se '[.[] | select(.event == "timeout") | .state.timed_out_ms - .state.sent_ms - .state.ack_timeout_ms]
    | length == 2 and all(. >= 0 and . < 30000)' state/log/*.ndjson
}

@test "nothing happens while nothing is due: no system call" {
  need strace
  not_under_valgrind "strace would show what valgrind does"
  due 1 1
  due 600 2
  strace -f -o trace amp-ack watch >out 3>&- &
  wait_until 20 has_lines out 1
  wait_until 30 quiet trace 2
  n=$(wc -l <trace)
  # It waits for the next deadline, and for the clock to be set.
  tail -20 trace | grep -q 'timerfd_settime.*TFD_TIMER_ABSTIME|TFD_TIMER_CANCEL_ON_SET'
  # What others write wakes it, however much of it there is, a few times only.
  due 600 $(seq 100 400)
  wait_until 30 quiet trace 0.5
  [ "$(tail -n +"$n" trace | grep -c ppoll)" -lt 30 ]
}

@test "TERM and INT end it with 130, until-idle with 0" {
  amp-ack watch 3>&- &
  wait_until 20 test -d state/log
  kill -TERM $!
  ends 130 $!
  due 1 1
  timeout 60 amp-ack watch --until-idle >out
  [ "$(told out)" = 1 ]
  run -0 amp-ack watch --until-idle
  [ -z "$output" ]
}

@test "a reader that goes ends it, and the next one has what was not written" {
  mkfifo fifo
  sleep 100 <fifo 3>&- &
  reader=$!
  amp-ack watch -o fifo 3>&- &
  watch=$!
  # Both have it: earlier, the one that writes would wait for another reader.
  wait_until 20 has_open $watch "$PWD/fifo"
  wait_until 20 has_open $reader "$PWD/fifo"
  kill $reader
  ends 74 $watch
  due 1 1
  timeout 60 amp-ack watch --until-idle >out
  [ "$(told out)" = 1 ]
}

@test "the state directory is taken away: it ends" {
  asleep() { grep -q '^State:.S' "/proc/$1/status"; }
  for away in 'mv state/log gone' 'mv state moved' 'rm -r state'; do
    amp-ack track </dev/null
    amp-ack watch 2>err 3>&- &
    wait_until 20 has_open $! anon_inode:inotify
    wait_until 20 asleep $!
    $away
    ends 74 $!
    grep -q "removed or renamed" err
  done
}

@test "retries leave when their wait is over, and then a person is notified" {
  due 1 1
  timeout 30 amp-ack watch --until-idle --retries 2 --backoff 200ms,300ms --metrics m.ndjson >out
  [ "$(jq -r .type out | paste -sd' ')" = "task_dispatch task_dispatch escalation" ]
  [ "$(jq -r '.msg_id // empty' out | sort -u | wc -l)" -eq 3 ]
  jq -se '[.[-1].metrics[] | {(.name): .value}] | add | .["messages.retries_total"] == 2 and
    .["messages.timeouts_total"] == 3 and .["messages.dead_letters_total"] == 1' m.ndjson
  amp-ack log --correlation T-2026-044 | jq -nrf "$AMP_TOP/share/draw/mermaid.jq" >d.mmd
  [ "$(grep -c 'P1->>P2: task_dispatch again ' d.mmd)" -eq 2 ]
  grep -q 'dead letter DEAD retries_exhausted' d.mmd
}

@test "several watch, some are killed: every escalation once" {
  due 1 $(seq 100)
  due 2 $(seq 101 200)
  for i in 1 2 3 4; do
    amp-ack watch >"out$i" 3>&- &
    pids[i]=$!
  done
  wait_until 20 grep -q . out1 out2 out3 out4
  kill -9 "${pids[1]}"
  amp-ack sweep >out5
  kill -9 "${pids[2]}"
  everybody() { [ "$(cat out? | kill9_lines | jq -r '.payload.affected_msgs[0]' | sort -u | wc -l)" -eq 200 ]; }
  wait_until 30 everybody
  # One escalation for each message was ever made, and one transition.
  jq -r 'select(.event == "timeout") | .key' state/log/*.ndjson | sort | uniq -d >twice
  [ ! -s twice ]
  [ "$(jq -r 'select(.event == "timeout") | .key' state/log/*.ndjson | wc -l)" -eq 200 ]
  # A line that stands twice is the same line, of one who was killed while writing.
  cat out? | kill9_lines | sort -u | jq -r '.payload.affected_msgs[0]' | sort | uniq -d >twice
  [ ! -s twice ]
  run -0 amp-ack sweep
  [ -z "$output" ]
}

@test "one that cannot write holds up the others for no longer than it lives" {
  mkfifo fifo
  sleep 100 <>fifo 3>&- &
  NOW=2026-01-01T00:00:00Z due 1 $(seq 200) # overdue, and more than the FIFO takes
  amp-ack watch -o fifo 3>&- &
  stuck=$!
  full() { [ "$(grep -c '"event":"timeout"' state/log/000001.ndjson)" -eq 200 ]; }
  wait_until 20 full
  amp-ack watch >out 3>&- &
  other=$!
  sleep 0.5
  [ ! -s out ]
  kill -9 $stuck
  both() { cat out rest | kill9_lines | sort -u | jq -r '.payload.affected_msgs[0]' | sort -u; }
  everybody() { [ "$(both | wc -l)" -eq 200 ]; }
  cat fifo >rest 3>&- &
  wait_until 20 everybody
  kill $other
  ends 130 $other
}

@test "metrics: records at an interval and at the end, and OpenMetrics text" {
  due 1 1 2 3
  timeout 60 amp-ack watch --until-idle --metrics m.ndjson --metrics-interval 100ms >/dev/null
  jq -se 'length > 1 and (map(.final) == ([range(length - 1) | false] + [true]))' m.ndjson
  value() { jq -se --arg n "$1" '.[-1].metrics[] | select(.name == $n)' m.ndjson; }
  [ "$(value messages.timeouts_total | jq -c '[.labels.protocol, .labels.agent_id, .value]')" = '["amp","executor",3]' ]
  [ "$(value messages.escalations_total | jq -c '[.labels.escalation, .value]')" = '["ack_timeout",3]' ]
  due 1 4
  amp-ack sweep --now 2099-01-01T00:00:00Z --metrics m.txt --metrics-format openmetrics >/dev/null
  run -0 "$AMP_BUILD/tests/conformance/openmetrics" m.txt
  grep -qx 'amp_messages_timeouts_total{agent_id=executor|protocol=amp|tool=amp-ack.sweep|} 1' <<<"$output"
  # A file that cannot be written is told at once.
  run -73 amp-ack sweep --metrics none/m.txt
  # A FIFO that nobody reads costs nothing.
  mkfifo fifo
  run -0 timeout 60 amp-ack sweep --metrics fifo
}

@test "the tests' reader of OpenMetrics text takes nothing that the standard does not allow" {
  om() { printf "$1" >om; run "$AMP_BUILD/tests/conformance/openmetrics" om; }
  om '# TYPE a counter\na_total{x="1"} 1\n# EOF\n'
  [ "$status" -eq 0 ]
  for text in 'a_total 1\n# EOF\n' '# TYPE a counter\na 1\n# EOF\n' '# TYPE a counter\na_total 1\n' \
    '# TYPE a counter\na_total -1\n# EOF\n' '# TYPE a gauge\na 1\na 1\n# EOF\n' \
    '# TYPE a gauge\na{x="1",} 1\n# EOF\n' '# TYPE a gauge\na{x="\\t"} 1\n# EOF\n' \
    '# TYPE a gauge\na{x="1",x="2"} 1\n# EOF\n' '# TYPE a gauge\n\na 1\n# EOF\n' \
    '# TYPE a gauge\na 1\n# EOF\n\n' '# TYPE a gauge\na 1\n# TYPE b gauge\nb 1\n# HELP a x\n# EOF\n' \
    '# TYPE a histogram\na_bucket{le="1.0"} 2\na_bucket{le="+Inf"} 1\na_count 1\na_sum 1\n# EOF\n' \
    '# TYPE a histogram\na_bucket{le="1.0"} 1\na_count 1\na_sum 1\n# EOF\n' \
    '# TYPE a gauge\n# UNIT a seconds\na 1\n# EOF\n' '# TYPE a gauge\na{x="\xff"} 1\n# EOF\n' \
    '# TYPE a_total counter\na_total_total 1\n# EOF\n' '# TYPE a gauge\na{x=1} 1\n# EOF\n'; do
    om "$text"
    [ "$status" -eq 1 ]
  done
}

@test "killed at any moment, again and again: everything is reported, once" {
  NOW=2026-01-01T00:00:00Z due 1 $(seq 800)
  for ((round = 0; round < 12; round++)); do
    kill9_round 150 amp-ack watch --until-idle >"out.$round"
  done
  timeout 60 amp-ack watch --until-idle >out.last
  [ "$(jq -r 'select(.event == "timeout") | .key' state/log/*.ndjson | sort | uniq -c | awk '$1 == 1' | wc -l)" -eq 800 ]
  for f in out.*; do kill9_lines <"$f"; done | sort -u >lines
  [ "$(wc -l <lines)" -eq 800 ]
  [ "$(jq -r '.payload.affected_msgs[0]' lines | sort -u | wc -l)" -eq 800 ]
  # What was closed in the outbox was not written again.
  run -0 amp-ack sweep
  [ -z "$output" ]
}
