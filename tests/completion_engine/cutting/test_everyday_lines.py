"""Lines of many languages: a suggestion fits what follows the cursor, whatever of that it repeats.

`lines.txt` holds a document for each, as `language || text`, in which `⟦…⟧` is what stood at the cursor.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from completion_engine.cutting.cutter import Cutter
from completion_engine.text_window import CursorContext

_DOCUMENTS = (Path(__file__).parent / "lines.txt").read_text("utf-8").strip().split("\n===\n")
_SEPARATOR = " || "


def written(truth: str, after: str) -> Iterator[tuple[str, str]]:
    """Texts that a model may write in place of `truth`: more or less of the following text is repeated."""
    rest, _, below = after.partition("\n")
    next_line = next((line for line in below.split("\n") if line.strip()), "")
    yield "the true text", truth
    yield "the rest of the line again", truth + rest
    yield "the rest of the line again, and a line end", f"{truth}{rest}\n"
    yield "all that follows again", truth + after
    yield "the rest of the line again, and the next line", f"{truth}{rest}\n{next_line}"
    if not rest.strip():
        yield "the next line again", f"{truth}\n{next_line}\n"


def accepted(language: str, before: str, after: str, generated: str) -> str:
    """The document after the suggestion of a generated text is accepted; the text arrives in parts."""
    rules = Cutter(CursorContext(before, after, language))
    ends = range(1, len(generated) + 1)
    stop = next((stop for end in ends if (stop := rules.stop(generated[:end]))), None)
    shown = rules.cut(generated[: stop.num_chars] if stop else generated)
    return before + shown.text + after[shown.num_replaced :]


def lines_of(text: str) -> list[str]:
    """The lines, blanks at their ends left out."""
    return [line.rstrip() for line in text.rstrip().split("\n")]


@pytest.mark.parametrize("document", _DOCUMENTS)
def test_nothing_stands_twice_and_nothing_is_missing(document: str) -> None:
    language, _, text = document.partition(_SEPARATOR)
    before, _, marked = f"{text}\n".partition("⟦")
    truth, _, after = marked.partition("⟧")
    found = {name: accepted(language, before, after, text) for name, text in written(truth, after)}
    wrong = {name: text for name, text in found.items() if lines_of(text) != lines_of(before + truth + after)}
    assert not wrong


def test_a_pair_that_the_rest_closes_is_closed_once() -> None:
    """The model closes what the rest of the line closes, and goes on with something else."""
    for language, before, after, generated, shown in (
        ("svelte", "<button on:click={", "}>Don't</button>", "add}>Click me", "add"),
        ("php", "<h1>It's <?php echo ", "; ?></h1>", "f(1); ?> years.", "f(1)"),
        ("python", 'print(f"{', '} values")', "n}Sum", "n"),
        ("markdown", "Call `", "` first.", "f` with a number.", "f"),
    ):
        assert accepted(language, before, after + "\n", generated) == f"{before}{shown}{after}\n", language


def test_prose_opens_no_part_that_nothing_closes() -> None:
    assert accepted("markdown", "One.\n", "\nTwo.\n", "Text:\n```bash") == "One.\nText:\nTwo.\n"


def test_no_separator_stands_before_a_closing_mark_where_the_language_forbids_it() -> None:
    clause = "f(X) ->\n    receive\n        {a, P} ->\n            "
    for language, before, after, generated, shown in (
        ("json", '{\n  "a": ["', '"]\n}\n', 'b", "c"],', 'b", "c'),
        ("jsonc", "[\n  ", "\n]\n", "1,", "1,"),
        ("sql", "SELECT a WHERE b IN (\n  ", "\n);\n", "1,\n  2,", "1,\n  2"),
        ("haskell", "a = [\n  ", "\n  ]\n", "1,", "1"),
        ("erlang", clause, "\n    end.\n", "g(P);", "g(P)"),
        ("erlang", clause, "\n        {b, P} ->\n            h(P)\n    end.\n", "g(P);", "g(P);"),
    ):
        assert accepted(language, before, after, generated) == f"{before}{shown}{after}", language
