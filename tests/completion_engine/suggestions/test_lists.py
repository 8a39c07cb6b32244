"""A suggestion that ends with an item of a list has the comma before the next item, on the line below.

Each case: language, document, what the model writes, what the document is once that is accepted.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from completion_engine.suggestions.fitting import polish
from completion_engine.suggestions.stopping import StopRules
from completion_engine.text_window import CursorContext

Accepted = Callable[[str, str, str], str]
Case = tuple[str, str, str, str]

ITEMS: list[Case] = [
    (
        "kotlin",
        "class A(\n  ‸\n  val c: C,\n)\n",
        "val a: A,\n  val b: List<B>\n)\n",
        "class A(\n  val a: A,\n  val b: List<B>,\n  val c: C,\n)\n",
    ),
    ("kotlin", "f(\n  a,\n  ‸\n  c\n)\n", "b\n)\n", "f(\n  a,\n  b,\n  c\n)\n"),
    (
        "csharp",
        "enum E { A, ‸\n         D,\n         E };\n",
        "B, C };\n",
        "enum E { A, B, C,\n         D,\n         E };\n",
    ),
    ("json", '{\n  ‸\n  "b": 2\n}\n', '"a": 1\n}\n', '{\n  "a": 1,\n  "b": 2\n}\n'),
    ("typescript", "x = [\n  ‸\n  'b',\n];\n", "'a'\n];\n", "x = [\n  'a',\n  'b',\n];\n"),
]
NO_ITEMS: list[Case] = [
    ("kotlin", "f(\n  a,\n  ‸\n)\n", "b\n)\n", "f(\n  a,\n  b\n)\n"),
    ("python", "f(\n    a,\n    ‸\n    'c',\n)\n", "'b'\n)\n", "f(\n    a,\n    'b'\n    'c',\n)\n"),
    ("python", "f(\n    a,\n    ‸\n    for a in b\n)\n", "c\n)\n", "f(\n    a,\n    c\n    for a in b\n)\n"),
    ("python", "x = [\n    ‸\n    + b,\n]\n", "a\n]\n", "x = [\n    a\n    + b,\n]\n"),
    ("javascript", "{\n  ‸\n  f(a,\n    b)\n}\n", "x = 1\n", "{\n  x = 1\n  f(a,\n    b)\n}\n"),
    ("javascript", "{\n  ‸\n  let a = 1,\n    b\n}\n", "f()\n", "{\n  f()\n  let a = 1,\n    b\n}\n"),
    (
        "rust",
        "match a {\n  ‸\n  C => d,\n}\n",
        "A => {\n    b\n  }\n}\n",
        "match a {\n  A => {\n    b\n  }\n  C => d,\n}\n",
    ),
    ("shellscript", "x=(\n  ‸\n  b\n)\n", "a\n)\n", "x=(\n  a\n  b\n)\n"),
]


@pytest.mark.parametrize(("language", "document", "written", "shown"), ITEMS + NO_ITEMS)
def test_an_item_of_a_list_that_goes_on_ends_with_a_comma(
    accepted: Accepted, language: str, document: str, written: str, shown: str
) -> None:
    assert accepted(language, document, written) == shown


@pytest.mark.parametrize(("is_ended", "shown"), [(True, "val a: List,"), (False, "val a: List")])
def test_an_item_that_a_limit_cut_may_go_on(*, is_ended: bool, shown: str) -> None:
    rules = StopRules(CursorContext("class A(\n  ", "\n  val b: B,\n)\n", "kotlin"))
    assert polish(rules, "val a: List", is_ended=is_ended).text == shown
