# shellcheck shell=bash disable=SC2034
# Shared by the adapters that make a coding agent's command line keep the agent contract: the
# prompt, JSON out of prose, one repair round, limits, the session kept for rework. Sourced by bash.
#
# An adapter defines
#   call PROMPT_FILE SESSION   runs the command line; leaves the reply's text in $reply, the session
#                              in $session, usage as JSON in $usage; its status is the command's
# and then calls adapter_main.

reply='' session='' usage='{}' model='' extra_prompt='' resume=true
command_args=()

usage_text() {
  cat <<EOU
usage: ${0##*/} [--model MODEL] [--prompt FILE] [--no-resume] [--command PATH] [-- OPTION...]

Runs $cli as the agent of task-dispatch run or review. Not meant to be run by hand: it reads the
variables of the agent contract. What follows -- is given to $cli.
EOU
}

adapter_options() {
  while [ $# -gt 0 ]; do
    case $1 in
    --model) model=${2:?--model needs a name} && shift 2 ;;
    --prompt) extra_prompt=${2:?--prompt needs a file} && shift 2 ;;
    --command) cli=${2:?--command needs a path} && shift 2 ;;
    --no-resume) resume=false && shift ;;
    --help) usage_text && exit 0 ;;
    --) shift && command_args=("$@") && break ;;
    *) usage_text >&2 && exit 64 ;;
    esac
  done
  : "${AMP_ROLE:?${0##*/} is started by task-dispatch run or review}"
  : "${AMP_MESSAGE:?}" "${AMP_CRITERIA:?}" "${AMP_RESULT:?}"
  command -v jq >/dev/null || { echo "${0##*/}: jq is not installed" >&2 && exit 127; }
  command -v "$cli" >/dev/null || { echo "${0##*/}: $cli is not installed" >&2 && exit 127; }
  work=$(mktemp -d "${TMPDIR:-/tmp}/${0##*/}.XXXXXX") || exit 126
  trap 'rm -rf "$work"' EXIT
  # The session of an earlier attempt at this subtask, for rework.
  kept=${AMP_KEPT:-$work/kept}
}

executor_prompt() {
  jq -r --slurpfile criteria "$AMP_CRITERIA" --arg sub "$AMP_SUBTASK_ID" --arg attempt "$AMP_ATTEMPT" '
    .payload as $p | ($p.subtasks // [] | map(select(.subtask_id == $sub))[0].description // "") as $part |
    "You are the executor of a task, working alone and without anybody to ask.",
    "Work only in the current directory, a git worktree on the branch \($p.branch). Stay on this",
    "branch, do not push, do not touch other branches. You need not commit.",
    "", "Task: \($p.description)",
    (if $part != "" then "Your part (\($sub)): \($part)" else empty end),
    (if ($attempt | tonumber) > 1 then "This is attempt \($attempt): earlier work was not accepted." else empty end),
    "", "It is accepted when:", ($criteria[0] | to_entries[] | "\(.key + 1). \(.value)"),
    (if ($p.forbidden_actions // []) != [] then "", "Forbidden:", ($p.forbidden_actions[] | "- \(.)") else empty end),
    (if ($p.tech_constraints // {}) != {} then "", "Constraints and notes: \($p.tech_constraints | tojson)" else empty end),
    "", "When you are done, end your reply with one JSON object and nothing after it:",
    "{\"completion_status\": \"complete\" | \"partial\" | \"failed\",",
    " \"self_assessment\": {\"criteria_met\": [true | false | null, one for each criterion in order],",
    "                     \"notes\": [\"one for each criterion\"]},",
    " \"blockers\": [\"why it is not complete; empty when it is\"],",
    " \"commit_message\": \"what you changed and why\"}",
    "Say null, never a guess, for a criterion that you did not verify yourself."' "$AMP_MESSAGE"
}

reviewer_prompt() {
  jq -r --slurpfile criteria "$AMP_CRITERIA" --slurpfile context "$AMP_CONTEXT" --arg diff "$AMP_DIFF" '
    .payload as $p | $context[0] as $c |
    "You are the reviewer of a task, working alone. You did not write this change; be thorough and fair.",
    "The current directory is a git worktree at the commit under review. Build it and run the tests.",
    "The diff under review is in the file \($diff).",
    "", "Task: \($c.dispatch.payload.description)",
    "Rejected so far: \($p.reject_count)", (if $p.coordinator_notes then "Notes: \($p.coordinator_notes)" else empty end),
    "", "Judge each criterion (the first ones the executor could not verify):",
    ($criteria[0] | to_entries[] | "\(.key + 1). \(.value)"),
    "", "The executor says: \($c.result.payload.self_assessment | tojson)",
    "", "End your reply with one JSON object and nothing after it:",
    "{\"decision\": \"approved\" | \"approved_with_fix\" | \"rejected\",",
    " \"criteria_results\": [{\"criterion\": \"its text\", \"passed\": true | false | null, \"evidence\": \"what you saw\"}],",
    " \"issues\": [{\"severity\": \"critical\" | \"major\" | \"minor\", \"file\": \"\", \"line\": 0, \"description\": \"\", \"suggested_fix\": \"\"}],",
    " \"direct_fixes\": [{\"file\": \"\", \"change_type\": \"typo\" | \"lint\" | \"whitespace\" | \"import_order\", \"diff_lines\": 0}],",
    " \"confidence\": 0.0 to 1.0}",
    "rejected needs issues. approved_with_fix is only for trifles that you repaired yourself in the",
    "worktree, uncommitted, fewer than five changed lines a file, each listed in direct_fixes."' "$AMP_MESSAGE"
}

# Texts that may be the JSON of a reply, with a record separator after each: all of it, then ever
# later objects that begin a line.
candidates() {
  local text=$1 i
  printf '%s\036' "$text"
  [[ $text == *"{"*"}"* ]] || return 0
  text="{${text#*"{"}"
  text="${text%"}"*}}"
  for ((i = 0; i < 64; i++)); do
    printf '%s\036' "$text"
    [[ $text == *$'\n{'* ]] || break
    text="{${text#*$'\n{'}"
  done
}

# The answer in a reply: the last JSON object that has what the role must say, and of it only the
# members that the contract knows. Prints it, or nothing.
extract() {
  candidates "$1" | jq -cRs --arg role "$AMP_ROLE" '
    def parsed: try fromjson catch empty | objects;
    def fenced: match("```(?:json)?[ \\t]*\\n([\\s\\S]*?)```"; "g").captures[0].string;
    def texts: split("\u001e") | (.[0] | fenced), .[];
    def keep($keys): with_entries(select(.key as $k | $keys | index($k)));
    [texts | parsed] |
    if $role == "reviewer" then
      map(select((.decision | type) == "string" and (.confidence | type) == "number")) | last // empty
      | keep(["decision", "criteria_results", "issues", "direct_fixes", "architecture_notes", "confidence"])
      | if .decision == "rejected" then . else del(.issues | select(. == [])) end
      | if .decision == "approved_with_fix" then . else del(.direct_fixes) end
      | select(.decision != "rejected" or (.issues // [] | length) > 0)
      | select(.decision != "approved_with_fix" or (.direct_fixes // [] | length) > 0)
    else
      map(select((.completion_status | type) == "string" or (.self_assessment | type) == "object")) | last // empty
      | keep(["completion_status", "self_assessment", "blockers", "commit_message", "work_log"])
      | if .self_assessment then .self_assessment |= keep(["criteria_met", "notes"]) else . end
      | if .blockers then .blockers |= map(strings | select(. != "")) else . end
      | if .commit_message == "" then del(.commit_message) else . end
      | select((.completion_status | IN("partial", "failed") | not) or (.blockers // [] | length) > 0)
    end' 2>/dev/null
}

# A usage limit says when to come back; the attempt is repeated later and does not count.
limited() {
  local until now
  now=$(date +%s)
  if [[ $1 =~ limit\ reached\|([0-9]{9,11}) ]]; then
    until=$((BASH_REMATCH[1] - now))
    [ "$until" -gt 60 ] || until=60
    echo "$until"
  elif [[ $1 =~ resets_in_seconds\"?:\ *([0-9]+) ]]; then
    echo $((BASH_REMATCH[1] + 1))
  elif grep -qiE 'usage limit|rate.?limit|hit your .*limit|too many requests|overloaded' <<<"$1"; then
    echo 900
  else
    return 1
  fi
}

give_up() { # STATUS of the command line
  local wait
  if wait=$(limited "$reply $(tail -c 4000 "$work/stderr" 2>/dev/null)"); then
    echo "${0##*/}: a usage limit: again in $wait s" >&2
    printf '{"retry_after_sec":%d}\n' "$wait" >"$AMP_RESULT.new"
    mv "$AMP_RESULT.new" "$AMP_RESULT"
    exit 75
  fi
  tail -n 3 "$work/stderr" >&2 2>/dev/null
  [ -z "$reply" ] || printf '%.500s\n' "$reply" >&2
  echo "${0##*/}: $cli failed with status $1" >&2
  exit 126
}

adapter_main() {
  local old='' answer rc
  # "ADAPTER SESSION": another adapter may have worked under the same name.
  if $resume && [ -s "$kept" ]; then
    old=$(head -c 512 "$kept")
    if [ "${old%% *}" = "${0##*/}" ]; then old=${old#* }; else old=''; fi
  fi
  "${AMP_ROLE}_prompt" >"$work/prompt" || exit 126
  [ -z "$extra_prompt" ] || { echo && cat -- "$extra_prompt"; } >>"$work/prompt"
  rc=0
  call "$work/prompt" "$old" || rc=$?
  if [ $rc -ne 0 ] && [ -n "$old" ] && ! limited "$reply" >/dev/null; then
    rc=0 # the session may be gone: once more with a new one
    call "$work/prompt" '' || rc=$?
  fi
  [ $rc -eq 0 ] || give_up $rc
  [ -z "$session" ] || printf '%s %s' "${0##*/}" "$session" >"$kept"
  answer=$(extract "$reply")
  if [ -z "$answer" ]; then
    {
      echo "Your reply did not end with the JSON object that was asked for, or it was not valid."
      echo "Reply now with that one JSON object and nothing else. Do not change any file."
      [ -n "$session" ] || { echo && cat "$work/prompt" && echo && printf 'You said:\n%s\n' "$reply"; }
    } >"$work/repair"
    rc=0
    call "$work/repair" "$session" || rc=$?
    [ $rc -eq 0 ] || give_up $rc
    answer=$(extract "$reply")
  fi
  printf '%s\n' "$reply"
  if [ -z "$answer" ]; then
    # An executor's work counts without its word about it; a reviewer's word is all there is.
    echo "${0##*/}: no JSON in the reply, also after asking again" >&2
    [ "$AMP_ROLE" = executor ] && return 0
    return 1
  fi
  jq -c --argjson usage "$usage" --arg session "${session:0:256}" \
    '. + {usage: $usage} + (if $session == "" then {} else {session: $session} end)' \
    <<<"$answer" >"$AMP_RESULT.new" && mv "$AMP_RESULT.new" "$AMP_RESULT"
}
