"""Clips: the likeliest way on from each document, where the device looks it up."""

from __future__ import annotations

import pytest

from completion_engine.drafting.clips import NOTHING, NUM_SLOTS, SLOT_TOKENS, Clips
from completion_engine.drafting.draft import Draft, DraftToken

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
def test_a_clip_is_what_agreed_and_the_likeliest_way_on(given: Draft, wanted: list[int]) -> None:
    clip = Clips().add(PATH, given)
    assert clip is not None
    assert len(clip.tokens) == SLOT_TOKENS
    assert clip.tokens[0] == clip.tokens[-1] == NOTHING
    assert text_of(clip.tokens) == wanted


def test_every_place_of_a_clip_tells_where_it_was_read() -> None:
    clips = Clips()
    clips.add(PATH, chain(1, document=1))
    clip = clips.add(PATH, TREE)
    assert clip is not None
    found = [clip.guess_at(clip.first + at) for at in range(SLOT_TOKENS)]
    assert [guess.offset for guess in found if guess] == [1, 4, 5]
    assert [token for token, guess in zip(clip.tokens, found, strict=True) if guess] == [2, 5, 6]


def test_a_document_keeps_its_slot_and_the_oldest_makes_room() -> None:
    clips = Clips()
    first = [clips.add(PATH, chain(document, document=document)) for document in range(NUM_SLOTS)]
    assert len({clip.first for clip in first if clip}) == NUM_SLOTS
    again = clips.add(PATH, chain(99, document=0))
    new = clips.add(PATH, chain(98, document=NUM_SLOTS))
    assert first[0] and first[1] and again and new
    assert again.first == first[0].first
    assert new.first == first[1].first
    assert clips.now()[new.first // SLOT_TOKENS] is new


def test_what_is_known_is_not_told_again() -> None:
    clips = Clips()
    assert clips.add(PATH, TREE) is not None
    assert clips.add(PATH, TREE) is None
    assert clips.add(PATH, ()) is None


def test_what_stands_now_does_not_change_later() -> None:
    clips = Clips()
    clips.add(PATH, chain(1))
    before = clips.now()
    clips.add(PATH, chain(2))
    assert [text_of(clip.tokens)[-1] for clip in before.values()] == [1]
