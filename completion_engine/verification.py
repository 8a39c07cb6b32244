"""Which drafted tokens the target itself would have written. Pure; knows no tensors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Verdict:
    """`written` is what the target writes: `num_accepted` drafted tokens and one of its own."""

    written: tuple[int, ...]
    num_accepted: int


def verify(drafted: Sequence[int], picked: Sequence[int]) -> Verdict:
    """Compare a drafted chain with the target's picks.

    `picked[i]` is what the target writes after `drafted[:i]`, so there is one more pick than
    there are drafted tokens. Everything up to the first disagreement is true, and so is the pick that
    disagrees (greedy case of Leviathan et al. 2022; Stern et al. 2018).
    """
    if len(picked) != len(drafted) + 1:
        raise ValueError(f"{len(picked)} picks for {len(drafted)} drafted tokens")
    num_accepted = 0
    while num_accepted < len(drafted) and drafted[num_accepted] == picked[num_accepted]:
        num_accepted += 1
    return Verdict(tuple(picked[: num_accepted + 1]), num_accepted)
