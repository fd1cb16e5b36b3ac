# amp-validate's memory does not grow with its input.
load ../lib
load ../messages

setup() {
  native "it measures memory"
  cd "$BATS_TEST_TMPDIR"
}

all_out() {
  [ "$(stat -c %s out)" -eq "$(stat -c %s lines)" ]
}

# peak OPTIONS...: feeds the file `lines` and then waits, prints the peak of resident memory in KiB.
peak() {
  local pid
  mkfifo in
  amp-validate "$@" <in >out 2>err &
  pid=$!
  exec 7>in
  cat lines >&7
  # All of it has been judged when the last line is out.
  wait_until 20 all_out
  awk '/VmHWM/ { print $2 }' "/proc/$pid/status"
  exec 7>&-
  wait "$pid"
  rm in
}

# grow TIMES: the file `some` over and over.
grow() {
  local i
  for ((i = 0; i < $1; i++)); do cat some; done >lines
}

@test "4 MiB for lines up to 64 KiB, however many" {
  {
    for type in task_dispatch task_result review_request review_verdict escalation; do
      message "$type"
    done
    message task_dispatch '.payload.description = ("long " * 12000)'
    for p in sw4rm aop aof rtp; do
      jq -cn 'limit(5; inputs | select(.base) | .line)' "$AMP_TOP/tests/fixture/protocols/$p.jsonl"
    done
  } | amp-validate >some 2>/dev/null || [ $? -eq 1 ]
  [ "$(wc -l <some)" -ge 20 ]
  grow 5
  run -0 peak
  echo "5 times: $output KiB"
  few=$output
  [ "$few" -le 4096 ]
  grow 60
  run -0 peak
  echo "60 times: $output KiB, after 5: $few KiB"
  [ "$output" -le 4096 ]
  [ "$output" -le $((few + 256)) ]
}

@test "4 MiB for every type of message in one stream" {
  local p
  # The cases that are accepted have each type of each protocol.
  for p in amp sw4rm aop aof rtp; do
    jq -n -R -c --arg file "$p" -f "$AMP_TOP/tests/fixture/protocols/expand.jq" \
      "$AMP_TOP/tests/fixture/protocols/$p.jsonl" | jq -r '.cases[] | select(.accept) | .text'
  done | amp-validate >lines 2>/dev/null || [ $? -eq 1 ]
  [ "$(wc -l <lines)" -ge 600 ]
  # How many pages of files the kernel maps at once differs by 200 KiB between runs.
  for _ in 1 2 3; do
    run -0 peak
    echo "$output KiB"
    [ "$output" -gt 4096 ] || break
  done
  [ "$output" -le 4096 ]
}
