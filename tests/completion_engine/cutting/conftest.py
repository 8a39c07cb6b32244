"""Documents as text with a cursor: `‸` stands where the cursor is."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from completion_engine import grammars
from completion_engine.cutting import tree as syntax
from completion_engine.cutting.cutter import Cutter
from completion_engine.text_window import CursorContext

At = Callable[..., CursorContext]
Shows = Callable[..., str]
Accepted = Callable[[str, str, str], str]


@pytest.fixture(autouse=True)
def patient_parser(monkeypatch: pytest.MonkeyPatch) -> None:
    """The rules decide by the text alone, not by the load of the machine."""
    monkeypatch.setattr(syntax, "_MAX_SPENT_S", 600.0)
    monkeypatch.setattr(grammars, "_MAX_STEP_S", 600.0)


@pytest.fixture
def at() -> At:
    """Builds a place from a language id and a document with a cursor in it."""

    def build(language: str, document: str, **options: str) -> CursorContext:
        prefix, cursor, suffix = document.partition("‸")
        assert cursor, "the document has no cursor"
        return CursorContext(prefix, suffix, language, **options)

    return build


@pytest.fixture
def shows(at: At) -> Shows:
    """Builds the text that is shown of a written text, which arrives letter by letter."""

    def shown(language: str, document: str, generated: str, **options: str) -> str:
        cutter = Cutter(at(language, document, **options))
        ends = range(1, len(generated) + 1)
        stop = next((stop for end in ends if (stop := cutter.stop(generated[:end]))), None)
        return cutter.cut(generated[: stop.num_chars] if stop else generated).text

    return shown


@pytest.fixture
def accepted(at: At) -> Accepted:
    """The document once the user has accepted what is shown of generated text."""

    def document_after(language: str, document: str, generated: str) -> str:
        cursor = at(language, document)
        rules = Cutter(cursor)
        stop = next(
            (stop for end in range(1, len(generated) + 1) if (stop := rules.stop(generated[:end]))), None
        )
        shown = rules.cut(generated[: stop.num_chars] if stop else generated)
        return cursor.prefix + shown.text + cursor.suffix[shown.num_replaced :]

    return document_after
