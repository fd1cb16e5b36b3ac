#!/usr/bin/env bats
# The life of worktrees: what a crash leaves, what gc removes and keeps, locks, and what a new
# worktree gets.
# plain: worktree-bind.bats and switch.bats run the same code

load ../lib
load ../worktrees

setup() {
  need_tool worktree-bind
  cd "$BATS_TEST_TMPDIR" || return 1
  repo work
  cd work || return 1
  trees=$PWD.worktrees
}

# tree NAME [COMMIT]: an agent's worktree without a binding; with COMMIT it has one of its own.
tree() {
  worktree-bind bind "$1" -b "t/$1" >/dev/null
  [ -z "${2-}" ] || git -C "$trees/$1" commit -q --allow-empty -m "$2"
  worktree-bind unbind "$1" >/dev/null
}
# why NAME [OPTION...]: what gc says of it.
why() { worktree-bind gc "${@:2}" | awk -F '\t' -v p="$trees/$1" '$3 == p { print $1, $2 }'; }

@test "gc keeps what would be lost, with the reason, and removes the rest when it may" {
  for n in merged gone; do tree $n; done
  tree ahead work
  for n in dirty new staged locked; do tree $n; done
  git -C "$trees/merged" commit -q --allow-empty -m done
  git merge -q --ff-only t/merged
  rm -r "$trees/gone"
  touch "$trees/new/file"
  touch "$trees/staged/file" && git -C "$trees/staged" add file
  echo x >"$trees/dirty/.gitignore"
  git worktree lock "$trees/locked"
  worktree-bind bind bob -b task/x >/dev/null
  git worktree add -q -b person ../mine
  git -C "$trees/ahead" checkout -q --detach
  [ "$(why merged)" = "remove merged" ]
  [ "$(why gone)" = "remove files_gone" ]
  [ "$(why ahead)" = "keep unmerged" ]
  [ "$(why dirty)" = "keep uncommitted" ]
  [ "$(why new)" = "keep uncommitted" ]
  [ "$(why staged)" = "keep uncommitted" ]
  [ "$(why locked)" = "keep locked" ]
  [ "$(why bob)" = "keep bound" ]
  # A report changes nothing.
  [ -d "$trees/merged" ] && [ -d .git/worktrees/gone ]
  AMP_AGENT=bob run -77 worktree-bind gc --apply
  run -0 --separate-stderr worktree-bind gc --apply
  [[ $output == *"removed	merged	$trees/merged	t/merged"* ]]
  [ ! -e "$trees/merged" ] && [ ! -e .git/worktrees/gone ]
  for n in ahead dirty new staged locked bob; do [ -d "$trees/$n" ]; done
  [ -e "$trees/new/file" ]
  [ -d ../mine ]
  [[ $output == *"keep	worktree_outside"* ]]
  git rev-parse -q --verify t/merged
}

@test "gc keeps what no remote has, once there is one; --into names another branch" {
  git clone -q --bare . ../origin.git
  tree a work
  git merge -q --ff-only t/a
  [ "$(why a)" = "remove merged" ]
  git remote add origin ../origin.git && git fetch -q
  [ "$(why a)" = "keep unpushed" ]
  git push -q origin main
  [ "$(why a)" = "remove merged" ]
  tree b work
  git branch release t/b
  [ "$(why b)" = "keep unmerged" ]
  git push -q origin release
  [ "$(why b --into release)" = "remove merged" ]
  run -1 worktree-bind gc --into nothing
}

@test "gc keeps worktrees with initialised submodules, an unfinished merge, or a foreign .git" {
  repo ../lib
  git -c protocol.file.allow=always submodule add -q ../lib lib
  git commit -qm sub
  tree sub
  git -C "$trees/sub" -c protocol.file.allow=always submodule update --init -q
  [ "$(why sub)" = "keep submodules" ]
  tree merging
  echo a >"$trees/merging/f" && git -C "$trees/merging" add f && git -C "$trees/merging" commit -qm a
  echo b >f && git add f && git commit -qm b
  run -1 git -C "$trees/merging" merge main
  [ "$(why merging)" = "keep unfinished_operation" ]
  tree other
  rm "$trees/other/.git" && git init -q "$trees/other"
  [ "$(why other)" = "keep foreign" ]
}

@test "locks: bind, unbind and gc respect those of git" {
  tree a
  git worktree lock --reason "a look at it" "$trees/a"
  [ "$(why a)" = "keep locked" ]
  run -1 worktree-bind bind bob --path "$trees/a" -b t/a
  [ "$(worktree-bind --json list | jq -r 'select(.agent_id == "bob") | .reason')" = worktree_locked ]
  worktree-bind bind eve -b t/e >/dev/null
  git worktree lock "$(worktree-bind path eve)"
  run -1 worktree-bind unbind eve --remove
  [[ $output == *"is locked"* ]]
}

@test "repair removes what a killed bind left, and makes a bound agent's worktree again" {
  for i in 1 2 3 4 5 6; do
    worktree-bind bind "a$i" -b "task/$i" >/dev/null 2>&1 &
    pid=$!
    case $((i % 3)) in
    0) wait_until 5 test -d ".git/worktrees/a$i" || true ;;
    1) wait_until 5 test -e "$trees/a$i/.git" || true ;;
    2) wait_until 5 test -e ".git/refs/heads/task/$i" || true ;;
    esac
    kill -9 $pid 2>/dev/null || [ $? -eq 1 ]
    wait $pid || [ $? -eq 137 ]
  done
  # As one that is killed in git-worker leaves it.
  mkdir -p .git/worktrees/half "$trees/half"
  echo "amp: being made" >.git/worktrees/half/locked
  echo "$trees/half/.git" >.git/worktrees/half/gitdir
  worktree-bind repair >out
  grep -q "removed	half_made	$trees/half" out
  [ ! -e .git/worktrees/half ] && [ ! -e "$trees/half" ]
  ! grep -l "being made" .git/worktrees/*/locked
  for i in 1 2 3 4 5 6; do worktree-bind bind "a$i" -b "task/$i" >/dev/null; done
  [ "$(worktree-bind list | grep -c BOUND_HOME)" -eq 6 ]
  rm -r "$trees/a1"
  worktree-bind repair >out
  [ "$(git -C "$trees/a1" symbolic-ref --short HEAD)" = task/1 ]
  # What is whole is left alone.
  worktree-bind repair >out
  [ ! -s out ]
}

# included [OPTION...]: binds bob with the files of .worktreeinclude.
included() { worktree-bind bind bob -b task/x --include "$@"; }

@test ".worktreeinclude: ignored files are copied, nothing else, nothing outside, no link is followed" {
  printf '.env*\nsecrets/\nbig\nnode_modules/\n' >.gitignore
  printf '# what agents need\n.env*\n!.env.prod\nsecrets/\nREADME\nopen\n/fifo\n/../outside\n' >.worktreeinclude
  git add .gitignore && git commit -qm ignore
  run -64 --separate-stderr included
  [[ $stderr == *"/../outside: not a pattern"* ]]
  [ "$(state_of bob)" = BIND_FAILED ]
  sed -i '/outside/d' .worktreeinclude
  echo A=1 >.env && chmod 600 .env
  echo P=1 >.env.prod
  mkdir -p secrets/deep sub node_modules
  echo k >secrets/deep/key && echo B=2 >sub/.env.local
  echo x >open && echo y >node_modules/.env
  ln -s /etc/passwd .env.link && mkfifo secrets/fifo && ln -s /etc secrets/etc
  run -0 --separate-stderr included
  [[ $stderr == *"copied 4 ignored files"* ]]
  [[ $stderr == *"3 not copied, because they are not regular files"* ]]
  cd "$trees/bob"
  [ "$(stat -c %a .env) $(cat .env)" = "600 A=1" ]
  [ "$(cat secrets/deep/key sub/.env.local node_modules/.env | paste -sd ' ')" = "k B=2 y" ]
  for f in .env.prod .env.link secrets/fifo secrets/etc open; do [ ! -e $f ] && [ ! -L $f ]; done
  [ -z "$(git status --porcelain)" ]
  # A file that is there stays, and a link in the worktree leads nowhere.
  echo mine >.env && rm -r secrets && mkdir ../../out && ln -s ../../out secrets
  cd - && run -73 included
  [ "$(cat "$trees/bob/.env")" = mine ]
  [ -z "$(ls ../out)" ]
}

@test ".worktreeinclude: it has a limit, and must be a file" {
  echo .env >.gitignore && git add .gitignore && git commit -qm ignore
  echo .env >.worktreeinclude
  head -c 4096 /dev/zero >.env
  run -1 --separate-stderr included --include-bytes 4095
  [[ $stderr == *"larger than the limit (4095 bytes)"* ]]
  [ "$(state_of bob)" = BIND_FAILED ]
  included --include-bytes 4096
  cmp .env "$trees/bob/.env"
  worktree-bind unbind bob --remove >/dev/null
  ln -sf /etc/passwd .worktreeinclude
  run -65 --separate-stderr included
  [ ! -e "$trees/bob/.env" ]
  # Only when it is asked for.
  worktree-bind bind bob -b task/x >/dev/null
  [ ! -e "$trees/bob/.env" ]
}

@test "the post-create command is the person's, runs once, and nobody is bound before it succeeded" {
  mkdir -p "$XDG_CONFIG_HOME/amp"
  echo '{"worktree":{"post_create":"echo ran >>ran; pwd; test ! -e ../fail"}}' >"$XDG_CONFIG_HOME/amp/amp.json"
  touch "$trees.fail" && mkdir -p "$trees" && touch "$trees/fail"
  run -1 --separate-stderr worktree-bind bind bob -b task/x
  [[ $stderr == *"ended with status 1"* ]]
  [ "$(state_of bob)" = BIND_FAILED ]
  [ -d "$trees/bob" ]
  # amp-ack watch repeats it, with the command.
  run -0 --separate-stderr amp-ack sweep -s .git/amp --now "$(date -uIs -d +10sec)"
  [[ $stderr == *"$trees/bob"* ]]
  [[ $(worktree-bind status bob) == *"BIND_FAILED	filesystem_error: the post-create command ended with status 1"* ]]
  rm "$trees/fail"
  run -0 --separate-stderr worktree-bind bind bob -b task/x
  [[ $output == *BOUND_HOME* ]]
  [[ $stderr == *"$trees/bob"* ]]
  worktree-bind bind bob -b task/x
  [ "$(wc -l <"$trees/bob/ran")" -eq 3 ]
  # repair makes a worktree again, with the command.
  rm -r "$trees/bob"
  run -0 --separate-stderr worktree-bind repair
  [ "$(wc -l <"$trees/bob/ran")" -eq 1 ]
  # Not one of the repository, of the state, or one that cannot be found.
  rm "$XDG_CONFIG_HOME/amp/amp.json"
  for place in . .git/amp "$trees/bob"; do
    echo '{"worktree":{"post_create":"touch ../../stolen"}}' >"$place/amp.json"
  done
  worktree-bind bind eve -C "$trees/bob" -b task/y
  cd "$trees/bob"
  run -77 worktree-bind bind dan -b task/w
  cd "$OLDPWD"
  [ ! -e ../stolen ] && [ ! -e stolen ]
  run -1 worktree-bind bind ann -b task/z --post-create 'sleep 60' --post-create-timeout 50ms
  [[ $output == *"did not end in 50 ms"* ]]
  [ "$(state_of ann)" = BIND_FAILED ]
}

@test "amp-ack watch repeats a failed bind with the files and the command; a killed bind is completed by the next one" {
  echo .env >.gitignore && git add .gitignore && git commit -qm ignore
  echo .env >.worktreeinclude && echo A=1 >.env
  mkdir -p "$XDG_CONFIG_HOME/amp" "$trees"
  echo '{"worktree":{"include":true,"post_create":"echo >>ran; cat ../go"}}' >"$XDG_CONFIG_HOME/amp/amp.json"
  touch "$trees/bob" # in the way
  run -73 worktree-bind bind bob -b task/x
  rm "$trees/bob" && echo >"$trees/go"
  amp-ack sweep -s .git/amp --now "$(date -uIs -d +10sec)"
  [ "$(state_of bob)" = BOUND_HOME ]
  [ "$(cat "$trees/bob/.env"; wc -l <"$trees/bob/ran")" = "$(printf 'A=1\n1')" ]
  # Killed while the command runs: nobody is bound, and gc leaves a worktree alone that is being made.
  rm "$trees/go" && mkfifo "$trees/go"
  worktree-bind bind eve -b task/y >/dev/null 2>&1 &
  bind=$!
  wait_until 10 test -e "$trees/eve/ran"
  [ "$(state_of eve)" = UNBOUND ]
  git -C "$trees/eve" clean -qfdx -e .env
  [ "$(why eve)" = "keep busy" ]
  kill -9 $bind
  wait $bind || :
  rm "$trees/go" && echo >"$trees/go"
  worktree-bind bind eve -b task/y 2>/dev/null
  [ "$(state_of eve)" = BOUND_HOME ]
  [ "$(wc -l <"$trees/eve/ran")" -eq 1 ]
}

@test "submodules: bind works, says what it left out, and fetches nothing" {
  repo ../lib
  git -c protocol.file.allow=always submodule add -q ../lib lib
  git commit -qm sub
  git config submodule.lib.url "ext::sh -c touch%20$BATS_TEST_TMPDIR/fetched"
  run -0 --separate-stderr worktree-bind bind bob -b task/x
  [[ $stderr == *"1 submodule is not fetched"* ]]
  [ -d "$trees/bob/lib" ] && [ -z "$(ls -A "$trees/bob/lib")" ]
  [ ! -e "$BATS_TEST_TMPDIR/fetched" ]
  [ -z "$(git -C "$trees/bob" status --porcelain)" ]
}

# same_as_git NAME: binds NAME and compares the index and the files with those of git worktree add.
same_as_git() {
  worktree-bind bind "$1" -b "t/$1" >/dev/null
  git worktree add -q -b "g/$1" "../git-$1"
  for t in "$trees/$1" "../git-$1"; do
    (cd "$t" && git ls-files -t && find . -name .git -prune -o -type f -print | sort)
  done >both
  [ "$(head -n "$(($(wc -l <both) / 2))" both)" = "$(tail -n "$(($(wc -l <both) / 2))" both)" ]
  [ -z "$(git -C "$trees/$1" status --porcelain)" ]
  cmp .git/info/sparse-checkout "$(git -C "$trees/$1" rev-parse --git-path info/sparse-checkout)"
}

@test "sparse checkouts: a new worktree has the patterns and the files of the main worktree" {
  for d in a a/b a/c d e/f/g; do mkdir -p $d && echo $d >$d/file; done
  echo k >a/keep.txt && git add -A && git commit -qm files
  git sparse-checkout set a/b e/f
  same_as_git cone
  [ "$(git -C "$trees/cone" sparse-checkout list | paste -sd ' ')" = "a/b e/f" ]
  [ -e "$trees/cone/a/b/file" ] && [ ! -e "$trees/cone/d" ]
  [ "$(git -C "$trees/cone" ls-files -t | grep -c '^S')" -eq 2 ]
  # As git left it before each worktree had a configuration, and without the cone.
  git sparse-checkout set --no-cone '/*' '!/a/' '/a/**/file' '*.tx[t]' '!d' '# no' 'e/*/g/'
  same_as_git free
  [ ! -e "$trees/free/d" ] && [ -e "$trees/free/a/b/file" ]
  git config core.sparseCheckout true
  git config --unset extensions.worktreeConfig && rm .git/config.worktree
  worktree-bind bind old -b t/old >/dev/null
  [ ! -e "$trees/old/d" ] && [ -z "$(git -C "$trees/old" status --porcelain)" ]
  worktree-bind bind all -b t/all --no-sparse >/dev/null
  [ -e "$trees/all/d/file" ]
  [ "$(git -C "$trees/all" ls-files -t | grep -c '^S')" -eq 0 ]
  [ -z "$(git -C "$trees/all" status --porcelain)" ]
  # Patterns behind a link are not read.
  mv .git/info/sparse-checkout ../patterns && ln -s ../../../patterns .git/info/sparse-checkout
  run -65 worktree-bind bind link -b t/link
  [ "$(state_of link)" = BIND_FAILED ] && [ ! -e "$trees/link" ]
}

@test "line ends and \$Id\$ are converted as git does, with and without attributes" {
  printf 'a\r\nb\n' >mixed && printf 'x\n' >unix && printf '$Id$\n' >id
  git add -A && git commit -qm plain
  worktree-bind bind plain -b t/plain >/dev/null
  for f in mixed unix id; do cmp $f "$trees/plain/$f"; done
  printf 'unix text eol=crlf\nid ident\n' >.gitattributes && git add -A && git commit -qm attributes
  worktree-bind bind conv -b t/conv >/dev/null
  [ "$(od -An -c "$trees/conv/unix" | tr -d ' ')" = 'x\r\n' ]
  grep -q '^$Id: [0-9a-f]\{40\} \$' "$trees/conv/id"
}

@test "a BIND message gets the files and the command of the person's configuration, not of its own" {
  echo .env >.gitignore && git add .gitignore && git commit -qm ignore
  echo .env >.worktreeinclude && echo A=1 >.env
  mkdir -p "$XDG_CONFIG_HOME/amp"
  echo '{"worktree":{"include":true,"post_create":"echo ran >>ran; test ! -e ../fail"}}' \
    >"$XDG_CONFIG_HOME/amp/amp.json"
  control 1 BIND bob '"branch":"task/x","post_create":"touch ../stolen","include":false' >bind
  worktree-bind <bind >out
  [ "$(states out)" = "BOUND_HOME " ]
  [ "$(cat "$trees/bob/.env" "$trees/bob/ran" | paste -sd ' ')" = "A=1 ran" ]
  [ ! -e "$trees/stolen" ]
  # The same message repeats nothing.
  worktree-bind <bind >out
  [ "$(states out)" = "BOUND_HOME " ]
  [ "$(cat "$trees/bob/.env" "$trees/bob/ran" | paste -sd ' ')" = "A=1 ran" ]
  touch "$trees/fail"
  control 2 BIND eve '"branch":"task/y"' >bind
  run -1 --separate-stderr worktree-bind <bind
  [ "$(answers <<<"$output" | jq -r .error_code)" = post_create_failed ]
  [ "$(state_of eve)" = BIND_FAILED ]
}
