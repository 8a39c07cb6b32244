"""The gated MLP of the Llama family: `down(silu(gate(x)) * up(x))`, in floats or in bytes.

What stands between the two products runs in slices of rows too small for torch to share among threads. On
a busy machine each shared operation waits for the slowest thread; the slices took a tenth of the time then,
and no more on an idle machine. Knows nothing of layers, norms or caches.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import torch
from torch import Tensor, nn
from torch.nn import functional

from completion_engine.linear import Kind, Linear, stack
from completion_engine.quantised import QuantisedLinear, quantise_rows

_Result = TypeVar("_Result")
_MAX_SLICE = 32767  # elements up to which torch keeps an operation in one thread (at::internal::GRAIN_SIZE)


def gated_mlp(
    gate: nn.Linear, up: nn.Linear, down: nn.Linear, kind: Kind = "float"
) -> GatedMlp | QuantisedMlp:
    """The MLP of these layers. Layers with biases stay in floats: the scales are applied behind them."""
    if kind == "int8" and all(layer.bias is None for layer in (gate, up, down)):
        return QuantisedMlp(gate, up, down)
    return GatedMlp(gate, up, down)


class GatedMlp:
    """The MLP in the weights' own type; x is [num_rows, num_inputs], the result has its shape."""

    def __init__(self, gate: nn.Linear, up: nn.Linear, down: nn.Linear) -> None:
        self._gate_up = stack(gate, up)
        self._down = Linear(down.weight, down.bias)
        self.num_bytes = self._gate_up.num_bytes + self._down.num_bytes

    def __call__(self, x: Tensor) -> Tensor:
        """The result; see the class."""
        return self._down(torch.cat(_by_slices(_activate, self._gate_up(x))))


class QuantisedMlp:
    """The MLP in bytes (see `quantised`); x is [num_rows, num_inputs], the result has its shape and type."""

    def __init__(self, gate: nn.Linear, up: nn.Linear, down: nn.Linear) -> None:
        self._gate_up = QuantisedLinear(torch.cat([gate.weight.detach(), up.weight.detach()]))
        self._down = QuantisedLinear(down.weight)
        self.num_bytes = self._gate_up.num_bytes + self._down.num_bytes

    def __call__(self, x: Tensor) -> Tensor:
        """The result. The scale of `up` commutes with all that follows, so it is applied to the end."""
        levels, scales = quantise_rows(x)
        gate_up = self._gate_up.of_levels(levels, x.dtype)
        parts = _by_slices(_activate_levels, gate_up, scales)
        y = self._down.of_levels(torch.cat([levels for levels, _ in parts]), torch.float32)
        return y.mul_(torch.cat([scales for _, scales in parts]).mul_(scales)).to(x.dtype)


def _activate(gate_up: Tensor) -> Tensor:
    gate, up = gate_up.chunk(2, dim=-1)
    return functional.silu(gate) * up


def _activate_levels(gate_up: Tensor, scales: Tensor) -> tuple[Tensor, Tensor]:
    gate, up = gate_up.chunk(2, dim=-1)
    return quantise_rows(functional.silu(gate * scales, inplace=True).mul_(up))


def _by_slices(function: Callable[..., _Result], gate_up: Tensor, *beside: Tensor) -> list[_Result]:
    """`function` of slices of the rows, and of the same slices of what stands beside them."""
    step = max(1, _MAX_SLICE // (gate_up.shape[-1] // 2))
    starts = range(0, len(gate_up), step)
    return [function(*(x[start : start + step] for x in (gate_up, *beside))) for start in starts]
