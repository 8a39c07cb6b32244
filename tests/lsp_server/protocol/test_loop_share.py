"""A window's share of the event loop."""

from __future__ import annotations

import pytest

from lsp_server.protocol.client_streams import BURST_S, LONG_TURN_S, LONG_TURN_WEIGHT, LoopShare


def share_of(turn_s: float, gap_s: float, num_turns: int = 2000) -> float:
    """The loop's share of a window that has a turn ready `gap_s` after the previous one is over."""
    share, now_s, taken_s = LoopShare(), 100.0, 0.0
    for _ in range(num_turns):
        now_s += turn_s
        taken_s += turn_s
        now_s += max(gap_s, share.pause_s(turn_s, now_s))
    return taken_s / (now_s - 100.0)


@pytest.mark.parametrize("turn_s", [0.0002, 0.001, 0.004])
def test_a_window_that_floods_gets_half_however_short_its_turns_are(turn_s: float) -> None:
    assert share_of(turn_s, 0.0) == pytest.approx(0.5, rel=0.1)


@pytest.mark.parametrize("turn_s", [0.006, 0.02, 1.0])
def test_a_window_with_long_turns_gets_a_quarter(turn_s: float) -> None:
    assert share_of(turn_s, 0.0) == pytest.approx(1 / (1 + LONG_TURN_WEIGHT), rel=0.1)


@pytest.mark.parametrize(("turn_s", "gap_s"), [(0.002, 0.003), (0.0005, 0.002), (0.004, 0.02)])
def test_a_window_that_takes_less_never_waits(turn_s: float, gap_s: float) -> None:
    assert share_of(turn_s, gap_s) == pytest.approx(turn_s / (turn_s + gap_s))


def test_a_burst_is_free() -> None:
    share = LoopShare()
    assert [share.pause_s(BURST_S / 10, 100.0) for _ in range(9)] == [0.0] * 9


def test_a_window_that_was_quiet_for_long_has_no_more_than_one_burst() -> None:
    share = LoopShare()
    share.pause_s(LONG_TURN_S, 100.0)
    assert share.pause_s(BURST_S, 10_000.0) == BURST_S * LONG_TURN_WEIGHT
