# Completions in the three shells, for the sample tool: they ask the tool, so what holds for it
# holds for every tool.
# static
load ../lib

setup() {
  export PATH="$AMP_BUILD/tests/fixture:$PATH"
  sh "$AMP_TOP/scripts/completions.sh" install "$BATS_TEST_TMPDIR/share" "$BATS_TEST_TMPDIR/share/zsh/site-functions" cli-sample
  mkdir "$BATS_TEST_TMPDIR/cwd"
  cd "$BATS_TEST_TMPDIR/cwd"
  mkdir some-dir
  touch some-file
}

# The words that bash offers for the last of the arguments.
in_bash() {
  # shellcheck disable=SC2016
  bash --norc -c '
    . "$0/bash-completion/completions/cli-sample"
    complete -p cli-sample >/dev/null || exit 1
    COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)) COMP_LINE="$*" COMP_POINT=${#COMP_LINE}
    _amp_tools "$1" "${!#}" "${COMP_WORDS[COMP_CWORD-1]}"
    printf "%s\n" "${COMPREPLY[@]}"' "$BATS_TEST_TMPDIR/share" "$@"
}

# The same in fish; the argument is the command line.
in_fish() {
  fish --no-config -c "source $BATS_TEST_TMPDIR/share/fish/vendor_completions.d/cli-sample.fish
    complete -C '$1'" | cut -f 1
}

# The same in zsh, by a terminal: the completion list as it is printed.
in_zsh() {
  cat >"$BATS_TEST_TMPDIR/rc" <<Z
fpath=($BATS_TEST_TMPDIR/share/zsh/site-functions \$fpath)
autoload -Uz compinit; compinit -u -d $BATS_TEST_TMPDIR/zcompdump
Z
  zsh -f "$AMP_TOP/tests/fixture/zsh-complete.zsh" "$BATS_TEST_TMPDIR/rc" "$1"
}

has() {
  local w
  for w in "$@"; do
    grep -qxF -e "$w" <<<"$output" || {
      echo "missing: $w in: $output"
      return 1
    }
  done
}
lacks() {
  ! grep -qxF -e "$1" <<<"$output" || {
    echo "unwanted: $1"
    return 1
  }
}

@test "bash: options, verbs, choices, files, directories" {
  run -0 in_bash cli-sample --
  has --string --state --help
  run -0 in_bash cli-sample --str
  [ "$output" = --string ]
  run -0 in_bash cli-sample first --o
  has --only
  lacks --string
  run -0 in_bash cli-sample ''
  has first two some-file
  run -0 in_bash cli-sample two ''
  has words
  run -0 in_bash cli-sample --choice ''
  [ "$output" = $'one\ntwo' ]
  run -0 in_bash cli-sample -c tw
  [ "$output" = two ]
  run -0 in_bash cli-sample --choice = tw
  [ "$output" = two ]
  run -0 in_bash cli-sample --state some
  [ "$output" = some-dir ]
  run -0 in_bash cli-sample --path some
  has some-dir some-file
  run -0 in_bash cli-sample --number ''
  [ -z "$output" ]
  run -0 in_bash cli-sample --exec tru
  has true
  run -0 in_bash cli-sample --exec cmd --str
  lacks --string
}

@test "fish: options, verbs, choices, files, directories" {
  need fish
  run -0 in_fish 'cli-sample --'
  has --string --state --help
  run -0 in_fish 'cli-sample first --o'
  has --only
  lacks --string
  run -0 in_fish 'cli-sample '
  has first two some-file
  run -0 in_fish 'cli-sample two '
  has words
  run -0 in_fish 'cli-sample --choice '
  [ "$output" = $'one\ntwo' ]
  run -0 in_fish 'cli-sample --choice=tw'
  [ "$output" = --choice=two ]
  run -0 in_fish 'cli-sample --state some'
  has some-dir/
  lacks some-file
  run -0 in_fish 'cli-sample --path some'
  has some-file
}

@test "zsh: options, verbs, choices, files, directories" {
  need zsh
  run -0 in_zsh 'cli-sample --'
  has --string --state --help
  run -0 in_zsh 'cli-sample first --o'
  has --only
  lacks --string
  run -0 in_zsh 'cli-sample '
  has first two some-file
  run -0 in_zsh 'cli-sample two '
  has words
  run -0 in_zsh 'cli-sample --choice '
  has one two
  run -0 in_zsh 'cli-sample --state some'
  has some-dir
  lacks some-file
  run -0 in_zsh 'cli-sample --path some'
  has some-file
}

@test "verbs are offered by group" {
  # In the order of the table, not of the alphabet.
  [ "$(in_bash cli-sample '' | grep -vx some-.* | paste -sd' ')" = "first two grumble spout die" ]
  grep -q '^complete .* -k ' "$AMP_TOP/completions/amp-tools.fish"
  if command -v fish >/dev/null; then
    [ "$(in_fish 'cli-sample ' | grep -v some- | paste -sd' ')" = "first two grumble spout die" ]
  fi
  need zsh
  export ZSH_GROUPS=1
  run -0 in_zsh 'cli-sample '
  has verbs-simple-verbs:first verbs-others:two verbs-others:die
  lacks verbs-others:first
}

@test "uninstalling leaves nothing" {
  sh "$AMP_TOP/scripts/completions.sh" uninstall "$BATS_TEST_TMPDIR/share" "$BATS_TEST_TMPDIR/share/zsh/site-functions" cli-sample
  [ -z "$(find "$BATS_TEST_TMPDIR/share" -type f)" ]
}

@test "every tool's options and verbs are offered" {
  for t in "$AMP_TOP"/cmd/*/main.c; do
    t=$(basename "$(dirname "$t")")
    sh "$AMP_TOP/scripts/completions.sh" install "$BATS_TEST_TMPDIR/share" "$BATS_TEST_TMPDIR/share/zsh/site-functions" "$t"
    # shellcheck disable=SC2016
    offered() {
      bash --norc -c '
        . "$0/bash-completion/completions/$1"
        COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
        _amp_tools "$1" "${!#}" "${COMP_WORDS[COMP_CWORD-1]}"
        printf "%s\n" "${COMPREPLY[@]}"' "$BATS_TEST_TMPDIR/share" "$@" | sort -u
    }
    diff <("$t" --options | awk -F '\t' '$1 == "option" { print "--" $3 }' | sort -u) <(offered "$t" --)
    while read -r verb; do
      # shellcheck disable=SC2086
      diff <("$t" $verb --options | awk -F '\t' '$1 == "option" { print "--" $3 }' | sort -u) \
        <(offered "$t" $verb --)
      offered "$t" '' | grep -qx "${verb%% *}"
    done < <("$t" --options | awk -F '\t' '$1 == "verb" { print $2 }')
  done
}

@test "a value with control characters is not offered, and spaces are quoted" {
  run -0 cli-sample --values sample
  [ "$output" = $'two words\tits doc\\x1b[2J' ]
  run -0 in_bash cli-sample --string ''
  [ "$output" = 'two\ words' ]
}

@test "values of a state directory are offered" {
  load ../messages
  export AMP_STATE=$PWD/state
  message task_dispatch | amp-route -r '* => dead' >/dev/null 2>&1
  run -0 amp-ack dead show --values letter
  [ "$output" = $'task_dispatch-T-2026-044-1772116327001\tkept_back' ]
  run -0 amp-ack --values letter -- other
  [ -z "$output" ]
  run -64 --separate-stderr amp-ack --values nothing
  [[ $stderr == *"there are no values of the kind nothing"* ]]
  sh "$AMP_TOP/scripts/completions.sh" install "$BATS_TEST_TMPDIR/share" "$BATS_TEST_TMPDIR/share/zsh/site-functions" amp-ack amp-validate
  local letter=task_dispatch-T-2026-044-1772116327001
  in_bash() {
    # shellcheck disable=SC2016
    bash --norc -c '
      . "$0/bash-completion/completions/$1"
      COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
      _amp_tools "$1" "${!#}" "${COMP_WORDS[COMP_CWORD-1]}"
      printf "%s\n" "${COMPREPLY[@]}"' "$BATS_TEST_TMPDIR/share" "$@"
  }
  run -0 in_bash amp-ack dead show ''
  [ "$output" = "$letter" ]
  run -0 in_bash amp-ack dead list --code unknown_field
  [ "$output" = unknown_field ]
  run -0 in_bash amp-validate --explain no_rou
  [ "$output" = no_route ]
  AMP_STATE='' run -0 in_bash amp-ack dead show --state "$PWD/state" task
  [ "$output" = "$letter" ]
  run -0 fish --no-config -c "source $BATS_TEST_TMPDIR/share/fish/vendor_completions.d/amp-ack.fish
    complete -C 'amp-ack dead show '
    complete -C 'amp-ack dead list --code=no_rou'"
  [ "$output" = "$letter"$'\tkept_back\n--code=no_route\t'"$(amp-ack --values code -- no_route | cut -f2)" ]
  run -0 in_zsh 'amp-ack dead list --code no_rou'
  [[ $output == *no_route* ]]
  run -0 in_zsh 'amp-ack dead show '
  [[ $output == *"$letter"* ]]
}
