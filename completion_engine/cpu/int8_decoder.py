"""The Llama family on the CPU with weights in bytes or less: a pass is one program of kernels.

The program of a number of rows is written when it is first wanted, with places for all that flows through it;
a pass fills in its rows and branches. Keeps the contract of `target_model.decoder.Decoder`.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from completion_engine.cpu.block_packing import pack_blocks
from completion_engine.cpu.kernels import attention, rounded
from completion_engine.cpu.kernels.attention import Queries, Strides
from completion_engine.cpu.kernels.heads import HeadNorms, Heads, place_step, split_step
from completion_engine.cpu.kernels.language import Floats, array_of
from completion_engine.cpu.kernels.packing import PackedWeight
from completion_engine.cpu.kernels.program import BranchTable, Program, Step, TableBranch
from completion_engine.cpu.kernels.rounded import RoundedRows
from completion_engine.cpu.kernels.rows import add_norm
from completion_engine.cpu.linear import QuantisedLinear, packed
from completion_engine.cpu.packed_file import Source, load_packed
from completion_engine.errors import UserError
from completion_engine.target_model.brake import Brake
from completion_engine.target_model.decoder import Layout
from completion_engine.target_model.kv_cache import KVCache
from completion_engine.target_model.llama_family import (
    FamilyDecoder,
    FamilyModel,
    LayerParts,
    stacked,
    stacked_bias,
)
from completion_engine.target_model.weights import Affine

# The products of a layer by name: each multiplies with the parts that read the same input, as one weight.
_PRODUCTS = {"qkv": ("q", "k", "v"), "out": ("out",), "gate_up": ("gate", "up"), "down": ("down",)}


def _affines(parts: LayerParts, product: str) -> list[Affine]:
    return [getattr(parts, name) for name in _PRODUCTS[product]]


class _Layer:
    """One layer's weights; norms in float32. `packed` holds those of its products."""

    def __init__(self, parts: LayerParts, packed: Sequence[PackedWeight]) -> None:
        self.input_norm, self.mlp_norm = _wide(parts.input_norm), _wide(parts.mlp_norm)
        self.qkv, self.out, self.gate_up, self.down = (
            QuantisedLinear(weight, stacked_bias(*_affines(parts, product)))
            for weight, product in zip(packed, _PRODUCTS, strict=True)
        )
        self.norms: HeadNorms | None = None
        if parts.q_norm is not None and parts.k_norm is not None:
            self.norms = HeadNorms(_wide(parts.q_norm), _wide(parts.k_norm))

    @property
    def num_bytes(self) -> int:
        return sum(part.num_bytes for part in (self.qkv, self.out, self.gate_up, self.down))


class Int8Decoder(FamilyDecoder):
    """See the module. Raises UserError for a model that it cannot hold."""

    row_step = 1
    computes_in_torch = False

    def __init__(self, model: FamilyModel, num_positions: int, stored_at: Path | None = None) -> None:
        """Packed weights lie in the file `stored_at`, which is made where it is missing, or in memory."""
        if not self.serves(model):
            raise UserError(
                f"A model with heads of {model.head_size} numbers cannot run in int8.",
                advice="Set dtype to auto.",
            )
        super().__init__(model, num_positions, embedding=model.embedding_table)
        held = load_packed(stored_at, _sources(model))
        self._head = QuantisedLinear(held["head"])
        self.layers = [
            _Layer(
                model.layer(index, reads_products=False),
                [held[f"{index}.{name}"] for name in _PRODUCTS],
            )
            for index in range(model.num_layers)
        ]
        self.arena = Arena()
        self._passes: dict[tuple[int, int], _Pass] = {}

    @property
    def num_weight_bytes(self) -> int:
        """See `Decoder.num_weight_bytes`; it grows with the rows of the embedding that were used."""
        return self._embedding.nbytes + self._head.num_bytes + sum(x.num_bytes for x in self.layers)

    @staticmethod
    def serves(model: FamilyModel) -> bool:
        """Whether the kernels can read the model's heads."""
        return attention.serves_heads(model.head_size)

    def head_rows(self, tokens: Tensor) -> Tensor:
        """See `Decoder.head_rows`."""
        return self._head.rows(tokens).to(self._embedding.dtype)

    def forward(self, rows: Tensor, layout: Layout, caches: Sequence[KVCache], num_logits: int) -> Tensor:
        """See `Decoder.forward`."""
        key = len(rows), caches[0].capacity
        if key not in self._passes:
            self._passes[key] = _Pass(self, len(rows), caches[0])
        x, added = self._passes[key].run(self._embedding[rows], layout, caches, self.brake)
        hidden = torch.empty(len(rows), self.hidden_size, dtype=self._embedding.dtype)
        add_norm(array_of(x), array_of(added), array_of(self._norm), self.eps, array_of(hidden))
        for branch, cache in zip(layout.branches, caches, strict=True):
            start = cache.num_cached
            cache.hidden[start : start + len(branch.path)] = hidden[list(branch.path)]
        return self._head(hidden[-num_logits:]) if num_logits else hidden.new_empty(0, self.vocab_size)


class Arena:
    """Memory that the programs of all numbers of rows share, for one runs at a time."""

    def __init__(self) -> None:
        self._held: dict[str, Tensor] = {}

    def rows(self, name: str, *shape: int, dtype: torch.dtype = torch.float32) -> Tensor:
        """A buffer of this shape. It may still hold its previous content."""
        size = math.prod(shape)
        held = self._held.get(name)
        if held is None or held.numel() < size:
            held = self._held[name] = torch.empty(size, dtype=dtype)
        return held[:size].view(shape)


class _Buffers(NamedTuple):
    """What flows through a pass. `x` is the residual stream, and `added` what is added to it next."""

    x: Tensor
    added: Tensor
    normed: RoundedRows
    qkv: Tensor
    heads: Heads
    queries: Queries
    attended: RoundedRows
    gate_up: Tensor
    gated: RoundedRows


class _Pass:
    """The program of one number of rows, for caches of one capacity."""

    def __init__(self, decoder: Int8Decoder, num_rows: int, cache: KVCache) -> None:
        self._table = BranchTable(num_rows)
        self._at = _buffers(decoder, num_rows)
        self._program = Program([*self._steps(decoder, cache)])

    def run(
        self, embedded: Tensor, layout: Layout, caches: Sequence[KVCache], brake: Brake
    ) -> tuple[Tensor, Tensor]:
        """Return the stream after the last layer, and the last addend, both [num_rows, hidden_size].

        Raises CancelledError where `brake` ends it.
        """
        at, start = self._at, caches[0].num_cached
        at.x.zero_()
        at.added[: len(embedded), : embedded.shape[1]] = embedded
        at.heads.positions[:] = torch.tensor(layout.depths) + start
        torch.add(at.heads.positions, 1, out=at.queries.num_seen)
        self._table.fill(
            [
                TableBranch(
                    branch.first,
                    branch.end - branch.first,
                    cache.keys.data_ptr(),
                    cache.values.data_ptr(),
                    start,
                    np.array(branch.path, np.int64),
                )
                for branch, cache in zip(layout.branches, caches, strict=True)
            ]
        )
        self._program.run(brake)
        return at.x, at.added[: len(embedded), : embedded.shape[1]]

    def _steps(self, decoder: Int8Decoder, cache: KVCache) -> Iterator[Step]:
        """Steps of all layers in order."""
        at, table, eps = self._at, self._table, decoder.eps
        keys, values = cache.keys, cache.values
        room = keys.stride(3), values.shape[2]
        strides, size = Strides.of(keys[0], values[0]), keys.element_size()
        for index, layer in enumerate(decoder.layers):
            offsets = index * keys.stride(0) * size, index * values.stride(0) * size
            yield rounded.of_norm(at.x, at.added, layer.input_norm, eps, at.normed)
            yield layer.qkv.product.step(at.normed, at.qkv)
            yield split_step(at.qkv, at.heads, layer.norms, eps)
            yield place_step(table, at.heads, room, offsets)
            yield attention.step_in(table, at.queries, decoder.num_kv_heads, strides, offsets)
            yield rounded.of_numbers(at.queries.found.flatten(1), at.attended)
            yield layer.out.product.step(at.attended, at.added)
            yield rounded.of_norm(at.x, at.added, layer.mlp_norm, eps, at.normed)
            yield layer.gate_up.product.step(at.normed, at.gate_up)
            yield rounded.of_gate(at.gate_up, at.gated.num_inputs, at.gated)
            yield layer.down.product.step(at.gated, at.added)


def _buffers(decoder: Int8Decoder, num_rows: int) -> _Buffers:
    rows, layer, dtype = decoder.arena.rows, decoder.layers[0], decoder.embedding.dtype
    num_heads, num_kv, size = decoder.num_heads, decoder.num_kv_heads, decoder.head_size
    normed = RoundedRows(num_rows, decoder.hidden_size)
    num_held = normed.groups.num_held
    k, v = (rows(name, num_kv, num_rows, size, dtype=dtype) for name in ("k", "v"))
    q, found = (rows(name, num_rows, num_heads, size, dtype=dtype) for name in ("q", "found"))
    positions, num_seen = (rows(name, num_rows, dtype=torch.int64) for name in ("positions", "seen"))
    cos, sin = (table[:, 0] for table in decoder.rotary)
    return _Buffers(
        rows("x", num_rows, decoder.hidden_size),
        rows("added", num_held, layer.out.product.width),
        normed,
        rows("qkv", num_held, layer.qkv.product.width),
        Heads(q, k, v, cos, sin, positions),
        Queries(q, found, num_seen, size**-0.5),
        RoundedRows(num_rows, num_heads * size),
        rows("gate and up", num_held, layer.gate_up.product.width),
        RoundedRows(num_rows, layer.gate_up.product.num_outputs // 2),
    )


def _sources(model: FamilyModel) -> dict[str, Source]:
    """The weights to pack, by the names under which they are stored.

    Weights are read when they are packed.
    """
    found = {"head": Source((model.vocab_size, model.hidden_size), functools.partial(_pack_head, model))}
    for index in range(model.num_layers):
        parts = model.layer(index, reads_products=False)
        for product in _PRODUCTS:
            affines = _affines(parts, product)
            size = sum(len(weight) for weight, _ in affines), affines[0][0].shape[1]
            make = functools.partial(_pack_product, model, index, product)
            found[f"{index}.{product}"] = Source(size, make)
    return found


def _pack_head(model: FamilyModel) -> PackedWeight:
    quantised = model.quantised_head
    return pack_blocks(quantised) if quantised else packed(model.head)


def _pack_product(model: FamilyModel, index: int, product: str) -> PackedWeight:
    """One of a layer's `_PRODUCTS`: with the levels of the model's file, or rounded where it has none."""
    if quantised := model.quantised(index, _PRODUCTS[product]):
        return pack_blocks(quantised)
    return packed(stacked(*_affines(model.layer(index), product))[0])


def _wide(weight: Tensor) -> Floats:
    numbers: Floats = weight.float().numpy()
    return numbers
