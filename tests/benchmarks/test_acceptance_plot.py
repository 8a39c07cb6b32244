"""The picture of a drafter's acceptance."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

from completion_engine.errors import UserError
from tests.benchmarks.acceptance_plot import acceptance_plot, write_acceptance_plot

DRAFTER = Path(__file__).parents[2] / "completion_engine" / "drafters" / "qwen2.5-coder-0.5b"
pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("matplotlib") is None, reason="matplotlib is an extra"
)


def test_the_same_figures_give_the_same_picture(tmp_path: Path) -> None:
    pictures = [tmp_path / "one.svg", tmp_path / "two.svg"]
    for picture in pictures:
        write_acceptance_plot([0.5, 0.25], "Drafts", picture)
    assert pictures[0].read_bytes() == pictures[1].read_bytes()
    assert b"<svg" in pictures[0].read_bytes()


def test_the_card_shows_the_picture_once(tmp_path: Path) -> None:
    card = tmp_path / "README.md"
    image = "![Acceptance by depth](acceptance.svg)\n\n"
    text = (DRAFTER / "README.md").read_text(encoding="utf-8")
    card.write_text(text.replace(image, ""), encoding="utf-8")
    for _ in range(2):
        acceptance_plot(tmp_path)
        assert card.read_text(encoding="utf-8") == text
    assert (tmp_path / "acceptance.svg").exists()


def test_a_folder_without_a_card_is_named(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no card"):
        acceptance_plot(tmp_path)
