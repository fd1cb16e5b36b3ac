# A FIFO where a regular file is expected never makes a tool or a helper wait: it is refused, or
# counts as absent. Whoever can write into a repository or a state directory could put one there.

load ../lib
load ../messages

WORKER=$AMP_BUILD/libexec/amp/git-worker

setup() {
  cd "$BATS_TEST_TMPDIR" || return 1
}

# A linked worktree w of the repository r, on the branch feature, marked for the agent bob.
make_worktree() {
  repo r
  git -C r branch feature
  echo "{\"q\":1,\"op\":\"worktree_add\",\"repo\":\"$PWD/r\",\"path\":\"$PWD/w\",\"branch\":\"feature\",\"agent\":\"bob\"}" |
    "$WORKER" >added
  echo work >w/file
}

# ask: four requests to one worker, which has to answer all of them.
ask() {
  local op n=0
  for op in '"commit","repo":"R","worktree":"W","name":"n","email":"e@x","message":"m","agent":"bob"' \
    '"worktrees","repo":"R"' '"refs","repo":"R"' '"diff","repo":"R","worktree":"W","from":"main","to":null'; do
    op=${op//\"W\"/\"$PWD/w\"}
    printf '{"q":%d,"op":%s}\n' $((++n)) "${op//\"R\"/\"$PWD/r\"}"
  done | timeout -s KILL 60 "$WORKER"
}

@test "git-worker answers whatever a FIFO stands for" {
  local file
  make_worktree
  mkfifo w/.gitignore w/.gitattributes w/pipe
  ask >answers
  [ "$(grep -c '"ok":true' answers)" -eq 4 ]
  [ "$(git -C r ls-tree --name-only feature)" = file ]
  rm w/.gitignore w/.gitattributes
  for file in r/.git/config r/.git/HEAD r/.git/packed-refs r/.git/index r/.git/shallow w/.git \
    r/.git/refs/heads/feature r/.git/info/exclude r/.git/amp/guard r/.git/objects/info/alternates \
    r/.git/worktrees/w/{amp-agent,HEAD,index,gitdir,commondir}; do
    echo "$file"
    mkdir -p "${file%/*}"
    rm -rf kept
    [ ! -e "$file" ] || mv "$file" kept
    mkfifo "$file"
    ask >answers
    has_lines answers 4
    rm "$file"
    [ ! -e kept ] || mv kept "$file"
  done
}

@test "git-worker names the file that is not a regular one" {
  make_worktree
  rm r/.git/config
  mkfifo r/.git/config
  ask >answers
  grep -q "^{\"q\":2,\"ok\":false,\"status\":65,\"code\":\"not_a_file\",.*/r/.git/config is not a regular file" answers
}

@test "a link to a FIFO or a device is refused like a FIFO" {
  make_worktree
  mkfifo fifo
  ln -sf "$PWD/fifo" w/.gitignore
  ln -sf /dev/zero r/.git/info/exclude
  ln -sf /dev/zero r/.git/packed-refs
  ask >answers
  has_lines answers 4
  grep -q '^{"q":3,"ok":false,"status":65,"code":"not_a_file",.*packed-refs' answers
}

@test "the guard answers: it refuses an agent, and a FIFO as its marker is an agent's" {
  local zero file head who
  ln -s "$AMP_BUILD/libexec/amp/branch-guard" reference-transaction
  zero=$(printf '0%.0s' {1..40})
  make_worktree
  head=$(git -C r rev-parse main)
  for file in HEAD packed-refs refs/heads/main amp/override amp/guard.log amp-agent; do
    mkdir -p r/.git/amp
    rm -rf kept
    [ ! -e "r/.git/$file" ] || mv "r/.git/$file" kept
    mkfifo "r/.git/$file"
    echo "$file"
    who=AMP_AGENT=bob
    [ "$file" != amp-agent ] || who=-uAMP_AGENT
    run -1 --separate-stderr timeout -s KILL 60 env "$who" GIT_DIR=r/.git \
      ./reference-transaction prepared <<<"$zero ${head//[0-9]/a} refs/heads/main"
    [[ $stderr == *main* ]]
    rm "r/.git/$file"
    [ ! -e kept ] || mv kept "r/.git/$file"
  done
}

@test "no file of a state directory makes a tool wait" {
  local file tool
  message task_dispatch >in
  echo bad >>in
  repo r
  run -1 --separate-stderr amp-ack track --state first <in
  for file in amp.json error.ndjson index.db log/000001.ndjson log/main.lock log/next.lock \
    log/watermark log/FAILED run tasks; do
    for tool in 'amp-ack track' 'amp-ack status' 'amp-ack doctor' 'amp-ack repair' 'amp-validate' \
      'amp-route -r type=*=>stdout' 'amp-route inbox bob' 'agent-registry' 'hitl-prompt' \
      'task-dispatch coordinate' 'worktree-bind -C r'; do
      rm -rf st
      cp -a first st
      rm -rf "st/$file"
      mkfifo "st/$file"
      # shellcheck disable=SC2086
      timeout -s KILL 60 $tool --state st <in >out 2>err || [ $? -ne 137 ] || {
        echo "$tool waits for $file"
        return 1
      }
    done
  done
}

@test "an amp.json that is a FIFO is refused, one that was named may be a pipe" {
  mkdir -p conf/amp
  mkfifo conf/amp/amp.json
  XDG_CONFIG_HOME=$PWD/conf run -78 --separate-stderr timeout -s KILL 60 amp-route -r 'type=* => stdout' </dev/null
  [[ $stderr == *"conf/amp/amp.json is not a regular file"* ]]
  run -0 --separate-stderr timeout -s KILL 60 amp-route -c <(echo '{}') -r 'type=* => stdout' </dev/null
}

@test "the port file: refuses a FIFO, which fifo: is for" {
  mkfifo fifo
  message task_dispatch >in
  run -73 --separate-stderr timeout -s KILL 60 amp-route -r "type=* => file:$PWD/fifo" <in
  [[ $stderr == *"fifo is a FIFO (use fifo:$PWD/fifo)"* ]]
}
