# Input made to hurt: every line gets a verdict with a code of its own, and what stands around it
# passes. Large input: validate_hostile_large.bats.

load ../lib
load ../messages

setup() {
  need jq
  cd "$BATS_TEST_TMPDIR" || return 1
  message task_dispatch >good
}

# line CODE FORMAT [ARG...]: one more hostile line, by printf, and the code that it shall get.
line() {
  # shellcheck disable=SC2059
  printf "$2" "${@:3}" >>in
  printf '\n' >>in
  cat good >>in
  echo "$1" >>want
}

# judged [OPTION...]: each odd line gets its code, each even one passes.
judged() {
  local status=0
  rm -f records
  timeout 60 amp-validate -e records "$@" in >out 2>err || status=$?
  [ "$status" -eq 1 ] || {
    echo "status $status: $(cat err)" >&2
    return 1
  }
  jq -r '[.line, .code] | @tsv' records | sort -u -k1,1n >got
  awk -v OFS='\t' '{ print 2 * NR - 1, $0 }' want | diff - got >&2
  awk 'NR == FNR { good = $0; next } { print good }' good want | cmp - out
  # Whatever stood there, the records may go to a terminal.
  run -1 grep -qP '[\x00-\x08\x0b-\x1f\x7f]' records
}

# times N TEXT
times() {
  head -c $(($1 * ${#2})) < <(yes "$2" | tr -d '\n' 2>/dev/null)
}

@test "bytes that are no text" {
  line invalid_utf8 '{"a":"\xff"}'
  line invalid_utf8 '{"a":"\x80"}'
  line invalid_utf8 '{"a":"\xc3"}'
  line invalid_utf8 '{"a":"\xe2\x82"}'
  line invalid_utf8 '{"a":"\xf0\x9f\x98"}'
  # Overlong forms of a slash, and of a quote that would end the string.
  line invalid_utf8 '{"a":"\xc0\xaf"}'
  line invalid_utf8 '{"a":"\xe0\x80\xaf"}'
  line invalid_utf8 '{"a":"\xf0\x80\x80\xaf"}'
  line invalid_utf8 '{"a":"\xc0\xa2,"b":1}'
  # Surrogates as bytes, beyond Unicode, five- and six-byte forms.
  line invalid_utf8 '{"a":"\xed\xa0\x80"}'
  line invalid_utf8 '{"a":"\xed\xa0\xbd\xed\xb8\x80"}'
  line invalid_utf8 '{"a":"\xf4\x90\x80\x80"}'
  line invalid_utf8 '{"a":"\xf8\x88\x80\x80\x80"}'
  line invalid_utf8 '{"a":"\xfc\x84\x80\x80\x80\x80"}'
  # In a key, between tokens, alone.
  line invalid_utf8 '{"\xff":1}'
  line invalid_utf8 '{"a":1}\xff'
  line invalid_utf8 '\xff'
  # UTF-16 and UTF-32, with and without their marks, and the mark of UTF-8.
  line invalid_utf8 '\xff\xfe{\x00}\x00'
  line invalid_utf8 '\xfe\xff\x00{\x00}'
  line invalid_json '{\x00"\x00a\x00"\x00:\x001\x00}\x00'
  line invalid_json '\x00{\x00"\x00a\x00"\x00:\x001\x00}'
  line invalid_json '{\x00\x00\x00}\x00\x00\x00'
  line invalid_json '\xef\xbb\xbf{"a":1}'
  # A program, an archive, random bytes.
  line invalid_json '\x7fELF\x02\x01\x01\x00'
  line invalid_json 'PK\x03\x04\x14\x00'
  line invalid_json '\x1f\x8b\x08\x00\x9c'
  judged
}

@test "characters that JSON does not have in strings" {
  local i
  for i in 0 1 2 8 9 b c e f 1b 1f; do
    line invalid_json "{\"a\":\"x\\x${i}y\"}"
  done
  line invalid_json '{"a\x00":1}'
  line invalid_json '{"a":1\x00}'
  line invalid_json '\x00'
  line invalid_utf8 '%s' '{"a":"\ud800"}'
  line invalid_utf8 '%s' '{"a":"\udc00"}'
  line invalid_utf8 '%s' '{"a":"\ud83d\ud83d"}'
  line invalid_utf8 '%s' '{"a":"\ude00\ud83d"}'
  line invalid_utf8 '%s' '{"a":"\ud83dx"}'
  line invalid_utf8 '%s' '{"\udfff":1}'
  line invalid_json '%s' '{"a":"\x41"}'
  line invalid_json '%s' '{"a":"\u12"}'
  line invalid_json '%s' '{"a":"\u{41}"}'
  judged
}

@test "a string that is not closed is reported as such, wherever it ends" {
  local text i
  text=$(cat good)
  # Cut inside each string of the message.
  for ((i = 12; i < ${#text}; i += 7)); do
    printf '%s\n' "${text:0:i}"
  done >in
  run -1 --separate-stderr amp-validate -e records in
  [ "$(jq -r .code records | sort -u)" = invalid_json ]
  [ "$(jq -r .line records | sort -u | wc -l)" -eq "$(wc -l <in)" ]
  [ "$(jq -r 'select(.message | test("string not closed")) | .line' records | wc -l)" -ge 80 ]
  run -1 grep -q missing_field records
  # A quote is missing in the middle: told where the next one does not fit.
  sed 's/"executor"/"executor/' good >in
  rm records
  run amp-validate -e records in
  [ "$(jq -r .code records)" = invalid_json ]
  [[ $(jq -r .message records) == *"a quote is missing"* ]]
}

@test "numbers" {
  # As a whole number, huge is huge, and nothing is rounded.
  local n
  for n in 1e400 1E+400 -1e400 1e99999999999999999999 9223372036854775808 18446744073709551616 \
    "$(times 100000 9)" "1$(times 100000 0)" -1 31536001 0.1e400; do
    line bad_value '%s' "$(jq -c .ack_timeout_sec=12345 good | sed "s/12345/$n/")"
  done
  for n in 1e-400 0.5 "0.$(times 100000 3)" 300.0000000000000000001 1e-99999999999999999999; do
    line bad_type '%s' "$(jq -c .ack_timeout_sec=12345 good | sed "s/12345/$n/")"
  done
  for n in 01 +1 .5 5. 1e 0x10 1_000 NaN Infinity -Infinity - 1e+ "0$(times 1000 0)"; do
    line invalid_json '%s' "$(jq -c .ack_timeout_sec=12345 good | sed "s/12345/$n/")"
  done
  judged
  # And the same number written otherwise is the same.
  for n in 300 300.0 3e2 3.00E+2 30000e-2 "300.$(times 100000 0)" "3$(times 1000 0)e-998"; do
    jq -c .ack_timeout_sec=12345 good | sed "s/12345/$n/"
  done >in
  amp-validate in | cmp - in
}

@test "a name twice, however it is written" {
  line duplicate_key '%s' '{"a":1,"a":1}'
  line duplicate_key '%s' '{"a":1,"\u0061":2}'
  line duplicate_key '%s' '{"\u0061":1,"\u0061":2}'
  line duplicate_key '%s' '{"é":1,"\u00e9":2}'
  line duplicate_key '%s' '{"😀":1,"\ud83d\ude00":2}'
  line duplicate_key '%s' '{"\/":1,"/":2}'
  line duplicate_key '%s' '{"\n":1,"\u000a":2}'
  line duplicate_key '%s' '{"":1,"":2}'
  line duplicate_key '%s' '{"x":{"y":[{"a":1,"b":2,"a":3}]}}'
  line duplicate_key '%s' '{"__proto__":1,"__proto__":2}'
  line duplicate_key '%s' "$(sed 's/^{/{"msg_id":"other",/' good)"
  line duplicate_key '%s' "$(sed 's/^{/{"msg\\u005fid":"other",/' good)"
  # Not the same name: another case, another normal form, an escape of an escape.
  line unknown_protocol '%s' '{"a":1,"A":2}'
  line unknown_protocol '%s' '{"\u00e9":1,"e\u0301":2}'
  line unknown_protocol '%s' '{"\\u0061":1,"a":2}'
  line unknown_protocol '%s' '{"a":{"a":{"a":1}}}'
  judged
}

@test "nesting" {
  line too_deep '%s' "$(times 129 '[')"
  line too_deep '%s' "$(times 100000 '[')"
  line too_deep '%s' "$(times 100000 '{"a":')"
  line too_deep '%s' "$(times 100000 '[{"a":')"
  line too_deep '%s' "$(times 200 '[')$(times 200 ']')"
  line too_deep '%s' "$(jq -c .payload.tech_constraints=0 good | sed "s/\"tech_constraints\":0/\"tech_constraints\":{\"a\":$(times 128 '[')$(times 128 ']')}/")"
  line unknown_protocol '%s' "$(times 128 '[')$(times 128 ']')"
  line invalid_json '%s' "$(times 128 '[')$(times 129 ']')"
  line invalid_json '%s' "$(times 128 '[')"
  judged
}

@test "line ends" {
  # A carriage return ends no line; before a line feed it belongs to it.
  line invalid_json '{"a":1}\r{"a":2}\r'
  line invalid_json '\x0b'
  line invalid_json '\x0c{"a":1}'
  line unknown_protocol '{"a":1}\r'
  line unknown_protocol '\r{"a":1}\r'
  line unknown_protocol '\t{"a":1} \t'
  line invalid_json '{"a":1}\xc2\x85'
  line invalid_json '{"a":1}\xe2\x80\xa8'
  judged
  # Nothing but carriage returns: one line without a value.
  printf '\r\r\r\r' >in
  rm records
  run -1 --separate-stderr amp-validate -e records in
  [ -z "$output" ]
  [ "$(jq -r .code records)" = invalid_json ]
}

@test "names and values made for other readers" {
  line unknown_protocol '%s' '{"__proto__":{"msg_id":"x"}}'
  line unknown_protocol '%s' '{"constructor":{"prototype":{}}}'
  line unknown_protocol '%s' '{"":""}'
  line unknown_protocol '%s' '{"msg_id\u0000":1}'
  line missing_field '%s' '{"msg_id":"%s%n%s%n"}'
  line missing_field '%s' '{"msg_id":"$(reboot)`reboot`"}'
  line missing_field '%s' '{"msg_id":"\u001b[2J\u001b]0;x\u0007\u202e\u0085\u200b"}'
  line bad_enum '%s' "$(jq -c '.from = "\u001b[31mroot\u0000"' good)"
  line bad_value '%s' "$(jq -c '.payload.branch = "x\u0000"' good)"
  line bad_task_id '%s' "$(jq -c '.task_id = "T-2026-044\u0000"' good)"
  line bad_task_id '%s' "$(jq -c '.task_id = "T-2026-044\n"' good)"
  line bad_timestamp '%s' "$(jq -c '.timestamp = "2026-02-26T14:32:07Z\n"' good)"
  judged
}

@test "one byte at a time through a FIFO" {
  { cat good; printf '{"a":"\xf0\x9f'; echo; cat good; } >in
  cat good good >want
  mkfifo fifo
  dd if=in of=fifo bs=1 2>dd.log &
  run --separate-stderr amp-validate -e records fifo
  wait
  [ "$status" -eq 1 ]
  cmp - want <<<"$output"
  [ "$(jq -r '"\(.line) \(.code)"' records)" = "2 invalid_utf8" ]
}

@test "patterns of a user's schema that explode" {
  local p
  # The engine gives up with a code; or it finds the answer, as it should.
  printf '"%s!"\n' "$(times 40000 a)" >in
  for p in '^(a+)+$' '^(a|aa)+$' '^(a|a?)+$' '^(.*a){20}$' '^(([a-z])+.)+[A-Z]([a-z])+$' \
    '^(?:a?){40}a{40}$' '(a*)*b' '(?=(a+))a*b\\1' '^(a*)*$'; do
    rm -f records
    printf '{"pattern":"%s"}\n' "$p" >schema
    run timeout 60 amp-validate -S schema -e records in
    [ "$status" -eq 1 ]
    [[ $(jq -r .code records) = @(pattern_limit|schema_violation) ]]
  done
  for p in "$(times 20000 '(')" "$(times 5000 '(')$(times 5000 ')')" '[' '(?<n>' 'a{99999}' \
    '\\p{Nope}' '(?(R)a|b)' '(?R)' '\\g{1}'; do
    printf '{"pattern":"%s"}\n' "$p" >schema
    run timeout 60 amp-validate -S schema in
    [ "$status" -eq 65 ]
    [[ $output = *"not a regular expression"* ]]
  done
}

@test "a name of any length is printed in part, and the stream goes on" {
  jq -nc '{msg_id: "task_dispatch-T-2026-044-1", protocol_version: "AMP/1.0", type: "task_dispatch", from: "coordinator",
    to: "executor", task_id: "T-2026-044", timestamp: "2026-02-26T14:32:07+00:00", requires_ack: true, payload: {
    description: "x", repo: "/srv", branch: "f", subtasks: [{subtask_id: "T-2026-044-S1", description: "d",
    estimated_lines: 1}], acceptance_criteria: ["a"], risk_level: "low"}}' >good
  { jq -c '.["k" * 100000] = 1' good && jq -c '.payload["~" * 200000] = 1' good && cat good; } >in
  run -1 --separate-stderr amp-validate -e records in
  [ "$output" = "$(<good)" ]
  jq -es 'length == 2 and all(.[]; .code == "unknown_field" and (.field | length) <= 1001 and (.pointer | length) <= 1001)' records
}
