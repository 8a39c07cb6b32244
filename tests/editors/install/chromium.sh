#!/usr/bin/env bash
# usage: chromium.sh FOLDER PYTHON   leaves FOLDER/chromium, the system's browser, installed where that may be done.
set -euo pipefail
source "$(dirname "$0")/common.sh"
folder=$1

for browser in chromium chromium-browser google-chrome; do
  if command -v "$browser"; then break; fi
done
command -v "$browser" || { browser=chromium && system_package chromium chromium fonts-dejavu-core; }
ln -s "$(command -v "$browser")" "$folder/chromium"
"$folder/chromium" --version || give_up "$browser does not run here"
