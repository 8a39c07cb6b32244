"""The number of threads that compute a pass: all of them while the machine is free, fewer while others need
its cores.

A pass shares its work among threads hundreds of times, and each time waits for the last that came in. Threads
that wait spin, because waking up takes longer than most of what is shared. But where another program holds a
core, all wait for the thread that has none (docs/experiments/threads.md). Pass times show what helps. Each
thread that computes has a number of its own.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from statistics import median
from typing import Any

import psutil
import torch

_NUM_JUDGED = 4  # passes that decide about a number of threads
_WORSE = 1.2  # than fewer threads would be: then fewer are taken
_MUCH_WORSE = 2.5  # a single pass says enough
_FIRST_WAIT_S, _LONGEST_WAIT_S = 0.5, 30.0  # until more threads are tried again, twice as long each time
_FREE_ENOUGH = 0.7  # share of the wanted cores that must have been idle; otherwise other programs need them
_PAUSE_S = 0.5  # without a pass, after which idle cores were left idle by others too
_LOOK_S = 0.1  # to see how many cores others leave idle

_MOST = torch.get_num_threads()  # as torch was given them, before any was sent away
_chosen = threading.local()


def num_threads_here() -> int:
    """The number of threads of this thread: from `use_threads`, or as torch got them."""
    return getattr(_chosen, "num_threads", _MOST)


def use_threads(num_threads: int, *, in_torch: bool = True) -> None:
    """Set the number of threads for the next computations of this thread.

    Torch gets one, if it computes nothing large (`in_torch` False): its own threads spin for a while after
    each operation, and would take the cores from those of kernels.
    """
    _chosen.num_threads = num_threads
    torch.set_num_threads(num_threads if in_torch else 1)


class IdleCores:
    """Counts the cores that were idle since it was asked last; one that a niced program uses is not."""

    def __init__(self) -> None:
        self._before = psutil.cpu_times()

    def __call__(self) -> float:
        """Idle cores, as the system tells; a container may be allowed fewer."""
        before, self._before = self._before, psutil.cpu_times()
        passed = _passed(self._before) - _passed(before)
        return (psutil.cpu_count() or 1) * (self._before.idle - before.idle) / max(passed, 1e-9)


class PassCores:
    """Counts the cores that passes computed on since it was asked last, whatever else this process does."""

    def __init__(self) -> None:
        self._asked_s = time.monotonic()
        self._core_s = 0.0

    @contextmanager
    def used_by(self, num_threads: int) -> Iterator[None]:
        """Run a pass of this number of threads in the block."""
        begun_s, begun_own_s = time.monotonic(), time.process_time()
        try:
            yield
        finally:
            passed_s, own_s = time.monotonic() - begun_s, time.process_time() - begun_own_s
            self._core_s += min(own_s, num_threads * passed_s)

    def __call__(self) -> float:
        """Cores, on an average since then."""
        then_s, self._asked_s = self._asked_s, time.monotonic()
        core_s, self._core_s = self._core_s, 0.0
        return core_s / max(self._asked_s - then_s, 1e-9)


def _passed(times: Any) -> float:
    """Seconds of all cores. The times of virtual guests are in their own times already, as Linux counts."""
    guests = sum(getattr(times, name, 0.0) for name in ("guest", "guest_nice"))
    return float(sum(times) - guests)


def thread_counts() -> list[int]:
    """The numbers of threads to choose from: all that torch was given, halved down to one."""
    counts = [_MOST]
    while counts[-1] > 1:
        counts.append(counts[-1] // 2)
    return counts


def take_free_threads(idle_cores: Callable[[], float] | None = None) -> int:
    """Take as many threads on this thread as there are idle cores; returns their number.

    Looks for a tenth of a second.
    """
    idle_cores = idle_cores or IdleCores()
    time.sleep(_LOOK_S)
    counts = thread_counts()
    num_threads = counts[_fitting(counts, idle_cores())]
    use_threads(num_threads)
    return num_threads


def _fitting(counts: Sequence[int], num_idle: float) -> int:
    """Index of the largest number of threads that idle cores can run; without idle cores, of the smallest."""
    fitting = (at for at, count in enumerate(counts) if num_idle >= _FREE_ENOUGH * count)
    return next(fitting, len(counts) - 1)


class ThreadGovernor:
    """The number of threads for the next pass. Used on the engine's thread only."""

    def __init__(
        self,
        paces: Mapping[int, float],
        idle_cores: Callable[[], float] | None = None,
        num_threads: int | None = None,
    ) -> None:
        """`paces` by number of threads: times as long as passes took at load.

        Begins with `num_threads`, or else with the quickest.
        """
        self._idle_cores = idle_cores or IdleCores()
        self._pass_cores = PassCores()
        self._counts = sorted(paces, reverse=True)
        self._paces = [paces[count] for count in self._counts]
        first = self._paces.index(min(self._paces))
        self._at = first if num_threads is None else self._counts.index(num_threads)
        self._seen: deque[float] = deque(maxlen=_NUM_JUDGED)
        self._wait_s = _FIRST_WAIT_S
        self._try_more_at = 0.0
        self._last_s = float("inf")

    @property
    def paces(self) -> dict[int, float]:
        """By number of threads: times as long as passes took at load, or take as they were seen."""
        return dict(zip(self._counts, self._paces, strict=True))

    @property
    def num_threads(self) -> int:
        """For the next pass, unless a pause comes before it."""
        return self._counts[self._at]

    def chosen(self, now_s: float) -> int:
        """The number for a pass that begins now; `now_s` on a monotonic clock."""
        if now_s - self._last_s > _PAUSE_S:
            # After a pause: as many threads as there are cores that others left to passes.
            self._move(_fitting(self._counts, self._free_cores()) - self._at)
        self._last_s = now_s
        return self.num_threads

    @contextmanager
    def computing(self) -> Iterator[None]:
        """A pass runs in the block with the number that was chosen: its cores are not others'."""
        with self._pass_cores.used_by(self.num_threads):
            yield

    def record(self, pace: float, now_s: float) -> None:
        """A pass took `pace` times as long as at load; `now_s` as for `chosen`."""
        self._seen.append(pace)
        if self._at + 1 < len(self._counts) and self._is_worse_than(self._paces[self._at + 1]):
            self._move(1)
            self._free_cores()  # the load from now on decides whether the threads return
            self._try_more_at = now_s + self._wait_s
            self._wait_s = min(2 * self._wait_s, _LONGEST_WAIT_S)
        elif len(self._seen) == _NUM_JUDGED:
            self._paces[self._at] = median(self._seen)
            if self._at == 0:
                self._wait_s = _FIRST_WAIT_S
            elif now_s >= self._try_more_at:
                # With more threads again, unless others would take their cores away.
                num_more = self._counts[self._at - 1] - self.num_threads
                if self._free_cores() - self.num_threads >= _FREE_ENOUGH * num_more:
                    self._move(-1)
                else:
                    self._try_more_at = now_s + self._wait_s

    def _free_cores(self) -> float:
        """Cores that others left to passes since this was asked last."""
        return self._idle_cores() + self._pass_cores()

    def _is_worse_than(self, fewer: float) -> bool:
        if self._seen[-1] > _MUCH_WORSE * fewer:
            return True
        return len(self._seen) == _NUM_JUDGED and median(self._seen) > _WORSE * fewer

    def _move(self, step: int) -> None:
        self._at += step
        self._seen.clear()
