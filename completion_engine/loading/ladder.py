"""Chooses where a target runs: the best rung that works, and the next one when a rung fails.

A rung is one way to run a target; see `rungs`. The ladder holds the rung in use and the reasons against
better ones.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Generic, Protocol, TypeVar

from completion_engine.errors import SlipstreamError
from completion_engine.gpu.machine import first_line, release_memory
from completion_engine.loading.rungs import Plan, Rung
from completion_engine.request import CancelledError

logger = logging.getLogger(__name__)

_JUDGED_ROWS = 8  # rows of the pass by which rungs are compared
_MAY_WIN = 1.5  # a later rung is tried if this multiple of its least time is below the measured time


class RungError(Exception):
    """A rung cannot be used: its self-test failed, or memory is short. The message is the reason."""


class Timed(Protocol):
    """A loaded target with pass times, by which a ladder compares rungs."""

    def ms_of(self, num_rows: int) -> float:
        """See `LanguageModel.ms_of`."""
        ...


T = TypeVar("T", bound=Timed)
R = TypeVar("R")


class Ladder(Generic[T]):
    """The rungs for one target, tried in order.

    `load` loads the target on a rung. Any error, except for a wrong setting or a damaged file, is a reason to
    try the next rung. `least_ms` returns the least time of a pass of a few rows on a rung.
    """

    def __init__(
        self,
        plan: Plan,
        load: Callable[[Rung], T],
        least_ms: Callable[[Rung], float] = lambda _: float("inf"),
    ) -> None:
        self._rungs: Sequence[Rung] = plan.rungs
        self._reasons = list(plan.reasons)
        self._load, self._least_ms = load, least_ms
        self._is_compared = False

    @property
    def rung(self) -> Rung:
        """The rung in use, or the next to be tried."""
        return self._rungs[0]

    @property
    def reason(self) -> str:
        """The reason that no better rung is in use; empty if there is none."""
        return " ".join(self._reasons)

    @property
    def may_leave(self) -> bool:
        """Whether there is another rung after the one in use."""
        return len(self._rungs) > 1

    def climb(self, build: Callable[[T], R]) -> R:
        """Return the result of `build` with the target on the best rung on which loading and `build` succeed.

        Raises the error of the last rung, or at once an error that no other rung would avoid.
        """
        while True:
            try:
                return build(self._fastest())
            except Exception as error:
                if not self.leave(error):
                    raise

    def leave(self, error: Exception) -> bool:
        """Drop the rung in use after `error`; return False if no other rung would help."""
        if isinstance(error, (SlipstreamError, CancelledError)) or not self.may_leave:
            return False
        logger.warning("The target leaves %s", self.rung, exc_info=error)
        forget_frames(error)
        self._drop(_sentence(error))
        return True

    def note(self, reason: str) -> None:
        """Add a note about a feature that is off on the rung in use."""
        self._reasons.append(reason)

    def _drop(self, why: str) -> None:
        left, self._rungs = self._rungs[0], self._rungs[1:]
        self._reasons.append(f"{left}: {why}")
        release_memory(left.device)

    def _fastest(self) -> T:
        """Return the target on the first rung, or on a later one that is measured to be faster."""
        target = self._load(self.rung)
        if self._is_compared:
            return target
        self._is_compared = True
        ms, best = target.ms_of(_JUDGED_ROWS), 0
        rivals = [at for at in range(1, len(self._rungs)) if self._least_ms(self._rungs[at]) * _MAY_WIN < ms]
        if not rivals:
            return target
        del target  # two targets may not fit into memory
        for at in rivals:
            release_memory(self.rung.device)
            if (other_ms := self._measured(at)) < ms:
                ms, best = other_ms, at
        for _ in range(best):
            self._drop(f"a pass of {_JUDGED_ROWS} rows takes longer than {ms:.1f} ms.")
        return self._load(self.rung)

    def _measured(self, at: int) -> float:
        """Milliseconds of a pass on a rung; infinity where it cannot be used."""
        try:
            return self._load(self._rungs[at]).ms_of(_JUDGED_ROWS)
        except CancelledError:
            raise
        except Exception:  # a rung that cannot be measured is not used; the first one works
            logger.warning("%s cannot be measured", self._rungs[at], exc_info=True)
            return float("inf")


def forget_frames(error: BaseException | None) -> None:
    """Drop the frames of an error and of its causes, because they hold the tensors of a rung."""
    while error is not None:
        error.__traceback__ = None
        error = error.__cause__ or error.__context__


def _sentence(error: Exception) -> str:
    """An error's message as one sentence."""
    said = first_line(str(error)).rstrip(".")
    name = "" if isinstance(error, RungError) else f"{type(error).__name__}: "
    return f"{name}{said or 'it failed'}."
