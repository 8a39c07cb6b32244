"""Costs of passes are followed while they run."""

from __future__ import annotations

import pytest

from completion_engine.target_model.passes import Costs, PassClock


@pytest.mark.parametrize("true_level", [0.05, 0.5, 1.0, 3.0, 20.0])
def test_a_start_beside_other_programs_is_forgotten_after_a_few_completions(true_level: float) -> None:
    clock = PassClock({8: 30.0, 16: 40.0}, 5.0)
    for _ in range(60):
        clock.record(clock.pass_ms[16], 40.0 * true_level)
    assert clock.pass_ms == pytest.approx({8: 30.0 * true_level, 16: 40.0 * true_level}, rel=0.05)
    assert clock.branch_ms == pytest.approx(5.0 * true_level, rel=0.05)


def test_one_slow_pass_says_little() -> None:
    clock = PassClock({8: 30.0}, 0.0)
    clock.record(30.0, 3_000.0)
    assert clock.pass_ms[8] < 33.0


def test_one_quick_pass_shows_what_the_machine_can_do() -> None:
    clock = PassClock({8: 30.0}, 0.0)
    clock.record(30.0, 0.3)
    assert 0.3 < clock.pass_ms[8] <= 1.2


@pytest.mark.parametrize(
    ("measured", "branch_ms", "pass_ms", "expected_branch_ms"),
    [
        ({8: 600.0, 16: 500.0, 24: 250.0}, 0.0, {8: 600.0, 16: 600.0, 24: 600.0}, 0.0),
        ({24: 50.0, 8: 30.0}, 90.0, {8: 30.0, 24: 50.0}, 15.0),
        ({8: 30.0}, -4.0, {8: 30.0}, 0.0),
    ],
)
def test_what_cannot_be_is_not_believed(
    measured: dict[int, float], branch_ms: float, pass_ms: dict[int, float], expected_branch_ms: float
) -> None:
    clock = PassClock(measured, branch_ms)
    assert clock.pass_ms == pass_ms
    assert clock.branch_ms == expected_branch_ms


@pytest.mark.parametrize(
    ("num_rows", "row_ms"),
    [
        pytest.param(1, 12 / 7, id="up to eight rows"),
        pytest.param(8, 13 / 7, id="up to fifteen, in a pass of sixteen"),
        pytest.param(16, 0.0, id="beyond the widest pass there is nothing to pay"),
    ],
)
def test_a_further_row_costs_the_mean_of_the_next_few(num_rows: int, row_ms: float) -> None:
    assert Costs({1: 25.0, 4: 30.0, 8: 37.0, 16: 50.0}).row_ms(num_rows) == pytest.approx(row_ms)


@pytest.mark.parametrize(
    ("ms", "widths"), [(100.0, {1, 4, 8}), (37.0, {1, 4, 8}), (36.9, {1, 4}), (25.0, {1}), (0.0, {1})]
)
def test_where_little_time_is_left_narrow_passes_are_to_be_had(ms: float, widths: set[int]) -> None:
    assert Costs({1: 25.0, 4: 30.0, 8: 37.0}).within(ms).pass_ms.keys() == widths


@pytest.mark.parametrize(("num_rows", "ms"), [(1, 25.0), (2, 30.0), (4, 30.0), (5, 37.0), (99, 37.0)])
def test_a_pass_is_as_wide_as_it_has_to_be(num_rows: int, ms: float) -> None:
    assert Costs({1: 25.0, 4: 30.0, 8: 37.0}).ms_of(num_rows) == ms
