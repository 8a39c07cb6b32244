"""Finds the drafted tokens that the target itself would have written. Pure; depends on no tensors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from completion_engine.drafting.tree import true_path


@dataclass(frozen=True, slots=True)
class Verdict:
    """`written` holds the target's tokens: those of the true rows in `path`, then one of its own.

    `path` lists the rows that are true after the first one, in order.
    """

    written: tuple[int, ...]
    path: tuple[int, ...]

    @property
    def num_accepted(self) -> int:
        """Number of drafted tokens that are true."""
        return len(self.path)


def verify(tokens: Sequence[int], parents: Sequence[int], picked: Sequence[int]) -> Verdict:
    """Walk a drafted tree along the target's picks.

    Row 0 is the last written token, the others are drafted; `parents` as in `LanguageModel.forward`. Siblings
    differ in their tokens. `picked[row]` is the target's token after that row. A child of a true row is true
    if it holds the pick; without such a child the pick itself ends the walk (greedy case of Leviathan et al.
    2022; trees: Miao et al. 2023).
    """
    if not len(tokens) == len(parents) == len(picked):
        raise ValueError(f"{len(tokens)} rows, {len(parents)} parents, {len(picked)} picks")
    path = true_path(tokens, parents, 0, picked.__getitem__)
    return Verdict(tuple(picked[row] for row in (0, *path)), tuple(path))
