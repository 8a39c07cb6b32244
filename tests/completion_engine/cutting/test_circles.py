"""A text that turns in a circle ends after its first round, unless the document repeats the same.

Each case: language, document, what the model writes, what the document is once that is accepted.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

Accepted = Callable[[str, str, str], str]
Case = tuple[str, str, str, str]

IN_A_LINE: list[Case] = [
    ("python", "x = [‸", '"👩", ' * 20, 'x = ["👩",'),
    ("javascript", "const a = [‸", "'é', " * 20, "const a = ['é',"),
    ("json", '{"a": [‸', '"", ' * 30, '{"a": ["",'),
    ("shellscript", "sed ‸", "-e 's/foo/bar/g;s/baz/qux/' " * 4, "sed -e 's/foo/bar/g;s/baz/qux/'"),
    (
        "css",
        "a { transition: ‸",
        "opacity 0.2s ease-in-out, " * 4,
        "a { transition: opacity 0.2s ease-in-out,",
    ),
    ("markdown", "The ‸", "very " * 20, "The very"),
    ("plaintext", "‸", "ha ha, he said. " * 8, "ha ha, he said."),
    ("sql", "select ‸", "coalesce(a.first_name, ''), " * 4, "select coalesce(a.first_name, ''),"),
    ("latex", "$‸", "\\alpha_1 + \\beta_2 + " * 5, "$\\alpha_1 + \\beta_2 +"),
    ("go", "x := []string{‸", '"one", "two", "three", ' * 5, 'x := []string{"one", "two", "three",'),
    ("rust", "let a = vec![‸", "Some(value.clone()), " * 5, "let a = vec![Some(value.clone()),"),
    ("php", "<?php $a = [‸", "'→', " * 20, "<?php $a = ['→',"),
    (
        "html",
        "<ul>‸",
        "".join(f'<li><a href="#{n}">Item {n}</a></li>' for n in range(1, 9)),
        '<ul><li><a href="#1">Item 1</a></li>',
    ),
]

IN_LINES: list[Case] = [
    ("markdown", "# Tasks\n\n‸", "- [ ] TODO\n" * 10, "# Tasks\n\n- [ ] TODO"),
    ("markdown", "# Tasks\n\n‸", "".join(f"- TODO {n}\n" for n in range(1, 11)), "# Tasks\n\n- TODO 1"),
    ("makefile", "all:\n\t‸", "sed -i 's/a/b/' file.txt\n\t" * 5, "all:\n\tsed -i 's/a/b/' file.txt"),
    (
        "python",
        "def f():\n    ‸",
        "".join(f"x{n} = g({n})\n    " for n in range(10)),
        "def f():\n    x0 = g(0)",
    ),
    ("javascript", "const a = [\n  ‸\n];\n", "'👩',\n  " * 20, "const a = [\n  '👩',\n];\n"),
    ("yaml", "a:\n  ‸", "- name: b\n    value: c\n  " * 4, "a:\n  - name: b\n    value: c"),
    ("html", "<ul>\n  ‸", "<li>Item</li>\n  " * 6, "<ul>\n  <li>Item</li>"),
    ("c", "int a[] = {\n    ‸", "0x00, 0xff,\n    " * 8, "int a[] = {\n    0x00, 0xff,"),
    ("plaintext", "‸", "Yes.\nNo.\n" * 5, "Yes.\nNo."),
    ("csv", "a,b\n‸", "".join(f"name{n},{n}\n" for n in range(10)), "a,b\nname0,0"),
    ("haskell", "x = 1\n‸\n", "-- two\ny = [" + "(a,b)," * 20, "x = 1\n-- two\n"),
    (
        "graphql",
        "{\n  name\n  ‸\n}\n",
        "".join(f"# They are not part of the {word}!\n  " for word in ("schema", "model", "view", "store")),
        "{\n  name\n  # They are not part of the schema!\n}\n",
    ),
    (
        "c",
        "/*\n * ‸\n */\n",
        "".join(f"It can be used as a {word}.\n * " for word in ("map", "set", "list", "heap", "tree")),
        "/*\n * It can be used as a map.\n */\n",
    ),
]

AS_THE_DOCUMENT: list[Case] = [
    ("python", "# " + "-" * 40 + "\n# ‸", "-" * 70, "# " + "-" * 40 + "\n# " + "-" * 70),
    (
        "c",
        "    " + "0x00, " * 12 + "\n    ‸",
        "0x00, " * 11,
        "    " + "0x00, " * 12 + "\n    " + ("0x00, " * 11).rstrip(),
    ),
    (
        "markdown",
        "- TODO 1\n- TODO 2\n‸",
        "- TODO 3\n- TODO 4\n- TODO 5\n- TODO 6\n- TODO 7\n",
        "- TODO 1\n- TODO 2\n- TODO 3\n- TODO 4\n- TODO 5\n- TODO 6\n- TODO 7",
    ),
    (
        "python",
        "# It is used by the map.\n# It is used by the set.\n‸",
        "".join(f"# It is used by the {word}.\n" for word in ("view", "list", "heap", "tree", "page")),
        "# It is used by the map.\n# It is used by the set.\n"
        + "\n".join(f"# It is used by the {word}." for word in ("view", "list", "heap", "tree", "page")),
    ),
    ("plaintext", "‸", "=" * 80, "=" * 80),
    (
        "csv",
        "n1,1\nn2,2\n‸",
        "".join(f"n{n},{n}\n" for n in range(3, 9)),
        "n1,1\nn2,2\n" + "".join(f"n{n},{n}\n" for n in range(3, 9)).rstrip(),
    ),
    ("json", '{"a": [‸]}', "0, 0, 0, 0, 0, 0, 0, 0", '{"a": [0, 0, 0, 0, 0, 0, 0, 0]}'),
    (
        "html",
        "<tr>‸</tr>",
        "<td></td><td></td><td></td><td></td>",
        "<tr><td></td><td></td><td></td><td></td></tr>",
    ),
    (
        "xml",
        "<p d='‸'/>",
        "".join(f"M{n}.25 {n}.75 L{n}.50 {n}.10 " for n in range(1, 9)) + "Z",
        "<p d='" + "".join(f"M{n}.25 {n}.75 L{n}.50 {n}.10 " for n in range(1, 9)) + "Z'/>",
    ),
    ("rust", "let a = [‸];", "1, 2, 1, 2, 1, 2, 1, 2", "let a = [1, 2, 1, 2, 1, 2, 1, 2];"),
]


@pytest.mark.parametrize(("language", "document", "generated", "after"), IN_A_LINE + IN_LINES)
def test_a_circle_ends_after_its_first_round(
    accepted: Accepted, language: str, document: str, generated: str, after: str
) -> None:
    assert accepted(language, document, generated) == after


@pytest.mark.parametrize(("language", "document", "generated", "after"), AS_THE_DOCUMENT)
def test_what_the_document_repeats_may_be_repeated(
    accepted: Accepted, language: str, document: str, generated: str, after: str
) -> None:
    assert accepted(language, document, generated) == after
