#!/usr/bin/env bash
# usage: llama-server.sh FOLDER PYTHON   leaves FOLDER/llama-server and FOLDER/llama-bench, Debian testing's llama.cpp with
# its own libraries. They run the kernels that were built for this machine's processor; those with -avx2 have those for AVX2 alone.
set -euo pipefail
source "$(dirname "$0")/../../../editors/install/common.sh"
folder=$1
patchelf=$(dirname "$2")/patchelf

testing_program llama.cpp-tools "$folder/root"
libraries=$folder/root/usr/lib/x86_64-linux-gnu
rm -rf "$folder/root"/usr/share/{doc,locale}
mv "$libraries"/llama/*.so "$libraries"

# llama.cpp looks for the kernels of each processor beside its program, and takes the fastest that runs.
# program_with NAME PROGRAM KERNELS...   leaves FOLDER/NAME, a PROGRAM that has these kernels to choose from
program_with() {
  local name=$1 program=$2 own=$folder/$1-program
  shift 2
  mkdir "$own"
  cp "$folder/root/usr/bin/$program" "$@" "$own"
  own_libraries "$patchelf" "$folder/root" "$own/$program"
  # Debian's libraries look for each other under /usr/lib, so the path has to come from the environment.
  wrapper "$folder/$name" "LD_LIBRARY_PATH='$libraries' exec '$own/$program' \"\$@\""
  "$folder/$name" --help > "$own/help" || give_up "$name does not run here"
}

for program in llama-server llama-bench; do
  program_with "$program" "$program" "$libraries"/ggml/backends0/libggml-cpu-*.so
  program_with "$program-avx2" "$program" "$libraries/ggml/backends0/libggml-cpu-haswell.so"
done
