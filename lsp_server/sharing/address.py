"""Where the host of this user, this install and these settings is found: a socket in a private folder.

Owns the folder and the names in it. Must not know what is said over the socket. Imported by the relay, so
nothing heavy.
"""

from __future__ import annotations

import hashlib
import os
import socket
import stat
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

IS_SUPPORTED: Final = hasattr(socket, "AF_UNIX") and sys.platform != "win32"

PACKAGES = Path(__file__).parents[2]
NAMES = ("lsp_server", "completion_engine", "ngram_cache")

# What decides which files a server reads and what it computes on: windows that differ here share nothing.
# None of them is one that our own packages set when they are imported.
VARIABLES = (
    "HOME", "XDG_CONFIG_HOME", "XDG_CACHE_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME", "OMP_NUM_THREADS",
)  # fmt: skip
PREFIXES = ("SLIPSTREAM_", "HF_", "CUDA_", "TRITON_")
FOLDER_VARIABLES = ("SLIPSTREAM_MODEL_DIR", "SLIPSTREAM_INDEX_DIR")

# The shortest limit of any system is 104.
MAX_PATH_BYTES = 100


class SharingError(Exception):
    """There is no host for this window; the message says why, as the end of a sentence."""


@dataclass(frozen=True, slots=True)
class HostAddress:
    """A host's `name` and the private `folder` that holds its socket."""

    folder: Path
    name: str

    @property
    def socket_path(self) -> str:
        """Where the host listens."""
        return str(self.folder / f"{self.name}.sock")

    @property
    def lock_path(self) -> str:
        """Held by the process that is the host."""
        return str(self.folder / f"{self.name}.lock")


def find_address(environment: Mapping[str, str]) -> HostAddress:
    """The address for servers with this environment. Raises SharingError when there is no safe one."""
    name = identity(environment)
    problems = []
    for folder in _folders(environment):
        address = HostAddress(folder, name)
        if len(os.fsencode(address.socket_path)) >= MAX_PATH_BYTES:
            problems.append(f"{folder} is too long a path for a socket")
        elif problem := make_private(folder):
            problems.append(problem)
        else:
            return address
    raise SharingError(", and ".join(problems))


def for_host(environment: Mapping[str, str]) -> dict[str, str]:
    """The environment with paths that mean the same in any working folder."""
    found = {name: os.path.abspath(environment[name]) for name in FOLDER_VARIABLES if environment.get(name)}  # noqa: PTH100 - resolving links would part what was one
    return {**environment, **found}


def identity(environment: Mapping[str, str]) -> str:
    """A name that is equal only for the same interpreter, the same code and the same relevant environment."""
    values = for_host(environment)
    relevant = [name for name in values if name in VARIABLES or name.startswith(PREFIXES)]
    parts = [sys.prefix, sys.version, str(PACKAGES), *_code()]
    parts += [f"{name}={values[name]}" for name in sorted(relevant)]
    return hashlib.sha256("\0".join(parts).encode("utf-8", "surrogateescape")).hexdigest()[:16]


def sockets(environment: Mapping[str, str]) -> list[str]:
    """Every socket of this user's hosts, of other installs too; some may have nobody behind them."""
    found: list[str] = []
    for folder in _folders(environment):
        if folder.is_dir() and not make_private(folder):
            found += sorted(map(str, folder.glob("*.sock")))
    return found


def _code() -> Iterator[str]:
    """What changes when the packages' code does: a host of an older version is no host for a newer window."""
    for name in NAMES:
        for folder, _, files in sorted(os.walk(PACKAGES / name)):
            for file in sorted(files):
                if file.endswith(".py"):
                    path = os.path.join(folder, file)  # noqa: PTH118 - hundreds of files, in a moment
                    facts = os.stat(path)  # noqa: PTH116 - as above
                    yield f"{path} {facts.st_size} {facts.st_mtime_ns}"


def _folders(environment: Mapping[str, str]) -> Iterator[Path]:
    """Candidates, the best first: in the session's own folder, or else among the temporary files."""
    runtime = Path(environment.get("XDG_RUNTIME_DIR", ""))
    if runtime.is_absolute() and not _problem(runtime):
        yield runtime / "slipstream"
    yield Path(environment.get("TMPDIR") or "/tmp") / f"slipstream-{os.getuid()}"  # noqa: S108 - made private, or refused


def make_private(folder: Path) -> str:
    """Make the folder if need be; what is wrong with it, or nothing."""
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
    except OSError as error:
        return f"{folder} cannot be made: {error.strerror}"
    return _problem(folder)


def _problem(folder: Path) -> str:
    """Why a folder is not ours alone, or nothing."""
    try:
        facts = folder.lstat()
    except OSError as error:
        return f"{folder} cannot be looked at: {error.strerror}"
    if not stat.S_ISDIR(facts.st_mode):
        return f"{folder} is no folder"
    if facts.st_uid != os.getuid():
        return f"{folder} belongs to another user"
    if facts.st_mode & 0o077:
        return f"{folder} is open to other users"
    return ""
