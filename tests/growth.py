"""Compare what work costs at two sizes, in the processor time of the calling thread.

A ratio of two costs is nearly the same on every machine, and processor time counts no other program.
Noise only adds to a cost: the quickest of several rounds is the best estimate, and a test needs as many
rounds as it takes to see that a bound holds.
"""

from __future__ import annotations

import time
from collections.abc import Callable

NUM_ROUNDS = 10


def cpu_s(work: Callable[[], object]) -> float:
    """Return the seconds of processor time that `work` takes this thread."""
    begin_s = time.thread_time()
    work()
    return time.thread_time() - begin_s


def ratio(work: Callable[[], object], unit: Callable[[], object], below: float) -> float:
    """Return how many times as long as `unit` the work takes; stops measuring once that is below `below`."""
    quickest_s, unit_s = float("inf"), float("inf")
    for _ in range(NUM_ROUNDS):
        quickest_s, unit_s = min(quickest_s, cpu_s(work)), min(unit_s, cpu_s(unit))
        if quickest_s < below * unit_s:
            break
    return quickest_s / unit_s


def growth(work: Callable[[int], object], small: int, large: int, below: float) -> float:
    """Return how many times as long work of size `large` takes as work of size `small`; see `ratio`."""
    return ratio(lambda: work(large), lambda: work(small), below)
