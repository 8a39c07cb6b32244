"""The forward pass of a target: token rows in, logits out, keys and values into a static cache.

Several kinds behind one call. On the CPU `ByteDecoder` runs the Llama family (Llama, Qwen2, Qwen3, Mistral)
with weights in bytes, `FusedDecoder` with weights as they are; on a GPU `gpu.decoder.GraphedDecoder` does;
`ModuleDecoder` runs any causal model through transformers' own modules.
All keep one property: a row's logits, keys and values depend only on its own token and on
what stands before it, not on how many rows run beside it (see ARCHITECTURE.md, "Exactness").
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import torch
from torch import Tensor

from completion_engine.attention import ROWS, OpenLanes
from completion_engine.cpu.heads import norm_heads, split_heads
from completion_engine.cpu.language import array_of
from completion_engine.cpu.residual import Residual
from completion_engine.gated_mlp import GatedMlp
from completion_engine.kv_cache import KVCache
from completion_engine.lanes import Layout
from completion_engine.linear import Linear, stacked
from completion_engine.llama_family import FamilyModel, LayerParts

_CPU = torch.device("cpu")


class Decoder(Protocol):
    """One target's forward pass."""

    num_layers: int
    num_kv_heads: int
    head_size: int
    hidden_size: int
    vocab_size: int
    num_weight_bytes: int
    row_step: int  # passes run a multiple of so many rows

    @property
    def embedding(self) -> Tensor:
        """What the first layer reads of each token, [vocab_size, hidden_size]."""
        ...

    @property
    def rotary(self) -> tuple[Tensor, Tensor] | None:
        """What `rotate` takes to turn queries for cached keys, by position; None where it is not known."""
        ...

    def head_rows(self, tokens: Tensor) -> Tensor:
        """The head's weights of some tokens [num_tokens, hidden_size]; a copy."""
        ...

    def forward(self, rows: Tensor, layout: Layout, caches: Sequence[KVCache], num_logits: int) -> Tensor:
        """Run `rows` [num_rows] on the host, a multiple of `row_step`, behind what is cached.

        `layout` says where each row stands; `caches` holds one cache a lane, and gets the rows' keys, values
        and hidden states (its length stays as it is). Returns the logits [num_logits, vocab_size]
        of the last `num_logits` rows.
        """
        ...


class _Layer:
    """One decoder layer's weights, laid out for the machine."""

    def __init__(self, parts: LayerParts) -> None:
        self.input_norm = array_of(parts.input_norm)
        self.qkv = Linear(*stacked(parts.q, parts.k, parts.v))
        self.out = Linear(*parts.out)
        self.mlp = GatedMlp(array_of(parts.mlp_norm), parts.gate, parts.up, parts.down)
        self.q_norm = None if parts.q_norm is None else array_of(parts.q_norm)
        self.k_norm = None if parts.k_norm is None else array_of(parts.k_norm)

    @property
    def num_bytes(self) -> int:
        return self.qkv.num_bytes + self.out.num_bytes + self.mlp.num_bytes


class FamilyDecoder:
    """What decoders of the Llama family share: sizes; on `device` embedding, last norm and angles."""

    def __init__(self, model: FamilyModel, num_positions: int, device: torch.device = _CPU) -> None:
        self.num_layers, self.hidden_size = model.num_layers, model.hidden_size
        self.num_heads, self.num_kv_heads = model.num_heads, model.num_kv_heads
        self.head_size, self.vocab_size = model.head_size, model.vocab_size
        self.eps = model.eps
        self._embedding, self._norm = model.embedding.to(device), model.norm.to(device)
        self._cos, self._sin = (table.to(device) for table in model.rotary_tables(num_positions))

    @property
    def embedding(self) -> Tensor:
        """See `Decoder.embedding`."""
        return self._embedding

    @property
    def rotary(self) -> tuple[Tensor, Tensor]:
        """See `Decoder.rotary`: cosines and signed sines [num_positions, 1, head_size]."""
        return self._cos, self._sin


class FusedDecoder(FamilyDecoder):
    """The Llama family on the CPU in float32 or bf16: rotary grouped attention and a gated MLP."""

    row_step = ROWS

    def __init__(self, model: FamilyModel, num_positions: int) -> None:
        super().__init__(model, num_positions)
        self._scale = self.head_size**-0.5
        self._turns = array_of(self._cos[:, 0]), array_of(self._sin[:, 0])
        self._head = Linear(model.head)
        self._layers = [_Layer(model.layer(index)) for index in range(model.num_layers)]
        self.num_weight_bytes = (
            self._embedding.nbytes + self._head.num_bytes + sum(x.num_bytes for x in self._layers)
        )

    def head_rows(self, tokens: Tensor) -> Tensor:
        """See `Decoder.head_rows`."""
        return self._head.rows(tokens).to(self._embedding.dtype)

    def forward(self, rows: Tensor, layout: Layout, caches: Sequence[KVCache], num_logits: int) -> Tensor:
        """See `Decoder.forward`."""
        lanes = OpenLanes(layout, caches, rows.device)
        x = Residual(self._embedding[rows], self.eps)
        for index, layer in enumerate(self._layers):
            q, k, v = self._project(layer, x, lanes.positions)
            heads = lanes.attend(index, q, k, v, self._scale)
            x.add(layer.out(heads.flatten(1)))
            layer.mlp(x)
        hidden = x.normed(array_of(self._norm))
        lanes.store_hidden(hidden)
        return self._head(hidden[-num_logits:]) if num_logits else hidden.new_empty(0, self.vocab_size)

    def _project(self, layer: _Layer, x: Residual, positions: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Turned queries [num_rows, num_heads, head_size]; k and v [num_kv_heads, num_rows, head_size]."""
        num_rows, num_heads, num_kv = len(positions), self.num_heads, self.num_kv_heads
        qkv = layer.qkv(x.normed(layer.input_norm))
        heads = array_of(qkv.view(num_rows, -1, self.head_size))
        if layer.q_norm is not None and layer.k_norm is not None:
            norm_heads(heads, 0, num_heads, layer.q_norm, self.eps)
            norm_heads(heads, num_heads, num_heads + num_kv, layer.k_norm, self.eps)
        dtype = self._embedding.dtype
        q = torch.empty(num_rows, num_heads, self.head_size, dtype=dtype)
        k, v = (torch.empty(num_kv, num_rows, self.head_size, dtype=dtype) for _ in range(2))
        split_heads(heads, *self._turns, array_of(positions), array_of(q), array_of(k), array_of(v))
        return q, k, v


def rotate(x: Tensor, cos: Tensor, signed_sin: Tensor) -> Tensor:
    """Turn `x` [num_rows, num_heads, head_size] by its rows' angles, each [num_rows, 1, head_size]."""
    return x * cos + torch.roll(x, x.shape[-1] // 2, -1) * signed_sin
