"""The one client of the language server for all HTTP clients: sends their texts, and requests completions."""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from completion_engine.next_edit.edits import common_ends
from lsp_server.commands.language_client import LanguageClient, PendingRequest, ServerGoneError
from lsp_server.commands.player import SERVER_COMMAND
from lsp_server.http_api.dialects import CursorText
from lsp_server.http_api.documents import HttpDocuments


class Completions:
    """One conversation with a language server, started again if it ends."""

    def __init__(self, folders: Sequence[Path]) -> None:
        self._folders, self._documents = folders, HttpDocuments(folders)
        self._client: LanguageClient | None = None
        self._connecting, self._turn = asyncio.Lock(), asyncio.Lock()
        self._asked: tuple[str, PendingRequest] | None = None  # the newest request, and its document
        self._in_work: dict[object, asyncio.Task[Mapping[str, Any]]] = {}
        self._num_clients: Counter[object] = Counter()  # that wait for each

    async def aclose(self) -> None:
        """End the conversation."""
        if self._client is not None:
            await self._client.shutdown()

    async def stats(self) -> Mapping[str, Any]:
        """Return the server's state and counters."""
        client = await self._connected()
        return dict(await client.request("slipstream/stats", {}))

    async def complete(self, cursor: CursorText, limits: Mapping[str, int]) -> Mapping[str, Any]:
        """Return the `text` at a cursor, the `reason` for none, and the engine's `stats`.

        Equal requests share one: minuet sends three for three suggestions. When the last of them is
        cancelled, the server's request is too. Raises ServerGoneError and ResponseError.
        """
        key = cursor, frozenset(limits.items())
        if key not in self._in_work:
            self._in_work[key] = asyncio.create_task(self._complete(cursor, limits))
        self._num_clients[key] += 1
        try:
            return await asyncio.shield(self._in_work[key])
        finally:
            self._num_clients[key] -= 1
            if not self._num_clients[key]:
                del self._num_clients[key]
                self._in_work.pop(key).cancel()

    async def _complete(self, cursor: CursorText, limits: Mapping[str, int]) -> Mapping[str, Any]:
        document = await self._documents.find(cursor)
        async with self._turn:
            client = await self._connected()
            old_text = document.text
            offset = self._documents.place(document, cursor)
            text = document.text
            if client.has_open(document.uri):
                start, num_after = common_ends(old_text, text)
                end = _position(old_text, len(old_text) - num_after)
                changed = {"start": _position(old_text, start), "end": end}
                client.change(document.uri, [{"range": changed, "text": text[start : len(text) - num_after]}])
            else:
                client.open(document.uri, text, language=document.language)
            for surplus in self._documents.pop_surplus():
                client.close(surplus.uri)
            # The server answers only its newest request, and one in another document may be another editor's.
            if self._asked is not None and self._asked[0] != document.uri:
                await asyncio.wait([self._asked[1].answer])
            here = {"textDocument": {"uri": document.uri}, "position": _position(text, offset)}
            pending = client.send("slipstream/complete", {**here, **limits})
            self._asked = document.uri, pending
        try:
            return dict(await pending)
        except asyncio.CancelledError:
            with contextlib.suppress(ServerGoneError):
                client.cancel(pending.id)
            raise

    async def _connected(self) -> LanguageClient:
        """Return the client of a running server. Raises ServerGoneError if none starts."""
        async with self._connecting:
            if self._client is None or self._client.has_ended:
                await self.aclose()
                command = (*SERVER_COMMAND, "--shared")
                self._client = client = await LanguageClient.start(command, cwd=Path("/"))
                # No path arrives that would say whose rules hold, so no text leaves this machine.
                settings = {"remote": {"url": ""}}
                # The server watches the folders itself.
                can = {"workspace": {"workspaceFolders": True}, "window": {}}
                await client.initialize(
                    None,
                    position_encoding="utf-32",
                    settings=settings,
                    capabilities=can,
                    name="slipstream-http",
                )
                added = [{"uri": folder.as_uri(), "name": folder.name} for folder in self._folders]
                change = {"event": {"added": added, "removed": []}}
                client.notify("workspace/didChangeWorkspaceFolders", change)
            return self._client


def _position(text: str, offset: int) -> dict[str, int]:
    """Return the position of the protocol at an offset, in characters of UTF-32."""
    return {"line": text.count("\n", 0, offset), "character": offset - (text.rfind("\n", 0, offset) + 1)}
