#!/usr/bin/env bash
# usage: luacheck.sh FOLDER PYTHON   leaves FOLDER/luacheck, the system's, installed where that may be done.
set -euo pipefail
source "$(dirname "$0")/common.sh"

system_package luacheck lua-check
ln -s "$(command -v luacheck)" "$1/luacheck"
"$1/luacheck" --version || give_up "luacheck does not run here"
