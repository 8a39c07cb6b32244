"""The context of a repository for a position: definitions, snippets, and never forbidden text."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from completion_engine.context.snippet_choice import (
    INGREDIENTS,
    CursorLocation,
    RepositoryView,
    choose,
    stable,
)
from completion_engine.request import RepositoryContext, Snippet
from completion_engine.text_window import TextWindow
from ngram_cache import NgramIndex
from ngram_cache.indexing import Indexer
from ngram_cache.overlays import TokenSource

ERRORS = '''"""What can go wrong."""


class LoanError(Exception):
    """A loan cannot be given."""

    def __init__(self, member: str, reason: str) -> None:
        super().__init__(f"{member}: {reason}")
        self.reason = reason
        self.member = member
        self.is_final = reason.startswith("never") or reason.endswith("again") or not reason.strip()
        self.advice = "Ask at the desk." if self.is_final else "Come back later, when somebody is there."


def explain_overdue(error: LoanError, num_days: int) -> str:
    return f"{error} for {num_days} days"
'''
RETURNS = '''from library.errors import LoanError, explain_overdue


def give_back(register, member, today):
    """Take a book back."""
    loan = register.loan_of(member)
    num_days = (today - loan.due_on).days
    if num_days > register.grace_days:
        raise LoanError(member, explain_overdue(None, num_days))
    register.close(loan)
'''
NOTHING_LIKE_IT = "def paint(colour):\n    canvas.fill(colour)\n"
FILES = {"library/errors.py": ERRORS, "library/returns.py": RETURNS, "pictures.py": NOTHING_LIKE_IT}
PREFIX = """from library.errors import LoanError, explain_overdue


def renew(register, member, today):
    loan = register.loan_of(member)
    num_days = (today - loan.due_on).days
    if num_days > register.grace_days:
        raise LoanError(member, """
SUFFIX = "\n    register.extend(loan)\n"
WINDOW = TextWindow.for_device("cpu")
PLACE = CursorLocation("library/renewals.py", "python", PREFIX, SUFFIX, WINDOW)


def encode_many(texts: list[str]) -> list[list[int]]:
    return [list(text.encode("utf-8", "replace")) for text in texts]


TOKENS = TokenSource("bytes", encode_many, bytes)


def view_of(files: dict[str, str], own_path: str = PLACE.path) -> RepositoryView:
    index = NgramIndex((path, np.frombuffer(text.encode(), np.uint8)) for path, text in files.items())
    return RepositoryView(index, TOKENS, "library", own_path)


def text_of(context: RepositoryContext) -> str:
    return "\n".join(f"{snippet.path}\n{snippet.text}" for snippet in context.snippets)


def test_names_that_are_used_are_defined_and_like_passages_are_shown_last() -> None:
    context = choose(PLACE, view_of(FILES), 2_000)
    assert context.repository == "library"
    first, *_, last = context.snippets
    assert (first.path, last.path) == ("library/errors.py", "library/returns.py")
    definitions, passage = first.text, last.text
    assert "class LoanError(Exception):" in definitions
    assert "def explain_overdue(error: LoanError, num_days: int) -> str:" in definitions
    assert 'return f"{error} for' not in definitions
    assert "num_days = (today - loan.due_on).days" in passage


def test_the_same_place_has_the_same_context() -> None:
    assert choose(PLACE, view_of(FILES), 2_000) == choose(
        PLACE, view_of(dict(reversed(FILES.items()))), 2_000
    )


@pytest.mark.parametrize("ingredient", INGREDIENTS)
def test_an_ingredient_can_be_left_out(ingredient: str) -> None:
    far = f"import shelves\n\n\ndef far_away(shelf):\n    pass\n\n{'x = 1' + chr(10)}" + "y = 2\n" * 600
    place = replace(PLACE, prefix=far + PREFIX)
    others = [name for name in INGREDIENTS if name != ingredient]
    alone, rest = (text_of(choose(place, view_of(FILES), 3_000, names)) for names in ([ingredient], others))
    mark = {
        "own": "def far_away(shelf):",
        "definitions": "LoanError(Exception):\n    def __init__",
        "similar": "register.close(loan)",
    }
    assert mark[ingredient] in alone
    assert mark[ingredient] not in rest
    assert all(mark[name] not in alone for name in others)


SCRIPT = """import { explainOverdue } from './errors';

export function renew(register: Register, member: Member): string {
  return explainOverdue("""
SCRIPTS = {
    "src/errors.ts": """export function explainOverdue(error: Error, numDays: number): string {
  return `${error} for ${numDays} days`;
}
"""
}


def test_a_script_is_shown_no_definitions_unless_they_are_asked_for() -> None:
    view = view_of(SCRIPTS, "src/renewals.ts")
    place = CursorLocation("src/renewals.ts", "typescript", SCRIPT, "\n}\n", WINDOW)
    assert "explainOverdue(error: Error" in text_of(choose(place, view, 2_000, ["definitions"]))
    assert choose(place, view, 2_000) == choose(place, view, 2_000, ["own", "similar"])
    assert choose(place, view, 2_000) != choose(place, view, 2_000, INGREDIENTS)


@pytest.mark.parametrize("max_chars", [0, 1, 10, 100, 200, 400, 800, 1_600, 100_000])
def test_a_context_keeps_to_its_budget(max_chars: int) -> None:
    context = choose(PLACE, view_of(FILES), max_chars)
    assert sum(len(snippet.path) + len(snippet.text) for snippet in context.snippets) <= max_chars


def test_neither_the_document_nor_a_copy_of_what_is_in_sight_is_shown() -> None:
    whole = PREFIX + "'the answer')" + SUFFIX
    files = {**FILES, PLACE.path: whole, "copies/renewals.py": whole}
    assert "the answer" not in text_of(choose(PLACE, view_of(files), 4_000))


@pytest.mark.parametrize("device", ["cpu", "cuda", "remote"])
@pytest.mark.parametrize("ingredient", INGREDIENTS)
def test_nothing_that_the_prompt_shows_is_shown_again(device: str, ingredient: str) -> None:
    """The document is as long as the window: its head and tail lie out of sight, all else is visible."""
    window, far = TextWindow.for_device(device), "def far_away(shelf, member):\n    pass\n"

    def functions(first: int, num_chars: int) -> str:
        found = [f"def renew_{at}(shelf, member):\n    return {at}\n" for at in range(first, first + 400)]
        return "".join(found[: num_chars // len(found[0])])

    above = functions(1000, window.num_before - len(PREFIX))
    below = functions(2000, window.num_after - len(SUFFIX))
    prefix, suffix = f"import far\n\n\n{far}{above}{PREFIX}", f"{SUFFIX}{below}{far}"
    location = replace(PLACE, window=window, prefix=prefix, suffix=suffix)
    files = {**FILES, "copy.py": above + below}
    context = choose(location, view_of(files), 4_000, [ingredient])
    assert ("far_away" in text_of(context)) == (ingredient == "own")
    assert not re.findall("renew_[0-9]+", text_of(context))


def test_other_languages_are_not_mixed_in() -> None:
    files = {"errors.ts": ERRORS, "notes.md": RETURNS}
    assert choose(PLACE, view_of(files), 2_000).snippets == ()


def test_a_file_that_was_looked_at_lately_comes_before_another_like_it() -> None:
    files = {name: RETURNS.replace("give_back", name) for name in ("aaa", "bbb", "ccc", "ddd", "eee")}
    files = {f"{name}.py": text for name, text in files.items()}
    place = replace(PLACE, recent=("eee.py",))
    paths = [snippet.path for snippet in choose(place, view_of(files), 400, ["similar"]).snippets]
    assert paths == ["eee.py"]


def test_only_what_may_be_indexed_is_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ignored files and secrets' files are out, and what looks like a secret is taken out of others."""
    monkeypatch.setenv("SLIPSTREAM_INDEX_DIR", str(tmp_path / "index"))
    root = tmp_path / "library"
    key = "sk_live_" + "4eC39HqLyjWDarjtT1zdp7dc"
    files = {
        "errors.py": ERRORS + f'\n\ndef explain_overdue_again(error: LoanError, key="{key}") -> str: ...\n',
        "ignored.py": RETURNS.replace("give_back", "never_to_be_shown"),
        "secrets.env": RETURNS.replace("give_back", "never_to_be_shown"),
        ".gitignore": "ignored.py\n",
    }
    root.mkdir()
    for name, text in files.items():
        (root / name).write_text(text)
    indexer = Indexer(root, encode_many, "bytes")
    indexer.build()
    view = RepositoryView(indexer.index, TOKENS, "library", PLACE.path)
    prefix = PREFIX.replace("explain_overdue", "explain_overdue_again") + "explain_overdue_again("
    shown = text_of(choose(replace(PLACE, prefix=prefix), view, 4_000))
    assert "def explain_overdue_again(" in shown
    assert key not in shown
    assert "never_to_be_shown" not in shown


HOSTILE = {
    "one line": "x" * 60_000,
    "deep": "(" * 20_000,
    "no text": "",
    "names": " ".join(f"name{number}" for number in range(6_000)),
    "zeros": "\0" * 10_000,
}


@pytest.mark.parametrize("kind", HOSTILE)
@pytest.mark.parametrize("language", ["python", "rust", "plaintext", "no language"])
def test_any_repository_and_any_place_have_a_context(kind: str, language: str) -> None:
    text = HOSTILE[kind]
    files = {f"{name}.{ending}": text + RETURNS for name in "abc" for ending in ("py", "rs", "txt")}
    place = CursorLocation("d.py", language, text, text, WINDOW)
    context = choose(place, view_of(files, "d.py"), 1_000)
    assert sum(len(snippet.text) for snippet in context.snippets) <= 1_000


def test_a_context_jumps_or_stays() -> None:
    def context(*texts: str) -> RepositoryContext:
        return RepositoryContext("r", tuple(Snippet(f"{at}.py", text) for at, text in enumerate(texts)))

    before, close, far = context("a\nb", "c\nd"), context("a\nb", "x"), context("a", "x\ny")
    assert stable(None, far) is far
    assert stable(before, close) is before
    assert stable(before, far) is far
    assert stable(before, context()) is before
