"""Finds the host of this user, this installation and these settings: by a file in a private folder.

The file is a Unix socket. If there are none, or `LOOPBACK_VARIABLE` is set, it holds a port of the loopback.
Imported by the relay, so it imports nothing heavy.
"""

from __future__ import annotations

import hashlib
import os
import stat
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from lsp_server.sharing.system import HAS_UNIX_SOCKETS, limits, user_id

PACKAGES = Path(__file__).parents[2]
NAMES = ("lsp_server", "completion_engine", "ngram_cache")

# These decide which files a server reads, whose rules hold, where it computes, and how it downloads its
# model: windows that differ here share nothing. None of them is one that our own packages set when imported.
VARIABLES = (
    "HOME", "XDG_CONFIG_HOME", "XDG_CACHE_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME", "OMP_NUM_THREADS",
    "USERPROFILE", "APPDATA", "LOCALAPPDATA",
    "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY",
    "http_proxy", "https_proxy", "all_proxy", "no_proxy",
    "SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE",
    "GIT_DIR", "GIT_WORK_TREE", "PYTHONPATH", "PYTHONHOME", "PYTHONUSERBASE", "PYTHONNOUSERSITE",
)  # fmt: skip
PREFIXES = ("SLIPSTREAM_", "HF_", "CUDA_", "TRITON_", "PIP_", "GIT_CONFIG_")
LOOPBACK_VARIABLE = "SLIPSTREAM_HOST_LOOPBACK"
PATH_VARIABLES = (
    "SLIPSTREAM_MODEL_DIR", "SLIPSTREAM_INDEX_DIR",
    "GIT_DIR", "GIT_WORK_TREE", "GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM",
)  # fmt: skip

SOCKET_SUFFIX, LOOPBACK_SUFFIX, LOCK_SUFFIX = ".sock", ".port", ".lock"

SUFFIXES = (SOCKET_SUFFIX, LOOPBACK_SUFFIX)

# For a Unix socket; the shortest limit of any system is 104.
MAX_PATH_BYTES = 100


class SharingError(Exception):
    """There is no host for this window; the message is the reason, as the end of a sentence."""


@dataclass(frozen=True, slots=True)
class HostAddress:
    """A host's `name` and the private `folder` that holds its socket, or the file with its port."""

    folder: Path
    name: str
    is_loopback: bool = False

    @property
    def socket_path(self) -> str:
        """The socket on which the host listens, or the file with its port."""
        return str(self.folder / f"{self.name}{LOOPBACK_SUFFIX if self.is_loopback else SOCKET_SUFFIX}")

    @property
    def lock_path(self) -> str:
        """The lock file of the host process."""
        return str(self.folder / f"{self.name}{LOCK_SUFFIX}")


def find_address(environment: Mapping[str, str]) -> HostAddress:
    """Return the address for servers with this environment. Raises SharingError if there is no safe one."""
    name = identity(environment)
    is_loopback = not HAS_UNIX_SOCKETS or bool(environment.get(LOOPBACK_VARIABLE))
    problems = []
    for folder in folders(environment):
        address = HostAddress(folder, name, is_loopback)
        if not is_loopback and len(os.fsencode(address.socket_path)) >= MAX_PATH_BYTES:
            problems.append(f"{folder} has a path that is too long for a socket")
        elif problem := make_private(folder):
            problems.append(problem)
        else:
            return address
    raise SharingError(", and ".join(problems) or "this system names no folder for it")


def for_host(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the environment with absolute paths."""
    named = {name: environment[name] for name in PATH_VARIABLES if environment.get(name)}
    found = {name: os.path.abspath(os.path.expanduser(path)) for name, path in named.items()}  # noqa: PTH100, PTH111 - resolving links would part what was one
    if modules := environment.get("PYTHONPATH"):
        found["PYTHONPATH"] = os.pathsep.join(map(os.path.abspath, modules.split(os.pathsep)))
    return {**environment, **found}


def identity(environment: Mapping[str, str]) -> str:
    """Return a name for this interpreter, this code, the limits of a shell and the relevant environment."""
    values = for_host(environment)
    relevant = [name for name in values if name in VARIABLES or name.startswith(PREFIXES)]
    parts = [sys.prefix, sys.version, str(PACKAGES), *_code()]
    parts += [f"{name}={values[name]}" for name in sorted(relevant)]
    parts += [f"{name}={value}" for name, value in limits().items()]
    return hashlib.sha256("\0".join(parts).encode("utf-8", "surrogateescape")).hexdigest()[:16]


def sockets(environment: Mapping[str, str]) -> list[str]:
    """Every `socket_path` of this user's hosts, of other installs too; some may have no listener."""
    found: list[str] = []
    for folder in folders(environment):
        if folder.is_dir() and not make_private(folder):
            found += sorted(str(file) for file in folder.iterdir() if file.suffix in SUFFIXES)
    return found


def _code() -> Iterator[str]:
    """Parts that change with the packages' code: a host of an older version does not serve a newer window."""
    for name in NAMES:
        for folder, _, files in sorted(os.walk(PACKAGES / name)):
            for file in sorted(files):
                if file.endswith(".py"):
                    path = os.path.join(folder, file)  # noqa: PTH118 - hundreds of files, in a moment
                    facts = os.stat(path)  # noqa: PTH116 - as above
                    yield f"{path} {facts.st_size} {facts.st_mtime_ns}"


def folders(environment: Mapping[str, str]) -> Iterator[Path]:
    """Candidates, the best first: in the session's own folder, or else among the temporary files.

    Where users have no numbers, in the part of the profile that stays on this machine.
    """
    if user_id() is None:
        if local := environment.get("LOCALAPPDATA") or environment.get("TEMP"):
            yield Path(local) / "slipstream-host"
        return
    runtime = Path(environment.get("XDG_RUNTIME_DIR", ""))
    if runtime.is_absolute() and not _problem(runtime):
        yield runtime / "slipstream"
    temporary = Path(environment.get("TMPDIR", ""))  # a relative one is elsewhere for each process
    yield (temporary if temporary.is_absolute() else Path("/tmp")) / f"slipstream-{user_id()}"  # noqa: S108 - made private, or refused


def make_private(folder: Path) -> str:
    """Create the folder if necessary; return its problem, or an empty string."""
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
    except OSError as error:
        return f"{folder} cannot be created: {error.strerror}"
    return _problem(folder)


def _problem(folder: Path) -> str:
    """Return the reason that a folder is not private to this user, or an empty string."""
    try:
        facts = folder.lstat()
    except OSError as error:
        return f"{folder} cannot be examined: {error.strerror}"
    if not stat.S_ISDIR(facts.st_mode):
        return f"{folder} is not a folder"
    if user_id() is None:
        return ""  # the profile excludes other users
    if facts.st_uid != user_id():
        return f"{folder} belongs to another user"
    if facts.st_mode & 0o077:
        return f"{folder} is open to other users"
    return ""
