"""The drafter's network in training: the products of `drafting.drafter_network`, with gradients.

Works on whole windows: every position of a window is a place to draft from, and sees what the target has
cached up to itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional

from completion_engine.drafting.drafter_network import EPS, DrafterShape
from completion_engine.target_model.language_model import LanguageModel
from completion_engine.target_model.llama_family import rotate

_RIDGE = 0.05  # relative to the mean of the squares' diagonal


@dataclass(frozen=True, slots=True)
class Batch:
    """Windows with what the target made of them.

    `tokens` [num_windows, length]; `hidden` [num_windows, length, hidden_size] is what the head read;
    `keys` and `values` [num_windows, num_kv_heads, length, head_size] of the memory layer;
    `is_real` [num_windows, length] is false for padding.
    """

    tokens: Tensor
    hidden: Tensor
    keys: Tensor
    values: Tensor
    is_real: Tensor

    @property
    def length(self) -> int:
        """Positions of a window."""
        return self.tokens.shape[1]


class DrafterNetwork(nn.Module):
    """Weights named as in `DrafterShape.sizes`; embedding and rotation are the target's."""

    def __init__(self, shape: DrafterShape, target: LanguageModel) -> None:
        super().__init__()
        if target.decoder.rotary is None:
            raise ValueError("the target's rotation must be known")
        self.shape = shape
        self._table = target.decoder.embedding
        self._cos, self._sin = target.decoder.rotary
        self.weights = nn.ParameterDict({name: _initial(name, size) for name, size in shape.sizes.items()})

    def step(self, tokens: Tensor, states: Tensor, batch: Batch, position: Tensor) -> Tensor:
        """Return states [num_windows, n, hidden_size] after `tokens` [num_windows, n], drafted from `states`.

        Row i drafts from position i of the window and attends up to it; `position` [n] holds the tokens'
        positions.
        """
        w = self.weights
        read = _normed(self._table[tokens].to(states.dtype)) * w["embedding_norm"]
        x = functional.linear(read, w["embedding"])
        x = x + functional.linear(_normed(states) * w["state_norm"], w["state"])
        x = x + functional.linear(self._attend(x, batch, position), w["attended"])
        gate, up = functional.linear(_normed(x) * w["mlp_norm"], w["gate_up"]).chunk(2, dim=-1)
        x = x + functional.linear(functional.silu(gate) * up, w["down"])
        result: Tensor = _normed(x) * w["output_norm"]
        return result

    def drafted(self, batch: Batch, num_drafted: int) -> Iterator[tuple[slice, Tensor]]:
        """By depth of a draft from every place of the windows: where its token stands, and the states there.

        States are [num_windows, n, hidden_size]; the first are drafted from the target's, in their type.
        """
        length = batch.length - num_drafted - 1
        place = torch.arange(batch.length, device=batch.tokens.device)
        states = batch.hidden[:, :length]
        for depth in range(num_drafted):
            at = slice(1 + depth, 1 + depth + length)
            states = self.step(batch.tokens[:, at], states, batch, place[at])
            yield at, states

    def _attend(self, x: Tensor, batch: Batch, position: Tensor) -> Tensor:
        w, shape = self.weights, self.shape
        num_windows, num_rows, _ = x.shape
        q = functional.linear(_normed(x) * w["attention_norm"], w["query"], w["query_bias"])
        q = q.view(num_windows, num_rows, shape.num_heads, shape.head_size)
        q = rotate(q, self._cos[position].to(q.dtype), self._sin[position].to(q.dtype)).transpose(1, 2)
        num_groups = shape.num_heads // shape.num_kv_heads
        keys = batch.keys[:, :, :num_rows].repeat_interleave(num_groups, 1)
        values = batch.values[:, :, :num_rows].repeat_interleave(num_groups, 1)
        heads = functional.scaled_dot_product_attention(
            q, keys.to(q.dtype), values.to(q.dtype), is_causal=True
        )
        return heads.transpose(1, 2).reshape(num_windows, num_rows, -1)

    @torch.no_grad()
    def take(self, weights: Mapping[str, Tensor]) -> None:
        """Go on with these weights, named and sized as in `DrafterShape.sizes`."""
        for name, weight in self.weights.items():
            weight.copy_(weights[name])

    @torch.no_grad()
    def fit_linear(self, batches: list[Batch]) -> None:
        """Begin at the best linear guess of the next state from the token and the state before it.

        Ridge regression in closed form; the rest of the network then learns what is missing. The output
        norm takes the scale of the target's states.
        """
        size = self.shape.hidden_size
        device = self._table.device
        squares = torch.zeros(2 * size, 2 * size, device=device)
        products = torch.zeros(2 * size, size, device=device)
        scale = torch.stack([batch.hidden[batch.is_real].float().pow(2).mean(0) for batch in batches])
        scale = scale.mean(0).sqrt().clamp_(min=EPS)
        for batch in batches:
            real = batch.is_real[:, 1:]
            read = _normed(self._table[batch.tokens[:, 1:]].float())[real]
            states = _normed(batch.hidden[:, :-1].float())[real]
            x = torch.cat([read, states], -1)
            squares += x.T @ x
            products += x.T @ (batch.hidden[:, 1:].float()[real] / scale)
        squares += torch.eye(2 * size, device=device) * squares.diagonal().mean() * _RIDGE
        found = torch.linalg.solve(squares.double(), products.double()).T.float()
        self.weights["embedding"].copy_(found[:, :size])
        self.weights["state"].copy_(found[:, size:])
        self.weights["output_norm"].copy_(scale)


def _initial(name: str, size: tuple[int, ...]) -> nn.Parameter:
    """Norms begin at one, what adds to the stream at nothing, all else at small random numbers."""
    if len(size) == 1:
        return nn.Parameter(torch.zeros(size) if name.endswith("bias") else torch.ones(size))
    if name in {"attended", "down"}:
        return nn.Parameter(torch.zeros(size))
    return nn.Parameter(torch.randn(size) * size[1] ** -0.5)


def _normed(x: Tensor) -> Tensor:
    return functional.rms_norm(x, x.shape[-1:], None, EPS)
