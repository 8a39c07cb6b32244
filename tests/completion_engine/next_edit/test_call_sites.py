"""Calls that lack the argument that their definition's new parameter needs, and that another call got."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from completion_engine.next_edit.call_sites import ChangedCalls, call_edits, changed_calls
from completion_engine.next_edit.candidates import find_candidates
from completion_engine.next_edit.edits import EditDocument, EditRequest, Hunk
from completion_engine.next_edit.parsing import DocumentParser
from completion_engine.next_edit.proposer import EditProposer
from completion_engine.prompting.tokenizer import Tokenizer
from completion_engine.target_model.language_model import LanguageModel

Change = tuple[int, str]


def changed_document(text: str, changes: Sequence[Change], language: str) -> tuple[EditDocument, list[Hunk]]:
    lines, hunks = text.split("\n"), list[Hunk]()
    for line, new in changes:
        hunks.append(Hunk("a", line, (lines[line],), (new,)))
        lines[line] = new
    return EditDocument("a", "net.py", language, tuple(lines)), hunks


def followed(
    text: str, changes: Sequence[Change], language: str = "python", others: Sequence[EditDocument] = ()
) -> list[str]:
    """The edited lines, as they read then, once lines of a document were changed."""
    document, hunks = changed_document(text, changes, language)
    documents = [document, *others]
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


JAVA = """class A {
  B b;
  void send(String s) { }
  void f(A other, String text) {
    send(text);
    b.send(text);
    this.send(text);
    other.send(text);
  }
}"""
JAVA_CHANGES = [(2, "  void send(String s, int n) { }"), (4, "    send(text, 1);")]
PHP = JAVA.replace("this.", "$this->").replace("b.send", "$b->send").replace("other.send", "$other->send")
PHP = (
    f"<?php\n{PHP}".replace("  send", "  $this->send")
    .replace("B b", "public $b")
    .replace("A other, String text", "$other, $text")
    .replace("(text", "($text")
)
PHP = PHP.replace("void send(String s)", "function send($s)").replace("void f", "function f")
PHP_CHANGES = [(3, "  function send($s, $n) { }"), (5, "    $this->send($text, 1);")]
OTHER_RECEIVERS = [
    pytest.param("java", JAVA, JAVA_CHANGES, ["this.send(text, 1);"], id="Java"),
    pytest.param("csharp", JAVA, JAVA_CHANGES, ["this.send(text, 1);"], id="C#"),
    pytest.param("php", PHP, PHP_CHANGES, ["$this->send($text, 1);"], id="PHP"),
    pytest.param(
        "java",
        JAVA,
        [JAVA_CHANGES[0], (5, "    b.send(text, 1);")],
        ["send(text, 1);", "this.send(text, 1);"],
        id="the receiver of the changed call",
    ),
    pytest.param(
        "python",
        "class A:\n  def f(self, a):\n    self.f(1)\n    self.f(2)\n"
        "class B:\n  def f(self, a):\n    self.f(3)",
        [(1, "  def f(self, a, b):"), (2, "    self.f(1, 0)")],
        ["self.f(2, 0)"],
        id="two classes",
    ),
    pytest.param(
        "python",
        "def f(a):\n  pass\nf(1)\nclass B:\n  def f(self, a):\n    self.f(3)\n    f(4)",
        [(0, "def f(a, b):"), (2, "f(1, 0)")],
        ["f(4, 0)"],
        id="a function beside a method",
    ),
]


@pytest.mark.parametrize(("language", "text", "changes", "expected"), OTHER_RECEIVERS)
def test_a_call_of_another_object_stays_as_it_is(
    language: str, text: str, changes: list[Change], expected: list[str]
) -> None:
    assert followed(text, changes, language) == expected


@pytest.mark.parametrize(("language", "text", "changes", "expected"), OTHER_RECEIVERS)
def test_the_model_adds_no_argument_to_a_call_of_another_object(
    target: LanguageModel,
    tokenizer: Tokenizer,
    language: str,
    text: str,
    changes: list[Change],
    expected: list[str],
) -> None:
    document, hunks = changed_document(text, changes, language)
    request = EditRequest([document], hunks)
    scored = EditProposer(target, tokenizer).scored(request, find_candidates(request))
    lines = [candidate.edit.new[0].strip() for candidate, _ in scored]
    assert [line for line in lines if line not in expected and "def " not in line] == []


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
