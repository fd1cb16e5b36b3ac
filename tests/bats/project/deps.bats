# Installing what the build needs, with stand-ins for Debian's programs.
# static
load ../lib

setup() {
  cd "$BATS_TEST_TMPDIR"
  mkdir bin
  # Installed: what is listed in ./installed. Installing works after an update of the lists.
  stand_in dpkg-query 'shift 2; for p; do grep -qx "$p" installed && echo "$p install ok installed"; done; true'
  stand_in apt-get 'echo "apt-get $*" >>calls
    case $1 in
    update) touch updated ;;
    install) [ -e updated ] || { echo "no package lists"; exit 100; }
      for a; do case $a in -* | install) ;; broken) exit 100 ;; *) echo "$a" >>installed ;; esac; done ;;
    esac'
  stand_in sudo 'echo "sudo $*" >>calls; exec "$@"'
  stand_in id 'echo "${FAKE_UID:-0}"'
  echo gcc >installed
  : >calls
  # Only what the script may use.
  for p in sh grep sed sort mkdir mv rm mktemp cat env touch true; do
    ln -s "$(command -v "$p")" bin/
  done
}

stand_in() {
  printf '#!/bin/sh\n%s\n' "$2" >"bin/$1"
  chmod +x "bin/$1"
}

deps() {
  PATH=$PWD/bin sh "$AMP_TOP/scripts/deps.sh" "$@"
}

@test "check names what is missing and installs nothing" {
  run -1 deps check gcc make
  [[ "$output" == *"missing packages: make"* ]]
  [[ "$output" == *"apt-get install make"* ]]
  [ ! -s calls ]
}

@test "check asks once: what was complete stays complete, a longer list is asked again" {
  run -0 deps check gcc
  : >installed
  run -0 deps check gcc
  run -1 deps check gcc make
}

@test "as root it installs, refreshing the package lists when it must" {
  run -0 deps install gcc make git
  [ "$(grep -c install calls)" -eq 2 ]
  [ "$(grep -c update calls)" -eq 1 ]
  run -1 grep -q sudo calls
  run -1 grep -q ' gcc' calls
  run -0 deps check gcc make git
}

@test "as a user it goes through sudo" {
  FAKE_UID=1000 run -0 deps install make
  grep -q '^sudo env DEBIAN_FRONTEND=noninteractive apt-get install' calls
}

@test "with neither it says what to do" {
  rm bin/sudo
  FAKE_UID=1000 run -1 deps ensure make
  [[ "$output" == *"as root: apt-get install make"* ]]
  [ ! -s calls ]
}

@test "nothing missing: nobody needs root" {
  rm bin/sudo
  FAKE_UID=1000 run -0 deps ensure gcc
  [ ! -s calls ]
}

@test "a package that cannot be had is named, with what apt said" {
  run -1 deps install broken
  [[ "$output" == *"cannot install: broken"* ]]
}

@test "not Debian: it says so and lets the build try" {
  rm bin/dpkg-query
  run -0 deps check gcc
  [[ "$output" == *"not a Debian system"* ]]
}
