"""Owns what an index held at one moment, for as long as somebody asks that. Knows no locks and no paths."""

from __future__ import annotations

from collections.abc import Hashable, Sequence, Set
from dataclasses import dataclass

from ngram_cache.draft import Successors
from ngram_cache.search import Part, successors


@dataclass(frozen=True, slots=True, eq=False)
class IndexView:
    """An index that changes no more. It holds the memory of what it shows, merged and forgotten or not.

    Nothing is read of the documents in `hidden`. Views of one index that hide the same path are of one
    `source`, though they may show other texts.
    """

    parts: tuple[Part, ...]
    hidden: Set[int]
    source: Hashable

    def successors(self, context: Sequence[int], min_match: int) -> Successors:
        """What followed the longest suffix of `context` [n]; nothing where it is below `min_match` tokens.

        The same view answers the same context alike, always.
        """
        return successors(self.parts, context, self.hidden, min_match)
