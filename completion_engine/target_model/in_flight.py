"""The pass that runs now: its brake, and a prompt's pass that a device still runs while the host goes on.

Owns when such a pass began and ended. Does not depend on what a pass computes.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from completion_engine.request import Cancellation, CancelledError

_POLL_S = 0.0002  # a chunk of a prompt takes milliseconds


class Mark:
    """A point in a device's work: on a GPU in its present stream, elsewhere the present."""

    def __init__(self, device: torch.device) -> None:
        self._s = time.perf_counter()
        self._event: Any = None
        if device.type == "cuda":
            self._event = torch.cuda.Event(enable_timing=True)  # type: ignore[no-untyped-call]  # untyped in torch
            self._event.record()

    def is_passed(self) -> bool:
        """Return whether the device got here."""
        return self._event is None or bool(self._event.query())

    def ms_since(self, earlier: Mark) -> float:
        """Return milliseconds from another mark of the device to this one; both are passed."""
        if earlier._event is None or self._event is None:
            return (self._s - earlier._s) * 1e3
        return float(earlier._event.elapsed_time(self._event))


@dataclass(frozen=True, slots=True)
class _Running:
    begin: Mark
    end: Mark
    report: Callable[[float], None]


class InFlight:
    """At most one pass that the device runs by itself. Used on one thread."""

    def __init__(self, brake: Brake, mark: Callable[[], Mark]) -> None:
        self._brake, self._mark = brake, mark
        self._running: _Running | None = None

    def run(self, work: Callable[[], object], report: Callable[[float], None]) -> None:
        """Start `work` once the pass before has ended; `report` receives its milliseconds at the next wait.

        Raises CancelledError as `wait` does; nothing was started then.
        """
        self.wait()
        begin = self._mark()
        work()
        self._running = _Running(begin, self._mark(), report)
        if self._running.end.is_passed():
            self.wait()

    def wait(self) -> None:
        """Wait for the pass that runs. Raises CancelledError where the brake is pulled: it runs on then."""
        running = self._running
        if running is None:
            return
        while not running.end.is_passed():
            if self._brake.is_pulled:
                raise CancelledError
            time.sleep(_POLL_S)
        self._running = None
        running.report(running.end.ms_since(running.begin))


class Brake:
    """Ends a pass before its next kernel: a word that any thread may set and the kernels read.

    Passes of one decoder run through unless they run in a block of `pulled_by`. Used on their thread.
    """

    def __init__(self) -> None:
        self._word: np.ndarray[tuple[int], np.dtype[np.int64]] | None = None

    @property
    def address(self) -> int:
        """Address of a word that is not 0 once the pass should end; 0 if it cannot be ended."""
        return 0 if self._word is None else int(self._word.ctypes.data)

    @property
    def is_pulled(self) -> bool:
        """Whether the pass that runs is to end."""
        return self._word is not None and bool(self._word[0])

    @contextmanager
    def pulled_by(self, cancellation: Cancellation, is_in_vain: Callable[[], bool]) -> Iterator[None]:
        """End the pass in the block when it is cancelled and the canceller finds that it `is_in_vain`.

        That is called on the thread that cancels.
        """
        # for this block only: a late call stops no later pass
        word = np.zeros(1, np.int64)

        def pull() -> None:
            if is_in_vain():
                word[0] = 1

        before, self._word = self._word, word
        take_back = cancellation.when_cancelled(pull)
        try:
            yield
        finally:
            take_back()
            self._word = before
