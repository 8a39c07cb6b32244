"""The answers of the grammars about text at the cursor."""

from __future__ import annotations

import pytest

from completion_engine.grammars import LANGUAGES
from completion_engine.suggestions import syntax
from completion_engine.suggestions.stopping import load_grammar
from completion_engine.suggestions.syntax import SyntaxWindow

DEFINITIONS = [
    ("python", "class A:\n    ", "def f(self):\n        return 1"),
    ("python", "", "@a\nclass B:\n    pass"),
    ("javascript", "class A {\n  ", "f() {\n    return 1;\n  }"),
    ("typescript", "", "export interface A {\n  b: string;\n}"),
    ("typescriptreact", "", "function A() {\n  return <b>c</b>;\n}"),
    ("go", "package a\n\n", "func f() {\n}"),
    ("rust", "struct A;\n", "impl A {\n    fn b() {}\n}"),
    ("java", "class A {\n    ", "void f() {\n    }"),
    ("c", "", "int f(void) {\n  return 1;\n}"),
    ("cpp", "", "class A {\n  int b;\n}"),
    ("csharp", "class A {\n    ", "void F() {\n    }"),
    ("ruby", "", "def f\n  1\nend"),
    ("php", "<?php\n", "function f() {\n}"),
    ("shellscript", "", "f() {\n  ls\n}"),
    ("lua", "", "function f()\n  return 1\nend"),
    ("css", "", "a {\n  color: red;\n}"),
]
NO_DEFINITIONS = [
    ("python", "", "x = 1"),
    ("python", "def f():\n    ", "return 1"),
    ("python", "def f():\n    x = 1\n    ", "if x:\n        y = 2"),
    ("javascript", "", "if (a) {\n  b();\n}"),
    ("javascript", "", "function f() {\n  b();"),
    ("unknown-language", "", "def f(): pass"),
]


@pytest.mark.parametrize("language", sorted(LANGUAGES))
def test_every_grammar_loads_and_parses_any_text(language: str) -> None:
    window = SyntaxWindow(language, "x (é\n  ", ")")
    assert not window.ends_with_definition("= \ud800 日本\n")
    assert isinstance(window.has_error("x"), bool)


@pytest.mark.parametrize(("language", "before", "text"), DEFINITIONS)
def test_a_definition_that_began_at_the_cursor_is_seen_to_end(language: str, before: str, text: str) -> None:
    assert SyntaxWindow(language, before).ends_with_definition(text)


@pytest.mark.parametrize(("language", "before", "text"), NO_DEFINITIONS)
def test_other_statements_are_no_definitions(language: str, before: str, text: str) -> None:
    assert not SyntaxWindow(language, before).ends_with_definition(text)


def test_a_grammar_is_loaded_once_and_a_language_needs_none() -> None:
    syntax._parser.cache_clear()
    load_grammar("lua")
    load_grammar("unknown-language")
    num_loaded = syntax._parser.cache_info().misses
    assert SyntaxWindow("lua", "").ends_with_definition("function f()\n  return 1\nend\n")
    assert syntax._parser.cache_info().misses == num_loaded == 2


def test_a_text_that_takes_the_parser_too_long_is_unknown_from_then_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(syntax, "_MAX_PARSE_S", 0.0)
    window = SyntaxWindow("shellscript", "")
    hostile = "f() {\n" + "if x: y = (\n" * 2_000
    assert not window.ends_with_definition(hostile)
    monkeypatch.undo()
    assert not window.ends_with_definition("f() {\n  ls\n}")
    assert SyntaxWindow("shellscript", "").ends_with_definition("f() {\n  ls\n}")


def test_only_errors_on_the_cursors_line_count() -> None:
    window = SyntaxWindow("python", "x = = 1\ny = ", " + 2\n")
    assert not window.has_error("f(1)")
    assert window.has_error("f(1")
    assert SyntaxWindow("unknown-language", "").has_error("((") is None


def test_what_a_text_leaves_open_is_an_error_of_the_next_line() -> None:
    window = SyntaxWindow("lua", "f({\n    ", "\n})\n")
    assert not window.has_error("a = { b,")
    assert window.has_error("a = { b,", to_next_line=True)
    assert not window.has_error("a = { b },", to_next_line=True)
