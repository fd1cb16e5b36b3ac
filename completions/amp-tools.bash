# bash completion for the amp tools. Every tool prints its own option table (TOOL [VERB]
# --options), so nothing here knows an option. Installed once under each tool's name; sourced from
# the checkout, follow it with: complete -F _amp_tools TOOL...

_amp_tools_add() {
  local word
  while IFS= read -r word; do
    COMPREPLY+=("$word")
  done
}

# _amp_tools_values KINDS: the values that the tool knows, quoted for the command line.
_amp_tools_values() {
  local word state=() i
  for ((i = 1; i < COMP_CWORD; i++)); do
    case ${COMP_WORDS[i]} in
    -s | --state) [[ ${COMP_WORDS[i + 1]} == = ]] && state=(--state "${COMP_WORDS[i + 2]}") || state=(--state "${COMP_WORDS[i + 1]}") ;;
    esac
  done
  while IFS=$'\t' read -r word _; do
    printf -v word %q "$word"
    COMPREPLY+=("$word")
  done < <("$tool" "${verb[@]}" "${state[@]}" --values "$1" -- "$cur" 2>/dev/null)
}

_amp_tools() {
  local tool=$1 cur=$2 prev=${COMP_WORDS[COMP_CWORD - 1]}
  local -a before=("${COMP_WORDS[@]:1:COMP_CWORD-1}") verb=()
  local table row kind arg choices name values operands=-
  COMPREPLY=()

  # "--choice=tw" comes as three words.
  if [[ $cur == = ]]; then
    cur=
  elif [[ $prev == = && $COMP_CWORD -ge 2 ]]; then
    prev=${COMP_WORDS[COMP_CWORD - 2]}
  elif [[ $cur == --*=* ]]; then
    prev=${cur%%=*} cur=${cur#*=}
  fi

  table=$("$tool" --options 2>/dev/null) || return 0
  # The verb, one word or two, is the first that stands before the cursor.
  local words=" ${before[*]} " best=
  while IFS=$'\t' read -r kind name _; do
    [[ $kind == verb && $words == *" $name "* && ${#name} -gt ${#best} ]] && best=$name
  done <<<"$table"
  if [[ $best ]]; then
    read -ra verb <<<"$best"
    table=$("$tool" "${verb[@]}" --options 2>/dev/null) || return 0
  fi

  # The argument of the option before the cursor; everything after a command belongs to it.
  local letter rest=
  while IFS=$'\t' read -r row letter name kind arg choices _ _ _ values; do
    [[ $row == operands ]] && operands=$letter
    [[ $row == option ]] || continue
    if [[ $kind == rest && $words == *" --$name "* ]]; then
      rest=1
      [[ $prev == "--$name" ]] && {
        _amp_tools_add < <(compgen -c -- "$cur")
        return 0
      }
    fi
    [[ $prev == "--$name" || ($letter != - && $prev == "-$letter") ]] || continue
    case $kind in
    flag | *\?) [[ $prev == --* && ${COMP_WORDS[COMP_CWORD - 1]} == = ]] || continue ;;
    esac
    [[ ${values:--} == - ]] || { _amp_tools_values "$values" && return 0; }
    case ${kind%\?} in
    choice) _amp_tools_add < <(compgen -W "${choices//,/ }" -- "$cur") ;;
    path | list) _amp_tools_add < <(compgen -f -- "$cur") && compopt -o filenames 2>/dev/null ;;
    dir) _amp_tools_add < <(compgen -d -- "$cur") && compopt -o filenames 2>/dev/null ;;
    esac
    return 0
  done <<<"$table"

  if [[ $cur == -* && ! $rest ]]; then
    local all=
    while IFS=$'\t' read -r row letter name _; do
      [[ $row == option ]] && all+=" --$name"
    done <<<"$table"
    _amp_tools_add < <(compgen -W "$all" -- "$cur")
    return 0
  fi
  if [[ ! $best ]]; then
    # Of a verb of two words the first, then the second; in the order of the groups.
    local verbs= first
    while IFS=$'\t' read -r row name _; do
      [[ $row == verb ]] || continue
      first=${name%% *}
      if [[ $name == *' '* && $prev == "$first" ]]; then
        verbs+=" ${name#* }"
      elif [[ $verbs != *" $first"* ]]; then
        verbs+=" $first"
      fi
    done <<<"$table"
    _amp_tools_add < <(compgen -W "$verbs" -- "$cur")
    compopt -o nosort 2>/dev/null
  fi
  if [[ $operands != - ]]; then
    _amp_tools_values "$operands"
    return 0
  fi
  _amp_tools_add < <(compgen -f -- "$cur")
  compopt -o filenames 2>/dev/null
  return 0
}

case ${BASH_SOURCE[0]##*/} in
amp-tools.bash) ;;
*) complete -F _amp_tools "${BASH_SOURCE[0]##*/}" ;;
esac
