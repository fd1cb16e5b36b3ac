# Standard output that cannot be written, for every filter: an error, said once, never a quiet loss.
load ../lib
load ../messages

setup() {
  cd "$BATS_TEST_TMPDIR"
  message task_dispatch '.from = "admin" | .to = "coordinator"' >in
  message escalation >escalation
  echo resume >answers
}

# filters FUNCTION: calls it with each filter's command; the input is ./in.
filters() {
  local n=0
  "$1" amp-validate
  "$1" amp-route -r 'to=coordinator=>stdout'
  "$1" amp-route --state "s$((++n))" -r 'to=coordinator=>stdout'
  "$1" amp-ack track --state "s$((++n))"
  "$1" amp-ack send --state "s$((++n))"
  "$1" amp-ack show
  "$1" task-dispatch coordinate --state "s$((++n))"
  cp escalation in
  echo '{"hitl":{"allow_operator":true}}' >amp.json
  "$1" hitl-prompt --state "s$((++n))" --answer answers --operator ann --config amp.json
}

@test "a full disk is 74 and named once" {
  try() {
    status=0
    "$@" <in >/dev/full 2>err || status=$?
    [ "$status" -eq 74 ] && [ "$(grep -c 'error: .*No space left on device' err)" -eq 1 ] || {
      echo "$*: status $status"
      cat err
      return 1
    }
  }
  filters try
}

@test "a closed stdout is 74" {
  try() {
    status=0
    "$@" <in >&- 2>err || status=$?
    [ "$status" -eq 74 ] && grep -q error err || {
      echo "$*: status $status"
      cat err
      return 1
    }
  }
  filters try
}

@test "a reader that is gone is 74 without a word about it" {
  try() {
    local status
    # The reading end is closed before the tool starts.
    mkfifo gone
    exec 7<>gone 8>gone 7>&-
    status=0
    "$@" <in >&8 2>err || status=$?
    exec 8>&-
    rm gone
    [ "$status" -eq 74 ] && ! grep -q error err || {
      echo "$*: status $status"
      cat err
      return 1
    }
  }
  filters try
}

@test "an input that is a directory is an error" {
  try() {
    status=0
    "$@" <. >out 2>err || status=$?
    [ "$status" -eq 74 ] && grep -q 'error: ' err || {
      echo "$*: status $status"
      return 1
    }
  }
  filters try
}
