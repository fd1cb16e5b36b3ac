# What holds for every program that was built: option table, help, manual and completions agree;
# each links only what it may; the exit statuses are the written ones.
# long
# static
load ../lib

# What the tests of options read, tab separated; a form is a tool, or a tool and a verb.
#   forms:  form, tool, verb (may be empty), page
#   rows:   form, tool, the fields of --options
#   help:   form, line of --help
#   pages:  page, option, its .It line
setup_file() {
  cd "$AMP_TOP" || return 1
  local t verb verbs d=$BATS_FILE_TMPDIR
  for t in cmd/*/main.c; do
    t=${t#cmd/} t=${t%/main.c}
    verbs=$("$t" --options | awk -F '\t' '$1 == "verb" { print $2 }')
    while IFS= read -r verb; do
      printf '\1%s\t%s\n' "$t" "$verb"
      # shellcheck disable=SC2086 # the verb may be two words or none
      "$t" $verb --options
      printf '\2\n'
      # shellcheck disable=SC2086
      if [ -n "$verb" ]; then "$t" $verb --help; else "$t" --help all; fi
    done <<<"${verbs:+$'\n'}$verbs"
  done >"$d/said"
  awk -v d="$d" -F '\t' '
    FILENAME != "-" && FNR == 1 { name = 0 }
    FILENAME != "-" && /^\.Sh/ { name = $0 == ".Sh NAME" }
    FILENAME != "-" && name && /^\.Nm / {
      split($0, word, " ")
      if (!(word[2] in page)) page[word[2]] = FILENAME
    }
    FILENAME != "-" && /^\.It Fl / {
      n = split($0, word, " ")
      for (i = 3; i <= n; i++)
        if (word[i - 1] == "Fl" && word[i] ~ /^-[a-z0-9][a-z0-9-]*$/)
          print FILENAME "\t" substr(word[i], 2) "\t" $0 >(d "/pages")
    }
    FILENAME != "-" { next }
    /^\1/ {
      tool = substr($1, 2)
      form = tool ($2 == "" ? "" : " " $2)
      split($2, word, " ")
      both = tool "-" $2 # a verb of two words may have a page of its own
      gsub(/ /, "-", both)
      if ($2 == "" || !(both in page)) both = tool ($2 == "" ? "" : "-" word[1])
      print form "\t" tool "\t" $2 "\t" page[both] >(d "/forms")
      help = 0
      next
    }
    /^\2/ { help = 1; next }
    help { print form "\t" $0 >(d "/help"); next }
    $1 == "option" { print form "\t" tool "\t" $0 >(d "/rows") }' man/*.1 - <"$d/said"
}

setup() {
  cd "$AMP_TOP" || return 1
  d=$BATS_FILE_TMPDIR
  tools=()
  local t
  for t in cmd/*/main.c; do
    [ -e "$t" ] || continue
    t=${t#cmd/}
    tools+=("${t%/main.c}")
  done
}

@test "each tool is built" {
  [ ${#tools[@]} -gt 0 ]
  for t in "${tools[@]}"; do
    [ -x "$AMP_BUILD/bin/$t" ]
    grep -q "^$t$(printf '\t')" "$d/rows"
  done
}

@test "help shows every option of the table, in 80 columns" {
  run -1 grep -E "$(printf '\t').{81}" "$d/help"
  awk -F '\t' '
    FNR == NR { help[$1] = help[$1] "\n" substr($0, index($0, "\t") + 1); next }
    help[$1] "\n" !~ "--" $5 "[][ \n]" { print $1 ": --" $5 " is not in --help"; bad = 1 }
    $4 != "-" && help[$1] "\n" !~ "\n  -" $4 "[, \n]" { print $1 ": -" $4 " is not in --help"; bad = 1 }
    END { exit bad }' "$d/help" "$d/rows"
}

@test "no option and no letter twice in a form" {
  awk -F '\t' '
    seen[$1, "--" $5]++ { print $1 ": --" $5 " twice"; bad = 1 }
    $4 != "-" && seen[$1, $4]++ { print $1 ": -" $4 " twice"; bad = 1 }
    END { exit bad }' "$d/rows"
}

@test "a letter means one option in all tools, an option has one letter" {
  awk -F '\t' '
    function wrong(text) { print text; bad = 1 }
    function always(option) { return option ~ /^(state|config|in|out|repo|help)$/ }
    BEGIN {
      # Options of several tools that have their letter wherever they are.
      split("s state c config i in o out C repo h help", common, " ")
      for (i = 1; i in common; i += 2) letter[common[i + 1]] = common[i]
    }
    $5 in letter && $4 != letter[$5] && ($4 != "-" || always($5)) { wrong($1 ": --" $5 " has -" $4 ", elsewhere -" letter[$5]) }
    $4 == "-" { next }
    $4 in name && name[$4] != $5 { wrong($1 ": -" $4 " is --" $5 ", elsewhere --" name[$4]) }
    { name[$4] = $5; letter[$5] = $4; n++ }
    END { if (n < 100) wrong("only " n " letters seen"); exit bad }' "$d/rows"
}

@test "an option has one default in all tools" {
  # What may differ, and why: "OPTION DEFAULT TOOL [VERB]".
  cat >"$BATS_TEST_TMPDIR/reasons" <<'EOS'
agent * worktree-bind hooks override: an exception is for whoever comes first
as agent-registry agent-registry: each tool has its own name in the state directory
as amp-route amp-route: each tool has its own name in the state directory
as task-dispatch.coordinate task-dispatch: each tool has its own name in the state directory
class STANDARD agent-registry register: sets a class; elsewhere it selects one
grace 3600000ms amp-sign rotate: the old key's validity; elsewhere a command's time to end
format line amp-route inbox: how a message is written, not a report
format - amp-ack log: depends on the terminal
format - amp-top: without it there is a screen
from start amp-route replay: a position; elsewhere it is a role
from system amp-ack: the role that sends escalations
name pool task-queue work: of a pool; elsewhere of an agent
priority - task-queue submit: without it the message's
priority - task-queue rank: it must be given
jobs 1 amp-validate: threads; a stream of messages needs one
jobs 4 amp-route: processes, which mostly wait
repo . task-dispatch export: the current directory, as without
repo . task-dispatch verify: the current directory, as without
repo . worktree-bind: the current directory, as without
deadline 540000ms hitl-prompt: a coding agent waits ten minutes for its hook
timeout 3600000ms aof-board poll: an agent's attempt; hitl-prompt waits for a person
timeout 3600000ms aop-session run: the same
timeout 3600000ms task-dispatch: the same
timeout 3600000ms task-queue work: the same
timeout 60000ms agent-handoff request: how long a candidate may take
to end amp-route replay: a position; elsewhere it is an agent
timeout 5000ms agent-registry: an answer of an agent
timeout 10000ms hitl-prompt receive: one request; the filter waits for a person
EOS
  awk -F '\t' -v reasons="$BATS_TEST_TMPDIR/reasons" '
    BEGIN {
      while ((getline line <reasons) > 0) {
        split(line, part, ":")
        n = split(part[1], word, " ")
        form = word[3]
        for (i = 4; i <= n; i++) form = form " " word[i]
        reason[word[1] " " word[2] " " form] = 1
      }
    }
    {
      for (i = 1; i <= 2; i++) {
        key = $5 " " $11 " " $i
        if (key in reason) { used[key] = 1; next }
      }
      key = $5 " " $6
      if (key in value && value[key] != $11) {
        print $1 ": --" $5 " has the default " $11 ", " first[key] " has " value[key]
        bad = 1
      }
      if (!(key in value)) { value[key] = $11; first[key] = $1 }
    }
    END {
      for (key in reason) if (!(key in used)) { print "not so: " key; bad = 1 }
      if (value["lock-timeout duration"] == "") { print "no --lock-timeout"; bad = 1 }
      exit bad
    }' "$d/rows"
}

@test "options have a description, and those with an argument name it" {
  awk -F '\t' '
    NF != 12 { print $1 ": " NF - 2 " fields: " $0; bad = 1 }
    $9 == "-" { print $1 ": --" $5 " has no description"; bad = 1 }
    $9 ~ /\.$/ { print $1 ": --" $5 " ends with a full stop"; bad = 1 }
    $6 != "flag" && $7 == "-" { print $1 ": --" $5 " does not name its argument"; bad = 1 }
    END { exit bad }' "$d/rows"
}

# The page of a verb has the verb's first word in its name.
@test "each verb has a page, which --help names" {
  awk -F '\t' '
    FNR == NR { last[$1] = $2; next }
    {
      split($3, word, " ")
      name = $2 ($3 == "" ? "" : "-" word[1])
      if ($4 == "") { print "there is no page " name "(1)"; bad = 1 }
      if (last[$1] != "See " name "(1).") { print $1 ": " last[$1]; bad = 1 }
      n++
    }
    END { exit bad || n < 50 }' "$d/help" "$d/forms"
}

@test "each option is described on the page of its verb, or on the tool's if every verb has it" {
  awk -F '\t' '
    function wrong(text) { print text; bad = 1 }
    FILENAME ~ /\/pages$/ {
      described[$1, $2] = 1
      on[$1] = on[$1] " " $2
      line[++lines] = $0
      next
    }
    FILENAME ~ /\/forms$/ {
      tool_of[$1] = $2; verb[$1] = $3; page[$1] = $4
      forms[++n] = $1
      n_forms[$2]++
      next
    }
    {
      has[$1, $5] = 1
      own[$1] = own[$1] " " $5
      if (!times[$2, $5]++) options[$2] = options[$2] " " $5
      if ($4 != "-") letter[$2, $5] = $4
    }
    function same(a, b,   w, w2, i, k) {
      k = split(own[a], w, " ")
      if (k != split(own[b], w2, " ")) return 0
      for (i = 1; i <= k; i++) if (!((b, w[i]) in has)) return 0
      return 1
    }
    END {
      for (f = 1; f <= n; f++) {
        form = forms[f]; tool = tool_of[form]; main = "man/" tool ".1"; at = page[form]
        # A form without a verb that has the options of a verb is that verb.
        for (g = 1; verb[form] == "" && g <= n; g++)
          if (tool_of[forms[g]] == tool && verb[forms[g]] != "" && same(form, forms[g])) { at = page[forms[g]]; break }
        k = split(own[form], w, " ")
        for (i = 1; i <= k; i++) {
          common = times[tool, w[i]] == n_forms[tool]
          if (!((at, w[i]) in described) && (at == main || !common)) wrong(at ": not described, of " form ": " w[i])
          known[page[form], w[i]] = 1
          known[at, w[i]] = 1
        }
        pages[page[form]] = tool
        pages[main] = tool
      }
      for (tool in options) {
        k = split(options[tool], w, " ")
        for (i = 1; i <= k; i++) {
          if (times[tool, w[i]] != n_forms[tool]) continue
          if (!(("man/" tool ".1", w[i]) in described)) wrong("man/" tool ".1: not described: " w[i])
          for (at in pages) if (pages[at] == tool) known[at, w[i]] = 1
        }
      }
      for (at in pages) {
        k = split(on[at], w, " ")
        for (i = 1; i <= k; i++) if (!((at, w[i]) in known)) wrong(at ": no such option: " w[i])
      }
      for (i = 1; i <= lines; i++) {
        split(line[i], field, "\t")
        tool = pages[field[1]]
        if ((tool, field[2]) in letter && index(field[3] " ", ".It Fl " letter[tool, field[2]] " , Fl -" field[2] " ") != 1 &&
          field[3] ~ "^[.]It Fl (. , Fl )?-" field[2] "( |$)")
          wrong(field[1] ": " field[3] ": the letter is -" letter[tool, field[2]])
      }
      exit bad || lines < 100
    }' "$d/pages" "$d/forms" "$d/rows"
}

@test "the manual of a tool names every verb and every environment variable of the table" {
  local tool verb page env
  while IFS=$'\t' read -r _ tool verb page; do
    grep -qwF -- "$verb" "$page" && grep -qwF -- "${verb%% *}" "man/$tool.1" || {
      echo "verb $verb of $tool is missing"
      return 1
    }
  done < <(awk -F '\t' '$3 != ""' "$d/forms")
  while IFS=$'\t' read -r tool env; do
    grep -qwF -- "$env" "man/$tool.1" || {
      echo "man/$tool.1: $env is missing"
      return 1
    }
  done < <(awk -F '\t' '$10 != "-" { print $2 "\t" $10 }' "$d/rows" | sort -u)
}

@test "a page refers to pages that exist" {
  cat man/*.[157] | grep -oE '(Xr|^\.Xr) (amp|(amp|agent|hitl|task|worktree)-[a-z0-9-]+|amp\.json[a-z-]*) [0-9]' | sort -u |
    while read -r _ name section; do
      grep -qxE "\.Nm $name( ,)?" man/*."$section" || {
        echo "there is no $name($section)"
        return 1
      }
    done
}

@test "amp-codes(7) and amp-codes-protocols(7) have each code with the words of --explain" {
  amp-validate --explain all | cut -f 1,4 | tr -s ' ' >"$BATS_TEST_TMPDIR/codes"
  cat man/amp-codes.7 man/amp-codes-protocols.7 | sed 's/\\(dq/"/g; s/^\\&//' |
    awk '/^\.(It|El|Ss|Sh)/ { if (text) print code "\t" text; text = ""; code = $3; next }
      { text = text (text ? " " : "") $0 }' | tr -s ' ' >"$BATS_TEST_TMPDIR/page"
  run -1 grep -vxFf "$BATS_TEST_TMPDIR/page" "$BATS_TEST_TMPDIR/codes"
}

@test "the limits of the code are those of the manuals" {
  local tool file name text n
  while read -r tool file name text; do
    # "#define NAME 64", "NAME ((size_t)64 << 20)", "NAME = 64,": the number as the compiler has it.
    n=$(sed -nE "s/.*\\b$name\\b *=? *(.*)/\\1/p" "$file" | sed -nE '1s/\((size_t|off_t|int64_t)\)//; 1s/^([^,;/}]*).*/\1/; 1s/([0-9])[uUlL]+/\1/g; 1p')
    n=$((n))
    case $text in *@K*) n=$((n >> 10)) ;; *@M*) n=$((n >> 20)) ;; esac
    text=${text//@/$n}
    sed -n '/^\.Sh LIMITS/,/^\.Sh [^L]/p' "man/$tool".? | tr '\n' ' ' | grep -qF "$text" || {
      echo "$tool does not say \"$text\" ($name in $file)"
      return 1
    }
  done <<'EOS'
amp lib/message/delivery/intake.h AMP_INTAKE_ID_MAX at most @ bytes
amp include/amp/protocol/protocol.h AMP_RECORD_ID_MAX first @ bytes
amp-route include/amp/protocol/protocol.h AMP_TO_MAX at most @ agents
amp-route lib/message/route/parcel.h RULES_MAX at most @ routes
amp-ports lib/message/port/command.c WORDS_MAX at most @ words
amp-ports lib/message/delivery/inbox/inbox.h AMP_INBOX_AGENT_MAX inbox @ bytes
amp-ports lib/message/delivery/inbox/inbox.h AMP_INBOX_BOUND_MAX at most @ messages
amp-route-replay cmd/amp-route/replay.c WHERE_MAX at most @ predicates
amp-streams lib/message/route/admission/streams.c STREAMS_MAX follows @ sources
amp-ports lib/message/route/outlet/unacked.h UNACKED_MAX has @ messages
amp-ports lib/message/route/outlet/unacked.c BYTES_MAX or @M
amp-streams lib/message/delivery/cursor/cursor.c HELD_BYTES with @M
amp-ports lib/message/port/tries.h AMP_TRIES_MAX @ tries of one port
amp-ports libexec/port-http/http.c ANSWER_MAX an answer @M
amp-ports libexec/port-http/http.c HEADERS_MAX a file of headers @K
amp lib/cli/config_file.c CONFIG_MAX file of at most @M
amp lib/message/protocol/redact/patterns.c PATTERNS_MOST at most @ patterns
amp lib/message/protocol/redact/patterns.c PATTERN_MOST patterns of @ bytes
amp-ack lib/message/delivery/operation/retry.c BUDGET_MAX at most @ attempts
amp-ack lib/message/protocol/delivery.h AMP_RETRY_WAITS_MAX at most @ waits
amp-ack-dead lib/message/delivery/dead/record.c MAX_HISTORY at most @ attempts and
amp-ack-dead lib/message/delivery/dead/record.c MAX_RECIPIENTS and @ recipients
amp-ack-dead lib/message/delivery/dead/dead.c EXCERPT_MAX at most @ bytes
amp-ack lib/message/delivery/record/record.c LATE_ACKS_MAX at most @ late
amp-ack-dead cmd/amp-ack/dead/export.c NEEDLES_MAX at most @ ids
amp-ack-dead cmd/amp-ack/dead/export.c FRAMES_MAX has @M of the log
amp-ack-dead cmd/amp-ack/dead/export.c ERRORS_MAX last @M of the error log
amp-ack-token cmd/amp-ack/token.c CANONICAL_MAX at most @M
task-dispatch-new cmd/task-dispatch/new.c FILE_MAX at most @M
task-dispatch-new lib/work/task/new.c PARTS_MAX @ subtasks
task-dispatch-coordinate lib/work/loop/coordinate/loop.c INPUTS_MAX at most @ inputs
task-dispatch-run lib/work/agent/contract/contract.h AMP_ANSWER_MAX at most @M
task-dispatch-run lib/work/agent/contract/contract.h AMP_WORK_LOG_MAX work log @M
task-dispatch-run lib/work/git/repository/patch.c PATCH_MAX checked has at most @M
task-dispatch-verify lib/work/loop/review/verify.c APPROVALS_MAX commit @ approvals
task-dispatch lib/work/task/policy.h AMP_CI_CHECKS_MAX at most @ checks
task-dispatch lib/work/task/policy.h AMP_RESULT_RULES_MAX and @ rows
hitl-prompt cmd/hitl-prompt/answers.c ANSWERS_MAX answers has at most @M
amp-prompt cmd/hitl-prompt/evidence/question.c FIELD_MAX at most @ bytes of a field
amp-prompt cmd/hitl-prompt/evidence/question.c ITEMS_MAX @ entries of a list
amp-prompt lib/people/answer/evidence.h AMP_EVIDENCE_EVENTS @ events
amp-prompt cmd/hitl-prompt/evidence/question.c REASONS_MAX @ reasons of an event
amp-prompt cmd/hitl-prompt/terminal/line.h LINE_BYTES at most @ bytes
amp-prompt cmd/hitl-prompt/terminal/dialog.c PATCH_MAX a diff @M
amp-prompt lib/people/answer/payload.h AMP_PAYLOAD_MAX an edited payload @M
worktree-bind-hooks lib/work/git/rule.h AMP_RULE_PATTERNS_MAX at most @ patterns
EOS
  # Ports: one of them is the output.
  grep -q '#define PORTS_MAX  *1100' lib/message/route/outlet/outlet.h
}

@test "the manuals have their sections and pass mandoc" {
  need mandoc
  for m in man/*.[157]; do
    mandoc -Tlint -W warning "$m"
    for s in NAME DESCRIPTION 'SEE ALSO'; do
      grep -qx ".Sh $s" "$m" || {
        echo "$m: no section $s"
        return 1
      }
    done
  done
  for m in man/*.1; do
    for s in SYNOPSIS ENVIRONMENT 'EXIT STATUS' EXAMPLES; do
      grep -qx ".Sh $s" "$m" || {
        echo "$m: no section $s"
        return 1
      }
    done
  done
}

@test "a directory in place of the input is an input error, 74, in every tool" {
  cd "$BATS_TEST_TMPDIR"
  repo r
  for t in amp-validate "amp-validate -j 2" "amp-validate --document" "amp-validate --extract" "amp-ack show" \
    "amp-ack send" "amp-ack token a b" "amp-ack track --state s" "amp-route -r type=x=>stdout" "agent-registry --state s" \
    "amp-sign --state s --as ann" "amp-sign verify --state s" "task-dispatch run --state s -x true" "hitl-prompt --state s" "worktree-bind -C r"; do
    # shellcheck disable=SC2086
    run -74 $t <r
    [[ $output == *"cannot read "*": Is a directory"* ]]
  done
  run -74 amp-validate r
  run -74 task-dispatch new --state s r
}

@test "amp-exit(7) is the table of statuses" {
  # The list's lines are X(NAME, value, "meaning") with quotes escaped.
  diff <(sed -n '/AMP_STATUS_LIST(X)  /,/^$/s/^ *X([A-Z]*, \([0-9]*\), "\(.*\)").*/\1 \2/p' \
    include/amp/base/error.h | sed 's/\\"/"/g') \
    <(awk '/^\.It / { n = $2; getline; print n " " $0 }' man/amp-exit.7)
  # The order of precedence too.
  in_code=$(sed -n '/order\[\] = {/,/};/p' lib/base/error.c | grep -oE 'AMP_[A-Z]+' |
    while read -r s; do sed -n "s/.*X(${s#AMP_}, \([0-9]*\),.*/\1/p" include/amp/base/error.h; done |
    paste -sd ' ')
  in_man=$(grep -A 1 'the status is the first of' man/amp-exit.7 | tail -n 1 | tr -d ',.')
  [ "$in_code" = "$in_man" ]
}

@test "wrong usage, help and version" {
  for t in "${tools[@]}"; do
    run -64 "$t" --no-such-option
    [[ "$output" == *"$t: error: unknown option --no-such-option"* ]]
    run -0 "$t" --version
    [[ "$output" == "$t "* ]]
    run -0 --separate-stderr "$t" --help
    [ -z "$stderr" ]
    run -74 bash -c '"$0" --help >/dev/full' "$t"
  done
}

@test "the help of task-dispatch fits on a screen; --help all and help all have every verb" {
  run -0 --separate-stderr task-dispatch --help
  [ "$(wc -l <<<"$output")" -le 50 ]
  [[ $output == *$'\n  loop [TASK.md…] '*$'\nTasks:\n'*$'\nThe loop\'s filters:\n'*$'\nMore: Approvals\n'*"--state DIR"* ]]
  run -1 grep export <<<"$output"
  run -0 --separate-stderr task-dispatch help
  [[ $output == *"More: Approvals"* ]]
  for all in "--help all" "-h all" "help all"; do
    # shellcheck disable=SC2086
    run -0 --separate-stderr task-dispatch $all
    [[ $output == *"export COMMIT|TASK"*"Exit status"* ]]
  done
  run -64 task-dispatch all
}

@test "unknown verbs and options are named, with the nearest or with what there is" {
  while IFS='|' read -r args what; do
    # shellcheck disable=SC2086
    run -64 --separate-stderr $args </dev/null
    [ -z "$output" ]
    [ "${stderr_lines[0]}" = "${args%% *}: error: $what" ] || { echo "$args: $stderr"; false; }
    [ "${#stderr_lines[@]}" -eq 2 ]
  done <<'T'
amp-ack stats|unknown verb 'stats' (did you mean 'status'?)
amp-ack --state /nowhere stats --json|unknown verb 'stats' (did you mean 'status'?)
amp-ack stat|unknown verb 'stat' (did you mean 'status'?)
amp-ack dead|'dead' needs a verb: list, show, requeue, export, purge
amp-ack dead --json|'dead' needs a verb: list, show, requeue, export, purge
amp-ack dead --no-such-option|'dead' needs a verb: list, show, requeue, export, purge
amp-ack dead lst|unknown verb 'dead lst' (did you mean 'dead list'?)
amp-ack ded list|unknown verb 'ded list' (did you mean 'dead list'?)
amp-ack dead frob|unknown verb 'dead frob': 'dead' has list, show, requeue, export, purge
amp-ack dead rm x|unknown verb 'dead rm': use 'amp-ack dead purge'
amp-ack log 1|log: unexpected operand '1': --task TASK or --id ID selects
amp-sign version|unknown verb 'version': use 'amp-sign --version'
task-dispatch view 1|unknown verb 'view': use 'task-dispatch show'
task-dispatch list --state done|--state is the state directory; the tasks in a state: --state-of done
amp-ack cursors|'cursors' needs a verb: list, show, move, retire
amp-ack status now|status: unexpected operand 'now': --task TASK selects
amp-ack --now 1 status|the verb 'status' must come before its options
amp-ack status --jsn|unknown option --jsn (did you mean '--json'?)
amp-ack status --stage x|unknown option --stage ('send' has it)
amp-ack status -Y|unknown option -Y
amp-route reply|unknown verb 'reply' (did you mean 'replay'?)
amp-route to=x|unknown verb 'to=x': routes are given with -r
amp-route --ruote x|unknown option --ruote (did you mean '--route'?)
amp-validate --extra|unknown option --extra (did you mean '--extract'?)
task-dispatch nwe --branch x|unknown verb 'nwe' (did you mean 'new'?)
task-dispatch run claude|run: unexpected operand 'claude': the agent's command follows --exec
task-dispatch frob|unknown verb 'frob': the verbs are init, loop, new, list, show, diff, log, open, edit, retry, cancel, land, coordinate, run, review, verify, export
agent-registry lst|unknown verb 'lst' (did you mean 'list'?)
worktree-bind hooks|'hooks' needs a verb: install, uninstall, check, override, run
worktree-bind hooks instal|unknown verb 'hooks instal' (did you mean 'hooks install'?)
worktree-bind hoks|unknown verb 'hoks' (did you mean 'hooks'?)
amp-ack cursrs show|unknown verb 'cursrs show' (did you mean 'cursors show'?)
worktree-bind list x|list: unexpected operand 'x'
hitl-prompt x|unknown verb 'x': the verbs are list, show, answer, receive, sign, suspend, resume, audit, hook
hitl-prompt --anser x|unknown option --anser (did you mean '--answer'?)
T
  run -0 amp-ack dead --help
  [ "${lines[0]}" = "usage: amp-ack dead list [OPTION...]" ]
  [[ $output != *sweep* ]]
}

@test "a tool that reads from a terminal says so once" {
  need script
  cd "$BATS_TEST_TMPDIR"
  git init -q repo
  local t ends note="note: reading from the terminal; Ctrl-D ends the input"
  for t in amp-validate "amp-validate - -" "amp-route -r '* => stdout'" "amp-ack track" "amp-ack show" "amp-ack token p o" \
    "amp-sign --as ann" "amp-sign verify" task-dispatch "task-dispatch run --exec true" hitl-prompt agent-registry \
    "worktree-bind -C repo"; do
    # script sends one end of input; what reads the terminal twice needs another.
    ends=
    [[ $t != *" - -" ]] || ends='\004\004'
    NO_COLOR=1 AMP_STATE=$PWD/state timeout 60 script -qec "$t" /dev/null < <(printf "$ends") >said
    [ "$(grep -c "^${t%% *}: $note" said)" -eq 1 ] || { echo "$t"; cat said; false; }
  done
  NO_COLOR=1 script -qec "amp-validate in </dev/null; amp-validate /dev/null" /dev/null </dev/null >said
  run -1 grep terminal said
}

@test "every tool reports a refused line in one form: location, code, problem, found, expected" {
  cd "$BATS_TEST_TMPDIR"
  git init -q repo
  printf '%s\n' '{"a":1}' '{"b":' '{"protocol":"AMP/1.0","type":"\u001b[2J"}' >in
  ends 1 amp-validate <in 2>&1 >/dev/null | sed 's/^amp-validate: //; s/stdin:\([0-9]\)/line \1/' >want
  grep -qx 'error: line 1: unknown_protocol: .*; found {"a":1}; expected a message of .*' want
  grep -qx 'error: line 2: invalid_json: .*, at byte 6' want
  grep -q '^error: line 3: ' want
  local t
  for t in "amp-route -r *=>stdout" "amp-ack track" "amp-ack send" agent-registry hitl-prompt \
    "task-dispatch coordinate" "task-dispatch run --exec true" "worktree-bind -C repo"; do
    # shellcheck disable=SC2086
    AMP_STATE=$PWD/state ends 1 $t <in 2>&1 >/dev/null | sed -n "s/^${t%% *}: \\(error: line .*\\)/\\1/p" >got
    diff want got || { echo "^ $t"; return 1; }
  done
}

# The libraries that a program may need besides libc (libm, the loader and gcc's are libc's kin).
may_link() {
  case $1 in
  amp-validate) echo libpcre2-8 ;;
  amp-top) echo libpcre2-8 libsqlite3 libjansson libsodium libncursesw libtinfo ;;
  branch-guard) echo libpcre2-8 ;;
  agent-registry | amp-route | amp-ack | amp-mcp | amp-sign | task-dispatch | task-queue | agent-handoff | aop-session | aof-board | \
    hitl-prompt | worktree-bind)
    echo libpcre2-8 libsqlite3 libjansson libsodium
    ;;
  git-worker) echo libgit2 libz libpcre2-8 libjansson libsodium ;;
  key-worker) echo libcrypto libsodium ;;
  jq-worker) echo libjq libonig libpcre2-8 libjansson ;;
  port-http) echo libcurl libjansson ;;
  state-worker) echo libsqlite3 libpcre2-8 libsodium libjansson ;;
  *) echo ;;
  esac
}

@test "every program links only what it may" {
  need readelf
  shopt -s nullglob
  for p in "$AMP_BUILD"/bin/* "$AMP_BUILD"/libexec/amp/*; do
    readelf -h "$p" >/dev/null 2>&1 || continue # a script
    allowed=" libc libm ld-linux-x86-64 libpthread libdl librt $(may_link "${p##*/}") "
    while read -r lib; do
      case $lib in
      libasan* | libubsan* | libgcc_s* | ld-linux*) continue ;;
      esac
      [[ "$allowed" == *" ${lib%%.so*} "* ]] || {
        echo "${p##*/} needs $lib"
        return 1
      }
    done < <(readelf -d "$p" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p')
  done
}

@test "machines print in every format" {
  for t in "${tools[@]}"; do
    awk -F '\t' -v t="$t" '$1 == t && $5 == "machine" { found = 1 } END { exit !found }' "$d/rows" || continue
    run -0 "$t" --machine
    [ -n "$output" ]
    run -0 "$t" --machine=dot
    [[ "$output" == *digraph* ]]
    "$t" --machine=ndjson | jq -es '
      length > 0 and all(has("machine") and has("from") and has("event") and has("to")
        and has("code") and has("effects") and has("extra"))' >/dev/null
  done
}

# What a stranger tries: the guess works, or the error names the command.
@test "a word that means a verb of this or another tool is answered by the command" {
  native "starts programs 160 times"
  local tool word command n=0
  while IFS=$'\t' read -r tool word command; do
    run -64 --separate-stderr "$tool" "$word"
    [[ $stderr == *"unknown verb '$word': use '$command'"* ]] || { echo "$tool $word: $stderr"; return 1; }
    # shellcheck disable=SC2046 # words of the command without operands
    run -0 $(sed 's/ [A-Z-].*//' <<<"$command") --help
    n=$((n + 1))
  done < <(sed -n 's/^    {"\([^"]*\)", "\([^"]*\)", "\([^"]*\)"},$/\1\t\2\t\3/p' lib/cli/command/verbs.c)
  [ "$n" -gt 60 ]
  for command in "task-dispatch help" "task-dispatch help new" "amp-ack help dead" "worktree-bind -h"; do
    # shellcheck disable=SC2086
    run -0 $command
    [[ ${lines[0]} == usage:* ]]
  done
  run -64 --separate-stderr task-dispatch run ./agent.sh
  [[ $stderr == *"the agent's command follows --exec"* ]]
  AMP_STATE=$BATS_TEST_TMPDIR/state run -65 --separate-stderr task-dispatch new "fix the bug"
  [[ $stderr == *"note: a task is described in a file"* ]]
  run -1 --separate-stderr amp-validate <<<$'{\n"a": 1}'
  [[ $stderr == *"note: the input seems to be one document over several lines: --document reads it" ]]
  cd "$BATS_TEST_TMPDIR"
  git init -q project
  cd project
  run -64 --separate-stderr hitl-prompt list
  [[ $stderr == *"this repository has none ('task-dispatch init' makes it)"* ]]
}
