"""Blocks of languages within others end as they do alone, and makefiles keep the tabs of their recipes.

Each case: language, document, what the model writes, what the document is once that is accepted.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

Accepted = Callable[[str, str, str], str]
Case = tuple[str, str, str, str]

BLOCKS: list[Case] = [
    (
        "html",
        "<script>\nitems.forEach((item) => {‸});\n</script>\n",
        "\n  console.log(item);\n});\n",
        "<script>\nitems.forEach((item) => {\n  console.log(item);\n});\n</script>\n",
    ),
    (
        "html",
        "<script>\nitems.forEach((item) => {‸})\n</script>\n",
        "\n  console.log(item);\n})\n",
        "<script>\nitems.forEach((item) => {\n  console.log(item);\n})\n</script>\n",
    ),
    (
        "html",
        "<style>\n.a {‸}\n</style>\n",
        "\n  color: red;\n}\n",
        "<style>\n.a {\n  color: red;\n}\n</style>\n",
    ),
    (
        "html",
        "<script>\nfunction f() {\n  ‸\n}\n</script>\n",
        "const a = 1;\n  return a;\n}\n</script>\n",
        "<script>\nfunction f() {\n  const a = 1;\n  return a;\n}\n</script>\n",
    ),
    (
        "vue",
        "<script setup>\nfunction f() {‸}\n</script>\n",
        "\n  return 1\n}\n",
        "<script setup>\nfunction f() {\n  return 1\n}\n</script>\n",
    ),
    (
        "svelte",
        "<script>\n  onMount(() => {‸});\n</script>\n",
        "\n    load();\n  });\n",
        "<script>\n  onMount(() => {\n    load();\n  });\n</script>\n",
    ),
    (
        "svelte",
        "<style>\n  p {‸}\n</style>\n",
        "\n    color: red;\n  }\n",
        "<style>\n  p {\n    color: red;\n  }\n</style>\n",
    ),
    (
        "php",
        "<p>it's</p>\n<?php\nfunction f() {‸}\n?>\n",
        "\n    return 1;\n}\n",
        "<p>it's</p>\n<?php\nfunction f() {\n    return 1;\n}\n?>\n",
    ),
    (
        "markdown",
        "It's\n\n```js\nfunction f() {‸}\n```\n",
        "\n  return 1;\n}\n",
        "It's\n\n```js\nfunction f() {\n  return 1;\n}\n```\n",
    ),
    (
        "markdown",
        "```python\ndef f():‸\n```\n",
        "\n    return 1\n\ndef g():\n",
        "```python\ndef f():\n    return 1\n```\n",
    ),
    (
        "yaml",
        "a:\n  run: |\n    if a; then‸\n",
        "\n      b\n    fi\n    c\n",
        "a:\n  run: |\n    if a; then\n      b\n    fi\n",
    ),
    (
        "erb",
        "<% xs.each do |x| %>\n  ‸\n<% end %>\n",
        "<p><%= x %></p>\n<% end %>\n",
        "<% xs.each do |x| %>\n  <p><%= x %></p>\n<% end %>\n",
    ),
    (
        "jinja",
        "<script>\nlet a = {{ b }};\nf(() => {‸});\n</script>",
        "\n  g();\n});\n",
        "<script>\nlet a = {{ b }};\nf(() => {\n  g();\n});\n</script>",
    ),
    (
        "astro",
        "---\nfunction f() {‸}\n---\n",
        "\n  return 1;\n}\n",
        "---\nfunction f() {\n  return 1;\n}\n---\n",
    ),
    (
        "ejs",
        "<script>\nf(() => {‸});\n</script>",
        "\n  g();\n});\n",
        "<script>\nf(() => {\n  g();\n});\n</script>",
    ),
    (
        "asciidoc",
        "[source,go]\n----\nfunc f() {‸}\n----\n",
        "\n\tg()\n}\n----\n",
        "[source,go]\n----\nfunc f() {\n\tg()\n}\n----\n",
    ),
]

INDENTED: list[Case] = [
    ("makefile", "all: deps‸\n", "\n    cc -o a a.c\n", "all: deps\n\tcc -o a a.c\n"),
    ("make", "all:\n‸\n", "    cc -o a a.c\n", "all:\n\tcc -o a a.c\n"),
    ("makefile-gmake", "clean:\n\trm -f a\n‸", "    rm -f b\n", "clean:\n\trm -f a\n\trm -f b"),
    ("make", "all:\n\t‸", "cc a.c\n    cc b.c\n", "all:\n\tcc a.c\n\tcc b.c"),
    ("makefile", "A = a \\\n    b \\\n    ‸\n", "c\n", "A = a \\\n    b \\\n    c\n"),
    ("make", "a: b\n\tc\n\n‸", "ifeq (a,b)\n    R = d\nendif", "a: b\n\tc\n\nifeq (a,b)\n    R = d\nendif"),
    ("makefile", "%.o: %.c‸", "\n  $(CC) -c $<\n", "%.o: %.c\n\t$(CC) -c $<"),
    ("makefile", "A := b\n‸", "B := c\n", "A := b\nB := c"),
    ("make", "all:‸", "\n\tcc a.c\n", "all:\n\tcc a.c"),
    (
        "dockerfile",
        "FROM a\nRUN b && \\\n    c\nRUN d && \\‸\n",
        "\n\te\n",
        "FROM a\nRUN b && \\\n    c\nRUN d && \\\n    e\n",
    ),
    ("dockerfile", "FROM a\nRUN d && \\‸\n", "\n    e\n", "FROM a\nRUN d && \\\n    e\n"),
    (
        "dockerfile",
        "FROM a\nRUN b && \\\n\tc\nRUN d && \\‸\n",
        "\n    e\n",
        "FROM a\nRUN b && \\\n\tc\nRUN d && \\\n\te\n",
    ),
    (
        "containerfile",
        "FROM a\nRUN b \\\n  c\nRUN d \\‸\n",
        "\n  e\n",
        "FROM a\nRUN b \\\n  c\nRUN d \\\n  e\n",
    ),
]


@pytest.mark.parametrize(("language", "document", "generated", "after"), BLOCKS)
def test_a_block_in_a_part_of_another_language_is_written_whole(
    accepted: Accepted, language: str, document: str, generated: str, after: str
) -> None:
    assert accepted(language, document, generated) == after


@pytest.mark.parametrize(("language", "document", "generated", "after"), INDENTED)
def test_recipes_are_indented_with_tabs_and_dockerfiles_as_they_are(
    accepted: Accepted, language: str, document: str, generated: str, after: str
) -> None:
    assert accepted(language, document, generated) == after


DOUBLED: list[Case] = [
    (
        "nix",
        "a = ''\n  run ${‸}/bin/a\n'';\n",
        "{ pkgs.a }}/bin/a\n",
        "a = ''\n  run ${ pkgs.a }/bin/a\n'';\n",
    ),
    (
        "elixir",
        'def r do\n  ~H"""\n  <h1>{‸}</h1>\n  """\nend\n',
        "{ @title }}</h1>\n",
        'def r do\n  ~H"""\n  <h1>{ @title }</h1>\n  """\nend\n',
    ),
    ("python", 'a = f"<h1>{‸}</h1>"\n', '{title}}</h1>"\n', 'a = f"<h1>{title}</h1>"\n'),
    ("javascript", "a = `<h1>${‸}</h1>`;\n", "{title}}</h1>`;\n", "a = `<h1>${title}</h1>`;\n"),
    ("typescriptreact", "return <p>{‸}</p>;\n", "{title}}</p>;\n", "return <p>{title}</p>;\n"),
    ("svelte", "<p>{‸}</p>\n", "{title}}</p>\n", "<p>{title}</p>\n"),
    ("bicep", "param a string = 'a${‸}'\n", "{random()}}'\n", "param a string = 'a${random()}'\n"),
    ("ruby", 'a = "x #{‸}"\n', '{title}}"\n', 'a = "x #{title}"\n'),
    (
        "typescriptreact",
        "return <p style={‸}>a</p>;\n",
        "{ color: 1 }}>\n",
        "return <p style={{ color: 1 }}>a</p>;\n",
    ),
]


@pytest.mark.parametrize(("language", "document", "generated", "after"), DOUBLED)
def test_an_interpolation_is_opened_once_but_an_attribute_may_hold_data(
    accepted: Accepted, language: str, document: str, generated: str, after: str
) -> None:
    assert accepted(language, document, generated) == after
