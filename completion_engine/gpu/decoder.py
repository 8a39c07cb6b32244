"""The Llama family on a CUDA device: our kernels over static buffers, one graph for each shape of pass.

As `target_model.decoder.Decoder` says, but a tree needs no branches: attention reads each row's
ancestors through a table, and the pass's rows lie in the one cache (`target_model.decoder.InPlaceBranches`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from completion_engine.gpu import launch
from completion_engine.gpu.passes import (
    WIDTHS,
    DeviceArena,
    PassInputs,
    PassShape,
    Runner,
    shape_for,
)
from completion_engine.gpu.weights import Bits, TiledWeight, Weight, hold, read_head, read_weight
from completion_engine.target_model.decoder import Layout, lay_out
from completion_engine.target_model.kv_cache import CacheShape, KVCache
from completion_engine.target_model.llama_family import FamilyDecoder, FamilyModel, stacked_bias
from completion_engine.target_model.passes import ROWS


@dataclass(frozen=True, slots=True)
class DeviceLayer:
    """One decoder layer's weights. `qkv` are products whose outputs lie side by side."""

    input_norm: Tensor
    heads: launch.HeadWeights
    qkv: tuple[TiledWeight, ...]
    out: TiledWeight
    mlp_norm: Tensor
    gate: TiledWeight
    up: TiledWeight
    down: TiledWeight

    @property
    def num_bytes(self) -> int:
        """Memory of the products' weights."""
        products = (*self.qkv, self.out, self.gate, self.up, self.down)
        return sum(product.weight.num_bytes for product in products)


@dataclass(frozen=True, slots=True)
class PassBuffers:
    """The buffers of one shape."""

    inputs: PassInputs
    x: Tensor
    normed: Tensor
    queries: Tensor
    attended: Tensor
    gated: Tensor
    partial: launch.Partial
    logits: Tensor


class GraphedDecoder(FamilyDecoder):
    """Takes the weights of a model onto `device`, layer by layer; `capacity` positions fit into a cache.

    With `bits` below 16, weights that their file quantises keep its levels, and others are rounded to this
    number of bits. The embedding stays as it is. The copy of a layer is released before the
    next one is read, so the device never holds more than one layer twice. Call `rehearse` before the first
    request.
    """

    row_step = ROWS
    computes_in_torch = True

    def __init__(
        self,
        model: FamilyModel,
        capacity: int,
        device: torch.device,
        bits: Bits = 16,
    ) -> None:
        self._table = model.embedding.to(device)
        super().__init__(model, capacity, device, self._table)
        self._device, self._dtype = device, self._table.dtype
        self.heads = launch.DeviceHeads(self.num_heads, self.num_kv_heads, self.head_size, capacity)
        self.scale = self.head_size**-0.5
        self._num_processors = launch.num_processors(device)
        self.bits = bits
        is_shared = model.is_tied and bits == 16
        head = hold(self._table) if is_shared else read_head(model, bits, device)
        self.head = TiledWeight.of(head, self._num_processors, is_whole=True)
        self.layers = [self._layer(model, index) for index in range(model.num_layers)]
        self._runner = Runner(device)
        self._arena = DeviceArena(device, WIDTHS[-1])
        self._passes: dict[PassShape, PassBuffers] = {}
        ends = self._table.nbytes + (0 if is_shared else self.head.weight.num_bytes)
        self.num_weight_bytes = ends + sum(layer.num_bytes for layer in self.layers)

    def head_rows(self, tokens: Tensor) -> Tensor:
        """See `Decoder.head_rows`."""
        return self.head.weight.rows(tokens).dense(self._dtype)

    def forward(self, rows: Tensor, layout: Layout, caches: Sequence[KVCache], num_logits: int) -> Tensor:
        """See `Decoder.forward`; `caches` is one cache, once for each branch."""
        cache = caches[0]
        if cache.capacity != self.heads.capacity:
            raise ValueError(f"a cache of {cache.capacity} positions; the graphs read {self.heads.capacity}")
        shape = shape_for(layout, num_logits)
        buffers = self.buffers(shape)
        buffers.inputs.fill(rows.tolist(), layout, cache)
        self._runner.run(shape, lambda: self.compute(buffers, wants_logits=shape.wants_logits))
        return buffers.logits[len(rows) - num_logits : len(rows)].clone()

    def rehearse(self) -> None:
        """Run a pass of every shape, so that none is compiled or captured while a user waits.

        Does nothing where passes are not captured.
        """
        if not self._runner.captures:
            return
        sizes = (self.num_layers, self.num_kv_heads, self.head_size, self.hidden_size)
        cache = KVCache(CacheShape(*sizes, self.heads.capacity, self._dtype, self._device))
        for width in (width for width in WIDTHS if width < cache.capacity):
            rows = torch.zeros(width, dtype=torch.int64)
            chain, tree = lay_out(range(-1, width - 1)), lay_out([-1, 0, 0, *range(2, width - 1)])
            for layout, num_logits in ((chain, 0), (chain, 1), (tree, 1)):
                self.forward(rows, layout, [cache], num_logits)

    def buffers(self, shape: PassShape) -> PassBuffers:
        """The buffers of a shape, always the same."""
        if shape not in self._passes:
            self._passes[shape] = self._new_buffers(shape)
        return self._passes[shape]

    def compute(self, at: PassBuffers, *, wants_logits: bool) -> None:
        """One pass over static buffers, as their inputs say: the same work every time, to be captured."""
        launch.run_embed(at.inputs, self._table, self.layers[0].input_norm, self.eps, at.x, at.normed)
        next_norms = [*(layer.input_norm for layer in self.layers[1:]), self._norm]
        for index, (layer, next_norm) in enumerate(zip(self.layers, next_norms, strict=True)):
            qkv = self._parts_of(at.normed, *layer.qkv)
            launch.run_place_heads(at.inputs, qkv, layer.heads, self.heads, index, self.eps, at.queries)
            launch.run_attention(
                at.inputs, at.queries, self.heads, index, self.scale, at.partial, at.attended
            )
            parts = self._parts_of(at.attended.flatten(1), layer.out)
            launch.run_add_and_norm(parts, layer.mlp_norm, self.eps, at.x, at.normed)
            launch.run_gated_product(
                layer.gate.weight, layer.up.weight, layer.gate.tiles, at.normed, at.gated
            )
            parts = self._parts_of(at.gated, layer.down)
            launch.run_add_and_norm(parts, next_norm, self.eps, at.x, at.normed)
        launch.run_store_hidden(at.inputs, at.normed)
        if wants_logits:
            launch.run_product(self.head.weight, self.head.tiles, at.normed, at.logits[None])

    def _parts_of(self, x: Tensor, *products: TiledWeight) -> Tensor:
        """Products of a layer, whose outputs lie side by side, in parts [num_parts, num_rows, num_outputs].

        The parts are float32.
        """
        num_outputs = sum(product.weight.num_outputs for product in products)
        size = (products[0].num_parts, len(x), num_outputs)
        name = f"parts {size[0]} {size[2]}"
        flat = self._arena.rows(name, len(x), (size[0] * size[2],), torch.float32)
        parts, first = flat.view(size), 0
        for product in products:
            end = first + product.weight.num_outputs
            launch.run_product(product.weight, product.tiles, x, parts[:, :, first:end])
            first = end
        return parts

    def _new_buffers(self, shape: PassShape) -> PassBuffers:
        num_rows, heads, dtype = shape.num_rows, self.heads, self._dtype

        def rows(name: str, *row_shape: int, of: torch.dtype = dtype) -> Tensor:
            return self._arena.rows(name, num_rows, row_shape, of)

        by_chunk = (heads.num_chunks, heads.num_heads)
        partial = launch.Partial(
            rows("sums", *by_chunk, heads.head_size, of=torch.float32),
            rows("tops", *by_chunk, of=torch.float32),
            rows("totals", *by_chunk, of=torch.float32),
        )
        return PassBuffers(
            PassInputs.empty(shape, self._device),
            rows("x", self.hidden_size),
            rows("normed", self.hidden_size),
            rows("queries", heads.num_heads, heads.head_size),
            rows("attended", heads.num_heads, heads.head_size),
            rows("gated", self.layers[0].gate.weight.num_outputs),
            partial,
            rows("logits", self.vocab_size),
        )

    def _layer(self, model: FamilyModel, index: int) -> DeviceLayer:
        """A layer on the device.

        Its products have no biases except those of the heads: see `memory.why_not_model`.
        """
        parts = model.layer(index, reads_products=False).to(self._device)

        def weight(part: str) -> Weight:
            return read_weight(model, index, part, self.bits, self._device)

        gate, up = weight("gate"), weight("up")
        if gate.form != up.form:  # one program computes both
            gate, up = (hold(model.product(index, part).to(self._device), 8) for part in ("gate", "up"))
        heads = launch.HeadWeights(
            stacked_bias(parts.q, parts.k, parts.v), parts.q_norm, parts.k_norm, self._cos, self._sin
        )
        return DeviceLayer(
            parts.input_norm,
            heads,
            TiledWeight.together([weight(part) for part in ("q", "k", "v")], self._num_processors),
            self._tiled(weight("out")),
            parts.mlp_norm,
            self._tiled(gate, is_whole=True),
            self._tiled(up, is_whole=True),
            self._tiled(weight("down")),
        )

    def _tiled(self, weight: Weight, *, is_whole: bool = False) -> TiledWeight:
        return TiledWeight.of(weight, self._num_processors, is_whole=is_whole)
