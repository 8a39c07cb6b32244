"""Which documents may leave for a team's servers: those that the rules of their folder let in.

Owns what was found out lately. Rules are read from the disk, on a thread of its own; the loop never waits.
"""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from pathlib import Path

from lsp_server.supervision import on_own_thread
from lsp_server.workspace.locations import DocumentLocation
from ngram_cache.repository import Repository, RepositoryOptions

# Rules may change at any time: a result is valid for this time.
VALID_S = 2.0
_MAX_KEPT = 256

_Key = tuple[Path | None, Path, tuple[str, ...]]


class LeaveRules:
    """Used on the event loop only."""

    def __init__(self) -> None:
        self._known: OrderedDict[_Key, tuple[float, bool]] = OrderedDict()
        self._looking: dict[_Key, asyncio.Task[bool]] = {}

    async def allow(self, location: DocumentLocation, exclude: tuple[str, ...]) -> bool:
        """Whether no rule leaves a document out, be its file there or not.

        A document of no workspace folder has the rules of the work tree that it lies in, or of its own
        folder. One whose file is not on this machine never leaves. While the disk is slow, further requests
        wait for the same reading, even if the first one is cancelled.
        """
        if location.stands_for is None:
            return location.is_nameless
        key = location.folder, location.stands_for, exclude
        found_s, may_leave = self._known.get(key, (0.0, False))
        if found_s and time.monotonic() - found_s <= VALID_S:
            return may_leave
        if key not in self._looking:
            self._looking[key] = asyncio.create_task(self._look(key))
        return await asyncio.shield(self._looking[key])

    def known(self, location: DocumentLocation, exclude: tuple[str, ...]) -> bool | None:
        """The last result of the same; None without a recent one. Not for text that leaves the machine."""
        if location.stands_for is None:
            return location.is_nameless
        return self._known.get((location.folder, location.stands_for, exclude), (0.0, None))[1]

    async def _look(self, key: _Key) -> bool:
        try:
            may_leave = await on_own_thread(_allows, *key)
        finally:
            del self._looking[key]
        self._known[key] = time.monotonic(), may_leave
        self._known.move_to_end(key)
        if len(self._known) > _MAX_KEPT:
            self._known.popitem(last=False)
        return may_leave


def _allows(folder: Path | None, path: Path, exclude: tuple[str, ...]) -> bool:
    """What the rules say now; what cannot be read is left out."""
    try:
        if folder is None:
            path = path.parent.resolve() / path.name
            folder = _work_tree(path)
        repository = Repository(folder, RepositoryOptions(exclude=exclude))
        return repository.allows(repository.document_path(path))
    except (OSError, ValueError):
        return False


def _work_tree(path: Path) -> Path:
    """The folder whose rules hold for a file that no workspace folder holds."""
    return next((top for top in path.parents if (top / ".git").exists()), path.parent)
