"""The end of a suggestion after an opening line or on a blank line.

Each case: language, document, what the model writes, what is kept of it.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

Shows = Callable[..., tuple[str, str]]
Case = tuple[str, str, str, str, str]

BLOCKS: list[Case] = [
    ("python", "def f(x):‸", "\n    y = x\n\n    return y\n\ndef g(): pass", "\n    y = x\n\n    return y"),
    ("python", "if x:\n    ‸", "a()\nelse:\n    b()\nc()\n", "a()\nelse:\n    b()"),
    (
        "python",
        "try:\n    ‸",
        "a()\nexcept E:\n    b()\nfinally:\n    c()\nd()\n",
        "a()\nexcept E:\n    b()\nfinally:\n    c()",
    ),
    ("python", "def f():\n    x = 1\n    ‸\n", "y = 2\n    z = 3\n\n    w = 4\n", "y = 2\n    z = 3"),
    (
        "python",
        "class A:\n    ‸\n",
        "def f(self):\n        pass\n\n    def g(self):\n",
        "def f(self):\n        pass",
    ),
    ("python", "import os\n\n\n‸", "def f():\n    return 1\n\n\ndef g():\n", "def f():\n    return 1"),
    ("python", 'def f():\n    """‸\n    """\n', 'Add.\n\n    More.\n    """\n', "Add."),
    (
        "python",
        'def f():\n    """Add.\n\n    ‸\n    """\n',
        'More\n    of it.\n    """\n    return 1',
        "More\n    of it.",
    ),
    ("javascript", "if (a) {‸", "\n  b();\n}\nc();", "\n  b();\n}"),
    ("javascript", "if (a) {‸", "\n  b();\n} else {\n  c();\n}\nd();", "\n  b();\n} else {\n  c();\n}"),
    (
        "python",
        "def f(a):\n    ‸\n        g(i)\n",
        "for i in a:\n        g(i)\n    return a\n",
        "for i in a:",
    ),
    (
        "python",
        "def f(a):\n    x = 0\n‸\n            g(i)\n",
        "    for b in a:\n        for i in b:\n            g(i)\n",
        "    for b in a:\n        for i in b:",
    ),
    (
        "javascript",
        "function f(a) {\n  ‸\n    g(b);\n  }\n}\n",
        "for (const b of a) {\n    g(b);\n  }\n}\n",
        "for (const b of a) {",
    ),
    ("python", "if x:\n    ‸\n    c()\n", "if y:\n        a()\n    b()\n", "if y:\n        a()\n    b()\n"),
    (
        "javascript",
        "function f(a) {\n  if (a) {\n    b();\n  ‸\n    c();\n  }\n}\n",
        "} else if (d) {\n    c();\n  }\n",
        "} else if (d) {",
    ),
    ("javascript", "f(() => {\n  a();\n‸\n});\n", "});\ng(() => {\n  b();\n});\n", ""),
    ("javascript", "if (a) {‸\n}", "\n  b();\n}\nc();", "\n  b();"),
    ("javascript", "function f() {\n  if (a) {‸\n}", "\n    b();\n  }\n}\n", "\n    b();\n  }"),
    (
        "javascript",
        "class A {\n  ‸\n}",
        "f() {\n    return 1;\n  }\n\n  g() {\n",
        "f() {\n    return 1;\n  }",
    ),
    ("typescript", "interface A {\n  ‸\n}\n", "b: string;\n  c?: number;\n}\n", "b: string;\n  c?: number;"),
    ("go", "func f() {\n\t‸\n}\n", "x := 1\n\treturn x\n}\n\nfunc g() {", "x := 1\n\treturn x"),
    ("rust", "fn f() {\n    ‸\n", "g();\n}\n\nfn h() {}\n", "g();\n}"),
    (
        "java",
        "class A {\n    ‸\n}",
        "int f() {\n        return 1;\n    }\n\n    int g",
        "int f() {\n        return 1;\n    }",
    ),
    (
        "c",
        "switch (x) {\n  case 1:‸\n}",
        "\n    f();\n    break;\n  case 2:\n    g();\n",
        "\n    f();\n    break;\n  case 2:\n    g();\n",
    ),
    ("ruby", "def f\n  ‸\nend\n", "x = 1\nend\n", "x = 1"),
    ("ruby", "def f\n  ‸\n", "x = 1\nend\nfoo\n", "x = 1\nend"),
    ("ruby", "if a\n  ‸", "b\nelse\n  c\nend\nd\n", "b\nelse\n  c\nend"),
    ("lua", "if a then\n  ‸\n", "b()\nelseif c then\n  d()\nend\ne()\n", "b()\nelseif c then\n  d()\nend"),
    ("html", "<ul>\n  ‸\n</ul>\n", "<li>a</li>\n  <li>b</li>\n</ul>\n", "<li>a</li>\n  <li>b</li>"),
    ("html", "<ul>\n  ‸\n", "<li>a</li>\n</ul>\n<p>b</p>\n", "<li>a</li>\n</ul>"),
    ("c", "int f(int a,\n      int b) {\n    g();\n    ‸\n}\n\nint h(void) {\n", "}\n", ""),
    (
        "c",
        "int f(int a,\n      int b) {\n    if (a) {\n        ‸\n    h();\n}\n",
        "g();\n    }\n",
        "g();\n    }",
    ),
    ("css", "a {\n  ‸\n}\n", "color: red;\n}\n\nb {\n", "color: red;"),
    ("css", "a {\n}\n\n‸", "b {\n  color: red;\n}\n\nc {\n", "b {\n  color: red;\n}"),
    ("yaml", "a:\n  ‸\n", "b: 1\n  c: 2\nd: 3\n", "b: 1\n  c: 2"),
    ("markdown", "# A\n\n‸", "One\ntwo.\n\nThree.\n", "One\ntwo."),
]


@pytest.mark.parametrize(("language", "document", "generated", "kept"), BLOCKS)
def test_a_suggestion_ends_with_its_block(
    shows: Shows, language: str, document: str, generated: str, kept: str
) -> None:
    assert shows(language, document, generated) == kept.rstrip()
