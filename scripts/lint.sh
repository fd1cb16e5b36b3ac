#!/usr/bin/env bash
# Checks what the compiler does not. Prints one line a finding, "path:line: what"; status 1 when
# there is any. Notes (prefixed "note:") do not fail it.
#
#   scripts/lint.sh [CHECK...]     includes cycles kinds keys protocols carried headers banned shadows cleanup
#                                  machines exits processes caps folders words names codes format shell external neighbours tests
set -u
cd "$(dirname "$0")/.." || exit 70
shopt -s nullglob globstar extglob lastpipe
found=0
CC=${CC:-cc}
read -ra cc <<<"$CC" # may be several words: "ccache gcc"

finding() {
  echo "$*"
  found=1
}
# Prints findings from standard input.
findings() {
  local line
  while IFS= read -r line; do
    finding "$line"
  done
}

# The code of files without comments and the contents of strings, as "FILE:LINE:CODE": what a check should see.
code_of() {
  [ $# -gt 0 ] || return
  awk '
    FNR == 1 { in_comment = 0 }
    !in_comment && !/["\047\/]/ { print FILENAME ":" FNR ":" $0; next }
    { line = $0; out = ""; n = length(line); in_string = 0
      for (i = 1; i <= n; i++) {
        c = substr(line, i, 1); two = substr(line, i, 2)
        if (in_comment) { if (two == "*/") { in_comment = 0; i++ } continue }
        if (in_string) { if (c == "\\") { i++ } else if (c == quote) { in_string = 0; out = out c } continue }
        if (two == "/*") { in_comment = 1; i++; continue }
        if (two == "//") break
        if (c == "\"" || c == "\047") { in_string = 1; quote = c }
        out = out c
      }
      print FILENAME ":" FNR ":" out
    }' "$@"
}

# "FILE LINE INCLUDED" for each include of the files.
includes_of() {
  grep -HnE '^[[:space:]]*#[[:space:]]*include[[:space:]]*[<"].*[>"]' "$@" /dev/null |
    sed -E 's/^([^:]*):([0-9]*):[^<"]*[<"](.*)[>"].*/\1 \2 \3/'
}

# Numbers in the order of inclusion: a file may include what is lower, or its own room. The ground and the house of
# messages have an order of their own; the other houses have one number each.
declare -A levels=([base]=0 [schema]=1 [fsm]=1 [json]=1 [net]=1 [message/protocol]=2 [message/port]=2 [message/store]=2
  [message/identity]=2 [message/record]=3 [message/metrics]=3 [message/pause]=3 [message/delivery]=4 [message/route]=5
  [work]=6 [people]=7 [shared]=8 [cmd]=8 [libexec]=8)
# Includes of a higher house that are left: "FILE INCLUDED". A new one is refused; each of these is to become a fact or
# a function that the lower house is given.
#   The router asks about an agent's record and its capabilities, and reads the answers of commands by the contract.
#   Work asks questions, reads them again by their record, and verifies a review by its proof.
arrows_back='
lib/message/route/address/address.c work/agent/capability.h
lib/message/route/address/address.c work/agent/work.h
lib/message/route/handover/outcome.c work/agent/contract/contract.h
lib/message/route/handover/outcome.c work/attempt/reply/reply.h
lib/work/aop/run/loop.c people/question/record.h
lib/work/aop/run/review.c people/answer/ask/ask.h
lib/work/aop/watch/question.c people/answer/ask/ask.h
lib/work/attempt/control.c people/question/record.h
lib/work/attempt/loop.c people/question/record.h
lib/work/item/judge/question.c people/answer/ask/ask.h
lib/work/loop/coordinate/coordinator.c people/question/record.h
lib/work/loop/coordinate/receive.c people/question/record.h
lib/work/loop/coordinate/speaker.c people/proof/votes.h
lib/work/loop/review/verify.h people/proof/proof.h
'
# room_of PATH: sets room: a folder of the ground or of the house of messages, another house, or cmd and its like.
room_of() {
  room=$1
  case $room in
  amp/protocol/* | amp/compose.h | protocol/*) room=message/protocol ;;
  amp/machines.h | machines.h) room=people ;;
  amp/*) room_of "${room#amp/}" ;;
  message/*) room=${room#message/} room=message/${room%%/*} ;;
  compose.h) room=message/protocol ;;
  *) room=${room%%/*} ;;
  esac
}

check_includes() {
  local f line inc room from level
  while read -r f line inc; do
    [[ $inc =~ ^[a-z_]+/ ]] || continue
    room_of "${f#@(include/amp|lib|cmd)/}"
    case $f in cmd/shared/*) room=shared ;; cmd/*) room=cmd ;; libexec/*) room=libexec ;; esac
    from=$room level=${levels[$from]:-99}
    room_of "$inc"
    if [ "$from" = cli ]; then
      # The command line stands beside the programs; of the library it knows the ground only.
      case $room in base | json | schema | fsm | cli | sys) ;; *) finding "$f:$line: cli includes $room" ;; esac
    elif [ "$room" = cli ]; then
      [ "$level" -eq 8 ] || finding "$f:$line: $from includes cli"
    elif [ "$room" != "$from" ] && [ "${levels[$room]:--1}" -ge "$level" ]; then
      # The arrows inside a floor: the schema checker reads tapes, and records have states of machines.
      case "$from $room" in "schema json" | "json fsm" | "cmd shared") continue ;; esac
      [[ $arrows_back != *"$f $inc"$'\n'* ]] || continue
      finding "$f:$line: $from includes $room, which is not below it"
    fi
  done < <(includes_of include/amp/**/*.[ch] lib/**/*.[ch] cmd/**/*.[ch] libexec/**/*.[ch])
}

# "FILE INCLUDED" for each project file that a file includes, without suffix: a .c and its .h are one.
include_pairs() {
  local f line from to
  includes_of include/amp/**/*.h lib/**/*.[ch] cmd/**/*.[ch] libexec/**/*.[ch] | while read -r f line to; do
    from=${f/#include\/amp/lib}
    if [ -f "include/$to" ]; then
      to=lib/${to#amp/}
    elif [ -f "lib/$to" ]; then
      to=lib/$to
    elif [ -f "${f%/*}/$to" ]; then
      to=${f%/*}/$to
    else
      continue
    fi
    while [[ $to =~ ^(.*)/[^/]+/\.\./(.*)$ ]]; do to=${BASH_REMATCH[1]}/${BASH_REMATCH[2]}; done
    echo "${from%.[ch]} ${to%.h}"
  done | awk '$1 != $2' | sort -u
}

# Files that include each other. No cycle may leave its folder, and lib/message has none outside of the protocols;
# elsewhere a cycle is a note.
check_cycles() {
  include_pairs | awk '
    { next_of[$1] = next_of[$1] " " $2; if (!seen[$1]++) node[++n] = $1 }
    function folder(path) { sub(/\/[^\/]*$/, "", path); return path }
    # Neither is the other, nor within it: a room has a header of its own above its folders.
    function apart(a, b) { return index(a "/", b "/") != 1 && index(b "/", a "/") != 1 }
    END {
      for (i = 1; i <= n; i++) {
        top = 1
        todo[1] = node[i]
        while (top > 0) {
          k = split(next_of[todo[top--]], to, " ")
          for (j = 1; j <= k; j++)
            if (!((node[i], to[j]) in reach)) { reach[node[i], to[j]] = 1; todo[++top] = to[j] }
        }
      }
      for (i = 1; i <= n; i++) {
        if (node[i] in done || !((node[i], node[i]) in reach)) continue
        members = ""
        bad = node[i] ~ /^lib\/message\/(delivery|pause|port|record|route|store)\//
        for (j = 1; j <= n; j++)
          if (((node[i], node[j]) in reach) && ((node[j], node[i]) in reach)) {
            done[node[j]] = 1
            members = members " " node[j]
            if (apart(folder(node[j]), folder(node[i]))) bad = 1
          }
        print (bad ? "" : "note: ") node[i] ": files include each other:" members
      }
    }' | while IFS= read -r line; do
    case $line in note:*) echo "$line" ;; *) finding "$line" ;; esac
  done
}

# The kind of a stored record is named in the folder that owns the record; others use its function or
# its macro. lib/message/delivery/history reports any record of the log.
check_kinds() {
  # A call may go over two lines.
  awk '
    FNR == 1 { before = ""; skip = FILENAME ~ /^lib\/message\/delivery\/history\// }
    skip { next }
    function tell(text, how) {
      gsub(/"/, "", text)
      print text " " how " " FILENAME ":" FNR
    }
    /^#define [A-Z_]*KIND +"/ { tell($3, "defined") }
    {
      both = before " " $0
      if (match(both, /(amp_store_(each|due|count|next_due)\([^;"]*, *|AMP_KEY\( *)"[a-z_]+"/) && match($0, /"[a-z_]+"/))
        tell(substr($0, RSTART, RLENGTH), "used")
      if (match($0, /amp_span_is\([a-z_.>-]*kind, "[a-z_]+"/) && match($0, /"[a-z_]+"/))
        tell(substr($0, RSTART, RLENGTH), "used")
      before = $0
    }' lib/**/*.[ch] cmd/**/*.[ch] libexec/**/*.[ch] /dev/null | sort -u | awk '
    function folder(at) { sub(/\/[^\/]*$/, "", at); return at }
    {
      dir = folder($3)
      if (($1 in home) && home[$1] != dir) print $3 ": the kind \"" $1 "\" is owned by " home[$1]
      else home[$1] = dir
    }' | findings
}

# A protocol is named in lib/message/protocol; other rooms read properties (struct amp_view, the tables of terms). The exceptions:
# "FILE LINES REASON".
protocols_elsewhere='
lib/message/delivery/record/sequence.c 1 a part of a stored key
lib/work/aop/watch/phase.c 1 a section of amp.json
lib/work/aop/run/place.c 1 a section of amp.json
lib/cli/command/verbs.c 1 a word that people try as a verb
cmd/amp-ack/log/log.c 1 a format of the output, of log events
'
check_protocols() {
  grep -HnE '\bAMP_PROTO_(AMP|SW4RM|AOP|AOF|RTP)\b|"(sw4rm|aop|aof|rtp)"|protocol[a-z]*, "amp"' \
    include/amp/**/*.h lib/**/*.[ch] cmd/**/*.[ch] libexec/**/*.[ch] /dev/null |
    grep -vE '^(lib/message|include/amp)/protocol/' | awk -F: -v elsewhere="$protocols_elsewhere" '
    BEGIN {
      n = split(elsewhere, line, "\n")
      for (i = 1; i <= n; i++) { split(line[i], part, " "); may[part[1]] = part[2] }
    }
    ++named[$1] > may[$1] + 0 { print $1 ":" $2 ": names a protocol (" may[$1] + 0 " lines of this file may)" }' | findings
}

# A protocol is carried out in one folder, lib/work/NAME: what its headers declare is called there and by the programs. The
# exceptions: "FILE LINES REASON". The worker and the pool give a task to the folder of its protocol, and the queue admits it.
carried_elsewhere='
lib/people/deadlines.c 2 the table of all deadlines
lib/work/attempt/job.c 1 who has the task (a fact)
lib/work/attempt/reply/reply.c 1 who has the task (a fact)
lib/work/loop/pool/task/task.c 1 who has the task (a fact)
lib/work/rtp/task.c 1 who has the task (a fact)
lib/work/item/claim/submit.c 1 admits a TASK of a session
lib/work/loop/pool/claims.c 3 who has the task; reports to a session that an item ended
lib/work/loop/pool/pool.c 1 catches up with sessions when a pool begins
lib/work/loop/pool/slot.c 5 gives the item to the folder of its protocol
lib/work/loop/pool/task/address.c 1 gives the item to the folder of its protocol
lib/work/loop/run/run.c 3 gives the task to the folder of its protocol
'
check_carried() {
  local p names files
  for p in aop aof rtp handoff; do
    names=$(code_of lib/work/$p/**/*.h | grep -oE '\bamp_\w+\(' | tr -d '(' | sort -u | paste -sd'|')
    mapfile -t files < <(grep -lE "\b(${names:-none})\b" lib/**/*.[ch] libexec/**/*.[ch] /dev/null | grep -v "^lib/work/$p/")
    code_of "${files[@]}" | grep -E "^[^:]*:[0-9]*:.*\b(${names:-none})\b" | sed "s|^\([^:]*:[0-9]*\):.*|\1: calls lib/work/$p|"
  done | sort -u | awk -F: -v elsewhere="$carried_elsewhere" '
    BEGIN {
      n = split(elsewhere, line, "\n")
      for (i = 1; i <= n; i++) { split(line[i], part, " "); may[part[1]] = part[2] }
    }
    ++named[$1] > may[$1] + 0 { print $0 " (" may[$1] + 0 " lines of this file may)" }' | findings
}

# Keys are made and split by lib/message/store/key.c only: no digests for parts, no limits, no escapes elsewhere.
check_keys() {
  {
    grep -nE '"sha256:|%0A' lib/**/*.[ch] cmd/**/*.[ch] libexec/**/*.[ch]
    grep -nE 'define (KEY|ID)_MAX' lib/{message/{delivery,route},work,people}/**/*.[ch]
  } | grep -vE '^lib/message/store/key\.' |
    sed 's/$/: keys are made by lib\/message\/store\/key.c/' | findings
}

# Functions and file-wide variables that hide a name of libc.
check_shadows() {
  local libc
  libc=$("${cc[@]}" -print-file-name=libc.so.6)
  [ -f "$libc" ] || {
    echo "note: $CC does not say where libc is"
    return
  }
  {
    nm -D --defined-only "$libc" | awk '$3 ~ /^[a-z]/ { sub(/@.*/, "", $3); print "libc " $3 }'
    awk '
        /^[a-z]/ && !/^(typedef|extern|struct|enum|union|else|do|return)[ {]/ || /^(static |const )*(struct|enum|union) [a-z_]+ \**[a-z_0-9]+[(=;[ ]/ {
          text = $0
          if (!match(text, /[a-z_0-9]+(\(| =|;|\[|,)/)) next
          name = substr(text, RSTART, RLENGTH)
          gsub(/[^a-z_0-9]/, "", name)
          print FILENAME ":" FNR " " name
        }' lib/**/*.[ch] cmd/**/*.[ch] libexec/**/*.[ch] /dev/null
  } | awk '
    $1 == "libc" { libc[$2] = 1; next }
    # Of the old regexp.h, which no longer exists.
    $2 == "step" || $2 == "advance" { next }
    $2 in libc { print $1 ": " $2 ": a name of libc" }' | findings
}

# A header compiles alone. The build shows it for the header that a file includes before anything else; the others are
# compiled, twice, as is one without a guard. The guard of a header of lib is its path.
check_headers() {
  local f
  local -A first=()
  awk '
    FNR == 1 {
      want = toupper(FILENAME)
      sub(/^LIB/, "AMP", want)
      gsub(/[^A-Z0-9]/, "_", want)
      seen = 0
    }
    /^#ifndef / && !seen++ && $2 != want { print FILENAME ":" FNR ": the guard of this path is " want }' lib/**/*.h /dev/null |
    findings
  while read -r f; do first[$f]=1; done < <(awk '
    FNR == 1 && FILENAME ~ /\.c$/ { todo = 1 }
    FNR == 1 && FILENAME ~ /\.h$/ { todo = 0; guard = "" }
    todo && /^#/ { if (/^#include [<"]/) { gsub(/[<">]/, "", $2); included[$2] = 1 } todo = 0 }
    /^#ifndef / && guard == "" { guard = $2 }
    /^#define / && $2 == guard && FILENAME ~ /\.h$/ { guarded[FILENAME] = 1 }
    END {
      for (f in guarded) {
        name = f
        sub(/^(include|lib|cmd)\//, "", name)
        if (name in included) print f
      }
    }' {include,lib,cmd,libexec}/**/*.[ch] /dev/null)
  for f in include/amp/**/*.h lib/**/*.h cmd/**/*.h libexec/**/*.h; do
    [ -z "${first[$f]-}" ] || continue
    printf '#include "%s"\n#include "%s"\n' "$PWD/$f" "$PWD/$f" |
      "${cc[@]}" -std=gnu11 -Iinclude -Ilib -Icmd -D_GNU_SOURCE -DAMP_VERSION='""' -Wall -Wextra -Werror \
        -Wno-unused-function -fsyntax-only -x c - >/dev/null 2>&1 ||
      finding "$f:1: does not compile alone"
  done
}

# calls FILES... -- NAMES WHAT: a finding for each call of one of the names (a regular expression).
calls() {
  local names what files=()
  while [ "$1" != -- ]; do
    files+=("$1")
    shift
  done
  names=$2 what=$3
  mapfile -t files < <(grep -lE "$names" "${files[@]}" /dev/null)
  code_of "${files[@]}" | awk -v names="(^|[^_[:alnum:]])($names)[ \t]*\\(" -v what="$what" '
    {
      at = $0
      sub(/^[^:]*:[0-9]*:/, "")
      if (!match($0, names)) next
      name = substr($0, RSTART, RLENGTH)
      gsub(/[^_[:alnum:]]/, "", name)
      match(at, /^[^:]*:[0-9]*:/)
      print substr(at, 1, RLENGTH) " " name ": " what
    }' | findings
}

check_banned() {
  calls include/**/*.h lib/**/*.[ch] cmd/**/*.[ch] libexec/**/*.[ch] -- \
    'strcpy|strcat|v?sprintf|gets|system|popen|strtok|ato[ifl]|atoll|strncpy|strncat|alloca|tmpnam|mktemp|asctime|ctime|localtime|gmtime|setjmp|longjmp' \
    'banned'
}

# A variable that is released at the end of its scope has a value from its declaration on: a return
# before its first use would release what was on the stack.
check_cleanup() {
  local macros files=(include/**/*.h lib/**/*.[ch] cmd/**/*.[ch] libexec/**/*.[ch] tests/**/*.c bench/*.c)
  # AMP_BUF and the like, also those that name the type (SESSION).
  macros=$(sed -nE 's/^#define ([A-Z_]+) +(AMP_CLEANUP\(|__attribute__\(\(cleanup).*/\1/p' "${files[@]}" </dev/null |
    sort -u | paste -sd'|')
  mapfile -t files < <(grep -lE "(^|[^_[:alnum:]])(${macros:=json_auto_t})|json_auto_t|CLEANUP\(" "${files[@]}" /dev/null)
  code_of "${files[@]}" | awk -v macros="$macros" '
    { at = $0; sub(/^[^:]*:[0-9]*:/, "") }
    /^[ \t]*#/ || /^[ \t]*DEFINE_/ { next }
    !open && $0 ~ "(^|[^_[:alnum:]])((" macros ")|json_auto_t|(AMP_)?CLEANUP[(][a-z_]+[)])[ \t]" {
      match(at, /^[^:]*:[0-9]*:/)
      open = substr(at, 1, RLENGTH)
      text = ""
    }
    open {
      text = text " " $0
      if (!index($0, ";")) next
      sub(/;.*/, "", text)
      # Commas inside of parentheses and braces separate no declarators.
      while (gsub(/[({][^(){}]*[)}]/, "", text)) {}
      n = split(text, part, ",")
      for (i = 1; i <= n; i++)
        if (part[i] !~ /=/) { print open " a cleanup variable without an initialiser"; break }
      open = ""
    }' | findings
}

# What the machines declare: an effect that nothing carries out and an event that nothing raises
# would make the printed table a lie. Where code records an event it takes its name from the machine.
check_machines() {
  local f code=()
  for f in lib/**/*.c cmd/**/*.c libexec/**/*.c; do
    case $f in *_fsm.c) ;; *) code+=("$f") ;; esac
  done
  {
    sed 's|/\*.*\*/||; s|//.*||' "${code[@]}" | grep -oE '\bAMP_[A-Z_]+_(DO|EV)_[A-Z_]+' | sort -u
    echo
    grep -HnoE '\bX\(AMP_[A-Z_]+_(DO|EV)_[A-Z_]+,( *"[a-zA-Z_]+")?' lib/**/*.h
    echo
    grep -lE '\bamp_[a-z]+_fsm\b' "${code[@]}" | xargs -r grep -HnoE '(->|\.)event = "[a-zA-Z_]+"'
  } | awk -F: '
    $0 == "" { part++; next }
    !part { named[$1] = 1; next }
    { split($3, word, "\"") }
    part == 1 {
      id = $3
      sub(/^X\(/, "", id)
      sub(/,.*/, "", id)
      if (id ~ /_EV_/) spelled[word[2]] = 1
      if (!(id in named)) {
        what = id ~ /_DO_/ ? "no code carries out this effect" : "no code raises this event"
        print $1 ":" $2 ": " id ": " what
      }
      next
    }
    word[2] in spelled { print $1 ":" $2 ": the name of an event comes from its machine" }' | findings
}

check_exits() {
  local f lib=()
  for f in lib/**/*.c; do
    case $f in lib/cli/*) ;; *) lib+=("$f") ;; esac
  done
  calls "${lib[@]}" -- 'exit|v?printf|puts|putchar|perror|v?fprintf|fputs|fputc|putc' \
    'only cli prints and exits'
}

check_processes() {
  local f lib=()
  for f in lib/**/*.c cmd/**/*.c; do
    [ "$f" = lib/base/process/child.c ] || lib+=("$f")
  done
  calls "${lib[@]}" -- 'exec[lv]p?e?|execvpe|fexecve|posix_spawnp?' 'only lib/base/process/child.c executes'
  # A helper may become another program, but nothing forks by itself. confine makes processes in new
  # namespaces, with the system call.
  calls "${lib[@]}" libexec/**/*.c -- 'v?fork|clone3?|daemon|forkpty' 'only lib/base/process/child.c forks'
}

check_caps() {
  local f n
  grep -Hc '' include/**/*.h lib/**/*.[ch] cmd/**/*.[ch] libexec/**/*.[ch] man/*.[157] /dev/null | while IFS=: read -r f n; do
    case $f in
    *.h) [ "$n" -le 150 ] || echo "note: $f: $n lines, a second subject? (150)" ;;
    *.c) [ "$n" -le 500 ] || echo "note: $f: $n lines, a second subject? (500)" ;;
    man/*) [ "$n" -le 260 ] || echo "note: $f: $n lines, a second page? (260)" ;;
    esac
    case ${f##*/} in util.* | utils.* | helpers.* | common.* | misc.*)
      finding "$f:1: a drawer is no room"
      ;;
    esac
  done
}

# A folder of more than 12 files or 2,500 lines may have a second subject.
check_folders() {
  grep -Hc '' lib/**/*.c cmd/**/*.c libexec/**/*.c /dev/null | awk -F: '
    { sub(/\/[^\/]*$/, "", $1); files[$1]++; lines[$1] += $2 }
    END {
      for (d in files)
        if (files[d] > 12 || lines[d] > 2500)
          print "note: " d ": " files[d] " files, " lines[d] " lines of C: a second subject? (12 files, 2500 lines)"
    }' | sort
}

# Each C file says first what it is for; no path of somebody's machine.
check_words() {
  local f start
  for f in lib/**/*.c cmd/**/*.c libexec/**/*.c; do
    IFS= read -r -N 2 start <"$f"
    case $start in '/*') ;; *) finding "$f:1: does not say what it is for" ;; esac
  done
  grep -nE '(^|[^[:alnum:]_.])/(home|work|root|Users)/[a-z]' -r include lib cmd libexec scripts man completions \
    examples README.md CONTRIBUTING.md docs 2>/dev/null |
    grep -v '^scripts/lint.sh' | sed 's|^\([^:]*:[0-9]*\):.*|\1: a path of one machine|' | findings
}

check_format() {
  command -v clang-format >/dev/null 2>&1 || {
    echo "note: clang-format is not installed"
    return
  }
  clang-format --dry-run include/**/*.h lib/**/*.[ch] cmd/**/*.[ch] libexec/**/*.[ch] \
    tests/**/*.[ch] 2>&1 | sed -n 's/^\([^:]*:[0-9]*\):[0-9]*: warning: code should be.*/\1: not as clang-format has it/p' |
    sort -u -t: -k1,1 | findings
}

check_shell() {
  command -v shellcheck >/dev/null 2>&1 || {
    echo "note: shellcheck is not installed"
    return
  }
  local f first list=()
  for f in scripts/* .ci/run tests/run tests/soak bench/* examples/**/* libexec/scripts/* share/**/* tests/**/*; do
    [ -f "$f" ] && read -rn 40 first <"$f" && [[ $first == '#!'*[/\ ]?(ba|da)sh ]] && list+=("$f")
  done
  [ ${#list[@]} -eq 0 ] || shellcheck -x -f gcc -S warning "${list[@]}" | findings
}

# built_names WHAT: in $names "NAME TYPE FILE" (without suffix) of each external name of the built objects. False
# where there is no complete build; then a note says that WHAT not checked.
names=
built_names() {
  local build=${BUILD_DIR:-build} f objects=()
  for f in lib/**/*.c cmd/**/*.c libexec/**/*.c; do
    # A program that only the build runs, and that has no object.
    [[ $f == libexec/confine-filters/* ]] && continue
    # An object that is older than its file says nothing about it.
    [ "$build/${f%.c}.o" -nt "$f" ] || {
      echo "note: $f has changed since the last build: $1 not checked"
      return 1
    }
    objects+=("$build/${f%.c}.o")
  done
  [ ${#objects[@]} -gt 0 ] || return
  [ -n "$names" ] ||
    names=$(nm -A -P -g "${objects[@]}" | sed "s|^$build/||; s|\.o:||" | awk '{ print $2, $3, $1 }')
}

# A file that serves one other file of its folder alone may be a part of it. Not counted are the verbs of a program,
# which its main.c calls, and what only a row of a table names, as in the tables of protocols and formats.
check_neighbours() {
  local f user name rows last=''
  built_names "files that serve one neighbour are" || return
  # "FILE USER NAME": what the one user takes from the file.
  awk '
    function folder(at) { sub(/\/[^\/]*$/, "", at); return at }
    $2 == "U" { n++; used[n] = $1; user[n] = $3; next }
    { homes[$1] = homes[$1] " " $3; type[$1, $3] = $2 }
    END {
      for (i = 1; i <= n; i++) {
        k = split(homes[used[i]], home, " ")
        for (j = 1; j <= k; j++) {
          # Programs may use one name for different things.
          if (home[j] == user[i] || (k > 1 && folder(home[j]) != folder(user[i]))) continue
          if (!((home[j], user[i]) in pair)) { pair[home[j], user[i]] = 1; users[home[j]]++; one[home[j]] = user[i] }
          if (type[used[i], home[j]] == "T") taken[home[j]] = taken[home[j]] " " used[i]
        }
      }
      for (f in taken)
        if (users[f] == 1 && folder(f) == folder(one[f]) && one[f] !~ /\/main$/ && f !~ /\/main$/) {
          k = split(taken[f], name, " ")
          for (j = 1; j <= k; j++) print f, one[f], name[j]
        }
    }' <<<"$names" | sort | while read -r f user name; do
    [ "$f" != "$last" ] || continue
    # A relocation in code is a call; one in data is a row of a table.
    rows=$(objdump -r "${BUILD_DIR:-build}/$user.o" | awk -v name="$name" '
      /^RELOCATION/ { code = /\[\.text/ }
      code { sub(/[-+]0x.*/, "", $3); if ($3 == name) { print "called"; exit } }')
    [ -n "$rows" ] || continue
    last=$f
    echo "note: $f.c serves only $user.c"
  done
}

# An external name is used by the program, beyond its own file or by tests too. The library's public
# names are for its users. Looks at the objects of the build, and at nothing where there is none.
check_external() {
  local f name headers=(include/amp/*.h include/amp/*/*.h)
  built_names "external names are" || return
  {
    echo "main - -"
    [ ${#headers[@]} -eq 0 ] || CC=$CC sh scripts/exports.sh "${headers[@]}" | sed 's/$/ - -/'
    echo "$names"
  } | awk '
    $2 == "-" || $2 == "U" { used[$1] = 1; next }
    { at[$1] = $3 }
    END { for (name in at) if (!(name in used)) print at[name] ".c", name }' | sort |
    while read -r f name; do
      # It replaces a function of a shared library.
      ! grep -q "__asm__(\"$name\")" "$f" || continue
      if [ "$(grep -cw "$name" "$f")" -le 1 ]; then
        echo "$f:$(grep -nwm1 "$name" "$f" | cut -d: -f1): $name: no program uses it"
      elif ! grep -qrw --include='*.c' "$name" tests bench; then
        echo "$f:$(grep -nwm1 "$name" "$f" | cut -d: -f1): $name: no other file uses it: static"
      fi
    done | findings
}

# A refusal has one exact status: a crash is a failure too. A suite is in the folder of a house, where tests/run finds it,
# and has a name of its own.
check_tests() {
  local f
  for f in tests/bats/*.bats tests/unit/*_test.c; do finding "$f:1: a suite is in the folder of its house"; done
  printf '%s\n' tests/{bats,unit}/*/*{.bats,_test.c} | awk -F/ 'name[$4]++ { print $0 ":1: two suites have this name" }' | findings
  grep -nE 'status"? (-ne|!=) "?0|(^|[[:space:]])run !' tests/bats/**/*.ba* |
    sed 's|^\([^:]*:[0-9]*\):.*|\1: a refusal is tested by its exact status (run -N)|' | findings
}

# A code is a word of lib/base/codes.h, which the compiler checks, and no text. Looks at members of this name, and at
# the functions of headers that take a code before any other text.
check_codes() {
  local takers files=({cmd,lib,libexec}/**/*.[ch]) headers=({cmd,lib,libexec,include}/**/*.h)
  takers=$(cat "${headers[@]}" | tr '\n' ' ' |
    grep -oP '\b\w+(?=\((?:(?!const char \*|[();{}]).)*const char \*code,)' | sort -u | paste -sd'|')
  grep -HozP "\b(?:${takers:-none})\((?:(?!AMP_CODE)[^;\"{}])*\"[a-z]+_\w+\"|[.>]code = \"\w+\"" "${files[@]}" |
    tr '\n\0' ' \n' | sed -n 's/^\([^:]*\):.*"\(\w*\)"$/\1: "\2" is a text: write AMP_CODE(\2)/p' | findings
}

# A name has one meaning: no two files define a struct, union, enum or macro of the same amp_ name, and no file defines
# a struct of the name of one in a header. Those of .c files are private: two of them may have one name.
check_names() {
  grep -noE '^((struct|union|enum) \w+ \{|#define AMP_\w+)' {include,lib,cmd,libexec}/**/*.h {lib,cmd,libexec}/**/*.c |
    sed 's/ {$//' | awk -F: '
      !($3 in first) && $1 ~ /c$/ && $3 !~ /^(#define|[a-z]+ amp_)/ { next }
      !($3 in first) { first[$3] = $1; next }
      first[$3] != $1 { print $1 ":" $2 ": " $3 ": also in " first[$3] }' | findings
}

checks=("$@")
[ ${#checks[@]} -gt 0 ] ||
  checks=(includes cycles kinds keys protocols carried headers banned shadows cleanup machines exits processes caps
    folders words names codes format shell external neighbours tests)
for c in "${checks[@]}"; do
  declare -F "check_$c" >/dev/null || {
    echo "lint: no check $c" >&2
    exit 64
  }
  "check_$c"
done
exit "$found"
