"""A growing token array that is searched without sorting."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from ngram_cache.construction import MAX_CONTEXT
from ngram_cache.lookup import (
    LIVE_BUFFER,
    MAX_DEPTH,
    MAX_OCCURRENCES,
    NOTHING,
    Evidence,
    Lookup,
    Occurrence,
    TreeLimits,
    grow_tree,
    shorter_match,
)
from ngram_cache.segment import as_tokens

_FEW = 96


class TokenBuffer:
    """A token array that grows at its end or is cut there: a prompt, or recently written tokens.

    Appending only copies the new tokens. A lookup scans for the last token of the context and compares
    backwards from each place. Made for up to some tens of thousands of tokens. Used by one thread.
    """

    def __init__(self, tokens: Sequence[int] | npt.NDArray[np.integer] = ()) -> None:
        self._padded = np.full(MAX_CONTEXT + 1024, -1, dtype=np.int32)
        self._num_tokens = 0
        self.extend(tokens)

    def __len__(self) -> int:
        return self._num_tokens

    @property
    def tokens(self) -> npt.NDArray[np.int32]:
        """A copy of the tokens [n]."""
        return self._padded[MAX_CONTEXT : MAX_CONTEXT + self._num_tokens].copy()

    def extend(self, tokens: Sequence[int] | npt.NDArray[np.integer]) -> None:
        """Append token ids. Raises ValueError for a value that is not a token id."""
        added = as_tokens(tokens)
        end = MAX_CONTEXT + self._num_tokens
        if end + len(added) + MAX_DEPTH > len(self._padded):
            grown = np.full(2 * (end + len(added) + MAX_DEPTH), -1, dtype=np.int32)
            grown[:end] = self._padded[:end]
            self._padded = grown
        self._padded[end : end + len(added)] = added
        self._num_tokens += len(added)

    def truncate(self, num_tokens: int) -> None:
        """Keep the first `num_tokens`. Raises ValueError if there are fewer."""
        if not 0 <= num_tokens <= self._num_tokens:
            raise ValueError(f"cannot keep {num_tokens} of {self._num_tokens} tokens")
        self._padded[MAX_CONTEXT + num_tokens : MAX_CONTEXT + self._num_tokens] = -1
        self._num_tokens = num_tokens

    def lookup(
        self,
        context: Sequence[int] | npt.NDArray[np.integer],
        *,
        max_nodes: int,
        max_depth: int,
    ) -> Lookup:
        """Return the continuations of the longest suffix of `context` that occurs here, as the index does.

        Reads the most recent `MAX_OCCURRENCES` occurrences only.
        """
        tail = context[-MAX_CONTEXT:]
        query = (tail.tolist() if isinstance(tail, np.ndarray) else list(tail))[::-1]
        levels = self._match(query)
        length = len(levels)
        if not length:
            return NOTHING
        ends = levels[-1]
        longest = self._occurrences(ends, max_depth)
        shorter_length = shorter_match(length, len(ends))
        shorter: list[Occurrence] = []
        if shorter_length:
            also = levels[shorter_length - 1]
            shorter = self._occurrences(also[~np.isin(also, ends)], max_depth)
        evidence = Evidence(longest, shorter, length, shorter_length)
        nodes = grow_tree(evidence, TreeLimits(max_nodes, min(max_depth, MAX_DEPTH)))
        return Lookup(length, len(ends), nodes)

    def _match(self, query: list[int]) -> list[npt.NDArray[np.int64]]:
        """Return for each match length, from 1, the places in the padded array that continue such a match."""
        end = MAX_CONTEXT + self._num_tokens
        padded = self._padded
        levels: list[npt.NDArray[np.int64]] = []
        if not query or self._num_tokens < 2:
            return levels
        ends = np.flatnonzero(padded[MAX_CONTEXT : end - 1] == query[0]) + (MAX_CONTEXT + 1)
        while len(ends) > _FEW and len(levels) + 1 < len(query):
            levels.append(ends)
            ends = ends[padded[ends - len(levels) - 1] == query[len(levels)]]
        if not len(ends):
            return levels
        backwards = np.arange(1, len(query) + 1)
        is_equal = padded[ends[:, None] - backwards] == np.array(query)
        lengths = np.where(is_equal.all(axis=1), len(query), is_equal.argmin(axis=1))
        further = range(len(levels) + 1, int(lengths.max()) + 1)
        return levels + [ends[lengths >= length] for length in further]

    def _occurrences(self, ends: npt.NDArray[np.int64], max_depth: int) -> list[Occurrence]:
        ends = ends[-MAX_OCCURRENCES:]
        depth = max(0, min(max_depth, MAX_DEPTH))
        words = self._padded[ends[:, None] + np.arange(depth - 1, -1, -1)] + 1
        rows, width = words.astype(">u4").tobytes(), 4 * depth
        return [
            (rows[row * width : (row + 1) * width], LIVE_BUFFER, at - MAX_CONTEXT)
            for row, at in enumerate(ends.tolist())
        ]
