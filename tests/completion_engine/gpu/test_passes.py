"""The inputs of a pass, the shapes of passes, and their shared memory."""

from __future__ import annotations

import torch

from completion_engine.gpu.passes import (
    HEADER,
    WIDTHS,
    DeviceArena,
    PassInputs,
    PassShape,
    ancestors_of,
    shape_for,
)
from completion_engine.target_model.decoder import lay_out
from completion_engine.target_model.kv_cache import CacheShape, KVCache

CPU = torch.device("cpu")
NUM_ROWS = 16


def test_the_inputs_of_a_pass_say_where_rows_stand() -> None:
    parents = [-1, 0, 0, 2, 3, 1]
    cache = KVCache(CacheShape(1, 1, 4, 4, 64, torch.float32, CPU))
    cache.keep([0] * 5)
    inputs = PassInputs.empty(PassShape(NUM_ROWS, is_tree=True, wants_logits=True), CPU)
    inputs.fill([9, 8, 7, 6, 5, 4], lay_out(parents), cache)
    header, tokens, depths, ancestors = inputs.numbers.split([HEADER, NUM_ROWS, NUM_ROWS, NUM_ROWS**2])
    assert tokens[:6].tolist() == [9, 8, 7, 6, 5, 4]
    assert (header[3].item(), header[4].item(), HEADER) == (5, 6, 8)
    assert depths[:6].tolist() == [0, 1, 1, 2, 3, 2]
    ways = [[0], [0, 1], [0, 2], [0, 2, 3], [0, 2, 3, 4], [0, 1, 5]]
    assert [
        ancestors.view(NUM_ROWS, NUM_ROWS)[row, : len(way)].tolist() for row, way in enumerate(ways)
    ] == ways


def test_shapes_are_few_and_hold_their_rows() -> None:
    for num_rows in range(1, WIDTHS[-1] + 1):
        shape = shape_for(lay_out(range(-1, num_rows - 1)), 0)
        assert shape.num_rows >= num_rows
        assert shape.num_rows in WIDTHS
    tree = shape_for(lay_out([-1, 0, 0]), 1)
    assert tree == PassShape(8, is_tree=True, wants_logits=True)


def test_an_arena_gives_the_same_memory_to_every_width() -> None:
    arena = DeviceArena(CPU, 64)
    few, many = arena.rows("x", 8, (3,), torch.float32), arena.rows("x", 64, (3,), torch.float32)
    few[7, 2] = 5.0
    assert many[7, 2] == 5.0


def test_ancestors_of_a_chain_are_all_rows_before() -> None:
    table = torch.tensor(ancestors_of(lay_out(range(-1, 3)), 8)).view(8, 8)
    assert table[3, :4].tolist() == [0, 1, 2, 3]
    assert HEADER == 8
