# shellcheck shell=bash disable=SC2154
# Sample cases of AOF/1: see protocols.sh.

aof_case() {
  given '.given == {} and (.input | type == "object") and (.input | has("content_bytes") | not) and
    ((.expect | has("payload")) | not)' || {
    later "what depends on tasks, on payloads or on the 10 MiB limit is not checked yet"
    return
  }
  check_line
  if given '.expect.result == "envelope"'; then
    passes
  elif [ -z "$first" ] && given .input.payload.payload; then
    later "payloads are not checked yet"
  else
    refused aof "$(want reason)"
  fi
}
