#!/usr/bin/env bash
# An interpreter for ARM that runs here in qemu's user mode, with what the locks name: setup.sh FOLDER UV_PYTHON
# What is fetched stays in FOLDER, nothing is installed. Needs Debian's or Ubuntu's apt and no rights.
# Leaves FOLDER/python, or says why not and ends with 77.
set -euo pipefail

folder=$(mkdir -p "$1" && cd "$1" && pwd)
installer=$2
root=$(cd "$(dirname "$0")/../.." && pwd)
# The newest public build of torch for ARM without parts for GPUs, which are several GB.
torch=2.10.0
version=3.11

skip() {
    echo "Nothing is tested on ARM here: $1." >&2
    exit 77
}

[ -x "$folder/python" ] && exit 0
for program in apt-get dpkg-deb; do
    command -v $program >/dev/null || skip "$program is missing, which fetches qemu and an interpreter"
done

fetch() { # architecture, package...
    local place=$folder/apt/$1 architecture=$1
    shift
    mkdir -p "$place/lists/partial" "$place/archives/partial" "$place/found"
    local options=(-q=2 -o APT::Architecture="$architecture" -o APT::Architectures="$architecture"
        -o Dir::State::Lists="$place/lists" -o Dir::Cache="$place" -o Dir::State::Status=/dev/null
        -o APT::Sandbox::User=root)
    apt-get "${options[@]}" update && (cd "$place/found" && apt-get "${options[@]}" download "$@")
    for package in "$place"/found/*.deb; do dpkg-deb -x "$package" "$folder/$architecture"; done
}

emulator=$(command -v qemu-aarch64-static || command -v qemu-aarch64 || true)
if [ -z "$emulator" ]; then
    fetch "$(dpkg --print-architecture)" qemu-user-static || skip "qemu cannot be fetched"
    emulator=$folder/$(dpkg --print-architecture)/usr/bin/qemu-aarch64-static
fi
fetch arm64 python$version-minimal libpython$version-minimal libpython$version-stdlib libc6 libgcc-s1 libstdc++6 \
    libgomp1 libexpat1 zlib1g libssl3 libffi8 libbz2-1.0 liblzma5 libsqlite3-0 libuuid1 libcrypt1 ||
    skip "Python $version for ARM cannot be fetched"

into=(--quiet --python "$installer" --python-platform aarch64-manylinux_2_28 --python-version $version
    --target "$folder/site" --no-deps --only-binary :all:)
uv=("$installer" -m uv pip install "${into[@]}")
"${uv[@]}" --require-hashes --requirement "$root/requirements.lock"
# Of the tools for tests only what runs them: some have no wheel for ARM.
tools=$(grep -oE '^(pytest|pytest-asyncio|pytest-timeout|pytest-xdist|hypothesis|iniconfig|execnet|sortedcontainers|pluggy)==[^ ]+' \
    "$root"/requirements-test.lock "$root"/requirements-build.lock | sed 's/.*lock://')
# shellcheck disable=SC2086 # one word each
"${uv[@]}" $tools
"$installer" -m pip download --quiet --dest "$folder/wheels" --no-deps --only-binary :all: --implementation cp \
    --python-version $version --platform manylinux_2_28_aarch64 torch==$torch
"$installer" -m zipfile -e "$folder"/wheels/torch-*.whl "$folder/site"

# Children are started as the emulated interpreter too, which the kernel here cannot run by itself.
cat > "$folder/site/sitecustomize.py" <<P
import os
import sys
from contextlib import suppress
from importlib.machinery import PathFinder
from importlib.util import module_from_spec

sys.executable = "$folder/python"
if "SLIPSTREAM_AHEAD" in os.environ:
    with suppress(ImportError):  # a test may start one that does not find the tests
        from tests.aarch64 import borrowing

        borrowing.install()
# A test's own comes too, as it would without this one; a child's path names this folder twice.
others = [path for path in os.environ.get("PYTHONPATH", "").split(os.pathsep) if path != "$folder/site"]
if (spec := PathFinder.find_spec("sitecustomize", others)) and spec.loader:
    spec.loader.exec_module(module_from_spec(spec))
P
# Modules are compiled once for all of them, apart from the ones of the machine below.
cat > "$folder/unfinished" <<P
#!/usr/bin/env bash
unset PYTHONDONTWRITEBYTECODE
export PYTHONPYCACHEPREFIX="$folder/bytecode"
export PYTHONPATH="$folder/site\${PYTHONPATH:+:\$PYTHONPATH}" XDG_CACHE_HOME="$folder/cache"
exec "$emulator" -cpu max -L "$folder/arm64" "$folder/arm64/usr/bin/python$version" "\$@"
P
chmod +x "$folder/unfinished"
"$folder/unfinished" -c 'import platform, torch; print("Ready:", platform.machine(), torch.__version__)'
mv "$folder/unfinished" "$folder/python"
