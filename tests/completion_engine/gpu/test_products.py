"""Products in 16 and 8 bits: right against float64, and the same bits beside any number of rows."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
import torch
from torch import Tensor

from completion_engine.gpu.passes import ROW_BLOCK
from completion_engine.gpu.weights import Bits, Tiles, Weight, hold

TILES = Tiles(column_block=16, input_block=32, part_inputs=64, num_stages=2)  # 160 inputs: three parts
NUM_OUTPUTS, NUM_INPUTS = 40, 160
KINDS: tuple[Bits, ...] = (16, 8)


def drawn(num_rows: int, num_columns: int, seed: int, device: torch.device, dtype: torch.dtype) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(num_rows, num_columns, generator=generator).to(device, dtype)


def product(weight: Weight, x: Tensor, tiles: Tiles = TILES) -> Tensor:
    """The kernel's parts [num_parts, num_rows, num_outputs]; other rows fill the rows' last block."""
    from completion_engine.gpu import launch
    from completion_engine.gpu.launch import WIDE_BLOCKS

    block = 2 * ROW_BLOCK * (WIDE_BLOCKS if len(x) > 64 else 1)
    padded = torch.full((-(-len(x) // block) * block, x.shape[1]), 7.0, dtype=x.dtype, device=x.device)
    padded[: len(x)] = x
    size = (tiles.num_parts(weight.num_inputs), len(x), weight.num_outputs)
    parts = torch.full(size, float("nan"), device=x.device)
    launch.run_product(weight, tiles, padded, parts)
    return parts


def check_rows_alone(weights: Sequence[Weight], x: Tensor, tiles: Tiles) -> None:
    """Check that rows of x [130, num_inputs] have the same bits alone, in a product and a gated one."""
    from completion_engine.gpu import launch

    together, padded = product(weights[0], x, tiles), torch.cat([x, x[:126]])
    gated = torch.full((130, weights[0].num_outputs), float("nan"), dtype=x.dtype, device=x.device)
    launch.run_gated_product(*weights, tiles, padded, gated)
    for first, end in ((0, 16), (5, 6), (30, 62), (66, 130)):
        assert torch.equal(product(weights[0], x[first:end], tiles), together[:, first:end])
        alone = torch.full_like(gated[first:end], float("nan"))
        launch.run_gated_product(*weights, tiles, padded[first : first + 64].contiguous(), alone)
        assert torch.equal(alone, gated[first:end])


@pytest.mark.parametrize("bits", KINDS)
def test_parts_add_up_to_the_product(
    bits: Bits, device: torch.device, dtype: torch.dtype, tolerance: float
) -> None:
    weight = hold(drawn(NUM_OUTPUTS, NUM_INPUTS, 1, device, dtype), bits)
    x = drawn(9, NUM_INPUTS, 2, device, dtype)
    wanted = x.double() @ weight.dense(torch.float64).T
    found = product(weight, x).double().sum(0)
    assert found.shape == wanted.shape
    assert (found - wanted).norm() < tolerance * wanted.norm()


@pytest.mark.parametrize("bits", KINDS)
def test_a_row_has_the_same_bits_beside_any_others(
    bits: Bits, device: torch.device, dtype: torch.dtype
) -> None:
    weight = hold(drawn(NUM_OUTPUTS, NUM_INPUTS, 3, device, dtype), bits)
    x = drawn(40, NUM_INPUTS, 4, device, dtype)
    together = product(weight, x)
    for first, end in ((0, 1), (5, 6), (3, 19), (38, 40)):
        assert torch.equal(product(weight, x[first:end]), together[:, first:end])


@pytest.mark.parametrize("bits", KINDS)
def test_a_row_of_a_long_prompt_has_the_bits_of_a_short_pass(
    bits: Bits, device: torch.device, dtype: torch.dtype
) -> None:
    """Four blocks of rows read a tile of weights once; 130 rows end within the first of the next four."""
    weights = [hold(drawn(NUM_OUTPUTS, NUM_INPUTS, seed, device, dtype), bits) for seed in (8, 9)]
    check_rows_alone(weights, drawn(130, NUM_INPUTS, 10, device, dtype), TILES)


@pytest.mark.parametrize("bits", KINDS)
def test_the_gated_product_activates_one_and_multiplies_the_other(
    bits: Bits, device: torch.device, dtype: torch.dtype, tolerance: float
) -> None:
    from completion_engine.gpu import launch

    gate, up = (hold(drawn(NUM_OUTPUTS, NUM_INPUTS, seed, device, dtype), bits) for seed in (5, 6))
    x = drawn(ROW_BLOCK, NUM_INPUTS, 7, device, dtype)
    result = torch.full((5, NUM_OUTPUTS), float("nan"), dtype=dtype, device=device)
    launch.run_gated_product(gate, up, TILES, x, result)
    opened, raised = (x[:5].double() @ weight.dense(torch.float64).T for weight in (gate, up))
    wanted = torch.nn.functional.silu(opened) * raised
    assert (result.double() - wanted).norm() < tolerance * wanted.norm()
