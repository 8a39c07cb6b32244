"""Quantised products: near the exact result, and blind to the rows beside."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from completion_engine.cpu.block_packing import pack_blocks
from completion_engine.cpu.kernels.dot import instruction_sets
from completion_engine.cpu.kernels.packing import RECORDS, PackedWeight
from completion_engine.cpu.kernels.product import Product
from completion_engine.cpu.linear import QuantisedLinear, can_quantise, packed, quantise_rows
from completion_engine.target_model.gguf_blocks import QuantisedWeight
from completion_engine.target_model.threads import num_threads_here, use_threads

TYPES = (torch.bfloat16, torch.float32)
needs_bytes = pytest.mark.skipif(
    not can_quantise(torch.device("cpu")), reason="no fast products of bytes here"
)


def random(*shape: int, seed: int = 0, dtype: torch.dtype = torch.float32) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed)).to(dtype)


def linear_of(weight: Tensor, bias: Tensor | None = None) -> QuantisedLinear:
    return QuantisedLinear(packed(weight), bias)


@pytest.mark.parametrize("num_rows", [1, 2, 5, 7, 8, 9, 16, 24, 64, 100, 256])
@needs_bytes
def test_a_row_does_not_feel_the_rows_beside_it(num_rows: int) -> None:
    linear = linear_of(random(224, 448, dtype=torch.bfloat16), random(224, seed=1, dtype=torch.bfloat16))
    x = random(256, 448, seed=2, dtype=torch.bfloat16)
    together = linear(x)
    for first in (0, 256 - num_rows):
        rows = slice(first, first + num_rows)
        assert torch.equal(linear(x[rows]), together[rows])


@needs_bytes
@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("has_bias", [False, True])
def test_bytes_come_near_the_exact_product(dtype: torch.dtype, *, has_bias: bool) -> None:
    weight, x = random(128, 896, dtype=dtype), random(8, 896, seed=1, dtype=dtype)
    bias = 50 * random(128, seed=2, dtype=dtype) if has_bias else None
    found = linear_of(weight, bias)(x)
    exact = nn.functional.linear(x.float(), weight.float(), None if bias is None else bias.float())
    assert (found - exact).norm() < 0.02 * exact.norm()


@pytest.mark.parametrize("instruction_set", instruction_sets())
@pytest.mark.parametrize(
    ("bits", "ends"),
    [(8, (-127, 3, 40, 127)), (5, (-16, 3, 14, 15)), (4, (0, 2, 7, 15))],
)
def test_whole_numbers_come_out_exactly(bits: int, ends: tuple[int, ...], instruction_set: int) -> None:
    """Sums of the largest levels do not saturate."""
    levels = np.full((16, 16, 32), ends[-1], np.int8)
    levels[1::2] = ends[0]
    levels[:, :, : len(ends)] = ends
    scales = np.ones((16, 16), np.float32)
    floors = np.zeros_like(scales) if bits == 4 else None
    weight = QuantisedWeight(levels.reshape(16, -1), scales, min(ends), max(ends), floors)
    x = torch.full((8, 512), 127.0)
    x[1::2] *= -1
    held = pack_blocks([weight])
    assert held.record.bits == bits
    assert torch.equal(multiply(held, x, instruction_set), x @ torch.from_numpy(weight.values(0, 16)).T)


def multiply(held: PackedWeight, x: Tensor, instruction_set: int) -> Tensor:
    """The product by one of the machine's instruction sets."""
    return Product(held, np.zeros(len(held.units), np.float32), instruction_set)(quantise_rows(x))


@pytest.mark.parametrize("bits", RECORDS)
@pytest.mark.parametrize("num_rows", [1, 2, 4, 8, 16, 20, 24, 40])
def test_every_instruction_set_gives_the_same_bits(num_rows: int, bits: int) -> None:
    """Uses 33 blocks of inputs: as many as the matrix unit takes at once, twice, and one."""
    held, x = pack_blocks([rounded(bits, 33)]), random(num_rows, 33 * 32, seed=1)
    found = [multiply(held, x, instruction_set) for instruction_set in instruction_sets()]
    assert all(torch.equal(other, found[0]) for other in found[1:])


@needs_bytes
def test_rows_and_channels_of_zeros_give_zero() -> None:
    weight, x = random(16, 64), random(8, 64, seed=1)
    weight[3], x[5] = 0, 0
    found = linear_of(weight)(x)
    assert not found[5].any()
    assert not found[:, 3].any()
    assert found.isfinite().all()


def rounded(bits: int, num_blocks: int = 3, num_outputs: int = 48) -> QuantisedWeight:
    """A weight as files hold it: each block of 32 inputs has a scale."""
    rng = np.random.default_rng(bits)
    lowest = 0 if bits == 4 else -(2 ** (bits - 1))
    levels = rng.integers(lowest, lowest + 2**bits, (num_outputs, num_blocks * 32)).astype(np.int8)
    scales = (rng.random((num_outputs, num_blocks)) + 0.01).astype(np.float32)
    floors = -rng.random(scales.shape).astype(np.float32) if bits == 4 else None
    return QuantisedWeight(levels, scales, lowest, lowest + 2**bits - 1, floors)


@needs_bytes
@pytest.mark.parametrize(("bits", "num_bits"), [(4, 5), (5, 5.5), (8, 8.5)])
def test_weights_take_as_few_bits_as_hold_them(bits: int, num_bits: float) -> None:
    weight = rounded(bits)
    num_bytes = 32 * num_bits / 8
    linear = QuantisedLinear(pack_blocks([weight]))
    assert linear.num_bytes == 48 * (3 * num_bytes + 4)  # a block's levels and scales, and each output's unit
    found, wanted = linear.rows(torch.arange(48)), torch.from_numpy(weight.values(0, 48))
    assert (found - wanted).norm() < 0.001 * wanted.norm()  # scales are rounded to float16


@needs_bytes
def test_plain_numbers_take_eight_bits() -> None:
    weight = random(48, 90, dtype=torch.bfloat16)
    found = linear_of(weight).rows(torch.arange(48))
    assert (found - weight.float()).norm() < 0.008 * weight.float().norm()


@needs_bytes
@pytest.mark.parametrize("bits", RECORDS)
@pytest.mark.parametrize("num_rows", [1, 2, 3, 8, 13, 16, 17, 24, 40])
def test_any_number_of_rows_and_bits_comes_near_the_exact_product(num_rows: int, bits: int) -> None:
    weight, x = rounded(bits, num_outputs=41), random(num_rows, 96, seed=1)
    exact = x @ torch.from_numpy(weight.values(0, 41)).T
    assert (QuantisedLinear(pack_blocks([weight]))(x) - exact).norm() < 0.02 * exact.norm()


@needs_bytes
def test_a_single_large_weight_is_not_lost() -> None:
    weight = random(48, 96)
    weight[40, 70] = 50
    linear = linear_of(weight)
    assert linear.rows(torch.tensor([40]))[0, 70] == pytest.approx(float(weight[40, 70]), rel=0.02)


@needs_bytes
@pytest.mark.parametrize("factor", [2.0**-100, 1.0, 2.0**100])
def test_weights_of_any_size_are_held(factor: float) -> None:
    weight = factor * random(16, 64)
    found = linear_of(weight).rows(torch.arange(16))
    assert (found / factor - weight / factor).norm() < 0.01 * (weight / factor).norm()


@needs_bytes
@pytest.mark.parametrize("num_threads", [1, 2, 3])
def test_the_number_of_threads_changes_no_bit(num_threads: int) -> None:
    linear, x = linear_of(random(4096, 448, dtype=torch.bfloat16)), random(24, 448, seed=1)
    before, wanted = num_threads_here(), linear(x)
    use_threads(num_threads)
    try:
        for _ in range(20):
            assert torch.equal(linear(x), wanted)
    finally:
        use_threads(before)
