"""When background work begins behind an answer."""

from __future__ import annotations

import pytest

from completion_engine.request import CancelledError
from completion_engine.stats import Completion, CompletionStats
from lsp_server.engine.work import IDLE_PAUSE_S, READING_PAUSE_S, pause_s


@pytest.mark.parametrize(
    ("finish_reason", "is_provisional", "wanted_s"),
    [
        ("stop", False, READING_PAUSE_S),
        ("deadline", False, IDLE_PAUSE_S),
        ("stop", True, 0.0),
        ("deadline", True, 0.0),
    ],
)
def test_a_better_answer_is_prepared_at_once(
    finish_reason: str, is_provisional: bool, wanted_s: float
) -> None:
    stats = CompletionStats(finish_reason=finish_reason, is_provisional=is_provisional)
    assert pause_s(Completion("x", 0, stats)) == wanted_s


def test_behind_a_cancelled_request_the_next_one_may_come() -> None:
    assert pause_s(CancelledError()) == IDLE_PAUSE_S
