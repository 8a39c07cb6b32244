"""The target's logits by float32 torch, layer by layer: a rung must agree with them before it answers.

Slow, and holds one layer at a time. Uses no kernel of ours.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

import torch
from torch import Tensor
from torch.nn import functional

from completion_engine.gpu.weights import Bits, head_bits, hold
from completion_engine.target_model.llama_family import FamilyModel, LayerParts, rotate, stacked

_HEAD_ROWS = 16384  # rows of the head at once, in float32


@torch.inference_mode()
def reference_logits(
    model: FamilyModel, tokens: Sequence[int], device: torch.device, bits: Bits = 16
) -> Tensor:
    """Logits [num_tokens, vocab_size] float32 of a text, with weights rounded as beside layers of `bits`."""
    for state in reference_states(model, tokens, device, bits):
        x = state
    x = norm(x, model.norm.to(device), model.eps)
    cuts = [*range(0, len(model.head), _HEAD_ROWS), len(model.head)]
    parts = (model.head[first:end].to(device) for first, end in pairwise(cuts))
    return torch.cat([x @ hold(part, head_bits(bits)).dense(torch.float32).T for part in parts], 1)


@torch.inference_mode()
def reference_states(
    model: FamilyModel, tokens: Sequence[int], device: torch.device, bits: Bits = 16
) -> Iterator[Tensor]:
    """Yield the states [num_tokens, hidden_size] float32 after each layer."""
    x = model.embedding[torch.tensor(tokens)].to(device).float()
    cos, sin = (table[: len(tokens)].to(device).float() for table in model.rotary_tables(len(tokens)))
    for index in range(model.num_layers):
        x = _layer(model, model.layer(index).to(device), x, (cos, sin), bits)
        yield x


def norm(x: Tensor, weight: Tensor, eps: float) -> Tensor:
    """RMS norm of the last dimension, in the type of x."""
    return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + eps) * weight.to(x.dtype)


def grouped_attention(q: Tensor, keys: Tensor, values: Tensor, sees: Tensor, scale: float) -> Tensor:
    """Attention of q [num_rows, num_heads, head_size] to the keys that each row `sees` [num_rows, num_keys].

    Keys and values are [num_kv_heads, num_keys, head_size].
    """
    num_groups = q.shape[1] // len(keys)
    keys, values = (part.repeat_interleave(num_groups, 0) for part in (keys, values))
    scores = torch.einsum("rhd,hkd->hrk", q, keys) * scale
    weights = scores.masked_fill(~sees, float("-inf")).softmax(-1)
    return torch.einsum("hrk,hkd->rhd", weights, values)


def _layer(
    model: FamilyModel, parts: LayerParts, x: Tensor, turns: tuple[Tensor, Tensor], bits: Bits
) -> Tensor:
    def product(inputs: Tensor, weight: Tensor) -> Tensor:
        return inputs @ hold(weight, bits).dense(torch.float32).T

    weight, bias = stacked(parts.q, parts.k, parts.v)
    qkv = product(norm(x, parts.input_norm, model.eps), weight)
    qkv = (qkv if bias is None else qkv + bias.float()).view(len(x), -1, model.head_size)
    q, k, v = torch.tensor_split(qkv, (model.num_heads, model.num_heads + model.num_kv_heads), 1)
    if parts.q_norm is not None and parts.k_norm is not None:
        q, k = norm(q, parts.q_norm, model.eps), norm(k, parts.k_norm, model.eps)
    q, k = rotate(q, *turns), rotate(k, *turns)
    sees = torch.ones(len(x), len(x), dtype=torch.bool, device=x.device).tril()
    attended = grouped_attention(q, k.transpose(0, 1), v.transpose(0, 1), sees, model.head_size**-0.5)
    x = x + product(attended.flatten(1), parts.out[0])
    y = norm(x, parts.mlp_norm, model.eps)
    gated = functional.silu(product(y, parts.gate[0])) * product(y, parts.up[0])
    return x + product(gated, parts.down[0])
