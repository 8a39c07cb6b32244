"""The file of a folder's saved index: restores, writes and deletes it."""

from __future__ import annotations

import math
import re
import time
from pathlib import Path

from ngram_cache import snapshot
from ngram_cache.file_names import real_path
from ngram_cache.index import NgramIndex
from ngram_cache.live_parts import Stored
from ngram_cache.planning import SILENT, IndexHooks
from ngram_cache.repository import StoppedError
from ngram_cache.snapshot import FileRecord, Snapshot

# After a request to stop, the index is saved within this time, or not at all.
_LAST_SAVE_S = 0.5

# The names of a saved index, and of one that is still being written.
_FILE_NAME = re.compile(r"[0-9a-f]{24}-[0-9a-f]{24}\.index(\.[^.]+\.tmp)?")


def forget(root: Path) -> int:
    """Delete all saved indexes of a folder; return the number of deleted files."""
    return snapshot.purge(snapshot.index_directory(), root)


def saved_in(directory: Path) -> list[Path]:
    """Return all files of saved indexes in `directory`, incomplete ones included."""
    return sorted(file for file in directory.glob("*.index*") if _FILE_NAME.fullmatch(file.name))


def num_saved_bytes(root: Path, fingerprint: str) -> int:
    """Return the size of a folder's saved index for a vocabulary; 0 if there is none."""
    path = snapshot.snapshot_path(snapshot.index_directory(), root, fingerprint)
    return path.stat().st_size if path.is_file() else 0


def nearest_saved(file: Path, fingerprint: str) -> tuple[Path, NgramIndex] | None:
    """Return the nearest folder above `file` with a saved index, and that index; None if it is unusable."""
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
        """Fill `index` from the file; return its files and the problem, empty if there was none."""
        try:
            loaded = snapshot.load(self._file, fingerprint=self._fingerprint, root=self._root)
            index.restore(loaded.stored)
        except FileNotFoundError:
            return {}, ""
        except (snapshot.SnapshotError, ValueError, OSError) as error:
            return {}, f"Slipstream builds the saved index again: {error}."
        return loaded.files, ""

    def write(self, stored: Stored, files: dict[str, FileRecord]) -> None:
        """Save the index. Raises OSError if that fails, StoppedError if it is forbidden or too slow."""
        until = math.inf

        def checkpoint() -> None:
            nonlocal until
            if self._hooks.should_stop():
                until = min(until, time.monotonic() + _LAST_SAVE_S)
            if not self._hooks.may_save() or time.monotonic() > until:
                raise StoppedError

        snapshot.save(self._file, Snapshot(self._fingerprint, self._root, stored, files), checkpoint)
