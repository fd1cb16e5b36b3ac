#!/usr/bin/env bats
# Snapshots and the rollback of a TASK's files (amp-rollback(7)), through run and session rollback.
# AMP_ROLLBACK_ROUNDS: how often a rollback and a TASK are killed (default: 4 each).
# walls

setup() {
  load ../lib
  load ../session
  need jq
  need git
  need_tool task-dispatch
  sessions
  export GIT_CONFIG_GLOBAL=/dev/null GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@x GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@x
  fault=$AMP_BUILD/tests/fault/faildisk.so
}

# shot PATH STRATEGY [SNAPSHOT_PATH]: an expected output.
shot() {
  jq -nc --arg p "$1" --arg s "$2" --arg at "${3-}" '{type: "FILE", path: $p, description: "d", rollback_snapshot:
    ({enabled: true, snapshot_strategy: $s} + if $at == "" then {} else {snapshot_path: $at} end)}'
}
# shots OUTPUT...: a jq filter.
shots() { local IFS=,; echo ".task.expected_outputs = [$*]"; }
# tree: everything in the workspace with modes, times of files, links, contents, and what git knows.
tree() {
  (cd "$WS" && {
    find . -name .git -prune -o -path ./.snap -prune -o -path ./_skills -prune -o -name calls.txt -prune -o -type d -printf '%y %m %p\n' -o -printf '%y %m %T@ %l %p\n'
    find . -name .git -prune -o -path ./.snap -prune -o -path ./_skills -prune -o -name calls.txt -prune -o -type f -exec sha256sum {} +
    [ ! -d .git ] || { git ls-files -s; cat .git/HEAD; git rev-parse HEAD; git stash list; }
  } | LC_ALL=C sort)
}
events() { jq -c 'select(.event == "ROLLBACK_INITIATED") | [.trigger, (.artifacts_rolled_back | map(.path + " " + .status) | join(","))]' "${1:-out.ndjson}"; }
# artifacts TASK: what was measured, without the fixture's own file.
artifacts() {
  response "$1" '(.execution_summary.output_artifacts | map(select(.path | endswith("calls.txt") | not) | .path + " " + .status) | sort | join(","))' | jq -r '.[0]'
}
files_make() {
  mkdir -p "$WS/src/in" "$WS/none"
  echo a >"$WS/src/a"
  printf '\0\377' >"$WS/src/in/b"
  chmod 750 "$WS/src/in/b"
  ln -s nowhere "$WS/src/l"
  echo d >"$WS/d"
}
SPOIL='rm -rf src/in d; echo x >src/a; ln -sf /etc src/l; mkdir -p new/deep; echo n >new/deep/f; echo y >src/y; echo z >other; mkdir d; '

@test "a TASK that fails or is aborted leaves its files as they were; one that is done does not" {
  files_make
  local out
  out=$(shots "$(shot src COPY C:/work/.snap/src.before)" "$(shot C:/work/d DIFF)" "$(shot new/deep/f COPY)")" | .task.environment.workspace_root = \"C:/work\""
  tree >before
  { task "$SPOIL exit 1" "$out"
    task "$SPOIL kill -9 \$\$" "$out | .execution_policy.abort_on_first_critical_error = true"; } >in
  session_run <in
  ended T-1 FAILED FAILURE E_PROCESS_CRASH
  ended T-2 ABORTED ABORTED E_PROCESS_CRASH
  [ "$(events)" = "$(printf '["%s","src SUCCESS,C:/work/d SUCCESS,new/deep/f SUCCESS"]\n' TASK_FAILED TASK_ABORTED)" ] || { events; false; }
  rm "$WS/other" # it has no snapshot
  diff before <(tree)
  [ "$(cat "$WS/.snap/src.before/a")" = a ]
  amp-validate <out.ndjson >/dev/null
  # What was measured is what is there.
  [ "$(artifacts T-1)" = "C:/work/d UNCHANGED,C:/work/other CREATED,src UNCHANGED" ]
  [ "$(jq -r 'select(.record_type == "ROLLBACK_EVENT") | .task_id' "$WS"/_skills/*/*/audit_trails/S-1.ndjson | paste -sd,)" = T-1,T-2 ]

  task "$SPOIL :" "$out" >in
  session_run <in
  ended T-3 COMPLETED SUCCESS
  [ -z "$(events)" ]
  [ "$(artifacts T-3)" = "C:/work/d UPDATED,C:/work/other CREATED,new/deep/f CREATED,src UPDATED" ]
  # A person does it, once it has ended.
  run -0 --separate-stderr aop-session rollback -s "$STATE" S-1 T-3
  [ "$(events /dev/stdin <<<"$output")" = '["USER","src SUCCESS,C:/work/d SUCCESS,new/deep/f SUCCESS"]' ]
  [[ $stderr == *"digest "* ]]
  diff before <(tree | grep -v ' ./other$')
}

@test "another model begins with the files as they were" {
  files_make
  task "$SPOIL kill -9 \$\$" "$(shots "$(shot src COPY)" "$(shot d COPY)") | $(others CODEX "$(base64 -w0 <<<'[ "$(cat src/a d | paste -sd,)" = a,d ] && [ ! -e src/y ] || exit 1; echo done >src/done')" CRITICAL_ERROR)" >in
  session_run <in
  ended T-1 COMPLETED SUCCESS
  [ "$(events)" = '["FALLBACK","src SUCCESS,d SUCCESS"]' ]
  [ -e "$WS/src/done" ]
  # Before both of them.
  aop-session rollback -s "$STATE" S-1 T-1 >out.ndjson
  [ ! -e "$WS/src/done" ] && [ "$(events)" = '["USER","src SUCCESS,d SUCCESS"]' ]
}

@test "refusals of session rollback; a snapshot that cannot be taken refuses the TASK" {
  files_make
  { task good "$(shots "$(shot /etc/passwd COPY)")"
    task good "$(shots "$(shot d GIT_STASH)")"
    task good "$(shots "$(shot d COPY src/a)")"
    task good; } >in
  session_run <in
  for id in T-1 T-2 T-3; do ended $id FAILED FAILURE E_PERMISSION_DENIED; done
  ended T-4 COMPLETED SUCCESS
  refused() { local want=$1 code=$2; shift 2; run -"$want" --separate-stderr aop-session rollback -s "$STATE" "$@"; [[ $stderr == *"$code"* ]] || { echo "$stderr"; return 1; }; }
  refused 1 "has no TASK T-9" S-1 T-9
  refused 1 "has no TASK T-1" S-9 T-1
  refused 1 "has no snapshot" S-1 T-4
  refused 64 "expected SESSION TASK" S-1
  refused 64 attempt --attempt 0 S-1 T-1
  AMP_AGENT=Emma refused 77 Emma S-1 T-4
  run -69 aop-session rollback -s "$PWD/nothing" S-1 T-1
  task 'echo x >d; exit 1' "$(shots "$(shot d COPY)")" >in
  session_run <in
  refused 1 "no snapshot of this attempt" --attempt 7 S-1 T-5
  # A snapshot that is gone is no success, and nothing is said about its files.
  task "rm -r '$STATE/snapshots/S-1.T-6.1'; exit 1" "$(shots "$(shot d COPY)")" >in
  session_run --unconfined <in
  ended T-6 FAILED FAILURE E_ROLLBACK_FAILED
  [ -z "$(events)" ]
  # Damage is found before anything is changed.
  echo changed >"$WS/d"
  for f in "$STATE"/snapshots/S-1.T-5.1/contents/*; do echo forged-content >"$f"; done
  refused 1 "the rollback failed" S-1 T-5
  [ "$(cat "$WS/d")" = changed ]
  [ "$(events /dev/stdin <<<"$output")" = '["USER","d FAILED"]' ]
}

repo_make() {
  git init -q -b main lib && echo l >lib/l && git -C lib add . && git -C lib commit -qm l
  git init -q -b work "$WS"
  (cd "$WS" && printf '*.o\n' >.gitignore && echo t >tracked && echo x >run && chmod 755 run && ln -s tracked link && echo g >gone &&
    printf 'a\r\nb\r\n' >crlf && echo '* text=auto' >.gitattributes && git add . 2>/dev/null &&
    git -c protocol.file.allow=always submodule -q add "$OLDPWD/lib" sub && git commit -qm first &&
    echo stashed >>tracked && git stash -q && echo staged >>tracked && git add tracked && echo more >>tracked && rm gone &&
    echo u >untracked && chmod 600 untracked && mkdir empty && echo o >a.o && echo s >>sub/l)
}

@test "GIT_STASH restores the files of its paths, and leaves HEAD, the index and the stashes alone" {
  repo_make
  tree >before
  task "rm -rf link tracked .gitignore untracked; echo l >link; chmod 644 run; echo '*' >.gitignore; mkdir -p new; echo n >new/n
    rmdir empty; echo >empty; echo c >>sub/l; rm crlf; exit 1" "$(shots "$(shot . GIT_STASH .snap/stash)" "$(shot link GIT_STASH)")" >in
  session_run <in
  ended T-1 FAILED FAILURE E_PROCESS_CRASH
  [ "$(events)" = '["TASK_FAILED",". SUCCESS,link SUCCESS"]' ]
  diff before <(tree)
  local ref
  ref=$(jq -er 'select(.strategy == "GIT_STASH") | .ref' "$WS/.snap/stash")
  [[ $ref == refs/amp/snapshots/S-1/T-1/1 ]]
  [ "$(git -C "$WS" cat-file blob "$ref:tracked" | paste -sd,)" = t,staged,more ]
  # git can take a file from it, too.
  rm "$WS/tracked"
  git -C "$WS" restore --source="$ref" -- tracked
  aop-session rollback -s "$STATE" S-1 T-1 >out.ndjson 2>err.txt || { cat err.txt; false; }
  diff before <(tree)
  # What is committed since then stays.
  (cd "$WS" && git checkout -qb other && git add -A && git commit -qm later && echo x >tracked)
  local head
  head=$(git -C "$WS" rev-parse HEAD)
  aop-session rollback -s "$STATE" S-1 T-1 >out.ndjson 2>err.txt || { cat err.txt; false; }
  [ "$(git -C "$WS" rev-parse HEAD)" = "$head" ] && [ "$(git -C "$WS" branch --show-current)" = other ]
  diff <(grep -v '^[0-9a-f]\{40\}\|^ref:\|^[0-9]\{6\} ' before) <(tree | grep -v '^[0-9a-f]\{40\}\|^ref:\|^[0-9]\{6\} ')
}

@test "a full disk changes nothing; after it, a failed rename or a kill, the next rollback has the same end" {
  native "the fault shim is preloaded"
  files_make
  mkdir -p /dev/shm && STATE=$(mktemp -d -p /dev/shm) || skip "no second file system"
  tree >before
  task "$SPOIL :" "$(shots "$(shot src COPY .snap/src)" "$(shot d COPY)" "$(shot new/deep/f COPY)")" >in
  session_run <in
  ended T-1 COMPLETED SUCCESS
  rm "$WS/other"
  cp -a "$WS" spoiled
  tree | grep -v '^d' >after
  local at=$WS/.amp-rollback rounds=0 n
  back() { env AMP_FAULT_ROOT="$1" AMP_FAULT="$2" LD_PRELOAD="$fault" aop-session rollback -s "$STATE" S-1 T-1 >out.ndjson 2>err.txt; }
  for f in write:1:ENOSPC write:2:SHORT mkdir:1:ENOSPC rename:1:EXDEV rename:2:ENOSPC rename:3:EIO; do
    local rc=0
    back "$WS" $f || rc=$?
    [ $rc = 1 ] && grep -q E_ROLLBACK_FAILED out.ndjson || { echo "$f: $rc"; cat err.txt; false; }
    [ -z "$(compgen -G "$at*")" ] || { ls -la "$WS"; false; }
    # It says which paths are as before.
    if [[ $f == rename:[23]:* ]]; then
      [[ $(events) == *FAILED* ]]
      [[ $(events) != *"d SUCCESS"* ]] || [ "$(cat "$WS/d")" = d ]
    else
      [ "$(events | jq -r '.[1]')" = "src FAILED,d FAILED,new/deep/f FAILED" ]
      diff after <(tree | grep -v '^d') || { echo "$f"; false; }
    fi
  done
  aop-session rollback -s "$STATE" S-1 T-1 >out.ndjson
  diff before <(tree)
  # Every step is killed once, or some of them.
  local step=$((48 / ${AMP_ROLLBACK_ROUNDS:-4}))
  for ((n = 1; ; n += step > 0 ? step : 1)); do
    rm -rf "$WS"
    cp -a spoiled "$WS"
    back "$WS" step:$n:KILL && break
    rounds=$((rounds + 1))
    # A second kill, during the completion.
    [ $((rounds % 2)) = 0 ] || back "$WS" step:$((n / 2 + 1)):KILL || [ $? -eq 137 ]
    aop-session rollback -s "$STATE" S-1 T-1 >out.ndjson 2>err.txt || { echo "step $n"; cat err.txt; false; }
    diff before <(tree) || { echo "step $n"; false; }
    [ -z "$(compgen -G "$at*")" ]
  done
  echo "# killed $rounds times" >&3
  [ $rounds -ge 3 ]
  rm -rf "$STATE"
}

@test "TASKs are killed at each step: the files are as they were before, or as the agent left them" {
  native "the fault shim is preloaded"
  files_make
  tree >before
  local n k
  for ((k = 0; k < ${AMP_ROLLBACK_ROUNDS:-4}; k++)); do
    n=$((k * 13 + 1))
    task "$SPOIL exit 1" "$(shots "$(shot src COPY .snap/src)" "$(shot d DIFF)" "$(shot new/deep/f COPY)")" >in
    # The snapshot's own files, and those of the workspace.
    env AMP_FAULT_ROOT="$PWD" AMP_FAULT_MATCH=$( ((k % 2)) && echo snapshots || echo /ws/) AMP_FAULT=step:$n:KILL LD_PRELOAD="$fault" \
      aop-session run --state "$STATE" --config amp.json <in >out1.ndjson 2>err1.txt || [ $? -eq 137 ]
    session_run <in
    cat out1.ndjson >>out.ndjson
    jq -e --arg t T-$TASKS 'select(.message_type == "RESPONSE" and .task_id == $t) | .task_status.state == "FAILED"' out.ndjson >/dev/null || { echo "round $k: no RESPONSE"; cat err1.txt err.txt; false; }
    rm -f "$WS/other"
    diff before <(tree) || { echo "round $k at $n"; cat err1.txt err.txt; false; }
    # Once, even if the line was written twice; what the killed run left was undone as TASK_ABORTED before.
    [ "$(jq -c --arg t T-$TASKS 'select(.event == "ROLLBACK_INITIATED" and .task_id == $t and .trigger == "TASK_FAILED")' out.ndjson | sort -u | wc -l)" = 1 ] || { echo "round $k at $n"; cat out.ndjson; false; }
  done
}

@test "a snapshot on another file system, and files of two file systems in a workspace" {
  unshare -rm true 2>/dev/null || skip "no namespaces"
  files_make
  task 'echo x >d; echo x >mnt/f; rm -r mnt/t; exit 1' "$(shots "$(shot mnt/t COPY mnt/.s)" "$(shot mnt/f COPY mnt/.f)" "$(shot d COPY mnt/.d)")" >in
  mkdir "$WS/mnt"
  export WS STATE
  unshare -rm bash -c 'mount -t tmpfs none "$WS/mnt" && mkdir -p "$WS/mnt/t/u" && echo f >"$WS/mnt/f" && echo t >"$WS/mnt/t/u/v" &&
    aop-session run --state "$STATE" --config amp.json --unconfined <in >out.ndjson 2>err.txt; ls -A "$WS/mnt" >left; cat "$WS/mnt/f" "$WS/mnt/t/u/v" "$WS/mnt/.d" >mounted'
  ended T-1 FAILED FAILURE E_PROCESS_CRASH
  [ "$(events)" = '["TASK_FAILED","mnt/t SUCCESS,mnt/f SUCCESS,d SUCCESS"]' ] || { cat err.txt; false; }
  [ "$(cat mounted "$WS/d" | paste -sd,)" = f,t,d,d ]
  [ "$(paste -sd, left)" = .d,.f,.s,f,t ]
}
