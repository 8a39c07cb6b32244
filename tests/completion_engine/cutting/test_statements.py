"""The end of a suggestion at the end of a line.

Each case: language, document, what the model writes, what is kept of it.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

Shows = Callable[..., tuple[str, str]]
Case = tuple[str, str, str, str, str]

STATEMENTS: list[Case] = [
    ("python", "x = ‸", "1 + 2\ny = 3\n", "1 + 2"),
    ("python", "x = f(‸", "a,\n      b)\ny", "a,\n      b)"),
    ("python", "x = a + \\‸", "\n    b\ny = 1\n", "\n    b"),
    ("python", "x‸", ' = """a\nb"""\ny\n', ' = """a\nb"""'),
    ("python", "@prop‸", "erty\ndef f(self):\n    return 1\n\nx = 1\n", "erty\ndef f(self):\n    return 1"),
    ("python", "# sum of ‸", "all\ntotal = 0\n", "all"),
    ("javascript", "const a = ‸", "b()\n  .c()\n  .d()\nconst e = 1", "b()\n  .c()\n  .d()"),
    ("javascript", "const a = ‸", "b();\nconst c = 1;", "b();"),
    ("javascript", "const a = ‸", "`x\n${f({y: 1})}\n`;\nfoo()", "`x\n${f({y: 1})}\n`;"),
    ("javascript", "const a = b.replace(‸", "/[)/]/g, '');\nfoo()", "/[)/]/g, '');"),
    ("typescript", "const f = (a: number) ‸", "=> {\n  return a;\n};\nlet b;", "=> {\n  return a;\n};"),
    ("typescript", "type A = ‸", "\n  | 'b'\n  | 'c';\nlet d", "\n  | 'b'\n  | 'c';"),
    # A preprocessor directive does not end a statement; a comment does, also after blanks at the cursor.
    ("ini", "[a]\nb = 1\n    ‸", "# c\nd = 2\n", "# c"),
    ("php", "<?php\nif (a) {\n    $b = ‸", "c\n#if\n    ->d();\n", "c"),
    ("go", "x := ‸", "f(a)\ny := 1\n", "f(a)"),
    ("go", "\tx := ‸", 'map[string]int{\n\t\t"a": 1,\n\t}\n\ty', 'map[string]int{\n\t\t"a": 1,\n\t}'),
    ("rust", "let x = ‸", "a\n    .iter()\n    .sum();\nlet y", "a\n    .iter()\n    .sum();"),
    ("rust", "fn f<'a>(x: &'a str) -> ‸", "char {\n    ')'\n}\nfn g", "char {\n    ')'\n}"),
    ("java", "String s = ‸", 'a\n    + "b";\nint c;', 'a\n    + "b";'),
    ("java", "@Over‸", "ride\nvoid f() {\n    g();\n}\nint a;", "ride\nvoid f() {\n    g();\n}"),
    ("c", "for (int i = ‸", "0; i < n; i++) {\n  x += i;\n}\nf();", "0; i < n; i++) {\n  x += i;\n}"),
    ("csharp", "void F‸", "()\n{\n    G();\n}\nint a;", "()\n{\n    G();\n}"),
    ("ruby", "x = ‸", "[1, 2]\ny = 3\n", "[1, 2]"),
    ("ruby", "xs.each ‸", "do |x|\n  p x\nend\nfoo\n", "do |x|\n  p x\nend"),
    ("lua", "local function f‸", "(a)\n  return a\nend\nlocal b\n", "(a)\n  return a\nend"),
    ("shellscript", "x=‸", "$(ls | wc -l)\necho $x\n", "$(ls | wc -l)"),
    ("shellscript", "for f in ‸", "*.txt; do\n  cat $f\ndone\nls\n", "*.txt; do\n  cat $f\ndone"),
    (
        "erlang",
        "        {ok, S} ->\n            f(‸\n        {error, R} ->\n            ok",
        "S);\n        {error, closed} ->\n            ok;\n",
        "S);",
    ),
    ("scala", "def f(a:‸", " Int): Int = ???\ndef g = 1\n", " Int): Int = ???"),
    ("csharp", "x = a ‸", "??\n  b;\nc();\n", "??\n  b;"),
    ("css", "a { ‸ }", "color: red;\n}\nb {}", "color: red;"),
    ("plaintext", "Dear ‸", "reader,\nhello\n", "reader,"),
    ("unknown-language", "x = ‸", "f(1,\n  2)\ny", "f(1,\n  2)"),
]


@pytest.mark.parametrize(("language", "document", "generated", "kept"), STATEMENTS)
def test_a_suggestion_ends_with_its_statement(
    shows: Shows, language: str, document: str, generated: str, kept: str
) -> None:
    assert shows(language, document, generated) == kept.rstrip()
