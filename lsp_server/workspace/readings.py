"""Owns how many read of a folder at a time: one, and at most one more that waits for it.

Must not know what is read.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from pathlib import Path

Reading = asyncio.Task[None]


class Readings:
    """Readings of folders side by side. One that hangs keeps nobody waiting but those of its own folder."""

    def __init__(self) -> None:
        self._running: dict[Path, Reading] = {}
        self._waiting: dict[Path, Reading] = {}

    def begin(self, folder: Path, read: Callable[[Path], Coroutine[None, None, None]]) -> Reading:
        """Have `read` read a folder, once who reads it now is done; who waits for that already will do."""
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
