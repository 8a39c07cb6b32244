"""File names: kinds of files, names of secrets, paths relative to a folder, and real paths: one for a file,
however it is spelled.

For a real path, links are followed, bind mounts are undone (Linux), and names get the case that the disk has.
It reads the disk, so it may wait; all else reads none.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from fnmatch import translate
from itertools import islice
from pathlib import Path, PurePath, PurePosixPath

_GENERATED = (".min.js", ".min.css", ".map", ".bundle.js", "_pb2.py", ".pb.go", ".snap")
_SECRET_NAMES = (
    ".env", ".env.*", ".env[-_]*", "*.env", ".envrc", "*.pem", "*.key", "*.p12", "*.pfx", "*.p8",
    "*.jks", "*.keystore", "*.kdb", "*.kdbx", "*.ppk", "*.gpg", "*.pgp", "*.asc", "*.crt", "*.cer",
    "*.der", "*.csr", "*.ovpn", "*.mobileprovision", "*.tfvars", "*.tfvars.json", "*.tfstate",
    "*.tfstate.*", "id_rsa*", "id_dsa*", "id_ecdsa*", "id_ed25519*", "*_rsa", "*_ed25519",
    "known_hosts", "authorized_keys", ".netrc", "_netrc", ".npmrc", ".yarnrc.yml", ".pypirc", ".pgpass",
    ".my.cnf", ".s3cfg", ".boto", ".dockercfg", ".dockerconfigjson", ".git-credentials", ".htpasswd",
    "htpasswd", ".vault-token", ".rediscli_auth", "kubeconfig", "*.kubeconfig", "credentials",
    "credentials.*", "*credentials.json", "*.credentials", "*-credentials.*", "*_credentials.json",
    "client_secret*", "secrets", "secrets.*", "*.secrets", "secret.*", "*.secret", "service-account*.json",
    "service_account*.json", "serviceaccount*.json", "*service-account*.json", "google-services.json",
    "master.key",
    "wp-config.php", "*.keytab", "*.sops.*", ".bash_history", ".zsh_history", ".python_history",
    ".node_repl_history", ".psql_history", "terraform.rc", ".terraformrc", "passwd",
    "shadow", ".vault_pass*", ".vault-pass*", "pgpass.conf", "wg[0-9]*.conf", "wpa_supplicant*.conf",
    "*.nmconnection", "gha-creds-*.json", "auth.json", "wallet.dat", "rootkey.csv", "*accesskeys.csv",
    "*.publishsettings", "logins.json", "settings-security.xml", ".databrickscfg", "*.jwk", "*.agekey",
)  # fmt: skip
_SECRET_FREE = re.compile(
    r"\.env(?:[._-]\w+)*\.(?:example|sample|template|dist)"
)  # committed, with no values
_SECRET_CODE = frozenset({"wp-config.php"})
_SECRET_FOLDERS = frozenset({
    ".aws", ".azure", ".docker", ".gcloud", ".gnupg", ".kube", ".password-store", ".secrets", ".ssh",
    ".terraform", "credentials", "secrets",
})  # fmt: skip
# No system opens a longer path, and searching it would take quadratic time.
MAX_PATH_CHARS = 4096
MAX_MOUNT_BYTES = 1 << 20
MAX_ENTRIES = 20_000  # entries that are searched for the spelling of a name in its folder
_MOUNTS = Path("/proc/self/mountinfo")
_ESCAPED = re.compile(rb"\\([0-7]{3})")


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


class FileKind(Enum):
    """The kind of a file, by its name."""

    SOURCE = "source"
    DATA = "data"
    GENERATED = "generated"
    UNKNOWN = "unknown"


_EXTENSIONS = _words(
    """py pyi pyx pxd ipy c h cc cpp cxx hh hpp hxx ipp inl cu cuh m mm go rs java kt kts scala sc groovy
    gradle js jsx mjs cjs ts tsx mts cts vue svelte astro cs fs fsx vb php rb erb rake lua pl pm r jl
    swift dart ex exs erl hrl clj cljs cljc hs lhs ml mli elm nim zig v sv vhd vhdl d pas f f90 f95 for
    asm s sql sh bash zsh fish ps1 psm1 bat cmd vim el lisp scm rkt tcl html htm css scss sass less styl
    graphql gql proto thrift cmake mk bzl star nix tf hcl sol wgsl glsl hlsl vert frag metal tex rst md
    markdown adoc txt"""
)
_DATA_EXTENSIONS = _words("json jsonc json5 yaml yml toml ini cfg conf xml properties")
_NAMES = _words(
    """makefile gnumakefile dockerfile containerfile jenkinsfile vagrantfile rakefile gemfile podfile
    procfile justfile cmakelists.txt build workspace readme license codeowners"""
)
_LOCK_FILES = _words(
    """package-lock.json npm-shrinkwrap.json pnpm-lock.yaml yarn.lock poetry.lock uv.lock pdm.lock
    pipfile.lock cargo.lock go.sum gemfile.lock composer.lock mix.lock flake.lock packages.lock.json"""
)
TOOL_FOLDERS = _words(
    """.git .hg .svn .bzr node_modules bower_components __pycache__ .venv venv site-packages .tox .nox
    .eggs .mypy_cache .pytest_cache .ruff_cache .hypothesis .gradle .idea .vs .next .nuxt .cache
    .terraform"""
)
_SECRET_STEMS = _words(
    "*[-_.]secret *[-_.]secrets password passwords *[-_.]password *[-_.]passwords *kubeconfig *vault_pass"
    " *vault-pass *private_key *private-key api_key api_keys api-keys *[-_]credentials"
)
_SECRET_DATA = _DATA_EXTENSIONS | {"txt", "csv", "list"}
_SECRET_NAME = re.compile(
    "|".join(map(translate, [*_SECRET_NAMES, *(f"{a}.{b}" for a in _SECRET_STEMS for b in _SECRET_DATA)]))
)
# Source code named after secrets handles them; prose and data named after secrets contain them.
_CODE_EXTENSIONS = _EXTENSIONS - _words("rst md markdown adoc txt")


def kind_of(name: str) -> FileKind:
    """Return the kind of a file from its name."""
    lowered = name.lower()
    if lowered in _LOCK_FILES or lowered.endswith(_GENERATED):
        return FileKind.GENERATED
    extension = lowered.rpartition(".")[2] if "." in lowered else ""
    if extension in _DATA_EXTENSIONS:
        return FileKind.DATA
    return FileKind.SOURCE if extension in _EXTENSIONS or lowered in _NAMES else FileKind.UNKNOWN


def is_secret_path(path: str) -> bool:
    """Return whether a file contains secrets, by its name or the name of a folder around it.

    `path` is relative, with forward slashes. Source code that is named after secrets is not a secret,
    nor is an example of a file of settings, such as `.env.example`.
    """
    *folders, name = path.lower().split("/")
    if any(folder in _SECRET_FOLDERS for folder in folders):
        dotted = any(folder in _SECRET_FOLDERS and folder.startswith(".") for folder in folders)
        if dotted or not _is_code(name):
            return True
    if _is_code(name) or _SECRET_FREE.fullmatch(name):
        return False
    return _SECRET_NAME.match(name) is not None


def is_in_secret_folder(path: str) -> bool:
    """Return whether a path is inside a folder that holds only secrets, such as `.ssh`."""
    return any(part in _SECRET_FOLDERS and part.startswith(".") for part in path.lower().split("/")[:-1])


def _is_code(name: str) -> bool:
    stem, _, extension = name.rpartition(".")
    is_named = stem != "" and not name.startswith(".")
    return is_named and extension in _CODE_EXTENSIONS and name not in _SECRET_CODE


def name_in(folder: PurePath, path: PurePath) -> PurePath | None:
    """Return `path` relative to `folder`, `.` for the folder itself; None if it is elsewhere.

    The time is linear in both paths. `is_relative_to` and `relative_to` of pathlib take quadratic time since
    Python 3.12.
    """
    num_parts = len(folder.parts)
    kind = type(path)
    is_below = bool(folder.anchor) == bool(path.anchor) and kind(*path.parts[:num_parts]) == folder
    return kind(*path.parts[num_parts:]) if is_below else None


@dataclass(frozen=True, slots=True)
class Mount:
    """One row of the mount table: `root`, a folder of a device, appears at `point`."""

    device: str
    root: PurePosixPath
    point: PurePosixPath


def real_path(path: Path) -> Path:
    """Return the real path of the file at `path`; for a missing file, that of its folder with its name.

    Raises OSError for a path that is too long.
    """
    if len(str(path)) > MAX_PATH_CHARS:
        raise OSError(f"a path of more than {MAX_PATH_CHARS} characters")
    real = Path(os.path.realpath(path))  # pathlib's own raises for a link to itself
    if sys.platform == "linux":
        real = next(filter(lambda other: _is_same(real, other), other_paths(real, read_mounts())), real)
    return real if sys.platform == "win32" else _in_own_letters(real)


def read_mounts() -> list[Mount]:
    """Return the mounts of this process in the order of mounting; empty if the system lists none."""
    try:
        with _MOUNTS.open("rb") as file:
            data = file.read(MAX_MOUNT_BYTES)
    except OSError:
        return []
    return list(parse_mounts(data))


def parse_mounts(data: bytes) -> Iterator[Mount]:
    """Yield the rows of a mount table, without damaged ones."""
    for row in data.split(b"\n"):
        fields = row.split(b" ")
        if len(fields) > 4:
            root, point = (PurePosixPath(os.fsdecode(_ESCAPED.sub(_unescaped, name))) for name in fields[3:5])
            if root.is_absolute() and point.is_absolute():
                yield Mount(os.fsdecode(fields[2]), root, point)


def other_paths(path: Path, mounts: list[Mount]) -> Iterator[Path]:
    """Yield the paths at which other mounts show the file at `path`, those of the widest view first.

    Stops at `path` itself in that order.
    """
    holding = [mount for mount in mounts if name_in(mount.point, PurePosixPath(path)) is not None]
    if not holding:
        return
    # The last mount at a point hides those before it.
    mount = max(reversed(holding), key=lambda found: len(found.point.parts))
    inner = mount.root / (name_in(mount.point, PurePosixPath(path)) or "")
    for other in sorted(mounts, key=lambda found: len(found.root.parts)):
        name = name_in(other.root, inner) if other.device == mount.device else None
        if name is not None:
            found = Path(other.point / name)
            if found == path:
                return
            yield found


def _unescaped(match: re.Match[bytes]) -> bytes:
    return bytes([int(match[1], 8) & 0xFF])


def _is_same(path: Path, other: Path) -> bool:
    """Return whether both paths lead to one file; for a missing file, whether their folders are the same."""
    try:
        if path.exists():
            return path.samefile(other)
        return path.name == other.name and path.parent.samefile(other.parent)
    except (OSError, ValueError):
        return False


def _in_own_letters(path: Path) -> Path:
    """Return `path` with each name spelled as its folder lists it, if the folder ignores case."""
    own = Path(path.anchor)
    for name in path.parts[1:]:
        own /= _listed_name(own, name)
    return own


def _listed_name(folder: Path, name: str) -> str:
    swapped = name.swapcase()
    try:
        status = os.lstat(folder / name)
        if name.isascii() and (swapped == name or not os.path.samestat(status, os.lstat(folder / swapped))):
            return name
        with os.scandir(folder) as entries:
            listed = [entry.name for entry in islice(entries, MAX_ENTRIES) if entry.inode() == status.st_ino]
    except (OSError, ValueError):
        return name
    return own_name(name, listed)


def own_name(name: str, listed: list[str]) -> str:
    """Return the spelling of `name` in its folder, out of the `listed` names."""
    folded = [other for other in listed if other.casefold() == name.casefold()]
    return name if name in listed else next(iter([*folded, *listed]), name)
