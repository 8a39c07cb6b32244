"""The place of a folder's saved index, and its lifetime."""

from __future__ import annotations

import math
import re
import time
from pathlib import Path

from ngram_cache import snapshot
from ngram_cache.index import NgramIndex
from ngram_cache.planning import SILENT, IndexHooks
from ngram_cache.real_paths import real_path
from ngram_cache.repository import StoppedError
from ngram_cache.snapshot import FileRecord, Snapshot
from ngram_cache.versions import Stored

# After a request to stop, the index is saved within this time, or not at all.
_LAST_SAVE_S = 0.5

# As `snapshot_path` names it, and as it is named until it is whole.
_FILE_NAME = re.compile(r"[0-9a-f]{24}-[0-9a-f]{24}\.index(\.[^.]+\.tmp)?")


def forget(root: Path, directory: Path | None = None) -> int:
    """Delete what is saved about a folder; returns the number of files deleted."""
    return snapshot.purge(directory or snapshot.index_directory(), root)


def saved_in(directory: Path) -> list[Path]:
    """All files that were saved there for any folder, half-written ones included; no other files."""
    return sorted(file for file in directory.glob("*.index*") if _FILE_NAME.fullmatch(file.name))


def num_saved_bytes(root: Path, fingerprint: str) -> int:
    """The size of a folder's saved index under a vocabulary; 0 when there is none."""
    path = snapshot.snapshot_path(snapshot.index_directory(), root, fingerprint)
    return path.stat().st_size if path.is_file() else 0


def nearest_saved(file: Path, fingerprint: str) -> tuple[Path, NgramIndex] | None:
    """The nearest folder above `file` that has a saved index, and that index; None if it cannot be used."""
    parents = real_path(file).parents
    root = next((folder for folder in parents if num_saved_bytes(folder, fingerprint)), None)
    if root is None:
        return None
    index = NgramIndex()
    _, problem = SavedIndex(root, fingerprint, SILENT).restore(index)
    return None if problem else (root, index)


class SavedIndex:
    """The file of the index of `root` under the vocabulary `fingerprint`."""

    def __init__(self, root: Path, fingerprint: str, hooks: IndexHooks) -> None:
        self._fingerprint = fingerprint
        self._root = str(root)
        self._hooks = hooks
        self._file = snapshot.snapshot_path(snapshot.index_directory(), root, fingerprint)

    def restore(self, index: NgramIndex) -> tuple[dict[str, FileRecord], str]:
        """Fill `index` with what was saved; the files in it, and what went wrong, empty when nothing did."""
        try:
            loaded = snapshot.load(self._file, fingerprint=self._fingerprint, root=self._root)
            index.restore(loaded.stored)
        except FileNotFoundError:
            return {}, ""
        except (snapshot.SnapshotError, ValueError, OSError) as error:
            return {}, f"Slipstream builds the saved index again: {error}."
        return loaded.files, ""

    def write(self, stored: Stored, files: dict[str, FileRecord]) -> None:
        """OSError when it cannot be written, StoppedError when it is not to be, or not in time."""
        until = math.inf

        def checkpoint() -> None:
            nonlocal until
            if self._hooks.should_stop():
                until = min(until, time.monotonic() + _LAST_SAVE_S)
            if not self._hooks.may_save() or time.monotonic() > until:
                raise StoppedError

        snapshot.save(self._file, Snapshot(self._fingerprint, self._root, stored, files), checkpoint)
