"""Positions where unfinished text may be cut: `|` in the generated text marks the boundary."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from completion_engine.cutting.cutter import Cutter
from completion_engine.text_window import CursorContext

At = Callable[..., CursorContext]

CASES: list[tuple[str, str, str]] = [
    ("python", "x = ‸", "|foo"),
    ("python", "x = ‸", "foo|(bar"),
    ("python", "x = ‸", "foo(bar|, ba"),
    ("python", "x = ‸", "foo(bar)|"),
    ("python", "x = ‸", "'a b| c"),
    ("python", "x = ‸", "'a'| + '"),
    ("python", "x = ‸", "a| + 1.5e-"),
    ("python", "x = ‸", "1.5e-3| + 2."),
    ("python", "x = ‸", "foo|\ny = ba"),
    ("python", "x = ‸", "foo(\n    a,|\n    b"),
    ("python", "x = ‸", "foo(\n    a)|\nb"),
    ("python", "if x:‸", "\n    a()|\n    if b:\n        c"),
    ("python", "‸", "if a:|\n    b"),
    ("python", "‸", "if a(|\n    "),
    ("javascript", "‸", "if (a) {|\n  b"),
    ("pascal", "  ‸", "if a then\n    Exit;|\n  if b then\n    c"),
    ("ruby", "‸", "if a\n  b|\nend"),
    ("lua", "f({\n    ‸\n})", "a,|\n    b = {\n        c,\n        d"),
    ("python", "f(\n    ‸\n)", "a,|\n    b(\n        c,\n        d"),
    ("javascript", "x = {\n  a,\n  ‸\n}", "b,|\n  c: [d,\n  e"),
    ("python", "# ‸", "cafe\u0301| noi"),
    ("javascript", "x = ‸", "a.b|.c"),
    ("html", "<p>‸</p>", "a| &amp;"),
    ("lua", "‸", "a = f()|\nif a then\n    b()\n    c()\n    d"),
    ("lua", "‸", "if a then\n    b()\nend|\nc"),
    ("ruby", "def f\n  ‸", "x = 1|\n  if x\n    y\n    z"),
    ("python", "‸\n", "# c is d|, an"),
]


@pytest.mark.parametrize(("language", "document", "marked"), CASES)
def test_a_boundary_ends_a_statement_or_else_a_word(
    at: At, language: str, document: str, marked: str
) -> None:
    text = marked.replace("|", "", 1)
    assert Cutter(at(language, document)).boundary(text) == marked.index("|")
