"""The invariants of an index: `check_integrity` fails when its parts contradict each other."""

from __future__ import annotations

import numpy as np

from ngram_cache import NgramIndex
from ngram_cache.construction import MAX_CONTEXT
from ngram_cache.segment import Segment, layout


def check_integrity(index: NgramIndex) -> None:
    """Fail when paths, versions and segments contradict each other."""
    with index._lock:
        table, parts = index._table, index._live.parts
        assert {
            version: path for path, entry in table._entries.items() for version in entry.kept
        } == table._paths
        found: list[int] = []
        for part in parts:
            check_segment(part.segment)
            documents = part.segment.documents
            is_live = [part.is_live(place) for place in range(len(documents))]
            assert is_live == list(map(table.is_live, documents))
            found += [version for version in documents if version in table]
        assert sorted(found) == sorted(table._paths)


def check_segment(segment: Segment) -> None:
    """Fail when a segment violates its description."""
    assert layout(segment.lengths) == (segment.starts, segment.num_words)
    assert segment.documents == sorted(set(segment.documents))
    words = segment.words()
    positions = np.frombuffer(segment.positions, dtype=np.int32)
    expected = np.flatnonzero((words[1:] != 0) & (words[:-1] != 0)) + 1
    assert np.array_equal(np.sort(positions), expected)
    previous: list[int] = []
    for position in positions.tolist():
        context = words[position : position + MAX_CONTEXT].tolist()
        context = context[: context.index(0)] if 0 in context else context
        common = min(len(context), len(previous))
        assert previous[:common] <= context[:common]
        previous = context
