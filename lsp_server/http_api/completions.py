"""The language server's client behind all HTTP clients: sends their texts, and requests completions."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from lsp_server.commands.language_client import LanguageClient, ServerGoneError
from lsp_server.commands.player import SERVER_COMMAND
from lsp_server.http_api.documents import HttpDocuments
from lsp_server.http_api.prompts import CursorText
from lsp_server.protocol.framing import ResponseError
from lsp_server.protocol.reasons import REASONS

# No path arrives that would say whose rules hold, so no text leaves this machine.
SETTINGS: Mapping[str, Any] = {"remote": {"url": ""}}
# The server watches the folders itself.
_CAPABILITIES: Mapping[str, Any] = {"workspace": {"workspaceFolders": True}, "window": {}}
_REPLACES = "The suggestion replaces text after the cursor, which this protocol cannot express."


class Completion(NamedTuple):
    """The text to insert at a cursor, or the `reason` for none, and the engine's counts."""

    text: str = ""
    reason: str = ""
    stats: Mapping[str, Any] = {}


class Completions:
    """One conversation with a language server, started again if it ends. Use as an async context manager."""

    def __init__(
        self, folders: Sequence[Path], server: Sequence[str] = (*SERVER_COMMAND, "--shared")
    ) -> None:
        self._folders, self._server = folders, server
        self._documents = HttpDocuments(folders)
        self._client: LanguageClient | None = None
        self._turn = asyncio.Lock()

    async def __aenter__(self) -> Completions:
        await self._connected()
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._client is not None:
            await self._client.shutdown()

    async def stats(self) -> dict[str, Any]:
        """Return the server's state and counters."""
        async with self._turn:
            client = await self._connected()
        return dict(await client.request("slipstream/stats", {}))

    async def complete(self, cursor: CursorText, limits: Mapping[str, int]) -> Completion:
        """Return the completion at a cursor. When this task is cancelled, the server's request is too."""
        async with self._turn:
            client = await self._connected()
            document, text, offset = await self._documents.place(cursor)
            if client.has_open(document.uri):
                client.change(document.uri, [_change(document.text, text)])
            else:
                client.open(document.uri, text, language=document.language)
            document.text = text
            for surplus in self._documents.pop_surplus():
                client.close(surplus.uri)
        position = {"textDocument": {"uri": document.uri}, "position": _position(text, offset)}
        pending = client.send("slipstream/complete", {**position, **limits})
        try:
            found = await pending
        except asyncio.CancelledError:
            with contextlib.suppress(ServerGoneError):
                client.cancel(pending.id)
            raise
        except ResponseError as error:
            return Completion(reason=REASONS["superseded"] if error.is_cancelled else str(error))
        replaced = text[offset : offset + found["num_replaced"]]
        if not found["text"].endswith(replaced):
            return Completion("", _REPLACES, found["stats"])
        inserted = found["text"].removesuffix(replaced)
        return Completion(inserted, "" if inserted else found["reason"], found["stats"])

    async def _connected(self) -> LanguageClient:
        """Return the client of a running server. Raises ServerGoneError if none starts."""
        if self._client is None or self._client.has_ended:
            if self._client is not None:
                await self._client.shutdown()
            self._client = client = await LanguageClient.start(self._server, cwd=Path("/"))
            root = self._folders[0] if self._folders else None
            await client.initialize(
                root,
                position_encoding="utf-32",
                settings=SETTINGS,
                capabilities=_CAPABILITIES,
                name="slipstream-http",
            )
            added = [{"uri": folder.as_uri(), "name": folder.name} for folder in self._folders[1:]]
            client.notify("workspace/didChangeWorkspaceFolders", {"event": {"added": added, "removed": []}})
        return self._client


def _change(old: str, new: str) -> dict[str, Any]:
    """Return the one change between two texts, as the protocol writes it."""
    start = _num_common(old, new)
    num_after = _num_common(old[start:][::-1], new[start:][::-1])
    place, end = _position(old, start), _position(old, len(old) - num_after)
    return {"range": {"start": place, "end": end}, "text": new[start : len(new) - num_after]}


def _num_common(one: str, other: str) -> int:
    pairs = enumerate(zip(one, other, strict=False))
    return next((number for number, (a, b) in pairs if a != b), min(len(one), len(other)))


def _position(text: str, offset: int) -> dict[str, int]:
    """Return the position of the protocol at an offset, in characters of UTF-32."""
    return {"line": text.count("\n", 0, offset), "character": offset - (text.rfind("\n", 0, offset) + 1)}
