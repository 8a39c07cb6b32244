"""Rounded weights: levels are near the rounded numbers, and are cut for the machine."""

from __future__ import annotations

import pytest
import torch

from completion_engine.gpu.weights import Bits, hold, tiles_for


@pytest.mark.parametrize(("bits", "most"), [(8, 0.01), (4, 0.1)])
def test_rounding_keeps_the_weights(bits: Bits, most: float) -> None:
    weight = torch.randn(37, 256, generator=torch.Generator().manual_seed(0))
    held = hold(weight, bits)
    assert (held.dense(torch.float32) - weight).norm() < most * weight.norm()
    assert held.num_bytes < weight.nbytes * bits / 32 * 1.13


def test_four_bits_keep_what_they_can_express() -> None:
    levels = torch.randint(-7, 8, (6, 256), generator=torch.Generator().manual_seed(1)).float()
    levels[:, ::128] = 7
    assert torch.allclose(hold(levels * 0.5, 4).dense(torch.float32), levels * 0.5, atol=1e-5)


@pytest.mark.parametrize("bits", [16, 8, 4])
def test_rows_of_a_weight_are_its_rows(bits: Bits) -> None:
    weight = torch.randn(20, 128, generator=torch.Generator().manual_seed(2))
    held, chosen = hold(weight, bits), torch.tensor([3, 19, 3])
    assert torch.equal(held.rows(chosen).dense(torch.float32), held.dense(torch.float32)[chosen])


def test_zeros_stay_zeros() -> None:
    for bits in (8, 4):
        assert not hold(torch.zeros(3, 128), bits).dense(torch.float32).any()


def test_four_bits_need_no_whole_blocks() -> None:
    weight = torch.randn(4, 100, generator=torch.Generator().manual_seed(3))
    assert (hold(weight, 4).dense(torch.float32) - weight).norm() < 0.1 * weight.norm()


def test_numbers_of_any_size_keep_their_signs() -> None:
    """Scales are float16: they hold no weight above 458,000, and round those below a millionth to 0."""
    for size in (1e-4, 1.0, 1e4):
        weight = size * torch.tensor([[1.0, -1.0] * 16])
        assert torch.allclose(hold(weight, 4).dense(torch.float32), weight, rtol=0.01)


@pytest.mark.parametrize("shape", [(1536, 8960), (2048, 1536), (8960, 1536), (151936, 896), (64, 48)])
@pytest.mark.parametrize("num_processors", [1, 108, 132])
def test_tiles_cover_all_inputs(shape: tuple[int, int], num_processors: int) -> None:
    held = hold(torch.empty(shape, dtype=torch.bfloat16))
    tiles = tiles_for(held, num_processors)
    num_parts = tiles.num_parts(shape[1])
    assert tiles.part_inputs % tiles.input_block == 0
    assert (num_parts - 1) * tiles.part_inputs < shape[1] <= num_parts * tiles.part_inputs
    assert tiles_for(held, num_processors, is_whole=True).num_parts(shape[1]) == 1
