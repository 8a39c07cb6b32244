"""Sources that are younger than the models, by language: releases, fetched once from their package indexes.

Owns which releases these are and how they are fetched: by pip and npm, as the user has set them up.
"""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Callable
from pathlib import Path

from completion_engine.errors import MachineError
from completion_engine.models import ModelStore

# Younger than the default model (September 2024), permissive licences. Of an npm package the folder that its
# authors write in, behind a colon: what is built from it lies beside it.
RELEASES = {
    "python": ("cyclopts==4.2.1", "pygls==2.1.1", "import-linter==2.16", "watchfiles==1.3.0", "mcp==1.20.0"),
    "typescript": ("@tanstack/query-core@5.90.5:src", "@trpc/server@11.7.1:src", "zod@4.1.12:src/v4"),
    "javascript": ("undici@7.16.0:lib", "fastify@5.6.1:lib", "express@5.1.0:lib"),
}

# Real modules of different people, of several hundred lines, for who types at length.
MODULES = ("cyclopts/cyclopts/bind.py", "pygls/pygls/feature_manager.py", "watchfiles/watchfiles/main.py")


def released_modules() -> list[Path]:
    """The files of `MODULES`; raises as `released_sources`."""
    root = released_sources()
    return [root / name for name in MODULES]


def released_sources(language: str = "python") -> Path:
    """A folder that holds a folder with the sources of each release in a language.

    Raises MachineError when they cannot be fetched.
    """
    releases = RELEASES[language]
    key = hashlib.sha256("\n".join(releases).encode()).hexdigest()[:16]
    folder = ModelStore().root.parent / "releases" / key
    if folder.is_dir():
        return folder
    folder.parent.mkdir(parents=True, exist_ok=True)
    fetch: Callable[[str, Path, Path], None] = _from_pip if language == "python" else _from_npm
    with tempfile.TemporaryDirectory(dir=folder.parent) as work:
        unpacked = Path(work) / "unpacked"
        for number, release in enumerate(releases):
            place = Path(work) / str(number)
            place.mkdir()
            fetch(release, place, unpacked)
        unpacked.rename(folder)
    return folder


def _from_pip(release: str, place: Path, unpacked: Path) -> None:
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--no-cache-dir"]
    command += ["--disable-pip-version-check", "--only-binary=:all:", "--dest", str(place), release]
    _run(command, release, "Check pip and the network.")
    for wheel in place.glob("*.whl"):
        with zipfile.ZipFile(wheel) as archive:
            archive.extractall(unpacked / wheel.name.split("-")[0])  # noqa: S202 - zipfile keeps it inside


def _from_npm(release: str, place: Path, unpacked: Path) -> None:
    requirement, _, folder = release.rpartition(":")
    npm = shutil.which("npm")
    if npm is None:
        raise MachineError(f"{requirement} could not be fetched: there is no npm.", advice="Install Node 20.")
    command = [npm, "pack", "--silent", "--ignore-scripts", "--pack-destination", str(place), requirement]
    _run(command, requirement, "Check npm and the network.")
    name = requirement.rpartition("@")[0].rpartition("/")[2]
    for packed in place.glob("*.tgz"):
        with tarfile.open(packed) as archive:
            archive.extractall(place, filter="data")
        shutil.copytree(place / "package" / folder, unpacked / name / folder)


def _run(command: list[str], release: str, advice: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
    if done.returncode:
        reason = (done.stderr.strip().splitlines() or ["no reason given"])[-1]
        raise MachineError(f"{release} could not be fetched: {reason}", advice=advice)
