#!/usr/bin/env bats
# hitl-prompt hook --replay: what the rules would have decided about recorded calls.

load ../lib

setup() {
  need_tool hitl-prompt
  need jq
  cd "$BATS_TEST_TMPDIR" || return 1
  mkdir -p work/src
  repo work
  rules
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
replay() { hitl-prompt hook -c amp.json --replay "$@"; }
# call COMMAND [MEMBERS]: a call alone, without an event.
call() { jq -cn --arg c "$1" '{tool_name: "Bash", tool_input: {command: $c}}'" + {${2-}}"; }

@test "what each coding agent records has the same calls, and the rules decide about them as in its hook" {
  local file push write list others n=0
  while read -r file push write list others; do
    sed "s,@CWD@,$PWD/work,g" "$AMP_TOP/tests/fixture/hook/recorded/$file.jsonl" >record
    echo "$file"
    run -0 replay record
    tool=$(sed -n '2s/^[0-9]*: asked: \([A-Za-z_]*\): .*/\1/p' <<<"$output")
    diff - <(sed 's,/bin/bash -lc ,,; s,: [A-Z]*[a-z_]*: git,: SHELL: git,; s,: [A-Z]*[a-z_]*: ls,: SHELL: ls,' <<<"$output") <<X
$push: denied: SHELL: git push origin main: people push (rule 3 of hitl.hook.rules: git push *)
$write: asked: $tool: $PWD/work/hello.txt: no rule of hitl.hook.rules decides
$list: asked: SHELL: ls | head -3: no rule of hitl.hook.rules decides
would have allowed 1, asked 2, denied 1 of 4; lines without a call: $others
X
    replay record --json | jq -es --arg cli "${file%%-*}" --argjson push "$push" 'length == 4 and all(.[:3][]; .cli == $cli)
      and (.[0] | .line == $push and .decision == "deny" and .kind == "command" and .rule == 3)
      and (.[1] | .decision == "ask" and .kind == "write" and has("rule") == false) and .[3].unknown_lines == 0'
    n=$((n + 1))
  done <<'X'
claude-session 10 13 15 14
claude-stream  4 6 8 7
codex-session  7 10 13 13
codex-exec     6 8 10 8
gemini-session 12 17 22 22
gemini-stream  5 7 9 8
qwen-session   7 11 15 15
qwen-stream    5 7 9 8
opencode-run   5 8 11 11
X
  [ "$n" -eq 9 ]
}

@test "recorded events of hooks are decided as the hook decides, with the same reasons" {
  local cli status input reply
  rules '"ask":"cli"'
  while IFS='|' read -r cli status input reply; do
    [[ $status == 0 && $cli != copilot && $input == "{"* ]] || continue
    echo "${input//@CWD@/$PWD/work}"
    # What the CLI cannot ask, and no person can be asked, the hook denies: the rules ask.
    if [ -z "$reply" ] || [[ $reply == *'"allow"'* ]]; then
      echo allowed >&3
    elif [[ $reply == *'"ask"'* || $reply == *"no person can be asked"* ]]; then
      echo asked >&3
    else
      echo denied >&3
    fi
  done < <(grep -v '^#' "$AMP_TOP/tests/fixture/hook/events.txt") >record 3>expected
  [ "$(wc -l <record)" -gt 25 ]
  n() { grep -c "^$1" expected; }
  run -0 replay record
  [ "${lines[-1]}" = "would have allowed $(n allowed), asked $(n asked), denied $(n denied) of $(wc -l <record); lines without a call: 0" ]
  diff <(grep -n . expected | grep -v allowed | tr ':' ' ') <(sed '$d; s/^\([0-9]*\): \([a-z]*\):.*/\1 \2/' <<<"$output")
}

@test "calls alone and lists of them are read, from standard input, too; other events have no call" {
  {
    call 'git status'
    jq -cn '[range(3) | {tool_name: "Bash", tool_input: {command: "ls"}}] + [{tool_name: "Write", tool_input: {file_path: "src/a.c"}}]'
    echo '{"hook_event_name":"PostToolUse","tool_name":"Bash","tool_input":{"command":"git push"}}'
    echo '{"hook_event_name":"SessionStart","cwd":"/","source":"startup"}'
    echo
    call 'git push'
  } >calls
  cd work
  hitl-prompt hook -c ../amp.json --replay - <../calls >../got
  diff - ../got <<'X'
6: denied: Bash: git push: people push (rule 3 of hitl.hook.rules: git push *)
would have allowed 5, asked 0, denied 1 of 6; lines without a call: 2
X
}

@test "--cli names the agent, hitl.hook.undecided and unread count, and a directory that is not here is taken as written" {
  local stderr
  rules '"undecided":"deny"'
  run -0 replay - < <(call make)
  [ "${lines[0]}" = "1: denied: Bash: make: no rule of hitl.hook.rules decides" ]
  rules '"unread":"deny"'
  # shellcheck disable=SC2016
  run -0 replay - < <(call 'ls $(x)')
  [ "${lines[-1]}" = "would have allowed 0, asked 0, denied 1 of 1; lines without a call: 0" ]
  echo '{"hitl":{"hook":{"rules":[{"decision":"allow","cli":"qwen","kind":"command","command":"make"}]}}}' >amp.json
  run -0 replay - < <(call make)
  [ "${lines[-1]}" = "would have allowed 0, asked 1, denied 0 of 1; lines without a call: 0" ]
  run -0 replay - --cli qwen < <(call make)
  [ "${lines[-1]}" = "would have allowed 1, asked 0, denied 0 of 1; lines without a call: 0" ]
  rules
  jq -cn '{type: "assistant", cwd: "/nowhere/at/all", message: {content: [("/nowhere/at/all/src/b.c", "/nowhere/at/src/b.c")
    | {type: "tool_use", name: "Write", input: {file_path: .}}]}}' >record
  run -0 --separate-stderr replay record
  [ "${lines[0]}" = "1: asked: Write: /nowhere/at/src/b.c: no rule of hitl.hook.rules decides" ]
  [ "${lines[1]}" = "would have allowed 1, asked 1, denied 0 of 2; lines without a call: 0" ]
  [[ $stderr == *"/nowhere/at/all does not exist here"* ]]
}

@test "a message that is written again with more calls counts each call once" {
  said() { jq -cn --arg id "$1" --argjson n "$2" '{type: "gemini", id: $id, toolCalls: [range($n) | {name: "run_shell_command", args: {command: "git push \(.)"}}]}'; }
  { said a 1 && said a 3 && said a 3 && said b 2; } >record
  run -0 replay record
  [ "$(cut -d: -f1 <<<"${output%would*}" | xargs)" = "1 2 2 4 4" ]
  [ "${lines[-1]}" = "would have allowed 0, asked 0, denied 5 of 5; lines without a call: 1" ]
}

@test "lines of unknown form are counted and said; a malformed call is blocked as in the hook" {
  {
    call 'git status'
    echo 'not JSON'
    echo 7
    echo '{"some":"object"}'
    echo '{"type":"assistant","message":{"content":[{"type":"tool_use","name":"Bash"}]}}'
    head -c 17000000 /dev/zero | tr '\0' ' ' && echo
    head -c 1000 /dev/urandom | tr -d '\n' && echo
    printf '%0100000d\n' 0 | tr 0 '['
    echo '{"type":"a form of tomorrow"}'
    echo '{"tool_name":"Bash","tool_input":{}}'
  } >record
  run -0 replay record
  diff - <(echo "$output") <<'X'
10: denied: Bash: the input of the hook: a tool that runs commands without a command
lines of unknown form: 7, the first is line 2
would have allowed 1, asked 0, denied 1 of 2; lines without a call: 1
X
  run -0 replay record --json
  [ "${lines[-1]}" = '{"calls":2,"allowed":1,"asked":0,"denied":1,"other_lines":1,"unknown_lines":7,"first_unknown":2}' ]
}

@test "text of the recording is escaped, and a thousand calls have a comma" {
  call $'git push \e]0;x\a\u202e' >record
  run -0 replay record
  [[ $output != *$'\e'* && $output != *$'\u202e'* && ${lines[0]} == *'1b'* ]]
  head -n 1234 < <(yes "$(call 'git status')") >record
  run -0 replay record
  [ "$output" = "would have allowed 1,234, asked 0, denied 0 of 1,234; lines without a call: 0" ]
}

@test "nothing is asked or changed: no state directory is needed, and one that is given stays as it is" {
  call make >record
  mkdir -m 700 state
  ends 1 hitl-prompt --state state --answer /dev/null < <(amp-validate --example sw4rm/hitl_invocation) >/dev/null
  before=$(find state -type f -exec md5sum {} + | sort)
  run -0 hitl-prompt hook -c amp.json --state state --replay record
  [ "${lines[-1]}" = "would have allowed 0, asked 1, denied 0 of 1; lines without a call: 0" ]
  [ "$(find state -type f -exec md5sum {} + | sort)" = "$before" ]
  run -0 replay record
}

@test "a recording without a call, a missing file and missing rules have statuses of their own" {
  echo '{"type":"system"}' >record
  run -1 --separate-stderr replay record
  [[ $output == "would have allowed 0, asked 0, denied 0 of 0; lines without a call: 1" && $stderr == *"record has no tool call"* ]]
  run -65 replay missing
  run -78 hitl-prompt hook -c missing --replay record
  echo '{}' >amp.json
  run -78 replay record
  [[ $output == *"has no hitl.hook.rules"* ]]
  run -2 hitl-prompt hook --json </dev/null
  [[ $output == *"--json needs --replay"* ]]
}

@test "a large recording is read in the memory of a line" {
  native "a sanitizer has memory of its own"
  jq -cn '{type: "assistant", message: {content: [{type: "tool_use", name: "Bash", input: {command: "git status"}}]}, x: ("y" * 10000)}' >line
  mkfifo in
  exec 4<>in
  hitl-prompt hook -c amp.json --replay in >got 3>&- 4>&- &
  pid=$!
  # 50 MB.
  head -n 5000 < <(yes "$(<line)") >&4
  [ "$(awk '/VmHWM/ { print $2 }' "/proc/$pid/status")" -lt 12288 ]
  exec 4>&-
  wait $pid
  [ "$(<got)" = "would have allowed 5,000, asked 0, denied 0 of 5,000; lines without a call: 0" ]
}

@test "a signal ends it" {
  mkfifo in
  exec 4<>in
  hitl-prompt hook -c amp.json --replay in >got 2>said 3>&- 4>&- &
  pid=$!
  call 'git push' >&4
  wait_until 30 grep -q '^1: denied' got
  kill -TERM $pid
  ends 130 wait $pid
}
