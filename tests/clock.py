"""A clock that tests turn forward: timers of the event loop are due when a test asks for it.

Owns the running loop's time. A timer that is meant to wait is given minutes: a machine that is busy for
seconds lets none of them go off by itself.
"""

from __future__ import annotations

import asyncio


class Clock:
    """The running loop's clock."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._time = self._loop.time
        self._ahead_s = 0.0
        self._loop.time = lambda: self._time() + self._ahead_s  # type: ignore[method-assign]

    async def turn(self, seconds: float) -> None:
        """Let so much time pass at once, and what is due by then happen."""
        self._ahead_s += seconds
        for _ in range(3):  # the timers, what they wake, and what that wakes
            await asyncio.sleep(0)
