"""The Llama family on a CUDA device: our kernels over static buffers, one graph for each shape of pass.

The same contract as `decoder.FusedDecoder`, except that a tree needs no lanes: attention reads each row's
ancestors through a table, and the pass's rows lie in the one cache (`branches.InPlaceBranches`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from completion_engine.attention import ROWS
from completion_engine.gpu import launch
from completion_engine.gpu.passes import WIDTHS, Arena, Packet, PassShape, shape_for
from completion_engine.gpu.runner import Runner, runner_for
from completion_engine.gpu.tiles import Tiles, tiles_for
from completion_engine.gpu.weights import Bits, Weight, hold
from completion_engine.kv_cache import KVCache
from completion_engine.lanes import Layout
from completion_engine.llama_family import rotary_tables


@dataclass(frozen=True, slots=True)
class _Product:
    """A weight, and how its product is cut."""

    weight: Weight
    tiles: Tiles

    @property
    def num_parts(self) -> int:
        return self.tiles.num_parts(self.weight.num_inputs)


@dataclass(frozen=True, slots=True)
class _Layer:
    """One decoder layer's weights."""

    input_norm: Tensor
    heads: launch.HeadWeights
    qkv: _Product
    out: _Product
    post_norm: Tensor
    gate: _Product
    up: _Product
    down: _Product

    @property
    def num_bytes(self) -> int:
        products = (self.qkv, self.out, self.gate, self.up, self.down)
        return sum(product.weight.num_bytes for product in products)


@dataclass(frozen=True, slots=True)
class PassBuffers:
    """The buffers of one shape."""

    packet: Packet
    x: Tensor
    normed: Tensor
    queries: Tensor
    attended: Tensor
    gated: Tensor
    partial: launch.Partial
    logits: Tensor


class GraphedDecoder:
    """Takes the weights over from a transformers model, which may lie on another device, layer by layer.

    `bits` are those of the layers' weights; the head and the embedding stay as they are. Modules are let go
    of as they are taken over, so the device never holds more than one layer twice.
    """

    row_step = ROWS

    def __init__(
        self, model: Any, capacity: int, device: torch.device, bits: Bits = 16, runner: Runner | None = None
    ) -> None:
        config = model.config
        attention = model.model.layers[0].self_attn
        self._device = device
        self._embedding = self._moved(model.model.embed_tokens.weight)
        self._dtype = self._embedding.dtype
        self.num_layers = config.num_hidden_layers
        self.num_kv_heads = config.num_key_value_heads
        self.head_size = attention.head_dim
        self.hidden_size = config.hidden_size
        self.vocab_size = config.vocab_size
        self._heads = launch.Heads(config.num_attention_heads, self.num_kv_heads, self.head_size, capacity)
        self._scale, self._eps = float(attention.scaling), float(config.rms_norm_eps)
        self._num_processors = launch.num_processors(self._device)
        tables = rotary_tables(config.to_dict(), self.head_size, capacity, self._dtype)
        self._cos, self._sin = (self._moved(table) for table in tables)
        self._norm = self._moved(model.model.norm.weight)
        is_tied = model.lm_head.weight.data_ptr() == model.model.embed_tokens.weight.data_ptr()
        self._head = self._product(self._embedding if is_tied else model.lm_head.weight, 16, is_whole=True)
        self._layers: list[_Layer] = []
        for index in range(self.num_layers):
            self._layers.append(self._layer(model.model.layers[index], bits))
            model.model.layers[index] = nn.Identity()
        self._runner = runner or runner_for(self._device)
        self._arena = Arena(self._device, WIDTHS[-1])
        self._passes: dict[PassShape, PassBuffers] = {}
        ends = self._embedding.nbytes + (0 if is_tied else self._head.weight.num_bytes)
        self.num_weight_bytes = ends + sum(layer.num_bytes for layer in self._layers)

    @property
    def embedding(self) -> Tensor:
        """See `Decoder.embedding`."""
        return self._embedding

    @property
    def rotary(self) -> tuple[Tensor, Tensor]:
        """See `Decoder.rotary`: cosines and signed sines [num_positions, 1, head_size]."""
        return self._cos, self._sin

    @property
    def heads(self) -> launch.Heads:
        """Geometry of attention."""
        return self._heads

    @property
    def num_work_bytes(self) -> int:
        """Memory of the static buffers made so far."""
        return self._arena.num_bytes

    def head_rows(self, tokens: Tensor) -> Tensor:
        """See `Decoder.head_rows`."""
        return self._head.weight.rows(tokens).dense(self._dtype)

    def forward(self, rows: Tensor, layout: Layout, caches: Sequence[KVCache], num_logits: int) -> Tensor:
        """See `Decoder.forward`; `caches` is one cache, once for each lane."""
        cache = caches[0]
        if cache.capacity != self._heads.capacity:
            raise ValueError(f"a cache of {cache.capacity} positions; the graphs read {self._heads.capacity}")
        shape = shape_for(layout, num_logits)
        buffers = self.buffers(shape)
        buffers.packet.tell(rows, layout, cache)
        self._runner.run(shape, lambda: self.compute(buffers, wants_logits=shape.wants_logits))
        return buffers.logits[len(rows) - num_logits : len(rows)].clone()

    def buffers(self, shape: PassShape) -> PassBuffers:
        """The buffers of a shape, always the same."""
        if shape not in self._passes:
            self._passes[shape] = self._new_buffers(shape)
        return self._passes[shape]

    def compute(self, at: PassBuffers, *, wants_logits: bool) -> None:
        """One pass over static buffers, as their packet tells: the same work every time, to be captured."""
        launch.run_embed(at.packet, self._embedding, self._layers[0].input_norm, self._eps, at.x, at.normed)
        next_norms = [*(layer.input_norm for layer in self._layers[1:]), self._norm]
        for index, (layer, next_norm) in enumerate(zip(self._layers, next_norms, strict=True)):
            qkv = self._parts_of(layer.qkv, at.normed)
            launch.run_place_heads(at.packet, qkv, layer.heads, self._heads, index, self._eps, at.queries)
            launch.run_attention(
                at.packet, at.queries, self._heads, index, self._scale, at.partial, at.attended
            )
            parts = self._parts_of(layer.out, at.attended.flatten(1))
            launch.run_add_and_norm(parts, layer.post_norm, self._eps, at.x, at.normed)
            launch.run_gated_product(
                layer.gate.weight, layer.up.weight, layer.gate.tiles, at.normed, at.gated
            )
            parts = self._parts_of(layer.down, at.gated)
            launch.run_add_and_norm(parts, next_norm, self._eps, at.x, at.normed)
        launch.run_store_hidden(at.packet, at.normed)
        if wants_logits:
            launch.run_product(self._head.weight, self._head.tiles, at.normed, at.logits[None])

    def _parts_of(self, product: _Product, x: Tensor) -> Tensor:
        """A layer's product, in parts [num_parts, num_rows, num_outputs] float32."""
        size = (product.num_parts, len(x), product.weight.num_outputs)
        name = f"parts {size[0]} {size[2]}"
        flat = self._arena.rows(name, len(x), (size[0] * size[2],), torch.float32)
        parts = flat.view(size)
        launch.run_product(product.weight, product.tiles, x, parts)
        return parts

    def _new_buffers(self, shape: PassShape) -> PassBuffers:
        num_rows, heads, dtype = shape.num_rows, self._heads, self._dtype

        def rows(name: str, *row_shape: int, of: torch.dtype = dtype) -> Tensor:
            return self._arena.rows(name, num_rows, row_shape, of)

        by_chunk = (heads.num_chunks, heads.num_heads)
        partial = launch.Partial(
            rows("sums", *by_chunk, heads.head_size, of=torch.float32),
            rows("tops", *by_chunk, of=torch.float32),
            rows("totals", *by_chunk, of=torch.float32),
        )
        return PassBuffers(
            Packet.empty(shape, self._device),
            rows("x", self.hidden_size),
            rows("normed", self.hidden_size),
            rows("queries", heads.num_heads, heads.head_size),
            rows("attended", heads.num_heads, heads.head_size),
            rows("gated", self._layers[0].gate.weight.num_outputs),
            partial,
            rows("logits", self.vocab_size),
        )

    def _layer(self, layer: Any, bits: Bits) -> _Layer:
        attention, mlp = layer.self_attn, layer.mlp
        projections = (attention.q_proj, attention.k_proj, attention.v_proj)
        bias = None if projections[0].bias is None else torch.cat([one.bias for one in projections])
        norms = [getattr(attention, name, None) for name in ("q_norm", "k_norm")]
        q_norm, k_norm = (None if norm is None else self._moved(norm.weight) for norm in norms)
        bias = None if bias is None else self._moved(bias)
        return _Layer(
            self._moved(layer.input_layernorm.weight),
            launch.HeadWeights(bias, q_norm, k_norm, self._cos, self._sin),
            self._product(torch.cat([self._moved(one.weight) for one in projections]), bits),
            self._product(attention.o_proj.weight, bits),
            self._moved(layer.post_attention_layernorm.weight),
            self._product(mlp.gate_proj.weight, bits, is_whole=True),
            self._product(mlp.up_proj.weight, bits, is_whole=True),
            self._product(mlp.down_proj.weight, bits),
        )

    def _product(self, weight: Tensor, bits: Bits, *, is_whole: bool = False) -> _Product:
        held = hold(self._moved(weight), bits)
        return _Product(held, tiles_for(held, self._num_processors, is_whole=is_whole))

    def _moved(self, weight: Tensor) -> Tensor:
        return weight.detach().to(self._device)
