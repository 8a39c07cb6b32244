"""The store's folder: where it is, who may write in it, and whether there is room.

Knows the disk and lock files. Does not depend on models.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from filelock import FileLock, Timeout
from platformdirs import user_cache_dir

from completion_engine.errors import MachineError
from completion_engine.models.job import Monitor

_MARGIN_BYTES = 200_000_000
_LOCK_POLL_S = 0.2


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
