# What every bats file loads: the programs of the build tree on PATH, and helpers that wait for
# things instead of sleeping.

bats_require_minimum_version 1.5.0
set -o pipefail

# bats notes where each command stands before it runs it. That takes longer than most commands do, 0.2 ms, and where
# the one stands that fails is known when it does. (--trace shows them all.)
if [ "${BATS_TRACE_LEVEL:-0}" -eq 0 ] && declare -F bats_debug_trap bats_error_trap bats_capture_stack_trace >/dev/null; then
  bats_debug_trap() { trap - DEBUG; }
  bats_error_trap() {
    bats_check_status_from_trap
    bats_capture_stack_trace
    BATS_DEBUG_LAST_STACK_TRACE_IS_VALID=1
  }
fi

# Nothing of the developer's own settings may reach a test.
for v in "${!AMP_@}"; do unset "$v"; done
# Not exported: AMP_* in the environment are the tools' settings.
AMP_TOP=${BATS_TEST_DIRNAME%/tests/*}
AMP_BUILD=${BUILD_DIR:-$AMP_TOP/build}
[[ $AMP_BUILD == /* ]] || AMP_BUILD=$(realpath -m "$AMP_BUILD")
export PATH="$AMP_BUILD/bin:$PATH"
# Most suites test other things than who said a message; the others unset this.
export AMP_IDENTITY=off
# Most suites are about mechanics; those about confinement unset this.
export AMP_CONFINE=off
export LC_ALL=C.UTF-8 TZ=UTC NO_COLOR=1
export XDG_CONFIG_HOME=$BATS_TEST_TMPDIR/no-config HOME=$BATS_TEST_TMPDIR
export GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_NOSYSTEM=1
export GIT_AUTHOR_NAME=tester GIT_AUTHOR_EMAIL=tester@example.org
export GIT_COMMITTER_NAME=tester GIT_COMMITTER_EMAIL=tester@example.org

# shellcheck source=tests/busy.bash
. "$AMP_TOP/tests/busy.bash"

# wait_until SECONDS COMMAND...: true as soon as the command is true. A limit of 10 s or more is reached by failures only, and
# is three times as long, since suites run side by side. On a busy machine a second counts for less (busy.bash).
wait_until() {
  local left=$((($1 < 10 ? $1 : 3 * $1) * 1000000)) never='' looked=${EPOCHREALTIME/[.,]/} began pause
  shift
  began=$looked
  until "$@" >/dev/null 2>&1; do
    busy
    left=$((left - (${EPOCHREALTIME/[.,]/} - began) * 100 / busy))
    began=${EPOCHREALTIME/[.,]/}
    [ "$left" -gt 0 ] || {
      echo "wait_until: never true: $*" >&2
      return 1
    }
    # Two times as long as the look took, so that looks that start programs do not hold up what they wait for; without a
    # process where that is possible.
    [ -n "$never" ] || pipe_open
    pause=$(((began - looked) * 2))
    printf -v pause '0.%06d' $((pause < 15000 ? 15000 : pause > 200000 ? 200000 : pause))
    read -rt "$pause" -u "$never" || [ $? -gt 128 ] || command sleep "$pause"
    looked=${EPOCHREALTIME/[.,]/}
  done
  [ -z "$never" ] || exec {never}>&-
}

# pipe_open: a pipe without a line, in never. (A process substitution would change $!.)
pipe_open() {
  local line
  exec {line}<<<x
  # A file where bash is older than 5.1.
  if [ -p "/dev/fd/$line" ]; then exec {never}<>"/dev/fd/$line"; else exec {never}</dev/null; fi
  read -ru "$line" _
  exec {line}<&-
}

# A limit of 10 s or more is reached by failures only: it is three times as long, and grows with what else the machine does.
# A shorter one is meant to be reached, and grows with TEST_SLOW only.
timeout() {
  local options=() limit
  while [[ $1 == -* ]]; do
    options+=("$1")
    [[ $1 != -[ks] ]] || { options+=("$2") && shift; }
    shift
  done
  limit=$1
  if [[ $limit =~ ^[0-9]{2,}$ ]]; then
    limit=$(patient $((3 * limit)))
  elif [ -n "${TEST_SLOW-}" ]; then
    limit=$(awk -v s="$limit" -v n="$TEST_SLOW" 'BEGIN { print s * n }')
  fi
  # A file may define functions of these names, also "command".
  env timeout "${options[@]}" "$limit" "${@:2}"
}

# ends STATUS COMMAND...: the command ends with this status. For commands whose output goes elsewhere; otherwise use `run -STATUS`.
ends() {
  local status=0
  "${@:2}" || status=$?
  [ "$status" -eq "$1" ] || {
    echo "ends: status $status, expected $1: ${*:2}" >&2
    return 1
  }
}

# gone PID: no such process any more (a zombie counts as gone).
gone() {
  [ ! -e "/proc/$1" ] || grep -q '^State:[[:space:]]*[ZX]' "/proc/$1/status" 2>/dev/null
}

# quiet TRACE SECONDS: nothing was added to the trace of strace for so long, and its last line is a wait.
# Whoever looks now and then is never quiet; a loaded machine delays only when it begins.
quiet() {
  local size
  size=$(stat -c %s "$1") || return 1
  command sleep "$2"
  [ "$size" -gt 0 ] && [ "$(stat -c %s "$1")" -eq "$size" ] && tail -n 1 "$1" | grep -qE 'poll|select|read|wait|futex|flock|fcntl'
}

# has_lines FILE N: the file has at least N lines.
has_lines() {
  [ -f "$1" ] && [ "$(wc -l <"$1")" -ge "$2" ]
}

# need COMMAND...: skips the test when one is absent.
need() {
  local c
  for c in "$@"; do
    command -v "$c" >/dev/null 2>&1 || skip "$c is not installed"
  done
}

# need_tool TOOL...: fails the test when a tool of ours is not built.
need_tool() {
  local c
  for c in "$@"; do
    [ -x "$AMP_BUILD/bin/$c" ] || {
      echo "$c is not built" >&2
      return 1
    }
  done
}

# native REASON: skips the test where the programs run in a sanitizer or under valgrind, which take
# the place of what a shim replaces, or need more than a limit allows.
native() {
  ! grep -q fsanitize "$AMP_BUILD/flags" || skip "in a sanitizer: $1"
  not_under_valgrind "$1"
}

# not_under_valgrind REASON: skips the test in tests/valgrind/run.
not_under_valgrind() {
  [ ! -e "$AMP_BUILD/valgrind" ] || skip "under valgrind: $1"
}

# repo DIR: a new git repository on branch main with one commit.
repo() {
  git init -q -b main "$1"
  git -C "$1" commit -q --allow-empty -m start
}

# make_same ARG...: make on the build under test, with the variables that it was made with, so that
# nothing is made again.
make_same() {
  local flags vars=()
  flags=$(cat "$AMP_BUILD/flags")
  vars=(BUILD="${AMP_BUILD#"$AMP_TOP"/}" CC="${flags%% -*}")
  [[ $flags == *-Werror* ]] && vars+=(DEVELOPER=1)
  [[ $flags == *" -g1 "* ]] && vars+=(DEBUG=-g1)
  [[ $flags =~ -fsanitize=([a-z,]+) ]] && vars+=(SANITIZE="${BASH_REMATCH[1]}")
  env -u MAKEFLAGS -u MFLAGS -u MAKELEVEL make -s -C "$AMP_TOP" "${vars[@]}" "$@"
}
