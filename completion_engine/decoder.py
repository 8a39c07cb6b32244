"""The forward pass of a target: token rows in, logits out, keys and values into a static cache.

Two kinds behind one call, and a third in `gpu`: `FusedDecoder` runs the Llama family (Llama, Qwen2, Qwen3,
Mistral) on the CPU with packed weights, `ModuleDecoder` any causal model through transformers' own modules.
All keep one property: a row's logits, keys and values depend only on its own token and on
what stands before it, not on how many rows run beside it (see ARCHITECTURE.md, "Exactness").
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import torch
from torch import Tensor, nn

from completion_engine.attention import ROWS, OpenLanes
from completion_engine.cpu.attention import serves_heads
from completion_engine.cpu.heads import norm_heads, split_heads
from completion_engine.cpu.language import array_of
from completion_engine.cpu.residual import Residual
from completion_engine.gated_mlp import GatedMlp
from completion_engine.kv_cache import KVCache
from completion_engine.lanes import Layout
from completion_engine.linear import Kind, Linear, stack

_FUSED_FAMILIES = frozenset({"llama", "qwen2", "qwen3", "mistral"})


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
        """Run `rows` [num_rows], a multiple of `row_step`, behind what is cached.

        `layout` says where each row stands; `caches` holds one cache a lane, and gets the rows' keys, values
        and hidden states (its length stays as it is). Returns the logits [num_logits, vocab_size]
        of the last `num_logits` rows.
        """
        ...


class _Layer:
    """One decoder layer's weights, laid out for the machine."""

    def __init__(self, layer: Any, kind: Kind) -> None:
        attention, mlp = layer.self_attn, layer.mlp
        norm = array_of(layer.post_attention_layernorm.weight.detach())
        self.input_norm = array_of(layer.input_layernorm.weight.detach())
        self.qkv = stack(attention.q_proj, attention.k_proj, attention.v_proj, kind=kind)
        self.out = Linear(attention.o_proj.weight, attention.o_proj.bias, kind)
        self.mlp = GatedMlp(norm, mlp.gate_proj, mlp.up_proj, mlp.down_proj, kind)
        self.q_norm = array_of(attention.q_norm.weight.detach()) if hasattr(attention, "q_norm") else None
        self.k_norm = array_of(attention.k_norm.weight.detach()) if hasattr(attention, "k_norm") else None

    @property
    def num_bytes(self) -> int:
        return self.qkv.num_bytes + self.out.num_bytes + self.mlp.num_bytes


class FusedDecoder:
    """The Llama family on the CPU: rotary grouped attention and a gated MLP, packed at load.

    Takes the weights over from a transformers model and lets go of its modules layer by layer. The kind
    `int8` holds them in bytes or less.
    """

    def __init__(self, model: Any, num_positions: int, kind: Kind = "float") -> None:
        config = model.config
        attention = model.model.layers[0].self_attn
        self.num_layers = config.num_hidden_layers
        self.num_heads = config.num_attention_heads
        self.num_kv_heads = config.num_key_value_heads
        self.head_size = attention.head_dim
        self.hidden_size = config.hidden_size
        self.vocab_size = config.vocab_size
        self.row_step = 1 if kind == "int8" and serves_heads(self.head_size) else ROWS
        self._scale = float(attention.scaling)
        self._eps = float(config.rms_norm_eps)
        self._embedding: Tensor = model.model.embed_tokens.weight.detach()
        self._norm = array_of(model.model.norm.weight.detach())
        self._cos, self._sin = rotary_tables(model, num_positions)
        self._turns = array_of(self._cos[:, 0]), array_of(self._sin[:, 0])
        self._head = Linear(model.lm_head.weight, kind=kind)
        self._layers: list[_Layer] = []
        for index in range(self.num_layers):
            self._layers.append(_Layer(model.model.layers[index], kind))
            model.model.layers[index] = nn.Identity()
        self.num_weight_bytes = (
            self._embedding.nbytes + self._head.num_bytes + sum(x.num_bytes for x in self._layers)
        )

    @property
    def embedding(self) -> Tensor:
        """See `Decoder.embedding`."""
        return self._embedding

    @property
    def rotary(self) -> tuple[Tensor, Tensor]:
        """See `Decoder.rotary`: cosines and signed sines [num_positions, 1, head_size]."""
        return self._cos, self._sin

    def head_rows(self, tokens: Tensor) -> Tensor:
        """See `Decoder.head_rows`."""
        return self._head.rows(tokens).to(self._embedding.dtype)

    @staticmethod
    def serves(config: Any) -> bool:
        """Whether a model of this configuration has exactly the structure that is fused here."""
        return (
            config.model_type in _FUSED_FAMILIES
            and config.hidden_act == "silu"
            and all(kind == "full_attention" for kind in getattr(config, "layer_types", None) or ())
            and not (getattr(config, "sliding_window", None) and config.model_type == "mistral")
        )

    def forward(self, rows: Tensor, layout: Layout, caches: Sequence[KVCache], num_logits: int) -> Tensor:
        """See `Decoder.forward`."""
        lanes = OpenLanes(layout, caches, rows.device, self.row_step)
        x = Residual(self._embedding[rows], self._eps)
        for index, layer in enumerate(self._layers):
            q, k, v = self._project(layer, x, lanes.positions)
            heads = lanes.attend(index, q, k, v, self._scale)
            x.add(layer.out(heads.flatten(1)))
            layer.mlp(x)
        hidden = x.normed(self._norm)
        lanes.store_hidden(hidden)
        return self._head(hidden[-num_logits:]) if num_logits else hidden.new_empty(0, self.vocab_size)

    def _project(self, layer: _Layer, x: Residual, positions: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Turned queries [num_rows, num_heads, head_size]; k and v [num_kv_heads, num_rows, head_size]."""
        num_rows, num_heads, num_kv = len(positions), self.num_heads, self.num_kv_heads
        qkv = layer.qkv.of_normed(x, layer.input_norm)
        heads = array_of(qkv.view(num_rows, -1, self.head_size))
        if layer.q_norm is not None and layer.k_norm is not None:
            norm_heads(heads, 0, num_heads, layer.q_norm, self._eps)
            norm_heads(heads, num_heads, num_heads + num_kv, layer.k_norm, self._eps)
        dtype = self._embedding.dtype
        q = torch.empty(num_rows, num_heads, self.head_size, dtype=dtype)
        k, v = (torch.empty(num_kv, num_rows, self.head_size, dtype=dtype) for _ in range(2))
        split_heads(heads, *self._turns, array_of(positions), array_of(q), array_of(k), array_of(v))
        return q, k, v


def rotary_tables(model: Any, num_positions: int) -> tuple[Tensor, Tensor]:
    """Cosines and signed sines [num_positions, 1, head_size], from the model's own rotary module."""
    weight = model.model.embed_tokens.weight
    positions = torch.arange(num_positions, device=weight.device)[None]
    cos, sin = model.model.rotary_emb(weight[:1, None], positions)
    half = sin.shape[-1] // 2
    signed = torch.cat([-sin[..., :half], sin[..., half:]], dim=-1)
    return cos[0, :, None].contiguous(), signed[0, :, None].contiguous()


def rotate(x: Tensor, cos: Tensor, signed_sin: Tensor) -> Tensor:
    """Turn `x` [num_rows, num_heads, head_size] by its rows' angles, each [num_rows, 1, head_size]."""
    return x * cos + torch.roll(x, x.shape[-1] // 2, -1) * signed_sin
