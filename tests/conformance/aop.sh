# shellcheck shell=bash disable=SC2154
# Sample cases of AOP: see protocols.sh. "contract" says what the contract asks for; where it says
# nothing, the case only has to be decided in a defined way.

# The input; what is too large for the file is made here, from a minimal message of the others. A
# text stands for itself.
aop_input() {
  local kind
  if given '.input | type == "string" and startswith("(big")'; then
    kind=$(jq -r .kind <<<"$case")
    jq -s -c --arg kind "$kind" --arg what "$what" '
      def count: $what | capture("(?<n>[0-9]+)$").n | tonumber;
      [.[] | select(.kind == $kind and (.input | type == "object") and .contract == "accept") | .input][0]
      | if $what | test("objective") then .task.objective = "x" * count
        elif $kind == "RESPONSE" then .execution_summary.summary = "x" * (500 * 1024)
        else .task.objective = "x" * (200 * 1024) end' "$file"
  elif given '.input | type == "string"'; then
    jq -r .input <<<"$case"
  else
    jq -c .input <<<"$case"
  fi
}

# What is effective, as --effective prints it: JQ-CONDITION
aop_effective() {
  amp-validate --effective -p aop "$dir/in" >"$dir/effective" 2>"$dir/err"
  if jq -se "length == 1 and (.[0] | $1)" "$dir/effective" >/dev/null; then
    pass
  else
    fail "effective is $(cat "$dir/effective" "$dir/err")"
  fi
}

# Messages of which the last is checked against those before it, a RESPONSE against its TASK: CONTRACT
aop_pair() {
  jq -c '.input[:-1][]' <<<"$case" | amp-ack track --state "$dir/state" >/dev/null 2>"$dir/err" || {
    fail "a message before the last is refused: $(cat "$dir/err")"
    return
  }
  jq -c '.input[-1]' <<<"$case" >"$dir/in"
  check_line --state "$dir/state" -p aop
  case $1 in
  "accept+"*) passes "${1#accept+}" ;;
  accept*) passes ;;
  E_*) refused aop "${1%%[!A-Z_]*}" ;;
  *) fail "nothing here says what \"$1\" means for messages" ;;
  esac
}

aop_case() {
  local contract value
  contract=$(jq -r '.contract // empty' <<<"$case")
  value=${contract##* }
  given '.input | type == "array" and length > 1 and all(type == "object")' && {
    aop_pair "$contract"
    return
  }
  aop_input >"$dir/in"
  check_line -p aop
  case $contract in
  "accept, effective write set empty") aop_effective '.write_paths.value == []' ;;
  "accept, effective read set empty") aop_effective '.read_paths.value == []' ;;
  "accept, effective timeout "*) aop_effective ".timeout_seconds.value == $value" ;;
  "accept, effective network "*) aop_effective ".network_access.value == \"$value\"" ;;
  "accept, effective cost "* | "accept, effective budget "*) aop_effective ".max_cost_usd.value == $value" ;;
  "accept+"*) passes "${contract#accept+}" ;;
  AMBIGUOUS*SOFT*) passes E_PAYLOAD_SIZE_WARNING ;;
  accept*) passes ;;
  "not stated"*)
    if [ -z "$first" ]; then passes; else refused aop "$(cut -d ' ' -f 2 <<<"$first")"; fi
    ;;
  V1* | "v1"*) passes ;;
  UNSTRUCTURED*) refused aop E_PARSE_FAILURE ;;
  *"+VERSION_FALLBACK") aop_fallback "${contract%+*}" ;;
  E_*) refused aop "${contract%%[!A-Z_]*}" ;;
  *) fail "nothing here says what \"$contract\" means" ;;
  esac
}

# The refusal is the event, and it is valid itself.
aop_fallback() {
  amp-validate --nack -p aop "$dir/in" >"$dir/nack" 2>/dev/null
  if ! amp-validate "$dir/nack" >/dev/null 2>"$dir/err"; then
    fail "the refusal is refused: $(cat "$dir/err")"
  elif ! jq -se --arg code "$1" 'length == 1 and (.[0] | .event == "VERSION_FALLBACK" and
    .error_details.error_code == $code and (.v1_prompt | startswith("# Task")))' \
    "$dir/nack" >/dev/null; then
    fail "no such event: $(cat "$dir/nack")"
  else
    refused aop "$1"
  fi
}
