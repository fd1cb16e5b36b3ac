# Attempts to get out of a confinement (tests/escape). Each world is made new, and each set of attempts is one
# process: without a confinement, where every attempt should work, and at the levels of worktree-bind-exec(1).
# walls

load ../lib

attempts=$AMP_BUILD/tests/escape/attempts

setup_file() {
  [ -x "$attempts" ] || {
    echo "$attempts is not built" >&2
    return 1
  }
  # A sandbox with a limit of memory has no room for the shadow of a sanitizer.
  if grep -q fsanitize "$AMP_BUILD/flags" || [ -e "$AMP_BUILD/valgrind" ]; then
    return
  fi
  cd "$BATS_FILE_TMPDIR"
  export ATTEMPTS=$attempts HOME=$BATS_FILE_TMPDIR
  "$AMP_TOP/tests/escape/in-world" "$PWD/control" control 3>&-
  "$AMP_TOP/tests/escape/in-world" "$PWD/full" full 3>&-
  if unshare -rmu true 2>/dev/null; then
    "$AMP_TOP/tests/escape/in-world" no-namespaces "$PWD/nested" control 3>&-
    "$AMP_TOP/tests/escape/in-world" no-namespaces "$PWD/landlock" best 3>&-
  else
    # Then the machine itself has no namespaces.
    ln -s control nested
    "$AMP_TOP/tests/escape/in-world" "$PWD/landlock" best 3>&-
  fi
}

setup() {
  native "the sandbox limits memory"
  cd "$BATS_FILE_TMPDIR"
}

# works NAME: the attempts that worked there.
works() {
  awk '$2 == "works" { print $1 }' "$1/judged" | sort
}

# claimed LEVEL: the attempts that the level claims to stop.
claimed() {
  "$attempts" list | awk -F '\t' -v level="$1" '("," $2 ",") ~ ("," level ",") { print $1 }' | sort
}

# need_level NAME: skips the test if this machine cannot enforce the level.
need_level() {
  [ -s "$1/status" ]
  [ "$(cat "$1/status")" -ne 77 ] || skip "not enforced here: $(cat "$1/err")"
  [ "$(cat "$1/status")" -eq 0 ] || {
    cat "$1/err" >&2
    return 1
  }
}

# The attempts that work in a control but do not show there that a level stops them are named, not passed.
say_skipped() {
  local n
  n=$(comm -23 <(claimed "$2") <(works "$1") | paste -sd' ')
  [ -z "$n" ] || echo "# not shown, because they fail here without a confinement: $n" >&3
}

@test "without a confinement the attempts work" {
  [ "$(cat control/status)" -eq 0 ]
  [ "$(works control | wc -l)" -ge 60 ]
  # Each attempt has a verdict in each world.
  "$attempts" list | cut -f1 | sort >all
  for w in control full nested landlock; do
    [ "$(cat $w/status)" -eq 77 ] || cut -d' ' -f1 $w/judged | sort | cmp - all
  done
  say_skipped control full
}

@test "the level full stops every attempt" {
  need_level full
  comm -12 <(works full) <(works control) >escaped
  [ ! -s escaped ] || {
    echo "works at the level full: $(paste -sd' ' escaped)" >&2
    return 1
  }
  [ "$(comm -12 <(claimed full) <(works control) | wc -l)" -ge 60 ]
  cmp <(claimed full) all
}

@test "the level landlock stops what it claims to stop, and nothing else is claimed" {
  need_level landlock
  grep -q 'not enforced: namespaces' landlock/err
  comm -12 <(works landlock) <(claimed landlock) >escaped
  [ ! -s escaped ] || {
    echo "works at the level landlock: $(paste -sd' ' escaped)" >&2
    return 1
  }
  [ "$(comm -12 <(claimed landlock) <(works nested) | wc -l)" -ge 60 ]
  # What is not claimed does work.
  comm -23 <(works nested) <(claimed landlock) >open
  comm -23 open <(works landlock) >stopped
  [ ! -s stopped ] || {
    echo "stopped at the level landlock, but the table does not say so: $(paste -sd' ' stopped)" >&2
    return 1
  }
  say_skipped nested landlock
}

@test "the manual says what the level landlock does not stop" {
  local name words
  "$attempts" list | awk -F '\t' '$2 == "full" { print $1 }' >unclaimed
  [ -s unclaimed ]
  man=$(mandoc -Tutf8 "$AMP_TOP/man/worktree-bind-exec.1" | col -b | tr -s '\n\t ' ' ' | sed 's/‐ //g')
  level=${man#*landlock Landlock and a seccomp filter}
  level=${level%%none No new privileges*}
  while read -r name; do
    case $name in
    change_mode) words="changing the mode" ;;
    change_times) words="times" ;;
    processes) words="The number of processes is not limited" ;;
    git_file) words="the .git file of a linked worktree can be replaced" ;;
    *) words="no words for $name" ;;
    esac
    [[ $level == *"$words"* ]] || {
      echo "worktree-bind-exec(1) does not say at landlock: $words" >&2
      return 1
    }
  done <unclaimed
}
