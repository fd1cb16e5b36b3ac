#!/usr/bin/env bats
# amp-ack audit: the log's keyed chain from outside, and the list of security events.
load ../lib
load ../messages

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

@test "an archive has the segments that ended, verifies by itself, and is only read" {
  mkdir -m 700 old
  echo '{"store":{"segment_bytes":65536,"keep_segments":3}}' >old/amp.json
  export AMP_STATE=$PWD/old
  # Nothing has ended: the archive is empty, and in order.
  message task_dispatch | amp-ack >/dev/null
  run -0 amp-ack export empty
  run -0 amp-ack audit --verify --state empty
  fill() { message task_dispatch | jq -c --arg d "$1" '. as $m | range(150) as $i | $m | .msg_id += "\($d)\(1000 + $i)"' | amp-ack >/dev/null; }
  fill 1
  run -0 amp-ack export archive
  [[ $output =~ frames\ 1\ to\ [0-9]+\ in\ ([0-9]+)\ segments,\ ([0-9]+)\ of\ them\ new ]] || {
    echo "$output"
    false
  }
  [ "${BASH_REMATCH[1]}" -ge 1 ]
  [ "${BASH_REMATCH[1]}" -eq "${BASH_REMATCH[2]}" ]
  cmp old/log/000001.ndjson archive/log/000001.ndjson
  [ "$(find archive -name '*.pem' -o -name log-head | wc -l)" -eq 0 ]
  fill 2
  # What is not archived is held, and a later export goes on.
  run -0 amp-ack export --hold 1h archive
  segments=$(find archive/log -name '*.ndjson' | wc -l)
  for i in 3 4 5 6 7; do fill $i; done
  [ -e "old/log/$(printf %06d $((segments + 1))).ndjson" ]
  run -0 amp-ack export archive
  [ "$(find archive/log -name '*.ndjson' | wc -l)" -gt "$segments" ]
  unset AMP_STATE
  run -0 amp-ack audit --verify --state archive
  [[ $output == *"the log is intact: frames 1 to "* ]]
  n=$(find archive -type f | wc -l)
  amp-ack log --state archive --id task_dispatch-T-2026-044-177211632700111007 | jq -e 'select(.event == "record")'
  amp-ack status --state archive >/dev/null
  run -77 amp-ack --state archive </dev/null
  [[ $output == *"is an archive of amp-ack export: it is only read"* ]]
  [ "$(find archive -type f | wc -l)" -eq "$n" ]
  # A change is found, and a segment that is missing.
  cp -r archive changed
  sed -i '2s/coordinator/coordinated/' changed/log/000001.ndjson
  run -1 amp-ack audit --verify --state changed
  cp -r archive short
  rm short/log/000001.ndjson
  run -1 amp-ack audit --verify --state short
  [[ $output == *"were removed"* ]]
}

@test "an archive goes on only with its own log, and without a gap" {
  mkdir -m 700 old other
  echo '{"store":{"segment_bytes":65536,"keep_segments":2,"keep":{"messages":0.000001}}}' >old/amp.json
  cp old/amp.json other
  fill() { message task_dispatch ".requires_ack = false" | jq -c --arg d "$2" '. as $m | range(300) as $i | $m | .msg_id += "\($d)\(1000 + $i)"' | amp-ack --state "$1" >/dev/null; }
  fill old 1
  fill other 1
  run -0 amp-ack export --state old archive
  run -1 amp-ack export --state other archive
  [[ $output == *"archive of another log"* ]]
  run -1 amp-ack export --state old other
  [[ $output == *"other is not an archive"* ]]
  for i in 2 3 4 5 6 7; do fill old $i; done
  run -1 amp-ack export --state old archive
  [[ $output == *"were removed from the log before they were archived"* ]]
  run -0 amp-ack export --state old --until 2020-01-01T00:00:00Z new
  [[ $output == *"no segment has ended before that time"* ]]
}
