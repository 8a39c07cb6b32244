"""A repository's index for the commands: built, read, judged and forgotten without a server.

Knows where indexes lie. Must not know models beyond a tokenizer.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from completion_engine.errors import MachineError, UserError
from ngram_cache import NgramIndex, snapshot
from ngram_cache.indexing import Indexer
from ngram_cache.planning import IndexHooks, IndexSummary
from ngram_cache.repository import RepositoryOptions
from ngram_cache.saved_index import forget

if TYPE_CHECKING:
    from completion_engine.prompting.tokenizer import Tokenizer
    from lsp_server.workspace.settings import IndexSettings


@dataclass(frozen=True, slots=True)
class StoredIndex:
    """A saved index and the folder it is of."""

    root: Path
    index: NgramIndex


def checked_folder(folder: Path) -> Path:
    """The folder, resolved. Raises UserError when it is missing, no folder, or cannot be read."""
    if not folder.exists():
        raise UserError(f"There is no folder {folder}.")
    if not folder.is_dir():
        raise UserError(f"{folder} is not a folder.", advice="Name the folder of a repository.")
    if not os.access(folder, os.R_OK | os.X_OK):
        raise UserError(f"{folder} cannot be read: permission denied.")
    return folder.resolve()


def build_index(
    root: Path, tokenizer: Tokenizer, settings: IndexSettings, report: Callable[[int, int, str], None]
) -> tuple[IndexSummary, list[str]]:
    """Bring the index of `root` in line with the disk and save it; returns what was done, and its paths."""
    options = RepositoryOptions(max_files=settings.max_files, exclude=settings.exclude)
    indexer = Indexer(root, tokenizer.encode_many, tokenizer.fingerprint, options, IndexHooks(report))
    return indexer.build(), indexer.paths


def purge_index(root: Path) -> int:
    """Forget all that is saved of a folder; returns how many files were deleted. Raises MachineError."""
    try:
        return forget(root)
    except OSError as error:
        raise MachineError(f"The index cannot be deleted: {error}.") from error


def stored_index(file: Path, tokenizer: Tokenizer) -> StoredIndex | None:
    """The saved index of the nearest folder above `file` that has one; one that cannot be used is none."""
    for folder in file.resolve().parents:
        place = snapshot.snapshot_path(snapshot.index_directory(), folder, tokenizer.fingerprint)
        if not place.is_file():
            continue
        try:
            saved = snapshot.load(place, fingerprint=tokenizer.fingerprint, root=str(folder))
            index = NgramIndex()
            index.restore(saved.stored)
        except (snapshot.SnapshotError, ValueError, OSError):
            return None
        return StoredIndex(folder, index)
    return None


def num_saved_bytes(root: Path, fingerprint: str) -> int:
    """The size of a folder's saved index; 0 when there is none."""
    place = snapshot.snapshot_path(snapshot.index_directory(), root, fingerprint)
    return place.stat().st_size if place.is_file() else 0
