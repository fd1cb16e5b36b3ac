# The command line, through a sample tool that has one option of every kind.
load ../lib

setup() {
  export PATH="$AMP_BUILD/tests/fixture:$PATH"
  cd "$BATS_TEST_TMPDIR"
}

@test "long, short, joined and clustered options; operands between them" {
  run -0 cli-sample a -fs text --number=-3 b --duration 250ms -ctwo --size 2K -- -c
  [ "${lines[0]}" = "flag=1 number=-3 duration=250 size=2048 real=0.5" ]
  [ "${lines[2]}" = "string=text choice=two" ]
  [ "${lines[4]}" = "operand=a" ]
  [ "${lines[5]}" = "operand=b" ]
  [ "${lines[6]}" = "operand=-c" ]
}

@test "a list keeps its order, a command keeps everything after it" {
  run -0 cli-sample -r a --rule b -r=c --exec cmd -f --help -- x
  [ "${lines[4]}" = "rule=a" ]
  [ "${lines[5]}" = "rule=b" ]
  [ "${lines[6]}" = "rule==c" ]
  [ "${lines[7]}" = "exec=cmd" ]
  [ "${lines[8]}" = "exec=-f" ]
  [ "${lines[11]}" = "exec=x" ]
  [[ "${lines[0]}" == flag=0* ]]
}

@test "wrong usage is 64 with what is wrong and where help is" {
  while IFS='|' read -r args what; do
    # shellcheck disable=SC2086
    run -64 --separate-stderr cli-sample $args
    [ -z "$output" ]
    echo "$args: $stderr"
    [ "${stderr_lines[0]}" = "cli-sample: error: $what" ]
    [ "${stderr_lines[1]}" = "cli-sample: note: try 'cli-sample --help'" ]
  done <<'T'
--nonsense|unknown option --nonsense
--numb 3|unknown option --numb (did you mean '--number'?)
--dur=3|unknown option --dur (did you mean '--duration'?)
-x|unknown option -x
-fx|unknown option -x
--number|--number needs an argument
-n|-n needs an argument
--flag=1|--flag takes no argument
--exec|--exec needs a command
-n 1 --number 2|--number is given twice
-n 11|--number: '11' is not between -3 and 10
-n 1x|--number: '1x' is not an integer
--real 2|--real: '2' is not between 0 and 1
-c three|--choice: 'three' is not one of one, two
--path=|--path: an empty path
first --string x|unknown option --string ('spout' has it)
--only x|unknown option --only ('first' has it)
first --onyl x|unknown option --onyl (did you mean '--only'?)
die --only x|unknown option --only ('first' has it)
two words x|two words: unexpected operand 'x'
T
}

@test "a flag may be repeated" {
  run -0 cli-sample -ff --flag
  [[ "${lines[0]}" == flag=1* ]]
}

@test "verbs of one word and of two, tool options before them" {
  run -0 cli-sample first --only x y
  [ "$output" = "verb first only=x y" ]
  run -0 cli-sample --state d two words --only x
  [ "$output" = "verb two words only=x -" ]
  run -0 cli-sample two
  [ "${lines[4]}" = "operand=two" ]
  run -0 cli-sample -- first
  [ "${lines[4]}" = "operand=first" ]
}

@test "precedence: flag, environment, amp.json, default" {
  printf '{"sample":{"string":"from config","number":7,"real":0.25,"flag":true,"rules":["x","y"]}}' >amp.json
  run -0 cli-sample
  [ "${lines[2]}" = "string=default choice=one" ]
  run -0 cli-sample --config amp.json
  [ "${lines[0]}" = "flag=1 number=7 duration=1000 size=64 real=0.25" ]
  [ "${lines[2]}" = "string=from config choice=one" ]
  [ "${lines[4]}" = "rule=x" ]
  [ "${lines[5]}" = "rule=y" ]
  export AMP_SAMPLE_STRING=env AMP_SAMPLE_FLAG=0
  run -0 cli-sample --config amp.json -r z
  [ "${lines[0]}" = "flag=0 number=7 duration=1000 size=64 real=0.25" ]
  [ "${lines[2]}" = "string=env choice=one" ]
  [ "${lines[4]}" = "rule=z" ]
  [ ${#lines[@]} -eq 5 ]
  run -0 cli-sample --config amp.json -s flag
  [ "${lines[2]}" = "string=flag choice=one" ]
}

@test "what belongs to a state directory counts in its own amp.json" {
  need_tool amp-ack
  mkdir -m 700 state
  echo '{"store":{"keep_segments":5}}' >amp.json
  run -0 amp-ack status --state state --config amp.json
  [[ $output == *"warning: amp.json: ignored: store (it belongs in the amp.json of the state directory)"* ]]
  cp amp.json state
  run -0 amp-ack status --state state --config "$PWD/state/amp.json"
  [[ $output != *warning* ]]
}

@test "where amp.json is looked for" {
  mkdir -p xdg/amp state
  echo '{"sample":{"string":"xdg"}}' >xdg/amp/amp.json
  echo '{"sample":{"string":"state"}}' >state/amp.json
  echo '{"sample":{"string":"named"}}' >named.json
  run -0 cli-sample --state state
  [ "${lines[2]}" = "string=state choice=one" ]
  XDG_CONFIG_HOME=$PWD/xdg run -0 cli-sample --state state
  [ "${lines[2]}" = "string=xdg choice=one" ]
  XDG_CONFIG_HOME=$PWD/xdg AMP_CONFIG=named.json run -0 cli-sample --state state
  [ "${lines[2]}" = "string=named choice=one" ]
}

@test "the amp.json of a state directory sets only what the tool allows there" {
  mkdir -p state xdg/amp
  echo '{"sample":{"string":"state","number":7,"rules":["x"],"flag":null}}' >state/amp.json
  XDG_CONFIG_HOME=$PWD/xdg run -0 --separate-stderr cli-sample --state state
  [ "${lines[0]}" = "flag=0 number=5 duration=1000 size=64 real=0.5" ]
  [ "${lines[2]}" = "string=state choice=one" ]
  [ "${#lines[@]}" -eq 4 ]
  [ "$stderr" = "cli-sample: warning: state/amp.json: ignored: sample.number, sample.rules, sample.flag; a state \
directory may set only store and redact; move other settings to $PWD/xdg/amp/amp.json or to a file given with --config" ]
  # The user's file comes first, and the other one is reported all the same.
  echo '{"sample":{"number":3}}' >xdg/amp/amp.json
  XDG_CONFIG_HOME=$PWD/xdg run -0 --separate-stderr cli-sample --state state
  [ "${lines[0]}" = "flag=0 number=3 duration=1000 size=64 real=0.5" ]
  [ "${lines[2]}" = "string=state choice=one" ]
  [[ $stderr == *"ignored: sample.number, "* ]]
  # A person who names the file means it.
  run -0 --separate-stderr cli-sample --state state --config state/amp.json
  [ "${lines[0]}" = "flag=0 number=7 duration=1000 size=64 real=0.5" ]
  [ -z "$stderr" ]
}

@test "no tool takes power from the amp.json of a state directory" {
  need_tool amp-route amp-ack task-dispatch hitl-prompt agent-registry worktree-bind amp-validate
  mkdir -m 700 state
  # One setting of each section; the schema says which sections may stand here.
  echo '{"qa":{"min_confidence":0},"store":{"keep_days":9},"ci":{"checks":["x"]},"risk":{"high":{"approval":"reviewer"}},
    "results":[],"branches":{"protected":["x"]},"guard":{"pushers":["eve"]},"ack":{"silence":"1d"},"dead":{"max_count":0},
    "redact":{"patterns":["INV-[0-9]+"]},"retry":{"budget":["1"]},"inbox":{"credits":1},"registry":{"misses":9},
    "route":{"routes":["* => command:touch ran"]},"lanes":{"bulk_weight":9},"cursor":{"on_gap":"skip"},
    "hitl":{"operators":["eve"]},"suspension":{"scope":"task"}}' >state/amp.json
  jq -r --slurpfile s "$AMP_TOP/schemas/config/amp.json" '$s[0].properties as $p | [paths(type != "object")
    | .[:map(type) | index("number") // length] | select($p[.[0]]["x-state-directory"] == false) | join(".")] | unique[]' \
    state/amp.json >want
  jq -e '.properties | map(has("x-state-directory")) | all' "$AMP_TOP/schemas/config/amp.json"
  grep -qx qa.min_confidence want
  run -1 grep 'store\|redact' want
  git init -q repo
  git -C repo commit -q --allow-empty -m begin
  local t argv
  for t in "amp-route --state state" "amp-ack status --state state" "amp-validate --state state" "task-dispatch coordinate --state state" \
    "hitl-prompt --state state" "agent-registry --state state" "worktree-bind -C repo list" "worktree-bind -C repo --state state hooks install"; do
    read -ra argv <<<"$t"
    [ "$t" != "worktree-bind -C repo list" ] || { mkdir -m 700 -p repo/.git/amp && cp state/amp.json repo/.git/amp/; }
    "${argv[@]}" </dev/null >out 2>err || [ "$t" = "amp-route --state state" ]
    sed -n 's/.*amp\.json: ignored: \([^;]*\);.*/\1/p' err | tr ',' '\n' | tr -d ' ' | sort | diff - <(sort want) || { echo "$t"; cat err; false; }
    [ "$(wc -l <err)" -le 4 ]
  done
  run -64 amp-route --state state < <(echo '{}')
  [[ $output == *"at least one route is needed"* ]]
  run -0 amp-validate </dev/null
  [ ! -e ran ]
  run -1 grep eve repo/.git/amp/guard
  run -1 grep -x x repo/.git/amp/guard
}

@test "wrong configuration is 78 and says where" {
  run -78 cli-sample --config none.json
  [[ "$output" == *none.json* ]]
  echo '{"sample":{"number":99}}' >a.json
  run -78 cli-sample --config a.json
  [[ "$output" == *"sample.number in amp.json: '99' is not between -3 and 10"* ]]
  echo '{"sample":{"number":1,"number":2}}' >a.json
  run -78 cli-sample --config a.json
  echo '{"sample":{"string":{}}}' >a.json
  run -78 cli-sample --config a.json
  [[ "$output" == *"sample.string has the wrong type"* ]]
  echo '[]' >a.json
  run -78 cli-sample --config a.json
  AMP_SAMPLE_NUMBER=x run -78 cli-sample
  [[ "$output" == *"AMP_SAMPLE_NUMBER: 'x' is not an integer"* ]]
}

@test "help names every option, verb and status" {
  run -0 cli-sample --help
  for w in "usage: cli-sample [OPTION...] [FILE...]" "two words" "-s, --string TEXT" "--exec COMMAND..." \
    "[AMP_STATE]" "--color WHEN" " 69  a service or peer is missing" "amp-exit(7)"; do
    [[ "$output" == *"$w"* ]] || { echo "missing: $w"; false; }
  done
  grep -xA 2 'Simple verbs:' <<<"$output" | cmp - <(printf 'Simple verbs:\n%-28sthe first verb\n\n' '  first [X]')
  grep -xA 1 'Others:' <<<"$output" | grep -q '^  two words  *a verb of two words$'
  [ "${lines[1]}" = "       cli-sample VERB [OPTION...] [OPERAND...]" ]
  run -0 cli-sample first --help
  [[ "$output" == *"usage: cli-sample first [OPTION...] [X]"* ]]
  [[ "$output" == *"--only TEXT"* ]]
  [[ "$output" != *"--string"* ]]
  run -0 cli-sample --version
  [[ "$output" =~ ^cli-sample\ [0-9]+\.[0-9]+\.[0-9]+$ ]]
}

@test "--options is the table, tab separated" {
  run -0 cli-sample --options
  [ "${lines[0]}" = $'verbless\t-' ]
  [ "${lines[1]}" = $'verb\tfirst\t[X]\tthe first verb\t-\tSimple verbs\t-' ]
  [[ "$output" == *$'verb\ttwo words\t-\ta verb of two words\t-\tOthers\t-\nverb\tgrumble\tTEXT...\tcomplain\t-\tOthers\t-\n'* ]]
  [[ "$output" == *$'option\tc\tchoice\tchoice\tWORD\tone,two\ta choice\t-'* ]]
  [[ "$output" == *$'option\tf\tflag\tflag\t-\t-\ta flag\tAMP_SAMPLE_FLAG'* ]]
  run -0 cli-sample first --options
  [[ "$output" == *$'option\t-\tonly\tstring\tTEXT\t-\tan option of this verb\t-'* ]]
  [[ "$output" != *$'\tstring\tstring'* ]]
}

@test "diagnostics go to stderr, neutralised, and the worst status counts" {
  run -69 --separate-stderr cli-sample grumble $'a\033[31mb\nc'
  [ -z "$output" ]
  [ "${stderr_lines[0]}" = 'cli-sample: warning: a\x1b[31mb\nc' ]
  [ "${stderr_lines[1]}" = "cli-sample: error: the answer is no" ]
}

@test "colour only when asked for" {
  run -69 cli-sample grumble --color=always x
  [[ "$output" == *$'\033[33mwarning\033[0m: x'* ]]
  run -69 cli-sample grumble x
  [[ "$output" != *$'\033'* ]]
}

@test "what was printed before a usage error is not lost" {
  run -64 --separate-stderr cli-sample die
  [ "$output" = before ]
}

@test "a full disk and a closed stdout are input/output errors" {
  run -74 bash -c 'cli-sample >/dev/full'
  [[ "$output" == *"No space left on device"* ]]
  run -74 bash -c 'cli-sample >&-'
  run -74 bash -c 'cli-sample --help >&-'
}

@test "a reader that leaves ends the tool quietly" {
  run -0 --separate-stderr bash -c 'set +o pipefail; cli-sample spout -n 10 --size 100 | head -n 1 | wc -l'
  [ "$output" = 1 ]
  [ -z "$stderr" ]
  run bash -c 'cli-sample spout -n 10 --size 100 | head -n 1; echo ${PIPESTATUS[0]}'
  [ "${lines[1]}" = 74 ]
}

@test "nothing is added to a pipe that one tool writes" {
  run -0 bash -c 'cli-sample spout -n 10 --size 4K | wc'
  [ "$(echo $output)" = "10000 10000 40960000" ]
}

@test "TERM while the output is full ends at a line" {
  mkfifo f
  exec 9<>f
  cli-sample spout -n 10 --size 100 >f 2>err &
  pid=$!
  # It is blocked when the FIFO takes no more.
  wait_until 30 bash -c '! dd if=/dev/zero of=f oflag=nonblock bs=4096 count=1 status=none'
  kill -TERM $pid
  status=0
  wait $pid || status=$?
  [ $status -eq 130 ]
  [ "$(cat err)" = "cli-sample: error: interrupted while writing" ]
}

@test "the mode of a state directory that exists is not changed: one that is open to others is refused" {
  need_tool amp-ack agent-registry
  cd "$BATS_TEST_TMPDIR"
  mkdir -m 755 state
  run -77 amp-ack track --state state </dev/null
  [[ $output == *"state is accessible to other users (mode 755): chmod 700 it, or use a new directory"* ]]
  run -77 agent-registry --state state </dev/null
  [ "$(stat -c %a state)" = 755 ]
  [ -z "$(ls -A state)" ]
  amp-ack track --state fresh </dev/null
  [ "$(stat -c %a fresh)" = 700 ]
}

@test "-q prints no notes, -v a summary, --progress one line that is written again" {
  load ../messages
  message task_dispatch >good
  run -1 --separate-stderr amp-validate -v good <(echo '{}')
  [[ ${stderr##*$'\n'} =~ ^"amp-validate: note: 2 lines, 1 refused, 0."[0-9]{3}" s"$ ]]
  run -1 --separate-stderr amp-validate -q --fail-fast <<<'{}'
  [[ $stderr != *note:* ]]
  [[ $stderr == *"error: stdin:1: unknown_protocol"* ]]
  run -0 --separate-stderr amp-ack -v -s state <good
  [[ $stderr =~ ^"amp-ack: note: 1 message, 0 rejected, 0."[0-9]{3}" s"$ ]]
  # From the second second on.
  mkfifo in
  amp-validate --progress always in >/dev/null 2>err &
  exec 7>in
  until grep -q 'lines: ' err; do
    cat good >&7
    [ "$SECONDS" -lt 600 ]
  done
  exec 7>&-
  wait $!
  [[ $(<err) == $'\r\e[Kamp-validate: lines: '*$'\r\e[K' ]]
  run -0 --separate-stderr amp-validate good
  [ -z "$stderr" ]
}
