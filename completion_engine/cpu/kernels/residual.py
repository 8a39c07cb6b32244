"""The residual stream of one pass in float32: layers read its norm and add to it."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from completion_engine.cpu.kernels import rows
from completion_engine.cpu.kernels.language import Array, Floats, array_of


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
