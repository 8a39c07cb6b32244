"""In files of many languages: the original text is shown whole, and junk after it is not shown."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

import pytest

from completion_engine.languages.open_marks import Stack
from completion_engine.languages.scanner import scan
from completion_engine.suggestions.regions import CursorRegion
from tests.quality.everyday.splits import JUNK, Cut, cuts, files, is_whole, region_of

_MAX_ODD = 0.02  # share of cursors


@cache
def whole_cuts() -> tuple[tuple[Cut, CursorRegion], ...]:
    """The cursors at which the true text is shown whole, and where they stand."""
    every = (cut for file in files() for cut in cuts(*file))
    return tuple((cut, region_of(cut)) for cut in every if is_whole(cut, cut.middle))


def test_only_a_part_in_another_language_is_open_at_the_end_of_a_file() -> None:
    left: dict[str, list[str]] = {}
    for language, file, text in files():
        stack: Stack = []
        list(scan(language, f"{text}\n", stack))
        if any(entry.pair.kind != "region" for entry in stack):
            left[f"{language} {file}"] = [entry.mark for entry in stack]
    assert not left


@pytest.mark.parametrize("ending", ["", "\n"])
def test_what_stood_there_is_shown_whole(ending: str) -> None:
    every = [cut for file in files() for cut in cuts(*file)]
    lost = [cut for cut in every if not is_whole(cut, cut.middle + ending)]
    assert len({cut.language for cut in every}) >= 25
    assert len(lost) <= _MAX_ODD * len(every), [(cut.file, cut.line_before, cut.middle) for cut in lost]


@pytest.mark.parametrize("kind", JUNK)
def test_junk_is_not_shown(kind: str) -> None:
    junk, applies = JUNK[kind]
    every = [cut for cut, region in whole_cuts() if applies(cut, region)]
    left = [cut for cut in every if not is_whole(cut, cut.middle + junk(cut))]
    assert len({cut.language for cut in every}) >= 25
    assert len(left) <= _MAX_ODD * len(every), [(cut.file, cut.line_before, cut.middle) for cut in left]


def test_what_stands_before_the_cursor_is_not_written_twice() -> None:
    every = [cut for file in files() for cut in cuts_at_words(*file) if is_whole(cut, cut.middle)]
    left = [cut for cut in every if not is_whole(cut, cut.line_before + cut.middle)]
    assert len(every) >= 100
    assert len(left) <= _MAX_ODD * len(every), [(cut.file, cut.line_before, cut.middle) for cut in left]


def cuts_at_words(language: str, file: str, text: str) -> Iterator[Cut]:
    """Cursors before the last words of lines of code."""
    lines = text.split("\n")
    for at, line in enumerate(lines):
        column = line.rfind(" ") + 1
        if len(line[:column].strip()) >= 12 and line.count(" ", 0, column - 1) < column // 4:
            before = "\n".join([*lines[:at], line[:column]])
            cut = Cut(
                language, file, before, line[column:], "".join("\n" + below for below in lines[at + 1 :])
            )
            is_data = line[:column].rstrip().endswith((",", ";", "|"))
            if not is_data and region_of(cut).inside is None:
                yield cut
