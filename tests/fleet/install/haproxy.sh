#!/usr/bin/env bash
# usage: haproxy.sh FOLDER PYTHON   leaves FOLDER/haproxy, Debian testing's HAProxy with its own libraries.
set -euo pipefail
source "$(dirname "$0")/../../editors/install/common.sh"
folder=$1
patchelf=$(dirname "$2")/patchelf

testing_program haproxy "$folder/root"
base=$folder/root/usr
rm -rf "$base"/share/{doc,locale}
own_libraries "$patchelf" "$folder/root" "$base/sbin/haproxy"
wrapper "$folder/haproxy" "exec '$base/sbin/haproxy' \"\$@\""
"$folder/haproxy" -v || give_up "HAProxy does not run here"
