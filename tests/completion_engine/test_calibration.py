"""What is learned of how sure texts are: little from little, never beyond bounds, the truth from enough."""

from __future__ import annotations

import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from completion_engine.calibration import NUM_BINS, SHIPPED, Calibration, Evidence, learned

counts = st.tuples(*[st.floats(0, 10_000)] * NUM_BINS)
shares = st.lists(st.floats(0, 1), max_size=30)


def drawn(truth: Calibration, num_tokens: int, seed: int = 0) -> Evidence:
    """Tokens that are right as often as `truth` says."""
    rng = random.Random(seed)  # noqa: S311 - a reproducible draw, not a secret
    evidence = Evidence()
    for _ in range(num_tokens):
        share = 1 - rng.random() ** 3
        evidence = evidence.plus(share, is_right=rng.random() < truth.of(share))
    return evidence


def test_without_evidence_it_is_what_is_shipped() -> None:
    found = learned(Evidence())
    assert (found.offset, found.slope) == pytest.approx((SHIPPED.offset, SHIPPED.slope))


@given(counts, counts)
def test_no_stream_of_outcomes_drives_it_beyond_bounds(
    right: tuple[float, ...], wrong: tuple[float, ...]
) -> None:
    found = learned(Evidence(right, wrong))
    assert abs(found.offset - SHIPPED.offset) <= 0.6 + 1e-9
    assert abs(found.slope - SHIPPED.slope) <= 0.2 + 1e-9


@pytest.mark.parametrize("is_right", [True, False])
@pytest.mark.parametrize("share", [0.01, 0.5, 0.999])
def test_few_outcomes_change_little(share: float, is_right: bool) -> None:
    evidence = Evidence()
    for _ in range(5):
        evidence = evidence.plus(share, is_right=is_right)
    found = learned(evidence)
    assert all(abs(found.of(p) - SHIPPED.of(p)) < 0.05 for p in (0.05, 0.5, 0.95))


@pytest.mark.parametrize("truth", [Calibration(0.0, 0.64), Calibration(0.8, 0.55), SHIPPED])
def test_with_many_outcomes_it_comes_near_to_the_truth(truth: Calibration) -> None:
    found = learned(drawn(truth, 2_000))
    for share in (0.2, 0.5, 0.9, 0.98):
        assert abs(found.of(share) - truth.of(share)) <= max(
            0.04, 0.7 * abs(SHIPPED.of(share) - truth.of(share))
        )


def _log_posterior(evidence: Evidence, at: Calibration) -> float:
    prior = ((at.offset - SHIPPED.offset) / 0.3) ** 2 + ((at.slope - SHIPPED.slope) / 0.1) ** 2
    told = zip(range(-5, 11), evidence.right, evidence.wrong, strict=True)
    odds = [(at.offset + at.slope * x, right, wrong) for x, right, wrong in told]
    lost = sum(r * math.log1p(math.exp(-z)) + w * math.log1p(math.exp(z)) for z, r, w in odds)
    return -prior / 2 - 0.25 * lost


@pytest.mark.parametrize("num_tokens", [30, 200, 1_000, 3_900])
@pytest.mark.parametrize("offset", [-4.0, -2.0, -1.0, 0.2, 1.0, 3.0, 5.0])
@pytest.mark.parametrize("slope", [0.0, 0.1, 0.5, 0.9, 1.2])
def test_nothing_within_the_bounds_is_likelier(offset: float, slope: float, num_tokens: int) -> None:
    truth = Calibration(offset, slope)
    each = num_tokens / NUM_BINS
    right = tuple(each / (1 + math.exp(-(truth.offset + truth.slope * x))) for x in range(-5, 11))
    evidence = Evidence(right, tuple(each - count for count in right))
    grid = [Calibration(a / 50, b / 50) for a in range(-10, 51, 3) for b in range(22, 43, 3)]
    best = max(_log_posterior(evidence, at) for at in grid)
    assert _log_posterior(evidence, learned(evidence)) >= best - 1e-9


def test_old_outcomes_count_less_and_less() -> None:
    evidence = Evidence()
    for _ in range(12_000):
        evidence = evidence.plus(0.9, is_right=True)
    assert evidence.num_tokens <= 4_000
    for _ in range(4_000):
        evidence = evidence.plus(0.9, is_right=False)
    assert sum(evidence.wrong) > sum(evidence.right)
