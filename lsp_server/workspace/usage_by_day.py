"""The savings of one user by day: one small database that all servers of the user add to.

It holds counts only, on this machine only, for 31 days. Deleting the file clears it.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import platformdirs

from lsp_server.sharing.supervision import on_own_thread
from lsp_server.sharing.system import make_private_folder
from lsp_server.workspace.measurements import usage_summary

logger = logging.getLogger(__name__)

NUM_DAYS = 31
_MAX_WAIT_S = 1.0
_PAUSE_S = 60.0
_SCHEMA = "CREATE TABLE IF NOT EXISTS counts (day TEXT, name TEXT, number INTEGER, PRIMARY KEY (day, name))"
_ADD = "INSERT INTO counts VALUES (?, ?, ?) ON CONFLICT DO UPDATE SET number = number + excluded.number"


def usage_path() -> Path:
    """The file of this user."""
    return platformdirs.user_state_path("slipstream", appauthor=False) / "usage.sqlite3"


def http_token_path() -> Path:
    """Return the file beside it that holds the token of HTTP clients."""
    return usage_path().with_name("http-token")


class UsageByDay:
    """Adds counts to a day and sums days. The file is open only during a call.

    Calls block, up to a second while another server writes: do not call them on the event loop. They raise
    OSError or sqlite3.Error where the file cannot be used or stays busy; then nothing was added. A damaged
    file is replaced by a new one.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    def add(self, day: date, counts: Mapping[str, int]) -> None:
        """Add to the counts of a day, and delete days that are too old."""
        oldest = day - timedelta(days=NUM_DAYS - 1)
        with self._opened() as database:
            rows = [(day.isoformat(), name, number) for name, number in counts.items()]
            database.executemany(_ADD, rows)
            database.execute("DELETE FROM counts WHERE day < ?", (oldest.isoformat(),))

    def since(self, day: date) -> Counter[str]:
        """The sums of all days from this one on."""
        if not self.path.exists():
            return Counter()
        with self._opened() as database:
            query = "SELECT name, SUM(number) FROM counts WHERE day >= ? GROUP BY name"
            return Counter(dict(database.execute(query, (day.isoformat(),)).fetchall()))

    @contextlib.contextmanager
    def _opened(self) -> Iterator[sqlite3.Connection]:
        """A connection whose changes are committed at the end of the block."""
        make_private_folder(self.path.parent)
        os.close(os.open(self.path, os.O_RDWR | os.O_CREAT, 0o600))
        with contextlib.closing(self._connect()) as database, database:
            yield database

    def _connect(self) -> sqlite3.Connection:
        for is_last_try in (False, True):
            database = sqlite3.connect(self.path, timeout=_MAX_WAIT_S)
            try:
                database.execute("PRAGMA synchronous = OFF")  # losing a minute of counts does not matter
                database.execute(_SCHEMA)
            except sqlite3.OperationalError:  # busy, full or not writable: the file itself may be in order
                database.close()
                raise
            except sqlite3.DatabaseError:
                database.close()
                if is_last_try:
                    raise
                self.path.unlink()
            else:
                return database
        raise AssertionError("the loop returns or raises")


class UsageRecorder:
    """Records what a growing total gained since the last time, without making the event loop wait for a disk.

    `total` returns all counts of this server so far.
    """

    def __init__(self, total: Callable[[], Counter[str]], usage: UsageByDay) -> None:
        self._total = total
        self._usage = usage
        self._recorded: Counter[str] = Counter()
        self._adding: asyncio.Task[None] | None = None
        self._lock = asyncio.Lock()

    async def run(self) -> None:
        """Record once a minute until cancelled."""
        while True:
            await asyncio.sleep(_PAUSE_S)
            await self.record()

    async def record(self) -> None:
        """Record what is new; counts that cannot be written are kept for the next time.

        A thread whose disk did not answer in time may still write: nothing is added before it has ended.
        """
        with _logged():
            async with self._lock, asyncio.timeout(2 * _MAX_WAIT_S):
                if self._adding is not None:
                    await asyncio.shield(self._adding)
                self._adding = asyncio.create_task(self._add())
                await asyncio.shield(self._adding)

    async def _add(self) -> None:
        with _logged():
            total = self._total()
            if new := total - self._recorded:
                await on_own_thread(self._usage.add, date.today(), new)
                self._recorded = total

    async def summaries(self) -> dict[str, Any] | None:
        """Today and the last seven days as plain JSON values, and the file; None where it cannot be read."""
        await self.record()
        today = date.today()
        with _logged():
            async with asyncio.timeout(2 * _MAX_WAIT_S):
                since = self._usage.since
                counts = [await on_own_thread(since, today - timedelta(days=days)) for days in (0, 6)]
            return {
                "today": usage_summary(counts[0]),
                "week": usage_summary(counts[1]),
                "path": str(self._usage.path),
            }
        return None


@contextlib.contextmanager
def _logged() -> Iterator[None]:
    """Log errors of the statistics file: a server works without statistics."""
    try:
        yield
    except (OSError, sqlite3.Error, RuntimeError) as error:  # the last one: there is no thread for it
        logger.warning("The statistics by day could not be used: %s", error)
