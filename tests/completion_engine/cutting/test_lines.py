"""The end of a suggestion before text that is there already, or that it wrote already.

Each case: language, document, what the model writes, what is kept of it, by which rule.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

Stops = Callable[..., tuple[str, str]]
Case = tuple[str, str, str, str, str]

ENTRY = '    author = "Ann Smith",\n    title = "A Longer Name",\n    journal = "Second",\n'
BODY = "    first = a + 1\n    second = a + 2\n    return first * second\n"

IN_A_LINE: list[Case] = [
    ("python", "x = ‸name", "names\n", "names", "single-line"),
    ("python", "x = ‸ + 1", "a\ny = 2\n", "a", "single-line"),
    ("python", "f(‸value)", "name, value)\n", "name, value)", "repeats-document"),
    ("python", "f(‸, b)", "a)\n", "a", "does-not-fit"),
    ("python", "f(‸)", "a, b)\ng(c)\n", "a, b)", "end-of-statement"),
    ("python", "f(‸)", "a))\n", "a)", "does-not-fit"),
    ("python", 'print("‸")', 'hello")\nfoo\n', 'hello")', "end-of-statement"),
    ("python", "x = [f(‸]", "a)\n", "a)", "end-of-statement"),
    ("python", "x = f(‸\n    b)", "a,\n    b)\n", "a,", "end-of-statement"),
    ("javascript", "f(a‸\n)", ", b)\n", ", b", "does-not-fit"),
    ("go", "func (a A‸\n\tb int,\n) error {", ") F(\n\tb", ") F(", "end-of-statement"),
    ("python", "if len(a‸\n    b\n):", ") > 1 and any(\n    b", ") > 1 and any(", "end-of-statement"),
    ("python", "if len(a‸\n    b\n):", ") > f(b):\n", "", "does-not-fit"),
    ("javascript", "const {‸} = a;", "b, c} = a;\nfoo()", "b, c} = a;", "repeats-document"),
    ("c", "if (‸) {", "x) {\n  f();", "x) {", "repeats-document"),
    ("java", "f(‸);", "a);\ng();", "a);", "end-of-statement"),
]


REPEATS: list[Case] = [
    (
        "python",
        "class A:\n    ‸\n\n    @property\n    def b(self): ...\n",
        "@property\n    def a(self): ...\n\n    @property\n    def b(self): ...\n",
        "@property\n    def a(self): ...",
        "end-of-statement",
    ),
    (
        "rust",
        "‸\n#[test]\nfn b() {}\n",
        "#[test]\nfn b() {}\n",
        "",
        "repeats-document",
    ),
    (
        "python",
        "def f():\n    ‸\n    return total\n",
        "x = 1\n    return total\n    y",
        "x = 1",
        "repeats-document",
    ),
    (
        "python",
        "def f():\n    ‸\n    return tot\n",
        "x = 1\n    return tot\n    y",
        "x = 1",
        "repeats-document",
    ),
    ("python", "x = [\n    ‸\n    1,\n    2,\n]", "0,\n    1,\n    2,\n]", "0,", "repeats-document"),
    (
        "ocaml",
        "let f state () =\n  ‸\n   state.output_newline, state.output_spaces);;\n",
        "(state.output, state.output_newline, state.output_spaces);;\n",
        "(state.output,",
        "repeats-document",
    ),
    (
        "git-commit",
        "Fix the key for ‸\n\nThe key was built from the path alone, so\n",
        "empty paths. The key was built from the path alone, so\n",
        "empty paths.",
        "repeats-document",
    ),
    (
        "python",
        "‸\ncompute(first, second, third)\n",
        "x = compute(first, second, third)\n",
        "x = compute(first, second, third)\n",
        "",
    ),
    ("python", "x = [\n    ‸\n    0,\n]", "0,\n    1,\n", "0,\n    1,\n", ""),
    (
        "python",
        "‸\nassert_equal(first, second)\n",
        "a = 1\nassert_equal(first, second)",
        "a = 1\n",
        "repeats-document",
    ),
    (
        "python",
        "‸\nassert_equal(first, second)\n",
        "a = 1\nassert_equal(first, third)",
        "a = 1\nassert_equal(first, third)",
        "",
    ),
    (
        "python",
        "‸\n# ----------------------------\n",
        "# ----------------------------\n",
        "# ----------------------------\n",
        "",
    ),
    ("bibtex", f"‸\n\n@Article{{b,\n{ENTRY}}}\n", f"@Book{{b,\n{ENTRY}", "", "repeats-document"),
    ("bibtex", f"@Book{{‸\n\n@Article{{b,\n{ENTRY}}}\n", f"b,\n{ENTRY}", "b,", "repeats-document"),
    ("python", f"‸\n\n\ndef f(a):\n{BODY}", f"def g(a):\n{BODY}", "", "repeats-document"),
    ("python", "x = ‸", "[\n" + "    foo(1),\n" * 5, "[\n    foo(1),", "repeats-itself"),
    (
        "python",
        "x = ‸",
        "[\n" + "    foo(1),\n    bar(2),\n" * 5,
        "[\n    foo(1),\n    bar(2),",
        "repeats-itself",
    ),
    ("python", "x = ‸", "[" + "True, False, " * 10, "[True, False, ", "repeats-itself"),
    ("python", "# ‸", "-" * 100, "-" * 100, ""),
    ("javascript", "if (a)‸\n{\n}", "\n{\n  b();", "", "end-of-statement"),
]


@pytest.mark.parametrize(("language", "document", "generated", "kept", "rule"), IN_A_LINE)
def test_a_suggestion_respects_the_rest_of_the_line(
    stops: Stops, language: str, document: str, generated: str, kept: str, rule: str
) -> None:
    assert stops(language, document, generated) == (kept, rule)


@pytest.mark.parametrize(("language", "document", "generated", "kept", "rule"), REPEATS)
def test_a_suggestion_ends_before_it_repeats(
    stops: Stops, language: str, document: str, generated: str, kept: str, rule: str
) -> None:
    assert stops(language, document, generated) == (kept, rule)


SETTINGS: list[Case] = [
    ("never", "if x:‸", "\n    a()\n", "", "single-line"),
    ("never", "x = ‸", "f(\n    a)\n", "f(", "single-line"),
    ("always", "x = ‸ + 1", "[\n    1]\ny = 2\n\nz = 3\n", "[\n    1]\ny = 2", "end-of-paragraph"),
    ("always", "    x = 1‸", "\n    y = 2\nz = 3\n", "\n    y = 2", "end-of-block"),
]


@pytest.mark.parametrize(("multiline", "document", "generated", "kept", "rule"), SETTINGS)
def test_the_users_multiline_setting_holds(
    stops: Stops, multiline: str, document: str, generated: str, kept: str, rule: str
) -> None:
    assert stops("python", document, generated, multiline=multiline) == (kept, rule)
