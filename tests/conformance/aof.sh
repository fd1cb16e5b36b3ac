# shellcheck shell=bash disable=SC2154
# Sample cases of AOF/1: see protocols.sh. The input is the event that a router would get, so it is
# checked with -p aof.

# The event that the protocol logs instead of an answer, and the record's code.
aof_event() {
  local event reason got
  event=$(want event) reason=$(want reason)
  got=$(amp-validate -p aof --nack "$dir/in" 2>/dev/null | jq -r '"\(.type) \(.payload.reason // "")"')
  if [ "$got" != "$event $reason" ]; then
    fail "the event is \"$got\", not \"$event $reason\""
  elif [ "$event" = protocol.message.unknown ]; then
    refused aof protocol.message.unknown
  else
    refused aof "$reason"
  fi
}

aof_case() {
  given '.given == {} or (.expect.verdict // "" | test("reject")) or
    (.expect.reason // "" | IN("taskId_mismatch", "invalid_json", "invalid_envelope",
                               "invalid_project_id", "payload_too_large"))' || {
    later "needs task directories"
    return
  }
  if given '.input | has("content_bytes")'; then
    jq -r .input.content_bytes <<<"$case" |
      awk '{ n = $1 - length("AOF/1 "); printf "{\"content\":\"AOF/1 "
             while (n-- > 0) printf "x"; print "\"}" }' >"$dir/in"
  fi
  check_line -p aof
  case $(want event) in
  protocol.message.rejected | protocol.message.unknown)
    aof_event
    return
    ;;
  protocol.message.warning)
    passes invalid_acceptance_criteria
    return
    ;;
  esac
  case $(want verdict) in
  *reject*)
    if [ -n "$first" ]; then pass; else fail "was accepted"; fi
    ;;
  *)
    # The defaults of a payload are filled in by those who read it; the line stays as it is.
    if given '.expect | .result == "envelope" or (has("result") and .result == null)'; then
      passes
    else
      later "is about what a router does with the message"
    fi
    ;;
  esac
}
