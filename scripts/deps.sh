#!/bin/sh
# Dependencies as Debian packages: check PKG... | ensure PKG... | install PKG...
set -u
mode=$1
shift

missing() {
  for p in "$@"; do
    dpkg-query -W -f='${Status}\n' "$p" 2>/dev/null | grep -q '^install ok installed' || printf '%s ' "$p"
  done
}

# The check before a build is only a marker file, so that make stays quick.
stamp=build/deps-ok
case $mode in
check)
  [ -f "$stamp" ] && exit 0
  ;;
esac

command -v dpkg-query >/dev/null 2>&1 || {
  echo "deps: not a Debian system; the build needs the equivalents of: $*" >&2
  exit 0
}
want=$(missing "$@")
if [ -z "$want" ]; then
  mkdir -p build && : >"$stamp"
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
  echo "missing packages, and neither root nor sudo: apt-get install $want" >&2
  exit 1
fi
export DEBIAN_FRONTEND=noninteractive
# shellcheck disable=SC2086
$as apt-get install -y -q --no-install-recommends $want >/dev/null 2>&1 || {
  $as apt-get update -q >/dev/null && $as apt-get install -y -q --no-install-recommends $want >&2
} || exit 1
mkdir -p build && : >"$stamp"
