"""The gated MLP of the Llama family: `x + down(silu(gate(norm(x))) * up(norm(x)))`, in floats or in bytes.

Knows nothing of attention or caches.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from completion_engine.cpu import rows
from completion_engine.cpu.language import Array, Floats, array_of
from completion_engine.cpu.residual import Residual
from completion_engine.linear import Kind, Linear, stack
from completion_engine.quantised import QuantisedLinear


def gated_mlp(
    norm: Array, gate: nn.Linear, up: nn.Linear, down: nn.Linear, kind: Kind = "float"
) -> GatedMlp | QuantisedMlp:
    """The MLP of these layers. Layers with biases stay in floats: the scales are applied behind them."""
    if kind == "int8" and all(layer.bias is None for layer in (gate, up, down)):
        return QuantisedMlp(norm, gate, up, down)
    return GatedMlp(norm, gate, up, down)


def gated(gate_up: Tensor) -> Tensor:
    """`silu(gate) * up` on any device; gate_up is [num_rows, 2 * num_outputs]."""
    if gate_up.device.type == "cpu":
        result = gate_up.new_empty(len(gate_up), gate_up.shape[1] // 2)
        rows.gate(array_of(gate_up), array_of(result))
        return result
    gate, up = gate_up.chunk(2, dim=-1)
    return functional.silu(gate) * up


class GatedMlp:
    """The MLP in the weights' own type; `norm` [hidden_size] is the weight of the norm before it."""

    def __init__(self, norm: Array, gate: nn.Linear, up: nn.Linear, down: nn.Linear) -> None:
        self._norm = norm
        self._gate_up = stack(gate, up)
        self._down = Linear(down.weight, down.bias)
        self.num_bytes = self._gate_up.num_bytes + self._down.num_bytes

    def __call__(self, x: Residual) -> None:
        """Read the stream and add to it."""
        x.add(self._down(gated(self._gate_up(x.normed(self._norm)))))


class QuantisedMlp:
    """The MLP in bytes (see `quantised`); the rest as in `GatedMlp`."""

    def __init__(self, norm: Array, gate: nn.Linear, up: nn.Linear, down: nn.Linear) -> None:
        self._norm = norm
        self._dtype = gate.weight.dtype
        self._gate_up = QuantisedLinear(torch.cat([gate.weight.detach(), up.weight.detach()]))
        self._down = QuantisedLinear(down.weight)
        self.num_bytes = self._gate_up.num_bytes + self._down.num_bytes

    def __call__(self, x: Residual) -> None:
        """Read the stream and add to it. `up`'s scales commute with all that follows: applied at the end."""
        levels, shares = x.normed_levels(self._norm)
        gate_up = self._gate_up.of_levels(levels, self._dtype)
        levels = torch.empty(len(gate_up), gate_up.shape[1] // 2, dtype=torch.uint8)
        scales: Floats = np.empty(len(levels), np.float32)
        rows.gate_levels(array_of(gate_up), shares, levels.numpy(), scales)
        x.add(self._down.of_levels(levels, torch.float32), scales)
