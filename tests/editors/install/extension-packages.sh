#!/usr/bin/env bash
# usage: extension-packages.sh FOLDER PYTHON   leaves FOLDER/node_modules, what builds and checks the VS Code extension.
# Needs the part node beside it.
set -euo pipefail
source "$(dirname "$0")/common.sh"
folder=$1
extension=$(cd "$(dirname "$0")/../../../editors/vscode" && pwd)
node=$(dirname "$1")/node
[ -x "$node/npm" ] || give_up "it needs Node, which could not be set up"
export PATH=$node:$PATH

cp "$extension"/{package.json,package-lock.json,.npmrc} "$folder"
cd "$folder"
npm ci || give_up "npm cannot install what the extension is built with"
