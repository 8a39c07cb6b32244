"""The documents say what the tree holds."""

from __future__ import annotations

import importlib.util
from pathlib import Path

DOCS = Path(__file__).parents[1] / "docs"


def test_the_picture_of_the_architecture_is_drawn_from_the_contracts_of_today() -> None:
    """`python docs/make_architecture.py` draws it anew."""
    spec = importlib.util.spec_from_file_location("make_architecture", DOCS / "make_architecture.py")
    assert spec is not None
    assert spec.loader is not None
    make_architecture = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(make_architecture)
    assert (DOCS / "architecture.svg").read_text(encoding="utf-8") == make_architecture.picture()
