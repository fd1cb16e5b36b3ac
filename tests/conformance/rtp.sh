# shellcheck shell=bash disable=SC2154
# Sample cases of the Runtime Protocol: see protocols.sh.

# The samples have one word for every field at fault; some name what a gate would say.
rtp_code() {
  case $1 in
  validation) echo bad_value ;;
  default_eta_seconds*) echo eta_range ;;
  *) echo "$1" ;;
  esac
}

rtp_case() {
  given '.input | type == "object"' || {
    later "is about what time or a broker does, not about one message"
    return
  }
  local strange options=()
  strange=$(jq -r '.given // {} | keys - ["now", "task", "index", "agents"] | join(", ")' <<<"$case")
  [ -z "$strange" ] || {
    later "needs a state that nothing here can prepare: $strange"
    return
  }
  if given '.given.task // "pending" | IN("pending", "accepted") | not'; then
    later "needs the history of a task"
    return
  fi
  given .given.now && options+=(--now "$(jq -r .given.now <<<"$case")")
  check_line "${options[@]}"
  case $(want verdict) in
  reject | dead_letter) refused rtp "$(rtp_code "$(want code)")" ;;
  *)
    if given '.expect | .verdict == "accept" or has("targets")'; then
      passes
    else
      later "is about what a broker does with the message"
    fi
    ;;
  esac
}
