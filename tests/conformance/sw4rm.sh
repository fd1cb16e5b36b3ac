# shellcheck shell=bash disable=SC2154
# Sample cases of SW4RM: see protocols.sh.

sw4rm_case() {
  given '(.given // {}) == {} and (.input | type == "object" and has("message_id")) and
    (.expect.verdict // "" | startswith("reject")) and .expect.code == "validation_error"' || {
    later "so far its envelope is checked, no more"
    return
  }
  local strict=()
  [[ $(want verdict) = *strict* ]] && strict=(--strict)
  check_line "${strict[@]}"
  refused sw4rm validation_error
}
