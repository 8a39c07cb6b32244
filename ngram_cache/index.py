"""The index of one repository: a changing set of documents by path, given as tokens.

Writers take turns with one lock. Readers see an immutable view that is replaced as a whole.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from ngram_cache.construction import IntArray, never_stop
from ngram_cache.live_parts import LiveParts, Stored, VersionTable, choose_small, choose_tiers
from ngram_cache.lookup import Lookup, TreeLimits
from ngram_cache.search import IndexView, Part, count_documents, search
from ngram_cache.segment import Segment, as_tokens

Tokens = Sequence[int] | npt.NDArray[np.integer]

_MAX_PARTS = 6
_MAX_PARTS_EVER = 24
_INLINE_TOKENS = 1 << 15
_FIRST_LIVE_ID = 1 << 32
_ALL_TOKENS = 1 << 31


class NgramIndex:
    """Finds how the longest matching suffix of a context continues, in a changing set of documents.

    Each version of a document gets an id; a greater id is a more recent text. A changed document becomes a
    small segment; many small segments are merged at once, large ones in `maintain`. All methods may be called
    from any thread; `lookup` never waits.
    """

    def __init__(self, documents: Iterable[tuple[str, Tokens]] = ()) -> None:
        self._lock = threading.Lock()
        self._compaction = threading.Lock()
        self._table = VersionTable()
        self._live = LiveParts(self._table)
        self._claimed: frozenset[Segment] = frozenset()
        self._next_id = _FIRST_LIVE_ID
        self.update_many(list(documents))

    # Reading

    def lookup(
        self,
        context: Tokens,
        *,
        max_nodes: int,
        max_depth: int,
        exclude: str = "",
    ) -> Lookup:
        """Return the most probable continuations of the longest suffix of `context` [n] that occurs.

        At most `max_nodes` nodes, at most `max_depth` tokens deep. The path `exclude` is not searched, stored
        or as an overlay. Raises ValueError if the context holds a value that is not a token id.
        """
        parts, hidden = self._live.without(exclude)
        return search(parts, context, hidden, TreeLimits(max_nodes, max_depth))

    def view(self, *, exclude: str = "") -> IndexView:
        """Return a frozen view of what is searched now; `exclude` as in `lookup`."""
        return IndexView(*self._live.without(exclude), (self, exclude))

    def path_of(self, document: int) -> str:
        """Return the path of a document from a lookup; empty if it was forgotten since."""
        return self._table.path_of(document)

    def tokens_before(self, document: int, offset: int) -> IntArray:
        """Return the first `offset` tokens of a document; empty if it was forgotten since."""
        for part in self._live.parts:
            local = part.segment.local(document)
            if local is not None:
                return part.segment.tokens(local)[: max(0, offset)]
        return np.zeros(0, dtype=np.int32)

    def holds(self, path: str) -> bool:
        """Return whether a path has a version that is searched; from then on `find` finds it."""
        versions = self._table.own(path)
        return any(part.segment.local(it) is not None for part in self._live.parts for it in versions)

    def tokens_of(self, path: str) -> IntArray:
        """Return the tokens of the version of a path that is searched; empty for an unknown path."""
        version = self._table.entry(path).live
        return self.tokens_before(-1 if version is None else version, _ALL_TOKENS)

    def find(self, tokens: Tokens, *, max_occurrences: int, exclude: str = "") -> Counter[str]:
        """Count the occurrences of a sequence, by path; see `count_documents`. `exclude` as in `lookup`."""
        parts, hidden = self._live.without(exclude)
        found = count_documents(parts, tokens, hidden, max_occurrences)
        return Counter(
            {path: num for version, num in found.items() if (path := self._table.path_of(version))}
        )

    @property
    def paths(self) -> list[str]:
        """The stored paths, sorted; overlays of files that are not stored are not among them."""
        return sorted(self._table.stored().values())

    @property
    def overlaid(self) -> list[str]:
        """The paths that an overlay stands over, stored or not."""
        return self._table.overlaid()

    @property
    def num_documents(self) -> int:
        """Number of paths that are searched; `find` finds them all."""
        return self._live.num_documents

    @property
    def num_tokens(self) -> int:
        """Number of tokens that are searched."""
        return sum(part.num_live_tokens for part in self._live.parts)

    @property
    def num_segments(self) -> int:
        """Number of segments that a lookup searches."""
        return len(self._live.parts)

    @property
    def nbytes(self) -> int:
        """Bytes of all tokens and their order, with those that a merge will drop."""
        return sum(part.segment.nbytes for part in self._live.parts)

    # Writing

    def update(self, path: str, tokens: Tokens) -> None:
        """Replace a path's stored version, or add it."""
        self.update_many([(path, tokens)])

    def update_many(self, documents: Sequence[tuple[str, Tokens]]) -> None:
        """Replace or add stored versions, as one segment; later ones count as more recent."""
        self._add(documents, is_overlay=False)
        if len(self._live.parts) > _MAX_PARTS_EVER:
            self.maintain()

    def remove(self, path: str) -> None:
        """Forget the stored version of a path; its overlay stays."""
        with self._lock:
            self._live.refresh(self._table.assign(path, replace(self._table.entry(path), stored=None)))

    def set_overlay(self, path: str, tokens: Tokens) -> None:
        """Search these tokens, the text of an open buffer, instead of the stored version."""
        self._add([(path, tokens)], is_overlay=True)

    def drop_overlay(self, path: str) -> None:
        """Search the stored version again, if there is one."""
        with self._lock:
            self._live.refresh(self._table.assign(path, replace(self._table.entry(path), overlay=None)))

    def restore(self, stored: Stored) -> None:
        """Add a saved index as the oldest texts; paths that are known keep their version.

        Raises ValueError unless segments and paths name the same documents, each once.
        """
        ids = [document for segment in stored.segments for document in segment.documents]
        if sorted(ids) != sorted(stored.paths) or len(set(stored.paths.values())) != len(stored.paths):
            raise ValueError("segments and paths do not name the same documents")
        with self._lock:
            if ids and (min(ids) < 0 or max(ids) >= _FIRST_LIVE_ID or any(id_ in self._table for id_ in ids)):
                raise ValueError("stored documents have numbers of their own, below those of live ones")
            for version, path in stored.paths.items():
                self._table.assign(path, self._table.entry(path).with_version(version, is_overlay=False))
            self._live.publish((*map(Part, stored.segments), *self._live.parts), ids)

    def maintain(self, max_segments: int = _MAX_PARTS, checkpoint: Callable[[], None] = never_stop) -> None:
        """Merge segments until at most `max_segments` are left, and rewrite those that are mostly dead.

        This may take seconds; lookups and writers can run meanwhile. `checkpoint` is called between the
        steps. If it raises, the index stays as it was before the last merge.
        """
        with self._compaction:
            for _ in self._live.parts:
                self._replace_aside(self._live.first_mostly_dead, self._live.reduced)
            while len(self._live.parts) > max_segments:
                checkpoint()
                self._replace_aside(
                    lambda parts: choose_tiers(parts, max_segments),
                    lambda parts: self._live.merged(parts, checkpoint),
                )

    def stored(self) -> Stored:
        """Return a frozen copy to save: only stored versions, with new ids from 0 by age."""
        with self._lock:
            parts = self._live.parts
            paths = self._table.stored()
        return Stored.of((part.segment for part in parts), paths)

    # Writers' inner parts

    def _add(self, documents: Sequence[tuple[str, Tokens]], *, is_overlay: bool) -> None:
        if not documents:
            return
        arrays = {path: as_tokens(tokens) for path, tokens in documents}
        with self._lock:
            first = self._next_id
            self._next_id += len(arrays)
        segment = Segment.build(zip(range(first, first + len(arrays)), arrays.values(), strict=True))
        with self._lock:
            touched = set(segment.documents)
            for version, path in enumerate(arrays, first):
                entry = self._table.entry(path).with_version(version, is_overlay=is_overlay)
                touched |= self._table.assign(path, entry)
            self._live.publish((*self._live.parts, Part(segment)), touched)
            idle = [part for part in self._live.parts if part.segment not in self._claimed]
            small = choose_small(idle, _MAX_PARTS, _INLINE_TOKENS)
            if small:
                self._live.replace(small, self._live.merged(small))

    def _replace_aside(
        self, choose: Callable[[Sequence[Part]], list[Part]], build: Callable[[Sequence[Part]], Segment]
    ) -> None:
        """Swap chosen parts for what `build` makes of them outside the lock, claimed meanwhile."""
        with self._lock:
            chosen = choose(self._live.parts)
            self._claimed = frozenset(part.segment for part in chosen)
        try:
            if chosen:
                merged = build(chosen)
                with self._lock:
                    self._live.replace(chosen, merged)
        finally:
            self._claimed = frozenset()
