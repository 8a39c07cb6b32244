"""What a pass of the target costs: as measured at load, and as found since. Plain numbers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import accumulate

_FEW = 7  # rows; 1 to 10 came to the same within a hundredth of the time, 0 took a thirtieth more
_STEP = 0.1  # a pass moves the estimate by this share of what it was off, on a logarithmic scale
_MAX_SURPRISE = 2.0  # one pass counts at most this factor slower or faster than predicted
# relative to the narrowest pass; a dearer branch was measured while something else ran
_MAX_BRANCH = 0.5


@dataclass(frozen=True, slots=True)
class Costs:
    """Milliseconds of a pass by width, and of a branch beyond the first; one branch where trees cannot be."""

    pass_ms: Mapping[int, float]
    branch_ms: float = 0.0
    max_branches: int = 1

    def ms_of(self, num_rows: int) -> float:
        """Milliseconds of the cheapest pass that holds this number of rows; the widest if none does."""
        wanted = min(num_rows, max(self.pass_ms))
        return min(ms for width, ms in self.pass_ms.items() if width >= wanted)

    def within(self, ms: float) -> Costs:
        """The costs of passes that take at most `ms`; the fastest one in any case."""
        quickest = min(self.pass_ms.values())
        kept = {width: took for width, took in self.pass_ms.items() if took <= max(ms, quickest)}
        return Costs(kept, self.branch_ms, self.max_branches)

    def row_ms(self, num_rows: int) -> float:
        """A row beyond `num_rows`, as the mean of the next few: as many as a draft tends to add."""
        return (self.ms_of(num_rows + _FEW) - self.ms_of(num_rows)) / _FEW


class PassClock:
    """Current pass times on this machine: their proportions as at load, their level as in the latest passes.

    A program that starts beside many others, as an editor's does, measures too much, and a laptop on its
    battery takes longer later.
    """

    def __init__(self, pass_ms: Mapping[int, float], branch_ms: float) -> None:
        """`pass_ms` by width and `branch_ms` as measured; a wider pass never counts as cheaper."""
        widths = sorted(pass_ms)
        self._pass_ms = dict(zip(widths, accumulate((pass_ms[width] for width in widths), max), strict=True))
        self._branch_ms = min(max(0.0, branch_ms), _MAX_BRANCH * self._pass_ms[widths[0]])
        self._level = 1.0

    @property
    def level(self) -> float:
        """Factor by which passes take longer now than at load."""
        return self._level

    @property
    def pass_ms(self) -> dict[int, float]:
        """Milliseconds of a pass by width."""
        return {width: ms * self._level for width, ms in self._pass_ms.items()}

    @property
    def branch_ms(self) -> float:
        """Milliseconds of each branch beyond the first."""
        return self._branch_ms * self._level

    def record(self, expected_ms: float, ms: float) -> float:
        """A pass that was expected to take `expected_ms`, by the figures of now, took `ms`.

        Returns how many times as long as such a pass took at load.
        """
        if expected_ms <= 0 or ms <= 0:
            return self._level
        pace = self._level * ms / expected_ms
        surprise = min(max(ms / expected_ms, 1 / _MAX_SURPRISE), _MAX_SURPRISE)
        self._level *= surprise**_STEP
        return pace
