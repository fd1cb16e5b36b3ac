# shellcheck shell=bash disable=SC2034
# Shared by the adapters that make a coding agent's command line keep the agent contract: the
# prompt, the answer, one repair round, limits, the session kept for rework. Sourced by bash.
#
# An adapter defines
#   call PROMPT_FILE SESSION   runs the command line; leaves the reply's text in $reply, the session
#                              in $session, and what it used in $used: JSON with input_tokens,
#                              output_tokens, cost_usd and turns. Its status is the command's.
#                              What a session counts from its beginning is made a difference with
#                              `since`.
# and then calls adapter_main.

reply='' session='' used='' usage='{}' totals='{}' reset_at='' model='' extra_prompt='' resume=true
command_args=()

usage_text() {
  cat <<EOU
usage: ${0##*/} [--model MODEL] [--prompt FILE] [--no-resume] [--command PATH] [-- OPTION...]

Runs $cli as the agent of task-dispatch run or review. Not meant to be run by hand: it reads the
variables of the agent contract. What follows -- is given to $cli, and replaces the options that
this program would give.
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
  home_links=()
  trap 'rm -rf "$work" ${home_links[@]+"${home_links[@]}"}' EXIT
  # What is kept between the attempts at a subtask: this adapter's session, and what it had used.
  kept=${AMP_KEPT:-$work/kept}
  AMP_KEPT_DIR=${AMP_KEPT_DIR:-$work/kept.d}
}

# given NAME...: whether one of these options is among those for the command line.
given() {
  local name arg
  for name in "$@"; do
    for arg in ${command_args[@]+"${command_args[@]}"}; do
      case $arg in "$name" | "$name="*) return 0 ;; esac
    done
  done
  return 1
}

# home_make NAME SOURCE ENTRY...: sets $home to a directory of the command line's own among what is
# kept, where it finds its sessions again. The user's credentials and settings in SOURCE are links in
# it, as far as they can be read here. None of them stays behind.
home_make() {
  local source=$2 entry
  home=$AMP_KEPT_DIR/$1
  shift 2
  mkdir -p "$home" || exit 126
  for entry in "$@"; do
    home_links+=("${home:?}/$entry")
    rm -rf "${home:?}/$entry"
    if { : <"$source/$entry"; } 2>/dev/null; then ln -s "$source/$entry" "$home/$entry" || exit 126; fi
  done
}

# since TOTALS: sets $used to what these totals of the session add to the kept ones, and keeps them.
# A total that is less than before is of a command line that began to count again.
since() {
  used=$(jq -cn --argjson now "$1" --argjson was "$totals" \
    '$now | with_entries(($was[.key] // 0) as $t | .value -= if $t > .value then 0 else $t end)') || used=$1
  totals=$1
}

# What both prompts say about the answer; SKILL.md and the section in AGENTS.md say the same.
answer_prompt() {
  echo
  echo "When you are done, write your answer, one JSON object of this form, to the file"
  echo "$AMP_RESULT (the tool reply of the MCP server amp does that)."
  echo "If you cannot write this file, end your reply with the object and nothing after it."
}

executor_prompt() {
  jq -r --slurpfile criteria "$AMP_CRITERIA" --arg sub "$AMP_SUBTASK_ID" --arg attempt "$AMP_ATTEMPT" '
    def unsaid($all): select(. as $t | $all | contains($t) | not);
    .payload as $p | ($p.subtasks // [] | map(select(.subtask_id == $sub))[0].description // "") as $part |
    ($p.tech_constraints // {}) as $c | ($p.description // "") as $d |
    "You are the executor of a task, working alone and without anybody to ask.",
    "Work only in the current directory, a git worktree on the branch \($p.branch). Stay on this",
    "branch, do not push, do not touch other branches. You need not commit.",
    "", "Task: \($d)",
    (if $part != "" then "Your part (\($sub)): \($part)" else empty end),
    (if ($attempt | tonumber) > 1 then "", "This is attempt \($attempt): earlier work was not accepted." else empty end),
    ([$c.review.issues[]? | objects | select(.description | strings | unsaid($d))] | if . == [] then empty else
      "The review of it found this. Fix all of it:",
      (.[] | "- \(.severity // "major")\(if (.file // "") != "" then " in \(.file)\(if (.line // 0) > 0 then ", line \(.line)" else "" end)" else "" end): \(.description)\(
        if (.suggested_fix // "") != "" then " Suggested: \(.suggested_fix)" else "" end)") end),
    ([$c.blockers[]? | strings | unsaid($d)] | if . == [] then empty else
      "What was in the way of the last attempt:", (.[] | "- \(.)") end),
    ($c.note | strings | unsaid($d) | "Note: \(.)"),
    "", "It is accepted when:", ($criteria[0] | to_entries[] | "\(.key + 1). \(.value)"),
    (if ($p.forbidden_actions // []) != [] then "", "Forbidden:", ($p.forbidden_actions[] | "- \(.)") else empty end),
    ($c | del(.review, .blockers, .note, .base, .attempt) | if . != {} then "", "Constraints: \(tojson)" else empty end)
    ' "$AMP_MESSAGE" &&
  answer_prompt &&
  cat <<'EOP'
{"completion_status": "complete" | "partial" | "failed",
 "self_assessment": {"criteria_met": [true | false | null, one for each criterion in order],
                     "notes": ["one for each criterion"]},
 "blockers": ["why it is not complete; empty when it is"],
 "commit_message": "what you changed and why"}
Say null, never a guess, for a criterion that you did not verify yourself.
EOP
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
    "", "The executor says: \($c.result.payload.self_assessment | tojson)"' "$AMP_MESSAGE" &&
  answer_prompt &&
  cat <<'EOP'
{"decision": "approved" | "approved_with_fix" | "rejected",
 "criteria_results": [{"criterion": "its text", "passed": true | false | null, "evidence": "what you saw"}],
 "issues": [{"severity": "critical" | "major" | "minor", "file": "", "line": 0, "description": "", "suggested_fix": ""}],
 "direct_fixes": [{"file": "", "change_type": "typo" | "lint" | "whitespace" | "import_order", "diff_lines": 0}],
 "confidence": 0.0 to 1.0}
rejected needs issues. approved_with_fix is only for trifles that you repaired yourself in the
worktree, uncommitted, fewer than five changed lines a file, each listed in direct_fixes.
EOP
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

# The answer that the agent wrote itself, also with the tool reply of amp-mcp.
extract_file() {
  [ ! -f "$AMP_RESULT" ] || [ -L "$AMP_RESULT" ] || extract "$(head -c 1000000 "$AMP_RESULT" | tr -d '\0\036')"
}

# time_read TEXT: the seconds since the epoch of the first time of day in it, "5:51pm (UTC)",
# "Nov 28, 3pm" or "Nov 29th, 2026 8:59 AM"; without a date the next one.
time_read() {
  local zone=${TZ-} at now
  [[ $1 =~ (([A-Z][a-z]{2,8}\ [0-9]{1,2})(st|nd|rd|th)?,?\ (at\ )?([0-9]{4},?\ )?(at\ )?)?([0-9]{1,2}(:[0-9]{2})?)\ ?([AaPp][Mm])(\ \(([A-Za-z][A-Za-z_+/0-9-]*)\))? ]] || return 1
  at="${BASH_REMATCH[2]} ${BASH_REMATCH[5]%,*} ${BASH_REMATCH[7]}${BASH_REMATCH[9]}"
  zone=${BASH_REMATCH[11]:-$zone}
  at=$(TZ=$zone date -d "$at" +%s 2>/dev/null) || return 1
  now=$(date +%s)
  [ "$at" -gt "$now" ] || [ -n "${BASH_REMATCH[2]}" ] || at=$((at + 86400))
  [ "$at" -gt "$now" ] && echo "$at"
}

# limited TEXT: prints in how many seconds a usage limit or the like ends. 1: it is none.
limited() {
  local now at=$reset_at text=$1 n=0 word
  now=$(date +%s)
  if [ -z "$at" ]; then
    grep -qiE 'usage limit|rate.?limit|hit your .*limit|limit reached|too many requests|rejected \(429\)|overloaded|high demand|credit balance is too low|insufficient_quota|quota exceeded|exceeded your current quota' <<<"$text" || return 1
    if [[ $text =~ limit\ reached\|([0-9]{9,11}) ]]; then
      at=${BASH_REMATCH[1]}
    elif [[ $text =~ resets_in_seconds\"?:\ *([0-9]{1,9}) ]]; then
      at=$((now + BASH_REMATCH[1] + 1))
    elif [[ $text =~ try\ again\ in((\ [0-9]+\ (day|hour|minute|second)s?,?)+) ]]; then
      for word in ${BASH_REMATCH[1]//,/}; do
        case $word in
        day*) at=$((${at:-now} + n * 86400)) ;;
        hour*) at=$((${at:-now} + n * 3600)) ;;
        minute*) at=$((${at:-now} + n * 60)) ;;
        second*) at=$((${at:-now} + n)) ;;
        *) n=$((10#$word % 10000000)) ;;
        esac
      done
    elif [[ $text =~ (resets|try\ again\ at)\ (.{1,60}) ]]; then
      at=$(time_read "${BASH_REMATCH[2]}")
    elif grep -qiE 'credit|quota' <<<"$text"; then
      at=$((now + 3600)) # a person has to pay
    fi
  fi
  at=$((${at:-now + 900} - now))
  [ "$at" -ge 60 ] || at=60
  [ "$at" -le 2592000 ] || at=2592000 # the limit of retry_after_sec
  echo "$at"
}

# answer_write JSON: the answer, with what was used and the session.
answer_write() {
  jq -c --argjson usage "$usage" --arg session "${session:0:256}" \
    '. + (if $usage == {} then {} else {usage: $usage} end) + (if $session == "" then {} else {session: $session} end)' \
    <<<"$1" >"$AMP_RESULT.new" 2>/dev/null || printf '%s\n' "$1" >"$AMP_RESULT.new"
  mv "$AMP_RESULT.new" "$AMP_RESULT"
}

# The line that says what went wrong.
last_words() {
  { grep -iE '^(error|fatal)' "$work/stderr" | tail -n 1; printf '%s\n' "$reply"; grep . "$work/stderr"; } 2>/dev/null |
    grep -m 1 . | head -c 300
}

give_up() { # STATUS of the command line
  local wait
  tail -n 20 "$work/stderr" >&2 2>/dev/null
  if wait=$(limited "$reply $(tail -c 4000 "$work/stderr" 2>/dev/null)"); then
    answer_write "{\"retry_after_sec\":$wait}"
    echo "${0##*/}: a usage limit: again in $wait s: $(last_words)" >&2
    exit 75
  fi
  answer_write '{}'
  echo "${0##*/}: $cli failed with status $1: $(last_words)" >&2
  exit 126
}

# run PROMPT_FILE SESSION: one call, whose usage is added up and whose session is kept.
run() {
  local rc=0 sum
  reply='' used='' reset_at=''
  [ -n "$2" ] || totals='{}'
  call "$1" "$2" || rc=$?
  sum=$(jq -cn --argjson a "$usage" --argjson b "${used:-null}" \
    'reduce ($b // {} | to_entries[]) as $e ($a; .[$e.key] = ((.[$e.key] // 0) + $e.value) * 1e6 | .[$e.key] |= round / 1e6)' 2>/dev/null)
  usage=${sum:-$usage}
  [ -z "$session" ] || jq -cn --arg adapter "${0##*/}" --arg session "$session" --argjson totals "$totals" \
    '{$adapter, $session, $totals}' >"$kept"
  return $rc
}

adapter_main() {
  local old='' answer rc=0
  # Another adapter may have worked under the same name.
  if $resume && [ -f "$kept" ]; then
    old=$(head -c 4096 "$kept" | jq -r --arg me "${0##*/}" 'select(.adapter == $me) | .session | strings' 2>/dev/null)
    [[ $old =~ ^[A-Za-z0-9][A-Za-z0-9._:-]*$ ]] || old=''
    [ -z "$old" ] || totals=$(jq -c '.totals | objects' "$kept" 2>/dev/null)
    totals=${totals:-'{}'}
  fi
  "${AMP_ROLE}_prompt" >"$work/prompt" || exit 126
  [ -z "$extra_prompt" ] || { echo && cat -- "$extra_prompt"; } >>"$work/prompt"
  run "$work/prompt" "$old" || rc=$?
  answer=$(extract_file)
  if [ $rc -ne 0 ] && [ -n "$old" ] && [ -z "$answer" ] &&
    ! limited "$reply $(tail -c 4000 "$work/stderr" 2>/dev/null)" >/dev/null; then
    echo "${0##*/}: the session $old cannot go on, so a new one begins: $(last_words)" >&2
    rc=0 session=''
    run "$work/prompt" '' || rc=$?
    answer=$(extract_file)
  fi
  [ -n "$answer" ] || [ $rc -eq 0 ] || give_up $rc
  [ -n "$answer" ] || answer=$(extract "$reply")
  if [ -z "$answer" ]; then
    {
      echo "You gave no answer, or it is not the JSON object that was asked for, or it is not valid."
      echo "Give it now, as you were told, and change no other file."
      [ -n "$session" ] || { echo && cat "$work/prompt" && echo && printf 'You said:\n%s\n' "$reply"; }
    } >"$work/repair"
    rc=0
    run "$work/repair" "$session" || rc=$?
    answer=$(extract_file)
    [ -n "$answer" ] || answer=$(extract "$reply")
    # An executor's work counts without its word about it; a reviewer's word is all there is.
    [ -n "$answer" ] || [ $rc -eq 0 ] || [ "$AMP_ROLE" = executor ] || give_up $rc
  fi
  printf '%s\n' "$reply"
  answer_write "${answer:-"{}"}"
  [ -z "$answer" ] || return 0
  echo "${0##*/}: no answer that is valid JSON, also after asking again" >&2
  [ "$AMP_ROLE" = executor ]
}
