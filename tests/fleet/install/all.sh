#!/usr/bin/env bash
# usage: all.sh FOLDER PYTHON [PART]   sets up the real servers that the tests of a fleet run, each in FOLDER/NAME; or one.
#
# Owns which parts there are; knows nothing of how a part is made.
# PYTHON is the interpreter of the test environment. A part is made anew when its script, the shared one or the list of
# vLLM's packages changes, otherwise a rerun is immediate. A part that fails leaves its reason in FOLDER/NAME.missing,
# where the tests that need it find it: they are skipped, and the set-up goes on.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
folder=$(mkdir -p "$1" && cd "$1" && pwd)
python=$2

# part: what is skipped without it
parts=(
  "haproxy:the tests of a fleet behind HAProxy"
  "vllm:the tests of a fleet of vLLM replicas"
)
if [ $# -gt 2 ]; then
  for part in "${parts[@]}"; do if [ "${part%%:*}" = "$3" ]; then parts=("$part"); fi; done
fi
purpose="the tests of a fleet"
made_from=("$here/../../editors/install/common.sh" "$here/vllm.txt")
patience_s=1800

source "$here/../../editors/install/parts.sh"
set_up_all
