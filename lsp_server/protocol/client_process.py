"""Watches the process that started the server: it may be gone while another process still holds its pipe."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

import psutil

INTERVAL_S = 5.0


@dataclass(frozen=True, slots=True)
class ClientProcess:
    """A running process. Its start time distinguishes it from a later one with the same number."""

    pid: int
    started_s: float

    @classmethod
    def find(cls, pid: int) -> ClientProcess | None:
        """The process with this number; None if it cannot be seen from here, as from inside a container."""
        try:
            return cls(pid, psutil.Process(pid).create_time())
        except (psutil.Error, ValueError, OverflowError):
            return None

    def has_ended(self) -> bool:
        """Whether the process is gone, or waits only for its parent to collect it."""
        try:
            process = psutil.Process(self.pid)
            return process.create_time() != self.started_s or process.status() == psutil.STATUS_ZOMBIE
        except psutil.NoSuchProcess:
            return True
        except psutil.Error:
            return False

    async def wait(self, interval_s: float = INTERVAL_S) -> None:
        """Return once the process has ended, at most `interval_s` later."""
        while not self.has_ended():  # noqa: ASYNC110 - the system has no event for a process that is not a child
            await asyncio.sleep(interval_s)
