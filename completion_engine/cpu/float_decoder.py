"""The Llama family on the CPU with weights as they are, in float32 or bf16: kernel by kernel.

Runs where weights in bytes cannot or shall not: on x86 processors without AVX2, FMA and F16C, on ARM ones
without FEAT_DotProd, and anywhere with `dtype` float32 or bfloat16. Its products are torch's own; whether its
bits depend on the rows of a pass differs by machine and is asked at load (`target_model.exactness`). All
others run `int8_decoder`.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from completion_engine.cpu.attention import OpenBranches
from completion_engine.cpu.kernels import rows
from completion_engine.cpu.kernels.heads import norm_heads, split_heads
from completion_engine.cpu.kernels.language import Array, Floats, array_of
from completion_engine.cpu.linear import Linear
from completion_engine.target_model.decoder import Layout
from completion_engine.target_model.kv_cache import KVCache
from completion_engine.target_model.llama_family import FamilyDecoder, FamilyModel, LayerParts, stacked
from completion_engine.target_model.passes import ROWS
from completion_engine.target_model.weights import Affine


class GatedMlp:
    """One layer's MLP, `x + down(silu(gate(norm(x))) * up(norm(x)))`; `norm` [hidden_size] is a weight."""

    def __init__(self, norm: Array, gate: Affine, up: Affine, down: Affine) -> None:
        self._norm = norm
        self._gate_up = Linear(*stacked(gate, up))
        self._down = Linear(*down)
        self.num_bytes = self._gate_up.num_bytes + self._down.num_bytes

    def __call__(self, x: Residual) -> None:
        """Read the stream and add to it."""
        x.add(self._down.of_gated(self._gate_up(x.normed(self._norm))))


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


class FloatDecoder(FamilyDecoder):
    """The Llama family on the CPU in float32 or bf16: rotary grouped attention and a gated MLP."""

    row_step = ROWS
    computes_in_torch = True

    def __init__(self, model: FamilyModel, num_positions: int) -> None:
        super().__init__(model, num_positions)
        self._scale = self.head_size**-0.5
        self._turns = array_of(self._cos[:, 0]), array_of(self._sin[:, 0])
        self._head = Linear(model.head)
        self._layers = [_Layer(model.layer(index)) for index in range(model.num_layers)]

    @property
    def num_weight_bytes(self) -> int:
        """See `Decoder.num_weight_bytes`."""
        return self._embedding.nbytes + self._head.num_bytes + sum(x.num_bytes for x in self._layers)

    def head_rows(self, tokens: Tensor) -> Tensor:
        """See `Decoder.head_rows`."""
        return self._head.rows(tokens).to(self._embedding.dtype)

    def forward(self, rows: Tensor, layout: Layout, caches: Sequence[KVCache], num_logits: int) -> Tensor:
        """See `Decoder.forward`."""
        branches = OpenBranches(layout, caches, rows.device)
        x = Residual(self._embedding[rows], self.eps)
        for index, layer in enumerate(self._layers):
            q, k, v = self._project(layer, x, branches.positions)
            heads = branches.attend(index, q, k, v, self._scale)
            x.add(layer.out(heads.flatten(1)))
            layer.mlp(x)
        hidden = x.normed(array_of(self._norm))
        branches.store_hidden(hidden)
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


class Residual:
    """The stream past the layers, [num_rows, hidden_size]; begins with what the first layer reads.

    The last addend is added together with the next norm, in one kernel.
    """

    def __init__(self, embedded: Tensor, eps: float) -> None:
        self._x: Floats = np.zeros(tuple(embedded.shape), np.float32)
        self._eps = eps
        self._dtype = embedded.dtype
        self.add(embedded)

    def add(self, y: Tensor) -> None:
        """Add y [num_rows, hidden_size]; the norm must be read once afterwards."""
        self._added = array_of(y)

    def normed(self, weight: Array) -> Tensor:
        """The root mean square norm times weight [hidden_size], in the type of the model."""
        normed = torch.empty(self._x.shape, dtype=self._dtype)
        rows.add_norm(self._x, self._added, weight, self._eps, array_of(normed))
        return normed
