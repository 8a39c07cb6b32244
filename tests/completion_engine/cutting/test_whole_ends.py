"""A suggestion begins the block below it, and ends where the document is as correct as before.

Each case: language, document, what the model writes, what the document is once that is accepted.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from completion_engine.cutting.cutter import Cutter
from completion_engine.text_window import CursorContext

Accepted = Callable[[str, str, str], str]
Case = tuple[str, str, str, str]

YAML_LIST = "\n  - Boston\n  - Detroit\n"
BEGINS_NO_BLOCK: list[Case] = [
    ("yaml", f"ameri‸{YAML_LIST}", "ca: [Boston, Detroit]\n", f"ameri{YAML_LIST}"),
    ("yaml", f"ameri‸{YAML_LIST}", "can:\n", f"american:{YAML_LIST}"),
    ("typescript", "@V‸\n  name: 'a',\n})\n", "iewChild('form')\n", "@V\n  name: 'a',\n})\n"),
    ("typescript", "@V‸\n  name: 'a',\n})\n", "iew({\n", "@View({\n  name: 'a',\n})\n"),
    ("csharp", "switch (‸\n\n  case A:\n    f();\n}\n", "a)\n", "switch (\n\n  case A:\n    f();\n}\n"),
    ("csharp", "switch (‸\n\n  case A:\n    f();\n}\n", "a) {\n", "switch (a) {\n\n  case A:\n    f();\n}\n"),
    ("python", "while ‸\n    run()\n", "is_on\n", "while is_on\n    run()\n"),
    ("python", "x = ‸\n    run()\n", "1\n", "x = \n    run()\n"),
    ("c", "  if (‸\n    return;\n", "a < 0)\n", "  if (a < 0)\n    return;\n"),
    ("c", "  list_for_each(‸\n    f(a);\n", "a, b)\n", "  list_for_each(a, b)\n    f(a);\n"),
    ("openscad", "move(‸\n  cube(1);\n", "1)\n", "move(1)\n  cube(1);\n"),
    ("javascript", "const a = b‸\n  .map(c)\n", ".d()\n", "const a = b.d()\n  .map(c)\n"),
    (
        "yaml",
        "  - uses: ‸\n    with:\n      a: b\n",
        "checkout@v4\n",
        "  - uses: checkout@v4\n    with:\n      a: b\n",
    ),
    ("yaml", "  - a‸\n      - b\n", ": c\n", "  - a\n      - b\n"),
    ("gherkin", "  Scenario: ‸\n    Given b\n", "A\n", "  Scenario: A\n    Given b\n"),
    ("haskell", "f = g ‸\n  h\n", "i\n", "f = g i\n  h\n"),
    ("sass", ".a ‸\n  color: red\n", ".b\n", ".a .b\n  color: red\n"),
    (
        "solidity",
        "  function f(‸)\n    public\n    {\n",
        "int a\n",
        "  function f(int a)\n    public\n    {\n",
    ),
    ("properties", "! line‸\n  more = 1\n", " two\n", "! line two\n  more = 1\n"),
]
COPY = "two = second(1)\nthree = third(1)\nfour = fourth(1)\n"
COPIES: list[Case] = [
    ("python", f"‸\none = 1\n{COPY}", f"zero = 0\n{COPY}", f"zero = 0\none = 1\n{COPY}"),
    ("python", f"‸\n\n{COPY}", f"one = 1\n{COPY}", f"one = 1\n\n{COPY}"),
]
FUNCTION = "function wait(seconds) {\n    return 1;\n}"
BROKEN_ENDS: list[Case] = [
    ("java", "// a class\n‸\n", f"// a function\n{FUNCTION}", "// a class\n// a function\n"),
    (
        "javascript",
        "// a class\n‸\n",
        f"// a function\n{FUNCTION}",
        f"// a class\n// a function\n{FUNCTION}\n",
    ),
    ("elixir", "‸\n", "a = 1\nb = [\n  {1, 2},\n  {3", "a = 1\n"),
    ("yaml", "‸\n", "a: b\nrun: |\n  make\n  make all", "a: b\nrun: |\n  make\n  make all\n"),
]
STYLE = "<style>\n{}\n  color: red;\n}}\n</style>\n"
PARTS: list[Case] = [
    ("vue", STYLE.format("‸"), "/* a */\n</style>\n", STYLE.format("/* a */")),
    ("html", STYLE.format("‸"), ".a {\n", STYLE.format(".a {")),
]
ELM = "mesh = [ ( Vertex 0 ({})\n         , Vertex 1 (vec 1)\n         )\n       ]\n"
ALIGNED: list[Case] = [
    ("elm", ELM.format("‸").replace("‸)", "‸"), "vec 0)\n", ELM.format("vec 0")),
]


@pytest.mark.parametrize(
    ("language", "document", "generated", "after"),
    [*BEGINS_NO_BLOCK, *COPIES, *BROKEN_ENDS, *PARTS, *ALIGNED],
)
def test_the_document_is_as_correct_as_before(
    accepted: Accepted, language: str, document: str, generated: str, after: str
) -> None:
    assert accepted(language, document, generated) == after


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
def test_what_is_left_open_is_known(language: str, document: str, shown: str, is_open: bool) -> None:
    prefix, _, suffix = document.partition("‸")
    assert Cutter(CursorContext(prefix, suffix, language)).leaves_open(shown, 0) is is_open
