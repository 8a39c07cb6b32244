#!/usr/bin/env bash
# usage: code-server.sh FOLDER PYTHON   leaves FOLDER/code-server: VS Code's workbench and extension host behind a web server.
# Needs the part node beside it.
set -euo pipefail
source "$(dirname "$0")/common.sh"
folder=$1
node=$(dirname "$1")/node
[ -x "$node/npm" ] || give_up "it needs Node, which could not be set up"
export PATH=$node:$PATH

cd "$folder"
echo '{"private": true}' > package.json
# Install scripts would build native modules, all of which the tests do without.
npm install --no-save --ignore-scripts code-server@4.139.1 || give_up "npm cannot install code-server"
cd node_modules/code-server/lib/vscode
npm install --omit=dev --ignore-scripts || give_up "npm cannot install what VS Code needs"
npm install --prefix extensions --omit=dev --ignore-scripts || give_up "npm cannot install what VS Code's own extensions need"
wrapper "$folder/code-server" "exec '$node/node' '$folder/node_modules/code-server/out/node/entry.js' \"\$@\""
"$folder/code-server" --version || give_up "code-server does not run here"
