"""The passes of the target, counted."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from completion_engine.target_model.language_model import LanguageModel


@pytest.fixture
def passes(target: LanguageModel, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The number of rows of each pass of the target."""
    rows: list[int] = []
    forward = target.forward

    def counted(tokens: Sequence[int], *rest: Any) -> Any:
        rows.append(len(tokens))
        return forward(tokens, *rest)

    monkeypatch.setattr(target, "forward", counted)
    return rows
