"""From the target's probability of a token to how often such a token is right."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from completion_engine.probability import SHIPPED, Calibration, log_odds

probabilities = st.floats(0, 1)


@given(probabilities, probabilities)
def test_a_more_probable_token_is_never_right_less_often(one: float, other: float) -> None:
    low, high = sorted((one, other))
    assert 0 < SHIPPED.of(low) <= SHIPPED.of(high) < 1


@pytest.mark.parametrize(("share", "right"), [(0.5, 0.599), (0.9, 0.859), (0.99, 0.966)])
def test_the_shipped_curve_is_the_measured_one(share: float, right: float) -> None:
    assert SHIPPED.of(share) == pytest.approx(right, abs=0.001)


@given(st.floats(0.001, 0.999))
def test_no_offset_and_a_slope_of_one_change_nothing(share: float) -> None:
    assert Calibration(0.0, 1.0).of(share) == pytest.approx(share)


def test_certain_tokens_have_finite_log_odds() -> None:
    assert log_odds(0.0) == pytest.approx(-log_odds(1.0))
    assert abs(log_odds(1.0)) < 14
