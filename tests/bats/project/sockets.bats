# Standard input and output that are sockets, as programs written for node and bun give them to
# their hooks and servers: a tool behaves as with pipes.
load ../lib
load ../messages

# over_sockets CMD...: runs CMD with one end of a pair of sockets each as standard input and output.
over_sockets() {
  perl -MSocket -e '
    socketpair(my $in, my $to, AF_UNIX, SOCK_STREAM, 0) && socketpair(my $from, my $out, AF_UNIX, SOCK_STREAM, 0) or die $!;
    my $pid = fork() // die $!;
    if (!$pid) {
      open STDIN, "<&", $in; open STDOUT, ">&", $out;
      close $_ for $in, $to, $from, $out;
      exec @ARGV or die $!;
    }
    close $in; close $out;
    if (!fork()) {
      $SIG{PIPE} = "IGNORE";
      print $to $_ while <STDIN>;
      exit;
    }
    close $to;
    print while <$from>;
    waitpid $pid, 0;
    exit($? & 127 ? 128 + $? : $? >> 8)' "$@"
}

# alike STATUS CMD...: CMD ends with this status, with ./input on pipes and on sockets, and prints as many lines and the same
# errors. STATE in CMD is a state directory of its own each time.
alike() {
  local status=$1
  shift
  rm -rf state.[12]
  [ ! -d state ] || cp -r state state.1
  [ ! -d state ] || cp -r state state.2
  ends "$status" "${@//STATE/state.1}" < <(cat input) 2>pipe.err > >(wc -l >pipe.lines)
  wait $! || true
  ends "$status" over_sockets "${@//STATE/state.2}" <input 2>socket.err >socket.out
  wc -l <socket.out | diff pipe.lines -
  sed -i 's/state\.[12]/STATE/g; s/[0-9a-f-]\{36\}/UUID/g' pipe.err socket.err
  diff pipe.err socket.err
}

setup() {
  need perl git jq
  cd "$BATS_TEST_TMPDIR" || return 1
}

@test "each filter reads and writes sockets" {
  message task_dispatch >input
  alike 0 amp-validate
  [ -s socket.out ]
  alike 0 amp-validate /dev/stdin
  alike 0 amp-validate --errors /dev/stdout
  alike 0 amp-route -r '* => stdout'
  [ -s socket.out ]
  alike 0 amp-route -r '* => stdout' -i /dev/stdin -o /dev/stdout
  [ -s socket.out ]
  alike 0 amp-ack track -s STATE -i /dev/stdin -o /dev/stdout
  [ -s socket.out ]
  alike 0 agent-registry -s STATE
  [ -s socket.out ]
  alike 0 hitl-prompt -s STATE -i /dev/stdin
  alike 0 task-dispatch coordinate -s STATE -o /dev/stdout
  [ -s socket.out ]
  repo work
  alike 1 worktree-bind -C work -s STATE
  amp-ack track -s state <input >out
  alike 0 amp-top --once -s STATE
  ssh-keygen -q -t ed25519 -N '' -f key
  alike 0 amp-sign --key "$PWD/key"
  [ -s socket.out ]
  printf '%s\n' '{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"bats","version":"1"}}}' >input
  alike 0 amp-mcp --agent ann -s STATE
  [ -s socket.out ]
}

@test "hooks of coding agents and all that reads - take sockets" {
  repo work
  (cd work && worktree-bind hooks install && worktree-bind bind bob -b task/x) &>/dev/null
  for c in 'git push origin main:2' 'git status:0'; do
    printf '{"hook_event_name":"PreToolUse","tool_name":"Bash","cwd":"%s","tool_input":{"command":"%s"}}' \
      "$PWD/work.worktrees/bob" "${c%:*}" >input
    alike "${c#*:}" env -C work.worktrees/bob AMP_AGENT=bob worktree-bind agent-hook
  done
  (umask 077 && echo '{"hitl":{"hook":{"rules":[{"decision":"allow","command":"git status"}]}}}' >amp.json)
  alike 0 hitl-prompt hook -c "$PWD/amp.json"
  grep -q '"allow"' socket.out
  printf '# Title\nBranch: fix/x\n\nText.\n\n## Acceptance criteria\n- done\n' >input
  alike 0 task-dispatch new -s STATE --repo "$PWD/work" -
  [ -s socket.out ]
  alike 0 aof-board new --data-dir STATE --title t --agent ann -
  alike 65 task-dispatch verify -C work --bundle - --allowed-signers /dev/null HEAD
  alike 69 amp-ack reply -s STATE --as executor m-1 --text -
  alike 65 agent-registry register -s STATE --tool - ann
  alike 65 hitl-prompt answer -s STATE --file -
  alike 0 agent-handoff request -s STATE --as bob --to ann --reason r --task T-2026-001 --context -
}
