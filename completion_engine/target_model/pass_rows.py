"""The number of rows in a pass, and the passes that compute each position, so that drafts never change bits.

Where the rows of a pass do not influence each other, any pass may compute any position. Elsewhere the bits
depend on the number of rows. Passes of exactly one chunk then compute the whole chunks of a prompt, counted
from its beginning, and passes of the fixed width compute all positions after them. Numbers only.
"""

from __future__ import annotations

from dataclasses import dataclass

ROWS = 8  # the step of torch's own products and attention; the width of a fixed-width pass


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

    def prefill_rows(self, num_cached: int, num_chunked: int, num_pending: int, max_rows: int = 0) -> int:
        """Rows of the next prefill pass where `num_pending` known tokens follow what is cached.

        No more than `max_rows`, if that is given, where any number will do.
        """
        if num_cached < num_chunked:
            return self.num_rows
        at_most = self.max_pending if self.fixed_width or not max_rows else min(max_rows, self.max_pending)
        return min(at_most, num_pending - 1)
