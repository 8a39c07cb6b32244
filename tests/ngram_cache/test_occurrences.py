"""Where a sequence occurs, against the slow truth; and a document's tokens as they went in."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ngram_cache import NgramIndex
from ngram_cache.live_parts import LiveParts
from ngram_cache.search import Part

texts = st.dictionaries(st.sampled_from("abcd"), st.lists(st.integers(0, 3), max_size=40), max_size=4)
sequences = st.lists(st.integers(0, 3), min_size=1, max_size=4)


def truth(documents: dict[str, list[int]], sequence: list[int]) -> Counter[str]:
    """Occurrences with a token after them: only those are in an index."""
    n = len(sequence)
    return Counter(
        path
        for path, tokens in documents.items()
        for at in range(len(tokens) - n)
        if tokens[at : at + n] == sequence
    )


@given(texts, texts, sequences, st.sampled_from(["", "a"]))
def test_every_occurrence_is_counted_under_its_path(
    stored: dict[str, list[int]], overlays: dict[str, list[int]], sequence: list[int], exclude: str
) -> None:
    index = NgramIndex(stored.items())
    for path, tokens in overlays.items():
        index.set_overlay(path, tokens)
    live = {path: tokens for path, tokens in {**stored, **overlays}.items() if path != exclude}
    assert index.find(sequence, max_occurrences=1_000, exclude=exclude) == truth(live, sequence)
    for path, tokens in {**stored, **overlays}.items():
        assert index.tokens_of(path).tolist() == tokens
        assert index.holds(path)


def test_a_path_is_held_and_counted_no_sooner_than_it_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    index = NgramIndex([("a", [1, 2])])
    publish, seen = LiveParts.publish, list[tuple[bool, int, bool]]()

    def look() -> None:
        found = "b" in index.find([1, 3], max_occurrences=10)
        seen.append((index.holds("b"), index.num_documents, found))

    def look_around(self: LiveParts, parts: Iterable[Part], touched: Iterable[int]) -> None:
        look()
        publish(self, parts, touched)
        look()

    monkeypatch.setattr(LiveParts, "publish", look_around)
    index.update("b", [1, 3, 4])
    assert seen == [(False, 1, False), (True, 2, True)]


def test_of_many_occurrences_so_many_are_looked_at() -> None:
    index = NgramIndex([("a", [1, 2] * 500), ("b", [1, 3])])
    assert index.find([1], max_occurrences=10).total() == 10


@pytest.mark.parametrize("path", ["b", "forgotten"])
def test_nothing_is_read_of_what_is_not_there(path: str) -> None:
    index = NgramIndex([("a", [1, 2, 3]), ("forgotten", [1, 2, 4])])
    index.remove("forgotten")
    assert not index.holds(path)
    assert index.tokens_of(path).tolist() == []
    assert index.find([1, 2], max_occurrences=10) == Counter({"a": 1})
    assert index.find([], max_occurrences=10) == Counter()
