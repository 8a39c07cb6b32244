"""A scan in cached segments finds what one scan finds, and an edit costs its own segment."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest

from completion_engine.languages.open_marks import Event, Stack
from completion_engine.languages.scanner import scan
from completion_engine.languages.table import LANGUAGES
from completion_engine.suggestions import checkpoints
from completion_engine.suggestions.checkpoints import scan_lines
from completion_engine.suggestions.stopping import StopRules
from completion_engine.text_window import CursorContext
from tests.completion_engine.suggestions.test_bounds import LANGUAGE_OF, REPEATED
from tests.completion_engine.suggestions.test_invariants import PIECES
from tests.quality.everyday.cases import written_cases

_NUM_MARKS = 400


def _from_outside(events: Iterator[Event]) -> list[Event]:
    """The events that concern what was open before the text, and the ends of lines."""
    return [
        event
        for event in events
        if event.kind != "open" and not (event.kind == "close" and event.entry and event.entry.start >= 0)
    ]


def _check(language: str, text: str, *, is_quick: bool) -> None:
    whole: Stack = []
    expected = _from_outside(scan(language, text, whole, is_quick=is_quick))
    in_segments: Stack = []
    found = [
        event
        for scanned in scan_lines(language, text, in_segments, is_quick=is_quick)
        for event in _from_outside(scanned.events())
    ]
    assert (in_segments, found) == (whole, expected), (language, text[:200])


@pytest.mark.parametrize("is_quick", [False, True])
def test_segments_of_real_files_are_as_one_scan(is_quick: bool) -> None:
    """Files of every kind that the benchmark of everyday files has."""
    files = {(case.file, case.language): case for case in written_cases()}
    for case in files.values():
        text = (case.prefix + case.truth + case.suffix) * 3
        _check(case.language, text, is_quick=is_quick)


@pytest.mark.parametrize("is_quick", [False, True])
@pytest.mark.parametrize("language", LANGUAGE_OF.values())
def test_segments_of_odd_files_are_as_one_scan(language: str, is_quick: bool) -> None:
    """Marks in any order: every state that a segment may begin in."""
    generator = random.Random(language)  # noqa: S311 - a reproducible draw, not a secret
    marks = [*REPEATED, *PIECES]
    for _ in range(2):
        text = "".join(generator.choice(marks) for _ in range(_NUM_MARKS))
        _check(language, text, is_quick=is_quick)


def test_a_fragment_far_above_is_scanned() -> None:
    """A fragment in braces, in every language: a tag may be the last mark of its state."""
    for language in LANGUAGES:
        prefix = "{<>\n</>}\n" + "some words of text\n" * 1_000
        assert StopRules(CursorContext(prefix, "\n", language)).region.surroundings


def test_a_key_scans_few_segments() -> None:
    """A key in a long file, within a line or at its end, scans only the segments at the cursor again."""
    above = "".join(f"def f{number}(x):\n    return (x + {number})\n\n" for number in range(2_000))
    StopRules(CursorContext(above, "\n" + above, "python"))
    for typed in ("y", "y\n", "y\nz", "y\nz = (\n"):
        before = set(checkpoints._segments)
        StopRules(CursorContext(above + typed, "\n" + above, "python"))
        assert 0 < len(set(checkpoints._segments) - before) <= 4


def test_dense_segments_take_no_memory() -> None:
    """The result of a segment with very many marks is not cached, nor is that of a very long line."""
    checkpoints.forget_texts()
    for line in ("(" * 800 + "\n", ")" * 20_000 + "\n"):
        for _ in scan_lines("python", line, []):
            pass
    assert not checkpoints._segments
