"""The sorted order, against sorting slices."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ngram_cache import construction
from ngram_cache.construction import MAX_CONTEXT, sort_contexts
from ngram_cache.segment import Segment
from tests.ngram_cache.integrity import check_segment

phrases = st.lists(st.sampled_from([1, 2, 2_000_000]), min_size=1, max_size=12)
texts = st.lists(st.tuples(phrases, st.integers(1, 12)), max_size=6).map(
    lambda parts: [token for phrase, times in parts for token in phrase * times]
)


@settings(max_examples=200, deadline=None)
@given(text=texts)
def test_contexts_are_sorted_to_their_full_length(text: list[int]) -> None:
    words = np.array([*text, *[0] * MAX_CONTEXT], dtype=np.int32)
    positions = sort_contexts(words).tolist()
    assert sorted(positions) == list(range(1, len(text)))
    contexts = [words[at : at + MAX_CONTEXT].tolist() for at in positions]
    assert contexts == sorted(contexts)


@settings(max_examples=200, deadline=None)
@given(text=texts)
def test_ranges_that_are_sorted_one_by_one_are_in_order_together(text: list[int]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(construction, "_RANGE_KEYS", 8)
        patch.setattr(construction, "_SAMPLES_PER_CUT", 2)
        words = np.array([*text, *[0] * MAX_CONTEXT], dtype=np.int32)
        contexts = [words[at : at + MAX_CONTEXT].tolist() for at in sort_contexts(words).tolist()]
    assert len(contexts) == max(0, len(text) - 1)
    assert contexts == sorted(contexts)


@pytest.mark.parametrize("num_steps", [1, 20])
def test_sorting_ends_between_two_passes_when_it_is_told_to(num_steps: int) -> None:
    asked: list[None] = []

    def stop() -> None:
        asked.append(None)
        if len(asked) == num_steps:
            raise InterruptedError

    with pytest.raises(InterruptedError):
        sort_contexts(np.random.default_rng(0).integers(0, 9, 4_000_000).astype(np.int32), checkpoint=stop)


@pytest.mark.parametrize("num_phrases", [1, 40])
def test_long_texts_that_repeat_themselves_are_sorted_too(num_phrases: int) -> None:
    generator = np.random.default_rng(num_phrases)
    stock = [generator.integers(0, 100_000, 50) for _ in range(num_phrases)]
    text = np.concatenate([stock[int(generator.integers(num_phrases))] for _ in range(2_800)])
    segment = Segment.build([(2, text[:70_000].astype(np.int32)), (5, text[70_000:].astype(np.int32))])
    check_segment(segment)


def test_what_is_kept_of_a_segment_stays_sorted() -> None:
    generator = np.random.default_rng(0)
    documents = [(number, generator.integers(0, 9, 300).astype(np.int32)) for number in range(9)]
    keep = [number % 3 != 1 for number in range(9)]
    reduced = Segment.build(documents).only(keep)
    check_segment(reduced)
    assert reduced.documents == [0, 2, 3, 5, 6, 8]
    assert all(
        np.array_equal(reduced.tokens(at), documents[id_][1]) for at, id_ in enumerate(reduced.documents)
    )
