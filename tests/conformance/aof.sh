# shellcheck shell=bash disable=SC2154
# Sample cases of AOF/1: see protocols.sh. The input is the event that a router would get, so it is
# checked with -p aof.

aof_case() {
  given '.given == {} or (.expect.verdict // "" | test("reject"))' || {
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
  protocol.message.unknown) refused aof protocol.message.unknown ;;
  protocol.message.rejected) refused aof "$(want reason)" ;;
  *)
    # The defaults of a payload are filled in by those who read it; the line stays as it is.
    if given '.expect | .result == "envelope" or (has("result") and .result == null)'; then
      passes
    elif [[ $(want verdict) = *reject* ]]; then
      if [ -n "$first" ]; then pass; else fail "was accepted"; fi
    else
      later "is about what a router does with the message"
    fi
    ;;
  esac
}
