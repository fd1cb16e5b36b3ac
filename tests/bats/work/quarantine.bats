# The quarantine of a confined attempt: git-worker makes a private git directory for the agent, and
# takes over the branch from it. Everything else in it is never read, and what is malformed is
# refused with a code. Runs without confinement: the tests write into the quarantine as an agent
# that means harm would.
# walls

load ../lib

WORKER=$AMP_BUILD/libexec/amp/git-worker

setup() {
  cd "$BATS_TEST_TMPDIR" || return 1
  repo r
  echo one >r/file
  git -C r add file
  git -C r commit -qm one
  base=$(git -C r rev-parse HEAD)
  ask worktree_add ",\"path\":\"$PWD/w\",\"branch\":\"work/x\",\"agent\":\"bob\"" >/dev/null
  make_quarantine q
}

# ask OP MEMBERS: one request about the repository r; prints the reply.
ask() {
  printf '{"q":1,"op":"%s","repo":"%s"%s}\n' "$1" "$PWD/r" "${2-}" | timeout -s KILL 60 "$WORKER"
}

make_quarantine() {
  ask quarantine_make ",\"worktree\":\"$PWD/w\",\"path\":\"$PWD/$1\",\"name\":\"bob\",\"email\":\"bob@agents.invalid\"" >made
  grep -q '^{"q":1,"ok":true' made
}

# take [MEMBERS]: takes over the branch from the quarantine q.
take() {
  ask quarantine_take ",\"worktree\":\"$PWD/w\",\"path\":\"$PWD/q\",\"branch\":\"work/x\",\"base\":\"$base\",\"start\":\"${start:-$base}\",\"name\":\"bob\",\"email\":\"bob@agents.invalid\",\"keep\":\"refs/amp/kept/bob/1\"${1-}" >taken
  cat taken
}

# refused CODE PATTERN [MEMBERS]: the takeover is refused, and nothing has changed.
refused() {
  local before after
  before=$(git -C r for-each-ref)
  run -0 take "${3-}"
  [[ $output == '{"q":1,"ok":false,"status":77,"code":"'"$1"'"'* ]] || { echo "$output" && return 1; }
  [[ $output == *$2* ]] || { echo "$output" && return 1; }
  after=$(git -C r for-each-ref)
  [ "$before" = "$after" ]
  [ -z "$(find r/.git/objects -name 'tmp_objdir*')" ]
}

# agent ARG...: the agent's git, which sees the quarantine only.
agent() {
  GIT_DIR=$PWD/q git -C w "$@"
}

# object TYPE: writes an object from stdin into the quarantine, malformed or not; prints its id.
object() {
  agent hash-object -t "$1" -w --literally --stdin
}

# points COMMIT: the agent's branch.
points() {
  mkdir -p q/refs/heads/work
  echo "$1" >q/refs/heads/work/x
}

# commit_of TREE [PARENT]: a commit object in the quarantine.
commit_of() {
  printf 'tree %s\nparent %s\nauthor b <b@x> 1 +0000\ncommitter b <b@x> 1 +0000\n\nm\n' "$1" "${2:-$base}" | object commit
}

# entry MODE NAME ID: an entry of a tree.
entry() {
  printf '%s %s\0' "$1" "$2"
  printf "$(sed 's/../\\x&/g' <<<"$3")"
}

@test "the agent's git works in the quarantine, and the branch and index are taken over" {
  agent status --porcelain >status
  [ ! -s status ]
  echo two >w/file
  echo new >w/other
  agent add -A
  agent commit -qm two
  tip=$(agent rev-parse HEAD)
  [ "$(git -C r rev-parse work/x)" = "$base" ]
  run -0 take
  [[ $output == *'"head":"work/x"'*'"unfinished":false'*'"commits":1,"objects":4'*'"kept":false'*"\"commit\":\"$tip\""* ]]
  [ "$(git -C r rev-parse work/x)" = "$tip" ]
  [ "$(git -C w status --porcelain)" = "" ]
  git -C r fsck --strict --no-dangling
  git -C r log -g -1 --format=%gn:%gs work/x >log
  [ "$(cat log)" = "bob:amp: taken over" ]
  # A second takeover finds the branch where it is.
  run -0 take
  [[ $output == *'"code":"branch_moved"'* ]]
}

@test "the quarantine has the branch and the objects, not the configuration, hooks or other refs" {
  git -C r config core.fsmonitor "$PWD/spy"
  git -C r config credential.helper "$PWD/spy"
  git -C r branch secret
  rm -rf q
  make_quarantine q
  run -1 grep -r spy q
  [ "$(agent for-each-ref --format='%(refname)')" = refs/heads/work/x ]
  [ "$(cat q/objects/info/alternates)" = "$PWD/r/.git/objects" ]
  [ "$(agent config user.email)" = bob@agents.invalid ]
  [ ! -e q/hooks ]
  [ "$(stat -c %a q)" = 700 ]
  [[ $(cat made) == *"\"objects\":[\"$PWD/r/.git/objects\"],\"common\":\"$PWD/r/.git\",\"head\":\"$base\""* ]]
}

@test "packs are taken over, but only the objects that the branch needs" {
  for i in 1 2 3; do
    seq "$i" 400 >"w/n$i"
    agent add -A
    agent commit -qm "n$i"
  done
  junk=$(echo junk | object blob)
  agent gc -q --prune=never 2>/dev/null
  agent pack-refs --all
  [ -z "$(find q/objects -path '*/??/*' -type f)" ] || agent repack -adlq
  rm -f q/objects/pack/*.idx
  tip=$(sed -n 's,^\([0-9a-f]*\) refs/heads/work/x$,\1,p' q/packed-refs)
  run -0 take
  [[ $output == *'"commits":3'*"\"commit\":\"$tip\""* ]]
  git -C r fsck --strict --no-dangling
  [ "$(git -C r show work/x:n3 | wc -l)" -eq 398 ]
  run -128 git -C r cat-file -t "$junk"
}

@test "a branch that did not move is left alone, and an unfinished merge is reported" {
  : >q/MERGE_HEAD
  run -0 take
  [[ $output == *'"unfinished":true,"commit":"'"$base"* ]]
}

@test "configuration, hooks, alternates, attributes, refs and the index of the quarantine are not read" {
  echo two >w/file
  agent commit -qam two
  tip=$(agent rev-parse HEAD)
  printf '[core]\n\tfsmonitor = %s\n\thooksPath = %s\n\tworktree = /\n[include]\n\tpath = %s/fifo\n[filter "x"]\n\tclean = %s\n' \
    "$PWD/spy" "$PWD" "$PWD" "$PWD/spy" >q/config
  printf '#!/bin/sh\necho ran >>%s/ran\n' "$PWD" >spy
  chmod +x spy
  cp spy reference-transaction
  mkdir -p q/hooks
  cp spy q/hooks/post-commit
  mkfifo fifo q/index.fifo
  rm q/index
  ln -s /etc/passwd q/index
  echo "/nowhere/objects" >q/objects/info/alternates
  mkdir -p q/refs/replace q/refs/heads/main.d
  echo "$base" >"q/refs/replace/$tip"
  mkfifo q/refs/tags q/shallow q/info/attributes q/info/grafts
  echo "$base" >q/refs/heads/main
  run -0 take
  [[ $output == *"\"commit\":\"$tip\""* ]]
  [ ! -e ran ]
  [ "$(git -C r for-each-ref --format='%(refname)')" = "$(printf 'refs/heads/main\nrefs/heads/work/x')" ]
}

@test "links and special files in the place of what is read are refused" {
  echo two >w/file
  agent commit -qam two
  tip=$(agent rev-parse HEAD)
  loose=q/objects/${tip:0:2}/${tip:2}
  cp "$loose" copy
  rm -f "$loose"
  ln -s "$PWD/copy" "$loose"
  refused quarantine_refused 'is not a regular file'
  rm "$loose"
  mkfifo "$loose"
  refused quarantine_refused 'is not a regular file'
  rm "$loose"
  mv "q/objects/${tip:0:2}" elsewhere || mkdir elsewhere
  cp copy "elsewhere/${tip:2}"
  ln -s "$PWD/elsewhere" "q/objects/${tip:0:2}"
  refused quarantine_refused 'is not a regular file'
  rm "q/objects/${tip:0:2}"
  mv elsewhere "q/objects/${tip:0:2}"
  mkfifo q/objects/pack/pack-1.pack
  refused quarantine_refused 'is not a regular file'
  rm q/objects/pack/pack-1.pack
  mv q/refs/heads/work/x branch
  ln -s "$PWD/branch" q/refs/heads/work/x
  refused quarantine_refused 'refs/heads/work/x is not a regular file'
  rm q/refs/heads/work/x
  mkfifo q/refs/heads/work/x
  refused quarantine_refused 'refs/heads/work/x is not a regular file'
  rm q/refs/heads/work/x
  echo "ref: refs/heads/main" >q/refs/heads/work/x
  refused quarantine_refused "is not a commit's id"
  mv branch q/refs/heads/work/x
  mv q/HEAD HEAD
  ln -s "$PWD/HEAD" q/HEAD
  refused quarantine_refused 'HEAD is not a regular file'
  rm q/HEAD
  refused quarantine_refused 'HEAD is missing'
  mv HEAD q/HEAD
  mv q q.d
  ln -s q.d q
  refused quarantine_refused 'is not a directory'
  rm q
  mv q.d q
  run -0 take
  [[ $output == *'"ok":true'* ]]
}

@test "damaged, missing and mistyped objects are refused" {
  blob=$(echo x | object blob)
  tree=$(entry 100644 a "$blob" | object tree)
  # The contents have another hash.
  tip=$(commit_of "$tree")
  points "$tip"
  other=$(commit_of "$tree" "$(git -C r rev-parse HEAD^)")
  chmod u+w "q/objects/${tip:0:2}/${tip:2}"
  cp "q/objects/${other:0:2}/${other:2}" "q/objects/${tip:0:2}/${tip:2}"
  refused quarantine_refused 'have another hash'
  echo garbage >"q/objects/${tip:0:2}/${tip:2}"
  refused quarantine_refused 'is damaged'
  : >"q/objects/${tip:0:2}/${tip:2}"
  refused quarantine_refused 'is damaged'
  rm -f "q/objects/${tip:0:2}/${tip:2}"
  refused quarantine_refused "the commit $tip is missing"
  points "$(commit_of "$blob")"
  refused quarantine_refused ''
  points "$blob"
  refused quarantine_refused ''
  points "$(commit_of "$(entry 100644 a "$tree" | object tree)")"
  refused quarantine_refused "$tree is"
  points "$(commit_of "$(entry 40000 a "$blob" | object tree)")"
  refused quarantine_refused "$blob is"
  points "$(commit_of "$(entry 100644 a "${blob//[0-9]/e}" | object tree)")"
  refused quarantine_refused 'is missing'
  points "$(commit_of "$tree" "${tip//[0-9]/a}")"
  refused quarantine_refused 'is missing'
  points 0000000000000000000000000000000000000000
  refused quarantine_refused "is not a commit's id"
  rm -f q/refs/heads/work/x q/packed-refs
  refused quarantine_refused 'was removed'
}

@test "names that a checkout would write into a git directory are refused" {
  blob=$(echo x | object blob)
  for name in .git .GIT .Git 'git~1' GIT~1 '.git ' '.git.' '.git::$INDEX_ALLOCATION' \
    $'.g\u200cit' $'.gi\ufefft' . .. 'a/b'; do
    points "$(commit_of "$(entry 100644 "$name" "$blob" | object tree)")"
    echo "$name"
    refused quarantine_refused ''
  done
  points "$(commit_of "$(entry 120000 .gitmodules "$blob" | object tree)")"
  refused quarantine_refused 'symbolic link .gitmodules'
  points "$(commit_of "$(entry 100666 a "$blob" | object tree)")"
  refused quarantine_refused 'mode 100666'
  points "$(commit_of "$({ entry 100644 b "$blob" && entry 100644 a "$blob"; } | object tree)")"
  refused quarantine_refused 'not sorted'
  points "$(commit_of "$({ entry 100644 a "$blob" && entry 100644 a "$blob"; } | object tree)")"
  refused quarantine_refused ''
  sub=$(entry 100644 a "$blob" | object tree)
  points "$(commit_of "$({ entry 100644 a "$blob" && entry 100644 a.b "$blob" && entry 40000 a "$sub"; } | object tree)")"
  refused quarantine_refused 'twice'
  # A name of git's inside another directory is a name of git's too.
  sub=$(entry 100644 .git "$blob" | object tree)
  points "$(commit_of "$(entry 40000 d "$sub" | object tree)")"
  refused quarantine_refused '.git'
  # Others are not.
  for name in .gitignore .gitmodules git .github $'caf\u00e9'; do
    points "$(commit_of "$(entry 100644 "$name" "$blob" | object tree)")"
    git -C r update-ref refs/heads/work/x "$base"
    run -0 take
    [[ $output == *'"ok":true'* ]]
  done
}

@test "the new commit must descend from where the work began; what it drops is kept" {
  orphan=$(printf 'tree %s\nauthor b <b@x> 1 +0000\ncommitter b <b@x> 1 +0000\n\nm\n' "$(git -C r rev-parse 'HEAD^{tree}')" | object commit)
  points "$orphan"
  refused quarantine_refused 'does not descend'
  points "$(git -C r rev-parse HEAD^)"
  refused quarantine_refused 'does not descend'
  # The branch had a commit when the attempt began; the agent replaces it.
  git -C w commit -q --allow-empty -m old
  old=$(git -C r rev-parse work/x)
  tip=$(commit_of "$(git -C r rev-parse 'HEAD^{tree}')")
  points "$tip"
  start=$old
  run -0 take
  [[ $output == *'"kept":true,"commit":"'"$tip"* ]]
  [ "$(git -C r rev-parse refs/amp/kept/bob/1)" = "$old" ]
}

@test "a branch that moved meanwhile stays, and the agent's commit is kept" {
  tip=$(commit_of "$(git -C r rev-parse 'HEAD^{tree}')")
  points "$tip"
  git -C w commit -q --allow-empty -m person
  person=$(git -C r rev-parse work/x)
  run -0 take
  [[ $output == '{"q":1,"ok":false,"status":1,"code":"branch_moved"'* ]]
  [ "$(git -C r rev-parse work/x)" = "$person" ]
  [ "$(git -C r rev-parse refs/amp/kept/bob/1)" = "$tip" ]
}

@test "a protected branch is not taken over" {
  mkdir -p r/.git/amp
  printf 'amp-guard 1\nhumans allow\nserver none\nbranch work/*\n' >r/.git/amp/guard
  points "$(commit_of "$(git -C r rev-parse 'HEAD^{tree}')")"
  refused branch_violation 'protected branch'
}

@test "the limits of count and size hold for loose objects and for packs" {
  head -c 300000 /dev/zero >w/zero
  agent add -A
  agent commit -qm zero
  refused quarantine_limit 'more than 2 new objects' ',"objects":2'
  refused quarantine_limit 'larger than 100000 bytes' ',"object_bytes":100000'
  refused quarantine_limit 'more than 200000 bytes' ',"bytes":200000'
  agent repack -adlq
  agent prune-packed -q
  refused quarantine_limit 'more than 2 objects in packs' ',"objects":2'
  refused quarantine_limit 'larger than 100000 bytes' ',"object_bytes":100000'
  refused quarantine_limit '200000 bytes' ',"bytes":200000'
  run -0 take ',"objects":3,"bytes":310000,"object_bytes":300000'
  [[ $output == *'"ok":true'* ]]
}

@test "a few nested trees that expand to a billion paths, or a file to terabytes, are refused before the branch moves" {
  blob=$(object blob <<<bomb)
  tree=$(for i in {0..9}; do entry 100644 "f$i" "$blob"; done | object tree)
  for ((level = 1; level < 9; level++)); do
    tree=$(for i in {0..9}; do entry 40000 "d$i" "$tree"; done | object tree)
  done
  points "$(commit_of "$tree")"
  refused quarantine_limit 'expands to more than 1000000 paths (tree_paths)'
  # Also below an intermediate commit, and through trees that the repository has.
  points "$(commit_of "$(git -C r rev-parse "$base^{tree}")" "$(commit_of "$tree")")"
  refused quarantine_limit 'expands to more than 1000000 paths (tree_paths)'
  tree=$(git -C r rev-parse "$base^{tree}")
  tree=$(for i in {0..9}; do entry 40000 "d$i" "$tree"; done | object tree)
  points "$(commit_of "$tree")"
  refused quarantine_limit 'expands to more than 9 paths (tree_paths)' ',"tree_paths":9'
  refused quarantine_limit 'expands to more than 39 bytes (tree_bytes)' ',"tree_bytes":39'
  run -0 take ',"tree_paths":10,"tree_bytes":40'
  [[ $output == *'"ok":true'* ]]
}

@test "trees that are nested too deep are refused" {
  tree=$(git -C r rev-parse "$base^{tree}")
  # Written at once: a tree of one directory, around the one before.
  python3 - "$tree" q/objects <<'P'
import hashlib, os, sys, zlib
oid = bytes.fromhex(sys.argv[1])
for _ in range(2048):
    data = b"40000 d\0" + oid
    data = b"tree %d\0" % len(data) + data
    oid = hashlib.sha1(data).digest()
    path = os.path.join(sys.argv[2], oid.hex()[:2])
    os.makedirs(path, exist_ok=True)
    with open(os.path.join(path, oid.hex()[2:]), "wb") as f:
        f.write(zlib.compress(data))
print(oid.hex(), file=open("deep", "w"))
P
  points "$(commit_of "$(cat deep)")"
  refused quarantine_limit 'has more than 2048 levels'
}

@test "a sparse file of a terabyte is neither committed, compared nor kept, and its worktree stays" {
  truncate -s 1T w/huge
  echo small >w/small
  run -0 ask commit ",\"worktree\":\"$PWD/w\",\"name\":\"bob\",\"email\":\"bob@x\",\"message\":\"m\""
  [[ $output == *'"status":77,"code":"quarantine_limit"'*"the file huge has 1099511627776 bytes, more than object_bytes allows"* ]]
  run -0 ask diff ",\"worktree\":\"$PWD/w\",\"from\":\"$base\""
  [[ $output == *'"status":77,"code":"quarantine_limit"'*"the file huge has 1099511627776 bytes, more than object_bytes allows"* ]]
  run -0 ask diff ",\"worktree\":\"$PWD/w\",\"from\":\"$base\",\"object_bytes\":5"
  [[ $output == *'"code":"quarantine_limit"'* ]]
  [ "$(git -C r rev-parse work/x)" = "$base" ]
  run -0 ask keep ",\"worktree\":\"$PWD/w\",\"ref\":\"refs/amp/kept/bob/1\",\"name\":\"bob\",\"email\":\"bob@x\""
  [[ $output == *'"kept":true,"partial":true'* ]]
  [ "$(git -C r ls-tree --name-only refs/amp/kept/bob/1)" = $'file\nsmall' ]
  [ -e w/huge ]
}

@test "many objects become a pack of the repository" {
  for i in {1..600}; do echo "$i" >"w/n$i"; done
  agent add -A
  agent commit -qm many
  tip=$(agent rev-parse HEAD)
  run -0 take
  [[ $output == *'"commits":1,"objects":60'*"\"commit\":\"$tip\""* ]]
  [ "$(find r/.git/objects/pack -name '*.pack' | wc -l)" -eq 1 ]
  git -C r fsck --strict --no-dangling
  [ "$(git -C r ls-tree --name-only work/x | wc -l)" -eq 601 ]
  [ "$(git -C w status --porcelain)" = "" ]
}

@test "a damaged pack is refused" {
  seq 500 >w/file
  agent commit -qam more
  agent repack -adlq
  agent prune-packed -q
  chmod u+w q/objects/pack/*.pack
  cp q/objects/pack/*.pack good
  target=$(echo q/objects/pack/*.pack)
  size=$(stat -c %s good)
  head -c $((size - 30)) good >"$target"
  refused quarantine_refused 'pack'
  head -c 40 good >"$target"
  refused quarantine_refused 'pack'
  { cat good && echo more; } >"$target"
  refused quarantine_refused 'bytes after its end'
  { head -c $((size - 1)) good && printf '\x00'; } >"$target"
  [ "$(tail -c 1 good | od -An -tx1)" = " 00" ] || refused quarantine_refused 'pack'
  { head -c 60 good && printf '\xff\xff\xff\xff' && tail -c +65 good; } >"$target"
  refused quarantine_refused 'pack'
  cp good "$target"
  run -0 take
  [[ $output == *'"ok":true'* ]]
}

@test "an alternate of the repository that is not an object directory gives the agent nothing" {
  mkdir keys
  echo "$PWD/keys" >r/.git/objects/info/alternates
  rm -rf q
  ask quarantine_make ",\"worktree\":\"$PWD/w\",\"path\":\"$PWD/q\",\"name\":\"bob\",\"email\":\"b@x\"" >made
  grep -q '"status":77,"code":"quarantine_refused"' made
  [ ! -e q ]
}

@test "a quarantine is removed, and nothing else" {
  mkdir other
  ln -s "$PWD/q" link
  ln -s "$PWD/r" q/outside
  for path in other link missing; do
    run -0 ask quarantine_drop ",\"path\":\"$PWD/$path\""
    [[ $output == *'"code":"quarantine_unknown"'* ]]
  done
  [ -d other ]
  run -0 ask quarantine_drop ",\"path\":\"$PWD/q\""
  [[ $output == *'"ok":true'* ]]
  [ ! -e q ]
  git -C r fsck --strict
}
