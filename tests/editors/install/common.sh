# Owns what several parts need: giving up with a reason, a system package, and a program of Debian testing
# that brings its own libraries, libc included, so that the system stays as it is and its age does not matter.
# Sourced, never run.

# Debian's name of the testing release that these programs are taken from; it stays when the release is stable.
TESTING=forky

# The last line that a part says is the reason that people read.
give_up() {
  echo "$*" >&2
  exit 1
}

trap 'give_up "line $LINENO of $(basename "$0") failed: $BASH_COMMAND"' ERR

# system_package PROGRAM PACKAGE...   installs PACKAGEs unless PROGRAM is there already
system_package() {
  local program=$1
  shift
  if command -v "$program"; then return; fi
  command -v apt-get || give_up "$program is not installed and there is no apt-get to install $* with"
  [ "$(id -u)" = 0 ] || give_up "$program is not installed; as root, run: apt-get install $*"
  apt-get -q update || true
  apt-get -q install -y --no-install-recommends "$@" || give_up "apt-get cannot install $*"
}

# testing_program PACKAGE FOLDER   unpacks PACKAGE and all it depends on under FOLDER
testing_program() {
  local package=$1 folder=$2 apt=$2/apt mirror archive
  [ "$(uname -m)" = x86_64 ] || give_up "$package of Debian $TESTING is only used on x86_64, this is $(uname -m)"
  command -v dpkg-deb && command -v apt-get || give_up "$package is taken from Debian, this system has no apt-get"
  # The mirror of this system's own release has the testing release too.
  mirror=$(apt-get indextargets --format '$(RELEASE) $(REPO_URI)' 'Created-By: Packages' |
    sed -n "s/^$(. /etc/os-release && echo "$VERSION_CODENAME") //p" | head -n 1)
  [ -n "$mirror" ] || give_up "apt names no mirror of Debian to take $package from"
  mkdir -p "$apt"/{lists/partial,cache/archives/partial,parts}
  # With no package marked as installed, the libraries down to libc are part of what is fetched.
  : > "$apt/status"
  echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $mirror $TESTING main" > "$apt/sources.list"
  printf '%s "%s";\n' \
    Dir::State "$apt" Dir::State::lists "$apt/lists" Dir::State::status "$apt/status" Dir::Cache "$apt/cache" \
    Dir::Etc::sourcelist "$apt/sources.list" Dir::Etc::sourceparts "$apt/parts" \
    Dir::Etc::preferencesparts "$apt/parts" Acquire::Languages none APT::Sandbox::User root > "$apt/apt.conf"
  apt-get -q -c "$apt/apt.conf" update || give_up "apt-get cannot read the package lists of Debian $TESTING"
  apt-get -q -c "$apt/apt.conf" install -y --no-install-recommends --download-only "$package" ||
    give_up "apt-get cannot fetch $package of Debian $TESTING"
  for archive in "$apt"/cache/archives/*.deb; do dpkg-deb -x "$archive" "$folder"; done
  rm -rf "$apt"
}

# own_libraries PATCHELF ROOT PROGRAM   makes PROGRAM use the loader and the libraries under ROOT
own_libraries() {
  local libraries=$2/usr/lib/x86_64-linux-gnu
  "$1" --set-interpreter "$libraries/ld-linux-x86-64.so.2" --set-rpath "$libraries" --force-rpath "$3"
}

# wrapper FILE LINE...   a program FILE that consists of these lines of shell
wrapper() {
  local file=$1
  shift
  printf '%s\n' '#!/bin/sh' "$@" > "$file"
  chmod +x "$file"
}
