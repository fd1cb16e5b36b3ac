# amp-validate: what each mode writes for a line.

load ../lib
load ../messages

# Every line that the cases of the protocols' rules hold, good and bad.
setup_file() {
  local file
  for file in "$AMP_TOP"/tests/fixture/protocols/{amp,sw4rm,aop,aof,rtp,any}.jsonl; do
    jq -n -R -c --arg file x -f "$AMP_TOP/tests/fixture/protocols/expand.jq" "$file" |
      jq -r '.cases[].text'
  done >"$BATS_FILE_TMPDIR/all"
}

setup() {
  need jq
  cd "$BATS_TEST_TMPDIR" || return 1
  message task_dispatch >good
  message task_dispatch '.from = "robot" | del(.payload.branch)' >bad
  message review_request '.payload.reject_count = 2' >doubtful
  # Lines 1 to 7; the fourth is empty.
  { cat good bad doubtful; echo; echo '{"half'; printf '{"a":"\xff"}\n'; cat good; } >in
}

@test "--check: one verdict a line, nothing else, and 1 where one is bad" {
  run --separate-stderr amp-validate --check <in
  [ "$status" -eq 1 ]
  [ -z "$stderr" ]
  jq -s . <<<"$output" >verdicts
  jq -e 'map(.line) == [1, 2, 3, 5, 6, 7]' verdicts
  jq -e 'map(.valid) == [true, false, true, false, false, true]' verdicts
  jq -e '.[0] | keys_unsorted == ["line", "offset", "valid", "protocol", "type", "id"] and
    .protocol == "amp" and .type == "task_dispatch" and
    .id == "task_dispatch-T-2026-044-1772116327001"' verdicts
  jq -e '.[1] | .code == "bad_enum" and .field == "from" and .pointer == "/from" and
    .errors == 2 and .warnings == 0 and (.expected | startswith("one of admin"))' verdicts
  jq -e '.[2] | .code == "lock_note_missing" and .errors == 0 and .warnings == 1' verdicts
  jq -e '.[3] | .protocol == "" and .code == "invalid_json" and .message == "string not closed"' \
    verdicts
  [ "$(jq '.[1].offset' verdicts)" -eq "$(wc -c <good)" ]
}

@test "--check names the file where files are given" {
  amp-validate --check good good >out
  [ "$(jq -r '"\(.file) \(.line)"' out | xargs)" = "good 1 good 1" ]
}

@test "--check with good lines only is 0; with --strict a warning is an error" {
  amp-validate --check good doubtful >out
  run amp-validate --check --strict doubtful
  [ "$status" -eq 1 ]
  [ "$(jq -c '[.valid, .errors, .warnings]' <<<"$output")" = "[false,1,0]" ]
}

@test "--annotate: each line in a wrapper, with all that was found" {
  run --separate-stderr amp-validate --annotate <in
  [ "$status" -eq 1 ]
  [ -z "$stderr" ]
  jq -s . <<<"$output" >wrapped
  jq -e 'map(.line) == [1, 2, 3, 5, 6, 7]' wrapped
  jq -e '.[0] | keys_unsorted == ["line", "offset", "valid", "protocol", "type", "id", "findings",
    "message"] and .findings == []' wrapped
  jq -e '.[1].findings | map(.code + " " + .field) == ["bad_enum from", "missing_field payload.branch"]' \
    wrapped
  jq -e '.[1].findings[0] | .rule == "enum" and .severity == "error" and .found == "\"robot\""' wrapped
  jq -e '.[2] | .valid and .findings[0].severity == "warning"' wrapped
  jq -e '.[3].message == "{\"half"' wrapped
  jq -e '.[4].message | type == "string"' wrapped
}

@test "--annotate keeps the message's own bytes" {
  printf '{ "msg_id":"x" ,"n":1.10, "e":"\\u0041" }\r\n' >odd
  run amp-validate --annotate odd
  [ "$status" -eq 1 ]
  [[ $output == *',"message":{ "msg_id":"x" ,"n":1.10, "e":"\u0041" }}' ]]
}

@test "--annotate: an AOF prefix is no JSON, an AOF string is" {
  local envelope='{"protocol":"aof","version":1,"type":"x.y"}'
  { echo "AOF/1 $envelope"; jq -cn --arg e "$envelope" '$e'; } >aof
  ends 1 amp-validate --annotate aof >out
  [ "$(jq -c '[.protocol, (.message | type)]' out | xargs)" = "[aof,string] [aof,string]" ]
  [ "$(jq -r .message out | head -n 1)" = "AOF/1 $envelope" ]
  [ "$(jq -r .message out | tail -n 1)" = "$envelope" ]
}

@test "a line that is too long has a verdict and is cut in its wrapper" {
  { cat good; head -c 5000 /dev/zero | tr '\0' x; echo; cat good; } >long
  run amp-validate --check --max-line 2000 long
  [ "$status" -eq 1 ]
  [ "$(jq -r '"\(.line) \(.code)"' <<<"$output" | xargs)" = "1 null 2 line_too_long 3 null" ]
  run amp-validate --annotate --max-line 2000 long
  [ "$(jq -r 'select(.line == 2) | .message | length' <<<"$output")" -eq 200 ]
  run --separate-stderr amp-validate --nack --max-line 2000 long
  [ "$(jq -r '.code // "-"' <<<"$output" | xargs)" = "- line_too_long -" ]
}

@test "--nack: valid lines pass, the others are answered in their place" {
  run --separate-stderr amp-validate --nack <in
  [ "$status" -eq 1 ]
  [ "${#lines[@]}" -eq 6 ]
  [ "${lines[0]}" = "$(cat good)" ]
  [ "${lines[2]}" = "$(cat doubtful)" ]
  [ "${lines[5]}" = "$(cat good)" ]
  jq -e '.type == "nack" and .protocol_version == "AMP/1.0" and
    .ref_msg_id == "task_dispatch-T-2026-044-1772116327001" and .task_id == "T-2026-044" and
    .failed_stage == "REJECTED" and .code == "bad_enum" and .rule == "enum" and
    .retryable == false and (.message | startswith("from is not one of the allowed values"))' \
    <<<"${lines[1]}"
  jq -e '.code == "invalid_json" and .ref_msg_id == "" and .task_id == ""' <<<"${lines[3]}"
  jq -e '.code == "invalid_utf8"' <<<"${lines[4]}"
  # What was found is reported all the same.
  [[ $stderr == *"stdin:2: payload.branch: missing_field"* ]]
}

@test "refusals are valid in every protocol, and nobody answers them" {
  ln -s "$BATS_FILE_TMPDIR/all" all
  ends 1 amp-validate all >passed 2>/dev/null
  ends 1 amp-validate --nack all 2>/dev/null >mixed
  # Lines that passed are taken away, each as often as it did.
  { diff passed mixed || true; } | sed -n 's/^> //p' >refusals
  [ "$(wc -l <refusals)" -gt 1000 ]
  amp-validate refusals 2>/dev/null | cmp - refusals
  local p
  for p in amp sw4rm aop aof rtp; do
    amp-validate -p "$p" refusals >"$p" 2>/dev/null || [ $? -eq 1 ]
    [ -s "$p" ] || { echo "nothing in $p"; return 1; }
  done
  # Broken on the way, they are still not answered by their own kind.
  jq -c 'if .type == "nack" then .retryable = 1 elif .message_type == "ACKNOWLEDGEMENT" then
    .retry_count = "x" else empty end' refusals >broken
  [ -s broken ]
  [ -z "$(amp-validate --nack broken 2>/dev/null)" ]
}

@test "verdicts, wrapped lines, records and counts are what their schemas say" {
  ln -s "$BATS_FILE_TMPDIR/all" all
  local s=$AMP_TOP/schemas/records
  ends 1 amp-validate --check all >verdicts
  amp-validate -S "$s/verdict.json" verdicts | cmp - verdicts
  ends 1 amp-validate --annotate all >wrapped
  amp-validate -S "$s/annotated.json" wrapped | cmp - wrapped
  [ "$(wc -l <verdicts)" -eq "$(grep -c . all)" ]
  [ "$(wc -l <wrapped)" -eq "$(grep -c . all)" ]
  ends 1 amp-validate -e records --stats=json all 2>counts >/dev/null
  amp-validate -S "$s/rejection.json" records | cmp - records
  amp-validate -S "$s/statistics.json" counts | cmp - counts
  # They agree with each other.
  [ "$(jq -s 'map(select(.valid)) | length' verdicts)" -eq "$(jq .valid counts)" ]
  [ "$(jq -s 'map(.errors // 0) | add' verdicts)" -eq "$(jq '[.codes[].errors] | add' counts)" ]
  diff <(jq -c '.findings[].code' wrapped) <(jq -c .code records)
}

@test "a nack is a message that passes; a bad nack is not answered" {
  amp-validate --nack <in 2>/dev/null | grep '"nack"' >nacks || true
  [ "$(wc -l <nacks)" -eq 3 ]
  amp-validate nacks | cmp - nacks
  message nack '.retryable = "no"' >bad
  run --separate-stderr amp-validate --nack bad
  [ "$status" -eq 1 ]
  [ -z "$output" ]
  [ -n "$stderr" ]
}

@test "a hostile id and a bad task_id do not make a bad nack" {
  message task_dispatch '.task_id = "T-1" | .msg_id = "a\u001b[2J\u202e"' >bad
  message task_dispatch '.msg_id = "x" * 3000' >>bad
  ends 1 amp-validate --nack bad 2>/dev/null >nacks
  [ "$(jq -r .task_id nacks | xargs)" = "T-2026-044" ]
  amp-validate nacks | cmp - nacks
}

@test "-e records in every mode" {
  local mode
  for mode in --check --annotate --nack; do
    ends 1 amp-validate "$mode" -e "records$mode" in >/dev/null
    [ "$(jq -r .code "records$mode" | xargs)" = \
      "bad_enum missing_field lock_note_missing invalid_json invalid_utf8" ]
  done
}

@test "--state in every mode: what history says is a part of the verdict" {
  need_tool amp-ack
  message task_dispatch '.msg_id = "task_dispatch-T-2026-044-1"' >known
  amp-ack track --state state <known >/dev/null
  { cat good; jq -c '.payload.description = "other"' known; cat good; } >in
  local jobs
  for jobs in 1 3; do
    run amp-validate --state state --check -j "$jobs" in
    [ "$(jq -r '"\(.valid) \(.code)"' <<<"$output" | xargs)" = \
      "true null false duplicate_msg_id true null" ]
    run amp-validate --state state --annotate -j "$jobs" in
    [ "$(jq -c '[.findings[].code]' <<<"$output" | xargs)" = "[] [duplicate_msg_id] []" ]
    run amp-validate --state state --nack -j "$jobs" in
    [ "$(grep -c nack <<<"$output")" -eq 1 ]
    [[ $output == *'"ref_msg_id":"task_dispatch-T-2026-044-1","task_id":"T-2026-044"'* ]]
  done
}

@test "--fail-fast in every mode stops with the refused line" {
  [ "$(amp-validate --fail-fast --check in 2>/dev/null | jq .line | xargs)" = "1 2" ]
  [ "$(amp-validate --fail-fast --annotate in 2>/dev/null | jq .line | xargs)" = "1 2" ]
  [ "$(amp-validate --fail-fast --nack in 2>/dev/null | jq -r .type | xargs)" = "task_dispatch nack" ]
}

@test "modes contradict each other, and questions read no files" {
  local args
  for args in '--check --annotate' '--check --nack' '--nack --annotate' '--annotate --sample 2' \
    '--state x --sample 2' '--extract --sample 2' \
    '--to rtp --sample 2' '--effective --sample 2' '--document --sample 2' '--list --explain all' '--list in' '--explain bad_enum in' \
    '--sample 0' '-j 0' '-j 65' '--stats=xml'; do
    # shellcheck disable=SC2086
    run --separate-stderr amp-validate $args </dev/null
    [ "$status" -eq 64 ] || { echo "not refused: $args"; return 1; }
    [[ $stderr == "amp-validate: error: "* ]]
  done
}

@test "--sample checks the first line and every Nth after it" {
  local i
  for i in $(seq 10); do echo "bad $i"; done >ten
  run --separate-stderr amp-validate --sample 4 ten
  [ "$status" -eq 1 ]
  [ "$output" = "$(sed -e 1d -e 5d -e 9d ten)" ]
  run amp-validate --sample 4 --check ten
  [ "$(jq .line <<<"$output" | xargs)" = "1 5 9" ]
  run --separate-stderr amp-validate --sample 4 --max-line 64 <(cat ten; head -c 99 /dev/zero | tr '\0' x)
  [[ $stderr == *:11:*line_too_long* ]]
}

@test "--stats counts by protocol, type and code, on stderr" {
  run --separate-stderr amp-validate --stats=json -e records in
  [ "$status" -eq 1 ]
  jq -e '.lines == 6 and .valid == 3 and .refused == 3 and .unchecked == 0 and
    (.types | map([.protocol, .type, .valid, .refused])) ==
      [["", "", 0, 2], ["amp", "review_request", 1, 0], ["amp", "task_dispatch", 2, 1]] and
    (.codes | map([.protocol, .code, .warnings, .errors])) ==
      [["", "invalid_json", 0, 1], ["", "invalid_utf8", 0, 1], ["amp", "bad_enum", 0, 1],
       ["amp", "lock_note_missing", 1, 0], ["amp", "missing_field", 0, 1]]' <<<"$stderr"
  [ "$(jq .bytes <<<"$stderr")" -eq "$(($(wc -c <in) - 1))" ]
  run --separate-stderr amp-validate --stats --sample 3 --check good good in
  [[ $stderr == *"note: 8 lines: 4 valid, 0 refused, 4 unchecked; "*" lines/s, "*" MB/s"* ]]
}

@test "--stats: many types and hostile ones stay within bounds" {
  jq -nc 'range(1000) | {protocol_version: "AMP/1.0", type: "t\u001b[2J\(.)"}' >many
  run --separate-stderr amp-validate --stats=json -e records many
  [ "$(tail -n 1 <<<"$stderr" | jq '.types | length')" -eq 256 ]
  [ "$(tail -n 1 <<<"$stderr" | jq '[.types[].refused] | add')" -eq 1000 ]
  run --separate-stderr amp-validate --stats -e records many
  run -1 grep -q $'\x1b' <<<"$stderr"
}

@test "--stats shows progress on a terminal, and only there" {
  need script
  script -qec "amp-validate --stats good >/dev/null" /dev/null >shown </dev/null
  grep -q $'\r\x1b\[K1 line: 1 valid' shown
  grep -q 'note: 1 line: 1 valid' shown
  amp-validate --stats good 2>shown >/dev/null
  [ "$(grep -c 'lines\?: ' shown)" -eq 1 ]
  run -1 grep -q $'\x1b' shown
}

@test "the README shows what it says" {
  { cat good; message task_dispatch '.to = "executer"'; } >messages.ndjson
  run --separate-stderr amp-validate messages.ndjson
  [ "$stderr" = "$(grep '^amp-validate: error: messages' "$AMP_TOP/README.md")" ]
  local o arg
  amp-validate --help >help
  while read -r o arg; do
    grep -qE -e "^ +(-., )?$o(, --[a-z-]+)?${arg:+ $arg}([^a-z-]|$)" help || {
      echo "no option $o $arg"
      return 1
    }
  done < <(sed -n '/^## The validator alone/,/^## Install/p' "$AMP_TOP/README.md" |
    grep -o '`-[^`]*`' | tr -d '\`')
}
