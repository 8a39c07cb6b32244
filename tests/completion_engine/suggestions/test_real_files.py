"""In files of many languages: the original text is shown whole, and junk after it is not shown."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache

import pytest

from completion_engine.suggestions.fitting import polish
from completion_engine.suggestions.regions import CursorRegion
from completion_engine.suggestions.stopping import StopRules
from completion_engine.text_window import CursorContext
from tests.quality.everyday.cases import written_cases

_NUM_CURSORS = 12  # in each file
_MAX_ODD = 0.02  # share of cursors


@dataclass(frozen=True)
class Cut:
    """A file cut in three: `middle` is the end of a line."""

    language: str
    file: str
    before: str
    middle: str
    after: str

    @property
    def next_line(self) -> str:
        """The next line that is not blank."""
        return next((line for line in self.after.split("\n") if line.strip()), "")

    @property
    def line_before(self) -> str:
        """The cursor's line, left of the cursor."""
        return self.before[self.before.rfind("\n") + 1 :]


Junk = Callable[[Cut], str]
Applies = Callable[[Cut, CursorRegion], bool]


def always(_: Cut, __: CursorRegion) -> bool:
    """The default: junk everywhere."""
    return True


def closes_nothing(mark: str) -> Applies:
    """Whether a bracket at the end of the line can only be junk: the line opens none, and it is not data."""
    opening = {")": "(", "]": "[", "}": "{"}[mark]

    def applies(cut: Cut, region: CursorRegion) -> bool:
        is_counted = region.language.is_text or region.language.markup or opening in region.language.brackets
        is_open = any(cut.middle.count(sign) > cut.middle.count(end) for sign, end in ("()", "[]", "{}"))
        is_begun = cut.middle.rstrip().endswith(("\\", "[[", "`", '"', "'''", "<style>", "CDATA["))
        return bool(is_counted) and not is_open and not is_begun and "```" not in cut.line_before + cut.middle

    return applies


def is_code(cut: Cut, region: CursorRegion) -> bool:
    """Whether no fence may stand at the cursor or in the line."""
    in_text = region.inside is not None or region.language.has_fences or region.language.is_text
    begins_text = any(mark in cut.middle for mark in ("`", '"""', "'''", "<<", "[[", "//", "#", '@"'))
    return not in_text and not begins_text


def is_whole_line(cut: Cut, _: CursorRegion) -> bool:
    """Whether the line neither opens a block nor goes on, and no text over several lines begins in it."""
    return not cut.middle.rstrip().endswith(("\\", "[", "(", "]", '"', "`", ">", "{", ","))


JUNK: dict[str, tuple[Junk, Applies]] = {
    "the next line again": (lambda cut: f"\n{cut.next_line}\n", always),
    "the next lines again": (lambda cut: cut.after[:200], always),
    "a parenthesis too many": (lambda _: ")", closes_nothing(")")),
    "a bracket too many": (lambda _: "]", closes_nothing("]")),
    "a brace too many": (lambda _: "}", closes_nothing("}")),
    "brackets too many": (lambda _: "))\n", closes_nothing(")")),
    "a brace below": (lambda _: "\n}\n", closes_nothing("}")),
    "a fence": (lambda _: "```", is_code),
    "a fence below": (lambda _: "\n```\n", is_code),
    "a fence and a comment on the code": (lambda _: "\n```\n\nThis code adds two numbers.", is_code),
    "the end of a text": (lambda _: "<|endoftext|>", always),
    "the end of a turn": (lambda _: "<|im_end|>\n<|im_start|>user\n", always),
    "another file": (lambda _: "<|file_sep|>other.py\nimport os\n", always),
    "controls": (lambda _: "\u202e\u200b\x00", always),
    "blanks": (lambda _: "   \t \n\n\n", always),
    "its line again and again": (lambda cut: f"\n{cut.line_before}{cut.middle}" * 8, is_whole_line),
    "an element's end": (lambda _: "</blockquote>", always),
    "the end of an outer element": (lambda _: "</section>", always),
    "another paragraph": (lambda _: "\n\n\nAnd now for something else.\n", is_whole_line),
    "half a character": (lambda _: "\n\ufffd\ufffd", always),
}


@cache
def files() -> tuple[tuple[str, str, str], ...]:
    """Language, name and text of each file."""
    found = {(case.language, case.file): case.prefix + case.truth + case.suffix for case in written_cases()}
    return tuple((language, file, text) for (language, file), text in found.items())


def cuts(language: str, file: str, text: str) -> Iterator[Cut]:
    """Cursors in a file, the same ones each time."""
    generator = random.Random(f"{language} {file}")  # noqa: S311 - a reproducible draw, not a secret
    lines = text.split("\n")
    places = [at for at, line in enumerate(lines) if len(line.strip()) >= 4]
    for at in generator.sample(places, min(_NUM_CURSORS, len(places))):
        line = lines[at]
        indent = len(line) - len(line.lstrip())
        column = generator.choice([indent, generator.randrange(indent, len(line))])
        before = "\n".join([*lines[:at], line[:column]])
        yield Cut(language, file, before, line[column:], "".join("\n" + below for below in lines[at + 1 :]))


def accepted(cut: Cut, written: str) -> str:
    """The file once what is shown of a written text is accepted."""
    rules = StopRules(CursorContext(cut.before, cut.after, cut.language))
    stop = rules.check(written)
    shown = polish(rules, written[: stop.num_chars] if stop else written)
    return cut.before + shown.text + cut.after[shown.num_replaced :]


def is_whole(cut: Cut, written: str) -> bool:
    """Whether the file is as it was."""
    was = cut.before + cut.middle + cut.after
    return [line.rstrip() for line in accepted(cut, written).split("\n")] == [
        line.rstrip() for line in was.split("\n")
    ]


@pytest.mark.parametrize("ending", ["", "\n"])
def test_what_stood_there_is_shown_whole(ending: str) -> None:
    every = [cut for file in files() for cut in cuts(*file)]
    lost = [cut for cut in every if not is_whole(cut, cut.middle + ending)]
    assert len({cut.language for cut in every}) >= 25
    assert len(lost) <= _MAX_ODD * len(every), [(cut.file, cut.line_before, cut.middle) for cut in lost]


def region_of(cut: Cut) -> CursorRegion:
    """The region of the cursor."""
    return CursorRegion(CursorContext(cut.before, cut.after, cut.language))


@pytest.mark.parametrize("kind", JUNK)
def test_junk_is_not_shown(kind: str) -> None:
    junk, applies = JUNK[kind]
    every = [cut for file in files() for cut in cuts(*file) if is_whole(cut, cut.middle)]
    every = [cut for cut in every if applies(cut, region_of(cut))]
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
