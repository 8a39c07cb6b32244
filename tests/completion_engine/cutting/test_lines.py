"""The end of a suggestion before text that is there already, or that it wrote already.

Each case: language, document, what the model writes, what is kept of it.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

Shows = Callable[..., tuple[str, str]]
Case = tuple[str, str, str, str, str]

ENTRY = '    author = "Ann Smith",\n    title = "A Longer Name",\n    journal = "Second",\n'
BODY = "    first = a + 1\n    second = a + 2\n    return first * second\n"

IN_A_LINE: list[Case] = [
    ("python", "x = ‸ + 1", "a\ny = 2\n", "a"),
    ("python", "f(‸value)", "name, value)\n", "name, value)"),
    ("python", "f(‸, b)", "a)\n", "a"),
    ("python", "f(‸)", "a, b)\ng(c)\n", "a, b)"),
    ("python", "f(‸)", "a))\n", "a)"),
    ("python", 'print("‸")', 'hello")\nfoo\n', 'hello")'),
    ("python", "x = [f(‸]", "a)\n", "a)"),
    ("python", "x = f(‸\n    b)", "a,\n    b)\n", "a,"),
    ("javascript", "f(a‸\n)", ", b)\n", ", b"),
    ("go", "func (a A‸\n\tb int,\n) error {", ") F(\n\tb", ") F("),
    ("python", "if len(a‸\n    b\n):", ") > 1 and any(\n    b", ") > 1 and any("),
    ("python", "if len(a‸\n    b\n):", ") > f(b):\n", ""),
    ("javascript", "const {‸} = a;", "b, c} = a;\nfoo()", "b, c"),
    ("c", "if (‸) {", "x) {\n  f();", "x"),
    ("java", "f(‸);", "a);\ng();", "a);"),
]


REPEATS: list[Case] = [
    (
        "python",
        "class A:\n    ‸\n\n    @property\n    def b(self): ...\n",
        "@property\n    def a(self): ...\n\n    @property\n    def b(self): ...\n",
        "@property\n    def a(self): ...",
    ),
    ("rust", "‸\n#[test]\nfn b() {}\n", "#[test]\nfn b() {}\n", ""),
    ("python", "def f():\n    ‸\n    return total\n", "x = 1\n    return total\n    y", "x = 1"),
    ("python", "def f():\n    ‸\n    return tot\n", "x = 1\n    return tot\n    y", "x = 1"),
    ("python", "x = [\n    ‸\n    1,\n    2,\n]", "0,\n    1,\n    2,\n]", "0,"),
    (
        "ocaml",
        "let f state () =\n  ‸\n   state.output_newline, state.output_spaces);;\n",
        "(state.output, state.output_newline, state.output_spaces);;\n",
        "(state.output,",
    ),
    (
        "git-commit",
        "Fix the key for ‸\n\nThe key was built from the path alone, so\n",
        "empty paths. The key was built from the path alone, so\n",
        "empty paths.",
    ),
    (
        "python",
        "‸\ncompute(first, second, third)\n",
        "x = compute(first, second, third)\n",
        "x = compute(first, second, third)\n",
    ),
    ("python", "x = [\n    ‸\n    0,\n]", "0,\n    1,\n", "0,\n    1,\n"),
    ("python", "‸\nassert_equal(first, second)\n", "a = 1\nassert_equal(first, second)", "a = 1\n"),
    (
        "python",
        "‸\nassert_equal(first, second)\n",
        "a = 1\nassert_equal(first, third)",
        "a = 1\nassert_equal(first, third)",
    ),
    (
        "python",
        "‸\n# ----------------------------\n",
        "# ----------------------------\n",
        "# ----------------------------\n",
    ),
    ("bibtex", f"@Book{{‸\n\n@Article{{b,\n{ENTRY}}}\n", f"b,\n{ENTRY}", "b,"),
    ("python", f"‸\n\n\ndef f(a):\n{BODY}", f"def g(a):\n{BODY}", ""),
    ("python", "x = ‸", "[\n" + "    foo(1),\n" * 5, "[\n    foo(1),"),
    ("python", "x = ‸", "[\n" + "    foo(1),\n    bar(2),\n" * 5, "[\n    foo(1),\n    bar(2),"),
    ("python", "x = ‸", "[" + "True, False, " * 10, "[True, False, "),
    ("python", "# ‸", "-" * 100, "-" * 100),
    ("javascript", "if (a)‸\n{\n}", "\n{\n  b();", ""),
]


@pytest.mark.parametrize(("language", "document", "generated", "kept"), IN_A_LINE)
def test_a_suggestion_respects_the_rest_of_the_line(
    shows: Shows, language: str, document: str, generated: str, kept: str
) -> None:
    assert shows(language, document, generated) == kept.rstrip()


@pytest.mark.parametrize(("language", "document", "generated", "kept"), REPEATS)
def test_a_suggestion_ends_before_it_repeats(
    shows: Shows, language: str, document: str, generated: str, kept: str
) -> None:
    assert shows(language, document, generated) == kept.rstrip()


SETTINGS: list[Case] = [
    ("never", "if x:‸", "\n    a()\n", ""),
    ("never", "x = ‸", "f(\n    a)\n", "f("),
    ("always", "x = ‸ + 1", "[\n    1]\ny = 2\n\nz = 3\n", "[\n    1]\ny = 2"),
    ("always", "    x = 1‸", "\n    y = 2\nz = 3\n", "\n    y = 2"),
]


@pytest.mark.parametrize(("multiline", "document", "generated", "kept"), SETTINGS)
def test_the_users_multiline_setting_holds(
    shows: Shows, multiline: str, document: str, generated: str, kept: str
) -> None:
    assert shows("python", document, generated, multiline=multiline) == kept.rstrip()
