"""Rounded weights: levels are near the rounded numbers, and are cut for the machine."""

from __future__ import annotations

import pytest
import torch

from completion_engine.gpu.weights import Bits, hold, tiles_for


def test_rounding_keeps_the_weights() -> None:
    weight = torch.randn(37, 256, generator=torch.Generator().manual_seed(0))
    held = hold(weight, 8)
    assert (held.dense(torch.float32) - weight).norm() < 0.01 * weight.norm()
    assert held.num_bytes < weight.nbytes / 4 * 1.13


@pytest.mark.parametrize("bits", [16, 8])
def test_rows_of_a_weight_are_its_rows(bits: Bits) -> None:
    weight = torch.randn(20, 128, generator=torch.Generator().manual_seed(2))
    held, chosen = hold(weight, bits), torch.tensor([3, 19, 3])
    assert torch.equal(held.rows(chosen).dense(torch.float32), held.dense(torch.float32)[chosen])


def test_zeros_stay_zeros() -> None:
    assert not hold(torch.zeros(3, 128), 8).dense(torch.float32).any()


def test_numbers_of_any_size_keep_their_signs() -> None:
    for size in (1e-4, 1.0, 1e4):
        weight = size * torch.tensor([[1.0, -1.0] * 16])
        assert torch.allclose(hold(weight, 8).dense(torch.float32), weight, rtol=0.01)


@pytest.mark.parametrize("shape", [(1536, 8960), (2048, 1536), (8960, 1536), (151936, 896), (64, 48)])
@pytest.mark.parametrize("num_processors", [1, 108, 132])
def test_tiles_cover_all_inputs(shape: tuple[int, int], num_processors: int) -> None:
    held = hold(torch.empty(shape, dtype=torch.bfloat16))
    tiles = tiles_for(held, num_processors)
    num_parts = tiles.num_parts(shape[1])
    assert tiles.part_inputs % tiles.input_block == 0
    assert (num_parts - 1) * tiles.part_inputs < shape[1] <= num_parts * tiles.part_inputs
    assert tiles_for(held, num_processors, is_whole=True).num_parts(shape[1]) == 1
