"""Hardly a human line is lost to the rules that end and clean suggestions."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from completion_engine.cutting.cutter import Cutter
from completion_engine.text_window import CursorContext
from lsp_server.commands.local_engine import Sample
from tests.benchmarks.samples import from_folder
from tests.quality.auto_closed import measured
from tests.quality.rules import before_open, cuts, is_block_shown, is_line_shown

PROJECT = Path(__file__).parents[2]
SOURCES = PROJECT / "completion_engine"
LINE = Sample("a", "a.py", "python", "def f(a):\n    b", "\n    return b\n", " = g(a, h(a))")


@pytest.mark.parametrize("is_shown", [is_line_shown, is_block_shown])
def test_what_stood_there_is_shown(is_shown: object) -> None:
    assert callable(is_shown)
    samples = from_folder(SOURCES, 200, endings=(".py",))
    lost = [sample.name for sample in samples if not is_shown(sample)]
    assert len(lost) <= 2, lost


@pytest.mark.parametrize(("language", "folder"), [("python", "completion_engine"), ("markdown", "docs")])
def test_a_line_comes_out_whole_where_the_editor_has_closed_its_brackets(language: str, folder: str) -> None:
    found = measured(language, PROJECT / folder, num_places=200)
    assert found["num_places"] == 200
    assert found["whole"] >= 198, found


def test_a_line_that_repeats_the_next_one_is_lost() -> None:
    assert is_line_shown(LINE)
    assert not is_line_shown(replace(LINE, suffix="\n    b = g(a, h(a))\n"))


@pytest.mark.parametrize(
    ("text", "closed"), [("g(a)", "g(a)"), ("g(a, h(", "g"), ("'a b", ""), ("[a] # (", "[a] # (")]
)
def test_a_text_ends_before_what_it_leaves_open(text: str, closed: str) -> None:
    assert before_open(Cutter(CursorContext("x = ", "\n", "python")), text) == closed


def test_a_line_that_ends_early_is_seldom_whole() -> None:
    found = cuts([LINE])
    assert found["num_cut"] >= found["num_open"] > 0
    assert found["num_parsed_closed"] >= found["num_parsed"]
    assert found["num_chars_closed"] < found["num_chars"]
