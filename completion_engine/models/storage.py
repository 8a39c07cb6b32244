"""The store's folder: where it is, who may write in it, whether there is room, and the names of its contents.

A folder that a user named may hold other files, which stay. Knows the disk and lock files.
"""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from filelock import FileLock, Timeout
from platformdirs import user_cache_dir

from completion_engine.errors import MachineError
from completion_engine.models.catalogue import CATALOGUE, ModelSpec
from completion_engine.models.job import Monitor

_MARGIN_BYTES = 200_000_000
_LOCK_POLL_S = 0.2
_NAME = r"[A-Za-z0-9][\w.-]*"
_FROM_HUB = re.compile(f"{_NAME}--{_NAME}")
_FROM_FILE = re.compile(r".+-[0-9a-f]{12}")


def default_root() -> Path:
    """`SLIPSTREAM_MODEL_DIR`, or the platform's cache folder."""
    chosen = os.environ.get("SLIPSTREAM_MODEL_DIR")
    if chosen:
        return Path(chosen).expanduser()
    return Path(user_cache_dir("slipstream", appauthor=False)) / "models"


def free_bytes_at(path: Path) -> int:
    """Free bytes on the disk that holds `path`, which must exist."""
    return shutil.disk_usage(path).free


@dataclass(frozen=True, slots=True)
class Storage:
    """One folder that several processes may use at the same time."""

    root: Path
    free_bytes: Callable[[Path], int] = free_bytes_at

    def check_space(self, num_bytes: int, purpose: str) -> None:
        """Raise MachineError that names what is missing when `num_bytes` do not fit."""
        self.root.mkdir(parents=True, exist_ok=True)
        missing = num_bytes + _MARGIN_BYTES - self.free_bytes(self.root)
        if missing > 0:
            raise MachineError(
                f"Not enough disk space for {purpose}: {missing / 1e9:.2f} GB are missing at {self.root}.",
                advice="Free some space, or set SLIPSTREAM_MODEL_DIR to a folder on another disk.",
            )

    @contextmanager
    def locked(self, name: str, job: Monitor) -> Iterator[None]:
        """One process at a time; the others report that they wait, and can be stopped."""
        locks = self.root / "locks"
        locks.mkdir(parents=True, exist_ok=True)
        lock = FileLock(locks / f"{name}.lock")
        while True:
            try:
                lock.acquire(timeout=_LOCK_POLL_S)
                break
            except Timeout:
                job.report(f"waiting for another process that prepares {name}", 0, 0)
                job.check()
        try:
            yield
        finally:
            lock.release()

    @contextmanager
    def work_folder(self, parent: Path) -> Iterator[Path]:
        """An empty folder below `parent`, for the holder of the lock; leftovers of ended processes are
        removed.
        """
        parent.mkdir(parents=True, exist_ok=True)
        for stale in parent.glob("work-*"):
            shutil.rmtree(stale, ignore_errors=True)
        # A fresh name each time: a program started by a process that died may still write into the old one.
        work = Path(tempfile.mkdtemp(prefix="work-", dir=parent))
        try:
            yield work
        finally:
            shutil.rmtree(work, ignore_errors=True)


@contextmanager
def disk_errors() -> Iterator[None]:
    """Turn errors of the system into a MachineError with advice."""
    try:
        yield
    except OSError as error:
        where = f" at {error.filename}" if error.filename else ""
        raise MachineError(
            f"The model store failed{where}: {error.strerror or error}.",
            advice="Check space and permissions, or set SLIPSTREAM_MODEL_DIR to another folder.",
        ) from error


def contents(root: Path, catalogue: Mapping[str, ModelSpec] = CATALOGUE) -> Iterator[Path]:
    """All of it, inner files before their folders; only the empty ones of shared folders."""
    for spec in catalogue.values():
        yield from model_contents(root, spec)
    for folder in _below(root / "local"):
        if _FROM_FILE.fullmatch(folder.name):
            yield from _made_in(folder)
    for path in _below(root / "locks"):
        is_known = path.stem in catalogue or _FROM_FILE.fullmatch(path.stem) or _FROM_HUB.fullmatch(path.stem)
        if path.suffix == ".lock" and is_known:
            yield path
        elif _FROM_HUB.fullmatch(path.name) and path.is_dir():
            yield from _made_in(path)
    yield from (root / name for name in ("local", "locks") if _is_empty(root / name))


def model_contents(root: Path, spec: ModelSpec) -> Iterator[Path]:
    """The same of one model of the catalogue."""
    folder = root / spec.id
    yield from (path for path in _below(folder) if path.name.startswith(f"{spec.file_name}.partial"))
    if (file := folder / spec.file_name).is_file():
        yield file
    yield from _made_in(folder)


def size_of(path: Path) -> int:
    """The bytes of a file, or of all files in a folder; links count for themselves, and what has gone is 0.

    Others may be at work there: names of files that are moved or removed a moment later may be found.
    """
    if not path.is_dir() or path.is_symlink():
        return _bytes_of(path)
    return sum(_bytes_of(Path(folder, name)) for folder, _, names in os.walk(path) for name in names)


def discard(path: Path) -> None:
    """Remove a file, or a folder with all that is in it; a link alone. Raises OSError."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def _bytes_of(file: Path) -> int:
    try:
        return file.lstat().st_size
    except FileNotFoundError:
        return 0


def _made_in(folder: Path) -> Iterator[Path]:
    """The folders that preparing or downloading a model makes; the folder itself if it is empty."""
    for path in _below(folder):
        if path.is_dir() and (path.name == "prepared" or path.name.startswith("work-")):
            yield path
    if _is_empty(folder):
        yield folder


def _below(folder: Path) -> list[Path]:
    """What lies in a folder; nothing where it is none, or a link to one."""
    return sorted(folder.iterdir()) if folder.is_dir() and not folder.is_symlink() else []


def _is_empty(folder: Path) -> bool:
    return folder.is_dir() and not folder.is_symlink() and not any(folder.iterdir())
