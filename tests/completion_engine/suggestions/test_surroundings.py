"""What the cursor stands in: the languages' own comments and strings."""

from __future__ import annotations

import pytest

from completion_engine.suggestions.regions import CursorRegion
from completion_engine.text_window import CursorContext


@pytest.mark.parametrize(
    ("language", "prefix", "expected"),
    [
        ("python", "x = 1\n", "code"),
        ("python", "x = 1  # the fir", "comment"),
        ("python", "x = 1  # the first\n", "code"),
        ("python", "call(", "code"),
        ("python", 'call("the fir', "string"),
        ("python", 'call("the # fir', "string"),
        ("python", 'call("it")', "code"),
        ("python", 'def f():\n    """Say what', "string"),
        ("typescript", "const a = 1; // the fir", "comment"),
        ("typescript", "/* the\n * fir", "comment"),
        ("typescript", "/* the first */\n", "code"),
        ("typescript", "const a = `the fir", "string"),
        ("typescript", "const a = `the ${fir", "code"),
        ("typescript", "const a = 'http://", "string"),
        ("lua", "local a = 1 -- the fir", "comment"),
        ("rust", "let a: &'a str = x", "code"),
        ("shellscript", "echo $# ", "code"),
        ("markdown", "# The fir", "code"),
        ("", "anything", "code"),
    ],
)
def test_the_cursor_stands_in(language: str, prefix: str, expected: str) -> None:
    assert CursorRegion(CursorContext(prefix, "\n", language)).surroundings == expected


@pytest.mark.parametrize(
    ("code", "opened"),
    [
        ("<b>{f(a)}</b>", ""),
        ("<b>{f(a)}</b>{(", "{("),
        ("<b>{f(a)}</b><b>{g(", "{("),
        ("<b {...a} />{(", "{("),
        ("<b c={d}/>{(", "{("),
        ("<b />{(", "{("),
        ("a = /[(]{/; (", "("),
        ("a.replace(/>(/g, (", "(("),
        ("a => /(/.test((", "(("),
        ("a < /(/.test((", "(("),
        ("return /{/.exec((", "(("),
    ],
)
def test_a_slash_begins_a_regex_but_not_in_a_tag(code: str, opened: str) -> None:
    """Brackets in a regex do not count; after a tag they do."""
    stack = CursorRegion(CursorContext(code, "\n", "typescriptreact")).stack
    assert "".join(entry.mark for entry in stack) == opened
