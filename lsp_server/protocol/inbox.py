"""Messages on their way from the reader's thread to the event loop, never more of them than a bound.

Owns the messages that wait. Must not know what a message is.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections import deque
from typing import Generic, TypeVar

# A client that sends faster than it is served is read no further than this.
MAX_MESSAGES = 1024
MAX_BYTES = 8 * 1024 * 1024

AnyMessage = TypeVar("AnyMessage")


class Inbox(Generic[AnyMessage]):
    """Filled on one thread, emptied on the event loop that it was made on."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._arrived = asyncio.Event()
        self._changed = threading.Condition()
        self._waiting: deque[tuple[AnyMessage, int]] = deque()
        self._num_bytes = 0
        self._is_closed = False

    def put(self, message: AnyMessage, num_bytes: int) -> bool:
        """Add a message of this size; waits while there is no room. False once nobody takes any more."""
        with self._changed:
            self._changed.wait_for(lambda: self._is_closed or self._has_room)
            if self._is_closed:
                return False
            self._waiting.append((message, num_bytes))
            self._num_bytes += num_bytes
        self._wake()
        return True

    def close(self) -> None:
        """There comes nothing more: who puts or gets hears of it. On any thread."""
        with self._changed:
            self._is_closed = True
            self._changed.notify_all()
        self._wake()

    async def get(self) -> AnyMessage | None:
        """The next message; None once all are taken and there comes nothing more."""
        while True:
            with self._changed:
                if self._waiting:
                    message, num_bytes = self._waiting.popleft()
                    self._num_bytes -= num_bytes
                    self._changed.notify_all()
                    return message
                if self._is_closed:
                    return None
                self._arrived.clear()
            await self._arrived.wait()

    @property
    def _has_room(self) -> bool:
        """One message is taken in any case, whatever its size."""
        is_full = len(self._waiting) >= MAX_MESSAGES or self._num_bytes >= MAX_BYTES
        return not self._waiting or not is_full

    def _wake(self) -> None:
        with contextlib.suppress(RuntimeError):  # the loop may have ended
            self._loop.call_soon_threadsafe(self._arrived.set)
