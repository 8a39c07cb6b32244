"""Decides which documents may leave for a team's servers: those that no rule of their folders excludes.

Rules are read from the disk on a separate thread; the loop never waits. Recent results are cached.
"""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from dataclasses import dataclass
from pathlib import Path

from lsp_server.sharing.supervision import on_own_thread
from lsp_server.workspace.documents import Document, DocumentSnapshot
from lsp_server.workspace.locations import DocumentLocation, FileIdentity
from lsp_server.workspace.open_files import find_identity
from ngram_cache.redaction import has_private_key, is_manifest
from ngram_cache.repository import Repository, RepositoryOptions

# Rules may change at any time: a result is valid for this time.
VALID_S = 2.0
_MAX_KEPT = 256


@dataclass(frozen=True, slots=True)
class Question:
    """Whether a file may leave, given what was found out about it."""

    called: Path
    identity: FileIdentity
    ruled_in: tuple[tuple[Path, Path], ...]
    exclude: tuple[str, ...]


class LeaveRules:
    """The cached results. Used on the event loop only."""

    def __init__(self) -> None:
        self._known: OrderedDict[Question, tuple[float, bool]] = OrderedDict()
        self._looking: dict[Question, asyncio.Task[bool]] = {}

    async def allow(self, location: DocumentLocation, exclude: tuple[str, ...]) -> bool:
        """Return whether no rule excludes a document, whether its file exists or not.

        The rules of each folder that contains the document by any of its paths count. A document whose file
        is unknown or not on this machine never leaves. While the disk is slow, further requests wait for the
        same reading, even if the first request is cancelled.
        """
        question = _question(location, exclude)
        if question is None:
            return location.stands_for is None and location.is_nameless
        found_s, may_leave = self._known.get(question, (0.0, False))
        if found_s and time.monotonic() - found_s <= VALID_S:
            return may_leave
        if question not in self._looking:
            self._looking[question] = asyncio.create_task(self._look(question))
        return await asyncio.shield(self._looking[question])

    def known(self, location: DocumentLocation, exclude: tuple[str, ...]) -> bool | None:
        """The last result of the same; None without a recent one. Not for text that leaves the machine."""
        question = _question(location, exclude)
        if question is None:
            return location.stands_for is None and location.is_nameless
        return self._known.get(question, (0.0, None))[1]

    async def _look(self, question: Question) -> bool:
        try:
            may_leave = await on_own_thread(_allows, question)
        finally:
            del self._looking[question]
        self._known[question] = time.monotonic(), may_leave
        self._known.move_to_end(question)
        if len(self._known) > _MAX_KEPT:
            self._known.popitem(last=False)
        return may_leave


def hides_secrets(document: Document, snapshot: DocumentSnapshot) -> bool:
    """Return whether the text beyond a snapshot makes all of the document secret.

    The engine judges the snapshot itself.
    """
    if document.num_chars <= len(snapshot.prefix) + len(snapshot.suffix):
        return False
    text = "".join(document.lines)
    return has_private_key(text) or is_manifest(text)


def _question(location: DocumentLocation, exclude: tuple[str, ...]) -> Question | None:
    if location.stands_for is None or location.identity is None:
        return None
    return Question(location.stands_for, location.identity, location.ruled_in, exclude)


def _allows(question: Question) -> bool:
    """Return whether the rules allow the file now; False if it cannot be read or has moved."""
    if find_identity(question.called) != question.identity:
        return False
    return all(_lets_in(folder, path, question.exclude) for folder, path in question.ruled_in)


def _lets_in(folder: Path, path: Path, exclude: tuple[str, ...]) -> bool:
    try:
        repository = Repository(folder, RepositoryOptions(exclude=exclude))
        return repository.allows(repository.document_path(path))
    except (OSError, ValueError):
        return False
