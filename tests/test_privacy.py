"""Each sentence of the privacy page has a test that would fail if it were false, or promises nothing.

`privacy.toml` names the tests by their files, each with the beginnings of the sentences that it tests.
"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from completion_engine.prompting.prompt import GROWTH
from completion_engine.text_window import TextWindow
from lsp_server.workspace.documents import MAX_DOCUMENT_CHARS
from lsp_server.workspace.lines import MAX_LINE_CHARS
from lsp_server.workspace.settings_reading import MAX_FILE_BYTES
from lsp_server.workspace.usage_by_day import NUM_DAYS
from ngram_cache.ignore import MAX_RULE_BYTES
from ngram_cache.walk import WalkLimits

TESTS = Path(__file__).parent
PROMISES: dict[str, dict[str, list[str]]] = tomllib.loads((TESTS / "privacy.toml").read_text("utf-8"))

# Sentences that explain, or that lead to another page.
EXPLANATIONS = (
    "The statistics page shows", "The model then runs",
    "Completions from servers", "Their bits may differ", "The status shows", "[fleet/]",
    "Rules are ignore files", "Packages:",
    "In the examples of", "Before these examples", "This finds most secrets",
    "The examples of two other", "In those of", "The detectors'", "Without them", "Before the rules got",
    "A `.slipstream.toml`, your", "A `.slipstream.toml` may also", "PyTorch's CPU build",
)  # fmt: skip
BEGINNINGS = (*EXPLANATIONS, *(one for tests in PROMISES.values() for some in tests.values() for one in some))

SEEN = TextWindow.for_device("remote")
FIGURES = (
    f"{SEEN.num_before * GROWTH:,.0f} characters before the cursor and {SEEN.num_after:,} after",
    f"{MAX_FILE_BYTES >> 10} kB of settings, {MAX_RULE_BYTES >> 10} kB of ignore rules per file",
    f"newest {WalkLimits().max_text_bytes >> 20} MiB of source",
    f"{MAX_DOCUMENT_CHARS >> 20} Mi characters, and {MAX_LINE_CHARS >> 10} Ki characters per line",
    f"for {NUM_DAYS} days",
)


def sentences() -> list[str]:
    """The sentences, list items and table rows of the page, without its headings."""
    text = (TESTS.parent / "docs/privacy.md").read_text("utf-8")
    blocks = re.split(r"\n(?= *- |\|)|\n\n", re.sub(r"^#.*$", "", text, flags=re.MULTILINE))
    whole = [" ".join(block.split()).removeprefix("- ") for block in blocks]
    rows = [row for row in whole if not re.match(r"\| (you open|---)", row)]
    return [one for row in rows for one in re.split(r"(?<=[.:])\s+(?=[A-Z`\[])", row) if one]


@pytest.mark.parametrize("sentence", sentences())
def test_a_sentence_has_a_test_or_promises_nothing(sentence: str) -> None:
    assert sentence.startswith(BEGINNINGS)


@pytest.mark.parametrize("beginning", BEGINNINGS)
def test_what_is_tested_stands_on_the_page(beginning: str) -> None:
    assert any(sentence.startswith(beginning) for sentence in sentences())


@pytest.mark.parametrize("figure", FIGURES)
def test_figures_are_those_of_the_code(figure: str) -> None:
    assert any(figure in sentence for sentence in sentences())


@pytest.mark.parametrize("file", PROMISES)
def test_the_tests_are_there(file: str) -> None:
    names = re.findall(r"^(?:async )?def (test_\w+)\(", (TESTS / file).read_text("utf-8"), re.MULTILINE)
    assert set(PROMISES[file]) <= set(names)
