"""The language server's client behind all HTTP clients: sends their texts, and requests completions."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lsp_server.commands.language_client import LanguageClient, ServerGoneError
from lsp_server.commands.local_engine import reported
from lsp_server.http_door.documents import CursorText, HttpDocument, HttpDocuments, edits_between, position_at
from lsp_server.http_door.line_index import LineIndex, read_files
from lsp_server.protocol.framing import ResponseError
from lsp_server.protocol.reasons import REASONS

logger = logging.getLogger(__name__)

CLIENT_NAME = "slipstream-http"
# No path arrives that would say whose rules hold, so no text leaves this machine.
SETTINGS: Mapping[str, Any] = {"remote": {"url": ""}}
# The server watches the folders itself.
CAPABILITIES: Mapping[str, Any] = {"workspace": {"workspaceFolders": True}, "window": {}}
# Files that were written since the index was read are found after this time.
INDEX_AGAIN_S = 30.0
_AUTOMATIC = 2
_REPLACES = "The suggestion replaces text after the cursor, which this protocol cannot express."


@dataclass(frozen=True, slots=True)
class Answer:
    """The text to insert at a cursor, or the `reason` for none, and the engine's counts."""

    text: str
    reason: str = ""
    stats: Mapping[str, Any] = field(default_factory=dict)


class Completions:
    """One conversation with a language server, started again if it ends. Use as an async context manager."""

    def __init__(self, server: Sequence[str], folders: Sequence[Path]) -> None:
        self._server, self._folders = server, folders
        self._client: LanguageClient | None = None
        self._starting = asyncio.Lock()
        self._documents = HttpDocuments()
        self._index = LineIndex()
        self._indexed_s = float("-inf")
        self._indexing: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Completions:
        await self._connect()
        await self._update_index()
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._indexing is not None:
            await asyncio.gather(self._indexing, return_exceptions=True)
        if self._client is not None:
            await self._client.shutdown()

    async def stats(self) -> dict[str, Any]:
        """Return the server's state and counters."""
        client = await self._connect()
        return dict(await client.request("slipstream/stats", {}))

    async def show(self, cursor: CursorText) -> None:
        """Send the text without asking for a completion: the server prepares for one."""
        self._send_text(await self._connect(), cursor)

    async def complete(self, cursor: CursorText) -> Answer:
        """Return the completion at a cursor. When this task is cancelled, the server's request is too."""
        try:
            return await self._complete(await self._connect(), cursor)
        except ServerGoneError:
            return await self._complete(await self._connect(), cursor)

    async def _complete(self, client: LanguageClient, cursor: CursorText) -> Answer:
        document, offset = self._send_text(client, cursor)
        text = document.text
        here = {"textDocument": {"uri": document.uri}, "position": position_at(text, offset)}
        pending = client.send(
            "textDocument/inlineCompletion", {**here, "context": {"triggerKind": _AUTOMATIC}}
        )
        try:
            items = (await pending)["items"]
        except asyncio.CancelledError:
            with contextlib.suppress(ServerGoneError):
                client.cancel(pending.id)
            raise
        except ResponseError as error:
            return Answer("", REASONS["superseded"] if error.is_cancelled else str(error))
        about = await client.request("slipstream/why", here)
        inserted = _inserted(items[0], text, offset) if items else ""
        if inserted:
            return Answer(inserted, stats=about.get("stats", {}))
        return Answer("", _REPLACES if items else about["reason"], about.get("stats", {}))

    def _send_text(self, client: LanguageClient, cursor: CursorText) -> tuple[HttpDocument, int]:
        """Let the server's document be the client's text; return it, and the cursor's place in it."""
        placed = self._documents.place(cursor, self._index)
        document, old = placed.document, placed.document.text
        document.text = placed.text
        if client.has_open(document.uri):
            for edit in edits_between(old, placed.text):
                span = {"start": position_at(old, edit.start), "end": position_at(old, edit.end)}
                client.change(document.uri, [{"range": span, "text": edit.text}])
                old = old[: edit.start] + edit.text + old[edit.end :]
        else:
            client.open(document.uri, placed.text, language=document.language)
        for surplus in self._documents.surplus():
            client.close(surplus.uri)
        if (
            document.is_unsaved
            and self._indexing is None
            and time.monotonic() - self._indexed_s > INDEX_AGAIN_S
        ):
            self._indexing = asyncio.create_task(self._update_index())
        return document, placed.offset

    async def _connect(self) -> LanguageClient:
        """Return the client of a running server. Raises ServerGoneError if none starts."""
        async with self._starting:
            if self._client is not None and not self._client.has_ended:
                return self._client
            if self._client is not None:
                logger.warning("The language server has ended, and is started again")
                await self._client.shutdown()
            client = await LanguageClient.start(self._server, cwd=Path("/"))
            self._client = client
            root = self._folders[0] if self._folders else None
            await client.initialize(
                root,
                position_encoding="utf-32",
                settings=SETTINGS,
                capabilities=CAPABILITIES,
                name=CLIENT_NAME,
            )
            added = [{"uri": folder.as_uri(), "name": folder.name} for folder in self._folders[1:]]
            client.notify("workspace/didChangeWorkspaceFolders", {"event": {"added": added, "removed": []}})
            return client

    async def _update_index(self) -> None:
        try:
            self._index = await asyncio.to_thread(_index_of, self._folders)
        finally:
            self._indexed_s, self._indexing = time.monotonic(), None


def _index_of(folders: Sequence[Path]) -> LineIndex:
    options = {folder: reported(folder).index for folder in folders}
    return LineIndex(read_files({folder: found for folder, found in options.items() if found is not None}))


def _inserted(item: Mapping[str, Any], text: str, offset: int) -> str:
    """Return what an item inserts at the cursor; empty if it replaces text after it otherwise."""
    place, end = position_at(text, offset), item["range"]["end"]
    replaced = (
        text[offset : offset + end["character"] - place["character"]] if end["line"] == place["line"] else ""
    )
    whole = str(item["insertText"])
    return whole.removesuffix(replaced) if whole.endswith(replaced) else ""
