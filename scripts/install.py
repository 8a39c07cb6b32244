"""Installs the server into the environment of the interpreter that runs this file, from locks with hashes.

    python -I install.py --locks FOLDER [--also NAME]... [--pip-argument=ARGUMENT]... PROJECT

PROJECT is a wheel, or this repository's folder, which is installed so that it can be edited. Runs as a file,
before anything is installed: knows the standard library and pip only.

torch stands apart. With an NVIDIA driver its CUDA build is installed, several GB; without one its CPU build.
The public build is the CUDA one on Linux and the CPU one elsewhere, and is checked by its hashes. The other
one comes from an index that pip is set up to use, or else from PyTorch's own. Its files differ from index to
index, so it is chosen by its version alone. On Windows the CUDA build is untried.
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
_QUIET = ("--progress-bar", "off", "--no-compile")  # pip would compile ten times what a server imports
_BRIEFLY = ("--retries", "1", "--timeout", "20")  # where it cannot be reached, the next way is taken soon

# The versions for which everything that is locked has wheels. Elsewhere a marker leaves out each line of a
# lock: pip installs nothing, and calls that a success.
OLDEST, NEWEST = (3, 11), (3, 14)

TORCH_INDEX = "https://download.pytorch.org/whl/cpu"
DRIVER_FILE = Path("/proc/driver/nvidia/version")
CUDA_INDEX, CUDA = "https://download.pytorch.org/whl/cu130", "cu130"  # the build that the lock has for Linux


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
    version, has_driver = pinned_torch(lock.read_text(encoding="utf-8")), has_nvidia_driver()
    installed = _installed_torch()
    if installed.partition("+")[0] == version and not must_replace(
        installed, sys.platform, has_driver=has_driver
    ):
        return 0
    _tell(torch_step(version, sys.platform, has_driver=has_driver))
    for attempt in other_builds(version, sys.platform, has_driver=has_driver):
        if _pip(*attempt, *extra, is_quiet=True) == 0:
            return 0
        where = next((index for index in (TORCH_INDEX, CUDA_INDEX) if index in attempt), "your own indexes")
        _tell(f"This build of torch {version} was not found at {where}.")
    again = ("--force-reinstall",) if installed else ()  # a CPU build counts as the same version
    return _pip(*_locked(lock), *again, *extra)


def num_locked(lock: str) -> int:
    """Number of packages in the text of a lock, for all systems together."""
    return len(re.findall(r"^[a-z0-9.-]+==", lock, re.MULTILINE))


def pinned_torch(lock: str) -> str:
    """The version of torch in the text of its lock."""
    found = re.search(r"^torch==([0-9.]+)", lock, re.MULTILINE)
    if found is None:
        raise SystemExit("The lock of torch names no version of it.")
    return found[1]


def torch_step(version: str, platform: str, *, has_driver: bool) -> str:
    """Return the line to print before torch is installed."""
    if has_driver and platform in {"linux", "win32"}:
        return f"torch {version} for CUDA, because there is an NVIDIA driver: several GB"
    return f"torch {version} for CPUs"


def must_replace(installed: str, platform: str, *, has_driver: bool) -> bool:
    """Return whether an installed CPU build gives way to the CUDA build. macOS has no CUDA build."""
    is_for_cpus = installed.endswith("+cpu") or (platform == "win32" and "+" not in installed)
    return has_driver and platform in {"linux", "win32"} and is_for_cpus


def other_builds(version: str, platform: str, *, has_driver: bool) -> tuple[tuple[str, ...], ...]:
    """pip's arguments for a build of torch that is not the public one, one way after another.

    None where the public one is right: for CUDA on Linux, for CPUs elsewhere.
    """
    if platform == "linux" and not has_driver:
        index, build = TORCH_INDEX, "cpu"
    elif platform == "win32" and has_driver:
        index, build = CUDA_INDEX, CUDA
    else:
        return ()
    wanted = ("--no-deps", "--only-binary=:all:", f"torch=={version}+{build}")
    return wanted, (*wanted, "--index-url", index, *_BRIEFLY)


def has_nvidia_driver() -> bool:
    """Whether this machine can use a GPU of NVIDIA."""
    return DRIVER_FILE.exists() or shutil.which("nvidia-smi") is not None


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
