"""The gated MLP of the Llama family: `x + down(silu(gate(norm(x))) * up(norm(x)))`.

Knows nothing of attention or caches.
"""

from __future__ import annotations

from completion_engine.cpu.kernels.language import Array
from completion_engine.cpu.kernels.residual import Residual
from completion_engine.cpu.linear import Linear
from completion_engine.target_model.llama_family import stacked
from completion_engine.target_model.model_files import Affine


class GatedMlp:
    """One layer's MLP; `norm` [hidden_size] is the weight of the norm before it."""

    def __init__(self, norm: Array, gate: Affine, up: Affine, down: Affine) -> None:
        self._norm = norm
        self._gate_up = Linear(*stacked(gate, up))
        self._down = Linear(*down)
        self.num_bytes = self._gate_up.num_bytes + self._down.num_bytes

    def __call__(self, x: Residual) -> None:
        """Read the stream and add to it."""
        x.add(self._down.of_gated(self._gate_up(x.normed(self._norm))))
