"""Blocks of a file on a GPU: the numbers are the file's own, and a product has the bits of one in bf16."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from completion_engine.gpu.blocks import form_of_kind
from completion_engine.gpu.weights import Tiles, Weight, as_in_file, hold, joined
from completion_engine.models.gguf_layout import BLOCK_SIZES
from completion_engine.target_model.gguf_blocks import QUANTISED, QuantisedWeight, quantised
from tests.completion_engine.gpu.test_products import check_rows_alone, product
from tests.completion_engine.target_model.test_weights import drawn

CPU = torch.device("cpu")
NUM_OUTPUTS = 40
# Whole super-blocks; for small blocks also a step that has inputs for half of its blocks.
NUM_INPUTS = {kind: 768 if BLOCK_SIZES[kind][0] == 256 else 448 for kind in QUANTISED}


def of_file(kind: str, seed: int = 0, num_outputs: int = NUM_OUTPUTS) -> QuantisedWeight:
    """A random weight as a file holds it."""
    return quantised(drawn(kind, num_outputs, NUM_INPUTS[kind], seed), kind)


@pytest.mark.parametrize("kind", QUANTISED)
def test_the_numbers_are_those_of_the_file(kind: str) -> None:
    weight = of_file(kind)
    held = as_in_file(weight, CPU)
    wanted = torch.from_numpy(weight.values(0, NUM_OUTPUTS))
    assert torch.equal(held.dense(torch.float32), wanted)
    chosen = torch.tensor([3, 39, 3])
    assert torch.equal(held.rows(chosen).dense(torch.float32), wanted[chosen])


@pytest.mark.parametrize("kind", QUANTISED)
def test_memory_is_what_the_form_says(kind: str) -> None:
    held = as_in_file(quantised(drawn(kind, 8, 1024), kind), CPU)
    assert held.num_bytes == form_of_kind(kind).num_bytes(8, 1024)
    num_values, num_bytes = BLOCK_SIZES[kind]
    assert held.num_bytes <= 1.03 * (8 * 1024 // num_values * num_bytes)


# Blocks of 128 inputs for all forms, in three parts; 448 inputs end within one.
TILES = Tiles(column_block=16, input_block=32, part_inputs=256, num_stages=2)


def rows_for(weight: Weight, num_rows: int, device: torch.device, dtype: torch.dtype) -> Tensor:
    generator = torch.Generator().manual_seed(num_rows)
    return torch.randn(num_rows, weight.num_inputs, generator=generator).to(device, dtype)


@pytest.mark.parametrize("kind", QUANTISED)
def test_a_product_has_the_bits_of_the_decoded_file(
    kind: str, device: torch.device, dtype: torch.dtype
) -> None:
    """With the file's numbers in the type of the rows, in steps as long as runs. Against float64 as well."""
    held = as_in_file(of_file(kind), device)
    x = rows_for(held, 9, device, dtype)
    found = product(held, x, TILES)
    assert torch.equal(found, product(hold(held.dense(dtype)), x, TILES))
    wanted = x.double() @ held.dense(dtype).double().T
    assert (found.double().sum(0) - wanted).norm() < 1e-5 * wanted.norm()


@pytest.mark.parametrize("kind", ["Q4_K", "Q5_0", "Q6_K", "Q8_0"])
def test_a_row_has_the_same_bits_beside_any_others(
    kind: str, device: torch.device, dtype: torch.dtype
) -> None:
    held = [as_in_file(of_file(kind, seed), device) for seed in (1, 2)]
    x = 0.01 * rows_for(held[0], 130, device, dtype)  # larger numbers overflow in the activation
    check_rows_alone(held, x, TILES)


def test_weights_of_two_types_give_the_columns_of_one_row(device: torch.device) -> None:
    """As query and key in Q4_K beside the value in Q6_K."""
    from completion_engine.gpu import launch

    files = [of_file(kind, seed, 16 * seed) for seed, kind in ((1, "Q4_K"), (2, "Q4_K"), (3, "Q6_K"))]
    weights = [as_in_file(weight, device) for weight in files]
    left, right = joined(weights)
    x = rows_for(left, 5, device, torch.float32)
    parts = torch.full((3, 5, 96), float("nan"), device=device)
    padded = torch.zeros(16, left.num_inputs, device=device)
    padded[:5] = x
    for weight, first in ((left, 0), (right, 48)):
        launch.run_product(weight, TILES, padded, parts[:, :, first : first + weight.num_outputs])
    assert torch.equal(parts, torch.cat([product(weight, x, TILES) for weight in weights], -1))
