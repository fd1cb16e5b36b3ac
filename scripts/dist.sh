#!/bin/sh
# dist.sh NAME FILE: writes the files of the project as FILE (.tar.gz), under the folder NAME.
#
# In a git checkout the files are those that git tracks, as they are in the worktree, and their time is
# the commit's. Without git they are all files but those of a build, and their time is the newest one:
# an unpacked tarball gives the same tarball. SOURCE_DATE_EPOCH overrides the time. Owner, group, mode and
# order are always the same.
set -eu
name=$1
out=$2
top=$(pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

if [ -e .git ] && [ "$(git rev-parse --show-toplevel 2>/dev/null)" = "$(pwd -P)" ]; then
  # What was deleted and not yet committed is listed, but not there.
  git ls-files -z | tr '\0' '\n' | while IFS= read -r f; do
    if [ -e "$f" ] || [ -L "$f" ]; then printf '%s\n' "$f"; fi
  done >"$work/list"
  epoch=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct)}
  [ -z "$(git status --porcelain --untracked-files=no)" ] ||
    echo "dist: note: the worktree differs from the commit" >&2
else
  find . \( -type d \( -name .git -o -path './build*' -o -path './debian/tmp' -o -path './debian/.debhelper' \
    -o -path './debian/amp-tools' -o -path './debian/amp-tools-doc' -o -path './debian/libamp0' \
    -o -path './debian/libamp-dev' \) -prune \) -o \( -type f -o -type l \) \
    ! -path './debian/files' ! -path './debian/*.substvars' ! -path './debian/*.debhelper*' -print |
    sed 's|^\./||' >"$work/list"
  epoch=${SOURCE_DATE_EPOCH:-$(tr '\n' '\0' <"$work/list" | xargs -0 stat -c %Y -- | sort -n | tail -n 1)}
fi
[ -s "$work/list" ] || {
  echo "dist: no files found in $top" >&2
  exit 70
}

LC_ALL=C sort -u "$work/list" | tar -c --format=gnu --owner=0 --group=0 --numeric-owner \
  --mtime="@$epoch" --mode='u+rw,go=rX,a-s' --no-recursion --transform "s|^|$name/|S" --verbatim-files-from \
  -T - -f "$work/tar"
gzip -n9 <"$work/tar" >"$out.part"
mv "$out.part" "$out"
echo "$out"
