# For the tests of upgrades.

# old_state: the directory of an earlier build, as state; what it holds, in want.
old_state() {
  need_tool amp-ack amp-route agent-registry worktree-bind task-dispatch hitl-prompt amp-validate
  cd "$BATS_TEST_TMPDIR"
  OLD=$AMP_TOP/tests/fixture/state-1
  tar -xzf "$OLD/state.tar.gz"
  S=$PWD/state
  # Two names are others now: a dead letter without an id has the whole digest of its line, and a message of an inbox
  # whose id is long has its id.
  long=evt_$(printf '%0850d' 0 | tr 0 i)
  sed -e 's/"id":"0b6be0295ead5aa0"/"id":"sha256:0b6be0295ead5aa0b42aa010fd78a6c9404b8508160eafb38d6747f68605827e"/' \
    -e "s/WAITING   sha256:09e18c3d50ce4394dbd87ae18bd95593556d459844732c6086fb05a4918ce0dd/WAITING   $long/" \
    "$OLD/dump.ndjson" | LC_ALL=C sort >want
}

holds_all() {
  "$OLD/dump" "${1:-state}" | LC_ALL=C sort | diff want - >&2
}
upgrade() { amp-ack repair --upgrade --state "${1:-state}" 2>said; }
# The old log, byte for byte.
is_old() {
  [ ! -e state/log/UPGRADING ]
  (cd state/log && sha256sum 0*.ndjson) | diff - "$BATS_TEST_TMPDIR/old.sums" >&2
}
# first_line TEXT: the first frame of the first segment begins with it.
first_line() { [ "$(head -c ${#1} "$(printf '%s\n' state/log/0*.ndjson | head -1)")" = "$1" ]; }
