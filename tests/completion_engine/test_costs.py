"""What passes take is followed while they are run."""

from __future__ import annotations

import pytest

from completion_engine.costs import PassClock


@pytest.mark.parametrize("true_level", [0.05, 0.5, 1.0, 3.0, 20.0])
def test_a_start_beside_other_programs_is_forgotten_after_a_few_completions(true_level: float) -> None:
    clock = PassClock({8: 30.0, 16: 40.0}, 5.0)
    for _ in range(60):
        clock.saw(clock.pass_ms[16], 40.0 * true_level)
    assert clock.pass_ms == pytest.approx({8: 30.0 * true_level, 16: 40.0 * true_level}, rel=0.05)
    assert clock.lane_ms == pytest.approx(5.0 * true_level, rel=0.05)


def test_one_slow_pass_says_little() -> None:
    clock = PassClock({8: 30.0}, 0.0)
    clock.saw(30.0, 3_000.0)
    assert clock.pass_ms[8] < 33.0


@pytest.mark.parametrize(
    ("measured", "lane_ms", "pass_ms", "expected_lane_ms"),
    [
        ({8: 600.0, 16: 500.0, 24: 250.0}, 0.0, {8: 600.0, 16: 600.0, 24: 600.0}, 0.0),
        ({24: 50.0, 8: 30.0}, 90.0, {8: 30.0, 24: 50.0}, 15.0),
        ({8: 30.0}, -4.0, {8: 30.0}, 0.0),
    ],
)
def test_what_cannot_be_is_not_believed(
    measured: dict[int, float], lane_ms: float, pass_ms: dict[int, float], expected_lane_ms: float
) -> None:
    clock = PassClock(measured, lane_ms)
    assert clock.pass_ms == pass_ms
    assert clock.lane_ms == expected_lane_ms
