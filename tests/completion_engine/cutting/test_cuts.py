"""Texts that a model writes, and the document once what is shown of each is accepted.

`cuts.txt` has a row `language ¦ document ¦ text ¦ document after`, with `‸` at the cursor, `⏎` for a line end
and `⇥` for a tab. `lines.txt` has documents `language || text`, in which `⟦…⟧` is what stood at the cursor.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from completion_engine.cutting.cutter import Cutter
from completion_engine.text_window import CursorContext

_FOLDER = Path(__file__).parent
_DOCUMENTS = (_FOLDER / "lines.txt").read_text("utf-8").strip().split("\n===\n")
_SEPARATOR = " || "
_ROWS = [
    row.replace("⏎", "\n").replace("⇥", "\t").split(" ¦ ")
    for row in (_FOLDER / "cuts.txt").read_text("utf-8").split("\n")
    if row and not row.startswith("# ")
]


def written(truth: str, after: str) -> Iterator[tuple[str, str]]:
    """Texts that a model may write in place of `truth`: more or less of the following text is repeated."""
    rest, _, below = after.partition("\n")
    next_line = next((line for line in below.split("\n") if line.strip()), "")
    yield "the true text", truth
    yield "the rest of the line again", truth + rest
    yield "the rest of the line again, and a line end", f"{truth}{rest}\n"
    yield "all that follows again", truth + after
    yield "the rest of the line again, and the next line", f"{truth}{rest}\n{next_line}"
    if not rest.strip():
        yield "the next line again", f"{truth}\n{next_line}\n"


def accepted(language: str, before: str, after: str, generated: str) -> str:
    """The document after the suggestion of a generated text is accepted; the text arrives in parts."""
    rules = Cutter(CursorContext(before, after, language))
    ends = range(1, len(generated) + 1)
    stop = next((stop for end in ends if (stop := rules.stop(generated[:end]))), None)
    shown = rules.cut(generated[: stop.num_chars] if stop else generated)
    return before + shown.text + after[shown.num_replaced :]


def lines_of(text: str) -> list[str]:
    """The lines, blanks at their ends left out."""
    return [line.rstrip() for line in text.rstrip().split("\n")]


@pytest.mark.parametrize("document", _DOCUMENTS)
def test_nothing_stands_twice_and_nothing_is_missing(document: str) -> None:
    language, _, text = document.partition(_SEPARATOR)
    before, _, marked = f"{text}\n".partition("⟦")
    truth, _, after = marked.partition("⟧")
    found = {name: accepted(language, before, after, text) for name, text in written(truth, after)}
    wrong = {name: text for name, text in found.items() if lines_of(text) != lines_of(before + truth + after)}
    assert not wrong


@pytest.mark.parametrize(("language", "document", "generated", "after"), _ROWS)
def test_the_document_is_right_after_accepting(
    language: str, document: str, generated: str, after: str
) -> None:
    before, _, following = document.partition("‸")
    assert accepted(language, before, following, generated) == after
