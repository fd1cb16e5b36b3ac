#!/usr/bin/env bats
# worktree-bind exec: what a confined command can reach at each level, and what becomes of its
# signals, its end and its limits. The escape suite tests more ways out.
# walls

load ../lib

setup_file() {
  cd "$BATS_FILE_TMPDIR" || return 1
  repo main
  echo a >main/a
  git -C main add a
  git -C main commit -qm second
  git -C main worktree add -q ../wt -b feat
  mkdir outside bin
  echo secret >outside/file
  cp "$AMP_BUILD/tests/fixture/calls" bin/
}

setup() {
  need_tool worktree-bind
  not_under_valgrind "the helper sets up a sandbox"
  FIX=$AMP_BUILD/tests/fixture
  OUT=$BATS_FILE_TMPDIR/outside
  cd "$BATS_FILE_TMPDIR/wt" || return 1
  git clean -fdxq .
}

# full COMMAND..., landlock COMMAND...: at that level, or skipped.
full() {
  run --separate-stderr timeout 60 worktree-bind exec "${options[@]}" -- "$@"
  [[ "$stderr" != *confinement_unavailable* && "$stderr" != *"cannot enforce"* ]] ||
    skip "this machine cannot confine: $stderr"
}
landlock() {
  has_landlock || skip "no Landlock here"
  run --separate-stderr timeout 60 "$FIX/without" namespaces -- \
    worktree-bind exec --best-effort "${options[@]}" -- "$@"
}
has_landlock() {
  [ "$("$AMP_BUILD/libexec/amp/confine" --probe | sed 's/.*"landlock":\([0-9]*\).*/\1/')" -gt 0 ]
}
options=()

files='touch made 2>/dev/null && echo made
cat "$1/file" 2>/dev/null
echo x 2>/dev/null >"$1/new" && echo wrote
echo x 2>/dev/null >>"$1/file" && echo appended
ls "$1" 2>/dev/null
ln -s "$1/file" link && cat link 2>/dev/null
cat ../outside/file 2>/dev/null
rm -f "$1/file" 2>/dev/null; mv made "$1/moved" 2>/dev/null && echo moved
ln "$1/file" hard 2>/dev/null && echo hard
cat /etc/shadow 2>/dev/null
ls ../main/.git 2>/dev/null
mknod node c 1 1 2>/dev/null && echo node
true'

@test "control: without confinement the same script reaches everything" {
  run -0 sh -c "$files" sh "$OUT"
  [[ "$output" == *secret*wrote*appended* ]]
  [[ "$output" == *moved* ]]
  echo secret >"$OUT/file"
  rm -f "$OUT/new" "$OUT/moved"
}

@test "full: the worktree is writable, and no other file is there" {
  full sh -c "$files" sh "$OUT"
  [ "$status" -eq 0 ]
  [ "$output" = made$'\n'objects ]
  [ "$(cat "$OUT/file")" = secret ]
  [ -e made ]
  full sh -c 'ls -A "$(dirname "$1")"' sh "$OUT"
  [ "$output" = main$'\n'wt ]
}

@test "full: git can read the worktree's branch and change nothing, linked and main" {
  local tree TMPDIR=$BATS_TEST_TMPDIR/private
  mkdir "$TMPDIR"
  export TMPDIR
  for tree in wt main; do
    cd "$BATS_FILE_TMPDIR/$tree"
    echo changed >>a
    full sh -c 'git log --format=%s && git status --short && git diff --stat -- a &&
      git for-each-ref --format="%(refname)"'
    [ "$status" -eq 0 ]
    [[ "$output" == *" M a"*"a | 1 +"* ]]
    [[ "$output" == *"refs/heads/$(git symbolic-ref --short HEAD)" ]]
    [ "$(grep -c refs/ <<<"$output")" -eq 1 ] # no other branch
    local before
    before=$(git rev-parse HEAD)
    full sh -c 'git commit -qam x; git config user.name x; git update-ref refs/heads/new HEAD
      mv .git other; echo gitdir: /tmp >.git; cd "$(git rev-parse --git-common-dir)" && : >hooks
      mkdir hooks; : >objects/x; : >"$(cut -d" " -f2 info/alternates objects/info/alternates)/x"'
    [[ "$stderr" == *"Read-only file system"* ]]
    [ "$(git rev-parse HEAD)" = "$before" ]
    run -1 git rev-parse -q --verify refs/heads/new
    [ "$(git config user.name)" != x ]
    [ ! -e ../main/.git/objects/x ] && [ ! -e other ]
    git checkout -q -- a
  done
  [ -z "$(ls "$TMPDIR")" ] # the private git directories
}

@test "landlock: git can read a linked worktree's branch and change nothing" {
  local before TMPDIR=$BATS_TEST_TMPDIR/private
  mkdir "$TMPDIR"
  export TMPDIR
  echo changed >>a
  before=$(git rev-parse HEAD)
  landlock sh -c 'git log --format=%s && git status --short && git diff --stat -- a &&
    git for-each-ref --format="%(refname)"; cat "$1/.git/config" "$1/.git/HEAD" 2>/dev/null
    git commit -qam x && echo committed; git config user.name x && echo configured; :' sh "$BATS_FILE_TMPDIR/main"
  [[ "$output" == *" M a"*"a | 1 +"*"refs/heads/feat" ]]
  [ "$(grep -c refs/ <<<"$output")" -eq 1 ]
  [ "$(git rev-parse HEAD)" = "$before" ]
  [ -z "$(ls "$TMPDIR")" ]
  # The main worktree has its git directory inside.
  cd "$BATS_FILE_TMPDIR/main"
  landlock sh -c 'git log --format=%s; echo "${GIT_DIR-none}"'
  [[ "$output" == second*none ]]
  git -C "$BATS_FILE_TMPDIR/wt" checkout -q -- a
}

@test "full: a hidden directory in the worktree cannot be replaced by renaming what is above it" {
  mkdir -p sub/deep/state
  chmod 700 sub/deep/state
  options=(-s sub/deep/state)
  full sh -c 'ls -A sub/deep/state; mv sub away; mv sub/deep sub/away; rm -rf sub
    mkdir -p sub/deep/state; echo planted >sub/deep/state/file; echo made >sub/deep/made'
  [ -z "$output" ]
  [ ! -e away ] && [ ! -e sub/away ]
  [ "$(cat sub/deep/made)" = made ]
  [ -s sub/deep/state/error.ndjson ]
  [ ! -e sub/deep/state/file ]
}

@test "full: kill 0 reaches no process outside, with and without Landlock's scope of signals" {
  local without script='trap "echo outside" TERM
    "$@" python3 -c "import os, signal
signal.signal(15, signal.SIG_IGN)
try: os.kill(0, 15)
except PermissionError: print(\"refused\")"
    echo end'
  need python3
  run -0 setsid -w sh -c "$script" sh env
  [ "$output" = outside$'\n'end ]
  for without in "" landlock; do
    run -0 --separate-stderr setsid -w "$FIX/without" $without -- sh -c "$script" sh \
      worktree-bind exec --best-effort --
    [[ "$output" != *outside* ]]
    [ "${lines[-1]}" = end ]
  done
  [ "${lines[0]}" = refused ]
}

@test "landlock: the worktree is writable, and no other file can be opened" {
  landlock sh -c "$files" sh "$OUT"
  [ "$status" -eq 0 ]
  [ "$output" = made ]
  [ "$(cat "$OUT/file")" = secret ]
  [ -e made ]
}

@test "policy: paths are granted for reading or writing, and links out of them are not followed" {
  mkdir -p "$OUT/r" "$OUT/w/sub" "$BATS_FILE_TMPDIR/other"
  echo readable >"$OUT/r/a.txt"
  echo hidden >"$OUT/r/b.log"
  echo other >"$BATS_FILE_TMPDIR/other/c.txt"
  ln -sfn "$BATS_FILE_TMPDIR/other/c.txt" "$OUT/r/c.txt"
  ln -sfn "$OUT/r/b.log" inner
  options=(--read "$OUT/r/*.txt" --write "$OUT/w" --read inner --read "$OUT/absent/*")
  local script='cat "$1/r/a.txt"; cat "$1/r/b.log" "$1/r/c.txt" inner 2>/dev/null
    echo x 2>/dev/null >"$1/r/a.txt" && echo wrote; echo y >"$1/w/sub/new"; true'
  for level in full landlock; do
    rm -f "$OUT/w/sub/new"
    $level sh -c "$script" sh "$OUT"
    [ "$output" = readable ]
    [ "$(cat "$OUT/w/sub/new")" = y ]
  done
}

@test "policy: a file sets grants, variables, limits and the network; --read adds to it" {
  cat >"$BATS_FILE_TMPDIR/policy.json" <<EOF
{"read":["~/tool"],"environment":["TOOL_*"],"limits":{"open_files":40}}
EOF
  mkdir -p "$HOME/tool"
  echo setting >"$HOME/tool/conf"
  options=(--policy "$BATS_FILE_TMPDIR/policy.json")
  export TOOL_A=1 SECRET_B=2 SSH_AUTH_SOCK=/x
  for level in full landlock; do
    $level sh -c 'cat ~/tool/conf; echo "${TOOL_A-} ${SECRET_B-} ${SSH_AUTH_SOCK-}"; ulimit -n; ulimit -c'
    [ "${lines[0]}" = setting ]
    [ "${lines[1]}" = "1  " ]
    [ "${lines[2]}" = 40 ]
    [ "${lines[3]}" = 0 ]
  done
}

@test "policy: what is malformed or would grant the state is refused with 78" {
  mkdir -m 700 "$BATS_FILE_TMPDIR/state"
  echo '{"reed":[]}' >"$BATS_FILE_TMPDIR/bad.json"
  run -78 worktree-bind exec --policy "$BATS_FILE_TMPDIR/bad.json" -- true
  echo '{}' >policy.json
  run -78 worktree-bind exec --policy policy.json -- true
  [[ "$output" == *"in a worktree"* ]]
  rm policy.json
  run -78 worktree-bind exec --read ../wt -- true
  run -78 worktree-bind exec --read / -- true
  run -78 worktree-bind exec --read /proc/1 -- true
  run -78 worktree-bind exec -s "$BATS_FILE_TMPDIR/state" --read "$BATS_FILE_TMPDIR" -- true
  [[ "$output" == *"would grant"* ]]
  run -78 worktree-bind exec -s "$BATS_FILE_TMPDIR/state" --write "$BATS_FILE_TMPDIR/state/log" -- true
  echo '{"network":"EGRESS_RESTRICTED","hosts":["nonsense"]}' >"$BATS_FILE_TMPDIR/bad.json"
  run -78 worktree-bind exec --policy "$BATS_FILE_TMPDIR/bad.json" -- true
  run -64 worktree-bind exec --require --best-effort -- true
  run -64 worktree-bind exec
  run -69 worktree-bind exec -C / -- true
}

@test "HOME and /tmp are private and empty, and end with the command" {
  echo mine >"$HOME/mine"
  for level in full landlock; do
    $level sh -c 'ls -A ~ "$TMPDIR"; echo x >~/x && echo y >"$TMPDIR/y" && mkdir "$TMPDIR/d" && chmod 0 "$TMPDIR/d"'
    [ "$status" -eq 0 ]
    [[ "$output" != *mine* ]]
    [ ! -e "$HOME/x" ]
  done
  run -1 compgen -G "${TMPDIR:-/tmp}/amp-confine-*/tmp/y"
}

@test "full: /proc has no other process, and none can be signalled" {
  sleep 1000 3>&- &
  local outside=$!
  full sh -c 'ls /proc | grep -c "^[0-9]"; kill -0 "$1" 2>/dev/null && echo reached; echo 1 2>/dev/null >/proc/sys/vm/drop_caches && echo wrote; cat /proc/1/environ 2>/dev/null | head -c 1; true' sh "$outside"
  kill "$outside"
  [ "${lines[0]}" -le 4 ]
  [ "${#lines[@]}" -eq 1 ]
}

@test "landlock: other processes cannot be read or signalled" {
  sleep 1000 3>&- &
  local outside=$!
  landlock sh -c 'ls /proc 2>/dev/null; cat "/proc/$1/environ" "/proc/$1/cmdline" 2>/dev/null; readlink "/proc/$1/cwd"; kill -0 "$1" 2>/dev/null && echo reached; true' sh "$outside"
  kill "$outside"
  [[ "$stderr" != *"signals to other"* ]] || skip "Landlock has no scopes here"
  [ -z "$output" ]
}

@test "no descriptor of the caller but the standard ones" {
  exec 7<"$OUT/file" 8>"$BATS_TEST_TMPDIR/out"
  full bash -c 'for f in /proc/self/fd/*; do [ -e "$f" ] && echo "${f##*/}"; done; cat <&7 2>/dev/null; true'
  [ "$(printf '%s\n' "${lines[@]}" | sort | tr '\n' ' ')" = "0 1 2 " ]
  landlock bash -c '{ cat <&7; } 2>/dev/null; { echo x >&8; } 2>/dev/null; true'
  exec 7<&- 8>&-
  [ -z "$output" ]
  [ ! -s "$BATS_TEST_TMPDIR/out" ]
}

@test "system calls that lead out are refused at both levels" {
  [ "$(unshare -r -m "$FIX/calls" | wc -l)" -ge 20 ] || skip "no control run here"
  # A program with AddressSanitizer maps more than any limit of memory.
  echo '{"limits":{"memory_bytes":0}}' >"$BATS_FILE_TMPDIR/calls.json"
  options=(--policy "$BATS_FILE_TMPDIR/calls.json" --read "$BATS_FILE_TMPDIR/bin")
  full "$BATS_FILE_TMPDIR/bin/calls"
  [ "$status" -eq 0 ]
  [ -z "$output" ]
  landlock "$BATS_FILE_TMPDIR/bin/calls"
  [ "$status" -eq 0 ]
  [ -z "$output" ]
}

@test "no capabilities, no new privileges" {
  options=()
  for level in full landlock; do
    $level sh -c 'grep -E "^(Cap(Prm|Eff|Bnd|Amb)|NoNewPrivs|Seccomp):" /proc/self/status 2>/dev/null; id -u'
    [ "${lines[-1]}" = "$(id -u)" ]
    [ "$level" = landlock ] || {
      [ "$(grep -c '0000000000000000$' <<<"$output")" -eq 4 ]
      [[ "$output" == *"NoNewPrivs:	1"* ]]
      [[ "$output" == *"Seccomp:	2"* ]]
    }
  done
}

@test "DENY_ALL: no connection to the host; full has a loopback interface of its own" {
  need python3
  coproc python3 -u -c 'import socket
s = socket.socket(); s.bind(("127.0.0.1", 0)); s.listen(); print(s.getsockname()[1])
while True: s.accept()[0].sendall(b"reached")'
  local port pid=$COPROC_PID
  read -r port <&"${COPROC[0]}"
  local script='import socket, sys
try:
    print(socket.create_connection(("127.0.0.1", int(sys.argv[1])), 5).recv(9))
except OSError:
    print("refused")
if sys.argv[2] == "full":
    s = socket.socket(); s.bind(("127.0.0.1", 0)); s.listen()
    socket.create_connection(s.getsockname()); print("own")'
  run -0 python3 -c "$script" "$port" -
  [[ "$output" == *reached* ]]
  full python3 -c "$script" "$port" full
  [ "$output" = $'refused\nown' ]
  landlock python3 -c "$script" "$port" landlock
  [ "$output" = refused ]
  options=(--network FULL_ACCESS)
  full python3 -c "$script" "$port" full
  [[ "$output" == *reached*own* ]]
  options=(--network EGRESS_UNRESTRICTED)
  full python3 -c "$script" "$port" full
  [ "$status" -eq 1 ]
  [[ "$output" == *reached* && "$output" != *own* ]]
  kill "$pid"
}

@test "--access: what --effective shows is enforced, and nothing is widened" {
  need python3
  mkdir src src/gen doc
  echo text >src/a
  echo secret | tee doc/b >c
  local task='"message_type":"TASK","session":{"session_id":"AOP-SESSION-2026-02-26-001","created_at":"2026-02-26T14:00:00Z","orchestrator":"o","origin":"CLI"}'
  task="{\"aop_version\":\"2.0.2-C\",\"schema_version\":\"2.0.2\",\"protocol_family\":\"AOP\",$task"
  task+=',"target":{"agent_name":"a","role":"EXECUTOR","provider":"LOCAL","model":"m"},"task":{"task_id":"TASK-001",'
  task+='"objective":"o","category":"OTHER","complexity":"LOW","environment":{"workspace_root":"/w"},"access":{"network":"NONE",'
  task+='"filesystem":{"read_paths":["src","/etc/shadow","'$OUT'"],"write_paths":["/w/src/gen"]}}}}'
  cd "$BATS_FILE_TMPDIR"
  echo "$task" >task
  amp-validate --effective task >effective
  coproc python3 -u -c 'import socket
s = socket.socket(); s.bind(("127.0.0.1", 0)); s.listen(); print(s.getsockname()[1])
while True: s.accept()[0].sendall(b"reached")'
  local port level file pid=$COPROC_PID
  read -r port <&"${COPROC[0]}"
  local script='cat src/a doc/b c "$1/file" 2>/dev/null
echo x 2>/dev/null >>src/a && echo wrote; echo x 2>/dev/null >doc/b && echo wrote
echo y >src/gen/new && echo generated
python3 -c "import socket, sys
print(socket.create_connection((\"127.0.0.1\", int(sys.argv[1])), 5).recv(9))" "$2" 2>/dev/null'
  for level in full landlock; do
    # Control: without it the policy allows all of this.
    options=(-C wt --network FULL_ACCESS)
    $level sh -c "$script" sh "$OUT" "$port"
    [ "$output" = "text"$'\n'"secret"$'\n'"secret"$'\n'"wrote"$'\n'"wrote"$'\n'"generated"$'\n'"b'reached'" ]
    for file in task effective; do
      echo text >wt/src/a
      options=(-C wt --network FULL_ACCESS --access $file)
      $level sh -c "$script" sh "$OUT" "$port"
      [ "$output" = "text"$'\n'"generated" ]
      [ "$(cat wt/src/gen/new)" = y ]
    done
    echo secret >wt/doc/b
  done
  kill "$pid"
  # From a pipe. A task with more than the policy gets the policy.
  amp-validate --effective <<<"${task/NONE/FULL}" >wide
  run -0 worktree-bind exec -C wt --access - -- cat src/a - <effective
  [ "$output" = text ]
  options=(-C wt --access wide)
  full sh -c 'ls -A /sys/class/net 2>/dev/null; cat /proc/net/dev | grep -c :'
  [ "$output" = 1 ]
  # Neither a message that is not valid, nor several, nor a file that the command could change.
  for file in '{}' '' "${task/LOW/LOWER}" "$task"$'\n'"$task" "$(sed 's/"line"/"lime"/' effective)"; do
    run -65 --separate-stderr worktree-bind exec -C wt --access - -- true <<<"$file"
    [[ $stderr == *"neither a record of amp-validate --effective nor a valid AOP TASK"* ]]
  done
  cp task wt/mine
  run -78 --separate-stderr worktree-bind exec -C wt --access wt/mine -- true
  [[ $stderr == *"is in the worktree, where the command could change it"* ]]
}

@test "UNIX sockets outside are out of reach, also for a datagram socket of a pair" {
  need python3
  rm -f "$OUT/stream" "$OUT/dgram"
  coproc python3 -u -c 'import os, select, socket, sys
s = socket.socket(socket.AF_UNIX); s.bind(sys.argv[1] + "/stream"); s.listen()
d = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM); d.bind(sys.argv[1] + "/dgram")
a = socket.socket(socket.AF_UNIX); a.bind("\0" + sys.argv[1]); a.listen()
print("ready")
while True: d.recv(10)' "$OUT"
  local line pid=$COPROC_PID
  read -r line <&"${COPROC[0]}"
  local script='import socket, sys
def attempt(name, do):
    try:
        do(); print(name)
    except OSError:
        pass
attempt("stream", lambda: socket.socket(socket.AF_UNIX).connect(sys.argv[1] + "/stream"))
attempt("abstract", lambda: socket.socket(socket.AF_UNIX).connect("\0" + sys.argv[1]))
attempt("pair", lambda: socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)[0].sendto(b"x", sys.argv[1] + "/dgram"))
attempt("raw pair", lambda: socket.socketpair(socket.AF_UNIX, socket.SOCK_RAW)[0].sendto(b"x", sys.argv[1] + "/dgram"))'
  run -0 python3 -c "$script" "$OUT"
  [ "$output" = $'stream\nabstract\npair\nraw pair' ]
  full python3 -c "$script" "$OUT"
  [ -z "$output" ]
  options=(--network EGRESS_UNRESTRICTED)
  full python3 -c "$script" "$OUT"
  [ -z "$output" ]
  landlock python3 -c "$script" "$OUT"
  [ -z "$output" ]
  options=()
  landlock python3 -c "$script" "$OUT"
  kill "$pid"
  [ "$status" -eq 0 ]
  [ -z "$output" ]
}

@test "the exit status is the command's, or says why it did not start" {
  full sh -c 'exit 3'
  [ "$status" -eq 3 ]
  full sh -c 'exit 77'
  [ "$status" -eq 77 ]
  echo text >text
  local run
  for run in "" "$FIX/without namespaces --"; do
    # shellcheck disable=SC2086
    run -127 $run worktree-bind exec --best-effort -- no-such-command
    # shellcheck disable=SC2086
    run -126 $run worktree-bind exec --best-effort -- ./text
    # shellcheck disable=SC2086
    run -137 $run worktree-bind exec --best-effort -- sh -c 'kill -KILL $$'
  done
  run -127 worktree-bind exec -- "$OUT/file"
}

@test "standard input and output are the caller's" {
  run -0 worktree-bind exec -- tr a b <<<"banana"
  [ "$output" = bbnbnb ]
}

@test "a signal reaches the command, which may handle it" {
  mkfifo ready
  for sig in TERM INT USR1; do
    worktree-bind exec -- bash -c 'trap "echo got >got; exit 9" TERM INT USR1; echo >ready; while :; do read -rt 1 <>/dev/tty; done' 3>&- 2>/dev/null &
    local pid=$! rc=0
    timeout 20 cat ready >/dev/null
    kill -"$sig" "$pid"
    wait "$pid" || rc=$?
    [ "$rc" -eq 9 ]
    [ "$(cat got)" = got ]
    rm got
  done
}

@test "what a command leaves ends with it, at every level; a daemon that forked twice, too" {
  need python3 setsid
  local how
  # The daemon holds the FIFO: its end means that the daemon is gone.
  local daemon='import os, time
if os.fork(): os._exit(0)
os.setsid()
if os.fork(): os._exit(0)
os.write(1, b"up\n")
open("up", "w").close()
for _ in range(3): os.fork() or time.sleep(1000)
time.sleep(1000)'
  for how in "" "$FIX/without namespaces --"; do
    [ -z "$how" ] || has_landlock || continue
    mkfifo "$BATS_TEST_TMPDIR/alive"
    exec 5<>"$BATS_TEST_TMPDIR/alive" 6<"$BATS_TEST_TMPDIR/alive"
    env -i PATH="$PATH" HOME="$HOME" ASAN_OPTIONS="${ASAN_OPTIONS-}" \
      $how worktree-bind exec --best-effort -- sh -c 'python3 -c "$1"; until [ -e up ]; do sleep 0.1; done; rm up; setsid sleep 1000 & sleep 1000 & exit 7' sh "$daemon" \
      >"$BATS_TEST_TMPDIR/alive" 2>err 3>&- 5<&- 6<&- &
    local pid=$! status=0
    read -r -t 20 line <&6
    exec 5<&-
    wait "$pid" || status=$?
    [ "$line" = up ]
    [ "$status" -eq 7 ]
    timeout 20 cat <&6
    exec 6<&-
    rm "$BATS_TEST_TMPDIR/alive"
  done
}

@test "full: when worktree-bind is killed, nothing stays alive" {
  mkfifo alive
  # Both descendants hold the FIFO: its end means that they are gone.
  worktree-bind exec -- bash -c 'setsid bash -c "(sleep 1000) & sleep 1000" & disown; echo ready; sleep 1000' >alive 3>&- &
  local pid=$!
  exec 5<alive
  read -r -t 20 line <&5
  [ "$line" = ready ]
  kill -KILL "$pid"
  timeout 20 cat <&5
  exec 5<&-
}

@test "what a killed exec left in TMPDIR is removed by the next one and by gc, and nothing else" {
  local TMPDIR=$BATS_TEST_TMPDIR/private n=0 level left="$BATS_TEST_TMPDIR/private/amp-confine-"
  mkdir "$TMPDIR"
  export TMPDIR
  has_landlock || skip "no Landlock here"
  # Of the main worktree, so that both levels have a private directory.
  for level in "" "$FIX/without namespaces --"; do
    mkfifo "$BATS_TEST_TMPDIR/alive"
    ${level:+$FIX/without namespaces --} worktree-bind exec --best-effort -- \
      bash -c 'mkdir -p "$TMPDIR/d/e" && chmod 0 "$TMPDIR/d/e"; echo ready; exec sleep 1000' >"$BATS_TEST_TMPDIR/alive" 3>&- &
    local pid=$!
    exec 5<"$BATS_TEST_TMPDIR/alive"
    read -r -t 20 line <&5
    rm "$BATS_TEST_TMPDIR/alive"
    [ "$line" = ready ]
    # A directory in use stays.
    worktree-bind exec --best-effort -- true
    n=$((n + 1)) # the git directory; at the level landlock also that of HOME
    [ "$(ls -d "$left"* | wc -l)" -eq "$n" ]
    kill -KILL "$pid"
    wait "$pid" || :
    exec 5<&-
  done
  # Neither those of others, nor links, nor other names.
  mkdir "$BATS_TEST_TMPDIR/other" && touch "$BATS_TEST_TMPDIR/other/file" && ln -s ../other "${left}aaaaaa"
  touch "${left}bbbbbb" && mkdir "$TMPDIR/amp-confin"
  [ "$(find "$TMPDIR" -mindepth 1 -maxdepth 1 -type d -name 'amp-confine-*' | wc -l)" -ge 1 ]
  worktree-bind exec --best-effort -- true
  [ "$(ls "$TMPDIR" | xargs)" = "amp-confin amp-confine-aaaaaa amp-confine-bbbbbb" ]
  [ -e "$BATS_TEST_TMPDIR/other/file" ]
  mkdir "${left}cccccc"
  worktree-bind gc
  [ -d "${left}cccccc" ]
  run -0 --separate-stderr worktree-bind gc --apply
  [[ $stderr == *"$TMPDIR: removed 1 directory of killed commands"* ]]
  [ ! -e "${left}cccccc" ]
}

@test "limits: processes, file size, memory, open files" {
  need python3
  cat >"$BATS_FILE_TMPDIR/limits.json" <<EOF
{"limits":{"processes":310,"file_bytes":65536,"memory_bytes":300000000,"open_files":50}}
EOF
  options=(--policy "$BATS_FILE_TMPDIR/limits.json")
  full python3 -c 'import os, signal
n = 0
try:
    while n < 2000:
        if os.fork() == 0:
            signal.pause()
        n += 1
except OSError:
    pass
print(n < 320)
try:
    a = bytearray(400_000_000); print("memory")
except MemoryError:
    pass
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
try:
    open("big", "wb").write(b"x" * 100_000)
except OSError:
    pass
print(os.path.getsize("big"))
try:
    f = [open("/dev/null") for i in range(100)]; print("files")
except OSError:
    pass'
  [ "$status" -eq 0 ]
  [ "$output" = $'True\n65536' ]
}

@test "what a machine cannot do: --require refuses with 77, --best-effort reports it" {
  local what
  for what in namespaces landlock seccomp; do
    run -77 "$FIX/without" "$what" -- worktree-bind exec -- touch made
    [[ "$output" == *"cannot enforce: "*--best-effort* ]]
    [ ! -e made ]
    run -77 "$FIX/without" "$what" -- worktree-bind exec --require -- touch made
    run -0 "$FIX/without" "$what" -- worktree-bind exec --best-effort -- touch made
    [[ "$output" == *"not enforced: "* ]]
    rm made
  done
}

@test "no variable turns a part of the confinement off" {
  AMP_CONFINE=off full sh -c 'cat "$1/file" 2>/dev/null; true' sh "$OUT"
  [ -z "$output" ]
  AMP_CONFINE=best-effort run -77 "$FIX/without" namespaces -- worktree-bind exec -- true
}

@test "the start is logged in a state directory, with what is not enforced" {
  local state=$BATS_TEST_TMPDIR/state
  ends 1 worktree-bind -s "$state" status nobody
  options=(-s "$state")
  full true
  landlock true
  [ "$(jq -r .code "$state/error.ndjson" | tr '\n' ' ')" = "confined not_confined " ]
  tail -n 1 "$state/error.ndjson" | jq -e '.message | test("\"level\":\"landlock\"") and test("namespaces")'
}

@test "policy: a file in the worktree of the command is refused, also in the main one" {
  cd "$BATS_FILE_TMPDIR/main"
  echo '{}' >policy.json
  run -78 worktree-bind exec --policy policy.json -- true
  [[ "$output" == *"policy.json is in the worktree, where the command could change it"* ]]
  ln -sf "$PWD/policy.json" "$BATS_FILE_TMPDIR/link.json"
  run -78 worktree-bind exec --policy "$BATS_FILE_TMPDIR/link.json" -- true
  mv policy.json "$BATS_FILE_TMPDIR/real.json"
  ln -s "$BATS_FILE_TMPDIR/real.json" policy.json
  run -78 worktree-bind exec --policy policy.json -- true
  rm policy.json
  run -0 worktree-bind exec --best-effort --policy "$BATS_FILE_TMPDIR/real.json" -- true
}

@test "full: a git directory inside of the worktree is covered" {
  cd "$BATS_FILE_TMPDIR/main"
  mkdir -p -m 700 .git/amp # the default state directory
  full sh -c 'ls -A .git; touch .git/x 2>/dev/null || touch here'
  [ "$status" -eq 0 ]
  [[ "$output" != *hooks* && "$output" != *logs* && "$output" != *amp* ]]
  [ ! -e .git/x ]
  [ -e here ]
  rm -r here .git/amp
  # An additive rule cannot take a directory out of the worktree.
  run -0 "$FIX/without" namespaces -- worktree-bind exec --best-effort -- true
  [[ "$output" == *"the git directory is in the worktree"* ]]
}

@test "an ordinary user can confine, too" {
  [ "$(id -u)" -eq 0 ] || skip "this is one"
  need setpriv
  local dir user
  dir=$(mktemp -d)
  user=(setpriv --reuid 65534 --regid 65534 --clear-groups env "HOME=$dir")
  chown 65534:65534 "$dir"
  "${user[@]}" test -x "$AMP_BUILD/bin/worktree-bind" || skip "the build cannot be read by others"
  cd "$dir"
  "${user[@]}" sh -c 'git init -q -b main r && cd r && git commit -q --allow-empty -m s && git worktree add -q ../w -b f && echo secret >../file'
  cd w
  local script='id -u; echo x >f; cat ../file 2>/dev/null; cat f'
  run --separate-stderr "${user[@]}" worktree-bind exec -- sh -c "$script"
  [ "$output" = $'65534\nx' ]
  run -77 "${user[@]}" "$FIX/without" namespaces -- worktree-bind exec -- true
  run --separate-stderr "${user[@]}" "$FIX/without" namespaces -- worktree-bind exec --best-effort -- sh -c "$script"
  [ "$output" = $'65534\nx' ]
  # Objects of a repository in HOME do not make the command's HOME the real one, whose .gitconfig it cannot read.
  echo '[user]' >"$dir/.gitconfig"
  run -0 --separate-stderr "${user[@]}" "$FIX/without" namespaces -- worktree-bind exec --best-effort -- \
    sh -c 'git log --format=%s && [ "$HOME" != "$1" ] && echo x >"$HOME/x"' sh "$dir"
  [ "$output" = s ]
  # The number of processes: here by RLIMIT_NPROC.
  echo '{"limits":{"processes":20}}' >"$BATS_FILE_TMPDIR/few.json"
  chmod 755 "$BATS_FILE_TMPDIR" && cp "$BATS_FILE_TMPDIR/few.json" "$dir"
  run "${user[@]}" worktree-bind exec --policy "$dir/few.json" -- sh -c 'for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do sleep 5 & done'
  [[ "$output" == *"fork"* ]]
  rm -rf "$dir"
}

@test "exec-each and the inbox's --exec confine when asked" {
  load ../messages
  local state=$BATS_FILE_TMPDIR/wt/state
  message task_dispatch >../in
  # The command of a port: a file of the current directory.
  cat >agent <<'EOF'
#!/bin/sh
jq -r .msg_id
cat "$OUTSIDE/file" 2>/dev/null
ls state 2>/dev/null
echo "${SECRET-} ${AMP_MSG_ID:+id}${AMP_STATE-}"
echo done >made
EOF
  chmod +x agent
  export OUTSIDE=$OUT SECRET=s
  run --separate-stderr -0 amp-route -r '* => exec-each:./agent' <../in
  [[ "$output" == *secret* ]]
  echo '{"environment":["OUTSIDE"]}' >../route.json
  local confine=(--policy ../route.json) run
  run --separate-stderr amp-route "${confine[@]}" -r '* => exec-each:./agent' <../in
  [[ "$stderr" != *"cannot enforce"* ]] || skip "this machine cannot confine"
  [ "$output" = "$(jq -r .msg_id ../in)"$'\n ' ]
  [ "$(cat made)" = done ]
  # The inbox; the state directory is in the current one and stays hidden.
  amp-route -s "$state" -r '* => inbox:x' <../in
  run -0 --separate-stderr amp-route inbox x -s "$state" "${confine[@]}" --one -x ./agent
  [ "$output" = "$(jq -r .msg_id ../in)"$'\n id' ]
  # Without namespaces nothing hides it.
  amp-route -s "$state" --as again -r '* => inbox:y' <../in
  run -77 "$FIX/without" namespaces -- amp-route inbox y -s "$state" --confine --one -x ./agent
  rm -rf "$state"
  run -0 --separate-stderr "$FIX/without" namespaces -- amp-route "${confine[@]}" --best-effort -r '* => exec-each:./agent' <../in
  [ "$output" = "$(jq -r .msg_id ../in)"$'\n ' ]
  [[ "$stderr" == *"not enforced: "* ]]
  run -78 amp-route --policy agent -r '* => exec-each:./agent' <../in
}
