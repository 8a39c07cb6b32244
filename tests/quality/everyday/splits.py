"""Real files cut in three: the original text at the cursor is shown whole, and junk after it is not shown.

No model takes part. `python -m tests.quality.everyday.splits` tries many places in example files of many
languages and prints each that goes wrong.
"""

from __future__ import annotations

import argparse
import random
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from completion_engine.cutting.cutter import Cutter
from completion_engine.cutting.surroundings import CursorSurroundings
from completion_engine.text_window import CursorContext
from tests.benchmarks.released_sources import released_sources
from tests.quality.everyday.cases import LANGUAGE_OF_ENDING, random_cases, written_cases

_NUM_CURSORS = 10  # in each file
_ROOT = Path(__file__).parents[3]
_OWN_FOLDERS = ("completion_engine", "docs", "editors", "lsp_server", "ngram_cache", "scripts")
_MAX_OWN_CHARS = 20_000
_BEGINS_PART = re.compile(r".*```|\s*(?:~~~|\.\. |=\w|#\+\w)")  # what follows belongs to the mark
_NUM_OWN = 2  # files of each language in this repository


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
Applies = Callable[[Cut, CursorSurroundings], bool]


def always(_: Cut, __: CursorSurroundings) -> bool:
    """The default: junk everywhere."""
    return True


def closes_nothing(mark: str) -> Applies:
    """Whether a bracket at the end of the line can only be junk: the line opens none, and it is not data."""
    assert mark in ")]}"

    def applies(cut: Cut, region: CursorSurroundings) -> bool:
        is_counted = not region.is_text and not region.marks.is_markup
        is_open = any(cut.middle.count(sign) > cut.middle.count(end) for sign, end in ("()", "[]", "{}"))
        is_begun = cut.middle.rstrip().endswith(("\\", "[[", "`", '"', "'''", "<style>", "CDATA["))
        begins_part = _BEGINS_PART.match(cut.line_before + cut.middle)
        return bool(is_counted) and not is_open and not is_begun and not begins_part

    return applies


def is_code(cut: Cut, region: CursorSurroundings) -> bool:
    """Whether no fence may stand at the cursor or in the line."""
    in_text = region.is_text or "fences" in region.marks.traits
    begins_text = any(mark in cut.middle for mark in ("`", '"""', "'''", "<<", "[[", "//", "#", '@"'))
    return not in_text and not begins_text


def is_whole_line(cut: Cut, _: CursorSurroundings) -> bool:
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
    """Language, name and text of each file: the written ones, and some of this repository."""
    found = {(case.language, case.file): case.prefix + case.truth + case.suffix for case in written_cases()}
    return tuple((language, file, text) for (language, file), text in found.items()) + tuple(_own_files())


def _own_files() -> Iterator[tuple[str, str, str]]:
    """Files of this repository, the same ones each time."""
    num_taken: Counter[str] = Counter()
    for path in sorted(path for folder in _OWN_FOLDERS for path in (_ROOT / folder).rglob("*")):
        language = LANGUAGE_OF_ENDING.get(path.suffix)
        if language is None or "node_modules" in path.parts or not path.is_file():
            continue
        text = path.read_text("utf-8", "replace")
        if len(text) <= _MAX_OWN_CHARS and num_taken[language] < _NUM_OWN:
            num_taken[language] += 1
            yield language, path.relative_to(_ROOT).as_posix(), text


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
    rules = Cutter(CursorContext(cut.before, cut.after, cut.language))
    stop = rules.stop(written)
    shown = rules.cut(written[: stop.num_chars] if stop else written)
    return cut.before + shown.text + cut.after[shown.num_replaced :]


def is_whole(cut: Cut, written: str) -> bool:
    """Whether the file is as it was."""
    was = cut.before + cut.middle + cut.after
    return [line.rstrip() for line in accepted(cut, written).split("\n")] == [
        line.rstrip() for line in was.split("\n")
    ]


def lost(every: Iterator[Cut]) -> Iterator[tuple[str, Cut]]:
    """The kinds of what went wrong, each with its place: the true text itself, or junk that was shown."""
    for cut in every:
        if not is_whole(cut, cut.middle):
            yield "lost", cut
            continue
        region = region_of(cut)
        for kind, (junk, applies) in JUNK.items():
            if applies(cut, region) and not is_whole(cut, cut.middle + junk(cut)):
                yield kind, cut


def region_of(cut: Cut) -> CursorSurroundings:
    """The region of the cursor."""
    return CursorSurroundings(CursorContext(cut.before, cut.after, cut.language))


def main() -> None:
    """Print each place that went wrong, then how many did so of each kind."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--random", type=int, default=1_000, help="positions drawn from example files")
    parser.add_argument("--seed", type=int, default=5)
    asked = parser.parse_args()
    drawn = random_cases(released_sources("examples"), asked.random, asked.seed)
    every = [Cut(case.language, case.file, case.prefix, case.truth, case.suffix) for case in drawn]
    counts: Counter[str] = Counter()
    for kind, cut in lost(iter(every)):
        counts[kind] += 1
        place = f"{cut.language} {cut.file}:{cut.before.count(chr(10)) + 1}"
        sys.stdout.write(f"{kind}: {place}: {cut.line_before!r} {cut.middle!r}\n")
    for kind, count in counts.most_common():
        sys.stdout.write(f"{count} of {len(every)}: {kind}\n")


if __name__ == "__main__":
    main()
