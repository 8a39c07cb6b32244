"""A suggestion within a line fills the place that the author left, and writes no more than that.

Each case: language, document, what the model writes, what the document is once that is accepted.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from completion_engine.cutting.cutter import Cutter
from completion_engine.text_window import CursorContext

At = Callable[..., CursorContext]
Accepted = Callable[[str, str, str], str]
Case = tuple[str, str, str, str]

CASES: list[Case] = [
    # The pair that the rest of the line begins with ends it.
    ("latex", "\\frac{‸}{2} &= c", "a}{b} &= d \\label{e}\n", "\\frac{a}{2} &= c"),
    (
        "latex",
        "Let $‸$ be \\emph{small}.",
        "a, b$ be numbers such that $a = b$\n",
        "Let $a, b$ be \\emph{small}.",
    ),
    ("typst", "It's _‸_, see $x$.", "italic_ in the text. It's _bold_\n", "It's _italic_, see $x$."),
    ("org", "* TODO Call *‸* about it", "code* and =verbatim=.\n", "* TODO Call *code* about it"),
    ("markdown", "| ‸ | two |\n", "three | four |\n", "| three | two |\n"),
    ("javascript", "f(‸) + g(x);", "a) + h(b)\n", "f(a) + g(x);"),
    ("markdown", "A note[^‸] and `code`.\n", "1] and a list[^2]\n", "A note[^1] and `code`.\n"),
    (
        "latex",
        "so $f(‸) = 1$, \\emph{always}.\n",
        "x) = 2$ and \\frac{1}{\n",
        "so $f(x) = 1$, \\emph{always}.\n",
    ),
    ("python", "# see (‸) and the like\n", "the docs (a)) for more\n", "# see (the docs (a)) and the like\n"),
    ("markdown", "It's **‸**.\n", "bold, *very*, here**.\n", "It's **bold, *very*, here**.\n"),
    # The cell of a table.
    ("latex", "a & ‸ & c \\\\\n", "b \\\\ \\hline\n", "a & b & c \\\\\n"),
    ("latex", "a & ‸ \\\\ \\hline\n", "b \\& c & d \\\\\n", "a & b \\& c \\\\ \\hline\n"),
    # The lines below on the cursor's line.
    (
        "sql",
        "SELECT a, ‸\nFROM users u\nWHERE u.b LIKE 'O%';\n",
        "c FROM users u WHERE u.b LIKE 'O%';\n",
        "SELECT a, c\nFROM users u\nWHERE u.b LIKE 'O%';\n",
    ),
    (
        "javascript",
        "load(‸)\n  .then(show)\n  .catch(fail);\n",
        "a).then(show).catch(fail);\n",
        "load(a)\n  .then(show)\n  .catch(fail);\n",
    ),
    # What only closes goes on: its end may be written again.
    ("typescriptreact", "return <p>Hello, {a.‸}</p>;", "b}!</p>;\n", "return <p>Hello, {a.b}!</p>;"),
    # The rest again, without its first mark.
    (
        "markdown",
        "Costs $‸$ per run, see [here](a.md)",
        "5 per run, see [here](a.md)\n",
        "Costs $5$ per run, see [here](a.md)",
    ),
    (
        "markdown",
        "An ~~‸~~, <kbd>Ctrl</kbd>.\n",
        ", <kbd>Ctrl</kbd>. | Name |\n",
        "An ~~~~, <kbd>Ctrl</kbd>.\n",
    ),
    ("handlebars", "<li>{{{‸}}}</li>{{/each}}\n", "a}}</li>{{/each}}\n", "<li>{{{a}}}</li>{{/each}}\n"),
    (
        "sql",
        "SELECT COUNT(‸) FROM users WHERE a\n",
        "*) FROM users WHERE a\n",
        "SELECT COUNT(*) FROM users WHERE a\n",
    ),
    # All closing marks without the separator between them.
    ("javascript", "if (a) { f(‸); }\n", "b) }\n", "if (a) { f(b); }\n"),
    # Marks that the cursor is between already.
    ("markdown", "- It's *‸*\n", "*not** here.\n", "- It's *not*\n"),
    # The end of a line, and of a statement, in its middle.
    ("latex", "  a &= ‸ \\label{b} \\\\\n", "c \\\\\n  d &= e\n", "  a &= c \\label{b} \\\\\n"),
    (
        "rust",
        "let Some(a) = ‸ else { return };\n",
        "b.next();\n",
        "let Some(a) = b.next() else { return };\n",
    ),
    ("c", "int a = ‸ // two\n", "2;\n", "int a = 2; // two\n"),
    # A semicolon before a comment replaces the one after the cursor.
    ("javascript", "const a = ‸;\n", "2; // fixed\n", "const a = 2; // fixed\n"),
    # Code within text ends with its line.
    (
        "php",
        "<?php\n$a = <<<B\nDear {$c->‸},\nB;\n",
        "d},\nI hope that\n",
        "<?php\n$a = <<<B\nDear {$c->d},\nB;\n",
    ),
    # Another heredoc's word.
    (
        "dockerfile",
        "RUN <<EOF\na\nEOF\nCOPY <<C /c\n‸\nC\n",
        "b\nEOF\nCOPY d e\n",
        "RUN <<EOF\na\nEOF\nCOPY <<C /c\nb\nC\n",
    ),
    # A circle of signs in a comment, and one that opens a bracket each time.
    ("nix", "b = ‸;\n", "c { a = 1; src = " * 12, "b = c;\n"),
    ("typst", "It's *‸* here\n", "***** " + "****** " * 20, "It's ** here\n"),
    # A second step of indentation where the document has none yet.
    ("shellscript", "if a; then\n  ‸\nfi\n", '  echo "b"\nfi\n', 'if a; then\n  echo "b"\nfi\n'),
    # Signs that are all that is left of a comment's line.
    ("lua", "--[[\n‸\n]]\n", "-- a = b\n-- ]]]\n\nlocal c\n", "--[[\n-- a = b\n]]\n"),
    # A fence that nothing ends.
    ("asciidoc", "....\n‸\n....\n", "```\n\nI'm trying", "....\n\n....\n"),
]


@pytest.mark.parametrize(("language", "document", "generated", "after"), CASES)
def test_the_line_is_filled_and_nothing_else(
    accepted: Accepted, language: str, document: str, generated: str, after: str
) -> None:
    assert accepted(language, document, generated) == after


@pytest.mark.parametrize(
    ("language", "document", "cut", "kept"),
    [
        ("haskell", "a = [1 .. ‸]\n", "10] -- [1, 4, 9, 16", "10]"),
        ("python", "a = ‸\n", "b  # c is d, an", "b"),
        ("python", "‸\n", "# c is d, an", "# c is d"),
    ],
)
def test_a_cut_keeps_a_comment_after_code_only_as_a_whole(
    at: At, language: str, document: str, cut: str, kept: str
) -> None:
    rules = Cutter(at(language, document))
    assert cut[: rules.boundary(cut)] == kept


def test_the_first_repeat_that_is_seen_decides() -> None:
    rest = 'def f():    r#"\n\n    '
    rules = Cutter(CursorContext("", rest))
    known = [rules.stop(rest[:end]) for end in range(1, len(rest) + 1)]
    decided = [stop for stop in known if stop is not None]
    assert decided and set(decided) == {decided[0]}
