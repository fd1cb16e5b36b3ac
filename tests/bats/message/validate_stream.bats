# amp-validate as a filter: what passes is passed byte for byte, at once, and the end is told.

load ../lib
load ../messages

setup() {
  need jq
  cd "$BATS_TEST_TMPDIR" || return 1
  message task_dispatch >good
  message task_result >good2
}

@test "valid lines pass byte for byte, bad ones are left out" {
  { cat good; echo nonsense; cat good2 good; } >in
  cat good good2 good >want
  run amp-validate -e records in
  [ "$status" -eq 1 ]
  { amp-validate in 2>/dev/null || [ $? -eq 1 ]; } | cmp - want
}

@test "odd spacing, CRLF and a missing last line end stay as they are" {
  { sed 's/,/ ,\t/g' good; sed 's/$/\r/' good2; printf '%s' "$(cat good)"; } >in
  amp-validate <in >out
  cmp in out
}

@test "a last line without an end is ended where lines of others may follow" {
  printf '%s' "$(cat good)" >in
  amp-validate in | cmp - good
  amp-validate --document in | cmp - good
  amp-validate --nack in | cmp - good
  cat good2 >out
  amp-validate in >>out
  amp-validate good2 >>out
  cat good2 good good2 | cmp - out
  mkfifo fifo
  cat fifo >out &
  exec 7>fifo
  amp-validate in >&7
  amp-validate good2 >&7
  exec 7>&-
  wait $!
  cat good good2 | cmp - out
}

@test "empty lines are skipped and counted" {
  { echo; printf '\r\n'; cat good; echo; echo bad; } >in
  run --separate-stderr amp-validate -e - in
  [ "$status" -eq 1 ]
  [ "$output" = "$(cat good)" ]
  [ "$(jq .line <<<"$stderr")" -eq 5 ]
}

@test "a file without a last line end does not melt into the next" {
  printf '%s' "$(cat good)" >a
  amp-validate a good2 | cmp - <(cat good good2)
}

@test "no input gives no output" {
  run amp-validate </dev/null
  [ "$status" -eq 0 ]
  [ -z "$output" ]
}

@test "many lines pass in one piece" {
  local i
  for i in $(seq 300); do cat good good2; done >in
  amp-validate <in | cmp - in
  amp-validate in | cmp - in
}

@test "garbage never crashes it, and every line is reported once" {
  head -c 200000 /dev/urandom >in
  run amp-validate -e records in
  [ "$status" -eq 1 ]
  jq -es 'length > 0 and all(.severity == "error")' records
  local n
  n=$(jq -rs 'map(.line) | unique | length' records)
  [ "$n" -eq "$(jq -rs length records)" ]
}

@test "JSON that is no object is of no protocol" {
  printf '%s\n' null 5 '"text"' '[]' true '{}' '{"type":"task_dispatch"}' >in
  run amp-validate -e records in
  [ "$status" -eq 1 ]
  [ "$(jq -r .code records | sort | uniq -c | xargs)" = "7 unknown_protocol" ]
}

@test "faults of the JSON have codes of their own" {
  printf '%s\n' '{"a":' '{"a":1,"a":2}' '{"a":"\ud800"}' >in
  printf '{"a":"\xff"}\n' >>in
  head -c 300 /dev/zero | tr '\0' '[' >>in
  run amp-validate -e records in
  [ "$status" -eq 1 ]
  [ "$(jq -r .code records | xargs)" = \
    "invalid_json duplicate_key invalid_utf8 invalid_utf8 too_deep" ]
}

@test "--max-line and --max-depth" {
  { cat good; message task_dispatch '.payload.description = "x" * 2000'; cat good2; } >in
  run -1 --separate-stderr amp-validate -e records --max-line 1500 in
  [ "${#lines[@]}" -eq 2 ]
  [ "$stderr" = "amp-validate: warning: refused: 1 line_too_long" ]
  [ "$(jq -r '"\(.code) \(.line)"' records)" = "line_too_long 2" ]
  rm records
  run amp-validate -e records --max-depth 2 good
  [ "$status" -eq 1 ]
  [ "$(jq -r .code records)" = too_deep ]
}

@test "--fail-fast stops at the first refused line and says where" {
  { cat good; echo bad; cat good2; } >in
  run --separate-stderr amp-validate --fail-fast in
  [ "$status" -eq 1 ]
  [ "$output" = "$(cat good)" ]
  [[ $stderr == *"stopped at line 2, byte $(wc -c <good)"* ]]
}

@test "a line passes while the input stays open" {
  mkfifo pipe
  amp-validate <pipe >out &
  exec 7>pipe
  cat good >&7
  wait_until 30 has_lines out 1
  cat good2 >&7
  wait_until 30 has_lines out 2
  exec 7>&-
  wait $!
}

@test "a FIFO may be an operand; its first writer may come late" {
  mkfifo pipe
  amp-validate pipe >out 2>err &
  local pid=$!
  cat good >pipe
  wait "$pid"
  cmp good out
}

@test "a FIFO may take the records" {
  mkfifo errors
  cat errors >got &
  local pid=$!
  run amp-validate -e errors <<<nonsense
  [ "$status" -eq 1 ]
  wait "$pid"
  [ "$(jq -r .code got)" = invalid_json ]
}

@test "a reader that leaves ends it quietly" {
  local i
  for i in $(seq 2000); do cat good; done >in
  set +o pipefail
  amp-validate in 2>err | head -n 1 >out
  [ "$(wc -l <out)" -eq 1 ]
  [ ! -s err ]
}

@test "a full disk is 74, for the lines and for the records" {
  [ -c /dev/full ] || skip "no /dev/full"
  run --separate-stderr bash -c 'amp-validate good >/dev/full'
  [ "$status" -eq 74 ]
  [[ $stderr == *"amp-validate: error: "* ]]
  run --separate-stderr amp-validate -e /dev/full <<<nonsense
  [ "$status" -eq 74 ]
}

@test "an input that is not there is 65, a directory 74; the others are still read" {
  run --separate-stderr amp-validate nowhere good
  [ "$status" -eq 65 ]
  [ "$output" = "$(cat good)" ]
  [[ $stderr == *nowhere* ]]
  mkdir dir
  run --separate-stderr amp-validate dir good
  [ "$status" -eq 74 ]
  [ "$output" = "$(cat good)" ]
}

@test "TERM ends it with 130 after whole lines" {
  mkfifo pipe
  amp-validate <pipe >out &
  local pid=$! status=0
  exec 7>pipe
  { cat good; printf '{"half'; } >&7
  wait_until 30 has_lines out 1
  kill -TERM "$pid"
  wait "$pid" || status=$?
  exec 7>&-
  [ "$status" -eq 130 ]
  cmp good out
}

@test "records are appended, and hold what the documentation says" {
  echo first >records
  message task_dispatch '.payload.risk_level = "huge"' >in
  run amp-validate -e records in
  [ "$status" -eq 1 ]
  [ "$(head -n 1 records)" = first ]
  tail -n 1 records | jq -e '
    (keys_unsorted == ["time", "tool", "file", "line", "offset", "protocol", "type", "id", "code", "field",
      "pointer", "message", "found", "expected", "rule", "severity"]) and
    .tool == "amp-validate" and .file == "in" and .line == 1 and .protocol == "amp" and .type == "task_dispatch" and
    .id == "task_dispatch-T-2026-044-1772116327001" and .code == "bad_enum" and
    .field == "payload.risk_level" and .pointer == "/payload/risk_level" and
    .rule == "enum" and .severity == "error" and
    .expected == "one of low, medium, high" and .found == "\"huge\""'
  # The offset is where the value stands.
  [ "$(tail -c +"$(($(tail -n 1 records | jq .offset) + 1))" in | head -c 6)" = '"huge"' ]
}

@test "without -e a fault is one readable line" {
  run --separate-stderr amp-validate <<<"$(message task_dispatch '.from = "Executer"')"
  [ "$status" -eq 1 ]
  [ "${#stderr_lines[@]}" -eq 1 ]
  [ "$stderr" = 'amp-validate: error: stdin:1: from: bad_enum: is not one of the allowed values; did you mean `executor`? found "Executer"; expected one of admin, coordinator, executor, reviewer, system' ]
}

@test "a misspelt field gets the right one named" {
  run --separate-stderr amp-validate <<<"$(message task_dispatch \
    '.payload.risk_levl = "low"')"
  [[ $stderr == *'did you mean `risk_level`?'* ]]
}

@test "a missing field says what it is for" {
  run --separate-stderr amp-validate <<<"$(message task_dispatch 'del(.payload.branch)')"
  [ "$stderr" = "amp-validate: error: stdin:1: payload.branch: missing_field: is missing (the branch to work on)" ]
  run --separate-stderr amp-validate <<<"$(message review_verdict 'del(.payload.issues)')"
  [[ $stderr == *"payload.issues: missing_field: is missing (what is wrong)" ]]
  # The schema that requires it is in another file than the message's.
  run --separate-stderr amp-validate <<<'{"message_id":"5a1d9c8e-6b3f-4a87-8f5e-91a2c0ab1234","producer_id":"cli","correlation_id":"7f3f41a2-2017-4b8f-9b8b-2ad3caaee001","sequence_number":1,"retry_count":0,"message_type":"NEGOTIATION","content_type":"application/json","content_length":292,"payload":{"kind":"policy","ts":1,"negotiation_id":"7f3f41a2-2017-4b8f-9b8b-2ad3caaee001","profile":"MEDIUM","policy":{"max_rounds":10,"score_threshold":0.7,"diff_tolerance":0.3,"round_timeout_ms":30000,"token_budget_per_round":4096,"total_token_budget":0,"oscillation_limit":3,"hitl":{"mode":"None"}}}}'
  [[ $stderr == *"payload.policy.scoring: validation_error: is missing (how proposals are scored)"* ]]
  # A condition takes it from the schema around it, but not from the schema of another object.
  echo '{"properties":{"name":{"description":"outer"},"in":{"then":{"required":["name"]},"if":{}}},"if":{},"then":{"required":["name"]}}' \
    >"$BATS_TEST_TMPDIR/schema"
  run --separate-stderr amp-validate -S "$BATS_TEST_TMPDIR/schema" <<<'{"in":{}}'
  [ "$stderr" = "amp-validate: error: stdin:1: name: schema_violation: is missing (outer)
amp-validate: error: stdin:1: in.name: schema_violation: is missing" ]
}

@test "input that is not JSON is reported with its place and the text there" {
  printf '%s\n' '{"msg_id":"abc' '{"msg_id":"a,"type":"x"}' '{"a":1,"a":2}' '{"a":[1,' 'hello' >in
  run --separate-stderr amp-validate in
  [ "$status" -eq 1 ]
  # An open string is reported as that and never as a field that is missing.
  [ "${stderr_lines[0]}" = 'amp-validate: error: in:1: invalid_json: string not closed, at byte 11: "abc' ]
  [[ ${stderr_lines[1]} == *'perhaps a quote is missing'*', at byte 15: type":"x"}' ]]
  [[ ${stderr_lines[2]} == *'in:3: duplicate_key: '*', at byte 8: "a":2}' ]]
  [[ ${stderr_lines[3]} == *'in:4: invalid_json: the text ends where a value is wanted, at byte 9' ]]
  [ "${#stderr_lines[@]}" -eq 5 ]
  run --separate-stderr amp-validate -e - in
  [ "$(jq -r '"\(.line) \(.offset) \(.found)"' <<<"$stderr" | head -n 2 | xargs -d '\n')" = \
    '1 10 "abc 2 29 type":"x"}' ]
}

@test "hostile text cannot drive the terminal" {
  message task_dispatch '.payload.risk_level = "a\u001b[2J\u009b\u202eb"' >in
  run --separate-stderr amp-validate in
  [ "$status" -eq 1 ]
  run -1 grep -qP '[\x00-\x08\x0b-\x1f\x7f]|\xc2[\x80-\x9f]|\xe2\x80\xae' <<<"$stderr"
}

@test "usage errors are 64" {
  run amp-validate -p nonsense
  [ "$status" -eq 64 ]
  run amp-validate --no-such-option
  [ "$status" -eq 64 ]
  run amp-validate --explain no_such_code
  [ "$status" -eq 64 ]
  run amp-validate --print-schema no/such
  [ "$status" -eq 64 ]
}

@test "the codes explain themselves and the documentation knows them" {
  run amp-validate --explain branch_violation
  [ "$status" -eq 0 ]
  [ "${lines[0]}" = "branch_violation (error, AMP/1.0)" ]
  [[ ${lines[1]} == "          The dispatch names a protected branch." ]]
  [[ $output == *"  Source: AMP "* && $output == *"  Fix:    "* ]]
  # A code of several protocols is explained for each, in whatever case it is written.
  run amp-validate --explain BAD_ENUM
  [[ $output == *"(error, AMP/1.0)"*"(error, Runtime Protocol v1)"* ]]
  run -1 grep -E '.{79}' <<<"$output"
  run --separate-stderr amp-validate --explain branchviolation
  [ "$status" -eq 64 ]
  [[ $stderr == *'did you mean `branch_violation`?'* ]]
  amp-validate --explain all >all
  # code, severity, protocol, meaning, source, how to mend: nothing is left unsaid.
  awk -F'\t' '{ for (i = 1; i <= 6; i++) if (NF != 6 || $i == "") { print; bad = 1 } } END { exit bad }' all
}

@test "the schemas that are compiled in are the files" {
  local s
  while read -r s; do
    # One that refers to others is printed with them.
    grep -q '"\$ref": *"[^#]' "$AMP_TOP/schemas/$s.json" || amp-validate --print-schema "$s" | cmp - "$AMP_TOP/schemas/$s.json"
  done < <(amp-validate --list)
  local p
  for p in amp sw4rm aop aof rtp; do
    [ "$(amp-validate --list | grep -c "^$p/")" -ge 4 ]
    amp-validate --print-schema "$p" | jq -sr 'length' | grep -qx "$(amp-validate --list | grep -c "^$p/")"
  done
  run --separate-stderr amp-validate --print-schema amp/task_dispach
  [ "$status" -eq 64 ]
  [[ $stderr == *'did you mean `amp/task_dispatch`?'* ]]
}

@test "of a line with very many faults 64 are printed, and the number of the others" {
  message task_dispatch | jq -c '.payload += ([range(300) | {key: "f\(.)", value: 1}] | from_entries)' >in
  run amp-validate -e records in
  [ "$status" -eq 1 ]
  [ "$(wc -l <records)" -eq 65 ]
  [ "$(tail -1 records | jq -r '.code, .message')" = "more_findings
at least 236 more findings are left out" ]
  [ "$(amp-validate --check in | jq .errors)" -eq 300 ]
}

@test "violations of a schema are reported by keyword" {
  echo '{"dependentRequired": {"a": ["b"]}, "properties": {"n": {"multipleOf": 3},
    "o": {"anyOf": [{"type": "string"}, {"type": "array"}]}, "p": {"not": {"type": "null"}},
    "q": {"contains": {"const": 1}}, "r": {"prefixItems": [true], "items": false}}}' >schema
  echo '{"a":1,"n":4,"o":1,"p":null,"q":[2],"r":[1,2]}' >in
  run amp-validate -e records -S schema in
  [ "$status" -eq 1 ]
  [ "$(jq -r '.field + " " + .message' records)" = "b is missing
n is not such a multiple
o matches no alternative
p is excluded
q has no such element
r[1] is one element too many" ]
}

# numbered PRODUCER NUMBER [RETRIES]: a message of SW4RM.
numbered() {
  printf '{"message_id":"5a1d9c8e-6b3f-4a87-8f5e-%012d","producer_id":"%s","correlation_id":"7f3f41a2-2017-4b8f-9b8b-2ad3caaee001","sequence_number":%d,"retry_count":%d,"message_type":"DATA","content_type":"application/json","content_length":2,"payload":{}}\n' \
    "$2" "$1" "$2" "${3:-0}"
}

@test "SW4RM: a sequence_number that goes backwards is a warning, and an error with --strict, in parts and in threads" {
  { numbered ann 5; numbered bob 3; numbered ann 5; numbered ann 4; numbered ann 2 1; numbered ann 6; numbered bob 2; } >in
  run -0 --separate-stderr bash -c 'amp-validate <in | cmp - in'
  [ "$(grep -c 'warning: stdin:[47]: sequence_number: validation_error: is lower than the last number of its sender' <<<"$stderr")" = 2 ]
  [ "$(wc -l <<<"$stderr")" = 2 ]
  sed '4d; 7d' in >good
  for jobs in 1 4; do
    ends 1 amp-validate --strict -e errors -j "$jobs" <in >out 2>/dev/null
    cmp out good
    [ "$(jq -r '"\(.line) \(.code) \(.found) \(.expected)"' errors | tail -n 2 | paste -sd,)" = \
      "4 validation_error 4 at least 5,7 validation_error 2 at least 3" ]
  done
  # A stream that begins again is one fall of each producer; all of it is refused with --strict.
  { numbered ann 1; numbered ann 2; numbered ann 3; } >once
  run -0 --separate-stderr amp-validate once once
  [ "$(wc -l <<<"$stderr")" = 1 ]
  ends 1 amp-validate --strict once once >out 2>/dev/null
  { cat once; numbered ann 3; } | cmp out -
  # What was said of the first parts of a large input counts for the last one; what is invalid does not count.
  { numbered ann 900 | sed 's/"retry_count":0,//'; for n in $(seq 400 700); do numbered ann "$n"; done; numbered ann 500; } >large
  for jobs in 1 4; do
    run -1 --separate-stderr amp-validate -j "$jobs" <large
    [ "$(grep -c warning: <<<"$stderr")" = 1 ]
    [[ $stderr == *"stdin:303: sequence_number"*"at least 700"* ]]
  done
}
