"""Weights that a file has quantised keep its levels and its scales."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from completion_engine.cpu import block_packing
from completion_engine.cpu.block_packing import pack_blocks
from completion_engine.cpu.kernels.language import Floats
from completion_engine.cpu.kernels.packing import RECORDS, PackedWeight, unpack
from completion_engine.target_model.gguf_blocks import QUANTISED, QuantisedWeight, quantised
from tests.completion_engine.target_model.test_weights import drawn

# The bits of each type, and by how much of the largest number of a row the packed numbers may be off: scales
# of super-blocks have more digits than float16, and what no record holds is rounded to 8 bits.
HELD = {
    "Q4_0": (4, 0.0), "Q4_1": (4, 0.0), "Q5_0": (5, 0.0), "Q5_1": (8, 0.005), "Q8_0": (8, 0.0),
    "Q4_K": (4, 0.001), "Q5_K": (8, 0.005), "Q6_K": (8, 0.005),
}  # fmt: skip
NUM_OUTPUTS, NUM_INPUTS = 41, 512


def weight_of(kind: str, seed: int = 0, num_outputs: int = NUM_OUTPUTS) -> QuantisedWeight:
    return quantised(drawn(kind, num_outputs, NUM_INPUTS, seed), kind)


def numbers(weight: PackedWeight) -> NDArray[np.float32]:
    return unpack(weight, np.arange(weight.shape[0]))


def errors(packed: PackedWeight, weights: list[QuantisedWeight]) -> Floats:
    """By how much of its row's largest number each number is off."""
    wanted = np.concatenate([weight.values(0, len(weight.levels)) for weight in weights])
    off: Floats = np.abs(numbers(packed) - wanted) / np.abs(wanted).max(axis=1, keepdims=True)
    return off


def test_every_type_is_tested() -> None:
    assert HELD.keys() == QUANTISED.keys()


@pytest.mark.parametrize("kind", HELD)
def test_a_type_is_held_in_as_many_bits_as_its_levels_need(kind: str) -> None:
    weight = weight_of(kind)
    packed = pack_blocks([weight])
    bits, most_off = HELD[kind]
    assert packed.record.bits == bits
    assert packed.shape == (NUM_OUTPUTS, NUM_INPUTS)
    assert errors(packed, [weight]).max() <= most_off


@pytest.mark.parametrize(
    ("kinds", "bits", "are_exact"),
    [
        (("Q5_0", "Q4_0"), 5, (True, True)),
        (("Q5_0", "Q8_0"), 8, (True, True)),
        (("Q4_0", "Q4_1"), 4, (True, True)),
        (("Q6_K", "Q5_0", "Q4_0"), 8, (False, True, True)),
        (("Q4_1", "Q8_0"), 8, (False, True)),
        (("Q4_K", "Q6_K"), 8, (False, False)),
    ],
)
def test_weights_of_one_product_are_one_weight(
    kinds: tuple[str, ...], bits: int, are_exact: tuple[bool, ...]
) -> None:
    weights = [weight_of(kind, seed, 24 + seed) for seed, kind in enumerate(kinds)]
    packed = pack_blocks(weights)
    assert packed.record.bits == bits
    ends = np.cumsum([0, *(len(weight.levels) for weight in weights)])
    off = errors(packed, weights)
    for first, end, is_exact in zip(ends, ends[1:], are_exact, strict=False):
        assert (off[first:end].max() == 0) == is_exact
    assert off.max() < 0.005


def test_a_large_weight_is_packed_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    for kind in ("Q4_K", "Q5_K"):
        weight = weight_of(kind)
        whole = pack_blocks([weight])
        with monkeypatch.context() as patch:
            patch.setattr(block_packing, "_MAX_ROWS", 7)
            apart = pack_blocks([weight])
        assert np.array_equal(whole.records, apart.records)
        assert np.array_equal(whole.units, apart.units)


@pytest.mark.parametrize("bits", RECORDS)
def test_blocks_of_zeros_are_zero_whatever_their_levels(bits: int) -> None:
    """A scale of zero cannot be held, and files leave any levels beside one."""
    kind = {4: "Q4_0", 5: "Q5_0", 8: "Q8_0"}[bits]
    weight = weight_of(kind)
    weight.scales[:, ::3] = 0
    weight.scales[5] = 0
    packed = pack_blocks([weight])
    assert packed.record.bits == bits
    wanted = weight.values(0, NUM_OUTPUTS)
    assert np.array_equal(numbers(packed) == 0, wanted == 0)


@pytest.mark.parametrize("kind", HELD)
@pytest.mark.parametrize("scale", [65504.0, 1e-7])
def test_scales_of_any_size_are_held(kind: str, scale: float) -> None:
    weight = weight_of(kind)
    weight.scales[3, 1], weight.scales[4, 2] = scale, -scale
    assert errors(pack_blocks([weight]), [weight]).max() < 0.005


def test_scales_far_larger_than_the_numbers_stay_finite() -> None:
    """A block with only zero levels reveals nothing about the size of its scale."""
    weight = weight_of("Q5_0")
    weight.levels[7] = 0
    weight.levels[7, :32] = 1
    weight.scales[7] = 60_000.0
    weight.scales[7, 0] = 1e-4
    found = numbers(pack_blocks([weight]))
    assert np.isfinite(found).all()
    assert not found[7, 32:].any()
