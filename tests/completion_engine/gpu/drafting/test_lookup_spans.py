"""LookupSpans: the likeliest way on from each document, where the device looks it up."""

from __future__ import annotations

import pytest

from completion_engine.drafting.drafts import Draft, DraftToken
from completion_engine.gpu.device_loop import NOTHING, NUM_SLOTS, SLOT_TOKENS, LookupSpans

PATH = list(range(100, 150))


def draft(*guesses: tuple[int, int, float], match: int = 3, document: int = 5) -> Draft:
    """Guesses as (token, parent, share)."""
    return tuple(
        DraftToken(token, "ngram", "index", match, share, parent, document, offset=at)
        for at, (token, parent, share) in enumerate(guesses)
    )


def chain(*tokens: int, match: int = 3, document: int = 5) -> Draft:
    return draft(*((token, at - 1, 1.0) for at, token in enumerate(tokens)), match=match, document=document)


def text_of(tokens: list[int]) -> list[int]:
    return [token for token in tokens if token != NOTHING]


TREE = draft((1, -1, 0.4), (2, -1, 0.6), (3, 0, 1.0), (4, 1, 0.3), (5, 1, 0.7), (6, 4, 1.0))


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        (TREE, [147, 148, 149, 2, 5, 6]),
        (chain(7, 8), [147, 148, 149, 7, 8]),
        (chain(7, match=0), [149, 7]),
        (chain(*range(60), match=32), [*PATH[-32:], *range(30)]),
        (chain(*range(60), match=2000), [*PATH[-32:], *range(30)]),
    ],
)
def test_a_span_is_what_agreed_and_the_likeliest_way_on(given: Draft, wanted: list[int]) -> None:
    span = LookupSpans().add(PATH, given)
    assert span is not None
    assert len(span.tokens) == SLOT_TOKENS
    assert span.tokens[0] == span.tokens[-1] == NOTHING
    assert text_of(span.tokens) == wanted


def test_every_place_of_a_span_tells_where_it_was_read() -> None:
    spans = LookupSpans()
    spans.add(PATH, chain(1, document=1))
    span = spans.add(PATH, TREE)
    assert span is not None
    found = [span.guess_at(span.first + at) for at in range(SLOT_TOKENS)]
    assert [guess.offset for guess in found if guess] == [1, 4, 5]
    assert [token for token, guess in zip(span.tokens, found, strict=True) if guess] == [2, 5, 6]


def test_a_document_keeps_its_slot_and_the_oldest_makes_room() -> None:
    spans = LookupSpans()
    first = [spans.add(PATH, chain(document, document=document)) for document in range(NUM_SLOTS)]
    assert len({span.first for span in first if span}) == NUM_SLOTS
    again = spans.add(PATH, chain(99, document=0))
    new = spans.add(PATH, chain(98, document=NUM_SLOTS))
    assert first[0] and first[1] and again and new
    assert again.first == first[0].first
    assert new.first == first[1].first
    assert spans.now()[new.first // SLOT_TOKENS] is new


def test_what_is_known_is_not_told_again() -> None:
    spans = LookupSpans()
    assert spans.add(PATH, TREE) is not None
    assert spans.add(PATH, TREE) is None
    assert spans.add(PATH, ()) is None


def test_what_stands_now_does_not_change_later() -> None:
    spans = LookupSpans()
    spans.add(PATH, chain(1))
    before = spans.now()
    spans.add(PATH, chain(2))
    assert [text_of(span.tokens)[-1] for span in before.values()] == [1]
