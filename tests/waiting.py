"""Waiting for what another process does, by looking again and again.

The pauses between two looks grow with the time that has passed, because a look takes processor time from the
process that is waited for.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from typing import TypeVar

_SHARE = 0.05  # share of the time that has passed, by which a wait may become longer
_LONGEST_S = 0.5

T = TypeVar("T")


def pauses(shortest_s: float = 0.02) -> Iterator[float]:
    """Yield the seconds between two looks, without end."""
    begun_s = time.monotonic()
    while True:
        yield min(_LONGEST_S, max(shortest_s, _SHARE * (time.monotonic() - begun_s)))


def first_true(look: Callable[[], T], within_s: float, shortest_s: float = 0.02) -> T:
    """Return the first true value of `look`, or the false one that it has after `within_s`."""
    until_s, waits = time.monotonic() + within_s, pauses(shortest_s)
    while not (value := look()) and time.monotonic() <= until_s:
        time.sleep(next(waits))
    return value


async def until(condition: Callable[[], object], within_s: float = 300.0) -> None:
    """Wait for what another thread does, which sets no event."""
    async with asyncio.timeout(within_s):
        while not condition():  # noqa: ASYNC110 - see above
            await asyncio.sleep(0.002)
