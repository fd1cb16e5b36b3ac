# What an agent can plant in a repository that it can write: configuration, hooks, attributes, links
# and devices. git-worker runs nothing of it, follows no link, and reads no included file. No other
# program of the toolkit uses a repository.

load ../lib

WORKER=$AMP_BUILD/libexec/amp/git-worker

setup() {
  cd "$BATS_TEST_TMPDIR" || return 1
  repo r
  echo one >r/file
  git -C r add file
  git -C r commit -qm one
  base=$(git -C r rev-parse HEAD)
  git -C r branch feature
  request 'worktree_add' ',"path":"W","branch":"feature","agent":"bob"' >/dev/null
  echo work >w/file
}

# request OP MEMBERS: one reply.
request() {
  local line='{"q":1,"op":"'$1'","repo":"R"'${2-}'}'
  line=${line//\"W\"/\"$PWD/w\"}
  line=${line//\"Q\"/\"$PWD/q\"}
  line=${line//\"P\"/\"$PWD/patch\"}
  printf '%s\n' "${line//\"R\"/\"$PWD/r\"}" | timeout -s KILL 60 "$WORKER"
}

# each_op: every operation of the worker; prints the replies.
each_op() {
  rm -rf q
  request info
  request resolve ',"rev":"feature"'
  request look ',"rev":"feature"'
  request refs
  request refs ',"protected":true'
  request reflog ',"ref":"refs/heads/feature"'
  request worktrees
  request diff ',"worktree":"W","from":"main","patch":"P"'
  request quarantine_make ',"worktree":"W","path":"Q","name":"bob","email":"b@x"'
  request quarantine_take ',"worktree":"W","path":"Q","branch":"feature","start":"'"$base"'","name":"bob","email":"b@x","keep":"refs/amp/kept/bob/1"'
  request keep ',"worktree":"W","ref":"refs/amp/kept/bob/2","name":"bob","email":"b@x"'
  request commit ',"worktree":"W","name":"bob","email":"b@x","message":"m","agent":"bob"'
  request rollback ',"branch":"feature","commit":"'"$base"'","name":"bob","email":"b@x","keep":"refs/amp/kept/bob/3"'
  request worktree_remove ',"path":"W","force":true'
}

@test "no hook, monitor, filter, conversion, diff, helper or signing program of the configuration runs" {
  printf '#!/bin/sh\ntouch "%s/ran"\ncat\n' "$PWD" >spy
  chmod +x spy
  # git itself runs them: the control.
  git -C r config core.fsmonitor "$PWD/spy"
  git -C r status >/dev/null 2>&1 || :
  [ -e ran ]
  rm ran
  for key in core.fsmonitor core.pager core.editor core.sshCommand core.gitProxy core.askPass diff.external diff.x.command \
    diff.x.textconv filter.x.clean filter.x.smudge filter.x.process merge.x.driver credential.helper gpg.program \
    uploadpack.packObjectsHook trailer.x.command alias.commit remote.origin.uploadpack remote.origin.receivepack; do
    git -C r config "$key" "$PWD/spy"
  done
  git -C r config commit.gpgSign true
  git -C r config core.hooksPath "$PWD/hooks"
  mkdir hooks
  for hook in pre-commit post-commit commit-msg prepare-commit-msg post-checkout post-index-change reference-transaction \
    post-rewrite pre-auto-gc fsmonitor-watchman update post-update; do
    cp spy "hooks/$hook"
    cp spy "r/.git/hooks/$hook"
  done
  echo '* diff=x merge=x' >w/.gitattributes
  each_op >answers
  [ "$(grep -c '"ok":true' answers)" -eq 13 ] || { cat answers && return 1; }
  [ ! -e ran ]
}

@test "a file that needs a filter is refused, not passed through it" {
  printf '#!/bin/sh\ntouch "%s/ran"\ncat\n' "$PWD" >spy
  chmod +x spy
  git -C r config filter.x.clean "$PWD/spy"
  echo '* filter=x' >w/.gitattributes
  run -0 request commit ',"worktree":"W","name":"bob","email":"b@x","message":"m","agent":"bob"'
  [[ $output == *'"status":1,"code":"filter_unsupported"'* ]]
  [ ! -e ran ]
}

@test "the configuration of a repository includes no other file; that of the user does" {
  printf '[x]\n\tkey = included\n' >more
  mkfifo fifo
  for section in '[include]\n\tpath = %s' '[InClude]path=%s' '[core] [include] path = %s\n\tother = 1' \
    '[includeIf "gitdir:/**"]\n\tpath = %s' ' [ include ]\n path = %s' '[core]\n\tx = "[include]\\n"\n[include]\n\tpath = %s'; do
    for file in "$PWD/more" "$PWD/fifo" /dev/zero ../../more; do
      git init -q -b main r2
      # shellcheck disable=SC2059
      printf "$section\n[y]\n\tkey = mine\n" "$file" >>r2/.git/config
      for key in x.key:false y.key:true core.bare:true; do
        printf '{"q":1,"op":"config","repo":"%s/r2","key":"%s"}\n' "$PWD" "${key%:*}" | timeout -s KILL 60 "$WORKER" >answer
        grep -q "\"ok\":true,\"found\":${key#*:}" answer || { echo "$section $file $key" && cat answer && return 1; }
      done
      rm -rf r2
    done
  done
  mkdir home
  ln -s "$PWD/dotfile" home/.gitconfig
  printf '[include]\n\tpath = %s/more\n' "$PWD" >dotfile
  HOME=$PWD/home run -0 request config ',"key":"x.key"'
  [[ $output == *'"found":true,"value":"included"'* ]]
}

@test "a link or device in the place of a repository's file is not followed" {
  local file target
  echo secret >secret
  mknod null c 1 3 2>/dev/null || ln -s /dev/null null
  for file in r/.git/config r/.git/HEAD r/.git/packed-refs r/.git/info/exclude r/.git/worktrees/w/index r/.git/worktrees/w/HEAD \
    r/.git/worktrees/w/gitdir r/.git/worktrees/w/commondir r/.git/refs/heads/feature r/.git/amp/guard w/.git w/.gitignore w/.gitattributes; do
    for target in "$PWD/secret" /dev/zero "$PWD/null"; do
      mkdir -p "${file%/*}"
      rm -rf kept copy
      [ ! -e "$file" ] || mv "$file" kept
      [ ! -e kept ] || cp kept copy
      # Also a link to what belongs there.
      [ "$target" != "$PWD/null" ] || [ ! -e copy ] || target=$PWD/copy
      ln -s "$target" "$file"
      echo "$file -> $target"
      { request worktrees && request refs && request diff ',"worktree":"W","from":"main"' &&
        request commit ',"worktree":"W","name":"n","email":"e@x","message":"m","agent":"bob"'; } >answers
      has_lines answers 4
      run -1 grep -q secret answers
      [ -L "$file" ] || [[ $file == *index ]]
      [ "$(cat secret)" = secret ]
      rm -f "$file"
      [ ! -e kept ] || mv kept "$file"
    done
  done
}

@test "a .git that leads elsewhere is not opened" {
  git init -q evil
  git -C evil config core.fsmonitor "touch $PWD/ran"
  mv w/.git kept
  for plant in "echo 'gitdir: $PWD/evil/.git' >w/.git" "cp -R evil/.git w/.git" "ln -s '$PWD/evil/.git' w/.git" "mkfifo w/.git"; do
    eval "$plant"
    run -0 request commit ',"worktree":"W","name":"n","email":"e@x","message":"m","agent":"bob"'
    [[ $output == *'"ok":false'*'"code":"worktree_unknown"'* ]] || { echo "$plant: $output" && return 1; }
    rm -rf w/.git
  done
  mv kept w/.git
  run -0 request commit ',"worktree":"W","name":"n","email":"e@x","message":"m","agent":"bob"'
  [[ $output == *'"ok":true'* ]]
  [ ! -e ran ]
}
