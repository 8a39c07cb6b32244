"""A view answers as the index was when it was taken, and counts what followed the longest match."""

from __future__ import annotations

from collections import Counter

from hypothesis import given, settings
from hypothesis import strategies as st

from ngram_cache import NgramIndex, Successors

documents = st.lists(st.lists(st.integers(0, 3), max_size=30), max_size=5)
contexts = st.lists(st.integers(0, 3), min_size=1, max_size=12)


def longest(texts: list[list[int]], context: list[int], min_match: int) -> Successors:
    """By trying every length at every place."""
    for length in range(len(context), min_match - 1, -1):
        tail = context[-length:]
        following = Counter(
            text[at + length]
            for text in texts
            for at in range(len(text) - length)
            if text[at : at + length] == tail
        )
        if following:
            return Successors(length, following.total(), dict(sorted(following.items())))
    return Successors.none()


@settings(max_examples=150, deadline=None)
@given(texts=documents, context=contexts, min_match=st.integers(1, 4), split=st.integers(0, 5))
def test_what_followed_the_longest_match_is_counted(
    texts: list[list[int]], context: list[int], min_match: int, split: int
) -> None:
    named = [(str(at), tokens) for at, tokens in enumerate(texts)]
    index = NgramIndex(named[:split])
    for path, tokens in named[split:]:
        index.update(path, tokens)
    found = index.view(exclude="0").successors(context, min_match)
    expected = longest(texts[1:], context, min_match)
    if expected.num_occurrences <= 64:
        assert found == expected


def test_a_view_stays_as_it_was() -> None:
    index = NgramIndex([("a.py", [1, 2, 3, 4]), ("own.py", [1, 2, 3, 9])])
    view = index.view(exclude="own.py")
    index.update("a.py", [1, 2, 3, 5])
    index.set_overlay("b.py", [1, 2, 3, 6] * 4)
    index.remove("own.py")
    index.maintain(1)
    assert view.successors([1, 2, 3], 3) == Successors(3, 1, {4: 1})
    assert index.view().successors([1, 2, 3], 3) == Successors(3, 5, {5: 1, 6: 4})


def test_views_of_one_path_have_one_source() -> None:
    index = NgramIndex([("a.py", [1, 2, 3, 4])])
    before = index.view(exclude="own.py")
    index.update("a.py", [5, 6])
    assert before.source == index.view(exclude="own.py").source
    assert before.source != index.view().source
    assert before.source != NgramIndex([("a.py", [1, 2, 3, 4])]).view(exclude="own.py").source
