# task-dispatch new: tasks from options, JSON and Markdown.
# walls

load ../lib

setup() {
  S=$BATS_TEST_TMPDIR/state
  R=$BATS_TEST_TMPDIR/r
  repo "$R"
}

# new ARG...: the message of a task; create ARG...: the task.
new() {
  task-dispatch new -s "$S" --repo "$R" --print "$@"
}
create() {
  task-dispatch new -s "$S" --repo "$R" "$@"
}
year=$(date -u +%Y)

@test "new creates the task: list and show have it, and the next coordinator sends its dispatch" {
  run -0 --separate-stderr create --branch fix/a -d x --criterion y
  [ "$output" = "T-$year-001 created" ]
  [ "$(task-dispatch list -s "$S" --json | jq -r '"\(.task) \(.state)"')" = "T-$year-001 dispatched" ]
  [ "$(jq -r .state "$S/tasks/T-$year-001.json")" = dispatched ]
  task-dispatch show -s "$S" 1 | grep -q 'an executor takes the dispatch when the loop runs'
  run -75 --separate-stderr task-dispatch coordinate -s "$S" </dev/null
  [ "$(jq -c '[.type, .to, .task_id]' <<<"$output")" = "[\"task_dispatch\",\"executor\",\"T-$year-001\"]" ]
  # The same id again is the same task, with another text.
  run -0 --separate-stderr create --branch fix/a -d z --criterion y --id "T-$year-001"
  [ "$output" = "T-$year-001 sent again" ]
  [ "$(jq -r .description "$S/tasks/T-$year-001.json")" = z ]
  # What the coordinator refuses is refused, and no task is there.
  task-dispatch cancel -s "$S" 1
  run -1 --separate-stderr create --branch fix/a -d z --criterion y --id "T-$year-001"
  [[ "$stderr" == *"T-$year-001: the task was refused: "* ]]
  [ -z "$output" ]
  run -64 task-dispatch new --repo "$R" --branch fix/a -d x --criterion y --id "T-$year-002"
}

@test "what no coordinator has sent has no deadline; what was sent again or cancelled before that is not sent" {
  create --branch fix/a -d x --criterion y
  create --branch fix/b -d x --criterion y
  create --branch fix/b -d z --criterion y --id "T-$year-002"
  create --branch fix/c -d x --criterion y
  task-dispatch cancel -s "$S" 3
  run -0 --separate-stderr amp-ack status -s "$S"
  [[ $output != *"next deadline"* ]]
  task-dispatch coordinate -s "$S" </dev/null >"$BATS_TEST_TMPDIR/out" || [ $? -eq 75 ]
  [ "$(jq -r 'select(.type == "task_dispatch") | "\(.task_id) \(.payload.description)"' "$BATS_TEST_TMPDIR/out" | paste -sd,)" = \
    "T-$year-001 x,T-$year-002 z" ]
  run -0 --separate-stderr amp-ack status -s "$S"
  [[ $output == *"next deadline"* ]]
}

@test "a running coordinator takes a task that new created, and one that was sent again, once; also if it is suspended" {
  cd "$BATS_TEST_TMPDIR"
  mkfifo in
  timeout 60 task-dispatch coordinate -s "$S" --hold --trust-in in >out 2>err 3>&- &
  coordinator=$!
  wait_until 20 test -d "$S/log"
  create --branch fix/a -d x --criterion y
  dispatched() { [ "$(grep -c '"type":"task_dispatch"' out)" = "$1" ]; }
  wait_until 20 dispatched 1
  create --branch fix/a -d z --criterion y --id "T-$year-001"
  wait_until 20 dispatched 2
  hitl-prompt suspend -s "$S" --all
  create --branch fix/b -d x --criterion y
  wait_until 20 grep -q "task_dispatch-T-$year-002-.* is not sent" err
  dispatched 2
  hitl-prompt resume -s "$S" --all
  wait_until 20 dispatched 3
  sleep 1.2
  dispatched 3
  kill "$coordinator"
  wait "$coordinator" || :
}

@test "--print writes the message and changes nothing" {
  run -0 --separate-stderr new --branch fix/a -d x --criterion y
  [ "$(jq -r .task_id <<<"$output")" = "T-$year-001" ]
  [ ! -e "$S" ]
  create --branch fix/a -d x --criterion y
  find "$S" -type f ! -name "*-shm" -exec sha256sum {} + | sort >"$BATS_TEST_TMPDIR/before"
  printf '{"description": "%s", "branch": "fix/a", "acceptance_criteria": ["x"]}' a >"$BATS_TEST_TMPDIR/a"
  run -0 --separate-stderr new "$BATS_TEST_TMPDIR/a" "$BATS_TEST_TMPDIR/a"
  [ "$(jq -r .task_id <<<"$output" | paste -sd' ')" = "T-$year-002 T-$year-003" ]
  find "$S" -type f ! -name "*-shm" -exec sha256sum {} + | sort | diff "$BATS_TEST_TMPDIR/before" -
}

@test "--print does not wait for a state that another process is making" {
  mkdir -m 700 "$S"
  for part in "" log; do
    [ -z "$part" ] || mkdir -m 700 "$S/$part"
    run -0 --separate-stderr new --branch fix/a -d x --criterion y
    [ "$(jq -r .task_id <<<"$output")" = "T-$year-001" ]
    run -69 --separate-stderr task-dispatch -s "$S" list
    [[ $stderr == *"has no log" ]]
  done
}

@test "in an initialised repository: new creates, and --print | task-dispatch works in the state that is found" {
  cd "$R"
  task-dispatch init --yes --unconfined -x true -y true
  run -0 --separate-stderr task-dispatch new -b fix/a -d x --criterion y
  [ "$output" = "T-$year-001 created" ]
  [ "$(task-dispatch list --json | jq -r .task)" = "T-$year-001" ]
  task-dispatch new --print -b fix/b -d x --criterion y | ends 75 task-dispatch >/dev/null
  [ "$(task-dispatch list --json | jq -r .task | sort | paste -sd' ')" = "T-$year-001 T-$year-002" ]
}

@test "a task from options" {
  run -0 --separate-stderr new --branch fix/a --base main -d "Parse" --criterion one --criterion two \
    --subtask "first" --subtask "second" --risk high --forbid "edit tests" \
    --constraint std=c11 --ack-timeout 2m
  jq -e --arg id "T-$year-001" --arg repo "$(realpath "$R")" '.type == "task_dispatch"
    and .from == "admin" and .to == "coordinator" and .task_id == $id and .requires_ack
    and .ack_timeout_sec == 120
    and .payload == {description: "Parse", repo: $repo, branch: "fix/a",
      subtasks: [{subtask_id: "\($id)-S1", description: "first", estimated_lines: 0},
                 {subtask_id: "\($id)-S2", description: "second", estimated_lines: 0}],
      acceptance_criteria: ["one", "two"], risk_level: "high", forbidden_actions: ["edit tests"],
      tech_constraints: {std: "c11", base: "main"}}' <<<"$output"
}

@test "the file - is standard input, and errors name it" {
  run -0 new - <<<'{"description": "x", "branch": "fix/a", "acceptance_criteria": ["one"]}'
  [[ $output == *'"acceptance_criteria":["one"]'* ]]
  run -65 new - <<<$'# x\n## Nothing'
  [[ $output == *"error: standard input:2: unknown section"* ]]
}

@test "ids are never given twice, also by processes at once" {
  for i in 1 2 3 4 5 6 7 8; do
    create --branch fix/a -d x --criterion y >"$BATS_TEST_TMPDIR/$i" &
  done
  wait
  [ "$(cat "$BATS_TEST_TMPDIR"/[1-8] | sort -u | wc -l)" -eq 8 ]
}

@test "a task from Markdown" {
  cat >"$BATS_TEST_TMPDIR/t.md" <<'MD'
# Parse durations
Branch: fix/units
Base: main
Risk: low

Several units in one text.

A second paragraph: with a colon.

## Subtasks
- Read several units (~40 lines)
- Refuse what is none
## Acceptance criteria
- 1h30m is 5400 seconds
* 5x is refused
## Forbidden actions
- change the tests
## Constraints
- standard: c11
MD
  run -0 new "$BATS_TEST_TMPDIR/t.md"
  jq -e '.payload.description == "Parse durations\n\nSeveral units in one text.\n\nA second paragraph: with a colon."
    and .payload.branch == "fix/units" and .payload.risk_level == "low"
    and (.payload.subtasks | map([.description, .estimated_lines]))
      == [["Read several units", 40], ["Refuse what is none", 0]]
    and .payload.acceptance_criteria == ["1h30m is 5400 seconds", "5x is refused"]
    and .payload.forbidden_actions == ["change the tests"]
    and .payload.tech_constraints == {standard: "c11", base: "main"}' <<<"$output"
}

@test "a task from JSON, and options before it" {
  jq -n '{description: "Parse", branch: "fix/a", acceptance_criteria: ["one"],
    subtasks: ["first", {description: "second", estimated_lines: 7}]}' >"$BATS_TEST_TMPDIR/t.json"
  run -0 new --branch fix/b --criterion two "$BATS_TEST_TMPDIR/t.json"
  jq -e '.payload.branch == "fix/b" and .payload.acceptance_criteria == ["one", "two"]
    and .payload.subtasks[1].estimated_lines == 7 and .payload.risk_level == "medium"' <<<"$output"
}

@test "several files give several tasks; a bad one does not stop the others" {
  echo '{"description": "a", "branch": "fix/a", "acceptance_criteria": ["x"]}' >"$BATS_TEST_TMPDIR/a"
  echo '{"description": "b", "branch": ' >"$BATS_TEST_TMPDIR/b"
  run -65 --separate-stderr create "$BATS_TEST_TMPDIR/a" "$BATS_TEST_TMPDIR/b" "$BATS_TEST_TMPDIR/a"
  [ "$output" = "T-$year-001 created"$'\n'"T-$year-002 created" ]
  [[ "$stderr" == *"$BATS_TEST_TMPDIR/b"* ]]
}

@test "without a state directory the id is given" {
  run -0 task-dispatch new --print --id T-2026-044 --repo "$R" --branch fix/a -d x --criterion y
  jq -e '.task_id == "T-2026-044"' <<<"$output"
  run -65 --separate-stderr task-dispatch new --print --repo "$R" --branch fix/a -d x --criterion y
  [[ "$stderr" == *"without a state directory --id is required"* ]]
}

@test "protected branches are refused by policy" {
  for b in main master refs/heads/main; do
    run -77 new --branch "$b" -d x --criterion y
    [[ "$output" == *protected* ]]
  done
  run -77 new --protect 'release/*' --branch release/1 -d x --criterion y
  echo '{"branches": {"protected": ["stable"]}}' >"$BATS_TEST_TMPDIR/amp.json"
  run -77 new --config "$BATS_TEST_TMPDIR/amp.json" --branch stable -d x --criterion y
}

@test "a line is a task: its branch is named by its id, and the reviewer approves it" {
  cd "$R"
  run -0 --separate-stderr task-dispatch new -s "$S" - <<<"Fix the parser"
  [ "$output" = "T-$year-001 created" ]
  jq -e --arg b "task/T-$year-001" '.branch == $b and .description == "Fix the parser" and .acceptance_criteria == ["the reviewer approves"]
    and (.subtasks | length == 1)' "$S/tasks/T-$year-001.json"
  run -77 --separate-stderr task-dispatch new -s "$S" --protect 'task/*' - <<<"Fix it"
  [[ $stderr == *'standard input: "task/T-2000-001" is a protected branch'* ]]
  run -0 task-dispatch new -s "$S" -d "Another one"
  [ "$output" = "T-$year-002 created" ]
  run -65 --separate-stderr task-dispatch new -s "$S" - </dev/null
  [[ $stderr == *"a description is required"* ]]
}

@test "what a task needs is asked for" {
  run -65 new --branch fix/a --criterion y
  [[ "$output" == *description* ]]
  run -65 new --branch fix/a -d x --criterion ''
  [[ "$output" == *criterion* ]]
  run -65 new -d x --branch '' --criterion y
  [[ "$output" == *branch* ]]
  run -65 task-dispatch new -s "$S" --repo "$BATS_TEST_TMPDIR" --branch fix/a -d x --criterion y
  [[ "$output" == *"not the top directory of a git repository"* ]]
  run -64 new --branch fix/a -d x --criterion y --risk extreme
  run -64 new --branch fix/a -d x --criterion y --constraint novalue
  run -65 new --branch fix/a -d x --criterion y --id X-1
}

# said STATUS TEXT ARG...: create answers with the status and the text, and writes nothing.
said() {
  local status=$1 text=$2
  shift 2
  run "-$status" --separate-stderr create "$@"
  [ -z "$output" ]
  [[ "$stderr" == *"$text"* ]] || {
    echo "$stderr"
    return 1
  }
}

@test "a refusal names the option as it was written, and the expected form" {
  said 65 'error: --base: "" is not a commit of ' --branch fix/a --base "" -d x --criterion y
  said 65 'error: --base: "nosuch" is not a commit of '"$(realpath "$R")"': expected a branch, a tag or a commit' \
    --base nosuch --branch fix/a -d x --criterion y
  said 65 'error: --id: is malformed; found "X-1"; expected T-YYYY-NNN, such as T-2026-044' \
    --id X-1 --branch fix/a -d x --criterion y
  said 77 'error: --branch: "main" is a protected branch: use another one' --branch main -d x --criterion y
  said 65 'error: --branch: contains a character that git refuses' --branch 'a b' -d x --criterion y
  said 65 'error: --branch: expected the name of a branch' --branch '' -d x --criterion y
  said 65 'error: --description: a description is required' --branch fix/a --criterion y
  said 65 'error: --criterion: is empty; found ""; expected' --branch fix/a -d x --criterion y --criterion ''
  said 65 'error: --subtask: a subtask has no description: expected a text' --branch fix/a -d x --criterion y --subtask ''
  said 64 '--constraint a: expected NAME=VALUE' --branch fix/a -d x --criterion y --constraint a
  said 64 'error: --description: the value is not UTF-8' --branch fix/a -d $'x\xff' --criterion y
  run -65 --separate-stderr task-dispatch new -s "$S" --repo "$BATS_TEST_TMPDIR/none" --branch fix/a -d x --criterion y
  [[ "$stderr" == *"error: --repo: $BATS_TEST_TMPDIR/none: No such file or directory"* ]]
  # None of them has used up an id.
  run -0 create --branch fix/a -d x --criterion y
  [ "$output" = "T-$year-001 created" ]
}

@test "a refusal names the file and line, and the option where that is what counts" {
  cd "$BATS_TEST_TMPDIR"
  printf '%s\n' '# Parse' 'Branch: main' 'Base: nosuch' 'Risk: extreme' '' words '## Acceptance criteria' '- one' >t.md
  said 77 't.md:2: branch: "main" is a protected branch' t.md
  said 65 't.md:3: base: "nosuch" is not a commit' --branch fix/a t.md
  said 65 'error: --base: "other" is not a commit' --branch fix/a --base other t.md
  said 65 't.md:4: risk_level: expected low, medium or high' --branch fix/a --base main t.md
  said 65 'error: --criterion: is empty' --branch fix/a --base main --risk low --criterion '' t.md
  cp t.md u.md
  echo '## Nonsense' >>u.md
  said 65 'u.md:9: unknown section: expected Subtasks, Acceptance criteria' u.md
  printf '%s\n' '{"description": "a",' '"branch": "fix/a",' '"acceptance_criteria": ["x",' '5],' \
    '"subtasks": ["a", {"estimated_lines": 4}]}' >t.json
  said 65 't.json:4: acceptance_criteria: expected a text' t.json
  sed 's/^5/"y"/' t.json >u.json
  said 65 'u.json:5: subtasks: a subtask has no description' u.json
  printf '{"description": "a",\n b' >v.json
  said 65 'v.json:2: ' v.json
  echo '{"description": "a", "acceptance_criteria": "x"}' >w.json
  echo '{"branch": "fix/a"}' >x.json
  said 65 'x.json: a description is required: missing there, and not given as --description' --criterion y x.json
  said 65 'w.json:1: acceptance_criteria: expected a list of texts' --branch fix/a --criterion y w.json
  run -0 create --branch fix/a --base main --risk low t.md
  [ "$output" = "T-$year-001 created" ]
}

@test "what new says is valid" {
  need_tool amp-validate
  new --branch fix/a -d x --criterion y >"$BATS_TEST_TMPDIR/line"
  amp-validate -p amp --check-repo "$BATS_TEST_TMPDIR/line" | cmp - "$BATS_TEST_TMPDIR/line"
}
