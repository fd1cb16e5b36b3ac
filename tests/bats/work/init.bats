#!/usr/bin/env bats
# task-dispatch init: the plan, what it makes, what it leaves alone, and --undo.
# walls

load ../lib

setup() {
  need_tool task-dispatch worktree-bind
  cd "$BATS_TEST_TMPDIR" || return 1
  unset AMP_STATE
}

# init ARG...: without a terminal.
init() { setsid -w task-dispatch init "$@" </dev/null; }
# Where a test does not look at confinement, any machine will do.
commands=(-x true -y 'make check' --unconfined)
# picture: every file of the repository but for git's own, with mode and content.
picture() {
  { find . -path ./.git -prune -o -print && find .git/hooks .git/amp 2>/dev/null || :; } | sort | while IFS= read -r f; do
    [ ! -f "$f" ] || printf '%s %s %s\n' "$f" "$(stat -c %a "$f")" "$(sha256sum <"$f")"
  done
  cat .git/config
}

@test "a new repository in a strange path: plan, work, nothing the second time, undo" {
  dir=$'with space\nand line'
  mkdir "$dir"
  git init -q -b main "$dir/repo"
  cd "$dir/repo"
  picture >../before
  run -0 --separate-stderr init "${commands[@]}" --dry-run
  [[ $output == $'create   .git/amp '*$'\ncreate   .git/amp/amp.json '*$'\ninstall  .git/hooks '*$'\ncreate   loop.sh '*$'\ncreate   AGENTS.md '*$'\ncreate   CLAUDE.md '*$'\ncreate   GEMINI.md '* ]]
  picture | cmp - ../before
  run -0 init "${commands[@]}"
  [[ $output == *"the repository has no commit yet"*"./loop.sh TASK.md"*".agents/skills/amp-tools/"* ]]
  [ "$(stat -c %a .git/amp)" = 700 ]
  worktree-bind hooks check
  run amp-ack doctor --state .git/amp
  [[ $output != *"other users"* ]]
  bash -n loop.sh
  grep -q 'AMP_RESULT' AGENTS.md
  picture >../made
  run -0 --separate-stderr init "${commands[@]}" --json
  [ "$(jq -r .action <<<"$output" | sort -u)" = keep ]
  amp-validate -S "$AMP_TOP/schemas/records/init.json" <<<"$output" >/dev/null
  picture | cmp - ../made
  run -0 init --undo
  [ ! -e .git/amp ]
  picture | cmp - ../before
  run -1 init --undo
  [[ $output == *"init made nothing in this repository"* ]]
}

@test "what is there is kept and named; undo keeps what was changed since" {
  repo repo
  cd repo
  printf '# Ours\n' >AGENTS.md
  echo 'echo mine' >loop.sh
  printf '#!/bin/sh\necho ours >>../ran\n' >.git/hooks/pre-commit
  chmod +x .git/hooks/pre-commit
  picture >../before
  run -0 --separate-stderr init "${commands[@]}"
  [[ $output == *$'\nkeep     loop.sh   (it exists; it is not changed)\nadd      AGENTS.md '* ]]
  [ "$(cat loop.sh)" = 'echo mine' ]
  [ "$(head -n 1 AGENTS.md)" = '# Ours' ]
  git commit -q --allow-empty -m ours
  [ "$(cat ../ran)" = ours ]
  run -1 env AMP_AGENT=bob git commit -q --allow-empty -m no
  # The text around the section may change.
  sed -i '1a more' AGENTS.md
  echo '{"redact": {"patterns": ["x"]}}' >.git/amp/amp.json
  run -0 init --undo
  [[ $output == *".git/amp/amp.json   (it was changed since)"* ]]
  [ "$(cat AGENTS.md)" = $'# Ours\nmore' ]
  [ -e .git/amp/amp.json ]
  printf '# Ours\n' >AGENTS.md
  rm -r .git/amp
  picture | cmp - ../before
  init "${commands[@]}" >/dev/null 2>&1
  sed -i 's/time and checks/TIME and checks/' AGENTS.md
  run -0 init --undo
  [[ $output == *"AGENTS.md   (it was changed since)"* ]]
  grep -q 'TIME and checks' AGENTS.md
  init --undo >/dev/null 2>&1 || :
  # Without a line end.
  for text in '' x $'x\n' $'x\n\n'; do
    rm -rf .git/amp
    printf %s "$text" >AGENTS.md
    init "${commands[@]}" >/dev/null 2>&1
    grep -q 'AMP_RESULT' AGENTS.md
    init --undo >/dev/null 2>&1
    printf %s "$text" | cmp - AGENTS.md
  done
}

@test "files for coding agents: includes that exist and links are kept" {
  repo repo
  cd repo
  printf 'Ours.\n@./AGENTS.md\n' >GEMINI.md
  ln -s AGENTS.md CLAUDE.md
  echo '# Ours' >AGENTS.md
  picture >../before
  run -0 --separate-stderr init "${commands[@]}"
  [[ $output == *$'\nadd      AGENTS.md '*$'\nkeep     GEMINI.md   (it has the section)' ]]
  grep -q AMP_RESULT CLAUDE.md
  [ -L CLAUDE.md ]
  init --undo >/dev/null
  picture | cmp - ../before
  # The other way around, and out of the worktree.
  rm CLAUDE.md AGENTS.md GEMINI.md
  echo '# Ours' >CLAUDE.md
  ln -s CLAUDE.md AGENTS.md
  echo '# Theirs' >../GEMINI.md
  ln -s ../GEMINI.md .
  picture >../before
  run -0 --separate-stderr init "${commands[@]}"
  [[ $output == *$'\nadd      CLAUDE.md '*$'\nkeep     GEMINI.md   (a link out of the worktree:'* ]]
  [ -L AGENTS.md ]
  [ "$(grep -c 'init: begin' AGENTS.md)" -eq 1 ]
  [ "$(cat ../GEMINI.md)" = '# Theirs' ]
  init --undo >/dev/null
  picture | cmp - ../before
  [ -L AGENTS.md ]
  # Into git's own files.
  ln -sf .git/config GEMINI.md
  run -0 --separate-stderr init "${commands[@]}"
  [[ $output == *$'\nkeep     GEMINI.md   (a link out of the worktree:'* ]]
  init --undo >/dev/null
  # An existing CLAUDE.md, without which AGENTS.md would be read.
  rm AGENTS.md GEMINI.md
  run -0 --separate-stderr init "${commands[@]}"
  [ "$(tr '\n' ' ' <CLAUDE.md)" = '# Ours  <!-- task-dispatch init: begin --> @AGENTS.md <!-- task-dispatch init: end --> ' ]
}

@test "hook managers and core.hooksPath: the guard is where git looks" {
  repo repo
  cd repo
  echo 'pre-commit: {}' >lefthook.yml
  run -0 init "${commands[@]}"
  [[ $output == *"create   lefthook-local.yml"*"install  .git/hooks"*"lefthook"* ]]
  init --undo >/dev/null
  [ ! -e lefthook-local.yml ]
  rm lefthook.yml
  mkdir -p .husky/_
  echo 'npm test' >.husky/pre-commit
  git config core.hooksPath "$PWD/.husky/_"
  run -0 init "${commands[@]}"
  [[ $output == *"keep     .husky/pre-commit   (it exists; for the guard add: worktree-bind hooks run pre-commit \"\$@\")"* ]]
  [[ $output == *"create   .husky/pre-push"*"install  .husky/_"* ]]
  run -128 env AMP_AGENT=bob git commit -q --allow-empty --no-verify -m no
  [[ $output == *branch_violation* ]]
  init --undo >/dev/null
  [ "$(ls .husky)" = $'_\npre-commit' ]
  AMP_AGENT=bob git commit -q --allow-empty -m yes
}

@test "another branch is protected, a linked worktree shares the state, others are refused" {
  git init -q -b trunk repo
  cd repo
  git commit -q --allow-empty -m first
  run -0 init "${commands[@]}"
  [[ $output == *"trunk is protected here, too"* ]]
  # The loop knows it as well.
  printf '# One\nBranch: trunk\n## Acceptance criteria\n- it works\n' >../one.md
  run -77 ./loop.sh ../one.md
  [[ $output == *"branch_violation"* || $output == *"protected"* ]]
  run -128 env AMP_AGENT=bob git commit -q --allow-empty --no-verify -m no
  git worktree add -q ../linked
  cd ../linked
  run -0 --separate-stderr init "${commands[@]}" --no-agents
  [[ $output == *"keep     "*/repo/.git/amp*"keep     "*/repo/.git/hooks*"create   loop.sh"* ]]
  [ ! -e AGENTS.md ]
  [ ! -e GEMINI.md ]
  git clone -q --bare ../repo ../bare.git
  cd ../bare.git
  run -65 init "${commands[@]}"
  [[ $output == *"is a bare repository"*"run init in the clone"* ]]
  cd ..
  run -65 init "${commands[@]}"
  [[ $output == *"'git init' makes one"* ]]
  git init -q $'not\xffutf8'
  cd $'not\xffutf8'
  run -65 init "${commands[@]}"
  [[ $output == *"is not UTF-8, which records and messages need: rename it"* ]]
  [ ! -e .git/amp ]
  cd ..
  cd repo
  run -64 init -x true
  [[ $output == *"-x EXECUTOR -y REVIEWER, or --no-loop"* ]]
  run -77 env AMP_AGENT=bob task-dispatch init "${commands[@]}"
  [ "$(id -u)" -ne 0 ] || {
    cd ..
    git clone -q repo theirs
    chown -R 12345 theirs
    cd theirs
    run -77 init "${commands[@]}"
    [ ! -e .git/amp ]
  }
}

@test "a full disk: what was made before can be undone" {
  [ "$(id -u)" -eq 0 ] || skip "mounting needs root"
  git init -q -b main repo
  cd repo
  mkdir small
  rm -f .git/hooks/*
  mkdir ../small
  unshare -m sh -c 'mount -t tmpfs -o size=256k none ../small && cp -R .git ../small/ && cd ../small &&
    { dd if=/dev/zero of=fill bs=1k count=256; task-dispatch init --yes -x true -y true --unconfined; echo "status $?"
    rm fill; task-dispatch init --yes --undo; echo "undo $?"; ls -A; ls .git/amp; }' >../out 2>&1 </dev/null ||
    grep -q ^status ../out || skip "no mount namespace"
  cat ../out
  grep -qE '^status 7[34]$' ../out
  grep -qE '^undo [01]$' ../out
  ! grep -qE '^(loop.sh|AGENTS.md|CLAUDE.md|GEMINI.md|amp.json)$' ../out
}

@test "on a terminal it asks for the commands and before it changes anything" {
  need tmux
  repo repo
  cd repo
  sock=$BATS_TEST_TMPDIR/tmux
  tmux -S "$sock" -f /dev/null new-session -d -s i -x 120 -y 40 -e PATH="$PATH" -e HOME="$HOME" -e LC_ALL=C.UTF-8 -c "$PWD" \
    "task-dispatch init --unconfined; echo \"status \$?\"; task-dispatch init --unconfined; echo \"again \$?\"; exec sleep 100"
  on_screen() { tmux -S "$sock" capture-pane -p -t i | grep -qF -- "$1"; }
  wait_until 10 on_screen 'Command of the executor'
  tmux -S "$sock" send-keys -t i nowhere Enter
  wait_until 10 on_screen 'there is no such program'
  tmux -S "$sock" send-keys -t i 'true --fast' Enter
  wait_until 10 on_screen 'Command of the reviewer'
  tmux -S "$sock" send-keys -t i 'make check | tee log' Enter
  wait_until 10 on_screen 'Proceed? [Y/n]'
  [ ! -e loop.sh ]
  tmux -S "$sock" send-keys -t i n Enter
  wait_until 10 on_screen 'status 1'
  [ ! -e loop.sh ] && [ ! -e .git/amp ]
  wait_until 10 bash -c "tmux -S '$sock' capture-pane -p -t i | grep -c 'Command of the executor' | grep -qx 3"
  tmux -S "$sock" send-keys -t i C-c
  wait_until 10 on_screen 'again 130'
  [ ! -e .git/amp ]
  tmux -S "$sock" kill-server
}

@test "agents that would not be confined are refused without --unconfined, which is in loop.sh then" {
  repo repo
  cd repo
  picture >../before
  run -78 --separate-stderr env AMP_CONFINE=off setsid -w task-dispatch init -x true -y true </dev/null
  [[ $stderr == *"not_confined"* || $stderr == *"AMP_CONFINE is off"* ]]
  [[ $stderr == *"count as people"*"--unconfined"* ]]
  [ -z "$output" ]
  run -78 env AMP_CONFINE=off setsid -w task-dispatch init -x true -y true --dry-run </dev/null
  # A machine that has neither namespaces nor Landlock.
  printf '#!/bin/sh\necho '"'"'{"landlock":0,"namespaces":false,"seccomp":false,"processes":false,"why":""}'"'"'\n' >../no-walls
  chmod +x ../no-walls
  cat >../wall.sh <<'SH'
mount --bind ../no-walls "$AMP_BUILD/libexec/amp/confine" || exit 9
env -u AMP_CONFINE task-dispatch init -x true -y true
SH
  if [ "$(id -u)" -eq 0 ] && unshare -m true 2>/dev/null; then
    AMP_BUILD=$AMP_BUILD run -78 unshare -m setsid -w bash ../wall.sh </dev/null
    [[ $output == *"this machine cannot confine agents"*"--unconfined"* ]]
  fi
  picture | cmp - ../before
  run -64 init --no-loop --unconfined
  run -0 --separate-stderr env AMP_CONFINE=off setsid -w task-dispatch init -x true -y true --unconfined </dev/null
  [[ $stderr == *"not confined: they count as people"* ]]
  grep -qx '  --unconfined \\' loop.sh
  bash -n loop.sh
  run -0 init --undo
  # Without a loop there are no agents of ours; with walls the option is not needed.
  run -0 env AMP_CONFINE=off setsid -w task-dispatch init --no-loop </dev/null
  run -0 init --undo
  env -u AMP_CONFINE worktree-bind exec true 2>/dev/null || skip "confinement is not available"
  run -0 env -u AMP_CONFINE setsid -w task-dispatch init -x true -y true </dev/null
  run -1 grep -q unconfined loop.sh
}
