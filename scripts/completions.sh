#!/bin/sh
# install|uninstall SHARE ZSH TOOL...: puts the completions of the tools under SHARE, those for zsh into
# the directory ZSH, or takes them away.
set -eu
mode=$1
share=$2
zsh=$3
shift 3
src=$(dirname "$0")/../completions
bash=$share/bash-completion/completions
fish=$share/fish/vendor_completions.d

case $mode in
install)
  install -d "$bash" "$zsh" "$fish"
  for t in "$@"; do
    install -m 644 "$src/amp-tools.bash" "$bash/$t"
    sed "s/@TOOL@/$t/" "$src/_amp-tools" >"$zsh/_$t"
    sed "s/@TOOL@/$t/" "$src/amp-tools.fish" >"$fish/$t.fish"
    chmod 644 "$zsh/_$t" "$fish/$t.fish"
  done
  ;;
uninstall)
  for t in "$@"; do
    rm -f "$bash/$t" "$zsh/_$t" "$fish/$t.fish"
  done
  ;;
*)
  echo "usage: completions.sh install|uninstall SHARE ZSH TOOL..." >&2
  exit 64
  ;;
esac
