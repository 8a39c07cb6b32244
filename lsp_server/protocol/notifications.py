"""Messages, status line and progress bars of the editor.

Owns what was sent last, and how often something may be sent. Does not depend on the meaning of states. Used
on the event loop only.
"""

from __future__ import annotations

import asyncio
import itertools
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lsprotocol import types
from lsprotocol.types import MessageType
from pygls.exceptions import JsonRpcException

from lsp_server.workspace.measurements import percent

if TYPE_CHECKING:
    from pygls.lsp.server import LanguageServer

# A file that changes from error to error is reported at most this often.
PAUSE_S = 30.0
# Number of remembered sentences; a forgotten one may be shown again.
MAX_SHOWN = 1000

# A download reports thousands of steps; an editor needs no more than ten a second.
MIN_INTERVAL_S = 0.1

_numbers = itertools.count(1)


@dataclass(slots=True)
class _File:
    """The last state of one file, what is wrong with it, and the end of the pause after it was shown."""

    problems: Sequence[str] = ()
    timer: asyncio.TimerHandle | None = None


class Messages:
    """Shows sentences by `show(kind, sentence)`. Used on the event loop only."""

    def __init__(self, show: Callable[[MessageType, str], None]) -> None:
        self._send = show
        self._shown: dict[str, None] = {}
        self._files: dict[Path, _File] = {}
        self._has_stopped = False

    def is_new(self, sentence: str) -> bool:
        """Whether this was never shown; from now on it counts as shown."""
        if sentence in self._shown:
            return False
        self._shown[sentence] = None
        if len(self._shown) > MAX_SHOWN:
            del self._shown[next(iter(self._shown))]
        return True

    def show(self, sentences: Sequence[str], kind: MessageType) -> None:
        """Show each sentence that is new."""
        for sentence in filter(self.is_new, () if self._has_stopped else sentences):
            self._send(kind, sentence)

    def show_of_file(self, path: Path, problems: Sequence[str]) -> None:
        """Warn of what is new of all that is wrong with a file now; in a pause, of its last state then."""
        if self._has_stopped:
            return
        file = self._files.setdefault(path, _File())
        file.problems = problems
        if file.timer is None:
            self._flush(file)

    def stop(self) -> None:
        """Nothing is shown any more, nor is anything begun: a file may be read still when its window goes."""
        self._has_stopped = True
        for file in self._files.values():
            if file.timer is not None:
                file.timer.cancel()
        self._files.clear()

    def _flush(self, file: _File) -> None:
        file.timer = None
        if any(problem not in self._shown for problem in file.problems):
            self.show(file.problems, MessageType.Warning)
            file.timer = asyncio.get_running_loop().call_later(PAUSE_S, self._flush, file)


class StatusLine:
    """Sends each new status: changes at once, steps of loading spaced out. Used on the event loop only."""

    def __init__(self, send: Callable[[dict[str, Any]], None]) -> None:
        self._send = send
        self._sent: dict[str, Any] = {}
        self._sent_s = 0.0
        self._wanted: dict[str, Any] = {}
        self._timer: asyncio.TimerHandle | None = None

    def show(self, status: dict[str, Any]) -> None:
        """Send `status` to the editor if it changed. After several fast changes, only the last is sent."""
        self._wanted = status
        is_step = status["state"] == self._sent.get("state") == "loading"
        loop = asyncio.get_running_loop()
        wait_s = self._sent_s + MIN_INTERVAL_S - loop.time() if is_step else 0.0
        if wait_s <= 0:
            self._flush()
        elif self._timer is None:
            self._timer = loop.call_later(wait_s, self._flush)

    def stop(self) -> None:
        """Nothing is sent any more."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _flush(self) -> None:
        self.stop()
        if self._wanted != self._sent:
            self._sent, self._sent_s = self._wanted, asyncio.get_running_loop().time()
            self._send(self._wanted)


class ProgressBars:
    """The progress bars of one window, by the keys of what goes on."""

    def __init__(self, server: LanguageServer) -> None:
        self._server = server
        self._open: dict[object, WorkDone] = {}

    def report(self, key: object, title: str, message: str, done: int, total: int) -> None:
        """Report progress, in a new bar if there is none; see `WorkDone.report`."""
        if key not in self._open:
            self._open[key] = WorkDone(self._server, title)
        self._open[key].report(message, done, total)

    def end(self, key: object, message: str) -> None:
        """Take the bar away, if there is one."""
        if (bar := self._open.pop(key, None)) is not None:
            bar.end(message)


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
        """Report progress: `done` of `total` units, 0 while that is unknown."""
        self._message = message
        self._percentage = percent(done, total)
        now = time.monotonic()
        if self._is_open and now - self._reported_s >= MIN_INTERVAL_S:
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
