"""Installs the server into the environment of the interpreter that runs this file, from locks with hashes.

    python -I install.py --locks FOLDER [--also NAME]... [--pip-argument=ARGUMENT]... PROJECT

PROJECT is a wheel, or this repository's folder, which is installed so that it can be edited. Runs as a file,
before anything is installed: knows the standard library and pip only.

torch stands apart. Where a GPU may be used, and on every system but Linux, its public build is taken, by its
hashes. On Linux that build brings several GB for GPUs; without a driver for them the build for CPUs is taken,
from an index that pip is set up to use or else from PyTorch's own. That build's files differ from index to
index, so it goes by its version alone.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

_PIP = (sys.executable, "-I", "-m", "pip", "--disable-pip-version-check", "--no-input", "install")
_QUIET = ("--progress-bar", "off")
_BRIEFLY = ("--retries", "1", "--timeout", "20")  # where it cannot be reached, the next way is taken soon

# The versions for which everything that is locked has wheels. Elsewhere a marker leaves out each line of a
# lock: pip installs nothing, and calls that a success.
OLDEST, NEWEST = (3, 11), (3, 14)

TORCH_INDEX = "https://download.pytorch.org/whl/cpu"


def main() -> int:
    """Install what the arguments say. Returns the exit code of the first pip that failed, else 0."""
    arguments = _parse()
    if complaint := python_complaint(sys.version_info[:2]):
        sys.stderr.write(complaint)
        return 1
    extra = arguments.pip_argument
    for name in ("requirements", *(f"requirements-{name}" for name in arguments.also)):
        lock = arguments.locks / f"{name}.lock"
        _tell(f"Packages of {lock.name}: up to {num_locked(lock.read_text(encoding='utf-8'))}")
        if code := _pip(*_locked(lock), *extra):
            return code
    if code := _install_torch(arguments.locks / "requirements-torch.lock", extra):
        return code
    project = str(arguments.project)
    if arguments.project.suffix == ".whl":
        return _pip("--no-deps", "--force-reinstall", project, *extra)
    # What builds it is locked too: pip must not fetch a newer one into a place of its own.
    return _pip("--no-deps", "--no-build-isolation", "--editable", project, *extra)


def python_complaint(version: tuple[int, int]) -> str:
    """Why nothing can be installed for this Python, or nothing."""
    if OLDEST <= version <= NEWEST:
        return ""
    (oldest, newest, found) = (".".join(map(str, one)) for one in (OLDEST, NEWEST, version))
    return f"Slipstream needs Python {oldest} to {newest}, and this is {found}.\n"


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Installs the server from locks with hashes.")
    parser.add_argument("--locks", type=Path, required=True, help="the folder with requirements*.lock")
    parser.add_argument("--also", action="append", default=[], help="further locks: build, test")
    parser.add_argument("--pip-argument", action="append", default=[], help="passed on to every pip")
    parser.add_argument("project", type=Path, help="a wheel, or the repository's folder")
    return parser.parse_args()


def _locked(lock: Path) -> tuple[str, ...]:
    """pip's arguments for a lock: these files and no other, and no program of a source package is run."""
    return ("--require-hashes", "--no-deps", "--only-binary=:all:", "--requirement", str(lock))


def _install_torch(lock: Path, extra: Sequence[str]) -> int:
    version = pinned_torch(lock.read_text(encoding="utf-8"))
    if _installed_torch().partition("+")[0] == version:
        return 0
    _tell(f"torch {version}")
    for attempt in torch_for_cpus(version, sys.platform, has_driver=has_nvidia_driver()):
        if _pip(*attempt, *extra, is_quiet=True) == 0:
            return 0
        where = TORCH_INDEX if TORCH_INDEX in attempt else "the indexes that pip is set up to use"
        _tell(f"torch {version} for CPUs is not to be had from {where}.")
    return _pip(*_locked(lock), *extra)


def num_locked(lock: str) -> int:
    """Number of packages in the text of a lock, for all systems together."""
    return len(re.findall(r"^[a-z0-9.-]+==", lock, re.MULTILINE))


def pinned_torch(lock: str) -> str:
    """The version of torch in the text of its lock."""
    found = re.search(r"^torch==([0-9.]+)", lock, re.MULTILINE)
    if found is None:
        raise SystemExit("The lock of torch names no version of it.")
    return found[1]


def torch_for_cpus(version: str, platform: str, *, has_driver: bool) -> tuple[tuple[str, ...], ...]:
    """pip's arguments for torch's build for CPUs, one way after another; none where the public is right.

    The public build brings several GB for GPUs on Linux, which are of no use without a driver.
    """
    if platform != "linux" or has_driver:
        return ()
    build = ("--no-deps", "--only-binary=:all:", f"torch=={version}+cpu")
    return build, (*build, "--index-url", TORCH_INDEX, *_BRIEFLY)


def has_nvidia_driver() -> bool:
    """Whether this machine can use a GPU of NVIDIA."""
    return Path("/proc/driver/nvidia/version").exists() or shutil.which("nvidia-smi") is not None


def _installed_torch() -> str:
    try:
        return importlib.metadata.version("torch")
    except importlib.metadata.PackageNotFoundError:
        return ""


def _tell(step: str) -> None:
    """Print one line at once: pip in quiet mode prints nothing for minutes."""
    sys.stdout.write(f"{step}\n")
    sys.stdout.flush()


def _pip(*arguments: str, is_quiet: bool = False) -> int:
    """Run pip install; a quiet one's complaints are not shown."""
    stderr = subprocess.DEVNULL if is_quiet else None
    return subprocess.run([*_PIP, *_QUIET, *arguments], stderr=stderr, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
