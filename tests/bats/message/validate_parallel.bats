# amp-validate -j N: the same bytes in the same order, whatever the threads do.

load ../lib
load ../messages

# Some 3 MB: good lines, bad ones, empty ones, long ones across the borders of chunks, CRLF, and a
# last line without an end.
setup_file() {
  export BUILD_DIR=$AMP_BUILD
  cd "$BATS_FILE_TMPDIR" || return 1
  message task_dispatch >good
  message task_result >good2
  message task_dispatch '.from = "robot"' >bad
  message task_dispatch '.payload.description = "x" * 700000' >long
  local i
  for i in $(seq 300); do
    cat good good2 bad good
    [ $((i % 5)) -eq 0 ] && echo nonsense
    [ $((i % 7)) -eq 0 ] && printf '\n\r\n'
    [ $((i % 11)) -eq 0 ] && sed 's/$/\r/' good2
    [ $((i % 120)) -eq 0 ] && cat long
  done >in
  # Many more lines than a chunk holds.
  seq 20000 >>in
  printf '%s' "$(cat good)" >>in
  amp-validate in >want 2>said || [ $? -eq 1 ]
}

setup() {
  need jq
  cd "$BATS_FILE_TMPDIR" || return 1
  T=$BATS_TEST_TMPDIR
}

@test "lines and reports are those of one thread" {
  local jobs
  for jobs in 2 4 16; do
    run --separate-stderr amp-validate -j "$jobs" in
    [ "$status" -eq 1 ]
    cmp want <(printf '%s' "$output")
    diff <(printf '%s\n' "$stderr") said
  done
  # On a pipe the last line is ended.
  { amp-validate -j 4 <in 2>"$T/err" || [ $? -eq 1 ]; } | cmp - <(cat want; echo)
  sed 's/ stdin:/ in:/' "$T/err" | diff - said
}

@test "the modes, records and counts are those of one thread" {
  local mode
  for mode in --check --annotate; do
    amp-validate "$mode" in >"$T/one" || [ $? -eq 1 ]
    { amp-validate "$mode" -j 3 in || [ $? -eq 1 ]; } | cmp - "$T/one"
  done
  amp-validate -e "$T/one.ndjson" in >/dev/null || [ $? -eq 1 ]
  amp-validate -e "$T/many.ndjson" -j 3 in >/dev/null || [ $? -eq 1 ]
  diff <(jq -c 'del(.time)' "$T/one.ndjson") <(jq -c 'del(.time)' "$T/many.ndjson")
  amp-validate --stats=json -e /dev/null in 2>"$T/one" >/dev/null || [ $? -eq 1 ]
  amp-validate --stats=json -e /dev/null -j 3 in 2>"$T/many" >/dev/null || [ $? -eq 1 ]
  diff <(jq -S 'del(.ms, .lines_per_second, .bytes_per_second)' "$T/one") \
    <(jq -S 'del(.ms, .lines_per_second, .bytes_per_second)' "$T/many")
  amp-validate --sample 3 in 2>/dev/null >"$T/one" || [ $? -eq 1 ]
  amp-validate --sample 3 -j 3 in 2>/dev/null >"$T/many" || [ $? -eq 1 ]
  cmp "$T/many" "$T/one"
}

@test "lines that are too long are skipped in the same way" {
  amp-validate --max-line 2000 in >"$T/one" 2>"$T/one.err" || [ $? -eq 1 ]
  run --separate-stderr amp-validate --max-line 2000 -j 4 in
  cmp "$T/one" <(printf '%s' "$output")
  diff "$T/one.err" <(printf '%s\n' "$stderr")
  grep -q line_too_long "$T/one.err"
}

@test "several files keep their order; one that is missing is reported in its turn" {
  run --separate-stderr amp-validate -j 4 good nowhere bad good2
  [ "$status" -eq 65 ]
  cat good good2 | cmp - <(printf '%s\n' "$output")
  [ "$(grep -n -e nowhere -e bad_enum <<<"$stderr" | cut -d: -f1 | xargs)" = "1 2" ]
}

@test "--fail-fast lets out what stands before the first refused line, and no more" {
  run --separate-stderr amp-validate -j 4 --fail-fast in
  [ "$status" -eq 1 ]
  cat good good2 | cmp - <(printf '%s\n' "$output")
  [[ $stderr == *"stopped at line 3, "* ]]
  [ "$(grep -c error <<<"$stderr")" -eq 1 ]
}

@test "a line passes while the input stays open" {
  mkfifo "$T/pipe"
  amp-validate -j 4 <"$T/pipe" >"$T/out" &
  exec 7>"$T/pipe"
  cat good >&7
  wait_until 30 has_lines "$T/out" 1
  { cat good2; printf '{"half'; } >&7
  wait_until 30 has_lines "$T/out" 2
  exec 7>&-
  ends 1 wait $!
  cat good good2 | cmp - "$T/out"
}

@test "TERM ends it with 130 after whole lines" {
  mkfifo "$T/pipe"
  amp-validate -j 4 <"$T/pipe" >"$T/out" &
  local pid=$! status=0
  exec 7>"$T/pipe"
  { cat good; printf '{"half'; } >&7
  wait_until 30 has_lines "$T/out" 1
  kill -TERM "$pid"
  wait "$pid" || status=$?
  exec 7>&-
  [ "$status" -eq 130 ]
  cmp good "$T/out"
}

@test "a reader that leaves ends it quietly" {
  set +o pipefail
  amp-validate -j 4 -e /dev/null in in in 2>"$T/err" | head -n 1 >"$T/out"
  [ "${PIPESTATUS[0]}" -ne 0 ]
  cmp good "$T/out"
  [ ! -s "$T/err" ]
}

@test "a full disk is 74" {
  [ -c /dev/full ] || skip "no /dev/full"
  run --separate-stderr bash -c 'amp-validate -j 4 -e /dev/null in >/dev/full'
  [ "$status" -eq 74 ]
  run --separate-stderr bash -c 'amp-validate -j 4 -e /dev/full in >/dev/null'
  [ "$status" -eq 74 ]
}

@test "two copies may write one FIFO: no line is torn" {
  mkfifo "$T/pipe"
  cat "$T/pipe" >"$T/out" &
  local reader=$! a
  exec 7>"$T/pipe"
  amp-validate -j 2 -e /dev/null in >&7 &
  a=$!
  amp-validate -j 2 -e /dev/null in >&7 || [ $? -eq 1 ]
  ends 1 wait "$a"
  exec 7>&-
  wait "$reader"
  { cat want && echo && cat want && echo; } | grep . | sort | cmp - <(grep . "$T/out" | sort)
}

@test "history keeps its order with threads" {
  need_tool amp-ack
  amp-ack track --state "$T/state" <good >/dev/null
  local i
  for i in $(seq 150); do
    message task_dispatch ".msg_id = \"task_dispatch-T-2026-044-1$i\""
    cat bad
  done >"$T/in"
  jq -c '.payload.description = "other"' good >>"$T/in"
  amp-validate --state "$T/state" "$T/in" >"$T/one" 2>"$T/one.err" || [ $? -eq 1 ]
  [ "$(wc -l <"$T/one")" -eq 150 ]
  run --separate-stderr amp-validate --state "$T/state" -j 3 "$T/in"
  [ "$status" -eq 1 ]
  cmp "$T/one" <(printf '%s\n' "$output")
  diff "$T/one.err" <(printf '%s\n' "$stderr")
}

@test "one job needs no threads" {
  need strace
  not_under_valgrind "strace would show what valgrind does"
  # A leak checker cannot work in a traced process.
  export ASAN_OPTIONS=detect_leaks=0${ASAN_OPTIONS:+:$ASAN_OPTIONS}
  run -0 --separate-stderr strace -f -e trace=clone,clone3 -o "$T/trace" amp-validate -j 1 good
  run -1 grep -q clone "$T/trace"
  run -0 --separate-stderr strace -f -e trace=clone,clone3 -o "$T/trace" amp-validate -j 2 good
  grep -q clone "$T/trace"
}
