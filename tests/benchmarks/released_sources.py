"""Sources that are younger than the models, by language: releases, fetched once from their package indexes.

Owns how they are fetched, by pip and npm as the user has set them up, checked and unpacked. No code of
theirs runs.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Iterable, Sequence
from pathlib import Path

from completion_engine.errors import DataError, MachineError, UserError
from completion_engine.models import ModelStore
from tests.benchmarks import unbuilt
from tests.benchmarks.releases import RELEASES, Release

_BACKENDS = ("maturin.py", "hatchling/build.py", "setuptools/build_meta.py")

# Real modules of different people, of several hundred lines, for who types at length.
MODULES = ("cyclopts/cyclopts/bind.py", "pygls/pygls/feature_manager.py", "watchfiles/watchfiles/main.py")


def released_modules() -> list[Path]:
    """The files of `MODULES`; raises as `released_sources`."""
    root = released_sources()
    return [root / name for name in MODULES]


def released_sources(language: str = "usual") -> Path:
    """A folder that holds a folder with the sources of each release in a language.

    Raises UserError for another language, MachineError when they cannot be fetched, DataError when an archive
    is another than it was.
    """
    if language not in RELEASES:
        raise UserError(f"Unknown: {language}.", advice=f"Choose out of {', '.join(RELEASES)}.")
    return unpacked(RELEASES[language])


def unpacked(releases: Sequence[Release]) -> Path:
    """A folder that holds a folder with the sources of each release; raises as `released_sources`."""
    key = hashlib.sha256("\n".join(map(str, releases)).encode()).hexdigest()[:16]
    folder = ModelStore().root.parent / "releases" / key
    if folder.is_dir():
        return folder
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent) as work:
        unpacked = Path(work) / "unpacked"
        for number, release in enumerate(releases):
            place = Path(work) / str(number)
            place.mkdir()
            _unpack(_fetched(release, place), release, place, unpacked / release.project)
        unpacked.rename(folder)
    return folder


def _fetched(release: Release, place: Path) -> Path:
    """The archive of a release, checked."""
    if release.origin == "npm":
        _from_npm(release.requirement, place)
    else:
        _from_pip(release, place)
    archive = next(path for path in place.iterdir() if path.is_file())
    if release.sha256 not in ("", hashlib.sha256(archive.read_bytes()).hexdigest()):
        raise DataError(
            f"{release.requirement} has another hash than it had.", advice="Check the index that was asked."
        )
    return archive


def _unpack(archive: Path, release: Release, place: Path, project: Path) -> None:
    whole = place / "whole"
    if archive.suffix == ".whl":
        with zipfile.ZipFile(archive) as wheel:
            wheel.extractall(whole)  # noqa: S202 - zipfile keeps it inside
    else:
        with tarfile.open(archive) as packed:
            wanted = list(_below_the_first_folder(packed.getmembers(), release.folder))
            packed.extractall(whole, wanted, filter="data")
    shutil.copytree(whole / release.folder, project / release.folder, symlinks=True)


def _below_the_first_folder(members: Iterable[tarfile.TarInfo], folder: str) -> Iterable[tarfile.TarInfo]:
    """The plain files in `folder`, without the one folder that holds all of an archive."""
    for member in members:
        inside = member.name.partition("/")[2]
        if member.isfile() and inside.startswith(f"{folder}/" if folder else ""):
            yield member.replace(name=inside)


def _from_pip(release: Release, place: Path) -> None:
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--no-cache-dir"]
    command += ["--disable-pip-version-check", "--dest", str(place), release.requirement]
    if release.origin == "wheel":
        _run([*command, "--only-binary=:all:"], release.requirement, "Check pip and the network.")
        return
    with tempfile.TemporaryDirectory() as backends:
        for name in _BACKENDS:
            copy = Path(backends) / name
            copy.parent.mkdir(exist_ok=True)
            (copy.parent / "__init__.py").touch()  # else an installed package of that name is found first
            shutil.copyfile(str(unbuilt.__file__), copy)
        command += ["--no-binary=:all:", "--no-build-isolation", "--use-pep517"]
        _run(command, release.requirement, "Check pip and the network.", {"PYTHONPATH": backends})


def _from_npm(requirement: str, place: Path) -> None:
    npm = shutil.which("npm")
    if npm is None:
        raise MachineError(f"{requirement} could not be fetched: there is no npm.", advice="Install Node 20.")
    command = [npm, "pack", "--silent", "--ignore-scripts", "--pack-destination", str(place), requirement]
    _run(command, requirement, "Check npm and the network.")


def _run(command: list[str], release: str, advice: str, environment: dict[str, str] | None = None) -> None:
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        check=False,
        stdin=subprocess.DEVNULL,
        env={**os.environ, **(environment or {})},
    )
    if done.returncode:
        reason = (done.stderr.strip().splitlines() or ["no reason given"])[-1]
        raise MachineError(f"{release} could not be fetched: {reason}", advice=advice)
