#!/usr/bin/env bats
# State directories that earlier builds wrote (tests/fixture/state-N; its script make says how).

load lib

setup() {
  need_tool amp-ack amp-route agent-registry worktree-bind
  cd "$BATS_TEST_TMPDIR"
  OLD=$AMP_TOP/tests/fixture/state-1
  tar -xzf "$OLD/state.tar.gz"
}

@test "a state directory of an earlier build holds what it held" {
  "$OLD/dump" state | diff "$OLD/dump.ndjson" -
}
