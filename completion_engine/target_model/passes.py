"""A pass of the target in plain numbers: its rows, its cost, and the findings of a load about both.

Drafts must never change bits. Where the rows of a pass do not influence each other, any pass may compute any
position. Elsewhere the bits depend on the number of rows: passes of exactly one chunk then compute the whole
chunks of a prompt, counted from its beginning, and passes of the fixed width compute what follows.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import accumulate

ROWS = 8  # the step of torch's own products and attention; the width of a fixed-width pass
_FEW = 7  # rows; 1 to 10 came to the same within a hundredth of the time, 0 took a thirtieth more
_STEP = 0.1  # a pass moves the estimate by this share of what it was off, on a logarithmic scale
_MAX_SURPRISE = 2.0  # one pass counts as slower than predicted by at most this factor
_MAX_EXCESS = 4.0  # after a pass, the estimate is at most this many times what it took
# relative to the narrowest pass; a dearer branch was measured while something else ran
_MAX_BRANCH = 0.5


def pad_rows(num_rows: int, row_step: int = ROWS) -> int:
    """Rows a pass really runs. Fewer than a full group would take other kernels of torch, with other sums."""
    return -(-num_rows // row_step) * row_step


@dataclass(frozen=True, slots=True)
class ChunkRule:
    """A chunk has `num_rows`; all other passes have `fixed_width` rows, or any number where that is 0."""

    num_rows: int
    fixed_width: int = 0

    @property
    def max_pending(self) -> int:
        """Known tokens that a verification pass may hold."""
        return self.fixed_width or self.num_rows

    def num_chunked(self, num_prompt: int) -> int:
        """Positions of a prompt that only whole chunks may compute; 0 where any pass may.

        Never the last one: its logits are wanted.
        """
        return (num_prompt - 1) // self.num_rows * self.num_rows if self.fixed_width else 0

    def num_reusable(self, num_shared: int, num_from_chunks: int, num_chunked: int) -> int:
        """Number of the `num_shared` cached positions that may stay for a prompt with `num_chunked` (see
        there).

        The first `num_from_chunks` of what is cached were computed by whole chunks, the others were not.
        Positions that shared a chunk with other tokens are dropped too.
        """
        found = min(num_from_chunks, num_shared)
        if found < num_chunked:
            return found // self.num_rows * self.num_rows
        return num_shared if found == num_chunked else num_chunked

    def prefill_rows(self, num_cached: int, num_chunked: int, num_pending: int, max_rows: int) -> int:
        """Rows of the next prefill pass where `num_pending` known tokens follow what is cached.

        No more than `max_rows` where any number will do.
        """
        if num_cached < num_chunked:
            return self.num_rows
        return min(self.fixed_width or min(max_rows, self.num_rows), num_pending - 1)


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
        self._level = self.least_level = 1.0

    @property
    def level(self) -> float:
        """Factor by which passes take longer now than at load; `least_level` is the lowest so far."""
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
        surprise = ms / expected_ms
        # Other programs make a pass slower; nothing makes it so much quicker.
        self._level *= min(min(surprise, _MAX_SURPRISE) ** _STEP, _MAX_EXCESS * surprise)
        self.least_level = min(self.least_level, self._level)
        return pace


@dataclass(frozen=True, slots=True)
class Findings:
    """Results measured at load and reused later: the exactness strategy and pass times.

    All of it follows from the weights, the kernels and the processor.

    `pass_ms` by width, as measured with `num_threads`, and `chunk_ms` of a whole chunk of a prompt, 0 where
    that is unknown; `thread_paces` by number of threads, as for `ThreadGovernor`. They `are_final` where
    nothing disturbed the measurement.
    """

    is_row_invariant: bool
    verifies_drafts: bool
    verifies_trees: bool
    pass_ms: Mapping[int, float]
    branch_ms: float
    thread_paces: Mapping[int, float]
    chunk_ms: float = 0.0
    are_final: bool = False
