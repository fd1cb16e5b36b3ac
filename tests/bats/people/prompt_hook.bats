#!/usr/bin/env bats
# hitl-prompt hook: events of coding agents, rules, asking a person, and every failure blocks the call.
# walls

load ../lib

setup() {
  need_tool hitl-prompt
  need jq
  cd "$BATS_TEST_TMPDIR" || return 1
  mkdir -p work/src
  repo work
  touch work/src/a.c
  umask 077
  rules '"ask":"cli"'
  cwd=$BATS_TEST_TMPDIR/work
}

# rules [MEMBERS]: the configuration amp.json.
rules() {
  echo '{"hitl":{"hook":{"rules":[
    {"decision":"allow","kind":"command","command":"git status *"},
    {"decision":"allow","kind":"command","command":"ls *"},
    {"decision":"deny","command":"git push *","reason":"people push"},
    {"decision":"deny","path":".env"},
    {"decision":"allow","kind":"read","path":"**"},
    {"decision":"deny","tool":"mcp__github__*"},
    {"decision":"allow","kind":"write","path":"src/**"}]'"${1:+,$1}"'}}}' >amp.json
}

# event COMMAND: an event of Claude Code.
event() {
  printf '{"session_id":"s","cwd":"%s","permission_mode":"default","hook_event_name":"PreToolUse","tool_name":"Bash","tool_input":{"command":"%s"},"tool_use_id":"u"}' "$cwd" "$1"
}
hook() {
  hitl-prompt hook -c amp.json "$@"
}

@test "the events of each coding agent are read, and the decision is in its form" {
  wrong=0 n=0
  while IFS='|' read -r cli expected input reply; do
    status=0
    hook ${cli:+--cli "$cli"} <<<"${input//@CWD@/$cwd}" >got 2>said || status=$?
    n=$((n + 1))
    [ "$status" -eq "$expected" ] && [ "$(<got)" = "$reply" ] && { [ "$status" -eq 0 ] || [ -s said ]; } && continue
    echo "$cli|$input: $status, not $expected: $(<got) $(<said)"
    wrong=$((wrong + 1))
  done < <(grep -v '^#' "$AMP_TOP/tests/fixture/hook/events.txt")
  [ "$wrong" -eq 0 ]
  [ "$n" -gt 50 ]
}

@test "hostile input blocks: bytes, depth, size" {
  head -c 100000 /dev/urandom | { run -2 hook; }
  run -2 hook < <(printf '%0100000d' 0 | tr 0 '[')
  run -2 hook < <(head -c 17000000 /dev/zero | tr '\0' ' ')
  run -2 hook < <(event 'git status \xff')
  run -0 --separate-stderr hook --cli copilot < <(head -c 17000000 /dev/zero | tr '\0' ' ')
  [[ $output == '{"permissionDecision":"deny"'* ]]
}

@test "without a configuration that only people can change, every call is blocked" {
  e=$(event 'git status')
  run -0 hook <<<"$e"
  run -2 hitl-prompt hook -c nowhere.json <<<"$e"
  echo '{"hitl":{"hook":{"rules":[]}}}' >empty.json
  run -2 hitl-prompt hook -c empty.json <<<"$e"
  [[ $output == *"has no hitl.hook.rules"* ]]
  echo '{"hitl":{"hook":{"rules":[{"decision":"allow","command":"git status && x"}]}}}' >bad.json
  run -2 hitl-prompt hook -c bad.json <<<"$e"
  echo '{"hitl":{"hook":{"rulez":[]}}}' >bad.json
  run -2 hitl-prompt hook -c bad.json <<<"$e"
  cp amp.json work/amp.json
  run -2 hitl-prompt hook -c work/amp.json <<<"$e"
  [[ $output == *"in the worktree of the call"* ]]
  git -C work worktree add -q ../linked
  cp amp.json linked/amp.json
  run -2 hitl-prompt hook -c linked/amp.json <<<"$e"
  [[ $output == *"in a worktree"* ]]
  ln -s ../work/amp.json linked/link.json
  run -2 hitl-prompt hook -c linked/link.json <<<"$e"
  chmod 622 amp.json
  run -2 hook <<<"$e"
  [[ $output == *"others could change it"* ]]
  run -2 hitl-prompt hook -c amp.json --no-such-option <<<"$e"
  run -2 hitl-prompt hook operand <<<"$e"
}

@test "the environment chooses neither the configuration nor the state directory" {
  e=$(event 'git status')
  mkdir -p xdg/amp home/.config/amp
  cp amp.json xdg/amp/amp.json
  cp amp.json home/.config/amp/amp.json
  run hitl-prompt hook <<<"$e"
  without=$status:$output
  AMP_CONFIG=$PWD/amp.json XDG_CONFIG_HOME=$PWD/xdg HOME=$PWD/home run hitl-prompt hook <<<"$e"
  [ "$status:$output" = "$without" ]
  rules
  AMP_STATE=$PWD/state run -0 --separate-stderr hook < <(event make)
  [[ $output == *'"deny"'*"no state directory"* ]]
  [ ! -e state ]
}

@test "an output that cannot be written blocks" {
  [ -e /dev/full ] || skip "no /dev/full"
  run -2 bash -c 'event=$1; hitl-prompt hook -c amp.json <<<"$event" >/dev/full' - "$(event 'git status')"
  run -2 bash -c 'event=$1; hitl-prompt hook -c amp.json --cli copilot <<<"$event" >/dev/full' - '{"toolName":"x","toolArgs":{}}'
}

# ask STATE COMMAND [OPTION...]: the hook in the background; its reply is in the file reply, its status in status.
ask() {
  local e
  state=$1
  shift
  mkdir -p "$state"
  e=$(event "$1")
  shift
  (
    status=0
    hook --state "$state" "$@" <<<"$e" >reply 2>said 3>&- || status=$?
    echo "$status" >status
  ) &
  hook_pid=$!
  wait_until 10 asked
}
asked() { grep -q '"event":"arrive"' "$state"/log/*.ndjson; }
invocation() { jq -c 'select(.key | startswith("message.")).state.msg | select(.message_type == "HITL_INVOCATION").payload' "$state"/log/*.ndjson | tail -n 1; }
question() { invocation | jq -r .invocation_id; }

# modify JSON: answers the question of ask with another input, and waits for the reply.
modify() {
  jq -nc --arg q "$(question)" --arg p "$(base64 -w 0 <<<"$1")" '{question: $q, answer: "modify", note: "so", patch_b64: $p}' >answer.json
  hitl-prompt answer --state "$state" --file answer.json >/dev/null
  wait "$hook_pid"
}

@test "a person is asked: approve, deny, modify" {
  rules
  AMP_AGENT=bob AMP_TASK_ID=T-2026-001 ask one 'make \"all\"'
  invocation >payload
  [ "$(jq -r .reason_type payload)" = TOOL_PRIVILEGE_ESCALATION ]
  [ "$(jq -r .subject.task_id payload)" = T-2026-001 ]
  [ "$(jq -r '.context | .cli + " " + .tool + " " + .command + " " + .cwd + " " + .agent + " " + .session' payload)" \
    = "claude Bash make \"all\" $cwd bob s" ]
  hitl-prompt answer --state "$state" "$(question)" approve fine >/dev/null
  wait "$hook_pid"
  [ "$(<status)" -eq 0 ]
  [ "$(jq -r .hookSpecificOutput.permissionDecision reply)" = allow ]
  ask two 'make x'
  hitl-prompt answer --state "$state" "$(question)" deny not now >/dev/null
  wait "$hook_pid"
  [ "$(jq -r '.hookSpecificOutput | .permissionDecision + " " + .permissionDecisionReason' reply)" = "deny denied by $(id -un): not now" ]
  # Another input, as an object and as the edited payload; a rule that denies still counts.
  ask three 'make x'
  modify '{"command":"make \"y\""}'
  [ "$(jq -c '.hookSpecificOutput | [.permissionDecision, .updatedInput]' reply)" = '["allow",{"command":"make \"y\""}]' ]
  ask four 'make x'
  modify "$(invocation | jq '.context.input.command = "make z"')"
  [ "$(jq -c '.hookSpecificOutput | [.permissionDecision, .updatedInput]' reply)" = '["allow",{"command":"make z"}]' ]
  ask five 'make x'
  modify '{"command":"git push"}'
  [[ $(<reply) == *'"deny"'*"the changed call is denied: people push"* ]]
  ask six 'make x'
  modify '["git push"]'
  [[ $(<reply) == *'"deny"'*"not a JSON object"* ]]
  # From the command line.
  ask seven 'make x'
  run -65 hitl-prompt answer --state "$state" "$(question)" modify '{"command":"make y"'
  [[ $output == *"modify {"*"line 1"* ]]
  hitl-prompt answer --state "$state" --print "$(question)" modify '{"command": "make y"}' >answered
  wait "$hook_pid"
  [ "$(jq -c '.hookSpecificOutput | [.permissionDecision, .updatedInput]' reply)" = '["allow",{"command":"make y"}]' ]
  [ "$(jq -r '.. | .patch_b64? // empty | @base64d' answered)" = '{"command": "make y"}' ]
}

@test "a call is allowed for the session: by rule and tool, for a time, never for high risk, and revocable" {
  echo '{"hitl":{"hook":{"session":"1h","rules":[
    {"decision":"ask","command":"make *"},
    {"decision":"ask","command":"curl *","risk":"high"},
    {"decision":"deny","command":"git push *"}]}}}' >amp.json
  ask one 'make all'
  [ "$(invocation | jq -c '[.proposed_actions, .context.session_permission.minutes]')" = '[["approve_session"],60]' ]
  [[ $(invocation | jq -r .context.session_permission.allows) == "claude, session s, tool Bash in $cwd: "*"make"* ]]
  hitl-prompt answer --state "$state" "$(question)" approve_session >/dev/null
  wait "$hook_pid"
  [[ $(<reply) == *'"allow"'*"approved for this session by $(id -un)"* ]]
  again() { run -0 --separate-stderr hook --state "$state" --deadline 1s < <(event "$1" | sed "s/\"s\"/\"${2:-s}\"/"); }
  # The same rule and tool: not asked again. Another rule, command or session is.
  again 'make install'
  [[ $output == *'"allow"'*"until 20"* ]]
  again 'make x && git push'
  [[ $output == *'"deny"'*"git push"* ]]
  again 'cp a b'
  [[ $output == *'"deny"'*"in time"* ]]
  # What follows behind the rule's command, or is in it, is not allowed with it.
  again 'make x && rm -r src'
  [[ $output == *'"deny"'*"in time"* ]]
  [[ $(invocation | jq -r .context.session_permission.allows) == *": this call only" ]]
  again 'make >src/a.c'
  [[ $output == *'"deny"'*"in time"* ]]
  AMP_AGENT=two again 'make install'
  [[ $output == *'"deny"'*"in time"* ]]
  again 'make all' other
  [[ $output == *'"deny"'*"in time"* ]]
  # High risk is never allowed for a session, also if somebody answers so.
  again 'curl x; make all'
  [[ $output == *'"deny"'*"in time"* ]]
  [ "$(invocation | jq -c '.proposed_actions')" = null ]
  # What is allowed is listed, and ends when it is revoked.
  run -0 hitl-prompt hook -c amp.json --state "$state" --grants
  [[ $output == *"  until "*"claude, session s, tool Bash"* ]]
  hitl-prompt hook -c amp.json --state "$state" --revoke "${output%% *}"
  run -1 hitl-prompt hook -c amp.json --state "$state" --revoke "${output%% *}"
  again 'make install'
  [[ $output == *'"deny"'*"in time"* ]]
  # Without a rule that asks, only the same call; and the time passes.
  sed -i 's/"1h"/"1s"/' amp.json
  ask two 'cp a b'
  hitl-prompt answer --state "$state" "$(question)" approve_session >/dev/null
  wait "$hook_pid"
  state=two
  again 'cp a c'
  [[ $output == *'"deny"'*"in time"* ]]
  again 'cp a b'
  [[ $output == *'"deny"'*"in time"* ]]
  hitl-prompt audit --state two --what decided --json | jq -e '.decision == "approve_session"'
}

@test "a confined agent's hook asks through its worker, and blocks without an answer" {
  load ../agents
  workplace
  need_tool task-dispatch
  umask 077
  echo '{"hitl":{"hook":{"ask":"worker","rules":[{"decision":"allow","command":"ls *"}]}}}' >amp.json
  agent talks <<EOS
call() { printf '{"session_id":"s","cwd":"%s","hook_event_name":"PreToolUse","tool_name":"Bash","tool_input":{"command":"%s"},"tool_use_id":"u"}' "\$PWD" "\$1" |
  hitl-prompt hook -c "$BATS_TEST_TMPDIR/amp.json" "\${@:2}" >>"$BATS_TEST_TMPDIR/replies" 2>>"$BATS_TEST_TMPDIR/said" || echo "status \$?" >>"$BATS_TEST_TMPDIR/replies"; }
call 'make one' --deadline 20s
call 'make two' --deadline 20s
call 'make three' --deadline 1s
call "\$(printf %09000d 0)"
AMP_CONTROL= call 'make four' --deadline 1s
AMP_CONTROL=/dev/null call 'make five' --deadline 1s
call 'ls x'
echo x >x
EOS
  dispatch | task-dispatch run --state "$STATE" --exec ./talks >out.ndjson 2>err &
  runs=$!
  # answer N DECISION: of the N-th question.
  answer() {
    wait_until 20 eval '[ "$(grep -c "\"type\":\"escalation\"" out.ndjson)" -ge '"$1"' ]'
    echo "{\"task_id\":\"*\",\"decision\":\"$2\",\"note\":\"$3\"}" >answer
    grep '"type":"escalation"' out.ndjson | sed -n "$1p" | hitl-prompt --state "$STATE" --answer answer >>decisions
  }
  answer 1 resume ""
  answer 2 terminate "not this"
  wait "$runs"
  cat replies
  [ "$(jq -Rr 'fromjson? // . | if type == "object" then .hookSpecificOutput | .permissionDecision + ": " + .permissionDecisionReason else . end' replies | cut -c1-40)" = \
    "allow: approved by a person
deny: denied by a person: not this
deny: no person decided in time
deny: no rule of hitl.hook.rules decides
deny: no rule of hitl.hook.rules decides
deny: no rule of hitl.hook.rules decides
allow: allowed by hitl.hook.rules" ]
}

@test "in the sandbox of run, too, the hook asks through its worker" {
  native "a sanitizer reserves more memory than the sandbox gives"
  load ../agents
  "$AMP_BUILD/libexec/amp/confine" --probe | jq -e '.namespaces == true and .landlock > 0 and .seccomp == true' >/dev/null ||
    skip "this machine cannot confine"
  workplace
  need_tool task-dispatch
  umask 077
  echo '{"hitl":{"hook":{"ask":"worker","rules":[{"decision":"allow","command":"ls *"}]}}}' >amp.json
  jq -n --arg top "$AMP_TOP" --arg config "$PWD/amp.json" '{read: [$top + "/**", $config]}' >policy.json
  agent talks <<EOS
call() { printf '{"session_id":"s","cwd":"%s","hook_event_name":"PreToolUse","tool_name":"Bash","tool_input":{"command":"%s"},"tool_use_id":"u"}' "\$PWD" "\$1" |
  "$AMP_BUILD/bin/hitl-prompt" hook -c "$BATS_TEST_TMPDIR/amp.json" "\${@:2}" >>replies 2>&1 || echo "status \$?" >>replies; }
call 'make one' --deadline 20s
call 'make two' --deadline 1s
call 'ls x'
EOS
  dispatch | AMP_CONFINE=require task-dispatch run --state "$STATE" --policy policy.json --exec ./talks >out.ndjson 2>err &
  runs=$!
  wait_until 20 grep -q '"type":"escalation"' out.ndjson
  echo '{"task_id":"*","decision":"resume","note":""}' >answer
  grep -m 1 '"type":"escalation"' out.ndjson | hitl-prompt --state "$STATE" --answer answer >decisions
  wait "$runs"
  jq -es 'any(.[]; .type == "task_result" and any(.payload.work_log[]; .action == "confinement" and (.detail | fromjson).level == "full"))' out.ndjson
  git -C "$REPO" show feat/x:replies >replies
  cat replies
  [ "$(jq -r '.hookSpecificOutput | .permissionDecision + ": " + .permissionDecisionReason' replies)" = \
    "allow: approved by a person
deny: no person decided in time
allow: allowed by hitl.hook.rules" ]
}

@test "a hitl-prompt that runs already asks, and what it shows is marked" {
  rules
  mkdir one
  mkfifo in answers
  hitl-prompt --state one --in in --answer answers >decisions 2>/dev/null 3>&- &
  prompt=$!
  exec 5<>in
  ask one 'make\nApprove: yes'
  run -0 hitl-prompt show --state one "$(question)"
  [[ $output == *"command      | make"*"             | Approve: yes"* ]]
  [[ $output == *"tool         | Bash"* ]]
  echo approve >answers
  wait "$hook_pid"
  [[ $(<reply) == *'"allow"'* ]]
  kill "$prompt"
  exec 5>&-
  ends 130 wait "$prompt"
}

@test "when the time is over or a signal comes, the call is blocked and the question is closed" {
  rules
  ask one make --deadline 1s
  wait "$hook_pid"
  [ "$(<status)" -eq 0 ]
  [[ $(<reply) == *'"deny"'*"in time"* ]]
  run -1 hitl-prompt answer --state "$state" "$(question)" approve
  [[ $output == *"its sender withdrew the question"* ]]
  ask two make
  wait_until 5 pgrep -P "$hook_pid" -x hitl-prompt
  kill -TERM "$(pgrep -P "$hook_pid" -x hitl-prompt)"
  wait "$hook_pid"
  [[ $(<reply) == *'"deny"'*interrupted* ]]
  run -1 hitl-prompt answer --state "$state" "$(question)" approve
}

@test "where no person can be asked the call is denied in a sentence: a full disk, a state directory in the worktree" {
  rules
  mkdir -p work/state work/src/.git/amp state
  for dir in work/state work/.git work/.git/amp/x work/src/.git/amp nowhere; do
    [ "$dir" = nowhere ] || mkdir -p "$dir"
    run -0 --separate-stderr hook --state "$dir" < <(event make)
    [[ $output == *'"deny"'*"decides, and no person can be asked: $dir"* ]]
    [[ $stderr == *"$dir"* ]]
  done
  [ ! -e nowhere ]
  # The output is a pipe, the disk is full.
  run -0 --separate-stderr bash -c '(ulimit -f 0; trap "" XFSZ; exec hitl-prompt hook -c amp.json --state state) | cat' < <(event make)
  [[ $output == *'"deny"'*"no person can be asked"* ]]
}

@test "the state directory that init makes is found from anywhere in the repository, and a person is asked in it" {
  rules
  (cd work && task-dispatch init -x true -y true --unconfined </dev/null >../init 2>&1)
  git -C work worktree add -q ../linked
  state=$PWD/work/.git/amp
  for cwd in "$PWD/work/src" "$PWD/linked"; do
    e=$(event make)
    hook <<<"$e" >reply 2>said 3>&- &
    hook_pid=$!
    wait_until 10 eval 'id=$(cd "$cwd" && hitl-prompt list --json | jq -re .id)'
    (cd "$cwd" && hitl-prompt answer "$id" approve) >/dev/null
    wait "$hook_pid"
    [[ $(<reply) == *'"allow"'*"approved by"* ]]
  done
  # A bare repository that files of the worktree look like has none.
  git init -q --bare work/evil
  mkdir -p work/evil/amp work/sub
  for cwd in "$PWD/work/evil" "$PWD/work/evil/refs"; do
    run -0 --separate-stderr hook < <(event make)
    [[ $output == *'"deny"'*"no state directory"* ]]
  done
}

@test "a suspended agent makes no call" {
  mkdir work/.git/amp
  printf 'amp-suspended 1\n* suspended by root: stop\n' >work/.git/amp/suspended
  run -0 --separate-stderr hook < <(event 'git status')
  [[ $output == *'"deny"'*"is suspended by"* ]]
  echo nonsense >work/.git/amp/suspended
  run -2 hook < <(event 'git status')
}

@test "inside of a sandbox the call is blocked, unless the configuration may be read" {
  unset AMP_CONFINE
  need_tool worktree-bind
  cd work
  worktree-bind exec -- true || skip "this machine cannot confine"
  worktree-bind exec --read "$AMP_BUILD" -- "$AMP_BUILD/bin/hitl-prompt" --version || skip "the programs do not run in a sandbox"
  run -2 worktree-bind exec --read "$AMP_BUILD" -- "$AMP_BUILD/bin/hitl-prompt" hook -c ../amp.json < <(event 'git status')
  run -2 worktree-bind exec --read "$AMP_BUILD" -- "$AMP_BUILD/bin/hitl-prompt" hook < <(event 'git status')
  run -0 worktree-bind exec --read "$AMP_BUILD" --read "$BATS_TEST_TMPDIR/amp.json" -- \
    "$AMP_BUILD/bin/hitl-prompt" hook -c "$BATS_TEST_TMPDIR/amp.json" < <(event 'git status')
  [[ $output == *'"permissionDecision":"allow"'* ]]
}

@test "the ready-made settings are valid and name the coding agent" {
  cd "$AMP_TOP/share/agents"
  local n=0
  for f in */hooks.json {claude,gemini,qwen}/settings.json; do
    jq -e . "$f" >/dev/null
    grep -q -- "hitl-prompt hook --cli ${f%%/*} ||" "$f"
    n=$((n + 1))
  done
  [ "$n" -eq 7 ]
  cp amp.json "$BATS_TEST_TMPDIR/amp.json"
  cd "$BATS_TEST_TMPDIR"
  run -0 --separate-stderr hook < <(event 'git status && ls -la')
  [ "$(jq -r .hookSpecificOutput.permissionDecision <<<"$output")" = allow ]
  # The commands of the settings, with the program and without it.
  for f in claude/settings codex/hooks gemini/settings qwen/settings copilot/hooks; do
    command=$(jq -r '[.hooks | .. | .bash?, .command? | strings][0]' "$AMP_TOP/share/agents/$f.json")
    run bash -c "$command" <<<'nonsense'
    [ "$status" -eq 2 ] || [[ $output == *'"permissionDecision":"deny"'* ]]
    PATH=/usr/bin:/bin run bash -c "$command" <<<'nonsense'
    [ "$status" -eq 2 ] || [[ $output == *'"permissionDecision":"deny"'* ]]
  done
  # Killed: a status of 2 without a word lets the call through in Codex, Gemini CLI and Qwen Code.
  mkdir killed
  printf '#!/bin/sh\nkill -9 $$\n' | tee killed/hitl-prompt >killed/worktree-bind
  chmod +x killed/*
  for f in "$AMP_TOP"/share/agents/{claude,gemini,qwen}/settings.json "$AMP_TOP"/share/agents/{codex,vscode,cursor}/hooks.json \
    "$AMP_TOP/examples/hooks/claude-settings.json"; do
    while IFS= read -r command; do
      PATH=$PWD/killed:/usr/bin:/bin run -2 --separate-stderr sh -c "$command" <<<'nonsense'
      [[ $stderr == *"failed, so this call is blocked"* ]]
    done < <(jq -r '.hooks | .. | .command? | strings' "$f")
  done
}

@test "the plugin of OpenCode lets a call pass or stops it" {
  need node
  cat >try.mjs <<'JS'
const { HitlPrompt } = await import(process.argv[2]);
const plugin = await HitlPrompt({ directory: process.argv[3] });
const before = plugin["tool.execute.before"];
for (const command of ["git status", "git push"]) {
  try {
    await before({ tool: "bash", sessionID: "s", callID: "c" }, { args: { command } });
    console.log(command + ": runs");
  } catch (error) {
    console.log(command + ": " + error.message);
  }
}
JS
  cp "$AMP_TOP/share/agents/opencode/hitl-prompt.js" plugin.mjs
  mkdir bin
  printf '#!/bin/sh\nexec %s "$@" -c %s\n' "$AMP_BUILD/bin/hitl-prompt" "$PWD/amp.json" >bin/hitl-prompt
  chmod +x bin/hitl-prompt
  PATH=$PWD/bin:$PATH run -0 node try.mjs "$PWD/plugin.mjs" "$cwd"
  [ "${lines[0]}" = "git status: runs" ]
  [[ ${lines[1]} == "git push: people push"* ]]
}

@test "--check: the agent obeys the hook, runs the command, is blocked by something else, or never asks" {
  need curl
  mkdir bin
  # A stand-in of Claude Code; tests/realcli has the real ones.
  cat >bin/claude <<X
#!/bin/bash
ask() {
  jq -cn --arg text "\$1" --arg id "\$2" '{stream: true, tools: [{name: "Bash"}], messages: [{content: [{type: "tool_result", tool_use_id: \$id, content: \$text}]}]}' |
    curl -s "\$ANTHROPIC_BASE_URL/v1/messages" -d @-
}
[ \$how != never ] || { echo no login; exit 1; }
command=\$(ask hello none | sed -n 's/^data: //p' | jq -r '.delta.partial_json? // empty | fromjson.command')
case \$how in
runs) eval "\$command" ;;
blocked) ask "not in this mode" toolu_1 ;;
obeys) ask "\$(jq -cn --arg c "\$command" '{hook_event_name: "PreToolUse", cwd: "$cwd", tool_name: "Bash", tool_input: {command: \$c}}' |
  hitl-prompt hook -c $PWD/amp.json --cli claude)" toolu_1 ;;
esac
X
  chmod +x bin/claude
  export PATH=$PWD/bin:$PATH how
  how=obeys run -0 hitl-prompt hook --check claude
  [ "$output" = "claude calls hitl-prompt before a command and obeys it" ]
  how=runs run -1 hitl-prompt hook --check claude
  [[ $output == "hitl-prompt: error: claude ran a command without asking hitl-prompt"* ]]
  how=blocked run -1 hitl-prompt hook --check claude
  [[ $output == *"not because hitl-prompt denied it"*"not in this mode"* ]]
  how=never run -69 hitl-prompt hook --check claude
  [[ $output == *"(status 1). It printed: no login" ]]
  run -69 hitl-prompt hook --check no-such-agent
  [[ $output == *"no-such-agent is not installed" ]]
  run -64 hitl-prompt hook --check true
  # A rule that allows everything does not allow it; a command without an id of its own is like any other.
  echo '{"hitl":{"hook":{"rules":[{"decision":"allow"}]}}}' >amp.json
  run -0 hook < <(event 'hitl-prompt hook --check 0123456789abcdef')
  [[ $output == *'"deny"'*"hook check 0123456789abcdef: hitl-prompt denies this call"* ]]
  run -0 hook < <(event 'hitl-prompt hook --check claude')
  [[ $output == *'"allow"'* ]]
}
