"""Prices of passes that are the same on every machine and at every moment.

The policy drafts and verifies what pays by the prices of passes. A test that expects drafts to be verified or
accepted fixes them.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from completion_engine.target_model import language_model
from completion_engine.target_model.language_model import LanguageModel
from completion_engine.target_model.passes import PassClock

PASS_MS = 1.0


class FixedPrices(PassClock):
    """Prices that no pass changes."""

    def record(self, expected_ms: float, ms: float) -> float:
        """Return the level, which stays."""
        del expected_ms, ms
        return self.level


def make_rows_free(target: LanguageModel, pass_ms: float = PASS_MS) -> LanguageModel:
    """Let all passes of `target` cost the same: whatever fits is tried."""
    prices = dict.fromkeys(target.widths, pass_ms)
    target.findings = replace(target.findings, pass_ms=prices, branch_ms=0.0, chunk_ms=4 * pass_ms)
    target.clock = FixedPrices(prices, 0.0)
    return target


def make_rows_free_in_later_loads(patch: pytest.MonkeyPatch) -> None:
    """Do the same for each target that this process loads until `patch` ends."""
    patch.setattr(
        language_model, "PassClock", lambda pass_ms, _: FixedPrices(dict.fromkeys(pass_ms, PASS_MS), 0.0)
    )
