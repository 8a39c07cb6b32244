"""No text makes the rules slow, before the cursor or generated: their time grows with it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from completion_engine.languages.scanner import Event, Stack, scan
from completion_engine.suggestions import closing, regions
from completion_engine.suggestions.fitting import polish
from completion_engine.suggestions.regions import CursorRegion
from completion_engine.suggestions.stopping import StopRules
from completion_engine.text_window import CursorContext
from tests.growth import cpu_s, growth

_SHORT, _LONG = 4_000, 16_000
_WORTH_A_LOOK_S = 0.15

# The repeated text, its language, and the text after it.
HOSTILE = [
    ("python", ")", "abc = "),
    ("python", " ", "x"),
    ("python", "(", "a\n"),
    ("python", "ab ", "\n"),
    ("ruby", "=if ;", "\n"),
    ("lua", "function ", "\n"),
    ("javascript", "{\n", "a"),
    ("javascript", "f({\n", "a\n"),
    ("javascript", "[)", "\n"),
    ("typescriptreact", "</a", "\n"),
    ("rust", "a<b>", "\n"),
    ("markdown", "\"'", "\n"),
    ("makefile", "\t", "x\n"),
    ("yaml", "- ", "x\n"),
]


@pytest.fixture
def patient_parser() -> None:
    """None: the parser's time counts too."""


@pytest.mark.parametrize(("language", "unit", "end"), HOSTILE)
@pytest.mark.parametrize("is_generated", [False, True])
def test_the_time_grows_with_the_text(language: str, unit: str, end: str, is_generated: bool) -> None:
    """A text four times as long takes about four times as long, if it takes long at all."""

    def suggest(num_chars: int) -> None:
        text = (unit * num_chars)[:num_chars] + end
        before, generated = ("x = foo(", text) if is_generated else (text, "foo(1)\nx\n")
        rules = StopRules(CursorContext(before, ")\n", language))
        rules.check(generated)
        rules.boundary(generated)
        polish(rules, generated)

    if cpu_s(lambda: suggest(_LONG)) > _WORTH_A_LOOK_S:
        assert growth(suggest, _SHORT, _LONG, below=12) < 12


@pytest.mark.parametrize(
    ("before", "suffix"),
    [
        (("[]" * 150 + "\n") * 31 + ") {\n    ", "  x();\n" * 80),
        (("[]" * 150 + "\n") * 32 + ") " + "{ " * 50, "x\n" * 80),
        ("  argument: Array<[number, string]>,\n" * 30 + ") {\n  ", "  x();\n" * 80),
        (")" * 20 + "){" * 2000, "x\n" * 800),
    ],
)
def test_no_line_is_scanned_anew_for_each_bracket(
    before: str, suffix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    num_scanned = 0

    def counted(language: str, text: str, stack: Stack, **options: object) -> Iterator[Event]:
        nonlocal num_scanned
        num_scanned += len(text)
        return scan(language, text, stack, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(closing, "scan", counted)
    monkeypatch.setattr(regions, "scan", counted)
    CursorRegion(CursorContext(before, suffix, "typescript"))
    assert num_scanned < 3 * len(before + suffix)
