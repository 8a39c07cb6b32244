#!/usr/bin/env bash
# usage: all.sh FOLDER PYTHON   sets up the real editors that the tests drive, each in FOLDER/NAME.
#
# Owns which parts there are, and what is told about a part that this machine cannot have; knows nothing of how a part is made.
# PYTHON is the interpreter of the test environment. A part is made anew when its script, the shared one or the list of
# the extension's packages changes, otherwise a rerun is immediate. A part that fails leaves its reason in FOLDER/NAME.missing, where the tests that
# need it find it: they are skipped, and the set-up goes on.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
folder=$(mkdir -p "$1" && cd "$1" && pwd)
python=$2

# part: what is skipped without it
parts=(
  "node:the tests in VS Code and the checks of its extension"
  "extension-packages:the tests in VS Code and the checks of its extension"
  "chromium:the tests in VS Code"
  "code-server:the tests in VS Code"
  "neovim-0.12:the tests in Neovim 0.12"
  "neovim-0.11:the tests in Neovim 0.11"
  "helix:the test of the guide for Helix"
  "emacs:the test of the guide for Emacs"
  "luacheck:the check of the Neovim plugin's code"
)

# A network that answers nothing must not hold the tests up.
patience_s=600
limit=()
if command -v timeout > /dev/null; then limit=(timeout --kill-after=10 "$patience_s"); fi

warn() {
  local frame
  frame=$(printf '=%.0s' {1..100})
  printf '\n%s\n' "$frame" >&2
  printf '  %s\n' "$@" | fold -s -w 98 >&2
  printf '%s\n\n' "$frame" >&2
}

set_up() {
  local part=$1 skipped=$2 script=$here/$1.sh log=$folder/$1.log stamp version status=0
  version=$(cat "$script" "$here/common.sh" "$here/../../../editors/vscode/package-lock.json" | cksum)
  stamp=$folder/$part/installed
  if [ -f "$stamp" ] && [ "$(cat "$stamp")" = "$version" ]; then return; fi
  echo "Setting up $part for the tests in real editors"
  rm -rf "${folder:?}/$part" "$folder/$part.missing"
  mkdir -p "$folder/$part"
  ${limit[@]+"${limit[@]}"} bash "$script" "$folder/$part" "$python" > "$log" 2>&1 || status=$?
  if [ "$status" = 0 ]; then
    echo "$version" > "$stamp"
  else
    if [ "$status" = 124 ]; then echo "it was not ready after $patience_s s" >> "$log"; fi
    tail -n 1 "$log" > "$folder/$part.missing"
    warn "$part could not be set up, so these are SKIPPED: $skipped." \
      "Reason: $(cat "$folder/$part.missing")" "All that was said: $log"
  fi
}

for part in "${parts[@]}"; do set_up "${part%%:*}" "${part#*:}"; done
