#!/bin/sh
# deb.sh TARBALL DIR: builds the Debian packages out of a tarball of the project; DIR has them afterwards,
# with .dsc, .changes and .buildinfo. It needs no network and no root, and writes only to DIR.
#
# DEB_BUILD_OPTIONS and DEB_BUILD_PROFILES work as everywhere (nocheck, nodoc). Built again from the same
# tarball, the packages are the same, byte for byte.
set -eu
tarball=$(realpath "$1")
out=$2

missing=
for p in dpkg-buildpackage dh cmark-gfm mandoc; do
  command -v "$p" >/dev/null 2>&1 || missing="$missing $p"
done
[ -z "$missing" ] || {
  echo "deb: missing:$missing; apt-get install build-essential cmark-gfm debhelper mandoc" >&2
  exit 69
}

# The source package has the modes of the directories.
umask 022
rm -rf "$out"
mkdir -p "$out/source"
out=$(realpath "$out")
tar -xzf "$tarball" -C "$out/source" --strip-components=1
# The environment of a make above is not that of the package.
unset MAKEFLAGS MFLAGS MAKELEVEL MAKEOVERRIDES BUILD DEVELOPER SANITIZE CFLAGS CPPFLAGS LDFLAGS OPT CC V || :
cd "$out/source"
dpkg-buildpackage -us -uc -j"$(nproc)" >"$out/log" 2>&1 || {
  tail -n 40 "$out/log" >&2
  echo "deb: dpkg-buildpackage failed; see $out/log" >&2
  exit 70
}
cd ..
rm -rf source
ls ./*.deb
