"""Finds which file each open document is, whichever path names it, and the settings files around it.

Reads the disk on separate threads when a document is opened and from time to time. The loop never waits.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lsp_server.supervision import on_own_thread
from lsp_server.workspace.locations import FileIdentity
from lsp_server.workspace.settings_file import REPOSITORY_FILE, read_repository_file
from ngram_cache.git_places import work_tree
from ngram_cache.real_paths import real_path

# Links and settings files may change at any time: a result is valid for this time.
VALID_S = 2.0

MAX_CONFIGURED = 16
MAX_FOUND = 256
MAX_LOOKING = 32  # lookups at a time, each on a thread


# The values of a settings file, and its problems.
FoundSettings = tuple[dict[str, Any], tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class FoundFile:
    """Which file a document is, and the values and problems of each settings file around it."""

    identity: FileIdentity
    settings: dict[Path, FoundSettings] = field(default_factory=dict)


class Identities:
    """Finds the identities of documents, once for all documents of a file. Used on the event loop only.

    `on_found` is called on the loop with a document's URI and the result.
    """

    def __init__(self, on_found: Callable[[str, FoundFile], None]) -> None:
        self._on_found = on_found
        self._looking: dict[Path, asyncio.Task[None]] = {}
        self._waiting: dict[Path, dict[str, None]] = {}
        self._found: OrderedDict[Path, tuple[float, FoundFile]] = OrderedDict()
        self._may_look = asyncio.Semaphore(MAX_LOOKING)

    def ask(self, uri: str, path: Path, *, anew: bool = False) -> None:
        """Find which file `path` leads to, unless that is known; with `anew`, even then."""
        found_s, found = self._found.get(path, (0.0, None))
        if found is not None and not anew and time.monotonic() - found_s <= VALID_S:
            self._on_found(uri, found)
            return
        self._waiting.setdefault(path, {})[uri] = None
        if path not in self._looking:
            self._looking[path] = asyncio.get_running_loop().create_task(self._look(path))

    async def answered(self, path: Path) -> None:
        """Wait for a running lookup of a path, if there is one."""
        if (looking := self._looking.get(path)) is not None:
            await asyncio.shield(looking)

    def forget(self, uri: str, path: Path | None) -> None:
        """Drop a closed document; a running lookup for it is ignored."""
        if path is not None and path in self._waiting:
            self._waiting[path].pop(uri, None)

    async def _look(self, path: Path) -> None:
        async with self._may_look:
            found = await on_own_thread(find_file, path)
        self._found[path] = time.monotonic(), found
        self._found.move_to_end(path)
        if len(self._found) > MAX_FOUND:
            self._found.popitem(last=False)
        del self._looking[path]
        for uri in self._waiting.pop(path, ()):
            self._on_found(uri, found)
            await asyncio.sleep(0)  # a notebook may have thousands of cells


def find_file(path: Path) -> FoundFile:
    """Read from the disk which file `path` leads to, and the settings files around it."""
    identity = find_identity(path)
    return FoundFile(identity, {folder: read_repository_file(folder) for folder in identity.configured})


def find_identity(path: Path) -> FileIdentity:
    """Read from the disk which file `path` leads to; a missing path is its own identity.

    `home` is the work tree around the file, or else the outermost folder around it with a settings file, or
    its own folder.
    """
    try:
        path = real_path(path)
    except (OSError, ValueError):
        return FileIdentity(path, path.parent)
    top, configured = _configured(path.parent)
    return FileIdentity(path, top or next(iter(configured), path.parent), configured)


def find_folder(folder: Path) -> tuple[Path, dict[Path, FoundSettings]]:
    """Return the real path of a folder, and the contents of the settings files of the folders around it."""
    try:
        folder = real_path(folder)
    except (OSError, ValueError):
        return folder, {}
    _, configured = _configured(folder)
    return folder, {outer: read_repository_file(outer) for outer in configured if outer != folder}


def _configured(folder: Path) -> tuple[Path | None, tuple[Path, ...]]:
    """Return the work tree around a folder, and the folders from there down that have a settings file."""
    top = work_tree(folder)
    configured: list[Path] = []
    for outer in (folder, *folder.parents):
        if os.path.lexists(outer / REPOSITORY_FILE):
            configured.append(outer)
        if outer == top:
            break
    return top, tuple(reversed(configured))[:MAX_CONFIGURED]
