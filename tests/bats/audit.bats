#!/usr/bin/env bats
# amp-ack audit: the log's keyed chain from outside, and the list of security events.
load lib
load messages

setup_file() {
  export STATE=$BATS_FILE_TMPDIR/state
  mkdir -m 700 "$STATE"
  echo '{"store":{"segment_bytes":65536}}' >"$STATE/amp.json"
  message task_dispatch >"$BATS_FILE_TMPDIR/one"
  local i
  for i in $(seq 100 250); do
    sed "s/1772116327001/1772116327$i/" "$BATS_FILE_TMPDIR/one"
  done >"$BATS_FILE_TMPDIR/many"
  amp-ack track --state "$STATE" <"$BATS_FILE_TMPDIR/many" >"$BATS_FILE_TMPDIR/out"
  # The last segment is not empty.
  amp-ack track --state "$STATE" <"$BATS_FILE_TMPDIR/one" >"$BATS_FILE_TMPDIR/out"
}

setup() {
  cd "$BATS_TEST_TMPDIR"
  cp -r "$STATE" state
}

verify() {
  amp-ack audit --state state --verify "$@"
}

@test "an honest log verifies, and its seals are signed" {
  run -0 verify
  [[ $output == *"the log is intact: frames 1 to "* ]]
  run -0 verify --format ndjson
  jq -e '.log == "intact" and .seals > 0 and .seals == .signed_seals and .last == .noted_end' <<<"$output"
}

@test "the key is made with the first change, for its owner only" {
  [ "$(stat -c %a state/keys)" = 700 ]
  [ "$(stat -c %a state/keys/log)" = 600 ]
  [ "$(stat -c %a state/keys/log.end)" = 600 ]
  grep -Eqx 'amp-log-key-v1 [0-9a-f]{64} 1' state/keys/log
}

@test "a changed frame is named with segment and offset" {
  sed -i '5s/"at":"2/"at":"3/' state/log/000001.ndjson
  run -1 verify
  [[ $output == *"frame 5 was changed: its checksum does not match"* ]]
  [[ $output == *"log/000001.ndjson, offset $(head -n 4 state/log/000001.ndjson | wc -c)"* ]]
  run -1 --separate-stderr verify --format ndjson
  jq -e '.log == "tampered" and .code == "log_tampered" and .segment == "000001" and .frame == 5' <<<"$output"
}

@test "a dropped, a repeated and a moved line are found" {
  local log=state/log/000001.ndjson kept=$BATS_TEST_TMPDIR/kept
  cp $log "$kept"
  sed -i 5d $log
  run -1 verify
  [[ $output == *"frame 6 follows frame 4"* ]]
  sed 5p "$kept" >$log
  run -1 verify
  [[ $output == *"frame 5 follows frame 5"* ]]
  sed '5{h;d};6{G}' "$kept" >$log
  run -1 verify
  [[ $output == *"frame 6 follows frame 4"* ]]
}

@test "a shorter tail and removed segments are found, and the tools refuse such a log" {
  local last
  last=$(ls state/log/0*.ndjson | tail -n 1)
  sed -i '$d' "$last"
  rm state/log/watermark
  run -1 verify
  [[ $output == *"were on disk"* ]]
  run -74 amp-ack track --state state <<<"$(message task_dispatch)"
  [[ $output == *"frames that were on disk are gone"* ]]
  cp "$STATE"/log/0* state/log/
  rm state/log/000001.ndjson
  run -1 verify
  [[ $output == *"were removed"* ]]
  cp "$STATE"/log/0* state/log/
  rm state/log/000002.ndjson
  run -1 verify
  [[ $output == *"is missing"* ]]
}

@test "a repair is recorded in the chain, reported by verify and listed as an event" {
  sed -i '$d' "$(ls state/log/0*.ndjson | tail -n 1)"
  rm state/log/watermark
  run -0 amp-ack repair --state state
  run -0 verify
  [[ $output == *"repaired: frame"*"lost"* ]]
  run -0 --separate-stderr amp-ack audit --state state --kind log --format ndjson
  jq -e '.code == "log_repaired" and (.what | test("gone|lost"))' <<<"$output"
}

@test "without keys/log.end, the end of the log is not verified" {
  rm state/keys/log.end
  run -1 verify
  [[ $output == *"keys/log.end was removed: frames after "*" may be missing"* ]]
  run -1 --separate-stderr verify --format ndjson
  jq -e '.code == "log_tampered" and .noted_end == 0' <<<"$output"
}

@test "a removed or emptied keys/log.end is not made again by the next writer, but by a repair, which is recorded" {
  # An attacker removes the last lines, too.
  local how last
  for how in rm 'truncate -s 0' 'cp /dev/null' 'ln -sf /etc/passwd'; do
    rm -rf state
    cp -r "$STATE" state
    $how state/keys/log.end
    last=$(ls state/log/0*.ndjson | tail -n 1)
    sed -i '$d' "$last"
    rm state/log/watermark
    run -74 --separate-stderr amp-ack track --state state <<<"$(message task_dispatch)"
    [[ $stderr == *"keys/log.end is gone: frames behind may be missing; amp-ack repair makes it again"* ]]
    run -1 verify
    [[ $output == *"keys/log.end was removed"* ]]
  done
  # What only reads works meanwhile.
  amp-route replay --state state >/dev/null
  run -0 --separate-stderr amp-ack repair --state state
  [[ $output$stderr == *"keys/log.end was gone: frames may be missing"* ]]
  [ ! -L state/keys/log.end ]
  amp-ack track --state state <<<"$(message task_dispatch)" >/dev/null
  run -0 verify
  [[ $output == *"repaired: "*"keys/log.end was gone"* ]]
  run -0 --separate-stderr amp-ack audit --state state --kind log --format ndjson
  jq -e '.code == "log_repaired" and (.what | test("keys/log.end was gone"))' <<<"$output"
}

@test "a log without a key is no error of the log" {
  rm -r state/keys
  run -78 verify
  [[ $output == *"the log has no key yet"* ]]
  # The next change makes a new key, which covers the log from there on.
  amp-ack track --state state >/dev/null <<<"$(message task_result)"
  run -0 --separate-stderr verify --format ndjson
  jq -e '.verified_from > 100 and .verified_from <= .last' <<<"$output"
  # But the frames before it had one.
  [[ $stderr == *"log/000001.ndjson, offset 0: earlier frames have hashes of another key, which is gone"* ]]
  echo x >state/keys/log
  run -78 verify
  [[ $output == *"keys/log of the state directory is not a key of a log"* ]]
}

@test "an honest log verifies after kill -9 at any moment" {
  local i pid
  rm -rf state
  for i in 1 2 3 4 5; do
    amp-ack track --state state <"$BATS_FILE_TMPDIR/many" >out 2>/dev/null &
    pid=$!
    wait_until 5 test -e state/keys/log
    # It may have ended by itself.
    kill -9 "$pid" 2>/dev/null || [ $? -eq 1 ]
    wait "$pid" 2>/dev/null || [ $? -eq 137 ]
    run -0 verify
  done
}

@test "security events come from the error log, with filters" {
  printf '%s\n' \
    '{"time":"2026-11-22T10:00:00.000Z","tool":"a","line":1,"offset":0,"protocol":"amp","type":"t","id":"1","from":"executor","code":"bad_sender","field":"","message":"must not decide","rule":"r","severity":"error"}' \
    '{"time":"2026-11-22T11:00:00.000Z","tool":"a","line":1,"offset":0,"protocol":"amp","type":"t","id":"2","code":"bad_enum","field":"","message":"m","rule":"r","severity":"error"}' \
    '{"time":"2026-11-22T12:00:00.000Z","tool":"b","line":1,"offset":0,"protocol":"amp","type":"t","id":"3","key":"SHA256:x","code":"key_revoked","field":"","message":"m","rule":"r","severity":"error"}' \
    >state/error.ndjson
  run -0 --separate-stderr amp-ack audit --state state --format ndjson
  [ "$(jq -r .id <<<"$output" | tr '\n' ' ')" = "1 3 " ]
  run -0 --separate-stderr amp-ack audit --state state --format ndjson --kind key
  [ "$(jq -r .code <<<"$output")" = key_revoked ]
  run -0 --separate-stderr amp-ack audit --state state --format ndjson --from executor
  [ "$(jq -r .id <<<"$output")" = 1 ]
  run -0 --separate-stderr amp-ack audit --state state --format ndjson --code bad_sender --since 2026-11-22T10:30:00Z
  [ -z "$output" ]
  run -0 --separate-stderr amp-ack audit --state state
  [[ ${lines[0]} == TIME*KIND*CODE*WHAT* ]]
  run -64 amp-ack audit --state state --verify --kind key
  run -64 amp-ack audit --state state --kind nonsense
  run -69 amp-ack audit --state nowhere
}

@test "overrides of the branch guard are events" {
  git init -q repo
  git -C repo -c user.name=a -c user.email=a@example.org commit -q --allow-empty -m one
  worktree-bind hooks install -C repo
  worktree-bind hooks override -C repo --reason "a release" main
  run -0 --separate-stderr amp-ack audit --state repo/.git/amp --kind override --format ndjson
  jq -e '.code == "override" and .what == "GRANT"' <<<"$output"
}
