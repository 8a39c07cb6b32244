"""The editor's status line: what `didChangeStatus` says, and how often it may say it.

Owns what was sent last. Must not know what a status means, beyond that loading is told step by step.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

# A download reports thousands of steps; an editor needs no more than ten a second.
MIN_INTERVAL_S = 0.1


class StatusLine:
    """Sends each new status: changes at once, steps of loading spaced out. Used on the event loop only."""

    def __init__(self, send: Callable[[dict[str, Any]], None]) -> None:
        self._send = send
        self._sent: dict[str, Any] = {}
        self._sent_s = 0.0
        self._wanted: dict[str, Any] = {}
        self._timer: asyncio.TimerHandle | None = None

    def show(self, status: dict[str, Any]) -> None:
        """Tell the editor `status`, unless it is what the editor knows; of steps that come fast, the last."""
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
