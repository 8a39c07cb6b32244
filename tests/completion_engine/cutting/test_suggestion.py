"""Suggestions beyond the rows of `cuts.txt`: the reasons for no text, characters, settings, time."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tree_sitter import Parser, Tree

from completion_engine.cutting import tree as syntax
from completion_engine.cutting.cutter import Cutter, Suggestion
from completion_engine.grammars import Begun, parse_within
from completion_engine.text_window import CursorContext

At = Callable[..., CursorContext]
Shows = Callable[..., str]
Case = tuple[str, str, str, str]

TAKEN_IN_STEPS: list[tuple[str, str, str]] = [
    ("python", "print(‸)\nx = 1\n", "foo(a, b[0]))\n"),
    ("python", "x = ‸\ny = 1\n", "foo(a)[b](c)\n"),
    ("python", "x = [‸]\n", "f(a) for a in b(c)]\n"),
    ("python", "    return max(‸\n\n\ndef g():\n    pass\n", "(a, b), key=lambda x: x[0])\n"),
    ("python", "def f():\n    ‸\n", 'return {"a": [g(1), (2, 3)]}\n'),
    ("javascript", "x = ‸;\n", "[...a.map((b) => ({ b }))];\n"),
]

UNSEEN: list[Case] = [
    ("python", "x = ‸", "'a\x00\x1b[0m\u202e\u200bb'", "x = 'ab'"),
    ("python", "x = ‸", "f(1) + '\ufffd'", "x = f(1)"),
    ("python", "x = ‸", "f(1) + \ud83d", "x = f(1)"),
    ("python", "if x:‸", "\r\n    a()\r\n    b()\r\n", "if x:\n    a()\n    b()"),
]

DROPPED: list[Case] = [
    ("python", "x = 1‸", "", "blank"),
    ("python", "x = 1‸", "  \n\n ", "end-of-statement"),
    ("python", "def f():\n    ‸", " \t \n", "blank"),
    ("python", "x = ‸", "\ufffd\ufffd", "undecodable-text"),
    ("python", "def f():\n    ‸\n    return total\n", "return total", "repeats-document"),
    ("python", "def f():\n    retu‸\n    return total\n", "rn total", "repeats-document"),
    ("python", "    self.add(one)\n    ‸", "self.add(one)", "repeats-document"),
    ("python", "f(‸value)", "g(", "does-not-fit"),
    ("python", "x = ‸value", 'print("', "does-not-fit"),
    ("python", "f(‸value)", "value)", "no-change"),
    ("python", "f(‸)", ")", "no-change"),
    ("javascript", "if (a) {\n  ‸\n}", "}", "does-not-fit"),
]

CUT_OFF: list[Case] = [
    ("python", "x = ‸", "first + sec", "x = first"),
    ("python", "x = ‸", "f(a, b", "x = f(a"),
    ("python", "if x:‸", "\n    a()\n    bar", "if x:\n    a()"),
    ("python", "x = ‸", "'a\\n\\x4", "x = 'a"),
]


def _applied(cursor: CursorContext, shown: Suggestion) -> str:
    return cursor.prefix + shown.text + cursor.suffix[shown.num_replaced :]


@pytest.mark.parametrize(("language", "document", "generated"), TAKEN_IN_STEPS)
def test_a_suggestion_that_is_taken_in_steps_goes_on_to_the_same_text(
    at: At, language: str, document: str, generated: str
) -> None:
    """A bracket that the part taken has opened may be closed by the rest."""
    cursor = at(language, document)
    whole = Cutter(cursor).cut(generated)
    assert whole.text
    for num_taken in range(1, len(whole.text)):
        later = CursorContext(cursor.prefix + whole.text[:num_taken], cursor.suffix, language)
        rest = Cutter(later).cut(generated[num_taken:])
        assert _applied(later, rest) == _applied(cursor, whole)


@pytest.mark.parametrize(("language", "document", "generated", "after"), UNSEEN)
def test_what_is_not_seen_is_not_shown(
    at: At, language: str, document: str, generated: str, after: str
) -> None:
    cursor = at(language, document)
    assert _applied(cursor, Cutter(cursor).cut(generated)) == after


@pytest.mark.parametrize(("language", "document", "generated", "rule"), DROPPED)
def test_a_useless_suggestion_is_dropped_by_name(
    at: At, language: str, document: str, generated: str, rule: str
) -> None:
    assert Cutter(at(language, document)).cut(generated) == Suggestion("", 0, rule)


@pytest.mark.parametrize(("language", "document", "generated", "after"), CUT_OFF)
def test_a_suggestion_that_cannot_be_decoded_to_its_end_loses_its_last_piece(
    at: At, language: str, document: str, generated: str, after: str
) -> None:
    cursor = at(language, document)
    assert _applied(cursor, Cutter(cursor).cut(generated + "\ufffd")) == after


@pytest.mark.parametrize(("is_in_time", "shown"), [(True, "1"), (False, "1 2")])
def test_an_error_counts_where_the_line_is_known_to_parse_without_the_text(
    monkeypatch: pytest.MonkeyPatch, *, is_in_time: bool, shown: str
) -> None:
    cursor = CursorContext("x = ", " + 2\n", "python")
    alone = (cursor.prefix + cursor.suffix).encode()

    def parse(parser: Parser, source: bytes, max_s: float, old: Begun | None = None) -> Tree | None:
        return parse_within(parser, source, max_s, old) if is_in_time or source != alone else None

    monkeypatch.setattr(syntax, "parse_within", parse)
    assert Cutter(cursor).cut("1 2").text == shown


@pytest.mark.parametrize(
    ("multiline", "document", "generated", "kept"),
    [
        ("never", "if x:‸", "\n    a()\n", ""),
        ("never", "x = ‸", "f(\n    a)\n", "f("),
        ("always", "x = ‸ + 1", "[\n    1]\ny = 2\n\nz = 3\n", "[\n    1]\ny = 2"),
        ("always", "    x = 1‸", "\n    y = 2\nz = 3\n", "\n    y = 2"),
    ],
)
def test_the_users_multiline_setting_holds(
    shows: Shows, multiline: str, document: str, generated: str, kept: str
) -> None:
    assert shows("python", document, generated, multiline=multiline) == kept.rstrip()


@pytest.mark.parametrize(
    ("language", "document", "shown", "is_open"),
    [
        ("python", "x = f(‸)\n", "a", False),
        ("python", "x = ‸\n", "f(a", True),
        ("python", "x = ‸\n", "'a", True),
        ("javascript", "if (a) {‸\n", "\n  b();\n}", False),
        ("javascript", "‸\n  b();\n}\n", "if (a) {", False),
        ("javascript", "‸\nb();\n", "if (a) {", True),
    ],
)
def test_what_is_left_open_is_known(
    at: At, language: str, document: str, shown: str, *, is_open: bool
) -> None:
    assert Cutter(at(language, document)).leaves_open(shown, 0) is is_open


def test_the_first_repeat_that_is_seen_decides() -> None:
    rest = 'def f():    r#"\n\n    '
    rules = Cutter(CursorContext("", rest))
    known = [rules.stop(rest[:end]) for end in range(1, len(rest) + 1)]
    decided = [stop for stop in known if stop is not None]
    assert decided and set(decided) == {decided[0]}
