# The network policies of worktree-bind exec, with servers of the tests only: what a command reaches at each level,
# and what egress-gate lets through (its parsers and limits: tests/unit/ground/net_test.c, egress_gate_test.c).
# walls

load ../lib

attempts=$AMP_BUILD/tests/escape/attempts
names=(tcp tcp6 tcp_mapped fast_open multipath udp udp6 udp_unconnected dns raw raw6 packet vsock uevents interfaces listen
  unix_socket abstract_socket)

setup_file() {
  export HOME=$BATS_FILE_TMPDIR
  cd "$BATS_FILE_TMPDIR"
  # A world with servers on the loopback interface, for what goes around the gate.
  "$AMP_TOP/tests/escape/make-world" "$PWD/w" >token
  mkfifo w/hold
  ESCAPE_SECRET=x "$attempts" world "$PWD/w" "$PWD/w/tree" <w/hold 3>&- &
  echo $! >world
  # Holds the world: it ends when this process does.
  sleep 1000 >w/hold 3>&- &
  echo $! >holder
  wait_until 10 test -s w/tree/.facts
  W=$PWD/w
  (cd w/tree && reached env) >control
  repo r
  mkdir -m 700 st
}

teardown_file() {
  kill "$(cat "$BATS_FILE_TMPDIR/holder")"
  wait_until 10 gone "$(cat "$BATS_FILE_TMPDIR/world")"
}

setup() {
  need_tool worktree-bind
  cd "$BATS_FILE_TMPDIR"
  W=$PWD/w
}

# policy NETWORK [MEMBERS]: a policy file.
policy() {
  printf '{"network":"%s","read":["%s","%s"]%s}' "$1" "$attempts" "$BATS_FILE_TMPDIR/*.sh" "${2-}" >"$1.json"
}

# Full, or a skip.
need_full() {
  local status=0
  worktree-bind exec -C r -- true 2>why || status=$?
  [ "$status" -ne 77 ] || skip "not enforced here: $(cat why)"
  [ "$status" -eq 0 ]
}

# Where the level full works, user namespaces can be made and taken away.
landlock() {
  unshare -r sh -c 'echo 0 >/proc/sys/user/max_user_namespaces && exec "$@"' sh \
    worktree-bind exec --best-effort "$@"
}

full() {
  worktree-bind exec --require "$@"
}

# reached COMMAND...: the attempts that work under the command, on one line.
reached() {
  "$@" "$attempts" run "$W/tree" "${names[@]}" >out
  "$attempts" judge "$W/tree" "$(cat "$BATS_FILE_TMPDIR/token")" <out | awk '$2 == "works" { print $1 }' | paste -sd' '
}

# all_but NAME...: what a control reaches, without these.
all_but() {
  local n out=()
  for n in $(cat control); do
    [[ " $* " == *" $n "* ]] || out+=("$n")
  done
  echo "${out[*]}"
}

# check_policy NETWORK EXPECTED: the same at both levels.
check_policy() {
  local level got
  policy "$1"
  for level in full landlock; do
    got=$(cd "$W/tree" && reached "$level" -s "$BATS_FILE_TMPDIR/st" --policy "$BATS_FILE_TMPDIR/$1.json" -- 2>"$BATS_FILE_TMPDIR/err")
    [ "$level" = full ] || grep -q 'not enforced: namespaces' err
    [ "$(grep -c . "$W/tree/out")" -eq "${#names[@]}" ]
    [ "$got" = "$2" ] || {
      echo "$1 at the level $level: reached '$got', expected '$2'" >&2
      return 1
    }
  done
}

@test "control: without a confinement the servers are reached in every way" {
  [ "$(wc -w <control)" -ge 10 ]
  [[ " $(cat control) " == *" tcp "*" udp "*" dns "* ]]
  [[ " $(cat control) " == *" listen "* ]]
}

@test "DENY_ALL: nothing is reached, at both levels" {
  native "the limits of memory leave no room for it"
  need_full
  check_policy DENY_ALL ""
}

@test "EGRESS_RESTRICTED: nothing is reached around the gate, at both levels" {
  native "the limits of memory leave no room for it"
  need_full
  check_policy EGRESS_RESTRICTED ""
}

@test "EGRESS_UNRESTRICTED: TCP and UDP to any host, but no inbound connection, no other socket" {
  native "the limits of memory leave no room for it"
  need_full
  check_policy EGRESS_UNRESTRICTED "$(all_but raw raw6 packet vsock uevents interfaces listen unix_socket abstract_socket)"
}

@test "FULL_ACCESS: inbound connections too, and it is said and logged" {
  native "the limits of memory leave no room for it"
  need_full
  check_policy FULL_ACCESS "$(all_but raw raw6 packet vsock uevents unix_socket abstract_socket)"
  run -0 --separate-stderr worktree-bind exec -C r -s "$PWD/st" --network FULL_ACCESS -- true
  [[ $stderr == *"warning: "*"FULL_ACCESS"* ]]
  grep '"network\\":\\"FULL_ACCESS\\"' st/error.ndjson | grep -q '"severity":"warning"'
}

@test "no policy file, option or network policy: DENY_ALL" {
  need_full
  [ -z "$(cd "$W/tree" && reached full --read "$attempts" --)" ]
}

@test "a granted path includes its UNIX sockets at the level full, and not at landlock" {
  native "the limits of memory leave no room for it"
  need_full
  policy DENY_ALL
  [ "$(cd "$W/tree" && reached full --read "$W/sock" --policy "$BATS_FILE_TMPDIR/DENY_ALL.json" --)" = unix_socket ]
  [ -z "$(cd "$W/tree" && reached landlock --read "$W/sock" --policy "$BATS_FILE_TMPDIR/DENY_ALL.json" -- 2>"$BATS_FILE_TMPDIR/err")" ]
  grep -q 'not enforced: namespaces' err
}

# ---- through the gate ----

need_internet() {
  need openssl ip nsenter
  "$AMP_TOP/tests/escape/internet" true 2>why || skip "no network of two machines can be made here: $(tail -n 1 why)"
}

# try.sh: each HOST[/NAME] on the command line through the proxy; NAME is the server name of TLS. Prints "HOST ok" or
# the status of the proxy.
client() {
  cat >try.sh <<'X'
for h; do
  name=${h#*/} host=${h%/*}
  out=$(printf 'GET / HTTP/1.0\r\n\r\n' |
    timeout 10 openssl s_client -proxy "${HTTPS_PROXY#http://}" -connect "$host:443" -servername "$name" -quiet 2>&1)
  case $out in
  *'HTTP/1.0 200'*) echo "$h ok" ;;
  *'reason= '*) echo "$h $(expr "$out" : '.*reason= \([0-9]*\)')" ;;
  *'unrecognized name'*) echo "$h alert" ;;
  *) echo "$h: $out" ;;
  esac
done
X
}

@test "full: the gate is the way to the listed hosts, and to no other" {
  need_full
  need_internet
  client
  policy EGRESS_RESTRICTED ',"hosts":["*.vendor.test:443","[2606:4700::4]:443"]'
  rm -f st/egress.ndjson
  "$AMP_TOP/tests/escape/internet" worktree-bind exec --require -C "$PWD/r" -s "$PWD/st" \
    --policy "$PWD/EGRESS_RESTRICTED.json" -- bash "$PWD/try.sh" api.vendor.test six.vendor.test mixed.vendor.test \
    inner.vendor.test meta.vendor.test loop.vendor.test self.vendor.test evil.test vendor.test api.vendor.test/evil.test \
    1.2.3.4 nowhere.vendor.test >out
  cat >expected <<'X'
api.vendor.test ok
six.vendor.test ok
mixed.vendor.test ok
inner.vendor.test 403
meta.vendor.test 403
loop.vendor.test 403
self.vendor.test 403
evil.test 403
vendor.test 403
api.vendor.test/evil.test alert
1.2.3.4 403
nowhere.vendor.test 502
X
  diff expected out
  # Each decision has its record, which its schema describes.
  amp-validate -S "$AMP_TOP/schemas/records/egress.json" --formats st/egress.ndjson | cmp - st/egress.ndjson
  jq -r 'select(.decision != "ended") | "\(.host) \(.address // "-") \(.decision) \(.code // "-")"' st/egress.ndjson >decisions
  cat >expected <<'X'
api.vendor.test 1.2.3.4 allowed -
six.vendor.test 2606:4700::4 allowed -
mixed.vendor.test 1.2.3.4 allowed -
inner.vendor.test 10.9.8.7 refused address_refused
meta.vendor.test 169.254.169.254 refused address_refused
loop.vendor.test 127.0.0.1 refused address_refused
self.vendor.test 1.2.3.1 refused address_refused
evil.test - refused host_refused
vendor.test - refused host_refused
api.vendor.test 1.2.3.4 refused server_name_mismatch
1.2.3.4 - refused host_refused
nowhere.vendor.test - refused name_unknown
X
  diff expected decisions
  [ "$(jq -r 'select(.decision == "ended") | .code' st/egress.ndjson | sort -u)" = closed ]
}

@test "landlock: the gate is the only port that can be reached" {
  need_full
  need_internet
  client
  policy EGRESS_RESTRICTED ',"hosts":["api.vendor.test:443"]'
  rm -f st/egress.ndjson
  cat >around.sh <<'X'
bash "$1" api.vendor.test evil.test
(exec 3<>/dev/tcp/1.2.3.4/443) 2>/dev/null && echo "a way around the gate"
(exec 3<>/dev/udp/1.2.3.4/53) 2>/dev/null && echo "a way by UDP"
:
X
  "$AMP_TOP/tests/escape/internet" sh -c 'echo 0 >/proc/sys/user/max_user_namespaces && exec "$@"' sh \
    worktree-bind exec --best-effort -C "$PWD/r" -s "$PWD/st" --policy "$PWD/EGRESS_RESTRICTED.json" -- \
    bash "$PWD/around.sh" "$PWD/try.sh" >out 2>err
  grep -q 'not enforced: namespaces' err
  diff - out <<'X'
api.vendor.test ok
evil.test 403
X
  [ "$(jq -r .decision st/egress.ndjson | paste -sd' ')" = "allowed ended refused" ]
}

@test "the gate ends with the command, and when worktree-bind is killed" {
  need_full
  policy EGRESS_RESTRICTED ',"hosts":["a.example:443"]'
  mkfifo ready gone 2>/dev/null || :
  cat >wait.sh <<'X'
echo "$HTTPS_PROXY" >>"$PWD/proxy"
sleep 1000
X
  worktree-bind exec -C r -s "$PWD/st" --policy "$PWD/EGRESS_RESTRICTED.json" -- bash "$PWD/wait.sh" 3>&- &
  local pid=$! gate
  wait_until 10 test -s r/proxy
  [[ $(cat r/proxy) == http://127.0.0.1:* ]]
  gate=$(pgrep -P "$pid" egress-gate)
  kill -KILL "$pid"
  wait "$pid" || :
  wait_until 10 gone "$gate"
}

@test "amp-egress(7) has each code of the records, and the program has it too" {
  local code
  while read -r code; do
    grep -qE "^\.It Sy (.* , )?$code( ,|$)" "$AMP_TOP/man/amp-egress.7" || {
      echo "amp-egress(7) does not have $code" >&2
      return 1
    }
    [ "$code" = no_memory ] || grep -rqwF "$code" "$AMP_TOP"/libexec/egress-gate "$AMP_TOP"/lib/net
  done < <(jq -r '.properties.code.enum[]' "$AMP_TOP/schemas/records/egress.json")
}

# ---- the example policies ----

@test "each example policy is valid, and is used as it is" {
  need_full
  local p n=0
  for p in "$AMP_TOP"/examples/policies/*.json; do
    jq -c . "$p" | amp-validate -S "$AMP_TOP/schemas/config/confinement.json" >valid || {
      echo "$p is not valid" >&2
      return 1
    }
    worktree-bind exec -C r -s "$PWD/st" --policy "$p" -- true
    n=$((n + 1))
  done
  [ "$n" -ge 3 ]
}

@test "a coding agent's policy: its vendor's API, its credentials for reading, and nothing else" {
  need_full
  need_internet
  client
  mkdir -p home/.claude home/.codex home/.ssh
  echo credentials >home/.claude/.credentials.json
  echo settings >home/.claude/settings.json
  echo key >home/.ssh/id_ed25519
  cat >agent.sh <<'X'
cat ~/.claude/.credentials.json
cat ~/.ssh/id_ed25519 2>/dev/null && echo "a key was read"
echo forged >~/.claude/.credentials.json && echo "credentials were changed"
bash "$1" api.anthropic.com api.openai.com github.com
X
  jq --arg d "$PWD/*.sh" '.read += [$d]' "$AMP_TOP/examples/policies/claude.json" >claude.json
  rm -f st/egress.ndjson
  printf '1.2.3.4 api.anthropic.com api.openai.com github.com\n' >more-hosts
  HOME=$PWD/home "$AMP_TOP/tests/escape/internet" sh -c 'cat more-hosts >>/etc/hosts; exec "$@"' sh \
    worktree-bind exec -C "$PWD/r" -s "$PWD/st" --policy "$PWD/claude.json" -- bash "$PWD/agent.sh" "$PWD/try.sh" >out 2>err
  diff - out <<'X'
credentials
api.anthropic.com ok
api.openai.com 403
github.com 403
X
  [ "$(cat home/.claude/.credentials.json)" = credentials ]
}
