"""Owns how places in a text that lost pieces are places in the whole text. Knows no secret."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable

from ngram_cache.redaction.rule import Span


def merged(spans: Iterable[Span]) -> list[Span]:
    """The spans in their order, those that meet as one."""
    found: list[Span] = []
    for start, end in sorted(spans):
        if found and start <= found[-1][1]:
            found[-1] = found[-1][0], max(found[-1][1], end)
        else:
            found.append((start, end))
    return found


def restored(text: str, lost: Iterable[Span], found: Iterable[Span]) -> list[Span]:
    """The spans `lost` of a text, and those `found` in what `without` leaves of it, as they lie in the text.

    A span that is found holds a character, and no line end.
    """
    lost, found = merged(lost), list(found)
    if not lost or not found:
        return lost or merged(found)
    starts, shifts = [0], [0]  # of each piece that is left: where it begins now, and how far it was moved
    at = done = 0
    for start, end in lost:
        at += start - done + text.count("\n", start, end)
        done = end
        starts.append(at)
        shifts.append(end - at)

    def place(index: int) -> int:
        return index + shifts[bisect_right(starts, index) - 1]

    return merged([*lost, *((place(start), place(end - 1) + 1) for start, end in found)])
