"""The target's logits by float32 torch, layer by layer: a backend must agree with them before it answers.

Slow, and holds one layer at a time. Uses no kernel of ours.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch
from torch import Tensor
from torch.nn import functional

from completion_engine.gpu.weights import Bits, hold
from completion_engine.target_model.llama_family import FamilyModel, rotate, stacked_bias

_HEAD_ROWS = 16384  # rows of the head at once, in float32


@torch.inference_mode()
def reference_logits(
    model: FamilyModel, tokens: Sequence[int], device: torch.device, bits: Bits, num_logits: int
) -> Tensor:
    """Logits [num_logits, vocab_size] float32 of a text's last tokens.

    Weights are rounded to `bits`; those that their file quantises are its numbers.
    """
    for state in reference_states(model, tokens, device, bits):
        x = state[-num_logits:]
    x = norm(x, model.norm.to(device), model.eps)
    file_head = model.quantised_head if bits < 16 else []
    head = None if file_head else model.head
    found = []
    for first in range(0, model.vocab_size, _HEAD_ROWS):
        end = min(first + _HEAD_ROWS, model.vocab_size)
        if head is None:
            part = torch.from_numpy(file_head[0].values(first, end)).to(device)
        else:
            part = hold(head[first:end].to(device), bits).dense(torch.float32)
        found.append(x @ part.T)
    return torch.cat(found, 1)


@torch.inference_mode()
def reference_states(
    model: FamilyModel, tokens: Sequence[int], device: torch.device, bits: Bits = 16
) -> Iterator[Tensor]:
    """Yield the states [num_tokens, hidden_size] float32 after each layer."""
    x = model.embedding[torch.tensor(tokens)].to(device).float()
    cos, sin = (table[: len(tokens)].to(device).float() for table in model.rotary_tables(len(tokens)))
    for index in range(model.num_layers):
        x = _layer(model, index, x, (cos, sin), bits)
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


def _layer(model: FamilyModel, index: int, x: Tensor, turns: tuple[Tensor, Tensor], bits: Bits) -> Tensor:
    parts = model.layer(index, reads_products=False).to(x.device)

    def product(inputs: Tensor, *names: str) -> Tensor:
        return torch.cat([inputs @ _numbers(model, index, name, bits, x.device).T for name in names], 1)

    bias = stacked_bias(parts.q, parts.k, parts.v)
    qkv = product(norm(x, parts.input_norm, model.eps), "q", "k", "v")
    qkv = (qkv if bias is None else qkv + bias.float()).view(len(x), -1, model.head_size)
    q, k, v = torch.tensor_split(qkv, (model.num_heads, model.num_heads + model.num_kv_heads), 1)
    if parts.q_norm is not None and parts.k_norm is not None:
        q, k = norm(q, parts.q_norm, model.eps), norm(k, parts.k_norm, model.eps)
    q, k = rotate(q, *turns), rotate(k, *turns)
    sees = torch.ones(len(x), len(x), dtype=torch.bool, device=x.device).tril()
    attended = grouped_attention(q, k.transpose(0, 1), v.transpose(0, 1), sees, model.head_size**-0.5)
    x = x + product(attended.flatten(1), "out")
    y = norm(x, parts.mlp_norm, model.eps)
    return x + product(functional.silu(product(y, "gate")) * product(y, "up"), "down")


def _numbers(model: FamilyModel, index: int, part: str, bits: Bits, device: torch.device) -> Tensor:
    """A layer's weight as its file means it, otherwise rounded, [num_outputs, num_inputs] float32."""
    found = model.quantised(index, (part,)) if bits < 16 else []
    if found:
        return torch.from_numpy(found[0].values(0, len(found[0].levels))).to(device)
    return hold(model.product(index, part).to(device), bits).dense(torch.float32)
