"""The end of a suggestion at the end of a line.

Each case: language, document, what the model writes, what is kept of it, by which rule.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

Stops = Callable[..., tuple[str, str]]
Case = tuple[str, str, str, str, str]

STATEMENTS: list[Case] = [
    ("python", "x = ‸", "1 + 2\ny = 3\n", "1 + 2", "end-of-statement"),
    ("python", "x = f(‸", "a,\n      b)\ny", "a,\n      b)", "end-of-statement"),
    ("python", "x = a + \\‸", "\n    b\ny = 1\n", "\n    b", "end-of-statement"),
    ("python", "x‸", ' = """a\nb"""\ny\n', ' = """a\nb"""', "end-of-statement"),
    (
        "python",
        "@prop‸",
        "erty\ndef f(self):\n    return 1\n\nx = 1\n",
        "erty\ndef f(self):\n    return 1",
        "end-of-block",
    ),
    ("python", "# sum of ‸", "all\ntotal = 0\n", "all", "end-of-statement"),
    (
        "javascript",
        "const a = ‸",
        "b()\n  .c()\n  .d()\nconst e = 1",
        "b()\n  .c()\n  .d()",
        "end-of-statement",
    ),
    ("javascript", "const a = ‸", "b();\nconst c = 1;", "b();", "end-of-statement"),
    ("javascript", "const a = ‸", "`x\n${f({y: 1})}\n`;\nfoo()", "`x\n${f({y: 1})}\n`;", "end-of-statement"),
    ("javascript", "const a = b.replace(‸", "/[)/]/g, '');\nfoo()", "/[)/]/g, '');", "end-of-statement"),
    (
        "typescript",
        "const f = (a: number) ‸",
        "=> {\n  return a;\n};\nlet b;",
        "=> {\n  return a;\n};",
        "end-of-statement",
    ),
    ("typescript", "type A = ‸", "\n  | 'b'\n  | 'c';\nlet d", "\n  | 'b'\n  | 'c';", "end-of-statement"),
    # A preprocessor directive does not end a statement; a comment does, also after blanks at the cursor.
    (
        "swift",
        "    a = ‸",
        "b\n#if DEBUG\n        .c()\n#endif\n        .d()\n    e()\n",
        "b\n#if DEBUG\n        .c()\n#endif\n        .d()",
        "end-of-statement",
    ),
    ("ini", "[a]\nb = 1\n    ‸", "# c\nd = 2\n", "# c", "end-of-block"),
    ("php", "<?php\nif (a) {\n    $b = ‸", "c\n#if\n    ->d();\n", "c", "end-of-statement"),
    ("go", "x := ‸", "f(a)\ny := 1\n", "f(a)", "end-of-statement"),
    (
        "go",
        "\tx := ‸",
        'map[string]int{\n\t\t"a": 1,\n\t}\n\ty',
        'map[string]int{\n\t\t"a": 1,\n\t}',
        "end-of-statement",
    ),
    (
        "rust",
        "let x = ‸",
        "a\n    .iter()\n    .sum();\nlet y",
        "a\n    .iter()\n    .sum();",
        "end-of-statement",
    ),
    (
        "rust",
        "fn f<'a>(x: &'a str) -> ‸",
        "char {\n    ')'\n}\nfn g",
        "char {\n    ')'\n}",
        "end-of-statement",
    ),
    ("java", "String s = ‸", 'a\n    + "b";\nint c;', 'a\n    + "b";', "end-of-statement"),
    (
        "java",
        "@Over‸",
        "ride\nvoid f() {\n    g();\n}\nint a;",
        "ride\nvoid f() {\n    g();\n}",
        "end-of-statement",
    ),
    (
        "c",
        "for (int i = ‸",
        "0; i < n; i++) {\n  x += i;\n}\nf();",
        "0; i < n; i++) {\n  x += i;\n}",
        "end-of-statement",
    ),
    ("csharp", "void F‸", "()\n{\n    G();\n}\nint a;", "()\n{\n    G();\n}", "end-of-statement"),
    ("ruby", "x = ‸", "[1, 2]\ny = 3\n", "[1, 2]", "end-of-statement"),
    ("ruby", "xs.each ‸", "do |x|\n  p x\nend\nfoo\n", "do |x|\n  p x\nend", "end-of-block"),
    ("lua", "local function f‸", "(a)\n  return a\nend\nlocal b\n", "(a)\n  return a\nend", "end-of-block"),
    ("shellscript", "x=‸", "$(ls | wc -l)\necho $x\n", "$(ls | wc -l)", "end-of-statement"),
    (
        "shellscript",
        "for f in ‸",
        "*.txt; do\n  cat $f\ndone\nls\n",
        "*.txt; do\n  cat $f\ndone",
        "end-of-block",
    ),
    (
        "erlang",
        "        {ok, S} ->\n            f(‸\n        {error, R} ->\n            ok",
        "S);\n        {error, closed} ->\n            ok;\n",
        "S);",
        "end-of-block",
    ),
    ("scala", "def f(a:‸", " Int): Int = ???\ndef g = 1\n", " Int): Int = ???", "end-of-statement"),
    ("csharp", "x = a ‸", "??\n  b;\nc();\n", "??\n  b;", "end-of-statement"),
    ("json", '{\n  "a": ‸\n}', '[1, 2],\n  "b": 3', "[1, 2],", "end-of-statement"),
    ("css", "a { ‸ }", "color: red;\n}\nb {}", "color: red;", "end-of-statement"),
    ("plaintext", "Dear ‸", "reader,\nhello\n", "reader,", "end-of-statement"),
    ("unknown-language", "x = ‸", "f(1,\n  2)\ny", "f(1,\n  2)", "end-of-statement"),
]


@pytest.mark.parametrize(("language", "document", "generated", "kept", "rule"), STATEMENTS)
def test_a_suggestion_ends_with_its_statement(
    stops: Stops, language: str, document: str, generated: str, kept: str, rule: str
) -> None:
    assert stops(language, document, generated) == (kept, rule)
