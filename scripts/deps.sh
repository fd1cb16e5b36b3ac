#!/bin/sh
# Dependencies as Debian packages: check PKG... | ensure PKG... | install PKG...
# "check" only looks, and only once for a list; the others install what is missing.
set -u
mode=$1
shift
stamp=build/deps-ok

if ! command -v dpkg-query >/dev/null 2>&1; then
  echo "deps: not a Debian system; the build needs the equivalents of: $*" >&2
  exit 0
fi

# All of them are in the list that was found complete before: nothing to ask.
known() {
  [ -f "$stamp" ] || return 1
  for p in "$@"; do
    grep -qxF "$p" "$stamp" || return 1
  done
}
[ "$mode" = check ] && known "$@" && exit 0

missing() {
  # shellcheck disable=SC2016  # the format is dpkg-query's
  have=$(dpkg-query -W -f='${Package} ${Status}\n' "$@" 2>/dev/null |
    sed -n 's/ install ok installed$//p')
  for p in "$@"; do
    printf '%s\n' "$have" | grep -qxF "$p" || printf '%s ' "$p"
  done
}

note() {
  mkdir -p build
  { [ -f "$stamp" ] && cat "$stamp"; printf '%s\n' "$@"; } | sort -u >"$stamp.new.$$"
  mv "$stamp.new.$$" "$stamp"
}

want=$(missing "$@")
if [ -z "$want" ]; then
  note "$@"
  exit 0
fi
if [ "$mode" = check ]; then
  echo "missing packages: $want" >&2
  echo "run 'make deps' (as root or with sudo), or: apt-get install $want" >&2
  exit 1
fi
if [ "$(id -u)" -eq 0 ]; then
  as=
elif command -v sudo >/dev/null 2>&1; then
  as=sudo
else
  echo "missing packages, and neither root nor sudo; as root: apt-get install $want" >&2
  exit 1
fi

echo "installing: $want" >&2
# The front end's variable goes through env, for sudo drops the environment.
install() {
  # shellcheck disable=SC2086  # both are lists of words
  $as env DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends $want
}
log=$(mktemp) || exit 1
trap 'rm -f "$log"' EXIT
# A fresh system has no package lists yet: then the first try fails.
refresh_and_install() {
  $as apt-get update -q && install
}
if ! install >"$log" 2>&1 && ! refresh_and_install >"$log" 2>&1; then
  cat "$log" >&2
  echo "cannot install: $want" >&2
  exit 1
fi
note "$@"
