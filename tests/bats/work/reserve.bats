#!/usr/bin/env bats
# Reserved paths: who may reserve what, where it is checked, and when it ends.

load ../lib
load ../worktrees

setup() {
  need_tool worktree-bind
  cd "$BATS_TEST_TMPDIR" || return 1
  repo work
  cd work || return 1
  worktree-bind bind bob -b task/x >/dev/null
  worktree-bind bind eve -b task/y >/dev/null
}

# held: the reservations, in one line.
held() { worktree-bind reservations | tr '\t\n' ': '; }

@test "an agent or a person reserves paths; what overlaps is refused, one's own is not" {
  AMP_AGENT=bob worktree-bind reserve --task T-2026-001 'src/net/' '/*.lock'
  worktree-bind reserve 'docs/**'
  [ "$(held)" = "bob:T-2026-001:/*.lock bob:T-2026-001:src/net/ $(id -un):-:docs/** " ]
  AMP_AGENT=eve run -1 worktree-bind reserve src/gui 'src/*/socket.c'
  [[ $output == *"path_reserved"* || $output == *"src/*/socket.c overlaps src/net/, which bob reserved for T-2026-001"* ]]
  # None of a refused call.
  [ "$(worktree-bind --json reservations | jq -r 'select(.holder == "eve")')" = "" ]
  AMP_AGENT=eve run -1 worktree-bind reserve docs/man.1
  AMP_AGENT=eve worktree-bind reserve src/gui
  AMP_AGENT=bob worktree-bind reserve src/net/a.c 'src/net/'
  worktree-bind reserve --holder eve --task T-9 /tests/
  worktree-bind --json reservations | grep -q '"holder":"eve","task_id":"T-9","pattern":"/tests/"'
}

@test "who may not, and what is not a pattern" {
  AMP_AGENT=eve run -77 worktree-bind reserve --holder bob src/
  AMP_AGENT=eve run -77 worktree-bind release --holder bob --all
  run -1 worktree-bind reserve --holder nobody src/
  [[ $output == *"not bound"* ]]
  run -64 worktree-bind reserve
  run -64 worktree-bind reserve ../src
  run -64 worktree-bind reserve $'a\nbob - b'
  run -64 worktree-bind release
  run -1 worktree-bind release none
}

@test "the hooks' file follows; a reservation ends with its release and with the binding" {
  AMP_AGENT=bob worktree-bind reserve src/ doc/
  printf 'amp-reservations 1\nbob - doc/\nbob - src/\n' | cmp - .git/amp/reservations
  AMP_AGENT=bob worktree-bind release doc/
  printf 'amp-reservations 1\nbob - src/\n' | cmp - .git/amp/reservations
  worktree-bind unbind bob >/dev/null
  echo 'amp-reservations 1' | cmp - .git/amp/reservations
  # A new binding does not have those of the last one.
  worktree-bind bind bob -b task/x >/dev/null
  [ -z "$(held)" ]
  AMP_AGENT=eve worktree-bind reserve src/
  [ "$(held)" = "eve:-:src/ " ]
}

@test "many at once: of overlapping reservations one holder gets them" {
  for i in 1 2 3 4 5 6; do worktree-bind bind "a$i" -b "t/$i" >/dev/null; done
  for i in 1 2 3 4 5 6; do AMP_AGENT=a$i worktree-bind reserve src/ "own/$i/" >/dev/null 2>&1 & done
  wait
  [ "$(held | grep -o 'src/' | wc -l)" -eq 1 ]
  [ "$(held | grep -o 'own/' | wc -l)" -eq 1 ]
  cmp <(worktree-bind reservations | tr '\t' ' ') <(tail -n +2 .git/amp/reservations)
}

@test "run reports a change of a path that another holder reserved, as a conflict" {
  load ../agents
  need_tool task-dispatch
  need jq
  workplace
  worktree-bind --state "$STATE" -C "$REPO" reserve --task T-7 '/docs/'
  agent touches <<'EOS'
mkdir -p docs && echo x >docs/a.md
EOS
  # The commit is refused by the file for the hooks,
  dispatch | run_agent --exec ./touches
  got out.ndjson '.type == "task_result" and .payload.completion_status == "failed"
    and (.payload.blockers[0] | test("docs/a.md: reserved"))'
  # and without it by the state.
  rm "$REPO/.git/amp/reservations"
  dispatch | run_agent --exec ./touches
  got out.ndjson '.type == "escalation" and .payload.escalation_type == "conflict"
    and (.payload.description | test("path_reserved: the change touches docs/a.md, reserved by .*T-7.*: /docs/"))'
  got out.ndjson '.type == "task_result" and .payload.completion_status == "failed"'
}
