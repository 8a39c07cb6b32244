"""Calls that lack the argument that their definition's new parameter needs, and that another call got."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from completion_engine.next_edit.call_sites import ChangedCalls, call_edits, changed_calls
from completion_engine.next_edit.edits import EditDocument, Hunk
from completion_engine.next_edit.parsing import DocumentParser

Change = tuple[int, str]


def followed(
    text: str, changes: Sequence[Change], language: str = "python", others: Sequence[EditDocument] = ()
) -> list[str]:
    """The edited lines, as they read then, once lines of a document were changed."""
    lines, hunks = text.split("\n"), list[Hunk]()
    for line, new in changes:
        hunks.append(Hunk("a", line, (lines[line],), (new,)))
        lines[line] = new
    documents = [EditDocument("a", "net.py", language, tuple(lines)), *others]
    changed, parser = ChangedCalls(), DocumentParser()
    trees = [parser.parsed(document) for document in documents]
    for document, parsed in zip(documents, trees, strict=True):
        assert parsed is not None
        changed += changed_calls(document, parsed, hunks)
    return [
        edit.edit.new[0].strip()
        for document, parsed in zip(documents, trees, strict=True)
        if parsed is not None
        for edit in call_edits(document, parsed, changed)
    ]


PYTHON = "def load(path):\n    pass\nload('a')\nx = load('b')"
DEFINED, CALLED = (0, "def load(path, mode):"), (2, "load('a', 'r')")


@pytest.mark.parametrize(
    ("language", "text", "changes", "expected"),
    [
        ("python", PYTHON, [DEFINED, CALLED], "x = load('b', 'r')"),
        ("python", PYTHON, [CALLED, DEFINED], "x = load('b', 'r')"),
        ("python", PYTHON, [(0, "def load(mode, path):"), (2, "load('r', 'a')")], "x = load('r', 'b')"),
        ("python", PYTHON, [DEFINED, (2, "load('a', mode='r')")], "x = load('b', mode='r')"),
        (
            "python",
            "class A:\n  def f(self, a):\n    self.f(1)\n    self.f(2)",
            [(1, "  def f(self, a, b):"), (2, "    self.f(1, 0)")],
            "self.f(2, 0)",
        ),
        (
            "typescript",
            "function f(a: X) {}\nf(1);\nf(f(2));",
            [(0, "function f(a: X, b: Y) {}"), (1, "f(1, 0);")],
            "f(f(2, 0), 0);",
        ),
        (
            "rust",
            "fn f(a: X) {}\nfn g() {\n  f(1);\n  f(2);\n}",
            [(0, "fn f(a: X, b: Y) {}"), (2, "  f(1, 0);")],
            "f(2, 0);",
        ),
        (
            "go",
            "func f(a int) {}\nfunc g(c int) {\n  f(1)\n  f(2)\n}",
            [(0, "func f(c int, a int) {}"), (2, "  f(c, 1)")],
            "f(c, 2)",
        ),
    ],
)
def test_a_call_gets_the_argument_that_another_one_got(
    language: str, text: str, changes: list[Change], expected: str
) -> None:
    assert followed(text, changes, language) == [expected]


@pytest.mark.parametrize(
    ("text", "changes"),
    [
        pytest.param(PYTHON, [DEFINED], id="no call was changed"),
        pytest.param(PYTHON, [CALLED], id="the definition is as it was"),
        pytest.param(PYTHON, [(0, "def load(path, mode='r'):"), CALLED], id="the parameter has a default"),
        pytest.param(PYTHON, [(0, "def load(path, *mode):"), CALLED], id="it may be left out"),
        pytest.param(PYTHON.replace("'b'", "'b', 1"), [DEFINED, CALLED], id="another number of arguments"),
        pytest.param(PYTHON.replace("'b'", "*b"), [DEFINED, CALLED], id="an unknown number of arguments"),
        pytest.param(PYTHON.replace("x =", "x = other."), [DEFINED, CALLED], id="another thing's method"),
        pytest.param(f"{PYTHON}\nload = print", [DEFINED, CALLED], id="two definitions"),
        pytest.param(
            "def load(path):\n    pass\ndef f(c):\n    load(1)\ndef g():\n    load(2)",
            [(0, "def load(path, mode):"), (3, "    load(1, c)")],
            id="the argument is not bound there",
        ),
        pytest.param(PYTHON, [DEFINED, (2, "load('a', f(a, b, c, d))")], id="an argument of many names"),
    ],
)
def test_a_call_stays_as_it_is(text: str, changes: list[Change]) -> None:
    assert followed(text, changes) == []


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("from pkg.net import load\nload('c')", ["load('c', 'r')"]),
        ("import net\nnet.load('c')", ["net.load('c', 'r')"]),
        ("from other import load\nload('c')", []),
        ("def load(a): pass\nload('c')", []),
        ("load('c')", []),
    ],
)
def test_calls_in_another_file_follow_if_it_imports_the_definition(text: str, expected: list[str]) -> None:
    other = EditDocument("b", "b.py", "python", tuple(text.split("\n")))
    assert followed(PYTHON, [DEFINED, CALLED], others=[other]) == ["x = load('b', 'r')", *expected]
