"""In files of many languages: what stood at a cursor is shown whole, and junk after it is not shown."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache

import pytest

from completion_engine.suggestions.cursor_context import CursorContext
from completion_engine.suggestions.fitting import polish
from completion_engine.suggestions.stopping import StopRules
from tests.quality.everyday.cases import written_cases

_NUM_CURSORS = 12  # in each file
_MAX_ODD = 0.02  # of cursors


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

JUNK: dict[str, Junk] = {
    "the next line again": lambda cut: f"\n{cut.next_line}\n",
    "the next lines again": lambda cut: cut.after[:200],
    "a parenthesis too many": lambda _: ")",
    "a bracket too many": lambda _: "]",
    "a brace too many": lambda _: "}",
    "brackets too many": lambda _: "))]}\n",
    "a brace below": lambda _: "\n}\n",
    "a fence": lambda _: "```",
    "a fence below": lambda _: "\n```\n",
    "a fence and a comment on the code": lambda _: "\n```\n\nThis code adds two numbers.",
    "the end of a text": lambda _: "<|endoftext|>",
    "the end of a turn": lambda _: "<|im_end|>\n<|im_start|>user\n",
    "another file": lambda _: "<|file_sep|>other.py\nimport os\n",
    "half a character": lambda _: "\ufffd",
    "controls": lambda _: "\u202e\u200b\x00",
    "blanks": lambda _: "   \t \n\n\n",
    "its line again and again": lambda cut: f"\n{cut.line_before}{cut.middle}" * 8,
    "a closing tag too many": lambda _: "</section>",
    "another paragraph": lambda _: "\n\n\nAnd now for something else.\n",
    "the line above": lambda cut: "\n" + cut.before.rstrip("\n").rpartition("\n")[2] + "\n",
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


@pytest.mark.parametrize("kind", JUNK)
def test_junk_is_not_shown(kind: str) -> None:
    every = [cut for file in files() for cut in cuts(*file) if is_whole(cut, cut.middle)]
    left = [cut for cut in every if not is_whole(cut, cut.middle + JUNK[kind](cut))]
    assert len(left) <= _MAX_ODD * len(every), [(cut.file, cut.line_before, cut.middle) for cut in left]
