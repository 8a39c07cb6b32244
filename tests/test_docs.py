"""The documents match the tree."""

from __future__ import annotations

from pathlib import Path

from scripts import make_architecture

DOCS = Path(__file__).parents[1] / "docs"


def test_the_picture_of_the_architecture_is_drawn_from_the_contracts_of_today() -> None:
    """`python -m scripts.make_architecture` draws it anew."""
    assert (DOCS / "architecture.svg").read_text(encoding="utf-8") == make_architecture.picture()
