#!/usr/bin/env bash
# usage: all.sh FOLDER PYTHON   sets up the other programs that are timed at each key, each in FOLDER/NAME.
#
# Owns which parts there are; knows nothing of how a part is made.
# PYTHON is the interpreter of the test environment. A part is made anew when its script or the shared one changes,
# otherwise a rerun is immediate. A part that fails leaves its reason in FOLDER/NAME.missing.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
folder=$(mkdir -p "$1" && cd "$1" && pwd)
python=$2

parts=("llama-server:the tests of the keystroke benchmark with a real llama-server")
purpose="the keystroke benchmark"
made_from=("$here/../../../editors/install/common.sh")
patience_s=600

source "$here/../../../editors/install/parts.sh"
set_up_all
