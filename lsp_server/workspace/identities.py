"""Which files open documents are, whichever paths name them, and what the settings files around them say.

Owns when the disk is asked: on threads of their own, when a document is opened and from time to time. The
loop never waits.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lsp_server.supervision import on_own_thread
from lsp_server.workspace.locations import FileIdentity
from lsp_server.workspace.settings_file import REPOSITORY_FILE, read_repository_file
from ngram_cache.git_places import work_tree
from ngram_cache.real_paths import real_path

# Links and settings files may change at any time: what was found is believed for so long.
VALID_S = 2.0

MAX_CONFIGURED = 16


@dataclass(frozen=True, slots=True)
class FoundFile:
    """Which file a document is, and what each settings file around it says, with what is wrong there."""

    identity: FileIdentity
    settings: dict[Path, tuple[dict[str, Any], tuple[str, ...]]] = field(default_factory=dict)


class Identities:
    """Asks the disk for documents' identities. Used on the event loop only.

    `on_found` is called on the loop with a document's URI and what was found.
    """

    def __init__(self) -> None:
        self._asking: dict[str, asyncio.Task[None]] = {}
        self._found_s: dict[str, float] = {}

    def ask(self, uri: str, path: Path, on_found: Callable[[str, FoundFile], None]) -> None:
        """Find out which file `path` leads to, unless that is under way."""
        if uri not in self._asking:
            self._asking[uri] = asyncio.get_running_loop().create_task(self._ask(uri, path, on_found))

    def is_new(self, uri: str) -> bool:
        """Whether the last answer about a document may still be believed."""
        return time.monotonic() - self._found_s.get(uri, float("-inf")) <= VALID_S

    async def answered(self, uri: str) -> None:
        """Wait for what is being asked about a document, if anything is."""
        if (asking := self._asking.get(uri)) is not None:
            await asyncio.shield(asking)

    def forget(self, uri: str) -> None:
        """A document is closed; an answer that is under way counts no more."""
        self._asking.pop(uri, None)
        self._found_s.pop(uri, None)

    async def _ask(self, uri: str, path: Path, on_found: Callable[[str, FoundFile], None]) -> None:
        found = await on_own_thread(find_file, path)
        if self._asking.get(uri) is asyncio.current_task():
            del self._asking[uri]
            self._found_s[uri] = time.monotonic()
            on_found(uri, found)


def find_file(path: Path) -> FoundFile:
    """Ask the disk which file `path` leads to, and read the settings files around it."""
    identity = find_identity(path)
    return FoundFile(identity, {folder: read_repository_file(folder) for folder in identity.configured})


def find_identity(path: Path) -> FileIdentity:
    """Ask the disk which file `path` leads to; a path that no disk has stands for itself.

    Home is the work tree that holds the file, or else the outermost folder around it with a settings file, or
    its own folder.
    """
    try:
        path = real_path(path)
    except (OSError, ValueError):
        return FileIdentity(path, path.parent)
    top = work_tree(path.parent)
    configured: list[Path] = []
    for folder in path.parents:
        if os.path.lexists(folder / REPOSITORY_FILE):
            configured.append(folder)
        if folder == top:
            break
    outermost = tuple(reversed(configured))[:MAX_CONFIGURED]
    return FileIdentity(path, top or next(iter(outermost), path.parent), outermost)
