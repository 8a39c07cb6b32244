#!/usr/bin/env bash
# usage: all.sh FOLDER PYTHON   sets up the real editors that the tests drive, each in FOLDER/NAME.
#
# Owns which parts there are; knows nothing of how a part is made.
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
purpose="the tests in real editors"
made_from=("$here/common.sh" "$here/../../../editors/vscode/package-lock.json")
patience_s=600

source "$here/parts.sh"
set_up_all
