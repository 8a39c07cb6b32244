"""A long task's progress bar in the editor, where the editor has one.

Owns one progress token at a time. Must not know what takes long.
"""

from __future__ import annotations

import asyncio
import itertools
import time
from typing import TYPE_CHECKING

from lsprotocol import types
from pygls.exceptions import JsonRpcException

from lsp_server.workspace.measurements import percent

if TYPE_CHECKING:
    from pygls.lsp.server import LanguageServer

# Editors redraw at each report; more often than this helps nobody.
MIN_REPORT_S = 0.1

_numbers = itertools.count(1)


class WorkDone:
    """One progress bar: `report` as often as you like, then `end`. Used on the event loop only."""

    def __init__(self, server: LanguageServer, title: str) -> None:
        self._server = server
        self._title = title
        self._token = f"slipstream-{next(_numbers)}"
        self._message = ""
        self._percentage: int | None = None
        self._reported_s = 0.0
        self._is_open = False
        self._has_ended = False
        self._opening: asyncio.Task[None] | None = None
        window = server.client_capabilities.window
        if window and window.work_done_progress:
            self._opening = asyncio.create_task(self._open())

    def report(self, message: str, done: int = 0, total: int = 0) -> None:
        """Say what is under way: `done` of `total` units, which is 0 while it is not known."""
        self._message = message
        self._percentage = percent(done, total)
        now = time.monotonic()
        if self._is_open and now - self._reported_s >= MIN_REPORT_S:
            self._reported_s = now
            self._send(types.WorkDoneProgressReport(message=message, percentage=self._percentage))

    def end(self, message: str = "") -> None:
        """Take the bar away."""
        self._has_ended = True
        if self._is_open:
            self._is_open = False
            self._send(types.WorkDoneProgressEnd(message=message or None))

    async def _open(self) -> None:
        try:
            await self._server.window_work_done_progress_create_async(
                types.WorkDoneProgressCreateParams(token=self._token)
            )
        except JsonRpcException:
            return
        self._is_open = True
        self._send(
            types.WorkDoneProgressBegin(
                title=self._title,
                message=self._message or None,
                percentage=self._percentage or 0,
                cancellable=False,
            )
        )
        if self._has_ended:  # editors keep a bar that was created and never begun
            self.end(self._message)

    def _send(
        self, value: types.WorkDoneProgressBegin | types.WorkDoneProgressReport | types.WorkDoneProgressEnd
    ) -> None:
        self._server.progress(types.ProgressParams(token=self._token, value=value))
