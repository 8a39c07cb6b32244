"""One step of the distilled drafter on the CPU, compiled into one program of kernels, for int8 weights.

It computes the same as `drafter_network.DistilledNetwork.step`. There, calling each kernel from Python took
as long as the kernels themselves.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from completion_engine.cpu.kernels import attention, rounded, rows
from completion_engine.cpu.kernels.attention import Queries, Strides
from completion_engine.cpu.kernels.heads import Heads, split_step
from completion_engine.cpu.kernels.language import Floats
from completion_engine.cpu.kernels.product import Product
from completion_engine.cpu.kernels.program import NO_PATH, BranchTable, Program, Step, TableBranch
from completion_engine.cpu.kernels.rounded import RoundedRows
from completion_engine.target_model.kv_cache import KVCache


class Products(NamedTuple):
    """The drafter's weights, each with the scale of the norm before it folded in."""

    join: Product
    query: Product
    attended: Product
    gate_up: Product
    down: Product


class Memory(NamedTuple):
    """The target's layer that the drafter attends to, and rotary angles [num_positions, 1, head_size]."""

    layer: int
    cos: Tensor
    signed_sin: Tensor


class DraftProgram:
    """A compiled step for a fixed number of beams and caches of one shape."""

    def __init__(
        self, products: Products, memory: Memory, num_beams: int, cache: KVCache, eps: float
    ) -> None:
        hidden, size = cache.shape.hidden_size, cache.shape.head_size
        self._eps, self._ones = eps, np.ones(hidden, np.float32)
        self._table = BranchTable(1)
        self._inputs, self._normed = torch.empty(2, num_beams, hidden), torch.empty(2, num_beams, hidden)
        self._joined = torch.empty(num_beams, 2 * hidden)
        self._x = torch.empty(num_beams, hidden)
        levels = RoundedRows(num_beams, hidden)
        self._added = torch.empty(levels.groups.num_held, products.down.width)
        q, found = (
            torch.empty(num_beams, products.query.num_outputs // size, size, dtype=cache.shape.dtype)
            for _ in range(2)
        )
        self._num_seen, positions = (torch.empty(num_beams, dtype=torch.int64) for _ in range(2))
        none = torch.empty(0, num_beams, size, dtype=cache.shape.dtype)
        self._queries = Queries(q, found, self._num_seen, size**-0.5)
        self._heads = Heads(q, none, none, memory.cos[:, 0], memory.signed_sin[:, 0], positions)
        self._program = Program([*self._steps(products, memory.layer, levels, cache)])

    def run(
        self, embedded: Tensor, states: Tensor, cache: KVCache, position: int, output_norm: Floats
    ) -> Tensor:
        """Return the states [num_beams, hidden_size] float32 after tokens at `position`.

        `embedded` and `states`, of the same shape, are the tokens' embeddings and the states before them.
        """
        num_beams, hidden = self._x.shape
        # Copied into buffers of one type, because a kernel is compiled for each type that it is called with.
        self._inputs[0], self._inputs[1] = embedded, states
        rows.norm(self._inputs.view(-1, hidden).numpy(), self._eps, self._normed.view(-1, hidden).numpy())
        self._joined[:, :hidden], self._joined[:, hidden:] = self._normed
        self._x.zero_()
        self._heads.positions.fill_(position)
        self._num_seen.fill_(cache.num_cached)
        keys, values = cache.keys.data_ptr(), cache.values.data_ptr()
        self._table.fill([TableBranch(0, num_beams, keys, values, 0, NO_PATH)])
        self._program.run()
        found = torch.empty(num_beams, hidden)
        added = self._added[:num_beams, :hidden]
        rows.add_norm(self._x.numpy(), added.numpy(), output_norm, self._eps, found.numpy())
        return found

    def _steps(self, products: Products, layer: int, levels: RoundedRows, cache: KVCache) -> Iterator[Step]:
        num_beams, num_held = len(self._x), levels.groups.num_held
        keys, values, size = cache.keys, cache.values, cache.keys.element_size()
        offsets = layer * keys.stride(0) * size, layer * values.stride(0) * size
        joined = RoundedRows(*self._joined.shape)
        attended = RoundedRows(num_beams, products.query.num_outputs)
        gated = RoundedRows(num_beams, products.gate_up.num_outputs // 2)
        query, gate_up = (torch.empty(num_held, x.width) for x in (products.query, products.gate_up))
        # Join the normed embedding and state, rounded to int8; the next norm adds the result to x.
        yield rounded.of_numbers(self._joined, joined)
        yield products.join.step(joined, self._added)
        # Add to x, norm and round; compute the queries and rotate them.
        yield rounded.of_norm(self._x, self._added, self._ones, self._eps, levels)
        yield products.query.step(levels, query)
        yield split_step(query, self._heads, None, self._eps)
        # Attend to the target's cached keys and values; multiply the result, rounded, by the output weight.
        yield attention.step_in(
            self._table, self._queries, keys.shape[1], Strides.of(keys[0], values[0]), offsets
        )
        yield rounded.of_numbers(self._queries.found.flatten(1), attended)
        yield products.attended.step(attended, self._added)
        # Add to x, norm and round; run the gated MLP. `run` adds its result to x.
        yield rounded.of_norm(self._x, self._added, self._ones, self._eps, levels)
        yield products.gate_up.step(levels, gate_up)
        yield rounded.of_gate(gate_up, gated.num_inputs, gated)
        yield products.down.step(gated, self._added)
