# shellcheck shell=bash disable=SC2154
# Sample cases of AOP: see protocols.sh. "contract" says what the contract asks for; where it says
# nothing, the case only has to be decided in a defined way.

# The input; what is too large for the file is made here, from the minimal messages of the others.
aop_input() {
  local file=$1 kind
  kind=$(jq -r .kind <<<"$case")
  if given '.input | type == "object"'; then
    jq -c .input <<<"$case"
    return
  fi
  jq -s -c --arg kind "$kind" --arg what "$what" '
    [.[] | select(.kind == $kind and .contract == "accept") | .input][0]
    | if $what | test("objective") then
        .task.objective = "x" * ($what | capture("(?<n>[0-9]+)$").n | tonumber)
      elif $kind == "RESPONSE" then
        .execution_summary.summary = "x" * (500 * 1024)
      else
        .task.objective = "x" * (200 * 1024)
      end' "$file"
}

aop_has() { amp-validate --options | cut -f 3 | grep -qx -e "$1"; }

# What is effective, as --effective prints it: JQ-CONDITION
aop_effective() {
  aop_has effective || { later "needs --effective" && return; }
  amp-validate --effective "$dir/in" >"$dir/effective" 2>"$dir/err"
  if jq -se "length == 1 and (.[0] | $1)" "$dir/effective" >/dev/null; then
    pass
  else
    fail "effective is $(cat "$dir/effective" "$dir/err")"
  fi
}

aop_case() {
  local contract kind
  contract=$(jq -r .contract <<<"$case") kind=$(jq -r .kind <<<"$case")
  aop_input "$file" >"$dir/in"
  case $contract in
  accept | "not stated") check_line ;;
  "accept, effective"*) ;;
  *) check_line ;;
  esac
  case $contract in
  accept) passes ;;
  "accept, effective write set empty") aop_effective '.write_paths.value == []' ;;
  "accept, effective timeout "*) aop_effective ".timeout_seconds.value == ${contract##* }" ;;
  "accept+E_PAYLOAD_SIZE_WARNING" | AMBIGUOUS*) passes E_PAYLOAD_SIZE_WARNING ;;
  "not stated")
    if [ -z "$first" ]; then passes; else refused aop E_SCHEMA_VALIDATION; fi
    ;;
  UNSTRUCTURED) refused aop E_PARSE_FAILURE ;;
  *"+VERSION_FALLBACK") aop_fallback "${contract%+*}" ;;
  E_*) refused aop "$contract" ;;
  *) fail "nothing here says what \"$contract\" means" ;;
  esac
}

# The refusal is the event, and it is valid itself.
aop_fallback() {
  aop_has nack || { later "needs --nack" && return; }
  amp-validate --nack "$dir/in" >"$dir/nack" 2>/dev/null
  if ! amp-validate "$dir/nack" >/dev/null 2>"$dir/err"; then
    fail "the refusal is refused: $(cat "$dir/err")"
  elif ! jq -se --arg code "$1" 'length == 1 and (.[0] | .event == "VERSION_FALLBACK" and .error_details.error_code == $code
    and (.v1_prompt | startswith("# Task")))' "$dir/nack" >/dev/null; then
    fail "no such event: $(cat "$dir/nack")"
  else
    refused aop "$1"
  fi
}
