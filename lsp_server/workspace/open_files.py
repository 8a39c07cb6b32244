"""Open documents on the disk: which file each one is, whatever its path, and what its index and settings get.

Threads read the disk when a document is opened, when folders come and go, and from time to time. The event
loop never waits.
"""

from __future__ import annotations

import asyncio
import logging
import os
import time
from collections import OrderedDict
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from lsp_server.sharing.supervision import on_own_thread
from lsp_server.workspace.folder_indexes import FolderIndexes
from lsp_server.workspace.locations import DocumentLocation, FileIdentity
from lsp_server.workspace.notebooks import cell_lines
from lsp_server.workspace.session import Session
from lsp_server.workspace.settings_reading import (
    REPOSITORY_FILE,
    FoundSettings,
    read_repository_file,
    unreadable,
)
from ngram_cache.file_names import real_path
from ngram_cache.git_places import work_tree

logger = logging.getLogger(__name__)

# Links and settings files may change at any time: a result is valid for this time.
VALID_S = 2.0
# Most answers are given by then.
LOOK_AGAIN_S = 0.25

MAX_CONFIGURED = 16
MAX_FOUND = 256
MAX_LOOKING = 32  # lookups at a time, each on a thread

Reading = asyncio.Task[None]


@dataclass(frozen=True, slots=True)
class FoundFile:
    """Which file a document is, and the values and problems of each settings file around it."""

    identity: FileIdentity
    settings: dict[Path, FoundSettings] = field(default_factory=dict)


class OpenFiles:
    """Finds the files of open documents, once for all documents of a file. Used on the event loop only.

    `on_problems` receives a settings file, and all that is wrong with it; `on_found` receives a document
    whose file is known now, or is another one; `on_rules` is called when a settings file around an open
    folder changed.
    """

    def __init__(
        self,
        session: Session,
        indexes: FolderIndexes,
        on_problems: Callable[[Path, tuple[str, ...]], None],
        on_found: Callable[[str], None],
        on_rules: Callable[[], None],
    ) -> None:
        self._session, self._indexes = session, indexes
        self._on_problems, self._on_found, self._on_rules = on_problems, on_found, on_rules
        self._looking: dict[Path, asyncio.Task[None]] = {}
        self._waiting: dict[Path, dict[str, None]] = {}
        self._found: OrderedDict[Path, tuple[float, FoundFile]] = OrderedDict()
        self._may_look = asyncio.Semaphore(MAX_LOOKING)
        self._has_ended = False

    def end(self) -> None:
        """Begin nothing more, and ignore what is still found."""
        self._has_ended = True

    def identify(self, uri: str, *, is_urgent: bool = True) -> None:
        """Find which file an open document is, unless known; if `is_urgent`, nothing is suggested before."""
        path = self._session.location_of(uri).stands_for
        if path is None or self._has_ended:
            return
        if is_urgent:
            self._session.unidentified.add(uri)
        found_s, found = self._found.get(path, (0.0, None))
        if found is not None and time.monotonic() - found_s <= VALID_S:
            self._take(uri, found)
            return
        self._waiting.setdefault(path, {})[uri] = None
        if path not in self._looking:
            self._looking[path] = asyncio.get_running_loop().create_task(self._look(path))

    async def identified(self, uri: str) -> None:
        """Wait until it is known which file a document is, and until the folders around it are read, unless
        that takes long.

        If text may leave this machine, that knowledge is not older than `VALID_S`. Otherwise the disk is read
        again after the answer, for the next request.
        """
        session = self._session
        if uri in session.unidentified or session.settings_for(uri).remote.url:
            self.identify(uri, is_urgent=False)
            path = session.location_of(uri).stands_for
            if path is not None and (looking := self._looking.get(path)) is not None:
                await asyncio.wait([looking])
        else:
            asyncio.get_running_loop().call_later(LOOK_AGAIN_S, self._look_again, uri)
        await session.folders.until_read(session.location_of(uri).rule_folders)

    def _look_again(self, uri: str) -> None:
        if self._session.follows(uri):
            self.identify(uri, is_urgent=False)

    def forget(self, location: DocumentLocation) -> None:
        """Drop a closed document; settings files that applied to it alone are of no more interest."""
        if (path := location.stands_for) is not None and path in self._waiting:
            self._waiting[path].pop(location.uri, None)
        folders = self._session.folders
        for home in set(location.rule_folders).difference(folders.paths, *folders.around.values()):
            if not self._session.has_documents_in(home):
                self._session.configuration.drop_repository(home)

    def relocate(self) -> None:
        """Find open documents in the present folders, after some came, went or lead elsewhere."""
        for location in self._session.relocate():
            self.show_to_index(location)

    def show_to_index(self, location: DocumentLocation) -> None:
        """Have the index of a document's folder draft from its text, in place of the file's, and no other
        one.
        """
        session, path = self._session, location.file
        notebook = session.notebooks.notebook_of(location.uri)
        document = session.documents.get(location.uri)
        if notebook:
            path = location.indexed_path if location.folder is not None else None
        if path is None or location.uri in session.unidentified:
            return
        if notebook and location.folder is not None and not location.is_secret:
            self._indexes.document_changed(location.folder, path, lambda: self._cell_lines(notebook))
        elif document is not None and location.folder is not None and not location.is_secret:
            self._indexes.document_changed(location.folder, path, document.lines.copy)
        else:
            self._indexes.document_closed(path)

    def _cell_lines(self, notebook: str) -> list[str]:
        cells = self._session.notebooks.cells_of(notebook)
        return cell_lines(self._session.documents.get(uri) for uri in cells)

    async def _look(self, path: Path) -> None:
        """Find a file for all documents that wait for it. After a failure, the next request tries again."""
        try:
            async with self._may_look:
                found = await on_own_thread(find_file, path)
        except Exception:
            logger.exception("The file of a document cannot be found")
            return
        finally:
            del self._looking[path]
            waiting = self._waiting.pop(path, {})
        self._found[path] = time.monotonic(), found
        self._found.move_to_end(path)
        if len(self._found) > MAX_FOUND:
            self._found.popitem(last=False)
        for uri in waiting:
            self._take(uri, found)
            await asyncio.sleep(0)  # a notebook may have thousands of cells

    def _take(self, uri: str, found: FoundFile) -> None:
        """Store the file of an open document, and the values of the settings files around it."""
        session = self._session
        if self._has_ended or not session.follows(uri):
            return
        before, was_unidentified = session.location_of(uri), uri in session.unidentified
        around = {folder for outer in session.folders.around.values() for folder in outer}
        rules = session.configuration.of(*around)
        for folder, (values, problems) in found.settings.items():
            if folder not in session.folders:
                refused = session.configuration.set_repository(folder, values)
                self._on_problems(folder / REPOSITORY_FILE, (*problems, *refused))
        if session.configuration.of(*around) != rules:
            self._on_rules()
        if not (session.identify(uri, found.identity) or was_unidentified):
            return
        location = session.location_of(uri)
        if before.file is not None and before.file != location.file:
            self._indexes.document_closed(before.file)
        self.show_to_index(location)
        self._on_found(uri)


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


def find_file(path: Path) -> FoundFile:
    """Read from the disk which file `path` leads to, and the settings files around it."""
    identity = find_identity(path)
    return FoundFile(identity, _read_each(identity.configured))


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
    return folder, _read_each([outer for outer in configured if outer != folder])


def _read_each(folders: Sequence[Path]) -> dict[Path, FoundSettings]:
    found = {folder: read_repository_file(folder) for folder in folders[:MAX_CONFIGURED]}
    reason = f"there are more than {MAX_CONFIGURED} of them"
    return found | {
        folder: unreadable(folder / REPOSITORY_FILE, reason) for folder in folders[MAX_CONFIGURED:]
    }


def _configured(folder: Path) -> tuple[Path | None, tuple[Path, ...]]:
    """Return the work tree around a folder, and the folders from there down that have a settings file."""
    top = work_tree(folder)
    configured: list[Path] = []
    for outer in (folder, *folder.parents):
        if os.path.lexists(outer / REPOSITORY_FILE):
            configured.append(outer)
        if outer == top:
            break
    return top, tuple(reversed(configured))
