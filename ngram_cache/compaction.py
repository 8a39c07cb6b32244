"""Owns the choice of what to merge. Pure functions over sizes: knows no locks and no sorting."""

from __future__ import annotations

from collections.abc import Sequence

from ngram_cache.search import Part
from ngram_cache.segment import Segment

_GROWTH = 2
_MAX_DEAD_SHARE = 0.3


def choose_tiers(parts: Sequence[Part], max_parts: int) -> list[Part]:
    """The smallest parts whose merge leaves at most `max_parts`, and larger ones within reach of their sum.

    Taking in a part of up to twice the sum keeps sizes geometric, so that a token is sorted again only
    as often as the logarithm of the whole.
    """
    by_size = sorted(parts, key=_size)
    num_forced = len(parts) - max_parts + 1
    if num_forced < 2:
        return []
    chosen = by_size[:num_forced]
    total = sum(map(_size, chosen))
    for part in by_size[num_forced:]:
        if _size(part) > _GROWTH * total:
            break
        chosen.append(part)
        total += _size(part)
    return chosen


def choose_small(parts: Sequence[Part], max_parts: int, max_tokens: int) -> list[Part]:
    """The smallest parts, when there are more than `max_parts`, that have at most `max_tokens` together."""
    if len(parts) <= max_parts:
        return []
    chosen: list[Part] = []
    total = 0
    for part in sorted(parts, key=_size):
        total += _size(part)
        if total > max_tokens:
            break
        chosen.append(part)
    return chosen if len(chosen) > 1 else []


def is_mostly_dead(segment: Segment, keep: Sequence[bool]) -> bool:
    """Whether so many tokens are of forgotten documents that the segment should be written anew."""
    num_kept = sum(length for length, kept in zip(segment.lengths, keep, strict=True) if kept)
    return num_kept < (1 - _MAX_DEAD_SHARE) * segment.num_tokens


def _size(part: Part) -> int:
    return part.segment.num_words
