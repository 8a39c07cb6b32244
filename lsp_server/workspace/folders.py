"""The open workspace folders, which of them have settings yet, and the reading of their settings.

Used on the event loop only.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Collection, Coroutine
from dataclasses import dataclass, field
from pathlib import Path

# Each folder needs a thread and an index.
MAX_FOLDERS = 64
# A disk that takes longer to respond delays nothing else.
READING_S = 1.0

Reading = asyncio.Task[None]


@dataclass(slots=True)
class WorkspaceFolders:
    """The open folders by URI; several URIs may name one folder.

    Until the settings of `unread` folders are read, they are not indexed, and get no suggestions. Reading
    also finds the real path of a folder and the folders `around` it that have a settings file.
    """

    by_uri: dict[str, Path] = field(default_factory=dict)
    unread: set[Path] = field(default_factory=set)
    around: dict[Path, tuple[Path, ...]] = field(default_factory=dict)
    _real_paths: dict[Path, Path] = field(default_factory=dict)
    _news: asyncio.Event = field(default_factory=asyncio.Event)  # set once fewer folders are unread

    def __contains__(self, folder: Path) -> bool:
        return folder in self.by_uri.values()

    @property
    def paths(self) -> tuple[Path, ...]:
        """Return each open folder once."""
        return tuple(dict.fromkeys(self.by_uri.values()))

    @property
    def real_paths(self) -> dict[Path, Path]:
        """Return each open folder with its real path, or with itself until that is known."""
        return {folder: self._real_paths.get(folder, folder) for folder in self.paths}

    async def until_read(self, folders: Collection[Path]) -> None:
        """Wait until the settings of these folders are read, for at most `READING_S`."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(READING_S):
                while not self.unread.isdisjoint(folders):
                    await self._news.wait()

    def read(self, folder: Path, real_path: Path) -> bool:
        """Record that an open folder's settings were read; return True if its real path is new."""
        self._no_longer_unread(folder)
        is_news = self._real_paths.get(folder, folder) != real_path
        self._real_paths[folder] = real_path
        return is_news

    def add(self, uri: str, folder: Path) -> bool:
        """Record an open folder; return False if there are too many, and it is left out."""
        if uri not in self.by_uri and len(self.by_uri) >= MAX_FOLDERS:
            return False
        if folder not in self:
            self.unread.add(folder)
        self.by_uri[uri] = folder
        return True

    def remove(self, uri: str) -> Path | None:
        """Record that a URI is closed; return its folder, unless another URI names it."""
        folder = self.by_uri.pop(uri, None)
        if folder is None or folder in self:
            return None
        self._no_longer_unread(folder)
        self._real_paths.pop(folder, None)
        self.around.pop(folder, None)
        return folder

    def _no_longer_unread(self, folder: Path) -> None:
        self.unread.discard(folder)
        self._news.set()
        self._news = asyncio.Event()


class FolderReadings:
    """Reads folders concurrently: per folder at most one reading runs, and one more waits.

    A reading that hangs delays only its own folder.
    """

    def __init__(self) -> None:
        self._running: dict[Path, Reading] = {}
        self._waiting: dict[Path, Reading] = {}

    def begin(self, folder: Path, read: Callable[[Path], Coroutine[None, None, None]]) -> Reading:
        """Let `read` read a folder after the running reading. A reading that already waits is reused."""
        if (waiting := self._waiting.get(folder)) is not None:
            return waiting
        before = self._running.get(folder)
        reading = asyncio.get_running_loop().create_task(self._run(folder, before, read))
        (self._running if before is None else self._waiting)[folder] = reading
        return reading

    async def _run(
        self, folder: Path, before: Reading | None, read: Callable[[Path], Coroutine[None, None, None]]
    ) -> None:
        if before is not None:
            await asyncio.wait([before])
            self._running[folder] = self._waiting.pop(folder)
        try:
            await read(folder)
        finally:
            if folder not in self._waiting:
                self._running.pop(folder, None)
