# slow
# Large hostile input: bounded time and memory. The bounds are generous, for machines that do other
# things besides; what is far from linear passes none of them.

load ../lib
load ../messages

setup() {
  need jq
  cd "$BATS_TEST_TMPDIR" || return 1
  message task_dispatch >good
  # A sanitizer keeps memory of its own.
  many=$(grep -q fsanitize "$AMP_BUILD/flags" && echo 16 || echo 1)
}

# within SECONDS MIB COMMAND...: the command's status, or 98 and 99 when it took more than that.
# Under valgrind without limits.
within() {
  if [ -e "$AMP_BUILD/valgrind" ]; then
    "${@:3}"
    return
  fi
  "$AMP_BUILD/tests/fixture/within" "$(patient $(($1 * many)))" $(($2 * many)) "${@:3}"
}

# filler N: N bytes
filler() {
  head -c "$1" /dev/zero | tr '\0' x
}

# padded N: the good message as a line of N bytes, without its line end
padded() {
  local text
  text=$(jq -c '.payload.description = "@"' good)
  printf '%s' "${text%%@*}"
  filler $(($1 - ${#text} + 1))
  printf '%s' "${text#*@}"
}

@test "lines of 32 MiB, and of one byte more" {
  local most=$((32 * 1024 * 1024))
  { cat good; padded $most; echo; cat good; padded $((most + 1)); echo; cat good; } >in
  within 30 200 amp-validate -e records in >out || [ $? -eq 1 ]
  [ "$(jq -r '"\(.line) \(.code)"' records)" = "4 line_too_long" ]
  cmp out <(sed 4d in)
  # Far longer lines cost no more.
  { cat good; filler $((200 * 1024 * 1024)); echo; cat good; } >in
  run -1 --separate-stderr within 30 200 amp-validate -e records in
  [ "${#lines[@]}" -eq 2 ]
}

@test "a line without an end" {
  { cat good; filler $((100 * 1024 * 1024)); } >in
  run -1 --separate-stderr within 30 200 amp-validate -e records in
  [ "$(jq -r '"\(.line) \(.code)"' records)" = "2 line_too_long" ]
  { cat good; printf '{"a":"'; filler $((30 * 1024 * 1024)); } >in
  rm records
  run -1 --separate-stderr within 30 200 amp-validate -e records in
  [ "$(jq -r '"\(.code) \(.message)"' records)" = "invalid_json string not closed" ]
}

@test "a hundred thousand names in one object" {
  seq 100000 | jq -nc '[inputs] | map({key: "k\(.)", value: .}) | from_entries' >names
  { jq -c --slurpfile n names '.payload.tech_constraints = $n[0]' good; cat good; } >in
  within 10 100 amp-validate in >out
  cmp in out
  # The last of them twice, once with an escape; and none that AMP knows.
  { sed 's/}$/,"k100000":1}/' names; sed 's/}$/,"\\u006b1":1}/' names; cat names; cat good; } >in
  run -1 within 10 100 amp-validate -e records in
  [ "$(jq -r .code records | xargs)" = "duplicate_key duplicate_key unknown_protocol" ]
  rm records
  jq -c --slurpfile n names '. + $n[0]' good >in
  run -1 within 10 100 amp-validate -e records in
  [ "$(jq -r .code records | sort | uniq -c | xargs)" = "1 more_findings 64 unknown_field" ]
}

@test "names that other hash tables would put into one place" {
  # 2^17 names of "Aa" and "BB", which many hashes take for one; and long ones that differ in the
  # middle only.
  awk 'BEGIN {
    for (i = 0; i < 131072; i++) {
      name = ""
      for (b = 1; b < 131072; b *= 2) name = name (int(i / b) % 2 ? "Aa" : "BB")
      printf "%s\"%s\":0", i ? "," : "", name
    }
    for (i = 0; i < 100000; i++) printf ",\"%s%d%s\":0", "aaaaaaaaaaaaaaaaaaaa", i, "zzzzzzzzzzzzzzzzzzzz"
  }' >names
  [ "$(tr ',' '\n' <names | sort -u | wc -l)" -eq 231072 ]
  { jq -c .payload.tech_constraints=12345 good | sed 's/12345.*/{/' | tr -d '\n'; cat names
    jq -c .payload.tech_constraints=12345 good | sed 's/.*12345/}/'; } >in
  within 15 150 amp-validate in >out
  cmp in out
}

# lines N TEXT
lines_of() {
  awk -v n="$1" -v text="$2" 'BEGIN { while (n-- > 0) print text }'
}

@test "a million values in a line, and one more" {
  zeros() { lines_of $(($1 - 1)) 0 | tr '\n' , && echo 0; }
  # A message's own values and names count too.
  { jq -c .payload.tech_constraints=12345 good | sed 's/12345.*/{"a":[/' | tr -d '\n'
    zeros 999900 | tr -d '\n'
    jq -c .payload.tech_constraints=12345 good | sed 's/.*12345/]}/'; cat good; } >in
  within 10 150 amp-validate in >out
  cmp in out
  { echo "[$(zeros 1000000)]"; cat good; } >in
  run -1 within 10 150 amp-validate -e records in
  [ "$(jq -r .code records)" = too_many_tokens ]
}

@test "a million lines of two bytes" {
  lines_of 1000000 '{}' >in
  run -1 within 30 20 amp-validate -e /dev/null in
  run -1 within 30 40 amp-validate -e /dev/null -j 2 in
  { lines_of 1000000 ''; cat good; } >in
  within 10 20 amp-validate in | cmp - good
}

@test "faults without end in one line" {
  # Every item of a list is wrong, and every name unknown: told is what fits.
  jq -nc '[range(200000)] | map({subtask_id: 5})' >list
  jq -c --slurpfile l list '.payload.subtasks = $l[0]' good >in
  run -1 within 20 300 amp-validate -e records in
  [ "$(wc -l <records)" -lt 1000 ]
  # Deep inside long names.
  jq -nc 'reduce range(60) as $i (0; {("n" * 10000): .})' >deep
  jq -c --slurpfile l deep '.payload.tech_constraints = $l[0] | .payload.subtasks[0].x = $l[0]' good >in
  run -1 within 20 100 amp-validate -e records in
  [ "$(awk '{ print length }' records | sort -n | tail -n 1)" -lt 20000 ]
}

@test "random bytes" {
  # The same in every run.
  LC_ALL=C awk 'BEGIN { srand(7); for (i = 0; i < 2000000; i++) printf "%c", int(rand() * 256) }' >in
  run -1 within 30 60 amp-validate -e records in
  [ -z "$(jq -r .code records | sort -u | grep -vxE 'invalid_json|invalid_utf8|unknown_protocol')" ]
}
